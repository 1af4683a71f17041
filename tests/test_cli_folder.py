"""The command on a folder of Parquet files, which need not fit into memory, and on clusters."""

import json
import re
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

dask = pytest.importorskip("dask", reason="the extra 'dask' is not installed")
pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

from margrave import cli  # noqa: E402
from margrave.app import _folder  # noqa: E402
from margrave.martingale import TunableLogistic  # noqa: E402
from margrave.steer import SteeredClassifier, TableEncoder, _start  # noqa: E402

PAIR = [("line", TunableLogistic()), ("bayes", GaussianNB())]
ASK = ("--target", "spam", "--prefer", "fp <= 10%", "--out", "m.skops")


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command beside a folder, without a cluster; give its code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_start, "default_members", lambda n, random_state: PAIR)

    @contextmanager
    def here(address=None, timeout=None):
        with dask.config.set(scheduler="synchronous"):
            yield SimpleNamespace(run=lambda function: None)

    monkeypatch.setattr(_folder, "cluster", here)

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main([str(one) for one in arguments])
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return run


@pytest.fixture
def mails(tmp_path):
    return written(tmp_path / "mails")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of the same rows, trained in memory and saved."""
    folder = tmp_path_factory.mktemp("model")
    table = whole(written(folder / "mails"))
    pair = [(name, make_pipeline(TableEncoder(), member)) for name, member in PAIR]
    found = SteeredClassifier(pair, preference="fp <= 10%", ways=["move"], random_state=0)
    found.fit(table[["links", "sender", "sent"]], table["spam"]).save(folder / "m.skops")
    return folder / "m.skops"


def written(folder):
    """Three files, the first with its columns the other way round."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for part in range(3):
        spam = rng.random(400) < 0.35
        links = np.round(rng.normal(2.5 * spam, 1), 2)
        links[rng.random(400) < 0.05] = np.nan
        sender = np.where(rng.random(400) < 0.3, "shop", np.where(spam, "unknown", "friend"))
        sent = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(400), unit="h")
        label = np.where(spam, "yes", "no")
        frame = pd.DataFrame({"links": links, "sender": sender, "sent": sent, "spam": label})
        order = frame.columns if part else reversed(frame.columns)
        frame[list(order)].to_parquet(folder / f"{part}.parquet", index=False)
    return folder


def whole(folder):
    files = sorted(folder.glob("*.parquet"))
    return pd.concat([pd.read_parquet(one) for one in files], ignore_index=True)


def test_what_steering_a_folder_prints_and_writes(run, mails):
    code, out, err = run("steer", "mails", *ASK)
    assert (code, err) == (0, "")
    assert "mails: 1,200 rows, 2 classes in 'spam'; yes is positive" in out
    assert "1 number: links" in out
    assert "1 category: sender" in out
    assert "1 date: sent" in out
    assert "479 rows to train the members on, in memory\n  481 other rows to set the cut on" in out
    assert "240 samples are set aside. At confidence 0.95 they support" in out
    assert re.search(r"\nfp <= 10%: (met|met before.*) \(way: move; ", out)
    assert "With confidence 0.95, on new samples like the certify samples:" in out
    assert "Met on the tuning samples, and certified.\nThe model is in m.skops." in out
    found = SteeredClassifier.load("m.skops")
    assert found.certificate_.confusion.n == 240
    table = whole(mails)
    assert found.check(table.drop(columns="spam"), table["spam"])


def test_steps_and_json(run, mails):
    code, out, err = run(
        "steer", "mails", *ASK, "--prefer", "fn <= 15%", "--positive", "no", "--drop", "sent",
        "--ways", "move", "--json",
    )  # fmt: skip
    record = json.loads(out)
    assert code == record["exit_code"]
    n = record["n"]
    assert n["train"] + n["tune"] + n["certify"] == n["all"] == 1200
    assert n["tune"] == np.sum(record["start"]["counts"])
    assert n["certify"] > 240  # two promises need more
    assert record["positive"] == "no"
    assert sorted(record["columns"]) == ["links", "sender"]
    assert [one["preference"] for one in record["replies"]] == ["fp <= 10%", "fp <= 10%, fn <= 15%"]
    assert record["replies"][1]["before"] == record["replies"][0]["after"]
    assert (err == "") == (code == 0)


