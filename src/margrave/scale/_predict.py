"""Answers of a model for rows of Dask: nothing is computed until it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._dask.blocks import Blocks


def plain_rows(X: Any) -> Any:
    """A block's rows as members know them: Dask's texts are plain ones."""
    if not hasattr(X, "dtypes") or not hasattr(X, "columns"):
        return X
    texts = [name for name, dtype in X.dtypes.items() if _is_text(dtype)]
    if not texts:
        return X
    plain = {name: X[name].astype(object).where(X[name].notna(), np.nan) for name in texts}
    return X.assign(**plain)


def _is_text(dtype: Any) -> bool:
    return str(dtype).startswith(("string", "str"))


def predict_blocks(model: Any, method: str, X: Any, meta: NDArray[Any]) -> Any:
    """What a model's method says about rows of Dask, as a Dask array in the same blocks.

    Parameters
    ----------
    model : classifier
        Trained.
    method : str
        What it is asked.
    X : Dask array or data frame
        The rows.
    meta : ndarray
        An answer for no rows: its type, and how many columns there are.
    """
    import dask
    import dask.array as da

    blocks = Blocks.of(f"{type(model).__name__}.{method}", X)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    sent = dask.delayed(model, pure=False, traverse=False)
    asked = dask.delayed(_asked, pure=False, traverse=False)
    return da.concatenate(
        [
            da.from_delayed(
                asked(sent, method, part, meta), (size, *meta.shape[1:]), meta.dtype, meta
            )
            for (part,), size in zip(blocks.parts, sizes, strict=True)
        ],
        allow_unknown_chunksizes=True,
    )


def _asked(model: Any, method: str, X: Any, meta: NDArray[Any]) -> NDArray[Any]:
    if not len(X):
        return meta
    said = getattr(model, method)(plain_rows(X))
    return np.asarray(said).astype(meta.dtype, copy=False)
