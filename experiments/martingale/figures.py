"""The figures of the page."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from experiments._page import save_figure
from experiments._parts import Floats
from experiments.martingale import noise
from experiments.martingale.data import favoured
from experiments.martingale.measures import ALONE
from experiments.martingale.results import Results, on_class, overall

SINGLE = {"LR": "s", "LR-Tune": "D"}
PROGRAMS = {"MB": "o", "MB-Tune": "^", "MB-Tune-Freeze": "v"}
COLOURS = {
    "LR": "C7",
    "LR-Tune": "C3",
    "MB": "C0",
    "MB-Tune": "C2",
    "MB-Tune-Freeze": "C1",
}
CROWDED = 5  # levels from which on the points lie too close to be numbered, but for the last


def write_all(results: Results, folder: Path) -> None:
    """Write them beside the page."""
    _errors(results, folder / "martingale_figure_4.png")
    _levels(results, folder / "martingale_figure_5.png")
    _noise(results, folder / "martingale_noise.png")


def _errors(results: Results, path: Path) -> None:
    """Figure 4: false positives against false negatives on the test set, means over the splits."""
    title = results.plan.pictured
    figure, ax = plt.subplots(figsize=(8, 6), layout="constrained")
    for name, marker in (SINGLE | PROGRAMS).items():
        levels = [ALONE] if name in SINGLE else list(results.plan.levels)
        fp, fn = (_mean_errors(results, name, levels, c) for c in (0, 1))
        odd = np.array([name in SINGLE or n % 2 == 1 for n in levels])
        colour = COLOURS[name]
        size = 90 if name in SINGLE else 45
        ax.scatter(fn[odd], fp[odd], size, c=colour, marker=marker, label=name)
        ax.scatter(fn[~odd], fp[~odd], size, marker=marker, facecolors="none", edgecolors=colour)
        if name in PROGRAMS:
            for n, x, y in zip(levels, fn, fp, strict=True):
                if n <= CROWDED or n == levels[-1]:
                    ax.annotate(str(n), (x, y), (4, 3), textcoords="offset points", fontsize=8)
    _equal_errors(ax)
    ax.set_xlabel("false negatives")
    ax.set_ylabel("false positives")
    ax.set_title(f"{title}, test set: errors by the number of levels (hollow: even)")
    ax.legend()
    save_figure(figure, path)


def _mean_errors(results: Results, name: str, levels: list[int], c: int) -> Floats:
    """Errors on a class, for each depth."""
    title = results.plan.pictured
    return np.array(
        [results.mean("levels", title, (name, n), lambda one: one.errors(c)) for n in levels]
    )


def _equal_errors(ax: Axes) -> None:
    """Thin lines of the same number of errors."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    for total in np.linspace(left + low, right + high, 8)[1:-1]:
        ax.plot([left, right], [total - left, total - right], c="0.85", lw=0.8, zorder=0)
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)


def _levels(results: Results, path: Path) -> None:
    """Figure 5: accuracy on the tuned class, and on all samples, by the number of levels."""
    title, levels = results.plan.pictured, results.plan.levels
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    kinds = {"the tuned class": on_class(favoured(title)), "all samples": overall}
    for ax, (what, of) in zip(axes, kinds.items(), strict=True):
        for name in SINGLE:
            value = results.mean("levels", title, (name, ALONE), of)
            ax.axhline(value, c=COLOURS[name], ls="--", lw=1, label=name)
        for name, marker in PROGRAMS.items():
            means = [results.mean("levels", title, (name, n), of) for n in levels]
            ax.plot(levels, means, c=COLOURS[name], marker=marker, ms=5, label=name)
        ax.set_xlabel("levels")
        ax.set_ylabel(f"test accuracy on {what}, %")
    axes[0].legend(fontsize=8)
    figure.suptitle(title)
    save_figure(figure, path)


def _noise(results: Results, path: Path) -> None:
    """Accuracy by the fraction of wrong training labels, a panel for each data set."""
    titles, rates = results.titles("noise"), results.plan.rates
    n_rows = -(-len(titles) // 2)
    figure, axes = plt.subplots(
        n_rows, 2, figsize=(10, 3.6 * n_rows), layout="constrained", squeeze=False
    )
    for ax in axes.ravel()[len(titles) :]:
        ax.set_axis_off()
    for ax, title in zip(axes.ravel(), titles, strict=False):
        for at, name in enumerate(noise.METHODS):
            means = [results.mean("noise", title, (name, rate), overall) for rate in rates]
            dashed, width = "--" if "stumps" in name else "-", 4 if name == "LR" else 1.5
            x = [100 * rate for rate in rates]
            ax.plot(x, means, dashed, c=f"C{at}", lw=width, marker=".", label=name)
        ax.set_title(title)
        ax.set_xlabel("wrong training labels, %")
        ax.set_ylabel("test accuracy, %")
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=4)
    save_figure(figure, path)
