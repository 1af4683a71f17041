"""Random features for the ranker: refits without each sample, its kernel, and degenerate data."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from margrave.mam import MAMRanker, _ranker, rank_transform
from margrave.mam._features import RandomFeatures
from margrave.mam._ranker import RankedSamples, feature_leave_one_out, kendall, rows_for_widths


def samples(n=60, levels=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=n) / 3
    if levels:
        y = np.digitize(y, np.quantile(y, np.arange(1, levels) / levels))
    return X, y, rng.random(n) + 0.1


@pytest.mark.parametrize("levels", [0, 2, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("at_a_time", [3, 32])
def test_leave_one_out_is_that_of_refits(levels, weighted, at_a_time, monkeypatch):
    monkeypatch.setattr(_ranker, "_DIRECTIONS", at_a_time)
    X, y, weights = samples(25, levels)
    s = weights if weighted else np.ones(25)
    frequencies = RandomFeatures.draw("rbf", 0.3, X.mean(axis=0), 20, 0)
    phi = frequencies.transform(X).astype(np.float64)
    phi /= np.linalg.norm(phi, axis=1)[:, None]
    known = RankedSamples.of(y, weights if weighted else None)
    order = known.levels.order
    found = feature_leave_one_out(X[order], known, frequencies)
    for place, i in enumerate(order):
        others = np.arange(25) != i
        ranks = rank_transform(y[others], s[others])
        refit = (s[others] * ranks) @ phi[others]
        unit = 4.0**-known.exponent
        assert found[place] == pytest.approx(refit @ phi[i] * unit, rel=1e-4, abs=1e-4 * unit)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_many_features_rank_as_the_kernel_does(kernel):
    X, y, weights = samples(200, 0)
    Z = samples(100, 0, seed=1)[0]
    exact = MAMRanker(kernel, gamma=0.3).fit(X, y, weights)
    model = MAMRanker(kernel, gamma=0.3, n_components=8_000, random_state=0).fit(X, y, weights)
    assert model.coef_.shape == (8_000,)
    assert np.linalg.norm(model.coef_) == pytest.approx(1)
    assert model.predict(Z) == pytest.approx(exact.predict(Z), abs=0.05)
    assert model.lambda_ == pytest.approx(exact.lambda_, rel=0.05)
    assert model.loo_scores_ == pytest.approx(exact.loo_scores_, abs=0.05)
    assert model.gamma_ == 0.3
    assert model.rank_error_ == 0.0
    assert (model.ranks_ == exact.ranks_).all()
    assert not hasattr(model, "X_fit_")
    assert not hasattr(model, "loo_predictions_")


def test_the_width_by_leave_one_out():
    X, y, _ = samples(300, 0)
    model = MAMRanker(n_components=200, random_state=0).fit(X, y)
    assert len(model.gammas_) == len(model.loo_scores_) == 15
    assert model.gamma_ == model.gammas_[np.argmax(model.loo_scores_)]
    assert model.score(X, y) > 0.6
    one = MAMRanker(n_components=200, random_state=0, gamma=model.gamma_).fit(X, y)
    assert one.coef_ == pytest.approx(model.coef_)
    assert one.loo_scores_ == pytest.approx(model.loo_scores_.max())
    settings = MAMRanker(n_components=200, random_state=0, gammas=[0.1, 1.0]).fit(X, y)
    assert settings.gammas_.tolist() == [0.1, 1.0]


def test_seeds_and_threads():
    X, y, _ = samples(5_000, 0)
    first, again = (
        MAMRanker(n_components=20, random_state=5, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)
    )
    assert (first.coef_ == again.coef_).all()
    other = MAMRanker(n_components=20, random_state=6).fit(X, y)
    assert (first.coef_ != other.coef_).any()


def test_samples_without_weight_are_left_out():
    X, y, weights = samples()
    weights[::3] = 0
    there = weights > 0
    settings = {"n_components": 30, "random_state": 0}
    known = MAMRanker(**settings).fit(X[there], y[there], weights[there])
    found = MAMRanker(**settings).fit(X, y, weights)
    assert found.gamma_ == pytest.approx(known.gamma_)
    assert found.coef_ == pytest.approx(known.coef_, abs=1e-5)
    assert found.lambda_ == pytest.approx(known.lambda_, rel=1e-5)


def test_sparse_rows():
    X, y, _ = samples()
    X = X * (X > 0)
    settings = {"n_components": 2_000, "gamma": 0.3, "random_state": 0}
    known, found = (MAMRanker(**settings).fit(rows, y) for rows in (X, csr_array(X)))
    assert found.predict(csr_array(X)) == pytest.approx(known.predict(X), abs=1e-3)
    assert found.__sklearn_tags__().input_tags.sparse


def test_samples_that_are_all_the_same():
    model = MAMRanker(n_components=10, random_state=0).fit(np.ones((50, 2)), np.arange(50))
    assert model.lambda_ == 0
    assert (model.predict(np.ones((3, 2))) == 0).all()


@pytest.mark.parametrize(("dtype", "gamma"), [(np.float32, 1e-20), (np.float64, 1e-40)])
def test_widths_at_which_rounding_is_all_that_is_left(dtype, gamma):
    X, y, _ = samples()
    wide = MAMRanker(n_components=10, random_state=0, gamma=gamma).fit(X.astype(dtype), y)
    assert wide.lambda_ == 0
    assert wide.loo_scores_.tolist() == [0.0]


def test_a_fit_with_another_kernel_leaves_nothing_behind():
    X, y, _ = samples()
    model = MAMRanker(n_components=10, random_state=0).fit(X, y)
    model.set_params(n_components=None).fit(X, y)
    assert not hasattr(model, "coef_")
    assert model.predict(X) == pytest.approx(MAMRanker().fit(X, y).predict(X))
    model.set_params(kernel="linear").fit(X, y)
    assert model.predict(X) == pytest.approx(MAMRanker("linear").fit(X, y).predict(X))


def test_rows_that_choose_a_width():
    rng = np.random.RandomState(0)
    rare = np.zeros(20_000)
    rare[:20] = 1
    some = rows_for_widths(rare, rng)
    assert rare[some].sum() == 20
    assert len(some) <= 5_020
    many = rows_for_widths(np.arange(20_000.0), rng)
    assert len(many) == 5_000
    assert (np.diff(many) > 0).all()
    assert rows_for_widths(np.arange(200.0), rng).tolist() == list(range(200))


@pytest.mark.parametrize(
    ("kernel", "n_components"), [("poly", 5), ("rbf", 0), ("rbf", 2.5), ("rbf", True)]
)
def test_components_that_make_no_sense(kernel, n_components):
    with pytest.raises(ValueError, match="n_components"):
        MAMRanker(kernel, n_components=n_components).fit(*samples()[:2])


def test_scores_are_those_of_all_samples():
    X, y, _ = samples()
    model = MAMRanker(n_components=30, random_state=0).fit(X, y)
    assert model.score(X, y) == kendall(y, model.predict(X))
