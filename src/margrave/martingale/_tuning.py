"""Tuning the hyperparameters of a logistic regression until it meets a preference.

Kulkarni et al. (2016), sections 4.4 and 4.5. The edit of the confusion matrix selects samples of
the tuning set whose prediction should change: as many as the edit requests, the nearest to the
boundary first. Each sample has a *target state*: a class, any class but one, or its probabilities
at the start of the request. BFGS minimises the Kullback-Leibler divergence (2) from the predicted
probabilities to the targets over the log-penalties, the log-costs of the classes and the offset of
the decision; its gradient is the hypergradient (`_newton`).

The paper tunes only the penalties, which cannot reach every count. Here every model on the path is
evaluated with its best offset (`margrave.confusion.Objective`). So with two classes the first
candidate, the original model with its threshold moved, meets all that a threshold can meet, and
the search continues for a model that meets the preference with fewer errors in total. On a small
tuning set the best of many models is often the best only by chance, and misses the preference on
new samples; so it may have to be clearly better than the moved threshold
(`margrave.confusion.Objective.beats`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from margrave._typing import Codes, Flags, Floats
from margrave.confusion import Bound, Confusion, Objective, ObjectiveValue
from margrave.martingale._newton import LogisticProblem, Solution
from margrave.martingale._request import SearchResult, Step

# How far log-penalties, log-costs and offsets may move from their values at the start.
_REACH = (6.0, 3.0, 20.0)
ROUGH_TOL = 1e-5  # tolerance of the solver for models that may not be kept
_MAX_ITER = 50  # Newton steps for one model of the search


@dataclass(frozen=True)
class Hyperparameters:
    """Hyperparameters of a logistic regression."""

    log_penalty: Floats  # (n_groups,): logarithms of the penalties
    log_cost: Floats  # (n_classes,): logarithms of the costs of the classes
    offset: Floats  # (n_classes,): added to the scores of the classes


@dataclass(frozen=True)
class FittedProblem:
    """A solved logistic regression: all that training it again needs."""

    problem: LogisticProblem  # the training samples
    weights: Floats  # (n,): their weights, without the costs of the classes
    group: Codes  # (d,): the penalty group of each column
    hyperparameters: Hyperparameters  # penalties, costs and offset
    solution: Solution  # the weights of the columns

    def hypergradient(self, dg_dw: Floats) -> tuple[Floats, Floats]:
        """Derivatives of a function of the solution by the log-penalties and the log-costs."""
        penalty, weights = expand(
            self.hyperparameters, self.group, self.problem.codes, self.weights
        )
        by_column, by_class = self.problem.hypergradient(self.solution, penalty, weights, dg_dw)
        n_groups = len(self.hyperparameters.log_penalty)
        return sum_by_group(by_column, self.group, n_groups), by_class

    def solve_again(self, hyperparameters: Hyperparameters, tol: float) -> FittedProblem:
        """Train with other hyperparameters, starting from the present solution."""
        penalty, weights = expand(hyperparameters, self.group, self.problem.codes, self.weights)
        solution = self.problem.solve(penalty, weights, self.solution.w, tol, _MAX_ITER)
        return replace(self, hyperparameters=hyperparameters, solution=solution)


def expand(
    hyperparameters: Hyperparameters, group: Codes, codes: Codes, weights: Floats
) -> tuple[Floats, Floats]:
    """The penalty of each column, 0 for the intercept, and the weight of each sample with costs."""
    penalty = np.append(np.exp(hyperparameters.log_penalty)[group], 0.0)
    return penalty, weights * np.exp(hyperparameters.log_cost)[codes]


def sum_by_group(by_column: Floats, group: Codes, n_groups: int) -> Floats:
    """Sum derivatives by the columns, the last of which is the intercept, over the groups."""
    sums: Floats = np.bincount(group, by_column[:-1], n_groups).astype(np.float64)
    return sums


# Target states (section 4.4)


def target_states(objective: Objective, scores: Floats) -> Floats:
    """The distribution over the classes that each sample should have; shape (n, k).

    One-hot for "as class b"; 0 at b and 1/(k − 1) elsewhere for "not as b"; for samples that should
    not change, the probabilities at the start of the request, from ``scores``.
    """
    targets: Floats = softmax(scores, axis=1)
    predictions = scores.argmax(axis=1)
    matrix = objective.matrix(predictions)
    for bound in objective.preference.all_bounds:
        if bound.slack(matrix) >= 0:
            continue
        amount, base = (mask[:, : objective.k] for mask in bound.cells(matrix))
        allowed = _helpful_classes(bound.at_most, amount, base, objective.codes, predictions)
        nearest = np.where(allowed, scores, -np.inf)
        distance = scores.max(axis=1) - nearest.max(axis=1)
        candidates = np.flatnonzero(allowed.any(axis=1))
        order = np.argsort(distance[candidates], kind="stable")
        chosen = candidates[order[: _n_to_move(bound, matrix, amount, base)]]
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


def _helpful_classes(
    at_most: bool, amount: Flags, base: Flags, codes: Codes, predictions: Codes
) -> Flags:
    """Whether predicting a class for a sample helps a bound; shape (n, k).

    To decrease an amount, its samples leave it. To increase it, samples of the base move to it or,
    for a precision, leave the base; if there are none, any sample that can move to it does.
    """
    k = len(amount)
    other = ~np.eye(k, dtype=bool)[predictions]
    if at_most:
        inside = amount[codes, predictions]
        helps = ~amount[codes]
    else:
        inside = (base & ~amount)[codes, predictions]
        helps = amount[codes] | ~base[codes]
        if not inside.any():
            inside = ~amount[codes, predictions]
            helps = amount[codes]
    return np.asarray(inside[:, None] & other & helps)


def _n_to_move(bound: Bound, matrix: Confusion, amount: Flags, base: Flags) -> int:
    """Number of samples that have to change for a bound that is not met."""
    whole_rows = (base.any(axis=1) == base.all(axis=1)).all()
    predicted, right = (int(matrix.counts[:, : len(base)][mask].sum()) for mask in (base, amount))
    if whole_rows or not predicted or not right:
        return ceil(-bound.slack(matrix))
    if bound.at_most:  # precision: correct predictions leave the amount and the base
        return ceil((right - bound.limit * predicted) / (1 - bound.limit))  # not met: limit < 1
    return ceil(predicted - right / bound.limit)  # precision: wrong predictions leave the base


# The search (section 4.5)


@dataclass(frozen=True)
class LogisticCandidate:
    """A trained model with its best offset, its predictions and the value of the objective."""

    fitted: FittedProblem
    predictions: Codes
    value: ObjectiveValue


class _SearchStoppedError(Exception):
    """The search has found enough, or the callback cancelled it."""


@dataclass
class HyperparameterSearch:
    """The search from a trained model for one that meets a preference."""

    start: FittedProblem  # the original model
    Z: Floats  # (m, d + 1): columns of the tuning set, and ones
    # From weights of the columns to scores of the tuning set, of shape (m, k), without offset, with
    # the same rounding as the estimator's predictions.
    score: Callable[[Floats], Floats]
    objective: Objective  # the preference, and the classes of the tuning set
    tol: float  # tolerance of the solver
    patience: int  # number of models to train after the last improvement
    max_models: int
    min_gain: float = 0.0  # standard errors by which a model has to beat the moved threshold
    # Called with a Step after each model; a true result cancels the search
    callback: Callable[[Step], Any] | None = None
    n_models: int = field(default=0, init=False)
    improved_at: int = field(default=0, init=False)
    cancelled: bool = field(default=False, init=False)

    def run(self) -> tuple[LogisticCandidate, SearchResult]:
        """Search until a model meets the preference with fewer errors, or no model is left."""
        self.current = self.start
        scores = self.score(self.start.solution.w) + self.start.hyperparameters.offset
        before = scores.argmax(axis=1)
        value = self.objective.evaluate(before)
        if value.shortfall == 0:
            return LogisticCandidate(self.start, before, value), SearchResult.unchanged(before)
        self.first = self.best = self.make_candidate(self.start, local=False)
        perfect = self.first.value.shortfall == self.first.value.errors == 0
        if self.max_models and not perfect:
            self.targets = target_states(self.objective, scores)
            self._descend()
        if not self.objective.beats(self.best.predictions, self.first.predictions, self.min_gain):
            self.best = self.first
        result = SearchResult(
            before, self.best.predictions, self.first.predictions, self.n_models, self.cancelled
        )
        return self.best, result

    def make_candidate(
        self, fitted: FittedProblem, starts: Iterable[Floats] = (), *, local: bool = True
    ) -> LogisticCandidate:
        """Give a trained model its best offset."""
        scores, offset = self.score(fitted.solution.w), fitted.hyperparameters.offset
        change, _ = self.objective.best_offsets(scores + offset, starts, local=local)
        offset = offset + change
        predictions = (scores + offset).argmax(axis=1)
        hyperparameters = replace(fitted.hyperparameters, offset=offset)
        return LogisticCandidate(
            replace(fitted, hyperparameters=hyperparameters),
            predictions,
            self.objective.evaluate(predictions),
        )

    def _descend(self) -> None:
        """Minimise equation (2) by BFGS, within reach of the start."""
        start, k = self.start.hyperparameters, self.start.problem.k
        theta = np.concatenate([start.log_penalty, start.log_cost, start.offset])
        reach = np.repeat(_REACH, [len(start.log_penalty), k, k])
        bounds = np.column_stack([theta - reach, theta + reach])
        try:
            self._report_progress()
            minimize(self.divergence, theta, jac=True, method="L-BFGS-B", bounds=bounds)
        except _SearchStoppedError:
            pass

    def divergence(self, theta: Floats) -> tuple[float, Floats]:
        """Equation (2) and its gradient at the model of some hyperparameters, which is trained."""
        n_groups, k = len(self.start.hyperparameters.log_penalty), self.start.problem.k
        hyperparameters = Hyperparameters(*np.split(theta, [n_groups, n_groups + k]))
        if not self._is_start(hyperparameters):
            self._train(hyperparameters)
        log_p = log_softmax(self.score(self.current.solution.w) + hyperparameters.offset, axis=1)
        s = self.targets
        value = float((s * (np.log(np.where(s > 0, s, 1)) - log_p)).sum())
        r = np.exp(log_p) - s
        dg_dw = (r[:, 1:] if k == 2 else r).T @ self.Z
        return value, np.concatenate([*self.current.hypergradient(dg_dw), r.sum(axis=0)])

    def _is_start(self, hyperparameters: Hyperparameters) -> bool:
        """Whether BFGS is at its start, where the model is trained already."""
        pairs = zip(
            vars(hyperparameters).values(), vars(self.start.hyperparameters).values(), strict=True
        )
        return self.n_models == 0 and all((one == other).all() for one, other in pairs)

    def _train(self, hyperparameters: Hyperparameters) -> None:
        """Train a model, and keep it if it is the best so far.

        The first solution is rough; only a model worth keeping is solved to the full tolerance.
        """
        self.n_models += 1
        known_offset = self.best.fitted.hyperparameters.offset
        for tol in sorted({max(self.tol, ROUGH_TOL), self.tol}, reverse=True):
            self.current = self.current.solve_again(hyperparameters, tol)
            starts = [known_offset - hyperparameters.offset]
            candidate = self.make_candidate(self.current, starts)
            if not candidate.value < self.best.value:
                break
        else:
            self.best, self.improved_at = candidate, self.n_models
        self._report_progress()

    def _report_progress(self) -> None:
        """Call the callback, and stop the search if it is cancelled or complete."""
        met = self.best.value.shortfall == 0
        if self.callback is not None:
            matrix = self.objective.matrix(self.best.predictions)
            self.cancelled = bool(self.callback(Step(self.n_models, self.max_models, met, matrix)))
        improved = met and self.best.value < self.first.value
        waited = self.n_models - self.improved_at >= self.patience
        if self.cancelled or self.n_models == self.max_models or (improved and waited):
            raise _SearchStoppedError
