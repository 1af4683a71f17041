"""The requests and responses of the studio's API, for its OpenAPI description."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from margrave.studio.views import (
    Accepted,
    GoalChoice,
    Label,
    Matrix,
    Parts,
    SplitPlan,
    Step,
    Support,
    View,
)

Kind = Literal["committee", "program"]
State = Literal["training", "ready", "failed"]
JobKind = Literal["train", "prefer", "nodes", "grow", "accept"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
Encoding = Literal["utf-8", "cp1252", "utf-16"]
DecimalMark = Literal[".", ","]

Text = Annotated[str, Field(max_length=500)]
Name = Annotated[str, Field(max_length=1000)]
Wish = Annotated[str, Field(max_length=20_000)]  # names of classes may be long
Wants = Annotated[list[Wish], Field(min_length=1, max_length=20)]
Confidence = Annotated[float, Field(gt=0.5, lt=1)]


class RequestBody(BaseModel):
    """The base of all requests; unknown fields and other types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """An error: a message for people, and a code and fields for programs."""

    error: str
    code: str
    fields: dict[str, Any] | None


PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem, "description": text}
    for code, text in {
        400: "The request cannot be fulfilled.",
        401: "A token is needed.",
        403: "The request comes from another page.",
        404: "Not found.",
        408: "Sent too slowly.",
        409: "Not possible at the moment.",
        413: "Too large.",
        415: "Unsupported content type.",
        421: "The studio has another host name.",
        422: "The request does not match the schema.",
        429: "Too many requests.",
        503: "The studio is shutting down.",
    }.items()
}
"""The responses to requests that are refused, for each route."""


class Count(BaseModel):
    """A class and its number of rows."""

    label: Label
    count: int


class Limits(View):
    """The limits on uploads and jobs."""

    upload_bytes: int
    rows: int
    columns: int
    jobs_waiting: int


class BundledSet(BaseModel):
    """A data set of the package."""

    name: str
    rows: int
    columns: int
    classes: list[str]
    about: str


class Member(BaseModel):
    """A classifier that can be trained."""

    name: str
    about: str


class Studio(BaseModel):
    """The studio itself."""

    version: str
    shared: bool
    limits: Limits
    sets: list[BundledSet]
    members: list[Member]
    onnx: bool


class Column(BaseModel):
    """A column of a table."""

    name: str
    kind: str
    why: str
    distinct: int
    missing: int
    examples: list[str]


class Preview(BaseModel):
    """The first rows of a table, as text."""

    columns: list[str]
    rows: list[list[str]]


class Table(BaseModel):
    """A table in the store."""

    id: str
    name: str
    rows: int
    target: str | None
    columns: list[Column]
    preview: Preview


class Finding(BaseModel):
    """A column that should probably not be an ordinary feature."""

    column: str
    kind: Literal["entity", "identifier", "time"]
    reason: str


class Classes(BaseModel):
    """The classes in a column, and what was found in the others."""

    classes: list[Count]
    positive: Label | None
    findings: list[Finding]


class Bundled(RequestBody):
    """The name of a data set of the package."""

    name: Text


class Choices(RequestBody):
    """The choices of a user before training."""

    target: Name
    positive: Label | None = None
    drop: Annotated[list[Name], Field(max_length=5000)] = []
    group: Name | None = None
    time: Name | None = None
    certify: Literal["auto"] | Annotated[float, Field(gt=0, lt=1)] | None = "auto"
    duplicates: Literal["auto", "group", "near", "independent"] = "auto"
    confidence: Confidence = 0.95
    kind: Kind = "committee"
    guarantee: Text | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class NewDialog(Choices):
    """A new dialog."""

    table: Text
    members: Annotated[list[Text], Field(min_length=1, max_length=20)] | None = None
    levels: Annotated[int, Field(ge=1, le=15)] = 5
    title: Text | None = None


class Plan(BaseModel):
    """The split of the rows that the choices lead to."""

    parts: Parts
    support: list[Support]
    planned: SplitPlan | None  # null if the split was not planned
    remarks: list[str]
    used_up: bool  # whether guarantees have used up the rows of this table


