"""Validation of parameters, labels, weights and members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from margrave import _labels
from margrave._errors import ParameterError
from margrave._indexing import Columns

_MOST_ROWS = 1e30
MOST_LEVELS = 1000  # of a martingale program, which then has half a million nodes for two classes

Rules = Mapping[str, tuple[str, bool]]
"""For every parameter, the allowed values in words, and whether the value is allowed."""


def check_parameters(estimator: Any, rules: Rules) -> None:
    """Raise a ValueError for the first parameter whose value is not allowed."""
    for name, (allowed, is_allowed) in rules.items():
        if not is_allowed:
            owner = type(estimator).__name__
            raise ParameterError.of(owner, name, allowed, getattr(estimator, name))


def is_count(value: Any, most: float = np.inf) -> bool:
    """Whether a value is an integer from 1 to `most`; True does not count."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_integer and bool(1 <= value <= most)


def is_number(value: Any) -> bool:
    """Whether a value is a real number other than NaN; True does not count."""
    is_real = isinstance(value, int | float | np.integer | np.floating)
    return is_real and not isinstance(value, bool) and bool(value == value)


def is_classifier_or_none(value: Any) -> bool:
    """Whether a value is None or an instance of a classifier."""
    if value is None:
        return True
    is_instance = hasattr(value, "__sklearn_tags__") and not isinstance(value, type)
    return is_instance and bool(is_classifier(value))


def encode_classes(y: NDArray[Any], owner: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted classes of labels, at least two, and the position of each label there."""
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs y with at least two classes; got one class, {classes.tolist()[0]!r}."
        )
    return classes, codes


def check_sample_weight(
    sample_weight: ArrayLike, n_samples: int, owner: str
) -> NDArray[np.float64]:
    """Check for one finite weight per sample, none negative and not all zero."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"{owner} needs sample_weight with a number for each of {n_samples} samples; "
            f"got shape {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        _raise_bad_weights(owner, float(weights.min()), float(weights.max()))
    return weights


def read_sample_weight(sample_weight: ArrayLike, n_samples: int, owner: str) -> NDArray[np.float64]:
    """Check the weights of all samples of a fit, and bring them into a range that is safe to add.

    A weight counts samples: 2 is a row twice, also in a penalised loss, as in scikit-learn. Weights
    that no number of rows can have, and whose squares or sums may leave the range of floats, have
    a meaning only relative to each other; they are scaled to the mean 1.
    """
    weights = check_sample_weight(sample_weight, n_samples, owner)
    largest = weights.max()
    if not 1 / _MOST_ROWS <= largest <= _MOST_ROWS:
        weights = weights / largest
        weights /= weights.mean()
    return weights


def refuse_zero_weights(owner: str) -> NoReturn:
    """Raise the error for weights that are all zero, where blocks were checked one at a time."""
    _raise_bad_weights(owner, 0.0, 0.0)


def _raise_bad_weights(owner: str, low: float, high: float) -> NoReturn:
    raise ValueError(
        f"{owner} needs sample_weight with finite numbers, none negative and not all zero; "
        f"got numbers from {low} to {high}."
    )


def validate_numbers(
    estimator: Any, X: Any, *y: Any, dtype: Any = "numeric", **options: Any
) -> Any:
    """Validate samples by scikit-learn's rule for numbers, whatever type they are converted to.

    An array of strings is refused, even of digits; among objects, strings of digits are numbers.
    """
    if not hasattr(X, "columns") and np.asarray(X).dtype.kind in "SU":
        check_array(X, dtype="numeric", ensure_2d=False)  # scikit-learn's error
    found = validate_data(estimator, X, *y, dtype=dtype, **options)
    rows = found[0] if y else found
    if rows.dtype == object:  # from categories in a data frame, which dtype="numeric" leaves alone
        finite = options.get("ensure_all_finite", True)
        rows = check_array(rows, dtype=np.float64, ensure_all_finite=finite)
    return (rows, found[1]) if y else rows


def common_input_tags(members: list[Any]) -> dict[str, bool]:
    """Find out whether the tags of all members allow sparse matrices and missing values."""
    if not members or not all(hasattr(member, "__sklearn_tags__") for member in members):
        return {}
    tags = [get_tags(_first_step(member)).input_tags for member in members]
    return {name: all(getattr(tag, name) for tag in tags) for name in ("sparse", "allow_nan")}


def _first_step(member: Any) -> Any:
    """Get the first step of a pipeline, whose own tags do not mention that an imputer is first."""
    while getattr(member, "steps", None) and hasattr(member.steps[0][1], "__sklearn_tags__"):
        member = member.steps[0][1]
    return member


def check_samples(X: Any, owner: str) -> None:
    """Check that X holds samples, before anything else looks into it."""
    if X is None or isinstance(X, Mapping | str | bytes | int | float | complex):
        raise ValueError(
            f"{owner} needs X to be an array, a sparse matrix, a list of samples or a data frame; "
            f"got {type(X).__name__}."
        )


def check_labels(X: Any, y: ArrayLike, owner: str) -> NDArray[Any]:
    """Check for one label per sample, none missing, all of one kind."""
    check_samples(X, owner)
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
    """Check that new samples have the columns of the training samples."""
    check_samples(X, type(estimator).__name__)
    if hasattr(estimator, "n_features_in_") and getattr(X, "ndim", 2) == 1:
        raise ValueError(
            f"{type(estimator).__name__} expects X with {estimator.n_features_in_} columns; got a "
            "1D array. Reshape your data: X.reshape(1, -1) if it is one sample."
        )
    validate_data(estimator, X, reset=False, skip_check_array=True)


def name_members(members: Any, owner: str) -> list[tuple[str, Any]]:
    """Pair classifiers with their names; the default names are their types, numbered.

    Raises
    ------
    ValueError
        If there is no classifier, or two have the same name.
    """
    entries = list(members.items()) if isinstance(members, Mapping) else _as_list(members, owner)
    if not entries:
        raise ValueError(f"{owner} needs at least one member; got none.")
    pairs = [entry for entry in entries if is_pair(entry)]
    if pairs and len(pairs) < len(entries):
        raise ValueError(
            f"{owner} needs names for all members or for none; "
            f"got {len(pairs)} names for {len(entries)} members."
        )
    if not pairs:
        types = [type(member).__name__.lower() for member in entries]
        totals, numbers = Counter(types), Counter[str]()
        for name, member in zip(types, entries, strict=True):
            numbers[name] += 1
            pairs.append((name if totals[name] == 1 else f"{name}-{numbers[name]}", member))
    for name, member in pairs:
        _check_member(name, member, owner)
    repeated = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{owner} needs a different name for each member; got {repeated[0]!r} more than once."
        )
    return pairs


