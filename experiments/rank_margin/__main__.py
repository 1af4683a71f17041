"""Run the study and write its page: ``python -m experiments.rank_margin [--quick]``."""

from __future__ import annotations

import sys

import matplotlib as mpl
from rich.console import Console

from experiments._command import parse_options, show_progress
from experiments.rank_margin import page, study, unbalanced
from experiments.rank_margin.paper import SOURCES
from experiments.rank_margin.results import by_split

QUICK_TITLES = ("Hayes", "Liver")
QUICK_RARE_TITLES = ("Segment", "Titanic")


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run the study with a progress bar, and write the page."""
    chosen = parse_options("rank_margin", "two data sets, two runs, two splits, one ν", arguments)
    if chosen is None:
        return 2
    mpl.use("agg")
    console = Console()
    titles = list(QUICK_TITLES) if chosen.quick else study.available(SOURCES)
    strong = study.QUICK_STRONG if chosen.quick else study.STRONG
    n_runs = 2 if chosen.quick else 10
    nu = study.QUICK_NU if chosen.quick else "cv"
    splits = study.FULL if chosen.quick else tuple(study.SPLITS)
    runs = study.all_runs(titles, n_runs, chosen.seed, strong, chosen.jobs, nu, splits)
    n_all = len(splits) * len(titles) * n_runs
    done = show_progress(console, runs, n_all, of=lambda run: f"{run.title}, {run.split}")
    of_splits = by_split(titles, done)
    rare = list(QUICK_RARE_TITLES) if chosen.quick else study.available(unbalanced.SETS)
    n_runs = 2 if chosen.quick else unbalanced.N_RUNS
    rare_runs = unbalanced.all_runs(rare, n_runs, chosen.seed, strong, chosen.jobs, nu)
    n_all = len(rare) * len(unbalanced.FRACTIONS) * n_runs
    rare_done = show_progress(console, rare_runs, n_all, of=lambda of: f"{of[0].title}, unbalanced")
    of_cases = unbalanced.collect(rare, rare_done)
    run = chosen.describe_run()
    written = page.write(of_splits, of_cases, chosen.out, chosen.seed, strong, run)
    console.print(f"Written: {written}", highlight=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
