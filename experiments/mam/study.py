"""The study as a list of runs of five kinds, all independent of each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from joblib import Parallel, delayed

from experiments.mam import data, large
from experiments.mam.classifying import Effort, Trial, trials
from experiments.mam.coverage import Statement, make_statements
from experiments.mam.large import Large, Sizes
from experiments.mam.ordering import Graded, Ranked, on_section_5, on_split


@dataclass(frozen=True)
class Plan:
    """How much of the study to run.

    Attributes
    ----------
    raetsch, ordinal : tuple of str
        Data sets with two classes, and with responses to be put in bins.
    n_splits, n_ordinal : int
        Splits of each.
    effort : Effort
        How much the other classifiers may try.
    n_monte_carlo : int
        Runs on section 5's data.
    bins : tuple of int
        How many bins.
    n_coverage : dict of int to int
        Sample sizes for the bounds, and how many samples of each.
    large : tuple of str
        Large sets with two classes.
    sizes : Sizes
        Their sizes, and the limit on time.
    """

    raetsch: tuple[str, ...]
    ordinal: tuple[str, ...]
    n_splits: int = 20
    n_ordinal: int = 10
    effort: Effort = field(default_factory=Effort)
    n_monte_carlo: int = 50
    bins: tuple[int, ...] = (5, 10)
    n_coverage: dict[int, int] = field(default_factory=lambda: {100: 200, 1000: 200, 5000: 50})
    large: tuple[str, ...] = tuple(large.SETS)
    sizes: Sizes = field(default_factory=Sizes)

    @property
    def n_runs(self) -> int:
        """All runs together."""
        return (
            len(self.raetsch) * self.n_splits
            + self.n_monte_carlo
            + len(self.ordinal) * len(self.bins) * self.n_ordinal
            + sum(self.n_coverage.values())
            + len(self.large) * len(large.METHODS)
        )


QUICK = Plan(
    ("diabetis", "twonorm"),
    ("housing", "machine_cpu"),
    n_splits=2,
    n_ordinal=2,
    effort=Effort(2, costs=(1.0,), gammas=(1.0,), neighbours=(5, 25), n_trees=10),
    n_monte_carlo=3,
    bins=(5,),
    n_coverage={60: 3, 200: 2},
    large=("twonorm",),
    sizes=Sizes(1_200, 300),
)


@dataclass(frozen=True)
class Classified:
    """Every classifier on a split of a set."""

    title: str
    split: int
    by: dict[str, Trial]


@dataclass(frozen=True)
class MonteCarlo:
    """Every ranker on a run of section 5."""

    run: int
    by: dict[str, Ranked]
    title: str = "section 5"


@dataclass(frozen=True)
class InBins:
    """Every ranker and every classifier of ordered classes on a split of a set in bins."""

    title: str
    bins: int
    split: int
    rankers: dict[str, Ranked]
    graders: dict[str, Graded]


@dataclass(frozen=True)
class Covered:
    """All statements of the fits to one sample."""

    n: int
    run: int
    statements: list[Statement]
    title: str = "bounds"


Run = Classified | MonteCarlo | InBins | Covered | Large


def full() -> Plan:
    """Every data set at hand."""
    raetsch, ordinal = data.here()
    return Plan(tuple(raetsch), tuple(ordinal))


def classify(title: str, split: int, seed: int, effort: Effort) -> Classified:
    """One split of a set with two classes."""
    X, y = data.two_classes(title)
    parts = data.parts(X, y, data.RAETSCH[title].train, seed + split)
    return Classified(title, split, trials(parts, seed + split, effort))


def monte_carlo(run: int, seed: int) -> MonteCarlo:
    """One run on section 5's data."""
    return MonteCarlo(run, on_section_5(seed + run))


def in_bins(title: str, bins: int, split: int, seed: int) -> InBins:
    """One split of a set with responses in bins."""
    X, responses = data.responses(title)
    y = data.in_bins(responses, bins)
    parts = data.parts(X, y, data.n_training(title, len(y)), seed + split)
    return InBins(title, bins, split, *on_split(parts))


def cover(n: int, run: int, seed: int) -> Covered:
    """One sample of two Gaussians."""
    return Covered(n, run, make_statements(n, seed + run))


def all_runs(plan: Plan, seed: int, n_jobs: int) -> Iterator[Run]:
    """Every run, as they are done; the long ones are begun first."""
    yield from large.all_runs(plan.large, plan.sizes, seed, plan.effort, n_jobs)
    large_first = sorted(plan.raetsch, key=lambda title: -data.RAETSCH[title].train)
    jobs = [
        delayed(classify)(title, split, seed, plan.effort)
        for title in large_first
        for split in range(plan.n_splits)
    ]
    jobs += [
        delayed(cover)(n, run, seed)
        for n in sorted(plan.n_coverage, reverse=True)
        for run in range(plan.n_coverage[n])
    ]
    jobs += [
        delayed(in_bins)(title, bins, split, seed)
        for title in plan.ordinal
        for bins in plan.bins
        for split in range(plan.n_ordinal)
    ]
    jobs += [delayed(monte_carlo)(run, seed) for run in range(plan.n_monte_carlo)]
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
