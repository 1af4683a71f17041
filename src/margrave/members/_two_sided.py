"""One class against the others: what the boosted scorers share.

RankBoost and Modest AdaBoost (`_rankboost`, `_modest`) score two classes, the positive one above
the negative. With more classes each one is scored against all the others, and the largest score
wins. This file takes the samples, makes those problems and turns scores into labels; a scorer
supplies the learning of one problem and its scores.
"""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave._typing import Floats
from margrave._validation import Rules, check_parameters, check_sample_weight


def shares(weights: Floats) -> Floats:
    """The weights divided by their sum."""
    divided: Floats = weights / weights.sum()
    return divided


class TwoSidedClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of the scorers: `fit`, `decision_function` and `predict` for any number of classes.

    A subclass has `_rules`, `_learn` and `_score`. A *side* is one problem: its samples are True
    where they are of the positive class. Two classes make one side, the second against the first.
    """

    @abstractmethod
    def _rules(self) -> Rules:
        """Every parameter with what it may be, in words, and whether it is."""

    @abstractmethod
    def _learn(self, X: Floats, sides: NDArray[np.bool_], weights: Floats) -> None:
        """Learn every row of `sides`; the weights are above 0."""

    @abstractmethod
    def _score(self, X: Floats) -> Floats:
        """Scores of shape (n_samples, n_sides), above 0 for the positive class."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn to score the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples, without missing values.
        y : array-like of shape (n_samples,)
            Their labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, up to a factor; equal if None. Samples of weight 0 are left out, and every
            class needs one above 0.

        Returns
        -------
        self : object
            The trained classifier.
        """
        check_parameters(self, self._rules())
        rows, labels = validate_data(self, X, y, dtype=np.float64, order="F")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__}.fit needs y with at least two classes; "
                f"got one class, {self.classes_.tolist()[0]!r}."
            )
        weights = self._checked_weights(sample_weight, codes)
        kept = weights > 0
        if not kept.all():
            rows, codes, weights = rows[kept], codes[kept], weights[kept]
        positives = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        self._learn(rows, np.array([codes == code for code in positives]), weights)
        return self

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one score a sample, above 0 for the second of `classes_`; with more
            one score for each class.
        """
        check_is_fitted(self)
        scores = self._score(validate_data(self, X, reset=False, dtype=np.float64))
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label that the scores speak for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            With two classes the second where the score is above 0; with more the class with the
            largest score, the first of equals.
        """
        scores = self.decision_function(X)
        codes = np.argmax(scores, axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def _checked_weights(self, sample_weight: ArrayLike | None, codes: NDArray[np.intp]) -> Floats:
        """One finite weight a sample, none negative, with a sum above 0 in every class."""
        if sample_weight is None:
            return np.ones(len(codes))
        weights = check_sample_weight(sample_weight, len(codes), f"{type(self).__name__}.fit")
        # Sums of finite numbers may still overflow, and only their ratios matter.
        weights = np.asarray(weights / weights.max())
        sums = np.bincount(codes, weights=weights)
        if not sums.all():
            empty = self.classes_[np.argmin(sums)]
            raise ValueError(
                f"{type(self).__name__}.fit needs sample_weight that is not all zero in any class; "
                f"got only zeros for the class {empty.tolist()!r}."
            )
        return weights
