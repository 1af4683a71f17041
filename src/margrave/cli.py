"""The command ``margrave``: parses the arguments and calls the library.

Exit codes: 0 success; 2 bad input, reported in one line; 3 a preference that is not met or cannot
be guaranteed; 4 a guarantee that no longer holds (`margrave check`); 130 interrupted.
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
    import rich  # noqa: F401 - imported here, so that one message covers both
    import typer
except ModuleNotFoundError as error:
    sys.stderr.write(missing_extra("The command margrave", str(error.name), "app") + "\n")
    raise SystemExit(2) from error

from margrave.app._folder import FolderOutcome, describe_folder, run_folder, use_cluster
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
    read_fraction,
    read_limit,
)
from margrave.app._predict import check_folder, predict_folder, predict_rows, select_features
from margrave.app._records import outcome_record
from margrave.app._report import page, write_page
from margrave.app._samples import Table, find_table, read_labels, samples_of
from margrave.app._table_file import csv_text, read_table, write_table
from margrave.app._terminal import Printer, print_outcome, progress
from margrave.app._words import one_line, replace_control
from margrave.steer._steered import SteeredClassifier

BAD_INPUT, ALARM, INTERRUPTED = 2, 4, 130

# The base class of errors about options: typer's own or click's, depending on typer's version.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="margrave",
    help="Steer a classifier to the errors that you can tolerate, and certify it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit with its code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = app(arguments, prog_name="margrave", standalone_mode=False, obj=arguments)
        sys.stdout.flush()
        if code == INTERRUPTED:  # newer versions of typer return it after Ctrl-C
            raise KeyboardInterrupt
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_report_error("interrupted; nothing more is written.", INTERRUPTED, arguments))
    except BrokenPipeError:  # the reader of the output closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except _UsageError as error:
        message = error.format_message()  # type: ignore[attr-defined]  # typer exports no base class
        if not message:  # typer has shown the help
            sys.exit(BAD_INPUT)
        sys.exit(_report_error(message, BAD_INPUT, arguments))
    except (ValueError, OSError, ImportError) as error:
        sys.exit(_report_error(str(error), BAD_INPUT, arguments))
    sys.exit(code if isinstance(code, int) else 0)


def _report_error(message: str, code: int, arguments: Sequence[str]) -> int:
    """Print an error in one line; return the exit code."""
    line = replace_control(one_line(message))
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
    _check_paths({"--out": out, "--report": report, "--dialog": dialog}, data)
    chosen = (
        None if strategies is None else [strategy.strip() for strategy in strategies.split(",")]
    )
    fraction, wants = read_fraction(certify), [read_limit(text) for text in limit]
    run: Callable[..., Outcome | FolderOutcome]
    with ExitStack() as stack:
        stack.enter_context(use_cluster(cluster))
        if Path(data).is_dir():
            in_memory = {"--group": group, "--time": time, "--report": report, "--dialog": dialog}
            check_folder_options(in_memory, chosen)
            run = partial(
                run_folder,
                describe_folder(Path(data), target=target, positive=positive, drop=drop or ()),
            )
            stack.enter_context(use_cluster(None, local=cluster is None))
        else:
            samples = samples_of(
                find_table(data),
                target=target,
                positive=positive,
                group=group,
                time=time,
                drop=drop or (),
            )
            run = partial(run_request, samples, strategies=chosen, path=dialog)
        bars = stack.enter_context(progress(shown=not quiet))
        outcome = run(
            wants,
            confidence=confidence,
            certify=fraction,
            seed=seed,
            n_jobs=jobs,
            on_training=bars.training,
            on_reply=bars.reply,
        )
    command = shlex.join(["margrave", *(context.find_root().obj or ())])
    written = _write_files(outcome, out, dialog, report, command)
    _print_result(outcome, written, out, as_json, quiet)
    raise typer.Exit(outcome.exit_code)


def _print_result(
    outcome: Outcome | FolderOutcome,
    written: dict[str, str | None],
    out: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Print the outcome of a request and the files written."""
    if as_json:
        _print_json(outcome_record(outcome) | written)
    elif not quiet:
        printer = Printer()
        print_outcome(printer, outcome)
        _print_written(printer, written, out)
    if outcome.exit_code and (quiet or as_json):
        sys.stderr.write(f"margrave: {replace_control(outcome.describe())}\n")


def _write_files(
    outcome: Outcome | FolderOutcome,
    out: Path,
    dialog: Path | None,
    report: Path | None,
    command: str,
) -> dict[str, str | None]:
    """Write the model and the report; return the path of each file, None for one not written."""
    if outcome.model is not None:
        outcome.model.save(out)
    if report is not None and isinstance(outcome, Outcome):
        write_page(page(outcome, command), report)
    written = {"model": out if outcome.model else None, "dialog": dialog, "report": report}
    return {kind: None if path is None else str(path) for kind, path in written.items()}


def _check_paths(paths: dict[str, Path | None], data: str) -> None:
    """Check, before minutes of training, that the files can be written."""
    owners = {Path(data).resolve(): "DATA"}
    for option, path in paths.items():
        if path is None:
            continue
        if path.is_dir():
            raise ValueError(f"{option} must name a file; {path} is a folder.")
        if not path.absolute().parent.is_dir():
            raise ValueError(
                f"{option} must be in a folder that exists; there is no {path.parent}."
            )
        if not os.access(path.absolute().parent, os.W_OK):
            raise ValueError(
                f"{option} must be in a writable folder; {path.parent} is not writable."
            )
        other = owners.setdefault(path.resolve(), option)
        if other != option:
            raise ValueError(f"{option} must name a file of its own; {path} is also {other}.")


