"""Sums of kernels fused by Triton: what its programs are given, and what they give back.

The sums of document 002, as in `_sums`; the programs are in `_triton_sums`. Rows are prepared in
float64, padded, and cut into parts that fit into the room on the GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from margrave.mam._kernels import SURE_IN_FLOAT32

if TYPE_CHECKING:
    from margrave.mam._torch_sums import Sums

_LARGEST = 64.0  # of numbers that become halves, for powers
_PROGRAMS = 2048  # enough to keep any GPU busy
_BLOCK = 16  # sums that are computed together
_ONE_BY_ONE = 3  # up to so many sums it is quicker to compute one after the other


class Fused:
    """A task by the programs of Triton, some rows of either side at a time."""

    def __init__(self, sums: Sums, programs: Any) -> None:
        self.of, self.programs, self.torch = sums, programs, sums.torch
        task = sums.task
        name = task.kernel.name
        sure = name == "poly" or (name == "rbf" and sums.sharpest <= SURE_IN_FLOAT32)
        self.in_halves = sums.single and sure and not task.alone
        self.degree = int(task.kernel.degree) if name == "poly" else 0
        self.width = sums.X.shape[1]
        self._largest = [1.0, 1.0]
        if self.in_halves:
            self.width = 3 * self.width + (6 if name == "rbf" else 0)
        self.block = min(64 if self.in_halves else 32, _power_of_2(self.width))
        self.padded = -(-self.width // self.block) * self.block

    def all(self) -> Any:
        """The sums of all rows of Z, in float64."""
        of, torch = self.of, self.torch
        task = of.task
        each = self.padded * (2 if self.in_halves else 8)
        n_columns = max(self.programs.TILE, of.room // each)
        n_rows = max(1, min(n_columns, of.room // (8 * len(task.gammas) * task.n_out)))
        shape = (len(task.gammas), len(of.Z), task.n_out)
        sums = torch.zeros(shape, dtype=torch.float64, device=of.device)
        if self.degree and self.in_halves:
            self._largest = [float(side.abs().max()) or 1.0 for side in (of.Z, of.X)]
        for j in range(0, len(of.X), n_columns):
            columns = slice(j, min(j + n_columns, len(of.X)))
            right = self._right(columns)
            for i in range(0, len(of.Z), n_rows):
                rows = slice(i, min(i + n_rows, len(of.Z)))
                run = self._halves if self.in_halves else self._values
                sums[:, rows] += run(rows, columns, right)
        return sums

    def _right(self, columns: slice) -> Any:
        return self._longer(self.of.X[columns], 1) if self.in_halves else self._made(1, columns)

    def _padded(self, n: int) -> int:
        tile: int = self.programs.TILE
        return -(-n // tile) * tile

    def _longer(self, side: Any, which: int) -> Any:
        """Rows of halves: of Z if which is 0, of X if 1."""
        of, torch = self.of, self.torch
        longer = torch.zeros(
            (self._padded(len(side)), self.padded), dtype=torch.float16, device=of.device
        )
        # The product of both sides is the exponent; powers are scaled back afterwards.
        scale = np.sqrt(2 * of.scales()[0]) if not self.degree else _LARGEST / self._largest[which]
        for i in range(0, len(side), of.at_once):
            rows = of.rows(side[i : i + of.at_once]) * float(scale)
            high, low = _parts(rows, 2)
            columns = [high, low, high] if which else [high, high, low]
            if not self.degree:
                lengths = _parts(-rows.square().sum(1, keepdim=True) / 2, 3)
                ones = [torch.ones_like(lengths[0])] * 3
                columns += [*ones, *lengths] if which else [*lengths, *ones]
            longer[i : i + len(rows), : self.width] = torch.cat(columns, 1)
        return longer

    def _halves(self, rows: slice, columns: slice, right: Any) -> Any:
        """Sums in float32, some columns of weights at a time."""
        of, torch, programs = self.of, self.torch, self.programs
        left = self._longer(of.Z[rows], 0)
        n_sums = of.a.shape[1]
        block = 1 if n_sums <= _ONE_BY_ONE else _BLOCK
        choice = programs.halves_choice(block)
        grid, n_tiles, per_split = self._grid(len(left), len(right), choice)
        back = self._largest[0] * self._largest[1] / _LARGEST**2 * of.scales()[0]
        found = []
        for a in of.a[columns].float().split(block, 1):
            weights = torch.zeros((len(right), block), device=of.device)
            weights[: len(a), : a.shape[1]] = a
            out = torch.empty((grid[1], len(left), block), dtype=torch.float64, device=of.device)
            programs.halves[grid](
                *(left, right, weights, out, len(left), n_tiles, per_split),
                *(back, float(of.task.kernel.coef0)),
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
        """Programs for the rows and, where these are few, for parts of the columns."""
        blocks, n_tiles = n_rows // choice["BM"], n_columns // choice["BN"]
        per_split = -(-n_tiles // min(n_tiles, -(-_PROGRAMS // blocks)))
        return (blocks, -(-n_tiles // per_split)), n_tiles, per_split

    def _made(self, which: int, places: slice) -> Any:
        """Rows for `values`, and the lengths that are added to products."""
        of, torch = self.of, self.torch
        laplacian = of.task.kernel.name == "laplacian"
        side = of.X[places] if which else of.Z[places]
        n = self._padded(len(side))
        if laplacian:
            made = torch.zeros((side.shape[1], n), dtype=side.dtype, device=of.device)
            made[:, : len(side)] = side.T
            return made, made
        made = torch.zeros((n, self.padded), dtype=torch.float64, device=of.device)
        lengths = torch.zeros(n, dtype=torch.float64, device=of.device)
        for i in range(0, len(side), of.at_once):
            rows = of.rows(side[i : i + of.at_once])
            made[i : i + len(rows), : rows.shape[1]] = rows
            lengths[i : i + len(rows)] = -rows.square().sum(1)
        if of.task.kernel.name == "rbf" and which:
            made *= 2
        return made, lengths

    def _values(self, rows: slice, columns: slice, right: Any) -> Any:
        """Sums of all widths, some of them by an exponential of float64."""
        of, torch, programs, task = self.of, self.torch, self.programs, self.of.task
        left = self._made(0, rows)
        kind = programs.KINDS[task.kernel.name]
        m, n = (self._padded(side.stop - side.start) for side in (rows, columns))
        dtype = torch.float32 if of.single else torch.float64
        signed = task.levels is not None
        choice = programs.values_choice(kind, of.single)
        grid, n_tiles, per_split = self._grid(m, n, choice)
        n_gammas, n_sums = len(task.gammas), of.a.shape[1]
        numbers = [*of.scales(), float(task.kernel.coef0)]  # an argument would be float32
        shape = (grid[1], n_gammas, task.n_out, m)
        out = torch.zeros(shape, dtype=torch.float64, device=of.device)
        programs.values[grid](
            *(left[0], right[0], left[1], right[1]),
            self._longer_columns(of.a[columns].T, n, dtype),
            self._longer_columns(of.levels[rows], m, torch.float64),
            self._longer_columns(of.levels[columns], n, torch.float64),
            self._longer_columns(of.b[columns], n, dtype),
            torch.tensor(numbers, dtype=torch.float64, device=of.device),
            torch.tensor(task.squarings, dtype=torch.int32, device=of.device),
            *(out, m, n, of.X.shape[1], rows.start - columns.start),
            *(n_tiles, per_split, n_gammas, n_sums),
            KIND=kind,
            DEGREE=self.degree,
            K=self.padded,
            KB=self.block,
            ALONE=task.alone,
            SIGNED=signed,
            **choice,
        )
        return out.sum(0)[:, :, : rows.stop - rows.start].transpose(1, 2)

    def _longer_columns(self, values: Any, n: int, dtype: Any) -> Any:
        """Values with zeros behind them along the last dimension."""
        longer = self.torch.zeros((*values.shape[:-1], n), dtype=dtype, device=self.of.device)
        longer[..., : values.shape[-1]] = values
        return longer


def _parts(values: Any, n: int) -> list[Any]:
    """Halves that sum to the numbers."""
    parts = []
    for _ in range(n):
        parts.append(values.half())
        values = values - parts[-1].double()
    return parts


def _power_of_2(n: int) -> int:
    """The next power of 2, 16 at least: what a product on the matrix units takes."""
    return max(16, 1 << (n - 1).bit_length())
