"""Sorted values with their weights, in a bounded number of groups: a summary that can be merged.

As long as there are few enough different values a summary holds all of them, and what is made of it
is exact. Beyond that, neighbours become groups, each at its largest value. Near both ends of every
kind a group holds one sample, toward the middle a ten-thousandth of what lies beyond it: small
shares, which is what preferences ask for, stay sharp. `error` counts what may be misplaced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave._typing import Floats

FINENESS = 10_000
"""Groups are smaller than this part of what lies beyond them; so many at each end are single."""

EXACT = 200_000
"""So many different values are kept as they are."""


@dataclass(frozen=True, eq=False)
class SortedSummary:
    """Weights of values, for several kinds of samples, in rising order of the values.

    Attributes
    ----------
    values : ndarray of shape (n_groups,)
        The largest value of each group, rising.
    masses : ndarray of shape (n_groups, n_kinds)
        The weight of each kind in a group.
    error : ndarray of shape (n_kinds,)
        The weight up to a value, as told here, is less than the true one by at most this, and
        never more.
    n : int
        Number of samples.
    """

    values: Floats
    masses: Floats
    error: Floats
    n: int

    @classmethod
    def of(cls, values: Floats, masses: Floats) -> SortedSummary:
        """Summarise values with a row of weights each."""
        error = np.zeros(masses.shape[1])
        return _sorted(values, masses, error, len(values))

    @classmethod
    def merged(cls, summaries: list[SortedSummary]) -> SortedSummary:
        """All of them together."""
        values = np.concatenate([one.values for one in summaries])
        masses = np.concatenate([one.masses for one in summaries])
        error = np.sum([one.error for one in summaries], axis=0)
        return _sorted(values, masses, error, sum(one.n for one in summaries))

    @property
    def total(self) -> Floats:
        """All weight, by kind."""
        return np.asarray(self.masses.sum(axis=0))

    @property
    def is_exact(self) -> bool:
        """Whether no groups were made."""
        return not self.error.any()

    def middle(self, values: Floats) -> Floats:
        """The weight below each value plus half of that at it, by kind: mid-ranks."""
        below = np.vstack([np.zeros(self.masses.shape[1]), np.cumsum(self.masses, axis=0)])
        left = np.searchsorted(self.values, values, "left")
        right = np.searchsorted(self.values, values, "right")
        # Within a group, a value that is not its end is taken to be in its middle.
        inside = np.minimum(np.where(right > left, right, left + 1), len(self.values))
        return np.asarray((below[left] + below[inside]) / 2)

    def _grouped(self) -> SortedSummary:
        """Fewer groups where there are too many."""
        if len(self.values) <= EXACT:
            return self
        upto = np.cumsum(self.masses, axis=0)
        unit = float(upto[-1].sum()) / self.n  # the weight of a sample
        places = np.round(np.sum([_place(column / unit) for column in upto.T], axis=0))
        ends = np.append(np.flatnonzero(np.diff(places)), len(places) - 1)
        masses = np.add.reduceat(self.masses, np.append(0, ends[:-1] + 1), axis=0)
        # The weight that moved up: all of a group but what was at its end.
        moved = (masses - self.masses[ends]).max(axis=0)
        return SortedSummary(self.values[ends], masses, self.error + moved, self.n)


def _sorted(values: Floats, masses: Floats, error: Floats, n: int) -> SortedSummary:
    """A summary of values in any order."""
    knots, place = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    sums = [np.bincount(place, column, len(knots)) for column in masses.T]
    return SortedSummary(knots, np.column_stack(sums), error, n)._grouped()


def _place(upto: Floats) -> Floats:
    """A scale on which groups are one long, from the samples up to each value."""
    half = upto[-1] / 2
    below, above = np.minimum(upto, half), np.minimum(upto[-1] - upto, half)
    return np.asarray(_from_end(below) + _from_end(half) - _from_end(above))


def _from_end(samples: Floats) -> Floats:
    """One for each sample while they are few, then their logarithm."""
    beyond = np.maximum(samples, FINENESS) / FINENESS
    return np.asarray(np.minimum(samples, FINENESS) + FINENESS * np.log(beyond))
