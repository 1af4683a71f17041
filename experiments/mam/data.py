"""The data sets of the study, and their splits.

Classification: the thirteen of Rätsch et al. in their published sizes. Their published splits are
not available; these are drawn. Order: real responses in bins of equal length, after Chu and
Ghahramani.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.preprocessing import StandardScaler

from experiments._parts import Floats, Ints
from margrave import datasets


@dataclass(frozen=True)
class Source:
    """A set of Rätsch et al.

    Attributes
    ----------
    name : str
        Its name in `margrave.datasets`.
    train, test : int
        Published sizes.
    """

    name: str
    train: int
    test: int


RAETSCH = {
    "banana": Source("raetsch_banana", 400, 4900),
    "breast_cancer": Source("raetsch_breast_cancer", 200, 77),
    "diabetis": Source("pima", 468, 300),
    "flare_solar": Source("raetsch_flare_solar", 666, 400),
    "german": Source("raetsch_german", 700, 300),
    "heart": Source("heart_statlog", 170, 100),
    "image": Source("raetsch_image", 1300, 1010),
    "ringnorm": Source("ringnorm", 400, 7000),
    "splice": Source("raetsch_splice", 1000, 2175),
    "thyroid": Source("raetsch_thyroid", 140, 75),
    "titanic": Source("raetsch_titanic", 150, 2051),
    "twonorm": Source("twonorm", 400, 7000),
    "waveform": Source("raetsch_waveform", 400, 4600),
}

ORDINAL = (
    "abalone",
    "auto_mpg",
    "housing",
    "machine_cpu",
    "pyrimidines",
    "stock",
    "triazines",
    "wpbc",
)
_MOST_ROWS = 500
_ROWS = {"abalone": 1000}


@dataclass(frozen=True, eq=False)
class Parts:
    """A data set in two; the features scaled on the first."""

    X_train: Floats
    y_train: Ints
    X_test: Floats
    y_test: Ints


def here() -> tuple[list[str], list[str]]:
    """Titles of both kinds of which there is a file; nothing is downloaded."""
    found = set(datasets.names(available=True))
    raetsch = [title for title, source in RAETSCH.items() if source.name in found]
    return raetsch, [title for title in ORDINAL if title in found]


@cache
def two_classes(title: str) -> tuple[Floats, Ints]:
    """Samples, and 1 for the positive class."""
    data = datasets.load(RAETSCH[title].name)
    labels = np.asarray(data.target) == data.positive
    return np.asarray(data.data, dtype=np.float64), labels.astype(np.int64)


@cache
def responses(title: str) -> tuple[Floats, Floats]:
    """Complete samples, columns of text as one column a value, and real responses."""
    data = datasets.load(title)
    X, y = np.asarray(data.data, dtype=np.float64), np.asarray(data.target, dtype=np.float64)
    complete = ~np.isnan(X).any(axis=1)
    columns = []
    for name, column in zip(data.feature_names, X[complete].T, strict=True):
        n_values = len(data.categories.get(name, ()))
        columns.append(column[:, None] == np.arange(n_values) if n_values else column[:, None])
    return np.hstack(columns).astype(np.float64), y[complete]


def in_bins(y: Floats, n_bins: int) -> Ints:
    """Which of so many bins of equal length, closed on the right, a response is in: 0, 1, …"""
    edges = np.linspace(y.min(), y.max(), n_bins + 1)
    return np.searchsorted(edges[1:-1], y, side="left").astype(np.int64)


def n_training(title: str, n: int) -> int:
    """Half of the samples, at most 500; 1000 of abalone."""
    return _ROWS.get(title, min(n // 2, _MOST_ROWS))


def parts(X: Floats, y: Ints, n_train: int, seed: int) -> Parts:
    """A random split."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    scaler = StandardScaler().fit(X[train])
    return Parts(scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test])


def missing(titles: Iterable[str], wanted: Iterable[str]) -> list[str]:
    """What was wanted and is not there."""
    found = set(titles)
    return [title for title in wanted if title not in found]
