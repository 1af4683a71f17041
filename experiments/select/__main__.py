"""Run the study and write its page: ``python -m experiments.select [--quick]``."""  # noqa: A005

from __future__ import annotations

import sys

from rich.console import Console

from experiments._command import parse_options, show_progress
from experiments.select import page, study, timing
from experiments.select.comparing import peer_python, run_peer
from experiments.select.results import Results


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run the study with a progress bar, and write the page."""
    chosen = parse_options(
        "select", "two data sets, one split, small sizes for the times", arguments
    )
    if chosen is None:
        return 2
    console = Console()
    plan = study.QUICK if chosen.quick else study.FULL
    python = peer_python()
    runs = study.all_runs(plan, chosen.seed, chosen.jobs, python)
    done = list(
        show_progress(console, runs, plan.n_runs, of=lambda run: f"{run.title}, {run.split}")
    )
    console.print("Measuring times ...")
    ours, theirs = timing.in_turns(plan.size, python)
    versions = None if python is None else run_peer(python, "versions")
    results = Results.of(plan, chosen.seed, done, ours, theirs, versions)
    written = page.write(results, chosen.out, chosen.describe_run())
    console.print(f"Written: {written}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
