"""Draw a random sample of the rows of Dask collections into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave._errors import ParameterError
from margrave._indexing import largest_keys, select_rows
from margrave._typing import Floats
from margrave.scale._blocks import Blocks, concatenate


@dataclass(frozen=True, eq=False)
class KeyedRows:
    """Rows with random keys, in their order.

    Attributes
    ----------
    keys : ndarray of shape (n_rows,)
        The keys.
    parts : tuple
        The rows of each of several collections.
    """

    keys: Floats
    parts: tuple[Any, ...]

    def largest(self, n: int) -> KeyedRows:
        """Select the rows with the n largest keys."""
        if len(self.keys) <= n:
            return self
        kept = largest_keys(self.keys, n)
        return KeyedRows(self.keys[kept], tuple(select_rows(part, kept) for part in self.parts))


@dataclass(frozen=True)
class KeepLargest:
    """Merges rows of several blocks, and keeps those with the n largest keys."""

    n: int

    def __call__(self, blocks: list[KeyedRows]) -> KeyedRows:
        keys = np.concatenate([rows.keys for rows in blocks])
        parts = tuple(map(concatenate, zip(*(rows.parts for rows in blocks), strict=True)))
        return KeyedRows(keys, parts).largest(self.n)


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
        The drawn rows of each collection, in their order, as arrays or pandas objects; also for one
        collection, as in ``(X_some,) = sample(X)``.

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave.scale import sample
    >>> X, y = sample(da.ones((1000, 3), chunks=(100, 3)), da.arange(1000, chunks=100), n=50)
    >>> X.shape, y.shape
    ((50, 3), (50,))
    """
    for name, value, least in (("n", n, 1), ("random_state", random_state, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ParameterError.of("scale.sample", name, f"an integer of at least {least}", value)
    named = {f"collection {number}": other for number, other in enumerate(beside, start=2)}
    blocks = Blocks.of("scale.sample", X, **named)
    return blocks.reduce(_draw, KeepLargest(n), n, random_state, numbered=True).parts


def _draw(number: int, *arguments: Any) -> KeyedRows:
    *parts, n, seed = arguments
    keys = np.random.default_rng([seed, number]).random(len(parts[0]))
    return KeyedRows(keys, tuple(parts)).largest(n)
