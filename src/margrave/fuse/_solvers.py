"""Solvers for weights on the simplex that maximize a rank margin, by cutting planes.

Two programs of Marrocco et al. (2010), section 3.

`hard_margin`: the paper's linear program has a row for each of the N⁺·N⁻ pairs, but the minimum
splits, ``min_ik (s_i - s_k) = min_i s_i - max_k s_k``, so that

    maximize a - b  subject to  P w >= a,  N w <= b,  Σ w = 1,  w >= 0

is the same with N⁺ + N⁻ rows. (The paper's block-matrix form has Σ w <= 1, whose optimum is w = 0
for data that is not separable.) Few of the rows are active: the lowest positive and the highest
negative are added until the bound equals the value.

`soft_margin`: the mean margin φ(w) of the worst fraction ν of the pairs is concave and homogeneous,
so each evaluation gives a cutting plane ``φ(v) <= g·v``. The next weights are the nearest to the
best so far that could reach a level between value and bound, a least-distance problem (the level
method of Lemaréchal, Nemirovskii and Nesterov, 1995, who use the nearest to the last weights). It
needs a handful of iterations where plain cutting planes need dozens. It terminates: a point in the
level set differs from all points evaluated before, whose own planes are below the level there.

Every bound is computed from multipliers made feasible first, never read from the solver: with
planes G and multipliers λ on the simplex, ``φ(w) <= max_j (λ G)_j`` for all w.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, nnls

from margrave._typing import Floats

LEVEL = 0.4
"""The level of the next weights, as a fraction of the distance from the value to the bound."""

_SOLVER_TOLERANCE = 1e-10
# Weights and multipliers below this are rounding errors.
_ROUNDING = 1e-12
# With more rows than this in a linear program, the tighter half of them remains.
_MAX_ROWS = 4000


@dataclass(frozen=True)
class Solution:
    """Weights, their value and a bound on the optimum.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        Weights on the simplex.
    value : float
        The margin of these weights.
    bound : float
        No weights have a larger margin.
    n_iter : int
        Number of iterations.
    """

    weights: Floats
    value: float
    bound: float
    n_iter: int


@dataclass(frozen=True)
class Extremes:
    """The worst pair under each of some weights, and rows to add to the linear program.

    Attributes
    ----------
    values : ndarray of shape (n_weights,)
        The margin of the worst pair under each of the weights.
    lowest, highest : ndarray of shape (n_weights, K)
        The positive and the negative of that pair.
    low, high : ndarray of shape (n, K)
        Positives and negatives that are among the worst under some of the weights.
    """

    values: Floats
    lowest: Floats
    highest: Floats
    low: Floats
    high: Floats


def hard_margin(
    low: Floats,
    high: Floats,
    extremes: Callable[[Floats], Extremes],
    tol: float,
    max_iter: int,
    *,
    halfway: bool,
) -> Solution:
    """Maximize the margin of the worst pair.

    Parameters
    ----------
    low, high : ndarray of shape (n, K)
        Some positives and some negatives to start with.
    extremes : callable
        Takes weights of shape (n_weights, K), and returns their Extremes over all samples.
    tol : float
        Stop when value and bound are this close.
    max_iter : int
        Maximum number of iterations.
    halfway : bool
        Whether to evaluate also the weights halfway to the best so far, in the same call: fewer
        iterations, each of which is slower.
    """
    lows, highs = _Rows(low), _Rows(high)
    n_members = low.shape[1]
    best, best_value, bound = np.full(n_members, 1 / n_members), -np.inf, np.inf
    n_iter, done = 0, False
    while not done and n_iter < max_iter:
        n_iter += 1
        weights, upper = _solve_split_program(lows.array(), highs.array())
        bound = min(bound, upper)
        tried = np.array([weights, (weights + best) / 2] if halfway else [weights])
        worst = extremes(tried)
        at = int(np.argmax(worst.values))
        if worst.values[at] > best_value:
            best, best_value = tried[at], float(worst.values[at])
        # If there is no row to add, the rest of the gap is the solver's rounding.
        known = worst.lowest[0] in lows and worst.highest[0] in highs
        done = bound - best_value <= tol or known
        lows.add(worst.low, weights)
        highs.add(worst.high, -weights)
    return Solution(best, best_value, max(bound, best_value), n_iter)


class _Rows:
    """Distinct rows in the order of their arrival; too many are reduced to the tight ones."""

    def __init__(self, rows: Floats) -> None:
        self._rows: dict[bytes, Floats] = {}
        self.add(rows)

    def __contains__(self, row: Floats) -> bool:
        return row.tobytes() in self._rows

    def add(self, rows: Floats, weights: Floats | None = None) -> None:
        """Add rows; the tight ones have a small product with the weights."""
        for row in rows:
            self._rows.setdefault(row.tobytes(), row)
        if weights is not None and len(self._rows) > _MAX_ROWS:
            tight = np.sort(np.argsort(self.array() @ weights, kind="stable")[: _MAX_ROWS // 2])
            keys = list(self._rows)
            self._rows = {keys[at]: self._rows[keys[at]] for at in tight}

    def array(self) -> Floats:
        """Return all rows."""
        return np.array(list(self._rows.values()))


def soft_margin(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    n_members: int,
    tol: float,
    max_iter: int,
) -> Solution:
    """Maximize a concave, homogeneous function on the simplex by the level method.

    Parameters
    ----------
    evaluate : callable
        Takes weights, and returns a lower bound of φ there and a cutting plane g, with
        φ(v) <= g·v for all v on the simplex. At the weights themselves the plane should exceed the
        value by less than ``LEVEL * tol``; where it does not, the search stops earlier, since it
        could return to the same weights.
    n_members : int
        K.
    tol : float
        Stop when value and bound are this close.
    max_iter : int
        Maximum number of iterations.
    """
    weights = best = np.full(n_members, 1 / n_members)
    best_value, bound, error = -np.inf, np.inf, 0.0
    planes: list[Floats] = []
    while bound - best_value > max(tol, error / LEVEL) and len(planes) < max_iter:
        value, plane = evaluate(weights)
        planes.append(plane)
        error = max(error, float(plane @ weights) - value)
        if value > best_value:
            best, best_value = weights, value
        G = np.array(planes)
        peak, bound = _solve_matrix_game(G)
        nearest = _project(best, G, best_value + LEVEL * (bound - best_value))
        weights = peak if nearest is None else nearest
    return Solution(best, best_value, max(bound, best_value), len(planes))


def _solve_split_program(P: Floats, N: Floats) -> tuple[Floats, float]:
    """Return the best weights for some of the samples, and the bound from their multipliers."""
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


def _solve_matrix_game(G: Floats) -> tuple[Floats, float]:
    """Return the weights whose lowest plane is highest, and the bound from the multipliers."""
    if len(G) == 1:
        return np.eye(G.shape[1])[int(np.argmax(G[0]))], float(G[0].max())
    rows = np.column_stack([-G, np.ones(len(G))])
    gain = np.zeros(G.shape[1] + 1)
    gain[-1] = 1
    weights, multipliers = _solve(rows, gain, G.shape[1])
    return weights, float((_on_simplex(multipliers) @ G).max())


def _solve(rows: Floats, gain: Floats, n_members: int) -> tuple[Floats, Floats]:
    """Maximize ``gain·x`` with ``rows·x <= 0``, the first entries of x on the simplex."""
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
            "The linear program of the rank margin was not solved: HiGHS stopped with status "
            f"{result.status}: {result.message}"
        )
    return _on_simplex(result.x[:n_members]), -result.ineqlin.marginals


def _on_simplex(values: Floats) -> Floats:
    """Remove the rounding errors of a solver: none negative, sum 1."""
    positive = np.where(values > _ROUNDING, values, 0.0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(values), 1 / len(values))


def _project(centre: Floats, G: Floats, level: float) -> Floats | None:
    """Return the weights nearest to `centre` with ``G w >= level``; None if lost in rounding.

    This is least-distance programming (Lawson and Hanson, 1974): min ‖d‖ with A d >= r is one
    non-negative least-squares problem.
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
    except RuntimeError:  # nnls reached its limit of iterations
        return None
    residual = E @ multipliers - unit
    if abs(residual[-1]) < 1e-14:
        return None
    nearest = _on_simplex(centre - residual[:n_members] / residual[-1])
    return None if (nearest == centre).all() else nearest
