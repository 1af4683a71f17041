"""What is not as before in a confusion matrix: cells of mistakes, and the rejected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from margrave.confusion import Bound, Confusion, Preference, format_decimal
from margrave.steer._order_statistic import clopper_pearson


@dataclass(frozen=True)
class Change:
    """A cell of mistakes before and after.

    Attributes
    ----------
    true, answer : label
        The cell; None as the answer is the rejected column.
    before, after : int
        Its counts.
    """

    true: Any
    answer: Any
    before: int
    after: int

    def __str__(self) -> str:
        what = "given no answer" if self.answer is None else f"called {self.answer}"
        difference = self.after - self.before
        return f"{self.true} {what}: {self.before} -> {self.after} ({difference:+d})"


def list_changes(before: Confusion, after: Confusion) -> tuple[Change, ...]:
    """Cells of mistakes (and the rejected) that are not as before."""
    found, answers = [], [*after.classes, None]
    for true in after.classes:
        for answer in answers:
            counts = before[true, answer], after[true, answer]
            if answer != true and counts[0] != counts[1]:
                found.append(Change(true, answer, *counts))
    return tuple(found)


def describe_bound(bound: Bound, matrix: Confusion) -> str:
    """A bound in words.

    Parameters
    ----------
    bound : Bound
        A share, or a count of the samples of the matrix.
    matrix : Confusion
        What it speaks of.
    """
    amount, base = bound.cells(matrix)
    limit = f"{'at most' if bound.at_most else 'at least'} "
    if bound.share:
        limit += f"{format_decimal(100 * bound.limit)} %"
    else:
        limit += f"{format_decimal(bound.limit)} of {int(matrix.counts[base].sum())}"
    k = len(matrix.classes)
    labels = [str(label) for label in matrix.classes]
    answered = [*(f"called {label}" for label in labels), "given no answer"]
    rows = np.flatnonzero(base.any(axis=1))
    everyone = "of all samples" if bound.share else "samples"
    if bound.word == "precision":
        of = int(np.flatnonzero(amount.any(axis=0))[0])
        return f"{limit} of what is called {labels[of]} is {labels[of]}"
    if bound.word in ("accuracy", "correct") and len(rows) == k:
        return f"{limit} {everyone} get a right answer"
    if bound.word == "errors" and len(rows) == k:
        return f"{limit} {everyone} get a wrong answer"
    columns = np.flatnonzero(amount.any(axis=0))
    what = " or ".join(answered[c] for c in columns)
    if len(rows) == k:
        return f"{limit} {everyone} are {what}"
    return f"{limit} {'of ' if bound.share else ''}{' or '.join(labels[r] for r in rows)} {what}"


@dataclass(frozen=True)
class Guarantee:
    """One bound of a certificate, and what the certify samples say of it.

    Attributes
    ----------
    bound : str
        As in the preference.
    sentence : str
        In words.
    limit : float
        The share.
    at_most : bool
        Whether it is the largest or the smallest.
    count, n : int
        So many of n certify samples.
    delta : float
        Error probability of this bound alone.
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
        """The share among the certify samples."""
        return self.count / self.n if self.n else float("nan")

    def __str__(self) -> str:
        return f"{self.sentence} ({self.count} of {self.n} certify samples, {self.rate:.2%})"


@dataclass(frozen=True)
class Cell:
    """A cell of the confusion matrix for new samples: its share of the true class.

    Attributes
    ----------
    true, answer : label
        The cell; None as the answer is the rejected column.
    count, n : int
        So many of n certify samples of the class.
    low, high : float
        Interval for the share.
    """

    true: Any
    answer: Any
    count: int
    n: int
    low: float
    high: float


