"""The page that the study writes: a Markdown template filled in, with the figures beside it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from experiments._page import versions, write_page
from experiments.mam import figures, sentences, tables
from experiments.mam.artificial import BAYES, CELLS
from experiments.mam.classifying import BALANCED, MAM, PRINTED, SVM
from experiments.mam.coverage import GAMMA, N_HELD_OUT, N_PROBES
from experiments.mam.holding import BAR
from experiments.mam.large import ALPHAS, N_COMPONENTS, N_SEARCH, NYSTROEM, RANDOM
from experiments.mam.ordering import HAS_MORD
from experiments.mam.ordering import PARTS_OF_GAMMA as RIDGE_WIDTHS
from experiments.mam.results import Results

TEMPLATE = Path(__file__).with_name("template.md")


def write(results: Results, folder: Path, run: str) -> Path:
    """Write the page and its figures; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_all(results, folder)
    plan = results.plan
    has_bins = bool(results.binned)
    return write_page(
        TEMPLATE,
        folder / "pelckmans.md",
        run=run,
        seed=results.seed,
        versions=versions() + (f", mord {version('mord')}" if HAS_MORD else ""),
        in_short="\n".join(f"- {sentence}" for sentence in sentences.in_short(results)),
        not_there=sentences.not_there(results),
        n_splits=plan.n_splits,
        n_trees=plan.effort.n_trees,
        costs=", ".join(f"{cost:g}" for cost in plan.effort.costs),
        parts_of_gamma=", ".join(f"{part:g}" for part in plan.effort.gammas),
        folds=plan.effort.n_folds,
        n_settings=len(plan.effort.costs) * len(plan.effort.gammas),
        neighbours=", ".join(map(str, plan.effort.neighbours)),
        errors=tables.errors(results),
        svm_near=sentences.listed(
            [f"{form} on {len(results.near(form))}" for form in (MAM, BALANCED, PRINTED)]
        ),
        svm=SVM,
        n_sets=len(results.titles),
        tests="\n\n".join(str(results.tested(form)) for form in (MAM, BALANCED, PRINTED)),
        seconds=tables.seconds(results),
        n_monte_carlo=plan.n_monte_carlo,
        n_widths=len(RIDGE_WIDTHS),
        peer=sentences.peer(),
        section_5=tables.section_5(results),
        n_ordinal=plan.n_ordinal,
        bins=sentences.listed([str(bins) for bins in plan.bins]),
        rankers=tables.rankers(results) if has_bins else "No set is at hand.",
        ranks_tested=str(results.ranks_tested()) if has_bins else "No set is at hand.",
        graders=tables.graders(results) if has_bins else "No set is at hand.",
        **large_values(results),
        bayes=f"{BAYES:.1%}",
        points=f"{2 * CELLS:,}",
        gamma=f"{GAMMA:g}",
        probes=N_PROBES,
        held_out=N_HELD_OUT,
        bar=f"{BAR:g}",
        bounds=tables.bounds(results),
        printed=sentences.printed(results),
    )


def large_values(results: Results) -> dict[str, object]:
    """What the section on large data shows."""
    sizes = results.plan.sizes
    return {
        "large_limit": sizes.limit,
        "large_train": f"{sizes.train:,}",
        "large_test": f"{sizes.test:,}",
        "random_components": f"{N_COMPONENTS[RANDOM]:,}",
        "nystroem_components": N_COMPONENTS[NYSTROEM],
        "n_search": f"{N_SEARCH:,}",
        "alphas": ", ".join(f"{alpha:g}" for alpha in ALPHAS),
        "large_errors": tables.large_errors(results),
        "large_seconds": tables.large_seconds(results),
    }
