"""The start of the command, and its predictions against a script with the same model.

Every job runs in a process of its own, as for users.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks._timing import Comparison, compare
from margrave import datasets
from margrave.steer import Dialog

COMMITTEE: list[str] | None = None  # the default one
MAX_START = 0.3  # seconds until a help text is shown
SCRIPT = """
import sys
import pandas as pd
from margrave.steer import SteeredClassifier

model, new, out = sys.argv[1:]
labels = SteeredClassifier.load(model).predict(pd.read_csv(new))
pd.DataFrame({"label": labels}).to_csv(out, index=False)
"""


def python(*arguments: str) -> None:
    """Run Python, and wait for its end."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def starts() -> Iterator[Comparison]:
    """Print the version and the help texts, against an interpreter that does nothing."""
    for arguments in (("--version",), ("--help",), ("steer", "--help")):
        what = f"margrave {' '.join(arguments)}"
        against_python = compare(
            what,
            partial(python, "-m", "margrave", *arguments),
            'python -c ""',
            partial(python, "-c", ""),
            target=6,
        )
        yield against_python
        yield Comparison(f"{what}, seconds", f"{MAX_START} s", against_python.ours, MAX_START, 1.0)


def predictions(n_rows: int | None = None) -> Iterator[Comparison]:
    """Predict with a steered model, for `n_rows` rows of Spambase or all."""
    bunch = datasets.load("spambase", as_frame=True)
    frame = bunch.frame if n_rows is None else bunch.frame.sample(n_rows, random_state=0)
    X, y = frame.drop(columns="target"), frame["target"]
    dialog = Dialog.from_data(X, y, committee=COMMITTEE, certify=0.2, random_state=0)
    dialog.prefer("fp <= 5%", strategies=["move"])
    with TemporaryDirectory() as folder:
        model, new, out = (str(Path(folder, name)) for name in ("model", "new.csv", "out.csv"))
        dialog.model.save(model)
        X.to_csv(new, index=False)
        yield compare(
            f"margrave predict, {len(X):,} rows",
            partial(python, "-m", "margrave", "predict", model, new, "--out", out),
            "load, read_csv, predict and to_csv in a script",
            partial(python, "-c", SCRIPT, model, new, out),
            target=1.5,
        )
