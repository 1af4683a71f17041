"""Blocks of rows: split at the same rows, merged in a fixed order; errors name what is wrong."""

import numpy as np
import pandas as pd
import pytest

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")

from dask import delayed  # noqa: E402

from margrave.scale import sample  # noqa: E402
from margrave.scale._blocks import Blocks, is_dask  # noqa: E402


def rows_of(X, y, sample_weight=None):
    return [
        (np.asarray(X), np.asarray(y), None if sample_weight is None else np.asarray(sample_weight))
    ]


def joined(parts):
    return [one for part in parts for one in part]


def test_what_is_dask():
    assert is_dask(None, da.ones(3))
    assert is_dask(dd.from_pandas(pd.DataFrame({"a": [1]}), npartitions=1))
    assert not is_dask(np.ones(3), None, [1], pd.DataFrame({"a": [1]}), delayed(3))


@pytest.mark.parametrize("n_blocks", [1, 2, 8, 9, 70])
def test_blocks_come_in_order(n_blocks):
    X = da.arange(3 * n_blocks, chunks=3).reshape(-1, 1)
    found = Blocks.of("who", X, y=X[:, 0]).reduce(rows_of, joined)
    assert np.array_equal(np.concatenate([one[0][:, 0] for one in found]), np.arange(3 * n_blocks))


def test_columns_in_several_chunks_are_put_together():
    X = np.arange(60.0).reshape(10, 6)
    blocks = Blocks.of("who", da.from_array(X, chunks=(4, 2)), y=np.arange(10))
    assert len(blocks) == 3
    assert blocks.n_columns == 6
    found = blocks.reduce(rows_of, joined)
    assert np.array_equal(np.concatenate([one[0] for one in found]), X)
    assert np.array_equal(np.concatenate([one[1] for one in found]), np.arange(10))


def test_other_chunks_are_split_again():
    X, y = da.ones((10, 2), chunks=(4, 2)), da.arange(10, chunks=3)
    found = Blocks.of("who", X, y=y).reduce(rows_of, joined)
    assert [len(one[1]) for one in found] == [4, 4, 2]
    assert np.array_equal(np.concatenate([one[1] for one in found]), np.arange(10))


def test_data_frames_keep_their_names_and_blocks_without_rows_are_left_out():
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2, 3, 4], "b": [1, 0, 1, 0]}), npartitions=4)
    some = frame[frame["a"] > 2]
    blocks = Blocks.of("who", some[["a"]], y=some["b"])
    assert blocks.columns == ("a",)
    found = blocks.reduce(rows_of, joined)
    assert [one[1].tolist() for one in found] == [[1], [0]]


def test_no_rows_at_all():
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}), npartitions=2)
    with pytest.raises(ValueError, match=r"\bwho\b.*\brow"):
        Blocks.of("who", frame[frame["a"] > 5]).reduce(lambda X: [1], joined)


def test_unknown_chunk_sizes_are_matched_block_by_block():
    frame = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10)})
    parts = dd.from_pandas(frame, npartitions=3)
    blocks = Blocks.of("who", parts[["a"]].to_dask_array(), y=parts["b"].to_dask_array())
    found = blocks.reduce(rows_of, joined)
    assert np.array_equal(np.concatenate([one[1] for one in found]), np.arange(10))


def refused(named, X, error=ValueError, **beside):
    with pytest.raises(error, match=r"\bwho\b.*" + named):
        Blocks.of("who", X, **beside).reduce(rows_of, joined)


