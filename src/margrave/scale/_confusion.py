"""The confusion matrix of Dask collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from margrave.confusion import Confusion
from margrave.scale._counts import count_labels

_MAX_LABELS = 10_000  # more different labels are numbers, not classes


def confusion(
    y_true: Any,
    y_pred: Any,
    *,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    reject_label: Any = None,
) -> Confusion:
    """Count true against predicted labels of Dask collections, in one pass.

    Parameters
    ----------
    y_true, y_pred : Dask array or series of shape (n_samples,)
        True and predicted labels; one of them may be an array in memory.
    classes, positive, reject_label
        As in :meth:`margrave.Confusion.of`.

    Returns
    -------
    Confusion

    Examples
    --------
    >>> import dask.array as da
    >>> from margrave import scale
    >>> y_true = da.from_array(["ham", "spam", "ham", "spam"], chunks=2)
    >>> y_pred = da.from_array(["ham", "spam", "spam", "spam"], chunks=2)
    >>> scale.confusion(y_true, y_pred).counts.tolist()
    [[1, 1, 0], [0, 2, 0]]
    """
    (true, predicted), repeats = count_labels(
        "scale.confusion", _MAX_LABELS, y_true=y_true, y_pred=y_pred
    )
    return Confusion.of(
        true,
        predicted,
        classes=classes,
        positive=positive,
        reject_label=reject_label,
        repeats=repeats,
    )
