"""The jobs on dialogs: training, replies, tuning and growing programs, certificates.

Each is a function that a job runs. It reports its progress, stops when the job is cancelled, and
returns when its result is in the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from margrave.app import Samples
from margrave.steer import Dialog, GuaranteeError, Progress, StoppedError
from margrave.studio import views
from margrave.studio.jobs import Cancelled, Handle
from margrave.studio.problems import plain_message
from margrave.studio.views import Record
from margrave.studio.workspace import Workspace

CANCELLED = "Training was cancelled."


def train(workspace: Workspace, owner: str, dialog_id: str, handle: Handle) -> Record:
    """Train the committee or program of a dialog."""
    row = workspace.store.dialog(owner, dialog_id)
    if row.state == "ready":
        return {"step": 0}
    workspace.store.set_state(dialog_id, "training")
    try:
        if row.table_id is None:
            raise ValueError("This dialog has no table to train on.")
        handle.progress(0, 1, "Reading the table")
        samples = workspace.samples(owner, row.table_id, row.choices)
        dialog = _train_dialog(samples, row.choices, handle)
        bars = [{"name": name, "done": 1, "total": 1} for name in row.choices.get("members") or ()]
        handle.progress(1, 1, "Saving", bars or None)
        workspace.ready(dialog_id, dialog, pinned=False)
    except StoppedError:
        if not workspace.closing:  # otherwise it continues at the next start of the studio
            workspace.store.set_state(dialog_id, "failed", CANCELLED)
        raise Cancelled from None
    except ValueError as error:
        workspace.store.set_state(dialog_id, "failed", plain_message(error))
        raise
    except BaseException:
        workspace.store.set_state(
            dialog_id,
            "failed",
            "Training failed with an internal error; the studio has logged the details.",
        )
        raise
    return {"step": 0}


def _train_dialog(samples: Samples, choices: dict[str, Any], handle: Handle) -> Dialog:
    """Train a dialog on samples, and report the progress of each member."""
    done: Counter[str] = Counter()
    program = choices["kind"] == "program"
    names = [] if program else list(choices.get("members") or ())

    def report(progress: Progress) -> None:
        done[progress.member] += 1
        of_each = progress.total // max(len(names), 1) if names else progress.total
        members = [{"name": name, "done": done[name], "total": of_each} for name in names]
        handle.progress(progress.done, progress.total, progress.member, members or None)

    dialog = Dialog.from_data(
        samples.X,
        samples.y,
        committee="martingale" if program else names or None,
        levels=choices["levels"],
        certify=choices["certify"],
        guarantee=choices["guarantee"],
        confidence=choices["confidence"],
        positive=samples.positive,
        groups=samples.groups,
        time=samples.time,
        random_state=choices["seed"],
        callback=report,
        stop=handle.stopped,
    )
    dialog.forget_table()  # the store has it, and memory is limited
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
    """Search for a preference, and send each better reply."""
    with workspace.changing(owner, dialog_id) as live:
        dialog = live.dialog
        parent = dialog.position if at is None else at
        replies = dialog.replies(
            *wants, keep=keep, strategies=strategies, at=at, stop=handle.stopped
        )
        for reply in replies:
            if not reply.final:
                handle.emit("reply", views.step_record(reply, None, parent))
        step = dialog.position
        live.strategies[step] = None if strategies is None else list(strategies)
    return {"step": step}


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
    """Add levels to a program."""
    handle.progress(0, levels, "Growing")

    def report(progress: Progress) -> None:
        text = f"{progress.done} of {progress.total} levels"
        handle.progress(progress.done, progress.total, text)

    with workspace.changing(owner, dialog_id) as live:
        live.dialog.grow(levels, callback=report, stop=handle.stopped)
        return {"step": live.dialog.position}


def accept(
    workspace: Workspace,
    owner: str,
    dialog_id: str,
    handle: Handle,
    confidence: float,
    reserve: bool,
) -> Record:
    """Certify the current model; the use of the certification set is stored, also if refused."""
    handle.progress(0, 1, "Computing the guarantee on the certification set")
    with workspace.held(owner, dialog_id) as live:
        try:
            model = live.dialog.accept(confidence=confidence, reserve=reserve)
        except GuaranteeError as error:
            if error.used_up:
                step = live.dialog.position
                live.refuse({"step": step, "confidence": confidence, "reserve": reserve})
            raise
        finally:
            handle.progress(1, 2, "Saving")
            workspace.write_accepted(dialog_id, live, reserve)
        same = [accepted.model is model for accepted in live.dialog.accepted]
        return {"accepted": same.index(True) + 1}
