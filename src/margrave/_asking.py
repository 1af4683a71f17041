"""Asking one trained classifier: its name, its columns, and its answers over given classes.

A member gives probabilities, decision values or labels only, over the classes it has seen. What
it says is spread over the classes of the whole committee; values stay in the member's own units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.exceptions import NotFittedError

from margrave import _labels
from margrave._trees import Leaves, TreeSamples
from margrave._typing import Floats

Columns = slice | Sequence[int] | Sequence[str] | NDArray[Any]
Kind = Literal["probability", "decision", "label", "score"]
Ask = Literal["both", "labels", "values"]


@dataclass(frozen=True)
class Answer:
    """What one member says about n samples.

    Attributes
    ----------
    kind : str
        Where the values come from.
    codes : ndarray of shape (n,) or None
        Positions in the committee's classes, -1 for a rejected sample.
    values : ndarray of shape (n,) for at most two classes, else (n, C), or None
        ``2 p - 1``, ±1, or unscaled decision values; those are NaN for a class the member has not
        seen. With at most two classes the value is that of the last.
    """

    kind: Kind
    codes: NDArray[np.int64] | None
    values: Floats | None


def largest_size(decision: Floats) -> float:
    """The largest size of a decision value; 1 if all are 0 or none is known."""
    return float(np.nan_to_num(np.abs(decision)).max()) or 1.0


def on_scale(decision: Floats, scale: float) -> Floats:
    """Decision values in [-1, 1]; -1 for a class that the member has not seen."""
    return np.nan_to_num(np.clip(decision / scale, -1, 1), nan=-1.0)


def named_members(members: Any, owner: str) -> list[tuple[str, Any]]:
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


def last_step(member: Any, attribute: str) -> Any:
    """An attribute of a member, or of what a pipeline or a search ends in; None without one."""
    while not hasattr(member, attribute):
        if hasattr(member, "best_estimator_"):
            member = member.best_estimator_
        elif hasattr(member, "steps"):
            member = member.steps[-1][1]
        else:
            return None
    return getattr(member, attribute)


def classes_of(name: str, member: Any) -> NDArray[Any]:
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


def features_by_member(
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


def columns_for(X: Any, chosen: Columns | None, name: str, member: Any) -> Any:
    """The columns of X that a member looks at."""
    if chosen is None:
        known = getattr(member, "feature_names_in_", None)
        if known is None or not hasattr(X, "columns") or list(X.columns) == list(known):
            return X
        chosen = list(known)
    if isinstance(chosen, slice):
        return X.iloc[:, chosen] if hasattr(X, "iloc") else _sliceable(X)[:, chosen]
    wanted = list(chosen)
    if wanted and all(isinstance(column, str) for column in wanted):
        if not hasattr(X, "columns"):
            raise ValueError(
                f"Member {name!r} looks at columns by name; X must then be a data frame, "
                f"got {type(X).__name__}."
            )
        missing = [column for column in wanted if column not in set(X.columns)]
        if missing:
            raise ValueError(f"Member {name!r} needs columns that X lacks: {', '.join(missing)}.")
        return X[wanted]
    return X.iloc[:, wanted] if hasattr(X, "iloc") else _taken(_sliceable(X), wanted, name)


def rows_of(X: Any, at: Sequence[int] | NDArray[np.int64]) -> Any:
    """Some rows of samples, or some entries of a parameter with one per sample."""
    if hasattr(X, "iloc"):
        return X.iloc[at]
    return [X[i] for i in at] if isinstance(X, list | tuple) else _sliceable(X)[at]


def _sliceable(X: Any) -> Any:
    if hasattr(X, "tocsr"):
        return X.tocsr()  # not every sparse format gives columns
    return X if hasattr(X, "shape") else np.asarray(X)


def _taken(X: Any, wanted: list[Any], name: str) -> Any:
    try:
        return X[:, wanted]
    except IndexError as error:
        raise ValueError(
            f"Member {name!r} needs the columns {wanted}; X has {X.shape[1]}."
        ) from error


def ask_member(name: str, member: Any, X: Any, classes: NDArray[Any], ask: Ask) -> Answer:
    """One call of ``predict`` for labels, one of ``predict_proba`` or its like for values."""
    if isinstance(X, TreeSamples):
        at, answer = X.leaves(member), ask_member(name, Leaves(member), None, classes, ask)
        codes = None if answer.codes is None else answer.codes[at]
        return Answer(answer.kind, codes, None if answer.values is None else answer.values[at])
    own_classes = classes_of(name, member)
    own = _labels.encode(own_classes, classes, f"The classes of member {name!r}")
    kind: Kind = "label"
    if hasattr(member, "predict_proba"):
        kind = "probability"
    elif hasattr(member, "decision_function"):
        kind = "decision"
    codes = None
    if ask != "values" or kind == "label":
        answers = np.asarray(member.predict(X)).reshape(-1)
        told = _labels.encode(
            answers, own_classes, f"Answers of member {name!r}", last_step(member, "reject_label_")
        )
        codes = np.append(own, _labels.REJECTED)[told]
    if ask == "labels":
        return Answer(kind, codes, None)
    if codes is not None and kind == "label":
        signs = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        signs[codes == _labels.REJECTED] = 0.0  # no answer leans to no class
        values = _last(signs)
    elif kind == "probability":
        given = _finite(member.predict_proba(X), name, len(own))
        values = _probability_values(_spread(given, own, len(classes), unseen=0.0), name)
    else:
        if len(own) > 2 and last_step(member, "decision_function_shape") == "ovo":
            raise ValueError(
                f"Member {name!r} decides between pairs of classes; "
                "decision_function_shape='ovr' is needed."
            )
        given = np.asarray(member.decision_function(X), dtype=np.float64)
        if given.ndim == 1:
            given = np.stack([-given, given], axis=1)
        values = _spread(_finite(given, name, len(own)), own, len(classes), unseen=np.nan)
        values = _last(values)
    return Answer(kind, None if ask == "values" else codes, values)


def _probability_values(proba: Floats, name: str) -> Floats:
    """``2 p - 1``, of the last class only when there are at most two."""
    if proba.min() < -1e-6 or proba.max() > 1 + 1e-6:
        raise ValueError(
            f"Member {name!r} gives probabilities outside [0, 1]: "
            f"from {proba.min():g} to {proba.max():g}."
        )
    return np.clip(2 * _last(proba) - 1, -1, 1)


def _finite(values: Any, name: str, n_classes: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != n_classes:
        raise ValueError(
            f"Member {name!r} knows {n_classes} classes, but gives values of shape {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(f"Member {name!r} gives values that are NaN or infinite.")
    return array


def _spread(values: Floats, own: NDArray[np.int64], n_classes: int, unseen: float) -> Floats:
    """Columns for the member's own classes put at their places among all classes."""
    if len(own) == n_classes and (own == np.arange(n_classes)).all():
        return values
    spread = np.full((len(values), n_classes), unseen)
    spread[:, own] = values
    return spread


def _last(values: Floats) -> Floats:
    """With at most two classes the last one says it all."""
    return values[:, -1] if values.shape[1] <= 2 else values
