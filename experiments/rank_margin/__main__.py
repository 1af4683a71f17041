"""Run the study and write its page: ``python -m experiments.rank_margin [--quick]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.rank_margin import page, study
from experiments.rank_margin.results import Column, Results

OUT = Path(__file__).resolve().parents[2] / "docs" / "experiments"
QUICK_TITLES = ("Hayes", "Sonar", "Liver")


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run with progress, write the page."""
    parser = argparse.ArgumentParser(prog="python -m experiments.rank_margin")
    parser.add_argument("--quick", action="store_true", help="three data sets, two runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, help="folder of the page; default: docs/experiments")
    chosen = parser.parse_args(arguments)
    if chosen.quick and chosen.out is None:
        print("A quick run is no result: say where it goes with --out.", file=sys.stderr)
        return 2
    mpl.use("agg")
    console = Console()
    titles = list(QUICK_TITLES) if chosen.quick else study.available()
    strong = study.QUICK_STRONG if chosen.quick else study.STRONG
    n_runs = 2 if chosen.quick else 10
    runs = study.all_runs(titles, n_runs, chosen.seed, strong, chosen.jobs)
    results = Results.of(titles, _shown(console, runs, n_runs * len(titles)))
    command = "python -m experiments.rank_margin --quick" if chosen.quick else "make reproduce"
    written = page.write(results, chosen.out or OUT, chosen.seed, strong, command)
    console.print(f"Written: {written}", highlight=False, soft_wrap=True)
    return 0


def _shown(
    console: Console, runs: Iterator[tuple[str, int, dict[Column, float]]], total: int
) -> Iterator[tuple[str, int, dict[Column, float]]]:
    """The runs, with a bar that counts them."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("Runs", total=total)
        for run in runs:
            progress.update(task, advance=1, description=f"Runs ({run[0]})")
            yield run


if __name__ == "__main__":
    sys.exit(main())
