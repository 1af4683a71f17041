"""The study as a list of runs: a data set, a split, the same tables for both libraries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from experiments.select.comparing import Found, compared, references, theirs
from experiments.select.data import FULL_OF_TIES, TITLES, tables
from experiments.select.timed import Size


@dataclass(frozen=True)
class Plan:
    """How much of the study to run.

    Attributes
    ----------
    titles : tuple of str
        Data sets.
    beside : tuple of str
        More of them that are full of ties, told apart.
    n_splits : int
        Splits of each.
    size : Size
        What is timed.
    """

    titles: tuple[str, ...]
    beside: tuple[str, ...]
    n_splits: int
    size: Size

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return len((*self.titles, *self.beside)) * self.n_splits


FULL = Plan(TITLES, (FULL_OF_TIES,), 5, Size(10_000, 10_000, 100, 0, 3, 0, 2))
QUICK = Plan(("pima", "housing_bin"), (), 1, Size(300, 200, 11, 4, 1, 0, 1))


@dataclass(frozen=True)
class Run:
    """What was found on one split.

    Attributes
    ----------
    title : str
        The data set.
    split : int
        Its number.
    n_classes : int
        Its classes.
    by : dict
        By method.
    references : dict
        Right answers of the vote, the single best and the oracle.
    """

    title: str
    split: int
    n_classes: int
    by: dict[str, Found]
    references: dict[str, int]


def one_run(title: str, split: int, seed: int, python: Path | None) -> Run:
    """The tables of one split, and every method on them."""
    with threadpool_limits(1):
        given = tables(title, seed + split)
        peer = None if python is None else theirs(given, python)
        n_classes = given.parts_query.shape[2]
        return Run(title, split, n_classes, compared(given, peer), references(given))


def all_runs(plan: Plan, seed: int, n_jobs: int, python: Path | None) -> Iterator[Run]:
    """Every run, as they are done."""
    jobs = [
        delayed(one_run)(title, split, seed, python)
        for title in (*plan.titles, *plan.beside)
        for split in range(plan.n_splits)
    ]
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
