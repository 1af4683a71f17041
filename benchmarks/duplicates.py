"""Certificates on tables with copies of rows: ``python -m benchmarks.duplicates``.

Users certify tables in which rows occur several times, with an identifier of their own or a little
noise, or in which they have oversampled the minority class before they split it. A copy in the
certification set of a row that the model was trained on is not a new sample, and the guarantee
would fail. Each run draws a table, steers a member that memorises to ``fp <= 10%`` at 95 %
confidence, accepts it, and measures the true rate on a large table without copies. A
guarantee is violated if that rate is above 10 %, which may happen in 5 % of the runs.

The negative class is the minority, so that ``fp`` is a rate among the rows that are oversampled.
The script prints a row for each table and member: how often the user was asked about copies, how
often the guarantee was refused, and how often it was violated. It exits with 1 if the number of
violations is significantly above 5 % in any of them.

With ``--each``, every row counts as an independent observation, to see what the search prevents.
``python -m benchmarks.duplicates --real`` looks for copies in all data sets that can be loaded, and
``--time`` compares the time of the search with that of the training.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline

from margrave import datasets
from margrave.steer import Dialog, GuaranteeError, SplitError
from margrave.table import TableEncoder

LIMIT, DELTA = 0.1, 0.05
SIGNIFICANT = 0.01  # of the test that there are no more violations than DELTA
ROWS, HELD_OUT, COPIES = 1200, 10_000, 5
MINORITY = 0.3

Numbers = NDArray[np.float64]
Table = tuple[Numbers, NDArray[np.str_]]


def draw(n: int, rng: np.random.Generator) -> Table:
    """Draw samples of two overlapping classes whose border is a curve."""
    y = np.where(rng.random(n) < MINORITY, "no", "yes")
    X = rng.normal(size=(n, 4))
    X[:, 0] += np.where(y == "yes", 3.0, 0.0)
    X[:, 1] += np.where(y == "yes", 0.5 * X[:, 0] ** 2, 0.0)
    return X, y


def column(kind: str, of: NDArray[np.intp], first: int) -> Any:
    """Make a column in which copies differ, for rows that are numbered from `first` on."""
    number = first + np.arange(len(of))
    if kind == "text":
        return [f"row{i:06d}" for i in number]
    if kind == "time":
        return 1.7e9 + 37.5 * number
    if kind == "number that starts again":
        return number % (number.size // 2)
    if kind == "batch":
        return pd.Series(of).groupby(of).cumcount().to_numpy()
    return number


@dataclass(frozen=True)
class Kind:
    """A kind of table.

    Attributes
    ----------
    times : (int, int)
        How often a row of the minority class and of the other class occurs.
    random : bool
        Whether each row occurs so many times between these two numbers instead.
    extra : tuple of str
        The columns in which copies differ.
    noise : float
        Its standard deviation, relative to that of the column.
    between : bool
        Whether a further row of the minority class lies between a row and a neighbour.
    duplicates : str
        The parameter of `Dialog.from_data`.
    n_rows : int
        Number of different rows.
    """

    times: tuple[int, int] = (1, 1)
    random: bool = False
    extra: tuple[str, ...] = ()
    noise: float = 0.0
    between: bool = False
    duplicates: str = "auto"
    n_rows: int = ROWS

    def copied(self, table: Table, rng: np.random.Generator) -> tuple[Any, NDArray[np.str_]]:
        """Repeat rows, in any order."""
        X, y = table
        times = np.where(y == "no", *self.times)
        if self.random:
            times = rng.integers(self.times[0], self.times[1] + 1, len(y))
        of = np.repeat(np.arange(len(y)), times)
        is_first = np.append(True, of[1:] != of[:-1])
        X, y = X[of] + self.noise * X.std(axis=0) * rng.normal(size=(len(of), X.shape[1])), y[of]
        if self.between:
            rare = table[0][table[1] == "no"]
            near = NearestNeighbors(n_neighbors=5).fit(rare).kneighbors(return_distance=False)
            new = np.flatnonzero(~is_first)
            at = np.searchsorted(np.flatnonzero(table[1] == "no"), of[new])
            step = rare[near[at, rng.integers(0, 5, len(at))]] - rare[at]
            X[new] += rng.random((len(at), 1)) * step
        order = rng.permutation(len(of))
        return self.disguised(X[order], of[order]), y[order]

    def disguised(self, X: Numbers, of: NDArray[np.intp], first: int = 0) -> Any:
        """Add the columns in which copies differ."""
        if not self.extra:
            return X
        extra = {kind: column(kind, of, first) for kind in self.extra}
        return pd.DataFrame(X).add_prefix("x").assign(**extra)


FOUR = (4, 4)
COPIED = {
    "every row 4 times": Kind(FOUR),
    "with a text identifier": Kind(FOUR, extra=("text",)),
    "with a number": Kind(FOUR, extra=("number",)),
    "with a time": Kind(FOUR, extra=("time",)),
    "with a batch": Kind(FOUR, extra=("batch",)),
    "with a number and a batch": Kind(FOUR, extra=("number", "batch")),
    "2 to 10 times, with a number": Kind((2, 10), random=True, extra=("number",)),
    "25 times, with a number": Kind((25, 25), extra=("number",), n_rows=300),
    "noise of 0.1 %": Kind(FOUR, noise=0.001),
    "noise of 1 %": Kind(FOUR, noise=0.01),
    "2 to 10 times, noise of 1 %": Kind((2, 10), random=True, noise=0.01),
    "noise of 0.1 %, with a number that starts again": Kind(
        FOUR, extra=("number that starts again",), noise=0.001
    ),
    "12 times, noise of 0.1 %": Kind((12, 12), noise=0.001, n_rows=600),
    f"minority {COPIES} times": Kind((COPIES, 1)),
    f"minority {COPIES} times, with a number": Kind((COPIES, 1), extra=("number",)),
    f"minority {COPIES} times, noise of 0.1 %": Kind((COPIES, 1), noise=0.001),
}
TABLES = {
    "clean": Kind(),
    **COPIED,
    **{
        f"{name}, counted once": replace(kind, duplicates="near")
        for name, kind in COPIED.items()
        if kind.extra or kind.noise
    },
    f"minority {COPIES} times, between neighbours": Kind((COPIES, 1), between=True),
    "minority twice, between neighbours": Kind((2, 1), between=True),
}
MEMBERS: dict[str, Callable[[], Any]] = {
    "1-NN": lambda: KNeighborsClassifier(1),
    "bagging": lambda: BaggingClassifier(n_estimators=20, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(30, random_state=0),
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
    n_asked : int
        How often the user was asked to decide about copies.
    n_refused : int
        How often `Dialog.accept` refused a guarantee.
    """

    table: str
    member: str
    rates: list[float]
    n_asked: int
    n_refused: int

    @property
    def n_violated(self) -> int:
        """How many accepted models have a true rate above the limit."""
        return sum(rate > LIMIT for rate in self.rates)

    @property
    def p_value(self) -> float:
        """The exact p-value of the hypothesis that at most DELTA of the runs are violations."""
        n = len(self.rates) + self.n_asked + self.n_refused
        return float(binomtest(self.n_violated, n, DELTA, alternative="greater").pvalue)

    @property
    def held(self) -> bool:
        """Whether the violations are not significantly more than DELTA allows."""
        return self.p_value >= SIGNIFICANT


