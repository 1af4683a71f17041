"""Figures 1 and 2 of the paper, and what its section 4 says about them.

The figures show the distributions of the rank margins on the data that the combiners were fitted
on, for two data sets. Here they are means over the runs. A sentence is checked in every run: it
*holds* if it is true in at least `MOST` of the runs of both committees, and *does not hold* if it
is false in as many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes

from experiments._parts import Floats
from experiments.rank_margin import study
from experiments.rank_margin.paper import METHODS
from margrave.compare import RankMarginDisplay
from margrave.pairs import CrucialPairs

FIGURES = {1: "Contraceptive", 2: "Liver"}
MOST = 0.8
# Smallest margins, in [-2, 2], are comparable within this distance and clearly different beyond it.
CLEAR = 0.1
GRID: Floats = np.linspace(-2, 2, 401)

Measures = Mapping[str, float]
"""The values of one measure in one run, by method or by pair of methods."""


@dataclass(frozen=True)
class Sentence:
    """A sentence about a figure.

    Attributes
    ----------
    figure : int
        The figure.
    text : str
        What the paper says, in other words.
    measure : {"tuning AUC", "worst 1 %", "test AUC", "smallest margin", "distance"}
        What it is checked by.
    is_true : callable
        Whether it is true in a run.
    """

    figure: int
    text: str
    measure: str
    is_true: Callable[[Measures], bool]


def _rankboost_is_last(values: Measures) -> bool:
    return values["RankBoost"] < min(values["SVM"], values["RankMargin"])


def _rankboost_is_close(values: Measures) -> bool:
    others = (values["SVM"], values["RankMargin"])
    return max(abs(values["RankBoost"] - other) for other in others) <= CLEAR


def _rankboost_is_clearly_first(values: Measures) -> bool:
    return values["RankBoost"] > max(values["SVM"], values["RankMargin"]) + CLEAR


def _linear_ones_are_closest(values: Measures) -> bool:
    return min(values, key=lambda pair: values[pair]) == "RankMargin–SVM"


def _svm_is_ahead(values: Measures) -> bool:
    return values["SVM"] > values["RankMargin"]


# "Better margins" may mean fewer pairs in the wrong order, or the low end of the curve, which the
# logarithmic axis enlarges; the paper does not say which.
SENTENCES = (
    Sentence(1, "The SVM has better margins than RankMargin", "tuning AUC", _svm_is_ahead),
    Sentence(1, "The SVM has better margins than RankMargin", "worst 1 %", _svm_is_ahead),
    Sentence(
        1, "The SVM is better than RankMargin on the test data too", "test AUC", _svm_is_ahead
    ),
    Sentence(1, "RankBoost is worse than both on the test data", "test AUC", _rankboost_is_last),
    Sentence(
        1,
        f"Its smallest margin is comparable (at most {CLEAR:g} from both others)",
        "smallest margin",
        _rankboost_is_close,
    ),
    Sentence(
        2,
        f"RankBoost has a clearly larger smallest margin (by more than {CLEAR:g}) than both",
        "smallest margin",
        _rankboost_is_clearly_first,
    ),
    Sentence(2, "RankBoost is worse than both on the test data", "test AUC", _rankboost_is_last),
    Sentence(
        2,
        "RankMargin and the SVM have similar distributions (more than either has with RankBoost)",
        "distance",
        _linear_ones_are_closest,
    ),
    Sentence(
        2,
        "RankMargin is better than the SVM on the test data",
        "test AUC",
        lambda values: values["RankMargin"] > values["SVM"],
    ),
)


def decide(n_true: Sequence[int], n_runs: int) -> str:
    """Decide whether a sentence holds, from the runs in which it is true for each committee."""
    if min(n_true) >= MOST * n_runs:
        return "holds"
    if min(n_runs - n for n in n_true) >= MOST * n_runs:
        return "does not hold"
    return "undecided"


def tuning_pairs(outputs: study.Outputs) -> dict[str, CrucialPairs]:
    """Return the pairs of the tuning set by method, with all scores scaled to [-1, 1]."""
    on_tuning = replace(outputs, test=outputs.tune)
    pairs = {}
    for method in METHODS:
        scores = study.COMBINERS[method](on_tuning)
        # A shift does not change margins.
        pairs[method] = CrucialPairs.of(2 * scores / (np.ptp(scores) or 1.0), outputs.y_tune)
    return pairs


def measure(pairs: Mapping[str, CrucialPairs], test: Measures) -> dict[str, Measures]:
    """Compute all measures of one run: of the pairs, and the AUCs on the test set."""
    curves = {method: own.cdf(GRID) for method, own in pairs.items()}
    return {
        "tuning AUC": {method: own.auc for method, own in pairs.items()},
        "worst 1 %": {method: float(own.quantile(0.01)) for method, own in pairs.items()},
        "test AUC": test,
        "smallest margin": {method: own.rank_margin for method, own in pairs.items()},
        "distance": {
            f"{a}–{b}": float(np.abs(curves[a] - curves[b]).max())
            for a, b in (("RankMargin", "SVM"), ("RankMargin", "RankBoost"), ("RankBoost", "SVM"))
        },
    }


def plot(runs: Sequence[Mapping[str, CrucialPairs]], test: Measures, ax: Axes) -> None:
    """Plot the mean of the distributions over the runs; the legend has the mean test AUCs."""
    margins, fractions = {}, {}
    for method in METHODS:
        own = [pairs[method] for pairs in runs]
        smallest = min(pairs.rank_margin for pairs in own)
        margins[method] = np.append(smallest, GRID[smallest < GRID])
        fractions[method] = np.mean([pairs.cdf(margins[method]) for pairs in own], axis=0)
    lines = RankMarginDisplay(margins, fractions, aucs=test).plot(ax).lines_
    for method, line in lines.items():
        line.set_label(f"{method}, test AUC {test[method]:.3f}")
    best_first = sorted(lines, key=lambda method: -test[method])
    ax.legend(handles=[lines[method] for method in best_first], frameon=False, loc="lower right")
