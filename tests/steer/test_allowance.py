"""A limit is an allowance: within it, a reply has the fewest errors that are not limited."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from tests.confusion.values import value_of
from tests.examples import few

from margrave import Confusion, Preference
from margrave.confusion import PreferenceError
from margrave.steer import Dialog, UselessWarning

pytestmark = pytest.mark.core

# A table of claims, few of them frauds

CLASSES = ["fair", "fraud"]


@cache
def claims(seed=0, n=4000):
    """4,000 claims: 6.9 % are frauds, and about half of these look like fair ones."""
    rng = np.random.default_rng(seed)
    fraud = (rng.random(n) < 0.069).astype(int)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 1.6 * fraud
    X[:, 1] += 2.0 * fraud * (rng.random(n) < 0.7)
    return X, np.array(CLASSES)[fraud]


TRAIN, TUNE, CERTIFY = range(800), range(800, 2300), range(2300, 4000)
MODELS = {"logistic": LogisticRegression, "bayes": GaussianNB}


@cache
def fitted(name, seed):
    X, y = claims(seed)
    return MODELS[name]().fit(X[TRAIN], y[TRAIN])


def open_dialog(name, seed):
    X, y = claims(seed)
    return Dialog(fitted(name, seed), X[TUNE], y[TUNE])


@cache
def by_thresholds(name, seed, rows):
    """The false alarms and the missed frauds of every threshold of the model's score."""
    X, y = claims(seed)
    model, fraud = fitted(name, seed), y[rows] == "fraud"
    score = model.predict_log_proba(X[rows])
    score = score[:, 1] - score[:, 0]
    thresholds = np.append(np.unique(score), -np.inf)
    fp = (score[~fraud] > thresholds[:, None]).sum(axis=1)
    fn = (score[fraud] <= thresholds[:, None]).sum(axis=1)
    return fp, fn


def sizes(rows, seed):
    fraud = claims(seed)[1][rows] == "fraud"
    return int(np.sum(~fraud)), int(np.sum(fraud))


problems = pytest.mark.parametrize(
    ("name", "seed"), [("logistic", 0), ("logistic", 1), ("bayes", 0), ("bayes", 2)]
)


@problems
def test_the_start_has_few_false_alarms_and_misses_about_half_of_the_frauds(name, seed):
    """Else the tests below would not show what a limit with room to spare is worth."""
    start = open_dialog(name, seed).confusion
    n_fair, n_fraud = sizes(TUNE, seed)
    assert start.fp < 0.012 * n_fair
    assert 0.35 * n_fraud < start.fn < 0.7 * n_fraud


@problems
@pytest.mark.parametrize("percent", [0.3, 1, 2, 5, 20])
def test_of_the_thresholds_that_meet_fp_none_misses_fewer_frauds(name, seed, percent):
    dialog = open_dialog(name, seed)
    reply = dialog.prefer(f"fp <= {percent}%")
    fp, fn = by_thresholds(name, seed, TUNE)
    allowed = fp <= percent / 100 * sizes(TUNE, seed)[0]
    assert reply.met
    assert reply.after.fn == fn[allowed].min()
    assert reply.after.fp == fp[allowed & (fn == reply.after.fn)].min()
    if percent >= 2:
        assert reply.after.fn < dialog.history[0].after.fn


@problems
@pytest.mark.parametrize("percent", [5, 25, 60])
def test_of_the_thresholds_that_meet_fn_none_has_fewer_false_alarms(name, seed, percent):
    reply = open_dialog(name, seed).prefer(f"fn <= {percent}%")
    fp, fn = by_thresholds(name, seed, TUNE)
    allowed = fn <= percent / 100 * sizes(TUNE, seed)[1]
    assert reply.met
    assert reply.after.fp == fp[allowed].min()
    assert reply.after.fn == fn[allowed & (fp == reply.after.fp)].min()


