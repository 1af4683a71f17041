"""The last resort of `load`: the same set on OpenML, through scikit-learn."""

from __future__ import annotations

import numpy as np

from margrave.datasets._check import check_facts
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
    check_facts(arrays, facts, f"OpenML {facts.openml}")
    return arrays


def _text(column: np.typing.NDArray[np.float64], values: list[str] | None) -> list[str]:
    """Write a column as our files do: values by name, numbers in full, nothing for NaN."""
    cells = column.tolist()
    if values is None:
        return ["" if np.isnan(cell) else f"{cell:.17g}" for cell in cells]
    return ["" if np.isnan(cell) else values[int(cell)] for cell in cells]
