"""What the studio's API says, word for word.

A changed sentence is no fault. Read the change, then refresh the stored texts with `make wording`
(`pytest tests/wording --full --snapshot-update`).
"""

import json

import pytest
from tests.studio.serving import serving
from tests.studio.test_api import begun as training
from tests.studio.test_api import ended, looked, posted
from tests.studio.test_guard import OURS, TOKEN
from tests.studio.test_guard import Studio as Guarded
from tests.studio.test_launch import CANNOT_START
from tests.studio.test_uploads import DAMAGED, worked
from tests.wording.masking import masked

from margrave import cli, datasets
from margrave.studio import choices, routes_tables
from margrave.studio.facts import facts_of

pytestmark = pytest.mark.core

MOVE = ["move"]
EDITS = [
    {"true": "neg", "predicted": "pos", "to": 30},
    {"true": "pos", "predicted": "pos", "to": "80%"},
    {"true": "pos", "predicted": None, "to": 3},
]
WANTS = ("fp", "fpp <= 5", "recall(zzz) >= 5%", "fp <= 100000", "fp <= 5, fp <= 5, fn <")
UNFIT = ({}, {"wants": "fp <= 5"}, {"wants": ["fp <= 5"], "at": -1, "more": 1}, [])
PLANS = (
    {"target": "target", "group": "age"},
    {"target": "target", "time": "age"},
    {"target": "target", "guarantee": "fp ="},
    {"target": "target", "certify": 2},
)
NOWHERE = ("/tables/zzz", "/dialogs/zzz", "/jobs/zzz", "/zzz")


def exchange(what, *lines):
    """A request, and below it the texts of the answer; the same on every machine."""
    return "\n    ".join([masked(what), *map(masked, lines)])


def refused(what, answer):
    """A request, and below it its status and the sentence."""
    return f"{masked(what)}\n    {answer.status_code} {masked(answer.json()['error'])}"


def requests(client, dialog, table):
    """Requests that are refused."""

    def shown(*words):
        return " ".join(words).replace(dialog, "/dialogs/ID").replace(table, "ID")

    for path, body, _ in posted(dialog, table):
        yield refused(shown("POST", path, json.dumps(body)), client.post(path, body))
    for path, query, _ in looked(dialog, table):
        yield refused(shown("GET", path, json.dumps(query)), client.get(path, params=query))
    for body in UNFIT:
        answer = client.http.post(f"/api{dialog}/prefer", json=body)
        yield refused(shown("POST", dialog, json.dumps(body)), answer)
    for path in (*NOWHERE, f"{dialog}/accepted/7/card.md", f"{dialog}/program"):
        yield refused(shown("GET", path), client.get(path))
    yield refused(shown("POST", f"{dialog}/accept"), client.post(f"{dialog}/accept"))
    for name in ("notes.docx", "large.csv"):
        answer = client.http.post("/api/tables", files={"file": (name, bytes(2000))})
        yield refused(f"POST /tables {name}", answer)
    yield refused("PUT /studio", client.http.put("/api/studio"))


def guard_requests():
    """Requests that do not reach the application."""
    local, shared, tries = Guarded(), Guarded(token=TOKEN), {}
    browser = local.signed_in()
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, elsewhere, {}):
        yield refused(f"POST {headers}", browser.post("/api/who", headers=headers))
    for kind in ("text/plain", "multipart/form-data"):
        headers = {**OURS, "Content-Type": kind}
        yield refused(f"POST {kind}", browser.post("/api/read", content=b"x", headers=headers))
    large = browser.post("/api/read", headers=OURS, json="x" * 2**21)
    yield refused("POST 2 MiB", large)
    headers = {**OURS, "Origin": "https://127.0.0.1:8420"}
    yield refused(f"POST {headers}", browser.post("/api/who", headers=headers))
    yield refused("GET without a token", shared.browser().get("/api/who"))
    for body in ({}, *[{"token": "wrong"}] * 11):
        answer = shared.browser().post("/api/session", json=body, headers=OURS)
        tries.setdefault(answer.status_code, answer)
    for answer in tries.values():
        yield refused("POST /session", answer)
    other = Guarded(token=TOKEN).script(**{"X-Margrave-User": "nobody"})
    yield refused("GET as nobody", other.get("/api/who"))


