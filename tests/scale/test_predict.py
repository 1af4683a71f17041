"""Predictions for Dask collections are lazy, and equal to those in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

dask = pytest.importorskip("dask", reason="the extra 'dask' is not installed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from margrave import scale  # noqa: E402
from margrave.fuse import VoteClassifier  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def samples(n_classes=2):
    return make_classification(
        200, 6, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=0
    )


def assert_equal(lazy, expected):
    assert isinstance(lazy, da.Array)
    assert (lazy.dtype, lazy.ndim) == (expected.dtype, expected.ndim)
    computed = lazy.compute()
    assert computed.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(computed, expected)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labels", ["numbers", "strings"])
def test_classifiers_of_another_library(method, n_classes, labels):
    X, y = samples(n_classes)
    y = y if labels == "numbers" else np.array(["a", "long", "b"])[y]
    model = LogisticRegression().fit(X, y)
    lazy = scale.predict(model, da.from_array(X, chunks=(60, 6)), method)
    assert lazy.chunks[0] == (60, 60, 60, 20)
    assert_equal(lazy, getattr(model, method)(X))


def test_a_regressor():
    X, y = samples()
    model = LinearRegression().fit(X, 1.0 * y)
    assert_equal(scale.predict(model, da.from_array(X, chunks=(60, 6))), model.predict(X))


def test_rejected_samples():
    X, y = samples()
    y = np.array(["ham", "spam"])[y]
    members = [LogisticRegression(), GaussianNB(), SVC()]
    model = VoteClassifier(members, rule="unanimity").fit(X, y)
    expected = model.predict(X)
    assert model.reject_label_ in expected
    lazy = scale.predict(model, da.from_array(X, chunks=(60, 6)))
    np.testing.assert_array_equal(lazy.compute(), expected)


@pytest.mark.filterwarnings("ignore:Dask currently has limited support")
def test_data_frames_of_unknown_sizes_with_empty_partitions():
    X, y = samples()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = GaussianNB().fit(frame, y)
    parts = dd.from_pandas(frame.assign(row=np.arange(200)), npartitions=5)
    some = parts[parts["row"] >= 90][list("abcdef")]
    assert_equal(scale.predict(model, some), model.predict(frame[90:]))
    assert_equal(scale.predict(model, some, "predict_proba"), model.predict_proba(frame[90:]))


def test_errors():
    X, y = samples()
    blocks = da.from_array(X, chunks=(60, 6))
    with pytest.raises(NotFittedError):
        scale.predict(GaussianNB(), blocks)
    with pytest.raises(TypeError, match=r"\bX\b.*ndarray"):
        scale.predict(GaussianNB().fit(X, y), X)
    with pytest.raises(AttributeError, match="decision_function"):
        scale.predict(GaussianNB().fit(X, y), blocks, "decision_function")
