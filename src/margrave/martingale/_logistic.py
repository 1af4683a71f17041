"""Multinomial logistic regression whose hyperparameters can be tuned to a preference.

Kulkarni et al. (2016), sections 4.4 and 4.5: the learner at the nodes of a martingale program, and
a classifier of its own. `_newton` solves equation (3), `_tuning` searches the hyperparameters; this
file has the estimator, and reads its hyperparameters in every form that a user may pass.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from margrave._typing import Codes, Floats
from margrave._validation import check_parameters, is_count, is_number, validate_numbers
from margrave.confusion import Objective, Preference
from margrave.martingale._base import ScoreClassifier
from margrave.martingale._learners import TunableLearner
from margrave.martingale._newton import LogisticProblem
from margrave.martingale._request import (
    SearchResult,
    Step,
    Tuning,
    check_limits,
    check_min_gain,
    check_preference,
    make_objective,
    report,
)
from margrave.martingale._tuning import (
    FittedProblem,
    Hyperparameters,
    HyperparameterSearch,
    expand,
)

_MAX_LOG_PENALTY = 100  # e^-100 is no penalty, e^100 removes a feature


class Hypergradient(NamedTuple):
    """Derivatives of a function with respect to the hyperparameters.

    Attributes
    ----------
    log_penalty : ndarray of shape (n_groups,)
        With respect to the log-penalty of each group (of each feature, without groups).
    log_cost : ndarray of shape (n_classes,)
        With respect to the logarithm of each class's cost.

    Examples
    --------
    >>> import numpy as np
    >>> from margrave.datasets import load
    >>> from margrave.martingale import TunableLogistic
    >>> X, y = load("pima", return_X_y=True)
    >>> model = TunableLogistic().fit(X, y)
    >>> by_weights = np.append(X.mean(axis=0), 1.0)[None]  # of the mean score
    >>> gradient = model.hypergradient(by_weights)
    >>> gradient.log_penalty.shape, gradient.log_cost.round(2)
    ((8,), array([-0.98,  0.98]))
    """

    log_penalty: Floats
    log_cost: Floats


class TunableLogistic(ScoreClassifier, TunableLearner):
    """Logistic regression with a penalty per feature, a cost per class and an offset.

    Minimises ``½ Σ e^{d_j} w_j² + Σ_i c_{y_i} s_i · logloss_i`` over the weights of standardised
    features; intercepts carry no penalty. :meth:`tune` changes the hyperparameters until the
    confusion matrix of a tuning set meets a preference.

    Parameters
    ----------
    log_penalty : float, array-like or mapping, default=0.0
        d: one number for all features, one for each group, or a mapping from names of groups.
    groups : mapping of name to features, default=None
        Features (positions or column names) with a common penalty; each is in one group. If None,
        every feature has its own.
    class_cost : array-like or mapping, default=None
        c: a positive cost for each class, in the order of ``classes_`` or by label; 1 if None.
    offset : array-like or mapping, default=None
        Added to the logarithm of each class's probability; 0 if None. It is part of every
        prediction, probabilities included.
    standardize : bool, default=True
        Whether to centre and scale the features first. ``coef_`` is in the units of X.
    tol : float, default=1e-7
        Tolerance: Newton's squared decrement, as a fraction of the sum of weights.
    max_iter : int, default=100
        Largest number of steps of the solver.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, in the units of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts, without the offset.
    offset_ : ndarray of shape (n_classes,)
        The offset.
    group_names_ : list of str
        Names of the groups, in the order of their log-penalties.
    n_iter_ : int
        Number of steps of the solver.
    tuning_ : Tuning or None
        The result of the last :meth:`tune`; None before it.

    Notes
    -----
    A fitted model keeps its training data, as a nearest-neighbour classifier does, because tuning
    trains it again.

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
    before:    fp 36, fn 39, 75 errors in 1,151
    after:     fp 20, fn 74, 94 errors in 1,151
    by offset: fp 20, fn 96, 116 errors in 1,151
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
            The fitted classifier.
        """
        self._check_parameters()
        rows, labels = validate_numbers(self, X, y, dtype=np.float64)
        samples = self._encode_samples(rows, labels, sample_weight)
        return self._fit_codes(samples.X, samples.codes, samples.weights, samples.classes)

    def _fit_codes(self, X: Floats, codes: Codes, weights: Floats, classes: NDArray[Any]) -> Self:
        self.n_features_in_ = X.shape[1]
        self.classes_ = classes
        self.group_names_, group = self._read_groups(X.shape[1])
        hyperparameters = self._hyperparameters()
        self._centre, self._scale = self._units(X, weights)
        problem = LogisticProblem(self._columns(X), codes, len(classes))
        penalty, costed = expand(hyperparameters, group, codes, weights)
        solution = problem.solve(penalty, costed, None, self.tol, self.max_iter)
        self._store(FittedProblem(problem, weights, group, hyperparameters, solution))
        self.tuning_: Tuning | None = None
        return self

    def _scores(self, X: ArrayLike) -> Floats:
        check_is_fitted(self)
        return self._class_scores(validate_numbers(self, X, reset=False, dtype=np.float64))

    def hypergradient(self, dg_dw: ArrayLike) -> Hypergradient:
        """Return the derivatives of a function g of the weights by the hyperparameters.

        They follow by implicit differentiation at the solution, with the factor of the last Newton
        step.

        Parameters
        ----------
        dg_dw : array-like of shape (n_rows, n_features + 1)
            Derivatives of g by ``coef_`` and, in the last column, ``intercept_``.

        Returns
        -------
        Hypergradient
            Derivatives by the log-penalties and the log-costs.
        """
        fitted = self._require_training_data("hypergradient")
        derivatives = np.asarray(dg_dw, dtype=np.float64)
        if derivatives.shape != fitted.solution.w.shape:
            raise ValueError(
                f"{type(self).__name__}.hypergradient needs dg_dw of shape "
                f"{fitted.solution.w.shape}, an intercept last in each row; "
                f"got {derivatives.shape}."
            )
        # coef = w / scale and intercept = b − w · centre / scale, as in `_in_feature_units`.
        by_w = (derivatives[:, :-1] - derivatives[:, -1:] * self._centre) / self._scale
        return Hypergradient(*fitted.hypergradient(np.column_stack([by_w, derivatives[:, -1]])))

    def tune(
        self,
        preference: Preference | str,
        X_tune: ArrayLike,
        y_tune: ArrayLike,
        *,
        positive: Any = None,
        patience: int = 4,
        max_models: int = 20,
        min_gain: float = 3.0,
        callback: Callable[[Step], Any] | None = None,
    ) -> TunableLogistic:
        """Return a copy whose predictions for the tuning set meet a preference.

        The first candidate is this model with its offset moved. If that has errors, the search
        over penalties and costs looks for a model that meets the preference with fewer errors in
        total, and trains ``patience`` more models after each improvement. The best of them is
        returned if it is clearly better than the first. A preference that is already met changes
        nothing. With more than two classes the search for the offset goes class by class and may
        miss the best one.

        Parameters
        ----------
        preference : Preference or str
            The requested bounds on the confusion matrix of the tuning set.
        X_tune, y_tune : array-like
            Samples of every class that the model was not trained on.
        positive : label, optional
            The class that ``fp`` and ``fn`` refer to; by default the second of two.
        patience : int, default=4
            Number of models to train after the last improvement.
        max_models : int, default=20
            Largest number of models to train; 0 moves the offset only.
        min_gain : float, default=3.0
            A model has to have fewer errors than the moved offset by more than so many standard
            errors of the difference; a smaller shortfall always counts. With 0 any improvement
            counts; on small tuning sets most are chance, and the requested limit is then often
            missed on new samples.
        callback : callable, optional
            Called with a :class:`Step` at the start of the search and after each model. If it
            returns a true value, the search stops.

        Returns
        -------
        TunableLogistic
            A model whose parameters are the tuned hyperparameters, with the result in ``tuning_``.
            If no model meets the preference, the nearest one, with a :class:`NotMetWarning`.
        """
        self._require_training_data("tune")
        owner = f"{type(self).__name__}.tune"
        check_preference(preference, owner)
        check_limits(owner, patience=patience, max_models=max_models)
        check_min_gain(min_gain, owner)
        rows = validate_numbers(self, X_tune, reset=False, dtype=np.float64)
        objective = make_objective(preference, y_tune, self.classes_, positive, len(rows), owner)
        tuned, result = self._tune_node(
            objective,
            rows,
            patience=patience,
            max_models=max_models,
            min_gain=min_gain,
            callback=callback,
        )
        tuned.tuning_ = report(objective, result, owner)
        return tuned

    # What a program needs of a learner that it tunes (`TunableLearner`)

    @property
    def _fits_arrays(self) -> bool:
        return type(self).fit is TunableLogistic.fit

    def _class_parameters(self, labels: Sequence[Any]) -> dict[str, Floats]:
        self._check_parameters()
        owner = type(self).__name__
        return {
            "class_cost": as_vector(self.class_cost, labels, 1.0, "class_cost", owner),
            "offset": as_vector(self.offset, labels, 0.0, "offset", owner),
        }

    def _fit_node(self, X: Floats, codes: Codes, weights: Floats, feature_names: Any) -> Self:
        if feature_names is not None:
            self.feature_names_in_ = feature_names
        classes, own_codes = np.unique(codes, return_inverse=True)
        return self._fit_codes(X, own_codes, weights, classes)

    def _class_scores(self, X: Floats) -> Floats:
        return self._scores_without_offset(X, self.coef_, self.intercept_) + self.offset_

    def _tune_node(
        self,
        objective: Objective,
        X: Floats,
        *,
        patience: int = 4,
        max_models: int,
        tol: float | None = None,
        min_gain: float = 0.0,
        callback: Callable[[Step], Any] | None = None,
    ) -> tuple[Self, SearchResult]:
        search = HyperparameterSearch(
            self._require_training_data("tune"),
            self._columns(X),
            lambda w: self._scores_without_offset(X, *self._in_feature_units(w)),
            objective,
            tol=self.tol if tol is None else tol,
            patience=patience,
            max_models=max_models,
            min_gain=min_gain,
            callback=callback,
        )
        best, result = search.run()
        return self._with_hyperparameters(best.fitted), result

    def _with_offset(self, offset: Floats) -> Self:
        own = dict(zip(self.classes_.tolist(), offset.tolist(), strict=True))
        moved = self._fitted_copy(offset=own)
        moved.offset_ = np.array(list(own.values()))
        return moved

    def without_training_data(self) -> Self:
        """Return a copy that predicts, but can no longer be tuned.

        Returns
        -------
        TunableLogistic
            The same predictions, in a smaller file.
        """
        light = copy(self)
        light._fitted = None
        return light

    # Internals

    def _check_parameters(self) -> None:
        """Validate the parameters that can be validated without data."""
        check_parameters(
            self,
            {
                "tol": ("a number above 0", is_number(self.tol) and self.tol > 0),
                "max_iter": ("a whole number of at least 1", is_count(self.max_iter)),
            },
        )

    def _read_groups(self, n_columns: int) -> tuple[list[str], Codes]:
        """The names of the groups, and the group of each column."""
        names = getattr(self, "feature_names_in_", None)
        return read_groups(self.groups, n_columns, names, type(self).__name__)

    def _hyperparameters(self) -> Hyperparameters:
        """The hyperparameters as arrays, in the order of the groups and classes."""
        owner, labels = type(self).__name__, self.classes_.tolist()
        penalty = as_vector(self.log_penalty, self.group_names_, 0.0, "log_penalty", owner)
        if (np.abs(penalty) > _MAX_LOG_PENALTY).any():
            raise ValueError(
                f"{owner} needs log_penalty between {-_MAX_LOG_PENALTY} and {_MAX_LOG_PENALTY}; "
                f"got {self.log_penalty!r}."
            )
        cost = as_vector(self.class_cost, labels, 1.0, "class_cost", owner)
        if (cost <= 0).any():
            raise ValueError(f"{owner} needs class_cost to be above 0; got {self.class_cost!r}.")
        offset = as_vector(self.offset, labels, 0.0, "offset", owner)
        return Hyperparameters(penalty, np.log(cost), offset)

    def _units(self, X: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Centre and scale of each feature; the scale of a constant one is 1."""
        if not self.standardize:
            return np.zeros(X.shape[1]), np.ones(X.shape[1])
        fraction = weights / weights.sum()
        centre = fraction @ X
        away = X - centre
        spread = np.sqrt(np.einsum("i,ij,ij->j", fraction, away, away))
        constant = spread <= 1e-12 * np.abs(centre)
        return centre, np.where(constant | (spread == 0), 1.0, spread)

    def _columns(self, X: Floats) -> Floats:
        """Features in the units of the solver, and ones."""
        columns = np.empty((len(X), X.shape[1] + 1))
        np.subtract(X, self._centre, out=columns[:, :-1])
        columns[:, :-1] *= 1 / self._scale
        columns[:, -1] = 1
        return columns

    def _store(self, fitted: FittedProblem) -> None:
        """Set the fitted attributes, and keep what tuning needs."""
        if not fitted.solution.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in {self.max_iter} steps.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._fitted: FittedProblem | None = fitted
        self.coef_, self.intercept_ = self._in_feature_units(fitted.solution.w)
        self.offset_ = fitted.hyperparameters.offset.copy()
        self.n_iter_ = fitted.solution.n_iter

    def _with_hyperparameters(self, fitted: FittedProblem) -> Self:
        """A fitted copy with other hyperparameters and their solution."""
        labels, found = self.classes_.tolist(), fitted.hyperparameters
        tuned = self._fitted_copy(
            log_penalty=dict(zip(self.group_names_, found.log_penalty.tolist(), strict=True)),
            class_cost=dict(zip(labels, np.exp(found.log_cost).tolist(), strict=True)),
            offset=dict(zip(labels, found.offset.tolist(), strict=True)),
        )
        tuned._store(fitted)
        return tuned

    def _require_training_data(self, method: str) -> FittedProblem:
        check_is_fitted(self)
        if self._fitted is None:
            raise ValueError(
                f"{type(self).__name__}.{method} needs the training data, which this model does "
                "not keep, like all nodes of programs and accepted models; tune the program, or "
                "fit the learner by itself."
            )
        return self._fitted

    def _in_feature_units(self, w: Floats) -> tuple[Floats, Floats]:
        """Weights and intercepts in the units of the features."""
        coef = w[:, :-1] / self._scale
        return coef, w[:, -1] - coef @ self._centre

    def _scores_without_offset(self, X: Floats, coef: Floats, intercept: Floats) -> Floats:
        scores = X @ coef.T + intercept
        both = scores if len(coef) > 1 else np.column_stack([np.zeros(len(scores)), scores])
        return np.asarray(both)


