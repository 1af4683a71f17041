"""A preference over the answers to one labelled set: what is missed, and what it costs.

Every bound of a preference is linear in the counts of the confusion matrix
(:mod:`margrave.confusion`), so it is judged for all cuts of a score in one sweep: as the offset
of one class grows, samples join that class one by one, and each cut's matrix differs from the last
by one sample. The *price* is what a user did not ask about: errors in cells of which no bound
speaks.
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
from margrave.confusion._thresholds import are_separated

_DIGITS = 9


class HasBounds(Protocol):
    """What a judge needs to know of a preference."""

    @property
    def all_bounds(self) -> tuple[Bound, ...]:
        """The bounds."""


class ObjectiveValue(NamedTuple):
    """How good a matrix is; less is better, the first number first.

    Attributes
    ----------
    shortfall : float
        Samples in the wrong place, summed over the bounds; 0 when the preference is met.
    cost : int
        Errors in cells of which the preference does not speak.
    errors : int
        All errors and all rejected samples.
    """

    shortfall: float
    cost: int
    errors: int


def count_predictions(
    answers: NDArray[np.intp],
    codes: NDArray[np.intp],
    classes: tuple[Any, ...],
    positive: Any = None,
    counts: NDArray[np.int64] | None = None,
) -> Confusion:
    """The confusion matrix of some answers, -1 for those that are rejected."""
    k = len(classes)
    cells = codes * (k + 1) + np.where(answers < 0, k, answers)
    found = np.bincount(cells, counts, k * (k + 1))  # exact: floats hold whole numbers
    return Confusion(found.astype(np.int64).reshape(k, k + 1), classes, positive)


@dataclass(frozen=True)
class Objective:
    """A preference, and the true classes of the samples it is held against.

    Attributes
    ----------
    preference : Preference, or anything with bounds
        What is wanted.
    codes : ndarray of shape (n,)
        True classes.
    classes : tuple of labels
        All classes.
    positive : label or None
        The one that ``fp`` and ``fn`` speak of.
    counts : ndarray of shape (n,) or None
        How many samples each entry stands for; one if None.
    """

    preference: HasBounds
    codes: NDArray[np.intp]
    classes: tuple[Any, ...]
    positive: Any = None
    counts: NDArray[np.int64] | None = None
    _terms: list[tuple[Any, Floats, Floats]] = field(init=False, repr=False)
    _errors: NDArray[np.bool_] = field(init=False, repr=False)
    _spoken: NDArray[np.bool_] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = len(self.classes)
        empty = Confusion(np.zeros((k, k), dtype=int), self.classes, self.positive)
        errors = ~np.eye(k, k + 1, dtype=bool)
        spoken, terms = np.zeros((k, k + 1), dtype=bool), []
        for bound in self.preference.all_bounds:
            amount, base = bound.cells(empty)
            spoken |= amount if bound.at_most else base
            terms.append((bound, amount.astype(float), base.astype(float)))
        spoken[:, k] = True  # rejected samples are no errors
        object.__setattr__(self, "_terms", terms)
        object.__setattr__(self, "_errors", errors)
        object.__setattr__(self, "_spoken", spoken)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def of_groups(self, groups: NDArray[np.intp]) -> tuple[Objective, NDArray[np.intp]]:
        """The same judge of groups of samples that get one answer, and the group of each entry."""
        cells = np.bincount(groups * self.k + self.codes)
        there = np.flatnonzero(cells)
        objective = replace(self, codes=there % self.k, counts=cells[there])
        return objective, there // self.k

    def matrix(self, answers: NDArray[np.intp]) -> Confusion:
        """The confusion matrix of some answers, -1 for those that are rejected."""
        return count_predictions(answers, self.codes, self.classes, self.positive, self.counts)

    def evaluate(self, answers: NDArray[np.intp]) -> ObjectiveValue:
        """How good some answers are."""
        shortfall, cost, errors = (
            of[0] for of in self.evaluate_counts(self.matrix(answers).counts[None])
        )
        return ObjectiveValue(float(shortfall), int(cost), int(errors))

    def is_cost(self, answers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which samples are errors in cells of which no bound speaks: those the price counts."""
        priced: NDArray[np.bool_] = (self._errors & ~self._spoken)[self.codes, answers]
        return priced  # -1 is the last column, of the rejected

    def evaluate_counts(self, counts: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Shortfall, price and errors of a stack of matrices.

        Parameters
        ----------
        counts : ndarray of shape (m, k, k) or (m, k, k + 1)
            The rejected last, if any can be.
        """
        flat, width = counts.reshape(len(counts), -1).astype(np.float64), counts.shape[2]
        shortfall = np.zeros(len(counts))
        for bound, amount_mask, base_mask in self._terms:
            amount, base = (flat @ mask[:, :width].ravel() for mask in (amount_mask, base_mask))
            p, q = (bound.limit.numerator, bound.limit.denominator)
            # Whole numbers up to 2^53 are exact, so a limit that is just reached is not missed.
            slack = (p * (base if bound.share else 1.0) - q * amount) / q
            slack = slack if bound.at_most else -slack
            if bound.share:
                slack = np.where(base == 0, -1.0, slack)
            shortfall += np.maximum(-slack, 0)
        cost = flat @ (self._errors & ~self._spoken)[:, :width].ravel()
        shortfall = np.round(shortfall, _DIGITS)  # sums of shares, in any order
        return shortfall, cost, flat @ self._errors[:, :width].ravel()

    def best_offsets(
        self, scores: Floats, starts: Iterable[Floats] = ()
    ) -> tuple[Floats, ObjectiveValue]:
        """What to add to each class's score for the best verdict, by sweeps over all cuts.

        Exact with two classes. With more, one class is moved at a time until none gains, which
        may end short of the best: it is done from 0 and from every other start.

        Parameters
        ----------
        scores : ndarray of shape (n, k)
            The largest is the answer, the first of equals.
        starts : iterable of ndarray of shape (k,)
            Offsets to begin at, for more than two classes.

        Returns
        -------
        offset : ndarray of shape (k,)
        verdict : ObjectiveValue
        """
        found = self._descent(scores, np.zeros(self.k))
        for start in starts if self.k > 2 else ():
            other = self._descent(scores, start - start.mean())
            if other[1] < found[1]:
                found = other
        return found

    def wide_starts(self) -> list[Floats]:
        """Starts with one class moved a little or far, either way."""
        moves = np.array([1.0, -1.0, 3.0, -3.0])
        return [amount * row for row in np.eye(self.k) for amount in moves]

    def _descent(self, scores: Floats, offset: Floats) -> tuple[Floats, ObjectiveValue]:
        """Move one class at a time until none gains."""
        best = self.evaluate((scores + offset).argmax(axis=1))
        gained = True
        while gained:
            gained = False
            for c in [1] if self.k == 2 else range(self.k):
                trial = offset.copy()
                trial[c] += self._sweep(scores + offset, c)
                trial -= trial.mean()
                value = self.evaluate((scores + trial).argmax(axis=1))
                if value < best:
                    offset, best, gained = trial, value, self.k > 2
        return offset, best

    def _sweep(self, scores: Floats, c: int) -> float:
        """The best amount to add to the scores of class c."""
        others = scores.copy()
        others[:, c] = -np.inf
        second = others.argmax(axis=1)
        needed = others[np.arange(len(scores)), second] - scores[:, c]  # called c above this
        order = np.argsort(needed, kind="stable")
        needed, true, from_ = needed[order], self.codes[order], second[order]
        steps = np.zeros((len(order) + 1, self.k * self.k), dtype=np.int64)
        steps[0] = np.bincount(self.codes * self.k + second, self.counts, self.k**2)
        joined, size = (
            np.arange(1, len(order) + 1),
            1 if self.counts is None else self.counts[order],
        )
        steps[joined, true * self.k + from_] -= size
        steps[joined, true * self.k + c] += size
        thresholds = np.flatnonzero(np.concatenate([[True], are_separated(needed), [True]]))
        counts = np.cumsum(steps, axis=0)[thresholds].reshape(-1, self.k, self.k)
        ends = needed[0] - 1, needed[-1] + 1
        moves = np.concatenate([ends[:1], (needed[1:] + needed[:-1]) / 2, ends[1:]])[thresholds]
        judged = self.evaluate_counts(counts)
        best = int(np.lexsort((np.abs(moves), *judged[::-1]))[0])
        return float(moves[best])
