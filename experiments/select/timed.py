"""What is timed in both libraries, and how; both interpreters import this.

The data is made, and the members are trees; so it needs numpy and scikit-learn only.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier


@dataclass(frozen=True)
class Size:
    """How much to time.

    Attributes
    ----------
    n_tune, n_query : int
        Tuning samples, also for training, and queries.
    n_trees, depth : int
        The members, and how deep they are; 0 for no limit.
    repeats, seed : int
        The best of so many runs; how the data is made.
    jobs : int
        Threads, for both libraries: what each of them uses for more than one.
    """

    n_tune: int
    n_query: int
    n_trees: int
    depth: int
    repeats: int
    seed: int
    jobs: int


@dataclass(frozen=True, eq=False)
class Made:
    """Made data, and trees that were trained on another part of it."""

    trees: list[Any]
    X_tune: NDArray[Any]
    y_tune: NDArray[Any]
    X_query: NDArray[Any]
    y_query: NDArray[Any]


def made(size: Size) -> Made:
    """Two classes, 20 features of which 8 tell something; a tree a bootstrap sample."""
    n, rng = size.n_tune, np.random.default_rng(size.seed)
    X, y = make_classification(
        2 * n + size.n_query,
        n_features=20,
        n_informative=8,
        flip_y=0.05,
        random_state=size.seed,
    )
    trees = []
    for i in range(size.n_trees):
        drawn = rng.integers(0, n, n)
        tree = DecisionTreeClassifier(max_depth=size.depth or None, random_state=i)
        trees.append(tree.fit(X[drawn], y[drawn]))
    return Made(trees, X[n : 2 * n], y[n : 2 * n], X[2 * n :], y[2 * n :])


def asking(data: Made, repeats: int) -> float:
    """Seconds that the members themselves take to label the queries."""

    def ask() -> None:
        for tree in data.trees:
            tree.predict(data.X_query)

    return min(_seconds(ask) for _ in range(repeats))


def predicting(model: Any, indexes: list[Any], data: Made, n: int, repeats: int) -> dict[str, Any]:
    """Seconds of a fitted model for the first n queries, the best of several runs.

    Parameters
    ----------
    model : classifier
        Fitted.
    indexes : list
        What it finds neighbours with; the seconds of their ``kneighbors`` are told apart.
    data : Made
        The queries.
    n : int
        How many of them to answer.
    repeats : int
        Runs.
    """
    spent = [0.0]
    for index in indexes:
        index.kneighbors = _clocked(index.kneighbors, spent)
    X, y = data.X_query[:n], data.y_query[:n]
    best = {"predict": float("inf")}
    for _ in range(repeats):
        spent[0] = 0.0
        seconds = _seconds(lambda: model.predict(X))
        if seconds < best["predict"]:
            best = {"predict": seconds, "kneighbors": spent[0]}
    return {"queries": len(X), **best, "accuracy": float(np.mean(model.predict(X) == y))}


def _clocked(call: Any, spent: list[float]) -> Any:
    def clocked(*given: Any, **named: Any) -> Any:
        start = perf_counter()
        found = call(*given, **named)
        spent[0] += perf_counter() - start
        return found

    return clocked


def _seconds(job: Any) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start
