"""The frontier of Dask collections: exact counts of two classes at each threshold.

A first pass makes a sorted summary of the scores, which holds all of them if few are different.
Otherwise a second pass counts the samples in the groups of the summary. So every count is exact,
and only thresholds within a group are left out: near both ends of a class each sample has a group
of its own, elsewhere a group has at most about a ten-thousandth of a class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrave import _labels
from margrave._typing import Codes, Floats, Ints
from margrave.confusion import Tally
from margrave.scale._blocks import Blocks, is_dask
from margrave.scale._counts import count_labels
from margrave.scale._summary import SortedSummary
from margrave.steer import (
    Frontier,
    best_thresholds,
    check_finite,
    raise_invalid,
    split_labels,
)

_OWNER = "scale.frontier"

_MOST_LABELS = 1000


def summary_of(scores: Floats, codes: Codes) -> SortedSummary:
    """Summarize scores of samples of the classes 0 and 1."""
    return SortedSummary.of(scores, np.eye(2)[codes])


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of samples between scores.

    Attributes
    ----------
    counts : ndarray of shape (n_runs, 2)
        The number of samples of each class.
    lows, highs : ndarray of shape (n_runs,)
        The smallest and the largest score.
    """

    counts: Ints
    lows: Floats
    highs: Floats

    @classmethod
    def of(cls, scores: Floats, codes: Codes, ends: Floats) -> Runs:
        """Split samples at the scores where runs end; samples above the last are one more run."""
        run = np.searchsorted(ends, scores, "left")
        m = len(ends) + 1
        counts = np.bincount(run * 2 + codes, minlength=2 * m).reshape(m, 2)
        lows, highs = np.full(m, np.inf), np.full(m, -np.inf)
        np.minimum.at(lows, run, scores)
        np.maximum.at(highs, run, scores)
        return cls(counts, lows, highs)

    @classmethod
    def merged(cls, parts: Sequence[Runs]) -> Runs:
        """Merge the runs of several blocks."""
        return cls(
            np.sum([part.counts for part in parts], axis=0),
            np.min([part.lows for part in parts], axis=0),
            np.max([part.highs for part in parts], axis=0),
        )


def tally_of(scores: SortedSummary | Runs) -> Tally:
    """Convert runs, or an exact summary, to a tally."""
    if isinstance(scores, SortedSummary):
        return Tally(scores.values, scores.values, np.round(scores.masses).astype(np.int64))
    filled = scores.counts.any(axis=1)
    return Tally(scores.lows[filled], scores.highs[filled], scores.counts[filled])


@dataclass(frozen=True, eq=False)
class _BlockReader:
    """Reads the scores of each curve in a block, with codes: 1 for the positive class.

    Attributes
    ----------
    names : tuple of str
        The curves.
    classes : ndarray
        All labels.
    positive : int
        Position of the positive class.
    """

    names: tuple[str, ...]
    classes: NDArray[Any]
    positive: int

    def __call__(self, y: Any, *columns: Any) -> list[tuple[Floats, Codes]]:
        is_positive = _labels.encode(y, self.classes, f"{_OWNER}, y") == self.positive
        codes = is_positive.astype(np.intp)
        curves = []
        for name, column in zip(self.names, columns, strict=True):
            scores = np.asarray(column, dtype=np.float64)
            if scores.shape != codes.shape:
                raise_invalid(
                    _OWNER, "a score for each sample", f"shape {scores.shape} for {name!r}"
                )
            check_finite(scores, name, _OWNER)
            curves.append((scores, codes))
        return curves


def _summarize(*arguments: Any) -> list[SortedSummary]:
    *parts, read = arguments
    return [summary_of(scores, codes) for scores, codes in read(*parts)]


def _merge_summaries(parts: list[list[SortedSummary]]) -> list[SortedSummary]:
    return [SortedSummary.merged(list(of_curve)) for of_curve in zip(*parts, strict=True)]


def _count_runs(*arguments: Any) -> list[Runs | None]:
    *parts, read, ends = arguments
    return [
        None if own is None else Runs.of(scores, codes, own)
        for (scores, codes), own in zip(read(*parts), ends, strict=True)
    ]


def _merge_runs(parts: list[list[Runs | None]]) -> list[Runs | None]:
    return [
        None if of_curve[0] is None else Runs.merged([runs for runs in of_curve if runs])
        for of_curve in zip(*parts, strict=True)
    ]


def frontier(scores: Mapping[str, Any], y: Any, positive: Any = None) -> Frontier:
    """Compute the frontier of scores in Dask collections, in two or three passes.

    Parameters
    ----------
    scores : mapping of str to Dask array or series of shape (n_samples,)
        For each curve, a score per sample; larger means more positive.
    y : Dask array or series of shape (n_samples,)
        Labels of two classes; of more only with `positive`.
    positive : label, default=None
        The positive class; the others are negative. By default the larger of two labels.

    Returns
    -------
    Frontier
        As from :meth:`margrave.steer.Frontier.of`. Every count is exact; with more than 200,000
        different scores some thresholds are left out (see `resolution`).

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave import scale
    >>> scores = da.from_array([1.0, 2.0, 3.0, 4.0], chunks=2)
    >>> scale.frontier({"model": scores}, da.from_array([0, 1, 0, 1], chunks=2)).least_fn(0)
    (1, 'model', 3.5)
    """
    if not isinstance(scores, Mapping) or not scores:
        got = "none" if isinstance(scores, Mapping) else type(scores).__name__
        raise_invalid(_OWNER, "scores to be a mapping of at least one name to its scores", got)
    columns = {f"scores[{name!r}]": values for name, values in scores.items()}
    blocks = Blocks.of_columns(_OWNER, y=y, **columns)
    label, others, classes, sizes = _count_classes(y, positive)
    code = classes.tolist().index(label)
    names = tuple(map(str, scores))
    read = _BlockReader(names, classes, code)
    summaries = blocks.reduce(_summarize, _merge_summaries, read)
    counted: list[SortedSummary | Runs] = [*summaries]
    if not all(summary.is_exact for summary in summaries):
        ends = [None if summary.is_exact else summary.values for summary in summaries]
        runs = blocks.reduce(_count_runs, _merge_runs, read, ends)
        counted = [own or summary for summary, own in zip(summaries, runs, strict=True)]
    curves = tuple(
        best_thresholds(name, tally_of(own)) for name, own in zip(names, counted, strict=True)
    )
    n_positive = int(sizes[code])
    negative = others[0] if len(others) == 1 else None
    return Frontier(curves, n_positive, int(sizes.sum()) - n_positive, label, negative)


def _count_classes(y: Any, positive: Any) -> tuple[Any, list[Any], NDArray[Any], Ints]:
    """Return the positive label, the others, all in order, and how many samples each has."""
    labels: ArrayLike = y
    counts = None
    if is_dask(y):
        (labels,), counts = count_labels(_OWNER, _MOST_LABELS, y=y)
    label, others, _ = split_labels(labels, positive, _OWNER)
    array = _labels.natural(labels)
    classes = _labels.union([(f"{_OWNER}, y", array)])
    codes = _labels.encode(array, classes, f"{_OWNER}, y")
    return label, others, classes, np.bincount(codes, counts, len(classes)).astype(np.int64)
