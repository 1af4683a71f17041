"""Sums by PyTorch and by Triton, against those of numpy in float64."""

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from tests.mam import torch_cases
from tests.mam.torch_cases import CASES, EXACT, OTHERS, PARTS, RBF, ROUNDED, Case, of_others
from tests.needs import need_package

from margrave.mam import Kernel, MAMClassifier, MAMOrdinalClassifier, MAMRanker, kernel_sum
from margrave.mam.gpu import DeviceTask, SumTask, _backend, _fused, _torch, _triton

torch = torch_cases.torch
pytestmark = pytest.mark.filterwarnings("ignore:.*backend='torch'.*GPU")


@pytest.fixture(scope="module")
def fused(tmp_path_factory):
    need_package("triton")
    path = tmp_path_factory.mktemp("fused") / "sums.npz"
    settings = dict(os.environ)
    if not torch.cuda.is_available():
        settings["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-m", torch_cases.__name__, path]
    root = Path(torch_cases.__file__).parents[2]  # from which `tests` can be imported
    subprocess.run(command, check=True, env=settings, cwd=root)  # noqa: S603
    return np.load(path)


def names(case):
    return "-".join(str(getattr(case, f)) for f in case.__dataclass_fields__)


@pytest.mark.parametrize("case", CASES, ids=names)
def test_chunks_agree_with_numpy(case):
    found = case.sums("torch")
    assert found.dtype == case.dtype
    assert case.error(found) < case.tolerance


@pytest.mark.parametrize("i", range(len(CASES)), ids=lambda i: names(CASES[i]))
def test_triton_agrees_with_numpy(i, fused):
    if f"case{i}" not in fused:
        pytest.skip("so many features take too long without a GPU")
    found = fused[f"case{i}"]
    assert found.shape == CASES[i].sums("numpy").shape
    assert CASES[i].error(found) < CASES[i].tolerance


@pytest.mark.parametrize("i", range(len(OTHERS)), ids=str)
def test_leave_one_out_agrees_with_numpy(i, fused):
    exact = of_others("numpy", *OTHERS[i])
    scale = np.abs(exact).max(axis=(1, 2), keepdims=True)
    for found in (fused[f"others{i}"], of_others("torch", *OTHERS[i])):
        assert found.shape == exact.shape
        assert (np.abs(found - exact) <= 1e-11 * scale).all()


def test_parts_of_rows_and_columns_are_added(fused):
    assert PARTS.error(fused["parts"]) < ROUNDED


def test_a_float32_sum_is_near_its_check_in_float64():
    case = Case(RBF, "float32", m=300, n=400, d=16)
    checked = case.sums("torch", dtype=np.float64)
    assert np.linalg.norm(case.sums("torch") - checked) < 1e-6 * np.linalg.norm(checked)


def test_many_chunks(monkeypatch):
    case = Case("laplacian", "float64", n_sums=2)
    monkeypatch.setattr(_torch, "_CACHED_VALUES", 100)
    assert case.error(case.sums("torch")) < EXACT
    exact = of_others("numpy", RBF, 1, True)
    assert of_others("torch", RBF, 1, True) == pytest.approx(exact, rel=1e-9, abs=1e-9)


class Products(torch.overrides.TorchFunctionMode):
    """The types of all matrix products."""

    def __init__(self):
        super().__init__()
        self.types = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function.__name__ in ("matmul", "__matmul__", "addmm"):
            self.types.add(args[1].dtype)
        return function(*args, **(kwargs or {}))


def precision_by_name():
    torch.set_float32_matmul_precision("medium")


def precision_of_backend():
    torch.backends.cuda.matmul.fp32_precision = "tf32"


@pytest.fixture
def highest():
    yield
    if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        torch.backends.cuda.matmul.fp32_precision = "ieee"
    torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("reduce", [precision_by_name, precision_of_backend])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_reduced_precision_of_products_is_not_for_sums(kernel, reduce, highest, monkeypatch):
    monkeypatch.setattr(_backend, "load_programs", lambda device: None)  # chunks, on a GPU too
    if reduce is precision_of_backend and not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("an older PyTorch")
    case = Case(kernel, "float32", m=300, n=400, n_sums=5)
    with Products() as products:
        case.sums("torch")
    assert products.types == {torch.float32}
    reduce()
    with Products() as products:
        found = case.sums("torch")
    assert products.types == {torch.float64}
    assert case.error(found) < ROUNDED


def test_another_default_type(fused):
    torch.set_default_dtype(torch.bfloat16)
    try:
        found = PARTS.sums("torch")
    finally:
        torch.set_default_dtype(torch.float32)
    assert PARTS.error(found) < ROUNDED
    assert PARTS.error(fused["default"]) < ROUNDED


def sizes_of_sums(task, memory):
    """Bytes of the sums of all programs, none of which is run."""
    sizes = []

    class Program:
        def __init__(self, place):
            self.place = place

        def __getitem__(self, grid):
            return lambda *arguments, **constants: sizes.append(arguments[self.place].nbytes)

    programs = SimpleNamespace(**vars(_triton))
    programs.values, programs.halves = Program(10), Program(3)
    data = DeviceTask(torch, task, torch.device("cpu"), memory)
    _fused.FusedSums(data, programs).compute()
    return sizes