def true_rate(member: str, table: str, seed: int, each: bool = False) -> float | str:
    """Steer, accept, and measure the true rate; "asked" or "refused" without a certificate."""
    rng, kind = np.random.default_rng(seed), TABLES[table]
    X, y = kind.copied(draw(kind.n_rows, rng), rng)
    model = MEMBERS[member]()
    model = make_pipeline(TableEncoder(), model) if kind.extra else model
    duplicates = "independent" if each else kind.duplicates
    try:
        dialog = Dialog.from_data(
            X, y, committee=model, positive="yes", duplicates=duplicates, random_state=seed
        )
    except SplitError as error:
        if error.code != "many_copies":
            raise
        return "asked"
    dialog.prefer(f"fp <= {LIMIT:.0%}", strategies=["move"])
    try:
        accepted = dialog.accept(confidence=1 - DELTA, anyway=True)
    except GuaranteeError:
        return "refused"
    X_new, y_new = draw(HELD_OUT, rng)
    X_new = X_new[y_new == "no"]
    new = kind.disguised(X_new, np.arange(len(X_new)), first=len(y))
    return float(np.mean(accepted.predict(new) == "yes"))


def outcomes(n_runs: int, seed: int, n_jobs: int = 1, each: bool = False) -> Iterator[Outcome]:
    """Run all tables with all members."""
    for table in TABLES:
        for member in MEMBERS:
            runs = (delayed(true_rate)(member, table, seed + run, each) for run in range(n_runs))
            rates = Parallel(n_jobs)(runs)
            known = [rate for rate in rates if not isinstance(rate, str)]
            yield Outcome(table, member, known, rates.count("asked"), rates.count("refused"))


