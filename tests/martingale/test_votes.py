"""The rules of martingale boosting: kinds of nodes, ties, frozen ends and final votes."""

from functools import cache
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from tests.examples import few

from margrave.martingale import MartingaleBoostClassifier, Node
from margrave.martingale._boost import VoteRouting, final_votes

SEEDS = st.integers(0, 2**32 - 1)


class Scripted(ClassifierMixin, BaseEstimator):
    """Answers by column 0 where ``n_root`` samples came, which is the root, else by column 1."""

    def __init__(self, n_root=0):
        self.n_root = n_root

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.column_ = 0 if len(y) == self.n_root else 1
        return self

    def predict(self, X):
        return X[:, self.column_].astype(int)


@cache
def made(k=2, n=120, seed=0):
    X, y = make_classification(
        n, 5, n_informative=3, n_redundant=0, n_classes=k, n_clusters_per_class=1, flip_y=0.2,
        class_sep=0.8, random_state=seed,
    )  # fmt: skip
    return X, y


def kinds(model):
    return {
        (node.layer, node.position): (node.kind, node.prediction) for node in model.program_.nodes
    }


def same_program(one, other):
    a, b = one.program_, other.program_
    return (
        (a.nodes, a.edges) == (b.nodes, b.edges)
        and np.array_equal(a.counts, b.counts)
        and np.array_equal(a.flow, b.flow)
    )


# The kind of a node, by hand


@pytest.mark.parametrize(
    ("mass", "expected"),
    [
        ((32, 8), ("learner", None)),
        ((32, 4), ("learner", None)),  # 4/64 is the limit, and not below it
        ((32, 3), ("frozen", 0)),
        ((3, 32), ("frozen", 1)),
        ((3, 2), ("frozen", 0)),
        ((0, 9), ("frozen", 1)),  # pure, and no class but one comes often enough
        ((0, 0), ("empty", 1)),  # (0, 1): class 1 leads
    ],
)
def test_two_classes_freeze_where_the_rarer_comes_too_seldom(mass, expected):
    # ε / (L (L + 1)) = 0.75 / 12 = 1/16 of 64 samples: 4 of a class.
    votes, total = VoteRouting(3, 0.75, 2), np.array([64.0, 64.0])
    assert votes.node_kind(1, (0, 1), np.array(mass, float), total) == expected


@pytest.mark.parametrize(
    ("mass", "expected"),
    [
        ((60, 30, 0), ("learner", None)),  # the minimum, 0, would freeze it
        ((60, 10, 0), ("learner", None)),  # 10/80 is the limit, and not below it
        ((60, 9, 9), ("frozen", 0)),
        ((9, 9, 60), ("frozen", 2)),
        ((9, 10, 60), ("learner", None)),
    ],
)
def test_three_classes_freeze_by_the_second_largest(mass, expected):
    # ε / (2 C(L + k − 1, k)) = 1 / (2 C(4, 3)) = 1/8 of 80 samples: 10 of a class.
    votes, total = VoteRouting(2, 1.0, 3), np.full(3, 80.0)
    assert votes.node_kind(1, (0, 1, 0), np.array(mass, float), total) == expected


@pytest.mark.parametrize("n_levels", range(1, 16))
def test_for_two_classes_the_limit_is_that_of_the_paper(n_levels):
    assert VoteRouting(n_levels, 0.3, 2).min_reach == pytest.approx(
        0.3 / (n_levels * (n_levels + 1))
    )
    assert VoteRouting(n_levels, 0.3, 4).min_reach == pytest.approx(
        0.3 / (2 * comb(n_levels + 3, 4))
    )


@pytest.mark.parametrize("freeze", [None, 0, 0.0])
def test_without_freezing_pure_nodes_are_constant_and_the_others_learn(freeze):
    votes, total = VoteRouting(3, freeze, 2), np.array([1e6, 1e6])
    assert votes.node_kind(1, (0, 1), np.array([1.0, 1e6]), total) == ("learner", None)
    assert votes.node_kind(1, (0, 1), np.array([7.0, 0.0]), total) == ("constant", 0)
    assert votes.node_kind(1, (1, 0), np.array([0.0, 7.0]), total) == ("constant", 1)


