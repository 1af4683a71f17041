"""What is taken away from the studio does outside what it did inside."""

import contextlib
import io
import json
import os
import re
import runpy
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from tests.studio.serving import connected, serving

from margrave import datasets
from margrave.steer import SteeredClassifier
from margrave.studio import exports
from margrave.studio.choices import Source
from margrave.studio.facts import facts_of
from margrave.studio.routes_tables import add_table
from margrave.studio.uploads import parquet_of

pytestmark = pytest.mark.usefixtures("unused_rows")
FAST = ["move", "reject"]


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("exports")) as made:
        made[1].ok("/openapi.json")  # all routes are there before anything is trained
        yield made


@pytest.fixture(scope="module")
def client(studio):
    return studio[1]


@pytest.fixture(scope="module")
def story(client):
    """A dialog that branches, uses a slow strategy and rejects, with two models accepted."""
    name = client.dialog("pima")
    client.asked(name, "fp <= 60")
    client.asked(name, "fn <= 0", keep=False, at=0)
    client.asked(name, "fp <= 10%, rejected <= 30%", keep=False, at=1, strategies=FAST)
    for step, reserve in ((1, True), (3, False)):
        client.ok(f"{name}/goto", {"step": step})
        begun = client.post(f"{name}/accept", {"confidence": 0.8, "reserve": reserve})
        assert client.finished(begun)["state"] == "done"
    client.ok(f"{name}/goto", {"step": 2})
    return name


@pytest.fixture(scope="module")
def pima():
    return datasets.load("pima", as_frame=True).frame


def live_dialog(studio, name):
    """The dialog in the studio's memory."""
    return studio[0].workspace.live("local", name.removeprefix("/dialogs/")).dialog


def loaded(client, name, number, folder):
    """An accepted model from its file."""
    path = folder / f"model{number}.skops"
    path.write_bytes(client.get(f"{name}/accepted/{number}/model.skops").content)
    return SteeredClassifier.load(path)


def replayed(client, name, folder, **files):
    """What a script prints and makes, run here with the table beside it."""
    (folder / "script.py").write_bytes(client.get(f"{name}/script.py").content)
    for file, content in files.items():
        (folder / file.replace("_", ".")).write_bytes(content)
    printed, here = io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(printed):
            made = runpy.run_path("script.py")
    finally:
        os.chdir(here)
    return made["dialog"], printed.getvalue()


def matrices(record):
    return [step["after"]["counts"] for step in record["steps"]]


# Models


@pytest.mark.parametrize("number", [1, 2])
def test_a_model_file_answers_as_it_was_certified(studio, client, story, pima, tmp_path, number):
    model = loaded(client, story, number, tmp_path)
    dialog = live_dialog(studio, story)
    X = pima.drop(columns="target")
    inside = dialog.accepted[number - 1].model
    assert (model.predict(X) == inside.predict(X)).all()
    at = np.setdiff1d(np.arange(len(X)), dialog.rows().at)  # all rows are used
    answers, true = model.predict(X.iloc[at]), pima["target"].iloc[at]
    received = client.ok(story)["accepted"][number - 1]["confusion"]
    columns = [*received["classes"], model.reject_label_]
    counted = [
        [int(((true == label) & (answers == answer)).sum()) for answer in columns]
        for label in received["classes"]
    ]
    assert counted == received["counts"]
    assert str(model.certificate_) == client.ok(story)["accepted"][number - 1]["text"]


@pytest.mark.parametrize("number", [1, 2])
def test_an_onnx_file_answers_as_the_model_does(client, story, pima, tmp_path, number):
    assert client.ok(story)["accepted"][number - 1]["onnx"] is True
    content = client.get(f"{story}/accepted/{number}/model.onnx").content
    runs = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    X = pima.drop(columns="target")
    feed = {one.name: X[[one.name]].to_numpy(dtype=float) for one in runs.get_inputs()}
    label, score, rejected = runs.run(None, feed)
    model = loaded(client, story, number, tmp_path)
    expected = model.predict(X)
    assert (label.astype(str) == expected.astype(str)).all()
    assert (rejected == (expected == model.reject_label_)).all()
    assert score == pytest.approx(model.decision_function(X), abs=1e-6)
    assert rejected.any() == (number == 2)


