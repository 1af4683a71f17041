"""Steer a committee on a table: the certified model, or the reason why there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from margrave._messages import format_count, name_class
from margrave.app.messages import InputError, describe_error
from margrave.app.samples import Samples
from margrave.committee import Progress
from margrave.confusion import Confusion, Preference, PreferenceError, parse_goal
from margrave.steer import (
    Certificate,
    Dialog,
    ExpectedBound,
    ExpectedCell,
    ExpectedCertificate,
    FileLedger,
    GroupsWarning,
    GuaranteeError,
    Reply,
    SplitSizes,
    SteeredClassifier,
    UselessWarning,
    check_confidence,
    describe_support,
    get_strategies,
)

T = TypeVar("T")
MET, NOT_MET, USELESS = 0, 3, 5
LEDGER = "certification.json"
"""The file beside the models of a folder that records which certification data are used up."""
_SIZES = ("train", "tune", "certify", "unused", "copies", "near_copies")
_AMONG = 1000
"""The number of new rows in the description of a model's errors."""
UNUSED = "copies of rows in the certification set, or more rows of its groups"


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a request.

    Attributes
    ----------
    samples : Samples
        The samples.
    history : tuple of Reply
        The start and the replies, one for each preference.
    reply : Reply
        The current reply.
    sizes : SplitSizes
        The number of rows in each set.
    class_sizes : dict
        The number of rows of each class.
    encoder : TableEncoder
        Knows the type of each column.
    split : str
        A description of the split, and of the limits that the certification set supports.
    confidence : float
        The requested confidence of the guarantee.
    model : SteeredClassifier or None
        The certified model.
    refusal : GuaranteeError or None
        Why the certificate was refused; None if it was not.
    dialog : Dialog or None
        The dialog, after all steps; None for a folder.
    expected : ExpectedCertificate or None
        What was expected before the certification set was used.
    """

    samples: Samples
    history: tuple[Reply, ...]
    reply: Reply
    sizes: SplitSizes
    class_sizes: dict[Any, int]
    encoder: Any
    split: str
    confidence: float
    model: SteeredClassifier | None = None
    refusal: GuaranteeError | None = None
    dialog: Any = None
    expected: ExpectedCertificate | None = None

    @classmethod
    def of(
        cls,
        samples: Samples,
        dialog: Dialog,
        confidence: float,
        model: SteeredClassifier | None = None,
        refusal: GuaranteeError | None = None,
        expected: ExpectedCertificate | None = None,
    ) -> Outcome:
        """Make the outcome of a dialog on samples."""
        classes, counts = np.unique(samples.y, return_counts=True)
        return cls(
            samples,
            dialog.history,
            dialog.reply,
            dialog.sizes,
            dict(zip(classes.tolist(), counts.tolist(), strict=True)),
            dialog.model.scorer_.committee.encoder,
            "\n".join(
                [
                    _describe_split(samples, dialog.sizes, confidence),
                    *(str(dialog.sizes.plan or "").splitlines()[:2]),  # without the other options
                ]
            ),
            confidence,
            model,
            refusal,
            dialog,
            expected,
        )

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(self.class_sizes.values())

    @property
    def certificate(self) -> Certificate | None:
        """The certificate, if the model is certified."""
        return None if self.model is None else self.model.certificate_

    @property
    def useless(self) -> tuple[str, ...]:
        """Why the certified model is useless; empty if it is not, or if there is none."""
        return () if self.certificate is None else self.certificate.useless

    @property
    def tunes_apart(self) -> bool:
        """Whether no row of the tuning set is a training row, as for a martingale program."""
        return _tunes_apart(self.sizes, self.n_rows)

    @property
    def start(self) -> Reply:
        """The tuning set before the first preference."""
        return self.history[0]

    @property
    def met(self) -> bool:
        """Whether the current reply meets its preference on the tuning set."""
        return self.reply.met

    @property
    def used_rows(self) -> bool:
        """Whether the ledger records that the certification rows were used, now or before."""
        refusal = self.refusal
        if refusal is None:
            return self.model is not None
        return refusal.used_up or refusal.code in ("used_up", "confidence")

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 0 for a useful certified model that meets its limits."""
        if self.useless:
            return USELESS
        return MET if self.met and self.model is not None else NOT_MET

    @property
    def verdict(self) -> tuple[str, ...]:
        """What is guaranteed and what it costs, or why nothing is; a line for each."""
        if self.certificate is None:
            reason = "the model was not accepted."
            if self.refusal is not None:
                reason = describe_error(self.refusal, lambda _: None)
            return (f"Not certified: {reason[:1].lower()}{reason[1:]}", *self._shortfall)
        if self.useless:
            offer = []
            if self.expected is not None and self.expected.nearest is not None:
                offer = [
                    "The nearest limits that probably give a useful model: "
                    f"'{self.expected.nearest}'. To certify them, use new labelled rows."
                ]
            headline = f"Certified, but useless: {'; '.join(self.useless)}."
            return (headline, self.describe_errors(), *offer, *self._shortfall)
        sentences = "; ".join(one.sentence for one in self.certificate.guarantees)
        headline = f"Guaranteed at confidence {self.certificate.confidence:.10g}: {sentences}."
        return (headline, self.describe_errors(), *self._shortfall)

    @property
    def _shortfall(self) -> list[str]:
        """Say by how much the limits are missed on the tuning set, if they are."""
        if self.met:
            return []
        short = format_count(self.reply.shortfall, "sample")
        return [
            f"The limits are not met on the tuning set: the nearest is {short} short; "
            f"'{self.reply.binding}' is the limiting constraint."
        ]

    def describe_errors(self) -> str:
        """Describe the errors of the certified model among new rows; "" without a certificate."""
        if self.certificate is None:
            return ""
        among = {label: _AMONG * n / self.n_rows for label, n in self.class_sizes.items()}
        return (
            f"Of {_AMONG:,} new rows, in the proportions of this table: "
            f"{self.certificate.describe_errors(among)}."
        )

    def describe(self) -> str:
        """Describe the outcome in one or two sentences."""
        return " ".join(self.verdict)

    def describe_expected(self) -> str:
        """Describe in a sentence how probable the certificate was, and the rates expected of it.

        For two classes, these are all rates of errors and rejections, else those of the bounds.
        """
        expected = self.expected
        if expected is None:
            return ""
        line = f"Certified with a probability of {expected.probability:.0%}"
        rates: dict[str, ExpectedBound | ExpectedCell] = {one.bound: one for one in expected.bounds}
        if len(self.start.after.classes) == 2:
            errors = [cell for cell in expected.cells if cell.true != cell.predicted]
            rates = {name_cell(cell): cell for cell in errors}
        parts = [
            f"{name} {one.rate:.1%} ({one.low:.1%} to {one.high:.1%}; tuning set {one.tuning:.1%})"
            for name, one in rates.items()
            if one.rate is not None and max(one.tuning, one.high or 0.0) > 0
        ]
        line = f"{line}: {', '.join(parts)}." if parts else f"{line}."
        if expected.nearest is None:
            return line
        return f"{line} The nearest limits that probably give a useful model: '{expected.nearest}'."

    def to_dict(self) -> dict[str, Any]:
        """Convert the outcome to plain data that JSON can hold."""
        certificate = self.certificate
        sizes, replies, start = self.sizes, self.history[1:], self.start.after
        return {
            "exit_code": self.exit_code,
            "met": self.met,
            "certified": certificate is not None,
            "useless": list(self.useless),
            "verdict": self.describe(),
            "errors": self.describe_errors() or None,
            "refusal": None if self.refusal is None else str(self.refusal),
            "data": self.samples.table.name,
            "target": self.samples.target,
            "classes": list(start.classes),
            "positive": start.positive,
            "n": count_rows(sizes, self.n_rows),
            "plan": None if sizes.plan is None else sizes.plan.to_dict(),
            "columns": dict(self.encoder.kinds_),
            "strategy": self.reply.strategy,
            "seconds": round(sum(reply.seconds for reply in replies), 3),
            "start": start.to_dict(),
            "replies": [reply.to_dict() for reply in replies],
            "expected": None if self.expected is None else self.expected.to_dict(),
            "certificate": None if certificate is None else certificate.to_dict(),
        }