def test_a_frozen_node_predicts_by_reach_and_not_by_the_raw_majority():
    """METHODS.md: 100 positives and 100,000 negatives; 40 of 500 that come are positive."""
    total, mass = np.array([100_000.0, 100.0]), np.array([460.0, 40.0])
    assert VoteRouting(3, 0.1, 2).node_kind(2, (1, 1), mass, total) == ("frozen", 1)
    assert VoteRouting(3, 0.05, 2).node_kind(2, (1, 1), mass, total) == ("learner", None)


@pytest.mark.parametrize(
    ("key", "mass", "prediction"),
    [
        ((3, 1), (5, 50), 0),  # votes decide, whoever came
        ((1, 3), (50, 5), 1),
        ((2, 2), (30, 20), 1),  # a tie: 30 of 100 came against 20 of 40
        ((2, 2), (30, 2), 0),
        ((2, 2), (0, 0), 0),  # a tie to which nobody came: there are more of class 0
    ],
)
def test_a_leaf_predicts_most_votes_and_its_samples_settle_a_tie(key, mass, prediction):
    total = np.array([100.0, 40.0])
    assert VoteRouting(4, None, 2).node_kind(4, key, np.array(mass, float), total) == (
        "leaf",
        prediction,
    )


@pytest.mark.parametrize(
    ("key", "mass", "prediction"),
    [
        ((1, 1, 0), (3, 4, 90), 1),  # class 2 came most, but does not lead
        ((0, 1, 1), (90, 3, 4), 2),
        ((2, 0, 0), (0, 5, 5), 0),
    ],
)
def test_a_tie_of_three_classes_is_settled_among_those_that_lead(key, mass, prediction):
    total = np.full(3, 100.0)
    assert VoteRouting(2, None, 3).node_kind(2, key, np.array(mass, float), total) == (
        "leaf",
        prediction,
    )


def test_a_tie_of_absent_classes_is_settled_by_all_samples():
    total = np.array([10.0, 20.0, 30.0])
    kind = VoteRouting(2, None, 3).node_kind(2, (1, 1, 0), np.array([0.0, 0.0, 5.0]), total)
    assert kind == ("leaf", 1)


def test_an_empty_node_predicts_the_class_that_leads():
    total, nobody = np.array([10.0, 20.0]), np.zeros(2)
    votes = VoteRouting(5, None, 2)
    assert votes.node_kind(3, (2, 1), nobody, total) == ("empty", 0)
    assert votes.node_kind(3, (1, 2), nobody, total) == ("empty", 1)
    assert votes.node_kind(2, (1, 1), nobody, total) == ("empty", 1)


# How samples move


def test_every_prediction_is_a_vote_and_an_edge():
    votes, predictions = VoteRouting(3, None, 3), np.array([2, 0, 2])
    at = Node(1, (1.0, 0.0, 0.0), "learner")
    gone = votes.branches(at, predictions, np.zeros((3, 3)))
    assert [(key, prediction, members.tolist()) for key, prediction, members in gone] == [
        ((2, 0, 0), 0, [1]),
        ((1, 0, 1), 2, [0, 2]),
    ]
    there = list(votes.required_children(at, np.array([0, 1, 2])))
    assert there == [((2, 0, 0), 0), ((1, 1, 0), 1), ((1, 0, 1), 2)]


# The final votes


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Node(5, (2.0, 3.0), "leaf", 1), (2, 3)),
        (Node(4, (2.0, 2.0), "leaf", 1), (2, 2.5)),  # a tie that was settled
        (
            Node(1, (1.0, 0.0), "empty", 0),
            (5, 0),
        ),  # the votes it did not cast are for its prediction
        (
            Node(4, (3.0, 1.0), "frozen", 1),
            (3, 3.5),
        ),  # its prediction does not lead, even with them
        (Node(1, (1.0, 0.0), "frozen", 1), (1, 4)),
        (Node(2, (1.0, 1.0), "learner", None), (1, 1)),  # no end
    ],
)
def test_the_votes_at_an_end(node, expected):
    n_levels = 4 if node.layer == 4 and node.kind == "leaf" else 5
    assert final_votes(node, n_levels).tolist() == list(expected)


