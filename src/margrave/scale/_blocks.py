"""Rows of Dask collections in blocks, and reductions over the blocks.

Methods for data larger than memory compute sums and sorted summaries: a function of one block, and
another that merges results. The merges form a tree of fixed shape, so that a result depends neither
on which worker is fastest nor on workers that were lost and whose blocks were computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from margrave.scale._dask import import_dask

T = TypeVar("T")

_FAN_IN = 8
# Parts of the names of tasks that shuffle rows on disk or between workers. Other shuffles keep an
# order.
_SHUFFLES = ("zpartd", "p2p", "shuffle-transfer", "hash-join-transfer")
_SINGLE_COLUMNS = ("y", "weight", "sample_weight")


def is_dask(*objects: Any) -> bool:
    """Whether any of the objects is a Dask array, data frame or series; Dask is not imported."""
    types = (type(each) for each in objects if hasattr(type(each), "__dask_graph__"))
    # Other collections, such as Delayed, have no rows.
    return any(t.__module__.startswith("dask") and hasattr(t, "ndim") for t in types)


def check_dense(owner: str, block: Any) -> None:
    """Raise an error if a block is a sparse matrix."""
    if issparse(block):
        raise TypeError(
            f"{owner} needs Dask arrays of dense blocks; got blocks of type {type(block).__name__}."
        )


def _describe(X: Any) -> str:
    """Return the package and the name of a type, such as ``pandas DataFrame``."""
    return f"{type(X).__module__.partition('.')[0]} {type(X).__name__}"


def concatenate(parts: Sequence[Any]) -> Any:
    """Join rows of several blocks: arrays, or pandas objects."""
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    import pandas

    return pandas.concat(parts)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Collections with the same rows, split into the same blocks.

    Attributes
    ----------
    parts : tuple of tuple of Delayed
        For each block, the part of each collection; None for a collection that is None.
    columns : tuple of str, or int
        Names of the first collection's columns, or their number.
    owner : str
        The name of the caller, for messages.
    """

    parts: tuple[tuple[Any, ...], ...]
    columns: tuple[str, ...] | int
    owner: str

    @classmethod
    def of(cls, owner: str, X: Any, **beside: Any) -> Blocks:
        """Split collections into the blocks of the first one.

        Parameters
        ----------
        owner : str
            The name of the caller, for messages.
        X : Dask array, data frame or series
            The rows.
        **beside : Dask collections, arrays or None
            Other collections with the same rows, such as labels; messages use their names.
        """
        if not is_dask(X):
            import_dask(owner)  # a missing package is the error to report first
            raise TypeError(
                f"{owner} needs X to be a Dask array or data frame; got {_describe(X)}, which is "
                "in memory. Call the method of the estimator itself, or convert X with "
                "dask.array.from_array or dask.dataframe.from_pandas."
            )
        return cls._aligned(owner, "X", {"X": X, **beside})

    @classmethod
    def of_samples(cls, owner: str, X: Any, **beside: Any) -> Blocks:
        """Split collections into the blocks of X, which has rows and columns."""
        if is_dask(X) and X.ndim != 2:
            raise ValueError(
                f"{owner} needs X with rows and columns; got {X.ndim} dimension(s). Select columns "
                "of a data frame by a list of names."
            )
        return cls.of(owner, X, **beside)

    @classmethod
    def of_columns(cls, owner: str, **columns: Any) -> Blocks:
        """Split collections into the blocks of the first of them that is a Dask collection."""
        first = next((name for name, column in columns.items() if is_dask(column)), None)
        if first is None:
            import_dask(owner)
            raise TypeError(
                f"{owner} needs {' or '.join(columns)} to be a Dask array or series; got "
                f"{', '.join(type(column).__name__ for column in columns.values())}. Convert an "
                "array with dask.array.from_array."
            )
        return cls._aligned(owner, first, columns)

    @classmethod
    def _aligned(cls, owner: str, first: str, collections: dict[str, Any]) -> Blocks:
        """Split collections into the blocks of the one with the name `first`."""
        X = collections[first]
        sizes, blocks = _known_sizes(X), _split(X)
        split = []
        for name, other in collections.items():
            parts = blocks
            if name != first:
                parts = _split_like(owner, name, other, first, X, sizes, len(blocks))
            _check_order(owner, parts)
            split.append(parts)
        return cls(tuple(zip(*split, strict=True)), _columns(X), owner)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def n_columns(self) -> int:
        """The number of columns of the first collection."""
        return self.columns if isinstance(self.columns, int) else len(self.columns)

    def reduce(
        self,
        function: Callable[..., T | None],
        merge: Callable[[list[T]], T],
        *more: Any,
        numbered: bool = False,
    ) -> T:
        """Merge the results of a function for each block, in one pass over the rows.

        Parameters
        ----------
        function : callable
            Takes the parts of a block, and `more`. Blocks without rows are left out, and so are
            those for which it returns None.
        merge : callable
            Merges a list of results, in the order of the blocks.
        *more : object
            Further arguments, the same for all blocks; sent once.
        numbered : bool, default=False
            Whether the first argument is the number of the block, for example as a seed.
        """
        import dask

        shared = [dask.delayed(argument, pure=False, traverse=False) for argument in more]
        apply = dask.delayed(_apply, pure=False, traverse=False)
        merge_some = dask.delayed(_merge, pure=False, traverse=False)
        results = [
            apply(function, self.owner, number, numbered, len(part), *part, *shared)
            for number, part in enumerate(self.parts)
        ]
        while len(results) > 1:
            results = [
                merge_some(merge, *results[at : at + _FAN_IN])
                for at in range(0, len(results), _FAN_IN)
            ]
        with suppress(ImportError):
            import distributed  # noqa: F401 - here: config.set would drop its defaults
        # The graph contains the members, so that workers that replace lost ones receive them too.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "2GB"}):
            (result,) = dask.compute(results[0])
        if result is None:
            raise ValueError(f"{self.owner} needs at least one row; got only empty blocks.")
        merged: T = result
        return merged


