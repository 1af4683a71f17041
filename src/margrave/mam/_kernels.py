"""Kernels and their values, tile by tile: K(z, x) for some rows of Z and some rows of X.

Pelckmans et al. (2008), section 2.2: the linear kernel x·z, the polynomial kernel (γ x·z + b)^p (in
the paper γ is 1), the RBF kernel exp(−γ‖x − z‖²) (the paper writes σ = 1/γ); and the Laplacian
kernel exp(−γ‖x − z‖₁). Squared distances are one matrix product: with rows (z, 1, −‖z‖²) and
columns (2x, −‖x‖², 1), after both sets are centred at the mean of X, the product is −‖x − z‖².

The exponential of float32 tiles: numpy's `exp` of float32 is vectorised on x86 only and elsewhere
computes one number at a time (5 ns per number on a Neoverse N1). There, whole passes over a tile,
which numpy vectorises, compute it in one of two forms (2.3 and 1.7 ns):

by parts, for any exponent: with n the integer nearest to t and h = t − n + 6,

    2^t = 2^n · (s · (h³ + c₁ h + c₀))⁴

with a relative error of 5e-6. The shift of 6 removes the square term of the cubic, and so a pass;

by squaring, for exponents between −7 and 7: with h = a t + b,

    exp(t) = (((h² + c₁)² + c₂)² + c₃)^32

with an error of 3e-6 before rounding, which the five squarings increase to 6e-6 on average and
2.5e-5 at most. The errors have either sign, so they partly cancel in sums. The matrix product that
computes the exponents includes a and b. The constants minimise the largest relative error
(`tests/mam/test_exponential.py`).
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.spatial.distance import cdist

from margrave._typing import AnyFloats, Floats

KernelFunction = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
KernelName = Literal["rbf", "linear", "poly", "laplacian", "precomputed"]

NAMES = ("rbf", "linear", "poly", "laplacian")
PRECOMPUTED = "precomputed"
"""The kernel of rows that are its values: row z has K(z, x) for every training sample x."""

_DIAGONAL_ROWS = 256
# A smaller difference, relative to the largest value, is rounding.
_ASYMMETRY, _ASYMMETRY_FLOAT32 = 1e-6, 1e-3

FLOAT32_LIMIT = 16.0
"""Up to this γ‖x‖², exponents in float32 are precise enough (an error of 4e-6)."""

FLOAT64_LIMIT = 1e10
"""Above this γ‖x‖², rounding would separate a row from itself: distances come from differences."""

LARGEST_EXPONENTS: dict[type, float] = {np.float32: 1e30, np.float64: 1e300}
"""The limit on exponents, for each type."""

LOG2_E = float(np.log2(np.e))
"""exp(u) is 2^t for t = `LOG2_E` u."""

PARTS_FACTOR = 0.0008347244571816127**4
"""The factor that `exp2_by_parts` leaves to the caller, who multiplies the weights of a sum."""

SQUARING_SLOPE, SQUARING_START = 0.006512289629712797, 0.6261642499699416
"""a and b: `exp_by_squaring` takes h = a t + b."""

SQUARING_RANGE = 7.0
"""The largest absolute exponent of `exp_by_squaring`."""

# Arrays, not numbers: numpy converts a number to an array in every call, half a microsecond.
# 1.5 · 2²³ plus a number below 2²² has no fractional bits: the sum holds n.
_ROUND = np.array(1.5 * 2**23, np.float32)
_ROUND_SHIFTED = np.array(1.5 * 2**23 + 6, np.float32)
_CUBIC = [np.array(c, np.float32) for c in (99.60483570946191, 384.37054749605056)]
_EXPONENT_BITS = np.array(23, np.int32)
# Below this the exponent would not fit into eight bits; 2^-160 is 0 for any sum of float32.
_LOWEST = -160.0
_CHAIN = [np.array(c, np.float32) for c in (0.390528789, 0.611553091, -0.498254866)]


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters.

    Attributes
    ----------
    name : str or callable
        One of `NAMES`, `PRECOMPUTED`, or a function of two sets of rows that returns all values.
    gamma, degree, coef0 : float
        As in scikit-learn's kernels; a kernel ignores those that it does not have.
    """

    name: str | KernelFunction
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1.0

    @property
    def is_exponential(self) -> bool:
        """Whether the kernel is exp(−γ · distance)."""
        return self.name in ("rbf", "laplacian")

    @property
    def has_gamma(self) -> bool:
        """Whether the kernel depends on gamma."""
        return self.is_exponential or self.name == "poly"

    def diagonal(self, X: AnyFloats) -> Floats:
        """Compute K(x, x) of every row."""
        if self.is_exponential:
            return np.ones(len(X))
        if self.name == PRECOMPUTED:
            return np.diagonal(X).astype(np.float64)
        if callable(self.name):
            parts = [X[i : i + _DIAGONAL_ROWS] for i in range(0, len(X), _DIAGONAL_ROWS)]
            diagonals = [_callable_diagonal(self.name, part) for part in parts]
            return np.concatenate(diagonals).astype(np.float64)
        squares = np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))
        if self.name == "poly":
            self.powers(squares, squares.copy())
        return squares

    def take(self, X: NDArray[Any], some: NDArray[Any] | slice) -> NDArray[Any]:
        """Return some of the training samples; of kernel values, the rows and the columns."""
        return X[some][:, some] if self.name == PRECOMPUTED else X[some]

    def powers(self, products: AnyFloats, spare: AnyFloats) -> AnyFloats:
        """Compute (γ · product + coef0)^degree, in place; the caller checks for infinite values."""
        with np.errstate(over="ignore", invalid="ignore"):
            products *= self.gamma
            products += self.coef0
            if not (float(self.degree).is_integer() and 1 <= self.degree <= 8):
                return np.power(products, self.degree, products)
            spare[...] = products  # numpy's power takes 20 ns per number, a product less than 1
            for _ in range(int(self.degree) - 1):
                products *= spare
            return products


