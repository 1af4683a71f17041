"""A dialog over trained models: its matrix is the model's, and every reply can be checked."""

import copy
import itertools
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from tests.examples import few

from margrave import Confusion, ParameterError, Preference
from margrave.confusion import Objective, PreferenceError
from margrave.fuse import RankMarginClassifier, VoteClassifier
from margrave.martingale import MartingaleBoostClassifier, TunableLogistic
from margrave.steer import Dialog, GuaranteeError

N = 240


def blobs(n=3 * N, k=2, seed=0):
    """Classes that overlap, codes 0, 1, ..."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, k, n)
    X = random.normal(size=(n, 4))
    X[np.arange(n), codes] += 1.3
    return X, codes


X, CODES = blobs()
TRAIN, TUNE, FRESH = (slice(i * N, (i + 1) * N) for i in range(3))
WORDS = np.array(["ham", "spam"])
Y = WORDS[CODES]
X3, CODES3 = blobs(k=3, seed=1)
Y3 = np.array(["ash", "birch", "cedar"])[CODES3]


class LabelsOnly(ClassifierMixin, BaseEstimator):
    """A classifier that can say nothing but labels."""

    def fit(self, X, y):
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)


def pair():
    return [("logistic", LogisticRegression()), ("bayes", GaussianNB())]


MODELS = {
    "logistic": LogisticRegression,
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "svc": lambda: SVC(C=0.5),
    "labels": LabelsOnly,
    "search": lambda: GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    "rank-margin": lambda: RankMarginClassifier(pair()),
    "martingale": lambda: MartingaleBoostClassifier(n_levels=4),
    "tunable": TunableLogistic,
}


@pytest.fixture(scope="module")
def opened():
    """Dialogs by the name of the model, made once; each test gets its own copy."""
    made = {}

    def dialog(name):
        if name not in made:
            model = MODELS[name]().fit(X[TRAIN], Y[TRAIN])
            made[name] = Dialog(model, X[TUNE], Y[TUNE]), model
        return copy.deepcopy(made[name])

    return dialog


@pytest.fixture(scope="module")
def committee():
    return [(name, one.fit(X[TRAIN], Y[TRAIN])) for name, one in [*pair(), ("svc", SVC())]]


def value(wanted, matrix):
    """How good a matrix is, on the judge's scale."""
    objective = Objective(wanted, np.arange(len(matrix.classes)), matrix.classes, matrix.positive)
    return tuple(float(of[0]) for of in objective.evaluate_counts(matrix.counts[None]))


def check_reply(reply, wanted):
    """What must be true of any reply."""
    assert reply.preference == wanted
    assert reply.met == wanted.met(reply.after)
    assert (reply.nearest is None) == reply.met
    assert reply.nearest in (None, reply.after)
    assert (reply.shortfall == 0) == reply.met
    assert reply.binding in wanted.all_bounds
    assert reply.after.n == reply.before.n
    moved = reply.after.counts - reply.before.counts
    np.fill_diagonal(moved[:, :-1], 0)
    reported = np.zeros_like(moved)
    places = {label: i for i, label in enumerate(reply.after.classes)} | {None: moved.shape[0]}
    for change in reply.changes:
        reported[places[change.true], places[change.predicted]] = change.after - change.before
        assert str(change.before) in str(change)
    np.testing.assert_array_equal(reported, moved)
    assert str(wanted) in str(reply)
    assert str(reply) != str(replace(reply, met=not reply.met))


# The start


@pytest.mark.parametrize("name", MODELS)
def test_the_start_is_the_matrix_of_the_model_as_it_is(opened, name):
    dialog, model = opened(name)
    assert dialog.confusion == Confusion.of(Y[TUNE], model.predict(X[TUNE]))
    assert dialog.reply.strategy == "start"
    assert dialog.reply.preference is None
    assert dialog.reply.met
    assert dialog.position == 0
    assert dialog.classes == ("ham", "spam")
    np.testing.assert_array_equal(dialog.model.predict(X[FRESH]), model.predict(X[FRESH]))


@pytest.mark.parametrize(
    "labels",
    [["no", "yes"], [3, 7], [False, True], [-1.0, 2.0], [np.str_("a"), np.str_("b")]],
    ids=["words", "ints", "bools", "floats", "numpy words"],
)
def test_labels_of_every_kind(labels):
    y = np.array(labels)[CODES]
    model = LogisticRegression().fit(X[TRAIN], y[TRAIN])
    dialog = Dialog(model, X[TUNE], y[TUNE].tolist())
    assert dialog.confusion == Confusion.of(y[TUNE], model.predict(X[TUNE]))
    assert dialog.classes == tuple(y.dtype.type(label) for label in labels)
    reply = dialog.prefer("fp <= 7, rejected <= 10%")
    check_reply(reply, Preference("fp <= 7, rejected <= 10%"))
    assert reply.model.predict(X[TUNE]).tolist().count(reply.model.reject_label_) == (
        reply.after.n_rejected
    )
    edited = dialog.prefer(dialog.confusion.edit(labels[1], labels[1], 60))
    assert edited.met
    assert edited.after[labels[1], labels[1]] >= 60


