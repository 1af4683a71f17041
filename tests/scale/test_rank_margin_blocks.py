"""Rank-margin weights of Dask collections: those of the same rows in memory, in few passes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

import dask  # noqa: E402

from margrave import fuse, scale  # noqa: E402
from margrave.fuse._tail import WeightedScores, exact_tail  # noqa: E402
from margrave.scale import _rank_passes  # noqa: E402
from margrave.scale._blocks import Blocks  # noqa: E402
from margrave.scale._tail_bins import Grid, binned_tail, sum_bins  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def made(n, K, seed=0):
    """Members of rising quality with a common error."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    y[:2] = 0, 1
    signal = (2 * y - 1)[:, None] * np.linspace(0.3, 1.2, K)
    noise = 0.7 * rng.normal(size=(n, 1)) + rng.normal(size=(n, K))
    return np.tanh((signal + noise) / 2), y


def in_blocks(n, n_blocks):
    size = -(-n // n_blocks)
    return lambda array: da.from_array(array, chunks=(size, *array.shape[1:]))


def mean_of_worst(F, y, found, hardest=1.0):
    """The mean margin that weights reach, in memory."""
    s = F @ found.weights
    sides = [WeightedScores(s[of], np.full(of.sum(), 1 / of.sum())) for of in (y == 1, y == 0)]
    return exact_tail(*sides, found.nu, hardest).mean


@pytest.mark.parametrize("n_blocks", [1, 3, 20])
@pytest.mark.parametrize("seed", range(3))
def test_the_worst_pair_is_that_of_memory(n_blocks, seed):
    F, y = made(600, 4, seed)
    block = in_blocks(600, n_blocks)
    found = scale.rank_margin_weights(block(F), block(y), tol=1e-12)
    inside = fuse.rank_margin_weights(F, y, tol=1e-12)
    assert found.margin == pytest.approx(inside.margin, abs=1e-9)
    assert found.weights == pytest.approx(inside.weights, abs=1e-7)
    assert found.rho == found.margin
    s = F @ found.weights
    assert found.margin == pytest.approx(s[y == 1].min() - s[y == 0].max(), abs=1e-12)
    assert found.n_active == inside.n_active == len(found.active)
    assert {*map(tuple, found.active)} == {*map(tuple, inside.active)}
    assert inside.n_passes is None


def test_the_worst_pair_of_one_long_block():
    F, y = made(200_000, 3)
    block = in_blocks(200_000, 1)
    found = scale.rank_margin_weights(block(F), block(y), tol=1e-9)
    inside = fuse.rank_margin_weights(F, y, tol=1e-9)
    assert found.margin == pytest.approx(inside.margin, abs=1e-9)
    s = F @ found.weights
    assert found.margin == pytest.approx(s[y == 1].min() - s[y == 0].max(), abs=1e-12)


@few(12)
@given(
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0]),
    st.integers(1, 7),
    st.booleans(),
    st.sampled_from([None, "hardest 30%"]),
)
def test_few_different_scores_and_weights(seed, nu, n_blocks, weighted, negatives):
    rng = np.random.default_rng(seed)
    F = rng.integers(-4, 5, (30, 3)) / 4
    y = np.append([0, 1], rng.integers(0, 2, 28))
    weight = rng.choice([0.0, 1.0, 2.5], 30) if weighted else None
    if weighted:
        weight[:2] = 1.0
    block = in_blocks(30, n_blocks)
    block_weight = None if weight is None else block(weight)
    tried = {"tol": 1e-4 if nu else 1e-10, "negatives": negatives}
    with dask.config.set(scheduler="synchronous"):
        found = scale.rank_margin_weights(block(F), block(y), nu, block_weight, **tried)
    inside = fuse.rank_margin_weights(F, y, nu, weight, **tried)
    assert found.margin == pytest.approx(inside.margin, abs=1e-4 if nu else 1e-9)
    assert found.gap <= 1e-4
    assert (found.tie_nu is None) == (inside.tie_nu is None)
    if found.tie_nu is not None:
        assert found.tie_nu == pytest.approx(inside.tie_nu)


