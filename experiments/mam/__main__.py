"""Run the study and write its page: ``python -m experiments.mam [--quick]``."""

from __future__ import annotations

import sys

import matplotlib as mpl
from rich.console import Console

from experiments._command import parse_options, show_progress
from experiments.mam import page, study
from experiments.mam.results import Results


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run with progress, write the page."""
    chosen = parse_options("mam", "two data sets of each kind, two splits, few runs", arguments)
    if chosen is None:
        return 2
    mpl.use("agg")
    console = Console()
    plan = study.QUICK if chosen.quick else study.full()
    runs = study.all_runs(plan, chosen.seed, chosen.jobs)
    done = show_progress(console, runs, plan.n_runs, of=lambda run: run.title)
    written = page.write(Results.of(plan, chosen.seed, done), chosen.out, chosen.describe_run())
    console.print(f"Written: {written}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
