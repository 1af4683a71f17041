"""A dialog over a martingale program: looked at, tuned and grown node by node."""

import copy
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.examples import few

from margrave import Confusion, ParameterError, Preference, datasets
from margrave.confusion import PreferenceError
from margrave.martingale import MartingaleBoostClassifier, Step
from margrave.steer import Dialog, GuaranteeError, Progress
from margrave.steer._start import PROGRAM_TUNE
from margrave.steer._table_split import split_table
from margrave.table import TableEncoder


@cache
def pima():
    return datasets.load("pima", return_X_y=True)


@cache
def opened(name="pima", levels=3, positive=None):
    X, y = datasets.load(name, return_X_y=True)
    how = {"levels": levels, "positive": positive, "random_state": 0}
    return Dialog.from_data(X, y, committee="martingale", **how)


def dialog_on(name="pima", levels=3, positive=None):
    """A dialog of one's own."""
    return copy.deepcopy(opened(name, levels, positive))


def tuning(dialog, name="pima"):
    X, y = datasets.load(name, return_X_y=True)
    at = dialog._data.at
    return X[at], y[at]


def ends(program):
    """The confusion matrix by the ends of all paths."""
    return sum(
        counts for node, counts in zip(program.nodes, program.counts, strict=True) if node.is_end
    )


def check_program(dialog, name="pima", by_folds=False):
    """What must be true of a program at any step."""
    program, matrix = dialog.program, dialog.confusion
    X, y = tuning(dialog, name)
    answers = dialog.model.predict(X)
    assert program.counts[0].sum() == matrix.n
    assert program.positive == matrix.positive
    for place, node in enumerate(program.nodes):
        came = [i for i, edge in enumerate(program.edges) if edge.end == place]
        left = [i for i, edge in enumerate(program.edges) if edge.start == place]
        if place:
            np.testing.assert_array_equal(program.flow[came].sum(axis=0), program.sizes[place])
        if not node.is_end:
            np.testing.assert_array_equal(program.flow[left].sum(axis=0), program.sizes[place])
            for i in left:
                answered = program.counts[place][:, program.edges[i].prediction]
                np.testing.assert_array_equal(program.flow[i], answered)
            left_with = program.outcomes[left].sum(axis=0)
            np.testing.assert_array_equal(left_with, program.node_outcomes[place])
    model = dialog.model
    predicted = Confusion.of(
        y, answers, classes=list(dialog.classes), positive=matrix.positive,
        reject_label=model.reject_label_,
    )  # fmt: skip
    if predicted.n_rejected == 0:
        np.testing.assert_array_equal(ends(program), predicted.counts[:, :-1])
        np.testing.assert_array_equal(program.node_outcomes[0], predicted.counts[:, :-1])
        for label, rate in program.error_rates().items():
            assert rate == pytest.approx(1 - predicted.recall(label))
    if not by_folds:
        assert predicted == matrix
    return program


def numbers(text):
    return [int(one) for one in re.findall(r"\d+", text)]


def learning(program):
    return [tuple(map(int, node.position)) for node in program.nodes if node.kind == "learner"]


# The start


def test_a_program_has_samples_of_its_own_to_train_tune_and_certify_on():
    dialog = opened()
    X, y = pima()
    part, at = dialog._acceptances.certification_set, dialog._data.at
    assert len(part.at) == len(part.codes) == round(0.2 * len(y))
    assert len(at) == dialog.confusion.n == round(0.4 * (len(y) - len(part.at)))
    (program,) = dialog._data.committee.members
    assert len(program._samples.codes) == len(y) - len(at) - len(part.at)
    assert not set(at) & set(part.at)
    classes = np.array(dialog.classes)
    np.testing.assert_array_equal(classes[dialog._data.codes], y[at])
    np.testing.assert_array_equal(classes[part.codes], y[part.at])
    np.testing.assert_allclose(dialog._data.X.X, dialog._data.committee.encode(X[at]))
    shares = [np.mean(y[one] == "pos") for one in (at, part.at)]
    assert shares == pytest.approx([np.mean(y == "pos")] * 2, abs=0.01)
    assert not dialog._data.trained_on
    assert dialog.members == ("martingale",)
    held = np.concatenate([held for _, held in dialog._data.folds])
    assert sorted(held) == list(range(len(at)))


