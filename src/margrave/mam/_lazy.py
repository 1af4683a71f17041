"""Answers for Dask collections: computed block by block, when they are asked for.

What a fit leaves behind for its own use, such as rows that were kept, is not sent along.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from margrave.mam._block_rows import check_columns
from margrave.mam._threads import alone
from margrave.scale._blocks import is_dask

_LEFT_BEHIND = (
    "_kept",
    "loo_decision_",
    "_own_scores",
    "_codes",
    "_diagonal",
    "ranks_",
    "loo_predictions_",
)


def lazily(estimator: Any, X: Any, method: str, dtype: Any, n_columns: int | None = None) -> Any:
    """A Dask array of what a method of the estimator says of each block.

    Parameters
    ----------
    estimator : object
        A fitted estimator.
    X : Dask array or data frame
        The rows.
    method : str
        The method's name.
    dtype : dtype
        Of the answers.
    n_columns : int, optional
        Answers for each row; one, without a second axis, if None.
    """
    check_columns(estimator, X, reset=False)
    light = copy(estimator)
    for name in _LEFT_BEHIND:
        light.__dict__.pop(name, None)
    like = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    if hasattr(X, "columns"):
        return X.map_partitions(_answer, light, method, like, meta=like)
    light.__dict__.pop("feature_names_in_", None)  # an array has none: it has been said once
    whole = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
    if n_columns is None:
        return whole.map_blocks(_answer, light, method, like, drop_axis=1, meta=like)
    sizes = (whole.chunks[0], (n_columns,))
    return whole.map_blocks(_answer, light, method, like, chunks=sizes, meta=like)


def _answer(rows: Any, estimator: Any, method: str, like: Any) -> Any:
    if not len(rows):
        return like
    with alone():
        return np.asarray(getattr(estimator, method)(rows), dtype=like.dtype)


def in_memory(owner: str, **given: Any) -> None:
    """Refuse Dask collections where arrays are needed."""
    for name, one in given.items():
        if is_dask(one):
            raise TypeError(
                f"{owner} needs {name} in memory; got a Dask collection, {type(one).__name__}. "
                "margrave.scale.sample draws rows into memory."
            )
