"""The tail of the crucial pairs: the fraction ν with the smallest margins, under one score.

Marrocco et al. (2010) maximize the margin of the worst pair, equation (1); their section 5 proposes
slack. Both are the mean margin of the worst fraction ν of all pairs,

    φ = max_ρ  ρ - 1/ν Σ_ik a_i b_k (ρ - m_ik)₊ = min_q Σ_ik q_ik m_ik,

with m_ik = s_i - s_k, sample weights a and b that sum to 1 in each class, and q over the pairs with
0 <= q_ik <= a_i b_k / ν and sum 1. The best q fills the pairs below ρ and a part of those at ρ. The
search for weights needs only its sums over rows and columns, one mass per sample. Sorting both
classes gives them in O(n log n), without forming the pairs.

With `hardest` below 1, only that fraction of the negatives counts, those with the highest scores:
they become false positives first. Leaving out a negative only raises the mean, so φ is still a
minimum of linear functions, and concave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave._typing import AnyInts, Floats

# The error of a mean margin at which the search for rho stops.
_PRECISION = 1e-13
# Sums of weights with a smaller relative difference are equal.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class WeightedScores:
    """The samples of one class: scores, and weights that sum to 1."""

    scores: Floats
    weights: Floats


@dataclass(frozen=True)
class Tail:
    """The worst fraction of the pairs.

    Attributes
    ----------
    rho : float
        The largest margin in the tail.
    mean : float
        The mean margin in the tail, φ.
    positive_mass, negative_mass : ndarray
        The sums of q over the pairs of each sample; each array sums to 1.
    n_pairs : int
        Number of pairs with a margin of at most `rho`.
    """

    rho: float
    mean: float
    positive_mass: Floats
    negative_mass: Floats
    n_pairs: int


@dataclass(frozen=True)
class BinTail:
    """The worst fraction of the pairs of samples in bins.

    Attributes
    ----------
    rho : float
        The largest margin in the tail.
    per_positive, per_negative : ndarray of shape (n_bins,)
        The mass of the positives and of the negatives in each bin, per unit of their weight.
    n_pairs : int
        Number of pairs with a margin of at most `rho`.
    """

    rho: float
    per_positive: Floats
    per_negative: Floats
    n_pairs: int


def exact_tail(
    positives: WeightedScores, negatives: WeightedScores, nu: float, hardest: float = 1.0
) -> Tail:
    """Compute the tail, in O(n log n).

    Parameters
    ----------
    positives, negatives : WeightedScores
        The samples.
    nu : float in (0, 1]
        The fraction of the pairs that the tail holds.
    hardest : float in (0, 1]
        The fraction of the negatives, by weight, whose pairs count.
    """
    by_positive, by_negative = np.argsort(positives.scores), np.argsort(negatives.scores)
    x, a = positives.scores[by_positive], positives.weights[by_positive]
    z, b = negatives.scores[by_negative], negatives.weights[by_negative]
    rho, per_positive, mass, n_pairs = _sorted_tail(x, a, z, keep_hardest(b, hardest), nu)
    positive_mass, negative_mass = np.empty_like(x), np.empty_like(z)
    positive_mass[by_positive] = per_positive * a
    negative_mass[by_negative] = mass
    mean = float(positive_mass @ positives.scores - negative_mass @ negatives.scores)
    return Tail(rho, mean, positive_mass, negative_mass, n_pairs)


def binned_tail(
    positives: WeightedScores,
    negatives: WeightedScores,
    nu: float,
    hardest: float = 1.0,
    *,
    width: float,
) -> Tail:
    """Compute the tail of scores rounded to bins, in O(n): for many more samples than bins.

    Its masses belong to a feasible q, so a bound computed from them is valid; `mean` is that of the
    rounded scores, with an error of at most `width`.
    """
    low = min(positives.scores.min(), negatives.scores.min())
    high = max(positives.scores.max(), negatives.scores.max())
    n_bins = int((high - low) / width) + 1
    positive_bins = ((positives.scores - low) * (1 / width)).astype(np.int32)
    negative_bins = ((negatives.scores - low) * (1 / width)).astype(np.int32)
    a = _sum_by_bin(positive_bins, positives.weights, n_bins + 1)
    b = _sum_by_bin(negative_bins, negatives.weights, n_bins + 1)
    centres = low + width * (np.arange(n_bins + 1) + 0.5)
    tail = tail_of_bins(centres, a, b, nu, hardest, width)
    return Tail(
        tail.rho,
        float((tail.per_positive * a - tail.per_negative * b) @ centres),
        tail.per_positive[positive_bins] * positives.weights,
        tail.per_negative[negative_bins] * negatives.weights,
        tail.n_pairs,
    )


def tail_of_bins(
    centres: Floats, a: Floats, b: Floats, nu: float, hardest: float, width: float
) -> BinTail:
    """Compute the tail from the weights of both classes in bins.

    Parameters
    ----------
    centres : ndarray of shape (n_bins,)
        Centres of the bins, increasing.
    a, b : ndarray of shape (n_bins,)
        Weights of the positives and of the negatives, each with sum 1.
    nu, hardest
        As in `exact_tail`.
    width : float
        Width of a bin.
    """
    rho, per_positive, mass, n_pairs = _sorted_tail(
        centres, a, centres, keep_hardest(b, hardest), nu, precision=width / 4
    )
    per_negative = np.divide(mass, b, out=np.zeros_like(b), where=b > 0)
    return BinTail(rho, per_positive, per_negative, n_pairs)


def hardest_weights(negatives: WeightedScores, hardest: float) -> Floats:
    """Return the negatives' weights with 0 for all but the hardest ones, scaled to sum 1."""
    order = np.argsort(negatives.scores)
    kept = np.empty_like(negatives.weights)
    kept[order] = keep_hardest(negatives.weights[order], hardest)
    return kept


