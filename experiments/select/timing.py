"""The times of Margrave, on the same synthetic data as the peer's."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from experiments.select.comparing import METHODS, run_peer
from experiments.select.timed import Size, SyntheticData, make_synthetic, predicting, time_members
from margrave.select import LocalSelectionClassifier

ROUNDS = 2
Timing = dict[str, Any]
"""Seconds of the ``members``, and the results of `predicting` by ``methods``."""


def ours(size: Size) -> Timing:
    """Time every method."""
    with threadpool_limits(size.jobs):
        data = make_synthetic(size)
        return {
            "members": time_members(data, size.repeats),
            "methods": {method: _timed(method, data, size) for method in METHODS},
        }


def _timed(method: str, data: SyntheticData, size: Size) -> dict[str, Any]:
    model = LocalSelectionClassifier(data.trees, method, 7, prefit=True, n_jobs=size.jobs)
    model.fit(data.X_tune, data.y_tune)
    searches = [model._memory.search]
    if model._meta_des is not None:
        searches.append(model._meta_des.profiles)
    indexes = [search.index for search in searches]
    return predicting(model, indexes, data, size.n_query, size.repeats)


def theirs(size: Size, python: Path) -> Timing:
    """Time every method of DESlib, in its interpreter."""
    found: Timing = run_peer(python, "timing", *map(str, astuple(size)), threads=size.jobs)
    return found


def in_turns(size: Size, python: Path | None) -> tuple[Timing, Timing | None]:
    """Time both libraries in turns, so that a busy moment affects both; keep the best times."""
    mine, other = ours(size), None if python is None else theirs(size, python)
    for _ in range(ROUNDS - 1):
        mine = better(mine, ours(size))
        if python is not None and other is not None:
            other = better(other, theirs(size, python))
    return mine, other


def better(one: Timing, two: Timing) -> Timing:
    """Return the better of two measurements, by method."""
    methods = {
        name: min(one["methods"][name], two["methods"][name], key=lambda each: each["predict"])
        for name in one["methods"]
    }
    return {"members": min(one["members"], two["members"]), "methods": methods}


def seconds(timing: Timing, method: str, n_query: int) -> float:
    """Return the seconds for all queries, also if only some were timed."""
    one = timing["methods"][method]
    return float(one["predict"]) * n_query / int(one["queries"])


def own_seconds(timing: Timing, method: str, n_query: int) -> float:
    """Return the seconds without the search for neighbours: predictions and selection."""
    one = timing["methods"][method]
    return float(one["predict"] - one["kneighbors"]) * n_query / int(one["queries"])
