"""A dialog in pieces: what it began with once, and each step by itself.

A whole dialog takes seconds to write, since its members are large; a step is small, because it
mostly refers to scores and members that are there already. So a store can make every step durable
as it is taken, and put the dialog together again from the pieces.
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
    """A step without what an earlier one holds too.

    Attributes
    ----------
    reply : Reply
        Its option has neither scorer nor scores.
    scored_like : int or None
        The step with the same scorer and scores of the tuning samples; else they follow.
    scorer : Scorer or None
        Its members that the dialog began with are numbers.
    scores : ndarray or None
        Scores of the tuning samples.
    """

    reply: Reply
    scored_like: int | None
    scorer: Scorer | None
    scores: NDArray[np.float64] | None


@dataclass(frozen=True)
class StoredStep:
    """A step, as it was stored.

    Attributes
    ----------
    parent : int
        From which step it was asked.
    data : bytes
        Its piece.
    """

    parent: int
    data: bytes


@dataclass(frozen=True)
class StoredModel:
    """An accepted model, as it was stored.

    Attributes
    ----------
    step : int
        Where the dialog stood.
    samples : str
        The certify samples.
    data : bytes
        The model.
    """

    step: int
    samples: str
    data: bytes


def dump_start(dialog: Dialog) -> bytes:
    """What a dialog began with."""
    base = copy(dialog)
    base._history = History([dialog.history[0]])
    base._ledger = replace(dialog._ledger, accounts={}, accepted=[])
    base._path = None
    return dump_bytes(base)


def dump_step(dialog: Dialog, step: int) -> bytes:
    """One step of a dialog, not the start."""
    reply = dialog.history[step]
    candidate, like = reply.candidate, None
    for number, earlier in enumerate(dialog.history[:step]):
        other = earlier.candidate
        if other.scorer is candidate.scorer and other.scores is candidate.scores:
            like = number
            break
    elsewhere: Any = None
    bare = replace(reply, candidate=replace(candidate, scorer=elsewhere, scores=elsewhere))
    if like is not None:
        return dump_bytes(StepRecord(bare, like, None, None))
    committee = candidate.scorer.committee
    known = {id(member): place for place, member in enumerate(_members(dialog))}
    members = [known.get(id(member), member) for member in committee.members]
    slim = replace(committee, members=members, encoder=committee.encoder is not None)
    return dump_bytes(
        StepRecord(bare, None, replace(candidate.scorer, committee=slim), candidate.scores)
    )


def dump_model(accepted: Accepted) -> bytes:
    """An accepted model, as its file."""
    return dump_bytes(accepted.model)


def restore_dialog(
    base: bytes,
    steps: Sequence[StoredStep],
    at: int,
    undone: Sequence[int],
    accounts: Sequence[Account] = (),
    accepted: Sequence[StoredModel] = (),
) -> Dialog:
    """A dialog put together again.

    Parameters
    ----------
    base : bytes
        What it began with.
    steps : sequence of Stored
        The steps after the start, in order.
    at, undone
        Where it stands, and what was undone.
    accounts : sequence of Account
        What was spent of certify samples.
    accepted : sequence of StoredModel
        Models, in order.
    """
    dialog = load_bytes(base, Dialog)
    for step in steps:
        dialog._history.add(_restore_reply(load_bytes(step.data, StepRecord), dialog), step.parent)
    dialog._history.at, dialog._history.undone = at, list(undone)
    dialog._ledger.accounts.update({one.samples: one for one in accounts})
    dialog._ledger.accepted.extend(
        Accepted(one.step, one.samples, load_bytes(one.data, SteeredClassifier)) for one in accepted
    )
    return dialog


def _members(dialog: Dialog) -> Iterator[Any]:
    """The members that a dialog began with: of its panel, and of its first scorer."""
    first: FittedMembers = dialog.history[0].candidate.scorer.committee
    yield from dialog._data.committee.members
    yield from first.members


def _restore_reply(piece: StepRecord, dialog: Dialog) -> Reply:
    """A step with what it shares with others."""
    reply, history = piece.reply, dialog.history
    if piece.scored_like is not None:
        like = history[piece.scored_like].candidate
        candidate = replace(reply.candidate, scorer=like.scorer, scores=like.scores)
        return replace(reply, candidate=candidate)
    if piece.scorer is None or piece.scores is None:
        raise ValueError("A step needs its own scores, or an earlier step's.")
    known, committee = list(_members(dialog)), piece.scorer.committee
    members = [known[one] if isinstance(one, int) else one for one in committee.members]
    encoder = dialog._data.committee.encoder if committee.encoder else None
    scorer = replace(piece.scorer, committee=replace(committee, members=members, encoder=encoder))
    return replace(reply, candidate=replace(reply.candidate, scorer=scorer, scores=piece.scores))
