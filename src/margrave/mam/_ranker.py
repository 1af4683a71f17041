"""The maximal-average-margin ranker of Pelckmans et al. (2008), section 4, (19) to (22).

The ranker orders samples by m(x) of (22), the direction with the largest average margin over pairs
of samples (19), (20). The direction is a sum of φ(x_i) − φ(x_j) over all pairs with y_i > y_j, in
which φ(x_i) occurs as often as its rank r_i (21): the pairs are never formed. With weights s a pair
counts s_i s_j times, and φ(x_i) occurs s_i r_i times with r_i = Σ_j s_j sign(y_i − y_j).

The paper selects widths by cross-validation. Here leave-one-out is exact and needs one pass:
without sample i the ranks of the others are r_j − s_i sign(y_j − y_i), so the score of i is

    S_i = Σ_{j ≠ i} s_j (r_j − s_i sign(y_j − y_i)) K(x_j, x_i),

the kernel sum of (22) and one more with signs. S_i is not divided by the length of the ranker
without i: each of the n lengths is a sum over all pairs. With a feature map φ, S_i is a product of
φ(x_i) with cumulative sums over the samples in order, O(n · n_components).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from margrave._typing import AnyFloats, Codes, Floats
from margrave._validation import check_parameters, check_sample_weight, is_number
from margrave.mam._features import (
    FeatureSelection,
    RandomFeatures,
    are_equal,
    feature_products,
    feature_sums,
    mean_row,
    precision,
    squared_lengths,
)
from margrave.mam._kernels import Kernel, KernelFunction, KernelName
from margrave.mam._leave_one_out import stratified_rows
from margrave.mam._parameters import (
    LARGEST_SEED,
    ROWS_FOR_WIDTHS,
    candidate_gammas,
    feature_rules,
    has_vector,
    is_linear,
    is_precomputed,
    validate_rows,
)
from margrave.mam._sums import (
    LevelWeights,
    is_flat,
    leave_one_out_sums,
    slices,
    weighted_sums,
)

_EPSILON = float(np.finfo(np.float64).eps)
_TIE = 1e-12
_DIRECTIONS = 32  # at a time: a few megabytes for the samples that select a width
_FEW_LEVELS = 100


class MAMRanker(RegressorMixin, BaseEstimator):
    """Maximal average margin for ranks: order samples as their responses are ordered.

    The direction in feature space with the largest average margin between pairs of samples [1]_ has
    a closed form, m(x) = (1/λn) Σ r_i K(x_i, x) with the ranks r of the responses
    (:func:`rank_transform`): one sort and one sum, no iterations. Only the order of the responses
    counts, so they may be grades, as numbers, or measurements.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian", "precomputed"} or callable, default="rbf"
        The kernel, as in :func:`kernel_sum`. "linear" keeps one vector, `coef_`, instead of the
        samples. A callable must be symmetric and positive definite. With "precomputed", `X` has
        kernel values, as in scikit-learn's SVC: of shape (n_samples, n_samples) in `fit`, of all
        pairs, and later of shape (n_samples, n_training); samples that are not numbers, such as
        strings, need this.
    gamma : {"loo", "scale"} or float, default="loo"
        The width: 1/σ of the paper. "loo" selects it by leave-one-out; "scale" is 1 over the
        number of features times their variance, as in scikit-learn, or for "laplacian" times their
        standard deviation. "linear" and callables do not use it.
    gammas : array-like of float, optional
        The candidates of "loo"; by default fifteen powers of 4 around "scale".
    degree : int, default=3
        Degree of the polynomial kernel (γ x·z + coef0)^degree.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    n_components : int, optional
        The number of random features that approximate the RBF or Laplacian kernel, rounded up to
        an even number; `coef_` then replaces the samples. For many samples, and for those that do
        not fit in memory. The linear kernel needs none.
    random_state : int, RandomState instance or None, default=None
        Seed for random features, and for the samples that select their width.
    n_jobs : int, optional
        Number of threads; all cores that the process may use if None or -1. Results do not depend
        on it.
    backend : {"auto", "numpy", "torch"}, default="auto"
        The library that computes kernel sums, as in :func:`kernel_sum`: "torch" is PyTorch, on a
        GPU if there is one, for leave-one-out and for predictions. Random features and the linear
        kernel always use numpy.

    Attributes
    ----------
    ranks_ : ndarray of shape (n_samples,)
        The ranks r of the training samples, with the sign of (21) corrected. Not after a fit on
        Dask collections.
    rank_error_ : float
        The largest error of a midrank, as a fraction of n. 0 in memory, and on Dask collections
        with at most 200,000 different responses.
    lambda_ : float
        λ, which normalises the direction; also the total margin of all pairs, divided by n. 0 if
        the kernel does not distinguish the samples, and then every prediction is 0.
    coef_ : ndarray of shape (n_features,)
        The direction, for the linear kernel; for random features of shape (n_components,).
    X_fit_, dual_coef_ : ndarrays of shapes (n_fit, n_features) and (n_fit,)
        For the other kernels the training samples of weight above 0, and the coefficients of
        K(x_i, x); with "precomputed" only the coefficients, of all samples. Samples in float32 stay
        so, unless the width is so large that float32 would lose the differences between kernel
        values.
    gamma_ : float or None
        The width in use; None for kernels without one.
    gammas_ : ndarray of shape (n_gammas,)
        The widths that were compared. The linear kernel has neither this attribute nor the next
        two.
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
    and the ranker with these ranks scores i. The score is not divided by the length of that ranker
    (all of them would take O(n³)) but by λn of the ranker with all samples. The selected width has
    the largest τ; of equal ones it is the widest. A sample is left out with all its weight, and τ
    ignores weights: with weights, "loo" differs from repeating rows.

    Random features have the precision of the samples: for samples in float32 they are computed in
    float32, which is faster. Their width is selected on at most 5,000 samples, by exact
    leave-one-out with the features.

    :func:`margrave.scale.fit` fits the linear kernel or random features on Dask collections in two
    passes. The direction is that of the same samples in memory, up to `rank_error_` and rounding.
    With more than 5,000 samples the width is selected on other samples than in memory, and may
    differ; with more than 1,600 features they are fewer, as many as fit into 64 MB, but at least
    1,000.

    If the width is so large that the kernel's values equal 1 in double precision, λ is 0.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", Advances in Neural Information Processing Systems 20, 2008, section
       4, (19) to (22).

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
        kernel: KernelName | KernelFunction = "rbf",
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
        """Compute the direction, and select its width.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples, without missing values; sparse with the linear kernel or random
            features.
        y : array-like of shape (n_samples,)
            Responses, of which only the order counts, with at least two different values.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; equal if None. Samples of weight 0 are left out.

        Returns
        -------
        self : object
            The fitted ranker.
        """
        check_ranker(self)
        check_responses(y)
        rows, responses = validate_rows(self, X, y, y_numeric=True, ensure_min_samples=2)
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(responses), "MAMRanker.fit")
        samples = RankedSamples.of(responses, weights)
        heaviest = 0 if weights is None else np.argmax(weights)
        check_different(samples.n_levels, responses[heaviest])
        if is_linear(self.kernel):
            fit_from_rank_totals(self, _linear_totals(rows, samples, self.n_jobs), None)
        elif self.n_components is not None:
            self._fit_features(rows, responses, samples)
        else:
            self._fit_kernel(rows, responses, samples)
        self.ranks_ = samples.ranks
        return self

    def predict(self, X: ArrayLike) -> AnyFloats:
        """Compute m(x) of (22): the larger, the higher the rank of a sample.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Distances along the direction; not in the units of the responses. In float32 if `X` and
            `X_fit_` are in float32, else in float64.
        """
        check_is_fitted(self)
        rows = validate_rows(self, X, reset=False)
        if hasattr(self, "coef_"):  # the fitted form: parameters may have changed since
            return feature_products(rows, self.coef_[None], self._features, self.n_jobs)[:, 0]
        kernel = self._kernel(self.gamma_ or 1.0)
        coefficients = self.dual_coef_[:, None]
        fitted = rows if is_precomputed(self.kernel) else self.X_fit_  # then X_fit_ is not used
        sums = weighted_sums(rows, fitted, coefficients, kernel, self.backend, self.n_jobs)
        return sums[:, 0]

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Compute Kendall's τ-b between predictions and responses.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Their responses.

        Returns
        -------
        tau : float
            From −1, all pairs in the wrong order, to 1, all in the right one; 0 if all predictions
            or all responses are equal.
        """
        return kendall(check_array(y, ensure_2d=False, input_name="y"), self.predict(X))

    def _kernel(self, gamma: float) -> Kernel:
        return Kernel(self.kernel, gamma, self.degree, self.coef0)

    def _reset(self) -> None:
        """Remove the attributes of a fit with another kernel or other data."""
        of_kernel = ("X_fit_", "dual_coef_", "gammas_", "loo_scores_", "loo_predictions_")
        for name in ("coef_", "ranks_", *of_kernel):
            if hasattr(self, name):
                delattr(self, name)
        self._features: RandomFeatures | None = None
        self.rank_error_ = 0.0

    def _fit_kernel(self, rows: Any, responses: NDArray[Any], samples: RankedSamples) -> None:
        """Select the width, and keep the samples."""
        kernel = self._kernel(1.0)
        has_gamma = kernel.has_gamma
        gammas = candidate_gammas(self, rows, samples.weights) if has_gamma else np.ones(1)
        scores, lengths = kernel_leave_one_out(
            rows, samples, kernel, gammas.tolist(), self.n_jobs, self.backend
        )
        kept = samples.kept
        taus = np.array([kendall(responses[kept], each[kept]) for each in scores])
        best = first_of_best(taus)
        length = float(lengths[best])
        self._reset()
        self.gammas_, self.loo_scores_ = gammas, taus
        self.gamma_ = float(gammas[best]) if has_gamma else None
        self.loo_predictions_ = scores[best] / (length or 1.0)
        is_wide = rows.dtype == np.float32 and is_flat(rows, self._kernel(self.gamma_ or 1.0))
        self.dual_coef_ = samples.coefficients / (length or np.inf)
        if not is_precomputed(self.kernel):  # whose X has columns of samples of weight 0 too
            self.X_fit_ = np.array(rows[kept], dtype=np.float64 if is_wide else rows.dtype)
            self.dual_coef_ = self.dual_coef_[kept]
        self.lambda_ = float(np.ldexp(length / samples.total_weight, samples.exponent))

    def _fit_features(self, rows: Any, responses: NDArray[Any], samples: RankedSamples) -> None:
        """Draw random features, select their width, and compute the direction."""
        rng = check_random_state(self.random_state)
        seed = rng.randint(LARGEST_SEED)
        gammas = candidate_gammas(self, rows, samples.weights)
        kept = samples.kept
        known = rows if isinstance(kept, slice) or kept.all() else rows[kept]
        weights = None if samples.weights is None else samples.weights[kept]
        selection = select_rank_features(
            self, known, responses[kept], weights, gammas, mean_row(known), seed, rng
        )
        c = samples.coefficients
        vector = feature_sums(rows, c[:, None], selection.features, self.n_jobs)[0]
        size = float(np.linalg.norm(c))
        totals = RankTotals(
            vector, size, len(c), samples.total_weight, samples.exponent, dtype=precision(rows)
        )
        fit_from_rank_totals(self, totals, selection)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = has_vector(self)
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


def check_ranker(ranker: MAMRanker) -> None:
    """Raise an error for the first parameter whose value is not allowed."""
    check_parameters(ranker, feature_rules(ranker))


def check_responses(y: Any) -> None:
    """Raise an error for responses that are labels, not numbers, or pandas categories."""
    values = np.asarray(y)
    if y is None or values.dtype.kind not in "USO":
        return
    if not all(is_number(one) or one is None for one in values.ravel()):
        raise ValueError(
            "MAMRanker.fit needs y to be numbers, which have an order; got other labels. "
            "MAMOrdinalClassifier takes them, with their order."
        )


def check_different(n_values: int, one: Any) -> None:
    """Raise an error for responses that are all equal."""
    if n_values < 2:
        raise ValueError(
            f"MAMRanker.fit needs y with at least two different values; got only {one.item()!r}."
        )


def rank_transform(y: ArrayLike, sample_weight: ArrayLike | None = None) -> Floats:
    """Compute ranks around 0: r_i = Σ_j s_j sign(y_i − y_j).

    Without weights, r_i is the number of smaller values minus the number of larger ones. It is
    twice the midrank (equal values have the mean of their ranks) minus n + 1: one sort suffices.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Numbers; only their order counts.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights s; all 1 if None.

    Returns
    -------
    ranks : ndarray of shape (n_samples,)
        Between −Σs and Σs. Multiplied by the weights, they sum to 0.

    Notes
    -----
    This is equation (21) of Pelckmans et al. (2008) [1]_ with its sign corrected. As printed,
    Σ_j sign(y_j − y_i), the largest response has the lowest rank, and the ranker (22) would order
    samples backwards.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", Advances in Neural Information Processing Systems 20, 2008, section
       4.

    Examples
    --------
    >>> from margrave.mam import rank_transform
    >>> rank_transform([10, 30, 20, 30])
    array([-3.,  2., -1.,  2.])
    >>> rank_transform([10, 30, 20, 30], sample_weight=[5, 1, 1, 1])
    array([-3.,  6.,  3.,  6.])
    """
    # As an array: scikit-learn converts objects in an array to numbers, but not those in a list.
    values = check_array(np.asarray(y), ensure_2d=False, dtype="numeric", input_name="y")
    if values.ndim != 1:
        raise ValueError(
            f"rank_transform needs y with one number for each sample; got shape {values.shape}."
        )
    weights = None
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, len(values), "rank_transform")
    return Levels.of(values).ranks(weights)


@dataclass(frozen=True)
class Levels:
    """Samples in increasing order, and where each new value begins."""

    order: NDArray[np.intp]  # (n_samples,): the samples, lowest first
    starts: NDArray[np.intp]  # (n_levels,): the first position in `order` of each value

    @classmethod
    def of(cls, y: NDArray[Any]) -> Levels:
        """Sort once; all other steps are O(n)."""
        order = np.argsort(y)
        ordered = y[order]
        rises = np.empty(len(y), dtype=bool)
        rises[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=rises[1:])
        return cls(order, np.flatnonzero(rises))

    @property
    def sizes(self) -> NDArray[np.intp]:
        """The number of samples with each value."""
        return np.diff(self.starts, append=len(self.order))

    def to_samples(self, values: NDArray[Any]) -> NDArray[Any]:
        """Expand one number for each value to one for each sample."""
        each = np.empty(len(self.order), dtype=values.dtype)
        distinct = len(values) == len(each)
        each[self.order] = values if distinct else np.repeat(values, self.sizes)
        return each

    def ranks(self, weights: Floats | None) -> Floats:
        """Compute r_i = Σ_j s_j sign(y_i − y_j): the weight below i minus that above."""
        if weights is None:
            below = self.starts.astype(np.float64)
            upto = below + self.sizes
            total = float(len(self.order))
        else:
            sums = np.append(0.0, np.cumsum(weights[self.order]))
            below = sums[self.starts]
            upto = np.append(below[1:], sums[-1])
            total = sums[-1]
        ranks: Floats = self.to_samples(below + upto - total)
        return ranks


@dataclass(frozen=True)
class RankedSamples:
    """The ranks and weights of training samples.

    Weights are divided by a power of two, so that their products neither overflow nor vanish.
    """

    levels: Levels  # the order of the responses
    weights: Floats | None  # (n_samples,): the divided weights s; None if all are 1
    coefficients: Floats  # (n_samples,): how often φ(x_i) occurs in the direction: s_i r_i
    ranks: Floats  # (n_samples,): r of (21), with the original weights
    exponent: int  # the power of two

    @classmethod
    def of(cls, y: NDArray[Any], weights: Floats | None) -> RankedSamples:
        """Sort the samples and rank them."""
        levels = Levels.of(y)
        if weights is None:
            ranks = levels.ranks(None)
            return cls(levels, None, ranks, ranks, 0)
        exponent = int(np.frexp(weights.max())[1])
        scaled = np.ldexp(weights, -exponent)
        ranks = levels.ranks(scaled)
        return cls(levels, scaled, scaled * ranks, np.ldexp(ranks, exponent), exponent)

    @property
    def all_weights(self) -> Floats:
        """The divided weights; ones if there are none."""
        return np.ones(len(self.ranks)) if self.weights is None else self.weights

    @property
    def kept(self) -> NDArray[np.bool_] | slice:
        """Selects the samples with a weight above 0."""
        return slice(None) if self.weights is None else self.weights > 0

    @property
    def n_levels(self) -> int:
        """The number of different responses with a weight above 0."""
        if self.weights is None:
            return len(self.levels.starts)
        sums = np.add.reduceat(self.weights[self.levels.order], self.levels.starts)
        return int(np.count_nonzero(sums))

    @property
    def total_weight(self) -> float:
        """n, or the sum of the divided weights."""
        return len(self.ranks) if self.weights is None else float(self.weights.sum())


def kendall(y: NDArray[Any], scores: NDArray[Any]) -> float:
    """Compute Kendall's τ-b; 0 where it is not defined, as for scores that are all equal."""
    check_consistent_length(y, scores)
    if len(y) < 2:
        return 0.0
    found = float(kendalltau(y, scores).statistic)
    return found if np.isfinite(found) else 0.0


