"""Local competence: how far each member can be trusted near a query.

A member is selected for a query by its predictions for the k nearest samples of the tuning set,
x_1, ..., x_k (nearest first), with classes y_j and weights v_j (1 without sample weights). With
r_ij = 1 where member i predicts y_j for x_j, else 0, and c_i the class that it predicts for the
query, the measures of competence are

=====================  ==================================================  ========================
`ola`                  Σ_j v_j r_ij / Σ_j v_j                              Woods et al. (1997)
`lca`                  the same over the samples with y_j = c_i            Woods et al. (1997)
`mla`                  lca with v_j divided by the distance of x_j         Smits (2002)
`rank`                 Σ v_j over the samples before the first r_ij = 0    Sabourin et al. (1993)
`count_correct`        Σ_j v_j r_ij                                        Ko et al. (2008)
`MetaClassifier`       estimated probability that i is correct             Cruz et al. (2015)
=====================  ==================================================  ========================

`METHODS`, at the end, pairs a measure with the rule that selects members by it. All functions work
on arrays over q queries, k neighbours, L members and C classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from margrave._typing import AnyFloats, AnyInts, Flags


@dataclass(frozen=True)
class Neighbourhood:
    """The k nearest samples of the tuning set to each of q queries, and L members on them."""

    correct: Flags  # (q, k, L): r_ij, nearest neighbours first
    labels: AnyInts  # (q, k): y_j, as positions of the classes
    distance: AnyFloats  # (q, k)
    weight: AnyFloats | None  # (q, k): v_j; None if all are 1
    predicted: AnyInts  # (q, L): c_i; -1 where a member rejects the query
    n_classes: int


# Measures of competence, (q, k, L) to (q, L)

# The distance of a neighbour that equals the query.
_SMALLEST_DISTANCE = 1e-10


def ola(near: Neighbourhood) -> AnyFloats:
    """Overall local accuracy (Woods, Kegelmeyer and Bowyer, 1997)."""
    total = near.correct.shape[1] if near.weight is None else near.weight.sum(axis=1)[:, None]
    accuracy: AnyFloats = count_correct(near) / total
    return accuracy


def lca(near: Neighbourhood) -> AnyFloats:
    """Local class accuracy (Woods, Kegelmeyer and Bowyer, 1997); 0 without such a neighbour.

    In the paper the accuracy is over the neighbours that the member itself predicts to be of class
    c_i; here, as in DESlib, over those that are of that class.
    """
    return _class_accuracy(near, near.weight)


def mla(near: Neighbourhood) -> AnyFloats:
    """Modified local accuracy: `lca` with weights 1 / distance (Smits, 2002)."""
    closeness = 1 / np.maximum(near.distance, _SMALLEST_DISTANCE)
    return _class_accuracy(near, closeness if near.weight is None else closeness * near.weight)


def _class_accuracy(near: Neighbourhood, weight: AnyFloats | None) -> AnyFloats:
    same_class = near.labels[:, :, None] == near.predicted[:, None, :]
    correct = _sum_over_neighbours(near.correct & same_class, weight)
    total = _sum_over_neighbours(same_class, weight)
    return np.divide(correct, total, out=np.zeros_like(correct), where=correct > 0)


def rank(near: Neighbourhood) -> AnyFloats:
    """Number of nearest neighbours before the first error (Sabourin et al., 1993)."""
    k = near.correct.shape[1]
    no_error = near.correct[:, 0].copy()
    total = np.zeros(no_error.shape, dtype=_count_dtype(k) if near.weight is None else np.float64)
    for j in range(k):
        no_error &= near.correct[:, j]
        total += no_error if near.weight is None else no_error * near.weight[:, j, None]
    return total.astype(np.float64)


def count_correct(near: Neighbourhood) -> AnyFloats:
    """Number of neighbours on which the member is correct (Ko, Sabourin and Britto, 2008)."""
    return _sum_over_neighbours(near.correct, near.weight)


def _sum_over_neighbours(mask: Flags, weight: AnyFloats | None) -> AnyFloats:
    if weight is None:
        dtype = _count_dtype(mask.shape[1])
        count: AnyFloats = mask.view(np.uint8).sum(axis=1, dtype=dtype).astype(np.float64)
        return count
    total: AnyFloats = np.matmul(weight[:, None, :], mask.astype(np.float64))[:, 0]
    return total


def _count_dtype(k: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type for counts up to k: sums of bytes are fast."""
    return np.uint8 if k < 256 else np.uint64


