"""Routes of the views of a dialog: trade-offs, members, rows, programs, and downloads."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from margrave.app.messages import InputError
from margrave.app.request import expect
from margrave.app.samples import match_label
from margrave.app.tables import csv_text
from margrave.steer import Comparison, Dialog, Frontier, GuaranteeError
from margrave.studio import exports, views
from margrave.studio.context import ReadsOnlyParameter, StudioParameter, UserParameter
from margrave.studio.guard import attachment
from margrave.studio.problems import problem_record
from margrave.studio.programs import Program
from margrave.studio.rows import Cell, ChangedRows, Number, Page, Rows, Steps, Text, rows_table

router = APIRouter(prefix="/api/dialogs/{dialog}")


def get_dialog(dialog: str, studio: StudioParameter, user: UserParameter) -> Dialog:
    """Return a user's dialog, at its current step."""
    return studio.workspace.live(user, dialog).dialog


def get_frame(dialog: str, studio: StudioParameter, user: UserParameter) -> Any:
    """Return the tuning set of a user's dialog, as in the user's table."""
    return studio.workspace.tuning_frame(user, dialog)


DialogParameter = Annotated[Dialog, Depends(get_dialog)]


def get_frontier(dialog: DialogParameter, positive: Text = None) -> Frontier:
    """Return all known trade-offs of a class, by default of the dialog's positive class."""
    if positive is None:
        return dialog.frontier()
    return dialog.frontier(match_label(positive, np.array(dialog.classes), "positive"))


FrameParameter = Annotated[Any, Depends(get_frame)]
FrontierParameter = Annotated[Frontier, Depends(get_frontier)]
CellParameter = Annotated[Cell, Depends()]
StepsParameter = Annotated[Steps, Depends()]
PageParameter = Annotated[Page, Depends()]
Positive = Annotated[float, Query(ge=1e-6, le=1e6)]
Prior = Annotated[float | None, Query(ge=1e-6, le=1 - 1e-6)]


@router.get("/compare", response_model=views.Comparison)
def compare(dialog: DialogParameter, first: Number, second: Number) -> Comparison:
    """Two steps side by side."""
    return dialog.compare(first, second)


@router.get("/compare/rows")
def changed_rows(
    dialog: DialogParameter, frame: FrameParameter, steps: StepsParameter, page: PageParameter
) -> ChangedRows:
    """The rows of the tuning set that two steps predict differently, page by page."""
    return ChangedRows.of(dialog.compare(steps.first, steps.second), steps, frame, page)


@router.get("/frontier", response_model=views.Frontier)
def frontier(known: FrontierParameter) -> views.Record:
    """All known trade-offs of a class against all others."""
    return known.to_dict()


@router.get("/winners")
def winners(
    known: FrontierParameter,
    cost_low: Positive = 0.1,
    cost_high: Positive = 10.0,
    prior_low: Prior = None,
    prior_high: Prior = None,
) -> views.Winners:
    """The trade-offs with the lowest cost, for each part of a range of costs and priors."""
    if (prior_low is None) != (prior_high is None):
        missing, given = ("low", "high") if prior_low is None else ("high", "low")
        problem = f"is needed: the request has prior_{given}, and a range of priors has two ends."
        raise InputError(f"prior_{missing}", problem, code="missing")
    prior = known.n_positive / (known.n_positive + known.n_negative)
    costs, priors = (cost_low, cost_high), (prior_low or prior, prior_high or prior)
    found = known.winners(cost_ratio=costs, prior=priors)
    return views.Winners.model_validate(
        {"winners": found, "costs": costs, "priors": priors, "prior": prior}
    )


@router.get("/members")
def members(dialog: DialogParameter) -> views.Members:
    """The predictions of the members, and their disagreement."""
    return views.Members.of(dialog)


@router.get("/rows")
def some_rows(
    dialog: DialogParameter, frame: FrameParameter, cell: CellParameter, page: PageParameter
) -> Rows:
    """The rows of the tuning set in a cell, page by page."""
    return Rows.of(cell.select(dialog), frame, page)


@router.get("/program")
def program(
    dialog: DialogParameter, threshold: Annotated[float, Query(ge=0, le=0.5)] = 0.3
) -> Program:
    """The martingale program, measured on the tuning set."""
    return Program.of(dialog, threshold)


