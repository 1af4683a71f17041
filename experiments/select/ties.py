"""Ties: queries whose prediction depends on an order that a method does not define.

These are the orders of members with equal competence, of classes with equal votes, and of tuning
samples at equal distances. The functions return masks of q queries from arrays over queries and L
members. A query on which all members agree is not a tie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments._parts import Floats, Ints

Bools = NDArray[np.bool_]

EQUAL = 1e-9
"""Competences and votes with a smaller difference are equal."""
AS_FAR = 1e-7
"""Distances with a smaller difference are equal; being roots, they are less accurate."""

NOBODY = "nobody is competent"
BEST = "best members differ"
CHOICE = "a choice among equals"
VOTES = "equal votes"
NEAR = "neighbours as far"
REASONS = (NOBODY, NEAR, BEST, CHOICE, VOTES)

ONE = ("ola", "lca", "rank", "mla")
"""Methods that choose a single member."""
WEIGHTED = ("knora-u", "knop")
"""Methods that weight votes by competence."""
IN_ORDER = ("rank", "knora-e", "meta-des")
"""Methods that depend on the order of the neighbours."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The arrays that a method computes for some queries.

    Attributes
    ----------
    predictions : ndarray of int, shape (q, L)
        The predictions of the members.
    competence : ndarray of shape (q, L)
        The competence of each member.
    selected : ndarray of bool, shape (q, L)
        The selected members.
    faults : ndarray of shape (q, L)
        How often each member is wrong together with others, for DES-KNN.
    distances : list of ndarray, each of shape (q, k + 1)
        Distances of the nearest samples, one more than the method uses.
    """

    predictions: Ints
    competence: Floats
    selected: Bools
    faults: Floats
    distances: list[Floats]


def reasons(method: str, seen: Seen) -> dict[str, Bools]:
    """Find the ties for each reason."""
    found = {NEAR: _any(as_far(each, method in IN_ORDER) for each in seen.distances)}
    if method in (*ONE, *WEIGHTED):
        found[NOBODY] = seen.competence.max(axis=1) <= 0
    if method in ONE:
        found[BEST] = best_differ(seen.competence, seen.predictions)
    elif method == "des-knn":
        found[CHOICE] = choices_differ(seen.competence, seen.faults, seen.predictions)
    else:
        weight = seen.competence if method in WEIGHTED else seen.selected.astype(np.float64)
        found[VOTES] = equal_votes(seen.predictions, weight)
    disagree = (seen.predictions != seen.predictions[:, :1]).any(axis=1)
    return {reason: found[reason] & disagree for reason in REASONS if reason in found}


def _any(each: Iterator[Bools]) -> Bools:
    return np.asarray(np.logical_or.reduce(list(each)))


def as_far(distance: Floats, in_order: bool) -> Bools:
    """Find equal distances: of the last neighbour and the next one, or of any two in order."""
    gaps = np.diff(distance, axis=1) <= AS_FAR
    return np.asarray(gaps.any(axis=1) if in_order else gaps[:, -1])


def best_differ(competence: Floats, predictions: Ints) -> Bools:
    """Find queries on which members with the largest competence disagree."""
    best = competence >= competence.max(axis=1, keepdims=True) - EQUAL
    top = np.where(best, predictions, -1).max(axis=1)
    return np.asarray((best & (predictions != top[:, None])).any(axis=1))


def equal_votes(predictions: Ints, weight: Floats) -> Bools:
    """Find queries on which two classes have the most votes."""
    n_classes = max(int(predictions.max()) + 1, 2)
    votes = np.stack([(weight * (predictions == c)).sum(axis=1) for c in range(n_classes)], axis=1)
    votes.sort(axis=1)
    return np.asarray(votes[:, -1] - votes[:, -2] <= EQUAL)


def choices_differ(competence: Floats, faults: Floats, predictions: Ints) -> Bools:
    """Find queries on which DES-KNN's choices among equal members change the prediction.

    DES-KNN selects half of the members by accuracy, and of these three tenths of all by diversity.
    Every order of equal members is tried, and equal votes count for each of their classes.
    """
    n_members = competence.shape[1]
    sizes = max(n_members // 2, 1), ceil(0.3 * n_members)
    rows = zip(competence, -faults, predictions, strict=True)
    return np.array([_several(_outcomes(*row, sizes)) for row in rows])


def _outcomes(
    competence: Floats, alone: Floats, predictions: Ints, sizes: tuple[int, int]
) -> Iterator[int]:
    """Yield every class that a choice can predict."""
    predicted = predictions.tolist()
    if len(set(predicted)) == 1:
        return
    for accurate in largest(competence, range(len(competence)), sizes[0]):
        for diverse in largest(alone, accurate, sizes[1]):
            votes = Counter(predicted[i] for i in diverse)
            most = max(votes.values())
            yield from (label for label, count in votes.items() if count == most)


def largest(values: Floats, among: Sequence[int], n: int) -> Iterator[tuple[int, ...]]:
    """Yield every set of the n largest values, with equal values in any order."""
    border = sorted((values[i] for i in among), reverse=True)[min(n, len(among)) - 1]
    sure = tuple(i for i in among if values[i] > border + EQUAL)
    equal = [i for i in among if abs(values[i] - border) <= EQUAL]
    for some in combinations(equal, min(n, len(among)) - len(sure)):
        yield sure + some


def _several(outcomes: Iterator[Any]) -> bool:
    """Whether the outcomes differ."""
    first = next(outcomes, None)
    return any(one != first for one in outcomes)


def double_faults(right: Bools) -> Floats:
    """Count how often each member is wrong together with others; `right` is (q, k, L)."""
    wrong = (~right).astype(np.float64)
    others = wrong.sum(axis=2, keepdims=True) - wrong
    return np.asarray((wrong * others).sum(axis=1))
