"""DESlib's side, run by an interpreter that has DESlib: its answers, and how long they take.

``python -m experiments.select.peer answers IN.npz OUT.npz`` reads tables of members' answers and
writes what each method answers; ``... timing`` with the numbers of a `Size` prints seconds as JSON;
``... versions`` prints what it runs with. It does not import Margrave.
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from deslib.dcs import LCA, MLA, OLA, Rank  # type: ignore[import-not-found]
from deslib.des import DESKNN, DESP, KNOP, KNORAE, KNORAU, METADES  # type: ignore[import-not-found]

from experiments.select.members import lookups
from experiments.select.timed import Made, Size, asking, made, predicting

METHODS: dict[str, Any] = {
    "ola": OLA,
    "lca": LCA,
    "rank": Rank,
    "mla": MLA,
    "knora-e": KNORAE,
    "knora-u": KNORAU,
    "des-knn": DESKNN,
    "des-p": DESP,
    "knop": KNOP,
    "meta-des": METADES,
}
SLOW = {"des-knn": 100}
"""Methods that would take minutes, and how many queries are timed instead of all."""


def answers(source: str, target: str) -> None:
    """What each method answers to the queries of an .npz, into another."""
    with np.load(source) as given:
        tables = {name: given[name] for name in given.files}
    X_tune, X_query = tables["X_tune"], tables["X_query"]
    members = lookups([(X_tune, tables["proba_tune"]), (X_query, tables["proba_query"])])
    found = {}
    for name, method in METHODS.items():
        model = method(members, k=int(tables["k"]), random_state=0, n_jobs=1)
        found[name] = model.fit(X_tune, tables["y_tune"]).predict(X_query)
    np.savez(target, **found)


def timing(size: Size) -> dict[str, Any]:
    """Seconds to answer, by method; of slow ones, for a few of the queries."""
    data = made(size)
    return {
        "asking": asking(data, size.repeats),
        "methods": {name: _timed(name, data, size) for name in METHODS},
    }


def _timed(name: str, data: Made, size: Size) -> dict[str, Any]:
    model = METHODS[name](data.trees, k=7, random_state=0, n_jobs=size.jobs)
    model.fit(data.X_tune, data.y_tune)
    indexes = [model.roc_algorithm_, *([model.op_knn_] if hasattr(model, "op_knn_") else [])]
    slow = name in SLOW
    return predicting(
        model, indexes, data, SLOW.get(name, size.n_query), 1 if slow else size.repeats
    )


def versions() -> dict[str, str]:
    """What this interpreter has."""
    names = ("DESlib", "numpy", "scikit-learn")
    return {"Python": platform.python_version(), **{name: version(name) for name in names}}


def main(arguments: list[str]) -> None:
    """Do what is asked for."""
    warnings.simplefilter("ignore")  # 0/0 where all weights are 0 is compared, not silenced
    what, *given = arguments
    if what == "answers":
        answers(*given)
    elif what == "timing":
        print(json.dumps(timing(Size(*map(int, given)))))
    else:
        print(json.dumps(versions()))


if __name__ == "__main__":
    main(sys.argv[1:])
