"""One class against the rest: scale, share ν, weights, and what a combined score means.

The steps after the members have spoken on tuning data, on arrays: bring their values onto one
scale (`_scales`), find weights (`_rank_weights`), by cross-validation for several ν if asked, and
learn where on the combined score the classes part.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold

from margrave._typing import Flags, Floats
from margrave.confusion import balanced_threshold
from margrave.fuse._rank_problem import RankMarginWeights, weigh
from margrave.fuse._scales import LineScale, RankScale, learn_scale
from margrave.fuse._tail import Side, standard_error
from margrave.pairs import CrucialPairs

NUS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Shares of the pairs that ``nu="cv"`` chooses from."""

# What is taken where there are too few samples to choose.
_USUAL_NU = 0.1
_FOLDS = 5
_MOST_CHOOSING = 20_000
_LEAST_TOL = 1e-4
MAX_ITER = 500
# Scores this close are equal.
_SAME = 1e-12
# As good as 0, and can be divided by.
_NO_SLOPE = 1e-6


@dataclass(frozen=True)
class Asked:
    """What to do with the members' values.

    Attributes
    ----------
    scale : str
        One of `margrave.fuse._scales.SCALES`.
    nu : float or "cv"
        Share of the pairs.
    hardest : float
        Share of the negatives whose pairs count.
    tol : float or "auto"
        Gap, or half a standard error of the margin.
    calibrate : bool
        Whether the cut is where both classes are equally probable; else by balanced accuracy.
    """

    scale: str
    nu: float | str
    hardest: float
    tol: float | str
    calibrate: bool


@dataclass(frozen=True)
class Combination:
    """Members combined for one class.

    Attributes
    ----------
    scale : LineScale or RankScale
        Brings raw values to [-1, 1].
    found : RankMarginWeights
        The weights.
    slope, threshold : float
        ``slope · (score - threshold)`` is the log-odds of the class; slope 1 if not calibrated.
    margins : CrucialPairs
        The combined scores of the tuning data.
    auc_by_nu : dict
        Cross-validated AUC of each ν that was tried.
    """

    scale: LineScale | RankScale
    found: RankMarginWeights
    slope: float
    threshold: float
    margins: CrucialPairs
    auc_by_nu: dict[float, float]

    def scores(self, raw: Floats) -> Floats:
        """The weighted sum of the members' scores, in [-1, 1]."""
        scores: Floats = self.scale(raw) @ self.found.weights
        return scores

    def decision(self, raw: Floats) -> Floats:
        """Above 0 for the class."""
        return self.slope * (self.scores(raw) - self.threshold)


def combine(
    raw: Floats, probabilities: Flags, positive: Flags, weight: Floats, asked: Asked
) -> Combination:
    """Learn scale, weights and cut on tuning data.

    Parameters
    ----------
    raw : ndarray of shape (n, K)
        What the members say toward the class, in their own units.
    probabilities : ndarray of bool, shape (K,)
        Which members give probabilities.
    positive : ndarray of bool, shape (n,)
        The samples of the class.
    weight : ndarray of shape (n,)
        Sample weights.
    asked : Asked
        The settings.
    """
    used = np.flatnonzero(weight > 0)
    raw, positive, weight = raw[used], positive[used], weight[used]
    nu, auc_by_nu = chosen_nu(raw, probabilities, positive, weight, asked)
    scale, found, tol = _weighed(raw, probabilities, positive, weight, nu, asked)
    warn_of_gap(found, tol, 5)
    combined = scale(raw) @ found.weights
    if asked.calibrate:
        slope, threshold = _sigmoid(combined, positive, weight)
    else:
        u, v = (np.where(of, weight / weight[of].sum(), 0.0) for of in (positive, ~positive))
        slope, threshold = 1.0, balanced_threshold(combined, u, v)
    margins = CrucialPairs(combined[positive], combined[~positive])
    found = replace(found, active=used[found.active])
    return Combination(scale, found, slope, threshold, margins, auc_by_nu)


def warn_of_gap(found: RankMarginWeights, tol: float, stacklevel: int) -> None:
    """Warn if the search ended before the gap was as small as asked for."""
    if found.gap > tol:
        warnings.warn(
            f"RankMarginClassifier stopped after {found.n_iter} rounds with a gap of "
            f"{found.gap:.2g}, above tol={tol:g}; raise tol.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def chosen_nu(
    raw: Floats, probabilities: Flags, positive: Flags, weight: Floats, asked: Asked
) -> tuple[float, dict[float, float]]:
    """The share ν, by cross-validation if asked, and the AUC of each that was tried."""
    if not isinstance(asked.nu, str):
        return float(asked.nu), {}
    auc_by_nu = _cross_validated(raw, probabilities, positive, weight, asked)
    # Of equals the largest, which looks at most pairs.
    nu = max(auc_by_nu, key=lambda one: (auc_by_nu[one], one)) if auc_by_nu else _USUAL_NU
    return nu, auc_by_nu


