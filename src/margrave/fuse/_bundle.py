"""Weights on the simplex that maximise a rank margin, by cutting planes.

Two programs of "A Linear Combination of Classifiers via Rank Margin Maximization", section 3.

`hard_margin`: the document's LP has a row for each of N⁺·N⁻ pairs, but the minimum splits,
``min_ik (s_i - s_k) = min_i s_i - max_k s_k``, so that

    maximise a - b  subject to  P w >= a,  N w <= b,  Σ w = 1,  w >= 0

is the same with N⁺ + N⁻ rows. (The document's block form has Σ w <= 1, which collapses to w = 0
on data that is not separable.) Few of the rows bind: the lowest positive and the highest negative
are added until the bound meets the value.

`soft_margin`: the mean margin φ(w) of the worst share ν of the pairs is concave, and homogeneous:
each evaluation gives a cut ``φ(v) <= g·v``. The next weights are the nearest to the best so far
that could reach a level between value and bound, a least-distance problem (the level method of
Lemaréchal, Nemirovskii and Nesterov, who take the nearest to the last weights). That takes a
handful of rounds where plain cutting planes take dozens. It ends: a point in the level set is away
from all points evaluated before, as their own cuts are below the level there.

Every bound is computed from multipliers made feasible first, never taken from the solver: with
cuts G and multipliers λ on the simplex, ``φ(w) <= max_j (λ G)_j`` for all w.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, nnls

from margrave._typing import Floats

LEVEL = 0.4
"""Share of the way from the value to the bound that the next weights should reach."""

_SOLVER_TOLERANCE = 1e-10
# Weights and multipliers below this are rounding.
_NOTHING = 1e-12
# Rows of a linear program beyond this are too many; the tighter half of them is kept.
_MOST_ROWS = 4000


@dataclass(frozen=True)
class Solution:
    """Weights with what was proven about them.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        On the simplex.
    value : float
        The margin that they reach.
    bound : float
        No weights reach more.
    n_iter : int
        Rounds taken.
    """

    weights: Floats
    value: float
    bound: float
    n_iter: int


@dataclass(frozen=True)
class Reached:
    """What some weights reach, and rows to cut with.

    Attributes
    ----------
    values : ndarray of shape (n_weights,)
        The margin of the worst pair for each of the weights.
    lowest, highest : ndarray of shape (n_weights, K)
        The positive and the negative of that pair.
    low, high : ndarray of shape (n, K)
        Positives and negatives that are among the worst for some of the weights.
    """

    values: Floats
    lowest: Floats
    highest: Floats
    low: Floats
    high: Floats


def hard_margin(P: Floats, N: Floats, tol: float, max_iter: int) -> Solution:
    """Maximise the margin of the worst pair.

    Parameters
    ----------
    P, N : ndarray of shape (N⁺, K) and (N⁻, K)
        Scores of the positives and of the negatives.
    tol : float
        Stop when value and bound are this close.
    max_iter : int
        Most rounds.
    """

    def reached(W: Floats) -> Reached:
        of_positives, of_negatives = P @ W[0], N @ W[0]
        at, to = int(of_positives.argmin()), int(of_negatives.argmax())
        low, high = P[at : at + 1], N[to : to + 1]
        return Reached(of_positives[[at]] - of_negatives[[to]], low, high, low, high)

    return cutting_planes(
        P[np.argmin(P, axis=0)], N[np.argmax(N, axis=0)], reached, tol, max_iter, between=False
    )


def cutting_planes(
    low: Floats,
    high: Floats,
    ask: Callable[[Floats], Reached],
    tol: float,
    max_iter: int,
    *,
    between: bool,
) -> Solution:
    """Maximise the margin of the worst pair, wherever the samples are.

    Parameters
    ----------
    low, high : ndarray of shape (n, K)
        Some positives and some negatives to begin with.
    ask : function of weights, shape (n_weights, K)
        Looks at all samples.
    tol, max_iter
        As in `hard_margin`.
    between : bool
        Whether to ask for weights halfway to the best so far too: fewer rounds, each of which costs
        more.
    """
    lows, highs = _Rows(low), _Rows(high)
    n_members = low.shape[1]
    best, best_value, bound = np.full(n_members, 1 / n_members), -np.inf, np.inf
    n_iter, done = 0, False
    while not done and n_iter < max_iter:
        n_iter += 1
        weights, upper = _split_program(lows.array(), highs.array())
        bound = min(bound, upper)
        tried = np.array([weights, (weights + best) / 2] if between else [weights])
        reached = ask(tried)
        at = int(np.argmax(reached.values))
        if reached.values[at] > best_value:
            best, best_value = tried[at], float(reached.values[at])
        # With nothing to add, what is left of the gap is the solver's rounding.
        known = reached.lowest[0] in lows and reached.highest[0] in highs
        done = bound - best_value <= tol or known
        lows.add(reached.low, weights)
        highs.add(reached.high, -weights)
    return Solution(best, best_value, max(bound, best_value), n_iter)


class _Rows:
    """Different rows, in the order in which they came; the loose ones go if there are too many."""

    def __init__(self, rows: Floats) -> None:
        self._rows: dict[bytes, Floats] = {}
        self.add(rows)

    def __contains__(self, row: Floats) -> bool:
        return row.tobytes() in self._rows

    def add(self, rows: Floats, weights: Floats | None = None) -> None:
        """Take rows; the tight ones have a small product with the weights."""
        for row in rows:
            self._rows.setdefault(row.tobytes(), row)
        if weights is not None and len(self._rows) > _MOST_ROWS:
            tight = np.sort(np.argsort(self.array() @ weights, kind="stable")[: _MOST_ROWS // 2])
            keys = list(self._rows)
            self._rows = {keys[at]: self._rows[keys[at]] for at in tight}

    def array(self) -> Floats:
        """All of them."""
        return np.array(list(self._rows.values()))


def soft_margin(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    n_members: int,
    tol: float,
    max_iter: int,
) -> Solution:
    """Maximise a concave, homogeneous function on the simplex by the level method.

    Parameters
    ----------
    evaluate : function of weights
        Gives a value that is reached, and a cut g with φ(v) <= g·v for all v on the simplex. At the
        weights themselves the cut should be above the value by less than ``LEVEL * tol``; where it
        is not, the search ends earlier, since it could stay where it is.
    n_members : int
        K.
    tol : float
        Stop when value and bound are this close.
    max_iter : int
        Most rounds.
    """
    weights = best = np.full(n_members, 1 / n_members)
    best_value, bound, unsure = -np.inf, np.inf, 0.0
    planes: list[Floats] = []
    while bound - best_value > max(tol, unsure / LEVEL) and len(planes) < max_iter:
        value, plane = evaluate(weights)
        planes.append(plane)
        unsure = max(unsure, float(plane @ weights) - value)
        if value > best_value:
            best, best_value = weights, value
        G = np.array(planes)
        peak, bound = _matrix_game(G)
        nearest = _nearest(best, G, best_value + LEVEL * (bound - best_value))
        weights = peak if nearest is None else nearest
    return Solution(best, best_value, max(bound, best_value), len(planes))


def _split_program(P: Floats, N: Floats) -> tuple[Floats, float]:
    """Weights for some of the samples, and the bound that their multipliers prove."""
    n_members = P.shape[1]
    rows = np.zeros((len(P) + len(N), n_members + 2))
    rows[: len(P), :n_members], rows[: len(P), n_members] = -P, 1
    rows[len(P) :, :n_members], rows[len(P) :, n_members + 1] = N, -1
    gain = np.zeros(n_members + 2)
    gain[n_members:] = 1, -1
    weights, multipliers = _solve(rows, gain, n_members)
    of_positives = _on_simplex(multipliers[: len(P)])
    of_negatives = _on_simplex(multipliers[len(P) :])
    return weights, float((of_positives @ P - of_negatives @ N).max())


def _matrix_game(G: Floats) -> tuple[Floats, float]:
    """Weights with the largest smallest cut, and the bound that the multipliers prove."""
    if len(G) == 1:
        return np.eye(G.shape[1])[int(np.argmax(G[0]))], float(G[0].max())
    rows = np.column_stack([-G, np.ones(len(G))])
    gain = np.zeros(G.shape[1] + 1)
    gain[-1] = 1
    weights, multipliers = _solve(rows, gain, G.shape[1])
    return weights, float((_on_simplex(multipliers) @ G).max())


def _solve(rows: Floats, gain: Floats, n_members: int) -> tuple[Floats, Floats]:
    """Maximise ``gain·x`` with ``rows·x <= 0``, the first entries of x on the simplex."""
    n_free = len(gain) - n_members
    result = linprog(
        -gain,
        A_ub=rows,
        b_ub=np.zeros(len(rows)),
        A_eq=np.concatenate([np.ones(n_members), np.zeros(n_free)])[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * n_members + [(None, None)] * n_free,
        method="highs",
        options={
            "primal_feasibility_tolerance": _SOLVER_TOLERANCE,
            "dual_feasibility_tolerance": _SOLVER_TOLERANCE,
        },
    )
    if result.status != 0:
        raise RuntimeError(
            "Rank margin: the linear program was not solved; HiGHS ended with status "
            f"{result.status}: {result.message}"
        )
    return _on_simplex(result.x[:n_members]), -result.ineqlin.marginals


def _on_simplex(values: Floats) -> Floats:
    """Solver's numbers without their rounding: none negative, sum 1."""
    positive = np.where(values > _NOTHING, values, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(values), 1 / len(values))


def _nearest(centre: Floats, G: Floats, level: float) -> Floats | None:
    """The weights nearest to `centre` with ``G w >= level``; None if rounding hides them.

    Lawson and Hanson's least-distance programming: min ‖d‖ with A d >= r is one non-negative
    least-squares problem.
    """
    n_members = len(centre)
    above = G - level  # on the simplex, G w >= level is (G - level) w >= 0
    A = np.vstack([above, np.eye(n_members), np.ones(n_members), -np.ones(n_members)])
    r = np.concatenate([-above @ centre, -centre, [0.0, 0.0]])
    E = np.vstack([A.T, r])
    unit = np.zeros(n_members + 1)
    unit[-1] = 1
    try:
        multipliers, _ = nnls(E, unit)
    except RuntimeError:  # it cycled
        return None
    residual = E @ multipliers - unit
    if abs(residual[-1]) < 1e-14:
        return None
    nearest = _on_simplex(centre - residual[:n_members] / residual[-1])
    return None if (nearest == centre).all() else nearest