@pytest.mark.parametrize(("name", "levels"), [("pima", 3), ("liver", 4), ("iris", 3)])
def test_the_program_is_measured_on_the_tuning_samples(name, levels):
    dialog = opened(name, levels)
    program = check_program(dialog, name)
    assert program.n_levels == levels
    (member,) = dialog._data.committee.members
    X, y = tuning(dialog, name)
    plain = member.measured(dialog._data.committee.encode(X), y)
    np.testing.assert_array_equal(program.counts, plain.counts)
    assert (program.nodes, program.edges) == (plain.nodes, plain.edges)


def test_weak_nodes_are_those_that_the_program_would_ask():
    for name in ("pima", "iris"):
        dialog = opened(name, 4)
        (member,) = dialog._data.committee.members
        X, y = tuning(dialog, name)
        for threshold in (0.1, 0.3, 1):
            asked = []
            member.tune(
                lambda request, to=asked: to.append(request.votes),
                dialog._data.committee.encode(X),
                y,
                granularity="select",
                advantage_threshold=threshold,
            )
            assert dialog.weak_nodes(threshold) == tuple(asked)
        assert dialog.weak_nodes() == dialog.weak_nodes(0.3)
        assert set(dialog.weak_nodes(1)) <= set(learning(dialog.program))


def test_progress_is_reported_for_each_level():
    X, y = pima()
    reported = []
    Dialog.from_data(X, y, committee="martingale", levels=4, callback=reported.append)
    assert reported == [Progress(level, 4, "martingale") for level in (1, 2, 3, 4)]
    reported.clear()
    names = ["logistic", "qda"]
    Dialog.from_data(X, y, committee=names, tune=0.3, callback=reported.append)
    assert [(one.done, one.total) for one in reported] == [(0, 2), (1, 2), (2, 2)]
    assert [one.member for one in reported] == ["", *names]


# Nodes


@few(8)
@given(data=st.data())
def test_asked_nodes_do_what_is_wanted_and_everything_adds_up(data):
    dialog = dialog_on(levels=data.draw(st.integers(2, 4)))
    for _ in range(data.draw(st.integers(1, 2))):
        before = dialog.program
        votes = data.draw(st.sampled_from(dialog.weak_nodes(1)))
        local = before.confusion(before.at(votes))
        wanted = data.draw(st.sampled_from([f"fp <= {local.fp // 2}", f"fn <= {local.fn // 2}"]))
        reply = dialog.tune_nodes({votes: wanted})
        program = check_program(dialog)
        ((asked, result),) = reply.node_results
        assert asked == votes
        assert result.before == local
        assert result.after == program.confusion(program.at(votes))
        assert result.met == Preference(wanted).met(result.after)
        assert str(votes) in reply.note
        assert wanted in reply.note
        others = reply.note.replace(str(votes), "").replace(wanted, "")
        assert (f"{result.shortfall:g}" in others) != result.met
        assert reply.strategy == "nodes"
        assert reply.preference is None
        assert bool(reply.warnings) == (reply.after.n_errors > reply.before.n_errors)
        for other in learning(before):  # above and beside it nothing changes
            if any(mine < its for mine, its in zip(other, votes, strict=True)):
                np.testing.assert_array_equal(
                    before.counts[before.at(other)], program.counts[program.at(other)]
                )


def test_what_is_there_already_changes_nothing():
    dialog = dialog_on(levels=4)
    for _ in range(2):
        before, program = dialog.reply, dialog.program
        wants = {}
        for votes in dialog.weak_nodes(1):
            local = program.confusion(program.at(votes))
            wants[votes] = f"fp <= {local.fp}, fn <= {local.fn}"
        reply = dialog.tune_nodes(wants)
        assert reply.after == before.after
        assert reply.changes == ()
        assert {votes for votes, _ in reply.node_results} == set(wants)
        assert all(
            result.met and result.preference.met(result.before) for _, result in reply.node_results
        )
        assert all(str(votes) in reply.note for votes in wants)
        np.testing.assert_array_equal(reply.candidate.scores, before.candidate.scores)
        np.testing.assert_array_equal(dialog.program.counts, program.counts)
        assert dialog.program.nodes == program.nodes
        dialog.tune_nodes({(0, 0): "fn <= 20", (1, 1): "fp <= 9"})  # and once more after an edit


