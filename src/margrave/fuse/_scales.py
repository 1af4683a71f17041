"""Members' scores on one scale in [-1, 1], learned on the tuning set and kept for new data.

Marrocco et al. (2010) combine scores in [-1, 1] and leave open how to compute them. The scale
matters more than the fraction ν: margins are compared across members, and the worst pairs favour a
member whose scores vary little, whether or not it is good. So the default, "logit", gives every
member the same mean margin over the crucial pairs; members then differ only in how far their bad
pairs are from the mean. The four scales:

- "logit": log-odds of probabilities, decision values as they are, divided by the member's mean
  margin, then all by one number. A mean margin that is small relative to the member's own spread is
  raised to a tenth of the best ratio of the two, whatever the units, so that noise is not amplified
  and a weak member is not reduced to nothing;
- "probability": 2p - 1, as in the paper; decision values are divided by the largest size;
- "rank": the fraction of the tuning set below, minus the fraction above;
- "decision": from the smallest to the largest value in the tuning set.

Log-odds calibrated member by member (Platt, 1999) leave the scores of a poor member small: the
weights then depended much on ν, and on fourteen data sets the committee ranked worse.

Raw values are those of :meth:`margrave.Scores.raw`: 2p - 1 for probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from margrave._typing import Flags, Floats
from margrave.scores import replace_by_log_odds

SCALES = ("logit", "probability", "rank", "decision")
# The smallest ratio of mean margin and spread, as a fraction of the best member's ratio.
_MIN_RATIO = 0.1
_ROUNDING = 1e-12
# Enough for the empirical distribution of a tuning set of any size.
_MAX_KNOTS = 2001


@dataclass(frozen=True)
class LinearScale:
    """``slope · (x - centre)``, clipped to [-1, 1], where x is a raw value or its log-odds.

    Attributes
    ----------
    log_odds : ndarray of bool, shape (K,)
        Which members have probabilities to convert to log-odds.
    slope, centre : ndarray of shape (K,)
        The coefficients of each member.
    """

    log_odds: Flags
    slope: Floats
    centre: Floats

    def __call__(self, raw: Floats) -> Floats:
        """Scale values of shape (n, K); NaN, for a class unknown to a member, becomes -1."""
        values = self.slope * (replace_by_log_odds(raw, self.log_odds) - self.centre)
        return np.nan_to_num(np.clip(values, -1, 1), nan=-1.0)


@dataclass(frozen=True)
class RankScale:
    """The empirical distribution of the tuning set, from -1 to 1, linear between its values.

    Attributes
    ----------
    knots, ranks : tuple of ndarray
        For each member, values and their ranks in [-1, 1].
    """

    knots: tuple[Floats, ...]
    ranks: tuple[Floats, ...]

    @classmethod
    def of(cls, columns: Iterable[tuple[Floats, Floats]]) -> RankScale:
        """Learn the scale from increasing values with their weights, for each member.

        The rank of a value is its mid-rank: the weight below minus the weight above.
        """
        all_knots, all_ranks = [], []
        for knots, weight in columns:
            mass = weight / weight.sum()
            ranks = 2 * np.cumsum(mass) - mass - 1
            if len(knots) > _MAX_KNOTS:
                even = np.linspace(ranks[0], ranks[-1], _MAX_KNOTS)
                kept = np.unique(np.searchsorted(ranks, even))
                knots, ranks = knots[kept], ranks[kept]
            all_knots.append(knots)
            all_ranks.append(ranks)
        return cls(tuple(all_knots), tuple(all_ranks))

    def __call__(self, raw: Floats) -> Floats:
        """Scale values of shape (n, K); NaN, for a class unknown to a member, becomes -1."""
        scaled = np.empty_like(raw)
        for j, (knots, ranks) in enumerate(zip(self.knots, self.ranks, strict=True)):
            scaled[:, j] = np.interp(raw[:, j], knots, ranks)
        scaled[np.isnan(raw)] = -1.0
        return scaled


def learn_scale(
    name: str, raw: Floats, probabilities: Flags, positive: Flags, weight: Floats
) -> LinearScale | RankScale:
    """Learn one of `SCALES` on the tuning set.

    Parameters
    ----------
    name : str
        The scale.
    raw : ndarray of shape (n, K)
        The members' values for the positive class.
    probabilities : ndarray of bool, shape (K,)
        Which members have probabilities, as 2p - 1.
    positive : ndarray of bool, shape (n,)
        The positive samples.
    weight : ndarray of shape (n,)
        Sample weights.
    """
    if name == "logit":
        return learn_logit_scale(raw, probabilities, positive, weight)
    known = _replace_unknown(raw)
    if name == "rank":
        return RankScale.of(_sum_by_value(column, weight) for column in known.T)
    return range_scale(name, known.min(axis=0), known.max(axis=0), probabilities)


def learn_logit_scale(
    raw: Floats, probabilities: Flags, positive: Flags, weight: Floats
) -> LinearScale:
    """Learn the scale "logit", as `learn_scale` does."""
    known = _replace_unknown(raw)
    values = replace_by_log_odds(known, probabilities)
    means = [np.average(values[of], axis=0, weights=weight[of]) for of in (positive, ~positive)]
    variance = np.average((values - (means[0] + means[1]) / 2) ** 2, axis=0, weights=weight)
    low, high = known.min(axis=0), known.max(axis=0)
    return logit_scale(low, high, probabilities, (means[0], means[1]), variance)


def _replace_unknown(raw: Floats) -> Floats:
    """Return raw values with the member's lowest in place of NaN, for a class unknown to it."""
    lowest = np.nan_to_num(np.fmin.reduce(raw, axis=0))
    return np.where(np.isnan(raw), lowest, raw)


