"""The maximal-average-margin classifier of Pelckmans et al. (2008), equations (4) to (7).

With the kernel itself the classifier keeps the samples, and one pass over their pairs selects the
width. With the linear kernel or random features it keeps sums, to which more samples can be added.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from margrave._errors import ParameterError
from margrave._indexing import largest_keys
from margrave._labels import encode, union
from margrave._typing import Codes, Floats
from margrave._validation import check_parameters, check_sample_weight, is_count
from margrave.mam._certainty import (
    Certainty,
    ErrorRates,
    TrainingMargins,
    Transform,
    check_delta,
    count_errors,
    held_out_scores,
    margin_bound,
    margin_levels,
    trace_bound,
)
from margrave.mam._features import (
    FeatureSelection,
    RandomFeatures,
    feature_products,
    feature_sums,
    mean_row,
    squared_lengths,
)
from margrave.mam._kernels import Kernel, KernelFunction, KernelName
from margrave.mam._leave_one_out import (
    ClassSums,
    LabelledSamples,
    LeaveOneOut,
    check_finite_sums,
    compare_features,
    evaluate_features,
    middle_of_best,
    predict_codes,
    select_width,
    stratified_rows,
)
from margrave.mam._parameters import (
    LARGEST_SEED,
    ROWS_FOR_WIDTHS,
    candidate_gammas,
    feature_rules,
    has_vector,
    is_linear,
    is_precomputed,
    validate_rows,
    width_fraction,
)
from margrave.mam._parametric import parametric_rows, select_parametric_width
from margrave.mam._sums import is_flat, weighted_sums

RESERVOIR_SIZE = 20_000
"""Rows that are kept of a stream: enough to place a threshold within a third of a percent."""

_ABOVE_1 = float(np.nextafter(1.0, 2.0))
_GROWTH = 1.1
_BOUNDED_KERNELS = ("rbf", "laplacian")
_SAMPLE_WEIGHT = (
    "The weight of a sample is its sample_weight, times the number for its class if class_weight "
    "is a dict."
)


def _has_partial_fit(classifier: Any) -> bool:
    """Whether the direction is a vector, to which samples can be added."""
    if has_vector(classifier):
        return True
    raise AttributeError(
        "MAMClassifier has partial_fit with kernel='linear' or with n_components only: with other "
        "kernels it keeps every sample."
    )


class MAMClassifier(ClassifierMixin, BaseEstimator):
    """Maximal average margin: the Parzen classifier, with a width selected by leave-one-out.

    The direction in feature space with the largest average margin has a closed form [1]_: the mean
    of the samples, each with the sign of its class. A score is a sum of kernel values,
    f(x) = (1/λn) Σ y_i K(x_i, x), and leave-one-out scores follow without another fit: they select
    the width and the threshold.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian", "precomputed"} or callable, default="rbf"
        The kernel, as in :func:`kernel_sum`. A callable must be symmetric, which `fit` checks on
        blocks of samples, and should be positive definite. If it is not, scores are still sums of
        its values, but they are not distances in a feature space, and the bounds do not hold; if
        yᵀΩy is negative, `fit` raises an error. With "precomputed", `X` has kernel values, as in
        scikit-learn's SVC: of shape (n_samples, n_samples) in `fit`, of all pairs, and later of
        shape (n_samples, n_training); samples that are not numbers, such as strings, need this.
    gamma : {"loo", "scale"} or float, default="loo"
        The width: 1/σ of the paper. "loo" selects it by leave-one-out; "scale" is 1 over the number
        of features times their variance. A wide kernel (small gamma) makes the classifier linear; a
        narrow one makes it a nearest-neighbour classifier.
    gammas : array-like of float, optional
        The candidates of "loo"; by default fifteen powers of 4, seven below and seven above the
        one nearest to "scale". Candidates that are powers of two times each other use one
        exponential and are the fastest. The range of the paper is ``1 / np.logspace(-2, 15, 18)``.
    degree : int, default=3
        Degree of the polynomial kernel (γ x·z + coef0)^degree.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    n_components : int, optional
        The number of random features that approximate the RBF or Laplacian kernel, rounded up to an
        even number. With them the time of predictions does not depend on the number of training
        samples, and there is `partial_fit`. The linear kernel needs none.
    parametric : transformer, optional
        A transformer of scikit-learn, such as ``PolynomialFeatures(1)``: its features, with an
        intercept and free coefficients, are added to the kernel part. It is fitted without labels,
        to an array: columns are selected by position, not by name. For two classes, and not with
        "linear", "precomputed" or random features. See the notes.
    class_weight : None, "balanced" or dict, default=None
        None: every sample has the same weight, as in the paper. "balanced": every class has the
        same total weight, and the direction is the difference of the class means; this is often
        better if the classes have different sizes, above all with wide kernels and random features.
        A dict has a factor for each class.
    threshold : {"accuracy", "balanced"} or None, default="accuracy"
        The method of the paper defines no intercept. The threshold has the largest leave-one-out
        accuracy or balanced accuracy; None leaves it at 0. The width is selected by the same
        criterion.
    random_state : int, RandomState instance or None, default=None
        Seed of the random features, and of the rows that are kept if there are many.
    n_jobs : int, optional
        Number of threads; all cores that the process may use if None or -1. Results do not depend
        on it.
    backend : {"auto", "numpy", "torch"}, default="auto"
        The library that computes kernel sums, as in :func:`kernel_sum`: "torch" is PyTorch, on a
        GPU if there is one, for leave-one-out and for predictions. Random features and the linear
        kernel always use numpy.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    average_margin_ : float
        The average margin of the training samples, with their weights: the objective. With
        `parametric`, of the kernel part with the residuals as labels.
    lambda_ : float
        λ, which normalises the direction. It equals the average margin; 0 if the classes have the
        same mean in feature space, and then every score is 0.
    gamma_ : float
        The width in use. None for kernels without one.
    gammas_ : ndarray
        The widths that were compared.
    loo_scores_ : ndarray
        Leave-one-out accuracy, or balanced accuracy, of each.
    threshold_ : ndarray of shape (1,) or (n_classes,)
        What `decision_function` subtracts from the scores: a threshold, or an offset per class.
    X_fit_, dual_coef_ : ndarrays of shapes (n, n_features) and (n, 1) or (n, n_classes)
        For the other kernels: the samples, and the coefficients of K(x_i, x); with "precomputed"
        only the coefficients.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The direction, for the linear kernel and for random features.
    parametric_ : transformer
        The fitted copy of `parametric`, if there is one.
    parametric_coef_ : ndarray of shape (1 + n_parametric,)
        The intercept and the coefficients of its features.
    loo_decision_ : ndarray of shape (n, 1) or (n, n_classes)
        Scores of the training samples by fits without them, minus the threshold; of those that
        were kept, if not all are. With `parametric`, c, β and the score g of a sample are those
        without it, but the scores g of the other samples, to which c is fitted, use it.
    n_seen_ : int
        Number of training samples.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With more than two classes the average of ⟨w_y, φ(x)⟩ is maximised over unit vectors
    (w_1, …, w_k) that sum to 0: the score of a class is its sum of kernel values minus the mean of
    all classes.

    With `parametric` the score is c g(x) + β·p(x), where p(x) is 1 and the features of the
    transformer. The paper mentions "other parametric parts" without a formula; this form is
    Margrave's. With free coefficients the average margin has no maximum, so the labels are replaced
    by their residuals r after least squares on p, for which all β have the same average margin. The
    kernel part g is the direction (1/λn) Σ r_i K(x_i, x), λ its average margin with the labels r,
    and least squares of the labels on the leave-one-out scores of g and on p selects c and β.
    Leave-one-out is exact for g, and selects the width and the threshold as before. Margrave
    computes no bound for this form; `certainty` reports counts on held-out samples.

    A fit needs one pass over all pairs for all widths together, in float64. Predictions are
    computed in float32 for samples in float32, unless the kernel is so wide that float32 would lose
    the differences between its values. Random features have the precision of the samples: for
    samples in float32 they are computed in float32, which is faster. With random features the width
    is selected on at most 5,000 samples, by exact leave-one-out with the features, and in
    `partial_fit` on those of the first call. The threshold is selected on at most 20,000 samples,
    drawn uniformly from all.

    Leave-one-out leaves out a sample with all its weight. The threshold depends on the class
    priors, so if one is selected the priors stay and only the class means are without the sample;
    with ``threshold=None`` the whole fit is without it.

    In `partial_fit` the direction is always that of all samples. The threshold is selected again
    whenever their number has grown by a tenth.

    :func:`margrave.scale.fit` fits the linear kernel on Dask collections in one pass over the rows,
    and random features in two. The direction is that of the same rows in memory, up to rounding.
    With more than 5,000 samples the width is selected on other samples than in memory, and with
    more than 20,000 the threshold is, so that both may differ. With many features the samples are
    fewer, as many as fit into 64 MB but at least 1,000: for the threshold with more than 400
    features, for the width with more than 1,600.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", Advances in Neural Information Processing Systems 20, 2008, sections
       2 and 3.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.mam import MAMClassifier
    >>> train, test = load("ripley_train"), load("ripley_test")
    >>> model = MAMClassifier().fit(train.data, train.target)
    >>> round(model.score(test.data, test.target), 3)
    0.919
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
        parametric: Any = None,
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        threshold: Literal["accuracy", "balanced"] | None = "accuracy",
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
        self.parametric = parametric
        self.class_weight = class_weight
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.backend = backend

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Compute the direction, and select its width and threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples, without missing values; sparse with the linear kernel or random
            features.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; equal if None. Samples of weight 0 are left out.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        check_classifier(self)
        rows, labels = validate_rows(self, X, y)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        check_classes(self.classes_)
        codes, weights = self._check_weights(labels, sample_weight, first=True)
        check_weighted_classes(len(np.unique(codes[weights > 0])))
        self._reset()
        if has_vector(self):
            return self._add(rows, codes, weights, first=True)
        kept = weights > 0
        if not kept.all():
            rows, codes, weights = self._kernel.take(rows, kept), codes[kept], weights[kept]
        fit_samples = self._fit_kernel if self.parametric is None else self._fit_parametric
        coefficients = fit_samples(rows, codes, weights)
        self.dual_coef_ = coefficients
        if is_precomputed(self.kernel):  # X has columns of samples of weight 0 too
            self.dual_coef_ = np.zeros((len(kept), coefficients.shape[1]))
            self.dual_coef_[kept] = coefficients
        return self

    @available_if(_has_partial_fit)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add training samples; with the linear kernel or random features only.

        With the linear kernel, or a `gamma` that is a number, the direction is that of a `fit` on
        all samples together. "loo" and "scale" use the samples of the first call, which should be
        many, and of all classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More samples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that may occur; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; equal if None.

        Returns
        -------
        self : object
            The classifier.
        """
        check_classifier(self)
        first = getattr(self, "_totals", None) is None
        if first and classes is None:
            raise ValueError("MAMClassifier.partial_fit needs classes in its first call.")
        rows, labels = validate_rows(self, X, y, reset=first)
        check_classification_targets(labels)
        if first:
            self.classes_ = union([("classes", np.asarray(classes))])
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                "MAMClassifier.partial_fit needs the same classes in every call; "
                f"got {np.unique(classes).tolist()} after {self.classes_.tolist()}."
            )
        check_classes(self.classes_)
        codes, weights = self._check_weights(labels, sample_weight, first=first)
        if not weights.any():
            raise ValueError(
                "MAMClassifier.partial_fit needs samples with a weight above 0; got none. "
                f"{_SAMPLE_WEIGHT}"
            )
        if first:
            self._reset()
        return self._add(rows, codes, weights, first=first)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Compute the scores, minus the threshold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one score per sample, above 0 for the second of `classes_`; with more
            one score for each class. With a threshold of 0, a score is the distance from the plane
            in feature space. In float64.
        """
        check_is_fitted(self)
        rows = validate_rows(self, X, reset=False)
        scores = self._scores(rows) - self.threshold_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict labels from the scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            With two classes the second where the score is above 0; with more the class with the
            largest score, the first of equal ones. Of the type of `classes_`.
        """
        scores = self.decision_function(X)
        labels: NDArray[Any] = self.classes_[predict_codes(scores.reshape(len(scores), -1))]
        return labels

    def rademacher_bound(
        self,
        method: Literal["trace", "monte-carlo"] = "trace",
        *,
        n_draws: int = 100,
        random_state: int | np.random.RandomState | None = None,
    ) -> float:
        """Bound or estimate the Rademacher complexity of all unit directions on the samples.

        Parameters
        ----------
        method : {"trace", "monte-carlo"}, default="trace"
            "trace" is Lemma 1 of Pelckmans et al. (2008): at most 2/n √tr Ω. "monte-carlo" is
            equation (9) itself, the mean of 2/n √(σᵀΩσ) over random signs σ: smaller, but its
            precision depends on the number of draws, so the bounds do not use it. Not with
            "precomputed", whose kernel values are not kept.
        n_draws : int, default=100
            Number of random sign vectors.
        random_state : int, RandomState instance or None, default=None
            Seed for them.

        Returns
        -------
        complexity : float
            The bound or the estimate.
        """
        check_is_fitted(self)
        diagonal = self._training_samples().diagonal
        n = len(diagonal)
        if method == "trace":
            return trace_bound(float(diagonal.sum()), n)
        if method != "monte-carlo":
            raise ParameterError.of(
                "rademacher_bound", "method", "'trace' or 'monte-carlo'", method
            )
        if is_precomputed(self.kernel):
            raise ParameterError.of(
                "rademacher_bound", "method", "'trace' with kernel 'precomputed'", method
            )
        if not is_count(n_draws):
            raise ParameterError.of(
                "rademacher_bound", "n_draws", "an integer of at least 1", n_draws
            )
        signs = check_random_state(random_state).choice([-1.0, 1.0], (n, n_draws))
        return float(2 / n * np.sqrt(np.maximum(self._quadratic_forms(signs), 0)).mean())

    def margin_bound(self, delta: float = 0.05, *, bound: float | None = None) -> float:
        """Bound the expected margin from below, equation (12) of Pelckmans et al. (2008).

        The margin is y (f(x) − threshold), clipped at the bound if there is a threshold.

        Parameters
        ----------
        delta : float in (0, 1), default=0.05
            The probability that the bound fails.
        bound : float, optional
            The largest length of a sample in feature space. It is 1 for the RBF and Laplacian
            kernels; for others it must be known independently of the samples.

        Returns
        -------
        margin : float
            With probability 1 − delta, the expected margin is at least this. It may be negative.
        """
        check_is_fitted(self)
        check_delta(delta, "margin_bound")
        found, _ = margin_bound(self._training_margins(), delta, None, bound, None, "margin_bound")
        return found.expected

    def certainty(
        self,
        X: ArrayLike,
        delta: float = 0.05,
        transform: Literal["clip"] | Transform | None = None,
        *,
        bound: float | None = None,
        lipschitz: float | None = None,
        held_out: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> Certainty:
        """Compute how far predictions can be trusted, from bounds and from held-out samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples to predict.
        delta : float in (0, 1), default=0.05
            The probability that the statements fail. If the width was selected by leave-one-out,
            the bound divides it among all possible widths.
        transform : None, "clip" or callable, default=None
            None: equation (14) of Pelckmans et al. (2008). "clip": equation (15) with margins
            clipped at `bound`, by default at 1. A callable g must increase, be 0 at 0 and stay
            within `bound`, and `lipschitz` must be its steepest slope.
        bound : float, optional
            See `transform`; with None the largest length of a sample in feature space, as in
            `margin_bound`.
        lipschitz : float, optional
            See `transform`.
        held_out : tuple (X, y), optional
            Samples that no step has used, for numbers that are usable where the bound is not.

        Returns
        -------
        certainty : Certainty
            The margins, the bound (1 where there is no guarantee), and the held-out numbers.

        Notes
        -----
        The bounds of the paper are for two classes; with more there is no guarantee, nor without
        `bound` or `transform` for a kernel that has no limit of its own. They include the selection
        of the threshold. If the classifier keeps only some samples, the bounds are computed from
        these, and hold for them. ``gamma="scale"`` counts as fixed, although it depends on the
        features.
        """
        check_is_fitted(self)
        check_delta(delta, "certainty")
        margins = _margins(self.decision_function(X))
        errors = np.ones(len(margins))
        unbounded = transform is None and bound is None and self.kernel not in _BOUNDED_KERNELS
        unbounded = unbounded or hasattr(self, "parametric_")
        if len(self.classes_) == 2 and not unbounded:
            found, change = margin_bound(
                self._training_margins(), delta, transform, bound, lipschitz, "certainty"
            )
            errors = np.clip(found.error(-change(-margins)), 0.0, 1.0)
        if held_out is None:
            return Certainty(margins, errors, delta=delta)
        rates = self._held_out_errors(held_out, delta)
        return Certainty(margins, errors, *rates(margins), delta=delta)

    @property
    def _kernel(self) -> Kernel:
        """The kernel with its width, if that has been selected."""
        return Kernel(self.kernel, getattr(self, "gamma_", None) or 1.0, self.degree, self.coef0)

    def _check_weights(
        self, labels: NDArray[Any], sample_weight: ArrayLike | None, *, first: bool
    ) -> tuple[Codes, Floats]:
        """Return codes and weights of the samples.

        Only ratios of weights matter. Those of the first call are divided by a power of two, so
        that products neither overflow nor vanish, and later ones by the same.
        """
        codes = encode(labels, self.classes_, "y")
        weights = np.ones(len(codes))
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(codes), "MAMClassifier")
        if isinstance(self.class_weight, dict):
            weights = weights * class_factors(self.class_weight, self.classes_)[codes]
        if first:
            self._exponent = int(np.frexp(weights.max())[1])
        return codes, np.ldexp(weights, -self._exponent)

    def _reset(self) -> None:
        """Remove the attributes of a fit with another kernel."""
        self._totals: ClassTotals | None = None
        self._features: RandomFeatures | None = None
        of_kernel = ("X_fit_", "dual_coef_", "_training", "parametric_", "parametric_coef_")
        for name in ("coef_", *of_kernel):
            if hasattr(self, name):
                delattr(self, name)

    def _labelled(self, codes: Codes, weights: Floats) -> LabelledSamples:
        balanced = isinstance(self.class_weight, str)
        return LabelledSamples(codes, weights, len(self.classes_), balanced, self.threshold)

    def _fit_kernel(self, rows: Any, codes: Codes, weights: Floats) -> Floats:
        """Select the width and the threshold, keep the samples, and return their coefficients."""
        samples = self._labelled(codes, weights)
        kernel = self._set_candidates(rows, weights)
        found = select_width(rows, kernel, self.gammas_, samples, self.n_jobs, self.backend)
        columns = samples.columns
        with_own_terms = found.sums + found.diagonal[:, None] * columns
        self._keep_samples(rows, found.index, found.accuracies)
        scores = with_own_terms @ found.fit.coefficients
        self._training = TrainingSamples(codes, scores, found.diagonal)
        self._set_fit(found.fit, found.evaluation)
        return columns @ found.fit.coefficients

    def _fit_parametric(self, rows: Any, codes: Codes, weights: Floats) -> Floats:
        """Do the same with a parametric part, and fit that."""
        if len(self.classes_) != 2:
            raise ValueError(
                "MAMClassifier with parametric needs two classes. Only binary classification is "
                "supported. The type of the target is multiclass: use OneVsRestClassifier."
            )
        self.parametric_ = clone(self.parametric).fit(rows)
        features = parametric_rows(self.parametric_, rows)
        kernel = self._set_candidates(rows, weights)
        found = select_parametric_width(
            *(rows, features, kernel, self.gammas_, self._labelled(codes, weights)),
            *(self.n_jobs, self.backend),
        )
        self._keep_samples(rows, found.index, found.accuracies)
        fit = found.fit
        self.parametric_coef_ = fit.coefficients
        self._training = TrainingSamples(codes, fit.scores[:, None], fit.diagonal)
        self.lambda_ = self.average_margin_ = fit.length
        self.threshold_, self.loo_decision_ = fit.evaluation.threshold, fit.evaluation.decision
        return fit.dual[:, None]

    def _set_candidates(self, rows: Any, weights: Floats) -> Kernel:
        """Set the candidates for the width, one if the kernel has none; return the kernel."""
        kernel = Kernel(self.kernel, 1.0, self.degree, self.coef0)
        self.gammas_ = np.ones(1)
        if kernel.has_gamma:
            self.gammas_ = candidate_gammas(self, rows, weights)
        return kernel

    def _keep_samples(self, rows: Any, index: int, accuracies: Floats) -> None:
        """Set the width, and keep the samples."""
        self.loo_scores_ = accuracies
        self.gamma_ = None
        if self._kernel.has_gamma:
            self.gamma_ = float(self.gammas_[index])
        is_wide = rows.dtype == np.float32 and is_flat(rows, self._kernel)
        if not is_precomputed(self.kernel):
            self.X_fit_ = np.array(rows, dtype=np.float64 if is_wide else rows.dtype)
        self.n_seen_ = len(rows)

    def _add(self, rows: Any, codes: Codes, weights: Floats, *, first: bool) -> Self:
        """Add samples to the sums, and update the direction and the threshold."""
        if not weights.all():
            rows, codes, weights = rows[weights > 0], codes[weights > 0], weights[weights > 0]
        if first:
            self._rng = check_random_state(self.random_state)
            self._set_width(self._select_features(rows, codes, weights))
            self.n_seen_ = self._n_evaluated = 0
        columns = self._labelled(codes, weights).columns
        sums = feature_sums(rows, columns, self._features, self.n_jobs)
        class_weights = columns.sum(axis=0)
        kept = None
        if self._totals is not None:
            sums, class_weights = self._totals.sums + sums, self._totals.weights + class_weights
            kept = self._totals.kept
        kept = Reservoir.of(rows, codes, weights, self._rng, kept)
        self._totals = ClassTotals(sums, class_weights, kept)
        self.n_seen_ += len(codes)
        return self._set_fit(*self._evaluate_totals(self._totals))

    def _select_features(self, rows: Any, codes: Codes, weights: Floats) -> FeatureSelection | None:
        """Draw random features, if there are any, and select their width."""
        if is_linear(self.kernel) or self.n_components is None:
            return None
        seed = self._rng.randint(LARGEST_SEED)
        gammas = candidate_gammas(self, rows, weights)
        return select_class_features(
            self, rows, codes, weights, gammas, mean_row(rows), seed, self._rng
        )

    def _set_width(self, selection: FeatureSelection | None) -> None:
        self.gamma_, self.gammas_ = None, np.array([1.0])
        if selection is not None:
            self._features = selection.features
            self.gamma_, self.gammas_ = selection.gamma, selection.gammas
            if selection.scores is not None:
                self.loo_scores_ = selection.scores

    def _evaluate_totals(self, totals: ClassTotals) -> tuple[ClassSums, LeaveOneOut | None]:
        """Compute the direction; evaluate it if the samples have grown by a tenth."""
        with np.errstate(over="ignore", invalid="ignore"):
            gram = totals.sums @ totals.sums.T
        check_finite_sums(gram)
        fit = ClassSums(gram, totals.weights, isinstance(self.class_weight, str))
        self.coef_ = fit.coefficients.T @ totals.sums
        if self.n_seen_ < _GROWTH * self._n_evaluated:
            return fit, None
        self._n_evaluated = self.n_seen_
        kept = totals.kept
        samples = self._labelled(kept.labels, kept.weights)
        found = evaluate_features(fit, totals.sums, kept.X, self._features, samples, self.n_jobs)
        if len(self.gammas_) == 1:
            self.loo_scores_ = np.array([found.accuracy])
        return fit, found

    def _set_fit(self, fit: ClassSums, evaluation: LeaveOneOut | None) -> Self:
        """Set the length and the threshold."""
        self.lambda_ = self.average_margin_ = fit.length
        if evaluation is None:
            return self
        self.threshold_, self.loo_decision_ = evaluation.threshold, evaluation.decision
        if len(self.classes_) == 2 and self._kernel.is_exponential:
            # No score is above 1, so a threshold of 1 suffices; the bounds need it.
            self.threshold_ = np.clip(evaluation.threshold, -_ABOVE_1, _ABOVE_1)
            self.loo_decision_ = evaluation.decision + (evaluation.threshold - self.threshold_)
        if self.lambda_ == 0 and np.count_nonzero(fit.weights) > 1:
            warnings.warn(
                "MAMClassifier: the classes have the same mean in feature space. No direction has "
                "an average margin above 0, and every sample gets the same score.",
                UserWarning,
                stacklevel=4,
            )
        return self

    def _scores(self, rows: Any) -> Floats:
        """Compute scores of shape (n, 1) or (n, n_classes), without the threshold."""
        if hasattr(self, "coef_"):  # the fitted form: parameters may have changed since
            return feature_products(rows, self.coef_, self._features, self.n_jobs)
        scores = self._kernel_sums(rows, self.dual_coef_)
        if hasattr(self, "parametric_"):
            scores += (parametric_rows(self.parametric_, rows) @ self.parametric_coef_)[:, None]
        return scores

    def _kernel_sums(self, rows: Any, a: Floats) -> Floats:
        """Compute Σ_i a_i K(x_i, x) over the training samples."""
        fitted = rows if is_precomputed(self.kernel) else self.X_fit_  # then X_fit_ is not used
        sums = weighted_sums(rows, fitted, a, self._kernel, self.backend, self.n_jobs)
        return np.asarray(sums, dtype=np.float64)

    def _training_samples(self) -> TrainingSamples:
        """Return classes, scores and squared lengths of the samples that were kept."""
        if self._totals is None:
            return self._training
        rows = self._totals.kept.X  # samples may have been added since the threshold was selected
        lengths = squared_lengths(rows, self._features)
        return TrainingSamples(self._totals.kept.labels, self._scores(rows), lengths)

    def _training_margins(self) -> TrainingMargins:
        """Collect what equations (12) to (15) need."""
        if len(self.classes_) != 2:
            raise ValueError(
                f"The bounds are for two classes; got {len(self.classes_)}. "
                "certainty(X, held_out=(X, y)) works with any number."
            )
        if hasattr(self, "parametric_"):
            raise ValueError(
                "MAMClassifier computes no bounds with parametric. "
                "certainty(X, held_out=(X, y)) works with it."
            )
        threshold = float(self.threshold_[0])
        samples = self._training_samples()
        margins = np.where(samples.codes == 1, 1.0, -1.0) * (samples.scores[:, 0] - threshold)
        return TrainingMargins(
            margins,
            self.rademacher_bound(),
            1.0 if self.kernel in _BOUNDED_KERNELS else None,
            None if self.threshold is None else threshold,
            width_fraction(self.gamma, self.gammas, self.gamma_),
        )

    def _held_out_errors(self, held_out: tuple[ArrayLike, ArrayLike], delta: float) -> ErrorRates:
        """Count the errors on samples that no step has used."""
        scores, codes = held_out_scores(self, held_out)
        wrong = predict_codes(scores.reshape(len(scores), -1)) != codes
        levels = margin_levels(_margins(self.loo_decision_))
        return count_errors(levels, wrong, _margins(scores), delta)

    def _quadratic_forms(self, signs: Floats) -> Floats:
        """Compute σᵀΩσ for every column of signs."""
        if self._totals is not None:
            sums = feature_sums(self._totals.kept.X, signs, self._features, self.n_jobs)
            return np.asarray(np.einsum("ij,ij->i", sums, sums))
        at_samples = weighted_sums(
            self.X_fit_, self.X_fit_, signs, self._kernel, self.backend, self.n_jobs
        )
        return np.asarray(np.einsum("ij,ij->j", signs, at_samples))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = has_vector(self)
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        tags.classifier_tags.multi_class = self.parametric is None
        return tags


def _margins(scores: Floats) -> Floats:
    """Compute the distance of a score from the threshold, or from the second largest score."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.asarray(np.abs(scores.ravel()))
    two = np.sort(scores, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0])


