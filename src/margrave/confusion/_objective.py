"""The objective: how far predictions for a labelled set are from a preference, and their errors.

Every bound of a preference is linear in the counts of the confusion matrix
(:mod:`margrave.confusion`), so one sweep evaluates it at all thresholds of a score: as the offset
of one class grows, samples join that class one by one, and each sample changes the sums that the
bounds limit. Among predictions that are equally near to the preference, those with the fewest
errors in total are the best, then those with the fewest rejected samples.
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
    errors : int
        Misclassified samples. A rejected sample is not an error.
    n_rejected : int
        Rejected samples.
    """

    shortfall: float
    errors: int
    n_rejected: int


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
    _parts: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = len(self.classes)
        empty = Confusion(np.zeros((k, k), dtype=int), self.classes, self.positive)
        rejected = np.broadcast_to(np.arange(k + 1) == k, (k, k + 1))
        errors = ~np.eye(k, k + 1, dtype=bool) & ~rejected
        masks = [mask for bound in self.preference.all_bounds for mask in bound.cells(empty)]
        # What one sample of a cell adds to each sum: the amount and the base of each bound, the
        # errors and the rejected samples.
        parts = np.stack([*masks, errors, rejected], axis=2).astype(np.float64)
        object.__setattr__(self, "_parts", parts)

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
        shortfall, errors, n_rejected = (value[0] for value in values)
        return ObjectiveValue(float(shortfall), int(errors), int(n_rejected))

    def evaluate_counts(self, counts: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Compute shortfall, errors and rejected samples of a stack of matrices.

        Parameters
        ----------
        counts : ndarray of shape (m, k, k) or (m, k, k + 1)
            The last of k + 1 columns counts rejected samples.
        """
        parts = self._parts[:, : counts.shape[2]]
        return self._evaluate_sums(
            counts.reshape(len(counts), -1).astype(np.float64) @ parts.reshape(-1, parts.shape[2])
        )

    def _evaluate_sums(self, sums: Floats) -> tuple[Floats, Floats, Floats]:
        """Compute shortfall, errors and rejected samples from sums of `_parts`, row by row."""
        shortfall = np.zeros(len(sums))
        for j, bound in enumerate(self.preference.all_bounds):
            amount, base = sums[:, 2 * j], sums[:, 2 * j + 1]
            p, q = bound.limit.numerator, bound.limit.denominator
            # Integers up to 2^53 are exact, so a matrix that just reaches a limit meets it.
            slack = (p * (base if bound.is_fraction else 1.0) - q * amount) / q
            slack = slack if bound.at_most else -slack
            if bound.is_fraction:
                slack = np.where(base == 0, -1.0, slack)
            shortfall += np.maximum(-slack, 0)
        shortfall = np.round(shortfall, _DIGITS)  # independent of the order of summation
        return shortfall, sums[:, -2], sums[:, -1]

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
        order = np.argsort(needed, kind="stable")
        needed = needed[order]
        without = self._parts[self.codes, second]
        steps = self._parts[self.codes, c] - without
        if self.counts is not None:
            without, steps = without * self.counts[:, None], steps * self.counts[:, None]
        sums = np.vstack([without.sum(axis=0), steps[order]]).cumsum(axis=0)
        thresholds = np.flatnonzero(np.concatenate([[True], are_separated(needed), [True]]))
        ends = needed[0] - 1, needed[-1] + 1
        moves = np.concatenate([ends[:1], (needed[1:] + needed[:-1]) / 2, ends[1:]])[thresholds]
        return float(moves[smallest(*self._evaluate_sums(sums[thresholds]), np.abs(moves))])


def smallest(*keys: NDArray[Any]) -> int:
    """Find the position of the smallest first key, by the next keys among equals; the first."""
    at = np.arange(len(keys[0]))
    for key in keys:
        values = key[at]
        at = at[values == values.min()]
    return int(at[0])
