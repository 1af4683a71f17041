"""The command's options and arguments, with their help texts.

This module uses argparse because `margrave --help` should be shown at once: typer, with the
libraries that it loads, takes 0.6 s to show a help text, argparse 0.1 s.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser, BooleanOptionalAction
from pathlib import Path
from typing import Any, NoReturn

from margrave import __version__


class _Parser(ArgumentParser):
    """A parser whose errors are exceptions, and which accepts no abbreviated options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


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
    for name, add_options, summary in (
        ("steer", _steer, "Train a committee on a table, steer it to a preference and certify it."),
        (
            "predict",
            _predict,
            "Predict the label and the score of each row; rejected rows have no label.",
        ),
        (
            "check",
            _check,
            "Check a guarantee on newly labelled rows; exit with 4 if it no longer holds.",
        ),
        ("card", _card, "Print the model card in Markdown: members, guarantee and limitations."),
        ("studio", _studio, "Steer a classifier by its confusion matrix in a browser."),
        ("data", _data, "List the data sets, describe one, or write one to a file."),
    ):
        add_options(commands.add_parser(name, help=summary, description=summary))
    return parser


def _steer(parser: ArgumentParser) -> None:
    parser.add_argument(
        "data",
        metavar="DATA",
        help="A CSV or Parquet file, a folder of Parquet files, or a name that `margrave data` "
        "lists.",
    )
    parser.add_argument(
        "--limit",
        action="append",
        required=True,
        metavar="BOUNDS",
        help="A bound on the confusion matrix, such as 'fp <= 1%%'; required. Repeat it for "
        "further steps: earlier bounds still hold.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="The file for the certified model; required.",
    )
    _add_target(parser)
    _add_text_format(parser)
    parser.add_argument(
        "--confidence",
        type=float,
        default=0.95,
        metavar="PROBABILITY",
        help="The confidence of the guarantee; by default %(default)s.",
    )
    parser.add_argument(
        "--certify",
        default="auto",
        metavar="FRACTION",
        help="The fraction of the rows in the certification set, or %(default)s, the default.",
    )
    parser.add_argument(
        "--group",
        metavar="COLUMN",
        help="The column with the groups: rows of one group stay together in the split.",
    )
    parser.add_argument(
        "--time",
        metavar="COLUMN",
        help="The column with the time of each row, as numbers or dates: the latest rows become "
        "the certification set.",
    )
    parser.add_argument(
        "--drop",
        action="append",
        metavar="COLUMN",
        help="A column to leave out. Repeat it for further columns.",
    )
    parser.add_argument(
        "--strategies",
        metavar="NAMES",
        help="The strategies to try, separated by commas: move, reject, reweight, retune. By "
        "default move and reject; the other two are slow.",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="NUMBER",
        help="The random seed of the split and of the members; by default %(default)s.",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="NUMBER", help="The number of models to train in parallel."
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="The file for an HTML report.")
    parser.add_argument(
        "--dialog",
        type=Path,
        metavar="FILE",
        help="The file for the dialog, to continue it in Python with Dialog.load.",
    )
    _add_cluster(parser)
    _add_json(parser)
    parser.add_argument("--quiet", action="store_true", help="Print errors only.")


def _predict(parser: ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument(
        "new",
        type=Path,
        metavar="NEW",
        help="A table with the model's columns, or a folder of Parquet files.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="The file for the predictions, or the folder if NEW is one. By default, the "
        "predictions for a table are printed.",
    )
    _add_text_format(parser)
    _add_cluster(parser)
    _add_json(parser)


def _check(parser: ArgumentParser) -> None:
    _add_model(parser)
    parser.add_argument(
        "labelled",
        type=Path,
        metavar="LABELLED",
        help="A table with labels, or a folder of Parquet files.",
    )
    parser.add_argument(
        "--target", required=True, metavar="COLUMN", help="The column with the classes; required."
    )
    _add_text_format(parser)


def _card(parser: ArgumentParser) -> None:
    _add_model(parser)


def _studio(parser: ArgumentParser) -> None:
    parser.add_argument(
        "data",
        nargs="?",
        metavar="DATA",
        help="A CSV or Parquet file, or a name that `margrave data` lists.",
    )
    _add_target(parser)
    _add_text_format(parser)
    parser.add_argument(
        "--port",
        type=int,
        metavar="NUMBER",
        help="The port to listen on. By default 8420, or the next free port.",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="The address to listen on, by default %(default)s. Users on other machines need the "
        "token.",
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="The database: sqlite:///FILE or postgresql://... By default, a file in your data "
        "folder.",
    )
    parser.add_argument(
        "--token",
        default=os.environ.get("MARGRAVE_TOKEN") or None,
        metavar="TEXT",
        help="The token that users must enter. By default the value of the environment variable "
        "MARGRAVE_TOKEN, or a random one if one is needed.",
    )
    parser.add_argument(
        "--browser",
        action=BooleanOptionalAction,
        default=True,
        help="Whether to open the studio in a browser.",
    )


def _data(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="The name of a data set.")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="The file for the table; its last column is the target.",
    )


def _add_model(parser: ArgumentParser) -> None:
    parser.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="The model file that `margrave steer` or the studio wrote.",
    )


def _add_target(parser: ArgumentParser) -> None:
    parser.add_argument("--target", metavar="COLUMN", help="The column with the classes.")
    parser.add_argument(
        "--positive",
        metavar="CLASS",
        help="The positive class, which fp and fn refer to. By default the second of two classes "
        "in sorted order.",
    )


def _add_text_format(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--encoding",
        metavar="NAME",
        help="The encoding of a text file, such as cp1252 (Windows-1252) or utf-16; by default "
        "UTF-8.",
    )
    parser.add_argument(
        "--decimal",
        metavar="MARK",
        help="The decimal mark of a text file, a point or a comma. By default a point, and decimal "
        "commas are refused; with an explicit point they are text.",
    )


def _add_cluster(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="The address of a Dask scheduler to use, such as tcp://10.0.0.7:8786.",
    )


def _add_json(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        dest="as_json",
        action="store_true",
        help="Print one JSON object instead of text.",
    )
