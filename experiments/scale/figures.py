"""The figures of the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter

from experiments._page import save_figure
from experiments.scale.gpu import Kernels
from experiments.scale.measuring import Measured
from experiments.scale.model import Cost

_EXACT = "average margin, exact kernel"


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


def machines(costs: dict[str, Cost], path: Path) -> None:
    """Plot the seconds of one pass over 1e10 rows by the model, over the number of workers."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    workers = np.logspace(0, np.log10(5_000), 60)
    for place, (job, cost) in enumerate(costs.items()):
        for most, style, named in ((1e6, "-", "a million"), (1e7, ":", "ten million")):
            seconds = [cost.least(1e10, one, most)[0] for one in workers]
            label = f"{job}, blocks of {named} rows"
            axes.plot(workers, seconds, style, color=f"C{place}", label=label)
    axes.set(xscale="log", yscale="log", xlabel="worker processes")
    axes.set_ylabel("seconds of one pass over 10¹⁰ rows (model)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
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
