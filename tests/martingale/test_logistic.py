"""TunableLogistic: its parameters, its derivatives, tuned copies, labels, tables and bad input."""

import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression

from margrave import Confusion, Preference
from margrave.confusion import PreferenceError
from margrave.martingale import Hypergradient, TunableLogistic

# Units and zeros that have nothing to do with each other.
SCALES, SHIFTS = np.array([1, 100, 0.01, 5, 1e4, 0.3]), np.array([0, 50, 1, -20, 2e4, 0])
GROUPS = {"first": [0, 3], "second": [1], "third": [2, 4, 5]}


def made(k=2, n=200, seed=0, units=False):
    """Overlapping classes; half to train on, half to tune on."""
    X, y = make_classification(
        2 * n, 6, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.15, class_sep=0.6, random_state=seed,
    )  # fmt: skip
    X = X * SCALES + SHIFTS if units else X
    return X[::2], y[::2], X[1::2], y[1::2]


def weights_of(n):
    return np.random.default_rng(5).uniform(0.2, 3, n)


# Answers


@pytest.mark.parametrize("k", [2, 3])
def test_penalties_are_those_of_scikit_learn(k):
    X, y, X_new, _ = made(k)
    ours = TunableLogistic(np.log(5), standardize=False, tol=1e-14).fit(X, y)
    theirs = LogisticRegression(C=1 / 5, solver="newton-cholesky", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X_new), theirs.predict_proba(X_new), atol=1e-7)
    np.testing.assert_array_equal(ours.predict(X_new), theirs.predict(X_new))
    assert ours.intercept_.shape == theirs.intercept_.shape


@pytest.mark.parametrize("k", [2, 3])
def test_units_of_the_features_do_not_matter(k):
    X, y, X_new, _ = made(k)
    X_units, _, X_new_units, _ = made(k, units=True)
    plain = TunableLogistic(tol=1e-14).fit(X, y, weights_of(200))
    other = TunableLogistic(tol=1e-14).fit(X_units, y, weights_of(200))
    np.testing.assert_allclose(
        plain.predict_proba(X_new), other.predict_proba(X_new_units), atol=1e-7
    )
    np.testing.assert_allclose(other.coef_ * SCALES, plain.coef_, atol=1e-6)


def test_features_are_standardised_by_the_weighted_samples():
    X, y, X_new, _ = made(units=True)
    weights = weights_of(200)
    centre = np.average(X, axis=0, weights=weights)
    scale = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weights))
    ours = TunableLogistic(tol=1e-14).fit(X, y, weights)
    by_hand = TunableLogistic(standardize=False, tol=1e-14).fit((X - centre) / scale, y, weights)
    np.testing.assert_allclose(ours.coef_ * scale, by_hand.coef_, atol=1e-7)
    np.testing.assert_allclose(
        ours.predict_proba(X_new), by_hand.predict_proba((X_new - centre) / scale), atol=1e-7
    )


@pytest.mark.parametrize("k", [2, 3])
def test_scores_are_of_the_coefficients_in_the_units_of_x_and_the_offset(k):
    X, y, X_new, _ = made(k, units=True)
    offset = np.arange(k) - 0.3
    model = TunableLogistic(offset=offset).fit(X, y)
    raw = X_new @ model.coef_.T + model.intercept_
    scores = model.decision_function(X_new)
    expected = raw[:, 0] + 1 if k == 2 else raw + offset  # offset[1] - offset[0] is 1
    np.testing.assert_allclose(scores, expected)
    every = np.column_stack([np.zeros(len(raw)), scores]) if k == 2 else scores
    np.testing.assert_allclose(model.predict_proba(X_new), softmax(every, axis=1))
    np.testing.assert_array_equal(model.predict(X_new), every.argmax(axis=1))
    without = TunableLogistic().fit(X, y)
    np.testing.assert_allclose(model.coef_, without.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, without.intercept_, rtol=1e-9)
    odds = np.log(model.predict_proba(X_new)) - np.log(without.predict_proba(X_new))
    np.testing.assert_allclose(odds - odds[:, :1], np.tile(offset - offset[0], (200, 1)))


