"""Compare the numbers of two checkouts of the package: ``python -m tools.same_results OTHER``.

Each checkout steers the bundled data sets with the same seeds, in a process of its own, and records
matrices, replies, thresholds, weights, frontiers and certificates. It also fits the estimators of
all packages and records what they predict. The script prints every value
that differs by more than 1e-9 and exits with 1 if there is any. Names that the other checkout
spells differently are in `RENAMED`.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

DATA = ("pima", "breast_wisconsin", "spambase", "german", "ionosphere", "contraceptive", "segment")
ROWS = 1200
TOLERANCE = 1e-9

# New name: the name before, for attributes and parameters.
RENAMED: dict[str, str] = {"threshold": "cut"}


def get(holder: object, name: str) -> Any:
    """Return an attribute by its new name, or by the name before."""
    return getattr(holder, name if hasattr(holder, name) else RENAMED[name])


def make(kind: type, *values: Any, **params: Any) -> Any:
    """Make an estimator from its parameters, by their new names or by the names before."""
    known = signature(kind).parameters
    own = {name if name in known else RENAMED[name]: value for name, value in params.items()}
    return kind(*values, **own)


def of_array(values: Any) -> list[float]:
    """Return sums that tell arrays apart, also if only their order differs."""
    import numpy as np

    flat = np.asarray(values, dtype=float).ravel()
    flat = flat[np.isfinite(flat)]
    return [float(flat.sum()), float(flat @ np.arange(len(flat)))]


def of_decision(decision: Any) -> list[Any]:
    """Return the thresholds or offsets of a decision."""
    import numpy as np

    fields = (vars(decision).get(name) for name in ("low", "high", "offset", "doubt", "margin"))
    return [np.asarray(value).tolist() for value in fields if value is not None]


def of_reply(reply: Any) -> dict[str, Any]:
    """Return the numbers of a reply."""
    candidate = reply.candidate
    return {
        "strategy": reply.strategy,
        "met": bool(reply.met),
        "after": reply.after.counts.tolist(),
        "before": reply.before.counts.tolist(),
        "n_candidates": reply.n_candidates,
        "shortfall": reply.shortfall,
        "decision": of_decision(candidate.decision),
        "scores": of_array(candidate.scores),
        "weights": candidate.scorer.weights.tolist(),
    }


def of_certificate(certificate: Any) -> dict[str, Any]:
    """Return the numbers of a certificate."""
    return {
        "preference": certificate.preference,
        "requested": certificate.requested,
        "delta": certificate.delta,
        "number": certificate.number,
        "strategy": certificate.strategy,
        "guarantees": [
            [one.bound, one.limit, one.count, one.n, one.delta] for one in certificate.guarantees
        ],
        "confusion": certificate.confusion.counts.tolist(),
        "tuning": certificate.tuning.counts.tolist(),
        "cells": [[cell.count, cell.n, cell.low, cell.high] for cell in certificate.cells],
    }


def of_frontier(frontier: Any) -> dict[str, Any]:
    """Return the numbers of a frontier."""
    return {
        "curves": [
            [
                curve.name,
                curve.fp.tolist(),
                curve.fn.tolist(),
                curve.thresholds.sum(),
            ]
            for curve in frontier.curves
        ],
        "hull": [[one.name, one.threshold, one.fp, one.fn] for one in frontier.hull],
        "least_fn": [frontier.least_fn(limit)[0] for limit in ("0%", "1%", "5%", "10%")],
    }


def accept(dialog: Any, X: Any, **options: Any) -> dict[str, Any]:
    """Return the numbers of an accepted model, or that it was refused."""
    import numpy as np

    from margrave import steer

    try:
        model = dialog.accept(**options)
    except steer.GuaranteeError:
        return {"refused": True}
    return {
        "certificate": of_certificate(model.certificate_),
        "decision": of_decision(model.decision_),
        "predictions": of_array(np.unique(model.predict(X), return_inverse=True)[1]),
        "values": of_array(model.decision_function(X)),
    }


def record_numbers(name: str) -> Iterator[tuple[str, Any]]:
    """Steer one data set with several models; yield what each step gives."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    from margrave import Scores, datasets, steer

    X, y = datasets.load(name, return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(y))[:ROWS]
    X, y = np.nan_to_num(np.asarray(X[rows], dtype=float)), y[rows]
    classes = np.unique(y).tolist()
    binary = len(classes) == 2
    first, second = (
        ("fp <= 3%", "fn <= 4%") if binary else (f"fn({classes[-1]}) <= 4%", "accuracy >= 80%")
    )

    dialog = steer.Dialog.from_data(X, y, random_state=0)
    yield "start", of_reply(dialog.reply)
    yield "first", of_reply(dialog.prefer(first))
    yield "both", of_reply(dialog.prefer(second, keep=True))
    compared = dialog.compare(0, 2)
    yield "compared", [compared.n_changed, compared.n_only_first]
    dialog.goto(1)
    yield "accepted", accept(dialog, X, reserve=True)
    dialog.goto(0)
    yield "rejecting", of_reply(dialog.prefer(f"{first}, rejected <= 10%"))
    yield "rejecting, accepted", accept(dialog, X)
    if binary:
        yield "frontier", of_frontier(dialog.frontier())

    program = steer.Dialog.from_data(X, y, committee="martingale", random_state=1)
    yield "program", of_reply(program.reply)
    if program.program is not None:
        yield "nodes", [counts.tolist() for counts in program.program.counts]
        yield "weak nodes", [list(node) for node in program.weak_nodes(0.2)]
    yield "retuned", of_reply(program.prefer(first))
    yield "grown", of_reply(program.grow(1))
    yield "program, accepted", accept(program, X)

    model = steer.SteeredClassifier(
        LogisticRegression(max_iter=2000), preference=first, random_state=0
    )
    try:
        model.fit(X[::2], y[::2])
    except steer.GuaranteeError:
        yield "steered", "refused"
    else:
        checks = model.check(X[1::2], y[1::2]).guarantees
        yield "steered", of_certificate(model.certificate_)
        yield "checked", [[one.count, one.n, one.p, bool(one.alarm)] for one in checks]

    half = np.arange(len(y)) % 2 == 0
    kinds = {
        "bayes": GaussianNB(),
        "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
        "logistic": LogisticRegression(max_iter=2000),
    }
    members = [(kind, member.fit(X[half], y[half])) for kind, member in kinds.items()]
    own = steer.Dialog(members, X[~half], y[~half])
    yield "own members", of_reply(own.prefer(first))
    scores = Scores.of(members, X)
    yield "scores", [of_array(part) for part in (scores.values, scores.codes, scores.raw())]


