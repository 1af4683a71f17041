"""Tuning every node of a program to a local target (granularity="root")."""

import warnings
from copy import copy
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import Perceptron
from sklearn.tree import DecisionTreeClassifier

from margrave import Confusion
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    NotMetWarning,
    Step,
)

TREE = DecisionTreeClassifier(max_depth=2, random_state=0)
both = pytest.mark.parametrize(
    "kind", [MartingaleBoostClassifier, AdaptiveMartingaleBoostClassifier]
)


@cache
def grown(kind=MartingaleBoostClassifier, k=2, n_levels=2, learner=None):
    """A fitted program and its tuning set; not to be changed."""
    X, y = make_classification(
        320, 5, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.2, class_sep=0.5, random_state=1,
    )  # fmt: skip
    model = kind(learner, n_levels, random_state=0).fit(X[::2], y[::2])
    return model, X[1::2], y[1::2]


@cache
def request(kind=MartingaleBoostClassifier, k=2, n_levels=2, learner=None):
    """Half of the errors of one kind."""
    model, X, y = grown(kind, k, n_levels, learner)
    return f"fp(1) <= {np.sum((model.predict(X) == 1) & (y != 1)) // 2}"


def any_gain(kind):
    """What makes any gain count, as it does for programs of votes."""
    return {"min_gain": 0} if kind is AdaptiveMartingaleBoostClassifier else {}


def tune(kind=MartingaleBoostClassifier, k=2, n_levels=2, learner=None, **more):
    model, X, y = grown(kind, k, n_levels, learner)
    options = {"granularity": "root", "max_models": 4, **any_gain(kind), **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)
        return model.tune(request(kind, k, n_levels, learner), X, y, **options)


def penalties(model):
    """For each learner, whether its penalties are tuned."""
    values = [learner.log_penalty for learner in model.learners_.values()]
    return [isinstance(value, dict) and len(set(value.values())) > 1 for value in values]


@both
@pytest.mark.parametrize("k", [2, 3])
def test_the_result_is_that_of_the_returned_model(kind, k):
    model, X, y = grown(kind, k)
    tuned = tune(kind, k)
    result = tuned.tuning_
    assert result.before == Confusion.of(y, model.predict(X), classes=range(k))
    assert result.after == Confusion.of(y, tuned.predict(X), classes=range(k))
    assert result.met == result.preference.met(result.after)
    values = [
        (result.preference.shortfall(matrix), matrix.n - np.trace(matrix.counts))
        for matrix in (result.after, result.by_offset)
    ]
    assert values[0] <= values[1]
    assert not result.cancelled
    np.testing.assert_array_equal(model.predict(X), grown(kind, k)[0].predict(X))


@both
def test_several_models_are_trained_at_several_nodes(kind):
    model, X, y = grown(kind, n_levels=3)
    limit = 2 * np.sum((model.predict(X) == 1) & (y == 0)) // 3
    root, quick = (
        model.tune(
            f"fp <= {limit}", X, y, granularity=granularity, max_models=most, **any_gain(kind)
        )
        for granularity, most in (("root", 6), ("quick", None))
    )
    assert quick.tuning_.n_models <= 2
    assert root.tuning_.n_models > 1 + len(model.learners_)
    assert sum(penalties(root)) > 1


@both
@pytest.mark.parametrize("granularity", ["root", "quick"])
def test_a_request_about_both_classes_has_no_direction(kind, granularity):
    """As many samples should move either way: rounding must not decide."""
    model, X, y = grown(kind, n_levels=3)
    errors = np.sum(model.predict(X) != y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)
        tuned = model.tune(
            f"errors <= {errors - 10}",
            X,
            y,
            granularity=granularity,
            max_models=2,
            **any_gain(kind),
        )
    assert tuned.tuning_.after == Confusion.of(y, tuned.predict(X))
    assert np.sum(tuned.predict(X) != y) <= errors


@both
@pytest.mark.parametrize("max_models", [1, 3])
def test_max_models_is_the_budget_of_each_node(kind, max_models):
    model, *_ = grown(kind)
    steps = []
    result = tune(kind, max_models=max_models, callback=steps.append).tuning_
    n_models = [step.number for step in steps]
    assert n_models == sorted(n_models)
    assert n_models[-1] == result.n_models
    assert max(np.diff(n_models)) <= max_models + 1  # a program may begin in between
    assert result.n_models <= 1 + (len(model.learners_) + 4) * max_models


@both
def test_without_models_no_node_trains_any(kind):
    result = tune(kind, max_models=0).tuning_
    assert result.n_models == 1  # the program


@both
def test_the_callback_receives_a_step_after_each_node(kind):
    steps = []
    tuned = tune(kind, callback=steps.append)
    assert all(isinstance(step, Step) for step in steps)
    assert len(steps) > 2  # before the program, after nodes, and at the end
    assert all(0 <= step.number <= step.most for step in steps)
    assert steps[-1].confusion == tuned.tuning_.after
    assert steps[-1].number == tuned.tuning_.n_models
    shortfalls = [tuned.tuning_.preference.shortfall(step.confusion) for step in steps]
    assert shortfalls == sorted(shortfalls, reverse=True)


@both
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_true_value_stops_the_search_for_good(kind, at):
    """Also if it comes only once."""
    _, X, y = grown(kind)
    steps = []

    def stop_once(step):
        steps.append(step)
        return len(steps) == at + 1

    tuned = tune(kind, callback=stop_once)
    assert tuned.tuning_.cancelled
    assert len(steps) == at + 1
    assert tuned.tuning_.n_models == steps[-1].number
    assert tuned.tuning_.after == Confusion.of(y, tuned.predict(X))


@both
def test_the_result_is_the_same_for_any_number_of_jobs(kind):
    model, X, y = grown(kind, n_levels=3)
    options = {"granularity": "root", "max_models": 2, **any_gain(kind)}
    one, two = (
        copy(model).set_params(n_jobs=n_jobs).tune(request(kind, n_levels=3), X, y, **options)
        for n_jobs in (1, 2)
    )
    assert one.tuning_ == two.tuning_
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("learner", [TREE, Perceptron()], ids=["tree", "perceptron"])
def test_other_learners_have_no_hyperparameters_to_tune(learner):
    """Offsets and costs move."""
    _, X, y = grown(learner=learner)
    tuned = tune(learner=learner)
    assert tuned.tuning_.n_models <= 1
    assert tuned.tuning_.after == Confusion.of(y, tuned.predict(X))
    by_offset = tuned.tuning_.preference.shortfall(tuned.tuning_.by_offset)
    assert tuned.tuning_.shortfall <= by_offset


def test_the_adaptive_program_takes_any_learner_with_probabilities():
    _, X, y = grown(AdaptiveMartingaleBoostClassifier, learner=TREE)
    tuned = tune(AdaptiveMartingaleBoostClassifier, learner=TREE)
    assert tuned.tuning_.n_models <= 1
    assert tuned.tuning_.after == Confusion.of(y, tuned.predict(X))
