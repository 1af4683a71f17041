"""The choice of ``min_gain``, on data sets that the study does not use.

A logistic regression gets requests, and is tuned by several rules. The rule of choice: the fewest
errors in the other cell relative to LR at equal counts, of the rules whose requested cell on the
test set is at most two standard errors above the request on every data set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import OrdinalEncoder

from experiments._parts import Floats, Ints, Parts, split
from experiments.martingale import models
from experiments.martingale.data import FRACTIONS
from experiments.martingale.models import GOAL
from experiments.martingale.requests import (
    Outcome,
    Request,
    Tune,
    outcomes,
    threshold,
    with_gain,
)
from margrave import datasets
from margrave.martingale import TunableLogistic

BUNDLED = {
    "pima": "pos",
    "german": 2,
    "housing_bin": 1,
    "cleveland_bin": 1,
    "breast_wisconsin": "malignant",
    "balance_bin": 1,
    "breast_ljubljana": "recurrence-events",
    "contraceptive_bin": 1,
}
# Pairs of digits with noise added: many features for few samples, where tuning overfits most.
DIGITS = {f"digits {a}, {b}": (a, b) for a, b in ((3, 8), (4, 9), (1, 8), (5, 7), (2, 3), (7, 9))}
OTHERS = {"breast_cancer": load_breast_cancer, "wine": load_wine}
TITLES = (*BUNDLED, *DIGITS, *OTHERS)
N_FOLDS = 5
_N_DIGITS, _NOISE = 250, 6.0


def load(title: str) -> tuple[Floats, Ints]:
    """Samples, and classes 0 and 1."""
    if title in DIGITS:
        rng = np.random.default_rng(0)
        X, y = load_digits(return_X_y=True)
        at = rng.permutation(np.flatnonzero(np.isin(y, DIGITS[title])))[:_N_DIGITS]
        noisy = X[at] + rng.normal(scale=_NOISE, size=X[at].shape)
        return noisy, (y[at] == DIGITS[title][1]).astype(np.int64)
    if title in OTHERS:
        X, y = OTHERS[title](return_X_y=True)
        return np.asarray(X), (y == 1).astype(np.int64)
    data = datasets.load(title)
    X, y = np.asarray(data.data), np.asarray(data.target) == BUNDLED[title]
    if X.dtype == object or X.dtype.kind in "US":
        X = OrdinalEncoder().fit_transform(X)
    return X.astype(np.float64), y.astype(np.int64)


class CrossFitted:
    """A tuned logistic regression whose offset is set on scores of models tuned without them.

    The tuning set has folds. The model is tuned without each of them, and scores it; the threshold
    of the model that is tuned on the whole set is set on these scores.
    """

    def __init__(self, model: TunableLogistic, request: Request, data: Parts) -> None:
        X, y = data.X_tune, data.y_tune
        scores = np.empty(len(y))
        n = int(request.is_at_risk(y).sum())
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
        for others, fold in folds.split(X, y):
            most = request.most * int(request.is_at_risk(y[others]).sum()) // n
            text = f"{Request(request.cell, most)}, {GOAL}"
            tuned = model.tune(text, X[others], y[others], min_gain=0)
            scores[fold] = self._score(tuned, X[fold])
        self.model = model.tune(f"{request}, {GOAL}", X, y, min_gain=0)
        self.threshold = threshold(scores, y, request)

    @staticmethod
    def _score(model: Any, X: Floats) -> Floats:
        """Log-odds without the offset, and without what the costs of the classes add."""
        log_cost = np.zeros(2)
        if model.class_cost is not None:
            log_cost = np.log([model.class_cost[label] for label in model.classes_.tolist()])
        shift = model.offset_ + log_cost
        return np.asarray(model.decision_function(X) - (shift[1] - shift[0]))

    def predict(self, X: Floats) -> Ints:
        """Predict by the threshold."""
        return (self._score(self.model, X) > self.threshold).astype(np.int64)


DEFAULT = "min_gain=3"
RULES: dict[str, Tune] = {
    "min_gain=0": with_gain(0),
    "min_gain=1": with_gain(1),
    "min_gain=2": with_gain(2),
    DEFAULT: with_gain(3),
    "cross-fitted offset": CrossFitted,
}


def compare_rules(title: str, seed: int, n_trees: int) -> dict[str, list[Outcome]]:
    """The requests to a logistic regression that is tuned by each rule."""
    data = split(*load(title), seed, FRACTIONS)
    model = TunableLogistic().fit(data.X_train, data.y_train)
    forest = models.forest(n_trees, seed).fit(data.X_train, data.y_train)
    return outcomes(data, model, forest, RULES)
