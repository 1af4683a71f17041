"""Print every comparison as a table: ``python -m benchmarks``; exit 1 if a target is missed."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import version

from benchmarks import (
    command,
    foundation,
    mam,
    martingale,
    members,
    rank_margin,
    selection,
    steer,
    studio,
    training,
)
from benchmarks._timing import at_most

IMPORT_TARGET = 0.050
QUICK_ROWS = 300


def main(arguments: list[str] | None = None) -> int:
    """Run all comparisons, and print each row when it is ready."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    quick = f"10,000 samples instead of 1,000,000, {QUICK_ROWS} of Spambase, and each job once"
    parser.add_argument("--quick", action="store_true", help=quick)
    chosen = parser.parse_args(arguments)
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scikit-learn"))
    print(f"Python {platform.python_version()}, {versions}, {platform.machine()}\n")
    print(
        "| job | ours (s, or the unit in the row) | peer | against | ours / peer | target | met |"
    )
    print("|---|---|---|---|---|---|---|")
    if chosen.quick:
        with at_most(1):
            missed = table(10_000, QUICK_ROWS)
    else:
        missed = table(1_000_000, None)
    seconds = foundation.extra_import_seconds()
    met = seconds <= IMPORT_TARGET
    print(
        f"| import margrave after sklearn.ensemble | {seconds:.4f} | | | | {IMPORT_TARGET} s | "
        f"{'yes' if met else 'NO'} |"
    )
    return int(bool(missed) or not met)


def table(n: int, n_rows: int | None) -> int:
    """Print a row for each comparison, and count the missed targets.

    `n` is the number of samples, `n_rows` the number of rows of Spambase.
    """
    missed = 0
    for group in (
        foundation.votes(n),
        foundation.averages(n),
        foundation.crucial_pairs(n),
        rank_margin.all_pairs(n // 500),
        rank_margin.large(n),
        members.rankboost(n // 10),
        mam.sums(n // 50),
        mam.leave_one_out(n // 50),
        mam.random_features(n),
        mam.ranker(n),
        martingale.on_spambase(n_rows),
        martingale.at_scale(n // 10),
        selection.beside_deslib(n // 100),
        selection.many(n // 2),
        steer.on_spambase(n_rows),
        studio.on_spambase(n_rows),
        training.in_the_studio(),
        training.beside_stacking(n_rows),
        training.on_a_large_table(n // 5),
        command.starts(),
        command.predictions(n_rows),
    ):
        for one in group:
            missed += not one.met
            print(
                f"| {one.what} | {one.ours:.4f} | {one.theirs:.4f} | {one.peer} | "
                f"{one.ratio:.3f} | {one.target:.3g} | {'yes' if one.met else 'NO'} |",
                flush=True,
            )
    return missed


if __name__ == "__main__":
    sys.exit(main())
