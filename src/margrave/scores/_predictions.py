"""Predictions of one fitted classifier, over the classes of the whole committee.

A member predicts probabilities, decision values or labels only, for the classes it was fitted on.
`predict_member` places them among the committee's classes and leaves decision values unscaled. The
last part is a fast path for committees of decision trees: it converts and checks X once for all.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    """The predictions of one member for n samples.

    Attributes
    ----------
    kind : str
        The origin of the values: "probability", "decision", "label" or "score".
    codes : ndarray of shape (n,) or None
        Positions in the committee's classes, -1 for a rejected sample.
    values : ndarray of shape (n,) for at most two classes, else (n, C), or None
        ``2 p - 1``, ±1, or unscaled decision values, which are NaN for a class that the member was
        not fitted on. With at most two classes the value is that of the last.
    """

    kind: Kind
    codes: NDArray[np.int64] | None
    values: Floats | None


def largest_size(decision: Floats) -> float:
    """Return the largest absolute decision value; 1 if all are 0 or NaN."""
    return float(np.nan_to_num(np.abs(decision)).max()) or 1.0


def on_scale(decision: Floats, scale: float) -> Floats:
    """Scale decision values to [-1, 1]; -1 for a class that the member was not fitted on."""
    return np.nan_to_num(np.clip(decision / scale, -1, 1), nan=-1.0)


def kind_of_values(member: Any) -> Kind:
    """Return the origin of a member's values, from the methods it has."""
    if hasattr(member, "predict_proba"):
        return "probability"
    return "decision" if hasattr(member, "decision_function") else "label"


def predict_member(
    name: str, member: Any, X: Any, classes: NDArray[Any], ask: Ask
) -> MemberPredictions:
    """Call ``predict`` for labels, ``predict_proba`` or ``decision_function`` for values."""
    if isinstance(X, TreeInput):
        at, by_node = X.leaves(member), predict_member(name, Nodes(member), None, classes, ask)
        codes = None if by_node.codes is None else by_node.codes[at]
        values = None if by_node.values is None else by_node.values[at]
        return MemberPredictions(by_node.kind, codes, values)
    own_classes = fitted_classes(name, member)
    own = _labels.encode(own_classes, classes, f"The classes of member {name!r}")
    kind = kind_of_values(member)
    codes = None
    if ask != "values" or kind == "label":
        own_codes = _labels.encode(
            np.asarray(member.predict(X)).reshape(-1),
            own_classes,
            f"Predictions of member {name!r}",
            find_attribute(member, "reject_label_"),
        )
        codes = np.append(own, _labels.REJECTED)[own_codes]
    if ask == "labels":
        return MemberPredictions(kind, codes, None)
    if codes is not None and kind == "label":
        signs = np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)
        signs[codes == _labels.REJECTED] = 0.0
        values = _reduce_two(signs)
    elif kind == "probability":
        values = np.clip(2 * _reduce_two(predict_proba(name, member, X, classes)) - 1, -1, 1)
    else:
        if len(own) > 2 and find_attribute(member, "decision_function_shape") == "ovo":
            raise ValueError(
                f"Member {name!r} has decision values for pairs of classes; set its "
                "decision_function_shape='ovr'."
            )
        decision = np.asarray(member.decision_function(X), dtype=np.float64)
        if decision.ndim == 1:
            decision = np.stack([-decision, decision], axis=1)
        decision = _check_shape(decision, name, len(own))
        _check_finite(decision, name)
        values = _reduce_two(_spread(decision, own, len(classes), unseen=np.nan))
    return MemberPredictions(kind, None if ask == "values" else codes, values)


