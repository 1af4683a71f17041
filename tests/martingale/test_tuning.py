"""Tuning: which points a preference names, the derivative of (2), and what a search returns."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from tests.confusion.values import value_of

from margrave import Confusion, Preference, datasets
from margrave.confusion import Objective
from margrave.martingale import NotMetWarning, Step, TunableLogistic, _newton, _tuning
from margrave.martingale._tuning import (
    Hyperparameters,
    HyperparameterSearch,
    expand,
    sum_by_group,
    target_states,
)

# Two classes: P(1) of each point. Points 0, 1 and 2 are false positives, 5 is a false negative.
CODES = np.array([0, 0, 0, 0, 1, 1])
P = np.column_stack([1 - np.array([0.9, 0.6, 0.8, 0.2, 0.7, 0.45])] * 2)
P[:, 1] = 1 - P[:, 0]

# Three classes: points 0, 1, 2 are 0 predicted 1; 3 is 0 as 2; 4, 5, 6 are 2 as 0, 1 and 1;
# 7 and 8 are right.
CODES_3 = np.array([0, 0, 0, 0, 2, 2, 2, 1, 2])
P_3 = np.array(
    [
        [0.1, 0.8, 0.1],
        [0.1, 0.5, 0.4],
        [0.35, 0.6, 0.05],
        [0.2, 0.3, 0.5],
        [0.5, 0.2, 0.3],
        [0.4, 0.41, 0.19],
        [0.05, 0.55, 0.4],
        [0.2, 0.7, 0.1],
        [0.1, 0.1, 0.8],
    ]
)


def targets_of(text, codes=CODES, p=P):
    """The targets that differ from the initial probabilities, by point; checks all rows."""
    k = p.shape[1]
    objective = Objective(Preference(text), codes, tuple(range(k)))
    targets = target_states(objective, np.log(p))
    np.testing.assert_allclose(targets.sum(axis=1), 1)
    changed = ~np.isclose(targets, p).all(axis=1)
    np.testing.assert_allclose(targets[~changed], p[~changed])
    return {int(i): targets[i].tolist() for i in np.flatnonzero(changed)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fp <= 3", {}),
        ("fp <= 2", {1: [1, 0]}),
        ("fp <= 1", {1: [1, 0], 2: [1, 0]}),
        ("fp <= 0", {1: [1, 0], 2: [1, 0], 0: [1, 0]}),
        ("fp <= 50%", {1: [1, 0]}),  # of 4: at most 2
        ("fp <= 30%", {1: [1, 0], 2: [1, 0]}),  # at most 1.2
        ("fn <= 0", {5: [0, 1]}),
        ("correct(1) >= 1", {}),
        ("correct(1) >= 2", {5: [0, 1]}),
        ("recall(1) >= 51%", {5: [0, 1]}),
        ("recall(0) >= 50%", {1: [1, 0]}),
        ("recall(0) >= 51%", {1: [1, 0], 2: [1, 0]}),
        ("precision(1) >= 25%", {}),  # 1 of 4
        ("precision(1) >= 26%", {1: [1, 0]}),  # 1 of 3
        ("precision(1) >= 34%", {1: [1, 0], 2: [1, 0]}),  # 1 of 2
        ("precision(1) >= 51%", {1: [1, 0], 2: [1, 0], 0: [1, 0]}),
        ("alarms <= 3", {1: [1, 0]}),
        ("alarms <= 2", {1: [1, 0], 4: [1, 0]}),  # also a true positive, if it is nearer
        ("alarms <= 40%", {1: [1, 0], 4: [1, 0]}),  # 2.4 of 6
        ("accuracy >= 33.3%", {}),  # 2 of 6 are right
        ("accuracy >= 50%", {5: [0, 1]}),  # P of its own class is 0.45
        ("accuracy >= 51%", {5: [0, 1], 1: [1, 0]}),
        ("errors <= 2", {5: [0, 1], 1: [1, 0]}),
        ("fp <= 2, fn <= 0", {1: [1, 0], 5: [0, 1]}),
        ("fp <= 2, fn <= 1", {1: [1, 0]}),
        ("precision(1) >= 26%, recall(1) >= 90%", {1: [1, 0], 5: [0, 1]}),
    ],
)
def test_target_states_of_two_classes(text, expected):
    assert targets_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("errors(0 -> 1) <= 3", {}),
        # Not as 1: the second is at 0.8, 0.25 and 0.58 of the first's probability.
        ("errors(0 -> 1) <= 2", {1: [0.5, 0, 0.5]}),
        ("errors(0 -> 1) <= 1", {1: [0.5, 0, 0.5], 2: [0.5, 0, 0.5]}),
        ("errors(0 -> 1) <= 50%", {1: [0.5, 0, 0.5]}),  # at most 2 of 4
        ("errors(0 -> 2) <= 0", {3: [0.5, 0.5, 0]}),
        ("fp(1) <= 4", {5: [0.5, 0, 0.5]}),
        ("fp(1) <= 3", {5: [0.5, 0, 0.5], 1: [0.5, 0, 0.5]}),
        ("precision(1) >= 20%", {5: [0.5, 0, 0.5]}),  # 1 of 6 predicted 1 is; 1 of 5
        ("alarms(2) <= 1", {3: [0.5, 0.5, 0]}),
        ("alarms(1) <= 5", {5: [0.5, 0, 0.5]}),
        # As class 2, whose own probability is at 0.6, 0.46 and 0.73 of the first's.
        ("recall(2) >= 50%", {6: [0, 0, 1]}),
        ("correct(2) >= 3", {6: [0, 0, 1], 4: [0, 0, 1]}),
        ("correct(2) >= 4", {6: [0, 0, 1], 4: [0, 0, 1], 5: [0, 0, 1]}),
        ("correct(0) >= 1", {2: [1, 0, 0]}),
        ("accuracy >= 33%", {6: [0, 0, 1]}),  # 2 of 9 are right
        ("correct >= 4", {6: [0, 0, 1], 4: [0, 0, 1]}),
        ("errors(0 -> 1) <= 2, correct(2) >= 2", {1: [0.5, 0, 0.5], 6: [0, 0, 1]}),
        ("errors(0 -> 1) <= 2, errors(2 -> 0) <= 0", {1: [0.5, 0, 0.5], 4: [0, 0.5, 0.5]}),
    ],
)
def test_target_states_of_three_classes(text, expected):
    assert targets_of(text, CODES_3, P_3) == expected


@pytest.mark.parametrize(
    ("text", "same"),
    [("fn(2) <= 2", "correct(2) >= 2"), ("errors <= 5", "correct >= 4")],
)
def test_a_point_has_to_come_to_its_own_class_where_leaving_another_is_not_enough(text, same):
    """A sample of 2 that is predicted 1 instead of 0 is still an error."""
    assert targets_of(text, CODES_3, P_3) == targets_of(same, CODES_3, P_3)


@pytest.mark.parametrize(
    ("text", "codes", "p", "expected"),
    [
        ("alarms >= 5", CODES, P, {5: [0, 1]}),  # 4 points are predicted 1, and 5 is nearest to it
        ("alarms(2) >= 3", CODES_3, P_3, {1: [0, 0, 1]}),  # 2 are; 1 is at 0.8 of the first's
    ],
)
def test_points_that_should_move_to_a_class_are_the_nearest_to_it(text, codes, p, expected):
    assert targets_of(text, codes, p) == expected


def test_a_precision_of_nothing_names_a_point():
    """Without a prediction of 1 the precision is not met: at least one point has to move."""
    p = np.column_stack([[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]])
    assert targets_of("precision(1) >= 60%", np.array([0, 1, 1]), p) == {2: [0, 1]}


def test_columns_are_summed_by_their_groups():
    by_column = np.array([1.0, 2, 4, 8, 99])  # the intercept's last
    assert sum_by_group(by_column, np.array([0, 1, 0, 2]), 4).tolist() == [5, 2, 8, 0]


def test_hyperparameters_are_expanded_to_columns_and_samples():
    codes = np.array([0, 1, 1])
    hyperparameters = Hyperparameters(np.log([2.0, 5]), np.log([1.0, 3]), np.zeros(2))
    group, weights = np.array([1, 0, 1]), np.array([1.0, 2, 4])
    penalty, weights = expand(hyperparameters, group, codes, weights)
    np.testing.assert_allclose(penalty, [5, 2, 5, 0])
    np.testing.assert_allclose(weights, [1, 6, 12])


# The search


def split(k=2, n=240, d=8, seed=0, **more):
    """Overlapping classes with features of no use; half to train on, half to tune on."""
    X, y = make_classification(
        n, d, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.15, class_sep=0.7, random_state=seed, **more
    )  # fmt: skip
    return X[::2], y[::2], X[1::2], y[1::2]


def liver(seed=0):
    data = datasets.load("liver")
    order = np.random.default_rng(seed).permutation(len(data.target))
    X, y = np.asarray(data.data, dtype=float)[order], np.asarray(data.target)[order]
    return X[:140], y[:140], X[140:210], y[140:210]


def noisy_iris():
    """Iris with so much noise that its classes overlap."""
    data = datasets.load("iris")
    rng = np.random.default_rng(0)
    X = np.asarray(data.data, dtype=float)
    X = np.column_stack([X + rng.normal(size=X.shape), rng.normal(size=(len(X), 2))])
    y = np.asarray(data.target)
    order = rng.permutation(len(y))
    return X[order[::2]], y[order[::2]], X[order[1::2]], y[order[1::2]]


def by_threshold(model, preference, X, y):
    """The best that a threshold on the decision function can do."""
    scores = model.decision_function(X)
    there = np.unique(scores)
    thresholds = [there[0] - 1, *((low + high) / 2 for low, high in pairwise(there)), there[-1] + 1]
    matrices = [
        Confusion.of(y, model.classes_[(scores > one).astype(int)], classes=model.classes_.tolist())
        for one in thresholds
    ]
    return min(value_of(preference, matrix) for matrix in matrices)


FEWER_FP, NO_ERRORS = Preference("fp <= 5"), Preference("fp <= 0, fn <= 0")
REQUESTS = [
    "fp <= 5",
    "fp <= 0",
    "fn <= 3",
    "fn <= 0",
    "recall(1) >= 95%",
    "correct(0) >= 58",
    "precision(0) >= 85%",
    "alarms <= 30%",
]


@pytest.mark.parametrize("min_gain", [0, 2])
@pytest.mark.parametrize("text", REQUESTS)
def test_the_result_is_that_of_the_returned_model(text, min_gain):
    X, y, X_tune, y_tune = split()
    model, preference = TunableLogistic().fit(X, y), Preference(text)
    tuned = model.tune(text, X_tune, y_tune, min_gain=min_gain)
    result = tuned.tuning_
    assert result.before == Confusion.of(y_tune, model.predict(X_tune))
    assert result.after == Confusion.of(y_tune, tuned.predict(X_tune))
    assert result.preference == preference
    assert result.met
    assert preference.met(result.after)
    assert not preference.met(result.before)
    assert value_of(preference, result.after) <= value_of(preference, result.by_offset)
    expected = by_threshold(model, preference, X_tune, y_tune)
    assert value_of(preference, result.by_offset) == expected
    assert result.n_models <= 20
    assert not result.cancelled


@pytest.mark.parametrize("seed", range(2))
def test_requests_on_liver_have_at_most_the_errors_of_the_threshold_and_sometimes_fewer(seed):
    X, y, X_tune, y_tune = liver(seed)
    model = TunableLogistic().fit(X, y)
    before = Confusion.of(y_tune, model.predict(X_tune))
    gains = []
    for word in ("fp", "fn"):
        for limit in sorted({getattr(before, word) - 1, getattr(before, word) // 2, 0}):
            result = model.tune(f"{word} <= {limit}", X_tune, y_tune, min_gain=0).tuning_
            assert result.met
            ours = value_of(result.preference, result.after)
            threshold = by_threshold(model, result.preference, X_tune, y_tune)
            assert value_of(result.preference, result.by_offset) == threshold
            assert ours <= threshold
            gains.append(ours < threshold)
    assert any(gains)


THREE = [
    "errors(versicolor -> virginica) <= 0",
    "errors(versicolor -> virginica) <= 1, errors(virginica -> versicolor) <= 3",
    "recall(versicolor) >= 90%",
    "correct(virginica) >= 22",
    "precision(setosa) >= 100%",
]


@pytest.mark.parametrize("text", THREE)
def test_requests_on_three_classes(text):
    preference = Preference(text)
    X, y, X_tune, y_tune = noisy_iris()
    names = np.array(["setosa", "versicolor", "virginica"])
    y, y_tune = (names[np.unique(of, return_inverse=True)[1]] for of in (y, y_tune))
    model = TunableLogistic().fit(X, y)
    result = (tuned := model.tune(preference, X_tune, y_tune, min_gain=0)).tuning_
    assert not preference.met(result.before)
    assert result.met
    assert result.after == Confusion.of(y_tune, tuned.predict(X_tune))
    assert value_of(preference, result.after) <= value_of(preference, result.by_offset)


@pytest.mark.parametrize("text", ["fp <= 4", "fn <= 4"])
def test_the_result_is_that_of_the_returned_model_also_with_ties(text):
    """At the middle one of three values both classes are as probable, but for rounding."""
    y = np.repeat([0, 1, 0, 1, 0, 1], [3, 1, 4, 4, 1, 3])
    for first, step in [(0.0, 0.1), (0.1, 0.3), (0.7, 0.1), (0.1, 1 / 3), (1.1, 0.1)]:
        X = (first + step * np.repeat([0, 1, 2], [4, 8, 4]))[:, None]
        model = TunableLogistic().fit(X, y)
        tuned = model.tune(text, X, y, min_gain=0)
        assert tuned.tuning_.before == Confusion.of(y, model.predict(X))
        assert tuned.tuning_.after == Confusion.of(y, tuned.predict(X))


@pytest.mark.parametrize("text", ["fp(2) <= 5", "fn(1) <= 5"])
def test_the_result_of_three_classes_is_that_of_the_returned_model_also_with_ties(text):
    """Three features of two values: scores of two classes may be equal but for rounding."""
    for seed in (44, 166, 200):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 2, (90, 3)).astype(float), rng.permutation(np.arange(90) % 3)
        model = TunableLogistic().fit(X, y)
        tuned = model.tune(text, X, y, max_models=5, min_gain=0)
        assert tuned.tuning_.before == Confusion.of(y, model.predict(X))
        assert tuned.tuning_.after == Confusion.of(y, tuned.predict(X))


def test_an_outlier_in_the_tuning_set_removes_no_threshold():
    X, y, X_tune, y_tune = split()
    model = TunableLogistic().fit(X, y)
    at = int(np.flatnonzero(y_tune == 1)[0])
    X_tune[at] = 1e12 * model.coef_[0]  # certainly predicted 1, which is correct
    result = model.tune(FEWER_FP, X_tune, y_tune, max_models=0).tuning_
    assert value_of(FEWER_FP, result.after) == by_threshold(model, FEWER_FP, X_tune, y_tune)


@pytest.mark.parametrize("text", ["fp <= 60", "fp <= 60, fn <= 60", "recall(1) >= 10%"])
def test_a_preference_that_is_met_changes_nothing(text):
    X, y, X_tune, y_tune = split()
    model = TunableLogistic().fit(X, y)
    steps = []
    tuned = model.tune(text, X_tune, y_tune, callback=steps.append)
    assert (tuned.tuning_.met, tuned.tuning_.n_models, steps) == (True, 0, [])
    assert tuned.tuning_.before == tuned.tuning_.after == tuned.tuning_.by_offset
    np.testing.assert_array_equal(tuned.decision_function(X_tune), model.decision_function(X_tune))
    assert tuned.offset == {0: 0, 1: 0}


def test_without_models_only_the_offset_moves():
    X, y, X_tune, y_tune = split()
    model = TunableLogistic(0.5).fit(X, y)
    steps = []
    tuned = model.tune("fp <= 2", X_tune, y_tune, max_models=0, callback=steps.append)
    assert steps == []
    assert (tuned.tuning_.met, tuned.tuning_.n_models) == (True, 0)
    assert tuned.tuning_.after == tuned.tuning_.by_offset != tuned.tuning_.before
    np.testing.assert_array_equal(tuned.coef_, model.coef_)
    np.testing.assert_array_equal(tuned.intercept_, model.intercept_)
    assert set(tuned.log_penalty.values()) == {0.5}
    assert set(tuned.class_cost.values()) == {1.0}
    assert tuned.offset[0] == -tuned.offset[1] > 0
    moved = tuned.decision_function(X_tune) - model.decision_function(X_tune)
    np.testing.assert_allclose(moved, tuned.offset[1] - tuned.offset[0])


def test_an_offset_without_errors_ends_the_search():
    X, y, X_tune, y_tune = split()
    X, X_tune = (
        rows + 20.0 * (labels == 1)[:, None] for rows, labels in ((X, y), (X_tune, y_tune))
    )
    model = TunableLogistic(offset=[0, 50]).fit(X, y)  # predicts 1 for all
    tuned = model.tune("accuracy >= 60%", X_tune, y_tune)
    assert (tuned.tuning_.met, tuned.tuning_.n_models) == (True, 0)
    assert (tuned.tuning_.before.accuracy < 0.6, tuned.tuning_.after.accuracy) == (True, 1)


def steps_of(model, preference, X, y, **more):
    steps = []
    return model.tune(preference, X, y, min_gain=0, callback=steps.append, **more), steps


@pytest.mark.parametrize("patience", [0, 1, 4])
@pytest.mark.parametrize(("seed", "text"), [(0, "fp <= 5"), (2, "fn <= 5")])
def test_patience_is_how_many_models_are_tried_after_the_last_gain(seed, text, patience):
    X, y, X_tune, y_tune = split(seed=seed)
    model = TunableLogistic().fit(X, y)
    tuned, steps = steps_of(model, text, X_tune, y_tune, patience=patience, max_models=40)
    matrices = [step.confusion for step in steps]
    gains = [step.number for old, step in pairwise(steps) if step.confusion != old.confusion]
    assert gains  # the search finds a model with fewer errors than the offset
    assert tuned.tuning_.after.n_errors < tuned.tuning_.by_offset.n_errors
    assert tuned.tuning_.n_models == gains[-1] + patience < 40
    assert all(new - old <= max(patience, 1) for old, new in pairwise(gains))
    if patience == 0:
        assert len(gains) == 1
    assert matrices[0] == tuned.tuning_.by_offset
    assert matrices[-1] == tuned.tuning_.after


def test_a_callback_receives_every_model():
    X, y, X_tune, y_tune = split()
    model = TunableLogistic().fit(X, y)
    tuned, steps = steps_of(model, "fp <= 5", X_tune, y_tune, max_models=30)
    assert all(isinstance(step, Step) for step in steps)
    assert [step.number for step in steps] == list(range(tuned.tuning_.n_models + 1))
    assert {step.most for step in steps} == {30}
    assert all(step.met for step in steps)
    result = [value_of(FEWER_FP, step.confusion) for step in steps]
    assert result == sorted(result, reverse=True)  # the best so far


@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_true_result_cancels_and_the_best_so_far_is_returned(at):
    X, y, X_tune, y_tune = split()
    model = TunableLogistic().fit(X, y)
    steps = []

    def until(step):
        steps.append(step)
        return step.number == at

    tuned = model.tune("fp <= 5", X_tune, y_tune, min_gain=0, callback=until)
    assert tuned.tuning_.cancelled
    assert tuned.tuning_.n_models == at == steps[-1].number
    assert tuned.tuning_.after == steps[-1].confusion
    assert tuned.tuning_.after == Confusion.of(y_tune, tuned.predict(X_tune))
    if at == 0:
        assert tuned.tuning_.after == tuned.tuning_.by_offset


def test_a_search_that_is_cancelled_early_is_not_met():
    X, y, X_tune, y_tune = split()
    model = TunableLogistic().fit(X, y)
    with pytest.warns(NotMetWarning, match="'fp <= 1, fn <= 1'"):
        tuned = model.tune("fp <= 1, fn <= 1", X_tune, y_tune, callback=lambda step: True)
    assert tuned.tuning_.cancelled
    assert not tuned.tuning_.met


@pytest.mark.parametrize("max_models", [1, 3])
def test_no_more_models_are_trained_than_allowed(max_models, monkeypatch):
    X, y, X_tune, y_tune = split()
    model = TunableLogistic().fit(X, y)
    trained = []
    solved = _newton.LogisticProblem.solve
    monkeypatch.setattr(
        _newton.LogisticProblem,
        "solve",
        lambda self, *args: trained.append(1) or solved(self, *args),
    )
    with pytest.warns(NotMetWarning):
        tuned, steps = steps_of(model, "fp <= 0, fn <= 0", X_tune, y_tune, max_models=max_models)
    assert tuned.tuning_.n_models == max_models == steps[-1].number
    assert len(trained) <= max_models + 1  # and once where the search begins or ends


def test_models_are_counted_also_where_penalties_do_not_matter(monkeypatch):
    """Features without any spread: only costs and offset can move."""
    y = np.repeat([0, 1], [30, 10])
    model = TunableLogistic().fit(np.zeros((40, 2)), y)
    trained, solved = [], _newton.LogisticProblem.solve
    monkeypatch.setattr(
        _newton.LogisticProblem,
        "solve",
        lambda self, *args: trained.append(1) or solved(self, *args),
    )
    with pytest.warns(NotMetWarning):
        tuned, steps = steps_of(model, "fp <= 5, fn <= 5", np.zeros((40, 2)), y, max_models=3)
    assert 0 < len(trained) <= 4  # perhaps once more where the search begins
    assert len(trained) - 1 <= tuned.tuning_.n_models == steps[-1].number <= 3


def test_an_infeasible_preference_returns_the_nearest_model():
    X, y, X_tune, y_tune = split()
    model = TunableLogistic().fit(X, y)
    with pytest.warns(NotMetWarning) as caught:
        tuned = model.tune("fp <= 0, fn <= 0", X_tune, y_tune)
    result = tuned.tuning_
    errors = result.after.n_errors
    limiting = "fp <= 0" if result.after.fp >= result.after.fn else "fn <= 0"
    (warning,) = caught
    for named in ("TunableLogistic.tune", "'fp <= 0, fn <= 0'", f" {errors} ", f"'{limiting}'"):
        assert named in str(warning.message)
    assert warning.filename == __file__
    assert (result.met, result.n_models, result.shortfall) == (False, 20, errors)
    assert str(result.binding) == limiting
    assert result.after == Confusion.of(y_tune, tuned.predict(X_tune))
    assert 0 < errors <= result.by_offset.n_errors <= result.before.n_errors
    expected = by_threshold(model, NO_ERRORS, X_tune, y_tune)
    assert value_of(NO_ERRORS, result.by_offset) == expected


def test_the_search_may_meet_what_no_threshold_can():
    X, y, X_tune, y_tune = split(seed=2)
    model = TunableLogistic(3.0).fit(X, y)  # a penalty that is too large
    before = Confusion.of(y_tune, model.predict(X_tune))
    fewer = Preference(f"fp <= {before.fp - 1}, fn <= {before.fn - 1}")
    assert by_threshold(model, fewer, X_tune, y_tune)[0] > 0
    tuned = model.tune(fewer, X_tune, y_tune)
    assert tuned.tuning_.met
    assert fewer.shortfall(tuned.tuning_.by_offset) > 0


@pytest.mark.parametrize("groups", [None, {"a": [0, 1, 2], "b": [3], "rest": [4, 5, 6, 7]}])
@pytest.mark.parametrize("k", [2, 3])
def test_the_derivative_of_the_divergence(k, groups, monkeypatch):
    """By log-penalties, log-costs and offset; against central finite differences."""
    monkeypatch.setattr(_tuning, "ROUGH_TOL", 0.0)
    X, y, X_tune, y_tune = split(k)
    start = np.linspace(-1, 1, 8 if groups is None else 3)
    model = TunableLogistic(start, groups=groups, tol=1e-14).fit(X, y, np.linspace(0.5, 2, len(y)))
    fitted = model._require_training_data("tune")
    objective = Objective(
        Preference("recall(1) >= 99%, precision(0) >= 99%"), y_tune, tuple(range(k))
    )
    search = HyperparameterSearch(
        fitted, model._columns(X_tune),
        lambda w: model._scores_without_offset(X_tune, *model._in_feature_units(w)),
        objective, tol=1e-14, patience=10**6, max_models=10**6,
    )  # fmt: skip
    scores = np.log(model.predict_proba(X_tune))
    search.targets = target_states(objective, scores)
    search.first = search.best = search.make_candidate(fitted)
    search.current = fitted
    rng = np.random.default_rng(0)
    theta = np.concatenate([start, rng.normal(size=k) / 4, rng.normal(size=k)])
    value, ours = search.divergence(theta)

    # (2) itself, with the model trained again.
    def divergence(at):
        penalty, cost, offset = np.split(at, [len(start), len(start) + k])
        refitted = clone(model).set_params(
            log_penalty=penalty, class_cost=np.exp(cost), offset=offset
        )
        p = refitted.fit(X, y, np.linspace(0.5, 2, len(y))).predict_proba(X_tune)
        s = search.targets
        return (s * (np.log(np.where(s > 0, s, 1)) - np.log(p))).sum()

    assert value == pytest.approx(divergence(theta))
    steps = 1e-3 * np.eye(len(theta))
    differences = [(divergence(theta + h) - divergence(theta - h)) / 2e-3 for h in steps]
    norms = np.linalg.norm(ours), np.linalg.norm(differences)
    assert ours @ differences / (norms[0] * norms[1]) > 0.9999
    assert norms[0] / norms[1] == pytest.approx(1, abs=1e-3)


def test_large_problems_are_tuned_by_lbfgs(monkeypatch):
    monkeypatch.setattr(_newton, "NEWTON_SIZE", 0)
    X, y, X_tune, y_tune = split()
    model = TunableLogistic().fit(X, y)
    tuned = model.tune("fp <= 5", X_tune, y_tune, min_gain=0)
    assert model._require_training_data("tune").solution.factor is None
    assert tuned.tuning_.met
    assert tuned.tuning_.after == Confusion.of(y_tune, tuned.predict(X_tune))
    threshold = by_threshold(model, FEWER_FP, X_tune, y_tune)
    assert value_of(FEWER_FP, tuned.tuning_.after) < threshold