def _print_written(printer: Printer, written: dict[str, str | None], out: Path) -> None:
    for kind, path in written.items():
        if path is not None:
            printer.text(f"The {kind} was written to {path}.")
    if written["model"] is None:
        older = f" {out} is from an earlier run." if out.exists() else ""
        printer.text(f"No model was written.{older}")
    else:
        model = shlex.quote(written["model"])
        printer.text(f"To use it: margrave predict {model} NEW.csv --out predictions.csv")


@app.command()
def predict(
    model: Model,
    new: Annotated[
        Path,
        typer.Argument(help="A table with the model's columns, or a folder of Parquet files."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file for the predictions, or the folder if NEW is one. By default, the "
            "predictions for a table are printed."
        ),
    ] = None,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Predict the label and the score of each row of a table, and whether it is rejected."""
    if not new.is_dir():
        _check_paths({"--out": out}, str(new))
    classifier = SteeredClassifier.load(model)
    if new.is_dir():
        with use_cluster(cluster):
            record = predict_folder(classifier, new, out)
    else:
        X, ignored = select_features(classifier, read_table(new))
        with use_cluster(cluster):
            predictions = predict_rows(classifier, X)
        if out is not None:
            write_table(predictions, out)
        rejected = int(predictions["rejected"].sum())
        record = {"n": len(predictions), "rejected": rejected, "ignored": ignored}
    if ignored := record["ignored"]:
        names = ", ".join(map(repr, ignored[:5])) + (" ..." if len(ignored) > 5 else "")
        columns = "column" if len(ignored) == 1 else "columns"
        message = f"margrave: {new.name}: the model does not use the {columns} {names}."
        sys.stderr.write(replace_control(message) + "\n")
    if as_json:
        rows = {"predictions": predictions.to_dict("records")} if out is None else {"out": str(out)}
        _print_json(record | rows)
    elif out is None:
        text = csv_text(predictions)
        sys.stdout.write(replace_control(text) if sys.stdout.isatty() else text)


@app.command()
def check(
    model: Model,
    labelled: Annotated[
        Path, typer.Argument(help="A table with labels, or a folder of Parquet files.")
    ],
    target: Annotated[str, typer.Option(help="The column with the classes.")],
) -> None:
    """Check a guarantee on newly labelled rows; the exit code is 4 if it no longer holds."""
    classifier = SteeredClassifier.load(model)
    if labelled.is_dir():
        result = check_folder(classifier, labelled, target)
    else:
        table = Table(read_table(labelled), labelled.name, labelled)
        y = read_labels(table, target, classifier.classes_)
        X, _ = select_features(classifier, table.frame.drop(columns=target))
        result = classifier.check(X, y)
    printer = Printer()
    printer.text(str(result), "bold red" if result.alarm else "")
    printer.section(f"On {result.confusion.n:,} rows of {labelled.name}", str(result.confusion))
    raise typer.Exit(ALARM if result.alarm else 0)


@app.command()
def card(model: Model) -> None:
    """Print the model card in Markdown: members, guarantee, measurements and limitations."""
    sys.stdout.write(replace_control(SteeredClassifier.load(model).model_card()))


@app.command()
def studio(
    data: Annotated[
        str | None,
        typer.Argument(help="A CSV or Parquet file, or a name that `margrave data` lists."),
    ] = None,
    target: Target = None,
    positive: Positive = None,
    port: Annotated[
        int | None,
        typer.Option(help="The port to listen on. By default 8420, or the next free port."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="The address to listen on. Users on other machines need the token."),
    ] = "127.0.0.1",
    store: Annotated[
        str | None,
        typer.Option(
            help="The database: sqlite:///FILE or postgresql://... By default, a file in your data "
            "folder."
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MARGRAVE_TOKEN",
            help="The token that users must enter. By default, a random one if one is needed.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the studio in a browser.")] = True,
) -> None:
    """Start the studio: steer a classifier by its confusion matrix in a browser."""
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
        raise ValueError("--target and --positive need DATA, which is missing.")
    settings = Settings.of(host=host, port=port or 0, store=store, token=token)
    begin = None if data is None else Beginning(data, target, positive)
    try:
        serve(settings, port, begin, ready)
    except StoreError as error:
        raise ValueError(str(error)) from error


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help="The name of a data set.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file for the table; its last column is the target.")
    ] = None,
) -> None:
    """List the data sets, describe one, or write one to a file."""
    printer = Printer()
    if name is None and out is not None:
        raise ValueError("--out needs the NAME of a data set, which is missing.")
    if name is None:
        for available in datasets.names(available=True):
            bunch = datasets.load(available)
            classes = list(map(str, bunch.target_names))
            target = f"{len(classes)} classes: {', '.join(classes)}" if classes else "numbers"
            rows, columns = np.shape(bunch.data)
            printer.text(f"{available:<20}{rows:>6,} rows {columns:>3} columns   {target}")
    elif out is None:
        printer.text(datasets.load(name).DESCR)
    else:
        _check_paths({"--out": out}, "")
        frame = datasets.load(name, as_frame=True).frame
        write_table(frame, out)
        printer.text(f"{len(frame):,} rows of {name} were written to {out}; use --target target")
