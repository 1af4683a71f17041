"""Martingale boosting and tuning, against scikit-learn's AdaBoost and logistic regression.

Spambase, 40 % to train on and 20 % to tune on, standardised; and synthetic data for the growth with
n and for two jobs. One BLAS thread throughout, so that the work is compared.
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
    """Training and tuning set of the first n_rows rows, or of all: X, y, X_tune, y_tune."""
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
    """False positives, then false negatives: one fewer, half, none."""
    matrix = Confusion.of(y_tune, model.predict(X_tune))
    counts = {"fp": matrix.fp, "fn": matrix.fn}
    return [f"{cell} <= {to}" for cell, n in counts.items() for to in (n - 1, n // 2, 0)]


def tuned(model: Any, wants: list[str], X_tune: Any, y_tune: Any) -> bool:
    """Tune to each preference, and check that it is met."""
    for want in wants:
        if not model.tune(want, X_tune, y_tune).tuning_.met:
            raise RuntimeError(f"'{want}' is not met.")
    return True


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
            bar=1.0,
        )
        wants = requests(program, X_tune, y_tune)
        yield compare(
            f"fit and tune it (root), {len(wants)} requests",
            lambda: [tuned(program.fit(X, y), [want], X_tune, y_tune) for want in wants],
            f"fit it {len(wants)} times",
            lambda: [program.fit(X, y) for _ in wants],
            bar=6.0,
            repeats=3,
        )
        model = TunableLogistic().fit(X, y)
        wants = requests(model, X_tune, y_tune)
        line = LogisticRegression(max_iter=1000)
        yield compare(
            f"tune a TunableLogistic, {len(wants)} requests",
            lambda: tuned(model, wants, X_tune, y_tune),
            f"fit LogisticRegression {len(wants)} times",
            lambda: [line.fit(X, y) for _ in wants],
            bar=5.0,
        )


def at_scale(n: int, d: int = 50) -> Iterator[Comparison]:
    """Two jobs against one, and ten times the samples."""
    X, y = make_classification(n, d, n_informative=20, flip_y=0.05, random_state=0)
    one, two = MartingaleBoostClassifier(), MartingaleBoostClassifier(n_jobs=2)
    with threadpool_limits(1):
        yield compare(
            f"fit a program on {n:,} x {d} with n_jobs=2",
            lambda: two.fit(X, y),
            "n_jobs=1",
            lambda: one.fit(X, y),
            bar=1 / 1.5,
            repeats=3,
        )
        yield compare(
            f"fit a program on {n:,} x {d}",
            lambda: one.fit(X, y),
            f"on {n // 10:,}",
            lambda: one.fit(X[: n // 10], y[: n // 10]),
            bar=11.0,
            repeats=3,
        )
    if not np.array_equal(
        two.predict(X[:1000]), MartingaleBoostClassifier().fit(X, y).predict(X[:1000])
    ):
        raise RuntimeError("Two jobs grow another program than one.")