@pytest.mark.parametrize("k", [2, 3])
def test_costs_are_weights_of_the_classes(k):
    X, y, X_new, _ = made(k)
    costs = np.array([1, 4, 0.5])[:k]
    by_cost = TunableLogistic(class_cost=costs, standardize=False, tol=1e-14).fit(X, y)
    by_weight = TunableLogistic(standardize=False, tol=1e-14).fit(X, y, costs[y])
    np.testing.assert_allclose(by_cost.coef_, by_weight.coef_, atol=1e-8)
    named = TunableLogistic(class_cost={1: 4, k - 1: costs[-1]}, standardize=False, tol=1e-14)
    np.testing.assert_allclose(
        named.fit(X, y).predict_proba(X_new), by_cost.predict_proba(X_new), atol=1e-8
    )
    plain = TunableLogistic(standardize=False).fit(X, y)
    assert (by_cost.predict(X_new) == 1).sum() > (plain.predict(X_new) == 1).sum()


def test_weights_are_repeated_rows_and_rows_of_weight_0_are_left_out():
    X, y, X_new, _ = made()
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = TunableLogistic(tol=1e-14).fit(X, y, counts)
    repeated = TunableLogistic(tol=1e-14).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(
        weighted.predict_proba(X_new), repeated.predict_proba(X_new), atol=1e-8
    )
    three = np.append(y[:-1], 9)  # a class that only a row of weight 0 has
    only_two = TunableLogistic().fit(X, three, np.append(np.ones(len(y) - 1), 0))
    assert only_two.classes_.tolist() == [0, 1]


def test_a_group_has_one_penalty():
    X, y, _, _ = made()
    together = TunableLogistic([1, -1, 2], groups=GROUPS, tol=1e-14).fit(X, y)
    alone = TunableLogistic([1, -1, 2, 1, 2, 2], tol=1e-14).fit(X, y)
    by_name = TunableLogistic({"third": 2, "first": 1, "second": -1}, groups=GROUPS, tol=1e-14)
    np.testing.assert_allclose(together.coef_, alone.coef_, rtol=1e-9)
    np.testing.assert_allclose(together.coef_, by_name.fit(X, y).coef_, rtol=1e-9)
    assert together.group_names_ == ["first", "second", "third"]
    assert alone.group_names_ == ["0", "1", "2", "3", "4", "5"]


def test_a_larger_penalty_makes_its_feature_smaller():
    X, y, _, _ = made()
    plain = np.abs(TunableLogistic().fit(X, y).coef_[0])
    for j in range(6):
        heavy = np.abs(TunableLogistic({str(j): 8.0}).fit(X, y).coef_[0])
        assert heavy[j] < plain[j] / 5


def test_constant_and_collinear_features():
    X, y, X_new, _ = made()
    wide = np.column_stack([X, np.full(200, 0.1), np.full(200, 1e9), X[:, 0] * 2 - 1])
    wide_new = np.column_stack([X_new, np.full(200, 7.0), np.zeros(200), X_new[:, 0] * 2 - 1])
    model = TunableLogistic(tol=1e-14).fit(wide, y)
    np.testing.assert_allclose(model.coef_[0, 6:8], 0, atol=1e-12)
    # Two equal features are one with half the penalty.
    half = TunableLogistic({"0": -np.log(2)}, tol=1e-14).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(wide_new), half.predict_proba(X_new), atol=1e-6)
    tuned = model.tune("fp <= 10", wide_new, made()[3])
    assert tuned.tuning_.after == Confusion.of(made()[3], tuned.predict(wide_new))


