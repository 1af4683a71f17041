"""The protocol: fit members on one part and combiners on a second, and compute AUCs on a third.

There are two committees. *Modest*, the committee of Marrocco et al. (2010): K Modest AdaBoosts
fitted on the training set, which differ by their initial weights; the combiners are fitted on the
tuning set. *Strong*: six common classifiers fitted on both parts; the combiners are fitted on
their out-of-fold predictions (five folds). A combiner is a function of the members' outputs.

The paper does not print the sizes of its parts, so the study runs under several splits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from experiments.rank_margin.paper import METHODS, SOURCES, Source
from margrave import catalogue, datasets
from margrave.fuse import RankMarginClassifier
from margrave.members import ModestAdaBoostClassifier, RankBoostClassifier
from margrave.pairs import CrucialPairs

SIZES = (5, 7)
# Fractions of the training, tuning and test set.
SPLITS: dict[str, Fractions] = {
    "thirds": (1 / 3, 1 / 3, 1 / 3),
    "50/25/25": (0.5, 0.25, 0.25),
    "60/20/20": (0.6, 0.2, 0.2),
    "70/15/15": (0.7, 0.15, 0.15),
}
# The splits with every combiner; the others have the three methods of the paper only.
FULL = ("thirds", "60/20/20")
SCALES = ("logit", "probability", "rank", "decision")
STRONG = ("logistic", "svm", "random-forest", "gradient-boosting", "knn", "rankboost")
QUICK_STRONG = ("logistic", "knn", "rankboost")
QUICK_NU = 0.1

Fit = Callable[[Floats, Ints], Any]
"""A function that returns a classifier fitted on samples and labels."""


@dataclass(frozen=True)
class Outputs:
    """Outputs of the members of a committee: any values, larger for the positive class."""

    tune: Floats
    y_tune: Ints
    test: Floats
    probabilities: tuple[bool, ...]


@dataclass(frozen=True)
class Run:
    """A measure on the test set of one run, by (committee, combiner)."""

    split: str
    title: str
    number: int
    values: dict[tuple[str, str], float]


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


def load(source: Source) -> tuple[Floats, Ints]:
    """Load the samples and the labels 0 and 1 of a data set."""
    data = datasets.load(source.name)
    X, y = np.asarray(data.data, dtype=np.float64), np.asarray(data.target) == source.positive
    if source is SOURCES["Breast"]:
        complete = ~np.isnan(X).any(axis=1)
        X, y = X[complete], y[complete]
    return X, y.astype(np.int64)


def available(sources: Mapping[str, Source]) -> list[str]:
    """List the data sets that can be loaded."""
    titles = []
    for title, source in sources.items():
        try:
            load(source)
        except FileNotFoundError:
            continue
        titles.append(title)
    return titles


def split(title: str, seed: int, name: str) -> Parts:
    """Split a data set into training, tuning and test set; `name` is a key of `SPLITS`."""
    return _parts.split(*load(SOURCES[title]), seed, SPLITS[name])


def modest_committees(parts: Parts, seed: int) -> dict[int, Outputs]:
    """Fit the members of the paper: trees of depth 3, ten rounds, random initial weights.

    A smaller committee has the first members of the larger one.
    """
    members = [
        ModestAdaBoostClassifier(random_state=1000 * seed + j).fit(parts.X_train, parts.y_train)
        for j in range(max(SIZES))
    ]
    tune, test = (
        np.column_stack([member.decision_function(X) for member in members])
        for X in (parts.X_tune, parts.X_test)
    )
    return {
        size: Outputs(tune[:, :size], parts.y_tune, test[:, :size], (False,) * size)
        for size in SIZES
    }


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
    """Score the test set with a rank-margin committee."""
    scores: Floats = rank_margin(outputs, **settings).combined_scores(outputs.test)
    return scores


def by_model(outputs: Outputs, fit: Fit) -> Floats:
    """Score the test set with a classifier fitted on the members' scores."""
    tune, test = on_one_scale(outputs)
    scores: Floats = fit(tune, outputs.y_tune).decision_function(test)
    return scores


