"""The distribution of test errors under a valid guarantee: sums of beta-binomial counts.

If the threshold is the order statistic that leaves c of n certification samples of a class on the
wrong side, and scores do not tie, the true error rate of that class is Beta(c + 1, n − c), and the
number of errors among m test samples of the class is beta-binomial. This holds for a random split
whatever the distribution of the data, because the certification and test samples of a class are
exchangeable. Ties make the count smaller, and so does a stricter threshold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor

import numpy as np
from scipy.stats import betabinom

from experiments._parts import Ints

N_DRAWS = 20_000
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Sizes:
    """What the distribution of a count of test errors depends on.

    Attributes
    ----------
    n, allowed : int
        Certification samples of the limited class, and how many of them may be errors.
    m : int
        Test samples of the limited class.
    """

    n: int
    allowed: int
    m: int


def draw_sums(sizes: Iterable[Sizes], seed: int, n_draws: int = N_DRAWS) -> Ints:
    """Draw the sum of independent beta-binomial counts."""
    rng = np.random.default_rng(seed)
    total = np.zeros(n_draws, dtype=np.int64)
    for one in sizes:
        rates = rng.beta(one.allowed + 1, one.n - one.allowed, n_draws)
        total += rng.binomial(one.m, rates)
    return total


def p_value(observed: int, draws: Ints) -> float:
    """Estimate the probability of a sum at least as large; it is never 0, as draws are finite."""
    return float((1 + (draws >= observed).sum()) / (1 + len(draws)))


def largest_count_within(m: int, rate: float) -> int:
    """Compute the largest count of m samples that does not exceed a rate."""
    return floor(m * rate + _ROUNDING)


def probability_exceeded(one: Sizes, rate: float) -> float:
    """Compute how often a test set shows more than the rate although the guarantee is valid."""
    most = largest_count_within(one.m, rate)
    return float(betabinom.sf(most, one.m, one.allowed + 1, one.n - one.allowed))
