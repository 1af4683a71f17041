"""The runs of the study: a data set, a split, and the same tables for both libraries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from experiments.select.comparing import MethodCounts, compared, references, theirs
from experiments.select.data import TITLES, make_tables
from experiments.select.meta_des import MetaCheck, check
from experiments.select.timed import Size


@dataclass(frozen=True)
class Plan:
    """The extent of the study.

    Attributes
    ----------
    titles : tuple of str
        Data sets.
    n_splits : int
        Number of splits of each.
    size : Size
        The size of the timed problem.
    """

    titles: tuple[str, ...]
    n_splits: int
    size: Size

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self.titles) * self.n_splits


FULL = Plan(TITLES, 5, Size(10_000, 10_000, 100, 0, 3, 0, 2))
QUICK = Plan(("pima", "housing_bin"), 1, Size(300, 200, 11, 4, 1, 0, 1))


@dataclass(frozen=True)
class Run:
    """The results on one split.

    Attributes
    ----------
    title : str
        The data set.
    split : int
        Its number.
    by : dict
        Counts by method.
    references : dict
        Correct predictions of the vote, the single best and the oracle.
    meta_des : MetaCheck or None
        META-DES with the neighbours of DESlib; None without the peer.
    """

    title: str
    split: int
    by: dict[str, MethodCounts]
    references: dict[str, int]
    meta_des: MetaCheck | None


def one_run(title: str, split: int, seed: int, python: Path | None) -> Run:
    """Compare every method on the tables of one split."""
    with threadpool_limits(1):
        tables = make_tables(title, seed + split)
        peer = None if python is None else theirs(tables, python)
        by = compared(tables, None if peer is None else peer.predictions)
        meta_des = None if peer is None else check(tables, peer)
        return Run(title, split, by, references(tables), meta_des)


def all_runs(plan: Plan, seed: int, n_jobs: int, python: Path | None) -> Iterator[Run]:
    """Yield every run, in the order in which they end."""
    jobs = [
        delayed(one_run)(title, split, seed, python)
        for title in plan.titles
        for split in range(plan.n_splits)
    ]
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