@router.get("/guarantee")
def guarantee(
    dialog: DialogParameter,
    confidence: Annotated[float, Query(gt=0.5, lt=1)] = 0.95,
    reserve: bool = False,
) -> views.Guarantee:
    """The certificate that can be expected of the current step; nothing is used up."""
    expected = expect(dialog, confidence, reserve)
    found = None if expected is None else views.ExpectedCertificate.model_validate(expected)
    # The error says why it is certain that nothing is certified; to find it takes as long again.
    if expected is None or expected.probability == 0:
        try:
            dialog.check_accept(confidence=confidence, reserve=reserve, anyway=True)
        except GuaranteeError as error:
            return views.Guarantee(expected=found, **problem_record(error))
    return views.Guarantee(expected=found)


# Downloads


def _file(kind: str) -> dict[int | str, dict[str, Any]]:
    """The description of a download in the OpenAPI schema."""
    return {200: {"content": {kind: {}}, "description": "The file."}}


def _csv(name: str, table: Any) -> Response:
    """A table as a CSV file; formulas are escaped."""
    return attachment(name, "text/csv; charset=utf-8", csv_text(table).encode())


@router.get("/rows.csv", response_class=Response, responses=_file("text/csv"))
def all_rows(dialog: DialogParameter, frame: FrameParameter, cell: CellParameter) -> Response:
    """All rows of the tuning set in a cell, as CSV."""
    return _csv("rows.csv", rows_table(cell.select(dialog), frame))


@router.get("/compare/rows.csv", response_class=Response, responses=_file("text/csv"))
def all_changed_rows(
    dialog: DialogParameter, frame: FrameParameter, steps: StepsParameter
) -> Response:
    """All rows of the tuning set that two steps predict differently, as CSV."""
    before, after = steps.select(dialog.compare(steps.first, steps.second))
    return _csv("changed_rows.csv", rows_table(after, frame, before))


@router.get("/dialog.json", response_class=Response, responses=_file("application/json"))
def as_json(dialog: str, studio: StudioParameter, user: UserParameter) -> Response:
    """The dialog as JSON."""
    body = exports.dialog_json(studio.store, user, studio.record(user, dialog))
    return attachment("dialog.json", "application/json", body.encode())


@router.get("/script.py", response_class=Response, responses=_file("text/x-python"))
def as_script(dialog: str, studio: StudioParameter, user: UserParameter) -> Response:
    """A script that reproduces the dialog."""
    body = exports.script(studio.store, user, studio.record(user, dialog))
    return attachment("script.py", "text/x-python; charset=utf-8", body.encode())


@router.get("/report.html", response_class=Response, responses=_file("text/html"))
def report(
    dialog: str, studio: StudioParameter, user: UserParameter, reads_only: ReadsOnlyParameter
) -> Response:
    """A report on the dialog, as one page."""
    row = studio.store.dialog(user, dialog)
    with studio.exporting(f"link {dialog}" if reads_only else user):
        body = exports.report(studio.workspace, user, row, studio.record(user, dialog))
    return attachment("report.html", "text/html; charset=utf-8", body.encode())


@router.get(
    "/accepted/{number}/model.skops", response_class=Response, responses=_file("application/zip")
)
def model(dialog: str, number: int, studio: StudioParameter, user: UserParameter) -> Response:
    """An accepted model, for `SteeredClassifier.load`."""
    body = exports.model_file(studio.store, user, dialog, number)
    return attachment("model.skops", "application/zip", body)


@router.get(
    "/accepted/{number}/model.onnx",
    response_class=Response,
    responses=_file("application/octet-stream"),
)
def onnx(dialog: str, number: int, studio: StudioParameter, user: UserParameter) -> Response:
    """An accepted model as ONNX, for other runtimes."""
    with studio.exporting(user):
        body = exports.accepted(studio.store, user, dialog, number).to_onnx()
    return attachment("model.onnx", "application/octet-stream", body)


@router.get("/accepted/{number}/card.md", response_class=Response, responses=_file("text/markdown"))
def card(dialog: str, number: int, studio: StudioParameter, user: UserParameter) -> Response:
    """The model card of an accepted model: its purpose, guarantee and requirements."""
    body = exports.accepted(studio.store, user, dialog, number).model_card()
    return attachment("card.md", "text/markdown; charset=utf-8", body.encode())


@router.get(
    "/accepted/{number}/certificate.json",
    response_class=Response,
    responses=_file("application/json"),
)
def certificate(dialog: str, number: int, studio: StudioParameter, user: UserParameter) -> Response:
    """The certificate of an accepted model."""
    body = exports.certificate_json(exports.accepted(studio.store, user, dialog, number))
    return attachment("certificate.json", "application/json", body)
