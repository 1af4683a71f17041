"""The staircase of one way of deciding: its false positives and false negatives at every cut."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from margrave import _labels
from margrave._dask.blocks import is_dask
from margrave._extensions import load_extension
from margrave._typing import Flags, Floats, Ints
from margrave.confusion import Confusion, Preference, Tally
from margrave.steer._strategies import Request, Strategy
from margrave.steer._tuning_data import Candidate, TuningData


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
    thresholds : ndarray of float64
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
    >>> curve.fp.tolist(), curve.fn.tolist(), curve.thresholds.tolist()
    ([0, 1], [1, 0], [3.5, 1.5])
    """

    name: str
    fp: Ints
    fn: Ints
    thresholds: Floats
    resolution: tuple[float, float] = (0.0, 0.0)


def make_curve(name: str, given: ArrayLike, positive: Flags) -> Curve:
    """Cut between any two scores that differ, and keep what no other cut beats."""
    scores = np.asarray(given, dtype=np.float64)
    if scores.shape != positive.shape:
        rule = f"a score for each of {len(positive)} samples"
        raise_invalid("of", rule, f"shape {scores.shape} for {name!r}")
    check_finite(scores, name)
    return best_thresholds(name, Tally.of(scores, positive))


def best_thresholds(name: str, tally: Tally) -> Curve:
    """The cuts of a tally that no other cut beats."""
    under = tally.under[::-1]
    fp, fn = under[0, 0] - under[:, 0], under[:, 1]
    # Along the cuts fp never falls and fn never rises: if any cut beats one, a neighbour does.
    kept = np.append(fp[:-1] < fp[1:], True) & np.append(True, fn[1:] < fn[:-1])
    parts = fp[kept], fn[kept], tally.thresholds[::-1][kept]
    for part in parts:
        part.flags.writeable = False
    return Curve(name, *parts, tally.resolution)


def check_finite(scores: Floats, name: str) -> None:
    """Refuse scores that are no numbers."""
    if not np.isfinite(scores).all():
        raise_invalid("of", "finite scores", f"NaN or infinity for {name!r}")


def hull_corners(x: list[int], y: list[int]) -> list[int]:
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


def split_labels(y: ArrayLike, positive: Any) -> tuple[Any, list[Any], Flags]:
    """The positive label, the others, and which samples are positive."""
    labels = _labels.natural(y)
    if labels.ndim != 1:
        raise_invalid("of", "y with a label for each sample", f"shape {labels.shape}")
    kinds = _labels.union([("Frontier.of, y", labels)])
    known = kinds.tolist()
    if len(known) < 2 or (positive is None and len(known) > 2):
        rule = "y with two labels" + ", or positive=" * (len(known) > 2)
        raise_invalid("of", rule, f"{len(known)}: {_labels.shown(kinds)}")
    positive = known[1] if positive is None else _labels.plain(positive)
    if positive not in known:
        raise_invalid("of", f"positive to be one of {_labels.shown(kinds)}", repr(positive))
    place = known.index(positive)
    chosen: Flags = _labels.encode(labels, kinds, "Frontier.of, y") == place
    return known.pop(place), known, chosen


def raise_invalid(method: str, rule: str, got: str) -> NoReturn:
    """Say what a method of a frontier needs."""
    raise ValueError(f"Frontier.{method} needs {rule}; got {got}.")


_TOLD = ("0.5%", "1%", "2%", "5%", "10%")  # of the negatives, in the printed table
_SHARE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*")


