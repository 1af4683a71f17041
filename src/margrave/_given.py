"""Taking what members said from arrays: the kind of values, the classes and the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._asking import Floats, Kind


def codes_of(values: Floats | None) -> NDArray[np.int64] | None:
    """The class with the largest value, the first of equals."""
    if values is None:
        return None
    return np.argmax(values, axis=1) if values.ndim == 2 else (values > 0).astype(np.int64)


def one_of(**given: ArrayLike | None) -> tuple[Kind, Floats | None]:
    """The one kind of values that was given, on its way to [-1, 1]."""
    chosen = [(kind, array) for kind, array in given.items() if array is not None]
    if len(chosen) > 1:
        raise ValueError(
            "Scores.from_arrays needs at most one of proba, decision and scores; got several."
        )
    if not chosen:
        return "label", None
    kind, array = chosen[0]
    values = np.asarray(array, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("Scores.from_arrays needs finite values; got NaN or infinity.")
    low, high = {"probability": (0, 1), "score": (-1, 1)}.get(kind, (-np.inf, np.inf))
    if values.size and not low <= values.min() <= values.max() <= high:
        raise ValueError(
            f"Scores.from_arrays needs {kind} values in [{low}, {high}]; "
            f"got {values.min():g} to {values.max():g}."
        )
    if values.ndim == 3 and values.shape[2] <= 2:
        values = values[:, :, -1]
    return cast(Kind, kind), 2 * values - 1 if kind == "probability" else values


def array_classes(
    classes: Sequence[Any] | None, labels: NDArray[Any] | None, n_classes: int | None
) -> NDArray[Any]:
    """The classes given, or those of the labels, or numbers; sorted, and as many as the values."""
    if classes is not None:
        known = _labels.union([("classes", np.asarray(classes))])
        if known.tolist() != list(classes):
            raise ValueError(
                f"Scores.from_arrays needs sorted, different classes; got {list(classes)!r}."
            )
    elif labels is not None:
        known = _labels.union([("labels", labels)])
    else:
        known = np.arange(n_classes or 0)
    if n_classes is not None and len(known) != n_classes:
        raise ValueError(
            f"Scores.from_arrays has values for {n_classes} classes, but classes "
            f"{_labels.shown(known)}; give classes=."
        )
    return known


def array_names(members: Sequence[str] | None, n_members: int) -> tuple[str, ...]:
    """The members' names, or numbered ones."""
    names = tuple(members or (f"member{j + 1}" for j in range(n_members)))
    if len(set(names)) != n_members or len(names) != n_members:
        raise ValueError(
            f"Scores.from_arrays needs {n_members} different members' names; got {list(names)!r}."
        )
    return names
