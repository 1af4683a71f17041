"""A bounded number of rows, drawn into memory, each as likely as any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._dask.blocks import Blocks


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Rows with the largest keys so far, in their order."""

    keys: NDArray[np.float64]
    parts: tuple[Any, ...]

    def largest(self, n: int) -> _Drawn:
        """At most n of the rows."""
        if len(self.keys) <= n:
            return self
        kept = np.sort(np.argpartition(-self.keys, n)[:n])
        return _Drawn(self.keys[kept], tuple(_rows(part, kept) for part in self.parts))


def sample(X: Any, *beside: Any, n: int = 100_000, random_state: int = 0) -> tuple[Any, ...]:
    """Draw rows of Dask collections into memory, each row as likely as any other.

    To train members with, which learn in memory; what is left of all the rows can weigh and steer
    them.

    Parameters
    ----------
    X : Dask array or data frame
        The rows.
    *beside : Dask collections or arrays
        What else there is for every row, such as labels.
    n : int, default=100,000
        How many rows; all of them if there are fewer.
    random_state : int, default=0
        The seed. One seed and the same blocks give the same rows.

    Returns
    -------
    tuple
        The rows of each collection in their order, as arrays or as pandas has them.

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
    named = {f"collection {place}": given for place, given in enumerate(beside, start=2)}
    blocks = Blocks.of("sample", X, **named)
    found = blocks.reduce(_draw, _Merge(int(n)), int(n), int(random_state), numbered=True)
    return found.parts


@dataclass(frozen=True)
class _Merge:
    """Draws together, cut to size."""

    n: int

    def __call__(self, draws: list[_Drawn]) -> _Drawn:
        keys = np.concatenate([one.keys for one in draws])
        parts = tuple(map(_joined, zip(*(one.parts for one in draws), strict=True)))
        return _Drawn(keys, parts).largest(self.n)


def _draw(number: int, *given: Any) -> _Drawn:
    *parts, n, seed = given
    keys = np.random.default_rng([seed, number]).random(len(parts[0]))
    return _Drawn(keys, tuple(parts)).largest(n)


def _rows(part: Any, places: NDArray[np.intp]) -> Any:
    return part.iloc[places] if hasattr(part, "iloc") else part[places]


def _joined(parts: Sequence[Any]) -> Any:
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    import pandas

    return pandas.concat(parts)
