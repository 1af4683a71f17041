"""Tables whose rows belong together although nothing says so, and tables of few values."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from tests.command import PAIR, call, without_progress

from margrave import datasets
from margrave.steer import (
    Dialog,
    GroupsWarning,
    SplitError,
    SteeredClassifier,
    _start,
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call the command in an empty folder; only two fast members are trained."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_start, "default_committee", lambda *_, **__: PAIR)
    return call


def visits(seed=0, n=250):
    """A hospital's table: 1 to 5 visits of each patient."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(n), rng.integers(1, 6, n)))
    ill = (rng.random(n) < 0.4)[of]
    return pd.DataFrame(
        {
            "record_id": np.arange(len(of)) + 1,
            "patient_id": (1000 + rng.permutation(9000)[:n])[of],
            "pressure": (120 + 15 * rng.normal(size=len(of)) + 30 * ill).round(1),
            "sugar": rng.normal(size=len(of)) + 2.0 * ill,
            "seen": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 300, len(of)), "D"),
            "disease": np.where(ill, "yes", "no"),
        }
    )


SPLIT = {"committee": ["logistic"], "random_state": 0}


class TestRowsOfOnePatient:
    TABLE = visits()
    X, Y = TABLE.drop(columns=["record_id", "disease"]), TABLE["disease"]

    def test_python_warns_before_the_training_and_the_certificate_notes_it(self):
        class Untrained(GaussianNB):
            def fit(self, X, y, sample_weight=None):
                raise NotImplementedError

        with (
            pytest.warns(GroupsWarning, match="patient_id") as found,
            pytest.raises(NotImplementedError),
        ):
            Dialog.from_data(self.X, self.Y, committee=Untrained())
        assert len(found) == 1
        assert found[0].filename == __file__
        with pytest.warns(GroupsWarning):
            dialog = Dialog.from_data(self.X, self.Y, **SPLIT)
        dialog.prefer("fp <= 30%")
        model = dialog.accept()
        for text in (*dialog.sizes.notes, str(model.certificate_), model.model_card()):
            assert "patient_id" in text
        with pytest.warns(GroupsWarning, match="patient_id"):
            SteeredClassifier(["logistic"], preference="fp <= 30%", random_state=0).fit(
                self.X, self.Y
            )

    def test_nothing_is_left_to_say_with_groups_or_without_the_column(self):
        features = self.X.drop(columns="patient_id")
        grouped = Dialog.from_data(self.X, self.Y, groups=self.X["patient_id"], **SPLIT)
        without = Dialog.from_data(features, self.Y, **SPLIT)
        assert "patient_id" not in str([*grouped.sizes.notes, *without.sizes.notes])

    def test_the_command_names_the_options(self, run):
        self.TABLE.to_csv("visits.csv", index=False)
        ask = ("steer", "visits.csv", "--target", "disease", "--limit", "fp <= 30%", "--json")

        def advised(*options):
            code, out, err = run(*ask, *options)
            assert code == 0
            lines = without_progress(err).count("\n")
            return json.loads(out), [part for part in ADVICE if part in err], lines

        ADVICE = ("'record_id' numbers", "--group patient_id", "--time seen")
        code, out, err = run(*ask, "--out", "model.skops")
        assert (code, json.loads(out)["code"]) == (2, "dependent_rows")
        assert "--group patient_id" in err
        assert "--group none" in err
        assert {path.name for path in Path().iterdir()} == {"visits.csv"}
        record, found, n_lines = advised("--out", "model.skops", "--group", "none")
        assert (found, n_lines) == ([ADVICE[0], ADVICE[2]], 2)
        assert "patient_id" in str(record["certificate"])
        assert "record_id" not in record["columns"]
        assert advised("--plan")[1:] == (list(ADVICE), 3)
        by_patient = advised("--plan", "--group", "patient_id")
        assert by_patient[1:] == ([ADVICE[0], "--time seen"], 2)
        assert advised("--plan", "--drop", "patient_id")[1:] == (
            [ADVICE[0], "--time seen"],
            2,
        )
        assert advised("--plan", "--time", "seen")[1:] == (list(ADVICE[:2]), 2)
        assert advised("--plan", "--quiet")[1:] == ([], 0)


