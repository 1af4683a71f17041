"""Lazy predictions of a model for Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._dask.blocks import Blocks
from margrave._dask.lazy import block_sizes, stack_blocks


def plain_rows(X: Any) -> Any:
    """Convert columns of Dask's string type to Python strings, which members were trained on."""
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
    """Apply a method of a model to the rows of a Dask collection, lazily, in the same blocks.

    Parameters
    ----------
    model : classifier
        The trained model.
    method : str
        The name of the method.
    X : Dask array or data frame
        The rows.
    meta : ndarray
        The result for no rows, which has the dtype and the number of columns.
    """
    import dask

    blocks = Blocks.of(f"{type(model).__name__}.{method}", X)
    sent = dask.delayed(model, pure=False, traverse=False)
    predict = dask.delayed(_predict_block, pure=False, traverse=False)
    parts = [predict(sent, method, part, meta) for (part,) in blocks.parts]
    return stack_blocks(parts, block_sizes(X, len(blocks)), meta)


def _predict_block(model: Any, method: str, X: Any, meta: NDArray[Any]) -> NDArray[Any]:
    if not len(X):
        return meta
    return np.asarray(getattr(model, method)(plain_rows(X))).astype(meta.dtype, copy=False)
