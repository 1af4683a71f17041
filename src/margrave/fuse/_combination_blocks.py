"""One class against the rest, on blocks of rows: scale, weights and cut from sums and summaries.

The steps of `_combination`, each a pass over the blocks, in which the members are asked anew: their
values for the scale, the passes of `_rank_blocks` for the weights, and the combined scores for cut
and slope. What takes all scores at a time, the choice of ν and the gap "auto", is done in memory on
rows drawn of each class (`_drawing`); scores of others are kept as `margin_distribution_`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave import _labels
from margrave._dask.blocks import Blocks
from margrave._dask.summary import SortedSummary
from margrave._typing import Flags, Floats
from margrave.confusion import balanced_threshold
from margrave.fuse._combination import (
    MAX_ITER,
    Asked,
    Combination,
    chosen_nu,
    chosen_tol,
    heard_members,
    sigmoid,
    warn_of_gap,
)
from margrave.fuse._drawing import DRAWN, MARGINS, Drawn, keys_of, largest
from margrave.fuse._rank_blocks import Passes, weigh_blocks
from margrave.fuse._rank_look import Reading
from margrave.fuse._scales import LineScale, RankScale, logit_scale, mid_distribution, range_scale
from margrave.pairs import CrucialPairs
from margrave.scores import replace_by_log_odds

_OWNER = "RankMarginClassifier"


@dataclass(frozen=True, eq=False)
class Members:
    """The members, as they are sent to the blocks.

    Attributes
    ----------
    committee : RankMarginClassifier
        Has the members.
    unknown : ndarray of bool
        Where the decision values of a member say nothing, for a class that it has not seen.
    """

    committee: Any
    unknown: Flags

    def sides(self, X: Any) -> list[tuple[int, Floats]]:
        """Codes of classes, with what the members say toward each."""
        raw = self.committee._raw(X)
        # In memory such a value is the smallest there is, of all samples.
        raw = np.where(self.unknown, -1.0, raw)
        sides: list[tuple[int, Floats]] = self.committee._sides(raw)
        return sides


@dataclass(frozen=True, eq=False)
class Spread:
    """What the members say toward a class, in their own units, summed up.

    Attributes
    ----------
    total : ndarray of shape (2,)
        The weight of the others, and of the class.
    mean, square : ndarray of shape (2, K)
        Means of both, and weighted sums of squares around them, on the scale's units.
    low, high : ndarray of shape (K,)
        The smallest and the largest value, in the members' units.
    summaries : tuple of SortedSummary
        The values of each member, if ranks are asked for.
    """

    total: Floats
    mean: Floats
    square: Floats
    low: Floats
    high: Floats
    summaries: tuple[SortedSummary, ...]

    @classmethod
    def of(cls, raw: Floats, log_odds: Flags, masses: Floats, ranks: bool) -> Spread:
        """Of a block, with the weights in two columns: of the others, and of the class."""
        values, total = replace_by_log_odds(raw, log_odds), masses.sum(axis=0)
        safe = np.where(total > 0, total, 1.0)[:, None]
        mean = masses.T @ values / safe
        square = np.array([masses[:, k] @ (values - mean[k]) ** 2 for k in range(2)])
        summaries = tuple(SortedSummary.of(column, masses) for column in raw.T) if ranks else ()
        return cls(total, mean, square, raw.min(axis=0), raw.max(axis=0), summaries)

    @classmethod
    def merged(cls, parts: list[Spread]) -> Spread:
        """All of them together."""
        totals, means = (np.array([getattr(one, name) for one in parts]) for name in _SUMMED)
        total = totals.sum(axis=0)
        safe = np.where(total > 0, total, 1.0)[:, None]
        mean = (totals[:, :, None] * means).sum(axis=0) / safe
        square = np.sum([one.square for one in parts], axis=0)
        square = square + (totals[:, :, None] * (means - mean) ** 2).sum(axis=0)
        each = zip(*(one.summaries for one in parts), strict=True)
        return cls(
            total,
            mean,
            square,
            np.min([one.low for one in parts], axis=0),
            np.max([one.high for one in parts], axis=0),
            tuple(SortedSummary.merged(list(one)) for one in each),
        )

    def scale(self, name: str, probabilities: Flags) -> tuple[LineScale | RankScale, Floats]:
        """The scale, and the members' mean margins on it."""
        if name == "rank":
            columns = [mid_distribution(one.values, one.masses.sum(1)) for one in self.summaries]
            scale = RankScale(*(tuple(part) for part in zip(*columns, strict=True)))
            margins = [
                np.interp(one.values, *column) @ (one.masses / one.total) @ [-1.0, 1.0]
                for one, column in zip(self.summaries, columns, strict=True)
            ]
            return scale, np.array(margins)
        if name == "logit":
            centre = self.mean.mean(axis=0)
            around = self.square + self.total[:, None] * (self.mean - centre) ** 2
            variance = around.sum(axis=0) / self.total.sum()
            means = self.mean[1], self.mean[0]
            line = logit_scale(self.low, self.high, probabilities, means, variance)
        else:
            line = range_scale(name, self.low, self.high, probabilities)
        return line, line.slope * (self.mean[1] - self.mean[0])