def test_cards_and_certificates_say_what_is_guaranteed(client, story):
    for one in client.ok(story)["accepted"]:
        place = f"{story}/accepted/{one['number']}"
        certificate = client.ok(f"{place}/certificate.json")
        assert certificate["confidence"] == 0.8
        assert certificate["confusion"]["counts"] == one["confusion"]["counts"]
        assert certificate["issued"] == one["issued"]
        card = client.get(f"{place}/card.md").text
        for guarantee in certificate["guarantees"]:
            assert guarantee["sentence"] in card
            assert any(guarantee["sentence"] in line for line in one["guarantees"])


def test_where_onnx_is_not_installed_that_is_said(studio, story, monkeypatch):
    def missing(_):
        raise ImportError("ONNX files need onnxruntime, which is not installed.")

    monkeypatch.setattr(SteeredClassifier, "to_onnx", missing)
    with connected(studio[0].settings) as own:  # a line that an error may break
        answer = own.get(f"{story}/accepted/1/model.onnx")
    assert 400 <= answer.status_code < 500


def test_files_are_saved_and_never_shown(client, story):
    names = {
        "dialog.json": "dialog.json",
        "script.py": "script.py",
        "report.html": "report.html",
        "rows.csv": "rows.csv",
        "accepted/1/model.skops": "model.skops",
        "accepted/1/model.onnx": "model.onnx",
        "accepted/1/card.md": "card.md",
        "accepted/1/certificate.json": "certificate.json",
    }
    for path, name in names.items():
        answer = client.get(f"{story}/{path}")
        assert answer.status_code == 200, path
        assert answer.headers["content-disposition"].startswith(f'attachment; filename="{name}"')
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


# The dialog


def test_the_dialog_as_json_is_all_of_it(client, story):
    def refuse(word):
        raise AssertionError(word)

    received = json.loads(client.get(f"{story}/dialog.json").text, parse_constant=refuse)
    record = client.ok(story)
    for name in ("title", "kind", "target", "classes", "positive", "members", "parts", "position"):
        assert received[name] == record[name]
    assert received["table"] == "pima"
    more = {"call": None, "strategies": None}  # for a script, not for the page
    assert [step | more for step in record["steps"]] == [step | more for step in received["steps"]]
    assert [one["text"] for one in received["accepted"]] == [
        one["text"] for one in record["accepted"]
    ]
    assert received["choices"]["seed"] == 0


@pytest.mark.full
@pytest.mark.slow
def test_a_script_in_a_process_of_its_own_repeats_the_dialog(client, story, tmp_path):
    (tmp_path / "script.py").write_bytes(client.get(f"{story}/script.py").content)
    more = (
        "import json, runpy; made = runpy.run_path('script.py'); dialog = made['dialog'];"
        "print(json.dumps([[reply.after.counts.tolist() for reply in dialog.history],"
        " [reply.strategy for reply in dialog.history], dialog.parents]))"
    )
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-W", "error", "-c", more],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    record = client.ok(story)
    *printed, last = done.stdout.splitlines()
    counts, ways, parents = json.loads(last)
    assert counts == matrices(record)
    assert ways == [step["strategy"] for step in record["steps"]]
    assert parents == [step["parent"] or 0 for step in record["steps"]]
    said = "\n".join(printed)
    for one in record["accepted"]:
        assert one["text"] in said


