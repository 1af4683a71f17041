"""Data larger than memory: Parquet, two worker processes of 2 GB: ``python -m benchmarks.scale``.

The full run writes about 12 GB of files (to ``--folder``, if they are to be kept) and takes some
minutes. It is compared with functions of Dask on the same files, workers and memory limit.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
from experiments.scale.folders import COLUMNS, MEMBERS, columns_folder, names, scores_folder

from benchmarks._timing import Comparison
from margrave import fuse
from margrave.mam import MAMClassifier, RandomFeatures
from margrave.scale import cluster, rank_margin_weights, read_parquet
from margrave.scale import fit as scale_fit
from margrave.scale._blocks import Blocks

N_SCORES, N_COLUMNS, N_SUBSET = 100_000_000, 10_000_000, 1_000_000
QUICK = 1_000
WORKERS, LIMIT = 2, "2GB"
COMPONENTS = 1_000
MOST_PASSES = 25
_SAME = 1e-9


def main(arguments: list[str] | None = None) -> int:
    """Run and print all comparisons; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} times fewer rows")
    parser.add_argument("--folder", type=Path, help="a folder for the files, to keep them")
    chosen = parser.parse_args(arguments)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "dask", "pyarrow"))
    print(
        f"Python {platform.python_version()}, {versions}, {platform.machine()}, "
        f"{os.cpu_count()} cores"
    )
    print(f"{WORKERS} worker processes, {LIMIT} each\n")
    print(
        "| job | ours (s, or the unit in the row) | peer | against | ours / peer | target | met |"
    )
    print("|---|---|---|---|---|---|---|")
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        for one in rows(folder, QUICK if chosen.quick else 1):
            missed += not one.met
            print(
                f"| {one.what} | {one.ours:.4g} | {one.theirs:.4g} | {one.peer} | "
                f"{one.ratio:.3f} | {one.target:.3g} | {'yes' if one.met else 'NO'} |",
                flush=True,
            )
    return int(bool(missed))


