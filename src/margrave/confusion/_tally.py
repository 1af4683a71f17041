"""Tally of a score: counts on both sides of every threshold, and the balanced threshold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats, Ints

# Relative differences below this come from rounding.
_SAME_SCORE = 1e-9


def midpoint(low: float, high: float) -> float:
    """Give a t with low ≤ t < high, halfway if a float is: x > t separates high from low."""
    halfway = low / 2 + high / 2  # low + high may overflow
    # Between neighbouring floats it rounds to either end, near the smallest floats also past them.
    return halfway if low <= halfway < high else low


def balanced_threshold(scores: Floats, u: Floats, v: Floats) -> float:
    """Find the threshold of largest balanced accuracy, halfway between two scores.

    Among equals it is the one in the widest gap, then the lowest. All samples are on one side of it
    only if no other threshold is as good.

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
    # 2 · balanced accuracy − 1: weight of the negatives below, less that of the positives below.
    gain = np.append(0.0, np.cumsum((v - u)[order]))
    separated = gaps > _SAME_SCORE * span
    separated[[0, -1]] = True
    gain[~separated] = -np.inf
    best = np.flatnonzero(gain >= gain.max() - _SAME_SCORE)
    position = int(best[np.argmax(gaps[best] >= gaps[best].max() - _SAME_SCORE * span)])
    if position in (0, len(ordered)):
        return float(ordered[0] - 1 if position == 0 else ordered[-1] + 1)
    return midpoint(float(ordered[position - 1]), float(ordered[position]))


# Scores that differ by less, relative and absolute, may be equal but for rounding: no threshold
# separates them.
_TIE, _TINY = 1e-9, 1e-12


def are_separated(values: Floats) -> NDArray[np.bool_]:
    """Whether neighbours of sorted values differ by more than rounding, so a threshold fits."""
    size = np.abs(values)
    return np.asarray(np.diff(values) > _TIE * np.maximum(size[1:], size[:-1]) + _TINY)


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of two classes in runs of neighbouring scores; thresholds lie between runs.

    Attributes
    ----------
    lows, highs : ndarray of shape (n_runs,)
        The smallest and the largest score of each run, ascending.
    counts : ndarray of shape (n_runs, 2)
        The negatives and the positives of each run.
    """

    lows: Floats
    highs: Floats
    counts: Ints

    @classmethod
    def of(cls, scores: Floats, codes: Any, times: Ints | None = None) -> Tally:
        """Count samples of the classes 0 and 1 by score; ``times`` repeats them."""
        values, position = np.unique(scores, return_inverse=True)
        counts = np.bincount(position * 2 + codes, times, 2 * len(values))
        return cls(values, values, counts.astype(np.int64).reshape(-1, 2))

    @cached_property
    def thresholds(self) -> Floats:
        """Thresholds below, between and above the runs, ascending."""
        low, high = self.highs[:-1], self.lows[1:]
        halfway = low / 2 + high / 2  # as in midpoint
        between = np.where((low <= halfway) & (halfway < high), halfway, low)
        bottom = min(self.lows[0] - 1, np.nextafter(self.lows[0], -np.inf))
        return np.concatenate([[bottom], between, [self.highs[-1] + 1]])

    @cached_property
    def under(self) -> Ints:
        """Negatives and positives up to each threshold."""
        return np.vstack([np.zeros(2, dtype=np.int64), np.cumsum(self.counts, axis=0)])

    def upto(self, threshold: float) -> Ints:
        """Negatives and positives up to a threshold that is within no run."""
        counts: Ints = self.under[np.searchsorted(self.highs, threshold, "right")]
        return counts

    @property
    def resolution(self) -> tuple[float, float]:
        """Largest run of different scores, as fractions of the negatives and of the positives."""
        within = self.counts[self.lows < self.highs]
        steps = within.max(axis=0, initial=0) / np.maximum(self.under[-1], 1)
        return float(steps[0]), float(steps[1])