@given(
    votes=st.lists(st.integers(0, 4), min_size=2, max_size=4),
    extra=st.integers(0, 5),
    prediction=st.integers(0, 3),
)
def test_the_prediction_of_an_end_always_leads(votes, extra, prediction):
    prediction %= len(votes)
    node = Node(sum(votes), tuple(map(float, votes)), "frozen", prediction)
    final = final_votes(node, sum(votes) + extra)
    assert final.argmax() == prediction
    assert (final == final.max()).sum() == 1
    others = np.arange(len(votes)) != prediction
    np.testing.assert_array_equal(final[others], np.array(votes)[others])


# Programs


@pytest.mark.parametrize("k", [2, 3])
@few(5)
@given(seed=SEEDS)
def test_the_kind_of_a_node_follows_from_its_samples(k, seed):
    X, y = made(k, 60, seed % 1000)
    learner = DecisionTreeClassifier(max_depth=1)
    model = MartingaleBoostClassifier(learner, 5, random_state=seed).fit(X, y)
    program = model.program_
    for node, came in zip(program.nodes, program.sizes > 0, strict=True):
        expected = {0: "empty", 1: "constant"}.get(int(came.sum()), "learner")
        assert node.kind == ("leaf" if node.layer == 5 else expected)
        if node.kind == "constant":
            assert came[node.prediction]
        if node.kind in ("empty", "leaf"):
            assert node.position[node.prediction] == max(node.position)
    learning = {at for at, node in enumerate(program.nodes) if node.kind == "learner"}
    assert set(model.learners_) == learning


def test_a_pure_node_predicts_its_class_against_its_votes():
    """The root is wrong on both samples of class 1; all that it predicts 0 are of class 1."""
    X = np.array([[1, 1]] * 6 + [[0, 0]] * 2 + [[1, 0]] * 2)
    y = np.array([0] * 6 + [1] * 4)
    model = MartingaleBoostClassifier(Scripted(10), 3, balance=False).fit(X, y)
    assert kinds(model)[1, (1.0, 0.0)] == ("constant", 1)
    assert kinds(model)[2, (1.0, 1.0)][0] == "constant"
    path = model.decision_path([[0, 0]]).indices
    assert [model.program_.nodes[at].position for at in path] == [(0, 0), (1, 0), (1, 1), (1, 2)]
    assert model.predict([[0, 0]]).tolist() == [1]


def test_paths_end_at_nodes_without_samples():
    X, y = np.array([[1, 1]] * 9), np.array([0] * 5 + [1] * 4)
    model = MartingaleBoostClassifier(Scripted(9), 3, balance=False).fit(X, y)
    assert kinds(model) == {
        (0, (0, 0)): ("learner", None),
        (1, (0, 1)): ("learner", None),
        (1, (1, 0)): ("empty", 0),
        (2, (0, 2)): ("learner", None),
        (2, (1, 1)): ("empty", 0),  # a tie: there are more of class 0
        (3, (0, 3)): ("leaf", 1),
        (3, (1, 2)): ("leaf", 1),
    }
    new = np.array([[1, 1], [0, 1]])
    paths = model.decision_path(new)
    ends = [model.program_.nodes[paths[[i]].indices.max()] for i in range(2)]
    assert [(end.kind, end.position) for end in ends] == [("leaf", (0, 3)), ("empty", (1, 0))]
    assert model.predict(new).tolist() == [1, 0]


def test_a_learner_that_always_predicts_one_class():
    X, y = made()
    model = MartingaleBoostClassifier(DummyClassifier(strategy="constant", constant=1), 4).fit(X, y)
    assert set(model.predict(X)) == {1}
    assert model.error_rates() == {0: 1.0, 1: 0.0}
    assert [kind for kind, _ in kinds(model).values()].count("empty") == 3


