"""Choose the device, compute the sums there, and fall back to numpy if the GPU fails."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from margrave._messages import missing_extra
from margrave._typing import Floats
from margrave.mam._kernels import FLOAT64_LIMIT, Kernel
from margrave.mam.gpu._fused import FusedSums
from margrave.mam.gpu._torch import DeviceTask, SumTask, sum_chunks

MINIMUM_VALUES = 1e10
"""Kernel values from which "auto" uses a GPU: seconds on a CPU, about the start time of PyTorch."""

_MEMORY = 256 * 2**20  # bytes for the prepared rows of either set, or for a chunk of the matrix
_LEAST_MEMORY = 2**20


def choose_device(backend: str, kernel: Kernel, n_values: float) -> Any:
    """Choose the device on which PyTorch computes so many kernel values; None for numpy.

    Raises
    ------
    ImportError
        If backend is "torch" and PyTorch is not installed.
    RuntimeError
        If backend is "torch" and the GPU does not start; with "auto", a warning, once.
    """
    if backend == "numpy" or kernel.name not in ("rbf", "laplacian", "poly"):
        return None
    if backend == "auto" and (n_values < MINIMUM_VALUES or find_spec("torch") is None):
        return None
    try:
        torch = import_module("torch")
    except ImportError as error:
        if backend == "auto":
            return None
        raise ImportError(missing_extra("backend='torch'", "PyTorch", "gpu")) from error
    if torch.cuda.is_available():
        return _start_gpu(torch, backend)
    if backend == "auto":
        return None
    warnings.warn(
        "backend='torch' finds no GPU: PyTorch computes on the CPU. backend='numpy' is faster.",
        UserWarning,
        stacklevel=4,
    )
    return torch.device("cpu")


def _start_gpu(torch: Any, backend: str) -> Any:
    """Allocate a first number on the GPU; if it fails and "auto" chose it, warn and return None."""
    try:
        torch.zeros(1, dtype=torch.float32, device="cuda")
    except RuntimeError as error:
        if backend == "auto":
            _warn_once(f"The GPU does not start ({_first_line(error)}). numpy computes on the CPU.")
            return None
        raise RuntimeError(
            f"backend='torch' finds a GPU that does not start ({_first_line(error)}). "
            "backend='numpy' needs none."
        ) from error
    return torch.device("cuda")


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=6)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")


def sums_by_torch(task: SumTask, device: Any) -> Floats | None:
    """Compute sums of shape (n_gammas, m, n_out); None, with a warning, if the GPU fails."""
    torch = import_module("torch")
    memory = _MEMORY
    while memory >= _LEAST_MEMORY:
        try:
            with torch.inference_mode():
                data = DeviceTask(torch, task, device, memory)
                sums: Floats = compute_sums(data).cpu().numpy()
            return sums
        except torch.cuda.OutOfMemoryError:
            memory //= 4
        except RuntimeError as error:
            if "CUDA" not in str(error):
                raise
            warnings.warn(
                f"The GPU failed ({_first_line(error)}). numpy computes on the CPU.",
                UserWarning,
                stacklevel=4,
            )
            return None
        torch.cuda.empty_cache()
    warnings.warn(
        "The GPU has too little free memory: rows, weights and sums alone take "
        f"{task.n_bytes / 1e6:.0f} MB. numpy computes on the CPU.",
        UserWarning,
        stacklevel=4,
    )
    return None


def compute_sums(data: DeviceTask) -> Any:
    """Compute the sums at all rows of Z on the device, in float64: fused if possible."""
    programs = load_programs(data.device)
    far = data.task.kernel.name == "rbf" and data.largest_exponent > FLOAT64_LIMIT
    if programs is None or far:
        return sum_chunks(data).mul_(data.weight_unit)
    try:
        return FusedSums(data, programs).compute().mul_(data.weight_unit)
    except data.torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # no compiler, an older GPU: chunks need neither
        warnings.warn(
            f"Triton cannot compute kernel sums here ({type(error).__name__}: {error}). "
            "PyTorch computes them in chunks, which takes longer.",
            UserWarning,
            stacklevel=5,
        )
        return sum_chunks(data).mul_(data.weight_unit)


def load_programs(device: Any) -> Any:
    """Import the Triton programs; None if there is no Triton or the device is no GPU."""
    if device.type != "cuda" or find_spec("triton") is None:
        return None
    return import_module("margrave.mam.gpu._triton")
