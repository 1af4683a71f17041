"""Samples and labels as an estimator is given them: their checks, and what members take."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from margrave import _labels


def taken_by_all(members: list[Any]) -> dict[str, bool]:
    """Which input all members take, as far as they say: sparse matrices, missing values."""
    if not members or not all(hasattr(member, "__sklearn_tags__") for member in members):
        return {}
    inputs = [get_tags(_first_step(member)).input_tags for member in members]
    return {name: all(getattr(one, name) for one in inputs) for name in ("sparse", "allow_nan")}


def _first_step(member: Any) -> Any:
    """What samples come to first: a pipeline does not say that its imputer takes missing values."""
    while getattr(member, "steps", None) and hasattr(member.steps[0][1], "__sklearn_tags__"):
        member = member.steps[0][1]
    return member


def checked_labels(X: Any, y: ArrayLike, owner: str) -> NDArray[Any]:
    """A label for each sample, none missing, all of one kind."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    check_consistent_length(X, y)
    labels: NDArray[Any] = column_or_1d(_labels.natural(y), warn=True)
    if labels.dtype != object:
        check_array(labels, dtype=None, ensure_2d=False, input_name="y")
    _labels.union([("y", labels)])
    check_classification_targets(labels)
    return labels


def check_columns(estimator: Any, X: Any) -> None:
    """Refuse new samples with other columns than those that were trained on."""
    if hasattr(estimator, "n_features_in_") and getattr(X, "ndim", 2) == 1:
        raise ValueError(
            f"{type(estimator).__name__} expects X with {estimator.n_features_in_} columns; got "
            "one row or column only. Reshape your data: X.reshape(1, -1) makes one sample of it."
        )
    validate_data(estimator, X, reset=False, skip_check_array=True)
