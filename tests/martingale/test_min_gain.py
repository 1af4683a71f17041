"""min_gain: a result replaces the simple candidates only if it is clearly better."""

import pickle
import warnings
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from margrave import Confusion
from margrave.compare import MartingaleDisplay
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    NotMetWarning,
    TunableLogistic,
)

mpl.use("agg")

MODELS = [
    TunableLogistic(),
    MartingaleBoostClassifier(n_levels=3),
    MartingaleBoostClassifier(DecisionTreeClassifier(max_depth=2, random_state=0), 3),
    AdaptiveMartingaleBoostClassifier(n_levels=3),
]
REQUESTS = ["fp <= 0", "recall(1) >= 95%"]
models = pytest.mark.parametrize(
    "model", MODELS, ids=["logistic", "program", "program of trees", "adaptive"]
)


@cache
def made(seed=0, k=2):
    """Overlapping classes; half to train on, half to tune on."""
    X, y = make_classification(
        240, 6, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.15, class_sep=0.6, random_state=seed,
    )  # fmt: skip
    return X[::2], y[::2], X[1::2], y[1::2]


def tune(model, text, seed=0, **more):
    """A tuned model and its result; the preference may not be met."""
    X, y, X_tune, y_tune = made(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)
        return clone(model).fit(X, y).tune(text, X_tune, y_tune, **more)


def evaluate(result, matrix):
    """The shortfall, and the number of errors; smaller is better."""
    errors = matrix.n - int(np.trace(matrix.counts))
    return round(result.preference.shortfall(matrix), 9), errors


@models
@pytest.mark.parametrize("text", REQUESTS)
def test_a_large_min_gain_leaves_the_simple_candidate(model, text):
    """Unless another has a smaller shortfall."""
    result = tune(model, text, min_gain=1e9).tuning_
    if evaluate(result, result.after)[0] == evaluate(result, result.by_offset)[0]:
        assert result.after == result.by_offset
    else:
        assert evaluate(result, result.after) < evaluate(result, result.by_offset)
    assert result.after.n == 120


@models
def test_a_smaller_min_gain_never_has_more_errors(model):
    gained = 0
    for seed in (0, 2):
        for text in ("fp <= 8", "fn <= 8"):
            each = [tune(model, text, seed, min_gain=gain).tuning_ for gain in (0, 2, 1e9)]
            values = [evaluate(result, result.after) for result in each]
            assert values == sorted(values)
            assert len({result.by_offset for result in each}) == 1
            gained += values[0] < values[2]
    assert gained


@models
@pytest.mark.parametrize("text", REQUESTS)
def test_the_result_is_simple_or_clearly_better(model, text):
    """By McNemar's test on the predictions of the two returned models."""
    _, _, X_tune, y_tune = made()
    tuned, simple = (tune(model, text, min_gain=gain) for gain in (2, 1e9))
    result = tuned.tuning_
    assert result.after == Confusion.of(y_tune, tuned.predict(X_tune))
    if result.after != result.by_offset == simple.tuning_.after:
        wrong, before = (one.predict(X_tune) != y_tune for one in (tuned, simple))
        fewer, more = np.sum(before & ~wrong), np.sum(wrong & ~before)
        assert fewer - more > 2 * np.sqrt(fewer + more)


