"""The data sets of the study and their splits: training 60 %, certification 20 %, test 20 %."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from experiments._parts import Floats, Ints
from margrave import datasets

MIN_ROWS = 300
"""Smallest number of rows of a data set."""

MIN_DISTINCT = 0.9
"""Above this fraction of distinct rows, repeated ones are copies; below, equal by chance."""

NOT_NEW = ("contraceptive_bin", "raetsch_image", "raetsch_splice")
"""Made from rows of contraceptive, segment and splice, on which the committee was chosen."""

DUPLICATES = {"raetsch_german": "german", "raetsch_titanic": "titanic"}
"""Data sets with the same rows as another one, coded differently."""


@dataclass(frozen=True, eq=False)
class Split:
    """A data set in three parts; label 1 is the positive class, 0 the other."""

    X_train: Floats
    y_train: Ints
    X_certify: Floats
    y_certify: Ints
    X_test: Floats
    y_test: Ints


def load(title: str) -> tuple[Floats, Ints]:
    """Load the samples of a data set without copies, and labels that are 1 for its positive class.

    A certificate needs samples that are not in the training set.
    """
    data = datasets.load(title)
    X, labels = np.asarray(data.data, dtype=np.float64), np.asarray(data.target)
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    if len(first) >= MIN_DISTINCT * len(X):
        X, labels = X[first], labels[first]
    return X, (labels == data.positive).astype(np.int64)


def available_titles() -> list[str]:
    """List the available two-class data sets that are large enough, the largest first."""
    sizes = {}
    for title in datasets.names(available=True):
        target = np.asarray(datasets.load(title).target)
        if len(target) >= MIN_ROWS and len(np.unique(target)) == 2:
            sizes[title] = len(target)
    return sorted(sizes, key=lambda title: (-sizes[title], title))


def split_positions(y: Ints, seed: int) -> tuple[Ints, Ints, Ints]:
    """Draw positions for training, certification and test, stratified by class."""
    rest, test = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    train, certify = train_test_split(rest, test_size=0.25, stratify=y[rest], random_state=seed)
    return train, certify, test


def load_split(title: str, seed: int) -> Split:
    """Load one split of a data set."""
    X, y = load(title)
    train, certify, test = split_positions(y, seed)
    return Split(X[train], y[train], X[certify], y[certify], X[test], y[test])