def first_of_best(taus: Floats) -> int:
    """Find the largest, of those that differ by rounding the first."""
    return int(np.argmax(taus >= taus.max() - _TIE))


def kernel_leave_one_out(
    X: Any,
    samples: RankedSamples,
    kernel: Kernel,
    gammas: Sequence[float],
    n_jobs: int | None,
    backend: str,
) -> tuple[Floats, Floats]:
    """Compute S_i and the length of the ranker for each width, with one pass over all pairs.

    The length ‖Σ c_i φ(x_i)‖ = √(cᵀΩc) is that of the ranker with all samples; 0 if it is rounding,
    and then all S_i are 0.
    """
    levels = samples.levels
    rows = kernel.take(X, levels.order)
    c = samples.coefficients[levels.order]
    s = samples.all_weights[levels.order]
    places = np.repeat(np.arange(len(levels.starts), dtype=np.float64), levels.sizes)
    signed = LevelWeights(places, s)
    sums = leave_one_out_sums(rows, c[:, None], kernel, gammas, signed, n_jobs, backend)
    lengths = np.empty(len(gammas))
    for step, gamma in enumerate(gammas):
        diagonal = replace(kernel, gamma=gamma).diagonal(rows)
        squared = float(c @ (sums[step, :, 0] + c * diagonal))
        size = float(np.abs(c) @ np.sqrt(np.abs(diagonal)))
        lengths[step] = _square_root(squared, _rounding(len(c)) * size**2)
    scores = np.empty(sums.shape[:2])
    scores[:, levels.order] = (sums[:, :, 0] - s * sums[:, :, 1]) * (lengths[:, None] > 0)
    return scores, lengths


