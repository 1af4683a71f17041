"""Real AdaBoost: the survey's algorithm 1, with real-valued base classifiers and a free α.

Nair (2015), algorithm 1, trains a base classifier f_t : X → R under the weights D_t, chooses α_t,
and updates

    D_{t+1}(i) = D_t(i) exp(−α_t y_i f_t(x_i)) / Z_t.

The survey does not define f_t and α_t. Schapire and Singer (1999) do: the training error is at most
Π Z_t, so both should make Z_t small. A tree is constant on each of its leaves. With the weights W⁺
of the positives and W⁻ of the negatives in a leaf,

    Z_t(α) = Σ_leaves W⁺ exp(−α f) + W⁻ exp(α f)

is smallest if α f is half of the leaf's log-odds (their section 4.1). So f is half of the log-odds,
and the best α is 1. In a leaf of one class that would be infinite; a small ε is added to both
weights (section 4.2),

    f = ½ ln((W⁺ + ε) / (W⁻ + ε)),

for which α = 1 minimises Z_t with the weights W⁺ + ε and W⁻ + ε.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, softmax

from margrave._typing import Flags, Floats
from margrave._validation import Rules, is_number
from margrave.members._boosted_trees import BoostedTrees, sum_in_leaves


class RealAdaBoostClassifier(BoostedTrees):
    """Real AdaBoost: boosted trees whose leaves vote with their confidence.

    In discrete AdaBoost every tree votes for a class, with one weight. Here a leaf adds half of the
    log-odds of its weighted samples to the score, so a pure leaf counts more than a mixed one
    [1]_ [2]_. The score after all rounds estimates half of the log-odds of the second class [3]_.

    Parameters
    ----------
    estimator : decision tree, default=None
        The tree to boost, a `DecisionTreeClassifier` or a subclass of it such as
        `ExtraTreeClassifier`; a stump, which has `max_depth=1`, if None.
    n_estimators : int, default=50
        The largest number of rounds.
    smoothing : float, default=1e-3
        ε, added to the weights of both classes in a leaf, which sum to 1 over all leaves. The
        larger, the less a leaf of one class adds: at most ½ ln(1 + 1/ε), 3.5 by default.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    estimators_ : list of lists of DecisionTreeClassifier
        The trees: one list for two classes, else one per class. Their classes are True for the
        positive class and False for the rest.
    leaf_scores_ : list of lists of ndarray of shape (n_nodes,)
        What each node of each tree adds to the score; 0 for inner nodes.
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Number of trees. Boosting stops early when a tree would add nothing to any score, or when it
        is right on every sample.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if `X` has names that are all strings.

    Notes
    -----
    With more than two classes, every class is scored against the rest.

    After many rounds the probabilities are too close to 0 and 1, as those of all boosting are.
    scikit-learn's `CalibratedClassifierCV` corrects them.

    References
    ----------
    .. [1] A. V. Nair, "Survey of Ensemble Classifiers", 2015, algorithm 1.
    .. [2] R. E. Schapire and Y. Singer, "Improved Boosting Algorithms Using Confidence-rated
       Predictions", Machine Learning 37, 1999.
    .. [3] J. Friedman, T. Hastie and R. Tibshirani, "Additive Logistic Regression: A Statistical
       View of Boosting", Annals of Statistics 28, 2000.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from margrave.members import RealAdaBoostClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = RealAdaBoostClassifier(random_state=0).fit(X, y)
    >>> model.predict([[-1, 0.5], [2, 0]])
    array([0, 1])
    >>> [round(float((labels != y).mean()), 2) for labels in model.staged_predict(X)][::10]
    [0.13, 0.04, 0.01, 0.01, 0.0]
    """

    _default_depth = 1
    _stops_without_errors = True

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 50,
        *,
        smoothing: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.smoothing = smoothing
        self.random_state = random_state

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the probabilities of the classes, from scores that are half of the log-odds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`. With more than two classes, the probabilities of
            each class against the rest, divided by their sum.
        """
        scores = self.decision_function(X)
        of_classes = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
        proba: Floats = softmax(log_expit(2 * of_classes), axis=1)
        return proba

    def _parameter_rules(self) -> Rules:
        is_above = is_number(self.smoothing) and 0 < self.smoothing < np.inf
        return {**super()._parameter_rules(), "smoothing": ("a finite number above 0", is_above)}

    def _score_leaves(
        self, leaves: NDArray[np.integer[Any]], positive: Flags, weights: Floats, n_nodes: int
    ) -> Floats:
        plus, minus = (
            sum_in_leaves(leaves, weights * in_class, n_nodes) for in_class in (positive, ~positive)
        )
        scores: Floats = np.log(plus + self.smoothing) - np.log(minus + self.smoothing)
        return scores / 2
