"""What the studio shows of a dialog, as its OpenAPI description has it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from margrave.studio.schemas import Change, Label, Matrix


class Comparison(BaseModel):
    """Two steps side by side."""

    first: int
    second: int
    n: int
    changed: int
    only_first: int
    only_second: int
    changes: list[Change]


class Curve(BaseModel):
    """The trade-offs of one way of deciding."""

    name: str
    fp: list[int]
    fn: list[int]


class Best(BaseModel):
    """A trade-off that nothing beats."""

    fp: int
    fn: int
    name: str


class Vertex(Best):
    """A trade-off that is cheapest for some costs; `high` is null where there is no end."""

    low: float
    high: float | None


class Visited(BaseModel):
    """Where the dialog has been."""

    step: int
    parent: int
    fp: int
    fn: int
    met: bool
    asked: str | None


class Frontier(BaseModel):
    """Every trade-off that is known to be reachable."""

    positive: Label
    negative: Label | None
    n_positive: int
    n_negative: int
    curves: list[Curve]
    best: list[Best]
    hull: list[Vertex]
    trajectory: list[Visited]
    slow: bool


class Winner(Best):
    """What is cheapest in a range of slopes, and its share of the range, in logarithms."""

    low: float
    high: float
    share: float


class Winners(BaseModel):
    """Which model wins where."""

    winners: list[Winner]
    slope: tuple[float, float]
    costs: tuple[float, float]
    priors: tuple[float, float]
    prior: float


class MemberRecord(BaseModel):
    """What a member does alone."""

    name: str
    weight: float
    errors: int
    fp: int | None
    fn: int | None
    accuracy: float


class Margins(BaseModel):
    """How sure right and wrong answers are: counts between edges."""

    edges: list[float]
    right: list[int]
    wrong: list[int]


class Disagreement(BaseModel):
    """The share of samples that two members answer differently."""

    names: list[str]
    shares: list[list[float]]


class Split(BaseModel):
    """How many members agree with the answer: of how many samples, and how many of them wrong."""

    votes: list[int]
    n: list[int]
    wrong: list[int]


class Members(BaseModel):
    """What the members say."""

    members: list[MemberRecord]
    regions: int
    regions_only: bool
    margins: Margins
    disagreement: Disagreement
    split: Split


class Row(BaseModel):
    """A tuning sample: its line in the table, and what is said of it."""

    row: int
    true: Label
    answer: Label | None
    certainty: float
    votes: list[Label]
    values: list[str]


class Rows(BaseModel):
    """Some of the samples behind a cell."""

    total: int
    columns: list[str]
    members: list[str]
    rows: list[Row]


class Node(BaseModel):
    """A node of a program, with its local matrix on the tuning samples."""

    id: str
    votes: list[int]
    layer: int
    kind: Literal["learner", "constant", "frozen", "empty", "leaf"]
    answer: Label | None
    sizes: list[int]
    reach: float
    advantages: list[float | None]
    weak: bool
    matrix: Matrix
    tuned: str | None


class Edge(BaseModel):
    """An edge of a program."""

    start: str
    end: str
    answer: Label | None
    flow: list[int]


class Program(BaseModel):
    """A martingale program, measured on the tuning samples."""

    levels: int
    n: int
    classes: list[Label]
    positive: Label | None
    threshold: float
    nodes: list[Node]
    edges: list[Edge]
    weak: list[str]
