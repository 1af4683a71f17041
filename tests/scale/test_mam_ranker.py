"""The ranker on Dask collections: arrays in memory are the referee."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
dask = pytest.importorskip("dask", reason="the extra 'dask' is not installed")

from margrave import scale  # noqa: E402
from margrave.mam import MAMOrdinalClassifier, MAMRanker  # noqa: E402
from margrave.scale import _mam_blocks, _summary  # noqa: E402
from margrave.scale._blocks import Blocks  # noqa: E402

NAMES = list("abcd")
LINEAR = {"kernel": "linear"}
FEATURES = {"n_components": 30, "random_state": 0, "gamma": 0.2}
kernels = pytest.mark.parametrize("settings", [LINEAR, FEATURES], ids=["linear", "features"])


@pytest.fixture(autouse=True)
def here() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def samples(n=300, levels=0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 3
    y = X[:, 0] - X[:, 1] + rng.normal(size=n)
    if levels:
        y = np.digitize(y, np.quantile(y, np.arange(1, levels) / levels))
    return X, y, rng.random(n) * (rng.random(n) > 0.2)


def frame(X, y, weights=None, n=5):
    table = pd.DataFrame(X, columns=NAMES).assign(y=y, w=1.0 if weights is None else weights)
    return dd.from_pandas(table, npartitions=n, sort=False)


def same(found, known, settings):
    rel = 1e-10 if settings.get("kernel") == "linear" else 1e-5
    unit = np.abs(known.coef_).max()
    assert found.coef_ / unit == pytest.approx(known.coef_ / unit, rel=rel, abs=rel)
    assert found.lambda_ == pytest.approx(known.lambda_, rel=rel)
    assert found.rank_error_ == known.rank_error_ == 0.0
    assert found.n_features_in_ == known.n_features_in_
    assert found.gamma_ == (None if known.gamma_ is None else pytest.approx(known.gamma_))
    assert hasattr(found, "loo_scores_") == hasattr(known, "loo_scores_")
    if hasattr(known, "loo_scores_"):
        assert found.gammas_ == pytest.approx(known.gammas_)
        assert found.loo_scores_ == pytest.approx(known.loo_scores_, abs=1e-3)
    assert not hasattr(found, "ranks_")


@kernels
@pytest.mark.parametrize("chunks", [(300, 4), (50, 4), (71, 3), (9, 4)])
@pytest.mark.parametrize("levels", [0, 5])
def test_as_in_memory(settings, chunks, levels):
    X, y, weights = samples(levels=levels)
    for s in (None, weights):
        known = MAMRanker(**settings).fit(X, y, s)
        rows, responses = da.from_array(X, chunks=chunks), da.from_array(y)
        found = scale.fit(MAMRanker(**settings), rows, responses, s)
        same(found, known, settings)


@kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_frames(settings, dtype):
    X, y, weights = samples()
    X = X.astype(dtype)
    table = frame(X, y, weights)
    names = pd.DataFrame(X, columns=NAMES)
    known = MAMRanker(**settings).fit(names, y, weights)
    found = scale.fit(MAMRanker(**settings), table[NAMES], table["y"], table["w"])
    same(found, known, settings)
    assert found.feature_names_in_.tolist() == NAMES
    lazy = scale.predict(found, table[NAMES])
    assert lazy.dtype == np.float64
    assert lazy.compute() == pytest.approx(known.predict(names), abs=1e-5)
    assert found.score(names, y) == pytest.approx(known.score(names, y), abs=1e-3)
    with pytest.raises(ValueError, match="feature names"):
        scale.predict(found, table[NAMES[::-1]]).compute()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", ["loo", "scale"])
def test_widths_are_those_of_the_whole(kernel, gamma):
    X, y, weights = samples()
    settings = {"kernel": kernel, "gamma": gamma, "n_components": 40, "random_state": 3}
    known = MAMRanker(**settings).fit(X, y, weights)
    found = scale.fit(MAMRanker(**settings), da.from_array(X, chunks=(90, 4)), y, weights)
    same(found, known, settings)


@kernels
def test_two_passes(settings, monkeypatch):
    passes = []
    reduce = Blocks.reduce

    def counted(self, *arguments, **more):
        passes.append(1)
        return reduce(self, *arguments, **more)

    monkeypatch.setattr(Blocks, "reduce", counted)
    X, y, _ = samples()
    scale.fit(MAMRanker(**settings), da.from_array(X, chunks=(50, 4)), y)
    assert len(passes) == 2


@pytest.mark.parametrize("offset", [0, 1_000])
def test_more_responses_than_a_summary_holds(offset, monkeypatch):
    monkeypatch.setattr(_summary, "EXACT", 500)
    monkeypatch.setattr(_summary, "FINENESS", 50)
    X, y, weights = samples(6_000)
    X = X + offset
    known = MAMRanker("linear").fit(X, y, weights)
    found = scale.fit(MAMRanker("linear"), da.from_array(X, chunks=(400, 4)), y, weights)
    assert 0 < found.rank_error_ < 0.2
    assert found.coef_ @ known.coef_ > 0.999
    assert found.lambda_ == pytest.approx(known.lambda_, rel=found.rank_error_)
    # Of grades there are few, however many samples: exact.
    grades = np.round(y)
    known = MAMRanker("linear").fit(X, grades, weights)
    found = scale.fit(MAMRanker("linear"), da.from_array(X, chunks=(400, 4)), grades, weights)
    same(found, known, LINEAR)


def test_the_error_of_midranks_is_bounded(monkeypatch):
    monkeypatch.setattr(_summary, "EXACT", 300)
    monkeypatch.setattr(_summary, "FINENESS", 30)
    for seed in range(5):
        _, y, weights = samples(4_000, seed=seed)
        parts = [slice(at, at + 310) for at in range(0, 4_000, 310)]
        found = _summary.SortedSummary.merged(
            [_summary.SortedSummary.of(y[part], weights[part, None]) for part in parts]
        )
        order = np.argsort(y)
        upto = np.cumsum(weights[order])
        true = np.empty(4_000)
        true[order] = upto - weights[order] / 2
        assert (np.abs(found.middle(y)[:, 0] - true) <= found.error[0] + weights).all()


@pytest.mark.parametrize("settings", [LINEAR, FEATURES, {"gamma": 0.2}])
def test_predictions_are_lazy(settings):
    X, y, _ = samples()
    model = MAMRanker(**settings).fit(X, y)
    lazy = scale.predict(model, da.from_array(X, chunks=(70, 2)))
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (300,)
    assert lazy.dtype == np.float64
    assert lazy.compute() == pytest.approx(model.predict(X), abs=1e-6)


def test_parts_without_rows_and_of_unknown_size():
    X, y, weights = samples()
    order = np.argsort(X[:, 0])
    X, y, weights = X[order], y[order], weights[order]
    table = frame(X, y, weights, n=7)
    some = table[table["a"] > 3]
    there = X[:, 0] > 3
    for settings in (LINEAR, FEATURES):
        known = MAMRanker(**settings).fit(X[there], y[there], weights[there])
        found = scale.fit(MAMRanker(**settings), some[NAMES], some["y"], some["w"])
        same(found, known, settings)
        arrays = [some[NAMES].to_dask_array(), some["y"].to_dask_array()]
        found = scale.fit(MAMRanker(**settings), *arrays, some["w"].to_dask_array())
        same(found, known, settings)


@kernels
@pytest.mark.parametrize("unit", [1.0, 1e-200])
def test_a_block_without_weight(settings, unit):
    X, y, weights = samples()
    weights[50:150] = 0
    weights *= unit
    known = MAMRanker(**settings).fit(X, y, weights)
    found = scale.fit(MAMRanker(**settings), da.from_array(X, chunks=(50, 4)), y, weights)
    same(found, known, settings)


def test_of_many_rows_some_choose_the_width(monkeypatch):
    monkeypatch.setattr(_mam_blocks, "LARGEST_RESERVOIR", 200)
    X, y, _ = samples(3_000)
    settings = {"n_components": 100, "random_state": 0}
    known = MAMRanker(**settings).fit(X, y)
    found = scale.fit(MAMRanker(**settings), da.from_array(X, chunks=(170, 4)), y)
    assert found.score(X, y) == pytest.approx(known.score(X, y), abs=0.05)
    again = scale.fit(MAMRanker(**settings), da.from_array(X, chunks=(170, 4)), y)
    assert (found.coef_ == again.coef_).all()


def refused(match, X, y, weights=None, error=ValueError, **settings):
    with pytest.raises(error, match=match):
        scale.fit(MAMRanker(**{**LINEAR, **settings}), X, y, weights)


@kernels
@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_a_number_that_is_none_in_one_block(settings, bad, name):
    X, y, weights = samples()
    broken = X.copy()
    broken[123, 2] = bad
    weights[123] = 0
    for s in (None, weights):
        refused(rf"\bX\b.*{name}", da.from_array(broken, chunks=(50, 4)), y, s, **settings)
    y[70] = bad
    refused(rf"\by\b.*{name}", da.from_array(X, chunks=(50, 4)), y, **settings)


def test_what_cannot_be_learned_from():
    X, y, weights = samples()
    rows = da.from_array(X, chunks=(50, 4))
    refused(r"\by\b.*\b2\b", rows, 0 * y + 2)
    refused(rf"\by\b.*{y[0]}", rows[:1], y[:1])
    refused(rf"\by\b.*{y[7]}", rows, y, np.arange(300) == 7)
    refused("sample_weight", rows, y, 0 * weights)
    refused("sample_weight", rows, y, np.where(np.arange(300) == 70, -1, weights))
    refused(r"\by\b.*\b300\b.*\b299\b", rows, y[1:])
    refused(r"\bX\b.*\bDask\b", X, da.from_array(y), error=TypeError)
    refused(r"\by\b.*MAMOrdinalClassifier", rows, np.array(["low", "high"] * 150))
    refused(r"MAMRanker.*\by\b", rows, None)
    refused(r"\bX\b", rows[:, 0], y)
    refused(r"\bX\b", rows * 1e306, y)
    refused(r"\bkernel\b.*'rbf'", rows, y, kernel="rbf")


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_that_float64_cannot_tell_apart(dtype):
    X, y, _ = samples()
    rows = da.from_array(X, chunks=(50, 4))
    order = np.argsort(np.argsort(y)).astype(dtype)
    for settings in (LINEAR, FEATURES):
        whole = da.from_array(X, chunks=(300, 4))
        refused(rf"\by\b.*{2**60 + 299}", whole, order + dtype(2**60), **settings)
        largest = order + dtype(2**53 - 299)
        found = scale.fit(MAMRanker(**settings), rows, largest)
        same(found, MAMRanker(**settings).fit(X, largest), settings)
    if dtype == np.int64:
        refused(r"\by\b.*-\d{19}\b", rows, order + np.iinfo(dtype).min)


def test_a_single_row_in_every_block():
    X, y, _ = samples(12)
    known = MAMRanker("linear").fit(X, y)
    found = scale.fit(MAMRanker("linear"), da.from_array(X, chunks=(1, 4)), y)
    same(found, known, LINEAR)


def test_rows_that_are_all_the_same():
    for settings in (LINEAR, FEATURES):
        rows = da.ones((60, 3), chunks=(20, 3))
        found = scale.fit(MAMRanker(**settings), rows, np.arange(60))
        assert found.lambda_ == 0
        assert (found.coef_ == 0).all()


def test_ordered_classes_need_memory():
    X, y, _ = samples(levels=3)
    with pytest.raises(TypeError, match=r"MAMRanker.*\bMAMOrdinalClassifier\b.*sample"):
        scale.fit(MAMOrdinalClassifier("linear"), da.from_array(X), y)


def test_a_fit_in_memory_leaves_nothing_to_a_fit_on_blocks():
    X, y, _ = samples()
    model = MAMRanker(gamma=0.2).fit(X, y)
    model.set_params(kernel="linear")
    assert scale.fit(model, da.from_array(X, chunks=(50, 4)), y) is model
    same(model, MAMRanker("linear").fit(X, y), LINEAR)
    assert not hasattr(model, "X_fit_")