def test_a_script_repeats_a_program_node_by_node(client, tmp_path):
    name = client.dialog("pima", kind="program", members=None, levels=2, seed=3)
    for path, body in (
        ("program/tune", {"node": "0-0", "wants": ["fn <= 20", "fp <= 100"]}),
        ("program/grow", {"levels": 2}),
    ):
        assert client.finished(client.post(f"{name}/{path}", body))["state"] == "done"
    client.asked(name, "fp <= 30", strategies=FAST)
    client.ok(f"{name}/goto", {"step": 1})
    begun = client.post(f"{name}/program/tune", {"node": "1-0", "wants": ["fp <= 5"]})
    assert client.finished(begun)["state"] == "done"
    dialog, _ = replayed(client, name, tmp_path)
    record = client.ok(name)
    assert [reply.after.counts.tolist() for reply in dialog.history] == matrices(record)
    assert dialog.parents == (0, 0, 1, 2, 1)
    assert dialog.position == record["position"] == 4


def tables():
    """A table with groups and times of several kinds."""
    rng = np.random.default_rng(0)
    n = 200
    code = rng.integers(0, 2, n)
    days = pd.date_range("2024-01-01", periods=n)
    return pd.DataFrame(
        {
            "a": rng.normal(size=n) + code,
            "b": rng.normal(size=n) - code,
            "person": rng.integers(1, 101, n),
            "named": [f"p{i:03d}" for i in rng.integers(1, 101, n)],
            "number": rng.permutation(n),
            "stamp": days.strftime("%Y-%m-%d"),
            "german": days.strftime("%d.%m.%Y"),
            "y": np.where(code, "yes", "no"),
        }
    )


COLUMNS = ["person", "named", "number", "stamp", "german"]


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"group": "named"},
        {"group": "person"},
        {"time": "number"},
        {"time": "stamp"},
        {"time": "german"},
    ],
    ids=str,
)
def test_a_script_parts_the_rows_as_the_studio_did(studio, choice, tmp_path):
    made, client = studio
    frame = tables()
    source = Source("mine.csv", bundled=False)
    table = add_table(made, "local", source, facts_of(frame), parquet_of(frame)).id
    unused = [name for name in COLUMNS if name not in choice.values()]
    body = {"table": table, "target": "y", "members": ["logistic"], "certify": 0.3, "drop": unused}
    begun = client.post("/dialogs", body | choice)
    assert client.finished(begun)["state"] == "done"
    name = f"/dialogs/{begun.json()['dialog']['id']}"
    client.asked(name, "fp <= 30%", strategies=["move"])
    accepted = client.finished(client.post(f"{name}/accept", {"confidence": 0.7}))
    assert accepted["state"] == "done", accepted["error"]
    dialog, printed = replayed(client, name, tmp_path, mine_csv=frame.to_csv(index=False).encode())
    record = client.ok(name)
    assert [reply.after.counts.tolist() for reply in dialog.history] == matrices(record)
    assert record["accepted"][0]["text"] in printed


@pytest.mark.parametrize(
    ("file", "separator", "yes", "options"),
    [
        ("mine.tsv", "\t", "yes", {}),
        ("mine.csv", ";", "yes", {}),
        ("mine.csv", ",", " yes ", {}),
        ("mine.csv", ";", "zażółć", {"encoding": "utf-16", "decimal": ","}),
        ("mine.csv", ";", "où", {"encoding": "cp1252", "decimal": ","}),
    ],
    ids=["tabs", "semicolons", "spaces", "utf-16", "cp1252"],
)
def test_a_script_reads_the_file_as_the_studio_did(studio, file, separator, yes, options, tmp_path):
    made, client = studio
    frame = tables().drop(columns=COLUMNS).replace({"y": {"yes": yes}})
    source = Source(file, bundled=False, **options)
    table = add_table(made, "local", source, facts_of(frame), parquet_of(frame)).id
    begun = client.post(
        "/dialogs", {"table": table, "target": "y", "members": ["logistic"], "certify": 0.3}
    )
    assert client.finished(begun)["state"] == "done"
    name = f"/dialogs/{begun.json()['dialog']['id']}"
    text = frame.to_csv(index=False, sep=separator, decimal=options.get("decimal", "."))
    content = text.encode(options.get("encoding", "utf-8"))
    dialog, _ = replayed(client, name, tmp_path, **{file.replace(".", "_"): content})
    assert [reply.after.counts.tolist() for reply in dialog.history] == matrices(client.ok(name))


