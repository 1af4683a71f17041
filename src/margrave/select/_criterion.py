"""How good each member is on some tuning samples: accuracy, or any scorer of scikit-learn.

The members that answered the tuning samples may be gone (each fold has its own), so a scorer is
given stand-ins that repeat what was said, and positions of samples in the place of samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer
from sklearn.utils.metaestimators import available_if

from margrave._labels import decode, default_reject_label
from margrave._typing import AnyFloats, AnyInts
from margrave.scores import Ask
from margrave.select._selector import Judged

ACCURACY = "accuracy"


class Repeater(ClassifierMixin, BaseEstimator):
    """A member that has spoken: "samples" are the positions of what it said.

    Parameters
    ----------
    classes : ndarray
        All classes.
    labels : ndarray of shape (n,)
        What it answered.
    proba : ndarray of shape (n, n_classes) or None
        Its probabilities, if it gave any.
    """

    def __init__(self, classes: NDArray[Any], labels: NDArray[Any], proba: Any) -> None:
        self.classes = classes
        self.labels = labels
        self.proba = proba

    @property
    def classes_(self) -> NDArray[Any]:
        """All classes."""
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, at: Any) -> NDArray[Any]:
        """What it answered."""
        labels: NDArray[Any] = self.labels[at]
        return labels

    @available_if(lambda self: self.proba is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, at: Any) -> AnyFloats:
        """Its probabilities."""
        proba: AnyFloats = self.proba[at]
        return proba


def checked_scorer(criterion: Any, owner: str) -> Any:
    """A scorer by name or as it is; None for accuracy, which needs none."""
    if isinstance(criterion, str) and criterion == ACCURACY:
        return None
    if not isinstance(criterion, str) and not callable(criterion):
        raise ValueError(
            f"{owner} needs criterion to be 'accuracy', the name of a scorer or one of your own; "
            f"got {criterion!r}."
        )
    try:
        return get_scorer(criterion)
    except ValueError as error:
        raise ValueError(
            f"{owner} needs criterion to be 'accuracy', or a name that "
            f"sklearn.metrics.get_scorer_names() has; got {criterion!r}."
        ) from error


def values(
    judged: Judged, classes: NDArray[Any], scorer: Any, parts: Sequence[AnyInts], owner: str
) -> AnyFloats:
    """The criterion of each member on parts of the tuning samples, shape (parts, L).

    NaN where it is not defined, as where a part has one class only.
    """
    n_members = judged.told.codes.shape[1]
    found = np.empty((len(parts), n_members))
    if scorer is None:
        for r, at in enumerate(parts):
            weight = None if judged.weight is None else judged.weight[at]
            found[r] = np.average(judged.right[at], axis=0, weights=weight)
        return found
    truth = classes[judged.truth]
    members = [_repeater(judged, classes, j) for j in range(n_members)]
    everywhere = len(np.unique(judged.truth))
    for r, at in enumerate(parts):
        all_there = len(np.unique(judged.truth[at])) == everywhere
        for j, member in enumerate(members):
            try:
                found[r, j] = _scored(scorer, member, at, truth[at], judged.weight, owner)
            except ValueError:
                if all_there:
                    raise
                found[r, j] = np.nan  # many a criterion is not defined where a class is missing
    return found


def asked_for(scorer: Any) -> Ask:
    """What members are asked for: values too if the criterion is not known to need labels only."""
    labels_only = scorer is None or getattr(scorer, "_response_method", None) == "predict"
    return "labels" if labels_only else "both"


def _repeater(judged: Judged, classes: NDArray[Any], j: int) -> Repeater:
    proba = judged.told.proba
    labels = decode(judged.told.codes[:, j], classes, default_reject_label(classes))
    return Repeater(classes, labels, None if proba is None else proba[:, j])


def _scored(
    scorer: Any, member: Repeater, at: AnyInts, truth: NDArray[Any], weight: Any, owner: str
) -> float:
    takes = "sample_weight" in signature(scorer).parameters
    weights = {"sample_weight": weight[at]} if weight is not None and takes else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # NaN says it
        try:
            return float(scorer(member, at, truth, **weights))
        except AttributeError as error:
            raise ValueError(
                f"{owner} needs members with predict_proba for this criterion; one has none "
                "(sklearn.calibration.CalibratedClassifierCV adds it)."
            ) from error
