"""The command ``margrave``: arguments only; the library does the work.

Exit codes: 0 done; 2 bad input, told in one line; 3 a preference that is not reachable or cannot be
promised; 4 a broken promise (`margrave check`); 130 interrupted.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np

from margrave import __version__, datasets
from margrave._messages import missing_extra

try:
    import rich  # noqa: F401 - asked for here, so that one message covers both
    import typer
except ModuleNotFoundError as error:
    sys.stderr.write(missing_extra("The command margrave", str(error.name), "app") + "\n")
    raise SystemExit(2) from error

from margrave.app._answers import answer_folder, answers_to, check_folder, features
from margrave.app._folder import FolderOutcome, folder_of, run_folder, working
from margrave.app._job import Outcome, run_request
from margrave.app._options import (
    AsJson,
    Certify,
    Cluster,
    Confidence,
    Data,
    Drop,
    Group,
    Jobs,
    Limit,
    Model,
    Out,
    Positive,
    Quiet,
    Report,
    Saved,
    Seed,
    Strategies,
    Target,
    Time,
    check_folder_options,
    read_share,
)
from margrave.app._records import outcome_record
from margrave.app._report import page, write_page
from margrave.app._samples import Table, find_table, labels_of, samples_of
from margrave.app._table_file import csv_text, read_table, write_table
from margrave.app._terminal import Printer, print_outcome, progress
from margrave.app._words import harmless, one_line
from margrave.confusion import Preference
from margrave.steer._steered import SteeredClassifier

BAD_INPUT, ALARM, INTERRUPTED = 2, 4, 130

# Its own in older versions of typer, click's in others: the base of what says that an option is
# wrong.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="margrave",
    help="Steer a classifier to the mistakes you can afford, and certify it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit with its code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process if left out.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = app(arguments, prog_name="margrave", standalone_mode=False, obj=arguments)
        sys.stdout.flush()
        if code == INTERRUPTED:  # as newer versions of typer answer Ctrl-C
            raise KeyboardInterrupt
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_failed("interrupted; nothing more is written.", INTERRUPTED, arguments))
    except BrokenPipeError:  # who reads our output has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except _UsageError as error:
        message = error.format_message()  # type: ignore[attr-defined]  # typer ships no base for it
        sys.exit(_failed(message, BAD_INPUT, arguments) if message else BAD_INPUT)  # help was shown
    except (ValueError, OSError, ImportError) as error:
        sys.exit(_failed(str(error), BAD_INPUT, arguments))
    sys.exit(code if isinstance(code, int) else 0)


def _failed(message: str, code: int, arguments: Sequence[str]) -> int:
    """Say in one line what is wrong; give the exit code."""
    line = harmless(one_line(message))
    if "--json" in arguments:
        _print_json({"error": line, "exit_code": code})
    sys.stderr.write(f"margrave: {line}\n")
    return code


def _print_json(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record, allow_nan=False) + "\n")


def _show_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"margrave {__version__}\n")
        raise typer.Exit


@app.callback()
def _margrave(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command()
def steer(
    context: typer.Context,
    data: Data,
    limit: Limit,
    out: Out,
    target: Target = None,
    positive: Positive = None,
    confidence: Confidence = 0.95,
    certify: Certify = "auto",
    group: Group = None,
    time: Time = None,
    drop: Drop = None,
    strategies: Strategies = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    report: Report = None,
    dialog: Saved = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Train a committee on a table, steer it to a preference and certify it."""
    _check_places({"--out": out, "--report": report, "--dialog": dialog}, data)
    chosen = (
        None if strategies is None else [strategy.strip() for strategy in strategies.split(",")]
    )
    share, kept, wants = read_share(certify), drop or (), [Preference(text) for text in limit]
    run: Callable[..., Outcome | FolderOutcome]
    with ExitStack() as stack:
        stack.enter_context(working(cluster, here=False))
        if Path(data).is_dir():
            in_memory = {"--group": group, "--time": time, "--report": report, "--dialog": dialog}
            check_folder_options(in_memory, chosen)
            run = partial(
                run_folder, folder_of(Path(data), target=target, positive=positive, drop=kept)
            )
            stack.enter_context(working(None, here=cluster is None))
        else:
            samples = samples_of(
                find_table(data),
                target=target,
                positive=positive,
                group=group,
                time=time,
                drop=kept,
            )
            run = partial(run_request, samples, strategies=chosen, path=dialog)
        bars = stack.enter_context(progress(shown=not quiet))
        outcome = run(
            wants,
            confidence=confidence,
            certify=share,
            seed=seed,
            n_jobs=jobs,
            on_training=bars.training,
            on_reply=bars.reply,
        )
    command = shlex.join(["margrave", *(context.find_root().obj or ())])
    written = _write(outcome, out, dialog, report, command)
    _tell(outcome, written, out, as_json, quiet)
    raise typer.Exit(outcome.exit_code)


