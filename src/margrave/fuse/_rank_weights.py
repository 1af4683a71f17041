"""Weights for trained classifiers that rank positives above negatives with the largest margin.

"A Linear Combination of Classifiers via Rank Margin Maximization" (Marrocco et al.), section 3,
for arrays of any size, and with the slack that its section 5 asks for: ν = 0 is the document's
linear program, ν > 0 the mean margin of the worst share ν of the crucial pairs, and ν = 1 the mean
margin of all pairs, which is linear in the weights and picks the member with the largest difference
of class means. Over the unit sphere instead of the simplex, ν = 1 is the ranker of "A Risk
Minimization Principle for a Class of Parzen Estimators" (Pelckmans et al.) on two classes.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from margrave import _labels
from margrave.fuse._bundle import Solution, hard_margin, soft_margin
from margrave.fuse._tail import Side, binned_tail, exact_tail
from margrave.scores import Scores

Floats = NDArray[np.float64]

_OWNER = "rank_margin_weights"
# Bins are this much finer than the gap asked for, and used where samples are as many times more.
_FINER = 4
_SHOWN_PAIRS = 100
# Margins this close are equal: as an optimum, and as sums of a few products.
_SAME, _ROUNDING = 1e-9, 1e-12


@dataclass(frozen=True)
class RankMarginWeights:
    """The weights of a committee, with what was proven about them.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        None negative, sum 1.
    nu : float
        The share of the pairs that was looked at.
    margin : float
        What was maximised: the mean margin of the worst share `nu` of the pairs; of the worst pair
        if `nu` is 0.
    rho : float
        The largest margin among those pairs; with ``nu=0`` the rank margin itself.
    gap : float
        No weights have a `margin` larger by more than this. Proven from multipliers of the linear
        program that were checked, not taken from the solver.
    n_iter : int
        Rounds taken.
    n_active : int
        Number of pairs with a margin of at most `rho`.
    active : ndarray of int, shape (m, 2)
        The worst of them, at most 100, worst first: row of the positive, row of the negative.
    tie_nu : float or None
        If every weighting has the same worst pair, the share by which the tie was settled.
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
    """Weigh classifiers so that positives are ranked above negatives with the largest margin.

    Parameters
    ----------
    scores : Scores, or array-like of shape (n_samples, K)
        What the members say, in [-1, 1], larger for the positive class.
    y : array-like of shape (n_samples,)
        Labels, of two kinds unless `positive` is given.
    nu : float in [0, 1], default=0.0
        Maximise the mean margin of this share of the crucial pairs, the worst ones. 0 is the worst
        pair alone, the document's program, which one mislabelled sample decides; 1 the mean of
        all, which picks a single member.
    sample_weight : array-like of shape (n_samples,), optional
        How much each sample counts within its class; with ``nu=0`` only whether it is 0.
    tol : float, default=1e-4
        Stop when the margin is proven to be this close to the best.
    max_iter : int, default=200
        Most rounds; ending there gives a warning, and `gap` says how far it got.
    positive : label, optional
        The positive class, the others are negative; by default the larger of two labels.
    negatives : str, optional
        ``"hardest 10%"``: only pairs with the negatives that score highest, that share of them.
        For those who can afford few false alarms, and do not care how the easy ones are ordered.

    Returns
    -------
    RankMarginWeights

    Notes
    -----
    A member that says the same of all samples gets the weight 0, with a warning: its margins are
    all 0, which beats every honest member on pairs that are hard, and ranks nothing. For the same
    reason members should be of one scale, as :class:`RankMarginClassifier` brings them to: a small
    `nu` favours whoever says little. Members with the same scores share their weight arbitrarily.

    Time is O(n K) for ``nu=0`` and a gap that is not tiny, else O(n (K + log n)) per round; rounds
    are a handful, and hardly depend on n.

    Examples
    --------
    >>> from margrave.fuse import rank_margin_weights
    >>> scores = [[0.9, 0.2], [-0.2, 0.6], [0.1, -0.7], [-0.8, 0.1]]
    >>> found = rank_margin_weights(scores, [1, 1, 0, 0])
    >>> found.weights.round(3), round(found.rho, 3)
    (array([0.471, 0.529]), 0.547)
    >>> found.active
    array([[1, 2],
           [1, 3]])
    """
    hardest = _checked_settings(nu, negatives, tol, max_iter)
    values, names = _checked_scores(scores, positive)
    of_positives = _checked_labels(y, len(values), positive)
    weight = _checked_weight(sample_weight, len(values))
    silent = values.min(axis=0) == values.max(axis=0)
    if silent.all():
        raise ValueError(
            f"{_OWNER} needs a member that tells samples apart; each says the same of all."
        )
    if silent.any():
        told = ", ".join(name for name, one in zip(names, silent, strict=True) if one)
        warnings.warn(
            f"{_OWNER}: these members say the same of all samples and get the weight 0: {told}.",
            UserWarning,
            stacklevel=2,
        )
    return weigh(values, of_positives, weight, nu, hardest, tol, max_iter)


