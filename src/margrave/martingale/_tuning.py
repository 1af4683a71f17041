"""Tuning the hyperparameters of a logistic regression until a preference is met.

"Interactive Martingale Boosting" (document 004), sections 4.4 and 4.5. The edit of the confusion
matrix names points of the tuning set that should be answered otherwise: as many as it asks for,
the ones nearest the boundary first. Each point has a *target state*: a class, anything but a
class, or what it was when the request began. BFGS lowers the Kullback–Leibler divergence (2)
between targets and current states over the log-penalties, the log-costs of the classes and the
offset of the decision; the gradient is by implicit differentiation (`_newton`).

The document tunes the penalties only, and they cannot reach every count. Here every model on the
way is judged with the best offset it could have (`_judge`), so the first of them, the untuned
model with its threshold moved, meets all that a threshold can meet. The search goes on from there
for a model that meets it at a lower price.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from margrave.confusion import Confusion
from margrave.martingale._judge import Judge, Verdict
from margrave.martingale._newton import Problem, Solution
from margrave.martingale._request import Outcome, Step
from margrave.martingale._settings import Setting

Floats = NDArray[np.float64]

# How far log-penalties, log-costs and offsets may go from where the request found them.
_REACH = (6.0, 3.0, 20.0)
ROUGH = 1e-4  # tolerance of the solver on the way; the model that is returned is solved as asked
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
    verdict : Verdict
        How good they are.
    """

    setting: Setting
    solution: Solution
    answers: NDArray[np.intp]
    verdict: Verdict


def target_states(judge: Judge, scores: Floats) -> Floats:
    """What each point should be, as a distribution over the classes (section 4.4).

    Parameters
    ----------
    judge : Judge
        What is wanted.
    scores : ndarray of shape (n, k)
        Log-probabilities when the request begins.

    Returns
    -------
    targets : ndarray of shape (n, k)
        One-hot for "as class b"; 0 at b and 1/(k − 1) elsewhere for "not as b"; as they are for
        the points that stay.
    """
    targets = np.exp(scores)
    answers = scores.argmax(axis=1)
    matrix = judge.matrix(answers)
    rows = np.arange(len(scores))
    top = scores[rows, answers]
    second = np.where(np.eye(judge.k, dtype=bool)[answers], -np.inf, scores).max(axis=1)
    for bound in judge.preference.all_bounds:
        slack = bound.slack(matrix)
        if slack >= 0:
            continue
        amount, base = bound.cells(matrix)
        cells = amount if bound.at_most else base & ~amount
        inside = cells[judge.codes, answers]
        # Leaving a column is enough, or the point has to come to its own class.
        leave = bool(bound.at_most or (base & ~amount).any(axis=0).sum() == 1)
        away = top - (second if leave else scores[rows, judge.codes])
        count = _points_asked(bound.limit, slack, matrix, amount, base, leave and not bound.at_most)
        chosen = np.flatnonzero(inside)[np.argsort(away[inside], kind="stable")[:count]]
        if leave:
            targets[chosen] = 1 / (judge.k - 1)
            targets[chosen, answers[chosen]] = 0
        else:
            targets[chosen] = np.eye(judge.k)[judge.codes[chosen]]
    return targets


