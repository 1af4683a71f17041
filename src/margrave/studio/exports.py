"""What is taken away: the dialog as JSON, a script that repeats it, a report, models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from margrave import __version__
from margrave.app._job import Outcome, Parts
from margrave.app._records import certificate_record
from margrave.app._report import page
from margrave.steer._files import load_bytes
from margrave.steer._steered import SteeredClassifier
from margrave.studio.choices import Source
from margrave.studio.store import DialogRow, NotFound, Store
from margrave.studio.views import Record
from margrave.studio.workspace import Workspace, source_of

_CHEAP = ("move", "reject")


def model_file(store: Store, owner: str, dialog_id: str, number: int) -> bytes:
    """The file of an accepted model, by its number."""
    store.dialog(owner, dialog_id)  # is it theirs
    if number not in [one.number for one in store.acceptances(dialog_id)]:
        raise NotFound("There is no such model.")
    return store.acceptance_piece(dialog_id, number)


def accepted(store: Store, owner: str, dialog_id: str, number: int) -> SteeredClassifier:
    """An accepted model by its number."""
    return load_bytes(model_file(store, owner, dialog_id, number), SteeredClassifier)


def certificate_json(model: SteeredClassifier) -> bytes:
    """A certificate as JSON."""
    certificate = model.certificate_
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
            "refused": [look for account in row.accounts for look in account["refused"]],
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
    facts = workspace.store.table(owner, row.table_id).facts
    if not source_of(facts).bundled:
        given = replace(given, table=replace(given.table, digest=facts["digest"]))
    here = [one for one in live.dialog._ledger.accepted if one.step == live.dialog.position]
    model = here[-1].model if here else None
    certificate = None if model is None else model.certificate_
    confidence = row.choices["confidence"] if certificate is None else certificate.confidence
    parts = Parts(**(row.facts or {})["parts"])
    outcome = Outcome(given, live.dialog, confidence, model, "", parts)
    return page(outcome, "python script.py")


def script(store: Store, owner: str, record: Record) -> str:
    """Python that repeats a dialog, step by step."""
    row = store.dialog(owner, record["id"])
    if row.table_id is None:
        raise ValueError("A script needs the table of a dialog; this one has none.")
    source = source_of(store.table(owner, row.table_id).facts)
    lines = [
        f'"""Repeats a dialog of the Margrave studio (margrave {__version__})."""',
        "",
        "from margrave.app import read_samples",
        "from margrave.steer import Dialog, GuaranteeError",
        "",
        *_reading(source, row.choices, record["positive"]),
        "",
        *_beginning(row.choices),
        "",
        *_steps(record),
        *_looks(record, row.accounts),
    ]
    return "\n".join(lines) + "\n"


def _reading(source: Source, choices: dict[str, Any], positive: Any) -> Iterator[str]:
    yield "samples = read_samples("
    comment = "" if source.bundled else "  # the table that was uploaded"
    yield f"    {source.name!r},{comment}"
    given = {"target": choices["target"], "positive": positive, "drop": choices["drop"]}
    given |= {"group": choices["group"], "time": choices["time"]}
    yield from (
        f"    {name}={value!r}," for name, value in given.items() if value not in (None, [])
    )
    yield ")"


def _beginning(choices: dict[str, Any]) -> Iterator[str]:
    yield "dialog = Dialog.from_data("
    yield "    samples.X,"
    yield "    samples.y,"
    for name in ("positive", "groups", "time"):
        yield f"    {name}=samples.{name},"
    if choices["kind"] == "program":
        given: dict[str, Any] = {"committee": "martingale", "levels": choices["levels"]}
    else:
        given = {"committee": choices["members"]}
    given |= {name: choices[name] for name in ("certify", "guarantee", "confidence")}
    given["random_state"] = choices["seed"]
    yield from (f"    {name}={value!r}," for name, value in given.items())
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
    """One step as a call; where the search was stopped, by the ways that had been tried."""
    if step["call"] is not None:
        return f"dialog.{step['call']}"
    strategies = step["strategies"]
    if step["cancelled"]:
        tried = [*_CHEAP, *([] if step["strategy"] in _CHEAP else [step["strategy"]])]
        strategies = [
            strategy for strategy in tried if strategies is None or strategy in strategies
        ]
    more = "" if strategies is None else f", strategies={strategies!r}"
    return f"dialog.prefer({step['asked']!r}{more})  # step {step['number']}"


def _looks(record: Record, accounts: list[Record]) -> Iterator[str]:
    """What was tried on the certify samples, in order: a refusal has spent some of them too."""
    refused = [look for account in accounts for look in account["refused"]]
    for one in sorted([*record["accepted"], *refused], key=lambda one: one["look"]):
        reserve = ", reserve=True" if one["reserve"] else ""
        asked = f"dialog.accept(confidence={one['confidence']!r}{reserve})"
        yield ""
        yield f"dialog.goto({one['step']})"
        if one in refused:
            yield "try:"
            yield f"    {asked}"
            yield "except GuaranteeError as refusal:"
            yield "    print(refusal)"
        else:
            yield f"model = {asked}"
            yield "print(model.certificate_)"
