"""How often guarantees fail if they are misused: ``python -m benchmarks.certificates``.

The script prints four tables in about a minute:

1. *Tuning*: how often the true rate is above the limit if the threshold is the least strict one
   that meets the limit on the tuning set. This is exact.
2. *Several models, one certification set*: each model gets a valid threshold, and the model with
   the highest recall on the certification set is chosen. The scores of a class are normal with
   variance 1, the classes are two units apart, and all models are equally good; any two of them
   have the same correlation within a class. As in a dialog, no more samples are used than the
   allowed errors need. This is a simulation; the number for one model is exact.
3. *Repeated checks* of a model whose true rate is exactly at its limit, or above it. The numbers of
   a test that uses each sample once are exact. A test of all samples so far is simulated.
4. *Groups*: each group has a mean score of its own, and the certification set has one sample of
   each group, or all of them. This is a simulation; the number for one sample of each is exact.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from margrave.steer._order_statistic import fewest_sufficient

DELTA = 0.05
DISTANCE = 2.0
WEEKS = 52

Floats = NDArray[np.float64]


def allowed_errors(n: int, limit: float, delta: float = DELTA) -> int:
    """Return the largest number of errors among n samples that supports a limit; -1 if none."""
    counts = np.arange(n + 1)
    return int(np.sum(binom.cdf(counts, n, limit) <= delta)) - 1


def certified_failure(n: int, limit: float) -> float:
    """Return how often a threshold that n certification samples set exceeds the limit."""
    return float(binom.cdf(allowed_errors(n, limit), n, limit))


def tuning_failure(n: int, limit: float) -> float:
    """Return how often a threshold that uses the whole limit on n tuning samples exceeds it.

    A threshold with c of n scores above it has a true rate that is Beta(c + 1, n - c); it is above
    the limit with the probability P(Bin(n, limit) <= c).
    """
    return float(binom.cdf(int(n * limit + 1e-9), n, limit))


@dataclass(frozen=True)
class Choice:
    """A choice of the best of several models on one certification set.

    Attributes
    ----------
    n_models : int
        The number of models.
    n : int
        The number of samples of each class in the certification set.
    limit : float
        The guaranteed rate of the negative class.
    correlation : float
        The correlation of the scores of two models within a class.
    """

    n_models: int
    n: int
    limit: float
    correlation: float

    def true_rate(self, rng: np.random.Generator) -> float:
        """Certify all models, choose the best, and return its true rate."""
        negative, positive = self._scores(0.0, rng), self._scores(DISTANCE, rng)
        n_used = fewest_sufficient(self.n, self.limit, DELTA)
        at = n_used - allowed_errors(n_used, self.limit) - 1
        thresholds = np.partition(negative[:, :n_used], at, axis=1)[:, at]
        recall = (positive > thresholds[:, None]).mean(axis=1)
        return float(norm.sf(thresholds[recall.argmax()]))

    def failure(self, n_runs: int, seed: int) -> float:
        """Return the fraction of runs in which the chosen model's true rate is above the limit."""
        rng = np.random.default_rng(seed)
        return float(np.mean([self.true_rate(rng) > self.limit for _ in range(n_runs)]))

    def _scores(self, mean: float, rng: np.random.Generator) -> Floats:
        shared, own = np.sqrt(self.correlation), np.sqrt(1 - self.correlation)
        common = rng.normal(size=self.n)
        scores: Floats = mean + shared * common + own * rng.normal(size=(self.n_models, self.n))
        return scores


def alarm_probability(n: int, limit: float, rate: float, level: float) -> float:
    """Return the probability that a check of n samples with a true rate raises an alarm."""
    counts = np.arange(n + 1)
    is_alarm = binom.sf(counts - 1, n, limit) < level
    return float(binom.pmf(counts[is_alarm], n, rate).sum())


def alarm_in_a_year(n_checks: int, n: int, limit: float, rate: float, level: float) -> float:
    """Return the probability of an alarm in several checks, each of n other samples."""
    return 1 - (1 - alarm_probability(n, limit, rate, level)) ** n_checks


def alarm_on_all_so_far(
    n: int, limit: float, rate: float, level: float, n_runs: int, seed: int
) -> float:
    """Simulate a check every week of all samples since the beginning of the year."""
    rng = np.random.default_rng(seed)
    counts = rng.binomial(n, rate, size=(n_runs, WEEKS)).cumsum(axis=1)
    p = binom.sf(counts - 1, n * np.arange(1, WEEKS + 1), limit)
    return float((p < level).any(axis=1).mean())


