"""The studio's API: the whole story, and what is answered when it does not go that way."""

import io
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from tests.studio.page_parts import JUDGED, judged, trained, uploaded
from tests.studio.serving import connected, serving

from margrave.steer import Dialog
from margrave.studio.choices import Source
from margrave.studio.facts import facts_of
from margrave.studio.job_table import CANCELLED
from margrave.studio.jobs import Handle
from margrave.studio.problems import WENT_WRONG
from margrave.studio.routes_tables import add_table
from margrave.studio.store import BUSY, Store, StoreError
from margrave.studio.uploads import ENDINGS, parquet_of

TOKEN = "a-token-for-tests"  # noqa: S105
FAST = ["move", "reject"]
N_MODELS = ("n_accepted", "n_useless")
SECONDS = 30


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("api"), workers=2) as made:
        made[1].ok("/openapi.json")  # all routes are there before anything is trained
        yield made


@pytest.fixture(scope="module")
def client(studio):
    return studio[1]


@pytest.fixture(scope="module")
def table(client):
    return client.table("pima")


@pytest.fixture(scope="module")
def dialog(client):
    """A dialog with one step, for requests that change nothing."""
    name = client.dialog("pima", members=["logistic"])
    client.asked(name, "fp <= 30", strategies=FAST)
    return name


@pytest.fixture
def held(monkeypatch):
    """A search waits after it has reported a reply: `(reached, free)`."""
    reached, free = threading.Event(), threading.Event()
    report = Handle.reply

    def waiting(self, record):
        report(self, record)
        reached.set()
        assert free.wait(SECONDS)

    monkeypatch.setattr(Handle, "reply", waiting)
    yield reached, free
    free.set()


@pytest.fixture
def reading(monkeypatch):
    """Training waits after the table was read: `(reached, free)`."""
    reached, free = threading.Event(), threading.Event()
    from_data = Dialog.from_data

    def waiting(*given, **options):
        reached.set()
        assert free.wait(SECONDS)
        return from_data(*given, **options)

    monkeypatch.setattr(Dialog, "from_data", waiting)
    yield reached, free
    free.set()


@pytest.fixture
def first_member(monkeypatch):
    """Training waits after its first member is finished: `(reached, free)`."""
    reached, free = threading.Event(), threading.Event()
    report = Handle.progress

    def waiting(self, done, total, text, members=None, provisional=None):
        report(self, done, total, text, members, provisional)
        if provisional is not None and not reached.is_set():
            reached.set()
            assert free.wait(SECONDS)

    monkeypatch.setattr(Handle, "progress", waiting)
    yield reached, free
    free.set()


def begun(client, table, **choices):
    """A dialog whose training has begun: its place, and the job."""
    body = {"table": table, "target": "target", "members": ["logistic"], **choices}
    record = client.ok("/dialogs", body)
    return f"/dialogs/{record['dialog']['id']}", record["job"]["id"]


def ended(client, job):
    """A job at its end."""
    *_, (name, last) = client.events(job)
    assert name == "end"
    return last


def untrained(answer):
    """Whether something was refused because the dialog is not trained."""
    return answer.status_code == 409 and answer.json()["error"] != BUSY


def lacks(text, *named):
    """Those of some numbers and names that a text does not have."""
    return [one for one in map(str, named) if one not in text]


def numbers(text):
    """The whole numbers in a text."""
    return [int(one) for one in re.findall(r"\d+", text)]


def stored(studio, frame, name="table.csv"):
    """A table as if it had been uploaded."""
    facts, data = facts_of(frame), parquet_of(frame)
    return add_table(studio, "local", Source(name, bundled=False), facts, data).id


