"""Whether bounds can hold together: every bound is linear in the counts, so HiGHS decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave.preference._bounds import WORDS, Bound, Matrix, row


@dataclass(frozen=True)
class UnknownMatrix:
    """The matrix of a preference before there is one: the classes it names, and one more."""

    classes: tuple[Any, ...]
    positive: Any
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    @classmethod
    def of(cls, bounds: Sequence[Bound]) -> UnknownMatrix | None:
        """None if words with and without a class stand together: which is positive is open."""
        named = {label for bound in bounds for label in bound.labels}
        unnamed = any(WORDS[bound.word].of_positive and not bound.labels for bound in bounds)
        if named and unnamed:
            return None
        positive = "positive" if unnamed else None
        return cls((*sorted(named), *(["positive"] if unnamed else []), object()), positive)


def clash(
    bounds: Sequence[Bound], matrix: Matrix | None, sizes: NDArray[np.int64] | None = None
) -> tuple[Bound, ...]:
    """Bounds that no matrix can meet together, as few as possible; empty if all can be met."""
    if matrix is None or _possible(bounds, matrix, sizes):
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
    for bound in bounds:
        amount, base = (mask.astype(float).ravel() for mask in bound.cells(matrix))
        limit = bound.limit
        rows.append(limit.denominator * amount - limit.numerator * base if bound.share else amount)
        end = 0.0 if bound.share else float(limit)
        lower.append(-np.inf if bound.at_most else end)
        upper.append(end if bound.at_most else np.inf)
        if bound.share:
            rows.append(base)
            lower.append(1.0)
            upper.append(np.inf)
    if sizes is not None:
        rows.extend(row(k, c).astype(float).ravel() for c in range(k))
        lower.extend(sizes)
        upper.extend(sizes)
    if not rows:
        return True
    found = milp(
        np.zeros(k * (k + 1)),
        constraints=LinearConstraint(np.array(rows), lower, upper),
        integrality=np.full(k * (k + 1), 0 if sizes is None else 1),
    )
    infeasible = 2
    return int(found.status) != infeasible