def test_several_nodes_as_the_program_would_do_it_by_itself():
    dialog = dialog_on()
    (member,) = dialog._data.committee.members
    X, y = tuning(dialog)
    wants = {(0, 0): "fn <= 20", (1, 0): "fn <= 5", (2, 0): None}
    tuned = member.tune(wants, dialog._data.committee.encode(X), y, granularity="all")
    reported = []
    reply = dialog.tune_nodes(wants, callback=reported.append)
    assert reply.after == tuned.tuning_.after
    assert reply.node_results == tuned.tuning_.node_results
    assert [isinstance(step, Step) for step in reported] == [True, True]
    assert [(votes, result.met) for votes, result in reply.node_results] == [
        ((0, 0), True),
        ((1, 0), True),
    ]
    for words in ("(0, 0)", "fn <= 20", "(1, 0)", "fn <= 5"):
        assert words in reply.note
    assert reply.note in str(reply)
    assert "nodes" in str(reply)
    assert not reply.cancelled


def test_a_node_that_misses_what_is_wanted_says_by_how_much():
    dialog = dialog_on()
    reply = dialog.tune_nodes({(0, 0): "fp <= 2, fn <= 2"})
    ((_, result),) = reply.node_results
    assert not result.met
    others = reply.note.replace("(0, 0)", "").replace("fp <= 2, fn <= 2", "")
    assert re.search(rf"\b{result.shortfall:g}\b", others)
    assert reply.met, "of the global matrix nothing was asked"


def test_three_classes_by_the_cells_of_local_matrices():
    dialog = dialog_on("hayes_roth", 3, 1)
    program = check_program(dialog, "hayes_roth")
    assert program.positive == 1
    weakest = min(
        dialog.weak_nodes(1), key=lambda votes: np.nanmin(program.advantages[program.at(votes)])
    )
    local = program.confusion(program.at(weakest))
    label = min(local.classes, key=local.recall)
    wanted = local.edit(label, label, int(local.counts[local.classes.index(label)].sum()))
    reply = dialog.tune_nodes({weakest: wanted})
    after = check_program(dialog, "hayes_roth")
    assert reply.node_results[0][1].after.recall(label) >= local.recall(label)
    assert len(after.classes) == 3
    assert numbers(dialog.grow().note) == [1, 4]
    check_program(dialog, "hayes_roth")
    reply = dialog.prefer("errors(2 -> 1) <= 0", strategies=["move", "retune"])
    check_program(dialog, "hayes_roth", by_folds=reply.strategy == "retune")


@pytest.mark.parametrize("how", ["callback", "stop"])
def test_work_on_nodes_can_be_stopped(how):
    dialog = dialog_on()
    wants = {(0, 0): "fn <= 20", (1, 0): "fn <= 2", (0, 1): "fp <= 2"}
    reply = dialog.tune_nodes(wants, **{how: lambda *_: True})
    assert reply.cancelled
    assert [votes for votes, _ in reply.node_results] == [(0, 0)]
    check_program(dialog)
    once = dialog_on().tune_nodes({(0, 0): "fn <= 20"})
    assert reply.after == once.after


# Growing


def test_growing_in_the_dialog_equals_beginning_with_more_levels():
    for name in ("pima", "iris"):
        small, whole = dialog_on(name, 2), opened(name, 4)
        reported = []
        reply = small.grow(2, callback=reported.append)
        assert reply.after == whole.confusion
        # Scores are rounded to nine digits.
        np.testing.assert_allclose(
            reply.candidate.scores, whole.reply.candidate.scores, rtol=1e-9, atol=1e-8
        )
        assert check_program(small, name).nodes == whole.program.nodes
        np.testing.assert_array_equal(small.program.counts, whole.program.counts)
        assert reported == [Progress(1, 2, "martingale"), Progress(2, 2, "martingale")]
        assert (reply.strategy, numbers(reply.note)) == ("grow", [2, 4])


@pytest.mark.parametrize("how", ["callback", "stop"])
def test_growing_can_be_stopped_between_levels(how):
    dialog = dialog_on()
    reply = dialog.grow(3, **{how: lambda *_: True})
    assert reply.cancelled
    assert dialog.program.n_levels == 4
    assert numbers(reply.note) == [1, 4]


def test_what_was_tuned_survives_growing():
    dialog = dialog_on()
    dialog.tune_nodes({(0, 0): "fn <= 15", (1, 1): "fp <= 20"})
    before = dialog.program
    dialog.grow(2)
    after = check_program(dialog)
    for votes in learning(before):
        np.testing.assert_array_equal(
            before.counts[before.at(votes)], after.counts[after.at(votes)]
        )


# Requests for the whole


