"""The data of kernel sums on a device, and sums by PyTorch in chunks of the kernel matrix.

Samples in float32 are computed in float32, with sums in float64; those in float64, and
leave-one-out, in float64. Where float32 would lose the distances of a narrow width or of many
features, they are computed in float64 and rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave._typing import AnyFloats, Floats
from margrave.mam._kernels import (
    FLOAT32_LIMIT,
    FLOAT64_LIMIT,
    LARGEST_EXPONENTS,
    LOG2_E,
    Kernel,
    check_distances,
)

_CACHED_VALUES = 2**20  # values of a chunk on a CPU
_ROWS_AT_ONCE = 2**17

# Limits on an exponent times √features, up to which sums over features in float32 are precise
# enough (an error of 5e-6): of squares, where γ times a squared length is the exponent; of |x − z|.
_SQUARES_LIMIT, _ABSOLUTE_LIMIT = 64.0, 128.0
_VANISHING_EXPONENT = 90.0  # from here on values of float32 are 0


@dataclass(frozen=True)
class SumTask:
    """Sums to compute: Σ_j a_j K(x_j, z_i) for every γ."""

    kernel: Kernel  # the kernel; its gamma is not used
    gammas: Sequence[float]  # values of γ
    # How often the values of the γ before are squared for each γ; 0 for an exponential.
    squarings: Sequence[int]
    Z: AnyFloats  # (m, d): rows of one floating type
    X: AnyFloats  # (n, d): rows of the same type
    a: Floats  # (n, n_sums): weights
    leave_one_out: bool = False  # whether Z is X, and each sum is without the sample itself
    # l and b of one more sum Σ_j b_j sign(l_j − l_i) K(x_j, x_i).
    levels: Floats | None = None
    weights: Floats | None = None

    @property
    def n_out(self) -> int:
        """The number of sums."""
        return int(self.a.shape[1]) + (self.levels is not None)

    @property
    def n_bytes(self) -> int:
        """The memory of rows, weights and sums, however few rows are computed at once."""
        rows = self.X.nbytes + (self.Z is not self.X) * self.Z.nbytes
        return rows + self.a.nbytes + 8 * len(self.gammas) * len(self.Z) * self.n_out


class DeviceTask:
    """A task with its rows and weights on a device, and their scale.

    Parameters
    ----------
    torch : module
        PyTorch.
    task : SumTask
        The task.
    device : torch.device
        The device.
    memory : int
        Bytes for the prepared rows of either set, or for a chunk of the matrix.

    Attributes
    ----------
    is_single : bool
        Whether the rows are in float32.
    float32_suffices : bool
        Whether float32 holds the distances.
    centre, unit : tensor and float
        The mean of X and the largest length around it, of the RBF kernel.
    largest_exponent : float
        The largest γ times the largest squared length, or the sum of the spans (Laplacian).
    weight_unit : float
        The largest weight, by which the weights are divided: sums stay in the range of float32.
    """

    def __init__(self, torch: Any, task: SumTask, device: Any, memory: int) -> None:
        self.torch, self.task, self.memory = torch, task, memory
        self.device = device
        # Rows that are prepared at once: a few copies of them in float64.
        self.rows_at_once = max(1, min(_ROWS_AT_ONCE, memory // (64 * task.X.shape[1])))
        self.X = self._send(task.X)
        self.Z = self.X if task.Z is task.X else self._send(task.Z)
        self.is_single = self.X.dtype == torch.float32
        self.unit = self.largest_exponent = 1.0
        self.float32_suffices = True
        self.centre = torch.zeros(self.X.shape[1], dtype=torch.float64, device=device)
        if task.kernel.name == "rbf":
            self._measure_lengths()
        elif task.kernel.name == "laplacian":
            self._measure_spans()
        self.weight_unit = float(np.abs(task.a).max(initial=0.0)) or 1.0
        self.a = self._send(task.a / self.weight_unit)
        self.levels = self.b = self.a[:, 0]
        if task.levels is not None and task.weights is not None:
            self.levels = self._send(task.levels)
            self.b = self._send(task.weights / self.weight_unit)

    def _send(self, values: Any) -> Any:
        writable = np.require(values, requirements=["C", "W"])
        return self.torch.from_numpy(writable).to(self.device)

    def _measure_lengths(self) -> None:
        """Find the centre and the largest length; raise an error if distances are not finite."""
        self.centre = self.X.mean(0, dtype=self.torch.float64)
        squares = [
            float((part.double() - self.centre).square().sum(1).max())
            for side in (self.X, self.Z)
            for part in side.split(self.rows_at_once)
        ]
        # numpy's maximum keeps the NaN of rows that are not finite.
        square = float(np.max(squares))
        check_distances(square, self.task.X.dtype, float(np.sqrt(square)))
        self.unit = float(np.sqrt(square)) or 1.0
        self.largest_exponent = max(self.task.gammas) * self.unit**2
        limit = min(FLOAT32_LIMIT, _SQUARES_LIMIT / np.sqrt(self.X.shape[1]))
        self.float32_suffices = self.largest_exponent <= limit

    def _measure_spans(self) -> None:
        """Find the largest Σ|x − z|; raise an error if it is not finite."""
        torch = self.torch
        ends = [torch.stack([s.amin(0), s.amax(0)]).double() for s in (self.Z, self.X)]
        low, high = torch.minimum(ends[0][0], ends[1][0]), torch.maximum(ends[0][1], ends[1][1])
        self.largest_exponent = float((high - low).sum())
        check_distances(self.largest_exponent, self.task.X.dtype, float((high - low).max()))
        middle = (low + high) / 2
        farthest = 0.0
        for side in (self.Z, self.X):
            parts = side.split(self.rows_at_once)
            farthest += max(float((p.double() - middle).abs().sum(1).max()) for p in parts)
        exponent = min(max(self.task.gammas) * farthest, _VANISHING_EXPONENT)
        self.float32_suffices = exponent * np.sqrt(self.X.shape[1]) <= _ABSOLUTE_LIMIT

    def scales(self) -> list[float]:
        """Convert each γ to the units of the rows, for exponents of 2."""
        if self.task.kernel.name == "poly":
            return list(self.task.gammas)
        largest = LARGEST_EXPONENTS[self.task.X.dtype.type]
        farthest = 1.0 if self.task.kernel.name == "rbf" else self.largest_exponent or 1.0
        units = self.unit**2
        return [min(g * units, largest / farthest) * LOG2_E for g in self.task.gammas]

    def prepare_rows(self, side: Any, double: bool = True) -> Any:
        """Centre rows and divide them by the unit, for the RBF kernel."""
        if self.task.kernel.name != "rbf":
            return side.double() if double else side
        rows = (side.double() - self.centre) / self.unit
        return rows if double else rows.float()


def sum_chunks(data: DeviceTask) -> Any:
    """Compute the sums chunk by chunk of the matrix: its values are stored, but never all."""
    torch, task = data.torch, data.task
    largest = _CACHED_VALUES if data.device.type == "cpu" else data.memory // 8
    n_columns = min(len(data.X), 2 ** (int(np.log2(largest)) // 2 + 1))
    n_rows = max(1, largest // n_columns)
    shape = (len(task.gammas), len(data.Z), task.n_out)
    sums = torch.zeros(shape, dtype=torch.float64, device=data.device)
    for j in range(0, len(data.X), n_columns):
        columns = slice(j, j + n_columns)
        right = _with_squares(data, data.X[columns])
        for i in range(0, len(data.Z), n_rows):
            rows = slice(i, i + n_rows)
            base = _base(data, _with_squares(data, data.Z[rows]), right)
            sums[:, rows] += _sum_chunk(data, base, rows, columns)
    return sums


def _with_squares(data: DeviceTask, side: Any) -> tuple[Any, Any]:
    """Convert rows to the type that they need, with their squared lengths for the RBF kernel."""
    name = data.task.kernel.name
    if name == "laplacian":
        return side if data.float32_suffices else side.double(), None
    single = data.is_single and data.float32_suffices and _products_are_exact(data.torch)
    rows = data.prepare_rows(side, double=not single)
    return rows, rows.square().sum(1) if name == "rbf" else None


def _products_are_exact(torch: Any) -> bool:
    """Whether products of float32 have full precision; users may have allowed fewer bits."""
    try:
        return bool(torch.get_float32_matmul_precision() == "highest")
    except RuntimeError:  # PyTorch has two settings for it, and refuses to read a mixture
        return False


def _base(data: DeviceTask, left: tuple[Any, Any], right: tuple[Any, Any]) -> Any:
    """Compute the argument of the kernel: −distance, or the product."""
    torch, name = data.torch, data.task.kernel.name
    (z, z_squares), (x, x_squares) = left, right
    if name == "laplacian":
        return torch.cdist(z, x, p=1.0).neg_()
    if name == "poly":
        return z @ x.T
    if data.largest_exponent > FLOAT64_LIMIT:
        distances = torch.cdist(z, x, compute_mode="donot_use_mm_for_euclid_dist")
        return distances.square_().neg_()
    base = torch.addmm(x_squares, z, x.T, alpha=2.0, beta=-1.0).sub_(z_squares[:, None])
    return base.clamp_(max=0.0)


def _sum_chunk(data: DeviceTask, base: Any, rows: slice, columns: slice) -> Any:
    """Sum a chunk for its rows and every γ; overwrites the base."""
    torch, task = data.torch, data.task
    same = None
    if task.leave_one_out:
        places = torch.arange(base.shape[0], device=data.device) + rows.start
        same = places[:, None] == torch.arange(base.shape[1], device=data.device) + columns.start
    a, scales, sums = data.a[columns], data.scales(), []
    values = base
    for step, (gamma, squarings) in enumerate(zip(scales, task.squarings, strict=True)):
        if squarings:
            for _ in range(squarings):
                values = values.square_()
        else:
            values = base.mul_(gamma) if step == len(scales) - 1 else base * gamma
            values = _kernel_values(task.kernel, values.float() if data.is_single else values)
        if same is not None:
            values = values.masked_fill_(same, 0.0)
        found = [_product(data, values, a)]
        if task.levels is not None:
            signs = torch.sign(data.levels[columns] - data.levels[rows, None])
            found.append(_product(data, values * signs, data.b[columns, None]))
        sums.append(torch.cat(found, 1))
    return torch.stack(sums)


def _product(data: DeviceTask, values: Any, weights: Any) -> Any:
    """Multiply values by weights, in float32 only where that is exact; return float64."""
    if data.is_single and not _products_are_exact(data.torch):
        values = values.double()
    return (values @ weights.to(values.dtype)).double()


def _kernel_values(kernel: Kernel, scaled: Any) -> Any:
    """Compute kernel values from scaled arguments, in place."""
    if kernel.is_exponential:
        return scaled.exp2_()
    return scaled.add_(kernel.coef0).pow_(int(kernel.degree))
