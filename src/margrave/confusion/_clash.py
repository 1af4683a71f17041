"""Conflicts between bounds: every bound is linear in the counts, so HiGHS can find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave.confusion._bounds import WORDS, Bound, Matrix, row


@dataclass(frozen=True)
class UnknownMatrix:
    """A matrix of unknown counts: the classes that a preference names, and two more."""

    classes: tuple[Any, ...]
    positive: Any
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    @classmethod
    def all_of(cls, bounds: Sequence[Bound]) -> list[UnknownMatrix]:
        """Make a matrix for each class that may be positive: one that is named, or another."""
        named = sorted({label for bound in bounds for label in bound.labels})
        others = (object(), object())
        if not any(WORDS[bound.word].of_positive and not bound.labels for bound in bounds):
            return [cls((*named, *others), None)]
        new = object()
        return [cls((*named, new, *others), positive) for positive in (new, *named)]


def find_conflict(
    bounds: Sequence[Bound], matrix: Matrix, sizes: NDArray[np.int64] | None = None
) -> tuple[Bound, ...]:
    """Find a minimal set of bounds that no matrix meets together; empty if one meets them all."""
    if _is_feasible(bounds, matrix, sizes):
        return ()
    conflict = list(bounds)
    for bound in bounds:
        fewer = [other for other in conflict if other is not bound]
        if not _is_feasible(fewer, matrix, sizes):
            conflict = fewer
    return tuple(conflict)


def _is_feasible(bounds: Sequence[Bound], matrix: Matrix, sizes: NDArray[np.int64] | None) -> bool:
    """Whether some matrix meets the bounds: an integer program in its counts.

    With given class sizes the counts are integers. Without, the classes may have any size, and
    counts any value, as long as no fraction has an empty base.
    """
    k = len(matrix.classes)
    rows, lower, upper = [], [], []

    def require(cells: NDArray[Any], low: float, high: float) -> None:
        rows.append(cells.astype(float).ravel())
        lower.append(low)
        upper.append(high)

    for bound in bounds:
        amount, base = bound.cells(matrix)
        size = _base_size(base, sizes)
        if bound.is_fraction and size is not None:  # the fraction is an exact count
            exact = bound.limit * size
            limit = float(floor(exact) if bound.at_most else ceil(exact))
        elif bound.is_fraction:
            amount, limit = amount - _loosen_limit(bound) * base, 0.0
        else:
            limit = float(bound.limit)
        require(amount, -np.inf if bound.at_most else limit, limit if bound.at_most else np.inf)
        if bound.is_fraction:
            require(base, 1.0, np.inf)
    for c, n_samples in enumerate([] if sizes is None else sizes.tolist()):
        require(row(k, c), n_samples, n_samples)
    if not rows:
        return True
    perfect = np.zeros((k, k + 1))
    np.fill_diagonal(perfect, 1 if sizes is None else sizes)
    counts = np.array(rows) @ perfect.ravel()
    if (lower <= counts).all() and (counts <= upper).all():  # true of almost every request
        return True
    from scipy.optimize import LinearConstraint, milp

    result = milp(
        np.zeros(k * (k + 1)),
        constraints=LinearConstraint(np.array(rows), lower, upper),
        integrality=np.full(k * (k + 1), 0 if sizes is None else 1),
    )
    infeasible = 2
    return int(result.status) != infeasible


def _loosen_limit(bound: Bound) -> float:
    """Round a fraction to six digits, to the loose side: the solver is no more precise."""
    round_loosely = ceil if bound.at_most else floor
    return round_loosely(bound.limit * 10**6) / 10**6


def _base_size(base: NDArray[np.bool_], sizes: NDArray[np.int64] | None) -> int | None:
    """Count the samples of the base if it consists of whole rows of known size."""
    whole_rows = base.all(axis=1)
    if sizes is None or (base.any(axis=1) != whole_rows).any():
        return None
    return int(sizes[whole_rows].sum())
