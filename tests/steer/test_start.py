"""A dialog from a table: who sees which samples, and what is refused."""

import copy
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from margrave.confusion import PreferenceError
from margrave.martingale import TunableLogistic
from margrave.steer import Dialog, _start, default_members
from margrave.steer._order_statistic import largest_allowed_count, samples_needed
from margrave.table import TableEncoder

RANDOM = np.random.default_rng(8)
N = 300
CODES = RANDOM.integers(0, 2, N)
Y = np.array(["ham", "spam"])[CODES]
X = RANDOM.normal(size=(N, 3)) + CODES[:, None] * [1.2, 0.8, 0.0]
IDS = np.column_stack([np.arange(N), X])
PAIR = [("logistic", LogisticRegression()), ("bayes", GaussianNB())]


def open_dialog(rows=X, labels=Y, **change):
    return Dialog.from_data(rows, labels, **{"committee": PAIR, "random_state": 0} | change)


@pytest.fixture(scope="module")
def usual():
    return open_dialog(IDS, committee=LogisticRegression(max_iter=10_000))


def certify_ids(dialog):
    return set(dialog._acceptances.certification_set.X.X[:, 0].astype(int).tolist())


def tuning_ids(dialog):
    return set(np.asarray(dialog._data.X.X)[:, 0].astype(int).tolist())


def frame(n=N):
    """A table with columns of every kind, some cells missing."""
    random = np.random.default_rng(1)
    words = ["offer", "lunch", "invoice", "prize", "meeting", "garden", "winner", "notes"]
    table = pd.DataFrame(
        {
            "id": np.arange(n) * 1.0,
            "length": X[:n, 0],
            "from": np.where(X[:n, 1] > 0.4, "shop", random.choice(["friend", "work"], n)),
            "sent": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 400, n), "D"),
            "text": [" ".join(random.choice(words, 6)) + f" {i}" for i in range(n)],
        }
    )
    table.loc[::7, "length"] = np.nan
    table.loc[::11, "from"] = None
    return table


@pytest.fixture
def fast_default(monkeypatch):
    """The default committee, of two members that are trained at once."""
    monkeypatch.setattr(_start, "default_committee", lambda *_, **__: PAIR)


# Who sees what


def test_a_fifth_is_set_aside_and_the_rest_is_tuned_on(usual):
    certify, tuning = certify_ids(usual), tuning_ids(usual)
    assert not certify & tuning
    assert certify | tuning == set(range(N))
    assert len(certify) == N // 5
    assert usual.confusion.n == N - N // 5
    assert re.search(rf"\b{N // 5}\b", usual.support())
    rows = sorted(certify)
    np.testing.assert_array_equal(usual._acceptances.certification_set.codes, CODES[rows])


@pytest.mark.parametrize("share", [0.1, 0.35, np.float64(0.5)])
def test_the_share_set_aside_may_be_chosen(share):
    dialog = open_dialog(certify=share)
    assert len(dialog._acceptances.certification_set.codes) == N * share
    of_spam = dialog._acceptances.certification_set.codes.mean()
    assert abs(of_spam - CODES.mean()) < 1 / (N * share), "with the classes' shares"


def test_none_sets_nothing_aside():
    dialog = open_dialog(certify=None)
    assert dialog._acceptances.certification_set is None
    assert dialog.confusion.n == N


def test_certify_samples_of_ones_own_leave_all_others_to_tune_on():
    dialog = open_dialog(X[:200], Y[:200], certify=(X[200:], Y[200:]))
    assert dialog.confusion.n == 200
    assert len(dialog._acceptances.certification_set.codes) == 100
    dialog.prefer("accuracy >= 60%", strategies=["move"])
    model = dialog.accept()
    assert model.confusion(X[200:], Y[200:]) == model.certificate_.confusion


