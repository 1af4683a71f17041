"""Write ``tests/select/deslib.npz``: ``python -m experiments.select.fixture``.

It needs the peer's interpreter (see `comparing.peer_python`). Of each data set it keeps the first
150 tuning samples and 150 queries of one split, what the members say about them, and what each of
DESlib's methods answers. Features are half floats and probabilities whole parts, both exact.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments._parts import Ints
from experiments.select.comparing import METHODS, ROOT, asked_of, peer_python, theirs
from experiments.select.data import TITLES, Tables, tables

OUT = ROOT / "tests" / "select" / "deslib.npz"
N_ROWS = 150
SEED = 0


def packed(given: Tables, peer: dict[str, Ints]) -> dict[str, NDArray[Any]]:
    """Tables and answers, small."""
    return {
        "X_tune": given.X_tune.astype(np.float16),
        "y_tune": given.y_tune.astype(np.uint8),
        "X_query": given.X_query.astype(np.float16),
        "y_query": given.y_query.astype(np.uint8),
        "parts_tune": given.parts_tune,
        "parts_query": given.parts_query,
        "answers": np.stack([peer[method] for method in METHODS]).astype(np.uint8),
    }


def read(path: Path) -> dict[str, tuple[Tables, dict[str, Ints]]]:
    """Tables and DESlib's answers by method, for each data set."""
    found = {}
    with np.load(path) as kept:
        for title in dict.fromkeys(name.split(".")[0] for name in kept.files):
            part = {name: kept[f"{title}.{name}"] for name in _NAMES}
            given = Tables(
                part["X_tune"].astype(np.float64),
                part["y_tune"].astype(np.int64),
                part["X_query"].astype(np.float64),
                part["y_query"].astype(np.int64),
                part["parts_tune"],
                part["parts_query"],
            )
            answers = part["answers"].astype(np.int64)
            found[title] = given, dict(zip(METHODS, answers, strict=True))
    return found


_NAMES = ("X_tune", "y_tune", "X_query", "y_query", "parts_tune", "parts_query", "answers")


def main() -> int:
    """Ask DESlib, and write what it says."""
    python = peer_python()
    if python is None:
        print("DESlib is not here: see docs/experiments/select.md.", file=sys.stderr)
        return 1
    arrays = {}
    for title in TITLES:
        given = tables(title, SEED).first(N_ROWS)
        for name, array in packed(given, theirs(given, python)).items():
            arrays[f"{title}.{name}"] = array
    OUT.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT, **arrays)  # type: ignore[arg-type]  # numpy's stub has a flag here
    print(f"{OUT.relative_to(ROOT)}: {OUT.stat().st_size:,} bytes, {asked_of(python, 'versions')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
