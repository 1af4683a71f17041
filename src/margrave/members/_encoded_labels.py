"""A wrapper for classifiers that accept only some types of labels.

XGBoost accepts only the labels 0 … k − 1, and CatBoost predicts more than two classes as a column
instead of a vector. :mod:`margrave.catalogue` wraps both.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted


class EncodedLabelsClassifier(ClassifierMixin, BaseEstimator):
    """A classifier fitted on the positions of the labels in `classes_`.

    The wrapped classifier validates the samples.

    Parameters
    ----------
    estimator : classifier
        The classifier to fit on the positions. Its parameters have the prefix `estimator__`, as in
        every meta-estimator of scikit-learn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimator_ : classifier
        The fitted classifier.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if the wrapped classifier keeps them.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from margrave.members import EncodedLabelsClassifier
    >>> model = EncodedLabelsClassifier(DecisionTreeClassifier())
    >>> model.fit([[0], [1]], ["ham", "spam"]).predict([[1]])
    array(['spam'], dtype='<U4')
    >>> model.estimator_.classes_
    array([0, 1])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the wrapped classifier on the positions of the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the wrapped classifier; not passed if None.

        Returns
        -------
        self : EncodedLabelsClassifier
            The fitted classifier.
        """
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, codes, **weights)
        self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the labels of samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels from `classes_`.
        """
        check_is_fitted(self)
        codes = np.ravel(self.estimator_.predict(X)).astype(np.intp)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """Predict the probabilities of the classes.

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
        proba: NDArray[np.floating[Any]] = self.estimator_.predict_proba(X)
        return proba

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
