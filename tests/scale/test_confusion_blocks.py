"""The confusion matrix of Dask collections has the counts of the one in memory."""

import numpy as np
import pandas as pd
import pytest

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")

from margrave import Confusion  # noqa: E402
from margrave.scale import confusion  # noqa: E402


def labels(n=997, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.choice(["ham", "spam", "news"], n, p=[0.7, 0.25, 0.05])
    return true, np.where(rng.random(n) < 0.8, true, rng.choice(["ham", "spam", "?"], n))


@pytest.mark.parametrize("chunks", [1000, 100, 7])
def test_as_in_memory(chunks):
    true, predicted = labels()
    whole = Confusion.of(true, predicted, reject_label="?", positive="spam")
    y, p = da.from_array(true, chunks=chunks), da.from_array(predicted, chunks=chunks)
    assert confusion(y, p, reject_label="?", positive="spam") == whole
    assert confusion(true, p, reject_label="?", positive="spam") == whole
    assert confusion(y, predicted, reject_label="?", positive="spam") == whole
    order = ["spam", "news", "ham"]
    assert confusion(y, p, classes=order, reject_label="?") == Confusion.of(
        true, predicted, classes=order, reject_label="?"
    )


@pytest.mark.parametrize("kind", [int, float, bool, np.int8])
def test_labels_keep_their_kind(kind):
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(0, 2, (2, 50)).astype(kind)
    found = confusion(da.from_array(true, chunks=9), da.from_array(predicted, chunks=9))
    assert found == Confusion.of(true, predicted)
    assert [type(label) for label in found.classes] == [
        type(label) for label in Confusion.of(true, predicted).classes
    ]


@pytest.mark.filterwarnings("ignore:Dask currently has limited support")
def test_data_frames_unknown_chunks_empty_blocks_and_blocks_of_one_class():
    true, predicted = labels()
    frame = pd.DataFrame({"y": true, "p": predicted}).sort_values("y", ignore_index=True)
    parts = dd.from_pandas(frame, npartitions=9)
    some = parts[parts["y"] != "ham"]
    kept = frame[frame["y"] != "ham"]
    want = Confusion.of(kept["y"], kept["p"], classes=["ham", "news", "spam"], reject_label="?")
    settings = {"classes": ["ham", "news", "spam"], "reject_label": "?"}
    assert confusion(some["y"], some["p"], **settings) == want
    arrays = some["y"].to_dask_array(), some["p"].to_dask_array()
    assert confusion(*arrays, **settings) == want


def test_other_chunks_are_split_again():
    true, predicted = labels()
    found = confusion(
        da.from_array(true, chunks=100), da.from_array(predicted, chunks=33), reject_label="?"
    )
    assert found == Confusion.of(true, predicted, reject_label="?")


@pytest.mark.parametrize(
    ("true", "predicted", "settings"),
    [
        (["a", "b"], ["a", "c"], {}),
        (["a", "b"], ["a", "b"], {"reject_label": "a"}),
        ([0.0, np.nan], [0.0, 1.0], {}),
        ([0.0, 1.0], [0.0, np.nan], {}),
        (["a", "b", "c"], ["a", "b"], {}),
        ([["a", "b"]], [["a", "b"]], {}),
        ([], [], {}),
        ([1, 2], ["1", "2"], {}),
        ([True, False], [1, 0], {}),
    ],
)
def test_the_same_errors_as_in_memory(true, predicted, settings):
    true, predicted = np.array(true), np.array(predicted)
    try:
        known = Confusion.of(true, predicted, **settings)
    except ValueError:
        with pytest.raises(ValueError, match=r"y_true|y_pred|reject_label|scale\.confusion"):
            confusion(da.from_array(true), da.from_array(predicted), **settings)
    else:
        assert confusion(da.from_array(true), da.from_array(predicted), **settings) == known


@pytest.mark.parametrize("chunks", [30_000, 900])
def test_numbers_are_no_classes(chunks):
    rng = np.random.default_rng(0)
    true, predicted = rng.integers(0, 2, 30_000), rng.random(30_000)
    y, p = da.from_array(true, chunks=chunks), da.from_array(predicted, chunks=chunks)
    with pytest.raises(ValueError, match=r"scale\.confusion.*\by_pred\b.*10000"):
        confusion(y, p)


def test_many_classes_have_many_pairs():
    true, predicted = np.divmod(np.arange(150**2), 150)
    found = confusion(da.from_array(true, chunks=5000), da.from_array(predicted, chunks=5000))
    assert found == Confusion.of(true, predicted)


def test_arrays_in_memory_are_for_confusion_of():
    with pytest.raises(TypeError, match=r"\by_true\b.*\by_pred\b.*ndarray"):
        confusion(np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(ValueError, match=r"\by_pred\b.*\by_true\b.*\b3\b.*\b2\b"):
        confusion(da.from_array([0, 1, 1]), np.array([0, 1]))


def test_missing_texts():
    frame = dd.from_pandas(pd.DataFrame({"y": ["a", None, "b"], "p": ["a", "b", "b"]}))
    with pytest.raises(ValueError, match=r"\by_true\b.*NaN"):
        confusion(frame["y"], frame["p"])


def test_blocks_of_unknown_sizes_that_differ():
    frame = dd.from_pandas(pd.DataFrame({"y": [0, 1] * 10}), npartitions=2)
    other = frame[frame["y"] > 0]
    with pytest.raises(ValueError, match=r"scale\.confusion.* [01] "):
        confusion(frame["y"], other["y"])
