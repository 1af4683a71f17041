"""Margrave's members, against the most similar estimators of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator

from sklearn.datasets import make_classification
from sklearn.ensemble import AdaBoostClassifier

from benchmarks._timing import Comparison, compare
from margrave.members import RankBoostClassifier


def rankboost(n: int = 100_000, d: int = 20, rounds: int = 100) -> Iterator[Comparison]:
    """Fit RankBoost, and AdaBoost with stumps: both choose one threshold a round."""
    X, y = make_classification(n, d, n_informative=8, random_state=0)
    ours = RankBoostClassifier(rounds)
    theirs = AdaBoostClassifier(n_estimators=rounds, random_state=0)
    yield compare(
        f"fit {rounds} rounds of RankBoost on {n:,} x {d}",
        lambda: ours.fit(X, y),
        "AdaBoostClassifier.fit",
        lambda: theirs.fit(X, y),
        target=1 / 3,
        repeats=1,
    )
    if len(ours.rankers_[0]) != rounds or len(theirs.estimators_) != rounds:
        raise RuntimeError("The two ran different numbers of rounds.")
