"""The figures of the page."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from experiments._page import save_figure
from experiments._parts import Floats
from experiments.steer.results import Results
from experiments.steer.rivals import MEMBER, OURS, STACKING, TUNED

COLOURS = {OURS: "C0", TUNED: "C1", MEMBER: "C2", STACKING: "C3"}
MARKERS = {MEMBER: "o", STACKING: "D"}
_TOP = 4.0


def write_all(results: Results, folder: Path) -> None:
    """Write them beside the page."""
    _promises(results, folder / "steer_promises.png")
    _price(results, folder / "steer_price.png")


def _promises(results: Results, path: Path) -> None:
    """Test rate over promised rate, a dot for each promise, by rate and rule."""
    figure, ax = plt.subplots(figsize=(9, 5.2), layout="constrained")
    rng = np.random.default_rng(0)
    rates = {
        (p, rule): _rates(results, p, rule) for p in results.percents for rule in (OURS, TUNED)
    }
    top = min(max(float(each.max()) for each in rates.values()), _TOP)
    for (percent, rule), each in rates.items():
        middle = results.percents.index(percent) + (-0.2 if rule == OURS else 0.2)
        x = middle + rng.uniform(-0.15, 0.15, len(each))
        ax.scatter(x, np.minimum(each, top), 14, c=COLOURS[rule], alpha=0.4, lw=0)
        one = results.pooled(percent, rule)
        pooled = one.wrong / one.m / (percent / 100)
        ax.plot([middle - 0.17, middle + 0.17], [pooled, pooled], c="k", lw=2)
        told = f"{one.broken:.0%} above"
        ax.text(middle, top * 1.05, told, ha="center", fontsize=9, c=COLOURS[rule])
    ax.axhline(1, c="0.3", lw=1, ls="--", zorder=0)
    ax.set_xticks(range(len(results.percents)), [f"{percent} %" for percent in results.percents])
    ax.set_ylim(-0.04 * top, 1.13 * top)
    ax.set_xlabel("promised rate")
    ax.set_ylabel("rate on test / promised rate")
    beyond = f"; above {_TOP:g} drawn there" if top == _TOP else ""
    ax.set_title(f"Each promise on its test part (bars: pooled{beyond})")
    for rule in (OURS, TUNED):
        ax.scatter([], [], 30, c=COLOURS[rule], label=rule)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    save_figure(figure, path)


def _rates(results: Results, percent: int, rule: str) -> Floats:
    """Of each promise of a rate, the rate on test over it."""
    cases = [case for case in results.cases if case.percent == percent]
    kept = [(case, outcome) for case in cases if (outcome := case.by[rule]) is not None]
    return np.array([outcome.wrong / case.drawn.m / case.rate for case, outcome in kept])


def _price(results: Results, path: Path) -> None:
    """Recall of the other class, Margrave less its rivals, by data set."""
    titles = sorted(results.titles, key=lambda title: results.gap(title, MEMBER).mean)
    height = 1.9 + 0.3 * len(titles)
    figure, ax = plt.subplots(figsize=(9, height), layout="constrained")
    for rule, shift in ((MEMBER, 0.15), (STACKING, -0.15)):
        gaps = [results.gap(title, rule) for title in titles]
        ax.errorbar(
            [gap.mean for gap in gaps],
            np.arange(len(titles)) + shift,
            xerr=[gap.error for gap in gaps],
            fmt=MARKERS[rule],
            c=COLOURS[rule],
            ms=5,
            lw=1.2,
            label=f"{OURS} − {rule}",
        )
        ax.axvline(results.gap_over_sets(rule).mean, c=COLOURS[rule], lw=1, ls=":")
    ax.axvline(0, c="0.3", lw=1)
    ax.set_yticks(range(len(titles)), titles)
    ax.set_ylim(-0.6, len(titles) - 0.4)
    ax.grid(axis="y", c="0.93")
    ax.set_axisbelow(True)
    ax.set_xlabel("recall of the other class, difference in points (bar: one standard error)")
    ax.set_title("At the same certified rate (dotted: mean over the data sets)")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    save_figure(figure, path)
