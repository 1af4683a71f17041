"""Sums of a kernel over a set of samples, at these samples, each without itself.

    S_i = Σ_{j ≠ i} a_j K(x_j, x_i)

is what leave-one-out needs, for the classifier and for the ranker (document 002 has no formula for
it; see `margrave.mam._leave_out`). K is symmetric, so a tile serves its rows and its columns. For
exp(−γ · distance) the distances are computed once for all widths, and where a width is a quarter of
the one before, its values are those of the one before, squared twice: an exponential for one width
in fifteen. All is done in float64, whatever the samples are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave._typing import Floats
from margrave.mam._exponential import Tile
from margrave.mam._kernels import Kernel, Pairs
from margrave.mam._sums import SMALL, Rooms, slices
from margrave.mam._threads import in_threads
from margrave.mam._torch_sums import Task, device_for, torch_sums

_TILE = 512  # rows and columns: 2 MB of float64
# A value to a power is off by as many times its rounding, 1e-16; at this ratio of two γ, by 3e-8.
_MOST_POWERS = 2.0**28
# exp of less is 0.
_VANISHED = -746.0


@dataclass(frozen=True)
class Ordered:
    """Samples in the order of their labels, for the sums that the ranker needs.

    Attributes
    ----------
    levels : ndarray of shape (n,)
        Numbers that do not fall from one sample to the next.
    weights : ndarray of shape (n,)
        Weights b of the samples.
    """

    levels: Floats
    weights: Floats


def self_sums(
    X: Tile,
    a: Floats,
    kernel: Kernel,
    gammas: Sequence[float],
    ordered: Ordered | None = None,
    n_jobs: int | None = None,
    backend: str = "auto",
) -> Floats:
    """S_i = Σ_{j ≠ i} a_j K(x_j, x_i) for every γ.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The samples.
    a : ndarray of shape (n, n_sums)
        Weights.
    kernel : Kernel
        Its own gamma is not used.
    gammas : sequence of float
        Values of γ, rising.
    ordered : Ordered, optional
        If given, a column is added: Σ_{j ≠ i} b_j sign(l_j − l_i) K(x_j, x_i), with the weights b
        and the levels l, in the order of which the samples must be.
    n_jobs : int, optional
        Threads; the result does not depend on them.
    backend : {"auto", "numpy", "torch"}, default="auto"
        What computes, as in `kernel_sum`; values count once for each γ.

    Returns
    -------
    sums : ndarray of shape (n_gammas, n, n_sums), or one sum more
    """
    samples: Floats = np.asarray(X, dtype=np.float64)
    n = len(samples)
    by_torch = _sums_by_torch(samples, a, kernel, gammas, ordered, backend)
    if by_torch is not None:
        return by_torch
    tiles = _Tiles(samples, kernel, gammas, a, ordered)
    sums = np.zeros((len(gammas), n, tiles.n_sums))
    places = list(_upper(n))
    done = in_threads(tiles.sums, places, n_jobs, small=n * n <= SMALL)
    # Added in one order, by one thread: the same result for any number of threads.
    for (rows, columns), (at_rows, at_columns) in zip(places, done, strict=True):
        sums[:, rows] += at_rows
        if rows != columns:
            sums[:, columns] += at_columns
    return sums


def _sums_by_torch(
    X: Floats,
    a: Floats,
    kernel: Kernel,
    gammas: Sequence[float],
    ordered: Ordered | None,
    backend: str,
) -> Floats | None:
    """The sums where PyTorch shall compute them, and can."""
    device = device_for(backend, kernel, len(X) ** 2 * len(gammas))
    if device is None:
        return None
    steps = _steps(gammas) if kernel.is_exponential else [(one, 0) for one in gammas]
    squarings = [squarings for _, squarings in steps]
    task = Task(kernel, gammas, squarings, X, X, a, alone=True)
    if ordered is not None:
        task = replace(task, levels=ordered.levels, weights=ordered.weights)
    return torch_sums(task, device)


class _Tiles:
    """What each tile adds to the sums at its rows and at its columns."""

    def __init__(
        self, X: Floats, kernel: Kernel, gammas: Sequence[float], a: Floats, ordered: Ordered | None
    ) -> None:
        self.kernel, self.ordered = kernel, ordered
        self.n_sums = a.shape[1] + (ordered is not None)
        self._a = np.asfortranarray(a)  # each column without gaps, for BLAS
        first = replace(kernel, gamma=1.0) if kernel.is_exponential else kernel
        self._pairs = Pairs(first, X, X, sharpest=max(gammas))
        self._rooms = Rooms(min(_TILE, len(X)), min(_TILE, len(X)), np.dtype(np.float64))
        self._steps = _steps(gammas) if kernel.is_exponential else [(one, 0) for one in gammas]

    def sums(self, place: tuple[slice, slice]) -> tuple[Floats, Floats]:
        """For one tile: the sums of all γ at its rows, and at its columns.

        They are infinite or NaN where kernel values are: whoever asks must look.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self._sums(place)

    def _sums(self, place: tuple[slice, slice]) -> tuple[Floats, Floats]:
        rows, columns = place
        room = self._rooms.of(rows, columns)
        at_rows = np.zeros((len(self._steps), rows.stop - rows.start, self.n_sums))
        at_columns = np.zeros((len(self._steps), columns.stop - columns.start, self.n_sums))
        signs = None if self.ordered is None else _signs(self.ordered.levels, rows, columns)
        for step, values in enumerate(self._values(rows, columns, room)):
            for k in range(self._a.shape[1]):  # one at a time is quicker for the few there are
                at_rows[step, :, k] = values @ self._a[columns, k]
                at_columns[step, :, k] = self._a[rows, k] @ values
            if self.ordered is not None and signs is not None:
                signed = values * signs
                at_rows[step, :, -1] = signed @ self.ordered.weights[columns]
                at_columns[step, :, -1] = -(self.ordered.weights[rows] @ signed)
        return at_rows, at_columns

    def _values(self, rows: slice, columns: slice, room: Tile) -> Iterator[Tile]:
        """The values of a tile for every γ, 0 on the diagonal; ends where all others are 0."""
        base, values, spare = room
        self._pairs.base(rows, columns, base)
        if not self.kernel.is_exponential:
            for gamma, _ in self._steps:
                values[...] = base
                if self.kernel.name == "poly":
                    replace(self.kernel, gamma=gamma).powers(values, spare)
                if rows == columns:
                    np.fill_diagonal(values, 0.0)
                yield values
            return
        if rows == columns:
            np.fill_diagonal(base, -np.inf)
        highest = float(base.max())
        for gamma, squarings in self._steps:
            if gamma * highest < _VANISHED:
                return
            if squarings:
                for _ in range(squarings):
                    np.square(values, values)
            else:
                np.multiply(base, gamma, values)  # −∞ is as good: its exponential is 0
                np.exp(values, values)
            yield values


def _upper(n: int) -> Iterator[tuple[slice, slice]]:
    """The tiles on and above the diagonal."""
    for rows in slices(n, _TILE):
        for columns in slices(n, _TILE):
            if columns.start >= rows.start:
                yield rows, columns


def _steps(gammas: Sequence[float]) -> list[tuple[float, int]]:
    """Every γ with how often the values of the one before are squared; 0 if computed anew."""
    steps: list[tuple[float, int]] = []
    start = np.inf
    before = np.nan
    for gamma in gammas:
        doublings = np.log2(gamma / before)
        whole = round(doublings) if np.isfinite(doublings) else 0
        squared = 1 <= whole <= 6 and abs(doublings - whole) < 1e-9
        if squared and gamma / start <= _MOST_POWERS:
            steps.append((gamma, whole))
        else:
            steps.append((gamma, 0))
            start = gamma
        before = gamma
    return steps


def _signs(levels: Floats, rows: slice, columns: slice) -> Floats:
    """sign(l_j − l_i) for rows i and columns j; one number if it is the same for all."""
    if levels[rows.stop - 1] < levels[columns.start]:
        return np.ones((1, 1))
    return np.asarray(np.sign(levels[columns] - levels[rows, None]))
