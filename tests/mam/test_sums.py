"""Kernel sums against scikit-learn's matrices, in all shapes and types."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix
from sklearn.metrics.pairwise import (
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from margrave.mam import _kernels, _sums, kernel_sum
from margrave.mam._parameters import is_kernel
from margrave.mam._sums import Workspaces, slices

CASES = [
    ("rbf", {"gamma": 0.3}),
    ("rbf", {}),
    ("laplacian", {"gamma": 0.5}),
    ("linear", {}),
    ("poly", {}),
    ("poly", {"gamma": 0.3, "degree": 2, "coef0": -0.5}),
    ("poly", {"gamma": 0.3, "degree": 3, "coef0": 0}),
    ("poly", {"gamma": 0.1, "degree": 1, "coef0": 9.0}),
    ("poly", {"gamma": 0.1, "degree": 9, "coef0": 9.0}),
]


def dense(Z, X, kernel, gamma=None, degree=3, coef0=1.0):
    """All values in float64."""
    Z, X = np.asarray(Z, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if callable(kernel):
        return kernel(Z, X)
    if kernel == "linear":
        return linear_kernel(Z, X)
    if kernel == "poly":
        return polynomial_kernel(Z, X, degree=degree, gamma=gamma, coef0=coef0)
    return {"rbf": rbf_kernel, "laplacian": laplacian_kernel}[kernel](Z, X, gamma=gamma)


def agrees(Z, X, a, kernel, tolerance, **params):
    """Whether a kernel sum is off by at most so much of the sum of its terms' sizes."""
    found = kernel_sum(Z, X, a, kernel, **params)
    params.pop("n_jobs", None)
    exact = dense(Z, X, kernel, **params) @ a
    if kernel in ("linear", "poly"):  # the terms of a product may cancel
        Z, X = abs(Z), abs(X)
        params |= {"coef0": abs(params["coef0"])} if "coef0" in params else {}
    size = np.abs(dense(Z, X, kernel, **params)) @ np.abs(a)
    assert found.shape == exact.shape
    return bool((np.abs(found - exact) <= tolerance * size).all())


