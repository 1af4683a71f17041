"""Where to cut a score in two: thresholds between values, and the fairest of them."""

from __future__ import annotations

import numpy as np

from margrave._typing import Floats

# Differences below this, as a share, come from rounding.
_TIE = 1e-9


def middle(low: float, high: float) -> float:
    """A number t with low ≤ t < high, halfway if there is one: x > t tells the two apart."""
    halfway = low / 2 + high / 2  # low + high may overflow
    # Between neighbouring floats it rounds to either end, and below the smallest ones past them.
    return halfway if low <= halfway < high else low


def best_cut(scores: Floats, u: Floats, v: Floats) -> float:
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
    apart = gaps > _TIE * span
    apart[[0, -1]] = True
    gain[~apart] = -np.inf
    best = np.flatnonzero(gain >= gain.max() - _TIE)
    place = int(best[np.argmax(gaps[best] >= gaps[best].max() - _TIE * span)])
    if place in (0, len(ordered)):
        return float(ordered[0] - 1 if place == 0 else ordered[-1] + 1)
    return middle(float(ordered[place - 1]), float(ordered[place]))
