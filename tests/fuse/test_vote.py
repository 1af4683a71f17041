import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from margrave import Confusion
from margrave.fuse import VoteClassifier
from margrave.fuse._vote import count_votes, decide


class Column(ClassifierMixin, BaseEstimator):
    """A trained member that reads its predictions from one column of X."""

    def __init__(self, column, classes):
        self.column = column
        self.classes = classes

    @property
    def classes_(self):
        return np.sort(np.asarray(self.classes))

    def predict(self, X):
        return np.sort(np.asarray(self.classes))[np.asarray(X)[:, self.column].astype(int)]


def voting(votes, classes, **settings):
    """A fitted vote whose members predict the labels in ``votes``, of shape (n, L)."""
    codes = np.searchsorted(np.sort(classes), np.asarray(votes))
    members = [(f"D{i + 1}", Column(i, list(classes))) for i in range(codes.shape[1])]
    vote = VoteClassifier(members, prefit=True, **settings)
    return vote.fit(codes, np.full(len(codes), sorted(classes)[0])), codes


# The slide's three consensus patterns: ten voters, and who wins under each rule.
UNANIMOUS = ["A"] * 10
MAJORITY = ["A"] * 6 + ["B"] * 2 + ["C"] * 2
PLURALITY = ["A"] * 4 + ["B"] * 3 + ["C"] * 3
HALF = ["A"] * 5 + ["B"] * 3 + ["C"] * 2
PATTERNS = [UNANIMOUS, MAJORITY, PLURALITY, HALF]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"rule": "unanimity"}, ["A", "?", "?", "?"]),
        ({"rule": "majority"}, ["A", "A", "?", "?"]),  # half is not half plus one
        ({"rule": "plurality"}, ["A", "A", "A", "A"]),
        ({"threshold": 0.5}, ["A", "A", "?", "A"]),
        ({"threshold": 0.6}, ["A", "A", "?", "?"]),
        ({"threshold": 1.0}, ["A", "?", "?", "?"]),
    ],
)
def test_the_consensus_patterns_of_the_slides(settings, expected):
    vote, X = voting(PATTERNS, ["A", "B", "C"], reject_label="?", **settings)
    assert vote.predict(X).tolist() == expected
    assert vote.vote_counts(X).tolist() == [[10, 0, 0], [6, 2, 2], [4, 3, 3], [5, 3, 2]]
    assert vote.vote_counts(X).dtype.kind == "i"


def test_weighted_votes_worked_by_hand():
    votes = [["A", "B", "B"], ["A", "A", "B"]]
    vote, X = voting(votes, ["A", "B"], weights=[0.6, 0.3, 0.1])
    np.testing.assert_allclose(vote.vote_counts(X), [[0.6, 0.4], [0.9, 0.1]])
    assert vote.predict(X).tolist() == ["A", "A"]
    np.testing.assert_allclose(vote.predict_proba(X), [[0.6, 0.4], [0.9, 0.1]])
    most, X = voting(votes, ["A", "B"], weights=[0.6, 0.3, 0.1], threshold=0.7)
    assert most.predict(X).tolist() == ["rejected", "A"]


def test_equal_votes_go_to_the_first_class_also_when_sums_round_apart():
    assert 0.1 + 0.2 > 0.3
    vote, X = voting([["A", "B", "B"]], ["A", "B"], weights=[0.3, 0.1, 0.2])
    assert vote.predict(X).tolist() == ["A"]


def test_a_threshold_is_kept_where_floats_would_miss_it():
    assert 0.56 * 25 > 14
    vote, X = voting([["A"] * 14 + ["B"] * 11], ["A", "B"], threshold=0.56)
    assert vote.predict(X).tolist() == ["A"]


tables = st.integers(1, 7).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 2), min_size=size, max_size=size), min_size=1, max_size=8
    )
)


@given(tables, st.data())
def test_counts_are_the_brute_force_sums(table, data):
    codes = np.array(table)
    weights = np.array(
        data.draw(st.lists(st.integers(0, 5), min_size=codes.shape[1], max_size=codes.shape[1]))
    )
    expected = [
        [sum(w for w, v in zip(weights, row, strict=True) if v == c) for c in range(3)]
        for row in table
    ]
    assert count_votes(codes, weights, 3).tolist() == expected


