"""Scorers: fitted members, and the combination of their raw values into scores.

A scorer scores new samples with members that were trained on all training samples. Where the
tuning set is the training set, its scores are out-of-fold and come from cross-fitting instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, logit

from margrave._typing import Floats
from margrave.committee import FittedMembers

# Scores are rounded to so many digits of their usual size: a sample must get the same score in
# any batch, or samples with tied scores at a threshold would fall on either side of it.
_DIGITS = 9
_USUAL_QUANTILE = 0.9


class ScoreCombination(Protocol):
    """Combines the members' raw values into one score, or into one for each class."""

    @property
    def weights(self) -> Floats:
        """The members' weights, shape (K,) or (k, K)."""

    def __call__(self, raw: Floats) -> Floats:
        """Compute scores from raw values of shape (n, K) or (n, K, k)."""


@dataclass(frozen=True)
class Scorer:
    """Scores samples: one score for two classes, larger for the second; else one per class.

    Attributes
    ----------
    committee : FittedMembers
        The fitted members.
    combine : ScoreCombination
        Combines the members' raw values into scores.
    decimals : int
        The number of decimals that scores are rounded to.
    """

    committee: FittedMembers
    combine: ScoreCombination
    decimals: int

    @property
    def weights(self) -> Floats:
        """The members' weights, averaged over the classes if each class has its own."""
        return np.asarray(np.atleast_2d(self.combine.weights).mean(axis=0))

    def __call__(self, X: Any) -> Floats:
        """Score samples as the user has them."""
        return self.score_encoded(self.committee.encode(X))

    def score_encoded(self, X: Any) -> Floats:
        """Score samples that are encoded already."""
        return self.score_raw(self.committee.raw(X))

    def score_raw(self, raw: Floats) -> Floats:
        """Compute scores from raw values."""
        return np.round(self.combine(raw), self.decimals)


def decimals_for(scores: Floats) -> int:
    """Choose a number of decimals that keeps scores of this size apart, but no rounding errors."""
    sizes = np.abs(scores)
    usual = float(np.quantile(sizes, _USUAL_QUANTILE, method="higher"))  # robust to outliers
    size = usual or float(sizes.max())
    return _DIGITS - int(np.floor(np.log10(size))) if size > 0 else _DIGITS


SMALLEST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class SingleMember:
    """The combination of a single member: its log-odds, or its decision values.

    Attributes
    ----------
    probability : bool
        Whether the member gives probabilities.
    """

    probability: bool

    @property
    def weights(self) -> Floats:
        """The weight 1 of the only member."""
        return np.ones(1)

    def __call__(self, raw: Floats) -> Floats:
        """Compute scores from raw values of shape (n, 1) or (n, 1, k)."""
        values = raw[:, 0]
        if not self.probability:
            return values
        p = np.clip((values + 1) / 2, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
        return np.asarray(logit(p) if values.ndim == 1 else np.log(p))


def class_probabilities(scores: Floats, combine: ScoreCombination) -> Floats:
    """Convert scores to probabilities of the classes."""
    if scores.ndim == 1:
        p = expit(scores)
        return np.column_stack([1 - p, p])
    unnormalized = np.exp(scores) if isinstance(combine, SingleMember) else expit(scores)
    return np.asarray(unnormalized / unnormalized.sum(axis=1, keepdims=True))
