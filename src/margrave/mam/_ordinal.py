"""Ordered classes by the maximal-average-margin ranker: one score, cut into intervals.

Document 002, section 4 ("A Risk Minimization Principle for a Class of Parzen Estimators",
Pelckmans, Suykens, De Moor) learns an order of samples with ordered labels, and stops there. Here
the order is cut into classes: k − 1 thresholds on the leave-one-out scores of the ranker, so that
the summed loss is as small as any thresholds make it.

With the scores in order, let C_q(p) be the loss of giving the lowest p of them the label q. The
best loss V_q(p) of giving the lowest p the labels up to q is

    V_q(p) = C_q(p) + min_{p' ≤ p} (V_{q−1}(p') − C_q(p')),

a running minimum: O(n) for each label.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from margrave._labels import encode, has_missing, natural, shown
from margrave._typing import Codes, Floats
from margrave._validation import Rules, check_parameters, check_sample_weight
from margrave.confusion import midpoint
from margrave.mam._kernel_ranker import checked_rows
from margrave.mam._kernels import KernelFunction
from margrave.mam._lazy import in_memory
from margrave.mam._parameters import backend_rules, is_linear, kernel_rules
from margrave.mam._ranker import MAMRanker, loo_predictions

_KERNEL_PARAMETERS = ("kernel", "gamma", "gammas", "degree", "coef0", "n_jobs", "backend")
# Differences below this, as a share, come from rounding.
_TIE = 1e-9


def losses_of(codes: Codes, labels: Codes, weights: Floats, cut: str) -> Floats:
    """What each label costs each sample, of shape (n_labels, n_samples).

    Parameters
    ----------
    codes : ndarray of shape (n_samples,)
        The true classes, as positions.
    labels : ndarray of shape (n_labels,)
        The positions that may be predicted, rising.
    weights : ndarray of shape (n_samples,)
        Weights of the samples.
    cut : {"absolute", "accuracy", "balanced"}
        The loss: how many positions off; wrong or right; the same with classes that count equal.
    """
    off = np.abs(labels[:, None] - codes)
    if cut == "absolute":
        return np.asarray(off * weights)
    if cut == "balanced":
        weights = weights / np.bincount(codes, weights)[codes]
    return np.asarray((off > 0) * weights)


def best_thresholds(scores: Floats, losses: Floats) -> Floats:
    """Thresholds between the labels that make the summed loss the smallest there is.

    Of thresholds with the same loss those in wider gaps are taken, one after the other from the
    lowest on; equal scores are never parted.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Larger for higher classes.
    losses : ndarray of shape (n_labels, n_samples)
        What each label costs each sample.

    Returns
    -------
    thresholds : ndarray of shape (n_labels − 1,)
        Not falling. Infinite where no score is below or above; two that are the same leave the
        label between them to nobody.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    gaps = np.diff(ordered)
    ends = np.flatnonzero(gaps > _TIE * (ordered[-1] - ordered[0]))  # a threshold may come after
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
    """Where each label ends: the path with the smallest sum, the lowest of equals."""
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
    """The same loss with thresholds in wider gaps, each moved between its neighbours."""
    moved = places.copy()
    bound = _TIE * costs[:, -1].max()
    for label in range(len(places)):
        low = moved[label - 1] if label else 0
        high = moved[label + 1] if label + 1 < len(places) else costs.shape[1] - 1
        change = (costs[label] - costs[label + 1])[low : high + 1]
        as_good = change <= change[moved[label] - low] + bound
        moved[label] = low + np.argmax(np.where(as_good, gaps[low : high + 1], -1.0))
    return moved


def spread_out(thresholds: Floats, present: Codes, n_classes: int) -> Floats:
    """Thresholds between all classes, from those between the classes that are present.

    A class that is not gets an empty interval.
    """
    entries = np.full(n_classes, np.inf)  # the threshold above which a class begins
    entries[present] = np.append(-np.inf, thresholds)
    return np.minimum.accumulate(entries[::-1])[::-1][1:]