@pytest.mark.parametrize("log_penalty", [0.0, -20.0])
@pytest.mark.parametrize("k", [2, 3])
def test_separable_data_neither_overflow_nor_warn(k, log_penalty):
    y = np.repeat(np.arange(k), 20)
    X = np.column_stack(
        [y + np.linspace(-0.2, 0.2, 20 * k), np.random.default_rng(0).normal(size=20 * k)]
    )
    model = TunableLogistic(log_penalty).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict_proba(X * 1e3)).all()
    assert model.score(X, y) == 1
    same = model.tune("accuracy >= 100%", X, y)
    assert same.tuning_.n_models == 0
    leaning = TunableLogistic(log_penalty, offset=[60] + [0] * (k - 1)).fit(X, y)
    tuned = leaning.tune("recall(1) >= 100%", X, y)
    assert tuned.tuning_.met
    assert np.isfinite(tuned.predict_proba(X)).all()


def test_caller_data_are_not_changed():
    X, y, X_tune, y_tune = made(units=True)
    inputs = [X, y, X_tune, y_tune, weights_of(200)]
    kept = [one.copy() for one in inputs]
    TunableLogistic().fit(X, y, inputs[4]).tune("fp <= 10", X_tune, y_tune)
    for one, before in zip(inputs, kept, strict=True):
        np.testing.assert_array_equal(one, before)


# Derivatives by the hyperparameters


def divergence(model, X, targets):
    """Σ KL of targets from the probabilities, but for a constant, without the offset."""
    raw = X @ model.coef_.T + model.intercept_
    every = np.column_stack([np.zeros(len(raw)), raw]) if raw.shape[1] == 1 else raw
    return -(targets * log_softmax(every, axis=1)).sum()


def divergence_by_weights(model, X, targets):
    raw = X @ model.coef_.T + model.intercept_
    every = np.column_stack([np.zeros(len(raw)), raw]) if raw.shape[1] == 1 else raw
    left = softmax(every, axis=1) - targets
    left = left[:, 1:] if raw.shape[1] == 1 else left
    return left.T @ np.column_stack([X, np.ones(len(X))])


def linear(model, directions):
    return (np.column_stack([model.coef_, model.intercept_]) * directions).sum()


def differences(function, theta, h=1e-3):
    steps = h * np.eye(len(theta))
    return np.array([(function(theta + s) - function(theta - s)) / (2 * h) for s in steps])


def assert_same_direction_and_length(ours, theirs):
    lengths = np.linalg.norm(ours), np.linalg.norm(theirs)
    assert ours @ theirs / (lengths[0] * lengths[1]) > 0.9999
    assert lengths[0] / lengths[1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("units", "groups", "weighted"),
    [(False, None, False), (True, None, True), (False, GROUPS, True), (True, GROUPS, False)],
)
@pytest.mark.parametrize("k", [2, 3])
def test_the_hypergradient_against_finite_differences(k, units, groups, weighted):
    X, y, X_new, _ = made(k, units=units)
    n_groups = 6 if groups is None else 3
    rng = np.random.default_rng(1)
    targets = rng.dirichlet(np.ones(k), len(X_new))
    theta = np.concatenate([rng.normal(size=n_groups), rng.normal(size=k) / 2])
    weights = weights_of(len(y)) if weighted else None

    def trained(at):
        costs = np.exp(at[n_groups:])
        model = TunableLogistic(at[:n_groups], groups=groups, class_cost=costs, tol=1e-14)
        return model.fit(X, y, weights)

    model = trained(theta)
    found = model.hypergradient(divergence_by_weights(model, X_new, targets))
    assert isinstance(found, Hypergradient)
    expected = differences(lambda at: divergence(trained(at), X_new, targets), theta)
    assert_same_direction_and_length(np.concatenate(found), expected)
    assert_same_direction_and_length(found.log_penalty, expected[:n_groups])
    assert_same_direction_and_length(found.log_cost, expected[n_groups:])


