"""Weights of trained classifiers that rank positives above negatives with the largest margin.

Marrocco et al. (2010), section 3, for any number of samples, and with the slack that their section
5 proposes: ν = 0 is the paper's linear program, ν > 0 maximizes the mean margin of the worst
fraction ν of the crucial pairs, and ν = 1 the mean margin of all pairs, which is linear in the
weights and selects the member with the largest difference of class means. Over the unit sphere
instead of the simplex, ν = 1 is the ranker of Pelckmans et al. (2008) for two classes.

`rank_margin_weights` checks its arguments and calls `maximize_margin`. That search sees the samples
only through a `MarginOracle`: `ArrayOracle` for samples in memory, another one in `margrave.scale`.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from margrave import _labels
from margrave._errors import ParameterError
from margrave._typing import Flags, Floats, Ints
from margrave._validation import is_count, is_number, read_sample_weight
from margrave.fuse._solvers import Extremes, Solution, hard_margin, soft_margin
from margrave.fuse._tail import (
    WeightedScores,
    binned_tail,
    exact_tail,
    fraction_up_to,
    hardest_weights,
)
from margrave.scores import Scores

_OWNER = "rank_margin_weights"
# Bins are narrower than the tolerance by this factor. Value and plane each have an error of at most
# a bin, which must be less than the level (2 / BINS_PER_TOL < LEVEL), else the search could return
# to the same weights.
BINS_PER_TOL = 6
# Bins are used for at least this many times more samples.
_MIN_SAMPLES_PER_BIN = 4
SHOWN_PAIRS = 100
"""The most active pairs that a result lists."""
SAME, ROUNDING = 1e-9, 1e-12
"""Margins this close are equal: as optima, and as sums of a few products."""
# Smaller scores are scaled up, since the solver's tolerances are absolute.
_SMALL = 0.1


@dataclass(frozen=True, eq=False)
class RankMarginWeights:
    """The weights of a committee, their margin, and how far it is from the optimum.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        The members' weights; none is negative, and they sum to 1.
    nu : float
        The fraction ν of the pairs.
    margin : float
        The objective: the mean margin of the worst fraction `nu` of the pairs, or the margin of
        the worst pair if `nu` is 0.
    rho : float
        The largest margin among those pairs; with ``nu=0`` the rank margin itself.
    gap : float
        No weights on members with varying scores have a `margin` that is larger by more than this.
        The bound comes from feasible multipliers of the linear program, not from the solver.
    n_iter : int
        Number of iterations.
    n_active : int
        Number of pairs with a margin of at most `rho`.
    active : ndarray of int, shape (m, 2)
        The worst of these pairs, at most 100, worst first: row of the positive, row of the
        negative.
    tie_nu : float or None
        If all weights have the same worst margin, the fraction that selects among them: twice that
        of the pairs with this margin.
    n_passes : int or None
        Number of passes over the samples, if they were read in blocks; None for samples in memory.

    Examples
    --------
    >>> from margrave.fuse import rank_margin_weights
    >>> scores = [[0.9, 0.2], [-0.2, 0.6], [0.1, -0.7], [-0.8, 0.1]]
    >>> result = rank_margin_weights(scores, [1, 1, 0, 0], nu=0.5)
    >>> result.weights.round(2), round(result.margin, 2)
    (array([0.37, 0.63]), 0.62)
    >>> result.gap <= 1e-4
    True
    >>> result.active[0]
    array([1, 3])
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


