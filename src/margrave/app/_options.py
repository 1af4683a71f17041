"""The command's options and arguments with their help texts, and checks of their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from margrave.confusion import Preference, PreferenceError
from margrave.scale._steer import check_strategies

Model = Annotated[
    Path, typer.Argument(help="The model file that `margrave steer` or the studio wrote.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="The address of a Dask scheduler to use, such as tcp://10.0.0.7:8786."),
]

# The options of `margrave steer`.
Data = Annotated[
    str,
    typer.Argument(
        help="A CSV or Parquet file, a folder of Parquet files, or a name that `margrave data` "
        "lists."
    ),
]
Limit = Annotated[
    list[str],
    typer.Option(
        help="A bound on the confusion matrix, such as 'fp <= 1%'. Repeat it for further steps: "
        "earlier bounds still hold."
    ),
]
Out = Annotated[Path, typer.Option(help="The file for the certified model.")]
Target = Annotated[str | None, typer.Option(help="The column with the classes.")]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The positive class, which fp and fn refer to. By default the second of two classes "
        "in sorted order."
    ),
]
Confidence = Annotated[float, typer.Option(help="The confidence of the guarantee.")]
Certify = Annotated[
    str, typer.Option(help="The fraction of the rows in the certification set, or auto.")
]
Group = Annotated[
    str | None,
    typer.Option(help="The column with the groups: rows of one group stay together in the split."),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="The column with the time of each row, as numbers or dates: the latest rows become "
        "the certification set."
    ),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="A column to leave out. Repeat it for further columns.")
]
Strategies = Annotated[
    str | None,
    typer.Option(
        help="The strategies to try, separated by commas: move, reject, reweight, retune. By "
        "default move and reject; the other two are slow."
    ),
]
Seed = Annotated[int, typer.Option(help="The random seed of the split and of the members.")]
Jobs = Annotated[int | None, typer.Option(help="The number of models to train in parallel.")]
Report = Annotated[Path | None, typer.Option(help="The file for an HTML report.")]
Saved = Annotated[
    Path | None,
    typer.Option(help="The file for the dialog, to continue it in Python with Dialog.load."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors only.")]


def check_folder_options(options: dict[str, Any], strategies: list[str] | None) -> None:
    """Raise an error if an option needs all rows in memory."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(
                f"{option} needs all rows in memory, but DATA is a folder. Leave out {option}, or "
                "use a single file."
            )
    check_strategies(strategies, "--strategies")


def read_fraction(text: str) -> str | float:
    """Parse the value of --certify."""
    if text == "auto":
        return text
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        raise ValueError(f"--certify must be 'auto' or a fraction between 0 and 1; got {text!r}.")
    return fraction


def read_limit(text: str) -> Preference:
    """Parse the preference that --limit gives."""
    try:
        return Preference(text)
    except PreferenceError as error:
        raise ValueError(f"--limit {text!r}: {error}") from error
