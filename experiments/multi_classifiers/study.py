"""The study: fit members on one part, combine them on a second, and evaluate on a third."""

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
    """Results of a member or a combination on the test set."""

    name: str
    auc: float
    confusion: Confusion
    note: str = ""


def split(name: str, seed: int) -> Parts:
    """Load a data set, and make a stratified split."""
    data = datasets.load(name)
    if data.positive is None:
        raise ValueError(f"The study needs a data set with two classes; got {name!r}.")
    X, X_rest, y, y_rest = train_test_split(
        data.data, data.target, train_size=0.5, stratify=data.target, random_state=seed
    )
    X_tune, X_test, y_tune, y_test = train_test_split(
        X_rest, y_rest, train_size=0.5, stratify=y_rest, random_state=seed
    )
    return Parts(name, data.positive, X, y, X_tune, y_tune, X_test, y_test)


def train(parts: Parts, names: tuple[str, ...], seed: int) -> Iterator[tuple[str, Any]]:
    """Yield each member after it is fitted."""
    for name in names:
        member = make_pipeline(
            SimpleImputer(), StandardScaler(), catalogue.make(name, random_state=seed)
        )
        yield name, member.fit(parts.X_train, parts.y_train)


def member_rows(parts: Parts, members: list[tuple[str, Any]]) -> list[Row]:
    """Evaluate the members."""
    scores = Scores.of(members, parts.X_test)
    positive_scores = scores.toward(parts.positive)
    return [
        Row(
            name,
            CrucialPairs.of(positive_scores[:, j], parts.y_test, positive=parts.positive).auc,
            Confusion.of(parts.y_test, scores.labels[:, j], positive=parts.positive),
        )
        for j, (name, _) in enumerate(members)
    ]


def combination_row(parts: Parts, name: str, members: list[tuple[str, Any]]) -> Row:
    """Fit a combination of the members on the tuning set, and evaluate it."""
    model = COMBINATIONS[name](members).fit(parts.X_tune, parts.y_tune)
    column = model.classes_.tolist().index(parts.positive)
    positive_scores = model.predict_proba(parts.X_test)[:, column]
    return Row(
        name,
        CrucialPairs.of(positive_scores, parts.y_test, positive=parts.positive).auc,
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
    """Describe the weights of the members, if they differ."""
    weights = getattr(model, "posterior_", None)
    if weights is not None:
        largest = int(np.argmax(weights))
        return f"{weights[largest]:.0%} of the posterior is {model.member_names_[largest]}'s"
    if isinstance(model, RankMarginClassifier):
        order = np.argsort(-model.weights_)[:3]
        largest_weights = ", ".join(
            f"{model.member_names_[j]} {model.weights_[j]:.0%}" for j in order
        )
        return f"the largest weights are {largest_weights}"
    if model.weights is not None:
        low, high = model.weights_.min(), model.weights_.max()
        return f"votes have weights from {low:.2f} to {high:.2f}, the members' accuracy"
    return ""