@given(tables)
def test_relations_between_the_rules(table):
    codes = np.array(table)
    size = codes.shape[1]
    votes = count_votes(codes, np.ones(size, dtype=int), 3)
    unanimous = decide(votes, size, "unanimity")
    assert (unanimous == decide(votes, size, threshold=1.0)).all()
    majority, plurality = decide(votes, size, "majority"), decide(votes, size)
    assert (plurality >= 0).all()
    assert (majority[majority >= 0] == plurality[majority >= 0]).all()
    assert (unanimous[unanimous >= 0] == plurality[unanimous >= 0]).all()
    if size % 2:
        two = count_votes(codes % 2, np.ones(size, dtype=int), 2)
        assert (decide(two, size, "majority") == decide(two, size)).all()


def test_blocks_do_not_show():
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, (45_001, 3)).astype(np.int8)
    whole = np.stack([(codes == c).sum(axis=1) for c in range(3)], axis=1)
    assert (count_votes(codes, np.ones(3, dtype=int), 3) == whole).all()


LABELS = [("no", "yes"), (-1, 1), (1, 2), (False, True)]


@pytest.mark.parametrize("labels", LABELS, ids=str)
@pytest.mark.parametrize("wrap", [lambda member: member, FrozenEstimator], ids=["bare", "frozen"])
def test_labels_of_any_type_where_scikit_learns_vote_fails(labels, wrap):
    """Frozen members predict their own labels; VotingClassifier reads those as its codes."""
    X, y = make_blobs(120, centers=2, cluster_std=2.0, random_state=0)
    y = np.array(labels)[y]
    members = [
        wrap(member.fit(X, y))
        for member in (GaussianNB(), KNeighborsClassifier(1), DecisionTreeClassifier(max_depth=1))
    ]
    for prefit in (True, False) if wrap is FrozenEstimator else (True,):
        vote = VoteClassifier(members, prefit=prefit).fit(X, y)
        yes = sum((member.predict(X) == labels[1]).astype(int) for member in members)
        assert (vote.predict(X) == np.where(yes >= 2, labels[1], labels[0])).all()
        assert vote.classes_.tolist() == list(labels)
        assert vote.predict(X).dtype == np.asarray(labels).dtype


def test_frozen_members_break_scikit_learns_own_vote():
    """What the test above is for: if this starts to fail, the peer has been mended."""
    X, y = make_blobs(60, centers=2, random_state=0)

    def peer(labels):
        """Predict the samples that all members assign to the first label."""
        member = FrozenEstimator(GaussianNB().fit(X, labels))
        rows = member.predict(X) == labels.min()
        vote = VotingClassifier([(name, member) for name in "abc"], voting="hard")
        return vote.fit(X, labels).predict(X[rows])

    with pytest.raises((TypeError, ValueError)):
        peer(np.array(["no", "yes"])[y])
    assert set(peer(y + 1)) == {2}  # label 1 is read as code 1, which is label 2


def test_rejected_samples_are_counted_in_the_confusion_matrix():
    X, y = make_blobs(200, centers=2, cluster_std=4.0, random_state=0)
    members = [GaussianNB(), DecisionTreeClassifier(random_state=0), KNeighborsClassifier(3)]
    for labels in LABELS:
        words = np.array(labels)[y]
        vote = VoteClassifier(members, rule="unanimity").fit(X[:100], words[:100])
        matrix = Confusion.of(words[100:], vote.predict(X[100:]), reject_label=vote.reject_label_)
        agree = (
            np.ptp(
                np.stack([m.predict(X[100:]) == labels[1] for m in vote.estimators_]).astype(int),
                axis=0,
            )
            == 0
        )
        assert matrix.n_rejected == (~agree).sum() > 0
        assert matrix.classes == labels


def test_members_that_know_different_classes():
    X, y = make_blobs(90, centers=3, random_state=0)
    y = np.array(["a", "b", "c"])[y]
    members = [GaussianNB().fit(X, y), GaussianNB().fit(X[y != "c"], y[y != "c"])]
    vote = VoteClassifier(members, prefit=True).fit(X, y)
    assert vote.classes_.tolist() == ["a", "b", "c"]
    assert vote.vote_counts(X[y == "c"])[:, 2].max() == 1


def test_members_on_columns_of_a_data_frame():
    X, y = make_blobs(90, n_features=3, centers=2, random_state=0)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    members = [GaussianNB().fit(frame[["w", "u"]], y), GaussianNB().fit(frame[["v"]], y)]
    vote = VoteClassifier(members, prefit=True).fit(frame, y)
    assert (vote.explain(frame).votes[:, 1] == members[1].predict(frame[["v"]])).all()


