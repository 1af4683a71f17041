"""Modest AdaBoost: hand-worked rounds, the normalisation, early stopping and randomness."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from margrave import datasets
from margrave.members import ModestAdaBoostClassifier
from margrave.members._modest_adaboost import invert_weights

STUMP = DecisionTreeClassifier(max_depth=1)

# Four samples in two leaves: a negative and a positive at 0, two positives at 1.
X = np.array([[0.0], [0], [1], [1]])
Y = np.array([0, 1, 1, 1])
WEIGHTS = [1, 2, 3, 4]


def one_leaf(plus, minus, other_plus, other_minus):
    return plus * (1 - other_plus) - minus * (1 - other_minus)


def test_one_round_by_hand():
    D = [Fraction(weight, 10) for weight in WEIGHTS]
    other = [(1 - weight) / 3 for weight in D]
    left = one_leaf(D[1], D[0], other[1], other[0])
    right = one_leaf(D[2] + D[3], 0, other[2] + other[3], 0)
    assert (left, right) == (Fraction(23, 300), Fraction(119, 300))
    model = ModestAdaBoostClassifier(STUMP, 1, random_weights=False).fit(X, Y, WEIGHTS)
    expected = [float(left), float(left), float(right), float(right)]
    np.testing.assert_allclose(model.decision_function(X), expected)
    # Both leaves have positive scores, the mixed one a smaller one.
    assert model.predict(X).tolist() == [1, 1, 1, 1]


def test_the_second_round_has_weights_moved_against_the_first():
    model = ModestAdaBoostClassifier(STUMP, 2, random_weights=False).fit(X, Y, WEIGHTS)
    left, right = 23 / 300, 119 / 300
    D = np.array(WEIGHTS) * np.exp([left, -left, -right, -right])
    D /= D.sum()
    other = (1 - D) / 3
    expected = [
        left + one_leaf(D[1], D[0], other[1], other[0]),
        right + one_leaf(D[2] + D[3], 0, other[2] + other[3], 0),
    ]
    np.testing.assert_allclose(model.decision_function([[0], [1]]), expected)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=20))
def test_inverted_weights_sum_to_one_and_reverse_the_order(weights):
    D = np.array(weights) / sum(weights)
    assert invert_weights(D).sum() == pytest.approx(1)
    np.testing.assert_array_equal(
        invert_weights(D)[np.argsort(D)], np.sort(invert_weights(D))[::-1]
    )


def test_two_samples():
    np.testing.assert_allclose(invert_weights(np.array([0.25, 0.75])), [0.75, 0.25])
    model = ModestAdaBoostClassifier(random_weights=False).fit([[0], [1]], ["a", "b"])
    np.testing.assert_allclose(model.leaf_scores_[0][0], [0, -0.25, 0.25])
    assert model.predict([[0], [1]]).tolist() == ["a", "b"]


def test_without_the_normalisation_a_pure_leaf_would_have_the_wrong_sign():
    positive, D = np.array([True] * 3 + [False] * 3), np.full(6, 1 / 6)
    model = ModestAdaBoostClassifier(n_estimators=1, random_weights=False)
    model.fit(np.where(positive, 0, 1)[:, None], positive)
    np.testing.assert_allclose(model.leaf_scores_[0][0], [0, 0.25, -0.25])
    raw = 1 - D
    assert one_leaf(D[positive].sum(), 0, raw[positive].sum(), 0) < 0


@given(st.integers(0, 1000), st.booleans())
def test_scores_of_leaves_are_between_minus_one_and_one(seed, random_weights):
    rng = np.random.default_rng(seed)
    rows, labels = rng.integers(0, 4, (12, 2)), np.arange(12) % 2
    model = ModestAdaBoostClassifier(
        n_estimators=4, random_weights=random_weights, random_state=seed
    ).fit(rows, labels)
    for tree, scores in zip(model.estimators_[0], model.leaf_scores_[0], strict=True):
        assert np.abs(scores).max() <= 1
        inner = tree.tree_.children_left >= 0
        assert not scores[inner].any()
    assert np.abs(model.decision_function(rows)).max() <= len(model.estimators_[0])


def test_boosting_stops_when_a_tree_adds_nothing():
    # One leaf and equal weights: f = P⁺ − P̄⁺ = 0.
    model = ModestAdaBoostClassifier(random_weights=False).fit(np.ones((6, 1)), [0, 1, 1, 0, 1, 1])
    assert model.n_iter_.tolist() == [0]
    assert model.estimators_ == [[]]
    assert model.decision_function([[1], [2]]).tolist() == [0, 0]
    assert model.predict([[1], [2]]).tolist() == [0, 0]


def test_the_score_is_the_sum_over_the_trees():
    rows, labels = make_classification(100, 5, random_state=0)
    model = ModestAdaBoostClassifier(random_state=0).fit(rows, labels)
    assert model.n_iter_.tolist() == [len(model.estimators_[0])] == [10]
    total = sum(
        scores[tree.apply(rows)]
        for tree, scores in zip(model.estimators_[0], model.leaf_scores_[0], strict=True)
    )
    np.testing.assert_allclose(model.decision_function(rows), total)
    np.testing.assert_array_equal(model.predict(rows), total > 0)
    assert not hasattr(model, "predict_proba")


def test_members_differ_by_their_seeds_only_with_random_weights():
    rows, labels = make_classification(120, 6, flip_y=0.2, random_state=0)

    def scores(seed, **params):
        model = ModestAdaBoostClassifier(random_state=seed, **params).fit(rows, labels)
        return model.decision_function(rows)

    np.testing.assert_array_equal(scores(0), scores(0))
    assert np.any(scores(0) != scores(1))
    # A stump's best split is a single one here, so nothing else is random.
    fixed = {"estimator": STUMP, "random_weights": False}
    np.testing.assert_array_equal(scores(0, **fixed), scores(1, **fixed))


def test_samples_of_weight_zero_are_left_out():
    rows, labels = make_classification(80, 4, random_state=0)
    kept = np.arange(80) % 3 > 0
    model = ModestAdaBoostClassifier(random_state=0)
    part = model.fit(rows[kept], labels[kept]).decision_function(rows)
    whole = model.fit(rows, labels, sample_weight=kept).decision_function(rows)
    np.testing.assert_allclose(part, whole, rtol=1e-9)


def test_a_better_ranker_than_one_tree():
    sonar = datasets.load("sonar")
    train, test, y_train, y_test = train_test_split(
        sonar.data, sonar.target, test_size=0.4, random_state=0, stratify=sonar.target
    )
    model = ModestAdaBoostClassifier(random_state=0).fit(train, y_train)
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(train, y_train)
    positive = y_test == model.classes_[1]
    auc = roc_auc_score(positive, model.decision_function(test))
    assert auc > 0.7
    assert auc > roc_auc_score(positive, stump.predict_proba(test)[:, 1])


def test_every_class_against_the_rest():
    rows, codes = make_blobs(150, centers=4, cluster_std=1.0, random_state=3)
    labels = np.array(["d", "a", "c", "b"])[codes]
    model = ModestAdaBoostClassifier(random_state=0).fit(rows, labels)
    scores = model.decision_function(rows)
    assert scores.shape == (150, 4)
    assert [len(trees) for trees in model.estimators_] == model.n_iter_.tolist()
    assert model.score(rows, labels) > 0.9
    np.testing.assert_array_equal(model.predict(rows), model.classes_[scores.argmax(axis=1)])


def test_other_trees():
    rows, labels = make_blobs(100, centers=2, cluster_std=1.0, random_state=3)
    model = ModestAdaBoostClassifier(ExtraTreeClassifier(max_depth=2), random_state=0)
    assert model.fit(rows, labels).score(rows, labels) > 0.9
    assert all(type(tree) is ExtraTreeClassifier for tree in model.estimators_[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator", GaussianNB()),
        ("estimator", RandomForestClassifier()),
        ("estimator", "tree"),
        ("n_estimators", 0),
        ("n_estimators", "10"),
        ("random_weights", "uniform"),
    ],
)
def test_bad_parameters_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        ModestAdaBoostClassifier(**{name: value}).fit(X, Y)


def test_one_sample_is_one_class():
    with pytest.raises(ValueError, match=r"\by\b"):
        ModestAdaBoostClassifier().fit([[0]], [1])
