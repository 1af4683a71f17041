"""The study itself: train members on one part, combine on a second, judge all on a third."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrave import Confusion, Scores, catalogue, datasets
from margrave.fuse import BayesOptimalClassifier, RankMarginClassifier, VoteClassifier
from margrave.pairs import CrucialPairs

MEMBERS = (
    "knn",
    "tree",
    "logistic",
    "smoothed-bagging",
    "random-subspace",
    "random-forest",
    "adaboost",
    "gradient-boosting",
)
QUICK_MEMBERS = ("knn", "tree", "logistic")
COMBINATIONS: dict[str, Callable[[list[Any]], Any]] = {
    "plurality": lambda members: VoteClassifier(members, prefit=True),
    "majority": lambda members: VoteClassifier(members, "majority", prefit=True),
    "threshold 0.75": lambda members: VoteClassifier(members, threshold=0.75, prefit=True),
    "unanimity": lambda members: VoteClassifier(members, "unanimity", prefit=True),
    "weighted": lambda members: VoteClassifier(members, weights="accuracy", prefit=True),
    "Bayes optimal": lambda members: BayesOptimalClassifier(members, prefit=True),
    "rank margin": lambda members: RankMarginClassifier(members, prefit=True),
}


@dataclass(frozen=True)
class Parts:
    """A two-class data set in three parts: training (50 %), tuning (25 %) and test (25 %)."""

    name: str
    positive: Any
    X_train: NDArray[np.float64]
    y_train: NDArray[Any]
    X_tune: NDArray[np.float64]
    y_tune: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]


@dataclass(frozen=True)
class Row:
    """What one member or combination does on the test part."""

    name: str
    auc: float
    confusion: Confusion
    note: str = ""


def split(name: str, seed: int) -> Parts:
    """Load a data set and part it, the classes' shares kept."""
    data = datasets.load(name)
    if data.positive is None:
        raise ValueError(f"The study needs two classes; {name!r} has others.")
    X, X_rest, y, y_rest = train_test_split(
        data.data, data.target, train_size=0.5, stratify=data.target, random_state=seed
    )
    X_tune, X_test, y_tune, y_test = train_test_split(
        X_rest, y_rest, train_size=0.5, stratify=y_rest, random_state=seed
    )
    return Parts(name, data.positive, X, y, X_tune, y_tune, X_test, y_test)


def train(parts: Parts, names: tuple[str, ...], seed: int) -> Iterator[tuple[str, Any]]:
    """Each member once it is trained."""
    for name in names:
        member = make_pipeline(
            SimpleImputer(), StandardScaler(), catalogue.make(name, random_state=seed)
        )
        yield name, member.fit(parts.X_train, parts.y_train)


def member_rows(parts: Parts, members: list[tuple[str, Any]]) -> list[Row]:
    """The members by themselves."""
    scores = Scores.of(members, parts.X_test)
    leaning = scores.toward(parts.positive)
    return [
        Row(
            name,
            CrucialPairs.of(leaning[:, j], parts.y_test, positive=parts.positive).auc,
            Confusion.of(parts.y_test, scores.labels[:, j], positive=parts.positive),
        )
        for j, (name, _) in enumerate(members)
    ]


def combination_row(parts: Parts, name: str, members: list[tuple[str, Any]]) -> Row:
    """One combination of the trained members, set on the tuning part."""
    model = COMBINATIONS[name](members).fit(parts.X_tune, parts.y_tune)
    column = model.classes_.tolist().index(parts.positive)
    leaning = model.predict_proba(parts.X_test)[:, column]
    return Row(
        name,
        CrucialPairs.of(leaning, parts.y_test, positive=parts.positive).auc,
        Confusion.of(
            parts.y_test,
            model.predict(parts.X_test),
            classes=model.classes_.tolist(),
            positive=parts.positive,
            reject_label=getattr(model, "reject_label_", None),
        ),
        _note(model),
    )


def _note(model: Any) -> str:
    """What a combination made of its members, where they do not count alike."""
    weights = getattr(model, "posterior_", None)
    if weights is not None:
        largest = int(np.argmax(weights))
        return f"{weights[largest]:.0%} of the posterior is {model.member_names_[largest]}'s"
    if isinstance(model, RankMarginClassifier):
        order = np.argsort(-model.weights_)[:3]
        heard = ", ".join(f"{model.member_names_[j]} {model.weights_[j]:.0%}" for j in order)
        return f"heard most are {heard}"
    if model.weights is not None:
        low, high = model.weights_.min(), model.weights_.max()
        return f"votes count from {low:.2f} to {high:.2f}, the members' accuracy"
    return ""
