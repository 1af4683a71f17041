"""Sums of kernels by PyTorch: on a GPU fused by Triton, else in chunks of the matrix.

The sums of document 002, as in `_sums` and `_self_sums`, which call this module. PyTorch is an
extra and takes seconds to import: it is not touched before work comes that is worth it.

Samples in float32 are computed in float32, with sums in float64; those in float64 in float64, and
leave-one-out always so. Where float32 would lose the distances of a narrow width or of many
features, they are computed in float64 and rounded.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from margrave._messages import missing_extra
from margrave._typing import Floats
from margrave.mam._exponential import PER_UNIT, Tile
from margrave.mam._fused_sums import Fused
from margrave.mam._kernels import (
    LARGEST_EXPONENTS,
    SURE_IN_FLOAT32,
    SURE_IN_FLOAT64,
    Kernel,
    check_distances,
)

WORTH = 1e10
"""Kernel values from which on "auto" takes a GPU: seconds of a CPU, as PyTorch takes to start."""

BACKENDS = ("auto", "numpy", "torch")

_ROOM = 256 * 2**20  # bytes for what is made of either set of rows, or of a chunk of the matrix
_LEAST_ROOM = 2**20
_CACHED = 2**20  # values of a chunk on a CPU
_AT_ONCE = 2**17

# Up to these, an exponent times √features, sums over features in float32 are exact enough (an error
# of 5e-6): of squares, γ times a squared length being the exponent; and of |x − z|.
_SURE_SQUARES, _SURE_SIZES = 64.0, 128.0
_LEAST_EXPONENT = 90.0  # from here on values of float32 are 0


@dataclass(frozen=True)
class Task:
    """Sums to compute: Σ_j a_j K(x_j, z_i) for every γ.

    Attributes
    ----------
    kernel : Kernel
        Its own gamma is not used.
    gammas : sequence of float
        Values of γ.
    squarings : sequence of int
        How often the values of the γ before are squared for those of a γ; 0 if computed anew.
    Z, X : ndarray of shapes (m, d) and (n, d)
        Rows of one floating type.
    a : ndarray of shape (n, n_sums)
        Weights.
    alone : bool
        Whether Z is X, and each sum is without the sample itself.
    levels, weights : ndarray of shape (n,), optional
        For a further sum Σ_j b_j sign(l_j − l_i) K(x_j, x_i).
    """

    kernel: Kernel
    gammas: Sequence[float]
    squarings: Sequence[int]
    Z: Tile
    X: Tile
    a: Floats
    alone: bool = False
    levels: Floats | None = None
    weights: Floats | None = None

    @property
    def n_out(self) -> int:
        """How many sums there are."""
        return int(self.a.shape[1]) + (self.levels is not None)

    @property
    def n_bytes(self) -> int:
        """What rows, weights and sums take, however few rows are computed at once."""
        rows = self.X.nbytes + (self.Z is not self.X) * self.Z.nbytes
        return rows + self.a.nbytes + 8 * len(self.gammas) * len(self.Z) * self.n_out


def device_for(backend: str, kernel: Kernel, n_values: float) -> Any:
    """Where PyTorch shall compute so many kernel values; None for numpy.

    A GPU that does not start is told once if the choice was ours.

    Raises
    ------
    ImportError
        If PyTorch is asked for and not installed.
    RuntimeError
        If it is asked for and the GPU does not start.
    """
    if backend == "numpy" or kernel.name not in ("rbf", "laplacian", "poly"):
        return None
    if backend == "auto" and (n_values < WORTH or find_spec("torch") is None):
        return None
    try:
        torch = import_module("torch")
    except ImportError as error:
        if backend == "auto":
            return None
        raise ImportError(missing_extra("backend='torch'", "PyTorch", "gpu")) from error
    if torch.cuda.is_available():
        return _started(torch, backend)
    if backend == "auto":
        return None
    warnings.warn(
        "backend='torch' finds no GPU: PyTorch computes on the CPU. backend='numpy' is quicker.",
        UserWarning,
        stacklevel=4,
    )
    return torch.device("cpu")


def _started(torch: Any, backend: str) -> Any:
    """The GPU, after a first number on it; None, with a warning, if it fails and need not work."""
    try:
        torch.zeros(1, dtype=torch.float32, device="cuda")
    except RuntimeError as error:
        if backend == "auto":
            _tell_once(f"The GPU does not start ({_first_line(error)}). numpy computes on the CPU.")
            return None
        raise RuntimeError(
            f"backend='torch' finds a GPU that does not start ({_first_line(error)}). "
            "backend='numpy' needs none."
        ) from error
    return torch.device("cuda")


@cache
def _tell_once(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=6)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(".")


def torch_sums(task: Task, device: Any) -> Floats | None:
    """The sums, of shape (n_gammas, m, n_out); None, with a warning, if the GPU fails."""
    torch = import_module("torch")
    room = _ROOM
    while room >= _LEAST_ROOM:
        try:
            with torch.inference_mode():
                sums: Floats = Sums(torch, task, device, room).all().cpu().numpy()
            return sums
        except torch.cuda.OutOfMemoryError:
            room //= 4
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


def fused_programs(device: Any) -> Any:
    """The programs of Triton, or None where it is not."""
    if device.type != "cuda" or find_spec("triton") is None:
        return None
    return import_module("margrave.mam._triton_sums")


class Sums:
    """One task on one device, in the room that there is."""

    def __init__(self, torch: Any, task: Task, device: Any, room: int) -> None:
        self.torch, self.task, self.room = torch, task, room
        self.device = device
        # Rows that are prepared at once: a few copies of them in float64.
        self.at_once = max(1, min(_AT_ONCE, room // (64 * task.X.shape[1])))
        self.X = self._sent(task.X)
        self.Z = self.X if task.Z is task.X else self._sent(task.Z)
        self.single = self.X.dtype == torch.float32
        self.unit = self.sharpest = 1.0
        self.sure = True  # whether float32 holds the distances
        self.middle = torch.zeros(self.X.shape[1], dtype=torch.float64, device=device)
        self._measure()
        # Sums of weights that are all below 1 in size stay in the range of float32.
        self.weight = float(np.abs(task.a).max(initial=0.0)) or 1.0
        self.a = self._sent(task.a / self.weight)
        self.levels = self.b = self.a[:, 0]
        if task.levels is not None and task.weights is not None:
            self.levels, self.b = self._sent(task.levels), self._sent(task.weights / self.weight)

    def all(self) -> Any:
        """The sums of all rows of Z, in float64."""
        programs = fused_programs(self.device)
        far = self.task.kernel.name == "rbf" and self.sharpest > SURE_IN_FLOAT64
        if programs is None or far:
            return self._chunked().mul_(self.weight)
        try:
            return Fused(self, programs).all().mul_(self.weight)
        except self.torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:  # no compiler, an older GPU: whatever it is, chunks need less
            warnings.warn(
                f"Triton cannot compute kernel sums here ({type(error).__name__}: {error}). "
                "PyTorch does, in chunks, which takes longer.",
                UserWarning,
                stacklevel=6,
            )
            return self._chunked().mul_(self.weight)

    def _sent(self, values: Any) -> Any:
        writable = np.require(values, requirements=["C", "W"])
        return self.torch.from_numpy(writable).to(self.device)

    def _measure(self) -> None:
        """Refuse rows that are too far apart; for RBF also their middle and greatest length."""
        torch, name = self.torch, self.task.kernel.name
        if name == "poly":
            return
        if name == "laplacian":
            self._measure_sizes()
            return
        self.middle = self.X.mean(0, dtype=torch.float64)
        squares = [
            float((part.double() - self.middle).square().sum(1).max())
            for side in (self.X, self.Z)
            for part in side.split(self.at_once)
        ]
        # NaN, of rows beyond all numbers, must not get lost.
        square = float(np.max(squares))
        check_distances(square, self.task.X.dtype, float(np.sqrt(square)))
        self.unit = float(np.sqrt(square)) or 1.0
        self.sharpest = max(self.task.gammas) * self.unit**2
        most = min(SURE_IN_FLOAT32, _SURE_SQUARES / np.sqrt(self.X.shape[1]))
        self.sure = self.sharpest <= most

    def _measure_sizes(self) -> None:
        """Refuse rows that are too far apart in Σ|x − z|, and see whether float32 will do."""
        torch = self.torch
        ends = [torch.stack([s.amin(0), s.amax(0)]).double() for s in (self.Z, self.X)]
        low, high = torch.minimum(ends[0][0], ends[1][0]), torch.maximum(ends[0][1], ends[1][1])
        self.sharpest = float((high - low).sum())
        check_distances(self.sharpest, self.task.X.dtype, float((high - low).max()))
        middle = (low + high) / 2
        farthest = 0.0
        for side in (self.Z, self.X):
            parts = side.split(self.at_once)
            farthest += max(float((p.double() - middle).abs().sum(1).max()) for p in parts)
        exponent = min(max(self.task.gammas) * farthest, _LEAST_EXPONENT)
        self.sure = exponent * np.sqrt(self.X.shape[1]) <= _SURE_SIZES

    def scales(self) -> list[float]:
        """Each γ in the units of the rows, as exponents of 2 take it."""
        if self.task.kernel.name == "poly":
            return list(self.task.gammas)
        largest = LARGEST_EXPONENTS[self.task.X.dtype.type]
        farthest = 1.0 if self.task.kernel.name == "rbf" else self.sharpest or 1.0
        units = self.unit**2
        return [min(g * units, largest / farthest) * PER_UNIT for g in self.task.gammas]

    def rows(self, side: Any, double: bool = True) -> Any:
        """Rows around the middle, none longer than 1 for RBF."""
        if self.task.kernel.name != "rbf":
            return side.double() if double else side
        rows = (side.double() - self.middle) / self.unit
        return rows if double else rows.float()

    def _chunked(self) -> Any:
        """Chunk by chunk of the matrix: its values are stored, but never all of them."""
        torch, task = self.torch, self.task
        at_most = _CACHED if self.device.type == "cpu" else self.room // 8
        n_columns = min(len(self.X), 2 ** (int(np.log2(at_most)) // 2 + 1))
        n_rows = max(1, at_most // n_columns)
        shape = (len(task.gammas), len(self.Z), task.n_out)
        sums = torch.zeros(shape, dtype=torch.float64, device=self.device)
        for j in range(0, len(self.X), n_columns):
            columns = slice(j, j + n_columns)
            right = self._prepared(self.X[columns])
            for i in range(0, len(self.Z), n_rows):
                rows = slice(i, i + n_rows)
                base = self._base(self._prepared(self.Z[rows]), right)
                sums[:, rows] += self._chunk(base, rows, columns)
        return sums

    def _prepared(self, side: Any) -> tuple[Any, Any]:
        """Rows in the type that they need, and their squared lengths for RBF."""
        name = self.task.kernel.name
        if name == "laplacian":
            return side if self.sure else side.double(), None
        rows = self.rows(side, double=not (self.single and self.sure and self._is_exact()))
        return rows, rows.square().sum(1) if name == "rbf" else None

    def _is_exact(self) -> bool:
        """Whether products of float32 are what they say; users may have allowed fewer bits."""
        try:
            return bool(self.torch.get_float32_matmul_precision() == "highest")
        except RuntimeError:  # PyTorch has two ways to say it, and does not want both
            return False

    def _base(self, left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
        """What the kernel is a function of: −distance, or the product."""
        torch, name = self.torch, self.task.kernel.name
        (z, z_squares), (x, x_squares) = left, right
        if name == "laplacian":
            return torch.cdist(z, x, p=1.0).neg_()
        if name == "poly":
            return z @ x.T
        if self.sharpest > SURE_IN_FLOAT64:
            far = torch.cdist(z, x, compute_mode="donot_use_mm_for_euclid_dist")
            return far.square_().neg_()
        base = torch.addmm(x_squares, z, x.T, alpha=2.0, beta=-1.0).sub_(z_squares[:, None])
        return base.clamp_(max=0.0)

    def _chunk(self, base: Any, rows: slice, columns: slice) -> Any:
        """What a chunk adds to the sums of its rows, for every γ; spoils the base."""
        torch, task = self.torch, self.task
        same = None
        if task.alone:
            places = torch.arange(base.shape[0], device=self.device) + rows.start
            same = (
                places[:, None] == torch.arange(base.shape[1], device=self.device) + columns.start
            )
        a, scales, sums = self.a[columns], self.scales(), []
        values = base
        for step, (gamma, squarings) in enumerate(zip(scales, task.squarings, strict=True)):
            if squarings:
                for _ in range(squarings):
                    values = values.square_()
            else:
                values = base.mul_(gamma) if step == len(scales) - 1 else base * gamma
                values = self._finished(values.float() if self.single else values)
            if same is not None:
                values = values.masked_fill_(same, 0.0)
            found = [self._product(values, a)]
            if task.levels is not None:
                signs = torch.sign(self.levels[columns] - self.levels[rows, None])
                found.append(self._product(values * signs, self.b[columns, None]))
            sums.append(torch.cat(found, 1))
        return torch.stack(sums)

    def _product(self, values: Any, weights: Any) -> Any:
        """Values times weights, in float64; by a product of float32 only where that is exact."""
        if self.single and not self._is_exact():
            values = values.double()
        return (values @ weights.to(values.dtype)).double()

    def _finished(self, scaled: Any) -> Any:
        """Kernel values, in place."""
        kernel = self.task.kernel
        if kernel.is_exponential:
            return scaled.exp2_()
        return scaled.add_(kernel.coef0).pow_(int(kernel.degree))
