"""The base class of Modest and Real AdaBoost, which boost trees by the scores of their leaves."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from margrave._typing import Flags, Floats
from margrave._validation import Rules, is_count
from margrave.members._one_vs_rest import OneVsRestScorer, normalise

ZERO = 1e-12
"""Scores and sums of weights that are 0 may be as large as this, because of rounding."""


class BoostedTrees(OneVsRestScorer):
    """Base class of classifiers whose score is a sum over the leaves that a sample reaches.

    A round fits a tree under the weights D, which sum to 1, and a subclass computes what each leaf
    adds to the score. D is then multiplied by exp(−y f), with f the score of the sample's leaf, and
    normalised.
    """

    estimator: Any
    n_estimators: int
    random_state: Any
    # The depth of the trees if `estimator` is None; whether a tree that is right on every sample
    # is the last one.
    _default_depth: ClassVar[int]
    _stops_without_errors: ClassVar[bool]

    @abstractmethod
    def _score_leaves(
        self,
        leaves: NDArray[np.integer[Any]],
        positive: Flags,
        weights: Floats,
        n_nodes: int,
    ) -> Floats:
        """Compute what each node of a tree adds to the score; 0 for inner nodes.

        Parameters
        ----------
        leaves : ndarray of int
            The leaf of each sample.
        positive : ndarray of bool
            Which samples are positive.
        weights : ndarray of float
            D.
        n_nodes : int
            Number of nodes of the tree.
        """

    def _parameter_rules(self) -> Rules:
        is_tree = self.estimator is None or isinstance(self.estimator, DecisionTreeClassifier)
        return {
            "estimator": ("a DecisionTreeClassifier, a subclass of it or None", is_tree),
            "n_estimators": ("an integer of at least 1", is_count(self.n_estimators)),
        }

    def _fit_problems(self, X: Floats, positives: Flags, weights: Floats) -> None:
        rng = check_random_state(self.random_state)
        boosted = [self._boost(X, positive, weights, rng) for positive in positives]
        self.estimators_ = [[tree for tree, _ in rounds] for rounds in boosted]
        self.leaf_scores_ = [[scores for _, scores in rounds] for rounds in boosted]
        self.n_iter_ = np.array([len(rounds) for rounds in boosted])

    def _boost(
        self, X: Floats, positive: Flags, weights: Floats, rng: np.random.RandomState
    ) -> list[tuple[DecisionTreeClassifier, Floats]]:
        """Fit the trees of one problem, each with the scores of its nodes."""
        base = self.estimator
        if base is None:
            base = DecisionTreeClassifier(max_depth=self._default_depth)
        sign = np.where(positive, 1.0, -1.0)
        weights = normalise(weights)
        rounds: list[tuple[DecisionTreeClassifier, Floats]] = []
        for _ in range(self.n_estimators):
            tree = clone(base).set_params(random_state=rng.randint(np.iinfo(np.int32).max))
            leaves = tree.fit(X, positive, sample_weight=weights).apply(X)
            scores = self._score_leaves(leaves, positive, weights, tree.tree_.node_count)
            if np.abs(scores).max() <= ZERO:
                break
            rounds.append((tree, scores))
            margins = sign * scores[leaves]
            if self._stops_without_errors and (margins > 0).all():
                break
            weights = normalise(weights * np.exp(-margins))
        return rounds

    def _score_problems(self, X: Floats) -> Floats:
        total = np.zeros((len(X), len(self.estimators_)))
        for added in self._score_rounds(X):
            total += added
        return total

    def _score_rounds(self, X: Floats) -> Iterator[Floats]:
        """Yield what each round adds to the scores; 0 for problems that have fewer rounds."""
        for number in range(self.n_iter_.max()):
            added = np.zeros((len(X), len(self.estimators_)))
            for problem in np.flatnonzero(self.n_iter_ > number):
                tree = self.estimators_[problem][number]
                added[:, problem] = self.leaf_scores_[problem][number][tree.apply(X)]
            yield added

    def staged_decision_function(self, X: ArrayLike) -> Iterator[Floats]:
        """Yield the scores of the classes after each round.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Yields
        ------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            As from `decision_function`, of the trees so far.
        """
        rows = self._validate_rows(X)
        total = np.zeros((len(rows), len(self.estimators_)))
        for added in self._score_rounds(rows):
            total = total + added
            yield self._class_scores(total)

    def staged_predict(self, X: ArrayLike) -> Iterator[NDArray[Any]]:
        """Yield the labels of samples after each round.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Yields
        ------
        labels : ndarray of shape (n_samples,)
            As from `predict`, of the trees so far.
        """
        for scores in self.staged_decision_function(X):
            yield self._labels_of(scores)


def sum_in_leaves(leaves: NDArray[np.integer[Any]], values: Floats, n_nodes: int) -> Floats:
    """Sum the values of the samples in each leaf; 0 for inner nodes."""
    return np.bincount(leaves, weights=values, minlength=n_nodes).astype(np.float64)
