"""Rows drawn from blocks into memory, so many of each class.

The random numbers are of a stream of their own. `margrave.scale.sample` draws the rows that members
are trained on, and what is learned about members must not come from just those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._typing import Floats, Ints

DRAWN = 100_000
"""So many rows are drawn where all scores are needed at a time."""

LEAST_OF_CLASS = 10_000
"""So many rows of each class are drawn at least, or all of them, even if classes are many."""

CHOICE, MARGINS = 0x43484F49, 0x4D415247
"""Streams of random numbers: what ν and the gap are chosen on, and the margins that are kept."""


def keys_of(stream: int, number: int, n: int) -> Floats:
    """A random number for each row of a block; those with the largest are drawn."""
    return np.random.default_rng([0, number, stream]).random(n)


def largest(keys: Floats, most: int) -> Ints:
    """Positions of the largest keys, at most so many, in their order."""
    if len(keys) <= most:
        return np.arange(len(keys))
    return np.sort(np.argpartition(-keys, most)[:most])


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows with weight: of each class those with the largest keys, in their order."""

    X: Any
    codes: Ints
    weight: Floats
    keys: Floats
    most: int

    def limit_per_class(self) -> Drawn:
        """At most so many of each class."""
        kept = np.zeros(len(self.codes), dtype=bool)
        for code in np.unique(self.codes):
            own = np.flatnonzero(self.codes == code)
            kept[own[largest(self.keys[own], self.most)]] = True
        return self if kept.all() else self.rows(np.flatnonzero(kept))

    def rows(self, at: Ints) -> Drawn:
        """Some of the rows."""
        X = self.X.iloc[at] if hasattr(self.X, "iloc") else self.X[at]
        return Drawn(X, self.codes[at], self.weight[at], self.keys[at], self.most)

    def against_rest(self, code: int) -> Ints:
        """Rows of a class, and of the others as many at most, each of those equally likely."""
        own = self.codes == code
        rest = np.flatnonzero(~own)
        return np.sort(np.append(np.flatnonzero(own), rest[largest(self.keys[rest], self.most)]))

    @classmethod
    def merged(cls, parts: list[Drawn]) -> Drawn:
        """The largest keys of all."""
        codes, weight, keys = (
            np.concatenate([getattr(one, name) for one in parts])
            for name in ("codes", "weight", "keys")
        )
        return cls(
            _joined([one.X for one in parts]), codes, weight, keys, parts[0].most
        ).limit_per_class()


def most_of_class(n_classes: int) -> int:
    """How many rows of each class are drawn."""
    return max(DRAWN // max(n_classes, 2), LEAST_OF_CLASS)


def draw(
    number: int, X: Any, y: Any, weight: Any, classes: NDArray[Any], most: int
) -> Drawn | None:
    """Rows of a block, at most so many of each class; None if none has weight."""
    codes = np.asarray(_labels.encode(y, classes, "y"), dtype=np.int64)
    own = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    used = np.flatnonzero(own > 0)
    if not len(used):
        return None
    return (
        Drawn(X, codes, own, keys_of(CHOICE, number, len(codes)), most).rows(used).limit_per_class()
    )


def _joined(parts: list[Any]) -> Any:
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    import pandas

    return pandas.concat(parts)