def test_a_member_that_rejects_abstains():
    X, y = make_blobs(100, centers=2, cluster_std=5.0, random_state=0)
    inner = VoteClassifier([GaussianNB(), KNeighborsClassifier(1)], rule="unanimity").fit(X, y)
    outer = VoteClassifier(
        [("inner", inner), ("tree", DecisionTreeClassifier().fit(X, y))], prefit=True
    )
    outer.fit(X, y)
    rejected = inner.predict(X) == inner.reject_label_
    assert rejected.any()
    assert (outer.vote_counts(X).sum(axis=1) == np.where(rejected, 1, 2)).all()
    alone = VoteClassifier([inner], prefit=True).fit(X, y)
    assert (alone.predict(X)[rejected] == alone.reject_label_).all()
    assert (alone.predict_proba(X)[rejected] == 0.5).all()


def test_a_rejecting_member_abstains_though_its_reject_label_is_a_class_of_another():
    X, y = make_blobs(150, centers=3, cluster_std=4.0, random_state=0)
    two = y > 0
    careful = VoteClassifier([GaussianNB(), KNeighborsClassifier(1)], "unanimity")
    careful.fit(X[two], y[two])
    assert careful.reject_label_ == 0
    rejected = careful.predict(X) == 0
    for member in (careful, make_pipeline(FunctionTransformer(), careful)):
        outer = VoteClassifier([member, GaussianNB().fit(X, y)], prefit=True).fit(X, y)
        assert (outer.vote_counts(X).sum(axis=1) == np.where(rejected, 1, 2)).all()
    assert rejected.any()


def test_nobody_votes_is_rejected_under_every_rule():
    votes = np.zeros((1, 2))
    for settings in ({}, {"rule": "majority"}, {"rule": "unanimity"}, {"threshold": 1e-13}):
        assert decide(votes, 3, **settings).tolist() == [-1]


def test_names_are_kept_when_the_list_changes_after_fit():
    X, y = make_blobs(60, centers=2, random_state=0)
    members = [("nb", GaussianNB())]
    vote = VoteClassifier(members).fit(X, y)
    members.append(("tree", DecisionTreeClassifier()))
    assert (vote.predict(X) == vote.estimators_[0].predict(X)).all()
    assert vote.member_names_ == ["nb"]


def test_members_without_a_name_are_reached_by_their_type():
    vote = VoteClassifier([GaussianNB(), DecisionTreeClassifier()])
    assert vote.get_params()["decisiontreeclassifier__max_depth"] is None
    vote.set_params(decisiontreeclassifier__max_depth=2, gaussiannb=KNeighborsClassifier())
    assert vote.estimators[1][1].max_depth == 2
    assert isinstance(vote.estimators[0][1], KNeighborsClassifier)


def test_prefit_members_must_know_the_classes_that_are_passed_to_fit():
    X, y = make_blobs(60, n_features=3, centers=2, random_state=0)
    vote = VoteClassifier([GaussianNB().fit(X, y)], prefit=True)
    with pytest.raises(ValueError, match=r"\b2\b.*GaussianNB.*\b3\b"):
        vote.fit(X[:, :2], y)


@pytest.mark.parametrize(
    "form", [np.asarray, pd.DataFrame, coo_array, csr_array, lambda X: X.tolist()]
)
def test_accuracy_weights_split_samples_of_any_form(form):
    X, y = make_blobs(60, centers=2, cluster_std=3.0, random_state=0)
    vote = VoteClassifier([LogisticRegression(), DecisionTreeClassifier(random_state=0)])
    expected = vote.set_params(weights="accuracy").fit(X, y).weights_
    np.testing.assert_allclose(vote.fit(form(X), y).weights_, expected, rtol=1e-9)


def test_labels_in_a_nullable_column():
    X, y = make_blobs(60, centers=2, random_state=0)
    labels = pd.Series(y == 1, dtype="boolean")
    vote = VoteClassifier([GaussianNB()]).fit(X, labels)
    assert vote.classes_.tolist() == [False, True]
    assert Confusion.of(labels, vote.predict(X)).n == 60


def test_accuracy_weights_of_trained_members():
    X, y = make_blobs(100, centers=2, cluster_std=4.0, random_state=0)
    members = [GaussianNB().fit(X[:50], y[:50]), DummyClassifier().fit(X[:50], y[:50])]
    vote = VoteClassifier(members, weights="accuracy", prefit=True).fit(X[50:], y[50:])
    expected = [member.score(X[50:], y[50:]) for member in members]
    np.testing.assert_allclose(vote.weights_, expected)
    heavy = np.arange(50) + 1.0
    vote.fit(X[50:], y[50:], sample_weight=heavy)
    expected = [member.score(X[50:], y[50:], sample_weight=heavy) for member in members]
    np.testing.assert_allclose(vote.weights_, expected)


