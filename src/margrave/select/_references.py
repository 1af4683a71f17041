"""What selections are measured by: the best member alone, and one that always asks the right one.

"Multi-classifiers", slides on selection: selection is worth its while where it beats the single
best member, and can never beat the oracle, which is right wherever any member is.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _num_samples, check_is_fitted

from margrave import _labels
from margrave.select._regions import RegionSelectionClassifier
from margrave.select._selector import Selector


class Oracle(Selector):
    """Knows whom to ask: right wherever any member is right. It must be told the answer.

    What no way of selecting among these members can beat; for comparisons only.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a trained ensemble
        The members; an ensemble with ``prefit=True`` only.
    features : sequence (one entry per member) or mapping by name, optional
        The columns each member looks at: names, positions or a slice; None for all.
    prefit : bool, default=False
        Whether the members are trained already.
    n_jobs : int, optional
        Members trained or asked at a time.

    Attributes
    ----------
    classes_ : ndarray
        All classes.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names: as given, or by type.

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

    tuning = 2  # nothing is tuned
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
        """Train the members, unless prefit.

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

    def right(self, X: Any, y: ArrayLike) -> NDArray[np.bool_]:
        """Where each member is right.

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
        truth = column_or_1d(_labels.natural(y))
        told = _labels.decode(self._hear(X, "labels").codes, self.classes_, self.reject_label_)
        right: NDArray[np.bool_] = told == truth[:, None]
        return right

    def predict(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        """The true label where any member gives it; else what the first member says.

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
        asked = self.right(X, y).argmax(axis=1)
        codes = self._hear(X, "labels").codes[np.arange(len(asked)), asked]
        return _labels.decode(codes, self.classes_, self.reject_label_)

    def score(self, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        """Share of the samples at which any member is right.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts.

        Returns
        -------
        float
        """
        return float(np.average(self.right(X, y).any(axis=1), weights=sample_weight))


def _one_region(X: Any) -> NDArray[np.int64]:
    """The same region for all samples."""
    return np.zeros(_num_samples(X), dtype=np.int64)


class SingleBestClassifier(RegionSelectionClassifier):
    """The member that is best on the tuning samples: selection with a single region.

    What a selection should beat.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a trained ensemble
        The members; an ensemble with ``prefit=True`` only.
    criterion : "accuracy", str or callable, default="accuracy"
        What is largest for the best member, as in :class:`RegionSelectionClassifier`.
    prefit : bool, default=False
        Whether the members are trained already. The data given to ``fit`` is then the tuning data,
        which no member should have seen.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        Where the tuning data comes from otherwise, as in :class:`RegionSelectionClassifier`.
    features : sequence (one entry per member) or mapping by name, optional
        The columns each member looks at: names, positions or a slice; None for all.
    n_jobs : int, optional
        Members trained or asked at a time.
    random_state : int, RandomState or None, default=None
        How a part is drawn if `tuning` is a float.

    Attributes
    ----------
    classes_ : ndarray
        All classes.
    best_ : str
        The name of the best member.
    competence_overall_ : ndarray of shape (n_members,)
        The criterion of each.
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