def test_three_classes_have_no_positive_one_unless_it_is_named():
    model = LogisticRegression().fit(X3[TRAIN], Y3[TRAIN])
    dialog = Dialog(model, X3[TUNE], Y3[TUNE])
    assert dialog.confusion == Confusion.of(Y3[TUNE], model.predict(X3[TUNE]))
    with pytest.raises(PreferenceError, match=r"fp <= 5.*\b3\b"):
        dialog.prefer("fp <= 5")
    with pytest.raises(ValueError, match=r"Dialog\.frontier.*\bpositive\b"):
        dialog.frontier()
    reply = dialog.prefer("errors(ash -> birch) <= 3")
    check_reply(reply, Preference("errors(ash -> birch) <= 3"))
    assert reply.met
    assert reply.after["ash", "birch"] <= 3
    named = Dialog(model, X3[TUNE], Y3[TUNE], positive="birch")
    assert named.prefer("fp <= 3").after.fp <= 3
    assert named.frontier().positive == "birch"


def test_the_first_class_may_be_the_positive_one(opened):
    dialog, model = opened("logistic")
    turned = Dialog(model, X[TUNE], Y[TUNE], positive="ham")
    assert turned.confusion.counts.tolist() == dialog.confusion.counts.tolist()
    assert (turned.confusion.fp, turned.confusion.fn) == (dialog.confusion.fn, dialog.confusion.fp)
    one, other = turned.prefer("fp <= 9").after, dialog.prefer("fn <= 9").after
    assert one.counts.tolist() == other.counts.tolist()
    limit = dialog.confusion.fn
    assert turned.frontier().least_fn(limit)[0] == dialog.frontier().least_fp(limit)[0]


def test_a_committee_is_weighted_and_named(committee):
    dialog = Dialog(committee, X[TUNE], Y[TUNE])
    assert dialog.members == ("logistic", "bayes", "svc")
    assert all(name in repr(dialog) for name in dialog.members)
    assert str(N) in repr(dialog)
    assert str(dialog).endswith(str(dialog.confusion))
    assert Dialog([one for _, one in committee], X[TUNE], Y[TUNE]).members == (
        "logisticregression",
        "gaussiannb",
        "svc",
    )
    assert dialog.confusion.accuracy > 0.7


TUNABLE = [("tunable", TunableLogistic()), ("bayes", GaussianNB())]


@pytest.mark.parametrize(
    "model", [VoteClassifier(TUNABLE), RankMarginClassifier(TUNABLE)], ids=["vote", "rank margin"]
)
def test_the_members_of_a_fused_committee_may_be_retuned(model):
    model = model.fit(X[TRAIN], Y[TRAIN])
    dialog = Dialog(model, X[TUNE], Y[TUNE])
    assert dialog.members == ("tunable", "bayes")
    reply = dialog.prefer("fp <= 6", strategies=["retune"])
    check_reply(reply, Preference("fp <= 6"))
    assert reply.strategy == "retune"
    assert set(reply.model.predict(X[FRESH])) == {"ham", "spam"}


def test_members_that_know_different_classes():
    few = CODES3[TRAIN] < 2
    known = LogisticRegression().fit(X3[TRAIN][few], Y3[TRAIN][few])
    dialog = Dialog([known, GaussianNB().fit(X3[TRAIN], Y3[TRAIN])], X3[TUNE], Y3[TUNE])
    assert dialog.classes == ("ash", "birch", "cedar")
    reply = dialog.prefer("errors(cedar -> ash) <= 4")
    assert reply.met
    assert set(reply.model.predict(X3[FRESH])) <= set(dialog.classes)


def test_a_tunable_member_that_lacks_a_class_does_not_end_the_request():
    few = CODES3[TRAIN] < 2
    known = TunableLogistic().fit(X3[TRAIN][few], Y3[TRAIN][few])
    dialog = Dialog([known, GaussianNB().fit(X3[TRAIN], Y3[TRAIN])], X3[TUNE], Y3[TUNE])
    assert dialog.prefer("errors(cedar -> ash) <= 4").met


def test_data_frames_by_the_names_of_their_columns():
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    model = LogisticRegression().fit(frame[TRAIN], Y[TRAIN])
    dialog = Dialog(model, frame[TUNE], Y[TUNE])
    assert dialog.confusion == Confusion.of(Y[TUNE], model.predict(frame[TUNE]))
    reply = dialog.prefer("fn <= 9")
    assert reply.model.confusion(frame[TUNE], Y[TUNE]) == reply.after
    assert reply.model.feature_names_in_.tolist() == names


@pytest.mark.parametrize("learner", [LogisticRegression, TunableLogistic])
def test_a_tuning_frame_in_another_order_is_put_in_order(learner):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    turned = frame[["d", "c", "b", "a"]]
    model = learner().fit(frame[TRAIN], Y[TRAIN])
    replies = [Dialog(model, one[TUNE], Y[TUNE]).prefer("fn <= 9") for one in (frame, turned)]
    assert replies[0].after == replies[1].after
    assert replies[1].after.fn <= 9
    with pytest.raises(ValueError, match="in the same order"):  # as scikit-learn has it
        replies[1].model.predict(turned[TUNE])


