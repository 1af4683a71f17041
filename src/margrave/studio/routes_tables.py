"""Routes of tables: bundled data sets, uploads, previews, and plans of the split."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Form, Query, UploadFile

from margrave import __version__, datasets
from margrave.app.messages import InputError
from margrave.steer import Dialog
from margrave.studio import schemas, uploads
from margrave.studio.choices import ABOUT, Source, bundled_frame, plan_record, samples
from margrave.studio.context import Studio, StudioParameter, UserParameter
from margrave.studio.facts import facts_of
from margrave.studio.store import TableRow
from margrave.studio.views import Record
from margrave.studio.workspace import source_of
from margrave.table import find_roles

router = APIRouter(prefix="/api")


@router.get("/studio", response_model=schemas.Studio)
def about(studio: StudioParameter) -> Record:
    """The studio: its limits, data sets and members."""
    return {
        "version": __version__,
        "shared": studio.settings.shared,
        "limits": studio.settings.limits,
        "sets": bundled_sets(),
        "members": [{"name": name, "about": text} for name, text in ABOUT.items()],
        "onnx": find_spec("skl2onnx") is not None,
    }


@cache
def bundled_sets() -> tuple[Record, ...]:
    """The available data sets with classes as target."""
    sets = []
    for name in datasets.names(available=True):
        bunch = datasets.load(name)
        if len(bunch.target_names):
            rows, columns = np.shape(bunch.data)
            sets.append(
                {
                    "name": name,
                    "rows": rows,
                    "columns": columns,
                    "classes": [str(label) for label in bunch.target_names],
                    "about": bunch.DESCR.strip().splitlines()[0],
                }
            )
    return tuple(sets)


def table_record(row: TableRow) -> Record:
    """A table as the page shows it."""
    return {"id": row.id, "name": row.name, **row.facts}


def add_table(studio: Studio, owner: str, source: Source, facts: Record, data: bytes) -> TableRow:
    """Store a table."""
    known = {"source": asdict(source), "digest": hashlib.sha256(data).hexdigest()}
    return studio.store.add_table(owner, source.name, facts | known, data)


@router.post("/tables", status_code=201, response_model=schemas.Table)
def upload(
    file: UploadFile,
    studio: StudioParameter,
    user: UserParameter,
    encoding: Annotated[schemas.Encoding | None, Form()] = None,
    decimal: Annotated[schemas.DecimalMark | None, Form()] = None,
) -> Record:
    """Upload a CSV or Parquet file; the fields of a "text_format" error say how to read it."""
    with studio.uploading(user):
        parsed = uploads.parse_upload(
            file.file,
            file.filename or "",
            studio.settings.limits,
            encoding=encoding,
            decimal=decimal,
        )
    source = Source(parsed.name, bundled=False, encoding=encoding, decimal=decimal)
    return table_record(add_table(studio, user, source, parsed.facts, parsed.parquet))


@router.post("/tables/bundled", status_code=201, response_model=schemas.Table)
def bundled(body: schemas.Bundled, studio: StudioParameter, user: UserParameter) -> Record:
    """Add a data set of the package."""
    return table_record(add_bundled(studio, user, body.name))


def add_bundled(studio: Studio, owner: str, name: str) -> TableRow:
    """Store a data set of the package as a user's table."""
    frame, source = bundled_frame(name)
    facts = facts_of(frame) | {"target": "target"}
    return add_table(studio, owner, source, facts, uploads.parquet_of(frame))


@router.get("/tables/{table}", response_model=schemas.Table)
def look(table: str, studio: StudioParameter, user: UserParameter) -> Record:
    """A table: its columns and first rows."""
    return table_record(studio.store.table(user, table))


@router.get("/tables/{table}/classes", response_model=schemas.Classes)
def classes(
    table: str,
    target: Annotated[str, Query(max_length=1000)],
    studio: StudioParameter,
    user: UserParameter,
) -> Record:
    """The classes in a column, if it can be a target."""
    source = source_of(studio.store.table(user, table).facts)
    data = samples(studio.workspace.frame(user, table), source, {"target": target})
    labels, counts = np.unique(data.y, return_counts=True)
    problem = ""
    if len(labels) < 2:
        problem = f"has {len(labels)}"
    elif labels.dtype.kind == "f" and not np.all(np.isfinite(labels) & (labels == labels.round())):
        problem = "holds numbers with fractions"
    elif 2 * len(labels) > len(data.y):
        problem = "has a different value in most rows"
    if problem:
        problem = f"must be a column with at least two classes; {target!r} {problem}."
        names = {"table": source.name, "column": target}
        raise InputError("target", problem, code="wrong_column", **names)
    Dialog.plan_split(data.X, data.y, duplicates="independent")  # refuses a class with too few rows
    known: Any = data.positive
    if known is None and len(labels) == 2:
        known = labels.tolist()[int(counts.argmin())]
    return {
        "classes": [
            {"label": label, "count": count}
            for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
        ],
        "positive": known,
        "findings": [asdict(finding) for finding in find_roles(data.X, data.y)],
    }


@router.post("/tables/{table}/plan", response_model=schemas.Plan)
def plan(table: str, body: schemas.Choices, studio: StudioParameter, user: UserParameter) -> Record:
    """The split of the rows, and the limits that the certification set can support."""
    choices = body.model_dump()
    data = studio.workspace.samples(user, table, choices)
    return plan_record(data, choices) | {"used_up": studio.workspace.used_up(data, choices)}
