"""Routes of dialogs: begin, prefer, undo and redo, tune and grow a program, accept, share."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse, ServerSentEvent

from margrave.confusion import Preference, PreferenceError
from margrave.steer import default_members
from margrave.studio import programs, schemas, views
from margrave.studio.choices import check_number_of_limits, check_request, split_sizes
from margrave.studio.context import ReadsOnlyParameter, Studio, StudioParameter, UserParameter
from margrave.studio.job_table import TRAIN
from margrave.studio.problems import problem_record
from margrave.studio.store import Conflict, JobRow
from margrave.studio.views import Record

router = APIRouter(prefix="/api")

MOMENT = 0.3  # seconds that a request waits for its job
PREVIEWED = 40_000  # rows times classes, up to which several classes are previewed: about a second


def begin(studio: Studio, owner: str, body: schemas.NewDialog) -> tuple[str, JobRow]:
    """Add a dialog and start its training."""
    choices = body.model_dump(exclude={"table", "title"})
    table = studio.store.table(owner, body.table)
    samples = studio.workspace.samples(owner, table.id, choices)
    sizes = split_sizes(samples, choices)  # refuses invalid choices before training
    if body.kind == "committee" and body.members is None:
        choices["members"] = list(default_members(sizes.train))
    dialog, job = studio.jobs.begin(owner, body.title or table.name, table.id, choices)
    return dialog.id, job


@router.post("/dialogs", status_code=202, response_model=schemas.Begun)
def new(body: schemas.NewDialog, studio: StudioParameter, user: UserParameter) -> Record:
    """Begin a dialog; a job trains its members."""
    dialog, job = begin(studio, user, body)
    return {"dialog": studio.record(user, dialog), "job": studio.jobs.record(job)}


@router.post("/dialogs/{dialog}/retry", status_code=202, response_model=schemas.Begun)
def retry(dialog: str, studio: StudioParameter, user: UserParameter) -> Record:
    """Train a dialog again whose training failed or was cancelled."""
    job = studio.jobs.submit(user, TRAIN, dialog, {})
    return {"dialog": studio.record(user, dialog), "job": studio.jobs.record(job)}


@router.get("/dialogs", response_model=schemas.Dialogs)
def dialogs(studio: StudioParameter, user: UserParameter) -> Record:
    """All dialogs of the user, the newest first."""
    return {"dialogs": studio.store.dialogs(user)}


@router.get("/dialogs/{dialog}", response_model=schemas.Dialog)
def dialog(
    dialog: str, studio: StudioParameter, user: UserParameter, reads_only: ReadsOnlyParameter
) -> Record:
    """A dialog with all its steps."""
    return studio.record(user, dialog, reads_only=reads_only)


@router.patch("/dialogs/{dialog}", response_model=schemas.Dialog)
def rename(
    dialog: str, body: schemas.Renamed, studio: StudioParameter, user: UserParameter
) -> Record:
    """Change the title."""
    studio.store.rename(user, dialog, body.title)
    return studio.record(user, dialog)


@router.delete("/dialogs/{dialog}", status_code=204)
def delete(dialog: str, studio: StudioParameter, user: UserParameter) -> None:
    """Delete a dialog, with all its steps and models."""
    studio.store.dialog(user, dialog)
    job = studio.jobs.table.of_dialog(dialog)
    if job is not None:
        studio.jobs.cancel(job)
    studio.store.delete_dialog(user, dialog)
    studio.workspace.forget(dialog, deleted=True)


@router.post("/dialogs/{dialog}/share", response_model=schemas.Dialog)
def share(dialog: str, studio: StudioParameter, user: UserParameter) -> Record:
    """Make a read-only link to the dialog, unless it has one."""
    row = studio.store.dialog(user, dialog)
    if row.state != "ready":
        raise Conflict("This dialog is not trained yet.")
    if row.share_key is None:
        studio.store.share(user, dialog, secrets.token_urlsafe(32))
    return studio.record(user, dialog)


@router.delete("/dialogs/{dialog}/share", response_model=schemas.Dialog)
def stop_sharing(dialog: str, studio: StudioParameter, user: UserParameter) -> Record:
    """Make the read-only link invalid for ever."""
    studio.store.share(user, dialog, None)
    return studio.record(user, dialog)


@router.post("/dialogs/{dialog}/read", response_model=schemas.Read)
def read(
    dialog: str, body: schemas.Reading, studio: StudioParameter, user: UserParameter
) -> Record:
    """Describe edits of the matrix and limits in words, before they are requested."""
    live = studio.workspace.live(user, dialog).dialog
    at = live.position  # read once: a job may add a step
    step = live.history[at]
    matrix = step.after
    try:
        edits = [matrix.edit(edit.true, edit.predicted, edit.to) for edit in body.edits]
        options = body.model_dump(include={"then", "keep"})
        wanted = check_request(live, [*edits, *body.wants], **options, at=at)
    except ValueError as error:
        return {"preference": None, "sentences": [], "already": False, **problem_record(error)}
    earlier = step.preference.bounds if body.keep and step.preference is not None else ()
    k, n = len(matrix.classes), int(matrix.counts.sum())
    reply = live.preview(wanted, at=at) if k == 2 or k * n <= PREVIEWED else None
    return {
        "preference": str(wanted),
        "sentences": views.sentences(wanted, matrix),
        "error": None,
        "already": wanted.met(matrix),
        "goal": str(wanted.goal(matrix)),
        "goals": views.goals(wanted, matrix),
        "replaced": [str(bound) for bound in earlier if bound not in wanted.bounds],
        "after": None if reply is None else reply.after,
        "met": None if reply is None else reply.met,
    }


@router.post("/dialogs/{dialog}/prefer", status_code=202, response_model=schemas.Job)
def prefer(
    dialog: str, body: schemas.Asking, studio: StudioParameter, user: UserParameter
) -> Record:
    """Start a job that searches for a preference."""
    studio.check_idle(user, dialog)
    live = studio.workspace.live(user, dialog)
    options = body.model_dump(exclude={"wants"})
    check_request(live.dialog, body.wants, **options)
    return start(studio, user, "prefer", dialog, body.model_dump())


@router.post("/dialogs/{dialog}/undo", response_model=schemas.Dialog)
def undo(dialog: str, studio: StudioParameter, user: UserParameter) -> Record:
    """Go back to the step before the last request."""
    studio.check_idle(user, dialog)
    with studio.workspace.changing(user, dialog) as live:
        live.dialog.undo()
        studio.workspace.write(dialog, live, idle=True)
    return studio.record(user, dialog)


@router.post("/dialogs/{dialog}/redo", response_model=schemas.Dialog)
def redo(dialog: str, studio: StudioParameter, user: UserParameter) -> Record:
    """Revert an undo."""
    studio.check_idle(user, dialog)
    with studio.workspace.changing(user, dialog) as live:
        live.dialog.redo()
        studio.workspace.write(dialog, live, idle=True)
    return studio.record(user, dialog)


@router.post("/dialogs/{dialog}/goto", response_model=schemas.Dialog)
def goto(dialog: str, body: schemas.Going, studio: StudioParameter, user: UserParameter) -> Record:
    """Go to a step."""
    studio.check_idle(user, dialog)
    with studio.workspace.changing(user, dialog) as live:
        live.dialog.goto(body.step)
        studio.workspace.write(dialog, live, idle=True)
    return studio.record(user, dialog)


@router.post("/dialogs/{dialog}/program/tune", status_code=202, response_model=schemas.Job)
def tune(
    dialog: str, body: schemas.NodeWish, studio: StudioParameter, user: UserParameter
) -> Record:
    """Start a job that tunes one node of the program."""
    studio.check_idle(user, dialog)
    live = studio.workspace.live(user, dialog)
    check_number_of_limits(live.dialog, body.wants)
    matrix = live.dialog.confusion
    for want in body.wants:
        Preference(want, classes=matrix.classes, positive=matrix.positive)
    votes = programs.node_votes(live.dialog, body.node)
    return start(studio, user, "nodes", dialog, {"votes": votes, "wants": body.wants})


@router.post("/dialogs/{dialog}/program/grow", status_code=202, response_model=schemas.Job)
def grow(
    dialog: str, body: schemas.Growing, studio: StudioParameter, user: UserParameter
) -> Record:
    """Start a job that adds levels to the program."""
    studio.check_idle(user, dialog)
    programs.current_program(studio.workspace.live(user, dialog).dialog)
    return start(studio, user, "grow", dialog, body.model_dump())


@router.post("/dialogs/{dialog}/accept", status_code=202, response_model=schemas.Job)
def accept(
    dialog: str, body: schemas.Accepting, studio: StudioParameter, user: UserParameter
) -> Record:
    """Start a job that certifies the current model."""
    studio.check_idle(user, dialog)
    live = studio.workspace.live(user, dialog)
    if live.dialog.reply.preference is None:
        raise PreferenceError(
            "The current step has no preference, so there is nothing to guarantee; edit the matrix "
            "first.",
            code="no_preference",
        )
    return start(studio, user, "accept", dialog, body.model_dump())


# Jobs


def start(studio: Studio, owner: str, kind: str, dialog: str, arguments: Record) -> Record:
    """Start a job; if it takes only a moment, return it with its result."""
    job = studio.jobs.submit(owner, kind, dialog, arguments)
    return studio.jobs.record(studio.jobs.wait(job, MOMENT))


def find_job(job: str, studio: StudioParameter, user: UserParameter) -> JobRow:
    """Return a user's job."""
    return studio.jobs.table.find(user, job)


