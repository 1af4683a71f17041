"""From competence to an answer: who is chosen, and what those chosen say together.

Pure functions of arrays over q queries, L members and C classes. A choice may leave a query with
nobody: the caller then asks everybody, or rejects.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from margrave._typing import AnyFloats, AnyInts, Flags
from margrave.select._competence import Near, double_faults

# DES-KNN keeps this share of the members for being right, and then that one for being different.
_ACCURATE = 0.5
_DIVERSE = 0.3


def best(competence: AnyFloats, near: Near) -> Flags:
    """The members with the largest competence, if it is above 0."""
    largest: AnyFloats = competence.max(axis=1, keepdims=True)
    return np.asarray((competence == largest) & (competence > 0))


def competent(competence: AnyFloats, near: Near) -> Flags:
    """All with any competence."""
    return competence > 0


def better_than_chance(competence: AnyFloats, near: Near) -> Flags:
    """Those that are right more often than one answer in C."""
    return competence > 1 / near.n_classes


def likely(competence: AnyFloats, near: Near) -> Flags:
    """Those that are right more probably than not."""
    return competence > 0.5


def accurate_and_diverse(competence: AnyFloats, near: Near) -> Flags:
    """Half of the members, by accuracy; of these the three tenths of all that fail alone most.

    Of equal ones the later is taken. Members that are never right are never taken.
    """
    n_queries, n_members = competence.shape
    n_accurate = max(int(_ACCURATE * n_members), 1)
    n_diverse = min(ceil(_DIVERSE * n_members), n_accurate)
    rows = np.arange(n_queries)[:, None]
    accurate = np.argsort(competence, axis=1, kind="stable")[:, : -n_accurate - 1 : -1]
    alone = -double_faults(near)[rows, accurate]
    diverse = np.argsort(alone, axis=1, kind="stable")[:, : -n_diverse - 1 : -1]
    chosen = np.zeros(competence.shape, dtype=bool)
    chosen[rows, accurate[rows, diverse]] = True
    return chosen & (competence > 0)


def first_only(chosen: Flags) -> Flags:
    """Of those chosen for each query, the first."""
    first = np.zeros_like(chosen)
    at = np.flatnonzero(chosen.any(axis=1))
    first[at, np.argmax(chosen[at], axis=1)] = True
    return first


def votes(answers: AnyInts, chosen: Flags, weight: AnyFloats | None, n_classes: int) -> AnyFloats:
    """Votes for each class, shape (q, C): of those chosen, one each or by their weight."""
    counted = np.empty((len(answers), n_classes))
    for c in range(n_classes):
        which = (answers == c) & chosen
        if weight is None:
            counted[:, c] = np.count_nonzero(which, axis=1)
        else:
            counted[:, c] = np.einsum("ql,ql->q", which, weight)
    return counted


def mean_proba(proba: AnyFloats, chosen: Flags, weight: AnyFloats | None) -> AnyFloats:
    """The mean probabilities of those chosen, shape (q, C), by their weight."""
    by = chosen.astype(np.float64) if weight is None else chosen * weight
    total: NDArray[np.float64] = np.matmul(by[:, None, :], proba)[:, 0]
    np.divide(total, by.sum(axis=1, keepdims=True), out=total, where=total > 0)
    return total