def test_accuracy_weights_of_new_members_are_held_out():
    X, y = make_blobs(100, centers=2, cluster_std=2.0, random_state=0)
    overfit = DecisionTreeClassifier(random_state=0)
    vote = VoteClassifier([("tree", overfit), ("bayes", GaussianNB())], weights="accuracy")
    vote.fit(X, y)
    assert vote.named_estimators_.tree.score(X, y) == 1.0
    assert vote.weights_[0] < 0.95
    assert vote.weights_[0] < vote.weights_[1]


def test_sample_weights_reach_the_members():
    X, y = make_blobs(60, centers=2, cluster_std=4.0, random_state=0)
    weights = np.where(y == 0, 1.0, 5.0)
    vote = VoteClassifier([("nb", GaussianNB())]).fit(X, y, sample_weight=weights)
    alone = GaussianNB().fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(vote.estimators_[0].class_prior_, alone.class_prior_)
    with pytest.raises(ValueError, match="'knn'"):
        VoteClassifier([("knn", KNeighborsClassifier())]).fit(X, y, sample_weight=weights)


def test_metadata_routing_sends_weights_where_they_are_requested():
    X, y = make_blobs(60, centers=2, cluster_std=4.0, random_state=0)
    weights = np.where(y == 0, 1.0, 5.0)
    with sklearn.config_context(enable_metadata_routing=True):
        vote = VoteClassifier(
            [
                ("nb", GaussianNB().set_fit_request(sample_weight=True)),
                ("logistic", LogisticRegression().set_fit_request(sample_weight=False)),
                ("knn", KNeighborsClassifier()),
            ],
            weights="accuracy",
        ).set_fit_request(sample_weight=True)
        vote.fit(X, y, sample_weight=weights)
        alias = VoteClassifier(
            [GaussianNB().set_fit_request(sample_weight="mine")], weights="accuracy"
        )
        alias.fit(X, y, mine=weights)
    assert vote.named_estimators_.nb.class_prior_[1] > 0.8
    assert alias.estimators_[0].class_prior_[1] > 0.8
    np.testing.assert_allclose(
        vote.named_estimators_.logistic.coef_, LogisticRegression().fit(X, y).coef_
    )


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_score_counts_rejected_samples_as_not_right(labels):
    X, y = make_blobs(200, centers=2, cluster_std=4.0, random_state=0)
    words = np.array(labels)[y]
    vote = VoteClassifier([GaussianNB(), KNeighborsClassifier(1)], "unanimity").fit(
        X[:100], words[:100]
    )
    predictions = vote.predict(X[100:]).tolist()
    right = [
        prediction == label
        for prediction, label in zip(predictions, words[100:].tolist(), strict=True)
    ]
    assert vote.reject_label_ in predictions
    assert vote.score(X[100:], words[100:]) == pytest.approx(np.mean(right))
    assert vote.score(X[100:], words[100:, None]) == pytest.approx(np.mean(right))
    with pytest.raises(ValueError, match="samples"):
        vote.score(X[100:], words[:1])
    weights = np.arange(100)
    expected = np.average(right, weights=weights)
    assert vote.score(X[100:], words[100:], sample_weight=weights) == pytest.approx(expected)


def test_rule_and_threshold_may_change_after_fit_and_are_checked():
    vote, X = voting(PATTERNS, ["A", "B", "C"], reject_label="?")
    assert vote.set_params(rule="majority").predict(X).tolist() == ["A", "A", "?", "?"]
    with pytest.raises(ValueError, match=r"\brule\b.*'foo'"):
        vote.set_params(rule="foo").predict(X)
    with pytest.raises(ValueError, match=r"\bthreshold\b.*\b7\b"):
        vote.set_params(rule="plurality", threshold=7).predict(X)


def test_explain_lists_who_voted_for_what():
    vote, X = voting([["A", "B", "B"], ["A", "A", "A"]], ["A", "B"], weights=[1, 1, 0.5])
    explanation = vote.explain(X)
    assert explanation.members == ("D1", "D2", "D3")
    assert explanation.votes.tolist() == [["A", "B", "B"], ["A", "A", "A"]]
    assert explanation.values.tolist() == [[1, 1.5], [2.5, 0]]
    assert explanation.predictions.tolist() == ["B", "A"]
    lines = str(explanation).splitlines()
    assert len(lines) == 2
    assert all(name in line for line in lines for name in ("D1", "D2", "D3"))
    assert all(fact in lines[0] for fact in ("A", "B", "1.5"))
    assert all(fact in lines[1] for fact in ("A", "2.5"))


