"""What a test part shows of a promise that is kept: sums of beta-binomial counts.

A cut that leaves c of n certify samples of a class on the wrong side has, if scores do not tie, a
true rate of Beta(c + 1, n − c): the share beyond an order statistic. Of m test samples of the class
so many are wrong as a beta-binomial says. That holds for a random split whatever the data are: the
certify and test samples of a class are exchangeable. With ties the count is smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor

import numpy as np
from scipy.stats import betabinom, binom

from experiments._parts import Ints

DRAWS = 20_000
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Drawn:
    """What a count depends on.

    Attributes
    ----------
    n, allowed : int
        Certify samples of the class, and how many of them may be wrong.
    m : int
        Test samples of the class.
    """

    n: int
    allowed: int
    m: int


def sums(drawn: Iterable[Drawn], seed: int, draws: int = DRAWS) -> Ints:
    """Draws of the sum of independent counts."""
    rng = np.random.default_rng(seed)
    total = np.zeros(draws, dtype=np.int64)
    for one in drawn:
        rates = rng.beta(one.allowed + 1, one.n - one.allowed, draws)
        total += rng.binomial(one.m, rates)
    return total


def p_value(observed: int, drawn: Ints) -> float:
    """How probable a sum as large is; never 0, since the draws are finite."""
    return float((1 + (drawn >= observed).sum()) / (1 + len(drawn)))


def p_at_limit(observed: int, m: int, rate: float) -> float:
    """How probable a count as large is if every true rate were just the limit."""
    return float(binom.sf(observed - 1, m, rate))


def most_within(m: int, rate: float) -> int:
    """The largest count of m that is not above the rate."""
    return floor(m * rate + _ROUNDING)


def broken_by_chance(one: Drawn, rate: float) -> float:
    """How often a test part shows a larger rate although nothing is wrong."""
    beyond = betabinom.sf(most_within(one.m, rate), one.m, one.allowed + 1, one.n - one.allowed)
    return float(beyond)
