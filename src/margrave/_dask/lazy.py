"""Taking what members said from arrays: the kind of values, the classes and the names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._dask.blocks import Blocks, is_dask


def check_in_memory(owner: str, *given: Any) -> None:
    """Refuse Dask collections, for those who cannot work block by block."""
    if is_dask(*given):
        raise TypeError(
            f"{owner} works on samples in memory; got a Dask collection. "
            "margrave.scale.sample(X, y) draws rows to fit with, and X.map_partitions or "
            "X.map_blocks(committee.predict) asks block by block."
        )


def predict_lazily(
    owner: str, model: Any, method: str, X: Any, empty: NDArray[Any]
) -> NDArray[Any]:
    """What a model says of each block of a Dask collection, as a Dask array, when it is asked.

    Parameters
    ----------
    owner : str
        Who asks, for messages.
    model : object
        Sent once.
    method : str
        Takes the rows of a block.
    X : Dask array or data frame
        The rows.
    empty : ndarray
        An answer for no rows: its type, and how many columns there are.
    """
    import dask

    blocks = Blocks.of(owner, X)
    sent = dask.delayed(model, pure=False, traverse=False)
    asked = dask.delayed(_predict_block, pure=False, traverse=False)
    parts = [asked(sent, method, part, empty) for (part,) in blocks.parts]
    return stack_blocks(parts, block_sizes(X, len(blocks)), empty)


def block_sizes(X: Any, n_blocks: int) -> tuple[float, ...]:
    """Rows in each block, NaN where that is not known."""
    sizes: tuple[float, ...] = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * n_blocks
    return sizes


def stack_blocks(parts: Sequence[Any], sizes: Sequence[float], empty: NDArray[Any]) -> NDArray[Any]:
    """Delayed arrays one below the other, as a Dask array."""
    import dask.array as da

    arrays = [
        da.from_delayed(part, (size, *empty.shape[1:]), empty.dtype, empty)
        for part, size in zip(parts, sizes, strict=True)
    ]
    whole: NDArray[Any] = da.concatenate(arrays, allow_unknown_chunksizes=True)
    return whole


def _predict_block(model: Any, method: str, part: Any, empty: NDArray[Any]) -> NDArray[Any]:
    if not len(part):
        return empty
    return np.asarray(getattr(model, method)(part)).astype(empty.dtype, copy=False)