@pytest.mark.parametrize("nu", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("negatives", [None, "hardest 10%"])
def test_the_tail_is_that_of_memory(nu, negatives):
    F, y = made(3_000, 5)
    block = in_blocks(3_000, 7)
    found = scale.rank_margin_weights(block(F), block(y), nu, negatives=negatives)
    inside = fuse.rank_margin_weights(F, y, nu, negatives=negatives)
    hardest = 1.0 if negatives is None else 0.1
    assert found.gap <= 1e-4
    assert abs(found.margin - inside.margin) <= 1e-4
    # The reported margin is a lower bound of the margin that the weights reach, and close to it.
    reached = mean_of_worst(F, y, found, hardest)
    assert reached - 1e-6 <= found.margin <= reached + 1e-12
    assert found.n_active == pytest.approx(inside.n_active, rel=0.01)
    assert found.rho == pytest.approx(inside.rho, abs=1e-3)
    s = F @ found.weights
    margins = s[found.active[:, 0]] - s[found.active[:, 1]]
    assert len(margins) == 100
    assert (np.diff(margins) > -1e-12).all()
    assert np.array_equal(y[found.active], np.tile([1, 0], (100, 1)))
    worst = np.sort((s[y == 1][:, None] - s[y == 0]).ravel())[:100]
    assert margins == pytest.approx(worst, abs=1e-12)


sides = st.lists(
    st.tuples(st.integers(-8, 8).map(lambda k: k / 8), st.sampled_from([1.0, 2.0, 0.5])),
    min_size=1,
    max_size=9,
)


@given(
    sides,
    sides,
    st.sampled_from([1e-6, 0.01, 0.25, 0.5, 1.0]),
    st.sampled_from([1.0, 0.5, 0.2]),
    st.sampled_from([3, 10, 1000]),
)
def test_sums_over_bins_hold_the_tail(positives, negatives, nu, hardest, n_bins):
    rows = np.array(positives + negatives)
    s, w = rows.T
    y = np.arange(len(s)) < len(positives)
    grid = Grid.over(s.min(), s.max(), n_bins)
    sums = sum_bins(s[:, None], s, (np.where(y, w, 0), np.where(y, 0, w)), grid)
    tail = binned_tail(sums, grid, nu, hardest)
    exact = exact_tail(*(WeightedScores(s[of], w[of] / w[of].sum()) for of in (y, ~y)), nu, hardest)
    assert tail.value <= exact.mean + 1e-12 / nu**0.5
    assert tail.plane[0] >= exact.mean - 1e-9
    assert tail.plane[0] - tail.value <= 4 * grid.width + 1e-9
    if n_bins == 1000 and nu > 1e-3:  # all scores of a bin are equal, and nothing is hidden
        assert tail.value == pytest.approx(exact.mean, abs=0.01 * grid.width)
        assert tail.plane[0] == pytest.approx(exact.mean, abs=1e-9)


@pytest.mark.parametrize("nu", [0.0, 0.1])
def test_passes_are_few_and_counted(monkeypatch, nu):
    F, y = made(20_000, 7)
    F = np.clip(F + 0.3 * np.random.default_rng(0).normal(size=F.shape), -1, 1)
    calls = []
    unchanged = Blocks.reduce

    def counted(self, *args, **named):
        calls.append(1)
        return unchanged(self, *args, **named)

    monkeypatch.setattr(Blocks, "reduce", counted)
    block = in_blocks(20_000, 20)
    found = scale.rank_margin_weights(block(F), block(y), nu)
    assert len(calls) == found.n_passes == found.n_iter + 2
    assert found.n_passes <= 12


def test_bins_become_finer_where_they_must(monkeypatch):
    monkeypatch.setattr(_rank_passes, "_BINS", 64)
    F, y = made(2_000, 3)
    block = in_blocks(2_000, 4)
    found = scale.rank_margin_weights(block(F), block(y), 0.1)
    assert found.n_passes > found.n_iter + 2
    assert found.gap <= 1e-4
    assert abs(found.margin - fuse.rank_margin_weights(F, y, 0.1).margin) <= 1e-4
    monkeypatch.setattr(_rank_passes, "MAX_BINS", 64)
    with pytest.warns(match="rank_margin_weights"):
        coarse = scale.rank_margin_weights(block(F), block(y), 0.1, max_iter=40)
    # It does not go on where it cannot see, and what it tells still holds.
    assert coarse.n_iter < 20
    assert coarse.margin <= mean_of_worst(F, y, coarse) + 1e-12
    assert coarse.margin + coarse.gap >= fuse.rank_margin_weights(F, y, 0.1, tol=1e-9).margin - 1e-9


@pytest.mark.parametrize("n_members", [1, 10, 100, 100_000])
def test_sums_over_bins_are_bounded_however_fine(n_members):
    passes = _rank_passes.Passes.over(Blocks((), 1, "test"), n_members)
    assert passes.n_bins <= passes.max_bins <= _rank_passes.MAX_BINS
    fits = passes.max_bins * n_members <= _rank_passes._MAX_SUMS
    assert fits or passes.max_bins == _rank_passes._MIN_BINS


def test_bins_stop_where_the_sums_are_too_many(monkeypatch):
    monkeypatch.setattr(_rank_passes, "_MAX_SUMS", 3 * 100)
    monkeypatch.setattr(_rank_passes, "_MIN_BINS", 10)
    grids = []
    unchanged = _rank_passes.binned_tail

    def seen(sums, grid, *more):
        grids.append(grid.n_bins)
        return unchanged(sums, grid, *more)

    monkeypatch.setattr(_rank_passes, "binned_tail", seen)
    F, y = made(2_000, 3)
    block = in_blocks(2_000, 4)
    with pytest.warns(match="rank_margin_weights"):
        found = scale.rank_margin_weights(block(F), block(y), 0.1, max_iter=40)
    assert set(grids) == {100}
    assert found.margin <= mean_of_worst(F, y, found) + 1e-12


def test_small_scores_and_single_precision():
    F, y = made(400, 3)
    small = (F / 1_000).astype(np.float32)
    block = in_blocks(400, 3)
    found = scale.rank_margin_weights(block(small), block(y), tol=1e-9)
    inside = fuse.rank_margin_weights(small, y, tol=1e-9)
    assert found.margin == pytest.approx(inside.margin, abs=1e-11)
    assert found.weights == pytest.approx(inside.weights, abs=1e-6)


def test_blocks_of_one_class_and_of_no_weight():
    F, y = made(300, 3)
    order = np.argsort(y, kind="stable")
    F, y = F[order], y[order]
    weight = np.ones(300)
    weight[100:150] = 0
    block = in_blocks(300, 6)
    for nu in (0.0, 0.2):
        found = scale.rank_margin_weights(block(F), block(y), nu, block(weight), tol=1e-5)
        inside = fuse.rank_margin_weights(F, y, nu, weight, tol=1e-5)
        assert found.margin == pytest.approx(inside.margin, abs=1e-5)
        assert not np.isin(found.active, np.arange(100, 150)).any()


@pytest.mark.parametrize("nu", [0.0, 0.1])
def test_data_frames_with_empty_parts_and_labels_as_text(nu):
    F, y = made(200, 3)
    names = np.where(y == 1, "sick", "healthy")
    table = pd.DataFrame(F, columns=["a", "b", "c"]).assign(y=names, row=np.arange(200))
    parts = dd.from_pandas(table, npartitions=5)
    some = parts[(parts["row"] < 80) | (parts["row"] >= 120)]
    kept = np.r_[0:80, 120:200]
    found = scale.rank_margin_weights(some[["a", "b", "c"]], some["y"], nu)
    inside = fuse.rank_margin_weights(F[kept], names[kept], nu)
    assert found.margin == pytest.approx(inside.margin, abs=1e-4)
    assert (names[kept][found.active[:, 0]] == "sick").all()
    assert (names[kept][found.active[:, 1]] == "healthy").all()
    turned = scale.rank_margin_weights(-some[["a", "b", "c"]], some["y"], nu, positive="healthy")
    assert turned.margin == pytest.approx(found.margin, abs=1e-4)


def test_one_member():
    F, y = made(50, 1)
    block = in_blocks(50, 3)
    found = scale.rank_margin_weights(block(F), block(y))
    assert found.weights.tolist() == [1.0]
    assert found.margin == pytest.approx(F[y == 1].min() - F[y == 0].max(), rel=1e-9)
    assert (found.n_iter, found.n_passes, found.gap) == (0, 2, 0)


def test_silent_members_are_named():
    F, y = made(60, 3)
    F[:, 1] = 0.5
    parts = dd.from_pandas(pd.DataFrame(F, columns=["a", "quiet", "c"]), npartitions=3)
    with pytest.warns(UserWarning, match=r"rank_margin_weights.*\bquiet\b") as record:
        found = scale.rank_margin_weights(parts, dd.from_pandas(pd.Series(y), npartitions=3))
    assert record[0].filename == __file__
    assert found.weights[1] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert found.margin == pytest.approx(fuse.rank_margin_weights(F, y).margin, abs=1e-4)


GOOD = np.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.1]])
LABELS = np.array([0, 1, 1])


