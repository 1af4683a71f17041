"""Who decided, and why: what ``explain`` of the selectors returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_NAMES = 4


@dataclass(frozen=True)
class LocalExplanation:
    """Who was chosen for each sample, and for what; print it for a line a sample.

    Attributes
    ----------
    members : tuple of str
        All members, L of them.
    answers : ndarray of shape (n,)
        What was answered.
    votes : ndarray of shape (n, L)
        What each member says, chosen or not.
    competence : ndarray of shape (n, L)
        How far each is trusted there.
    selected : ndarray of bool, shape (n, L)
        Who was chosen; everybody where nobody is competent, nobody if that is rejected.
    nobody : ndarray of bool, shape (n,)
        Where nobody is competent.
    neighbours : ndarray of int, shape (n, k)
        The tuning samples it was seen at, nearest first, as rows of the data given to ``fit``.
    """

    members: tuple[str, ...]
    answers: NDArray[Any]
    votes: NDArray[Any]
    competence: NDArray[np.float64]
    selected: NDArray[np.bool_]
    nobody: NDArray[np.bool_]
    neighbours: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.answers)

    def __str__(self) -> str:
        return "\n".join(self._line(i) for i in range(len(self)))

    def _line(self, i: int) -> str:
        if self.nobody[i]:
            fate = "all were asked" if self.selected[i].any() else "none was asked"
            return f"{self.answers[i]}: nobody is competent here; {fate}"
        chosen = np.flatnonzero(self.selected[i])
        order = chosen[np.argsort(-self.competence[i, chosen], kind="stable")]
        names = [
            f"{self.members[j]} says {self.votes[i, j]} ({self.competence[i, j]:.3g})"
            for j in order[:_MOST_NAMES]
        ]
        more = f" and {len(order) - len(names)} more" if len(order) > len(names) else ""
        return f"{self.answers[i]}: {', '.join(names)}{more}"


@dataclass(frozen=True)
class RegionExplanation:
    """Which region each sample is in and who is in charge; print it for a line a sample.

    Attributes
    ----------
    answers : ndarray of shape (n,)
        What was answered.
    regions : ndarray of shape (n,)
        The region each sample is in.
    members : ndarray of str, shape (n,)
        Who is in charge there.
    competence : ndarray of shape (n,)
        The criterion of that member on the region's tuning samples; on all of them where the
        region has none.
    n_tuning : ndarray of int, shape (n,)
        How many tuning samples the region has.
    """

    answers: NDArray[Any]
    regions: NDArray[Any]
    members: NDArray[Any]
    competence: NDArray[np.float64]
    n_tuning: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.answers)

    def __str__(self) -> str:
        return "\n".join(self._line(i) for i in range(len(self)))

    def _line(self, i: int) -> str:
        there = "on its" if self.n_tuning[i] else "over all, as it has"
        count = self.n_tuning[i] or "no"
        return (
            f"{self.answers[i]}: region {self.regions[i]}, {self.members[i]} "
            f"({self.competence[i]:.3g} {there} {count} tuning samples)"
        )
