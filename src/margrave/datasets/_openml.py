"""The last resort of `load`: the same set on OpenML, through scikit-learn."""

from __future__ import annotations

import numpy as np

from margrave.datasets._facts import Facts
from margrave.datasets._table import Arrays, Table, to_arrays


def fetch(facts: Facts) -> Arrays:
    """Download a set and check that it is the one that is meant.

    The answer is turned back into text first, so that a column that OpenML calls nominal but that
    holds numbers is numeric here, as it is in our files.
    """
    from sklearn.datasets import fetch_openml

    # This parser is the one that needs no pandas.
    found = fetch_openml(data_id=facts.openml, as_frame=False, parser="liac-arff")
    columns = [
        _text(column, found.categories.get(name))
        for name, column in zip(found.feature_names, found.data.T, strict=True)
    ]
    target = [t if isinstance(t, str) else f"{t:.17g}" for t in found.target.tolist()]
    rows = list(zip(*columns, target, strict=True))
    arrays = to_arrays(Table(tuple(found.feature_names), rows))
    _check(arrays, facts)
    return arrays


def _text(column: np.typing.NDArray[np.float64], values: list[str] | None) -> list[str]:
    """Write a column as our files do: values by name, numbers in full, nothing for NaN."""
    cells = column.tolist()
    if values is None:
        return ["" if np.isnan(cell) else f"{cell:.17g}" for cell in cells]
    return ["" if np.isnan(cell) else values[int(cell)] for cell in cells]


def _check(arrays: Arrays, facts: Facts) -> None:
    """Refuse a set whose size, class counts or range of targets is not what is known."""
    if facts.classes is None:
        wanted: object = facts.target_range
        got: object = (float(arrays.target.min()), float(arrays.target.max()))
    else:
        labels, counts = np.unique(arrays.target, return_counts=True)
        wanted = dict(facts.classes)
        got = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    expected, shape = (facts.rows, facts.features), arrays.data.shape
    if (shape, got) != (expected, wanted):
        raise ValueError(
            f"OpenML {facts.openml} is another set: expected shape {expected} and target {wanted}, "
            f"got {shape} and {got}"
        )
