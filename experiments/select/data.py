"""The data sets, the members, and the tables of probabilities that both libraries read.

Features and probabilities are first rounded to numbers that are exact in a few bits, so that both
libraries read the same numbers and a fixture of them is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from experiments._parts import Floats, Ints, split
from margrave import datasets

TITLES = ("pima", "housing_bin", "spambase", "segment", "abalone", "contraceptive")
RINGS = (8, 10)
"""The usual three classes of abalone: up to 8 rings, 9 or 10, more."""
K = 7
N_TREES = 5
DEPTH = 4
PARTS = 4096
"""Probabilities are integer numbers of parts, with this sum."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Tuning samples and queries, and the probabilities of L members.

    Attributes
    ----------
    X_tune, y_tune, X_query, y_query : ndarray
        Samples, and classes 0, 1, ….
    parts_tune, parts_query : ndarray of uint16, shape (n, L, C)
        The members' probabilities, in parts.
    """

    X_tune: Floats
    y_tune: Ints
    X_query: Floats
    y_query: Ints
    parts_tune: NDArray[np.uint16]
    parts_query: NDArray[np.uint16]

    @property
    def proba_tune(self) -> Floats:
        """Probabilities at the tuning samples."""
        return self.parts_tune / PARTS

    @property
    def proba_query(self) -> Floats:
        """Probabilities at the queries."""
        return self.parts_query / PARTS

    @property
    def predictions(self) -> Ints:
        """The class that each member predicts for each query, shape (q, L)."""
        return np.asarray(self.parts_query.argmax(axis=2))

    def first(self, n: int) -> Tables:
        """Return the first n tuning samples and queries."""
        return Tables(
            self.X_tune[:n],
            self.y_tune[:n],
            self.X_query[:n],
            self.y_query[:n],
            self.parts_tune[:n],
            self.parts_query[:n],
        )


def in_parts(proba: Floats) -> NDArray[np.uint16]:
    """Round probabilities to integer parts with the right sum, by the largest remainders."""
    exact = proba * PARTS
    parts = np.floor(exact)
    left = PARTS - parts.sum(axis=-1, keepdims=True)
    place = np.argsort(np.argsort(parts - exact, axis=-1, kind="stable"), axis=-1)
    return np.asarray(parts + (place < left), dtype=np.uint16)


def members(seed: int) -> list[ClassifierMixin]:
    """Make members other than trees, so that few samples have equal probabilities."""
    return [
        GaussianNB(),
        LogisticRegression(max_iter=2000),
        LinearDiscriminantAnalysis(),
        KNeighborsClassifier(5),
        KNeighborsClassifier(15, weights="distance"),
        MLPClassifier((10,), alpha=0.1, max_iter=2000, random_state=seed),
    ]


def fit_members(X: Floats, y: Ints, seed: int) -> list[ClassifierMixin]:
    """Fit eleven members: bagged shallow trees, and the others."""
    rng, fitted = np.random.default_rng(seed), []
    for i in range(N_TREES):
        drawn = _bootstrap(y, rng)
        tree = DecisionTreeClassifier(max_depth=DEPTH, random_state=i)
        fitted.append(tree.fit(X[drawn], y[drawn]))
    return fitted + [member.fit(X, y) for member in members(seed)]


def _bootstrap(y: Ints, rng: np.random.Generator) -> Ints:
    """Draw positions until every class is among them."""
    while True:
        drawn = rng.integers(0, len(y), len(y))
        if len(np.unique(y[drawn])) == len(np.unique(y)):
            return drawn


def load(title: str) -> tuple[Floats, Ints]:
    """Load the numeric columns, and the classes 0, 1, …."""
    data = datasets.load(title)
    numbers = [name not in data.categories for name in data.feature_names]
    y = np.asarray(data.target)
    if title == "abalone":
        y = np.digitize(y, RINGS, right=True)
    X = np.asarray(data.data, dtype=np.float64)[:, numbers]
    return X, np.unique(y, return_inverse=True)[1]


def make_tables(title: str, seed: int) -> Tables:
    """Split a data set into thirds, fit members on one, and score the others."""
    X, y = load(title)
    parts = split(X, y, seed, (1 / 3, 1 / 3, 1 / 3))
    X_train, X_tune, X_query = (
        X.astype(np.float16).astype(np.float64) for X in (parts.X_train, parts.X_tune, parts.X_test)
    )
    pool = fit_members(X_train, parts.y_train, seed)
    scored = [
        in_parts(np.stack([member.predict_proba(X) for member in pool], axis=1))
        for X in (X_tune, X_query)
    ]
    return Tables(X_tune, parts.y_tune, X_query, parts.y_test, scored[0], scored[1])
