"""Modest AdaBoost: boosted trees that hold back where they are right anyway.

"A Linear Combination of Classifiers via Rank Margin Maximization" (Marrocco, Simeone, Tortorella)
takes it for its members in section 4: trees of depth 3, 10 rounds, and first weights drawn at
random so that members differ. The method is Vezhnevets' (2005). A round trains a tree under the
weights D, of sum 1, and looks at its leaves under D and under the inverted weights

    D̄ = (1 − D) / (n − 1),

of sum 1 too, which are large where boosting has made D small. With P⁺, P⁻ and P̄⁺, P̄⁻ the weights
of the two classes in a leaf under D and D̄, the leaf adds to the score

    f = P⁺ (1 − P̄⁺) − P⁻ (1 − P̄⁻),

and D is multiplied by exp(−y f) and normalised. Without the division by n − 1, P̄ exceeds 1 and
turns the sign of f in every larger leaf.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state

from margrave._typing import Flags, Floats
from margrave._validation import Rules, is_count
from margrave.members._two_sided import TwoSidedClassifier, shares

# What rounding leaves of an f of 0.
_ZERO = 1e-12


def inverted(weights: Floats) -> Floats:
    """D̄ = (1 − D) / (n − 1); it sums to 1 as D does."""
    return (1 - weights) / (len(weights) - 1)


def leaf_scores(
    leaves: NDArray[np.integer[Any]], positive: Flags, weights: Floats, n_nodes: int
) -> Floats:
    """The f of every node of a tree; 0 for those that are not leaves.

    Parameters
    ----------
    leaves : ndarray of int
        The leaf that each sample reaches.
    positive : ndarray of bool
        Which samples are positive.
    weights : ndarray of float
        D.
    n_nodes : int
        Nodes of the tree.
    """
    parts = []
    for side in (positive, ~positive):
        mass, other = (
            np.bincount(leaves, weights=values * side, minlength=n_nodes)
            for values in (weights, inverted(weights))
        )
        parts.append(mass * (1 - other))
    return parts[0] - parts[1]


class ModestAdaBoostClassifier(TwoSidedClassifier):
    """Modest AdaBoost: boosted trees that hold back where they are right anyway.

    AdaBoost goes on to push samples that it already has right. Here each leaf of a tree adds to
    the score what its samples of either class weigh now, reduced by what they would weigh if the
    weights were turned over: the more a leaf is about samples that boosting has left behind as
    easy, the less it adds [1]_ [2]_. The scores stay small, and the training error falls more
    slowly than AdaBoost's.

    Parameters
    ----------
    estimator : decision tree, default=None
        The tree to boost, a `DecisionTreeClassifier` or a subclass of it such as
        `ExtraTreeClassifier`; one with `max_depth=3` if None.
    n_estimators : int, default=10
        The largest number of rounds.
    random_weights : bool, default=True
        Whether the first weights are drawn, uniformly from 0 to 1 times `sample_weight`. Several
        of these classifiers on the same data then differ, which a committee needs. If False, the
        first weights are `sample_weight`.
    random_state : int, RandomState instance or None, default=None
        Seed of the first weights and of the trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimators_ : list of lists of DecisionTreeClassifier
        The trees: one list for two classes, else one for each class. They know the positive class
        as True and the others as False.
    leaf_scores_ : list of lists of ndarray of shape (n_nodes,)
        What each node of each tree adds to the score, from -1 to 1; 0 for nodes within the tree.
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Rounds kept. Boosting ends early when a tree would add nothing anywhere.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` has names that are all strings.

    Notes
    -----
    With more than two classes, every class is scored against all the others.

    There is no `predict_proba`: the scores are sums of weights, not log-odds. Wrap it in
    scikit-learn's `CalibratedClassifierCV` to get probabilities.

    Weighing a sample twice is not quite the same as giving it twice, as the inverted weights
    depend on the number of samples.

    References
    ----------
    .. [1] C. Marrocco, P. Simeone and F. Tortorella, "A Linear Combination of Classifiers via Rank
       Margin Maximization", section 4.
    .. [2] A. Vezhnevets and V. Vezhnevets, "Modest AdaBoost: Teaching AdaBoost to Generalize
       Better", GraphiCon, 2005.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from margrave.members import ModestAdaBoostClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = ModestAdaBoostClassifier(random_state=0).fit(X, y)
    >>> model.n_iter_
    array([10])
    >>> model.predict([[-1, 0.5], [2, 0]])
    array([0, 1])
    """

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        random_weights: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.random_weights = random_weights
        self.random_state = random_state

    def _rules(self) -> Rules:
        is_tree = self.estimator is None or isinstance(self.estimator, DecisionTreeClassifier)
        is_flag = isinstance(self.random_weights, bool | np.bool_)
        return {
            "estimator": ("a DecisionTreeClassifier, a subclass of it or None", is_tree),
            "n_estimators": ("an integer of at least 1", is_count(self.n_estimators)),
            "random_weights": ("True or False", is_flag),
        }

    def _learn(self, X: Floats, sides: NDArray[np.bool_], weights: Floats) -> None:
        rng = check_random_state(self.random_state)
        rounds = [self._boost(X, positive, weights, rng) for positive in sides]
        self.estimators_ = [[tree for tree, _ in side] for side in rounds]
        self.leaf_scores_ = [[scores for _, scores in side] for side in rounds]
        self.n_iter_ = np.array([len(side) for side in rounds])

    def _boost(
        self, X: Floats, positive: Flags, weights: Floats, rng: np.random.RandomState
    ) -> list[tuple[DecisionTreeClassifier, Floats]]:
        """The trees of all rounds, each with the scores of its nodes."""
        base = DecisionTreeClassifier(max_depth=3) if self.estimator is None else self.estimator
        sign = np.where(positive, 1.0, -1.0)
        if self.random_weights:
            weights = weights * rng.uniform(size=len(weights))
        weights = shares(weights)
        rounds: list[tuple[DecisionTreeClassifier, Floats]] = []
        for _ in range(self.n_estimators):
            tree = clone(base).set_params(random_state=rng.randint(np.iinfo(np.int32).max))
            leaves = tree.fit(X, positive, sample_weight=weights).apply(X)
            scores = leaf_scores(leaves, positive, weights, tree.tree_.node_count)
            if np.abs(scores).max() <= _ZERO:
                break
            rounds.append((tree, scores))
            weights = shares(weights * np.exp(-sign * scores[leaves]))
        return rounds

    def _score(self, X: Floats) -> Floats:
        total = np.zeros((len(X), len(self.estimators_)))
        for side, trees in enumerate(self.estimators_):
            for tree, scores in zip(trees, self.leaf_scores_[side], strict=True):
                total[:, side] += scores[tree.apply(X)]
        return total
