"""What a dialog can begin with: labels, classes, groups and times of samples, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from margrave import _labels
from margrave._samples import checked_labels
from margrave._typing import Codes
from margrave.scale._blocks import is_dask

_LEAST = 10


def labels_of(X: Any, y: ArrayLike, owner: str) -> NDArray[Any]:
    """Labels of at least two classes, one for each sample."""
    refuse_dask(X, y, owner)
    labels = checked_labels(X, y, owner)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs samples of at least two classes; got one class, "
            f"{_labels.plain(classes[0])!r}."
        )
    return labels


def codes_of(X: Any, y: ArrayLike, classes: NDArray[Any], owner: str) -> Codes:
    """Positions of labels, one for each sample."""
    refuse_dask(X, y, owner)
    check_consistent_length(X, y)
    return _labels.encode(column_or_1d(_labels.natural(y)), classes, f"{owner}: y")


def refuse_dask(X: Any, y: Any, owner: str) -> None:
    """A dialog is held in memory."""
    if is_dask(X, y):
        raise ValueError(
            f"{owner} needs samples in memory; got a Dask collection. SteeredClassifier sets a "
            "threshold on all of its rows; margrave.scale.sample draws rows for a dialog."
        )


def check_sizes(classes: NDArray[Any], codes: Codes, owner: str) -> None:
    """Refuse too few samples to train, tune and certify on."""
    sizes = np.bincount(codes, minlength=len(classes))
    if sizes.min() < _LEAST:
        label = _labels.plain(classes[sizes.argmin()])
        raise ValueError(
            f"{owner} needs at least {_LEAST} samples of each class to train, tune and certify on; "
            f"got {sizes.min()} of {label!r}."
        )


def check_all_there(classes: NDArray[Any], codes: Codes, owner: str) -> None:
    """Refuse tuning samples without some class."""
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        raise ValueError(
            f"{owner} needs tuning samples of every class; got none of "
            f"{_labels.plain(classes[sizes.argmin()])!r}."
        )


def one_each(values: ArrayLike, n: int, name: str, owner: str) -> NDArray[Any]:
    """An entry for each sample."""
    array = np.asarray(values)
    if array.dtype == object and not _labels.has_missing(array):
        array = array.astype(str)  # of whatever kinds
    if array.shape != (n,):
        raise ValueError(
            f"{owner} needs {name} with an entry for each of {n} samples; got shape {array.shape}."
        )
    missing = np.isnat(array) if array.dtype.kind in "mM" else np.array(_labels.has_missing(array))
    if missing.any():
        raise ValueError(f"{owner} needs {name} without missing entries.")
    return array


def checked_positive(positive: Any, classes: NDArray[Any], owner: str) -> Any:
    """The positive class: as given, or the second of two."""
    if positive is None:
        return _labels.plain(classes[1]) if len(classes) == 2 else None
    if positive not in classes.tolist():
        raise ValueError(
            f"{owner} needs positive to be one of {_labels.shown(classes)}; got {positive!r}."
        )
    return classes.tolist()[classes.tolist().index(positive)]
