"""The protocol: members on one part, combiners on a second, AUC on a third, over several runs.

Two committees. *Modest*: the document's, K Modest AdaBoosts on the training part, which differ by
their first weights; combiners learn on the tuning part. *Strong*: six common classifiers on both
parts together; combiners learn on their answers for samples they were not trained on (five folds).
Both give plain score arrays, and a combiner is a function of these.
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
from experiments._parts import Floats, Ints, Parts, Shares
from experiments.rank_margin.document import SOURCES
from margrave import catalogue, datasets
from margrave.fuse import RankMarginClassifier
from margrave.members import ModestAdaBoostClassifier, RankBoostClassifier
from margrave.pairs import CrucialPairs

SIZES = (5, 7)
# Shares of training, tuning and test part. The document does not print its own.
THIRDS = (1 / 3, 1 / 3, 1 / 3)
OTHER_SHARES = ((0.5, 0.25, 0.25), (0.6, 0.2, 0.2), (0.7, 0.15, 0.15))
SCALES = ("logit", "probability", "rank", "decision")
STRONG = ("logistic", "svm", "random-forest", "gradient-boosting", "knn", "rankboost")
QUICK_STRONG = ("logistic", "knn", "rankboost")
QUICK_NU = 0.1


@dataclass(frozen=True)
class Spoken:
    """What a committee's members say: values of any size, larger for the positive class."""

    tune: Floats
    y_tune: Ints
    test: Floats
    probabilities: tuple[bool, ...]


class Column(ClassifierMixin, BaseEstimator):
    """A trained member whose answers stand in a column of X: decision values, or probabilities."""

    def __init__(self, column: int) -> None:
        self.column = column
        self.classes_ = np.array([0, 1])

    def predict(self, X: Floats) -> Ints:
        """Labels, which the combiners here do not ask for."""
        return (X[:, self.column] > 0).astype(np.int64)


class DecisionColumn(Column):
    """A member that gives decision values."""

    def decision_function(self, X: Floats) -> Floats:
        """Read them."""
        return X[:, self.column]


class ProbabilityColumn(Column):
    """A member that gives probabilities."""

    def predict_proba(self, X: Floats) -> Floats:
        """Read that of the positive class."""
        return np.column_stack([1 - X[:, self.column], X[:, self.column]])


def load(title: str) -> tuple[Floats, Ints]:
    """Samples and labels 0 and 1 of one of the document's data sets."""
    source = SOURCES[title]
    data = datasets.load(source.name)
    X, y = np.asarray(data.data, dtype=np.float64), np.asarray(data.target) == source.positive
    if title == "Breast":
        complete = ~np.isnan(X).any(axis=1)
        X, y = X[complete], y[complete]
    return X, y.astype(np.int64)


def available() -> list[str]:
    """The document's data sets that are here."""
    found = []
    for title in SOURCES:
        try:
            load(title)
        except FileNotFoundError:
            continue
        found.append(title)
    return found


def split(X: Floats, y: Ints, seed: int, shares: Shares = THIRDS) -> Parts:
    """Training, tuning and test part; thirds unless said."""
    return _parts.split(X, y, seed, shares)


def modest_committee(parts: Parts, n_members: int, seed: int) -> Spoken:
    """The document's members: CART of depth 3, ten rounds, random first weights."""
    members = [
        ModestAdaBoostClassifier(random_state=1000 * seed + j).fit(parts.X_train, parts.y_train)
        for j in range(n_members)
    ]
    tune, test = (
        np.column_stack([member.decision_function(X) for member in members])
        for X in (parts.X_tune, parts.X_test)
    )
    return Spoken(tune, parts.y_tune, test, (False,) * n_members)


def strong_committee(parts: Parts, names: tuple[str, ...], seed: int) -> Spoken:
    """Common classifiers with their usual settings, by out-of-fold answers."""
    X, y = parts.both
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    tune, test, probabilities = [], [], []
    for name in names:
        member = catalogue.make(name, random_state=seed)
        gives = hasattr(member, "predict_proba")
        method = "predict_proba" if gives else "decision_function"
        held_out = cross_val_predict(member, X, y, cv=folds, method=method)
        new = getattr(member.fit(X, y), method)(parts.X_test)
        tune.append(held_out[:, 1] if gives else held_out)
        test.append(new[:, 1] if gives else new)
        probabilities.append(gives)
    return Spoken(np.column_stack(tune), y, np.column_stack(test), tuple(probabilities))


