"""The learners of the study, their tuning and their evaluation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from experiments._parts import Floats, Ints, Parts
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    NotMetWarning,
    TunableLogistic,
)

N_LANDMARKS = 100
FOLDS = 3
GOAL = "then fewest errors"
"""The goal of every request: of the models that meet it, the one with the fewest errors."""


@dataclass(frozen=True)
class Size:
    """The size of ensembles: levels of programs, rounds of AdaBoost, trees of the others."""

    n_levels: int
    n_rounds: int
    n_trees: int


@dataclass(frozen=True)
class Evaluation:
    """The evaluation of a model on the test set.

    Attributes
    ----------
    right, size : tuple of int
        Number of samples of each class that it predicts correctly, and in all.
    met : bool or None
        Whether it meets its request on the tuning set; None without a request.
    n_requested : int
        Number of its nodes that got a request.
    """

    right: tuple[int, ...]
    size: tuple[int, ...]
    met: bool | None = None
    n_requested: int = 0

    @classmethod
    def of(cls, model: Any, X: Floats, y: Ints, n_requested: int = 0) -> Evaluation:
        """Evaluate a model."""
        k = int(y.max()) + 1
        right = np.bincount(y[model.predict(X) == y], minlength=k)
        tuning = getattr(model, "tuning_", None)
        return cls(
            tuple(right.tolist()),
            tuple(np.bincount(y, minlength=k).tolist()),
            None if tuning is None else bool(tuning.met),
            n_requested,
        )

    def errors(self, c: int) -> int:
        """Number of samples of a class that it predicts as another class."""
        return self.size[c] - self.right[c]

    def of_class(self, c: int) -> float:
        """Accuracy on a class, in %."""
        return 100 * self.right[c] / self.size[c]

    @property
    def overall(self) -> float:
        """Accuracy, in %."""
        return 100 * sum(self.right) / sum(self.size)


def halved(model: Any, data: Parts, c: int) -> str:
    """A preference: half of a model's errors on a class of the tuning set."""
    missed = (data.y_tune == c) & (model.predict(data.X_tune) != c)
    return f"fn({c}) <= {missed.sum() // 2}, {GOAL}"


def tuned(model: Any, request: Any, X: Floats, y: Ints, **settings: Any) -> Any:
    """A tuned copy; the nearest model if the request is not met.

    As in the paper, the best model on the tuning set is kept, by any gain.
    """
    if not isinstance(model, MartingaleBoostClassifier):  # where any gain counts anyway
        settings["min_gain"] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotMetWarning)
        return model.tune(request, X, y, **settings)


def tuned_to_half(model: Any, data: Parts, c: int, **settings: Any) -> Any:
    """A copy with half the errors on a class of the tuning set."""
    return tuned(model, halved(model, data, c), data.X_tune, data.y_tune, **settings)


def half_of_all(model: Any, X: Floats, y: Ints) -> Any:
    """A copy with half the errors of any kind."""
    return tuned(model, f"errors <= {(model.predict(X) != y).sum() // 2}", X, y)


def tuned_by_folds(X: Floats, y: Ints, seed: int) -> TunableLogistic:
    """A logistic regression with hyperparameters that were tuned on a held-out fold.

    Each of three folds tunes to half of the errors on it. Of the three settings the one that is
    best on the two folds it was not tuned on is trained on everything.
    """
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y))
    settings, scores = [], []
    for train, held_out in folds:
        model = TunableLogistic().fit(X[train], y[train])
        settings.append(clone(half_of_all(model, X[held_out], y[held_out])))
    for own, setting in enumerate(settings):
        others = [fold for at, fold in enumerate(folds) if at != own]
        fits = [clone(setting).fit(X[train], y[train]) for train, _ in others]
        each = zip(fits, others, strict=True)
        scores.append(np.mean([fit.score(X[at], y[at]) for fit, (_, at) in each]))
    best: TunableLogistic = settings[int(np.argmax(scores))]
    return best.fit(X, y)


def adaboost(
    learner: TunableLogistic, n_rounds: int, seed: int, n_samples: int
) -> AdaBoostClassifier:
    """AdaBoost over a logistic regression, penalised per sample as by itself.

    AdaBoost's weights sum to 1, those of plain training to the number of samples: without the
    shift the penalty would count that many times more.
    """
    shift = np.log(n_samples)
    d = learner.log_penalty
    less: Any = (
        {key: value - shift for key, value in d.items()} if isinstance(d, dict) else d - shift
    )
    weak = clone(learner).set_params(log_penalty=less)
    return AdaBoostClassifier(weak, n_estimators=n_rounds, random_state=seed)


def boosted_stumps(n_rounds: int, seed: int) -> AdaBoostClassifier:
    """AdaBoost over trees of one level."""
    return AdaBoostClassifier(tree(1), n_estimators=n_rounds, random_state=seed)


def tree(depth: int = 3) -> DecisionTreeClassifier:
    """A shallow tree."""
    return DecisionTreeClassifier(max_depth=depth, random_state=0)


def martingale(
    learner: Any, n_levels: int, seed: int, freeze: float | None = None
) -> MartingaleBoostClassifier:
    """Martingale boosting over a learner."""
    return MartingaleBoostClassifier(learner, n_levels, freeze=freeze, random_state=seed)


def adaptive(learner: Any, n_levels: int, seed: int) -> AdaptiveMartingaleBoostClassifier:
    """Adaptive martingale boosting over a learner."""
    return AdaptiveMartingaleBoostClassifier(learner, n_levels, random_state=seed)


def forest(n_trees: int, seed: int) -> RandomForestClassifier:
    """A random forest with its usual settings."""
    return RandomForestClassifier(n_trees, random_state=seed)


def gradient_boosting(n_trees: int, seed: int) -> GradientBoostingClassifier:
    """Gradient boosting with its usual settings."""
    return GradientBoostingClassifier(n_estimators=n_trees, random_state=seed)


def rbf_features(X: Floats, seed: int) -> Nystroem:
    """A fitted transformer to features of the kernel exp(−‖x − x′‖²/d)."""
    n_components = min(N_LANDMARKS, len(X))
    kernel = Nystroem(gamma=1 / X.shape[1], n_components=n_components, random_state=seed)
    return kernel.fit(X)
