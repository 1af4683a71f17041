"""The time of training a committee: ``python -m benchmarks.training [FOLDER]``.

Both sides of a ratio run in turns with two jobs. scikit-learn's `StackingClassifier` gets the same
members, folds and rows; its first training starts joblib's processes, which later ones use again.
The peer of a large table is one `HistGradientBoostingClassifier` and one `ExtraTreesClassifier` of
300 trees on all its rows. The first matrix in the studio counts from the request to train, and so
includes reading the table.

A large table is tuned on one of five folds. With a folder of files of KEEL (magic.dat, letter.dat,
penbased.dat, satimage.dat: numbers separated by commas, the class last), the script trains on three
quarters of each table with one fold and with all of them, and compares the AUC on the last quarter.
It exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    StackingClassifier,
)
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks._timing import Comparison, compare
from benchmarks.studio import studio
from margrave import datasets
from margrave.steer import Dialog, Progress, _split
from margrave.steer._default_committee import default_committee
from margrave.table import TableEncoder

JOBS = 2
LARGE_ROWS, LARGE_COLUMNS = 200_000, 30
AUC_LOSS = 0.002
SPLITS = 3
POSITIVE = {
    "magic": {"g"},
    "letter": set("ABCDEFGHIJKLM"),
    "penbased": set("02468"),
    "satimage": set("123"),
}
"""The classes of each table that make up the positive one."""

Table = tuple[NDArray[np.float64], NDArray[Any]]


class FirstMatrix:
    """The seconds until the first provisional matrix.

    Attributes
    ----------
    seconds : float
        The shortest time of all trainings.
    """

    def __init__(self) -> None:
        self.seconds = float("inf")

    def train(self, X: Any, y: Any) -> None:
        """Train the default committee without a certification set, as the peers do."""
        start = perf_counter()
        first: list[float] = []

        def report(progress: Progress) -> None:
            if progress.confusion is not None and not first:
                first.append(perf_counter() - start)

        Dialog.from_data(X, y, certify=None, n_jobs=JOBS, random_state=0, callback=report)
        self.seconds = min(self.seconds, *first)


def beside_stacking(n_rows: int | None = None, repeats: int = 3) -> Iterator[Comparison]:
    """Compare the committee on Spambase with scikit-learn's stacking of the same members."""
    frame = datasets.load("spambase", as_frame=True).frame
    frame = frame if n_rows is None else frame.sample(n_rows, random_state=0)
    X, y = frame.drop(columns="target").to_numpy(), frame["target"].to_numpy()
    members = default_committee(len(y) * 4 // 5, random_state=0)

    def stack() -> None:
        encoded = TableEncoder().fit_transform(X)
        StackingClassifier(members, cv=5, n_jobs=JOBS).fit(encoded, y)

    peer = "StackingClassifier, same members and folds"
    first = FirstMatrix()
    for what, times in (("first training of a process", 1), ("later trainings", repeats)):
        yield compare(
            f"committee, Spambase, {what}",
            lambda: first.train(X, y),
            peer,
            stack,
            target=1.0,
            repeats=times,
        )


def in_the_studio() -> Iterator[Comparison]:
    """Time the first matrix of Spambase in a running studio."""
    with TemporaryDirectory() as folder, studio("pima", folder) as (client, _, _):
        table = client.post("/api/tables/bundled", json={"name": "spambase"}).json()["id"]
        start = perf_counter()
        begun = client.post("/api/dialogs", json={"table": table, "target": "target"}).json()
        with client.stream("GET", f"/api/jobs/{begun['job']['id']}/events") as events:
            for line in events.iter_lines():
                if line.startswith("data: "):
                    progress = json.loads(line.removeprefix("data: "))["progress"]
                    if progress is not None and progress["provisional"] is not None:
                        break
        yield Comparison(
            "first matrix, Spambase in the studio", "one second", perf_counter() - start, 1.0, 3.0
        )


def on_a_large_table(n: int = LARGE_ROWS, repeats: int = 1) -> Iterator[Comparison]:
    """Time the committee and its first matrix on a large synthetic table."""
    X, y = make_classification(
        n, LARGE_COLUMNS, n_informative=15, n_redundant=5, flip_y=0.1, class_sep=0.8, random_state=0
    )

    def fit_two() -> None:
        HistGradientBoostingClassifier(random_state=0).fit(X, y)
        ExtraTreesClassifier(300, n_jobs=JOBS, random_state=0).fit(X, y)

    first, size = FirstMatrix(), f"{n:,} x {LARGE_COLUMNS}"
    yield compare(
        f"committee, {size}",
        lambda: first.train(X, y),
        "HistGradientBoosting and ExtraTrees(300)",
        fit_two,
        target=3.0,
        repeats=repeats,
    )
    yield Comparison(f"first matrix, {size}", "one second", first.seconds, 1.0, 10.0)


def read_table(path: Path) -> Table:
    """Read a file of KEEL; its classes become two."""
    rows = [line.split(",") for line in path.read_text().splitlines() if line[:1] not in "@"]
    positive = POSITIVE[path.stem]
    X = np.array([row[:-1] for row in rows], dtype=np.float64)
    return X, np.array([row[-1].strip() in positive for row in rows])


@contextmanager
def large_from(n: int) -> Iterator[None]:
    """Let a table be large from so many rows on, whatever its classes."""
    before = _split.LARGE, _split.LARGE_CLASS
    _split.LARGE, _split.LARGE_CLASS = n, 0
    try:
        yield
    finally:
        _split.LARGE, _split.LARGE_CLASS = before


def auc_losses(table: Table, n_splits: int = SPLITS) -> list[float]:
    """Return for each split how much AUC one fold loses against five."""
    losses = []
    for seed in range(n_splits):
        X, X_new, y, y_new = train_test_split(
            *table, test_size=0.25, stratify=table[1], random_state=seed
        )
        areas = []
        for large in (len(y) + 1, 0):
            with large_from(large):
                dialog = Dialog.from_data(X, y, certify=None, n_jobs=JOBS, random_state=seed)
            areas.append(roc_auc_score(y_new, dialog.model.decision_function(X_new)))
        losses.append(areas[0] - areas[1])
    return losses


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each comparison."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, help="files of KEEL")
    options = parser.parse_args(arguments)
    print("| job | ours (s) | peer (s) | against | ours / peer | target | met |")
    print("|---|---|---|---|---|---|---|")
    met = True
    for group in (in_the_studio(), beside_stacking(), on_a_large_table()):
        for one in group:
            met = met and one.met
            print(
                f"| {one.what} | {one.ours:.2f} | {one.theirs:.2f} | {one.peer} | {one.ratio:.2f} "
                f"| {one.target:g} | {'yes' if one.met else 'NO'} |",
                flush=True,
            )
    if options.folder is None:
        print("\nThe loss in AUC needs a folder with tables; none was passed.")
        return int(not met)
    print("\n| table | rows | mean loss in AUC of one fold | largest | target | met |")
    print("|---|---|---|---|---|---|")
    for name in POSITIVE:
        table = read_table(options.folder / f"{name}.dat")
        losses = auc_losses(table)
        below = float(np.mean(losses)) < AUC_LOSS
        met = met and below
        print(
            f"| {name} | {len(table[1]):,} | {np.mean(losses):.5f} | {max(losses):.5f} "
            f"| {AUC_LOSS} | {'yes' if below else 'NO'} |",
            flush=True,
        )
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
