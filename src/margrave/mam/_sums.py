"""Sums of a kernel over samples: Σ_i a_i K(x_i, z) for many z, without the matrix of all values.

The classifier, the ranker, their lengths and their complexity in Pelckmans et al. (2008), equations
(7), (22) and (9), are such sums. Z and X are split into blocks; the values of one block fit into
the cache of a core and are summed at once.

Leave-one-out needs the sums at the samples themselves, each without its own term,

    S_i = Σ_{j ≠ i} a_j K(x_j, x_i).

K is symmetric, so a tile serves its rows and its columns. For exp(−γ · distance) the distances are
computed once for all widths. If γ is four times the one before, the values are those of the one
before, squared twice: one exponential for fifteen widths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import local
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from margrave._errors import ParameterError
from margrave._typing import AnyFloats, Floats
from margrave._validation import is_number
from margrave.mam._kernels import Kernel, KernelFunction, KernelTiles
from margrave.mam._parameters import sum_rules
from margrave.mam._threads import map_threads
from margrave.mam.gpu import SumTask, choose_device, sums_by_torch

_TILE = 512  # rows and columns of a block: 1 MB of float32, 2 MB of float64
SMALL = 1_000_000
"""The number of pairs up to which one thread is fastest."""

_FEW_COLUMNS = 8  # up to here one column of weights at a time is faster than their matrix
_FLAT, _ROWS_COMPARED = 1 - 1e-3, 256
# Rounding of 1e-16 grows with the power of a value; at this ratio of two γ, to 3e-8.
_LARGEST_POWER = 2.0**28
# The exponential of a smaller number is 0.
_LOWEST_EXPONENT = -746.0


def kernel_sum(
    Z: ArrayLike,
    X: ArrayLike,
    a: ArrayLike,
    kernel: Literal["rbf", "linear", "poly", "laplacian"] | KernelFunction = "rbf",
    *,
    gamma: float | None = None,
    degree: int = 3,
    coef0: float = 1.0,
    backend: Literal["auto", "numpy", "torch"] = "auto",
    n_jobs: int | None = None,
) -> AnyFloats:
    """Sum a kernel over samples: Σ_i a_i K(x_i, z) for every z.

    The result equals ``pairwise_kernels(Z, X, kernel) @ a``, but it never stores the m × n values,
    and it uses all cores.

    Parameters
    ----------
    Z : array-like of shape (m, n_features)
        The points at which the sum is computed. Sparse with the linear kernel only, as `X`.
    X : array-like of shape (n, n_features)
        The samples.
    a : array-like of shape (n,) or (n, n_sums)
        Their weights. Several columns are several sums, which take little longer than one.
    kernel : {"rbf", "linear", "poly", "laplacian"} or callable, default="rbf"
        exp(−γ‖x − z‖²), x·z, (γ x·z + coef0)^degree, exp(−γ‖x − z‖₁), or a function that takes
        some rows of Z and some of X and returns the values of all pairs, as in scikit-learn's SVC.
    gamma : float, optional
        γ; 1 / n_features if None, as in scikit-learn.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    backend : {"auto", "numpy", "torch"}, default="auto"
        "torch" computes with PyTorch, on a GPU if there is one; it needs Margrave's extra ``gpu``.
        "auto" uses PyTorch for 10¹⁰ pairs or more if it is installed and there is a GPU, else
        numpy. The linear kernel and callables always use numpy.
    n_jobs : int, optional
        Number of threads; all cores that the process may use if None or -1.

    Returns
    -------
    sums : ndarray of shape (m,) or (m, n_sums)
        In float32 if Z and X are both in float32, else in float64.

    Notes
    -----
    In float32 the relative error of a value is at most 3e-5, and 6e-6 on average. The errors have
    either sign, so that of a sum of many values is smaller. Blocks are added in float64. Values too
    small for their type count as 0: with a narrow width, a sum far from all samples is 0. The
    result does not depend on `n_jobs`.

    With PyTorch the error of a float32 sum is below 1e-5, and usually below 1e-6, relative to
    Σ|a|K (for the polynomial kernel, with the absolute values of all numbers including coef0):
    where terms cancel, the result is less precise. Sums of float64 samples are computed in float64,
    and can be used to check those of float32. With Triton the values never leave the cores of the
    GPU; without it, and on the CPU, PyTorch stores them in chunks.

    Examples
    --------
    >>> from margrave.mam import kernel_sum
    >>> kernel_sum([[0.0], [1.0]], [[0.0], [2.0]], [1, -1], gamma=1.0).round(4)
    array([0.9817, 0.    ])
    """
    rules = sum_rules(kernel, degree, coef0, n_jobs, backend)
    for (name, (allowed, is_allowed)), received in zip(
        rules.items(), (kernel, degree, coef0, n_jobs, backend), strict=True
    ):
        if not is_allowed:
            raise ParameterError.of("kernel_sum", name, allowed, received)
    points, rows = _check_rows(Z, X, allow_sparse=kernel == "linear")
    weights = check_array(a, ensure_2d=False, dtype=np.float64, input_name="a")
    if len(weights) != rows.shape[0] or weights.ndim > 2:
        raise ValueError(
            f"kernel_sum needs a with a weight for each of {rows.shape[0]} rows of X; "
            f"got shape {weights.shape}."
        )
    if kernel == "linear":
        return np.asarray(points @ (rows.T @ weights.astype(rows.dtype)))
    width = 1 / rows.shape[1] if gamma is None else gamma
    if not (is_number(width) and 0 < width < np.inf):
        raise ParameterError.of("kernel_sum", "gamma", "a finite number above 0", gamma)
    columns = weights.reshape(len(weights), -1)
    sums = weighted_sums(
        points, rows, columns, Kernel(kernel, float(width), degree, coef0), backend, n_jobs
    )
    return sums.reshape(len(points), *weights.shape[1:])


def _check_rows(Z: ArrayLike, X: ArrayLike, allow_sparse: bool) -> tuple[Any, Any]:
    """Convert both sets to finite numbers of one floating type; check their features."""
    if (issparse(Z) or issparse(X)) and not allow_sparse:
        raise TypeError("kernel_sum takes sparse rows with kernel='linear' only.")
    points, rows = (
        check_array(
            side, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], input_name=name
        )
        for side, name in ((Z, "Z"), (X, "X"))
    )
    if points.shape[1] != rows.shape[1]:
        raise ValueError(
            "kernel_sum needs Z and X with the same features; "
            f"got {points.shape[1]} and {rows.shape[1]}."
        )
    dtype = np.result_type(points.dtype, rows.dtype)
    return points.astype(dtype, copy=False), rows.astype(dtype, copy=False)


def weighted_sums(
    Z: AnyFloats, X: AnyFloats, a: Floats, kernel: Kernel, backend: str, n_jobs: int | None
) -> AnyFloats:
    """Compute Σ_i a_i K(x_i, z) for rows and weights that have been validated.

    Parameters
    ----------
    Z, X : ndarray of shapes (m, d) and (n, d)
        Rows in float32 or float64. For a precomputed kernel Z has its values, and X is not used.
    a : ndarray of shape (n, n_sums)
        Weights.
    kernel : Kernel
        Any kernel but the linear one.
    backend : {"auto", "numpy", "torch"}
        As in `kernel_sum`.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    sums : ndarray of shape (m, n_sums)
        In float32 if Z and X are both in float32, else in float64.
    """
    dtype = np.result_type(Z, X)
    points, rows = Z.astype(dtype, copy=False), X.astype(dtype, copy=False)
    sums = None
    device = choose_device(backend, kernel, len(points) * len(rows))
    if device is not None:
        found = sums_by_torch(SumTask(kernel, [kernel.gamma], [0], points, rows, a), device)
        sums = None if found is None else found[0]
    if sums is None:
        sums = sum_tiles(KernelTiles(kernel, points, rows), len(points), a, n_jobs)
    return sums.astype(dtype, copy=False)


def sum_tiles(tiles: KernelTiles, m: int, weights: Floats, n_jobs: int | None) -> Floats:
    """Compute Σ_i a_i K(x_i, z) for m rows z and every column of weights."""
    n = len(weights)
    scaled = (weights * np.reshape(tiles.column_factors, (-1, 1))).astype(tiles.dtype)
    many = m * n > SMALL
    # At least eight blocks, whatever the number of threads, which must not change the result.
    n_rows = min(_TILE, -(-m // 8) if many else m)
    n_columns = min(max(_TILE, _TILE * _TILE // n_rows), n)
    workspaces = Workspaces(n_rows, n_columns, tiles.dtype)

    def sum_block(rows: slice) -> Floats:
        sums = np.zeros((rows.stop - rows.start, weights.shape[1]))
        for columns in slices(n, n_columns):
            workspace = workspaces.for_tile(rows, columns)
            sums += tiles.tile(rows, columns, workspace) @ scaled[columns]
        return sums

    blocks = list(slices(m, n_rows))
    sums = np.concatenate(list(map_threads(sum_block, blocks, n_jobs, small=not many)))
    sums *= np.reshape(tiles.row_factors, (-1, 1))
    return sums


def is_flat(X: AnyFloats, kernel: Kernel) -> bool:
    """Whether kernel values are so similar that float32 would lose their differences.

    Where weights sum to 0, as those of a ranker do, a sum consists of differences only.
    """
    rows = X[:: -(-len(X) // _ROWS_COMPARED)].astype(np.float64)
    values = sum_tiles(KernelTiles(kernel, rows, rows), len(rows), np.ones((len(rows), 1)), 1)
    return bool(values.mean() / len(rows) > _FLAT * kernel.diagonal(rows).mean())


def slices(n: int, size: int) -> Iterator[slice]:
    """Split the range from 0 to n into slices of one size; the last may be smaller."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