@dataclass(frozen=True)
class Winner:
    """A way and its cut, with the slopes at which nothing costs less.

    The slope is π r / (1 − π), for a prior π of the positives and a false negative that costs r
    times as much as a false positive: how many points of false positive rate one point of false
    negative rate is worth.

    Attributes
    ----------
    name : str
        The way.
    threshold : float
        A sample is called positive if its score is above.
    fp, fn : int
        False positives and false negatives.
    low, high : float
        The range of slopes.

    Examples
    --------
    >>> from margrave.steer import Frontier
    >>> Frontier.of({"model": [1, 2, 3, 4]}, [0, 1, 0, 1]).best(cost_ratio=3)
    Winner(name='model', threshold=1.5, fp=1, fn=0, low=3.0, high=3.0)
    """

    name: str
    threshold: float
    fp: int
    fn: int
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Frontier:
    """The trade-offs that several ways of deciding can reach on some samples.

    Make it with `of`. The counts are those of the samples it was made from: the better for having
    chosen the cut on them. What holds on new samples takes samples that no choice has seen.

    Attributes
    ----------
    curves : tuple of Curve
        The staircase of each way.
    n_positive, n_negative : int
        Numbers of samples.
    positive : label
        The positive class.
    negative : label or None
        The other class; None if there are several.

    Examples
    --------
    >>> from margrave.steer import Frontier
    >>> scores = {"sharp": [1, 2, 3, 7, 4, 8, 9, 10], "even": [1, 2, 3, 4, 2, 3, 5, 6]}
    >>> frontier = Frontier.of(scores, ["ham"] * 4 + ["spam"] * 4)
    >>> frontier.least_fn(0), frontier.least_fn("25%")
    ((1, 'sharp', 7.5), (0, 'sharp', 3.5))
    >>> [(winner.fp, winner.fn, winner.high) for winner in frontier.winners(cost_ratio=(0.5, 2))]
    [(0, 1, 1.0), (1, 0, 2.0)]
    >>> print(frontier)
    fp at most  fewest fn  way (spam is positive)
          0.5%      25.0%  sharp
            1%      25.0%  sharp
            2%      25.0%  sharp
            5%      25.0%  sharp
           10%      25.0%  sharp
    """

    curves: tuple[Curve, ...] = field(repr=False)
    n_positive: int
    n_negative: int
    positive: Any
    negative: Any = None

    @classmethod
    def of(cls, scores: Mapping[str, ArrayLike], y: ArrayLike, positive: Any = None) -> Self:
        """Cut the scores of each way everywhere.

        Parameters
        ----------
        scores : mapping of str to array-like or Dask collection of shape (n_samples,)
            For each way of deciding, a score per sample; larger means more positive.
        y : array-like or Dask collection of shape (n_samples,)
            Labels, of exactly two kinds unless `positive` is given.
        positive : label, default=None
            The positive class; the others are negative. By default the larger of two labels.

        Returns
        -------
        frontier : Frontier
            What they can reach on these samples. Of Dask collections all counts are exact too;
            of more than 200,000 different scores some cuts are left out (see `resolution`).
        """
        if not isinstance(scores, Mapping) or not scores:
            got = "none" if isinstance(scores, Mapping) else type(scores).__name__
            raise_invalid("of", "scores to be a mapping of at least one name to its scores", got)
        if is_dask(y, *scores.values()):
            return cls(*load_extension("dask").frontier_curves(scores, y, positive))
        label, others, chosen = split_labels(y, positive)
        curves = tuple(make_curve(str(name), given, chosen) for name, given in scores.items())
        negative = others[0] if len(others) == 1 else None
        return cls(curves, int(chosen.sum()), int((~chosen).sum()), label, negative)

    @property
    def resolution(self) -> tuple[float, float]:
        """The coarsest of the curves' resolutions: what is left out between neighbouring cuts."""
        fp, fn = zip(*(curve.resolution for curve in self.curves), strict=True)
        return max(fp), max(fn)

    @cached_property
    def _lowest(self) -> tuple[Ints, Ints, Ints, Floats]:
        """The staircase under all curves: fp, fn, the place of the way and the cut."""
        parts = [(curve.fp, curve.fn, curve.thresholds) for curve in self.curves]
        fp, fn, thresholds = map(np.concatenate, zip(*parts, strict=True))
        strategies = np.repeat(
            np.arange(len(self.curves)), [len(curve.fp) for curve in self.curves]
        )
        order = np.lexsort((strategies, fn, fp))  # of equals the first way
        least = np.minimum.accumulate(fn[order])
        kept = order[np.append(True, fn[order][1:] < least[:-1])]
        return fp[kept], fn[kept], strategies[kept], thresholds[kept]

    @cached_property
    def hull(self) -> tuple[Winner, ...]:
        """The vertices of the lower convex hull over all curves, from no false positives on.

        Each has the slopes at which it wins, from 0 to infinity; of equals it is the first way's.
        """
        fp, fn, strategies, thresholds = self._lowest
        kept = hull_corners(fp.tolist(), fn.tolist())
        # Whole numbers up to the division: a slope at which two are even is told as even.
        across, down = np.diff(fp[kept]), -np.diff(fn[kept])
        even = (across * self.n_positive / (down * self.n_negative)).tolist()
        return tuple(
            Winner(
                self.curves[strategies[i]].name,
                float(thresholds[i]),
                int(fp[i]),
                int(fn[i]),
                low,
                high,
            )
            for i, low, high in zip(kept, [0.0, *even], [*even, math.inf], strict=True)
        )

    def least_fn(self, fp: int | str, curve: str | None = None) -> tuple[int, str, float]:
        """Give the fewest false negatives with at most so many false positives.

        Parameters
        ----------
        fp : int or str
            What is allowed: a count such as 5, or a share of the negatives such as "5%".
        curve : str, default=None
            The only curve to consider; all of them by default.

        Returns
        -------
        fn : int
            False negatives.
        name : str
            The way; of equals the one with fewer false positives, then the first.
        threshold : float
            A sample is called positive if its score is above.
        """
        limit = _limit("least_fn", "fp", fp, self.n_negative)
        seen = self._only("least_fn", curve)
        counts, found, strategies, thresholds = seen._lowest
        at = np.searchsorted(counts, limit, "right") - 1
        return int(found[at]), seen.curves[strategies[at]].name, float(thresholds[at])

    def least_fp(self, fn: int | str, curve: str | None = None) -> tuple[int, str, float]:
        """Give the fewest false positives with at most so many false negatives.

        Parameters
        ----------
        fn : int or str
            What is allowed: a count such as 5, or a share of the positives such as "5%".
        curve : str, default=None
            As in `least_fn`.

        Returns
        -------
        fp : int
            False positives.
        name, cut
            As in `least_fn`; of equals the way with fewer false negatives, then the first.
        """
        limit = _limit("least_fp", "fn", fn, self.n_positive)
        seen = self._only("least_fp", curve)
        found, counts, strategies, thresholds = seen._lowest
        at = np.searchsorted(-counts, -limit, "left")
        return int(found[at]), seen.curves[strategies[at]].name, float(thresholds[at])

    def winners(
        self,
        cost_ratio: float | tuple[float, float] = (0.1, 10.0),
        prior: float | tuple[float, float] | None = None,
    ) -> tuple[Winner, ...]:
        """Give the ways and cuts that cost least somewhere in a range of costs and priors.

        The expected cost is proportional to (1 − π) FPR + π r FNR, for a prior π of the positives
        and a cost ratio r: only the slope π r / (1 − π) matters.

        Parameters
        ----------
        cost_ratio : float or (float, float), default=(0.1, 10)
            What a false negative costs, in false positives: a number, or the least and the most.
        prior : float or (float, float), default=None
            The share of positives to expect, likewise. By default the share in the samples.

        Returns
        -------
        winners : tuple of Winner
            In the order of their slopes, each with its part of the range; the parts cover it. For
            one slope it is one, of equals that with fewer false positives.
        """
        return self._won(*self._slopes("winners", cost_ratio, prior, True))

    def best(self, cost_ratio: float = 1.0, prior: float | None = None) -> Winner:
        """Give the way and cut that cost least.

        Parameters
        ----------
        cost_ratio : float, default=1
            What a false negative costs, in false positives.
        prior : float, default=None
            The share of positives to expect. By default the share in the samples.

        Returns
        -------
        winner : Winner
            Of equals that with fewer false positives; `low` and `high` are the slope asked for.
        """
        return self._won(*self._slopes("best", cost_ratio, prior, False))[0]

    def _won(self, low: float, high: float) -> tuple[Winner, ...]:
        ends = [vertex.high for vertex in self.hull[:-1]]
        last = int(np.searchsorted(ends, high, "left"))
        first = int(np.searchsorted(ends, low, "right")) if low < high else last
        return tuple(
            replace(vertex, low=max(low, vertex.low), high=min(high, vertex.high))
            for vertex in self.hull[first : last + 1]
        )

    def _slopes(self, method: str, cost_ratio: Any, prior: Any, pairs: bool) -> tuple[float, ...]:
        """The slopes that a range of costs and of priors spans."""
        more = ", or two of them, the smaller first" if pairs else ""
        rule = f"cost_ratio to be a number above 0{more}"
        costs = _range(method, rule, cost_ratio, math.inf, pairs)
        if prior is None:
            return tuple(cost * self.n_positive / self.n_negative for cost in costs)
        rule = f"prior to be None, or a number between 0 and 1{more}"
        priors = _range(method, rule, prior, 1.0, pairs)
        return tuple(p / (1 - p) * cost for p, cost in zip(priors, costs, strict=True))

    def _only(self, method: str, name: str | None) -> Self:
        """The frontier of one curve, or of all."""
        named = {curve.name: curve for curve in self.curves}
        if name is not None and name not in named:
            raise_invalid(method, f"curve to be one of {', '.join(map(repr, named))}", repr(name))
        return self if name is None else replace(self, curves=(named[name],))

    def __str__(self) -> str:
        text = f"fp at most  fewest fn  way ({self.positive} is positive)"
        for share in _TOLD:
            fn, strategy, _ = self.least_fn(share)
            text += f"\n{share:>10}  {fn / self.n_positive:>9.1%}  {strategy}"
        return text


