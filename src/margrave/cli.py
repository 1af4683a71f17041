"""The command ``margrave``: parses the arguments and calls the library.

Exit codes: 0 success; 2 bad input, reported in one line; 3 a preference that is not met or cannot
be guaranteed; 4 a guarantee that no longer holds (`margrave check`); 5 a certified model that is
useless; 130 interrupted.

Each command imports what it needs when it runs, so that the others, and `--help`, start at once.
"""

from __future__ import annotations

import os
import shlex
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from margrave import MargraveError
from margrave._atomic_write import resolve_file
from margrave._json import json_ready
from margrave._messages import format_count, missing_extra
from margrave.app.messages import InputError, describe_error, replace_control
from margrave.app.options import make_parser

if TYPE_CHECKING:
    from margrave.app.request import Outcome
    from margrave.app.samples import Samples
    from margrave.steer import SteeredClassifier

BAD_INPUT, ALARM, INTERRUPTED = 2, 4, 130
_FEW_ROWS = 20  # of each entity, at most
_FIRST_ROWS = 5000  # of a folder, in which roles of columns are searched for
_NO_GROUP = "none"  # the value of --group for rows that are independent

# What a model with wrong content raises when it is used.
_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError)

# The options and arguments that give the parameters of the library.
_OPTIONS = {
    **{
        name: f"--{name}"
        for name in (
            *("certify", "confidence", "decimal", "dialog", "drop", "duplicates", "encoding"),
            *("group", "keep", "level", "limit", "out", "plan", "positive", "report", "strategies"),
            *("target", "then", "time"),
        )
    },
    "data": "DATA",
    "n_jobs": "--jobs",
    "random_state": "--seed",
}


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command and exit with its code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            code = _run(arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        stopped = MargraveError("interrupted; nothing more is written.", code="interrupted")
        sys.exit(_report_error(stopped, INTERRUPTED, arguments))
    except BrokenPipeError:  # the reader of the output closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError, ImportError) as error:
        sys.exit(_report_error(error, BAD_INPUT, arguments))
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run the command that the arguments name; return the exit code."""
    parser = make_parser()
    if not arguments:
        parser.print_help()
        return BAD_INPUT
    options = parser.parse_args(arguments)
    commands: dict[str, Callable[[Namespace], int]] = {
        "steer": partial(steer, command=shlex.join(["margrave", *arguments])),
        "predict": predict,
        "check": check,
        "card": card,
        "studio": studio,
        "data": data,
    }
    return commands[options.command](options)


def _report_error(error: Exception, code: int, arguments: Sequence[str]) -> int:
    """Print an error in one line; return the exit code."""
    line = describe_error(error, _OPTIONS.get)
    if isinstance(error, MargraveError) and error.code == "text_format":
        line += (
            " Use --encoding {encoding} --decimal {decimal} to read it; with --decimal . numbers "
            "with commas stay text."
        ).format_map(error.fields)
    if isinstance(error, MargraveError) and error.code == "many_copies":
        meanings = {"near": "to count copies once", "independent": "to count each row"}
        replies = [f"--duplicates {one} {meanings[one]}" for one in error.fields["choices"]]
        if "near" in error.fields["choices"]:
            replies.insert(0, "--drop COLUMN if a column only numbers the rows")
            if not {"--time", "--group"} & {one.partition("=")[0] for one in arguments}:
                replies.insert(0, "--group COLUMN if a column says which rows belong together")
        line += f" To go on, use {'; '.join(replies)}."
    line = replace_control(line)
    if "--json" in arguments:
        kind, fields = "refused", None
        if isinstance(error, MargraveError):
            kind, fields = error.code, error.fields
        _print_json({"error": line, "exit_code": code, "code": kind, "fields": fields})
    sys.stderr.write(f"margrave: {line}\n")
    return code


def _print_json(record: dict[str, Any]) -> None:
    import json

    sys.stdout.write(json.dumps(record, allow_nan=False) + "\n")


def steer(options: Namespace, command: str) -> int:
    """Train a committee on a table, steer it to a preference and certify it."""
    from margrave.app.request import LEDGER, read_fraction, read_limits, run_request
    from margrave.app.terminal import Bars

    if options.plan:
        return _plan(options)
    if options.out is None:
        raise MargraveError("the following arguments are required: --out", code="usage")
    names, ledger = ("out", "report", "dialog"), options.out.with_name(LEDGER)
    paths = {f"--{name}": getattr(options, name) for name in names}
    _check_paths({**paths, "the ledger": ledger}, options.data)
    _check_text_format(Path(options.data), options)
    strategies = None
    if options.strategies is not None:
        strategies = [strategy.strip() for strategy in options.strategies.split(",")]
    certify, wants = read_fraction(options.certify), read_limits(options.limit, options.then)
    run: Callable[..., Outcome]
    with ExitStack() as stack:
        stack.enter_context(_use_cluster(options.cluster))
        if Path(options.data).is_dir():
            from margrave.app.folder import (
                check_folder_options,
                describe_folder,
                run_folder,
                use_cluster,
            )

            in_memory = {name: getattr(options, name) for name in ("time", "report", "dialog")}
            in_memory["group"] = None if options.group == _NO_GROUP else options.group
            check_folder_options(in_memory, strategies)
            columns = {name: getattr(options, name) for name in ("target", "positive", "drop")}
            if options.cluster is None:
                stack.enter_context(use_cluster(None))
            samples = _check_roles(describe_folder(Path(options.data), **columns), options)
            run = partial(run_folder, samples)
        else:
            samples = _check_roles(_read_samples(options), options)
            run = partial(run_request, samples, strategies=strategies, path=options.dialog)
        bars = stack.enter_context(Bars(shown=not options.quiet))
        outcome = run(
            wants,
            confidence=options.confidence,
            certify=certify,
            duplicates=options.duplicates,
            seed=options.seed,
            n_jobs=options.jobs,
            on_training=bars.training,
            on_reply=bars.reply,
            ledger=ledger,
            reserve=options.reserve,
            anyway=options.anyway,
        )
    if outcome.model is not None:
        outcome.model.save(options.out)
    if options.report is not None:
        from margrave.app.report import page, write_page

        write_page(page(outcome, command), options.report)
    _print_result(outcome, options, ledger if outcome.used_rows else None)
    return outcome.exit_code


def _read_samples(options: Namespace) -> Samples:
    """Read the table that `steer` is called with."""
    from margrave.app.samples import find_table, samples_of

    names = ("target", "positive", "drop", "group", "time")
    table = find_table(options.data, encoding=options.encoding, decimal=options.decimal)
    columns = {name: getattr(options, name) for name in names}
    if options.group == _NO_GROUP and _NO_GROUP not in table.frame:
        columns["group"] = None
    return samples_of(table, **columns)


def _check_roles(samples: Samples, options: Namespace) -> Samples:
    """Print a line for each column that should probably not be an ordinary feature.

    Leave out columns that only number the rows: new rows have other numbers. Where entities such as
    patients have a few rows each, new rows are of new ones, for which a guarantee would not hold:
    then raise an error before the certification rows are used up.
    """
    from dataclasses import replace

    from margrave.table import find_roles

    names = {"entity": "--group", "time": "--time"}
    known = {"entity"} if options.group is not None else set()
    known |= {"time"} if options.time is not None else set()
    X: Any = samples.X
    y: Any = samples.y
    if hasattr(X, "npartitions"):  # of a folder: the first rows of the first files
        known |= {"time"}
        X, y = (one.head(_FIRST_ROWS, npartitions=-1) for one in (X, y))
    for finding in find_roles(X, y):
        if finding.kind in known:
            continue
        if finding.kind == "identifier" and samples.X.shape[1] == 1:
            continue
        if finding.kind == "identifier":
            if not options.quiet:
                _print_stage(f"margrave: {finding.reason}, and is left out.")
            samples = replace(samples, X=samples.X.drop(columns=finding.column))
            continue
        use = f"{names[finding.kind]} {shlex.quote(finding.column)}"
        if 0 < finding.rows_each <= _FEW_ROWS and not options.plan:
            raise InputError(
                "group",
                f"may be needed: {finding.reason}. If these rows belong together, use {use}: "
                "otherwise the guarantee would not hold for new ones. If they are independent all "
                f"the same, use --group {_NO_GROUP}.",
                code="dependent_rows",
                column=finding.column,
            )
        if not options.quiet:
            _print_stage(f"margrave: {finding.advise(use)}")
        known |= {finding.kind} & {"time"}  # one is enough
    return samples


def _plan(options: Namespace) -> int:
    """Print the split that `steer` would make; train nothing."""
    from margrave.app.request import plan_request, read_fraction, read_limits
    from margrave.app.terminal import Printer, print_plan

    _check_text_format(Path(options.data), options)
    certify, wants = read_fraction(options.certify), read_limits(options.limit, options.then)
    if Path(options.data).is_dir():
        from margrave.app.folder import check_folder_options

        check_folder_options({"plan": True}, None)
    samples = _check_roles(_read_samples(options), options)
    planned = plan_request(
        samples,
        wants,
        confidence=options.confidence,
        certify=certify,
        duplicates=options.duplicates,
        seed=options.seed,
    )
    if options.json:
        _print_json(planned.to_dict())
    elif not options.quiet:
        print_plan(Printer(), planned)
    if planned.exit_code and (options.quiet or options.json):
        sys.stderr.write(f"margrave: {replace_control(planned.describe())}\n")
    return planned.exit_code


def _use_cluster(address: str | None) -> Any:
    """Return a context that runs its block on a Dask cluster, if there is an address."""
    if address is None:
        return nullcontext()
    from margrave.app.folder import use_cluster

    return use_cluster(address)


def _print_result(outcome: Outcome, options: Namespace, ledger: Path | None) -> None:
    """Print the outcome of a request and the files written."""
    model = None if outcome.model is None else options.out
    paths = {"model": model, "dialog": options.dialog, "report": options.report}
    if options.json:
        files = {**paths, "ledger": ledger}
        written = {kind: None if path is None else str(path) for kind, path in files.items()}
        _print_json(outcome.to_dict() | written)
    elif not options.quiet:
        from margrave.app.terminal import Printer, print_outcome

        printer = Printer()
        print_outcome(printer, outcome, paths, verbose=options.verbose)
        if ledger is not None:
            printer.text(f"{ledger} records which certification rows are used up.")
        if model is None and options.out.exists():
            printer.text(f"{options.out} is from an earlier run.")
        if outcome.refusal is not None and outcome.refusal.code == "improbable":
            printer.text("To certify anyway, add --anyway: this uses the certification rows up.")
    if outcome.exit_code and (options.quiet or options.json):
        sys.stderr.write(f"margrave: {replace_control(outcome.describe())}\n")


def _check_paths(paths: dict[str, Path | None], data: str) -> None:
    """Check, before minutes of training, that the files can be written."""
    owners = {Path(os.path.realpath(data)): "DATA"}
    for option, path in paths.items():
        if path is None:
            continue
        try:
            target = resolve_file(path)
        except OSError as error:
            raise ValueError(f"{option} must name a file; {error}") from error
        if not target.parent.is_dir():
            raise ValueError(
                f"{option} must be in a folder that exists; there is no {path.parent}."
            )
        if not os.access(target.parent, os.W_OK):
            raise ValueError(
                f"{option} must be in a writable folder; {target.parent} is not writable."
            )
        other = owners.setdefault(target, option)
        if other != option:
            raise ValueError(f"{option} must name a file of its own; {path} is also {other}.")


def _check_text_format(path: Path, options: Namespace) -> None:
    """Refuse the options of a text file for a folder."""
    if path.is_dir() and not (options.encoding is None and options.decimal is None):
        raise ValueError(
            f"--encoding and --decimal must be left out for a folder of Parquet files; got them "
            f"for {path}."
        )


def _load_model(path: Path) -> SteeredClassifier:
    from margrave.steer import SteeredClassifier

    return SteeredClassifier.load(path)


@contextmanager
def _use_model(path: Path) -> Iterator[None]:
    """Report a model as damaged if using it fails; the block does nothing else.

    The rows of a folder are read block by block while the model is used, so that some faults of
    reading them are reported as well.
    """
    try:
        yield
    except _FAULTS as error:
        from margrave.steer import FileError

        raise FileError(
            f"{path.name!r} cannot be used: it is damaged, or another version of a package wrote "
            f"it ({type(error).__name__}: {error}). Train and save the model again.",
            code="damaged",
            name=path.name,
        ) from error


def predict(options: Namespace) -> int:
    """Predict the label and the score of each row of a table, and whether it is rejected."""
    from margrave.app.predictions import (
        join_inputs,
        list_thresholds,
        predict_folder,
        predict_rows,
        select_features,
        select_kept,
    )
    from margrave.app.samples import Table
    from margrave.app.tables import csv_text, is_text, read_cells, read_table, write_table
    from margrave.steer import positive_class

    new, out = options.new, options.out
    _check_text_format(new, options)
    if not new.is_dir():
        _check_paths({"--out": out}, str(new))
    classifier = _load_model(options.model)
    with _use_cluster(options.cluster):
        if new.is_dir():
            with _use_model(options.model):
                record = predict_folder(classifier, new, out, options.keep)
        else:
            table = read_table(new, encoding=options.encoding, decimal=options.decimal)
            kept = select_kept(Table(table, new.name, new), options.keep)
            with _use_model(options.model):
                X, ignored = select_features(classifier, table)
                predictions = predict_rows(classifier, X)
            rejected = int(predictions["rejected"].sum())
            if is_text(new) and (not options.json if out is None else is_text(out)):
                table = read_cells(new, options.encoding)
            predictions = join_inputs(table[kept], predictions)
            if out is not None:
                write_table(predictions, out)
            record = {"n": len(predictions), "rejected": rejected, "ignored": ignored}
    if ignored := record["ignored"]:
        names = ", ".join(map(repr, ignored[:5])) + (" ..." if len(ignored) > 5 else "")
        columns = "column" if len(ignored) == 1 else "columns"
        message = f"margrave: {new.name}: the model does not use the {columns} {names}."
        sys.stderr.write(replace_control(message) + "\n")
    if options.json:
        record |= {
            "positive": positive_class(classifier),
            "thresholds": list_thresholds(classifier),
        }
        if out is None:
            missing = predictions.isna().to_dict("records")
            record["predictions"] = [
                {
                    name: None if none[name] else str(cell) if hasattr(cell, "isoformat") else cell
                    for name, cell in row.items()
                }
                for row, none in zip(predictions.to_dict("records"), missing, strict=True)
            ]
        else:
            record["out"] = str(out)
        _print_json(json_ready(record))
    elif out is None:
        text = csv_text(predictions).replace("\r\n", "\n")  # the line end of standard output
        sys.stdout.write(replace_control(text) if sys.stdout.isatty() else text)
    return 0


def check(options: Namespace) -> int:
    """Check a guarantee on newly labelled rows; the exit code is 4 if it no longer holds."""
    from margrave.app.predictions import check_folder, select_features
    from margrave.app.samples import Table, read_groups, read_labels
    from margrave.app.tables import read_table
    from margrave.app.terminal import Printer

    labelled, target, group = options.labelled, options.target, options.group
    _check_text_format(labelled, options)
    classifier = _load_model(options.model)
    if labelled.is_dir():
        from margrave.app.folder import check_folder_options

        check_folder_options({"group": group}, None)
        with _use_model(options.model):
            result = check_folder(classifier, labelled, target, options.level)
    else:
        frame = read_table(labelled, encoding=options.encoding, decimal=options.decimal)
        table = Table(frame, labelled.name, labelled, encoding=options.encoding)
        with _use_model(options.model):
            y = read_labels(table, target, classifier.classes_)
            X, _ = select_features(classifier, table.frame.drop(columns=target))
            groups = None if group is None else read_groups(table, group)
            result = classifier.check(X, y, groups, level=options.level)
    if options.json:
        _print_json(result.to_dict())
    else:
        printer, rows = Printer(), format_count(result.confusion.n, "row")
        printer.text(str(result), "bold red" if result.alarm else "")
        printer.section(f"On {rows} of {labelled.name}", str(result.confusion))
        if result.alarm:
            printer.text("Train again, or compute a new guarantee: SteeredClassifier.recertify.")
    return ALARM if result.alarm else 0


def card(options: Namespace) -> int:
    """Print the model card in Markdown: members, guarantee, measurements and limitations."""
    from margrave._archive import read_card

    record = read_card(options.model)
    if record is None:  # the file is not a model, or an earlier version has written it
        classifier = _load_model(options.model)
        from margrave.steer import card_record

        with _use_model(options.model):
            record = card_record(classifier)
    if options.json:
        _print_json(record)
    else:
        sys.stdout.write(replace_control(record["card"]))
    return 0


def studio(options: Namespace) -> int:
    """Start the studio: steer a classifier by its confusion matrix in a browser."""
    table = [getattr(options, name) for name in ("target", "positive", "encoding", "decimal")]
    if options.data is None and any(given is not None for given in table):
        raise ValueError(
            "--target, --positive, --encoding and --decimal need DATA, which is missing."
        )
    _print_stage("Starting the studio ...")  # the imports take seconds
    try:
        from margrave.studio.launch import Beginning, serve
        from margrave.studio.settings import Settings
        from margrave.studio.store import StoreError
    except ModuleNotFoundError as error:
        message = missing_extra("margrave studio", str(error.name), "studio")
        raise ImportError(message) from error

    def ready(urls: list[str]) -> None:
        for place, url in zip(("Margrave studio", "From other machines"), urls, strict=False):
            sys.stdout.write(f"{place}: {url}\n")
        sys.stdout.flush()

    port, begin = options.port, None
    settings = Settings.of(
        options.host,
        port or 0,
        options.store,
        os.environ.get("MARGRAVE_TOKEN") or None,
        hosts=options.public_host,
        proxies=options.trusted_proxy,
    )
    if options.data is not None:
        begin = Beginning(options.data, *table)
        _print_stage(f"Reading {options.data} ...")
    try:
        serve(settings, port, begin, ready, browser=options.browser)
    except StoreError as error:
        raise ValueError(str(error)) from error
    return 0


def _print_stage(text: str) -> None:
    """Print what the command does now, at once."""
    sys.stderr.write(replace_control(text) + "\n")
    sys.stderr.flush()


def data(options: Namespace) -> int:
    """List the data sets, describe one, or write one to a file."""
    from margrave import datasets
    from margrave.app.tables import write_table
    from margrave.app.terminal import Printer

    name, out, printer = options.name, options.out, Printer()
    if name is None and out is not None:
        raise ValueError("--out needs the NAME of a data set, which is missing.")
    _check_paths({"--out": out}, "")
    records: list[dict[str, Any]] = []
    for one in datasets.names(available=True) if name is None else (name,):
        bunch = datasets.load(one, as_frame=out is not None)
        if out is not None:
            write_table(bunch.frame, out)
        record = {"name": one, "n": len(bunch.data), "n_columns": bunch.data.shape[1]}
        record |= {"classes": list(bunch.target_names), "positive": bunch.positive}
        record |= {"source": bunch.source, "licence": bunch.licence, "description": bunch.DESCR}
        records.append(record if out is None else record | {"out": str(out)})
    if options.json:
        _print_json({"data": records} if name is None else records[0])
    elif out is not None:
        n = records[0]["n"]
        printer.text(f"{n:,} rows of {name} were written to {out}; use --target target")
    elif name is not None:
        printer.text(records[0]["description"])
    else:
        for one in records:
            classes = list(map(str, one["classes"]))
            target = f"{len(classes)} classes: {', '.join(classes)}" if classes else "numbers"
            size = f"{one['n']:>6,} rows {one['n_columns']:>3} columns"
            printer.text(f"{one['name']:<20}{size}   {target}")
    return 0
