"""The plots of the page."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from experiments._page import save_figure
from experiments._parts import Floats
from experiments.steer.guarantees import ORDER_STATISTIC, RIVALS, TUNED
from experiments.steer.results import Results, is_higher
from experiments.steer.rivals import MARGRAVE

LABELS = {
    MARGRAVE: f"accepted model ({MARGRAVE})",
    ORDER_STATISTIC: ORDER_STATISTIC,
    TUNED: TUNED,
}
COLOURS = {MARGRAVE: "C0", ORDER_STATISTIC: "C2", TUNED: "C1"}
SHIFTS = {MARGRAVE: -0.28, ORDER_STATISTIC: 0.0, TUNED: 0.28}
_TOP = 4.0  # rates above so many times the guaranteed one are drawn there
_LINEAR = 1.0  # points within which the axis of differences is linear
_TICKS = (-50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50)


def write_all(results: Results, folder: Path) -> None:
    """Write the plots to the folder of the page."""
    _plot_guarantees(results, folder / "steer_guarantees.png")
    _plot_cost(results, folder / "steer_cost.png")


def _plot_guarantees(results: Results, path: Path) -> None:
    """Plot the test rate over the guaranteed rate, a dot for each guarantee."""
    figure, ax = plt.subplots(figsize=(9, 5.6), layout="constrained")
    rng = np.random.default_rng(0)
    ratios = {(p, rule): _ratios(results, p, rule) for p in results.percents for rule in LABELS}
    top = min(max(float(each.max()) for each in ratios.values()), _TOP)
    for (percent, rule), each in ratios.items():
        place = results.percents.index(percent)
        middle = place + SHIFTS[rule]
        x = middle + rng.uniform(-0.1, 0.1, len(each))
        ax.scatter(x, np.minimum(each, top), 12, c=COLOURS[rule], alpha=0.35, lw=0)
        one = results.pooled(percent, rule)
        pooled = one.wrong / one.m / (percent / 100)
        ax.plot([middle - 0.12, middle + 0.12], [pooled, pooled], c="k", lw=2)
        measured = f"{100 * one.exceeded:.0f} %"
        ax.text(middle, top * 1.13, measured, ha="center", fontsize=9, c=COLOURS[rule])
        by_chance = f"{100 * one.expected:.0f} %"
        ax.text(middle, top * 1.06, by_chance, ha="center", fontsize=9, c="0.4")
    ax.axhline(1, c="0.3", lw=1, ls="--", zorder=0)
    ax.set_xticks(range(len(results.percents)), [f"{percent} %" for percent in results.percents])
    ax.set_ylim(-0.04 * top, 1.22 * top)
    ax.set_xlabel("guaranteed rate")
    ax.set_ylabel("test rate / guaranteed rate")
    beyond = f" Dots above {_TOP:g} are drawn there." if top == _TOP else ""
    ax.set_title(
        "A dot is a guarantee, a line the pooled rate. Percentages at the top: guarantees\n"
        f"whose test set exceeds the rate; in grey the proportion expected by chance.{beyond}",
        fontsize=10,
    )
    for rule, label in LABELS.items():
        ax.scatter([], [], 30, c=COLOURS[rule], label=label)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    save_figure(figure, path)


def _ratios(results: Results, percent: int, rule: str) -> Floats:
    """Return the test rate over the guaranteed rate for each guarantee of a rate."""
    cases = [case for case in results.cases if case.percent == percent]
    found = [(case, outcome) for case in cases if (outcome := case.outcomes[rule]) is not None]
    return np.array([outcome.wrong / case.sizes.m / case.rate for case, outcome in found])


def _plot_cost(results: Results, path: Path) -> None:
    """Plot the differences in recall between the rivals and Margrave, a dot for each data set."""
    rules = [rule for rule in (ORDER_STATISTIC, *RIVALS) if results.mean_difference(rule)]
    figure, ax = plt.subplots(figsize=(9, 1.6 + 0.5 * len(rules)), layout="constrained")
    rng = np.random.default_rng(0)
    widest = _LINEAR
    for y, rule in enumerate(reversed(rules)):
        each = [values for t in results.titles if (values := results.differences(t, rule))]
        dots = np.array([np.mean(values) for values in each])
        widest = max(widest, float(np.abs(dots).max()))
        ax.scatter(dots, y + rng.uniform(-0.22, 0.22, len(dots)), 14, c="0.6", lw=0)
        gap = results.mean_difference(rule)
        if gap is not None:
            colour = "C3" if is_higher(gap) else "C0"
            ax.errorbar(gap.mean, y, xerr=gap.error, fmt="D", c=colour, ms=6, lw=2, capsize=4)
    ax.axvline(0, c="0.3", lw=1)
    ax.set_xscale("symlog", linthresh=_LINEAR)
    ticks = [tick for tick in _TICKS if abs(tick) <= 1.3 * widest]
    limits = ax.get_xlim()
    ax.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
    ax.set_xlim(limits)
    ax.minorticks_off()
    ax.set_yticks(range(len(rules)), rules[::-1])
    ax.set_ylim(-0.6, len(rules) - 0.4)
    ax.grid(axis="x", c="0.93")
    ax.set_axisbelow(True)
    ax.set_xlabel(
        f"recall of the other class minus {MARGRAVE}'s, in points (logarithmic beyond ±{_LINEAR:g})"
    )
    ax.set_title(
        f"Dots: data sets. Diamonds: mean ± one standard error, red if ahead of {MARGRAVE}",
        fontsize=10,
    )
    save_figure(figure, path)
