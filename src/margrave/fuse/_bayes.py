"""The Bayes optimal classifier: members weighted by their likelihood on data not trained on.

Nair (2015), section 6, names it without formulas. Each member is a hypothesis h with a prior P(h).
On a tuning set T = (x_i, y_i) that no member was trained on

    P(h | T) ∝ P(h) Π_i P(y_i | x_i, h),    computed as a sum of logarithms,

and the prediction for a new sample is ``argmax_c Σ_h P(c | x, h) P(h | T)``. A forest predicts
probability 0 for many classes, and one such sample would exclude it, so probabilities are clipped
away from 0 before the logarithm.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._indexing import select_rows
from margrave._typing import Floats
from margrave._validation import check_parameters, is_number
from margrave.committee import Committee
from margrave.fuse._vote import average


class BayesOptimalClassifier(Committee):
    """A committee that weights its members by their posterior probability.

    Parameters
    ----------
    estimators : list of classifiers, or of (name, classifier)
        The members, with probabilities.
    prior : array-like of shape (n_members,), optional
        The prior probability of each member; equal by default.
    prefit : bool, default=False
        Whether the members are already trained. The data passed to ``fit`` is then the tuning set,
        which no member should have been trained on.
    tuning_fraction : float in (0, 1), default=0.25
        The fraction of the samples in the tuning set, on which the posterior is computed and the
        members are not trained; ignored if ``prefit``.
    clip : float in (0, 0.5), default=0.001
        The smallest probability of a class in the likelihoods.
    n_jobs : int, optional
        The number of members that are trained or that predict in parallel.
    random_state : int, RandomState or None, default=None
        The seed of the split, which is stratified.

    Attributes
    ----------
    classes_ : ndarray
        All classes.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names, by default by type.
    posterior_ : ndarray of shape (n_members,)
        P(h | T), the weight of each member.
    log_likelihoods_ : ndarray of shape (n_members,)
        The log-likelihood of each member on the tuning set.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With a large tuning set the posterior converges to the member with the highest likelihood: the
    method assumes that one hypothesis is true, unlike a vote, which combines all members.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from margrave.fuse import BayesOptimalClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesOptimalClassifier([GaussianNB(), DummyClassifier()], random_state=0).fit(X, y)
    >>> model.posterior_.round(3)
    array([1., 0.])
    >>> model.predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        estimators: Any,
        *,
        prior: ArrayLike | None = None,
        prefit: bool = False,
        tuning_fraction: float = 0.25,
        clip: float = 1e-3,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.prior = prior
        self.prefit = prefit
        self.tuning_fraction = tuning_fraction
        self.clip = clip
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Train the members (unless prefit), and compute their posterior on the tuning set.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members, and used in their likelihoods.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        self._check_settings()
        labels = self._start(X, y)
        sample_weight = self._checked_weight(sample_weight, len(labels))
        prior = np.ones(len(self._pairs())) if self.prior is None else self._one_per_member("prior")
        rows: Any = slice(None)
        if self.prefit:
            self._take_prefit(X, fit_params)
        else:
            params = self._routed(sample_weight, fit_params)
            rows = self._train_on_a_part(X, labels, params, self.tuning_fraction, self.random_state)
        X_tune = X if self.prefit else select_rows(X, rows)
        weight_tune = None if sample_weight is None else sample_weight[rows]
        codes = _labels.encode(labels[rows], self.classes_, "y")
        proba = self._ask(X_tune, "values").proba()
        self.log_likelihoods_ = log_likelihoods(proba, codes, self.clip, weight_tune)
        self.posterior_ = posterior(self.log_likelihoods_, prior)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return ``Σ_h P(c | x, h) P(h | T)`` for each class c.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return average(self._each_proba(X), self.posterior_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        labels: NDArray[Any] = self.classes_[most_probable]
        return labels

    def _check_settings(self) -> None:
        self._check_probabilities()
        fraction, clip = self.tuning_fraction, self.clip
        rules = {
            "tuning_fraction": (
                "a number above 0 and below 1",
                is_number(fraction) and 0 < fraction < 1,
            ),
            "clip": ("a number above 0 and below 0.5", is_number(clip) and 0 < clip < 0.5),
        }
        check_parameters(self, rules)


def log_likelihoods(
    proba: Floats, codes: NDArray[np.int64], clip: float, sample_weight: ArrayLike | None = None
) -> Floats:
    """Return ``Σ_i log P(y_i | x_i, h)`` of each member h.

    Parameters
    ----------
    proba : ndarray of shape (n, K, C)
        The members' probabilities.
    codes : ndarray of int, shape (n,)
        The true class of each sample.
    clip : float
        The smallest probability of a class.
    sample_weight : array-like of shape (n,), optional
        Sample weights.
    """
    clipped = np.maximum(proba, clip)
    of_true_class = clipped[np.arange(len(codes)), :, codes] / clipped.sum(axis=2)
    weights = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight)
    return np.asarray(weights @ np.log(of_true_class), dtype=np.float64)


def posterior(log_likelihood: Floats, prior: Floats) -> Floats:
    """Return P(h | T): the prior times the likelihoods, normalized."""
    with np.errstate(divide="ignore"):  # a prior of 0 stays 0
        logs = np.log(prior) + log_likelihood
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)
