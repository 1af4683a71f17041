"""Fit estimators of the library on Dask collections."""

from __future__ import annotations

from functools import singledispatch
from typing import Any


@singledispatch
def fit(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit an estimator on Dask collections, which may be larger than memory.

    The result is the estimator that its own ``fit`` would return. It holds arrays in memory, and
    its methods take samples in memory; :func:`predict` applies it to Dask collections.

    Parameters
    ----------
    estimator : estimator
        An estimator of Margrave that can be fitted by passes over blocks of rows; an error for
        any other type lists those that can.
    X : Dask array or data frame of shape (n_samples, n_features)
        Samples.
    y : Dask array or series of shape (n_samples,)
        Labels, or what the estimator predicts.
    sample_weight : Dask array or series of shape (n_samples,), default=None
        Sample weights, for estimators whose ``fit`` takes them.

    Returns
    -------
    estimator
        The same object, fitted.

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave import scale
    >>> from margrave.mam import MAMClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_blocks, y_blocks = da.from_array(X, chunks=200), da.from_array(y, chunks=200)
    >>> model = scale.fit(MAMClassifier("linear"), X_blocks, y_blocks)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """
    del X, y, sample_weight  # only functions for a type of estimator use them
    known = sorted(each.__name__ for each in fit.registry if each is not object)
    raise TypeError(
        f"scale.fit needs an estimator that can be fitted on Dask collections: {', '.join(known)}; "
        f"got {type(estimator).__name__}. For others, draw rows into memory with "
        "scale.sample(X, y)."
    )
