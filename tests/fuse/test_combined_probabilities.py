"""VoteClassifier with the rules that combine probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from margrave.fuse import VoteClassifier

RULES = ("average", "median", "product", "minimum", "maximum")


class Fixed(ClassifierMixin, BaseEstimator):
    """A trained member whose probabilities for sample i are row i of a table."""

    def __init__(self, proba, classes=("A", "B", "C")):
        self.proba = proba
        self.classes = classes

    @property
    def classes_(self):
        return np.array(self.classes)

    def predict_proba(self, X):
        return np.asarray(self.proba)[np.asarray(X)[:, 0]]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def combined(proba, rule, **settings):
    """A fitted committee with the probabilities ``proba``, of shape (L, n, C), and its samples."""
    proba = np.asarray(proba)
    X = np.arange(proba.shape[1])[:, None]
    classes = ("A", "B", "C")[: proba.shape[2]]
    members = [(f"D{i + 1}", Fixed(own, classes)) for i, own in enumerate(proba)]
    vote = VoteClassifier(members, rule, prefit=True, **settings)
    return vote.fit(X, ["A"] * len(X)), X


# Three members, one sample. Two vote for B, but the third is sure of A.
THREE = [[[0.9, 0.1, 0.0]], [[0.4, 0.5, 0.1]], [[0.3, 0.5, 0.2]]]


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        ("plurality", [1, 2, 0]),
        ("average", [1.6, 1.1, 0.3]),
        ("median", [0.4, 0.5, 0.1]),
        ("product", [0.108, 0.025, 0.0]),
        ("minimum", [0.3, 0.1, 0.0]),
        ("maximum", [0.9, 0.5, 0.2]),
    ],
)
def test_rules_worked_by_hand(rule, values):
    committee, X = combined(THREE, rule)
    expected = np.array(values) / np.sum(values)
    np.testing.assert_allclose(committee.predict_proba(X), [expected], atol=1e-15)
    assert committee.predict(X).tolist() == [["A", "B", "C"][np.argmax(values)]]


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        ("average", [0.9 + 0.8 + 0.9, 0.1 + 1.0 + 1.5, 0.0 + 0.2 + 0.6]),
        ("median", [0.35, 0.5, 0.15]),  # half of the weight is on D3
        ("product", [0.9 * 0.4**2 * 0.3**3, 0.1 * 0.5**2 * 0.5**3, 0.0]),
    ],
)
def test_weights_worked_by_hand(rule, values):
    committee, X = combined(THREE, rule, weights=[1, 2, 3])
    np.testing.assert_allclose(
        committee.predict_proba(X), [np.array(values) / np.sum(values)], atol=1e-15
    )


tables = st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(2, 3)).flatmap(
    lambda shape: arrays(float, shape, elements=st.sampled_from([0, 0.125, 0.25, 0.5, 1]))
)


@given(tables, st.sampled_from(["average", "median", "product"]), st.data())
def test_an_integer_weight_repeats_the_member(table, rule, data):
    proba = (table + 0.125) / (table + 0.125).sum(axis=2, keepdims=True)
    one_each = st.lists(st.integers(0, 4), min_size=len(proba), max_size=len(proba))
    weights = data.draw(one_each.filter(any))
    weighted, X = combined(proba, rule, weights=weights)
    repeated, _ = combined(np.repeat(proba, weights, axis=0), rule)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-12)


@given(tables, st.sampled_from(RULES))
def test_rules_are_numpys_reductions(table, rule):
    proba = (table + 0.125) / (table + 0.125).sum(axis=2, keepdims=True)
    reduce = {
        "average": np.mean,
        "median": np.median,
        "product": np.prod,
        "minimum": np.min,
        "maximum": np.max,
    }[rule]
    committee, X = combined(proba, rule)
    values = reduce(proba, axis=0)
    expected = values / values.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(committee.predict_proba(X), expected, atol=1e-12)


@pytest.mark.parametrize("weights", [None, [0.5, 2]])
def test_the_average_is_scikit_learns_soft_vote(weights):
    X, y = make_blobs(150, centers=3, cluster_std=3.0, random_state=0)
    members = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=2))]
    peer = VotingClassifier(members, voting="soft", weights=weights).fit(X, y)
    ours = VoteClassifier(members, "average", weights=weights).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-14)
    assert (ours.predict(X) == peer.predict(X)).all()


def test_a_threshold_rejects_what_is_not_probable_enough():
    committee, X = combined(THREE, "average", threshold=0.53)
    assert committee.predict(X).tolist() == ["A"]
    assert committee.set_params(threshold=0.54).predict(X).tolist() == ["rejected"]
    np.testing.assert_allclose(committee.predict_proba(X).sum(axis=1), 1)


def test_equal_values_go_to_the_first_class_also_when_sums_round_apart():
    three = [(0.4, 0.07, 0.53), (0.94, 0.01, 0.05), (0.88, 0.06, 0.06)]
    swapped = [(b, a, c) for a, b, c in three]
    tie, X = combined([[row] for row in three + swapped], "average")
    first, second, _ = tie.predict_proba(X)[0]
    assert second > first
    assert tie.predict(X).tolist() == ["A"]


@pytest.mark.parametrize("rule", ["product", "minimum"])
def test_a_sample_that_leaves_no_class_is_rejected(rule):
    committee, X = combined([[[1.0, 0.0]], [[0.0, 1.0]]], rule)
    assert committee.predict(X).tolist() == ["rejected"]
    assert committee.predict_proba(X).tolist() == [[0.5, 0.5]]


def test_the_product_of_many_members_does_not_underflow():
    committee, X = combined([[[1e-9, 1 - 1e-9]], [[2e-9, 1 - 2e-9]]] * 200, "product")
    assert committee.predict(X).tolist() == ["B"]
    many, X = combined([[[0.001, 0.002, 0.997]]] * 200 + [[[0.5, 0.5, 0.0]]], "product")
    np.testing.assert_allclose(many.predict_proba(X), [[0, 1, 0]], atol=1e-15)


@pytest.mark.parametrize("rule", ["product", "minimum"])
def test_tiny_probabilities_count(rule):
    committee, X = combined([[[1.0, 1e-17]], [[1e-20, 1.0]], [[0.9, 0.1]]], rule)
    values = {"product": [9e-21, 1e-18], "minimum": [1e-20, 1e-17]}[rule]
    np.testing.assert_allclose(
        committee.predict_proba(X), [np.array(values) / np.sum(values)], rtol=1e-9
    )
    assert committee.predict(X).tolist() == ["B"]


def test_probabilities_are_at_most_1():
    weights = np.random.default_rng(0).random((50, 8))
    totals = [sum(row.tolist()) / row.sum() for row in weights]
    assert max(totals) > 1  # sums in another order round to more than 1
    committee, X = combined([[[1.0, 0.0]]] * 8, "average", weights=weights[np.argmax(totals)])
    assert committee.predict_proba(X).tolist() == [[1.0, 0.0]]


def test_probabilities_in_float32_sum_to_1():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), (2, 40)).astype(np.float32)
    committee, X = combined(proba, "average")
    np.testing.assert_allclose(committee.predict_proba(X).sum(axis=1), 1, rtol=1e-14)
    zeros, X = combined(np.zeros((1, 1, 2), dtype=np.float32), "average")
    assert zeros.predict(X).tolist() == ["rejected"]


@pytest.mark.parametrize("rule", ["product", "minimum"])
def test_probabilities_that_round_below_0_count_as_0(rule):
    committee, X = combined([[[1 + 1e-7, -1e-7]], [[0.9, 0.1]]], rule)
    assert committee.predict_proba(X).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("rule", RULES)
def test_threads_do_not_change_the_result(rule):
    X, y = make_blobs(60, centers=3, cluster_std=4.0, random_state=0)
    members = [GaussianNB(var_smoothing=10.0**-power) for power in range(1, 12)]
    one = VoteClassifier(members, rule).fit(X, y)
    expected = one.predict_proba(X)
    np.testing.assert_array_equal(one.set_params(n_jobs=2).predict_proba(X), expected)


def test_a_member_without_weight_does_not_count():
    committee, X = combined([[[1.0, 0.0]], [[0.3, 0.7]]], "product", weights=[0, 1])
    np.testing.assert_allclose(committee.predict_proba(X), [[0.3, 0.7]])


def test_members_that_know_different_classes():
    X, y = make_blobs(90, centers=3, random_state=0)
    members = [GaussianNB().fit(X, y), GaussianNB().fit(X[y < 2], y[y < 2])]
    average = VoteClassifier(members, "average", prefit=True).fit(X, y).predict_proba(X)
    unknown = np.c_[members[1].predict_proba(X), np.zeros(90)]
    np.testing.assert_allclose(average, (members[0].predict_proba(X) + unknown) / 2, atol=1e-15)


def test_accuracy_weights():
    X, y = make_blobs(100, centers=2, cluster_std=4.0, random_state=0)
    members = [GaussianNB().fit(X[:50], y[:50]), DecisionTreeClassifier().fit(X[:50], y[:50])]
    committee = VoteClassifier(members, "average", weights="accuracy", prefit=True)
    committee.fit(X[50:], y[50:])
    scores = [member.score(X[50:], y[50:]) for member in members]
    np.testing.assert_allclose(committee.weights_, scores)
    expected = np.average([m.predict_proba(X) for m in members], axis=0, weights=scores)
    np.testing.assert_allclose(committee.predict_proba(X), expected, atol=1e-15)


def test_explain_shows_the_combined_probabilities():
    committee, X = combined(THREE, "average")
    explanation = committee.explain(X)
    assert explanation.votes.tolist() == [["A", "B", "B"]]
    np.testing.assert_allclose(explanation.values, committee.predict_proba(X))
    assert explanation.predictions.tolist() == ["A"]


def test_explain_shows_a_predicted_class_that_no_member_predicts():
    committee, X = combined([[[0.5, 0.05, 0.45]], [[0.05, 0.5, 0.45]]], "average")
    assert committee.predict(X).tolist() == ["C"]
    assert "C 0.45" in str(committee.explain(X))


def test_the_rule_may_change_after_fit():
    X, y = make_blobs(60, centers=2, cluster_std=4.0, random_state=0)
    vote = VoteClassifier([GaussianNB(), LogisticRegression()]).fit(X, y)
    for rule in RULES:
        fresh = VoteClassifier([GaussianNB(), LogisticRegression()], rule).fit(X, y)
        changed = vote.set_params(rule=rule).predict_proba(X)
        np.testing.assert_array_equal(changed, fresh.predict_proba(X))


@pytest.mark.parametrize("rule", ["minimum", "maximum"])
def test_minimum_and_maximum_take_no_weights(rule):
    with pytest.raises(ValueError, match=rf"\bweights\b.*'{rule}'"):
        combined(THREE, rule, weights=[1, 2, 3])


@pytest.mark.parametrize("rule", RULES)
def test_members_need_probabilities(rule):
    X, y = make_blobs(30, centers=2, random_state=0)
    with pytest.raises(ValueError, match=rf"{rule}.*predict_proba.*'perceptron'"):
        VoteClassifier([GaussianNB(), Perceptron()], rule).fit(X, y)
    vote = VoteClassifier([Perceptron()]).fit(X, y)
    with pytest.raises(ValueError, match="predict_proba"):
        vote.set_params(rule=rule).predict(X)


@pytest.mark.parametrize("threshold", [0, 1.5, "high"])
def test_a_threshold_is_a_probability(threshold):
    with pytest.raises(ValueError, match=r"\bthreshold\b"):
        combined(THREE, "average", threshold=threshold)
