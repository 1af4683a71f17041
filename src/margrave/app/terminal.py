"""Print progress and outcomes on a terminal.

Labels and column names come from the user: they are printed literally, never as markup, and their
control characters are replaced.
"""

from __future__ import annotations

import shlex
from time import monotonic
from typing import TYPE_CHECKING, Any

from margrave._messages import format_count, missing_extra, name_class
from margrave.app.messages import describe_training, replace_control

try:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column
    from rich.text import Text
except ModuleNotFoundError as error:
    message = missing_extra("The command margrave", str(error.name), "app")
    raise ImportError(message) from error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from margrave.app.request import Outcome, Planned
    from margrave.app.samples import Samples
    from margrave.committee import Progress as Training
    from margrave.confusion import Confusion
    from margrave.steer import Reply


_BAR_WIDTH = 12
_NOTES = 3  # of a certificate, in the short output


class Printer:
    """Prints text to a terminal or a file."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)

    def text(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print lines literally."""
        for line in replace_control(text).splitlines() or [""]:
            self.console.print(Text(" " * indent + line, style=style), soft_wrap=True)

    def section(self, heading: str, text: str) -> None:
        """Print indented lines under a heading."""
        self.text("")
        self.text(heading, "bold")
        self.text(text, indent=2)


class Bars(Progress):
    """The progress of one request on the standard error: bars, or lines if it is no terminal.

    There is one bar for the training, and one for each preference; a line for each trained member,
    and one for each preference.
    """

    def __init__(self, *, shown: bool) -> None:
        console = Console(stderr=True, highlight=False)
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False, table_column=Column()),  # may wrap
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[status]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not (shown and console.is_terminal),
        )
        self.as_lines = shown and not console.is_terminal
        self.trained: list[str] = []
        self.began = monotonic()

    def line(self, text: str) -> None:
        """Print what was done, and the time since the start, if there is no terminal."""
        if self.as_lines:
            minutes, seconds = divmod(int(monotonic() - self.began), 60)
            line = replace_control(f"margrave: {text}, {minutes}:{seconds:02}")
            self.console.print(line, markup=False, soft_wrap=True)

    def training(self, at: Training) -> None:
        """Update the bar of the training after a model was trained."""
        if not self.task_ids:
            self.add_task("", total=at.total, status="")
        status, n_members = "", len(at.finished) + len(at.running) + len(at.waiting)
        for name in at.finished:
            if name not in self.trained:
                self.trained.append(name)
                self.line(f"trained {name} ({len(self.trained)} of {n_members})")
        if at.confusion is not None:
            errors = format_count(at.confusion.n_errors, "error")
            status = f"{errors} with {len(at.scored)} of {n_members} members"
        description = replace_control(describe_training(at))
        self.update(self.task_ids[0], completed=at.done, description=description, status=status)

    def reply(self, want: str, reply: Reply | None) -> None:
        """Add a bar for a preference, or update it after a better reply."""
        if reply is None:
            for done in self.task_ids[1:]:
                self.update(done, total=1, completed=1)
            self.add_task(replace_control(want), total=None, status="searching")
            self.line(f"steering to {want}")
            return
        status = "met" if reply.met else f"{format_count(reply.shortfall)} short"
        self.update(self.task_ids[-1], status=f"{status} (strategy: {reply.strategy})")


def print_outcome(
    printer: Printer, outcome: Outcome, files: Mapping[str, Path | None], *, verbose: bool = False
) -> None:
    """Print the outcome of a request: the verdict and the files first, then how it came about.

    Parameters
    ----------
    printer : Printer
        Prints to the terminal.
    outcome : Outcome
        The outcome.
    files : mapping of str to Path or None
        The files that were written, by what they hold; "model" is one of them.
    verbose : bool, default=False
        Whether to print the column types, the split, all matrices and the certificate in full.
    """
    style = "bold green" if outcome.exit_code == 0 else "bold red"
    headline, *others = outcome.verdict
    printer.text(headline, "bold yellow" if outcome.useless else style)
    for line in others:
        printer.text(line, "bold")
    model = files["model"]
    if model is None:
        printer.text("No model was written.")
    else:
        usage = f"margrave predict {shlex.quote(str(model))} NEW.csv --out predictions.csv"
        printer.text(f"The model was written to {model}. To use it: {usage}")
    printer.text("")
    matrix = outcome.start.after
    _print_table(printer, outcome.samples, matrix.classes, matrix.positive, outcome.n_rows)
    if verbose:
        _print_details(printer, outcome)
    else:
        _print_summary(printer, outcome)
    for kind, path in files.items():
        if path is not None and kind != "model":
            printer.text(f"The {kind} was written to {path}.")


