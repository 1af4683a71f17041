"""Taking what members said from arrays: the kind of values, the classes and the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._dask.blocks import is_dask
from margrave._typing import Floats
from margrave.scores._predictions import Kind


def predicted_codes(values: Floats, n_classes: int) -> NDArray[np.int64]:
    """The class with the largest value, the first of equals, of values as Scores hold them."""
    codes = np.argmax(values, axis=2) if values.ndim == 3 else (values > 0) & (n_classes > 1)
    return codes.astype(np.int64)


def read_values(**given: ArrayLike | None) -> tuple[Kind, Floats | None]:
    """The one kind of values that was given, on its way to [-1, 1]."""
    kind, array = only_kind(given)
    if array is None:
        return kind, None
    values = np.asarray(array, dtype=np.float64)
    if values.size:
        low, high = float(values.min()), float(values.max())
        check_range(kind, low, high)
        if kind == "probability":
            check_sums(*check_row_sums(values), len(values), low < high)
    return kind, to_unit_range(kind, values)


def only_kind(given: dict[str, Any]) -> tuple[Kind, Any]:
    """The one kind of values that was given; "label" if none was."""
    chosen = [(kind, array) for kind, array in given.items() if array is not None]
    if len(chosen) > 1:
        raise ValueError(
            "Scores.from_arrays needs at most one of proba, decision and scores; got several."
        )
    return cast(tuple[Kind, Any], chosen[0] if chosen else ("label", None))


_RANGES = {"probability": (0, 1), "score": (-1, 1)}


def check_range(kind: str, lowest: float, highest: float) -> None:
    """Refuse values of a kind that run from here to there, NaN if one is."""
    if not np.isfinite([lowest, highest]).all():
        raise ValueError("Scores.from_arrays needs finite values; got NaN or infinity.")
    low, high = _RANGES.get(kind, (-np.inf, np.inf))
    if not low - 1e-6 <= lowest <= highest <= high + 1e-6:
        raise ValueError(
            f"Scores.from_arrays needs {kind} values in [{low}, {high}]; "
            f"got {lowest:g} to {highest:g}."
        )


def to_unit_range(kind: str, values: Floats) -> Floats:
    """Probabilities and scores as values in [-1, 1]."""
    values = np.clip(values, *_RANGES.get(kind, (-np.inf, np.inf)))  # float32 may be past the end
    return 2 * values - 1 if kind == "probability" else values


def check_shape(values: Any, labels: Any) -> tuple[int, ...]:
    """The shape (n, K) or (n, K, C) that values and labels share; n is NaN if Dask has not told."""
    shapes = [_shape_of(array) for array in (values, labels) if array is not None]
    shape = shapes[0] if shapes else ()
    fits = len(shape) in (2, 3) and all(shape)
    if fits and labels is not None:
        n, *more = shapes[-1]
        fits = (n == shape[0] or bool(np.isnan([n, shape[0]]).any())) and more == [shape[1]]
    if not fits:
        raise ValueError(
            "Scores.from_arrays needs labels of shape (n, K) and values of shape (n, K), or "
            "(n, K, C) for C classes, with at least one sample and one member; "
            f"got {' and '.join(map(str, shapes)) or 'nothing'}."
        )
    return shape


def _shape_of(array: Any) -> tuple[Any, ...]:
    """The shape, with NaN for a number of rows that is not known."""
    if is_dask(array) and not hasattr(array, "chunks"):
        return (np.nan, len(array.columns)) if hasattr(array, "columns") else (np.nan,)
    return tuple(array.shape)


def check_row_sums(proba: Floats) -> tuple[bool, bool]:
    """Whether sums over classes are off, and whether those over members are all 1."""
    if proba.ndim == 3:
        return not np.allclose(proba.sum(axis=2), 1, atol=1e-3), False
    alone = proba.ndim == 2 and proba.shape[1] > 1 and np.allclose(proba.sum(axis=1), 1)
    return False, bool(alone)


def check_sums(off: bool, alone: bool, n: int, differ: bool) -> None:
    """Probabilities over all classes sum to 1, and only those.

    `off` and `alone` are from `check_row_sums`, of n rows; `differ` says whether not all are equal.
    """
    if off:
        raise ValueError("Scores.from_arrays needs proba that sum to 1 over the classes.")
    if alone and n > 1 and differ:
        raise ValueError(
            "Scores.from_arrays needs proba of shape (n, K), one column a member, for two classes; "
            "these rows sum to 1, as one member's predict_proba does: give proba[:, None, :], or "
            "both classes of every member in (n, K, 2)."
        )


def toward_second_class(values: Floats) -> Floats:
    """With two classes, how far each member leans to the second: half the difference of both."""
    if values.ndim == 3 and values.shape[2] == 2:
        return (values[:, :, 1] - values[:, :, 0]) / 2
    return values[:, :, 0] if values.ndim == 3 and values.shape[2] == 1 else values


def array_classes(
    classes: Sequence[Any] | None,
    labels: NDArray[Any] | None,
    n_classes: int | None,
    reject_label: Any,
) -> NDArray[Any]:
    """The classes given, or those of the labels, or numbers; sorted, and as many as the values."""
    if classes is not None:
        known = _labels.union([("classes", np.asarray(classes))])
        if known.tolist() != list(classes):
            raise ValueError(
                f"Scores.from_arrays needs sorted, different classes; got {list(classes)!r}."
            )
    elif labels is not None:
        answered = labels if reject_label is None else labels[labels != reject_label]
        known = _labels.union([("labels", answered.ravel().tolist())])
    else:
        known = np.arange(n_classes or 0)
    if reject_label is not None and reject_label in known.tolist():
        raise ValueError(
            f"Scores.from_arrays needs a reject_label that is not a class; {reject_label!r} is "
            f"among {_labels.shown(known)}."
        )
    if n_classes is not None and len(known) != n_classes:
        raise ValueError(
            f"Scores.from_arrays has values for {n_classes} classes, but the classes are "
            f"{_labels.shown(known)}. Values of shape (n, K) are for two classes; give (n, K, C) "
            "for C of them, or other classes=."
        )
    return known


def array_names(members: Sequence[str] | None, given: Any, n_members: int) -> tuple[str, ...]:
    """The members' names, a data frame's columns, or numbers."""
    if members is None and hasattr(given, "columns"):
        members = [str(column) for column in given.columns]
    if members is None:
        members = [f"member{j + 1}" for j in range(n_members)]
    names = tuple(str(name) for name in members)
    if len(set(names)) != n_members or len(names) != n_members:
        raise ValueError(
            f"Scores.from_arrays needs {n_members} different members' names; got {list(names)!r}."
        )
    return names


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, not to be written to; Dask's cannot be."""
    if is_dask(array):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class BlockSummary(NamedTuple):
    """What Dask arrays hold, of all blocks: rows, range, sums, sizes of values, and labels."""

    n: int
    low: float
    high: float
    off: bool
    alone: bool
    largest: Floats
    labels: list[Any]