def check_symmetric(values: NDArray[Any], needed: str) -> None:
    """Raise an error if kernel values of all pairs of samples are not symmetric."""
    tolerance = _ASYMMETRY_FLOAT32 if values.dtype == np.float32 else _ASYMMETRY
    floats = values.astype(np.float64, copy=False)  # integers could overflow
    difference = np.abs(floats - floats.T).max()
    if difference > tolerance * np.abs(floats).max():
        raise ValueError(
            f"{needed}; got values of K(x, z) and K(z, x) that differ by up to {difference:.3g}."
        )


def _callable_diagonal(function: KernelFunction, X: AnyFloats) -> AnyFloats:
    """Compute K(x, x) of some rows, and check that the kernel is symmetric on them."""
    values = evaluate(function, X, X)
    check_symmetric(values, "A callable kernel must be symmetric")
    return np.diag(values)


def evaluate(function: KernelFunction, Z: AnyFloats, X: AnyFloats) -> AnyFloats:
    """Compute a user's kernel for all pairs, and check the result."""
    try:
        values: Any = function(Z, X)
    except Exception as error:
        error.add_note(
            f"A callable kernel gets two sets of rows, here {len(Z)} and {len(X)} of them, and "
            "returns a value for each pair."
        )
        raise
    values = np.asarray(values.toarray() if issparse(values) else values)
    if values.shape != (len(Z), len(X)):
        raise ValueError(
            "A callable kernel must take two sets of rows and return a value for each of "
            f"{len(Z)} x {len(X)} pairs; got shape {values.shape}."
        )
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise ValueError("A callable kernel must return finite numbers.")
    checked: AnyFloats = values
    return checked


