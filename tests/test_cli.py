"""The command: what it writes, which numbers and names it prints, and every exit code.

Its sentences are in tests/wording.
"""

import copy
import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from tests.command import (
    PAIR,
    STEER,
    call,
    mail,
    replaced,
    steer_mail,
    suggests_time,
    without_progress,
)
from tests.hospital import draw_visits

import margrave
from margrave import _atomic_write, cli, datasets
from margrave.app import request
from margrave.steer import Dialog, SteeredClassifier, _start, _strategies
from margrave.steer._acceptance import Acceptances
from margrave.steer._dialog import History
from margrave.steer._files import with_digest


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run the command in an empty folder; return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a table, and a model and a dialog of two members that the command made of it.

    The default committee is trained once, in a process of its own, by a test below.
    """
    folder = tmp_path_factory.mktemp("trained")
    steer_mail(folder)
    return folder


@pytest.fixture(scope="module")
def dialog(trained):
    """The dialog that the command saved."""
    return Dialog.load(trained / "dialog.skops")


@pytest.fixture
def ready(dialog, monkeypatch):
    """Let `steer` find its committee trained; give what it was called with."""
    calls = []

    def from_data(X, y, **settings):
        calls.append({"X": X, "y": y, **settings})
        fresh = copy.copy(dialog)
        fresh._path = None  # as no file was named yet
        fresh._history = History([dialog.history[0]])
        kept, ledger = dialog._acceptances, settings["ledger"]
        fresh._acceptances = Acceptances(kept.certification_set, kept.rows, ledger=ledger)
        return fresh

    monkeypatch.setattr(request.Dialog, "from_data", from_data)
    return calls


@pytest.fixture
def quick(monkeypatch):
    """Two fast members instead of the default committee."""
    monkeypatch.setattr(_start, "default_committee", lambda *_, **__: PAIR)


ASK = ("--target", "spam", "--limit", "fp <= 10%", "--out", "m.skops", "--strategies", "move")


def unindented(text):
    return "\n".join(line.strip() for line in text.splitlines())


# Steering


@pytest.mark.full
def test_what_steering_prints_and_writes(tmp_path):
    """The real command in a process of its own, with the default committee."""
    mail().to_csv(tmp_path / "mail.csv", index=False)
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-W", "error", "-m", "margrave", *STEER, "--verbose"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0
    advice, *progress = done.stderr.splitlines()
    assert "--time sent" in advice
    assert len(progress) == 7, "a line for each member and each limit"
    places = [re.search(r"\((\d) of 6\), \d+:\d\d$", line)[1] for line in progress[:6]]
    assert places == list("123456")
    assert "logistic" in progress[0]
    assert "fp <= 10%" in progress[6]
    printed = ("mail.csv", "300", "links", "sender", "sent", "body", "fp <= 10%", "0.95")
    assert [part for part in printed if part not in done.stdout] == []
    assert "margrave predict model.skops" in done.stdout
    model = SteeredClassifier.load(tmp_path / "model.skops")
    assert model.certificate_.requested == "fp <= 10%"
    assert len(model.scorer_.committee.members) == 6
    asked = STEER[STEER.index("--target") : STEER.index("--out")]
    plan = json.loads(call("steer", tmp_path / "mail.csv", *asked, "--plan", "--json")[1])["plan"]
    planned = plan["chosen"]["certify_by_class"]
    n_by_class = model.certificate_.confusion.counts.sum(axis=1).tolist()
    assert dict(zip(["no", "yes"], n_by_class, strict=True)) == planned
    assert str(model.certificate_.confusion) in unindented(done.stdout)
    heading = re.search("<h1>(.*)</h1>", (tmp_path / "page.html").read_text())[1]
    assert re.search(r"\b10%.*\bno\b.*\byes\b", heading)
    files = {"mail.csv", "model.skops", "dialog.skops", "page.html", "certification.json"}
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".lock"} == files
    assert "certification.json" in done.stdout


@pytest.mark.parametrize(("different", "problem"), [(40, "too_few_samples"), (100, "copies")])
def test_a_table_of_few_different_rows_is_refused_with_the_way_on(run, different, problem):
    row = np.arange(600) % different
    table = pd.DataFrame({"a": row % 20, "b": row // 20, "day": np.arange(600) // different})
    table["spam"] = np.where(row % 5 == 0, "yes", "no")
    table.to_csv("survey.csv", index=False)
    options = ("--target", "spam", "--time", "day", "--limit", "fp <= 20%", "--plan", "--json")
    code, out, err = run("steer", "survey.csv", *options, "--duplicates", "group")
    assert (code, json.loads(out)["code"]) == (2, problem)
    assert "--duplicates" in err
    assert "duplicates=" not in err
    for more in ((), ("--duplicates", "independent")):
        code, out, _ = run("steer", "survey.csv", *options, *more)
        assert (code, json.loads(out)["n"]["unused"]) == (0, 0)


@pytest.mark.parametrize("n_copies", [0, 3])
def test_copies_are_no_way_on_if_they_are_too_few(run, n_copies):
    table = pd.DataFrame({"a": [0, *range(99), *range(200, 203), *[200] * n_copies]})
    table["spam"] = ["no"] * 100 + ["yes"] * (3 + n_copies)
    table.to_csv("few.csv", index=False)
    code, _, err = run("steer", "few.csv", "--target", "spam", "--limit", "fp <= 20%", "--plan")
    assert (code, "--duplicates" in err) == (2, False)


def test_json_is_alone_on_the_output_and_has_everything(run, ready, trained):
    code, out, err = run("steer", trained / "mail.csv", *ASK, "--json")
    record = json.loads(out)
    assert (code, suggests_time(without_progress(err))) == (0, True)
    assert run("steer", trained / "mail.csv", *ASK, "--quiet") == (0, "", "")
    assert (record["met"], record["certified"], record["exit_code"]) == (True, True, 0)
    assert (record["classes"], record["positive"], record["model"]) == (
        ["no", "yes"],
        "yes",
        "m.skops",
    )
    n = record["n"]
    assert (n["all"], n["train"], n["tune"] + n["certify"]) == (300, n["tune"], 300)
    assert (n["unused"], n["copies"], n["near_copies"]) == (0, 0, 0)
    assert record["columns"]["body"] == "text"
    assert np.sum(record["start"]["counts"]) == n["tune"]
    (reply,) = record["replies"]
    assert (reply["preference"]["text"], reply["strategy"]) == ("fp <= 10%", "move")
    assert record["strategy"] == "move"
    assert record["seconds"] >= 0
    guarantee = record["certificate"]["guarantees"][0]
    assert (guarantee["bound"], guarantee["limit"]) == ("fp <= 10%", 0.1)
    cells = record["certificate"]["cells"]
    assert [cell["predicted"] for cell in cells] == ["no", "yes", None] * 2
    assert sum(cell["count"] for cell in cells) == n["certify"]


def test_what_the_table_becomes(run, ready, trained):
    code, _, _ = run(
        "steer", trained / "mail.csv", *ASK, "--time", "sent", "--drop", "body", "--positive", "no",
        "--certify", "0.4", "--seed", "3", "--quiet",
    )  # fmt: skip
    (call,) = ready
    assert code in (0, 3)
    assert list(call["X"].columns) == ["links", "sender"]
    assert (call["positive"], call["certify"], call["random_state"]) == ("no", 0.4, 3)
    assert (np.diff(call["time"]) > 0).all()
    run("steer", trained / "mail.csv", *ASK, "--group", "sender")
    assert list(ready[1]["X"].columns) == ["links", "sent", "body"]
    assert len(np.unique(ready[1]["groups"])) == 3


def test_repeated_preferences_are_steps_that_add_up(run, quick, trained):
    code, out, _ = run(
        "steer", trained / "mail.csv", *ASK, "--limit", "fn <= 60%, rejected <= 90%", "--json"
    )
    replies = json.loads(out)["replies"]
    assert [one["preference"]["text"] for one in replies] == [
        "fp <= 10%",
        "fp <= 10%, fn <= 60%, rejected <= 90%, then fewest fn",
    ]
    assert code in (0, 3)


def test_then_states_the_goal_of_every_step(run, quick, trained):
    steer = ("steer", trained / "mail.csv", *ASK, "--limit", "fn <= 90%")
    for then in ("fewest errors", "then lowest cost of 20 fp + fn"):
        goal = then.removeprefix("then ")
        _, out, _ = run(*steer, "--then", then, "--json")
        record = json.loads(out)
        assert [reply["goal"] for reply in record["replies"]] == [goal, goal]
        assert record["certificate"]["goal"] == goal
    code, _, err = run(*steer, "--then", "fewest tears", "--json")
    assert code == 2
    assert "--then" in err


def test_what_cannot_be_guaranteed_ends_with_3_and_no_model(run, ready, trained):
    ask = ("--target", "spam", "--limit", "fp <= 1%", "--out", "m.skops", "--strategies", "move")
    code, out, err = run("steer", trained / "mail.csv", *ask, "--report", "p.html")
    assert (code, suggests_time(without_progress(err))) == (3, True)
    assert re.search(r"'fp <= 1%'.*\b0\.95\b.*\b299\b.*'no'", out)
    assert re.search(r"\b299\b", Path("p.html").read_text())
    assert not Path("m.skops").exists()
    code, out, err = run("steer", trained / "mail.csv", *ask, "--quiet")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert re.search(r"'fp <= 1%'.*\b299\b", err)


def test_a_guarantee_of_too_few_rows_uses_up_none(run, ready, trained):
    """Whether an earlier run has written a ledger or not; the nearest limits are offered."""
    ask = ("steer", trained / "mail.csv", *ASK[:2], *ASK[4:])
    code, out, _ = run(*ask, "--limit", "fp <= 0.5%", "--json")
    record = json.loads(out)
    assert (code, record["ledger"], record["expected"]["probability"]) == (3, None, 0)
    code, out, _ = run(*ask, "--limit", "fp <= 0.5%")
    assert code == 3
    assert record["expected"]["nearest"] in out
    assert "certification.json" not in out
    code, out, _ = run(*ask, "--limit", record["expected"]["nearest"])
    assert code == 0
    assert "certification.json" in out
    code, out, _ = run(*ask, "--limit", "fp <= 15%", "--json")  # used up by the run before
    assert (code, json.loads(out)["ledger"]) == (3, "certification.json")


def test_the_plan_and_the_expected_certificate_are_printed(run, ready, trained):
    code, out, _ = run("steer", trained / "mail.csv", *ASK, "--report", "p.html", "--json")
    record = json.loads(out)
    plan, expected = record["plan"], record["expected"]
    assert code == 0
    assert sum(plan["chosen"]["certify_by_class"].values()) == record["n"]["certify"]
    assert expected == record["certificate"]["expected"]
    assert 0.5 < expected["probability"] <= 1
    code, out, _ = run("steer", trained / "mail.csv", *ASK, "--verbose")
    assert code == 0  # the same request again
    recall, error = f"{plan['chosen']['recall']:.1%}", f"{expected['bounds'][0]['rate']:.1%}"
    assert out.index(recall) < out.index(error) < out.index("Certificate")
    report = Path("p.html").read_text()
    assert recall in report
    assert error in report


def judge(seed=0, n_bad=295, n_good=90):
    """A judge scores answers with 0, 5 or 10; a quarter of the bad ones gets 10 as well."""
    rng = np.random.default_rng(seed)
    good = np.repeat([False, True], [n_bad, n_good])
    score = 5 * np.clip(np.round((6 + 2 * good + rng.normal(scale=2, size=len(good))) / 5), 0, 2)
    table = pd.DataFrame({"score": score, "answer": np.where(good, "good", "bad")})
    return table.sample(frac=1, random_state=seed)


JUDGE = ("steer", "judge.csv", "--target", "answer", "--positive", "good", "--out", "m.skops",
         "--duplicates", "independent")  # fmt: skip


def test_a_useless_model_is_no_success(run, quick):
    judge().to_csv("judge.csv", index=False)
    ask = (*JUDGE, "--limit", "fp <= 5%")
    code, out, _ = run(*ask, "--json")
    record = json.loads(out)
    assert (code, record["certified"], record["ledger"]) == (3, False, None)
    nearest = record["expected"]["nearest"]
    code, out, _ = run(*ask)
    assert code == 3
    assert nearest in out.splitlines()[0]
    assert "--anyway" in out
    assert {path.name for path in Path().iterdir() if path.name[0] != "."} == {"judge.csv"}
    code, out, _ = run(*ask, "--anyway", "--report", "p.html", "--json")
    record = json.loads(out)
    assert (code, record["exit_code"], record["certified"]) == (5, 5, True)
    assert record["useless"] == record["certificate"]["useless"] != []
    code, out, err = run(*ask, "--anyway")
    assert (code, without_progress(err)) == (5, "")
    assert record["useless"][0] in out.splitlines()[0]
    assert record["useless"][0].replace("'", "&#x27;") in Path("p.html").read_text()
    assert record["useless"][0] in run("card", "m.skops")[1]
    assert Path("m.skops").exists()


def test_an_improbable_guarantee_uses_up_nothing(run, quick):
    mail(wrong=0.2).to_csv("mail.csv", index=False)
    ask = ("steer", "mail.csv", *ASK[:2], *ASK[4:], "--limit", "fp <= 22%, fn <= 22%")
    code, out, _ = run(*ask, "--json")
    record = json.loads(out)
    assert record["expected"]["useful"] < 0.5
    assert (code, record["ledger"], record["model"]) == (3, None, None)
    code, out, _ = run(*ask, "--anyway", "--json")
    assert json.loads(out)["ledger"] is not None


@pytest.mark.full
@pytest.mark.parametrize(
    ("data", "limit"),
    [
        ("spambase", "fp <= 2%"),
        ("breast_wisconsin", "fn <= 5%"),
        ("pima", "fn <= 30%"),
        ("german", "fp <= 20%"),
        ("segment", "errors <= 10%"),
        ("iris", "errors <= 20%"),
    ],
)
def test_the_verdict_comes_first_and_the_rest_is_short(run, data, limit):
    out = run("steer", data, "--limit", limit, "--out", "m.skops")[1]
    lines = out.splitlines()
    assert len(lines) <= 25
    record = json.loads(run("steer", data, "--limit", limit, "--out", "m.skops", "--json")[1])
    assert record["certified"]
    for guarantee in record["certificate"]["guarantees"]:
        assert guarantee["sentence"] in lines[0]
    assert lines[1] == record["errors"]
    assert "m.skops" in lines[2]
    more = run("steer", data, "--limit", limit, "--out", "m.skops", "--verbose")[1]
    assert more.splitlines()[:3] == lines[:3]
    assert len(more.splitlines()) > len(lines)


PLAN = ("steer", "mail.csv", "--target", "spam", "--plan")


def test_a_plan_trains_and_writes_nothing(run, monkeypatch):
    monkeypatch.setattr(request.Dialog, "from_data", lambda *_, **__: 1 / 0)
    mail().to_csv("mail.csv", index=False)
    code, out, err = run(*PLAN, "--limit", "fp <= 10%", "--json")
    record = json.loads(out)
    assert (code, suggests_time(err), record["exit_code"]) == (0, True, 0)
    chosen = record["plan"]["chosen"]
    assert sum(chosen["certify_by_class"].values()) == record["n"]["certify"]
    assert record["n"]["tune"] + record["n"]["certify"] == 300
    assert record["smallest_limits"]["no"] <= 0.1
    code, out, _ = run(*PLAN, "--limit", "fp <= 10%")
    assert code == 0
    for option in record["plan"]["options"]:
        assert f"{option['recall']:.1%}" in out
    assert {path.name for path in Path().iterdir()} == {"mail.csv"}


@pytest.mark.parametrize(
    ("limit", "exit_code"),
    [("fp <= 10%", 0), ("fp <= 0.5%", 3), ("fp <= 3%, fn <= 3%", 3), ("precision >= 80%", 0)],
)
def test_the_exit_code_of_a_plan(run, limit, exit_code):
    mail(wrong=0.2).to_csv("mail.csv", index=False)
    code, out, err = run(*PLAN, "--limit", limit, "--quiet")
    assert (code, out, err.count("\n")) == (exit_code, "", exit_code // 3)


def test_what_a_plan_is_not_made_for(run):
    mail().to_csv("mail.csv", index=False)
    assert run(*PLAN, "--limit", "fpp <= 2")[0] == 2
    assert run(*PLAN[:-1], "--limit", "fp <= 2%")[0] == 2  # no --out
    Path("folder").mkdir()
    code, _, err = run("steer", "folder", "--target", "spam", "--limit", "fp <= 2%", "--plan")
    assert code == 2
    assert "--plan" in err


def test_a_default_positive_class_is_named_with_the_option_that_changes_it(run, ready, trained):
    assert "--positive no" in run("steer", trained / "mail.csv", *ASK)[1]
    assert "--positive" not in run("steer", trained / "mail.csv", *ASK, "--positive", "yes")[1]


def test_not_reachable_but_certified_writes_the_model(run, ready, trained, monkeypatch):
    monkeypatch.setattr(request.Outcome, "met", False)
    code, out, _ = run("steer", trained / "mail.csv", *ASK)
    assert code == 3
    assert "m.skops" in out
    assert SteeredClassifier.load("m.skops").certificate_.requested == "fp <= 10%"


def test_not_reachable_shows_the_nearest(run, ready, trained):
    ask = (
        "--target",
        "spam",
        "--limit",
        "fp <= 0, fn <= 0",
        "--out",
        "m.skops",
        "--strategies",
        "move",
    )
    code, out, _ = run("steer", trained / "mail.csv", *ask, "--json")
    record = json.loads(out)
    (reply,) = record["replies"]
    assert (code, record["met"], record["certified"], record["model"]) == (3, False, False, None)
    assert reply["shortfall"] > 0
    code, out, _ = run("steer", trained / "mail.csv", *ask)
    assert code == 3
    assert re.search(rf"fp <= 0, fn <= 0.*\b{reply['shortfall']:g}\b.*{reply['binding']}", out)
    assert not Path("m.skops").exists()


def test_bundled_sets_need_no_target(run, monkeypatch):
    seen = []
    monkeypatch.setattr(
        request, "run_request", lambda samples, *_, **__: seen.append(samples) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        cli.main(["steer", "german", "--limit", "fp <= 10%", "--out", "m"])
    assert seen[0].positive == datasets.load("german").positive
    assert "target" not in seen[0].X


def test_numbers_and_booleans_are_found_by_their_text(run, ready, trained):
    frame = mail()
    frame["n"] = np.where(frame["spam"] == "yes", 1, 0)
    frame["b"] = frame["n"] == 1
    frame["f"] = frame["n"].astype(float)
    frame.to_parquet("t.parquet")
    for target, text, label in (("n", "1", 1), ("b", "true", True), ("f", "1", 1.0)):
        run("steer", "t.parquet", *ASK[2:], "--target", target, "--positive", text, "--quiet")
        assert ready[-1]["positive"] == label
        assert type(ready[-1]["positive"]) is type(label)
    code, _, err = run("steer", "t.parquet", *ASK[2:], "--target", "n", "--positive", "2")
    assert code == 2
    assert re.search(r"--positive.*\b0, 1\b.*'2'", err)


def test_classes_in_limits_are_found_as_the_positive_class_is(run, quick):
    frame = mail()
    frame["late"] = frame.pop("spam") == "yes"
    frame.to_csv("t.csv", index=False)
    options = ("--target", "late", "--positive", "TRUE", "--out", "m.skops", "--strategies", "move")
    code, out, _ = run("steer", "t.csv", *options, "--limit", "recall(true) >= 50%", "--json")
    record = json.loads(out)
    assert (code, record["positive"]) == (0, True)
    assert record["certificate"]["guarantees"][0]["sentence"].endswith("of True predicted True")
    code, _, err = run("steer", "t.csv", *options, "--limit", "recall(tru) >= 50%")
    assert code == 2
    assert re.search("'tru'.*'True'", err)


@pytest.mark.parametrize(
    ("labels", "limit"),
    [
        ([False, True], "recall(true) >= 80%, errors(FALSE -> true) <= 40%"),
        ([0, 1], "recall(1.0) >= 80%, errors(0.0 -> 1) <= 40%"),
        ([0.0, 1.0], "recall(1) >= 80%, errors(0 -> 1.0) <= 40%"),
        (["a", "b"], "recall(b) >= 80%, errors(a -> b) <= 40%"),
    ],
)
def test_limits_in_a_dialog_find_classes_too(labels, limit):
    X, y = datasets.load("pima", return_X_y=True)
    y = np.array(labels)[(y == "pos").astype(int)]
    dialog = Dialog(LogisticRegression(max_iter=1000).fit(X[::2], y[::2]), X[1::2], y[1::2])
    reply = dialog.prefer(limit)
    assert reply.after.recall(labels[1]) >= 0.8
    assert reply.before != reply.after


# Bad input to steer


def bad(run, text, *more, name="t.csv", ask=ASK):
    """Have a table refused; return the one line of the error."""
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    code, out, err = run("steer", name, *replaced(ask, *more))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err.removeprefix("margrave: ").rstrip("\n")


TABLE = "links,sender,when,spam\n" + "1,a,5,no\n2,b,6,yes\n" * 20


# Each pattern has what names the fault: the file, its line, the option, the value.
@pytest.mark.parametrize(
    ("text", "named"),
    [
        (TABLE + "1,a,9\n", r"^t\.csv.*\b42\b.*\b4\b.*\b3\b"),
        (TABLE.replace("b", "\xfc").encode("latin-1"), r"^t\.csv.*\b3\b.*UTF-8.*0xfc"),
        ("a,a,spam\n1,2,no\n", r"^t\.csv.*\b1\b.*'a'"),
        ("", r"^t\.csv"),
        ("a,spam\n", r"^t\.csv"),
        (TABLE + '"1","a\nb",5,\n1,a,6,\n', r"^--target.*'spam'.*t\.csv.*\b42\b.*\b1\b"),
        (TABLE.replace("yes", "no"), "^(?!.*Dialog).*'no'"),
        (TABLE[: len("links,sender,when,spam\n") + 95], r"^(?!.*Dialog).*'no'.*\b10\b"),
        (TABLE.replace("spam", "Spam"), r"^--target.*t\.csv.*'spam'.*'Spam'"),
    ],
)
def test_bad_tables(run, text, named):
    assert re.search(named, bad(run, text))


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (("--group", "who"), r"^--group.*t\.csv.*'who'.*'links', 'sender', 'when', 'spam'"),
        (("--drop", "sendr"), r"^--drop.*t\.csv.*'sendr'.*'sender'"),
        (("--time", "sender"), r"^--time.*'sender'.*t\.csv.*'a'"),
        (("--time", "spam"), r"--time.*'spam'"),
        (("--drop", "links", "--drop", "sender", "--drop", "when"), r"DATA.*t\.csv"),
        (("--certify", "2"), r"^--certify.*'2'"),
        (("--confidence", "1"), r"^--confidence.*\b1\.0\b"),
        (("--strategies", "mov"), r"^--strategies.*\bmove\b.*\bretune\b.*'mov'"),
        (("--limit", "fpp <= 2"), r"'fpp'.*\bfp\b"),
        (("--then", "fewest tears"), r"^--then.*'tears'"),
        (("--limit", "recall(ham) >= 1%"), r"'ham'.*\bno, yes\b"),
        (("--report", "absent/p.html"), r"^--report.*\babsent\b"),
        (("--dialog", "."), r"^--dialog.*\."),
        (("--out", "t.csv"), r"^--out.*t\.csv.*DATA"),
        (("--jobs", "two"), "--jobs.*'two'"),
    ],
)
def test_bad_options(run, more, named):
    assert re.search(named, bad(run, TABLE, *more))


EUROPE = "links;sender;when;spam\n" + "1,5;é;5;no\n2,5;b;6;yes\n" * 20


def test_other_encodings_and_decimal_marks(run, ready):
    message = bad(run, EUROPE.encode("cp1252"))
    assert re.search(r"^t\.csv.*\b2\b.*--encoding cp1252 --decimal , ", message)
    assert "encoding to" not in message
    code, out, _ = run("steer", "t.csv", *ASK, "--json")
    record = json.loads(out)
    assert (code, record["code"]) == (2, "text_format")
    assert (record["fields"]["encoding"], record["fields"]["decimal"]) == ("cp1252", ",")
    message = bad(run, EUROPE.encode("cp1252"), "--encoding", "cp1252")
    assert re.search(
        r"^t\.csv.*'1,5'.*'links'.*--encoding cp1252 --decimal , .*--decimal \.", message
    )
    run("steer", "t.csv", *ASK, "--encoding", "cp1252", "--decimal", ",")
    X = ready[-1]["X"]
    assert X["links"].tolist() == [1.5, 2.5] * 20
    assert X["sender"].tolist() == ["é", "b"] * 20
    run("steer", "t.csv", *ASK, "--encoding", "cp1252", "--decimal", ".")
    assert ready[-1]["X"]["links"].tolist() == ["1,5", "2,5"] * 20
    gap = (EUROPE + "1,5;é;5;\n").encode("utf-16")
    message = bad(run, gap, "--encoding", "utf-16", "--decimal", ",")
    assert re.search(r"--target.*'spam'.*t\.csv.*\b42\b", message)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_an_error_names_the_options_that_read_the_table(run, ready, encoding, decimal):
    text = EUROPE if decimal == "," else EUROPE.replace(",5", ".5")
    options = bad(run, text.encode(encoding)).partition("--encoding ")[2].split()[:3]
    assert options == [encoding, "--decimal", decimal]
    run("steer", "t.csv", *ASK, "--encoding", *options)
    assert ready[-1]["X"]["links"].tolist() == [1.5, 2.5] * 20


def test_an_unknown_ending_is_refused_without_a_name_in_python(run):
    Path("t.xlsx").write_text("a,b\n1,2\n")
    code, _, err = run("steer", "t.xlsx", *ASK)
    assert code == 2
    assert re.search(r"\bt\.xlsx .*\.csv\b", err)
    assert not re.search(r"read_table|\bpath\b", err)


def test_what_is_no_text_file_has_no_encoding(run):
    Path("folder").mkdir()
    for data in ("spambase", "folder"):
        for more in (("--encoding", "utf-8"), ("--decimal", ",")):
            code, _, err = run("steer", data, *ASK, *more)
            assert code == 2
            assert re.search(f"{more[0]}.*{data}", err)
    for command in (("predict", "m.skops", "folder"), ("check", "m.skops", "folder", *ASK[:2])):
        code, _, err = run(*command, "--decimal", ",")
        assert code == 2
        assert re.search("--encoding.*--decimal.*folder", err)


def test_gaps_in_times_and_groups_are_reported_with_their_line(run):
    gap = TABLE + "3,c,,no\n3,,7,no\n"
    assert re.search(r"--time.*'when'.*t\.csv.*\b42\b", bad(run, gap, "--time", "when"))
    assert re.search(r"--group.*'sender'.*t\.csv.*\b43\b", bad(run, gap, "--group", "sender"))
    days = TABLE.replace(",5,", ",2025-01-05,").replace(",6,", ",2025-01-06,") + "3,c,,no\n"
    assert re.search(r"--time.*'when'.*t\.csv.*\b42\b", bad(run, days, "--time", "when"))
    constant = bad(run, TABLE.replace(",6,", ",5,"), "--time", "when")
    assert re.search(r"--time.*'when'.*t\.csv", constant)


def test_a_target_of_numbers_is_no_class(run):
    text = "x,spam\n" + "".join(f"{i},{i / 7}\n" for i in range(50))
    assert re.search(r"--target.*'spam'.*t\.csv.*\b50\b", bad(run, text))
    code, _, err = run("steer", "abalone", "--limit", "fp <= 10%", "--out", "m.skops")
    assert code == 2
    assert re.search(r"--target.*'target'.*abalone.*\bnumber\b.*\bclasses\b", err)


def test_no_target_and_no_file(run):
    message = bad(run, TABLE, ask=ASK[2:])
    assert re.search("--target.*'links', 'sender', 'when', 'spam'", message)
    code, _, err = run("steer", "spambas", *ASK)
    assert code == 2
    assert re.search("DATA.*'spambas'.*'spambase'", err)


def test_errors_are_json_too(run):
    code, out, err = run("steer", "nowhere.csv", *ASK, "--json")
    record = json.loads(out)
    assert (code, record["exit_code"]) == (2, 2)
    assert err == f"margrave: {record['error']}\n"


@pytest.mark.parametrize(
    ("more", "option", "kind", "fields"),
    [
        (("--target", "Species"), "--target", "unknown_column", {"received": "Species"}),
        (("--positive", "rose"), "--positive", "unknown_class", {"received": "rose", "near": []}),
        (("--limit", "fpp <= 2"), "--limit", "unknown_word", {"text": "fpp <= 2", "word": "fpp"}),
        (("--confidence", "7"), "--confidence", "parameter", {"received": 7.0}),
        (("--strategies", "mov"), "--strategies", "parameter", {"received": "mov"}),
        (("--group", "target"), "--group", "same_column", {"received": "target"}),
    ],
)
def test_errors_in_json_have_a_code_and_fields(run, more, option, kind, fields):
    code, out, err = run("steer", "iris", *replaced(ASK[2:], *more), "--json")
    record = json.loads(out)
    assert (code, record["code"]) == (2, kind)
    assert record["fields"] | fields == record["fields"]
    assert record["fields"]["parameter"] == option.removeprefix("--")
    assert err.startswith(f"margrave: {option} ")


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("steer", "iris", "--unknown"), "usage"),
        (("steer", "iris", *ASK[2:], "--seed", "x"), "usage"),
        (("steer", "iris", *ASK[2:], "--report", "m.skops"), "refused"),
    ],
)
def test_every_error_in_json_has_a_code(run, arguments, kind):
    code, out, _ = run(*arguments, "--json")
    record = json.loads(out)
    assert (code, record["code"]) == (2, kind)
    assert not record["fields"]


def test_control_characters_do_not_reach_the_terminal(run):
    text = TABLE.replace("sender", "\x1b[2J")
    assert "\x1b" not in bad(run, text, "--drop", "x")


# Interrupts


def test_ctrl_c_is_one_line(run, trained, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(request.Dialog, "from_data", interrupted)
    code, out, err = run("steer", trained / "mail.csv", *ASK)
    assert (code, out, err.count("\n")) == (130, "", 2)


def test_an_interrupted_write_leaves_the_old_file(run, ready, trained, monkeypatch, tmp_path):
    def interrupted(_):
        raise KeyboardInterrupt

    (tmp_path / "m.skops").write_text("old")
    monkeypatch.setattr(_atomic_write.os, "fsync", interrupted)
    code, _, _ = run("steer", trained / "mail.csv", *ASK)
    assert code == 130
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == ["m.skops"]
    assert (tmp_path / "m.skops").read_text() == "old"


def test_ctrl_c_during_a_request_keeps_the_best_so_far(run, ready, trained, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(_strategies.Retune, "candidates", interrupted)
    code, out, _ = run("steer", trained / "mail.csv", *ASK[:-1], "move,retune", "--json")
    (reply,) = json.loads(out)["replies"]
    assert code == 0
    assert (reply["cancelled"], reply["met"], reply["strategy"]) == (True, True, "move")


# The ledger


def steer(run, table, *options, limit="fp <= 20%", out="m.skops"):
    """Run `steer`; return its exit code and what it prints as JSON."""
    fixed = ("--target", "spam", "--limit", limit, "--out", out, "--strategies", "move")
    code, printed, _ = run("steer", table, *replaced(fixed, *options), "--json")
    return code, json.loads(printed)


MAIL = mail()


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (MAIL, {"limit": "fn <= 30%"}),
        (MAIL, {"seed": 1}),
        (MAIL, {"out": "other.skops", "seed": 1}),
        (MAIL, {"drop": "links"}),
        (MAIL, {"time": "sent"}),
        (MAIL, {"confidence": 0.9}),
        (MAIL.iloc[1:], {}),
        (pd.concat([MAIL, MAIL.iloc[:1]]), {}),
        (MAIL.sample(frac=1, random_state=0), {"seed": 1}),
        (MAIL.iloc[::2], {"seed": 1}),
        (MAIL.iloc[::2], {"drop": "links"}),
        (MAIL[MAIL.columns[::-1]], {"seed": 1}),
    ],
    ids=["limit", "seed", "another file", "a column dropped", "time", "confidence", "a row dropped",
         "a row repeated", "shuffled", "half of the rows", "half without a column",
         "columns in another order"],
)  # fmt: skip
def test_a_second_model_from_the_same_rows_is_refused(run, quick, table, options):
    MAIL.to_csv("mail.csv", index=False)
    table.to_csv("again.csv", index=False)
    code, first = steer(run, "mail.csv")
    assert (code, first["certificate"]["number"]) == (0, 1)
    assert first["ledger"] == "certification.json"
    named = {name: options[name] for name in ("limit", "out") if name in options}
    others = [(f"--{name}", value) for name, value in options.items() if name not in named]
    code, second = steer(run, "again.csv", *sum(others, ()), **named)
    assert (code, second["model"], second["certificate"]) == (3, None, None)
    assert "fp <= 20%" in second["refusal"]
    assert "reserve" in second["refusal"]


def test_the_same_command_again_writes_the_same_model(run, quick, tmp_path):
    MAIL.to_csv("mail.csv", index=False)
    assert steer(run, "mail.csv")[0] == 0
    first = SteeredClassifier.load("m.skops")
    ledger = Path("certification.json").read_text()
    Path("m.skops").unlink()
    assert steer(run, "mail.csv", "--reserve")[0] == 0
    again = SteeredClassifier.load("m.skops")
    assert again.certificate_ == first.certificate_
    features = MAIL.drop(columns="spam")
    np.testing.assert_array_equal(again.predict(features), first.predict(features))
    assert Path("certification.json").read_text() == ledger


def test_a_run_can_reserve_half_for_a_later_one(run, quick):
    MAIL.to_csv("mail.csv", index=False)
    found = [
        steer(run, "mail.csv", "--seed", seed, *more, "--report", f"{seed}.html")
        for seed, more in enumerate([["--reserve"], [], []])
    ]
    assert [code for code, _ in found] == [0, 0, 3]
    deltas = [record["certificate"]["delta"] for _, record in found[:2]]
    assert deltas == pytest.approx([0.025, 0.025])
    (earlier,) = found[1][1]["certificate"]["earlier"]
    assert (earlier["part"], earlier["outcome"]) == (pytest.approx(0.025), "certified")
    card = run("card", "m.skops")[1]
    for text in (
        card,
        Path("1.html").read_text(),
        str(SteeredClassifier.load("m.skops").certificate_),
    ):
        assert earlier["date"] in text
        assert "0.025" in text


def test_new_rows_another_target_or_another_folder_have_an_account_of_their_own(run, quick):
    MAIL.to_csv("mail.csv", index=False)
    mail(seed=1).to_csv("new.csv", index=False)
    Path("other").mkdir()
    MAIL.assign(ham=MAIL["spam"]).rename(columns={"spam": "old"}).to_csv("ham.csv", index=False)
    assert steer(run, "mail.csv")[0] == 0
    assert steer(run, "new.csv", out="n.skops")[0] == 0
    assert steer(run, "mail.csv", "--seed", 1, out="other/m.skops")[0] == 0
    assert steer(run, "ham.csv", "--target", "ham", "--drop", "old", out="h.skops")[0] == 0


def test_a_damaged_ledger_is_refused_before_training(run, quick, monkeypatch):
    MAIL.to_csv("mail.csv", index=False)
    Path("certification.json").write_text("{")
    monkeypatch.setattr(request.Dialog, "from_data", None)
    code, found = steer(run, "mail.csv")
    assert (code, found["code"]) == (2, "damaged")
    assert "certification.json" in found["error"]
    assert Path("certification.json").read_text() == "{"


def test_the_model_cannot_take_the_place_of_the_ledger(run, quick):
    MAIL.to_csv("mail.csv", index=False)
    code, found = steer(run, "mail.csv", out="certification.json")
    assert code == 2
    assert "--out" in found["error"]


# Predicting


def test_answers_are_those_of_the_model_whatever_the_order_of_the_columns(run, trained):
    new = mail(40, seed=1)
    new.loc[0, "sender"] = "never seen"
    new["extra"] = 1
    new[["body", "extra", "sent", "links", "sender"]].to_csv("new.csv", index=False)
    code, out, err = run("predict", trained / "model.skops", "new.csv", "--out", "a.csv")
    assert (code, out) == (0, "")
    assert re.fullmatch(r"margrave: .*new\.csv.*'extra'.*\n", err)
    answers = pd.read_csv("a.csv")
    model = SteeredClassifier.load(trained / "model.skops")
    kept, added = list(answers.columns[:5]), list(answers.columns[5:])
    assert kept == ["body", "extra", "sent", "links", "sender"], "those of the table, by default"
    assert added == ["label", "score", "threshold", "rejected"]
    assert (answers["label"] == model.predict(new)).all()
    distances = answers["score"] - answers["threshold"]
    np.testing.assert_allclose(distances, model.decision_function(new), rtol=1e-9, atol=1e-9)
    assert not answers["rejected"].any()
    _, text, _ = run("predict", trained / "model.skops", "new.csv", "--keep", "")
    assert text.splitlines()[0] == "label,score,threshold,rejected"
    assert len(text.splitlines()) == 41
    _, text, _ = run("predict", trained / "model.skops", "new.csv", "--json")
    record = json.loads(text)
    assert (record["n"], record["rejected"], record["ignored"]) == (40, 0, ["extra"])
    assert [row["label"] for row in record["predictions"]] == answers["label"].tolist()
    assert (record["positive"], record["thresholds"]) == ("yes", [answers["threshold"][0]])
    assert record["predictions"][3]["links"] == new["links"][3]


@pytest.mark.parametrize("positive", ["disease", "healthy"])
@pytest.mark.parametrize("rejects", [False, True])
def test_scores_point_towards_the_positive_class(run, positive, rejects):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(600) < 0.4, "disease", "healthy")
    X = rng.normal(size=(600, 2)) + 1.2 * (y == "disease")[:, None]
    model = LogisticRegression().fit(X[:300], y[:300])
    dialog = Dialog(model, X[:300], y[:300], positive=positive)
    dialog.prefer("fn <= 5%, fp <= 5%, rejected <= 40%" if rejects else "fn <= 10%")
    dialog.model.save("m.skops")
    new = pd.DataFrame(X[300:], columns=["a", "b"])
    new.to_csv("new.csv", index=False)
    assert run("predict", "m.skops", "new.csv", "--out", "a.csv")[0] == 0
    answers = pd.read_csv("a.csv")
    names = ("threshold_low", "threshold_high") if rejects else ("threshold",) * 2
    low, high = (answers[name][0] for name in names)
    label, score = answers["label"], answers["score"]
    assert (label == dialog.model.predict(X[300:]))[answers["rejected"] == 0].all()
    assert (label[score > high] == positive).all()
    assert not (label[score < low] == positive).any()
    between = (score > low) & (score < high)
    assert answers["rejected"][between].all()
    assert answers["rejected"].sum() == between.sum()
    assert between.any() == rejects
    assert score[between].nunique() == between.sum(), "rejected rows can be sorted"
    _, text, _ = run("predict", "m.skops", "new.csv", "--json")
    record = json.loads(text)
    assert (record["positive"], record["thresholds"]) == (positive, sorted({low, high}))


def test_kept_columns_are_as_they_are_written(run, trained):
    new = mail(3).drop(columns="spam")
    new.insert(0, "score", ["007", "NA", "-1,50"])
    new.insert(1, "visit, first", ["1.50", "", "true"])
    new.insert(2, "input_score", "x")
    new.to_csv("new.csv", index=False)
    wanted = [line.split(",spam")[0] for line in Path("new.csv").read_text().splitlines()]
    model = trained / "model.skops"
    code, out, _ = run("predict", model, "new.csv", "--decimal", ".")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith('input_input_score,"visit, first",input_score,links,')
    assert lines[0].endswith("body,label,score,threshold,rejected")
    begins = zip(lines[1:], wanted[1:], strict=True)
    assert [line for line, begin in begins if not line.startswith(begin + ",")] == []
    chosen = run("predict", model, "new.csv", "--decimal", ".", "--keep", 'score, "visit, first"')
    assert chosen[1].splitlines()[0] == (
        'input_score,"visit, first",label,score,threshold,rejected'
    )
    code, out, err = run("predict", model, "new.csv", "--decimal", ".", "--keep", "visit")
    assert (code, out) == (2, "")
    assert re.search("--keep.*'visit'.*'visit, first'", err)


def test_kept_columns_of_parquet_files_keep_their_types(run, trained):
    new = mail(5).drop(columns="spam")
    new.to_parquet("new.parquet", index=False)
    model = trained / "model.skops"
    assert run("predict", model, "new.parquet", "--out", "a.parquet")[0] == 0
    pd.testing.assert_frame_equal(pd.read_parquet("a.parquet")[list(new)], new)
    record = json.loads(run("predict", model, "new.parquet", "--json")[1])
    assert record["predictions"][2]["sent"].startswith("2025-01-03")


def test_predictions_and_checks_of_other_encodings_and_decimal_marks(run, trained):
    frame = mail(200, seed=2)
    frame["links"] += 0.5
    frame.loc[0, "sender"] = "é"
    frame.to_csv("utf-8.csv", index=False)
    frame.to_csv("cp1252.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    options, model = ("--encoding", "cp1252", "--decimal", ","), trained / "model.skops"
    assert run("predict", model, "cp1252.csv")[0] == 2
    found = run("predict", model, "cp1252.csv", *options, "--keep", "sender")
    assert found == (0, run("predict", model, "utf-8.csv", "--keep", "sender")[1], found[2])
    assert '\n"2,05",é,' in run("predict", model, "cp1252.csv", *options)[1]
    assert run("check", model, "cp1252.csv", "--target", "spam")[0] == 2
    code, out, _ = run("check", model, "cp1252.csv", "--target", "spam", *options)
    wanted = run("check", model, "utf-8.csv", "--target", "spam")
    assert (code, out.replace("cp1252.csv", "utf-8.csv")) == wanted[:2]
    frame.loc[7, "spam"] = None
    frame.to_csv("gap.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    code, _, err = run("check", model, "gap.csv", "--target", "spam", *options)
    assert code == 2
    assert re.search(r"--target.*'spam'.*gap\.csv.*\b9\b", err)


def test_missing_columns_are_named(run, trained):
    mail(20)[["links", "sent"]].to_csv("new.csv", index=False)
    code, out, err = run("predict", trained / "model.skops", "new.csv", "--out", "a.csv")
    assert (code, out) == (2, "")
    assert "'sender', 'body'" in err


def test_damaged_models_write_nothing(run, trained, tmp_path):
    mail(20).to_csv("new.csv", index=False)
    whole = (trained / "model.skops").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile("other", "w") as other:
        other.writestr("schema.json", "{}")
    for model in ("half", "other", "none"):
        code, out, err = run("predict", model, "new.csv", "--out", "a.csv")
        assert (code, out) == (2, "")
        assert re.search(rf"\b{model}\b", err)
    code, _, err = run("predict", trained / "dialog.skops", "new.csv", "--out", "a.csv")
    assert code == 2
    assert re.search(r"'dialog\.skops'.*\bDialog\b.*\bSteeredClassifier\b", err)
    assert not (tmp_path / "a.csv").exists()


@pytest.mark.parametrize("fault", [MemoryError, RuntimeError, TypeError, LookupError])
@pytest.mark.parametrize("command", ["predict", "check"])
def test_a_model_is_not_blamed_for_the_faults_of_reading(run, trained, monkeypatch, command, fault):
    def fail(*_, **__):
        raise fault("not the model")

    mail(20).to_csv("new.csv", index=False)
    monkeypatch.setattr("margrave.app.tables.read_table", fail)
    options = ["--target", "spam"] if command == "check" else []
    with pytest.raises(fault, match="not the model"):
        run(command, trained / "model.skops", "new.csv", *options)


def test_more_classes_and_rejects(run, tmp_path):
    flowers = datasets.load("iris", as_frame=True)
    X, y = flowers.data, np.where(flowers.target == "setosa", "=1+1", flowers.target)
    model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    steering = Dialog(model, X[::2], y[::2])
    steering.prefer("rejected <= 10%, errors <= 1%", strategies=["reject"])
    steering.model.save("m.skops")
    X.to_csv("new.csv", index=False)
    code, _, _ = run("predict", "m.skops", "new.csv", "--out", "a.csv", "--keep", "")
    answers = pd.read_csv("a.csv")
    assert code == 0
    assert list(answers.columns)[1:-1] == ["score_=1+1", "score_versicolor", "score_virginica"]
    assert set(answers["label"].dropna()) <= {"'=1+1", "versicolor", "virginica"}
    assert 0 < answers["rejected"].sum() < 20
    assert (answers["label"].isna() == (answers["rejected"] == 1)).all()
    X.drop(columns=X.columns[0]).to_csv("new.csv", index=False)
    code, _, err = run("predict", "m.skops", "new.csv")
    assert code == 2
    assert repr(X.columns[0]) in err
    code, _, err = run("check", "m.skops", "new.csv", "--target", X.columns[1])
    assert code == 2


# Checking, cards and data


def test_a_check_ends_with_0_or_4(run, trained):
    mail(200, seed=2).to_csv("kept.csv", index=False)
    code, out, err = run("check", trained / "model.skops", "kept.csv", "--target", "spam")
    assert (code, err) == (0, "")
    frame, model = mail(200, seed=2), SteeredClassifier.load(trained / "model.skops")
    found = model.check(frame.drop(columns="spam"), frame["spam"])
    (kept,) = found.guarantees
    assert re.search(rf"\b10%.*\b{kept.count} of {kept.n}\b", out)
    assert re.search(r"\b200\b.*\bkept\.csv\b", out)
    assert str(found.confusion) in unindented(out)
    broken = mail(200, seed=2)
    broken["spam"] = "no"
    broken.to_csv("broken.csv", index=False)
    code, out, _ = run("check", trained / "model.skops", "broken.csv", "--target", "spam")
    assert code == 4
    assert re.search(r"\b10%.*\b200\b", out)
    found = model.check(broken.drop(columns="spam"), broken["spam"])
    (check,) = found.guarantees
    code, out, _ = run("check", trained / "model.skops", "broken.csv", "--target", "spam", "--json")
    assert (code, json.loads(out)) == (4, json.loads(json.dumps(found.to_dict())))
    (tested,) = json.loads(out)["guarantees"]
    assert (tested["n"], tested["p"], tested["alarm"]) == (200, check.p, True)
    level = ("--target", "spam", "--level", repr(check.p / 2))
    assert run("check", trained / "model.skops", "broken.csv", *level)[0] == 0
    code, _, err = run("check", trained / "model.skops", "broken.csv", *level[:3], "2")
    assert (code, "--level" in err) == (2, True)
    broken.loc[3, "spam"] = "maybe"
    broken.to_csv("broken.csv", index=False)
    code, _, err = run("check", trained / "model.skops", "broken.csv", "--target", "spam")
    assert code == 2
    assert re.search("--target.*'no', 'yes'.*'spam'.*'maybe'", err)


@pytest.mark.core
def test_visits_of_patients_are_certified_and_checked_by_patient(run, monkeypatch):
    monkeypatch.setattr(_start, "default_committee", lambda *_, **__: PAIR[:1])
    for name, seed in (("visits.csv", 0), ("later.csv", 1)):
        draw_visits(np.random.default_rng(seed), 400).to_csv(name, index=False)
    wanted = ("--target", "outcome", "--positive", "disease", "--limit", "fn <= 20%")
    for more in (("--group", "patient"), ("--group", "patient", "--time", "day")):
        model = ("--out", f"{len(more)}.skops", "--strategies", "move")
        code, out, err = run("steer", "visits.csv", *wanted, *more, *model, "--json")
        assert (code, without_progress(err)) == (0, "")
        certificate = SteeredClassifier.load(model[1]).certificate_
        assert json.loads(out)["certificate"]["preference"] == "fn <= 20%"
        assert "group and class" in " ".join(certificate.notes)
        Path("certification.json").unlink()  # another split of the same rows
    later = pd.read_csv("later.csv")
    arguments = ("check", "2.skops", "later.csv", "--target", "outcome")
    assert re.search(rf"\b{len(later)}\b.*\blater\.csv\b", run(*arguments)[1].replace(",", ""))
    code, out, err = run(*arguments, "--group", "patient")
    assert (code, err) == (0, "")
    n = later.groupby("outcome")["patient"].nunique().sum()
    assert re.search(rf"\b{n}\b.*\blater\.csv\b", out)
    code, _, err = run(*arguments, "--group", "person")
    assert code == 2
    assert re.search("--group.*'person'", err)


def test_the_card(run, trained):
    code, out, err = run("card", trained / "model.skops")
    assert (code, err) == (0, "")
    model = SteeredClassifier.load(trained / "model.skops")
    assert out == model.model_card()
    record = json.loads(run("card", trained / "model.skops", "--json")[1])
    assert record["certificate"] == json.loads(json.dumps(model.certificate_.to_dict()))
    assert (record["card"], record["classes"], record["positive"]) == (out, ["no", "yes"], "yes")
    assert [one["name"] for one in record["members"]] == ["logistic", "bayes"]
    assert record["columns"] == ["links", "sender", "sent", "body"]


def test_data_sets(run):
    code, out, _ = run("data")
    assert code == 0
    assert re.search(r"^spambase .*\b4,601\b.*\b57\b.*\b2\b.*\bnonspam, spam$", out, re.MULTILINE)
    assert [line.split()[0] for line in out.splitlines()] == list(datasets.names(available=True))
    _, out, _ = run("data", "iris")
    assert out == datasets.load("iris").DESCR
    code, out, _ = run("data", "iris", "--out", "iris.csv")
    assert code == 0
    assert re.fullmatch(r".*\b150\b.*\biris\b.*\biris\.csv\b.*--target target.*\n", out)
    written, frame = pd.read_csv("iris.csv"), datasets.load("iris", as_frame=True).frame
    assert written.to_dict("list") == frame.to_dict("list")
    listed = json.loads(run("data", "--json")[1])["data"]
    assert [one["name"] for one in listed] == list(datasets.names(available=True))
    described = json.loads(run("data", "iris", "--json")[1])
    assert described == listed[[one["name"] for one in listed].index("iris")]
    assert (described["n"], described["n_columns"], described["classes"][0]) == (150, 4, "setosa")
    code, out, _ = run("data", "iris", "--out", "again.csv", "--json")
    assert (code, json.loads(out)["out"]) == (0, "again.csv")
    assert run("data", "iriss")[0] == 2
    assert run("data", "--out", "x.csv")[0] == 2


# The command itself


def test_help_version_and_unknown_commands(run):
    assert run("--version")[:2] == (0, f"margrave {margrave.__version__}\n")
    assert run("steer", "--help")[0] == 0
    code, out, err = run("steering")
    assert (code, out) == (2, "")
    assert "'steering'" in err


def loaded_by(*arguments, cwd):
    """Run the command in a process of its own; return the modules that it imports."""
    code = """
