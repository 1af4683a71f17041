"""Decisions: a threshold for two classes, offsets for more classes, and both with rejection.

With two classes there is one score per sample, larger for the second class. The decision is a pair
of thresholds, and samples with scores between them are rejected. With more classes there is one
score per class. The decision adds an offset to each score and predicts the class of the largest sum
if it exceeds the second largest by a minimum lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margrave._labels import REJECTED
from margrave._typing import Codes, Floats
from margrave.confusion import Objective, ObjectiveValue, Tally, are_separated, find_smallest

# The search for two thresholds uses a grid of this size, refined around the best pair each round.
_GRID, _ROUNDS = 160, 3
SMALLEST_DIFFERENCE = float(np.finfo(float).tiny)


class Decision(Protocol):
    """Turns scores into predictions."""

    @property
    def rejects(self) -> bool:
        """Whether samples may be rejected."""

    def predict(self, scores: Floats) -> Codes:
        """Predict positions of classes, -1 for a rejected sample."""

    def decision_values(self, scores: Floats) -> Floats:
        """Return decision values: positive for the second of two classes, else largest wins."""


@dataclass(frozen=True)
class Threshold:
    """Decision for two classes: the second above `high`, the first up to `low`, else rejected.

    Attributes
    ----------
    low, high : float
        The thresholds; equal if nothing is rejected.
    """

    low: float
    high: float

    @property
    def rejects(self) -> bool:
        """Whether samples may be rejected."""
        return self.low < self.high

    def predict(self, scores: Floats) -> Codes:
        """Predict positions of classes, -1 for a rejected sample."""
        return np.where(scores > self.high, 1, np.where(scores <= self.low, 0, REJECTED))

    def decision_values(self, scores: Floats) -> Floats:
        """Return signed distances to the nearer threshold; 0 for rejected samples."""
        below = np.minimum(scores - self.low, -SMALLEST_DIFFERENCE if self.rejects else 0.0)
        return np.where(
            scores > self.high, scores - self.high, np.where(scores <= self.low, below, 0.0)
        )


@dataclass(frozen=True)
class Offsets:
    """Decision for more classes: the class whose score plus offset leads by at least `doubt`.

    Attributes
    ----------
    offset : ndarray of shape (k,)
        Added to the scores.
    doubt : float
        The minimum lead of the largest sum over the second largest; 0 to reject nothing.
    """

    offset: Floats
    doubt: float = 0.0

    @property
    def rejects(self) -> bool:
        """Whether samples may be rejected."""
        return self.doubt > 0

    def predict(self, scores: Floats) -> Codes:
        """Predict positions of classes, -1 for a rejected sample."""
        moved = scores + self.offset
        return np.where(lead_of_largest(moved) < self.doubt, REJECTED, moved.argmax(axis=1))

    def decision_values(self, scores: Floats) -> Floats:
        """Return the scores plus their offsets."""
        return scores + self.offset


def lead_of_largest(scores: Floats) -> Floats:
    """Return the difference between the two largest scores of each row."""
    top = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(top[:, 1] - top[:, 0])


def default_decision(k: int) -> Decision:
    """Return the decision of a classifier that has not been steered."""
    return Threshold(0.0, 0.0) if k == 2 else Offsets(np.zeros(k))


def best_decision(
    objective: Objective, scores: Floats, start: Decision | None = None, *, local: bool = False
) -> Decision:
    """Find the best decision without rejection, for two classes exactly.

    For more, it is at least as good as the offsets of `start`. With `local`, the search changes the
    offset of one class at a time, from these and from 0 only.
    """
    if objective.k == 2:
        return best_threshold(objective, Tally.of(scores, objective.codes, objective.counts))
    starts = [start.offset] if isinstance(start, Offsets) else []
    return Offsets(objective.best_offsets(scores, starts, local=local)[0])


def best_threshold(objective: Objective, tally: Tally) -> Threshold:
    """Find the best threshold between the scores of two classes; the nearest to 0 of equals."""
    runs = np.column_stack([tally.lows, tally.highs]).ravel()
    fits = np.concatenate([[True], are_separated(runs)[1::2], [True]])
    thresholds = np.append(tally.thresholds[fits][::-1], 0.0)
    under = np.vstack([tally.under[fits][::-1], tally.upto(0.0)])
    counts = np.stack([under, tally.under[-1] - under], axis=2)
    best = find_smallest(*objective.evaluate_counts(counts), np.abs(thresholds))[0]
    return Threshold(float(thresholds[best]), float(thresholds[best]))


def best_rejecting_decision(
    objective: Objective, scores: Floats, moved: Decision | None = None
) -> Decision:
    """Find a good decision that may reject; for more classes, with the offsets of `moved`."""
    if objective.k == 2:
        return _best_band(objective, scores)
    offset = moved.offset if isinstance(moved, Offsets) else objective.best_offsets(scores)[0]
    return _best_margin(objective, scores, offset)


def evaluate(objective: Objective, decision: Decision, scores: Floats) -> ObjectiveValue:
    """Evaluate the objective for the predictions of a decision."""
    return objective.evaluate(decision.predict(scores))


def _best_band(objective: Objective, scores: Floats) -> Decision:
    """Find two thresholds on a grid of all pairs, refined around the best pair."""
    order = np.argsort(scores, kind="stable")
    values, first = np.unique(scores[order], return_index=True)
    thresholds = np.concatenate([[values[0] - 1], (values[1:] + values[:-1]) / 2, [values[-1] + 1]])
    ends = np.append(first, len(scores))  # number of samples below each threshold
    below = np.zeros((len(scores) + 1, 2), dtype=np.int64)
    below[1:] = np.cumsum(objective.codes[order][:, None] == np.arange(2), axis=0)
    under = below[ends]
    grids = [np.unique(np.linspace(0, len(ends) - 1, _GRID).astype(int))] * 2
    for _ in range(_ROUNDS):
        i, j = (axis.ravel() for axis in np.meshgrid(*grids, indexing="ij"))
        i, j = i[i <= j], j[i <= j]
        counts = np.empty((len(i), 2, 3), dtype=np.int64)
        counts[:, :, 0] = under[i]
        counts[:, :, 2] = under[j] - under[i]
        counts[:, :, 1] = under[-1] - under[j]
        best = find_smallest(*objective.evaluate_counts(counts), j - i)[0]
        low, high = int(i[best]), int(j[best])
        grids = [_refine_grid(at, grid) for at, grid in zip((low, high), grids, strict=True)]
    return Threshold(float(thresholds[low]), float(thresholds[high]))


def _refine_grid(center: int, grid: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return a finer grid between the neighbours of a grid point."""
    at = int(np.searchsorted(grid, center))
    ends = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    return np.unique(np.append(np.linspace(*ends, _GRID).astype(int), center))


