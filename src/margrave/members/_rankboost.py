"""RankBoost for two classes: thresholds on single features, boosted to order crucial pairs.

"A Linear Combination of Classifiers via Rank Margin Maximization" (Marrocco, Simeone, Tortorella)
describes it in section 2 and compares with it in section 4; the method is Freund's and others'
(2003). It keeps a distribution D over the crucial pairs (i, k), one positive and one negative
sample. A round takes the weak ranker h that agrees best with D,

    r = Σ D_ik (h(x_i) − h(x_k)),

weighs it by α and multiplies D_ik by exp(−α (h(x_i) − h(x_k))). That factor splits into one for
each sample, so D_ik = u_i v_k holds in every round if u and v are normalised to sum 1 each by
itself, and no pair is ever made. Here h is a threshold, h(x) = [x_j > t] in {0, 1}, and its
direction is the sign of α. Then r = Σ u_i h(x_i) − Σ v_k h(x_k), for all thresholds of a feature
at once from one running sum in the order of its values: O(n) after one sort.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Flags, Floats
from margrave._validation import Rules, is_count
from margrave.confusion import balanced_threshold, midpoint
from margrave.members._two_sided import TwoSidedClassifier, shares

MAX_ALPHA = 5.0
"""The largest weight of one ranker: α is infinite where a ranker makes no mistake.

