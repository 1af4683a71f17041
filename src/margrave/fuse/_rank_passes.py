"""What is asked of each block of scores in a pass, for the rank margin, and how answers merge.

- `worst`: the lowest positives and the highest negatives under some weights, to cut with;
- `ends`: those at the very end, which are the active pairs, and how many there are nearby;
- `binned`: sums over bins of the score, for the tail of the pairs.

Rows are worked on some at a time, so that what is made of them stays small and near.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._dask.summary import SortedSummary
from margrave._typing import Flags, Floats, Ints
from margrave.fuse._rank_look import Reading
from margrave.fuse._rank_problem import SHOWN_PAIRS, smallest
from margrave.fuse._tail_bins import Grid, sums_of

# Rows whose sums are made at a time.
_AT_ONCE = 262_144
# So many products at a time are done by one thread of BLAS. More are shared out to others, which
# takes long where all cores are busy with blocks of their own.
_PRODUCTS = 250_000
# So many rows of each class to cut with are kept of a pass, for each of the weights.
_MOST_CUTS = 400


def _combined(values: Any, W: Floats) -> Iterator[tuple[slice, Floats]]:
    """Scores under some weights, shape (n_weights, n), some rows at a time."""
    at_once = max(_PRODUCTS // W.size, 256)
    for start in range(0, len(values), at_once):
        part = slice(start, start + at_once)
        yield part, W @ np.asarray(values[part], dtype=np.float64).T


def _scores(values: Any, w: Floats) -> Floats:
    """Scores under one weighting; as two, since a single one is left to other threads too."""
    scores = np.empty(len(values))
    for part, S in _combined(values, np.array([w, w])):
        scores[part] = S[0]
    return scores


@dataclass(frozen=True, eq=False)
class Extreme:
    """Samples with low scores: the scores, and the members' scores, a row each."""

    scores: Floats
    rows: Floats

    @classmethod
    def merged(cls, parts: list[Extreme]) -> Extreme:
        """The lowest of all."""
        scores = np.concatenate([one.scores for one in parts])
        rows = np.concatenate([one.rows for one in parts])
        kept = smallest(scores, _MOST_CUTS)
        return cls(scores[kept], rows[kept])


def worst(
    X: Any, y: Any, weight: Any, reading: Reading, W: Floats
) -> list[tuple[Extreme, Extreme]]:
    """For each of the weights, low positives, and high negatives with the signs turned."""
    values = reading.read(reading.owner, X)
    sides = reading.sides(y, weight)
    scores: list[list[list[float]]] = [[[], []] for _ in W]
    places: list[list[list[int]]] = [[[], []] for _ in W]
    for part, S in _combined(values, W):
        for k, own in enumerate(S):
            for side, used in enumerate(sides):
                kept = np.where(used[part], -own if side else own, np.inf)
                at = int(kept.argmin())
                if kept[at] < np.inf:
                    scores[k][side].append(float(kept[at]))
                    places[k][side].append(part.start + at)

    def extreme(k: int, side: int) -> Extreme:
        rows = np.asarray(values[np.array(places[k][side], dtype=np.int64)], dtype=np.float64)
        return Extreme.merged([Extreme(np.array(scores[k][side]), rows)])

    return [(extreme(k, 0), extreme(k, 1)) for k in range(len(W))]


