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

from margrave._typing import Floats
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
    """Random directions, one in a column; their cosines and sines are the features.

    Features have the precision of the rows: float32 for float32, float64 for everything else.
    """

    directions: Floats
    centre: Floats

    @classmethod
    def drawn(
        cls, kernel: str, gamma: float, X: Any, n_components: int, random_state: Any
    ) -> Frequencies:
        """Directions for a kernel: normal for RBF, Cauchy for Laplacian.

        One seed gives the same directions for every γ, longer or shorter.

        Angles are taken around the mean of X, or float32 would have no digits left for rows that
        are far from 0; sparse rows are near it.
        """
        rng = check_random_state(random_state)
        shape = X.shape[1], -(-n_components // 2)
        centre = np.zeros(X.shape[1]) if issparse(X) else X.mean(axis=0, dtype=np.float64)
        if kernel == "rbf":
            directions = rng.standard_normal(shape) * np.sqrt(2 * gamma)
        else:
            directions = rng.standard_cauchy(shape) * gamma
        return cls(np.clip(directions, -_STEEPEST, _STEEPEST), centre)

    def of(self, X: Any) -> NDArray[Any]:
        """The features of some rows, in the precision of the rows."""
        features = self.waves(X)
        features *= self.unit
        return features

    @property
    def unit(self) -> float:
        """What cosines and sines are multiplied with."""
        return float(1 / np.sqrt(self.directions.shape[1]))

    def waves(self, X: Any, buffers: Buffers | None = None) -> NDArray[Any]:
        """Cosines and sines of some rows: the features, but for their unit."""
        n, half = X.shape[0], self.directions.shape[1]
        dtype = precision(X)
        held = Buffers(n, half, dtype) if buffers is None else buffers
        angles, features = held.angles[:n], held.features[:n]
        directions = self.directions.astype(dtype, copy=False)
        if issparse(X):
            angles[...] = X.astype(dtype, copy=False) @ directions
            angles -= (self.centre @ self.directions).astype(dtype)
        else:
            np.matmul((X - self.centre).astype(dtype, copy=False), directions, angles)
        _cosines_and_sines(angles, features[:, :half], features[:, half:])
        return features


def _cosines_and_sines(angles: NDArray[Any], cosines: NDArray[Any], sines: NDArray[Any]) -> None:
    """Write the cosines and sines of some angles; may overwrite the angles.

    In float64 they are (1 − t²) / (1 + t²) and 2t / (1 + t²), t the tangent of half the angle:
    exact to rounding, and three times as fast as numpy's two functions on x86-64.
    """
    if angles.dtype == np.float32:
        np.cos(angles, cosines)
        np.sin(angles, sines)
        return
    angles /= 2
    tangents = np.tan(angles, angles)
    np.square(tangents, sines)
    np.subtract(1, sines, cosines)
    sines += 1
    cosines /= sines
    np.divide(tangents, sines, sines)
    sines *= 2


class Buffers(local):
    """Memory for the angles and features of a block, allocated once per thread and reused."""

    def __init__(self, n: int, half: int, dtype: np.dtype[Any]) -> None:
        self.angles = np.empty((n, half), dtype)
        self.features = np.empty((n, 2 * half), dtype)


def precision(X: Any) -> np.dtype[Any]:
    """Return float32 for rows in float32, and float64 for all others."""
    return np.dtype(np.float32 if X.dtype == np.float32 else np.float64)


def are_alike(squared_mean: float, dtype: np.dtype[Any]) -> bool:
    """Tell whether features of unit length differ by no more than rounding, by ‖mean φ(x)‖²."""
    return bool(1 - squared_mean < 100 * np.finfo(dtype).eps)


def feature_sums(
    X: Any, a: Floats, frequencies: Frequencies | None, n_jobs: int | None = None
) -> Floats:
    """Σ_i a_i φ(x_i) for every column of a, one sum in a row; φ(x) = x without frequencies."""
    if frequencies is None:
        return np.asarray(X.T @ a).T if issparse(X) else np.asarray(a.T @ X, dtype=np.float64)
    blocks = list(slices(X.shape[0], _BLOCK))
    scaled = (a * frequencies.unit).astype(precision(X), copy=False)
    buffers = Buffers(min(_BLOCK, X.shape[0]), frequencies.directions.shape[1], precision(X))

    def block(rows: slice) -> Floats:
        waves = frequencies.waves(X[rows], buffers)
        middle = _common_cosines(waves)
        if middle is None:
            return np.asarray(scaled[rows].T @ waves, dtype=np.float64)
        waves[:, : len(middle)] -= middle
        sums = np.asarray(scaled[rows].T @ waves, dtype=np.float64)
        sums[:, : len(middle)] += np.outer(a[rows].sum(axis=0) * frequencies.unit, middle)
        return sums

    parts = in_threads(block, blocks, n_jobs, small=len(blocks) == 1)
    return np.asarray(np.sum(list(parts), axis=0))


def _common_cosines(waves: NDArray[Any]) -> NDArray[Any] | None:
    """The middle of cosines that are all near 1, as with wide kernels; None if they are not.

    Without it their sum keeps the digits in which they differ.
    """
    middle: NDArray[Any] = waves[:_LOOKED_AT, : waves.shape[1] // 2].mean(axis=0)
    return middle if middle.mean() > _WIDE else None


def feature_products(
    X: Any, vectors: Floats, frequencies: Frequencies | None, n_jobs: int | None = None
) -> Floats:
    """φ(x) · v for every row x and every row v of vectors, of shape (n, n_vectors)."""
    if frequencies is None:
        return np.asarray(X @ vectors.T, dtype=np.float64)
    blocks = list(slices(X.shape[0], _BLOCK))
    scaled = (vectors.T * frequencies.unit).astype(precision(X), copy=False)
    buffers = Buffers(min(_BLOCK, X.shape[0]), frequencies.directions.shape[1], precision(X))

    def block(rows: slice) -> Floats:
        return np.asarray(frequencies.waves(X[rows], buffers) @ scaled, dtype=np.float64)

    return np.concatenate(list(in_threads(block, blocks, n_jobs, small=len(blocks) == 1)))


def squared_lengths(X: Any, frequencies: Frequencies | None) -> Floats:
    """‖φ(x)‖² of every row."""
    if frequencies is not None:
        return np.ones(X.shape[0])
    if issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))
