"""What the commands of the documents' studies share: their arguments, and a bar while they run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

OUT = Path(__file__).resolve().parents[1] / "docs" / "experiments"
T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """What a study was asked for.

    Attributes
    ----------
    quick : bool
        Whether a small form of it is enough.
    seed, jobs : int
        Its first seed, and how many runs at a time.
    out : Path
        The folder of its page.
    command : str
        The command that writes the page so, for the page to say.
    """

    quick: bool
    seed: int
    jobs: int
    out: Path
    command: str


def asked(study: str, quick: str, arguments: list[str] | None) -> Asked | None:
    """Read the arguments; None, and a message, if a quick run would overwrite the page."""
    program = f"python -m experiments.{study}"
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--out", type=Path, help="folder of the page; default: docs/experiments")
    chosen = parser.parse_args(arguments)
    if chosen.quick and chosen.out is None:
        print("A quick run is no result: say where it goes with --out.", file=sys.stderr)
        return None
    command = f"{program} --quick" if chosen.quick else "make reproduce"
    return Asked(chosen.quick, chosen.seed, chosen.jobs, chosen.out or OUT, command)


def shown(console: Console, runs: Iterable[T], total: int, of: Callable[[T], str]) -> Iterator[T]:
    """The runs as they are done, with a bar that counts them and says what the last was of."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("Runs", total=total)
        for run in runs:
            progress.update(task, advance=1, description=f"Runs ({of(run)})")
            yield run
