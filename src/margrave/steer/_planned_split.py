"""The planned split: how many samples of each class to set aside for a guarantee.

The number of errors that n certification samples of a class allow grows in steps: for a limit of
5 % at confidence 0.95 it is 0 from n = 59 on, 1 from 93, 2 from 124. Between two steps, more
samples only make the threshold stricter, so only these numbers are worth setting aside. With each
step the threshold comes nearer to the limit, and the recall of the other class grows; but the
members are trained on fewer samples, and their scores get worse. The plan chooses the smallest step
whose expected recall is about the highest.

After certification with c allowed errors of n, the true error rate r is Beta(c + 1, n − c). The
recall at this rate comes from a binormal ROC curve, Φ(a + b Φ⁻¹(r)). Its intercept grows with the
numbers n₀ and n₁ of training samples of the two classes: a = a₀ − s √(1/n₀ + 1/n₁). A logistic
regression, trained on two thirds and on one third of the samples and tested on the rest, determines
a₀, b and s.

Other guarantees (precision, alarms, rejection, more than two classes) need samples of all classes
in their proportions. For them the plan compares a few fractions of the table: it simulates
certification on the scores of the same logistic regressions, and extrapolates the result to more
training samples.

The plan must not depend on the certification set. So the largest set that it may use is set aside
first, the plan is made on the other samples alone, and what it does not need goes back to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import ceil
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr, ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from margrave._messages import name_class
from margrave._parallel import limit_threads
from margrave._typing import Codes, Floats
from margrave.confusion import Confusion, Objective, Preference
from margrave.steer._order_statistic import one_sided_bounds, samples_needed
from margrave.steer._plan import TuningScores, make_plan, simulate
from margrave.steer._thresholds import best_decision, best_rejecting_decision

_TRAINED = 30  # samples of each class that a plan leaves for training
_LARGEST = 0.65  # the largest fraction of a class to set aside, unless its limit needs more
_OTHERS, _FEWEST_OTHERS, _MOST_OTHERS = 0.1, 10, 100  # of a class without a limit
FRACTIONS = (0.2, 0.3, 0.4, 0.5, 0.6)  # of all classes
_FOLDS = 3
MAX_PLANNED = 4000  # rows to plan on
_FURTHER = 3  # options with more rows, each with twice the errors, or the rows, of the last
# Steps to consider: all up to so many errors, then ever fewer.
_ALL_STEPS = 8
_NEGLIGIBLE = 0.001  # a difference of expected recalls that justifies no larger set
# The true rate after certification is represented by so many quantiles.
_QUANTILES = (np.arange(100) + 0.5) / 100
# Prior of the curve: its slope b and the effect s of the training size, from tables of 300 to
# 2,000 rows; and the weight of the measured effect.
_SLOPE, _EFFECT, _WEIGHT = 0.9, 2.0, 0.5
_RIDGE = 0.3

Sizes = list[int]
"""A number of samples of each class."""


@dataclass(frozen=True)
class Limit:
    """The strictest limit on the errors of a class.

    Attributes
    ----------
    rate : float
        The limit, as a fraction.
    delta : float
        The error probability of its guarantee.
    """

    rate: float
    delta: float

    def steps(self, most: int) -> list[tuple[int, int]]:
        """List the numbers of samples up to `most` at which more errors are allowed, with these."""
        steps: list[tuple[int, int]] = []
        allowed = 0
        while (n := samples_needed(self.rate, self.delta, allowed) or 0) <= most:
            steps.append((n, allowed))
            allowed += 1 if allowed < _ALL_STEPS else allowed // 4
        return steps


def limits_by_class(
    guarantee: Preference | None,
    counts: NDArray[np.int64],
    labels: tuple[Any, ...],
    positive: Any,
    delta: float,
) -> dict[int, Limit]:
    """Return the strictest limit on each of two classes; empty if a bound is of another kind.

    Only limits on rates within a class can be certified with a number of samples per class.
    """
    if guarantee is None or len(labels) != 2:
        return {}
    matrix = Confusion(np.diag(counts), labels, positive)
    bounds = one_sided_bounds(guarantee.in_rates(matrix), matrix)
    n_parts = len({prediction for *_, prediction in bounds})  # bounds on one side share theirs
    limits: dict[int, Limit] = {}
    for bound, rows, _ in bounds:
        rate = float(bound.limit if bound.at_most else 1 - bound.limit)
        if rows.sum() != 1 or rate <= 0:
            return {}
        code = int(np.argmax(rows))
        if code not in limits or rate < limits[code].rate:
            limits[code] = Limit(rate, delta / n_parts)
    return limits


class Draw(Protocol):
    """A way to draw a certification set with a number of samples of each class."""

    @property
    def available(self) -> Sizes:
        """The number of samples of each class that can be drawn."""

    @property
    def by_class(self) -> bool:
        """Whether the numbers of the classes can be chosen one by one."""

    def complete(self, needed: Mapping[int, int]) -> Sizes:
        """Return the number of samples of each class in a set with those that are needed."""

    def fraction(self, fraction: float) -> Sizes:
        """Return the number of samples of each class in a set with a fraction of all samples."""


def largest_sizes(limits: Mapping[int, Limit], draw: Draw) -> Sizes:
    """Return the largest certification set that a plan may use, in samples of each class."""
    available = draw.available
    return draw.complete(
        {code: _steps_of(limit, available[code])[-1][0] for code, limit in limits.items()}
    )


def _steps_of(limit: Limit, available: int) -> list[tuple[int, int]]:
    """List the steps to choose from; if the limit needs more samples, a part of the class."""
    most = max(available - _TRAINED, 1)
    possible = limit.steps(most)
    moderate = [step for step in possible if step[0] <= _LARGEST * available]
    return moderate or possible[:1] or [(max(round(_LARGEST * available), 1), -1)]


def number_of_others(available: int) -> int:
    """Return how many samples of a class without a limit to set aside."""
    few = min(max(round(_OTHERS * available), _FEWEST_OTHERS), _MOST_OTHERS)
    return min(max(min(few, available // 3, available - _TRAINED), 1), available)


@dataclass(frozen=True, eq=False)
class Trial:
    """Out-of-fold scores of a logistic regression with two training sizes.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        True classes.
    two_thirds, one_third : ndarray of shape (n,), or (n, k) for more than two classes
        The scores by models that were trained on these parts of the samples.
    """

    codes: Codes
    two_thirds: Floats
    one_third: Floats

    @classmethod
    def run(cls, X: Any, codes: Codes, groups: NDArray[Any] | None = None) -> Trial:
        """Train and score.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Encoded samples in random order, none of them in the certification set.
        codes : ndarray of shape (n,)
            True classes.
        groups : ndarray of shape (n,), optional
            The group of each sample.
        """
        splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
        k = len(np.unique(codes))
        two_thirds, one_third = np.zeros((2, len(codes)) if k == 2 else (2, len(codes), k))
        folds = splitter(_FOLDS, shuffle=True, random_state=0)
        with limit_threads(1):  # matrices are small
            for training, held in folds.split(codes, codes, groups):
                half = np.concatenate([training[codes[training] == c][::2] for c in range(k)])
                for scores, at in ((two_thirds, training), (one_third, half)):
                    model = LogisticRegression(max_iter=200).fit(X[at], codes[at])
                    scores[held] = model.decision_function(X[held])
        return cls(codes, two_thirds, one_third)


@dataclass(frozen=True)
class LearningCurve:
    """A binormal ROC curve that depends on the number of training samples.

    Attributes
    ----------
    intercept, effect : float
        The intercept of the curve is ``intercept - effect * sqrt(1 / n_limited + 1 / n_other)``.
    slope : float
        The slope of the curve.
    """

    intercept: float
    slope: float
    effect: float

    def recall(self, rates: Floats, n_limited: float, n_other: float) -> Floats:
        """Return the recall of the other class at error rates of the limited class."""
        intercept = self.intercept - self.effect * _spread(n_limited, n_other)
        return np.asarray(ndtr(intercept + self.slope * ndtri(rates)))

    @classmethod
    def of(cls, trial: Trial, limited: int) -> LearningCurve:
        """Fit one slope and two intercepts to the ROC curves of the two training sizes."""
        is_limited, sign = trial.codes == limited, 1 if limited == 0 else -1
        (x, y_large), (_, y_small) = (
            _roc_points(sign * scores[is_limited], sign * scores[~is_limited])
            for scores in (trial.two_thirds, trial.one_third)
        )
        n, pull = len(x), np.sqrt(_RIDGE * 2 * len(x))
        design = np.zeros((2 * n + 1, 3))
        design[:n, 0] = design[n : 2 * n, 0] = x
        design[:n, 1] = design[n : 2 * n, 2] = 1
        design[-1, 0] = pull
        target = np.concatenate([y_large, y_small, [pull * _SLOPE]])
        slope, at_large, at_small = np.linalg.lstsq(design, target, rcond=None)[0]
        n_limited, n_other = int(is_limited.sum()), int((~is_limited).sum())
        large_spread, small_spread = (
            _spread(part * n_limited, part * n_other) for part in (2 / 3, 1 / 3)
        )
        measured = (at_large - at_small) / (small_spread - large_spread)
        effect = max(_WEIGHT * measured + (1 - _WEIGHT) * _EFFECT, 0.0)
        return cls(float(at_large + effect * large_spread), float(max(slope, 0.1)), float(effect))


TYPICAL = LearningCurve(2.0, _SLOPE, _EFFECT)
"""The curve that is assumed where none can be measured."""


def _spread(n_limited: float, n_other: float) -> float:
    return float(np.sqrt(1 / n_limited + 1 / n_other))


def _roc_points(limited: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Return points of an ROC curve, up to an error rate of ½, on probit scales."""
    ordered, n = np.sort(limited)[::-1], len(limited)
    rank = np.unique(np.geomspace(1, max(n // 2, 1), 20).astype(int))
    under = np.sort(other)
    ties = [np.searchsorted(under, ordered[rank - 1], side) for side in ("left", "right")]
    recall = 1 - (ties[0] + ties[1]) / 2 / len(other)
    edge = 0.5 / len(other)
    return ndtri((rank - 0.5) / n), ndtri(np.clip(recall, edge, 1 - edge))


@dataclass(frozen=True)
class SplitOption:
    """A certification set that a plan considers.

    Attributes
    ----------
    certify_by_class : dict
        The number of samples of each class in it.
    allowed_errors : dict
        For each class with a limit, how many of these may be errors; -1 if the samples are too few.
        Empty for guarantees that are not limits on rates within a class.
    recall : float
        The expected recall of the class without a limit; with limits on both classes, and for other
        guarantees, the mean recall of all classes. A refused guarantee counts as 0. It is that of a
        logistic regression; a committee is usually better.
    more_rows : dict
        For each class that needs more rows than there are, how many; empty if none does.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> plan = Dialog.plan_split(X, y, guarantee="fp <= 10%", random_state=0).plan
    >>> smallest = plan.options[0]
    >>> smallest.certify_by_class, smallest.allowed_errors
    ({'neg': 29, 'pos': 27}, {'neg': 0})
    >>> plan.chosen.recall > smallest.recall
    True
    """

    certify_by_class: dict[Any, int]
    allowed_errors: dict[Any, int]
    recall: float
    more_rows: dict[Any, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SplitPlan:
    """How many samples a dialog sets aside for a guarantee, and what it expects of that.

    Attributes
    ----------
    guarantee : str
        The preference to certify.
    confidence : float
        Its confidence.
    options : tuple of SplitOption
        The certification sets that were considered, the smallest first.
    chosen : SplitOption
        The smallest one whose expected recall is about the highest.
    recall_without : float
        The expected recall with the threshold exactly at the limit, if nothing had to be set aside.
    further : tuple of SplitOption
        What more rows would give: up to three certification sets, each with about twice as many
        allowed errors as the one before, while at least as many rows train the members. For
        guarantees that are not limits on rates within a class, each with twice the rows.
    by_class : bool
        Whether the class proportions of the certification set and of the tuning set differ from
        those of the data, so that only rates within a class can be requested.
    seconds : float
        How long planning took.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> plan = Dialog.plan_split(X, y, guarantee="fp <= 5%", random_state=0).plan
    >>> plan.chosen.allowed_errors
    {'neg': 8}
    >>> plan.chosen.certify_by_class
    {'neg': 286, 'pos': 27}
    """

    guarantee: str
    confidence: float
    options: tuple[SplitOption, ...]
    chosen: SplitOption
    recall_without: float
    further: tuple[SplitOption, ...]
    by_class: bool = False
    seconds: float = 0.0

    @property
    def cost(self) -> float:
        """The recall that the guarantee costs."""
        return self.recall_without - self.chosen.recall

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values; ``options`` has a record of each option."""
        return {
            "guarantee": self.guarantee,
            "confidence": self.confidence,
            "options": [_record(option) for option in self.options],
            "chosen": _record(self.chosen),
            "recall_without": self.recall_without,
            "further": [_record(option) for option in self.further],
            "by_class": self.by_class,
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        sizes = self.chosen.certify_by_class
        parts = " and ".join(f"{n:,} of {name_class(label)}" for label, n in sizes.items())
        lines = [
            f"Planned for '{self.guarantee}' at confidence {self.confidence:.9g}: the "
            f"certification set has {parts}."
        ]
        others = [label for label in sizes if label not in self.chosen.allowed_errors]
        recall = f"recall of {name_class(others[0])}" if len(others) == 1 else "mean recall"
        too_few = any(allowed < 0 for allowed in self.chosen.allowed_errors.values())
        if too_few:
            lines.append("There are too few samples: it cannot be certified.")
        elif self.chosen.recall < _NEGLIGIBLE:
            lines.append("A logistic regression would not be certified with any number of samples.")
        else:
            lines.append(
                f"Expected {recall}, by a logistic regression: {self.chosen.recall:.1%}; the "
                f"guarantee costs {100 * self.cost:.1f} points. A committee is usually better."
            )
        limited = list(self.chosen.allowed_errors)
        rows = [
            [f"set aside of {label}" for label in sizes]
            + [f"allowed errors of {label}" for label in limited]
            + [f"expected {recall}"]
        ]
        possible = [one for one in self.options if one.recall >= _NEGLIGIBLE and not too_few]
        for option in (*possible, *self.further):
            numbers = [*option.certify_by_class.values(), *option.allowed_errors.values()]
            more = [f"{n:,} more rows of {name_class(c)}" for c, n in option.more_rows.items()]
            mark = " <-" if option == self.chosen else f"  with {' and '.join(more)}" * bool(more)
            rows.append([*(f"{n:,}" for n in numbers), f"{option.recall:.1%}{mark}"])
        if len(rows) == 1:
            return "\n".join(lines)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def _record(option: SplitOption) -> dict[str, Any]:
    """Return an option as JSON values; classes are keys, so they become text."""
    return {
        "certify_by_class": {str(label): n for label, n in option.certify_by_class.items()},
        "allowed_errors": {str(label): n for label, n in option.allowed_errors.items()},
        "recall": option.recall,
        "more_rows": {str(label): n for label, n in option.more_rows.items()},
    }


def choose_sizes(
    limits: Mapping[int, Limit],
    available: Sizes,
    complete: Callable[[Mapping[int, int]], Sizes],
    labels: tuple[Any, ...],
    curve: LearningCurve,
) -> tuple[tuple[SplitOption, ...], SplitOption]:
    """Return the options, and the smallest one whose expected recall is about the highest.

    Parameters
    ----------
    limits : mapping of int to Limit
        The limit on each class that has one, by its code.
    available : list of int
        The number of samples of each class.
    complete : callable
        As in `Draw`.
    labels : tuple
        The two classes.
    curve : LearningCurve
        The ROC curve, for the first class with a limit.
    """
    limited = list(limits)
    options = []
    for steps in product(*(_steps_of(limits[code], available[code]) for code in limited)):
        needed = dict(zip(limited, steps, strict=True))
        sizes = complete({code: n for code, (n, _) in needed.items()})
        training = [n - size for n, size in zip(available, sizes, strict=True)]
        options.append(
            SplitOption(
                dict(zip(labels, sizes, strict=True)),
                {labels[code]: allowed for code, (_, allowed) in needed.items()},
                _expected_recall(needed, training, curve),
            )
        )
    # With equal times, the samples of a step may come with many others.
    enough = [
        option
        for option in options
        if all(
            n - option.certify_by_class[label] >= _TRAINED
            for label, n in zip(labels, available, strict=True)
        )
    ]
    options = sorted(enough or options, key=lambda option: sum(option.certify_by_class.values()))
    return tuple(options), _choose(options)


def _choose(options: list[SplitOption]) -> SplitOption:
    """Return the smallest option whose expected recall is about the highest.

    If a certificate is improbable with all of them, this is the largest one.
    """
    best = max(option.recall for option in options)
    if best < _NEGLIGIBLE:
        return options[-1]
    return next(option for option in options if option.recall >= best - _NEGLIGIBLE)


def _expected_recall(
    needed: Mapping[int, tuple[int, int]], training: Sizes, curve: LearningCurve
) -> float:
    """Return the expected recall at a certified threshold."""
    if any(allowed < 0 for _, allowed in needed.values()) or min(training) < 1:
        return 0.0
    first, *others = (
        betaincinv(allowed + 1, n - allowed, _QUANTILES) for n, allowed in needed.values()
    )
    code = next(iter(needed))
    recall = curve.recall(first, training[code], training[1 - code])
    if not others:
        return float(recall.mean())
    # A threshold meets both limits if the rate of one order statistic leaves few enough errors of
    # the other class. The two rates are independent.
    certified = (1 - recall[:, None] <= others[0]).mean(axis=1)
    return float((certified * (1 - first + recall) / 2).mean())


def _further_sizes(
    chosen: SplitOption,
    limits: Mapping[int, Limit],
    available: Sizes,
    labels: tuple[Any, ...],
    curve: LearningCurve,
) -> list[SplitOption]:
    """Return options with more rows, the training rows at least as many as with the chosen one."""
    sizes, further = list(chosen.certify_by_class.values()), []
    trained = [n - size for n, size in zip(available, sizes, strict=True)]
    steps = {code: (sizes[code], chosen.allowed_errors[labels[code]]) for code in limits}
    for _ in range(_FURTHER):
        is_possible = all(allowed >= 0 for _, allowed in steps.values())
        for code, limit in limits.items():
            allowed = steps[code][1]
            if is_possible or allowed < 0:
                allowed = max(2 * allowed, allowed + 1)
                n = samples_needed(limit.rate, limit.delta, allowed) or 0
                steps[code] = n, allowed
                # A plan sets no larger part of a class aside, unless the limit needs more.
                trained[code] = max(trained[code], _TRAINED, ceil(n * (1 / _LARGEST - 1)))
        needed = {code: n for code, (n, _) in steps.items()}
        sizes = [needed.get(code, size) for code, size in enumerate(sizes)]
        more = {labels[code]: n + trained[code] - available[code] for code, n in needed.items()}
        further.append(
            SplitOption(
                dict(zip(labels, sizes, strict=True)),
                {labels[code]: allowed for code, (_, allowed) in steps.items()},
                _expected_recall(steps, trained, curve),
                {label: n for label, n in more.items() if n > 0},
            )
        )
    return further


def _that_help(further: list[SplitOption], chosen: SplitOption) -> tuple[SplitOption, ...]:
    """Return the options that need more rows, and are expected to be better than the chosen one."""
    least = chosen.recall + _NEGLIGIBLE
    return tuple(option for option in further if option.more_rows and option.recall >= least)


def plan_sizes(
    guarantee: Preference,
    limits: Mapping[int, Limit],
    draw: Draw,
    labels: tuple[Any, ...],
    confidence: float,
    curve: LearningCurve,
) -> SplitPlan:
    """Plan the certification set for a guarantee."""
    available = draw.available
    options, chosen = choose_sizes(limits, available, draw.complete, labels, curve)
    (code, limit), *others = limits.items()
    exact = float(curve.recall(np.array(limit.rate), available[code], available[1 - code]))
    exact = max((1 - limit.rate + exact) / 2 if others else exact, chosen.recall)
    return SplitPlan(
        str(guarantee.limits),
        confidence,
        options,
        chosen,
        exact,
        _that_help(_further_sizes(chosen, limits, available, labels, curve), chosen),
        draw.by_class,
    )


def plan_fractions(
    guarantee: Preference,
    trial: Trial,
    draw: Draw,
    labels: tuple[Any, ...],
    positive: Any,
    confidence: float,
) -> SplitPlan:
    """Plan the certification set for a guarantee that needs all classes in their proportions."""
    objective = Objective(guarantee, trial.codes, labels, positive)
    simulations = [
        _Simulation(guarantee, objective, scores, 1 - confidence)
        for scores in (trial.two_thirds, trial.one_third)
    ]
    n_trial = len(trial.codes)

    def recall(sizes: Sizes, n_all: int) -> float:
        """Extrapolate from the two training sizes of the trial to all other samples."""
        large, small = (simulation.recall(sizes) for simulation in simulations)
        spreads = [
            1 / np.sqrt(n) for n in (2 / 3 * n_trial, 1 / 3 * n_trial, max(n_all - sum(sizes), 1))
        ]
        effect = max(_WEIGHT * (large - small) / (spreads[1] - spreads[0]), 0.0)
        return float(np.clip(large + effect * (spreads[0] - spreads[2]), 0, 1)) if large else 0.0

    n_all = sum(draw.available)
    options = [
        SplitOption(dict(zip(labels, sizes, strict=True)), {}, recall(sizes, n_all))
        for sizes in map(draw.fraction, FRACTIONS)
    ]
    chosen = _choose(options)
    further = []
    for factor in 2 ** np.arange(1, _FURTHER + 1):  # more rows are divided as the others are
        sizes = {label: int(factor * n) for label, n in chosen.certify_by_class.items()}
        more = [int((factor - 1) * n) for n in draw.available]
        expected = recall(list(sizes.values()), int(factor * n_all))
        further.append(SplitOption(sizes, {}, expected, dict(zip(labels, more, strict=True))))
    return SplitPlan(
        str(guarantee.limits),
        confidence,
        tuple(options),
        chosen,
        # Draws and folds are random, so a small gain might be negative.
        max(recall([], n_all), chosen.recall),
        _that_help(further, chosen),
    )


@dataclass(frozen=True, eq=False)
class _Simulation:
    """Simulates certification on the scores of one training size."""

    guarantee: Preference
    objective: Objective
    scores: Floats
    delta: float

    def recall(self, sizes: Sizes) -> float:
        """Return the expected mean recall of all classes; without certification for no sizes."""
        best = best_rejecting_decision if self.guarantee.allows_rejecting else best_decision
        decision = best(self.objective, self.scores)
        if not sizes:
            matrix = self.objective.matrix(decision.predict(self.scores))
            return float(np.mean([matrix.recall(label) for label in matrix.classes]))
        n = np.array(sizes)
        plan = make_plan(self.guarantee, decision, self.scores, self.objective, n, self.delta)
        return simulate(plan, TuningScores.of(self.scores, self.objective), n, self.delta).recall
