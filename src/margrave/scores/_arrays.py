"""Checks of arrays of predictions, for `Scores.from_arrays`.

The functions find the kind of the values, the classes and the members' names, and check ranges,
shapes and sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._typing import Floats
from margrave.scores._predictions import Kind


def predict_codes(values: Floats, n_classes: int) -> NDArray[np.int64]:
    """Return the class with the largest of the values of Scores, the first of equals."""
    codes = np.argmax(values, axis=2) if values.ndim == 3 else (values > 0) & (n_classes > 1)
    return codes.astype(np.int64)


def read_values(**by_kind: ArrayLike | None) -> tuple[Kind, Floats | None]:
    """Return the one kind that has values, and its checked values; decision values unscaled."""
    kind, array = _only_kind(by_kind)
    if array is None:
        return kind, None
    values = np.asarray(array, dtype=np.float64)
    if values.size:
        low, high = float(values.min()), float(values.max())
        _check_range(kind, low, high)
        if kind == "probability":
            _check_sums(values)
    values = np.clip(values, *_RANGES.get(kind, (-np.inf, np.inf)))  # float32 may exceed the ends
    return kind, 2 * values - 1 if kind == "probability" else values


def _only_kind(by_kind: dict[str, Any]) -> tuple[Kind, Any]:
    """Return the one kind that has values, and its values; "label" if none has."""
    present = [(kind, array) for kind, array in by_kind.items() if array is not None]
    if len(present) > 1:
        raise ValueError(
            "Scores.from_arrays needs at most one of proba, decision and scores; "
            f"got {len(present)}."
        )
    return cast(tuple[Kind, Any], present[0] if present else ("label", None))


_RANGES = {"probability": (0, 1), "score": (-1, 1)}


def _check_range(kind: str, lowest: float, highest: float) -> None:
    """Check the range of the values of a kind; an end is NaN if a value is."""
    if not np.isfinite([lowest, highest]).all():
        raise ValueError("Scores.from_arrays needs finite values; got NaN or infinity.")
    low, high = _RANGES.get(kind, (-np.inf, np.inf))
    if not low - 1e-6 <= lowest <= highest <= high + 1e-6:
        raise ValueError(
            f"Scores.from_arrays needs {kind} values in [{low}, {high}]; "
            f"got {lowest:g} to {highest:g}."
        )


def check_shape(values: Any, labels: Any) -> tuple[int, ...]:
    """Return the common shape (n, K) or (n, K, C)."""
    shapes: list[tuple[int, ...]] = [array.shape for array in (values, labels) if array is not None]
    shape: tuple[int, ...] = shapes[0] if shapes else ()
    fits = len(shape) in (2, 3) and all(shape)
    if fits and labels is not None:
        n, *width = shapes[-1]
        fits = n == shape[0] and width == [shape[1]]
    if not fits:
        raise ValueError(
            "Scores.from_arrays needs labels of shape (n, K) and values of shape (n, K), or "
            "(n, K, C) for C classes, with at least one sample and one member; "
            f"got {' and '.join(map(str, shapes)) or 'nothing'}."
        )
    return shape


def _check_sums(proba: Floats) -> None:
    """Check that probabilities sum to 1 over the classes, and not over the members."""
    if proba.ndim == 3 and not np.allclose(proba.sum(axis=2), 1, atol=1e-3):
        raise ValueError(
            "Scores.from_arrays needs proba to sum to 1 over the classes; got other sums."
        )
    several = proba.ndim == 2 and min(proba.shape) > 1 and bool(np.ptp(proba))
    if several and np.allclose(proba.sum(axis=1), 1):
        raise ValueError(
            "Scores.from_arrays needs proba of shape (n, K) for two classes, one column per "
            "member; got rows that sum to 1, like one member's predict_proba. Pass "
            "proba[:, None, :], or both classes of every member in (n, K, 2)."
        )


def toward_second_class(values: Floats) -> Floats:
    """Reduce the values of two classes to one: half of second minus first."""
    if values.ndim == 3 and values.shape[2] == 2:
        return (values[:, :, 1] - values[:, :, 0]) / 2
    return values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values


def find_classes(
    classes: Sequence[Any] | None,
    labels: NDArray[Any] | None,
    n_classes: int | None,
    reject_label: Any,
) -> NDArray[Any]:
    """Return the sorted classes: `classes`, those of the labels, or 0, 1, ..."""
    if classes is not None:
        union = _labels.union([("classes", np.asarray(classes))])
        if union.tolist() != list(classes):
            raise ValueError(
                f"Scores.from_arrays needs sorted, different classes; got {list(classes)!r}."
            )
    elif labels is not None:
        predicted = labels if reject_label is None else labels[labels != reject_label]
        union = _labels.union([("labels", predicted.ravel().tolist())])
    else:
        union = np.arange(n_classes or 0)
    if reject_label is not None and reject_label in union.tolist():
        raise ValueError(
            f"Scores.from_arrays needs a reject_label that is not a class; got {reject_label!r}, "
            f"which is among {_labels.shown(union)}."
        )
    if n_classes is not None and len(union) != n_classes:
        raise ValueError(
            f"Scores.from_arrays has values for {n_classes} classes, but the classes are "
            f"{_labels.shown(union)}. Values of shape (n, K) are for two classes; pass (n, K, C) "
            "for C classes, or other classes=."
        )
    return union


def find_names(members: Sequence[str] | None, array: Any, n_members: int) -> tuple[str, ...]:
    """Return the members' names: `members`, a data frame's columns, or member1, member2, ..."""
    if members is None and hasattr(array, "columns"):
        members = [str(column) for column in array.columns]
    if members is None:
        members = [f"member{j + 1}" for j in range(n_members)]
    names = tuple(str(name) for name in members)
    if len(set(names)) != n_members or len(names) != n_members:
        raise ValueError(
            f"Scores.from_arrays needs {n_members} different names in members; got {list(names)!r}."
        )
    return names


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array."""
    view = array.view()
    view.flags.writeable = False
    return view