# Competence learned by META-DES (Cruz et al., 2015)

N_PROFILES = 5  # k_p of the paper
_STEPS = np.linspace(0.1, 1, 10)
_DECIMALS = 12  # probabilities are stored as 2 p - 1, so 0.1 may come back a little smaller


def to_tenths(values: AnyFloats) -> NDArray[np.uint8]:
    """Round values in [0, 1] down to whole tenths, 0 to 10."""
    return np.digitize(np.round(values, _DECIMALS), _STEPS).astype(np.uint8)


@dataclass(frozen=True)
class MetaFeatures:
    """The meta-features f1 to f5 of Cruz et al. (2015), in tenths."""

    correct: NDArray[np.uint8]  # (q, k, L), f1: 10 if correct on the neighbour, else 0
    true_class: NDArray[np.uint8]  # (q, k, L), f2: probability of the neighbour's class
    accuracy: NDArray[np.uint8]  # (q, L), f3: overall local accuracy
    profile: NDArray[np.uint8]  # (q, k_p, L), f4: as f1, for the nearest output profiles
    confidence: NDArray[np.uint8]  # (q, L), f5: the largest probability for the query

    @classmethod
    def of(
        cls,
        correct: Flags,
        true_class: NDArray[np.uint8],
        accuracy: AnyFloats,
        profile: Flags,
        confidence: AnyFloats,
    ) -> MetaFeatures:
        """Convert the features to tenths; `true_class` is in tenths already."""
        ten = np.uint8(len(_STEPS))
        return cls(
            correct * ten, true_class, to_tenths(accuracy), profile * ten, to_tenths(confidence)
        )

    def sums(self, weight: NDArray[Any]) -> AnyFloats:
        """Sum each of the 2 k + k_p + 2 features, with weights of shape (q, L)."""
        weight = np.asarray(weight, dtype=np.float64)  # sums of bytes would overflow
        parts = [
            np.einsum("qkl,ql->k", self.correct, weight),
            np.einsum("qkl,ql->k", self.true_class, weight),
            [np.einsum("ql,ql->", self.accuracy, weight)],
            np.einsum("qkl,ql->k", self.profile, weight),
            [np.einsum("ql,ql->", self.confidence, weight)],
        ]
        return np.concatenate(parts)


@dataclass(frozen=True)
class MetaClassifier:
    """Multinomial naive Bayes on the meta-features: the probability that a member is correct.

    Naive Bayes is linear in its counts, so the log-odds are a weighted sum of the features.
    """

    coef: AnyFloats  # (2 k + k_p + 2,): log-odds for a tenth of each feature
    intercept: float  # log-odds of the prior

    @classmethod
    def fit(cls, sums: AnyFloats, totals: AnyFloats) -> MetaClassifier:
        """Fit from the sums of features, (2, n_features), and of weights, (2,): wrong, correct.

        Laplace smoothing adds 1.
        """
        logs = np.log(sums + 1) - np.log((sums + 1).sum(axis=1, keepdims=True))
        with np.errstate(divide="ignore"):  # never wrong or never correct: probability 1 or 0
            prior = np.log(totals)
        return cls(logs[1] - logs[0], float(prior[1] - prior[0]))

    def competence(self, features: MetaFeatures) -> AnyFloats:
        """Return the probability that each member is correct, shape (q, L)."""
        k, k_p = features.correct.shape[1], features.profile.shape[1]
        correct, true_class, accuracy, profile, confidence = np.split(
            self.coef, np.cumsum([k, k, 1, k_p])
        )
        log_odds = features.accuracy * accuracy + features.confidence * confidence + self.intercept
        for coef, tenths in (
            (correct, features.correct),
            (true_class, features.true_class),
            (profile, features.profile),
        ):
            for j, one in enumerate(coef):
                log_odds += tenths[:, j] * one
        probability: AnyFloats = expit(log_odds)
        return probability


# Rules that select members by their competence, (q, L) to (q, L). They may select none.

