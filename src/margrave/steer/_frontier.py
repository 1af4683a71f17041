"""The frontier of false positives and false negatives, over all thresholds of several scores."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from numbers import Real
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from margrave import _labels
from margrave._errors import ParameterError
from margrave._json import SCHEMA_VERSION, json_ready
from margrave._typing import Flags, Floats, Ints
from margrave.confusion import Tally
from margrave.steer._tuning_data import Candidate, TuningData


@dataclass(frozen=True, eq=False)
class Curve:
    """The best trade-offs of one score: a member's, or the committee's.

    A curve has only the thresholds that no other threshold dominates: any other one has at least
    as many false positives and false negatives as one of them, and more of one kind.

    Attributes
    ----------
    name : str
        The name of the curve.
    fp : ndarray of int64
        False positives at each threshold, increasing; the first is 0.
    fn : ndarray of int64
        False negatives at each threshold, decreasing; the last is 0.
    thresholds : ndarray of float64
        A sample is predicted positive if its score is above the threshold. Thresholds lie halfway
        between neighbouring scores, or 1 beyond the largest or the smallest.
    resolution : tuple of float
        The largest fractions of the negatives and of the positives between neighbouring thresholds
        that are not listed; (0, 0) if all are. Only curves from :func:`margrave.scale.frontier`
        leave thresholds out, if there are too many different scores. Every listed count is exact.
    steps : tuple of int
        The steps of a dialog at which the strategy "move" tries this score. Only curves from
        :meth:`Dialog.frontier` have any; those of the members have none.

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
    steps: tuple[int, ...] = ()


def make_curve(name: str, values: ArrayLike, positive: Flags) -> Curve:
    """Try a threshold between any two different scores, and keep those that none dominates."""
    scores = np.asarray(values, dtype=np.float64)
    if scores.shape != positive.shape:
        rule = f"a score for each of {len(positive)} samples"
        raise_invalid("Frontier.of", rule, f"shape {scores.shape} for {name!r}")
    check_finite(scores, name, "Frontier.of")
    return best_thresholds(name, Tally.of(scores, positive))


def best_thresholds(name: str, tally: Tally) -> Curve:
    """Make the curve of the thresholds of a tally that no other threshold dominates."""
    under = tally.under[::-1]
    fp, fn = under[0, 0] - under[:, 0], under[:, 1]
    # Along the thresholds fp never falls and fn never rises: if any threshold dominates another,
    # a neighbour does.
    kept = np.append(fp[:-1] < fp[1:], True) & np.append(True, fn[1:] < fn[:-1])
    parts = fp[kept], fn[kept], tally.thresholds[::-1][kept]
    for part in parts:
        part.flags.writeable = False
    return Curve(name, *parts, tally.resolution)


def check_finite(scores: Floats, name: str, owner: str) -> None:
    """Raise an error unless all scores are finite."""
    if not np.isfinite(scores).all():
        raise_invalid(owner, "finite scores", f"NaN or infinity for {name!r}")


def hull_corners(x: list[int], y: list[int]) -> list[int]:
    """Find the positions of the corners of the lower convex hull of a falling staircase."""
    kept: list[int] = []
    for i, (u, v) in enumerate(zip(x, y, strict=True)):
        while len(kept) > 1:
            (o, p), (a, b) = ((x[k], y[k]) for k in kept[-2:])
            if (a - o) * (v - p) > (b - p) * (u - o):  # a turn to the left
                break
            kept.pop()
        kept.append(i)
    return kept


def split_labels(y: ArrayLike, positive: Any, owner: str) -> tuple[Any, list[Any], Flags]:
    """Return the positive label, the other labels, and which samples are positive."""
    labels = _labels.natural(y)
    if labels.ndim != 1:
        raise_invalid(owner, "y with one label for each sample", f"shape {labels.shape}")
    classes = _labels.union([(f"{owner}, y", labels)])
    known = classes.tolist()
    if len(known) < 2 or (positive is None and len(known) > 2):
        rule = "y with two classes" + ", or positive=" * (len(known) > 2)
        raise_invalid(owner, rule, f"{len(known)}: {_labels.shown(classes)}")
    positive = known[1] if positive is None else _labels.plain(positive)
    if positive not in known:
        raise_invalid(owner, f"positive to be one of {_labels.shown(classes)}", repr(positive))
    code = known.index(positive)
    is_positive: Flags = _labels.encode(labels, classes, f"{owner}, y") == code
    return known.pop(code), known, is_positive


def raise_invalid(owner: str, rule: str, got: str) -> NoReturn:
    """Raise an error that says what a function needs and what it received."""
    raise ValueError(f"{owner} needs {rule}; got {got}.")


