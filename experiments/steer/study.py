"""The study as a list of runs: a data set, a split, a dialog and its guarantees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from joblib import Parallel, delayed

from experiments.steer import data
from experiments.steer.guarantees import Case, certify_all
from experiments.steer.rivals import Predicted, find_best_member
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


@dataclass(frozen=True)
class Run:
    """The results of one split.

    Attributes
    ----------
    title : str
        The data set.
    split : int
        Number of the split.
    best_member : str
        Name of the best member.
    cases : list of Case
        The guarantees.
    """

    title: str
    split: int
    best_member: str
    cases: list[Case]


def full_plan() -> Plan:
    """Plan all available data sets that are large enough."""
    return Plan(tuple(data.available_titles()))


def run_one(title: str, split: int, seed: int, plan: Plan) -> Run:
    """Start a dialog on one split, and certify its guarantees."""
    parts = data.load_split(title, seed + split)
    dialog = Dialog.from_data(
        parts.X_train,
        parts.y_train,
        committee=None if plan.committee is None else list(plan.committee),
        certify=None,
        positive=1,
        duplicates="independent",  # copies are left out before, or equal by chance
        random_state=seed + split,
    )
    certify = Predicted.by_members_of(dialog, parts.X_certify, parts.y_certify)
    test = Predicted.by_members_of(dialog, parts.X_test, parts.y_test)
    cases = certify_all(dialog, certify, test, plan.percents)
    return Run(title, split, dialog.members[find_best_member(dialog)], cases)


def run_all(plan: Plan, seed: int, n_jobs: int) -> Iterator[Run]:
    """Yield the runs in the order in which they end."""
    jobs = [
        delayed(run_one)(title, split, seed, plan)
        for title in plan.titles
        for split in range(plan.n_splits)
    ]
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
