"""The page that the study writes: a Markdown template filled in, with its figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from experiments._page import table, versions, write_page
from experiments.scale import figures, gpu
from experiments.scale.measuring import Measured
from experiments.scale.model import Cost, fitted, worst_error

TEMPLATE = Path(__file__).with_name("template.md")
MOST_ROWS = 1_000_000
"""Rows of a block in the model."""

WORKERS = (2, 100, 1_000, 4_000)
ROWS = (1e8, 1e10, 1e12)
_MOST_OFF = 2.5
_NOTHING, _EXACT = "nothing", "average margin, exact kernel"


def write(told: Sequence[Measured], folder: Path, command: str) -> Path:
    """Write the page; gives back where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    costs = prices(told)
    if not command.endswith("--quick"):
        check(costs, told)
    figures.growth(told, folder / "scale_growth.png")
    figures.machines(costs, folder / "scale_machines.png")
    figures.kernels(told, gpu.measured(), folder / "scale_kernels.png")
    any_cost = next(iter(costs.values()))
    return write_page(
        TEMPLATE,
        folder / "scale.md",
        command=command,
        versions=versions(),
        cores=os.cpu_count(),
        growth=growth_table(told),
        model=model_table(costs, told),
        start=f"{1000 * any_cost.start:.0f} ms",
        handing=f"{1000 * any_cost.handing:.2f} ms",
        opening=f"{1000 * any_cost.opening:.2f} ms",
        thousand=thousand_table(costs),
        kernels=kernel_table(told),
        gpu=gpu.told(),
    )


def by_job(told: Sequence[Measured], job: str) -> list[Measured]:
    """What was measured of one job."""
    return [one for one in told if one.job == job]


def jobs(told: Sequence[Measured]) -> list[str]:
    """The jobs that pass over blocks, in the order they were done."""
    return [job for job in dict.fromkeys(one.job for one in told) if job not in (_NOTHING, _EXACT)]


def prices(told: Sequence[Measured]) -> dict[str, Cost]:
    """The cost model of each job."""
    nothing = by_job(told, _NOTHING)
    return {job: fitted(nothing, by_job(told, job)) for job in jobs(told)}


def check(costs: dict[str, Cost], told: Sequence[Measured]) -> None:
    """Refuse a model that does not describe what it was fitted to."""
    for job, cost in costs.items():
        off = worst_error(cost, by_job(told, job))
        if not (cost.handing > 0 and cost.per_row > 0 and off < _MOST_OFF):
            raise ValueError(
                f"The cost model of {job!r} is off by a factor of {off:.2f}, with {cost}: measure "
                "again on a quiet machine."
            )


def growth_table(told: Sequence[Measured]) -> str:
    """Seconds at every size, by one worker and by two."""
    rows = []
    for job in jobs(told):
        for n in dict.fromkeys(one.rows for one in by_job(told, job)):
            at = {one.workers: one for one in by_job(told, job) if one.rows == n}
            passes = next(iter(at.values())).passes
            rows.append([job, f"{n:,}", str(passes), *(_seconds(at.get(w)) for w in (1, 2))])
    return table(["job", "rows", "passes", "one worker (s)", "two (s)"], rows)


def _seconds(one: Measured | None) -> str:
    return "" if one is None else f"{one.seconds:.3g}"


def model_table(costs: dict[str, Cost], told: Sequence[Measured]) -> str:
    """What a million rows cost one worker, and how far the model is off where it was measured."""
    rows = [
        [job, f"{1e6 * cost.per_row:.3g}", f"{worst_error(cost, by_job(told, job)):.2f}"]
        for job, cost in costs.items()
    ]
    return table(["job", "seconds for a million rows", "off by at most the factor"], rows)


def thousand_table(costs: dict[str, Cost]) -> str:
    """What the model says of more machines than we have."""
    rows = []
    for job, cost in costs.items():
        for n in ROWS:
            cells = [f"{cost.least(n, workers, MOST_ROWS)[0]:.3g}" for workers in WORKERS]
            rows.append([job, f"{n:.0e}".replace("e+", "e"), *cells])
    heads = [f"{workers:,} workers" for workers in WORKERS]
    return table(["one pass (s), by the model", "rows", *heads], rows)


def kernel_table(told: Sequence[Measured]) -> str:
    """The exact classifier in memory."""
    rows = [[f"{one.rows:,}", f"{one.seconds:.3g}"] for one in by_job(told, _EXACT)]
    return table(["samples", "fit with fifteen widths (s)"], rows)