import sys
from margrave.cli import main
try:
    main(sys.argv[1:])
finally:
    sys.stderr.write(" ".join(sys.modules))
"""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["steer", "--help"]])
def test_help_and_version_load_no_other_package(arguments, tmp_path):
    loaded = loaded_by(*arguments, cwd=tmp_path)
    assert "margrave" in loaded
    installed = loaded & set(packages_distributions())
    assert installed <= {"margrave", "_distutils_hack"}  # setuptools starts its own


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_card_is_read_without_the_members(trained, tmp_path, more):
    loaded = loaded_by("card", trained / "model.skops", *more, cwd=tmp_path)
    assert "margrave" in loaded
    assert loaded & set(packages_distributions()) <= {"margrave", "_distutils_hack"}


def test_the_card_of_a_file_without_one_is_that_of_the_model(run, trained):
    whole = (trained / "model.skops").read_bytes()
    with zipfile.ZipFile(trained / "model.skops") as old, zipfile.ZipFile("old.zip", "w") as new:
        for name in old.namelist():
            if name != "card.json":
                new.writestr(name, old.read(name))
    Path("old.skops").write_bytes(with_digest(Path("old.zip").read_bytes()))
    wanted = run("card", trained / "model.skops", "--json")
    assert wanted[0] == 0
    assert run("card", "old.skops", "--json") == wanted
    at = whole.index(b"card.json") + 40
    Path("edited.skops").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    code, out, err = run("card", "edited.skops")
    assert (code, out) == (2, "")
    assert "edited.skops" in err


@pytest.mark.parametrize("command", ["predict", "check"])
def test_using_a_model_loads_only_what_it_needs(trained, tmp_path, command):
    mail(50, seed=9).to_csv(tmp_path / "new.csv", index=False)
    options = ["--out", "a.csv"] if command == "predict" else ["--target", "spam"]
    loaded = loaded_by(command, trained / "model.skops", "new.csv", *options, cwd=tmp_path)
    assert "pandas" in loaded
    assert loaded.isdisjoint({"dask", "distributed", "matplotlib", "torch", "uvicorn", "onnx"})
    packages = ("compare", "export", "scale", "select", "studio")
    assert loaded & {f"margrave.{name}" for name in packages} == set()


def test_without_arguments_the_help_is_shown(run):
    code, out, err = run()
    assert (code, err) == (2, "")
    assert [name for name in ("steer", "predict", "studio") if name not in out] == []


def test_options_are_not_abbreviated_and_may_stand_anywhere(run, trained):
    mail(20).drop(columns="spam").to_csv("new.csv", index=False)
    model = trained / "model.skops"
    assert run("predict", model, "--out", "a.csv", "new.csv") == (0, "", "")
    code, _, err = run("predict", model, "new.csv", "--ou", "b.csv")
    assert code == 2
    assert "--ou" in err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--target", "spam", "--target", "sender"), "--target.*'spam'.*'sender'"),
        (("--seed", "0", "--seed=1"), "--seed.*'0'.*'1'"),
        (("--out", "a", "--out", "b"), "--out.*'a'.*'b'"),
    ],
)
def test_an_option_with_two_values_is_refused(run, options, named):
    code, out, err = run("steer", "mail.csv", "--limit", "fp <= 5%", *options)
    assert (code, out) == (2, "")
    assert re.search(named, err)


def test_the_same_value_twice_and_repeated_limits_are_no_error(run, trained):
    target = ("--target", "spam")
    limits = ("--limit", "fp <= 20%", "--limit", "fn <= 20%", "--drop", "sent", "--drop", "body")
    assert run("steer", trained / "mail.csv", *target, *target, *limits, "--plan")[0] == 0


@pytest.mark.parametrize(
    ("command", "package", "extra"), [("data", "rich", "app"), ("studio", "uvicorn", "studio")]
)
def test_without_its_extra_the_error_names_the_extra(command, package, extra):
    code = f"""
import sys
class Missing:
    def find_spec(self, name, *_):
        if name == {package!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
from margrave.cli import main
main([{command!r}])
"""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert re.search(rf"\b{package}\b.*'{extra}'", done.stderr)
    assert "Traceback" not in done.stderr