@pytest.mark.parametrize(
    ("scores", "y", "more", "named"),
    [
        (GOOD * 7, LABELS, {}, "scores"),
        (np.where(GOOD == 0.1, np.nan, GOOD), LABELS, {}, "scores"),
        (GOOD, np.array([0, 1]), {}, "y"),
        (GOOD, np.array([1, 1, 1]), {}, "y"),
        (GOOD, np.array([0, 1, 2]), {}, "y"),
        (GOOD, np.array(["a", "b", None], dtype=object), {}, "y"),
        (GOOD, LABELS, {"positive": 7}, "positive"),
        (GOOD, LABELS, {"sample_weight": np.array([0.0, 1.0, 1.0])}, "sample_weight"),
        (GOOD, LABELS, {"sample_weight": np.array([-1.0, 1.0, 1.0])}, "sample_weight"),
        (GOOD, LABELS, {"sample_weight": np.array([np.nan, 1.0, 1.0])}, "sample_weight"),
        (GOOD, LABELS, {"sample_weight": np.array([1.0])}, "sample_weight"),
        (GOOD[:, 0], LABELS, {}, "scores"),
        (np.full((3, 2), 0.5), LABELS, {}, "scores"),
        (GOOD.astype(str), LABELS, {"nu": 2}, "nu"),
    ],
)
def test_invalid_input_raises_the_same_error_as_in_memory(scores, y, more, named):
    named = rf"rank_margin_weights.*\b{named}\b"
    with pytest.raises(ValueError, match=r"\S") as inside:
        fuse.rank_margin_weights(scores, y, **more)
    block = in_blocks(3, 3)
    more = {name: block(one) if name == "sample_weight" else one for name, one in more.items()}
    with pytest.raises(type(inside.value), match=named):
        scale.rank_margin_weights(block(scores), block(y), **more)


def test_collections_that_do_not_fit():
    block = in_blocks(3, 2)
    with pytest.raises(TypeError, match=r"\bscores\b.*Dask"):
        scale.rank_margin_weights(GOOD, block(LABELS))
    parts = dd.from_pandas(pd.DataFrame(GOOD), npartitions=2)
    unknown = parts.to_dask_array()
    with pytest.raises(ValueError, match=r"rank_margin_weights.*\by\b.*ndarray"):
        scale.rank_margin_weights(unknown, LABELS)
    labels = dd.from_pandas(pd.Series(LABELS), npartitions=2).to_dask_array()
    found = scale.rank_margin_weights(unknown, labels)
    assert found.margin == pytest.approx(fuse.rank_margin_weights(GOOD, LABELS).margin)
    text = da.from_array(np.full((3, 2), "x", dtype=object), chunks=(2, 2))
    with pytest.raises(ValueError, match=r"\bscores\b.*'x'"):
        scale.rank_margin_weights(text, block(LABELS))
