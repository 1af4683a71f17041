"""Long work on dialogs: training, replies, growing and tuning programs, certificates.

Each is a function that a job runs: it tells how far it is, stops when it is asked to, and what it
gives back is in the store already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from margrave.app._samples import Samples
from margrave.catalogue import default_committee
from margrave.committee import Progress
from margrave.steer._dialog import Dialog
from margrave.steer._frontier import offer_candidates
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._split import FOLDS
from margrave.steer._strategies import STRATEGIES
from margrave.studio import views
from margrave.studio.choices import plainly, sized
from margrave.studio.jobs import Cancelled, Handle
from margrave.studio.views import Record
from margrave.studio.workspace import Workspace

CANCELLED = "Training was cancelled."


class RefusedError(ValueError):
    """What cannot be done, in a sentence for the user."""


def usual_members(rows: int) -> list[str]:
    """The members of the default committee for so many rows to train on, in folds."""
    return [name for name, _ in default_committee(rows * (FOLDS - 1) // FOLDS)]


def train(workspace: Workspace, owner: str, dialog_id: str, handle: Handle) -> Record:
    """Train what was chosen for a dialog."""
    row = workspace.store.dialog(owner, dialog_id)
    if row.state == "ready":
        return {"step": 0}
    workspace.store.set_state(dialog_id, "training")
    try:
        if row.table_id is None:
            raise RefusedError("This dialog has no table to train on.")
        handle.progress(0, 1, "Reading the table")
        given = workspace.samples(owner, row.table_id, row.choices)
        parts, _ = sized(given, row.choices)
        dialog = _trained(given, row.choices, handle)
        bars = [{"name": name, "done": 1, "total": 1} for name in row.choices.get("members") or ()]
        handle.progress(1, 1, "Writing it down", bars or None)
        workspace.ready(dialog_id, dialog, parts, pinned=False)
    except Cancelled:
        if not workspace.closing:  # else it goes on when the studio is back
            workspace.store.set_state(dialog_id, "failed", CANCELLED)
        raise
    except ValueError as error:
        workspace.store.set_state(dialog_id, "failed", plainly(error))
        raise RefusedError(plainly(error)) from error
    except BaseException:
        workspace.store.set_state(dialog_id, "failed", "Training did not end well.")
        raise
    return {"step": 0}


def _trained(given: Samples, choices: dict[str, Any], handle: Handle) -> Dialog:
    """A dialog on samples, with progress for each member."""
    done: Counter[str] = Counter()
    program = choices["kind"] == "program"
    names = [] if program else list(choices.get("members") or ())

    def tell(at: Progress) -> None:
        if handle.stopped():
            raise Cancelled
        done[at.member] += 1
        of_each = at.total // max(len(names), 1) if names else at.total
        members = [{"name": name, "done": done[name], "total": of_each} for name in names]
        handle.progress(at.done, at.total, at.member, members or None)

    dialog = Dialog.from_data(
        given.X,
        given.y,
        committee="martingale" if program else names or None,
        levels=choices["levels"],
        certify=choices["certify"],
        guarantee=choices["guarantee"],
        confidence=choices["confidence"],
        positive=given.positive,
        groups=given.groups,
        time=given.time,
        random_state=choices["seed"],
        callback=tell,
    )
    dialog._given = None  # the store has the table, and memory is bounded
    return dialog


def prefer(
    workspace: Workspace,
    owner: str,
    dialog_id: str,
    handle: Handle,
    wants: Sequence[str],
    keep: bool,
    strategies: Sequence[str] | None,
    at: int | None,
) -> Record:
    """Ask for a preference; better replies are told as they come."""
    with workspace.changing(owner, dialog_id) as live:
        dialog, history = live.dialog, live.dialog._history
        before = history.at, history.undone
        parent = dialog.position if at is None else at
        try:
            if parent != dialog.position:
                dialog.goto(parent)
            replies = dialog.replies(*wants, keep=keep, strategies=strategies, stop=handle.stopped)
        finally:  # the dialog moves when its step is there, not before
            history.at, history.undone = before
        for reply in replies:
            if not reply.final:
                handle.emit("reply", views.step_record(reply, None, parent))
        step = dialog.position
        live.strategies[step] = None if strategies is None else list(strategies)
    return {"step": step}


def dear_frontier(workspace: Workspace, owner: str, dialog_id: str, handle: Handle) -> Record:
    """What the dear ways could reach."""
    with workspace.held(owner, dialog_id) as live:
        base, tuning_data = live.dialog._base()
        matrix, strategies = (
            tuning_data.matrix(base.predictions),
            [strategy for strategy in STRATEGIES if strategy.slow],
        )
        found = []
        for candidate in offer_candidates(tuning_data, base, matrix, strategies):
            if handle.stopped():
                raise Cancelled
            found.append(candidate)
            handle.progress(
                len(found), len(found) + 1, f"{len(found)} found by {candidate.strategy}"
            )
        live.slow, live.dear_from = found, base
    return {"options": len(found)}


def tune_node(
    workspace: Workspace,
    owner: str,
    dialog_id: str,
    handle: Handle,
    votes: tuple[int, ...],
    wants: Sequence[str],
) -> Record:
    """Tune one node of a program."""
    with workspace.changing(owner, dialog_id) as live:
        live.dialog.tune_nodes({votes: ", ".join(wants)}, stop=handle.stopped)
        return {"step": live.dialog.position}


def grow(workspace: Workspace, owner: str, dialog_id: str, handle: Handle, levels: int) -> Record:
    """Grow a program."""
    handle.progress(0, levels, "Growing")

    def tell(at: Progress) -> None:
        handle.progress(at.done, at.total, f"{at.done} of {at.total} levels")

    with workspace.changing(owner, dialog_id) as live:
        live.dialog.grow(levels, callback=tell, stop=handle.stopped)
        return {"step": live.dialog.position}


def accept(
    workspace: Workspace,
    owner: str,
    dialog_id: str,
    handle: Handle,
    confidence: float,
    reserve: bool,
) -> Record:
    """Certify the current model; what was spent for it is stored, also if it is refused."""
    handle.progress(0, 1, "Setting the promise on the certify samples")
    with workspace.held(owner, dialog_id) as live:
        acceptance = live.dialog._ledger
        try:
            model = live.dialog.accept(confidence=confidence, reserve=reserve)
        except GuaranteeError as error:
            if error.used_up:
                step = live.dialog.position
                live.refuse({"step": step, "confidence": confidence, "reserve": reserve})
            raise
        finally:
            handle.progress(1, 2, "Writing it down")
            workspace.write_accepted(dialog_id, live, reserve)
        same = [one.model is model for one in acceptance.accepted]
        return {"accepted": same.index(True) + 1}