def count_rows(sizes: SplitSizes, n_rows: int) -> dict[str, int]:
    """Return the number of rows in each set, and in all."""
    return {"all": n_rows, **{name: getattr(sizes, name) for name in _SIZES}}


def _tunes_apart(sizes: SplitSizes, n_rows: int) -> bool:
    return sizes.train + sizes.tune + sizes.certify + sizes.unused == n_rows


def _describe_split(samples: Samples, sizes: SplitSizes, confidence: float) -> str:
    """Describe the sets, and the limits that the certification set supports."""
    if _tunes_apart(sizes, len(samples.y)):
        roles = f"{sizes.train:,} rows to train; {sizes.tune:,} other rows to tune"
    elif sizes.tune == sizes.train:
        roles = f"{sizes.train:,} rows to train and tune, each scored by models trained without it"
    else:
        others = "without them" if samples.time is None else "on earlier rows"
        roles = (
            f"{sizes.train:,} rows to train; {sizes.tune:,} of them to tune, "
            f"scored by models trained {others}"
        )
    support = "No rows are set aside, so nothing can be guaranteed."
    if sizes.certify:
        support = describe_support(sizes.certify_by_class, confidence)
    unused = f"{sizes.unused:,} more rows are not used: {UNUSED}"
    return "\n".join([roles, support, *([unused] if sizes.unused else []), *sizes.notes])


