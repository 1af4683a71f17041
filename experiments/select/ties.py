"""Ties: queries whose answer depends on an order that a method leaves open.

Orders that no method settles: of members that are as good as each other, of classes with as many
votes, of tuning samples that are as near. Pure functions of arrays over q queries and L members;
each gives the queries that are open. Where all members agree nothing is.
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
"""Competences and votes that differ by less are equal."""
AS_FAR = 1e-7
"""Distances that do; nearer ones are not known so well, being roots of differences."""

NOBODY = "nobody is competent"
BEST = "best members differ"
KEPT = "a choice among equals"
VOTES = "equal votes"
NEAR = "neighbours as far"
REASONS = (NOBODY, NEAR, BEST, KEPT, VOTES)

ONE = ("ola", "lca", "rank", "mla")
"""Methods that choose a single member."""
WEIGHING = ("knora-u", "knop")
"""Methods whose votes are weighed by competence."""
IN_ORDER = ("rank", "knora-e", "meta-des")
"""Methods to which it matters which neighbour comes first."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What a method saw of some queries.

    Attributes
    ----------
    answers : ndarray of int, shape (q, L)
        What the members say.
    competence : ndarray of shape (q, L)
        How far each is trusted.
    selected : ndarray of bool, shape (q, L)
        Who was asked.
    faults : ndarray of shape (q, L)
        How often each is wrong together with others, for DES-KNN.
    distances : list of ndarray, each of shape (q, k + 1)
        Of the nearest samples wherever the method looks for some, one more than it takes.
    """

    answers: Ints
    competence: Floats
    selected: Bools
    faults: Floats
    distances: list[Floats]


def reasons(method: str, seen: Seen) -> dict[str, Bools]:
    """For each reason the queries that are open for it."""
    found = {NEAR: _any(as_far(each, method in IN_ORDER) for each in seen.distances)}
    if method in (*ONE, *WEIGHING):
        found[NOBODY] = seen.competence.max(axis=1) <= 0
    if method in ONE:
        found[BEST] = best_differ(seen.competence, seen.answers)
    elif method == "des-knn":
        found[KEPT] = choices_differ(seen.competence, seen.faults, seen.answers)
    else:
        weight = seen.competence if method in WEIGHING else seen.selected.astype(np.float64)
        found[VOTES] = equal_votes(seen.answers, weight)
    open_ = (seen.answers != seen.answers[:, :1]).any(axis=1)
    return {reason: found[reason] & open_ for reason in REASONS if reason in found}


def _any(each: Iterator[Bools]) -> Bools:
    return np.asarray(np.logical_or.reduce(list(each)))


def as_far(distance: Floats, in_order: bool) -> Bools:
    """Where the last neighbour is as far as the next one; in order, where any two are."""
    gaps = np.diff(distance, axis=1) <= AS_FAR
    return np.asarray(gaps.any(axis=1) if in_order else gaps[:, -1])


def best_differ(competence: Floats, answers: Ints) -> Bools:
    """Where several members have the largest competence, and they do not say the same."""
    best = competence >= competence.max(axis=1, keepdims=True) - EQUAL
    top = np.where(best, answers, -1).max(axis=1)
    return np.asarray((best & (answers != top[:, None])).any(axis=1))


def equal_votes(answers: Ints, weight: Floats) -> Bools:
    """Where the two classes with the most votes have as many."""
    n_classes = max(int(answers.max()) + 1, 2)
    votes = np.stack([(weight * (answers == c)).sum(axis=1) for c in range(n_classes)], axis=1)
    votes.sort(axis=1)
    return np.asarray(votes[:, -1] - votes[:, -2] <= EQUAL)


def choices_differ(competence: Floats, faults: Floats, answers: Ints) -> Bools:
    """Where DES-KNN's choices among equal members do not lead to the same answer.

    Half of the members are kept for accuracy, of these three tenths of all for failing alone. Any
    order of equal ones is tried, and equal votes count for each of their classes.
    """
    n_members = competence.shape[1]
    sizes = max(n_members // 2, 1), ceil(0.3 * n_members)
    rows = zip(competence, -faults, answers, strict=True)
    return np.array([_several(_outcomes(*row, sizes)) for row in rows])


def _outcomes(
    competence: Floats, alone: Floats, answers: Ints, sizes: tuple[int, int]
) -> Iterator[int]:
    """Every class that some choice leads to."""
    said = answers.tolist()
    if len(set(said)) == 1:
        return
    for accurate in largest(competence, range(len(competence)), sizes[0]):
        for diverse in largest(alone, accurate, sizes[1]):
            votes = Counter(said[i] for i in diverse)
            most = max(votes.values())
            yield from (answer for answer, cast in votes.items() if cast == most)


def largest(values: Floats, among: Sequence[int], n: int) -> Iterator[tuple[int, ...]]:
    """Every set of the n with the largest values: equal ones may be taken in any order."""
    border = sorted((values[i] for i in among), reverse=True)[min(n, len(among)) - 1]
    sure = tuple(i for i in among if values[i] > border + EQUAL)
    equal = [i for i in among if abs(values[i] - border) <= EQUAL]
    for some in combinations(equal, min(n, len(among)) - len(sure)):
        yield sure + some


def _several(outcomes: Iterator[Any]) -> bool:
    """Whether not all are the same; stops at the first that is not."""
    first = next(outcomes, None)
    return any(one != first for one in outcomes)


def double_faults(right: Bools) -> Floats:
    """How often each member is wrong together with each other, over neighbours: (q, k, L)."""
    wrong = (~right).astype(np.float64)
    others = wrong.sum(axis=2, keepdims=True) - wrong
    return np.asarray((wrong * others).sum(axis=1))