def rank_margin_weights(
    scores: Scores | ArrayLike,
    y: ArrayLike,
    nu: float = 0.0,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    *,
    positive: Any = None,
    negatives: str | None = None,
) -> RankMarginWeights:
    """Compute the weights of classifiers that rank positives above negatives by the largest margin.

    Parameters
    ----------
    scores : Scores or array-like of shape (n_samples, K)
        The members' scores in [-1, 1], larger for the positive class.
    y : array-like of shape (n_samples,)
        Labels, with two classes unless `positive` is set.
    nu : float in [0, 1], default=0.0
        The fraction of the crucial pairs, the worst ones, whose mean margin is maximized. 0 is the
        worst pair alone, the paper's program, which one mislabelled sample can determine; 1 is the
        mean of all pairs, which selects a single member.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples within their class. With ``nu=0`` only whether a weight is 0 matters,
        unless there is a tie.
    tol : float, default=1e-4
        The search stops when the gap to the optimum is at most this.
    max_iter : int, default=200
        Maximum number of iterations; if it is reached, there is a warning, and `gap` has the
        distance from the optimum.
    positive : label, optional
        The positive class; all others are negative. By default the larger of two labels.
    negatives : str, optional
        ``"hardest 10%"`` uses only pairs with that fraction of the negatives, those with the
        highest scores. It suits users who can afford few false positives and do not need the
        other negatives in order.

    Returns
    -------
    RankMarginWeights

    Notes
    -----
    A member with constant scores gets the weight 0, with a warning: its margins are all 0, which is
    more than any other member has on hard pairs, and it ranks nothing. For the same reason members
    should be on one scale, as in :class:`RankMarginClassifier`: a small `nu` favours members whose
    scores vary little. Members with the same scores divide their weight arbitrarily.

    The time is O(n K) for ``nu=0`` and a gap that is not tiny, else O(n (K + log n)) for each
    iteration. A handful of iterations is enough, and their number hardly depends on n.

    :func:`margrave.scale.rank_margin_weights` takes scores that are larger than memory.

    Examples
    --------
    >>> from margrave.fuse import rank_margin_weights
    >>> scores = [[0.9, 0.2], [-0.2, 0.6], [0.1, -0.7], [-0.8, 0.1]]
    >>> result = rank_margin_weights(scores, [1, 1, 0, 0])
    >>> result.weights.round(3), round(result.rho, 3)
    (array([0.471, 0.529]), 0.547)
    >>> result.active
    array([[1, 2],
           [1, 3]])
    """
    settings = MarginSettings.checked(nu, negatives, tol, max_iter)
    labels = _labels.natural(y)
    classes = _labels.union([("y", labels)])
    if isinstance(scores, Scores):
        _labels.encode(classes, scores.classes, f"{_OWNER}, y")
        classes = scores.classes
    positive = find_positive(classes, positive)
    is_positive: Flags = labels == positive
    values, names = _check_scores(scores, positive)
    if is_positive.shape != (len(values),):
        raise ValueError(
            f"{_OWNER} needs y with a label for each of {len(values)} samples; "
            f"got shape {is_positive.shape}."
        )
    weight = None
    if sample_weight is not None:
        weight = read_sample_weight(sample_weight, len(values), _OWNER)
    oracle = ArrayOracle.of(values, is_positive, weight, settings)
    check_both_classes(positive, len(oracle.positive_rows), len(oracle.negative_rows))
    check_constant_members(oracle.score_range, names, stacklevel=3)
    result = maximize_margin(oracle)
    warn_not_converged(_OWNER, result, settings.tol, "raise max_iter or tol", stacklevel=3)
    return result


# Checks, which margrave.scale uses too


@dataclass(frozen=True)
class MarginSettings:
    """The objective of the search, and when it stops.

    Attributes
    ----------
    nu : float in [0, 1]
        The fraction of the pairs, the worst ones, whose mean margin is maximized.
    hardest : float in (0, 1]
        The fraction of the negatives, those with the highest scores, whose pairs count.
    tol : float
        The search stops when the gap to the optimum is at most this.
    max_iter : int
        Maximum number of iterations.
    """

    nu: float
    hardest: float
    tol: float
    max_iter: int

    @classmethod
    def checked(cls, nu: Any, negatives: Any, tol: Any, max_iter: Any) -> MarginSettings:
        """Check the parameters of `rank_margin_weights`."""
        if not is_number(nu) or not 0 <= nu <= 1:
            raise ParameterError.of(_OWNER, "nu", "a fraction of the pairs in [0, 1]", nu)
        if not is_number(tol) or not 0 < tol < np.inf:
            raise ParameterError.of(_OWNER, "tol", "a finite number above 0", tol)
        if not is_count(max_iter):
            raise ParameterError.of(_OWNER, "max_iter", "an integer of at least 1", max_iter)
        return cls(nu, hardest_fraction(negatives, _OWNER), tol, max_iter)


