"""The jobs on dialogs: training, replies, tuning and growing programs, certificates.

Each is a function that a job runs. It reports its progress, stops when the job is cancelled, and
stores its changes together with the end of the job.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from margrave.app import Samples
from margrave.app.messages import describe_training
from margrave.app.request import Outcome
from margrave.committee import wait_for_closed_trainings
from margrave.steer import Dialog, GroupsWarning, GuaranteeError, Progress, UselessWarning
from margrave.studio import views
from margrave.studio.jobs import Handle
from margrave.studio.problems import problem_record
from margrave.studio.store import JobRow, StoreError
from margrave.studio.workspace import Live, Workspace


def train(workspace: Workspace, job: JobRow, handle: Handle) -> None:
    """Train the committee or program of a dialog."""
    row = workspace.store.dialog(job.owner, job.dialog_id)
    if row.table_id is None:
        raise ValueError("This dialog has no table to train on.")
    while not handle.stopped() and not wait_for_closed_trainings(0.5):
        handle.progress(0, 1, "Waiting for the models of a stopped training")
    handle.progress(0, 1, "Reading the table")
    samples = workspace.samples(job.owner, row.table_id, row.choices)
    dialog = _train_dialog(workspace, job, handle, samples, row.choices)
    last = handle.news["progress"]
    handle.progress(1, 1, "Saving", last["members"], last["provisional"])
    choices = row.choices
    if choices["kind"] == "committee":
        choices = {**choices, "members": list(dialog.members)}  # fewer if they were enough
    ended = handle.done({"step": 0})
    workspace.ready(job.dialog_id, dialog, ended=ended, choices=choices)


def _train_dialog(
    workspace: Workspace, job: JobRow, handle: Handle, samples: Samples, choices: dict[str, Any]
) -> Dialog:
    """Train a dialog on samples, and report the progress of each member."""
    done: Counter[str] = Counter()
    finished: tuple[str, ...] = ()
    program = choices["kind"] == "program"
    names = [] if program else list(choices.get("members") or ())

    def report(progress: Progress) -> None:
        nonlocal finished
        finished = progress.finished
        done[progress.member] += 1  # of no member at the start
        members = [
            {
                "name": name,
                "done": done[name],
                "total": progress.total // len(names),
                "state": "done" if name in finished else "running" if name in progress.running
                else "waiting",
            }
            for name in names
        ]  # fmt: skip
        provisional = None
        if progress.confusion is not None:
            matrix = views.Matrix.model_validate(progress.confusion).model_dump()
            provisional = {"members": len(progress.scored), "confusion": matrix}
        text = describe_training(progress)
        handle.progress(progress.done, progress.total, text, members or None, provisional)

    def enough() -> bool:
        try:
            wanted = workspace.store.enough_members(job.id)
        except StoreError:  # the training goes on, and asks again after the next member
            return False
        return wanted is not None and len(finished) >= wanted

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GroupsWarning)  # the page shows what was found
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
            duplicates=choices.get("duplicates", "group"),
            n_jobs=handle.n_jobs,
            random_state=choices["seed"],
            callback=report,
            stop=handle.stopped,
            enough=enough,
            ledger=workspace.ledger(choices),
            table=samples.table.frame.drop(columns=samples.target),
        )
    dialog.forget_table()  # the store has it, and memory is limited
    return dialog


def prefer(workspace: Workspace, job: JobRow, handle: Handle) -> None:
    """Search for a preference, and report each better reply; a note says why no step is added."""
    with workspace.changing(job.owner, job.dialog_id) as live:
        dialog, options = live.dialog, dict(job.arguments)
        wants, at = options.pop("wants"), options["at"]
        parent = dialog.position if at is None else at
        for reply in dialog.replies(*wants, **options, stop=handle.stopped):
            if not reply.final:
                handle.reply(views.step_record(reply, None, parent))
        if reply.note is None:
            live.strategies[dialog.position] = options["strategies"]
        _store_step(workspace, job, handle, live, reply.note)


def tune_node(workspace: Workspace, job: JobRow, handle: Handle) -> None:
    """Tune one node of a program."""
    with workspace.changing(job.owner, job.dialog_id) as live:
        votes, wants = tuple(job.arguments["votes"]), job.arguments["wants"]
        live.dialog.tune_nodes({votes: ", ".join(wants)}, stop=handle.stopped)
        _store_step(workspace, job, handle, live)


def grow(workspace: Workspace, job: JobRow, handle: Handle) -> None:
    """Add levels to a program."""
    levels = job.arguments["levels"]
    handle.progress(0, levels, "Growing")

    def report(progress: Progress) -> None:
        text = f"{progress.done} of {progress.total} levels"
        handle.progress(progress.done, progress.total, text)

    with workspace.changing(job.owner, job.dialog_id) as live:
        live.dialog.grow(levels, callback=report, stop=handle.stopped)
        _store_step(workspace, job, handle, live)


def _store_step(
    workspace: Workspace, job: JobRow, handle: Handle, live: Live, note: str | None = None
) -> None:
    """Store a new step, and the end of the job that made it; without a new one, with a note."""
    result = {"step": live.dialog.position}
    ended = handle.done(result if note is None else {**result, "note": note})
    workspace.write(job.dialog_id, live, ended=ended)


def accept(workspace: Workspace, job: JobRow, handle: Handle) -> None:
    """Certify the current model; the ledger has recorded the use, whatever happens here."""
    handle.progress(0, 1, "Computing the guarantee on the certification set")
    row = workspace.store.dialog(job.owner, job.dialog_id)
    samples = None
    if row.table_id is not None:
        samples = workspace.samples(job.owner, row.table_id, row.choices)
    with workspace.changing(job.owner, job.dialog_id) as live:
        dialog, terms = live.dialog, job.arguments
        kept = dict(terms)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UselessWarning)  # the page says so
                model = dialog.accept(**terms)
        except GuaranteeError as error:
            if error.used_up:
                live.refuse(error.fields["use_number"], {"step": dialog.position, **terms})
            ended = handle.ended("failed", **problem_record(error))
        else:
            same = [accepted.model is model for accepted in dialog.accepted]
            ended = handle.done({"accepted": same.index(True) + 1})
            if samples is not None:
                outcome = Outcome.of(samples, dialog, terms["confidence"], model)
                kept["errors"] = outcome.describe_errors()
        workspace.write(job.dialog_id, live, ended=ended, accepted=kept)


KINDS = {"train": train, "prefer": prefer, "nodes": tune_node, "grow": grow, "accept": accept}
"""The work of each kind of job."""
