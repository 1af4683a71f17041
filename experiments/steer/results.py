"""All that the runs found, with the sums, means and differences that the page shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from experiments._parts import Floats, Ints
from experiments.martingale.results import Gap
from experiments.steer import chance
from experiments.steer.asking import Tally
from experiments.steer.guarantees import Case
from experiments.steer.rivals import OURS
from experiments.steer.study import Plan, Run

BAR = 0.01
"""A pooled count less probable than this breaks the bar."""


@dataclass(frozen=True)
class Pooled:
    """The promises of one rate, all sets, splits and sides together, as one rule keeps them.

    Attributes
    ----------
    promises : int
        How many; a rule that refuses some has fewer.
    wrong, m : int
        So many of m test samples are wrong.
    broken : float
        Share of the promises that the test part shows broken.
    expected : float
        What that share would be by chance, by order statistics.
    p : float
        How probable as many wrong ones are by order statistics; nan if the rule refuses some.
    p_at_limit : float
        How probable they are if every true rate were the promised one.
    """

    guarantees: int
    wrong: int
    m: int
    broken: float
    expected: float
    p: float
    p_at_limit: float


@dataclass(frozen=True)
class Results:
    """What was found.

    Attributes
    ----------
    plan : Plan
        What was run.
    seed : int
        The seed of the first split.
    runs : list of Run
        In order.
    """

    plan: Plan
    seed: int
    runs: list[Run]

    @classmethod
    def of(cls, plan: Plan, seed: int, runs: Iterable[Run]) -> Results:
        """Put runs, which come in any order, into their places."""
        return cls(plan, seed, sorted(runs, key=lambda run: (run.title, run.split)))

    @property
    def titles(self) -> list[str]:
        """Data sets in the order of their names."""
        return sorted(self.plan.titles)

    @property
    def cases(self) -> list[Case]:
        """All promises."""
        return [case for run in self.runs for case in run.cases]

    @property
    def percents(self) -> list[int]:
        """Rates that were promised."""
        return sorted({case.percent for case in self.cases})

    @property
    def rules(self) -> list[str]:
        """What was compared."""
        return list(self.cases[0].by)

    @cached_property
    def _by_chance(self) -> dict[int, Ints]:
        """Draws of how many are wrong in all, by rate."""
        drawn = {p: [case.drawn for case in self._promised(p)] for p in self.percents}
        return {percent: chance.sums(each, self.seed) for percent, each in drawn.items()}

    def _promised(self, percent: int) -> list[Case]:
        return [case for case in self.cases if case.percent == percent]

    def pooled(self, percent: int, rule: str) -> Pooled:
        """The promises of one rate, as one rule keeps them."""
        guaranteed, rate = self._promised(percent), percent / 100
        cases = [case for case in guaranteed if case.by[rule] is not None]
        wrong = sum(outcome.wrong for case in cases if (outcome := case.by[rule]) is not None)
        m = sum(case.drawn.m for case in cases)
        expected = [chance.broken_by_chance(case.drawn, rate) for case in cases]
        return Pooled(
            len(cases),
            wrong,
            m,
            _mean([case.broken(rule) for case in cases]),
            _mean(expected),
            chance.p_value(wrong, self._by_chance[percent]) if cases == guaranteed else np.nan,
            chance.p_at_limit(wrong, m, rate),
        )

    def recalls(self, title: str, rule: str) -> Floats:
        """For each split, the mean over its promises of the other class's recall, in %."""
        runs = [run for run in self.runs if run.title == title]
        return np.array([np.mean([case.recall(rule) for case in run.cases]) for run in runs])

    def recall(self, rule: str, titles: Sequence[str] | None = None) -> float:
        """The mean over the data sets."""
        each = self.titles if titles is None else titles
        return float(np.mean([self.recalls(title, rule).mean() for title in each]))

    def gap(self, title: str, rule: str) -> Gap:
        """Margrave less another, split by split."""
        return Gap.of(self.recalls(title, OURS) - self.recalls(title, rule))

    def gap_over_sets(self, rule: str, titles: Sequence[str] | None = None) -> Gap:
        """Margrave less another, data set by data set."""
        each = self.titles if titles is None else titles
        return Gap.of(np.array([self.gap(title, rule).mean for title in each]))

    def worse(self, rule: str) -> list[str]:
        """Data sets where Margrave is below another by more than one standard error."""
        gaps = {title: self.gap(title, rule) for title in self.titles}
        return [title for title, gap in gaps.items() if gap.mean < -gap.error]

    def beside(self, rule: str) -> tuple[int, float, float]:
        """Where a rule does not refuse: how many promises, its recall and Margrave's there."""
        there = [case for case in self.cases if case.by[rule] is not None]
        theirs, ours = (_mean([case.recall(name) for case in there]) for name in (rule, OURS))
        return len(there), theirs, ours

    def tally(self, title: str | None = None) -> Tally:
        """What became of the requests."""
        runs = (run for run in self.runs if title in (None, run.title))
        return sum((run.tally for run in runs), Tally())


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