def weigh(
    values: Floats,
    positive: NDArray[np.bool_],
    weight: Floats | None,
    nu: float,
    hardest: float,
    tol: float,
    max_iter: int,
) -> RankMarginWeights:
    """As `rank_margin_weights`, with everything checked; equal weights if no member speaks."""
    at_positive, at_negative = (_used(chosen, weight) for chosen in (positive, ~positive))
    for rows, name in ((at_positive, "positive"), (at_negative, "negative")):
        if not len(rows):
            raise ValueError(
                f"{_OWNER} needs samples of both classes with a weight above 0; got no {name} one."
            )
    P, N = (np.asfortranarray(values[rows]) for rows in (at_positive, at_negative))
    low = np.minimum(P.min(axis=0), N.min(axis=0))
    speaking = np.flatnonzero(low < np.maximum(P.max(axis=0), N.max(axis=0)))
    if not len(speaking):  # all weights are alike, and the search begins with equal ones
        speaking = np.arange(values.shape[1])
    problem = _Problem(
        P[:, speaking] if len(speaking) < values.shape[1] else P,
        N[:, speaking] if len(speaking) < values.shape[1] else N,
        _shares(weight, at_positive),
        _shares(weight, at_negative),
        nu,
        hardest,
        tol,
        max_iter,
    )
    found = problem.solve()
    if found.gap > tol:
        warnings.warn(
            f"{_OWNER} stopped after {found.n_iter} rounds with a gap of {found.gap:.2g}, above "
            f"tol={tol:g}; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
    weights = np.zeros(values.shape[1])
    weights[speaking] = found.weights
    i, k = found.active.T
    active = np.column_stack([at_positive[i], at_negative[k]])
    return replace(found, weights=weights, active=active)


@dataclass(frozen=True)
class _Problem:
    """Scores of both classes, their weights, and what is to be maximised."""

    P: Floats
    N: Floats
    a: Floats
    b: Floats
    nu: float
    hardest: float
    tol: float
    max_iter: int

    def solve(self) -> RankMarginWeights:
        """The best weights; the active pairs by their places in P and N."""
        n_members = self.P.shape[1]
        if n_members == 1:
            return self._told(Solution(np.ones(1), np.nan, np.nan, 0))
        if self.nu == 1 and self.hardest == 1:
            means = self.a @ self.P - self.b @ self.N
            best, largest = int(np.argmax(means)), float(means.max())
            return self._told(Solution(np.eye(n_members)[best], largest, largest, 0))
        if self.nu > 0:
            return self._told(self._soft(self.nu))
        found = hard_margin(self.P, self.N, self.tol, self.max_iter)
        alone = self.P.min(axis=0) - self.N.max(axis=0)
        if alone.min() < found.value - _SAME:
            return self._told(found)
        # A concave function that is as high at every corner is flat: look at more than the worst.
        flat = self._told(replace(found, weights=np.full(n_members, 1 / n_members)))
        tie_nu = min(1.0, 2 * flat.n_active / (len(self.P) * len(self.N)))
        settled = self._soft(tie_nu)
        told = self._told(replace(found, weights=settled.weights, n_iter=settled.n_iter))
        return replace(told, tie_nu=tie_nu)

    def _soft(self, nu: float) -> Solution:
        return soft_margin(partial(self._cut, nu), self.P.shape[1], self.tol, self.max_iter)

    def _cut(self, nu: float, weights: Floats) -> tuple[float, Floats]:
        """A value that the weights reach, and a cut; bins where they are fine enough and save."""
        positives, negatives = Side(self.P @ weights, self.a), Side(self.N @ weights, self.b)
        width = self.tol / _FINER
        if 2 / width * _FINER < len(self.P) + len(self.N):
            tail = binned_tail(positives, negatives, nu, self.hardest, width=width)
        else:
            width, tail = 0.0, exact_tail(positives, negatives, nu, self.hardest)
        return tail.mean - width, tail.positive_mass @ self.P - tail.negative_mass @ self.N

    def _told(self, found: Solution) -> RankMarginWeights:
        """A solution with its margin as it is, without bins, and the pairs that decide it."""
        s, t = self.P @ found.weights, self.N @ found.weights
        if self.nu == 0:
            margin = rho = float(s.min() - t.max())
            n_active = _count_up_to(rho + _ROUNDING, s, t)
        else:
            tail = exact_tail(Side(s, self.a), Side(t, self.b), self.nu, self.hardest)
            margin, rho, n_active = tail.mean, tail.rho, tail.n_pairs
        return RankMarginWeights(
            weights=found.weights,
            nu=float(self.nu),
            margin=margin,
            rho=rho,
            gap=max(found.bound - margin, 0.0) if found.n_iter else 0.0,
            n_iter=found.n_iter,
            n_active=n_active,
            active=_worst_pairs(s, t, min(n_active, _SHOWN_PAIRS)),
        )


def _checked_settings(nu: Any, negatives: Any, tol: Any, max_iter: Any) -> float:
    """The share of the negatives that counts; refuse settings that mean nothing."""
    if not is_number(nu) or not 0 <= nu <= 1:
        raise ValueError(f"{_OWNER} needs nu in [0, 1], a share of the pairs; got {nu!r}.")
    if not is_number(tol) or not 0 < tol < np.inf:
        raise ValueError(f"{_OWNER} needs tol to be a finite number above 0; got {tol!r}.")
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise ValueError(
            f"{_OWNER} needs max_iter to be an integer of at least 1; got {max_iter!r}."
        )
    return hardest_share(negatives, _OWNER)


def hardest_share(negatives: str | None, owner: str) -> float:
    """The share in ``"hardest 10%"``; 1 for None."""
    if negatives is None:
        return 1.0
    told = re.fullmatch(r"\s*hardest\s+(\d+(?:\.\d*)?|\.\d+)\s*%\s*", str(negatives))
    share = float(told[1]) / 100 if told else 0.0
    if not 0 < share <= 1:
        raise ValueError(
            f"{owner} needs negatives to be None or like 'hardest 10%'; got {negatives!r}."
        )
    return share


def is_number(value: Any) -> bool:
    """Whether a setting is a number; True and False are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _checked_scores(scores: Scores | ArrayLike, positive: Any) -> tuple[Floats, list[str]]:
    """The members' scores toward the positive class, in [-1, 1], and their names."""
    if isinstance(scores, Scores):
        return scores.toward(positive), list(scores.members)
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(
            f"{_OWNER} needs scores with a row per sample and a column per member; got shape "
            f"{values.shape}."
        )
    low, high = values.min(), values.max()
    if not np.isfinite(low + high):
        raise ValueError(f"{_OWNER} needs finite scores; got NaN or infinity.")
    if low < -1 or high > 1:
        raise ValueError(
            f"{_OWNER} needs scores in [-1, 1]; got {low:g} to {high:g}. RankMarginClassifier "
            "scales them; so does Scores.from_arrays(decision=...) or (proba=...)."
        )
    return values, [str(j) for j in range(values.shape[1])]


def _checked_labels(y: ArrayLike, n_samples: int, positive: Any) -> NDArray[np.bool_]:
    """Which samples are positive."""
    labels = _labels.natural(y)
    if labels.shape != (n_samples,):
        raise ValueError(
            f"{_OWNER} needs y with a label for each of {n_samples} samples; got shape "
            f"{labels.shape}."
        )
    classes = _labels.union([("y", labels)])
    if positive is None:
        if len(classes) != 2:
            raise ValueError(
                f"{_OWNER} needs y with two classes, or positive=; got {len(classes)}: "
                f"{_labels.shown(classes)}."
            )
        positive = classes[1]
    chosen: NDArray[np.bool_] = labels == positive
    return chosen


def _checked_weight(sample_weight: ArrayLike | None, n_samples: int) -> Floats | None:
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_samples,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(
            f"{_OWNER} needs sample_weight with a finite number for each of {n_samples} samples, "
            "none negative."
        )
    return weight


def _used(chosen: NDArray[np.bool_], weight: Floats | None) -> NDArray[np.int64]:
    return np.flatnonzero(chosen if weight is None else chosen & (weight > 0))


def _shares(weight: Floats | None, rows: NDArray[np.int64]) -> Floats:
    """Weights within a class, summing to 1."""
    if weight is None:
        return np.full(len(rows), 1 / len(rows))
    return np.asarray(weight[rows] / weight[rows].sum())


def _count_up_to(margin: float, s: Floats, t: Floats) -> int:
    """Number of pairs with a margin of at most `margin`; quick if there are few."""
    low, high = s[s <= margin + t.max()], np.sort(t[t >= s.min() - margin])
    return int((len(high) - np.searchsorted(high, low - margin)).sum())


def _worst_pairs(s: Floats, t: Floats, limit: int) -> NDArray[np.int64]:
    """Places of the pairs with the smallest margins, worst first.

    The r-th lowest positive and the k-th highest negative have r·k pairs that are no better.
    """
    low, high = _smallest(s, limit), _smallest(-t, limit)
    r, k = np.meshgrid(np.arange(len(low)), np.arange(len(high)), indexing="ij")
    near = (r + 1) * (k + 1) <= limit
    pairs = np.column_stack([low[r[near]], high[k[near]]])
    worst_first = np.argsort(s[pairs[:, 0]] - t[pairs[:, 1]], kind="stable")
    return pairs[worst_first[:limit]]


def _smallest(values: Floats, limit: int) -> NDArray[np.int64]:
    """Places of the smallest values, in rising order."""
    chosen = (
        np.flatnonzero(values <= np.partition(values, limit - 1)[limit - 1])
        if (limit < len(values))
        else np.arange(len(values))
    )
    return chosen[np.argsort(values[chosen], kind="stable")][:limit]
