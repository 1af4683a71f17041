"""The objective: how far predictions for a labelled set are from a preference, and their errors.

Every bound of a preference is linear in the counts of the confusion matrix
(:mod:`margrave.confusion`), so one sweep evaluates it at all thresholds of a score: as the offset
of one class grows, samples join that class one by one, and each sample changes the sums that the
bounds limit. Among predictions that are equally near to the preference, those that predict every
class are the best; then those with the fewest errors that no bound limits, or another goal of the
preference; then those with the fewest errors in total; then those with the fewest rejected samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
# With at least twice this number of samples, a search begins with a part of about this size.
_SAMPLE = 1500
# So many of its best results are improved on this part, and then so many on all samples.
_TRIED, _KEPT = 6, 2
# All samples are searched in steps, each with about so many whose two largest sums are closest.
_CLOSE = 4000
# All searches but the last also stop after a round of all directions that changes neither a
# shortfall nor the number of unpredicted classes, and lowers the goal by at most this fraction.
_GAIN = 0.02


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
    # Counts of further samples, predicted as they are; none of them is rejected.
    rest: NDArray[np.int64] | None = None
    every_class: bool = True  # whether it is worse never to predict a class
    costs: Floats = field(init=False, repr=False)
    _bounds: tuple[Bound, ...] = field(init=False, repr=False)
    # The slack of a bound is (sum of its parts + constant) / denominator.
    _scales: tuple[tuple[float, float], ...] = field(init=False, repr=False)
    _parts: Floats = field(init=False, repr=False)
    # What a change of one sample adds to each sum: from class a to b where c is true, at place
    # (c k + a) k + b.
    _changes: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        k = len(self.classes)
        empty = Confusion(np.zeros((k, k), dtype=int), self.classes, self.positive)
        bounds = tuple(self.preference.all_bounds)
        costs = goal_costs(bounds, self.preference.then, empty)
        *columns, rejected = (np.tile(np.arange(k + 1) == c, (k, 1)) for c in range(k + 1))
        slacks, bases, scales = [], [], []
        for bound in bounds:  # integers, so that a matrix that just reaches a limit meets it
            amount, base = bound.cells(empty)
            p, q = map(float, bound.limit.as_integer_ratio())
            sign = 1.0 if bound.at_most else -1.0
            slacks.append(sign * (p * bound.is_fraction * base - q * amount))
            bases.append(base)
            scales.append((0.0 if bound.is_fraction else sign * p, q))
        # What one sample of a cell adds to each sum: the slack of each bound, their bases, the
        # goal, the errors, the rejected samples and the predictions of each class.
        parts = np.stack([*slacks, *bases, costs, all_errors(k), rejected, *columns]) * 1.0
        own = parts[:, :, :k]
        changes = (own[:, :, None, :] - own[:, :, :, None]).reshape(len(parts), -1)
        object.__setattr__(self, "costs", costs)
        object.__setattr__(self, "_bounds", bounds)
        object.__setattr__(self, "_scales", tuple(scales))
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_changes", changes)

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
        return self._value(self.matrix(predictions).counts)

    def _value(self, counts: NDArray[np.int64]) -> ObjectiveValue:
        """Evaluate one matrix."""
        priority, shortfall, unpredicted, goal, errors, n_rejected = (
            value[0] for value in self.evaluate_counts(counts[None])
        )
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
        parts = self._parts[:, :, : counts.shape[2]].reshape(len(self._parts), -1)
        sums, n = parts @ counts.reshape(len(counts), -1).T, 2 * len(self._bounds)
        goal, errors, n_rejected, *columns = sums[n:]
        unpredicted = self.every_class * (np.array(columns) == 0).sum(axis=0)
        return *self._shortfalls(sums[:n]), unpredicted, np.round(goal, _DIGITS), errors, n_rejected

    def _shortfalls(self, sums: Floats) -> tuple[Floats, Floats]:
        """Compute the priority and the shortfall from the slacks and the bases of the bounds."""
        # Integers up to 2^53 are exact.
        priority, shortfall = np.zeros((2, sums.shape[1]))
        n = len(self._bounds)
        for bound, scale, slack, base in zip(
            self._bounds, self._scales, sums[:n], sums[n:], strict=True
        ):
            constant, denominator = scale
            missed = np.maximum(-(slack + constant) / denominator, 0.0)
            if bound.is_fraction:  # a fraction of no samples is not met
                missed[base == 0] = 1.0
            shortfall += missed
            if self.balanced:
                np.maximum(priority, missed, out=priority)
            elif bound == self.first:
                priority += missed
        # Rounded, so that they do not depend on the order of summation.
        return np.round(priority, _DIGITS), np.round(shortfall, _DIGITS)

    def best_offsets(
        self, scores: Floats, starts: Iterable[Floats] = (), *, local: bool = False
    ) -> tuple[Floats, ObjectiveValue]:
        """Find the offset of each class's score with the best value, by sweeps over thresholds.

        With two classes the result is exact, except among scores that differ only by rounding. With
        more, coordinate descent changes the offset of one class at a time until none improves. This
        may end in a local optimum, so it runs from 0 and from `starts`. Unless `local`, it also
        runs from offsets with one larger class (of many samples, if there are no `starts`), and
        improves the results by opposite changes of two offsets at a time; if one of several limits
        is missed, it searches on with priority for the one that is missed by most. Of many samples,
        this searches a part, and improves the best results on all of them; there it searches on
        with priority only if the part meets the limits. The result is at least as good as 0 and
        `starts`.
        """
        if self.k == 2:
            return self._descend(scores, np.zeros(2), [(1, None)])
        single: list[tuple[int, int | None]] = [(c, None) for c in range(self.k)]
        both = [*combinations(range(self.k), 2), *single]
        initial = [np.zeros(self.k), *(start - start.mean() for start in starts)]
        at, part = self._sample(_SAMPLE)
        if local:
            search = self._descend if part is self else self._improve
            return _sort_ends(search(scores, one, single) for one in initial)[0]
        wide, gain = initial, 0.0 if part is self else _GAIN
        if part is self or len(initial) == 1:
            wide = [*initial, *(_STEP * np.eye(self.k))]
        ends = _sort_ends(part._descend(scores[at], one, single, gain) for one in wide)
        tried = ends if part is self else ends[:_TRIED]
        ends = _sort_ends(part._descend(scores[at], one, both, gain) for one, _ in tried)
        ends = part._approach_limits(Objective._descend, scores[at], ends, both, gain)
        if part is self:
            return ends[0]
        part_meets_limits = not ends[0][1].shortfall
        if len(initial) == 1:
            ends = _sort_ends(self._improve(scores, one, both, gain) for one, _ in ends[:_KEPT])
        last = [ends[0][0], *initial[1:]]
        ends = _sort_ends(self._improve(scores, one, both) for one in last)
        if part_meets_limits:  # so all samples probably miss them by little, if at all
            ends = self._approach_limits(Objective._improve, scores, ends, both)
        found = ends[0]
        at_zero = self.evaluate(scores.argmax(axis=1))
        return found if found[1] <= at_zero else self._improve(scores, initial[0], both)

    def _approach_limits(
        self,
        search: Callable[..., tuple[Floats, ObjectiveValue]],
        scores: Floats,
        ends: list[tuple[Floats, ObjectiveValue]],
        directions: Sequence[tuple[int, int | None]],
        gain: float = 0.0,
    ) -> list[tuple[Floats, ObjectiveValue]]:
        """Search on from the best result while limits are missed and the shortfall decreases.

        Each time, the limit that is missed by most gets priority, and then loses it again: limits
        may be met there that no single move from the result comes nearer to. The others are not
        tried, since a matrix may have a limit in each cell; nor are those on rejections, as no
        offset rejects anything. An objective that gives priority anyway, as those of alternatives
        do, is left as it is.
        """
        bounds = [bound for bound in self._bounds if bound.word != "rejected"]
        if len(bounds) < 2 or self.first is not None or self.balanced:
            return ends
        shortfall = np.inf
        while 0 < ends[0][1].shortfall < shortfall:
            offset, (_, shortfall, *_) = ends[0]
            matrix = self.matrix((scores + offset).argmax(axis=1))
            worst = min(bounds, key=lambda bound: bound.slack(matrix))
            there, _ = search(replace(self, first=worst), scores, offset, directions, gain)
            ends = _sort_ends([*ends, search(self, scores, there, directions, gain)])
        return ends

    def _improve(
        self,
        scores: Floats,
        offset: Floats,
        directions: Sequence[tuple[int, int | None]],
        gain: float = 0.0,
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
            closest = replace(self._select(close), rest=rest)
            found, _ = closest._descend(scores[close], offset, directions, gain, width)
            value = self.evaluate((scores + found).argmax(axis=1))  # rounding may change others
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
        """Choose about so many entries, and return them with an objective of all samples."""
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
        gain: float = 0.0,
        width: float = np.inf,
    ) -> tuple[Floats, ObjectiveValue]:
        """Move along one direction after another until none improves the value.

        It stops earlier if a round of all directions gains at most this fraction of the goal. No
        difference between two offsets changes by more than `width`.
        """
        initial, offset = offset, offset - offset.mean()
        by_class = np.ascontiguousarray(scores.T)
        moved = by_class + offset[:, None]
        predicted, cells, best = self._predict(moved)
        last_round, n_failed = best, 0
        for n_swept, (up, down) in enumerate(cycle(directions)):
            if gain and n_swept and n_swept % len(directions) == 0:
                gained = last_round.goal - best.goal
                if best[:3] == last_round[:3] and gained <= gain * last_round.goal:
                    break
                last_round = best
            limits = _limit_move(offset - initial, up, down, width)
            move, expected = self._sweep(moved, predicted, cells, up, down, limits)
            n_failed += 1  # a direction that has just been searched offers nothing more
            if expected < best:  # then its predictions are counted: rounding may change some
                trial = offset.copy()
                trial[up] += move
                if down is not None:
                    trial[down] -= move
                trial -= trial.mean()
                after = by_class + trial[:, None]
                found, counted, value = self._predict(after)
                if value < best:
                    offset, moved, best, n_failed = trial, after, value, 1
                    predicted, cells = found, counted
            if n_failed == len(directions):
                break
        return offset, best

    def _predict(
        self, by_class: Floats
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], ObjectiveValue]:
        """Predict the class with the largest score, count the predictions and evaluate them."""
        predicted = by_class.argmax(axis=0)
        counts = np.bincount(self.codes * self.k + predicted, self.counts, self.k**2)
        cells = counts.astype(np.int64).reshape(self.k, self.k)
        if self.rest is not None:
            cells += self.rest[:, : self.k]
        return predicted, cells, self._value(cells)

    def _sweep(
        self,
        moved: Floats,
        predicted: NDArray[np.intp],
        cells: NDArray[np.int64],
        up: int,
        down: int | None,
        limits: tuple[float, float],
    ) -> tuple[float, tuple[float, ...]]:
        """Find the best amount to add to the scores of class `up`, and to subtract from `down`.

        Return it with the expected value, without a move if none is within the limits. The scores
        have a row for each class; they predict `predicted`, which `cells` counts.

        As the amount grows, the class that is predicted changes from `down` (if there is one) to
        the best of the others, and then to `up`; or from `down` to `up` directly.
        """
        k, (low, high) = self.k, limits
        others = np.array([c for c in range(k) if c not in (up, down)])
        rest = moved[others]
        highest = rest.max(axis=0)
        at = highest - moved[up]  # `up` is predicted above it
        # 1. The samples whose predictions change within the limits.
        if down is None:
            rows = np.flatnonzero((low <= at) & (at <= high))
            other, at = others[rest[:, rows].argmax(axis=0)], at[rows]
            first, changes = np.where(at < low, up, other), other * k + up
            entry = np.arange(len(rows))
        else:
            before, halfway = moved[down] - highest, (moved[down] - moved[up]) / 2
            directly = before > at
            before, at = np.where(directly, halfway, before), np.where(directly, halfway, at)
            rows = np.flatnonzero((low <= at) & (at <= high) | (low <= before) & (before <= high))
            before, at = before[rows], at[rows]
            other = np.where(directly[rows], down, others[rest[:, rows].argmax(axis=0)])
            first = np.where(at < low, up, np.where(before < low, other, down))
            entry = np.tile(np.arange(len(rows)), 2)
            changes = np.concatenate([down * k + other, other * k + up])
            at = np.concatenate([before, at])
        # 2. Their changes, in order; equal values change together, in any order.
        inside = np.flatnonzero((low <= at) & (at <= high))
        if not len(inside):
            return 0.0, (np.inf,)
        order = inside[np.argsort(at[inside])]
        at, entry = at[order], entry[order]
        thresholds = np.flatnonzero(np.concatenate([[True], are_separated(at), [True]]))
        smallest_move, largest_move = max(at[0] - 1, low), min(at[-1] + 1, high)
        moves = np.concatenate([[smallest_move], (at[1:] + at[:-1]) / 2, [largest_move]])[
            thresholds
        ]
        # 3. The sums where the move is smallest, and what each change adds to them.
        codes, size = self.codes[rows], None if self.counts is None else self.counts[rows]
        cells = cells.ravel() - np.bincount(codes * k + predicted[rows], size, k**2)
        cells = cells + np.bincount(codes * k + first, size, k**2)
        start = self._parts[:, :, :k].reshape(-1, k**2) @ cells
        kinds = codes[entry] * k**2 + changes[order]
        size = None if size is None else size[entry].astype(np.float64)

        def sums(part: int, ends: NDArray[np.intp]) -> Floats:
            """Sum a part after so many changes."""
            steps = self._changes[part]
            if not steps.any():  # a sum over whole rows, such as the base of a rate
                return np.full(len(ends), start[part])
            total, by_step = np.zeros(len(kinds) + 1), steps.take(kinds)
            np.cumsum(by_step if size is None else by_step * size, out=total[1:])
            return np.asarray(total.take(ends) + start[part])

        # 4. The best move. If it predicts every class, none is better because it predicts more.
        n = 2 * len(self._bounds)
        missed = self._shortfalls(np.array([sums(part, thresholds) for part in range(n)]))
        among = find_smallest(*missed)
        ends, lengths = thresholds[among], np.abs(moves[among])
        goal, n_errors = np.round(sums(n, ends), _DIGITS), sums(n + 1, ends)
        best, unpredicted = find_smallest(goal, n_errors, lengths)[0], np.zeros(len(ends))
        done = np.bincount(kinds[: ends[best]], None if size is None else size[: ends[best]], k**3)
        if self.every_class and (start[-k:] + self._changes[-k:] @ done == 0).any():
            unpredicted = np.sum([sums(-1 - c, ends) == 0 for c in range(k)], axis=0) * 1.0
            best = find_smallest(unpredicted, goal, n_errors, lengths)[0]
        value = [one[among[best]] for one in missed]
        value += [one[best] for one in (unpredicted, goal, n_errors)]
        return float(moves[among[best]]), (*map(float, value), 0.0)


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


def _sort_ends(
    ends: Iterable[tuple[Floats, ObjectiveValue]],
) -> list[tuple[Floats, ObjectiveValue]]:
    """Return the results of searches, the best first; of equal ones the first."""
    offsets: dict[ObjectiveValue, Floats] = {}
    for offset, value in ends:
        offsets.setdefault(value, offset)
    return [(offsets[value], value) for value in sorted(offsets)]


def find_smallest(*keys: NDArray[Any]) -> NDArray[np.intp]:
    """Find the positions of the smallest first key, by the next keys among equals."""
    at = np.arange(len(keys[0]))
    for key in keys:
        if len(at) > 1:
            values = key[at]
            at = at[values == values.min()]
    return at
