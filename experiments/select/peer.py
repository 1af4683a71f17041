"""DESlib's predictions and times; an interpreter with DESlib runs this module.

``python -m experiments.select.peer predict IN.npz OUT.npz`` reads tables of members' probabilities
and writes the predictions of each method, and the model that META-DES fitted; ``... timing`` with
the numbers of a `Size` prints seconds as JSON; ``... versions`` prints the versions. It does not
import Margrave.
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
from experiments.select.timed import Size, SyntheticData, make_synthetic, predicting, time_members

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
"""Methods that would take minutes, and the number of queries to time instead of all."""


def predict(source: str, target: str) -> None:
    """Predict the queries of an .npz file by each method, and write another file.

    It has the model of META-DES too, and the neighbours that it was fitted on.
    """
    with np.load(source) as stored:
        tables = {name: stored[name] for name in stored.files}
    X_tune, X_query = tables["X_tune"], tables["X_query"]
    members = lookups([(X_tune, tables["proba_tune"]), (X_query, tables["proba_query"])])
    found = {}
    for name, method in METHODS.items():
        model = method(members, k=int(tables["k"]), random_state=0, n_jobs=1)
        found[name] = model.fit(X_tune, tables["y_tune"]).predict(X_query)
        if name == "meta-des":
            found |= fitted_meta_des(model)
    np.savez(target, **found)


def fitted_meta_des(model: Any) -> dict[str, Any]:
    """Return the neighbours that META-DES was fitted on, as its ``fit`` finds them, and its model.

    The neighbours are those of `METADES._generate_meta_training_set`, which leaves out the first.
    """
    near = model.get_competence_region(model.DSEL_data_, model.k_ + 1)[1][:, 1:]
    similar = model._get_similar_out_profiles(model.dsel_scores_, model.Kp_ + 1)[1][:, 1:]
    bayes = model.meta_classifier_
    wrong, correct = bayes.feature_log_prob_
    intercept = bayes.class_log_prior_[1] - bayes.class_log_prior_[0]
    return {"near": near, "similar": similar, "coef": correct - wrong, "intercept": intercept}


def timing(size: Size) -> dict[str, Any]:
    """Time the predictions by method; of slow methods, for some of the queries."""
    data = make_synthetic(size)
    return {
        "members": time_members(data, size.repeats),
        "methods": {name: _timed(name, data, size) for name in METHODS},
    }


def _timed(name: str, data: SyntheticData, size: Size) -> dict[str, Any]:
    model = METHODS[name](data.trees, k=7, random_state=0, n_jobs=size.jobs)
    model.fit(data.X_tune, data.y_tune)
    indexes = [model.roc_algorithm_, *([model.op_knn_] if hasattr(model, "op_knn_") else [])]
    slow = name in SLOW
    return predicting(
        model, indexes, data, SLOW.get(name, size.n_query), 1 if slow else size.repeats
    )


def versions() -> dict[str, str]:
    """Return the versions of this interpreter."""
    names = ("DESlib", "numpy", "scikit-learn")
    return {"Python": platform.python_version(), **{name: version(name) for name in names}}


def main(arguments: list[str]) -> None:
    """Run a command."""
    warnings.simplefilter("ignore")  # 0/0 if all weights are 0; the page compares the predictions
    command, *rest = arguments
    if command == "predict":
        predict(*rest)
    elif command == "timing":
        print(json.dumps(timing(Size(*map(int, rest)))))
    else:
        print(json.dumps(versions()))


if __name__ == "__main__":
    main(sys.argv[1:])