def test_not_reachable_and_not_promised(run, mails):
    code, out, _ = run("steer", "mails", *ASK[:2], "--prefer", "fp <= 0.1%", "--out", "m.skops")
    assert code == 3
    assert "it cannot be promised: 'fp <= 0.1%' at confidence 0.95 needs 2995 samples" in out
    assert "No model is written." in out


def test_answers_to_a_folder(run, mails, model, tmp_path):
    pd.DataFrame(columns=whole(mails).columns).astype(whole(mails).dtypes).to_parquet(
        mails / "9.parquet", index=False
    )
    code, out, err = run("predict", model, "mails", "--out", "answers", "--json")
    assert code == 0
    assert json.loads(out) == {"n": 1200, "rejected": 0, "ignored": ["spam"], "out": "answers"}
    assert err == "margrave: mails: not used: 'spam'.\n"
    found = whole(tmp_path / "answers")
    table, known = whole(mails)[["links", "sender", "sent"]], SteeredClassifier.load(model)
    assert found["label"].tolist() == known.predict(table).tolist()
    assert np.allclose(found["score"], known.decision_function(table))
    for name in ("answers", "mails/0.parquet"):
        code, _, err = run("predict", model, "mails", "--out", name)
        assert code == 2
        assert f"--out needs a folder that is not there, or is empty; {name} is neither." in err
    (tmp_path / "others.part").mkdir()
    code, _, err = run("predict", model, "mails", "--out", "others")
    assert (code, err) == (
        2,
        f"margrave: --out needs {tmp_path / 'others.part'} to write to first, which is there "
        "already: another run is at work, or one was broken off. Remove it, or give another "
        "--out.\n",
    )
    assert (tmp_path / "others.part").is_dir()
    code, _, err = run("predict", model, "mails")
    assert "--out needs the name of a folder for the answers to a folder; got none." in err
    code, _, err = run("predict", model, "mails", "--out", "answers.csv")
    assert code == 2
    assert "answers to a folder; got answers.csv, which is a file's.\n" in err


def test_a_file_that_cannot_be_answered_leaves_no_answers(run, mails, model, tmp_path):
    broken(mails / "1.parquet")
    code, _, err = run("predict", model, "mails", "--out", "answers")
    assert (code, err.count("\n")) == (2, 1)
    assert "1.parquet cannot be read" in err
    assert not list(tmp_path.glob("answers*"))


def test_a_promise_is_checked_on_a_folder(run, mails, model, tmp_path):
    whole(mails).to_parquet(tmp_path / "all.parquet", index=False)
    code, out, err = run("check", model, "mails", "--target", "spam")
    assert (code, err) == (0, "")
    assert "On 1,200 rows of mails" in out
    _, alone, _ = run("check", model, "all.parquet", "--target", "spam")
    assert out.replace("mails", "all.parquet") == alone
    table = pd.read_parquet(mails / "2.parquet")
    table.assign(spam="no").to_parquet(mails / "2.parquet", index=False)
    code, out, _ = run("check", model, "mails", "--target", "spam")
    assert code == 4
    assert "BROKEN" in out
    table.assign(spam="maybe").to_parquet(mails / "2.parquet", index=False)
    code, _, err = run("check", model, "mails", "--target", "spam")
    assert (code, err) == (
        2, "margrave: --target spam needs one of the classes 'no', 'yes'; got 'maybe'.\n"
    )  # fmt: skip
    code, _, err = run("check", model, "mails", "--target", "spamm")
    assert "--target needs a column of mails; there is no 'spamm'." in err


def broken(path):
    """Rows are damaged, the end is not."""
    data = bytearray(path.read_bytes())
    data[10:1500] = b"\x07" * 1490
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["rows", "end"])
def test_a_damaged_file_is_named(run, mails, how):
    if how == "rows":
        broken(mails / "1.parquet")
    else:
        (mails / "1.parquet").write_bytes(b"no table")
    code, out, err = run("steer", "mails", *ASK)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"margrave: {mails / '1.parquet'} cannot be read: ")


