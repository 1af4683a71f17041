"""Measure, fit the cost model and write the page: ``python -m experiments.scale [--quick]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rich.console import Console

from experiments._command import parse_options, show_progress
from experiments.scale import page
from experiments.scale.measuring import FULL, QUICK, all_of


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run the study with a progress bar, and write the page."""
    chosen = parse_options("scale", "thousands of rows, one worker", arguments)
    if chosen is None:
        return 2
    console = Console()
    plan = QUICK if chosen.quick else FULL
    sizes = (plan.scores, plan.scores, plan.columns, plan.features, plan.empty)
    total = len(plan.workers) * sum(map(len, sizes)) + len(plan.kernel)
    with tempfile.TemporaryDirectory() as folder:
        runs = all_of(plan, Path(folder))
        measurements = list(
            show_progress(console, runs, total, of=lambda run: f"{run.job}, {run.rows:,}")
        )
    written = page.write(measurements, chosen.out, chosen.describe_run())
    console.print(f"Written: {written}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
