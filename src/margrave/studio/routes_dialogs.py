"""Dialogs: begin, ask, go back and forth, grow and tune, accept."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from margrave.confusion import Preference, PreferenceError
from margrave.steer._strategies import get_strategies
from margrave.studio import programs, schemas, views, work
from margrave.studio.choices import few_enough, plainly, sized
from margrave.studio.context import Studio, TheStudio, TheUser
from margrave.studio.jobs import Closed, Job, TooMany, stream
from margrave.studio.views import Record

router = APIRouter(prefix="/api")


def begin(studio: Studio, owner: str, given: schemas.NewDialog) -> tuple[str, Job]:
    """Add a dialog and train it."""
    choices = given.model_dump(exclude={"table", "title"})
    table = studio.store.table(owner, given.table)
    if given.guarantee is not None:
        Preference(given.guarantee)
    samples = studio.workspace.samples(owner, table.id, choices)
    parts, _ = sized(samples, choices)  # refuses now what would be refused later
    if given.kind == "committee" and given.members is None:
        choices["members"] = work.usual_members(parts.train)
    row = studio.store.add_dialog(owner, given.title or table.name, table.id, choices)
    try:
        return row.id, studio.submit(owner, "train", row.id, work.train)
    except (TooMany, Closed):
        studio.store.delete_dialog(owner, row.id)
        raise


@router.post("/dialogs", status_code=202, response_model=schemas.Begun)
def new(given: schemas.NewDialog, studio: TheStudio, user: TheUser) -> Record:
    """Begin a dialog: its members are trained by a job."""
    dialog, job = begin(studio, user, given)
    return {"dialog": studio.record(user, dialog), "job": job.record()}


@router.post("/dialogs/{dialog}/retry", status_code=202, response_model=schemas.Begun)
def retry(dialog: str, studio: TheStudio, user: TheUser) -> Record:
    """Train again what failed or was cancelled."""
    row = studio.idle(user, dialog)
    if row.state == "ready":
        raise ValueError("This dialog is trained already.")
    studio.store.set_state(dialog, "training")  # also while it waits for its turn
    try:
        job = studio.submit(user, "train", dialog, work.train)
    except (TooMany, Closed):
        studio.store.set_state(dialog, row.state, row.error)
        raise
    return {"dialog": studio.record(user, dialog), "job": job.record()}


@router.get("/dialogs", response_model=schemas.Dialogs)
def dialogs(studio: TheStudio, user: TheUser) -> Record:
    """All dialogs of the user, the newest first."""
    lines = [
        {
            "id": row.id,
            "title": row.title,
            "table": row.table_name,
            "kind": row.choices["kind"],
            "state": row.state,
            "steps": row.n_steps,
            "asked": row.asked,
            "met": row.met,
            "accepted": row.n_accepted,
            "updated": row.updated.isoformat(),
        }
        for row in studio.store.dialogs(user)
    ]
    return {"dialogs": lines}


@router.get("/dialogs/{dialog}", response_model=schemas.Dialog)
def dialog(dialog: str, studio: TheStudio, user: TheUser) -> Record:
    """A dialog with all its steps."""
    return studio.record(user, dialog)


@router.patch("/dialogs/{dialog}", response_model=schemas.Dialog)
def rename(dialog: str, given: schemas.Renamed, studio: TheStudio, user: TheUser) -> Record:
    """Give it another title."""
    studio.store.rename(user, dialog, given.title)
    return studio.record(user, dialog)


@router.delete("/dialogs/{dialog}", status_code=204)
def delete(dialog: str, studio: TheStudio, user: TheUser) -> None:
    """Delete it, with all its steps and models."""
    studio.store.dialog(user, dialog)
    job = studio.queue.of_dialog(dialog)
    if job is not None:
        studio.queue.cancel(job)
    studio.store.delete_dialog(user, dialog)
    studio.workspace.forget(dialog, deleted=True)


@router.post("/dialogs/{dialog}/read", response_model=schemas.Read)
def read(dialog: str, given: schemas.Reading, studio: TheStudio, user: TheUser) -> Record:
    """What edits of the matrix and words mean, as sentences, before it is asked for."""
    live = studio.workspace.live(user, dialog)
    matrix = live.dialog.confusion
    try:
        few_enough(given.wants)
        wants = [matrix.edit(one.true, one.answer, one.to) for one in given.edits]
        wanted = live.dialog._wanted([*wants, *given.wants], given.keep)
    except ValueError as error:
        return {"preference": None, "sentences": [], "error": plainly(error), "already": False}
    return {
        "preference": str(wanted),
        "sentences": views.sentences(wanted, matrix),
        "error": None,
        "already": wanted.met(matrix),
    }


@router.post("/dialogs/{dialog}/prefer", status_code=202, response_model=schemas.Job)
def prefer(dialog: str, given: schemas.Asking, studio: TheStudio, user: TheUser) -> Record:
    """Ask for a preference, by a job."""
    studio.idle(user, dialog)
    live = studio.workspace.live(user, dialog)
    get_strategies(given.strategies, "strategies")
    few_enough(given.wants)
    for want in given.wants:
        Preference(want)
    if given.at is not None:
        live.dialog._history.number(given.at, "goto")
    job = studio.submit(
        user, "prefer", dialog, work.prefer, given.wants, given.keep, given.strategies, given.at
    )
    return job.record()


@router.post("/dialogs/{dialog}/undo", response_model=schemas.Dialog)
def undo(dialog: str, studio: TheStudio, user: TheUser) -> Record:
    """Go back to where the last request was made."""
    studio.idle(user, dialog)
    with studio.workspace.changing(user, dialog) as live:
        live.dialog.undo()
    return studio.record(user, dialog)


@router.post("/dialogs/{dialog}/redo", response_model=schemas.Dialog)
def redo(dialog: str, studio: TheStudio, user: TheUser) -> Record:
    """Take back an undo."""
    studio.idle(user, dialog)
    with studio.workspace.changing(user, dialog) as live:
        live.dialog.redo()
    return studio.record(user, dialog)


@router.post("/dialogs/{dialog}/goto", response_model=schemas.Dialog)
def goto(dialog: str, given: schemas.Going, studio: TheStudio, user: TheUser) -> Record:
    """Go to a step."""
    studio.idle(user, dialog)
    with studio.workspace.changing(user, dialog) as live:
        live.dialog.goto(given.step)
    return studio.record(user, dialog)


@router.post("/dialogs/{dialog}/frontier", status_code=202, response_model=schemas.Job)
def slow(dialog: str, studio: TheStudio, user: TheUser) -> Record:
    """Try the dear ways for the frontier, by a job."""
    studio.idle(user, dialog)
    studio.workspace.live(user, dialog).dialog.frontier()  # refuses without a positive class
    return studio.submit(user, "frontier", dialog, work.dear_frontier).record()


@router.post("/dialogs/{dialog}/program/tune", status_code=202, response_model=schemas.Job)
def tune(dialog: str, given: schemas.NodeWish, studio: TheStudio, user: TheUser) -> Record:
    """Tune one node of the program, by a job."""
    studio.idle(user, dialog)
    live = studio.workspace.live(user, dialog)
    few_enough(given.wants)
    for want in given.wants:
        Preference(want)
    votes = programs.node_votes(live.dialog, given.node)
    return studio.submit(user, "nodes", dialog, work.tune_node, votes, given.wants).record()


@router.post("/dialogs/{dialog}/program/grow", status_code=202, response_model=schemas.Job)
def grow(dialog: str, given: schemas.Growing, studio: TheStudio, user: TheUser) -> Record:
    """Grow the program by some levels, by a job."""
    studio.idle(user, dialog)
    programs.the_program(studio.workspace.live(user, dialog).dialog)
    return studio.submit(user, "grow", dialog, work.grow, given.levels).record()


@router.post("/dialogs/{dialog}/accept", status_code=202, response_model=schemas.Job)
def accept(dialog: str, given: schemas.Accepting, studio: TheStudio, user: TheUser) -> Record:
    """Certify the current model, by a job."""
    studio.idle(user, dialog)
    live = studio.workspace.live(user, dialog)
    if live.dialog.reply.preference is None:
        raise PreferenceError("There is nothing to promise yet: ask for something first.")
    job = studio.submit(user, "accept", dialog, work.accept, given.confidence, given.reserve)
    return job.record()


# Jobs


@router.get("/jobs/{job}", response_model=schemas.Job)
def job(job: str, studio: TheStudio, user: TheUser) -> Record:
    """Long work: how far it is."""
    return studio.queue.job(user, job).record()


@router.post("/jobs/{job}/cancel", response_model=schemas.Job)
def cancel(job: str, studio: TheStudio, user: TheUser) -> Record:
    """Stop long work; the best reply so far is kept."""
    found = studio.queue.job(user, job)
    waited = found.state == "waiting"
    studio.queue.cancel(found)
    if waited and found.kind == "train" and found.state == "cancelled":  # it will never run
        studio.store.set_state(found.dialog, "failed", work.CANCELLED)
    return found.record()


@router.get(
    "/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Events."}},
)
async def events(job: str, request: Request, studio: TheStudio, user: TheUser) -> StreamingResponse:
    """Progress as server-sent events, until the job ends."""
    told = stream(studio.queue.job(user, job), request.headers.get("last-event-id"))
    return StreamingResponse(told, media_type="text/event-stream")
