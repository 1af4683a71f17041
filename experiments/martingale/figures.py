"""The figures of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from experiments._page import save_figure
from experiments._parts import Floats
from experiments.martingale import noise
from experiments.martingale.data import favoured
from experiments.martingale.measures import ALONE
from experiments.martingale.results import Of, Results, on_class, overall

SINGLE = {"LR": "s", "LR-Tune": "D"}
PROGRAMS = {"MB": "o", "MB-Tune": "^", "MB-Tune-Freeze": "v"}
# Okabe and Ito's colours, for colour-blind readers.
COLOURS = {
    "LR": "#000000",
    "LR-Tune": "#CC79A7",
    "MB": "#0072B2",
    "MB-Tune": "#009E73",
    "MB-Tune-Freeze": "#E69F00",
}
NOISE_COLOURS = ("#000000", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#D55E00")
CROWDED = 4  # levels above which the points lie too close to be numbered


def write_all(results: Results, folder: Path) -> None:
    """Write them beside the page."""
    _errors(results, folder / "martingale_figure_4.png")
    _levels(results, folder / "martingale_figure_5.png")
    _noise(results, folder / "martingale_noise.png")


def _errors(results: Results, path: Path) -> None:
    """Figure 4: false negatives against false positives on the test set, means over the splits."""
    title = results.plan.pictured
    figure, ax = plt.subplots(figsize=(8, 5.4), layout="constrained")
    for name, marker in (SINGLE | PROGRAMS).items():
        levels = [ALONE] if name in SINGLE else list(results.plan.levels)
        fp, fn = (_mean_errors(results, name, levels, c) for c in (0, 1))
        odd = np.array([name in SINGLE or n % 2 == 1 for n in levels])
        colour = COLOURS[name]
        size = 90 if name in SINGLE else 45
        ax.scatter(fp[odd], fn[odd], size, c=colour, marker=marker, label=name)
        ax.scatter(fp[~odd], fn[~odd], size, marker=marker, facecolors="none", edgecolors=colour)
        if name in PROGRAMS:
            for n, x, y in zip(levels, fp, fn, strict=True):
                if n <= CROWDED:
                    ax.annotate(
                        str(n), (x, y), (5, 3), textcoords="offset points", fontsize=8, c=colour
                    )
    _equal_errors(ax)
    ax.set_xlabel("false positives")
    ax.set_ylabel("false negatives")
    ax.set_title(f"{title}, test set: errors by the number of levels (hollow: even)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
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
    title, levels = results.plan.pictured, np.array(results.plan.levels)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    kinds = {"the tuned class": on_class(favoured(title)), "all samples": overall}
    for ax, (what, of) in zip(axes, kinds.items(), strict=True):
        for name in SINGLE:
            ((mean,), (error,)) = _means(results, "levels", title, [(name, ALONE)], of)
            ax.axhline(mean, c=COLOURS[name], ls="--", lw=1, label=name)
            ax.axhspan(mean - error, mean + error, color=COLOURS[name], alpha=0.12, lw=0)
        for at, (name, marker) in enumerate(PROGRAMS.items()):
            means, errors = _means(results, "levels", title, [(name, n) for n in levels], of)
            look: dict[str, Any] = {"c": COLOURS[name], "marker": marker, "ms": 4, "lw": 1.2}
            # Beside each other, so that the bars do not cover one another.
            ax.errorbar(levels + 0.2 * (at - 1), means, errors, capsize=2, label=name, **look)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlabel("levels")
        ax.set_ylabel(f"test accuracy on {what}, %")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(fontsize=8, frameon=False)
    figure.suptitle(f"{title}: mean ± one standard error over {results.plan.n_splits} splits")
    save_figure(figure, path)


def _means(
    results: Results, part: str, title: str, keys: Sequence[Any], of: Of
) -> tuple[Floats, Floats]:
    """The means over the splits, and their standard errors."""
    values = np.array([results.values(part, title, key, of) for key in keys])
    return values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])


def _noise(results: Results, path: Path) -> None:
    """Accuracy by the fraction of wrong training labels, a panel for each data set."""
    titles, rates = results.titles("noise"), results.plan.rates
    n_rows = -(-len(titles) // 2)
    figure, axes = plt.subplots(
        n_rows, 2, figsize=(10, 3.6 * n_rows), layout="constrained", squeeze=False
    )
    for ax in axes.ravel()[len(titles) :]:
        ax.set_axis_off()
    x = 100 * np.array(rates)
    for ax, title in zip(axes.ravel(), titles, strict=False):
        for at, (name, colour) in enumerate(zip(noise.METHODS, NOISE_COLOURS, strict=True)):
            means, errors = _means(results, "noise", title, [(name, r) for r in rates], overall)
            beside = 0.3 * (at - (len(noise.METHODS) - 1) / 2)
            look: dict[str, Any] = {"ls": "--" if "Ada" in name else "-", "marker": ".", "lw": 1.3}
            ax.errorbar(x + beside, means, errors, c=colour, capsize=2, label=name, **look)
        ax.set_title(title)
        ax.set_xlabel("wrong training labels, %")
        ax.set_ylabel("test accuracy, %")
        ax.spines[["top", "right"]].set_visible(False)
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=6, frameon=False)
    figure.suptitle(f"Mean ± one standard error over {results.plan.n_splits} splits")
    save_figure(figure, path)
