"""The objective: how far predictions for a labelled set are from a preference, and at what cost.

Every bound of a preference is linear in the counts of the confusion matrix
(:mod:`margrave.confusion`), so one sweep evaluates it at all thresholds of a score: as the offset
of one class grows, samples join that class one by one, and each matrix differs from the previous
one by one sample. The *cost* is what the user did not limit: errors in cells that no bound
mentions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats
from margrave.confusion._bounds import Bound
from margrave.confusion._confusion import Confusion
from margrave.confusion._tally import are_separated

_DIGITS = 9


class HasBounds(Protocol):
    """The part of a preference that an objective uses."""

    @property
    def all_bounds(self) -> tuple[Bound, ...]:
        """The bounds, with the implied one."""


class ObjectiveValue(NamedTuple):
    """The value of a matrix, compared lexicographically; smaller is better.

    Attributes
    ----------
    shortfall : float
        Samples by which the bounds are missed, summed; 0 when the preference is met.
    cost : int
        Errors in cells that no bound mentions.
    errors : int
        All errors and all rejected samples.
    """

    shortfall: float
    cost: int
    errors: int


def count_predictions(
    predictions: NDArray[np.intp],
    codes: NDArray[np.intp],
    classes: tuple[Any, ...],
    positive: Any = None,
    counts: NDArray[np.int64] | None = None,
) -> Confusion:
    """Count predicted codes, -1 for rejected samples, in a confusion matrix."""
    k = len(classes)
    cells = codes * (k + 1) + np.where(predictions < 0, k, predictions)
    sums = np.bincount(cells, counts, k * (k + 1))  # exact: floats hold integers up to 2^53
    return Confusion(sums.astype(np.int64).reshape(k, k + 1), classes, positive)


@dataclass(frozen=True)
class Objective:
    """A preference, and the true classes of the samples that it is evaluated on.

    Attributes
    ----------
    preference : Preference, or any object with ``all_bounds``
        The preference to meet.
    codes : ndarray of shape (n,)
        Positions of the true classes in ``classes``.
    classes : tuple of labels
        All classes.
    positive : label or None
        The class that ``fp`` and ``fn`` refer to.
    counts : ndarray of shape (n,) or None
        How many samples each entry stands for; one each if None.
    """

    preference: HasBounds
    codes: NDArray[np.intp]
    classes: tuple[Any, ...]
    positive: Any = None
    counts: NDArray[np.int64] | None = None
    _terms: list[tuple[Any, Floats, Floats]] = field(init=False, repr=False)
    _errors: NDArray[np.bool_] = field(init=False, repr=False)
    _costs: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = len(self.classes)
        empty = Confusion(np.zeros((k, k), dtype=int), self.classes, self.positive)
        errors = ~np.eye(k, k + 1, dtype=bool)
        mentioned, terms = np.zeros((k, k + 1), dtype=bool), []
        for bound in self.preference.all_bounds:
            amount, base = bound.cells(empty)
            mentioned |= amount if bound.at_most else base
            terms.append((bound, amount.astype(float), base.astype(float)))
        mentioned[:, k] = True  # a rejected sample is no cost
        object.__setattr__(self, "_terms", terms)
        object.__setattr__(self, "_errors", errors)
        object.__setattr__(self, "_costs", errors & ~mentioned)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def of_groups(self, groups: NDArray[np.intp]) -> tuple[Objective, NDArray[np.intp]]:
        """Give the objective of groups that share a prediction, and the group of each entry."""
        cells = np.bincount(groups * self.k + self.codes)
        occupied = np.flatnonzero(cells)
        objective = replace(self, codes=occupied % self.k, counts=cells[occupied])
        return objective, occupied // self.k

    def matrix(self, predictions: NDArray[np.intp]) -> Confusion:
        """Count predicted codes, -1 for rejected samples, in a confusion matrix."""
        return count_predictions(predictions, self.codes, self.classes, self.positive, self.counts)

    def evaluate(self, predictions: NDArray[np.intp]) -> ObjectiveValue:
        """Evaluate predicted codes, -1 for rejected samples."""
        values = self.evaluate_counts(self.matrix(predictions).counts[None])
        shortfall, cost, errors = (value[0] for value in values)
        return ObjectiveValue(float(shortfall), int(cost), int(errors))

    def is_cost(self, predictions: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which samples the cost counts: errors in cells that no bound mentions."""
        flags: NDArray[np.bool_] = self._costs[self.codes, predictions]
        return flags  # -1 is the last column, of rejected samples

    def evaluate_counts(self, counts: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Compute shortfall, cost and errors of a stack of matrices.

        Parameters
        ----------
        counts : ndarray of shape (m, k, k) or (m, k, k + 1)
            The last of k + 1 columns counts rejected samples.
        """
        flat, width = counts.reshape(len(counts), -1).astype(np.float64), counts.shape[2]
        shortfall = np.zeros(len(counts))
        for bound, amount_mask, base_mask in self._terms:
            amount, base = (flat @ mask[:, :width].ravel() for mask in (amount_mask, base_mask))
            p, q = (bound.limit.numerator, bound.limit.denominator)
            # Integers up to 2^53 are exact, so a matrix that just reaches a limit meets it.
            slack = (p * (base if bound.is_fraction else 1.0) - q * amount) / q
            slack = slack if bound.at_most else -slack
            if bound.is_fraction:
                slack = np.where(base == 0, -1.0, slack)
            shortfall += np.maximum(-slack, 0)
        cost = flat @ self._costs[:, :width].ravel()
        shortfall = np.round(shortfall, _DIGITS)  # independent of the order of summation
        return shortfall, cost, flat @ self._errors[:, :width].ravel()

    def best_offsets(
        self, scores: Floats, starts: Iterable[Floats] = ()
    ) -> tuple[Floats, ObjectiveValue]:
        """Find the offset of each class's score with the best value, by sweeps over thresholds.

        With two classes the result is exact. With more, coordinate descent changes the offset of
        one class at a time until none improves. This may end in a local optimum, so it runs from 0
        and from every other start.

        Parameters
        ----------
        scores : ndarray of shape (n, k)
            The class of largest score is predicted, the first of equals.
        starts : iterable of ndarray of shape (k,)
            Further offsets to start from, for more than two classes.

        Returns
        -------
        offset : ndarray of shape (k,)
        value : ObjectiveValue
        """
        best = self._descend(scores, np.zeros(self.k))
        for start in starts if self.k > 2 else ():
            other = self._descend(scores, start - start.mean())
            if other[1] < best[1]:
                best = other
        return best

    def wide_starts(self) -> list[Floats]:
        """Make starts with the offset of one class a little or much larger or smaller than 0."""
        return [step * row for row in np.eye(self.k) for step in (1.0, -1.0, 3.0, -3.0)]

    def _descend(self, scores: Floats, offset: Floats) -> tuple[Floats, ObjectiveValue]:
        """Change the offset of one class at a time until none improves the value."""
        best = self.evaluate((scores + offset).argmax(axis=1))
        improved = True
        while improved:
            improved = False
            for c in [1] if self.k == 2 else range(self.k):
                trial = offset.copy()
                trial[c] += self._sweep(scores + offset, c)
                trial -= trial.mean()
                value = self.evaluate((scores + trial).argmax(axis=1))
                if value < best:
                    offset, best, improved = trial, value, self.k > 2
        return offset, best

    def _sweep(self, scores: Floats, c: int) -> float:
        """Find the best amount to add to the scores of class c."""
        others = scores.copy()
        others[:, c] = -np.inf
        second = others.argmax(axis=1)
        needed = others[np.arange(len(scores)), second] - scores[:, c]  # c is predicted above
        steps = np.zeros((len(scores) + 1, self.k**2), dtype=np.int64)
        steps[0] = np.bincount(self.codes * self.k + second, self.counts, self.k**2)
        order = np.argsort(needed, kind="stable")
        needed, true, second = needed[order], self.codes[order], second[order]
        size = 1 if self.counts is None else self.counts[order]
        joined = np.arange(1, len(order) + 1)
        steps[joined, true * self.k + second] -= size
        steps[joined, true * self.k + c] += size
        thresholds = np.flatnonzero(np.concatenate([[True], are_separated(needed), [True]]))
        counts = np.cumsum(steps, axis=0)[thresholds].reshape(-1, self.k, self.k)
        ends = needed[0] - 1, needed[-1] + 1
        moves = np.concatenate([ends[:1], (needed[1:] + needed[:-1]) / 2, ends[1:]])[thresholds]
        values = self.evaluate_counts(counts)
        best = int(np.lexsort((np.abs(moves), *values[::-1]))[0])
        return float(moves[best])
