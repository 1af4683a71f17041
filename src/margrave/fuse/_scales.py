"""Members' scores on one scale in [-1, 1], learned on tuning data and kept for new data.

"A Linear Combination of Classifiers via Rank Margin Maximization" combines scores in [-1, 1] and
does not say how they come there. It matters more than the share ν: margins are compared across
members, and the worst pairs favour a member that says little, whether or not it knows much. So the
default, "logit", gives every member the same mean margin over the crucial pairs; what is left to
differ is how far the bad pairs are from the mean. The four scales:

- "logit": log-odds of probabilities, decision values as they are, divided by the member's mean
  margin, then all by one number; a margin that is small beside the member's own spread is raised
  to a tenth of the best ratio of the two, so that noise does not come out loud, nor a member
  that hardly says anything quiet, whatever the units;
- "probability": 2p - 1, the document's way; decision values are divided by the largest size;
- "rank": the share of the tuning samples below, less the share above;
- "decision": from the smallest to the largest value on the tuning data.

Log-odds calibrated member by member, as Platt does, were tried first. Calibration is a line too,
and leaves a poor member quiet: the weights then depended much on ν, which with equal mean margins
they do little, and on fourteen data sets the committee ranked worse.

Raw values are those of :meth:`margrave.Scores.raw`: 2p - 1 for probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave._typing import Flags, Floats
from margrave.scores import replace_by_log_odds

SCALES = ("logit", "probability", "rank", "decision")
# A member whose mean margin, in units of its spread, is below this share of the best one's is
# scaled as if it had that much.
_LEAST_MARGIN = 0.1
_ROUNDING = 1e-12
# Enough for the empirical distribution of any number of tuning samples.
_MOST_KNOTS = 2001


@dataclass(frozen=True)
class LineScale:
    """``slope · (x - centre)``, clipped to [-1, 1], with x a raw value or its log-odds.

    Attributes
    ----------
    log_odds : ndarray of bool, shape (K,)
        Which members' values are probabilities to be turned into log-odds.
    slope, centre : ndarray of shape (K,)
        The lines.
    """

    log_odds: Flags
    slope: Floats
    centre: Floats

    def __call__(self, raw: Floats) -> Floats:
        """Scale the values of shape (n, K); what a member cannot say (NaN) becomes -1."""
        values = self.slope * (replace_by_log_odds(raw, self.log_odds) - self.centre)
        return np.nan_to_num(np.clip(values, -1, 1), nan=-1.0)


@dataclass(frozen=True)
class RankScale:
    """The empirical distribution of the tuning data, from -1 to 1, linear between its values.

    Attributes
    ----------
    knots, shares : tuple of ndarray
        For each member, values and what they become.
    """

    knots: tuple[Floats, ...]
    shares: tuple[Floats, ...]

    def __call__(self, raw: Floats) -> Floats:
        """Scale the values of shape (n, K); what a member cannot say (NaN) becomes -1."""
        scaled = np.empty_like(raw)
        for j, (knots, shares) in enumerate(zip(self.knots, self.shares, strict=True)):
            scaled[:, j] = np.interp(raw[:, j], knots, shares)
        scaled[np.isnan(raw)] = -1.0
        return scaled


def learn_scale(
    name: str, raw: Floats, probabilities: Flags, positive: Flags, weight: Floats
) -> LineScale | RankScale:
    """Learn one of `SCALES` on tuning data.

    Parameters
    ----------
    name : str
        The scale.
    raw : ndarray of shape (n, K)
        The members' values toward the positive class.
    probabilities : ndarray of bool, shape (K,)
        Which members give probabilities, as 2p - 1.
    positive : ndarray of bool, shape (n,)
        The positive samples.
    weight : ndarray of shape (n,)
        Sample weights.
    """
    lowest = np.nan_to_num(np.fmin.reduce(raw, axis=0))
    known = np.where(np.isnan(raw), lowest, raw)
    if name == "rank":
        columns = [_distribution(column, weight) for column in known.T]
        return RankScale(*(tuple(part) for part in zip(*columns, strict=True)))
    low, high = known.min(axis=0), known.max(axis=0)
    if name != "logit":
        return range_scale(name, low, high, probabilities)
    values = replace_by_log_odds(known, probabilities)
    means = [np.average(values[of], axis=0, weights=weight[of]) for of in (positive, ~positive)]
    variance = np.average((values - (means[0] + means[1]) / 2) ** 2, axis=0, weights=weight)
    return logit_scale(low, high, probabilities, (means[0], means[1]), variance)


def range_scale(name: str, low: Floats, high: Floats, probabilities: Flags) -> LineScale:
    """The scale "probability" or "decision", from the smallest and the largest raw values."""
    no_log_odds = np.zeros_like(probabilities)
    if name == "decision":
        return _line(no_log_odds, (low + high) / 2, (high - low) / 2)
    sizes = np.where(probabilities, 1.0, np.maximum(np.abs(low), np.abs(high)))
    return _line(no_log_odds, np.zeros(len(low)), sizes)


def logit_scale(
    low: Floats, high: Floats, probabilities: Flags, means: tuple[Floats, Floats], variance: Floats
) -> LineScale:
    """The scale "logit".

    Parameters
    ----------
    low, high : ndarray of shape (K,)
        The smallest and the largest raw value of each member.
    probabilities : ndarray of bool, shape (K,)
        Which members give probabilities.
    means : tuple of ndarray
        The mean log-odds of the positives, and of the negatives.
    variance : ndarray of shape (K,)
        Of the log-odds around the middle of both means.
    """
    low, high = (replace_by_log_odds(one[None, :], probabilities)[0] for one in (low, high))
    centre, margin = (means[0] + means[1]) / 2, means[0] - means[1]
    speaking = low < high
    spread = np.where(speaking, np.sqrt(variance), 0.0)
    ratio = np.divide(margin, spread, out=np.zeros_like(spread), where=spread > 0)
    ratio[np.abs(ratio) < _ROUNDING] = 0.0  # equal means, added up in another order
    least = _LEAST_MARGIN * ratio.max()
    # If no member is better than chance, their spreads are made equal.
    margin = np.maximum(ratio, least) * spread if least > 0 else spread
    farthest = np.maximum(np.abs(low - centre), np.abs(high - centre))
    sizes = margin * (farthest / np.where(margin > 0, margin, 1)).max()
    return _line(probabilities, centre, sizes)


def _line(log_odds: Flags, centre: Floats, sizes: Floats) -> LineScale:
    """``(x - centre) / size``; a member that says nothing has the size 0 and stays at 0."""
    slope = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return LineScale(log_odds, slope, centre)


def _distribution(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Values and the mid-distribution at them: share below less share above."""
    knots, place = np.unique(values, return_inverse=True)
    return mid_distribution(knots, np.bincount(place, weights=weight).astype(np.float64))


def mid_distribution(knots: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The same of rising values with their weights."""
    mass = weight / weight.sum()
    shares = 2 * np.cumsum(mass) - mass - 1
    if len(knots) > _MOST_KNOTS:
        kept = np.unique(np.searchsorted(shares, np.linspace(shares[0], shares[-1], _MOST_KNOTS)))
        knots, shares = knots[kept], shares[kept]
    return knots, shares
