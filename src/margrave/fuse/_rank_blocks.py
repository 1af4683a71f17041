"""The rank-margin problem on blocks of rows that never come into memory together.

The programs of `_rank_problem` with another way to look at the samples, a pass over all blocks at a
time. With ν = 0 a pass gives the exact worst margin of two weightings, and hundreds of samples to
cut with, so that a handful of passes is enough. With ν > 0 a pass gives sums over bins
(`_tail_bins`): a value that is reached for certain and a cut that holds. If the two are further
apart than the search can bear, bins become finer, up to `MOST_BINS` of them; fewer with more than
ten members, so that a block's sums take about 32 MB (`_MOST_SUMS`), however many members there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from margrave._dask.blocks import Blocks
from margrave._typing import Floats, Ints
from margrave.fuse._bundle import LEVEL, Reached, Solution, cutting_planes
from margrave.fuse._rank_look import Group, Looked, Reading, look
from margrave.fuse._rank_passes import (
    End,
    binned,
    ends,
    merged_binned,
    merged_ends,
    merged_worst,
    pairs_up_to,
    worst,
)
from margrave.fuse._rank_problem import (
    ROUNDING,
    SAME,
    SHOWN_PAIRS,
    Problem,
    RankMarginWeights,
    unit,
    whole,
    worst_pairs,
)
from margrave.fuse._tail_bins import Grid, TailOfSums, tail_of_sums

MOST_BINS = 200_000
"""Bins are not made finer than this many, between the lowest and the highest possible score."""

_BINS = 16_384
# Sums of many members take room: bins times members are no more than this, unless bins would be
# fewer than `_LEAST_BINS`. There are two such sums, one for each class.
_MOST_SUMS = 2_000_000
_LEAST_BINS = 1_024
_FINER = 4


@dataclass
class Passes:
    """Blocks, how many passes were made over them, and how many bins there are by now, at most."""

    blocks: Blocks
    n_bins: int
    most_bins: int
    n: int = 0

    @classmethod
    def over(cls, blocks: Blocks, n_members: int) -> Passes:
        """None made yet."""
        most = min(max(_MOST_SUMS // max(n_members, 1), _LEAST_BINS), MOST_BINS)
        return cls(blocks, min(_BINS, most), most)

    def reduce(
        self,
        function: Callable[..., Any],
        merge: Callable[[list[Any]], Any],
        *more: Any,
        numbered: bool = False,
    ) -> Any:
        """One pass, counted."""
        self.n += 1
        return self.blocks.reduce(function, merge, *more, numbered=numbered)

    def look(self, reading: Reading) -> Looked:
        """The first pass."""
        found: Looked = self.reduce(look, Looked.merged, reading, numbered=True)
        return found


def weigh_blocks(
    passes: Passes,
    reading: Reading,
    looked: Looked,
    sides: tuple[Group, Group],
    nu: float,
    hardest: float,
    tol: float,
    max_iter: int,
) -> RankMarginWeights:
    """The weights with the largest margin; equal ones if no member speaks.

    Parameters
    ----------
    passes : Passes
        The blocks: scores (or what `reading` makes scores of), labels, and weights or None.
    reading : Reading
        With the positive class.
    looked : Looked
        What the first pass found.
    sides : tuple of Group
        The positives and the negatives there.
    nu, hardest, tol, max_iter
        As in `rank_margin_weights`, `negatives` as a share.
    """
    low = np.minimum(*(one.smallest for one in sides))
    high = np.maximum(*(one.largest for one in sides))
    speaking = np.flatnonzero(low < high)
    if not len(speaking):
        speaking = np.arange(len(low))
    size = unit(max(-low[speaking].min(), high[speaking].max()))
    problem = BlockProblem(
        nu, hardest, tol / size, max_iter, passes, reading, *sides, speaking, size
    )
    found = problem.solve()
    offsets = looked.offsets(len(passes.blocks))
    # Each end of a pair as a block and a row in it.
    places = found.active.reshape(-1, 2, 2)
    active = offsets[places[:, :, 0]] + places[:, :, 1]
    told = whole(found, speaking, len(low), size)
    return replace(told, active=active, n_passes=passes.n)


@dataclass(frozen=True)
class BlockProblem(Problem):
    """Scores in blocks; active pairs are (block, row, block, row)."""

    passes: Passes
    reading: Reading
    positives: Group
    negatives: Group
    speaking: Ints
    size: float

    @property
    def n_members(self) -> int:
        """K, of those that speak."""
        return len(self.speaking)

    @property
    def lightest(self) -> float:
        """The weight of the lightest pair."""
        shares = [one.lightest / one.peak / one.total for one in (self.positives, self.negatives)]
        return float(shares[0] * shares[1])

    def means(self) -> Floats:
        """The mean margin of each member."""
        return self._own(self.positives.means - self.negatives.means)

    def alone(self) -> Floats:
        """The worst margin of each member."""
        return self._own(self.positives.smallest - self.negatives.largest)

    def hard(self) -> Solution:
        """The weights with the largest worst margin."""
        return cutting_planes(
            self._own(self.positives.low),
            self._own(self.negatives.high),
            self._reached,
            self.tol,
            self.max_iter,
            between=True,
        )

    def cutting_plane(self, nu: float, weights: Floats) -> tuple[float, Floats]:
        """A value that the weights reach, and a cutting plane, for the share ν."""
        tail, _ = self._tail(nu, weights)
        return tail.value, tail.plane

    def tied(self, margin: float) -> float:
        """Share of the pairs, by weight, with at most this margin under equal weights."""
        equal = np.full(self.n_members, 1 / self.n_members)
        found = self._ends(equal, 2 * SAME)
        shares = [one.peak * one.total for one in (self.positives, self.negatives)]
        kept = self.hardest * shares[1]
        weight = pairs_up_to(margin, found, 0, kept if self.hardest < 1 else 0.0)
        return weight / shares[0] / kept

    def told(self, weights: Floats, found: Solution | None = None) -> RankMarginWeights:
        """Weights with their margin, and the pairs that decide it."""
        if self.nu == 0:
            low, high = self._ends(weights, 2 * ROUNDING)
            margin = rho = float(low.scores[0] + high.scores[0])
            n_active = round(pairs_up_to(rho + ROUNDING, (low, high), 1))
        else:
            tail, (low, high) = self._tail(self.share, weights, tell=True)
            margin, rho, n_active = tail.value, tail.rho, tail.n_pairs
        t = -high.scores
        if self.nu > 0 and self.hardest < 1:
            before = np.cumsum(high.weights / self.negatives.peak) - (
                high.weights / self.negatives.peak
            )
            t = t[before < self.hardest * self.negatives.total]
        i, k = worst_pairs(low.scores, t, min(n_active, SHOWN_PAIRS)).T
        return RankMarginWeights(
            weights=weights,
            nu=float(self.nu),
            margin=margin,
            rho=rho,
            gap=0.0 if found is None else max(found.bound - margin, 0.0),
            n_iter=0 if found is None else found.n_iter,
            n_active=n_active,
            active=np.column_stack([low.places[i], high.places[k]]),
        )

    def _own(self, values: Floats) -> Floats:
        """Of the members that speak, in the problem's units."""
        return np.asarray(values[..., self.speaking] / self.size)

    def _all(self, weights: Floats) -> Floats:
        """Weights for all members, that give scores in the problem's units."""
        spread = np.zeros((*weights.shape[:-1], len(self.positives.sums)))
        spread[..., self.speaking] = weights / self.size
        return spread

    def _reached(self, W: Floats) -> Reached:
        found = self.passes.reduce(worst, merged_worst, self.reading, self._all(W))
        low, high = [one[0] for one in found], [one[1] for one in found]
        return Reached(
            values=np.array([p.scores[0] + n.scores[0] for p, n in found]),
            lowest=self._own(np.array([one.rows[0] for one in low])),
            highest=self._own(np.array([one.rows[0] for one in high])),
            low=self._own(np.concatenate([one.rows for one in low])),
            high=self._own(np.concatenate([one.rows for one in high])),
        )

    def _ends(self, weights: Floats, reach: float) -> tuple[End, End]:
        asked = self.reading, self._all(weights), reach
        found: tuple[End, End] = self.passes.reduce(ends, merged_ends, *asked, numbered=True)
        return found

    def _tail(self, nu: float, weights: Floats, tell: bool = False) -> tuple[TailOfSums, Any]:
        """The tail by as many bins as the search needs; a pass, or more if bins become finer."""
        groups = self.positives, self.negatives
        low = weights @ self._own(np.minimum(*(one.smallest for one in groups)))
        high = weights @ self._own(np.maximum(*(one.largest for one in groups)))
        peaks = groups[0].peak, groups[1].peak
        asked = self.reading, self._all(weights)
        while True:
            grid = Grid.over(float(low), float(high), self.passes.n_bins)
            sums, found = self.passes.reduce(
                binned, merged_binned, *asked, grid, peaks, tell, numbered=True
            )
            tail = tail_of_sums(sums, grid, nu, self.hardest)
            tail = replace(tail, plane=self._own(tail.plane))
            unsure = float(tail.plane @ weights) - tail.value
            if unsure <= LEVEL * self.tol / 2 or self.passes.n_bins == self.passes.most_bins:
                return tail, found
            self.passes.n_bins = min(self.passes.n_bins * _FINER, self.passes.most_bins)
