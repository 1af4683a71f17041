"""The protocol: fit members on one part and combiners on a second, and compute AUCs on a third.

There are two committees. *Modest*, the committee of Marrocco et al. (2010): K Modest AdaBoosts
fitted on the training part, which differ by their initial weights; the combiners are fitted on the
tuning part. *Strong*: six common classifiers fitted on both parts; the combiners are fitted on
their out-of-fold predictions (five folds). A combiner is a function of the members' outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from experiments import _parts
from experiments._parts import Floats, Fractions, Ints, Parts
from experiments.rank_margin.paper import SOURCES
from margrave import catalogue, datasets
from margrave.fuse import RankMarginClassifier
from margrave.members import ModestAdaBoostClassifier, RankBoostClassifier
from margrave.pairs import CrucialPairs

SIZES = (5, 7)
# Fractions of the training, tuning and test part. The paper does not print its own.
THIRDS = (1 / 3, 1 / 3, 1 / 3)
OTHER_FRACTIONS = ((0.5, 0.25, 0.25), (0.6, 0.2, 0.2), (0.7, 0.15, 0.15))
SCALES = ("logit", "probability", "rank", "decision")
STRONG = ("logistic", "svm", "random-forest", "gradient-boosting", "knn", "rankboost")
QUICK_STRONG = ("logistic", "knn", "rankboost")
QUICK_NU = 0.1


@dataclass(frozen=True)
class Outputs:
    """Outputs of the members of a committee: any values, larger for the positive class."""

    tune: Floats
    y_tune: Ints
    test: Floats
    probabilities: tuple[bool, ...]


class Column(ClassifierMixin, BaseEstimator):
    """A fitted member whose outputs are a column of X: decision values, or probabilities."""

    def __init__(self, column: int) -> None:
        self.column = column
        self.classes_ = np.array([0, 1])

    def predict(self, X: Floats) -> Ints:
        """Predict labels, which the combiners here do not need."""
        return (X[:, self.column] > 0).astype(np.int64)


class DecisionColumn(Column):
    """A member with decision values."""

    def decision_function(self, X: Floats) -> Floats:
        """Return the column."""
        return X[:, self.column]


class ProbabilityColumn(Column):
    """A member with probabilities."""

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probabilities of both classes."""
        return np.column_stack([1 - X[:, self.column], X[:, self.column]])


def load(title: str) -> tuple[Floats, Ints]:
    """Load the samples and the labels 0 and 1 of a data set of the paper."""
    source = SOURCES[title]
    data = datasets.load(source.name)
    X, y = np.asarray(data.data, dtype=np.float64), np.asarray(data.target) == source.positive
    if title == "Breast":
        complete = ~np.isnan(X).any(axis=1)
        X, y = X[complete], y[complete]
    return X, y.astype(np.int64)


def available() -> list[str]:
    """List the data sets of the paper that can be loaded."""
    titles = []
    for title in SOURCES:
        try:
            load(title)
        except FileNotFoundError:
            continue
        titles.append(title)
    return titles


def split(X: Floats, y: Ints, seed: int, fractions: Fractions = THIRDS) -> Parts:
    """Split into training, tuning and test part; by default into thirds."""
    return _parts.split(X, y, seed, fractions)


def modest_committee(parts: Parts, n_members: int, seed: int) -> Outputs:
    """Fit the members of the paper: trees of depth 3, ten rounds, random initial weights."""
    members = [
        ModestAdaBoostClassifier(random_state=1000 * seed + j).fit(parts.X_train, parts.y_train)
        for j in range(n_members)
    ]
    tune, test = (
        np.column_stack([member.decision_function(X) for member in members])
        for X in (parts.X_tune, parts.X_test)
    )
    return Outputs(tune, parts.y_tune, test, (False,) * n_members)


def strong_committee(parts: Parts, names: tuple[str, ...], seed: int) -> Outputs:
    """Fit common classifiers with default settings, with out-of-fold predictions."""
    X, y = parts.both
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    tune, test, probabilities = [], [], []
    for name in names:
        member = catalogue.make(name, random_state=seed)
        has_proba = hasattr(member, "predict_proba")
        method = "predict_proba" if has_proba else "decision_function"
        held_out = cross_val_predict(member, X, y, cv=folds, method=method)
        new = getattr(member.fit(X, y), method)(parts.X_test)
        tune.append(held_out[:, 1] if has_proba else held_out)
        test.append(new[:, 1] if has_proba else new)
        probabilities.append(has_proba)
    return Outputs(np.column_stack(tune), y, np.column_stack(test), tuple(probabilities))


