"""The page that the study writes: a Markdown template filled in, with the figures beside it."""

from __future__ import annotations

from pathlib import Path

from experiments._page import versions, write_page
from experiments.martingale import figures, noise, sentences, tables
from experiments.martingale.claims import claims
from experiments.martingale.paper import SOURCES
from experiments.martingale.results import Results

TEMPLATE = Path(__file__).with_name("template.md")


def write(results: Results, folder: Path, run: str) -> Path:
    """Write the page and its figures; returns the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_all(results, folder)
    found = claims(results)
    plan = results.plan
    summary = [
        sentences.by_construction(results),
        *sentences.requests(results),
        sentences.target(results),
        sentences.reproduced(found),
        sentences.distance(results),
        sentences.best_of_all(results),
        *sentences.verdict_on_noise(results),
    ]
    return write_page(
        TEMPLATE,
        folder / "kulkarni.md",
        run=run,
        n_sets=len(plan.titles),
        n_splits=plan.n_splits,
        n_levels=plan.size.n_levels,
        n_rounds=plan.size.n_rounds,
        seed=results.seed,
        versions=versions(),
        summary="\n".join(f"- {sentence}" for sentence in summary),
        requested_cell=tables.requested_cell(results),
        other_cell=tables.other_cell(results),
        control=sentences.control(results),
        n_trees=plan.size.n_trees,
        choice=tables.choice(results),
        chosen_rule=sentences.chosen_rule(results),
        n_choice=len(results.titles("choice")),
        choice_titles=", ".join(results.titles("choice")),
        table_1=tables.table_1(results),
        differences_1=tables.differences(found, 1),
        reproduced_1=sentences.reproduced(found, 1),
        grid=tables.grid(results),
        grid_sentence=sentences.grid(results),
        pictured=plan.pictured,
        errors_sentence=sentences.errors_by_levels(results),
        table_2=tables.table_2(results),
        epsilon=f"{results.frozen.epsilon:g}",
        freezing=sentences.freezing(results),
        tuned_requests=sentences.tuned_requests(results),
        programs=sentences.programs(results),
        differences_2=tables.differences(found, 2),
        reproduced_2=sentences.reproduced(found, 2),
        fractions=tables.fractions(results),
        impossible=sentences.impossible(results),
        program=tables.program(results),
        beside=tables.beside(results),
        levels_sentence=sentences.by_levels(results),
        times=tables.times(results),
        times_sentence=sentences.times(results),
        granularity=tables.granularity(results),
        granularity_sentence=sentences.granularity(results),
        differences_4=tables.differences(found, 4),
        reproduced_4=sentences.reproduced(found, 4),
        noise_epsilon=f"{noise.FREEZE:g}",
        stump_width=noise.STUMP_WIDTH,
        noise=tables.with_noise(results),
        noise_sentence=sentences.noise(results),
        rivals=tables.rivals(results),
        settled="\n".join(_settled(results)),
    )


def _settled(results: Results) -> list[str]:
    """Choices for the data sets that the paper leaves open."""
    lines = [
        f"- {title}: {SOURCES[title].settled}"
        for title in results.plan.titles
        if SOURCES[title].settled
    ]
    missing = [title for title in SOURCES if title not in results.plan.titles]
    return [*lines, f"- Not in this run: {', '.join(missing)}."] if missing else lines
