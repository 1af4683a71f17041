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

from margrave.mam._exponential import Tile
from margrave.mam._kernels import Floats, Kernel, Pairs
from margrave.mam._sums import SMALL, Rooms, slices
from margrave.mam._threads import in_threads, n_threads

_TILE = 256  # rows and columns: 0.5 MB of float64
# Powers of a value are off by as many times its rounding; after this ratio it is computed anew.
_MOST_POWERS = 2.0**16


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

    Returns
    -------
    sums : ndarray of shape (n_gammas, n, n_sums), or one sum more
    """
    X = np.asarray(X, dtype=np.float64)
    n = len(X)
    first = replace(kernel, gamma=1.0) if kernel.is_exponential else kernel
    pairs = Pairs(first, X, X)
    rooms = Rooms(min(_TILE, n), min(_TILE, n), np.dtype(np.float64))
    steps = _steps(gammas) if kernel.is_exponential else [(gamma, 0) for gamma in gammas]
    n_sums = a.shape[1] + (ordered is not None)

    def block(place: tuple[slice, slice]) -> tuple[Floats, Floats]:
        rows, columns = place
        room = rooms.of(rows, columns)
        pairs.base(rows, columns, room[0])
        if kernel.is_exponential:
            np.minimum(room[0], 0.0, out=room[0])  # rounding may leave a distance below 0
        signs = None if ordered is None else _signs(ordered.levels, rows, columns)
        at_rows = np.empty((len(steps), rows.stop - rows.start, n_sums))
        at_columns = np.empty((len(steps), columns.stop - columns.start, n_sums))
        for step, values in enumerate(_values(kernel, steps, room)):
            if rows == columns:
                np.fill_diagonal(values, 0.0)
            at_rows[step, :, : a.shape[1]] = values @ a[columns]
            at_columns[step, :, : a.shape[1]] = values.T @ a[rows]
            if ordered is not None and signs is not None:
                signed = values * signs
                at_rows[step, :, -1] = signed @ ordered.weights[columns]
                at_columns[step, :, -1] = -(ordered.weights[rows] @ signed)
        return at_rows, at_columns

    sums = np.zeros((len(steps), n, n_sums))
    places = list(_upper(n))
    threads = n_threads(n_jobs if n * n > SMALL else 1, len(places))
    # Added in one order, by one thread: the same result for any number of threads.
    for (rows, columns), (at_rows, at_columns) in zip(
        places, in_threads(block, places, threads), strict=True
    ):
        sums[:, rows] += at_rows
        if rows != columns:
            sums[:, columns] += at_columns
    return sums


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


def _values(kernel: Kernel, steps: list[tuple[float, int]], room: Tile) -> Iterator[Tile]:
    """The values of a tile for every γ, from its −distances or products in the first of the room.

    The caller may set the diagonal to 0: it stays so when squared.
    """
    base, values, spare = room
    for gamma, squarings in steps:
        if kernel.is_exponential and not squarings:
            with np.errstate(over="ignore"):  # to −∞, of which the exponential is 0
                np.multiply(base, gamma, values)
            np.exp(values, values)
        elif squarings:
            for _ in range(squarings):
                np.square(values, values)
        else:
            values[...] = base
            if kernel.name == "poly":
                replace(kernel, gamma=gamma).powers(values, spare)
        yield values


def _signs(levels: Floats, rows: slice, columns: slice) -> Floats:
    """sign(l_j − l_i) for rows i and columns j; one number if it is the same for all."""
    if levels[rows.stop - 1] < levels[columns.start]:
        return np.ones((1, 1))
    return np.asarray(np.sign(levels[columns] - levels[rows, None]))
