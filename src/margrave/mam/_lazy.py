"""Answers for Dask collections: computed block by block, when they are asked for.

What a fit leaves behind for its own use, such as rows that were kept, is not sent along.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from margrave._dask.blocks import Blocks, check_dense, is_dask
from margrave._dask.lazy import block_sizes, stack_blocks
from margrave._validation import refuse_zero_weights
from margrave.mam._block_rows import block_weights, check_columns
from margrave.mam._threads import alone

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
    import dask

    owner = f"{type(estimator).__name__}.{method}"
    check_columns(estimator, X, reset=False)
    blocks = Blocks.of(owner, X)
    like = np.empty((0,) if n_columns is None else (0, n_columns), dtype=dtype)
    # One task has the estimator, and the others take it from there.
    sent = dask.delayed(_light(estimator, X), pure=False, traverse=False)
    answer = dask.delayed(_answer, pure=False, traverse=False)
    parts = [answer(owner, part, sent, method, like) for (part,) in blocks.parts]
    return stack_blocks(parts, block_sizes(X, len(blocks)), like)


def share_right(classifier: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of rows, by weight, that a classifier decides right: one pass."""
    owner = f"{type(classifier).__name__}.score"
    blocks = Blocks.of(owner, X, y=y, sample_weight=sample_weight)
    check_columns(classifier, X, reset=False)
    right, weight = blocks.reduce(_right, _added, _light(classifier, X), owner)
    if weight == 0:
        refuse_zero_weights(owner)
    return right / weight


def _right(X: Any, y: Any, sample_weight: Any, classifier: Any, owner: str) -> tuple[float, float]:
    """The weight of the rows of a block that are decided right, and of all."""
    labels = column_or_1d(np.asarray(y))
    weights = block_weights(sample_weight, len(labels), owner)
    s = np.ones(len(labels)) if weights is None else weights
    with alone():
        right = np.asarray(classifier.predict(X) == labels)
    return float(s[right].sum()), float(s.sum())


def _added(parts: list[tuple[float, float]]) -> tuple[float, float]:
    return sum(one[0] for one in parts), sum(one[1] for one in parts)


def _light(estimator: Any, X: Any) -> Any:
    """A copy without what a fit leaves behind for its own use."""
    light = copy(estimator)
    for name in _LEFT_BEHIND:
        light.__dict__.pop(name, None)
    if not hasattr(X, "columns"):
        light.__dict__.pop("feature_names_in_", None)  # arrays have none: it has been said once
    return light


def _answer(owner: str, rows: Any, estimator: Any, method: str, like: Any) -> Any:
    check_dense(owner, rows)
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