def _rounding(n: int) -> float:
    """Bound the rounding error of n numbers that cancel, relative to the sum of their sizes."""
    return 4 * _EPSILON * float(np.sqrt(n))


def _square_root(squared: float, smallest: float) -> float:
    """Compute a length from its square; 0 if that is rounding."""
    if not np.isfinite(squared):
        raise ValueError(
            "MAMRanker.fit needs kernel values whose sums are finite; got larger ones. "
            "Scale the features."
        )
    if squared < -smallest:
        raise ValueError(
            "MAMRanker.fit needs a positive definite kernel; "
            f"got one in which the ranker's squared length is {squared}."
        )
    return float(np.sqrt(squared)) if squared > smallest else 0.0


@dataclass(frozen=True)
class RankTotals:
    """The sum over all samples that determines the direction of a ranker with a vector."""

    vector: Floats  # (n_features,): Σ c_i φ(x_i)
    # The norm of the coefficients c; for the linear kernel, times the norm of all samples.
    size: float
    n: int  # number of samples
    total_weight: float  # Σ s_i
    exponent: int  # the power of two by which the weights were divided
    rank_error: float = 0.0  # the largest error of a midrank, as a fraction of n
    # The precision of random features; None for the linear kernel.
    dtype: np.dtype[Any] | None = None

    @property
    def length(self) -> float:
        """The length of the vector, 0 if it is rounding."""
        if self.dtype is not None:
            norm = float(np.linalg.norm(self.vector))
            return norm if norm > 32 * float(np.finfo(self.dtype).eps) * self.size else 0.0
        largest = float(np.abs(self.vector).max())
        if not np.isfinite(largest):
            raise ValueError(
                "MAMRanker.fit needs X whose sums are finite; got larger values. "
                "Scale the features."
            )
        if largest == 0:
            return 0.0
        norm = largest * float(np.linalg.norm(self.vector / largest))  # squares might overflow
        return norm if norm > _rounding(self.n) * self.size or self.size == np.inf else 0.0


