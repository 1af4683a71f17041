"""The rank-margin committee with members of every kind, useless ones, real data and bad input."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, LeaveOneOut, StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from margrave import datasets
from margrave.fuse import RankMarginClassifier
from margrave.fuse._scales import SCALES

NB, LINE = GaussianNB(), LogisticRegression()
STUMP = DecisionTreeClassifier(max_depth=2, random_state=0)


class LabelsOnly(ClassifierMixin, BaseEstimator):
    """A member that can only predict."""

    def __init__(self, member):
        self.member = member

    def fit(self, X, y):
        self.member_ = clone(self.member).fit(X, y)
        self.classes_ = self.member_.classes_
        return self

    def predict(self, X):
        return self.member_.predict(X)


class Shy(LabelsOnly):
    """It rejects samples where the first feature is above 1."""

    reject_label_ = "?"

    def predict(self, X):
        return np.where(X[:, 0] > 1, "?", super().predict(X))


class Loud(LinearSVC):
    """The same decisions in other units."""

    def decision_function(self, X):
        return 1000 * super().decision_function(X) - 300


def table(n=150, labels=(0, 1), **settings):
    settings = {"n_features": 4, "n_redundant": 0, "n_informative": 3, "flip_y": 0.1, **settings}
    X, y = make_classification(n, n_classes=len(labels), random_state=0, **settings)
    return X, np.array(labels)[y]


def fitted(members, data=None, nu=0.2, **settings):
    X, y = table() if data is None else data
    return RankMarginClassifier(members, nu=nu, **settings).fit(X, y)


# Kinds of members.


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("labels", [("no", "yes"), ("a", "b", "c")], ids=["two", "three"])
def test_probabilities_decision_values_and_labels_together(scale, labels):
    X, y = table(labels=labels)
    members = [NB, LinearSVC(), Perceptron(), LabelsOnly(STUMP)]
    committee = fitted(members, data=(X, y), scale=scale)
    assert committee.weights_.sum(axis=-1) == pytest.approx(1)
    worst = min(clone(member).fit(X, y).score(X, y) for member in members)
    assert committee.score(X, y) > worst - 0.05
    for pairs in np.atleast_1d(committee.margin_distribution_):
        assert np.abs(np.concatenate([pairs.positives, pairs.negatives])).max() <= 1


@pytest.mark.parametrize("scale", ["logit", "rank", "decision"])
def test_the_units_of_a_member_do_not_matter(scale):
    X, _ = table()
    plain = fitted([NB, LinearSVC(), STUMP], scale=scale)
    loud = fitted([NB, Loud(), STUMP], scale=scale)
    np.testing.assert_allclose(loud.weights_, plain.weights_, atol=1e-6)
    np.testing.assert_allclose(loud.decision_function(X), plain.decision_function(X), atol=1e-4)


def test_a_class_missing_where_a_member_was_trained():
    """One fold's members know two classes of three; probabilities and decision values cope."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::2], y[::2]
    folds = [(np.flatnonzero(y < 2), np.flatnonzero(y > 0)), (np.arange(0, 75, 2), np.arange(75))]
    committee = fitted([NB, LinearSVC(), LabelsOnly(NB)], data=(X, y), tuning=folds)
    assert committee.score(X, y) > 0.8
    np.testing.assert_allclose(committee.weights_.sum(axis=1), 1)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("labels", [(0, 1), (0, 1, 2)], ids=["two", "three"])
def test_a_sample_is_judged_by_itself(scale, labels):
    X, y = table(labels=labels)
    members = [clone(NB).fit(X, y), Perceptron().fit(X, y), LabelsOnly(STUMP).fit(X, y)]
    members.append(LinearSVC().fit(X[y < 2], y[y < 2]))  # of three classes it knows two
    committee = RankMarginClassifier(members, nu=0.2, prefit=True, scale=scale).fit(X, y)
    together = committee.decision_function(X)
    for some in (slice(0, 1), slice(5, 17)):
        np.testing.assert_allclose(committee.decision_function(X[some]), together[some], atol=1e-9)


def test_a_member_that_rejects_leans_to_no_class():
    X, y = table(labels=("no", "yes"))
    rejected = X[:, 0] > 1
    committee = fitted([Shy(NB).fit(X, y)], data=(X, y), prefit=True, scale="decision")
    decision, labels = committee.decision_function(X), clone(NB).fit(X, y).predict(X)
    assert len(np.unique(decision.round(9))) == 3
    assert decision[~rejected & (labels == "no")].max() < decision[rejected].min()
    assert decision[rejected].max() < decision[~rejected & (labels == "yes")].min()


