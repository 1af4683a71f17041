"""The certificate that can be expected before the certification set is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._json import SCHEMA_VERSION, json_ready
from margrave._messages import name_class
from margrave._typing import Flags, Floats, Ints
from margrave.confusion import Bound, Confusion, Objective, Preference
from margrave.steer._order_statistic import forbids_rejecting, is_trivial, supported_rate
from margrave.steer._plan import Outcomes, Plan, TuningScores, make_plan, simulate
from margrave.steer._thresholds import best_decision, best_rejecting_decision

# The range that is stated for a rate, and the probability that a nearest preference has at least.
_RANGE = (5, 95)
_LIKELY = 0.9
IMPROBABLE = 0.5
# The factors by which limits are loosened in search of a preference that can be certified.
_FACTORS = tuple(1.1**step for step in range(48))
_DIGITS = 6


def beats_guessing(counts: NDArray[Any]) -> Flags:
    """Return of each class whether its samples are predicted as it more often than others are.

    If not, a random guess that predicts the class as often finds at least as many of its samples.

    Parameters
    ----------
    counts : ndarray of shape (..., k, k + 1)
        Confusion matrices.
    """
    k, sizes = counts.shape[-2], counts.sum(axis=-1)
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    wrong = counts[..., :k].sum(axis=-2) - right
    others = sizes.sum(axis=-1, keepdims=True) - sizes
    return np.asarray(right * others > wrong * sizes)


@dataclass(frozen=True)
class ExpectedCell:
    """A cell of the expected confusion matrix, as rates within its true class.

    Attributes
    ----------
    true, predicted : label
        The true and the predicted class; None as the predicted class means rejected.
    tuning : float
        The rate on the tuning set.
    rate, low, high : float or None
        The mean rate on certification sets that are certified, and its 90 % range; None if none is.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
    >>> reply = dialog.prefer("fn <= 30%")
    >>> cell = dialog.expected_certificate().cells[0]
    >>> cell.true, cell.predicted, cell.low <= cell.rate <= cell.high
    ('neg', 'neg', True)
    """

    true: Any
    predicted: Any
    tuning: float
    rate: float | None
    low: float | None
    high: float | None

    def excludes(self, rate: float) -> bool:
        """Whether a measured rate is outside of the 90 % range."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= round(rate, _DIGITS) <= self.high