@problems
@pytest.mark.parametrize(
    ("alarms", "precision"), [(1, None), (6, None), (None, 30), (None, 75), (4, 60), (12, 30)]
)
def test_of_the_thresholds_that_meet_alarms_and_precision_none_misses_fewer_frauds(
    name, seed, alarms, precision
):
    texts = [] if alarms is None else [f"alarms <= {alarms}%"]
    texts += [] if precision is None else [f"precision >= {precision}%"]
    reply = open_dialog(name, seed).prefer(*texts)
    fp, fn = by_thresholds(name, seed, TUNE)
    n_fair, n_fraud = sizes(TUNE, seed)
    tp = n_fraud - fn
    allowed = tp + fp > 0
    if alarms is not None:
        allowed &= 100 * (tp + fp) <= alarms * (n_fair + n_fraud)
    if precision is not None:
        allowed &= 100 * tp >= precision * (tp + fp)
    assert reply.met
    assert reply.after.fn == fn[allowed].min()


def largest_allowed(n, rate, confidence=0.95):
    """The largest number of errors among n for which a true rate above the limit is unlikely."""
    counts = np.arange(n + 1)
    return int(counts[binom.cdf(counts, n, rate) <= 1 - confidence].max())


@problems
@pytest.mark.parametrize("percent", [2, 5])
def test_certification_misses_no_more_frauds_than_the_order_statistic(name, seed, percent):
    X, y = claims(seed)
    dialog = open_dialog(name, seed)
    dialog.prefer(f"fp <= {percent}%")
    model = dialog.accept(X[CERTIFY], y[CERTIFY])
    predicted = model.predict(X[CERTIFY])
    fp, fn = by_thresholds(name, seed, CERTIFY)
    most = largest_allowed(sizes(CERTIFY, seed)[0], percent / 100)
    assert model.certificate_.confusion.fp <= most
    assert np.sum(predicted[y[CERTIFY] == "fraud"] == "fair") <= fn[fp <= most].min()


@problems
@pytest.mark.parametrize(("alarms", "precision"), [(8, 30), (6, 50), (12, 20)])
def test_a_tested_path_uses_nearly_all_that_the_certification_set_proves(
    name, seed, alarms, precision
):
    """Against all thresholds of which both tests pass; the tuning set may allow fewer alarms."""
    X, y = claims(seed)
    dialog = open_dialog(name, seed)
    dialog.prefer(f"precision >= {precision}%, alarms <= {alarms}%")
    certificate = dialog.accept(X[CERTIFY], y[CERTIFY]).certificate_
    assert certificate.route == "tested path"
    fp, fn = by_thresholds(name, seed, CERTIFY)
    tp = sizes(CERTIFY, seed)[1] - fn
    passes = binom.cdf(tp + fp, len(CERTIFY), alarms / 100) <= 0.05
    passes &= binom.sf(tp - 1, tp + fp, precision / 100) <= 0.05
    assert fn[passes].min() <= certificate.confusion.fn <= fn[passes].min() + 3


@problems
@pytest.mark.parametrize("percent", [30, 50])
def test_certification_has_no_more_false_alarms_than_the_order_statistic(name, seed, percent):
    X, y = claims(seed)
    dialog = open_dialog(name, seed)
    dialog.prefer(f"fn <= {percent}%")
    model = dialog.accept(X[CERTIFY], y[CERTIFY])
    predicted = model.predict(X[CERTIFY])
    fp, fn = by_thresholds(name, seed, CERTIFY)
    most = largest_allowed(sizes(CERTIFY, seed)[1], percent / 100)
    assert model.certificate_.confusion.fn <= most
    assert np.sum(predicted[y[CERTIFY] == "fair"] == "fraud") <= fp[fn <= most].min()


