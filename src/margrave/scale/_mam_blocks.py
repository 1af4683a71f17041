"""Blocks of rows for the maximal-average-margin estimators: validation, sums, moments and samples.

A sum over the rows of a block is not finite if a number is NaN or infinite. So a block is searched
for such numbers only if its sum is not finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d, validate_data

from margrave._indexing import largest_keys
from margrave._labels import has_missing, kind_of, natural, union
from margrave._typing import Codes, Floats
from margrave._validation import check_sample_weight
from margrave.mam import Reservoir, gamma_from_variance

ROWS = 4096
"""The number of rows in float32 that are converted to float64 at a time."""

LARGEST_RESERVOIR = 20_000
"""Rows that are kept: enough to place a threshold within a third of a percent."""

_RESERVOIR_BYTES = 64_000_000
_SMALLEST_RESERVOIR = 1_000
_ROWS_OF_MOMENTS = 2048
_LARGEST_POWER = 1000  # the largest power of two by which a number can be multiplied
_FEW_LABELS = 8
_LARGEST_TABLE = 10_000


def check_features(estimator: Any, X: Any) -> None:
    """Check the columns of a Dask collection as scikit-learn checks those of an array."""
    like = X._meta if hasattr(X, "columns") else np.empty((0, X.shape[1]))
    validate_data(estimator, like, reset=True, skip_check_array=True)


def check_approximable(estimator: Any, linear: bool) -> None:
    """Raise an error for an estimator that keeps every sample."""
    if not linear and estimator.n_components is None:
        raise ValueError(
            f"scale.fit takes {type(estimator).__name__} with kernel='linear' or with n_components "
            f"only; got kernel={estimator.kernel!r}, with which it keeps every sample. Set "
            "n_components (for the kernels 'rbf' and 'laplacian'), or draw rows into memory with "
            "scale.sample."
        )


def block_rows(X: Any, n_features: int, owner: str) -> NDArray[Any]:
    """Convert a block to float64, or leave it in float32, without a copy if possible."""
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
    """Raise an error for rows with NaN or infinity, if a sum over them is not finite."""
    if not np.isfinite(sums).all():
        assert_all_finite(X, input_name="X", estimator_name=owner)


def block_weights(sample_weight: Any, n: int, owner: str) -> Floats | None:
    """Check the weights of a block, which may all be 0; None if there are none."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape == (n,) and not weights.any():
        return weights
    return check_sample_weight(weights, n, owner)


def encode_block(y: Any) -> tuple[NDArray[Any], Codes]:
    """Find the sorted labels of a block, and the position of each row's label."""
    labels = column_or_1d(np.asarray(y))
    if labels.dtype.kind == "O":
        labels = natural(labels)
    if has_missing(labels):
        raise ValueError("Input y contains NaN.")
    if "/" in kind_of(labels):
        union([("MAMClassifier, y", labels)])  # raises the error for labels of several kinds
    known, codes = _unique(labels)
    if known.dtype.kind == "f":
        assert_all_finite(known, input_name="y")
    if known.dtype.kind == "f" and (known != np.floor(known)).any():
        check_classification_targets(known[known != np.floor(known)])
    return known, codes