def test_sparse_samples_where_the_model_takes_them():
    rows = scipy.sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0))
    model = LogisticRegression().fit(rows[TRAIN], Y[TRAIN])
    dialog = Dialog(model, rows[TUNE], Y[TUNE])
    reply = dialog.prefer("fp <= 8")
    assert reply.after == reply.model.confusion(rows[TUNE], Y[TUNE])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"positive": "eggs"}, r"\bpositive\b.*'eggs'"),
        ({"groups": [1, 2]}, r"\bgroups\b.*\(2,\)"),
        ({"groups": np.r_[np.nan, np.arange(N - 1.0)]}, r"\bgroups\b"),
        ({"y_tune": np.where(np.arange(N) == 3, "eggs", Y[TUNE])}, r"\by\b.*'eggs'"),
        ({"model": []}, r"Dialog.*\bmember"),
    ],
    ids=["positive", "groups", "missing group", "label", "no member"],
)
def test_what_a_dialog_cannot_begin_with(change, match):
    given_to = {"model": LogisticRegression().fit(X[TRAIN], Y[TRAIN])}
    given_to |= {"X_tune": X[TUNE], "y_tune": Y[TUNE]} | change
    with pytest.raises(ValueError, match=match):
        Dialog(**given_to)


def test_lengths_that_differ_are_refused():
    model = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Dialog(model, X[TUNE], Y[TUNE][:-1])


def test_a_model_that_is_not_trained_is_refused():
    with pytest.raises(ValueError, match="LogisticRegression"):
        Dialog(LogisticRegression(), X[TUNE], Y[TUNE])


def test_a_class_without_tuning_samples_is_refused_with_its_name():
    """Its mistakes would be invisible, and what is learned from its samples would fail."""
    model = LogisticRegression().fit(X3[TRAIN], Y3[TRAIN])
    kept = CODES3[TUNE] != 1
    with pytest.raises(ValueError, match="birch"):
        Dialog(model, X3[TUNE][kept], Y3[TUNE][kept])


def test_a_committee_without_tuning_samples_of_a_class_is_refused_with_its_name(committee):
    kept = CODES[TUNE] == 0
    with pytest.raises(ValueError, match="spam"):
        Dialog(committee, X[TUNE][kept], Y[TUNE][kept])


@pytest.mark.parametrize("n_groups", [2, 3, 4, 40])
def test_few_groups_are_kept_together_in_fewer_folds(committee, n_groups):
    groups = np.arange(N) % n_groups
    dialog = Dialog(committee, X[TUNE], Y[TUNE], groups=groups)
    for training, held in dialog._data.folds:
        assert not set(groups[training]) & set(groups[held])


# Requests

COUNTS = st.integers(0, 60)
SHARES = st.integers(0, 100)
BOUNDS = st.one_of(
    COUNTS.map("fp <= {}".format),
    COUNTS.map("fn <= {}".format),
    SHARES.map("fp <= {}%".format),
    SHARES.map("recall(spam) >= {}%".format),
    SHARES.map("recall(ham) >= {}%".format),
    SHARES.map("precision(spam) >= {}%".format),
    SHARES.map("accuracy >= {}%".format),
    SHARES.map("alarms <= {}%".format),
    COUNTS.map("errors <= {}".format),
    COUNTS.map("correct(spam) >= {}".format),
)
REJECTS = st.one_of(
    st.just(""), SHARES.map(", rejected <= {}%".format), COUNTS.map(", rejected(ham) <= {}".format)
)


def wanted_from(bounds, rejects):
    """A preference that can be met by some matrix of the tuning samples, or None."""
    try:
        wanted = Preference(", ".join(bounds) + rejects)
        wanted.check(Confusion.of(Y[TUNE], Y[TUNE]))
    except PreferenceError:
        return None
    return wanted


@pytest.mark.core
@pytest.mark.parametrize("name", ["logistic", "labels"])
@given(bounds=st.lists(BOUNDS, min_size=1, max_size=3), rejects=REJECTS)
def test_any_request_is_answered_truly_and_no_threshold_would_be_better(
    opened, name, bounds, rejects
):
    wanted = wanted_from(bounds, rejects)
    if wanted is None:
        return
    dialog, _ = opened(name)
    before = dialog.confusion
    reply = dialog.prefer(wanted)
    check_reply(reply, wanted)
    assert reply is dialog.reply
    assert reply.before == before
    assert reply.final
    assert not reply.cancelled
    assert reply.strategy in ("move", "reject")
    model = reply.model
    assert reply.after == Confusion.of(
        Y[TUNE], model.predict(X[TUNE]), classes=WORDS.tolist(), reject_label=model.reject_label_
    )
    scores, spam = dialog.history[0].candidate.scores, CODES[TUNE] == 1
    thresholds = np.r_[scores.min() - 1, np.unique(scores)]
    called = scores > thresholds[:, None]
    counts = np.array(
        [[(answer & of).sum(axis=1) for answer in (~called, called)] for of in (~spam, spam)]
    ).transpose(2, 0, 1)
    objective = Objective(wanted, CODES[TUNE], ("ham", "spam"), "spam")
    thresholds = zip(*objective.evaluate_counts(counts), strict=True)
    assert value(wanted, reply.after) <= min(
        tuple(map(float, threshold)) for threshold in thresholds
    )


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("text", ["fn <= 8", "fp <= 5, rejected <= 15%", "precision(spam) >= 95%"])
def test_a_reply_is_never_worse_than_the_moved_threshold_alone(opened, name, text):
    dialog, _ = opened(name)
    wanted = Preference(text)
    alone = copy.deepcopy(dialog).prefer(wanted, strategies=["move"])
    assert alone.strategy == "move"
    assert alone.after == alone.model.confusion(X[TUNE], Y[TUNE])
    reply = dialog.prefer(wanted)
    check_reply(reply, wanted)
    assert value(wanted, reply.after) <= value(wanted, alone.after)
    if reply.strategy in ("move", "reject"):
        assert reply.after == reply.model.confusion(X[TUNE], Y[TUNE])


