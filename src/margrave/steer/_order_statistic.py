"""What a sample says about a rate: exact binomial tests, bounds and the sizes they need.

A promise "at most a share α of a class" at confidence 1 − δ is kept on n unseen samples of that
class if at most c of them are wrong, c the largest with P(Bin(n, α) ≤ c) ≤ δ. Cutting a score where
c samples are beyond it is the order statistic of Neyman–Pearson classification (Tong, Feng and Li,
2018): the k-th smallest score, k the smallest with P(Bin(n, 1 − α) ≥ k) ≤ δ, is the same cut.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

from margrave._typing import Floats
from margrave.confusion import Bound, Confusion, Preference


def p_value(count: ArrayLike, n: ArrayLike, limit: float, at_most: bool) -> Floats:
    """How probable a count at least as good is where the limit is just broken.

    Parameters
    ----------
    count, n : array-like of int
        So many of n samples are of the kind that is limited.
    limit : float
        The share.
    at_most : bool
        Whether it is the largest or the smallest that is allowed.
    """
    count, n = np.asarray(count), np.asarray(n)
    if is_trivial(limit, at_most):
        return np.zeros(np.broadcast(count, n).shape)
    tail = binom.cdf(count, n, limit) if at_most else binom.sf(count - 1, n, limit)
    return np.where(n > 0, tail, 1.0)


def is_trivial(limit: float, at_most: bool) -> bool:
    """Whether nothing can break a limit."""
    return limit >= 1 if at_most else limit <= 0


def largest_allowed_count(n: int, limit: float, delta: float) -> int:
    """The largest count among n that proves a share of at most `limit`; -1 if none does."""
    if limit >= 1:
        return n
    c = int(binom.ppf(delta, n, limit)) + 1  # near it, on the safe side of rounding
    while c >= 0 and binom.cdf(c, n, limit) > delta:
        c -= 1
    return c


def samples_needed(limit: float, delta: float) -> int | None:
    """How many samples without any error prove a share of at most `limit`; None if no number."""
    if not 0 < limit < 1:
        return None if limit <= 0 else 0
    n = max(math.ceil(math.log(delta) / math.log1p(-limit)) - 1, 1)
    while largest_allowed_count(n, limit, delta) < 0:  # once or twice: as exact as the test itself
        n += 1
    return n


def smallest_provable_rate(n: int, delta: float) -> float:
    """The smallest share that n samples without any error prove."""
    return float(-math.expm1(math.log(delta) / n)) if n else 1.0


def clopper_pearson(count: int, n: int, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval for a share, at least at this level."""
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, count, n - count + 1)) if count > 0 else 0.0
    high = float(beta.ppf(1 - tail, count + 1, n - count)) if count < n else 1.0
    return low, high


class GuaranteeError(ValueError):
    """The samples at hand cannot support a promise; the message says what would.

    Attributes
    ----------
    looked : bool
        Whether the certify samples' scores were looked at, so that they are spent.
    """

    __module__ = "margrave.steer"

    def __init__(self, message: str, looked: bool = False) -> None:
        spent = " The certify samples are spent by this test." if looked else ""
        super().__init__(message + spent)
        self.used_up = looked


def forbids_rejecting(bound: Bound) -> bool:
    """Whether a bound says that nothing is rejected: kept by the decision, not by chance."""
    return bound.word == "rejected" and bound.at_most and bound.limit == 0


def one_sided_bounds(
    preference: Preference, matrix: Confusion
) -> list[tuple[Bound, NDArray[np.bool_], int]]:
    """Bounds of two classes as shares of some classes that may get one answer; [] if one is not.

    Returns
    -------
    list of (bound, of which classes, which answer is limited)
    """
    found = []
    for bound in preference.all_bounds:
        if forbids_rejecting(bound):
            continue
        if bound.word == "rejected":
            return []
        amount, base = bound.cells(matrix)
        rows = np.asarray(base.any(axis=1))
        whole_rows = bool((base == rows[:, None]).all())
        answers = [int(a) for a in np.flatnonzero(amount[rows].any(axis=0))]
        if not whole_rows or len(answers) != 1 or not amount[rows, answers[0]].all():
            return []
        if not is_trivial(float(bound.limit), bound.at_most):
            found.append((bound, rows, answers[0] if bound.at_most else 1 - answers[0]))
    return found


def has_order_statistics(wanted: Preference, matrix: Confusion) -> bool:
    """Whether every bound that can be broken has an order statistic."""
    open_to_chance = [
        bound
        for bound in wanted.bounds
        if not forbids_rejecting(bound) and not is_trivial(float(bound.limit), bound.at_most)
    ]
    return len(one_sided_bounds(wanted, matrix)) == len(open_to_chance)


def supported_rate(n: int, delta: float) -> float:
    """The smallest share that n samples can support, in %, rounded up to what is written."""
    return float(np.ceil(1e4 * smallest_provable_rate(n, delta) - 1e-9) / 100)
