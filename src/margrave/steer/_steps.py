"""Store a dialog step by step: its start once, then each step and each accepted model by itself.

Writing a whole dialog takes seconds, because its members are large. A step is small, because it
mostly refers to scores and members that the start, or an earlier step, already holds. So a store
can make each step durable at once, and restore the dialog from the start and the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave.committee import FittedMembers
from margrave.steer._dialog import Dialog, History
from margrave.steer._files import dump_bytes, load_bytes
from margrave.steer._ledger import Accepted, Account
from margrave.steer._reply import Reply
from margrave.steer._scorer import Scorer
from margrave.steer._steered import SteeredClassifier


@dataclass(frozen=True, eq=False)
class StepRecord:
    """A step without what an earlier step already holds.

    Attributes
    ----------
    reply : Reply
        The reply, whose candidate has neither scorer nor scores.
    scored_like : int or None
        Number of the earlier step with the same scorer and scores; None if there is no such step.
    scorer : Scorer or None
        The scorer, if no earlier step has it. Members that the dialog started with are replaced by
        their positions among these.
    scores : ndarray or None
        Scores of the tuning set, if no earlier step has them.
    """

    reply: Reply
    scored_like: int | None
    scorer: Scorer | None
    scores: NDArray[np.float64] | None


@dataclass(frozen=True)
class StoredStep:
    """A step as it is stored.

    Attributes
    ----------
    parent : int
        Number of the step at which the request was made.
    data : bytes
        The step, from :func:`dump_step`.
    """

    parent: int
    data: bytes


@dataclass(frozen=True)
class StoredModel:
    """An accepted model as it is stored.

    Attributes
    ----------
    step : int
        Number of the step whose model was accepted.
    samples : str
        Name of the certification set.
    data : bytes
        The model, from :func:`dump_model`.
    """

    step: int
    samples: str
    data: bytes


def dump_start(dialog: Dialog) -> bytes:
    """Dump a dialog as it was at its start."""
    start = copy(dialog)
    start._history = History([dialog.history[0]])
    start._ledger = replace(dialog._ledger, accounts={}, accepted=[])
    start._path = None
    return dump_bytes(start)


def dump_step(dialog: Dialog, step: int) -> bytes:
    """Dump one step of a dialog, not the start."""
    reply = dialog.history[step]
    candidate, like = reply.candidate, None
    for number, earlier in enumerate(dialog.history[:step]):
        other = earlier.candidate
        if other.scorer is candidate.scorer and other.scores is candidate.scores:
            like = number
            break
    stored_apart: Any = None
    bare = replace(reply, candidate=replace(candidate, scorer=stored_apart, scores=stored_apart))
    if like is not None:
        return dump_bytes(StepRecord(bare, like, None, None))
    committee = candidate.scorer.committee
    known = {id(member): place for place, member in enumerate(_start_members(dialog))}
    members = [known.get(id(member), member) for member in committee.members]
    slim = replace(committee, members=members, encoder=committee.encoder is not None)
    return dump_bytes(
        StepRecord(bare, None, replace(candidate.scorer, committee=slim), candidate.scores)
    )


def dump_model(accepted: Accepted) -> bytes:
    """Dump an accepted model, as the bytes of its file."""
    return dump_bytes(accepted.model)


def restore_dialog(
    base: bytes,
    steps: Sequence[StoredStep],
    at: int,
    undone: Sequence[int],
    accounts: Sequence[Account] = (),
    accepted: Sequence[StoredModel] = (),
) -> Dialog:
    """Restore a dialog from its start and its steps.

    Parameters
    ----------
    base : bytes
        The start, from :func:`dump_start`.
    steps : sequence of StoredStep
        The steps after the start, in order.
    at : int
        Number of the current step.
    undone : sequence of int
        Numbers of the steps that were undone, the last one last.
    accounts : sequence of Account, default=()
        The part of delta that is used, for each certification set.
    accepted : sequence of StoredModel, default=()
        The accepted models, in order.

    Returns
    -------
    Dialog
        The dialog at the step `at`.
    """
    dialog = load_bytes(base, Dialog)
    for step in steps:
        dialog._history.add(_restore_reply(load_bytes(step.data, StepRecord), dialog), step.parent)
    dialog._history.at, dialog._history.undone = at, list(undone)
    dialog._ledger.accounts.update({account.samples: account for account in accounts})
    dialog._ledger.accepted.extend(
        Accepted(stored.step, stored.samples, load_bytes(stored.data, SteeredClassifier))
        for stored in accepted
    )
    return dialog


def _start_members(dialog: Dialog) -> Iterator[Any]:
    """Yield the members a dialog started with: of its tuning data, then of its first scorer."""
    first: FittedMembers = dialog.history[0].candidate.scorer.committee
    yield from dialog._data.committee.members
    yield from first.members


def _restore_reply(record: StepRecord, dialog: Dialog) -> Reply:
    """Restore a reply, with the scores and members that it shares with other steps."""
    reply, history = record.reply, dialog.history
    if record.scored_like is not None:
        like = history[record.scored_like].candidate
        candidate = replace(reply.candidate, scorer=like.scorer, scores=like.scores)
        return replace(reply, candidate=candidate)
    if record.scorer is None or record.scores is None:
        raise ValueError("A stored step needs scorer and scores, or scored_like; got neither.")
    known, committee = list(_start_members(dialog)), record.scorer.committee
    members = [known[member] if isinstance(member, int) else member for member in committee.members]
    encoder = dialog._data.committee.encoder if committee.encoder else None
    scorer = replace(record.scorer, committee=replace(committee, members=members, encoder=encoder))
    return replace(reply, candidate=replace(reply.candidate, scorer=scorer, scores=record.scores))
