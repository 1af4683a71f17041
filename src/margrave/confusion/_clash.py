"""Conflicts between bounds: every bound is linear in the counts, so HiGHS can find them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """Find a minimal set of bounds that no matrix meets together; empty if one meets them all.

    A conflict of c among n bounds takes about 2 c log₂(n / c) integer programs (QuickXplain,
    Junker, 2004). Of several conflicts it is the one with the latest bounds.
    """

    def explain(fixed: list[Bound], bounds: list[Bound], has_new: bool) -> list[Bound]:
        """Return the bounds that are needed, in addition to the fixed ones, for a conflict."""
        if has_new and not is_feasible(fixed, matrix, sizes):
            return []
        if len(bounds) == 1:
            return bounds
        early, late = bounds[: len(bounds) // 2], bounds[len(bounds) // 2 :]
        needed = explain(fixed + late, early, has_new=True)
        return needed + explain(fixed + needed, late, has_new=bool(needed))

    if is_feasible(bounds, matrix, sizes):
        return ()
    return tuple(explain([], list(bounds), has_new=False))


def is_feasible(
    bounds: Sequence[Bound], matrix: Matrix, sizes: NDArray[np.int64] | None = None
) -> bool:
    """Whether some matrix meets the bounds: an integer program in its counts.

    With given class sizes the counts are integers. Without, the classes may have any size, and
    counts any value, as long as no fraction has an empty base.
    """
    k = len(matrix.classes)
    perfect = np.ones(k) if sizes is None else sizes  # the diagonal of a matrix without errors
    if all(
        low <= cells.diagonal() @ perfect <= high
        for cells, low, high in _constraints(bounds, matrix, sizes)
    ):  # true of almost every request
        return True
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csr_array, vstack

    # Sparse: the dense rows of many bounds on many classes would take gigabytes.
    rows, lower, upper = zip(
        *(
            (csr_array(cells.reshape(1, -1)), low, high)
            for cells, low, high in _constraints(bounds, matrix, sizes)
        ),
        strict=True,
    )
    result = milp(
        np.zeros(k * (k + 1)),
        constraints=LinearConstraint(vstack(rows), lower, upper),
        integrality=np.full(k * (k + 1), 0 if sizes is None else 1),
    )
    infeasible = 2
    return int(result.status) != infeasible


def _constraints(
    bounds: Sequence[Bound], matrix: Matrix, sizes: NDArray[np.int64] | None
) -> Iterator[tuple[NDArray[np.float64], float, float]]:
    """Yield the weights of the cells, k × (k + 1), and the limits of their weighted sum."""
    for bound in bounds:
        amount, base = bound.cells(matrix)
        size = _base_size(base, sizes)
        weights = amount.astype(float)
        if bound.is_fraction and size is not None:  # the fraction is an exact count
            exact = bound.limit * size
            limit = float(floor(exact) if bound.at_most else ceil(exact))
        elif bound.is_fraction:
            weights, limit = amount - _loosen_limit(bound) * base, 0.0
        else:
            limit = float(bound.limit)
        yield weights, -np.inf if bound.at_most else limit, limit if bound.at_most else np.inf
        if bound.is_fraction:
            yield base.astype(float), 1.0, np.inf
    for c, n_samples in enumerate([] if sizes is None else sizes.tolist()):
        yield row(len(matrix.classes), c).astype(float), n_samples, n_samples


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
