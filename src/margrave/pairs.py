"""Margins of samples and of crucial pairs, the latter without enumerating the pairs.

Marrocco et al. (2010), section 2. The margin of a sample is ``y_i s_i`` with y_i = ±1: it depends
on the threshold 0.

A crucial pair (i, k) is one positive and one negative sample; its margin under a score s is
``s_i - s_k``: it does not depend on a threshold. There are N⁺·N⁻ pairs, but both classes can be
sorted, so every statistic of them needs O(n log n) time and O(n) memory:

- AUC is the fraction of pairs with a positive margin; a tie counts half;
- the rank margin, the smallest one, is ``min_i s_i - max_k s_k``, equation (1); the mean margin is
  a difference of means;
- the distribution function counts, for each positive, the negatives close enough to it;
- a quantile is found by narrowing the counts of two such distribution functions;
- the hinge sum ``Σ (ρ - m_ik)₊`` needs only the number of active pairs of each sample.

A pair's margin is the float ``s_i - s_k`` as computed, so that counts, fractions and quantiles
equal those of the brute force over an N⁺ × N⁻ table of differences; sums agree up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._typing import Flags, Floats, Ints

__all__ = ["CrucialPairs", "HingeSum", "minimum_margin", "sample_margins"]


# A quantile sorts the remaining margins once there are at most this many per sample.
_SORT_BELOW = 4
# Margins drawn in each step of the narrowing.
_N_DRAWS = 20_000


@dataclass(frozen=True)
class HingeSum:
    """The sum over pairs of ``(rho - margin)₊``, and the number of active pairs per sample.

    Attributes
    ----------
    total : float
        The sum.
    positive_counts, negative_counts : ndarray of int64
        For each positive (negative) sample, in input order, the number of its pairs with a margin
        below ``rho``. They are the derivative of the sum: minus the count for the score of a
        positive, the count for that of a negative, and ``n_active`` for ``rho``.

    Examples
    --------
    >>> from margrave.pairs import CrucialPairs
    >>> hinge = CrucialPairs([0.9, 0.4], [0.4, 0.1]).hinge(rho=0.4)
    >>> round(hinge.total, 2), hinge.n_active
    (0.5, 2)
    >>> hinge.positive_counts, hinge.negative_counts
    (array([0, 2]), array([1, 1]))
    """

    total: float
    positive_counts: Ints
    negative_counts: Ints

    @property
    def n_active(self) -> int:
        """Number of pairs with a margin below ``rho``."""
        return int(self.positive_counts.sum())


@dataclass(frozen=True, eq=False, repr=False)
class CrucialPairs:
    """All pairs of a positive and a negative sample, by their scores.

    Parameters
    ----------
    positives, negatives : array-like of float
        Scores of the positive and of the negative samples; finite, at least one of each.

    Examples
    --------
    >>> from margrave.pairs import CrucialPairs
    >>> pairs = CrucialPairs([0.9, 0.4], [0.4, 0.1])
    >>> pairs.auc, pairs.rank_margin
    (0.875, 0.0)
    >>> pairs.quantile([0.0, 0.5, 1.0]).round(3)
    array([0. , 0.3, 0.8])
    >>> pairs.hinge(0.4).n_active
    2
    """

    positives: Floats
    negatives: Floats

    def __init__(self, positives: ArrayLike, negatives: ArrayLike) -> None:
        object.__setattr__(self, "positives", _check_scores(positives, "positives"))
        object.__setattr__(self, "negatives", _check_scores(negatives, "negatives"))

    @classmethod
    def of(cls, scores: ArrayLike, y: ArrayLike, *, positive: Any = None) -> CrucialPairs:
        """Make the pairs from one score and one label per sample.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Scores; larger means more positive.
        y : array-like of shape (n_samples,)
            Labels; exactly two different ones unless ``positive`` is set.
        positive : label, optional
            The positive class; the others are negative. By default the larger of two labels.

        Returns
        -------
        CrucialPairs

        Examples
        --------
        >>> from margrave.pairs import CrucialPairs
        >>> CrucialPairs.of([0.1, 0.8, 0.3], ["ham", "spam", "ham"]).auc
        1.0
        """
        values, is_positive = _split_classes("CrucialPairs.of", scores, y, positive)
        return cls(values[is_positive], values[~is_positive])

    def __repr__(self) -> str:
        return f"CrucialPairs({len(self.positives)} positives, {len(self.negatives)} negatives)"

    @property
    def n_pairs(self) -> int:
        """Number of pairs, N⁺·N⁻."""
        return len(self.positives) * len(self.negatives)

    @cached_property
    def _sorted(self) -> tuple[Floats, Floats]:
        return np.sort(self.positives), np.sort(self.negatives)

    @cached_property
    def auc(self) -> float:
        """The fraction of the pairs in the right order; a tie counts half."""
        positives, negatives = self._sorted
        below = np.searchsorted(negatives, positives, "left").sum()
        upto = np.searchsorted(negatives, positives, "right").sum()
        return float((int(below) + int(upto)) / (2 * self.n_pairs))

    @property
    def rank_margin(self) -> float:
        """The margin of the worst pair, equation (1)."""
        return float(self.positives.min() - self.negatives.max())

    @property
    def largest_margin(self) -> float:
        """The margin of the best pair."""
        return float(self.positives.max() - self.negatives.min())

    @property
    def mean_margin(self) -> float:
        """The mean margin over all pairs: the difference of the class means."""
        return float(self.positives.mean() - self.negatives.mean())

    def cdf(self, margins: ArrayLike) -> Floats:
        """Return the fraction of the pairs with a margin of at most each of `margins`.

        Parameters
        ----------
        margins : array-like of float
            Where to evaluate the distribution function; each point takes one pass.

        Returns
        -------
        ndarray of float64
            Of the same shape as ``margins``.
        """
        points = np.asarray(margins, dtype=np.float64)
        if np.isnan(points).any():
            raise ValueError("CrucialPairs.cdf needs margins that are numbers; got NaN.")
        fractions = [self._at_most(point).sum() / self.n_pairs for point in points.ravel()]
        return np.array(fractions, dtype=np.float64).reshape(points.shape)

    def quantile(self, q: ArrayLike) -> Floats:
        """Return the smallest margin m such that at least a fraction of the pairs is at most m.

        The quantile is exact: one of the N⁺·N⁻ margins, as ``numpy.quantile`` returns with
        ``method="inverted_cdf"``.

        Parameters
        ----------
        q : array-like of float in [0, 1]
            The fractions, for instance 0.5 for the median margin.

        Returns
        -------
        ndarray of float64
            Of the same shape as ``q``.
        """
        fractions = np.asarray(q, dtype=np.float64)
        if not ((fractions >= 0) & (fractions <= 1)).all():
            raise ValueError(f"CrucialPairs.quantile needs q in [0, 1]; got {q!r}.")
        margins = [self._margin_at(_rank_of(f, self.n_pairs)) for f in fractions.ravel()]
        return np.array(margins, dtype=np.float64).reshape(fractions.shape)

    def hinge(self, rho: float) -> HingeSum:
        """Return the sum over all pairs of ``(rho - margin)₊``, and its derivative as counts.

        Parameters
        ----------
        rho : float
            The required margin.

        Returns
        -------
        HingeSum
        """
        if not np.isfinite(rho):
            raise ValueError(f"CrucialPairs.hinge needs a finite rho; got {rho!r}.")
        positives, negatives = self._sorted
        # A pair is active if its margin is below rho; the active negatives of a positive are the
        # largest ones.
        per_positive = self._below(rho)
        # A negative is active with the smallest positives only, those whose count reaches down to
        # it; the counts fall as the positives rise.
        reach = np.bincount(len(negatives) - per_positive, minlength=len(negatives) + 1)
        per_negative = np.cumsum(reach)[:-1]
        # Both classes count the same pairs, so a common shift cancels; the middle of the active
        # positives, which are the smallest, keeps the sums small.
        centre = positives[(np.count_nonzero(per_positive) or 1) // 2]
        total = per_positive @ (rho - (positives - centre)) + per_negative @ (negatives - centre)
        positive_order, negative_order = self._order
        return HingeSum(
            total=float(total),
            positive_counts=_unsort(per_positive, positive_order),
            negative_counts=_unsort(per_negative, negative_order),
        )

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        return np.argsort(self.positives), np.argsort(self.negatives)

    def _at_most(self, margin: float) -> Ints:
        """Per sorted positive, the number of negatives with a pair margin of at most ``margin``."""
        return len(self.negatives) - self._first(margin, np.less_equal)

    def _below(self, margin: float) -> Ints:
        """Per sorted positive, the number of negatives with a pair margin below ``margin``."""
        return len(self.negatives) - self._first(margin, np.less)

    def _first(self, margin: float, close: np.ufunc) -> Ints:
        """Per sorted positive, the first sorted negative k with ``close(s_i - s_k, margin)``.

        Solving ``s_i - s_k = margin`` for s_k rounds differently from the margin itself; where
        that gives a wrong position, bisection on the margins finds the right one.
        """
        positives, negatives = self._sorted
        first: Ints = np.searchsorted(negatives, positives - margin, "left").astype(np.int64)
        before, at = np.maximum(first - 1, 0), np.minimum(first, len(negatives) - 1)
        too_late = (first > 0) & close(positives - negatives[before], margin)
        too_early = (first < len(negatives)) & ~close(positives - negatives[at], margin)
        wrong = np.flatnonzero(too_late | too_early)
        low, high = np.zeros(len(wrong), dtype=np.int64), np.full(len(wrong), len(negatives))
        while (open_ := low < high).any():
            middle = np.minimum((low + high) // 2, len(negatives) - 1)
            near = close(positives[wrong] - negatives[middle], margin)
            high = np.where(open_ & near, middle, high)
            low = np.where(open_ & ~near, middle + 1, low)
        first[wrong] = low
        return first

    def _margin_at(self, rank: int) -> float:
        """Return the margin at 1-based ``rank`` among all pairs in increasing order.

        For each positive the remaining candidates are a run ``low:high`` of the sorted negatives
        read backwards. Margins drawn from the runs bracket the one sought; counting tightens the
        runs to the bracket, until few enough are left to sort. The draws affect only the speed.
        """
        positives, negatives = self._sorted
        rising = negatives[::-1]
        low = np.zeros(len(positives), dtype=np.int64)
        high = np.full(len(positives), len(negatives), dtype=np.int64)
        generator = np.random.default_rng(0)
        few = max(_SORT_BELOW * (len(positives) + len(negatives)), 2 * _N_DRAWS)
        while (remaining := int((high - low).sum())) > few:
            ends = np.cumsum(high - low)
            drawn = generator.integers(remaining, size=_N_DRAWS)
            row = np.searchsorted(ends, drawn, "right")
            margins = np.sort(positives[row] - rising[high[row] - ends[row] + drawn])
            middle = (rank - int(low.sum())) / remaining * _N_DRAWS
            spread = 1.5 * np.sqrt(_N_DRAWS)
            floor = margins[max(int(middle - spread), 0)]
            ceiling = margins[min(int(middle + spread), _N_DRAWS - 1)]
            if rank <= (below := self._below(floor)).sum():
                high = below
            elif rank <= (upto := self._at_most(floor)).sum():
                return float(floor)
            elif rank <= (below := self._below(ceiling)).sum():
                low, high = np.maximum(low, upto), np.minimum(high, below)
            elif rank <= (upto := self._at_most(ceiling)).sum():
                return float(ceiling)
            else:
                low = upto
        lengths = high - low
        row = np.repeat(np.arange(len(positives)), lengths)
        column = np.arange(remaining) - np.repeat(np.cumsum(lengths) - lengths - low, lengths)
        candidates = positives[row] - rising[column]
        place = rank - int(low.sum()) - 1
        return float(np.partition(candidates, place)[place])


def sample_margins(scores: ArrayLike, y: ArrayLike, *, positive: Any = None) -> Floats:
    """Return the margin of each sample: its score toward its own class.

    The margin of sample i is y_i f(x_i), where y_i is 1 for the positive class and -1 for the
    others. A negative margin is an error of the classifier that predicts the sign of the score.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Scores in [-1, 1], above 0 for the positive class, such as 2 p - 1 for a probability p, or
        ``Scores.toward``.
    y : array-like of shape (n_samples,)
        Labels; exactly two different ones unless `positive` is set.
    positive : label, optional
        The positive class; the others are negative. By default the larger of two labels.

    Returns
    -------
    ndarray of shape (n_samples,)
        The margins, in [-1, 1].

    Examples
    --------
    >>> from margrave.pairs import sample_margins
    >>> sample_margins([0.9, 0.2, 0.1, -0.4], [1, 1, 0, 0])
    array([ 0.9,  0.2, -0.1,  0.4])
    """
    values, is_positive = _split_classes("sample_margins", scores, y, positive)
    floats = values.astype(np.float64)
    if not (np.abs(floats) <= 1).all():
        raise ValueError(
            f"sample_margins needs scores in [-1, 1]; got {floats.min():g} to {floats.max():g}. "
            "Scores.of([classifier], X).toward(label)[:, 0] returns such scores."
        )
    return np.where(is_positive, floats, -floats)


def minimum_margin(scores: ArrayLike, y: ArrayLike, *, positive: Any = None) -> float:
    """Return the margin of a classifier: the smallest of its `sample_margins`.

    It is negative if a sample is on the wrong side of the threshold 0. Twice the minimum margin is
    at most the rank margin, ``CrucialPairs.rank_margin``, and equal to it for the threshold in the
    middle between the lowest positive and the highest negative.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Scores in [-1, 1], above 0 for the positive class.
    y : array-like of shape (n_samples,)
        Labels; exactly two different ones unless `positive` is set.
    positive : label, optional
        The positive class; the others are negative. By default the larger of two labels.

    Returns
    -------
    float
        The minimum margin, in [-1, 1].

    Examples
    --------
    >>> from margrave.pairs import CrucialPairs, minimum_margin
    >>> scores, y = [0.9, 0.2, 0.1, -0.4], [1, 1, 0, 0]
    >>> minimum_margin(scores, y), CrucialPairs.of(scores, y).rank_margin
    (-0.1, 0.1)
    """
    return float(sample_margins(scores, y, positive=positive).min())


def _check_scores(scores: ArrayLike, name: str) -> Floats:
    values = np.array(scores, dtype=np.float64)  # a copy, made read-only
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"CrucialPairs needs {name} to be a list of at least one score; "
            f"got shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"CrucialPairs needs {name} to be finite; got NaN or infinity.")
    values.flags.writeable = False
    return values


def _split_classes(
    owner: str, scores: ArrayLike, y: ArrayLike, positive: Any
) -> tuple[NDArray[Any], Flags]:
    """Check one score and one label per sample; return the scores, and which are positive."""
    values, labels = np.asarray(scores), np.asarray(y)
    if values.ndim != 1 or labels.shape != values.shape:
        raise ValueError(
            f"{owner} needs one score and one label per sample; "
            f"got scores of shape {values.shape} and y of shape {labels.shape}."
        )
    if _labels.has_missing(labels):
        raise ValueError(f"{owner} needs a label for every sample; y has missing labels.")
    if positive is None:
        positive = _larger_label(owner, labels)
    is_label = np.ndim(positive) == 0
    is_positive: Flags = labels == positive if is_label else np.zeros(len(labels), dtype=bool)
    if not np.any(is_positive):
        raise ValueError(
            f"{owner} needs positive to be one of the labels; got {positive!r}, which is not in y."
        )
    return values, is_positive


def _larger_label(owner: str, labels: NDArray[Any]) -> Any:
    distinct = _labels.union([(owner, labels)])
    if len(distinct) != 2:
        shown = ", ".join(repr(label) for label in distinct[:5].tolist())
        raise ValueError(
            f"{owner} needs two different labels in y, or positive=; got {len(distinct)}: {shown}."
        )
    return distinct[1]


def _rank_of(fraction: float, n_pairs: int) -> int:
    """Return the smallest rank r >= 1 with ``r / n_pairs >= fraction``, in the floats of `cdf`."""
    rank = max(int(np.ceil(fraction * n_pairs)), 1)
    while rank > 1 and (rank - 1) / n_pairs >= fraction:
        rank -= 1
    while rank / n_pairs < fraction:
        rank += 1
    return rank


def _unsort(values: Ints, order: Ints) -> Ints:
    """Put values that are in sorted order back in input order."""
    unsorted = np.empty_like(values)
    unsorted[order] = values
    return unsorted
