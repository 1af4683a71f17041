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

from margrave.committee import Panel
from margrave.steer._dialog import Dialog, History
from margrave.steer._files import dump_bytes, load_bytes
from margrave.steer._ledger import Accepted, Account
from margrave.steer._reply import Reply
from margrave.steer._scorer import Scorer
from margrave.steer._steered import SteeredClassifier


@dataclass(frozen=True, eq=False)
class Piece:
    """A step without what an earlier one holds too.

    Attributes
    ----------
    reply : Reply
        Its option has neither scorer nor scores.
    scored_like : int or None
        The step with the same scorer and scores of the tuning samples; else they follow.
    scorer : Scorer or None
        Its members that the dialog began with are numbers.
    held : ndarray or None
        Scores of the tuning samples.
    """

    reply: Reply
    scored_like: int | None
    scorer: Scorer | None
    held: NDArray[np.float64] | None


@dataclass(frozen=True)
class Stored:
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


def base_bytes(dialog: Dialog) -> bytes:
    """What a dialog began with."""
    base = copy(dialog)
    base._history = History([dialog.history[0]])
    base._acceptance = replace(dialog._acceptance, accounts={}, accepted=[])
    base._path = None
    return dump_bytes(base)


def step_bytes(dialog: Dialog, step: int) -> bytes:
    """One step of a dialog, not the start."""
    reply = dialog.history[step]
    option, like = reply.option, None
    for number, earlier in enumerate(dialog.history[:step]):
        other = earlier.option
        if other.scorer is option.scorer and other.held is option.held:
            like = number
            break
    elsewhere: Any = None
    bare = replace(reply, option=replace(option, scorer=elsewhere, held=elsewhere))
    if like is not None:
        return dump_bytes(Piece(bare, like, None, None))
    panel = option.scorer.panel
    known = {id(member): place for place, member in enumerate(_members(dialog))}
    members = [known.get(id(member), member) for member in panel.members]
    slim = replace(panel, members=members, encoder=panel.encoder is not None)
    return dump_bytes(Piece(bare, None, replace(option.scorer, panel=slim), option.held))


def model_bytes(accepted: Accepted) -> bytes:
    """An accepted model, as its file."""
    return dump_bytes(accepted.model)


def rebuilt(
    base: bytes,
    steps: Sequence[Stored],
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
        dialog._history.add(_whole(load_bytes(step.data, Piece), dialog), step.parent)
    dialog._history.at, dialog._history.undone = at, list(undone)
    dialog._acceptance.accounts.update({one.samples: one for one in accounts})
    dialog._acceptance.accepted.extend(
        Accepted(one.step, one.samples, load_bytes(one.data, SteeredClassifier)) for one in accepted
    )
    return dialog


def _members(dialog: Dialog) -> Iterator[Any]:
    """The members that a dialog began with: of its panel, and of its first scorer."""
    first: Panel = dialog.history[0].option.scorer.panel
    yield from dialog._material.panel.members
    yield from first.members


def _whole(piece: Piece, dialog: Dialog) -> Reply:
    """A step with what it shares with others."""
    reply, history = piece.reply, dialog.history
    if piece.scored_like is not None:
        like = history[piece.scored_like].option
        option = replace(reply.option, scorer=like.scorer, held=like.held)
        return replace(reply, option=option)
    if piece.scorer is None or piece.held is None:
        raise ValueError("A step needs its own scores, or an earlier step's.")
    known, panel = list(_members(dialog)), piece.scorer.panel
    members = [known[one] if isinstance(one, int) else one for one in panel.members]
    encoder = dialog._material.panel.encoder if panel.encoder else None
    scorer = replace(piece.scorer, panel=replace(panel, members=members, encoder=encoder))
    return replace(reply, option=replace(reply.option, scorer=scorer, held=piece.held))