@pytest.mark.parametrize("k", [2, 3])
def test_the_hypergradient_of_any_function_of_coef_and_intercept(k):
    """Also of one that changes when all intercepts of three classes are shifted."""
    X, y, _, _ = made(k, units=True)
    rng = np.random.default_rng(2)
    rows = 1 if k == 2 else k
    directions = rng.normal(size=(rows, 7)) * np.append(SCALES, 1)
    theta = np.concatenate([rng.normal(size=6), rng.normal(size=k) / 2])

    def trained(at):
        return TunableLogistic(at[:6], class_cost=np.exp(at[6:]), tol=1e-14).fit(X, y)

    found = trained(theta).hypergradient(directions)
    expected = differences(lambda at: linear(trained(at), directions), theta)
    assert_same_direction_and_length(np.concatenate(found), expected)


def test_penalties_and_costs_have_one_common_scale():
    """F times a constant has the same solution: the derivatives along it add up to 0."""
    X, y, X_new, _ = made(3)
    model = TunableLogistic(tol=1e-14).fit(X, y)
    targets = np.random.default_rng(0).dirichlet(np.ones(3), len(X_new))
    found = model.hypergradient(divergence_by_weights(model, X_new, targets))
    assert abs(found.log_penalty.sum() + found.log_cost.sum()) < 1e-6
    assert abs(found.log_penalty.sum()) > 1e-2


def test_a_group_without_features_has_a_derivative_of_0():
    X, y, X_tune, y_tune = made()
    groups = {"all": range(6), "none": []}
    model = TunableLogistic(groups=groups).fit(X, y)
    found = model.hypergradient(np.ones((1, 7)))
    assert found.log_penalty.shape == (2,)
    assert found.log_penalty[1] == 0
    plain = TunableLogistic(groups={"all": range(6)}).fit(X, y)
    with_empty = model.tune("fp <= 10", X_tune, y_tune, max_models=6)
    without = plain.tune("fp <= 10", X_tune, y_tune, max_models=6)
    np.testing.assert_allclose(with_empty.coef_, without.coef_)


# Tuned copies


@pytest.mark.parametrize(
    ("seed", "text"), [(0, "fp <= 10"), (0, "fn <= 5"), (0, "recall(1) >= 95%"), (2, "fp <= 3")]
)
def test_the_parameters_of_a_tuned_model_are_all_of_it(seed, text):
    X, y, X_tune, y_tune = made(seed=seed)
    tuned = TunableLogistic().fit(X, y).tune(text, X_tune, y_tune, min_gain=0)
    assert tuned.tuning_.n_models > 0
    again = clone(tuned).fit(X, y)
    assert again.tuning_ is None
    np.testing.assert_array_equal(again.predict(X_tune), tuned.predict(X_tune))


def test_parameters_by_groups_and_weights_make_a_tuned_model_again():
    X, y, X_tune, y_tune = made(units=True)
    model = TunableLogistic(groups=GROUPS, tol=1e-12).fit(X, y, weights_of(200))
    tuned = model.tune("fn <= 5", X_tune, y_tune, min_gain=0)
    assert tuned.tuning_.n_models > 0
    assert set(tuned.get_params()["log_penalty"]) == set(GROUPS)
    again = clone(tuned).fit(X, y, weights_of(200))
    np.testing.assert_array_equal(again.predict(X_tune), tuned.predict(X_tune))
    np.testing.assert_allclose(again.coef_, tuned.coef_, rtol=1e-5)
    np.testing.assert_allclose(again.offset_, tuned.offset_)


def test_a_search_that_gains_changes_penalties_costs_and_offset():
    X, y, X_tune, y_tune = made()
    tuned = TunableLogistic().fit(X, y).tune("fp <= 10", X_tune, y_tune, min_gain=0)
    assert tuned.tuning_.after != tuned.tuning_.by_offset
    assert len(set(tuned.log_penalty.values())) == 6
    assert tuned.class_cost[0] != tuned.class_cost[1]
    assert tuned.offset[0] != tuned.offset[1]
    np.testing.assert_array_equal(tuned.offset_, list(tuned.offset.values()))