def rank_margin(outputs: Outputs, **settings: Any) -> RankMarginClassifier:
    """Fit a rank-margin committee on the outputs of its members."""
    members = [
        (f"member{j}", ProbabilityColumn(j) if has_proba else DecisionColumn(j))
        for j, has_proba in enumerate(outputs.probabilities)
    ]
    committee = RankMarginClassifier(members, prefit=True, **settings)
    return committee.fit(outputs.tune, outputs.y_tune)


def on_one_scale(outputs: Outputs) -> tuple[Floats, Floats]:
    """Scale to [-1, 1]: 2p − 1, and decision values divided by the largest on the tuning data."""
    size = np.where(outputs.probabilities, 1.0, np.abs(outputs.tune).max(axis=0))
    shift = np.where(outputs.probabilities, 1.0, 0.0)
    tune, test = ((1 + shift) * values / size - shift for values in (outputs.tune, outputs.test))
    return tune, test


def by_rank_margin(outputs: Outputs, **settings: Any) -> Floats:
    """Score the test part with a rank-margin committee."""
    scores: Floats = rank_margin(outputs, **settings).combined_scores(outputs.test)
    return scores


def by_model(outputs: Outputs, model: Any) -> Floats:
    """Score the test part with a classifier fitted on the members' scores."""
    tune, test = on_one_scale(outputs)
    scores: Floats = model.fit(tune, outputs.y_tune).decision_function(test)
    return scores


def by_mean(outputs: Outputs) -> Floats:
    """Return the mean of the members' scores."""
    mean: Floats = on_one_scale(outputs)[1].mean(axis=1)
    return mean


def by_best(outputs: Outputs) -> Floats:
    """Return the scores of the member with the best AUC on the tuning data."""
    aucs = [auc(column, outputs.y_tune) for column in outputs.tune.T]
    return outputs.test[:, int(np.argmax(aucs))]


def stacking() -> LogisticRegression:
    """Make the usual second layer."""
    return LogisticRegression(max_iter=1000)


def combiners(nu: float | str = "cv") -> dict[str, Callable[[Outputs], Floats]]:
    """Return all combiners by name; a quick run sets ν instead of choosing it."""
    return {
        "RankMargin": partial(by_rank_margin, nu=0.0, scale="probability", tol=1e-6),
        "RankBoost": lambda outputs: by_model(outputs, RankBoostClassifier()),
        "SVM": lambda outputs: by_model(outputs, SVC(kernel="linear")),
        "best member": by_best,
        "mean": by_mean,
        "stacking": lambda outputs: by_model(outputs, stacking()),
        **{f"ν by cv, {scale}": partial(by_rank_margin, scale=scale, nu=nu) for scale in SCALES},
    }


COMBINERS = combiners()
FEATURES: dict[str, Callable[[], Any]] = {
    "RankBoost, features": RankBoostClassifier,
    "SVM, features": lambda: SVC(kernel="linear"),
}


def auc(scores: Floats, y: Ints) -> float:
    """Compute the area under the ROC curve."""
    return CrucialPairs.of(scores, y).auc


def one_run(
    title: str, run: int, seed: int, strong: tuple[str, ...], nu: float | str = "cv"
) -> tuple[str, int, dict[tuple[str, str], float]]:
    """Compute the AUC on the test part by (committee, combiner)."""
    X, y = load(title)
    parts = split(X, y, seed + run)
    committees = {f"{size} Modest": modest_committee(parts, size, seed + run) for size in SIZES} | {
        "strong": strong_committee(parts, strong, seed + run)
    }
    aucs = {
        (committee, name): auc(combiner(outputs), parts.y_test)
        for committee, outputs in committees.items()
        for name, combiner in combiners(nu).items()
    }
    for name, make in FEATURES.items():
        model = make().fit(*parts.both)
        aucs["features", name] = auc(model.decision_function(parts.X_test), parts.y_test)
    for fractions in OTHER_FRACTIONS:
        parts = split(X, y, seed + run, fractions)
        scores = COMBINERS["RankMargin"](modest_committee(parts, SIZES[-1], seed + run))
        aucs[format_fractions(fractions), "RankMargin"] = auc(scores, parts.y_test)
    return title, run, aucs


def format_fractions(fractions: Fractions) -> str:
    """Format the fractions of the parts for a heading."""
    return "/".join(f"{fraction:.0%}".removesuffix("%") for fraction in fractions)


def all_runs(
    titles: list[str],
    n_runs: int,
    seed: int,
    strong: tuple[str, ...],
    n_jobs: int,
    nu: float | str = "cv",
) -> Iterator[tuple[str, int, dict[tuple[str, str], float]]]:
    """Yield every run of every data set, in the order in which they end."""
    jobs = (
        delayed(one_run)(title, run, seed, strong, nu) for title in titles for run in range(n_runs)
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
