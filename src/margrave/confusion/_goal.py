"""Goals: which errors should be fewest among the decisions that meet the limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from margrave._typing import Flags, Floats
from margrave.confusion._bounds import (
    Bound,
    Matrix,
    format_decimal,
    word_cells,
    write_quantity,
)


class Term(NamedTuple):
    """A quantity that a goal counts, and the cost of one sample of it."""

    word: str
    labels: tuple[str, ...] = ()
    cost: Fraction = Fraction(1)

    def __str__(self) -> str:
        cost = "" if self.cost == 1 else f"{format_decimal(self.cost)} "
        return cost + write_quantity(self.word, self.labels)


@dataclass(frozen=True)
class Goal:
    """What to minimise among the decisions that meet the limits of a preference.

    Attributes
    ----------
    terms : tuple of (word, labels, cost)
        The quantities that are counted.
    outside : bool
        Whether the errors outside these quantities are counted instead. With no quantity, these are
        the errors that the limits of the same request do not limit.

    Examples
    --------
    >>> from margrave import Confusion, Preference
    >>> matrix = Confusion([[95, 5], [12, 88]], classes=["ham", "spam"])
    >>> print(Preference("fp <= 2%").goal(matrix))
    fewest fn
    >>> print(Preference("fp <= 2%, fn <= 20%").goal(matrix))
    fewest errors
    >>> print(Preference("fp <= 2%, then lowest cost of fp + 20 fn").goal(matrix))
    lowest cost of fp + 20 fn
    """

    terms: tuple[Term, ...] = ()
    outside: bool = False

    def __str__(self) -> str:
        counted = " + ".join(map(str, self.terms))
        if self.outside:
            return f"fewest errors outside {counted}" if counted else "fewest other errors"
        is_cost = any(term.cost != 1 for term in self.terms)
        return f"lowest cost of {counted}" if is_cost else f"fewest {counted}"

    def costs(self, matrix: Matrix) -> Floats:
        """Return the cost of a sample in each cell, of shape (k, k + 1)."""
        k = len(matrix.classes)
        costs = np.zeros((k, k + 1))
        for term in self.terms:
            amount, _ = word_cells(term.word, term.labels, matrix, f"then {self}")
            costs += float(term.cost) * amount
        return (all_errors(k) & (costs == 0)).astype(float) if self.outside else costs

    @classmethod
    def of_cells(cls, cells: Flags, matrix: Matrix) -> Goal:
        """Name some cells of errors."""
        k, labels = len(matrix.classes), [str(label) for label in matrix.classes]
        limited = all_errors(k) & ~cells
        if not cells.any() or not limited.any():
            return FEWEST_ERRORS
        if k == 2:
            by_positive = cells[:, matrix.classes.index(matrix.positive)].any()
            return cls((Term("fp" if by_positive else "fn"),))
        whole = limited | ~all_errors(k)
        rows = np.array([line.all() for line in whole])
        columns = np.array([line.all() for line in whole.T[:k]])
        rest = limited[:, :k] & ~rows[:, None] & ~columns
        return cls(
            (
                *(Term("fn", (labels[c],)) for c in np.flatnonzero(rows)),
                *(Term("fp", (labels[c],)) for c in np.flatnonzero(columns)),
                *(Term("errors", (labels[a], labels[b])) for a, b in np.argwhere(rest)),
            ),
            outside=True,
        )


@dataclass(frozen=True)
class BoundsAndGoal:
    """Bounds that need not fit together, and a goal, for an objective without a preference."""

    all_bounds: tuple[Bound, ...]
    then: Goal | None


FEWEST_ERRORS = Goal((Term("errors"),))
"""The fewest errors in total."""


def all_errors(k: int) -> Flags:
    """Mask the cells of errors in a k × (k + 1) matrix; the last column holds rejected samples."""
    return ~np.eye(k, k + 1, dtype=bool) & (np.arange(k + 1) < k)


def unlimited_errors(bounds: Iterable[Bound], matrix: Matrix) -> Flags:
    """Mask the cells of errors that no bound limits; all errors if there are none."""
    errors = all_errors(len(matrix.classes))
    free = errors.copy()
    for bound in bounds:
        free &= ~bound.limited_errors(matrix)
    return free if free.any() else errors


def goal_costs(bounds: Sequence[Bound], then: Goal | None, matrix: Matrix) -> Floats:
    """Return the costs of the goal in force: the stated one, or the unlimited errors."""
    if then is not None and then.terms:
        return then.costs(matrix)
    return unlimited_errors(bounds, matrix).astype(np.float64)