def test_nothing_of_the_callers_is_changed():
    X, y = make_blobs(60, centers=2, random_state=0)
    X_before, y_before, weights = X.copy(), y.copy(), np.array([1.0, 2.0])
    members = [("nb", GaussianNB()), ("tree", DecisionTreeClassifier())]
    VoteClassifier(members, weights=weights).fit(X, y).predict(X)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    assert weights.tolist() == [1.0, 2.0]
    assert not hasattr(members[0][1], "classes_")


def _fit(estimators, y=None, **settings):
    X, labels = make_blobs(30, centers=2, random_state=0)
    return VoteClassifier(estimators, **settings).fit(X, labels if y is None else y)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: _fit([]), r"VoteClassifier.*\bmember"),
        (lambda: _fit(GaussianNB()), "GaussianNB"),
        (lambda: _fit([GaussianNB()], rule="most"), r"\brule\b.*'most'"),
        (lambda: _fit([GaussianNB()], threshold=0.0), r"\bthreshold\b"),
        (lambda: _fit([GaussianNB()], threshold="75%"), r"\bthreshold\b"),
        (lambda: _fit([GaussianNB()], threshold=True), r"\bthreshold\b"),
        (lambda: _fit([GaussianNB()], weights={"gaussiannb": 1}), r"\bweights\b"),
        (lambda: _fit([GaussianNB(), GaussianNB()], weights=[1e308, 1e308]), r"\bweights\b"),
        (lambda: _fit(["tree", "knn"]), "'tree'"),
        (lambda: _fit([("logistic", LinearRegression())]), "'logistic'"),
        (lambda: _fit([("rule", GaussianNB())]), "'rule'"),
        (lambda: _fit([("a__b", GaussianNB())]), "'a__b'"),
        (lambda: _fit({"a": GaussianNB()}), r"\bdict\b"),
        (lambda: _fit([GaussianNB()], reject_label=np.nan), "reject_label"),
        (lambda: _fit([GaussianNB()], y=np.array(["a", None] * 15, dtype=object)), r"\by\b"),
        (
            lambda: VoteClassifier([Column(0, [1, 2])], prefit=True).fit([[0]], [1], extra=3),
            r"\bextra\b",
        ),
        (lambda: _fit([GaussianNB()], threshold=1.1), r"\bthreshold\b"),
        (
            lambda: _fit([GaussianNB()], rule="majority", threshold=0.5),
            r"\bthreshold\b.*'majority'",
        ),
        (lambda: _fit([GaussianNB()], weights=[1, 2]), r"\bweights\b"),
        (lambda: _fit([GaussianNB(), GaussianNB()], weights=[1, -2]), r"\bweights\b"),
        (lambda: _fit([GaussianNB(), GaussianNB()], weights=[0, 0]), r"\bweights\b"),
        (lambda: _fit([GaussianNB()], weights="auc"), r"\bweights\b.*'auc'"),
        (
            lambda: VoteClassifier([GaussianNB()]).fit([[0], [1]], [0, 1], sample_weight=[1.0]),
            "sample_weight",
        ),
        (lambda: _fit([GaussianNB()], reject_label=1), "reject_label"),
        (
            lambda: _fit([GaussianNB()], y=[0] * 29 + [1], weights="accuracy"),
            r"weights='accuracy'.*\b1\b",
        ),
        (
            lambda: VoteClassifier([Column(0, ["a", "b"])], prefit=True).fit([[0]], ["z"]),
            r"\by\b.*'z'",
        ),
        (
            lambda: VoteClassifier([Column(0, ["a", "b"])], prefit=True, weights="accuracy").fit(
                [[0]], ["b"]
            ),
            "weights='accuracy'",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_prefit_members_must_be_fitted():
    with pytest.raises(NotFittedError, match="'gaussiannb'"):
        _fit([GaussianNB()], prefit=True)


def test_one_member_and_one_class_are_fine():
    vote = _fit([DecisionTreeClassifier()], y=["only"] * 30)
    assert set(vote.predict(np.zeros((3, 2)))) == {"only"}
    assert vote.predict_proba(np.zeros((3, 2))).tolist() == [[1.0]] * 3