# Hyperparameters in the forms that a user may pass


def as_vector(value: Any, keys: Sequence[Any], default: float, name: str, owner: str) -> Floats:
    """One number for each key: from one number, from as many, or from a mapping of some keys."""
    if value is None:
        return np.full(len(keys), default)
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in keys]
        if unknown:
            raise ValueError(
                f"{owner} needs {name} for {_list_keys(keys)}; got one for {unknown[0]!r}."
            )
    entries = [value.get(key, default) for key in keys] if isinstance(value, Mapping) else value
    try:
        numbers = np.asarray(entries, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.shape not in ((), (len(keys),)) or not np.isfinite(numbers).all():
        raise ValueError(
            f"{owner} needs {name} to be a finite number, or one for each of {_list_keys(keys)}; "
            f"got {value!r}."
        )
    return np.array(np.broadcast_to(numbers, len(keys)))


def _list_keys(keys: Sequence[Any], limit: int = 6) -> str:
    texts = [repr(key) for key in list(keys)[:limit]]
    return ", ".join(texts) + (f", ... ({len(keys)} in all)" if len(keys) > limit else "")


def read_groups(
    groups: Mapping[str, Any] | None,
    n_features: int,
    feature_names: Sequence[str] | None,
    owner: str,
) -> tuple[list[str], Codes]:
    """Return the names of the groups and the group of each feature, which is in exactly one."""
    known = list(map(str, range(n_features) if feature_names is None else feature_names))
    if groups is None:
        return known, np.arange(n_features)
    if not isinstance(groups, Mapping) or len(set(map(str, groups))) < len(groups):
        raise ValueError(
            f"{owner} needs groups to be a mapping from different names to features; "
            f"got {groups!r}."
        )
    group = np.full(n_features, -1)
    for number, (name, features) in enumerate(groups.items()):
        if not isinstance(features, str | Iterable):
            raise ValueError(
                f"{owner} needs groups of several features each; got {features!r} in {name!r}."
            )
        for feature in [features] if isinstance(features, str) else features:
            position = _find_feature(feature, known, name, owner)
            if group[position] != -1:
                raise ValueError(
                    f"{owner} needs groups with each feature once; {feature!r} is in two."
                )
            group[position] = number
    if (group == -1).any():
        missing = known[int(np.argmin(group))]
        raise ValueError(f"{owner} needs groups with each feature once; {missing!r} is in none.")
    return list(map(str, groups)), group


def _find_feature(feature: Any, known: list[str], name: str, owner: str) -> int:
    """The position of a feature, from its name or its position."""
    if isinstance(feature, str) and feature in known:
        return known.index(feature)
    whole = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if not whole or not 0 <= feature < len(known):
        raise ValueError(
            f"{owner} needs groups of features by their name or position, 0 to {len(known) - 1}; "
            f"got {feature!r} in {name!r}."
        )
    return int(feature)