@dataclass(frozen=True)
class TrainingSamples:
    """What the bounds need of the training samples."""

    codes: Codes  # (n,): the classes
    scores: Floats  # (n, 1) or (n, n_classes): scores, without the threshold
    diagonal: Floats  # (n,): squared lengths in feature space, K(x, x)


@dataclass(frozen=True)
class Reservoir:
    """A uniform sample of all rows of a stream, of bounded size.

    Every row draws a random key, and the rows with the largest keys are kept.
    """

    X: Any  # (n, n_features): the rows, in their order
    labels: NDArray[Any]  # (n,): the codes of their classes, or a ranker's responses
    weights: Floats  # (n,): their weights
    keys: Floats  # (n,): their keys

    @classmethod
    def of(
        cls,
        X: Any,
        labels: NDArray[Any],
        weights: Floats,
        rng: np.random.RandomState,
        before: Reservoir | None,
    ) -> Reservoir:
        """Keep some of new rows and of those that were kept before."""
        keys = rng.random_sample(X.shape[0])
        some = largest_keys(keys, RESERVOIR_SIZE)  # a copy: the caller may reuse the memory of X
        new = cls(X[some], labels[some], weights[some], keys[some])
        if before is None:
            return new
        sparse = issparse(before.X) or issparse(new.X)
        X = vstack([before.X, new.X], format="csr") if sparse else np.vstack([before.X, new.X])
        keys = np.concatenate([before.keys, new.keys])
        some = largest_keys(keys, RESERVOIR_SIZE)
        return cls(
            X[some],
            np.concatenate([before.labels, new.labels])[some],
            np.concatenate([before.weights, new.weights])[some],
            keys[some],
        )


