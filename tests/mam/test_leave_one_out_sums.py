"""Sums over all other samples, against matrices with a diagonal of 0."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from margrave.mam import _sums
from margrave.mam._kernels import Kernel
from margrave.mam._sums import LevelWeights, _steps, leave_one_out_sums

POWERS = [4.0**k for k in range(-7, 8)]
GAMMAS = {
    "one": [0.3],
    "powers of 4": POWERS,
    "powers of 2": [0.1, 0.2, 0.4, 1.6, 51.2],
    "arbitrary": [0.013, 0.3, 0.5, 2.0, 7.7],
    "mixed": [0.01, 0.04, 0.05, 0.2, 0.8, 1.0, 64.0, 65.0, 260.0],
    "equal": [0.8, 0.8, 0.9, 0.9],
}


def cosine(Z, X):
    return np.cos(Z @ X.T)


def others(X, kernel, gamma):
    """All values, 0 for a sample with itself; distances one by one."""
    X = np.asarray(X, dtype=np.float64)
    if callable(kernel.name):
        K = np.array(kernel.name(X, X))
    elif kernel.name == "linear":
        K = X @ X.T
    elif kernel.name == "poly":
        K = polynomial_kernel(X, X, kernel.degree, gamma, kernel.coef0)
    elif kernel.name == "rbf":
        K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    else:
        K = np.exp(-gamma * np.abs(X[:, None] - X).sum(axis=2))
    np.fill_diagonal(K, 0.0)
    return K


def agree(X, a, kernel, gammas, ordered=None, n_jobs=None, tolerance=1e-10):
    """Whether the sums are those of the matrices, up to a fraction of Σ|a||K|."""
    found = leave_one_out_sums(X, a, kernel, gammas, ordered, n_jobs)
    assert found.shape == (len(gammas), len(X), a.shape[1] + (ordered is not None))
    for sums, gamma in zip(found, gammas, strict=True):
        K = others(X, kernel, gamma)
        exact, size = K @ a, np.abs(K) @ np.abs(a)
        if ordered is not None:
            signs = np.sign(ordered.levels - ordered.levels[:, None])
            signed = (signs * K) @ ordered.weights
            exact = np.column_stack([exact, signed])
            size = np.column_stack([size, np.abs(K) @ np.abs(ordered.weights)])
        if not (np.abs(sums - exact) <= tolerance * size + 1e-200).all():
            return False
    return True


def samples(n=23, d=3, k=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n, k))


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(_sums, "_TILE", 5)


def test_the_referee_is_scikit_learn():
    X, _ = samples()
    for name, matrix in (("rbf", rbf_kernel), ("laplacian", laplacian_kernel)):
        exact = matrix(X, gamma=0.4)
        np.fill_diagonal(exact, 0)
        assert others(X, Kernel(name), 0.4) == pytest.approx(exact)


@pytest.mark.parametrize("kind", list(GAMMAS))
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("n", [1, 4, 5, 6, 23])
def test_exponential_kernels_for_any_widths(small_tiles, name, kind, n):
    # A value to the power 4^14 is off by as many times its rounding.
    tolerance = 1e-7 if kind == "powers of 4" else 1e-10
    assert agree(*samples(n), Kernel(name), GAMMAS[kind], tolerance=tolerance)


@pytest.mark.parametrize(
    "kernel",
    [Kernel("poly", degree=2, coef0=0.5), Kernel("poly", degree=2.5, coef0=99.0), Kernel("poly")],
)
def test_polynomial_kernels_for_any_widths(small_tiles, kernel):
    assert agree(*samples(), kernel, [0.1, 0.2, 0.3, 1.2])


@pytest.mark.parametrize("kernel", [Kernel(cosine), Kernel("linear")])
def test_kernels_without_a_width_and_those_of_your_own(small_tiles, kernel):
    assert agree(*samples(), kernel, [1.0])


def test_the_gamma_of_the_kernel_itself_is_not_used():
    X, a = samples()
    for name in ("rbf", "poly", "laplacian"):
        one, other = (leave_one_out_sums(X, a, Kernel(name, gamma), [0.3]) for gamma in (1.0, 50.0))
        assert one.tolist() == other.tolist()


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("levels", ["all different", "few", "one", "two"])
def test_signed_sums_with_ties_across_the_borders_of_tiles(small_tiles, name, levels):
    X, a = samples(23)
    rng = np.random.default_rng(1)
    made = {
        "all different": np.arange(23.0) - 7,
        "few": np.sort(rng.integers(0, 4, 23)).astype(float),
        "one": np.zeros(23),
        "two": np.repeat([-1.0, 3.0], [12, 11]),
    }[levels]
    ordered = LevelWeights(made, rng.uniform(0, 2, 23))
    assert agree(X, a, Kernel(name), [0.1, 0.4, 0.5], ordered)


@given(
    st.integers(1, 18),
    st.integers(1, 6),
    st.integers(1, 3),
    st.lists(st.sampled_from([0.05, 0.1, 0.2, 0.3, 0.8, 3.2, 5.0]), min_size=1, max_size=4),
    st.sampled_from(["rbf", "laplacian", "poly"]),
    st.lists(st.integers(0, 3), min_size=18, max_size=18),
)
def test_any_samples_widths_and_levels(n, tile, d, gammas, name, levels):
    rng = np.random.default_rng(n)
    X = rng.integers(-2, 3, (n, d)) / 2  # with duplicates
    ordered = LevelWeights(np.sort(levels[:n]).astype(float), rng.integers(0, 3, n).astype(float))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sums, "_TILE", tile)
        assert agree(X, rng.normal(size=(n, 2)), Kernel(name), sorted(gammas), ordered)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_the_result_does_not_depend_on_threads(small_tiles, name, monkeypatch):
    monkeypatch.setattr(_sums, "SMALL", 0)
    X, a = samples(48)
    ordered = LevelWeights(np.arange(48.0) // 7, np.ones(48))
    alone = leave_one_out_sums(X, a, Kernel(name), POWERS[5:9], ordered, 1)
    for n_jobs in (2, 3, None):
        found = leave_one_out_sums(X, a, Kernel(name), POWERS[5:9], ordered, n_jobs)
        assert (found == alone).all()


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e6, 1e15, 1e18, 1e100, 1e300])
@pytest.mark.parametrize("size", [1.0, 1e3])
def test_a_sample_is_not_among_the_others_however_narrow_the_width(name, gamma, size):
    X, a = samples(40)
    X *= size
    assert (leave_one_out_sums(X, a, Kernel(name), [1e3, 4e3, gamma])[-1] == 0).all()


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e3, 1e6])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_copies_of_a_sample_count_but_the_sample_itself_does_not(small_tiles, name, gamma, offset):
    X, a = samples(12)
    X = np.vstack([X, X, X[:3]]) + offset
    a = np.random.default_rng(1).normal(size=(27, 1))
    same = (X[:, None] == X).all(axis=2) & ~np.eye(27, dtype=bool)
    found = leave_one_out_sums(X, a, Kernel(name), [gamma])[0]
    assert found == pytest.approx(same @ a, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("gamma", [1e12, 1e15, 1e18, 1e300])
def test_rounding_of_distances_makes_no_value_larger_than_1(gamma):
    for seed in range(10):
        X, _ = samples(12, seed=seed)
        X[6:] = X[:6]
        found = leave_one_out_sums(X, np.ones((12, 1)), Kernel("rbf"), [gamma])
        assert found.min() >= 0
        assert found.max() <= 1


def test_samples_in_float32_are_summed_in_float64():
    X, a = samples()
    X = X.astype(np.float32)
    assert leave_one_out_sums(X, a, Kernel("rbf"), [0.3]).dtype == np.float64
    assert agree(X, a, Kernel("rbf"), [0.3, 1.2], tolerance=1e-12)
    assert agree(X + np.float32(1e4), a, Kernel("rbf"), [0.3, 1.2])


def squarings(gammas):
    return [squared for _, squared in _steps(gammas)]


def test_values_are_squared_where_widths_allow_and_computed_by_exponentials_where_not(monkeypatch):
    assert squarings(POWERS) == [0] + [2] * 14
    assert squarings([1.0, 2.0, 6.0, 48.0, 48.0, 24 * 64.0, 1e9]) == [0, 1, 0, 3, 0, 5, 0]
    # Far apart, and a ratio that is a power of two but for less than rounding.
    assert squarings([1e-300, 1e300]) == [0, 0]
    assert squarings([0.1, 0.1 * 4 * (1 + 1e-15), 0.1 * 16 * (1 + 1e-6)]) == [0, 2, 0]
    monkeypatch.setattr(_sums, "_LARGEST_POWER", 16.0)
    assert squarings(POWERS[:7]) == [0, 2, 2, 0, 2, 2, 0]
    assert agree(*samples(), Kernel("rbf"), POWERS)


def test_exponentials_are_rare_for_widths_that_are_powers(monkeypatch):
    calls = []
    exp = np.exp

    def counted(*args):
        calls.append(1)
        return exp(*args)

    monkeypatch.setattr(_sums.np, "exp", counted)
    leave_one_out_sums(*samples(), Kernel("laplacian"), POWERS)
    assert len(calls) == 1


def test_a_diagonal_of_0_stays_when_values_are_squared():
    X, a = np.zeros((7, 2)), np.arange(14.0).reshape(7, 2)
    for sums in leave_one_out_sums(X, a, Kernel("rbf"), POWERS):
        assert sums == pytest.approx(a.sum(axis=0) - a)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_tiles_whose_values_have_vanished_add_nothing_and_the_others_do(small_tiles, name):
    """Five groups of samples far from each other, each a tile of its own."""
    X, a = samples(25)
    X[:, 0] += np.repeat(np.arange(5) * 1e3, 5)
    assert agree(X, a, Kernel(name), [1e-6, 1e-3, 1.0, 2.0, 4.0, 300.0], tolerance=1e-6)


def test_kernels_are_not_changed():
    kernel = Kernel("poly", 0.7, 2, 0.1)
    before = replace(kernel)
    X, a = samples()
    rows, weights = X.copy(), a.copy()
    leave_one_out_sums(X, a, kernel, [0.1, 0.4])
    assert kernel == before
    assert (rows == X).all()
    assert (a == weights).all()


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("size", [1e-40, 1e-12, 1e12, 1e20, 1e40, 1e100])
def test_sums_do_not_depend_on_the_unit_of_the_features(name, size):
    X, a = samples()
    found = leave_one_out_sums(X * size, a, Kernel(name), [size ** (-2 if name == "rbf" else -1)])
    assert found == pytest.approx(leave_one_out_sums(X, a, Kernel(name), [1.0]), rel=1e-8)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_widths_of_nothing_for_large_features(name):
    X, a = samples(40)
    assert (leave_one_out_sums(X * 1e12, a, Kernel(name), [1e3, 4e3, 1e300])[-1] == 0).all()
