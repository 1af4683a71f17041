"""Tuning data of a committee: samples its members were not trained on, and where they come from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from margrave import _labels


def check_tuning(tuning: Any, owner: str) -> None:
    """Refuse what is neither a number of folds, a share, a splitter nor a list of folds."""
    share = is_share(tuning) and not 0 < tuning < 1
    count = isinstance(tuning, int | np.integer) and tuning < 2
    if share or count or isinstance(tuning, str):
        raise ValueError(
            f"{owner} needs tuning to be a number of folds of at least 2, a share in (0, 1), a "
            f"splitter or a list of folds; got {tuning!r}."
        )


def is_share(tuning: Any) -> bool:
    """Whether a part is kept from training, so that there are no folds."""
    return isinstance(tuning, float | np.floating)


def folds_of(tuning: Any, X: Any, y: NDArray[Any], owner: str) -> list[Any]:
    """Folds as a user asks for them: a number, a splitter or a list."""
    if isinstance(tuning, int | np.integer):
        return stratified_folds(y, int(tuning), owner)
    try:
        folds = list(check_cv(tuning, y, classifier=True).split(X, y))
    except ValueError as error:
        if "groups" not in str(error):
            raise
        raise ValueError(folds_of_groups(owner)) from error
    if not folds:
        raise ValueError(f"{owner} needs tuning with at least one fold; got none.")
    return folds


def folds_of_groups(owner: str) -> str:
    """What to do with groups, for a message."""
    return (
        f"{owner} needs the folds of samples in groups as a list: "
        "tuning=list(GroupKFold().split(X, y, groups))."
    )


def stratified_folds(y: NDArray[Any], n_folds: int, owner: str) -> list[Any]:
    """Folds with the classes' shares, fewer if a class is small."""
    classes, sizes = np.unique(y, return_counts=True)
    if sizes.min() < 2:
        raise ValueError(
            f"{owner} needs at least two samples of each class to cross-validate; "
            f"{_labels.plain(classes[sizes.argmin()])!r} has one."
        )
    return list(StratifiedKFold(min(n_folds, int(sizes.min()))).split(y, y))
