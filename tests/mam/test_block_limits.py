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

from margrave.mam import MAMClassifier, MAMRanker  # noqa: E402
from margrave.mam._block_rows import in_columns, plain_sums, sums_by_label  # noqa: E402
from margrave.mam._block_sums import Asked, class_sums, label_sums  # noqa: E402
from margrave.mam._features import Frequencies  # noqa: E402

LINEAR = {"kernel": "linear"}
FEATURES = {"n_components": 30, "random_state": 0, "gamma": 0.2}
ways = pytest.mark.parametrize("given", [LINEAR, FEATURES], ids=["linear", "features"])


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

    (lazy,) = dask.optimize(getattr(estimator, method)(rows) + 1)
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


@ways
def test_many_labels_take_little_memory(given):
    X, y = samples(20_000, 200)
    asked = Asked(4, {}, 0, 1_000, given is LINEAR)
    frequencies = Frequencies.drawn("rbf", 0.2, X[:10], 30, 0)
    tracemalloc.start()
    if given is LINEAR:
        label_sums(0, X, y, None, asked)
    else:
        class_sums(X, y, None, asked, np.arange(200), 0, frequencies)
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
    known = plain_sums(X, in_columns(y, weights, n))
    assert sums_by_label(X, y, weights, n) == pytest.approx(known, rel=1e-11, abs=1e-9)


@ways
def test_many_labels_are_learned_as_in_memory(given):
    X, y = samples(1_000, 40)
    known = MAMClassifier(**given).fit(X, y)
    found = MAMClassifier(**given).fit(da.from_array(X, chunks=(170, 4)), y)
    assert found.coef_ == pytest.approx(known.coef_, abs=1e-5 * np.abs(known.coef_).max())
    X[700, 1] = np.nan
    with pytest.raises(ValueError, match=r"\bX\b.*NaN"):
        MAMClassifier(**given).fit(da.from_array(X, chunks=(170, 4)), y)


@pytest.mark.parametrize("power", [-8, -6, -4, -2])
def test_directions_of_wide_kernels(power):
    X, y = samples(3_000)
    given = {"n_components": 100, "gamma": 4.0**power, "random_state": 0}
    known = MAMClassifier(**given, class_weight="balanced").fit(X, y)
    found = MAMClassifier(**given, class_weight="balanced")
    found.fit(da.from_array(X, chunks=(250, 4)), y)
    assert np.linalg.norm(found.coef_ - known.coef_) < 2e-6
    angles = (X - X.mean(axis=0)) @ known._frequencies.directions.astype(float)
    waves = np.hstack([np.cos(angles), np.sin(angles)])
    exact = waves[y == 1].mean(axis=0) - waves[y == 0].mean(axis=0)
    assert np.linalg.norm(known.coef_[0] - exact / np.linalg.norm(exact)) < 2e-6


@ways
def test_labels_that_do_not_fit_into_signed_integers(given):
    X, y = samples()
    labels = y.astype(np.uint64) + np.uint64(2**63 + 5)
    known = MAMClassifier(**given).fit(X, labels)
    found = MAMClassifier(**given).fit(da.from_array(X, chunks=(70, 4)), labels)
    assert found.classes_.dtype == np.uint64
    assert found.classes_.tolist() == known.classes_.tolist() == [2**63 + 5, 2**63 + 6]
    assert found.coef_ == pytest.approx(known.coef_, rel=1e-4, abs=1e-5)
    assert (found.predict(da.from_array(X, chunks=(70, 4))).compute() == found.predict(X)).all()


@ways
def test_infinity_is_no_label(given):
    X, y = samples()
    labels = np.where(np.arange(300) == 3, np.inf, y)
    for rows in (X, da.from_array(X, chunks=(70, 4))):
        with pytest.raises(ValueError, match=r"\by\b.*infinity"):
            MAMClassifier(**given).fit(rows, labels)


def test_sparse_blocks_are_refused():
    X, y = samples()
    sparse = da.from_array(X, chunks=(70, 4)).map_blocks(csr_matrix)
    model = MAMClassifier("linear").fit(X, y)
    for given in (LINEAR, FEATURES):
        with pytest.raises(TypeError, match=r"MAMClassifier\.fit.*csr_matrix"):
            MAMClassifier(**given).fit(sparse, y)
        with pytest.raises(TypeError, match=r"MAMRanker\.fit.*csr_matrix"):
            MAMRanker(**given).fit(sparse, y)
    with pytest.raises(TypeError, match=r"MAMClassifier\.predict.*csr_matrix"):
        model.predict(sparse).compute()
    with pytest.raises(TypeError, match=r"MAMClassifier\.score.*csr_matrix"):
        model.score(sparse, y)
