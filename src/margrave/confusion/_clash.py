"""Whether bounds can hold together: every bound is linear in the counts, so HiGHS decides."""

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
    """The matrix of a preference before there is one: the classes it names, and two more."""

    classes: tuple[Any, ...]
    positive: Any
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    @classmethod
    def all_of(cls, bounds: Sequence[Bound]) -> list[UnknownMatrix]:
        """One matrix for each class that may be the positive one, named or not."""
        named = sorted({label for bound in bounds for label in bound.labels})
        unnamed = any(WORDS[bound.word].of_positive and not bound.labels for bound in bounds)
        others = (object(), object())
        if not unnamed:
            return [cls((*named, *others), None)]
        new = object()
        return [cls((*named, new, *others), positive) for positive in (new, *named)]


def find_conflict(
    bounds: Sequence[Bound], matrix: Matrix, sizes: NDArray[np.int64] | None = None
) -> tuple[Bound, ...]:
    """Bounds that no matrix can meet together, as few as possible; empty if all can be met."""
    if _possible(bounds, matrix, sizes):
        return ()
    kept = list(bounds)
    for bound in bounds:
        fewer = [other for other in kept if other is not bound]
        if not _possible(fewer, matrix, sizes):
            kept = fewer
    return tuple(kept)


def _possible(bounds: Sequence[Bound], matrix: Matrix, sizes: NDArray[np.int64] | None) -> bool:
    """Whether some matrix meets the bounds: an integer program in its counts.

    With class sizes given the counts are whole numbers; without, any sizes may be chosen, as long
    as no share is one of nothing.
    """
    from scipy.optimize import LinearConstraint, milp

    k = len(matrix.classes)
    rows, lower, upper = [], [], []

    def require(cells: NDArray[Any], low: float, high: float) -> None:
        rows.append(cells.astype(float).ravel())
        lower.append(low)
        upper.append(high)

    for bound in bounds:
        amount, base = bound.cells(matrix)
        whole = _size(base, sizes)
        if bound.share and whole is not None:  # the share of a known number: an exact count
            end = bound.limit * whole
            limit = float(floor(end) if bound.at_most else ceil(end))
        elif bound.share:
            amount, limit = amount - _loosened(bound) * base, 0.0
        else:
            limit = float(bound.limit)
        require(amount, -np.inf if bound.at_most else limit, limit if bound.at_most else np.inf)
        if bound.share:
            require(base, 1.0, np.inf)
    for c, size in enumerate([] if sizes is None else sizes.tolist()):
        require(row(k, c), size, size)
    if not rows:
        return True
    found = milp(
        np.zeros(k * (k + 1)),
        constraints=LinearConstraint(np.array(rows), lower, upper),
        integrality=np.full(k * (k + 1), 0 if sizes is None else 1),
    )
    infeasible = 2
    return int(found.status) != infeasible


def _loosened(bound: Bound) -> float:
    """A share to six digits, on the safe side: the solver cannot tell finer ones apart."""
    step = ceil if bound.at_most else floor
    return step(bound.limit * 10**6) / 10**6


def _size(base: NDArray[np.bool_], sizes: NDArray[np.int64] | None) -> int | None:
    """How many samples the base holds, if it is whole rows of known size."""
    whole_rows = base.all(axis=1)
    if sizes is None or (base.any(axis=1) != whole_rows).any():
        return None
    return int(sizes[whole_rows].sum())