@pytest.mark.parametrize("memory", [2**19, 2**21, 2**24])
def test_sums_stay_within_the_memory(memory):
    X, a = np.random.default_rng(0).normal(size=(1500, 4)), np.ones((1500, 20))
    tasks = [
        SumTask(Kernel(RBF), np.geomspace(0.1, 1, 15), [0] * 15, X, X, a, leave_one_out=True),
        SumTask(Kernel(RBF), [0.1], [0], X.astype("f"), X.astype("f"), a),
        SumTask(Kernel(RBF), [0.1], [0], X.astype("f"), X.astype("f"), a[:, :4]),
    ]
    for task in tasks:
        sizes = sizes_of_sums(task, memory)
        assert sizes
        assert max(sizes) <= memory


def test_powers_are_by_halves_where_numbers_are_alike():
    def in_halves(**options):
        case = Case("poly", "float32", d=4, gamma=1.0, **options)
        Z, X, a = case.data()
        kernel = Kernel("poly", coef0=case.coef0)
        task = SumTask(kernel, [case.gamma], [0], Z, X, a.reshape(len(X), -1))
        data = DeviceTask(torch, task, torch.device("cpu"), 2**28)
        return _fused.FusedSums(data, _triton).in_halves

    assert in_halves()
    assert in_halves(n_sums=5, coef0=0.0)
    assert in_halves(offset=100.0)
    assert not in_halves(change="large_row_of_z")
    assert not in_halves(change="large_row_of_x")
    assert not in_halves(change="right_angles", coef0=0.0)


def test_weights_beyond_float32_and_arrays_that_cannot_be_written():
    Z, X, a = Case(RBF, "float32").data()
    for side in (Z, X):
        side.setflags(write=False)
    plain = kernel_sum(Z, X, a, backend="torch")
    large = kernel_sum(Z, X[::-1], a[::-1] * 2.0**120, backend="torch")
    assert large == pytest.approx(plain * 2.0**120, rel=1e-4, abs=2.0**98)
    assert (kernel_sum(Z, X, 0 * a, backend="torch") == 0).all()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_rows_too_far_apart(kernel):
    X = np.array([[1e308], [-1e308]])
    for backend in ("numpy", "torch"):
        with pytest.raises(ValueError, match="distances"):
            kernel_sum(X, X, [1.0, 1.0], kernel, gamma=1.0, backend=backend)


def test_kernels_that_stay_with_numpy():
    Z, X, a = Case(RBF, "float64").data()
    for kernel in ("linear", lambda Z, X: Z @ X.T):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = kernel_sum(Z, X, a, kernel, backend="torch")
        assert (found == kernel_sum(Z, X, a, kernel, backend="numpy")).all()


def separable(n=120, dtype=np.float64):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 3)).astype(dtype)
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("estimator", "learned"),
    [
        (MAMClassifier(), "threshold_"),
        (MAMClassifier("laplacian", class_weight="balanced"), "threshold_"),
        (MAMClassifier("poly", threshold=None), "threshold_"),
        (MAMRanker(), "loo_predictions_"),
        (MAMRanker("laplacian"), "loo_predictions_"),
        (MAMOrdinalClassifier(), "thresholds_"),
    ],
    ids=str,
)
def test_estimators_learn_the_same(estimator, learned, dtype):
    X, y = separable(dtype=dtype)
    if not isinstance(estimator, MAMRanker):
        y = np.digitize(y, [-0.5, 0.5])
    models = [
        clone(estimator).set_params(backend=backend).fit(X, y) for backend in ("numpy", "torch")
    ]
    for name in (learned, "gamma_"):
        one, other = (getattr(model, name, 0.0) for model in models)
        assert other == pytest.approx(one, rel=1e-7, abs=1e-9), name
    # With the narrowest widths some sums are almost 0, and a matter of chance in their order.
    one, other = (getattr(model, "loo_scores_", 0.0) for model in models)
    assert other == pytest.approx(one, abs=2e-3)
    one, other = (model.predict(X) for model in models)
    assert other == pytest.approx(one, rel=1e-5, abs=1e-5)


def test_bounds_are_the_same():
    X, y = separable()
    bounds = [
        MAMClassifier(backend=backend).fit(X, y > 0).rademacher_bound("monte-carlo", random_state=0)
        for backend in ("numpy", "torch")
    ]
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-7)


@pytest.mark.parametrize("estimator", [MAMClassifier, MAMRanker, MAMOrdinalClassifier])
def test_backend_is_checked(estimator):
    X, y = separable()
    with pytest.raises(ValueError, match=rf"{estimator.__name__}.*\bbackend\b"):
        estimator(backend="cupy").fit(X, np.digitize(y, [0.0]))
    assert clone(estimator(backend="torch")).get_params()["backend"] == "torch"
