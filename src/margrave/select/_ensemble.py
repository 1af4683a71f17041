"""The members of a trained ensemble of scikit-learn, each as a classifier of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from margrave._asking import columns_for


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

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels."""
        own = np.asarray(self.estimator.predict(self._seen(X)))
        return self.labels[np.searchsorted(self.estimator.classes_, own)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities over `classes_`."""
        proba: NDArray[np.float64] = self.estimator.predict_proba(self._seen(X))
        return proba

    def _seen(self, X: Any) -> Any:
        """The columns it was trained on, without names: ensembles pass none on."""
        plain = X if hasattr(X, "tocsr") else np.asarray(X)
        return columns_for(plain, self.columns, "member", None)


def opened(ensemble: Any, owner: str) -> list[tuple[str, Any]]:
    """Members of a trained ensemble with their names.

    Whether these speak of classes or of their numbers is seen from all of them together.
    """
    members, classes = list(np.ravel(ensemble.estimators_)), np.asarray(ensemble.classes_)
    if any(not hasattr(member, "classes_") for member in members):
        raise ValueError(
            f"{owner} opens ensembles of classifiers; those of a {type(ensemble).__name__} are "
            f"{type(members[0]).__name__}s."
        )
    known = np.unique(np.concatenate([np.asarray(member.classes_) for member in members]))
    numbered = not np.isin(known, classes).all()
    columns = getattr(ensemble, "estimators_features_", [None] * len(members))
    kind, digits = type(members[0]).__name__.lower(), len(str(len(members)))
    return [
        (
            f"{kind}-{j + 1:0{digits}d}",
            _member(member, classes[member.classes_.astype(int)] if numbered else None, at),
        )
        for j, (member, at) in enumerate(zip(members, columns, strict=True))
    ]


def _member(member: Any, labels: NDArray[Any] | None, columns: Any) -> EnsembleMember:
    return EnsembleMember(member, member.classes_ if labels is None else labels, columns)


def is_ensemble(estimators: Any) -> bool:
    """Whether it is a trained ensemble and not a list of members."""
    return hasattr(estimators, "estimators_") and hasattr(estimators, "classes_")