def hardest_fraction(negatives: Any, owner: str) -> float:
    """Return the fraction in ``"hardest 10%"``; 1 for None."""
    if negatives is None:
        return 1.0
    match = re.fullmatch(r"\s*hardest\s+(\d+(?:\.\d*)?|\.\d+)\s*%\s*", str(negatives))
    fraction = float(match[1]) / 100 if match else 0.0
    if not 0 < fraction <= 1:
        raise ParameterError.of(owner, "negatives", "None or like 'hardest 10%'", negatives)
    return fraction


def find_positive(classes: NDArray[Any], positive: Any) -> Any:
    """Return the positive class: the parameter, or the second of two classes."""
    if positive is not None:
        return positive
    if len(classes) != 2:
        raise ValueError(
            f"{_OWNER} needs y with two classes, or positive=; got {len(classes)}: "
            f"{_labels.shown(classes)}."
        )
    return classes[1]


def check_table(shape: tuple[float, ...]) -> None:
    """Check that scores have a row for each sample and a column for each member."""
    if len(shape) != 2 or 0 in shape:
        raise ValueError(
            f"{_OWNER} needs scores with a row per sample and a column per member; "
            f"got shape {shape}."
        )


def check_in_range(low: float, high: float) -> None:
    """Check that scores, from `low` to `high`, are finite and in [-1, 1]."""
    if not np.isfinite(low + high):
        raise ValueError(f"{_OWNER} needs finite scores; got NaN or infinity.")
    if low < -1 or high > 1:
        raise ValueError(
            f"{_OWNER} needs scores in [-1, 1]; got {low:g} to {high:g}. "
            "Scores.from_arrays(decision=...) or (proba=...) converts them."
        )


def check_both_classes(positive: Any, n_positives: int, n_negatives: int) -> None:
    """Check that both classes have samples with a weight above 0."""
    for count, which in ((n_positives, "this"), (n_negatives, "any other")):
        if not count:
            raise ValueError(
                f"{_OWNER} needs samples of the class positive={_labels.plain(positive)!r} and of "
                f"another class; got none of {which} class. "
                "A sample with a sample_weight of 0 does not count."
            )


def check_constant_members(score_range: ScoreRange, names: list[str], stacklevel: int) -> None:
    """Warn of members with constant scores; raise an error if all have them."""
    constant = score_range.constant
    if constant.all():
        raise ValueError(
            f"{_OWNER} needs a member whose scores vary; got members with constant scores only."
        )
    if constant.any():
        listed = ", ".join(name for name, one in zip(names, constant, strict=True) if one)
        warnings.warn(
            f"{_OWNER}: these members have constant scores and get the weight 0: {listed}.",
            UserWarning,
            stacklevel=stacklevel,
        )


