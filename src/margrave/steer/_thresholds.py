"""How scores become answers: a cut for two classes, offsets for more, and a band of doubt.

With two classes there is one score per sample, larger for the second class, and the decision is a
pair of cuts; what lies between them is rejected. With more there is a score for each class, what is
added to each, and by how much the largest has to lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margrave._labels import REJECTED
from margrave._typing import Codes, Floats
from margrave.confusion import Objective, ObjectiveValue, Tally, are_separated

# A band of doubt is searched on so many cuts, then on those about the best, and once more.
_GRID, _ROUNDS = 160, 3
_LEAST = float(np.finfo(float).tiny)


class Decision(Protocol):
    """What turns scores into answers."""

    @property
    def rejects(self) -> bool:
        """Whether some samples may get no answer."""

    def predict(self, scores: Floats) -> Codes:
        """Positions of classes, -1 for a rejected sample."""

    def decision_values(self, scores: Floats) -> Floats:
        """The scores as they are compared: above 0 for the second of two classes, else largest."""


@dataclass(frozen=True)
class Threshold:
    """Two classes: the second above `high`, the first up to `low`, between them no answer.

    Attributes
    ----------
    low, high : float
        The cuts; equal if nothing is rejected.
    """

    low: float
    high: float

    @property
    def rejects(self) -> bool:
        """Whether some samples may get no answer."""
        return self.low < self.high

    def predict(self, scores: Floats) -> Codes:
        """Positions of classes, -1 for a rejected sample."""
        return np.where(scores > self.high, 1, np.where(scores <= self.low, 0, REJECTED))

    def decision_values(self, scores: Floats) -> Floats:
        """Scores less the cut; with a band less its nearer end, and 0 within it only."""
        below = np.minimum(scores - self.low, -_LEAST if self.rejects else 0.0)
        return np.where(
            scores > self.high, scores - self.high, np.where(scores <= self.low, below, 0.0)
        )


@dataclass(frozen=True)
class Offsets:
    """More classes: the one with the largest score after its offset, if it leads by enough.

    Attributes
    ----------
    offset : ndarray of shape (k,)
        What is added to the scores.
    doubt : float
        By how much the largest has to lead; 0 to answer always.
    """

    offset: Floats
    doubt: float = 0.0

    @property
    def rejects(self) -> bool:
        """Whether some samples may get no answer."""
        return self.doubt > 0

    def predict(self, scores: Floats) -> Codes:
        """Positions of classes, -1 for a rejected sample."""
        best_decision = scores + self.offset
        return np.where(
            lead_of_largest(best_decision) < self.doubt, REJECTED, best_decision.argmax(axis=1)
        )

    def decision_values(self, scores: Floats) -> Floats:
        """Scores with their offsets."""
        return scores + self.offset


def lead_of_largest(scores: Floats) -> Floats:
    """By how much the largest of each row leads."""
    top = np.partition(scores, -2, axis=1)[:, -2:]
    return np.asarray(top[:, 1] - top[:, 0])


def default_decision(k: int) -> Decision:
    """The decision of an untouched classifier."""
    return Threshold(0.0, 0.0) if k == 2 else Offsets(np.zeros(k))


def best_decision(objective: Objective, scores: Floats, near: Decision | None = None) -> Decision:
    """The best decision that answers always: exact for two classes; for more, near another."""
    if objective.k == 2:
        return best_threshold(objective, Tally.of(scores, objective.codes, objective.counts))
    return Offsets(_best_offset(objective, scores, near))


def best_threshold(objective: Objective, tally: Tally) -> Threshold:
    """The best cut between runs of scores of two classes; of equals that nearest to 0, or 0."""
    runs = np.column_stack([tally.lows, tally.highs]).ravel()
    fits = np.concatenate([[True], are_separated(runs)[1::2], [True]])
    thresholds = np.append(tally.thresholds[fits][::-1], 0.0)
    under = np.vstack([tally.under[fits][::-1], tally.upto(0.0)])
    counts = np.stack([under, tally.under[-1] - under], axis=2)
    best = int(np.lexsort((np.abs(thresholds), *objective.evaluate_counts(counts)[::-1]))[0])
    return Threshold(float(thresholds[best]), float(thresholds[best]))


def best_rejecting_decision(
    objective: Objective, scores: Floats, near: Decision | None = None
) -> Decision:
    """The best decision found that may reject."""
    if objective.k == 2:
        return _best_band(objective, scores)
    return _best_margin(objective, scores, _best_offset(objective, scores, near))


def _best_offset(objective: Objective, scores: Floats, near: Decision | None) -> Floats:
    """The best offsets found for more than two classes, from wide starts or near others."""
    starts = [near.offset] if isinstance(near, Offsets) else objective.wide_starts()
    return objective.best_offsets(scores, starts)[0]


def evaluate(objective: Objective, decision: Decision, scores: Floats) -> ObjectiveValue:
    """How good a decision is."""
    return objective.evaluate(decision.predict(scores))


def _best_band(objective: Objective, scores: Floats) -> Decision:
    """Two cuts: on a grid of all pairs, then on the cuts about the best."""
    order = np.argsort(scores, kind="stable")
    known, first = np.unique(scores[order], return_index=True)
    thresholds = np.concatenate([[known[0] - 1], (known[1:] + known[:-1]) / 2, [known[-1] + 1]])
    ends = np.append(first, len(scores))  # so many samples are below each cut
    below = np.zeros((len(scores) + 1, 2), dtype=np.int64)
    below[1:] = np.cumsum(objective.codes[order][:, None] == np.arange(2), axis=0)
    under = below[ends]
    places = [np.unique(np.linspace(0, len(ends) - 1, _GRID).astype(int))] * 2
    low = high = 0
    for _ in range(_ROUNDS):
        i, j = (axis.ravel() for axis in np.meshgrid(*places, indexing="ij"))
        i, j = i[i <= j], j[i <= j]
        counts = np.empty((len(i), 2, 3), dtype=np.int64)
        counts[:, :, 0] = under[i]
        counts[:, :, 2] = under[j] - under[i]
        counts[:, :, 1] = under[-1] - under[j]
        best = int(np.lexsort((j - i, *objective.evaluate_counts(counts)[::-1]))[0])
        low, high = int(i[best]), int(j[best])
        places = [_refine_grid(at, axis) for at, axis in zip((low, high), places, strict=True)]
    return Threshold(float(thresholds[low]), float(thresholds[high]))


def _refine_grid(place: int, known: NDArray[np.intp]) -> NDArray[np.intp]:
    """All places between the neighbours of one, at most a grid of them."""
    at = int(np.searchsorted(known, place))
    ends = known[max(at - 1, 0)], known[min(at + 1, len(known) - 1)]
    return np.unique(np.append(np.linspace(*ends, _GRID).astype(int), place))


def _best_margin(objective: Objective, scores: Floats, found: Floats) -> Decision:
    """The best lead to ask for, for some offsets."""
    tried = [
        _best_lead(objective, scores, offset)
        for offset in (found, np.zeros(objective.k), found / 2)
    ]
    return min(tried, key=lambda one: one[0])[1]


def _best_lead(
    objective: Objective, scores: Floats, offset: Floats
) -> tuple[tuple[float, ...], Decision]:
    """How good the best lead to ask for is: the sample with the smallest lead is rejected first."""
    k, moved_scores = objective.k, scores + offset
    lead, answers = lead_of_largest(moved_scores), moved_scores.argmax(axis=1)
    order = np.argsort(lead, kind="stable")
    cells = np.zeros((len(order) + 1, k * (k + 1)), dtype=np.int64)
    true = objective.codes[order] * (k + 1)
    joined = np.arange(1, len(order) + 1)
    cells[0] = np.bincount(objective.codes * (k + 1) + answers, minlength=k * (k + 1))
    cells[joined, true + answers[order]] -= 1
    cells[joined, true + k] += 1
    places = np.flatnonzero(np.concatenate([[True], are_separated(lead[order]), [True]]))
    judged = objective.evaluate_counts(np.cumsum(cells, axis=0)[places].reshape(-1, k, k + 1))
    at = int(np.lexsort((places, *judged[::-1]))[0])
    n_rejected = int(places[at])
    steps = np.append(lead[order], lead[order][-1] + 1)
    doubt = 0.0 if n_rejected == 0 else float((steps[n_rejected - 1] + steps[n_rejected]) / 2)
    return tuple(float(of[at]) for of in judged), Offsets(offset, doubt)
