"""Scores of Dask collections: those of the same rows in memory, asked for block by block."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")

import dask  # noqa: E402

from margrave import (  # noqa: E402
    Scores,
    fuse,
    scale,
)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def drawn(n_classes=2):
    X, y = make_classification(
        120, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0
    )
    kinds = GaussianNB(), LogisticRegression(), RidgeClassifier()
    return X, y, [one.fit(X[:60], y[:60]) for one in kinds]


def same(lazy, inside):
    assert lazy.classes.tolist() == inside.classes.tolist()
    assert (lazy.members, lazy.kinds, lazy.features) == (
        inside.members,
        inside.kinds,
        inside.features,
    )
    assert lazy.scales == pytest.approx(inside.scales)
    for name in ("codes", "values"):
        told, here = getattr(lazy, name), getattr(inside, name)
        assert (told is None) == (here is None)
        if here is not None:
            assert isinstance(told, da.Array)
            assert (told.dtype, told.ndim) == (here.dtype, here.ndim)
            assert told.compute() == pytest.approx(here, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("ask", ["both", "labels", "values"])
def test_members_are_asked_block_by_block(n_classes, ask):
    X, _, members = drawn(n_classes)
    inside = Scores.of(members, X, ask=ask)
    lazy = Scores.of(members, da.from_array(X, chunks=(50, 2)), ask=ask)
    if ask == "labels":  # scales are those of values
        assert np.array_equal(lazy.codes.compute(), inside.codes)
        return
    same(lazy, inside)
    assert len(lazy) == 120
    new = Scores.of(members, da.from_array(2 * X, chunks=(50, 5)), like=lazy, ask=ask)
    same(new, Scores.of(members, 2 * X, like=inside, ask=ask))


def test_what_can_be_done_with_them():
    X, _, members = drawn(3)
    inside, lazy = Scores.of(members, X), Scores.of(members, da.from_array(X, chunks=(50, 5)))
    assert repr(lazy) == repr(inside)
    assert np.array_equal(lazy.labels.compute(), inside.labels)
    assert lazy.labels.dtype == inside.labels.dtype
    assert lazy.toward(1).compute() == pytest.approx(inside.toward(1))
    assert lazy.raw().compute() == pytest.approx(inside.raw())
    names = list(inside.members[:2])
    same(lazy.pick(names), inside.pick(names))
    assert lazy.pick(names).proba().compute() == pytest.approx(inside.pick(names).proba())
    for index in (slice(20, 90), [3, 50, 99], np.arange(120) % 3 == 0, 7):
        same(lazy.rows(index), inside.rows(index))


def test_data_frames_of_unknown_sizes_with_empty_parts():
    X, _, _ = drawn()
    table = pd.DataFrame(X, columns=list("abcde"))
    y = (X[:, 0] > 0).astype(int)
    members = [GaussianNB().fit(table, y), RidgeClassifier().fit(table[["b", "c"]], y)]
    parts = dd.from_pandas(table.assign(row=np.arange(120)), npartitions=4)
    some = parts[parts["row"] >= 50][list("abcde")]
    lazy = Scores.of(members, some)
    same(lazy, Scores.of(members, table[50:]))
    assert "?" in repr(lazy)


@pytest.mark.parametrize("kind", ["proba", "decision", "scores"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_from_arrays(kind, n_classes):
    rng = np.random.default_rng(0)
    values = rng.random((40, 3) if n_classes == 2 else (40, 3, 3))
    if kind == "proba" and n_classes == 3:
        values /= values.sum(axis=2, keepdims=True)
    if kind == "decision":
        values = 5 * values - 2
    lazy = Scores.from_arrays(**{kind: da.from_array(values, chunks=15)})
    inside = Scores.from_arrays(**{kind: values})
    same(lazy, inside)
    more = {kind: da.from_array(values / 2, chunks=15)} if kind == "decision" else None
    if more:
        new = Scores.from_arrays(**more, like=lazy)
        same(new, Scores.from_arrays(**{kind: values / 2}, like=inside))


def test_labels_with_rejects_from_arrays():
    told = np.array([["a", "b"], ["?", "a"], ["b", "b"], ["a", "a"]])
    lazy = Scores.from_arrays(labels=da.from_array(told, chunks=(1, 2)), reject_label="?")
    inside = Scores.from_arrays(labels=told, reject_label="?")
    same(lazy, inside)
    assert np.array_equal(lazy.labels.compute(), inside.labels)
    values = np.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6], [0.2, 0.9]])
    both = {"classes": ["a", "b"], "reject_label": "?"}
    lazy = Scores.from_arrays(
        labels=da.from_array(told, chunks=(2, 2)), scores=da.from_array(values, chunks=3), **both
    )
    same(lazy, Scores.from_arrays(labels=told, scores=values, **both))


@pytest.mark.parametrize(
    "given",
    [
        {"proba": np.array([[0.1, 0.2], [0.3, 1.4]])},
        {"scores": np.array([[0.1, np.nan], [0.3, 0.4]])},
        {"proba": np.full((4, 2, 3), 0.5)},
        {"proba": np.array([[0.1, 0.9], [0.3, 0.7], [0.2, 0.8], [0.6, 0.4]])},
        {"proba": np.array([[0.1, 0.9], [0.3, 0.7], [0.2, 0.8], [0.5, 0.5], [0.6, 0.4]])},
        {"labels": np.array([[0], [1], [1]]), "proba": np.array([[0.1, 0.2], [0.3, 0.4]] * 2)[:3]},
        {"labels": np.zeros((4, 3), dtype=int), "scores": np.zeros((4, 2))},
        {"labels": np.zeros((4, 1), dtype=int), "scores": np.zeros((4, 2, 3))},
        {"labels": np.zeros((3, 2), dtype=int), "scores": np.zeros((4, 2))},
        {"labels": np.zeros(4, dtype=int), "scores": np.zeros((4, 1))},
        {"labels": np.zeros(4, dtype=int)},
        {"proba": np.full(4, 0.5)},
        {"scores": np.zeros((4, 2, 3)), "classes": ["a", "b"]},
        {"labels": np.array([["a"], ["b"]]), "classes": ["a", "c"]},
        {"scores": np.zeros((4, 2)), "members": ["one"]},
    ],
)
def test_bad_arrays_are_told_as_in_memory(given):
    with pytest.raises(ValueError, match=r"\S") as inside:
        Scores.from_arrays(**given)
    lazy = {
        name: da.from_array(one, chunks=2) if isinstance(one, np.ndarray) else one
        for name, one in given.items()
    }
    with pytest.raises(ValueError, match=r"\S") as found:
        Scores.from_arrays(**lazy)
    assert str(found.value) == str(inside.value)


def test_one_row_a_block_is_enough_to_see_one_members_answer():
    proba = np.array([[0.1, 0.9], [0.3, 0.7], [0.2, 0.8]])
    with pytest.raises(ValueError, match=r"\bproba\b"):
        Scores.from_arrays(proba=da.from_array(proba, chunks=(1, 2)))
    equal = np.full((3, 2), 0.5)
    same(
        Scores.from_arrays(proba=da.from_array(equal, chunks=(1, 2))),
        Scores.from_arrays(proba=equal),
    )


def test_what_is_in_memory_beside_blocks():
    values, labels = np.array([[0.1, 0.2], [0.3, -0.4], [0.5, 0.6]]), np.array([[0, 1]] * 3)
    lazy = Scores.from_arrays(labels=labels, scores=da.from_array(values, chunks=2))
    same(lazy, Scores.from_arrays(labels=labels, scores=values))
    with pytest.raises(TypeError, match=r"\blist\b"):
        Scores.from_arrays(labels=labels.tolist(), scores=da.from_array(values, chunks=2))
    with pytest.raises(TypeError, match=r"\blist\b"):
        Scores.from_arrays(labels=da.from_array(labels, chunks=2), scores=values.tolist())
    with pytest.raises(TypeError, match=r"\bndarray\b"):
        Scores.from_arrays(labels=da.from_array(labels, chunks=2), scores=values)


def test_data_frames_of_values_and_labels():
    rng = np.random.default_rng(0)
    values = pd.DataFrame(rng.random((20, 3)), columns=list("abc"))
    labels = (values > 0.4).astype(int)
    told = [dd.from_pandas(one, npartitions=3) for one in (labels, values)]
    lazy = Scores.from_arrays(labels=told[0], proba=told[1])
    same(lazy, Scores.from_arrays(labels=labels, proba=values))
    with pytest.raises(ValueError, match=r"\(nan, 3\).*\(nan, 2\)"):
        Scores.from_arrays(labels=told[0][["a", "b"]], proba=told[1])


def test_blocks_that_are_not_as_wide_as_told():
    wide = da.from_array(np.zeros((4, 3)), chunks=(2, 3))
    for width in (2, 4):
        wrong = wide.map_blocks(
            lambda part, width=width: np.zeros((len(part), width)), meta=np.empty((0, 0))
        )
        lazy = Scores.from_arrays(scores=wrong)
        with pytest.raises(ValueError, match=r"\b3\b.*\bmembers\b"):
            lazy.codes.compute()


@pytest.mark.parametrize("nu", [0.0, 0.2])
def test_they_can_be_weighted(nu):
    X, y, members = drawn()
    names = np.where(y == 1, "yes", "no")
    members = [type(one)().fit(X[:60], names[:60]) for one in members]
    lazy = Scores.of(members, da.from_array(X, chunks=(50, 5)), ask="values")
    for positive in (None, "no"):
        scores = lazy.toward("yes" if positive is None else positive)
        labels = da.from_array(names, chunks=50)
        found = scale.rank_margin_weights(scores, labels, nu, positive=positive)
        inside = fuse.rank_margin_weights(
            Scores.of(members, X, ask="values"), names, nu, positive=positive
        )
        assert found.margin == pytest.approx(inside.margin, abs=1e-4)