class KernelTiles:
    """Tiles of K(z, x), for rows of Z and X that are prepared once.

    A value of a tile is K(z, x) divided by the `row_factors` of z and the `column_factors` of x: a
    sum over x multiplies by them once for each sample instead of once for each pair.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    Z, X : ndarray of shapes (m, d) and (n, d)
        The rows, of one floating type. Precomputed values are those of Z, of shape (m, n).
    largest_factor : float, default=1
        The largest number by which the caller will multiply the exponents of `base`.
    """

    def __init__(
        self, kernel: Kernel, Z: AnyFloats, X: AnyFloats, largest_factor: float = 1.0
    ) -> None:
        self.kernel = kernel
        self._largest_factor = largest_factor
        self.dtype = np.result_type(Z, X)
        self.row_factors: Floats | float = 1.0
        self.column_factors: Floats | float = 1.0
        self._Z, self._X = Z, X
        self._low = -np.inf
        self._left, self._right = Z, X
        self._fill: Callable[[slice, slice, AnyFloats], None] = self._product
        self._finish: Callable[[AnyFloats], AnyFloats] = self._unchanged
        if kernel.is_exponential:
            self._prepare_exponents()
        elif kernel.name == "poly":
            self._finish = self._powers
        elif kernel.name == PRECOMPUTED:
            self._fill = self._copy
        elif callable(kernel.name):
            self._function = kernel.name
            self._fill = self._evaluate

    def base(self, rows: slice, columns: slice, out: AnyFloats) -> None:
        """Compute the argument of the kernel: −γ · distance, the product, or K itself."""
        self._fill(rows, columns, out)

    def tile(self, rows: slice, columns: slice, workspace: AnyFloats) -> AnyFloats:
        """Compute K for some rows of Z and X, up to the factors.

        Parameters
        ----------
        rows, columns : slice
            The rows of Z and the rows of X.
        workspace : ndarray of shape (3, n_rows, n_columns)
            Memory to work in; the result is one of the three.
        """
        self._fill(rows, columns, workspace[0])
        return self._finish(workspace)

    def _prepare_exponents(self) -> None:
        """Choose how −γ · distance and its exponential are computed."""
        by_numpy = is_vectorised(self.dtype)
        self._finish = self._exp if by_numpy else self._exp_by_parts
        self._scale_of_exponents = 1.0 if by_numpy else LOG2_E
        if not by_numpy:
            self.row_factors = PARTS_FACTOR
        if self.kernel.name == "laplacian":
            ends = [
                np.vstack([end(self._Z, axis=0), end(self._X, axis=0)]) for end in (np.min, np.max)
            ]
            with np.errstate(over="ignore"):
                spans = ends[1].max(axis=0).astype(np.float64) - ends[0].min(axis=0)
            check_distances(float(spans.sum()), self.dtype, float(spans.max(initial=0.0)))
            self._use_differences("cityblock", float(spans.sum()))
            return
        mean = self._X.mean(axis=0, dtype=np.float64).astype(self.dtype)
        Z, X = self._Z - mean, self._X - mean
        lengths = [_longest(side) for side in (Z, X)]
        unit = max(lengths) or 1.0
        # Rows of at most unit length, so that neither they nor γ leave the range of float32.
        Z, X = Z / self.dtype.type(unit), X / self.dtype.type(unit)
        gamma = min(self.kernel.gamma * unit * unit, LARGEST_EXPONENTS[self.dtype.type])
        if not by_numpy and 2 * gamma * min(lengths) / unit <= SQUARING_RANGE:
            self._prepare_squaring(Z, X, gamma)
        elif gamma * self._largest_factor > FLOAT64_LIMIT:
            self._use_differences("sqeuclidean", unit * unit)
        else:
            self._prepare_distances(Z, X, gamma * self._scale_of_exponents, mean, unit)

    def _use_differences(self, metric: str, largest_distance: float) -> None:
        """Compute distances from differences: slower, and exact for the nearest pairs."""
        largest = LARGEST_EXPONENTS[self.dtype.type]
        gamma = 1.0
        if largest_distance > 0:
            gamma = min(self.kernel.gamma, largest / largest_distance)
        self._metric, self._scale = metric, gamma * self._scale_of_exponents
        self._fill = self._distances

    def _prepare_squaring(self, Z: AnyFloats, X: AnyFloats, gamma: float) -> None:
        """Split exp(−γ‖x − z‖²) into exp(−γ‖z‖²), exp(−γ‖x‖²) and exp(2γ x·z), the tile."""
        self.row_factors, self.column_factors = (np.exp(-gamma * _squares(s)) for s in (Z, X))
        self._left = _append(Z, 1.0)
        self._right = _append(X * self.dtype.type(2 * gamma * SQUARING_SLOPE), SQUARING_START)
        self._finish = self._exp_by_squaring

    def _prepare_distances(
        self, Z: AnyFloats, X: AnyFloats, scale: float, mean: AnyFloats, unit: float
    ) -> None:
        """Write −γ‖x − z‖² as a product of longer rows."""
        self._low = -4 * scale
        # The error of an exponent grows with the squared lengths, whatever its own size.
        if self.dtype == np.float32 and scale > FLOAT32_LIMIT:
            Z, X = ((side.astype(np.float64) - mean) / unit for side in (self._Z, self._X))
            self._fill = self._product_rounded
        self._left = _append(Z, 1.0, -scale * _squares(Z))
        self._right = _append(X * X.dtype.type(2 * scale), -scale * _squares(X), 1.0)

    def _product(self, rows: slice, columns: slice, out: AnyFloats) -> None:
        np.matmul(self._left[rows], self._right[columns].T, out)

    def _product_rounded(self, rows: slice, columns: slice, out: AnyFloats) -> None:
        out[...] = self._left[rows] @ self._right[columns].T

    def _distances(self, rows: slice, columns: slice, out: AnyFloats) -> None:
        out[...] = cdist(self._Z[rows], self._X[columns], self._metric) * -self._scale

    def _evaluate(self, rows: slice, columns: slice, out: AnyFloats) -> None:
        out[...] = evaluate(self._function, self._Z[rows], self._X[columns])

    def _copy(self, rows: slice, columns: slice, out: AnyFloats) -> None:
        out[...] = self._Z[rows, columns]

    def _unchanged(self, workspace: AnyFloats) -> AnyFloats:
        return np.asarray(workspace[0])

    def _powers(self, workspace: AnyFloats) -> AnyFloats:
        return self.kernel.powers(workspace[0], workspace[1])

    def _exp(self, workspace: AnyFloats) -> AnyFloats:
        return np.asarray(np.exp(workspace[0], workspace[0]))

    def _exp_by_parts(self, workspace: AnyFloats) -> AnyFloats:
        return exp2_by_parts(workspace[0], workspace[1], workspace[2], self._low)

    def _exp_by_squaring(self, workspace: AnyFloats) -> AnyFloats:
        return exp_by_squaring(workspace[0])


