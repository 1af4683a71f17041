"""Logistic regression on features of the RBF kernel: its features, its tuning, and programs."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.metrics.pairwise import rbf_kernel

from margrave import catalogue
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    TunableLogistic,
    TunableRBFLogistic,
)

LABELS = np.array(["in", "out", "rim"])


@pytest.fixture
def circles():
    """Training set and tuning set of two noisy circles, which no line separates."""
    X, y = make_circles(400, noise=0.25, factor=0.4, random_state=0)
    return X[:200], LABELS[y[:200]], X[200:], LABELS[y[200:]]


def test_products_of_the_features_are_the_kernel_if_every_sample_is_a_landmark(circles):
    X, y, *_ = circles
    model = TunableRBFLogistic(n_landmarks=1000, random_state=0).fit(X, y)
    features = model.nystroem_.transform(X)
    np.testing.assert_allclose(features @ features.T, rbf_kernel(X, gamma=1 / 2), atol=1e-6)
    narrow = TunableRBFLogistic(gamma=3.0, n_landmarks=1000, random_state=0).fit(X, y)
    features = narrow.nystroem_.transform(X)
    np.testing.assert_allclose(features @ features.T, rbf_kernel(X, gamma=3.0), atol=1e-6)


def test_it_is_the_logistic_regression_of_the_features(circles):
    X, y, X_tune, y_tune = circles
    weights = np.arange(200) % 3
    params = {"log_penalty": 1.0, "class_cost": {"out": 2.0}, "offset": [0.5, 0]}
    model = TunableRBFLogistic(random_state=0, **params).fit(X, y, weights)
    features, features_tune = map(model.nystroem_.transform, (X, X_tune))
    groups = {"rbf": range(features.shape[1])}
    plain = TunableLogistic(groups=groups, **params).fit(features, y, weights)
    np.testing.assert_allclose(model.predict_proba(X_tune), plain.predict_proba(features_tune))
    tuned, plain_tuned = (
        one.tune("fp <= 5", rows, y_tune, min_gain=0)
        for one, rows in ((model, X_tune), (plain, features_tune))
    )
    assert tuned.tuning_.n_models == plain_tuned.tuning_.n_models > 0
    np.testing.assert_allclose(
        tuned.predict_proba(X_tune), plain_tuned.predict_proba(features_tune), atol=1e-6
    )


def test_a_clone_of_a_tuned_model_trains_the_same_model(circles):
    X, y, X_tune, y_tune = circles
    model = TunableRBFLogistic(random_state=0).fit(X, y)
    tuned = model.tune("fn <= 2", X_tune, y_tune, min_gain=0)
    assert tuned.tuning_.met
    assert tuned.log_penalty["rbf"] != 0
    again = clone(tuned).fit(X, y)
    np.testing.assert_allclose(again.predict_proba(X_tune), tuned.predict_proba(X_tune), atol=1e-3)


def test_landmarks_are_drawn_by_the_seed(circles):
    X, y, *_ = circles
    one, same, other = (
        TunableRBFLogistic(n_landmarks=10, random_state=seed).fit(X, y).decision_function(X)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert np.any(one != other)


@pytest.mark.parametrize("granularity", ["quick", "root", "all", "select"])
def test_programs_tune_it_at_their_nodes(circles, granularity):
    X, y, X_tune, y_tune = circles
    learner = catalogue.make("rbf-logistic", n_landmarks=30)
    program = MartingaleBoostClassifier(learner, 3, random_state=0).fit(X, y)
    assert {type(node) for node in program.learners_.values()} == {TunableRBFLogistic}
    if granularity in ("quick", "root"):
        tuned = program.tune("fp <= 5", X_tune, y_tune, granularity=granularity)
        assert tuned.tuning_.met
        return

    def halve(node):
        return f"fp <= {node.confusion.fp // 2}"

    tuned = program.tune(halve, X_tune, y_tune, granularity=granularity)
    assert tuned.tuning_.after.fp < tuned.tuning_.before.fp
    # Nodes below a tuned one are trained again, with other landmarks and the tuned penalties.
    again = tuned.tune({(0, 0): "fp <= 3"}, X_tune, y_tune, granularity="all")
    assert again.tuning_.nodes[(0, 0)].met
    assert again.grow(1).n_levels == 4


def test_nodes_have_landmarks_of_their_own_and_seeds_of_the_program(circles):
    X, y, *_ = circles
    learner = TunableRBFLogistic(n_landmarks=80)
    program = MartingaleBoostClassifier(learner, 4, random_state=0).fit(X, y)
    landmarks = [len(node.nystroem_.components_) for node in program.learners_.values()]
    assert max(landmarks) == 80
    assert min(landmarks) < 80
    same = MartingaleBoostClassifier(learner, 4, n_jobs=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(same.decision_function(X), program.decision_function(X))


def test_adaptive_programs_and_more_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = LABELS[np.digitize(np.hypot(*X.T), [0.8, 1.4])]
    model = catalogue.make("rbf-logistic", random_state=0).fit(X, y)
    assert model.score(X, y) > TunableLogistic().fit(X, y).score(X, y) + 0.3
    for kind in (MartingaleBoostClassifier, AdaptiveMartingaleBoostClassifier):
        chosen = slice(None) if kind is MartingaleBoostClassifier else y != "rim"
        program = kind(catalogue.make("rbf-logistic"), 3, random_state=0)
        assert program.fit(X[chosen], y[chosen]).score(X[chosen], y[chosen]) > 0.9


def test_column_names_are_those_of_the_samples(circles):
    X, y, *_ = circles
    frame = pd.DataFrame(X, columns=["east", "north"])
    model = TunableRBFLogistic(random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["east", "north"]
    program = MartingaleBoostClassifier(TunableRBFLogistic(), 2, random_state=0).fit(frame, y)
    assert program.score(frame, y) > 0.8


@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma", 0), ("gamma", "scale"), ("n_landmarks", 0), ("log_penalty", {"east": 1.0})],
)
def test_bad_parameters(circles, name, value):
    X, y, *_ = circles
    learner = TunableRBFLogistic(**{name: value})
    for model in (learner, MartingaleBoostClassifier(learner, 2)):
        with pytest.raises(ValueError, match=rf"TunableRBFLogistic.*\b{name}\b"):
            model.fit(X, y)