_SUMMED = ("total", "mean")


@dataclass(frozen=True, eq=False)
class First:
    """What the first pass found: the range of the weights, the classes, and the values.

    Of each class `mass` has the weight, and `counts` how many samples have some.
    """

    weights: tuple[float, float]
    mass: Floats
    counts: Floats
    sides: list[Spread]

    @classmethod
    def merged(cls, parts: list[First]) -> First:
        """All of them together; blocks without weight have no values."""
        low, high = zip(*(one.weights for one in parts), strict=True)
        there = [one.sides for one in parts if one.sides]
        return cls(
            (float(np.min(low)), float(np.max(high))),
            np.sum([one.mass for one in parts], axis=0),
            np.sum([one.counts for one in parts], axis=0),
            [Spread.merged(list(each)) for each in zip(*there, strict=True)],
        )


def first(X: Any, y: Any, weight: Any, members: Members, probabilities: Flags, scale: str) -> First:
    """The first look at a block."""
    classes = members.committee.classes_
    codes = _labels.encode(y, classes, "y")
    own = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    used = own > 0
    mass: Floats = np.bincount(codes[used], own[used], len(classes)).astype(np.float64)
    counts: Floats = np.bincount(codes[used], minlength=len(classes)).astype(np.float64)
    sides = []
    if used.any():
        log_odds = probabilities & (scale == "logit")
        for code, raw in members.sides(X):
            masses = np.where((codes == code)[:, None] == [False, True], own[:, None], 0.0)[used]
            sides.append(Spread.of(raw[used], log_odds, masses, scale == "rank"))
    return First((float(own.min()), float(own.max())), mass, counts, sides)


@dataclass(frozen=True, eq=False)
class Scaled:
    """Reads a block: the members' scores toward a class, on their scale; 0 if one is not heard."""

    members: Members
    place: int
    scale: LineScale | RankScale
    heard: Flags

    def __call__(self, _owner: str, X: Any) -> Floats:
        """Scores of shape (n, K)."""
        return np.where(self.heard, self.scale(self.members.sides(X)[self.place][1]), 0.0)


@dataclass(frozen=True, eq=False)
class Last:
    """Combined scores of a class: sorted, their mean and spread, and some of them."""

    summary: SortedSummary
    mean: float
    square: float
    ends: tuple[float, float]
    keys: tuple[Floats, Floats]
    drawn: tuple[Floats, Floats]

    @classmethod
    def of(cls, scores: Floats, weight: Floats, positive: Flags, keys: Floats) -> Last:
        """Of a block, some rows at least."""
        masses = np.where(positive[:, None] == [True, False], weight[:, None], 0.0)
        sides = positive, ~positive
        return cls(
            SortedSummary.of(scores, masses),
            float(scores.mean()),
            float(((scores - scores.mean()) ** 2).sum()),
            (scores[positive].min(initial=np.inf), scores[~positive].max(initial=-np.inf)),
            *_drawn([keys[of] for of in sides], [scores[of] for of in sides]),
        )

    @classmethod
    def merged(cls, parts: list[Last]) -> Last:
        """All of them together."""
        n = np.array([one.summary.n for one in parts])
        means = np.array([one.mean for one in parts])
        mean = float(n @ means / n.sum())
        keys = [np.concatenate([one.keys[k] for one in parts]) for k in range(2)]
        drawn = [np.concatenate([one.drawn[k] for one in parts]) for k in range(2)]
        return cls(
            SortedSummary.merged([one.summary for one in parts]),
            mean,
            float(sum(one.square for one in parts) + n @ (means - mean) ** 2),
            (min(one.ends[0] for one in parts), max(one.ends[1] for one in parts)),
            *_drawn(keys, drawn),
        )

    def line(self, calibrate: bool) -> tuple[float, float]:
        """Slope and cut."""
        u, v = self.summary.masses.T
        if not calibrate:
            return 1.0, balanced_threshold(self.summary.values, u / u.sum(), v / v.sum())
        n = self.summary.n
        spread = float(np.sqrt(self.square / n))
        return sigmoid(self.summary.values, u, v, n, self.mean, spread)


