"""The data sets of the study, and their splits: build 60 %, certify 20 %, test 20 %."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from experiments._parts import Floats, Ints
from margrave import datasets

LEAST = 300
"""Rows of a data set."""

KNOWN = ("contraceptive_bin", "raetsch_image", "raetsch_splice")
"""Made from rows of segment, splice and contraceptive, which the committee was settled on too."""

TWICE = {"raetsch_german": "german", "raetsch_titanic": "titanic"}
"""The same rows as another set, coded differently."""


@dataclass(frozen=True, eq=False)
class Parts:
    """A data set in three; label 1 is the positive class, 0 the other."""

    X_build: Floats
    y_build: Ints
    X_certify: Floats
    y_certify: Ints
    X_test: Floats
    y_test: Ints


def load(title: str) -> tuple[Floats, Ints]:
    """Samples, and 1 for the positive class."""
    data = datasets.load(title)
    X, labels = np.asarray(data.data, dtype=np.float64), np.asarray(data.target)
    return X, (labels == data.positive).astype(np.int64)


def titles() -> list[str]:
    """The two-class sets at hand that are large enough, large ones first."""
    sizes = {}
    for title in datasets.names(available=True):
        target = np.asarray(datasets.load(title).target)
        if len(target) >= LEAST and len(np.unique(target)) == 2:
            sizes[title] = len(target)
    return sorted(sizes, key=lambda title: (-sizes[title], title))


def positions(y: Ints, seed: int) -> tuple[Ints, Ints, Ints]:
    """Which samples build, certify and test; the classes' shares are kept."""
    rest, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    build, certify = train_test_split(rest, test_size=0.25, stratify=y[rest], random_state=seed)
    return build, certify, test


def parts(title: str, seed: int) -> Parts:
    """One split of a data set."""
    X, y = load(title)
    build, certify, test = positions(y, seed)
    return Parts(X[build], y[build], X[certify], y[certify], X[test], y[test])
