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
from margrave.committee import Panel
from margrave.select._region_scores import Selected

# Scores are rounded to so many digits of their size: the same sample must get the same score
# in any company, or samples that tie at a cut would fall to either side of it.
_DIGITS = 9
_USUAL = 0.9


class Combine(Protocol):
    """What makes scores of the members' answers."""

    @property
    def weights(self) -> Floats:
        """The members' weights, shape (K,) or (k, K)."""

    def __call__(self, raw: Floats) -> Floats:
        """Scores for raw values of shape (n, K) or (n, K, k).

        One with a true attribute ``looks`` is also given the encoded samples.
        """


def looks(combine: Combine) -> bool:
    """Whether it looks at the samples, and not only at what members say."""
    return bool(getattr(combine, "looks", False))


def heard(combine: Combine, raw: Floats, X: Any) -> Floats:
    """Scores from what the members say, and from encoded samples if they are looked at."""
    return combine(raw, X) if looks(combine) else combine(raw)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Scorer:
    """Scores of samples: one for two classes, larger for the second; else one for each class.

    Attributes
    ----------
    panel : Panel
        Who is asked.
    combine : Combine
        What makes scores of their answers.
    decimals : int
        To how many decimals scores are rounded.
    """

    panel: Panel
    combine: Combine
    decimals: int

    @property
    def weights(self) -> Floats:
        """The members' weights, over the classes if each has its own."""
        return np.asarray(np.atleast_2d(self.combine.weights).mean(axis=0))

    def __call__(self, X: Any) -> Floats:
        """Scores of samples as a user has them."""
        return self.of_encoded(self.panel.encoded(X))

    def of_encoded(self, X: Any) -> Floats:
        """Scores of samples that have passed the encoder."""
        return self.of_raw(self.panel.raw(X), X)

    def of_raw(self, raw: Floats, X: Any = None) -> Floats:
        """Scores from what the members say; of regions, also from the encoded samples."""
        return np.round(heard(self.combine, raw, X), self.decimals)


def decimals_for(scores: Floats) -> int:
    """Enough to tell scores of this size apart, few enough not to tell rounding errors."""
    sizes = np.abs(scores)
    size = float(np.quantile(sizes, _USUAL, method="higher")) or float(
        sizes.max()
    )  # whatever an outlier is
    return _DIGITS - int(np.floor(np.log10(size))) if size > 0 else _DIGITS


_SURE = 1e-12


@dataclass(frozen=True)
class Mean:
    """The mean of two scores of the same committee.

    Attributes
    ----------
    first, second : Combine
        The scores.
    """

    first: Combine
    second: Combine

    @property
    def looks(self) -> bool:
        """Whether either looks at the samples."""
        return looks(self.first) or looks(self.second)

    def __call__(self, raw: Floats, X: Any = None) -> Floats:
        """Log-odds for raw values of shape (n, K) or (n, K, k)."""
        return np.asarray((heard(self.first, raw, X) + heard(self.second, raw, X)) / 2)

    @property
    def weights(self) -> Floats:
        """The members' weights: the mean of both."""
        return np.asarray((self.first.weights + self.second.weights) / 2)


@dataclass(frozen=True)
class Alone:
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


def shares(scores: Floats, combine: Combine) -> Floats:
    """Probabilities of the classes, as scores tell them."""
    if scores.ndim == 1:
        p = expit(scores)
        return np.column_stack([1 - p, p])
    parts = np.exp(scores) if isinstance(combine, Alone) else expit(scores)
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def regions_of(combine: Combine) -> Selected | None:
    """What selects by region in a score, if anything does."""
    if isinstance(combine, Mean):
        return regions_of(combine.first) or regions_of(combine.second)
    return combine if isinstance(combine, Selected) else None
