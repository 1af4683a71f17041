"""Scores of more samples than fit into memory: how many of two kinds are up to each cut.

A first pass makes a sorted summary of the scores. While there are few different ones it holds all
of them. Else a second pass counts the samples between its groups, so that every count that is told
is exact, and only cuts within a group are left out: near both ends of either kind each sample has
its own group, elsewhere a group has at most about a ten-thousandth of a kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._dask.blocks import Blocks, is_dask
from margrave._dask.counts import count_labels
from margrave._dask.summary import SortedSummary
from margrave._typing import Codes, Floats, Ints
from margrave.confusion import Tally
from margrave.steer._frontier import (
    Curve,
    best_thresholds,
    check_finite,
    raise_invalid,
    split_labels,
)

_MOST = 1000  # different labels


def summary_of(scores: Floats, codes: Codes) -> SortedSummary:
    """A summary of scores of samples of two kinds, 0 and 1."""
    return SortedSummary.of(scores, np.eye(2)[codes])


@dataclass(frozen=True, eq=False)
class Runs:
    """Samples between given scores: counts of both kinds, and the smallest and largest score."""

    counts: Ints
    lows: Floats
    highs: Floats

    @classmethod
    def of(cls, scores: Floats, codes: Codes, ends: Floats) -> Runs:
        """Part samples by scores at which a run ends; what is above the last is one more."""
        place = np.searchsorted(ends, scores, "left")
        m = len(ends) + 1
        counts = np.bincount(place * 2 + codes, minlength=2 * m).reshape(m, 2)
        lows, highs = np.full(m, np.inf), np.full(m, -np.inf)
        np.minimum.at(lows, place, scores)
        np.maximum.at(highs, place, scores)
        return cls(counts, lows, highs)

    @classmethod
    def merged(cls, parts: Sequence[Runs]) -> Runs:
        """All of them together."""
        return cls(
            np.sum([one.counts for one in parts], axis=0),
            np.min([one.lows for one in parts], axis=0),
            np.max([one.highs for one in parts], axis=0),
        )


def tally_of(found: SortedSummary | Runs) -> Tally:
    """A tally of runs, or of a summary that is exact."""
    if isinstance(found, SortedSummary):
        return Tally(found.values, found.values, np.round(found.masses).astype(np.int64))
    there = found.counts.any(axis=1)
    return Tally(found.lows[there], found.highs[there], found.counts[there])


@dataclass(frozen=True, eq=False)
class _Ways:
    """What a block holds, as scores by way and codes of two kinds."""

    names: tuple[str, ...]
    order: tuple[int, ...]
    kinds: NDArray[Any]
    place: int

    def __call__(self, *parts: Any) -> list[tuple[Floats, Codes]]:
        y, *strategies = (parts[place] for place in self.order)
        codes = (_labels.encode(y, self.kinds, "Frontier.of, y") == self.place).astype(np.intp)
        found = []
        for name, given in zip(self.names, strategies, strict=True):
            scores = np.asarray(given, dtype=np.float64)
            if scores.shape != codes.shape:
                raise_invalid("of", "a score for each sample", f"shape {scores.shape} for {name!r}")
            check_finite(scores, name)
            found.append((scores, codes))
        return found


def _summed(*given: Any) -> list[SortedSummary]:
    *parts, strategies = given
    return [summary_of(scores, codes) for scores, codes in strategies(*parts)]


def _summed_up(parts: list[list[SortedSummary]]) -> list[SortedSummary]:
    return [SortedSummary.merged(list(each)) for each in zip(*parts, strict=True)]


def _run(*given: Any) -> list[Runs | None]:
    *parts, strategies, ends = given
    return [
        None if own is None else Runs.of(scores, codes, own)
        for (scores, codes), own in zip(strategies(*parts), ends, strict=True)
    ]


def _run_up(parts: list[list[Runs | None]]) -> list[Runs | None]:
    return [
        None if each[0] is None else Runs.merged([one for one in each if one is not None])
        for each in zip(*parts, strict=True)
    ]


def frontier_curves(
    scores: Mapping[str, Any], y: Any, positive: Any
) -> tuple[tuple[Curve, ...], int, int, Any, Any]:
    """What a frontier is made of, from Dask collections: two or three passes over them.

    Parameters
    ----------
    scores : mapping of str to Dask collection or array-like
        The scores of each way.
    y : Dask collection or array-like
        The labels.
    positive : label or None
        The positive class.

    Returns
    -------
    curves, n_positive, n_negative, positive, negative
    """
    label, others, kinds, sizes = _classes(y, positive)
    place = kinds.tolist().index(label)
    given = {"y": y, **{f"scores[{name!r}]": one for name, one in scores.items()}}
    given = {name: one if is_dask(one) else np.asarray(one) for name, one in given.items()}
    _check_lengths(scores, int(sizes.sum()))
    first = next(name for name, one in given.items() if is_dask(one))
    rest = {name: one for name, one in given.items() if name != first}
    order = tuple((first, *rest).index(name) for name in given)
    blocks = Blocks.of("Frontier.of", given[first], **rest)
    names = tuple(map(str, scores))
    strategies = _Ways(names, order, kinds, place)
    summaries = blocks.reduce(_summed, _summed_up, strategies)
    found: list[SortedSummary | Runs] = [*summaries]
    if not all(one.is_exact for one in summaries):
        ends = [None if one.is_exact else one.values for one in summaries]
        runs = blocks.reduce(_run, _run_up, strategies, ends)
        found = [was if new is None else new for was, new in zip(summaries, runs, strict=True)]
    curves = tuple(
        best_thresholds(name, tally_of(one)) for name, one in zip(names, found, strict=True)
    )
    n_positive = int(sizes[place])
    negative = others[0] if len(others) == 1 else None
    return curves, n_positive, int(sizes.sum()) - n_positive, label, negative


def _classes(y: Any, positive: Any) -> tuple[Any, list[Any], NDArray[Any], Ints]:
    """The positive label, the others, all of them in order, and how many samples each has."""
    labels: ArrayLike = y
    counts = None
    if is_dask(y):
        if getattr(y, "ndim", 1) != 1:
            raise_invalid("of", "y with a label for each sample", f"shape {tuple(y.shape)}")
        (labels,), counts = count_labels("Frontier.of", _MOST, y=y)
    label, others, _ = split_labels(labels, positive)
    array = _labels.natural(labels)
    kinds = _labels.union([("Frontier.of, y", array)])
    codes = _labels.encode(array, kinds, "Frontier.of, y")
    return label, others, kinds, np.bincount(codes, counts, len(kinds)).astype(np.int64)


def _check_lengths(scores: Mapping[str, Any], n: int) -> None:
    """Refuse scores of another shape, where it is known."""
    for name, given in scores.items():
        shape = tuple(given.shape) if is_dask(given) else np.shape(given)
        known = len(shape) != 1 or isinstance(shape[0], int)
        if known and shape != (n,):
            told = tuple(size if isinstance(size, int) else "?" for size in shape)
            raise_invalid(
                "of", f"a score for each of {n} samples", f"shape {told} for {str(name)!r}"
            )
