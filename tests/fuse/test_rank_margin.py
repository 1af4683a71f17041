"""The rank-margin committee: its weights, tuning data, predictions and sample weights."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from margrave import Scores
from margrave.fuse import RankMarginClassifier, rank_margin_weights
from margrave.fuse._rank_margin import NUS
from margrave.fuse._scales import SCALES, learn_scale

NB, LINE = GaussianNB(), LogisticRegression()
STUMP = DecisionTreeClassifier(max_depth=2, random_state=0)


class Spy(GaussianNB):
    """Notes the samples it is trained on and predicts, by their first column."""

    def __init__(self, notes):
        super().__init__()
        self.notes = notes

    def __sklearn_clone__(self):
        return Spy(self.notes)

    def fit(self, X, y, sample_weight=None):
        self.trained_on, self.weights_received = X[:, 0].astype(int), sample_weight
        return super().fit(X[:, 1:], y, sample_weight)

    def predict_proba(self, X):
        self.notes.append((set(self.trained_on.tolist()), set(X[:, 0].astype(int).tolist())))
        return super().predict_proba(X[:, 1:])


def table(n=120, labels=(0, 1), seed=0, **settings):
    settings = {"n_features": 4, "n_redundant": 0, "n_informative": 3, "flip_y": 0.1, **settings}
    X, y = make_classification(n, n_classes=len(labels), random_state=seed, **settings)
    return X, np.array(labels)[y]


def numbered(n=60):
    X, y = table(n)
    return np.column_stack([np.arange(n), X]), y


def prefit(X, y, *members):
    return [clone(member).fit(X, y) for member in members]


def fitted(members=(NB, LINE, STUMP), nu=0.2, data=None, **settings):
    X, y = table() if data is None else data
    return RankMarginClassifier(list(members), nu=nu, **settings).fit(X, y)


# Weights, and their description.


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("negatives", [None, "hardest 10%"])
def test_weights_are_those_of_the_scaled_scores(scale, negatives):
    X, y = table(200)
    members = prefit(X[:80], y[:80], NB, LINE, LinearSVC())
    settings = {"nu": 0.2, "tol": 1e-6, "negatives": negatives}
    committee = RankMarginClassifier(members, prefit=True, scale=scale, **settings)
    committee.fit(X[80:], y[80:])
    raw = Scores.of(members, X[80:]).raw()
    gives = np.array([True, True, False])
    scores = learn_scale(scale, raw, gives, y[80:] == 1, np.ones(120))(raw)
    found = rank_margin_weights(scores, y[80:], **settings)
    np.testing.assert_allclose(committee.weights_, found.weights)
    assert committee.estimators_ == members
    assert committee.weights_.sum() == pytest.approx(1)
    assert committee.result_.gap <= 1e-6
    assert committee.nu_ == 0.2
    assert committee.auc_by_nu_ == {}


def test_all_negatives_are_the_hardest_hundred_per_cent():
    one, other = fitted(tol=1e-6), fitted(tol=1e-6, negatives="hardest 100%")
    np.testing.assert_allclose(one.weights_, other.weights_)


@pytest.mark.parametrize("scale", SCALES)
def test_margins_and_area_are_those_of_the_tuning_scores(scale):
    X, y = table(200)
    committee = RankMarginClassifier(
        prefit(X[:80], y[:80], NB, LINE), prefit=True, scale=scale, calibrate=False
    ).fit(X[80:], y[80:])
    scores, positive = committee.decision_function(X[80:]), y[80:] == 1
    assert committee.margin_distribution_.auc == pytest.approx(roc_auc_score(positive, scores))
    assert committee.rank_margin_ == pytest.approx(scores[positive].min() - scores[~positive].max())
    assert committee.nu_ in NUS
    assert max(committee.auc_by_nu_.values()) == committee.auc_by_nu_[committee.nu_]


@pytest.mark.parametrize("tuning", [3, 0.4])
def test_active_pairs_are_rows_of_the_data_passed_to_fit(tuning):
    X, y = table(150, flip_y=0.2)
    committee = fitted(data=(X, y), nu=0.05, tuning=tuning, random_state=0)
    positive, negative = committee.result_.active.T
    assert set(y[positive]) == {1}
    assert set(y[negative]) == {0}


def test_margins_are_differences_of_the_combined_scores():
    X, y = table(150)
    committee = RankMarginClassifier(prefit(X[:50], y[:50], NB, LINE), prefit=True, nu=0.1)
    committee.fit(X[50:], y[50:])
    scores = committee.combined_scores(X[50:])
    assert np.abs(scores).max() <= 1
    assert scores[y[50:] == 1] == pytest.approx(committee.margin_distribution_.positives)
    i, k = committee.result_.active[0]
    worst = committee.margin_distribution_.rank_margin
    assert scores[i] - scores[k] == pytest.approx(worst)
    three = fitted(data=table(labels=(0, 1, 2)))
    assert three.combined_scores(X).shape == (150, 3)


def test_the_positive_class_decides_whose_negatives_are_hard_and_nothing_else():
    X, y = table(200, labels=("fraud", "ok"), weights=[0.3])
    by_default = fitted(data=(X, y), nu="cv")
    same = fitted(data=(X, y), nu="cv", positive="fraud")
    assert same.decision_function(X) == pytest.approx(by_default.decision_function(X), abs=1e-6)
    assert same.combined_scores(X) == pytest.approx(-by_default.combined_scores(X), abs=1e-6)
    hard = {"nu": 1.0, "negatives": "hardest 5%", "tol": 1e-6}
    found = fitted(data=(X, y), positive="fraud", **hard)
    swapped = fitted(data=(X, np.where(y == "fraud", "z_fraud", "ok")), **hard)
    assert found.weights_ == pytest.approx(swapped.weights_, abs=1e-6)
    assert (found.predict(X) == "fraud").tolist() == (swapped.predict(X) == "z_fraud").tolist()
    other = fitted(data=(X, y), **hard)
    assert other.weights_ != pytest.approx(found.weights_, abs=1e-3)


def test_nu_one_divides_the_weight_where_all_mean_margins_are_equal():
    assert fitted(nu=1.0).weights_ == pytest.approx(1 / 3)
    assert sorted(fitted(nu=1.0, scale="rank").weights_) == [0, 0, 1]


def test_huge_sample_weights_are_as_good_as_small_ones():
    X, y = table(150)
    members = prefit(X[:50], y[:50], NB, LINE)
    weight = np.random.default_rng(0).uniform(0.5, 1, 100)
    one, other = (
        RankMarginClassifier(members, prefit=True).fit(X[50:], y[50:], sample_weight=size * weight)
        for size in (1.0, 1e307)
    )
    assert one.weights_ == pytest.approx(other.weights_)
    assert one.predict_proba(X) == pytest.approx(other.predict_proba(X))


def test_nu_zero_is_the_worst_pair_of_the_paper():
    committee = fitted(nu=0)
    assert committee.nu_ == 0.0
    assert committee.rank_margin_ == pytest.approx(committee.result_.rho)


# Where the tuning data comes from.


def test_no_member_predicts_a_sample_it_was_trained_on():
    X, y = numbered()
    notes = []
    committee = fitted([Spy(notes)], data=(X, y), tuning=4)
    assert len(notes) == 4
    assert all(not trained & predicted for trained, predicted in notes)
    assert set().union(*(predicted for _, predicted in notes)) == set(range(60))
    assert sorted(committee.estimators_[0].trained_on) == list(range(60))


def test_a_member_that_learns_by_heart_gains_nothing():
    X, y = table(300, flip_y=0.5)
    by_heart = [KNeighborsClassifier(1), DecisionTreeClassifier(random_state=0)]
    for member in by_heart:
        assert clone(member).fit(X, y).score(X, y) == 1
        assert fitted([member], data=(X, y)).margin_distribution_.auc < 0.8
    apart = fitted([LINE, *by_heart], data=(X, y))
    assert 0.2 < apart.weights_[0] < 1
    seen = RankMarginClassifier(prefit(X, y, LINE, *by_heart), nu=0.2, prefit=True).fit(X, y)
    assert seen.weights_[0] < 0.05  # what tuning on the samples of the training does


@pytest.mark.parametrize("fraction", [0.25, np.float32(0.25)])
def test_a_part_held_out_for_tuning(fraction):
    X, y = numbered(100)
    notes = []
    committee = fitted([Spy(notes)], data=(X, y), tuning=fraction, random_state=0)
    ((trained, predicted),) = notes
    assert not trained & predicted
    assert (len(trained), len(predicted)) == (75, 25)
    pairs = committee.margin_distribution_
    assert len(pairs.positives) + len(pairs.negatives) == 25
    assert set(committee.estimators_[0].trained_on) == trained
    again = fitted([Spy([])], data=(X, y), tuning=fraction, random_state=0)
    np.testing.assert_array_equal(again.decision_function(X), committee.decision_function(X))


def test_a_splitter_and_its_folds_are_the_same():
    X, y = table()
    splitter = StratifiedKFold(3, shuffle=True, random_state=1)
    folds = list(splitter.split(X, y))
    masks = [tuple(np.isin(np.arange(len(y)), part) for part in fold) for fold in folds]
    one = fitted(tuning=splitter).decision_function(X)
    np.testing.assert_allclose(one, fitted(tuning=folds).decision_function(X), rtol=1e-9)
    np.testing.assert_allclose(one, fitted(tuning=masks).decision_function(X))
    assert (one != fitted(tuning=3).decision_function(X)).any()


def test_samples_that_are_never_held_out_get_no_weight_but_train():
    X, y = numbered()
    notes = []
    folds = [(range(30), range(30, 45)), (range(45), range(45, 60))]  # in order of time
    committee = fitted([Spy(notes)], data=(X, y), tuning=[tuple(map(list, fold)) for fold in folds])
    assert [predicted for _, predicted in notes] == [set(range(30, 45)), set(range(45, 60))]
    assert len(committee.margin_distribution_.positives) == (y[30:] == 1).sum()
    assert len(committee.estimators_[0].trained_on) == 60
    drawn = fitted(tuning=ShuffleSplit(3, test_size=0.1, random_state=0))
    assert drawn.margin_distribution_.n_pairs <= 36**2


def test_groups_stay_together_through_explicit_folds():
    X, y = numbered()
    groups = np.arange(60) // 3
    notes = []
    folds = list(GroupKFold(5).split(X, y, groups))
    fitted([Spy(notes)], data=(X, y), tuning=folds)
    for trained, predicted in notes:
        assert not {i // 3 for i in trained} & {i // 3 for i in predicted}


def test_a_rare_class_lowers_the_number_of_folds():
    X, y = numbered()
    y[:] = 0
    y[:3] = 1
    notes = []
    fitted([Spy(notes)], data=(X, y), tuning=10)
    assert len(notes) == 3


# Predictions.


@pytest.mark.parametrize(
    "labels", [("ham", "spam"), (1, 2), (-1, 1), (False, True), (0.0, 1.0)], ids=str
)
def test_two_classes_of_any_type(labels):
    X, y = table(labels=labels)
    committee = fitted(data=(X, y))
    assert committee.classes_.tolist() == list(labels)
    assert committee.predict(X).dtype == y.dtype
    decision, proba = committee.decision_function(X), committee.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], expit(decision))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (committee.predict(X) == np.where(decision > 0, labels[1], labels[0])).all()
    numbers = fitted(data=table()).decision_function(X)
    np.testing.assert_allclose(decision, numbers, rtol=1e-9)  # the second is the positive one


@pytest.mark.parametrize("scale", SCALES)
def test_more_classes_each_against_the_rest(scale):
    X, y = table(150, labels=("a", "b", "c"))
    committee = fitted([NB, LinearSVC(), STUMP], data=(X, y), scale=scale)
    assert committee.weights_.shape == (3, 3)
    np.testing.assert_allclose(committee.weights_.sum(axis=1), 1)
    assert committee.nu_.tolist() == [0.2] * 3
    decision, proba = committee.decision_function(X), committee.predict_proba(X)
    each = expit(decision)
    np.testing.assert_allclose(proba, each / each.sum(axis=1, keepdims=True))
    assert (committee.predict(X) == committee.classes_[proba.argmax(axis=1)]).all()
    assert (committee.predict(X) == committee.classes_[decision.argmax(axis=1)]).all()
    assert len(committee.result_) == len(committee.margin_distribution_) == 3
    smallest = [pairs.rank_margin for pairs in committee.margin_distribution_]
    assert committee.rank_margin_.tolist() == smallest
    assert [len(pairs.positives) for pairs in committee.margin_distribution_] == [
        (y == label).sum() for label in "abc"
    ]


def test_without_calibration_the_threshold_has_the_best_balanced_accuracy():
    X, y = table(200, weights=[0.8])
    members = prefit(X[:60], y[:60], NB, LINE)
    committee = RankMarginClassifier(members, prefit=True, calibrate=False).fit(X[60:], y[60:])
    assert not hasattr(committee, "predict_proba")
    scores, positive = committee.decision_function(X[60:]), y[60:] == 1

    def accuracy(threshold):
        return (scores[positive] > threshold).mean() + (scores[~positive] <= threshold).mean()

    assert accuracy(0) == pytest.approx(max(accuracy(threshold) for threshold in scores))
    assert ((scores > 0) == (committee.predict(X[60:]) == 1)).all()
    three = fitted(data=table(labels=(0, 1, 2)), calibrate=False)
    assert (three.decision_function(X).argmax(axis=1) == three.predict(X)).all()


def test_predictions_survive_a_pickle_and_settings_a_clone():
    X, y = table(labels=("a", "b", "c"))
    committee = fitted([NB, LINE], data=(X, y), scale="rank", tuning=3)
    again = pickle.loads(pickle.dumps(committee))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), committee.predict_proba(X))
    other = clone(committee)
    assert not hasattr(other, "weights_")
    assert (other.scale, other.nu, other.tuning) == ("rank", 0.2, 3)
    np.testing.assert_allclose(other.fit(X, y).weights_, committee.weights_, rtol=1e-9)


def test_data_frames_and_members_on_their_own_columns():
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(len(y)) + 1000)
    series = pd.Series(np.where(y == 1, "yes", "no"), index=frame.index)
    committee = fitted(data=(frame, series))
    expected = fitted().decision_function(X)
    np.testing.assert_allclose(committee.decision_function(frame), expected, rtol=1e-9)
    assert committee.feature_names_in_.tolist() == list("abcd")
    members = [NB.__class__().fit(frame[["d", "a"]], series), LINE.__class__().fit(frame, series)]
    own = RankMarginClassifier(members, nu=0.2, prefit=True).fit(frame, series)
    assert own.score(frame, series) > 0.7


# Sample weights.


def test_weights_travel_with_their_samples():
    X, y = numbered()
    notes, weight = [], 1 + np.arange(60) / 60
    for tuning in (3, 0.5):
        committee = RankMarginClassifier([Spy(notes)], nu=0.2, tuning=tuning, random_state=0)
        member = committee.fit(X, y, sample_weight=weight).estimators_[0]
        np.testing.assert_allclose(member.weights_received, weight[member.trained_on])


def test_weights_count_like_repeated_tuning_samples():
    X, y = table()
    members, often = prefit(X, y, NB, STUMP), np.arange(120) % 3
    settings = {"nu": 0.2, "prefit": True, "tol": 1e-7}
    weighted = RankMarginClassifier(members, **settings).fit(X, y, sample_weight=often)
    again = np.repeat(np.arange(120), often)
    repeated = RankMarginClassifier(members, **settings).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-4)
    assert weighted.rank_margin_ == pytest.approx(repeated.rank_margin_, abs=1e-4)


def test_weights_reach_the_members_that_request_them():
    X, y = table()
    weight = np.where(y == 1, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        members = [
            ("requests", GaussianNB().set_fit_request(sample_weight=True)),
            ("does not", GaussianNB().set_fit_request(sample_weight=False)),
            ("cannot", KNeighborsClassifier(5)),
        ]
        committee = RankMarginClassifier(members, nu=0.2).fit(X, y, sample_weight=weight)
    requests, does_not, _ = committee.estimators_
    assert requests.class_prior_[1] == pytest.approx(weight[y == 1].sum() / weight.sum())
    assert does_not.class_prior_[1] == pytest.approx((y == 1).mean())