@few(15)
@given(a=st.integers(0, 30), b=st.integers(0, 30), rejected=st.sampled_from(["", "10%", "0"]))
def test_three_classes_are_answered_truly(three, a, b, rejected):
    text = f"errors(ash -> birch) <= {a}, fn(cedar) <= {b}"
    wanted = Preference(text + (f", rejected <= {rejected}" if rejected else ""))
    dialog = copy.deepcopy(three)
    reply = dialog.prefer(wanted)
    check_reply(reply, wanted)
    assert reply.after == reply.model.confusion(X3[TUNE], Y3[TUNE])
    assert value(wanted, reply.after) <= value(wanted, reply.before)


@pytest.fixture(scope="module")
def three():
    return Dialog(GaussianNB().fit(X3[TRAIN], Y3[TRAIN]), X3[TUNE], Y3[TUNE])


def test_an_allowance_is_used_only_for_fewer_other_errors(opened):
    dialog, _ = opened("logistic")
    negatives = int(dialog.confusion.counts[0].sum())
    reply = dialog.prefer(f"fp <= {negatives}")
    curve = dialog.frontier().curves[0]
    both = curve.fp < negatives  # a threshold below all scores predicts no negative
    fewest = curve.fn[both].min()
    assert reply.after.fn == fewest
    assert reply.after.fp == curve.fp[both & (curve.fn == fewest)].min()
    fewest_errors = dialog.prefer(f"fp <= {negatives}", then="fewest errors").after
    assert fewest_errors.n_errors == (curve.fp + curve.fn).min()
    with pytest.raises(PreferenceError, match=rf"\b{negatives}\b"):
        dialog.prefer(f"fp <= {negatives + 1}")


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("to", [20, "8%"])
def test_an_edited_cell_of_rejected_samples_rejects_close_calls(k, to):
    rng = np.random.default_rng(k)
    codes = rng.integers(0, k, 900)
    points = rng.normal(size=(900, 3)) + 1.5 * np.eye(3)[codes]
    labels = np.array(["ash", "birch", "spam"][-k:])[codes]
    model = LogisticRegression().fit(points[:400], labels[:400])
    dialog = Dialog(model, points[400:], labels[400:])
    before = dialog.confusion
    reply = dialog.prefer(before.edit("spam", None, to))
    assert (reply.strategy, reply.met) == ("reject", True)
    rejected, sizes = reply.after.counts[:, -1], before.counts.sum(axis=1)
    for of in (slice(-1, None), slice(-1)):  # of spam, and of all others together
        assert rejected[of].sum() <= (to if isinstance(to, int) else 0.08 * sizes[of].sum())
    assert (rejected > 0).all()
    assert reply.after.n - reply.after.n_rejected - np.trace(reply.after.counts) < before.n - (
        np.trace(before.counts)
    )
    # The rejected samples are the closest to the threshold.
    scores, decision = reply.candidate.scores, reply.candidate.decision
    is_rejected = reply.candidate.predictions == -1
    if k == 2:
        assert (is_rejected == ((scores > decision.low) & (scores <= decision.high))).all()
        best = dialog.prefer("fp <= 100%", strategies=["move"]).candidate.decision.high
        assert decision.low <= best <= decision.high
    else:
        ordered = np.sort(scores + decision.offset, axis=1)
        lead = ordered[:, -1] - ordered[:, -2]
        assert lead[is_rejected].max() < lead[~is_rejected].min()


def test_asking_again_changes_nothing(opened):
    dialog, _ = opened("tunable")
    first = dialog.prefer("fn <= 12")
    second = dialog.prefer("fn <= 12")
    assert second.after == first.after
    assert second.changes == ()
    assert second.before == first.after
    assert second.note is not None
    assert dialog.reply is first
    assert len(dialog.history) == 2
    dialog.goto(0)
    assert dialog.prefer("fn <= 12", at=1).note is not None
    assert dialog.position == 1


def test_a_request_out_of_reach_gets_the_nearest(opened):
    dialog, _ = opened("logistic")
    wanted = Preference("fp <= 0, fn <= 0")
    reply = dialog.prefer(wanted)
    check_reply(reply, wanted)
    assert not reply.met
    assert reply.shortfall == reply.after.fp + reply.after.fn
    scores, positive = dialog.history[0].candidate.scores, CODES[TUNE] == 1
    fewest = min(((scores > threshold) != positive).sum() for threshold in scores)
    assert reply.shortfall == fewest
    assert re.search(rf"\b{reply.shortfall:g}\b", str(reply).splitlines()[0])


