"""Bounds on the mistakes of a margin classifier: document 002, section 3.

(10) and (12) to (15), as pure functions of numbers. Two corrections. In (13) and (14) the
complexity and the last term are subtracted where they must be added: from (12),

    E[Yf] ≥ m − R − 3B √(2 ln(2/δ)/n),

with m the mean margin on the samples, Markov's inequality for B − Yf ≥ 0 gives

    P(Yf ≤ −ρ) ≤ (B − m + R + 3B √(2 ln(2/δ)/n)) / (B + ρ).

As printed, a richer class would have the smaller bound. (15) has the right signs. And section 3.3
has g(z) = (1 − z)₊ with "g(0) = 0": it is 1 there and falls, so it is no transform for (15).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from margrave._typing import Floats
from margrave._validation import is_number
from margrave.mam._widths import share_of_power


def check_delta(delta: float, owner: str) -> None:
    """Refuse a δ that is no probability of failing."""
    if not (is_number(delta) and 0 < delta < 1):
        raise ValueError(f"{owner} needs delta to be a number above 0 and below 1; got {delta!r}.")


def trace_bound(trace: float, n: int) -> float:
    """(10): 2/n √tr Ω, at least the empirical Rademacher complexity (9) of unit directions."""
    return 2 / n * float(np.sqrt(trace))


def deviation(bound: float, n: int, delta: float) -> float:
    """3B √(2 ln(2/δ)/n), the last term of (12)."""
    return 3 * bound * float(np.sqrt(2 * np.log(2 / delta) / n))


@dataclass(frozen=True)
class MarginBound:
    """Everything that (12) to (15) are made of, for one classifier and one δ.

    Attributes
    ----------
    mean : float
        m, the mean margin on the samples; of transformed margins in (15).
    complexity : float
        R, or L_g R in (15).
    deviation : float
        3B √(2 ln(2/δ)/n).
    bound : float
        B: no margin is larger. B′ in (15).
    """

    mean: float
    complexity: float
    deviation: float
    bound: float

    @property
    def expected(self) -> float:
        """(12): the expected margin is at least this."""
        return self.mean - self.complexity - self.deviation

    def mistakes(self, rho: Floats | float) -> Floats:
        """(13), (14), (15): P(Yf ≤ −ρ) is at most this; may be above 1, and then says nothing."""
        return np.asarray((self.bound - self.expected) / (self.bound + np.asarray(rho)))


def of_cut(cut: float | None, limit: float | None, n: int, delta: float) -> tuple[float, float]:
    """What a chosen cut adds to the complexity, and the δ that is left.

    Cuts of at most b either way make the class of functions larger by at most 2b/√n.

    Parameters
    ----------
    cut : float or None
        The cut; None if none was chosen.
    limit : float or None
        b, if it was known before. Else it is the next power of two above |cut|, and each power 2^j
        gets a share of δ.
    n : int
        Samples.
    delta : float
        δ.
    """
    if cut is None:
        return 0.0, delta
    if limit is not None:
        return 2 * limit / np.sqrt(n), delta
    power = int(np.ceil(np.log2(abs(cut)))) if cut else 0
    with np.errstate(over="ignore"):
        size = float(np.ldexp(1.0, power))
    return 2 * size / np.sqrt(n), delta * share_of_power(power)


def highest_rate(wrong: Floats, of: Floats, delta: float) -> Floats:
    """Clopper and Pearson: rates are at most this with probability 1 − δ each; 1 of none."""
    some = np.maximum(of, 1)
    highest = beta.ppf(1 - delta, wrong + 1, np.maximum(some - wrong, 1e-300))
    return np.where((of == 0) | (wrong >= of), 1.0, highest)
