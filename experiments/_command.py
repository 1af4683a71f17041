"""The options of the studies' commands, and a progress bar."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

OUT = Path(__file__).resolve().parents[1] / "docs" / "papers"
T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """The options of a study.

    Attributes
    ----------
    quick : bool
        Whether to run a small version.
    seed, jobs : int
        The first seed, and the number of parallel runs.
    out : Path
        The folder of its page.
    command : str
        The command that writes the page.
    started : float
        When it started, by ``perf_counter``.
    """

    quick: bool
    seed: int
    jobs: int
    out: Path
    command: str
    started: float

    def describe_run(self) -> str:
        """Return the command with its duration until now, for the page."""
        minutes = (perf_counter() - self.started) / 60
        duration = f"{minutes:.0f} minutes" if minutes > 1.5 else f"{60 * minutes:.0f} seconds"
        return f"`{self.command}` in {duration}"


def parse_options(study: str, quick: str, arguments: list[str] | None) -> Options | None:
    """Parse the arguments; None, and a message, if a quick run would overwrite the page."""
    program = f"python -m experiments.{study}"
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="number of parallel runs")
    parser.add_argument("--out", type=Path, help="folder of the page; default: docs/papers")
    chosen = parser.parse_args(arguments)
    if chosen.quick and chosen.out is None:
        print(
            "A quick run does not replace the page: set another folder with --out.", file=sys.stderr
        )
        return None
    command = f"{program} --quick" if chosen.quick else f"make reproduce STUDY={study}"
    out = chosen.out or OUT
    return Options(chosen.quick, chosen.seed, chosen.jobs, out, command, perf_counter())


def show_progress(
    console: Console, runs: Iterable[T], total: int, of: Callable[[T], str]
) -> Iterator[T]:
    """Yield the runs, with a progress bar that names the last one."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("Runs", total=total)
        for run in runs:
            progress.update(task, advance=1, description=f"Runs ({of(run)})")
            yield run
