"""The views of a dialog, for the OpenAPI description of the API."""

from __future__ import annotations

from typing import Any, Literal

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
    """The trade-offs of one strategy."""

    name: str
    fp: list[int]
    fn: list[int]


class Best(BaseModel):
    """A trade-off that no other one improves on."""

    fp: int
    fn: int
    name: str


class Vertex(Best):
    """A trade-off with the lowest cost for some cost ratios; `high` is null if unbounded."""

    low: float
    high: float | None


class Visited(BaseModel):
    """A step of the dialog as a point of the plane."""

    step: int
    parent: int
    fp: int
    fn: int
    met: bool
    preference: str | None


class Frontier(BaseModel):
    """All trade-offs that are known to be reachable."""

    positive: Label
    negative: Label | None
    n_positive: int
    n_negative: int
    curves: list[Curve]
    best: list[Best]
    hull: list[Vertex]
    trajectory: list[Visited]


class Winner(Best):
    """The trade-off with the lowest cost in a range of slopes.

    `fraction` is the part of the whole range where it wins, on a logarithmic scale.
    """

    low: float
    high: float
    fraction: float


class Winners(BaseModel):
    """The trade-offs with the lowest cost, for each part of a range of costs and priors."""

    winners: list[Winner]
    slope: tuple[float, float]
    costs: tuple[float, float]
    priors: tuple[float, float]
    prior: float


class Guarantee(BaseModel):
    """The reason why a guarantee cannot be proved; null if it may be."""

    error: str | None
    code: str | None = None
    fields: dict[str, Any] | None = None


class MemberRecord(BaseModel):
    """A member, with the errors of its own predictions."""

    name: str
    weight: float
    errors: int
    fp: int | None
    fn: int | None
    accuracy: float


class Margins(BaseModel):
    """Histograms of the margins of right and wrong predictions."""

    edges: list[float]
    right: list[int]
    wrong: list[int]


class Disagreement(BaseModel):
    """The fraction of rows for which two members predict different classes."""

    names: list[str]
    fractions: list[list[float]]


class Split(BaseModel):
    """The number of rows, and of errors, by how many members agree with the prediction."""

    votes: list[int]
    n: list[int]
    wrong: list[int]


class Members(BaseModel):
    """The members of a dialog and their predictions."""

    members: list[MemberRecord]
    margins: Margins
    disagreement: Disagreement
    split: Split


class Row(BaseModel):
    """A row of the tuning set: its number in the table, its prediction and the members' votes."""

    row: int
    true: Label
    predicted: Label | None
    certainty: float
    votes: list[Label]
    values: list[str]


class Rows(BaseModel):
    """One page of the rows in a cell."""

    total: int
    columns: list[str]
    members: list[str]
    rows: list[Row]


class Node(BaseModel):
    """A node of a program, with its local matrix on the tuning set."""

    id: str
    votes: list[int]
    layer: int
    kind: Literal["learner", "constant", "frozen", "empty", "leaf"]
    predicted: Label | None
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
    predicted: Label | None
    flow: list[int]


class Program(BaseModel):
    """A martingale program, measured on the tuning set."""

    levels: int
    n: int
    classes: list[Label]
    positive: Label | None
    threshold: float
    nodes: list[Node]
    edges: list[Edge]
    weak: list[str]
