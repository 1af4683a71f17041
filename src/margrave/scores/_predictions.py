"""Asking one trained classifier: its name, its columns, and its answers over given classes.

A member gives probabilities, decision values or labels only, over the classes it has seen. What
it says is spread over the classes of the whole committee; values stay in the member's own units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from margrave import _labels
from margrave._typing import Floats
from margrave._validation import find_attribute, fitted_classes

Kind = Literal["probability", "decision", "label", "score"]
Ask = Literal["both", "labels", "values"]


@dataclass(frozen=True)
class MemberPredictions:
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


def ask_member(
    name: str, member: Any, X: Any, classes: NDArray[Any], ask: Ask
) -> MemberPredictions:
    """One call of ``predict`` for labels, one of ``predict_proba`` or its like for values."""
    if isinstance(X, TreeInput):
        at, answer = X.leaves(member), ask_member(name, Leaves(member), None, classes, ask)
        codes = None if answer.codes is None else answer.codes[at]
        return MemberPredictions(
            answer.kind, codes, None if answer.values is None else answer.values[at]
        )
    own_classes = fitted_classes(name, member)
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
            answers,
            own_classes,
            f"Answers of member {name!r}",
            find_attribute(member, "reject_label_"),
        )
        codes = np.append(own, _labels.REJECTED)[told]
    if ask == "labels":
        return MemberPredictions(kind, codes, None)
    if codes is not None and kind == "label":
        signs = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        signs[codes == _labels.REJECTED] = 0.0  # no answer leans to no class
        values = _last(signs)
    elif kind == "probability":
        given = _finite(member.predict_proba(X), name, len(own))
        values = _probability_values(_spread(given, own, len(classes), unseen=0.0), name)
    else:
        if len(own) > 2 and find_attribute(member, "decision_function_shape") == "ovo":
            raise ValueError(
                f"Member {name!r} decides between pairs of classes; "
                "decision_function_shape='ovr' is needed."
            )
        given = np.asarray(member.decision_function(X), dtype=np.float64)
        if given.ndim == 1:
            given = np.stack([-given, given], axis=1)
        values = _spread(_finite(given, name, len(own)), own, len(classes), unseen=np.nan)
        values = _last(values)
    return MemberPredictions(kind, None if ask == "values" else codes, values)


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


_KINDS = (DecisionTreeClassifier, ExtraTreeClassifier)


class TreeInput:
    """Samples that were checked, as trees want them.

    Parameters
    ----------
    X : ndarray of float32
        Finite.
    """

    def __init__(self, X: NDArray[np.float32]) -> None:
        self.X = X

    def leaves(self, tree: Any) -> NDArray[np.intp]:
        """The leaf of a tree that each sample is in."""
        found: NDArray[np.intp] = tree.tree_.apply(self.X)
        return found


class Leaves:
    """What a tree says at each of its nodes.

    Parameters
    ----------
    tree : DecisionTreeClassifier or ExtraTreeClassifier
        Trained.
    """

    def __init__(self, tree: Any) -> None:
        self.classes_ = tree.classes_
        self._proba = tree.tree_.value[:, 0, : tree.n_classes_]

    def predict(self, _: Any) -> NDArray[Any]:
        """The label of each node."""
        labels: NDArray[Any] = self.classes_.take(self._proba.argmax(axis=1))
        return labels

    def predict_proba(self, _: Any) -> NDArray[np.float64]:
        """The probabilities of each node."""
        return np.asarray(self._proba)


def tree_input(members: list[tuple[str, Any]], X: Any) -> TreeInput | None:
    """Samples for a committee of trees; None for another, or if they should see the samples."""
    numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.size and X.dtype.kind in "fiu"
    if not numbers or not all(_is_plain(member, X.shape[1]) for _, member in members):
        return None
    with np.errstate(over="ignore"):
        checked = np.ascontiguousarray(X, dtype=np.float32)
    return TreeInput(checked) if np.isfinite(checked).all() else None


def _is_plain(member: Any, n_features: int) -> bool:
    """Whether it is a trained tree with one target, for samples without names."""
    return (
        type(member) in _KINDS
        and hasattr(member, "tree_")
        and member.n_outputs_ == 1
        and member.n_features_in_ == n_features
        and not hasattr(member, "feature_names_in_")
    )
