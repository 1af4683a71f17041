"""The study as a list of runs: which measure, of which data set, on which split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from joblib import Parallel, delayed

from experiments.martingale import choice, measures, noise
from experiments.martingale.models import Size
from experiments.martingale.paper import SOURCES, TABLE_1, TABLE_3, TABLE_4

Found = tuple[str, str, int, Any]
"""The measure, the data set, the split, and the result."""


@dataclass(frozen=True)
class Plan:
    """How much of the study to run.

    Attributes
    ----------
    titles : tuple of str
        Data sets.
    n_splits : int
        Splits of each.
    size : Size
        Levels, rounds and trees.
    pictured : str
        The data set of figures 4 and 5.
    levels : tuple of int
        Levels of the programs there.
    noisy : tuple of str
        Data sets with wrong training labels.
    rates : tuple of float
        The fractions of the labels.
    choice : tuple of str
        Data sets on which the rule of tuning was chosen.
    """

    titles: tuple[str, ...]
    n_splits: int
    size: Size
    pictured: str
    levels: tuple[int, ...]
    noisy: tuple[str, ...]
    rates: tuple[float, ...]
    choice: tuple[str, ...]


FULL = Plan(
    titles=tuple(SOURCES),
    n_splits=5,
    size=Size(n_levels=15, n_rounds=50, n_trees=100),
    pictured="Spambase",
    levels=tuple(range(2, 16)),
    noisy=("Spambase", "Ionosphere", "Liver", "Twonorm"),
    rates=(0.0, 0.05, 0.1, 0.2, 0.3),
    choice=choice.TITLES,
)
QUICK = Plan(
    titles=("Ionosphere", "Liver", "Iris"),
    n_splits=2,
    size=Size(n_levels=3, n_rounds=5, n_trees=10),
    pictured="Liver",
    levels=(2, 3),
    noisy=("Liver",),
    rates=(0.0, 0.3),
    choice=("wine",),
)
# Table 4: the text has four levels, but six nodes are those of three levels.
GRANULAR_LEVELS = 3
GRANULARITY = f"granularity {GRANULAR_LEVELS}"


@dataclass(frozen=True)
class Run:
    """A measure to compute: a function of the data set, the seed and settings."""

    part: str
    title: str
    split: int
    seed: int
    measure: Callable[..., Any]
    settings: tuple[Any, ...]

    def __call__(self) -> Found:
        """Compute it."""
        found = self.measure(self.title, self.seed + self.split, *self.settings)
        return self.part, self.title, self.split, found


def runs(plan: Plan, seed: int, freeze: float) -> list[Run]:
    """All runs but the clocked ones, long ones first."""
    size = plan.size
    wanted: list[tuple[Any, ...]] = [
        ("noise", plan.noisy, noise.with_noise, plan.rates, size),
        ("beside", plan.titles, measures.beside, size),
        ("table 2", plan.titles, measures.table_2, size, freeze),
        ("levels", [plan.pictured], measures.by_levels, plan.levels, freeze),
        ("requests", plan.titles, measures.request_outcomes, size),
        ("choice", plan.choice, choice.compare_rules, size.n_trees),
        ("table 1", TABLE_1, measures.table_1, size),
        ("grid", ["Liver"], measures.grid_search),
        (GRANULARITY, TABLE_4, measures.granularity, GRANULAR_LEVELS),
    ]
    return [
        Run(part, title, split, seed, measure, tuple(settings))
        for part, titles, measure, *settings in wanted
        for title in reversed(list(titles))
        if title in (*plan.titles, *plan.noisy, *plan.choice)
        for split in range(plan.n_splits)
    ]


def clocked_runs(plan: Plan, seed: int, freeze: float) -> list[Run]:
    """The runs of table 3, which need the machine for themselves."""
    return [
        Run("times", title, split, seed, measures.times, (plan.size.n_levels, freeze))
        for title in TABLE_3
        if title in plan.titles
        for split in range(plan.n_splits)
    ]


def done(waiting: list[Run], clocked: list[Run], n_jobs: int) -> Iterator[Found]:
    """The results of the runs, in the order in which they end; the clocked ones come last."""
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(run)() for run in waiting
    )
    for run in clocked:
        yield run()