@pytest.mark.parametrize("swap", [False, True])
def test_the_middle_leaf_of_two_levels_is_settled_by_the_training_data(swap):
    """Three of six of one class come there and two of three of the other: the other it is."""
    predictions = [(0, 0), (0, 0), (0, 1), (0, 1), (1, 0), (1, 1), (0, 1), (1, 0), (1, 1)]
    X, y = np.array(predictions), np.array([0] * 6 + [1] * 3)
    y = 1 - y if swap else y
    model = MartingaleBoostClassifier(Scripted(9), 2, balance=False).fit(X, y)
    assert kinds(model)[2, (1.0, 1.0)] == ("leaf", 0 if swap else 1)
    middle = np.array([0, 1]), np.array([1, 0])
    assert model.predict(middle).tolist() == ([0, 0] if swap else [1, 1])
    assert model.predict([[0, 0], [1, 1]]).tolist() == [0, 1]


@pytest.mark.parametrize("n_levels", [2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_ties_at_an_even_number_of_levels(n_levels, seed):
    X, y = made(seed=seed)
    model = MartingaleBoostClassifier(GaussianNB(), n_levels).fit(X, y)
    program = model.program_
    half = (n_levels / 2,) * 2
    (middle,) = [
        at for at, one in enumerate(program.nodes) if (one.layer, one.position) == (n_levels, half)
    ]
    assert program.sizes[middle].sum() > 0
    assert program.nodes[middle].prediction == program.reach[middle].argmax()


# Freezing


@pytest.mark.parametrize("k", [2, 3])
def test_freezing_with_0_changes_nothing(k):
    X, y = made(k)
    plain = MartingaleBoostClassifier(n_levels=6).fit(X, y)
    for freeze in (0, 0.0):
        frozen = MartingaleBoostClassifier(n_levels=6, freeze=freeze).fit(X, y)
        assert same_program(plain, frozen)
        np.testing.assert_allclose(plain.predict_proba(X), frozen.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("k", [2, 3])
def test_frozen_nodes_are_those_that_the_second_class_seldom_reaches(k):
    X, y = made(k, 200)
    n_levels, freeze = 6, 3.0
    model = MartingaleBoostClassifier(n_levels=n_levels, freeze=freeze).fit(X, y)
    program = model.program_
    least = freeze / (2 * comb(n_levels + k - 1, k))
    second = np.sort(program.reach, axis=1)[:, -2]
    found = {"frozen": 0, "learner": 0}
    for node, reach, size in zip(program.nodes, second, program.sizes, strict=True):
        if node.layer == n_levels or not size.any():
            continue
        assert node.kind == ("frozen" if reach < least else "learner")
        found[node.kind] += 1
    assert min(found.values()) > 0
    for at, node in enumerate(program.nodes):
        if node.kind == "frozen":
            assert node.prediction == program.reach[at].argmax()
            assert not any(edge.start == at for edge in program.edges)


def test_frozen_programs_are_smaller():
    X, y = made(n=300)
    sizes = [
        len(MartingaleBoostClassifier(n_levels=9, freeze=freeze).fit(X, y).learners_)
        for freeze in (None, 1.0, 4.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2] > 1


def test_a_frozen_node_of_an_unbalanced_program_keeps_the_rare_class():
    """Of 2,000 negatives 60 and of 20 positives 16 come to a node that calls them positive."""
    X = np.zeros((2020, 2), dtype=int)
    y = np.repeat([0, 1], [2000, 20])
    X[:60, 0] = X[2000:2016, 0] = 1
    # 60/2000 = 0.03 is below the limit of ε / (L (L + 1)) = 0.05; 16/20 is not.
    model = MartingaleBoostClassifier(Scripted(2020), 3, freeze=0.6, balance=False).fit(X, y)
    assert kinds(model)[1, (0.0, 1.0)] == ("frozen", 1)
    assert model.predict([[1, 0]]).tolist() == [1]
    assert model.error_rates() == {0: 0.03, 1: 0.2}


def test_a_program_that_is_frozen_at_its_root_predicts_one_class():
    X, y = made()
    model = MartingaleBoostClassifier(n_levels=3, freeze=1e6).fit(X, y)
    assert [node.kind for node in model.program_.nodes] == ["frozen"]
    assert model.learners_ == {}
    assert len(set(model.predict(X))) == 1
    assert model.decision_path(X).sum() == len(X)
    assert model.program_.n_levels == 0
