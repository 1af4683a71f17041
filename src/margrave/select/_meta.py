"""META-DES: learning from the tuning samples who can be trusted (Cruz et al., 2015).

For each query and member there are ``2 k + k_p + 2`` meta-features, all in [0, 1]: whether the
member is right at each of the k neighbours; how probable it calls the true class there; the share
it is right at; whether it is right at each of the k_p tuning samples that the members answered most
alike (the nearest output profiles); and how sure it is of its answer. Cut into eleven steps they
are counts for a multinomial naive Bayes, which says how probable it is that the member is right.

Naive Bayes is linear in its counts, so the log-odds are a few weighted sums of arrays there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from margrave._typing import AnyFloats, Flags

N_PROFILES = 5
_STEPS = np.linspace(0.1, 1, 10)
# Probabilities come from 2 p - 1, so that 0.1 may be a little less.
_DECIMALS = 12


def steps(values: AnyFloats) -> NDArray[np.uint8]:
    """In how many tenths of the way to 1 a value is, 0 to 10."""
    return np.digitize(np.round(values, _DECIMALS), _STEPS).astype(np.uint8)


@dataclass(frozen=True)
class MetaFeatures:
    """What is known of q queries and L members, in steps.

    Attributes
    ----------
    right : ndarray of shape (q, k, L)
        Right (10) or wrong (0) at each neighbour.
    sure : ndarray of shape (q, k, L)
        Probability of the true class there.
    share : ndarray of shape (q, L)
        Share of the neighbours it is right at.
    alike : ndarray of shape (q, k_p, L)
        Right or wrong where the members answered alike.
    top : ndarray of shape (q, L)
        Largest probability of the query.
    """

    right: NDArray[np.uint8]
    sure: NDArray[np.uint8]
    share: NDArray[np.uint8]
    alike: NDArray[np.uint8]
    top: NDArray[np.uint8]

    @classmethod
    def of(
        cls, right: Flags, sure: NDArray[np.uint8], share: AnyFloats, alike: Flags, top: AnyFloats
    ) -> MetaFeatures:
        """From what is known as it is; `sure` is in steps already."""
        ten = np.uint8(len(_STEPS))
        return cls(right * ten, sure, steps(share), alike * ten, steps(top))

    def sums(self, weight: NDArray[Any]) -> AnyFloats:
        """Each feature added up over queries and members, with weights of shape (q, L)."""
        weight = np.asarray(weight, dtype=np.float64)  # else the sums of bytes would be bytes
        parts = [
            np.einsum("qkl,ql->k", self.right, weight),
            np.einsum("qkl,ql->k", self.sure, weight),
            [np.einsum("ql,ql->", self.share, weight)],
            np.einsum("qkl,ql->k", self.alike, weight),
            [np.einsum("ql,ql->", self.top, weight)],
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class MetaClassifier:
    """The naive Bayes: log-odds that a member is right.

    Attributes
    ----------
    coef : ndarray of shape (2 k + k_p + 2,)
        For one step of each feature.
    intercept : float
        The log-odds before anything is known.
    """

    coef: AnyFloats
    intercept: float

    @classmethod
    def learned(cls, sums: AnyFloats, totals: AnyFloats) -> MetaClassifier:
        """From sums of the features and weights of both outcomes, wrong and right; one is added.

        Parameters
        ----------
        sums : ndarray of shape (2, n_features)
            Of each feature, over what was wrong and what was right.
        totals : ndarray of shape (2,)
            How much was wrong and right.
        """
        logs = np.log(sums + 1) - np.log((sums + 1).sum(axis=1, keepdims=True))
        with np.errstate(divide="ignore"):  # never wrong, or never right: surely so
            prior = np.log(totals)
        return cls(logs[1] - logs[0], float(prior[1] - prior[0]))

    def competence(self, features: MetaFeatures) -> AnyFloats:
        """How probable it is that each member is right, shape (q, L)."""
        k, k_p = features.right.shape[1], features.alike.shape[1]
        right, sure, share, alike, top = np.split(self.coef, np.cumsum([k, k, 1, k_p]))
        odds = features.share * share + features.top * top + self.intercept
        for coef, steps_at in (
            (right, features.right),
            (sure, features.sure),
            (alike, features.alike),
        ):
            for j, one in enumerate(coef):
                odds += steps_at[:, j] * one
        probable: AnyFloats = expit(odds)
        return probable
