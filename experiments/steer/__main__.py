"""Run the study and write its page: ``python -m experiments.steer [--quick]``.

Trainings are stored in the folder ``--store``; the page is written from what is stored.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib as mpl
from rich.console import Console

from experiments._command import parse_options, show_progress
from experiments.steer import page, study
from experiments.steer.results import Results

STORE = Path(__file__).resolve().parents[2] / "out" / "steer"


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, train what is not stored yet, and write the page."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--store", type=Path)
    own, others = parser.parse_known_args(arguments)
    options = parse_options("steer", "two data sets, two splits, two rates, three members", others)
    if options is None:
        return 2
    mpl.use("agg")
    console = Console()
    plan = study.QUICK if options.quick else study.full_plan()
    store = own.store or (options.out / "trainings" if options.quick else STORE)
    jobs = study.train_all(plan, options.seed, store, options.jobs)
    for _ in show_progress(console, jobs, len(plan.titles) * plan.n_splits, of=str):
        pass
    results = Results.of(plan, options.seed, store, options.jobs)
    path = page.write(results, options.out, options.describe_run())
    console.print(f"Written: {path}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
