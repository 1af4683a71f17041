"""References for selection: the single best member, which it should beat, and the oracle.

"Multi-classifiers", slides on selection. The oracle is correct wherever any member is, so no
selection among the same members can beat it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from margrave import _labels
from margrave._indexing import count_rows
from margrave.select._base import BaseSelector
from margrave.select._regions import RegionSelectionClassifier


class Oracle(BaseSelector):
    """A selector that knows the labels: it is correct wherever any member is.

    No selection among the same members is more accurate. Use it for comparisons only.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a fitted ensemble
        The members; an ensemble with ``prefit=True`` only.
    features : sequence (one entry per member) or mapping by name, optional
        The columns that each member uses: names, positions or a slice; None for all.
    prefit : bool, default=False
        Whether the members are fitted already.
    n_jobs : int, optional
        Number of members fitted or predicting at a time.

    Attributes
    ----------
    classes_ : ndarray
        All classes.
    estimators_ : list
        The fitted members.
    named_estimators_ : Bunch
        The fitted members by name.
    member_names_ : list of str
        The members' names; their types, numbered, by default.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from margrave.select import Oracle
    >>> X, y = np.zeros((4, 1)), np.array([0, 1, 1, 2])
    >>> always = [DummyClassifier(strategy="constant", constant=c) for c in (0, 1)]
    >>> Oracle(always).fit(X, y).score(X, y)
    0.75
    """

    tuning = 2  # not used: there is no tuning set
    space = None

    def __init__(
        self,
        estimators: Any,
        *,
        features: Any = None,
        prefit: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.features = features
        self.prefit = prefit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the members, unless prefit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        labels = self._start(X, y)
        weight = self._checked_weight(sample_weight, len(labels))
        if self.prefit:
            self._take_prefit(X, fit_params)
        else:
            params = self._routed(weight, fit_params)
            self._keep(self._train(X, labels, params), labels)
        self.reject_label_ = self._checked_reject_label()
        return self

    def correct(self, X: Any, y: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each member is correct on each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_members)
        """
        check_is_fitted(self, "estimators_")
        check_consistent_length(X, y)
        labels = column_or_1d(_labels.natural(y))
        codes = self._predictions(X, "labels").codes
        predicted = _labels.decode(codes, self.classes_, self.reject_label_)
        correct: NDArray[np.bool_] = predicted == labels[:, None]
        return correct

    def predict(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        """Return the true label where any member predicts it, else the first member's prediction.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        selected = self.correct(X, y).argmax(axis=1)
        codes = self._predictions(X, "labels").codes[np.arange(len(selected)), selected]
        return _labels.decode(codes, self.classes_, self.reject_label_)

    def score(self, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        """Return the fraction of the samples on which any member is correct.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights.

        Returns
        -------
        float
        """
        return float(np.average(self.correct(X, y).any(axis=1), weights=sample_weight))


def _one_region(X: Any) -> NDArray[np.int64]:
    """Return the same region for all samples."""
    return np.zeros(count_rows(X), dtype=np.int64)


class SingleBestClassifier(RegionSelectionClassifier):
    """The member that is best on the tuning set: selection with a single region.

    Use it as a baseline for the other selectors.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a fitted ensemble
        The members; an ensemble with ``prefit=True`` only.
    criterion : "accuracy", str or callable, default="accuracy"
        The best member has the largest criterion, as in :class:`RegionSelectionClassifier`.
    prefit : bool, default=False
        Whether the members are fitted already. The data passed to ``fit`` is then the tuning set,
        which should not include training samples of any member.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        The tuning set if `prefit` is False, as in :class:`RegionSelectionClassifier`.
    features : sequence (one entry per member) or mapping by name, optional
        The columns that each member uses: names, positions or a slice; None for all.
    n_jobs : int, optional
        Number of members fitted or predicting at a time.
    random_state : int, RandomState or None, default=None
        Seed of the split if `tuning` is a float.

    Attributes
    ----------
    classes_ : ndarray
        All classes.
    best_ : str
        The name of the best member.
    competence_overall_ : ndarray of shape (n_members,)
        The criterion of each member.
    estimators_, named_estimators_, member_names_, n_features_in_, feature_names_in_
        As in :class:`RegionSelectionClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from margrave.select import SingleBestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SingleBestClassifier([DummyClassifier(), GaussianNB()]).fit(X, y).best_
    'gaussiannb'
    """

    regions = staticmethod(_one_region)
    n_regions = None
    space = None

    def __init__(
        self,
        estimators: Any,
        criterion: Any = "accuracy",
        *,
        prefit: bool = False,
        tuning: Any = 5,
        features: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.criterion = criterion
        self.prefit = prefit
        self.tuning = tuning
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def best_(self) -> str:
        """The name of the best member."""
        check_is_fitted(self, "estimators_")
        return self.member_elsewhere_