@pytest.mark.parametrize("option", ["--group", "--time", "--report", "--dialog"])
def test_what_needs_memory_is_refused(run, mails, option):
    code, _, err = run("steer", "mails", *ASK, option, "sent")
    assert (code, err) == (
        2,
        f"margrave: {option} needs DATA to be a single file, which is read into memory; got a "
        "folder.\n",
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("--ways", "move,retune"), "--ways needs to be left out, or to be 'move', for rows that "
         "do not fit into memory; got 'retune'. margrave.scale.sample draws rows into memory for "
         "the other ways."),
        (("--target", "spamm"), "--target needs a column of mails; there is no 'spamm'. Did you "
         "mean 'spam'?"),
        (("--drop", "sends"), "--drop needs a column of mails; there is no 'sends'. Did you mean "
         "'sender' or 'sent'?"),
        (("--positive", "maybe"), "--positive needs one of the classes 'no', 'yes'; got 'maybe'."),
        (("--target", "sender"), "SteeredClassifier needs two classes in a Dask collection; got 3: "
         "'friend', 'shop', 'unknown'. margrave.scale.sample draws rows into memory, where more "
         "classes are steered."),
        (("--target", "links"), "--target needs a value in every row; 'links' of mails has none "
         "in "),
        (("--confidence", "7"), "--confidence needs confidence to be a number in (0, 1); got 7"),
    ],
)  # fmt: skip
def test_bad_input_is_told_in_one_line(run, mails, changed, words):
    code, _, err = run("steer", "mails", *ASK, *changed)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"margrave: {words}")


def test_folders_without_a_target_or_files(run, mails, tmp_path):
    code, _, err = run("steer", "mails", *ASK[2:])
    assert err.startswith("margrave: --target needs the column with the classes: one of 'spam', ")
    (tmp_path / "none").mkdir()
    code, _, err = run("steer", "none", *ASK)
    assert (code, err) == (
        2,
        f"margrave: read_parquet needs files that end in .parquet; {tmp_path / 'none'} has none.\n",
    )


def test_without_the_extra(run, mails, monkeypatch):
    def missing(path):
        raise ModuleNotFoundError("No module named 'dask'", name="dask")

    monkeypatch.setattr(_folder, "read_parquet", missing)
    code, _, err = run("steer", "mails", *ASK)
    assert (code, err) == (
        2,
        "margrave: A folder of files needs dask, which is not installed: install Margrave with its "
        "extra 'dask' (pip install 'margrave[dask]').\n",
    )


def test_no_scheduler_at_the_address(run, mails, monkeypatch):
    from margrave.scale import cluster

    monkeypatch.setattr(_folder, "cluster", cluster)
    began = time.perf_counter()
    code, _, err = run("steer", "mails", *ASK, "--cluster", "tcp://127.0.0.1:1")
    assert time.perf_counter() - began < 10
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(
        "margrave: No Dask scheduler answered at tcp://127.0.0.1:1 within 3 s: is it running, and "
        "can it be reached from here? "
    )


def test_workers_that_are_lost_again_and_again(run, mails, monkeypatch):
    from distributed import KilledWorker

    def lost(*_, **__):
        raise KilledWorker("task", None, 3)

    monkeypatch.setattr(cli, "run_folder", lost)
    code, _, err = run("steer", "mails", *ASK)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("margrave: The workers were lost again and again, most likely for want")


def test_a_single_file_with_a_cluster_is_read_into_memory(run, mails, monkeypatch):
    asked = []
    before = _folder.cluster
    monkeypatch.setattr(
        _folder, "cluster", lambda address, timeout: asked.append(address) or before()
    )
    code, out, _ = run("steer", "mails/0.parquet", *ASK, "--ways", "move", "--cluster", "tcp://a:1")
    assert code == 0
    assert asked == ["tcp://a:1"]
    assert "rows to build on, each judged by models that were trained without it" in out
