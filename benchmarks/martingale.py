"""Martingale boosting and tuning, against scikit-learn's AdaBoost and logistic regression.

Spambase, 40 % for training and 20 % for tuning, standardised; and synthetic data for the growth
with n and for two jobs. Everything runs with one BLAS thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks._timing import Comparison, compare
from margrave import Confusion, datasets
from margrave.martingale import MartingaleBoostClassifier, TunableLogistic


def spambase(n_rows: int | None) -> tuple[Any, ...]:
    """Split `n_rows` rows, or all, into training and tuning sets: X, y, X_tune, y_tune."""
    mail = datasets.load("spambase")
    data, target = mail.data, mail.target
    if n_rows is not None:
        chosen = np.random.default_rng(0).permutation(len(target))[:n_rows]
        data, target = data[chosen], target[chosen]
    X, rest, y, y_rest = train_test_split(
        data, target, train_size=0.4, stratify=target, random_state=0
    )
    X_tune, _, y_tune, _ = train_test_split(
        rest, y_rest, train_size=1 / 3, stratify=y_rest, random_state=0
    )
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_tune), y_tune


def requests(model: Any, X_tune: Any, y_tune: Any) -> list[str]:
    """List limits on false positives, then false negatives: one fewer, half, none."""
    matrix = Confusion.of(y_tune, model.predict(X_tune))
    counts = {"fp": matrix.fp, "fn": matrix.fn}
    return [f"{cell} <= {to}" for cell, n in counts.items() for to in (n - 1, n // 2, 0)]


def tune_all(model: Any, limits: list[str], X_tune: Any, y_tune: Any) -> list[Any]:
    """Tune for each limit, and check that it is met."""
    models = [model.tune(limit, X_tune, y_tune) for limit in limits]
    for limit, tuned in zip(limits, models, strict=True):
        if not tuned.tuning_.met:
            raise RuntimeError(f"'{limit}' is not met.")
    return models


def on_spambase(n_rows: int | None = None) -> Iterator[Comparison]:
    """Fit and tune programs, and tune one logistic regression."""
    X, y, X_tune, y_tune = spambase(n_rows)
    with threadpool_limits(1):
        program = MartingaleBoostClassifier()
        ada = AdaBoostClassifier(LogisticRegression(max_iter=1000), n_estimators=50, random_state=0)
        yield compare(
            "fit martingale boosting, 15 levels, Spambase",
            lambda: program.fit(X, y),
            "AdaBoost with LogisticRegression, 50 rounds",
            lambda: ada.fit(X, y),
            target=1.0,
        )
        limits = requests(program, X_tune, y_tune)
        yield compare(
            f"fit and tune it (quick), {len(limits)} requests",
            lambda: [tune_all(program.fit(X, y), [limit], X_tune, y_tune) for limit in limits],
            f"fit it {len(limits)} times",
            lambda: [program.fit(X, y) for _ in limits],
            target=6.0,
            repeats=3,
        )
        model = TunableLogistic().fit(X, y)
        limits = requests(model, X_tune, y_tune)
        logistic = LogisticRegression(max_iter=1000)
        yield compare(
            f"tune a TunableLogistic, {len(limits)} requests",
            lambda: tune_all(model, limits, X_tune, y_tune),
            f"fit LogisticRegression {len(limits)} times",
            lambda: [logistic.fit(X, y) for _ in limits],
            target=5.0,
        )


def at_scale(n: int, d: int = 50) -> Iterator[Comparison]:
    """Compare two jobs with one, and n samples with n / 10."""
    X, y = make_classification(n, d, n_informative=20, flip_y=0.05, random_state=0)
    one, two = MartingaleBoostClassifier(), MartingaleBoostClassifier(n_jobs=2)
    with threadpool_limits(1):
        yield compare(
            f"fit a program on {n:,} x {d} with n_jobs=2",
            lambda: two.fit(X, y),
            "n_jobs=1",
            lambda: one.fit(X, y),
            target=1 / 1.5,
            repeats=3,
        )
        yield compare(
            f"fit a program on {n:,} x {d}",
            lambda: one.fit(X, y),
            f"on {n // 10:,}",
            lambda: one.fit(X[: n // 10], y[: n // 10]),
            target=11.0,
            repeats=3,
        )
    if not np.array_equal(
        two.predict(X[:1000]), MartingaleBoostClassifier().fit(X, y).predict(X[:1000])
    ):
        raise RuntimeError("Two jobs fitted another program.")
