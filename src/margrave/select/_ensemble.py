"""The members of a trained ensemble of scikit-learn, each as a classifier of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from margrave._indexing import select_columns

# Those that train their members on the numbers of the classes, and one that does not.
_NUMBERED = (
    BaggingClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
_KNOWN = (*_NUMBERED, AdaBoostClassifier)


class EnsembleMember(ClassifierMixin, BaseEstimator):
    """One trained member of an ensemble, with its columns and the ensemble's labels.

    Parameters
    ----------
    estimator : classifier
        Trained; many ensembles train theirs on the numbers of the classes.
    labels : ndarray
        What its own classes stand for, in their order.
    columns : ndarray of int or None
        The columns it was trained on.
    """

    def __init__(self, estimator: Any, labels: NDArray[Any], columns: Any = None) -> None:
        self.estimator = estimator
        self.labels = labels
        self.columns = columns

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels it knows."""
        return self.labels

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels."""
        own = np.asarray(self.estimator.predict(self._seen(X)))
        return self.labels[np.searchsorted(self.estimator.classes_, own)]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities over `classes_`."""
        proba: NDArray[np.float64] = self.estimator.predict_proba(self._seen(X))
        return proba

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Decision values."""
        values: NDArray[np.float64] = self.estimator.decision_function(self._seen(X))
        return values

    def _seen(self, X: Any) -> Any:
        """The columns it was trained on; without names, if it was trained without."""
        named = hasattr(self.estimator, "feature_names_in_")
        plain = X if named or hasattr(X, "tocsr") else np.asarray(X)
        return select_columns(plain, self.columns, "member", self.estimator)


def is_ensemble(estimators: Any) -> bool:
    """Whether it is a model and not a list of members."""
    return hasattr(estimators, "fit")


def opened(ensemble: Any, owner: str) -> list[tuple[str, Any]]:
    """Members of a trained ensemble with their names."""
    if isinstance(ensemble, FrozenEstimator):
        ensemble = ensemble.estimator
    kind = type(ensemble).__name__
    if not isinstance(ensemble, _KNOWN):
        known = ", ".join(sorted(one.__name__ for one in _KNOWN))
        raise ValueError(
            f"{owner} needs a list of classifiers, or a trained ensemble among {known}; got {kind}."
        )
    if not hasattr(ensemble, "estimators_"):
        raise ValueError(
            f"{owner} needs a trained ensemble; this {kind} is not (a clone forgets what was "
            "learned, unless it is in a sklearn.frozen.FrozenEstimator)."
        )
    as_given = isinstance(ensemble, StackingClassifier) and ensemble.cv == "prefit"
    numbered = isinstance(ensemble, _NUMBERED) and not as_given
    members = list(ensemble.estimators_)
    columns = getattr(ensemble, "estimators_features_", [None] * len(members))
    return [
        (name, EnsembleMember(member, _labels_of(member, ensemble.classes_, numbered), at))
        for name, member, at in zip(_names(ensemble), members, columns, strict=True)
    ]


def _names(ensemble: Any) -> list[str]:
    """The names that an ensemble's members have, or their types, numbered."""
    if isinstance(ensemble, StackingClassifier | VotingClassifier):
        return [name for name, member in ensemble.estimators if member != "drop"]
    members = ensemble.estimators_
    digits = len(str(len(members)))
    return [
        f"{type(member).__name__.lower()}-{j + 1:0{digits}d}" for j, member in enumerate(members)
    ]


def _labels_of(member: Any, classes: NDArray[Any], numbered: bool) -> NDArray[Any]:
    """What a member's classes stand for."""
    own = np.asarray(member.classes_)
    return np.asarray(classes)[own.astype(int)] if numbered else own