def rows(folder: Path, fewer: int) -> Iterator[Comparison]:
    """Yield all comparisons, with `fewer` times fewer rows."""
    with cluster(n_workers=WORKERS, memory_limit=LIMIT) as client:
        yield from rank_margin(scores_folder(folder, N_SCORES // fewer), N_SCORES // fewer)
        yield from same_optimum(scores_folder(folder, N_SUBSET // fewer), N_SUBSET // fewer)
        yield from average_margin(columns_folder(folder, N_COLUMNS // fewer), N_COLUMNS // fewer)
        peak = sum(client.run(_peak_megabytes).values())
        yield Comparison("memory of both workers at their peak (MB)", "the limit", peak, 4000, 1.0)
        yield killed(client, scores_folder(folder, N_SCORES // fewer // 10))


def rank_margin(folder: Path, n: int) -> Iterator[Comparison]:
    """ν = 0 on all rows: its passes, and the time of one beside Dask's own smallest and largest."""
    peer = _best(2, lambda: extremes(folder))
    start = perf_counter()
    table = read_parquet(folder)
    found = rank_margin_weights(table[names(MEMBERS)], table["y"], nu=0.0)
    seconds = perf_counter() - start
    what = f"rank margin, nu=0, {n:,} x {MEMBERS}"
    passes = found.n_passes or 0
    yield Comparison(f"{what}: passes", "the most", passes, MOST_PASSES, 1.0)
    each = seconds / passes
    yield Comparison(f"{what}: one pass", "min/max of a weighted sum", each, peer, 1.5)


def extremes(folder: Path) -> tuple[float, float]:
    """Dask's own: the lowest positive and the highest negative of one weighted sum."""
    import dask
    import dask.dataframe as dd

    table = dd.read_parquet(folder)
    score = sum(table[name] / MEMBERS for name in names(MEMBERS))
    positive = table["y"] == 1
    low, high = dask.compute(score[positive].min(), score[~positive].max())
    return float(low), float(high)


def same_optimum(folder: Path, n: int) -> Iterator[Comparison]:
    """The optimum on the cluster and in memory, on as many rows as fit."""
    table = read_parquet(folder)
    known = table.compute()
    for nu, tolerance in ((0.0, _SAME), (0.05, 1e-4)):
        tol = 1e-9 if nu == 0 else 1e-4
        found = rank_margin_weights(table[names(MEMBERS)], table["y"], nu=nu, tol=tol)
        expected = fuse.rank_margin_weights(known[names(MEMBERS)], known["y"], nu=nu, tol=tol)
        apart = abs(found.margin - expected.margin)
        what = f"margin, nu={nu:g}, {n:,} x {MEMBERS}: difference from memory"
        yield Comparison(what, "tolerance", apart, tolerance, 1.0)


def average_margin(folder: Path, n: int) -> Iterator[Comparison]:
    """The linear classifier beside column means, and random features beside making them."""
    import dask.dataframe as dd

    def means() -> Any:
        return dd.read_parquet(folder)[names(COLUMNS)].mean().compute()

    def fit(**settings: Any) -> MAMClassifier:
        table = read_parquet(folder)
        model = MAMClassifier(**settings)
        scale_fit(model, table[names(COLUMNS)], table["y"])
        return model

    def features() -> float:
        table = read_parquet(folder)[names(COLUMNS)]
        centre = table.head(1_000).to_numpy().mean(axis=0)
        made = RandomFeatures.draw("rbf", 1 / COLUMNS, centre, COMPONENTS, 0)
        return Blocks.of("features", table).reduce(_features_only, _added, made)

    passes = []
    before = Blocks.reduce

    def counted(self: Blocks, *arguments: Any, **more: Any) -> Any:
        passes.append(1)
        return before(self, *arguments, **more)

    with patch.object(Blocks, "reduce", counted):
        fit(kernel="linear")
    what = f"linear average margin, {n:,} x {COLUMNS}"
    yield Comparison(f"{what}: passes", "the most", len(passes), 1, 1.0)
    theirs, ours = _in_turns(3, means, lambda: fit(kernel="linear"))
    yield Comparison(what, "column means", ours, theirs, 1.5)
    theirs, ours = _in_turns(
        2, features, lambda: fit(n_components=COMPONENTS, gamma="loo", random_state=0)
    )
    what = f"average margin, {COMPONENTS:,} random features, {n:,} x {COLUMNS}"
    yield Comparison(what, "making the features", ours, theirs, 1.3)


def _features_only(X: Any, made: RandomFeatures) -> float:
    """Compute the features of a block; return one number, so that they are computed."""
    values, last = X.to_numpy(), 0.0
    for start in range(0, len(values), 2048):
        last += float(made.cosines_and_sines(values[start : start + 2048])[-1, -1])
    return last


def _added(numbers: list[float]) -> float:
    return sum(numbers)


def killed(client: Any, folder: Path) -> Comparison:
    """The margin when a worker is really killed in the middle, against the same without."""
    table = read_parquet(folder)
    start = perf_counter()
    expected = rank_margin_weights(table[names(MEMBERS)], table["y"])
    seconds = perf_counter() - start
    victim = next(iter(client.run(os.getpid).values()))
    timer = Timer(seconds / 2, os.kill, (victim, signal.SIGKILL))
    timer.start()
    found = rank_margin_weights(table[names(MEMBERS)], table["y"])
    timer.join()
    client.wait_for_workers(WORKERS, timeout=60)
    if victim in client.run(os.getpid).values():
        raise RuntimeError("The worker was not killed.")
    apart = float(np.abs(found.weights - expected.weights).max()) + abs(
        found.margin - expected.margin
    )
    return Comparison(
        "a worker killed: difference from the result without", "none", apart, 1e-300, 1.0
    )


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _best(repeats: int, job: Callable[[], Any]) -> float:
    return _in_turns(repeats, job)[0]


def _in_turns(repeats: int, *jobs: Callable[[], Any]) -> list[float]:
    """The best seconds of each."""
    best = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for place, job in enumerate(jobs):
            start = perf_counter()
            job()
            best[place] = min(best[place], perf_counter() - start)
    return best


if __name__ == "__main__":
    sys.exit(main())
