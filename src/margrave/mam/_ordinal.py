"""Ordered classes: the maximal-average-margin ranker with thresholds between the classes.

Pelckmans et al. (2008), section 4, learn an order of samples with ordered labels. Here k − 1
thresholds on the leave-one-out scores of the ranker split the order into classes, with the smallest
total loss of all thresholds.

With the scores in order, let C_q(p) be the loss of predicting the label q for the lowest p of them.
The smallest loss V_q(p) of predicting labels up to q for the lowest p is

    V_q(p) = C_q(p) + min_{p' ≤ p} (V_{q−1}(p') − C_q(p')),

a cumulative minimum: O(n) for each label.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from margrave._labels import encode, has_missing, natural, shown
from margrave._typing import AnyFloats, Codes, Floats
from margrave._validation import Rules, check_parameters, check_sample_weight
from margrave.confusion import midpoint
from margrave.mam._kernels import KernelFunction, KernelName
from margrave.mam._parameters import is_linear, is_precomputed, kernel_rules, validate_rows
from margrave.mam._ranker import MAMRanker, leave_one_out_predictions

_KERNEL_PARAMETERS = ("kernel", "gamma", "gammas", "degree", "coef0", "n_jobs", "backend")
_LOSSES = ("absolute", "accuracy", "balanced")
# Smaller relative differences are rounding.
_TIE = 1e-9


class MAMOrdinalClassifier(ClassifierMixin, BaseEstimator):
    """Ordered classes: the maximal-average-margin ranker, with thresholds between the classes.

    A ranker [1]_ (:class:`MAMRanker`) orders the samples; thresholds split the order into classes.
    They are optimal on leave-one-out scores: no other thresholds have a smaller loss there.

    Parameters
    ----------
    kernel, gamma, gammas, degree, coef0, n_jobs, backend
        As in :class:`MAMRanker`.
    order : array-like of labels, optional
        All labels from low to high, as in ``["low", "medium", "high"]``. If None, the order of an
        ordered pandas Categorical, else sorted order, which for strings is alphabetical. Labels
        that are not in `y` keep their position, and are never predicted.
    thresholds : {"absolute", "accuracy", "balanced"}, default="absolute"
        The loss that the thresholds minimise: the mean absolute difference of positions, the error
        rate, or the error rate with classes of equal weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels from low to high: not sorted if `order` is not.
    thresholds_ : ndarray of shape (n_classes − 1,)
        Not decreasing. The position of the predicted class is the number of thresholds below the
        score. Infinite where the first or the last class is never predicted; equal on both sides of
        any other class that is never predicted.
    ranker_ : MAMRanker
        The ranker, trained on the positions of the classes; its width and leave-one-out scores.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` has names that are all strings.

    Notes
    -----
    Of thresholds with the same loss, those in wider gaps between scores are selected. The ranker
    and the loss use sample weights; leave-one-out leaves a sample out with all its weight, so
    weights differ slightly from repeated rows.

    There is no `decision_function`: scikit-learn's has a column for each class. `rank` returns the
    score.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", Advances in Neural Information Processing Systems 20, 2008, section
       4.

    Examples
    --------
    >>> import numpy as np
    >>> from margrave.mam import MAMOrdinalClassifier
    >>> X = np.arange(9.0).reshape(-1, 1)
    >>> y = ["low"] * 3 + ["medium"] * 3 + ["high"] * 3
    >>> model = MAMOrdinalClassifier(order=["low", "medium", "high"]).fit(X, y)
    >>> model.predict([[0.5], [4.0], [7.0]])
    array(['low', 'medium', 'high'], dtype='<U6')
    """

    def __init__(
        self,
        kernel: KernelName | KernelFunction = "rbf",
        *,
        gamma: Literal["loo", "scale"] | float = "loo",
        gammas: ArrayLike | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        order: ArrayLike | None = None,
        thresholds: Literal["absolute", "accuracy", "balanced"] = "absolute",
        n_jobs: int | None = None,
        backend: Literal["auto", "numpy", "torch"] = "auto",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.order = order
        self.thresholds = thresholds
        self.n_jobs = n_jobs
        self.backend = backend

    def _rules(self) -> Rules:
        is_loss = isinstance(self.thresholds, str) and self.thresholds in _LOSSES
        return {
            **kernel_rules(self),
            "order": ("None or different labels from low to high", _is_order(self.order)),
            "thresholds": ("'absolute', 'accuracy' or 'balanced'", is_loss),
        }

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the ranker, and select the thresholds between the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training samples, without missing values; sparse with the linear kernel only.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights; equal if None. Samples of weight 0 are left out.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        check_parameters(self, self._rules())
        rows, labels = validate_rows(self, X, y, ensure_min_samples=2)
        check_classification_targets(labels)
        self.classes_ = self._order_classes(y, labels)
        codes = encode(labels, self.classes_, "MAMOrdinalClassifier.fit").astype(np.intp)
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(codes), "MAMOrdinalClassifier.fit")
        each = np.ones(len(codes)) if weights is None else weights / weights.max()
        present = np.unique(codes[each > 0])
        if len(present) < 2:
            raise ValueError(
                "MAMOrdinalClassifier.fit needs y with at least two classes; "
                f"got one class, {shown(self.classes_[present])}."
            )
        self.ranker_ = MAMRanker(**{name: getattr(self, name) for name in _KERNEL_PARAMETERS})
        self.ranker_.fit(rows, codes, weights)
        scores = leave_one_out_predictions(self.ranker_, rows, codes, weights)
        kept = each > 0
        losses = label_losses(codes[kept], present, each[kept], self.thresholds)
        thresholds = best_thresholds(scores[kept], losses)
        self.thresholds_ = add_missing_classes(thresholds, present, len(self.classes_))
        return self

    def _order_classes(self, y: Any, labels: NDArray[Any]) -> NDArray[Any]:
        """List the classes from low to high: `order`, the order of pandas, or sorted."""
        if self.order is not None:
            return natural(self.order)
        if getattr(getattr(y, "dtype", None), "ordered", False):
            return natural(y.dtype.categories.to_numpy())
        return np.unique(labels)

    def rank(self, X: ArrayLike) -> AnyFloats:
        """Compute the ranker's scores: the larger, the higher the class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores, which `predict` compares with the thresholds.
        """
        check_is_fitted(self)
        return self.ranker_.predict(validate_rows(self, X, reset=False))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class whose interval contains the score.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels of `classes_`.
        """
        scores = self.rank(X)
        labels: NDArray[Any] = self.classes_[np.searchsorted(self.thresholds_, scores)]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = is_linear(self.kernel)
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        # scikit-learn's checks use unordered classes, which no linear score separates, and linear
        # kernel values.
        tags.classifier_tags.poor_score = is_linear(self.kernel) or is_precomputed(self.kernel)
        return tags


def label_losses(codes: Codes, labels: Codes, weights: Floats, loss: str) -> Floats:
    """Compute the loss of each label for each sample, of shape (n_labels, n_samples).

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        The true classes, as positions.
    labels : ndarray of shape (n_labels,)
        The positions that may be predicted, increasing.
    weights : ndarray of shape (n_samples,)
        Weights of the samples.
    loss : {"absolute", "accuracy", "balanced"}
        The absolute difference of positions; 0 or 1; the same with classes of equal weight.
    """
    difference = np.abs(labels[:, None] - codes)
    if loss == "absolute":
        return np.asarray(difference * weights)
    if loss == "balanced":
        weights = weights / np.bincount(codes, weights)[codes]
    return np.asarray((difference > 0) * weights)


def best_thresholds(scores: Floats, losses: Floats) -> Floats:
    """Find the thresholds between the labels with the smallest total loss.

    Of thresholds with the same loss those in wider gaps are selected, one after the other from the
    lowest on; equal scores are never separated.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Larger for higher classes.
    losses : ndarray of shape (n_labels, n_samples)
        The loss of each label for each sample.

    Returns
    -------
    thresholds : ndarray of shape (n_labels − 1,)
        Not decreasing. Infinite where no score is below or above; if two are equal, the label
        between them is never predicted.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    gaps = np.diff(ordered)
    ends = np.flatnonzero(gaps > _TIE * (ordered[-1] - ordered[0]))  # a threshold may follow
    costs = np.cumsum(losses[:, order], axis=1)
    zero, last = np.zeros((len(losses), 1)), costs[:, -1:]
    costs = np.hstack([zero, costs[:, ends], last])
    places = _widest(costs, _places(costs), np.concatenate([[0.0], gaps[ends], [0.0]]))
    thresholds = np.where(places == 0, -np.inf, np.inf)
    for label in np.flatnonzero((places > 0) & (places <= len(ends))):
        end = ends[places[label] - 1]
        thresholds[label] = midpoint(float(ordered[end]), float(ordered[end + 1]))
    return thresholds


def _places(costs: Floats) -> Codes:
    """Find where each label ends: the path with the smallest sum, the lowest of equal ones."""
    n_labels, n_places = costs.shape
    before = np.empty((n_labels - 1, n_places), dtype=np.intp)
    values = costs[0]
    for label in range(1, n_labels):
        rest = values - costs[label]
        least = np.minimum.accumulate(rest)
        new = np.append(True, rest[1:] < least[:-1])
        before[label - 1] = np.maximum.accumulate(np.where(new, np.arange(n_places), 0))
        values = costs[label] + least
    places = np.empty(n_labels - 1, dtype=np.intp)
    place = n_places - 1
    for label in range(n_labels - 1, 0, -1):
        place = places[label - 1] = before[label - 1, place]
    return places


def _widest(costs: Floats, places: Codes, gaps: Floats) -> Codes:
    """Move each threshold between its neighbours to the widest gap with the same loss."""
    moved = places.copy()
    bound = _TIE * costs[:, -1].max()
    for label in range(len(places)):
        low = moved[label - 1] if label else 0
        high = moved[label + 1] if label + 1 < len(places) else costs.shape[1] - 1
        change = (costs[label] - costs[label + 1])[low : high + 1]
        as_good = change <= change[moved[label] - low] + bound
        moved[label] = low + np.argmax(np.where(as_good, gaps[low : high + 1], -1.0))
    return moved


def add_missing_classes(thresholds: Floats, present: Codes, n_classes: int) -> Floats:
    """Extend thresholds between the classes that are present to all classes.

    A missing class gets an empty interval.
    """
    entries = np.full(n_classes, np.inf)  # the threshold above which a class begins
    entries[present] = np.append(-np.inf, thresholds)
    return np.minimum.accumulate(entries[::-1])[::-1][1:]


def _is_order(order: Any) -> bool:
    """Whether a value is None or labels without repetition."""
    if order is None:
        return True
    if isinstance(order, str) or np.ndim(order) != 1:
        return False
    labels = natural(order)
    return not has_missing(labels) and len(set(labels.tolist())) == len(labels) > 0