def _linear_totals(rows: Any, samples: RankedSamples, n_jobs: int | None) -> RankTotals:
    """Sum the samples themselves."""
    c = samples.coefficients
    with np.errstate(over="ignore", invalid="ignore"):  # `RankTotals.length` checks the sums
        vector = feature_sums(rows, c[:, None], None, n_jobs)[0]
        size = np.linalg.norm(rows.data if issparse(rows) else rows) * np.linalg.norm(c)
    return RankTotals(vector, float(size), len(c), samples.total_weight, samples.exponent)


def fit_from_rank_totals(
    ranker: MAMRanker, totals: RankTotals, selection: FeatureSelection | None
) -> None:
    """Fit a ranker from a sum over samples, with random features or (None) the linear kernel."""
    length = totals.length
    ranker._reset()
    ranker.coef_ = totals.vector / length if length else np.zeros_like(totals.vector)
    ranker.lambda_ = float(np.ldexp(length / totals.total_weight, totals.exponent))
    ranker.rank_error_ = totals.rank_error
    ranker.gamma_ = None
    if selection is not None:
        ranker._features = selection.features
        ranker.gamma_, ranker.gammas_ = selection.gamma, selection.gammas
        if selection.scores is not None:
            ranker.loo_scores_ = selection.scores


def ranker_for_prediction(ranker: MAMRanker) -> MAMRanker:
    """Copy a fitted ranker without the training state, which predictions do not need."""
    light = copy(ranker)
    for name in ("ranks_", "loo_predictions_"):
        light.__dict__.pop(name, None)
    return light


