"""Run the study and write its page: ``python -m experiments.split [--quick]``.

Trainings are stored in the folder ``--store``. ``--train fixed planned`` only trains, ``--train``
alone only writes the page from what is stored. ``--parts choose`` is about the other problems.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib as mpl
from rich.console import Console

from experiments._command import parse_options, show_progress
from experiments.split import data, page, trainings
from experiments.split.results import Results
from experiments.split.trainings import Plan

STORE = Path(__file__).resolve().parents[2] / "out" / "split"


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, train what is not stored yet, and write the page."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--parts", nargs="+", default=["final", "steer"])
    parser.add_argument("--train", nargs="*", choices=["fixed", "planned"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--store", type=Path)
    own, others = parser.parse_known_args(arguments)
    options = parse_options("split", "two data sets, two splits, two rates, three members", others)
    if options is None:
        return 2
    mpl.use("agg")
    console = Console()
    if options.quick:
        plan, store = trainings.QUICK, own.store or options.out / "trainings"
    else:
        titles = tuple(title for part in own.parts for title in data.titles(part))
        plan, store = Plan(titles, own.splits), own.store or STORE
    for kind in ["fixed", "planned"] if own.train is None else own.train:
        jobs = trainings.train_all(plan, options.seed, kind, store, options.jobs)
        total = sum(len(plan.splits_of(title)) for title in plan.titles)
        for _ in show_progress(console, jobs, total, of=str):
            pass
    if not own.train:
        results = Results.of(plan, options.seed, store, options.jobs)
        path = page.write(results, options.out, options.describe_run())
        console.print(f"Written: {path}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
