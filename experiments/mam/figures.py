"""The figures of the page."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from experiments._page import save_figure
from experiments.mam.classifying import BALANCED, FORMS, MAM, METHODS, SVM
from experiments.mam.coverage import N_HELD_OUT, SURER
from experiments.mam.holding import Holding
from experiments.mam.results import Results


def write_all(results: Results, folder: Path) -> None:
    """Write them beside the page."""
    _errors(results, folder / "mam_errors.png")
    _bounds(results, folder / "mam_bounds.png")


def _errors(results: Results, path: Path) -> None:
    """Error less the SVM's, set by set; error and time of every method."""
    height = 2.6 + 0.22 * len(results.titles)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, height), layout="constrained")
    _differences(left, results)
    mean = {method: float(results.mean_errors(method).mean()) for method in METHODS}
    lower, upper = sorted((MAM, BALANCED), key=lambda form: mean[form])
    places = {lower: ((0, -13), "center"), upper: ((0, 6), "center")}  # they are close together
    for method in METHODS:
        each = [results.seconds(title, method) for title in results.titles]
        point = float(np.exp(np.mean(np.log(each)))), mean[method]
        right.scatter(*point, 40, c="C0" if method in FORMS else "C1")
        offset, side = places.get(method, ((7, -3), "left"))
        right.annotate(method, point, offset, textcoords="offset points", ha=side, fontsize=8)
    right.set_xscale("log")
    right.margins(x=0.4, y=0.15)
    right.set(xlabel="seconds, geometric mean over the sets", ylabel="mean error, %")
    right.set_title("Time and error")
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower left", ncols=3, frameon=False
    )
    save_figure(figure, path)


def _differences(ax: Axes, results: Results) -> None:
    """A row for each set: two forms less the SVM, and the SVM's standard deviation."""
    gaps = {form: results.mean_errors(form) - results.mean_errors(SVM) for form in (MAM, BALANCED)}
    order = np.argsort(gaps[MAM])
    titles = [results.titles[place] for place in order]
    rows = np.arange(len(titles))
    spread = [results.errors(title, SVM).std(ddof=1) for title in titles]
    ax.barh(rows, 2 * np.array(spread), left=-np.array(spread), color="0.9", label="SVM, ± sd")
    ax.axvline(0, c="0.3", lw=1)
    for form, marker in ((MAM, "o"), (BALANCED, "D")):
        ax.scatter(gaps[form][order], rows, 28, marker=marker, label=f"{form} − {SVM}", zorder=3)
    ax.set_yticks(rows, titles)
    ax.set_xlabel("test error, difference in points")
    ax.set_title("Each data set")


def _bounds(results: Results, path: Path) -> None:
    """Bounds and truth by how sure predictions are, one panel for each sample size."""
    least = min(one.delta for one in results.holdings)
    shown = [
        one
        for one in results.holdings
        if one.delta == least and one.setting.by_loo and one.setting.threshold
    ]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(11, 4), layout="constrained", sharey=True, squeeze=False
    )
    for ax, one in zip(axes[0], shown, strict=True):
        _bound_lines(ax, one)
    axes[0, 0].set_ylabel("probability of an error at least as certain")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    save_figure(figure, path)


def _bound_lines(ax: Axes, one: Holding) -> None:
    """Three lines: (14), the count, the truth."""
    ax.plot(100 * SURER, one.bound, c="C3", label="bound (14), mean over samples")
    ax.plot(100 * SURER, one.held_out, c="C0", label=f"bound from {N_HELD_OUT} held-out samples")
    ax.plot(100 * SURER, one.mistakes, c="k", label="truth")
    ax.set(ylim=(0, 1.03), xlim=(100, 0), xlabel="% of predictions, the most certain ones")
    ax.set_title(f"n = {one.setting.n}, δ = {one.delta:g}")