# DES-KNN (Soares et al., 2006): fractions of all members.
_MOST_ACCURATE = 0.5
_MOST_DIVERSE = 0.3


def select_best(competence: AnyFloats, _: Neighbourhood) -> Flags:
    """Select the members with the largest competence, if it is above 0."""
    largest: AnyFloats = competence.max(axis=1, keepdims=True)
    return np.asarray((competence == largest) & (competence > 0))


def select_competent(competence: AnyFloats, _: Neighbourhood) -> Flags:
    """Select the members with a competence above 0."""
    return competence > 0


def select_better_than_chance(competence: AnyFloats, near: Neighbourhood) -> Flags:
    """Select the members whose accuracy is above 1 / C."""
    return competence > 1 / near.n_classes


def select_probable(competence: AnyFloats, _: Neighbourhood) -> Flags:
    """Select the members that are correct with a probability above 1 / 2."""
    return competence > 0.5


def select_accurate_and_diverse(competence: AnyFloats, near: Neighbourhood) -> Flags:
    """Select the most accurate half, and from it those with the fewest double faults.

    The last of equal members comes first. A member with a competence of 0 is never selected.
    """
    n_queries, n_members = competence.shape
    n_accurate = max(int(_MOST_ACCURATE * n_members), 1)
    n_diverse = min(ceil(_MOST_DIVERSE * n_members), n_accurate)
    rows = np.arange(n_queries)[:, None]
    accurate = np.argsort(competence, axis=1, kind="stable")[:, : -n_accurate - 1 : -1]
    diversity = -double_faults(near)[rows, accurate]
    diverse = np.argsort(diversity, axis=1, kind="stable")[:, : -n_diverse - 1 : -1]
    selected = np.zeros(competence.shape, dtype=bool)
    selected[rows, accurate[rows, diverse]] = True
    return selected & (competence > 0)


def double_faults(near: Neighbourhood) -> AnyFloats:
    """Count how often each member is wrong together with another, over neighbours and others.

    On x_j each wrong member has as many double faults as there are other wrong members, so the sum
    takes k L steps, not k L² over pairs of members.
    """
    wrong = ~near.correct
    others = np.maximum(wrong.sum(axis=2, dtype=np.float64) - 1, 0)
    if near.weight is not None:
        others = others * near.weight
    faults: AnyFloats = np.matmul(others[:, None, :], wrong.astype(np.float64))[:, 0]
    return faults


def keep_first(selected: Flags) -> Flags:
    """Keep the first of the members selected for each query."""
    first = np.zeros_like(selected)
    rows = np.flatnonzero(selected.any(axis=1))
    first[rows, np.argmax(selected[rows], axis=1)] = True
    return first


# The methods of local selection


@dataclass(frozen=True)
class Method:
    """A method of local selection."""

    competence: Callable[[Neighbourhood], AnyFloats]  # for META-DES, the feature f3
    select: Callable[[AnyFloats, Neighbourhood], Flags]
    single: bool = False  # whether to select a single member
    weighted: bool = False  # whether votes are weighted by competence
    by_profile: bool = False  # whether neighbours are nearest by the members' probabilities
    learned: bool = False  # whether a MetaClassifier estimates the competence

    @property
    def needs_proba(self) -> bool:
        """Whether members need probabilities."""
        return self.by_profile or self.learned


METHODS = {
    # Woods et al. (1997)
    "ola": Method(ola, select_best, single=True),
    "lca": Method(lca, select_best, single=True),
    # Sabourin et al. (1993)
    "rank": Method(rank, select_best, single=True),
    # Smits (2002)
    "mla": Method(mla, select_best, single=True),
    # Ko et al. (2008): k nearest oracles, eliminate and union
    "knora-e": Method(rank, select_best),
    "knora-u": Method(count_correct, select_competent, weighted=True),
    # Soares et al. (2006)
    "des-knn": Method(ola, select_accurate_and_diverse),
    # Woloszynski et al. (2012)
    "des-p": Method(ola, select_better_than_chance),
    # Cavalin et al. (2013): k nearest output profiles
    "knop": Method(count_correct, select_competent, weighted=True, by_profile=True),
    # Cruz et al. (2015)
    "meta-des": Method(ola, select_probable, learned=True),
}
