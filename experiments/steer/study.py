"""What the study trains: the default committee and its rivals on each split, stored as scores.

A training is stored before anything is measured on it. So a run can be interrupted, and the page is
written from what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from experiments._parts import Ints
from experiments.steer import data
from experiments.steer.rivals import MARGRAVE, find_best_member, fit_rivals
from margrave.steer import Dialog


@dataclass(frozen=True)
class Plan:
    """How much of the study to run.

    Attributes
    ----------
    titles : tuple of str
        Data sets.
    n_splits : int
        Splits of each.
    percents : tuple of int
        Rates to guarantee.
    committee : tuple of str, optional
        Names of members; the default committee if None.
    """

    titles: tuple[str, ...]
    n_splits: int = 10
    percents: tuple[int, ...] = (1, 2, 5, 10)
    committee: tuple[str, ...] | None = None


QUICK = Plan(
    ("pima", "breast_wisconsin"),
    n_splits=2,
    percents=(5, 10),
    committee=("logistic", "svm", "qda"),
)


def full_plan() -> Plan:
    """Plan all available data sets that are large enough."""
    return Plan(tuple(data.available_titles()))


@dataclass(frozen=True, eq=False)
class Training:
    """A trained committee and its rivals.

    Attributes
    ----------
    facts : dict
        The seconds of ``from_data``, and what else is known about the training.
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


def score_parts(dialog: Dialog, parts: Mapping[str, tuple[Any, Ints]]) -> dict[str, NDArray[Any]]:
    """Score the samples of each part by the start committee and by the rivals."""
    tuning, start = dialog._data, dialog.history[0].candidate
    rules = fit_rivals(dialog) | {MARGRAVE: start.scorer.score_raw}
    arrays: dict[str, NDArray[Any]] = {"tune/y": tuning.codes, f"tune/{MARGRAVE}": start.scores}
    for part, (X, y) in parts.items():
        raw = tuning.committee.raw(tuning.committee.encode(X))
        arrays |= {f"{part}/y": y} | {f"{part}/{rule}": score(raw) for rule, score in rules.items()}
    return arrays


def train(title: str, seed: int, plan: Plan) -> Training:
    """Start a dialog on one split, fit the rivals, and score the samples that are left."""
    parts, before = data.load_split(title, seed), perf_counter()
    dialog = Dialog.from_data(
        parts.X_train,
        parts.y_train,
        committee=None if plan.committee is None else list(plan.committee),
        certify=None,
        positive=1,
        duplicates="independent",  # copies are left out before, or equal by chance
        random_state=seed,
    )
    seconds, best = perf_counter() - before, dialog.members[find_best_member(dialog)]
    left = {
        "certify": (parts.X_certify, parts.y_certify),
        "test": (parts.X_test, parts.y_test),
    }
    return Training({"seconds": seconds, "best member": best}, score_parts(dialog, left))


def path_of(folder: Path, title: str, seed: int) -> Path:
    """Return the file of a training."""
    return folder / title / f"{seed}.npz"


def _train_job(title: str, seed: int, plan: Plan, folder: Path) -> str:
    """Make a training that is not stored yet."""
    path = path_of(folder, title, seed)
    if not path.exists():
        train(title, seed, plan).save(path)
    return f"{title}, {seed}"


def train_all(plan: Plan, seed: int, folder: Path, n_jobs: int) -> Iterator[str]:
    """Yield the names of the splits in the order in which their trainings end."""
    jobs = [
        delayed(_train_job)(title, seed + split, plan, folder)
        for title in plan.titles
        for split in range(plan.n_splits)
    ]
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