_PRINTED = ("0.5%", "1%", "2%", "5%", "10%")  # of the negatives, in the printed table
_PERCENTAGE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*")


@dataclass(frozen=True)
class Winner:
    """A curve and its threshold, with the range of slopes for which they have the lowest cost.

    The slope is π r / (1 − π), for a prior π of the positives and a false negative that costs r
    times as much as a false positive: how many points of false positive rate one point of false
    negative rate is worth.

    Attributes
    ----------
    name : str
        The name of the curve.
    threshold : float
        A sample is predicted positive if its score is above the threshold.
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
    """The trade-offs that several scores can reach on a set of samples.

    Make a frontier with `of`. Its counts are optimistic: the thresholds are chosen on the same
    samples. A guarantee for new samples needs a certification set that no choice has used.

    Attributes
    ----------
    curves : tuple of Curve
        The curve of each score.
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
    >>> frontier.plot().ax_.get_xlabel()
    'false positives (of 4 ham)'
    >>> print(frontier)
    fp at most  fewest fn  curve (spam is positive)
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
        """Compute the curve of each score over all its thresholds.

        Parameters
        ----------
        scores : mapping of str to array-like of shape (n_samples,)
            For each curve, a score per sample; larger means more positive.
        y : array-like of shape (n_samples,)
            Labels of two classes; of more only with `positive`.
        positive : label, default=None
            The positive class; the others are negative. By default the larger of two labels.

        Returns
        -------
        frontier : Frontier
            The trade-offs on these samples.
        """
        if not isinstance(scores, Mapping) or not scores:
            got = "none" if isinstance(scores, Mapping) else type(scores).__name__
            raise_invalid(
                "Frontier.of", "scores to be a mapping of at least one name to its scores", got
            )
        label, others, is_positive = split_labels(y, positive, "Frontier.of")
        curves = tuple(make_curve(str(name), own, is_positive) for name, own in scores.items())
        negative = others[0] if len(others) == 1 else None
        return cls(curves, int(is_positive.sum()), int((~is_positive).sum()), label, negative)

    @property
    def resolution(self) -> tuple[float, float]:
        """The coarsest resolution of the curves (see `Curve`)."""
        fp, fn = zip(*(curve.resolution for curve in self.curves), strict=True)
        return max(fp), max(fn)

    @cached_property
    def _lowest(self) -> tuple[Ints, Ints, Ints, Floats]:
        """The staircase under all curves: fp, fn, position of the curve, and threshold."""
        parts = [(curve.fp, curve.fn, curve.thresholds) for curve in self.curves]
        fp, fn, thresholds = map(np.concatenate, zip(*parts, strict=True))
        owners = np.repeat(np.arange(len(self.curves)), [len(curve.fp) for curve in self.curves])
        order = np.lexsort((owners, fn, fp))  # the first curve, if several are equal
        least = np.minimum.accumulate(fn[order])
        kept = order[np.append(True, fn[order][1:] < least[:-1])]
        return fp[kept], fn[kept], owners[kept], thresholds[kept]

    @cached_property
    def hull(self) -> tuple[Winner, ...]:
        """The vertices of the lower convex hull of all curves, from 0 false positives on.

        Each has the range of slopes at which it wins, from 0 to infinity. If curves are equal, the
        vertex belongs to the first one.
        """
        fp, fn, owners, thresholds = self._lowest
        kept = hull_corners(fp.tolist(), fn.tolist())
        # Integers up to the division, so that slopes at which two vertices tie compare as equal.
        across, down = np.diff(fp[kept]), -np.diff(fn[kept])
        even = (across * self.n_positive / (down * self.n_negative)).tolist()
        return tuple(
            Winner(
                self.curves[owners[i]].name,
                float(thresholds[i]),
                int(fp[i]),
                int(fn[i]),
                low,
                high,
            )
            for i, low, high in zip(kept, [0.0, *even], [*even, math.inf], strict=True)
        )

    def least_fn(self, fp: int | str, curve: str | None = None) -> tuple[int, str, float]:
        """Find the fewest false negatives with a limited number of false positives.

        Parameters
        ----------
        fp : int or str
            The limit: a count such as 5, or a percentage of the negatives such as "5%".
        curve : str, default=None
            The only curve to consider; all of them by default.

        Returns
        -------
        fn : int
            False negatives.
        name : str
            The curve; if several are equal, the one with fewer false positives, then the first.
        threshold : float
            A sample is predicted positive if its score is above the threshold.
        """
        limit = _parse_limit("least_fn", "fp", fp, self.n_negative)
        chosen = self._select("least_fn", curve)
        fps, fns, owners, thresholds = chosen._lowest
        at = np.searchsorted(fps, limit, "right") - 1
        return int(fns[at]), chosen.curves[owners[at]].name, float(thresholds[at])

    def least_fp(self, fn: int | str, curve: str | None = None) -> tuple[int, str, float]:
        """Find the fewest false positives with a limited number of false negatives.

        Parameters
        ----------
        fn : int or str
            The limit: a count such as 5, or a percentage of the positives such as "5%".
        curve : str, default=None
            As in `least_fn`.

        Returns
        -------
        fp : int
            False positives.
        name : str
            The curve; if several are equal, the one with fewer false negatives, then the first.
        threshold : float
            As in `least_fn`.
        """
        limit = _parse_limit("least_fp", "fn", fn, self.n_positive)
        chosen = self._select("least_fp", curve)
        fps, fns, owners, thresholds = chosen._lowest
        at = np.searchsorted(-fns, -limit, "left")
        return int(fps[at]), chosen.curves[owners[at]].name, float(thresholds[at])

    def winners(
        self,
        cost_ratio: float | tuple[float, float] = (0.1, 10.0),
        prior: float | tuple[float, float] | None = None,
    ) -> tuple[Winner, ...]:
        """Find the curves and thresholds that cost least in a range of costs and priors.

        The expected cost is proportional to (1 − π) FPR + π r FNR, for a prior π of the positives
        and a cost ratio r: only the slope π r / (1 − π) matters.

        Parameters
        ----------
        cost_ratio : float or (float, float), default=(0.1, 10)
            The cost of a false negative, in false positives: a number, or a range.
        prior : float or (float, float), default=None
            The expected proportion of positives, likewise. By default that of the samples.

        Returns
        -------
        winners : tuple of Winner
            Ordered by slope, each with its part of the range; the parts cover the range. For a
            single slope there is one winner; if two tie, the one with fewer false positives.
        """
        return self._winners(*self._slopes("winners", cost_ratio, prior, True))

    def best(self, cost_ratio: float = 1.0, prior: float | None = None) -> Winner:
        """Find the curve and threshold that cost least.

        Parameters
        ----------
        cost_ratio : float, default=1
            The cost of a false negative, in false positives.
        prior : float, default=None
            The expected proportion of positives. By default that of the samples.

        Returns
        -------
        winner : Winner
            If two tie, the one with fewer false positives. Its `low` and `high` are both the slope.
        """
        return self._winners(*self._slopes("best", cost_ratio, prior, False))[0]

    def _winners(self, low: float, high: float) -> tuple[Winner, ...]:
        """Restrict the hull to a range of slopes."""
        ends = [vertex.high for vertex in self.hull[:-1]]
        last = int(np.searchsorted(ends, high, "left"))
        first = int(np.searchsorted(ends, low, "right")) if low < high else last
        return tuple(
            replace(vertex, low=max(low, vertex.low), high=min(high, vertex.high))
            for vertex in self.hull[first : last + 1]
        )

    def _slopes(self, method: str, cost_ratio: Any, prior: Any, pairs: bool) -> tuple[float, ...]:
        """Compute the range of slopes of a range of costs and of priors."""
        more = ", or two of them, the smaller first" if pairs else ""
        allowed = f"a number above 0{more}"
        costs = _check_range(method, "cost_ratio", allowed, cost_ratio, math.inf, pairs)
        if prior is None:
            return tuple(cost * self.n_positive / self.n_negative for cost in costs)
        allowed = f"None, or a number between 0 and 1{more}"
        priors = _check_range(method, "prior", allowed, prior, 1.0, pairs)
        return tuple(p / (1 - p) * cost for p, cost in zip(priors, costs, strict=True))

    def _select(self, method: str, name: str | None) -> Self:
        """Return the frontier of one curve, or of all curves if the name is None."""
        named = {curve.name: curve for curve in self.curves}
        if name is not None and name not in named:
            raise_invalid(
                f"Frontier.{method}",
                f"curve to be one of {', '.join(map(repr, named))}",
                repr(name),
            )
        return self if name is None else replace(self, curves=(named[name],))

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the curves and their convex hull.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw on; those of a new figure if None.
        **kwargs : dict
            Passed to :meth:`FrontierDisplay.from_frontier`, such as ``log=True``.

        Returns
        -------
        display : FrontierDisplay
            The display, drawn.
        """
        display = import_module("margrave.steer._frontier_display").FrontierDisplay
        return display.from_frontier(self, ax, **kwargs)

    def to_dict(self) -> dict[str, Any]:
        """Describe the frontier in values that JSON can hold.

        Returns
        -------
        dict
            With the keys ``schema_version``, ``positive``, ``negative``, ``n_positive`` and
            ``n_negative``; ``curves``, a dictionary for each curve with the keys name, fp, fn,
            thresholds and steps; ``best``, the trade-offs that no other one dominates, each with
            the keys name, threshold, fp and fn; and ``hull``, each vertex with the keys of a
            `Winner`, whose ``high`` is None if it is infinite.
        """
        names = [curve.name for curve in self.curves]
        columns = [column.tolist() for column in self._lowest]
        return {
            "schema_version": SCHEMA_VERSION,
            "positive": json_ready(self.positive),
            "negative": json_ready(self.negative),
            "n_positive": self.n_positive,
            "n_negative": self.n_negative,
            "curves": [
                {
                    "name": curve.name,
                    "fp": curve.fp.tolist(),
                    "fn": curve.fn.tolist(),
                    "thresholds": curve.thresholds.tolist(),
                    "steps": list(curve.steps),
                }
                for curve in self.curves
            ],
            "best": [
                {"name": names[owner], "threshold": threshold, "fp": fp, "fn": fn}
                for fp, fn, owner, threshold in zip(*columns, strict=True)
            ],
            "hull": [
                asdict(vertex) | {"high": None if math.isinf(vertex.high) else vertex.high}
                for vertex in self.hull
            ],
        }

    def __str__(self) -> str:
        text = f"fp at most  fewest fn  curve ({self.positive} is positive)"
        for limit in _PRINTED:
            fn, name, _ = self.least_fn(limit)
            text += f"\n{limit:>10}  {fn / self.n_positive:>9.1%}  {name}"
        return text


def _parse_limit(method: str, parameter: str, limit: Any, n: int) -> int:
    """Convert a limit to a count of n samples, exactly, as a preference does."""
    if isinstance(limit, int | np.integer) and not isinstance(limit, bool) and limit >= 0:
        return min(int(limit), n)
    match = _PERCENTAGE.fullmatch(limit) if isinstance(limit, str) else None
    if not match:
        rule = f"{parameter} to be a count such as 5 or a percentage such as '5%'"
        raise_invalid(f"Frontier.{method}", rule, repr(limit))
    return min(math.floor(Fraction(match[1]) * n / 100), n)


def _check_range(
    method: str, parameter: str, allowed: str, value: Any, end: float, pairs: bool
) -> tuple[float, float]:
    """Check a number above 0 and below the end, or two of them in order; return two."""
    two = isinstance(value, tuple | list | np.ndarray) and len(value) == 2 and pairs
    low, high = value if two else (value, value)
    numbers = isinstance(low, Real) and isinstance(high, Real)
    if not numbers or not 0 < low <= high < end:
        raise ParameterError.of(f"Frontier.{method}", parameter, allowed, value)
    return float(low), float(high)


def dialog_frontier(
    data: TuningData,
    candidates: Iterable[Candidate],
    known: Sequence[Sequence[Candidate]],
    positive: Any,
) -> Frontier:
    """Make the frontier of a class: of the candidates' scores, and of each member alone.

    `known` has the candidates whose scores a request at each step tries.
    """
    by_name: dict[str, Floats] = {}
    for candidate in candidates:
        if not any(candidate.scores is scores for scores in by_name.values()):
            n = sum(name.split(" ")[0] == candidate.strategy for name in by_name)
            by_name[f"{candidate.strategy} {n + 1}" if n else candidate.strategy] = candidate.scores
    if len(data.committee.names) > 1:
        by_name |= {f"member {name}": scores for name, scores in data.members_alone()}
    code = data.labels.index(positive)
    toward = {name: _score_of_class(scores, code) for name, scores in by_name.items()}
    frontier = Frontier.of(toward, data.committee.classes[data.codes], positive=positive)
    curves = tuple(
        replace(curve, steps=_steps_with(by_name[curve.name], known)) for curve in frontier.curves
    )
    return replace(frontier, curves=curves)


def _steps_with(scores: Floats, known: Sequence[Sequence[Candidate]]) -> tuple[int, ...]:
    """List the steps at which a request tries these scores."""
    return tuple(
        step for step, tried in enumerate(known) if any(one.scores is scores for one in tried)
    )


def _score_of_class(scores: Floats, code: int) -> Floats:
    """Compute one score that is larger for a class: its lead over the other classes."""
    if scores.ndim == 1:
        return scores if code == 1 else -scores
    others = np.delete(scores, code, axis=1)
    return np.asarray(scores[:, code] - others.max(axis=1))
