"""A wrapper for classifiers that accept only some types of labels.

XGBoost accepts only the labels 0 … k − 1. CatBoost predicts more than two classes as a column
instead of a vector, and scikit-learn does not clone it if a parameter is a list.
:mod:`margrave.catalogue` wraps both.
"""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import assert_all_finite, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from margrave import _labels
from margrave._errors import ParameterError
from margrave._validation import read_sample_weight


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
        Names of the features, if `X` has names that are all strings.

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

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        eval_set: list[tuple[Any, ArrayLike]] | None = None,
        verbose: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the wrapped classifier on the positions of the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights for the wrapped classifier; not passed if None.
        eval_set : list of pairs (X, y), default=None
            Validation sets for the wrapped classifier, for example for early stopping, with labels
            that are in `y`; not passed if None.
        verbose : bool or int, default=None
            What the wrapped classifier prints, such as an error for each round; not passed if None.
        **fit_params : dict
            Other parameters of the wrapped classifier's `fit`.

        Returns
        -------
        self : EncodedLabelsClassifier
            The fitted classifier.
        """
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        if not hasattr(self.estimator, "fit"):
            owner = type(self).__name__
            raise ParameterError.of(owner, "estimator", "a classifier", self.estimator)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if sample_weight is not None:
            owner = f"{type(self).__name__}.fit"
            sample_weight = read_sample_weight(sample_weight, len(labels), owner)
        named = {
            "sample_weight": sample_weight,
            "eval_set": None if eval_set is None else self._encode_sets(eval_set),
            "verbose": verbose,
        }
        fit_params.update({name: value for name, value in named.items() if value is not None})
        self.estimator_ = _clone_estimator(self.estimator).fit(X, codes, **fit_params)
        self.n_features_in_ = self.estimator_.n_features_in_
        names = list(getattr(X, "columns", []))
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
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

    def __sklearn_clone__(self) -> Self:
        bare = copy(self)
        bare.estimator = None
        other: Self = BaseEstimator.__sklearn_clone__(bare)
        other.estimator = _clone_estimator(self.estimator)
        return other

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _encode_sets(self, eval_set: Any) -> list[tuple[Any, NDArray[np.int64]]]:
        """Replace the labels of validation sets by their positions in `classes_`."""
        owner = f"{type(self).__name__}.fit"
        pairs = eval_set if isinstance(eval_set, list) else [None]
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
            allowed = "a list of tuples (X, y)"  # the arrays themselves would fill the screen
            message = f"{owner} needs eval_set to be {allowed}; got {_describe(eval_set)}."
            raise ParameterError(message, parameter="eval_set", allowed=allowed, received=eval_set)
        return [
            (X, _labels.encode(column_or_1d(y), self.classes_, f"{owner}, eval_set"))
            for X, y in eval_set
        ]


def _describe(eval_set: Any) -> str:
    """Name the types of a malformed list of validation sets."""
    kind = type(eval_set).__name__
    if not isinstance(eval_set, list):
        return f"an object of type {kind}"
    items = [
        f"{type(one).__name__} of {len(one)}" if isinstance(one, tuple) else type(one).__name__
        for one in eval_set
    ]
    return f"a list with {', '.join(items)}"


def _clone_estimator(estimator: Any) -> Any:
    """Clone an estimator, also CatBoost's: its `get_params` copies lists, which `clone` refuses."""
    try:
        return clone(estimator)
    except RuntimeError:
        params = estimator.get_params(deep=False)
        return type(estimator)(**{name: clone(value, safe=False) for name, value in params.items()})
