"""The page of the study: a Markdown template filled in, with the plots beside it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from experiments._page import versions, write_page
from experiments.steer import figures, findings, tables
from experiments.steer.chance import N_DRAWS
from experiments.steer.data import DUPLICATES, MIN_DISTINCT, MIN_ROWS, NOT_NEW
from experiments.steer.learn_then_test import HAS_MAPIE, N_ABOVE, N_QUANTILES
from experiments.steer.results import Results
from experiments.steer.rivals import CONFIDENCE, N_ROUNDS

TEMPLATE = Path(__file__).with_name("template.md")


def write(results: Results, folder: Path, run: str) -> Path:
    """Write the page and its plots; return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_all(results, folder)
    plan = results.plan
    return write_page(
        TEMPLATE,
        folder / "guarantees.md",
        run=run + (f" (incomplete: {results.n_missing} splits)" if results.n_missing else ""),
        n_sets=len(plan.titles),
        n_splits=plan.n_splits,
        min_rows=MIN_ROWS,
        min_distinct=f"{100 * MIN_DISTINCT:.0f} %",
        seed=results.seed,
        versions=versions() + (f", mapie {version('mapie')}" if HAS_MAPIE else ""),
        confidence=f"{CONFIDENCE:g}",
        percents=_join_rates(plan.percents),
        n_cases=f"{len(results.cases):,}",
        targets="\n".join(f"- {sentence}" for sentence in findings.targets(results)),
        n_draws=f"{N_DRAWS:,}",
        guarantees=tables.guarantees(results),
        tuning_quantile=findings.tuning_quantile(results),
        best_member=findings.best_member(results),
        n_rounds=N_ROUNDS,
        rivals=tables.rivals(results),
        others=findings.others(results),
        n_quantiles=N_QUANTILES,
        n_above=N_ABOVE,
        mapie=findings.mapie(results),
        data_sets=tables.data_sets(results),
        not_new=", ".join(NOT_NEW),
        duplicates=" and ".join(f"{copy} ({of})" for copy, of in DUPLICATES.items()),
    )


def _join_rates(percents: tuple[int, ...]) -> str:
    """1, 2 or 5 %."""
    *first, last = map(str, percents)
    return f"{', '.join(first)} or {last} %" if first else f"{last} %"
