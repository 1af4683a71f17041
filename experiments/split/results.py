"""What each method does on the test sets, and the means and differences that the page shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from experiments._parts import Floats, Ints
from experiments.martingale.results import Gap
from experiments.split import data
from experiments.split.trainings import BOOSTING, FIXED, Fixed, Plan, Request, path_of
from experiments.steer import learn_then_test
from experiments.steer import results as steer
from experiments.steer.chance import Sizes
from experiments.steer.guarantees import ORDER_STATISTIC, Outcome, measure
from experiments.steer.guarantees import Case as Guarantee
from experiments.steer.results import Run
from experiments.steer.rivals import (
    CONFIDENCE,
    MARGRAVE,
    MEMBER,
    SELECTION,
    STACKING_LOG_ODDS,
)
from experiments.steer.study import Plan as SteerPlan
from experiments.steer.study import Training
from margrave import datasets
from margrave.steer._order_statistic import largest_allowed_count

SMALL = 1000
"""A problem with fewer rows is small."""
MAPIE = learn_then_test.SEQUENCE
RIVALS = (
    *(MEMBER, STACKING_LOG_ODDS, SELECTION, BOOSTING),
    *((MAPIE,) if learn_then_test.HAS_MAPIE else ()),
)

At = Fixed | None
"""A fixed split, or None for the planned one."""
Key = tuple[str, At]
"""A rule, and the split of its training."""
PLANNED: Key = (MARGRAVE, None)
PLANNED_ORDER_STATISTIC: Key = (ORDER_STATISTIC, None)


@dataclass(frozen=True)
class Case:
    """A certifiable request on one split.

    Attributes
    ----------
    title, source : str
        The problem.
    n_rows : int
        Its number of rows.
    seed : int
        The seed of the split.
    request : Request
        The request.
    n_given : tuple of int
        Given samples of the limited class, and of the other one.
    n_certify : dict of tuple
        The same numbers in the certification set, by split.
    m, n_others : int
        Test samples of the limited class, and of the other one.
    outcomes : dict of Outcome
        Test errors by rule and split; None if the request is refused.
    facts : dict
        Facts about the planned training.
    """

    title: str
    source: str
    n_rows: int
    seed: int
    request: Request
    n_given: tuple[int, int]
    n_certify: dict[At, tuple[int, int]]
    m: int
    n_others: int
    outcomes: dict[Key, Outcome | None]
    facts: dict[str, Any]

    @property
    def as_guarantee(self) -> Guarantee:
        """The guarantee at the planned split, as one of the steering study."""
        n, _ = self.n_certify[None]
        sizes = Sizes(n, largest_allowed_count(n, self.request.rate, 1 - CONFIDENCE), self.m)
        outcomes = {rule: self.outcomes[rule, None] for rule in (MARGRAVE, ORDER_STATISTIC)}
        side, percent = self.request.side, self.request.percent
        return Guarantee(side, percent, sizes, self.n_others, outcomes)

    @property
    def is_new(self) -> bool:
        """Whether the problem is not one of the steering study."""
        return self.title not in datasets.names()

    def set_aside(self, at: At) -> tuple[float, float]:
        """Fractions of the limited class and of the other one in the certification set."""
        (n, n_others), (given, given_others) = self.n_certify[at], self.n_given
        return n / given, n_others / given_others

    def is_certified(self, key: Key) -> bool:
        """Whether the request is certified."""
        return self.outcomes[key] is not None

    def recall(self, key: Key) -> float:
        """Recall of the class that is not limited, in percent; 0 if refused."""
        outcome = self.outcomes[key]
        return 0.0 if outcome is None else 100 * (1 - outcome.missed / self.n_others)


def measure_split(title: str, seed: int, plan: Plan, folder: Path) -> list[Case]:
    """Measure all methods on the stored trainings of one split.

    Raises
    ------
    FileNotFoundError
        If a training is missing.
    """
    problem = data.load(title)
    given = problem.split(seed)
    rules, cases = (MARGRAVE, ORDER_STATISTIC, *RIVALS), []
    for request in plan.certifiable(given.y):
        outcomes: dict[Key, Outcome | None] = {}
        n_certify: dict[At, tuple[int, int]] = {}
        facts: dict[str, Any] = {}
        for at in (*FIXED, None):
            training = Training.load(path_of(folder, title, seed, request, at))
            found = measure(training, request.side, request.percent) or dict.fromkeys(rules)
            outcomes |= {(rule, at): found[rule] for rule in rules}
            n_certify[at] = _count(training.arrays["certify/y"], request)
            facts = training.facts  # in the end those of the planned training
        n_given, (m, n_others) = _count(given.y, request), _count(given.y_test, request)
        where = title, problem.source, problem.n_rows, seed, request
        cases.append(Case(*where, n_given, n_certify, m, n_others, outcomes, facts))
    return cases


def _count(y: Ints, request: Request) -> tuple[int, int]:
    """Count the samples of the limited class and of the other one."""
    n = request.count(y)
    return n, len(y) - n


def _measure_problem(title: str, seed: int, plan: Plan, folder: Path) -> list[Case]:
    """Measure all splits of a problem; none if a training is missing."""
    try:
        each = [measure_split(title, seed + i, plan, folder) for i in plan.splits_of(title)]
    except FileNotFoundError:
        return []
    return [case for cases in each for case in cases]


@dataclass(frozen=True)
class Results:
    """All cases of a plan."""

    plan: Plan
    seed: int
    cases: list[Case]

    @classmethod
    def of(cls, plan: Plan, seed: int, folder: Path, n_jobs: int) -> Results:
        """Measure the problems of which all trainings are stored."""
        jobs = [
            delayed(_measure_problem)(title, seed, plan, folder) for title in sorted(plan.titles)
        ]
        found = Parallel(n_jobs=n_jobs)(jobs)
        return cls(plan, seed, [case for cases in found for case in cases])

    @property
    def incomplete(self) -> list[str]:
        """The problems of which some trainings are not stored."""
        return sorted({*self.plan.titles} - {case.title for case in self.cases})

    @property
    def small(self) -> list[Case]:
        """The cases of small problems."""
        return [case for case in self.cases if case.n_rows < SMALL]

    @property
    def large(self) -> list[Case]:
        """The cases of the other problems."""
        return [case for case in self.cases if case.n_rows >= SMALL]

    @property
    def percents(self) -> list[int]:
        """The guaranteed rates."""
        return sorted({case.request.percent for case in self.cases})

    def best_fixed(self, rule: str) -> Fixed:
        """Find the fixed split at which the mean recall of a rule is highest."""
        return max(FIXED, key=lambda at: mean_recall(self.cases, (rule, at)))

    def best_where_both(self, rule: str) -> Fixed:
        """Find the fixed split at which a rule is best where it and Margrave's plan certify."""

        def mean(at: Fixed) -> float:
            both = both_certify(self.cases, (rule, at), PLANNED)
            if not both:
                return -np.inf
            return mean_recall(both, (rule, at)) - mean_recall(both, PLANNED)

        return max(FIXED, key=mean)

    @property
    def guarantees(self) -> steer.Results:
        """The certified guarantees of the planned splits, as those of the steering study."""
        runs = [
            Run(case.title, case.seed, "", [case.as_guarantee])
            for case in self.cases
            if case.is_certified(PLANNED)
        ]
        return steer.Results(SteerPlan(self.plan.titles), self.seed, runs)


