"""`RankMarginClassifier` on Dask collections: members that are trained weigh in, block by block."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import validate_data

from margrave import _labels
from margrave._dask.blocks import Blocks
from margrave._typing import Flags
from margrave._validation import check_sample_weight, fitted_classes
from margrave.fuse._combination import Asked
from margrave.fuse._combination_blocks import First, Members, combine_blocks, first
from margrave.fuse._drawing import Drawn, draw, most_of_class

T = TypeVar("T")

_OWNER = "RankMarginClassifier"


def fit_blocks(
    committee: T, X: Any, y: Any, sample_weight: Any, fit_params: dict[str, Any], asked: Asked
) -> T:
    """Weigh trained members on Dask collections.

    Parameters
    ----------
    committee : RankMarginClassifier
        What is fitted.
    X, y, sample_weight, fit_params
        As in its ``fit``.
    asked : Asked
        Its settings, checked.
    """
    self: Any = committee
    if not self.prefit:
        raise ValueError(
            f"{_OWNER} trains its members in memory, and X or y is a Dask collection: draw rows "
            "with margrave.scale.sample(X, y), train the members on them, and give them with "
            "prefit=True."
        )
    if fit_params:
        raise ValueError(
            f"{_OWNER}.fit has nobody to pass {', '.join(fit_params)} to: the members are prefit."
        )
    blocks = Blocks.of(_OWNER, X, y=y, sample_weight=sample_weight)
    like = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
    self._pairs()
    validate_data(self, like, skip_check_array=True)
    self._keep([member for _, member in self._pairs()])
    self._check_positive()
    members = Members(self, _unknown(self))
    probabilities = np.array([hasattr(one, "predict_proba") for one in self.estimators_])
    looked = blocks.reduce(first, First.merged, members, probabilities, asked.scale)
    check_sample_weight(looked.weights, 2, f"{_OWNER}.fit")
    if np.count_nonzero(looked.mass) == 1:
        only = _labels.plain(self.classes_[np.argmax(looked.mass)])
        raise ValueError(
            f"{_OWNER} needs samples of at least two classes; got one class, {only!r}."
        )
    self._check_mass(looked.mass)
    drawn = None
    if isinstance(asked.nu, str) or isinstance(asked.tol, str):
        most = most_of_class(int(np.count_nonzero(looked.mass)))
        drawn = blocks.reduce(draw, Drawn.merged, self.classes_, most, numbered=True)
    combined = combine_blocks(blocks, members, looked, probabilities, asked, drawn)
    results = [one.found for one, _ in combined]
    self._keep_combined([one for one, _ in combined], results, [low for _, low in combined])
    return committee


def _unknown(self: Any) -> Flags:
    """Where members that give decision values say nothing, as their values are laid out."""
    classes = self.classes_
    unknown = [
        np.zeros(len(classes), dtype=bool)
        if hasattr(member, "predict_proba") or not hasattr(member, "decision_function")
        else ~np.isin(classes, fitted_classes(name, member))
        for name, member in zip(self.member_names_, self.estimators_, strict=True)
    ]
    flags = np.array(unknown)
    return flags if len(classes) > 2 else flags[:, -1]