@dataclass(frozen=True)
class Certificate:
    """What a steered classifier promises, and why it can be trusted.

    Attributes
    ----------
    preference : str
        What is promised, in shares.
    requested : str
        What was asked for on the tuning samples.
    confidence : float
        With which probability all promises hold.
    delta : float
        What this certificate spent of ``1 - confidence``; the rest is reserved or was spent before.
    number : int
        The how manieth certificate on these certify samples it is.
    route : str
        "order statistics" or "tested path".
    strategy : str
        How the model was found.
    guarantees : tuple of Guarantee
        The bounds.
    confusion : Confusion
        The certify samples.
    cells : tuple of Cell
        Intervals for all cells.
    tuning : Confusion
        The tuning samples, by the model that the dialog left.
    start : Confusion or None
        The certify samples, by the model at the start of the dialog.
    issued : str
        Date.
    samples : str
        What tells the certify samples from others.
    notes : tuple of str
        What else is known of the samples.
    renews : str
        Date of the first certificate, if this one was set anew.
    """

    preference: str
    requested: str
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

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the promise costs: certify samples that are not answered as at the start."""
        return () if self.start is None else list_changes(self.start, self.confusion)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else a reader should know."""
        counts = f"'{self.requested}' counts tuning samples; promised is its rate."
        anew = f"set anew; first issued {self.renews}."
        answered = self.confusion.counts.sum(axis=0)
        same = [
            f"it calls every certify sample {label}."
            for label, n in zip(self.confusion.classes, answered.tolist(), strict=False)
            if n == self.confusion.n
        ]
        return (
            *same,
            *([counts] if self.requested != self.preference else []),
            *self.notes,
            *([anew] if self.renews else []),
        )

    def __str__(self) -> str:
        lines = [f"With confidence {self.confidence:.9g}, on new samples like the certify samples:"]
        lines += [f"  {guarantee}" for guarantee in self.guarantees]
        lines.append(
            f"Set on {self.confusion.n} samples that no step had seen, by {self.route} "
            f"(certificate {self.number} on them):"
        )
        lines += [f"  {line}" for line in str(self.confusion).splitlines()]
        if self.changes:
            lines.append("What the promise costs, on the same samples and since the start:")
            lines += [f"  {change}" for change in self.changes]
        lines += [f"Note: {remark}" for remark in self.remarks]
        return "\n".join(lines)


@dataclass(frozen=True)
class GuaranteeCheck:
    """Whether one promise is still kept on newly labelled samples.

    Attributes
    ----------
    guarantee : Guarantee
        The promise.
    count, n : int
        So many of n new samples.
    p : float
        How probable a count as bad would be if the promise just held.
    alarm : bool
        Whether that is too improbable to go on trusting it.
    telling : bool
        Whether there are enough samples for an alarm at all.
    """

    guarantee: Guarantee
    count: int
    n: int
    p: float
    alarm: bool
    telling: bool = True


@dataclass(frozen=True)
class Check:
    """Whether a certificate is still kept.

    Attributes
    ----------
    guarantees : tuple of PromiseCheck
        Each promise on the new samples.
    confusion : Confusion
        The new samples.
    """

    guarantees: tuple[GuaranteeCheck, ...]
    confusion: Confusion

    @property
    def alarm(self) -> bool:
        """Whether a promise is broken beyond chance."""
        return any(kept.alarm for kept in self.guarantees)

    def __bool__(self) -> bool:
        """Whether nothing speaks against the promises."""
        return not self.alarm

    def __str__(self) -> str:
        lines = []
        for kept in self.guarantees:
            share = f"{kept.count} of {kept.n}"
            said = "BROKEN" if kept.alarm else "kept, as far as these samples tell"
            said = said if kept.telling else "too few samples to tell"
            lines.append(f"{kept.guarantee.sentence}: {said} ({share}, p = {kept.p:.2g})")
        return "\n".join(lines)


def make_guarantees(
    preference: Preference, matrix: Confusion, delta: float
) -> tuple[Guarantee, ...]:
    """The bounds of a preference in shares, with the counts of the certify samples."""
    found = []
    for bound in preference.bounds:
        amount, base = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        limit = float(bound.limit)
        told = describe_bound(bound, matrix)
        found.append(Guarantee(str(bound), told, limit, bound.at_most, amount, base, delta))
    return tuple(found)


def make_cells(matrix: Confusion, level: float) -> tuple[Cell, ...]:
    """Intervals for the shares of all cells."""
    found = []
    answers = [*matrix.classes, None]
    for true, row in zip(matrix.classes, matrix.counts.tolist(), strict=True):
        for answer, count in zip(answers, row, strict=True):
            low, high = clopper_pearson(count, sum(row), level)
            found.append(Cell(true, answer, count, sum(row), low, high))
    return tuple(found)


def check_guarantees(
    certificate: Certificate, preference: Preference, matrix: Confusion, level: float
) -> Check:
    """Hold a certificate's promises against newly labelled samples.

    An alarm is a count whose probability, if the promise just held, is below ``level`` divided by
    the number of promises.
    """
    found = []
    for guarantee, bound in zip(certificate.guarantees, preference.bounds, strict=True):
        count, n = (int(matrix.counts[mask].sum()) for mask in bound.cells(matrix))
        worse = binom.sf(count - 1, n, guarantee.limit)
        p = (
            float(worse if guarantee.at_most else binom.cdf(count, n, guarantee.limit))
            if n
            else 1.0
        )
        least = level / len(certificate.guarantees)
        worst = guarantee.limit if guarantee.at_most else 1 - guarantee.limit
        found.append(GuaranteeCheck(guarantee, count, n, p, p < least, worst**n < least))
    return Check(tuple(found), matrix)
