"""Conversion of a CSV file to arrays, by the same rules for every source.

A column is numeric if each of its cells is empty or a number. Any other column is categorical, and
its values become their positions in sorted order. An empty cell is a missing value, NaN.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TARGET = "target"


@dataclass(frozen=True)
class Table:
    """A table of text: the names of the features, and rows that end with the target."""

    feature_names: tuple[str, ...]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Arrays:
    """A table of numbers, its target, and the values of the categorical columns."""

    feature_names: tuple[str, ...]
    data: NDArray[np.float64]
    target: NDArray[Any]
    categories: dict[str, tuple[str, ...]]


def read_table(raw: bytes, where: str) -> Table:
    """Read the text of a CSV file, header first, target last; `where` names it in errors."""
    try:
        text = raw.decode("utf-8-sig")  # spreadsheets put a byte-order mark before the header
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: needs UTF-8 text; got {error}.") from error
    reader = csv.reader(io.StringIO(text, newline=""))
    rows: list[list[str]] = []
    try:
        names = _check_header(next(reader, []), where)
        for row in reader:
            if len(row) != len(names):
                raise ValueError(
                    f"{where}, line {reader.line_num}: "
                    f"needs {len(names)} cells, as the header has; got {len(row)}."
                )
            if not row[-1]:
                raise ValueError(
                    f"{where}, line {reader.line_num}: needs a target; got an empty cell."
                )
            rows.append(row)
    except csv.Error as error:
        raise ValueError(f"{where}, line {reader.line_num}: needs CSV; got {error}.") from error
    if not rows:
        raise ValueError(f"{where}, line 2: needs rows under the header; got none.")
    return Table(tuple(names[:-1]), rows)


def _check_header(names: list[str], where: str) -> list[str]:
    """Check for different names, at least one feature, and the target as the last column."""
    if not names:
        raise ValueError(f"{where}, line 1: needs a header; got an empty line.")
    if len(names) < 2 or names[-1] != TARGET:
        raise ValueError(
            f"{where}, line 1: needs a header with the features' names and, last, {TARGET!r}; "
            f"got {', '.join(['...', *names[-2:]] if len(names) > 2 else names)}."
        )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{where}, line 1: needs different names; got {repeated[0]!r} more than once."
        )
    return names


def to_arrays(table: Table) -> Arrays:
    """Convert text to numbers and codes, in new writable arrays."""
    *columns, target = zip(*table.rows, strict=True)
    data = np.empty((len(table.rows), len(columns)), dtype=np.float64)
    categories: dict[str, tuple[str, ...]] = {}
    for j, (name, column) in enumerate(zip(table.feature_names, columns, strict=True)):
        try:
            data[:, j] = np.array([cell or "nan" for cell in column]).astype(np.float64)
        except ValueError:
            data[:, j], categories[name] = _encode(np.array(column))
    return Arrays(table.feature_names, data, _convert_target(np.array(target)), categories)


def _encode(column: NDArray[np.str_]) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return positions in the sorted values, NaN for empty cells, and the sorted values."""
    present = column != ""
    values, positions = np.unique(column[present], return_inverse=True)
    codes = np.full(column.shape, np.nan)
    codes[present] = positions
    return codes, tuple(values.tolist())


def _convert_target(column: NDArray[np.str_]) -> NDArray[Any]:
    """Convert to the simplest type of every value: integers, floats, or text."""
    for kind in (np.int64, np.float64):
        try:
            return column.astype(kind)
        except ValueError:
            continue
    return column