def scores(seed=0, n=385):
    """Answers with the coarse score of a judge; most are bad."""
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.77
    score = np.clip(rng.normal(np.where(bad, 0.35, 0.7), 0.15), 0, 1)
    return pd.DataFrame(
        {
            "answer": [f"a-{i:04d}" for i in rng.permutation(n)],
            "score": np.round(score * 20) / 20,
            "label": np.where(bad, "bad", "good"),
        }
    )


def two_scores(seed=0):
    """Two related scores."""
    table, rng = scores(seed), np.random.default_rng(seed + 1)
    help_ = np.clip(np.round(10 * table["score"] + rng.normal(size=len(table))), 0, 10)
    return table.assign(helps=help_.astype(int))


def titanic(_):
    bunch = datasets.load("titanic", as_frame=True)
    return bunch.data.assign(label=bunch.target)


class TestFewValues:
    @pytest.mark.parametrize("draw", [scores, two_scores, titanic])
    def test_rows_count_each_and_the_certificate_says_so(self, draw):
        table = draw(0)
        X, y = table.drop(columns="label"), table["label"]
        dialog = Dialog.from_data(X, y, committee=["logistic"], random_state=0)
        assert dialog.duplicates == "independent"
        assert dialog.sizes.unused == 0
        assert dialog.sizes.copies > 200
        counted = Dialog.plan_split(X, y, duplicates="independent", random_state=0)
        assert (counted.train, counted.certify) == (dialog.sizes.train, dialog.sizes.certify)
        (note,) = dialog.sizes.notes
        dialog.prefer("fp <= 60%")
        model = dialog.accept()
        assert note in model.certificate_.notes
        assert "group" in note

    def test_group_counts_equal_rows_once(self):
        table = scores()
        with pytest.raises(SplitError) as refused:
            Dialog.plan_split(table[["score"]], table["label"], duplicates="group")
        assert refused.value.code == "too_few_samples"

    def test_a_model_of_your_own_and_new_rows(self):
        first, second, third = scores(0), scores(1), scores(2)
        model = GaussianNB().fit(first[["score"]], first["label"])
        dialog = Dialog(model, second[["score"]], second["label"])
        assert dialog.duplicates == "independent"
        assert Dialog(model, second[["score"]], second["label"], duplicates="group").duplicates == (
            "group"
        )
        dialog.prefer("fp <= 60%")
        accepted = dialog.accept(third[["score"]], third["label"])
        assert accepted.certificate_.confusion.n == len(third)

    def test_a_steered_classifier_recertifies_as_it_was_fitted(self):
        first, second = scores(0), scores(1)
        model = SteeredClassifier(["logistic"], preference="fp <= 60%", random_state=0)
        model.fit(first[["score"]], first["label"])
        assert model.duplicates == "auto"
        again = model.recertify(second[["score"]], second["label"])
        assert again.certificate_.confusion.n > 0.9 * len(second)

    def test_the_command_says_what_was_assumed(self, run):
        scores().to_csv("scores.csv", index=False)
        ask = ("steer", "scores.csv", "--target", "label", "--limit", "fp <= 60%")
        code, out, err = run(*ask, "--out", "model.skops")
        assert (code, without_progress(err)) == (0, "")
        assert "independent" in out
        code, _, err = run(*ask, "--plan", "--duplicates", "group")
        assert (code, "--duplicates" in err) == (2, True)

    @pytest.mark.parametrize(
        ("columns", "extra"), [(1, None), (1, "text"), (4, None), (4, "text"), (4, "number")]
    )
    def test_copies_of_measurements_are_no_few_values(self, columns, extra):
        rng = np.random.default_rng(0)
        of = rng.permutation(np.repeat(np.arange(300), 25))
        table = pd.DataFrame(rng.normal(size=(300, columns))[of])
        if extra is not None:
            number = np.arange(len(of))
            table["row"] = number if extra == "number" else [f"r{i}" for i in number]
        y = (rng.random(300) < 0.4)[of]
        if extra == "number":
            with pytest.raises(SplitError, match="7,200"):
                Dialog.plan_split(table, y)
        else:
            assert Dialog.from_data(table, y, committee=["logistic"]).duplicates == "group"

    @pytest.mark.parametrize("name", ["breast_wisconsin", "balance", "spambase", "pima"])
    def test_other_tables_are_as_before(self, name):
        X, y = datasets.load(name, return_X_y=True, as_frame=True)
        sizes = [
            Dialog.plan_split(X, y, duplicates=kind, random_state=0) for kind in ("auto", "group")
        ]
        assert sizes[0] == sizes[1]
