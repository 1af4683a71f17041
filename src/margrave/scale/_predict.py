"""Lazy predictions of a model for Dask collections."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from margrave import _labels
from margrave.mam import single_thread
from margrave.scale._blocks import Blocks
from margrave.scale._dask import import_dask


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


def predict(model: Any, X: Any, method: str = "predict") -> Any:
    """Apply a fitted model to a Dask collection, lazily, block by block.

    Parameters
    ----------
    model : classifier, regressor or ranker
        The fitted model, of any library with the conventions of scikit-learn.
    X : Dask array or data frame of shape (n_samples, n_features)
        Samples.
    method : str, default="predict"
        The method to apply, such as ``"predict_proba"`` or ``"decision_function"``. A method with
        another name returns one number for each sample, or with more than two classes one for each
        class.

    Returns
    -------
    Dask array of shape (n_samples,) or (n_samples, n_classes)
        The predictions, in the same blocks as X and not computed yet.

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave import scale
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X, y)
    >>> scale.predict(model, da.from_array(X, chunks=50), "predict_proba").shape
    (150, 3)
    """
    check_is_fitted(model)
    getattr(model, method)  # an error here rather than in every block
    blocks = Blocks.of("scale.predict", X)
    dask, da = (import_dask("scale.predict", module) for module in ("dask", "dask.array"))
    empty = empty_result(model, method)
    # One task holds the model, and the others take it from there.
    shared_model = dask.delayed(prediction_model(model), pure=False, traverse=False)
    predict_block = dask.delayed(_predict_block, pure=False, traverse=False)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    arrays = [
        da.from_delayed(
            predict_block(shared_model, method, part, empty),
            shape=(size, *empty.shape[1:]),
            dtype=empty.dtype,
            meta=empty,
        )
        for (part,), size in zip(blocks.parts, sizes, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _predict_block(model: Any, method: str, part: Any, empty: NDArray[Any]) -> NDArray[Any]:
    if not len(part):
        return empty
    with single_thread():
        predictions = getattr(model, method)(plain_rows(part))
    return np.asarray(predictions).astype(empty.dtype, copy=False)


@singledispatch
def prediction_model(model: Any) -> Any:
    """Return the object that Dask sends to the workers; types with a training state register."""
    return model


@singledispatch
def empty_result(model: Any, method: str) -> NDArray[Any]:
    """Return the result of a method for no rows, which has its dtype and number of columns."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return np.zeros(0)
    if method == "predict":
        codes = np.array([0, _labels.REJECTED])[: 1 + hasattr(model, "reject_label_")]
        return _labels.decode(codes, np.asarray(classes), getattr(model, "reject_label_", None))[:0]
    by_class = len(classes) > 2 or method in ("predict_proba", "predict_log_proba")
    return np.zeros((0, len(classes)) if by_class else 0)
