"""Asking one trained classifier: its name, its columns, and its answers over given classes.

A member gives probabilities, decision values or labels only, over the classes it has seen. What
it says is spread over the classes of the whole committee; values stay in the member's own units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = slice | Sequence[int] | Sequence[str] | NDArray[Any]


def select_columns(X: Any, chosen: Columns | None, name: str, member: Any) -> Any:
    """The columns of X that a member looks at."""
    if chosen is None:
        known = getattr(member, "feature_names_in_", None)
        if known is None or not hasattr(X, "columns") or list(X.columns) == list(known):
            return X
        chosen = list(known)
    if isinstance(chosen, slice):
        return X.iloc[:, chosen] if hasattr(X, "iloc") else _as_sliceable(X)[:, chosen]
    wanted = list(chosen)
    if wanted and all(isinstance(column, str) for column in wanted):
        if not hasattr(X, "columns"):
            raise ValueError(
                f"Member {name!r} looks at columns by name; X must then be a data frame, "
                f"got {type(X).__name__}."
            )
        missing = [column for column in wanted if column not in set(X.columns)]
        if missing:
            raise ValueError(f"Member {name!r} needs columns that X lacks: {', '.join(missing)}.")
        return X[wanted]
    return (
        X.iloc[:, wanted]
        if hasattr(X, "iloc")
        else _select_positions(_as_sliceable(X), wanted, name)
    )


def select_rows(X: Any, at: Sequence[int] | NDArray[np.int64]) -> Any:
    """Some rows of samples, or some entries of a parameter with one per sample."""
    if hasattr(X, "iloc"):
        return X.iloc[at]
    return [X[i] for i in at] if isinstance(X, list | tuple) else _as_sliceable(X)[at]


def _as_sliceable(X: Any) -> Any:
    if hasattr(X, "tocsr"):
        return X.tocsr()  # not every sparse format gives columns
    return X if hasattr(X, "shape") else np.asarray(X)


def _select_positions(X: Any, wanted: list[Any], name: str) -> Any:
    try:
        return X[:, wanted]
    except IndexError as error:
        raise ValueError(
            f"Member {name!r} needs the columns {wanted}; X has {X.shape[1]}."
        ) from error
