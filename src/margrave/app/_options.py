"""The options of the command, and what is refused of them before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from margrave.scale._steer import check_strategies

Model = Annotated[Path, typer.Argument(help="A model that `margrave steer` or the studio wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on the standard output.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler that does the work, as tcp://10.0.0.7:8786."),
]

# The options of `margrave steer`.
Data = Annotated[
    str,
    typer.Argument(
        help="A CSV or Parquet file, a folder of Parquet files, or a name in `margrave data`."
    ),
]
Limit = Annotated[
    list[str], typer.Option(help="What you can afford, as 'fp <= 1%'; again for a further step.")
]
Out = Annotated[Path, typer.Option(help="Where the certified model goes.")]
Target = Annotated[str | None, typer.Option(help="The column with the classes.")]
Positive = Annotated[
    str | None,
    typer.Option(help="The class that fp and fn speak of; by default the second of two."),
]
Confidence = Annotated[float, typer.Option(help="Of the promise.")]
Certify = Annotated[str, typer.Option(help="The share of rows set aside to certify, or auto.")]
Group = Annotated[str | None, typer.Option(help="A column: which rows belong together.")]
Time = Annotated[str | None, typer.Option(help="A column: when rows came, as numbers or dates.")]
Drop = Annotated[list[str] | None, typer.Option(help="A column that is not used; again for more.")]
Strategies = Annotated[
    str | None, typer.Option(help="With commas, among move,reject,reweight,select,retune.")
]
Seed = Annotated[int, typer.Option(help="For the parts and the members.")]
Jobs = Annotated[int | None, typer.Option(help="Models trained at a time.")]
Report = Annotated[Path | None, typer.Option(help="Where an HTML page about all of it goes.")]
Saved = Annotated[Path | None, typer.Option(help="Where the dialog goes, to go on with it.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show nothing but errors.")]


def check_folder_options(given: dict[str, Any], strategies: list[str] | None) -> None:
    """Refuse options that need all rows in memory."""
    for option, value in given.items():
        if value is not None:
            raise ValueError(
                f"{option} needs DATA to be a single file, which is read into memory; got a folder."
            )
    check_strategies(strategies, "--strategies")


def read_share(text: str) -> str | float:
    """The share that --certify names."""
    if text == "auto":
        return text
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ValueError(f"--certify needs 'auto' or a share between 0 and 1; got {text!r}.")
    return share
