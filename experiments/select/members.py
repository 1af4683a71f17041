"""Members that look up their probabilities in a table; both interpreters import this module."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = dict[bytes, int]


class LookupMember:
    """A fitted classifier that looks up its probabilities.

    Parameters
    ----------
    rows : dict
        The row of each sample in the table, by its bytes.
    proba : ndarray of shape (n, C)
        Its probabilities.
    """

    def __init__(self, rows: Rows, proba: NDArray[Any]) -> None:
        self.rows = rows
        self.proba = proba
        self.classes_ = np.arange(proba.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> LookupMember:  # noqa: ARG002
        """Return itself; DESlib requires the method."""
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Look up the probabilities of samples."""
        at = [self.rows[row] for row in keys(X)]
        return np.asarray(self.proba[at])

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class, the first one in a tie."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


def keys(X: Any) -> list[bytes]:
    """Convert each sample to bytes."""
    return [row.tobytes() for row in np.ascontiguousarray(X, dtype=np.float64)]


def lookups(parts: list[tuple[Any, NDArray[Any]]]) -> list[LookupMember]:
    """Make a member for each column of tables (n, L, C) of probabilities of some samples."""
    rows: Rows = {}
    for i, key in enumerate(key for X, _ in parts for key in keys(X)):
        rows.setdefault(key, i)
    table = np.concatenate([proba for _, proba in parts]).astype(np.float64)
    return [LookupMember(rows, table[:, j]) for j in range(table.shape[1])]
