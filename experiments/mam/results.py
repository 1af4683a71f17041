"""All that the runs found, with the means, differences and tests that the page shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from experiments._parts import Floats
from experiments.mam.classifying import OTHERS
from experiments.mam.coverage import Setting, Statement
from experiments.mam.holding import Holding
from experiments.mam.large import Large
from experiments.mam.ordering import RANKER
from experiments.mam.study import Classified, Covered, InBins, MonteCarlo, Plan, Run
from experiments.martingale.results import Gap
from margrave.compare import FriedmanHolm, friedman_holm

ALPHA = 0.05


@dataclass(frozen=True)
class Results:
    """What was found.

    Attributes
    ----------
    plan : Plan
        What was run.
    seed : int
        The seed of the first split.
    classified, monte_carlo, binned, covered, large : list
        Runs of each kind, in order.
    """

    plan: Plan
    seed: int
    classified: list[Classified]
    monte_carlo: list[MonteCarlo]
    binned: list[InBins]
    covered: list[Covered]
    large: list[Large]

    @classmethod
    def of(cls, plan: Plan, seed: int, runs: Iterable[Run]) -> Results:
        """Put runs, which come in any order, into their places."""
        found = list(runs)
        return cls(
            plan,
            seed,
            sorted(
                (run for run in found if isinstance(run, Classified)),
                key=lambda run: (run.title, run.split),
            ),
            sorted((run for run in found if isinstance(run, MonteCarlo)), key=lambda run: run.run),
            sorted(
                (run for run in found if isinstance(run, InBins)),
                key=lambda run: (run.title, run.bins, run.split),
            ),
            sorted(
                (run for run in found if isinstance(run, Covered)), key=lambda run: (run.n, run.run)
            ),
            [run for run in found if isinstance(run, Large)],
        )

    # Classification

    @property
    def titles(self) -> list[str]:
        """Sets with two classes."""
        return sorted(self.plan.raetsch)

    def errors(self, title: str, method: str) -> Floats:
        """Errors on the splits of a set, in %."""
        runs = (run for run in self.classified if run.title == title)
        return 100 * np.array([run.by[method].error for run in runs])

    def mean_errors(self, method: str) -> Floats:
        """Mean error on each set, in %."""
        return np.array([self.errors(title, method).mean() for title in self.titles])

    def seconds(self, title: str, method: str, *, known: bool = False) -> float:
        """Mean seconds on a set; `known` without the search for settings."""
        trials = [run.by[method] for run in self.classified if run.title == title]
        return float(np.mean([trial.known if known else trial.seconds for trial in trials]))

    def times(self, method: str, form: str, *, known: bool = False) -> float:
        """How many times as long as a form of MAM it takes: the geometric mean over the sets."""
        ratios = [
            self.seconds(title, method, known=known) / self.seconds(title, form, known=known)
            for title in self.titles
        ]
        return float(np.exp(np.mean(np.log(ratios))))

    def gap(self, form: str, other: str) -> Gap:
        """Error of a form less that of another method, set by set, in points."""
        return Gap.of(self.mean_errors(form) - self.mean_errors(other))

    def largest_gap(self, form: str, other: str) -> tuple[float, str]:
        """The largest difference of that kind, and the set that has it."""
        gaps = self.mean_errors(form) - self.mean_errors(other)
        return float(gaps.max()), self.titles[int(gaps.argmax())]

    def tested(self, form: str) -> FriedmanHolm:
        """A form against the other methods, over the sets."""
        errors = {name: self.mean_errors(name) for name in (form, *OTHERS)}
        return friedman_holm(errors, control=form, larger_is_better=False, alpha=ALPHA)

    # Order

    @property
    def artificial_rankers(self) -> list[str]:
        """Rankers on section 5's data."""
        return list(self.monte_carlo[0].by)

    def taus(self, method: str) -> Floats:
        """Kendall's τ on the runs of section 5."""
        return np.array([run.by[method].tau for run in self.monte_carlo])

    def tau_gap(self, method: str, other: str) -> Gap:
        """Differences in τ on section 5's data, in hundredths."""
        return Gap.of(100 * (self.taus(method) - self.taus(other)))

    @cached_property
    def cells(self) -> dict[tuple[str, int], list[InBins]]:
        """Splits of each set with each number of bins."""
        found: dict[tuple[str, int], list[InBins]] = {}
        for run in self.binned:
            found.setdefault((run.title, run.bins), []).append(run)
        return found

    @property
    def rankers(self) -> list[str]:
        """Rankers on the sets in bins."""
        return list(self.binned[0].rankers) if self.binned else []

    @property
    def graders(self) -> list[str]:
        """Classifiers of ordered classes."""
        return list(self.binned[0].graders) if self.binned else []

    def binned_taus(self, method: str) -> Floats:
        """Mean τ in each cell."""
        each = ([run.rankers[method].tau for run in runs] for runs in self.cells.values())
        return np.array([np.mean(taus) for taus in each])

    def accuracies(self, method: str) -> Floats:
        """Mean accuracy in each cell, in %."""
        each = ([run.graders[method].accuracy for run in runs] for runs in self.cells.values())
        return 100 * np.array([np.mean(values) for values in each])

    def offs(self, method: str) -> Floats:
        """By how many classes predictions are off, the mean in each cell."""
        each = ([run.graders[method].off for run in runs] for runs in self.cells.values())
        return np.array([np.mean(offs) for offs in each])

    def binned_seconds(self, ranker: str) -> float:
        """Mean seconds of a ranker on the sets in bins."""
        return float(np.mean([run.rankers[ranker].seconds for run in self.binned]))

    def ranks_tested(self) -> FriedmanHolm:
        """The rankers over the sets; cells of one set are averaged, as they have the same rows."""
        titles = [title for title, _ in self.cells]
        names = sorted(set(titles))
        taus = {
            method: [self.binned_taus(method)[np.equal(titles, name)].mean() for name in names]
            for method in self.rankers
        }
        return friedman_holm(taus, control=RANKER, alpha=ALPHA)

    # Bounds

    @cached_property
    def holdings(self) -> list[Holding]:
        """Every setting with every δ."""
        by: dict[tuple[Setting, float], list[Statement]] = {}
        for run in self.covered:
            for one in run.statements:
                by.setdefault((one.setting, one.delta), []).append(one)
        found = [Holding.of(statements) for statements in by.values()]
        return sorted(found, key=lambda one: (one.delta, one.setting))

    # Large data

    def on_large(self, title: str, methods: Iterable[str]) -> list[Large]:
        """Some methods on a large set, in their order."""
        by = {run.method: run for run in self.large if run.title == title}
        return [by[method] for method in methods]

    def best_on_large(self, title: str, methods: Iterable[str]) -> Large | None:
        """The one with the least error; None if all took longer than the limit."""
        done = [run for run in self.on_large(title, methods) if run.finished]
        return min(done, key=lambda run: run.error, default=None)
