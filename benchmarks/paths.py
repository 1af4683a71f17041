"""How often certified limits are broken or refused, and the recall left: ``-m benchmarks.paths``.

Each run certifies limits on a certification set of its own; several runs share a tuning set and its
plan, because planning takes most of the time. Given a tuning set, each guarantee fails with a
probability of at most 5 %, so the runs can be counted as independent. The scores are normal in each
class: for two classes with variance 1 and two units apart, so that true rates are exact; for three
classes with two scores of the same kind, and true rates from a large sample. The table has for each
request

- how often a true rate is above its limit, of all runs, with the p-value of a one-sided binomial
  test against 5 %;
- the proportion of runs that are refused, and of those that use up the certification set;
- the mean over runs of the true proportion predicted right in each class, where a refused run
  counts 0, and its mean over classes;
- where a run is certified, the mean proportions of errors and of rejected samples.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest, norm
from sklearn.base import BaseEstimator, ClassifierMixin

from margrave import Confusion, Preference
from margrave.confusion import Bound
from margrave.steer import Dialog, GuaranteeError
from margrave.steer._certify import set_decision
from margrave.steer._plan import TuningScores, make_plan, simulate

DELTA = 0.05
DISTANCE = 2.0
LARGE = 50_000
QUICK_RUNS = 20
SETS = 10  # certification sets for each tuning set

Floats = NDArray[np.float64]


class Scores(ClassifierMixin, BaseEstimator):
    """A fitted model whose decision values are the columns."""

    def __init__(self, k: int = 2) -> None:
        self.k = k
        self.classes_ = np.arange(k)

    def fit(self, X: Floats, y: ArrayLike) -> Self:  # noqa: ARG002
        """Return the model as it is."""
        return self

    def decision_function(self, X: Floats) -> Floats:
        """Return the decision values."""
        return X[:, 0] - DISTANCE / 2 if self.k == 2 else np.asarray(X)

    def predict(self, X: Floats) -> Any:
        """Predict the class of the largest decision value."""
        values = self.decision_function(X)
        return (values > 0).astype(int) if self.k == 2 else values.argmax(axis=1)


@dataclass(frozen=True)
class Setting:
    """A request, and the sizes of its samples.

    Attributes
    ----------
    name, preference : str
        The kind of request, and its limits.
    tune, certify : tuple of int
        The number of samples of each class in the tuning set and the certification set. If limits
        depend on class proportions, these are the same in both.
    """

    name: str
    preference: str
    tune: tuple[int, ...] = (300, 300)
    certify: tuple[int, ...] = (300, 300)


SETTINGS = (
    Setting("fp", "fp <= 5%", certify=(120, 120)),
    Setting("fn", "fn <= 10%", certify=(300, 110)),
    Setting("both", "fp <= 20%, fn <= 20%", certify=(200, 200)),
    Setting("both, close", "fp <= 19%, fn <= 19%", certify=(500, 500)),
    Setting("precision", "precision >= 80%", (300, 200), (300, 200)),
    Setting("precision, strict", "precision >= 90%", (300, 200), (300, 200)),
    Setting("alarms", "alarms <= 30%", (300, 200), (198, 132)),
    Setting("rare positives", "fp <= 2%", (930, 70), (930, 70)),
    Setting("rare, a budget", "precision >= 30%, alarms <= 6%", (930, 70), (930, 70)),
    Setting("both, kept goal", "fp <= 20%, fn <= 30%, then fewest fn", certify=(200, 200)),
    Setting("a cost", "fp <= 20%, then lowest cost of fp + 3 fn", certify=(200, 200)),
    Setting("rejection, one limit", "fp <= 5%, rejected <= 20%"),
    Setting("rejection, two limits", "fp <= 8%, fn <= 8%, rejected <= 45%", certify=(500, 500)),
    Setting("rejection, few samples", "fp <= 8%, fn <= 8%, rejected <= 45%"),
    Setting("three classes", "errors(0 -> 1) <= 10%, fn(2) <= 25%", (200,) * 3, (200,) * 3),
    Setting("three, rejection", "errors <= 15%, rejected <= 40%", (200,) * 3, (200,) * 3),
)


def draw_samples(sizes: tuple[int, ...], rng: np.random.Generator) -> tuple[Floats, Any]:
    """Draw scores of classes with these sizes: one score for two classes, else one for each."""
    k = len(sizes)
    codes = np.repeat(np.arange(k), rng.multinomial(sum(sizes), np.array(sizes) / sum(sizes)))
    means = np.array([[0.0], [DISTANCE]]) if k == 2 else DISTANCE * np.eye(k)
    return rng.normal(size=(len(codes), means.shape[1])) + means[codes], codes


@dataclass(frozen=True, eq=False)
class Population:
    """All samples: the true proportion of each prediction in each class.

    Attributes
    ----------
    proportions : ndarray of shape (k,)
        The proportions of the classes.
    large : ndarray
        For more than two classes, a large sample of each class.
    """

    proportions: Floats
    large: Floats

    @classmethod
    def of(cls, setting: Setting) -> Population:
        """Make the population that a setting draws from."""
        sizes, k = np.array(setting.tune), len(setting.tune)
        rng = np.random.default_rng(0)
        large = rng.normal(size=(k, LARGE, k)) + DISTANCE * np.eye(k)[:, None]
        return cls(sizes / sizes.sum(), large if k > 2 else np.empty(0))

    def matrix(self, decision: Any) -> Floats:
        """Return the proportions of all samples by class and prediction; the last is rejected."""
        k = len(self.proportions)
        rates = np.zeros((k, k + 1))
        if k == 2:
            for c, mean in enumerate((-DISTANCE / 2, DISTANCE / 2)):
                low, high = norm.cdf(decision.low - mean), norm.cdf(decision.high - mean)
                rates[c] = low, 1 - high, high - low
        else:
            for c, scores in enumerate(self.large):
                rates[c] = np.bincount(decision.predict(scores) % (k + 1), minlength=k + 1) / LARGE
        return np.asarray(rates * self.proportions[:, None])


@dataclass(frozen=True)
class Run:
    """The outcome of a run: the true matrix, or None if it was refused."""

    matrix: Any
    used_up: bool
    broken: bool


def run_sets(
    setting: Setting, population: Population, rng: np.random.Generator, n_sets: int
) -> list[Run]:
    """Draw a tuning set, plan the request, and certify it on several certification sets."""
    wanted = Preference(setting.preference)
    dialog = Dialog(Scores(len(setting.tune)), *draw_samples(setting.tune, rng))
    candidate = dialog.prefer(wanted, strategies=["move", "reject"]).candidate
    objective, sizes = dialog._data.objective(wanted), np.array(setting.certify)
    plan = make_plan(wanted, candidate.decision, candidate.scores, objective, sizes, DELTA)
    tuning = TuningScores.of(candidate.scores, objective)
    if not simulate(plan, tuning, sizes, DELTA).certified.any():  # refused beforehand
        return [Run(None, used_up=False, broken=False)] * n_sets
    runs = []
    for _ in range(n_sets):
        X, codes = draw_samples(setting.certify, rng)
        try:
            decision = set_decision(plan, candidate.scorer(X), codes, DELTA).decision
        except GuaranteeError as error:
            runs.append(Run(None, error.used_up, broken=False))
        else:
            matrix = population.matrix(decision)
            broken = any(_is_broken(bound, matrix, dialog.confusion) for bound in wanted.bounds)
            runs.append(Run(matrix, used_up=True, broken=broken))
    return runs


def _is_broken(bound: Bound, matrix: Floats, shape: Confusion) -> bool:
    """Whether the true rate of a bound is beyond its limit."""
    amount, base = (matrix[mask].sum() for mask in bound.cells(shape))
    missed = amount / base - float(bound.limit) if base else 0.0
    return bool((missed if bound.at_most else -missed) > 1e-9)


def describe(setting: Setting, n_runs: int, seed: int) -> str:
    """Return the row of a setting."""
    rng, population = np.random.default_rng(seed), Population.of(setting)
    runs: list[Run] = []
    while len(runs) < n_runs:
        runs += run_sets(setting, population, rng, min(SETS, n_runs - len(runs)))
    n_broken = sum(run.broken for run in runs)
    p = binomtest(n_broken, n_runs, DELTA, alternative="greater").pvalue
    refused = [run for run in runs if run.matrix is None]
    certified = [run.matrix for run in runs if run.matrix is not None]
    k = len(setting.tune)
    right = sum(matrix.diagonal() for matrix in certified) / n_runs / population.proportions
    right = np.broadcast_to(right, k)
    rejected = [matrix[:, -1].sum() for matrix in certified]
    errors = [1 - matrix.trace() - part for matrix, part in zip(certified, rejected, strict=True)]
    cells = [
        setting.name,
        setting.preference,
        f"{n_broken / n_runs:.2%} (p = {p:.2g})",
        f"{len(refused) / n_runs:.1%} ({sum(run.used_up for run in refused) / n_runs:.1%})",
        ", ".join(f"{one:.3f}" for one in right),
        f"{right.mean():.3f}",
        *(f"{np.mean(parts):.1%}" if parts else "" for parts in (errors, rejected)),
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paths", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="runs of each request")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RUNS} runs")
    parser.add_argument("--seed", type=int, default=0, help="seed of the simulations")
    parser.add_argument("--only", default="", help="only requests with this text in their name")
    options = parser.parse_args(arguments)
    n_runs = QUICK_RUNS if options.quick else options.runs
    heads = ["kind", "request", "broken", "refused (used up)", "right by class", "right"]
    print(f"{n_runs:,} runs of each, {SETS} for each tuning set, seed {options.seed}\n")
    heads += ["errors", "rejected"]
    print(f"| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|")
    for setting in SETTINGS:
        if options.only in setting.name:
            print(describe(setting, n_runs, options.seed), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
