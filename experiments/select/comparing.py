"""Predictions of both libraries on the same tables: ties and differences."""

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
PEER_PYTHON = Path(".venv-deslib/bin/python")
"""The interpreter with DESlib that `make reproduce` installs."""
METHODS = (
    *("ola", "lca", "rank", "mla", "knora-e"),
    *("knora-u", "des-knn", "des-p", "knop", "meta-des"),
)
PROFILES = {"knop": K, "meta-des": 5}
"""Number of samples with the most similar predictions of the members."""
META_DES = ("near", "similar", "coef", "intercept")
"""The arrays of the peer's fitted META-DES."""
OUTSIDE = "no tie"
VOTE, SINGLE, ORACLE = "majority vote", "single best", "oracle"
REFERENCES = (VOTE, SINGLE, ORACLE)


@dataclass(frozen=True, eq=False)
class Peer:
    """What DESlib returns for some tables.

    Attributes
    ----------
    predictions : dict of ndarray
        The predicted classes of the queries, by method.
    near, similar : ndarray of int, shape (n, k) and (n, k_p)
        The neighbours that META-DES was fitted on, of each tuning sample: by features, and by the
        predictions of the members.
    coef, intercept : ndarray
        The fitted model: log-odds that a member is correct, for each feature, and without any.
    """

    predictions: dict[str, Ints]
    near: Ints
    similar: Ints
    coef: Floats
    intercept: Floats


@dataclass(frozen=True)
class MethodCounts:
    """Counts of one method on some queries.

    Attributes
    ----------
    n : int
        Queries.
    ours, theirs : int
        Correct predictions of both libraries; theirs is 0 without the peer.
    ties : Counter
        Ties, by the first reason that applies.
    apart : Counter
        Different predictions, by that reason, or outside ties.
    """

    n: int
    ours: int
    theirs: int
    ties: Counter[str]
    apart: Counter[str]

    def __add__(self, other: MethodCounts) -> MethodCounts:
        return MethodCounts(
            self.n + other.n,
            self.ours + other.ours,
            self.theirs + other.theirs,
            self.ties + other.ties,
            self.apart + other.apart,
        )

    @property
    def tied(self) -> float:
        """Fraction of the queries that are ties."""
        return self.ties.total() / self.n

    @property
    def same(self) -> float:
        """Fraction of the queries with the same prediction."""
        return 1 - self.apart.total() / self.n

    @property
    def same_outside(self) -> float:
        """The same fraction outside ties."""
        return 1 - self.apart[OUTSIDE] / max(self.n - self.ties.total(), 1)


def peer_python() -> Path | None:
    """Find the interpreter with DESlib: that of MARGRAVE_DESLIB, or the default; else None."""
    named = os.environ.get("MARGRAVE_DESLIB")
    python = Path(named) if named else ROOT / PEER_PYTHON
    if not python.exists():
        return None
    try:
        run_peer(python, "versions")
    except subprocess.CalledProcessError:
        return None
    return python


def run_peer(python: Path, *arguments: str, threads: int = 1) -> Any:
    """Run the peer's script, and return what it prints."""
    command = [str(python), "-m", "experiments.select.peer", *arguments]
    output = subprocess.run(  # noqa: S603  # the interpreter is the user's own
        command,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if arguments == ("versions",) else None,
        text=True,
    ).stdout
    return json.loads(output) if output else None


def theirs(tables: Tables, python: Path) -> Peer:
    """Return the predictions of DESlib, and its fitted META-DES."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "tables.npz", Path(folder) / "predictions.npz"
        np.savez(
            source,
            X_tune=tables.X_tune,
            y_tune=tables.y_tune,
            X_query=tables.X_query,
            proba_tune=tables.proba_tune,
            proba_query=tables.proba_query,
            k=K,
        )
        run_peer(python, "predict", str(source), str(target))
        with np.load(target) as stored:
            predictions = {name: stored[name] for name in METHODS}
            return Peer(predictions, *(stored[name] for name in META_DES))


def ours(tables: Tables, method: str) -> tuple[Ints, dict[str, NDArray[np.bool_]]]:
    """Return our predictions, and the reasons why queries are ties."""
    model = fit(tables, method)
    return model.predict(tables.X_query), find_ties(tables, model)


def fit(tables: Tables, method: str) -> LocalSelectionClassifier:
    """Fit a method of ours on the tuning samples."""
    members = lookups([(tables.X_tune, tables.proba_tune), (tables.X_query, tables.proba_query)])
    model = LocalSelectionClassifier(members, method, K, prefit=True)
    return model.fit(tables.X_tune, tables.y_tune)


def find_ties(tables: Tables, model: LocalSelectionClassifier) -> dict[str, NDArray[np.bool_]]:
    """Find the reasons why queries are ties for a fitted model."""
    explanation = model.explain(tables.X_query)
    right = tables.parts_tune.argmax(axis=2) == tables.y_tune[:, None]
    seen = Seen(
        explanation.votes,
        explanation.competence,
        explanation.selected,
        double_faults(right[explanation.neighbours]),
        _distances(tables, model.method),
    )
    return reasons(model.method, seen)


def _distances(tables: Tables, method: str) -> list[Floats]:
    """Compute distances of the nearest samples, by features and by predictions of the members.

    There is one more sample than the method uses.
    """
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


def compared(tables: Tables, peer: dict[str, Ints] | None) -> dict[str, MethodCounts]:
    """Compare every method with the peer's predictions, if there are any."""
    counts = {}
    for method in METHODS:
        predictions, why = ours(tables, method)
        counts[method] = counted(
            predictions, None if peer is None else peer[method], why, tables.y_query
        )
    return counts


def counted(
    predictions: Ints, peer: Ints | None, why: dict[str, NDArray[np.bool_]], truth: Ints
) -> MethodCounts:
    """Count ties and differences by the first reason that applies."""
    reason = np.full(len(truth), OUTSIDE, dtype=object)
    for name in reversed(REASONS):
        if name in why:
            reason[why[name]] = name
    return MethodCounts(
        n=len(truth),
        ours=int(np.sum(predictions == truth)),
        theirs=0 if peer is None else int(np.sum(peer == truth)),
        ties=Counter(reason[reason != OUTSIDE].tolist()),
        apart=Counter() if peer is None else Counter(reason[predictions != peer].tolist()),
    )


def references(tables: Tables) -> dict[str, int]:
    """Count correct predictions of the vote, of the best member and of the oracle."""
    members = lookups([(tables.X_query, tables.proba_query)])
    vote = VoteClassifier(members, prefit=True).fit(tables.X_query, tables.y_query)
    right = tables.predictions == tables.y_query[:, None]
    tuned = tables.parts_tune.argmax(axis=2) == tables.y_tune[:, None]
    return {
        VOTE: int(np.sum(vote.predict(tables.X_query) == tables.y_query)),
        SINGLE: int(right[:, tuned.mean(axis=0).argmax()].sum()),
        ORACLE: int(right.any(axis=1).sum()),
    }
