"""Selection of columns and rows from arrays, sparse matrices, lists and data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = slice | Sequence[int] | Sequence[str] | NDArray[Any]


def select_columns(X: Any, chosen: Columns | None, name: str, member: Any) -> Any:
    """Select the columns of X that a member uses."""
    if chosen is None:
        known = getattr(member, "feature_names_in_", None)
        if known is None or not hasattr(X, "columns") or list(X.columns) == list(known):
            return X
        chosen = list(known)
    if isinstance(chosen, slice):
        return X.iloc[:, chosen] if hasattr(X, "iloc") else _as_sliceable(X)[:, chosen]
    columns = list(chosen)
    if columns and all(isinstance(column, str) for column in columns):
        if not hasattr(X, "columns"):
            raise ValueError(
                f"Member {name!r} selects columns by name, so X must be a data frame; "
                f"got {type(X).__name__}."
            )
        missing = [column for column in columns if column not in set(X.columns)]
        if missing:
            raise ValueError(f"Member {name!r} needs columns that X lacks: {', '.join(missing)}.")
        return X[columns]
    if hasattr(X, "iloc"):
        return X.iloc[:, columns]
    return _select_positions(_as_sliceable(X), columns, name)


def select_rows(X: Any, at: Sequence[int] | NDArray[np.int64]) -> Any:
    """Select rows of X, or entries of a parameter that has one per sample."""
    if hasattr(X, "iloc"):
        try:
            return X.iloc[at]
        except NotImplementedError as error:
            raise lazy_rows(X) from error
    return [X[i] for i in at] if isinstance(X, list | tuple) else _as_sliceable(X)[at]


def concatenate_rows(first: Any, second: Any) -> Any:
    """Join the rows of two tables, with the columns of the first; None if that is not possible."""
    if hasattr(first, "tocsr") or hasattr(second, "tocsr"):
        return None
    if hasattr(first, "iloc") and hasattr(second, "iloc"):
        import pandas

        columns, is_unique = list(first), first.columns.is_unique and second.columns.is_unique
        if not is_unique or not set(columns) <= set(second):
            return None
        return pandas.concat([first, second[columns]])
    try:
        first, second = np.asarray(first), np.asarray(second)
        return np.concatenate([first, second]) if first.shape[1:] == second.shape[1:] else None
    except (TypeError, ValueError):  # rows of different lengths, or types that do not mix
        return None


def lazy_rows(X: Any) -> TypeError:
    """Make the error that X is a lazy data frame."""
    return TypeError(
        f"Rows must be in memory; got a {type(X).__name__} of {type(X).__module__}, which cannot "
        "select rows. Load it into memory, or use margrave.scale."
    )


def count_rows(X: Any) -> int:
    """Count the rows of X."""
    if hasattr(X, "tocsr"):
        return int(X.shape[0])  # sparse matrices have no length
    return len(X) if hasattr(X, "__len__") else len(np.asarray(X))


def largest_keys(keys: NDArray[np.float64], limit: int) -> NDArray[np.intp]:
    """Return the positions of the largest keys, at most `limit`, in increasing order."""
    if len(keys) <= limit:
        return np.arange(len(keys))
    return np.sort(np.argpartition(-keys, limit)[:limit])


def _as_sliceable(X: Any) -> Any:
    if hasattr(X, "tocsr"):
        return X.tocsr()  # not every sparse format supports slices of columns
    return X if hasattr(X, "shape") else np.asarray(X)


def _select_positions(X: Any, columns: list[Any], name: str) -> Any:
    try:
        return X[:, columns]
    except IndexError as error:
        raise ValueError(
            f"Member {name!r} needs the columns {columns}; X has {X.shape[1]} columns."
        ) from error
