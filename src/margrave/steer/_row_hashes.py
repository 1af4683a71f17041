"""Hashes of rows, which find copies of rows and remember rows without holding them.

A row is hashed by its values as the user passed them, whatever holds them: an array, a sparse
matrix, a data frame or a list. Equal rows have equal hashes; any two of a million different rows
have equal hashes with a probability of 3e-8.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import prod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from margrave._indexing import lazy_rows
from margrave._typing import Codes, Floats

Hashes = NDArray[np.uint64]

AUTO, GROUP, NEAR, INDEPENDENT = "auto", "group", "near", "independent"
"""What rows are that are equal, or nearly: independent observations in a table of few values, else
copies (nearly equal ones too, if they are few); copies; copies in any case; or independent
observations in any case."""

ROW, ONE_OF_GROUP, ONE_OF_CLASS = "", "group", "group and class"
"""What a certificate counts: each row, or one of each group, or one of each group and class."""

# A larger fraction of nearly equal rows cannot be by chance.
MAX_BY_CHANCE = 0.005
# Nearly equal: equal up to so many digits below the scale of each column. Numbers in single
# precision or with six decimals are then equal to what they were made from, in most rows. A single
# column of different numbers needs more digits, or rows would be equal by chance.
_DIGITS, _DIGITS_OF_ONE = 4, 6
_EXACT = 2**53  # larger integers are not exact as floats
_NUMBERS = Real | np.bool_
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")  # written as text
_MISSING, _INTEGER = np.uint64(0x6D697373696E67), np.uint64(0x696E7465676572)
# Odd numbers and shifts of the finalizer of SplitMix64 (Steele et al., 2014).
_STEP, _FIRST, _SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def hash_rows(X: Any, grid: Floats | None = None, left_out: Collection[int] = ()) -> Hashes:
    """Hash the rows of X.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, ...)
        The rows. Numbers are compared as numbers (1, 1.0, True and the text "1" are equal), all
        missing values are equal, and everything else is compared as text without spaces around it.
    grid : ndarray of shape (n_columns,), default=None
        Numbers are rounded to multiples of these, from :func:`rounding_grid`. None and 0 are
        without rounding.
    left_out : collection of int, default=()
        Positions of columns that are not compared; none of a sparse matrix.

    Returns
    -------
    ndarray of uint64 of shape (n_samples,)
        The hashes; a sparse matrix has those of the same dense array.
    """
    if sparse.issparse(X):
        return _hash_sparse(X.tocsr(), grid)
    total = np.zeros(_count_rows(X), dtype=np.uint64)
    for j, values in enumerate(read_columns(X)):
        if j not in left_out:
            step = 0.0 if grid is None or j >= len(grid) else float(grid[j])
            total += _place(_hash_values(values, step), np.uint64(j))
    return _mix(total)


def hash_column(values: NDArray[Any], position: int) -> Hashes:
    """Hash a column; sums of such hashes are equal where rows are equal in these columns."""
    return _place(_hash_values(values), np.uint64(position))


def rounding_grid(X: Any) -> Floats:
    """Compute for each column the multiples to round to, relative to the scale of the column.

    The scale is the median distance of the values from their median, among the values that differ
    from it. The multiple is a power of ten, about 10,000 times smaller; a million times unless at
    least two columns have mostly different numbers. It is 0 for a column that is constant, or not
    of numbers.
    """
    columns = list(read_columns(X))
    scales = np.array([_scale(values) for values in columns], dtype=np.float64)
    n_continuous = sum(
        scale > 0 and 2 * len(np.unique(values)) > len(values)
        for scale, values in zip(scales, columns, strict=True)
    )
    digits = _DIGITS if n_continuous > 1 else _DIGITS_OF_ONE
    steps = 10.0 ** (np.floor(np.log10(np.where(scales > 0, scales, 1.0))) - digits)
    return np.where(scales > 0, steps, 0.0)


def random_keys(rows: Hashes, seed: int) -> Floats:
    """Draw a number in [0, 1) for each row, the same for equal rows."""
    mixed = _mix(rows ^ _mix(np.array([seed], dtype=np.uint64)))
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def one_of_each(rows: Hashes | Codes, random_state: Any) -> Codes:
    """Return the position of one of each set of equal rows, drawn at random, in order.

    Parameters
    ----------
    rows : ndarray
        The hashes of the rows, or the numbers of their sets.
    random_state : int, RandomState instance or None
        Draws the rows.
    """
    shuffled = check_random_state(random_state).permutation(len(rows))
    first = np.unique(rows[shuffled], return_index=True)[1]
    return np.sort(shuffled[first])


def one_of_each_group(
    rows: Hashes, codes: Codes, groups: NDArray[Any], one_of: str, among: Codes
) -> Codes:
    """Return the position of one row of each group, or of each group and class, in order.

    The choice `among` some rows is pseudo-random. It is a function of the set of rows, whatever
    their order.
    """
    rows, codes, units = rows[among], codes[among], np.unique(groups, return_inverse=True)[1][among]
    order = np.lexsort([units, codes, rows])
    order = order[np.random.RandomState(np.sort(rows).view(np.uint32)).permutation(len(rows))]
    if one_of == ONE_OF_CLASS:
        units = units * (codes.max(initial=0) + 1) + codes
    return np.sort(among[order[np.unique(units[order], return_index=True)[1]]])


@dataclass(frozen=True, eq=False)
class RowHashes:
    """The hashes of some rows.

    Attributes
    ----------
    exact, rounded : ndarray of uint64
        The hashes, without and with rounding to the scale of the columns.
    """

    exact: Hashes
    rounded: Hashes

    @classmethod
    def joined(cls, parts: list[RowHashes]) -> RowHashes:
        """Join the hashes of several sets of rows."""
        exact, rounded = ([getattr(part, name) for part in parts] for name in ("exact", "rounded"))
        return cls(np.concatenate(exact), np.concatenate(rounded))

    def __len__(self) -> int:
        return len(self.exact)

    def __getitem__(self, at: Codes) -> RowHashes:
        """Select rows by position."""
        return RowHashes(self.exact[at], self.rounded[at])

    @property
    def fraction_equal(self) -> float:
        """Fraction of the rows that equal another one, up to the rounding."""
        _, counts = np.unique(self.rounded, return_counts=True)
        return float(counts[counts > 1].sum() / max(len(self), 1))


@dataclass(frozen=True, eq=False)
class UsedRows:
    """The rows that a model was built from: the training, the tuning and certification sets.

    Attributes
    ----------
    duplicates : str
        What equal rows are. If they are copies, no row may equal one of these; otherwise as many
        may as by chance.
    columns : list of str or None
        The names of the columns, if they have any.
    left_out : tuple of int
        Positions of columns that are not compared: in these, copies may differ.
    grid : ndarray of shape (n_columns,)
        The multiples that numbers are rounded to before rows are compared.
    rows : RowHashes
        The hashes of the rows.
    one_of : str
        What the certificate counts one row of.
    """

    duplicates: str
    columns: list[str] | None
    left_out: tuple[int, ...]
    grid: Floats
    rows: RowHashes
    one_of: str = ROW

    @classmethod
    def none_of(cls, X: Any, duplicates: str, left_out: tuple[int, ...] = ()) -> UsedRows:
        """Use no rows yet; X determines the names and the scale of the columns."""
        names = list(getattr(X, "columns", [])) or None
        none = np.zeros(0, dtype=np.uint64)
        return cls(duplicates, names, left_out, rounding_grid(X), RowHashes(none, none))

    @property
    def together(self) -> bool:
        """Whether equal rows are copies of one observation."""
        return self.duplicates != INDEPENDENT

    def hash(self, X: Any) -> RowHashes:
        """Hash rows, to compare them with these; columns are matched by name."""
        if self.columns is not None and set(self.columns) <= set(getattr(X, "columns", [])):
            X = X[self.columns]
        exact, rounded = (hash_rows(X, grid, self.left_out) for grid in (None, self.grid))
        return RowHashes(exact, rounded)

    def count(self, rows: RowHashes) -> int:
        """Count the rows that equal one of these, or nearly do, more often than by chance."""
        n = len(rows)
        equal = int(np.isin(rows.exact, self.rows.exact).sum())
        near = int(np.isin(rows.rounded, self.rows.rounded).sum())
        found = near if near - equal > MAX_BY_CHANCE * n else equal
        chance = 0.0 if self.together else self.rows.fraction_equal
        by_chance = n * chance + 3 * np.sqrt(n * chance * (1 - chance))
        return found if found > by_chance else 0

    def with_rows(self, rows: RowHashes) -> UsedRows:
        """Add rows."""
        return replace(self, rows=RowHashes.joined([self.rows, rows]))


def _count_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def read_columns(X: Any) -> Iterator[NDArray[Any]]:
    """Yield the columns of X as arrays of numbers, times, texts or objects."""
    if sparse.issparse(X):
        X = X.tocsc()
        yield from (X.data[X.indptr[j] : X.indptr[j + 1]] for j in range(X.shape[1]))
        return
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        for j in range(X.shape[1]):
            column = X.iloc[:, j]
            if not hasattr(column, "to_numpy"):
                raise lazy_rows(X)
            if isinstance(column.dtype, np.dtype):
                yield _as_numbers(column.to_numpy())
            elif getattr(column.dtype, "kind", "O") in "biuf":
                yield column.to_numpy(dtype=np.float64, na_value=np.nan)
            else:
                yield _as_numbers(column.to_numpy(dtype=object))
        return
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        array = np.fromiter(X, dtype=object)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        array = np.array(X, dtype=object)  # numbers among texts stay numbers
    yield from map(_as_numbers, array.reshape(len(array), prod(array.shape[1:])).T)


def _as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Convert objects to numbers, if all of them are numbers or None."""
    if values.dtype != object or not all(isinstance(one, _NUMBERS | None) for one in values):
        return values
    try:
        return np.array([np.nan if one is None else one for one in values], dtype=np.float64)
    except OverflowError:  # an integer that no float can hold
        return values