def labelled(labels, n=150):
    """A table whose classes have these labels."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, len(labels), n)
    y = pd.Series([labels[c] for c in code])
    return pd.DataFrame({"a": rng.normal(size=n) + code, "b": rng.normal(size=n) - code, "y": y})


# The story


def test_a_table_is_looked_at_before_anything_is_trained(client, table):
    received = client.ok(f"/tables/{table}")
    assert (received["name"], received["rows"], received["target"]) == ("pima", 768, "target")
    assert len(received["columns"]) == 9
    assert len(received["preview"]["rows"]) == 5
    assert received["preview"]["columns"] == [column["name"] for column in received["columns"]]
    classes = client.ok(f"/tables/{table}/classes", params={"target": "target"})
    assert classes == {
        "classes": [{"label": "neg", "count": 500}, {"label": "pos", "count": 268}],
        "positive": "pos",
        "findings": [],
    }


@pytest.mark.parametrize(
    ("choices", "parts"),
    [
        ({}, {"train": 614, "tune": 614, "certify": 154, "unused": 0}),
        ({"certify": 0.5}, {"train": 384, "tune": 384, "certify": 384, "unused": 0}),
        ({"certify": None}, {"train": 768, "tune": 768, "certify": 0, "unused": 0}),
        ({"kind": "program"}, {"train": 368, "tune": 246, "certify": 154, "unused": 0}),
    ],
)
def test_a_plan_says_who_sees_which_rows(client, table, choices, parts):
    received = client.ok(f"/tables/{table}/plan", {"target": "target", **choices})
    assert received["parts"] == parts | {"copies": 0, "near_copies": 0}
    assert sum(one["n"] for one in received["support"]) == parts["certify"]


def test_a_plan_with_groups_and_a_time(client, table):
    """The bundled table has neither, so two of its columns stand for them."""
    choices = {"target": "target", "group": "pedigree", "time": "age"}
    for guarantee, each in (("fn <= 30%", "group and class"), ("precision >= 40%", "group")):
        received = client.ok(f"/tables/{table}/plan", {**choices, "guarantee": guarantee})
        assert received["parts"]["certify"] > 20
        assert any(f"each {each}." in remark for remark in received["remarks"])
        assert any("latest" in remark for remark in received["remarks"])


def test_a_plan_counts_equal_rows(client):
    lines = "".join(f"{i % 150},{i % 7},{'yes' if i % 2 else 'no'}\n" for i in range(300))
    text = f"a,b,target\n{lines}{lines}".encode()
    table = client.http.post("/api/tables", files={"file": ("twice.csv", text)}).json()["id"]
    plans = [
        client.ok(f"/tables/{table}/plan", {"target": "target", "duplicates": duplicates})
        for duplicates in ("group", "independent")
    ]
    parts, independent = (plan["parts"] for plan in plans)
    assert parts["copies"] == independent["copies"] >= 300
    assert parts["certify"] < independent["certify"] == 120
    assert parts["unused"] > independent["unused"] == 0
    for plan in plans:
        assert any(f"{parts['copies']}" in remark for remark in plan["remarks"])


def test_a_plan_sets_aside_what_a_guarantee_needs(client, table):
    few = client.ok(f"/tables/{table}/plan", {"target": "target"})
    body = {"target": "target", "guarantee": "fp <= 1.5%"}
    more = client.ok(f"/tables/{table}/plan", body)
    assert more["parts"]["certify"] > few["parts"]["certify"]
    assert more["support"][0]["least"] <= 1.5 < few["support"][0]["least"]


def test_a_plan_compares_sizes_for_a_guarantee(client, table):
    path, body = f"/tables/{table}/plan", {"target": "target", "guarantee": "fp <= 5%"}
    plan = client.ok(path, body)
    planned = plan["planned"]
    chosen = planned["chosen"]
    assert chosen in planned["options"]
    assert sum(chosen["certify_by_class"].values()) == plan["parts"]["certify"]
    assert list(chosen["allowed_errors"]) == ["neg"]
    assert chosen["recall"] == pytest.approx(
        max(option["recall"] for option in planned["options"]), abs=0.01
    )
    assert planned["recall_without"] > chosen["recall"] > 0
    assert client.ok(path, {"target": "target"})["planned"] is None
    assert client.ok(path, {**body, "certify": 0.3})["planned"] is None


def test_a_plan_says_that_a_class_has_too_few_rows(client, table):
    body = {"target": "target", "guarantee": "fp <= 0.1%"}
    planned = client.ok(f"/tables/{table}/plan", body)["planned"]
    assert planned["chosen"]["allowed_errors"] == {"neg": -1}
    assert planned["chosen"]["recall"] == 0
    assert planned["further"][0]["allowed_errors"] == {"neg": 0}
    assert planned["further"][0]["more_rows"]["neg"] > 0


def test_the_plan_is_that_of_the_trained_dialog(client, table):
    """The same seed gives the same split."""
    choices = {"target": "target", "guarantee": "fp <= 5%", "seed": 3}
    parts = client.ok(f"/tables/{table}/plan", choices)["parts"]
    dialog = client.ok("/dialogs", {"table": table, "members": ["logistic"], **choices})
    list(client.events(dialog["job"]["id"]))
    assert client.ok(f"/dialogs/{dialog['dialog']['id']}")["parts"] == parts


def test_training_tells_how_far_each_member_is(client, table, monkeypatch):
    """All progress reports, and what a listener received."""
    received = []
    progress = Handle.progress

    def noted(self, done, total, text, members=None, *more):
        received.append((done, total, text, members))
        progress(self, done, total, text, members, *more)

    monkeypatch.setattr(Handle, "progress", noted)
    name, job = begun(client, table, members=["logistic", "qda"])
    events = list(client.events(job))
    assert [event for event, _ in events] == ["job"] * (len(events) - 1) + ["end"]
    assert events[-1][1]["state"] == "done"
    assert events[-1][1]["result"] == {"step": 0}
    *bars, last = [members for *_, members in received if members]
    assert last == bars[-1]
    assert [[one["name"] for one in members] for members in bars] == [["logistic", "qda"]] * 13
    for j in range(2):
        done = [members[j]["done"] for members in bars]
        assert done == sorted(done)
        assert (done[-1], {members[j]["total"] for members in bars}) == (6, {6})
    assert [sum(one["done"] for one in members) for members in bars] == list(range(13))
    for _, record in events:
        assert (record["id"], record["kind"], f"/dialogs/{record['dialog']}") == (
            job,
            "train",
            name,
        )
    record = client.ok(name)
    assert (record["state"], record["error"], record["job"]) == ("ready", None, None)
    assert (record["position"], len(record["steps"]), record["saved"]) == (0, 1, True)


GOALS = {
    "fewest fp": (1, 0),
    "fewest fn": (0, 1),
    "fewest errors": (1, 1),
    "lowest cost of fp + 20 fn": (1, 20),
}
"""Goals, and what they say that a false positive and a false negative cost."""


def test_a_request_states_what_to_minimise_within_its_limits(client):
    name = client.dialog("pima", members=["logistic"])
    within = [
        point
        for curve in client.ok(f"{name}/frontier")["curves"]
        if 0 in curve["steps"]
        for point in zip(curve["fp"], curve["fn"], strict=True)
        if point[0] <= 60 and point[1] <= 150
    ]
    for goal, (of_fp, of_fn) in GOALS.items():
        client.ok(f"{name}/goto", {"step": 0})
        sent = {"wants": ["fp <= 60, fn <= 150"], "then": goal, "keep": False}
        read = client.ok(f"{name}/read", sent)
        job = client.finished(client.post(f"{name}/prefer", {**sent, "strategies": FAST}))
        made = client.ok(name)["steps"][job["result"]["step"]]
        assert read["goal"] == made["goal"] == goal
        assert read["after"] == made["after"]
        least = min(of_fp * fp + of_fn * fn for fp, fn in within)
        assert of_fp * made["fp"] + of_fn * made["fn"] == least


def test_the_goals_to_choose_from_follow_the_limits(client, dialog):
    client.ok(f"{dialog}/goto", {"step": 1})

    def goals(**request):
        read = client.ok(f"{dialog}/read", {"keep": False, **request})
        assert read["goals"][0]["then"] == read["goal"]
        return [one["then"] for one in read["goals"]]

    assert goals(wants=["fp <= 20"]) == ["fewest fn", "fewest errors"]
    assert goals(wants=["recall >= 80%"]) == ["fewest fp", "fewest errors"]
    assert goals(wants=["rejected <= 5%"]) == ["fewest errors"]
    assert goals(wants=["fp <= 20, fn <= 90"]) == ["fewest errors", "fewest fn", "fewest fp"]
    assert goals(wants=["fn <= 90"], keep=True) == ["fewest fn", "fewest errors", "fewest fp"]
    chosen = goals(wants=["fp <= 20"], then="lowest cost of fp + 3 fn")
    assert chosen == ["lowest cost of fp + 3 fn", "fewest fn", "fewest errors"]
    unknown = client.ok(f"{dialog}/read", {"wants": ["fp <= 20"], "then": "fewest ham"})
    assert (unknown["preference"], unknown["goals"]) == (None, [])
    sent = {"wants": ["fp <= 20"], "then": "fewest ham"}
    assert client.post(f"{dialog}/prefer", sent).status_code == 400


def test_a_raised_cell_has_an_effect(client):
    name = client.dialog("pima", members=["logistic"])
    step = client.asked(name, "fp <= 20", strategies=FAST)
    edit = {"true": "neg", "predicted": "pos", "to": 2 * step["fp"]}
    read = client.ok(f"{name}/read", {"edits": [edit]})
    (neg, pos) = read["after"]["counts"]
    assert (read["already"], read["goal"]) == (True, "fewest fn")
    assert step["fp"] < neg[1] <= 2 * step["fp"]
    assert pos[0] < step["fn"]
    # What the user chooses comes before what the raised cell means.
    other = client.ok(f"{name}/read", {"edits": [edit], "then": "fewest fp"})
    assert (other["error"], other["goal"]) == (None, "fewest fp")
    assert other["after"]["counts"][0][1] == 0
    # The preference of the response is the whole request, also where it replaces an earlier goal.
    chosen = client.asked(name, "fp <= 20", then="fewest errors", at=1, strategies=FAST)
    raised = client.ok(f"{name}/read", {"edits": [{**edit, "to": 3 * step["fp"]}]})
    made = client.asked(name, raised["preference"], keep=False, strategies=FAST)
    assert (chosen["goal"], raised["goal"], made["goal"]) == (
        "fewest errors",
        "fewest fn",
        "fewest fn",
    )
    assert raised["after"] == made["after"]


def test_a_request_that_changes_nothing_adds_no_step(client):
    name = client.dialog("pima", members=["logistic"])
    step = client.asked(name, "fp <= 20", strategies=FAST)
    client.asked(name, "fp <= 30", keep=False, strategies=FAST)
    body = {"wants": ["fp <= 20"], "keep": False, "at": 1}
    job = client.finished(client.post(f"{name}/prefer", body))
    assert (job["state"], job["error"], job["result"]["step"]) == ("done", None, 1)
    assert job["result"]["note"]
    record = client.ok(name)
    assert (record["position"], len(record["steps"])) == (1, 3)
    assert record["steps"][1] == {**step, "number": 1}
    # The next request is stored as usual.
    last = client.asked(name, "fp <= 20", then="fewest errors", keep=False, strategies=["move"])
    assert (last["number"], last["strategies"]) == (3, ["move"])


def test_the_whole_story(client):
    """From a table to a certificate: asked, not met, taken instead, undone, branched, accepted."""
    name = client.dialog("pima", title="The story")
    read = client.ok(
        f"{name}/read", {"edits": [{"true": "neg", "predicted": "pos", "to": 30}], "wants": []}
    )
    (sentence,) = read.pop("sentences")
    assert (read["preference"], read["error"], read["already"]) == ("fp <= 30", None, False)
    assert lacks(sentence, 30, 400, "neg", "pos") == []
    body = {"wants": [read["preference"]], "keep": True, "strategies": None, "at": 0}
    assert client.finished(client.post(f"{name}/prefer", body))["result"] == {"step": 1}
    first = client.ok(name)["steps"][1]
    assert (first["met"], first["final"], first["cancelled"]) == (True, True, False)
    assert first["fp"] <= 30
    assert (read["after"], read["met"]) == (first["after"], True)
    for want, keep, replaced in (
        ("fp <= 20", True, ["fp <= 30"]),
        ("fp <= 20", False, []),
        ("fn <= 200", True, []),
    ):
        assert client.ok(f"{name}/read", {"wants": [want], "keep": keep})["replaced"] == replaced
    assert first["limits"] == [{"subject": "fp(1)", "error": "fp", "most": 30}]

    # What was asked still holds, and both cannot be: the nearest, and what to take instead.
    short = client.asked(name, "fn <= 20", strategies=FAST)
    assert short["preference"] == "fp <= 30, fn <= 20, then fewest fn"
    assert (short["met"], short["parent"]) == (False, 1)
    assert short["shortfall"] > 0
    assert short["binding"] in ("fp <= 30", "fn <= 20")
    taken = client.asked(name, short["instead"], keep=False, at=short["parent"], strategies=FAST)
    assert (taken["number"], taken["parent"], taken["met"]) == (3, 1, True)
    assert taken["instead"] is None

    # Back and forth.
    record = client.ok(f"{name}/undo", {})
    assert (record["position"], record["undone"], record["can_redo"]) == (1, [3], True)
    record = client.ok(f"{name}/undo", {})
    assert (record["position"], record["can_undo"]) == (0, False)
    assert client.post(f"{name}/undo").status_code == 400
    record = client.ok(f"{name}/redo", {})
    assert (record["position"], record["undone"]) == (1, [3])
    record = client.ok(f"{name}/goto", {"step": 2})
    assert (record["position"], record["undone"], record["can_redo"]) == (2, [], False)
    assert client.post(f"{name}/redo").status_code == 400
    branch = client.asked(name, "fn <= 60", keep=False, at=0, strategies=FAST)
    assert (branch["number"], branch["parent"]) == (4, 0)
    compared = client.ok(f"{name}/compare", params={"first": 1, "second": 4})
    assert 0 < compared["n_only_first"] + compared["n_only_second"] <= compared["n_changed"]

    # A guarantee, a second one that is refused, and the same one again.
    client.ok(f"{name}/goto", {"step": 1})
    accepted = client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))
    assert (accepted["state"], accepted["result"]) == ("done", {"accepted": 1})
    record = client.ok(name)
    (one,) = record["accepted"]
    assert (one["number"], one["step"], one["confidence"]) == (1, 1, 0.8)
    assert len(one["guarantees"]) == 1
    assert one["guarantees"][0] in one["text"]
    n_negative, n_positive = map(sum, one["confusion"]["counts"])
    assert n_negative <= 100  # of a limited class, those that allow more errors
    assert n_positive == 54
    assert one["useless"] == []
    assert lacks(one["errors"], "1,000", 651, 349) == []  # as many as of 500 and 268 in the table
    assert record["used_up"] is True
    assert numbers(record["left"])[0] == 154
    again = client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))
    assert again["result"] == {"accepted": 1}
    client.ok(f"{name}/goto", {"step": 4})
    refused = client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))
    assert refused["state"] == "failed"
    assert [one["number"] for one in client.ok(name)["accepted"]] == [1]
    (line,) = [one for one in client.ok("/dialogs")["dialogs"] if one["title"] == "The story"]
    received = {
        key: line[key]
        for key in (*("table_name", "kind", "state", "n_steps", "preference", "met"), *N_MODELS)
    }
    assert received == {
        "table_name": "pima",
        "kind": "committee",
        "state": "ready",
        "n_steps": 5,
        "preference": "fn <= 60",
        "met": True,
        "n_accepted": 1,
        "n_useless": 0,
    }


def test_alternatives_to_limits_that_cannot_be_met_together_are_met(client):
    name = client.dialog("pima", members=["logistic"])
    short = client.asked(name, "fp <= 5", "fn <= 5", strategies=FAST)
    assert [one["kept"] for one in short["alternatives"]] == ["fp <= 5", "fn <= 5", None]
    for one in short["alternatives"]:
        wanted = one["preference"]
        taken = client.asked(name, wanted, keep=False, at=short["number"], strategies=FAST)
        assert (taken["met"], taken["alternatives"]) == (True, [])


def test_half_of_the_certify_samples_can_be_left_for_another(client):
    name = client.dialog("pima", own=True, members=["logistic"])
    whole = client.ok(name)
    assert (numbers(whole["left"])[0], whole["used_up"], whole["opened"]) == (154, False, None)
    plan = f"/tables/{whole['table']['id']}/plan"
    early = client.post(f"{name}/accept", {"confidence": 0.8})
    assert early.status_code == 400
    client.asked(name, "fp <= 2", strategies=FAST)
    refused = client.finished(client.post(f"{name}/accept", {"confidence": 0.95}))
    assert refused["state"] == "failed"
    assert lacks(refused["error"], "neg", 100) == []  # of that class
    assert (refused["code"], refused["fields"]["n"]) == ("too_few_samples", 100)
    assert client.ok(name)["left"] == whole["left"]
    client.asked(name, "fp <= 60", keep=False, strategies=FAST)
    first = client.finished(client.post(f"{name}/accept", {"confidence": 0.8, "reserve": True}))
    assert first["state"] == "done"
    record = client.ok(name)
    assert (numbers(record["left"])[:2], record["used_up"], record["opened"]) == (
        [50, 154],  # percent of what is allowed, on as many samples
        False,
        0.8,
    )
    assert client.ok(plan, {"target": "target"})["used_up"] is False
    client.asked(name, "fp <= 80", keep=False, strategies=FAST)
    other = client.finished(client.post(f"{name}/accept", {"confidence": 0.9}))
    assert "0.8" in other["error"]
    second = client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))
    assert second["result"] == {"accepted": 2}
    record = client.ok(name)
    assert [one["step"] for one in record["accepted"]] == [2, 3]
    assert (numbers(record["left"])[0], record["used_up"]) == (154, True)
    # A new dialog on the same rows is warned before it is trained.
    assert client.ok(plan, {"target": "target"})["used_up"] is True
    assert client.ok(plan, {"target": "target", "certify": None})["used_up"] is False
    assert (
        client.ok(f"/tables/{client.table('iris')}/plan", {"target": "target"})["used_up"] is False
    )


def test_what_is_improbable_is_certified_only_if_one_insists(client):
    name = client.dialog("pima", own=True, members=["logistic"])
    client.asked(name, "fp <= 45, fn <= 90", strategies=FAST)
    guarantee = client.ok(f"{name}/guarantee", params={"confidence": 0.8})
    expected = guarantee["expected"]
    assert guarantee["error"] is None
    assert expected["useful"] <= expected["probability"] < 0.5
    before = client.ok(name)["left"]
    stopped = client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))
    assert (stopped["state"], stopped["code"]) == ("failed", "improbable")
    received = {key: stopped["fields"][key] for key in ("probability", "useful", "nearest")}
    assert received == {key: expected[key] for key in received}
    assert client.ok(name)["left"] == before
    refused = client.finished(client.post(f"{name}/accept", {"confidence": 0.8, "anyway": True}))
    assert refused["state"] == "failed"
    assert refused["code"] != "improbable"
    assert client.ok(name)["used_up"] is True


def test_a_certified_model_that_is_useless_is_no_success(client):
    table = uploaded(client, judged(), "judged.csv")
    name = f"/dialogs/{trained(client, table, 'fp <= 5%', **JUDGED)}"
    expected = client.ok(f"{name}/guarantee")["expected"]
    assert expected["useful"] < 0.5 < expected["probability"]
    stopped = client.finished(client.post(f"{name}/accept"))
    assert stopped["code"] == "improbable"
    accepted = client.finished(client.post(f"{name}/accept", {"anyway": True}))
    assert accepted["result"] == {"accepted": 1}
    (one,) = client.ok(name)["accepted"]
    assert lacks(one["useless"][0], "good", 18) == []
    assert one["expected"]["nearest"] == expected["nearest"]
    assert lacks(one["errors"], "1,000", 766, 234) == []  # as many as of 295 and 90 in the table
    (line,) = (one for one in client.ok("/dialogs")["dialogs"] if name.endswith(one["id"]))
    assert (line["n_accepted"], line["n_useless"]) == (1, 1)
    assert "anyway=True" in client.get(f"{name}/script.py").text


def test_a_program_is_tuned_node_by_node_and_grown(client):
    name = client.dialog("pima", kind="program", members=None, levels=2)
    received = client.ok(f"{name}/program")
    assert (received["n_levels"], len(received["nodes"])) == (2, 6)
    node = next(one["id"] for one in received["nodes"] if one["weak"])
    before = next(one for one in received["nodes"] if one["id"] == node)["confusion"]["counts"]
    want = f"fn <= {before[1][0] // 2}"
    tuned = client.finished(client.post(f"{name}/program/tune", {"node": node, "wants": [want]}))
    assert (tuned["kind"], tuned["state"], tuned["result"]) == ("nodes", "done", {"step": 1})
    received = client.ok(f"{name}/program")
    after = next(one for one in received["nodes"] if one["id"] == node)
    assert after["confusion"]["counts"][1][0] <= before[1][0] // 2
    assert after["tuned"] == want
    step = client.ok(name)["steps"][1]
    assert (step["strategy"], step["preference"], step["met"]) == ("nodes", None, True)
    assert want in step["note"]
    grown = client.finished(client.post(f"{name}/program/grow", {"levels": 1}))
    assert (grown["kind"], grown["result"]) == ("grow", {"step": 2})
    received = client.ok(f"{name}/program")
    assert (received["n_levels"], len(received["nodes"])) == (3, 10)
    assert next(one for one in received["nodes"] if one["id"] == node)["tuned"] == want
    assert numbers(client.ok(name)["steps"][2]["note"]) == [1, 3]  # level more, to so many
    client.ok(f"{name}/goto", {"step": 0})
    received = client.ok(f"{name}/program")
    assert received["n_levels"] == 2
    assert all(one["tuned"] is None for one in received["nodes"])
    unknown = client.post(f"{name}/program/tune", {"node": "9-9", "wants": ["fn <= 5"]})
    assert (unknown.status_code, "'9-9'" in unknown.json()["error"]) == (400, True)
    leaf = received["nodes"][-1]["id"]  # it has no learner
    refused = client.post(f"{name}/program/tune", {"node": leaf, "wants": ["fn <= 5"]})
    assert refused.status_code == 400
    for answer, node in ((unknown, "9-9"), (refused, leaf)):
        fields = answer.json()["fields"]
        assert (fields["parameter"], fields["received"]) == ("node", node)


def test_three_classes(client):
    name = client.dialog("iris", members=["logistic"], certify=0.3)
    record = client.ok(name)
    assert (len(record["classes"]), record["positive"]) == (3, None)
    assert all(len(row) == 4 for row in record["steps"][0]["after"]["counts"])
    edit = {"true": "versicolor", "predicted": "virginica", "to": 0}
    read = client.ok(f"{name}/read", {"edits": [edit]})
    assert read["preference"] == "errors(versicolor -> virginica) <= 0"
    (sentence,) = read["sentences"]
    assert lacks(sentence, 0, 35, "versicolor", "virginica") == []
    assert read["met"]
    assert read["after"]["counts"][1][2] == 0
    step = client.asked(name, read["preference"], strategies=["move"])
    assert step["met"]
    assert step["limits"] is None
    assert step["after"]["counts"][1][2] == 0
    unclear = client.ok(f"{name}/read", {"wants": ["fp <= 3"]})
    assert lacks(unclear["error"], "fp", 3) == []
    assert client.get(f"{name}/frontier").status_code == 400
    assert client.get(f"{name}/program").status_code == 409


def test_with_a_positive_class_three_classes_have_a_frontier(client):
    name = client.dialog("iris", members=["logistic"], certify=0.3, positive="virginica")
    received = client.ok(f"{name}/frontier")
    assert (received["positive"], received["negative"]) == ("virginica", None)
    assert (received["n_positive"], received["n_negative"]) == (35, 70)


def test_a_title_is_what_its_user_wrote(client, dialog):
    written = "<b>\"Ärger\" & 'mehr'</b> ✓ =1+1"
    answer = client.http.patch(f"/api{dialog}", json={"title": written})
    assert answer.json()["title"] == written
    assert written in [line["title"] for line in client.ok("/dialogs")["dialogs"]]
    for title in ("", "  ", "x" * 201, 5, None):
        assert client.http.patch(f"/api{dialog}", json={"title": title}).status_code == 422


# What is refused


def posted(dialog, table):
    """Requests that fit the description and cannot be done, with what the refusal names."""
    new = {"table": table, "target": "target"}
    return [
        ("/tables/bundled", {"name": "nope"}, ["'nope'"]),
        ("/tables/bundled", {"name": "abalone"}, ["abalone"]),
        ("/dialogs", new | {"target": "zzz"}, ["target", "'zzz'", "'pregnant'", "'age'"]),
        ("/dialogs", new | {"target": "Glucos"}, ["target", "'Glucos'", "'glucose'"]),
        ("/dialogs", new | {"target": "mass"}, ["target", "'mass'", "248"]),
        ("/dialogs", new | {"drop": ["zzz"]}, ["columns", "'zzz'", "'pregnant'", "'age'"]),
        ("/dialogs", new | {"positive": "maybe"}, ["positive", "'neg'", "'pos'", "'maybe'"]),
        ("/dialogs", new | {"group": "target"}, ["group", "'target'"]),
        (f"{dialog}/prefer", {"wants": ["fp <= 5"], "at": 99}, ["step", "99"]),
        (
            f"{dialog}/prefer",
            {"wants": ["fp <= 5"], "strategies": ["magic"]},
            ["strategies", "'magic'"],
        ),
        (f"{dialog}/goto", {"step": 99}, ["step", "99"]),
        (f"{dialog}/goto", {"step": 10**20}, ["step", "100000000000000000000"]),
        (f"{dialog}/redo", {}, ["redo"]),
    ]


def looked(dialog, table):
    """The same for requests that only look."""
    return [
        (f"{dialog}/rows", {"true": "maybe"}, ["true", "'neg'", "'pos'", "'maybe'"]),
        (f"{dialog}/rows", {"predicted": ""}, ["predicted", "'neg'", "'pos'", "''"]),
        (f"{dialog}/rows", {"sort": "zzz"}, ["sort", "'zzz'"]),
        (f"{dialog}/rows", {"sort": "member:zzz"}, ["sort", "'member:zzz'"]),
        (f"{dialog}/compare", {"first": 0, "second": 7}, ["step", "7"]),
        (f"{dialog}/winners", {"prior_low": 0.2}, ["prior"]),
        (f"{dialog}/winners", {"cost_low": 3, "cost_high": 1}, ["cost", "3.0", "1.0"]),
        (f"/tables/{table}/classes", {"target": "mass"}, ["target", "'mass'", "248"]),
    ]


def test_every_refusal_is_one_line_that_names_what_is_wrong(client, dialog, table):
    answers = [
        *((client.post(path, body), path, named) for path, body, named in posted(dialog, table)),
        *(
            (client.get(path, params=query), path, named)
            for path, query, named in looked(dialog, table)
        ),
    ]
    for answer, path, named in answers:
        assert answer.status_code == 400, path
        error = answer.json()["error"]
        assert answer.json()["code"] != "refused", path
        assert answer.json()["fields"] is not None, path
        assert lacks(error, *named) == [], (path, error)
        assert error.endswith((".", "?"))
        assert "\n" not in error


def test_an_error_of_the_library_has_its_code_and_fields(client, dialog):
    answer = client.post(f"{dialog}/goto", {"step": 99})
    assert answer.status_code == 400
    received = answer.json()
    assert (received["code"], received["fields"]["parameter"]) == ("parameter", "step")
    assert received["fields"]["received"] == 99
    assert "Dialog" not in received["error"]
    assert client.post(f"{dialog}/redo").json()["code"] == "nothing_to_redo"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "wants"),
        ({"wants": []}, "wants"),
        ({"wants": "fp <= 5"}, "wants"),
        ({"wants": ["x" * 20_001]}, "wants 0"),
        ({"wants": ["fp <= 5"], "at": -1}, "at"),
        ({"wants": ["fp <= 5"], "more": 1}, "more"),
        ([], None),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_with_its_place(client, dialog, body, place):
    answer = client.http.post(f"/api{dialog}/prefer", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    found, _, why = answer.json()["error"].partition(": ")
    assert why
    assert found == place or (place is None and found not in ("wants", "keep", "strategies", "at"))


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/prefer", b'{"wants": ['),
        ("/read", b'{"edits": [{"true": "neg", "predicted": "pos", "to": -1}]}'),
        ("/read", b'{"edits": [{"true": null, "predicted": "pos", "to": 1}]}'),
    ],
)
def test_what_does_not_fit_is_refused_without_names_of_types(client, dialog, path, content):
    answer = client.http.post(
        f"/api{dialog}{path}", content=content, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    place, _, _ = answer.json()["error"].partition(":")
    assert not re.search(r"constrained|bool|literal|\[|^\d+$", place)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("goto", {"step": False}),
        ("goto", {"step": "0"}),
        ("read", {"wants": ["fp <= 5"], "keep": "no"}),
        ("read", {"edits": [{"true": "neg", "predicted": "pos", "to": True}]}),
    ],
    ids=str,
)
def test_numbers_and_booleans_are_taken_as_described(client, dialog, path, body):
    before = client.ok(dialog)["position"]
    answer = client.post(f"{dialog}/{path}", body)
    client.ok(f"{dialog}/goto", {"step": before})
    assert answer.status_code == 422


def test_an_unknown_word_is_refused_without_marks(client, dialog):
    error = client.post(f"{dialog}/prefer", {"wants": ["fpp <= 5"]}).json()["error"]
    assert re.findall(r"\bfpp?\b", error)[:2] == ["fpp", "fp"]
    assert "errors(neg -> pos)" in error  # an example with the classes of this dialog
    assert not set("^\n") & set(error)


@pytest.mark.parametrize("bound", ["fp <= 5", "fp at most 5"])
def test_so_many_limits_are_refused_before_they_are_checked(client, dialog, bound):
    for separator in (", ", " and ", "\n", "and "):
        answer = client.post(f"{dialog}/prefer", {"wants": [separator.join([bound] * 61)]})
        assert (answer.status_code, answer.json()["code"]) == (400, "too_many")
        assert "61" in answer.json()["error"]


def test_only_parsed_limits_count(client, dialog):
    limit = f"recall({','.join('a' * 100)}) >= 90%"
    answer = client.post(f"{dialog}/read", {"wants": [limit.replace("(", '("').replace(")", '")')]})
    assert answer.json()["code"] == "unknown_class"


def test_edits_and_earlier_limits_count(client):
    edits = [{"true": "neg", "predicted": "pos", "to": 30}] * 61
    name = client.dialog("pima", members=["logistic"])
    assert client.ok(f"{name}/read", {"edits": edits})["code"] == "too_many"
    words = ("fp", "fn", "alarms", "errors", "correct")  # as counts that everything meets
    sixty = [f"{word} >= {n}" for n in range(12) for word in words]
    client.asked(name, *(", ".join(sixty[at::3]) for at in range(3)), strategies=FAST)
    assert client.ok(f"{name}/read", {"wants": ["recall >= 1%"]})["code"] == "too_many"
    answer = client.post(f"{name}/prefer", {"wants": ["recall >= 1%"]})
    assert (answer.status_code, answer.json()["code"]) == (400, "too_many")
    alone = client.ok(f"{name}/read", {"wants": ["recall >= 1%"], "keep": False})
    assert alone["error"] is None


HUGE = (
    "9" * 400,
    "9" * 5000,
    "-" + "9" * 400,
    "1e400",
    "NaN",
    "Infinity",
    "-Infinity",
    "[" * 10**5,
)


@pytest.mark.parametrize("number", HUGE, ids=lambda number: number[:9])
def test_numbers_out_of_range_are_refused_in_every_place(client, table, dialog, number):
    choices = {"table": table, "target": "target"}
    places = [
        ("/dialogs", choices | {"certify": "@"}),
        ("/dialogs", choices | {"confidence": "@"}),
        ("/dialogs", choices | {"seed": "@"}),
        ("/dialogs", choices | {"levels": "@", "kind": "program"}),
        ("/dialogs", choices | {"positive": "@"}),
        (f"/tables/{table}/plan", {"target": "target", "positive": "@"}),
        (f"/tables/{table}/plan", {"target": "target", "certify": "@"}),
        (f"{dialog}/prefer", {"wants": ["fp <= 30"], "at": "@"}),
        (f"{dialog}/prefer", {"wants": ["fp <= @"]}),
        (f"{dialog}/prefer", {"wants": ["recall >= @%"]}),
        (f"{dialog}/goto", {"step": "@"}),
        (f"{dialog}/program/grow", {"levels": "@"}),
        (f"{dialog}/accept", {"confidence": "@"}),
        (f"{dialog}/read", {"edits": [{"true": "neg", "predicted": "pos", "to": "@"}]}),
        (f"{dialog}/read", {"edits": [{"true": "@", "predicted": "pos", "to": 3}]}),
        (f"{dialog}/read", {"wants": ["recall(@) >= 90%"]}),
    ]
    for path, body in places:
        sent = json.dumps(body).replace('"@"', number).replace("@", number)
        kind = {"Content-Type": "application/json"}
        answer = client.http.post(f"/api{path}", content=sent, headers=kind)
        refused = 400 <= answer.status_code < 500
        assert refused or (answer.status_code == 200 and answer.json()["error"]), (path, body)
    for path in (
        "compare?first=@&second=0",
        "winners?cost_low=@",
        "winners?prior_low=@&prior_high=0.5",
        "rows?offset=@",
        "program?threshold=@",
        "guarantee?confidence=@",
        "accepted/@/model.skops",
        "accepted/@/model.onnx",
    ):
        answer = client.get(f"{dialog}/{path.replace('@', number[:5000])}")
        assert 400 <= answer.status_code < 500, (path, answer.text)


def test_what_is_not_there_is_not_found(client):
    for path, kind in (
        ("/tables/zzz", "table"),
        ("/dialogs/zzz", "dialog"),
        ("/jobs/zzz", "job"),
        ("/jobs/zzz/events", "job"),
        ("/zzz", ""),
    ):
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"
        assert kind in answer.json()["error"]
    answer = client.post("/dialogs", {"table": "zzz", "target": "target"})
    assert (answer.status_code, "table" in answer.json()["error"]) == (404, True)


def test_models_that_were_not_accepted_are_not_found(client, dialog):
    for number in (0, 1, -1, 10**20):
        for name in ("model.skops", "model.onnx", "card.md", "certificate.json"):
            answer = client.get(f"{dialog}/accepted/{number}/{name}")
            assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"
    assert client.get(f"{dialog}/accepted/one/card.md").status_code == 422


def test_unknown_members_fail_the_job(client, table):
    for members in (["magic"], ["logistic", "logistic"]):
        name, job = begun(client, table, members=members)
        last = ended(client, job)
        assert last["state"] == "failed"
        assert f"'{members[0]}'" in last["error"]
        assert (last["code"], last["fields"]["parameter"]) == ("parameter", "committee")
        assert last["fields"]["received"] == members[0]
        record = client.ok(name)
        assert (record["state"], record["error"]) == ("failed", last["error"])


def test_an_error_of_our_own_shows_nothing_of_it(studio, dialog, monkeypatch):
    def broken(*_):
        raise RuntimeError("/home/somebody/secret.py")

    monkeypatch.setattr("margrave.studio.views.Members.of", broken)
    with connected(studio[0].settings) as own:  # its line is broken afterwards
        answer = own.get(f"{dialog}/members")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal"
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def test_an_error_of_our_own_in_a_job_shows_nothing_of_it(client, dialog, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("/home/somebody/secret.py")

    monkeypatch.setattr("margrave.steer._dialog.Dialog.replies", broken)
    last = client.finished(client.post(f"{dialog}/prefer", {"wants": ["fp <= 5"]}))
    assert (last["state"], last["error"]) == ("failed", WENT_WRONG)
    assert len(client.ok(dialog)["steps"]) == 2


def test_a_request_that_fails_leaves_the_dialog_where_it_was(client):
    name = client.dialog("pima", members=["logistic"])
    client.asked(name, "fp <= 30", strategies=["move"])
    client.asked(name, "fp <= 20", strategies=["move"])
    before = client.ok(f"{name}/undo", {})
    answer = client.post(f"{name}/prefer", {"wants": ["recall(zzz) >= 5%"], "at": 0})
    assert answer.status_code == 400
    assert lacks(answer.json()["error"], "recall(zzz) >= 5%", "'zzz'", "neg", "pos") == []
    after = client.ok(name)
    assert (
        (after["position"], after["undone"]) == (before["position"], before["undone"]) == (1, [2])
    )


# At work


def test_a_dialog_at_work_is_not_changed_but_can_be_read(client, held):
    reached, free = held
    name = client.dialog("pima", members=["logistic"])
    job = client.ok(f"{name}/prefer", {"wants": ["fp <= 30"], "strategies": FAST})["id"]
    assert reached.wait(SECONDS)
    for path, body in (
        ("prefer", {"wants": ["fp <= 20"]}),
        ("undo", {}),
        ("redo", {}),
        ("goto", {"step": 0}),
        ("accept", {}),
        ("retry", {}),
        ("program/grow", {}),
        ("program/tune", {"node": "0-0", "wants": ["fp <= 5"]}),
    ):
        answer = client.post(f"{name}/{path}", body)
        assert (answer.status_code, answer.json()["error"]) == (409, BUSY), path
    record = client.ok(name)
    assert (record["state"], record["position"], len(record["steps"])) == ("ready", 0, 1)
    assert (record["job"]["id"], record["job"]["state"]) == (job, "running")
    for path in ("frontier", "members", "rows", "winners", "rows.csv", "dialog.json", "script.py"):
        assert client.get(f"{name}/{path}").status_code == 200, path
    assert client.ok(f"{name}/read", {"wants": ["fp <= 3"]})["error"] is None
    assert client.http.patch(f"/api{name}", json={"title": "while at work"}).status_code == 200
    free.set()
    assert ended(client, job)["result"] == {"step": 1}
    record = client.ok(name)
    assert (record["title"], record["position"], record["job"]) == ("while at work", 1, None)


def test_what_is_read_while_a_branch_is_searched_is_where_the_dialog_stands(client, held):
    reached, free = held
    free.set()
    name = client.dialog("pima", members=["logistic"])
    client.asked(name, "fp <= 10", strategies=FAST)
    reached.clear()
    free.clear()
    job = client.ok(f"{name}/prefer", {"wants": ["fp <= 30"], "strategies": FAST, "at": 0})["id"]
    assert reached.wait(SECONDS)
    record = client.ok(name)
    total = client.ok(f"{name}/rows", params={"true": "neg", "predicted": "pos"})["total"]
    free.set()
    ended(client, job)
    assert (record["position"], total) == (1, record["steps"][1]["fp"])


def test_a_search_that_is_stopped_keeps_the_best_so_far(client, held):
    reached, free = held
    name = client.dialog("pima", members=["logistic"])
    job = client.ok(f"{name}/prefer", {"wants": ["fp <= 30"]})["id"]
    assert reached.wait(SECONDS)
    running = client.ok(f"/jobs/{job}/cancel", {})
    assert running["state"] == "running"
    free.set()
    last = ended(client, job)
    assert (last["state"], last["result"], last["reply"]) == ("done", {"step": 1}, None)
    record = client.ok(name)
    step = record["steps"][1]
    assert (record["position"], step["cancelled"], step["final"]) == (1, True, True)
    assert step["preference"] == "fp <= 30"
    assert step["after"] == running["reply"]["after"]
    assert step["strategy"] in FAST
    after = client.ok(f"/jobs/{job}/cancel", {})  # too late, and no error
    assert after["state"] == "done"


def test_the_best_reply_so_far_is_shown_while_a_search_runs(client, held):
    reached, free = held
    name = client.dialog("pima", members=["logistic"])
    job = client.ok(f"{name}/prefer", {"wants": ["fp <= 30"], "strategies": FAST})["id"]
    assert reached.wait(SECONDS)
    events = client.events(job)
    shown = [client.ok(f"/jobs/{job}"), client.ok(name)["job"], next(events)[1]]
    assert shown[0] == shown[1] == shown[2]
    reply = shown[0]["reply"]
    assert (reply["number"], reply["parent"], reply["final"]) == (None, 0, False)
    assert reply["preference"] == "fp <= 30"
    free.set()
    *_, (event, last) = events
    assert (event, last["state"], last["reply"]) == ("end", "done", None)
    step = client.ok(name)["steps"][1]
    assert step["met"] >= reply["met"]
    assert step["fn"] <= reply["fn"]  # no later reply is worse than the first


def test_training_shows_a_provisional_matrix_and_may_end_with_the_finished_members(
    client, table, reading, first_member
):
    names = ["logistic", "logistic-quantile", "qda"]
    name, job = begun(client, table, members=names)
    assert reading[0].wait(SECONDS)
    unfinished = client.post(f"/jobs/{job}/enough")
    assert unfinished.status_code == 409  # no member is finished
    reading[1].set()
    reached, free = first_member
    assert reached.wait(SECONDS)
    progress = client.ok(f"/jobs/{job}")["progress"]
    assert [member["name"] for member in progress["members"]] == names
    finished = [member["name"] for member in progress["members"] if member["state"] == "done"]
    assert 1 <= len(finished) < len(names)
    assert progress["provisional"]["members"] == len(finished)
    client.ok(f"/jobs/{job}/enough", {})
    free.set()
    assert ended(client, job)["state"] == "done"
    record = client.ok(name)
    assert record["members"] == finished
    assert record["steps"][0]["after"] == progress["provisional"]["confusion"]
    assert f"committee={finished!r}" in client.get(f"{name}/script.py").text
    refused = client.post(f"/jobs/{job}/enough")
    assert refused.status_code == 409  # it has ended
    assert refused.json() != unfinished.json()


def test_training_goes_on_if_the_store_does_not_tell_whether_it_is_enough(
    client, table, monkeypatch
):
    asked = []

    def unreachable(store, job):
        asked.append(job)
        raise StoreError("The store cannot be reached now; try again.")

    monkeypatch.setattr(Store, "enough_members", unreachable)
    name, job = begun(client, table, members=["logistic", "qda"])
    assert ended(client, job)["state"] == "done"
    assert asked
    assert client.ok(name)["members"] == ["logistic", "qda"]


def test_training_that_is_stopped_can_be_tried_again(client, table, reading):
    reached, free = reading
    name, job = begun(client, table)
    assert reached.wait(SECONDS)
    for path in ("members", "rows", "frontier", "winners", "program", "report.html", "rows.csv"):
        assert untrained(client.get(f"{name}/{path}")), path
    record = client.ok(name)
    assert (record["state"], record["steps"], record["n"]) == ("training", [], 0)
    client.ok(f"/jobs/{job}/cancel", {})
    free.set()
    assert ended(client, job)["state"] == "cancelled"
    record = client.ok(name)
    assert (record["state"], record["error"]) == ("failed", CANCELLED)
    assert record["job"] is None
    for path, body in (("undo", {}), ("read", {}), ("accept", {}), ("share", {})):
        assert untrained(client.post(f"{name}/{path}", body)), path
    again = client.post(f"{name}/retry")
    assert client.finished(again)["state"] == "done"
    record = client.ok(name)
    assert (record["state"], record["error"], len(record["steps"])) == ("ready", None, 1)
    assert client.post(f"{name}/retry").status_code == 409  # it is trained


@pytest.fixture
def busy(client, table, reading):
    """The one worker that trains is busy until the event is set."""
    reached, free = reading
    _, job = begun(client, table)
    assert reached.wait(SECONDS)
    yield free
    free.set()
    assert ended(client, job)["state"] == "done"


def test_training_that_is_stopped_while_it_waits_has_failed(client, table, busy):
    name, job = begun(client, table)
    assert client.ok(f"/jobs/{job}")["state"] == "waiting"
    assert client.ok(f"/jobs/{job}/cancel", {})["state"] == "cancelled"
    record = client.ok(name)
    assert (record["state"], record["error"]) == ("failed", CANCELLED)


def test_a_job_that_waits_says_how_many_are_ahead(client, table, busy):
    (first, one), (second, other) = begun(client, table), begun(client, table)
    received = [client.ok(f"/jobs/{job}") for job in (one, other)]
    assert [job["state"] for job in received] == ["waiting", "waiting"]
    assert [job["ahead"] for job in received] == [0, 1]
    assert client.http.delete(f"/api{first}").status_code == 204
    assert client.get(f"/jobs/{one}").status_code == 404
    assert client.ok(f"/jobs/{other}")["ahead"] == 0
    busy.set()
    assert ended(client, other)["state"] == "done"
    assert client.get(first).status_code == 404
    assert client.ok(second)["state"] == "ready"


def test_a_dialog_that_is_deleted_is_gone(client):
    name = client.dialog("iris", members=["logistic"], certify=None)
    assert client.http.delete(f"/api{name}").status_code == 204
    assert client.http.delete(f"/api{name}").status_code == 404
    for path in ("", "/members", "/rows", "/dialog.json"):
        assert client.get(name + path).status_code == 404
    assert name.removeprefix("/dialogs/") not in [
        one["id"] for one in client.ok("/dialogs")["dialogs"]
    ]


@pytest.mark.parametrize("kind", ["prefer", "train"])
def test_work_on_a_dialog_that_is_deleted_is_cancelled(studio, table, held, reading, kind):
    made, client = studio
    for _, free in (held, reading)[kind == "train" :]:
        free.set()
    if kind == "prefer":
        reading[1].set()
        held[1].clear()
        name = client.dialog("pima", members=["logistic"])
        job, reached, free = client.ok(f"{name}/prefer", {"wants": ["fp <= 30"]})["id"], *held
    else:
        reading[1].clear()
        (name, job), (reached, free) = begun(client, table), reading
    assert reached.wait(SECONDS)
    live, events = made.workspace.n_live, client.events(job)
    next(events)
    assert client.http.delete(f"/api{name}").status_code == 204
    free.set()
    *_, (event, last) = events
    assert (event, last["state"], last["error"]) == ("end", "cancelled", None)
    assert client.get(name).status_code == client.get(f"/jobs/{job}").status_code == 404
    assert made.workspace.n_live <= live


def test_back_and_forth_from_many_tabs_at_once_ends_where_the_store_says(studio):
    made, client = studio
    name = client.dialog("pima", members=["logistic"])
    for most in (30, 20, 10):
        client.asked(name, f"fp <= {most}", keep=False, strategies=["move"])

    def go(number):
        path, body = [("undo", {}), ("redo", {}), ("goto", {"step": number % 4})][number % 3]
        with connected(made.settings) as tab:
            return tab.post(f"{name}/{path}", body)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(go, range(24)))
    assert {answer.status_code for answer in answers} <= {200, 400}
    record = client.ok(name)
    live = made.workspace.live("local", record["id"]).dialog
    assert (live.position, list(live.undone)) == (record["position"], record["undone"])
    assert len(record["steps"]) == len(live.history) == 4


def test_of_two_requests_at_once_one_is_refused(studio, monkeypatch):
    made, client = studio
    name = client.dialog("pima", members=["logistic"])
    both, look = threading.Barrier(2), made.jobs.table.of_dialog

    def together(dialog):
        found = look(dialog)
        with suppress(threading.BrokenBarrierError):
            both.wait(1)
        return found

    def ask(most):
        with connected(made.settings) as tab:
            return tab.post(f"{name}/prefer", {"wants": [f"fp <= {most}"], "strategies": ["move"]})

    monkeypatch.setattr(made.jobs.table, "of_dialog", together)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(ask, (30, 20)))
    monkeypatch.undo()
    for answer in answers:
        if answer.status_code == 202:
            client.finished(answer)
    assert sorted(answer.status_code for answer in answers) == [202, 409]


def test_a_listener_that_comes_late_or_again_hears_the_end(client, dialog):
    answer = client.post(f"{dialog}/prefer", {"wants": ["fp <= 30"], "strategies": FAST})
    assert client.finished(answer)["state"] == "done"
    job = answer.json()["id"]
    for _ in range(2):
        assert list(client.events(job)) == [("end", client.ok(f"/jobs/{job}"))]


# Files


@pytest.mark.slow
def test_a_file_that_is_sent_becomes_a_table(client):
    text = "a;b;who;spam\n" + "".join(
        f"{i % 7};{i % 5}.5;=cmd|' /C calc'!A0;{'yes' if i % 3 else 'no'}\n" for i in range(90)
    )
    answer = client.http.post("/api/tables", files={"file": ("../../etc/mails.csv", text.encode())})
    assert answer.status_code == 201, answer.text
    received = answer.json()
    assert (received["name"], received["rows"], received["target"]) == ("mails.csv", 90, "spam")
    assert [column["name"] for column in received["columns"]] == ["a", "b", "who", "spam"]
    assert client.ok(f"/tables/{received['id']}") == received
    classes = client.ok(f"/tables/{received['id']}/classes", params={"target": "spam"})
    assert classes["classes"] == [{"label": "no", "count": 30}, {"label": "yes", "count": 60}]
    assert classes["positive"] == "no"  # the rarer of two
    body = {"table": received["id"], "target": "spam", "members": ["logistic"], "certify": 0.3}
    begun = client.post("/dialogs", body)
    assert client.finished(begun)["state"] == "done"
    name = f"/dialogs/{begun.json()['dialog']['id']}"
    assert client.ok(name)["title"] == "mails.csv"
    lines = client.get(f"{name}/rows.csv").text.splitlines()
    assert len(lines) == 1 + client.ok(name)["n"]
    assert all("'=cmd" in line for line in lines[1:])


@pytest.mark.slow
def test_a_parquet_file_that_is_sent_becomes_a_table(client):
    buffer = io.BytesIO()
    frame = labelled([True, False]).assign(when=pd.Timestamp("2024-01-01"))
    frame.to_parquet(buffer)
    answer = client.http.post("/api/tables", files={"file": ("T.PARQUET", buffer.getvalue())})
    assert answer.status_code == 201, answer.text
    received = answer.json()
    assert (received["rows"], received["target"]) == (150, "y")
    kinds = {column["name"]: column["kind"] for column in received["columns"]}
    assert kinds == {"a": "number", "b": "number", "y": "number", "when": "constant"}


def test_files_that_are_no_tables_are_refused(client):
    post = client.http.post
    answer = post("/api/tables", files={"file": ("notes.docx", b"x")})
    assert answer.status_code == 415
    assert lacks(answer.json()["error"], "notes.docx", *ENDINGS) == []
    answer = post("/api/tables", files={"other": ("a.csv", b"x")})
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (422, "file")
    answer = post("/api/tables", json={"file": "a.csv"})
    assert answer.status_code == 415
    assert "multipart/form-data" in answer.json()["error"]
    answer = post("/api/tables", content=b"x", headers={"Content-Type": "multipart/form-data"})
    assert (answer.status_code, answer.json()["code"]) in ((400, "bad_request"), (422, "invalid"))


@pytest.mark.slow
def test_a_damaged_file_is_refused_with_its_line(client):
    answer = client.http.post("/api/tables", files={"file": ("a.csv", b"a,b\n1,2\n1,2,3\n")})
    assert answer.status_code == 400
    file, _, what = answer.json()["error"].partition("a.csv")
    assert (file, numbers(what)) == ("", [3, 2, 3])  # in line 3: 2 fields needed, 3 found


@pytest.mark.slow
def test_a_file_in_another_encoding_is_read_as_it_is_offered(client):
    def sent(**form):
        file = ("mails.csv", "größe;von;art\n1,5;café;spam\n2,25;Freund;ham\n".encode("cp1252"))
        return client.http.post("/api/tables", files={"file": file}, data=form)

    answer = sent()
    assert (answer.status_code, answer.json()["code"]) == (400, "text_format")
    assert lacks(answer.json()["error"], "mails.csv", "cp1252", "','") == []
    assert "--" not in answer.json()["error"]
    fields = answer.json()["fields"]
    assert fields.pop("example") == "größe;von;art"
    answer = sent(**fields)
    assert answer.status_code == 201, answer.text
    size, sender, _ = answer.json()["columns"]
    assert (size["name"], size["kind"], size["examples"]) == ("größe", "number", ["1.5", "2.25"])
    assert sender["examples"] == ["café", "Freund"]


@pytest.mark.parametrize("form", [{"encoding": "base64"}, {"decimal": ";"}])
def test_an_unknown_encoding_is_refused(client, form):
    file = {"file": ("a.csv", b"a,b\n1,2\n")}
    answer = client.http.post("/api/tables", files=file, data=form)
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (422, next(iter(form)))


def test_a_file_that_is_too_large_is_refused(tmp_path):
    with serving(tmp_path, upload_bytes=1000) as (_, client):
        answer = client.http.post("/api/tables", files={"file": ("a.csv", b"a,b\n" * 20_000)})
        assert answer.status_code == 413
        limits = client.ok("/studio")["limits"]
        assert limits["upload_bytes"] == 1000
        answer = client.http.post("/api/tables", files={"file": ("a.csv", b"a,b\n" * 300)})
        assert answer.status_code == 413
        assert "a.csv" in answer.json()["error"]


def test_the_studio_says_what_there_is(client):
    received = client.ok("/studio")
    assert received["shared"] is False
    sets = {one["name"]: one for one in received["sets"]}
    assert sets["pima"]["rows"] == 768
    assert sets["iris"]["classes"] == ["setosa", "versicolor", "virginica"]
    assert "abalone" not in sets
    assert received["members"][0]["name"] == "logistic"


# Labels of all kinds


LABELS = {
    "numbers": [0, 1],
    "whole": [1.0, 2.0],
    "booleans": [True, False],
    "words": ["=1+1", "<b>a, b</b>", "c -> d"],
    "texts": ["it's", 'say "hi"', "é 日本 👍"],
    "like numbers": ["1", "1.0", "01"],
    "our own words": ["rejected", "and", "fp"],
}


@pytest.mark.parametrize("kind", LABELS)
def test_every_cell_can_be_edited_whatever_the_classes_are_called(studio, kind):
    made, client = studio
    frame = labelled(LABELS[kind])
    table = stored(made, frame)
    received = client.ok(f"/tables/{table}/classes", params={"target": "y"})
    sizes = frame["y"].value_counts()
    assert {one["label"]: one["count"] for one in received["classes"]} == sizes.to_dict()
    body = {"table": table, "target": "y", "members": ["logistic"], "certify": 0.2}
    begun = client.post("/dialogs", body)
    assert client.finished(begun)["state"] == "done"
    name = f"/dialogs/{begun.json()['dialog']['id']}"
    record = client.ok(name)
    classes, counts = record["classes"], record["steps"][0]["after"]["counts"]
    assert [type(label) for label in classes] == [type(LABELS[kind][0])] * len(classes)
    assert set(classes) == set(LABELS[kind])
    for i, true in enumerate(classes):
        for j, answer in enumerate([*classes, None]):
            cell = {"rejected": True} if answer is None else {"predicted": str(answer)}
            page = client.ok(f"{name}/rows", params={"true": str(true), "limit": 1, **cell})
            assert page["total"] == counts[i][j]
            edit = {"true": true, "predicted": answer, "to": counts[i][j]}
            read = client.ok(f"{name}/read", {"edits": [edit]})
            assert read["error"] is None
            named = [counts[i][j], sum(counts[i]), true, *([] if answer is None else [answer])]
            assert lacks(read["sentences"][0], *named) == []
            assert read["already"]
    edit = {"true": classes[0], "predicted": classes[1], "to": 0}
    wanted = client.ok(f"{name}/read", {"edits": [edit]})["preference"]
    step = client.asked(name, wanted, strategies=["move"])
    assert step["after"]["counts"][0][1] == 0
    table = client.get(f"{name}/rows.csv").text
    assert not re.search(r"(^|,)[=@]", table, re.MULTILINE)


def test_a_class_with_both_kinds_of_quotes_can_be_edited(studio):
    made, client = studio
    table = stored(made, labelled(['it\'s "x"', "b"]))
    begun = client.post("/dialogs", {"table": table, "target": "y", "members": ["logistic"]})
    client.finished(begun)
    name = f"/dialogs/{begun.json()['dialog']['id']}"
    edit = {"true": 'it\'s "x"', "predicted": 'it\'s "x"', "to": 1}
    assert client.ok(f"{name}/read", {"edits": [edit]})["error"] is None


def test_what_is_read_can_be_asked_however_long_the_classes_are(studio):
    made, client = studio
    table = stored(made, labelled(["x" * 300, "y" * 300, "z" * 300]))
    begun = client.post("/dialogs", {"table": table, "target": "y", "members": ["logistic"]})
    client.finished(begun)
    name = f"/dialogs/{begun.json()['dialog']['id']}"
    edit = {"true": "x" * 300, "predicted": "y" * 300, "to": 1}
    read = client.ok(f"{name}/read", {"edits": [edit]})
    assert client.post(f"{name}/prefer", {"wants": [read["preference"]]}).status_code == 202


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([0.5, 1.5] * 75),
        pd.Series([1.0, float("inf")] * 75),
        pd.Series([f"somebody {i}" for i in range(150)]),
        pd.Series(pd.date_range("2024-01-01", periods=150)),
        pd.Series(["same"] * 150),
    ],
    ids=["fractions", "infinity", "names", "dates", "one class"],
)
def test_a_column_that_cannot_be_a_target_is_refused(studio, column):
    made, client = studio
    frame = labelled([0, 1]).assign(y=column)
    answer = client.get(f"/tables/{stored(made, frame)}/classes", params={"target": "y"})
    received = answer.json()
    assert (answer.status_code, received["code"]) == (400, "wrong_column")
    assert (received["fields"]["parameter"], received["fields"]["column"]) == ("target", "y")


# Users


BODIES = {
    "plan": {"target": "target"},
    "read": {"wants": ["fp <= 5"]},
    "prefer": {"wants": ["fp <= 5"]},
    "goto": {"step": 0},
    "tune": {"node": "0-0", "wants": ["fp <= 5"]},
}
QUERY = {"target": "target", "first": 0, "second": 0}


def operations(client):
    """All that the studio says it does: the method, the path, the description."""
    for path, found in client.ok("/openapi.json")["paths"].items():
        for method, operation in found.items():
            yield method, path, operation


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A studio with users, and what the first of them has."""
    with serving(tmp_path_factory.mktemp("shared"), token=TOKEN) as (made, owner):
        owner.ok("/openapi.json")
        name = owner.dialog("pima", members=["logistic"])
        owner.asked(name, "fp <= 60", strategies=["move"])
        accepting = owner.post(f"{name}/accept", {"confidence": 0.8})
        assert owner.finished(accepting)["state"] == "done"
        record = owner.ok(name)
        ids = {
            "dialog": record["id"],
            "table": record["table"]["id"],
            "job": accepting.json()["id"],
            "number": "1",
        }
        yield made, owner, ids


