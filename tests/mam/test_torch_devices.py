"""Where sums by PyTorch are computed, and what happens if that fails."""

import subprocess
import sys

import pytest
from tests.mam.torch_cases import RBF, ROUNDED, Case, of_others, torch

from margrave.mam import Kernel, kernel_sum
from margrave.mam.gpu import _backend as module

pytestmark = pytest.mark.filterwarnings("ignore:.*backend='torch'.*GPU")


def test_no_gpu_is_a_warning(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match=r"backend='torch'.*GPU") as caught:
        kernel_sum([[0.0]], [[1.0]], [1.0], backend="torch")
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_auto_takes_a_gpu_for_much_work_only(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "zeros", lambda *shape, **options: None)
    rbf, worth = Kernel(RBF), module.MINIMUM_VALUES
    assert module.choose_device("auto", rbf, worth).type == "cuda"
    assert module.choose_device("torch", rbf, 1).type == "cuda"
    assert module.choose_device("auto", rbf, worth - 1) is None
    assert module.choose_device("numpy", rbf, worth) is None
    assert module.choose_device("auto", Kernel("linear"), worth) is None
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert module.choose_device("auto", rbf, worth) is None


def test_small_work_does_not_import_torch():
    code = (
        "import sys; from margrave.mam import MAMRanker; import numpy as np;"
        "X = np.arange(9.0).reshape(-1, 1); MAMRanker().fit(X, X[:, 0]).predict(X);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0  # noqa: S603


def test_torch_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"backend='torch'.*\bgpu\b"):
        kernel_sum([[0.0]], [[1.0]], [1.0], backend="torch")
    assert module.choose_device("auto", Kernel(RBF), module.MINIMUM_VALUES) is None
    # Or it is, and cannot be imported.
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    assert module.choose_device("auto", Kernel(RBF), module.MINIMUM_VALUES) is None


FORKED = "Cannot re-initialize CUDA in forked subprocess"


@pytest.fixture
def broken_gpu(monkeypatch):
    def fail(*shape, **options):
        raise RuntimeError(f"{FORKED}.\nCompile with more.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "zeros", fail)
    monkeypatch.setattr(module, "MINIMUM_VALUES", 1)
    module._warn_once.cache_clear()


def test_auto_does_without_a_gpu_that_does_not_start(broken_gpu):
    case = Case(RBF, "float32")
    with pytest.warns(UserWarning, match=FORKED) as caught:
        found = [case.sums("auto") for _ in range(2)]
    assert len(caught) == 1
    assert "Compile" not in str(caught[0].message)  # of the error its first line
    assert caught[0].filename.endswith("torch_cases.py")
    assert (found == case.sums("numpy")).all()
    assert (of_others("auto", RBF, 1, True) == of_others("numpy", RBF, 1, True)).all()


def test_torch_wants_a_gpu_that_starts(broken_gpu):
    with pytest.raises(RuntimeError, match=f"backend='torch'.*{FORKED}"):
        Case(RBF, "float32").sums("torch")


def test_a_gpu_that_fails_later(monkeypatch):
    def fail(data):
        raise RuntimeError(f"{error}\nCompile with more.")

    monkeypatch.setattr(module, "compute_sums", fail)
    case, error = Case(RBF, "float32"), "CUDA error: unspecified launch failure"
    with pytest.warns(UserWarning, match=error):
        found = case.sums("torch")
    assert (found == case.sums("numpy")).all()
    error = "shapes cannot be multiplied"
    with pytest.raises(RuntimeError, match=error):
        case.sums("torch")


def too_large_for(enough, rooms, monkeypatch):
    def limited(data, complete=module.compute_sums):
        rooms.append(data.memory)
        if data.memory > enough:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
        return complete(data)

    monkeypatch.setattr(module, "compute_sums", limited)


def test_too_little_memory_is_tried_with_less(monkeypatch):
    case, rooms = Case(RBF, "float32"), []
    too_large_for(2**24, rooms, monkeypatch)
    assert case.error(case.sums("torch")) < ROUNDED
    assert len(rooms) > 1
    assert rooms == sorted(rooms, reverse=True)


def test_no_memory_at_all(monkeypatch):
    case = Case(RBF, "float32", n=2000, d=125)
    too_large_for(0, [], monkeypatch)
    with pytest.warns(UserWarning, match=r"GPU.*\b1 MB\b"):
        found = case.sums("torch")
    assert (found == case.sums("numpy")).all()
    with pytest.warns(UserWarning, match=r"GPU.*\bMB\b"):
        others = of_others("torch", RBF, 1, True)
    assert (others == of_others("numpy", RBF, 1, True)).all()


class Broken:
    TILE = 128

    def __getattr__(self, name):
        raise RuntimeError("Failed to find C compiler.")


def test_triton_that_does_not_run(monkeypatch):
    monkeypatch.setattr(module, "load_programs", lambda device: Broken())
    case = Case(RBF, "float32")
    with pytest.warns(UserWarning, match=r"Triton.*Failed to find C compiler"):
        found = case.sums("torch")
    assert case.error(found) < ROUNDED


def test_triton_without_memory_is_not_broken(monkeypatch):
    class Full(Broken):
        def __getattr__(self, name):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(module, "load_programs", lambda device: Full())
    with pytest.warns(UserWarning, match=r"GPU.*\bMB\b"):
        Case(RBF, "float32").sums("torch")


def test_where_triton_is_looked_for(monkeypatch):
    assert module.load_programs(torch.device("cpu")) is None
    assert hasattr(module.load_programs(torch.device("cuda")), "TILE")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert module.load_programs(torch.device("cuda")) is None