def test_the_original_model_stays_as_it_is():
    X, y, X_tune, y_tune = made()
    model = TunableLogistic().fit(X, y)
    before = pickle.dumps(model)
    predictions = model.predict(X_tune)
    tuned = model.tune("fp <= 10", X_tune, y_tune)
    assert (tuned.predict(X_tune) != predictions).any()
    assert model.tuning_ is None
    assert model.get_params() == TunableLogistic().get_params()
    np.testing.assert_array_equal(model.predict(X_tune), predictions)
    assert pickle.dumps(model) == before


def test_a_tuned_model_can_be_tuned_again():
    X, y, X_tune, y_tune = made()
    model = TunableLogistic().fit(X, y)
    once = model.tune("fp <= 10", X_tune, y_tune)
    twice = once.tune("fp <= 5, fn <= 90", X_tune, y_tune)
    assert twice.tuning_.before == once.tuning_.after
    assert twice.tuning_.after == Confusion.of(y_tune, twice.predict(X_tune))
    assert twice.tuning_.met
    back = once.tune("fn <= 10", X_tune, y_tune)
    assert back.tuning_.met
    fitted_again = once.fit(X, y)
    assert fitted_again.tuning_ is None


@pytest.mark.parametrize("k", [2, 3])
def test_a_pickled_model_predicts_and_can_be_tuned(k):
    X, y, X_tune, y_tune = made(k)
    model = TunableLogistic(groups=GROUPS).fit(X, y)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    first, second = (one.tune("recall(1) >= 90%", X_tune, y_tune) for one in (model, back))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.tuning_ == second.tuning_
    tuned = pickle.loads(pickle.dumps(second))  # noqa: S301
    assert tuned.tuning_ == second.tuning_
    np.testing.assert_array_equal(tuned.predict_proba(X_tune), second.predict_proba(X_tune))
    assert tuned.tune("recall(0) >= 80%", X_tune, y_tune).tuning_.before == tuned.tuning_.after


def test_a_model_without_its_training_data_predicts_but_is_not_tuned():
    X, y, X_tune, y_tune = made()
    model = TunableLogistic().fit(X, y)
    predictions = model.predict(X_tune)
    whole, model = model, model.without_training_data()
    assert whole.tune("fp <= 10", X_tune, y_tune).tuning_.met  # the original keeps its data
    np.testing.assert_array_equal(model.predict(X_tune), predictions)
    calls = {
        "tune": partial(model.tune, "fp <= 1", X_tune, y_tune),
        "hypergradient": partial(model.hypergradient, np.ones((1, 7))),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"TunableLogistic\.{name}\b"):
            call()
    assert model.fit(X, y).tune("fp <= 10", X_tune, y_tune).tuning_.met


# Labels and tables


def test_the_positive_class_may_be_the_other_one():
    X, y, X_tune, y_tune = made()
    model = TunableLogistic().fit(X, y)
    fp = model.tune("fp <= 10", X_tune, y_tune, positive=0)
    fn = model.tune("fn <= 10", X_tune, y_tune)
    np.testing.assert_allclose(
        fp.decision_function(X_tune), fn.decision_function(X_tune), rtol=1e-9
    )
    assert (fp.tuning_.after.positive, fn.tuning_.after.positive) == (0, 1)
    assert (fp.tuning_.after.fp, fp.tuning_.after.fn) == (fn.tuning_.after.fn, fn.tuning_.after.fp)
    assert fp.tuning_.after.fp <= 10


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["ham", "spam"], "recall(spam) >= 95%"),
        (["not spam", "spam"], 'recall("spam") >= 95%'),
        ([False, True], "recall(True) >= 95%"),
        ([-1, 1], "recall(1) >= 95%"),
        ([0.0, 2.0], "recall(2) >= 95%"),
    ],
)
def test_labels_of_every_kind(labels, text):
    X, y, X_tune, y_tune = made()
    expected = TunableLogistic().fit(X, y).tune("recall(1) >= 95%", X_tune, y_tune)
    names = np.array(labels)
    tuned = TunableLogistic().fit(X, names[y]).tune(text, X_tune, names[y_tune].tolist())
    np.testing.assert_array_equal(tuned.predict(X_tune), names[expected.predict(X_tune)])
    assert list(tuned.class_cost) == list(tuned.offset) == labels
    again = clone(tuned).fit(X, names[y])
    np.testing.assert_array_equal(again.predict(X_tune), tuned.predict(X_tune))


