"""Members' answers: asked for in threads, and put side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from margrave._asking import Answer, Columns, Kind, ask_member, largest_size, on_scale
from margrave._given import frozen
from margrave._typing import AnyInts, Floats


def asked(calls: Iterable[tuple[Any, ...]], n_members: int, n_jobs: int | None) -> Iterator[Answer]:
    """The members' answers, some at a time in threads; a small tree is quicker than a dispatch."""
    jobs = effective_n_jobs(n_jobs)
    if jobs == 1:
        yield from (ask_member(*call) for call in calls)  # not all held at a time
        return
    some, at_once = iter(calls), -(-n_members // (4 * jobs))
    parts = iter(lambda: list(islice(some, at_once)), [])
    threads = Parallel(n_jobs=jobs, backend="threading", return_as="generator")
    for answers in threads(delayed(_each)(part) for part in parts):
        yield from answers


def _each(calls: Iterable[tuple[Any, ...]]) -> list[Answer]:
    """Members asked one after the other."""
    return [ask_member(*call) for call in calls]


def gathered(
    answers: Iterable[Answer],
    names: tuple[str, ...],
    classes: NDArray[Any],
    features: tuple[Columns | None, ...],
    like: Any,
) -> dict[str, Any]:
    """What Scores hold: answers side by side, decision values divided by their scale."""
    codes: AnyInts | None = None
    values: Floats | None = None
    kinds: list[Kind] = []
    scales = np.ones(len(names)) if like is None else like.scales.copy()
    for j, answer in enumerate(answers):
        kinds.append(answer.kind)
        if j == len(names):
            break
        if answer.codes is not None:
            if codes is None:
                smallest = np.min_scalar_type(-len(classes))
                codes = np.empty((len(answer.codes), len(names)), dtype=smallest)
            codes[:, j] = answer.codes
        if answer.values is not None:
            if values is None:
                values = np.empty((len(answer.values), len(names), *answer.values.shape[1:]))
            own = answer.values
            if answer.kind == "decision":
                scales[j] = largest_size(own) if like is None else scales[j]
                own = on_scale(own, scales[j])
            values[:, j] = own
    if len(kinds) != len(names):
        got = "more" if len(kinds) > len(names) else str(len(kinds))
        raise ValueError(f"Scores need an answer of each of {len(names)} members; got {got}.")
    return {
        "classes": frozen(classes),
        "members": names,
        "codes": None if codes is None else frozen(codes),
        "values": None if values is None else frozen(values),
        "kinds": tuple(kinds),
        "scales": frozen(scales),
        "features": features,
    }