def test_a_preference_stays_and_its_decision_is_set_again():
    dialog = dialog_on()
    asked = dialog.prefer("fn <= 12", strategies=["move"])
    check_program(dialog)
    assert asked.met
    assert dialog.history[0].candidate.decision != asked.candidate.decision
    for step in (lambda: dialog.tune_nodes({(0, 0): "fp <= 30"}), lambda: dialog.grow(2)):
        reply = step()
        check_program(dialog)
        assert reply.preference == Preference("fn <= 12")
        assert reply.met == (reply.after.fn <= 12)
        scorer, held = reply.candidate.scorer, reply.candidate.scores
        fresh = copy.deepcopy(dialog)
        moved = fresh.prefer("fn <= 12", strategies=["move"])
        assert moved.after == reply.after
        assert moved.candidate.scorer.combine == scorer.combine
        np.testing.assert_array_equal(moved.candidate.scores, held)
        assert "fn <= 12" in str(reply)
        assert str(reply) != str(replace(reply, met=not reply.met))
    same = dialog.tune_nodes({(0, 0): "fp <= 100"})
    assert same.after == reply.after


def test_without_a_request_most_votes_win():
    dialog = dialog_on()
    reply = dialog.tune_nodes({(0, 0): "fn <= 15"})
    assert (reply.candidate.decision.low, reply.candidate.decision.high) == (0, 0)
    program = dialog.program
    for node in program.nodes:
        if node.is_end:
            assert node.prediction == int(node.position[1] > node.position[0])


def test_a_decision_that_rejects_is_set_again_and_ends_show_where_they_lean():
    dialog = dialog_on()
    dialog.prefer("fn <= 6, fp <= 60, rejected <= 40%", strategies=["reject"])
    assert dialog.confusion.n_rejected
    program = dialog.program
    assert ends(program).sum() == dialog.confusion.n
    reply = dialog.tune_nodes({(1, 0): "fn <= 3"})
    assert reply.preference == Preference("fn <= 6, fp <= 60, rejected <= 40%")
    assert reply.met == reply.preference.met(reply.after)


def test_a_retuned_program_answers_as_it_is_shown_and_can_be_edited():
    name = "liver"
    dialog = dialog_on(name)
    wanted = f"fn <= {dialog.confusion.fn // 2}"
    reply = dialog.prefer(wanted, strategies=["retune"])
    assert reply.strategy == "retune"
    (member,) = reply.candidate.scorer.committee.members
    X, y = tuning(dialog, name)
    encoded = reply.candidate.scorer.committee.encode(X)
    own = member.measured(encoded, y)
    np.testing.assert_array_equal(
        ends(own), Confusion.of(y, member.predict(encoded)).counts[:, :-1]
    )
    program = check_program(dialog, name, by_folds=True)
    votes = dialog.weak_nodes(1)[0]
    local = program.confusion(program.at(votes))
    edited = dialog.tune_nodes({votes: f"fp <= {local.fp // 2}"})
    assert edited.node_results[0][1].before == local
    assert edited.preference == Preference(wanted)
    check_program(dialog, name)


def test_requests_begin_with_what_was_made_by_hand():
    """Else a node that was edited, or a level that was grown, would be lost without a word."""
    dialog = dialog_on("liver", 2)
    dialog.tune_nodes({(0, 0): "fn <= 10"})
    root = dialog.program.counts[0]
    dialog.grow()
    for strategies in (["move"], ["retune"]):
        reply = dialog.prefer("fn <= 15", strategies=strategies)
        program = check_program(dialog, "liver", by_folds=reply.strategy == "retune")
        assert program.n_levels == 3
        if strategies == ["move"]:
            np.testing.assert_array_equal(program.counts[0], root)
    dialog.goto(0)
    assert (
        dialog.prefer("fn <= 15", strategies=["move"]).candidate.scorer
        is dialog.history[0].candidate.scorer
    )


def test_the_frontier_has_the_steps_of_the_program():
    dialog = dialog_on("liver", 2)
    dialog.tune_nodes({(0, 0): "fn <= 10"})
    dialog.grow()
    dialog.tune_nodes({(1, 1): "fn <= 3"})
    names = [curve.name for curve in dialog.frontier().curves]
    assert names == ["start", "nodes", "grow", "nodes 2"]


# The conversation