def _check_member(name: str, member: Any, owner: str) -> None:
    if isinstance(member, str):
        raise ValueError(
            f"{owner} needs classifiers; got the text {member!r}. "
            f"margrave.catalogue.make makes a classifier by its name."
        )
    # An estimator with classes_ is no regressor; its tags take longer than a small tree's predict.
    has_tags = not hasattr(member, "classes_") and hasattr(member, "__sklearn_tags__")
    if not hasattr(member, "predict") or (has_tags and is_regressor(member)):
        raise ValueError(
            f"{owner} needs classifiers; member {name!r} is a {type(member).__name__}."
        )


def _as_list(members: Any, owner: str) -> list[Any]:
    if isinstance(members, str) or not isinstance(members, Sequence | np.ndarray):
        raise ValueError(
            f"{owner} needs a list of classifiers, or of (name, classifier) pairs; "
            f"got {type(members).__name__}."
        )
    return list(members)


def is_pair(entry: Any) -> bool:
    """Whether an entry is a pair of a name and a member."""
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)


def find_attribute(member: Any, attribute: str) -> Any:
    """Get an attribute of a member, or of the last step of a pipeline or a search; else None."""
    while not hasattr(member, attribute):
        if hasattr(member, "best_estimator_"):
            member = member.best_estimator_
        elif hasattr(member, "steps"):
            member = member.steps[-1][1]
        else:
            return None
    return getattr(member, attribute)


def fitted_classes(name: str, member: Any) -> NDArray[Any]:
    """Get the classes of a fitted member."""
    classes = getattr(member, "classes_", None)
    if classes is None or not len(classes):
        raise NotFittedError(
            f"Member {name!r} ({type(member).__name__}) has no classes_: fit it first. (A clone is "
            "not fitted, unless it is in a sklearn.frozen.FrozenEstimator.)"
        )
    if isinstance(classes, list) and isinstance(classes[0], np.ndarray):
        raise ValueError(
            f"Member {name!r} predicts {len(classes)} targets; use a classifier of one target."
        )
    return np.asarray(classes)


def member_features(
    features: Sequence[Columns | None] | Mapping[str, Columns] | None,
    names: tuple[str, ...],
    owner: str = "Scores.of",
) -> tuple[Columns | None, ...]:
    """List the columns that each member uses, in the order of the names."""
    if features is None:
        return (None,) * len(names)
    if isinstance(features, Mapping):
        unknown = [name for name in features if name not in names]
        if unknown:
            raise ValueError(
                f"{owner} got features for {unknown[0]!r}; the members are {', '.join(names)}."
            )
        features = [features.get(name) for name in names]
    if len(features) != len(names):
        raise ValueError(
            f"{owner} needs features for each of {len(names)} members; got {len(features)}."
        )
    for chosen in features:
        if not isinstance(chosen, Sequence | np.ndarray | slice | type(None)) or isinstance(
            chosen, str
        ):
            raise ValueError(
                f"{owner} needs features as a list of columns for each member, such as [0, 2] or "
                f"['age', 'sum']; got {chosen!r}."
            )
    return tuple(features)
