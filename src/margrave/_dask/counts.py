"""How often labels occur together in Dask collections: the distinct rows, and their counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._dask.blocks import Blocks, is_dask

Key = tuple[tuple[bool, Any], ...]


def count_labels(
    owner: str, most: int | None = None, **columns: Any
) -> tuple[list[list[Any]], NDArray[np.int64]]:
    """The distinct rows of some columns of labels, and how often each occurs: one pass.

    Parameters
    ----------
    owner : str
        Who asks, for messages.
    most : int, optional
        Refuse a column of more distinct labels than this.
    **columns : Dask collections or arrays
        The columns by name, at least one of them of Dask.

    Returns
    -------
    rows : list of list
        For each column its labels, one for each distinct row; None for a missing one.
    counts : ndarray of int64
        How often each row occurs.
    """
    first = next(name for name, given in columns.items() if is_dask(given))
    others = {name: given for name, given in columns.items() if name != first}
    order = [(first, *others).index(name) for name in columns]
    blocks = Blocks.of(owner, columns[first], **others)
    merge = _Merge(owner, most, tuple(columns))
    found = blocks.reduce(_count, merge, tuple(order))
    if len(blocks) == 1:
        found = merge([found])
    rows = [[value for _, value in column] for column in zip(*found, strict=True)]
    return rows, np.array(list(found.values()), dtype=np.int64)


@dataclass(frozen=True)
class _Merge:
    """Counts together; too many different values in a column are no labels."""

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
                    f"{self.owner} needs labels of classes{where}; got more than {most} different "
                    "ones."
                )


def _count(*given: Any) -> Counter[Key]:
    """The distinct rows of a block."""
    *parts, order = given
    known = [_distinct(parts[place]) for place in order]
    codes = np.zeros(len(parts[0]), dtype=np.int64)
    for values, own in known:
        codes = codes * len(values) + own
    there, counts = np.unique(codes, return_counts=True)
    columns = []
    for values, _ in reversed(known):
        there, place = np.divmod(there, len(values))
        columns.append([values[at] for at in place.tolist()])
    keys = zip(*reversed(columns), strict=True)
    return Counter(dict(zip(keys, counts.tolist(), strict=True)))


def _distinct(labels: Any) -> tuple[list[tuple[bool, Any]], NDArray[np.int64]]:
    """The different labels of a column, each with whether it is a Boolean; and their places."""
    array = _labels.natural(labels)
    if array.ndim != 1:
        raise ValueError(f"Labels must be one for each sample; got shape {array.shape}.")
    if array.dtype == object:
        named = [_named(label) for label in array.tolist()]
        places = {name: place for place, name in enumerate(dict.fromkeys(named))}
        return list(places), np.array([places[name] for name in named], dtype=np.int64)
    values, codes = np.unique(array, return_inverse=True)
    return [_named(label) for label in values.tolist()], codes


def _named(label: Any) -> tuple[bool, Any]:
    """True is not 1 here, and all that is missing is the same."""
    return isinstance(label, bool | np.bool_), None if _labels.is_missing(label) else label
