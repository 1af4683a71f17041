"""Plans of a certification, made on the tuning set: which decisions are tested, and in which order.

There are two routes:

- *Order statistics*, for two classes and rates with a fixed base (``fp``, ``fn``, ``recall``,
  ``alarms``, ``rejected``, ...). Each bound allows all positions of a threshold on one side of one
  of the scores. Of several bounds on the same side of the same threshold only the strictest can be
  violated first, so the error probability δ is divided between sides, not bounds. Rejecting is
  tested with a part of its own. The decision uses the whole allowance if that is always better by
  the goal of the preference; else it is the nearest to a fixed one that is allowed.
- *A tested path*, for all preferences. Decisions that the tuning set determined are tested one
  after another until the first one fails (Learn then Test, Angelopoulos et al., 2021). A decision
  passes if every bound passes at the full δ. The tests need no correction for several bounds,
  because a false guarantee needs the violated bound itself to pass; nor for several decisions,
  because the first failure ends the path. Each decision is better than all before it on the tuning
  set, by the goal of the preference, so the last one that passes is certified. The path goes on
  where the tuning set exceeds a limit: the certification set may prove more.

Where both are possible, certification is simulated on samples that are drawn from the tuning set,
and the route that is better by the goal is planned. Of the certification set, planning uses
the class sizes; if a bound counts samples of several classes together, the class sizes are part of
what is tested, and planning uses only their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from margrave._typing import Codes, Floats, Ints
from margrave.confusion import (
    Bound,
    BoundsAndGoal,
    Confusion,
    Objective,
    Preference,
    Tally,
    count_predictions,
)
from margrave.steer._order_statistic import (
    REJECTING,
    Side,
    fewest_sufficient,
    find_sides,
    forbids_rejecting,
    is_trivial,
    largest_allowed_count,
    p_value,
)
from margrave.steer._thresholds import (
    Decision,
    Offsets,
    Threshold,
    best_decision,
    lead_of_largest,
)

# The fractions of each limit that the offsets on a path may use on the tuning set.
_FRACTIONS = tuple(np.linspace(1.4, 0, 29).round(3).tolist())
# Thresholds on a path for two classes: quantiles of all scores, without and with rejection, and the
# distinct scores nearest to the limit. The number of minimum leads for more classes.
_QUANTILES, _BANDS, _NEAREST, _LEADS = 101, 61, 300, 21
# Of a large tuning set, a simulation uses so many samples.
_MOST_SAMPLES = 10_000
N_DRAWS = 200
# A tested path has to be better than order statistics by this proportion.
_CLEARLY = 0.01
# The rejection of a fixed threshold is planned so that it passes its test in this part of draws.
_LIKELY = 0.9


@dataclass(frozen=True, eq=False)
class Plan:
    """What to guarantee and how, fixed before the certification set is used."""

    preference: Preference  # to guarantee, in rates
    classes: tuple[Any, ...]
    positive: Any
    # A decision for the tuning set. Order statistics change it as little as possible, if the goal
    # does not want the whole allowance. Of a band whose width they set, they keep the centre.
    decision: Decision
    # The decisions to test one after another, the safest first; each is better on the tuning set
    # than all before it. Empty for order statistics.
    path: tuple[Decision, ...] = ()

    @property
    def route(self) -> str:
        """The name of the route."""
        return "tested path" if self.path else "order statistics"

    def matrix(self, predictions: Codes, codes: Codes) -> Confusion:
        """Return the confusion matrix of some predictions."""
        return count_predictions(predictions, codes, self.classes, self.positive)

    @property
    def empty(self) -> Confusion:
        """A matrix of the classes without samples."""
        k = len(self.classes)
        return Confusion(np.zeros((k, k + 1), dtype=int), self.classes, self.positive)

    @property
    def sides(self) -> list[Side]:
        """What each bound limits, for order statistics."""
        return find_sides(self.preference, self.empty) or []

    @property
    def may_reject(self) -> bool:
        """Whether the decision may reject samples."""
        return not any(map(forbids_rejecting, self.preference.all_bounds))

    @property
    def moving(self) -> set[int]:
        """The thresholds that order statistics set: 0 is the lower one, 1 the upper one."""
        return {side.threshold for side in self.sides} - {REJECTING}

    @property
    def best_end(self) -> int:
        """Where a threshold is best by the goal: -1 as low as allowed, 1 as high; 0 neither."""
        costs = self.preference.goal(self.empty).costs(self.empty)
        gains = costs[:, 0] - costs[:, 1]  # of predicting the second class instead of the first
        return int((gains <= 0).all()) - int((gains >= 0).all())

    @property
    def sets_width(self) -> bool:
        """Whether order statistics set the width of a band: with rejection and two limits."""
        kinds = {
            (side.threshold, side.from_below) for side in self.sides if side.threshold != REJECTING
        }
        return self.may_reject and kinds == {(0, False), (1, True)}

    @property
    def n_parts(self) -> int:
        """The number of parts that the error probability is divided into."""
        if self.path:
            return 1
        sides = self.sides
        if not self.may_reject:  # one threshold, whatever predictions are limited
            return max(len({side.from_below for side in sides}), 1)
        if self.sets_width:  # the width of a band, from below and from above
            return 2
        return max(len({(side.threshold, side.from_below) for side in sides}), 1)

    def part(self, delta: float) -> float:
        """Return the part of the error probability that each bound gets."""
        return delta / self.n_parts

    def cells(self) -> list[tuple[Bound, NDArray[np.bool_], NDArray[np.bool_]]]:
        """Return each bound, the cells that it limits and the cells of its base."""
        return [(bound, *bound.cells(self.empty)) for bound in self.preference.all_bounds]

    def limited_sizes(self, sizes: Ints, delta: float) -> list[tuple[NDArray[np.bool_], int]]:
        """Return how many samples of some classes to use, where fewer than all of them are better.

        More samples only help if they allow more errors. A class is left as it is if several
        bounds limit it, or if rejecting is limited, which all classes have a part in.
        """
        sides = [] if self.path else self.sides
        numbers = []
        for side in sides:
            if sum(bool((side.rows & other.rows).any()) for other in sides) == 1:
                n = int(sizes[side.rows].sum())
                fewest = fewest_sufficient(n, side.limit, self.part(delta))
                if fewest < n:
                    numbers.append((side.rows, fewest))
        return numbers


@dataclass(frozen=True, eq=False)
class Draws:
    """Scores of samples, and how often each of them is in each of several sets."""

    scores: Floats
    codes: Codes
    # Of shape (n_draws, n). For order statistics, all sets have the same number of samples of the
    # classes that a side limits; a path allows any class sizes.
    counts: Floats

    @classmethod
    def of(cls, scores: Floats, codes: Codes) -> Draws:
        """Make a single set, of all samples."""
        return cls(scores, codes, np.ones((1, len(codes))))

    def tabulate_bands(self) -> Callable[[Threshold], Floats]:
        """Return a fast function that counts the predictions of thresholds for two classes."""
        order = np.argsort(self.scores, kind="stable")
        ordered, n = self.scores[order], len(order)
        under = np.zeros((len(self.counts), 2, n + 1))
        for c in range(2):
            under[:, c, 1:] = np.cumsum(self.counts[:, order] * (self.codes[order] == c), axis=1)

        def tabulate(decision: Threshold) -> Floats:
            low, high = np.searchsorted(ordered, [decision.low, decision.high], "right")
            below, upto = under[:, :, low], under[:, :, high]
            return np.stack([below, under[:, :, n] - upto, upto - below], axis=2)

        return tabulate

    def tabulate(self, predictions: Codes, k: int) -> Floats:
        """Count predictions, equal in all sets or a row for each, in matrices (k, k + 1)."""
        matrices = np.empty((len(self.counts), k, k + 1))
        for c in range(k):
            at = self.codes == c
            counts, found = self.counts[:, at], predictions[..., at]
            for column in range(k + 1):
                there = found == (column if column < k else -1)
                if there.ndim == 1:
                    matrices[:, c, column] = counts @ there
                else:
                    matrices[:, c, column] = (counts * there).sum(axis=1)
        return matrices


@dataclass(frozen=True, eq=False)
class TuningScores:
    """The scores of the tuning set, as a simulation draws from them."""

    scores: Floats
    codes: Codes
    counts: Ints  # how many samples each entry stands for
    # The sets that were drawn, by their class sizes: drawing takes most of a simulation's time.
    drawn: dict[tuple[int, ...], Draws] = field(default_factory=dict)

    @classmethod
    def of(cls, scores: Floats, objective: Objective) -> TuningScores:
        """Take the samples of an objective, or many of them."""
        codes, counts = objective.codes, objective.counts
        counts = np.ones(len(codes), dtype=np.int64) if counts is None else counts
        if len(codes) > _MOST_SAMPLES:
            chance = counts / counts.sum()
            rng = np.random.default_rng(0)
            at = np.sort(rng.choice(len(codes), _MOST_SAMPLES, replace=True, p=chance))
            scores, codes, counts = scores[at], codes[at], np.ones(len(at), dtype=np.int64)
        return cls(scores, codes, counts)

    def draw(self, sizes: Ints) -> Draws:
        """Draw sets with these class sizes.

        The tuning set is only a sample itself. So each set is drawn with probabilities of its own,
        as those of a population would be given the tuning set (the Bayesian bootstrap).
        """
        key = tuple(sizes.tolist())
        if key not in self.drawn:
            self.drawn[key] = Draws(self.scores, self.codes, self._count_draws(key))
        return self.drawn[key]

    def _count_draws(self, sizes: tuple[int, ...]) -> Floats:
        rng = np.random.default_rng(0)
        counts = np.zeros((N_DRAWS, len(self.codes)))
        for c, n in enumerate(sizes):
            at = np.flatnonzero(self.codes == c)
            if len(at):
                chance = rng.standard_gamma(self.counts[at], (N_DRAWS, len(at)))
                chance /= chance.sum(axis=1, keepdims=True)
                counts[:, at] = rng.multinomial(n, chance)
        return counts


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes of a certification on several sets."""

    certified: NDArray[np.bool_]
    matrices: Floats  # of shape (n_draws, k, k + 1)
    decisions: list[Decision]  # the certified ones; without a meaning where there is none
    n_tested: Ints  # the number of decisions that were tested; 1 for order statistics

    @property
    def rates(self) -> Floats:
        """The matrices as rates within each true class."""
        return np.asarray(self.matrices / self.matrices.sum(axis=2, keepdims=True))

    @property
    def recall(self) -> float:
        """The mean over classes of the proportion predicted right; 0 without a certificate."""
        k = self.matrices.shape[1]
        right = self.rates[:, np.arange(k), np.arange(k)].mean(axis=1)
        return float(np.where(self.certified, right, 0.0).mean())

    def value(self, plan: Plan) -> float:
        """The mean of the fraction of the largest cost that is avoided; 0 without a certificate."""
        costs = plan.preference.goal(plan.empty).costs(plan.empty)
        largest = (self.matrices.sum(axis=2) * costs.max(axis=1)).sum(axis=1)
        avoided = 1 - (self.matrices * costs).sum(axis=(1, 2)) / np.maximum(largest, 1e-12)
        return float(np.where(self.certified, avoided, 0.0).mean())


