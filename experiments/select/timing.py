"""Our side of the clock, on the same made data as the peer's."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from experiments.select.comparing import METHODS, asked_of
from experiments.select.timed import Made, Size, asking, made, predicting
from margrave.select import LocalSelectionClassifier

ROUNDS = 2
Timing = dict[str, Any]
"""Seconds that ``asking`` takes, and by ``methods`` what `predicting` says."""


def ours(size: Size) -> Timing:
    """Seconds of every method."""
    with threadpool_limits(size.jobs):
        data = made(size)
        return {
            "asking": asking(data, size.repeats),
            "methods": {method: _timed(method, data, size) for method in METHODS},
        }


def _timed(method: str, data: Made, size: Size) -> dict[str, Any]:
    model = LocalSelectionClassifier(data.trees, method, 7, prefit=True, n_jobs=size.jobs)
    model.fit(data.X_tune, data.y_tune)
    searches = [model._memory.search]
    if model._meta_des is not None:
        searches.append(model._meta_des.profiles)
    indexes = [search.index for search in searches]
    return predicting(model, indexes, data, size.n_query, size.repeats)


def theirs(size: Size, python: Path) -> Timing:
    """The same of DESlib, by its interpreter."""
    found: Timing = asked_of(python, "timing", *map(str, astuple(size)), threads=size.jobs)
    return found


def in_turns(size: Size, python: Path | None) -> tuple[Timing, Timing | None]:
    """Both, again and again, so that a busy moment hits both; the best of each."""
    mine, other = ours(size), None if python is None else theirs(size, python)
    for _ in range(ROUNDS - 1):
        mine = better(mine, ours(size))
        if python is not None and other is not None:
            other = better(other, theirs(size, python))
    return mine, other


def better(one: Timing, two: Timing) -> Timing:
    """The better of two measurements, method by method."""
    methods = {
        name: min(one["methods"][name], two["methods"][name], key=lambda each: each["predict"])
        for name in one["methods"]
    }
    return {"asking": min(one["asking"], two["asking"]), "methods": methods}


def seconds(timing: Timing, method: str, n_query: int) -> float:
    """Seconds for all queries, where only some were timed too."""
    one = timing["methods"][method]
    return float(one["predict"]) * n_query / int(one["queries"])


def own_seconds(timing: Timing, method: str, n_query: int) -> float:
    """The same without the search for neighbours: asking the members, and selection."""
    one = timing["methods"][method]
    return float(one["predict"] - one["kneighbors"]) * n_query / int(one["queries"])
