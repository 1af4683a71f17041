"""The plots of the page."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from experiments._page import save_figure
from experiments.split.results import PLANNED, SMALL, Results, by_problem
from experiments.steer.rivals import MARGRAVE

_TICKS = (50, 100, 200, 500, 1000, 2000)
_MARKERS = {True: "o", False: "s"}
_LABELS = {True: "new problems", False: "problems of the steering page"}


def write_all(results: Results, folder: Path) -> None:
    """Write the plots to the folder of the page."""
    _plot_gains(results, folder / "split_gains.png")
    _plot_sizes(results, folder / "split_sizes.png")


def _plot_gains(results: Results, path: Path) -> None:
    """Plot the difference to the best fixed split against the number of rows, a dot a problem."""
    figure, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
    best = MARGRAVE, results.best_fixed(MARGRAVE)
    gains = by_problem(results.cases, lambda case: case.recall(PLANNED) - case.recall(best))
    rows = {case.title: case.n_rows for case in results.cases}
    is_new = {case.title: case.is_new for case in results.cases}
    for new, marker in _MARKERS.items():
        titles = [title for title in gains if is_new[title] == new]
        x, y = [rows[title] for title in titles], [gains[title] for title in titles]
        if titles:
            ax.scatter(x, y, 36, marker=marker, alpha=0.7, lw=0, label=_LABELS[new])
    ax.axhline(0, c="0.3", lw=1)
    ax.axvline(SMALL, c="0.7", lw=1, ls="--", zorder=0)
    _use_log_scale(ax)
    ax.set_xlabel("rows")
    ax.set_ylabel(f"recall, planned minus fixed ({best[1]}), in points")
    ax.set_title("A dot is a problem: the mean over its requests and splits", fontsize=10)
    ax.legend(frameon=False)
    save_figure(figure, path)


def _plot_sizes(results: Results, path: Path) -> None:
    """Plot the part of each class that the plan sets aside against its number of samples."""
    figure, axes = plt.subplots(
        1, 2, figsize=(9, 4.2), layout="constrained", sharex=True, sharey=True
    )
    for side, (ax, name) in enumerate(zip(axes, ("limited", "other"), strict=True)):
        for i, rate in enumerate(results.percents):
            cases = [case for case in results.cases if case.request.percent == rate]
            x = np.array([case.n_given[side] for case in cases])
            y = np.array([100 * case.set_aside(None)[side] for case in cases])
            ax.scatter(x, y, 12, c=f"C{i}", alpha=0.5, lw=0, label=f"limit {rate} %")
        _use_log_scale(ax)
        ax.set_title(f"{name} class", fontsize=10)
        ax.set_xlabel(f"given samples of the {name} class")
    axes[0].set_ylabel("set aside, in % of them")
    axes[0].set_ylim(0, 100)
    axes[1].legend(frameon=False)
    save_figure(figure, path)


def _use_log_scale(ax: Axes) -> None:
    """Make the x-axis logarithmic, with whole numbers at its ticks."""
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.minorticks_off()
