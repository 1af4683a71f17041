"""The command's options and arguments, with their help texts.

This module uses argparse because `margrave --help` should be shown at once: typer, with the
libraries that it loads, takes 0.6 s to show a help text, argparse 0.1 s.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, BooleanOptionalAction, Namespace
from pathlib import Path
from typing import Any, NoReturn

from margrave import MargraveError, __version__


class _Parser(ArgumentParser):
    """A parser whose errors are exceptions, and which accepts no abbreviated options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise MargraveError(message, code="usage")

    def add(self, name: str, metavar: str, text: str, **settings: Any) -> None:
        """Add an option or an argument with a value."""
        action = {"action": _Once} if name.startswith("--") else {}
        self.add_argument(name, metavar=metavar, help=text, **(action | settings))


class _Once(Action):
    """Stores the value of an option, and refuses a second value that differs."""

    given: Any = None

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option: str | None = None
    ) -> None:
        if self.given not in (None, values):
            parser.error(
                f"{option} takes one value; got {str(self.given)!r} and {str(values)!r}. Name it "
                "once."
            )
        self.given = values
        setattr(namespace, self.dest, values)


def make_parser() -> ArgumentParser:
    """Make the parser; it sets ``command`` to the name of a command, and that command's options."""
    parser = _Parser(
        prog="margrave",
        description="Steer a classifier to the errors that you can tolerate, and certify it.",
        epilog="`margrave COMMAND --help` describes the options of a command.",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"margrave {__version__}",
        help="Show the version and exit.",
    )
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    for add_options, summary in (
        (_steer, "Train a committee on a table, steer it to a preference and certify it."),
        (_predict, "Predict the label and the score of each row; rejected rows have no label."),
        (_check, "Check a guarantee on newly labelled rows; exit with 4 if it no longer holds."),
        (_card, "Print the model card in Markdown: members, guarantee and limitations."),
        (_studio, "Steer a classifier by its confusion matrix in a browser."),
        (_data, "List the data sets, describe one, or write one to a file."),
    ):
        name = add_options.__name__.removeprefix("_")
        add_options(commands.add_parser(name, help=summary, description=summary))
    return parser


def _steer(parser: _Parser) -> None:
    text = "A CSV or Parquet file, a folder of Parquet files, or a name that `margrave data` lists."
    parser.add("data", "DATA", text)
    text = (
        "A bound on the confusion matrix, such as 'fp <= 1%%'; required. Repeat it for further "
        "steps: earlier bounds still hold."
    )
    parser.add("--limit", "BOUNDS", text, action="append", required=True)
    text = (
        "What to minimise among the decisions that meet the bounds: 'fewest errors', 'lowest cost "
        "of fp + 20 fn', ...; by default the errors that no bound limits."
    )
    parser.add("--then", "GOAL", text)
    text = "The file for the certified model; required unless --plan is set."
    parser.add("--out", "FILE", text, type=Path)
    text = "Print how the rows would be split for the guarantee and what it costs; train nothing."
    parser.add_argument("--plan", action="store_true", help=text)
    _add_target(parser)
    _add_text_format(parser)
    text = "The confidence of the guarantee; by default %(default)s."
    parser.add("--confidence", "PROBABILITY", text, type=float, default=0.95)
    text = "The fraction of the rows in the certification set, or %(default)s, the default."
    parser.add("--certify", "FRACTION", text, default="auto")
    text = (
        "Keep half of the error probability that is left, so that a later run can certify another "
        "model on the same rows."
    )
    parser.add_argument("--reserve", action="store_true", help=text)
    text = (
        "Use the certification rows up also if the limits are probably not certified, or only with "
        "a useless model; by default the command then stops."
    )
    parser.add_argument("--anyway", action="store_true", help=text)
    _add_group(parser, "rows of one group stay together in the split; 'none' if there are none.")
    text = (
        "The column with the time of each row, as numbers or dates: the latest rows become the "
        "certification set."
    )
    parser.add("--time", "COLUMN", text)
    text = (
        "What rows are that are equal but for an identifier or the like, or nearly: copies of one "
        "observation (group, which stops and asks if they are many; near, which does not) or "
        "independent observations (independent). By default auto: independent if the columns have "
        "so few values that rows are equal by chance, else group."
    )
    parser.add("--duplicates", "KIND", text, default="auto")
    text = "A column to leave out. Repeat it for further columns."
    parser.add("--drop", "COLUMN", text, action="append", default=[])
    text = (
        "The strategies to try, separated by commas: move, reject, retune. By default move "
        "and reject; retune is slow."
    )
    parser.add("--strategies", "NAMES", text)
    text = "The random seed of the split and of the members; by default %(default)s."
    parser.add("--seed", "NUMBER", text, type=int, default=0)
    text = "The number of models to train in parallel; by default as many as there are cores."
    parser.add("--jobs", "NUMBER", text, type=int, default=-1)
    parser.add("--report", "FILE", "The file for an HTML report.", type=Path)
    text = "The file for the dialog, to continue it in Python with Dialog.load."
    parser.add("--dialog", "FILE", text, type=Path)
    _add_cluster(parser)
    text = "Print also the column types, the split, all matrices and the certificate."
    parser.add_argument("--verbose", action="store_true", help=text)
    parser.add_argument("--quiet", action="store_true", help="Print errors only.")