def name_cell(cell: ExpectedCell) -> str:
    """Write a cell of a confusion matrix within a sentence."""
    if cell.predicted is None:
        return f"{name_class(cell.true)} rejected"
    return f"{name_class(cell.true)} predicted {name_class(cell.predicted)}"


def read_fraction(text: str) -> str | float:
    """Parse the value of certify: a fraction, or "auto"."""
    if text == "auto":
        return text
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        problem = f"must be 'auto' or a fraction between 0 and 1; got {text!r}."
        raise InputError("certify", problem, code="fraction", received=text)
    return fraction


def read_limits(texts: Sequence[str], then: str | None) -> list[Preference]:
    """Parse the preference of each step; the first one states the goal."""
    wants = [_parse("limit", text, Preference) for text in texts]
    if then is not None:
        wants[0] = Preference.of(wants[0].bounds, _parse("then", then, parse_goal))
    return wants


def _parse(option: str, text: str, parse: Callable[[str], T]) -> T:
    """Parse the value of an option; an error names the option."""
    try:
        return parse(text)
    except PreferenceError as error:
        problem = f"{text!r}: {error.summary}"
        raise InputError(option, problem, code=error.code, **error.fields) from error


def run_request(
    samples: Samples,
    wants: Sequence[Preference],
    *,
    confidence: float,
    certify: str | float,
    duplicates: str,
    strategies: Sequence[str] | None,
    seed: int,
    n_jobs: int | None,
    on_training: Callable[[Progress], None],
    on_reply: Callable[[str, Reply | None], None],
    path: Path | None,
    ledger: Path,
    reserve: bool = False,
    anyway: bool = False,
) -> Outcome:
    """Train a committee, steer it to the preferences one after the other, and certify it.

    Parameters
    ----------
    samples : Samples
        The samples.
    wants : sequence of Preference
        The preferences, one for each step; the bounds of earlier steps still hold.
    confidence, certify, duplicates, n_jobs
        As in :meth:`Dialog.from_data`.
    strategies : sequence of str or None
        As in :meth:`Dialog.prefer`.
    seed : int
        The ``random_state`` of :meth:`Dialog.from_data`.
    on_training : callable
        Called after each trained model.
    on_reply : callable
        Called with the preference and None when a step starts, then with each better reply.
    path : Path or None
        The file that the dialog is written to after every step.
    ledger : Path
        The file of the :class:`FileLedger`.
    reserve, anyway : bool
        As in :meth:`Dialog.accept`.
    """
    # What is wrong is refused before minutes of training.
    check_confidence(confidence, "run_request")
    get_strategies(strategies, "run_request")
    accounts = FileLedger(ledger, samples.target)
    accounts.read()  # raises an error if the file is damaged
    guarantee = _check_limits(samples, wants)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GroupsWarning)  # the command names its own option
        dialog = Dialog.from_data(
            samples.X,
            samples.y,
            certify=certify,
            guarantee=guarantee,
            confidence=confidence,
            positive=samples.positive,
            groups=samples.groups,
            time=samples.time,
            duplicates=duplicates,
            n_jobs=n_jobs,
            random_state=seed,
            callback=on_training,
            ledger=accounts,
            table=samples.table.frame.drop(columns=samples.target),
        )
    if path is not None:
        dialog.autosave(path)
    for want in wants:
        on_reply(str(want), None)
        dialog.prefer(want, keep=True, strategies=strategies, callback=partial(on_reply, str(want)))
    expected = expect(dialog, confidence, reserve)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UselessWarning)  # the outcome says so
            model = dialog.accept(confidence=confidence, reserve=reserve, anyway=anyway)
    except GuaranteeError as error:
        return Outcome.of(samples, dialog, confidence, refusal=error, expected=expected)
    if model.certificate_ is not None:  # the same as before, also if it was certified earlier
        expected = model.certificate_.expected
    return Outcome.of(samples, dialog, confidence, model, expected=expected)


