"""The page that the study writes: a Markdown template filled in, with the figures beside it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from experiments._page import versions, write_page
from experiments.steer import figures, said, tables
from experiments.steer.chance import DRAWS
from experiments.steer.data import KNOWN, LEAST, TWICE
from experiments.steer.results import Results
from experiments.steer.rivals import CONFIDENCE, HAS_MAPIE

TEMPLATE = Path(__file__).with_name("template.md")


def write(results: Results, folder: Path, command: str) -> Path:
    """Write the page and its figures; gives back where the page is."""
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_all(results, folder)
    plan = results.plan
    return write_page(
        TEMPLATE,
        folder / "steer.md",
        command=command,
        n_sets=len(plan.titles),
        n_splits=plan.n_splits,
        n_asked=plan.n_asked,
        least=LEAST,
        seed=results.seed,
        versions=versions() + (f", mapie {version('mapie')}" if HAS_MAPIE else ""),
        confidence=f"{CONFIDENCE:g}",
        percents=", ".join(f"{percent} %" for percent in plan.percents),
        n_promises=len(results.cases),
        bars="\n".join(f"- {sentence}" for sentence in said.bars(results)),
        plainly="\n".join(f"- {sentence}" for sentence in said.plainly(results)),
        draws=f"{DRAWS:,}",
        guarantees=tables.guarantees(results),
        quantile=said.quantile(results),
        strategies=tables.strategies(results),
        cost=tables.cost(results),
        by_rate=tables.by_rate(results),
        members=tables.members(results),
        mapie=tables.mapie(results),
        peer=said.peer(results),
        requests=tables.requests(results),
        known=", ".join(KNOWN),
        known_said=said.of_known(results),
        twice=" and ".join(f"{copy} ({of})" for copy, of in TWICE.items()),
    )
