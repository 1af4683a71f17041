"""The staircase of one way of deciding: its false positives and false negatives at every cut."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from margrave import _labels
from margrave._typing import Flags, Floats, Ints


@dataclass(frozen=True, eq=False)
class Curve:
    """The best trade-offs of one way of deciding.

    Only cuts on the lower-left staircase are here: any other cut of this way has at least as many
    false positives and as many false negatives as one of them, and more of one kind.

    Attributes
    ----------
    name : str
        The way.
    fp : ndarray of int64
        False positives at each cut, increasing; the first is 0.
    fn : ndarray of int64
        False negatives at each cut, decreasing; the last is 0.
    cuts : ndarray of float64
        A sample is called positive if its score is above the cut. Cuts lie halfway between scores,
        or 1 beyond the largest or the smallest.
    resolution : tuple of float
        What is left out of scores of Dask where they are too many: between neighbouring cuts there
        are cuts that are not here, with at most this share of the negatives, and of the positives,
        between the two. Every count that is here is exact; (0, 0) if no cut was left out.

    Examples
    --------
    >>> from margrave.steer import Frontier
    >>> (curve,) = Frontier.of({"model": [1, 2, 3, 4]}, [0, 1, 0, 1]).curves
    >>> curve.fp.tolist(), curve.fn.tolist(), curve.cuts.tolist()
    ([0, 1], [1, 0], [3.5, 1.5])
    """

    name: str
    fp: Ints
    fn: Ints
    cuts: Floats
    resolution: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many samples of two kinds are in runs of neighbouring scores; cuts lie between runs.

    Attributes
    ----------
    lows, highs : ndarray of shape (n_runs,)
        The smallest and the largest score of each run, rising.
    counts : ndarray of shape (n_runs, 2)
        Its negatives and its positives.
    """

    lows: Floats
    highs: Floats
    counts: Ints

    @classmethod
    def of(cls, scores: Floats, codes: Any, times: Ints | None = None) -> Tally:
        """Scores of samples of the kinds 0 and 1; each stands for one sample, or for several."""
        values, place = np.unique(scores, return_inverse=True)
        counts = np.bincount(place * 2 + codes, times, 2 * len(values))
        return cls(values, values, counts.astype(np.int64).reshape(-1, 2))

    @cached_property
    def cuts(self) -> Floats:
        """Cuts below, between and above the runs, rising."""
        low, high = self.highs[:-1], self.lows[1:]
        cuts = low / 2 + high / 2  # low + high may overflow
        cuts = np.where((low <= cuts) & (cuts < high), cuts, low)  # between neighbouring floats
        bottom = min(self.lows[0] - 1, np.nextafter(self.lows[0], -np.inf))
        return np.concatenate([[bottom], cuts, [self.highs[-1] + 1]])

    @cached_property
    def under(self) -> Ints:
        """Negatives and positives up to each cut."""
        return np.vstack([np.zeros(2, dtype=np.int64), np.cumsum(self.counts, axis=0)])

    def upto(self, cut: float) -> Ints:
        """Negatives and positives up to a cut that is within no run."""
        found: Ints = self.under[np.searchsorted(self.highs, cut, "right")]
        return found

    @property
    def resolution(self) -> tuple[float, float]:
        """The largest run of different scores, as a share of the negatives and of the positives."""
        within = self.counts[self.lows < self.highs]
        steps = within.max(axis=0, initial=0) / np.maximum(self.under[-1], 1)
        return float(steps[0]), float(steps[1])


def curve_of(name: str, given: ArrayLike, positive: Flags) -> Curve:
    """Cut between any two scores that differ, and keep what no other cut beats."""
    scores = np.asarray(given, dtype=np.float64)
    if scores.shape != positive.shape:
        rule = f"a score for each of {len(positive)} samples"
        fail("of", rule, f"shape {scores.shape} for {name!r}")
    check_finite(scores, name)
    return staircase(name, Tally.of(scores, positive))


def staircase(name: str, tally: Tally) -> Curve:
    """The cuts of a tally that no other cut beats."""
    under = tally.under[::-1]
    fp, fn = under[0, 0] - under[:, 0], under[:, 1]
    # Along the cuts fp never falls and fn never rises: if any cut beats one, a neighbour does.
    kept = np.append(fp[:-1] < fp[1:], True) & np.append(True, fn[1:] < fn[:-1])
    parts = fp[kept], fn[kept], tally.cuts[::-1][kept]
    for part in parts:
        part.flags.writeable = False
    return Curve(name, *parts, tally.resolution)


def check_finite(scores: Floats, name: str) -> None:
    """Refuse scores that are no numbers."""
    if not np.isfinite(scores).all():
        fail("of", "finite scores", f"NaN or infinity for {name!r}")


def corners(x: list[int], y: list[int]) -> list[int]:
    """The places of the corners of the lower convex hull of a falling staircase."""
    kept: list[int] = []
    for i, (u, v) in enumerate(zip(x, y, strict=True)):
        while len(kept) > 1:
            (o, p), (a, b) = ((x[k], y[k]) for k in kept[-2:])
            if (a - o) * (v - p) > (b - p) * (u - o):  # a turn to the left
                break
            kept.pop()
        kept.append(i)
    return kept


def classes_of(y: ArrayLike, positive: Any) -> tuple[Any, list[Any], Flags]:
    """The positive label, the others, and which samples are positive."""
    labels = _labels.natural(y)
    if labels.ndim != 1:
        fail("of", "y with a label for each sample", f"shape {labels.shape}")
    kinds = _labels.union([("Frontier.of, y", labels)])
    known = kinds.tolist()
    if len(known) < 2 or (positive is None and len(known) > 2):
        rule = "y with two labels" + ", or positive=" * (len(known) > 2)
        fail("of", rule, f"{len(known)}: {_labels.shown(kinds)}")
    positive = known[1] if positive is None else _labels.plain(positive)
    if positive not in known:
        fail("of", f"positive to be one of {_labels.shown(kinds)}", repr(positive))
    place = known.index(positive)
    chosen: Flags = _labels.encode(labels, kinds, "Frontier.of, y") == place
    return known.pop(place), known, chosen


def fail(method: str, rule: str, got: str) -> NoReturn:
    """Say what a method of a frontier needs."""
    raise ValueError(f"Frontier.{method} needs {rule}; got {got}.")