def test_more_is_set_aside_where_a_guarantee_needs_it():
    def set_aside(**change):
        return Dialog.plan_split(X, Y, random_state=0, **change).certify_by_class["ham"]

    n_ham = int((CODES == 0).sum())
    assert open_dialog(guarantee="fp <= 10%").sizes.certify_by_class["ham"] == set_aside(
        guarantee="fp <= 10%"
    )
    for limit, confidence in ((0.1, 0.95), (0.1, 0.8), (0.05, 0.95)):
        n = set_aside(guarantee=f"fp <= {limit:.0%}", confidence=confidence)
        delta = 1 - confidence
        assert samples_needed(limit, delta) <= n <= 0.65 * n_ham
        allowed = [largest_allowed_count(m, limit, delta) for m in (n - 1, n)]
        assert allowed[1] == allowed[0] + 1, "one sample fewer would allow one error fewer"
    assert set_aside(guarantee="fp <= 10%") > set_aside()
    assert set_aside(guarantee="fp <= 0.1%") == round(0.65 * n_ham), "too few in any case"


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that writes down which samples it is trained or tuned on."""

    trained_on: set = set()  # noqa: RUF012 - shared by all clones, on purpose

    def fit(self, X, y):
        self._note(X)
        self.line_ = TunableLogistic().fit(X[:, 1:], y)
        self.classes_ = self.line_.classes_
        return self

    def tune(self, wanted, X, y, **more):
        self._note(X)
        tuned = copy.copy(self)
        tuned.line_ = self.line_.tune(wanted, X[:, 1:], y, max_models=1, **more)
        return tuned

    def _note(self, X):
        Recorder.trained_on |= set(X[:, 0].astype(int).tolist())

    def predict_proba(self, X):
        return self.line_.predict_proba(X[:, 1:])

    def predict(self, X):
        return self.line_.predict(X[:, 1:])


@pytest.mark.core
@pytest.mark.parametrize("how", ["plain", "groups", "time"])
def test_no_certify_sample_is_ever_learned_from(monkeypatch, how):
    monkeypatch.setattr(Recorder, "trained_on", set())
    more = {"plain": {}, "groups": {"groups": np.arange(N) // 3}, "time": {"time": np.arange(N)}}
    dialog = open_dialog(IDS, committee=[("spy", Recorder()), ("bayes", GaussianNB())], **more[how])
    dialog.prefer("fp <= 20%, rejected <= 10%")
    dialog.prefer("fn <= 40%", strategies=["move", "retune"])
    dialog.frontier()
    dialog.accept(confidence=0.8)
    assert len(Recorder.trained_on) > N / 2
    assert not Recorder.trained_on & certify_ids(dialog)


@pytest.mark.core
def test_no_certify_sample_is_seen_by_the_encoder(monkeypatch, fast_default):
    seen = []
    fit = TableEncoder.fit
    monkeypatch.setattr(
        TableEncoder, "fit", lambda self, X, y=None: seen.append(X) or fit(self, X, y)
    )
    table = frame().astype({"id": float})
    table["id"] = RANDOM.permutation(N) + 0.25  # a number, not an identifier
    dialog = open_dialog(table, committee=None)
    (learned,) = seen
    assert len(learned) == N - N // 5
    at = dialog._data.committee.encoder.get_feature_names_out().tolist().index("id")
    encoded = np.concatenate(
        [dialog._data.X.X[:, at], dialog._acceptances.certification_set.X.X[:, at]]
    )
    assert len(np.unique(encoded)) == N
    mean = learned["id"].mean()
    assert dialog._data.X.X[:, at].mean() == pytest.approx(0, abs=1e-9)
    assert mean != pytest.approx(table["id"].mean(), abs=1e-9), "so the two can be told apart"


def test_a_member_that_learns_by_heart_gets_no_credit_for_it():
    labels = np.random.default_rng(2).integers(0, 2, N)
    rows = np.random.default_rng(3).permutation(N)[:, None] * 1.0
    dialog = open_dialog(
        rows, labels, committee=[KNeighborsClassifier(1), KNeighborsClassifier(2)], certify=None
    )
    (parrot, _) = dialog._data.committee.members
    assert (parrot.predict(rows) == labels).all()
    assert abs(dialog.confusion.accuracy - 0.5) < 0.12
    reply = dialog.prefer("fp <= 20%", strategies=["move"])
    assert reply.after.acc_plus < 0.45, "with a fifth of false positives, a fifth is chance"


# The same again


def test_the_same_seed_gives_the_same_dialog():
    one, two, other = (open_dialog(IDS, random_state=seed) for seed in (4, 4, 5))
    assert certify_ids(one) == certify_ids(two) != certify_ids(other)
    np.testing.assert_array_equal(one.history[0].candidate.scores, two.history[0].candidate.scores)
    asked = [dialog.prefer("fp <= 9, rejected <= 5%") for dialog in (one, two)]
    assert asked[0].after == asked[1].after
    assert asked[0].strategy == asked[1].strategy
    np.testing.assert_array_equal(*(reply.model.predict(IDS) for reply in asked))


@pytest.mark.full
def test_several_at_a_time_give_the_same_dialog():
    one, two = (open_dialog(n_jobs=n_jobs) for n_jobs in (None, 2))
    # Scores are rounded to nine digits.
    held = [dialog.history[0].candidate.scores for dialog in (one, two)]
    np.testing.assert_allclose(*held, rtol=1e-9, atol=1e-8)
    assert one.prefer("fp <= 9").after == two.prefer("fp <= 9").after


def test_progress_is_reported():
    reported = []
    open_dialog(callback=reported.append)
    assert [one.done for one in reported] == list(range(13))
    assert {(one.total, one.member) for one in reported[1:]} == {(12, "logistic"), (12, "bayes")}


# Committees and tables


@pytest.mark.parametrize(
    ("committee", "names"),
    [
        (GaussianNB(), ("gaussiannb",)),
        ([GaussianNB()], ("gaussiannb",)),
        (PAIR, ("logistic", "bayes")),
        ({"one": GaussianNB()}, ("one",)),
        (
            [GaussianNB(), GaussianNB(var_smoothing=0.1)],
            ("gaussiannb-1", "gaussiannb-2"),
        ),
    ],
)
def test_committees_in_every_form(committee, names):
    dialog = open_dialog(committee=committee)
    assert dialog.members == names
    assert dialog.prefer("fp <= 20").met


def test_a_single_member_speaks_for_itself():
    dialog = open_dialog(committee=GaussianNB(), certify=None)
    folds = dialog._data.folds
    codes = cross_val_predict(GaussianNB(), X, Y, cv=folds)
    assert (codes == Y).mean() == pytest.approx(dialog.confusion.accuracy, abs=0.02)


@pytest.mark.parametrize("kind", ["array", "list", "frame", "sparse"])
def test_samples_in_every_form(kind):
    rows = {
        "array": X,
        "list": X.tolist(),
        "frame": pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(N)[::-1]),
        "sparse": scipy.sparse.csr_array(X),
    }[kind]
    labels = pd.Series(Y, index=np.arange(N) * 3) if kind == "frame" else Y.tolist()
    dialog = open_dialog(rows, labels, committee=LogisticRegression())
    known = open_dialog(committee=LogisticRegression())
    assert dialog.confusion == known.confusion
    assert dialog.prefer("fp <= 9").after == known.prefer("fp <= 9").after
    assert dialog.model.predict(rows).shape == (N,)


def test_a_table_with_columns_of_every_kind(fast_default):
    table = frame()
    dialog = open_dialog(table, committee=None)
    encoder = dialog._data.committee.encoder
    assert encoder.kinds_["from"] == "category"
    assert encoder.kinds_["sent"] == "date"
    assert encoder.kinds_["text"] == "text"
    reply = dialog.prefer("fn <= 25%")
    assert reply.met
    assert reply.model.n_features_in_ == table.shape[1]
    assert set(reply.model.predict(table)) == {"ham", "spam"}
    guarantee = dialog.accept(confidence=0.8).certificate_.guarantees[0]
    assert guarantee.rate <= guarantee.limit == 0.25


def test_three_classes_and_a_positive_one():
    labels = np.where(X[:, 2] > 0.8, "eggs", Y)
    dialog = open_dialog(labels=labels, positive="eggs", committee=PAIR)
    assert dialog.classes == ("eggs", "ham", "spam")
    assert dialog.prefer("fp <= 10, rejected <= 5%").after.fp <= 10
    dialog.prefer("fp <= 50%", strategies=["move"])
    assert dialog.accept(confidence=0.6).certificate_.confusion.positive == "eggs"


# Groups and time


def test_groups_stay_together_and_one_of_each_certifies():
    groups = np.array([f"user {i // 4}" for i in range(N)])
    dialog = open_dialog(IDS, groups=groups)
    certify, tuning = sorted(certify_ids(dialog)), sorted(tuning_ids(dialog))
    assert not set(groups[certify]) & set(groups[tuning])
    pairs = list(zip(groups[certify], Y[certify], strict=True))
    assert len(set(pairs)) == len(pairs), "one of each group and class"
    for training, held in dialog._data.folds:
        rows = np.array(tuning)
        assert not set(groups[rows[training]]) & set(groups[rows[held]])
    dialog.prefer("fn <= 40%", strategies=["move"])
    notes = dialog.accept(confidence=0.6).certificate_.notes
    assert any("groups" in note for note in notes)


def test_the_latest_certify_and_members_are_judged_on_what_came_later():
    when = RANDOM.permutation(N)
    dialog = open_dialog(IDS, time=when)
    certify, tuning = sorted(certify_ids(dialog)), sorted(tuning_ids(dialog))
    assert len(certify) == N // 5
    assert when[certify].min() > when[tuning].max()
    assert when[tuning].min() >= 40 - 1, "the first sixth is trained on only"
    dialog.prefer("fn <= 40%", strategies=["move"])
    notes = dialog.accept(confidence=0.6).certificate_.notes
    assert any("time" in note for note in notes)


def test_samples_of_one_time_are_not_both_learned_from_and_certified_on():
    """ "Later" is strict: what came on the same day is not later."""
    days = np.repeat(np.arange(N // 25), 25)
    dialog = open_dialog(IDS, time=days)
    assert not set(days[sorted(certify_ids(dialog))]) & set(days[sorted(tuning_ids(dialog))])


def test_groups_and_time_together_are_both_respected():
    """A certificate must not say that groups were kept together where they were not."""
    groups = np.arange(N) // 4
    dialog = open_dialog(IDS, groups=groups, time=RANDOM.permutation(N))
    certify, tuning = sorted(certify_ids(dialog)), sorted(tuning_ids(dialog))
    assert not set(groups[certify]) & set(groups[tuning])
    pairs = list(zip(groups[certify], Y[certify], strict=True))
    assert len(set(pairs)) == len(pairs)


def test_a_handful_of_groups_is_enough():
    groups = np.arange(N) % 5
    dialog = open_dialog(IDS, groups=groups)
    certify = groups[sorted(certify_ids(dialog))]
    assert not set(certify) & set(groups[sorted(tuning_ids(dialog))])


@pytest.mark.parametrize("name", ["groups", "time"])
@pytest.mark.parametrize(
    "missing",
    [
        np.r_[np.nan, np.arange(N - 1.0)],
        np.r_[np.datetime64("NaT"), np.datetime64("2024-01-01") + np.arange(N - 1)],
        np.array([None, *map(str, range(N - 1))], dtype=object),
    ],
    ids=["nan", "nat", "none"],
)
def test_missing_groups_and_times_are_refused(name, missing):
    with pytest.raises(ValueError, match=rf"Dialog\.from_data.*\b{name}\b"):
        open_dialog(**{name: missing})


def test_classes_at_one_end_of_time_are_refused():
    with pytest.raises(ValueError, match=r"\btime\b"):
        open_dialog(time=CODES * N + np.arange(N))
    with pytest.raises(ValueError, match=r"\bgroups\b"):
        open_dialog(groups=np.where(CODES == 1, "all", np.arange(N).astype(str)))


# What is refused


FEWEST = int(np.bincount(CODES[:10]).argmin())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            {"rows": X[:10], "labels": Y[:10]},
            [str(np.bincount(CODES[:10])[FEWEST]), ["ham", "spam"][FEWEST]],
        ),
        ({"labels": ["ham"] * N}, ["ham"]),
        ({"positive": "eggs"}, ["positive", "'eggs'"]),
        ({"groups": [1, 2, 3]}, ["groups", "(3,)"]),
        ({"time": np.zeros((N, 1))}, ["time", f"({N}, 1)"]),
        ({"committee": "logistics"}, ["'logistics'"]),
        ({"committee": []}, ["member"]),
    ],
    ids=["ten rows", "one class", "positive", "groups", "time", "text", "nobody"],
)
def test_what_no_dialog_can_begin_with(change, named):
    with pytest.raises(ValueError, match=r"Dialog\.from_data") as caught:
        open_dialog(**change)
    for one in named:
        assert one in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (np.r_[np.nan, CODES[1:]], "y contains NaN"),
        ([None, *Y[1:]], r"\by\b.*None"),
        (Y[1:], "inconsistent numbers of samples"),
        (X[:, 0], "continuous"),
        (np.column_stack([Y, Y]), "1d array"),
        (None, "requires y to be passed"),
        ([1, *Y[1:]], r"\by\b"),
    ],
    ids=["nan", "none", "short", "numbers", "two columns", "no labels", "mixed"],
)
def test_labels_that_are_none(labels, match):
    """Most of these errors are scikit-learn's."""
    with pytest.raises(ValueError, match=match):
        open_dialog(labels=labels)


