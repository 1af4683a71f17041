"""Kernel sums fused by Triton: the arguments of its programs, and the collection of their results.

Rows are prepared in float64, padded, and split into parts that fit into the memory of the GPU. The
programs are in `_triton`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrave.mam._kernels import FLOAT32_LIMIT
from margrave.mam.gpu._torch import DeviceTask

_LARGEST_HALF = 2.0**15  # the largest number that becomes halves, for powers
_HALVES_ERROR = 2.0**-40  # the error of two halves relative to the largest number
_POWERS_ERROR = 1e-6  # the error of powers that this may cause
_PROGRAMS = 2048  # enough for all processors of any GPU
_BLOCK = 16  # sums that are computed together
_ONE_BY_ONE = 3  # up to so many sums, one after the other is faster
# A GPU rounds while it adds up a product: on an H200 the relative error of an exponent is 1.4e-8
# for each feature. Exponents times features up to here keep it below 5e-6.
_PRODUCTS_LIMIT = 320.0


class FusedSums:
    """A task computed by the Triton programs, some rows of either set at a time."""

    def __init__(self, data: DeviceTask, programs: Any) -> None:
        self.data, self.programs, self.torch = data, programs, data.torch
        task = data.task
        name = task.kernel.name
        self.degree = int(task.kernel.degree) if name == "poly" else 0
        self.width = data.X.shape[1]
        self._largest = [1.0, 1.0]
        self.in_halves = data.is_single and not task.leave_one_out and name != "laplacian"
        if self.in_halves and name == "rbf":
            limit = min(FLOAT32_LIMIT, _PRODUCTS_LIMIT / data.X.shape[1])
            self.in_halves = data.largest_exponent <= limit
        elif self.in_halves:
            self._largest = [_largest(side) for side in (data.Z, data.X)]
            self.in_halves = self._halves_suffice()
        if self.in_halves:
            self.width = 3 * self.width + (6 if name == "rbf" else 0)
        self.block = min(64 if self.in_halves else 32, _power_of_2(self.width))
        self.padded = -(-self.width // self.block) * self.block
        n_sums = data.a.shape[1]
        self.n_together = 1 if n_sums <= _ONE_BY_ONE else _BLOCK  # sums that halves compute

    def compute(self) -> Any:
        """Compute the sums at all rows of Z, in float64."""
        data, torch = self.data, self.torch
        task = data.task
        tile = self.programs.TILE
        each = (self.padded + 2 * task.n_out) * (2 if self.in_halves else 8)
        n_columns = max(tile, data.memory // each)
        n_rows = max(tile, min(n_columns, data.memory // self._bytes_of_row()) // tile * tile)
        shape = (len(task.gammas), len(data.Z), task.n_out)
        sums = torch.zeros(shape, dtype=torch.float64, device=data.device)
        for j in range(0, len(data.X), n_columns):
            columns = slice(j, min(j + n_columns, len(data.X)))
            right = self._right(columns)
            for i in range(0, len(data.Z), n_rows):
                rows = slice(i, min(i + n_rows, len(data.Z)))
                run = self._sum_halves if self.in_halves else self._sum_values
                sums[:, rows] += run(rows, columns, right)
        return sums

    def _halves_suffice(self) -> bool:
        """Whether no number is so small, relative to the largest, that float16 spoils a power.

        The error of a number is s times the largest of its set, so that of a product is 2ds times
        the largest of both. Σ|a|K of a row z is at least Σ|a| (γ Σ_k |z_k| m_k + |coef0|)^p, where
        m is the mean of |x| with weights |a|. So the error of the sum is at most p times that
        error, divided by the bracket.
        """
        data, torch, kernel = self.data, self.torch, self.data.task.kernel
        weights = data.a.abs()
        weights = weights / weights.sum(0).clamp_min(1e-300)
        means = torch.zeros((self.width, weights.shape[1]), dtype=torch.float64, device=data.device)
        for i in range(0, len(data.X), data.rows_at_once):
            some = slice(i, i + data.rows_at_once)
            means += data.X[some].double().abs().T @ weights[some]
        least = np.inf
        for part in data.Z.split(data.rows_at_once):
            sizes = part.double().abs() @ means.amin(1)
            # Zeros are exact.
            least = min(least, float(torch.where(part.any(1), sizes, torch.inf).min()))
        gamma = data.scales()[0]
        largest = self._largest[0] * self._largest[1]
        error = 2 * self.width * _HALVES_ERROR * gamma * largest * self.degree
        return bool(error <= _POWERS_ERROR * (gamma * least + abs(kernel.coef0)))

    def _bytes_of_row(self) -> int:
        """Compute the bytes of the sums of a row, before the parts of the columns are added."""
        n_out = self.data.task.n_out
        if self.in_halves:
            return 8 * max(self.n_together, n_out)
        return 8 * len(self.data.task.gammas) * n_out

    def _right(self, columns: slice) -> Any:
        if self.in_halves:
            return self._as_halves(self.data.X[columns], 1)
        return self._prepare(1, columns)

    def _padded(self, n: int) -> int:
        tile: int = self.programs.TILE
        return -(-n // tile) * tile

    def _as_halves(self, side: Any, which: int) -> Any:
        """Convert rows to halves: of Z if which is 0, of X if 1."""
        data, torch = self.data, self.torch
        longer = torch.zeros(
            (self._padded(len(side)), self.padded), dtype=torch.float16, device=data.device
        )
        # The product of both sides is the exponent; powers are scaled back afterwards.
        scale = _LARGEST_HALF / self._largest[which]
        if not self.degree:
            scale = np.sqrt(2 * data.scales()[0])
        for i in range(0, len(side), data.rows_at_once):
            rows = data.prepare_rows(side[i : i + data.rows_at_once]) * float(scale)
            high, low = _split_halves(rows, 2)
            columns = [high, low, high] if which else [high, high, low]
            if not self.degree:
                lengths = _split_halves(-rows.square().sum(1, keepdim=True) / 2, 3)
                ones = [torch.ones_like(lengths[0])] * 3
                columns += [*ones, *lengths] if which else [*lengths, *ones]
            longer[i : i + len(rows), : self.width] = torch.cat(columns, 1)
        return longer

    def _sum_halves(self, rows: slice, columns: slice, right: Any) -> Any:
        """Compute sums in float32, some columns of weights at a time."""
        data, torch, programs = self.data, self.torch, self.programs
        left = self._as_halves(data.Z[rows], 0)
        block = self.n_together
        choice = programs.halves_choice(block)
        grid, n_tiles, per_split = self._grid(len(left), len(right), choice)
        back = self._largest[0] * self._largest[1] / _LARGEST_HALF**2 * data.scales()[0]
        found = []
        for a in data.a[columns].float().split(block, 1):
            weights = torch.zeros((len(right), block), dtype=torch.float32, device=data.device)
            weights[: len(a), : a.shape[1]] = a
            out = torch.empty((grid[1], len(left), block), dtype=torch.float64, device=data.device)
            programs.halves[grid](
                *(left, right, weights, out, len(left), n_tiles, per_split),
                *(back, float(data.task.kernel.coef0)),
                K=self.padded,
                KB=self.block,
                DEGREE=self.degree,
                SUMS=block,
                FLUSH=programs.FLUSH,
                **choice,
            )
            found.append(out.sum(0)[: rows.stop - rows.start, : a.shape[1]])
        return torch.cat(found, 1)

    def _grid(self, n_rows: int, n_columns: int, choice: dict[str, int]) -> Any:
        """Plan programs for the rows and, where these are few, for parts of the columns.

        The sums of all parts fit into the memory.
        """
        blocks, n_tiles = n_rows // choice["BM"], n_columns // choice["BN"]
        fitting = max(1, self.data.memory // (self._bytes_of_row() * n_rows))
        per_split = -(-n_tiles // min(n_tiles, -(-_PROGRAMS // blocks), fitting))
        return (blocks, -(-n_tiles // per_split)), n_tiles, per_split

    def _prepare(self, which: int, places: slice) -> Any:
        """Prepare rows for `values`, and the lengths that are added to products."""
        data, torch = self.data, self.torch
        laplacian = data.task.kernel.name == "laplacian"
        side = data.X[places] if which else data.Z[places]
        n = self._padded(len(side))
        if laplacian:
            dtype = side.dtype if data.float32_suffices else torch.float64
            made = torch.zeros((side.shape[1], n), dtype=dtype, device=data.device)
            made[:, : len(side)] = side.T
            return made, made
        made = torch.zeros((n, self.padded), dtype=torch.float64, device=data.device)
        lengths = torch.zeros(n, dtype=torch.float64, device=data.device)
        for i in range(0, len(side), data.rows_at_once):
            rows = data.prepare_rows(side[i : i + data.rows_at_once])
            made[i : i + len(rows), : rows.shape[1]] = rows
            lengths[i : i + len(rows)] = -rows.square().sum(1)
        if data.task.kernel.name == "rbf" and which:
            made *= 2
        return made, lengths

    def _sum_values(self, rows: slice, columns: slice, right: Any) -> Any:
        """Compute sums of all widths, some of them by an exponential of float64."""
        data, torch, programs, task = self.data, self.torch, self.programs, self.data.task
        left = self._prepare(0, rows)
        kind = programs.KINDS[task.kernel.name]
        m, n = (self._padded(side.stop - side.start) for side in (rows, columns))
        dtype = torch.float32 if data.is_single else torch.float64
        signed = task.levels is not None
        choice = programs.values_choice(kind, data.is_single and data.float32_suffices)
        grid, n_tiles, per_split = self._grid(m, n, choice)
        n_gammas, n_sums = len(task.gammas), data.a.shape[1]
        numbers = [*data.scales(), float(task.kernel.coef0)]  # an argument would be float32
        shape = (grid[1], n_gammas, task.n_out, m)
        out = torch.zeros(shape, dtype=torch.float64, device=data.device)
        programs.values[grid](
            *(left[0], right[0], left[1], right[1]),
            self._pad_columns(data.a[columns].T, n, dtype),
            self._pad_columns(data.levels[rows], m, torch.float64),
            self._pad_columns(data.levels[columns], n, torch.float64),
            self._pad_columns(data.b[columns], n, dtype),
            torch.tensor(numbers, dtype=torch.float64, device=data.device),
            torch.tensor(task.squarings, dtype=torch.int32, device=data.device),
            *(out, m, n, data.X.shape[1], rows.start - columns.start),
            *(n_tiles, per_split, n_gammas, n_sums),
            KIND=kind,
            DEGREE=self.degree,
            K=self.padded,
            KB=self.block,
            ALONE=task.leave_one_out,
            SIGNED=signed,
            **choice,
        )
        return out.sum(0)[:, :, : rows.stop - rows.start].transpose(1, 2)

    def _pad_columns(self, values: Any, n: int, dtype: Any) -> Any:
        """Append zeros to values along the last dimension."""
        longer = self.torch.zeros((*values.shape[:-1], n), dtype=dtype, device=self.data.device)
        longer[..., : values.shape[-1]] = values
        return longer


def _largest(side: Any) -> float:
    """Find the largest absolute value, without a copy."""
    return max(float(side.max()), -float(side.min())) or 1.0


def _split_halves(values: Any, n: int) -> list[Any]:
    """Split numbers into halves that sum to them."""
    parts = []
    for _ in range(n):
        parts.append(values.half())
        values = values - parts[-1].double()
    return parts


def _power_of_2(n: int) -> int:
    """Round up to a power of 2, at least 16: the matrix units need it."""
    return max(16, 1 << (n - 1).bit_length())
