"""All that the runs found, pooled over splits and sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from experiments.select.comparing import METHODS, Found
from experiments.select.study import Plan, Run
from experiments.select.timing import Timing

BAR = 0.99
"""The least agreement outside ties, of each method on each set."""


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
    ours, theirs : dict
        Seconds; theirs is None without the peer.
    peer : dict or None
        Versions of what the peer runs with.
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
        """Put runs, which come in any order, into their places."""
        order = sorted(runs, key=lambda run: (run.title, run.split))
        return cls(plan, seed, order, ours, theirs, peer)

    def found(self, method: str, titles: Sequence[str] | None = None) -> Found:
        """A method on all splits of some sets; of all that are not told apart, unless said."""
        chosen = self.plan.titles if titles is None else titles
        return reduce(add, (run.by[method] for run in self.runs if run.title in chosen))

    def n_classes(self, title: str) -> int:
        """How many classes a set has."""
        return next(run.n_classes for run in self.runs if run.title == title)

    def accuracy(self, name: str, title: str) -> float:
        """Of one of our methods, or of a reference, over the splits of a set."""
        runs = [run for run in self.runs if run.title == title]
        n = sum(run.by[METHODS[0]].n for run in runs)
        if name in METHODS:
            return self.found(name, [title]).ours / n
        return sum(run.references[name] for run in runs) / n

    def mean_accuracy(self, name: str) -> float:
        """The same, the mean over the sets."""
        return float(np.mean([self.accuracy(name, title) for title in self.plan.titles]))

    def mean_of_theirs(self, method: str) -> float:
        """The mean over the sets of DESlib's accuracy."""
        each = [self.found(method, [title]) for title in self.plan.titles]
        return float(np.mean([one.theirs / one.n for one in each]))

    def missed(self) -> list[tuple[str, str]]:
        """Methods and sets that agree less than they should."""
        return [
            (method, title)
            for method in METHODS
            for title in self.plan.titles
            if self.found(method, [title]).same_outside < BAR
        ]