def _apply(
    function: Callable[..., Any],
    owner: str,
    number: int,
    numbered: bool,
    n_parts: int,
    *arguments: Any,
) -> Any:
    """Apply a function to one block; None if the block has no rows."""
    parts, more = arguments[:n_parts], arguments[n_parts:]
    for part in parts:
        check_dense(owner, part)
    lengths = {len(part) for part in parts if part is not None}
    if len(lengths) > 1:
        sizes = ", ".join("-" if part is None else str(len(part)) for part in parts)
        raise ValueError(
            f"{owner} needs the same number of rows in every collection; block {number} has "
            f"{sizes}. Split collections of unknown chunk sizes at the same rows."
        )
    if lengths == {0}:
        return None
    return function(*((number,) if numbered else ()), *parts, *more)


def _merge(merge: Callable[[list[Any]], Any], *results: Any) -> Any:
    """Merge the results that are not None."""
    present = [result for result in results if result is not None]
    return merge(present) if len(present) > 1 else present[0] if present else None


def _known_sizes(X: Any) -> tuple[int, ...] | None:
    """Return the number of rows in each block; None if it is unknown."""
    if not hasattr(X, "chunks"):
        return None
    sizes = X.chunks[0]
    return None if any(np.isnan(size) for size in sizes) else tuple(map(int, sizes))


def _split(X: Any) -> Sequence[Any]:
    """Split a collection into its blocks of rows, each with all columns."""
    if not hasattr(X, "chunks"):
        parts: list[Any] = X.to_delayed()
        return parts
    whole = X.rechunk({1: -1}) if X.ndim == 2 and X.shape[1] and len(X.chunks[1]) > 1 else X
    return list(whole.to_delayed().reshape(whole.numblocks[0]))


def _check_order(owner: str, parts: Sequence[Any]) -> None:
    """Raise an error for rows from a shuffle, whose order within a block may change every pass."""
    from dask.utils import key_split

    names = {key_split(key) for key in parts[0].dask} if parts and parts[0] is not None else set()
    if any(mark in name for name in names for mark in _SHUFFLES):
        raise ValueError(
            f"{owner} needs rows that keep their order; got rows from a shuffle, a merge or a "
            "sort, which Dask may return in another order each time. Call persist() on the whole "
            "data frame first, or write it to Parquet."
        )


def _split_like(
    owner: str,
    name: str,
    other: Any,
    first: str,
    X: Any,
    sizes: tuple[int, ...] | None,
    n_blocks: int,
) -> Sequence[Any]:
    """Split another collection, or an array in memory, at the same rows as X, called `first`."""
    if other is None and name == "sample_weight":
        return [None] * n_blocks
    if other is None:
        raise ValueError(f"{owner} needs {name} with a value for each row of {first}; got None.")
    if name in _SINGLE_COLUMNS and getattr(other, "ndim", 1) != 1:
        raise ValueError(
            f"{owner} needs {name} to be one column; got {other.ndim} dimensions. Select a column "
            "of a data frame by its name."
        )
    if not is_dask(other):
        return _split_array(owner, name, other, first, X, sizes)
    own = _known_sizes(other)
    if own is not None and sizes is not None and own != sizes:
        if sum(own) != sum(sizes):
            raise ValueError(
                f"{owner} needs {name} with as many rows as {first}, {sum(sizes)}; got {sum(own)}."
            )
        other = other.rechunk({0: sizes})
    parts = _split(other)
    if len(parts) != n_blocks:
        raise ValueError(
            f"{owner} needs {name} in as many blocks as {first}, {n_blocks}; got {len(parts)}. Use "
            "columns of one data frame, or call compute_chunk_sizes() on the arrays."
        )
    return parts


def _split_array(
    owner: str, name: str, in_memory: Any, first: str, X: Any, sizes: tuple[int, ...] | None
) -> Sequence[Any]:
    """Split an array in memory at the same rows as X."""
    import dask

    if sizes is None:
        method = "compute_chunk_sizes()" if hasattr(X, "chunks") else "to_dask_array(lengths=True)"
        raise ValueError(
            f"{owner} needs {name} to be a Dask collection, since the chunk sizes of {first} are "
            f"unknown; got {type(in_memory).__name__}. Or call {method} on {first}."
        )
    array = np.atleast_1d(np.asarray(in_memory))
    if len(array) != sum(sizes):
        raise ValueError(
            f"{owner} needs {name} with as many rows as {first}, {sum(sizes)}; got {len(array)}."
        )
    ends = np.cumsum(sizes)
    return [
        dask.delayed(array[end - size : end], pure=False, traverse=False)
        for size, end in zip(sizes, ends, strict=True)
    ]


def _columns(X: Any) -> tuple[str, ...] | int:
    if hasattr(X, "columns"):
        return tuple(map(str, X.columns))
    return int(X.shape[1]) if getattr(X, "ndim", 1) == 2 else 1
