"""Real AdaBoost: hand-worked rounds, the best leaves, the bound on the error, stages and limits."""

from math import log

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_classification, make_moons
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from margrave.members import ModestAdaBoostClassifier, RealAdaBoostClassifier

# Four samples in two leaves: a negative and a positive at 0, two positives at 1.
X = np.array([[0.0], [0], [1], [1]])
Y = np.array([0, 1, 1, 1])
WEIGHTS = [1, 2, 3, 4]


def noisy(n=200, **options):
    return make_classification(n, 6, flip_y=0.2, random_state=0, **options)


def test_one_round_by_hand():
    model = RealAdaBoostClassifier(n_estimators=1).fit(X, Y, WEIGHTS)
    expected = np.array([log(201 / 101), log(701 / 1)]) / 2
    np.testing.assert_allclose(model.decision_function([[0], [1]]), expected)


def test_two_rounds_by_hand():
    rows, labels = np.array([[0.0]] * 4 + [[1]] * 4), [0, 0, 0, 1, 0, 1, 1, 1]
    weights = np.array([1, 2, 1, 1, 1, 3, 1, 2])
    first = np.array([log(1 / 4), log(6 / 1)]) / 2
    model = RealAdaBoostClassifier(smoothing=1e-12, n_estimators=2)
    model.fit(rows, labels, weights)
    stages = list(model.staged_decision_function([[0], [1]]))
    np.testing.assert_allclose(stages[0], first, rtol=1e-6)
    # The weights of both classes are now equal in each leaf: the same stump adds nothing.
    np.testing.assert_allclose(stages[-1], first, rtol=1e-6)


@pytest.mark.parametrize("smoothing", [1e-4, 0.1])
def test_every_leaf_has_the_smallest_normaliser(smoothing):
    rows, labels = noisy()
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    model = RealAdaBoostClassifier(tree, 1, smoothing=smoothing, random_state=0).fit(rows, labels)
    leaves = model.estimators_[0][0].apply(rows)
    for leaf in np.unique(leaves):
        plus, minus = (
            np.mean((leaves == leaf) & (labels == label)) + smoothing for label in (1, 0)
        )
        grid = np.linspace(-5, 5, 100_001)
        best = grid[(plus * np.exp(-grid) + minus * np.exp(grid)).argmin()]
        assert model.leaf_scores_[0][0][leaf] == pytest.approx(best, abs=1e-3)


def test_equals_discrete_adaboost_if_both_leaves_have_the_same_error():
    rows, labels = np.array([[0.0]] * 4 + [[1]] * 4), np.array([0, 0, 0, 1, 0, 1, 1, 1])
    real = RealAdaBoostClassifier(n_estimators=1, smoothing=1e-12).fit(rows, labels)
    discrete = AdaBoostClassifier(n_estimators=1).fit(rows, labels)
    expected = 0.5 * discrete.estimator_weights_[0]  # scikit-learn's α is twice the survey's
    assert expected == pytest.approx(0.5 * log(3))
    np.testing.assert_allclose(real.decision_function([[0], [1]]), [-expected, expected])


def test_the_product_of_the_normalisers_bounds_the_error():
    rows, labels = noisy()
    sign, weights = np.where(labels, 1, -1), np.arange(200) % 4 + 1.0
    model = RealAdaBoostClassifier(n_estimators=20, random_state=0).fit(rows, labels, weights)
    D, previous, product = weights / weights.sum(), np.zeros(200), 1.0
    for scores in model.staged_decision_function(rows):
        added, previous = scores - previous, scores
        z = np.sum(D * np.exp(-sign * added))
        D, product = D * np.exp(-sign * added) / z, product * z
        wrong = weights[(scores > 0) != labels].sum() / weights.sum()
        assert wrong <= product < 1
    assert product == pytest.approx(np.average(np.exp(-sign * previous), weights=weights))


def test_weights_count_like_repeated_samples():
    rows, labels = noisy()
    often = np.arange(200) % 3
    model = RealAdaBoostClassifier(n_estimators=20, random_state=0)
    weighted = model.fit(rows, labels, sample_weight=often).decision_function(rows)
    scaled = model.fit(rows, labels, sample_weight=7 * often).decision_function(rows)
    repeated = model.fit(np.repeat(rows, often, axis=0), np.repeat(labels, often))
    np.testing.assert_allclose(weighted, repeated.decision_function(rows), rtol=1e-6)
    np.testing.assert_allclose(weighted, scaled, rtol=1e-6)


def test_probabilities_are_those_of_half_log_odds():
    rows, labels = noisy()
    model = RealAdaBoostClassifier(n_estimators=5, random_state=0).fit(rows, labels)
    proba = model.predict_proba(rows)
    odds = np.exp(2 * model.decision_function(rows))
    np.testing.assert_allclose(proba[:, 1], odds / (1 + odds))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(proba.argmax(axis=1), model.predict(rows))
    assert log_loss(labels, proba) < log_loss(labels, np.full(200, labels.mean()))


