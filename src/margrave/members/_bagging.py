"""Base of the variants of bagging: each changes how a member is fitted on its bootstrap sample.

scikit-learn's `BaggingClassifier` draws the bootstrap samples and averages the members.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from margrave._validation import is_count, read_sample_weight, validate_numbers


class BaggingVariant(ClassifierMixin, BaseEstimator, ABC):
    """Base class of the variants of bagging.

    A subclass has the parameters ``n_estimators``, ``n_jobs`` and ``random_state``, and supplies
    `_check_parameters` and `_bagged`, the `BaggedMember` to fit on each bootstrap sample.
    """

    n_estimators: int
    n_jobs: int | None
    random_state: Any
    max_samples: int | float = 1.0

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples; not changed. Missing values are allowed if the members allow them.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Probabilities of drawing the rows, up to a factor; equal if None.

        Returns
        -------
        self : estimator
            The fitted ensemble.
        """
        self._check_parameters()
        rows, labels = validate_numbers(self, X, y, **self._validation_options())
        if sample_weight is not None:
            weights = read_sample_weight(sample_weight, len(rows), f"{type(self).__name__}.fit")
            sample_weight = weights / weights.max()  # so that their sum is finite
        self.bagging_ = BaggingClassifier(
            self._bagged(),
            self.n_estimators,
            max_samples=self._n_draws(len(rows)),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(rows, labels, sample_weight=sample_weight)
        self.estimators_ = [bagged.estimator_ for bagged in self.bagging_.estimators_]
        self.classes_ = self.bagging_.classes_
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the label with the largest mean probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels from `classes_`.
        """
        proba = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[np.argmax(proba, axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the mean of the members' probabilities: Nair (2015), equation (2).

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
        rows = validate_numbers(self, X, reset=False, **self._validation_options())
        proba: NDArray[np.float64] = self.bagging_.predict_proba(rows)
        return proba

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self._bagged().estimator).input_tags.allow_nan
        return tags

    @abstractmethod
    def _check_parameters(self) -> None:
        """Check the parameters."""

    @abstractmethod
    def _bagged(self) -> BaggedMember:
        """Return the member to fit on each bootstrap sample."""

    def _validation_options(self) -> dict[str, Any]:
        """Return options for `validate_numbers`: missing values pass if the members allow them."""
        allow_nan = get_tags(self).input_tags.allow_nan
        return {
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": "allow-nan" if allow_nan else True,
        }

    def _n_draws(self, n_rows: int) -> int:
        """Return the number of rows to draw: bagging takes a fraction of the sum of weights."""
        if is_count(self.max_samples):
            return int(self.max_samples)
        return max(1, int(self.max_samples * n_rows))


class BaggedMember(ClassifierMixin, BaseEstimator):
    """Base class of members: ``fit`` of a subclass fits a clone of `estimator` as `estimator_`."""

    estimator: Any
    estimator_: Any

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the fitted classifier."""
        classes: NDArray[Any] = self.estimator_.classes_
        return classes

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Predict labels."""
        labels: NDArray[Any] = self.estimator_.predict(X)
        return labels

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: NDArray[Any]) -> NDArray[Any]:
        """Predict probabilities."""
        proba: NDArray[Any] = self.estimator_.predict_proba(X)
        return proba