def _points_asked(
    limit: Fraction,
    slack: Fraction,
    matrix: Confusion,
    amount: NDArray[np.bool_],
    base: NDArray[np.bool_],
    of_column: bool,
) -> int:
    """How many points have to move for a bound that is missed."""
    if not of_column or limit == 0:
        return ceil(-slack)
    # Precision: points leave the base, and the amount stays.
    called, right = int(matrix.counts[base].sum()), int(matrix.counts[amount].sum())
    return ceil(called - right / limit)


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
    judge : Judge
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
        judge: Judge,
        start: Setting,
        solution: Solution,
        *,
        tol: float,
        patience: int,
        max_models: int,
        callback: Callable[[Step], Any] | None = None,
    ) -> None:
        self.problem, self.weights, self.group = problem, weights, group
        self.Z, self.judge, self.start, self.solution = Z, judge, start, solution
        self.tol, self.patience, self.max_models = tol, patience, max_models
        self.callback = callback
        self.n_models, self.gained_at, self.cancelled = 0, 0, False

    def run(self) -> tuple[Candidate, Outcome]:
        """Search until the preference is met cheaply enough, or the models are used up."""
        scores = self._scores() + self.start.offset
        before = scores.argmax(axis=1)
        verdict = self.judge.verdict(before)
        if verdict.shortfall == 0:
            same = Candidate(self.start, self.solution, before, verdict)
            return same, Outcome(before, before, before, 0, cancelled=False)
        self.first = self.best = self._judged(self.start)
        if self.max_models and self.first.verdict[:2] != (0, 0):  # else nothing can be cheaper
            self.targets = target_states(self.judge, log_softmax(scores, axis=1))
            self._descend()
            if self.best is not self.first and self.tol < ROUGH:
                self._polish()
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

    def _scores(self) -> Floats:
        """Log-probabilities of the tuning samples by the present weights, without offset."""
        raw = self.Z @ self.solution.w.T
        if self.problem.k == 2:
            raw = np.column_stack([np.zeros(len(raw)), raw])
        log_p: Floats = log_softmax(raw, axis=1)
        return log_p

    def _judged(self, setting: Setting) -> Candidate:
        """The present weights with the best offset they could have."""
        scores = self._scores() + setting.offset
        offset, verdict = self.judge.best_offset(scores)
        chosen = Setting(setting.log_penalty, setting.log_cost, setting.offset + offset)
        return Candidate(chosen, self.solution, (scores + offset).argmax(axis=1), verdict)

    def _tell(self) -> None:
        """Tell the callback where the search stands, and stop if that is enough."""
        met = self.best.verdict.shortfall == 0
        if self.callback is not None:
            matrix = self.judge.matrix(self.best.answers)
            self.cancelled = bool(self.callback(Step(self.n_models, self.max_models, met, matrix)))
        cheaper = met and self.best.verdict < self.first.verdict
        waited = self.n_models - self.gained_at >= self.patience
        if self.cancelled or self.n_models == self.max_models or (cheaper and waited):
            raise _DoneError

    def _divergence(self, theta: Floats) -> tuple[float, Floats]:
        """Equation (2) and its gradient; the model there is judged on the way."""
        n_groups, k = len(self.start.log_penalty), self.problem.k
        setting = Setting(*np.split(theta, [n_groups, n_groups + k]))
        penalty, weights = expanded(setting, self.group, self.problem, self.weights)
        if not self._is_start(setting):
            tol = max(self.tol, ROUGH)
            self.solution = self.problem.solved(penalty, weights, self.solution.w, tol, _STEPS)
            self._consider(setting)
        log_p = log_softmax(self._scores() + setting.offset, axis=1)
        s = self.targets
        value = float((s * (np.log(np.where(s > 0, s, 1)) - log_p)).sum())
        r = np.exp(log_p) - s
        dg_dw = (r[:, 1:] if k == 2 else r).T @ self.Z
        by_column, by_class = self.problem.hypergradient(self.solution, penalty, weights, dg_dw)
        by_group = summed(by_column, self.group)
        return value, np.concatenate([by_group, by_class, r.sum(axis=0)])

    def _is_start(self, setting: Setting) -> bool:
        """Whether the descent is where it began, with the model that is there."""
        same = zip(vars(setting).values(), vars(self.start).values(), strict=True)
        return self.n_models == 0 and all((mine == its).all() for mine, its in same)

    def _consider(self, setting: Setting) -> None:
        """Judge the model that was just trained."""
        self.n_models += 1
        candidate = self._judged(setting)
        if candidate.verdict < self.best.verdict:
            self.best, self.gained_at = candidate, self.n_models
        self._tell()

    def _polish(self) -> None:
        """Solve for the best model as exactly as asked, if that leaves it as good."""
        best = self.best
        penalty, weights = expanded(best.setting, self.group, self.problem, self.weights)
        start = best.solution.w
        self.solution = self.problem.solved(penalty, weights, start, self.tol, _STEPS)
        polished = self._judged(best.setting)
        if polished.verdict <= best.verdict:
            self.best = polished


def expanded(
    setting: Setting, group: NDArray[np.intp], problem: Problem, weights: Floats
) -> tuple[Floats, Floats]:
    """The penalty of each column and the weight of each sample under a setting."""
    penalty = np.append(np.exp(setting.log_penalty)[group], 0.0)
    return penalty, weights * np.exp(setting.log_cost)[problem.codes]


def summed(by_column: Floats, group: NDArray[np.intp]) -> Floats:
    """Derivatives by the columns' penalties, the intercept's last, as those by the groups'."""
    sums: Floats = np.bincount(group, weights=by_column[:-1]).astype(np.float64)
    return sums