def test_a_clearly_better_model_is_returned():
    """The penalty of the start is far too large: another model has much fewer errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1600, 2))
    y = (X[:, 1] + 0.3 * rng.normal(size=1600) > 0).astype(int)
    X[:, 0] += 0.5 * y
    model = TunableLogistic([0.0, 6.0]).fit(X[::2], y[::2])
    result = model.tune("fn <= 40", X[1::2], y[1::2]).tuning_
    assert result.met
    assert evaluate(result, result.after)[1] < evaluate(result, result.by_offset)[1]


@models
@pytest.mark.parametrize("min_gain", [-1, -1e-9, np.nan, "a", True, None])
def test_a_min_gain_that_is_no_number_of_at_least_0_is_refused(model, min_gain):
    with pytest.raises(ValueError, match=r"\bmin_gain\b"):
        tune(model, "fp <= 8", min_gain=min_gain)


# A program of which only the root is left


@cache
def left_root(k=2, learner=None):
    """A program that tuning has replaced by its root with a moved offset, and the original."""
    for seed in range(20):
        X, y, X_tune, y_tune = made(seed, k)
        model = MartingaleBoostClassifier(learner, 4, random_state=0).fit(X, y)
        for text in ("fp(0) <= 8", "fn(0) <= 8", "recall(0) >= 90%"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotMetWarning)
                tuned = model.tune(text, X_tune, y_tune, min_gain=1e9)
            if tuned.program_.n_levels == 1:
                return model, tuned, X_tune, y_tune
    raise ValueError("no request leaves the root")


ROOTS = [(2, None), (3, None), (2, MODELS[2].estimator)]
roots = pytest.mark.parametrize(("k", "learner"), ROOTS, ids=["two", "three", "tree"])


@roots
def test_the_root_alone_predicts_as_its_learner_with_a_moved_offset(k, learner):
    model, tuned, X, y = left_root(k, learner)
    root = model.learners_[0]
    assert list(tuned.learners_.values()) == [root]
    scores = np.log(np.maximum(root.predict_proba(X), 1e-300)) + tuned.node_offset_
    predictions = tuned.program_.nodes[1:]
    labels = {int(np.argmax(node.position)): node.prediction for node in predictions}
    expected = [labels[code] for code in scores.argmax(axis=1).tolist()]
    np.testing.assert_array_equal(tuned.predict(X), expected)
    assert tuned.tuning_.after == tuned.tuning_.by_offset
    assert tuned.tuning_.after == Confusion.of(y, tuned.predict(X), classes=range(k))
    rates = tuned.error_rates(X, y)
    for c in range(k):
        assert rates[c] == pytest.approx(np.mean(tuned.predict(X)[y == c] != c))


@roots
def test_the_root_alone_has_paths_of_two_nodes_and_pickles(k, learner):
    _, tuned, X, _ = left_root(k, learner)
    assert [node.layer for node in tuned.program_.nodes] == [0] + k * [1]
    paths = tuned.decision_path(X)
    assert paths.shape == (len(X), k + 1)
    np.testing.assert_array_equal(paths.sum(axis=1), 2)
    again = pickle.loads(pickle.dumps(tuned))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), tuned.predict_proba(X))
    assert again.tuning_ == tuned.tuning_
    assert clone(tuned).get_params()["n_levels"] == 4
    np.testing.assert_array_equal(
        tuned.without_training_data().predict_proba(X), tuned.predict_proba(X)
    )


@roots
def test_the_root_alone_gets_more_levels(k, learner):
    _, tuned, X, _ = left_root(k, learner)
    taller = tuned.grow(2)
    assert taller.program_.n_levels == taller.n_levels == 3
    if learner is None:
        np.testing.assert_array_equal(taller.learners_[0].coef_, tuned.learners_[0].coef_)
    for votes in np.eye(k, dtype=int).tolist():  # the root sends samples along the same edges
        at, first = (
            one.decision_path(X)[:, [one.program_.at(tuple(votes))]] for one in (taller, tuned)
        )
        assert (at != first).nnz == 0
    assert taller.tuning_ is None
    assert set(taller.predict(X)) <= set(range(k))


@roots
@pytest.mark.parametrize("granularity", ["quick", "root"])
def test_the_root_alone_can_be_tuned_again(k, learner, granularity):
    _, tuned, X, y = left_root(k, learner)
    before = tuned.tuning_.after
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)
        again = tuned.tune(
            f"errors <= {before.n - np.trace(before.counts) - 5}",
            X,
            y,
            granularity=granularity,
            max_models=2,
            min_gain=0,
        )
    assert again.tuning_.before == before
    assert again.tuning_.after == Confusion.of(y, again.predict(X), classes=range(k))
    assert again.tuning_.shortfall <= 5


def test_only_the_root_can_be_tuned_by_itself():
    _, tuned, X, y = left_root()
    requests = []
    same = tuned.tune(requests.append, X, y, granularity="all")
    assert [request.votes for request in requests] == [(0, 0)]
    np.testing.assert_array_equal(same.predict_proba(X), tuned.predict_proba(X))
    fewer = requests[0].confusion.fp // 2
    changed = tuned.tune({(0, 0): f"fp <= {fewer}"}, X, y, granularity="all")
    assert changed.program_.n_levels == 1
    assert changed.measured(X, y).confusion(0).fp <= fewer
    with pytest.raises(ValueError, match=r"\(1, 0\)"):
        tuned.tune({(1, 0): "fp <= 1"}, X, y, granularity="all")


def test_the_root_alone_is_drawn():
    _, tuned, *_ = left_root()
    display = MartingaleDisplay.from_estimator(tuned)
    assert len(display.places_) == len(tuned.program_) == 3
