"""Bagging with Gaussian noise: the smoothed bootstrap.

Survey of Ensemble Classifiers (Nair, 2015), section 4: a member is trained on a resample drawn with
replacement, or on one to which Gaussian noise was added; equation (2) averages the members. The
survey leaves the size of the noise open. Here it is a share of each feature's standard deviation,
so that the result does not depend on the units of the features.

`BaggingClassifier` of scikit-learn draws the resamples and averages the members; this file adds
the noise.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import BaggingClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave._validation import check_parameters, check_sample_weight, is_count


def smooth(
    X: NDArray[np.floating[Any]], noise: float, rng: np.random.RandomState
) -> NDArray[np.floating[Any]]:
    """Return x + noise · s · ε, with ε from N(0, 1) and s each feature's standard deviation in X.

    A feature with one value has s = 0 and stays as it is; a missing value stays missing.
    """
    # fmax and fmin skip NaN. Comparing them, and not s with 0, because s of a constant is not
    # always 0 in floating point; a feature that is all missing compares false.
    varies = np.fmax.reduce(X, axis=0) > np.fmin.reduce(X, axis=0)
    moving = X[:, varies]
    smoothed = X.copy()
    smoothed[:, varies] += noise * np.nanstd(moving, axis=0) * rng.standard_normal(moving.shape)
    return smoothed


class _SmoothedMember(ClassifierMixin, BaseEstimator):
    """One member: adds noise to the rows it is given, then fits the base classifier on them.

    `fit` takes no `sample_weight`, and must not: bagging hands over a resample as integer weights
    to a member that takes weights, and as repeated rows to one that does not. Only repeated rows
    can each get noise of their own.
    """

    def __init__(
        self, estimator: Any, noise: float, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.estimator = estimator
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: NDArray[np.floating[Any]], y: NDArray[Any]) -> Self:
        rng = check_random_state(self.random_state)
        self.estimator_ = clone(self.estimator).fit(smooth(X, self.noise, rng), y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        labels: NDArray[Any] = self.estimator_.predict(X)
        return labels

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: NDArray[Any]) -> NDArray[Any]:
        proba: NDArray[Any] = self.estimator_.predict_proba(X)
        return proba


class SmoothedBaggingClassifier(ClassifierMixin, BaseEstimator):
    """Bagging whose resamples get Gaussian noise (the smoothed bootstrap).

    Each member is trained on rows drawn with replacement, to every one of which noise is added:
    normal, independent for each row and feature, with standard deviation `noise` times that of the
    feature in the resample. Copies of a row thus differ, which matters most for members that
    follow single rows, such as deep trees and nearest neighbours. The answer is the mean of the
    members' probabilities, or the share of their votes where they have no probabilities [1]_.

    Parameters
    ----------
    estimator : classifier, default=None
        The member that is trained on every resample; a decision tree if None.
    n_estimators : int, default=10
        How many members.
    noise : float, default=0.1
        Standard deviation of the noise, in standard deviations of the feature. 0 is plain bagging.
        Noise goes to every feature that varies, so encode categories in the member (in a
        pipeline) if they should stay whole.
    max_samples : int or float, default=1.0
        Rows to draw for a member: a count, or a share of the rows given to `fit`.
    n_jobs : int, default=None
        Jobs in parallel for `fit` and the predictions, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Seed of the resampling, of the noise and of the members.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimators_ : list of classifiers
        The trained members. As in scikit-learn's bagging they know the labels by their positions
        in `classes_`.
    bagging_ : BaggingClassifier
        The ensemble that holds them.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` has names that are all strings.

    Notes
    -----
    `sample_weight` sets the chances of the rows to be drawn, as in scikit-learn's bagging (1.8 and
    later). Its scale does not matter: the number of rows drawn depends on `max_samples` alone.

    References
    ----------
    .. [1] A. V. Nair, "Survey of Ensemble Classifiers", 2015, section 4.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from margrave.members import SmoothedBaggingClassifier
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = SmoothedBaggingClassifier(noise=0.2, random_state=0).fit(X, y)
    >>> len(model.estimators_)
    10
    >>> model.predict([[-1, 0.5], [2, 0]])
    array([0, 1])
    """

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        noise: float = 0.1,
        max_samples: int | float = 1.0,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.noise = noise
        self.max_samples = max_samples
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the members.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples; not changed. Missing values are allowed where the members allow them.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Chances of the rows to be drawn, up to a factor; equal if None.

        Returns
        -------
        self : SmoothedBaggingClassifier
            The trained ensemble.
        """
        self._check_parameters()
        rows, labels = validate_data(self, X, y, **self._accepted())
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(rows), "SmoothedBaggingClassifier.fit")
            sample_weight = weights / weights.max()  # chances, of which the sum must be finite
        self.bagging_ = BaggingClassifier(
            _SmoothedMember(self._base(), self.noise),
            self.n_estimators,
            max_samples=self._n_draws(len(rows)),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(rows, labels, sample_weight=sample_weight)
        self.estimators_ = [member.estimator_ for member in self.bagging_.estimators_]
        self.classes_ = self.bagging_.classes_
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label with the largest mean probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            One label a sample.
        """
        proba = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[np.argmax(proba, axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the mean of the members' probabilities, equation (2) of the survey.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, **self._accepted())
        proba: NDArray[np.float64] = self.bagging_.predict_proba(rows)
        return proba

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self._base()).input_tags.allow_nan
        return tags

    def _base(self) -> Any:
        return DecisionTreeClassifier() if self.estimator is None else self.estimator

    def _accepted(self) -> dict[str, Any]:
        """What `validate_data` lets pass: floats, missing ones where the members take them."""
        missing = get_tags(self).input_tags.allow_nan
        return {
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": "allow-nan" if missing else True,
        }

    def _n_draws(self, n_rows: int) -> int:
        """Rows to draw, as a count: bagging itself would take a share of the sum of weights."""
        if is_count(self.max_samples):
            return int(self.max_samples)
        return max(1, int(self.max_samples * n_rows))

    def _check_parameters(self) -> None:
        rules = {
            "estimator": ("a classifier or None", _is_classifier(self._base())),
            "n_estimators": ("an integer of at least 1", is_count(self.n_estimators)),
            "noise": ("a finite number of at least 0", _is_scale(self.noise)),
            "max_samples": (
                "an integer of at least 1 or a float above 0 and at most 1",
                is_count(self.max_samples) or _is_share(self.max_samples),
            ),
        }
        check_parameters(self, rules)


def _is_classifier(value: Any) -> bool:
    is_instance = hasattr(value, "__sklearn_tags__") and not isinstance(value, type)
    return is_instance and is_classifier(value)


def _is_scale(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and bool(0 <= value < np.inf)


def _is_share(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(0 < value <= 1)