def record_methods(name: str) -> Iterator[tuple[str, Any]]:
    """Fit the estimators with several parameters on one data set; yield what they predict."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.tree import DecisionTreeClassifier

    from margrave import datasets, fuse, mam, martingale, members, select

    X, y = datasets.load(name, return_X_y=True)
    rows = np.random.RandomState(0).permutation(len(y))[: ROWS // 2]
    X, y = np.nan_to_num(np.asarray(X[rows], dtype=float)), y[rows]
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    codes = np.unique(y, return_inverse=True)[1]
    weight = 1.0 + np.arange(len(y)) % 3
    committee = [
        ("bayes", GaussianNB()),
        ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
        ("logistic", LogisticRegression(max_iter=2000)),
    ]
    binary = codes.max() == 1
    seeded = {"random_state": 0}
    jobs: list[tuple[type, tuple[Any, ...], dict[str, Any]]] = [
        (fuse.RankMarginClassifier, (committee,), {}),
        (fuse.RankMarginClassifier, (committee,), {"nu": 0.0, "scale": "probability"}),
        (fuse.RankMarginClassifier, (committee,), {"nu": 0.1, "scale": "rank", "calibrate": False}),
        (fuse.RankMarginClassifier, (committee,), {"scale": "decision", "tuning": 0.4, **seeded}),
        (fuse.RankMarginClassifier, (committee,), {"negatives": "hardest 20%", "nu": 0.2}),
        (fuse.VoteClassifier, (committee,), {"weights": "accuracy"}),
        (fuse.VoteClassifier, (committee, "unanimity"), {}),
        (fuse.BayesOptimalClassifier, (committee,), seeded),
        *[
            (select.LocalSelectionClassifier, (committee, method), seeded)
            for method in ("ola", "lca", "knora-u", "knora-e", "meta-des")
        ],
        (select.RegionSelectionClassifier, (committee,), seeded),
        (select.RegionSelectionClassifier, (committee, "members"), seeded),
        (select.SingleBestClassifier, (committee,), seeded),
        *[
            (mam.MAMClassifier, (kernel,), {"threshold": "balanced", **seeded})
            for kernel in ("rbf", "linear", "poly", "laplacian")
        ],
        (mam.MAMClassifier, (), {"n_components": 50, "class_weight": "balanced", **seeded}),
        (mam.MAMRanker, (), seeded),
        (mam.MAMRanker, ("linear",), seeded),
        (mam.MAMRanker, (), {"n_components": 50, **seeded}),
        (mam.MAMOrdinalClassifier, (), {}),
        (martingale.MartingaleBoostClassifier, (None, 5), seeded),
        (martingale.MartingaleBoostClassifier, (GaussianNB(), 4), {"balance": False, **seeded}),
        (martingale.AdaptiveMartingaleBoostClassifier, (None, 5), seeded),
        (martingale.TunableLogistic, (0.5,), {}),
        (members.ModestAdaBoostClassifier, (), seeded),
        (members.SmoothedBaggingClassifier, (), seeded),
        *([(members.RankBoostClassifier, (), {})] if binary else []),
    ]
    for number, (kind, values, params) in enumerate(jobs):
        model = make(kind, *values, **params)
        weighted = {"sample_weight": weight} if number % 2 and takes_weights(kind) else {}
        model.fit(X, codes if kind is mam.MAMRanker else y, **weighted)
        numbers = {
            method: of_array(encode(getattr(model, method)(X)))
            for method in ("predict", "predict_proba", "decision_function")
            if hasattr(model, method)
        }
        yield f"{number} {kind.__name__}", numbers


def takes_weights(kind: type) -> bool:
    """Return whether an estimator's `fit` takes sample weights."""
    return "sample_weight" in signature(kind.fit).parameters  # type: ignore[attr-defined]


