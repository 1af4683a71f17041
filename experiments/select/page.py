"""The page of the study: a Markdown template."""

from __future__ import annotations

from pathlib import Path

from experiments._page import versions, write_page
from experiments.select import findings, tables
from experiments.select.data import DEPTH, N_TREES, PARTS, K, members
from experiments.select.results import Results
from experiments.select.ties import AS_FAR, EQUAL
from experiments.select.timing import ROUNDS

TEMPLATE = Path(__file__).with_name("template.md")


def write(results: Results, folder: Path, run: str) -> Path:
    """Write the page, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    plan, size = results.plan, results.plan.size
    return write_page(
        TEMPLATE,
        folder / "deslib.md",
        run=run,
        n_sets=len(plan.titles),
        n_splits=plan.n_splits,
        seed=results.seed,
        versions=versions(),
        peer=findings.peer(results),
        targets="\n".join(f"- {sentence}" for sentence in findings.targets(results)),
        k=K,
        n_members=N_TREES + len(members(0)),
        n_trees=N_TREES,
        depth=DEPTH,
        parts=PARTS,
        equal=_power(EQUAL),
        as_far=_power(AS_FAR),
        methods=tables.methods(results),
        meta_des=findings.meta_des(results),
        accuracy=tables.accuracy(results),
        better=findings.better(results),
        n_tune=f"{size.n_tune:,}",
        n_query=f"{size.n_query:,}",
        timed_trees=size.n_trees,
        timed_depth=f"of depth {size.depth}" if size.depth else "of any depth",
        timed_jobs=size.jobs,
        repeats=size.repeats * ROUNDS,
        members_time=_members_time(results),
        times=tables.times(results),
    )


def _power(number: float) -> str:
    return f"{number:.0e}".replace("e-0", "e-")


def _members_time(results: Results) -> str:
    mine = f"{results.ours['members']:.3g} s here"
    if results.theirs is None:
        return mine
    return f"{mine} and {results.theirs['members']:.3g} s in DESlib's environment"