@pytest.mark.parametrize(
    "certify",
    [0, 1, 1.0, 0.0, -0.2, True, "half", float("nan"), (X,), [X, Y], (X, Y, Y), np.array([0.2, 1])],
    ids=str,
)
def test_what_cannot_be_set_aside(certify):
    with pytest.raises(ValueError, match=r"Dialog\.from_data.*\bcertify\b"):
        open_dialog(certify=certify)


@pytest.mark.parametrize("certify", [0.001, 0.999])
def test_a_share_that_leaves_too_little_on_one_side_is_refused(certify):
    with pytest.raises(ValueError, match=r"Dialog\.from_data.*certify"):
        open_dialog(certify=certify)


def test_certify_samples_that_do_not_fit_are_refused_at_once():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        open_dialog(certify=(X, Y[1:]))
    with pytest.raises(ValueError, match="'eggs'"):
        open_dialog(certify=(X + 0.5, np.where(CODES == 1, "eggs", Y)))


def test_certify_samples_with_other_columns_are_refused_at_once(fast_default):
    with pytest.raises(ValueError, match="2 features"):
        open_dialog(committee=None, certify=(X[:, :2], Y))
    with pytest.raises(ValueError, match="2 features"):
        open_dialog(certify=(X[:, :2], Y))


def test_a_guarantee_of_a_class_that_is_not_there_is_refused():
    with pytest.raises(PreferenceError, match="'eggs'"):
        open_dialog(guarantee="fp(eggs) <= 5%")