def _squares(rows: AnyFloats) -> Floats:
    """Compute the squared length of every row, in float64."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _longest(rows: AnyFloats) -> float:
    """Compute the length of the longest row, or a little more."""
    with np.errstate(over="ignore"):
        longest = float(np.sqrt(_squares(rows).max()))
    check_distances(longest * longest, rows.dtype, longest)
    return longest


def check_distances(distance: float, dtype: Any, largest: float) -> None:
    """Raise an error for distances, or rows, that a type cannot represent."""
    if not np.isfinite(distance) or largest > np.finfo(dtype).max / 16:
        raise ValueError(
            "The rows are so far apart that their distances are not finite. Scale the features."
        )


def _append(rows: AnyFloats, *columns: Floats | float) -> AnyFloats:
    """Append columns to rows, each one number or one number for every row."""
    longer = np.empty((len(rows), rows.shape[1] + len(columns)), rows.dtype)
    longer[:, : rows.shape[1]] = rows
    for position, column in enumerate(columns, rows.shape[1]):
        longer[:, position] = column
    return longer


def is_vectorised(dtype: np.dtype[Any]) -> bool:
    """Whether numpy's own `exp` is the fastest."""
    return dtype != np.float32 or platform.machine().lower() in ("x86_64", "amd64")


def exp2_by_parts(t: AnyFloats, integer: AnyFloats, power: AnyFloats, low: float) -> AnyFloats:
    """Compute 2^t / `PARTS_FACTOR`, for t at most slightly above 0.

    Parameters
    ----------
    t, integer, power : ndarray of float32, of one shape
        Exponents, and memory for two tiles; all are overwritten, and one is returned.
    low : float
        No exponent is below this.
    """
    if low < _LOWEST and t.min() < _LOWEST:
        np.maximum(t, _LOWEST, out=t)
    np.add(t, _ROUND, integer)  # n in the low bits
    np.subtract(integer, _ROUND_SHIFTED, power)  # n − 6
    np.subtract(t, power, t)  # h
    np.square(t, power)
    np.add(power, _CUBIC[0], power)
    np.multiply(power, t, power)
    np.add(power, _CUBIC[1], power)
    np.square(power, power)
    np.square(power, power)
    bits = integer.view(np.int32)
    np.left_shift(bits, _EXPONENT_BITS, bits)
    exponents = power.view(np.int32)
    np.add(exponents, bits, exponents)
    return power


def exp_by_squaring(h: AnyFloats) -> AnyFloats:
    """Compute exp(t) for h = a t + b, in place: one tile of 1 MB stays in the cache of a core."""
    for constant in _CHAIN:
        np.square(h, h)
        np.add(h, constant, h)
    for _ in range(5):
        np.square(h, h)
    return h
