"""The tail of the crucial pairs: the worst share ν of them, under one score.

"A Linear Combination of Classifiers via Rank Margin Maximization" (Marrocco et al.) asks for the
worst pair, equation (1); its future work for slack. Both are the mean margin of the worst share ν
of all pairs,

    φ = max_ρ  ρ - 1/ν Σ_ik a_i b_k (ρ - m_ik)₊ = min_q Σ_ik q_ik m_ik,

with m_ik = s_i - s_k, sample weights a and b that sum to 1 in each class, and q over the pairs with
0 <= q_ik <= a_i b_k / ν and sum 1. The best q fills the pairs below ρ and a part of those at ρ; its
sums over rows and columns, a mass per sample, are all that is needed. Sorting both sides gives
them in O(n log n) without making the pairs.

With `hardest` below 1 only the negatives with the highest scores count, that share of them: they
are the ones that become false alarms first. Leaving a negative out only raises the mean, so φ is
still a minimum of linear functions, and concave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats

# What a mean margin may be off by, because the search for rho ends.
_PRECISION = 1e-13
# Sums of weights this close, relatively, are equal.
_SHARE_ROUNDING = 1e-12


@dataclass(frozen=True)
class Side:
    """The samples of one class: scores, and weights that sum to 1."""

    scores: Floats
    weights: Floats


@dataclass(frozen=True)
class Tail:
    """The worst share of the pairs.

    Attributes
    ----------
    rho : float
        The largest margin in the tail.
    mean : float
        The mean margin in the tail, φ.
    positive_mass, negative_mass : ndarray
        How much of the tail each sample takes part in; each sums to 1.
    n_pairs : int
        Number of pairs with a margin of at most `rho`.
    """

    rho: float
    mean: float
    positive_mass: Floats
    negative_mass: Floats
    n_pairs: int


def exact_tail(
    positives: Side,
    negatives: Side,
    nu: float,
    hardest: float = 1.0,
) -> Tail:
    """The tail of the pairs as they are.

    Parameters
    ----------
    positives, negatives : Side
        The samples.
    nu : float in (0, 1]
        The share of the pairs that is the tail.
    hardest : float in (0, 1]
        The share of the negatives, by weight, whose pairs count.
    """
    by_positive, by_negative = np.argsort(positives.scores), np.argsort(negatives.scores)
    x, a = positives.scores[by_positive], positives.weights[by_positive]
    z, b = negatives.scores[by_negative], negatives.weights[by_negative]
    rho, per_positive, per_negative, n_pairs = _sorted_tail(x, a, z, kept_weights(b, hardest), nu)
    positive_mass, negative_mass = np.empty_like(x), np.empty_like(z)
    positive_mass[by_positive] = per_positive * a
    negative_mass[by_negative] = per_negative
    mean = float(positive_mass @ positives.scores - negative_mass @ negatives.scores)
    return Tail(rho, mean, positive_mass, negative_mass, n_pairs)


def hardest_weights(negatives: Side, hardest: float) -> Floats:
    """Weights of the negatives that count, in the order given: 0 for the others, of sum 1."""
    order = np.argsort(negatives.scores)
    kept = np.empty_like(negatives.weights)
    kept[order] = kept_weights(negatives.weights[order], hardest)
    return kept


def mass_up_to(margin: float, positives: Side, negatives: Side, hardest: float = 1.0) -> float:
    """Share of the pairs, by weight, with a margin of at most `margin`."""
    order = np.argsort(negatives.scores)
    kept = kept_weights(negatives.weights[order], hardest)
    above = np.append(np.cumsum(kept[::-1])[::-1], 0.0)
    first = np.searchsorted(negatives.scores[order], positives.scores - margin, "left")
    return float(positives.weights @ above[first])


def standard_error(
    positives: Side,
    negatives: Side,
    nu: float,
    hardest: float = 1.0,
    shares: tuple[float, float] = (1.0, 1.0),
) -> float:
    """How far the mean margin of the tail may be from that of the population, one standard error.

    φ is a mean over positives and over negatives of what they add to the hinge
    ``(ρ - m_ik)₊ / ν``; the two classes are drawn apart, so their variances add. Which negatives
    are the hardest is chance too: one of them counts for what it adds beyond the last of them.
    Where these are a share of the samples, drawn from all, the error is that of all.
    """
    rho = exact_tail(positives, negatives, nu, hardest).rho
    kept = hardest_weights(negatives, hardest)
    x, a, z = positives.scores, positives.weights, negatives.scores
    of_positives = _hinges(x, z, kept, rho) / nu
    of_negatives = _hinges(-z, -x, a, rho) / nu  # seen upside down, a negative is a positive
    beyond = np.maximum(of_negatives - of_negatives[kept > 0].min(), 0) / hardest
    variances = _variance_of_mean(of_positives, a), _variance_of_mean(beyond, negatives.weights)
    return float(np.sqrt(shares[0] * variances[0] + shares[1] * variances[1]))


def _hinges(x: Floats, z: Floats, b: Floats, rho: float) -> Floats:
    """``Σ_k b_k (ρ - (x_i - z_k))₊`` for each i."""
    order = np.argsort(z)
    above = np.append(np.cumsum(b[order][::-1])[::-1], 0.0)
    sums = np.append(np.cumsum((b * z)[order][::-1])[::-1], 0.0)
    at = np.searchsorted(z[order], x - rho, "right")
    hinges: Floats = (rho - x) * above[at] + sums[at]
    return hinges


def _variance_of_mean(values: Floats, weights: Floats) -> float:
    mean = weights @ values
    return float(weights**2 @ (values - mean) ** 2)


def binned_tail(
    positives: Side, negatives: Side, nu: float, hardest: float = 1.0, *, width: float
) -> Tail:
    """The tail with scores rounded to bins, in O(n): fast where bins are far fewer than samples.

    Its masses are those of some q that is allowed, so that a bound made from them holds; `mean` is
    that of the rounded scores, off by at most `width`.
    """
    low = min(positives.scores.min(), negatives.scores.min())
    high = max(positives.scores.max(), negatives.scores.max())
    n_bins = int((high - low) / width) + 1
    at_positive = ((positives.scores - low) * (1 / width)).astype(np.int32)
    at_negative = ((negatives.scores - low) * (1 / width)).astype(np.int32)
    a = _mass_at(at_positive, positives.weights, n_bins + 1)
    b = _mass_at(at_negative, negatives.weights, n_bins + 1)
    centres = low + width * (np.arange(n_bins + 1) + 0.5)
    rho, n_pairs, per_positive, per_negative = bin_tail(centres, a, b, nu, hardest, width)
    mean = float((per_positive * a - per_negative * b) @ centres)
    return Tail(
        rho,
        mean,
        per_positive[at_positive] * positives.weights,
        per_negative[at_negative] * negatives.weights,
        n_pairs,
    )


def bin_tail(
    centres: Floats, a: Floats, b: Floats, nu: float, hardest: float, width: float
) -> tuple[float, int, Floats, Floats]:
    """Rho, pairs in the tail, and mass per unit of weight of positives and negatives in each bin.

    Parameters
    ----------
    centres : ndarray of shape (n_bins,)
        Of the bins, rising.
    a, b : ndarray of shape (n_bins,)
        Weights of the positives and of the negatives, each of sum 1.
    nu, hardest
        As in `exact_tail`.
    width : float
        Of a bin.
    """
    rho, per_positive, per_negative, n_pairs = _sorted_tail(
        centres, a, centres, kept_weights(b, hardest), nu, precision=width / 4
    )
    per_negative = np.divide(per_negative, b, out=np.zeros_like(b), where=b > 0)
    return rho, n_pairs, per_positive, per_negative


def _mass_at(places: NDArray[np.signedinteger[Any]], weights: Floats, n_places: int) -> Floats:
    """The sum of the weights at each place."""
    mass: Floats = np.bincount(places, weights=weights, minlength=n_places).astype(np.float64)
    return mass


def kept_weights(b: Floats, hardest: float) -> Floats:
    """Weights of the negatives in rising order of score, only the hardest ones, summing to 1."""
    if hardest == 1:
        return b
    above = np.cumsum(b[::-1])[::-1]  # with the sample itself
    part: Floats = np.clip(hardest - (above - b), 0, b)
    return np.asarray(part / part.sum())


def _sorted_tail(
    x: Floats,
    a: Floats,
    z: Floats,
    b: Floats,
    nu: float,
    precision: float = 0.0,
) -> tuple[float, Floats, Floats, int]:
    """Rho, mass per unit of weight of each sorted positive, mass of each negative, pairs in it.

    The pairs of positive i with a margin below rho are those with the negatives from some place
    on. `inner` holds these places for a rho with less than ν below it, `outer` for one with more;
    a mixture of both has exactly ν.
    """
    above = np.append(np.cumsum(b[::-1])[::-1], 0.0)  # above[k]: weight from place k on
    size = max(abs(x[0]), abs(x[-1]), abs(z[0]), abs(z[-1]))
    rounding = 8 * np.finfo(np.float64).eps * size
    low, high = x[0] - z[-1] - rounding, x[-1] - z[0] + rounding
    inner, less = np.full(len(x), len(z)), 0.0
    outer, more = np.zeros(len(x), dtype=np.int64), 1.0
    steps = 0
    while high - low > max(rounding, precision) and (high - low) * (more - less) > _PRECISION * nu:
        steps += 1
        if steps % 3:  # where the mass would be ν if it grew evenly
            rho = low + (high - low) * min(max((nu - less) / (more - less), 0.02), 0.98)
        else:
            rho = (low + high) / 2
        found = np.searchsorted(z, x - rho, "right")
        mass = float((a * above[found]).sum())
        if mass < nu * (1 - _SHARE_ROUNDING):
            low, inner, less = rho, found, mass
        else:
            high, outer, more = rho, found, mass
    share = min((nu - less) / (more - less), 1.0) if more > less else 1.0
    per_positive = ((1 - share) * above[inner] + share * above[outer]) / nu
    # Seen from the other side, negative k is in the tail with the positives that reach down to it.
    reach = (1 - share) * _mass_at(inner, a, len(z) + 1) + share * _mass_at(outer, a, len(z) + 1)
    per_negative = np.cumsum(reach)[:-1] * b / nu
    # From here on positives have pairs in the tail; the first of them has the largest margin.
    begins = np.maximum(outer, int(np.argmax(b > 0)))
    some = begins < len(z)
    rho = float((x[some] - z[begins[some]]).max())
    return rho, per_positive, per_negative, int((len(z) - begins).sum())
