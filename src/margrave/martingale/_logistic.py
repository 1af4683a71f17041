"""Multinomial logistic regression whose hyperparameters can be tuned to a preference.

"Interactive Martingale Boosting" (document 004), sections 4.4 and 4.5: the learner at the nodes of
a martingale program, and a classifier of its own. `_newton` solves (3) on arrays, `_tuning`
searches the hyperparameters; this file is the estimator.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave._typing import Floats
from margrave._validation import check_parameters, is_count, is_number
from margrave.confusion import Objective, Preference
from margrave.martingale._newton import Problem, Solution
from margrave.martingale._request import (
    Outcome,
    Step,
    Tuning,
    check_limits,
    check_wanted,
    make_objective,
    report,
)
from margrave.martingale._scored import ScoredClassifier
from margrave.martingale._settings import Setting, grouped, one_each
from margrave.martingale._tuning import Search, expanded, summed

_FARTHEST = 100  # log-penalties: e^±100 is nothing, or all


class Hypergradient(NamedTuple):
    """Derivatives by the hyperparameters.

    Attributes
    ----------
    log_penalty : ndarray of shape (n_groups,)
        By the log-penalty of each group (each feature, without groups).
    log_cost : ndarray of shape (n_classes,)
        By the logarithm of each class's cost.
    """

    log_penalty: Floats
    log_cost: Floats


class TunableLogistic(ScoredClassifier):
    """Logistic regression with a penalty per feature, a cost per class and an offset.

    Minimises ``½ Σ e^{d_j} w_j² + Σ_i c_{y_i} s_i · logloss_i`` over the weights of standardised
    features; intercepts carry no penalty. :meth:`tune` moves the hyperparameters until the
    confusion matrix on a tuning set keeps to a preference.

    Parameters
    ----------
    log_penalty : float, array-like or mapping, default=0.0
        d: one for all features, one for each group, or by the names of the groups.
    groups : mapping of name to features, default=None
        Features (positions or column names) that share a penalty; each in one group. None gives
        every feature its own.
    class_cost : array-like or mapping, default=None
        c: a positive cost for each class, in the order of ``classes_`` or by label; 1 if None.
    offset : array-like or mapping, default=None
        What is added to the logarithm of each class's probability before the largest is chosen;
        0 if None. It is part of every answer, probabilities included.
    standardize : bool, default=True
        Whether to centre and scale the features first. ``coef_`` is in the units given.
    tol : float, default=1e-7
        How exactly to solve: Newton's squared decrement, as a share of the sum of weights.
    max_iter : int, default=100
        Most steps of the solver.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, as given.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, without the offset.
    offset_ : ndarray of shape (n_classes,)
        The offset.
    group_names_ : list of str
        Names of the groups, in the order of their log-penalties.
    n_iter_ : int
        Steps of the solver.
    tuning_ : Tuning or None
        What the last :meth:`tune` did; None if there was none.

    Notes
    -----
    A fitted model keeps its training data, as a nearest-neighbour one does, since tuning trains
    again.

    Examples
    --------
    >>> from margrave import datasets
    >>> from margrave.martingale import TunableLogistic
    >>> from sklearn.model_selection import train_test_split
    >>> mail = datasets.load("spambase")
    >>> X, X_tune, y, y_tune = train_test_split(
    ...     mail.data, mail.target, stratify=mail.target, random_state=0
    ... )
    >>> model = TunableLogistic().fit(X, y)
    >>> tuned = model.tune("fp <= 20", X_tune, y_tune)
    >>> print(tuned.tuning_)
    fp <= 20 (spam is positive): met on the tuning set, 18 models trained
    before:    fp 36, fn 39, 75 errors in 1151
    after:     fp 20, fn 74, 94 errors in 1151
    by offset: fp 20, fn 96, 116 errors in 1151
    """

    def __init__(
        self,
        log_penalty: float | ArrayLike | Mapping[str, float] = 0.0,
        *,
        groups: Mapping[str, Any] | None = None,
        class_cost: ArrayLike | Mapping[Any, float] | None = None,
        offset: ArrayLike | Mapping[Any, float] | None = None,
        standardize: bool = True,
        tol: float = 1e-7,
        max_iter: int = 100,
    ) -> None:
        self.log_penalty = log_penalty
        self.groups = groups
        self.class_cost = class_cost
        self.offset = offset
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples, without missing values.
        y : array-like of shape (n_samples,)
            Their labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; equal if None. Samples of weight 0 are left out.

        Returns
        -------
        self : object
            The trained classifier.
        """
        self._check_parameters()
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        return self._fit_arrays(*self._weighed(rows, labels, sample_weight))

    def _check_parameters(self) -> None:
        """Refuse what can be refused without data."""
        check_parameters(
            self,
            {
                "tol": ("a number above 0", is_number(self.tol) and self.tol > 0),
                "max_iter": ("a whole number of at least 1", is_count(self.max_iter)),
            },
        )

    def _fit_arrays(self, rows: Floats, labels: NDArray[Any], weights: Floats) -> Self:
        """Learn from arrays that need no checks, with weights above 0."""
        self.n_features_in_ = rows.shape[1]
        codes = self._coded(labels)
        setting = self._setting()
        self._centre, self._scale = self._units(rows, weights)
        problem = Problem(self._columns(rows), codes, len(self.classes_))
        penalty, weighted = expanded(setting, self._group, problem, weights)
        solution = problem.solved(penalty, weighted, None, self.tol, self.max_iter)
        self._keep(problem, weights, setting, solution)
        self.tuning_: Tuning | None = None
        return self

    def _scores(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return self._class_scores(validate_data(self, X, reset=False, dtype=np.float64))

    def hypergradient(self, dg_dw: ArrayLike) -> Hypergradient:
        """How a function g of the trained weights changes with the hyperparameters.

        By implicit differentiation at the solution, with the factor of the last Newton step.

        Parameters
        ----------
        dg_dw : array-like of shape (n_rows, n_features + 1)
            Derivatives of g by ``coef_`` and, in the last column, ``intercept_``.

        Returns
        -------
        Hypergradient
            Derivatives by the log-penalties and the log-costs.
        """
        problem, weights = self._training("hypergradient")
        given = np.asarray(dg_dw, dtype=np.float64)
        if given.shape != self._solution.w.shape:
            raise ValueError(
                f"{type(self).__name__}.hypergradient needs dg_dw of shape "
                f"{self._solution.w.shape}, an intercept last in each row; got {given.shape}."
            )
        # coef = w / scale and intercept = b − w · centre / scale, as `_keep` has it.
        by_w = (given[:, :-1] - given[:, -1:] * self._centre) / self._scale
        penalty, weighted = expanded(self._at, self._group, problem, weights)
        by_column, by_class = problem.hypergradient(
            self._solution, penalty, weighted, np.column_stack([by_w, given[:, -1]])
        )
        return Hypergradient(summed(by_column, self._group, len(self.group_names_)), by_class)

    def tune(
        self,
        preference: Preference | str,
        X_tune: ArrayLike,
        y_tune: ArrayLike,
        *,
        positive: Any = None,
        patience: int = 4,
        max_models: int = 20,
        callback: Callable[[Step], Any] | None = None,
    ) -> TunableLogistic:
        """A copy whose answers to the tuning set keep to a preference.

        The first candidate is this model with its offset moved. If that has a price (errors in
        cells of which the preference does not speak), the penalties and costs are searched for
        a model that meets the preference at a lower one; ``patience`` more are trained once it
        is found. A preference that is already met changes nothing. With more than two classes the
        best offset is searched for, class by class, and may be missed.

        Parameters
        ----------
        preference : Preference or str
            What is wanted of the confusion matrix on the tuning set.
        X_tune, y_tune : array-like
            Samples that were not trained on, of every class.
        positive : label, optional
            The class that ``fp`` and ``fn`` speak of; by default the second of two.
        patience : int, default=4
            How many models to try for a still lower price after the last gain.
        max_models : int, default=20
            Most models to train; 0 moves the offset only.
        callback : callable, optional
            Called with a :class:`Step` when the search begins and after each model; a true answer
            stops it.

        Returns
        -------
        TunableLogistic
            With the hyperparameters as its parameters, and ``tuning_`` for what was done. If no
            model met the preference, the nearest one, with a :class:`NotMetWarning`.
        """
        self._training("tune")
        owner = f"{type(self).__name__}.tune"
        check_wanted(preference, owner)
        check_limits(owner, patience=patience, max_models=max_models)
        rows = validate_data(self, X_tune, reset=False, dtype=np.float64)
        objective = make_objective(preference, y_tune, self.classes_, positive, len(rows), owner)
        tuned, outcome = self._tuned(objective, rows, patience, max_models, callback)
        tuned.tuning_ = report(objective, outcome, owner)
        return tuned

    def _tuned(
        self,
        objective: Objective,
        rows: Floats,
        patience: int,
        max_models: int,
        callback: Callable[[Step], Any] | None = None,
        tol: float | None = None,
    ) -> tuple[Self, Outcome]:
        """A tuned copy and what the search found, without a report."""
        problem, weights = self._training("tune")
        search = Search(
            problem,
            weights,
            self._group,
            self._columns(rows),
            lambda w: self._scores_by(rows, *self._as_given(w)),
            objective,
            self._at,
            self._solution,
            tol=self.tol if tol is None else tol,
            patience=patience,
            max_models=max_models,
            callback=callback,
        )
        best, outcome = search.run()
        return self._copy(problem, weights, best.setting, best.solution), outcome

    def _setting(self) -> Setting:
        """The hyperparameters as arrays, in the order of the groups and classes."""
        owner, labels = type(self).__name__, self.classes_.tolist()
        names = getattr(self, "feature_names_in_", None)
        self.group_names_, self._group = grouped(self.groups, self.n_features_in_, names, owner)
        penalty = one_each(self.log_penalty, self.group_names_, 0.0, "log_penalty", owner)
        if (np.abs(penalty) > _FARTHEST).any():
            raise ValueError(
                f"{owner} needs log_penalty between {-_FARTHEST} and {_FARTHEST}; "
                f"got {self.log_penalty!r}."
            )
        cost = one_each(self.class_cost, labels, 1.0, "class_cost", owner)
        if (cost <= 0).any():
            raise ValueError(f"{owner} needs class_cost to be above 0; got {self.class_cost!r}.")
        offset = one_each(self.offset, labels, 0.0, "offset", owner)
        return Setting(penalty, np.log(cost), offset)

    def _units(self, rows: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Centre and scale of each feature; a constant one is scaled by 1."""
        if not self.standardize:
            return np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        share = weights / weights.sum()
        centre = share @ rows
        away = rows - centre
        spread = np.sqrt(np.einsum("i,ij,ij->j", share, away, away))
        constant = spread <= 1e-12 * np.abs(centre)
        return centre, np.where(constant | (spread == 0), 1.0, spread)

    def _columns(self, rows: Floats) -> Floats:
        """Features in the units of the solver, and ones."""
        columns = np.empty((len(rows), rows.shape[1] + 1))
        np.subtract(rows, self._centre, out=columns[:, :-1])
        columns[:, :-1] *= 1 / self._scale
        columns[:, -1] = 1
        return columns

    def _keep(
        self, problem: Problem, weights: Floats, setting: Setting, solution: Solution
    ) -> None:
        """Store what was learned, and what tuning needs."""
        if not solution.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in {self.max_iter} steps.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._problem, self._weights, self._solution, self._at = problem, weights, solution, setting
        self.coef_, self.intercept_ = self._as_given(solution.w)
        self.offset_ = setting.offset.copy()
        self.n_iter_ = solution.n_iter

    def _copy(
        self, problem: Problem, weights: Floats, setting: Setting, solution: Solution
    ) -> Self:
        """A fitted copy with other hyperparameters."""
        labels = self.classes_.tolist()
        tuned = self._fitted_copy(
            log_penalty=dict(zip(self.group_names_, setting.log_penalty.tolist(), strict=True)),
            class_cost=dict(zip(labels, np.exp(setting.log_cost).tolist(), strict=True)),
            offset=dict(zip(labels, setting.offset.tolist(), strict=True)),
        )
        tuned._keep(problem, weights, setting, solution)
        return tuned

    def _forget_training(self) -> Self:
        """Drop the training data: the model answers, but cannot be tuned any more."""
        del self._problem, self._weights, self._solution
        return self

    def _training(self, what: str) -> tuple[Problem, Floats]:
        check_is_fitted(self)
        if not hasattr(self, "_problem"):
            raise ValueError(
                f"{type(self).__name__}.{what} needs the training data, which a node of a program "
                "does not keep; tune the program, or fit the learner by itself."
            )
        return self._problem, self._weights

    def _as_given(self, w: Floats) -> tuple[Floats, Floats]:
        """Weights and intercepts in the units of the features."""
        coef = w[:, :-1] / self._scale
        return coef, w[:, -1] - coef @ self._centre

    def _scores_by(self, rows: Floats, coef: Floats, intercept: Floats) -> Floats:
        """A score for each class, without offset."""
        scores = rows @ coef.T + intercept
        both = scores if len(coef) > 1 else np.column_stack([np.zeros(len(scores)), scores])
        return np.asarray(both)

    def _class_scores(self, rows: Floats) -> Floats:
        """A score for each class, offset included, of an array that needs no checks."""
        return self._scores_by(rows, self.coef_, self.intercept_) + self.offset_
