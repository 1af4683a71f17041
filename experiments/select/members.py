"""Members that answer from a table, for both libraries: whichever interpreter imports this."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = dict[bytes, int]


class LookupMember:
    """A trained classifier that knows its answers by heart.

    Parameters
    ----------
    rows : dict
        Where each sample is in the table, by its bytes.
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
        """Nothing is left to learn; DESlib takes no member without it."""
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of samples that are in the table."""
        at = [self.rows[row] for row in keys(X)]
        return np.asarray(self.proba[at])

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, the first of equal ones."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


def keys(X: Any) -> list[bytes]:
    """Each sample as bytes."""
    return [row.tobytes() for row in np.ascontiguousarray(X, dtype=np.float64)]


def lookups(parts: list[tuple[Any, NDArray[Any]]]) -> list[LookupMember]:
    """A member for each column of some tables (n, L, C), beside the samples these are about."""
    rows: Rows = {}
    for i, key in enumerate(key for X, _ in parts for key in keys(X)):
        rows.setdefault(key, i)
    table = np.concatenate([proba for _, proba in parts]).astype(np.float64)
    return [LookupMember(rows, table[:, j]) for j in range(table.shape[1])]
