"""The maximal-average-margin ranker: document 002, section 4, as a scikit-learn estimator.

"A Risk Minimization Principle for a Class of Parzen Estimators" (Pelckmans, Suykens, De Moor)
orders samples by m(x) of (22), whose direction has the largest average margin over pairs (19).
Ranks are in `_ranks`, leave-one-out in `_rank_leave_out`.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from margrave._dask.blocks import is_dask
from margrave._typing import Floats
from margrave._validation import check_parameters, check_sample_weight
from margrave.mam._features import feature_products, feature_sums
from margrave.mam._kernel_ranker import checked_rows
from margrave.mam._kernels import KernelFunction
from margrave.mam._lazy import lazily
from margrave.mam._parameters import backend_rules, components_rules, is_linear, kernel_rules
from margrave.mam._rank_blocks import BlockRanker, check_ordered
from margrave.mam._rank_leave_out import kernel_left_out, linear_left_out, vector_length
from margrave.mam._ranks import RankedSamples, first_best, kendall
from margrave.mam._sums import is_flat


class MAMRanker(BlockRanker):
    """Maximal average margin for ranks: order samples as their responses are ordered.

    Of all directions in feature space it takes the one in which the average pair of samples is
    furthest apart in the right order [1]_. That has a closed form, m(x) = (1/λn) Σ r_i K(x_i, x)
    with the ranks r of the responses (:func:`rank_transform`): one sort, one sum, no iterations.
    Only the order of the responses counts, so they may be grades, as numbers, or measurements.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian"} or callable, default="rbf"
        The kernel, as in :func:`kernel_sum`. "linear" keeps one vector, `coef_`, instead of the
        samples. One of your own must be positive definite.
    gamma : {"loo", "scale"} or float, default="loo"
        The width: 1/σ of the document. "loo" chooses it by leave-one-out; "scale" is 1 over the
        number of features times their variance, as in scikit-learn, or for "laplacian" times their
        standard deviation. Of no use to "linear" and to kernels of your own.
    gammas : array-like of float, optional
        What "loo" chooses from; by default fifteen powers of 4 around "scale".
    degree : int, default=3
        Of the polynomial kernel (γ x·z + coef0)^degree.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    n_components : int, optional
        If given, so many random features stand for the RBF or Laplacian kernel, rounded up to an
        even number, and `coef_` for the samples: for many samples, and for those that do not fit
        in memory. The linear kernel needs none.
    random_state : int, RandomState instance or None, default=None
        Seed for random features, and for the samples that choose their width.
    n_jobs : int, optional
        Threads; all cores that the process may use if None or -1. Results do not depend on it.
    backend : {"auto", "numpy", "torch"}, default="auto"
        What computes kernel sums, as in :func:`kernel_sum`: "torch" is PyTorch, on a GPU if there
        is one, for leave-one-out and for predictions. Random features and the linear kernel are
        always numpy's.

    Attributes
    ----------
    ranks_ : ndarray of shape (n_samples,)
        The ranks r of the training samples, with the sign of (21) corrected. Not from Dask.
    rank_error_ : float
        How far a midrank may be from the true one, as a share of n. 0 in memory, and from Dask
        with at most 200,000 different responses.
    lambda_ : float
        λ, which makes the direction's length 1; also the summed margin of all pairs, divided by n.
        0 if all samples are the same to the kernel, and then every prediction is 0.
    coef_ : ndarray of shape (n_features,)
        The direction, for the linear kernel; for random features with a number for each of them.
    X_fit_, dual_coef_ : ndarrays of shapes (n_fit, n_features) and (n_fit,)
        For the other kernels the training samples of weight above 0, and what K(x_i, x) is
        multiplied with. Samples in float32 stay so, unless the width is so large that float32
        would blur the differences between kernel values.
    gamma_ : float or None
        The width in use; None for kernels without one.
    gammas_ : ndarray of shape (n_gammas,)
        The widths that were compared. Not for the linear kernel, as the next two.
    loo_scores_ : ndarray of shape (n_gammas,)
        Kendall's τ of the leave-one-out predictions of each width.
    loo_predictions_ : ndarray of shape (n_samples,)
        Predictions for the training samples by rankers without them, at `gamma_`. Not with random
        features.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` has names that are all strings.

    Notes
    -----
    With sample weights s, a pair counts s_i s_j times, and n is their sum.

    Leave-one-out is exact: without sample i the ranks of the others are r_j − s_i sign(y_j − y_i),
    and i is scored by what these make of the others. Its score is not divided by the length of that
    ranker (all of them would cost O(n³)) but by λn of the ranker with all samples. Taken is the
    width with the largest τ, of equals the widest. A sample is left out with all its weight, and τ
    does not weigh samples: with weights, "loo" is not the same as repeating rows.

    Random features have the precision of the samples: for samples in float32 they are computed in
    float32, which is faster. Their width is chosen on at most 5,000 samples, by exact leave-one-out
    with the features.

    From Dask collections, with the linear kernel or random features, two passes over the samples
    learn the direction that they have in memory, up to `rank_error_` and to rounding. Of more
    than 5,000 samples others choose the width than in memory, and it may be another; with more than
    1,600 features they are fewer, as many as have 64 MB, but at least 1,000. Predictions for Dask
    collections are Dask arrays that have not been computed.

    A width so large that double precision cannot tell the kernel's values from 1 leaves nothing to
    rank by, and λ is 0.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", section 4, (19) to (22).

    Examples
    --------
    >>> import numpy as np
    >>> from margrave.mam import MAMRanker
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    >>> model = MAMRanker(kernel="linear").fit(X, [10, 20, 20, 30, 500, 900])
    >>> model.ranks_
    array([-5., -2., -2.,  1.,  3.,  5.])
    >>> model.predict([[2.5], [7.0]])
    array([2.5, 7. ])
    >>> round(MAMRanker().fit(X, [10, 20, 20, 30, 500, 900]).score(X, [1, 2, 3, 4, 5, 6]), 2)
    1.0
    """

    def __init__(
        self,
        kernel: Literal["rbf", "linear", "poly", "laplacian"] | KernelFunction = "rbf",
        *,
        gamma: Literal["loo", "scale"] | float = "loo",
        gammas: ArrayLike | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        backend: Literal["auto", "numpy", "torch"] = "auto",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.backend = backend

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the direction, and its width.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples, without missing values; sparse and from Dask with the linear kernel or
            random features.
        y : array-like or Dask collection of shape (n_samples,)
            Their responses, of which only the order counts, with at least two different values.
            Integers from Dask may not be beyond 2⁵³.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; equal if None. Samples of weight 0 are left out.

        Returns
        -------
        self : object
            The trained ranker.
        """
        rules = {**kernel_rules(self), **backend_rules(self), **components_rules(self)}
        check_parameters(self, rules)
        if is_dask(X, y, sample_weight):
            self._learn_blocks(X, y, sample_weight)
            return self
        check_ordered(y)
        rows, responses = checked_rows(self, X, y, y_numeric=True)
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(responses), "MAMRanker.fit")
        samples = RankedSamples.of(responses, weights)
        heaviest = 0 if weights is None else np.argmax(weights)
        self._check_values(samples.n_levels, responses[heaviest])
        self.ranks_, self.rank_error_ = samples.ranks, 0.0
        self._forget()
        if is_linear(self.kernel):
            length = self._fit_vector(rows, samples)
        elif self.n_components is not None:
            length = self._fit_features(rows, responses, samples)
        else:
            length = self._fit_kernel(rows, responses, samples)
        self.lambda_ = samples.average(length)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """Return m(x) of (22): the larger, the higher a sample ranks.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray or Dask array of shape (n_samples,)
            Distances along the direction; not in the units of the responses. In float32 if `X` and
            `X_fit_` are in memory and in float32, else in float64.
        """
        check_is_fitted(self)
        if is_dask(X):
            lazy: Floats = lazily(self, X, "predict", np.float64)
            return lazy
        rows = checked_rows(self, X)
        if hasattr(self, "coef_"):  # by what was fitted: parameters may have been set since
            return feature_products(rows, self.coef_[None], self._frequencies, self.n_jobs)[:, 0]
        return self._kernel_sums(rows)

    def _fit_vector(self, rows: Any, samples: RankedSamples) -> float:
        """Keep the direction itself, w = Σ c_i x_i; its length before it is made 1."""
        vector, length = _direction(rows, samples, self.n_jobs)
        self.coef_ = vector / (length or 1.0)
        self.gamma_ = self._frequencies = None
        return length

    def _fit_kernel(self, rows: Any, responses: NDArray[Any], samples: RankedSamples) -> float:
        """Keep the samples, at the best width; the direction's length before it is made 1."""
        gammas = self._gammas(rows, samples.weights)
        left_out = kernel_left_out(
            rows, samples, self._kernel(), gammas.tolist(), self.n_jobs, self.backend
        )
        kept = samples.kept
        taus = np.array([kendall(responses[kept], scores[kept]) for scores in left_out.scores])
        best = first_best(taus)
        length = float(left_out.lengths[best])
        self.gammas_, self.loo_scores_ = gammas, taus
        self.gamma_ = float(gammas[best]) if self._kernel().has_gamma else None
        self.loo_predictions_ = left_out.scores[best] / (length or 1.0)
        blurred = rows.dtype == np.float32 and is_flat(rows, self._kernel(self.gamma_))
        self.X_fit_ = np.array(rows[kept], dtype=np.float64 if blurred else rows.dtype)
        self.dual_coef_ = samples.coefficients[kept] / (length or np.inf)
        return length

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = is_linear(self.kernel) or self.n_components is not None
        return tags


def _direction(
    rows: Any, samples: RankedSamples, n_jobs: int | None = None
) -> tuple[Floats, float]:
    """Σ c_i x_i and its length; both 0 if that is rounding."""
    with np.errstate(over="ignore", invalid="ignore"):  # `vector_length` refuses what is infinite
        vector = feature_sums(rows, samples.coefficients[:, None], None, n_jobs)[0]
    length = vector_length(vector, rows, samples)
    return (vector if length else np.zeros_like(vector)), length


def loo_predictions(ranker: MAMRanker, X: Any, y: NDArray[Any], weights: Floats | None) -> Floats:
    """What a ranker would predict for its own samples without each; `fit` may have left it out."""
    if not is_linear(ranker.kernel):
        known: Floats = ranker.loo_predictions_
        return known
    samples = RankedSamples.of(y, weights)
    vector, length = _direction(X, samples, ranker.n_jobs)
    scores: Floats = linear_left_out(X, samples, vector) / (length or np.inf)
    return scores