def certify_draws(plan: Plan, draws: Draws, delta: float) -> Outcomes:
    """Set the decision of a plan on each of several sets."""
    if plan.path:
        return _test_path(plan, draws, delta)
    return _set_thresholds(plan, draws, plan.part(delta))


def simulate(plan: Plan, tuning: TuningScores, sizes: Ints, delta: float) -> Outcomes:
    """Simulate a certification with these class sizes."""
    sizes = sizes.copy()
    for rows, n in plan.limited_sizes(sizes, delta):
        sizes[rows] = np.round(sizes[rows] * (n / sizes[rows].sum())).astype(np.int64)
        sizes[np.argmax(rows)] += n - sizes[rows].sum()
    return certify_draws(plan, tuning.draw(sizes), delta)


def _test_path(plan: Plan, draws: Draws, delta: float) -> Outcomes:
    """Test the decisions one after another; take the last one before the first failure."""
    k, cells, n_draws = len(plan.classes), plan.cells(), len(draws.counts)
    passing, n_passed = np.ones(n_draws, dtype=bool), np.zeros(n_draws, dtype=np.int64)
    tabulate = draws.tabulate_bands() if k == 2 else None
    matrices = draws.tabulate(plan.path[0].predict(draws.scores), k)
    for decision in plan.path:
        if tabulate is not None and isinstance(decision, Threshold):
            found = tabulate(decision)
        else:
            found = draws.tabulate(decision.predict(draws.scores), k)
        passing = passing & (_p_values(cells, decision.rejects, found) <= delta)
        if not passing.any():
            break
        n_passed += passing
        matrices[passing] = found[passing]
    decisions = [plan.path[max(n - 1, 0)] for n in n_passed.tolist()]
    return Outcomes(n_passed > 0, matrices, decisions, np.minimum(n_passed + 1, len(plan.path)))


