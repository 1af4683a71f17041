"""The base class of RankBoost and of boosted trees, which score one class against the rest."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from margrave._typing import Flags, Floats
from margrave._validation import (
    Rules,
    check_parameters,
    encode_classes,
    read_sample_weight,
    validate_numbers,
)


class OneVsRestScorer(ClassifierMixin, BaseEstimator, ABC):
    """Base class of classifiers that learn scores for a positive class against the rest.

    Two classes are one binary problem, in which the second class is positive. With more classes
    each class is the positive class of a problem, and the class with the largest score wins. A
    subclass fits all problems in one call, because they may use the same sorted samples.
    """

    @abstractmethod
    def _parameter_rules(self) -> Rules:
        """Return the allowed values of each parameter, for `check_parameters`."""

    @abstractmethod
    def _fit_problems(self, X: Floats, positives: Flags, weights: Floats) -> None:
        """Fit the binary problems.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The samples.
        positives : ndarray of bool of shape (n_problems, n_samples)
            For each problem, which samples are positive.
        weights : ndarray of shape (n_samples,)
            Weights of the samples, above 0.
        """

    @abstractmethod
    def _score_problems(self, X: Floats) -> Floats:
        """Return scores of shape (n_samples, n_problems), above 0 for the positive class."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples, without missing values.
        y : array-like of shape (n_samples,)
            Their labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, up to a factor; equal if None. Samples of weight 0 are left out. Every class
            needs a weight above 0.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        check_parameters(self, self._parameter_rules())
        rows, labels = validate_numbers(self, X, y, dtype=np.float64, order="F")
        self.classes_, codes = encode_classes(labels, f"{type(self).__name__}.fit")
        weights = self._check_weights(sample_weight, codes)
        weighted = weights > 0
        if not weighted.all():
            rows, codes, weights = rows[weighted], codes[weighted], weights[weighted]
        problems = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        self._fit_problems(rows, np.array([codes == code for code in problems]), weights)
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one score per sample, above 0 for the second of `classes_`; with more
            one score per class.
        """
        return self._class_scores(self._score_problems(self._validate_rows(X)))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the labels of samples from their scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            With two classes the second where the score is above 0; with more the class with the
            largest score, the first one in a tie.
        """
        return self._labels_of(self.decision_function(X))

    def _validate_rows(self, X: ArrayLike) -> Floats:
        """Validate samples to predict."""
        check_is_fitted(self)
        rows: Floats = validate_numbers(self, X, reset=False, dtype=np.float64)
        return rows

    def _class_scores(self, scores: Floats) -> Floats:
        """Convert the scores of problems to the form of `decision_function`."""
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _labels_of(self, scores: Floats) -> NDArray[Any]:
        """Predict labels from scores in the form of `decision_function`."""
        codes = np.argmax(scores, axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def _check_weights(self, sample_weight: ArrayLike | None, codes: NDArray[np.intp]) -> Floats:
        """Check for finite weights, none negative, with a sum above 0 in every class."""
        if sample_weight is None:
            return np.ones(len(codes))
        weights = read_sample_weight(sample_weight, len(codes), f"{type(self).__name__}.fit")
        # Only the ratios matter, and a sum of finite weights may overflow.
        weights = np.asarray(weights / weights.max())
        sums = np.bincount(codes, weights=weights)
        if not sums.all():
            empty = self.classes_[np.argmin(sums)]
            raise ValueError(
                f"{type(self).__name__}.fit needs sample_weight that is not all zero in any class; "
                f"got only zeros for the class {empty.tolist()!r}."
            )
        return weights


def normalise(weights: Floats) -> Floats:
    """Divide weights by their sum."""
    normalised: Floats = weights / weights.sum()
    return normalised