def warn_not_converged(
    owner: str, result: RankMarginWeights, tol: float, advice: str, stacklevel: int
) -> None:
    """Warn if the search stopped with a gap above the tolerance."""
    if result.gap > tol:
        warnings.warn(
            f"{owner} stopped after {result.n_iter} iterations with a gap of {result.gap:.2g}, "
            f"above tol={tol:g}; {advice}.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def _check_scores(scores: Scores | ArrayLike, positive: Any) -> tuple[Floats, list[str]]:
    """Return the members' scores for the positive class, and the members' names."""
    if isinstance(scores, Scores):
        return scores.toward(positive), list(scores.members)
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{_OWNER} needs scores that are numbers; got {error}.") from error
    check_table(values.shape)
    check_in_range(float(values.min()), float(values.max()))
    return values, [str(name) for name in getattr(scores, "columns", range(values.shape[1]))]


# The search


@dataclass(frozen=True, eq=False)
class ScoreRange:
    """The smallest and the largest score of each member, over samples with weight.

    The search uses the members with varying scores only, and scales small scores up. The methods
    convert from the members' scores to those of the search, and back.

    Attributes
    ----------
    low, high : ndarray of shape (K,)
        The range of each member.
    """

    low: Floats
    high: Floats

    @property
    def constant(self) -> Flags:
        """Which members have constant scores."""
        return np.asarray(self.low == self.high)

    @property
    def varying(self) -> Ints:
        """Positions of the members in the search: those with varying scores, or all if none is."""
        varying = np.flatnonzero(self.low < self.high)
        return varying if len(varying) else np.arange(len(self.low))

    @property
    def unit(self) -> float:
        """The unit of the scores in the search: 1, or the largest size if that is small."""
        size = float(max(-self.low[self.varying].min(), self.high[self.varying].max()))
        return size if 0 < size < _SMALL else 1.0

    def reduce(self, values: Floats) -> Floats:
        """Return values of the members in the search, in its unit."""
        return np.asarray(values[..., self.varying] / self.unit)

    def expand(self, weights: Floats) -> Floats:
        """Return weights for all members."""
        expanded = np.zeros((*weights.shape[:-1], len(self.low)))
        expanded[..., self.varying] = weights
        return expanded


@dataclass(frozen=True, eq=False)
class ActivePairs:
    """The pairs that determine the margin under some weights.

    Attributes
    ----------
    margin : float
        The objective.
    rho : float
        The largest margin among the pairs.
    n_pairs : int
        Number of pairs with a margin of at most `rho`.
    rows : ndarray of int, shape (m, 2)
        The worst of them, worst first.
    """

    margin: float
    rho: float
    n_pairs: int
    rows: Ints


class MarginOracle(Protocol):
    """The search's view of the samples of two classes, wherever they are stored.

    Margins are those of the members in the search, in its unit (`ScoreRange`).
    """

    @property
    def settings(self) -> MarginSettings:
        """The objective, with `tol` in the unit of the search."""

    @property
    def score_range(self) -> ScoreRange:
        """The range of the members' scores."""

    @property
    def min_pair_weight(self) -> float:
        """The smallest weight of a pair, as a fraction of all pairs."""

    @property
    def halfway(self) -> bool:
        """Whether `extremes` evaluates two weights in little more time than one."""

    def mean_margins(self) -> Floats:
        """Return the mean margin of each member alone."""

    def smallest_margins(self) -> Floats:
        """Return the smallest margin of each member alone."""

    def initial_rows(self) -> tuple[Floats, Floats]:
        """Return some low positives and some high negatives."""

    def extremes(self, W: Floats) -> Extremes:
        """Return the worst pair under each of some weights, shape (n_weights, K)."""

    def tail(self, nu: float, weights: Floats) -> tuple[float, Floats]:
        """Return a lower bound of the mean margin of the worst fraction ν, and a supergradient."""

    def fraction_up_to(self, margin: float) -> float:
        """Return the fraction of the pairs with at most this margin under equal weights."""

    def active_pairs(self, nu: float, weights: Floats) -> ActivePairs:
        """Return the pairs that determine the margin; for ``nu=0`` those of the worst margin."""


def maximize_margin(oracle: MarginOracle) -> RankMarginWeights:
    """Search for the weights with the largest margin; if all members are constant, equal ones."""
    settings, n_members = oracle.settings, len(oracle.score_range.varying)
    if n_members == 1:
        return _result(oracle, np.ones(1))
    if settings.nu == 1 and settings.hardest == 1:
        means = oracle.mean_margins()
        best = (means >= means.max() - SAME).astype(np.float64)
        return _result(oracle, best / best.sum())
    if settings.nu > 0:
        solution = _maximize_tail(oracle, max(settings.nu, oracle.min_pair_weight))
        return _result(oracle, solution.weights, solution)
    solution = hard_margin(
        *oracle.initial_rows(),
        oracle.extremes,
        settings.tol,
        settings.max_iter,
        halfway=oracle.halfway,
    )
    if oracle.smallest_margins().min() < solution.value - SAME:
        return _result(oracle, solution.weights, solution)
    # A concave function with the same value at every vertex is constant: use more pairs than the
    # worst.
    tie_nu = min(2 * oracle.fraction_up_to(solution.value + SAME), 1.0)
    settled = _maximize_tail(oracle, tie_nu)
    solution = replace(solution, n_iter=solution.n_iter + settled.n_iter)
    return replace(_result(oracle, settled.weights, solution), tie_nu=tie_nu)


def _maximize_tail(oracle: MarginOracle, nu: float) -> Solution:
    n_members = len(oracle.score_range.varying)
    settings = oracle.settings
    return soft_margin(partial(oracle.tail, nu), n_members, settings.tol, settings.max_iter)


def _result(
    oracle: MarginOracle, weights: Floats, solution: Solution | None = None
) -> RankMarginWeights:
    """Describe weights, for all members and in the unit of their scores; optimal if no solution."""
    nu, score_range = float(oracle.settings.nu), oracle.score_range
    pairs = oracle.active_pairs(nu and max(nu, oracle.min_pair_weight), weights)
    gap = 0.0 if solution is None else max(solution.bound - pairs.margin, 0.0)
    return RankMarginWeights(
        weights=score_range.expand(weights),
        nu=nu,
        margin=pairs.margin * score_range.unit,
        rho=pairs.rho * score_range.unit,
        gap=gap * score_range.unit,
        n_iter=0 if solution is None else solution.n_iter,
        n_active=pairs.n_pairs,
        active=pairs.rows,
    )


# Samples in memory


@dataclass(frozen=True, eq=False)
class ArrayOracle:
    """A `MarginOracle` for arrays in memory.

    Attributes
    ----------
    settings, score_range
        As in `MarginOracle`.
    P, N : ndarray of shape (N⁺, K) and (N⁻, K)
        Scores of the positives and of the negatives with weight.
    a, b : ndarray of shape (N⁺,) and (N⁻,)
        Their weights, which sum to 1 in each class.
    positive_rows, negative_rows : ndarray of int
        Their rows.
    """

    settings: MarginSettings
    score_range: ScoreRange
    P: Floats
    N: Floats
    a: Floats
    b: Floats
    positive_rows: Ints
    negative_rows: Ints

    @classmethod
    def of(
        cls, values: Floats, positive: Flags, weight: Floats | None, settings: MarginSettings
    ) -> ArrayOracle:
        """Split the samples with weight into both classes.

        Parameters
        ----------
        values : ndarray of shape (n, K)
            Scores in [-1, 1].
        positive : ndarray of bool, shape (n,)
            The positive samples.
        weight : ndarray of shape (n,), optional
            Sample weights.
        settings : MarginSettings
            The objective.
        """
        rows = [
            np.flatnonzero(chosen if weight is None else chosen & (weight > 0))
            for chosen in (positive, ~positive)
        ]
        used = values if weight is None or weight.all() else values[weight > 0]
        score_range = ScoreRange(used.min(axis=0), used.max(axis=0))
        varying, unit = score_range.varying, score_range.unit
        P, N = (np.asfortranarray(values[at]) for at in rows)
        if len(varying) < values.shape[1]:
            P, N = P[:, varying], N[:, varying]
        if unit < 1:
            P, N = P / unit, N / unit
        a, b = (_class_weights(weight, at) for at in rows)
        in_unit = replace(settings, tol=settings.tol / unit)
        return cls(in_unit, score_range, P, N, a, b, *rows)

    @property
    def min_pair_weight(self) -> float:
        """The smallest weight of a pair."""
        return float(self.a.min() * self.b.min())

    @property
    def halfway(self) -> bool:
        """In memory the time is proportional to the number of weights."""
        return False

    def mean_margins(self) -> Floats:
        """Return the mean margin of each member alone."""
        return np.asarray(self.a @ self.P - self.b @ self.N)

    def smallest_margins(self) -> Floats:
        """Return the smallest margin of each member alone."""
        return np.asarray(self.P.min(axis=0) - self.N.max(axis=0))

    def initial_rows(self) -> tuple[Floats, Floats]:
        """Return the lowest positive and the highest negative of each member."""
        return self.P[np.argmin(self.P, axis=0)], self.N[np.argmax(self.N, axis=0)]

    def extremes(self, W: Floats) -> Extremes:
        """Return the worst pair under one weighting."""
        s, t = self.P @ W[0], self.N @ W[0]
        i, k = int(s.argmin()), int(t.argmax())
        low, high = self.P[i : i + 1], self.N[k : k + 1]
        return Extremes(s[[i]] - t[[k]], low, high, low, high)

    def tail(self, nu: float, weights: Floats) -> tuple[float, Floats]:
        """Return value and supergradient of φ; from bins if that is faster."""
        width, hardest = self.settings.tol / BINS_PER_TOL, self.settings.hardest
        if _MIN_SAMPLES_PER_BIN * 2 / width < len(self.P) + len(self.N):
            tail = binned_tail(*self._scores(weights), nu, hardest, width=width)
        else:
            width, tail = 0.0, exact_tail(*self._scores(weights), nu, hardest)
        return tail.mean - width, tail.positive_mass @ self.P - tail.negative_mass @ self.N

    def fraction_up_to(self, margin: float) -> float:
        """Return the fraction of the pairs with at most this margin under equal weights."""
        n_members = self.P.shape[1]
        equal = np.full(n_members, 1 / n_members)
        return fraction_up_to(margin, *self._scores(equal), self.settings.hardest)

    def active_pairs(self, nu: float, weights: Floats) -> ActivePairs:
        """Return the pairs that determine the margin, without bins."""
        positives, negatives = self._scores(weights)
        s, t = positives.scores, negatives.scores
        kept = np.arange(len(t))
        if nu == 0:
            margin = rho = float(s.min() - t.max())
            n_pairs = _count_up_to(rho + ROUNDING, s, t)
        else:
            hardest = self.settings.hardest
            tail = exact_tail(positives, negatives, nu, hardest)
            margin, rho, n_pairs = tail.mean, tail.rho, tail.n_pairs
            if hardest < 1:
                kept = np.flatnonzero(hardest_weights(negatives, hardest))
        i, k = worst_pairs(s, t[kept], min(n_pairs, SHOWN_PAIRS)).T
        rows = np.column_stack([self.positive_rows[i], self.negative_rows[kept[k]]])
        return ActivePairs(margin, rho, n_pairs, rows)

    def _scores(self, weights: Floats) -> tuple[WeightedScores, WeightedScores]:
        """Combine the members' scores, equation (3)."""
        return WeightedScores(self.P @ weights, self.a), WeightedScores(self.N @ weights, self.b)


def _class_weights(weight: Floats | None, rows: Ints) -> Floats:
    """Return the weights within a class, with sum 1."""
    if weight is None or not len(rows):
        return np.full(len(rows), 1 / max(len(rows), 1))
    own = weight[rows] / weight[rows].max()  # the sum of large ones may overflow
    return np.asarray(own / own.sum())


def _count_up_to(margin: float, s: Floats, t: Floats) -> int:
    """Count the pairs with a margin of at most `margin`; fast if there are few."""
    low, high = s[s <= margin + t.max()], np.sort(t[t >= s.min() - margin])
    return int((len(high) - np.searchsorted(high, low - margin)).sum())


def worst_pairs(s: Floats, t: Floats, limit: int) -> Ints:
    """Return the positions of the pairs with the smallest margins, worst first.

    The r-th lowest positive and the k-th highest negative have r·k pairs that are no better. Equal
    margins are in the order of the positions.
    """
    low, high = smallest(s, limit), smallest(-t, limit)
    r, k = np.meshgrid(np.arange(len(low)), np.arange(len(high)), indexing="ij")
    near = (r + 1) * (k + 1) <= limit
    pairs = np.column_stack([low[r[near]], high[k[near]]])
    margins = s[pairs[:, 0]] - t[pairs[:, 1]]
    worst_first = np.lexsort((pairs[:, 1], pairs[:, 0], np.round(margins / ROUNDING)))
    return pairs[worst_first[:limit]]


def smallest(values: Floats, limit: int) -> Ints:
    """Return the positions of the smallest values, in increasing order."""
    chosen = (
        np.flatnonzero(values <= np.partition(values, limit - 1)[limit - 1])
        if limit < len(values)
        else np.arange(len(values))
    )
    return chosen[np.argsort(values[chosen], kind="stable")][:limit]