def keep_hardest(b: Floats, hardest: float) -> Floats:
    """Return `hardest_weights` for weights in increasing order of the scores."""
    if hardest == 1:
        return b
    above = np.cumsum(b[::-1])[::-1]  # includes the sample itself
    part: Floats = np.clip(hardest - (above - b), 0, b)
    return np.asarray(part / part.sum())


def fraction_up_to(
    margin: float, positives: WeightedScores, negatives: WeightedScores, hardest: float = 1.0
) -> float:
    """Return the fraction of the pairs, by weight, with a margin of at most `margin`."""
    order = np.argsort(negatives.scores)
    above = _sums_from(keep_hardest(negatives.weights[order], hardest))
    first = np.searchsorted(negatives.scores[order], positives.scores - margin, "left")
    return float(positives.weights @ above[first])


def standard_error(
    positives: WeightedScores,
    negatives: WeightedScores,
    nu: float,
    hardest: float = 1.0,
    fractions: tuple[float, float] = (1.0, 1.0),
) -> float:
    """Return the standard error of the mean margin of the tail.

    φ is a mean over positives and over negatives of their contributions to the hinge
    ``(ρ - m_ik)₊ / ν``. The two classes are drawn independently, so their variances add. Which
    negatives are the hardest is random too: each contributes the amount by which it exceeds the
    last of them. If the samples are `fractions` of both classes, drawn from all samples, the result
    is the error for all of them.
    """
    rho = exact_tail(positives, negatives, nu, hardest).rho
    kept = hardest_weights(negatives, hardest)
    x, a, z = positives.scores, positives.weights, negatives.scores
    of_positives = _hinges(x, z, kept, rho) / nu
    of_negatives = _hinges(-z, -x, a, rho) / nu  # with opposite signs a negative is a positive
    beyond = np.maximum(of_negatives - of_negatives[kept > 0].min(), 0) / hardest
    variances = _variance_of_mean(of_positives, a), _variance_of_mean(beyond, negatives.weights)
    return float(np.sqrt(fractions[0] * variances[0] + fractions[1] * variances[1]))


def _hinges(x: Floats, z: Floats, b: Floats, rho: float) -> Floats:
    """Return ``Σ_k b_k (ρ - (x_i - z_k))₊`` for each i."""
    order = np.argsort(z)
    above, sums = _sums_from(b[order]), _sums_from((b * z)[order])
    first = np.searchsorted(z[order], x - rho, "right")
    hinges: Floats = (rho - x) * above[first] + sums[first]
    return hinges


def _variance_of_mean(values: Floats, weights: Floats) -> float:
    mean = weights @ values
    return float(weights**2 @ (values - mean) ** 2)


def _sum_by_bin(bins: AnyInts, weights: Floats, n_bins: int) -> Floats:
    """Return the sum of the weights in each bin."""
    sums: Floats = np.bincount(bins, weights=weights, minlength=n_bins).astype(np.float64)
    return sums


def _sums_from(values: Floats) -> Floats:
    """Return the sum of the values from each position on, and 0 after the last."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def _sorted_tail(
    x: Floats, a: Floats, z: Floats, b: Floats, nu: float, precision: float = 0.0
) -> tuple[float, Floats, Floats, int]:
    """Return rho, the positives' mass per unit of weight, the negatives' mass, and n_pairs.

    Both classes are in increasing order of their scores.

    The pairs of positive i with a margin below rho are those with the negatives from some position
    on. `inner` has these positions for a rho with a fraction below ν, `outer` for one above; a
    mixture of both has exactly ν.
    """
    above = _sums_from(b)
    size = max(abs(x[0]), abs(x[-1]), abs(z[0]), abs(z[-1]))
    rounding = 8 * np.finfo(np.float64).eps * size
    low, high = x[0] - z[-1] - rounding, x[-1] - z[0] + rounding
    inner, less = np.full(len(x), len(z)), 0.0
    outer, more = np.zeros(len(x), dtype=np.int64), 1.0
    steps = 0
    while high - low > max(rounding, precision) and (high - low) * (more - less) > _PRECISION * nu:
        steps += 1
        if steps % 3:  # where the fraction would be ν if it increased linearly
            rho = low + (high - low) * min(max((nu - less) / (more - less), 0.02), 0.98)
        else:
            rho = (low + high) / 2
        first = np.searchsorted(z, x - rho, "right")
        fraction = float((a * above[first]).sum())
        if fraction < nu * (1 - _ROUNDING):
            low, inner, less = rho, first, fraction
        else:
            high, outer, more = rho, first, fraction
    mix = min((nu - less) / (more - less), 1.0) if more > less else 1.0
    per_positive = ((1 - mix) * above[inner] + mix * above[outer]) / nu
    # Negative k has pairs in the tail with the positives whose first position is at most k.
    starts = (1 - mix) * _sum_by_bin(inner, a, len(z) + 1) + mix * _sum_by_bin(outer, a, len(z) + 1)
    negative_mass = np.cumsum(starts)[:-1] * b / nu
    # The first negative of each positive has the largest of its margins in the tail.
    begins = np.maximum(outer, int(np.argmax(b > 0)))
    some = begins < len(z)
    rho = float((x[some] - z[begins[some]]).max())
    return rho, per_positive, negative_mass, int((len(z) - begins).sum())