def compare_certificates(n_runs: int, seed: int, n_jobs: int, each: bool) -> int:
    """Print a row for each kind of table and member; return 1 if one has too many violations."""
    print(
        "| table | member | runs | asked | refused | violated | p-value | mean true rate | held |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    held = True
    for one in outcomes(n_runs, seed, n_jobs, each):
        mean = f"{np.mean(one.rates):.2%}" if one.rates else "-"
        print(
            f"| {one.table} | {one.member} | {n_runs} | {one.n_asked} | {one.n_refused} "
            f"| {one.n_violated} | {one.p_value:.2g} | {mean} | {'yes' if one.held else 'NO'} |",
            flush=True,
        )
        held = held and one.held
    return int(not held)


def search_real_tables() -> int:
    """Print the copies that are found in each data set; return 1 if a question is asked."""
    print("| data set | rows | equal | nearly equal | question |")
    print("|---|---|---|---|---|")
    asked = 0
    for name in datasets.names(available=True):
        bunch = datasets.load(name, as_frame=True)
        y = bunch.target.to_numpy()
        if not len(bunch.target_names):  # a number
            y = y > np.median(y)
        try:
            sizes = Dialog.plan_split(bunch.data, y)
            found = f"{sizes.copies} | {sizes.near_copies} | no"
        except SplitError as error:
            asked += error.code == "many_copies"
            found = f"- | - | {'YES' if error.code == 'many_copies' else error.code}"
        print(f"| {name} | {len(y):,} | {found} |", flush=True)
    return int(asked > 0)


def compare_times(sizes: tuple[int, ...] = (5000, 50_000, 500_000)) -> int:
    """Print the time of the split, which looks for copies, and of the whole training."""
    print("| rows | split (s) | training (s) | fraction |")
    print("|---|---|---|---|")
    slow = False
    for n in sizes:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 20))
        X[:, 15:] = rng.integers(0, 5, size=(n, 5))
        y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1
        began = perf_counter()
        Dialog.plan_split(X, y)
        split = perf_counter() - began
        began = perf_counter()
        Dialog.from_data(X, y, random_state=0)
        training = perf_counter() - began
        slow = slow or split > 0.05 * training
        print(f"| {n:,} | {split:.2f} | {training:.1f} | {split / training:.1%} |", flush=True)
    return int(slow)


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.duplicates", description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="runs of each row")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first run")
    parser.add_argument("--jobs", type=int, default=2, help="runs in parallel")
    parser.add_argument("--only", default="", metavar="TEXT", help="tables with this in their name")
    parser.add_argument("--each", action="store_true", help="count each row")
    parser.add_argument("--real", action="store_true", help="search all data sets instead")
    parser.add_argument("--time", action="store_true", help="compare times instead")
    options = parser.parse_args(arguments)
    if options.real:
        return search_real_tables()
    if options.time:
        return compare_times()
    for name in [name for name in TABLES if options.only not in name]:
        del TABLES[name]
    return compare_certificates(options.runs, options.seed, options.jobs, options.each)


if __name__ == "__main__":
    sys.exit(main())