def test_one_member_keeps_its_order():
    X, y = table()
    committee = fitted([LinearSVC()], data=(X, y), nu="cv", scale="decision")
    assert committee.weights_.tolist() == [1.0]
    order = np.argsort(committee.estimators_[0].decision_function(X))
    assert (np.diff(committee.decision_function(X)[order]) >= 0).all()
    assert committee.result_.gap == 0


def test_a_member_named_twice_changes_nothing():
    X, _ = table()
    once = fitted([NB, LINE], tol=1e-7)
    twice = fitted([NB, LINE, NB], tol=1e-7)
    assert twice.member_names_ == ["gaussiannb-1", "logisticregression", "gaussiannb-2"]
    assert twice.result_.margin == pytest.approx(once.result_.margin, abs=1e-6)
    both = twice.weights_[0] + twice.weights_[2]
    assert both == pytest.approx(once.weights_[0], abs=1e-3)
    np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X), atol=0.01)


# Members that are constant.


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("nu", [0.0, 0.02, 0.5])
def test_a_constant_member_has_no_weight(scale, nu):
    """Its margins of 0 exceed those of other members, and class frequencies vary by fold."""
    X, y = table(101, flip_y=0.3)
    splitter = StratifiedKFold(7, shuffle=True, random_state=0)
    members = [NB, LINE, DummyClassifier(), DummyClassifier(strategy="most_frequent")]
    folded = fitted(members, data=(X, y), scale=scale, nu=nu, tuning=splitter)
    trained = [clone(member).fit(X, y) for member in members]
    whole = fitted(trained, data=(X, y), scale=scale, nu=nu, prefit=True)
    for committee in (folded, whole):
        assert committee.weights_[2:].tolist() == [0, 0]
        assert committee.weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("fraction", [0.3, 0.7])
@pytest.mark.parametrize("nu", [0.2, "cv"])
def test_constant_members_only_predict_the_larger_class(scale, fraction, nu):
    X, y = table(99, weights=[1 - fraction], flip_y=0)
    members = [DummyClassifier(), DummyClassifier(strategy="constant", constant=0)]
    committee = fitted(members, data=(X, y), scale=scale, nu=nu)
    assert committee.weights_.tolist() == [0.5, 0.5]
    assert committee.margin_distribution_.auc == 0.5
    assert (committee.predict(X) == (fraction > 0.5)).all()
    np.testing.assert_allclose(committee.predict_proba(X)[:, 1], y.mean(), atol=0.02)
    threshold = fitted(members, data=(X, y), scale=scale, nu=nu, calibrate=False)
    assert len(set(threshold.predict(X))) == 1


def test_members_that_are_worse_than_chance_do_not_rank_backwards():
    X, y = table(weights=[0.3])
    backwards = [clone(member).fit(X, 1 - y) for member in (LINE, STUMP)]
    committee = fitted(backwards, data=(X, y), prefit=True)
    assert committee.margin_distribution_.auc < 0.5
    assert (committee.predict(X) == 1).all()  # no slope: the larger class


def test_a_fold_of_one_sample_does_not_prove_that_a_member_is_constant():
    X, y = table(40)
    committee = fitted([NB, STUMP], data=(X, y), tuning=LeaveOneOut())
    assert np.ptp(committee.margin_distribution_.positives) > 0.5


# Real data.


