"""Rows of Dask collections, in blocks that are worked on where they lie.

What is learned from more rows than fit into memory is learned from sums and sorted summaries: a
function of one block, and a way to put results together. Blocks are put together in a tree of
fixed shape, so that a result does not depend on who was quick, nor on a worker that was lost and
whose blocks were done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

T = TypeVar("T")

_FAN_IN = 8
# In the names of tasks: shuffles on disk, and between workers. Those by tasks keep an order.
_SHUFFLES = ("zpartd", "p2p", "shuffle-transfer", "hash-join-transfer")
_SINGLE = ("y", "weight", "sample_weight")


def is_dask(*given: Any) -> bool:
    """Whether any of these is a Dask collection; Dask is not loaded to find out."""
    kinds = (type(one) for one in given)
    return any(k.__module__.startswith("dask") and hasattr(k, "__dask_graph__") for k in kinds)


def check_dense(owner: str, block: Any) -> None:
    """Refuse a block that is a sparse matrix."""
    if issparse(block):
        raise TypeError(
            f"{owner} takes Dask arrays of dense blocks; got blocks of type {type(block).__name__}."
        )


@dataclass(frozen=True, eq=False)
class Blocks:
    """Collections with the same rows, cut into the same blocks.

    Attributes
    ----------
    parts : tuple of tuple of Delayed
        For each block, what each collection has there; None for one that was not given.
    columns : tuple of str, or int
        Names of the first collection's columns, or how many there are.
    owner : str
        Who asks, for messages.
    """

    parts: tuple[tuple[Any, ...], ...]
    columns: tuple[str, ...] | int
    owner: str

    @classmethod
    def of(cls, owner: str, X: Any, **beside: Any) -> Blocks:
        """Cut collections into the blocks of the first.

        Parameters
        ----------
        owner : str
            Who asks, for messages.
        X : Dask array, data frame or series
            The rows.
        **beside : Dask collections, arrays or None
            What else there is for every row, by name; the names are for messages.
        """
        if not is_dask(X):
            raise TypeError(
                f"{owner} needs X as a Dask collection where another is one; got "
                f"{type(X).__name__}. dask.array.from_array makes one."
            )
        sizes, first = _sizes(X), _blocks(X)
        columns = [first]
        for name, given in beside.items():
            columns.append(_delayed(owner, name, given, X, sizes, len(first)))
        for parts in columns:
            _check_order(owner, parts)
        return cls(tuple(zip(*columns, strict=True)), _columns(X), owner)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def n_columns(self) -> int:
        """How many columns the first collection has."""
        return self.columns if isinstance(self.columns, int) else len(self.columns)

    def reduce(
        self,
        function: Callable[..., T | None],
        merge: Callable[[list[T]], T],
        *more: Any,
        numbered: bool = False,
    ) -> T:
        """Put together what a function says of each block: one pass over the rows.

        Parameters
        ----------
        function : callable
            Takes what the collections have in a block, and `more`. Blocks without rows are left
            out; None says that a block has nothing to add.
        merge : callable
            Puts a list of results together, in the order of the blocks.
        *more : object
            The same for all blocks, sent once.
        numbered : bool, default=False
            Whether the function takes the number of the block first, as a seed for example.
        """
        import dask

        shared = [dask.delayed(one, pure=False, traverse=False) for one in more]
        asked = dask.delayed(_asked, pure=False, traverse=False)
        merged = dask.delayed(_merged, pure=False, traverse=False)
        results = [
            asked(function, self.owner, number, numbered, len(part), *part, *shared)
            for number, part in enumerate(self.parts)
        ]
        while len(results) > 1:
            results = [
                merged(merge, *results[at : at + _FAN_IN]) for at in range(0, len(results), _FAN_IN)
            ]
        with suppress(ImportError):
            import distributed  # noqa: F401 - first: settings that it brings are not to go with ours
        # Members go with the graph, not by themselves: a worker that is lost can have them again.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "2GB"}):
            (found,) = dask.compute(results[0])
        if found is None:
            raise ValueError(f"{self.owner} needs at least one row; all blocks are empty.")
        whole: T = found
        return whole


def _asked(
    function: Callable[..., Any],
    owner: str,
    number: int,
    numbered: bool,
    n_parts: int,
    *given: Any,
) -> Any:
    """What a function says of one block; None if that has no rows."""
    part, more = given[:n_parts], given[n_parts:]
    for one in part:
        check_dense(owner, one)
    lengths = {len(one) for one in part if one is not None}
    if len(lengths) > 1:
        told = ", ".join("-" if one is None else str(len(one)) for one in part)
        raise ValueError(
            f"{owner} needs as many rows in every collection; block {number} has {told}. "
            "Collections of unknown chunk sizes must be cut in the same places."
        )
    if lengths == {0}:
        return None
    return function(*((number,) if numbered else ()), *part, *more)


def _merged(merge: Callable[[list[Any]], Any], *results: Any) -> Any:
    """What there is of some results, put together."""
    there = [one for one in results if one is not None]
    return merge(there) if len(there) > 1 else there[0] if there else None


def _sizes(X: Any) -> tuple[int, ...] | None:
    """Rows in each block, where that is known."""
    if not hasattr(X, "chunks"):
        return None
    sizes = X.chunks[0]
    return None if any(np.isnan(size) for size in sizes) else tuple(map(int, sizes))


def _blocks(X: Any) -> Sequence[Any]:
    """A collection's blocks of rows, each with all columns."""
    if not hasattr(X, "chunks"):
        parts: list[Any] = X.to_delayed()
        return parts
    whole = X.rechunk({1: -1}) if X.ndim == 2 and X.shape[1] and len(X.chunks[1]) > 1 else X
    return list(whole.to_delayed().reshape(whole.numblocks[0]))


