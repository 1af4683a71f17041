"""Lazy predictions of a model for Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._dask.lazy import predict_lazily


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
    owner = f"{type(model).__name__}.{method}"
    return predict_lazily(owner, model, method, X, meta, prepare=plain_rows)