def _check_limits(samples: Samples, wants: Sequence[Preference]) -> Preference:
    """Join the preferences of all steps; raise an error if the samples do not fit one."""
    classes, sizes = np.unique(samples.y, return_counts=True)
    if len(classes) < 2:  # the dialog raises the error
        return wants[0]
    return join_limits(wants, Confusion(np.diag(sizes), classes.tolist(), samples.positive))


def join_limits(wants: Sequence[Preference], matrix: Confusion) -> Preference:
    """Return the preference of the last step; raise an error if the matrix does not fit one."""
    joined: Preference | None = None
    for want in wants:
        want.check_counts(matrix)
        joined = want.keeping(joined, matrix)
    return joined or wants[0]


def expect(dialog: Dialog, confidence: float, reserve: bool = False) -> ExpectedCertificate | None:
    """Return what a certificate will probably state; None if there can be none."""
    try:
        return dialog.expected_certificate(confidence=confidence, reserve=reserve)
    except GuaranteeError:
        return None


# Below this part of the recall without a guarantee, a plan expects refusals.
_LIKELY = 0.25


@dataclass(frozen=True, eq=False)
class Planned:
    """The split that a request would make; nothing is trained.

    Attributes
    ----------
    samples : Samples
        The samples.
    sizes : SplitSizes
        The number of rows in each set, and the plan.
    split : str
        A description of the split.
    confidence : float
        The confidence of the guarantee.
    """

    samples: Samples
    sizes: SplitSizes
    split: str
    confidence: float

    @property
    def exit_code(self) -> int:
        """The exit code of the command: 3 if the preference cannot be guaranteed, else 0."""
        plan = self.sizes.plan
        likely = plan is None or plan.chosen.recall > _LIKELY * plan.recall_without
        return MET if likely else NOT_MET

    def describe(self) -> str:
        """Describe in a sentence whether the preference can be guaranteed."""
        if self.sizes.plan is None:
            return "The split was not planned for these limits."
        if self.exit_code == MET:
            return "The guarantee can be certified on these rows, as far as the plan can tell."
        if min(self.sizes.plan.chosen.allowed_errors.values(), default=0) < 0:
            return "The guarantee cannot be certified: there are too few rows."
        return "The guarantee will probably not be certified on these rows."

    def to_dict(self) -> dict[str, Any]:
        """Convert the plan to plain data that JSON can hold."""
        plan, limits = self.sizes.plan, self.sizes.smallest_limits(self.confidence)
        return {
            "exit_code": self.exit_code,
            "verdict": self.describe(),
            "data": self.samples.table.name,
            "target": self.samples.target,
            "n": count_rows(self.sizes, len(self.samples.y)),
            "smallest_limits": {str(label): limit for label, limit in limits.items()},
            "plan": None if plan is None else plan.to_dict(),
        }


def plan_request(
    samples: Samples,
    wants: Sequence[Preference],
    *,
    confidence: float,
    certify: str | float,
    duplicates: str,
    seed: int,
) -> Planned:
    """Plan the split of a request; parameters as in :func:`run_request`."""
    guarantee = _check_limits(samples, wants)
    sizes = Dialog.plan_split(
        samples.X,
        samples.y,
        certify=certify,
        guarantee=guarantee,
        confidence=confidence,
        positive=samples.positive,
        groups=samples.groups,
        time=samples.time,
        duplicates=duplicates,
        random_state=seed,
    )
    split = _describe_split(samples, sizes, confidence)
    return Planned(samples, sizes, split, confidence)