def range_scale(name: str, low: Floats, high: Floats, probabilities: Flags) -> LinearScale:
    """Return the scale "probability" or "decision", from the range of the raw values."""
    no_log_odds = np.zeros_like(probabilities)
    if name == "decision":
        return _divide(no_log_odds, (low + high) / 2, (high - low) / 2)
    sizes = np.where(probabilities, 1.0, np.maximum(np.abs(low), np.abs(high)))
    return _divide(no_log_odds, np.zeros(len(low)), sizes)


def logit_scale(
    low: Floats, high: Floats, probabilities: Flags, means: tuple[Floats, Floats], variance: Floats
) -> LinearScale:
    """Return the scale "logit".

    Parameters
    ----------
    low, high : ndarray of shape (K,)
        The range of each member's raw values.
    probabilities : ndarray of bool, shape (K,)
        Which members have probabilities.
    means : tuple of ndarray
        The mean log-odds of the positives, and of the negatives.
    variance : ndarray of shape (K,)
        The variance of the log-odds around the middle of both means.
    """
    low, high = (replace_by_log_odds(one[None, :], probabilities)[0] for one in (low, high))
    centre, margin = (means[0] + means[1]) / 2, means[0] - means[1]
    spread = np.where(low < high, np.sqrt(variance), 0.0)
    ratio = np.divide(margin, spread, out=np.zeros_like(spread), where=spread > 0)
    ratio[np.abs(ratio) < _ROUNDING] = 0.0  # equal means, summed in another order
    least = _MIN_RATIO * ratio.max()
    # If no member is better than chance, all get the same spread.
    margin = np.maximum(ratio, least) * spread if least > 0 else spread
    farthest = np.maximum(np.abs(low - centre), np.abs(high - centre))
    sizes = margin * (farthest / np.where(margin > 0, margin, 1)).max()
    return _divide(probabilities, centre, sizes)


def _divide(log_odds: Flags, centre: Floats, sizes: Floats) -> LinearScale:
    """Return ``(x - centre) / size``; a constant member has the size 0, and its scores are 0."""
    slope = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return LinearScale(log_odds, slope, centre)


def _sum_by_value(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values in increasing order, and the weight of each."""
    distinct, codes = np.unique(values, return_inverse=True)
    return distinct, np.bincount(codes, weights=weight).astype(np.float64)