def _tell(
    outcome: Outcome | FolderOutcome,
    written: dict[str, str | None],
    out: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print what became of a request."""
    if as_json:
        _print_json(outcome_record(outcome) | written)
    elif not quiet:
        printer = Printer()
        print_outcome(printer, outcome)
        _print_written(printer, written, out)
    if outcome.exit_code and (quiet or as_json):
        sys.stderr.write(f"margrave: {harmless(outcome.evaluate())}\n")


def _write(
    outcome: Outcome | FolderOutcome,
    out: Path,
    dialog: Path | None,
    report: Path | None,
    command: str,
) -> dict[str, str | None]:
    """Write what there is to write, and say where it is."""
    if outcome.model is not None:
        outcome.model.save(out)
    if report is not None and isinstance(outcome, Outcome):
        write_page(page(outcome, command), report)
    written = {"model": out if outcome.model else None, "dialog": dialog, "report": report}
    return {what: None if path is None else str(path) for what, path in written.items()}


def _check_places(places: dict[str, Path | None], data: str) -> None:
    """Before minutes of training: that what comes of it can be written."""
    seen = {Path(data).resolve(): "DATA"}
    for option, path in places.items():
        if path is None:
            continue
        if path.is_dir():
            raise ValueError(f"{option} needs the name of a file; {path} is a folder.")
        if not path.absolute().parent.is_dir():
            raise ValueError(f"{option} needs a folder that exists; there is no {path.parent}.")
        if not os.access(path.absolute().parent, os.W_OK):
            raise ValueError(f"{option} needs a folder that can be written to; got {path.parent}.")
        other = seen.setdefault(path.resolve(), option)
        if other != option:
            raise ValueError(f"{option} needs a file of its own; {path} is {other}.")


def _print_written(printer: Printer, written: dict[str, str | None], out: Path) -> None:
    for what, path in written.items():
        if path is not None:
            printer.text(f"The {what} is in {path}.")
    if written["model"] is None:
        older = f" {out} is of an earlier run." if out.exists() else ""
        printer.text(f"No model is written.{older}")
    else:
        model = shlex.quote(written["model"])
        printer.text(f"Use it: margrave predict {model} NEW.csv --out answers.csv")


@app.command()
def predict(
    model: Model,
    new: Annotated[Path, typer.Argument(help="A table with the columns that it learned from.")],
    out: Annotated[Path | None, typer.Option(help="A table with an answer for each row.")] = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Answer for each row of a table: its label, its score, and whether it is rejected."""
    if not new.is_dir():
        _check_places({"--out": out}, str(new))
    known = SteeredClassifier.load(model)
    if new.is_dir():
        with working(cluster, here=False):
            record = answer_folder(known, new, out)
    else:
        X, ignored = features(known, read_table(new))
        with working(cluster, here=False):
            answers = answers_to(known, X)
        if out is not None:
            write_table(answers, out)
        record = {"n": len(answers), "rejected": int(answers["rejected"].sum()), "ignored": ignored}
    if ignored := record["ignored"]:
        named = ", ".join(map(repr, ignored[:5])) + (" ..." if len(ignored) > 5 else "")
        sys.stderr.write(harmless(f"margrave: {new.name}: not used: {named}.") + "\n")
    if as_json:
        rows = {"answers": answers.to_dict("records")} if out is None else {"out": str(out)}
        _print_json(record | rows)
    elif out is None:
        text = csv_text(answers)
        sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)


