"""Steps of a dialog as bytes, without what the start or an earlier step already holds.

Writing a whole dialog takes seconds, because its members are large. A step is small, because it
mostly refers to scores and members that the start, or an earlier step, holds. So a store can make
each step durable in milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave.steer._files import dump_bytes, load_bytes
from margrave.steer._reply import Reply
from margrave.steer._scorer import Scorer
from margrave.steer._tuning_data import TuningData


@dataclass(frozen=True, eq=False)
class StepRecord:
    """A step without what an earlier step already holds.

    Attributes
    ----------
    parent : int
        Number of the step at which the request was made.
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

    parent: int
    reply: Reply
    scored_like: int | None
    scorer: Scorer | None
    scores: NDArray[np.float64] | None


def dump_step(reply: Reply, parent: int, earlier: Sequence[Reply], data: TuningData) -> bytes:
    """Dump a step, given the earlier steps, of which the first is the start."""
    candidate = reply.candidate
    stored_apart: Any = None
    bare = replace(reply, candidate=replace(candidate, scorer=stored_apart, scores=stored_apart))
    for number, step in enumerate(earlier):
        other = step.candidate
        if other.scorer is candidate.scorer and other.scores is candidate.scores:
            return dump_bytes(StepRecord(parent, bare, number, None, None))
    committee = candidate.scorer.committee
    known = {id(member): place for place, member in enumerate(_start_members(earlier, data))}
    members = [known.get(id(member), member) for member in committee.members]
    slim = replace(committee, members=members, encoder=committee.encoder is not None)
    scorer = replace(candidate.scorer, committee=slim)
    return dump_bytes(StepRecord(parent, bare, None, scorer, candidate.scores))


def load_step(
    data: bytes, earlier: Sequence[Reply], tuning: TuningData, trusted: Sequence[str] = ()
) -> tuple[Reply, int]:
    """Load a step and the number of its parent, given the earlier steps."""
    record = load_bytes(data, StepRecord, trusted)
    reply = record.reply
    if record.scored_like is not None:
        like = earlier[record.scored_like].candidate
        scorer, scores = like.scorer, like.scores
    elif record.scorer is None or record.scores is None:
        raise ValueError("A stored step needs scorer and scores, or scored_like; got neither.")
    else:
        known, committee = _start_members(earlier, tuning), record.scorer.committee
        members = [known[one] if isinstance(one, int) else one for one in committee.members]
        encoder = tuning.committee.encoder if committee.encoder else None
        committee = replace(committee, members=members, encoder=encoder)
        scorer, scores = replace(record.scorer, committee=committee), record.scores
    candidate = replace(reply.candidate, scorer=scorer, scores=scores)
    return replace(reply, candidate=candidate), record.parent


def _start_members(replies: Sequence[Reply], data: TuningData) -> list[Any]:
    """List the members a dialog started with: of its tuning data, then of its first scorer."""
    return [*data.committee.members, *replies[0].candidate.scorer.committee.members]