def test_what_does_not_fit_is_refused():
    X = da.ones((10, 2), chunks=(5, 2))
    unknown = dd.from_pandas(pd.DataFrame({"a": np.arange(10.0)}), npartitions=2).to_dask_array()
    refused(r"\by\b.*\b10\b.*\b9\b", X, y=da.ones(9, chunks=5))
    refused(r"\by\b.*\b10\b.*\b9\b", X, y=np.ones(9))
    refused(r"\by\b.*ndarray.*compute_chunk_sizes", unknown, y=np.ones(10))
    refused(r"\by\b.*\b2\b.*\b5\b", unknown, y=da.ones(10, chunks=2))
    refused(r"\b0\b.*\b5\b.*\b4\b", unknown, y=da.ones(9, chunks=(4, 5)), sample_weight=None)
    refused(r"\bX\b.*ndarray", np.ones((3, 2)), TypeError, y=da.ones(3))
    refused(r"\by\b.*None", X, y=None)


def test_a_data_frame_beside_an_array_in_memory_is_refused_with_advice():
    frame = dd.from_pandas(pd.DataFrame({"a": np.arange(10.0)}), npartitions=2)
    refused(r"\by\b.*Series.*to_dask_array", frame, y=pd.Series(np.ones(10)))
    assert len(Blocks.of("who", frame.to_dask_array(lengths=True), y=pd.Series(np.ones(10)))) == 2


def test_labels_are_one_column():
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": [0, 1]}), npartitions=1)
    refused(r"\by\b.*\b2\b", frame[["a"]], y=frame[["b"]])


@pytest.mark.parametrize("mixed", ["shuffle", "merge", "sort", "array"])
def test_rows_that_may_change_places_are_refused(mixed):
    frame = pd.DataFrame({"k": np.arange(50) % 7, "a": np.arange(50.0)})
    parts = dd.from_pandas(frame, npartitions=3)
    made = {
        "shuffle": lambda: parts.shuffle("k"),
        "merge": lambda: parts.merge(parts, on="k", suffixes=("", "_")),
        "sort": lambda: parts.sort_values("k"),
        "array": lambda: parts.shuffle("k").to_dask_array(),
    }[mixed]()
    with pytest.raises(ValueError, match=r"\bwho\b.*persist"):
        Blocks.of("who", made)
    kept = made.persist()
    if mixed != "array":
        found = Blocks.of("who", kept[["k"]], y=kept["a"]).reduce(rows_of, joined)
        assert all((X[:, 0] == y % 7).all() for X, y, _ in found)


def test_sample_is_uniform_and_repeatable():
    X = da.arange(1_000, chunks=70).reshape(-1, 1)
    draws = [sample(X, X[:, 0], n=100, random_state=seed) for seed in range(40)]
    again = sample(X, X[:, 0], n=100, random_state=0)
    assert np.array_equal(draws[0][0], again[0])
    counts = np.zeros(1_000)
    for rows, labels in draws:
        assert len(rows) == 100
        assert np.array_equal(rows[:, 0], labels)
        assert (np.diff(labels) > 0).all()
        counts[labels] += 1
    # 4,000 draws over 1,000 rows: of the first half half of them, and nobody always.
    assert abs(counts[:500].sum() - 2_000) < 5 * np.sqrt(1_000)
    assert counts.max() < 20
    assert len(sample(X, n=5_000)[0]) == 1_000


def test_sample_of_a_data_frame():
    frame = pd.DataFrame({"a": np.arange(100.0), "b": list("xy") * 50})
    (rows,) = sample(dd.from_pandas(frame, npartitions=7), n=30)
    assert list(rows.columns) == ["a", "b"]
    assert len(rows) == 30
    pd.testing.assert_frame_equal(rows, frame.loc[rows.index], check_dtype=False)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "all"])
def test_sample_refuses(n):
    with pytest.raises(ValueError, match=rf"\bn\b.*{n!r}"):
        sample(da.ones((3, 1)), n=n)


@pytest.mark.parametrize("seed", [None, -1, 1.5])
def test_sample_refuses_a_seed(seed):
    with pytest.raises(ValueError, match=rf"\brandom_state\b.*{seed!r}"):
        sample(da.ones((3, 1)), random_state=seed)


def test_sample_refuses_a_collection_that_is_none():
    with pytest.raises(ValueError, match=r"\b2\b.*None"):
        sample(da.ones((3, 1)), None)
