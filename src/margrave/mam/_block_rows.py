"""One block of rows, as a Dask collection has it: checked as an array in memory would be.

What a sum over the rows of document 002, (4) to (7) and (22), tells besides itself is whether a
number was NaN or infinite. A block is looked at again only where its sum is not finite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d, validate_data

from margrave._labels import has_missing, kind_of, natural, union
from margrave._typing import Codes, Floats
from margrave._validation import check_sample_weight
from margrave.mam._sums import slices

ROWS = 4096
"""Of float32 that become float64 at a time; and of many labels, where they lie."""

_FEW_LABELS = 8
_LARGEST_TABLE = 10_000


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Number and names of the columns of a Dask collection, as scikit-learn checks them."""
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(
            f"{type(estimator).__name__} needs X with rows and columns; got a Dask collection "
            f"with {X.ndim} dimension."
        )
    like = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
    validate_data(estimator, like, reset=reset, skip_check_array=True)


def refuse_no_responses(estimator: Any) -> None:
    """Refuse y=None, in scikit-learn's words."""
    validate_data(estimator, y=None)


def block_rows(X: Any, n_features: int, owner: str) -> NDArray[Any]:
    """A block as float64, or float32 if it came so, without a copy where that can be."""
    rows: NDArray[Any] = check_array(
        X, dtype=[np.float64, np.float32], ensure_all_finite=False, input_name="X", estimator=owner
    )
    if rows.shape[1] != n_features:
        raise ValueError(
            f"X has {rows.shape[1]} features in a block, but {owner} is expecting {n_features} "
            "features as input."
        )
    return rows


def check_sums(sums: Floats, X: NDArray[Any], owner: str) -> None:
    """Refuse rows with NaN or infinity, which a sum over them tells of."""
    if not np.isfinite(sums).all():
        assert_all_finite(X, input_name="X", estimator_name=owner)


def block_weights(sample_weight: Any, n: int, owner: str) -> Floats | None:
    """Weights of a block, which may all be 0 here; None where none were given."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape == (n,) and not weights.any():
        return weights
    return check_sample_weight(weights, n, owner)


def coded(y: Any) -> tuple[NDArray[Any], Codes]:
    """The labels of a block, sorted, and the place of each row's among them."""
    labels = column_or_1d(np.asarray(y))
    if labels.dtype.kind == "O":
        labels = natural(labels)
    if has_missing(labels):
        raise ValueError("Input y contains NaN.")
    if "/" in kind_of(labels):
        union([("MAMClassifier.fit, y", labels)])  # which refuses labels of several kinds
    known, codes = _unique(labels)
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name="y")
    if known.dtype.kind == "f" and (known != np.floor(known)).any():
        check_classification_targets(known[known != np.floor(known)])
    return known, codes


def _unique(labels: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """As numpy's, without a sort where labels are small integers or objects."""
    if labels.dtype.kind in "iub" and labels.dtype != np.uint64:  # which intp may not hold
        low, high = int(labels.min()), int(labels.max())
        if high - low < _LARGEST_TABLE:
            places = labels.astype(np.intp) - low
            there = np.bincount(places, minlength=high - low + 1) > 0
            table = np.cumsum(there) - 1
            return (np.flatnonzero(there) + low).astype(labels.dtype), table[places]
    if labels.dtype.kind == "O":
        codes = {label: code for code, label in enumerate(sorted(set(labels.tolist())))}
        known = np.empty(len(codes), dtype=object)
        known[:] = list(codes)
        return known, np.fromiter(map(codes.__getitem__, labels), np.intp, len(labels))
    known, found = np.unique(labels, return_inverse=True)
    return known, found


def plain_sums(X: NDArray[Any], columns: Floats) -> Floats:
    """Σ_i a_i x_i for every column of a, in float64; slices of float32 are widened in the cache."""
    with np.errstate(over="ignore", invalid="ignore"):  # `check_sums` looks at them
        if X.dtype == np.float64:
            return np.asarray(columns.T @ X)
        sums = np.zeros((columns.shape[1], X.shape[1]))
        for rows in slices(len(X), ROWS):
            sums += columns[rows].T @ X[rows].astype(np.float64)
        return sums


def sums_by_label(X: NDArray[Any], codes: Codes, weights: Floats, n: int) -> Floats:
    """Σ s_i x_i of the rows of each of n labels, in float64."""
    if n <= _FEW_LABELS:
        return plain_sums(X, in_columns(codes, weights, n))
    sums = np.zeros((n, X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):  # `check_sums` looks at them
        for rows in slices(len(X), ROWS):
            own = codes[rows]
            places = own, np.arange(len(own))
            spread = csr_array((weights[rows], places), shape=(n, len(own)))
            sums += spread @ X[rows].astype(np.float64, copy=False)
    return sums


def in_columns(codes: Codes, weights: Floats, n: int) -> Floats:
    """Weights of the rows, in the column of their class; columns lie together in memory."""
    columns = np.zeros((n, len(codes)))
    columns[codes, np.arange(len(codes))] = weights
    return columns.T