def by_mean(outputs: Outputs) -> Floats:
    """Return the mean of the members' scores."""
    mean: Floats = on_one_scale(outputs)[1].mean(axis=1)
    return mean


def by_best(outputs: Outputs) -> Floats:
    """Return the scores of the member with the best AUC on the tuning data."""
    aucs = [auc(column, outputs.y_tune) for column in outputs.tune.T]
    return outputs.test[:, int(np.argmax(aucs))]


def fit_rankboost(X: Floats, y: Ints) -> RankBoostClassifier:
    """Fit RankBoost with 100 rounds, as the paper does."""
    return RankBoostClassifier().fit(X, y)


def fit_svm(X: Floats, y: Ints, C: float | None = None) -> SVC:
    """Fit a linear SVM; by default with the default C of SVM-light, which the paper uses."""
    if C is None:
        C = 1 / np.linalg.norm(X, axis=1).mean() ** 2
    return SVC(kernel="linear", C=C).fit(X, y)


def fit_logistic(X: Floats, y: Ints) -> LogisticRegression:
    """Fit the usual second layer of stacking."""
    return LogisticRegression(max_iter=1000).fit(X, y)


def combiners(nu: float | str = "cv") -> dict[str, Callable[[Outputs], Floats]]:
    """Return all combiners by name; a quick run sets ν instead of choosing it."""
    return {
        "RankMargin": partial(by_rank_margin, nu=0.0, scale="probability", tol=1e-6),
        "RankBoost": partial(by_model, fit=fit_rankboost),
        "SVM": partial(by_model, fit=fit_svm),
        "best member": by_best,
        "mean": by_mean,
        "stacking": partial(by_model, fit=fit_logistic),
        **{f"ν by cv, {scale}": partial(by_rank_margin, scale=scale, nu=nu) for scale in SCALES},
    }


COMBINERS = combiners()
# The default C of scikit-learn, to see what depends on C.
OTHER_SVM = "SVM, C = 1"
FEATURES: dict[str, Fit] = {"RankBoost, features": fit_rankboost, "SVM, features": fit_svm}


def auc(scores: Floats, y: Ints) -> float:
    """Compute the area under the ROC curve."""
    return CrucialPairs.of(scores, y).auc


def one_run(
    name: str, title: str, run: int, seed: int, strong: tuple[str, ...], nu: float | str = "cv"
) -> Run:
    """Compute the AUCs on the test set of one split of a data set."""
    parts = split(title, seed + run, name)
    modest = modest_committees(parts, seed + run)
    committees = {f"{size} Modest": outputs for size, outputs in modest.items()}
    every = combiners(nu) | {OTHER_SVM: partial(by_model, fit=partial(fit_svm, C=1.0))}
    columns = [(committee, method) for committee in committees for method in (*METHODS, OTHER_SVM)]
    if name in FULL:
        committees["strong"] = strong_committee(parts, strong, seed + run)
        largest = f"{max(SIZES)} Modest"
        columns += [(largest, combiner) for combiner in COMBINERS if combiner not in METHODS]
        columns += [("strong", combiner) for combiner in COMBINERS]
    aucs = {
        (committee, combiner): auc(every[combiner](committees[committee]), parts.y_test)
        for committee, combiner in columns
    }
    for model, fit in FEATURES.items():
        scores = fit(*parts.both).decision_function(parts.X_test)
        aucs["features", model] = auc(scores, parts.y_test)
    return Run(name, title, run, aucs)


def all_runs(
    titles: list[str],
    n_runs: int,
    seed: int,
    strong: tuple[str, ...],
    n_jobs: int,
    nu: float | str = "cv",
    splits: Iterable[str] = tuple(SPLITS),
) -> Iterator[Run]:
    """Yield every run of every data set and split, in the order in which they end."""
    jobs = (
        delayed(one_run)(name, title, run, seed, strong, nu)
        for name in splits
        for title in titles
        for run in range(n_runs)
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