def chosen_tol(
    scores: Floats,
    positive: Flags,
    weight: Floats,
    nu: float,
    asked: Asked,
    shares: tuple[float, float] = (1.0, 1.0),
) -> float:
    """The gap asked for, or half a standard error of the margin of the mean score.

    `shares` are those of the positives and of the negatives which these are a part of.
    """
    if not isinstance(asked.tol, str):
        return float(asked.tol)
    error = 0.0
    if nu > 0 and positive.any() and not positive.all():
        mean = scores.mean(axis=1)
        halves = [Side(mean[of], weight[of] / weight[of].sum()) for of in (positive, ~positive)]
        error = standard_error(halves[0], halves[1], nu, asked.hardest, shares)
    return max(error / 2, _LEAST_TOL)


def _weighed(
    raw: Floats, probabilities: Flags, positive: Flags, weight: Floats, nu: float, asked: Asked
) -> tuple[LineScale | RankScale, RankMarginWeights, float]:
    """Scale and weights for one ν, and the gap that was asked for.

    A member whose mean margin is not above 0 ranks no better than chance. It is heard only if all
    are like that: errors that happen to be opposite would win it weight that it does not deserve.
    """
    scale = learn_scale(asked.scale, raw, probabilities, positive, weight)
    scores, sides = scale(raw), (positive, ~positive)
    shares = [weight[of] / weight[of].sum() for of in sides]
    heard = heard_members(shares[0] @ scores[positive] - shares[1] @ scores[~positive])
    scores[:, ~heard] = 0.0
    tol = chosen_tol(scores[:, heard], positive, weight, nu, asked)
    found = weigh(scores, positive, weight, nu, asked.hardest, tol, MAX_ITER)
    return scale, found, tol


def heard_members(margins: Floats) -> Flags:
    """Who is heard, from the members' mean margins: those above chance, or all if none is."""
    heard: Flags = margins > _SAME
    return heard if heard.any() else np.ones_like(heard)


def _cross_validated(
    raw: Floats, probabilities: Flags, positive: Flags, weight: Floats, asked: Asked
) -> dict[float, float]:
    """Mean AUC of each ν on parts of the tuning data that scale and weights have not seen."""
    sides = [np.flatnonzero(of) for of in (positive, ~positive)]
    if len(positive) > _MOST_CHOOSING:  # fewer of a class that has many; a rare one is kept
        generator = np.random.default_rng(0)
        sides = [generator.permutation(rows)[: _MOST_CHOOSING // 2] for rows in sides]
    rows, n_folds = np.sort(np.concatenate(sides)), min(_FOLDS, *map(len, sides))
    if n_folds < 2:
        return {}
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    folds = [(rows[a], rows[b]) for a, b in splitter.split(rows, positive[rows])]
    totals = dict.fromkeys(NUS, 0.0)
    for training, held_out in folds:
        part = raw[training], probabilities, positive[training], weight[training]
        for nu in totals:
            scale, found, _ = _weighed(*part, nu, asked)
            combined = scale(raw[held_out]) @ found.weights
            totals[nu] += _auc(combined, positive[held_out], asked.hardest) / n_folds
    return totals


def _auc(scores: Floats, positive: Flags, hardest: float) -> float:
    """AUC, over the pairs with the hardest negatives only."""
    negatives = np.sort(scores[~positive])
    kept = negatives[-max(round(hardest * len(negatives)), 1) :]
    return CrucialPairs(scores[positive], kept).auc


def _sigmoid(scores: Floats, positive: Flags, weight: Floats) -> tuple[float, float]:
    """Slope and cut, see `sigmoid`, of samples one by one."""
    u, v = (np.where(of, weight, 0.0) for of in (positive, ~positive))
    return sigmoid(scores, u, v, len(scores), float(scores.mean()), float(scores.std()))


def sigmoid(
    values: Floats, u: Floats, v: Floats, n: int, centre: float, spread: float
) -> tuple[float, float]:
    """Slope and cut of ``log p/(1-p) = slope (score - cut)``, Platt's way.

    His targets, (N⁺ + 1)/(N⁺ + 2) and 1/(N⁻ + 2), keep the slope finite where the scores part the
    classes. A score that ranks no better than chance gets no slope, and its cut puts all samples
    in the larger class.

    Parameters
    ----------
    values, u, v : ndarray of shape (m,)
        Scores, and the weights of the positives and of the negatives there.
    n : int
        Number of samples.
    centre, spread : float
        Mean and standard deviation of the samples' scores.
    """
    unit = n / (u.sum() + v.sum())
    u, v = u * unit, v * unit
    n_positive, n_negative = u.sum(), v.sum()
    prior = float(np.log((n_positive + 1) / (n_negative + 1)))
    if np.ptp(values) < _SAME:
        return _NO_SLOPE, -prior / _NO_SLOPE
    x = (values - centre) / spread
    total = u + v
    wanted = u * ((n_positive + 1) / (n_positive + 2)) + v * (1 / (n_negative + 2))

    def loss(line: Floats) -> tuple[float, Floats]:
        z = line[0] * x + line[1]
        error = total * expit(z) - wanted
        value = total @ np.logaddexp(0, z) - wanted @ z
        return float(value), np.array([error @ x, error.sum()])

    found = minimize(loss, [1.0, prior], jac=True, bounds=[(0, None), (None, None)])
    slope, offset = found.x[0], found.x[1]
    if slope < _NO_SLOPE:
        return _NO_SLOPE, -prior / _NO_SLOPE
    return float(slope / spread), float(centre - offset * spread / slope)