def _print_summary(printer: Printer, outcome: Outcome) -> None:
    """Print in a few lines the split, the replies, what was expected, and what was measured."""
    sizes, certificate = outcome.sizes, outcome.certificate
    unused = f", {sizes.unused:,} not used" if sizes.unused else ""
    printer.text(f"Rows: {sizes.tune:,} to tune, {sizes.certify:,} to certify{unused}.")
    for reply in outcome.history[1:]:
        printer.text(str(reply).splitlines()[0], "" if reply.met else "yellow")
        for alternative in reply.alternatives:
            printer.text(str(alternative), indent=2)
    if outcome.expected is not None:
        printer.text(f"Expected before: {outcome.describe_expected()}")
    if certificate is not None:
        printer.section("Measured on the certification set", _shorten(certificate.confusion))
        notes = certificate.notes
        for note in notes[:_NOTES]:
            printer.text(f"Note: {note}")
        if len(notes) > _NOTES:
            printer.text(f"{len(notes) - _NOTES} more notes: --verbose prints them.")
    printer.text("--verbose prints the split, all matrices and the certificate in full.")


def _shorten(matrix: Confusion) -> str:
    """Write a matrix, without the column of rejected samples if it is empty."""
    text = str(matrix)
    if matrix.n_rejected:
        return text
    return "\n".join(line[: -len("  rejected")] for line in text.splitlines())


def _print_details(printer: Printer, outcome: Outcome) -> None:
    """Print the column types, the split, all matrices and the certificate."""
    matrix = outcome.start.after
    printer.section("Column types", outcome.encoder.describe())
    printer.section("Split", outcome.split)
    printer.section(f"Start, on {matrix.n:,} samples of the tuning set:", str(matrix))
    for reply in outcome.history[1:]:
        lines = str(reply).splitlines()
        printer.text("")
        printer.text(lines[0], "bold green" if reply.met else "bold yellow")
        printer.text("\n".join(lines[1:]))
        if reply.cancelled:
            printer.text("Stopped before all strategies were tried: the best so far.", indent=2)
    if outcome.expected is not None:
        printer.section("Expected before certifying", outcome.describe_expected())
    if outcome.certificate is not None:
        printer.section("Certificate", str(outcome.certificate))
    printer.text("")


def print_plan(printer: Printer, planned: Planned) -> None:
    """Print the verdict, the split that a request would make, and the sizes that are compared."""
    printer.text(planned.describe(), "bold green" if planned.exit_code == 0 else "bold red")
    printer.text("")
    samples, plan = planned.samples, planned.sizes.plan
    classes = tuple(planned.sizes.certify_by_class)
    default = classes[1] if len(classes) == 2 else None
    positive = default if samples.positive is None else samples.positive
    _print_table(printer, samples, classes, positive, len(samples.y))
    printer.section("Split", planned.split)
    if plan is not None:
        printer.section("Plan", str(plan))


def _print_table(
    printer: Printer, samples: Samples, classes: tuple[Any, ...], positive: Any, n_rows: int
) -> None:
    """Print the name and the size of the table, and its classes."""
    text = "" if positive is None else f"; {name_class(positive)} is positive"
    if samples.positive is None and len(classes) == 2:
        (other,) = (one for one in classes if one != positive)
        text += f" by default (--positive {shlex.quote(str(other))} changes this)"
    printer.text(
        f"{samples.table.name}: {n_rows:,} rows, {len(classes)} classes in "
        f"{samples.target!r}{text}",
        "bold",
    )
