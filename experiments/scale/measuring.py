"""Times of one pass over folders of several sizes, with one and two worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

from experiments.scale.folders import (
    COLUMNS,
    MEMBERS,
    columns_folder,
    names,
    scores_folder,
    single_rows_folder,
)
from margrave.mam import MAMClassifier
from margrave.scale import cluster, fit, frontier, rank_margin_weights, read_parquet
from margrave.scale._blocks import Blocks

COMPONENTS = 1_000


@dataclass(frozen=True)
class Measured:
    """One job at one size.

    Attributes
    ----------
    job : str
        The job.
    rows, blocks, workers : int
        Numbers of rows, of blocks and of worker processes.
    passes : int
        How often the job reads the rows.
    seconds : float
        The total time.
    """

    job: str
    rows: int
    blocks: int
    workers: int
    passes: int
    seconds: float

    @property
    def each(self) -> float:
        """Seconds of one pass."""
        return self.seconds / self.passes


@dataclass(frozen=True)
class Plan:
    """The sizes to measure.

    Attributes
    ----------
    scores, columns, features : tuple of int
        Rows for the rank margin and the frontier, for the linear classifier, for random features.
    empty : tuple of int
        Numbers of files with a single row, which measure the overhead of a block.
    kernel : tuple of int
        Samples for the exact kernel classifier, in memory.
    workers : tuple of int
        Numbers of processes.
    """

    scores: tuple[int, ...]
    columns: tuple[int, ...]
    features: tuple[int, ...]
    empty: tuple[int, ...]
    kernel: tuple[int, ...]
    workers: tuple[int, ...] = (1, 2)


FULL = Plan(
    scores=(1_000_000, 10_000_000, 100_000_000),
    columns=(100_000, 1_000_000, 10_000_000),
    features=(100_000, 1_000_000),
    empty=(100, 400, 1_200),
    kernel=(2_500, 5_000, 10_000, 20_000),
)
QUICK = Plan(
    scores=(2_000, 4_000),
    columns=(2_000, 4_000),
    features=(500, 1_000),
    empty=(5, 10),
    kernel=(200, 400),
    workers=(1,),
)


def all_of(plan: Plan, folder: Path) -> Iterator[Measured]:
    """Measure every job at every size, smallest first; then the job without a cluster."""
    jobs: list[tuple[str, tuple[int, ...], Callable[[Path], Any], Callable[[Path, int], Path]]]
    jobs = [
        ("rank margin, ν = 0", plan.scores, _rank_margin, scores_folder),
        ("frontier", plan.scores, _frontier, scores_folder),
        ("average margin, linear", plan.columns, _linear, columns_folder),
        ("average margin, 1,000 random features", plan.features, _features, columns_folder),
    ]
    for workers in plan.workers:
        with cluster(n_workers=workers, memory_limit="2GB"):
            _warm(jobs, folder)
            for n_blocks in plan.empty:
                where = single_rows_folder(folder, n_blocks)
                yield _timed("nothing", n_blocks, workers, partial(_nothing, where))
            for job, sizes, work, made in jobs:
                for n in sizes:
                    yield _timed(job, n, workers, partial(work, made(folder, n)))
    for n in plan.kernel:
        yield _in_memory(n)


def _timed(job: str, n: int, workers: int, work: Callable[[], Any]) -> Measured:
    """Count passes and blocks while it runs."""
    seen: list[int] = []
    before = Blocks.reduce

    def counted(self: Blocks, *arguments: Any, **more: Any) -> Any:
        seen.append(len(self))
        return before(self, *arguments, **more)

    with patch.object(Blocks, "reduce", counted):
        start = perf_counter()
        work()
        seconds = perf_counter() - start
    return Measured(job, n, max(seen), workers, len(seen), seconds)


def _rank_margin(folder: Path) -> None:
    table = read_parquet(folder)
    rank_margin_weights(table[names(MEMBERS)], table["y"])


def _frontier(folder: Path) -> None:
    table = read_parquet(folder)
    frontier({"member": table["c0"]}, table["y"])


def _linear(folder: Path) -> None:
    table = read_parquet(folder)
    fit(MAMClassifier("linear"), table[names(COLUMNS)], table["y"])


def _features(folder: Path) -> None:
    table = read_parquet(folder)
    model = MAMClassifier(n_components=COMPONENTS, gamma=1 / COLUMNS, random_state=0)
    fit(model, table[names(COLUMNS)], table["y"])


def _warm(jobs: Sequence[Any], folder: Path) -> None:
    """Every job once on few rows: workers import what they need in their first task."""
    for _, _, work, made in jobs:
        work(made(folder, 400))


def _nothing(folder: Path) -> None:
    Blocks.of("nothing", read_parquet(folder)).reduce(_length, _sum)


def _length(X: Any) -> int:
    return len(X)


def _sum(lengths: list[int]) -> int:
    return sum(lengths)


def _in_memory(n: int) -> Measured:
    """The exact kernel classifier, with fifteen widths."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 16)) + 0.3 * y[:, None]
    start = perf_counter()
    MAMClassifier().fit(X, y)
    return Measured("average margin, exact kernel", n, 1, 0, 1, perf_counter() - start)