@dataclass(frozen=True)
class ClassTotals:
    """Sums over all samples, which determine the direction, and some of the samples."""

    sums: Floats  # (n_classes, n_components or n_features): Σ s_i φ(x_i) of each class
    weights: Floats  # (n_classes,): Σ s_i of each class
    kept: Reservoir  # the samples that select the threshold, and support the bounds


def select_class_features(
    classifier: MAMClassifier,
    X: Any,
    codes: Codes,
    weights: Floats,
    gammas: Floats,
    centre: Floats,
    seed: int,
    rng: np.random.RandomState,
) -> FeatureSelection:
    """Draw random features for each candidate γ, and select one by leave-one-out on some samples.

    Leave-one-out uses the features, not the kernel itself, which would select widths at which the
    features are noise.
    """
    kernel, n_components = str(classifier.kernel), classifier.n_components or 1
    candidates = [
        RandomFeatures.draw(kernel, gamma, centre, n_components, seed) for gamma in gammas.tolist()
    ]
    if len(candidates) == 1:
        return FeatureSelection(candidates[0], gammas)
    some = stratified_rows(codes, ROWS_FOR_WIDTHS, rng)
    samples = classifier._labelled(codes[some], weights[some])
    accuracies = compare_features(X[some], candidates, samples, classifier.n_jobs)
    index = middle_of_best(accuracies)
    return FeatureSelection(candidates[index], gammas, index, accuracies)


