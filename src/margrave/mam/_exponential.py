"""exp of float32 tiles in passes that vectorise.

numpy's own `exp` of float32 is vectorised on x86 and takes one number at a time elsewhere (5 ns a
number on a Neoverse N1). There it is made of whole passes over a tile, each of which numpy does
vectorise, in two ways (2.3 and 1.7 ns):

by whole and fraction, for any exponent: with n the integer next to t and h = t − n + 6,

    2^t = 2^n · (s · (h³ + c₁ h + c₀))⁴

to a relative error of 5e-6. The shift of 6 removes the square term of the cubic, and so a pass;

by squaring, for exponents of at most 7 either way: with h = a t + b,

    exp(t) = (((h² + c₁)² + c₂)² + c₃)^32

to 3e-6 before rounding, which the five squarings enlarge to 6e-6 on average and 2.5e-5 at worst.
In sums such errors are of either sign. a and b cost nothing, as the exponents come out of a matrix
product that can hold them.

The constants make the largest relative error as small as it gets (`tests/mam/test_exponential.py`).
"""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tile = NDArray[np.floating[Any]]

PER_UNIT = float(np.log2(np.e))
"""exp(u) is 2^t for t = `PER_UNIT` u."""

WHOLE_FACTOR = 0.0008347244571816127**4
"""What `by_whole` leaves to the caller, who multiplies the weights of a sum with it."""

SQUARING_SLOPE, SQUARING_START = 0.006512289629712797, 0.6261642499699416
"""a and b: h = a t + b is what `by_squaring` takes."""

SQUARING_RANGE = 7.0
"""The largest exponent, either way, that `by_squaring` takes."""

# Arrays, not numbers: numpy turns a number into an array at every call, half a microsecond.
# 1.5 · 2²³ and a number of less than 2²² have a sum without bits behind the point: it holds n.
_ROUND = np.array(1.5 * 2**23, np.float32)
_ROUND_SHIFTED = np.array(1.5 * 2**23 + 6, np.float32)
_CUBIC = [np.array(c, np.float32) for c in (99.60483570946191, 384.37054749605056)]
_EXPONENT_BITS = np.array(23, np.int32)
# Below this the exponent would leave its eight bits; 2^-160 is 0 for any sum of float32.
_LOWEST = -160.0
_CHAIN = [np.array(c, np.float32) for c in (0.390528789, 0.611553091, -0.498254866)]


def is_vectorised(dtype: np.dtype[Any]) -> bool:
    """Whether numpy's own `exp` is the one to take."""
    return dtype != np.float32 or platform.machine().lower() in ("x86_64", "amd64")


def by_whole(t: Tile, whole: Tile, power: Tile, low: float) -> Tile:
    """2^t / `WHOLE_FACTOR`, for t at most a little above 0.

    Parameters
    ----------
    t, whole, power : ndarray of float32, of one shape
        Exponents, and room for two tiles; all are spoilt, and one is returned.
    low : float
        No exponent is lower than this.
    """
    if low < _LOWEST and t.min() < _LOWEST:
        np.maximum(t, _LOWEST, out=t)
    np.add(t, _ROUND, whole)  # n in the low bits
    np.subtract(whole, _ROUND_SHIFTED, power)  # n − 6
    np.subtract(t, power, t)  # h
    np.square(t, power)
    np.add(power, _CUBIC[0], power)
    np.multiply(power, t, power)
    np.add(power, _CUBIC[1], power)
    np.square(power, power)
    np.square(power, power)
    bits = whole.view(np.int32)
    np.left_shift(bits, _EXPONENT_BITS, bits)
    exponents = power.view(np.int32)
    np.add(exponents, bits, exponents)
    return power


def by_squaring(h: Tile) -> Tile:
    """exp(t) for h = a t + b, in place: one tile of 1 MB then stays in the cache of a core."""
    for constant in _CHAIN:
        np.square(h, h)
        np.add(h, constant, h)
    for _ in range(5):
        np.square(h, h)
    return h