def encode(values: Any) -> Any:
    """Return numbers as they are, and labels as codes."""
    import numpy as np

    array = np.asarray(values)
    return array if array.dtype.kind in "iuf" else np.unique(array, return_inverse=True)[1]


def record_table() -> Iterator[tuple[str, Any]]:
    """Steer a data frame with text and missing values, split by groups and by time."""
    import numpy as np
    import pandas as pd

    from margrave import datasets, steer

    X, y = datasets.load("pima", return_X_y=True)
    table = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    table["kind"] = np.where(X[:, 0] > 3, "many", "few")
    table.loc[::7, "kind"] = None
    table.loc[::5, "column 3"] = np.nan
    rows = np.arange(len(y))
    for name, options in (("groups", {"groups": rows // 2}), ("time", {"time": rows})):
        dialog = steer.Dialog.from_data(table, y, random_state=3, **options)
        yield f"{name}, start", of_reply(dialog.reply)
        yield f"{name}, first", of_reply(dialog.prefer("fn <= 20"))
        yield f"{name}, accepted", accept(dialog, table)


def record(path: Path, names: list[str]) -> None:
    """Write the numbers of the package on the import path as JSON."""
    warnings.simplefilter("ignore")
    numbers = {
        name: {**dict(record_numbers(name)), "methods": dict(record_methods(name))}
        for name in names
    }
    numbers["table"] = dict(record_table())
    path.write_text(json.dumps(numbers, default=float))


def flatten(values: Any, place: str = "") -> dict[str, Any]:
    """Return the numbers and texts of nested lists and dicts by their place."""
    if isinstance(values, dict):
        items = list(values.items())
    elif isinstance(values, list):
        items = list(enumerate(values))
    else:
        return {place: values}
    return {
        key: value
        for name, part in items
        for key, value in flatten(part, f"{place}/{name}").items()
    }


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, or two numbers equal but for rounding."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(one == other)


def main() -> int:
    """Record both checkouts and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("other", type=Path, help="the other checkout, or with --record a file")
    parser.add_argument("--record", action="store_true", help="only write this package's numbers")
    parser.add_argument("--data", nargs="+", default=list(DATA), help="names of data sets")
    chosen = parser.parse_args()
    if chosen.record:
        record(chosen.other, chosen.data)
        return 0
    here = Path(__file__).resolve()
    with TemporaryDirectory() as folder:
        numbers: list[Any] = []
        for source in (chosen.other.resolve(), here.parents[1]):
            path = Path(folder) / f"{len(numbers)}.json"
            print(f"Recording {source.name} ...", flush=True)
            subprocess.run(  # noqa: S603 - this script, on another checkout
                [sys.executable, here, path, "--record", "--data", *chosen.data],
                check=True,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"},
            )
            numbers.append(json.loads(path.read_text()))
    before, now = map(flatten, numbers)
    places = sorted(before.keys() | now.keys())
    differing = [
        place for place in places if not same(before.get(place, "none"), now.get(place, "none"))
    ]
    for place in differing:
        print(f"{place}: {before.get(place)} before, {now.get(place)} now")
    print(f"{len(places):,} values on {len(numbers[0])} tables, {len(differing)} differ.")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
