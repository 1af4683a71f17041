"""Where to cut a score in two: thresholds between values, and the fairest of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats, Ints

# Differences below this, as a share, come from rounding.
_SAME_SCORE = 1e-9


def midpoint(low: float, high: float) -> float:
    """A number t with low ≤ t < high, halfway if there is one: x > t tells the two apart."""
    halfway = low / 2 + high / 2  # low + high may overflow
    # Between neighbouring floats it rounds to either end, and below the smallest ones past them.
    return halfway if low <= halfway < high else low


def balanced_threshold(scores: Floats, u: Floats, v: Floats) -> float:
    """The cut with the largest balanced accuracy, in the middle between two scores.

    Of equals the one in the widest gap, then the lowest; all samples are on one side only if no
    other cut is as good.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Larger for positives.
    u, v : ndarray of shape (n,)
        Weights of the positives and of the negatives, 0 for the others, each of sum 1.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    span = ordered[-1] - ordered[0]
    gaps = np.concatenate([[0.0], np.diff(ordered), [0.0]])  # before, between and after them
    # 2 · balanced accuracy − 1: the negatives below a cut less the positives there.
    gain = np.append(0.0, np.cumsum((v - u)[order]))
    are_separated = gaps > _SAME_SCORE * span
    are_separated[[0, -1]] = True
    gain[~are_separated] = -np.inf
    best = np.flatnonzero(gain >= gain.max() - _SAME_SCORE)
    place = int(best[np.argmax(gaps[best] >= gaps[best].max() - _SAME_SCORE * span)])
    if place in (0, len(ordered)):
        return float(ordered[0] - 1 if place == 0 else ordered[-1] + 1)
    return midpoint(float(ordered[place - 1]), float(ordered[place]))


# Scores nearer than this, as a share of them, may be equal but for rounding: no cut there.
_TIE, _TINY = 1e-9, 1e-12


def are_separated(values: Floats) -> NDArray[np.bool_]:
    """Whether neighbours of sorted values differ by more than rounding: a cut fits between."""
    far = np.abs(values)
    return np.asarray(np.diff(values) > _TIE * np.maximum(far[1:], far[:-1]) + _TINY)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many samples of two kinds are in runs of neighbouring scores; cuts lie between runs.

    Attributes
    ----------
    lows, highs : ndarray of shape (n_runs,)
        The smallest and the largest score of each run, rising.
    counts : ndarray of shape (n_runs, 2)
        Its negatives and its positives.
    """

    lows: Floats
    highs: Floats
    counts: Ints

    @classmethod
    def of(cls, scores: Floats, codes: Any, times: Ints | None = None) -> Tally:
        """Scores of samples of the kinds 0 and 1; each stands for one sample, or for several."""
        values, place = np.unique(scores, return_inverse=True)
        counts = np.bincount(place * 2 + codes, times, 2 * len(values))
        return cls(values, values, counts.astype(np.int64).reshape(-1, 2))

    @cached_property
    def thresholds(self) -> Floats:
        """Cuts below, between and above the runs, rising."""
        low, high = self.highs[:-1], self.lows[1:]
        thresholds = low / 2 + high / 2  # low + high may overflow
        thresholds = np.where(
            (low <= thresholds) & (thresholds < high), thresholds, low
        )  # between neighbouring floats
        bottom = min(self.lows[0] - 1, np.nextafter(self.lows[0], -np.inf))
        return np.concatenate([[bottom], thresholds, [self.highs[-1] + 1]])

    @cached_property
    def under(self) -> Ints:
        """Negatives and positives up to each cut."""
        return np.vstack([np.zeros(2, dtype=np.int64), np.cumsum(self.counts, axis=0)])

    def upto(self, threshold: float) -> Ints:
        """Negatives and positives up to a cut that is within no run."""
        found: Ints = self.under[np.searchsorted(self.highs, threshold, "right")]
        return found

    @property
    def resolution(self) -> tuple[float, float]:
        """The largest run of different scores, as a share of the negatives and of the positives."""
        within = self.counts[self.lows < self.highs]
        steps = within.max(axis=0, initial=0) / np.maximum(self.under[-1], 1)
        return float(steps[0]), float(steps[1])
