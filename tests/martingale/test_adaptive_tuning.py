"""AdaptiveMartingaleBoostClassifier.tune (AMB-Tune)."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification

from margrave import Confusion, Preference
from margrave.confusion import PreferenceError
from margrave.martingale import AdaptiveMartingaleBoostClassifier, NotMetWarning

TWO = ["fp <= 5", "fn <= 4", "recall(1) >= 95%"]
THREE = ["fp(0) <= 5", "errors(1 -> 2) <= 2", "recall(2) >= 85%"]
granularities = pytest.mark.parametrize("granularity", ["quick", "root"])


@cache
def grown(k=2, width=1.0, weighted=False):
    """A fitted program and its tuning set; not to be changed."""
    X, y = make_classification(
        240, 6, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.15, class_sep=0.6, random_state=0,
    )  # fmt: skip
    weights = np.linspace(0.0, 2.0, 120) if weighted else None
    model = AdaptiveMartingaleBoostClassifier(n_levels=3, width=width).fit(X[::2], y[::2], weights)
    return model, X[1::2], y[1::2]


def tune(model, text, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)
        return model.tune(text, X, y, **{"min_gain": 0, "max_models": 2, **more})


def check(tuned, X, y):
    """The result, the predictions, the error rates and the paths are those of one model."""
    k, result = len(tuned.classes_), tuned.tuning_
    predictions = tuned.predict(X)
    assert result.after == Confusion.of(y, predictions, classes=range(k))
    assert result.met == result.preference.met(result.after)
    rates = tuned.error_rates(X, y)
    assert rates == {c: pytest.approx(np.mean(predictions[y == c] != c)) for c in range(k)}
    paths = tuned.decision_path(X)
    np.testing.assert_array_equal(paths.sum(axis=1), tuned.program_.n_levels + 1)
    leaves = [paths[[i]].indices.max() for i in range(len(X))]
    labels = [tuned.program_.nodes[leaf].prediction for leaf in leaves]
    np.testing.assert_array_equal(labels, predictions)
    np.testing.assert_array_equal(tuned.predict_proba(X).argmax(axis=1), predictions)


@granularities
@pytest.mark.parametrize(("k", "text"), [*((2, text) for text in TWO), *((3, t) for t in THREE)])
def test_the_result_is_that_of_the_returned_model(k, text, granularity):
    model, X, y = grown(k)
    before = model.predict_proba(X)
    tuned = tune(model, text, X, y, granularity=granularity)
    check(tuned, X, y)
    result = tuned.tuning_
    assert result.before == Confusion.of(y, model.predict(X), classes=range(k))
    assert result.preference == Preference(text)
    assert result.met
    assert model.tuning_ is None
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_leaves_follow_the_offset():
    model, X, y = grown()
    tuned = tune(model, "fp <= 0", X, y, max_models=0)
    assert tuned.offset_[0] > tuned.offset_[1]
    assert tuned.error_rates(X, y)[0] == 0 < model.error_rates(X, y)[0]
    check(tuned, X, y)


@granularities
@pytest.mark.parametrize("k", [2, 3])
def test_tuning_samples_in_cells_that_no_training_sample_reaches(k, granularity):
    model, X, y = grown(k, width=0.02)
    program, measured = model.program_, model.measured(X, y)
    known = {(edge.start, edge.end) for edge in program.edges}
    assert any((edge.start, edge.end) not in known for edge in measured.edges)
    for text in ("fp(0) <= 6", "fn(0) <= 6"):
        check(tune(model, text, X, y, granularity=granularity), X, y)


@granularities
def test_sample_weights_stay(granularity):
    model, X, y = grown(weighted=True)
    plain, *_ = grown()
    assert (model.predict_proba(X) != plain.predict_proba(X)).any()
    check(tune(model, "fp <= 5", X, y, granularity=granularity), X, y)


@granularities
def test_a_tuned_program_can_be_tuned_again(granularity):
    model, X, y = grown()
    once = tune(model, "fp <= 3", X, y)
    twice = tune(once, "fn <= 4", X, y, granularity=granularity)
    assert twice.tuning_.before == once.tuning_.after
    assert twice.tuning_.met
    check(twice, X, y)


def test_a_preference_that_is_met_changes_nothing():
    model, X, y = grown()
    steps = []
    tuned = model.tune("accuracy >= 10%", X, y, callback=steps.append)
    assert (tuned.tuning_.n_models, steps) == (0, [])
    np.testing.assert_array_equal(tuned.predict_proba(X), model.predict_proba(X))


def test_an_infeasible_preference_warns():
    model, X, y = grown()
    with pytest.warns(NotMetWarning, match=r"AdaptiveMartingaleBoostClassifier\.tune") as caught:
        tuned = model.tune("fp <= 0, fn <= 0", X, y)
    assert caught[0].filename == __file__
    assert not tuned.tuning_.met
    check(tuned, X, y)


@pytest.mark.parametrize("min_gain", [0, 1e9])
def test_pickles_and_clones(min_gain):
    model, X, y = grown()
    tuned = tune(model, "fp <= 3", X, y, min_gain=min_gain)
    again = pickle.loads(pickle.dumps(tuned))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), tuned.predict_proba(X))
    assert again.tuning_ == tuned.tuning_
    assert again.error_rates(X, y) == tuned.error_rates(X, y)
    check(tune(again, "fn <= 4", X, y), X, y)
    assert repr(clone(tuned)) == repr(clone(model))
    assert not hasattr(clone(tuned), "tuning_")
    light = tuned.without_training_data()
    np.testing.assert_array_equal(light.predict_proba(X), tuned.predict_proba(X))
    with pytest.raises(ValueError, match="training data"):
        light.tune("fn <= 4", X, y)


def test_fit_forgets_the_tuning():
    model, X, y = grown()
    tuned = tune(model, "fp <= 3", X, y)
    tuned.fit(X, y)
    assert tuned.tuning_ is None
    assert not tuned.offset_.any()
    np.testing.assert_array_equal(tuned.predict_proba(X), clone(model).fit(X, y).predict_proba(X))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("granularity", ["all", "select", "Root", None, 1]),
        ("max_models", [-1, 1.5, "2", True]),
        ("min_gain", [-1, np.nan, "a", True]),
        ("positive", [7]),
    ],
)
def test_bad_parameters_are_refused(name, values):
    model, X, y = grown()
    for value in values:
        with pytest.raises(ValueError, match=rf"\b{name}\b.*{value!r}"):
            model.tune("fp <= 3", X, y, **{name: value})


def test_bad_requests_are_refused():
    model, X, y = grown()
    with pytest.raises(TypeError, match="preference"):
        model.tune({(0, 0): "fp <= 3"}, X, y)
    with pytest.raises(PreferenceError):
        model.tune("correct(0) >= 1000", X, y)
    with pytest.raises(ValueError, match="y_tune"):
        model.tune("fp <= 3", X, np.zeros_like(y))
    with pytest.raises(ValueError, match="5 features"):
        model.tune("fp <= 3", X[:, :5], y)