e to the 5, squared, takes the pairs it orders right to 1/22,000 of their weight: next to nothing.
"""

# Differences below this come from rounding: such values of r are equal.
_TIE = 1e-9


@dataclass(frozen=True)
class Ranker:
    """One weak ranker: it adds `weight` to the score of a sample above its threshold.

    Parameters
    ----------
    feature : int
        Which feature it looks at, as a column of X.
    threshold : float
        Samples with a larger value get the weight.
    weight : float
        The α of its round; negative if smaller values speak for the positive class.
    """

    feature: int
    threshold: float
    weight: float


@dataclass(frozen=True)
class Presorted:
    """The samples sorted by each feature, once for all rounds and classes.

    Attributes
    ----------
    values : ndarray of shape (n_features, n_samples)
        The features.
    order : ndarray of int32, of the same shape
        The samples in rising order of each feature.
    ends : tuple of slice or ndarray of int
        For each feature, where in its order a threshold can stand: after the last of every run of
        equal values, except at the very end. A slice where no values are equal, which is quicker.
    """

    values: Floats
    order: NDArray[np.int32]
    ends: tuple[slice | NDArray[np.intp], ...]

    @classmethod
    def of(cls, X: Floats) -> Self:
        """Sort the columns of X."""
        values = np.ascontiguousarray(X.T)
        order = np.empty(values.shape, dtype=np.int32)
        ends: list[slice | NDArray[np.intp]] = []
        for j, column in enumerate(values):
            order[j] = np.argsort(column, kind="stable")
            ordered = column[order[j]]
            rises = ordered[1:] > ordered[:-1]
            ends.append(slice(None, -1) if rises.all() else np.flatnonzero(rises))
        return cls(values, order, tuple(ends))

    @property
    def varies(self) -> Flags:
        """Which features have at least one threshold."""
        return np.array([isinstance(ends, slice) or len(ends) > 0 for ends in self.ends])

    def sums_below(self, feature: int, signed: Floats) -> Floats:
        """Sums of `signed` up to every threshold of a feature, lowest first.

        For signed = u − v these are the −r: what is below a threshold and what is above it are the
        same up to the sign, since u − v sums to 0.
        """
        # More than twice as quick as signed[order] for indices of 32 bits.
        ordered = np.take(signed, self.order[feature])
        sums: Floats = np.cumsum(ordered, out=ordered)[self.ends[feature]]
        return sums

    def threshold(self, feature: int, place: int) -> float:
        """The middle between the values on both sides of a place among the thresholds."""
        ends = self.ends[feature]
        end = place if isinstance(ends, slice) else ends[place]
        low, high = self.values[feature, self.order[feature, end : end + 2]]
        return midpoint(float(low), float(high))


def strengths(data: Presorted, signed: Floats, limits: Floats) -> Floats:
    """The largest |r| of every feature; for a feature that cannot win, a limit above its own.

    `limits` are such limits. Features come in falling order of them, and the first that is below
    the best |r| so far ends the search: the others are below it too.
    """
    found = limits.copy()
    best = 0.0
    for feature in np.argsort(-limits, kind="stable"):
        if limits[feature] < best - _TIE:
            break
        sums = data.sums_below(feature, signed)
        found[feature] = max(sums.max(), -sums.min())
        best = max(best, found[feature])
    return found


def mass(weights: Floats, flags: Flags) -> float:
    """The sum of the flagged weights."""
    # Not weights @ flags: on a busy machine the threads of BLAS wait for each other, and that took
    # five times as long as all the rest of a round.
    return float((weights * flags).sum())


def ranker_weight(right: float, wrong: float) -> float:
    """½ ln(right / wrong), at most `MAX_ALPHA` either way."""
    with np.errstate(divide="ignore"):
        alpha = 0.5 * np.log(np.float64(right) / wrong)
    return float(np.clip(alpha, -MAX_ALPHA, MAX_ALPHA))


def boost(data: Presorted, u: Floats, v: Floats, n_rounds: int, alpha: str) -> list[Ranker]:
    """The rankers of all rounds.

    Parameters
    ----------
    data : Presorted
        The samples.
    u, v : ndarray of shape (n_samples,)
        First weights of the positive and of the negative samples, 0 for the others, of sum 1.
    n_rounds : int
        At most so many; fewer where no ranker helps or one orders every pair.
    alpha : {"bound", "exact"}
        How a ranker is weighed.
    """
    rankers: list[Ranker] = []
    limits = np.where(data.varies, np.inf, -np.inf)
    for _ in range(n_rounds):
        limits = strengths(data, u - v, limits)
        best = limits.max()
        if best <= _TIE:
            break
        # Of equals the first feature and the lowest threshold, whatever rounding says.
        feature = int(np.argmax(limits >= best - _TIE))
        place = int(np.argmax(np.abs(data.sums_below(feature, u - v)) >= best - _TIE))
        threshold = data.threshold(feature, place)
        above = data.values[feature] > threshold
        u1, v1, u0, v0 = (mass(side, half) for half in (above, ~above) for side in (u, v))
        # With sums of 1, 1 + r = u1 + v0 and 1 − r = v1 + u0; the products are W⁺ and W⁻.
        sums, products = (u1 + v0, v1 + u0), (u1 * v0, v1 * u0)
        weight = ranker_weight(*(products if alpha == "exact" else sums))
        rankers.append(Ranker(feature, threshold, weight))
        if min(sums) == 0:
            break
        u = shares(u * np.where(above, np.exp(-weight), 1.0))
        v = shares(v * np.where(above, np.exp(weight), 1.0))
        # u falls on one side of the threshold and rises on the other, v the other way: no r can
        # have changed by more than what both have moved from one side to the other.
        limits += abs(mass(u, above) - u1) + abs(mass(v, above) - v1)
    return rankers


def rank_scores(X: Floats, rankers: Sequence[Ranker]) -> Floats:
    """Σ α h(x) for every row: one search among the thresholds of each feature in use."""
    scores = np.zeros(len(X))
    for feature in sorted({ranker.feature for ranker in rankers}):
        own = [ranker for ranker in rankers if ranker.feature == feature]
        own.sort(key=lambda ranker: ranker.threshold)
        totals = np.cumsum([0.0, *(ranker.weight for ranker in own)])
        thresholds = [ranker.threshold for ranker in own]
        scores += totals[np.searchsorted(thresholds, X[:, feature])]  # those below the value
    return scores


class RankBoostClassifier(TwoSidedClassifier):
    """RankBoost: thresholds on single features, boosted to put positives above negatives.

    It learns an order rather than a decision: in each round the pairs of a positive and a negative
    sample that are still in the wrong order weigh more, and the threshold that orders the weighted
    pairs best joins the sum [1]_ [2]_. Being made of thresholds, it needs no scaled features.

    Parameters
    ----------
    n_estimators : int, default=100
        The largest number of rounds.
    alpha : {"bound", "exact"}, default="bound"
        The weight of a ranker. "bound" is ½ ln((1 + r)/(1 − r)), which minimises a bound on the
        loss; "exact" is ½ ln(W⁺/W⁻), which minimises the loss itself, with W⁺ and W⁻ the weights of
        the pairs that the ranker orders right and wrong. Both are at most 5, as a ranker without
        mistakes would weigh infinitely much.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    rankers_ : list of lists of Ranker
        The rankers in the order they were found: one list for two classes, else one for each class.
    cut_ : ndarray of shape (1,) or (n_classes,)
        What `decision_function` takes off the sum of the rankers.
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Rounds run. Boosting ends early when no threshold helps any more, or when a single one
        orders every pair.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, where `X` has names that are all strings.

    Notes
    -----
    RankBoost has no decision of its own. `decision_function` therefore takes off `cut_`, the cut
    that has the largest balanced accuracy on the training samples, so that a score above 0 means
    the second class. With more than two classes, every class is ranked against all the others.

    There is no `predict_proba`, since an order has no probabilities; wrap it in scikit-learn's
    `CalibratedClassifierCV` to get them.

    `sample_weight` weighs the samples within each class; the classes as a whole always weigh the
    same. Of thresholds with the same r, the first feature and the lowest threshold are taken, so
    nothing is random. A round costs O(n) for a feature, and leaves out those that cannot win it.

    References
    ----------
    .. [1] C. Marrocco, P. Simeone and F. Tortorella, "A Linear Combination of Classifiers via Rank
       Margin Maximization", sections 2 and 4.
    .. [2] Y. Freund, R. Iyer, R. E. Schapire and Y. Singer, "An Efficient Boosting Algorithm for
       Combining Preferences", Journal of Machine Learning Research 4, 2003.

    Examples
    --------
    >>> from margrave.members import RankBoostClassifier
    >>> X = [[1, 7], [2, 5], [3, 6], [4, 8]]
    >>> model = RankBoostClassifier().fit(X, ["ham", "ham", "spam", "spam"])
    >>> model.rankers_
    [[Ranker(feature=0, threshold=2.5, weight=5.0)]]
    >>> model.decision_function(X)
    array([-2.5, -2.5,  2.5,  2.5])
    >>> model.predict([[0, 0], [9, 9]])
    array(['ham', 'spam'], dtype='<U4')
    """

    def __init__(
        self, n_estimators: int = 100, *, alpha: Literal["bound", "exact"] = "bound"
    ) -> None:
        self.n_estimators = n_estimators
        self.alpha = alpha

    def _rules(self) -> Rules:
        known = isinstance(self.alpha, str) and self.alpha in ("bound", "exact")
        return {
            "n_estimators": ("an integer of at least 1", is_count(self.n_estimators)),
            "alpha": ("'bound' or 'exact'", known),
        }

    def _learn(self, X: Floats, sides: NDArray[np.bool_], weights: Floats) -> None:
        data = Presorted.of(X)
        self.rankers_: list[list[Ranker]] = []
        cuts = []
        for positive in sides:
            u, v = shares(weights * positive), shares(weights * ~positive)
            rankers = boost(data, u, v, self.n_estimators, self.alpha)
            self.rankers_.append(rankers)
            cuts.append(balanced_threshold(rank_scores(X, rankers), u, v) if rankers else 0.0)
        self.cut_ = np.array(cuts)
        self.n_iter_ = np.array([len(rankers) for rankers in self.rankers_])

    def _score(self, X: Floats) -> Floats:
        columns = [rank_scores(X, rankers) for rankers in self.rankers_]
        scores: Floats = np.column_stack(columns) - self.cut_
        return scores
