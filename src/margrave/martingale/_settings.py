"""Hyperparameters as arrays, from the forms a user may give them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import Floats


@dataclass(frozen=True)
class Setting:
    """Hyperparameters of a logistic regression.

    Attributes
    ----------
    log_penalty : ndarray of shape (n_groups,)
        Logarithms of the penalties.
    log_cost : ndarray of shape (n_classes,)
        Logarithms of the classes' costs.
    offset : ndarray of shape (n_classes,)
        What is added to the classes' scores.
    """

    log_penalty: Floats
    log_cost: Floats
    offset: Floats


def one_each(value: Any, keys: Sequence[Any], default: float, name: str, owner: str) -> Floats:
    """A number for each key: from one number, from as many, or from some by their keys."""
    if value is None:
        return np.full(len(keys), default)
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in keys]
        if unknown:
            raise ValueError(
                f"{owner} needs {name} for {_listed(keys)}; got one for {unknown[0]!r}."
            )
    given = [value.get(key, default) for key in keys] if isinstance(value, Mapping) else value
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if numbers.shape not in ((), (len(keys),)) or not np.isfinite(numbers).all():
        raise ValueError(
            f"{owner} needs {name} to be a finite number, or one for each of {_listed(keys)}; "
            f"got {value!r}."
        )
    return np.array(np.broadcast_to(numbers, len(keys)))


def grouped(
    groups: Mapping[str, Any] | None, n_features: int, names: Sequence[str] | None, owner: str
) -> tuple[list[str], NDArray[np.intp]]:
    """The names of the groups, and the group of each feature."""
    known = list(map(str, range(n_features) if names is None else names))
    if groups is None:
        return known, np.arange(n_features)
    if not isinstance(groups, Mapping) or len(set(map(str, groups))) < len(groups):
        raise ValueError(
            f"{owner} needs groups to be a mapping from different names to features; "
            f"got {groups!r}."
        )
    group = np.full(n_features, -1)
    for at, (name, features) in enumerate(groups.items()):
        if not isinstance(features, str | Iterable):
            raise ValueError(
                f"{owner} needs groups of several features each; got {features!r} in {name!r}."
            )
        for feature in [features] if isinstance(features, str) else features:
            place = _place(feature, known, name, owner)
            if group[place] != -1:
                raise ValueError(
                    f"{owner} needs groups to hold each feature once; {feature!r} is in two."
                )
            group[place] = at
    if (group == -1).any():
        missing = known[int(np.argmin(group))]
        raise ValueError(f"{owner} needs groups to hold each feature once; {missing!r} is in none.")
    return list(map(str, groups)), group


def _place(feature: Any, known: list[str], name: str, owner: str) -> int:
    """The position of a feature that is given by its name or its position."""
    if isinstance(feature, str) and feature in known:
        return known.index(feature)
    whole = isinstance(feature, int | np.integer) and not isinstance(feature, bool)
    if not whole or not 0 <= feature < len(known):
        raise ValueError(
            f"{owner} needs groups of features by their name or position, 0 to {len(known) - 1}; "
            f"got {feature!r} in {name!r}."
        )
    return int(feature)


def _listed(keys: Sequence[Any], limit: int = 6) -> str:
    texts = [repr(key) for key in list(keys)[:limit]]
    return ", ".join(texts) + (f", ... ({len(keys)} in all)" if len(keys) > limit else "")
