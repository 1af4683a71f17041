"""The timed problem; both interpreters import this module.

The data are synthetic and the members are trees, so it needs only numpy and scikit-learn.
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
    """The size of the timed problem.

    Attributes
    ----------
    n_tune, n_query : int
        Numbers of tuning samples (and of training samples) and queries.
    n_trees, depth : int
        Number of members, and their depth; 0 for no limit.
    repeats, seed : int
        Number of runs, of which the best counts; seed of the data.
    jobs : int
        Number of threads of both libraries.
    """

    n_tune: int
    n_query: int
    n_trees: int
    depth: int
    repeats: int
    seed: int
    jobs: int


@dataclass(frozen=True, eq=False)
class SyntheticData:
    """Synthetic data, and trees fitted on another part of it."""

    trees: list[Any]
    X_tune: NDArray[Any]
    y_tune: NDArray[Any]
    X_query: NDArray[Any]
    y_query: NDArray[Any]


def make_synthetic(size: Size) -> SyntheticData:
    """Make two classes with 20 features, 8 informative, and one tree per bootstrap sample."""
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
    return SyntheticData(trees, X[n : 2 * n], y[n : 2 * n], X[2 * n :], y[2 * n :])


def time_members(data: SyntheticData, repeats: int) -> float:
    """Time the members' own predictions of the queries, in seconds."""

    def predict() -> None:
        for tree in data.trees:
            tree.predict(data.X_query)

    return min(_seconds(predict) for _ in range(repeats))


def predicting(
    model: Any, indexes: list[Any], data: SyntheticData, n: int, repeats: int
) -> dict[str, Any]:
    """Time a fitted model on the first n queries: the best of several runs.

    Parameters
    ----------
    model : classifier
        Fitted.
    indexes : list
        Its indexes of neighbours; the times of their ``kneighbors`` are reported separately.
    data : Made
        The queries.
    n : int
        Number of queries.
    repeats : int
        Number of runs.
    """
    seconds_used = [0.0]
    for index in indexes:
        index.kneighbors = _clocked(index.kneighbors, seconds_used)
    X, y = data.X_query[:n], data.y_query[:n]
    best = {"predict": float("inf")}
    for _ in range(repeats):
        seconds_used[0] = 0.0
        seconds = _seconds(lambda: model.predict(X))
        if seconds < best["predict"]:
            best = {"predict": seconds, "kneighbors": seconds_used[0]}
    return {"queries": len(X), **best, "accuracy": float(np.mean(model.predict(X) == y))}


def _clocked(call: Any, seconds_used: list[float]) -> Any:
    def clocked(*args: Any, **kwargs: Any) -> Any:
        start = perf_counter()
        result = call(*args, **kwargs)
        seconds_used[0] += perf_counter() - start
        return result

    return clocked


def _seconds(job: Any) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start