def select_rank_features(
    ranker: MAMRanker,
    X: Any,
    responses: NDArray[Any],
    weights: Floats | None,
    gammas: Floats,
    centre: Floats,
    seed: int,
    rng: np.random.RandomState,
) -> FeatureSelection:
    """Draw random features for each candidate γ, and select the one with the largest τ.

    Some samples determine τ, by leave-one-out; of equal values the widest kernel is selected.
    """
    kernel, n_components = str(ranker.kernel), ranker.n_components or 1
    some = rows_for_widths(responses, rng)
    candidates = [
        RandomFeatures.draw(kernel, gamma, centre, n_components, seed) for gamma in gammas.tolist()
    ]
    samples = RankedSamples.of(responses[some], None if weights is None else weights[some])
    order = samples.levels.order
    rows, ordered = X[some][order], responses[some][order]
    scores = [feature_leave_one_out(rows, samples, features) for features in candidates]
    taus = np.array([kendall(ordered, each) for each in scores])
    index = first_of_best(taus)
    return FeatureSelection(candidates[index], gammas, index, taus)


def rows_for_widths(responses: NDArray[Any], rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draw samples to select a width on, in order; some of each level if there are few levels."""
    n = len(responses)
    levels = Levels.of(responses)
    if len(levels.starts) <= _FEW_LEVELS:
        places: Codes = levels.to_samples(np.arange(len(levels.starts)))
        return stratified_rows(places, ROWS_FOR_WIDTHS, rng)
    if n <= ROWS_FOR_WIDTHS:
        return np.arange(n)
    return np.sort(rng.permutation(n)[:ROWS_FOR_WIDTHS])


def feature_leave_one_out(rows: Any, samples: RankedSamples, features: RandomFeatures) -> Floats:
    """Compute S_i for rows in increasing order of their responses, some directions at a time.

    All are 0 if the rows differ by no more than rounding.
    """
    levels = samples.levels
    c = samples.coefficients[levels.order]
    s = samples.all_weights[levels.order]
    places = np.repeat(np.arange(len(levels.starts)), levels.sizes)
    scores = -c  # minus its own term, where ‖φ(x)‖ = 1
    squared_mean = 0.0
    half = features.directions.shape[1]
    for some in slices(half, _DIRECTIONS):
        part = replace(features, directions=features.directions[:, some])
        phi = part.transform(rows).astype(np.float64) * np.sqrt((some.stop - some.start) / half)
        weighted = phi if samples.weights is None else phi * s[:, None]
        signed, total = _signed_sums(np.add.reduceat(weighted, levels.starts, axis=0))
        scores += phi @ (c @ phi) - s * np.einsum("ij,ij->i", phi, signed[places])
        squared_mean += float(np.square(total / s.sum()).sum())
    return np.zeros_like(scores) if are_equal(squared_mean, precision(rows)) else scores


def _signed_sums(sums: Floats) -> tuple[Floats, Floats]:
    """Compute Σ_j sign(l_j − l) of sums by level, and their total."""
    upto = np.cumsum(sums, axis=0)
    return upto[-1] - 2 * upto + sums, upto[-1]


def leave_one_out_predictions(
    ranker: MAMRanker, X: Any, y: NDArray[Any], weights: Floats | None
) -> Floats:
    """Compute the predictions for the training samples without each; `fit` may have stored them.

    For the linear kernel they are computed from sums over each level, O(n · n_levels).
    """
    if not is_linear(ranker.kernel):
        stored: Floats = ranker.loo_predictions_
        return stored
    samples = RankedSamples.of(y, weights)
    totals = _linear_totals(X, samples, ranker.n_jobs)
    length = totals.length
    vector = totals.vector if length else np.zeros_like(totals.vector)
    n, n_levels = len(samples.ranks), len(samples.levels.starts)
    s = samples.all_weights
    places = samples.levels.to_samples(np.arange(n_levels))
    members = csr_array((s, (places, np.arange(n))), shape=(n_levels, n))
    sums = members @ X
    signed, _ = _signed_sums(sums.toarray() if issparse(sums) else sums)
    own = feature_products(X, vector[None], None)[:, 0]
    others = feature_products(X, signed, None)[np.arange(n), places]
    scores = own - samples.coefficients * squared_lengths(X, None) - s * others
    return np.asarray(scores / (length or np.inf))
