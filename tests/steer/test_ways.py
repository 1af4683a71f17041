"""Ways to meet a preference: each by itself, and all of them on points they did not learn from."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from margrave import Confusion
from margrave.confusion import Preference
from margrave.martingale import TunableLogistic
from margrave.steer import Dialog, _strategies
from margrave.steer._strategies import Request, Retune, Reweigh, _rare_answer, chosen
from margrave.steer._tuning_data import Option

RANDOM = np.random.default_rng(5)
Y = RANDOM.integers(0, 2, 300)
X = RANDOM.normal(size=(300, 4)) + Y[:, None] * [1.0, 0.7, 0.3, 0.0]
TRAIN, TUNE = slice(0, 140), slice(140, 300)


@pytest.fixture(scope="module")
def material():
    members = [TunableLogistic(), GaussianNB()]
    dialog = Dialog([one.fit(X[TRAIN], Y[TRAIN]) for one in members], X[TUNE], Y[TUNE])
    return dialog._material, dialog.history[0].option


def request_for(text, material, **more):
    of, start = material
    wanted = Preference(text)
    return Request(wanted, of, of.judge(wanted), [start], **more)


# By name


def test_ways_are_chosen_by_name():
    assert [way.name for way in chosen(None, "X")] == [
        "move",
        "reject",
        "reweigh",
        "select",
        "retune",
    ]
    assert {way.name for way in chosen(["retune", "move"], "X")} == {"move", "retune"}
    assert [way.name for way in chosen("reweigh", "X")] == ["reweigh"]
    assert [way.dear for way in chosen(None, "X")] == [False, False, True, True, True]


@pytest.mark.parametrize("names", [["mov"], "mov"])
def test_a_name_that_is_none(names):
    with pytest.raises(ValueError, match=r"\bways\b.*\bmove\b.*\bretune\b.*'mov'"):
        chosen(names, "X")


@pytest.mark.parametrize("names", [["move", None], [3]])
def test_what_is_neither_a_name_nor_a_way(names):
    with pytest.raises(ValueError, match=rf"\bways\b.*\b{names[-1]}\b"):
        chosen(names, "X")


def test_a_new_way_needs_nothing_but_itself(monkeypatch):
    class Oracle:
        """The classifier one dreams of."""

        name, dear, rejects = "oracle", True, False

        def options(self, request):
            known = request.known[0]
            held = 2.0 * request.material.codes - 1
            yield Option(self.name, known.scorer, held, known.decision)

    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    assert dialog.prefer("fp <= 0, fn <= 0", ways=["move", Oracle()]).way == "oracle"
    dialog.undo()
    monkeypatch.setattr(_strategies, "WAYS", (*_strategies.WAYS, Oracle()))
    reply = dialog.prefer("fp <= 0, fn <= 0")
    assert (reply.way, reply.met) == ("oracle", True)
    assert dialog.prefer("fp <= 0, fn <= 0", ways=["oracle"]).met
    assert dialog.prefer("fp <= 0, fn <= 0", ways=["move"]).way == "move"
    with pytest.raises(ValueError, match=r"\bways\b.*\boracle\b.*'orcale'"):
        dialog.prefer("fp <= 0", ways=["orcale"])
    assert "oracle" in [curve.name for curve in dialog.frontier(dear=True).curves]


# Rejecting


@given(
    fp=st.integers(0, 6), fn=st.integers(0, 6), rejected=st.integers(1, 20), seed=st.integers(0, 99)
)
def test_no_band_of_doubt_is_better_than_the_one_found(fp, fn, rejected, seed):
    random = np.random.default_rng(seed)
    codes = np.r_[0, 1, 0, 1, random.integers(0, 2, 36)]
    scores = np.round(random.normal(size=40) + codes, 1)  # with ties
    dialog = Dialog(Scored(scores).fit(None, codes), np.arange(40.0)[:, None], codes)
    wanted = Preference(f"fp <= {fp}, fn <= {fn}, rejected <= {rejected}")
    reply = dialog.prefer(wanted)
    judge = dialog._material.judge(wanted)
    found = judge.verdict(reply.option.answers)
    cuts = [scores.min() - 1, *np.unique(scores)]
    for low, high in itertools.combinations_with_replacement(cuts, 2):
        answers = np.where(scores > high, 1, np.where(scores <= low, 0, -1))
        assert found <= judge.verdict(answers)


class Scored(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are given; samples are their positions."""

    def __init__(self, scores=None):
        self.scores = scores

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(self.scores)[np.asarray(X)[:, 0].astype(int)]

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def test_nothing_is_rejected_that_need_not_be():
    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    sizes = dialog.confusion.counts.sum(axis=1)
    reply = dialog.prefer(f"fp <= {sizes[0]}, fn <= {sizes[1]}, rejected <= 50%")
    assert reply.after.n_rejected == 0