@problems
@pytest.mark.parametrize("cost", [0.5, 3, 40])
@pytest.mark.parametrize("limit", ["fp <= 20%", "fn <= 60%", "alarms <= 5%"])
def test_the_lowest_cost_is_that_of_the_best_threshold(name, seed, limit, cost):
    reply = open_dialog(name, seed).prefer(limit, then=f"lowest cost of fp + {cost} fn")
    fp, fn = by_thresholds(name, seed, TUNE)
    n_fair, n_fraud = sizes(TUNE, seed)
    alarms = n_fraud - fn + fp
    allowed = {
        "fp <= 20%": 5 * fp <= n_fair,
        "fn <= 60%": 5 * fn <= 3 * n_fraud,
        "alarms <= 5%": 20 * alarms <= n_fair + n_fraud,
    }[limit]
    allowed &= (alarms > 0) & (alarms < n_fair + n_fraud)
    assert reply.met
    assert reply.after.fp + cost * reply.after.fn == (fp + cost * fn)[allowed].min()


# A raised cell, and a request that changes nothing


def test_a_raised_number_of_errors_has_an_effect():
    dialog = open_dialog("logistic", 0)
    start = dialog.confusion
    reply = dialog.prefer(start.edit("fair", "fraud", start.fp + 20))
    assert reply.after.fp <= start.fp + 20
    assert reply.after.fn < start.fn
    assert dialog.position == 1
    again = dialog.prefer(reply.after.edit("fair", "fraud", reply.after.fp + 20))
    assert again.after.fn < reply.after.fn


def test_a_raised_number_of_errors_has_an_effect_beside_earlier_limits():
    dialog = open_dialog("logistic", 0)
    first = dialog.prefer(f"fn <= {dialog.confusion.fn // 2}")
    raised = first.after.edit("fair", "fraud", first.after.fp + 40)
    second = dialog.prefer(raised, keep=True)
    assert second.met
    assert first.preference.met(second.after)
    assert second.after.fn < first.after.fn
    fewer = second.after.edit("fraud", "fair", second.after.fn + 10)  # and now the other kind
    third = dialog.prefer(fewer, keep=True)
    assert third.met
    assert third.after.fp < second.after.fp


def test_a_further_limit_that_is_met_keeps_the_allowance():
    dialog = open_dialog("logistic", 0)
    first = dialog.prefer("fp <= 5%")
    percent = 100 * first.after.fn / (first.after.fn + first.after.tp) + 5
    second = dialog.prefer(f"fn <= {percent:.1f}%", keep=True)
    assert second.after == first.after
    assert second.goal == first.goal
    alone = dialog.prefer("fp <= 5%", f"fn <= {percent:.1f}%", at=0)  # within one request
    assert alone.after.n_errors < first.after.n_errors


@pytest.mark.parametrize("text", ["fp <= 2%", "fn <= 20%, then fewest errors", "fp <= 1, fn <= 1"])
def test_a_request_that_changes_nothing_adds_no_step_and_says_so(text):
    dialog = open_dialog("logistic", 0)
    first = dialog.prefer(text)
    assert first.note is None
    for keep in (False, True):
        repeated = dialog.prefer(text, keep=keep)
        assert repeated.note
        assert repeated.after == first.after
        assert (len(dialog.history), dialog.position) == (2, 1)
        assert dialog.reply.note is None
    other = dialog.prefer(first.preference.limits, then="lowest cost of fp + 7 fn")
    assert other.note is None
    assert len(dialog.history) == 3


# Scores with ties, of two to four classes


