"""All that the runs found, with the means and differences that the page shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments._parts import Floats
from experiments.martingale.data import TWONORM
from experiments.martingale.models import Evaluation
from experiments.martingale.paper import SOURCES
from experiments.martingale.requests import Total
from experiments.martingale.study import Found, Plan

Of = Callable[[Evaluation], float]


@dataclass(frozen=True)
class Gap:
    """The mean of paired differences over the splits, and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, differences: Floats) -> Gap:
        """From the differences of the splits."""
        error = np.std(differences, ddof=1) / np.sqrt(len(differences))
        return cls(float(np.mean(differences)), float(error))

    @property
    def sign(self) -> int:
        """1 or −1 beyond two standard errors, else 0."""
        return int(np.sign(self.mean)) if abs(self.mean) > 2 * self.error else 0

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.error:.2f}"


@dataclass(frozen=True)
class Results:
    """What was found, by measure and data set; a list has an entry for each split.

    Attributes
    ----------
    plan : Plan
        What was run.
    seed : int
        The seed of the first split.
    freeze : float
        The level ε of freezing.
    found : dict
        The findings.
    """

    plan: Plan
    seed: int
    freeze: float
    found: dict[tuple[str, str], list[Any]]

    @classmethod
    def of(cls, plan: Plan, seed: int, freeze: float, runs: Iterable[Found]) -> Results:
        """Put findings, which come in any order, into their places."""
        found: dict[tuple[str, str], list[Any]] = {}
        for part, title, _, what in sorted(runs, key=lambda run: run[:3]):
            found.setdefault((part, title), []).append(what)
        return cls(plan, seed, freeze, found)

    def titles(self, part: str) -> list[str]:
        """The data sets of a measure, in the order of the paper."""
        known = (*SOURCES, *TWONORM, *self.plan.choice)
        return [title for title in known if (part, title) in self.found]

    def methods(self, part: str, title: str) -> list[Any]:
        """What was compared."""
        return list(self.found[part, title][0])

    def values(self, part: str, title: str, key: Any, of: Of) -> Floats:
        """A number of one method, for each split."""
        return np.array([of(split[key]) for split in self.found[part, title]])

    def mean(self, part: str, title: str, key: Any, of: Of) -> float:
        """Its mean over the splits."""
        return float(self.values(part, title, key, of).mean())

    def gap(self, part: str, title: str, one: Any, other: Any, of: Of) -> Gap:
        """One method less another, split by split."""
        return Gap.of(self.values(part, title, one, of) - self.values(part, title, other, of))

    def excess(self, part: str, title: str, key: str) -> Gap:
        """Errors in the other cell less those of LR at equal counts, split by split.

        The bias of that comparison is taken off: the same difference for LR's moved thresholds.
        """
        totals = [Total.of([split[key]]) for split in self.found[part, title]]
        return Gap.of(
            np.array(
                [
                    one.other - one.at_equal_count["LR"] - (one.control[0] - one.control[1])
                    for one in totals
                ]
            )
        )

    def total(self, part: str, key: str, titles: Iterable[str] | None = None) -> Total:
        """The requests of some data sets added up, by default of all."""
        chosen = self.titles(part) if titles is None else titles
        return Total.of([split[key] for title in chosen for split in self.found[part, title]])


def overall(evaluation: Evaluation) -> float:
    """Accuracy, in %."""
    return evaluation.overall


def on_class(c: int) -> Of:
    """Accuracy on a class, in %."""
    return lambda evaluation: evaluation.of_class(c)