def by_problem(cases: Iterable[Case], of: Callable[[Case], float]) -> dict[str, float]:
    """Average a value over the requests of each split, then over the splits of each problem."""
    values: dict[tuple[str, int], list[float]] = {}
    for case in cases:
        values.setdefault((case.title, case.seed), []).append(of(case))
    means: dict[str, list[float]] = {}
    for (title, _), each in values.items():
        means.setdefault(title, []).append(float(np.mean(each)))
    return {title: float(np.mean(each)) for title, each in means.items()}


def by_source(cases: Sequence[Case], of: Callable[[Case], float]) -> Floats:
    """Average a value over the problems of each source, which are alike."""
    sources = {case.title: case.source for case in cases}
    values: dict[str, list[float]] = {}
    for title, value in by_problem(cases, of).items():
        values.setdefault(sources[title], []).append(value)
    return np.array([np.mean(each) for each in values.values()])


def mean_recall(cases: Sequence[Case], key: Key) -> float:
    """Mean over the sources of the recall of a method."""
    return float(np.mean(by_source(cases, lambda case: case.recall(key))))


def both_certify(cases: Sequence[Case], one: Key, other: Key) -> list[Case]:
    """List the cases that neither method refuses."""
    return [case for case in cases if case.is_certified(one) and case.is_certified(other)]


def difference(cases: Sequence[Case], one: Key, other: Key) -> Gap | None:
    """Mean and standard error over the sources of a difference in recall; None for one source."""
    each = by_source(cases, lambda case: case.recall(one) - case.recall(other))
    return Gap.of(each) if len(each) > 1 else None