class MemberProgress(BaseModel):
    """The training progress of a member."""

    name: str
    done: int
    total: int
    state: Literal["done", "running", "waiting"]


class Provisional(BaseModel):
    """The confusion matrix of the finished members, on the tuning set."""

    members: int
    confusion: Matrix


class Progress(BaseModel):
    """The progress of a job."""

    done: int
    total: int
    text: str
    members: list[MemberProgress] | None = None
    provisional: Provisional | None = None


class Job(BaseModel):
    """A job; `restarted` if the process that ran it has ended, so that it begins again."""

    id: str
    kind: JobKind
    dialog: str
    state: JobState
    ahead: int
    restarted: bool
    progress: Progress | None
    reply: Step | None
    error: str | None
    code: str | None
    fields: dict[str, Any] | None
    result: dict[str, Any] | None


class TableName(BaseModel):
    """The id and the name of a table."""

    id: str
    name: str


class Dialog(BaseModel):
    """A dialog, with all its steps."""

    id: str
    title: str
    table: TableName | None
    target: str | None
    kind: Kind
    state: State
    error: str | None
    classes: list[Label]
    positive: Label | None
    members: list[str]
    parts: Parts | None
    support: list[Support]
    confidence: float
    n: int
    position: int
    undone: list[int]
    can_undo: bool
    can_redo: bool
    steps: list[Step]
    accepted: list[Accepted]
    left: str
    used_up: bool
    opened: float | None
    job: Job | None
    saved: bool
    updated: datetime
    link: str | None
    read_only: bool


class DialogLine(View):
    """A dialog in the list of dialogs; `preference` and `met` belong to its current step.

    `n_useless` of its accepted models are certified, but useless.
    """

    id: str
    title: str
    table_name: str | None
    kind: Kind
    state: State
    n_steps: int
    preference: str | None
    met: bool | None
    n_accepted: int
    n_useless: int
    updated: datetime


class Dialogs(BaseModel):
    """A user's dialogs, the newest first."""

    dialogs: list[DialogLine]


class Begun(BaseModel):
    """A new dialog and the job that trains it."""

    dialog: Dialog
    job: Job


class Renamed(RequestBody):
    """A new title."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Edit(RequestBody):
    """A new number in a cell; `predicted` is the predicted class, null for the rejected column."""

    true: Label
    predicted: Label | None = None
    to: Annotated[int, Field(ge=0)] | Text


class Reading(RequestBody):
    """Edits and limits in words that are not requested yet."""

    edits: Annotated[list[Edit], Field(max_length=500)] = []
    wants: Annotated[list[Wish], Field(max_length=20)] = []
    then: Wish | None = None
    keep: bool = True


class Read(BaseModel):
    """The preference that edits mean, also as sentences, and the matrix that a request would reach.

    `replaced` are the earlier limits that the edits replace. `after` and `met` are null without a
    preference, or if the tuning set is too large.
    """

    preference: str | None
    sentences: list[str]
    error: str | None
    code: str | None = None
    fields: dict[str, Any] | None = None
    already: bool
    goal: str | None = None
    goals: list[GoalChoice] = []
    replaced: list[str] = []
    after: Matrix | None = None
    met: bool | None = None


class Asking(RequestBody):
    """A request: limits in words, what to minimise within them, and the step it starts from."""

    wants: Wants
    then: Wish | None = None
    keep: bool = True
    strategies: Annotated[list[Text], Field(min_length=1, max_length=10)] | None = None
    at: Annotated[int, Field(ge=0)] | None = None


class Going(RequestBody):
    """The step to go to."""

    step: Annotated[int, Field(ge=0)]


class NodeWish(RequestBody):
    """Limits in words for one node of a program."""

    node: Text
    wants: Wants


class Growing(RequestBody):
    """The number of levels to add."""

    levels: Annotated[int, Field(ge=1, le=5)] = 1


class Accepting(RequestBody):
    """The confidence of a certificate, and whether to reserve half of delta for another one.

    `anyway` certifies also if a useful model is probably not certified.
    """

    confidence: Confidence = 0.95
    reserve: bool = False
    anyway: bool = False
