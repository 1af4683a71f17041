"""Tuning the hyperparameters of a logistic regression until a preference is met.

"Interactive Martingale Boosting" (document 004), sections 4.4 and 4.5. The edit of the confusion
matrix names points of the tuning set that should be answered otherwise: as many as it asks for,
the ones nearest the boundary first. Each point has a *target state*: a class, anything but a
class, or what it was when the request began. BFGS lowers the Kullback–Leibler divergence (2)
between targets and current states over the log-penalties, the log-costs of the classes and the
offset of the decision; the gradient is by implicit differentiation (`_newton`).

The document tunes the penalties only, and they cannot reach every count. Here every model on the
path is evaluated with the best offset it could have (`margrave.confusion.Objective`), so with two
classes the first of them, the untuned model with its threshold moved, meets all that a threshold
can meet. The search continues from there for a model that meets it at a lower cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from margrave._typing import Floats
from margrave.confusion import Bound, Confusion, Objective, ObjectiveValue
from margrave.martingale._newton import Problem, Solution
from margrave.martingale._request import Outcome, Step
from margrave.martingale._settings import Setting

# How far log-penalties, log-costs and offsets may go from where the request found them.
_REACH = (6.0, 3.0, 20.0)
ROUGH = 1e-5  # tolerance of the solver for models on the way
_STEPS = 50  # of Newton's method, for one model on the way


@dataclass(frozen=True)
class Candidate:
    """A trained model with the best offset it could have, and how it is judged.

    Attributes
    ----------
    setting : Setting
        Its hyperparameters.
    solution : Solution
        Its weights.
    answers : ndarray of shape (m,)
        To the tuning set.
    value : ObjectiveValue
        How good they are.
    """

    setting: Setting
    solution: Solution
    answers: NDArray[np.intp]
    value: ObjectiveValue


def target_states(objective: Objective, scores: Floats) -> Floats:
    """What each point should be, as a distribution over the classes (section 4.4).

    Parameters
    ----------
    objective : Objective
        What is wanted.
    scores : ndarray of shape (n, k)
        Logarithms of probabilities, up to a number for each point, when the request begins.

    Returns
    -------
    targets : ndarray of shape (n, k)
        One-hot for "as class b"; 0 at b and 1/(k − 1) elsewhere for "not as b"; as they are for
        the points that stay.
    """
    targets: Floats = softmax(scores, axis=1)
    answers = scores.argmax(axis=1)
    matrix = objective.matrix(answers)
    for bound in objective.preference.all_bounds:
        if bound.slack(matrix) >= 0:
            continue
        amount, base = (mask[:, : objective.k] for mask in bound.cells(matrix))
        allowed = _where_to(bound.at_most, amount, base, objective.codes, answers)
        nearest = np.where(allowed, scores, -np.inf)
        away = scores.max(axis=1) - nearest.max(axis=1)
        candidates = np.flatnonzero(allowed.any(axis=1))
        order = np.argsort(away[candidates], kind="stable")
        chosen = candidates[order[: _points_asked(bound, matrix, amount, base)]]
        anywhere = allowed[chosen].sum(axis=1) == objective.k - 1
        to = np.where(
            allowed[chosen, objective.codes[chosen]],
            objective.codes[chosen],
            nearest[chosen].argmax(axis=1),
        )
        targets[chosen] = np.where(
            anywhere[:, None], allowed[chosen] / (objective.k - 1), np.eye(objective.k)[to]
        )
    return targets


def _where_to(
    at_most: bool,
    amount: NDArray[np.bool_],
    base: NDArray[np.bool_],
    codes: NDArray[np.intp],
    answers: NDArray[np.intp],
) -> NDArray[np.bool_]:
    """As what each point could be answered to help a bound; shape (n, k), all False for most.

    To keep an amount small its points leave it. To make one large, points of the base come to it
    or (for a precision) leave the base; if there are none, any that can come to it.
    """
    k = len(amount)
    other = ~np.eye(k, dtype=bool)[answers]
    if at_most:
        inside = amount[codes, answers]
        helps = ~amount[codes]
    else:
        inside = (base & ~amount)[codes, answers]
        helps = amount[codes] | ~base[codes]
        if not inside.any():
            inside = ~amount[codes, answers]
            helps = amount[codes]
    return np.asarray(inside[:, None] & other & helps)


def _points_asked(
    bound: Bound, matrix: Confusion, amount: NDArray[np.bool_], base: NDArray[np.bool_]
) -> int:
    """How many points have to move for a bound that is missed."""
    whole_rows = (base.any(axis=1) == base.all(axis=1)).all()
    called, right = (int(matrix.counts[:, : len(base)][mask].sum()) for mask in (base, amount))
    if whole_rows or not called or not right:
        return ceil(-bound.slack(matrix))
    if bound.at_most:  # precision: right answers leave the amount, and the base with it
        return ceil((right - bound.limit * called) / (1 - bound.limit))  # missed, so limit < 1
    return ceil(called - right / bound.limit)  # precision: wrong answers leave the base


class _DoneError(Exception):
    """Nothing better is needed, or the work was cancelled."""


class Search:
    """The way from a trained model to one that meets a preference.

    Parameters
    ----------
    problem, weights
        The training samples, and their weights before costs.
    group : ndarray of shape (d,)
        The group of each column.
    Z : ndarray of shape (m, d + 1)
        The tuning samples' columns, and ones.
    ask : callable
        From weights to the scores of the tuning samples, of shape (m, k), without offset; as the
        estimator computes them, to the last digit.
    objective : Objective
        What is wanted of them.
    start : Setting
        Where the search begins.
    solution : Solution
        The model there.
    tol : float
        Of the solver.
    patience, max_models : int
        How many models to train after the last gain, and at most.
    callback : callable or None
        Called with a Step after each model; a true answer cancels.
    """

    def __init__(
        self,
        problem: Problem,
        weights: Floats,
        group: NDArray[np.intp],
        Z: Floats,
        ask: Callable[[Floats], Floats],
        objective: Objective,
        start: Setting,
        solution: Solution,
        *,
        tol: float,
        patience: int,
        max_models: int,
        callback: Callable[[Step], Any] | None = None,
    ) -> None:
        self.problem, self.weights, self.group = problem, weights, group
        self.Z, self.ask, self.objective = Z, ask, objective
        self.start, self.solution = start, solution
        self.tol, self.patience, self.max_models = tol, patience, max_models
        self.callback = callback
        self.n_models, self.gained_at, self.cancelled = 0, 0, False

    def run(self) -> tuple[Candidate, Outcome]:
        """Search until the preference is met cheaply enough, or the models are used up."""
        scores = self.ask(self.solution.w) + self.start.offset
        before = scores.argmax(axis=1)
        value = self.objective.evaluate(before)
        if value.shortfall == 0:
            same = Candidate(self.start, self.solution, before, value)
            return same, Outcome(before, before, before, 0, cancelled=False)
        self.first = self.best = self._make_candidate(self.start, starts=None)
        perfect = self.first.value.shortfall == self.first.value.errors == 0
        if self.max_models and not perfect:
            self.targets = target_states(self.objective, scores)
            self._descend()
        answers = before, self.best.answers, self.first.answers
        return self.best, Outcome(*answers, self.n_models, self.cancelled)

    def _descend(self) -> None:
        """BFGS on equation (2), within reach of the start."""
        start, k = self.start, self.problem.k
        theta = np.concatenate([start.log_penalty, start.log_cost, start.offset])
        reach = np.repeat(_REACH, [len(start.log_penalty), k, k])
        bounds = np.column_stack([theta - reach, theta + reach])
        try:
            self._tell()
            minimize(self._divergence, theta, jac=True, method="L-BFGS-B", bounds=bounds)
        except _DoneError:
            pass

    def _make_candidate(self, setting: Setting, starts: Iterable[Floats] | None = ()) -> Candidate:
        """The present weights with the best offset they could have."""
        scores = self.ask(self.solution.w)
        offset = setting.offset + self.objective.best_offsets(scores + setting.offset, starts)[0]
        answers = (scores + offset).argmax(axis=1)
        chosen = Setting(setting.log_penalty, setting.log_cost, offset)
        return Candidate(chosen, self.solution, answers, self.objective.evaluate(answers))

    def _tell(self) -> None:
        """Tell the callback where the search stands, and stop if that is enough."""
        met = self.best.value.shortfall == 0
        if self.callback is not None:
            matrix = self.objective.matrix(self.best.answers)
            self.cancelled = bool(self.callback(Step(self.n_models, self.max_models, met, matrix)))
        cheaper = met and self.best.value < self.first.value
        waited = self.n_models - self.gained_at >= self.patience
        if self.cancelled or self.n_models == self.max_models or (cheaper and waited):
            raise _DoneError

    def _divergence(self, theta: Floats) -> tuple[float, Floats]:
        """Equation (2) and its gradient; the model there is judged on the way."""
        n_groups, k = len(self.start.log_penalty), self.problem.k
        setting = Setting(*np.split(theta, [n_groups, n_groups + k]))
        penalty, weights = expanded(setting, self.group, self.problem, self.weights)
        if not self._is_start(setting):
            self._consider(setting, penalty, weights)
        log_p = log_softmax(self.ask(self.solution.w) + setting.offset, axis=1)
        s = self.targets
        value = float((s * (np.log(np.where(s > 0, s, 1)) - log_p)).sum())
        r = np.exp(log_p) - s
        dg_dw = (r[:, 1:] if k == 2 else r).T @ self.Z
        by_column, by_class = self.problem.hypergradient(self.solution, penalty, weights, dg_dw)
        by_group = summed(by_column, self.group, n_groups)
        return value, np.concatenate([by_group, by_class, r.sum(axis=0)])

    def _is_start(self, setting: Setting) -> bool:
        """Whether the descent is where it began, with the model that is there."""
        same = zip(vars(setting).values(), vars(self.start).values(), strict=True)
        return self.n_models == 0 and all((mine == its).all() for mine, its in same)

    def _consider(self, setting: Setting, penalty: Floats, weights: Floats) -> None:
        """Train a model, judge it, and keep it if it is the best.

        It is trained roughly first, and as exactly as asked only if it is worth keeping.
        """
        self.n_models += 1
        for tol in sorted({max(self.tol, ROUGH), self.tol}, reverse=True):
            self.solution = self.problem.solved(penalty, weights, self.solution.w, tol, _STEPS)
            candidate = self._make_candidate(setting, [self.best.setting.offset - setting.offset])
            if not candidate.value < self.best.value:
                break
        else:
            self.best, self.gained_at = candidate, self.n_models
        self._tell()


def expanded(
    setting: Setting, group: NDArray[np.intp], problem: Problem, weights: Floats
) -> tuple[Floats, Floats]:
    """The penalty of each column and the weight of each sample under a setting."""
    penalty = np.append(np.exp(setting.log_penalty)[group], 0.0)
    return penalty, weights * np.exp(setting.log_cost)[problem.codes]


def summed(by_column: Floats, group: NDArray[np.intp], n_groups: int) -> Floats:
    """Derivatives by the columns' penalties, the intercept's last, as those by the groups'."""
    sums: Floats = np.bincount(group, by_column[:-1], n_groups).astype(np.float64)
    return sums
