"""The rows that a model was built from, as hashes: a model remembers them without holding them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Flags, Floats
from margrave.committee import FittedMembers

Hashes = NDArray[np.uint64]

# The smallest hashes are a random sample of all, so this many estimate a fraction closely.
_MAX_HASHES = 10_000
_DIGITS = 6  # rows are equal if they agree to this number of decimals
# If fewer of the rows are distinct, new rows may be equal to them by chance.
_MIN_DISTINCT = 0.95
# Odd numbers and shifts of the finalizer of SplitMix64 (Steele et al., 2014).
_STEP, _FIRST, _SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass(frozen=True, eq=False)
class UsedRows:
    """Hashes of the rows that a model was built from.

    Attributes
    ----------
    hashes : ndarray of uint64
        The smallest hashes of the rows, sorted, each once.
    n : int
        Number of rows, with duplicates.
    n_distinct : int
        Number of distinct rows.
    """

    hashes: Hashes
    n: int
    n_distinct: int

    @classmethod
    def of(cls, *parts: Hashes) -> UsedRows:
        """Collect the hashes of several sets of rows."""
        every = np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
        distinct = np.unique(every)
        return cls(distinct[:_MAX_HASHES], len(every), len(distinct))

    def with_rows(self, hashes: Hashes) -> UsedRows:
        """Add rows, none of which was used before."""
        more = UsedRows.of(hashes)
        smallest = np.unique(np.concatenate([self.hashes, more.hashes]))[:_MAX_HASHES]
        return UsedRows(smallest, self.n + more.n, self.n_distinct + more.n_distinct)

    def estimate(self, hashes: Hashes) -> float:
        """Estimate which fraction of some rows was used; 0 if many used rows are equal.

        It is exact up to 10,000 distinct used rows.
        """
        if self.n_distinct < _MIN_DISTINCT * self.n or not len(self.hashes):
            return 0.0
        if self.n_distinct > len(self.hashes):  # hashes above the largest are not recorded
            hashes = hashes[hashes <= self.hashes[-1]]
        return float(np.isin(hashes, self.hashes).mean()) if len(hashes) else 0.0


def hash_rows(committee: FittedMembers, X: Any) -> Hashes:
    """Hash encoded rows by their numbers or, where they are no array, by the members' scores."""
    rows: Floats = np.asarray(_as_numbers(X, committee), dtype=np.float64)
    if not len(rows):
        return np.zeros(0, dtype=np.uint64)
    rows = np.round(rows.reshape(len(rows), -1), _DIGITS) + 0.0  # no negative zero
    missing: Flags = np.isnan(rows)
    bits = np.where(missing, np.nan, rows).view(np.uint64)
    total = np.zeros(len(rows), dtype=np.uint64)
    for column in bits.T:  # each column depends on those before it
        total = _mix(total + _STEP ^ _mix(column))
    return total


def _as_numbers(X: Any, committee: FittedMembers) -> Any:
    """Return rows of numbers as an array, whatever holds them; other rows as the raw scores."""
    dtypes = getattr(X, "dtypes", None)  # of a data frame
    if dtypes is not None and all(getattr(dtype, "kind", "O") in "biuf" for dtype in dtypes):
        return X.to_numpy(dtype=np.float64)
    array = np.asarray(X) if isinstance(X, list | tuple | np.ndarray) else None
    if array is not None and array.ndim == 2 and array.dtype.kind in "biuf":
        return array
    return committee.raw(X)


def _mix(values: Hashes) -> Hashes:
    """Mix the bits of each number; the products overflow on purpose."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