def test_steps_branch_and_are_undone():
    dialog = dialog_on()
    start = dialog.program
    first = dialog.tune_nodes({(0, 0): "fn <= 10"})
    second = dialog.grow()
    assert dialog.undo() is first
    assert dialog.program.n_levels == 3
    assert dialog.undo().strategy == "start"
    np.testing.assert_array_equal(dialog.program.counts, start.counts)
    assert dialog.redo() is first
    assert dialog.redo() is second
    dialog.goto(0)
    branch = dialog.grow(2)
    assert dialog._history.parents == [0, 0, 1, 0]
    assert branch.before == dialog.history[0].after
    compared = dialog.compare(1, 3)
    assert (compared.first, compared.second) == (first, branch)
    assert "nodes" in str(compared)
    assert "grow" in str(compared)


def test_a_dialog_is_the_same_from_its_file(tmp_path):
    dialog = dialog_on("liver", 1)
    path = tmp_path / "dialog.skops"
    dialog.prefer("fn <= 12", strategies=["move"])
    dialog.tune_nodes({(0, 0): "fn <= 9"})
    dialog.autosave(path)
    dialog.grow()
    again = Dialog.load(path)
    assert [str(reply) for reply in again.history] == [str(reply) for reply in dialog.history]
    assert again.reply == dialog.reply
    assert again.program.nodes == dialog.program.nodes
    np.testing.assert_array_equal(again.program.counts, dialog.program.counts)
    np.testing.assert_array_equal(again._data.at, dialog._data.at)
    wants = {dialog.weak_nodes(1)[-1]: "fp <= 1"}
    assert again.tune_nodes(wants).after == dialog.tune_nodes(wants).after
    assert again.grow().after == dialog.grow().after


class Recorder(ClassifierMixin, BaseEstimator):
    """Passes samples on, and writes down which were ever seen; the first column is their name."""

    seen: set = set()  # noqa: RUF012 - shared by all clones, on purpose

    def fit(self, X, y=None):
        self._note(X)
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        self._note(X)
        return X[:, 1:]

    def _note(self, X):
        Recorder.seen |= set(X[:, 0].astype(int).tolist())


def test_a_guarantee_is_set_on_samples_that_no_step_has_seen(monkeypatch):
    monkeypatch.setattr(Recorder, "seen", set())
    X, y = datasets.load("liver", return_X_y=True)
    names = np.column_stack([np.arange(len(y)), X])
    given_to = Pipeline([("note", Recorder()), ("program", MartingaleBoostClassifier(n_levels=2))])
    dialog = Dialog.from_data(names, y, committee=given_to, tune=0.4, random_state=0)
    Recorder.seen -= set(
        dialog._acceptances.certification_set.at.tolist()
    )  # asked once, for their name
    dialog.prefer("fn <= 30%", strategies=["move", "retune"])
    dialog.tune_nodes({(0, 0): "fn <= 20"})
    dialog.grow()
    assert dialog.reply.preference == Preference("fn <= 30%")
    assert not Recorder.seen & set(dialog._acceptances.certification_set.at.tolist())
    model = dialog.accept(confidence=0.8)
    part = dialog._acceptances.certification_set
    certificate = model.certificate_
    assert certificate.strategy == "grow"
    assert certificate.confusion == model.confusion(names[part.at], y[part.at])
    assert certificate.preference == "fn <= 30%"
    with pytest.raises(GuaranteeError) as refused:
        dialog.accept(*tuning_of(dialog, names, y))
    assert refused.value.code == "used_samples"


def tuning_of(dialog, X, y):
    return X[dialog._data.at], y[dialog._data.at]


def test_an_accepted_program_gives_no_training_data_away(tmp_path):
    dialog = dialog_on("liver")
    dialog.prefer("fn <= 90%", strategies=["move"])
    dialog.tune_nodes({(0, 0): "fn <= 12"})
    model = dialog.accept(confidence=0.8)
    (member,) = model.scorer_.committee.members
    assert member._samples is None
    X, _ = datasets.load("liver", return_X_y=True)
    model.save(tmp_path / "model.skops")
    again = type(model).load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    dialog.tune_nodes({(0, 0): "fn <= 5"})  # the dialog has them still
    assert isinstance(model.estimator, Pipeline)
    assert isinstance(model.estimator[0], TableEncoder)
    assert model.estimator[-1].n_levels == 3


def test_nothing_is_guaranteed_where_nothing_was_asked_of_the_whole():
    dialog = dialog_on()
    dialog.tune_nodes({(0, 0): "fn <= 12"})
    with pytest.raises(GuaranteeError, match=r"\bprefer\b"):
        dialog.accept()


