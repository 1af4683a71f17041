"""What the study trains: committees and their rivals at one split, stored as scores.

A training is stored before anything is measured on it. So a run can be interrupted, the trainings
that do not depend on the planned split can be made before it exists, and nobody sees a result of
the final problems before the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from experiments._parts import Ints
from experiments.split import data
from experiments.split.data import Given
from experiments.steer.guarantees import CLASSES, MARGRAVE, count_errors
from experiments.steer.rivals import (
    CONFIDENCE,
    Predicted,
    RawScorer,
    fit_rivals,
)
from margrave._indexing import select_rows
from margrave.fuse import fit_log_odds
from margrave.fuse._rank_margin import CombinationSettings, TuningSet, fit_combination
from margrave.steer import Dialog, GuaranteeError
from margrave.steer._order_statistic import samples_needed

FRACTIONS = (0.2, 0.35, 0.5)
"""The fixed splits: fractions of the given samples in the certification set."""
MIN_TRAINING = 30
"""A request is certifiable if a split can certify it and leaves so many samples per class."""
BOOSTING, OLD_SCORE = "gradient boosting alone", "score before"
_DECIMALS = 9  # as in the steering study: equal samples get equal scores in any batch
_OLD_DEFAULT, _OLD_LARGEST, _OLD_FACTOR = 0.2, 0.4, 3


@dataclass(frozen=True)
class Request:
    """A limit on the error rate of one class; `side` is "fp" or "fn"."""

    side: str
    percent: int

    def __str__(self) -> str:
        return f"{self.side} <= {self.percent}%"

    @property
    def key(self) -> str:
        """Name of the training whose split is planned for this request."""
        return f"{self.side}{self.percent}"

    @property
    def rate(self) -> float:
        """The limit as a fraction."""
        return self.percent / 100

    @property
    def limited(self) -> int:
        """The class whose errors are limited."""
        return CLASSES[self.side]

    @property
    def needed(self) -> int:
        """The number of certification samples of this class without errors that prove it."""
        return samples_needed(self.rate, 1 - CONFIDENCE) or 0

    def count(self, y: Ints) -> int:
        """Count the samples of the limited class."""
        return int((y == self.limited).sum())


@dataclass(frozen=True)
class Plan:
    """How much of the study to run.

    Attributes
    ----------
    titles : tuple of str
        Problems.
    n_splits : int
        Splits of each new problem.
    n_steering : int
        Splits of each data set of the steering study.
    percents : tuple of int
        Rates to guarantee.
    committee : tuple of str, optional
        Names of members; the default committee if None.
    """

    titles: tuple[str, ...]
    n_splits: int = 5
    n_steering: int = 2
    percents: tuple[int, ...] = (1, 2, 5, 10)
    committee: tuple[str, ...] | None = None

    def splits_of(self, title: str) -> range:
        """Return the numbers of the splits of a problem."""
        return range(self.n_steering if data.is_steering(title) else self.n_splits)

    def certifiable(self, y: Ints) -> list[Request]:
        """List the requests that some split of the given samples can certify."""
        requests = [Request(side, percent) for side in CLASSES for percent in self.percents]
        return [one for one in requests if one.count(y) >= one.needed + MIN_TRAINING]


QUICK = Plan(
    ("sonar", "ripley_train"),
    percents=(5, 10),
    committee=("logistic", "svm", "qda"),
)


def old_fraction(request: Request, y: Ints) -> float:
    """Compute the split before: a fifth, or three times the samples needed, up to two fifths."""
    wanted = _OLD_FACTOR * request.needed / request.count(y)
    return min(max(_OLD_DEFAULT, wanted), _OLD_LARGEST)


def fixed_fractions(requests: list[Request], y: Ints) -> list[float]:
    """List the fractions to train with: the fixed ones, and the old ones that can certify."""
    old = {request: old_fraction(request, y) for request in requests}
    able = {f for request, f in old.items() if f * request.count(y) + 1 >= request.needed}
    return sorted({*FRACTIONS, *able}) if requests else []


@dataclass(frozen=True, eq=False)
class Training:
    """A trained committee and its rivals.

    Attributes
    ----------
    facts : dict
        The seconds of ``from_data``; for a planned training also those of planning, the recall that
        is expected, and the test errors of the accepted model (None if refused).
    arrays : dict of ndarray
        For each part "tune", "certify" and "test" the labels ("tune/y") and the scores of the
        rules; the tuning set has only Margrave's.
    """

    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    def save(self, path: Path) -> None:
        """Write to a file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished.npz")
        np.savez_compressed(unfinished, facts=json.dumps(self.facts), **self.arrays)  # type: ignore[arg-type]
        unfinished.replace(path)

    @classmethod
    def load(cls, path: Path) -> Training:
        """Read from a file."""
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in stored.files if name != "facts"}
            return cls(json.loads(str(stored["facts"])), arrays)