def test_tables_and_groups_by_the_names_of_columns():
    X, y, X_tune, y_tune = made()
    columns = ["age", "height", "weight", "dose", "year", "site"]
    table, tune_table = (pd.DataFrame(of, columns=columns) for of in (X, X_tune))
    by_name = {"body": ["height", "weight"], "rest": ["age", "dose", "site"], "year": "year"}
    by_place = {"body": [1, 2], "rest": [0, 3, 5], "year": [4]}
    named = TunableLogistic({"year": 2.0}, groups=by_name).fit(table, y)
    placed = TunableLogistic([0, 0, 2.0], groups=by_place).fit(X, y)
    np.testing.assert_allclose(named.coef_, placed.coef_)
    tuned = named.tune("fp <= 10", tune_table, pd.Series(y_tune))
    expected = placed.tune("fp <= 10", X_tune, y_tune)
    np.testing.assert_allclose(tuned.coef_, expected.coef_)
    assert tuned.feature_names_in_.tolist() == columns
    assert list(tuned.log_penalty) == ["body", "rest", "year"]
    again = clone(tuned).fit(table, y)
    np.testing.assert_array_equal(again.predict(tune_table), tuned.predict(tune_table))
    without = TunableLogistic({"dose": 1.0}).fit(table, y)
    assert without.group_names_ == columns
    np.testing.assert_allclose(without.coef_, TunableLogistic({"3": 1.0}).fit(X, y).coef_)


def test_a_preference_object_is_accepted():
    X, y, X_tune, y_tune = made()
    model = TunableLogistic().fit(X, y)
    by_text = model.tune("fp <= 10", X_tune, y_tune)
    by_object = model.tune(Preference("fp <= 10"), X_tune, y_tune)
    np.testing.assert_allclose(by_text.coef_, by_object.coef_, rtol=1e-9)


# Bad input


@pytest.mark.parametrize(
    ("params", "name", "received"),
    [
        ({"tol": 0}, "tol", "0"),
        ({"tol": "small"}, "tol", "'small'"),
        ({"tol": np.nan}, "tol", "nan"),
        ({"tol": True}, "tol", "True"),
        ({"max_iter": 0}, "max_iter", "0"),
        ({"max_iter": 1.5}, "max_iter", "1.5"),
        ({"log_penalty": [1, 2, 3]}, "log_penalty", "[1, 2, 3]"),
        ({"log_penalty": {"x": 1}}, "log_penalty", "'x'"),
        ({"log_penalty": [1, 2], "groups": {"both": [0, 1]}}, "log_penalty", "[1, 2]"),
        ({"groups": {"g": [0]}}, "groups", "'1'"),
        ({"groups": {"g": [0, 2]}}, "groups", "2"),
        ({"class_cost": [1, 0]}, "class_cost", "[1, 0]"),
        ({"class_cost": {"b": -1}}, "class_cost", "{'b': -1}"),
        ({"class_cost": {"c": 1}}, "class_cost", "'c'"),
        ({"class_cost": [1, 2, 3]}, "class_cost", "[1, 2, 3]"),
        ({"offset": {"c": 1}}, "offset", "'c'"),
        ({"offset": [np.nan, 0]}, "offset", "[nan, 0]"),
    ],
)
def test_bad_parameters(params, name, received):
    X, y = [[0.0, 1], [1, 0], [2, 2]], ["a", "b", "a"]
    with pytest.raises(ValueError, match=rf"TunableLogistic.*\b{name}\b.*{re.escape(received)}"):
        TunableLogistic(**params).fit(X, y)


