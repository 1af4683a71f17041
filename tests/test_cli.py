"""The command: what it prints, what it writes, and every way it ends."""

import copy
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from margrave import _replacing, cli, datasets
from margrave.app import _job
from margrave.martingale import TunableLogistic
from margrave.steer import Dialog, SteeredClassifier, _start, _ways
from margrave.steer._acceptance import Acceptance
from margrave.steer._history import History

N = 300


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in an empty folder; give its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main([str(one) for one in arguments])
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return run


def mail(n=N, seed=0):
    """Numbers with gaps, a category, dates and a text; about a third is spam."""
    rng = np.random.default_rng(seed)
    spam = rng.random(n) < 0.35
    good, bad = ["agenda", "lunch"], ["prize", "offer"]
    texts = [
        " ".join(
            np.where(rng.random(6) < (0.6 if s else 0.1), rng.choice(bad, 6), rng.choice(good, 6))
        )
        for s in spam
    ]
    links = np.round(rng.normal(2.5 * spam, 1), 2)
    links[rng.random(n) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "links": links,
            "sender": np.where(rng.random(n) < 0.3, "shop", np.where(spam, "unknown", "friend")),
            "sent": pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(n), unit="D"),
            "body": texts,
            "spam": np.where(spam, "yes", "no"),
        }
    )


STEER = ("steer", "mail.csv", "--target", "spam", "--prefer", "fp <= 10%", "--out", "model.skops",
         "--dialog", "dialog.skops", "--report", "page.html", "--ways", "move,reweigh")  # fmt: skip
