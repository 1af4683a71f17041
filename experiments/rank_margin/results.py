"""A measure in every run of a split as one array, with the means and tests of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.rank_margin.study import Run
from margrave.compare import FriedmanHolm, friedman_holm

Floats = NDArray[np.float64]
Column = tuple[str, str]
"""A committee and the combiner of its members."""

ALPHA = 0.01


@dataclass(frozen=True)
class Results:
    """A measure on the test sets of one split: the AUC, or another.

    Attributes
    ----------
    titles : list of str
        Data sets.
    columns : list of (committee, combiner)
        The columns of the array.
    values : ndarray of shape (n_titles, n_runs, n_columns)
        The measure.
    """

    titles: list[str]
    columns: list[Column]
    values: Floats

    @classmethod
    def of(cls, titles: list[str], runs: Iterable[Run]) -> Results:
        """Collect the runs of one split, which come in any order."""
        done = list(runs)
        columns = list(done[0].values)
        n_runs = len(done) // len(titles)
        values = np.full((len(titles), n_runs, len(columns)), np.nan)
        for run in done:
            values[titles.index(run.title), run.number] = [run.values[column] for column in columns]
        return cls(titles, columns, values)

    def runs(self, title: str, columns: Sequence[Column]) -> Floats:
        """Return the measure of each run of a data set, for some columns."""
        at = [self.columns.index(column) for column in columns]
        runs: Floats = self.values[self.titles.index(title)][:, at]
        return runs

    def means(self, columns: Sequence[Column]) -> Floats:
        """Return the mean of each data set, for some columns."""
        at = [self.columns.index(column) for column in columns]
        means: Floats = self.values[:, :, at].mean(axis=1)
        return means

    def wins(self, first: Column, second: Column) -> int:
        """Count the data sets on which the first column has the larger mean."""
        means = self.means([first, second])
        return int((means[:, 0] > means[:, 1]).sum())

    def best_of(self, title: str, columns: Sequence[Column]) -> set[Column]:
        """Return the best column of a data set and those that do not differ from it.

        As the bold numbers of the paper: Friedman's test over the runs, then Holm's procedure. The
        set is empty if Friedman's test finds no difference.
        """
        tested = self.over_runs(title, columns)
        if not tested.differ:
            return set()
        return {
            column for column, differs in zip(columns, tested.rejected, strict=True) if not differs
        }

    def over_runs(
        self, title: str, columns: Sequence[Column], control: Column | None = None
    ) -> FriedmanHolm:
        """Test the runs of a data set with Friedman's test and Holm's procedure."""
        return friedman_holm(
            self.runs(title, columns),
            methods=list(map(str, columns)),
            control=None if control is None else str(control),
            alpha=ALPHA,
        )

    def over_data_sets(
        self, columns: Sequence[Column], names: Sequence[str], control: str | None = None
    ) -> FriedmanHolm:
        """Test the means over the data sets with Friedman's test and Holm's procedure."""
        return friedman_holm(self.means(columns), methods=names, control=control, alpha=ALPHA)


def by_split(titles: list[str], runs: Iterable[Run]) -> dict[str, Results]:
    """Collect the runs of all splits."""
    of: dict[str, list[Run]] = {}
    for run in runs:
        of.setdefault(run.split, []).append(run)
    return {split: Results.of(titles, own) for split, own in of.items()}
