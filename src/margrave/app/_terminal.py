"""What the command line shows: progress while it works, and what came of it.

Labels and names of columns are a user's: they are printed as they are, never as markup, and
without the characters that a terminal would obey.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from margrave.app._folder import FolderOutcome
from margrave.app._job import Outcome
from margrave.app._words import harmless
from margrave.committee import Progress as Training
from margrave.steer._reply import Reply


@dataclass
class Printer:
    """Text on a terminal or in a file.

    Attributes
    ----------
    console : Console
        Where it goes.
    """

    console: Console = field(default_factory=lambda: Console(highlight=False))

    def text(self, text: str, style: str = "", indent: int = 0) -> None:
        """Lines as they are."""
        for line in harmless(text).splitlines() or [""]:
            self.console.print(Text(" " * indent + line, style=style), soft_wrap=True)

    def part(self, head: str, text: str) -> None:
        """Lines under a head."""
        self.text("")
        self.text(head, "bold")
        self.text(text, indent=2)


@contextmanager
def progress(shown: bool) -> Iterator[Bars]:
    """Bars on the standard error, if it is a terminal."""
    console = Console(stderr=True, highlight=False)
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[told]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not (shown and console.is_terminal),
    )
    with bars:
        yield Bars(bars)


@dataclass
class Bars:
    """The bars of one request: one for the training, one for each preference.

    Attributes
    ----------
    bars : rich.progress.Progress
        Where they are drawn.
    """

    bars: Progress

    def training(self, at: Training) -> None:
        """A model was trained."""
        if not self.bars.task_ids:
            self.bars.add_task("training the members", total=at.total, told="")
        told = f"{at.done} of {at.total} models ({at.member})"
        self.bars.update(self.bars.task_ids[0], completed=at.done, told=told)

    def reply(self, want: str, reply: Reply | None) -> None:
        """A preference is asked for, or a better reply was found."""
        if reply is None:
            for done in self.bars.task_ids[1:]:
                self.bars.update(done, total=1, completed=1)
            self.bars.add_task(harmless(want), total=None, told="looking")
            return
        said = "met" if reply.met else f"{reply.shortfall:g} short"
        self.bars.update(self.bars.task_ids[-1], told=f"{said} by {reply.strategy}")


def print_outcome(printer: Printer, outcome: Outcome | FolderOutcome) -> None:
    """Everything that became of a request, as a page of text."""
    samples, matrix = outcome.samples, outcome.start.after
    positive = "" if matrix.positive is None else f"; {matrix.positive} is positive"
    printer.text(
        f"{samples.table.name}: {outcome.n_rows:,} rows, {len(matrix.classes)} classes in "
        f"{samples.target!r}{positive}",
        "bold",
    )
    printer.part("Columns, taken as", outcome.encoder.describe())
    printer.part("Parts", outcome.told_parts())
    printer.part(f"Start, on {matrix.n:,} tuning samples", str(matrix))
    for reply in outcome.replies:
        lines = str(reply).splitlines()
        printer.text("")
        printer.text(lines[0], "bold green" if reply.met else "bold yellow")
        printer.text("\n".join(lines[1:]))
        if reply.cancelled:
            printer.text("Stopped before all ways were tried: this is the best so far.", indent=2)
    if outcome.model is not None:
        printer.part("Certificate", str(outcome.model.certificate_))
    printer.text("")
    printer.text(outcome.evaluate(), "bold green" if outcome.exit_code == 0 else "bold red")