class GivenScores(ClassifierMixin, BaseEstimator):
    """The columns are the scores."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X):
        score = self.decision_function(X)
        return self.classes_[(score > 0).astype(int) if score.ndim == 1 else score.argmax(axis=1)]


@st.composite
def scored(draw, classes=(2, 3, 4), most=24):
    """True classes, all of which occur, and scores with ties that have to do with them."""
    k = draw(st.sampled_from(classes))
    n = draw(st.integers(2 * k, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = rng.permutation(np.arange(n) % k)
    scores = rng.integers(-3, 4, (n, k)) + draw(st.integers(0, 3)) * np.eye(k, dtype=int)[codes]
    scores = scores / 2
    return (scores[:, 1:] - scores[:, :1] if k == 2 else scores), codes


def dialog_on(data):
    scores, codes = data
    model = GivenScores().fit(scores, codes)
    return Dialog(model, scores, codes, positive=1, duplicates="independent")


def ask(dialog, *limits, **more):
    """The reply to a request that some matrix meets; other examples are not for these tests."""
    try:
        return dialog.prefer(*limits, **more)
    except PreferenceError as error:
        if error.code != "conflict":
            raise
        reject()


def limits_of(k):
    """Words with a limit, from strict to loose; all are met by some matrix."""
    a, b = st.integers(0, k - 1), st.permutations(range(k)).map(lambda order: tuple(order[:2]))
    at_most = st.one_of(
        a.map("fp({}) <= ".format),
        a.map("fn({}) <= ".format),
        a.map("alarms({}) <= ".format),
        st.just("errors <= "),
        b.map(lambda pair: f"errors({pair[0]} -> {pair[1]}) <= "),
    )
    at_least = st.one_of(
        a.map("recall({}) >= ".format), a.map("precision({}) >= ".format), st.just("accuracy >= ")
    )
    return at_most | at_least


def with_percent(word, percent):
    """A limit that is looser, the larger the percentage is."""
    return f"{word}{percent if '<=' in word else 100 - percent}%"


def unlimited(reply):
    """The classes that are never predicted, and the errors that are not limited."""
    return value_of(reply.preference, reply.after)[1:3]


@few(8)
@given(scored(), st.data(), st.integers(0, 98), st.integers(0, 98))
def test_a_looser_limit_never_has_more_errors_that_are_not_limited(data, drawn, one, other):
    k = int(data[1].max()) + 1
    strict, loose = sorted([one, other])
    words = drawn.draw(st.lists(limits_of(k), min_size=1, max_size=2, unique=True))
    rest = [with_percent(word, drawn.draw(st.integers(20, 90))) for word in words[1:]]
    dialog = dialog_on(data)
    first = ask(dialog, with_percent(words[0], strict), *rest)
    second = ask(dialog, with_percent(words[0], loose), *rest)
    if first.met:
        assert second.met
        assert unlimited(second) <= unlimited(first)


@few(8)
@given(scored(), st.data())
def test_a_further_limit_that_is_met_changes_nothing(data, drawn):
    k = int(data[1].max()) + 1
    words = drawn.draw(st.lists(limits_of(k), min_size=1, max_size=3, unique=True))
    dialog = dialog_on(data)
    first = ask(dialog, with_percent(words[0], drawn.draw(st.integers(0, 90))))
    for word in words[1:]:
        further = with_percent(word, drawn.draw(st.integers(0, 98)))
        if first.met and Preference(further).met(first.after):
            assert ask(dialog, further, keep=True).after == first.after


@few(8)
@given(scored(), st.data())
def test_the_order_of_limits_does_not_matter(data, drawn):
    k = int(data[1].max()) + 1
    words = drawn.draw(st.lists(limits_of(k), min_size=2, max_size=3, unique=True))
    limits = [with_percent(word, drawn.draw(st.integers(0, 90))) for word in words]
    dialog = dialog_on(data)
    replies = [ask(dialog, *order, at=0) for order in itertools.permutations(limits)]
    assert len({reply.after for reply in replies}) == 1


@few(8)
@given(scored(), st.data())
def test_fewest_errors_and_fewest_unlimited_errors_are_what_they_say(data, drawn):
    k = int(data[1].max()) + 1
    words = drawn.draw(st.lists(limits_of(k), min_size=1, max_size=2, unique=True))
    limits = [with_percent(word, drawn.draw(st.integers(0, 90))) for word in words]
    dialog = dialog_on(data)
    default = ask(dialog, *limits, at=0)
    fewest = ask(dialog, *limits, then="fewest errors", at=0)
    assert fewest.met == default.met
    if default.met:
        values = [value_of(default.preference, reply.after) for reply in (default, fewest)]
        assert values[0][1:3] <= values[1][1:3]
        assert (values[1][1], values[1][3]) <= (values[0][1], values[0][3])


# A class that is never predicted


def bands(scores, may_reject):
    """Predictions of all pairs of thresholds, -1 for rejected samples."""
    score = scores[:, 0]
    ends = [score.min() - 1, *np.unique(score)]
    for low, high in itertools.combinations_with_replacement(ends, 2):
        if may_reject or low == high:
            yield np.where(score > high, 1, np.where(score <= low, 0, -1))


TWO = [
    "fp <= 20%",
    "fn <= 0",
    "fp <= 0",
    "fp <= 1, fn <= 1",
    "alarms <= 10%",
    "recall >= 90%",
    "accuracy >= 60%",
    "errors <= 1",
    "rejected <= 10%",
    "rejected <= 40%",
    "rejected <= 10%, fp <= 10%",
    "rejected <= 100%, errors <= 0",
    "rejected(1) <= 40%, fn <= 0",
    "fp <= 10%, then fewest errors",
    "fp <= 50%, then lowest cost of fp + 2.5 fn",
]


@given(scored(classes=(2,)), st.sampled_from(TWO))
def test_no_pair_of_thresholds_is_better(data, text):
    """So a class is never predicted only if no other decision meets the limits."""
    scores, codes = data
    preference = Preference(text)
    reply = dialog_on(data).prefer(text)
    values = [
        value_of(preference, Confusion.of(codes, predictions, classes=[0, 1], reject_label=-1))
        for predictions in bands(scores, preference.allows_rejecting)
    ]
    assert value_of(preference, reply.after) == min(values)
    if reply.met and value_of(preference, reply.after)[1]:
        assert all(shortfall or unpredicted for shortfall, unpredicted, *_ in values)


@few(8)
@given(scored(), st.data())
def test_a_warning_names_every_class_that_is_never_predicted(data, drawn):
    k = int(data[1].max()) + 1
    word = drawn.draw(limits_of(k))
    reply = ask(dialog_on(data), with_percent(word, drawn.draw(st.integers(0, 5))))
    never = np.flatnonzero(reply.after.counts[:, :k].sum(axis=0) == 0).tolist()
    rises = reply.after.n_errors > reply.before.n_errors
    assert len(reply.warnings) == len(never) + rises
    for label in never:
        assert any(str(label) in warning for warning in reply.warnings)
        assert all(str(warning) in str(reply) for warning in reply.warnings)


@pytest.mark.parametrize("percent", [5, 10, 30])
def test_a_model_with_few_scores_does_not_reject_all_of_a_class(percent):
    """All predicted positives have one score, and they are fewer than may be rejected."""
    codes = np.repeat([0, 1], [280, 20])
    scores = np.where(np.arange(300) % 20 < 7, -2.0, -1.0)
    scores[np.arange(280, 292)] = 1.0
    scores[:3] = 1.0
    reply = dialog_on((scores[:, None], codes)).prefer(f"rejected <= {percent}%")
    assert reply.met
    assert (reply.after.counts[:, :2].sum(axis=0) > 0).all()


def test_a_class_is_never_predicted_if_the_limit_leaves_nothing_else():
    scores, codes = np.array([[3.0], [-1], [1], [-2]]), np.array([0, 0, 1, 1])
    dialog = dialog_on((scores, codes))
    reply = dialog.prefer("fp <= 0")
    assert reply.met
    assert reply.after.counts.tolist() == [[2, 0, 0], [2, 0, 0]]
    assert reply.warnings
    with pytest.raises(PreferenceError):
        dialog.prefer("fp <= 0", then="fewest fn(2)")


def test_a_class_is_never_predicted_if_nothing_else_can_be_certified():
    """Of all samples 97 % are in class 0, but only 94 % of those below the highest score."""
    scores, codes = np.repeat([1.0, 0, 0], [485, 485, 30])[:, None], np.repeat([0, 1], [970, 30])
    dialog = dialog_on((scores, codes))
    dialog.prefer("precision(0) >= 95%")
    with pytest.warns(UselessWarning):
        certificate = dialog.accept(scores, codes, anyway=True).certificate_
    assert certificate.route == "tested path"
    assert certificate.confusion.counts[:, :2].tolist() == [[970, 0], [30, 0]]