def two_sets(m=50, n=60, d=3, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    Z, X = (rng.normal(size=(rows, d)).astype(dtype) for rows in (m, n))
    return Z, X, rng.normal(size=n)


@pytest.mark.parametrize(("kernel", "params"), CASES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_sums_are_those_of_the_matrix(kernel, params, dtype, tolerance):
    Z, X, a = two_sets(dtype=dtype)
    assert agrees(Z, X, a, kernel, tolerance, **params)


@pytest.mark.parametrize(("kernel", "params"), CASES)
def test_several_sums_are_those_of_each_column(kernel, params):
    Z, X, _ = two_sets()
    a = np.random.default_rng(1).normal(size=(60, 4))
    found = kernel_sum(Z, X, a, kernel, **params)
    alone = np.column_stack([kernel_sum(Z, X, column, kernel, **params) for column in a.T])
    assert found.shape == (50, 4)
    assert found == pytest.approx(alone, rel=1e-11, abs=1e-11)
    one = kernel_sum(Z, X, a[:, :1], kernel, **params)
    assert one == pytest.approx(alone[:, :1], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("gamma", [1e-4, 0.01, 0.1, 0.2, 0.4])  # by squaring, then by whole
@pytest.mark.parametrize("vectorised", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_float32_of_any_width_on_any_machine_and_far_from_the_origin(
    gamma, vectorised, offset, monkeypatch
):
    monkeypatch.setattr(_kernels, "is_vectorised", lambda dtype: vectorised or dtype != np.float32)
    Z, X, a = two_sets(300, 200, dtype=np.float32)
    Z, X = Z + np.float32(offset), X + np.float32(offset)
    assert agrees(Z, X, a, "rbf", 1e-5, gamma=gamma)
    assert agrees(Z, X, a, "laplacian", 1e-5, gamma=gamma)


def test_the_exponential_of_our_own_takes_both_its_ways(monkeypatch):
    monkeypatch.setattr(_kernels, "is_vectorised", lambda dtype: False)
    used = []
    for name in ("exp_by_squaring", "exp2_by_parts"):
        function = getattr(_kernels, name)

        def noted(*args, function=function, name=name):
            used.append(name)
            return function(*args)

        monkeypatch.setattr(_kernels, name, noted)
    Z, X, a = two_sets(dtype=np.float32)
    kernel_sum(Z, X, a, gamma=0.01)
    kernel_sum(Z, X, a, gamma=2.0)
    assert used == ["exp_by_squaring", "exp2_by_parts"]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("m", [7, 8, 9, 17])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 17, 130])
def test_blocks_of_all_sizes_meet(m, n, n_jobs, monkeypatch):
    monkeypatch.setattr(_sums, "_TILE", 8)
    monkeypatch.setattr(_sums, "SMALL", 0)
    Z, X, a = two_sets(m, n)
    for kernel, params in CASES[:1] + CASES[4:6]:
        assert agrees(Z, X, a, kernel, 1e-12, n_jobs=n_jobs, **params)


@given(
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(1, 4),
    st.sampled_from(CASES),
    st.sampled_from([(np.float64, 1e-12), (np.float32, 3.1e-5)]),
    st.booleans(),
    st.integers(1, 3),
    st.integers(0, 10**6),
)
def test_any_shape_has_the_sums_of_the_matrix(m, n, d, case, kind, vectorised, n_jobs, seed):
    kernel, params = case
    dtype, tolerance = kind
    rng = np.random.default_rng(seed)
    Z, X = (rng.uniform(-1, 1, (rows, d)).astype(dtype) for rows in (m, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_sums, "_TILE", 8)
        patch.setattr(_sums, "SMALL", 0)
        patch.setattr(_kernels, "is_vectorised", lambda kind: vectorised or kind != np.float32)
        assert agrees(Z, X, rng.normal(size=n), kernel, tolerance, n_jobs=n_jobs, **params)


def test_sums_of_many_samples_at_few_places_and_at_one():
    """Blocks get wide where there are few rows."""
    for m in (1, 2, 5):
        for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
            Z, X, a = two_sets(m, 30_000, dtype=dtype)
            assert agrees(Z, X, a, "rbf", tolerance, gamma=0.3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_that_each_have_blocks_of_full_size_change_nothing(dtype, monkeypatch):
    monkeypatch.setattr(_sums, "SMALL", 0)
    monkeypatch.setattr(_sums, "_TILE", 64)
    Z, X, a = two_sets(64 * 5 + 3, 700, dtype=dtype)
    for kernel in ("rbf", "laplacian", "poly"):
        alone = kernel_sum(Z, X, a, kernel, n_jobs=1)
        for n_jobs in (2, 3):
            assert kernel_sum(Z, X, a, kernel, n_jobs=n_jobs).tolist() == alone.tolist()


def test_the_matrix_is_never_stored():
    Z, X, a = two_sets(20_000, 4_000, d=4, dtype=np.float32)
    tracemalloc.start()
    kernel_sum(Z, X, a, n_jobs=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # the matrix has 320 MB


@pytest.mark.parametrize("made", [csr_array, csc_array, csr_matrix])
@pytest.mark.parametrize("columns", [(), (2,)])
def test_sparse_rows_have_linear_sums(made, columns):
    Z, X, _ = two_sets()
    Z, X = Z * (Z > 0), X * (X > 0)
    a = np.random.default_rng(0).normal(size=(60, *columns))
    exact = Z @ (X.T @ a)
    for left, right in ((made(Z), made(X)), (made(Z), X), (Z, made(X))):
        found = kernel_sum(left, right, a, "linear")
        assert isinstance(found, np.ndarray)
        assert found.shape == exact.shape
        assert found == pytest.approx(exact)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", np.dot])
def test_sparse_rows_have_no_other_sums(kernel):
    Z, X, a = two_sets()
    for left, right in ((csr_array(Z), X), (Z, csr_array(X))):
        with pytest.raises(TypeError, match=r"\bkernel\b"):
            kernel_sum(left, right, a, kernel)


def test_a_kernel_of_your_own_need_not_be_positive_definite(monkeypatch):
    monkeypatch.setattr(_sums, "_TILE", 16)

    def sigmoid(Z, X):
        return np.tanh(3 * Z @ X.T - 1)

    Z, X, a = two_sets()
    assert agrees(Z, X, a, sigmoid, 1e-12)
    narrow = kernel_sum(Z.astype(np.float32), X.astype(np.float32), a, sigmoid)
    assert narrow.dtype == np.float32
    assert narrow == pytest.approx(dense(Z, X, sigmoid) @ a, abs=1e-5 * np.abs(a).sum())


def test_a_kernel_of_your_own_that_returns_other_things_is_refused():
    Z, X, a = two_sets()
    with pytest.raises(ValueError, match=r"\bkernel\b.*\(60, 50\)"):
        kernel_sum(Z, X, a, lambda Z, X: X @ Z.T)
    with pytest.raises(ValueError, match=r"\bkernel\b"):
        kernel_sum(Z, X, a, lambda Z, X: Z @ X.T * np.nan)


@pytest.mark.parametrize("gamma", [0, -1.0, np.nan, np.inf, "scale", True, [1.0], None])
def test_gamma_is_a_finite_number_above_0(gamma):
    Z, X, a = two_sets()
    if gamma is None:
        assert kernel_sum(Z, X, a).tolist() == kernel_sum(Z, X, a, gamma=1 / 3).tolist()
        return
    with pytest.raises(ValueError, match=r"\bgamma\b"):
        kernel_sum(Z, X, a, gamma=gamma)


@pytest.mark.parametrize("backend", ["gpu", None, "NUMPY", 1])
def test_only_backends_that_there_are(backend):
    with pytest.raises(ValueError, match=r"\bbackend\b"):
        kernel_sum([[0.0]], [[0.0]], [1.0], backend=backend)


def test_backends_that_there_are_agree():
    Z, X, a = two_sets()
    assert kernel_sum(Z, X, a, backend="numpy") == pytest.approx(kernel_sum(Z, X, a), rel=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_every_row_has_a_weight(kernel):
    Z, X, a = two_sets()
    with pytest.raises(ValueError, match=r"\b60\b.*\(59,\)"):
        kernel_sum(Z, X, a[:-1], kernel)
    with pytest.raises(ValueError, match=r"\b60\b.*\(1, 60\)"):
        kernel_sum(Z, X, a[None], kernel)
    with pytest.raises(ValueError, match="dim 3"):
        kernel_sum(Z, X, a[:, None, None], kernel)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_numbers_that_are_not_finite_are_refused_by_name(bad, kernel, place):
    arrays = list(two_sets())
    arrays[place] = arrays[place].copy()
    arrays[place][3] = bad
    with pytest.raises(ValueError, match=f"Input {'ZXa'[place]} contains"):
        kernel_sum(*arrays, kernel)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_both_sets_have_the_same_features(kernel):
    Z, X, a = two_sets()
    with pytest.raises(ValueError, match=r"\bZ\b.*\b2\b.*\b3\b"):
        kernel_sum(Z[:, :2], X, a, kernel)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e-300, 1e-15])
def test_a_width_beyond_all_bounds_makes_every_value_1(kernel, gamma, dtype):
    Z, X, a = two_sets(dtype=dtype)
    tolerance = 1e-12 if dtype == np.float64 else 3e-5
    found = kernel_sum(Z, X, a, kernel, gamma=gamma)
    assert found == pytest.approx(a.sum(), abs=tolerance * np.abs(a).sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e15, 1e100, 1e300])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e15])
def test_a_width_of_nothing_makes_every_value_0_but_those_of_the_row_itself(
    kernel, gamma, size, dtype
):
    Z, X, a = two_sets(dtype=dtype)
    Z, X = Z * dtype(size), X * dtype(size)
    assert kernel_sum(Z, X, a, kernel, gamma=gamma).tolist() == [0.0] * 50
    own = kernel_sum(X, X, np.ones(60), kernel, gamma=gamma)
    assert own == pytest.approx(np.ones(60), rel=1e-5)


def test_poly_with_a_tiny_gamma_is_its_constant():
    Z, X, a = two_sets()
    found = kernel_sum(Z, X, a, "poly", gamma=1e-300, coef0=2.0)
    assert found == pytest.approx(8 * a.sum())


def test_identical_rows_sum_to_all_weights():
    a = np.linspace(-1, 2, 40)
    for dtype in (np.float64, np.float32):
        rows = np.full((40, 3), 0.1, dtype=dtype)
        for kernel in ("rbf", "laplacian"):
            for gamma in (0.1, 10.0):
                found = kernel_sum(rows[:5], rows, a, kernel, gamma=gamma)
                assert found == pytest.approx(np.full(5, a.sum()), rel=3e-5)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", lambda Z, X: Z @ X.T])
def test_sums_are_in_float32_if_both_sets_are(kernel):
    Z, X, a = two_sets()
    narrow = kernel_sum(Z.astype(np.float32), X.astype(np.float32), a, kernel)
    assert narrow.dtype == np.float32
    for left, right in ((Z.astype(np.float32), X), (Z, X.astype(np.float32)), (Z, X)):
        assert kernel_sum(left, right, a.astype(np.float32), kernel).dtype == np.float64


def test_mixed_types_are_summed_in_float64():
    Z, X, a = two_sets(dtype=np.float32)
    assert agrees(Z.astype(np.float64), X, a, "rbf", 1e-12, gamma=0.3)


def test_integers_and_lists_are_numbers():
    Z, X, a = [[0, 1], [2, 3]], [[1, 1], [0, 2], [5, 5]], [1, -2, 3]
    found = kernel_sum(Z, X, a, "poly", gamma=1, degree=2)
    assert found.tolist() == (polynomial_kernel(Z, X, degree=2, gamma=1) @ a).tolist()
    assert kernel_sum(np.array(Z), np.array(X), a, gamma=0.5) == pytest.approx(
        rbf_kernel(Z, X, gamma=0.5) @ a
    )


def test_arguments_are_not_changed():
    for dtype in (np.float64, np.float32):
        arrays = two_sets(dtype=dtype)
        before = [one.copy() for one in arrays]
        for kernel, params in CASES:
            kernel_sum(*arrays, kernel, **params)
        for one, was in zip(arrays, before, strict=True):
            assert (one == was).all()


@given(st.integers(0, 50), st.integers(1, 60))
def test_slices_cover_everything_once(n, size):
    parts = list(slices(n, size))
    assert [i for part in parts for i in range(n)[part]] == list(range(n))
    assert all(0 < part.stop - part.start <= size for part in parts)


def test_a_room_has_three_tiles_without_gaps_that_do_not_overlap():
    workspace = Workspaces(4, 6, np.float32).for_tile(slice(3, 6), slice(0, 5))
    assert workspace.shape == (3, 3, 5)
    assert all(tile.flags.c_contiguous for tile in workspace)
    workspace[...] = 0
    workspace[1] = 1
    assert workspace.sum(axis=(1, 2)).tolist() == [0, 15, 0]


def test_what_is_a_kernel():
    assert all(is_kernel(one) for one in ("rbf", "linear", "poly", "laplacian", np.dot))
    assert not any(is_kernel(one) for one in ("sigmoid", "RBF", None, 1, ["rbf"]))


# With d = 3 and rows of a length up to 4 the products are in float64 from 1.5 on.
@pytest.mark.parametrize("gamma", [0.7, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("vectorised", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_float32_of_a_narrow_width_far_from_the_origin(gamma, vectorised, offset, monkeypatch):
    monkeypatch.setattr(_kernels, "is_vectorised", lambda dtype: vectorised or dtype != np.float32)
    Z, X, a = two_sets(300, 200, dtype=np.float32)
    Z, X = Z + np.float32(offset), X + np.float32(offset)
    assert agrees(Z, X, a, "rbf", 1e-5, gamma=gamma)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [40, 64, 100, 150])
def test_threads_change_nothing(dtype, m, monkeypatch):
    monkeypatch.setattr(_sums, "SMALL", 0)
    monkeypatch.setattr(_sums, "_TILE", 64)
    Z, X, a = two_sets(m, 700, dtype=dtype)
    for kernel in ("rbf", "laplacian", "poly"):
        alone = kernel_sum(Z, X, a, kernel, n_jobs=1)
        for n_jobs in (2, 3):
            assert kernel_sum(Z, X, a, kernel, n_jobs=n_jobs).tolist() == alone.tolist()


@pytest.mark.parametrize("kernel", ["sigmoid", "RBF", None, 1])
def test_only_kernels_that_there_are(kernel):
    Z, X, a = two_sets()
    with pytest.raises(ValueError, match=r"\bkernel\b"):
        kernel_sum(Z, X, a, kernel)


@pytest.mark.parametrize("degree", [0, -1, 2.5, 2.0, np.nan, True, "3", None])
def test_the_degree_is_an_integer_of_at_least_1(degree):
    with pytest.raises(ValueError, match=r"\bdegree\b"):
        kernel_sum([[0.0]], [[0.0]], [1.0], "poly", degree=degree)


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, np.nan, True, "2"])
def test_jobs_are_none_or_all_or_a_count(n_jobs):
    with pytest.raises(ValueError, match="n_jobs"):
        kernel_sum([[0.0]], [[0.0]], [1.0], n_jobs=n_jobs)
    Z, X, a = two_sets()
    alone = kernel_sum(Z, X, a, n_jobs=1).tolist()
    for allowed in (None, -1, np.int64(2), 3):
        assert kernel_sum(Z, X, a, n_jobs=allowed).tolist() == alone


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [0.01, 0.3, 3.0, 100.0])
@pytest.mark.parametrize("unit", [1e-30, 1e-21, 1e-9, 1e9, 1e18, 1e30])
@pytest.mark.parametrize("vectorised", [True, False])
def test_the_unit_of_float32_rows_does_not_matter(kernel, gamma, unit, vectorised, monkeypatch):
    monkeypatch.setattr(_kernels, "is_vectorised", lambda dtype: vectorised or dtype != np.float32)
    Z, X, a = two_sets(dtype=np.float32)
    usual = kernel_sum(Z, X, a, kernel, gamma=gamma)
    scaled = gamma / unit if kernel == "laplacian" else gamma / unit / unit
    Z_scaled, X_scaled = Z * np.float32(unit), X * np.float32(unit)
    found = kernel_sum(Z_scaled, X_scaled, a, kernel, gamma=scaled)
    K = dense(Z_scaled, X_scaled, kernel, gamma=scaled)
    # Values below 1e-30 count as little as 0: float32 has none below 1e-38.
    allowed = 2e-5 * K @ np.abs(a) + 1e-30
    assert (np.abs(found - K @ a) <= allowed).all()
    assert (np.abs(found - usual) <= allowed).all()


