"""Routes of the views of a dialog: trade-offs, members, rows, programs, and downloads."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from margrave.app.messages import InputError
from margrave.app.tables import csv_text
from margrave.steer import Comparison, Dialog, GuaranteeError
from margrave.studio import exports, views
from margrave.studio.context import StudioParameter, UserParameter
from margrave.studio.guard import attachment
from margrave.studio.problems import problem_record
from margrave.studio.programs import Program
from margrave.studio.rows import Cell, Rows, rows_table

router = APIRouter(prefix="/api/dialogs/{dialog}")


def get_dialog(dialog: str, studio: StudioParameter, user: UserParameter) -> Dialog:
    """Return a user's dialog, at its current step."""
    return studio.workspace.live(user, dialog).dialog


def get_frame(dialog: str, studio: StudioParameter, user: UserParameter) -> Any:
    """Return the tuning set of a user's dialog, as in the user's table."""
    return studio.workspace.tuning_frame(user, dialog)


DialogParameter = Annotated[Dialog, Depends(get_dialog)]
FrameParameter = Annotated[Any, Depends(get_frame)]
CellParameter = Annotated[Cell, Depends()]
Number = Annotated[int, Query(ge=0)]
Positive = Annotated[float, Query(ge=1e-6, le=1e6)]
Prior = Annotated[float | None, Query(ge=1e-6, le=1 - 1e-6)]


@router.get("/compare", response_model=views.Comparison)
def compare(dialog: DialogParameter, first: Number, second: Number) -> Comparison:
    """Two steps side by side."""
    return dialog.compare(first, second)


@router.get("/frontier", response_model=views.Frontier)
def frontier(dialog: DialogParameter) -> views.Record:
    """All known trade-offs."""
    return dialog.frontier().to_dict()


@router.get("/winners")
def winners(
    dialog: DialogParameter,
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
    known = dialog.frontier()
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
    dialog: DialogParameter,
    frame: FrameParameter,
    cell: CellParameter,
    sort: Annotated[str, Query(max_length=1000)] = "certainty",
    descending: bool = False,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 25,
) -> Rows:
    """The rows of the tuning set in a cell, page by page."""
    page = slice(offset, offset + limit)
    return Rows.of(cell.select(dialog), frame, sort=sort, descending=descending, page=page)


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
    """Whether the certification set is large enough for the guarantee of the current step."""
    try:
        dialog.check_accept(confidence=confidence, reserve=reserve)
    except GuaranteeError as error:
        return views.Guarantee(**problem_record(error))
    return views.Guarantee(error=None)


# Downloads


def _file(kind: str) -> dict[int | str, dict[str, Any]]:
    """The description of a download in the OpenAPI schema."""
    return {200: {"content": {kind: {}}, "description": "The file."}}


@router.get("/rows.csv", response_class=Response, responses=_file("text/csv"))
def all_rows(dialog: DialogParameter, frame: FrameParameter, cell: CellParameter) -> Response:
    """All rows of the tuning set in a cell, as CSV; formulas are escaped."""
    text = csv_text(rows_table(cell.select(dialog), frame))
    return attachment("rows.csv", "text/csv; charset=utf-8", text.encode())


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
def report(dialog: str, studio: StudioParameter, user: UserParameter) -> Response:
    """A report on the dialog, as one page."""
    row = studio.store.dialog(user, dialog)
    with studio.exporting(user):
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