class Workspaces(local):
    """Memory for three tiles for each thread, allocated once."""

    def __init__(self, n_rows: int, n_columns: int, dtype: Any) -> None:
        self._memory = np.empty((3, n_rows * n_columns), dtype)

    def for_tile(self, rows: slice, columns: slice) -> AnyFloats:
        """Return contiguous memory for three tiles of these rows and columns."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        return np.asarray(self._memory[:, : shape[0] * shape[1]].reshape(3, *shape))


@dataclass(frozen=True)
class LevelWeights:
    """Weights for the signed sum of the ranker, of samples in increasing order."""

    levels: Floats  # (n,): numbers that do not decrease from one sample to the next
    weights: Floats  # (n,): weights b of the samples


def leave_one_out_sums(
    X: AnyFloats,
    a: Floats,
    kernel: Kernel,
    gammas: Sequence[float],
    signed: LevelWeights | None = None,
    n_jobs: int | None = None,
    backend: str = "auto",
) -> Floats:
    """Compute S_i = Σ_{j ≠ i} a_j K(x_j, x_i) for every γ, in float64.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The samples.
    a : ndarray of shape (n, n_sums)
        Weights.
    kernel : Kernel
        The kernel; its gamma is not used.
    gammas : sequence of float
        Values of γ, increasing.
    signed : LevelWeights, optional
        Adds a column: Σ_{j ≠ i} b_j sign(l_j − l_i) K(x_j, x_i), with the weights b and levels l.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    backend : {"auto", "numpy", "torch"}, default="auto"
        As in `kernel_sum`; values count once for each γ.

    Returns
    -------
    sums : ndarray of shape (n_gammas, n, n_sums), or one sum more
    """
    rows: Floats = np.asarray(X, dtype=np.float64)
    n = len(rows)
    steps = _steps(gammas) if kernel.is_exponential else [(gamma, 0) for gamma in gammas]
    device = choose_device(backend, kernel, n**2 * len(gammas))
    if device is not None:
        squarings = [squarings for _, squarings in steps]
        task = SumTask(kernel, gammas, squarings, rows, rows, a, leave_one_out=True)
        if signed is not None:
            task = replace(task, levels=signed.levels, weights=signed.weights)
        found = sums_by_torch(task, device)
        if found is not None:
            return found
    tiles = _SymmetricTiles(rows, kernel, steps, a, signed)
    sums = np.zeros((len(gammas), n, tiles.n_sums))
    places = list(_upper_tiles(n))
    parts = map_threads(tiles.sums, places, n_jobs, small=n * n <= SMALL)
    # Added in one order, by one thread: the same result for any number of threads.
    for (of_rows, of_columns), (at_rows, at_columns) in zip(places, parts, strict=True):
        sums[:, of_rows] += at_rows
        if of_rows != of_columns:
            sums[:, of_columns] += at_columns
    return sums


class _SymmetricTiles:
    """The contributions of each tile to the sums at its rows and at its columns."""

    def __init__(
        self,
        X: Floats,
        kernel: Kernel,
        steps: list[tuple[float, int]],
        a: Floats,
        signed: LevelWeights | None,
    ) -> None:
        self.kernel, self.signed = kernel, signed
        self.n_sums = a.shape[1] + (signed is not None)
        self._a = np.asfortranarray(a)  # contiguous columns, for BLAS
        first = replace(kernel, gamma=1.0) if kernel.is_exponential else kernel
        largest = max(gamma for gamma, _ in steps)
        self._tiles = KernelTiles(first, X, X, largest_factor=largest)
        size = min(_TILE, len(X))
        self._workspaces = Workspaces(size, size, np.dtype(np.float64))
        self._steps = steps

    def sums(self, place: tuple[slice, slice]) -> tuple[Floats, Floats]:
        """Compute the sums of all γ at the rows and at the columns of one tile.

        They are infinite or NaN where kernel values are; the caller checks.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self._sums(place)

    def _sums(self, place: tuple[slice, slice]) -> tuple[Floats, Floats]:
        rows, columns = place
        workspace = self._workspaces.for_tile(rows, columns)
        at_rows = np.zeros((len(self._steps), rows.stop - rows.start, self.n_sums))
        at_columns = np.zeros((len(self._steps), columns.stop - columns.start, self.n_sums))
        signs = None if self.signed is None else _signs(self.signed.levels, rows, columns)
        n_columns = self._a.shape[1]
        for step, values in enumerate(self._values(rows, columns, workspace)):
            if n_columns > _FEW_COLUMNS:
                at_rows[step, :, :n_columns] = values @ self._a[columns]
                at_columns[step, :, :n_columns] = values.T @ self._a[rows]
            else:
                for k in range(n_columns):
                    at_rows[step, :, k] = values @ self._a[columns, k]
                    at_columns[step, :, k] = self._a[rows, k] @ values
            if self.signed is not None and signs is not None:
                products = values * signs
                at_rows[step, :, -1] = products @ self.signed.weights[columns]
                at_columns[step, :, -1] = -(self.signed.weights[rows] @ products)
        return at_rows, at_columns

    def _values(self, rows: slice, columns: slice, workspace: AnyFloats) -> Iterator[AnyFloats]:
        """Yield the values of a tile for every γ, 0 on the diagonal; stop when all are 0."""
        base, values, spare = workspace
        self._tiles.base(rows, columns, base)
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
            if gamma * highest < _LOWEST_EXPONENT:
                return
            if squarings:
                for _ in range(squarings):
                    np.square(values, values)
            else:
                np.multiply(base, gamma, values)  # the exponential of −∞ is 0
                np.exp(values, values)
            yield values


def _upper_tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """List the tiles on and above the diagonal."""
    for rows in slices(n, _TILE):
        for columns in slices(n, _TILE):
            if columns.start >= rows.start:
                yield rows, columns


def _steps(gammas: Sequence[float]) -> list[tuple[float, int]]:
    """Pair every γ with how often to square the values of the one before; 0 for an exponential."""
    steps: list[tuple[float, int]] = []
    start = np.inf
    before = np.nan
    for gamma in gammas:
        doublings = np.log2(gamma / before)
        nearest = round(doublings) if np.isfinite(doublings) else 0
        is_power = 1 <= nearest <= 6 and abs(doublings - nearest) < 1e-9
        if is_power and gamma / start <= _LARGEST_POWER:
            steps.append((gamma, nearest))
        else:
            steps.append((gamma, 0))
            start = gamma
        before = gamma
    return steps


def _signs(levels: Floats, rows: slice, columns: slice) -> Floats:
    """Compute sign(l_j − l_i) for rows i and columns j; one number if all are equal."""
    if levels[rows.stop - 1] < levels[columns.start]:
        return np.ones((1, 1))
    return np.asarray(np.sign(levels[columns] - levels[rows, None]))
