"""Samples that a dialog keeps, in a form that a file can hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._asking import rows_of

# Kinds of arrays that a file holds as they are; other columns are kept as texts, numbers or None.
_PLAIN = "biufUM"


class Rows:
    """Samples as they were given: an array, a sparse matrix or a data frame.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        The samples.
    """

    def __init__(self, X: Any) -> None:
        self.X = X.tocsr() if hasattr(X, "tocsr") else X

    def __getitem__(self, at: NDArray[np.intp]) -> Any:
        """Some of them."""
        return rows_of(self.X, at)

    def __getstate__(self) -> dict[str, Any]:
        """A data frame as its columns."""
        if not hasattr(self.X, "columns"):
            return {"X": self.X}
        names = list(self.X.columns)
        columns = [_plain(self.X.iloc[:, j]) for j in range(len(names))]
        return {"names": names, "columns": columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A data frame again."""
        if "X" in state:
            self.X = state["X"]
            return
        import pandas

        self.X = pandas.DataFrame(dict(enumerate(state["columns"])))
        self.X.columns = state["names"]


def _plain(column: Any) -> NDArray[Any]:
    """A column as an array without objects of pandas."""
    values = column.to_numpy()
    if values.dtype.kind in _PLAIN:
        return np.asarray(values)
    missing = column.isna().to_numpy()
    plain = [
        None if no else value.item() if isinstance(value, np.generic) else value
        for value, no in zip(values.tolist(), missing, strict=True)
    ]
    return np.array([*plain, None], dtype=object)[:-1]
