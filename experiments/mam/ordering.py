"""Order: rankers on section 5's data and on data sets in bins, and ordered classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any, Self

import numpy as np
from scipy.stats import kendalltau
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, RidgeCV
from threadpoolctl import threadpool_limits

from experiments._parts import Floats
from experiments.mam.artificial import N_FEATURES, in_quantiles, section_5
from experiments.mam.data import Parts
from experiments.mam.rank_ridge import RankRidgeRanker
from margrave.mam import MAMOrdinalClassifier, MAMRanker, rank_transform

HAS_MORD = find_spec("mord") is not None

RANKER, LINEAR = "MAM ranker", "linear MAM ranker"
USUAL_RIDGE, KERNEL_RIDGE = "rank ridge at the usual width", "rank ridge"
RIDGE = "linear ridge on ranks"
ORDINAL, LOGISTIC = "MAM ordinal", "logistic regression"
PEER = "mord LogisticAT"
TRUTH = "true direction"

N_CLASSES = 5
"""Classes that responses are put in for a method that needs them."""
RIDGES = np.logspace(-3, 4, 8)
PARTS_OF_GAMMA = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
"""Of γ of the ridge regression with a kernel, over the number of features."""


@dataclass(frozen=True)
class Ranked:
    """A ranker on new samples: Kendall's τ-b, and the seconds to learn and to predict."""

    tau: float
    seconds: float


@dataclass(frozen=True)
class Graded:
    """A classifier of ordered classes on new samples.

    Attributes
    ----------
    accuracy : float
        Fraction that is right.
    off : float
        By how many classes it is off, the mean.
    seconds : float
        To learn and to predict.
    """

    accuracy: float
    off: float
    seconds: float


class RidgeOnRanks(BaseEstimator):
    """Plain ridge regression on ranks, its ridge by generalised cross-validation."""

    def fit(self, X: Floats, y: Floats) -> Self:
        """Learn the ranks."""
        self.ridge_ = RidgeCV(RIDGES).fit(X, rank_transform(y))
        return self

    def predict(self, X: Floats) -> Floats:
        """Predicted ranks."""
        return np.asarray(self.ridge_.predict(X))


class LogisticAT(BaseEstimator):
    """mord's ordinal logistic model for classes that need not follow each other."""

    def fit(self, X: Floats, y: Any) -> Self:
        """Learn from the classes there are, counted from 0."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        with warnings.catch_warnings():
            # mord 0.7 hands scipy an option that scipy will drop.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.model_ = import_module("mord").LogisticAT().fit(X, codes)
        return self

    def rank(self, X: Floats) -> Floats:
        """The linear score that its thresholds split."""
        return np.asarray(X @ self.model_.coef_)

    def predict(self, X: Floats) -> Any:
        """Classes."""
        return self.classes_[self.model_.predict(X)]


class PeerRanker(LogisticAT):
    """mord's model as a ranker, for responses of any kind: they are put in five classes."""

    def fit(self, X: Floats, y: Any) -> Self:
        """Learn from the classes if they are few, from quantiles if not."""
        few = len(np.unique(y)) <= 2 * N_CLASSES
        return super().fit(X, y.astype(np.int64) if few else in_quantiles(y, N_CLASSES))

    def predict(self, X: Floats) -> Any:
        """The linear score."""
        return self.rank(X)


def rankers(n_features: int) -> dict[str, Callable[[], Any]]:
    """What makes each ranker, new."""
    gammas = np.array(PARTS_OF_GAMMA) / n_features
    found: dict[str, Callable[[], Any]] = {
        LINEAR: lambda: MAMRanker("linear", n_jobs=1),
        RANKER: lambda: MAMRanker(n_jobs=1),
        USUAL_RIDGE: lambda: RankRidgeRanker(),
        KERNEL_RIDGE: lambda: RankRidgeRanker(gamma="loo", gammas=gammas),
        RIDGE: RidgeOnRanks,
    }
    return found | ({PEER: PeerRanker} if HAS_MORD else {})


def graders() -> dict[str, Callable[[], Any]]:
    """What makes each classifier of ordered classes, new."""
    found: dict[str, Callable[[], Any]] = {
        ORDINAL: lambda: MAMOrdinalClassifier(n_jobs=1),
        LOGISTIC: lambda: LogisticRegression(max_iter=5000),
    }
    return found | ({PEER: LogisticAT} if HAS_MORD else {})


def tau(y: Any, scores: Any) -> float:
    """Kendall's τ-b; 0 if all scores are the same."""
    found = float(kendalltau(y, scores).statistic)
    return found if np.isfinite(found) else 0.0


def _timed(model: Any, X: Floats, y: Any, X_new: Floats) -> tuple[Any, float]:
    """Predictions for new samples, and the seconds to learn and to predict."""
    start = process_time()  # CPU time, as in `classifying`
    predictions = model.fit(X, y).predict(X_new)
    return predictions, process_time() - start


def ranked(model: Any, X: Floats, y: Any, X_new: Floats, y_new: Any) -> Ranked:
    """How well it orders new samples."""
    scores, seconds = _timed(model, X, y, X_new)
    return Ranked(tau(y_new, scores), seconds)


def graded(model: Any, parts: Parts) -> Graded:
    """How well it classifies new samples."""
    predictions, seconds = _timed(model, parts.X_train, parts.y_train, parts.X_test)
    off = np.abs(predictions - parts.y_test)
    return Graded(float(np.mean(off == 0)), float(off.mean()), seconds)


def on_section_5(seed: int) -> dict[str, Ranked]:
    """Every ranker on one Monte Carlo run, and the best there can be."""
    train, valid = section_5(seed)
    with threadpool_limits(1):
        found = {
            name: ranked(make(), train.X, train.y, valid.X, valid.y)
            for name, make in rankers(N_FEATURES).items()
        }
    return {**found, TRUTH: Ranked(tau(valid.y, valid.truth), 0.0)}


def on_split(parts: Parts) -> tuple[dict[str, Ranked], dict[str, Graded]]:
    """Every ranker and every classifier on one split of a set in bins."""
    with threadpool_limits(1):
        orders = {
            name: ranked(make(), parts.X_train, parts.y_train, parts.X_test, parts.y_test)
            for name, make in rankers(parts.X_train.shape[1]).items()
        }
        return orders, {name: graded(make(), parts) for name, make in graders().items()}
