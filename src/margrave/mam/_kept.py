"""A bounded, uniform sample of all rows that have come, so that a stream can be looked back at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from margrave.mam._kernels import Floats
from margrave.mam._leave_out import Codes

MOST_KEPT = 20_000
"""Rows that are kept of a stream: enough to place a cut within a third of a percent."""


@dataclass(frozen=True)
class Kept:
    """Rows with their classes and weights; each row that came is among them as likely as any other.

    Every row draws a key, and those with the largest keys are kept.
    """

    X: Any
    codes: Codes
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


def _largest(keys: NDArray[np.float64]) -> NDArray[np.intp]:
    """Places of the largest keys, at most so many as are kept."""
    if len(keys) <= MOST_KEPT:
        return np.arange(len(keys))
    return np.argpartition(-keys, MOST_KEPT)[:MOST_KEPT]
