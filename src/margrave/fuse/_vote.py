"""A committee that votes: unanimity, majority and plurality, with a threshold and with weights.

Multi-classifiers, fusion slides (i) to (v). Member i of L votes d_{i,k} = 1 for one class k with
weight w_i; the votes for a class are ``v_k = Σ_{i=1..L} w_i d_{i,k}`` (the slide's sum over weights
runs to c, the number of classes; it means L). With W = Σ w_i the prediction is the class with most
votes, the first in ``classes_`` among equal ones, if

- plurality: always, or with a threshold α if ``v_k >= α W``;
- majority: if ``v_k > W / 2`` (the slide's 50 % + 1);
- unanimity: if ``v_k = W``, which is the threshold α = 1;

and otherwise the extra class ω_{c+1}: the sample is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._validation import check_parameters, is_number
from margrave.committee import Committee, stratified_folds

RULES = ("plurality", "majority", "unanimity")
# Votes are sums of a few weights: two sums that differ by less than this fraction of W are equal.
_ROUNDING = 1e-12
_BLOCK = 20_000
_N_FOLDS = 5


class VoteClassifier(Committee):
    """A committee that votes, and may reject what it cannot agree on.

    Parameters
    ----------
    estimators : list of classifiers, or of (name, classifier)
        The members.
    rule : {"plurality", "majority", "unanimity"}, default="plurality"
        The votes that a prediction needs: the most, more than half, or all. Like ``threshold``, it
        can be changed after ``fit``.
    threshold : float in (0, 1], optional
        With plurality: the fraction of all votes that the winner needs; otherwise the sample is
        rejected.
    weights : None, "accuracy" or array-like of shape (n_members,), default=None
        None for equal weights; "accuracy" for weights by accuracy, on the data passed to ``fit`` if
        ``prefit``, otherwise by 5-fold cross-validation; or one weight for each member, none
        negative and not all zero.
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
        All classes of the members; among classes with equal votes the first is predicted.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names, by default by type.
    weights_ : ndarray of shape (n_members,)
        The weight of each vote.
    reject_label_ : label
        The label of rejected samples.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The rules are those of Multi-classifiers, slides on fusion. With two classes, odd L and equal
    weights plurality and majority agree. A member that itself rejects a sample abstains; a sample
    without votes is rejected under every rule. scikit-learn's metrics need labels of one type: if
    the label of rejected samples has another type than the classes (the default for booleans), use
    :meth:`score` or :meth:`margrave.Confusion.of`.

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
    >>> vote.predict(X[[0, 52, 100]])
    array(['setosa', 'rejected', 'virginica'], dtype='<U10')
    >>> print(vote.explain(X[[52]]))
    rejected: versicolor 2 (logistic, tree); virginica 1 (bayes)
    """

    def __init__(
        self,
        estimators: Any,
        rule: Literal["plurality", "majority", "unanimity"] = "plurality",
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
            codes = self._codes(X) if self.prefit else self._held_out_codes(X, labels, params)
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
        return count_votes(self._codes(X), self.weights_, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each sample; ``reject_label_`` if the rule rejects it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._decide(self.vote_counts(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the fraction of the votes for each class; all equal if all members abstain.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        votes = self.vote_counts(X).astype(np.float64)
        cast = votes.sum(axis=1, keepdims=True)
        return np.where(cast > 0, votes / np.where(cast > 0, cast, 1), 1 / len(self.classes_))

    def explain(self, X: Any) -> VoteExplanation:
        """Return the votes of each member.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        VoteExplanation
            Print it for a line per sample.
        """
        codes = self._codes(X)
        counts = count_votes(codes, self.weights_, len(self.classes_))
        return VoteExplanation(
            members=tuple(self.member_names_),
            weights=self.weights_,
            votes=_labels.decode(codes, self.classes_, self.reject_label_),
            classes=self.classes_,
            counts=counts,
            predictions=self._decide(counts),
        )

    def _codes(self, X: Any) -> NDArray[Any]:
        scores = self._ask(X, "labels")
        return scores.codes  # type: ignore[return-value]  # not None for ask="labels"

    def _decide(self, votes: NDArray[Any]) -> NDArray[Any]:
        self._check_settings()  # rule and threshold may have changed since fit
        codes = decide(votes, float(self.weights_.sum()), self.rule, self.threshold)
        return _labels.decode(codes, self.classes_, self.reject_label_)

    def _check_settings(self) -> None:
        allowed = f"None with rule={self.rule!r}"
        is_allowed = self.threshold is None
        if self.threshold is not None and self.rule == "plurality":
            allowed = "None or a number above 0 and at most 1"
            is_allowed = is_number(self.threshold) and 0 < self.threshold <= 1
        rules = {
            "rule": (f"one of {', '.join(RULES)}", self.rule in RULES),
            "threshold": (allowed, is_allowed),
        }
        check_parameters(self, rules)

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
            codes[rows] = scores.codes  # type: ignore[assignment]  # not None for ask="labels"
        return codes


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
    """Return the predicted class of each sample, as a code; -1 if the rule rejects it."""
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
    # If all members abstain, every rule rejects the sample.
    return np.where(enough & (most > 0), winner, _labels.REJECTED)


@dataclass(frozen=True)
class VoteExplanation:
    """The votes of each member.

    Attributes
    ----------
    members : tuple of str
        The members' names.
    weights : ndarray of shape (L,)
        The weight of each vote.
    votes : ndarray of shape (n, L)
        The label that each member votes for.
    classes : ndarray of shape (C,)
        The classes.
    counts : ndarray of shape (n, C)
        Votes for each class.
    predictions : ndarray of shape (n,)
        The committee's predictions.
    """

    members: tuple[str, ...]
    weights: NDArray[Any]
    votes: NDArray[Any]
    classes: NDArray[Any]
    counts: NDArray[Any]
    predictions: NDArray[Any]

    def __str__(self) -> str:
        return "\n".join(self.row(i) for i in range(len(self.predictions)))

    def row(self, i: int) -> str:
        """Describe one sample in a line: its prediction, and each class with votes and voters."""
        parts = []
        for label, count in zip(self.classes, self.counts[i], strict=True):
            by = [
                name
                for name, vote in zip(self.members, self.votes[i], strict=True)
                if vote == label
            ]
            if by:
                parts.append(f"{label} {count:g} ({', '.join(by)})")
        return f"{self.predictions[i]}: {'; '.join(parts) or 'no votes'}"
