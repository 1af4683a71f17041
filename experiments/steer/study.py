"""The study as a list of runs: a data set, a split, a dialog, its promises and its requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from joblib import Parallel, delayed

from experiments.steer import data
from experiments.steer.asking import Tally, tally
from experiments.steer.guarantees import Case, cases
from experiments.steer.rivals import Voices, best_member
from margrave.steer import Dialog


@dataclass(frozen=True)
class Plan:
    """How much of the study to run.

    Attributes
    ----------
    titles : tuple of str
        Data sets.
    n_splits, n_asked : int
        Splits of each, and on how many of them the requests are made.
    percents : tuple of int
        Rates to promise.
    committee : tuple of str, optional
        Some of the default members by name; all of them unless said.
    """

    titles: tuple[str, ...]
    n_splits: int = 10
    n_asked: int = 10
    percents: tuple[int, ...] = (1, 2, 5, 10)
    committee: tuple[str, ...] | None = None


QUICK = Plan(
    ("pima", "breast_wisconsin"),
    n_splits=2,
    n_asked=1,
    percents=(5, 10),
    committee=("svm", "qda"),
)


@dataclass(frozen=True)
class Run:
    """What was found on one split.

    Attributes
    ----------
    title : str
        The data set.
    split : int
        Its number.
    member : str
        The best member.
    cases : list of Case
        Promises.
    tally : Tally
        Requests.
    """

    title: str
    split: int
    member: str
    cases: list[Case]
    tally: Tally


def full() -> Plan:
    """Every data set at hand that is large enough."""
    return Plan(tuple(data.titles()))


def one_run(title: str, split: int, seed: int, plan: Plan) -> Run:
    """A dialog on one split, its promises and its requests."""
    parts = data.parts(title, seed + split)
    dialog = Dialog.from_data(
        parts.X_build,
        parts.y_build,
        committee=None if plan.committee is None else list(plan.committee),
        certify=None,
        positive=1,
        random_state=seed + split,
    )
    test = Voices.of(dialog, parts.X_test)
    found = cases(dialog, parts, test, plan.percents)
    asked = tally(dialog, parts, test) if split < plan.n_asked else Tally()
    member = dialog.members[best_member(dialog._data)]
    return Run(title, split, member, found, asked)


def all_runs(plan: Plan, seed: int, n_jobs: int) -> Iterator[Run]:
    """Every run, as they are done."""
    jobs = [
        delayed(one_run)(title, split, seed, plan)
        for title in plan.titles
        for split in range(plan.n_splits)
    ]
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