def _best_margin(objective: Objective, scores: Floats, offset: Floats) -> Decision:
    """Find the best minimum lead for the offsets, for half of them and for none."""
    candidates = [
        _best_lead(objective, scores, candidate)
        for candidate in (offset, np.zeros(objective.k), offset / 2)
    ]
    return min(candidates, key=lambda candidate: candidate[0])[1]


def _best_lead(
    objective: Objective, scores: Floats, offset: Floats
) -> tuple[tuple[float, ...], Decision]:
    """Find the best minimum lead for some offsets; return its value and the decision.

    A growing minimum lead rejects the samples one by one, in the order of their leads.
    """
    k, moved = objective.k, scores + offset
    lead, predictions = lead_of_largest(moved), moved.argmax(axis=1)
    order = np.argsort(lead, kind="stable")
    cells = np.zeros((len(order) + 1, k * (k + 1)), dtype=np.int64)
    true = objective.codes[order] * (k + 1)
    steps = np.arange(1, len(order) + 1)
    cells[0] = np.bincount(objective.codes * (k + 1) + predictions, minlength=k * (k + 1))
    cells[steps, true + predictions[order]] -= 1
    cells[steps, true + k] += 1
    numbers = np.flatnonzero(np.concatenate([[True], are_separated(lead[order]), [True]]))
    values = objective.evaluate_counts(np.cumsum(cells, axis=0)[numbers].reshape(-1, k, k + 1))
    best = find_smallest(*values, numbers)[0]
    n_rejected = int(numbers[best])
    leads = np.append(lead[order], lead[order][-1] + 1)
    doubt = 0.0 if n_rejected == 0 else float((leads[n_rejected - 1] + leads[n_rejected]) / 2)
    return tuple(float(value[best]) for value in values), Offsets(offset, doubt)
