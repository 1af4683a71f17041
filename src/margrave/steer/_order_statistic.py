"""Exact binomial tests and bounds for a rate, and the numbers of samples that they need.

The guarantee "at most a fraction α of a class" holds at confidence 1 − δ if at most c of n unused
samples of that class are errors, where c is the largest number with P(Bin(n, α) ≤ c) ≤ δ. The
threshold that leaves c scores beyond it is the order statistic of Neyman–Pearson classification
(Tong, Feng and Li, 2018): the k-th smallest score, where k is the smallest number with
P(Bin(n, 1 − α) ≥ k) ≤ δ.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincc
from scipy.stats import beta, binom

from margrave._errors import MargraveError
from margrave._typing import Floats
from margrave.confusion import Bound, Confusion, Preference


def p_value(count: ArrayLike, n: ArrayLike, limit: float, at_most: bool) -> Floats:
    """Return the probability of a count at least as good if the rate is exactly at its limit.

    Parameters
    ----------
    count, n : array-like of int
        The number of samples that the bound limits, and the number of all samples.
    limit : float
        The limit, as a fraction.
    at_most : bool
        Whether the limit is an upper or a lower one.
    """
    count, n = np.asarray(count), np.asarray(n)
    if is_trivial(limit, at_most):
        return np.zeros(np.broadcast(count, n).shape)
    tail = binom.cdf(count, n, limit) if at_most else binom.sf(count - 1, n, limit)
    return np.where(n > 0, tail, 1.0)


def _cdf(count: int, n: int, p: float) -> float:
    """Return P(Bin(n, p) <= count) for a count below n; `scipy.stats` takes 40 times as long."""
    return float(betaincc(count + 1, n - count, p))


def is_trivial(limit: float, at_most: bool) -> bool:
    """Whether no rate can violate a limit."""
    return limit >= 1 if at_most else limit <= 0


def largest_allowed_count(n: int, limit: float, delta: float) -> int:
    """Return the largest count of n that proves a rate of at most `limit`; -1 if none does."""
    if limit >= 1:
        return n
    allowed, too_many = -1, n
    while too_many - allowed > 1:
        middle = (allowed + too_many) // 2
        if _cdf(middle, n, limit) > delta:
            too_many = middle
        else:
            allowed = middle
    return allowed


def samples_needed(limit: float, delta: float, allowed: int = 0) -> int | None:
    """Return the fewest samples that prove a rate of at most `limit`; None if no number does.

    Parameters
    ----------
    limit : float
        The limit, as a fraction.
    delta : float
        The error probability.
    allowed : int, default=0
        The number of errors among these samples.
    """
    if not 0 < limit < 1:
        return None if limit <= 0 else 0
    too_few, enough = allowed, 2 * allowed + 1
    while _cdf(allowed, enough, limit) > delta:
        too_few, enough = enough, 2 * enough
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _cdf(allowed, middle, limit) > delta:
            too_few = middle
        else:
            enough = middle
    return enough


def fewest_sufficient(n: int, limit: float, delta: float) -> int:
    """Return the smallest number of samples that allows as many errors as n samples do.

    The allowed count grows in steps: with samples between two steps the threshold is only stricter.
    """
    allowed = largest_allowed_count(n, limit, delta)
    return n if allowed < 0 or allowed >= n else samples_needed(limit, delta, allowed) or n


def smallest_provable_rate(n: int, delta: float) -> float:
    """Return the smallest limit on a rate that n samples without errors prove."""
    return float(-math.expm1(math.log(delta) / n)) if n else 1.0


def clopper_pearson(count: int, n: int, level: float) -> tuple[float, float]:
    """Return the Clopper–Pearson interval of a rate, with at least this confidence level."""
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, count, n - count + 1)) if count > 0 else 0.0
    high = float(beta.ppf(1 - tail, count + 1, n - count)) if count < n else 1.0
    return low, high


class GuaranteeError(MargraveError):
    """Raised if the certification set cannot support a guarantee.

    The message states what is needed.

    Parameters
    ----------
    message : str
        The reason.
    code : str
        One of the codes below.
    used_up : bool, default=False
        Whether the scores of the certification set were used to find this out.
    **fields
        The values that the message mentions.

    Attributes
    ----------
    code : str
        "no_preference", "no_certification_set", "used_up" or "confidence" (the ledger allows no
        such certificate), "used_samples" (the samples were used before), "many_copies" (that the
        user has to decide about), "too_few_samples", "trivial" (every model meets the limits),
        "improbable" (a useful model is probably not certified), "conflict" (the limits cannot be
        guaranteed together) or "not_supported" (the rates of the certification set do not support
        the guarantee).
    fields : dict
        The values that the message mentions; for "too_few_samples" the bound, the confidence, the
        number of samples ``n``, the number ``needed`` (None if no number is enough) and the
        smallest limit that is ``supported``, as a fraction; for "improbable" the ``probability`` of
        a certificate, that of one for a ``useful`` model, and the ``nearest`` limits that are
        probable; if a use was recorded in a ledger, its ``use_number`` there.
    used_up : bool
        Whether the scores of the certification set were used. If True, the ledger of a dialog
        counts this test as a certificate.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import GuaranteeError, SteeredClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> try:
    ...     SteeredClassifier(GaussianNB(), preference="fn <= 1%", random_state=0).fit(X, y)
    ... except GuaranteeError as error:
    ...     print(error.code, error.fields["n"], error.fields["needed"], error.fields["supported"])
    too_few_samples 174 299 0.0171
    """

    __module__ = "margrave.steer"

    used_up: bool

    def __init__(self, message: str, *, code: str, used_up: bool = False, **fields: Any) -> None:
        suffix = " This test counts as a use of the certification set." if used_up else ""
        super().__init__(message + suffix, code=code, **fields)
        self.used_up = used_up


def forbids_rejecting(bound: Bound) -> bool:
    """Whether a bound forbids rejecting: the decision alone determines if it is met."""
    return bound.word == "rejected" and bound.at_most and bound.limit == 0


class Side(NamedTuple):
    """A bound for two classes that limits one prediction, or rejecting, within some true classes.

    Attributes
    ----------
    bound : Bound
        The bound.
    rows : ndarray of bool
        The true classes.
    threshold : int
        The threshold that the bound limits: 0 is the lower one, 1 the upper one, and 2 stands for
        both, if the bound limits rejecting.
    from_below : bool
        Whether the bound limits the threshold from below: it is then about the samples above it.
    """

    bound: Bound
    rows: NDArray[np.bool_]
    threshold: int
    from_below: bool

    @property
    def limit(self) -> float:
        """The limit on the fraction of samples beyond the threshold."""
        return float(self.bound.limit if self.bound.at_most else 1 - self.bound.limit)


REJECTING = 2


def find_sides(preference: Preference, matrix: Confusion) -> list[Side] | None:
    """Return what each bound that can be violated limits; None if one has no order statistic.

    A decision predicts the second class above its upper threshold and the first class up to its
    lower one. A bound has an order statistic if its base are whole classes, and if it is about one
    prediction in all of them: "at most" limits that prediction, "at least" all the others.
    """
    if len(matrix.classes) != 2:
        return None
    sides = []
    for bound in preference.all_bounds:
        if forbids_rejecting(bound) or is_trivial(float(bound.limit), bound.at_most):
            continue
        amount, base = bound.cells(matrix)
        if not amount.any():  # implied for the classes that others name: there are none
            continue
        rows = np.asarray(base.any(axis=1))
        columns = [int(column) for column in np.flatnonzero(amount[rows].any(axis=0))]
        one_prediction = len(columns) == 1 and bool(amount[rows, columns[0]].all())
        if not one_prediction or not (base == rows[:, None]).all():
            return None
        if columns[0] == REJECTING and not bound.at_most:
            return None
        sides.append(Side(bound, rows, columns[0], bound.at_most == (columns[0] == 1)))
    return sides


def one_sided_bounds(
    preference: Preference, matrix: Confusion
) -> list[tuple[Bound, NDArray[np.bool_], int]]:
    """Write bounds for two classes as upper limits on one prediction within some true classes.

    Returns
    -------
    list of (bound, mask of the true classes, limited prediction)
        Empty if a bound has another form, or limits rejecting.
    """
    sides = find_sides(preference, matrix) or []
    if any(side.threshold == REJECTING for side in sides):
        return []
    return [(side.bound, side.rows, int(side.from_below)) for side in sides]


def supported_rate(n: int, delta: float) -> float:
    """Return the smallest limit that n samples can support, in percent, rounded up to 0.01."""
    return float(np.ceil(1e4 * smallest_provable_rate(n, delta) - 1e-9) / 100)
