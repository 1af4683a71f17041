"""A mixture of experts: a gate weights the members by the place of the sample.

"Multi-classifiers", slides on selection, has one member for each region. Here the regions have soft
borders: the gate g, a softmax regression on the features, has a weight for each member i, and

    P(c | x) = Σ_i g_i(x) P_i(c | x),    g(x) = softmax(V x + b),

as in Jacobs et al. (1991). They train the members and the gate together. Here the members are
arbitrary classifiers, fitted first, and the gate maximizes the likelihood of their mixture on the
tuning set, which they were not fitted on, less a penalty:

    C Σ_n log Σ_i g_i(x_n) P_i(y_n | x_n) − ½ ‖V‖².

The gradient with respect to the i-th argument of the softmax at x_n is ``C (h_i − g_i)``, with the
posterior probability ``h_i ∝ g_i(x_n) P_i(y_n | x_n)`` that member i is the expert for the sample
(Jordan and Jacobs, 1994).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from margrave._typing import AnyFloats, Floats
from margrave._validation import check_columns, check_parameters, is_number
from margrave.select._base import BaseSelector


class MixtureOfExpertsClassifier(BaseSelector):
    """A committee that averages probabilities, with weights that depend on the sample.

    A gate, linear in the features, learns on the tuning set how to weight the members at each
    sample: ``P(c | x) = Σ_i g_i(x) P_i(c | x)``, with weights ``g(x) = softmax(V x + b)`` [1]_
    [2]_.

    Parameters
    ----------
    estimators : list of classifiers, of (name, classifier), or a fitted ensemble
        The members, with probabilities. With ``prefit=True`` this may be a fitted ensemble of
        scikit-learn, such as a BaggingClassifier or a random forest, whose members are used.
    C : float, default=0.1
        Inverse of the strength of the penalty on the gate's coefficients, as in LogisticRegression.
        With a small value the weights hardly depend on the sample.
    prefit : bool, default=False
        Whether the members are fitted already. The data passed to ``fit`` is then the tuning set,
        which should not include training samples of any member.
    tuning : int, float in (0, 1), splitter or list of folds, default=5
        The tuning set if `prefit` is False. With folds, it consists of all held-out samples with
        out-of-fold predictions, after which the members are fitted on all samples; with a float, of
        this fraction of the samples, which the members are not fitted on.
    space : transformer, optional
        Transforms samples before the gate weights them, such as a SplineTransformer for a gate that
        is not linear in the features; a clone is fitted on the tuning set. By default the columns
        are used directly, and must be numbers. Their scales do not matter.
    features : sequence (one entry per member) or mapping by name, optional
        The columns that each member uses: names, positions or a slice; None for all. The gate uses
        all columns.
    n_jobs : int, optional
        Number of members fitted or predicting at a time.
    random_state : int, RandomState or None, default=None
        Seed of the split if `tuning` is a float.

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
    coef_ : ndarray of shape (n_members, n_columns)
        The gate's coefficients V, for the columns of the space.
    intercept_ : ndarray of shape (n_members,)
        The gate's constants b.
    n_iter_ : int
        Number of iterations of the solver, L-BFGS.
    n_tuning_ : int
        Number of samples in the tuning set.
    space_ : transformer or None
        The fitted `space`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The penalty applies to the coefficients of standardized columns, and not to the constants: with
    a small `C` the weights are those of the mixture with the largest likelihood among all mixtures
    with constant weights. The likelihood is not concave; the solver starts at equal weights and
    uses no random numbers. Samples of weight 0 are not part of the tuning set; of the other sample
    weights only the ratios matter.

    The gate uses the members' probabilities, not only their labels: a member that is correct but
    unsure has a smaller weight than a selector by accuracy would give it.

    References
    ----------
    .. [1] R. A. Jacobs, M. I. Jordan, S. J. Nowlan, G. E. Hinton, "Adaptive mixtures of local
       experts", Neural Computation 3, 1991.
    .. [2] M. I. Jordan, R. A. Jacobs, "Hierarchical mixtures of experts and the EM algorithm",
       Neural Computation 6, 1994.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from margrave.select import MixtureOfExpertsClassifier
    >>> X = np.random.default_rng(0).normal(size=(800, 2))
    >>> y = np.where(X[:, 0] > 0, X[:, 1] > 0, np.abs(X[:, 1]) < 0.7)
    >>> X_fit, y_fit, right = X[:400], y[:400], X[:400, 0] > 0
    >>> members = [
    ...     ("right", LogisticRegression().fit(X_fit[right], y_fit[right])),
    ...     ("left", GaussianNB().fit(X_fit[~right], y_fit[~right])),
    ... ]
    >>> model = MixtureOfExpertsClassifier(members, prefit=True).fit(X[400:], y[400:])
    >>> model.gate([[1, 1], [-1, 0]]).round(1)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """

    def __init__(
        self,
        estimators: Any,
        C: float = 0.1,
        *,
        prefit: bool = False,
        tuning: Any = 5,
        space: Any = None,
        features: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.C = C
        self.prefit = prefit
        self.tuning = tuning
        self.space = space
        self.features = features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit the members, unless prefit, and fit the gate on the tuning set.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members, and weights of the likelihood.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        self._check_parameters()
        labels = self._start(X, y)
        tuning = self._predict_tuning_set(X, labels, sample_weight, fit_params, "values")
        self._fit_space(tuning.X)
        n_tuning = len(tuning.labels)
        gate = fit_gate(
            self._to_space(tuning.X),
            tuning.predictions.proba[np.arange(n_tuning), :, tuning.labels],
            np.ones(n_tuning) if tuning.weight is None else tuning.weight,
            self.C,
        )
        self.coef_, self.intercept_, self.n_iter_ = gate.coef, gate.intercept, gate.n_iter
        self.n_tuning_ = n_tuning
        return self

    def gate(self, X: Any) -> Floats:
        """Return the weight of each member for each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_members)
            None negative, with a sum of 1 for each sample.
        """
        self._check_fitted()
        check_columns(self, X)
        weights: Floats = softmax(self._to_space(X) @ self.coef_.T + self.intercept_, axis=1)
        return weights

    def predict_proba(self, X: Any) -> Floats:
        """Predict probabilities: the members' probabilities, averaged with the gate's weights.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        pairs = zip(self.gate(X).T, self._each_proba(X), strict=True)
        mixture: Floats = sum(weight[:, None] * proba for weight, proba in pairs)
        return np.clip(mixture, 0, 1, out=mixture)

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

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            {
                "C": ("a finite number above 0", is_number(self.C) and 0 < self.C < np.inf),
                "prefit": ("True or False", isinstance(self.prefit, bool | np.bool_)),
            },
        )
        self._check_probabilities()