def _scale(values: NDArray[Any]) -> float:
    if values.dtype.kind not in "iuf":
        return 0.0
    numbers = values[np.isfinite(values)].astype(np.float64)
    distances = np.abs(numbers - np.median(numbers)) if len(numbers) else numbers
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 0.0


def _hash_values(values: NDArray[Any], step: float | Floats = 0.0) -> Hashes:
    """Hash each value of a column; 0 only for the number 0."""
    kind = values.dtype.kind
    if kind in "mM":
        moments = values.astype(f"{values.dtype.str[:3]}[us]").view(np.int64)  # of any unit
        hashed = _mix(moments.astype(np.uint64) ^ _INTEGER)
        return np.where(np.isnat(values), _MISSING, hashed)
    if kind not in "biuf":
        return _hash_objects(values)
    numbers = values.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        numbers = np.where(step > 0, np.round(numbers / step), numbers)
    hashed = np.where(numbers == 0, np.uint64(0), _mix(numbers.view(np.uint64)))
    if kind in "iu":
        exact = _mix(values.astype(np.uint64) ^ _INTEGER)
        return np.where((values > _EXACT) | (values < -_EXACT), exact, hashed)
    return np.where(np.isnan(numbers), _MISSING, hashed)


def _hash_objects(values: NDArray[Any]) -> Hashes:
    """Hash texts and other objects, each distinct one once."""
    known: dict[Any, int] = {}
    hashed = np.empty(len(values), dtype=np.uint64)
    for i, value in enumerate(values.tolist()):
        key = value if isinstance(value, str | int | float) else (type(value), str(value))
        if key not in known:
            known[key] = _hash_object(value)
        hashed[i] = known[key]
    return hashed


def _hash_object(value: Any) -> int:
    text = str(value).strip()
    if value is None or text in ("", "<NA>", "NaT"):
        return int(_MISSING)
    if isinstance(value, _NUMBERS) or _NUMBER.fullmatch(text):
        with suppress(OverflowError):  # an integer that no float can hold is hashed as text
            return int(_hash_values(np.array([float(value)]))[0])
    raw = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little")


def _hash_sparse(X: Any, grid: Floats | None) -> Hashes:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    step = 0.0 if grid is None else grid[X.indices]
    hashed = _place(_hash_values(X.data, step), X.indices.astype(np.uint64))
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(hashed, dtype=np.uint64)])
    return _mix(sums[X.indptr[1:]] - sums[X.indptr[:-1]])  # both overflow on purpose


def _place(hashed: Hashes, column: np.uint64 | Hashes) -> Hashes:
    """Make hashes depend on their column; the number 0 stays 0, as in a sparse matrix."""
    with np.errstate(over="ignore"):
        return np.where(hashed == 0, hashed, _mix(hashed + (column + np.uint64(1)) * _STEP))


def _mix(values: Hashes) -> Hashes:
    """Mix the bits of each number; the products overflow on purpose."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