def _check_order(owner: str, parts: Sequence[Any]) -> None:
    """Refuse rows that come from a shuffle, whose order within a block may change at every pass."""
    from dask.utils import key_split

    names = {key_split(key) for key in parts[0].dask} if parts and parts[0] is not None else set()
    if any(mark in name for name in names for mark in _SHUFFLES):
        raise ValueError(
            f"{owner} needs rows that keep their order; these come from a shuffle, a merge or a "
            "sort, after which Dask may give them in another order each time. Call persist() on "
            "the whole data frame first, or write it to Parquet."
        )


def _delayed(
    owner: str, name: str, given: Any, X: Any, sizes: tuple[int, ...] | None, n_blocks: int
) -> Sequence[Any]:
    """The blocks of a collection, or of an array cut in the same places."""
    if given is None:
        return [None] * n_blocks
    if name in _SINGLE and getattr(given, "ndim", 1) != 1:
        raise ValueError(
            f"{owner} needs {name} as one column; got {given.ndim} dimensions. Of a data frame "
            "take a column by its name."
        )
    if not is_dask(given):
        return _cut(owner, name, given, X, sizes)
    own = _sizes(given)
    if own is not None and sizes is not None and own != sizes:
        if sum(own) != sum(sizes):
            raise ValueError(
                f"{owner} needs {name} with as many rows as X, {sum(sizes)}; got {sum(own)}."
            )
        given = given.rechunk({0: sizes})
    parts = _blocks(given)
    if len(parts) != n_blocks:
        raise ValueError(
            f"{owner} needs {name} in as many blocks as the other, {n_blocks}; got {len(parts)}. "
            "Take both from one data frame, or call compute_chunk_sizes() on the arrays."
        )
    return parts


def _cut(
    owner: str, name: str, in_memory: Any, X: Any, sizes: tuple[int, ...] | None
) -> Sequence[Any]:
    """An array in memory, cut where the blocks are."""
    import dask

    if sizes is None:
        known = "compute_chunk_sizes()" if hasattr(X, "chunks") else "to_dask_array(lengths=True)"
        raise ValueError(
            f"{owner} needs {name} as a Dask collection, since the chunk sizes of the other are "
            f"unknown; got {type(in_memory).__name__}. Its {known} makes them known."
        )
    given = np.asarray(in_memory)
    if len(given) != sum(sizes):
        raise ValueError(
            f"{owner} needs {name} with as many rows as X, {sum(sizes)}; got {len(given)}."
        )
    ends = np.cumsum(sizes)
    return [
        dask.delayed(given[end - size : end], pure=False, traverse=False)
        for size, end in zip(sizes, ends, strict=True)
    ]


def _columns(X: Any) -> tuple[str, ...] | int:
    if hasattr(X, "columns"):
        return tuple(map(str, X.columns))
    return int(X.shape[1]) if getattr(X, "ndim", 1) == 2 else 1
