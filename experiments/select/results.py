"""The results of all runs, pooled over splits and sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from experiments.martingale.results import Gap
from experiments.select.comparing import METHODS, MethodCounts
from experiments.select.meta_des import MetaCheck
from experiments.select.study import Plan, Run
from experiments.select.timing import Timing

TARGET = 0.99
"""The least agreement outside ties, of each method on each set."""


@dataclass(frozen=True)
class Results:
    """The results of the study.

    Attributes
    ----------
    plan : Plan
        The runs of the study.
    seed : int
        The seed of the first split.
    runs : list of Run
        The runs, sorted.
    ours, theirs : dict
        Seconds; theirs is None without the peer.
    peer : dict or None
        Versions of the peer's packages.
    """

    plan: Plan
    seed: int
    runs: list[Run]
    ours: Timing
    theirs: Timing | None
    peer: dict[str, str] | None

    @classmethod
    def of(
        cls,
        plan: Plan,
        seed: int,
        runs: Iterable[Run],
        ours: Timing,
        theirs: Timing | None,
        peer: dict[str, str] | None,
    ) -> Results:
        """Collect runs, which come in any order."""
        order = sorted(runs, key=lambda run: (run.title, run.split))
        return cls(plan, seed, order, ours, theirs, peer)

    def counts(self, method: str, titles: Sequence[str] | None = None) -> MethodCounts:
        """Add up the counts of a method over the splits of some sets; by default `plan.titles`."""
        chosen = self.plan.titles if titles is None else titles
        return reduce(add, (run.by[method] for run in self.runs if run.title in chosen))

    def meta_des(self, titles: Sequence[str] | None = None) -> MetaCheck:
        """Add up the checks of META-DES over the splits of some sets; by default `plan.titles`."""
        chosen = self.plan.titles if titles is None else titles
        checks = [run.meta_des for run in self.runs if run.title in chosen and run.meta_des]
        return reduce(add, checks)

    def accuracy(self, name: str, title: str) -> float:
        """Compute the accuracy of a method of ours, or of a reference, on a set."""
        runs = [run for run in self.runs if run.title == title]
        n = sum(run.by[METHODS[0]].n for run in runs)
        if name in METHODS:
            return self.counts(name, [title]).ours / n
        return sum(run.references[name] for run in runs) / n

    def mean_accuracy(self, name: str) -> float:
        """Compute the mean accuracy over the sets."""
        return float(np.mean([self.accuracy(name, title) for title in self.plan.titles]))

    def gap(self, method: str, reference: str) -> Gap:
        """Compute the accuracy of a method minus that of a reference, set by set, in points."""
        titles = self.plan.titles
        each = [self.accuracy(method, title) - self.accuracy(reference, title) for title in titles]
        return Gap.of(100 * np.array(each))

    def mean_of_theirs(self, method: str) -> float:
        """Compute the mean over the sets of DESlib's accuracy."""
        each = [self.counts(method, [title]) for title in self.plan.titles]
        return float(np.mean([one.theirs / one.n for one in each]))

    def missed(self) -> list[tuple[str, str]]:
        """List the methods and sets that miss the target."""
        return [
            (method, title)
            for method in METHODS
            for title in self.plan.titles
            if self.counts(method, [title]).same_outside < TARGET
        ]
