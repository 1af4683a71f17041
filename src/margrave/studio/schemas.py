"""What the studio's API takes and gives, as its OpenAPI description has it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
)

Label = StrictBool | StrictInt | StrictFloat | StrictStr
Kind = Literal["committee", "program"]
State = Literal["training", "ready", "failed"]
JobKind = Literal["train", "prefer", "frontier", "nodes", "grow", "accept"]
JobState = Literal["waiting", "running", "done", "failed", "cancelled"]

Text = Annotated[str, Field(max_length=500)]
Name = Annotated[str, Field(max_length=1000)]
Wish = Annotated[str, Field(max_length=20_000)]  # it may name long classes
Wants = Annotated[list[Wish], Field(min_length=1, max_length=20)]
Confidence = Annotated[float, Field(gt=0.5, lt=1)]


class Given(BaseModel):
    """What is sent to the studio: nothing but what is known, as it is described."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """Why something was not done."""

    error: str


class Count(BaseModel):
    """A class and its samples."""

    label: Label
    count: int


class Limits(BaseModel):
    """What may be sent."""

    upload_bytes: int
    rows: int
    columns: int
    jobs: int


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
    """A table that a dialog can be held on."""

    id: str
    name: str
    rows: int
    target: str | None
    columns: list[Column]
    preview: Preview


class Classes(BaseModel):
    """The classes in a column."""

    classes: list[Count]
    positive: Label | None


class Bundled(Given):
    """Which set of the package."""

    name: Text


class Choices(Given):
    """What a user says of a table, before training."""

    target: Name
    positive: Label | None = None
    drop: Annotated[list[Name], Field(max_length=5000)] = []
    group: Name | None = None
    time: Name | None = None
    certify: Literal["auto"] | Annotated[float, Field(gt=0, lt=1)] | None = "auto"
    confidence: Confidence = 0.95
    kind: Kind = "committee"
    guarantee: Text | None = None


class NewDialog(Choices):
    """A dialog to begin."""

    table: Text
    members: Annotated[list[Text], Field(min_length=1, max_length=20)] | None = None
    levels: Annotated[int, Field(ge=1, le=15)] = 5
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    title: Text | None = None


class Parts(BaseModel):
    """How many samples have which role."""

    train: int
    tune: int
    certify: int
    unused: int


class Support(BaseModel):
    """What the certify samples of a class can support: limits of so many percent and more."""

    label: Label
    n: int
    least: float


class Plan(BaseModel):
    """What choices lead to."""

    parts: Parts
    support: list[Support]
    remarks: list[str]


class Matrix(BaseModel):
    """A confusion matrix: a row for each true class, the rejected last."""

    classes: list[Label]
    positive: Label | None
    counts: list[list[int]]


class Change(BaseModel):
    """A cell of mistakes before and after."""

    true: Label
    answer: Label | None
    before: int
    after: int


class Step(BaseModel):
    """A step of a dialog; one on its way has no number yet, and the start no parent."""

    number: int | None
    parent: int | None
    asked: str | None
    sentences: list[str]
    strategy: str
    met: bool
    already: bool
    shortfall: float
    binding: str | None
    instead: str | None
    seconds: float
    options: int
    cancelled: bool
    final: bool
    matrix: Matrix
    before: Matrix
    changes: list[Change]
    fp: int | None
    fn: int | None
    note: str | None


class Accepted(BaseModel):
    """A model that was accepted, and what it promises."""

    number: int
    step: int
    confidence: float
    preference: str
    issued: str
    guarantees: list[str]
    confusion: Matrix
    route: str
    remarks: list[str]
    text: str
    onnx: bool


class MemberProgress(BaseModel):
    """How far a member is."""

    name: str
    done: int
    total: int


class Progress(BaseModel):
    """How far a job is."""

    done: int
    total: int
    text: str
    members: list[MemberProgress] | None = None


class Job(BaseModel):
    """Long work."""

    id: str
    kind: JobKind
    dialog: str
    state: JobState
    ahead: int
    progress: Progress | None
    error: str | None
    result: dict[str, Any] | None


class TableName(BaseModel):
    """Which table."""

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
    updated: str


class DialogLine(BaseModel):
    """A dialog in the list of dialogs."""

    id: str
    title: str
    table: str | None
    kind: Kind
    state: State
    steps: int
    asked: str | None
    met: bool | None
    accepted: int
    updated: str


class Dialogs(BaseModel):
    """A user's dialogs, the newest first."""

    dialogs: list[DialogLine]


class Begun(BaseModel):
    """A dialog that is trained."""

    dialog: Dialog
    job: Job


class Renamed(Given):
    """Another title."""

    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Edit(Given):
    """Another number in a cell; no answer is the rejected column."""

    true: Label
    answer: Label | None = None
    to: Annotated[int, Field(ge=0)] | Text


class Reading(Given):
    """What a user is about to ask for."""

    edits: Annotated[list[Edit], Field(max_length=500)] = []
    wants: Annotated[list[Wish], Field(max_length=20)] = []
    keep: bool = True


class Read(BaseModel):
    """What that means, in words."""

    preference: str | None
    sentences: list[str]
    error: str | None
    already: bool


class Asking(Given):
    """What is asked for, and from which step."""

    wants: Wants
    keep: bool = True
    strategies: Annotated[list[Text], Field(min_length=1, max_length=10)] | None = None
    at: Annotated[int, Field(ge=0)] | None = None


class Going(Given):
    """Where to."""

    step: Annotated[int, Field(ge=0)]


class NodeWish(Given):
    """What is wanted of a node."""

    node: Text
    wants: Wants


class Growing(Given):
    """How many levels more."""

    levels: Annotated[int, Field(ge=1, le=5)] = 1


class Accepting(Given):
    """At which confidence a model is accepted, and whether half is left for another."""

    confidence: Confidence = 0.95
    reserve: bool = False