def test_a_small_class_is_enough_for_all_steps():
    few = np.r_[np.flatnonzero(CODES == 0)[:60], np.flatnonzero(CODES == 1)[:10]]
    dialog = open_dialog(X[few], Y[few], committee=[TunableLogistic(), GaussianNB()])
    reply = dialog.prefer("fn <= 3, rejected <= 50%", strategies=["move", "reject", "retune"])
    assert reply.n_candidates == 4, "two by retuning: the member alone, and in the committee"
    assert dialog.confusion.n == 56


@pytest.mark.full
@pytest.mark.slow
def test_the_default_committee_on_a_table_of_every_kind():
    dialog = Dialog.from_data(frame(), Y, random_state=0)
    assert len(dialog.members) == 6
    assert dialog.confusion.accuracy > 0.6
    reply = dialog.prefer("fn <= 20%")
    assert reply.met
    model = dialog.accept(confidence=0.8)
    assert set(model.predict(frame().iloc[:, ::-1])) <= {"ham", "spam"}


# The progress of the training, the provisional matrix, and large tables


def same_dialog(one, other):
    assert one.members == other.members
    assert one.confusion == other.confusion
    assert one.sizes == other.sizes
    np.testing.assert_array_equal(one.model.decision_function(X), other.model.decision_function(X))