@dataclass(frozen=True)
class ExpectedBound:
    """The expected rate of a bound.

    Attributes
    ----------
    bound : str
        The bound as written in a preference.
    limit : float
        The limit, as a fraction.
    at_most : bool
        Whether the limit is an upper or a lower one.
    tuning : float
        The rate on the tuning set.
    rate, low, high : float or None
        The mean rate on certification sets that are certified, and its 90 % range; None if none is.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
    >>> reply = dialog.prefer("fn <= 30%")
    >>> (bound,) = dialog.expected_certificate().bounds
    >>> bound.bound, bound.tuning <= 0.3, bound.rate < bound.tuning
    ('fn <= 30%', True, True)
    """

    bound: str
    limit: float
    at_most: bool
    tuning: float
    rate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ExpectedCertificate:
    """What a certificate will probably state, from the tuning set alone.

    Certification sets are drawn from the tuning set, with the class sizes of the real one, and
    certified. All numbers assume that the certification set is drawn like the tuning set.

    Attributes
    ----------
    preference : str
        The preference to guarantee, in rates.
    confidence, delta : float
        The confidence, and the error probability that the certificate may use.
    route : str
        How the decision will be set: "order statistics" or "tested path".
    probability : float
        The probability that the preference is certified.
    useful : float
        The probability that it is certified, and that the model predicts each class better than a
        guess, as :attr:`Certificate.useless` has it.
    bounds : tuple of ExpectedBound
        The rate of each bound.
    cells : tuple of ExpectedCell
        The rates of all cells of the confusion matrix, within each true class.
    nearest : str or None
        If `useful` is below 0.5, the preference with the same bounds and the nearest limits for
        which it is at least 0.9; None if there is none.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
    >>> reply = dialog.prefer("fn <= 1%")
    >>> expected = dialog.expected_certificate()
    >>> expected.probability
    0.0
    >>> reply = dialog.prefer(expected.nearest)
    >>> dialog.expected_certificate().probability
    1.0
    """

    preference: str
    confidence: float
    delta: float
    route: str
    probability: float
    useful: float
    bounds: tuple[ExpectedBound, ...]
    cells: tuple[ExpectedCell, ...]
    nearest: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Describe it in values that JSON can hold.

        Returns
        -------
        dict
            With the key ``schema_version`` and the attributes by their names; ``bounds`` and
            ``cells`` are lists of dictionaries.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "preference": self.preference,
            "confidence": self.confidence,
            "delta": self.delta,
            "route": self.route,
            "probability": self.probability,
            "useful": self.useful,
            "bounds": [json_ready(asdict(bound)) for bound in self.bounds],
            "cells": [json_ready(asdict(cell)) for cell in self.cells],
            "nearest": self.nearest,
        }

    def __str__(self) -> str:
        lines = [f"Probability that '{self.preference}' is certified: {self.probability:.0%}."]
        if self.useful < self.probability:
            lines.append(f"Probability that the model is then also useful: {self.useful:.0%}.")
        if self.nearest is not None:
            lines.append(f"The nearest limits that probably give a useful model: '{self.nearest}'.")
        rows = [("rate", "tuning set", "expected", "90% range"), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, *numbers in rows:
            cells = [f"{one:>{width}}" for one, width in zip(numbers, widths[1:], strict=True)]
            lines.append("  ".join([f"{name:<{widths[0]}}", *cells]))
        return "\n".join(lines)

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        names = [bound.bound for bound in self.bounds]
        for cell in self.cells:
            predicted = (
                "rejected" if cell.predicted is None else f"predicted {name_class(cell.predicted)}"
            )
            names.append(f"{name_class(cell.true)} {predicted}")
        rates: list[ExpectedBound | ExpectedCell] = [*self.bounds, *self.cells]
        for name, one in zip(names, rates, strict=True):
            if one.rate is None:
                yield name, f"{one.tuning:.1%}", "", ""
            elif max(one.tuning, one.rate, one.high or 0.0) > 0:
                yield (
                    name,
                    f"{one.tuning:.1%}",
                    f"{one.rate:.1%}",
                    f"{one.low:.1%} to {one.high:.1%}",
                )


def expect_certificate(
    plan: Plan,
    tuning: TuningScores,
    matrix: Confusion,
    sizes: Ints,
    confidence: float,
    delta: float,
) -> ExpectedCertificate:
    """Simulate the certificates of a plan.

    Parameters
    ----------
    plan : Plan
        What to guarantee and how.
    tuning : TuningScores
        The scores of the tuning set.
    matrix : Confusion
        The confusion matrix of the tuning set.
    sizes : ndarray of int
        Class sizes of the certification set.
    confidence, delta : float
        The confidence, and the error probability that the certificate may use.
    """
    outcomes = simulate(plan, tuning, sizes, delta)
    certified, rates = outcomes.certified, outcomes.rates
    tuned = matrix.counts / np.maximum(matrix.counts.sum(axis=1, keepdims=True), 1)
    cells = [
        ExpectedCell(true, predicted, float(tuned[c, p]), *_summarize(rates[certified, c, p]))
        for c, true in enumerate(plan.classes)
        for p, predicted in enumerate([*plan.classes, None])
    ]
    bounds = []
    for bound in plan.preference.bounds:
        amount, base = bound.cells(matrix)
        n = outcomes.matrices[:, base].sum(axis=1)
        found = outcomes.matrices[:, amount].sum(axis=1) / np.maximum(n, 1)
        rate = float(matrix.counts[amount].sum() / max(matrix.counts[base].sum(), 1))
        bounds.append(
            ExpectedBound(
                str(bound), float(bound.limit), bound.at_most, rate, *_summarize(found[certified])
            )
        )
    return ExpectedCertificate(
        preference=str(plan.preference.limits),
        confidence=float(confidence),
        delta=float(delta),
        route=plan.route,
        probability=float(certified.mean()),
        useful=float(_are_useful(outcomes).mean()),
        bounds=tuple(bounds),
        cells=tuple(cells),
    )


def _are_useful(outcomes: Outcomes) -> Flags:
    """Return which simulated certification sets are certified with a useful model."""
    return outcomes.certified & beats_guessing(outcomes.matrices).all(axis=1)


def _summarize(rates: Floats) -> tuple[float | None, float | None, float | None]:
    """Return the mean and the range of rates."""
    if not len(rates):
        return None, None, None
    numbers = [rates.mean(), *np.percentile(rates, _RANGE)]
    rate, low, high = (round(float(number), _DIGITS) for number in numbers)
    return rate, min(low, rate), max(high, rate)


def find_nearest(
    preference: Preference, scores: Floats, objective: Objective, sizes: Ints, delta: float
) -> Preference | None:
    """Loosen all limits by the smallest factor with which a useful model is probably certified.

    None if a limit would then allow everything.

    Parameters
    ----------
    preference : Preference
        The preference that is not, in rates.
    scores : ndarray
        Scores of the tuning set.
    objective : Objective
        The objective on the tuning set.
    sizes : ndarray of int
        Class sizes of the certification set.
    delta : float
        The error probability that the certificate may use.
    """
    tuning = TuningScores.of(scores, objective)
    matrix = objective.matrix(objective.codes)
    too_strict, enough, found = -1, len(_FACTORS), None
    while enough - too_strict > 1:
        middle = (too_strict + enough) // 2
        tried = _loosen(preference, _FACTORS[middle], matrix, sizes, delta)
        wanted = replace(objective, preference=tried)
        best = best_rejecting_decision if tried.allows_rejecting else best_decision
        plan = make_plan(tried, best(wanted, scores), scores, wanted, sizes, delta, tuning)
        if _are_useful(simulate(plan, tuning, sizes, delta)).mean() >= _LIKELY:
            enough, found = middle, tried
        else:
            too_strict = middle
    if found is None or _count_trivial(found) > _count_trivial(preference):
        return None
    return found


def _count_trivial(preference: Preference) -> int:
    return sum(is_trivial(float(bound.limit), bound.at_most) for bound in preference.bounds)


def _loosen(
    preference: Preference, factor: float, matrix: Confusion, sizes: Ints, delta: float
) -> Preference:
    """Multiply what all bounds allow, to at least what so many samples can support."""
    bounds = []
    part = delta / len(preference.bounds)
    for bound in preference.bounds:
        rows = bound.cells(matrix)[1].any(axis=1)
        least = supported_rate(int(sizes[rows].sum()), part) / 100
        bounds.append(bound if forbids_rejecting(bound) else _loosen_bound(bound, factor, least))
    return preference.replace_bounds(bounds, matrix)


def _loosen_bound(bound: Bound, factor: float, least: float) -> Bound:
    allowed = float(bound.limit if bound.at_most else 1 - bound.limit)
    looser = min(max(allowed * factor, least), 1.0)
    if looser <= allowed:
        return bound
    # Two digits of a percentage, rounded up.
    digits = max(1 - int(np.floor(np.log10(100 * looser))), 0)
    exact = Fraction(int(np.ceil(round(looser * 100 * 10**digits, 6))), 100 * 10**digits)
    return replace(bound, limit=exact if bound.at_most else 1 - exact)