def summarise_block(X: Any, labels: Any, kind: Kind, reject_label: Any) -> BlockSummary:
    """A look at one block: its values, or labels only."""
    answers = [labels if labels is not None else X] if labels is not None or kind == "label" else []
    told: list[Any] = []
    for one in answers:
        array = _labels.natural(one)
        answered = array if reject_label is None else array[array != reject_label]
        told = _labels.union([("labels", answered.ravel())]).tolist() if answered.size else []
    if kind == "label":
        return BlockSummary(len(X), 0.0, 0.0, False, False, np.zeros(1), told)
    values = np.asarray(X, dtype=np.float64)
    off, alone = check_row_sums(values) if kind == "probability" else (False, False)
    sizes = np.abs(toward_second_class(values))
    largest = sizes.max(axis=(0, *range(2, sizes.ndim)))
    ends = float(values.min()), float(values.max())
    return BlockSummary(len(values), *ends, off, alone, largest, told)


def merge_summaries(parts: list[BlockSummary]) -> BlockSummary:
    """All of them together."""
    labels = [label for one in parts for label in one.labels]
    return BlockSummary(
        sum(one.n for one in parts),
        float(np.min([one.low for one in parts])),
        float(np.max([one.high for one in parts])),
        any(one.off for one in parts),
        all(one.alone for one in parts),
        np.max([one.largest for one in parts], axis=0),
        _labels.union([("labels", labels)]).tolist() if labels else [],
    )
