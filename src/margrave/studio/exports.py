"""The files for download: the dialog as JSON, a script that reproduces it, a report, models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from margrave import __version__
from margrave.app.messages import InputError
from margrave.app.report import page
from margrave.app.request import Outcome, expect
from margrave.steer import SteeredClassifier
from margrave.studio.choices import Source
from margrave.studio.store import DialogRow, NotFound, Store
from margrave.studio.views import Record
from margrave.studio.workspace import Workspace, source_of

_FAST = ("move", "reject")


def model_file(store: Store, owner: str, dialog_id: str, number: int) -> bytes:
    """The file of an accepted model, by its number."""
    store.dialog(owner, dialog_id)  # refuses another user's dialog
    if number not in [model.number for model in store.acceptances(dialog_id)]:
        raise NotFound(f"There is no accepted model {number} in this dialog.")
    return store.acceptance_piece(dialog_id, number)


def accepted(store: Store, owner: str, dialog_id: str, number: int) -> SteeredClassifier:
    """An accepted model by its number."""
    return SteeredClassifier.from_bytes(model_file(store, owner, dialog_id, number))


def certificate_json(model: SteeredClassifier) -> bytes:
    """A certificate as JSON."""
    certificate = model.certificate_
    if certificate is None:
        raise NotFound("This model has no certificate.")
    return _json(certificate.to_dict()).encode()


def dialog_json(store: Store, owner: str, record: Record) -> str:
    """A dialog as JSON: its settings, every step, and the accepted models."""
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
            "refused": row.refused,
        }
    )


def _json(record: Record) -> str:
    return json.dumps(record, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def report(workspace: Workspace, owner: str, row: DialogRow, record: Record) -> str:
    """A report on the dialog: its current step, all steps and certificates, and its script."""
    live = workspace.live(owner, row.id)
    if row.table_id is None:
        raise _no_table("a report")
    samples = workspace.samples(owner, row.table_id, row.choices)
    facts = workspace.store.table(owner, row.table_id).facts
    if not source_of(facts).bundled:
        samples = replace(samples, table=replace(samples.table, digest=facts["digest"]))
    dialog = live.dialog
    current = [accepted for accepted in dialog.accepted if accepted.step == dialog.position]
    model = current[-1].model if current else None
    certificate = None if model is None else model.certificate_
    confidence = row.choices["confidence"] if certificate is None else certificate.confidence
    expected = expect(dialog, confidence) if certificate is None else certificate.expected
    outcome = Outcome.of(samples, dialog, confidence, model, expected=expected)
    return page(outcome, script(workspace.store, owner, record))


def _no_table(file: str) -> InputError:
    return InputError("data", f"of this dialog is needed for {file}; it has none.", code="missing")


def script(store: Store, owner: str, record: Record) -> str:
    """A Python script that reproduces a dialog, step by step."""
    row = store.dialog(owner, record["id"])
    if row.table_id is None:
        raise _no_table("a script")
    source = source_of(store.table(owner, row.table_id).facts)
    lines = [
        f'"""Reproduces a session of the Margrave studio (margrave {__version__})."""',
        "",
        "from margrave.app import read_samples",
        "from margrave.steer import Dialog, GuaranteeError",
        "",
        *_read_lines(source, row.choices, record["positive"]),
        "",
        *_start_lines(row.choices),
        "",
        *_step_lines(record),
        *_accept_lines(record, row.refused),
    ]
    return "\n".join(lines) + "\n"


def _read_lines(source: Source, choices: dict[str, Any], positive: Any) -> Iterator[str]:
    yield "samples = read_samples("
    comment = "" if source.bundled else "  # the uploaded table"
    yield f"    {source.name!r},{comment}"
    options = {"target": choices["target"], "positive": positive, "drop": choices["drop"]}
    options |= {"group": choices["group"], "time": choices["time"]}
    options |= {"encoding": source.encoding, "decimal": source.decimal}
    yield from (
        f"    {name}={value!r}," for name, value in options.items() if value not in (None, [])
    )
    yield ")"


def _start_lines(choices: dict[str, Any]) -> Iterator[str]:
    yield "dialog = Dialog.from_data("
    yield "    samples.X,"
    yield "    samples.y,"
    for name in ("positive", "groups", "time"):
        yield f"    {name}=samples.{name},"
    if choices["kind"] == "program":
        options: dict[str, Any] = {"committee": "martingale", "levels": choices["levels"]}
    else:
        options = {"committee": choices["members"]}
    options |= {name: choices[name] for name in ("certify", "guarantee", "confidence")}
    options["duplicates"] = choices.get("duplicates", "group")
    options["random_state"] = choices["seed"]
    yield from (f"    {name}={value!r}," for name, value in options.items())
    yield ")"
    yield "print(dialog)"


def _step_lines(record: Record) -> Iterator[str]:
    at = 0
    for step in record["steps"][1:]:
        if step["parent"] != at:
            yield f"dialog.goto({step['parent']})"
        at = step["number"]
        yield _step_call(step)
    if record["position"] != at:
        yield f"dialog.goto({record['position']})"
    if record["steps"][1:]:
        yield "print(dialog.reply)"


def _step_call(step: Record) -> str:
    """One step as a call; if the user stopped the search, with the strategies tried until then."""
    if step["call"] is not None:
        return f"dialog.{step['call']}"
    strategies = step["strategies"]
    if step["cancelled"]:
        tried = [*_FAST, *([] if step["strategy"] in _FAST else [step["strategy"]])]
        strategies = [
            strategy for strategy in tried if strategies is None or strategy in strategies
        ]
    more = "" if strategies is None else f", strategies={strategies!r}"
    return f"dialog.prefer({step['preference']!r}{more})  # step {step['number']}"


def _accept_lines(record: Record, refused: list[Record]) -> Iterator[str]:
    """The uses of the certification set, in order; a refusal may use part of it as well."""
    for use in sorted([*record["accepted"], *refused], key=lambda use: use["use_number"]):
        options = "".join(f", {name}=True" for name in ("reserve", "anyway") if use.get(name))
        call = f"dialog.accept(confidence={use['confidence']!r}{options})"
        yield ""
        yield f"dialog.goto({use['step']})"
        if use in refused:
            yield "try:"
            yield f"    {call}"
            yield "except GuaranteeError as refusal:"
            yield "    print(refusal)"
        else:
            yield f"model = {call}"
            yield "print(model.certificate_)"
