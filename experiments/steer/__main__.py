"""Run the study and write its page: ``python -m experiments.steer [--quick]``."""

from __future__ import annotations

import sys

import matplotlib as mpl
from rich.console import Console

from experiments._command import parse_options, show_progress
from experiments.steer import page, study
from experiments.steer.results import Results


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run with a progress bar, and write the page."""
    options = parse_options(
        "steer", "two data sets, two splits, two rates, three members", arguments
    )
    if options is None:
        return 2
    mpl.use("agg")
    console = Console()
    plan = study.QUICK if options.quick else study.full_plan()
    runs = show_progress(
        console,
        study.run_all(plan, options.seed, options.jobs),
        len(plan.titles) * plan.n_splits,
        of=lambda run: f"{run.title}, {run.split}",
    )
    path = page.write(Results.of(plan, options.seed, runs), options.out, options.describe_run())
    console.print(f"Written: {path}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
