"""Run the study and write its page: ``python -m experiments.martingale [--quick]``."""

from __future__ import annotations

import sys

import matplotlib as mpl
from rich.console import Console

from experiments._command import parse_options, show_progress
from experiments.martingale import measures, page, study
from experiments.martingale.results import Results


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run with progress, write the page."""
    chosen = parse_options("martingale", "small data sets, two splits, few levels", arguments)
    if chosen is None:
        return 2
    mpl.use("agg")
    console = Console()
    plan = study.QUICK if chosen.quick else study.FULL
    freeze = measures.freezing_level(plan.pictured, chosen.seed, plan.size.n_levels)
    waiting = study.runs(plan, chosen.seed, freeze)
    clocked = study.clocked_runs(plan, chosen.seed, freeze)
    done = study.done(waiting, clocked, chosen.jobs)
    total = len(waiting) + len(clocked)
    found = show_progress(console, done, total, of=lambda run: f"{run[0]}, {run[1]}")
    results = Results.of(plan, chosen.seed, freeze, found)
    written = page.write(results, chosen.out, chosen.describe_run())
    console.print(f"Written: {written}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