def test_one_class_and_missing_values():
    with pytest.raises(ValueError, match=r"TunableLogistic.*\by\b.*'a'"):
        TunableLogistic().fit([[0], [1]], ["a", "a"])
    with pytest.raises(ValueError, match=r"TunableLogistic.*\by\b.*'b'"):
        TunableLogistic().fit([[0], [1], [2]], ["a", "b", "b"], sample_weight=[0, 1, 1])
    with pytest.raises(ValueError, match=r"\bX\b.*NaN"):
        TunableLogistic().fit([[0], [np.nan]], [0, 1])


@pytest.mark.parametrize(
    ("weights", "received"),
    [([1, 1], r"\(2,\)"), ([1, -1, 1], r"-1\.0"), ([0, 0, 0], r"0\.0")],
)
def test_bad_weights(weights, received):
    with pytest.raises(ValueError, match=rf"TunableLogistic.*sample_weight.*{received}"):
        TunableLogistic().fit([[0], [1], [2]], ["a", "a", "b"], sample_weight=weights)


def test_too_few_steps_warn_the_caller():
    X, y, _, _ = made()
    with pytest.warns(ConvergenceWarning, match=r"TunableLogistic.*\b1\b") as caught:
        model = TunableLogistic(max_iter=1, tol=1e-12).fit(X, y)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 1


def test_derivatives_of_another_shape_are_refused():
    X, y, _, _ = made(3)
    model = TunableLogistic().fit(X, y)
    with pytest.raises(ValueError, match=r"dg_dw.*\(3, 7\).*\(3, 6\)"):
        model.hypergradient(np.ones((3, 6)))


def test_a_model_that_is_not_fitted_is_refused():
    X, y, _, _ = made()
    model = TunableLogistic()
    calls = [
        partial(model.predict, X),
        partial(model.predict_proba, X),
        partial(model.decision_function, X),
        partial(model.hypergradient, np.ones((1, 7))),
        partial(model.tune, "fp <= 1", X, y),
    ]
    for call in calls:
        with pytest.raises(NotFittedError, match="TunableLogistic"):
            call()


@pytest.mark.parametrize(
    ("text", "change", "error", "named"),
    [
        ("fp <= 1", lambda y: np.zeros_like(y), ValueError, r"y_tune.*\b1\b"),
        ("fp <= 1", lambda y: y + 1, ValueError, r"y_tune.*\b2\b"),
        ("fp <= 1", lambda y: y[:-1], ValueError, r"y_tune.*\b200\b.*\(199,\)"),
        ("correct(1) >= 10000", lambda y: y, PreferenceError, r"'correct\(1\) >= 10000'.*\b100\b"),
        ("recall(7) >= 50%", lambda y: y, PreferenceError, r"'recall\(7\) >= 50%'.*'7'"),
    ],
)
def test_bad_requests(text, change, error, named):
    X, y, X_tune, _ = made()
    model = TunableLogistic().fit(X, y)
    with pytest.raises(error, match=named):
        model.tune(text, X_tune, change(np.arange(200) % 2))


def test_a_tuning_set_with_other_features_is_refused():
    X, y, X_tune, y_tune = made()
    model = TunableLogistic().fit(X, y)
    with pytest.raises(ValueError, match=r"5 features.*TunableLogistic.*6 features"):
        model.tune("fp <= 1", X_tune[:, :5], y_tune)


@pytest.mark.parametrize(
    "params",
    [
        {"max_models": -1},
        {"max_models": 2.5},
        {"max_models": "3"},
        {"max_models": None},
        {"patience": -1},
        {"patience": 2.5},
        {"patience": None},
    ],
)
def test_limits_of_the_search_that_are_not_counts_are_refused(params):
    X, y, X_tune, y_tune = made()
    model = TunableLogistic().fit(X, y)
    ((name, value),) = params.items()
    with pytest.raises(ValueError, match=rf"\.tune.*\b{name}\b.*{re.escape(repr(value))}"):
        model.tune("fp <= 10", X_tune, y_tune, **params)
