"""Middle and spread of rows in blocks, in sums that can be put together.

Random features for the kernels of document 002 are taken around the middle of the rows, and the
usual width comes from the variance of all numbers. Variances are put together from those of the
blocks, each around its own mean, so that digits are not lost where rows are far from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats
from margrave.mam._block_rows import check_sums, plain_sums
from margrave.mam._sums import slices
from margrave.mam._widths import gamma_of

_ROWS = 2048
_FARTHEST = 1000  # powers of two that a number can be multiplied with


@dataclass(frozen=True, eq=False)
class Moments:
    """What is known of some rows with weights above 0.

    Attributes
    ----------
    n : int
        How many there are.
    total : ndarray of shape (n_features,)
        Their sum, each row counting once.
    weight : float
        Their summed weight.
    mean, squares : float
        The weighted mean of all numbers and their weighted squares around it, in units.
    power : int
        The unit is this power of two, so that squares do not overflow.
    """

    n: int
    total: Floats
    weight: float
    mean: float
    squares: float
    power: int

    @classmethod
    def of(cls, X: NDArray[Any], weights: Floats, owner: str) -> Moments:
        """Of one block, in slices; rows with NaN or infinity are refused."""
        total = plain_sums(X, np.ones((len(X), 1)))[0]
        check_sums(total, X, owner)  # rows of weight 0 as well
        rows, s = X, weights
        if not weights.all():
            rows, s = X[weights > 0], weights[weights > 0]
            total = plain_sums(rows, np.ones((len(rows), 1)))[0]
        n, d = rows.shape
        if n == 0:
            return cls(0, np.zeros(d), 0.0, 0.0, 0.0, -_FARTHEST)
        largest = max(float(rows.max()), -float(rows.min()))
        power = int(np.clip(np.frexp(largest)[1], -_FARTHEST, _FARTHEST))
        middle = float((total * 2.0**-power).mean() / n)
        first, second = _around(rows, s, 2.0**-power, middle)
        weight = float(s.sum())
        off = first / (weight * d)
        return cls(n, total, weight, middle + off, second - first * off, power)

    @classmethod
    def merged(cls, parts: list[Moments], shifts: list[int]) -> Moments:
        """All of them together, the weights of each multiplied with a power of two."""
        power = max(one.power for one in parts)
        n, total, weight, mean, squares = 0, np.zeros_like(parts[0].total), 0.0, 0.0, 0.0
        d = len(total)
        for one, shift in zip(parts, shifts, strict=True):
            if one.n == 0:
                continue
            own = float(np.ldexp(one.weight, shift))
            own_mean = float(np.ldexp(one.mean, one.power - power))
            own_squares = float(np.ldexp(one.squares, shift + 2 * (one.power - power)))
            n, total = n + one.n, total + one.total
            off = own_mean - mean
            squares += own_squares + off**2 * d * weight * own / (weight + own)
            mean += off * own / (weight + own)
            weight += own
        return cls(n, total, weight, mean, squares, power)

    @property
    def centre(self) -> Floats:
        """The middle of the rows."""
        return self.total / self.n

    def usual_gamma(self, kernel: Any) -> float:
        """The usual width: see `_widths.usual_gamma`."""
        d = len(self.total)
        return gamma_of(self.squares / (self.weight * d), float(2.0**self.power), d, kernel)


def _around(rows: NDArray[Any], s: Floats, scale: float, middle: float) -> tuple[float, float]:
    """Weighted sums of all numbers around a middle, and of their squares."""
    first = second = 0.0
    if rows.flags.f_contiguous:  # as a data frame's: column by column
        for column in rows.T:
            around = column * np.float64(scale) - middle
            first += float(s @ around)
            second += float(s @ np.square(around, around))
        return first, second
    for part in slices(len(rows), _ROWS):
        around = rows[part] * np.float64(scale) - middle
        first += float(s[part] @ around.sum(axis=1))
        second += float(s[part] @ np.einsum("ij,ij->i", around, around))
    return first, second