def _predict(parser: _Parser) -> None:
    _add_model(parser)
    text = "A table with the model's columns, or a folder of Parquet files."
    parser.add("new", "NEW", text, type=Path)
    text = (
        "The file for the predictions, or the folder if NEW is one. By default, the predictions "
        "for a table are printed."
    )
    parser.add("--out", "PATH", text, type=Path)
    text = (
        "The columns of NEW to write before the predictions, separated by commas; by default all, "
        "and with '' none."
    )
    parser.add("--keep", "COLUMNS", text)
    _add_text_format(parser)
    _add_cluster(parser)


def _check(parser: _Parser) -> None:
    _add_model(parser)
    text = "A table with labels, or a folder of Parquet files."
    parser.add("labelled", "LABELLED", text, type=Path)
    parser.add("--target", "COLUMN", "The column with the classes; required.", required=True)
    text = (
        "The largest probability of a false alarm, by default %(default)s. If you check often, "
        "divide it among the checks."
    )
    parser.add("--level", "NUMBER", text, type=float, default=0.05)
    _add_group(parser, "one row of each group counts, as in the certificate.")
    _add_text_format(parser)
    _add_json(parser)


def _card(parser: _Parser) -> None:
    _add_model(parser)
    _add_json(parser)


def _studio(parser: _Parser) -> None:
    text = "A CSV or Parquet file, or a name that `margrave data` lists."
    parser.add("data", "DATA", text, nargs="?")
    _add_target(parser)
    _add_text_format(parser)
    text = "The port to listen on. By default 8420, or the next free port."
    parser.add("--port", "NUMBER", text, type=int)
    text = (
        "The address to listen on, by default %(default)s. On another one than this machine's, or "
        "with a token in the environment variable MARGRAVE_TOKEN, each browser is a separate user."
    )
    parser.add("--host", "ADDRESS", text, default="127.0.0.1")
    text = "A host name by which browsers reach the studio through a proxy. Repeat it for others."
    parser.add("--public-host", "NAME", text, action="append", default=[])
    text = (
        "The address or network of a proxy whose X-Forwarded-Proto and X-Forwarded-For are "
        "believed. Repeat it for others."
    )
    parser.add("--trusted-proxy", "ADDRESS", text, action="append", default=[])
    text = (
        "The database: sqlite:///FILE or postgresql://... By default, a file in your data folder."
    )
    parser.add("--store", "URL", text)
    text = "Whether to open the studio in a browser."
    parser.add_argument("--browser", action=BooleanOptionalAction, default=True, help=text)


def _data(parser: _Parser) -> None:
    parser.add("name", "NAME", "The name of a data set.", nargs="?")
    text = "The file for the table; its last column is the target."
    parser.add("--out", "FILE", text, type=Path)
    _add_json(parser)


def _add_model(parser: _Parser) -> None:
    text = "The model file that `margrave steer` or the studio wrote."
    parser.add("model", "MODEL", text, type=Path)


def _add_target(parser: _Parser) -> None:
    parser.add("--target", "COLUMN", "The column with the classes.")
    text = (
        "The positive class, which fp and fn refer to. By default the second of two classes in "
        "sorted order."
    )
    parser.add("--positive", "CLASS", text)


def _add_group(parser: _Parser, meaning: str) -> None:
    parser.add("--group", "COLUMN", f"The column with the groups: {meaning}")


def _add_text_format(parser: _Parser) -> None:
    text = "The encoding of a text file, such as cp1252 (Windows-1252) or utf-16; by default UTF-8."
    parser.add("--encoding", "NAME", text)
    text = (
        "The decimal mark of a text file, a point or a comma. By default a point, and decimal "
        "commas are refused; with an explicit point they are text."
    )
    parser.add("--decimal", "MARK", text)


def _add_cluster(parser: _Parser) -> None:
    text = "The address of a Dask scheduler to use, such as tcp://10.0.0.7:8786."
    parser.add("--cluster", "ADDRESS", text)
    _add_json(parser)


def _add_json(parser: _Parser) -> None:
    text = "Print one JSON object instead of text."
    parser.add_argument("--json", action="store_true", help=text)