# The gate

# Below it probabilities have no relative precision. If all members are below it at a sample, no
# weights explain the sample, and it does not influence the gate.
_SMALLEST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class Gate:
    """A fitted gate: coefficients (L, p), constants (L,) and the number of iterations."""

    coef: Floats
    intercept: Floats
    n_iter: int


def fit_gate(X: Any, likelihood: AnyFloats, weight: AnyFloats, C: float) -> Gate:
    """Fit the gate by L-BFGS, from equal weights.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, p)
        The samples in the space.
    likelihood : ndarray of shape (n, L)
        The probability that each member predicts for the true class.
    weight : ndarray of shape (n,)
        Sample weights.
    C : float
        Inverse of the strength of the penalty.
    """
    total, shape = weight.sum(), (likelihood.shape[1], X.shape[1] + 1)
    scaler = StandardScaler(with_mean=not issparse(X)).fit(X, sample_weight=weight)
    # Columns of this size make V larger, so that L-BFGS also converges with a strong penalty.
    penalty = 1 / (1 + C * total)
    size = np.sqrt(1 - penalty)
    columns = scaler.transform(X) * size
    log_likelihood = np.log(np.maximum(likelihood, _SMALLEST_PROBABILITY))

    def loss(parameters: Floats) -> tuple[float, Floats]:
        """Return the mean penalized loss and its gradient."""
        V, b = np.split(parameters.reshape(shape), [-1], axis=1)
        log_gate = log_softmax(columns @ V.T + b.T, axis=1)
        log_joint = log_gate + log_likelihood
        log_mixture = logsumexp(log_joint, axis=1, keepdims=True)
        posterior = np.exp(log_joint - log_mixture)
        by_argument = (np.exp(log_gate) - posterior) * (weight / total)[:, None]
        value = penalty * (V**2).sum() / 2 - weight @ log_mixture[:, 0] / total
        slope = (columns.T @ by_argument).T + penalty * V
        return value, np.column_stack([slope, by_argument.sum(axis=0)]).ravel()

    options = {"maxiter": 1000, "gtol": 1e-6}
    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)
    if not found.success:
        warnings.warn(
            f"The gate of MixtureOfExpertsClassifier did not converge ({found.message}). Lower C.",
            ConvergenceWarning,
            stacklevel=3,
        )
    V, b = np.split(found.x.reshape(shape), [-1], axis=1)
    coef = V * size / scaler.scale_
    shift = coef @ scaler.mean_ if scaler.with_mean else 0.0
    return Gate(coef, b[:, 0] - shift, int(found.nit))