def _drawn(
    keys: list[Floats], scores: list[Floats]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """The samples with the largest keys, in their order, of each kind."""
    kept = [largest(one, DRAWN) for one in keys]
    return (keys[0][kept[0]], keys[1][kept[1]]), (scores[0][kept[0]], scores[1][kept[1]])


def last(
    number: int, X: Any, y: Any, weight: Any, members: Members, found: list[Any]
) -> list[Last] | None:
    """The combined scores of a block, for each class."""
    codes = _labels.encode(y, members.committee.classes_, "y")
    own = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    used = own > 0
    if not used.any():
        return None
    keys = keys_of(MARGINS, number, len(codes))[used]
    return [
        Last.of((scale(raw) @ weights)[used], own[used], (codes == code)[used], keys)
        for (code, raw), (scale, weights) in zip(members.sides(X), found, strict=True)
    ]


def merged_last(parts: list[list[Last]]) -> list[Last]:
    """The combined scores of all blocks."""
    return [Last.merged(list(each)) for each in zip(*parts, strict=True)]


def _shares(positive: Flags, counts: Floats, code: int) -> tuple[float, float]:
    """Which share of the class and of the others was drawn."""
    own = counts[code]
    return float(positive.sum() / own), float((~positive).sum() / (counts.sum() - own))


def combine_blocks(
    blocks: Blocks,
    members: Members,
    looked: First,
    probabilities: Flags,
    asked: Asked,
    drawn: Drawn | None,
) -> list[tuple[Combination, float]]:
    """Learn scale, weights and cut of each class, and its smallest margin over all pairs.

    Parameters
    ----------
    blocks : Blocks
        Samples, labels, and weights or None.
    members : Members
        Who is asked.
    looked : First
        What the first pass found.
    probabilities : ndarray of bool, shape (K,)
        Which members give probabilities.
    asked : Asked
        The settings.
    drawn : Drawn, optional
        Samples in memory, on which ν and the gap are chosen if need be.
    """
    classes = members.committee.classes_
    told = None if drawn is None else members.sides(drawn.X)
    codes = range(len(classes)) if len(looked.sides) > 1 else [members.committee._positive_code]
    learned = []
    for place, (code, side) in enumerate(zip(codes, looked.sides, strict=True)):
        scale, margins = side.scale(asked.scale, probabilities)
        heard = heard_members(margins)
        nu, tol, auc_by_nu = asked.nu, asked.tol, dict[float, float]()
        if told is not None and drawn is not None:
            rows = drawn.against_rest(code)
            part = told[place][1][rows], probabilities, drawn.codes[rows] == code
            weight = drawn.weight[rows] / drawn.weight[rows].max()
            nu, auc_by_nu = chosen_nu(*part, weight, asked)
            shares = _shares(part[2], looked.counts, code)
            tol = chosen_tol(scale(part[0])[:, heard], part[2], weight, nu, asked, shares)
        reading = Reading(_OWNER, Scaled(members, place, scale, heard), classes[code])
        passes = Passes.over(blocks, len(heard))
        seen = passes.look(reading)
        both = seen.groups[True], seen.groups[False]
        found = weigh_blocks(
            passes, reading, seen, both, float(nu), asked.hardest, float(tol), MAX_ITER
        )
        warn_of_gap(found, float(tol), 6)
        learned.append((scale, found, auc_by_nu))
    lines = [(scale, found.weights) for scale, found, _ in learned]
    ends: list[Last] = blocks.reduce(last, merged_last, members, lines, numbered=True)
    combined = []
    for (scale, found, auc_by_nu), end in zip(learned, ends, strict=True):
        slope, threshold = end.line(asked.calibrate)
        margins_of = CrucialPairs(*end.drawn)
        one = Combination(scale, found, slope, threshold, margins_of, auc_by_nu)
        combined.append((one, float(end.ends[0] - end.ends[1])))
    return combined