@pytest.mark.parametrize(
    ("wants", "kind", "match"),
    [
        ([], PreferenceError, r"Dialog\.prefer"),
        (["fp <= 5, fp >= 6"], PreferenceError, "'fp <= 5'.*'fp >= 6'"),
        (
            ["fp <= 5", "accuracy >= 50%, accuracy <= 40%"],
            PreferenceError,
            "'accuracy >= 50%'.*'accuracy <= 40%'",
        ),
        (["fp(eggs) <= 5"], PreferenceError, r"'eggs'.*\bham\b.*\bspam\b"),
        (["correct(spam) >= 100000"], PreferenceError, "100000"),
        (["fp <= 5, nonsense <= 6"], PreferenceError, "'nonsense'"),
        ([5], TypeError, r"\bPreference\b.*\b5\b"),
    ],
)
def test_requests_that_make_no_sense_leave_the_history_as_it_is(opened, wants, kind, match):
    dialog, _ = opened("logistic")
    dialog.prefer("fp <= 9", strategies=["move"])
    dialog.undo()
    with pytest.raises(kind, match=match):
        dialog.prefer(*wants)
    assert (len(dialog.history), dialog.position) == (2, 0)
    dialog.redo()


def test_strategies_restrict_what_is_tried(opened):
    dialog, _ = opened("tunable")
    wanted = "fp <= 5, rejected <= 10%"
    for strategy in ("move", "reject", "retune"):
        assert dialog.prefer(wanted, strategies=[strategy]).strategy == strategy
    assert dialog.prefer(wanted, strategies="move").strategy == "move"
    assert dialog.prefer(wanted, strategies=("move",)).after.n_rejected == 0
    # Nobody but "reject" may reject, though the preference allows it.
    assert dialog.prefer(wanted, strategies=["retune"]).after.n_rejected == 0


@pytest.mark.parametrize(
    ("strategies", "match"),
    [
        (["move", "retnue"], r"\bstrategies\b.*'retnue'.*'retune'"),
        ([], r"Dialog\.prefer"),
        (["reject"], r"fp <= 5.*\breject\b"),
        (["reject", "retune"], r"fp <= 5.*\breject\b.*\bretune\b"),
    ],
)
def test_strategies_that_cannot_be_gone(opened, strategies, match):
    dialog, _ = opened("logistic")
    with pytest.raises(ValueError, match=match):
        dialog.prefer("fp <= 5", strategies=strategies)
    assert len(dialog.history) == 1


@pytest.mark.parametrize("steps", [["m"], ["s", "m"]], ids=["one step", "two steps"])
def test_a_tunable_learner_at_the_end_of_a_pipeline_is_tuned(steps):
    known = {"s": ("s", StandardScaler()), "m": ("m", TunableLogistic())}
    model = Pipeline([known[step] for step in steps]).fit(X[TRAIN], Y[TRAIN])
    dialog = Dialog(model, X[TUNE], Y[TUNE])
    reply = dialog.prefer("fp <= 9", strategies=["retune"])
    check_reply(reply, Preference("fp <= 9"))
    assert reply.strategy == "retune"
    assert reply.model.predict(X[FRESH]).shape == (N,)


@pytest.mark.parametrize("name", ["tunable", "martingale"])
def test_retuning_makes_another_model(opened, name):
    dialog, model = opened(name)
    reply = dialog.prefer("fn <= 8", strategies=["retune"])
    (tuned,) = reply.model.scorer_.committee.members
    assert type(tuned) is type(model)
    assert tuned is not model
    untouched = model.predict_proba(X[FRESH])
    np.testing.assert_array_equal(
        dialog.history[0].model.predict(X[FRESH]), model.predict(X[FRESH])
    )
    assert not np.allclose(tuned.predict_proba(X[FRESH]), untouched)


# Keeping what was asked


def test_keep_adds_to_what_was_asked_where_the_dialog_stands(opened):
    dialog, _ = opened("logistic")
    dialog.prefer("fp <= 30, recall(ham) >= 50%", strategies=["move"])
    assert str(dialog.prefer("fn <= 20", keep=True).preference) == (
        "fp <= 30, recall(ham) >= 50%, fn <= 20, then fewest fn"
    )
    assert str(dialog.prefer("fp <= 25", keep=True).preference) == (
        "recall(ham) >= 50%, fn <= 20, fp <= 25, then fewest fn"
    )
    assert str(dialog.prefer("fp <= 25").preference) == "fp <= 25"
    dialog.goto(1)
    assert str(dialog.prefer("fn <= 9", keep=True).preference) == (
        "fp <= 30, recall(ham) >= 50%, fn <= 9, then fewest fn"
    )


def test_keep_at_the_start_keeps_nothing(opened):
    dialog, _ = opened("logistic")
    assert str(dialog.prefer("fn <= 9", keep=True).preference) == "fn <= 9"


def test_what_is_kept_may_contradict_what_is_new(opened):
    dialog, _ = opened("logistic")
    dialog.prefer("recall(ham) >= 99%", strategies=["move"])
    with pytest.raises(PreferenceError, match=r"correct\(ham\) <= 5"):
        dialog.prefer("correct(ham) <= 5", keep=True)
    assert dialog.position == 1
    assert dialog.prefer("correct(ham) <= 5").met


@pytest.mark.parametrize(
    ("cell", "to"), [(("ham", "spam"), 4), (("spam", "ham"), "5%"), (("spam", "spam"), "90%")]
)
def test_edits_of_the_matrix_are_requests(opened, cell, to):
    dialog, _ = opened("logistic")
    edited = dialog.confusion.edit(*cell, to)
    reply = dialog.prefer(edited)
    check_reply(reply, edited)
    assert reply.met
    size = sum(reply.after[cell[0], answer] for answer in (*WORDS.tolist(), None))
    limit = float(to[:-1]) / 100 * size if isinstance(to, str) else to
    count = reply.after[cell]
    assert count >= limit if cell[0] == cell[1] else count <= limit