class MAMOrdinalClassifier(ClassifierMixin, BaseEstimator):
    """Ordered classes: the maximal-average-margin ranker, with thresholds between the classes.

    A ranker [1]_ (:class:`MAMRanker`) orders the samples; thresholds cut the order into classes.
    They are chosen on leave-one-out scores, exactly: no other thresholds have a smaller loss there.

    Parameters
    ----------
    kernel, gamma, gammas, degree, coef0, n_jobs, backend
        As in :class:`MAMRanker`.
    order : array-like of labels, optional
        All labels from low to high, as in ``["low", "medium", "high"]``. If None, the order of an
        ordered pandas Categorical, else sorted: strings by the alphabet, which is seldom meant.
        Labels that are not in `y` keep their place between the others, and are never predicted.
    cut : {"absolute", "accuracy", "balanced"}, default="absolute"
        What the thresholds make as small as possible: by how many places the classes are missed,
        how many are missed, or the same with every class counting as much as any other.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels from low to high: not sorted if `order` is not.
    thresholds_ : ndarray of shape (n_classes − 1,)
        Not falling. A sample is of the class that has as many thresholds below it as the sample's
        score. Infinite where a class at an end is never predicted; equal on both sides of one
        between that is not.
    ranker_ : MAMRanker
        The ranker, trained on the positions of the classes; its width and leave-one-out scores.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` has names that are all strings.

    Notes
    -----
    Of thresholds with the same loss, those in wider gaps between scores are taken. Sample weights
    count in the ranker and in the loss; leave-one-out leaves a sample out with all its weight, so
    weights are not quite the same as repeated rows.

    There is no `decision_function`: scikit-learn's has a column for each class. `rank` returns the
    one score there is.

    References
    ----------
    .. [1] K. Pelckmans, J. A. K. Suykens and B. De Moor, "A Risk Minimization Principle for a Class
       of Parzen Estimators", section 4.

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
        kernel: Literal["rbf", "linear", "poly", "laplacian"] | KernelFunction = "rbf",
        *,
        gamma: Literal["loo", "scale"] | float = "loo",
        gammas: ArrayLike | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        order: ArrayLike | None = None,
        cut: Literal["absolute", "accuracy", "balanced"] = "absolute",
        n_jobs: int | None = None,
        backend: Literal["auto", "numpy", "torch"] = "auto",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.order = order
        self.cut = cut
        self.n_jobs = n_jobs
        self.backend = backend

    def _rules(self) -> Rules:
        cuts = ("absolute", "accuracy", "balanced")
        known = isinstance(self.cut, str) and self.cut in cuts
        return {
            **kernel_rules(self),
            **backend_rules(self),
            "order": ("None or different labels from low to high", _is_order(self.order)),
            "cut": ("'absolute', 'accuracy' or 'balanced'", known),
        }

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the order of the samples, and the thresholds between the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples, without missing values; sparse with the linear kernel only.
        y : array-like of shape (n_samples,)
            Their labels, of at least two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; equal if None. Samples of weight 0 are left out.

        Returns
        -------
        self : object
            The trained classifier.
        """
        check_parameters(self, self._rules())
        in_memory("MAMOrdinalClassifier.fit", X=X, y=y, sample_weight=sample_weight)
        rows, labels = checked_rows(self, X, y)
        check_classification_targets(labels)
        self.classes_ = self._ordered(y, labels)
        codes = encode(labels, self.classes_, "MAMOrdinalClassifier.fit").astype(np.intp)
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, len(codes), "MAMOrdinalClassifier.fit")
            kept = weights > 0
            rows, codes, weights = rows[kept], codes[kept], weights[kept]
        present = np.unique(codes)
        if len(present) < 2:
            raise ValueError(
                "MAMOrdinalClassifier.fit needs y with at least two classes; "
                f"got one class, {shown(self.classes_[present])}."
            )
        self.ranker_ = MAMRanker(**{name: getattr(self, name) for name in _KERNEL_PARAMETERS})
        self.ranker_.fit(rows, codes, weights)
        scores = loo_predictions(self.ranker_, rows, codes, weights)
        each = np.ones(len(codes)) if weights is None else weights / weights.max()
        thresholds = best_thresholds(scores, losses_of(codes, present, each, self.cut))
        self.thresholds_ = spread_out(thresholds, present, len(self.classes_))
        return self

    def _ordered(self, y: Any, labels: NDArray[Any]) -> NDArray[Any]:
        """The classes from low to high: as given, as pandas has them, or sorted."""
        if self.order is not None:
            return natural(self.order)
        if getattr(getattr(y, "dtype", None), "ordered", False):
            return natural(y.dtype.categories.to_numpy())
        return np.unique(labels)

    def rank(self, X: ArrayLike) -> NDArray[np.floating[Any]]:
        """Return the ranker's scores: the larger, the higher the class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            What the thresholds are compared with.
        """
        check_is_fitted(self)
        in_memory("MAMOrdinalClassifier", X=X)
        return self.ranker_.predict(checked_rows(self, X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class in whose interval the score is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Of `classes_`.
        """
        scores = self.rank(X)
        labels: NDArray[Any] = self.classes_[np.searchsorted(self.thresholds_, scores)]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = is_linear(self.kernel)
        # scikit-learn's checks have classes without an order, which no line can tell apart.
        tags.classifier_tags.poor_score = is_linear(self.kernel)
        return tags


def _is_order(order: Any) -> bool:
    """Whether it is None or labels without repetition."""
    if order is None:
        return True
    if isinstance(order, str) or np.ndim(order) != 1:
        return False
    labels = natural(order)
    return not has_missing(labels) and len(set(labels.tolist())) == len(labels) > 0