def test_rejects_take_what_a_cut_cannot():
    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    both = "fp <= 10, fn <= 10"
    assert not dialog.prefer(both).met
    reply = dialog.prefer(f"{both}, rejected <= 60%")
    assert (reply.met, reply.way) == (True, "reject")
    assert 0 < reply.after.n_rejected <= 0.6 * reply.after.n
    lead = reply.model.decision_function(X[TUNE])
    np.testing.assert_array_equal(
        lead == 0, reply.model.predict(X[TUNE]) == reply.model.reject_label_
    )


# Weighing anew


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("fp <= 3", 1),
        ("fn <= 3", 0),
        ("fp <= 3, fn <= 30", 1),
        ("fp <= 30, fn <= 3", 0),
        ("fp <= 1%, fn <= 2", 0),
        ("recall(0) >= 99%", 1),
        ("recall(1) >= 99%", 0),
        ("precision(1) >= 95%", 1),
        ("alarms <= 10%", 1),
        ("rejected <= 10%", 1),
    ],
)
def test_which_answer_is_the_rare_one(material, text, answer):
    sizes = np.bincount(material[0].codes)
    assert sizes.min() < 100, "so that 2 of a class is more than 1 %"
    expected = 1 if text == "fp <= 1%, fn <= 2" else answer
    assert _rare_answer(request_for(text, material)) == expected


def test_weights_are_tried_for_a_committee_only(material):
    options = list(Reweigh().options(request_for("fp <= 5", material)))
    assert len(options) == 2
    assert {option.way for option in options} == {"reweigh"}
    alone = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    single = alone._material, alone.history[0].option
    assert not list(Reweigh().options(request_for("fp <= 5", single)))


@pytest.mark.parametrize("way", [Reweigh(), Retune()])
def test_a_way_that_is_stopped_offers_nothing(material, way):
    assert not list(way.options(request_for("fp <= 5", material, stopped=lambda: True)))


def test_retuning_ends_soon_after_a_stop(material):
    asked = itertools.count()
    options = Retune().options(request_for("fp <= 5", material, stopped=lambda: next(asked) > 3))
    assert not list(options)
    assert next(asked) < 15


def test_retuned_learners_are_offered_alone_and_in_their_place(material):
    alone, placed = Retune().options(request_for("fp <= 5", material))
    names = material[0].panel.names
    assert alone.scorer.panel.names == [names[0]]
    assert placed.scorer.panel.names == names
    assert placed.scorer.panel.members[1] is material[0].panel.members[1]
    assert placed.scorer.panel.members[0] is alone.scorer.panel.members[0]
    assert material[0].panel.members[0] is not alone.scorer.panel.members[0]


# Judged on points they did not learn from


