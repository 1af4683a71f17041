"""Maps into spaces where a classifier is a vector: the features themselves, or random ones.

With K(x, z) = φ(x)·φ(z) for a short φ the sums of document 002 are sums of vectors: they can be
added up as the samples come, in any order. φ(x) = x is the linear kernel. For the RBF and Laplacian
kernels cosines and sines of random directions approximate one (Rahimi and Recht 2007); in pairs
they make ‖φ(x)‖ = 1, as the kernels have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from margrave.mam._kernels import Floats
from margrave.mam._sums import slices
from margrave.mam._threads import in_threads

ROWS_FOR_WIDTHS = 5_000
"""Samples that a width of random features is chosen on, at most."""

LARGEST_SEED = 2**31 - 1

_BLOCK = 1024
_LOOKED_AT = 64  # rows that tell how wide a kernel is
_WIDE = 0.9  # cosines on average, where their sums are taken around their middle
_STEEPEST = 1e18  # angles must not overflow


@dataclass(frozen=True)
class Frequencies:
    """Random directions, one in a column; their cosines and sines are the features."""

    directions: NDArray[np.float32]
    centre: Floats

    @classmethod
    def drawn(
        cls, kernel: str, gamma: float, X: Any, n_components: int, random_state: Any
    ) -> Frequencies:
        """Directions for a kernel: normal for RBF, Cauchy for Laplacian.

        One seed gives the same directions for every γ, longer or shorter.

        Angles are taken around the middle of X, or float32 would have no digits left for rows that
        are far from 0; sparse rows are near it.
        """
        rng = check_random_state(random_state)
        shape = X.shape[1], -(-n_components // 2)
        centre = np.zeros(X.shape[1]) if issparse(X) else X.mean(axis=0, dtype=np.float64)
        if kernel == "rbf":
            directions = rng.standard_normal(shape) * np.sqrt(2 * gamma)
        else:
            directions = rng.standard_cauchy(shape) * gamma
        return cls(np.clip(directions, -_STEEPEST, _STEEPEST).astype(np.float32), centre)

    def of(self, X: Any) -> NDArray[np.float32]:
        """The features of some rows, in float32."""
        features = self.waves(X)
        features *= np.float32(self.unit)
        return features

    @property
    def unit(self) -> float:
        """What cosines and sines are multiplied with."""
        return float(1 / np.sqrt(self.directions.shape[1]))

    def waves(self, X: Any, room: Room | None = None) -> NDArray[np.float32]:
        """Cosines and sines of some rows: the features, but for their unit."""
        n, half = X.shape[0], self.directions.shape[1]
        place = Room(n, half) if room is None else room
        angles, features = place.angles[:n], place.features[:n]
        if issparse(X):
            angles[...] = X.astype(np.float32) @ self.directions
            angles -= (self.centre @ self.directions).astype(np.float32)
        else:
            np.matmul((X - self.centre).astype(np.float32), self.directions, angles)
        np.cos(angles, features[:, :half])
        np.sin(angles, features[:, half:])
        return features


class Room(local):
    """Where each thread puts angles and features; made once, since a new place takes time too."""

    def __init__(self, n: int, half: int) -> None:
        self.angles = np.empty((n, half), np.float32)
        self.features = np.empty((n, 2 * half), np.float32)


def feature_sums(
    X: Any, a: Floats, frequencies: Frequencies | None, n_jobs: int | None = None
) -> Floats:
    """Σ_i a_i φ(x_i) for every column of a, one sum in a row; φ(x) = x without frequencies."""
    if frequencies is None:
        return np.asarray(X.T @ a).T if issparse(X) else np.asarray(a.T @ X, dtype=np.float64)
    blocks = list(slices(X.shape[0], _BLOCK))
    narrow = (a * frequencies.unit).astype(np.float32)
    room = Room(min(_BLOCK, X.shape[0]), frequencies.directions.shape[1])

    def block(rows: slice) -> Floats:
        waves = frequencies.waves(X[rows], room)
        middle = _alike(waves)
        if middle is None:
            return np.asarray(narrow[rows].T @ waves, dtype=np.float64)
        waves[:, : len(middle)] -= middle
        sums = np.asarray(narrow[rows].T @ waves, dtype=np.float64)
        sums[:, : len(middle)] += np.outer(a[rows].sum(axis=0) * frequencies.unit, middle)
        return sums

    parts = in_threads(block, blocks, n_jobs, small=len(blocks) == 1)
    return np.asarray(np.sum(list(parts), axis=0))


def _alike(waves: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """The middle of cosines that are all near 1, as with wide kernels; None if they are not.

    Without it their sum in float32 keeps the digits in which they differ.
    """
    middle: NDArray[np.float32] = waves[:_LOOKED_AT, : waves.shape[1] // 2].mean(axis=0)
    return middle if middle.mean() > _WIDE else None


def feature_products(
    X: Any, vectors: Floats, frequencies: Frequencies | None, n_jobs: int | None = None
) -> Floats:
    """φ(x) · v for every row x and every row v of vectors, of shape (n, n_vectors)."""
    if frequencies is None:
        return np.asarray(X @ vectors.T, dtype=np.float64)
    blocks = list(slices(X.shape[0], _BLOCK))
    narrow = (vectors.T * frequencies.unit).astype(np.float32)
    room = Room(min(_BLOCK, X.shape[0]), frequencies.directions.shape[1])

    def block(rows: slice) -> Floats:
        return np.asarray(frequencies.waves(X[rows], room) @ narrow, dtype=np.float64)

    return np.concatenate(list(in_threads(block, blocks, n_jobs, small=len(blocks) == 1)))


def squared_lengths(X: Any, frequencies: Frequencies | None) -> Floats:
    """‖φ(x)‖² of every row."""
    if frequencies is not None:
        return np.ones(X.shape[0])
    if issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))