@dataclass(frozen=True)
class Groups:
    """Certification on samples that belong to groups, each with a rate of its own.

    Attributes
    ----------
    n_groups, size : int
        The number of groups in the certification set, and of samples of each group.
    limit : float
        The guaranteed rate.
    spread : float
        The standard deviation of the means of the groups, as a fraction of that of all scores.
    """

    n_groups: int
    size: int
    limit: float
    spread: float

    def failure(self, n_runs: int, seed: int) -> float:
        """Return how often a threshold set on all samples exceeds the limit in new groups."""
        rng = np.random.default_rng(seed)
        n, within = self.n_groups * self.size, np.sqrt(1 - self.spread**2)
        at = n - allowed_errors(n, self.limit) - 1
        rates = []
        for _ in range(n_runs):
            means = self.spread * rng.normal(size=(self.n_groups, 1))
            scores = (means + within * rng.normal(size=(self.n_groups, self.size))).ravel()
            rates.append(norm.sf(np.partition(scores, at)[at]))
        return float(np.mean(np.array(rates) > self.limit))


def tuning_table() -> Iterator[str]:
    """Yield the rows of the first table."""
    yield "| tuning samples of the class | limit 1 % | 2 % | 5 % |"
    yield "|---|---|---|---|"
    for n in (500, 2_000, 10_000, 100_000):
        cells = [f"{tuning_failure(n, limit):.1%}" for limit in (0.01, 0.02, 0.05)]
        yield f"| {n:,} | {' | '.join(cells)} |"


CORRELATIONS = (0.0, 0.5, 0.8, 0.95)


def choice_table(n_runs: int, seed: int) -> Iterator[str]:
    """Yield the rows of the second table."""
    heads = [f"best of 10, correlation {one:g}" for one in CORRELATIONS]
    yield f"| samples of each class | limit | one model | {' | '.join(heads)} |"
    yield "|---" * (3 + len(heads)) + "|"
    for n, limit in ((300, 0.02), (300, 0.05), (600, 0.02), (600, 0.05), (3_000, 0.05)):
        several = [
            Choice(10, n, limit, correlation).failure(n_runs, seed) for correlation in CORRELATIONS
        ]
        one = certified_failure(fewest_sufficient(n, limit, DELTA), limit)
        cells = [f"{fraction:.1%}" for fraction in (one, *several)]
        yield f"| {n:,} | {limit:.0%} | {' | '.join(cells)} |"


def check_table(n: int, limit: float, n_runs: int, seed: int) -> Iterator[str]:
    """Yield the rows of the third table: n samples are labelled each week."""
    rates = (limit, 1.25 * limit, 1.5 * limit)
    heads = [f"true rate {100 * rate:g} %" for rate in rates]
    yield f"| checks | level of each | {' | '.join(heads)} |"
    yield "|---" * (2 + len(heads)) + "|"
    for weeks, level in ((1, DELTA), (1, DELTA / WEEKS), (13, DELTA / 4), (WEEKS, DELTA)):
        n_checks = WEEKS // weeks
        found = [alarm_in_a_year(n_checks, weeks * n, limit, rate, level) for rate in rates]
        cells = [f"{fraction:.1%}" for fraction in found]
        yield f"| {n_checks} | {level:.4g} | {' | '.join(cells)} |"
    for level in (DELTA, DELTA / WEEKS):
        found = [alarm_on_all_so_far(n, limit, rate, level, n_runs, seed) for rate in rates]
        cells = [f"{fraction:.1%}" for fraction in found]
        yield f"| {WEEKS}, of all samples so far | {level:.4g} | {' | '.join(cells)} |"


def group_table(n_runs: int, seed: int) -> Iterator[str]:
    """Yield the rows of the fourth table."""
    yield "| groups | samples of each | limit | one sample of each group | all samples |"
    yield "|---|---|---|---|---|"
    for n_groups, size in ((100, 5), (100, 20), (400, 5), (400, 20)):
        one = certified_failure(n_groups, 0.05)
        every = Groups(n_groups, size, 0.05, spread=0.7).failure(n_runs, seed)
        yield f"| {n_groups} | {size} | 5% | {one:.1%} | {every:.1%} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="runs of each simulation")
    parser.add_argument("--samples", type=int, default=500, help="samples labelled each week")
    parser.add_argument("--limit", type=float, default=0.02, help="the limit that is checked")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulations")
    options = parser.parse_args(arguments)
    n_runs, seed = options.runs, options.seed
    for title, rows in (
        ("True rate above the limit, for a threshold at the limit on tuning", tuning_table()),
        (f"Broken guarantees, {n_runs:,} runs", choice_table(n_runs, seed)),
        (
            f"Alarms in a year, {options.samples:,} samples of the class a week, "
            f"limit {100 * options.limit:g} %",
            check_table(options.samples, options.limit, n_runs, seed),
        ),
        (f"Broken guarantees with groups, {n_runs:,} runs", group_table(n_runs, seed)),
    ):
        print(f"{title}\n")
        for row in rows:
            print(row, flush=True)
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