def asked(user, method, path, operation, ids):
    """A request that would go well for the owner."""
    query = {
        one["name"]: QUERY[one["name"]]
        for one in operation.get("parameters", ())
        if one["in"] == "query" and one["required"]
    }
    body = {}
    if method in ("post", "patch"):
        last = path.rsplit("/", 1)[-1]
        body["json"] = {"title": "mine"} if method == "patch" else BODIES.get(last, {})
    return user.http.request(method, path.format(**ids), params=query, **body)


def test_nobody_sees_or_changes_what_is_anothers(shared):
    made, owner, ids = shared
    before = owner.ok(f"/dialogs/{ids['dialog']}")
    nowhere = {**dict.fromkeys(ids, "zzz"), "number": "1"}
    seen = 0
    with connected(made.settings) as stranger:
        for method, path, operation in operations(owner):
            if "{" not in path:
                continue
            seen += 1
            answer = asked(stranger, method, path, operation, ids)
            assert answer.status_code == 404, (method, path, answer.status_code, answer.text)
            unknown = asked(stranger, method, path, operation, nowhere)
            assert answer.json() == unknown.json()  # does not say whether it exists
        assert seen > 25
        assert stranger.ok("/dialogs") == {"dialogs": []}
        for choices in ({}, {"group": "age"}):
            body = {"table": ids["table"], "target": "target", **choices}
            assert stranger.post("/dialogs", body).status_code == 404
    assert owner.ok(f"/dialogs/{ids['dialog']}") == before


