"""The rank-margin search on blocks of rows that are never in memory together.

`BlockOracle` is the `margrave.fuse.MarginOracle` of a Dask collection: each evaluation is a pass
over all blocks. With ν = 0 a pass gives the exact worst margin of two weightings, and hundreds of
rows for the linear program, so that a handful of passes is enough. With ν > 0 a pass gives sums
over bins (`_tail_bins`): a lower bound of the margin and a valid cutting plane. If the two differ
by more than the search tolerates, the bins become narrower, up to `MAX_BINS` of them; fewer with
more than ten members, so that the sums of a block need about 32 MB (`_MAX_SUMS`).

The first pass (`FirstPass`) checks what is checked of arrays in memory, and collects classes,
counts, means and extreme rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave import _labels
from margrave._typing import Flags, Floats, Ints
from margrave.fuse import (
    LEVEL,
    ROUNDING,
    SAME,
    SHOWN_PAIRS,
    ActivePairs,
    Extremes,
    MarginSettings,
    RankMarginWeights,
    ScoreRange,
    maximize_margin,
    smallest,
    worst_pairs,
)
from margrave.scale._blocks import Blocks
from margrave.scale._summary import SortedSummary
from margrave.scale._tail_bins import BinnedTail, Grid, binned_tail, sum_bins

MAX_BINS = 200_000
"""The most bins between the lowest and the highest possible score."""

_BINS = 16_384
# Bins times members are at most this, unless there would be fewer bins than `_MIN_BINS`. There are
# two such sums, one for each class.
_MAX_SUMS = 2_000_000
_MIN_BINS = 1_024
_REFINEMENT = 4
# Rows that are summed at a time.
_ROWS_AT_A_TIME = 262_144
# BLAS computes this many products in one thread. More would be distributed to other threads, which
# is slow if all cores are busy with blocks of their own.
_PRODUCTS_AT_A_TIME = 250_000
# The most rows of each class, for each weighting, that a pass adds to the linear program.
_MAX_EXTREME_ROWS = 400


@dataclass(frozen=True)
class ScoreReader:
    """Reads the scores of positives and negatives from a block.

    Attributes
    ----------
    owner : str
        The name of the caller, for messages.
    read : callable
        Takes the owner and the rows of a block, and returns an array of shape (n, K).
    positive : label, optional
        The positive class; None if the first pass determines it.
    """

    owner: str
    read: Callable[[str, Any], Any]
    positive: Any = None

    def __call__(self, X: Any) -> Any:
        """Return the scores of a block."""
        return self.read(self.owner, X)

    def classes(self, y: Any, weight: Any) -> tuple[Flags, Flags]:
        """Return which rows are positives, and which negatives, with a weight above 0."""
        positive = np.asarray(_labels.natural(y) == self.positive, dtype=bool)
        if weight is None:
            return positive, ~positive
        used = np.asarray(weight) > 0
        return positive & used, ~positive & used


def read_numbers(owner: str, X: Any) -> Any:
    """Return the scores of a block; float32 remains float32."""
    array = np.asarray(X)
    if array.dtype.kind == "f":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{owner} needs scores that are numbers; got {error}.") from error


# The first pass


@dataclass(frozen=True, eq=False)
class ClassSummary:
    """The samples of one class with weight.

    Attributes
    ----------
    n : int
        Their number.
    max_weight, min_weight : float
        The range of their weights.
    total : float
        The sum of their weights, in units of the largest, so that it does not overflow.
    sums : ndarray of shape (K,)
        The weighted sums of their scores, in the same units.
    low, high : ndarray of shape (K, K)
        In row j a sample with the smallest (largest) score of member j.
    """

    n: int
    max_weight: float
    min_weight: float
    total: float
    sums: Floats
    low: Floats
    high: Floats

    @property
    def smallest(self) -> Floats:
        """The smallest score of each member."""
        return np.diagonal(self.low)

    @property
    def largest(self) -> Floats:
        """The largest score of each member."""
        return np.diagonal(self.high)

    @property
    def means(self) -> Floats:
        """The mean score of each member."""
        return np.asarray(self.sums / self.total)

    @property
    def min_fraction(self) -> float:
        """The smallest weight, as a fraction of their sum."""
        return self.min_weight / self.max_weight / self.total

    @classmethod
    def of(cls, values: Any, rows: Ints, weight: Floats | None) -> ClassSummary:
        """Summarize some rows of a block, at least one."""
        own = None if weight is None else weight[rows]
        max_weight = 1.0 if own is None else float(own.max())
        if own is not None:
            own = own / max_weight
        low, high, sums = [], [], []
        for column in range(values.shape[1]):
            one = values[:, column][rows].astype(np.float64, copy=False)
            low.append(rows[one.argmin()])
            high.append(rows[one.argmax()])
            sums.append(one.sum() if own is None else own @ one)
        return cls(
            n=len(rows),
            max_weight=max_weight,
            min_weight=1.0 if own is None else float(own.min()) * max_weight,
            total=float(len(rows)) if own is None else float(own.sum()),
            sums=np.array(sums),
            low=np.asarray(values[low], dtype=np.float64),
            high=np.asarray(values[high], dtype=np.float64),
        )

    @classmethod
    def merged(cls, parts: list[ClassSummary]) -> ClassSummary:
        """Merge the summaries of several blocks."""
        max_weight = max(part.max_weight for part in parts)
        members = np.arange(len(parts[0].sums))
        lowest = np.argmin([part.smallest for part in parts], axis=0)
        highest = np.argmax([part.largest for part in parts], axis=0)
        return cls(
            n=sum(part.n for part in parts),
            max_weight=max_weight,
            min_weight=min(part.min_weight for part in parts),
            total=sum(part.total * (part.max_weight / max_weight) for part in parts),
            sums=np.sum([part.sums * (part.max_weight / max_weight) for part in parts], axis=0),
            low=np.array([parts[at].low[j] for j, at in zip(members, lowest, strict=True)]),
            high=np.array([parts[at].high[j] for j, at in zip(members, highest, strict=True)]),
        )


@dataclass(frozen=True, eq=False)
class FirstPass:
    """The result of the first pass.

    Attributes
    ----------
    blocks, sizes : ndarray of int
        The numbers of the blocks that have rows, and their numbers of rows.
    classes : ndarray
        All labels.
    by_class : dict
        Summaries by label, of at most two; by True and False if the positive class is known.
    low, high : float
        The range of all scores; NaN if one is NaN.
    weights : tuple of float
        The range of the sample weights; NaN if one is NaN.
    """

    blocks: Ints
    sizes: Ints
    classes: NDArray[Any]
    by_class: dict[Any, ClassSummary]
    low: float
    high: float
    weights: tuple[float, float]

    def offsets(self, n_blocks: int) -> Ints:
        """Return the number of rows before each block."""
        sizes = np.zeros(n_blocks, dtype=np.int64)
        sizes[self.blocks] = self.sizes
        return np.cumsum(sizes) - sizes

    @classmethod
    def merged(cls, parts: list[FirstPass]) -> FirstPass:
        """Merge the results of several blocks."""
        classes = _labels.union([("y", part.classes) for part in parts])
        by_class: dict[Any, list[ClassSummary]] = {}
        for part in parts:
            for label, summary in part.by_class.items():
                by_class.setdefault(label, []).append(summary)
        return cls(
            blocks=np.concatenate([part.blocks for part in parts]),
            sizes=np.concatenate([part.sizes for part in parts]),
            classes=classes,
            by_class={label: ClassSummary.merged(own) for label, own in by_class.items()},
            low=float(np.min([part.low for part in parts])),  # NaN remains NaN
            high=float(np.max([part.high for part in parts])),
            weights=(
                float(np.min([part.weights[0] for part in parts])),
                float(np.max([part.weights[1] for part in parts])),
            ),
        )


def summarize_block(number: int, X: Any, y: Any, weight: Any, reader: ScoreReader) -> FirstPass:
    """Return the part of the first pass for one block."""
    values = reader(X)
    labels = _labels.natural(y)
    classes = _labels.union([(f"{reader.owner}, y", _distinct(labels))])
    own = None if weight is None else np.asarray(weight, dtype=np.float64)
    used = None if own is None else own > 0
    masks: dict[Any, Flags] = {}
    if reader.positive is not None:
        positive = np.asarray(labels == reader.positive, dtype=bool)
        masks = {True: positive, False: ~positive}
    elif len(classes) <= 2:
        masks = {label: np.asarray(labels == label, dtype=bool) for label in classes.tolist()}
    rows = {
        label: np.flatnonzero(mask if used is None else mask & used)
        for label, mask in masks.items()
    }
    return FirstPass(
        blocks=np.array([number]),
        sizes=np.array([len(values)]),
        classes=classes,
        by_class={label: ClassSummary.of(values, at, own) for label, at in rows.items() if len(at)},
        low=float(values.min()),
        high=float(values.max()),
        weights=(1.0, 1.0) if own is None else (float(own.min()), float(own.max())),
    )


def _distinct(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct labels of objects, without sorting them, which is slow."""
    if labels.dtype != object:
        return labels
    values = list(dict.fromkeys(labels.ravel().tolist()))
    distinct = np.empty(len(values), dtype=object)
    distinct[:] = values
    return distinct


