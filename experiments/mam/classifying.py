"""Classification: the maximal average margin in three forms, and three other methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from experiments._parts import Ints
from experiments.mam.data import Parts
from margrave.mam import MAMClassifier

MAM, BALANCED = "MAM", "MAM balanced"
PRINTED = "MAM as printed"
SVM, NEIGHBOURS, FOREST = "SVM", "k-NN", "random forest"
FORMS = (MAM, BALANCED, PRINTED)
OTHERS = (SVM, NEIGHBOURS, FOREST)
METHODS = (*FORMS, *OTHERS)

GAMMAS = 1 / np.logspace(-2, 15, 18)
"""The paper's widths, as 1/σ."""


@dataclass(frozen=True)
class Effort:
    """How much the other methods may try.

    Attributes
    ----------
    n_folds : int
        Of the cross-validation that finds settings.
    costs, gammas : tuple of float
        C of the SVM, and γ as a part of 1 over the number of features.
    neighbours : tuple of int
        k of the nearest neighbours.
    n_trees : int
        Of the random forest.
    """

    n_folds: int = 5
    costs: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    gammas: tuple[float, ...] = (1 / 16, 1 / 4, 1.0, 4.0)
    neighbours: tuple[int, ...] = (1, 3, 5, 9, 15, 25, 45)
    n_trees: int = 200


@dataclass(frozen=True)
class Trial:
    """A method on a split.

    Attributes
    ----------
    error : float
        Fraction of the test set that is wrong.
    seconds : float
        CPU time to learn, the settings included, and to predict the test set.
    known : float
        The same once the settings are known.
    """

    error: float
    seconds: float
    known: float


def methods(n_features: int, seed: int, effort: Effort) -> dict[str, Callable[[], Any]]:
    """What makes each method, new."""
    svm = {"C": list(effort.costs), "gamma": [part / n_features for part in effort.gammas]}
    neighbours, cv = {"n_neighbors": list(effort.neighbours)}, effort.n_folds
    return {
        MAM: lambda: MAMClassifier(n_jobs=1),
        BALANCED: lambda: MAMClassifier(class_weight="balanced", n_jobs=1),
        PRINTED: lambda: MAMClassifier(gammas=GAMMAS, threshold=None, n_jobs=1),
        SVM: lambda: GridSearchCV(SVC(cache_size=500), svm, cv=cv),
        NEIGHBOURS: lambda: GridSearchCV(KNeighborsClassifier(), neighbours, cv=cv),
        FOREST: lambda: RandomForestClassifier(effort.n_trees, random_state=seed),
    }


def trial(model: Any, parts: Parts) -> Trial:
    """Train, predict, and measure the time."""
    predictions, learning, predicting = _timed(model, parts)
    known = learning + predicting
    if isinstance(model, GridSearchCV):
        known = sum(_timed(clone(model.best_estimator_), parts)[1:])
    elif isinstance(model, MAMClassifier):
        known = sum(_timed(clone(model).set_params(gamma=model.gamma_), parts)[1:])
    return Trial(float(np.mean(predictions != parts.y_test)), learning + predicting, float(known))


def _timed(model: Any, parts: Parts) -> tuple[Ints, float, float]:
    """Predictions for the test set, and the seconds to train and to predict.

    This is CPU time: on a busy machine the clock would run longer for long computations.
    """
    start = process_time()
    model.fit(parts.X_train, parts.y_train)
    learned = process_time()
    predictions = model.predict(parts.X_test)
    return predictions, learned - start, process_time() - learned


def trials(parts: Parts, seed: int, effort: Effort) -> dict[str, Trial]:
    """Every method on one split, on one thread."""
    with threadpool_limits(1):
        makers = methods(parts.X_train.shape[1], seed, effort)
        return {name: trial(make(), parts) for name, make in makers.items()}
