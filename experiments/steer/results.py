"""The results of all runs, with the sums, means and differences that the page shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from experiments.martingale.results import Gap
from experiments.steer import chance
from experiments.steer.guarantees import RIVALS, THRESHOLDS, Case, measure_all
from experiments.steer.rivals import MARGRAVE
from experiments.steer.study import Plan, Training, path_of

MIN_P = 0.01
"""The target on guarantees is missed if a pooled count is less probable than this."""


@dataclass(frozen=True)
class Run:
    """The results of one split.

    Attributes
    ----------
    title : str
        The data set.
    seed : int
        Seed of the split.
    best_member : str
        Name of the best member.
    cases : list of Case
        The guarantees.
    """

    title: str
    seed: int
    best_member: str
    cases: list[Case]


def measure_run(title: str, seed: int, plan: Plan, folder: Path) -> Run | None:
    """Measure a split; None if its training is not stored."""
    path = path_of(folder, title, seed)
    if not path.exists():
        return None
    training = Training.load(path)
    cases = measure_all(training, plan.percents)
    return Run(title, seed, training.facts["best member"], cases)


@dataclass(frozen=True)
class Pooled:
    """The guarantees of one rate over all data sets, splits and sides, by one rule.

    Attributes
    ----------
    n_cases : int
        Number of guarantees; fewer for a rule that finds no threshold for some.
    wrong, m : int
        Test errors in the limited class, and test samples of it.
    exceeded : float
        Fraction of the guarantees whose rate is exceeded on test.
    expected : float
        The fraction that is expected by chance, if the whole allowance is used.
    p : float
        Probability of as many errors or more, if the whole allowance is used; nan if the rule finds
        no threshold for some guarantees.
    """

    n_cases: int
    wrong: int
    m: int
    exceeded: float
    expected: float
    p: float


@dataclass(frozen=True)
class Results:
    """The runs of a plan.

    Attributes
    ----------
    plan : Plan
        The plan.
    seed : int
        The seed of the first split.
    runs : list of Run
        The runs, by data set and split.
    """

    plan: Plan
    seed: int
    runs: list[Run]

    @classmethod
    def of(cls, plan: Plan, seed: int, folder: Path, n_jobs: int) -> Results:
        """Measure the splits whose trainings are stored."""
        jobs = [
            delayed(measure_run)(title, seed + split, plan, folder)
            for title in sorted(plan.titles)
            for split in range(plan.n_splits)
        ]
        return cls(plan, seed, [run for run in Parallel(n_jobs=n_jobs)(jobs) if run is not None])

    @property
    def n_missing(self) -> int:
        """The number of splits whose trainings are not stored."""
        return len(self.plan.titles) * self.plan.n_splits - len(self.runs)

    @property
    def titles(self) -> list[str]:
        """The data sets, sorted."""
        return sorted(self.plan.titles)

    @property
    def cases(self) -> list[Case]:
        """All guarantees."""
        return [case for run in self.runs for case in run.cases]

    @property
    def percents(self) -> list[int]:
        """The guaranteed rates."""
        return sorted({case.percent for case in self.cases})

    @property
    def strongest(self) -> tuple[str, Gap] | None:
        """The rival with the highest mean difference to Margrave; None for a single data set."""
        gaps = {rule: self.mean_difference(rule) for rule in RIVALS}
        known = [(rule, gap) for rule, gap in gaps.items() if gap is not None]
        return max(known, key=lambda one: one[1].mean, default=None)

    def pooled(self, percent: int, rule: str) -> Pooled:
        """Pool the guarantees of one rate, by Margrave or by another threshold of its score."""
        return self._pooled[percent, rule]

    @cached_property
    def _pooled(self) -> dict[tuple[int, str], Pooled]:
        known = [rule for rule in THRESHOLDS if self.cases and rule in self.cases[0].outcomes]
        return {(p, rule): self._pool(p, rule) for p in self.percents for rule in known}

    def _pool(self, percent: int, rule: str) -> Pooled:
        every, rate = [case for case in self.cases if case.percent == percent], percent / 100
        cases = [case for case in every if case.outcomes[rule] is not None]
        wrong = sum(outcome.wrong for case in cases if (outcome := case.outcomes[rule]))
        m = sum(case.sizes.m for case in cases)
        sizes = [case.sizes_of(rule) for case in cases]
        return Pooled(
            len(cases),
            wrong,
            m,
            _mean([case.is_exceeded(rule) for case in cases]),
            _mean([chance.probability_exceeded(one, rate) for one in sizes]),
            chance.p_value(wrong, chance.draw_sums(sizes, self.seed)) if cases == every else np.nan,
        )

    def by_split(self, title: str, of: Callable[[Case], float]) -> list[float]:
        """Average a value over the guarantees of each split; nan values are left out."""
        each = [[of(case) for case in run.cases] for run in self.runs if run.title == title]
        known = [[value for value in values if not np.isnan(value)] for values in each]
        return [_mean(values) for values in known if values]

    def recall(self, title: str, rule: str) -> float:
        """Mean recall of the other class on a data set, in percent."""
        return _mean(self.by_split(title, lambda case: case.recall(rule)))

    def mean_recall(self, rule: str) -> float:
        """Mean over the data sets of the recall of the other class."""
        recalls = [self.recall(title, rule) for title in self.titles]
        return _mean([recall for recall in recalls if not np.isnan(recall)])

    def differences(self, title: str, rule: str) -> list[float]:
        """For each split of a data set, the recall of a rule minus Margrave's, in points."""
        return self.by_split(title, lambda case: case.recall(rule) - case.recall(MARGRAVE))

    def difference(self, title: str, rule: str) -> Gap | None:
        """Mean and standard error over the splits of a rule minus Margrave."""
        return _gap(self.differences(title, rule))

    def mean_difference(self, rule: str, titles: Sequence[str] | None = None) -> Gap | None:
        """Mean and standard error over the data sets of a rule minus Margrave."""
        each = [self.differences(title, rule) for title in titles or self.titles]
        return _gap([_mean(values) for values in each if values])


def is_higher(gap: Gap | None) -> bool:
    """Whether a difference is above 0 by more than one standard error."""
    return gap is not None and gap.mean > gap.error


def is_lower(gap: Gap | None) -> bool:
    """Whether a difference is below 0 by more than two standard errors.

    One is enough for `is_higher`: a result against Margrave needs less evidence than one for it.
    """
    return gap is not None and gap.mean < -2 * gap.error


def _gap(values: Sequence[float]) -> Gap | None:
    """Return mean and standard error; None for fewer than two values."""
    return Gap.of(np.array(values)) if len(values) > 1 else None


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
