"""Run the study and write its page: ``python -m experiments.steer [--quick]``."""

from __future__ import annotations

import sys

import matplotlib as mpl
from rich.console import Console

from experiments._command import asked, shown
from experiments.steer import page, study
from experiments.steer.results import Results


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run with progress, write the page."""
    chosen = asked("steer", "two data sets, two splits, requests on one, two members", arguments)
    if chosen is None:
        return 2
    mpl.use("agg")
    console = Console()
    plan = study.QUICK if chosen.quick else study.full()
    runs = study.all_runs(plan, chosen.seed, chosen.jobs)
    total = len(plan.titles) * plan.n_splits
    told = shown(console, runs, total, of=lambda run: f"{run.title}, {run.split}")
    written = page.write(Results.of(plan, chosen.seed, told), chosen.out, chosen.command)
    console.print(f"Written: {written}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