def train(
    given: Given, certify: Any, plan: Plan, seed: int, request: Request | None = None
) -> Training:
    """Start a dialog on the given samples, fit the rivals, and score the test set."""
    before = perf_counter()
    dialog = Dialog.from_data(
        given.X,
        given.y,
        committee=None if plan.committee is None else list(plan.committee),
        certify=certify,
        guarantee=None if request is None else str(request),
        confidence=CONFIDENCE,
        positive=1,
        duplicates="independent",
        random_state=seed,
    )
    facts: dict[str, Any] = {"seconds": perf_counter() - before}
    tuning, start = dialog._data, dialog.history[0].candidate
    kept = dialog._acceptances.certification_set
    if kept is None or kept.at is None:
        raise RuntimeError("A certification set was asked for.")
    rest, encode = np.setdiff1d(np.arange(len(given.y)), kept.at), tuning.committee.encode
    boosting = HistGradientBoostingClassifier(random_state=seed)
    boosting.fit(encode(select_rows(given.X, rest)), given.y[rest])
    rivals = fit_rivals(dialog) | {MARGRAVE: start.scorer.score_raw}
    if request is None:
        rivals[OLD_SCORE] = fit_old_score(dialog)
    arrays = {"tune/y": tuning.codes, f"tune/{MARGRAVE}": start.scores}
    parts = {
        "certify": (select_rows(given.X, kept.at), given.y[kept.at]),
        "test": (given.X_test, given.y_test),
    }
    for part, (X, y) in parts.items():
        predicted = Predicted.by_members_of(dialog, X, y)
        arrays |= {f"{part}/{rule}": score(predicted.raw) for rule, score in rivals.items()}
        boosted = boosting.decision_function(encode(X))
        arrays |= {f"{part}/y": y, f"{part}/{BOOSTING}": np.round(boosted, _DECIMALS)}
    if request is not None and (split_plan := dialog.plan()) is not None:
        facts |= {"planning": split_plan.seconds, "expected": split_plan.chosen.recall}
        facts["accepted"] = _accept(dialog, request, given)
    return Training(facts, arrays)


def fit_old_score(dialog: Dialog) -> RawScorer:
    """Fit the score before: the mean of a ν-rank-margin combination and of log-odds stacking."""
    tuning, proba = dialog._data, dialog._data.committee.gives_probabilities
    samples = TuningSet(tuning.raw, proba, tuning.codes == 1, np.ones(len(tuning.codes)))
    ranking = fit_combination(samples, CombinationSettings("logit", 0.1, 1.0, "auto", True))
    stacking = fit_log_odds(tuning.raw, proba, tuning.codes)
    return lambda raw: np.round((ranking.decision(raw) + stacking(raw)) / 2, _DECIMALS)


def _accept(dialog: Dialog, request: Request, given: Given) -> tuple[int, int] | None:
    """Accept the model of a request; return its test errors, None if it is refused."""
    dialog.prefer(str(request))
    try:
        model = dialog.accept(confidence=CONFIDENCE)
    except GuaranteeError:
        return None
    outcome = count_errors(model.predict(given.X_test) == 1, given.y_test, request.limited)
    return outcome.wrong, outcome.missed


def path_of(folder: Path, title: str, seed: int, name: object) -> Path:
    """Return the file of a training; `name` is a fraction, or the key of a request."""
    return folder / title / f"{seed}-{name}.npz"


def train_job(title: str, seed: int, plan: Plan, kind: str, folder: Path) -> str:
    """Make the trainings of one split that are not stored yet, "fixed" or "planned" ones."""
    given = data.load(title).split(seed)
    requests = plan.certifiable(given.y)
    wanted: dict[object, tuple[Any, Request | None]] = {}
    if kind == "fixed":
        wanted = {f: (f, None) for f in fixed_fractions(requests, given.y)}
    else:
        wanted = {request.key: ("auto", request) for request in requests}
    for name, (certify, request) in wanted.items():
        path = path_of(folder, title, seed, name)
        if not path.exists():
            train(given, certify, plan, seed, request).save(path)
    return f"{title}, {seed}, {kind}"


def train_all(plan: Plan, seed: int, kind: str, folder: Path, n_jobs: int) -> Iterator[str]:
    """Yield the names of the splits in the order in which their trainings end."""
    smallest_first = sorted(plan.titles, key=lambda title: data.load(title).n_rows)
    jobs = [
        delayed(train_job)(title, seed + split, plan, kind, folder)
        for title in smallest_first
        for split in plan.splits_of(title)
    ]
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