def test_every_class_against_the_rest():
    rows, codes = make_blobs(150, centers=4, cluster_std=1.0, random_state=3)
    labels = np.array(["d", "a", "c", "b"])[codes]
    model = RealAdaBoostClassifier(random_state=0).fit(rows, labels)
    assert model.score(rows, labels) > 0.9
    proba = model.predict_proba(rows)
    against_rest = 1 / (1 + np.exp(-2 * model.decision_function(rows)))
    np.testing.assert_allclose(proba, against_rest / against_rest.sum(axis=1, keepdims=True))
    far = model.predict_proba([[1e6, -1e6]])
    assert np.isfinite(far).all()


@pytest.mark.parametrize("kind", [RealAdaBoostClassifier, ModestAdaBoostClassifier])
def test_stages_are_the_scores_of_fewer_rounds(kind):
    rows, codes = make_blobs(150, centers=3, cluster_std=3.0, random_state=3)
    for labels in (codes, codes > 0):
        model = kind(n_estimators=6, random_state=0).fit(rows, labels)
        stages = list(model.staged_decision_function(rows))
        assert len(stages) == model.n_iter_.max() == 6
        np.testing.assert_array_equal(stages[-1], model.decision_function(rows))
        for scores, predicted in zip(stages, model.staged_predict(rows), strict=True):
            expected = scores.argmax(axis=1) if scores.ndim == 2 else scores > 0
            np.testing.assert_array_equal(predicted, expected)
    shorter = kind(n_estimators=2, random_state=0).fit(rows, codes > 0)
    np.testing.assert_array_equal(stages[1], shorter.decision_function(rows))


def test_problems_with_fewer_rounds_keep_their_scores():
    # The first class is separable by one stump, the others overlap.
    rows = np.r_[np.full((20, 1), -9.0), np.linspace(0, 3, 40)[:, None]]
    labels = np.r_[np.zeros(20, int), 1 + (np.arange(40) * 7 % 40 > 19)]
    model = RealAdaBoostClassifier(n_estimators=5).fit(rows, labels)
    assert model.n_iter_.tolist() == [1, 5, 5]
    stages = np.array(list(model.staged_decision_function(rows)))
    np.testing.assert_array_equal(stages[0, :, 0], stages[-1, :, 0])
    assert np.any(stages[0, :, 1] != stages[-1, :, 1])


def test_boosting_stops_when_a_tree_adds_nothing_or_has_no_errors():
    constant = RealAdaBoostClassifier().fit(np.ones((4, 1)), [0, 1, 1, 0])
    assert constant.n_iter_.tolist() == [0]
    assert list(constant.staged_predict([[1]])) == []
    assert constant.predict_proba([[1]]).tolist() == [[0.5, 0.5]]
    separable = RealAdaBoostClassifier(smoothing=0.5).fit([[0], [1]], ["a", "b"])
    assert separable.n_iter_.tolist() == [1]
    np.testing.assert_allclose(separable.decision_function([[1]]), 0.5 * log(2))


def test_leaves_of_one_class_stay_finite_on_nearly_separable_samples():
    rows = np.random.default_rng(1).normal(size=(500, 2))
    labels = (rows[:, 0] > 0).astype(int)
    labels[0] = 1 - labels[0]
    tree = DecisionTreeClassifier(max_depth=2)
    model = RealAdaBoostClassifier(tree, smoothing=0.01, random_state=0).fit(rows, labels)
    most = max(np.abs(scores).max() for scores in model.leaf_scores_[0])
    assert 1 < most <= 0.5 * log(1 + 1 / 0.01)


def test_better_than_one_stump_on_new_samples():
    rows, labels = make_moons(600, noise=0.25, random_state=0)
    model = RealAdaBoostClassifier(random_state=0).fit(rows[:300], labels[:300])
    stump = DecisionTreeClassifier(max_depth=1).fit(rows[:300], labels[:300])
    assert model.score(rows[300:], labels[300:]) > stump.score(rows[300:], labels[300:]) + 0.05


def test_other_trees():
    rows, labels = noisy()
    model = RealAdaBoostClassifier(ExtraTreeClassifier(max_depth=2), 5, random_state=0)
    assert model.fit(rows, labels).score(rows, labels) > 0.7
    assert all(type(tree) is ExtraTreeClassifier for tree in model.estimators_[0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator", GaussianNB()),
        ("n_estimators", 0),
        ("smoothing", 0),
        ("smoothing", -1.0),
        ("smoothing", "small"),
    ],
)
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        RealAdaBoostClassifier(**{name: value}).fit(X, Y)
