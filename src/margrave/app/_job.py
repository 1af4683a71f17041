"""One whole request: from a table to a model with a certificate, or to the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from margrave.app._samples import Samples
from margrave.committee import Progress
from margrave.confusion import Confusion, Preference
from margrave.steer._certify import check_confidence
from margrave.steer._dialog import Dialog
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._reply import Reply
from margrave.steer._steered import SteeredClassifier
from margrave.steer._strategies import get_strategies

MET, NOT_MET = 0, 3


@dataclass(frozen=True)
class Parts:
    """How many samples have which role.

    Attributes
    ----------
    train : int
        What the members learn from.
    tune : int
        Of these, judged by members that were trained without them.
    certify : int
        What no step sees before the certificate.
    unused : int
        Further samples of groups that certify.
    """

    train: int
    tune: int
    certify: int
    unused: int


class Result:
    """What became of a request, whatever it was made of.

    Attributes
    ----------
    model : SteeredClassifier or None
        The certified model.
    refusal : str
        Why there is none; empty if none was asked for.
    """

    model: SteeredClassifier | None
    refusal: str

    @property
    def reply(self) -> Reply:
        """The last reply."""
        raise NotImplementedError

    @property
    def met(self) -> bool:
        """Whether the last reply meets what was asked, on the tuning samples."""
        return self.reply.met

    @property
    def exit_code(self) -> int:
        """For a shell: 0 if it is met and certified, else 3."""
        return MET if self.met and self.model is not None else NOT_MET

    def evaluate(self) -> str:
        """What happened, in a sentence or two."""
        if self.met and self.model is not None:
            return "Met on the tuning samples, and certified."
        reply = self.reply
        if self.met and self.refusal:
            return f"Met on the tuning samples, but it cannot be promised: {self.refusal}"
        if self.met:
            return "Met on the tuning samples; nothing was promised, since it was not accepted."
        short = (
            f"Not reachable on the tuning samples: the nearest is {reply.shortfall:g} samples "
            f"short, and '{reply.binding}' binds."
        )
        if self.model is not None:
            return (
                f"{short} A model that keeps the promise on new samples was certified all the same."
            )
        return f"{short} It cannot be promised either: {self.refusal}" if self.refusal else short


@dataclass(frozen=True, eq=False)
class Outcome(Result):
    """What became of a request.

    Attributes
    ----------
    samples : Samples
        What was asked about.
    dialog : Dialog
        The dialog, all steps taken.
    confidence : float
        At which a promise was wanted.
    model : SteeredClassifier or None
        The certified model.
    refusal : str
        Why there is none; empty if none was asked for.
    roles : Parts or None
        Who saw how many samples, where it is known.
    """

    samples: Samples
    dialog: Dialog
    confidence: float
    model: SteeredClassifier | None = None
    refusal: str = ""
    roles: Parts | None = None

    @property
    def start(self) -> Reply:
        """The dialog before anything was asked."""
        return self.dialog.history[0]

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The replies to what was asked."""
        return self.dialog.history[1:]

    @property
    def parts(self) -> Parts:
        """Who saw how many samples."""
        if self.roles is not None:
            return self.roles
        n, tune, part = len(self.samples.y), self.start.after.n, self.dialog._ledger.part
        certify = 0 if part is None else len(part.codes)
        train = tune if self.samples.time is None else n - certify
        return Parts(train, tune, certify, n - train - certify)

    @property
    def reply(self) -> Reply:
        """The last reply."""
        return self.dialog.reply

    @property
    def n_rows(self) -> int:
        """How many samples there are."""
        return len(self.samples.y)

    @property
    def encoder(self) -> Any:
        """What columns were taken for."""
        return self.dialog.model.scorer_.committee.encoder

    def told_parts(self) -> str:
        """The parts, in words."""
        parts = self.parts
        build = f"{parts.train:,} rows to build on"
        if parts.tune == parts.train:
            build += ", each judged by models that were trained without it"
        else:
            build += f"; {parts.tune:,} of them judged by models that were trained on earlier ones"
        unused = f"\n{parts.unused:,} more rows of the groups set aside are not used"
        support = self.dialog.support(self.confidence)
        return f"{build}\n{support}{unused if parts.unused else ''}"


def check_request(
    samples: Samples,
    wants: Sequence[Preference],
    confidence: float,
    strategies: Sequence[str] | None,
) -> None:
    """Refuse what can be seen to be wrong before anything is trained."""
    check_confidence(confidence, "--confidence")
    get_strategies(strategies, "--strategies")
    classes, sizes = np.unique(samples.y, return_counts=True)
    if len(classes) > 1:  # else the dialog says what is wrong
        matrix = Confusion(np.diag(sizes), classes.tolist(), samples.positive)
        for want in wants:
            want.check_counts(matrix)


def run_request(
    samples: Samples,
    wants: Sequence[Preference],
    *,
    confidence: float = 0.95,
    certify: Any = "auto",
    strategies: Sequence[str] | None = None,
    seed: int | None = 0,
    n_jobs: int | None = None,
    on_training: Callable[[Progress], Any] | None = None,
    on_reply: Callable[[str, Reply | None], Any] | None = None,
    path: Path | None = None,
) -> Outcome:
    """Train a committee, ask for each preference on top of those before, and accept.

    Parameters
    ----------
    samples : Samples
        The table.
    wants : sequence of Preference
        One request each; what was asked before still holds.
    confidence, certify, ways, seed, n_jobs
        As in :class:`Dialog`.
    on_training : callable, optional
        Called after each model that is trained.
    on_reply : callable, optional
        Called with what is asked and None when it is, and then with each better reply.
    path : Path, optional
        Where the dialog is written after every step.
    """
    check_request(samples, wants, confidence, strategies)
    dialog = Dialog.from_data(
        samples.X,
        samples.y,
        certify=certify,
        guarantee=Preference(*wants),
        confidence=confidence,
        positive=samples.positive,
        groups=samples.groups,
        time=samples.time,
        n_jobs=n_jobs,
        random_state=seed,
        callback=on_training,
    )
    if path is not None:
        dialog.autosave(path)
    for want in wants:
        if on_reply is not None:
            on_reply(str(want), None)
        dialog.prefer(
            want, keep=True, strategies=strategies, callback=_telling(on_reply, str(want))
        )
    try:
        model = dialog.accept(confidence=confidence)
    except GuaranteeError as error:
        return Outcome(samples, dialog, confidence, refusal=str(error))
    return Outcome(samples, dialog, confidence, model)


def _telling(
    on_reply: Callable[[str, Reply | None], Any] | None, want: str
) -> Callable[[Reply], None]:
    """Pass replies on, and answer nothing: a true answer would stop the search."""

    def tell(reply: Reply) -> None:
        if on_reply is not None:
            on_reply(want, reply)

    return tell
