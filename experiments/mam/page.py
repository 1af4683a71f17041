"""The page that the study writes: a Markdown template filled in, with the figures beside it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from experiments._page import listed, versions, write_page
from experiments.mam import figures, sentences, tables
from experiments.mam.artificial import BAYES, CELLS
from experiments.mam.coverage import N_HELD_OUT, N_PROBES
from experiments.mam.holding import BAR
from experiments.mam.large import N_COMPONENTS, N_SEARCH, NYSTROEM, RANDOM
from experiments.mam.ordering import HAS_MORD
from experiments.mam.ordering import PARTS_OF_GAMMA as RIDGE_WIDTHS
from experiments.mam.results import Results

TEMPLATE = Path(__file__).with_name("template.md")


def write(results: Results, folder: Path, run: str) -> Path:
    """Write the page and its figures; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_all(results, folder)
    plan = results.plan
    return write_page(
        TEMPLATE,
        folder / "pelckmans.md",
        run=run,
        seed=results.seed,
        versions=versions() + (f", mord {version('mord')}" if HAS_MORD else ""),
        verdicts="\n".join(f"- {sentence}" for sentence in sentences.verdicts(results)),
        printed=sentences.printed(results),
        not_there=sentences.not_there(results),
        n_splits=plan.n_splits,
        n_settings=len(plan.effort.costs) * len(plan.effort.gammas),
        folds=plan.effort.n_folds,
        fewest=min(plan.effort.neighbours),
        most=max(plan.effort.neighbours),
        n_trees=plan.effort.n_trees,
        errors=tables.errors(results),
        gaps=sentences.gaps(results),
        n_monte_carlo=plan.n_monte_carlo,
        bins=listed([str(bins) for bins in plan.bins]),
        n_ordinal=plan.n_ordinal,
        n_widths=len(RIDGE_WIDTHS),
        peer=sentences.peer(),
        rankers=tables.rankers(results),
        section_5=sentences.section_5(results),
        binned=sentences.binned(results),
        large_limit=plan.sizes.limit,
        large_train=f"{plan.sizes.train:,}",
        large_test=f"{plan.sizes.test:,}",
        random_components=f"{N_COMPONENTS[RANDOM]:,}",
        nystroem_components=N_COMPONENTS[NYSTROEM],
        n_search=f"{N_SEARCH:,}",
        large=tables.large(results),
        large_gaps=sentences.large_gaps(results),
        bayes=f"{100 * BAYES:.1f} %",
        points=f"{2 * CELLS:,}",
        probes=N_PROBES,
        held_out=N_HELD_OUT,
        bar=f"{BAR:g}",
        bounds=tables.bounds(results),
        theorems=sentences.theorems(results),
    )