def fit_from_totals(
    classifier: MAMClassifier,
    totals: ClassTotals,
    selection: FeatureSelection | None,
    *,
    n_samples: int,
    exponent: int,
    rng: np.random.RandomState,
) -> MAMClassifier:
    """Fit a classifier from sums over samples that were computed elsewhere.

    Parameters
    ----------
    classifier : MAMClassifier
        A classifier with `classes_` and `n_features_in_`.
    totals : ClassTotals
        The sums.
    selection : FeatureSelection or None
        The random features; None for the linear kernel.
    n_samples : int
        Number of samples with a weight above 0.
    exponent : int
        The power of two by which their weights were divided.
    rng : RandomState
        For the rows that `partial_fit` keeps later.
    """
    classifier._reset()
    classifier._set_width(selection)
    classifier._totals, classifier._exponent, classifier._rng = totals, exponent, rng
    classifier.n_seen_, classifier._n_evaluated = n_samples, 0
    return classifier._set_fit(*classifier._evaluate_totals(totals))


def classifier_for_prediction(classifier: MAMClassifier) -> MAMClassifier:
    """Copy a fitted classifier without the training state, which predictions do not need."""
    light = copy(classifier)
    for name in ("_totals", "_training", "loo_decision_"):
        light.__dict__.pop(name, None)
    return light


