"""A committee that votes: the rules of "Multi-classifiers", as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave.committee import Committee, stratified_folds
from margrave.fuse._rules import RULES, VoteExplanation, count_votes, decide

_FOLDS = 5


class VoteClassifier(Committee):
    """A committee that votes, and may reject what it cannot agree on.

    Parameters
    ----------
    estimators : list of classifiers, or of (name, classifier)
        The members.
    rule : {"plurality", "majority", "unanimity"}, default="plurality"
        How many votes an answer takes: the most, more than half, or all. Like ``threshold``, it
        may be set anew on a fitted vote.
    threshold : float in (0, 1], optional
        With plurality: the share of all votes the winner needs, else the sample is rejected.
    weights : None, "accuracy" or array-like of shape (n_members,), default=None
        One vote each; votes weighted by accuracy, on the data given to ``fit`` if ``prefit``, else
        by 5-fold cross-validation; or given weights, none negative and not all zero.
    reject_label : label, optional
        What a rejected sample is answered with. By default "rejected" for labels that are strings
        or booleans, and one below the smallest label for numbers; never a class.
    prefit : bool, default=False
        Whether the members are trained already; they are then used as they are.
    n_jobs : int, optional
        Members trained or asked at a time.

    Attributes
    ----------
    classes_ : ndarray
        All classes the members know; equal votes go to the first of them.
    estimators_ : list
        The trained members.
    named_estimators_ : Bunch
        The same by name.
    member_names_ : list of str
        Their names: as given, or by type.
    weights_ : ndarray of shape (n_members,)
        The weight of each vote.
    reject_label_ : label
        What a rejected sample is answered with.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    "Multi-classifiers", slides on fusion. With two classes, odd L and equal weights plurality and
    majority agree. A member that itself rejects a sample abstains; a sample nobody votes on is
    rejected under every rule. scikit-learn's metrics want labels of one type: where rejected
    answers differ in type from the labels (the default for booleans), use :meth:`score` or
    :meth:`margrave.Confusion.of`.

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
        given = self._given_weights()
        if self.prefit:
            self._take_prefit(X, fit_params)
            _labels.encode(labels, self.classes_, "y")
        else:
            params = self._routed(sample_weight, fit_params)
            self._keep(self._train(X, labels, params), labels)
        self.reject_label_ = self._checked_reject_label()
        if given is None:
            codes = self._codes(X) if self.prefit else self._held_out_codes(X, labels, params)
            truth = _labels.encode(labels, self.classes_, "y")
            given = _accuracies(codes, truth, sample_weight)
        self.weights_ = given
        return self

    def vote_counts(self, X: Any) -> NDArray[Any]:
        """Votes for each class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Whole numbers unless the votes are weighted.
        """
        return count_votes(self._codes(X), self.weights_, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """The committee's answer, ``reject_label_`` where the rule rejects the sample.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._answers(self.vote_counts(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Shares of the votes; all equal where nobody votes.

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
        """Who voted what.

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
            answers=self._answers(counts),
        )

    def _codes(self, X: Any) -> NDArray[Any]:
        scores = self._ask(X, "labels")
        return scores.codes  # type: ignore[return-value]  # labels were asked for

    def _answers(self, votes: NDArray[Any]) -> NDArray[Any]:
        self._check_settings()  # rule and threshold may be set anew after fit
        codes = decide(votes, float(self.weights_.sum()), self.rule, self.threshold)
        return _labels.decode(codes, self.classes_, self.reject_label_)

    def _check_settings(self) -> None:
        if self.rule not in RULES:
            raise ValueError(
                f"VoteClassifier needs rule to be one of {', '.join(RULES)}; got {self.rule!r}."
            )
        if self.threshold is None:
            return
        if self.rule != "plurality":
            raise ValueError(
                f"VoteClassifier takes a threshold with rule='plurality' only; got {self.rule!r}."
            )
        if not _is_share(self.threshold):
            raise ValueError(
                f"VoteClassifier needs threshold in (0, 1], a share of the votes; "
                f"got {self.threshold!r}."
            )

    def _given_weights(self) -> NDArray[Any] | None:
        """The weights, unless they follow from accuracies."""
        if self.weights is None:
            return np.ones(len(self._pairs()), dtype=np.int64)
        if isinstance(self.weights, str):
            if self.weights != "accuracy":
                raise ValueError(
                    "VoteClassifier needs weights to be None, 'accuracy' or one number per "
                    f"member; got {self.weights!r}."
                )
            return None
        return self._one_per_member("weights")

    def _held_out_codes(
        self, X: Any, y: NDArray[Any], params: dict[str, dict[str, Any]]
    ) -> NDArray[Any]:
        """The members' labels for samples they were not trained on, by cross-validation."""
        folds = stratified_folds(y, _FOLDS, "VoteClassifier with weights='accuracy'")
        codes = np.empty((len(y), len(self._pairs())), dtype=np.int64)
        for rows, scores in self._held_out(X, y, folds, params, "labels"):
            codes[rows] = scores.codes  # type: ignore[assignment]  # labels were asked for
        return codes


def _accuracies(
    codes: NDArray[Any], truth: NDArray[np.int64], sample_weight: Any
) -> NDArray[np.float64]:
    """Each member's share of right answers."""
    weights = np.average(codes == truth[:, None], axis=0, weights=sample_weight)
    if not weights.any():
        raise ValueError("VoteClassifier with weights='accuracy' has no member that is ever right.")
    return weights


def _is_share(value: Any) -> bool:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(0 < value <= 1)