def merged_worst(
    parts: list[list[tuple[Extreme, Extreme]]],
) -> list[tuple[Extreme, Extreme]]:
    """The worst of all blocks."""
    return [
        (Extreme.merged([one[0] for one in each]), Extreme.merged([one[1] for one in each]))
        for each in zip(*parts, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class End:
    """The low end of some scores.

    Attributes
    ----------
    scores, weights : ndarray of shape (m,)
        Of the lowest samples, in rising order, equal ones in the order of the rows.
    places : ndarray of shape (m, 2)
        Their blocks, and their rows there.
    near : SortedSummary
        Weights and numbers of all samples within reach of the lowest.
    reach : float
        How far that is.
    """

    scores: Floats
    weights: Floats
    places: Ints
    near: SortedSummary
    reach: float

    @classmethod
    def of(cls, scores: Floats, weights: Floats, places: Ints, reach: float) -> End:
        """The end of these; there may be none."""
        low = scores <= scores.min(initial=np.inf) + reach
        masses = np.column_stack([weights[low], np.ones(int(low.sum()))])
        near = SortedSummary.of(scores[low], masses)
        kept = smallest(scores, SHOWN_PAIRS)
        return cls(scores[kept], weights[kept], places[kept], near, reach)

    @classmethod
    def merged(cls, parts: list[End]) -> End:
        """The end of all."""
        there = [one for one in parts if len(one.scores)] or parts[:1]
        scores = np.concatenate([one.scores for one in there])
        lowest, reach = scores.min(initial=np.inf), there[0].reach
        near = [one.near for one in there if one.scores.min(initial=np.inf) <= lowest + reach]
        kept = smallest(scores, SHOWN_PAIRS)
        return cls(
            scores[kept],
            np.concatenate([one.weights for one in there])[kept],
            np.concatenate([one.places for one in there])[kept],
            SortedSummary.merged(near) if len(near) > 1 else near[0] if near else there[0].near,
            reach,
        )


def ends(
    number: int, X: Any, y: Any, weight: Any, reading: Reading, w: Floats, reach: float
) -> tuple[End, End]:
    """The lowest positives, and the highest negatives with the signs turned."""
    values = reading.read(reading.owner, X)
    scores = _scores(values, w)
    return _ends(number, scores, reading.sides(y, weight), weight, reach)


def merged_ends(parts: list[tuple[End, End]]) -> tuple[End, End]:
    """The ends of all blocks."""
    return End.merged([one[0] for one in parts]), End.merged([one[1] for one in parts])


def _ends(
    number: int, scores: Floats, sides: tuple[Flags, Flags], weight: Any, reach: float
) -> tuple[End, End]:
    found = []
    for sign, used in zip((1.0, -1.0), sides, strict=True):
        rows = np.flatnonzero(used)
        own = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)[rows]
        places = np.column_stack([np.full(len(rows), number), rows])
        found.append(End.of(sign * scores[rows], own, places, reach))
    return found[0], found[1]


def binned(
    number: int,
    X: Any,
    y: Any,
    weight: Any,
    reading: Reading,
    w: Floats,
    grid: Grid,
    peaks: tuple[float, float],
    tell: bool,
) -> tuple[Floats, tuple[End, End] | None]:
    """Sums over bins, weights in units of the largest of a class; and the ends, if asked for."""
    values = reading.read(reading.owner, X)
    sides = reading.sides(y, weight)
    own = None if weight is None else np.asarray(weight, dtype=np.float64)
    sums = np.zeros((4 + values.shape[1], 2, grid.n_bins))
    parts = []
    for start in range(0, len(values), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        scores = _scores(values[part], w)
        weights = tuple(
            used[part].astype(np.float64)
            if own is None
            else np.where(used[part], own[part] / peak, 0.0)
            for used, peak in zip(sides, peaks, strict=True)
        )
        sums += sums_of(values[part], scores, (weights[0], weights[1]), grid)
        if tell:
            parts.append(scores)
    return sums, _ends(number, np.concatenate(parts), sides, weight, 0.0) if tell else None


def merged_binned(
    parts: list[tuple[Floats, tuple[End, End] | None]],
) -> tuple[Floats, tuple[End, End] | None]:
    """The sums of all blocks, and their ends."""
    sums = parts[0][0].copy()
    for other, _ in parts[1:]:
        sums += other
    told = [one for _, one in parts if one is not None]
    return sums, merged_ends(told) if told else None


def pairs_up_to(margin: float, end: tuple[End, End], kind: int, least: float = 0.0) -> float:
    """Weight (kind 0) or number (1) of the pairs near both ends with at most this margin.

    Parameters
    ----------
    margin : float
        The margin.
    end : tuple of End
        Of the positives, and of the negatives with the signs turned.
    kind : int
        What is counted.
    least : float, default=0
        If above 0, only so much weight of the negatives counts, the highest ones.
    """
    positives, negatives = end[0].near, end[1].near
    own: NDArray[Any] = negatives.masses[:, kind]
    if least:
        own = np.clip(least - (np.cumsum(own) - own), 0, own)
    upto = np.append(0.0, np.cumsum(own))
    # A negative at -t has the margin s + (-t) with a positive at s.
    at = np.searchsorted(negatives.values, margin - positives.values, "right")
    return float(positives.masses[:, kind] @ upto[at])
