"""Evaluate a committee on a data set: ``python -m experiments.multi_classifiers [DATA]``."""

from __future__ import annotations

import argparse
import sys

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from experiments.multi_classifiers import study
from margrave import Preference
from margrave.confusion import PreferenceError

PREFERENCE = "fp <= 2%, rejected <= 10%"


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments, run the study with a progress bar, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.multi_classifiers")
    parser.add_argument("data", nargs="?", default="spambase", help="a two-class data set")
    parser.add_argument("--prefer", default=PREFERENCE, help=f"default: {PREFERENCE!r}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="three members instead of eight")
    chosen = parser.parse_args(arguments)
    console = Console()
    try:
        preference = Preference(chosen.prefer)
        parts = study.split(chosen.data, chosen.seed)
    except (PreferenceError, ValueError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    names = study.QUICK_MEMBERS if chosen.quick else study.MEMBERS
    rows, n_members = _run(console, parts, names, chosen.seed)
    _report(console, parts, rows, n_members, preference, chosen.seed)
    return 0


def _run(
    console: Console, parts: study.Parts, names: tuple[str, ...], seed: int
) -> tuple[list[study.Row], int]:
    """Fit and combine the members, with a progress bar for each stage."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[now]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        training = progress.add_task("Training members ", total=len(names), now=names[0])
        combining = progress.add_task("Combining them   ", total=len(study.COMBINATIONS), now="")
        members = []
        for done, one in enumerate(study.train(parts, names, seed), start=1):
            members.append(one)
            following = names[done] if done < len(names) else "done"
            progress.update(training, advance=1, now=following)
        rows = study.member_rows(parts, members)
        for name in study.COMBINATIONS:
            progress.update(combining, now=name)
            rows.append(study.combination_row(parts, name, members))
            progress.update(combining, advance=1, now="done")
    return rows, len(members)


def _report(
    console: Console,
    parts: study.Parts,
    rows: list[study.Row],
    n_members: int,
    preference: Preference,
    seed: int,
) -> None:
    console.print(
        f"\n[bold]{parts.name}[/bold]: {len(parts.y_train)} training, {len(parts.y_tune)} tuning, "
        f"{len(parts.y_test)} test samples, seed {seed}. All numbers are for the test set.",
        highlight=False,
    )
    console.print(_table(rows, n_members, preference))
    for row in rows:
        if row.note:
            console.print(f"{row.name}: {row.note}.", highlight=False)
    met = [row.name for row in rows if preference.met(row.confusion)]
    console.print(
        f'"{preference}" is met by: {", ".join(met) or "none"}.\n'
        "[dim]short: by how many samples it is missed, over all constraints (not always an "
        "integer for rates). It counts these samples and guarantees nothing for others.[/dim]",
        highlight=False,
    )


def _table(rows: list[study.Row], n_members: int, preference: Preference) -> Table:
    """Make a table with a line per true class, which are the rows of the confusion matrix."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("members,\nthen combinations", no_wrap=True)
    for heading in ("\naccuracy", "\nAUC"):
        table.add_column(heading, justify="right")
    table.add_column("true\nclass")
    for label in rows[0].confusion.classes:
        table.add_column(f"predicted\n{label}", justify="right")
    table.add_column("\nrejected", justify="right")
    table.add_column("\nshort", justify="right")
    for i, row in enumerate(rows):
        matrix = row.confusion
        shortfall = preference.shortfall(matrix)
        lines = list(zip(matrix.classes, matrix.counts.tolist(), strict=True))
        for j, (label, counts) in enumerate(lines):
            table.add_row(
                *([row.name, f"{matrix.accuracy:.3f}", f"{row.auc:.4f}"] if j == 0 else [""] * 3),
                str(label),
                *map(str, counts),
                ("" if j else f"{shortfall:.1f}" if shortfall else "met"),
                end_section=i == n_members - 1 and j == len(lines) - 1,
                style="dim" if i % 2 else "",
            )
    return table


if __name__ == "__main__":
    sys.exit(main())
