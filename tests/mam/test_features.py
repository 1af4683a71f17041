"""Random features against the kernels they stand for, and sums of features against matrices."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from margrave.mam import _features
from margrave.mam._features import (
    RandomFeatures,
    feature_products,
    feature_sums,
    mean_row,
    squared_lengths,
)

KERNELS = {"rbf": rbf_kernel, "laplacian": laplacian_kernel}


def samples(n=23, d=3, k=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, k))


def drawn(kernel="rbf", gamma=0.4, n=40, seed=0, X=None):
    rows = samples()[0] + 0.5 if X is None else X  # their middle is not 0
    return RandomFeatures.draw(kernel, gamma, mean_row(rows), n, seed)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [0.05, 0.4, 2.0])
def test_products_of_features_are_about_the_kernel(kernel, gamma):
    X, _ = samples(40)
    exact = KERNELS[kernel](X, gamma=gamma)
    features = drawn(kernel, gamma, n=4000).transform(X)
    assert features.shape == (40, 4000)
    assert np.abs(features @ features.T - exact).max() < 0.1


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_products_of_features_are_the_kernel_on_average(kernel):
    X, _ = samples(8)
    rng = np.random.RandomState(0)
    products = [
        (found := RandomFeatures.draw(kernel, 0.3, X.mean(axis=0), 20, rng).transform(X)) @ found.T
        for _ in range(2000)
    ]
    errors = np.mean(products, axis=0) - KERNELS[kernel](X, gamma=0.3)
    # cos has a variance of at most 1/2 in each of 10 pairs of features.
    assert np.abs(errors).max() < 5 * np.sqrt(0.5 / 10 / 2000)


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-6), (np.float64, 1e-15)])
def test_features_are_cosines_and_sines(dtype, error):
    angles = np.concatenate([np.linspace(-10, 10, 1001), np.pi * np.arange(-4, 5), [1e6, -3e9]])
    one = RandomFeatures(np.array([[1.0]]), np.zeros(1))
    single = angles.astype(dtype)[:, None]
    exact = np.hstack([np.cos(single.astype(float)), np.sin(single.astype(float))])
    assert one.cosines_and_sines(single) == pytest.approx(exact, abs=error)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_every_sample_has_the_length_1(kernel):
    X, _ = samples(200)
    for components in (2, 6, 4000):
        features = drawn(kernel, n=components).transform(X)
        assert np.linalg.norm(features, axis=1) == pytest.approx(1, abs=1e-12)
    assert squared_lengths(X, drawn(kernel)).tolist() == [1.0] * 200


def test_features_have_the_precision_of_the_rows_and_are_drawn_by_their_seed():
    single = samples()[0].astype(np.float32)
    X = single.astype(np.float64)
    found = drawn(seed=1).transform(X)
    assert found.dtype == np.float64
    assert drawn(seed=1).transform(single).dtype == np.float32
    assert (found == drawn(seed=1).transform(X)).all()
    assert found == pytest.approx(drawn(seed=1).transform(single), abs=1e-5)
    assert (found != drawn(seed=2).transform(X)).any()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("made", [np.asarray, csr_array])
def test_scores_do_not_depend_on_the_other_rows(kernel, made):
    X, _ = samples(300, d=7)
    frequencies = drawn(kernel, n=200, X=X)
    vectors = np.random.default_rng(1).normal(size=(3, 200))
    together = feature_products(made(X), vectors, frequencies)
    alone = [feature_products(made(X[i : i + 1]), vectors, frequencies)[0] for i in range(300)]
    assert np.array(alone) == pytest.approx(together, rel=1e-9, abs=1e-11)
    order = np.random.default_rng(2).permutation(300)
    permuted = feature_products(made(X[order]), vectors, frequencies)
    assert permuted == pytest.approx(together[order], rel=1e-9, abs=1e-11)


def test_directions_need_rows_for_their_features_and_their_middle_only():
    X, _ = samples()
    one, other = drawn(X=X), drawn(X=9 * X[:5])
    assert (one.directions == other.directions).all()
    assert one.directions.shape == (3, 20)
    assert one.centre == pytest.approx(X.mean(axis=0))
    narrow = drawn(X=X.astype(np.float32))
    assert narrow.centre.dtype == np.float64
    assert narrow.centre == pytest.approx(X.mean(axis=0), abs=1e-6)
    assert drawn(X=csr_array(X)).centre.tolist() == [0.0] * 3


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("offset", [1e3, -1e7])
def test_rows_far_from_0_have_the_features_of_rows_near_it(kernel, offset):
    X, _ = samples(40)
    near, far = (drawn(kernel, n=4000, X=rows).transform(rows) for rows in (X, X + offset))
    # Rounding moves a row by 1e-9, and Cauchy's directions are steep.
    assert far @ far.T == pytest.approx(near @ near.T, abs=1e-4)
    assert far @ far.T == pytest.approx(KERNELS[kernel](X, gamma=0.4), abs=0.1)
    assert drawn(n=40, X=X + offset).transform(X + offset) == pytest.approx(
        drawn(X=X).transform(X), abs=1e-5
    )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("made", [csr_array, csr_matrix])
@pytest.mark.parametrize("drawn_for", [np.asarray, csr_array])
def test_sparse_and_dense_rows_have_the_same_features(kernel, made, drawn_for):
    X, _ = samples()
    X = X * (X > 0)
    frequencies = drawn(kernel, gamma=0.05, X=drawn_for(X))
    assert (frequencies.centre != 0).all() == (drawn_for is np.asarray)
    assert frequencies.transform(made(X)) == pytest.approx(frequencies.transform(X), abs=1e-10)
    assert frequencies.transform(made(X)).dtype == np.float64
    single = X.astype(np.float32)
    assert frequencies.transform(made(single)) == pytest.approx(
        frequencies.transform(single), abs=1e-4
    )
    assert frequencies.transform(made(single)).dtype == np.float32


FREQUENCIES = {"none": None, "random": drawn()}


def phi(X, frequencies):
    """All features, in float64."""
    return (X if frequencies is None else frequencies.transform(X)).astype(np.float64)


@pytest.mark.parametrize("which", list(FREQUENCIES))
@pytest.mark.parametrize("block", [1, 7, 23, 24, 2048])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-5), (np.float64, 1e-13)])
def test_sums_and_products_of_blocks_are_those_of_the_matrix(
    which, block, n_jobs, dtype, error, monkeypatch
):
    monkeypatch.setattr(_features, "_BLOCK", block)
    frequencies = FREQUENCIES[which]
    X, a = samples()
    X = X.astype(dtype)
    all_of_them = phi(X, frequencies)
    sums = feature_sums(X, a, frequencies, n_jobs)
    assert sums.dtype == np.float64
    assert sums == pytest.approx(a.T @ all_of_them, rel=error, abs=10 * error)
    products = feature_products(X, sums, frequencies, n_jobs)
    assert products.dtype == np.float64
    assert products == pytest.approx(all_of_them @ sums.T, rel=error, abs=10 * error)


@pytest.mark.parametrize("which", list(FREQUENCIES))
def test_threads_change_nothing(which, monkeypatch):
    monkeypatch.setattr(_features, "_BLOCK", 16)
    X, a = samples(200)
    frequencies = FREQUENCIES[which]
    sums, more = (feature_sums(X, a, frequencies, n_jobs) for n_jobs in (1, 3))
    assert (sums == more).all()
    one, other = (feature_products(X, sums, frequencies, n_jobs) for n_jobs in (1, 3))
    assert (one == other).all()


def test_the_features_themselves_are_summed_exactly():
    X, a = samples()
    assert feature_sums(X, a, None) == pytest.approx(a.T @ X, rel=1e-13)
    narrow = X.astype(np.float32)
    exact = a.T @ narrow.astype(np.float64)
    assert feature_sums(narrow, a, None) == pytest.approx(exact, rel=1e-13, abs=1e-13)
    assert squared_lengths(narrow, None).dtype == np.float64


@pytest.mark.parametrize("which", list(FREQUENCIES))
@pytest.mark.parametrize("made", [csr_array, csr_matrix])
def test_sparse_rows_are_as_good_as_dense_ones(which, made, monkeypatch):
    monkeypatch.setattr(_features, "_BLOCK", 5)
    frequencies = FREQUENCIES[which]
    X, a = samples()
    X = X * (X > 0)
    sparse = made(X)
    close = {"rel": 1e-10, "abs": 1e-11}
    sums = feature_sums(X, a, frequencies)
    assert feature_sums(sparse, a, frequencies) == pytest.approx(sums, **close)
    products = feature_products(sparse, sums, frequencies)
    assert isinstance(products, np.ndarray)
    assert products == pytest.approx(feature_products(X, sums, frequencies), **close)
    lengths = squared_lengths(sparse, frequencies)
    assert lengths.shape == (23,)
    assert lengths == pytest.approx(squared_lengths(X, frequencies))


def test_columns_of_sparse_rows_may_come_first_for_the_features_themselves():
    X, a = samples()
    sparse = csc_array(X)
    assert feature_sums(sparse, a, None) == pytest.approx(a.T @ X)
    assert feature_products(sparse, a.T @ X, None) == pytest.approx(X @ (a.T @ X).T)
    assert squared_lengths(sparse, None) == pytest.approx((X**2).sum(axis=1))
