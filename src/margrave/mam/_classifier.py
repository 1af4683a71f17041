"""The maximal-average-margin classifier: document 002, (4) to (7), as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave._dask.blocks import is_dask
from margrave._labels import encode
from margrave._typing import Codes, Floats
from margrave._validation import Rules, check_parameters, check_sample_weight
from margrave.mam._block_learning import (
    WEIGHT_OF_A_SAMPLE,
    BlockLearner,
    check_classes,
    check_present,
)
from margrave.mam._cut import decided
from margrave.mam._kernels import KernelFunction
from margrave.mam._lazy import in_memory, lazily, share_right
from margrave.mam._parameters import backend_rules, components_rules, is_linear, kernel_rules


def _adds_up(classifier: Any) -> bool:
    """Whether a classifier is a sum of feature vectors, which can be continued."""
    if is_linear(classifier.kernel) or classifier.n_components is not None:
        return True
    raise AttributeError(
        "MAMClassifier has partial_fit with kernel='linear' or with n_components only: with other "
        "kernels every sample is kept."
    )


class MAMClassifier(ClassifierMixin, BlockLearner):
    """Maximal average margin: the Parzen classifier, with its width by exact leave-one-out.

    The direction in feature space with the largest average margin has a closed form [1]_: the mean
    of the samples, each with the sign of its class. So there is nothing to iterate. A score is a
    sum of kernel values, f(x) = (1/λn) Σ y_i K(x_i, x), and leaving a sample out is free: width and
    cut are chosen on scores of samples that were left out.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian"} or callable, default="rbf"
        The kernel, as in :func:`kernel_sum`. One of your own should be positive definite. If it is
        not, scores are still sums of its values, but there is no feature space for them to be
        distances in, and the bounds mean nothing; where even yᵀΩy is below 0, `fit` refuses.
    gamma : {"loo", "scale"} or float, default="loo"
        The width: 1/σ of the document. "loo" chooses it by leave-one-out; "scale" is 1 over the
        number of features times their variance. A wide kernel (small gamma) makes the classifier
        a linear one, a narrow one the nearest neighbour.
    gammas : array-like of float, optional
        What "loo" chooses from; by default fifteen powers of 4, seven below and seven above the
        one next to "scale". Values that are powers of two times each other share one exponential
        and are the quickest. The document's range is ``1 / np.logspace(-2, 15, 18)``.
    degree : int, default=3
        Of the polynomial kernel (γ x·z + coef0)^degree.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    n_components : int, optional
        If given, so many random features stand for the RBF or Laplacian kernel, rounded up to an
        even number: predictions no longer take longer the more samples were learned, and there is
        `partial_fit`. The linear kernel needs none.
    class_weight : None, "balanced" or dict, default=None
        None: every sample counts the same, the document's form. "balanced": every class does, and
        the direction is the difference of the class means; often better where classes are not of
        one size, above all with wide kernels and random features. A dict has a factor for each
        class.
    cut : {"accuracy", "balanced"} or None, default="accuracy"
        The principle leaves the cut open. It is put where leave-one-out scores have the largest
        accuracy or balanced accuracy; None leaves it at 0. Width and cut are judged by the same.
    random_state : int, RandomState instance or None, default=None
        Seed for random features, and for the rows that are kept of many.
    n_jobs : int, optional
        Threads; all cores that the process may use if None or -1. Results do not depend on it.
    backend : {"auto", "numpy", "torch"}, default="auto"
        What computes kernel sums, as in :func:`kernel_sum`: "torch" is PyTorch, on a GPU if there
        is one, for leave-one-out and for predictions. Random features and the linear kernel are
        always numpy's.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    average_margin_ : float
        The average margin on the training samples, each weighted as in the fit: what is maximised.
    lambda_ : float
        λ, which makes the direction's length 1. The two are the same number; 0 if the classes
        have the same mean in feature space, and then every score is 0.
    gamma_ : float
        The width in use. None for kernels without one.
    gammas_ : ndarray
        Widths that were compared.
    loo_scores_ : ndarray
        Leave-one-out accuracy, or balanced accuracy, of each.
    cut_ : ndarray of shape (1,) or (n_classes,)
        What `decision_function` takes off the scores.
    X_fit_, dual_coef_ : ndarrays of shapes (n, n_features) and (n, 1) or (n, n_classes)
        For the other kernels: the samples, and what K(x_i, x) is multiplied with.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The direction, for the linear kernel and for random features.
    loo_decision_ : ndarray of shape (n, 1) or (n, n_classes)
        Scores of the training samples by fits without them, less the cut; of those that were kept,
        where not all are.
    n_seen_ : int
        Samples learned from.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    With more than two classes the average of ⟨w_y, φ(x)⟩ is maximised over unit vectors
    (w_1, …, w_k) that sum to 0: a score for each class, its sum of kernel values less the mean of
    all classes'.

    A fit takes one pass over all pairs for all widths together, in float64; predictions are
    computed in float32 for samples in float32, unless the kernel is so wide that float32 would blur
    the differences between its values. Random features have the precision of the samples: for
    samples in float32 they are computed in float32, which is faster. With random features the width
    is chosen on at most 5,000 samples, by exact leave-one-out with the features, and in
    `partial_fit` on those of the first call. The cut is chosen on at most 20,000 samples, drawn
    uniformly from all that came.

    Leave-one-out leaves out a sample with all its weight. The cut belongs to the shares of the
    classes, so where one is chosen they stay as they are and only the class means are without the
    sample; with ``cut=None`` all of the fit is.

    From Dask collections the linear kernel is learned in one pass over the rows, random features
    in two, by sums of the blocks. The direction is that of the same rows in memory, up to rounding.
    Of more than 5,000 samples others choose the width than in memory, and of more than 20,000
    others the cut, so that both may differ. With many features they are fewer, as many as have
    64 MB but at least 1,000: for the cut with more than 400 features, for the width with more than
    1,600. Answers for Dask collections are Dask arrays that have not been computed.

    In `partial_fit` the direction is always that of all samples. The cut is placed anew whenever
    they have grown by a tenth.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", sections 2 and 3.

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
        kernel: Literal["rbf", "linear", "poly", "laplacian"] | KernelFunction = "rbf",
        *,
        gamma: Literal["loo", "scale"] | float = "loo",
        gammas: ArrayLike | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int | None = None,
        class_weight: Literal["balanced"] | dict[Any, float] | None = None,
        cut: Literal["accuracy", "balanced"] | None = "accuracy",
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
        self.class_weight = class_weight
        self.cut = cut
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.backend = backend

    def _rules(self) -> Rules:
        named = isinstance(self.class_weight, str) and self.class_weight == "balanced"
        weighs = self.class_weight is None or named or isinstance(self.class_weight, dict)
        cuts = self.cut is None or self.cut in ("accuracy", "balanced")
        return {
            **kernel_rules(self),
            **backend_rules(self),
            **components_rules(self),
            "class_weight": ("None, 'balanced' or a dict", weighs),
            "cut": ("'accuracy', 'balanced' or None", cuts),
        }

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the direction, its width and its cut.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples, without missing values; sparse and from Dask with the linear kernel or
            random features.
        y : array-like or Dask collection of shape (n_samples,)
            Their labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; equal if None. Samples of weight 0 are left out.

        Returns
        -------
        self : object
            The trained classifier.
        """
        check_parameters(self, self._rules())
        if is_dask(X, y, sample_weight):
            return self._learn_blocks(X, y, sample_weight)
        rows, labels = self._labelled(X, y, reset=True)
        self.classes_ = np.unique(labels)
        check_classes(self.classes_)
        rows, codes, weights = self._weighed(rows, labels, sample_weight, first=True)
        check_present(len(np.unique(codes)))
        return self._learn(rows, codes, weights)

    @available_if(_adds_up)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more samples; with the linear kernel or random features only.

        With the linear kernel, or a `gamma` that is a number, the direction is that of a `fit` on
        all samples together. "loo" and "scale" choose the width on the samples of the first call,
        which should be many, and of all classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More samples.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (n_classes,), default=None
            All labels there will be; needed in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; equal if None.

        Returns
        -------
        self : object
            The classifier.
        """
        check_parameters(self, self._rules())
        in_memory("MAMClassifier.partial_fit", X=X, y=y, sample_weight=sample_weight)
        first = not hasattr(self, "_sums")
        if first and classes is None:
            raise ValueError("MAMClassifier.partial_fit needs classes in its first call.")
        rows, labels = self._labelled(X, y, reset=first)
        if first:
            self.classes_ = np.unique(np.asarray(classes))
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                "MAMClassifier.partial_fit needs the same classes in every call; "
                f"got {np.unique(classes).tolist()} after {self.classes_.tolist()}."
            )
        if len(self.classes_) < 2:
            raise ValueError(
                "MAMClassifier.partial_fit needs at least two classes; "
                f"got {self.classes_.tolist()}."
            )
        rows, codes, weights = self._weighed(rows, labels, sample_weight, first=first)
        if not len(codes):
            raise ValueError(
                "MAMClassifier.partial_fit needs samples with a weight above 0; got none. "
                f"{WEIGHT_OF_A_SAMPLE}"
            )
        return self._learn_more(rows, codes, weights, first=first)

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the scores, the cut taken off.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray or Dask array of shape (n_samples,) or (n_samples, n_classes)
            With two classes one score a sample, above 0 for the second of `classes_`; with more
            one score for each class. Without the cut a score is the distance from the plane in
            feature space. In float64.
        """
        check_is_fitted(self)
        if is_dask(X):
            n_classes = len(self.classes_)
            columns = None if n_classes == 2 else n_classes
            lazy: Floats = lazily(self, X, "decision_function", np.float64, columns)
            return lazy
        scores = self._scores(validate_data(self, X, reset=False, **self._accepted)) - self.cut_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label that the scores speak for.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray or Dask array of shape (n_samples,)
            With two classes the second where the score is above 0; with more the class with the
            largest score, the first of equals. Of the type of `classes_`.
        """
        if is_dask(X):
            check_is_fitted(self)
            lazy: NDArray[Any] = lazily(self, X, "predict", self.classes_.dtype)
            return lazy
        scores = self.decision_function(X)
        labels: NDArray[Any] = self.classes_[decided(scores.reshape(len(scores), -1))]
        return labels

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy, as in scikit-learn; of Dask collections in one pass.

        Parameters
        ----------
        X, y, sample_weight : array-likes or Dask collections
            Samples, their labels, and their weights, which are equal if None.

        Returns
        -------
        accuracy : float
            The share that is decided right.
        """
        if is_dask(X, y, sample_weight):
            check_is_fitted(self)
            return share_right(self, X, y, sample_weight)
        return float(super().score(X, y, sample_weight))

    @property
    def _accepted(self) -> dict[str, Any]:
        """Which samples can be taken, for scikit-learn's validation."""
        sparse = "csr" if self._in_features else False
        return {"dtype": [np.float64, np.float32], "accept_sparse": sparse}

    def _labelled(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        if issparse(X) and not self._in_features:
            raise TypeError(
                "MAMClassifier takes sparse X with kernel='linear' or with n_components only; "
                f"got kernel={self.kernel!r}."
            )
        rows, labels = validate_data(self, X, y, reset=reset, **self._accepted)
        check_classification_targets(labels)
        return rows, labels

    def _weighed(
        self, rows: Any, labels: NDArray[Any], sample_weight: ArrayLike | None, *, first: bool
    ) -> tuple[Any, Codes, Floats]:
        """Rows, codes and weights of the samples that have one above 0.

        Only ratios of weights matter. Those of the first call are divided by a power of two, so
        that products neither overflow nor vanish, and later ones by the same.
        """
        codes = encode(labels, self.classes_, "y")
        weights = np.ones(len(codes))
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(codes), "MAMClassifier")
        if isinstance(self.class_weight, dict):
            weights = weights * self._class_factors(self.class_weight)[codes]
        if first:
            self._exponent = int(np.frexp(weights.max())[1])
        weights = np.ldexp(weights, -self._exponent)
        if weights.all():
            return rows, codes, weights
        return rows[weights > 0], codes[weights > 0], weights[weights > 0]

    def _class_factors(self, given: dict[Any, float]) -> Floats:
        factors = np.array([given.get(label, 1.0) for label in self.classes_.tolist()], dtype=float)
        unknown = set(given) - set(self.classes_.tolist())
        if unknown or not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(
                "MAMClassifier needs class_weight to have a number of at least 0 for classes among "
                f"{self.classes_.tolist()}; got {given!r}."
            )
        return factors

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._in_features
        return tags