def predict_proba(name: str, member: Any, X: Any, classes: NDArray[Any]) -> Floats:
    """Return a member's probabilities of all classes, of shape (n, C)."""
    if isinstance(X, TreeInput):
        return predict_proba(name, Nodes(member), None, classes)[X.leaves(member)]
    own = _labels.encode(fitted_classes(name, member), classes, f"The classes of member {name!r}")
    predicted = np.asarray(member.predict_proba(X))
    proba = _check_shape(predicted, name, len(own))
    low, high = proba.min(), proba.max()
    if not (low >= -1e-6 and high <= 1 + 1e-6):
        _check_finite(proba, name)
        raise ValueError(
            f"Member {name!r} predicts probabilities outside [0, 1]: from {low:g} to {high:g}."
        )
    if low < 0 or high > 1:
        proba = np.clip(proba, 0, 1)
    if predicted.dtype == np.float32:  # its rows sum to 1 only in float32
        total = proba.sum(axis=1, keepdims=True)
        np.divide(proba, total, out=proba, where=np.abs(total - 1) < 1e-5)
    return _spread(proba, own, len(classes), unseen=0.0)


def _check_finite(values: Floats, name: str) -> None:
    if not np.isfinite(values).all():
        raise ValueError(f"Member {name!r} predicts values that are NaN or infinite.")


def _check_shape(values: Any, name: str, n_classes: int) -> Floats:
    """Return an array with one column per class of the member."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != n_classes:
        raise ValueError(
            f"Member {name!r} has {n_classes} classes, but predicts values of shape {array.shape}."
        )
    return array


def _spread(values: Floats, own: NDArray[np.int64], n_classes: int, unseen: float) -> Floats:
    """Place the columns of the member's own classes among those of all classes."""
    if len(own) == n_classes and (own == np.arange(n_classes)).all():
        return values
    spread = np.full((len(values), n_classes), unseen)
    spread[:, own] = values
    return spread


def _reduce_two(values: Floats) -> Floats:
    """Keep only the last class if there are at most two: it determines the other."""
    return values[:, -1] if values.shape[1] <= 2 else values


# Committees of decision trees

_TREE_TYPES = (DecisionTreeClassifier, ExtraTreeClassifier)


class TreeInput:
    """Samples in the type that scikit-learn's trees work on, checked once for all trees.

    Parameters
    ----------
    X : ndarray of float32
        Finite.
    """

    def __init__(self, X: NDArray[np.float32]) -> None:
        self.X = X

    def leaves(self, tree: Any) -> NDArray[np.intp]:
        """Return the node number of each sample's leaf in a tree."""
        nodes: NDArray[np.intp] = tree.tree_.apply(self.X)
        return nodes


class Nodes:
    """The predictions of a tree at each of its nodes.

    Parameters
    ----------
    tree : DecisionTreeClassifier or ExtraTreeClassifier
        Fitted.
    """

    def __init__(self, tree: Any) -> None:
        self.classes_ = tree.classes_
        self._proba = tree.tree_.value[:, 0, : tree.n_classes_]

    def predict(self, _: Any) -> NDArray[Any]:
        """Return the label of each node."""
        labels: NDArray[Any] = self.classes_.take(self._proba.argmax(axis=1))
        return labels

    def predict_proba(self, _: Any) -> NDArray[np.float64]:
        """Return the probabilities of each node."""
        return np.asarray(self._proba)


def tree_input(members: Sequence[tuple[str, Any]], X: Any) -> TreeInput | None:
    """Return the common input of a committee of trees; None if each must check X itself."""
    numeric = isinstance(X, np.ndarray) and X.ndim == 2 and X.size and X.dtype.kind in "fiu"
    if not numeric or not all(_is_plain_tree(member, X.shape[1]) for _, member in members):
        return None
    with np.errstate(over="ignore"):
        checked = np.ascontiguousarray(X, dtype=np.float32)
    return TreeInput(checked) if np.isfinite(checked).all() else None


def _is_plain_tree(member: Any, n_features: int) -> bool:
    """Return whether a member is a fitted tree with one target, for columns without names."""
    return (
        type(member) in _TREE_TYPES
        and hasattr(member, "tree_")
        and member.n_outputs_ == 1
        and member.n_features_in_ == n_features
        and not hasattr(member, "feature_names_in_")
    )
