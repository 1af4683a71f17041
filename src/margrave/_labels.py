"""Labels of any one type: their union, their codes, and the label that stands for "rejected".

Scores, confusion matrices and committees meet labels as strings, numbers or booleans. They agree
on three things here: classes are sorted as scikit-learn sorts them, a sample carries the position
of its class (its code), and a rejected sample carries the code ``REJECTED``.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

REJECTED = -1
_LARGEST_TABLE = 10_000

_KINDS = {
    "b": "booleans",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "U": "strings",
    "T": "strings",
}


def natural(labels: ArrayLike) -> NDArray[Any]:
    """Labels as an array in their own type; as objects where a list mixes types."""
    listed = isinstance(labels, list | tuple)
    array = np.array(labels, dtype=object) if listed else np.asarray(labels)
    if array.dtype.kind == "T":
        return np.array(array.tolist())
    if array.dtype == object and (kind_of(array) in ("numbers", "booleans") or listed):
        return np.array(array.tolist(), dtype=object if "/" in kind_of(array) else None)
    return array


def has_missing(labels: NDArray[Any]) -> bool:
    """Whether a label is None, NaN or pandas' NA."""
    if labels.dtype.kind == "f":
        return bool(np.isnan(labels).any())
    if labels.dtype != object or _types(labels) <= {str, bool, int}:
        return False
    return any(is_missing(label) for label in labels.flat)


def _complete(labels: ArrayLike, owner: str) -> NDArray[Any]:
    """Labels as an array, none of them missing."""
    array = natural(labels)
    if has_missing(array):
        raise ValueError(f"{owner}: a label is missing (None or NaN).")
    return array


def is_missing(label: Any) -> bool:
    """Whether a label stands for none: None, NaN or pandas' NA."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def kind_of(labels: NDArray[Any]) -> str:
    """Booleans, numbers or strings; what else an object array holds, by the name of its type."""
    if labels.dtype.kind in _KINDS:
        return _KINDS[labels.dtype.kind]
    return "/".join(sorted({_kind_of_type(one) for one in _types(labels)}))


def _types(labels: NDArray[Any]) -> set[type]:
    """The types in an array of objects; there are few, however many labels there are."""
    return set(map(type, labels.ravel().tolist()))


def _kind_of_type(one: type) -> str:
    if issubclass(one, str):
        return "strings"
    if issubclass(one, bool | np.bool_):
        return "booleans"
    return "numbers" if issubclass(one, Real) else one.__name__


def union(sets: Iterable[tuple[str, ArrayLike]]) -> NDArray[Any]:
    """The sorted classes of several label sets, each given with the name of its owner.

    Sets of different kinds are refused: numpy would turn the number 1 into the string "1".
    """
    named = [(owner, _complete(labels, owner)) for owner, labels in sets]
    kinds = {kind_of(labels): owner for owner, labels in named if labels.size}
    if len(kinds) != 1 or not kinds.keys() <= set(_KINDS.values()):
        got = ", ".join(f"{kind} ({owner})" for kind, owner in kinds.items()) or "none at all"
        raise ValueError(f"Labels must all be strings, all numbers or all booleans; got {got}.")
    return np.unique(np.concatenate([labels.ravel() for _, labels in named]))


def encode(
    labels: ArrayLike, classes: NDArray[Any], owner: str, reject_label: Any = None
) -> NDArray[np.int64]:
    """The position of each label in ``classes``; ``REJECTED`` for the reject label.

    Raises
    ------
    ValueError
        If a label is neither a class nor the reject label.
    """
    array = _complete(labels, owner)
    codes = _places(array, classes)
    known = codes != REJECTED
    if reject_label is not None and not known.all():
        known |= array == reject_label
    if not known.all():
        unknown = array[~known].ravel()[0]
        raise ValueError(f"{owner}: {plain(unknown)!r} is not one of the classes {shown(classes)}.")
    return codes


def _places(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The position of each label in ``classes``, ``REJECTED`` for what is not there."""
    if labels.dtype.kind in "iub" and classes.dtype.kind in "iub" and labels.dtype != np.uint64:
        low, high = int(classes.min()), int(classes.max())
        if high - low < _LARGEST_TABLE and labels.size:
            table = np.full(high - low + 3, REJECTED)  # the ends take what is out of range
            table[classes.astype(np.int64) - low + 1] = np.arange(len(classes))
            return table[np.clip(labels.astype(np.int64) - low + 1, 0, high - low + 2)]
    if kind_of(labels) == kind_of(classes) and labels.dtype != object:
        order = np.argsort(classes)
        found = np.searchsorted(classes, labels, sorter=order)
        places = order[np.minimum(found, len(classes) - 1)]
        return np.where(classes[places] == labels, places, REJECTED)
    codes = np.full(labels.shape, REJECTED)
    for code, label in enumerate(classes.tolist()):
        codes[labels == label] = code
    return codes


def default_reject_label(classes: NDArray[Any]) -> Any:
    """A label that is none of the classes: "rejected", or one below the smallest number."""
    if kind_of(classes) == "numbers":
        below = plain(classes.min()) - 1
        return below if below != classes.min() else float(np.nextafter(below, -np.inf))
    label = "rejected"
    while label in classes.tolist():
        label += "_"
    return label


def decode(
    codes: NDArray[np.integer[Any]], classes: NDArray[Any], reject_label: Any
) -> NDArray[Any]:
    """Labels for codes, ``reject_label`` for ``REJECTED``, in a type that holds them all."""
    if not (codes == REJECTED).any():
        return np.asarray(classes[codes])
    one_kind = kind_of(np.asarray([reject_label])) == kind_of(classes)
    wide = np.array([*classes.tolist(), reject_label], dtype=None if one_kind else object)
    return np.asarray(wide[codes])  # REJECTED is the last place


def shown(classes: NDArray[Any], limit: int = 10) -> str:
    """Classes for a message."""
    texts = [repr(label) for label in classes.tolist()[:limit]]
    if len(classes) > limit:
        texts.append(f"... ({len(classes)} in all)")
    return ", ".join(texts)


def plain(label: Any) -> Any:
    """A numpy scalar as Python's own type."""
    return label.item() if isinstance(label, np.generic) else label
