"""Where to cut scores into classes.

The principle of document 002 defines no intercept: with unequal classes a large one always has a
larger average margin. So the cut is chosen on leave-one-out scores, by accuracy or by balanced
accuracy.
"""

from __future__ import annotations

import numpy as np

from margrave._typing import Codes, Floats
from margrave.confusion import balanced_threshold

_ROUNDS = 10


def sample_shares(codes: Codes, weights: Floats, n_classes: int, balanced: bool) -> Floats:
    """What each sample counts in an accuracy; the sum is 1."""
    if not balanced:
        return np.asarray(weights / weights.sum())
    sums = np.bincount(codes, weights, n_classes)
    return np.asarray(weights / sums[codes] / np.count_nonzero(sums))


def decided(scores: Floats) -> Codes:
    """The class that scores speak for: above 0 the second of two, else the largest."""
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.intp)
    return np.asarray(np.argmax(scores, axis=1))


def cut_for(scores: Floats, codes: Codes, counts: Floats) -> Floats:
    """What to take off the scores so that as much as possible is decided right.

    For two classes that is exact; for more the classes are cut one at a time, the others being
    fixed, until nothing is gained.

    Parameters
    ----------
    scores : ndarray of shape (n, 1) or (n, n_classes)
        Scores.
    codes : ndarray of shape (n,)
        The true classes.
    counts : ndarray of shape (n,)
        What each sample counts.
    """
    if scores.shape[1] == 1:
        return np.array([_cut(scores[:, 0], counts * (codes == 1), counts * (codes == 0))])
    cuts = np.zeros(scores.shape[1])
    right = counts[decided(scores) == codes].sum()
    for _ in range(_ROUNDS):
        before = right
        for one in range(len(cuts)):
            tried = cuts.copy()
            tried[one] = _cut_of_one(scores - cuts, one, codes, counts) + cuts[one]
            now = counts[decided(scores - tried) == codes].sum()
            if now > right + 1e-12:
                cuts, right = tried, now
        if right == before:
            break
    return cuts


def _cut_of_one(scores: Floats, one: int, codes: Codes, counts: Floats) -> float:
    """The best cut between a class and the best of the others."""
    rest = scores.copy()
    rest[:, one] = -np.inf
    rival = np.argmax(rest, axis=1)
    ahead = scores[:, one] - rest[np.arange(len(rest)), rival]
    return _cut(ahead, counts * (codes == one), counts * (codes == rival))


def _cut(scores: Floats, u: Floats, v: Floats) -> float:
    """The best cut; where all are on one side, beyond the last by half of what they span."""
    unit = float(np.abs(scores).max()) or 1.0
    scaled = scores / unit
    low, high = float(scaled.min()), float(scaled.max())
    beyond = (high - low) / 2 or 1.0
    cut = balanced_threshold(scaled, u, v)
    if cut < low:
        cut = min(low - beyond, float(np.nextafter(low, -np.inf)))
    elif cut > high:
        cut = max(high + beyond, float(np.nextafter(high, np.inf)))
    return cut * unit
