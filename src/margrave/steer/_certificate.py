"""Certificates: guarantees for new samples, their sentences, and checks on new labels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from margrave._json import SCHEMA_VERSION, json_ready
from margrave._messages import name_class
from margrave._validation import check_parameters, is_number
from margrave.confusion import Bound, Confusion, Preference, format_decimal
from margrave.steer._expected import ExpectedCertificate, beats_guessing
from margrave.steer._order_statistic import clopper_pearson


@dataclass(frozen=True)
class Change:
    """The counts of one cell of errors, or of rejected samples, before and after.

    Attributes
    ----------
    true, predicted : label
        The true and the predicted class; None as the predicted class means rejected.
    before, after : int
        The counts.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> change = dialog.prefer("fn <= 30").changes[0]
    >>> print(change)
    neg predicted pos: 33 -> 63 (+30)
    >>> change.true, change.predicted, change.after - change.before
    ('neg', 'pos', 30)
    """

    true: Any
    predicted: Any
    before: int
    after: int

    def __str__(self) -> str:
        predicted = (
            "rejected" if self.predicted is None else f"predicted {name_class(self.predicted)}"
        )
        difference = self.after - self.before
        counts = f"{self.before:,} -> {self.after:,} ({difference:+,})"
        return f"{name_class(self.true)} {predicted}: {counts}"


def _round(n: float) -> str:
    """Write an expected number of samples."""
    return "fewer than 1" if 0 < n < 0.5 else f"{round(n):,}"


def list_changes(before: Confusion, after: Confusion) -> tuple[Change, ...]:
    """List the cells of errors and of rejected samples whose counts differ."""
    changes = []
    for true in after.classes:
        for predicted in [*after.classes, None]:
            counts = before[true, predicted], after[true, predicted]
            if predicted != true and counts[0] != counts[1]:
                changes.append(Change(true, predicted, *counts))
    return tuple(changes)


def describe_bound(bound: Bound, matrix: Confusion) -> str:
    """Describe a bound in words.

    Parameters
    ----------
    bound : Bound
        The bound, on a rate or on a count.
    matrix : Confusion
        A confusion matrix of the samples that a count refers to.
    """
    amount, base = bound.cells(matrix)
    limit = f"{'at most' if bound.at_most else 'at least'} "
    if bound.is_fraction:
        limit += f"{format_decimal(100 * bound.limit)}%"
    else:
        limit += f"{int(bound.limit):,} of {int(matrix.counts[base].sum()):,}"
    labels = [name_class(label) for label in matrix.classes]
    outcomes = [*(f"predicted {label}" for label in labels), "rejected"]
    rows, columns = np.flatnonzero(base.any(axis=1)), np.flatnonzero(amount.any(axis=0))
    if bound.word == "precision":
        label = labels[columns[0]]
        return f"{limit} of the samples predicted {label} are {label}"
    outcome = " or ".join(outcomes[column] for column in columns)
    if len(rows) < len(labels):
        of = "of " if bound.is_fraction else ""
        return f"{limit} {of}{' or '.join(labels[row] for row in rows)} {outcome}"
    if bound.word in ("accuracy", "correct"):
        outcome = "classified correctly"
    elif bound.word == "errors":
        outcome = "misclassified"
    return f"{limit} {'of all samples' if bound.is_fraction else 'samples'} are {outcome}"


@dataclass(frozen=True)
class Guarantee:
    """One guaranteed bound of a certificate, and its rate in the certification set.

    Attributes
    ----------
    bound : str
        The bound as written in a preference.
    sentence : str
        The bound in words.
    limit : float
        The limit, as a fraction.
    at_most : bool
        Whether the limit is an upper or a lower one.
    count, n : int
        The number of samples of the certification set that the bound limits, and the number of
        samples that its rate refers to.
    delta : float
        Error probability of this bound alone.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> model = SteeredClassifier(GaussianNB(), preference="fn <= 30%", random_state=0).fit(X, y)
    >>> (guarantee,) = model.certificate_.guarantees
    >>> guarantee.sentence
    'at most 30% of pos predicted neg'
    >>> guarantee.limit, round(guarantee.rate, 2)
    (0.3, 0.24)
    """

    bound: str
    sentence: str
    limit: float
    at_most: bool
    count: int
    n: int
    delta: float

    @property
    def rate(self) -> float:
        """The rate in the certification set."""
        return self.count / self.n if self.n else float("nan")

    def __str__(self) -> str:
        count = f"{self.count:,} of {self.n:,}"
        return f"{self.sentence} ({count} in the certification set, {self.rate:.2%})"


@dataclass(frozen=True)
class Cell:
    """A confidence interval for one cell of the confusion matrix, as a rate within its true class.

    Attributes
    ----------
    true, predicted : label
        The true and the predicted class; None as the predicted class means rejected.
    count, n : int
        The count of the cell in the certification set, and of its true class.
    low, high : float
        The interval.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> model = SteeredClassifier(GaussianNB(), preference="fn <= 30%", random_state=0).fit(X, y)
    >>> for cell in model.certificate_.cells:
    ...     if cell.true == "pos":
    ...         print(cell.predicted, cell.count, f"{cell.low:.1%} to {cell.high:.1%}")
    neg 41 17.8% to 31.1%
    pos 130 68.9% to 82.2%
    None 0 0.0% to 2.1%
    """

    true: Any
    predicted: Any
    count: int
    n: int
    low: float
    high: float


@dataclass(frozen=True)
class Use:
    """A use of certification data by a guarantee.

    Attributes
    ----------
    part : float
        The part of the error probability that it used.
    date : str
        Its date.
    preference : str
        The preference to guarantee.
    outcome : str
        "certified", "refused" (the guarantee does not hold on these data) or "unfinished" (the
        process ended before the outcome was known).
    name : str
        Identifies the request: the same request again is the same use.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
    >>> reply = dialog.prefer("fn <= 30%")
    >>> model = dialog.accept()
    >>> (use,) = dialog.certification.uses
    >>> use.preference, use.outcome, round(use.part, 2)
    ('fn <= 30%', 'certified', 0.05)
    """

    part: float
    date: str
    preference: str
    outcome: str
    name: str = ""

    def __post_init__(self) -> None:
        outcomes = ("certified", "refused", "unfinished")
        is_date = isinstance(self.date, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", self.date)
        is_outcome = isinstance(self.outcome, str) and self.outcome in outcomes
        rules = {
            "part": ("a number between 0 and 1", is_number(self.part) and 0 < self.part < 1),
            "date": ("a date such as 2026-01-31", bool(is_date)),
            "preference": ("a string", isinstance(self.preference, str)),
            "outcome": (f"one of {', '.join(outcomes)}", is_outcome),
            "name": ("a string", isinstance(self.name, str)),
        }
        check_parameters(self, rules)

    def to_dict(self) -> dict[str, Any]:
        """Describe the use in values that JSON can hold."""
        return {
            "part": self.part,
            "date": self.date,
            "preference": self.preference,
            "outcome": self.outcome,
        }

    def __str__(self) -> str:
        return (
            f"'{self.preference}' ({self.outcome} {self.date}, error probability {self.part:.3g})"
        )


@dataclass(frozen=True)
class Certificate:
    """The guarantees of a steered classifier for new samples, and the evidence for them.

    Attributes
    ----------
    preference : str
        The guaranteed limits, in rates.
    requested : str
        The limits that were requested on the tuning set.
    goal : str
        What was minimised among the decisions that meet the limits.
    confidence : float
        1 minus the probability that a request ends in a certificate of which a guarantee is false.
    delta : float
        The part of ``1 - confidence`` that this certificate uses. The rest is reserved, or earlier
        certificates have used it.
    number : int
        The number of this use of the certification data, from 1. Repeating the same request is the
        same use.
    route : str
        How the decision was set: "order statistics" or "tested path".
    strategy : str
        The strategy that found the model.
    guarantees : tuple of Guarantee
        The guaranteed bounds.
    confusion : Confusion
        Confusion matrix of the certification set.
    cells : tuple of Cell
        Confidence intervals for all cells.
    tuning : Confusion
        Confusion matrix of the tuning set, before the decision was set on the certification set.
    issued : str
        Date of issue.
    samples : str
        Fingerprint of the certification set.
    notes : tuple of str
        Notes about the samples.
    renews : str
        Date of the first certificate, if this one is from a recertification; else empty.
    start : Confusion or None
        Confusion matrix of the certification set for the model at the start of the dialog.
    earlier : tuple of Use
        The earlier uses of the certification data: the ledger knows those of other dialogs too.
    expected : ExpectedCertificate or None
        What was expected before the certification set was used; None if nothing was.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> model = SteeredClassifier(GaussianNB(), preference="fn <= 30%", random_state=0).fit(X, y)
    >>> certificate = model.certificate_
    >>> print(certificate.confidence, *certificate.guarantees)
    0.95 at most 30% of pos predicted neg (41 of 171 in the certification set, 23.98%)
    >>> print(certificate.confusion)
    pos is positive  predicted neg  predicted pos  rejected
    true neg                    34             16         0
    true pos                    41            130         0
    """

    preference: str
    requested: str
    goal: str
    confidence: float
    delta: float
    number: int
    route: str
    strategy: str
    guarantees: tuple[Guarantee, ...]
    confusion: Confusion
    cells: tuple[Cell, ...]
    tuning: Confusion
    issued: str
    samples: str
    notes: tuple[str, ...] = ()
    renews: str = ""
    start: Confusion | None = None
    earlier: tuple[Use, ...] = ()
    expected: ExpectedCertificate | None = None

    @property
    def meaning(self) -> str:
        """What the guarantee is about, and what its confidence means.

        The error probability is that of a request. Of the certificates that are issued, more may be
        false: a request that the certification set does not support gets none.
        """
        return (
            "Guaranteed for new samples drawn like the certification set, by a test that lets a "
            "false guarantee pass with a probability of at most "
            f"{100 * (1 - self.confidence):.6g}% (confidence {self.confidence:.9g})"
        )

    @property
    def changes(self) -> tuple[Change, ...]:
        """The cost of the guarantee: changes in the certification set since the start."""
        return () if self.start is None else list_changes(self.start, self.confusion)

    @property
    def useless(self) -> tuple[str, ...]:
        """Why the classifier is useless although its guarantees hold; empty if it is not.

        It is useless if it predicts a class, in the certification set, for no larger part of the
        samples of the class than of the others: a random guess would find as many.
        """
        counts, classes = self.confusion.counts, self.confusion.classes
        weak = np.flatnonzero(~beats_guessing(counts)).tolist()
        missed = [c for c in weak if not counts[c, c]]
        reasons = []
        for c in missed or weak[:1]:  # with two classes, both are weak
            label, n = name_class(classes[c]), int(counts[c].sum())
            reason = f"it predicts {label} for {counts[c, c] or 'none'} of {n:,} samples of {label}"
            for cell in () if self.expected is None else self.expected.cells:
                if cell.true == cell.predicted == classes[c] and cell.rate is not None:
                    reason += f" (expected {cell.rate:.0%})"
            if not missed:
                wrong, others = int(counts[:, c].sum() - counts[c, c]), int(counts.sum()) - n
                reason += f", and for {wrong:,} of {others:,} others"
            reasons.append(reason)
        return tuple(reasons)

    def describe_errors(self, sizes: Mapping[Any, float] | None = None) -> str:
        """Describe in plain numbers how many new samples of each class will be predicted wrong.

        The rates are those of the certification set. Where one is outside of the range that was
        expected before, the text says what was, and how many samples it is measured on.

        Parameters
        ----------
        sizes : mapping of label to float, default=None
            The numbers of new samples of each class. None is 100 of each.

        Returns
        -------
        str
            A part of a sentence for each class.

        Examples
        --------
        >>> from margrave.datasets import load
        >>> from margrave.steer import SteeredClassifier
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load("pima", return_X_y=True)
        >>> model = SteeredClassifier(GaussianNB(), preference="fn <= 30%", random_state=0)
        >>> print(model.fit(X, y).certificate_.describe_errors({"neg": 650, "pos": 350}))
        of 650 neg, 208 predicted pos; of 350 pos, 84 predicted neg
        """
        classes = self.confusion.classes
        parts = []
        for true in classes:
            others = [label for label in classes if label != true]
            outcomes = [([label], f"predicted {name_class(label)}") for label in others]
            if len(others) > 2:
                outcomes = [(others, "misclassified")]
            size = 100 if sizes is None else sizes[true]
            found = [
                self._count_outcome(size, true, *outcome)
                for outcome in [*outcomes, ([None], "rejected")]
            ]
            shown = ", ".join(filter(None, found)) or "none misclassified"
            parts.append(f"of {_round(size)} {name_class(true)}, {shown}")
        return "; ".join(parts)

    def _count_outcome(self, size: float, true: Any, predicted: list[Any], outcome: str) -> str:
        """Say how many of the samples of a class have some predictions; "" if none has."""
        row = [self.confusion[true, one] for one in (*self.confusion.classes, None)]
        count, n = sum(self.confusion[true, one] for one in predicted), sum(row)
        text = f"{_round(size * count / n)} {outcome}" if count else f"none {outcome}"
        for cell in () if self.expected is None else self.expected.cells:
            if (cell.true, [cell.predicted]) == (true, predicted) and cell.excludes(count / n):
                expected = _round(size * (cell.rate or 0.0))
                return f"{text} (expected {expected}; measured on {n:,} samples)"
        return text if count else ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for a reader of the certificate."""
        remarks = []
        if self.requested != self.preference:
            remarks.append(
                f"'{self.requested}' is a count in the tuning set; its rate is guaranteed."
            )
        part = self.delta / (1 - self.confidence)
        if part < 1 - 1e-9:
            remarks.append(
                f"this guarantee uses {part:.0%} of the error probability of "
                f"{1 - self.confidence:.3g}; the rest is for other guarantees on the same rows."
            )
        remarks += self.notes
        remarks += [f"an earlier guarantee on the same rows: {use}." for use in self.earlier]
        if self.renews:
            remarks.append(f"recertified; the first certificate was issued {self.renews}.")
        return tuple(remarks)

    def to_dict(self) -> dict[str, Any]:
        """Describe the certificate in values that JSON can hold.

        Returns
        -------
        dict
            With the key ``schema_version`` and the attributes of the certificate by their names;
            ``guarantees``, ``cells`` and ``earlier`` are lists of dictionaries, the confusion
            matrices are as in :meth:`margrave.Confusion.to_dict`; ``meaning`` and ``errors``, that
            of :meth:`describe_errors`, are texts, ``useless`` and ``remarks`` lists of texts.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "preference": self.preference,
            "requested": self.requested,
            "goal": self.goal,
            "confidence": self.confidence,
            "delta": self.delta,
            "number": self.number,
            "earlier": [use.to_dict() for use in self.earlier],
            "route": self.route,
            "strategy": self.strategy,
            "guarantees": [json_ready(asdict(guarantee)) for guarantee in self.guarantees],
            "confusion": self.confusion.to_dict(),
            "cells": [json_ready(asdict(cell)) for cell in self.cells],
            "tuning": self.tuning.to_dict(),
            "issued": self.issued,
            "samples": self.samples,
            "renews": self.renews or None,
            "start": None if self.start is None else self.start.to_dict(),
            "expected": None if self.expected is None else self.expected.to_dict(),
            "meaning": self.meaning,
            "useless": list(self.useless),
            "errors": self.describe_errors(),
            "remarks": list(self.remarks),
        }

    def __str__(self) -> str:
        lines = [f"Certified, but useless: {reason}." for reason in self.useless]
        lines += [
            f"{self.meaning}:",
            *(f"  {guarantee}" for guarantee in self.guarantees),
            f"Goal within these limits: {self.goal}.",
            f"Measured on the certification set, {self.confusion.n:,} samples that training and "
            "steering did not use; the certified decision was set on them (certificate "
            f"{self.number} on them, by {self.route}):",
            *(f"  {line}" for line in str(self.confusion).splitlines()),
            f"In plain numbers: {self.describe_errors()}.",
        ]
        if self.changes:
            lines.append("Cost of the guarantee, as changes on the same samples since the start:")
            lines += [f"  {change}" for change in self.changes]
        lines += [f"Note: {remark}" for remark in self.remarks]
        return "\n".join(lines)


class UselessWarning(UserWarning):
    """A model is certified, but does not predict every class better than a random guess.

    Its certificate says why: see :attr:`Certificate.useless`.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from margrave.steer import SteeredClassifier, UselessWarning
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(2, size=(500, 1)), np.repeat(["ham", "spam"], 250)
    >>> model = SteeredClassifier(GaussianNB(), preference="fp <= 5%", random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     certificate = model.fit(X, y).certificate_
    >>> [one.category is UselessWarning for one in caught], len(certificate.useless)
    ([True], 1)
    """

    __module__ = "margrave.steer"


def warn_if_useless(certificate: Certificate | None, owner: str, stacklevel: int = 3) -> None:
    """Warn about a certificate of a useless model, and name the nearest limits."""
    if certificate is None or not certificate.useless:
        return
    message = f"{owner}: the model is certified, but useless: {'; '.join(certificate.useless)}."
    if certificate.expected is not None and certificate.expected.nearest is not None:
        message += (
            f" The nearest limits that probably give a useful model: "
            f"'{certificate.expected.nearest}'. To certify them, use new labelled samples."
        )
    warnings.warn(message, UselessWarning, stacklevel=stacklevel)


@dataclass(frozen=True)
class GuaranteeCheck:
    """The result of a check of one guarantee on newly labelled samples.

    Attributes
    ----------
    guarantee : Guarantee
        The guarantee.
    count, n : int
        The number of new samples that the bound limits, and the number of new samples that its
        rate refers to.
    p : float
        The p-value: the probability of a count at least as bad if the rate is exactly at its limit.
    alarm : bool
        Whether the p-value is too small to trust the guarantee any longer.
    conclusive : bool
        Whether there are enough samples to raise an alarm at all.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> model = SteeredClassifier(GaussianNB(), preference="fn <= 30%", random_state=0)
    >>> (result,) = model.fit(X[:600], y[:600]).check(X[600:], y[600:]).guarantees
    >>> result.guarantee.bound, result.count, result.n, round(result.p, 2)
    ('fn <= 30%', 13, 60, 0.94)
    >>> result.alarm, result.conclusive
    (False, True)
    """

    guarantee: Guarantee
    count: int
    n: int
    p: float
    alarm: bool
    conclusive: bool = True


@dataclass(frozen=True)
class Check:
    """The result of a check of a certificate on newly labelled samples; true without an alarm.

    Attributes
    ----------
    guarantees : tuple of GuaranteeCheck
        The result for each guarantee.
    confusion : Confusion
        Confusion matrix of the new samples.
    n_used : int
        Number of these samples that the model was built from; estimated for more than 10,000.
    notes : tuple of str
        Which samples were counted, if not all.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> model = SteeredClassifier(GaussianNB(), preference="fn <= 30%", random_state=0)
    >>> check = model.fit(X[:600], y[:600]).check(X[600:], y[600:])
    >>> print(check)
    at most 30% of pos predicted neg: holds, as far as these samples show (13 of 60, p = 0.94)
    >>> check.alarm
    False
    """

    guarantees: tuple[GuaranteeCheck, ...]
    confusion: Confusion
    n_used: int = 0
    notes: tuple[str, ...] = ()

    @property
    def alarm(self) -> bool:
        """Whether a guarantee is broken, beyond chance."""
        return any(check.alarm for check in self.guarantees)

    def __bool__(self) -> bool:
        """Whether there is no alarm."""
        return not self.alarm

    def to_dict(self) -> dict[str, Any]:
        """Describe the check in values that JSON can hold.

        Returns
        -------
        dict
            With the keys ``schema_version``, ``alarm`` and the attributes of the check by their
            names; ``guarantees`` is a list of dictionaries with the attributes of
            :class:`GuaranteeCheck` and of its :class:`Guarantee`.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "alarm": self.alarm,
            "guarantees": [json_ready(asdict(check)) for check in self.guarantees],
            "confusion": self.confusion.to_dict(),
            "n_used": self.n_used,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = []
        for check in self.guarantees:
            result = "BROKEN" if check.alarm else "holds, as far as these samples show"
            result = result if check.conclusive else "too few samples to tell"
            counts = f"{check.count:,} of {check.n:,}, p = {check.p:.2g}"
            lines.append(f"{check.guarantee.sentence}: {result} ({counts})")
        lines += self.notes
        if self.n_used:
            lines.append(
                f"Warning: {self.n_used:,} of these {self.confusion.n:,} samples equal rows that "
                "the model was built from, so they are no evidence about new samples."
            )
        return "\n".join(lines)


def make_guarantees(
    preference: Preference, matrix: Confusion, delta: float
) -> tuple[Guarantee, ...]:
    """Make a guarantee of each bound, with the counts of the certification set."""
    guarantees = []
    for bound in preference.bounds:
        count, n = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        sentence, limit = describe_bound(bound, matrix), float(bound.limit)
        guarantees.append(Guarantee(str(bound), sentence, limit, bound.at_most, count, n, delta))
    return tuple(guarantees)


def make_cells(matrix: Confusion, level: float) -> tuple[Cell, ...]:
    """Compute confidence intervals for the rates of all cells."""
    cells = []
    for true, row in zip(matrix.classes, matrix.counts.tolist(), strict=True):
        for predicted, count in zip([*matrix.classes, None], row, strict=True):
            low, high = clopper_pearson(count, sum(row), level)
            cells.append(Cell(true, predicted, count, sum(row), low, high))
    return tuple(cells)


def check_guarantees(
    certificate: Certificate,
    preference: Preference,
    matrix: Confusion,
    level: float,
    n_used: int = 0,
    notes: tuple[str, ...] = (),
) -> Check:
    """Check the guarantees of a certificate on newly labelled samples.

    A guarantee raises an alarm if its p-value is below `level` divided by the number of guarantees.
    """
    checks = []
    for guarantee, bound in zip(certificate.guarantees, preference.bounds, strict=True):
        count, n = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        limit = guarantee.limit
        p = binom.sf(count - 1, n, limit) if guarantee.at_most else binom.cdf(count, n, limit)
        p = float(p) if n else 1.0
        least = level / len(certificate.guarantees)
        smallest_p = (limit if guarantee.at_most else 1 - limit) ** n
        checks.append(GuaranteeCheck(guarantee, count, n, p, p < least, smallest_p < least))
    return Check(tuple(checks), matrix, n_used, notes)