def _p_values(
    cells: Sequence[tuple[Bound, NDArray[np.bool_], NDArray[np.bool_]]],
    rejects: bool | NDArray[np.bool_],
    matrices: Floats,
) -> Floats:
    """Return the largest p-value of the bounds for each matrix."""
    worst = np.zeros(len(matrices))
    for bound, amount, base in cells:
        counts, n = matrices[:, amount].sum(axis=1), matrices[:, base].sum(axis=1)
        # Of a matrix that is expected, and has no whole counts, the p-value is a little larger.
        count = np.ceil(counts - 1e-9) if bound.at_most else np.floor(counts + 1e-9)
        found = p_value(count, np.floor(n + 1e-9), float(bound.limit), bound.at_most)
        if bound.word == "rejected" and bound.at_most:  # the decision alone may settle it
            found = np.where(rejects, 1.0 if forbids_rejecting(bound) else found, 0.0)
        worst = np.maximum(worst, found)
    return worst


def _set_thresholds(plan: Plan, draws: Draws, part: float) -> Outcomes:
    """Set the thresholds that are best by the goal, or nearest to the plan's, by order statistics.

    If too many samples may be rejected, nothing is: :attr:`Plan.n_parts` accounts for this second
    decision.
    """
    decision = plan.decision
    if not isinstance(decision, Threshold):
        raise TypeError(f"Order statistics need a threshold; got {decision!r}.")
    lowest, highest = _find_limits(plan.sides, draws, part)
    # A single threshold has to be where both may be.
    smallest, largest = lowest.max(axis=1), highest.min(axis=1)
    certified = smallest <= largest
    low = high = _best_allowed(plan.best_end, decision.high, smallest, largest)
    if plan.sets_width:
        low, high, certified = _scale_band(plan, decision, draws, lowest, highest, part)
    elif plan.may_reject:
        wide_low = _best_allowed(plan.best_end, decision.low, lowest[:, 0], highest[:, 0])
        wide_high = _best_allowed(plan.best_end, decision.high, lowest[:, 1], highest[:, 1])
        allowed = (lowest <= highest).all(axis=1) & (wide_low < wide_high)
        allowed &= _test_rejecting(plan, draws, wide_low, wide_high, part)
        if decision.low == decision.high:  # reject only where a single threshold is not enough
            allowed &= ~certified
        low, high = np.where(allowed, [wide_low, wide_high], [low, high])
        certified |= allowed
    scores = draws.scores
    predictions = np.where(scores > high[:, None], 1, np.where(scores <= low[:, None], 0, -1))
    decisions: list[Decision] = [
        Threshold(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)
    ]
    n_tested = np.ones(len(low), dtype=np.int64)
    return Outcomes(certified, draws.tabulate(predictions, 2), decisions, n_tested)