def test_without_the_token_nothing_is_returned(shared):
    made, owner, ids = shared
    with connected(made.settings) as nobody:
        nobody.http.cookies.clear()
        for method, path, operation in operations(owner):
            answer = asked(nobody, method, path, operation, ids)
            assert answer.status_code == 401, (method, path)
            assert "token" in answer.json()["error"]
    assert owner.ok("/studio")["shared"] is True


def test_the_owner_sees_all_of_it(shared):
    """So that the others were not refused for another reason."""
    _, owner, ids = shared
    for method, path, operation in operations(owner):
        if method == "get" and "{" in path and "/program" not in path:
            answer = asked(owner, method, path, operation, ids)
            assert answer.status_code == 200, (method, path, answer.text)


def test_a_users_key_is_another_at_each_door(shared):
    made, owner, ids = shared
    with connected(made.settings) as other:
        mine, theirs = (dict(user.http.cookies) for user in (owner, other))
        assert mine.keys() == theirs.keys()
        assert mine != theirs
        other.http.cookies.update(mine)
        assert other.ok(f"/dialogs/{ids['dialog']}")["id"] == ids["dialog"]


def test_what_is_sent_is_json_that_a_browser_can_read(client, dialog):
    """No NaN, no infinity: JSON.parse knows neither."""

    def refuse(word):
        raise AssertionError(word)

    for path in ("", "/frontier", "/members", "/winners", "/rows", "/dialog.json"):
        json.loads(client.get(dialog + path).text, parse_constant=refuse)