def check_classifier(classifier: MAMClassifier) -> None:
    """Raise an error for the first parameter whose value is not allowed."""
    weight, threshold = classifier.class_weight, classifier.threshold
    is_weight = weight is None or isinstance(weight, dict)
    is_weight = is_weight or (isinstance(weight, str) and weight == "balanced")
    is_threshold = isinstance(threshold, str) and threshold in ("accuracy", "balanced")
    parametric = classifier.parametric
    is_transformer = hasattr(parametric, "fit") and hasattr(parametric, "transform")
    keeps_rows = not has_vector(classifier) and not is_precomputed(classifier.kernel)
    rules = {
        **feature_rules(classifier),
        "parametric": (
            "None or, with kernel 'rbf', 'laplacian', 'poly' or callable and without "
            "n_components, a transformer",
            parametric is None or (is_transformer and keeps_rows),
        ),
        "class_weight": ("None, 'balanced' or a dict", is_weight),
        "threshold": ("'accuracy', 'balanced' or None", threshold is None or is_threshold),
    }
    check_parameters(classifier, rules)


def class_factors(class_weight: dict[Any, float], classes: NDArray[Any]) -> Floats:
    """Return the factor of each class; raise an error for factors that are not allowed."""
    labels = classes.tolist()
    factors = np.array([class_weight.get(label, 1.0) for label in labels], dtype=float)
    if set(class_weight) - set(labels) or not (np.isfinite(factors) & (factors >= 0)).all():
        raise ValueError(
            "MAMClassifier needs class_weight to have a number of at least 0 for classes among "
            f"{labels}; got {class_weight!r}."
        )
    return factors


def check_classes(classes: NDArray[Any]) -> None:
    """Raise an error for less than two classes."""
    if len(classes) < 2:
        raise ValueError(
            "MAMClassifier needs at least two classes in y, or in classes for partial_fit; "
            f"got {len(classes)} class: {classes.tolist()}."
        )


def check_weighted_classes(n_classes: int) -> None:
    """Raise an error if only one class has samples with a weight above 0."""
    if n_classes < 2:
        raise ValueError(
            "MAMClassifier.fit needs at least two classes that have samples with a weight above 0; "
            f"got {n_classes}. {_SAMPLE_WEIGHT}"
        )
