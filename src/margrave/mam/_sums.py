"""Sums of kernels: Σ_i a_i K(x_i, z) for many z, without the matrix of all values.

Everything of document 002 is made of such sums: the classifier (7), the ranker (22), the length of
their weights and the complexity (9). Z and X are cut into blocks; the values of one block fit into
the cache of a core, are summed, and are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import local
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from margrave._typing import Floats
from margrave._validation import is_count, is_number
from margrave.mam._exponential import Tile
from margrave.mam._kernels import NAMES, Kernel, KernelFunction, Pairs
from margrave.mam._threads import in_threads
from margrave.mam._torch_sums import BACKENDS, Task, device_for, torch_sums

_ALIKE, _ROWS_COMPARED = 1 - 1e-3, 256
_TILE = 512  # rows and columns of a block: 1 MB of float32
SMALL = 1_000_000
"""Pairs that are not worth a second thread."""


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
) -> NDArray[np.floating[Any]]:
    """Sum a kernel over samples: Σ_i a_i K(x_i, z) for every z.

    The same as ``pairwise_kernels(Z, X, kernel) @ a``, but the m × n values are never stored, all
    cores work, and float32 has an exponential of its own.

    Parameters
    ----------
    Z : array-like of shape (m, n_features)
        Where the sum is wanted. Sparse with the linear kernel only, as `X`.
    X : array-like of shape (n, n_features)
        The samples.
    a : array-like of shape (n,) or (n, n_sums)
        Their weights; several columns are several sums, for little more than the price of one.
    kernel : {"rbf", "linear", "poly", "laplacian"} or callable, default="rbf"
        exp(−γ‖x − z‖²), x·z, (γ x·z + coef0)^degree, exp(−γ‖x − z‖₁), or a function that takes
        some rows of Z and some of X and returns the values of all pairs, as in scikit-learn's SVC.
    gamma : float, optional
        γ; 1 / n_features if None, as in scikit-learn.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    backend : {"auto", "numpy", "torch"}, default="auto"
        What computes. "torch" is PyTorch, on a GPU if there is one; it comes with Margrave's extra
        ``gpu``. "auto" takes it for 10¹⁰ pairs or more if it is installed
        and there is a GPU, else numpy. The linear kernel and those of your own are always numpy's.
    n_jobs : int, optional
        Threads; all cores that the process may use if None or -1.

    Returns
    -------
    sums : ndarray of shape (m,) or (m, n_sums)
        In float32 if Z and X both are, else in float64.

    Notes
    -----
    In float32 a value is off by at most 3e-5 of itself and by 6e-6 on average; such errors are of
    either sign, and a sum of many values is off by less. Blocks are added up in float64. Values
    too small for their type count as 0: with a narrow width a sum far from all samples is 0. The
    result does not depend on `n_jobs`.

    By PyTorch sums of float32 are off by less than 1e-5 and usually by less than 1e-6, not of
    themselves but of Σ|a|K (of the polynomial kernel with all numbers, coef0 too, taken without
    their signs): where terms cancel, what is left is less exact. Those of float64 are computed in
    float64, which is the way to check them. Where Triton is, the values never leave the GPU's
    cores; else, and on the CPU, PyTorch stores chunks of them.

    Examples
    --------
    >>> from margrave.mam import kernel_sum
    >>> kernel_sum([[0.0], [1.0]], [[0.0], [2.0]], [1, -1], gamma=1.0).round(4)
    array([0.9817, 0.    ])
    """
    _check_parameters(kernel, degree, coef0, n_jobs, backend)
    places, rows = _checked_rows(Z, X, allow_sparse=kernel == "linear")
    dtype = rows.dtype
    weights = check_array(a, ensure_2d=False, dtype=np.float64, input_name="a")
    if len(weights) != rows.shape[0] or weights.ndim > 2:
        raise ValueError(
            f"kernel_sum needs a with a weight for each of {rows.shape[0]} rows of X; "
            f"got shape {weights.shape}."
        )
    if kernel == "linear":
        return np.asarray(places @ (rows.T @ weights.astype(dtype)))
    made = Kernel(kernel, _checked_gamma(gamma, rows.shape[1]), degree, coef0)
    columns = weights.reshape(len(weights), -1)
    sums = _sums_by_torch(made, places, rows, columns, backend)
    if sums is None:
        sums = sums_over(Pairs(made, places, rows), len(places), columns, n_jobs)
    return sums.reshape(len(places), *weights.shape[1:]).astype(dtype, copy=False)


def _sums_by_torch(kernel: Kernel, Z: Tile, X: Tile, a: Floats, backend: str) -> Floats | None:
    """The sums where PyTorch shall compute them, and can."""
    device = device_for(backend, kernel, len(Z) * len(X))
    if device is None:
        return None
    found = torch_sums(Task(kernel, [kernel.gamma], [0], Z, X, a), device)
    return None if found is None else found[0]


def sums_over(pairs: Pairs, m: int, weights: Floats, n_jobs: int | None) -> Floats:
    """Σ_i a_i K(x_i, z) for m rows z and every column of weights."""
    n = len(weights)
    scaled = (weights * np.reshape(pairs.column_factors, (-1, 1))).astype(pairs.dtype)
    many = m * n > SMALL
    # Eight blocks or more, whatever the number of threads: they must not change the result.
    n_rows = min(_TILE, -(-m // 8) if many else m)
    n_columns = min(max(_TILE, _TILE * _TILE // n_rows), n)
    rooms = Rooms(n_rows, n_columns, pairs.dtype)

    def block(rows: slice) -> Floats:
        sums = np.zeros((rows.stop - rows.start, weights.shape[1]))
        for columns in slices(n, n_columns):
            sums += pairs.tile(rows, columns, rooms.of(rows, columns)) @ scaled[columns]
        return sums

    blocks = list(slices(m, n_rows))
    sums = np.concatenate(list(in_threads(block, blocks, n_jobs, small=not many)))
    sums *= np.reshape(pairs.row_factors, (-1, 1))
    return sums


def is_flat(X: Tile, kernel: Kernel) -> bool:
    """Whether kernel values are so alike that float32 would blur their differences.

    Where weights sum to 0, as a ranker's do, differences are all that a sum is made of.
    """
    rows = X[:: -(-len(X) // _ROWS_COMPARED)].astype(np.float64)
    values = sums_over(Pairs(kernel, rows, rows), len(rows), np.ones((len(rows), 1)), 1)
    return bool(values.mean() / len(rows) > _ALIKE * kernel.diagonal(rows).mean())


def slices(n: int, size: int) -> Iterator[slice]:
    """0 to n in parts of a size, the last one maybe smaller."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


