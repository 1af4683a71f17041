"""Rank-margin weights, against the program of Marrocco et al. and a logistic regression."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from benchmarks._timing import Comparison, compare
from margrave.fuse import rank_margin_weights

Floats = NDArray[np.float64]
N_MEMBERS = 7


def scores(n: int) -> tuple[Floats, NDArray[np.int64]]:
    """Make scores of seven members, from poor to good, with correlated errors."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    signal = (2 * y - 1)[:, None] * np.linspace(0.3, 1.2, N_MEMBERS)
    noise = 0.7 * rng.normal(size=(n, 1)) + rng.normal(size=(n, N_MEMBERS))
    return np.tanh((signal + noise) / 2), y


def all_pairs_margin(F: Floats, y: NDArray[np.int64]) -> float:
    """Solve the program of Marrocco et al. (2010) with Σw = 1 and a row for every pair."""
    margins = (F[y == 1][:, None] - F[y == 0][None]).reshape(-1, F.shape[1])
    rows = np.column_stack([-margins, np.ones(len(margins))])
    solved = linprog(
        [0.0] * F.shape[1] + [-1.0],
        A_ub=rows,
        b_ub=np.zeros(len(rows)),
        A_eq=[[1.0] * F.shape[1] + [0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * F.shape[1] + [(None, None)],
        method="highs",
    )
    return float(-solved.fun)


def all_pairs(n: int) -> Iterator[Comparison]:
    """Compare cutting planes, two rows a round, with all pairs at once: the same optimum."""
    F, y = scores(n)
    ours = rank_margin_weights(F, y, tol=1e-9).rho
    theirs = []
    yield compare(
        f"rank margin, nu=0, {n:,} x {N_MEMBERS}",
        lambda: rank_margin_weights(F, y, tol=1e-9),
        "all pairs in HiGHS",
        lambda: theirs.append(all_pairs_margin(F, y)),
        target=1 / 300,
        repeats=1,
    )
    if abs(ours - theirs[0]) > 1e-8:
        raise RuntimeError(f"The two optima differ: {ours} and {theirs[0]}.")


def large(n: int) -> Iterator[Comparison]:
    """Compare with a logistic regression on the same scores; measure growth and memory."""
    F, y = scores(n)

    def soft(F: Floats, y: NDArray[np.int64]) -> float:
        gap = rank_margin_weights(F, y, 0.05, tol=1e-3).gap
        if gap > 1e-3:
            raise RuntimeError(f"The gap is {gap}.")
        return gap

    for what, job, target in (
        ("nu=0", lambda: rank_margin_weights(F, y), 1.0),
        ("nu=0.05, gap 1e-3", lambda: soft(F, y), 5.0),
    ):
        yield compare(
            f"rank margin, {what}, {n:,} x {N_MEMBERS}",
            job,
            "LogisticRegression.fit",
            lambda: LogisticRegression().fit(F, y),
            target,
            repeats=3,
        )
    tenth, y_tenth = scores(n // 10)
    yield compare(
        f"rank margin, nu=0.05, {n:,} x {N_MEMBERS}",
        lambda: soft(F, y),
        f"{n // 10:,} samples",
        lambda: soft(tenth, y_tenth),
        target=13.0,
        repeats=3,
    )
    for nu in (0.0, 0.05):
        tracemalloc.start()
        rank_margin_weights(F, y, nu, tol=1e-3)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        what = f"extra memory (MB), nu={nu:g}, {n:,} x {N_MEMBERS}"
        yield Comparison(what, "the score matrix", peak / 1e6, F.nbytes / 1e6, target=6.0)
