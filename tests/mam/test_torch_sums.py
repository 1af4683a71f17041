"""Sums by PyTorch and by Triton, against those of numpy in float64.

Triton's programs run in its interpreter, which must be asked for before Triton is imported: this
file, run as a script, computes all that is fused in a process of its own.
"""

import os
import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from margrave.mam import (
    MAMClassifier,
    MAMOrdinalClassifier,
    MAMRanker,
    RankRidgeRanker,
    kernel_sum,
)
from margrave.mam import _torch_sums as module
from margrave.mam._kernels import Kernel
from margrave.mam._self_sums import Ordered, self_sums

torch = pytest.importorskip("torch", reason="PyTorch, the extra gpu, is not installed")
NO_GPU = "backend='torch' finds no GPU: PyTorch computes on the CPU. backend='numpy' is quicker."
pytestmark = pytest.mark.filterwarnings("ignore:backend='torch' finds no GPU")

EXACT, ROUNDED = 1e-11, 1e-5
RBF = "rbf"


@dataclass(frozen=True)
class Case:
    """One sum: rows of Z and X, features, columns of weights, and how far the rows are from 0."""

    kernel: str
    dtype: str
    m: int = 37
    n: int = 150
    d: int = 3
    n_sums: int | None = None
    gamma: float | None = None
    offset: float = 0.0
    degree: int = 3

    def data(self):
        rng = np.random.default_rng(len(repr(self)))
        Z, X = (
            (rng.normal(size=(k, self.d)) + self.offset).astype(self.dtype)
            for k in (self.m, self.n)
        )
        shape = self.n if self.n_sums is None else (self.n, self.n_sums)
        return Z, X, rng.normal(size=shape)

    def sums(self, backend, absolute=False, dtype=None):
        Z, X, a = self.data()
        if absolute:
            a = np.abs(a)
            if self.kernel == "poly":  # what products are made of, all of one sign
                Z, X = np.abs(Z), np.abs(X)
        Z, X = (side.astype(dtype or side.dtype) for side in (Z, X))
        return kernel_sum(
            Z, X, a, self.kernel, gamma=self.gamma, degree=self.degree, backend=backend
        )

    def error(self, found):
        """The largest error, as a share of Σ|a||K|."""
        exact = self.sums("numpy", dtype=np.float64)
        size = self.sums("numpy", absolute=True, dtype=np.float64)
        tiny = 1e-30 if self.dtype == "float32" else 1e-290
        return float((np.abs(found - exact) / (size + tiny)).max())

    @property
    def tolerance(self):
        return ROUNDED if self.dtype == "float32" else EXACT


CASES = [
    *(
        Case(kernel, dtype, n_sums=n_sums)
        for kernel in ("rbf", "laplacian", "poly")
        for dtype in ("float32", "float64")
        for n_sums in (None, 3)
    ),
    Case(RBF, "float32", n_sums=18),
    Case("poly", "float32", n_sums=5, degree=2),
    Case(RBF, "float32", m=1),
    Case(RBF, "float32", m=1, n=1),
    Case("laplacian", "float32", n=1, d=1),
    Case(RBF, "float32", d=40, m=65, n=129),  # features in several blocks
    Case(RBF, "float64", d=40, m=65, n=129),
    Case("poly", "float32", d=25, degree=1),
    *(Case(RBF, dtype, gamma=1e-4) for dtype in ("float32", "float64")),
    *(Case(RBF, dtype, gamma=20.0) for dtype in ("float32", "float64")),  # float32 would lose it
    Case(RBF, "float32", gamma=1e9, m=20),  # all but 0
    Case(RBF, "float32", gamma=1e15, m=20),  # from differences
    Case("laplacian", "float32", gamma=20.0),
    Case(RBF, "float32", offset=1e4),
    Case(RBF, "float32", offset=1e4, gamma=20.0),
    Case("laplacian", "float32", offset=1e4),
    Case("poly", "float32", gamma=1e-12, offset=1e5),
]

PARTS = Case(RBF, "float32", m=200, n=150, d=40)

# Widths, the third from the second by squaring; kernel, sums, and whether there is a signed one.
WIDTHS = [0.01, 0.05, 0.2, 1.0]
OTHERS = [(RBF, 2, False), (RBF, 1, True), ("laplacian", 1, True), ("poly", 1, True)]


def of_others(backend, kernel, n_sums, signed, n=140):
    rng = np.random.default_rng(n_sums)
    X, a = rng.normal(size=(n, 4)) + 10, rng.normal(size=(n, n_sums))
    if kernel == "poly":
        X -= 10
    ordered = Ordered(np.sort(rng.integers(0, 5, n)) * 1.0, rng.uniform(1, 2, n))
    return self_sums(X, a, Kernel(kernel), WIDTHS, ordered if signed else None, backend=backend)


def fused_results():
    """All sums by the programs of Triton; interpreted, unless there is a GPU."""
    import margrave.mam._triton_sums as programs

    module.fused_programs = lambda device: programs
    results = {f"case{i}": case.sums("torch") for i, case in enumerate(CASES)}
    module._ROOM, module._LEAST_ROOM = 2**13, 2**12  # parts of both sides
    results["parts"] = PARTS.sums("torch")
    for i, one in enumerate(OTHERS):
        results[f"others{i}"] = of_others("torch", *one)
    return results