def test_a_script_uses_the_strategies_that_were_allowed(client, tmp_path):
    name = client.dialog("pima", members=["logistic"])
    step = client.asked(name, "fp <= 3, rejected <= 60%", strategies=["move"])
    assert step["strategy"] == "move"
    dialog, _ = replayed(client, name, tmp_path)
    assert dialog.reply.after.counts.tolist() == step["after"]["counts"]


def test_a_script_uses_up_what_was_used_up(client, tmp_path):
    name = client.dialog("pima", members=["logistic"])
    client.asked(name, "fp <= 45, fn <= 90", strategies=FAST)
    terms = {"confidence": 0.8, "reserve": True, "anyway": True}
    refused = client.finished(client.post(f"{name}/accept", terms))
    assert refused["code"] != "improbable"
    client.asked(name, "fp <= 60", keep=False, strategies=FAST)
    begun = client.post(f"{name}/accept", {"confidence": 0.8, "reserve": True})
    assert client.finished(begun)["state"] == "done"
    (one,) = client.ok(name)["accepted"]
    _, printed = replayed(client, name, tmp_path)
    assert one["text"] in printed
    assert refused["error"] in printed
    written = client.get(f"{name}/dialog.json").json()
    (refusal,) = written["refused"]
    assert (refusal["use_number"], refusal["step"]) == (1, 1)
    assert {name: refusal[name] for name in terms} == terms
    assert written["accepted"][0]["use_number"] == 2


# The report


