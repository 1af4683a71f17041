"""Tiles of kernels against the definition, and how each is computed."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from margrave.mam import _kernels
from margrave.mam._kernels import Kernel, KernelTiles, evaluate

KERNELS = [
    Kernel("rbf", 0.3),
    Kernel("laplacian", 0.7),
    Kernel("linear"),
    Kernel("poly", 0.4, 3, 1.0),
    Kernel("poly", 0.2, 2.5, 9.0),
    Kernel(lambda Z, X: np.tanh(Z @ X.T)),
]
KERNEL_NAMES = ["rbf", "laplacian", "linear", "poly", "poly 2.5", "tanh"]


def dense(kernel, Z, X):
    """All values in float64, by scikit-learn."""
    Z, X = np.asarray(Z, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if callable(kernel.name):
        return kernel.name(Z, X)
    if kernel.name == "linear":
        return Z @ X.T
    if kernel.name == "poly":
        return polynomial_kernel(Z, X, kernel.degree, kernel.gamma, kernel.coef0)
    return (rbf_kernel if kernel.name == "rbf" else laplacian_kernel)(Z, X, kernel.gamma)


def values(pairs, m, n):
    """A tile of all pairs, multiplied with its factors."""
    found = pairs.tile(slice(0, m), slice(0, n), np.empty((3, m, n), pairs.dtype))
    assert found.dtype == pairs.dtype
    rows = np.reshape(pairs.row_factors, (-1, 1))
    return found.astype(np.float64) * rows * np.reshape(pairs.column_factors, (1, -1))


def two_sets(m=12, n=9, d=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (m, d)).astype(dtype), rng.uniform(-1, 1, (n, d)).astype(dtype)


@pytest.mark.parametrize("kernel", KERNELS, ids=KERNEL_NAMES)
def test_a_tile_is_the_kernel_of_all_pairs(kernel):
    Z, X = two_sets()
    found = values(KernelTiles(kernel, Z, X), 12, 9)
    assert found == pytest.approx(dense(kernel, Z, X), rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=KERNEL_NAMES)
def test_a_tile_of_some_rows_is_that_part_of_all(kernel):
    Z, X = two_sets()
    pairs = KernelTiles(kernel, Z, X)
    part = pairs.tile(slice(3, 8), slice(5, 9), np.empty((3, 5, 4)))
    assert part == pytest.approx(dense(kernel, Z, X)[3:8, 5:9], rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=KERNEL_NAMES)
def test_the_diagonal_is_the_kernel_of_each_row_with_itself(kernel, monkeypatch):
    monkeypatch.setattr(_kernels, "_DIAGONAL_ROWS", 4)
    for dtype in (np.float64, np.float32):
        X = two_sets(n=10, dtype=dtype)[1]
        found = kernel.diagonal(X)
        assert found == pytest.approx(np.diag(dense(kernel, X, X)), rel=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3, 3.0, 8, 9, 2.5, 0.5, 0])
def test_powers_are_those_of_numpy_and_in_place(degree):
    products = np.linspace(-1, 3, 20).reshape(4, 5)
    exact = (0.3 * products + 1.5) ** degree
    found = Kernel("poly", 0.3, degree, 1.5).powers(products, np.empty_like(products))
    assert found is products
    assert found == pytest.approx(exact, rel=1e-13)


# 2γ|z||x| ≤ 7 for squaring; above, by whole; γ|x|² > 16 has its products in float64.
FORMS = [
    (0.3, True, "_exp", "_product"),
    (0.3, False, "_exp_by_squaring", "_product"),
    (3.0, True, "_exp", "_product"),
    (3.0, False, "_exp_by_parts", "_product"),
    (40.0, True, "_exp", "_product_rounded"),
    (40.0, False, "_exp_by_parts", "_product_rounded"),
]


@pytest.mark.parametrize(("gamma", "vectorised", "finish", "fill"), FORMS)
def test_float32_takes_the_way_that_its_exponents_allow(
    gamma, vectorised, finish, fill, monkeypatch
):
    monkeypatch.setattr(_kernels, "is_vectorised", lambda dtype: vectorised)
    Z, X = two_sets(dtype=np.float32)
    pairs = KernelTiles(Kernel("rbf", gamma), Z, X)
    assert (pairs._finish.__name__, pairs._fill.__name__) == (finish, fill)
    if gamma > 10:
        return
    exact = dense(Kernel("rbf", gamma), Z, X)
    assert values(pairs, 12, 9) == pytest.approx(exact, rel=3.1e-5)


@pytest.mark.parametrize("vectorised", [True, False])
def test_a_laplacian_kernel_in_float32(vectorised, monkeypatch):
    monkeypatch.setattr(_kernels, "is_vectorised", lambda dtype: vectorised)
    Z, X = two_sets(dtype=np.float32)
    for gamma in (0.1, 1.0, 20.0):
        kernel = Kernel("laplacian", gamma)
        found = values(KernelTiles(kernel, Z, X), 12, 9)
        assert found == pytest.approx(dense(kernel, Z, X), rel=1.5e-5)


def test_distances_of_rows_far_from_the_origin_keep_their_digits():
    Z, X = two_sets()
    near = values(KernelTiles(Kernel("rbf", 1.0), Z, X), 12, 9)
    far = values(KernelTiles(Kernel("rbf", 1.0), Z + 2.0**20, X + 2.0**20), 12, 9)
    assert far == pytest.approx(near, rel=1e-8)


@pytest.mark.parametrize("gamma", [1e12, 1e15, 1e100])
def test_no_rounding_makes_a_value_larger_than_1(gamma):
    X = two_sets(n=40)[1]
    assert values(KernelTiles(Kernel("rbf", gamma), X, X), 40, 40).max() <= 1


def test_what_a_kernel_is_a_function_of():
    Z, X = two_sets()
    workspace = np.empty((12, 9))
    for name, base in (("rbf", (Z[:, None] - X) ** 2), ("laplacian", np.abs(Z[:, None] - X))):
        KernelTiles(Kernel(name, 0.5), Z, X).base(slice(0, 12), slice(0, 9), workspace)
        assert workspace == pytest.approx(-0.5 * base.sum(axis=2), rel=1e-12, abs=1e-13)
    KernelTiles(Kernel("poly", 0.5), Z, X).base(slice(0, 12), slice(0, 9), workspace)
    assert workspace == pytest.approx(Z @ X.T)


def test_which_kernels_have_a_width():
    names = ("rbf", "laplacian", "poly", "linear", lambda Z, X: Z @ X.T)
    assert [Kernel(name).has_gamma for name in names] == [True, True, True, False, False]
    assert [Kernel(name).is_exponential for name in names] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (lambda Z, X: Z @ X.T[:, :-1], r"\(12, 8\)"),
        (lambda Z, X: np.ones(12), r"\(12,\)"),
        (lambda Z, X: np.ones((9, 12)), r"\(9, 12\)"),
        (lambda Z, X: 1.0, r"\(\)"),
        (lambda Z, X: np.full((12, 9), np.nan), r"\bkernel\b"),
        (lambda Z, X: np.full((12, 9), np.inf), r"\bkernel\b"),
        (lambda Z, X: np.full((12, 9), "a"), r"\bkernel\b"),
        (lambda Z, X: np.full((12, 9), True), r"\bkernel\b"),
        (lambda Z, X: np.full((12, 9), 1j), r"\bkernel\b"),
    ],
)
def test_a_kernel_of_your_own_must_have_a_finite_number_for_each_pair(function, match):
    with pytest.raises(ValueError, match=match):
        evaluate(function, *two_sets())


def test_a_kernel_of_your_own_may_return_integers_or_lists():
    Z, X = two_sets()
    assert evaluate(lambda Z, X: [[1] * 9] * 12, Z, X).tolist() == [[1] * 9] * 12


@pytest.mark.parametrize("vectorised", [True, False])
@pytest.mark.parametrize("gamma", [40.0, 1000.0, 1e6])
@pytest.mark.parametrize("offset", [0.0, 3e4])
def test_a_narrow_width_in_float32_has_its_distances_in_float64(
    gamma, vectorised, offset, monkeypatch
):
    monkeypatch.setattr(_kernels, "is_vectorised", lambda dtype: vectorised)
    Z, X = (side + np.float32(offset) for side in two_sets(dtype=np.float32))
    X[:4] = Z[:4]
    X[4] = Z[5] + np.float32(2**-6)
    found = values(KernelTiles(Kernel("rbf", gamma), Z, X), 12, 9)
    exact = dense(Kernel("rbf", gamma), Z - np.float32(offset), X - np.float32(offset))
    # An exponent of e is rounded to float32, by at most |e| 2^-24.
    rounding = np.abs(np.log(np.maximum(exact, 1e-300))) * 2.0**-24
    assert (np.abs(found - exact) <= (6e-6 + rounding) * exact + 1e-30).all()
    assert np.diag(found)[:4] == pytest.approx(1, rel=6e-6)
