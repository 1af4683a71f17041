"""The Bayes optimal classifier: members weighed by how well they explain data they have not seen.

Named but not worked out in "Survey of Ensemble Classifiers", section 6. Each member is a hypothesis
h with a prior P(h). On tuning data T = (x_i, y_i) that no member was trained on

    P(h | T) ∝ P(h) Π_i P(y_i | x_i, h),    computed as a sum of logarithms,

and a new sample is given ``argmax_c Σ_h P(c | x, h) P(h | T)``. A forest calls many things
impossible; one such thing that happens would rule it out for good, so probabilities are clipped
away from 0 before the logarithm.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._indexing import select_rows
from margrave._typing import Floats
from margrave.committee import Committee
from margrave.scores import Scores


def log_likelihoods(
    proba: Floats, codes: NDArray[np.int64], clip: float, sample_weight: ArrayLike | None = None
) -> Floats:
    """``Σ_i log P(y_i | x_i, h)`` of each member h.

    Parameters
    ----------
    proba : ndarray of shape (n, K, C)
        The members' probabilities.
    codes : ndarray of int, shape (n,)
        The true class of each sample.
    clip : float
        The smallest probability a class is allowed.
    sample_weight : array-like of shape (n,), optional
        How often each sample counts.
    """
    clipped = np.maximum(proba, clip)
    of_truth = clipped[np.arange(len(codes)), :, codes] / clipped.sum(axis=2)
    weights = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight)
    return np.asarray(weights @ np.log(of_truth), dtype=np.float64)


def posterior(log_likelihood: Floats, prior: Floats) -> Floats:
    """P(h | T): the prior times the likelihoods, normalised."""
    with np.errstate(divide="ignore"):  # a prior of 0 stays 0
        logs = np.log(prior) + log_likelihood
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


class BayesOptimalClassifier(Committee):
    """A committee that weighs its members by their posterior probability.

    Parameters
    ----------
    estimators : list of classifiers, or of (name, classifier)
        The members; each gives probabilities.
    prior : array-like of shape (n_members,), optional
        How probable each member is before any data; all alike if left out.
    prefit : bool, default=False
        Whether the members are trained already. The data given to ``fit`` is then the tuning data,
        which no member should have seen.
    tuning_fraction : float in (0, 1), default=0.25
        The share of the data kept from the members' training and used for the posterior; without
        effect if ``prefit``.
    clip : float in (0, 0.5), default=0.001
        The smallest probability a member may give to what happened.
    n_jobs : int, optional
        Members trained or asked at a time.
    random_state : int, RandomState or None, default=None
        How the tuning part is drawn; the same classes' shares in both parts.

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
    posterior_ : ndarray of shape (n_members,)
        P(h | T), the weight of each member.
    log_likelihoods_ : ndarray of shape (n_members,)
        How well each member explains the tuning data.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With much tuning data the posterior settles on the member with the highest likelihood: this
    weighs hypotheses of which one is right, it does not pool opinions as a vote does.

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
        """Train the members on one part (unless prefit) and weigh them on the other.

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
        """``Σ_h P(c | x, h) P(h | T)`` for each class c.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores: Scores = self._ask(X, "values")
        mixture: Floats = np.einsum("nkc,k->nc", scores.proba(), self.posterior_)
        return mixture

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        answers: NDArray[Any] = self.classes_[most_probable]
        return answers

    def _check_settings(self) -> None:
        for name, member in self._pairs():
            if not hasattr(member, "predict_proba"):
                raise ValueError(
                    f"BayesOptimalClassifier needs members with predict_proba; {name!r} "
                    f"({type(member).__name__}) has none "
                    "(sklearn.calibration.CalibratedClassifierCV adds it)."
                )
        for name, upper in (("tuning_fraction", 1.0), ("clip", 0.5)):
            value = getattr(self, name)
            if not 0 < value < upper:
                raise ValueError(
                    f"BayesOptimalClassifier needs {name} in (0, {upper:g}); got {value!r}."
                )