class Page(HTMLParser):
    """What a page refers to, and its text without the style."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.classes, self.references, self.parts = [], [], [], []
        self.style = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.classes += (dict(attributes).get("class") or "").split()
        self.style = tag == "style"
        self.references += [
            value
            for name, value in attributes
            if name in ("src", "href", "srcset", "action", "data")
        ]

    def handle_endtag(self, tag):
        self.style = False

    def handle_data(self, data):
        if not self.style:
            self.parts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.parts).split())


def rows_of(source, table):
    """The cells of a table of the page, row by row, without their markup."""
    (inside,) = re.findall(rf'<table class="{table}">.*?</table>', source, re.DOTALL)
    rows = re.findall("<tr>(<td>.*?)</tr>", inside, re.DOTALL)
    cells = [re.findall("<td>(.*?)</td>", row, re.DOTALL) for row in rows]
    return [[unescape(re.sub("<[^>]+>", "", cell)) for cell in row] for row in cells]


def report(client, name):
    answer = client.get(f"{name}/report.html")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.text), answer.text


def test_a_report_needs_no_other_file(client, story):
    client.ok(f"{story}/goto", {"step": 1})
    page, source = report(client, story)
    client.ok(f"{story}/goto", {"step": 2})
    assert all(one.startswith("data:image/") for one in page.references)
    assert page.references
    assert not {"script", "iframe", "link", "object", "embed", "form"} & set(page.tags)
    assert not re.search(r"url\(\s*['\"]?(?!data:)", source)
    assert "@import" not in source
    one = client.ok(story)["accepted"][0]
    guarantee = one["guarantees"][0].partition(" (")[0]
    assert guarantee[1:] in page.text
    assert "refused" not in page.classes


def test_a_report_of_what_was_not_accepted_guarantees_nothing(client, story):
    page, source = report(client, story)  # at step 2
    assert "refused" in page.classes
    assert "fn <= 0" in page.text
    (head,) = re.findall("<header>.*</header>", source, re.DOTALL)
    for one in client.ok(story)["accepted"]:
        for guarantee in one["guarantees"]:
            assert guarantee.partition(" (")[0][1:] not in head


def test_a_report_has_all_steps_and_all_certificates(client, story):
    """Also those at other steps; and the script, so that one file is enough."""
    page, source = report(client, story)
    record = client.ok(story)
    steps = rows_of(source, "steps")
    assert [int(row[0]) for row in steps if row[0]] == [one["number"] for one in record["steps"]]
    assert [row[0] for row in steps if "current" in row[1]] == ["2"]
    for one in record["accepted"]:
        assert f"<pre>{escape(one['text'])}</pre>" in source
        assert f"Certificate {one['number']}, step {one['step']}" in page.text
    script = client.get(f"{story}/script.py").text
    assert f"<pre>{escape(script)}</pre>" in source


def test_a_report_shows_labels_as_text(studio):
    made, client = studio
    frame = tables().drop(columns=COLUMNS).replace({"y": {"yes": "<img src=x onerror=alert(1)>"}})
    source = Source("<b>.csv", bundled=False)
    table = add_table(made, "local", source, facts_of(frame), parquet_of(frame)).id
    begun = client.post("/dialogs", {"table": table, "target": "y", "members": ["logistic"]})
    assert client.finished(begun)["state"] == "done"
    name = f"/dialogs/{begun.json()['dialog']['id']}"
    page, source = report(client, name)
    assert "onerror" not in source.replace("onerror=alert(1)&gt;", "")
    assert "<img src=x onerror=alert(1)>" in page.text
    assert "<b>.csv" in page.text


@pytest.fixture(scope="module")
def grown(client):
    name = client.dialog("pima", kind="program", members=None, levels=2)
    begun = client.post(f"{name}/program/tune", {"node": "0-0", "wants": ["fn <= 20"]})
    assert client.finished(begun)["state"] == "done"
    return name


def test_a_report_of_a_program_says_who_saw_which_rows(client, grown):
    parts = client.ok(grown)["parts"]
    page, source = report(client, grown)
    sizes = [size for _, size, _ in rows_of(source, "roles")]
    assert sizes == [str(parts[name]) for name in ("train", "tune", "certify")] + ["0"]
    assert "unused" not in page.classes


def test_a_report_of_a_program_tells_its_steps(client, grown):
    _, source = report(client, grown)
    start, tuned = rows_of(source, "steps")
    assert (start[0], start[3]) == ("0", "start")
    assert (tuned[0], tuned[3]) == ("1", "nodes")
    assert "fn <= 20" in tuned[1]
    assert "start" not in tuned


def test_a_report_says_at_which_confidence_its_intervals_are(client, story):
    client.ok(f"{story}/goto", {"step": 1})
    _, source = report(client, story)
    client.ok(f"{story}/goto", {"step": 2})
    (small,) = re.findall('<p class="small">(.*?)</p>', source, re.DOTALL)
    (note,) = re.findall('class="matrices">.*?</div><p class="note">(.*?)</p>', source, re.DOTALL)
    for text in (small, note):
        assert re.search(r"\b0\.8\b", text)
        assert "0.95" not in text


def test_a_report_of_what_was_not_tried_does_not_say_that_it_was_refused(
    client, story, monkeypatch
):
    outcomes, page = [], exports.page

    def noted(outcome, command):
        outcomes.append(outcome)
        return page(outcome, command)

    monkeypatch.setattr(exports, "page", noted)
    report(client, story)  # at step 2, where nothing was accepted
    assert [(one.model, one.refusal) for one in outcomes] == [(None, None)]


def test_exports_that_take_long_keep_nobody_else_waiting(studio, client, story, monkeypatch):
    begun, free = threading.Event(), threading.Event()

    def slow(_model):
        begun.set()
        assert free.wait(60)
        return b"onnx"

    monkeypatch.setattr(SteeredClassifier, "to_onnx", slow)
    n = 50  # more than there are threads for requests
    with ThreadPoolExecutor(n) as pool, connected(studio[0].settings) as other:
        try:
            path = f"{story}/accepted/1/model.onnx"
            answers = [pool.submit(client.get, path) for _ in range(n)]
            assert begun.wait(60)
            assert other.get("/dialogs", timeout=20).status_code == 200
            for file in ("card.md", "certificate.json"):
                answer = other.get(f"{story}/accepted/1/{file}", timeout=20)
                assert answer.status_code == 200
        finally:
            free.set()
        statuses = [answer.result().status_code for answer in answers]
    assert set(statuses) == {200, 429}
    assert client.get(path).status_code == 200  # the places are free again
