"""Modest AdaBoost (Vezhnevets and Vezhnevets, 2005).

Marrocco et al. (2010), section 4, make their members with it: trees of depth 3, 10 rounds, and
random initial weights so that the members differ.

A round fits a tree under the weights D, which sum to 1, and computes the weights of the classes in
its leaves under D and under the inverted weights

    D̄ = (1 − D) / (n − 1),

which also sum to 1 and are large for the samples whose D boosting has made small. With P⁺ and P⁻
the weights of the positives and the negatives in a leaf under D, and P̄⁺ and P̄⁻ those under D̄,
the leaf adds to the score

    f = P⁺ (1 − P̄⁺) − P⁻ (1 − P̄⁻).

D is then multiplied by exp(−y f) and normalised. Without the division by n − 1, P̄ exceeds 1 and
changes the sign of f in every large leaf.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from margrave._typing import Flags, Floats
from margrave._validation import Rules
from margrave.members._boosted_trees import BoostedTrees, sum_in_leaves


class ModestAdaBoostClassifier(BoostedTrees):
    """Modest AdaBoost: boosted trees that add less where earlier trees are right.

    AdaBoost keeps raising the scores of samples that are already right. In Modest AdaBoost a leaf
    adds to the score the weight of its samples of either class, reduced by their weight if all
    weights were inverted: the more of its samples boosting considers easy, the less a leaf adds
    [1]_ [2]_. The scores stay small, and the training error decreases more slowly than AdaBoost's.

    Parameters
    ----------
    estimator : decision tree, default=None
        The tree to boost, a `DecisionTreeClassifier` or a subclass of it such as
        `ExtraTreeClassifier`; one with `max_depth=3` if None.
    n_estimators : int, default=10
        The largest number of rounds.
    random_weights : bool, default=True
        Whether the initial weights are random, uniform between 0 and `sample_weight`. Classifiers
        with different seeds then differ on the same data, as the members of a committee should. If
        False, the initial weights are `sample_weight`.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights and of the trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimators_ : list of lists of DecisionTreeClassifier
        The trees: one list for two classes, else one per class. Their classes are True for the
        positive class and False for the rest.
    leaf_scores_ : list of lists of ndarray of shape (n_nodes,)
        What each node of each tree adds to the score, between -1 and 1; 0 for inner nodes.
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Number of trees. Boosting stops early when a tree would add nothing to any score.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if `X` has names that are all strings.

    Notes
    -----
    With more than two classes, every class is scored against the rest.

    There is no `predict_proba`, because the scores are sums of weights, not log-odds.
    scikit-learn's `CalibratedClassifierCV` adds probabilities.

    A sample of weight 2 is not quite the same as two samples, because the inverted weights depend
    on the number of samples.

    References
    ----------
    .. [1] A. Vezhnevets and V. Vezhnevets, "Modest AdaBoost: Teaching AdaBoost to Generalize
       Better", GraphiCon, 2005.
    .. [2] C. Marrocco, P. Simeone and F. Tortorella, "A Linear Combination of Classifiers via Rank
       Margin Maximization", Lecture Notes in Computer Science 6218, 2010, section 4.

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

    _default_depth = 3
    _stops_without_errors = False

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

    def _parameter_rules(self) -> Rules:
        is_flag = isinstance(self.random_weights, bool | np.bool_)
        return {**super()._parameter_rules(), "random_weights": ("True or False", is_flag)}

    def _boost(
        self, X: Floats, positive: Flags, weights: Floats, rng: np.random.RandomState
    ) -> list[tuple[DecisionTreeClassifier, Floats]]:
        if self.random_weights:
            weights = weights * rng.uniform(size=len(weights))
        return super()._boost(X, positive, weights, rng)

    def _score_leaves(
        self, leaves: NDArray[np.integer[Any]], positive: Flags, weights: Floats, n_nodes: int
    ) -> Floats:
        terms = []
        for in_class in (positive, ~positive):
            mass, inverted_mass = (
                sum_in_leaves(leaves, values * in_class, n_nodes)
                for values in (weights, invert_weights(weights))
            )
            terms.append(mass * (1 - inverted_mass))
        return terms[0] - terms[1]


def invert_weights(weights: Floats) -> Floats:
    """Compute D̄ = (1 − D) / (n − 1)."""
    return (1 - weights) / (len(weights) - 1)