@pytest.mark.parametrize("offset", [0.0, 5.0])
@pytest.mark.parametrize("size", [1e-21, 1e-9, 1.0, 1e18])
@pytest.mark.parametrize("gamma", [1e100, 1e300])
@pytest.mark.parametrize("vectorised", [True, False])
def test_float32_of_a_width_of_nothing_and_any_unit_is_finite(
    size, gamma, offset, vectorised, monkeypatch
):
    monkeypatch.setattr(_kernels, "is_vectorised", lambda dtype: vectorised or dtype != np.float32)
    Z, X, a = two_sets(dtype=np.float32)
    Z, X = ((side + np.float32(offset)) * np.float32(size) for side in (Z, X))
    for kernel in ("rbf", "laplacian"):
        assert kernel_sum(Z, X, a, kernel, gamma=gamma).tolist() == [0.0] * 50
        own = kernel_sum(X, X, a, kernel, gamma=gamma)
        assert own == pytest.approx(a, rel=1e-5)


@pytest.mark.parametrize("far", ["Z", "X", "both"])
def test_rows_whose_squared_distances_are_not_finite_are_refused(far):
    Z, X, a = two_sets()
    Z, X = Z * (1e200 if far != "X" else 1), X * (1e200 if far != "Z" else 1)
    with pytest.raises(ValueError, match="distances"):
        kernel_sum(Z, X, a)


def test_rows_that_are_far_from_0_but_not_apart_are_not_refused():
    a = np.linspace(-1, 2, 4)
    rows = np.full((4, 3), 1e200)
    assert kernel_sum(rows, rows, a) == pytest.approx(np.full(4, a.sum()))


def test_absolute_distances_need_no_squares():
    Z, X, a = two_sets()
    found = kernel_sum(Z * 1e200, X * 1e200, a, "laplacian", gamma=0.5e-200)
    assert found == pytest.approx(kernel_sum(Z, X, a, "laplacian", gamma=0.5), rel=1e-10)