@pytest.mark.parametrize("name", ["sonar", "spambase"])
def test_the_committee_is_about_as_good_as_its_best_member(name):
    data = datasets.load(name)
    y = np.asarray(data.target)
    some, _ = train_test_split(np.arange(len(y)), train_size=min(len(y) - 2, 600), random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(
        np.asarray(data.data)[some], y[some], test_size=0.5, random_state=0, stratify=y[some]
    )
    members = [
        ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
        ("bayes", GaussianNB()),
        ("near", make_pipeline(StandardScaler(), KNeighborsClassifier(7))),
        ("forest", RandomForestClassifier(30, random_state=0)),
    ]
    committee = RankMarginClassifier(members).fit(X_train, y_train)
    areas = [
        roc_auc_score(y_test, member.predict_proba(X_test)[:, 1])
        for member in committee.estimators_
    ]
    area = roc_auc_score(y_test, committee.decision_function(X_test))
    assert area > min(areas)
    assert area > max(areas) - 0.02
    assert committee.score(X_test, y_test) > 0.75


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("nu", [0.02, "cv"])
def test_a_member_that_ranks_backwards_changes_nothing(scale, nu):
    X, y = table(labels=(0, 1))
    members = [GaussianNB().fit(X[:50], y[:50]), clone(STUMP).fit(X[:50], y[:50])]
    backwards = KNeighborsClassifier(9).fit(X[:50], 1 - y[:50])
    with_it, without = (
        RankMarginClassifier(some, prefit=True, nu=nu, scale=scale).fit(X[50:], y[50:])
        for some in ([*members, backwards], members)
    )
    assert with_it.weights_[2] == 0
    assert with_it.margin_distribution_.auc == pytest.approx(
        without.margin_distribution_.auc, abs=0.01
    )


# Bad input.


def _weighted(weight, **settings):
    X, y = table(labels=("no", "yes"))
    RankMarginClassifier([STUMP], **settings).fit(X, y, sample_weight=weight(y))


def _prefit(labels, kept, **settings):
    X, y = table(labels=labels)
    member, rows = GaussianNB().fit(X, y), np.isin(y, kept)
    RankMarginClassifier([member], prefit=True).fit(X[rows], y[rows], **settings)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: fitted([NB], scale="log"), r"\bscale\b"),
        *(
            (lambda nu=nu: fitted([NB], nu=nu), r"\bnu\b")
            for nu in (-0.1, 1.5, "auto", None, True, float("nan"))
        ),
        *(
            (lambda tol=tol: fitted([NB], tol=tol), r"\btol\b")
            for tol in (0, -1.0, "cv", None, float("nan"), float("inf"))
        ),
        *(
            (lambda tuning=tuning: fitted([NB], tuning=tuning), rf"\btuning\b.*{tuning!r}")
            for tuning in (1, 0, 1.0, 0.0, 2.5, -3, True, float("nan"), "loo")
        ),
        (lambda: fitted([NB], negatives="10%"), r"\bnegatives\b"),
        (lambda: fitted([NB], data=(np.zeros((4, 1)), ["a"] * 4)), "'a'"),
        (
            lambda: fitted([NB], data=(np.arange(5.0)[:, None], ["a", "b", "a", "a", "a"])),
            "'b'",
        ),
        (
            lambda: fitted([NB], tuning=[(np.arange(75), np.flatnonzero(table()[1] == 1))]),
            "class 0",
        ),
        (
            lambda: _weighted(lambda y: (y == "yes").astype(float), tuning=0.5),
            "'no'",
        ),
        (lambda: _weighted(lambda y: -np.ones(len(y))), "sample_weight.*-1"),
        (lambda: _weighted(lambda y: np.ones(3)), r"sample_weight.*\(3,\)"),
        (lambda: _prefit(("a", "b", "c"), ["a", "b"]), "'c'"),
        (lambda: _prefit(("a", "b"), ["a", "b"], costs=[1]), r"\bcosts\b"),
        (lambda: fitted([NB], tuning=GroupKFold(3)), r"\bgroups\b"),
        (lambda: RankMarginClassifier([NB]).fit(*table(), groups=[1]), r"\bgroups\b"),
        (
            lambda: RankMarginClassifier([GaussianNB().fit(*table())], prefit=True).fit(
                table()[0], table(labels=(0, 2))[1]
            ),
            r"\by\b.*\b2\b",
        ),
        (
            lambda: RankMarginClassifier([KNeighborsClassifier()]).fit(
                *table(), sample_weight=np.ones(150)
            ),
            "'kneighborsclassifier'",
        ),
        (lambda: fitted([NB], tuning=[]), r"\btuning\b"),
        (lambda: fitted([NB], positive="spam"), "'spam'"),
        (lambda: fitted([NB], data=table(labels=(0, 1, 2)), positive=1), r"\bpositive\b"),
        (lambda: fitted([NB], calibrate="no"), r"\bcalibrate\b"),
        (lambda: fitted([]), r"RankMarginClassifier.*\bmember"),
    ],
)
def test_bad_input_is_refused_by_name(call, match):
    with pytest.raises(ValueError, match=match):
        call()
