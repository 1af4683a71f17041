"""min_gain: a result replaces the moved offset only if it is clearly better."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from tests.confusion.values import value_of

from margrave import Confusion
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    NotMetWarning,
    TunableLogistic,
)

MODELS = [
    TunableLogistic(),
    AdaptiveMartingaleBoostClassifier(n_levels=3),
]
REQUESTS = ["fp <= 0", "recall(1) >= 95%"]
models = pytest.mark.parametrize("model", MODELS, ids=["logistic", "adaptive"])


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
    """The value of a matrix for the preference of a result; smaller is better."""
    return value_of(result.preference, matrix)


@models
@pytest.mark.parametrize("text", REQUESTS)
def test_a_large_min_gain_leaves_the_moved_offset(model, text):
    """Unless another has a smaller shortfall or predicts more classes."""
    result = tune(model, text, min_gain=1e9).tuning_
    if evaluate(result, result.after)[:2] == evaluate(result, result.by_offset)[:2]:
        assert result.after == result.by_offset
    else:
        assert evaluate(result, result.after) < evaluate(result, result.by_offset)
    assert result.after.n == 120


@models
def test_a_smaller_min_gain_is_never_worse(model):
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
def test_the_result_is_the_moved_offset_or_clearly_better(model, text):
    """By McNemar's test on the errors that the preference does not limit, of the two models."""
    _, _, X_tune, y_tune = made()
    tuned, simple = (tune(model, text, min_gain=gain) for gain in (2, 1e9))
    result = tuned.tuning_
    assert result.after == Confusion.of(y_tune, tuned.predict(X_tune))
    if result.after != result.by_offset == simple.tuning_.after:
        missed = y_tune == (1 if text == "fp <= 0" else 0)  # the errors that are not limited
        wrong, before = ((one.predict(X_tune) != y_tune) & missed for one in (tuned, simple))
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
    assert result.after.n_errors < result.by_offset.n_errors


@models
@pytest.mark.parametrize("min_gain", [-1, -1e-9, np.nan, "a", True, None])
def test_a_min_gain_that_is_no_number_of_at_least_0_is_refused(model, min_gain):
    with pytest.raises(ValueError, match=r"\bmin_gain\b"):
        tune(model, "fp <= 8", min_gain=min_gain)
