"""Votes, crucial pairs and the import, against scikit-learn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks._timing import Comparison, compare
from margrave.fuse import VoteClassifier
from margrave.fuse._vote import count_votes, decide
from margrave.pairs import CrucialPairs


class ReadsColumn(ClassifierMixin, BaseEstimator):
    """A member that takes no time: its predictions are a column of X."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        """Learn the classes."""
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the column."""
        return X[:, self.column]


def votes(n: int) -> Iterator[Comparison]:
    """Count hard votes of 11 members, and run the whole ``predict``."""
    rng = np.random.default_rng(0)
    n_members, n_classes = 11, 3
    X = rng.integers(0, n_classes, (n, n_members))
    y = X[:, 0]
    members = [(f"m{j}", ReadsColumn(j)) for j in range(n_members)]
    ours = VoteClassifier(members).fit(X, y)
    theirs = VotingClassifier(members, voting="hard").fit(X, y)
    if not (ours.predict(X[:1000]) == theirs.predict(X[:1000])).all():
        raise RuntimeError("The two votes differ.")
    codes, weights = X.astype(np.int8), np.ones(n_members, dtype=np.int64)

    def their_aggregation() -> NDArray[Any]:  # what VotingClassifier.predict does with the votes
        return np.apply_along_axis(lambda row: np.argmax(np.bincount(row)), axis=1, arr=X)

    yield compare(
        f"add up {n:,} x {n_members} votes",
        lambda: decide(count_votes(codes, weights, n_classes), n_members),
        "VotingClassifier's aggregation",
        their_aggregation,
        target=1 / 20,
        repeats=2,
    )
    yield compare(
        f"predict from {n:,} x {n_members} labels",
        lambda: ours.predict(X),
        "VotingClassifier.predict",
        lambda: theirs.predict(X),
        target=1 / 20,
        repeats=2,
    )


class ReadsTable(ClassifierMixin, BaseEstimator):
    """A member that takes no time: its probabilities are a table."""

    def __init__(self, table: NDArray[np.float64]) -> None:
        self.table = table
        self.classes_ = np.arange(table.shape[1])

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the most probable class."""
        classes: NDArray[Any] = self.table[: len(X)].argmax(axis=1)
        return classes

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the first rows of the table."""
        return self.table[: len(X)]


def averages(n: int) -> Iterator[Comparison]:
    """Average the probabilities of 11 members, and run the whole ``predict_proba``."""
    rng = np.random.default_rng(0)
    n_members = 11
    for n_classes in (2, 3):
        tables = [rng.dirichlet(np.ones(n_classes), n) for _ in range(n_members)]
        X, y = np.empty((n, 1)), np.arange(n) % n_classes
        committee = VoteClassifier([ReadsTable(table) for table in tables], "average", prefit=True)
        committee.fit(X, y)
        if not np.allclose(committee.predict_proba(X), np.mean(tables, axis=0), 0, 1e-14):
            raise RuntimeError("The two averages differ.")
        yield compare(
            f"average {n:,} x {n_members} probabilities of {n_classes} classes",
            partial(committee.predict_proba, X),
            "np.mean",
            partial(np.mean, tables, axis=0),
            target=1.2,
        )
    X = rng.normal(size=(n, 10))
    y = (X[:, 0] > rng.normal(size=n)).astype(np.int64)
    parts = np.array_split(np.arange(n), n_members)
    members = [
        (f"m{j}", FrozenEstimator(LogisticRegression().fit(X[part[:1000]], y[part[:1000]])))
        for j, part in enumerate(parts)
    ]
    ours = VoteClassifier(members, "average").fit(X, y)
    theirs = VotingClassifier(members, voting="soft").fit(X, y)
    yield compare(
        f"average of {n_members} logistic regressions, {n:,} samples",
        lambda: ours.predict_proba(X),
        "VotingClassifier.predict_proba",
        lambda: theirs.predict_proba(X),
        target=1.2,
    )


def _from_scratch(job: Callable[[CrucialPairs], Any], scores: NDArray[Any], y: NDArray[Any]) -> Any:
    return job(CrucialPairs.of(scores, y))


def crucial_pairs(n: int) -> Iterator[Comparison]:
    """Compute each pair statistic from unsorted scores, against one ``roc_auc_score``."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    scores = np.clip(0.3 * y + rng.normal(0, 0.3, n), -1, 1)
    if not np.isclose(CrucialPairs.of(scores, y).auc, roc_auc_score(y, scores), atol=1e-12):
        raise RuntimeError("The two AUCs differ.")
    jobs: dict[str, Callable[[CrucialPairs], Any]] = {
        "AUC": lambda pairs: pairs.auc,
        "smallest and mean margin": lambda pairs: (pairs.rank_margin, pairs.mean_margin),
        "margin cdf at 5 points": lambda pairs: pairs.cdf([-0.5, -0.1, 0.0, 0.1, 0.5]),
        "margin median, exact": lambda pairs: pairs.quantile(0.5),
        "hinge sum with counts": lambda pairs: pairs.hinge(0.1),
    }
    for name, job in jobs.items():
        yield compare(
            f"{name}, {n:,} samples",
            partial(_from_scratch, job, scores, y),
            "roc_auc_score",
            lambda: roc_auc_score(y, scores),
            target=1.5,
        )


_OPTIONAL = ("pandas", "matplotlib", "xgboost", "lightgbm", "catboost", "skops", "rich")


def extra_import_seconds(repeats: int = 7) -> float:
    """Time ``import margrave`` after ``import sklearn.ensemble``: median of new processes."""
    code = (
        "import sklearn.ensemble, time, sys; before = set(sys.modules); "
        "start = time.perf_counter(); import margrave; print(time.perf_counter() - start); "
        f"new = [m for m in {_OPTIONAL!r} if m in sys.modules and m not in before]; "
        "sys.exit(f'loaded {new}' if new else 0)"
    )
    seconds = []
    for _ in range(repeats):
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        seconds.append(float(done.stdout))
    return float(np.median(seconds))
