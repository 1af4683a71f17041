"""Parameters of estimators: what each may be, as data, and one message for what it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from margrave import _labels
from margrave._indexing import Columns

Rules = Mapping[str, tuple[str, bool]]
"""Every parameter with what it may be, in words, and whether it is."""


def check_parameters(estimator: Any, rules: Rules) -> None:
    """Refuse the first parameter that is not what it may be."""
    for name, (allowed, kept) in rules.items():
        if not kept:
            raise ValueError(
                f"{type(estimator).__name__} needs {name} to be {allowed}; "
                f"got {getattr(estimator, name)!r}."
            )


def is_count(value: Any) -> bool:
    """Whether a value is an integer of at least 1; True is not."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(value >= 1)


def is_number(value: Any) -> bool:
    """Whether a value is a real number that is not NaN; True is not."""
    number = isinstance(value, int | float | np.integer | np.floating)
    return number and not isinstance(value, bool) and bool(value == value)


def check_sample_weight(
    sample_weight: ArrayLike, n_samples: int, owner: str
) -> NDArray[np.float64]:
    """One finite weight a sample, none negative and not all zero."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"{owner} needs sample_weight with a number for each of {n_samples} samples; "
            f"got shape {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        _refuse(owner, float(weights.min()), float(weights.max()))
    return weights


def refuse_zero_weights(owner: str) -> NoReturn:
    """Refuse weights that are all zero, where they were seen a part at a time."""
    _refuse(owner, 0.0, 0.0)


def _refuse(owner: str, low: float, high: float) -> NoReturn:
    raise ValueError(
        f"{owner} needs sample_weight with finite numbers, none negative and not all zero; "
        f"got {low} to {high}."
    )


def common_input_tags(members: list[Any]) -> dict[str, bool]:
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


def check_labels(X: Any, y: ArrayLike, owner: str) -> NDArray[Any]:
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


def name_members(members: Any, owner: str) -> list[tuple[str, Any]]:
    """Classifiers with their names; those without one are called by their type, numbered.

    Raises
    ------
    ValueError
        If there is none, or two have the same name.
    """
    listed = list(members.items()) if isinstance(members, Mapping) else _as_list(members, owner)
    if not listed:
        raise ValueError(f"{owner} needs at least one member; got none.")
    pairs = [entry for entry in listed if is_pair(entry)]
    if pairs and len(pairs) < len(listed):
        raise ValueError(f"{owner} needs names for all members or for none; got both.")
    if not pairs:
        types = [type(member).__name__.lower() for member in listed]
        total, seen = Counter(types), Counter[str]()
        for name, member in zip(types, listed, strict=True):
            seen[name] += 1
            pairs.append((name if total[name] == 1 else f"{name}-{seen[name]}", member))
    for name, member in pairs:
        _check_member(name, member, owner)
    repeated = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{owner} needs a different name for each member; {repeated[0]!r} repeats."
        )
    return pairs


def _check_member(name: str, member: Any, owner: str) -> None:
    if isinstance(member, str):
        raise ValueError(
            f"{owner} needs classifiers; got the text {member!r} "
            f"(margrave.catalogue.make makes one by name)."
        )
    # What knows classes is no regressor; asking for tags takes longer than a small tree's answer.
    tagged = not hasattr(member, "classes_") and hasattr(member, "__sklearn_tags__")
    if not hasattr(member, "predict") or (tagged and is_regressor(member)):
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
    """Whether an entry is a name with a member."""
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)


def find_attribute(member: Any, attribute: str) -> Any:
    """An attribute of a member, or of what a pipeline or a search ends in; None without one."""
    while not hasattr(member, attribute):
        if hasattr(member, "best_estimator_"):
            member = member.best_estimator_
        elif hasattr(member, "steps"):
            member = member.steps[-1][1]
        else:
            return None
    return getattr(member, attribute)


def fitted_classes(name: str, member: Any) -> NDArray[Any]:
    """The classes a trained member knows."""
    classes = getattr(member, "classes_", None)
    if classes is None or not len(classes):
        raise NotFittedError(
            f"Member {name!r} ({type(member).__name__}) has no classes_: fit it first. (A clone "
            "forgets what was learned, unless it is in a sklearn.frozen.FrozenEstimator.)"
        )
    if isinstance(classes, list) and isinstance(classes[0], np.ndarray):
        raise ValueError(f"Member {name!r} answers several targets at once; one is needed.")
    return np.asarray(classes)


def member_features(
    features: Sequence[Columns | None] | Mapping[str, Columns] | None,
    names: tuple[str, ...],
    owner: str = "Scores.of",
) -> tuple[Columns | None, ...]:
    """What each member looks at, in the order of the names."""
    if features is None:
        return (None,) * len(names)
    if isinstance(features, Mapping):
        unknown = [name for name in features if name not in names]
        if unknown:
            raise ValueError(
                f"{owner} has features for {unknown[0]!r}; members are {', '.join(names)}."
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