def _scale_band(
    plan: Plan, decision: Threshold, draws: Draws, lowest: Floats, highest: Floats, part: float
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Set the width of a band around a fixed centre: at least what the errors need, or nothing.

    A wider band makes fewer errors and rejects more. So of the limits on errors only the strictest
    can be violated, by a band that is too narrow, and they share a part of δ. A limit on rejected
    samples can only be violated by a band that is too wide: as for a band with one fixed threshold,
    only the narrowest of those that reject too many has to fail.
    """
    centre, half = (decision.low + decision.high) / 2, (decision.high - decision.low) / 2
    needed = np.maximum(np.maximum(lowest[:, 1] - centre, centre - highest[:, 0]), 0.0)
    distances = np.abs(draws.scores - centre)
    most = np.full(len(needed), np.inf)
    for side in plan.sides:
        if side.threshold == REJECTING:
            at = np.flatnonzero(side.rows[draws.codes])
            at = at[np.argsort(distances[at], kind="stable")]
            under = np.cumsum(draws.counts[:, at], axis=1)
            allowed = largest_allowed_count(int(under[0, -1]), side.limit, part)
            if allowed < 0:  # not even that nothing is rejected can be tested
                most[:] = 0.0
                continue
            first = distances[at][(under > allowed).argmax(axis=1)]  # that may not be rejected
            most = np.minimum(most, first - 1e-12 * (abs(centre) + first))  # it is outside, rounded
    width = np.minimum(np.maximum(needed, half), np.maximum(most, 0.0))
    # Rounded, an end may lie on the wrong side of its limit.
    low, high = (
        np.where(width > 0, np.minimum(centre - width, highest[:, 0]), centre),
        np.where(width > 0, np.maximum(centre + width, lowest[:, 1]), centre),
    )
    certified = (needed <= width) & np.isfinite(needed)
    certified &= (width == 0) | _test_rejecting(plan, draws, low, high, part)
    return low, high, certified


def _best_allowed(toward: int, fixed: float, lowest: Floats, highest: Floats) -> Floats:
    """Return the allowed threshold that the goal wants, or the one nearest to a fixed one."""
    nearest = np.clip(fixed, lowest, np.maximum(lowest, highest))
    end = lowest if toward < 0 else highest
    return np.where(np.isfinite(end) & (toward != 0), end, nearest)


def _find_limits(sides: Sequence[Side], draws: Draws, part: float) -> tuple[Floats, Floats]:
    """Return the smallest and the largest allowed value of both thresholds in each set."""
    shape = (len(draws.counts), 2)
    lowest, highest = np.full(shape, -np.inf), np.full(shape, np.inf)
    for side in sides:
        if side.threshold == REJECTING:
            continue
        at = np.flatnonzero(side.rows[draws.codes])
        at = at[np.argsort(draws.scores[at], kind="stable")]
        ordered, under = draws.scores[at], np.cumsum(draws.counts[:, at], axis=1)
        n = int(under[0, -1])
        allowed = largest_allowed_count(n, side.limit, part)
        if allowed < 0:
            lowest[:], highest[:] = np.inf, -np.inf
        elif side.from_below:  # at most `allowed` scores are above the threshold
            found = ordered[(under >= n - allowed).argmax(axis=1)]
            lowest[:, side.threshold] = np.maximum(lowest[:, side.threshold], found)
        else:  # at most `allowed` scores are at or below it
            found = np.nextafter(ordered[(under > allowed).argmax(axis=1)], -np.inf)
            highest[:, side.threshold] = np.minimum(highest[:, side.threshold], found)
    return lowest, highest


def _test_rejecting(
    plan: Plan, draws: Draws, low: Floats, high: Floats, part: float
) -> NDArray[np.bool_]:
    """Test whether few enough samples are between two thresholds.

    The samples determine the band that they test. One of its thresholds or its centre is fixed, so
    all bands contain each other: of those that reject too many, only the narrowest has to fail.
    """
    inside = (draws.scores > low[:, None]) & (draws.scores <= high[:, None])
    passed = np.ones(len(low), dtype=bool)
    for side in plan.sides:
        if side.threshold == REJECTING:
            rows = side.rows[draws.codes]
            allowed = largest_allowed_count(int(draws.counts[0, rows].sum()), side.limit, part)
            passed &= (draws.counts * (inside & rows)).sum(axis=1) <= allowed
    return passed


def make_plan(
    preference: Preference,
    decision: Decision,
    scores: Floats,
    objective: Objective,
    sizes: Ints,
    delta: float,
    tuning: TuningScores | None = None,
) -> Plan:
    """Choose the route and the decisions so that the expected outcome is best.

    `decision`, `scores` and `objective` are about the tuning set, `sizes` are the class sizes of
    the certification set. `tuning` has the same scores for simulations; by default they are made.
    """
    empty = objective.matrix(objective.codes)
    plan = Plan(preference.in_rates(empty), objective.classes, objective.positive, decision)
    sizes = planning_sizes(plan, objective, sizes)
    sides = find_sides(plan.preference, empty)
    if sides is None or (plan.moving == {0, 1} and plan.may_reject and not plan.sets_width):
        return _plan_path(plan, scores, objective, sizes)
    tuning = TuningScores.of(scores, objective) if tuning is None else tuning
    if plan.may_reject:
        plan = _plan_band(plan, tuning, sizes, delta)
    if plan.n_parts == 1:
        return plan
    tested = _plan_path(replace(plan, decision=decision), scores, objective, sizes)
    values = [simulate(one, tuning, sizes, delta).value(plan) for one in (plan, tested)]
    return tested if values[1] > values[0] + _CLEARLY else plan


def planning_sizes(plan: Plan, objective: Objective, sizes: Ints) -> Ints:
    """Return class sizes to plan with, which no test of the certification set is about.

    If a bound counts samples of several classes together, these are the number of all samples
    times the class proportions of the tuning set, else the class sizes of the certification set.
    """
    together = any(
        base.any(axis=1).sum() > 1
        for bound, _, base in plan.cells()
        if not forbids_rejecting(bound) and not is_trivial(float(bound.limit), bound.at_most)
    )
    if not together:
        return sizes
    tuned = objective.matrix(objective.codes).counts.sum(axis=1)
    return np.asarray(np.maximum(np.round(sizes.sum() * tuned / tuned.sum()), 1), dtype=np.int64)


def _plan_band(plan: Plan, tuning: TuningScores, sizes: Ints, delta: float) -> Plan:
    """Choose the threshold that order statistics do not set, with rejection, or a band to scale.

    A threshold stays where it was tuned, or nearer to the other one so that not too many samples
    are rejected. The centre of a band to scale is that of the narrowest one that both limits will
    probably allow; it is as wide as the tuned one.
    """
    decision, sides, part = plan.decision, plan.sides, plan.part(delta)
    if not isinstance(decision, Threshold):
        raise TypeError(f"Order statistics need a threshold; got {decision!r}.")
    draws = tuning.draw(sizes)
    lowest, highest = _find_limits(sides, draws, part)
    if plan.sets_width:
        tuned = decision.high - decision.low
        low, high = float(np.median(highest[:, 0])), float(np.median(lowest[:, 1]))
        if high <= low:  # a single threshold may be enough
            low = high = min(max((decision.low + decision.high) / 2, high), low)
        if not np.isfinite([low, high]).all():  # the limits cannot be certified
            return plan
        centre = (low + high) / 2
        return replace(plan, decision=Threshold(centre - tuned / 2, centre + tuned / 2))
    low, high = (
        float(np.median(_best_allowed(plan.best_end, fixed, lowest[:, at], highest[:, at])))
        for at, fixed in enumerate((decision.low, decision.high))
    )
    widest = high - low if np.isfinite([low, high]).all() else 0.0
    for fraction in np.linspace(1, 0, 11):
        width = fraction * widest
        if 0 in plan.moving:  # the upper threshold is fixed
            band = Threshold(decision.low, max(low + width, decision.low))
        else:
            band = Threshold(min(high - width, decision.high), decision.high)
        plan = replace(plan, decision=band)
        found = _set_thresholds(plan, draws, part)
        if np.mean([one.rejects for one in found.decisions]) >= _LIKELY:
            break
    return plan


def _plan_path(plan: Plan, scores: Floats, objective: Objective, sizes: Ints) -> Plan:
    """Make the path: the safest decision, then those that are better, the safest of them first."""
    if objective.k == 2:
        decisions, matrices, is_quantile = _band_grid(plan, scores, objective, sizes)
    else:
        decisions, matrices = _offset_grid(plan, scores, objective)
        is_quantile = np.ones(len(decisions), dtype=bool)
    expected = matrices * (sizes / np.maximum(matrices[0].sum(axis=1), 1))[:, None]
    rejects = np.array([one.rejects for one in decisions])
    order = np.argsort(_p_values(plan.cells(), rejects, expected), kind="stable")
    # The safest of very many would be the safest by chance.
    order = order[is_quantile[order].argmax() :]
    values = np.column_stack(objective.evaluate_counts(matrices)[2:]).tolist()
    kept: list[int] = []
    for at in order.tolist():
        if not kept or values[at] < values[kept[-1]]:
            kept.append(at)
    return replace(plan, path=tuple(decisions[at] for at in kept))


def _band_grid(
    plan: Plan, scores: Floats, objective: Objective, sizes: Ints
) -> tuple[list[Decision], Floats, NDArray[np.bool_]]:
    """Return bands of quantiles and near the limit, their matrices, and which are of quantiles."""
    tally = Tally.of(scores, objective.codes, objective.counts)
    values, under = tally.highs, tally.under[1:]  # the counts up to each value

    def matrices(low: Ints, high: Ints) -> Floats:
        below, upto = under[low], under[high]
        return np.stack([below, under[-1] - upto, upto - below], axis=2).astype(float)

    n = under.sum(axis=1)
    q = np.linspace(0, 1, _BANDS if plan.may_reject else _QUANTILES)
    chosen = np.searchsorted(n, q * n[-1], "left")
    every = np.arange(len(values))
    if plan.may_reject and isinstance(plan.decision, Threshold):
        tuned = np.searchsorted(values, [[plan.decision.low], [plan.decision.high]])
        near = (tuned + np.arange(-_BANDS // 4, _BANDS // 4)).ravel()
    else:
        scale = sizes / np.maximum(under[-1], 1)
        p = _p_values(plan.cells(), False, matrices(every, every) * scale[:, None])
        near = np.argsort(np.abs(ndtri(np.clip(p, 1e-300, 1 - 1e-16))), kind="stable")[:_NEAREST]
    chosen, near = (np.clip(one, 0, len(values) - 1) for one in (chosen, near))
    quantiles = chosen
    chosen = np.unique(np.append(chosen, near))
    i, j = np.triu_indices(len(chosen)) if plan.may_reject else (np.arange(len(chosen)),) * 2
    low, high = chosen[i], chosen[j]
    bands = [*map(Threshold, values[low].tolist(), values[high].tolist())]
    return list(bands), matrices(low, high), np.isin(low, quantiles) & np.isin(high, quantiles)


def _offset_grid(plan: Plan, scores: Floats, objective: Objective) -> tuple[list[Decision], Floats]:
    """Return the tuned decision and offsets with several minimum leads, with their matrices."""
    offsets = _find_offsets(objective, plan.preference, scores)
    decisions = [plan.decision]
    for offset in offsets:
        leads = [0.0]
        if plan.may_reject:
            lead = lead_of_largest(scores + offset)
            leads += np.quantile(lead, np.linspace(0, 1, _LEADS)[1:-1]).tolist()
        decisions += [Offsets(offset, float(lead)) for lead in leads]
    matrices = [objective.matrix(one.predict(scores)).counts for one in decisions]
    return decisions, np.array(matrices, dtype=float)


def _find_offsets(objective: Objective, wanted: Preference, scores: Floats) -> list[Floats]:
    """Find offsets that use fractions of all limits, or of all but those of one word."""
    found: list[Decision] = []
    goal = wanted.goal(objective.matrix(objective.codes))
    words = dict.fromkeys(bound.word for bound in wanted.bounds if len(wanted.bounds) > 1)
    for fixed in ("", *words):
        for fraction in _FRACTIONS:
            bounds = [
                bound if bound.word == fixed else _tighten_bound(bound, fraction)
                for bound in wanted.all_bounds
            ]
            tightened = replace(objective, preference=BoundsAndGoal(tuple(bounds), goal))
            start = found[-1] if found else None
            found.append(best_decision(tightened, scores, start, local=start is not None))
    return [one.offset for one in found if isinstance(one, Offsets)]


def _tighten_bound(bound: Bound, fraction: float) -> Bound:
    exact = type(bound.limit)(fraction)
    limit = bound.limit * exact if bound.at_most else 1 - (1 - bound.limit) * exact
    return replace(bound, limit=limit.limit_denominator(10**9))
