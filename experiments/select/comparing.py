"""Both libraries on the same tables: answers, ties, and what differs."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from experiments._parts import Floats, Ints
from experiments.select.data import K, Tables
from experiments.select.members import lookups
from experiments.select.ties import REASONS, Seen, double_faults, reasons
from margrave.fuse import VoteClassifier
from margrave.select import LocalSelectionClassifier

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path(".venv-deslib/bin/python")
"""Where `make reproduce` puts the peer's interpreter."""
METHODS = (
    *("ola", "lca", "rank", "mla", "knora-e"),
    *("knora-u", "des-knn", "des-p", "knop", "meta-des"),
)
PROFILES = {"knop": K, "meta-des": 5}
"""How many samples are looked for that the members answer alike."""
OUTSIDE = "no tie"
VOTE, SINGLE, ORACLE = "majority vote", "single best", "oracle"
REFERENCES = (VOTE, SINGLE, ORACLE)


@dataclass(frozen=True)
class Found:
    """One method on some queries; counts.

    Attributes
    ----------
    n : int
        Queries.
    ours, theirs : int
        Right answers of both; theirs is 0 without the peer.
    ties : Counter
        Queries that are ties, by the first reason that holds.
    apart : Counter
        Queries that are answered differently, by that reason, or outside ties.
    """

    n: int
    ours: int
    theirs: int
    ties: Counter[str]
    apart: Counter[str]

    def __add__(self, other: Found) -> Found:
        return Found(
            self.n + other.n,
            self.ours + other.ours,
            self.theirs + other.theirs,
            self.ties + other.ties,
            self.apart + other.apart,
        )

    @property
    def tied(self) -> float:
        """Share of the queries that are ties."""
        return self.ties.total() / self.n

    @property
    def same(self) -> float:
        """Share that is answered alike."""
        return 1 - self.apart.total() / self.n

    @property
    def same_outside(self) -> float:
        """The same outside ties."""
        return 1 - self.apart[OUTSIDE] / max(self.n - self.ties.total(), 1)


def peer_python() -> Path | None:
    """The interpreter that has DESlib: named by MARGRAVE_DESLIB, or in its place; None if not."""
    named = os.environ.get("MARGRAVE_DESLIB")
    found = Path(named) if named else ROOT / PLACE
    if not found.exists():
        return None
    try:
        asked_of(found, "versions")
    except subprocess.CalledProcessError:
        return None
    return found


def asked_of(python: Path, *arguments: str, threads: int = 1) -> Any:
    """What the peer's script prints, on so many threads."""
    command = [str(python), "-m", "experiments.select.peer", *arguments]
    said = subprocess.run(  # noqa: S603  # the interpreter is the user's own
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if arguments == ("versions",) else None,
        text=True,
    ).stdout
    return json.loads(said) if said else None


def theirs(tables: Tables, python: Path) -> dict[str, Ints]:
    """DESlib's answers, by method."""
    with tempfile.TemporaryDirectory() as folder:
        given, got = Path(folder) / "given.npz", Path(folder) / "got.npz"
        np.savez(
            given,
            X_tune=tables.X_tune,
            y_tune=tables.y_tune,
            X_query=tables.X_query,
            proba_tune=tables.proba_tune,
            proba_query=tables.proba_query,
            k=K,
        )
        asked_of(python, "answers", str(given), str(got))
        with np.load(got) as found:
            return {name: found[name] for name in METHODS}


def ours(tables: Tables, method: str) -> tuple[Ints, dict[str, NDArray[np.bool_]]]:
    """Our answers, and why queries are ties."""
    members = lookups([(tables.X_tune, tables.proba_tune), (tables.X_query, tables.proba_query)])
    model = LocalSelectionClassifier(members, method, K, prefit=True)
    told = model.fit(tables.X_tune, tables.y_tune).explain(tables.X_query)
    right = tables.parts_tune.argmax(axis=2) == tables.y_tune[:, None]
    seen = Seen(
        told.votes,
        told.competence,
        told.selected,
        double_faults(right[told.neighbours]),
        _distances(tables, method),
    )
    return model.predict(tables.X_query), reasons(method, seen)


def _distances(tables: Tables, method: str) -> list[Floats]:
    """Of the nearest samples, by features and by what the members say; one more than is taken."""
    found = []
    if method != "knop":
        found.append(_nearest(tables.X_tune, tables.X_query, K + 1))
    if method in PROFILES:
        flat = [each.reshape(len(each), -1) for each in (tables.proba_tune, tables.proba_query)]
        found.append(_nearest(flat[0], flat[1], PROFILES[method] + 1))
    return found


def _nearest(X: Floats, queries: Floats, k: int) -> Floats:
    distance: Floats = NearestNeighbors(n_neighbors=k).fit(X).kneighbors(queries)[0]
    return distance


def compared(tables: Tables, peer: dict[str, Ints] | None) -> dict[str, Found]:
    """Every method, beside the peer's answers if there are some."""
    found = {}
    for method in METHODS:
        answers, why = ours(tables, method)
        found[method] = counted(
            answers, None if peer is None else peer[method], why, tables.y_query
        )
    return found


def counted(
    answers: Ints, peer: Ints | None, why: dict[str, NDArray[np.bool_]], truth: Ints
) -> Found:
    """Count ties and differences by the first reason that holds."""
    reason = np.full(len(truth), OUTSIDE, dtype=object)
    for name in reversed(REASONS):
        if name in why:
            reason[why[name]] = name
    return Found(
        n=len(truth),
        ours=int(np.sum(answers == truth)),
        theirs=0 if peer is None else int(np.sum(peer == truth)),
        ties=Counter(reason[reason != OUTSIDE].tolist()),
        apart=Counter() if peer is None else Counter(reason[answers != peer].tolist()),
    )


def references(tables: Tables) -> dict[str, int]:
    """Right answers of all members together, of the best one, and of whoever is right."""
    members = lookups([(tables.X_query, tables.proba_query)])
    vote = VoteClassifier(members, prefit=True).fit(tables.X_query, tables.y_query)
    right = tables.answers == tables.y_query[:, None]
    tuned = tables.parts_tune.argmax(axis=2) == tables.y_tune[:, None]
    return {
        VOTE: int(np.sum(vote.predict(tables.X_query) == tables.y_query)),
        SINGLE: int(right[:, tuned.mean(axis=0).argmax()].sum()),
        ORACLE: int(right.any(axis=1).sum()),
    }
