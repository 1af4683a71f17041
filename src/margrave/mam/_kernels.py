"""Kernels, tile by tile: K(z, x) for some rows of Z and some of X, in room that is given.

The kernels of document 002, section 2.2: linear x·z, polynomial (γ x·z + b)^p (the document's
γ is 1), RBF exp(−γ‖x − z‖²) (the document writes σ = 1/γ), and exp(−γ‖x − z‖₁). Squared distances
come out of one matrix product: with rows (z, 1, −‖z‖²) and columns (2x, −‖x‖², 1), after both sets
were moved to the middle of X, their product is −‖x − z‖².
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from margrave._typing import Floats
from margrave.mam._exponential import (
    PER_UNIT,
    SQUARING_RANGE,
    SQUARING_SLOPE,
    SQUARING_START,
    WHOLE_FACTOR,
    Tile,
    by_squaring,
    by_whole,
    is_vectorised,
)

KernelFunction = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]

NAMES = ("rbf", "linear", "poly", "laplacian")
_DIAGONAL_ROWS = 256
SURE_IN_FLOAT32 = 16.0
"""Up to this, γ times the squared length of a row, float32 is exact enough (an error of 4e-6)."""

SURE_IN_FLOAT64 = 1e10
"""From here on a row would not be next to itself: distances are computed from differences."""

LARGEST_EXPONENTS: dict[type, float] = {np.float32: 1e30, np.float64: 1e300}
"""What exponents are kept below, for each type."""


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters.

    Attributes
    ----------
    name : str or callable
        One of `NAMES`, or a function of two sets of rows that returns all values.
    gamma, degree, coef0 : float
        As in scikit-learn's kernels; those that a kernel does not have are ignored.
    """

    name: str | KernelFunction
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1.0

    @property
    def is_exponential(self) -> bool:
        """Whether it is exp(−γ · distance)."""
        return self.name in ("rbf", "laplacian")

    @property
    def has_gamma(self) -> bool:
        """Whether gamma changes anything."""
        return self.is_exponential or self.name == "poly"

    def diagonal(self, X: Tile) -> Floats:
        """K(x, x) of every row."""
        if self.is_exponential:
            return np.ones(len(X))
        if callable(self.name):
            parts = [X[i : i + _DIAGONAL_ROWS] for i in range(0, len(X), _DIAGONAL_ROWS)]
            values = [np.diag(values_of(self.name, part, part)) for part in parts]
            return np.concatenate(values).astype(np.float64)
        squares = np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))
        if self.name == "poly":
            self.powers(squares, squares.copy())
        return squares

    def powers(self, products: Tile, spare: Tile) -> Tile:
        """(γ · product + coef0)^degree, in place."""
        with np.errstate(over="ignore", invalid="ignore"):  # told by who sums them up
            return self._powers(products, spare)

    def _powers(self, products: Tile, spare: Tile) -> Tile:
        products *= self.gamma
        products += self.coef0
        if not (float(self.degree).is_integer() and 1 <= self.degree <= 8):
            return np.power(products, self.degree, products)
        spare[...] = products  # numpy's power takes 20 ns a number, a product less than 1
        for _ in range(int(self.degree) - 1):
            products *= spare
        return products


def values_of(function: KernelFunction, Z: Tile, X: Tile) -> Tile:
    """What a user's kernel says of all pairs, checked."""
    values = np.asarray(function(Z, X))
    if values.shape != (len(Z), len(X)):
        raise ValueError(
            "A kernel of your own must take some rows and some other rows and return a value for "
            f"each of {len(Z)} x {len(X)} pairs; got shape {values.shape}."
        )
    if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise ValueError("A kernel of your own must return finite numbers.")
    return values


