"""The tail of the crucial pairs from sums over bins, which blocks of rows can add up.

For each bin of scores and each class: the weight w, the sums of w u and w u² with u in [-1/2, 1/2]
the place within the bin, and the weighted sums of every member's scores. From these come, as in
`_tail`, the masses of an allowed q and with them a cut that holds; and a value that is reached for
certain. That value is the mean margin

    φ >= ρ - 1/ν Σ_ij a_i b_j E (ρ - m)₊

over pairs of bins i and j, for any ρ. Pairs of bins that are wholly on one side of ρ are exact,
whatever is in them. Of those that ρ divides, mean and variance are known, and with e the mean of
ρ - m and v the variance, ``E (ρ - m)₊ <= (e + √(v + e²)) / 2`` (Scarf). They are a share of about
a bin's width of all pairs, and v is of the width's square: for scores that are spread out, the
value is off by the square of the width; scores of few kinds have no variance within a bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from margrave._typing import Floats
from margrave.fuse._tail import bin_tail, kept_weights

# Rows of sums: weight, first and second moment, number; then the members' columns.
_WEIGHT, _FIRST, _SECOND, _COUNT, _COLUMNS = range(5)
# Margins this close, in widths, are equal.
_NEAR = 1e-6


@dataclass(frozen=True)
class Grid:
    """Bins of one width, for scores from `low` on."""

    low: float
    width: float
    n_bins: int

    @classmethod
    def over(cls, low: float, high: float, n_bins: int) -> Grid:
        """So many bins between two scores."""
        return cls(low, (high - low) / n_bins or 1.0, n_bins)


@dataclass(frozen=True, eq=False)
class TailOfSums:
    """The worst share of the pairs, from sums.

    Attributes
    ----------
    value : float
        The mean margin in the tail is at least this.
    plane : ndarray of shape (K,)
        ``plane @ v`` is at least the mean margin in the tail of any weights v.
    rho : float
        The largest margin in the tail, within a bin or two.
    n_pairs : int
        Number of pairs with a margin of at most `rho`, as far as bins tell.
    """

    value: float
    plane: Floats
    rho: float
    n_pairs: int


def sums_of(values: Any, scores: Floats, sides: tuple[Any, Any], grid: Grid) -> Floats:
    """Sums of some rows, shape (4 + K, 2, n_bins): of the positives and of the negatives.

    Parameters
    ----------
    values : ndarray of shape (n, K)
        The members' scores.
    scores : ndarray of shape (n,)
        The combined ones.
    sides : tuple of ndarray, shape (n,)
        Weights of the positives and of the negatives, 0 for the others.
    grid : Grid
        The bins.
    """
    far = (scores - grid.low) * (1 / grid.width)
    place = np.clip(far.astype(np.int64), 0, grid.n_bins - 1)
    u = np.clip(far - place - 0.5, -0.5, 0.5)
    weight = sides[0] + sides[1]
    place += np.where(sides[0] > 0, 0, grid.n_bins)
    n_places = 2 * grid.n_bins
    weighted = weight * u
    rows = [weight, weighted, weighted * u, (weight > 0).astype(np.float64)]
    sums = np.empty((len(rows) + values.shape[1], n_places))
    for at, row in enumerate(rows):
        sums[at] = np.bincount(place, row, n_places)
    for j in range(values.shape[1]):
        sums[len(rows) + j] = np.bincount(place, weight * values[:, j], n_places)
    return sums.reshape(-1, 2, grid.n_bins)


def tail_of_sums(sums: Floats, grid: Grid, nu: float, hardest: float = 1.0) -> TailOfSums:
    """The tail, from the sums of all rows.

    Parameters
    ----------
    sums : ndarray of shape (4 + K, 2, n_bins)
        As `sums_of` gives them, added up.
    grid : Grid
        The bins.
    nu, hardest : float in (0, 1]
        As in `margrave.fuse._tail.exact_tail`.
    """
    total = sums[_WEIGHT].sum(axis=1)
    a, b = sums[_WEIGHT] / total[:, None]
    centres: Floats = grid.low + grid.width * (np.arange(grid.n_bins, dtype=np.float64) + 0.5)
    rho, _, per_positive, per_negative = bin_tail(centres, a, b, nu, hardest, grid.width)
    columns = sums[_COLUMNS:] / total[:, None]
    plane = columns[:, 0] @ per_positive - columns[:, 1] @ per_negative
    value, rho = _reached(sums, a, b, nu, hardest, rho / grid.width)
    x, z = np.arange(grid.n_bins) + _moments(sums)[0]
    rho = min(rho, float(x[a > 0][-1] - z[b > 0][0]))
    counts = sums[_COUNT]
    above = _from(counts[1] * _kept_part(b, hardest))
    n_pairs = round(float(counts[0] @ above[np.searchsorted(z, x - rho - _NEAR)]))
    return TailOfSums(value * grid.width, plane, rho * grid.width, n_pairs)


def _reached(
    sums: Floats, a: Floats, b: Floats, nu: float, hardest: float, near: float
) -> tuple[float, float]:
    """A mean margin that is reached for certain, and ρ, in widths; ρ is near a number given."""
    mean, variance = _moments(sums)
    kept, part = kept_weights(b, hardest), np.maximum(_kept_part(b, hardest), _NEAR)
    # Of a bin that counts in part, the highest do: by how much they can be above the others.
    higher = np.minimum(mean[1] + np.sqrt(variance[1] * (1 - part) / part), 0.5)
    places = np.arange(len(a))
    x, z = places + mean[0], places + np.where(part < 1, higher, mean[1])
    v = variance[0], np.where(part < 1, np.minimum(variance[1] / part, 1.0), variance[1])

    def missed(rho: float) -> float:
        return _hinge(x, a, v[0], z, kept, v[1], rho) / nu - rho

    first = near + np.linspace(-2.5, 2.5, 11)
    best = min((missed(float(rho)), float(rho)) for rho in first)
    around = best[1] - 0.5, best[1] + 0.5
    finer = minimize_scalar(missed, bounds=around, method="bounded", options={"maxiter": 20})
    best = min(best, (float(finer.fun), float(finer.x)))
    return -best[0], best[1]


def _hinge(
    x: Floats, a: Floats, of_x: Floats, z: Floats, b: Floats, of_z: Floats, rho: float
) -> float:
    """At least the mean of ``(ρ - m)₊`` over all pairs, in widths."""
    n_bins, whole = len(a), int(np.floor(rho))
    at = np.clip(np.arange(n_bins) + 1 - whole, 0, n_bins)
    # Sums, not products of vectors: those wait for threads that others keep busy.
    total = float((a * ((rho - x) * _from(b)[at] + _from(b * z)[at])).sum())
    for apart in (whole, whole + 1):  # places of bins that rho divides
        i = slice(max(apart, 0), max(min(n_bins + apart, n_bins), 0))
        k = slice(max(-apart, 0), max(min(n_bins - apart, n_bins), 0))
        e = rho - x[i] + z[k]
        total += float((a[i] * b[k] * (e + np.sqrt(of_x[i] + of_z[k] + e * e))).sum()) / 2
    return total


def _kept_part(b: Floats, hardest: float) -> Floats:
    """How much of each bin's negatives is among the hardest."""
    part = np.divide(hardest * kept_weights(b, hardest), b, out=np.ones_like(b), where=b > 0)
    return np.minimum(part, 1.0)


def _moments(sums: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the places within bins, shape (2, n_bins) each."""
    weight = np.where(sums[_WEIGHT] > 0, sums[_WEIGHT], 1.0)
    mean = np.clip(sums[_FIRST] / weight, -0.5, 0.5)
    return mean, np.maximum(sums[_SECOND] / weight - mean**2, 0.0)


def _from(values: Floats) -> Floats:
    """Sums from each place on, and 0 beyond the last."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)
