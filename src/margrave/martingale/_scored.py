"""Classifiers that have a score for each class: what they take, and what they answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets

from margrave._indexing import select_rows
from margrave._typing import Floats
from margrave._validation import check_sample_weight


class ScoredClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of the classifiers of this room: answers from scores."""

    classes_: NDArray[Any]

    @abstractmethod
    def _scores(self, X: ArrayLike) -> Floats:
        """Logarithms of the probabilities, up to a number for each sample; shape (n, k)."""

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the scores, offset included.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes the log-odds of the second; with more one score for each class.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probabilities of the classes, offset included.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            A softmax of the scores.
        """
        probabilities: Floats = softmax(self._scores(X), axis=1)
        return probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Of the largest score, the first of equals.
        """
        answers = np.argmax(self._scores(X), axis=1)
        labels: NDArray[Any] = self.classes_[answers]
        return labels

    def _fitted_copy(self, **params: Any) -> Self:
        """A copy with other parameters that has learned the same."""
        other: Self = clone(self).set_params(**params)
        fitted = {name: value for name, value in vars(self).items() if name not in vars(other)}
        other.__dict__.update(fitted)
        return other

    def _weighed(
        self, rows: Any, labels: NDArray[Any], sample_weight: ArrayLike | None
    ) -> tuple[Any, NDArray[Any], Floats]:
        """Samples, labels and weights without those of weight 0."""
        check_classification_targets(labels)
        if sample_weight is None:
            return rows, labels, np.ones(len(labels))
        weights = check_sample_weight(sample_weight, len(labels), f"{type(self).__name__}.fit")
        kept = np.flatnonzero(weights)
        return select_rows(rows, kept), labels[kept], weights[kept]

    def _coded(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Set the classes, of which there are at least two, and return those of the samples."""
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__}.fit needs y with at least two classes; "
                f"got one class, {self.classes_.tolist()[0]!r}."
            )
        return codes
