"""The page that the study writes: a Markdown template filled in, with the figures beside it."""

from __future__ import annotations

from pathlib import Path

from experiments._page import versions, write_page
from experiments.martingale import figures, noise, said, tables
from experiments.martingale.claims import claims
from experiments.martingale.document import SOURCES
from experiments.martingale.results import Results

TEMPLATE = Path(__file__).with_name("template.md")


def write(results: Results, folder: Path, command: str) -> Path:
    """Write the page and its figures; gives back where the page is."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_all(results, folder)
    found = claims(results)
    plan = results.plan
    summary = [
        *said.requests(results),
        said.reproduced(found),
        said.distance(results),
        said.best_of_all(results),
        *said.verdict_on_noise(results),
    ]
    return write_page(
        TEMPLATE,
        folder / "martingale.md",
        command=command,
        n_sets=len(plan.titles),
        n_splits=plan.n_splits,
        n_levels=plan.size.n_levels,
        n_rounds=plan.size.n_rounds,
        seed=results.seed,
        versions=versions(),
        summary="\n".join(f"- {sentence}" for sentence in summary),
        requests=tables.requests(results),
        table_1=tables.table_1(results),
        differences_1=tables.differences(found, 1),
        reproduced_1=said.reproduced(found, 1),
        grid=tables.grid(results),
        grid_said=said.grid(results),
        pictured=plan.pictured,
        errors_said=said.errors_by_levels(results),
        table_2=tables.table_2(results),
        epsilon=f"{results.frozen.epsilon:g}",
        freezing=said.freezing(results),
        tuned_requests=said.tuned_requests(results),
        programs=said.programs(results),
        differences_2=tables.differences(found, 2),
        reproduced_2=said.reproduced(found, 2),
        shares=tables.shares(results),
        impossible=said.impossible(results),
        program=tables.program(results),
        beside=tables.beside(results),
        levels_said=said.by_levels(results),
        times=tables.times(results),
        times_said=said.times(results),
        granularity=tables.granularity(results),
        granularity_said=said.granularity(results),
        differences_4=tables.differences(found, 4),
        reproduced_4=said.reproduced(found, 4),
        noise_epsilon=f"{noise.FREEZE:g}",
        stump_width=noise.STUMP_WIDTH,
        noise=tables.with_noise(results),
        noise_said=said.noise(results),
        rivals=tables.rivals(results),
        settled="\n".join(_settled(results)),
    )


def _settled(results: Results) -> list[str]:
    """What had to be settled for the data sets."""
    lines = [
        f"- {title}: {SOURCES[title].settled}"
        for title in results.plan.titles
        if SOURCES[title].settled
    ]
    missing = [title for title in SOURCES if title not in results.plan.titles]
    return [*lines, f"- Not in this run: {', '.join(missing)}."] if missing else lines
