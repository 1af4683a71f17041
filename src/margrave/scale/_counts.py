"""Count the distinct rows of columns of labels in Dask collections."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave.scale._blocks import Blocks

Key = tuple[tuple[bool, Any], ...]


def count_labels(
    owner: str, most: int | None = None, **columns: Any
) -> tuple[list[list[Any]], NDArray[np.int64]]:
    """Count the distinct rows of some columns of labels, in one pass.

    Parameters
    ----------
    owner : str
        The name of the caller, for messages.
    most : int, optional
        The most distinct labels of a column; more raise an error.
    **columns : Dask collections or arrays
        The columns by name; at least one is a Dask collection.

    Returns
    -------
    rows : list of list
        For each column its labels, one for each distinct row; None for a missing label.
    counts : ndarray of int64
        How often each row occurs.
    """
    for name, column in columns.items():
        if np.ndim(column) != 1:
            raise ValueError(
                f"{owner} needs {name} with one label for each sample; got {np.ndim(column)} "
                "dimensions."
            )
    blocks = Blocks.of_columns(owner, **columns)
    merge = _Merge(owner, most, tuple(columns))
    counts = blocks.reduce(_count, merge)
    if len(blocks) == 1:
        counts = merge([counts])
    rows = [[value for _, value in column] for column in zip(*counts, strict=True)]
    return rows, np.array(list(counts.values()), dtype=np.int64)


@dataclass(frozen=True)
class _Merge:
    """Merges counts; raises an error if a column has too many distinct labels."""

    owner: str
    most: int | None
    names: tuple[str, ...]

    def __call__(self, parts: list[Counter[Key]]) -> Counter[Key]:
        whole: Counter[Key] = Counter()
        for part in parts:
            whole.update(part)
            if self.most is not None and len(whole) > self.most:
                self._check(whole, self.most)
        return whole

    def _check(self, whole: Counter[Key], most: int) -> None:
        for at, name in enumerate(self.names):
            if len({key[at] for key in whole}) > most:
                where = f" in {name}" if len(self.names) > 1 else ""
                raise ValueError(
                    f"{self.owner} needs labels of classes{where}; got more than {most} distinct "
                    "ones."
                )


def _count(*columns: Any) -> Counter[Key]:
    """Count the distinct rows of a block."""
    encoded = [_encode(labels) for labels in columns]
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for values, own in encoded:
        codes = codes * len(values) + own
    distinct, counts = np.unique(codes, return_counts=True)
    by_column = []
    for values, _ in reversed(encoded):
        distinct, own = np.divmod(distinct, len(values))
        by_column.append([values[code] for code in own.tolist()])
    keys = zip(*reversed(by_column), strict=True)
    return Counter(dict(zip(keys, counts.tolist(), strict=True)))


def _encode(labels: Any) -> tuple[list[tuple[bool, Any]], NDArray[np.int64]]:
    """Return the distinct labels of a column, as keys, and the position of each row's label."""
    array = _labels.natural(labels)
    if array.dtype == object:
        keys = [_key(label) for label in array.tolist()]
        positions = {key: position for position, key in enumerate(dict.fromkeys(keys))}
        return list(positions), np.array([positions[key] for key in keys], dtype=np.int64)
    values, codes = np.unique(array, return_inverse=True)
    return [_key(label) for label in values.tolist()], codes


def _key(label: Any) -> tuple[bool, Any]:
    """Make a key in which True differs from 1, and all missing labels are equal."""
    return isinstance(label, bool | np.bool_), None if _labels.is_missing(label) else label