@pytest.fixture(scope="module")
def fused(tmp_path_factory):
    pytest.importorskip("triton", reason="Triton is not installed")
    path = tmp_path_factory.mktemp("fused") / "sums.npz"
    settings = dict(os.environ)
    if not torch.cuda.is_available():
        settings["TRITON_INTERPRET"] = "1"
    subprocess.run([sys.executable, __file__, path], check=True, env=settings)  # noqa: S603
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
    monkeypatch.setattr(module, "_CACHED", 100)
    assert case.error(case.sums("torch")) < EXACT
    exact = of_others("numpy", RBF, 1, True)
    assert of_others("torch", RBF, 1, True) == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_reduced_precision_of_products_is_not_for_sums():
    case = Case(RBF, "float32", m=300, n=400)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        assert case.error(case.sums("torch")) < ROUNDED
    finally:
        torch.set_float32_matmul_precision(before)


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
    message = "The rows are so far apart that their distances are not finite. Scale the features."
    for backend in ("numpy", "torch"):
        with pytest.raises(ValueError, match=message):
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
        (MAMClassifier(), "cut_"),
        (MAMClassifier("laplacian", class_weight="balanced"), "cut_"),
        (MAMClassifier("poly", cut=None), "cut_"),
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
    message = f"{estimator.__name__} needs backend to be 'auto', 'numpy' or 'torch'; got 'cupy'."
    with pytest.raises(ValueError, match=message):
        estimator(backend="cupy").fit(X, np.digitize(y, [0.0]))
    assert clone(estimator(backend="torch")).get_params()["backend"] == "torch"


def test_an_estimator_without_the_parameter_computes_as_always():
    X, y = separable(40)
    assert np.isfinite(RankRidgeRanker().fit(X, y).predict(X)).all()


def test_no_gpu_is_told(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match=NO_GPU) as told:
        kernel_sum([[0.0]], [[1.0]], [1.0], backend="torch")
    assert len(told) == 1
    assert told[0].filename == __file__


def test_auto_takes_a_gpu_for_much_work_only(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    rbf, worth = Kernel(RBF), module.WORTH
    assert module.device_for("auto", rbf, worth).type == "cuda"
    assert module.device_for("torch", rbf, 1).type == "cuda"
    assert module.device_for("auto", rbf, worth - 1) is None
    assert module.device_for("numpy", rbf, worth) is None
    assert module.device_for("auto", Kernel("linear"), worth) is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert module.device_for("auto", rbf, worth) is None


def test_small_work_does_not_import_torch():
    code = (
        "import sys; from margrave.mam import MAMRanker; import numpy as np;"
        "X = np.arange(9.0).reshape(-1, 1); MAMRanker().fit(X, X[:, 0]).predict(X);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0  # noqa: S603


def test_torch_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    message = r"backend='torch' needs PyTorch: pip install 'margrave\[gpu\]'\."
    with pytest.raises(ImportError, match=message):
        kernel_sum([[0.0]], [[1.0]], [1.0], backend="torch")
    assert module.device_for("auto", Kernel(RBF), module.WORTH) is None
    # Or it is, and cannot be imported.
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    assert module.device_for("auto", Kernel(RBF), module.WORTH) is None


def too_large_for(enough, rooms, monkeypatch):
    def limited(sums, complete=module.Sums.all):
        rooms.append(sums.room)
        if sums.room > enough:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return complete(sums)

    monkeypatch.setattr(module.Sums, "all", limited)


def test_too_little_memory_is_tried_with_less(monkeypatch):
    case, rooms = Case(RBF, "float32"), []
    too_large_for(2**24, rooms, monkeypatch)
    assert case.error(case.sums("torch")) < ROUNDED
    assert len(rooms) > 1
    assert rooms == sorted(rooms, reverse=True)


def test_no_memory_at_all(monkeypatch):
    case = Case(RBF, "float32", n=2000, d=125)
    too_large_for(0, [], monkeypatch)
    message = (
        "The GPU has too little free memory: the rows alone take 1 MB. numpy computes on the CPU."
    )
    with pytest.warns(UserWarning, match=message):
        found = case.sums("torch")
    assert (found == case.sums("numpy")).all()
    with pytest.warns(UserWarning, match="The GPU has too little free memory"):
        others = of_others("torch", RBF, 1, True)
    assert (others == of_others("numpy", RBF, 1, True)).all()


class Broken:
    TILE = 128

    def __getattr__(self, name):
        raise RuntimeError("Failed to find C compiler.")


def test_triton_that_does_not_run(monkeypatch):
    monkeypatch.setattr(module, "fused_programs", lambda device: Broken())
    case = Case(RBF, "float32")
    message = (
        r"Triton cannot compute kernel sums here \(RuntimeError: Failed to find C compiler\.\)\. "
        "PyTorch does, in chunks, which takes longer."
    )
    with pytest.warns(UserWarning, match=message):
        found = case.sums("torch")
    assert case.error(found) < ROUNDED


def test_triton_without_memory_is_not_broken(monkeypatch):
    class Full(Broken):
        def __getattr__(self, name):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(module, "fused_programs", lambda device: Full())
    with pytest.warns(UserWarning, match="The GPU has too little free memory"):
        Case(RBF, "float32").sums("torch")


def test_where_triton_is_looked_for(monkeypatch):
    assert module.fused_programs(torch.device("cpu")) is None
    assert hasattr(module.fused_programs(torch.device("cuda")), "TILE")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert module.fused_programs(torch.device("cuda")) is None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # Numpy must not have computed instead.
    warnings.filterwarnings("error", "The GPU has too little|Triton cannot")
    np.savez(sys.argv[1], **fused_results())
