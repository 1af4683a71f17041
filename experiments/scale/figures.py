"""The figures of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from experiments._page import save_figure
from experiments.scale.gpu import Kernels
from experiments.scale.measuring import Measured
from experiments.scale.model import Cost

_EXACT = "average margin, exact kernel"

MANY_ROWS = 1e10
"""Rows of the extrapolation."""

_BLOCKS = {1e6: 1.8, 1e7: 0.8}
"""Rows of a block, and the width of its line."""


def growth(measurements: Sequence[Measured], path: Path) -> None:
    """Plot the measured seconds of a pass over the number of rows, with one and two workers."""
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    jobs = [
        job
        for job in dict.fromkeys(one.job for one in measurements)
        if job not in ("nothing", _EXACT)
    ]
    for place, job in enumerate(jobs):
        for workers, style in ((1, "--"), (2, "-")):
            points = [one for one in measurements if one.job == job and one.workers == workers]
            if points:
                label = f"{job}, {workers} worker{'s' * (workers > 1)}"
                rows, seconds = zip(*((one.rows, one.each) for one in points), strict=True)
                axes.plot(rows, seconds, f"o{style}", color=f"C{place}", label=label, ms=4)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds of one pass")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)


def machines(measurements: Sequence[Measured], costs: dict[str, Cost], path: Path) -> None:
    """Plot the seconds of one pass over the number of workers: solid as measured, then dashed.

    On the left, each job has the largest number of rows that was measured, and its measurements.
    On the right, all is extrapolated.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    most_workers = max(one.workers for one in measurements)
    within = np.arange(1.0, most_workers + 1)
    few, many = (np.unique(np.geomspace(most_workers, most, 80).round()) for most in (200, 5_000))
    for place, (job, cost) in enumerate(costs.items()):
        own = [one for one in measurements if one.job == job]
        rows = max(one.rows for one in own)
        largest = [one for one in own if one.rows == rows]
        for workers, style in ((within, "-"), (few, "--")):
            seconds = [cost.seconds(rows, largest[0].blocks, each) for each in workers]
            left.plot(workers, seconds, style, color=f"C{place}")
        points = ([one.workers for one in largest], [one.each for one in largest])
        left.plot(*points, "o", color=f"C{place}", ms=5, label=f"{job}, {rows:,} rows")
        for most, width in _BLOCKS.items():
            seconds = [cost.least(MANY_ROWS, each, most)[0] for each in many]
            right.plot(many, seconds, "--", color=f"C{place}", lw=width)
    left.set(ylabel="seconds of one pass", title="the largest measured number of rows")
    right.set(title="10¹⁰ rows: extrapolated")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="worker processes")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        axes.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    handles += [Line2D([], [], color="0.3", ls=style) for style in ("-", "--")]
    labels += ["model, measured numbers of workers", "model, extrapolated"]
    left.legend(handles, labels, fontsize=8)
    lines = [Line2D([], [], color="0.3", ls="--", lw=width) for width in _BLOCKS.values()]
    right.legend(lines, [f"blocks of {most:,.0f} rows" for most in _BLOCKS], fontsize=8)
    save_figure(figure, path)


def kernels(measurements: Sequence[Measured], known: Kernels, path: Path) -> None:
    """Plot the seconds of a fit with fifteen widths, on this machine and on one GPU."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    own = [one for one in measurements if one.job == _EXACT]
    rows, seconds = zip(*((one.rows, one.seconds) for one in own), strict=True)
    axes.plot(rows, seconds, "o-", label="fit, fifteen widths, this machine")
    for (label, points), marker in zip(known.curves.items(), "s^vD", strict=False):
        n, each = zip(*points, strict=True)
        axes.plot(n, each, f"{marker}-", label=f"{label}, {known.device}")
    axes.set(xscale="log", yscale="log", xlabel="samples", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    save_figure(figure, path)
