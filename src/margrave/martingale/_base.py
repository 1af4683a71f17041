"""The base of the package's classifiers: predictions from one score per class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from margrave._indexing import select_rows
from margrave._typing import Codes, Floats
from margrave._validation import encode_classes, read_sample_weight


class EncodedSamples(NamedTuple):
    """Training samples of weight above 0, with their classes as codes."""

    X: Any
    codes: Codes
    weights: Floats
    classes: NDArray[Any]


class ScoreClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A classifier that predicts the class with the largest score."""

    classes_: NDArray[Any]

    @abstractmethod
    def _scores(self, X: ArrayLike) -> Floats:
        """Log-probabilities up to a constant for each sample; shape (n_samples, n_classes)."""

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the scores, offset included.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the log-odds of the second; otherwise one score for each class.
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
            The softmax of the scores.
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
            The classes with the largest score; the first of several.
        """
        predictions = np.argmax(self._scores(X), axis=1)
        labels: NDArray[Any] = self.classes_[predictions]
        return labels

    def _fitted_copy(self, **params: Any) -> Self:
        """Copy the estimator with other parameters and the same fitted attributes."""
        other: Self = clone(self).set_params(**params)
        fitted = {name: value for name, value in vars(self).items() if name not in vars(other)}
        other.__dict__.update(fitted)
        return other

    def _encode_samples(
        self, X: Any, y: NDArray[Any], sample_weight: ArrayLike | None
    ) -> EncodedSamples:
        """Leave out the samples of weight 0 and encode the labels of the others."""
        owner = f"{type(self).__name__}.fit"
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = read_sample_weight(sample_weight, len(y), owner)
            kept = np.flatnonzero(weights)
            X, y, weights = select_rows(X, kept), y[kept], weights[kept]
        classes, codes = encode_classes(y, owner)
        return EncodedSamples(X, codes, weights, classes)