def _limit(method: str, word: str, limit: Any, n: int) -> int:
    """How many of n a limit allows; exact, as a preference would have it."""
    if isinstance(limit, int | np.integer) and not isinstance(limit, bool) and limit >= 0:
        return min(int(limit), n)
    read = _SHARE.fullmatch(limit) if isinstance(limit, str) else None
    if not read:
        raise_invalid(
            method, f"{word} to be a count such as 5 or a share such as '5%'", repr(limit)
        )
    return min(math.floor(Fraction(read[1]) * n / 100), n)


def _range(method: str, rule: str, given: Any, end: float, pairs: bool) -> tuple[float, float]:
    """A number above 0 and below the end, or two of them in order, as two."""
    two = isinstance(given, tuple | list | np.ndarray) and len(given) == 2 and pairs
    low, high = given if two else (given, given)
    numbers = all(isinstance(one, Real) for one in (low, high))
    if not numbers or not 0 < low <= high < end:
        raise_invalid(method, rule, repr(given))
    return float(low), float(high)


def offer_candidates(
    data: TuningData, start: Candidate, matrix: Confusion, strategies: Sequence[Strategy]
) -> Any:
    """What ways offer for half the false positives, and for half the false negatives.

    What scores the same for both is offered once.
    """
    told: list[Floats] = []
    for want in (f"fp <= {matrix.fp // 2}", f"fn <= {matrix.fn // 2}"):
        wanted = Preference(want)
        request = Request(wanted, data, data.objective(wanted), [start])
        for strategy in strategies:
            for candidate in strategy.candidates(request):
                if not any(np.array_equal(candidate.scores, held) for held in told):
                    told.append(candidate.scores)
                    yield candidate


def dialog_frontier(data: TuningData, candidates: Iterable[Candidate]) -> Frontier:
    """The trade-offs of all cuts of the options' scores, and of each member's alone."""
    scored: dict[str, Floats] = {}
    for candidate in candidates:
        if not any(candidate.scores is held for held in scored.values()):
            n = sum(name.split(" ")[0] == candidate.strategy for name in scored)
            scored[f"{candidate.strategy} {n + 1}" if n else candidate.strategy] = candidate.scores
    if len(data.committee.names) > 1:
        scored |= {f"member {name}": held for name, held in data.members_alone()}
    code = data.labels.index(data.positive)
    toward = {name: _toward_class(held, code) for name, held in scored.items()}
    return Frontier.of(toward, data.committee.classes[data.codes], positive=data.positive)


def _toward_class(held: Floats, code: int) -> Floats:
    """One score toward a class."""
    if held.ndim == 1:
        return held if code == 1 else -held
    others = np.delete(held, code, axis=1)
    return np.asarray(held[:, code] - others.max(axis=1))
