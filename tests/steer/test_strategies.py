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
from tests.classifiers import Scored

from margrave import Confusion
from margrave.confusion import Preference
from margrave.martingale import TunableLogistic
from margrave.steer import Dialog, _strategies
from margrave.steer._strategies import Request, Retune, get_strategies
from margrave.steer._tuning_data import Candidate

RANDOM = np.random.default_rng(5)
Y = RANDOM.integers(0, 2, 300)
X = RANDOM.normal(size=(300, 4)) + Y[:, None] * [1.0, 0.7, 0.3, 0.0]
TRAIN, TUNE = slice(0, 140), slice(140, 300)


@pytest.fixture(scope="module")
def data():
    members = [TunableLogistic(), GaussianNB()]
    dialog = Dialog([one.fit(X[TRAIN], Y[TRAIN]) for one in members], X[TUNE], Y[TUNE])
    return dialog._data, dialog.history[0].candidate


def request_for(text, data, **more):
    of, start = data
    wanted = Preference(text)
    return Request(wanted, of, of.objective(wanted), [start], **more)


# By name


def test_strategies_are_chosen_by_name():
    assert [strategy.name for strategy in get_strategies(None, "X")] == ["move", "reject"]
    assert {strategy.name for strategy in get_strategies(["retune", "move"], "X")} == {
        "move",
        "retune",
    }
    assert [strategy.name for strategy in get_strategies("retune", "X")] == ["retune"]
    everything = get_strategies(["move", "reject", "retune"], "X")
    assert [strategy.slow for strategy in everything] == [False, False, True]


@pytest.mark.parametrize("names", [["mov"], "mov"])
def test_a_name_that_is_none(names):
    with pytest.raises(ValueError, match=r"\bstrategies\b.*\bmove\b.*\bretune\b.*'mov'"):
        get_strategies(names, "X")


@pytest.mark.parametrize("names", [["move", None], [3]])
def test_what_is_neither_a_name_nor_a_strategy(names):
    with pytest.raises(ValueError, match=rf"\bstrategies\b.*\b{names[-1]}\b"):
        get_strategies(names, "X")


def test_a_new_strategy_needs_nothing_but_itself(monkeypatch):
    class Oracle:
        """The classifier one dreams of."""

        name, slow, rejects = "oracle", True, False

        def candidates(self, request):
            known = request.known[0]
            held = 2.0 * request.data.codes - 1
            yield Candidate(self.name, known.scorer, held, known.decision)

    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    assert dialog.prefer("fp <= 0, fn <= 0", strategies=["move", Oracle()]).strategy == "oracle"
    dialog.undo()
    monkeypatch.setattr(_strategies, "STRATEGIES", (*_strategies.STRATEGIES, Oracle()))
    assert dialog.prefer("fp <= 0, fn <= 0").strategy == "move"
    reply = dialog.prefer("fp <= 0, fn <= 0", strategies=["oracle"])
    assert (reply.strategy, reply.met) == ("oracle", True)
    assert dialog.prefer("fp <= 0, fn <= 0", strategies=["move"]).strategy == "move"
    with pytest.raises(ValueError, match=r"\bstrategies\b.*\boracle\b.*'orcale'"):
        dialog.prefer("fp <= 0", strategies=["orcale"])


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
    objective = dialog._data.objective(wanted)
    found = objective.evaluate(reply.candidate.predictions)
    thresholds = [scores.min() - 1, *np.unique(scores)]
    for low, high in itertools.combinations_with_replacement(thresholds, 2):
        answers = np.where(scores > high, 1, np.where(scores <= low, 0, -1))
        assert found <= objective.evaluate(answers)


def test_samples_are_rejected_only_if_errors_become_fewer():
    apart = X + 20.0 * Y[:, None]
    dialog = Dialog(LogisticRegression().fit(apart[TRAIN], Y[TRAIN]), apart[TUNE], Y[TUNE])
    reply = dialog.prefer("rejected <= 50%")
    assert (reply.after.n_rejected, reply.after.accuracy) == (0, 1)
    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    few, many = (dialog.prefer(f"rejected <= {limit}%").after for limit in (5, 50))
    assert 0 < few.n_rejected < many.n_rejected
    assert (
        many.fp + many.fn
        < few.fp + few.fn
        < dialog.history[0].after.fp + dialog.history[0].after.fn
    )


