"""The nearest tuning samples, by scikit-learn's index or any other that is called the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import get_tags

from margrave._typing import AnyFloats, AnyInts


def fitted_index(index: Any, X: Any, k: int, n_jobs: int | None, owner: str) -> Any:
    """An index of samples: a fresh NearestNeighbors, or a clone of the given one."""
    if index is None:
        return NearestNeighbors(n_neighbors=k, n_jobs=n_jobs).fit(X)
    if isinstance(index, type) or not hasattr(index, "fit") or not hasattr(index, "kneighbors"):
        raise ValueError(
            f"{owner} needs index to have fit and kneighbors, as sklearn.neighbors."
            f"NearestNeighbors() has them; got {index!r}."
        )
    found = clone(index, safe=False)
    if hasattr(found, "__sklearn_tags__") and get_tags(found).target_tags.required:
        raise ValueError(
            f"{owner} needs an index that is fitted on samples alone, such as sklearn.neighbors."
            f"NearestNeighbors(); {type(index).__name__} needs labels too."
        )
    found.fit(X)
    return found


def nearest(index: Any, X: Any, k: int, n: int, owner: str) -> tuple[AnyFloats, AnyInts]:
    """Distances and places of the k nearest of n samples, nearest first, each (q, k)."""
    distance, at = index.kneighbors(X, n_neighbors=k, return_distance=True)
    distance, at = np.asarray(distance), np.asarray(at)
    if at.shape != (X.shape[0], k) or distance.shape != at.shape or at.dtype.kind not in "iu":
        raise ValueError(
            f"{owner} needs an index that finds {k} neighbours for each sample; kneighbors of "
            f"{type(index).__name__} gave {at.shape} for {X.shape[0]} samples."
        )
    if at.min() < 0 or at.max() >= n:
        outside = int(at.min() if at.min() < 0 else at.max())
        raise ValueError(
            f"{owner} needs an index that finds {k} of the {n} tuning samples for each sample; "
            f"kneighbors of {type(index).__name__} gave number {outside}."
        )
    return distance, at


def nearest_others(index: Any, X: Any, at: AnyInts, k: int, n: int, owner: str) -> AnyInts:
    """The k nearest samples to some of the index's own, places (q, k); none is its own."""
    found = nearest(index, X, k + 1, n, owner)[1]
    own = found == at[:, None]
    own[:, -1] |= ~own.any(axis=1)  # many at the same place: the last goes instead
    others: AnyInts = found[~own].reshape(len(found), k)
    return others
