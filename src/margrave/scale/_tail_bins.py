"""The tail of the crucial pairs from sums over bins, which blocks of rows can add up.

For each bin of scores and each class there are the weight w, the sums of w u and w u² with u in
[-1/2, 1/2] the position within the bin, and the weighted sums of every member's scores. They give
the masses of a feasible q of the tail (see `margrave.fuse._tail`), with these a valid cutting
plane, and a lower bound of the mean margin

    φ >= ρ - 1/ν Σ_ij a_i b_j E (ρ - m)₊

over pairs of bins i and j, for any ρ. Pairs of bins that are entirely on one side of ρ are exact.
For those that ρ divides, mean and variance are known, and with e the mean of ρ - m and v its
variance, ``E (ρ - m)₊ <= (e + √(v + e²)) / 2`` (Scarf, 1958). They are a fraction of about a bin's
width of all pairs, and v is of the order of the width's square. So for scores that are spread out
the error is of the order of the square of the width; scores with few distinct values have no
variance within a bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from margrave._typing import Floats
from margrave.fuse import keep_hardest, tail_of_bins

# Rows of the sums: weight, first and second moment, count; then one for each member.
_WEIGHT, _FIRST, _SECOND, _COUNT, _COLUMNS = range(5)
# Margins this close, in widths of a bin, are equal.
_NEAR = 1e-6


@dataclass(frozen=True)
class Grid:
    """Bins of equal width, for scores from `low` on."""

    low: float
    width: float
    n_bins: int

    @classmethod
    def over(cls, low: float, high: float, n_bins: int) -> Grid:
        """Make bins between two scores."""
        return cls(low, (high - low) / n_bins or 1.0, n_bins)


@dataclass(frozen=True, eq=False)
class BinnedTail:
    """The worst fraction of the pairs, from sums over bins.

    Attributes
    ----------
    value : float
        A lower bound of the mean margin in the tail.
    plane : ndarray of shape (K,)
        A cutting plane: ``plane @ v`` is at least the mean margin in the tail under weights v.
    rho : float
        The largest margin in the tail, with an error of a bin or two.
    n_pairs : int
        Number of pairs with a margin of at most `rho`, with the same error.
    """

    value: float
    plane: Floats
    rho: float
    n_pairs: int


def sum_bins(values: Any, scores: Floats, weights: tuple[Floats, Floats], grid: Grid) -> Floats:
    """Sum rows over bins: shape (4 + K, 2, n_bins), for the positives and for the negatives.

    Parameters
    ----------
    values : ndarray of shape (n, K)
        The members' scores.
    scores : ndarray of shape (n,)
        The combined scores.
    weights : tuple of ndarray, shape (n,)
        Weights of the positives and of the negatives, 0 for other rows.
    grid : Grid
        The bins.
    """
    position = (scores - grid.low) * (1 / grid.width)
    bins = np.clip(position.astype(np.int64), 0, grid.n_bins - 1)
    u = np.clip(position - bins - 0.5, -0.5, 0.5)
    weight = weights[0] + weights[1]
    bins += np.where(weights[0] > 0, 0, grid.n_bins)
    n_columns = 2 * grid.n_bins
    weighted = weight * u
    rows = [weight, weighted, weighted * u, (weight > 0).astype(np.float64)]
    sums = np.empty((len(rows) + values.shape[1], n_columns))
    for at, row in enumerate(rows):
        sums[at] = np.bincount(bins, row, n_columns)
    for j in range(values.shape[1]):
        sums[len(rows) + j] = np.bincount(bins, weight * values[:, j], n_columns)
    return sums.reshape(-1, 2, grid.n_bins)


def binned_tail(sums: Floats, grid: Grid, nu: float, hardest: float = 1.0) -> BinnedTail:
    """Compute the tail from the sums of all rows.

    Parameters
    ----------
    sums : ndarray of shape (4 + K, 2, n_bins)
        The sums of `sum_bins` over all rows.
    grid : Grid
        The bins.
    nu, hardest : float in (0, 1]
        The fraction of the pairs, and of the negatives whose pairs count.
    """
    total = sums[_WEIGHT].sum(axis=1)
    a, b = sums[_WEIGHT] / total[:, None]
    centres: Floats = grid.low + grid.width * (np.arange(grid.n_bins, dtype=np.float64) + 0.5)
    tail = tail_of_bins(centres, a, b, nu, hardest, grid.width)
    columns = sums[_COLUMNS:] / total[:, None]
    plane = columns[:, 0] @ tail.per_positive - columns[:, 1] @ tail.per_negative
    value, rho = _lower_bound(sums, a, b, nu, hardest, tail.rho / grid.width)
    x, z = np.arange(grid.n_bins) + _moments(sums)[0]
    rho = min(rho, float(x[a > 0][-1] - z[b > 0][0]))
    counts = sums[_COUNT]
    above = _sums_from(counts[1] * _kept_part(b, hardest))
    n_pairs = round(float(counts[0] @ above[np.searchsorted(z, x - rho - _NEAR)]))
    return BinnedTail(value * grid.width, plane, rho * grid.width, n_pairs)


def _lower_bound(
    sums: Floats, a: Floats, b: Floats, nu: float, hardest: float, near: float
) -> tuple[float, float]:
    """Return a lower bound of the mean margin, and its ρ, which is close to `near`; in widths."""
    mean, variance = _moments(sums)
    kept, part = keep_hardest(b, hardest), np.maximum(_kept_part(b, hardest), _NEAR)
    # In a bin that counts in part the highest negatives count: a bound of their mean.
    higher = np.minimum(mean[1] + np.sqrt(variance[1] * (1 - part) / part), 0.5)
    bins = np.arange(len(a))
    x, z = bins + mean[0], bins + np.where(part < 1, higher, mean[1])
    v = variance[0], np.where(part < 1, np.minimum(variance[1] / part, 1.0), variance[1])

    def negative_bound(rho: float) -> float:
        return _hinge(x, a, v[0], z, kept, v[1], rho) / nu - rho

    coarse = near + np.linspace(-2.5, 2.5, 11)
    best = min((negative_bound(float(rho)), float(rho)) for rho in coarse)
    around = best[1] - 0.5, best[1] + 0.5
    finer = minimize_scalar(
        negative_bound, bounds=around, method="bounded", options={"maxiter": 20}
    )
    best = min(best, (float(finer.fun), float(finer.x)))
    return -best[0], best[1]


def _hinge(
    x: Floats, a: Floats, of_x: Floats, z: Floats, b: Floats, of_z: Floats, rho: float
) -> float:
    """Return an upper bound of the mean of ``(ρ - m)₊`` over all pairs, in widths."""
    n_bins, whole = len(a), int(np.floor(rho))
    at = np.clip(np.arange(n_bins) + 1 - whole, 0, n_bins)
    # Sums instead of products of vectors, which would wait for busy BLAS threads.
    total = float((a * ((rho - x) * _sums_from(b)[at] + _sums_from(b * z)[at])).sum())
    for apart in (whole, whole + 1):  # differences of bins that rho divides
        i = slice(max(apart, 0), max(min(n_bins + apart, n_bins), 0))
        k = slice(max(-apart, 0), max(min(n_bins - apart, n_bins), 0))
        e = rho - x[i] + z[k]
        total += float((a[i] * b[k] * (e + np.sqrt(of_x[i] + of_z[k] + e * e))).sum()) / 2
    return total


def _kept_part(b: Floats, hardest: float) -> Floats:
    """Return the fraction of each bin's negatives that is among the hardest."""
    part = np.divide(hardest * keep_hardest(b, hardest), b, out=np.ones_like(b), where=b > 0)
    return np.minimum(part, 1.0)


def _moments(sums: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of the positions within bins, shape (2, n_bins) each."""
    weight = np.where(sums[_WEIGHT] > 0, sums[_WEIGHT], 1.0)
    mean = np.clip(sums[_FIRST] / weight, -0.5, 0.5)
    return mean, np.maximum(sums[_SECOND] / weight - mean**2, 0.0)


def _sums_from(values: Floats) -> Floats:
    """Return the sum of the values from each position on, and 0 after the last."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)
