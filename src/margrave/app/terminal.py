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
    from margrave.app.request import Outcome, Planned
    from margrave.app.samples import Samples
    from margrave.committee import Progress as Training
    from margrave.steer import Reply


_BAR_WIDTH = 12


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


def print_outcome(printer: Printer, outcome: Outcome) -> None:
    """Print the outcome of a request: columns, split, matrices, replies and certificate."""
    matrix = outcome.start.after
    _print_table(printer, outcome.samples, matrix.classes, matrix.positive, outcome.n_rows)
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
    if outcome.model is not None:
        printer.section("Certificate", str(outcome.model.certificate_))
    printer.text("")
    printer.text(outcome.describe(), "bold green" if outcome.exit_code == 0 else "bold red")


def print_plan(printer: Printer, planned: Planned) -> None:
    """Print the split that a request would make, and the sizes that its plan compares."""
    samples, plan = planned.samples, planned.sizes.plan
    classes = tuple(planned.sizes.certify_by_class)
    default = classes[1] if len(classes) == 2 else None
    positive = default if samples.positive is None else samples.positive
    _print_table(printer, samples, classes, positive, len(samples.y))
    printer.section("Split", planned.split)
    if plan is not None:
        printer.section("Plan", str(plan))
    printer.text("")
    printer.text(planned.describe(), "bold green" if planned.exit_code == 0 else "bold red")


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
