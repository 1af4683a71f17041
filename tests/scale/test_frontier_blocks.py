"""The frontier of Dask collections: equal to the one in memory, or exact where it is listed."""

import numpy as np
import pandas as pd
import pytest

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")

from margrave.scale import _summary, frontier  # noqa: E402
from margrave.steer import Frontier  # noqa: E402


def scored(n=3000, seed=0, decimals=2):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    sharp = np.round(rng.normal(1.5 * y, 1), decimals)
    return {"sharp": sharp, "even": np.round(rng.normal(y, 1), decimals)}, y


def in_blocks(scores, y, chunks):
    return {k: da.from_array(v, chunks=chunks) for k, v in scores.items()}, da.from_array(
        y, chunks=chunks
    )


def same(one, other):
    assert (one.n_positive, one.n_negative) == (other.n_positive, other.n_negative)
    assert (one.positive, one.negative) == (other.positive, other.negative)
    for a, b in zip(one.curves, other.curves, strict=True):
        assert a.name == b.name
        for what in ("fp", "fn", "thresholds"):
            assert np.array_equal(getattr(a, what), getattr(b, what))
    assert one.resolution == other.resolution == (0.0, 0.0)


@pytest.mark.parametrize("chunks", [3000, 1000, 77])
def test_as_in_memory_while_scores_are_few(chunks):
    scores, y = scored()
    whole = Frontier.of(scores, y)
    curves, labels = in_blocks(scores, y, chunks)
    found = frontier(curves, labels)
    same(found, whole)
    assert found.hull == whole.hull
    assert str(found) == str(whole)
    assert found.least_fp("5%") == whole.least_fp("5%")
    same(frontier({**curves, "even": scores["even"]}, y), whole)
    same(frontier(scores, labels), whole)
    same(frontier(curves, labels, positive=0), Frontier.of(scores, y, positive=0))


@pytest.mark.parametrize("chunks", [2500, 300])
def test_every_count_is_exact_where_thresholds_are_left_out(chunks, monkeypatch):
    monkeypatch.setattr(_summary, "EXACT", 200)
    monkeypatch.setattr(_summary, "FINENESS", 20)
    scores, y = scored(5000, decimals=9)
    scores["few"] = np.round(scores["even"], 1)
    whole = Frontier.of(scores, y)
    found = frontier(*in_blocks(scores, y, chunks))
    for curve, best in zip(found.curves, whole.curves, strict=True):
        values = scores[curve.name]
        above = values[:, None] > curve.thresholds
        assert np.array_equal(curve.fp, above[y == 0].sum(axis=0))
        assert np.array_equal(curve.fn, (~above)[y == 1].sum(axis=0))
        assert curve.fp[0] == 0
        assert curve.fn[-1] == 0
        assert (curve.resolution == (0.0, 0.0)) == (curve.name == "few")
        assert set(curve.thresholds) <= set(best.thresholds) or curve.name != "few"
    fp, fn = found.resolution
    assert 0 < fp < 0.2
    assert 0 < fn < 0.2
    for limit in ("0%", "0.2%", "1%", "5%", "30%"):
        count, best = found.least_fn(limit)[0], whole.least_fn(limit)[0]
        assert best <= count <= best + fn * found.n_positive
        count, best = found.least_fp(limit)[0], whole.least_fp(limit)[0]
        assert best <= count <= best + fp * found.n_negative


def test_the_stated_resolution_at_the_usual_fineness():
    rng = np.random.default_rng(0)
    n = 400_000
    y = (rng.random(n) < 0.1).astype(int)
    scores = rng.normal(2 * y, 1)
    found = frontier({"model": da.from_array(scores, chunks=100_000)}, y)
    fp, fn = found.resolution
    assert 0 < fp <= 1e-4
    assert fn <= 1e-4
    whole = Frontier.of({"model": scores}, y)
    curve = found.curves[0]
    near = curve.fp < 1000  # near the ends every sample has a threshold of its own
    assert np.array_equal(
        curve.thresholds[near], whole.curves[0].thresholds[whole.curves[0].fp < 1000]
    )
    assert found.least_fn("1%")[0] - whole.least_fn("1%")[0] <= fn * found.n_positive


@pytest.mark.filterwarnings("ignore:Dask currently has limited support")
def test_data_frames_unknown_chunks_empty_blocks_and_blocks_of_one_class():
    scores, y = scored(500)
    frame = pd.DataFrame({**scores, "y": np.where(y, "spam", "ham")})
    frame = frame.sort_values("y", ignore_index=True)
    parts = dd.from_pandas(frame, npartitions=7)
    some = parts[parts["sharp"] > 1]
    kept = frame[frame["sharp"] > 1]
    whole = Frontier.of({"sharp": kept["sharp"], "even": kept["even"]}, kept["y"])
    same(frontier({"sharp": some["sharp"], "even": some["even"]}, some["y"]), whole)
    arrays = {name: some[name].to_dask_array() for name in ("sharp", "even")}
    same(frontier(arrays, some["y"].to_dask_array()), whole)


@pytest.mark.parametrize(
    ("scores", "y", "positive"),
    [
        ([1.0, np.nan, 2.0], [0, 1, 1], None),
        ([1.0, np.inf, 2.0], [0, 1, 1], None),
        ([1.0, 2.0, 3.0], [1, 1, 1], None),
        ([1.0, 2.0, 3.0], [0, 1, 2], None),
        ([1.0, 2.0, 3.0], [0, 1, 2], 7),
        ([1.0, 2.0], [0, 1, 1], None),
        ([[1.0, 2.0, 3.0]], [0, 1, 1], None),
        ([1.0, 2.0, 3.0], [0.0, 1.0, np.nan], None),
    ],
)
def test_the_same_errors_as_in_memory(scores, y, positive):
    scores, y = np.array(scores), np.array(y)
    with pytest.raises(ValueError, match="Frontier"):
        Frontier.of({"model": scores}, y, positive)
    for labels in (da.from_array(y), y):
        with pytest.raises(ValueError, match=r"scale\.frontier"):
            frontier({"model": da.from_array(scores)}, labels, positive)


def test_labels_that_are_no_classes():
    with pytest.raises(ValueError, match=r"scale\.frontier.*\b1000\b"):
        frontier({"model": da.ones(3000, chunks=500)}, da.arange(3000, chunks=500))


def test_arrays_in_memory_are_for_frontier_of():
    with pytest.raises(TypeError, match="Dask"):
        frontier({"model": [1.0, 2.0]}, [0, 1])
    with pytest.raises(ValueError, match=r"\bscores\b"):
        frontier({}, da.arange(3))
