"""Crucial pairs: margins over all positive/negative pairs, without making the pairs.

A crucial pair (i, k) is one positive and one negative sample; its margin under a score s is
``s_i - s_k`` ("Rank margin", the pairs of its linear program). There are N⁺·N⁻ of them, but both
sides sort, so every statistic here costs O(n log n) time and O(n) memory:

- AUC: the share of pairs with a positive margin, ties counting half;
- the smallest margin splits: ``min_i s_i - max_k s_k``; the mean one is a difference of means;
- the distribution function counts, for each positive, the negatives close enough to it;
- a quantile is found by narrowing the counts of two such distribution functions;
- the hinge sum ``Σ (ρ - m_ik)₊`` needs only how many pairs each sample is active in.

A pair's margin is the float ``s_i - s_k`` as computed, so that counts, shares and quantiles are
those of the brute force over an N⁺ × N⁻ table of differences; sums agree up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._typing import Floats, Ints

__all__ = ["CrucialPairs", "HingeSum"]


# A quantile stops narrowing, and sorts what is left, below this many margins per sample.
_SORTED_AT_ONCE = 4
_DRAWN = 20_000


@dataclass(frozen=True)
class HingeSum:
    """The sum over pairs of ``(rho - margin)₊``, and the pairs it comes from.

    Attributes
    ----------
    total : float
        The sum.
    positive_counts, negative_counts : ndarray of int64
        For each positive (negative) sample, in the order given, the number of its pairs with a
        margin below ``rho``. They are the derivative: each positive's score enters the sum with
        minus its count, each negative's with its count, ``rho`` with the number of active pairs.
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
    >>> pairs.auc, pairs.smallest_margin
    (0.875, 0.0)
    >>> pairs.quantile([0.0, 0.5, 1.0]).round(3)
    array([0. , 0.3, 0.8])
    >>> pairs.hinge(0.4).n_active
    2
    """

    positives: Floats
    negatives: Floats

    def __init__(self, positives: ArrayLike, negatives: ArrayLike) -> None:
        object.__setattr__(self, "positives", _side(positives, "positives"))
        object.__setattr__(self, "negatives", _side(negatives, "negatives"))

    @classmethod
    def of(cls, scores: ArrayLike, y: ArrayLike, *, positive: Any = None) -> CrucialPairs:
        """Split one score per sample by its label.

        Parameters
        ----------
        scores : array-like of shape (n_samples,)
            Larger means more positive.
        y : array-like of shape (n_samples,)
            Labels, of exactly two kinds unless ``positive`` is given.
        positive : label, optional
            The positive class; the others are negative. By default the larger of two labels.

        Examples
        --------
        >>> CrucialPairs.of([0.1, 0.8, 0.3], ["ham", "spam", "ham"]).auc
        1.0
        """
        values, labels = np.asarray(scores), np.asarray(y)
        if values.ndim != 1 or labels.shape != values.shape:
            raise ValueError(
                "CrucialPairs.of needs one score and one label per sample; "
                f"got scores of shape {values.shape} and y of shape {labels.shape}."
            )
        if _labels.has_missing(labels):
            raise ValueError("CrucialPairs.of needs a label for every sample; y has missing ones.")
        if positive is None:
            positive = _larger_label(labels)
        chosen = labels == positive
        if not np.any(chosen):
            raise ValueError(f"CrucialPairs.of finds no label {positive!r} in y.")
        return cls(values[chosen], values[~chosen])

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
        """Share of the pairs that are ordered right; a tie counts half."""
        positives, negatives = self._sorted
        below = np.searchsorted(negatives, positives, "left").sum()
        upto = np.searchsorted(negatives, positives, "right").sum()
        return float((int(below) + int(upto)) / (2 * self.n_pairs))

    @property
    def smallest_margin(self) -> float:
        """The rank margin: the margin of the worst pair."""
        return float(self.positives.min() - self.negatives.max())

    @property
    def largest_margin(self) -> float:
        """The margin of the best pair."""
        return float(self.positives.max() - self.negatives.min())

    @property
    def mean_margin(self) -> float:
        """The mean over all pairs: the difference of the class means."""
        return float(self.positives.mean() - self.negatives.mean())

    def cdf(self, margins: ArrayLike) -> Floats:
        """Share of the pairs with a margin of at most each given value.

        Parameters
        ----------
        margins : array-like of float
            Where to evaluate the distribution function; each point costs one pass.

        Returns
        -------
        ndarray of float64
            Of the same shape as ``margins``.
        """
        points = np.asarray(margins, dtype=np.float64)
        if np.isnan(points).any():
            raise ValueError("CrucialPairs.cdf needs margins that are numbers; got NaN.")
        counts = [self._at_most(point).sum() / self.n_pairs for point in points.ravel()]
        return np.array(counts, dtype=np.float64).reshape(points.shape)

    def quantile(self, shares: ArrayLike) -> Floats:
        """Smallest margin m such that at least a given share of the pairs is at most m.

        Exact: one of the N⁺·N⁻ margins (``numpy.quantile`` with ``method="inverted_cdf"``).

        Parameters
        ----------
        shares : array-like of float in [0, 1]
            For instance 0.5 for the median margin.

        Returns
        -------
        ndarray of float64
            Of the same shape as ``shares``.
        """
        wanted = np.asarray(shares, dtype=np.float64)
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError(f"CrucialPairs.quantile needs shares in [0, 1]; got {shares!r}.")
        found = [self._ranked(_rank_of(share, self.n_pairs)) for share in wanted.ravel()]
        return np.array(found, dtype=np.float64).reshape(wanted.shape)

    def hinge(self, rho: float) -> HingeSum:
        """Sum over all pairs of ``(rho - margin)₊``, with the counts that are its derivative.

        Parameters
        ----------
        rho : float
            The margin asked for.

        Returns
        -------
        HingeSum
        """
        if not np.isfinite(rho):
            raise ValueError(f"CrucialPairs.hinge needs a finite rho; got {rho!r}.")
        positives, negatives = self._sorted
        # Negatives active with a positive lie at the upper end: those with a margin below rho.
        active = self._below(rho)
        # Seen from the other side, the k-th negative is active with the lowest positives only,
        # those whose count reaches down to it; the counts fall as the positives rise.
        reach = np.bincount(len(negatives) - active, minlength=len(negatives) + 1)
        active_negatives = np.cumsum(reach)[:-1]
        # Both sides count the same pairs, so a common shift cancels; the middle of the active
        # positives, which are the lowest, keeps the sums small.
        centre = positives[(np.count_nonzero(active) or 1) // 2]
        total = active @ (rho - (positives - centre)) + active_negatives @ (negatives - centre)
        by_positive, by_negative = self._order
        return HingeSum(
            total=float(total),
            positive_counts=_unsort(active, by_positive),
            negative_counts=_unsort(active_negatives, by_negative),
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
        the place found so is wrong, bisecting on the margins finds the right one.
        """
        positives, negatives = self._sorted
        first: Ints = np.searchsorted(negatives, positives - margin, "left").astype(np.int64)
        before, at = np.maximum(first - 1, 0), np.minimum(first, len(negatives) - 1)
        back = (first > 0) & close(positives - negatives[before], margin)
        on = (first < len(negatives)) & ~close(positives - negatives[at], margin)
        wrong = np.flatnonzero(back | on)
        low, high = np.zeros(len(wrong), dtype=np.int64), np.full(len(wrong), len(negatives))
        while (open_ := low < high).any():
            middle = np.minimum((low + high) // 2, len(negatives) - 1)
            near = close(positives[wrong] - negatives[middle], margin)
            high = np.where(open_ & near, middle, high)
            low = np.where(open_ & ~near, middle + 1, low)
        first[wrong] = low
        return first

    def _ranked(self, rank: int) -> float:
        """The margin at 1-based ``rank`` among all pairs in rising order.

        For each positive the margins still possible are a run ``low:high`` of the sorted negatives
        read backwards. Margins drawn from the runs bracket the one sought; counting tightens the
        runs to the bracket, until what is left can be sorted. The draws decide only the speed.
        """
        positives, negatives = self._sorted
        rising = negatives[::-1]
        low = np.zeros(len(positives), dtype=np.int64)
        high = np.full(len(positives), len(negatives), dtype=np.int64)
        generator = np.random.default_rng(0)
        enough = max(_SORTED_AT_ONCE * (len(positives) + len(negatives)), 2 * _DRAWN)
        while (left := int((high - low).sum())) > enough:
            ends = np.cumsum(high - low)
            drawn = generator.integers(left, size=_DRAWN)
            row = np.searchsorted(ends, drawn, "right")
            margins = np.sort(positives[row] - rising[high[row] - ends[row] + drawn])
            middle = (rank - int(low.sum())) / left * _DRAWN
            spread = 1.5 * np.sqrt(_DRAWN)
            floor = margins[max(int(middle - spread), 0)]
            ceiling = margins[min(int(middle + spread), _DRAWN - 1)]
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
        row = np.repeat(np.arange(len(positives)), high - low)
        column = np.arange(left) - np.repeat(np.cumsum(high - low) - (high - low) - low, high - low)
        candidates = positives[row] - rising[column]
        place = rank - int(low.sum()) - 1
        return float(np.partition(candidates, place)[place])


def _side(scores: ArrayLike, name: str) -> Floats:
    values = np.array(scores, dtype=np.float64)  # a copy: ours to keep
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"CrucialPairs needs {name} as a list of at least one score; got shape {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"CrucialPairs needs finite scores; {name} hold NaN or infinity.")
    values.flags.writeable = False
    return values


def _larger_label(labels: NDArray[Any]) -> Any:
    kinds = np.unique(labels)
    if len(kinds) != 2:
        shown = ", ".join(repr(kind) for kind in kinds[:5].tolist())
        raise ValueError(
            f"CrucialPairs.of needs y with two labels, or positive=; got {len(kinds)}: {shown}."
        )
    return kinds[1]


def _rank_of(share: float, n_pairs: int) -> int:
    """The smallest rank r >= 1 with ``r / n_pairs >= share``, in floats as :meth:`cdf` has them."""
    rank = max(int(np.ceil(share * n_pairs)), 1)
    while rank > 1 and (rank - 1) / n_pairs >= share:
        rank -= 1
    while rank / n_pairs < share:
        rank += 1
    return rank


def _unsort(values: Ints, order: Ints) -> Ints:
    unsorted = np.empty_like(values)
    unsorted[order] = values
    return unsorted
