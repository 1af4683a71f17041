"""Maximal average margin: kernel sums, the classifier and the ranker against their peers."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from benchmarks._timing import Comparison, compare
from margrave.mam import MAMClassifier, MAMRanker, RandomFeatures, kernel_sum

N_FEATURES = 16
N_COMPONENTS = 1_000


def sums(n: int = 20_000) -> Iterator[Comparison]:
    """Sums over n samples at n / 2 places, their error, and the memory of a large one."""
    rng = np.random.default_rng(0)
    shapes = (n, N_FEATURES), (n // 2, N_FEATURES), (n,)
    drawn = [rng.normal(size=shape) for shape in shapes]
    for dtype, target in ((np.float64, 1 / 2), (np.float32, 1 / 5)):
        X, Z, a = (values.astype(dtype) for values in drawn)
        yield compare(
            f"kernel_sum, RBF, {dtype.__name__}, {n:,} samples at {n // 2:,} places",
            partial(kernel_sum, Z, X, a),
            "rbf_kernel(Z, X) @ a",
            partial(_by_matrix, Z, X, a),
            target=target,
        )
    X, Z, a = (values.astype(np.float32) for values in drawn)
    some = slice(None, 1_000)
    exact = rbf_kernel(Z[some].astype(float), X.astype(float)) @ a.astype(float)
    error = np.linalg.norm(kernel_sum(Z[some], X, a) - exact) / np.linalg.norm(exact)
    yield Comparison("relative error of float32", "1", float(error), 1.0, target=1e-5)
    many = rng.normal(size=(5 * n, N_FEATURES)).astype(np.float32)
    tracemalloc.start()
    kernel_sum(many, many, np.ones(5 * n))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    what = f"extra memory (MB), {5 * n:,} samples at as many places"
    yield Comparison(what, "256 MB", peak / 1e6, 256.0, target=1.0)


def _by_matrix(Z: NDArray[Any], X: NDArray[Any], a: NDArray[Any]) -> NDArray[Any]:
    """Compute the same sums from the whole kernel matrix."""
    sums: NDArray[Any] = rbf_kernel(Z, X) @ a
    return sums


def leave_one_out(n: int = 20_000) -> Iterator[Comparison]:
    """Fifteen widths by exact leave-one-out and predictions, against one SVM of one width."""
    X, y = make_classification(n, N_FEATURES, n_informative=8, flip_y=0.05, random_state=0)

    def theirs() -> NDArray[np.int64]:
        predictions: NDArray[np.int64] = SVC(kernel="rbf").fit(X, y).predict(X)
        return predictions

    yield compare(
        f"MAM, 15 widths by leave-one-out, and predict, {n:,} x {N_FEATURES}",
        lambda: MAMClassifier().fit(X, y).predict(X),
        "one SVC(kernel='rbf'), fit and predict",
        theirs,
        target=1.0,
        repeats=1,
    )


def random_features(n: int = 1_000_000) -> Iterator[Comparison]:
    """A million samples with random features: growth, and SGD on the same features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    model = MAMClassifier(n_components=N_COMPONENTS, gamma=0.05, random_state=0)
    for rows in (n // 10, n):
        yield compare(
            f"MAM, {N_COMPONENTS:,} random features, {rows:,} x 20",
            partial(model.fit, X[:rows], y[:rows]),
            f"{rows // 10:,} samples",
            partial(model.fit, X[: rows // 10], y[: rows // 10]),
            target=11.0,
            repeats=2,
        )
    some, labels = X[: n // 10], y[: n // 10]
    yield compare(
        f"MAM, {N_COMPONENTS:,} random features, {n // 10:,} x 20, float64",
        partial(model.fit, some.astype(np.float64), labels),
        "float32",
        partial(model.fit, some, labels),
        target=4.0,
        repeats=2,
    )
    features = RandomFeatures.draw("rbf", 0.05, X.mean(axis=0), N_COMPONENTS, 0).transform(X)
    yield compare(
        f"MAM with its random features, {n:,} x 20",
        lambda: model.fit(X, y),
        "SGDClassifier.fit on the features",
        lambda: SGDClassifier(random_state=0).fit(features, y),
        target=3.0,
        repeats=1,
    )


def ranker(n: int = 1_000_000) -> Iterator[Comparison]:
    """The linear ranker against what it cannot do without: one sort and one pass."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    y = X[:, 0] + rng.normal(size=n)

    def least() -> NDArray[np.float64]:
        np.argsort(y)
        product: NDArray[np.float64] = X.T @ y
        return product

    yield compare(
        f"MAMRanker, linear, {n:,} x 20",
        lambda: MAMRanker("linear").fit(X, y),
        "np.argsort(y) and X.T @ y",
        least,
        target=2.0,
    )
