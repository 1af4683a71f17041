"""The page of the study: a Markdown template and its figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from experiments._page import table, versions, write_page
from experiments.scale import figures, gpu
from experiments.scale.measuring import Measured
from experiments.scale.model import Cost, fit_cost, worst_error

TEMPLATE = Path(__file__).with_name("template.md")
MOST_ROWS = 1_000_000
"""Rows of a block in the model."""

WORKERS = (2, 100, 1_000, 4_000)
_MAX_FACTOR = 2.5
_NOTHING, _EXACT = "nothing", "average margin, exact kernel"


def write(measurements: Sequence[Measured], folder: Path, run: str) -> Path:
    """Write the page and its figures, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    costs = fit_costs(measurements)
    if "--quick" not in run:
        check(costs, measurements)
    figures.growth(measurements, folder / "scale_growth.png")
    figures.machines(measurements, costs, folder / "scale_machines.png")
    figures.kernels(measurements, gpu.measured(), folder / "scale_kernels.png")
    any_cost = next(iter(costs.values()))
    return write_page(
        TEMPLATE,
        folder / "scale.md",
        run=run,
        versions=versions(),
        cores=os.cpu_count(),
        growth=growth_table(measurements),
        model=model_table(costs, measurements),
        start=f"{1000 * any_cost.start:.0f} ms",
        dispatch=f"{1000 * any_cost.dispatch:.2f} ms",
        opening=f"{1000 * any_cost.opening:.2f} ms",
        kernels=kernel_table(measurements),
        gpu=gpu.describe(),
    )


def by_job(measurements: Sequence[Measured], job: str) -> list[Measured]:
    """Select the measurements of one job."""
    return [one for one in measurements if one.job == job]


def jobs(measurements: Sequence[Measured]) -> list[str]:
    """List the jobs that pass over blocks, in the order of the measurements."""
    return [
        job
        for job in dict.fromkeys(one.job for one in measurements)
        if job not in (_NOTHING, _EXACT)
    ]


def fit_costs(measurements: Sequence[Measured]) -> dict[str, Cost]:
    """Fit the cost model of each job."""
    nothing = by_job(measurements, _NOTHING)
    return {job: fit_cost(nothing, by_job(measurements, job)) for job in jobs(measurements)}


def check(costs: dict[str, Cost], measurements: Sequence[Measured]) -> None:
    """Raise an error if a model does not describe the measurements."""
    for job, cost in costs.items():
        factor = worst_error(cost, by_job(measurements, job))
        if not (cost.dispatch > 0 and cost.per_row > 0 and factor < _MAX_FACTOR):
            raise ValueError(
                f"The cost model of {job!r} is off by a factor of {factor:.2f}, with {cost}. "
                "Measure again on a quiet machine."
            )


def growth_table(measurements: Sequence[Measured]) -> str:
    """Make a table of the times at every size, with one and two workers."""
    rows = []
    for job in jobs(measurements):
        for n in dict.fromkeys(one.rows for one in by_job(measurements, job)):
            at = {one.workers: one for one in by_job(measurements, job) if one.rows == n}
            passes = next(iter(at.values())).passes
            rows.append([job, f"{n:,}", str(passes), *(_seconds(at.get(w)) for w in (1, 2))])
    return table(["job", "rows", "passes", "one worker (s)", "two (s)"], rows)


def _seconds(one: Measured | None) -> str:
    return "" if one is None else f"{one.seconds:.3g}"


def model_table(costs: dict[str, Cost], measurements: Sequence[Measured]) -> str:
    """Make a table of the model: time per row, largest error, and times with many machines."""
    rows = []
    for job, cost in costs.items():
        factor = worst_error(cost, by_job(measurements, job))
        many = [cost.least(figures.MANY_ROWS, workers, MOST_ROWS)[0] for workers in WORKERS]
        rows.append([job, f"{1e6 * cost.per_row:.3g}", f"{factor:.2f}", *map(_rounded, many)])
    heads = [f"{workers:,} workers" for workers in WORKERS]
    return table(["job", "s per million rows", "error factor", *heads], rows)


def _rounded(seconds: float) -> str:
    return f"{float(f'{seconds:.3g}'):,.10g}"


def kernel_table(measurements: Sequence[Measured]) -> str:
    """Make a table of the exact classifier in memory."""
    rows = [[f"{one.rows:,}", f"{one.seconds:.3g}"] for one in by_job(measurements, _EXACT)]
    return table(["samples", "fit with fifteen widths (s)"], rows)