NAMES = ["logistic", "logistic-quantile", "qda"]
DEFAULT = default_members(500)


@pytest.mark.parametrize("tune", [None, 0.3])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_provisional_matrix_is_that_of_a_dialog_with_the_members_so_far(tune, n_jobs):
    reported = []
    choices = {"committee": NAMES, "tune": tune, "n_jobs": n_jobs}
    dialog = open_dialog(**choices, callback=reported.append)
    assert reported[-1].confusion == dialog.confusion
    assert reported[-1].scored == tuple(NAMES)
    assert {one.scored for one in reported if one.confusion is None} <= {()}
    for scored, matrix in {one.scored: one.confusion for one in reported if one.scored}.items():
        assert open_dialog(committee=list(scored), tune=tune).confusion == matrix
    first = next(one for one in reported if one.confusion is not None)
    assert len(first.scored) == 1
    assert first.done < first.total


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("committee", [NAMES, PAIR, None])
def test_enough_members_make_the_dialog_that_they_would_make_alone(committee, n_jobs):
    reported = []
    dialog = open_dialog(
        committee=committee,
        n_jobs=n_jobs,
        callback=reported.append,
        enough=lambda: len(reported[-1].finished) > 0,
    )
    assert dialog.members == reported[-1].finished
    committee = DEFAULT if committee is None else committee
    assert len(dialog.members) < len(committee)
    names = [member if isinstance(member, str) else member[0] for member in committee]
    finished = [one for name, one in zip(names, committee, strict=True) if name in dialog.members]
    alone = open_dialog(committee=finished)
    same_dialog(dialog, alone)
    for one in (dialog, alone):
        one.prefer("fn <= 60%", strategies=["move"])
    assert str(dialog.accept().estimator) == str(alone.accept().estimator)


