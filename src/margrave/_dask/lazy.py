"""Lazy predictions for Dask collections, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._dask.blocks import Blocks, is_dask


def check_in_memory(owner: str, *objects: Any) -> None:
    """Raise an error for Dask collections, where a method cannot work block by block."""
    if is_dask(*objects):
        raise TypeError(
            f"{owner} needs samples in memory; got a Dask collection. Draw rows to fit with by "
            "margrave.scale.sample(X, y), and predict block by block with X.map_partitions or "
            "X.map_blocks(committee.predict)."
        )


def predict_lazily(
    owner: str,
    model: Any,
    method: str,
    X: Any,
    empty: NDArray[Any],
    prepare: Callable[[Any], Any] | None = None,
) -> NDArray[Any]:
    """Apply a method of a model to each block of a Dask collection, lazily, as a Dask array.

    Parameters
    ----------
    owner : str
        The name of the caller, for messages.
    model : object
        The model, sent once.
    method : str
        The name of the method, which takes the rows of a block.
    X : Dask array or data frame
        The rows.
    empty : ndarray
        The result for no rows, which has the dtype and the number of columns.
    prepare : callable, optional
        Applied to the rows of each block before the method.
    """
    import dask

    blocks = Blocks.of(owner, X)
    sent = dask.delayed(model, pure=False, traverse=False)
    predict = dask.delayed(_predict_block, pure=False, traverse=False)
    parts = [predict(sent, method, part, empty, prepare) for (part,) in blocks.parts]
    return stack_blocks(parts, block_sizes(X, len(blocks)), empty)


def block_sizes(X: Any, n_blocks: int) -> tuple[float, ...]:
    """Return the number of rows in each block; NaN where it is unknown."""
    sizes: tuple[float, ...] = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * n_blocks
    return sizes


def stack_blocks(parts: Sequence[Any], sizes: Sequence[float], empty: NDArray[Any]) -> NDArray[Any]:
    """Stack delayed arrays as one Dask array."""
    import dask.array as da

    arrays = [
        da.from_delayed(part, (size, *empty.shape[1:]), empty.dtype, empty)
        for part, size in zip(parts, sizes, strict=True)
    ]
    whole: NDArray[Any] = da.concatenate(arrays, allow_unknown_chunksizes=True)
    return whole


def _predict_block(
    model: Any,
    method: str,
    part: Any,
    empty: NDArray[Any],
    prepare: Callable[[Any], Any] | None,
) -> NDArray[Any]:
    if not len(part):
        return empty
    part = part if prepare is None else prepare(part)
    return np.asarray(getattr(model, method)(part)).astype(empty.dtype, copy=False)
