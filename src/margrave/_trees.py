"""Committees of scikit-learn's trees, asked without checking the same samples for every tree.

A tree answers by the leaf a sample is in. Finding leaves takes half of the time of a call of
``predict``; the other half checks and converts the samples, which is the same for all trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

_KINDS = (DecisionTreeClassifier, ExtraTreeClassifier)


class TreeSamples:
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


def tree_samples(members: list[tuple[str, Any]], X: Any) -> TreeSamples | None:
    """Samples for a committee of trees; None for another, or if they should see the samples."""
    numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.size and X.dtype.kind in "fiu"
    if not numbers or not all(_is_plain(member, X.shape[1]) for _, member in members):
        return None
    with np.errstate(over="ignore"):
        checked = np.ascontiguousarray(X, dtype=np.float32)
    return TreeSamples(checked) if np.isfinite(checked).all() else None


def _is_plain(member: Any, n_features: int) -> bool:
    """Whether it is a trained tree with one target, for samples without names."""
    return (
        type(member) in _KINDS
        and hasattr(member, "tree_")
        and member.n_outputs_ == 1
        and member.n_features_in_ == n_features
        and not hasattr(member, "feature_names_in_")
    )
