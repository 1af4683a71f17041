"""The objective: how far predictions for a labelled set are from a preference, and their errors.

Every bound of a preference is linear in the counts of the confusion matrix
(:mod:`margrave.confusion`), so one sweep evaluates it at all thresholds of a score: as the offset
of one class grows, samples join that class one by one, and each sample changes the sums that the
bounds limit. Among predictions that are equally near to the preference, those that predict every
class are the best; then those with the fewest errors that no bound limits, or another goal of the
preference; then those with the fewest errors in total; then those with the fewest rejected samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats
from margrave.confusion._bounds import Bound
from margrave.confusion._confusion import Confusion
from margrave.confusion._goal import BoundsAndGoal, all_errors, goal_costs
from margrave.confusion._preference import Preference
from margrave.confusion._tally import are_separated

_DIGITS = 9
# With more than two classes, by how much the offset of one class is larger where a search starts.
_STEP = 2.0
# The samples that such a search begins with, how many of its results are improved on these and then
# on all samples (fewer for an alternative), and how many samples with close scores decide that.
_SAMPLE, _TRIED, _KEPT, _CLOSE = 1500, 6, 3, 4000


class ObjectiveValue(NamedTuple):
    """The value of a matrix, compared lexicographically; smaller is better."""

    # Samples by which the bound with priority is missed or, for a balanced objective, the most
    # samples by which any bound is missed; else 0.
    priority: float
    shortfall: float  # samples by which the bounds are missed, summed; 0 when they are met
    unpredicted: int  # classes that are never predicted
    goal: float  # errors that no bound limits, or what the preference says to minimise
    errors: int  # misclassified samples; a rejected sample is not an error
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
    """A preference, and the true classes of the samples that it is evaluated on."""

    preference: Preference | BoundsAndGoal
    codes: NDArray[np.intp]  # positions of the true classes in `classes`
    classes: tuple[Any, ...]
    positive: Any = None
    counts: NDArray[np.int64] | None = None  # the samples of each entry; one each if None
    first: Bound | None = None  # its shortfall comes before that of all bounds
    balanced: bool = False  # whether the largest shortfall of any bound comes before the sum
    rest: NDArray[np.int64] | None = None  # counts of further samples, predicted as they are
    every_class: bool = True  # whether it is worse never to predict a class
    costs: Floats = field(init=False, repr=False)
    _bounds: tuple[Bound, ...] = field(init=False, repr=False)
    _limits: tuple[Any, ...] = field(init=False, repr=False)
    _parts: Floats = field(init=False, repr=False)
    _changes: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = len(self.classes)
        empty = Confusion(np.zeros((k, k), dtype=int), self.classes, self.positive)
        bounds = tuple(self.preference.all_bounds)
        masks = [mask for bound in bounds for mask in bound.cells(empty)]
        costs = goal_costs(bounds, self.preference.then, empty)
        rejected = np.broadcast_to(np.arange(k + 1) == k, (k, k + 1))
        columns = [np.broadcast_to(np.arange(k + 1) == c, (k, k + 1)) for c in range(k)]
        # What one sample of a cell adds to each sum: the predictions of each class, the amount and
        # the base of each bound, the goal, the errors and the rejected samples.
        parts = np.stack([*columns, *masks, costs, all_errors(k), rejected]).astype(np.float64)
        limits = [
            (one.limit.numerator, one.limit.denominator, 1 if one.at_most else -1, one.is_fraction)
            for one in bounds
        ]
        p, q, sign = np.array([one[:3] for one in limits], dtype=np.float64).T[..., None]
        is_fraction = np.array([one[3] for one in limits])[:, None]
        object.__setattr__(self, "_limits", (p, q, sign, is_fraction))
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "_bounds", bounds)
        object.__setattr__(self, "_parts", parts)
        own = parts[:, :, :k]
        change = (own[:, :, None, :] - own[:, :, :, None]).reshape(len(parts), -1)
        object.__setattr__(self, "_changes", change)

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
        counted = count_predictions(
            predictions, self.codes, self.classes, self.positive, self.counts
        )
        if self.rest is None:
            return counted
        return Confusion(counted.counts + self.rest, self.classes, self.positive)

    def evaluate(self, predictions: NDArray[np.intp]) -> ObjectiveValue:
        """Evaluate predicted codes, -1 for rejected samples."""
        values = self.evaluate_counts(self.matrix(predictions).counts[None])
        priority, shortfall, unpredicted, goal, errors, n_rejected = (value[0] for value in values)
        return ObjectiveValue(
            float(priority),
            float(shortfall),
            int(unpredicted),
            float(goal),
            int(errors),
            int(n_rejected),
        )

    def beats(
        self,
        predictions: NDArray[np.intp],
        others: NDArray[np.intp],
        standard_errors: float = 2.0,
    ) -> bool:
        """Whether predictions are nearer to the preference, or clearly better by the goal.

        Of many models the best one on these samples is often the best only by chance. So it has to
        be better by some standard errors of the difference, as in McNemar's test: if both are
        equally good, an error of only one of the two is equally likely to be either's.
        """
        one, other = self.evaluate(predictions), self.evaluate(others)
        if one[:3] != other[:3]:
            return one[:3] < other[:3]
        gains = self.costs[self.codes, others] - self.costs[self.codes, predictions]
        size = 1 if self.counts is None else self.counts
        gain = float((size * gains).sum())
        return gain > 0 and gain**2 > standard_errors**2 * float((size * gains**2).sum())

    def evaluate_counts(self, counts: NDArray[np.int64] | Floats) -> tuple[Floats, ...]:
        """Compute the values of m matrices in the order of `ObjectiveValue`."""
        parts = self._parts[self.k :, :, : counts.shape[2]].reshape(len(self._parts) - self.k, -1)
        values = self._evaluate_sums(parts @ counts.reshape(len(counts), -1).T)
        unpredicted = self.every_class * (counts[:, :, : self.k].sum(axis=1) == 0).sum(axis=1)
        return *values[:2], unpredicted, *values[2:]

    def _evaluate_sums(self, sums: Floats) -> tuple[Floats, ...]:
        """Compute the values from the sums of the other parts, without the unpredicted classes."""
        n = 2 * len(self._bounds)
        # Integers up to 2^53 are exact, so a matrix that just reaches a limit meets it.
        p, q, sign, is_fraction = self._limits
        amount, base = sums[:n:2], sums[1:n:2]
        slack = sign * (p * np.where(is_fraction, base, 1.0) - q * amount) / q
        slack[is_fraction & (base == 0)] = -1.0
        missed = np.maximum(-slack, 0)
        shortfall = missed.sum(axis=0)
        if self.balanced:
            priority = missed.max(axis=0)
        else:
            priority = missed[[bound == self.first for bound in self._bounds]].sum(axis=0)
        # Rounded, so that they do not depend on the order of summation.
        priority, shortfall = np.round(priority, _DIGITS), np.round(shortfall, _DIGITS)
        return priority, shortfall, np.round(sums[-3], _DIGITS), sums[-2], sums[-1]

    def best_offsets(
        self, scores: Floats, starts: Iterable[Floats] | None = None
    ) -> tuple[Floats, ObjectiveValue]:
        """Find the offset of each class's score with the best value, by sweeps over thresholds.

        With two classes the result is exact. With more, coordinate descent changes the offset of
        one class at a time until none improves. This may end in a local optimum, so it runs from 0
        and from other starts. By default each of these has one larger offset, and the results are
        improved further by opposite changes of two offsets at a time. Of many samples, a part finds
        offsets that all samples then improve. With `starts`, it runs from 0 and these instead.
        """
        if self.k == 2:
            return self._descend(scores, np.zeros(2), [(1, None)])
        singly = [(c, None) for c in range(self.k)]
        if starts is not None:
            wide = [np.zeros(self.k), *(start - start.mean() for start in starts)]
            return min((self._descend(scores, one, singly) for one in wide), key=_value)
        wide = [np.zeros(self.k), *(_STEP * np.eye(self.k))]
        both = [*combinations(range(self.k), 2), *singly]
        at, part = self._sample(_SAMPLE)
        ends = {value: one for one, value in (part._descend(scores[at], w, singly) for w in wide)}
        is_alternative = self.balanced or self.first is not None
        tried, kept = (3, 1) if is_alternative else (_TRIED, _KEPT)
        several = sorted(ends)[: len(ends) if part is self else tried]
        found = [part._descend(scores[at], ends[value], both) for value in several]
        if part is self:
            return min(found, key=_value)
        best = {value: offset for offset, value in sorted(found, key=_value)[:kept]}
        return min((self._improve(scores, one, both) for one in best.values()), key=_value)

    def _improve(
        self, scores: Floats, offset: Floats, directions: Sequence[tuple[int, int | None]]
    ) -> tuple[Floats, ObjectiveValue]:
        """Descend with the samples whose two largest sums are close.

        No difference of two offsets changes by more than the lead of all other samples, so these
        keep their class, and only their counts are needed.
        """
        best = offset, self.evaluate((scores + offset).argmax(axis=1))
        while True:
            moved = scores + offset
            top = np.partition(moved, -2, axis=1)[:, -2:]
            lead = top[:, 1] - top[:, 0]
            width = float(np.quantile(lead, min(_CLOSE / len(lead), 1.0)))
            close, predicted = lead <= width, moved.argmax(axis=1)
            rest = self._select(~close).matrix(predicted[~close]).counts
            near = replace(self._select(close), rest=rest)
            found, value = near._descend(scores[close], offset, directions, width)
            if value < best[1]:
                best = found, value
            if best[0] is not found or np.ptp(found - offset) < 0.9 * width:
                return best
            offset = found

    def _select(self, at: NDArray[np.bool_]) -> Objective:
        """Return the objective of some entries."""
        counts = None if self.counts is None else self.counts[at]
        return replace(self, codes=self.codes[at], counts=counts)

    def _sample(self, size: int) -> tuple[NDArray[np.intp], Objective]:
        """Return positions of about so many entries, and the objective in which they are all."""
        if len(self.codes) < 2 * size:
            return np.arange(len(self.codes)), self
        chosen = []
        for c in range(self.k):  # of a rare class, all
            own = np.flatnonzero(self.codes == c)
            n = max(size * len(own) // len(self.codes), min(len(own), size // self.k))
            chosen.append(own[np.linspace(0, len(own), n, endpoint=False).astype(np.intp)])
        at = np.concatenate(chosen)
        sizes = np.bincount(self.codes, self.counts, self.k)
        drawn = np.bincount(self.codes[at], minlength=self.k)
        counts = np.round(sizes / np.maximum(drawn, 1)).astype(np.int64)[self.codes[at]]
        return at, replace(self, codes=self.codes[at], counts=counts)

    def _descend(
        self,
        scores: Floats,
        offset: Floats,
        directions: Sequence[tuple[int, int | None]],
        width: float = np.inf,
    ) -> tuple[Floats, ObjectiveValue]:
        """Move along one direction after another until none improves the value.

        No difference between two offsets changes by more than `width`.
        """
        first, offset = offset, offset - offset.mean()
        best, n_failed = self.evaluate((scores + offset).argmax(axis=1)), 0
        moved = scores + offset
        for up, down in cycle(directions):
            limits = _limit_move(offset - first, up, down, width)
            move, expected = self._sweep(moved, up, down, limits)
            n_failed += 1  # a direction that has just been searched offers nothing more
            if expected < best:  # then its predictions are counted: rounding may change some
                trial = offset.copy()
                trial[up] += move
                if down is not None:
                    trial[down] -= move
                trial -= trial.mean()
                after = scores + trial
                value = self.evaluate(after.argmax(axis=1))
                if value < best:
                    offset, moved, best, n_failed = trial, after, value, 1
            if n_failed == len(directions):
                break
        return offset, best

    def _sweep(
        self, scores: Floats, up: int, down: int | None, limits: tuple[float, float]
    ) -> tuple[float, tuple[float, ...]]:
        """Find the best amount to add to the scores of class `up`, and to subtract from `down`.

        Return it with the expected value, without a move if none is within the limits.

        As the amount grows, the class that is predicted changes from `down` (if there is one) to
        the best of the others, and then to `up`; or from `down` to `up` directly.
        """
        rows, rest = np.arange(len(scores)), scores.copy()
        rest[:, up] = -np.inf
        if down is not None:
            rest[:, down] = -np.inf
        other = rest.argmax(axis=1)
        at, low, high = rest[rows, other] - scores[:, up], *limits  # `up` is predicted above `at`
        first, entry = np.where(at < low, up, other), rows
        changes = other * self.k + up  # from one class to another
        if down is not None:
            before = scores[:, down] - rest[rows, other]
            directly = before > at
            halfway = (scores[:, down] - scores[:, up]) / 2
            before, at = (np.where(directly, halfway, move) for move in (before, at))
            other = np.where(directly, down, other)
            first = np.where(at < low, up, np.where(before < low, other, down))
            changes = np.concatenate([down * self.k + other, other * self.k + up])
            at, entry = np.concatenate([before, at]), np.concatenate([rows, rows])
        inside = np.flatnonzero((low <= at) & (at <= high))
        if not len(inside):
            return 0.0, (np.inf,)
        order = inside[np.argsort(at[inside])]  # equal values change together, in any order
        at, entry = at[order], entry[order]
        thresholds = np.flatnonzero(np.concatenate([[True], are_separated(at), [True]]))
        ends = [max(at[0] - 1, low)], [min(at[-1] + 1, high)]
        moves = np.concatenate([ends[0], (at[1:] + at[:-1]) / 2, ends[1]])[thresholds]
        cells = np.bincount(self.codes * self.k + first, self.counts, self.k**2)
        if self.rest is not None:
            cells = cells + self.rest[:, : self.k].ravel()
        moved, size = self.codes[entry] * self.k**2 + changes[order], None
        if self.counts is not None:
            size = self.counts[entry].astype(np.float64)
        parts, change = self._parts[:, :, : self.k], self._changes

        def sums(some: slice) -> Floats:
            """Sum some of the parts up to each threshold."""
            start, own = parts[some].reshape(-1, self.k**2) @ cells, change[some]
            found = np.empty((len(own), len(moves)))
            for total, first, steps in zip(found, start, own, strict=True):
                total[:] = first
                if steps.any():  # else a sum over whole rows, such as the base of a rate
                    by_step = steps.take(moved) if size is None else steps.take(moved) * size
                    total[1:] += by_step.cumsum().take(thresholds[1:] - 1)
            return found

        values = self._evaluate_sums(sums(slice(self.k, None)))
        best = smallest(*values, np.abs(moves))
        end, unpredicted = thresholds[best], np.zeros(len(moves), dtype=np.int64)
        done = np.bincount(moved[:end], None if size is None else size[:end], self.k**3)
        columns = change[: self.k] @ done + parts[: self.k].reshape(self.k, -1) @ cells
        if self.every_class and (columns == 0).any():
            unpredicted = np.sum([column == 0 for column in sums(slice(self.k))], axis=0)
            best = smallest(*values[:2], unpredicted, *values[2:], np.abs(moves))
        found = (*values[:2], unpredicted, *values[2:])
        return float(moves[best]), tuple(float(value[best]) for value in found)


def _limit_move(change: Floats, up: int, down: int | None, width: float) -> tuple[float, float]:
    """Return how far a move may go so that no difference of offsets changes by more."""
    if width == np.inf:
        return -np.inf, np.inf
    by_class = change.tolist()
    others = [one for c, one in enumerate(by_class) if c not in (up, down)]
    low, high = max(others) - width, min(others) + width
    limits = [(low - by_class[up], high - by_class[up])]
    if down is not None:
        apart = by_class[up] - by_class[down]
        limits += [(by_class[down] - high, by_class[down] - low)]
        limits += [((-width - apart) / 2, (width - apart) / 2)]
    return max(one for one, _ in limits), min(one for _, one in limits)


def _value(end: tuple[Floats, ObjectiveValue]) -> ObjectiveValue:
    return end[1]


def smallest(*keys: NDArray[Any]) -> int:
    """Find the position of the smallest first key, by the next keys among equals; the first."""
    at = np.arange(len(keys[0]))
    for key in keys:
        if len(at) > 1:
            values = key[at]
            at = at[values == values.min()]
    return int(at[0])
