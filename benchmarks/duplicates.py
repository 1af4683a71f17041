"""Certificates on tables with copies of rows: ``python -m benchmarks.duplicates``.

Users certify tables in which rows occur twice, or in which they have oversampled the minority class
before they split it. A copy in the certification set of a row that the model was trained on is no
new sample, and the guarantee would fail. Each run draws a table, steers a member to ``fp <= 5%`` at
95 % confidence, accepts it, and measures the true rate on a large table without copies. A guarantee
is violated if that rate is above 5 %, which may happen in 5 % of the runs.

The negative class is the minority, so that ``fp`` is a rate among the rows that are oversampled.
The script prints a row for each table and member, and exits with 1 if the number of violations is
significantly above 5 % in any of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.naive_bayes import GaussianNB

from margrave.steer import Dialog, GuaranteeError

LIMIT, DELTA = 0.05, 0.05
SIGNIFICANT = 0.01  # of the test that there are no more violations than DELTA
ROWS, HELD_OUT, COPIES = 3200, 20_000, 5
MINORITY = 0.3

Table = tuple[NDArray[np.float64], NDArray[np.str_]]


def draw(n: int, rng: np.random.Generator) -> Table:
    """Draw samples of two overlapping classes whose border is a curve."""
    y = np.where(rng.random(n) < MINORITY, "no", "yes")
    X = rng.normal(size=(n, 4))
    X[:, 0] += np.where(y == "yes", 1.5, 0.0)
    X[:, 1] += np.where(y == "yes", 0.5 * X[:, 0] ** 2, 0.0)
    return X, y


def repeated(table: Table, times: tuple[int, int], rng: np.random.Generator) -> Table:
    """Repeat each row of the minority class and of the other class so many times, in any order."""
    X, y = table
    order = rng.permutation(np.repeat(np.arange(len(y)), np.where(y == "no", *times)))
    return X[order], y[order]


TABLES = {"clean": (1, 1), "every row twice": (2, 2), f"minority class {COPIES} times": (COPIES, 1)}
"""How often the rows of the minority class and of the other class occur."""
MEMBERS = {
    "naive Bayes": GaussianNB(),
    "trees": ExtraTreesClassifier(30, min_samples_leaf=3, random_state=0),
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of the runs on one kind of table with one member.

    Attributes
    ----------
    table, member : str
        Their names.
    rates : list of float
        The true rate of each accepted model.
    n_refused : int
        How often `Dialog.accept` refused a guarantee.
    """

    table: str
    member: str
    rates: list[float]
    n_refused: int

    @property
    def n_violated(self) -> int:
        """How many accepted models have a true rate above the limit."""
        return sum(rate > LIMIT for rate in self.rates)

    @property
    def p_value(self) -> float:
        """The exact p-value of the hypothesis that at most DELTA of the runs are violations."""
        n = len(self.rates) + self.n_refused
        return float(binomtest(self.n_violated, n, DELTA, alternative="greater").pvalue)

    @property
    def held(self) -> bool:
        """Whether the violations are not significantly more than DELTA allows."""
        return self.p_value >= SIGNIFICANT


def true_rate(member: str, table: str, seed: int) -> float | None:
    """Steer, accept, and measure the true rate; None if the guarantee was refused."""
    rng = np.random.default_rng(seed)
    X, y = repeated(draw(ROWS, rng), TABLES[table], rng)
    dialog = Dialog.from_data(X, y, committee=MEMBERS[member], positive="yes", random_state=seed)
    dialog.prefer("fp <= 5%", strategies=["move"])
    try:
        model = dialog.accept(confidence=1 - DELTA)
    except GuaranteeError:
        return None
    X_new, y_new = draw(HELD_OUT, rng)
    return float(np.mean(model.predict(X_new[y_new == "no"]) == "yes"))


def outcomes(n_runs: int, seed: int) -> Iterator[Outcome]:
    """Run all tables with all members."""
    for member in MEMBERS:
        for table in TABLES:
            rates = [true_rate(member, table, seed + run) for run in range(n_runs)]
            known = [rate for rate in rates if rate is not None]
            yield Outcome(table, member, known, len(rates) - len(known))


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each kind of table and member."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.duplicates", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="runs of each row")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run")
    options = parser.parse_args(arguments)
    print("| table | member | runs | refused | violated | p-value | mean true rate | held |")
    print("|---|---|---|---|---|---|---|---|")
    held = True
    for one in outcomes(options.runs, options.seed):
        mean = f"{np.mean(one.rates):.2%}" if one.rates else "-"
        print(
            f"| {one.table} | {one.member} | {options.runs} | {one.n_refused} | {one.n_violated} "
            f"| {one.p_value:.2g} | {mean} | {'yes' if one.held else 'NO'} |",
            flush=True,
        )
        held = held and one.held
    return int(not held)


if __name__ == "__main__":
    sys.exit(main())