@pytest.mark.parametrize("label", ["ham", "spam"])
def test_an_edit_of_the_rejected_column_rejects_close_calls(opened, label):
    dialog, _ = opened("logistic")
    before = dialog.confusion
    reply = dialog.prefer(before.edit(label, None, 20))
    assert reply.met
    assert reply.strategy == "reject"
    rejected = [reply.after[true, None] for true in dialog.classes]
    assert 0 < max(rejected) <= 20
    assert reply.after.n_errors < before.n_errors
    rows = dialog.rows()
    scores = reply.candidate.scores
    inside = scores[[label is None for label in rows.predicted]]
    others = scores[[label is not None for label in rows.predicted]]
    assert not ((others > inside.min()) & (others < inside.max())).any()


def test_an_edit_of_the_rejected_column_limits_the_other_class_too(opened):
    dialog, _ = opened("logistic")
    reply = dialog.prefer(dialog.confusion.edit("ham", None, 20) & Preference("fp <= 5"))
    assert reply.met
    assert 0 < reply.after["ham", None] <= 20
    assert 0 < reply.after["spam", None] <= 20


# What is possible


@given(limit=st.integers(0, 100))
def test_the_frontier_says_what_moving_the_threshold_reaches(opened, limit):
    dialog, _ = opened("logistic")
    frontier = dialog.frontier()
    (curve,) = frontier.curves
    assert curve.name == "start"
    reply = dialog.prefer(f"fp <= {limit}", strategies=["move"], keep=False)
    assert reply.after.fn == curve.fn[curve.fp <= limit].min()
    assert reply.after.fn >= frontier.least_fn(limit)[0]
    reply = dialog.prefer(f"fn <= {limit}", strategies=["move"], keep=False)
    assert reply.after.fp == curve.fp[curve.fn <= limit].min()
    assert reply.after.fp >= frontier.least_fp(limit)[0]


def test_the_frontier_tells_which_scores_a_request_tries_at_each_step():
    """Moving the threshold misses as few positives as the curves of its step, and no fewer."""
    members = [(name, clone(one).fit(X[TRAIN], Y[TRAIN])) for name, one in TUNABLE]
    dialog = Dialog(members, X[TUNE], Y[TUNE])
    dialog.prefer("fp <= 5", strategies=["retune"])
    dialog.prefer("fp <= 9", at=0)
    curves = dialog.frontier().curves
    assert {curve.name: curve.steps for curve in curves if "member" not in curve.name} == {
        "start": (0, 1, 2),
        "retune": (1,),
    }
    assert not any(curve.steps for curve in curves if "member" in curve.name)
    for step, limit in itertools.product(range(3), range(40)):
        tried = [curve for curve in curves if step in curve.steps]
        least = min(int(curve.fn[curve.fp <= limit].min()) for curve in tried)
        assert dialog.preview(f"fp <= {limit}", at=step).after.fn == least


@pytest.mark.parametrize("own", [None, 0], ids=["no positive class", "another positive class"])
@pytest.mark.parametrize(
    "labels", [["ash", "birch", "cedar", "no"], [0, 1, 2, 10], [-1.0, 0.0, 1.0, 2.0]]
)
def test_the_frontier_of_each_of_four_classes_counts_every_threshold(labels, own):
    samples, codes = blobs(k=4, seed=2)
    y = np.array(labels)[codes]
    model = LogisticRegression().fit(samples[TRAIN], y[TRAIN])
    positive = None if own is None else labels[own]
    dialog = Dialog(model, samples[TUNE], y[TUNE], positive=positive)
    logs = np.log(model.predict_proba(samples[TUNE]))
    for code, label in enumerate(labels):
        lead = logs[:, code] - np.delete(logs, code, axis=1).max(axis=1)
        is_positive = codes[TUNE] == code
        points = {
            (int((predicted & ~is_positive).sum()), int((~predicted & is_positive).sum()))
            for predicted in (lead > threshold for threshold in [-np.inf, *lead])
        }
        frontier = dialog.frontier(positive=label)
        assert (frontier.positive, frontier.negative) == (label, None)
        assert frontier.n_positive == is_positive.sum()
        for fp, fn in points:
            assert frontier.least_fn(fp)[0] <= fn
        (curve,) = frontier.curves
        assert set(zip(curve.fp.tolist(), curve.fn.tolist(), strict=True)) <= points


def test_the_frontier_of_either_of_two_classes_is_the_other_one_turned(opened):
    dialog, _ = opened("logistic")
    ham, spam = (dialog.frontier(positive=label).curves[0] for label in dialog.classes)
    assert (ham.fp.tolist(), ham.fn.tolist()) == (spam.fn[::-1].tolist(), spam.fp[::-1].tolist())


@pytest.mark.parametrize("label", ["eggs", 1, "SPAM", ["spam"]])
def test_the_frontier_of_an_unknown_class_is_refused(opened, label):
    with pytest.raises(ParameterError, match=r"Dialog\.frontier.*\bpositive\b"):
        opened("logistic")[0].frontier(positive=label)


def test_the_frontier_shows_the_members(committee):
    dialog = Dialog(committee, X[TUNE], Y[TUNE])
    names = [curve.name for curve in dialog.frontier().curves]
    assert names == ["start", "member logistic", "member bayes", "member svc"]
    assert len(dialog.history) == 1, "looking is not asking"