def broken(*_, **__):
    raise RuntimeError


def jobs(client, dialog, table, monkeypatch):
    """Jobs that fail, also by a fault of the studio."""
    for members in (["magic"], ["logistic", "logistic"]):
        _, job = training(client, table, members=members)
        yield exchange(f"train {members}", ended(client, job)["error"])
    with monkeypatch.context() as fault:
        fault.setattr("margrave.steer._dialog.Dialog.replies", broken)
        last = client.finished(client.post(f"{dialog}/prefer", {"wants": ["fp <= 5"]}))
        yield exchange("A job fails by a fault of the studio", last["error"])


def story(client, dialog, table):
    """A dialog until its certification set is used up."""

    def left(when):
        return exchange(f"left, {when}", client.ok(dialog)["left"])

    def accept(**body):
        last = client.finished(client.post(f"{dialog}/accept", {"confidence": 0.8, **body}))
        return exchange(f"accept {body}", last["error"] or last["state"])

    yield left("at the start")
    for edit in EDITS:
        (sentence,) = client.ok(f"{dialog}/read", {"edits": [edit], "keep": False})["sentences"]
        yield exchange(f"read {json.dumps(edit)}", sentence)
    for want in WANTS:
        error = client.ok(f"{dialog}/read", {"wants": [want], "keep": False})["error"]
        yield exchange(f"read {want}", error)
    client.asked(dialog, "fp <= 2", keep=False, strategies=MOVE)
    yield accept()
    client.asked(dialog, "fp <= 240", keep=False, strategies=MOVE)  # far off: the same cells change
    yield accept(reserve=True)
    yield left("after half of it")
    client.asked(dialog, "fp <= 200", keep=False, strategies=MOVE)
    yield accept(confidence=0.9)
    yield accept()
    yield left("after all of it")
    client.asked(dialog, "fp <= 220", keep=False, strategies=MOVE)
    yield accept()
    yield masked(client.ok(dialog)["accepted"][0]["text"])
    other, job = training(client, table, members=["qda"])
    ended(client, job)
    yield exchange("left, in another dialog on this table", client.ok(other)["left"])


def plans(client, table):
    """Remarks on a table before anything is trained."""
    for body in PLANS:
        answer = client.post(f"/tables/{table}/plan", body)
        found = answer.json()
        yield exchange(f"plan {json.dumps(body)}", *(found.get("remarks") or [found["error"]]))
    for column in facts_of(datasets.load("pima", as_frame=True).frame)["columns"][-2:]:
        yield exchange(f"column {column['name']}", column["why"])
    for name, about in choices.ABOUT.items():
        yield exchange(f"member {name}", about)


def commands(capsys, monkeypatch):
    """What cannot be started."""
    for arguments, token in [
        *((arguments, "") for arguments, _ in CANNOT_START),
        ([], "abc"),
        (["pima"], TOKEN),
    ]:
        monkeypatch.setenv("MARGRAVE_TOKEN", token)
        with pytest.raises(SystemExit):
            cli.main(["studio", "--no-browser", *arguments])
        command = " ".join(["margrave", "studio", *arguments])
        shown = f"$ MARGRAVE_TOKEN={token} {command}" if token else f"$ {command}"
        yield exchange(shown, capsys.readouterr().err.strip())


def damaged_files(folder):
    """Files that are no tables."""
    for data, ending, _ in DAMAGED:
        yield masked(worked(folder, data, ending)["error"], folder)


def test_the_studio(tmp_path, monkeypatch, capsys, snapshot):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(routes_tables, "bundled_sets", list)  # reads all of them, for the page
    with serving(tmp_path, workers=2, upload_bytes=1000) as (_, client):
        dialog = client.dialog("pima", members=["qda"])
        table = client.ok(dialog)["table"]["id"]
        parts = [
            *requests(client, dialog, table),
            *jobs(client, dialog, table, monkeypatch),
            *story(client, dialog, table),
            *plans(client, table),
        ]
    parts += [*guard_requests(), *commands(capsys, monkeypatch), *damaged_files(tmp_path)]
    assert "\n".join(parts) == snapshot
