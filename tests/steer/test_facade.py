"""What front ends use: dictionaries for JSON, rows of a cell, sizes, and errors with codes."""

import copy
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from margrave import Confusion, MargraveError, ParameterError, Preference
from margrave.steer import (
    Dialog,
    Frontier,
    GuaranteeError,
    SplitError,
    StoppedError,
    default_members,
)

RANDOM = np.random.default_rng(2)
Y = RANDOM.integers(0, 2, 500)
X = RANDOM.normal(size=(500, 3)) + Y[:, None]
MEMBERS = [("bayes", GaussianNB()), ("logistic", LogisticRegression())]


@pytest.fixture(scope="module")
def dialog():
    dialog = Dialog.from_data(X, Y, committee=MEMBERS, random_state=0)
    dialog.prefer("fp <= 30")
    dialog.prefer("fn <= 1%, fp <= 1%")
    dialog.undo()
    dialog.accept(confidence=0.8)
    return dialog


def as_json(value):
    """The dictionary after a way through JSON, which refuses NaN and types of its own."""
    return json.loads(json.dumps(value, allow_nan=False))


class TestToDict:
    @pytest.mark.parametrize(
        "of",
        [
            lambda dialog: dialog,
            lambda dialog: dialog.history[0],
            lambda dialog: dialog.history[2],
            lambda dialog: dialog.confusion,
            lambda dialog: dialog.reply.preference,
            lambda dialog: dialog.frontier(),
            lambda dialog: dialog.accepted[0].certificate,
        ],
    )
    def test_json_holds_it_unchanged(self, dialog, of):
        found = of(dialog).to_dict()
        assert as_json(found) == found
        assert found["schema_version"] == 1

    def test_labels_of_numpy_become_plain(self):
        matrix = Confusion([[1, 2], [3, 4]], classes=list(np.array([0, 1])), positive=np.int64(1))
        assert as_json(matrix.to_dict())["classes"] == [0, 1]

    def test_a_dialog_lists_its_steps_and_models(self, dialog):
        found = dialog.to_dict()
        assert [step["number"] for step in found["steps"]] == [0, 1, 2]
        assert [step["parent"] for step in found["steps"]] == list(dialog.parents)
        assert found["position"] == 1
        assert found["steps"][1]["after"] == dialog.reply.after.to_dict()
        (accepted,) = found["accepted"]
        assert accepted["step"] == 1
        assert accepted["certificate"]["guarantees"][0]["limit"] > 0
        sizes = found["sizes"]
        assert sizes["train"] + sizes["certify"] == len(Y)

    def test_a_reply_says_what_is_missed(self, dialog):
        found = dialog.history[2].to_dict()
        assert not found["met"]
        assert found["shortfall"] > 0
        assert Preference(found["instead"]["text"]).met(dialog.history[2].after)

    def test_the_best_of_a_frontier_are_not_dominated(self):
        frontier = Frontier.of({"a": [1, 2, 3, 7], "b": [1, 3, 2, 4]}, [0, 0, 1, 1])
        best = frontier.to_dict()["best"]
        assert [(one["fp"], one["fn"]) for one in best] == [(0, 0)]
        assert frontier.to_dict()["hull"][-1]["high"] is None


class TestRows:
    def test_they_are_the_samples_of_the_cell(self, dialog):
        for true in dialog.classes:
            for predicted in dialog.classes:
                rows = dialog.rows(true, predicted)
                assert len(rows) == dialog.confusion[true, predicted]
                assert (Y[rows.at] == true).all()
                assert (rows.true == true).all()
                model = dialog.model
                assert (rows.predicted == predicted).all()
                assert set(rows.votes) == set(model.scorer_.committee.names)

    def test_all_samples_without_a_cell(self, dialog):
        rows = dialog.rows()
        assert len(rows) == dialog.confusion.n
        assert (rows.predicted == rows.true).mean() == pytest.approx(dialog.confusion.accuracy)
        order = np.argsort(rows.margin, kind="stable")
        assert (np.diff(rows.certainty[order]) >= 0).all()

    def test_rejected_samples(self):
        dialog = Dialog.from_data(X, Y, committee=MEMBERS, random_state=0)
        dialog.prefer("fp <= 5, rejected <= 30%")
        rows = dialog.rows(rejected=True)
        assert len(rows) == dialog.confusion.n_rejected > 0
        assert all(label is None for label in rows.predicted)

    def test_an_unknown_class_is_refused(self, dialog):
        with pytest.raises(ParameterError) as refused:
            dialog.rows(true="no")
        assert refused.value.fields["parameter"] == "true"


class TestSizes:
    @pytest.mark.parametrize("committee", [None, "martingale"])
    def test_the_plan_is_what_the_dialog_does(self, committee):
        plan = Dialog.plan_split(X, Y, committee=committee, random_state=1)
        chosen = MEMBERS if committee is None else committee
        dialog = Dialog.from_data(X, Y, committee=chosen, levels=1, random_state=1)
        assert dialog.sizes == plan
        assert plan.tune == dialog.confusion.n
        assert sum(plan.certify_by_class.values()) == plan.certify

    def test_a_certification_set_of_the_user_is_counted(self):
        dialog = Dialog.from_data(
            X[:400], Y[:400], committee=MEMBERS, certify=(X[400:], Y[400:]), random_state=0
        )
        assert dialog.sizes.certify == 100

    def test_default_members_are_those_of_a_dialog(self):
        dialog = Dialog.from_data(X, Y, certify=None, random_state=0)
        assert dialog.members == default_members(len(Y))