PAIR = [("line", TunableLogistic()), ("bayes", GaussianNB())]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a table, and a model and a dialog of two members that the command made of it.

    The default committee is trained once, in a process of its own, by a test below.
    """
    folder = tmp_path_factory.mktemp("trained")
    mail().to_csv(folder / "mail.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(_start, "default_members", lambda n, random_state: PAIR)
        with pytest.raises(SystemExit) as end:
            cli.main(list(STEER))
    assert end.value.code == 0
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
        fresh._acceptance = Acceptance(dialog._acceptance.part, ())
        return fresh

    monkeypatch.setattr(_job.Dialog, "from_data", from_data)
    return calls


ASK = ("--target", "spam", "--prefer", "fp <= 10%", "--out", "m.skops", "--ways", "move")


# Steering


def test_what_steering_prints_and_writes(tmp_path):
    """The real command in a process of its own, with the default committee."""
    mail().to_csv(tmp_path / "mail.csv", index=False)
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-W", "error", "-m", "margrave", *STEER],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for part in (
        "mail.csv: 300 rows, 2 classes in 'spam'; yes is positive",
        "  1 number: links\n  1 category: sender\n  1 date: sent\n  1 text: body",
        "rows to build on, each judged by models that were trained without it",
        "samples are set aside. At confidence 0.95 they support",
        "fp <= 10%: met",
        "at most 10 % of no called yes",
        "Met on the tuning samples, and certified.\nThe model is in model.skops.",
        "Use it: margrave predict model.skops NEW.csv --out answers.csv",
    ):
        assert part in done.stdout
    model = SteeredClassifier.load(tmp_path / "model.skops")
    assert model.certificate_.asked == "fp <= 10%"
    assert len(model.scorer_.panel.members) == 6
    assert "<h1>At most 10 % of no called yes.</h1>" in (tmp_path / "page.html").read_text()
    files = {"mail.csv", "model.skops", "dialog.skops", "page.html"}
    assert {path.name for path in tmp_path.iterdir()} == files


def test_json_is_alone_on_the_output_and_has_everything(run, ready, trained):
    code, out, err = run("steer", trained / "mail.csv", *ASK, "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert (told["met"], told["certified"], told["exit_code"]) == (True, True, 0)
    assert (told["classes"], told["positive"], told["model"]) == (["no", "yes"], "yes", "m.skops")
    assert told["n"] == {"all": 300, "train": 180, "tune": 180, "certify": 120, "unused": 0}
    assert told["columns"]["body"] == "text"
    assert np.sum(told["start"]["counts"]) == 180
    (reply,) = told["replies"]
    assert (reply["preference"], reply["way"]) == ("fp <= 10%", "move")
    assert told["way"] == "move"
    assert told["seconds"] >= 0
    promise = told["certificate"]["promises"][0]
    assert (promise["bound"], promise["limit"]) == ("fp <= 10%", 0.1)
    cells = told["certificate"]["cells"]
    assert [cell["answer"] for cell in cells] == ["no", "yes", None] * 2
    assert sum(cell["count"] for cell in cells) == 120


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


def test_repeated_preferences_are_steps_that_add_up(run, ready, trained):
    code, out, _ = run(
        "steer", trained / "mail.csv", *ASK, "--prefer", "fn <= 60%, rejected <= 90%", "--json"
    )
    replies = json.loads(out)["replies"]
    assert [one["preference"] for one in replies] == [
        "fp <= 10%",
        "fp <= 10%, fn <= 60%, rejected <= 90%",
    ]
    assert code in (0, 3)


def test_what_cannot_be_promised_ends_with_3_and_no_model(run, ready, trained):
    ask = ("--target", "spam", "--prefer", "fp <= 1%", "--out", "m.skops", "--ways", "move")
    code, out, err = run("steer", trained / "mail.csv", *ask, "--report", "p.html")
    assert (code, err) == (3, "")
    assert "at confidence 0.95 needs 299 samples of 'no' that no step has seen" in out
    assert "No model is written." in out
    assert "<h1>No promise.</h1>" in Path("p.html").read_text()
    assert not Path("m.skops").exists()
    code, out, err = run("steer", trained / "mail.csv", *ask, "--quiet")
    assert (code, out) == (3, "")
    assert err.startswith("margrave: Met on the tuning samples, but it cannot be promised: ")


def test_not_reachable_but_certified_says_both(run, ready, trained, monkeypatch):
    monkeypatch.setattr(_job.Outcome, "met", False)
    code, out, _ = run("steer", trained / "mail.csv", *ASK)
    assert code == 3
    assert "Not reachable on the tuning samples: the nearest is 0 samples short" in out
    assert "was certified all the same.\nThe model is in m.skops." in out


def test_not_reachable_shows_the_nearest(run, ready, trained):
    ask = ("--target", "spam", "--prefer", "fp <= 0, fn <= 0", "--out", "m.skops", "--ways", "move")
    code, out, _ = run("steer", trained / "mail.csv", *ask)
    assert code == 3
    assert "fp <= 0, fn <= 0: not met: the nearest is " in out
    assert "It cannot be promised either: " in out
    assert "No model is written." in out


def test_bundled_sets_need_no_target(run, monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "run_request", lambda samples, *_, **__: seen.append(samples) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["steer", "german", "--prefer", "fp <= 10%", "--out", "m"])
    assert seen[0].positive == datasets.load("german").positive
    assert "target" not in seen[0].X


def test_numbers_and_booleans_are_found_by_their_text(run, ready, trained):
    frame = mail()
    frame["n"] = np.where(frame["spam"] == "yes", 1, 0)
    frame["b"] = frame["n"] == 1
    frame["f"] = frame["n"].astype(float)
    frame.to_parquet("t.parquet")
    for target, text, label in (("n", "1", 1), ("b", "true", True), ("f", "1", 1.0)):
        run("steer", "t.parquet", *ASK[2:], "--target", target, "--positive", text)
        assert ready[-1]["positive"] == label
        assert type(ready[-1]["positive"]) is type(label)
    code, _, err = run("steer", "t.parquet", *ASK[2:], "--target", "n", "--positive", "2")
    assert (code, err) == (2, "margrave: --positive needs one of the classes 0, 1; got '2'.\n")


# Bad input to steer


def bad(run, text, *more, name="t.csv", ask=ASK):
    """The one line that a table is refused with."""
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    code, out, err = run("steer", name, *ask, *more)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    return err.removeprefix("margrave: ").rstrip("\n")


TABLE = "links,sender,when,spam\n" + "1,a,5,no\n2,b,6,yes\n" * 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TABLE + "1,a,9\n", "t.csv, line 42: needs 4 fields, as the header has; got 3."),
        (TABLE.replace("b", "\xfc").encode("latin-1"), "t.csv, line 3: needs text in UTF-8; "),
        ("a,a,spam\n1,2,no\n", "t.csv, line 1: needs a different name for each column; "),
        ("", "t.csv: needs a header and rows; got an empty file."),
        ("a,spam\n", "t.csv: needs rows under the header; got none."),
        (
            TABLE + '"1","a\nb",5,\n1,a,6,\n',
            "--target needs a value in every row; 'spam' of t.csv has none in line 42 (and 1 more)",
        ),
        (
            TABLE.replace("yes", "no"),
            "Dialog.from_data needs samples of at least two classes; got ",
        ),
        (
            TABLE[: len("links,sender,when,spam\n") + 95],
            "Dialog.from_data needs at least 10 samples of each class to train, tune and certify",
        ),
        (
            TABLE.replace("spam", "Spam"),
            "--target needs a column of t.csv; there is no 'spam'. Did",
        ),
    ],
)
def test_bad_tables(run, text, said):
    assert bad(run, text).startswith(said)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--group", "who"), "--group needs a column of t.csv; there is no 'who'. Its columns are"),
        (("--drop", "sendr"), "--drop needs a column of t.csv; there is no 'sendr'. Did you mean"),
        (("--time", "sender"), "--time needs a column of numbers or dates; 'sender' of t.csv has"),
        (("--time", "spam"), "--target, --group and --time need different columns; got "),
        (("--time", "when", "--group", "sender"), "--group and --time cannot be used together yet"),
        (("--drop", "links", "--drop", "sender", "--drop", "when"), "t.csv needs columns to learn"),
        (("--certify", "2"), "--certify needs 'auto' or a share between 0 and 1; got '2'."),
        (("--confidence", "1"), "--confidence needs confidence to be a number in (0, 1); got 1.0."),
        (
            ("--ways", "mov"),
            "--ways needs ways to be among move, reject, reweigh, select, retune; got",
        ),
        (("--prefer", "fpp <= 2"), "unknown word 'fpp'; did you mean fp?"),
        (
            ("--prefer", "recall(ham) >= 1%"),
            "'recall(ham) >= 1%' names the class 'ham'; the classes are no, yes.",
        ),
        (("--report", "no/p.html"), "--report needs a folder that exists; there is no no."),
        (("--dialog", "."), "--dialog needs the name of a file; . is a folder."),
        (("--out", "t.csv"), "--out needs a file of its own; t.csv is DATA."),
        (("--jobs", "two"), "Invalid value for '--jobs'"),
    ],
)
def test_bad_options(run, more, said):
    assert bad(run, TABLE, *more).startswith(said)


def test_gaps_in_times_and_groups_are_told(run):
    gap = TABLE + "3,c,,no\n3,,7,no\n"
    assert bad(run, gap, "--time", "when").endswith("'when' of t.csv has none in line 42.")
    assert bad(run, gap, "--group", "sender").endswith("'sender' of t.csv has none in line 43.")
    days = TABLE.replace(",5,", ",2025-01-05,").replace(",6,", ",2025-01-06,") + "3,c,,no\n"
    assert bad(run, days, "--time", "when").endswith("'when' of t.csv has none in line 42.")
    assert "is constant" in bad(run, TABLE.replace(",6,", ",5,"), "--time", "when")


def test_a_target_of_numbers_is_no_class(run):
    text = "x,spam\n" + "".join(f"{i},{i / 7}\n" for i in range(50))
    assert bad(run, text) == (
        "--target needs a column of classes; 'spam' of t.csv holds 50 different numbers."
    )


def test_no_target_and_no_file(run):
    assert bad(run, TABLE, ask=ASK[2:]) == (
        "--target needs the column with the classes: one of 'links', 'sender', 'when', 'spam'."
    )
    code, _, err = run("steer", "spambas", *ASK)
    assert code == 2
    assert err.endswith("got 'spambas'. Did you mean 'spambase'?\n")


def test_errors_are_json_too(run):
    code, out, err = run("steer", "nowhere.csv", *ASK, "--json")
    told = json.loads(out)
    assert (code, told["exit_code"]) == (2, 2)
    assert err == f"margrave: {told['error']}\n"


def test_control_characters_do_not_reach_the_terminal(run):
    text = TABLE.replace("sender", "\x1b[2J")
    assert "\x1b" not in bad(run, text, "--drop", "x")


# Interrupts


def test_ctrl_c_is_one_line(run, trained, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(_job.Dialog, "from_data", interrupted)
    code, out, err = run("steer", trained / "mail.csv", *ASK)
    assert (code, out, err.count("\n")) == (130, "", 1)


def test_an_interrupted_write_leaves_the_old_file(run, ready, trained, monkeypatch, tmp_path):
    def interrupted(_):
        raise KeyboardInterrupt

    (tmp_path / "m.skops").write_text("old")
    monkeypatch.setattr(_replacing.os, "fsync", interrupted)
    code, _, _ = run("steer", trained / "mail.csv", *ASK)
    assert code == 130
    assert [path.name for path in tmp_path.iterdir()] == ["m.skops"]
    assert (tmp_path / "m.skops").read_text() == "old"


def test_ctrl_c_during_a_request_keeps_the_best_so_far(run, ready, trained, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(_ways.Reweigh, "options", interrupted)
    code, out, _ = run("steer", trained / "mail.csv", *ASK[:-1], "move,reweigh")
    assert code == 0
    assert "cancelled" in out
    assert "Stopped before all ways were tried: this is the best so far." in out


# Predicting


def test_answers_are_those_of_the_model_whatever_the_order_of_the_columns(run, trained):
    new = mail(40, seed=1)
    new.loc[0, "sender"] = "never seen"
    new["extra"] = 1
    new[["body", "extra", "sent", "links", "sender"]].to_csv("new.csv", index=False)
    code, out, err = run("predict", trained / "model.skops", "new.csv", "--out", "a.csv")
    assert (code, out) == (0, "")
    assert err == "margrave: new.csv: not used: 'extra'.\n"
    answers = pd.read_csv("a.csv")
    model = SteeredClassifier.load(trained / "model.skops")
    assert list(answers.columns) == ["label", "score", "rejected"]
    assert (answers["label"] == model.predict(new)).all()
    np.testing.assert_allclose(answers["score"], model.decision_function(new), rtol=1e-12)
    assert not answers["rejected"].any()
    _, text, _ = run("predict", trained / "model.skops", "new.csv")
    assert text.splitlines()[0] == "label,score,rejected"
    assert len(text.splitlines()) == 41
    _, text, _ = run("predict", trained / "model.skops", "new.csv", "--json")
    told = json.loads(text)
    assert (told["n"], told["rejected"], told["ignored"]) == (40, 0, ["extra"])
    assert [row["label"] for row in told["answers"]] == answers["label"].tolist()


def test_missing_columns_are_named(run, trained):
    mail(20)[["links", "sent"]].to_csv("new.csv", index=False)
    code, out, err = run("predict", trained / "model.skops", "new.csv", "--out", "a.csv")
    assert (code, out) == (2, "")
    assert "needs columns that X lacks: 'sender', 'body'." in err


def test_damaged_models_write_nothing(run, trained, tmp_path):
    mail(20).to_csv("new.csv", index=False)
    whole = (trained / "model.skops").read_bytes()
    (tmp_path / "half").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile("other", "w") as other:
        other.writestr("schema.json", "{}")
    for model, said in (("half", "is damaged"), ("other", "is damaged"), ("none", "no file")):
        code, out, err = run("predict", model, "new.csv", "--out", "a.csv")
        assert (code, out) == (2, "")
        assert said in err
    code, _, err = run("predict", trained / "dialog.skops", "new.csv", "--out", "a.csv")
    assert (code, err) == (
        2,
        "margrave: 'dialog.skops' holds a Dialog; a SteeredClassifier is needed.\n",
    )
    assert not (tmp_path / "a.csv").exists()


def test_more_classes_and_rejects(run, tmp_path):
    from sklearn.linear_model import LogisticRegression

    flowers = datasets.load("iris", as_frame=True)
    X, y = flowers.data, np.where(flowers.target == "setosa", "=1+1", flowers.target)
    model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    steering = Dialog(model, X[::2], y[::2])
    steering.prefer("rejected <= 10%, errors <= 1%", ways=["reject"])
    steering.model.save("m.skops")
    X.to_csv("new.csv", index=False)
    code, _, _ = run("predict", "m.skops", "new.csv", "--out", "a.csv")
    answers = pd.read_csv("a.csv")
    assert code == 0
    assert list(answers.columns)[1:-1] == ["score_=1+1", "score_versicolor", "score_virginica"]
    assert set(answers["label"].dropna()) <= {"'=1+1", "versicolor", "virginica"}
    assert 0 < answers["rejected"].sum() < 20
    assert (answers["label"].isna() == (answers["rejected"] == 1)).all()
    X.drop(columns=X.columns[0]).to_csv("new.csv", index=False)
    code, _, err = run("predict", "m.skops", "new.csv")
    assert code == 2
    assert "The model needs columns that are not there: " in err
    code, _, err = run("check", "m.skops", "new.csv", "--target", X.columns[1])
    assert code == 2


# Checking, cards and data


def test_a_check_ends_with_0_or_4(run, trained):
    mail(200, seed=2).to_csv("kept.csv", index=False)
    code, out, err = run("check", trained / "model.skops", "kept.csv", "--target", "spam")
    assert (code, err) == (0, "")
    assert "at most 10 % of no called yes: kept, as far as these samples tell" in out
    assert "On 200 rows of kept.csv" in out
    broken = mail(200, seed=2)
    broken["spam"] = "no"
    broken.to_csv("broken.csv", index=False)
    code, out, _ = run("check", trained / "model.skops", "broken.csv", "--target", "spam")
    assert code == 4
    assert "BROKEN" in out
    broken.loc[3, "spam"] = "maybe"
    broken.to_csv("broken.csv", index=False)
    code, _, err = run("check", trained / "model.skops", "broken.csv", "--target", "spam")
    assert (code, err) == (
        2,
        "margrave: --target spam needs one of the classes 'no', 'yes'; got 'maybe'.\n",
    )


def test_the_card(run, trained):
    code, out, err = run("card", trained / "model.skops")
    assert (code, err) == (0, "")
    assert out == SteeredClassifier.load(trained / "model.skops").model_card()


def test_data_sets(run):
    code, out, _ = run("data")
    assert code == 0
    assert "spambase             4,601 rows  57 columns   2 classes: nonspam, spam\n" in out
    assert [line.split()[0] for line in out.splitlines()] == list(datasets.names(available=True))
    _, out, _ = run("data", "iris")
    assert out == datasets.load("iris").DESCR
    code, out, _ = run("data", "iris", "--out", "iris.csv")
    assert (code, out) == (0, "150 rows of iris are in iris.csv; --target target\n")
    written, frame = pd.read_csv("iris.csv"), datasets.load("iris", as_frame=True).frame
    assert written.to_dict("list") == frame.to_dict("list")
    assert run("data", "iriss")[0] == 2
    assert run("data", "--out", "x.csv")[0] == 2


# The command itself


def test_help_version_and_unknown_commands(run):
    assert run("--version")[:2] == (0, f"margrave {cli.__version__}\n")
    assert run("steer", "--help")[0] == 0
    code, out, err = run("steering")
    assert (code, out) == (2, "")
    assert err.startswith("margrave: No such command 'steering'.")


def test_without_its_extra_it_says_what_to_install():
    code = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name == "typer":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
from margrave.cli import main
"""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("The command margrave needs typer, which is not installed: ")
    assert "install Margrave with its extra 'app'" in done.stderr