# Accepting


@pytest.fixture(scope="module")
def asked():
    """A dialog from data with a request, and a known certification set."""
    dialog = Dialog.from_data(
        X[: 2 * N],
        Y[: 2 * N],
        committee=[("logistic", TunableLogistic()), ("bayes", GaussianNB())],
        certify=(X[FRESH], Y[FRESH]),
        random_state=0,
    )
    dialog.prefer("fn <= 20%")
    return dialog


def test_accepting_is_the_same_for_the_same_step_and_samples(asked):
    dialog = copy.deepcopy(asked)
    model = dialog.accept()
    assert dialog.accept() is model
    assert dialog.accept(X[FRESH], Y[FRESH]) is model, "the same samples, whoever brings them"
    assert dialog.accept(reserve=True) is model


def test_a_second_step_on_used_up_samples_is_refused(asked):
    dialog = copy.deepcopy(asked)
    first = dialog.accept()
    dialog.prefer("fn <= 25%", strategies=["move"])
    with pytest.raises(GuaranteeError, match=r"\breserve\b"):
        dialog.accept()
    with pytest.raises(GuaranteeError, match=r"\breserve\b"):
        dialog.accept(X[FRESH], Y[FRESH])
    dialog.undo()
    assert dialog.accept() is first


def test_fresh_samples_support_another_certificate(asked):
    dialog = copy.deepcopy(asked)
    dialog.accept()
    dialog.prefer("fn <= 25%", strategies=["move"])
    fresh, codes = blobs(300, seed=9)
    model = dialog.accept(fresh, WORDS[codes])
    assert model.certificate_.number == 1
    assert model.certificate_.confusion == model.confusion(fresh, WORDS[codes])


def test_a_reserve_is_used_up_by_halves(asked):
    dialog = copy.deepcopy(asked)
    deltas = []
    for step in range(3):
        dialog.prefer(f"fn <= {30 + step}%", strategies=["move"])
        certificate = dialog.accept(reserve=step < 2).certificate_
        assert certificate.number == step + 1
        deltas.append(certificate.delta)
    np.testing.assert_allclose(deltas, [0.025, 0.0125, 0.0125])
    dialog.prefer("fn <= 40%", strategies=["move"])
    with pytest.raises(GuaranteeError, match=r"\breserve\b"):
        dialog.accept(reserve=True)


def test_samples_opened_at_one_confidence_stay_there(asked):
    dialog = copy.deepcopy(asked)
    dialog.accept(confidence=0.9, reserve=True)
    with pytest.raises(GuaranteeError, match=r"\b0\.9\b.*\b0\.95\b"):
        dialog.accept(confidence=0.95)


def test_nothing_asked_nothing_guaranteed(asked):
    dialog = copy.deepcopy(asked)
    dialog.undo()
    with pytest.raises(GuaranteeError, match=r"\bprefer\b"):
        dialog.accept()
    reply = dialog.redo()
    assert dialog.accept().certificate_.requested == str(reply.preference)


def test_the_guarantee_is_about_the_accepted_model(asked):
    dialog = copy.deepcopy(asked)
    model = dialog.accept()
    certificate = model.certificate_
    assert certificate.confusion == model.confusion(X[FRESH], Y[FRESH])
    assert certificate.tuning == dialog.reply.after
    (guarantee,) = certificate.guarantees
    assert (guarantee.count, guarantee.n) == (
        certificate.confusion.fn,
        int(certificate.confusion.counts[1].sum()),
    )
    assert guarantee.rate < guarantee.limit
    assert model.get_params()["preference"] == "fn <= 20%"


def test_counts_become_rates(asked):
    dialog = copy.deepcopy(asked)
    n = int(dialog.confusion.counts[1].sum())
    dialog.prefer(f"fn <= {n // 4}", strategies=["move"])
    certificate = dialog.accept().certificate_
    assert certificate.requested == f"fn <= {n // 4}"
    assert certificate.guarantees[0].limit <= n // 4 / n
    assert f"fn <= {n // 4}" in certificate.remarks[0]


def test_a_guarantee_out_of_reach_of_the_numbers_uses_up_nothing(asked):
    dialog = copy.deepcopy(asked)
    dialog.prefer("fn <= 0", strategies=["move"])
    with pytest.raises(GuaranteeError, match="fn <= 0%"):
        dialog.accept()
    dialog.prefer("fn <= 0.01%", strategies=["move"])
    with pytest.raises(GuaranteeError, match=r"\b29,956\b.*\bspam\b"):
        dialog.accept()
    dialog.goto(1)
    assert dialog.accept().certificate_.number == 1


def test_a_guarantee_that_failed_on_the_scores_is_used_up(asked):
    dialog = copy.deepcopy(asked)
    dialog.prefer("fn <= 22%, fp <= 22%", strategies=["move"])
    with pytest.raises(GuaranteeError, match=r"fn <= 22%.*fp <= 22%") as caught:
        dialog.accept(anyway=True)
    assert caught.value.used_up
    dialog.goto(1)
    with pytest.raises(GuaranteeError, match=r"\breserve\b"):
        dialog.accept()


