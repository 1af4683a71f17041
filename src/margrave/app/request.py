"""Steer a committee on a table: the certified model, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from margrave._messages import format_count
from margrave.app.messages import InputError
from margrave.app.samples import Samples
from margrave.committee import Progress
from margrave.confusion import Confusion, Preference, PreferenceError
from margrave.steer import (
    Dialog,
    FileLedger,
    GuaranteeError,
    Reply,
    SplitSizes,
    SteeredClassifier,
    check_confidence,
    describe_copies,
    describe_near_copies,
    describe_support,
    get_strategies,
)

MET, NOT_MET = 0, 3
LEDGER = "certification.json"
"""The file beside the models of a folder that records which certification data are used up."""
_SIZES = ("train", "tune", "certify", "unused", "copies", "near_copies")
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
    n_rows : int
        The number of rows.
    encoder : TableEncoder
        Knows the type of each column.
    split : str
        A description of the split, and of the limits that the certification set supports.
    confidence : float
        The requested confidence of the guarantee.
    model : SteeredClassifier or None
        The certified model.
    refusal : str
        Why there is no certified model; empty if none was requested.
    dialog : Dialog or None
        The dialog, after all steps; None for a folder.
    """

    samples: Samples
    history: tuple[Reply, ...]
    reply: Reply
    sizes: SplitSizes
    n_rows: int
    encoder: Any
    split: str
    confidence: float
    model: SteeredClassifier | None = None
    refusal: str = ""
    dialog: Any = None

    @classmethod
    def of(
        cls,
        samples: Samples,
        dialog: Dialog,
        confidence: float,
        model: SteeredClassifier | None = None,
        refusal: str = "",
    ) -> Outcome:
        """Make the outcome of a dialog on samples."""
        return cls(
            samples,
            dialog.history,
            dialog.reply,
            dialog.sizes,
            len(samples.y),
            dialog.model.scorer_.committee.encoder,
            _describe_split(dialog, len(samples.y), samples.time, confidence),
            confidence,
            model,
            refusal,
            dialog,
        )

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
    def exit_code(self) -> int:
        """The exit code of the command: 0 if the preference is met and certified, else 3."""
        return MET if self.met and self.model is not None else NOT_MET

    def describe(self) -> str:
        """Describe the outcome in one or two sentences."""
        if self.met:
            if self.model is not None:
                return "Met on the tuning set, and certified."
            if self.refusal:
                return f"Met on the tuning set, but it cannot be guaranteed: {self.refusal}"
            return "Met on the tuning set, but not certified: the model was not accepted."
        shortfall = (
            f"Not met on the tuning set: the nearest is "
            f"{format_count(self.reply.shortfall, 'sample')} short; '{self.reply.binding}' is the "
            "limiting constraint."
        )
        if self.model is not None:
            return f"{shortfall} A model with a guarantee for new samples was certified anyway."
        if self.refusal:
            return f"{shortfall} It cannot be guaranteed either: {self.refusal}"
        return shortfall

    def to_dict(self) -> dict[str, Any]:
        """Convert the outcome to plain data that JSON can hold."""
        certificate = None if self.model is None else self.model.certificate_
        sizes, replies, start = self.sizes, self.history[1:], self.start.after
        return {
            "exit_code": self.exit_code,
            "met": self.met,
            "certified": certificate is not None,
            "verdict": self.describe(),
            "refusal": self.refusal or None,
            "data": self.samples.table.name,
            "target": self.samples.target,
            "classes": list(start.classes),
            "positive": start.positive,
            "n": {
                "all": self.n_rows,
                **{name: getattr(sizes, name) for name in _SIZES},
            },
            "columns": dict(self.encoder.kinds_),
            "strategy": self.reply.strategy,
            "seconds": round(sum(reply.seconds for reply in replies), 3),
            "start": start.to_dict(),
            "replies": [reply.to_dict() for reply in replies],
            "certificate": None if certificate is None else certificate.to_dict(),
        }


def _tunes_apart(sizes: SplitSizes, n_rows: int) -> bool:
    return sizes.train + sizes.tune + sizes.certify + sizes.unused == n_rows


def _describe_split(dialog: Dialog, n_rows: int, time: Any, confidence: float) -> str:
    sizes = dialog.sizes
    if _tunes_apart(sizes, n_rows):
        roles = f"{sizes.train:,} rows to train; {sizes.tune:,} other rows to tune"
    elif sizes.tune == sizes.train:
        roles = f"{sizes.train:,} rows to train and tune, each scored by models trained without it"
    else:
        others = "without them" if time is None else "on earlier rows"
        roles = (
            f"{sizes.train:,} rows to train; {sizes.tune:,} of them to tune, "
            f"scored by models trained {others}"
        )
    unused = f"{sizes.unused:,} more rows are not used: {UNUSED}"
    support = (
        describe_support(sizes.certify_by_class, confidence)
        if sizes.certify
        else dialog.support(confidence)
    )
    copies = [] if not sizes.copies else [describe_copies(sizes.copies, dialog.duplicates)]
    copies += [] if not sizes.near_copies else [describe_near_copies(sizes.near_copies)]
    lines = [roles, support, *([unused] if sizes.unused else []), *copies]
    return "\n".join(lines)


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


def read_limit(text: str) -> Preference:
    """Parse a preference."""
    try:
        return Preference(text)
    except PreferenceError as error:
        problem = f"{text!r}: {error.summary}"
        raise InputError("limit", problem, code=error.code, **error.fields) from error


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
    reserve : bool
        As in :meth:`Dialog.accept`.
    """
    # What is wrong is refused before minutes of training.
    check_confidence(confidence, "run_request")
    get_strategies(strategies, "run_request")
    accounts = FileLedger(ledger, samples.target)
    accounts.read()  # raises an error if the file is damaged
    classes, sizes = np.unique(samples.y, return_counts=True)
    if len(classes) > 1:  # otherwise the dialog raises the error
        matrix = Confusion(np.diag(sizes), classes.tolist(), samples.positive)
        for want in wants:
            want.check_counts(matrix)
    dialog = Dialog.from_data(
        samples.X,
        samples.y,
        certify=certify,
        guarantee=Preference(*wants),
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
    try:
        model = dialog.accept(confidence=confidence, reserve=reserve)
    except GuaranteeError as error:
        return Outcome.of(samples, dialog, confidence, refusal=str(error))
    return Outcome.of(samples, dialog, confidence, model)
