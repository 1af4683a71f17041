"""Class labels: their union, their codes, and the label of rejected samples.

Labels are strings, numbers or booleans. Scores, confusion matrices and committees share three
conventions: classes are sorted as in scikit-learn, the code of a sample is the position of its
class, and the code of a rejected sample is ``REJECTED``.
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
    """Convert labels to an array of their own type, or of objects where a list mixes types."""
    is_list = isinstance(labels, list | tuple)
    array = np.array(labels, dtype=object) if is_list else np.asarray(labels)
    if array.dtype.kind == "T":
        return np.array(array.tolist())
    if array.dtype == object and (kind_of(array) in ("numbers", "booleans") or is_list):
        return np.array(array.tolist(), dtype=object if "/" in kind_of(array) else None)
    return array


def has_missing(labels: NDArray[Any]) -> bool:
    """Whether any label is None, NaN or pandas' NA."""
    if labels.dtype.kind == "f":
        return bool(np.isnan(labels).any())
    if labels.dtype != object or _types(labels) <= {str, bool, int}:
        return False
    return any(is_missing(label) for label in labels.flat)


def _check_complete(labels: ArrayLike, owner: str) -> NDArray[Any]:
    """Convert labels to an array and check that none is missing."""
    array = natural(labels)
    if has_missing(array):
        raise ValueError(f"{owner}: a label is missing (None or NaN).")
    return array


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or pandas' NA."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def kind_of(labels: NDArray[Any]) -> str:
    """Name the kind of labels: booleans, numbers, strings, or the types in an object array."""
    if labels.dtype.kind in _KINDS:
        return _KINDS[labels.dtype.kind]
    return "/".join(sorted({_kind_of_type(label_type) for label_type in _types(labels)}))


def _types(labels: NDArray[Any]) -> set[type]:
    """Collect the types in an array of objects."""
    return set(map(type, labels.ravel().tolist()))


def _kind_of_type(label_type: type) -> str:
    if issubclass(label_type, str):
        return "strings"
    if issubclass(label_type, bool | np.bool_):
        return "booleans"
    return "numbers" if issubclass(label_type, Real) else label_type.__name__


def union(sets: Iterable[tuple[str, ArrayLike]]) -> NDArray[Any]:
    """Find the sorted classes of several label sets, each with the name of its owner.

    Sets of different kinds raise a ValueError: numpy would turn the number 1 into the string "1".
    """
    named = [(owner, _check_complete(labels, owner)) for owner, labels in sets]
    kinds = {kind_of(labels): owner for owner, labels in named if labels.size}
    if len(kinds) != 1 or not kinds.keys() <= set(_KINDS.values()):
        got = ", ".join(f"{kind} ({owner})" for kind, owner in kinds.items()) or "none at all"
        raise ValueError(f"Labels must all be strings, all numbers or all booleans; got {got}.")
    return np.unique(np.concatenate([labels.ravel() for _, labels in named]))


def encode(
    labels: ArrayLike, classes: NDArray[Any], owner: str, reject_label: Any = None
) -> NDArray[np.int64]:
    """Find the position of each label in ``classes``; ``REJECTED`` for the reject label.

    Raises
    ------
    ValueError
        If a label is neither a class nor the reject label.
    """
    array = _check_complete(labels, owner)
    codes = _find_codes(array, classes)
    known = codes != REJECTED
    if reject_label is not None and not known.all():
        known |= array == reject_label
    if not known.all():
        unknown = array[~known].ravel()[0]
        raise ValueError(
            f"{owner}: the label {plain(unknown)!r} is not one of the classes {shown(classes)}."
        )
    return codes


def _find_codes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Find the position of each label in ``classes``, ``REJECTED`` for any other label."""
    if labels.dtype.kind in "iub" and classes.dtype.kind in "iub" and labels.dtype != np.uint64:
        low, high = int(classes.min()), int(classes.max())
        if high - low < _LARGEST_TABLE and labels.size:
            table = np.full(high - low + 3, REJECTED)  # the ends are for labels out of range
            table[classes.astype(np.int64) - low + 1] = np.arange(len(classes))
            return table[np.clip(labels.astype(np.int64) - low + 1, 0, high - low + 2)]
    if kind_of(labels) == kind_of(classes) and labels.dtype != object:
        order = np.argsort(classes)
        ranks = np.searchsorted(classes, labels, sorter=order)
        codes = order[np.minimum(ranks, len(classes) - 1)]
        return np.where(classes[codes] == labels, codes, REJECTED)
    codes = np.full(labels.shape, REJECTED)
    for code, label in enumerate(classes.tolist()):
        codes[labels == label] = code
    return codes


def find(text: str, classes: Iterable[Any]) -> int | None:
    """Find the position of the class that a user writes as a text; None if there is none.

    The class 1 is also written 1.0, and True in any case.
    """
    known = [plain(label) for label in classes]
    texts = list(map(str, known))
    if text in texts:
        return texts.index(text)
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    for position, label in enumerate(known):
        if isinstance(label, bool):
            if str(label).lower() == text.lower():
                return position
        elif isinstance(label, int | float) and label == number:
            return position
    return None


def default_reject_label(classes: NDArray[Any]) -> Any:
    """Make a label that is not a class: "rejected", or a number below the smallest class."""
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
    """Convert codes to labels, ``REJECTED`` to ``reject_label``, in a type that holds them all."""
    if not (codes == REJECTED).any():
        return np.asarray(classes[codes])
    same_kind = kind_of(np.asarray([reject_label])) == kind_of(classes)
    labels = np.array([*classes.tolist(), reject_label], dtype=None if same_kind else object)
    return np.asarray(labels[codes])  # REJECTED, which is -1, is the last position


def shown(classes: NDArray[Any], limit: int = 10) -> str:
    """Write classes for a message, at most ``limit`` of them."""
    texts = [repr(label) for label in classes.tolist()[:limit]]
    if len(classes) > limit:
        texts.append(f"... ({len(classes)} in all)")
    return ", ".join(texts)


def plain(label: Any) -> Any:
    """Convert a numpy scalar to Python's own type."""
    return label.item() if isinstance(label, np.generic) else label
