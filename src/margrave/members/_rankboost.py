"""RankBoost for two classes (Freund et al., 2003), with thresholds as weak rankers.

Marrocco et al. (2010) describe it in section 2 and compare with it in section 4. RankBoost keeps a
distribution D over the crucial pairs (i, k) of a positive and a negative sample (Freund et al.,
figure 1). A round chooses the weak ranker h with the largest agreement with D,

    r = Σ D_ik (h(x_i) − h(x_k)),

adds it with a weight α to the score, and multiplies D_ik by exp(−α (h(x_i) − h(x_k))). That factor
is a product of one factor per sample, so D_ik = u_i v_k in every round if u and v each sum to 1
(section 3.3, figure 2), and the pairs are never enumerated. A weak ranker is a threshold,
h(x) = [x_j > t], and the sign of α is its direction. Then r = Σ u_i h(x_i) − Σ v_k h(x_k): one
cumulative sum over the sorted values of a feature gives r for all its thresholds in O(n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Flags, Floats
from margrave._validation import Rules, is_count
from margrave.confusion import balanced_threshold, midpoint
from margrave.members._one_vs_rest import OneVsRestScorer, normalise

MAX_ALPHA = 5.0
"""The largest weight of a ranker. The formulas give infinity for a ranker without errors.

A round with this α divides the weights of correctly ranked pairs by e¹⁰ ≈ 22,000 relative to those
of wrongly ranked pairs.
"""

# Values of r with a smaller difference are equal up to rounding.
_TIE = 1e-9


class RankBoostClassifier(OneVsRestScorer):
    """RankBoost: thresholds on single features, boosted to rank positives above negatives.

    It learns a ranking, not a decision. In each round the pairs of a positive and a negative sample
    that are ranked wrongly gain weight, and the threshold that ranks the weighted pairs best joins
    the sum [1]_ [2]_. Thresholds do not depend on the scale of the features.

    Parameters
    ----------
    n_estimators : int, default=100
        The largest number of rounds.
    alpha : {"bound", "exact"}, default="bound"
        The weight of a ranker: "bound" is ½ ln((1 + r)/(1 − r)), which minimises an upper bound on
        the loss; "exact" is ½ ln(W⁺/W⁻), which minimises the loss itself, with W⁺ and W⁻ the
        weights of the pairs that the ranker ranks correctly and wrongly. Both are clipped to
        [-5, 5], because a ranker without errors would have an infinite weight.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    rankers_ : list of lists of Ranker
        The rankers in the order of the rounds: one list for two classes, else one per class.
    threshold_ : ndarray of shape (1,) or (n_classes,)
        What `decision_function` subtracts from the sum of the rankers.
    n_iter_ : ndarray of shape (1,) or (n_classes,)
        Number of rankers. Boosting stops early when no threshold improves the ranking, or when one
        threshold ranks every pair correctly.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if `X` has names that are all strings.

    Notes
    -----
    RankBoost does not define a decision. `threshold_` maximises the balanced accuracy on the
    training samples, so that a score above 0 predicts the second class. With more than two classes,
    every class is ranked against the rest.

    There is no `predict_proba`, because a ranking has no probabilities; scikit-learn's
    `CalibratedClassifierCV` adds them.

    `sample_weight` weights the samples within each class; the classes have equal total weights. Of
    several thresholds with the same r, the one on the first feature with the lowest value is
    chosen, so nothing is random. A round takes O(n) time per feature, and skips the features that
    cannot have the largest r.

    References
    ----------
    .. [1] Y. Freund, R. Iyer, R. E. Schapire and Y. Singer, "An Efficient Boosting Algorithm for
       Combining Preferences", Journal of Machine Learning Research 4, 2003.
    .. [2] C. Marrocco, P. Simeone and F. Tortorella, "A Linear Combination of Classifiers via Rank
       Margin Maximization", Lecture Notes in Computer Science 6218, 2010, sections 2 and 4.

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

    def _parameter_rules(self) -> Rules:
        is_known = isinstance(self.alpha, str) and self.alpha in ("bound", "exact")
        return {
            "n_estimators": ("an integer of at least 1", is_count(self.n_estimators)),
            "alpha": ("'bound' or 'exact'", is_known),
        }

    def _fit_problems(self, X: Floats, positives: Flags, weights: Floats) -> None:
        features = SortedFeatures.of(X)
        self.rankers_: list[list[Ranker]] = []
        thresholds = []
        for positive in positives:
            u, v = normalise(weights * positive), normalise(weights * ~positive)
            rankers = boost(features, u, v, self.n_estimators, self.alpha)
            self.rankers_.append(rankers)
            thresholds.append(balanced_threshold(sum_rankers(X, rankers), u, v) if rankers else 0.0)
        self.threshold_ = np.array(thresholds)
        self.n_iter_ = np.array([len(rankers) for rankers in self.rankers_])

    def _score_problems(self, X: Floats) -> Floats:
        columns = [sum_rankers(X, rankers) for rankers in self.rankers_]
        scores: Floats = np.column_stack(columns) - self.threshold_
        return scores


@dataclass(frozen=True)
class Ranker:
    """A weak ranker: it adds `weight` to the score of a sample above its threshold.

    Parameters
    ----------
    feature : int
        The column of X that it compares with the threshold.
    threshold : float
        Samples with a larger value get the weight.
    weight : float
        The α of its round; negative if small values indicate the positive class.

    Examples
    --------
    >>> from margrave.members import RankBoostClassifier
    >>> X = [[1, 7], [2, 5], [3, 6], [4, 8]]
    >>> model = RankBoostClassifier().fit(X, ["ham", "ham", "spam", "spam"])
    >>> ranker = model.rankers_[0][0]
    >>> ranker.feature, ranker.threshold, round(ranker.weight, 2)
    (0, 2.5, 5.0)
    """

    feature: int
    threshold: float
    weight: float