class Pairs:
    """Tiles of K(z, x), for rows of Z and of X that were prepared once.

    A value of a tile is K(z, x) divided by the `row_factors` of z and the `column_factors` of x: in
    a sum over x they are multiplied once for each sample instead of once for each pair.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    Z, X : ndarray of shapes (m, d) and (n, d)
        The rows, of one floating type.
    sharpest : float, default=1
        What the caller will at most multiply the exponents of `base` with.
    """

    def __init__(self, kernel: Kernel, Z: Tile, X: Tile, sharpest: float = 1.0) -> None:
        self.kernel = kernel
        self._sharpest = sharpest
        self.dtype = X.dtype
        self.row_factors: Floats | float = 1.0
        self.column_factors: Floats | float = 1.0
        self._Z, self._X = Z, X
        self._low = -np.inf
        self._left, self._right = Z, X
        self._fill: Callable[[slice, slice, Tile], None] = self._product
        self._finish: Callable[[Tile], Tile] = self._as_it_is
        if kernel.is_exponential:
            self._prepare_exponents()
        elif kernel.name == "poly":
            self._finish = self._powers
        elif callable(kernel.name):
            self._function = kernel.name
            self._fill = self._asked

    def base(self, rows: slice, columns: slice, out: Tile) -> None:
        """What the kernel is a function of, in float64: −γ · distance, or the product, or K."""
        self._fill(rows, columns, out)

    def tile(self, rows: slice, columns: slice, room: Tile) -> Tile:
        """K for some rows of Z and of X, up to the factors.

        Parameters
        ----------
        rows, columns : slice
            Which rows of Z, and which of X.
        room : ndarray of shape (3, n_rows, n_columns)
            Where to work; the result is one of the three.
        """
        self._fill(rows, columns, room[0])
        return self._finish(room)

    def _prepare_exponents(self) -> None:
        """Choose how −γ · distance and its exponential are computed."""
        by_numpy = is_vectorised(self.dtype)
        self._finish = self._exp if by_numpy else self._exp_by_whole
        self._per_unit = 1.0 if by_numpy else PER_UNIT
        if not by_numpy:
            self.row_factors = WHOLE_FACTOR
        if self.kernel.name == "laplacian":
            ends = [
                np.vstack([end(self._Z, axis=0), end(self._X, axis=0)]) for end in (np.min, np.max)
            ]
            with np.errstate(over="ignore"):
                spans = ends[1].max(axis=0).astype(np.float64) - ends[0].min(axis=0)
            check_distances(float(spans.sum()), self.dtype, float(spans.max(initial=0.0)))
            self._differ("cityblock", float(spans.sum()))
            return
        middle = self._X.mean(axis=0, dtype=np.float64).astype(self.dtype)
        Z, X = self._Z - middle, self._X - middle
        lengths = [_longest(side) for side in (Z, X)]
        unit = max(lengths) or 1.0
        # Rows of at most unit length, so that neither they nor γ leave the range of float32.
        Z, X = Z / self.dtype.type(unit), X / self.dtype.type(unit)
        gamma = min(self.kernel.gamma * unit * unit, LARGEST_EXPONENTS[self.dtype.type])
        if not by_numpy and 2 * gamma * min(lengths) / unit <= SQUARING_RANGE:
            self._prepare_squaring(Z, X, gamma)
        elif gamma * self._sharpest > SURE_IN_FLOAT64:
            self._differ("sqeuclidean", unit * unit)
        else:
            self._prepare_distances(Z, X, gamma * self._per_unit, middle, unit)

    def _differ(self, metric: str, farthest: float) -> None:
        """Distances from differences: one pair at a time, and exact for the nearest."""
        largest = LARGEST_EXPONENTS[self.dtype.type]
        gamma = min(self.kernel.gamma, largest / farthest) if farthest > 0 else 1.0
        self._metric, self._scale = metric, gamma * self._per_unit
        self._fill = self._distances

    def _prepare_squaring(self, Z: Tile, X: Tile, gamma: float) -> None:
        """exp(−γ‖x − z‖²) = exp(−γ‖z‖²) exp(−γ‖x‖²) exp(2γ x·z), of which the last is a tile."""
        self.row_factors, self.column_factors = (np.exp(-gamma * _squares(s)) for s in (Z, X))
        self._left = _beside(Z, 1.0)
        self._right = _beside(X * self.dtype.type(2 * gamma * SQUARING_SLOPE), SQUARING_START)
        self._finish = self._exp_by_squaring

    def _prepare_distances(self, Z: Tile, X: Tile, scale: float, middle: Tile, unit: float) -> None:
        """−γ‖x − z‖² as a product of longer rows."""
        self._low = -4 * scale
        # How far an exponent is off grows with the squared lengths, whatever its own size.
        if self.dtype == np.float32 and scale > SURE_IN_FLOAT32:
            Z, X = ((side.astype(np.float64) - middle) / unit for side in (self._Z, self._X))
            self._fill = self._product_rounded
        self._left = _beside(Z, 1.0, -scale * _squares(Z))
        self._right = _beside(X * X.dtype.type(2 * scale), -scale * _squares(X), 1.0)

    def _product(self, rows: slice, columns: slice, out: Tile) -> None:
        np.matmul(self._left[rows], self._right[columns].T, out)

    def _product_rounded(self, rows: slice, columns: slice, out: Tile) -> None:
        out[...] = self._left[rows] @ self._right[columns].T

    def _distances(self, rows: slice, columns: slice, out: Tile) -> None:
        out[...] = cdist(self._Z[rows], self._X[columns], self._metric) * -self._scale

    def _asked(self, rows: slice, columns: slice, out: Tile) -> None:
        out[...] = values_of(self._function, self._Z[rows], self._X[columns])

    def _as_it_is(self, room: Tile) -> Tile:
        return np.asarray(room[0])

    def _powers(self, room: Tile) -> Tile:
        return self.kernel.powers(room[0], room[1])

    def _exp(self, room: Tile) -> Tile:
        return np.asarray(np.exp(room[0], room[0]))

    def _exp_by_whole(self, room: Tile) -> Tile:
        return by_whole(room[0], room[1], room[2], self._low)

    def _exp_by_squaring(self, room: Tile) -> Tile:
        return by_squaring(room[0])


def _squares(rows: Tile) -> Floats:
    """The squared length of every row, in float64."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _longest(rows: Tile) -> float:
    """The length of the longest row, or a little more."""
    with np.errstate(over="ignore"):
        longest = float(np.sqrt(_squares(rows).max()))
    check_distances(longest * longest, rows.dtype, longest)
    return longest


def check_distances(distance: float, dtype: Any, largest: float) -> None:
    """Refuse distances, or rows, that are beyond all numbers of a type."""
    if not np.isfinite(distance) or largest > np.finfo(dtype).max / 16:
        raise ValueError(
            "The rows are so far apart that their distances are not finite. Scale the features."
        )


def _beside(rows: Tile, *columns: Floats | float) -> Tile:
    """Rows with further columns, each one number or one for every row."""
    longer = np.empty((len(rows), rows.shape[1] + len(columns)), rows.dtype)
    longer[:, : rows.shape[1]] = rows
    for place, column in enumerate(columns, rows.shape[1]):
        longer[:, place] = column
    return longer
