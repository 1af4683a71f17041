"""What the study trains: committees and their rivals at one split, stored as scores.

A training is stored before anything is measured on it. So a run can be interrupted, the trainings
that do not depend on the planned split can be made before it exists, and nobody sees a result of
the final problems before the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingClassifier

from experiments._parts import Ints
from experiments.split import data
from experiments.split.data import Given
from experiments.steer.guarantees import CLASSES
from experiments.steer.rivals import CONFIDENCE
from experiments.steer.study import Training, score_parts
from margrave._indexing import select_rows
from margrave.steer import Dialog
from margrave.steer._order_statistic import samples_needed


@dataclass(frozen=True)
class Fixed:
    """A fixed split: the fractions of the limited class and of the other one to set aside."""

    limited: float
    other: float

    def __str__(self) -> str:
        parts = [f"{part:.0%}".replace("%", " %") for part in (self.limited, self.other)]
        return parts[0] if self.limited == self.other else " / ".join(parts)


FIXED = (Fixed(0.2, 0.2), Fixed(0.35, 0.35), Fixed(0.5, 0.5), Fixed(0.65, 0.65), Fixed(0.55, 0.13))
"""The fixed splits; the last one is about what the plans set aside on average."""
MIN_TRAINING = 30
"""A request is certifiable if a split can certify it and leaves so many samples per class."""
BOOSTING = "gradient boosting alone"
_DECIMALS = 9  # as in the steering study: equal samples get equal scores in any batch


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


def draw_fixed(y: Ints, fixed: Fixed, limited: int, seed: int) -> Ints:
    """Draw the positions of the certification set of a fixed split."""
    rng, drawn = np.random.default_rng(seed), []
    for label in (0, 1):
        of_class = rng.permutation(np.flatnonzero(y == label))
        part = fixed.limited if label == limited else fixed.other
        drawn.append(of_class[: round(part * len(of_class))])
    return np.sort(np.concatenate(drawn))


def train(given: Given, at: Ints | Request, plan: Plan, seed: int) -> Training:
    """Start a dialog on the given samples, fit the rivals, and score the test set.

    Parameters
    ----------
    given : Given
        The samples.
    at : ndarray or Request
        The positions of the certification set, or the request that the dialog plans it for.
    plan : Plan
        The committee.
    seed : int
        The seed of the dialog.
    """
    request, certify = (at, None) if isinstance(at, Request) else (None, at)
    rest = np.arange(len(given.y)) if certify is None else _without(given.y, certify)
    before = perf_counter()
    dialog = Dialog.from_data(
        select_rows(given.X, rest),
        given.y[rest],
        committee=None if plan.committee is None else list(plan.committee),
        certify=None if request is None else "auto",
        guarantee=None if request is None else str(request),
        confidence=CONFIDENCE,
        positive=1,
        duplicates="independent",
        random_state=seed,
    )
    facts: dict[str, Any] = {"seconds": perf_counter() - before}
    if (split_plan := dialog.plan()) is not None:
        facts |= {"planning": split_plan.seconds, "expected": split_plan.chosen.recall}
    if certify is None:
        kept = dialog._acceptances.certification_set
        if kept is None or kept.at is None:
            raise RuntimeError("The dialog has set no samples aside.")
        certify = kept.at
        rest = _without(given.y, certify)
    parts = {
        "certify": (select_rows(given.X, certify), given.y[certify]),
        "test": (given.X_test, given.y_test),
    }
    arrays = score_parts(dialog, parts)
    encode = dialog._data.committee.encode
    boosting = HistGradientBoostingClassifier(random_state=seed)
    boosting.fit(encode(select_rows(given.X, rest)), given.y[rest])
    for part, (X, _) in parts.items():
        boosted = boosting.decision_function(encode(X))
        arrays[f"{part}/{BOOSTING}"] = np.round(boosted, _DECIMALS)
    return Training(facts, arrays)


def _without(y: Ints, certify: Ints) -> Ints:
    """Return the positions that are not in the certification set."""
    return np.setdiff1d(np.arange(len(y)), certify)


def path_of(folder: Path, title: str, seed: int, request: Request, at: Fixed | None) -> Path:
    """Return the file of a training: of a fixed split, or of the one planned for the request."""
    name = request.key
    if at is not None:
        name = f"{at.limited:g}" if at.limited == at.other else f"{request.side}-{at.limited:g}"
    return folder / title / f"{seed}-{name}.npz"


def train_job(title: str, seed: int, plan: Plan, kind: str, folder: Path) -> str:
    """Make the trainings of one split that are not stored yet, "fixed" or "planned" ones."""
    given = data.load(title).split(seed)
    requests = plan.certifiable(given.y)
    wanted: dict[Path, Ints | Request] = {}
    if kind == "fixed":
        for fixed, request in product(FIXED, requests):
            at = draw_fixed(given.y, fixed, request.limited, seed)
            wanted.setdefault(path_of(folder, title, seed, request, fixed), at)
    else:
        wanted = {path_of(folder, title, seed, one, None): one for one in requests}
    for path, certify in wanted.items():
        if not path.exists():
            train(given, certify, plan, seed).save(path)
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