class Rooms(local):
    """Three tiles to work in for each thread, made once."""

    def __init__(self, n_rows: int, n_columns: int, dtype: Any) -> None:
        self._room = np.empty((3, n_rows * n_columns), dtype)

    def of(self, rows: slice, columns: slice) -> Tile:
        """The part of the room that a tile of these rows and columns takes, without gaps."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        return np.asarray(self._room[:, : shape[0] * shape[1]].reshape(3, *shape))


def _checked_rows(Z: ArrayLike, X: ArrayLike, allow_sparse: bool) -> tuple[Any, Any]:
    """Both sets as finite numbers of one floating type, with the same number of features."""
    if (issparse(Z) or issparse(X)) and not allow_sparse:
        raise TypeError("kernel_sum takes sparse rows with kernel='linear' only.")
    places, rows = (
        check_array(
            side, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], input_name=name
        )
        for side, name in ((Z, "Z"), (X, "X"))
    )
    if places.shape[1] != rows.shape[1]:
        raise ValueError(
            "kernel_sum needs Z and X with the same features; "
            f"got {places.shape[1]} and {rows.shape[1]}."
        )
    dtype = np.result_type(places.dtype, rows.dtype)
    return places.astype(dtype, copy=False), rows.astype(dtype, copy=False)


def _check_parameters(kernel: Any, degree: Any, coef0: Any, n_jobs: Any, backend: Any) -> None:
    rules = {
        "kernel": ("'rbf', 'linear', 'poly', 'laplacian' or callable", kernel, is_kernel(kernel)),
        "degree": ("an integer of at least 1", degree, is_count(degree)),
        "coef0": ("a finite number", coef0, is_number(coef0) and bool(np.isfinite(coef0))),
        "n_jobs": ("None, -1 or a number of threads", n_jobs, is_jobs(n_jobs)),
        "backend": ("'auto', 'numpy' or 'torch'", backend, is_backend(backend)),
    }
    for name, (allowed, given, kept) in rules.items():
        if not kept:
            raise ValueError(f"kernel_sum needs {name} to be {allowed}; got {given!r}.")


def _checked_gamma(gamma: float | None, n_features: int) -> float:
    if gamma is None:
        return 1 / n_features
    if not (is_number(gamma) and 0 < gamma < np.inf):
        raise ValueError(f"kernel_sum needs gamma to be a finite number above 0; got {gamma!r}.")
    return float(gamma)


def is_jobs(n_jobs: Any) -> bool:
    """Whether it is None, -1 or a number of threads."""
    return n_jobs is None or is_count(n_jobs) or (is_number(n_jobs) and n_jobs == -1)


def is_backend(backend: Any) -> bool:
    """Whether it is the name of a backend."""
    return isinstance(backend, str) and backend in BACKENDS


def is_kernel(kernel: Any) -> bool:
    """Whether it is a kernel."""
    return callable(kernel) or (isinstance(kernel, str) and kernel in NAMES)
