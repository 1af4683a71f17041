"""Ridge regression on ranks: dense solves, refits, and the ranker as its limit."""

import numpy as np
import pytest
from experiments.mam.rank_ridge import CentredRidge, RankRidgeRanker
from scipy.stats import kendalltau
from sklearn.base import clone
from sklearn.metrics.pairwise import (
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from margrave.mam import MAMRanker, rank_transform

GAMMA = 0.3
KERNELS = {
    "rbf": lambda A, B: rbf_kernel(A, B, gamma=GAMMA),
    "laplacian": lambda A, B: laplacian_kernel(A, B, gamma=GAMMA),
    "poly": lambda A, B: polynomial_kernel(A, B, gamma=GAMMA, degree=3, coef0=1),
    "linear": linear_kernel,
    linear_kernel: linear_kernel,
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def some_samples(n=15, d=2, seed=0):
    """Samples with ties among their responses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.round(2 * X @ rng.normal(size=d) + rng.normal(size=n))


def bordered(K, alpha):
    n = len(K)
    border = np.ones((n, 1))
    return np.block([[K + alpha * np.eye(n), border], [border.T, np.zeros((1, 1))]])


def solved(K, targets, alpha):
    solution = np.linalg.solve(bordered(K, alpha), np.append(targets, 0.0))
    return solution[:-1], solution[-1]


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
@each_kernel
def test_it_solves_the_bordered_system(kernel, alpha):
    X, y = some_samples()
    K = KERNELS[kernel](X, X)
    model = RankRidgeRanker(kernel, gamma=GAMMA, alpha=alpha).fit(X, y)
    c, b = solved(K, rank_transform(y), alpha)
    scale = np.abs(c).max()
    np.testing.assert_allclose(model.dual_coef_, c, atol=1e-8 * scale)
    assert model.intercept_ == pytest.approx(b, abs=1e-8)
    Z = np.random.default_rng(1).normal(size=(4, 2))
    expected = KERNELS[kernel](Z, X) @ c + b
    np.testing.assert_allclose(model.predict(Z), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e4])
@each_kernel
def test_leaving_out_is_ranking_and_fitting_the_others_again(kernel, alpha):
    X, y = some_samples()
    K = KERNELS[kernel](X, X)
    model = RankRidgeRanker(kernel, gamma=GAMMA, alpha=alpha).fit(X, y)
    expected = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        c, b = solved(K[np.ix_(others, others)], rank_transform(y[others]), alpha)
        expected.append(K[i, others] @ c + b)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.loo_predictions_, expected, atol=1e-6 * scale)


def test_residuals_are_the_coefficients_over_the_diagonal_of_the_inverse():
    """With ranks that stay, as for any ridge regression; the eigenvectors say the same."""
    X, y = some_samples()
    K, alpha = KERNELS["rbf"](X, X), 0.1
    r = rank_transform(y)
    c, _ = solved(K, r, alpha)
    inverse = np.linalg.inv(bordered(K, alpha))[:-1, :-1]
    for i in (0, 7):
        others = np.arange(len(y)) != i
        left, b = solved(K[np.ix_(others, others)], r[others], alpha)
        assert r[i] - (K[i, others] @ left + b) == pytest.approx(c[i] / inverse[i, i])
    ridge = CentredRidge.of(K)
    np.testing.assert_allclose((ridge.vectors / (ridge.values + alpha)) @ ridge.vectors.T, inverse)


@each_kernel
def test_with_a_large_ridge_it_is_the_ranker(kernel):
    X, y = some_samples(n=40)
    Z = np.random.default_rng(1).normal(size=(50, 2))
    ridge = RankRidgeRanker(kernel, gamma=GAMMA, alpha=1e9).fit(X, y).predict(Z)
    ranker = MAMRanker(kernel, gamma=GAMMA).fit(X, y).predict(Z)
    ridge, ranker = ((one - one.mean()) / one.std() for one in (ridge, ranker))
    np.testing.assert_allclose(ridge, ranker, atol=1e-4)


def test_width_and_ridge_have_the_largest_tau_of_leave_one_out():
    X, y = some_samples(n=40)
    model = RankRidgeRanker(gamma="loo").fit(X, y)
    np.testing.assert_allclose(model.alphas_, 10.0 ** np.arange(-3, 5))
    nearest = round(np.log(1 / (2 * X.var())) / np.log(4))
    np.testing.assert_array_equal(model.gammas_, 4.0 ** (nearest + np.arange(-7, 8)))
    assert model.loo_scores_.shape == (15, 8)
    assert kendalltau(y, model.loo_predictions_).statistic == pytest.approx(model.loo_scores_.max())
    one = RankRidgeRanker(gamma=model.gamma_, alpha=model.alpha_).fit(X, y)
    np.testing.assert_allclose(one.loo_scores_, [[model.loo_scores_.max()]])
    np.testing.assert_allclose(one.predict(X), model.predict(X))


def test_of_equals_the_widest_and_then_the_largest_ridge_is_taken():
    X = np.arange(8.0).reshape(-1, 1)
    model = RankRidgeRanker(gamma="loo", gammas=[1e-3, 1e-2], alphas=[1, 0.1]).fit(X, X[:, 0])
    np.testing.assert_allclose(model.loo_scores_, np.ones((2, 2)))
    assert (model.gamma_, model.alpha_) == (1e-3, 1.0)


def test_it_is_better_than_the_ranker_where_there_is_little_noise():
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(-2, 2, size=(150, 2)), rng.uniform(-2, 2, size=(150, 2))
    y, y_new = (np.sin(2 * rows[:, 0]) + rows[:, 1] ** 2 for rows in (X, Z))
    ridge = RankRidgeRanker(gamma="loo").fit(X, y)
    assert ridge.score(Z, y_new) > 0.9
    assert ridge.score(Z, y_new) > MAMRanker().fit(X, y).score(Z, y_new)


@pytest.mark.parametrize("gamma", [1e-15, 1e15])
def test_extreme_widths_are_finite(gamma):
    X, y = some_samples()
    model = RankRidgeRanker(gamma=gamma).fit(X, y)
    assert np.isfinite([*model.predict(X), *model.loo_predictions_]).all()


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_constant_features_leave_nothing_to_rank_by(kernel):
    y = np.random.default_rng(0).normal(size=20)
    X = np.full((20, 2), 0.1)
    model = RankRidgeRanker(kernel).fit(X, y)
    assert model.score(X, y) == 0
    assert np.abs(model.predict(X)).max() < 1e-9


def test_it_is_a_scikit_learn_estimator():
    X, y = some_samples()
    model = clone(RankRidgeRanker("laplacian", alpha=2.0)).fit(X, y)
    assert model.n_features_in_ == 2
    assert model.score(X, y) == pytest.approx(kendalltau(y, model.predict(X)).statistic)