@app.command()
def check(
    model: Model,
    labelled: Annotated[Path, typer.Argument(help="A table, or a folder of them, with labels.")],
    target: Annotated[str, typer.Option(help="The column with the classes.")],
) -> None:
    """Check a promise on freshly labelled rows; exit code 4 if it is broken beyond chance."""
    known = SteeredClassifier.load(model)
    if labelled.is_dir():
        found = check_folder(known, labelled, target)
    else:
        table = Table(read_table(labelled), labelled.name, labelled)
        y = labels_of(table, target, known.classes_)
        X, _ = features(known, table.frame.drop(columns=target))
        found = known.check(X, y)
    printer = Printer()
    printer.text(str(found), "bold red" if found.alarm else "")
    printer.part(f"On {found.confusion.n:,} rows of {labelled.name}", str(found.confusion))
    raise typer.Exit(ALARM if found.alarm else 0)


@app.command()
def card(model: Model) -> None:
    """Print what a model is, promises and needs, in Markdown."""
    sys.stdout.write(harmless(SteeredClassifier.load(model).model_card()))


@app.command()
def studio(
    data: Annotated[
        str | None, typer.Argument(help="A CSV or Parquet file, or a name in `margrave data`.")
    ] = None,
    target: Target = None,
    positive: Positive = None,
    port: Annotated[
        int | None, typer.Option(help="Where to listen; by default 8420, or the next free one.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; another machine's users need a token.")
    ] = "127.0.0.1",
    store: Annotated[
        str | None,
        typer.Option(help="sqlite:///FILE or postgresql://...; by default in your data folder."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MARGRAVE_TOKEN", help="What users have to know; made up where one is needed."
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open it in a browser.")] = True,
) -> None:
    """Open the studio: the dialog over the confusion matrix, in a browser."""
    try:
        from margrave.studio.launch import Beginning, serve
        from margrave.studio.settings import Settings
        from margrave.studio.store import StoreError
    except ModuleNotFoundError as error:
        message = missing_extra("margrave studio", str(error.name), "studio")
        raise ImportError(message) from error

    def ready(url: str) -> None:
        sys.stdout.write(f"Margrave studio: {url}\n")
        sys.stdout.flush()
        if browser:
            webbrowser.open(url)

    if data is None and (target is not None or positive is not None):
        raise ValueError("--target and --positive need DATA; got none.")
    settings = Settings.of(host=host, port=port or 0, store=store, token=token)
    begin = None if data is None else Beginning(data, target, positive)
    try:
        serve(settings, port, begin, ready)
    except StoreError as error:
        raise ValueError(str(error)) from error


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help="One of them.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write it as a table, target last.")] = None,
) -> None:
    """List the data sets, describe one, or write one to a file."""
    printer = Printer()
    if name is None and out is not None:
        raise ValueError("--out needs the NAME of a data set; got none.")
    if name is None:
        for known in datasets.names(available=True):
            found = datasets.load(known)
            many = len(found.target_names)
            told = (
                f"{many} classes: {', '.join(map(str, found.target_names))}" if many else "numbers"
            )
            rows, columns = np.shape(found.data)
            printer.text(f"{known:<20}{rows:>6,} rows {columns:>3} columns   {told}")
    elif out is None:
        printer.text(datasets.load(name).DESCR)
    else:
        _check_places({"--out": out}, "")
        found = datasets.load(name, as_frame=True)
        write_table(found.frame, out)
        printer.text(f"{len(found.frame):,} rows of {name} are in {out}; --target target")