@pytest.mark.parametrize("confidence", [0, 1, 1.5, "high", None, True, float("nan")])
def test_a_confidence_is_a_number_between_0_and_1(asked, confidence):
    dialog = copy.deepcopy(asked)
    with pytest.raises(ValueError, match=r"Dialog\.accept.*\bconfidence\b"):
        dialog.accept(confidence=confidence)
    with pytest.raises(ValueError, match=r"Dialog\.support.*\bconfidence\b"):
        dialog.support(confidence)
    with pytest.raises(ValueError, match=r"Dialog\.from_data.*\bconfidence\b"):
        Dialog.from_data(X, Y, confidence=confidence)


def test_half_a_certify_set_is_refused(asked):
    dialog = copy.deepcopy(asked)
    for half in ({"X_certify": X[FRESH]}, {"y_certify": Y[FRESH]}):
        with pytest.raises(ValueError, match=r"\bX_certify\b.*\by_certify\b"):
            dialog.accept(**half)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        dialog.accept(X[FRESH], Y[FRESH][:-1])
    with pytest.raises(GuaranteeError, match=r"\bspam\b"):
        dialog.accept(X[FRESH][CODES[FRESH] == 0], Y[FRESH][CODES[FRESH] == 0])


def test_a_dialog_without_certify_samples_says_so(opened):
    dialog, _ = opened("logistic")
    assert "X_certify" in dialog.support()
    dialog.prefer("fn <= 20%")
    with pytest.raises(GuaranteeError, match=r"\bX_certify\b.*\by_certify\b"):
        dialog.accept()
    assert dialog.accept(X[FRESH], Y[FRESH]).certificate_.number == 1


def holds_training_data(model):
    """Whether a model, or what it is made of, keeps what tuning needs."""
    if getattr(model, "_fitted", None) is not None:
        return True
    parts = [part for _, part in getattr(model, "steps", [])]
    return any(map(holds_training_data, [*parts, *getattr(model, "estimators_", [])]))


def test_an_accepted_model_forgets_training_data_and_the_dialog_does_not(asked):
    dialog = copy.deepcopy(asked)
    model = dialog.accept()
    assert not any(map(holds_training_data, model.scorer_.committee.members))
    assert holds_training_data(dialog._data.committee.members[0])
    assert dialog.prefer("fn <= 12%", strategies=["retune"]).strategy == "retune"
    assert model.predict(X[FRESH]).shape == (N,)


@pytest.mark.parametrize(
    "learner",
    [
        make_pipeline(StandardScaler(), TunableLogistic()),
        VoteClassifier([("logistic", TunableLogistic()), ("bayes", GaussianNB())]),
    ],
    ids=["pipeline", "vote"],
)
def test_training_data_within_a_composed_member_is_forgotten_too(learner):
    dialog = Dialog(learner.fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    dialog.prefer("fn <= 40%", strategies=["move"])
    model = dialog.accept(X[FRESH], Y[FRESH])
    assert not any(map(holds_training_data, model.scorer_.committee.members))
    assert holds_training_data(learner)


# Samples that were seen, and steps that are written down


def test_tuning_samples_do_not_certify():
    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    dialog.prefer("fn <= 20%", strategies=["move"])
    for at in (slice(None), slice(None, None, -1), slice(1, None)):
        with pytest.raises(GuaranteeError, match="used"):
            dialog.accept(X[TUNE][at], Y[TUNE][at])


def test_samples_of_which_many_are_alike_may_certify():
    coarse = np.round(X[:, :2])
    model = LogisticRegression().fit(coarse[TRAIN], Y[TRAIN])
    dialog = Dialog(model, coarse[TUNE], Y[TUNE], duplicates="independent")
    dialog.prefer("fn <= 50%", strategies=["move"])
    certificate = dialog.accept(coarse[TRAIN], Y[TRAIN]).certificate_
    ham, spam = certificate.confusion.counts.sum(axis=1)
    assert ham == (Y[TRAIN] == "ham").sum()
    assert 0.9 * (Y[TRAIN] == "spam").sum() <= spam <= (Y[TRAIN] == "spam").sum()


def test_a_guarantee_that_nothing_can_break_is_none():
    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    dialog.prefer("fp <= 100%", strategies=["move"])
    with pytest.raises(GuaranteeError, match="fp <= 100%"):
        dialog.accept(X[TRAIN], Y[TRAIN])


def test_every_step_can_be_written_down(tmp_path):
    dialog = Dialog(LogisticRegression().fit(X[TRAIN], Y[TRAIN]), X[TUNE], Y[TUNE])
    path = tmp_path / "dialog.skops"
    dialog.autosave(path)
    assert len(Dialog.load(path).history) == 1
    dialog.prefer("fp <= 9", strategies=["move"])
    again = Dialog.load(path)
    assert again.confusion == dialog.confusion
    again.prefer("fp <= 5", strategies=["move"])
    assert len(Dialog.load(path).history) == 2, "a loaded dialog writes nowhere by itself"
    again.autosave(path)
    assert len(Dialog.load(path).history) == 3


def test_a_new_model_of_the_same_kind_can_be_trained_from_an_accepted_one():
    model = LogisticRegression(C=0.1).fit(X[TRAIN], Y[TRAIN])
    dialog = Dialog(model, X[TUNE], Y[TUNE])
    dialog.prefer("fn <= 40%", strategies=["move"])
    accepted = dialog.accept(X[TRAIN], Y[TRAIN])
    assert accepted.estimator.C == 0.1
    assert not hasattr(accepted.estimator, "coef_"), "it was not trained"
