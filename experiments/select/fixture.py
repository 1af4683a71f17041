"""Write ``tests/select/deslib.npz``: ``python -m experiments.select.fixture``.

It needs the peer's interpreter (see `comparing.peer_python`). For each data set it stores the first
150 tuning samples and 150 queries of one split, the members' probabilities, the predictions of
each of DESlib's methods, and the neighbours and coefficients of its META-DES. Features are half
floats and probabilities integer parts, both exact.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.select.comparing import (
    META_DES,
    METHODS,
    ROOT,
    Peer,
    peer_python,
    run_peer,
    theirs,
)
from experiments.select.data import TITLES, Tables, make_tables

OUT = ROOT / "tests" / "select" / "deslib.npz"
N_ROWS = 150
SEED = 0


def pack(tables: Tables, peer: Peer) -> dict[str, NDArray[Any]]:
    """Convert tables and predictions to small types."""
    return {
        "X_tune": tables.X_tune.astype(np.float16),
        "y_tune": tables.y_tune.astype(np.uint8),
        "X_query": tables.X_query.astype(np.float16),
        "y_query": tables.y_query.astype(np.uint8),
        "parts_tune": tables.parts_tune,
        "parts_query": tables.parts_query,
        "answers": np.stack([peer.predictions[method] for method in METHODS]).astype(np.uint8),
        "near": peer.near.astype(np.uint8),
        "similar": peer.similar.astype(np.uint8),
        "coef": peer.coef,
        "intercept": peer.intercept,
    }


def read(path: Path) -> dict[str, tuple[Tables, Peer]]:
    """Read the tables, and what DESlib returns for them, for each data set."""
    sets = {}
    with np.load(path) as stored:
        for title in dict.fromkeys(name.split(".")[0] for name in stored.files):
            part = {name: stored[f"{title}.{name}"] for name in _NAMES}
            tables = Tables(
                part["X_tune"].astype(np.float64),
                part["y_tune"].astype(np.int64),
                part["X_query"].astype(np.float64),
                part["y_query"].astype(np.int64),
                part["parts_tune"],
                part["parts_query"],
            )
            predictions = dict(zip(METHODS, part["answers"].astype(np.int64), strict=True))
            near, similar = (part[name].astype(np.int64) for name in ("near", "similar"))
            sets[title] = tables, Peer(predictions, near, similar, part["coef"], part["intercept"])
    return sets


_NAMES = (
    *("X_tune", "y_tune", "X_query", "y_query", "parts_tune", "parts_query"),
    *("answers", *META_DES),
)


def main() -> int:
    """Write the tables and the predictions of DESlib."""
    python = peer_python()
    if python is None:
        print("DESlib is not installed; see docs/papers/deslib.md.", file=sys.stderr)
        return 1
    arrays = {}
    for title in TITLES:
        first = make_tables(title, SEED).first(N_ROWS)
        for name, array in pack(first, theirs(first, python)).items():
            arrays[f"{title}.{name}"] = array
    OUT.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT, **arrays)  # type: ignore[arg-type]  # numpy's stub has a flag here
    print(f"{OUT.relative_to(ROOT)}: {OUT.stat().st_size:,} bytes, {run_peer(python, 'versions')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