# The search


@dataclass
class Passes:
    """Passes over blocks: their number so far, and the current and largest number of bins."""

    blocks: Blocks
    n_bins: int
    max_bins: int
    n_passes: int = 0

    @classmethod
    def over(cls, blocks: Blocks, n_members: int) -> Passes:
        """Start without passes."""
        max_bins = min(max(_MAX_SUMS // max(n_members, 1), _MIN_BINS), MAX_BINS)
        return cls(blocks, min(_BINS, max_bins), max_bins)

    def reduce(
        self,
        function: Callable[..., Any],
        merge: Callable[[list[Any]], Any],
        *more: Any,
        numbered: bool = False,
    ) -> Any:
        """Reduce the blocks in one pass, and count it."""
        self.n_passes += 1
        return self.blocks.reduce(function, merge, *more, numbered=numbered)

    def first(self, reader: ScoreReader) -> FirstPass:
        """Make the first pass."""
        result: FirstPass = self.reduce(summarize_block, FirstPass.merged, reader, numbered=True)
        return result


def maximize_block_margin(
    passes: Passes,
    reader: ScoreReader,
    first: FirstPass,
    classes: tuple[ClassSummary, ClassSummary],
    settings: MarginSettings,
) -> RankMarginWeights:
    """Search for the weights with the largest margin; if all members are constant, equal ones.

    Parameters
    ----------
    passes : Passes
        The blocks: rows from which `reader` reads scores, labels, and weights or None.
    reader : ScoreReader
        The reader, with the positive class.
    first : FirstPass
        The result of the first pass.
    classes : tuple of ClassSummary
        Its summaries of the positives and of the negatives.
    settings : MarginSettings
        The objective.
    """
    score_range = joint_range(*classes)
    in_unit = replace(settings, tol=settings.tol / score_range.unit)
    offsets = first.offsets(len(passes.blocks))
    oracle = BlockOracle(in_unit, score_range, passes, reader, *classes, offsets)
    result = maximize_margin(oracle)
    return replace(result, n_passes=passes.n_passes)


def joint_range(positives: ClassSummary, negatives: ClassSummary) -> ScoreRange:
    """Return the range of the members' scores over both classes."""
    return ScoreRange(
        np.minimum(positives.smallest, negatives.smallest),
        np.maximum(positives.largest, negatives.largest),
    )


@dataclass(frozen=True, eq=False)
class BlockOracle:
    """A `margrave.fuse.MarginOracle` for blocks of rows.

    Attributes
    ----------
    settings, score_range
        As in `MarginOracle`.
    passes : Passes
        The blocks.
    reader : ScoreReader
        Reads the scores of a block.
    positives, negatives : ClassSummary
        Both classes, from the first pass.
    offsets : ndarray of int
        The number of rows before each block.
    """

    settings: MarginSettings
    score_range: ScoreRange
    passes: Passes
    reader: ScoreReader
    positives: ClassSummary
    negatives: ClassSummary
    offsets: Ints

    @property
    def min_pair_weight(self) -> float:
        """The smallest weight of a pair."""
        return float(self.positives.min_fraction * self.negatives.min_fraction)

    @property
    def halfway(self) -> bool:
        """Reading the rows takes most of the time of a pass."""
        return True

    def mean_margins(self) -> Floats:
        """Return the mean margin of each member alone."""
        return self.score_range.reduce(self.positives.means - self.negatives.means)

    def smallest_margins(self) -> Floats:
        """Return the smallest margin of each member alone."""
        return self.score_range.reduce(self.positives.smallest - self.negatives.largest)

    def initial_rows(self) -> tuple[Floats, Floats]:
        """Return the lowest positive and the highest negative of each member."""
        reduce = self.score_range.reduce
        return reduce(self.positives.low), reduce(self.negatives.high)

    def extremes(self, W: Floats) -> Extremes:
        """Return the worst pair under each of some weights, in one pass."""
        worst = self.passes.reduce(find_lowest, merge_lowest, self.reader, self._member_weights(W))
        reduce = self.score_range.reduce
        low, high = [p for p, _ in worst], [n for _, n in worst]
        return Extremes(
            values=np.array([p.scores[0] + n.scores[0] for p, n in worst]),
            lowest=reduce(np.array([one.rows[0] for one in low])),
            highest=reduce(np.array([one.rows[0] for one in high])),
            low=reduce(np.concatenate([one.rows for one in low])),
            high=reduce(np.concatenate([one.rows for one in high])),
        )

    def tail(self, nu: float, weights: Floats) -> tuple[float, Floats]:
        """Return a lower bound of φ and a supergradient, from sums over bins."""
        tail, _ = self._binned_tail(nu, weights)
        return tail.value, tail.plane

    def fraction_up_to(self, margin: float) -> float:
        """Return the fraction of the pairs with at most this margin under equal weights."""
        n_members = len(self.score_range.varying)
        ends = self._ends(np.full(n_members, 1 / n_members), 2 * SAME)
        totals = [one.max_weight * one.total for one in (self.positives, self.negatives)]
        hardest = self.settings.hardest
        kept = hardest * totals[1]
        weight = pairs_up_to(margin, ends, 0, kept if hardest < 1 else 0.0)
        return weight / totals[0] / kept

    def active_pairs(self, nu: float, weights: Floats) -> ActivePairs:
        """Return the pairs that determine the margin."""
        hardest = self.settings.hardest
        if nu == 0:
            low, high = self._ends(weights, 2 * ROUNDING)
            margin = rho = float(low.scores[0] + high.scores[0])
            n_pairs = round(pairs_up_to(rho + ROUNDING, (low, high), 1))
        else:
            tail, (low, high) = self._binned_tail(nu, weights, with_ends=True)
            margin, rho, n_pairs = tail.value, tail.rho, tail.n_pairs
        t = -high.scores
        if nu > 0 and hardest < 1:
            own = high.weights / self.negatives.max_weight
            t = t[np.cumsum(own) - own < hardest * self.negatives.total]
        i, k = worst_pairs(low.scores, t, min(n_pairs, SHOWN_PAIRS)).T
        rows = [self.offsets[at[:, 0]] + at[:, 1] for at in (low.places[i], high.places[k])]
        return ActivePairs(margin, rho, n_pairs, np.column_stack(rows))

    def _member_weights(self, weights: Floats) -> Floats:
        """Return weights for all members, with which scores are in the unit of the search."""
        return self.score_range.expand(weights / self.score_range.unit)

    def _ends(self, weights: Floats, reach: float) -> tuple[LowEnd, LowEnd]:
        more = self.reader, self._member_weights(weights), reach
        ends: tuple[LowEnd, LowEnd] = self.passes.reduce(
            find_ends, merge_ends, *more, numbered=True
        )
        return ends

    def _binned_tail(
        self, nu: float, weights: Floats, with_ends: bool = False
    ) -> tuple[BinnedTail, Any]:
        """Return the tail from as many bins as the search needs, in one pass or more."""
        reduce = self.score_range.reduce
        low, high = (
            float(weights @ reduce(one)) for one in (self.score_range.low, self.score_range.high)
        )
        max_weights = self.positives.max_weight, self.negatives.max_weight
        member_weights = self._member_weights(weights)
        while True:
            grid = Grid.over(low, high, self.passes.n_bins)
            more = self.reader, member_weights, grid, max_weights, with_ends
            sums, ends = self.passes.reduce(sum_block, merge_sums, *more, numbered=True)
            tail = binned_tail(sums, grid, nu, self.settings.hardest)
            tail = replace(tail, plane=reduce(tail.plane))
            error = float(tail.plane @ weights) - tail.value
            fine = error <= LEVEL * self.settings.tol / 2
            if fine or self.passes.n_bins == self.passes.max_bins:
                return tail, ends
            self.passes.n_bins = min(self.passes.n_bins * _REFINEMENT, self.passes.max_bins)


# Functions of one block, and how their results are merged


def _combine(values: Any, W: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield scores under some weights, shape (n_weights, n), for some rows at a time."""
    n_rows = max(_PRODUCTS_AT_A_TIME // W.size, 256)
    for start in range(0, len(values), n_rows):
        part = slice(start, start + n_rows)
        yield part, W @ np.asarray(values[part], dtype=np.float64).T


def _combine_one(values: Any, w: Floats) -> Floats:
    """Return scores under one weighting; computed as two, since BLAS distributes a single one."""
    scores = np.empty(len(values))
    for part, S in _combine(values, np.array([w, w])):
        scores[part] = S[0]
    return scores


@dataclass(frozen=True, eq=False)
class LowestRows:
    """Samples with low combined scores: these scores, and the members' scores, a row each."""

    scores: Floats
    rows: Floats

    @classmethod
    def merged(cls, parts: list[LowestRows]) -> LowestRows:
        """Keep the lowest of several blocks."""
        scores = np.concatenate([part.scores for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        kept = smallest(scores, _MAX_EXTREME_ROWS)
        return cls(scores[kept], rows[kept])


def find_lowest(
    X: Any, y: Any, weight: Any, reader: ScoreReader, W: Floats
) -> list[tuple[LowestRows, LowestRows]]:
    """For each weighting, find low positives, and high negatives with opposite signs."""
    values = reader(X)
    classes = reader.classes(y, weight)
    scores: list[list[list[float]]] = [[[], []] for _ in W]
    places: list[list[list[int]]] = [[[], []] for _ in W]
    for part, S in _combine(values, W):
        for k, own in enumerate(S):
            for side, used in enumerate(classes):
                kept = np.where(used[part], -own if side else own, np.inf)
                at = int(kept.argmin())
                if kept[at] < np.inf:
                    scores[k][side].append(float(kept[at]))
                    places[k][side].append(part.start + at)

    def lowest(k: int, side: int) -> LowestRows:
        rows = np.asarray(values[np.array(places[k][side], dtype=np.int64)], dtype=np.float64)
        return LowestRows.merged([LowestRows(np.array(scores[k][side]), rows)])

    return [(lowest(k, 0), lowest(k, 1)) for k in range(len(W))]


def merge_lowest(
    parts: list[list[tuple[LowestRows, LowestRows]]],
) -> list[tuple[LowestRows, LowestRows]]:
    """Merge the lowest rows of several blocks."""
    return [
        (LowestRows.merged([p for p, _ in each]), LowestRows.merged([n for _, n in each]))
        for each in zip(*parts, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class LowEnd:
    """The low end of some scores.

    Attributes
    ----------
    scores, weights : ndarray of shape (m,)
        Scores and weights of the lowest samples, increasing; equal scores in the order of the rows.
    places : ndarray of shape (m, 2)
        Their blocks, and their rows there.
    near : SortedSummary
        Weights and numbers of all samples within `reach` of the lowest.
    reach : float
        A difference of scores.
    """

    scores: Floats
    weights: Floats
    places: Ints
    near: SortedSummary
    reach: float

    @classmethod
    def of(cls, scores: Floats, weights: Floats, places: Ints, reach: float) -> LowEnd:
        """Return the low end of the scores of a block, which may be empty."""
        low = scores <= scores.min(initial=np.inf) + reach
        masses = np.column_stack([weights[low], np.ones(int(low.sum()))])
        near = SortedSummary.of(scores[low], masses)
        kept = smallest(scores, SHOWN_PAIRS)
        return cls(scores[kept], weights[kept], places[kept], near, reach)

    @classmethod
    def merged(cls, parts: list[LowEnd]) -> LowEnd:
        """Return the low end of several blocks."""
        present = [part for part in parts if len(part.scores)] or parts[:1]
        scores = np.concatenate([part.scores for part in present])
        lowest, reach = scores.min(initial=np.inf), present[0].reach
        near = [part.near for part in present if part.scores.min(initial=np.inf) <= lowest + reach]
        kept = smallest(scores, SHOWN_PAIRS)
        return cls(
            scores[kept],
            np.concatenate([part.weights for part in present])[kept],
            np.concatenate([part.places for part in present])[kept],
            SortedSummary.merged(near) if len(near) > 1 else near[0] if near else present[0].near,
            reach,
        )


def find_ends(
    number: int, X: Any, y: Any, weight: Any, reader: ScoreReader, w: Floats, reach: float
) -> tuple[LowEnd, LowEnd]:
    """Find the lowest positives, and the highest negatives with opposite signs."""
    scores = _combine_one(reader(X), w)
    return _find_ends(number, scores, reader.classes(y, weight), weight, reach)


def merge_ends(parts: list[tuple[LowEnd, LowEnd]]) -> tuple[LowEnd, LowEnd]:
    """Merge the ends of several blocks."""
    return LowEnd.merged([p for p, _ in parts]), LowEnd.merged([n for _, n in parts])


def _find_ends(
    number: int, scores: Floats, classes: tuple[Flags, Flags], weight: Any, reach: float
) -> tuple[LowEnd, LowEnd]:
    ends = []
    for sign, used in zip((1.0, -1.0), classes, strict=True):
        rows = np.flatnonzero(used)
        own = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)[rows]
        places = np.column_stack([np.full(len(rows), number), rows])
        ends.append(LowEnd.of(sign * scores[rows], own, places, reach))
    return ends[0], ends[1]


def sum_block(
    number: int,
    X: Any,
    y: Any,
    weight: Any,
    reader: ScoreReader,
    w: Floats,
    grid: Grid,
    max_weights: tuple[float, float],
    with_ends: bool,
) -> tuple[Floats, tuple[LowEnd, LowEnd] | None]:
    """Sum a block over bins, with weights in units of the largest of a class; also the ends."""
    values = reader(X)
    classes = reader.classes(y, weight)
    own = None if weight is None else np.asarray(weight, dtype=np.float64)
    sums = np.zeros((4 + values.shape[1], 2, grid.n_bins))
    parts = []
    for start in range(0, len(values), _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        scores = _combine_one(values[part], w)
        positives, negatives = (
            used[part].astype(np.float64)
            if own is None
            else np.where(used[part], own[part] / max_weight, 0.0)
            for used, max_weight in zip(classes, max_weights, strict=True)
        )
        sums += sum_bins(values[part], scores, (positives, negatives), grid)
        if with_ends:
            parts.append(scores)
    if not with_ends:
        return sums, None
    return sums, _find_ends(number, np.concatenate(parts), classes, weight, 0.0)


def merge_sums(
    parts: list[tuple[Floats, tuple[LowEnd, LowEnd] | None]],
) -> tuple[Floats, tuple[LowEnd, LowEnd] | None]:
    """Merge the sums of several blocks, and their ends."""
    sums = parts[0][0].copy()
    for other, _ in parts[1:]:
        sums += other
    ends = [own for _, own in parts if own is not None]
    return sums, merge_ends(ends) if ends else None


def pairs_up_to(
    margin: float, ends: tuple[LowEnd, LowEnd], column: int, max_weight: float = 0.0
) -> float:
    """Return the weight or the number of the pairs near both ends with at most this margin.

    Parameters
    ----------
    margin : float
        The margin.
    ends : tuple of LowEnd
        Of the positives, and of the negatives with opposite signs.
    column : int
        0 for the weight, 1 for the number.
    max_weight : float, default=0
        If above 0, only the highest negatives count, up to this weight.
    """
    positives, negatives = ends[0].near, ends[1].near
    own: NDArray[Any] = negatives.masses[:, column]
    if max_weight:
        own = np.clip(max_weight - (np.cumsum(own) - own), 0, own)
    upto = np.append(0.0, np.cumsum(own))
    # A negative at -t has the margin s + (-t) with a positive at s.
    at = np.searchsorted(negatives.values, margin - positives.values, "right")
    return float(positives.masses[:, column] @ upto[at])
