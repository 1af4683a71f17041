"""Trained members behind one call, and scores of new samples from what they say.

A committee that was cross-fitted has said about each tuning sample what members said that were
trained without it; for new samples the members trained on all of them speak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import expit, logit

from margrave._typing import Floats
from margrave.committee import FittedMembers
from margrave.select._region_scores import RegionScores

# Scores are rounded to so many digits of their size: the same sample must get the same score
# in any company, or samples that tie at a cut would fall to either side of it.
_DIGITS = 9
_USUAL = 0.9


class Combination(Protocol):
    """What makes scores of the members' answers."""

    @property
    def weights(self) -> Floats:
        """The members' weights, shape (K,) or (k, K)."""

    def __call__(self, raw: Floats) -> Floats:
        """Scores for raw values of shape (n, K) or (n, K, k).

        One with a true attribute ``needs_samples`` is also given the encoded samples.
        """


def needs_samples(combine: Combination) -> bool:
    """Whether it looks at the samples, and not only at what members say."""
    return bool(getattr(combine, "needs_samples", False))


def combine_scores(combine: Combination, raw: Floats, X: Any) -> Floats:
    """Scores from what the members say, and from encoded samples if they are looked at."""
    return combine(raw, X) if needs_samples(combine) else combine(raw)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Scorer:
    """Scores of samples: one for two classes, larger for the second; else one for each class.

    Attributes
    ----------
    committee : FittedMembers
        Who is asked.
    combine : Combination
        What makes scores of their answers.
    decimals : int
        To how many decimals scores are rounded.
    """

    committee: FittedMembers
    combine: Combination
    decimals: int

    @property
    def weights(self) -> Floats:
        """The members' weights, over the classes if each has its own."""
        return np.asarray(np.atleast_2d(self.combine.weights).mean(axis=0))

    def __call__(self, X: Any) -> Floats:
        """Scores of samples as a user has them."""
        return self.score_encoded(self.committee.encode(X))

    def score_encoded(self, X: Any) -> Floats:
        """Scores of samples that have passed the encoder."""
        return self.score_raw(self.committee.raw(X), X)

    def score_raw(self, raw: Floats, X: Any = None) -> Floats:
        """Scores from what the members say; of regions, also from the encoded samples."""
        return np.round(combine_scores(self.combine, raw, X), self.decimals)


def decimals_for(scores: Floats) -> int:
    """Enough to tell scores of this size apart, few enough not to tell rounding errors."""
    sizes = np.abs(scores)
    size = float(np.quantile(sizes, _USUAL, method="higher")) or float(
        sizes.max()
    )  # whatever an outlier is
    return _DIGITS - int(np.floor(np.log10(size))) if size > 0 else _DIGITS


_SURE = 1e-12


@dataclass(frozen=True)
class MeanScore:
    """The mean of two scores of the same committee.

    Attributes
    ----------
    first, second : Combination
        The scores.
    """

    first: Combination
    second: Combination

    @property
    def needs_samples(self) -> bool:
        """Whether either looks at the samples."""
        return needs_samples(self.first) or needs_samples(self.second)

    def __call__(self, raw: Floats, X: Any = None) -> Floats:
        """Log-odds for raw values of shape (n, K) or (n, K, k)."""
        return np.asarray(
            (combine_scores(self.first, raw, X) + combine_scores(self.second, raw, X)) / 2
        )

    @property
    def weights(self) -> Floats:
        """The members' weights: the mean of both."""
        return np.asarray((self.first.weights + self.second.weights) / 2)


@dataclass(frozen=True)
class SingleMember:
    """A single classifier: its log-odds, or what it decides by.

    Attributes
    ----------
    probability : bool
        Whether it gives probabilities.
    """

    probability: bool

    @property
    def weights(self) -> Floats:
        """All of it."""
        return np.ones(1)

    def __call__(self, raw: Floats) -> Floats:
        """Scores for raw values of shape (n, 1) or (n, 1, k)."""
        values = raw[:, 0]
        if not self.probability:
            return values
        p = np.clip((values + 1) / 2, _SURE, 1 - _SURE)
        return np.asarray(logit(p) if values.ndim == 1 else np.log(p))


def class_probabilities(scores: Floats, combine: Combination) -> Floats:
    """Probabilities of the classes, as scores tell them."""
    if scores.ndim == 1:
        p = expit(scores)
        return np.column_stack([1 - p, p])
    parts = np.exp(scores) if isinstance(combine, SingleMember) else expit(scores)
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def find_regions(combine: Combination) -> RegionScores | None:
    """What selects by region in a score, if anything does."""
    if isinstance(combine, MeanScore):
        return find_regions(combine.first) or find_regions(combine.second)
    return combine if isinstance(combine, RegionScores) else None
