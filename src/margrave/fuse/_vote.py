"""A committee that votes, or combines its members' probabilities by a fixed rule.

Multi-classifiers, fusion slides (i) to (v). Member i of L votes d_{i,k} = 1 for one class k with
weight w_i; the votes for a class are ``v_k = Σ_{i=1..L} w_i d_{i,k}`` (the slide's sum over weights
runs to c, the number of classes; it means L). With W = Σ w_i the prediction is the class with most
votes, the first in ``classes_`` among equal ones, if

- plurality: always, or with a threshold α if ``v_k >= α W``;
- majority: if ``v_k > W / 2`` (the slide's 50 % + 1);
- unanimity: if ``v_k = W``, which is the threshold α = 1;

and otherwise the extra class ω_{c+1}: the sample is rejected.

The slides' other combiner is the average. With p_{i,k} the probability that member i predicts for
class k, the combined value of the class is

- average: ``Σ_i w_i p_{i,k} / W``;
- median: the weighted median of p_{1,k}, ..., p_{L,k}, the mean of both if two are in the middle;
- product: ``Π_i p_{i,k} ** w_i``, computed as a sum of logarithms;
- minimum, maximum: ``min_i p_{i,k}`` and ``max_i p_{i,k}``;

divided by the sum over the classes (Kittler et al., 1998, but without the correction of the product
by the class frequencies). The prediction is the class with the largest value, if that is at least
the threshold α. If the value of every class is 0, no class is left, and the sample is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._typing import Floats
from margrave._validation import check_parameters, is_number
from margrave.committee import Committee, stratified_folds
from margrave.scores import Scores

VoteRule = Literal["plurality", "majority", "unanimity"]
ProbabilityRule = Literal["average", "median", "product", "minimum", "maximum"]
VOTE_RULES, PROBABILITY_RULES = get_args(VoteRule), get_args(ProbabilityRule)
RULES = VOTE_RULES + PROBABILITY_RULES
# Votes are sums of a few weights: two sums that differ by less than this fraction of W are equal.
_ROUNDING = 1e-12
_BLOCK = 20_000
_N_FOLDS = 5


class VoteClassifier(Committee):
    """A committee that votes or averages, and can reject samples on which its members disagree.

    Parameters
    ----------
    estimators : list of classifiers, or of (name, classifier)
        The members.
    rule : str, default="plurality"
        "plurality", "majority" and "unanimity" count the members' labels: a prediction needs the
        most votes, more than half, or all. "average", "median", "product", "minimum" and "maximum"
        combine the members' probabilities: the class with the largest value is predicted. Like
        ``threshold``, the rule can be changed after ``fit``.
    threshold : float in (0, 1], optional
        The fraction of all votes, or the combined probability, that the winner needs; otherwise
        the sample is rejected. Not with majority and unanimity, which are thresholds themselves.
    weights : None, "accuracy" or array-like of shape (n_members,), default=None
        None for equal weights; "accuracy" for weights by accuracy, on the data passed to ``fit`` if
        ``prefit``, otherwise by 5-fold cross-validation; or one weight for each member, none
        negative and not all zero. The minimum and the maximum take no weights. New weights take
        effect at the next ``fit``.
    reject_label : label, optional
        The label of rejected samples. By default "rejected" for labels that are strings
        or booleans, and one below the smallest label for numbers; never a class.
    prefit : bool, default=False
        Whether the members are already trained; they are then used as they are.
    n_jobs : int, optional
        The number of members that are trained or that predict in parallel.

    Attributes
    ----------
    classes_ : ndarray
        All classes of the members; among equal classes the first is predicted.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names, by default by type.
    weights_ : ndarray of shape (n_members,)
        The weight of each member.
    reject_label_ : label
        The label of rejected samples.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The votes and the average are those of Multi-classifiers, slides on fusion; the other rules are
    those of Kittler et al. [1]_, without a correction of the product by the class frequencies. With
    two classes, an odd number of members and equal weights, plurality and majority agree. A member
    that itself rejects a sample abstains from a vote; a sample without votes is rejected. A member
    has probability 0 for a class that it was not trained on, and a sample is rejected if the
    combined value of every class is 0. Only ratios of weights matter, except in the product, where
    weights are exponents: smaller ones bring the probabilities closer together.

    scikit-learn's metrics need labels of one type: if the label of rejected samples has another
    type than the classes (the default for booleans), use :meth:`score` or
    :meth:`margrave.Confusion.of`.

    References
    ----------
    .. [1] J. Kittler, M. Hatef, R. P. W. Duin and J. Matas, "On Combining Classifiers", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 20, 1998.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from margrave.fuse import VoteClassifier
    >>> iris = load_iris()
    >>> X, y = iris.data, iris.target_names[iris.target]
    >>> members = [
    ...     ("bayes", GaussianNB()),
    ...     ("logistic", LogisticRegression(max_iter=1000)),
    ...     ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ... ]
    >>> vote = VoteClassifier(members, rule="unanimity").fit(X, y)
    >>> vote.predict(X[[0, 83, 100]])
    array(['setosa', 'rejected', 'virginica'], dtype='<U10')
    >>> print(vote.explain(X[[83]]))
    rejected: versicolor 2 (bayes, tree); virginica 1 (logistic)
    >>> print(vote.set_params(rule="average").explain(X[[83]]))
    versicolor: versicolor 0.623 (bayes, tree); virginica 0.377 (logistic)
    """

    def __init__(
        self,
        estimators: Any,
        rule: VoteRule | ProbabilityRule = "plurality",
        *,
        threshold: float | None = None,
        weights: Literal["accuracy"] | ArrayLike | None = None,
        reject_label: Any = None,
        prefit: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.rule = rule
        self.threshold = threshold
        self.weights = weights
        self.reject_label = reject_label
        self.prefit = prefit
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Train the members (unless prefit) and set their weights.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Training samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Passed to the members, and used in their accuracies.
        **fit_params : dict
            Passed to the members; with metadata routing, to those that request them.

        Returns
        -------
        self
        """
        self._check_settings()
        labels = self._start(X, y)
        sample_weight = self._checked_weight(sample_weight, len(labels))
        weights = self._fixed_weights()
        if self.prefit:
            self._take_prefit(X, fit_params)
            _labels.encode(labels, self.classes_, "y")
        else:
            params = self._routed(sample_weight, fit_params)
            self._keep(self._train(X, labels, params), labels)
        self.reject_label_ = self._checked_reject_label()
        if weights is None:
            codes = (
                _codes(self._ask(X, "labels"))
                if self.prefit
                else self._held_out_codes(X, labels, params)
            )
            truth = _labels.encode(labels, self.classes_, "y")
            weights = _accuracies(codes, truth, sample_weight)
        self.weights_ = weights
        return self

    def vote_counts(self, X: Any) -> NDArray[Any]:
        """Return the votes for each class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Integers unless the votes are weighted.
        """
        return count_votes(_codes(self._ask(X, "labels")), self.weights_, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each sample; ``reject_label_`` if it is rejected.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._decide(self._combine(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the fraction of the votes, or the combined probability, of each class.

        All classes are equal where no class has votes, or a positive value.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        values = self._combine(X)
        if self.rule == "average":  # sums to 1 as it is
            return values
        return normalise(values, empty=1 / len(self.classes_))

    def explain(self, X: Any) -> VoteExplanation:
        """Return the prediction of each member, and what the rule makes of them.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        VoteExplanation
            Print it for a line per sample.
        """
        codes = _codes(self._ask(X, "labels"))
        values = self._combine(X, codes)
        return VoteExplanation(
            members=tuple(self.member_names_),
            weights=self.weights_,
            votes=_labels.decode(codes, self.classes_, self.reject_label_),
            classes=self.classes_,
            values=values,
            predictions=self._decide(values),
        )

    def _combine(self, X: Any, codes: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the votes for each class, or its combined probability.

        `codes` are the members' labels, if they are known already.
        """
        self._check_settings()  # rule and threshold may have changed since fit
        if self.rule in PROBABILITY_RULES:
            return combine_probabilities(self._each_proba(X), self.weights_, self.rule)
        if codes is None:
            codes = _codes(self._ask(X, "labels"))
        return count_votes(codes, self.weights_, len(self.classes_))

    def _decide(self, values: NDArray[Any]) -> NDArray[Any]:
        total = float(self.weights_.sum()) if self.rule in VOTE_RULES else 1.0
        codes = decide(values, total, self.rule, self.threshold)
        return _labels.decode(codes, self.classes_, self.reject_label_)

    def _check_settings(self) -> None:
        threshold = self.threshold
        is_fraction = threshold is None or (is_number(threshold) and 0 < threshold <= 1)
        threshold_fits = threshold is None or self.rule not in ("majority", "unanimity")
        weights_fit = self.weights is None or self.rule not in ("minimum", "maximum")
        check_parameters(
            self,
            {
                "rule": (f"one of {', '.join(RULES)}", self.rule in RULES),
                "threshold": ("None or a number above 0 and at most 1", is_fraction),
            },
        )
        only_none = f"None with rule={self.rule!r}"
        check_parameters(
            self,
            {"threshold": (only_none, threshold_fits), "weights": (only_none, weights_fit)},
        )
        if self.rule in PROBABILITY_RULES:
            self._check_probabilities(f"rule={self.rule!r}")

    def _fixed_weights(self) -> NDArray[Any] | None:
        """Return the weights; None if they are accuracies."""
        if self.weights is None:
            return np.ones(len(self._pairs()), dtype=np.int64)
        if isinstance(self.weights, str):
            allowed = "None, 'accuracy' or one number per member"
            check_parameters(self, {"weights": (allowed, self.weights == "accuracy")})
            return None
        return self._one_per_member("weights")

    def _held_out_codes(
        self, X: Any, y: NDArray[Any], params: dict[str, dict[str, Any]]
    ) -> NDArray[Any]:
        """Return the members' out-of-fold predictions."""
        folds = stratified_folds(y, _N_FOLDS, "VoteClassifier with weights='accuracy'")
        codes = np.empty((len(y), len(self._pairs())), dtype=np.int64)
        for rows, scores in self._held_out(X, y, folds, params, "labels"):
            codes[rows] = _codes(scores)
        return codes


def _codes(scores: Scores) -> NDArray[Any]:
    """Return the members' labels, which were requested."""
    return scores.codes  # type: ignore[return-value]  # not None for ask="labels" or "both"


def _accuracies(
    codes: NDArray[Any], truth: NDArray[np.int64], sample_weight: Any
) -> NDArray[np.float64]:
    """Return the accuracy of each member."""
    weights = np.average(codes == truth[:, None], axis=0, weights=sample_weight)
    if not weights.any():
        raise ValueError(
            "VoteClassifier with weights='accuracy' needs a member with an accuracy above 0; got "
            "none."
        )
    return weights


def count_votes(codes: NDArray[Any], weights: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """Return the votes v_k of each sample: the sum of the weights of the members that vote for k.

    Parameters
    ----------
    codes : ndarray of int, shape (n, L)
        The class that each member votes for; -1 if it abstains.
    weights : ndarray of shape (L,)
        The members' weights; with integer weights the votes are integers.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    votes = np.empty((len(codes), n_classes), dtype=weights.dtype)
    equal = bool((weights == 1).all())  # then bincount needs no weights
    width = n_classes + 1  # the first column counts the abstentions
    for start in range(0, len(codes), _BLOCK):
        block = codes[start : start + _BLOCK]
        rows = len(block)
        cells = (block + (np.arange(rows) * width + 1)[:, None]).ravel()
        repeated = None if equal else np.broadcast_to(weights, block.shape).ravel()
        sums = np.bincount(cells, weights=repeated, minlength=rows * width)
        votes[start : start + rows] = sums.reshape(rows, width)[:, 1:]
    return votes


def decide(
    votes: NDArray[Any], total: float, rule: str = "plurality", threshold: float | None = None
) -> NDArray[np.int64]:
    """Return the predicted class of each sample, as a code; -1 if the rule rejects it.

    Parameters
    ----------
    votes : ndarray of shape (n, n_classes)
        The votes for each class, or its combined probability.
    total : float
        The largest possible value of a class: the sum of the weights, or 1.
    rule, threshold
        As in `VoteClassifier`.
    """
    slack = _ROUNDING * total
    winner = np.zeros(len(votes), dtype=np.int64)
    most = votes[:, 0].astype(np.float64)
    for code in range(1, votes.shape[1]):
        winner[votes[:, code] > most + slack] = code
        np.maximum(most, votes[:, code], out=most)
    if rule == "majority":
        enough = most > total / 2 + slack
    elif rule == "unanimity":
        enough = most >= total - slack
    else:
        enough = most >= (threshold or 0.0) * total - slack
    # If all members abstain, or no class has a positive value, every rule rejects the sample.
    return np.where(enough & (most > 0), winner, _labels.REJECTED)


def combine_probabilities(each: Iterator[Floats], weights: NDArray[Any], rule: str) -> Floats:
    """Return the combined probability of each class; 0 for all classes if no class is left.

    Parameters
    ----------
    each : iterator of ndarray of shape (n, n_classes)
        The probabilities of each member. Only the median keeps all of them.
    weights : ndarray of shape (L,)
        The members' weights; the minimum and the maximum ignore them.
    rule : str
        One of `PROBABILITY_RULES`.

    Returns
    -------
    ndarray of shape (n, n_classes)
    """
    if rule == "average":
        return average(each, weights)
    if rule == "median":
        values = weighted_median(np.stack(list(each)), weights)
    elif rule == "product":
        # A weight of 0 must not turn log(0) into NaN.
        logs = reduce(
            np.add, (w * _log(proba) for w, proba in zip(weights, each, strict=True) if w > 0)
        )
        with np.errstate(invalid="ignore"):  # -inf - (-inf) where no class is left
            values = np.nan_to_num(np.exp(logs - logs.max(axis=1, keepdims=True)))
    else:
        values = reduce(np.minimum if rule == "minimum" else np.maximum, each)
    return normalise(values, empty=0.0)


def _log(proba: Floats) -> Floats:
    """Return logarithms, -inf of 0."""
    with np.errstate(divide="ignore"):
        return np.log(proba)


def average(each: Iterator[Floats], weights: NDArray[Any]) -> Floats:
    """Return the weighted average of the members' probabilities, of shape (n, n_classes)."""
    total: Floats = weights[0] * next(each)
    for weight, proba in zip(weights[1:], each, strict=True):
        total += proba if weight == 1 else weight * proba
    total /= weights.sum()
    np.clip(total, 0, 1, out=total)
    return total


def weighted_median(values: Floats, weights: NDArray[Any]) -> Floats:
    """Return the weighted median over the first axis.

    Half of the weight is on either side of it. If that holds between two values, it is their mean.
    """
    order = np.argsort(values, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(weights[order], axis=0)
    half, slack = weights.sum() / 2, _ROUNDING * weights.sum()
    middle = [(below >= half - slack).argmax(axis=0), (below > half + slack).argmax(axis=0)]
    lower, upper = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in middle)
    median: Floats = (lower + upper) / 2
    return median


def normalise(values: NDArray[Any], empty: float) -> Floats:
    """Divide each row by its sum; a row of zeros becomes `empty`."""
    total = values.sum(axis=1, keepdims=True)
    normalised: Floats = np.full(values.shape, empty)
    np.divide(values, total, where=total > 0, out=normalised)
    return normalised


@dataclass(frozen=True)
class VoteExplanation:
    """The predictions of each member, and the values of the classes by the rule.

    Attributes
    ----------
    members : tuple of str
        The members' names.
    weights : ndarray of shape (L,)
        The weight of each member.
    votes : ndarray of shape (n, L)
        The label that each member predicts.
    classes : ndarray of shape (C,)
        The classes.
    values : ndarray of shape (n, C)
        The votes for each class, or its combined probability.
    predictions : ndarray of shape (n,)
        The committee's predictions.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.fuse import VoteClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load("iris", return_X_y=True)
    >>> stump = DecisionTreeClassifier(max_depth=1, random_state=0)
    >>> vote = VoteClassifier([("bayes", GaussianNB()), ("stump", stump)]).fit(X, y)
    >>> explanation = vote.explain(X[[0, 100]])
    >>> print(explanation)
    setosa: setosa 2 (bayes, stump)
    versicolor: versicolor 1 (stump); virginica 1 (bayes)
    >>> explanation.votes[1]
    array(['virginica', 'versicolor'], dtype='<U10')
    """

    members: tuple[str, ...]
    weights: NDArray[Any]
    votes: NDArray[Any]
    classes: NDArray[Any]
    values: NDArray[Any]
    predictions: NDArray[Any]

    def __str__(self) -> str:
        return "\n".join(self.row(i) for i in range(len(self.predictions)))

    def row(self, i: int) -> str:
        """Describe one sample in a line: its prediction, and each class that is predicted."""
        parts = []
        for label, value in zip(self.classes, self.values[i], strict=True):
            by = [
                name
                for name, vote in zip(self.members, self.votes[i], strict=True)
                if vote == label
            ]
            if by or label == self.predictions[i]:
                of_members = f" ({', '.join(by)})" if by else ""
                parts.append(f"{label} {round(value, 3):g}{of_members}")
        return f"{self.predictions[i]}: {'; '.join(parts) or 'no votes'}"
