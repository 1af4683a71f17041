"""A bounded, uniform sample of all rows that have come, so that a stream can be looked back at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from margrave._typing import Codes, Floats

MOST_KEPT = 20_000
"""Rows that are kept of a stream: enough to place a cut within a third of a percent."""

_KEPT_BYTES = 64_000_000
_FEWEST_KEPT = 1_000


def most_kept(n_features: int) -> int:
    """Rows to keep of Dask collections: fewer where they are so wide that blocks of them are large.

    Several blocks' rows are in memory when they are put together.
    """
    return min(MOST_KEPT, max(_KEPT_BYTES // (8 * max(n_features, 1)), _FEWEST_KEPT))


@dataclass(frozen=True)
class Kept:
    """Rows with their classes and weights; each row that came is among them as likely as any other.

    Every row draws a key, and those with the largest keys are kept.
    """

    X: Any
    codes: NDArray[Any]  # classes, or a ranker's responses
    weights: Floats
    keys: NDArray[np.float64]

    @classmethod
    def of(
        cls, X: Any, codes: Codes, weights: Floats, rng: np.random.RandomState, before: Kept | None
    ) -> Kept:
        """The rows to keep of those that came, with what was kept before."""
        keys = rng.random_sample(X.shape[0])
        some = np.sort(_largest(keys))  # a copy: the caller may use the room of X again
        new = cls(X[some], codes[some], weights[some], keys[some])
        if before is None:
            return new
        both = before.and_also(new)
        some = np.sort(_largest(both.keys))
        return cls(both.X[some], both.codes[some], both.weights[some], both.keys[some])

    @classmethod
    def of_block(
        cls, X: Any, codes: NDArray[Any], weights: Floats, seed: tuple[int, int], most: int
    ) -> Kept:
        """The rows to keep of one block among many, by keys of its own; none without a weight."""
        keys = np.random.default_rng(seed).random(X.shape[0])
        there = np.flatnonzero(weights)
        some = there[np.sort(_largest(keys[there], most))]
        # A block is often a data frame's, whose columns lie together.
        rows = np.take(X.T, some, axis=1).T if X.flags.f_contiguous else X[some]
        return cls(rows, codes[some], weights[some], keys[some])

    @classmethod
    def merged(cls, parts: list[Kept], most: int) -> Kept:
        """The rows to keep of several blocks, in their order."""
        keys = np.concatenate([one.keys for one in parts])
        some = np.sort(_largest(keys, most))
        ends = np.searchsorted(some, np.cumsum([0] + [len(one.keys) for one in parts]))
        starts = np.cumsum([0] + [len(one.keys) for one in parts])
        own = [
            some[begin:end] - start
            for begin, end, start in zip(ends[:-1], ends[1:], starts[:-1], strict=True)
        ]
        return cls(
            np.concatenate([one.X[kept] for one, kept in zip(parts, own, strict=True)]),
            np.concatenate([one.codes[kept] for one, kept in zip(parts, own, strict=True)]),
            np.concatenate([one.weights[kept] for one, kept in zip(parts, own, strict=True)]),
            keys[some],
        )

    def and_also(self, other: Kept) -> Kept:
        """Both, one after the other."""
        sparse = issparse(self.X) or issparse(other.X)
        X = vstack([self.X, other.X], format="csr") if sparse else np.vstack([self.X, other.X])
        return Kept(
            X,
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.weights, other.weights]),
            np.concatenate([self.keys, other.keys]),
        )


def _largest(keys: NDArray[np.float64], most: int | None = None) -> NDArray[np.intp]:
    """Places of the largest keys, at most so many as are kept."""
    limit = MOST_KEPT if most is None else most
    if len(keys) <= limit:
        return np.arange(len(keys))
    return np.argpartition(-keys, limit)[:limit]