# Models of one's own


def test_a_trained_program_with_samples_to_tune_on():
    X, y = datasets.load("liver", return_X_y=True)
    X, X_tune, y, y_tune = X[::2], X[1::2], y[::2], y[1::2]
    bare = MartingaleBoostClassifier(n_levels=2).fit(X, y)
    piped = make_pipeline(StandardScaler(), MartingaleBoostClassifier(n_levels=2)).fit(X, y)
    frame, names = pd.DataFrame(X), [f"c{j}" for j in range(X.shape[1])]
    frame.columns = names
    named = MartingaleBoostClassifier(n_levels=2).fit(frame, y)
    turned = pd.DataFrame(X_tune, columns=names)[names[::-1]]
    replies = []
    for model, rows in ((bare, X_tune), (piped, X_tune), (named, turned)):
        dialog = Dialog(model, rows, y_tune)
        assert dialog._data.at is None
        assert ends(dialog.program).tolist() == dialog.confusion.counts[:, :-1].tolist()
        dialog.tune_nodes({(0, 0): "fn <= 40"})
        dialog.grow()
        replies.append(dialog.reply)
        assert dialog.program.n_levels == 3
    assert replies[0].after == replies[2].after
    assert isinstance(replies[1].candidate.scorer.committee.members[0], Pipeline)
    piped = Dialog(piped, X_tune, y_tune)
    assert piped.prefer("fn <= 30", strategies=["retune"]).strategy == "retune"
    assert piped.program.n_levels == 2


def test_programs_of_other_learners_grow_but_are_not_tuned_by_nodes():
    X, y = pima()
    model = MartingaleBoostClassifier(GaussianNB(), n_levels=2)
    dialog = Dialog.from_data(X, y, committee=model, tune=0.5, random_state=0)
    assert (
        dialog.grow().after
        == Dialog.from_data(
            X, y, committee=model.set_params(n_levels=3), tune=0.5, random_state=0
        ).confusion
    )
    with pytest.raises(TypeError, match="TunableLogistic"):
        dialog.tune_nodes({(0, 0): "fn <= 10"})
    assert len(dialog.history) == 2


# Tables