class TestStopping:
    def test_training_stops(self):
        seen = []
        with pytest.raises(StoppedError) as stopped:
            Dialog.from_data(
                X, Y, committee=MEMBERS, callback=seen.append, stop=lambda: len(seen) >= 3
            )
        assert len(seen) == 3
        assert stopped.value.fields["done"] == seen[-1].done == 2

    def test_a_request_at_an_earlier_step_is_a_branch(self, dialog):
        ours = copy.deepcopy(dialog)
        before = ours.position
        checked = ours.check_request("fn <= 20", at=0)
        assert ours.position == before
        reply = ours.prefer("fn <= 20", at=0)
        assert reply.preference == checked
        assert ours.parents[-1] == 0
        assert reply.before == ours.history[0].after


class TestErrors:
    @pytest.mark.parametrize(
        ("call", "code", "field"),
        [
            (lambda dialog: dialog.goto(99), "parameter", "received"),
            (lambda dialog: dialog.accept(confidence=2), "parameter", "received"),
            (lambda dialog: dialog.prefer("fp <= 5", strategies=["luck"]), "parameter", "allowed"),
            (lambda dialog: dialog.grow(), "no_program", None),
            (lambda dialog: dialog.goto(0) and dialog.accept(), "no_preference", None),
            (lambda dialog: dialog.redo() and dialog.redo(), "nothing_to_redo", None),
        ],
    )
    def test_they_have_a_code_and_fields(self, dialog, call, code, field):
        with pytest.raises(MargraveError) as refused:
            call(copy.deepcopy(dialog))
        assert refused.value.code == code
        assert field is None or field in refused.value.fields
        as_json(refused.value.to_dict())

    def test_too_few_samples_say_how_many_are_needed(self):
        dialog = Dialog.from_data(X, Y, committee=MEMBERS, random_state=0)
        dialog.prefer("fp <= 0.1%")
        with pytest.raises(GuaranteeError) as refused:
            dialog.accept()
        fields = refused.value.fields
        assert refused.value.code == "too_few_samples"
        assert fields["needed"] > fields["n"]
        again = copy.copy(refused.value)
        assert (again.code, again.fields, again.used_up) == ("too_few_samples", fields, False)

    def test_too_small_a_class_is_named(self):
        with pytest.raises(SplitError) as refused:
            Dialog.from_data(X, np.r_[[1] * 3, [0] * 497], committee=MEMBERS)
        assert refused.value.code == "too_few_samples"
        assert (refused.value.fields["label"], refused.value.fields["n"]) == (1, 3)


@pytest.fixture(scope="module")
def model():
    dialog = Dialog.from_data(X[:400], Y[:400], committee=MEMBERS, random_state=0)
    dialog.prefer("fp <= 20%")
    return dialog.accept()


class TestUsedRows:
    def test_rows_of_the_model_do_not_check_it(self, model):
        with pytest.raises(GuaranteeError) as refused:
            model.check(X[:400], Y[:400])
        assert refused.value.code == "used_samples"
        assert refused.value.fields["n_used"] == 400

    def test_so_also_after_a_way_through_a_file(self, model, tmp_path):
        model.save(tmp_path / "model")
        again = type(model).load(tmp_path / "model")
        with pytest.raises(GuaranteeError):
            again.check(X[:400], Y[:400])

    def test_some_of_them_are_counted(self, model):
        found = model.check(X[370:], Y[370:])
        assert found.n_used == 30
        assert "30" in str(found).splitlines()[-1]

    def test_new_rows_are_fine(self, model):
        found = model.check(X[400:], Y[400:])
        assert found.n_used == 0

    def test_used_rows_do_not_certify(self):
        dialog = Dialog.from_data(X[:400], Y[:400], committee=MEMBERS, certify=None)
        dialog.prefer("fp <= 30%")
        with pytest.raises(GuaranteeError) as refused:
            dialog.accept(X[300:], Y[300:])
        assert refused.value.code == "used_samples"
        with pytest.raises(GuaranteeError) as refused:
            dialog.accept(X[398:], Y[398:])
        assert (refused.value.fields["n_used"], refused.value.fields["n"]) == (2, 102)
        assert dialog.accept(X[400:], Y[400:]).certificate_.confusion.n == len(X) - 400

    def test_a_frame_of_the_rows_is_known_too(self, model):
        with pytest.raises(GuaranteeError):
            model.check(X[:400].tolist(), Y[:400])

    def test_equal_rows_may_be_new_ones(self):
        """With few distinct rows, an equal row says nothing about where it is from."""
        coarse = (X > 0.5).astype(float)
        dialog = Dialog.from_data(
            coarse[:400], Y[:400], committee=MEMBERS, duplicates="independent", random_state=0
        )
        dialog.prefer("fp <= 60%")
        model = dialog.accept()
        assert model.check(coarse[400:], Y[400:]).n_used == 0

    def test_recertification_needs_new_rows_and_remembers_them(self, model):
        with pytest.raises(GuaranteeError) as refused:
            model.recertify(X[100:300], Y[100:300])
        assert refused.value.code == "used_samples"
        new = model.recertify(X[400:], Y[400:])
        with pytest.raises(GuaranteeError):
            new.check(X[400:], Y[400:])

    def test_many_rows_are_all_known(self):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 30_000)
        rows = rng.normal(size=(30_000, 2)) + y[:, None]
        dialog = Dialog.from_data(rows[:25_000], y[:25_000], committee=GaussianNB())
        dialog.prefer("fp <= 30%")
        found = dialog.accept().check(rows[23_000:], y[23_000:])
        assert found.n_used == 2000
