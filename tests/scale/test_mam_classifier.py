"""The classifier on Dask collections: arrays in memory are the referee."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
dask = pytest.importorskip("dask", reason="the extra 'dask' is not installed")

from margrave import scale  # noqa: E402
from margrave.mam import MAMClassifier  # noqa: E402
from margrave.mam._parameters import scale_gamma  # noqa: E402
from margrave.scale import _mam_blocks  # noqa: E402
from margrave.scale._blocks import Blocks  # noqa: E402
from margrave.scale._mam_blocks import (  # noqa: E402
    Moments,
    merge_reservoirs,
    reservoir_size,
    sample_block,
)

NAMES = list("abcd")
CHUNKS = {"one": (300, 4), "even": (50, 4), "odd": (71, 3), "small": (9, 4)}
LINEAR = {"kernel": "linear"}
FEATURES = {"n_components": 30, "random_state": 0, "gamma": 0.2}


@pytest.fixture(autouse=True)
def here() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def samples(n=300, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) + 3
    scores = X[:, 0] + rng.normal(size=n)
    y = np.digitize(scores, np.quantile(scores, np.arange(1, n_classes) / n_classes))
    return X, y, rng.random(n) * (rng.random(n) > 0.2)


def frame(X, y, weights=None, n=5):
    table = pd.DataFrame(X, columns=NAMES).assign(y=y, w=1.0 if weights is None else weights)
    return dd.from_pandas(table, npartitions=n, sort=False)


def same(found, known, rel):
    unit = np.abs(known.coef_).max()
    assert found.coef_ / unit == pytest.approx(known.coef_ / unit, rel=rel, abs=rel)
    assert found.threshold_ == pytest.approx(
        known.threshold_, rel=rel, abs=rel * np.abs(known.threshold_).max()
    )
    assert found.loo_decision_ == pytest.approx(known.loo_decision_, rel=1e-3, abs=20 * rel)
    assert found.loo_scores_ == pytest.approx(known.loo_scores_)
    assert found.lambda_ == pytest.approx(known.lambda_, rel=rel)
    assert found.average_margin_ == found.lambda_
    assert np.array_equal(found.classes_, known.classes_)
    assert found.n_seen_ == known.n_seen_
    assert found.n_features_in_ == known.n_features_in_
    assert found.gamma_ == (None if known.gamma_ is None else pytest.approx(known.gamma_))
    assert found.gammas_ == pytest.approx(known.gammas_)


@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=list(CHUNKS))
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", [LINEAR, FEATURES], ids=["linear", "features"])
def test_as_in_memory(chunks, n_classes, settings):
    X, y, weights = samples(n_classes=n_classes)
    known = MAMClassifier(**settings).fit(X, y, weights)
    rows = da.from_array(X, chunks=chunks)
    found = scale.fit(MAMClassifier(**settings), rows, da.from_array(y, chunks=80), weights)
    same(found, known, 1e-10 if settings is LINEAR else 1e-5)
    assert (found.predict(X) == known.predict(X)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("settings", [LINEAR, FEATURES], ids=["linear", "features"])
def test_data_frames(dtype, settings):
    X, y, weights = samples()
    labels = np.array(["no", "yes"])[y]
    X = X.astype(dtype)
    table = frame(X, labels, weights)
    known = MAMClassifier(**settings).fit(pd.DataFrame(X, columns=NAMES), labels, weights)
    found = scale.fit(MAMClassifier(**settings), table[NAMES], table["y"], table["w"])
    same(found, known, 1e-10 if settings is LINEAR else 1e-5)
    assert found.feature_names_in_.tolist() == NAMES
    assert (
        scale.predict(found, table[NAMES]).compute().tolist()
        == known.predict(pd.DataFrame(X, columns=NAMES)).tolist()
    )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", ["loo", "scale"])
def test_widths_are_those_of_the_whole(kernel, gamma):
    X, y, weights = samples(400)
    settings = {"kernel": kernel, "gamma": gamma, "n_components": 40, "random_state": 3}
    known = MAMClassifier(**settings).fit(X, y, weights)
    found = scale.fit(MAMClassifier(**settings), da.from_array(X, chunks=(90, 4)), y, weights)
    same(found, known, 1e-5)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 1: 0.5}, {2: 0.0}])
@pytest.mark.parametrize("threshold", ["accuracy", "balanced", None])
def test_classes_with_weights(class_weight, threshold):
    X, y, weights = samples(n_classes=3)
    for settings in (LINEAR, FEATURES):
        model = MAMClassifier(**settings, class_weight=class_weight, threshold=threshold)
        known = clone(model).fit(X, y, weights)
        rows = da.from_array(X, chunks=(40, 4))
        found = scale.fit(model, rows, y, da.from_array(weights, chunks=60))
        assert found is model
        same(found, known, 1e-10 if settings is LINEAR else 1e-5)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_weights_and_numbers_near_the_ends_of_floats(unit):
    X, y, weights = samples()
    weights = weights * np.where(np.arange(300) < 150, 1e-3, 1.0) * unit
    known = MAMClassifier("linear").fit(X, y, weights)
    found = scale.fit(MAMClassifier("linear"), da.from_array(X, chunks=(50, 4)), y, weights)
    same(found, known, 1e-10)


@pytest.mark.parametrize(
    ("settings", "n"), [(LINEAR, 1), (FEATURES, 2)], ids=["linear", "features"]
)
def test_passes_over_the_rows(settings, n, monkeypatch):
    passes = []
    reduce = Blocks.reduce

    def counted(self, *arguments, **more):
        passes.append(1)
        return reduce(self, *arguments, **more)

    monkeypatch.setattr(Blocks, "reduce", counted)
    X, y, _ = samples()
    scale.fit(MAMClassifier(**{**settings, "gamma": "loo"}), da.from_array(X, chunks=(50, 4)), y)
    assert len(passes) == n


def test_of_many_rows_some_are_kept(monkeypatch):
    monkeypatch.setattr(_mam_blocks, "LARGEST_RESERVOIR", 200)
    X, y, weights = samples(5_000)
    model = MAMClassifier("linear", random_state=0)
    found = scale.fit(model, da.from_array(X, chunks=(170, 4)), y, weights)
    assert found.coef_ == pytest.approx(MAMClassifier("linear").fit(X, y, weights).coef_, rel=1e-10)
    kept = found._totals.kept
    assert found.loo_decision_.shape == (200, 1)
    places = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in kept.X])
    assert (np.diff(places) > 0).all()
    assert (weights[places] > 0).all()
    assert (y[places] == kept.labels).all()
    assert abs(np.mean(places) - 2_500) < 500
    once = MAMClassifier("linear", random_state=0)
    scale.fit(once, da.from_array(X, chunks=(170, 4)), y, weights)
    assert (once.loo_decision_ == found.loo_decision_).all()


@pytest.mark.parametrize("settings", [LINEAR, FEATURES], ids=["linear", "features"])
def test_more_samples_can_follow(settings):
    X, y, _ = samples()
    found = scale.fit(MAMClassifier(**settings), da.from_array(X[:200], chunks=(50, 4)), y[:200])
    found.partial_fit(X[200:], y[200:])
    centred = MAMClassifier(**settings).fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    same(found, centred, 1e-10 if settings is LINEAR else 1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", [LINEAR, FEATURES, {"gamma": 0.2}])
def test_predictions_are_lazy(n_classes, settings):
    X, y, _ = samples(n_classes=n_classes)
    model = MAMClassifier(**settings).fit(X, y)
    scores = scale.predict(model, da.from_array(X, chunks=(70, 2)), "decision_function")
    labels = scale.predict(model, da.from_array(X, chunks=(70, 2)))
    assert isinstance(scores, da.Array)
    assert scores.dtype == np.float64
    assert scores.shape == ((300,) if n_classes == 2 else (300, 3))
    assert labels.dtype == y.dtype
    assert scores.compute() == pytest.approx(model.decision_function(X), rel=1e-6, abs=1e-6)
    assert (labels.compute() == model.predict(X)).all()
    assert isinstance(model.predict(X), np.ndarray)


def test_predictions_for_data_frames_with_empty_parts():
    X, y, _ = samples(n_classes=3)
    table = frame(X, y)
    some = table[table["a"] > 4.5]
    model = scale.fit(MAMClassifier("linear"), table[NAMES], table["y"])
    scores = scale.predict(model, some[NAMES], "decision_function")
    assert scores.dtype == np.float64
    here = X[:, 0] > 4.5
    assert scores.compute() == pytest.approx(
        model.decision_function(pd.DataFrame(X[here], columns=NAMES))
    )
    none = table[table["a"] > 100][NAMES]
    assert scale.predict(model, none).compute().shape == (0,)


def test_names_in_another_order():
    X, y, _ = samples()
    table = frame(X, y)
    model = scale.fit(MAMClassifier("linear"), table[NAMES], table["y"])
    with pytest.raises(ValueError, match="feature names"):
        scale.predict(model, table[NAMES[::-1]]).compute()
    with pytest.raises(ValueError, match="X has 3 features"):
        scale.predict(MAMClassifier("linear").fit(X, y), da.ones((3, 3))).compute()
    with pytest.warns(UserWarning, match="feature names"):
        predictions = scale.predict(model, da.from_array(X, chunks=(70, 4))).compute()
    assert len(predictions) == 300


def test_bounds_from_the_rows_that_were_kept():
    X, y, _ = samples()
    known = MAMClassifier(**FEATURES).fit(X, y)
    found = scale.fit(MAMClassifier(**FEATURES), da.from_array(X, chunks=(70, 4)), y)
    assert found.margin_bound() == pytest.approx(known.margin_bound(), rel=1e-4)
    assert found.rademacher_bound() == pytest.approx(known.rademacher_bound())
    assert found.certainty(X).bound == pytest.approx(known.certainty(X).bound, rel=1e-4)


def test_parts_without_rows_and_of_one_class():
    X, y, weights = samples()
    order = np.argsort(y, kind="stable")
    X, y, weights = X[order], y[order], weights[order]
    table = frame(X, y, weights, n=7)
    some = table[(table["a"] > 3) & ((table["b"] > 3) | (table["y"] > 0))]
    here = (X[:, 0] > 3) & ((X[:, 1] > 3) | (y > 0))
    known = MAMClassifier("linear").fit(X[here], y[here], weights[here])
    found = scale.fit(MAMClassifier("linear"), some[NAMES], some["y"], some["w"])
    same(found, known, 1e-10)
    arrays = (some[NAMES].to_dask_array(), some["y"].to_dask_array(), some["w"].to_dask_array())
    same(scale.fit(MAMClassifier("linear"), *arrays), known, 1e-10)
    late = frame(X, y)
    later = late[late["y"] == 1]
    both = dd.concat([later, late[late["y"] == 0]])
    again = scale.fit(MAMClassifier("linear"), both[NAMES], both["y"])
    assert again.coef_ == pytest.approx(MAMClassifier("linear").fit(X, y).coef_)


def test_a_block_without_weight():
    X, y, weights = samples()
    weights[50:150] = 0
    for settings in (LINEAR, FEATURES):
        known = MAMClassifier(**settings).fit(X, y, weights)
        found = scale.fit(MAMClassifier(**settings), da.from_array(X, chunks=(50, 4)), y, weights)
        same(found, known, 1e-10 if settings is LINEAR else 1e-5)


@pytest.mark.parametrize(
    "labels", [[True, False], [1.0, 2.0], [-5, 7], [0, 10**9], ["x", "long"], [3, 200]]
)
def test_labels_of_any_kind(labels):
    X, y, _ = samples()
    named = np.array(labels)[y]
    known = MAMClassifier("linear").fit(X, named)
    found = scale.fit(MAMClassifier("linear"), da.from_array(X, chunks=(50, 4)), named)
    same(found, known, 1e-10)
    assert found.classes_.dtype == known.classes_.dtype
    if labels == [3, 200]:
        small = named.astype(np.uint8)
        found = scale.fit(MAMClassifier("linear"), da.from_array(X), small)
        assert found.classes_.tolist() == labels


def refused(match, X, y, weights=None, error=ValueError, **settings):
    with pytest.raises(error, match=match):
        scale.fit(MAMClassifier(**{**LINEAR, **settings}), X, y, weights)


@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_number_that_is_none_in_one_block(bad, name, dtype):
    X, y, weights = samples()
    X = X.astype(dtype)
    X[123, 2] = bad
    weights[123] = 0
    for settings in (LINEAR, FEATURES):
        for s in (None, weights):
            refused(rf"\bX\b.*{name}", da.from_array(X, chunks=(50, 4)), y, s, **settings)
    model = MAMClassifier("linear").fit(*samples()[:2])
    with pytest.raises(ValueError, match=rf"\bX\b.*{name}"):
        scale.predict(model, da.from_array(X, chunks=(50, 4))).compute()


def test_what_cannot_be_learned_from():
    X, y, weights = samples()
    rows = da.from_array(X, chunks=(50, 4))
    refused(r"\by\b.*\b1\b", rows, y * 0 + 1)
    refused(r"\by\b.*\b0\b", rows[:1], y[:1])
    refused(r"\bfit\b.*sample_weight", rows, y, 1.0 * y)
    refused(r"\bfit\b.*class_weight", rows, y, class_weight={0: 0.0, 1: 1.0})
    refused("sample_weight", rows, y, 0 * weights)
    refused("sample_weight", rows, y, np.where(np.arange(300) == 70, -1, weights))
    refused("sample_weight", rows, y, np.where(np.arange(300) == 70, np.nan, weights))
    refused(r"\by\b.*\b300\b.*\b299\b", rows, y[1:])
    refused(r"\bX\b.*\bDask\b", X, da.from_array(y), error=TypeError)
    refused("continuous", rows, y + 0.5)
    refused(r"\by\b.*NaN", rows, np.where(np.arange(300) == 70, np.nan, y))
    refused(r"MAMClassifier.*\by\b", rows, None)
    refused(r"\bX\b", rows[:, 0], y)
    refused(r"class_weight.*\b5\b", rows, y, class_weight={5: 1.0})
    refused("class_weight.*'1'", rows, y, class_weight={0: "1"})
    refused(r"\bkernel\b", rows * 1e300, y)
    both = np.array(["a", 1] * 150, dtype=object)
    refused(r"\bLabels\b", rows, da.from_array(both, chunks=50))
    mixed = dd.concat([frame(X, y)["y"], frame(X, y.astype(str))["y"]])
    refused(r"\bLabels\b", dd.concat([frame(X, y)[NAMES]] * 2), mixed.astype(object))


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_kernels_keep_all_samples(kernel):
    X, y, _ = samples()
    refused(rf"\bkernel\b.*'{kernel}'", da.from_array(X), y, kernel=kernel)


@pytest.mark.parametrize(("shift", "unit"), [(0, 1), (1e8, 1), (0, 1e200), (0, 1e-200), (5, 0)])
def test_spread_of_blocks(shift, unit):
    X, _, weights = samples()
    X = X * unit + shift
    for s in (weights, np.ones(300)):
        parts = [Moments.of(X[at : at + 70], s[at : at + 70], "who") for at in range(0, 300, 70)]
        whole = Moments.merged([Moments.merged(parts[:2], [0, 0]), *parts[2:]], [0] * 4)
        for kernel in ("rbf", "laplacian"):
            known = scale_gamma(X[s > 0], kernel, s[s > 0])
            assert whole.scale_gamma(kernel) == pytest.approx(known, rel=1e-6)
        assert whole.centre == pytest.approx(X[s > 0].mean(axis=0))


def test_rows_are_kept_alike_however_blocks_are_put_together():
    X, y, weights = samples(1_000)
    parts = [
        sample_block(X[at : at + 90], y[at : at + 90], weights[at : at + 90], (7, at), 60)
        for at in range(0, 1_000, 90)
    ]
    known = merge_reservoirs(parts, 60)
    assert len(known.keys) == 60
    pairs = [merge_reservoirs(parts[at : at + 2], 60) for at in range(0, len(parts), 2)]
    found = merge_reservoirs(pairs, 60)
    assert (found.X == known.X).all()
    assert (found.keys == known.keys).all()
    assert known.keys.min() >= np.sort(np.concatenate([one.keys for one in parts]))[-60]


def test_fewer_wide_rows_are_kept():
    assert reservoir_size(1) == reservoir_size(400) == 20_000
    assert reservoir_size(1_000) == 8_000
    assert reservoir_size(10**6) == 1_000
