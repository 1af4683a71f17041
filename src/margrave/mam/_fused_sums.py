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

_LARGEST = 2.0**15  # of numbers that become halves, for powers
_STEP = 2.0**-40  # of the largest: how far two halves are off a number, or by 2⁻²² of itself
_POWERS_OFF = 1e-6  # how far powers may be off for that reason
_PROGRAMS = 2048  # enough to keep any GPU busy
_BLOCK = 16  # sums that are computed together
_ONE_BY_ONE = 3  # up to so many sums it is quicker to compute one after the other


# A GPU drops digits while it adds up a product: on an H200 an exponent is off by 1.4e-8 of itself
# for each feature. Exponents times features up to here keep it below 5e-6.
_SURE_PRODUCTS = 320.0


class Fused:
    """A task by the programs of Triton, some rows of either side at a time."""

    def __init__(self, sums: Sums, programs: Any) -> None:
        self.of, self.programs, self.torch = sums, programs, sums.torch
        task = sums.task
        name = task.kernel.name
        self.degree = int(task.kernel.degree) if name == "poly" else 0
        self.width = sums.X.shape[1]
        self._largest = [1.0, 1.0]
        self.in_halves = sums.single and not task.alone and name != "laplacian"
        if self.in_halves and name == "rbf":
            most = min(SURE_IN_FLOAT32, _SURE_PRODUCTS / sums.X.shape[1])
            self.in_halves = sums.sharpest <= most
        elif self.in_halves:
            self._largest = [_largest(side) for side in (sums.Z, sums.X)]
            self.in_halves = self._alike()
        if self.in_halves:
            self.width = 3 * self.width + (6 if name == "rbf" else 0)
        self.block = min(64 if self.in_halves else 32, _power_of_2(self.width))
        self.padded = -(-self.width // self.block) * self.block
        n_sums = sums.a.shape[1]
        self.n_together = 1 if n_sums <= _ONE_BY_ONE else _BLOCK  # sums that halves compute

    def all(self) -> Any:
        """The sums of all rows of Z, in float64."""
        of, torch = self.of, self.torch
        task = of.task
        tile = self.programs.TILE
        each = (self.padded + 2 * task.n_out) * (2 if self.in_halves else 8)
        n_columns = max(tile, of.room // each)
        n_rows = max(tile, min(n_columns, of.room // self._bytes_of_row()) // tile * tile)
        shape = (len(task.gammas), len(of.Z), task.n_out)
        sums = torch.zeros(shape, dtype=torch.float64, device=of.device)
        for j in range(0, len(of.X), n_columns):
            columns = slice(j, min(j + n_columns, len(of.X)))
            right = self._right(columns)
            for i in range(0, len(of.Z), n_rows):
                rows = slice(i, min(i + n_rows, len(of.Z)))
                run = self._halves if self.in_halves else self._values
                sums[:, rows] += run(rows, columns, right)
        return sums

    def _alike(self) -> bool:
        """Whether no number is so small beside the largest that a power of float16 would suffer.

        A number is off by s of the largest of its side, so a product by 2ds of both of these. As
        Σ|a|K of a row z is at least Σ|a| (γ Σ_k |z_k| m_k + |coef0|)^p, m being the mean of |x|
        with weights |a|, the sum is off by at most p times that error divided by the bracket.
        """
        of, torch, kernel = self.of, self.torch, self.of.task.kernel
        weights = of.a.abs()
        weights = weights / weights.sum(0).clamp_min(1e-300)
        means = torch.zeros((self.width, weights.shape[1]), dtype=torch.float64, device=of.device)
        for i in range(0, len(of.X), of.at_once):
            means += of.X[i : i + of.at_once].double().abs().T @ weights[i : i + of.at_once]
        least = np.inf
        for part in of.Z.split(of.at_once):
            sizes = part.double().abs() @ means.amin(1)
            # Numbers that are 0 are exact.
            least = min(least, float(torch.where(part.any(1), sizes, torch.inf).min()))
        gamma = of.scales()[0]
        off = 2 * self.width * _STEP * gamma * self._largest[0] * self._largest[1] * self.degree
        return bool(off <= _POWERS_OFF * (gamma * least + abs(kernel.coef0)))

    def _bytes_of_row(self) -> int:
        """Bytes of the sums of a row, before the parts of the columns are added."""
        n_out = self.of.task.n_out
        if self.in_halves:
            return 8 * max(self.n_together, n_out)
        return 8 * len(self.of.task.gammas) * n_out

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
        block = self.n_together
        choice = programs.halves_choice(block)
        grid, n_tiles, per_split = self._grid(len(left), len(right), choice)
        back = self._largest[0] * self._largest[1] / _LARGEST**2 * of.scales()[0]
        found = []
        for a in of.a[columns].float().split(block, 1):
            weights = torch.zeros((len(right), block), dtype=torch.float32, device=of.device)
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
        """Programs for the rows and, where these are few, for parts of the columns.

        There are no more parts than the room has for their sums.
        """
        blocks, n_tiles = n_rows // choice["BM"], n_columns // choice["BN"]
        in_room = max(1, self.of.room // (self._bytes_of_row() * n_rows))
        per_split = -(-n_tiles // min(n_tiles, -(-_PROGRAMS // blocks), in_room))
        return (blocks, -(-n_tiles // per_split)), n_tiles, per_split

    def _made(self, which: int, places: slice) -> Any:
        """Rows for `values`, and the lengths that are added to products."""
        of, torch = self.of, self.torch
        laplacian = of.task.kernel.name == "laplacian"
        side = of.X[places] if which else of.Z[places]
        n = self._padded(len(side))
        if laplacian:
            dtype = side.dtype if of.sure else torch.float64
            made = torch.zeros((side.shape[1], n), dtype=dtype, device=of.device)
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
        choice = programs.values_choice(kind, of.single and of.sure)
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


def _largest(side: Any) -> float:
    """The largest size of a number, without a copy of all of them."""
    return max(float(side.max()), -float(side.min())) or 1.0


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
