"""What blocks of Dask collections may hold, and what they cost."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
dask = pytest.importorskip("dask", reason="the extra 'dask' is not installed")
cloudpickle = pytest.importorskip("cloudpickle", reason="the extra 'dask' is not installed")

from margrave import scale  # noqa: E402
from margrave.mam import MAMClassifier, MAMRanker, RandomFeatures  # noqa: E402
from margrave.scale._mam import BlockRequest, sum_classes, sum_labels  # noqa: E402
from margrave.scale._mam_blocks import (  # noqa: E402
    sums_by_label,
    weight_columns,
    weighted_row_sums,
)

LINEAR = {"kernel": "linear"}
FEATURES = {"n_components": 30, "random_state": 0, "gamma": 0.2}
kernels = pytest.mark.parametrize("settings", [LINEAR, FEATURES], ids=["linear", "features"])


@pytest.fixture(autouse=True)
def here() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def samples(n=300, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = rng.integers(0, n_classes, n)
    X[:, 0] += y
    return X, y


def times_sent(estimator, method, rows, monkeypatch):
    """How often an estimator is pickled where every task of a graph is, one by one."""
    sent = []
    state = type(estimator).__getstate__

    def counted(self):
        sent.append(1)
        return state(self)

    (lazy,) = dask.optimize(scale.predict(estimator, rows, method) + 1)
    graph = dict(lazy.__dask_graph__())
    assert len(graph) >= 10
    with monkeypatch.context() as patched:
        patched.setattr(type(estimator), "__getstate__", counted)
        for task in graph.values():
            cloudpickle.dumps(task)
    return len(sent)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_a_model_is_sent_once(kind, monkeypatch):
    X, y = samples()
    rows = da.from_array(X, chunks=(30, 4))
    if kind == "frame":
        table = pd.DataFrame(X, columns=list("abcd"))
        rows = dd.from_pandas(table, npartitions=10)
        X = table
    model = MAMClassifier(gamma=0.2).fit(X, y)
    assert times_sent(model, "predict", rows, monkeypatch) == 1
    assert times_sent(model, "decision_function", rows, monkeypatch) == 1
    assert times_sent(MAMRanker(gamma=0.2).fit(X, y), "predict", rows, monkeypatch) == 1


@kernels
def test_many_labels_take_little_memory(settings):
    X, y = samples(20_000, 200)
    request = BlockRequest(4, {}, 0, 1_000, settings is LINEAR)
    features = RandomFeatures.draw("rbf", 0.2, X.mean(axis=0), 30, 0)
    tracemalloc.start()
    if settings is LINEAR:
        sum_labels(0, X, y, None, request)
    else:
        sum_classes(X, y, None, request, np.arange(200), 0, features)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * len(X) * 8 / 2  # a column for every label


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [2, 8, 9, 50])
def test_sums_by_label(dtype, order, n):
    X, y = samples(9_000, n)
    X = np.asarray(X, dtype=dtype, order=order)
    weights = np.random.default_rng(1).random(9_000)
    known = weighted_row_sums(X, weight_columns(y, weights, n))
    assert sums_by_label(X, y, weights, n) == pytest.approx(known, rel=1e-11, abs=1e-9)


@kernels
def test_many_labels_are_learned_as_in_memory(settings):
    X, y = samples(1_000, 40)
    known = MAMClassifier(**settings).fit(X, y)
    found = scale.fit(MAMClassifier(**settings), da.from_array(X, chunks=(170, 4)), y)
    assert found.coef_ == pytest.approx(known.coef_, abs=1e-5 * np.abs(known.coef_).max())
    X[700, 1] = np.nan
    with pytest.raises(ValueError, match=r"\bX\b.*NaN"):
        scale.fit(MAMClassifier(**settings), da.from_array(X, chunks=(170, 4)), y)


@pytest.mark.parametrize("power", [-8, -6, -4, -2])
def test_directions_of_wide_kernels(power):
    X, y = samples(3_000)
    settings = {"n_components": 100, "gamma": 4.0**power, "random_state": 0}
    known = MAMClassifier(**settings, class_weight="balanced").fit(X, y)
    found = MAMClassifier(**settings, class_weight="balanced")
    scale.fit(found, da.from_array(X, chunks=(250, 4)), y)
    assert np.linalg.norm(found.coef_ - known.coef_) < 2e-6
    angles = (X - X.mean(axis=0)) @ known._features.directions.astype(float)
    waves = np.hstack([np.cos(angles), np.sin(angles)])
    exact = waves[y == 1].mean(axis=0) - waves[y == 0].mean(axis=0)
    assert np.linalg.norm(known.coef_[0] - exact / np.linalg.norm(exact)) < 2e-6


@kernels
def test_labels_that_do_not_fit_into_signed_integers(settings):
    X, y = samples()
    labels = y.astype(np.uint64) + np.uint64(2**63 + 5)
    known = MAMClassifier(**settings).fit(X, labels)
    found = scale.fit(MAMClassifier(**settings), da.from_array(X, chunks=(70, 4)), labels)
    assert found.classes_.dtype == np.uint64
    assert found.classes_.tolist() == known.classes_.tolist() == [2**63 + 5, 2**63 + 6]
    assert found.coef_ == pytest.approx(known.coef_, rel=1e-4, abs=1e-5)
    lazy = scale.predict(found, da.from_array(X, chunks=(70, 4)))
    assert (lazy.compute() == found.predict(X)).all()


@kernels
def test_infinity_is_no_label(settings):
    X, y = samples()
    labels = np.where(np.arange(300) == 3, np.inf, y)
    with pytest.raises(ValueError, match=r"\by\b.*infinity"):
        MAMClassifier(**settings).fit(X, labels)
    with pytest.raises(ValueError, match=r"\by\b.*infinity"):
        scale.fit(MAMClassifier(**settings), da.from_array(X, chunks=(70, 4)), labels)


def test_sparse_blocks_are_refused():
    X, y = samples()
    sparse = da.from_array(X, chunks=(70, 4)).map_blocks(csr_matrix)
    model = MAMClassifier("linear").fit(X, y)
    for settings in (LINEAR, FEATURES):
        with pytest.raises(TypeError, match=r"MAMClassifier.*csr_matrix"):
            scale.fit(MAMClassifier(**settings), sparse, y)
        with pytest.raises(TypeError, match=r"MAMRanker.*csr_matrix"):
            scale.fit(MAMRanker(**settings), sparse, y)
    with pytest.raises(TypeError, match="sparse"):
        scale.predict(model, sparse).compute()


def test_predictions_send_no_training_state(monkeypatch):
    X, y = samples(2_000)
    rows = da.from_array(X, chunks=(500, 4))
    for model in (MAMClassifier("linear").fit(X, y), MAMClassifier(gamma=0.2).fit(X, y)):
        (lazy,) = dask.optimize(scale.predict(model, rows))
        sent = b"".join(cloudpickle.dumps(task) for task in dict(lazy.__dask_graph__()).values())
        assert b"loo_decision_" not in sent
        assert b"keys" not in sent
        assert (lazy.compute() == model.predict(X)).all()
        assert model.rademacher_bound() > 0
