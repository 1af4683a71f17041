"""Mergeable summaries of sorted values with weights, in a limited number of groups.

A summary of few different values holds all of them and is exact. Of more values, neighbours form
groups, each at its largest value. Near both ends of every class a group holds one sample, toward
the middle a ten-thousandth of the samples beyond it. So small rates, which preferences limit, stay
precise. `error` bounds the weight that may be misplaced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave._typing import Floats

FINENESS = 10_000
"""A group is at most this part of the samples beyond it; so many samples at each end are single."""

EXACT = 200_000
"""The most different values that a summary holds exactly."""


@dataclass(frozen=True, eq=False)
class SortedSummary:
    """Weights of values, for several classes of samples, in increasing order of the values.

    Attributes
    ----------
    values : ndarray of shape (n_groups,)
        The largest value of each group, increasing.
    masses : ndarray of shape (n_groups, n_classes)
        The weight of each class in a group.
    error : ndarray of shape (n_classes,)
        The weight up to a value in this summary is at most so much less than the true one, and
        never more than it.
    n : int
        Number of samples.
    """

    values: Floats
    masses: Floats
    error: Floats
    n: int

    @classmethod
    def of(cls, values: Floats, masses: Floats) -> SortedSummary:
        """Summarize values with a row of weights each."""
        error = np.zeros(masses.shape[1])
        return _summarize(values, masses, error, len(values))

    @classmethod
    def merged(cls, summaries: list[SortedSummary]) -> SortedSummary:
        """Merge summaries into one."""
        values = np.concatenate([summary.values for summary in summaries])
        masses = np.concatenate([summary.masses for summary in summaries])
        error = np.sum([summary.error for summary in summaries], axis=0)
        return _summarize(values, masses, error, sum(summary.n for summary in summaries))

    @property
    def total(self) -> Floats:
        """The total weight, by class."""
        return np.asarray(self.masses.sum(axis=0))

    @property
    def is_exact(self) -> bool:
        """Whether every value is a group of its own."""
        return not self.error.any()

    def middle(self, values: Floats) -> Floats:
        """Compute mid-ranks, by class: the weight below each value plus half of that at it."""
        below = np.vstack([np.zeros(self.masses.shape[1]), np.cumsum(self.masses, axis=0)])
        left = np.searchsorted(self.values, values, "left")
        right = np.searchsorted(self.values, values, "right")
        # A value within a group, not at its end, counts as the middle of the group.
        inside = np.minimum(np.where(right > left, right, left + 1), len(self.values))
        return np.asarray((below[left] + below[inside]) / 2)

    def _compress(self) -> SortedSummary:
        """Merge neighbouring groups if there are too many."""
        if len(self.values) <= EXACT:
            return self
        upto = np.cumsum(self.masses, axis=0)
        unit = float(upto[-1].sum()) / self.n  # the weight of a sample
        groups = np.round(np.sum([_group_scale(column / unit) for column in upto.T], axis=0))
        ends = np.append(np.flatnonzero(np.diff(groups)), len(groups) - 1)
        masses = np.add.reduceat(self.masses, np.append(0, ends[:-1] + 1), axis=0)
        # The weight that moves up: that of a group without its last value.
        moved = (masses - self.masses[ends]).max(axis=0)
        return SortedSummary(self.values[ends], masses, self.error + moved, self.n)


def _summarize(values: Floats, masses: Floats, error: Floats, n: int) -> SortedSummary:
    """Summarize values in any order."""
    distinct, codes = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    sums = [np.bincount(codes, column, len(distinct)) for column in masses.T]
    return SortedSummary(distinct, np.column_stack(sums), error, n)._compress()


def _group_scale(upto: Floats) -> Floats:
    """Map the number of samples up to each value to a scale on which groups have length 1."""
    half = upto[-1] / 2
    below, above = np.minimum(upto, half), np.minimum(upto[-1] - upto, half)
    return np.asarray(_from_end(below) + _from_end(half) - _from_end(above))


def _from_end(samples: Floats) -> Floats:
    """Count samples from an end: one by one while they are few, then on a logarithmic scale."""
    beyond = np.maximum(samples, FINENESS) / FINENESS
    return np.asarray(np.minimum(samples, FINENESS) + FINENESS * np.log(beyond))