JobParameter = Annotated[JobRow, Depends(find_job)]


@router.get("/jobs/{job}", response_model=schemas.Job)
def job(job: JobParameter, studio: StudioParameter) -> Record:
    """A job and its progress."""
    return studio.jobs.record(job)


@router.post("/jobs/{job}/cancel", response_model=schemas.Job)
def cancel(job: JobParameter, studio: StudioParameter) -> Record:
    """Stop a job; the best reply so far is kept."""
    studio.jobs.cancel(job)
    return studio.jobs.record(studio.jobs.table.find(job.owner, job.id))


@router.post("/jobs/{job}/enough", response_model=schemas.Job)
def enough(job: JobParameter, studio: StudioParameter) -> Record:
    """End a training with the members that are finished; 409 if none is."""
    studio.jobs.enough(job)
    return studio.jobs.record(studio.jobs.table.find(job.owner, job.id))


_JSON = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


@router.get(
    "/jobs/{job}/events",
    response_class=EventSourceResponse,
    # Otherwise the description has the errors as events.
    responses={
        status: {"description": problem["description"], "content": _JSON}
        for status, problem in schemas.PROBLEMS.items()
    },
)
async def events(job: JobParameter, studio: StudioParameter) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events with the record of a job after each change, until its end."""
    async for record in studio.jobs.follow(job):
        over = record["state"] not in ("waiting", "running")
        yield ServerSentEvent(event="end" if over else "job", data=record)