def _unique(labels: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Compute np.unique with inverse, without a sort for small integers and objects."""
    if labels.dtype.kind in "iub" and labels.dtype != np.uint64:  # intp may not hold uint64
        low, high = int(labels.min()), int(labels.max())
        if high - low < _LARGEST_TABLE:
            places = labels.astype(np.intp) - low
            present = np.bincount(places, minlength=high - low + 1) > 0
            table = np.cumsum(present) - 1
            return (np.flatnonzero(present) + low).astype(labels.dtype), table[places]
    if labels.dtype.kind == "O":
        codes = {label: code for code, label in enumerate(sorted(set(labels.tolist())))}
        known = np.empty(len(codes), dtype=object)
        known[:] = list(codes)
        return known, np.fromiter(map(codes.__getitem__, labels), np.intp, len(labels))
    known, found = np.unique(labels, return_inverse=True)
    return known, found


def weighted_row_sums(X: NDArray[Any], columns: Floats) -> Floats:
    """Compute Σ_i a_i x_i for every column of a, in float64; `check_sums` checks the result."""
    with np.errstate(over="ignore", invalid="ignore"):
        if X.dtype == np.float64:
            return np.asarray(columns.T @ X)
        sums = np.zeros((columns.shape[1], X.shape[1]))
        for rows in gen_batches(len(X), ROWS):
            sums += columns[rows].T @ X[rows].astype(np.float64)
        return sums


def sums_by_label(X: NDArray[Any], codes: Codes, weights: Floats, n_labels: int) -> Floats:
    """Compute Σ s_i x_i over the rows of each label, in float64; `check_sums` checks them."""
    if n_labels <= _FEW_LABELS:
        return weighted_row_sums(X, weight_columns(codes, weights, n_labels))
    sums = np.zeros((n_labels, X.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in gen_batches(len(X), ROWS):
            own = codes[rows]
            places = own, np.arange(len(own))
            sparse = csr_array((weights[rows], places), shape=(n_labels, len(own)))
            sums += sparse @ X[rows].astype(np.float64, copy=False)
    return sums


def weight_columns(codes: Codes, weights: Floats, n_labels: int) -> Floats:
    """Put the weights of the rows in the column of their label; columns are contiguous."""
    columns = np.zeros((n_labels, len(codes)))
    columns[codes, np.arange(len(codes))] = weights
    return columns.T


def reservoir_size(n_features: int) -> int:
    """Compute how many rows to keep: fewer of wide ones, as merges hold those of several blocks."""
    fitting = max(_RESERVOIR_BYTES // (8 * max(n_features, 1)), _SMALLEST_RESERVOIR)
    return min(LARGEST_RESERVOIR, fitting)


def sample_block(
    X: NDArray[Any], labels: NDArray[Any], weights: Floats, seed: tuple[int, int], most: int
) -> Reservoir:
    """Keep rows of one block, by keys of its own; none without a weight."""
    keys = np.random.default_rng(seed).random(len(X))
    present = np.flatnonzero(weights)
    some = present[largest_keys(keys[present], most)]
    # A block is often that of a data frame, whose columns are contiguous.
    rows = np.take(X.T, some, axis=1).T if X.flags.f_contiguous else X[some]
    return Reservoir(rows, labels[some], weights[some], keys[some])


def merge_reservoirs(parts: list[Reservoir], most: int) -> Reservoir:
    """Keep rows of several blocks, in their order."""
    keys = np.concatenate([part.keys for part in parts])
    some = largest_keys(keys, most)
    starts = np.cumsum([0] + [len(part.keys) for part in parts])
    ends = np.searchsorted(some, starts)
    own = [some[ends[i] : ends[i + 1]] - starts[i] for i in range(len(parts))]
    return Reservoir(
        np.concatenate([part.X[kept] for part, kept in zip(parts, own, strict=True)]),
        np.concatenate([part.labels[kept] for part, kept in zip(parts, own, strict=True)]),
        np.concatenate([part.weights[kept] for part, kept in zip(parts, own, strict=True)]),
        keys[some],
    )


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and variance of rows with weights above 0, which can be merged.

    Random features are centred at the mean of the rows, and gamma="scale" uses the variance of all
    numbers. Variances are merged from those of the blocks, each around its own mean: rows far from
    0 keep their digits.
    """

    n: int  # number of rows
    total: Floats  # (n_features,): their sum, without weights
    weight: float  # their total weight
    mean: float  # the weighted mean of all numbers, in units
    squares: float  # their weighted squares around it, in units
    power: int  # the unit is this power of two, so that squares do not overflow

    @classmethod
    def of(cls, X: NDArray[Any], weights: Floats, owner: str) -> Moments:
        """Compute the moments of one block; raise an error for NaN and infinity."""
        total = weighted_row_sums(X, np.ones((len(X), 1)))[0]
        check_sums(total, X, owner)  # also the rows of weight 0
        rows, s = X, weights
        if not weights.all():
            rows, s = X[weights > 0], weights[weights > 0]
            total = weighted_row_sums(rows, np.ones((len(rows), 1)))[0] if len(rows) else 0 * total
        n, d = rows.shape
        if n == 0:
            return cls(0, np.zeros(d), 0.0, 0.0, 0.0, -_LARGEST_POWER)
        largest = max(float(rows.max()), -float(rows.min()))
        power = int(np.clip(np.frexp(largest)[1], -_LARGEST_POWER, _LARGEST_POWER))
        middle = float((total * 2.0**-power).mean() / n)
        first, second = _sums_around(rows, s, 2.0**-power, middle)
        weight = float(s.sum())
        offset = first / (weight * d)
        return cls(n, total, weight, middle + offset, second - first * offset, power)

    @classmethod
    def merged(cls, parts: list[Moments], shifts: list[int]) -> Moments:
        """Merge moments, the weights of each multiplied by a power of two."""
        power = max(part.power for part in parts)
        n, total, weight, mean, squares = 0, np.zeros_like(parts[0].total), 0.0, 0.0, 0.0
        d = len(total)
        for part, shift in zip(parts, shifts, strict=True):
            if part.n == 0:
                continue
            own = float(np.ldexp(part.weight, shift))
            own_mean = float(np.ldexp(part.mean, part.power - power))
            own_squares = float(np.ldexp(part.squares, shift + 2 * (part.power - power)))
            n, total = n + part.n, total + part.total
            offset = own_mean - mean
            squares += own_squares + offset**2 * d * weight * own / (weight + own)
            mean += offset * own / (weight + own)
            weight += own
        return cls(n, total, weight, mean, squares, power)

    @property
    def centre(self) -> Floats:
        """The mean of the rows."""
        return self.total / self.n

    def scale_gamma(self, kernel: Any) -> float:
        """Compute γ of gamma="scale"."""
        d = len(self.total)
        variance = self.squares / (self.weight * d)
        return gamma_from_variance(variance, float(2.0**self.power), d, kernel)


def _sums_around(rows: NDArray[Any], s: Floats, scale: float, middle: float) -> tuple[float, float]:
    """Compute weighted sums of all numbers around a middle, and of their squares."""
    first = second = 0.0
    if rows.flags.f_contiguous:  # as those of a data frame: column by column
        for column in rows.T:
            around = column * np.float64(scale) - middle
            first += float(s @ around)
            second += float(s @ np.square(around, around))
        return first, second
    for part in gen_batches(len(rows), _ROWS_OF_MOMENTS):
        around = rows[part] * np.float64(scale) - middle
        first += float(s[part] @ around.sum(axis=1))
        second += float(s[part] @ np.einsum("ij,ij->i", around, around))
    return first, second