def test_rejects_take_what_a_threshold_cannot():
    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    both = "fp <= 10, fn <= 10"
    assert not dialog.prefer(both).met
    reply = dialog.prefer(f"{both}, rejected <= 60%")
    assert (reply.met, reply.strategy) == (True, "reject")
    assert 0 < reply.after.n_rejected <= 0.6 * reply.after.n
    lead = reply.model.decision_function(X[TUNE])
    np.testing.assert_array_equal(
        lead == 0, reply.model.predict(X[TUNE]) == reply.model.reject_label_
    )


# Retuning


def test_a_strategy_that_is_stopped_offers_nothing(data):
    assert not list(Retune().candidates(request_for("fp <= 5", data, stopped=lambda: True)))


def test_retuning_ends_soon_after_a_stop(data):
    asked = itertools.count()
    candidates = Retune().candidates(request_for("fp <= 5", data, stopped=lambda: next(asked) > 3))
    assert not list(candidates)
    assert next(asked) < 15


def test_retuned_learners_are_offered_alone_and_in_their_place(data):
    alone, placed = Retune().candidates(request_for("fp <= 5", data))
    names = data[0].committee.names
    assert alone.scorer.committee.names == [names[0]]
    assert placed.scorer.committee.names == names
    assert placed.scorer.committee.members[1] is data[0].committee.members[1]
    assert placed.scorer.committee.members[0] is alone.scorer.committee.members[0]
    assert data[0].committee.members[0] is not alone.scorer.committee.members[0]


# Judged on points they did not learn from


def noise_members(n, count, seed):
    """Members that know nothing: their scores of samples are drawn once."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, n)
    scores = random.normal(size=(count, n))
    return [Scored(row).fit(None, labels) for row in scores], labels


@pytest.mark.core
def test_weights_are_judged_on_samples_they_were_not_learned_from():
    members, labels = noise_members(120, 40, seed=2)
    rows = np.arange(120.0)[:, None]
    candidate = Dialog(members, rows, labels).history[0].candidate
    seen, honest = candidate.scorer(rows), candidate.scores
    assert roc_auc_score(labels, seen) > 0.6, "weights do learn noise"
    assert roc_auc_score(labels, honest) < 0.56


def test_retuned_learners_are_judged_on_samples_they_were_not_trained_on():
    random = np.random.default_rng(4)
    rows, labels = random.normal(size=(160, 60)), random.integers(0, 2, 160)
    dialog = Dialog.from_data(rows, labels, committee=TunableLogistic(-3.0), certify=None)
    reply = dialog.prefer("fp <= 10", strategies=["retune"])
    assert reply.strategy == "retune"
    assert roc_auc_score(labels, reply.candidate.scorer(rows)) > 0.8, "a line does learn noise"
    assert abs(roc_auc_score(labels, reply.candidate.scores) - 0.5) < 0.15


@pytest.mark.parametrize("seed", [2, 7])
def test_scores_held_out_and_scores_of_new_samples_are_on_one_scale(seed):
    """Else the threshold that is set on the ones means nothing on the others."""

    def drawn(n, seed):
        random = np.random.default_rng(seed)
        labels = random.integers(0, 2, n)
        rows = random.normal(size=(n, 8))
        rows[:, :3] += labels[:, None] * [1, 0.6, 0.4]
        return rows, labels

    dialog = Dialog.from_data(*drawn(400, seed), committee=TunableLogistic(), certify=None)
    fresh, _ = drawn(4000, 999)
    reply = dialog.prefer("fp <= 5%", strategies=["retune"])
    for candidate in (dialog.history[0].candidate, reply.candidate):
        new = candidate.scorer(fresh)
        quartiles = np.percentile(new, [25, 75])
        assert abs(np.median(candidate.scores) - np.median(new)) < 0.2 * np.ptp(quartiles)


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
        reply = dialog.prefer(text, strategies=["move", "reject", "retune"])
        assert reply.n_candidates >= 3
    assert dialog.prefer("fp <= 20%", strategies=["retune"]).strategy == "retune"
    dialog.frontier()
    if from_data:
        dialog.goto(1)
        assert dialog.accept().certificate_.requested == "fp <= 20%"


def test_an_candidate_tells_what_its_answers_are(data):
    candidate = next(iter(Retune().candidates(request_for("fp <= 5", data))))
    of = data[0]
    counted = Confusion.of(of.codes, candidate.predictions)
    assert counted == of.objective(Preference("fp <= 5")).matrix(candidate.predictions)
