"""The waiting times of a dialog, in units of one converged logistic regression.

The default committee is fitted on four fifths of Spambase. The unit is one LogisticRegression fit
on the same samples, standardised. Everything runs with one BLAS thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks._timing import Comparison
from margrave import datasets
from margrave.steer import Dialog

RATES = ("1%", "2%", "5%", "10%")
COMMITTEE: list[str] | None = None  # the default one


def requests(dialog: Dialog) -> list[str]:
    """List limits on each error: one fewer, half, none, and rates."""
    matrix = dialog.history[0].after
    counts = {"fp": matrix.fp, "fn": matrix.fn}
    counted = [f"{cell} <= {to}" for cell, n in counts.items() for to in (n - 1, n // 2, 0)]
    return counted + [f"{cell} <= {rate}" for cell in counts for rate in RATES]


def time_replies(dialog: Dialog, limits: list[str]) -> tuple[list[float], list[float]]:
    """Time the first and the final reply to each limit, in seconds."""
    first, final = [], []
    for limit in limits:
        dialog.goto(0)
        start = perf_counter()
        times = [perf_counter() - start for _ in dialog.replies(limit)]
        first.append(times[0])
        final.append(times[-1])
    return first, final


def unit(dialog: Dialog, repeats: int = 5) -> float:
    """Time the logistic regression, in seconds."""
    X, codes = dialog._data.X.X, dialog._data.codes  # encoded, so standardised
    best = np.inf
    for _ in range(repeats):
        start = perf_counter()
        LogisticRegression(max_iter=1000).fit(X, codes)
        best = min(best, perf_counter() - start)
    return float(best)


def on_spambase(n_rows: int | None = None) -> Iterator[Comparison]:
    """Time first replies, final replies and the first frontier."""
    X, y = datasets.load("spambase", return_X_y=True)
    if n_rows is not None:
        chosen = np.random.default_rng(0).permutation(len(y))[:n_rows]
        X, y = X[chosen], y[chosen]
    with threadpool_limits(1):
        dialog = Dialog.from_data(X, y, committee=COMMITTEE, certify=0.2, random_state=0)
        fit = unit(dialog)
        limits = requests(dialog)[:: 1 if n_rows is None else 5]
        first, final = time_replies(dialog, limits)
        n = f"{len(limits)} requests, Spambase"
        peer = "one LogisticRegression fit"
        yield Comparison(f"first reply, median of {n}", peer, float(np.median(first)), fit, 3)
        slow = float(np.quantile(first, 0.95))
        yield Comparison(f"first reply, 95th percentile of {n}", peer, slow, fit, 10)
        yield Comparison(f"final reply, slowest of {n}", peer, max(final), fit, 60)
        start = perf_counter()
        dialog.frontier().winners()
        yield Comparison("first frontier, Spambase", peer, perf_counter() - start, fit, 20)
