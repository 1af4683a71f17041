"""Smoothed bagging: bagging with Gaussian noise added to the bootstrap samples.

Nair (2015), section 4, fits a member on a bootstrap sample, or on one with Gaussian noise, and
averages the members by equation (2). The paper does not define the size of the noise. Here its
standard deviation is proportional to that of each feature, so the result does not depend on the
units of the features.

`BaggingVariant` draws the bootstrap samples and averages the members; this module adds the noise.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from margrave._typing import AnyFloats
from margrave._validation import check_parameters, is_classifier_or_none, is_count, is_number
from margrave.members._bagging import BaggedMember, BaggingVariant


class SmoothedBaggingClassifier(BaggingVariant):
    """Bagging with Gaussian noise added to the bootstrap samples (the smoothed bootstrap).

    Each member is fitted on rows drawn with replacement, plus noise: normal, independent for each
    row and feature, with a standard deviation of `noise` times that of the feature in the bootstrap
    sample. So copies of a row differ, which matters most for members that depend on single rows,
    such as deep trees and nearest neighbours. The prediction is the mean of the members'
    probabilities, or the fraction of their votes if they have no probabilities [1]_.

    Parameters
    ----------
    estimator : classifier, default=None
        The member to fit on each bootstrap sample; a decision tree if None.
    n_estimators : int, default=10
        Number of members.
    noise : float, default=0.1
        Standard deviation of the noise, in standard deviations of the feature. 0 is bagging. Every
        feature that varies gets noise, so encode categories in the member (in a pipeline) if they
        should stay as they are.
    max_samples : int or float, default=1.0
        Rows to draw for a member: a number, or a fraction of the rows passed to `fit`.
    n_jobs : int, default=None
        Number of parallel jobs of `fit` and the predictions, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Seed of the bootstrap samples, of the noise and of the members.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimators_ : list of classifiers
        The fitted members. As in scikit-learn's bagging, their classes are the positions of the
        labels in `classes_`.
    bagging_ : BaggingClassifier
        The ensemble of the members.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if `X` has names that are all strings.

    Notes
    -----
    `sample_weight` sets the probabilities of drawing the rows, as in scikit-learn's bagging (1.8
    and later). Its scale does not matter: the number of rows to draw depends on `max_samples` only.

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

    def _bagged(self) -> BaggedMember:
        member = DecisionTreeClassifier() if self.estimator is None else self.estimator
        return _SmoothedMember(member, self.noise)

    def _check_parameters(self) -> None:
        is_scale = is_number(self.noise) and 0 <= self.noise < np.inf
        n_drawn = self.max_samples
        is_fraction = isinstance(n_drawn, float | np.floating) and 0 < n_drawn <= 1
        rules = {
            "estimator": ("a classifier or None", is_classifier_or_none(self.estimator)),
            "n_estimators": ("an integer of at least 1", is_count(self.n_estimators)),
            "noise": ("a finite number of at least 0", is_scale),
            "max_samples": (
                "an integer of at least 1 or a float above 0 and at most 1",
                is_count(n_drawn) or is_fraction,
            ),
        }
        check_parameters(self, rules)


class _SmoothedMember(BaggedMember):
    """A member that adds noise to the rows before it fits the base classifier.

    `fit` has no `sample_weight`, because bagging passes a bootstrap sample as integer weights to a
    member that has it, and as repeated rows to one that has not. Only repeated rows can have
    different noise.
    """

    def __init__(
        self, estimator: Any, noise: float, random_state: int | np.random.RandomState | None = None
    ) -> None:
        self.estimator = estimator
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: AnyFloats, y: NDArray[Any]) -> Self:
        rng = check_random_state(self.random_state)
        self.estimator_ = clone(self.estimator).fit(add_noise(X, self.noise, rng), y)
        return self


def add_noise(X: AnyFloats, noise: float, rng: np.random.RandomState) -> AnyFloats:
    """Return x + noise · s · ε, with ε ~ N(0, 1) and s the standard deviation of each feature.

    Constant features and missing values do not change.
    """
    # A constant feature is recognised by its extremes, because its s is not always 0 in floating
    # point. fmax and fmin ignore NaN; for a feature that is all missing the comparison is false.
    varies = np.fmax.reduce(X, axis=0) > np.fmin.reduce(X, axis=0)
    varying = X[:, varies]
    smoothed = X.copy()
    smoothed[:, varies] += noise * np.nanstd(varying, axis=0) * rng.standard_normal(varying.shape)
    return smoothed