def noise_members(n, count, seed):
    """Members that know nothing: their scores of samples are drawn once."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, n)
    scores = random.normal(size=(count, n))
    return [Scored(row).fit(None, labels) for row in scores], labels


def test_new_weights_are_judged_on_samples_they_were_not_learned_from():
    members, labels = noise_members(120, 40, seed=2)
    rows = np.arange(120.0)[:, None]
    dialog = Dialog(members, rows, labels)
    reply = dialog.prefer("fp <= 10", ways=["reweigh"])
    for option in (dialog.history[0].option, reply.option):
        seen, honest = option.scorer(rows), option.held
        assert roc_auc_score(labels, seen) > 0.6, "weights do learn noise"
        assert roc_auc_score(labels, honest) < 0.56


def test_retuned_learners_are_judged_on_samples_they_were_not_trained_on():
    random = np.random.default_rng(4)
    rows, labels = random.normal(size=(160, 60)), random.integers(0, 2, 160)
    dialog = Dialog.from_data(rows, labels, committee=TunableLogistic(-3.0), certify=None)
    reply = dialog.prefer("fp <= 10", ways=["retune"])
    assert reply.way == "retune"
    assert roc_auc_score(labels, reply.option.scorer(rows)) > 0.8, "a line does learn noise"
    assert abs(roc_auc_score(labels, reply.option.held) - 0.5) < 0.15


@pytest.mark.parametrize("seed", [2, 7])
def test_scores_held_out_and_scores_of_new_samples_are_on_one_scale(seed):
    """Else the cut that is set on the ones means nothing on the others."""

    def drawn(n, seed):
        random = np.random.default_rng(seed)
        labels = random.integers(0, 2, n)
        rows = random.normal(size=(n, 8))
        rows[:, :3] += labels[:, None] * [1, 0.6, 0.4]
        return rows, labels

    dialog = Dialog.from_data(*drawn(400, seed), committee=TunableLogistic(), certify=None)
    fresh, _ = drawn(4000, 999)
    reply = dialog.prefer("fp <= 5%", ways=["retune"])
    for option in (dialog.history[0].option, reply.option):
        new = option.scorer(fresh)
        quartiles = np.percentile(new, [25, 75])
        assert abs(np.median(option.held) - np.median(new)) < 0.2 * np.ptp(quartiles)


class Witness(ClassifierMixin, BaseEstimator):
    """A classifier that refuses to judge a sample it was trained or tuned on."""

    def fit(self, X, y):
        self.classes_, self.mean_ = np.unique(y), np.mean(X[:, 1])
        self.seen_ = set(X[:, 0].tolist())
        return self

    def tune(self, preference, X, y, *, positive=None, callback=None):
        assert not self.seen_ & set(X[:, 0].tolist()), "tuned on what it was trained on"
        tuned = Witness()
        tuned.classes_, tuned.mean_ = self.classes_, np.mean(X[:, 1])
        tuned.seen_ = self.seen_ | set(X[:, 0].tolist())
        return tuned

    def predict_proba(self, X):
        known = self.seen_ & set(X[:, 0].tolist())
        assert not known, f"asked about {len(known)} samples it has seen"
        p = 1 / (1 + np.exp(self.mean_ - X[:, 1]))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@pytest.mark.core
@pytest.mark.parametrize("from_data", [True, False])
def test_no_sample_is_ever_judged_by_what_has_seen_it(from_data):
    rows = np.column_stack([np.arange(300.0), X])
    members = [("witness", Witness()), ("bayes", GaussianNB())]
    if from_data:
        dialog = Dialog.from_data(rows, Y, committee=members, random_state=0)
    else:
        trained = [(name, one.fit(rows[TRAIN], Y[TRAIN])) for name, one in members]
        dialog = Dialog(trained, rows[TUNE], Y[TUNE])
    for text in ("fp <= 20%", "fn <= 5, rejected <= 10%"):
        reply = dialog.prefer(text)
        assert reply.n_options > 4
    assert dialog.prefer("fp <= 20%", ways=["retune"]).way == "retune"
    dialog.frontier(dear=True)
    if from_data:
        dialog.goto(1)
        assert dialog.accept().certificate_.asked == "fp <= 20%"


def test_an_option_tells_what_its_answers_are(material):
    option = next(iter(Reweigh().options(request_for("fp <= 5", material))))
    of = material[0]
    counted = Confusion.of(of.codes, option.answers)
    assert counted == of.judge(Preference("fp <= 5")).matrix(option.answers)