def rank_margin(spoken: Spoken, **settings: Any) -> RankMarginClassifier:
    """A rank-margin committee of members that have spoken already."""
    members = [
        (f"member{j}", ProbabilityColumn(j) if gives else DecisionColumn(j))
        for j, gives in enumerate(spoken.probabilities)
    ]
    committee = RankMarginClassifier(members, prefit=True, **settings)
    return committee.fit(spoken.tune, spoken.y_tune)


def on_one_scale(spoken: Spoken) -> tuple[Floats, Floats]:
    """2p − 1, and decision values divided by the largest size on the tuning data."""
    size = np.where(spoken.probabilities, 1.0, np.abs(spoken.tune).max(axis=0))
    shift = np.where(spoken.probabilities, 1.0, 0.0)
    tune, test = ((1 + shift) * values / size - shift for values in (spoken.tune, spoken.test))
    return tune, test


def by_rank_margin(spoken: Spoken, **settings: Any) -> Floats:
    """Test scores of a rank-margin committee."""
    scores: Floats = rank_margin(spoken, **settings).combined_scores(spoken.test)
    return scores


def by_model(spoken: Spoken, model: Any) -> Floats:
    """Test scores of a classifier trained on the members' scores."""
    tune, test = on_one_scale(spoken)
    scores: Floats = model.fit(tune, spoken.y_tune).decision_function(test)
    return scores


def by_mean(spoken: Spoken) -> Floats:
    """The plain mean of the members' scores."""
    mean: Floats = on_one_scale(spoken)[1].mean(axis=1)
    return mean


def by_best(spoken: Spoken) -> Floats:
    """The member with the best AUC on the tuning data."""
    aucs = [auc(column, spoken.y_tune) for column in spoken.tune.T]
    return spoken.test[:, int(np.argmax(aucs))]


def stacking() -> LogisticRegression:
    """The usual second layer."""
    return LogisticRegression(max_iter=1000)


def combiners(nu: float | str = "cv") -> dict[str, Callable[[Spoken], Floats]]:
    """All combiners by name; a quick run takes one ν where the study finds it."""
    return {
        "RankMargin": partial(by_rank_margin, nu=0.0, scale="probability", tol=1e-6),
        "RankBoost": lambda spoken: by_model(spoken, RankBoostClassifier()),
        "SVM": lambda spoken: by_model(spoken, SVC(kernel="linear")),
        "best member": by_best,
        "mean": by_mean,
        "stacking": lambda spoken: by_model(spoken, stacking()),
        **{f"ν by cv, {scale}": partial(by_rank_margin, scale=scale, nu=nu) for scale in SCALES},
    }


COMBINERS = combiners()
FEATURES: dict[str, Callable[[], Any]] = {
    "RankBoost, features": RankBoostClassifier,
    "SVM, features": lambda: SVC(kernel="linear"),
}


def auc(scores: Floats, y: Ints) -> float:
    """Area under the ROC curve."""
    return CrucialPairs.of(scores, y).auc


def one_run(
    title: str, run: int, seed: int, strong: tuple[str, ...], nu: float | str = "cv"
) -> tuple[str, int, dict[tuple[str, str], float]]:
    """AUC on the test part of everything, by (committee, combiner)."""
    X, y = load(title)
    parts = split(X, y, seed + run)
    committees = {f"{size} Modest": modest_committee(parts, size, seed + run) for size in SIZES} | {
        "strong": strong_committee(parts, strong, seed + run)
    }
    found = {
        (committee, name): auc(combiner(spoken), parts.y_test)
        for committee, spoken in committees.items()
        for name, combiner in combiners(nu).items()
    }
    for name, make in FEATURES.items():
        model = make().fit(*parts.both)
        found["features", name] = auc(model.decision_function(parts.X_test), parts.y_test)
    for shares in OTHER_SHARES:
        parts = split(X, y, seed + run, shares)
        scores = COMBINERS["RankMargin"](modest_committee(parts, SIZES[-1], seed + run))
        found[parted(shares), "RankMargin"] = auc(scores, parts.y_test)
    return title, run, found


def parted(shares: Shares) -> str:
    """Shares of the parts, for a heading."""
    return "/".join(f"{share:.0%}".removesuffix("%") for share in shares)


def all_runs(
    titles: list[str],
    n_runs: int,
    seed: int,
    strong: tuple[str, ...],
    n_jobs: int,
    nu: float | str = "cv",
) -> Iterator[tuple[str, int, dict[tuple[str, str], float]]]:
    """Every run of every data set, as they are done."""
    jobs = (
        delayed(one_run)(title, run, seed, strong, nu) for title in titles for run in range(n_runs)
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