def test_what_is_enough_before_a_member_is_finished_waits_for_it():
    dialog = open_dialog(committee=NAMES, enough=lambda: True)
    assert dialog.members == ("logistic",)


def test_a_training_that_is_never_enough_has_all_members():
    same_dialog(open_dialog(enough=lambda: False), open_dialog())


LARGE = 25_000  # 20,000 without the certification set


def large(n=LARGE, rare=None):
    """Rows with their numbers in the first column, and labels."""
    n_rare = n // 2 if rare is None else rare
    random = np.random.default_rng(0)
    labels = random.permutation(np.repeat(["ham", "spam"], [n - n_rare, n_rare]))
    values = random.normal(size=n) + (labels == "spam")
    return np.column_stack([np.arange(n), values]), labels


class TestLargeTables:
    def test_a_fifth_of_the_rows_is_tuned_on_and_all_are_trained_on(self):
        reported, members = [], [("bayes", GaussianNB()), ("again", GaussianNB())]
        rows, labels = large()
        dialog = open_dialog(rows, labels, committee=members, callback=reported.append)
        assert dialog.sizes.train == 20_000
        assert dialog.sizes.tune == dialog.confusion.n == 4_000
        assert reported[-1].total == 2 * len(members)
        assert not tuning_ids(dialog) & certify_ids(dialog)
        assert dialog.prefer("fn <= 10%").after.n == 4_000
        assert dialog.accept().certificate_.confusion.n == dialog.sizes.certify
        assert Dialog.plan_split(rows, labels, random_state=0) == dialog.sizes

    def test_the_predictions_are_of_members_trained_without_the_fold(self):
        rows, labels = large(20_000)
        dialog = open_dialog(rows, labels, committee=KNeighborsClassifier(1), certify=None)
        held = np.array(sorted(tuning_ids(dialog)))
        training = np.delete(np.arange(20_000), held)
        expected = KNeighborsClassifier(1).fit(rows[training], labels[training])
        n_errors = (expected.predict(rows[held]) != labels[held]).sum()
        assert dialog.confusion.n_errors == n_errors > 0, "a neighbour that saw them would be right"

    def test_the_smallest_large_table_is_tuned_on_a_fifth(self):
        sizes = open_dialog(*large(20_000, 5_000), committee=GaussianNB(), certify=None).sizes
        assert (sizes.train, sizes.tune) == (20_000, 4_000)

    @pytest.mark.parametrize(
        ("n", "rare", "change"),
        [
            (LARGE - 1_000, None, {}),
            (20_000, 4_900, {"certify": None}),
            (LARGE, None, {"groups": np.arange(LARGE) % 50}),
            (LARGE, None, {"time": np.arange(LARGE)}),
        ],
    )
    def test_others_are_tuned_on_all_folds(self, n, rare, change):
        sizes = open_dialog(*large(n, rare), committee=GaussianNB(), **change).sizes
        assert sizes.tune > sizes.train // 2

    def test_a_tuning_set_of_its_own_stays_apart(self):
        sizes = open_dialog(*large(), committee=GaussianNB(), tune=0.3).sizes
        assert (sizes.train, sizes.tune) == (14_000, 6_000)
