"""Regions of competence: how the space is parted.

"Multi-classifiers", slides on selection: regions "are not associated with specific classes, nor do
they need to be of a certain shape or size"; usually there are as many as members, K = L. Here they
are the cells of k-means; or, for each member, where it is the best: a tree is grown on where each
member is right, and its leaves with the same best member are one region; or what a user's own
clusterer or function says.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import _num_samples

from margrave.select._selector import Judged

KINDS = ("kmeans", "members")
# Leaves for each member, and samples in each leaf: fewer say little about anybody.
_LEAVES = 4
_LEAST = 20
_STARTS = 3


class Column:
    """Regions by the values of a column of a data frame.

    Parameters
    ----------
    name : str
        Of the column.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, X: Any) -> NDArray[Any]:
        """The values of samples."""
        return np.asarray(X[self.name])


def check_regions(regions: Any, X: Any, owner: str) -> None:
    """Refuse what cannot part a space."""
    if isinstance(regions, str) and regions in (*KINDS, *getattr(X, "columns", ())):
        return
    if hasattr(regions, "fit"):
        if hasattr(regions, "predict"):
            return
        raise ValueError(
            f"{owner} needs regions that new samples can be put into; "
            f"{type(regions).__name__} has no predict."
        )
    if not is_function(regions):
        raise ValueError(
            f"{owner} needs regions to be 'kmeans', 'members', a column's name in a data frame, a "
            f"clusterer with predict, or a function of samples; got {regions!r}."
        )


def is_function(regions: Any) -> bool:
    """Whether regions are what a function says."""
    return callable(regions) and not hasattr(regions, "fit")


def function_of(regions: Any) -> Any:
    """What says the region of a sample without learning it; None if it is learned."""
    if isinstance(regions, str) and regions not in KINDS:
        return Column(regions)
    return regions if is_function(regions) else None


def fitted_finder(
    regions: Any, judged: Judged, placed: Any, n_regions: int | None, random_state: Any
) -> Any:
    """What finds the region of a sample, learned from the tuning samples; None for a function."""
    if function_of(regions) is not None:
        return None
    n_tuning, n_members = judged.told.codes.shape
    if isinstance(regions, str) and (regions == "kmeans" or n_regions == 1):
        finder = KMeans(
            n_regions or min(n_members, n_tuning), n_init=_STARTS, random_state=random_state
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # many samples at one place
            return finder.fit(placed, sample_weight=judged.weight)
    if isinstance(regions, str):
        finder = DecisionTreeRegressor(
            max_leaf_nodes=n_regions or max(_LEAVES * n_members, 2),
            min_samples_leaf=_LEAST,
            random_state=random_state,
        )
        return finder.fit(placed, judged.right.astype(np.float64), sample_weight=judged.weight)
    return clone(regions).fit(placed)


def regions_at(function: Any, finder: Any, X: Any, placed: Any, owner: str) -> NDArray[Any]:
    """The region of each sample, by a function or by what was fitted."""
    if function is not None:
        found = np.asarray(function(X))
    elif isinstance(finder, DecisionTreeRegressor):
        right = finder.predict(placed).reshape(placed.shape[0], -1)
        found = right.argmax(axis=1)
    else:
        found = np.asarray(finder.predict(placed))
    n_samples = _num_samples(X)
    if found.shape != (n_samples,):
        raise ValueError(
            f"{owner} needs one region for each of {n_samples} samples; got shape {found.shape}."
        )
    return found
