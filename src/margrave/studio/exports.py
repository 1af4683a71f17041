"""What is taken away: the dialog as JSON, a script that repeats it, a report, models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from margrave import __version__
from margrave.app._job import Outcome
from margrave.app._records import certificate_record
from margrave.app._report import page
from margrave.steer._acceptance import Accepted
from margrave.steer._pieces import model_bytes
from margrave.studio.store import DialogRow, NotFound, Store
from margrave.studio.views import Record
from margrave.studio.workspace import Workspace, source_of

_DEAR = ("reweigh", "retune")


def accepted(workspace: Workspace, owner: str, dialog_id: str, number: int) -> Accepted:
    """An accepted model by its number."""
    found = workspace.live(owner, dialog_id).dialog._acceptance.accepted
    if not 1 <= number <= len(found):
        raise NotFound("There is no such model.")
    return found[number - 1]


def model_file(found: Accepted) -> bytes:
    """The file of an accepted model."""
    return model_bytes(found)


def certificate_json(found: Accepted) -> bytes:
    """A certificate as JSON."""
    certificate = found.model.certificate_
    if certificate is None:
        raise NotFound("There is no certificate.")
    return _json(certificate_record(certificate)).encode()


def dialog_json(store: Store, owner: str, record: Record) -> str:
    """A dialog: what was chosen, every step, what was accepted."""
    row = store.dialog(owner, record["id"])
    kept = ("title", "kind", "target", "classes", "positive", "members", "parts", "position")
    return _json(
        {
            "margrave": __version__,
            **{name: record[name] for name in kept},
            "table": None if record["table"] is None else record["table"]["name"],
            "choices": row.choices,
            "steps": record["steps"],
            "accepted": record["accepted"],
        }
    )


def _json(record: Record) -> str:
    return json.dumps(record, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def report(workspace: Workspace, owner: str, row: DialogRow) -> str:
    """The dialog up to where it stands, and its last certificate, as one page."""
    live = workspace.live(owner, row.id)
    if row.table_id is None:
        raise ValueError("A report needs the table of a dialog; this one has none.")
    given = workspace.samples(owner, row.table_id, row.choices)
    here = [one for one in live.dialog._acceptance.accepted if one.step == live.dialog.position]
    model = here[-1].model if here else None
    confidence = row.choices["confidence"]
    refusal = "" if model else "it was not accepted, so nothing is promised."
    outcome = Outcome(given, live.dialog, confidence, model, refusal)
    return page(outcome, "python dialog.py")


def script(store: Store, owner: str, record: Record) -> str:
    """Python that repeats a dialog, step by step."""
    row = store.dialog(owner, record["id"])
    if row.table_id is None:
        raise ValueError("A script needs the table of a dialog; this one has none.")
    source = source_of(store.table(owner, row.table_id).facts)
    lines = [
        f'"""Repeats a dialog of the Margrave studio (margrave {__version__})."""',
        "",
        *_loading(source.name, source.bundled),
        "",
        *_beginning(row.choices, record["positive"]),
        "",
        *_steps(record),
        *_accepting(record),
    ]
    return "\n".join(lines) + "\n"


def _loading(name: str, bundled: bool) -> Iterator[str]:
    if bundled:
        yield "from margrave.datasets import load"
    else:
        yield "import pandas"
    yield "from margrave.steer import Dialog"
    yield ""
    if bundled:
        yield f"frame = load({name!r}, as_frame=True).frame"
    else:
        reader = "read_parquet" if name.lower().endswith((".parquet", ".pq")) else "read_csv"
        yield f"frame = pandas.{reader}({name!r})  # the table that was uploaded"


def _beginning(choices: dict[str, Any], positive: Any) -> Iterator[str]:
    left = [choices["target"], choices["group"], choices["time"], *choices["drop"]]
    apart = [name for name in left if name is not None]
    yield "dialog = Dialog.from_data("
    yield f"    frame.drop(columns={apart!r}),"
    yield f"    frame[{choices['target']!r}],"
    given: dict[str, Any] = {"positive": positive}
    if choices["kind"] == "program":
        given |= {"committee": "program", "levels": choices["levels"]}
    elif choices["members"] is not None:
        given["committee"] = choices["members"]
    given |= {name: choices[name] for name in ("certify", "promise", "confidence")}
    given["random_state"] = choices["seed"]
    for name, value in given.items():
        if value is not None or name == "certify":
            yield f"    {name}={value!r},"
    for name, column in (("groups", choices["group"]), ("time", choices["time"])):
        if column is not None:
            yield f"    {name}=frame[{column!r}],"
    yield ")"
    yield "print(dialog)"


def _steps(record: Record) -> Iterator[str]:
    at = 0
    for step in record["steps"][1:]:
        if step["parent"] != at:
            yield f"dialog.goto({step['parent']})"
        at = step["number"]
        yield _asking(step)
    if record["position"] != at:
        yield f"dialog.goto({record['position']})"
    if record["steps"][1:]:
        yield "print(dialog.reply)"


def _asking(step: Record) -> str:
    """One step as a call; by the ways that led to it, since a search may have been stopped."""
    if step["call"] is not None:
        return f"dialog.{step['call']}"
    ways = ["move", "reject", *([step["way"]] if step["way"] in _DEAR else [])]
    return f"dialog.prefer({step['asked']!r}, ways={ways!r})  # step {step['number']}"


def _accepting(record: Record) -> Iterator[str]:
    for one in record["accepted"]:
        reserve = ", reserve=True" if one["reserve"] else ""
        yield ""
        yield f"dialog.goto({one['step']})"
        yield f"model = dialog.accept(confidence={one['confidence']!r}{reserve})"
        yield "print(model.certificate_)"
