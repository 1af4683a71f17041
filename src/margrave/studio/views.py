"""The objects of the library as the API sends them: steps, accepted models, trade-offs, members.

A model reads an object by its attributes, which have the same names in the library. Where it
combines several objects, its class method `of` takes them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from margrave import steer
from margrave._messages import name_class
from margrave.confusion import Bound, Confusion, Preference

Record = dict[str, Any]
Label = StrictBool | StrictInt | StrictFloat | StrictStr
Words = Annotated[str | None, BeforeValidator(lambda value: None if value is None else str(value))]
"""An object such as a preference or a bound, as text."""

_BINS = 20


class View(BaseModel):
    """The base of all models that read an object of the library."""

    model_config = ConfigDict(from_attributes=True)


# Steps


class Matrix(View):
    """A confusion matrix: a row for each true class; the last column counts the rejected."""

    classes: list[Label]
    positive: Label | None
    counts: list[list[int]]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return value.to_dict() if isinstance(value, Confusion) else value


class Change(View):
    """A cell of errors or rejections, before and after a step."""

    true: Label
    predicted: Label | None
    before: int
    after: int


class Miss(View):
    """A limit that is missed, and by how many rows."""

    bound: str
    samples: float


class Alternative(View):
    """What can be had instead; `kept` is the limit that has priority, null for the middle."""

    text: str
    kept: str | None
    preference: Words
    confusion: Matrix
    misses: list[Miss]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, steer.Alternative):
            return value.to_dict() | {"preference": value.preference}
        return value


class Reply(View):
    """A reply of a dialog."""

    preference: Words
    goal: Words
    strategy: str
    met: bool
    shortfall: float
    binding: Words
    instead: Words
    seconds: float
    n_candidates: int
    cancelled: bool
    final: bool
    before: Matrix
    after: Matrix
    changes: list[Change]
    note: str | None
    warnings: list[str]
    alternatives: list[Alternative]


class GoalChoice(View):
    """What to minimise within the limits: as the field `then` of a request, and as text."""

    then: str
    text: str


class ErrorLimit(View):
    """The number of false positives or of false negatives that a bound allows; not rounded.

    `subject` has the word of the bound and the position of its class, as ``fp(1)``: a new bound on
    the same subject replaces it.
    """

    subject: str
    error: Literal["fp", "fn"]
    most: float


class Step(Reply):
    """A step of a dialog; a preliminary reply has no number, and the start no parent.

    `limits` has the bounds of its preference if the numbers of false positives and of false
    negatives decide whether they are met, and is null otherwise.
    `goals` are the choices of what to minimise within its limits; `goal` is one of them.
    `strategies` are those that were requested; null is the default.
    `reject_percent` is the largest percentage of the rows that its preference allows to reject.
    """

    number: int | None
    parent: int | None
    strategies: list[str] | None = None
    sentences: list[str]
    goals: list[GoalChoice]
    already: bool
    fp: int | None
    fn: int | None
    limits: list[ErrorLimit] | None = None
    reject_percent: float = 0.0

    @classmethod
    def of(cls, reply: steer.Reply, number: int | None, parent: int | None) -> Self:
        """Describe a reply as a step."""
        wanted = reply.preference
        return cls(
            **dict(Reply.model_validate(reply)),
            number=number,
            parent=parent,
            sentences=[] if wanted is None else sentences(wanted, reply.after),
            goals=[] if wanted is None else goals(wanted, reply.after),
            already=wanted is not None and wanted.met(reply.before),
            limits=error_limits(wanted, reply.after),
            reject_percent=0.0 if wanted is None else reject_percent(wanted, reply.after),
            **_errors(reply.after),
        )


class ExpectedRate(View):
    """A rate on the tuning set and as expected; `low` to `high` is its 90 % range."""

    tuning: float
    rate: float | None
    low: float | None
    high: float | None


class ExpectedBound(ExpectedRate):
    """The rate that a bound limits."""

    bound: str
    limit: float
    at_most: bool


class ExpectedCell(ExpectedRate):
    """A cell of the confusion matrix, as a rate of its true class; `predicted` null is rejected."""

    true: Label
    predicted: Label | None


class ExpectedCertificate(View):
    """What a certificate will probably state, before the certification set is used.

    `useful` is the probability of a certificate for a model that is not useless. If it is below
    0.5, `nearest` are the limits to request instead.
    """

    preference: str
    confidence: float
    delta: float
    route: str
    probability: float
    useful: float | None = None  # null in certificates of earlier versions
    bounds: list[ExpectedBound]
    cells: list[ExpectedCell]
    nearest: str | None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        return value.to_dict() if isinstance(value, steer.ExpectedCertificate) else value


class Certificate(View):
    """A certificate; `useless` says why the model is useless although it is certified."""

    confidence: float
    preference: str
    goal: str
    meaning: str
    issued: str
    guarantees: list[Words]
    useless: list[str] = []
    confusion: Matrix
    route: str
    remarks: list[str]
    expected: ExpectedCertificate | None = None


class Accepted(Certificate):
    """An accepted model; `use_number` counts the uses of its certification set.

    `errors` describes the errors among 1,000 new rows in the proportions of the table, or among
    100 rows of each class if there is no table.
    """

    number: int
    use_number: int
    step: int
    text: str
    errors: str = ""
    onnx: bool | None  # null if the studio cannot tell

    @classmethod
    def of(cls, accepted: steer.Accepted, number: int, onnx: bool | None) -> Self:
        """Describe an accepted model and its certificate."""
        certificate = accepted.certificate
        return cls(
            **dict(Certificate.model_validate(certificate)),
            number=number,
            use_number=certificate.number,
            step=accepted.step,
            text=str(certificate),
            errors=f"Of 100 new rows of each class: {certificate.describe_errors()}.",
            onnx=onnx,
        )


def sentences(wanted: Preference, matrix: Confusion) -> list[str]:
    """Describe a preference in words; a fraction also as a count of these samples."""
    texts = []
    for bound in wanted.bounds:
        text = steer.describe_bound(bound, matrix)
        if bound.is_fraction and bound.word != "precision":
            count, base = _count(bound, matrix)
            text += f" ({count:,} of {base:,})"
        texts.append(text)
    return texts


def _exact_count(bound: Bound, matrix: Confusion) -> tuple[Fraction, int]:
    """The limit of a bound in samples, and the number of samples that it applies to."""
    base = int(matrix.counts[bound.cells(matrix)[1]].sum())
    return bound.limit * base if bound.is_fraction else bound.limit, base


def _count(bound: Bound, matrix: Confusion) -> tuple[int, int]:
    """The limit of a bound as a count, and the number of samples that it applies to."""
    exact, base = _exact_count(bound, matrix)
    return math.floor(exact) if bound.at_most else math.ceil(exact), base


def goals(wanted: Preference, matrix: Confusion) -> list[GoalChoice]:
    """The choices of what to minimise within some limits: first the one in force, then the usual.

    With two classes, each limit suggests the errors that it does not limit.
    """
    usual = wanted.limits.goal(matrix)
    each = wanted.bounds if len(matrix.classes) == 2 else ()
    suggested = (Preference.of([bound]).goal(matrix) for bound in each)
    names = {"fewest fp": "fewest false alarms"}
    if matrix.positive is not None:
        names["fewest fn"] = f"fewest missed {name_class(matrix.positive)}"
    if usual.outside:
        names[str(usual)] = "fewest other errors"
    texts = dict.fromkeys(map(str, (wanted.goal(matrix), usual, *suggested, "fewest errors")))
    return [GoalChoice(then=text, text=names.get(text, text)) for text in texts]


def error_limits(wanted: Preference | None, matrix: Confusion) -> list[ErrorLimit] | None:
    """Express a preference as limits on fp and fn; None if it limits anything else."""
    if wanted is None:
        return []
    if len(matrix.classes) > 2:
        return None
    positive, classes = matrix.classes.index(matrix.positive), list(map(str, matrix.classes))
    limits = []
    for bound in wanted.bounds:
        if bound.word == "rejected" and bound.at_most and not bound.limit:
            continue  # the frontier rejects nothing
        amount, base = bound.cells(matrix)
        true, predicted = (int(place[0]) for place in np.nonzero(amount))
        is_cell_of_row = amount.sum() == 1 and base[true].all() and base.sum() == base.shape[1]
        if not is_cell_of_row or predicted == 2 or bound.at_most != (true != predicted):
            return None
        exact, size = _exact_count(bound, matrix)
        word, labels = bound.subject(matrix)
        places = (str(classes.index(label)) for label in labels)
        limits.append(
            ErrorLimit(
                subject=f"{word}({', '.join(places)})",
                error="fn" if true == positive else "fp",
                most=float(exact if bound.at_most else size - exact),
            )
        )
    return limits


def reject_percent(wanted: Preference, matrix: Confusion) -> float:
    """The largest percentage of the rows that a preference allows to reject, rounded down."""
    bounds = [bound for bound in wanted.bounds if bound.word == "rejected" and bound.at_most]
    n = int(matrix.counts.sum())
    of_all = [b.limit if b.is_fraction else Fraction(b.limit, n) for b in bounds if not b.labels]
    of_classes = [Fraction(_count(bound, matrix)[0], n) for bound in bounds if bound.labels]
    least = min([*of_all, sum(of_classes)] if of_classes else of_all, default=0)
    return math.floor(100_000 * least) / 1000


def step_record(reply: steer.Reply, number: int | None, parent: int | None) -> Record:
    """A step of a dialog, as stored."""
    return Step.of(reply, number, parent).model_dump(mode="json")


def accepted_record(accepted: steer.Accepted, number: int, onnx: bool | None) -> Record:
    """An accepted model, as stored."""
    return Accepted.of(accepted, number, onnx).model_dump(mode="json")


def _errors(matrix: Confusion) -> Record:
    """The false positives and the false negatives; None without a positive class."""
    two = matrix.positive is not None
    return {"fp": matrix.fp if two else None, "fn": matrix.fn if two else None}


# The split


class Parts(View):
    """The number of rows in each part."""

    train: int
    tune: int
    certify: int
    unused: int
    copies: int
    near_copies: int


class Support(View):
    """The smallest limit, in percent, that the certification set of a class can support."""

    label: Label
    n: int
    least: float


def parts_record(sizes: steer.SplitSizes) -> Record:
    """The number of rows in each part."""
    return Parts.model_validate(sizes).model_dump()


def support_record(sizes: steer.SplitSizes, confidence: float) -> list[Record]:
    """The smallest limit that the certification set can support for each class, in percent."""
    if not sizes.certify:
        return []
    limits = sizes.smallest_limits(confidence)
    return [
        {"label": label, "n": n, "least": round(100 * limits[label], 4)}
        for label, n in sizes.certify_by_class.items()
    ]


class SplitOption(View):
    """A certification set that a plan considers; the keys of both dictionaries are classes."""

    certify_by_class: dict[str, int]
    allowed_errors: dict[str, int]
    recall: float
    more_rows: dict[str, int]


class SplitPlan(View):
    """How many rows are set aside for a guarantee, and the recall that this is expected to give."""

    guarantee: str
    confidence: float
    options: list[SplitOption]
    chosen: SplitOption
    recall_without: float
    further: list[SplitOption]
    by_class: bool
    seconds: float


def planned_record(sizes: steer.SplitSizes) -> Record | None:
    """How the certification set was planned; None if it was not planned."""
    return None if sizes.plan is None else SplitPlan(**sizes.plan.to_dict()).model_dump()


class Guarantee(View):
    """What a certificate will probably state, and why it cannot be issued; null if it may be."""

    error: str | None = None
    code: str | None = None
    fields: Record | None = None
    expected: ExpectedCertificate | None = None


# Trade-offs


class Comparison(View):
    """Two steps side by side, on the same rows."""

    n_changed: int
    n_only_first: int
    n_only_second: int
    changes: list[Change]


class Curve(View):
    """The trade-offs of one strategy; `steps`: those from which a request tries its thresholds."""

    name: str
    fp: list[int]
    fn: list[int]
    steps: list[int]


class Best(View):
    """A trade-off that no other one improves on."""

    fp: int
    fn: int
    name: str


class Winner(Best):
    """The trade-off with the lowest cost in a range of slopes; `high` is null if unbounded."""

    low: float
    high: float | None


class Frontier(View):
    """All trade-offs that are known to be reachable."""

    positive: Label
    negative: Label | None
    n_positive: int
    n_negative: int
    curves: list[Curve]
    best: list[Best]
    hull: list[Winner]


class Winners(View):
    """The trade-offs with the lowest cost, for each part of a range of costs and priors."""

    winners: list[Winner]
    costs: tuple[float, float]
    priors: tuple[float, float]
    prior: float


# Members


class Member(View):
    """A member, with the errors of its own predictions."""

    name: str
    weight: float
    n_errors: int
    fp: int | None
    fn: int | None
    accuracy: float


class Margins(View):
    """Histograms of the margins of right and wrong predictions, clipped at the 98 % quantile."""

    edges: list[float]
    right: list[int]
    wrong: list[int]

    @classmethod
    def of(cls, rows: steer.CellRows) -> Self:
        """Count the margins of some rows."""
        top = float(np.quantile(rows.margin, 0.98)) or 1.0
        edges = np.linspace(0.0, top, _BINS + 1)
        clipped, wrong = np.minimum(rows.margin, top), rows.predicted != rows.true
        right, missed = (np.histogram(clipped[at], edges)[0].tolist() for at in (~wrong, wrong))
        return cls(edges=edges.tolist(), right=right, wrong=missed)


class Members(View):
    """The members of a dialog and their predictions.

    `disagreement` is the fraction of rows for which two members predict different classes;
    `n_by_votes` and `wrong_by_votes` count the rows, and the errors, by how many members agree
    with the prediction.
    """

    members: list[Member]
    margins: Margins
    disagreement: list[list[float]]
    n_by_votes: list[int]
    wrong_by_votes: list[int]

    @classmethod
    def of(cls, dialog: steer.Dialog) -> Self:
        """Describe the members at the current step of a dialog."""
        rows, matrix, weights = dialog.rows(), dialog.confusion, dialog.reply.weights
        members = []
        for name, votes in rows.votes.items():
            own = Confusion.of(rows.true, votes, classes=matrix.classes, positive=matrix.positive)
            facts = {"n_errors": own.n_errors, "accuracy": own.accuracy, **_errors(own)}
            members.append(Member(name=name, weight=weights.get(name, 0.0), **facts))
        votes = np.column_stack(list(rows.votes.values()))
        agreeing = (votes == rows.predicted[:, None]).sum(axis=1)
        wrong, most = rows.predicted != rows.true, len(members) + 1
        return cls(
            members=members,
            margins=Margins.of(rows),
            disagreement=[(one != votes.T).mean(axis=1).tolist() for one in votes.T],
            n_by_votes=np.bincount(agreeing, minlength=most).tolist(),
            wrong_by_votes=np.bincount(agreeing[wrong], minlength=most).tolist(),
        )
