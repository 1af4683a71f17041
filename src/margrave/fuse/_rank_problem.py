"""The rank-margin problem on arrays: two classes of scores, their weights, and the share ν.

Puts together the tail of the pairs (`_tail`) and the cutting planes (`_bundle`); what a user gave
was checked before (`_rank_weights`, `_rank_margin`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Flags, Floats, Ints
from margrave.fuse._bundle import Solution, hard_margin, soft_margin
from margrave.fuse._tail import Side, binned_tail, exact_tail, hardest_weights, mass_up_to

# Bins are this much finer than the gap asked for. Value and cut are each off by a bin at most; that
# must be less than the level (2 / FINER < LEVEL), else the search could stay where it is.
FINER = 6
# Bins are used where samples are this many times more.
_SAVING = 4
SHOWN_PAIRS = 100
# Margins this close are equal: as an optimum, and as sums of a few products.
SAME, ROUNDING = 1e-9, 1e-12
# Scores below this are multiplied up: the solver's tolerances are absolute.
_SMALL = 0.1


@dataclass(frozen=True, eq=False)
class RankMarginWeights:
    """The weights of a committee, with what was proven about them.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        None negative, sum 1.
    nu : float
        The share of the pairs that was looked at.
    margin : float
        What was maximised: the mean margin of the worst share `nu` of the pairs; of the worst pair
        if `nu` is 0.
    rho : float
        The largest margin among those pairs; with ``nu=0`` the rank margin itself.
    gap : float
        No weights on members that tell samples apart have a `margin` larger by more than this.
        Proven from multipliers of the linear program that were checked, not taken from the solver.
    n_iter : int
        Rounds taken.
    n_active : int
        Number of pairs with a margin of at most `rho`.
    active : ndarray of int, shape (m, 2)
        The worst of them, at most 100, worst first: row of the positive, row of the negative.
    tie_nu : float or None
        If every weighting has the same worst margin, the share by which the tie was settled: twice
        that of the pairs which have it.
    n_passes : int or None
        How often the rows of a Dask collection were gone through; None for arrays in memory.
    """

    weights: Floats
    nu: float
    margin: float
    rho: float
    gap: float
    n_iter: int
    n_active: int
    active: NDArray[np.int64] = field(repr=False)
    tie_nu: float | None = None
    n_passes: int | None = None


def silent_members(values: Floats, weight: Floats | None) -> Flags:
    """Which members say the same of all samples that count."""
    used = values if weight is None or weight.all() else values[weight > 0]
    silent: Flags = used.min(axis=0) == used.max(axis=0)
    return silent


def weigh(
    values: Floats,
    positive: Flags,
    weight: Floats | None,
    nu: float,
    hardest: float,
    tol: float,
    max_iter: int,
) -> RankMarginWeights:
    """The weights with the largest margin; equal ones if no member speaks.

    Parameters
    ----------
    values : ndarray of shape (n, K)
        Scores in [-1, 1].
    positive : ndarray of bool, shape (n,)
        The positive samples.
    weight : ndarray of shape (n,), optional
        Sample weights; each class has one above 0.
    nu, hardest, tol, max_iter
        As in `rank_margin_weights`, `negatives` as a share.
    """
    at_positive, at_negative = (
        np.flatnonzero(chosen if weight is None else chosen & (weight > 0))
        for chosen in (positive, ~positive)
    )
    speaking = np.flatnonzero(~silent_members(values, weight))
    if not len(speaking):  # all weights are alike, and the search begins with equal ones
        speaking = np.arange(values.shape[1])
    P, N = (np.asfortranarray(values[rows]) for rows in (at_positive, at_negative))
    if len(speaking) < values.shape[1]:
        P, N = P[:, speaking], N[:, speaking]
    size = unit(max(-P.min(), P.max(), -N.min(), N.max()))
    if size < 1:
        P, N = P / size, N / size
    a, b = _shares(weight, at_positive), _shares(weight, at_negative)
    found = ArrayProblem(nu, hardest, tol / size, max_iter, P, N, a, b).solve()
    i, k = found.active.T
    active = np.column_stack([at_positive[i], at_negative[k]])
    return replace(whole(found, speaking, values.shape[1], size), active=active)


def unit(size: float) -> float:
    """What scores are divided by whose largest size this is: 1, unless they are small."""
    return float(size) if 0 < size < _SMALL else 1.0


def whole(
    found: RankMarginWeights, speaking: Ints, n_members: int, size: float
) -> RankMarginWeights:
    """A solution for the members that speak, in units of `size`, as one for all."""
    weights = np.zeros(n_members)
    weights[speaking] = found.weights
    return replace(
        found,
        weights=weights,
        margin=found.margin * size,
        rho=found.rho * size,
        gap=found.gap * size,
    )


@dataclass(frozen=True)
class Problem(ABC):
    """What is to be maximised, wherever the scores are.

    Attributes
    ----------
    nu, hardest, tol, max_iter
        As in `rank_margin_weights`, `negatives` as a share.
    """

    nu: float
    hardest: float
    tol: float
    max_iter: int

    @property
    @abstractmethod
    def n_members(self) -> int:
        """K."""

    @property
    @abstractmethod
    def lightest(self) -> float:
        """The weight of the lightest pair."""

    @abstractmethod
    def means(self) -> Floats:
        """The mean margin of each member."""

    @abstractmethod
    def alone(self) -> Floats:
        """The worst margin of each member."""

    @abstractmethod
    def hard(self) -> Solution:
        """The weights with the largest worst margin."""

    @abstractmethod
    def cutting_plane(self, nu: float, weights: Floats) -> tuple[float, Floats]:
        """A value that the weights reach, and a cutting plane, for the share ν."""

    @abstractmethod
    def tied(self, margin: float) -> float:
        """Share of the pairs, by weight, with at most this margin under equal weights."""

    @abstractmethod
    def told(self, weights: Floats, found: Solution | None = None) -> RankMarginWeights:
        """Weights with their margin, and the pairs that decide it.

        Without a solution they are the best for certain.
        """

    @property
    def share(self) -> float:
        """ν; less than the lightest pair is the lightest pair."""
        return float(max(self.nu, self.lightest))

    def solve(self) -> RankMarginWeights:
        """The best weights."""
        if self.n_members == 1:
            return self.told(np.ones(1))
        if self.nu == 1 and self.hardest == 1:
            means = self.means()
            best = (means >= means.max() - SAME).astype(np.float64)
            return self.told(best / best.sum())
        if self.nu > 0:
            found = self._soft(self.share)
            return self.told(found.weights, found)
        found = self.hard()
        if self.alone().min() < found.value - SAME:
            return self.told(found.weights, found)
        # A concave function that is as high at every corner is flat: look at more than the worst.
        settled = self._soft(tie_nu := min(2 * self.tied(found.value + SAME), 1.0))
        n_iter = found.n_iter + settled.n_iter
        told = self.told(settled.weights, replace(found, n_iter=n_iter))
        return replace(told, tie_nu=tie_nu)

    def _soft(self, nu: float) -> Solution:
        return soft_margin(partial(self.cutting_plane, nu), self.n_members, self.tol, self.max_iter)


@dataclass(frozen=True)
class ArrayProblem(Problem):
    """Scores of both classes and their weights, in arrays; active pairs are places there."""

    P: Floats
    N: Floats
    a: Floats
    b: Floats

    @property
    def n_members(self) -> int:
        """K."""
        return int(self.P.shape[1])

    @property
    def lightest(self) -> float:
        """The weight of the lightest pair."""
        return float(self.a.min() * self.b.min())

    def means(self) -> Floats:
        """The mean margin of each member."""
        return np.asarray(self.a @ self.P - self.b @ self.N)

    def alone(self) -> Floats:
        """The worst margin of each member."""
        return np.asarray(self.P.min(axis=0) - self.N.max(axis=0))

    def hard(self) -> Solution:
        """The weights with the largest worst margin."""
        return hard_margin(self.P, self.N, self.tol, self.max_iter)

    def tied(self, margin: float) -> float:
        """Share of the pairs, by weight, with at most this margin under equal weights."""
        equal = np.full(self.n_members, 1 / self.n_members)
        return mass_up_to(margin, *self._sides(equal), self.hardest)

    def _sides(self, weights: Floats) -> tuple[Side, Side]:
        return Side(self.P @ weights, self.a), Side(self.N @ weights, self.b)

    def cutting_plane(self, nu: float, weights: Floats) -> tuple[float, Floats]:
        """A value that the weights reach, and a cutting plane; in bins where that saves time."""
        width = self.tol / FINER
        if _SAVING * 2 / width < len(self.P) + len(self.N):
            tail = binned_tail(*self._sides(weights), nu, self.hardest, width=width)
        else:
            width, tail = 0.0, exact_tail(*self._sides(weights), nu, self.hardest)
        return tail.mean - width, tail.positive_mass @ self.P - tail.negative_mass @ self.N

    def told(self, weights: Floats, found: Solution | None = None) -> RankMarginWeights:
        """Weights with their margin as it is, without bins, and the pairs that decide it.

        Without a solution they are the best for certain.
        """
        positives, negatives = self._sides(weights)
        s, t = positives.scores, negatives.scores
        places = np.arange(len(t))
        if self.nu == 0:
            margin = rho = float(s.min() - t.max())
            n_active = _count_up_to(rho + ROUNDING, s, t)
        else:
            tail = exact_tail(positives, negatives, self.share, self.hardest)
            margin, rho, n_active = tail.mean, tail.rho, tail.n_pairs
            if self.hardest < 1:
                places = np.flatnonzero(hardest_weights(negatives, self.hardest))
        i, k = worst_pairs(s, t[places], min(n_active, SHOWN_PAIRS)).T
        return RankMarginWeights(
            weights=weights,
            nu=float(self.nu),
            margin=margin,
            rho=rho,
            gap=0.0 if found is None else max(found.bound - margin, 0.0),
            n_iter=0 if found is None else found.n_iter,
            n_active=n_active,
            active=np.column_stack([i, places[k]]),
        )


def _shares(weight: Floats | None, rows: Ints) -> Floats:
    """Weights within a class, summing to 1."""
    if weight is None:
        return np.full(len(rows), 1 / len(rows))
    own = weight[rows] / weight[rows].max()  # the sum of large ones may overflow
    return np.asarray(own / own.sum())


def _count_up_to(margin: float, s: Floats, t: Floats) -> int:
    """Number of pairs with a margin of at most `margin`; quick if there are few."""
    low, high = s[s <= margin + t.max()], np.sort(t[t >= s.min() - margin])
    return int((len(high) - np.searchsorted(high, low - margin)).sum())


def worst_pairs(s: Floats, t: Floats, limit: int) -> NDArray[np.int64]:
    """Places of the pairs with the smallest margins, worst first.

    The r-th lowest positive and the k-th highest negative have r·k pairs that are no better.
    """
    low, high = smallest(s, limit), smallest(-t, limit)
    r, k = np.meshgrid(np.arange(len(low)), np.arange(len(high)), indexing="ij")
    near = (r + 1) * (k + 1) <= limit
    pairs = np.column_stack([low[r[near]], high[k[near]]])
    worst_first = np.argsort(s[pairs[:, 0]] - t[pairs[:, 1]], kind="stable")
    return pairs[worst_first[:limit]]


def smallest(values: Floats, limit: int) -> NDArray[np.int64]:
    """Places of the smallest values, in rising order."""
    chosen = (
        np.flatnonzero(values <= np.partition(values, limit - 1)[limit - 1])
        if limit < len(values)
        else np.arange(len(values))
    )
    return chosen[np.argsort(values[chosen], kind="stable")][:limit]
