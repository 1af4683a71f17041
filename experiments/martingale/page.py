"""The page that the study writes: a Markdown template filled in, with the figures beside it."""

from __future__ import annotations

from pathlib import Path

from experiments._page import versions, write_page
from experiments.martingale import figures, sentences, tables
from experiments.martingale.claims import claims
from experiments.martingale.paper import PROGRAM_TIMES
from experiments.martingale.results import Results

TEMPLATE = Path(__file__).with_name("template.md")


def write(results: Results, folder: Path, run: str) -> Path:
    """Write the page and its figures; returns the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_all(results, folder)
    found = claims(results)
    plan = results.plan
    impossible = sentences.impossible(results)
    return write_page(
        TEMPLATE,
        folder / "kulkarni.md",
        run=run,
        n_sets=len(plan.titles),
        n_splits=plan.n_splits,
        n_rounds=plan.size.n_rounds,
        n_trees=plan.size.n_trees,
        seed=results.seed,
        versions=versions(),
        reproduced=sentences.reproduced(found),
        p_of_significant=sentences.p_of_significant(results),
        distance=sentences.distance(results),
        n_impossible=len(impossible),
        impossible="\n".join(f"  - {line}" for line in impossible),
        default_request=sentences.default_request(results),
        best_of_all=sentences.best_of_all(results),
        noise_verdict=sentences.noise_verdict(results),
        epsilon=f"{results.freeze:g}",
        program_met=sentences.program_met(),
        program=tables.program(results),
        by_construction=sentences.by_construction(results),
        requests=tables.requests(results),
        chosen_rule=sentences.chosen_rule(results),
        grid=sentences.grid(results),
        table_1=tables.table_1(results),
        reproduced_1=sentences.reproduced_in(found, 1),
        pictured=plan.pictured,
        errors_sentence=sentences.errors_by_levels(results),
        table_2=tables.table_2(results),
        differences_2=tables.differences(found),
        levels_sentence=sentences.by_levels(results),
        times=tables.times(results),
        program_ratio=f"{PROGRAM_TIMES[1] / PROGRAM_TIMES[0]:.0f}",
        granularity=tables.granularity(results),
        reproduced_4=sentences.reproduced_in(found, 4),
        first_rate=f"{100 * plan.rates[0]:g} %",
        last_rate=f"{100 * plan.rates[-1]:g} %",
        noise=tables.with_noise(results),
    )