def boost(
    features: SortedFeatures, u: Floats, v: Floats, n_rounds: int, alpha: str
) -> list[Ranker]:
    """Run the rounds of RankBoost on one problem (Freund et al., 2003, figure 2).

    Parameters
    ----------
    features : SortedFeatures
        The samples.
    u, v : ndarray of shape (n_samples,)
        Initial weights of the positives and of the negatives, 0 for the others; each sums to 1.
    n_rounds : int
        The largest number of rounds.
    alpha : {"bound", "exact"}
        The formula of a ranker's weight.
    """
    rankers: list[Ranker] = []
    agreements = np.where(features.vary, np.inf, -np.inf)
    for _ in range(n_rounds):
        agreements = largest_agreements(features, u - v, agreements)
        best = agreements.max()
        if best <= _TIE:
            break
        # In a tie the first feature and the lowest threshold win, whatever the rounding.
        feature = int(np.argmax(agreements >= best - _TIE))
        position = int(np.argmax(np.abs(features.sums_below(feature, u - v)) >= best - _TIE))
        threshold = features.threshold(feature, position)
        above = features.values[feature] > threshold
        u1, v1, u0, v0 = (
            _masked_sum(weights, mask) for mask in (above, ~above) for weights in (u, v)
        )
        # Since u and v sum to 1, 1 + r = u1 + v0 and 1 − r = v1 + u0. The products are W⁺ and W⁻.
        sums, products = (u1 + v0, v1 + u0), (u1 * v0, v1 * u0)
        weight = ranker_weight(*(products if alpha == "exact" else sums))
        rankers.append(Ranker(feature, threshold, weight))
        if min(sums) == 0:
            break
        u = normalise(u * np.where(above, np.exp(-weight), 1.0))
        v = normalise(v * np.where(above, np.exp(weight), 1.0))
        # The changes of u have one sign above the threshold and the other sign below it, and so
        # have those of v. So no r can change by more than what u and v move across the threshold.
        agreements += abs(_masked_sum(u, above) - u1) + abs(_masked_sum(v, above) - v1)
    return rankers


def largest_agreements(features: SortedFeatures, signed: Floats, bounds: Floats) -> Floats:
    """Compute the largest |r| of each feature, or return its bound if that cannot be the largest.

    The features are visited in decreasing order of their upper bounds. The search stops at the
    first bound below the largest |r| so far.
    """
    found = bounds.copy()
    best = 0.0
    for feature in np.argsort(-bounds, kind="stable"):
        if bounds[feature] < best - _TIE:
            break
        sums = features.sums_below(feature, signed)
        found[feature] = max(sums.max(), -sums.min())
        best = max(best, found[feature])
    return found


def ranker_weight(correct: float, wrong: float) -> float:
    """Compute ½ ln(correct / wrong), clipped to [-MAX_ALPHA, MAX_ALPHA]."""
    with np.errstate(divide="ignore"):
        alpha = 0.5 * np.log(np.float64(correct) / wrong)
    return float(np.clip(alpha, -MAX_ALPHA, MAX_ALPHA))


def sum_rankers(X: Floats, rankers: Sequence[Ranker]) -> Floats:
    """Compute Σ α h(x) for every row, with one binary search per feature in use."""
    scores = np.zeros(len(X))
    for feature in sorted({ranker.feature for ranker in rankers}):
        own = [ranker for ranker in rankers if ranker.feature == feature]
        own.sort(key=lambda ranker: ranker.threshold)
        totals = np.cumsum([0.0, *(ranker.weight for ranker in own)])
        thresholds = [ranker.threshold for ranker in own]
        scores += totals[np.searchsorted(thresholds, X[:, feature])]
    return scores


@dataclass(frozen=True)
class SortedFeatures:
    """The samples sorted by each feature, once for all rounds and problems.

    Attributes
    ----------
    values : ndarray of shape (n_features, n_samples)
        The features.
    order : ndarray of int32, of the same shape
        The samples in increasing order of each feature.
    ends : tuple of slice or ndarray of int
        For each feature, the positions in its order after which a threshold can be: the last of
        each run of equal values but the last run. A slice if no values are equal, which is faster.
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
    def vary(self) -> Flags:
        """Which features have at least one threshold."""
        return np.array([isinstance(ends, slice) or len(ends) > 0 for ends in self.ends])

    def sums_below(self, feature: int, signed: Floats) -> Floats:
        """Sum the values of the samples below each threshold of a feature, lowest first.

        For signed = u − v the sums are −r, because u − v sums to 0.
        """
        # More than twice as fast as signed[order] for 32-bit indices.
        ordered = np.take(signed, self.order[feature])
        sums: Floats = np.cumsum(ordered, out=ordered)[self.ends[feature]]
        return sums

    def threshold(self, feature: int, position: int) -> float:
        """Return a threshold of a feature, halfway between the values on both sides."""
        ends = self.ends[feature]
        end = position if isinstance(ends, slice) else ends[position]
        low, high = self.values[feature, self.order[feature, end : end + 2]]
        return midpoint(float(low), float(high))


def _masked_sum(weights: Floats, mask: Flags) -> float:
    # Not weights @ mask: on a busy machine the threads of BLAS wait for each other, which took
    # five times as long as the rest of a round.
    return float((weights * mask).sum())