def table(n=320, seed=3):
    """Columns of every kind, some cells missing, and labels."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 2, n)
    words = np.array(["offer", "lunch", "invoice", "prize", "meeting", "garden"])
    frame = pd.DataFrame(
        {
            "length": random.normal(size=n) + codes,
            "from": np.where(codes + random.normal(size=n) > 1, "shop", "friend"),
            "text": [" ".join(random.choice(words, 5)) + f" {i}" for i in range(n)],
        }
    )
    frame.loc[::7, "length"] = np.nan
    frame.loc[::11, "from"] = None
    return frame, np.where(codes, "spam", "ham")


def test_any_table_is_encoded_by_what_is_trained_on(monkeypatch):
    frame, y = table()
    seen, fit = [], TableEncoder.fit
    monkeypatch.setattr(
        TableEncoder, "fit", lambda self, X, y=None: seen.append(X) or fit(self, X, y)
    )
    dialog = Dialog.from_data(frame, y, committee="martingale", random_state=0)
    (learned,) = seen
    others = set(dialog._data.at) | set(dialog._acceptances.certification_set.at)
    assert set(learned.index) == set(range(len(y))) - others
    dialog.tune_nodes({(0, 0): "fp <= 15"})
    dialog.grow()
    dialog.prefer("fp <= 60%", strategies=["move"])
    rows = frame.iloc[dialog._data.at]
    assert dialog.model.predict(rows).shape == (dialog.confusion.n,)
    assert dialog.program is not None
    assert dialog.accept(confidence=0.8).certificate_.guarantees


def test_members_by_their_names():
    frame, y = table()
    dialog = Dialog.from_data(frame, y, committee=["logistic", "qda"], random_state=0)
    assert dialog.members == ("logistic", "qda")
    assert dialog._data.trained_on
    assert dialog.program is None
    at, part = dialog._data.at, dialog._acceptances.certification_set
    assert sorted([*at, *part.at]) == list(range(len(y)))
    reply = dialog.prefer("fp <= 20%", strategies=["move"])
    estimator = dialog.accept(confidence=0.8).estimator
    assert [name for name, _ in estimator] == ["logistic", "qda"]
    assert reply.model.predict(frame[:3]).shape == (3,)
    alone = Dialog.from_data(frame, y, committee="logistic", tune=0.5, random_state=0)
    assert alone.members == ("logistic",)
    both = Dialog.from_data(frame, y, committee=["logistic", "martingale"], levels=2, certify=None)
    assert both._data.trained_on
    assert both._data.committee.members[1].n_levels == 2


# Who sees what


def test_a_committee_may_be_judged_on_samples_kept_apart():
    X, y = pima()
    pair = [("logistic", LogisticRegression(max_iter=2000)), ("bayes", GaussianNB())]
    dialog = Dialog.from_data(X, y, committee=pair, tune=0.3, random_state=0)
    n_build = len(y) - len(dialog._acceptances.certification_set.at)
    assert abs(dialog.confusion.n - 0.3 * n_build) <= 1
    others = set(dialog._data.at) | set(dialog._acceptances.certification_set.at)
    learned = sorted(set(range(len(y))) - others)
    bayes = GaussianNB().fit(X[learned], y[learned])
    reported = dialog._data.committee.members[1]
    np.testing.assert_allclose(reported.theta_, bayes.theta_, rtol=1e-9)
    reply = dialog.prefer("fp <= 20", strategies=["move"])
    assert reply.met


@pytest.mark.parametrize("share", [0.2, 0.5, np.float64(0.7)])
def test_groups_stay_together_and_shares_are_kept(share):
    X, y = pima()
    random = np.random.default_rng(0)
    groups = random.integers(0, 150, len(y)).astype(str)
    dialog = Dialog.from_data(
        X, y, committee="martingale", tune=share, groups=groups, random_state=1
    )
    at, part = dialog._data.at, dialog._acceptances.certification_set.at
    tuned, certified = set(groups[at]), set(groups[part])
    learned = np.flatnonzero(~np.isin(groups, [*tuned, *certified]))
    (program,) = dialog._data.committee.members
    assert len(program._samples.codes) == len(learned)
    assert not tuned & certified
    assert len(at) / (len(at) + len(learned)) == pytest.approx(share, abs=0.02)
    assert np.mean(y[at] == "pos") == pytest.approx(np.mean(y == "pos"), abs=0.05)
    for training, held in dialog._data.folds:
        assert not set(groups[at][training]) & set(groups[at][held])
    dialog.tune_nodes({(0, 0): "fn <= 40%"})


def test_the_latest_are_tuned_on_and_those_after_certify():
    X, y = datasets.load("liver", return_X_y=True)
    time = np.random.default_rng(0).permutation(len(y))
    dialog = Dialog.from_data(X, y, committee="martingale", levels=2, time=time)
    at, part = dialog._data.at, dialog._acceptances.certification_set.at
    learned = split_table(X, y, tune=PROGRAM_TUNE, time=time).learned
    assert time[learned].max() < time[at].min()
    assert time[at].max() < time[part].min()
    assert dialog.prefer("fn <= 20", strategies=["retune"]).strategy == "retune", (
        "all trained on came before"
    )
    check_program(dialog, "liver", by_folds=True)


def test_the_layout_is_known_before_training():
    X, y = pima()
    made = split_table(X, y, tune=PROGRAM_TUNE, random_state=0)
    dialog = opened()
    np.testing.assert_array_equal(made.tuning, dialog._data.at)
    np.testing.assert_array_equal(made.parts.certify, dialog._acceptances.certification_set.at)
    assert len(made.learned) == len(dialog._data.committee.members[0]._samples.codes)
    shared = split_table(X, y, random_state=0)
    np.testing.assert_array_equal(shared.learned, shared.tuning)


# What is refused


def refused(call, kind, *named):
    """The call raises an error that names all of these."""
    with pytest.raises(kind) as caught:
        call()
    for one in named:
        assert one in str(caught.value)


def test_dialogs_without_a_program_say_what_is_needed():
    X, y = pima()
    line = LogisticRegression(max_iter=2000)
    program = MartingaleBoostClassifier(n_levels=2)
    dialogs = [
        Dialog(line.fit(X[::2], y[::2]), X[1::2], y[1::2]),
        Dialog.from_data(X, y, committee=program, random_state=0),  # cross-fitted
        Dialog([program.fit(X[::2], y[::2]), line.fit(X[::2], y[::2])], X[1::2], y[1::2]),
    ]
    for dialog in dialogs:
        assert dialog.program is None
        for name, call in {
            "tune_nodes": lambda at=dialog: at.tune_nodes({(0, 0): "fp <= 9"}),
            "weak_nodes": dialog.weak_nodes,
            "grow": dialog.grow,
        }.items():
            refused(call, ValueError, f"Dialog.{name}", "committee='martingale'")
        assert len(dialog.history) == 1


@pytest.mark.parametrize(
    ("wants", "kind", "named"),
    [
        ("fp <= 9", TypeError, ["str"]),
        ({}, ValueError, []),
        ({(0, 0): None}, ValueError, []),
        ({(3, 0): "fp <= 9"}, ValueError, ["(3, 0)", "(0, 0)", "(2, 0)"]),
        ({"root": "fp <= 9"}, ValueError, ["'root'", "(0, 0)", "(2, 0)"]),
    ],
)
def test_wants_that_are_none(wants, kind, named):
    dialog = opened()
    refused(lambda: dialog.tune_nodes(wants), kind, "Dialog.tune_nodes", *named)
    assert len(dialog.history) == 1


def test_what_a_node_cannot_do_is_refused_and_nothing_is_kept():
    dialog = dialog_on()
    with pytest.raises(PreferenceError, match=r"correct\(pos\) >= 900"):
        dialog.tune_nodes({(0, 0): "correct(pos) >= 900"})
    assert len(dialog.history) == 1


def test_nodes_without_samples_of_a_class_cannot_be_asked():
    dialog = dialog_on("breast_wisconsin", 6)
    askable, there = dialog.weak_nodes(1), learning(dialog.program)
    missing = [votes for votes in there if votes not in askable]
    assert missing
    wants = {missing[0]: "errors <= 0"}
    refused(lambda: dialog.tune_nodes(wants), ValueError, str(missing[0]), "weak_nodes")
    assert len(dialog.history) == 1
    reply = dialog.tune_nodes({(0, 0): "errors <= 100", missing[0]: "errors <= 0"})
    assert [votes for votes, _ in reply.node_results] == [(0, 0)]
    assert str(missing[0]) in reply.note


@pytest.mark.parametrize("levels", [0, 1.0, True, None])
def test_levels_that_are_no_count(levels):
    named = ["levels", repr(levels)]
    refused(lambda: opened().grow(levels), ValueError, "Dialog.grow", *named)
    start = {"committee": "martingale", "levels": levels}
    refused(lambda: Dialog.from_data(*pima(), **start), ValueError, "Dialog.from_data", *named)


@pytest.mark.parametrize("levels", [1000, 10**30])
def test_more_levels_than_end_in_time(levels):
    refused(lambda: opened().grow(levels), ParameterError, "levels", str(levels))
    start = {"committee": "martingale", "levels": levels + 1}
    refused(lambda: Dialog.from_data(*pima(), **start), ParameterError, "levels", str(levels + 1))


def test_a_threshold_that_is_no_number():
    refused(lambda: opened().weak_nodes("0.3"), ValueError, "threshold", "'0.3'")


@pytest.mark.parametrize("tune", [0.0, 1.0, 1, -0.5, True, "half", (X := None, X)])
def test_a_share_that_is_none(tune):
    refused(lambda: Dialog.from_data(*pima(), tune=tune), ValueError, "tune", repr(tune))


@pytest.mark.parametrize(
    ("change", "share"),
    [
        ({"tune": 0.001}, 0.001),
        ({"tune": 0.999}, 0.999),
        ({"time": "late"}, 0.4),
        ({"groups": "one"}, 0.4),
    ],
)
def test_a_class_that_would_be_missing(change, share):
    X, y = pima()
    pos = y == "pos"
    if change.get("time"):  # the certification set has few of the first class, the tuning set none
        change = {"time": np.where(pos, 1000, 0) + np.arange(len(y)), "certify": None}
    if change.get("groups"):
        change = {"groups": np.where(pos, "all", np.arange(len(y)).astype(str)), "certify": None}
    with pytest.raises(ValueError, match=rf"\btune\b.*{re.escape(str(share))}"):
        Dialog.from_data(X, y, committee="martingale", random_state=0, **change)


def test_unknown_names_of_members():
    unknown, twice = (
        lambda names=names: Dialog.from_data(*pima(), committee=names)
        for names in (["logistic", "gradient-boost"], ["logistic", "logistic"])
    )
    refused(unknown, ValueError, "committee", "'gradient-boost'", "'gradient-boosting'")
    refused(twice, ValueError, "Dialog.from_data", "'logistic'")
