"""Sums of kernels by PyTorch: on a GPU fused by Triton, else in chunks of the matrix.

The sums of document 002, as in `_sums` and `_self_sums`, which call this module. PyTorch is an
extra and takes seconds to import: it is not touched before work comes that is worth it.

Samples in float32 are computed in float32, with sums in float64; those in float64 in float64, and
leave-one-out always so. Where float32 would lose the distances of a narrow width, as in `_kernels`,
they are computed in float64 and rounded.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from margrave.mam._exponential import PER_UNIT, Tile
from margrave.mam._fused_sums import Fused
from margrave.mam._kernels import (
    LARGEST_EXPONENTS,
    SURE_IN_FLOAT32,
    SURE_IN_FLOAT64,
    Floats,
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


def device_for(backend: str, kernel: Kernel, n_values: float) -> Any:
    """Where PyTorch shall compute so many kernel values; None for numpy.

    Raises
    ------
    ImportError
        If PyTorch is asked for and not installed.
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
        raise ImportError("backend='torch' needs PyTorch: pip install 'margrave[gpu]'.") from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    if backend == "auto":
        return None
    warnings.warn(
        "backend='torch' finds no GPU: PyTorch computes on the CPU. backend='numpy' is quicker.",
        UserWarning,
        stacklevel=4,
    )
    return torch.device("cpu")


def torch_sums(task: Task, device: Any) -> Floats | None:
    """The sums, of shape (n_gammas, m, n_out); None, with a warning, if the GPU has no room."""
    torch = import_module("torch")
    room = _ROOM
    while room >= _LEAST_ROOM:
        try:
            with torch.inference_mode():
                sums: Floats = Sums(torch, task, device, room).all().cpu().numpy()
            return sums
        except torch.cuda.OutOfMemoryError:
            room //= 4
        torch.cuda.empty_cache()
    bytes_needed = (task.X.nbytes + (task.Z is not task.X) * task.Z.nbytes) / 1e6
    warnings.warn(
        f"The GPU has too little free memory: the rows alone take {bytes_needed:.0f} MB. "
        "numpy computes on the CPU.",
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
            return self._chunked() * self.weight
        try:
            return Fused(self, programs).all() * self.weight
        except self.torch.cuda.OutOfMemoryError:
            raise
        except Exception as error:  # no compiler, an older GPU: whatever it is, chunks need less
            warnings.warn(
                f"Triton cannot compute kernel sums here ({type(error).__name__}: {error}). "
                "PyTorch does, in chunks, which takes longer.",
                UserWarning,
                stacklevel=6,
            )
            return self._chunked() * self.weight

    def _sent(self, values: Any) -> Any:
        writable = np.require(values, requirements=["C", "W"])
        return self.torch.from_numpy(writable).to(self.device)

    def _measure(self) -> None:
        """Refuse rows that are too far apart; for RBF also their middle and greatest length."""
        torch, name = self.torch, self.task.kernel.name
        if name == "poly":
            return
        if name == "laplacian":
            ends = [torch.stack([s.amin(0), s.amax(0)]).double() for s in (self.Z, self.X)]
            spans = torch.maximum(ends[0][1], ends[1][1]) - torch.minimum(ends[0][0], ends[1][0])
            self.sharpest = float(spans.sum())
            check_distances(self.sharpest, self.task.X.dtype, float(spans.max()))
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
        torch, name = self.torch, self.task.kernel.name
        if name == "laplacian":
            return side, None
        exact = self.single and torch.get_float32_matmul_precision() == "highest"
        double = not (exact and (name == "poly" or self.sharpest <= SURE_IN_FLOAT32))
        rows = self.rows(side, double)
        return rows, rows.square().sum(1) if name == "rbf" else None

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
        return (base.float() if self.single else base).clamp_(max=0.0)

    def _chunk(self, base: Any, rows: slice, columns: slice) -> Any:
        """What a chunk adds to the sums of its rows, for every γ; spoils the base."""
        torch, task = self.torch, self.task
        same = None
        if task.alone:
            places = torch.arange(base.shape[0], device=self.device) + rows.start
            same = (
                places[:, None] == torch.arange(base.shape[1], device=self.device) + columns.start
            )
        a, scales, sums = self.a[columns].to(base.dtype), self.scales(), []
        values = base
        for step, (gamma, squarings) in enumerate(zip(scales, task.squarings, strict=True)):
            if squarings:
                for _ in range(squarings):
                    values = values.square_()
            else:
                values = base.mul_(gamma) if step == len(scales) - 1 else base * gamma
                values = self._finished(values)
            if same is not None:
                values = values.masked_fill_(same, 0.0)
            found = [(values @ a).double()]
            if task.levels is not None:
                signs = torch.sign(self.levels[columns] - self.levels[rows, None])
                found.append(((values * signs) @ self.b[columns].to(base.dtype)).double()[:, None])
            sums.append(torch.cat(found, 1))
        return torch.stack(sums)

    def _finished(self, scaled: Any) -> Any:
        """Kernel values, in place."""
        kernel = self.task.kernel
        if kernel.is_exponential:
            return scaled.exp2_()
        return scaled.add_(kernel.coef0).pow_(int(kernel.degree))
