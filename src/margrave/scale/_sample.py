"""Draw a random sample of the rows of Dask collections into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._indexing import largest_keys, select_rows
from margrave.scale._blocks import Blocks, concatenate


@dataclass(frozen=True, eq=False)
class _KeyedRows:
    """Rows with the largest random keys so far, in their order."""

    keys: NDArray[np.float64]
    parts: tuple[Any, ...]

    def largest(self, n: int) -> _KeyedRows:
        """Select the rows with the n largest keys."""
        if len(self.keys) <= n:
            return self
        kept = largest_keys(self.keys, n)
        return _KeyedRows(self.keys[kept], tuple(select_rows(part, kept) for part in self.parts))


def sample(X: Any, *beside: Any, n: int = 100_000, random_state: int = 0) -> tuple[Any, ...]:
    """Draw rows of Dask collections into memory, each row as likely as any other.

    Members are trained in memory, on such a sample. All rows can then weight and steer them.

    Parameters
    ----------
    X : Dask array or data frame
        The rows.
    *beside : Dask collections or arrays
        Other collections with the same rows, such as labels.
    n : int, default=100,000
        The number of rows to draw; all rows if there are fewer.
    random_state : int, default=0
        The seed. The same seed and the same blocks give the same rows.

    Returns
    -------
    tuple
        The drawn rows of each collection, in their order, as arrays or pandas objects.

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave.scale import sample
    >>> X, y = sample(da.ones((1000, 3), chunks=(100, 3)), da.arange(1000, chunks=100), n=50)
    >>> X.shape, y.shape
    ((50, 3), (50,))
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"sample needs n to be an integer of at least 1; got {n!r}.")
    named = {f"collection {number}": other for number, other in enumerate(beside, start=2)}
    blocks = Blocks.of("sample", X, **named)
    return blocks.reduce(_draw, _Merge(int(n)), int(n), int(random_state), numbered=True).parts


@dataclass(frozen=True)
class _Merge:
    """Merges draws, and keeps the rows with the n largest keys."""

    n: int

    def __call__(self, draws: list[_KeyedRows]) -> _KeyedRows:
        keys = np.concatenate([draw.keys for draw in draws])
        parts = tuple(map(concatenate, zip(*(draw.parts for draw in draws), strict=True)))
        return _KeyedRows(keys, parts).largest(self.n)


def _draw(number: int, *arguments: Any) -> _KeyedRows:
    *parts, n, seed = arguments
    keys = np.random.default_rng([seed, number]).random(len(parts[0]))
    return _KeyedRows(keys, tuple(parts)).largest(n)
