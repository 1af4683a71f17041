"""Selection beside DESlib 0.3.7, in an environment of its own, and a great many samples.

``make bench`` makes that environment; without it the first rows are not there, which is told.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

from experiments.select.comparing import peer_python
from experiments.select.timed import Size, made
from experiments.select.timing import in_turns, own_seconds, seconds

from benchmarks._timing import Comparison, compare
from margrave.select import LocalSelectionClassifier

N_TREES = 100
N_JOBS = 2
MOST_MEMORY = 1000.0


def beside_deslib(n: int = 10_000) -> Iterator[Comparison]:
    """Answer n queries by n tuning samples and 100 trees, with every method they share."""
    python = peer_python()
    if python is None:
        print("| selection beside DESlib | | | it is not installed: `make bench` does it | | | |")
        return
    ours, theirs = in_turns(Size(n, n, N_TREES, 0, 3, 0, N_JOBS), python)
    if theirs is None:
        raise RuntimeError("DESlib gave no times.")
    what = f"{n:,} queries, {n:,} tuning samples, {N_TREES} trees"
    for method in ours["methods"]:
        mine, other = (seconds(one, method, n) for one in (ours, theirs))
        yield Comparison(f"predict by {method}, {what}", "DESlib", mine, other, bar=1.0)
    for method in ("knora-e", "meta-des"):
        mine, other = (own_seconds(one, method, n) for one in (ours, theirs))
        job = f"{method} beyond the search for neighbours"
        yield Comparison(job, "DESlib", mine, other, bar=1 / 3)


def many(n: int = 500_000) -> Iterator[Comparison]:
    """Answer a great many queries: growth, and memory."""
    data = made(Size(n // 50, n, N_TREES, 0, 1, 0, N_JOBS))
    model = LocalSelectionClassifier(data.trees, "knora-e", prefit=True, n_jobs=N_JOBS)
    model.fit(data.X_tune, data.y_tune)
    yield compare(
        f"predict by knora-e, {n:,} queries, {n // 50:,} tuning samples, {N_TREES} trees",
        lambda: model.predict(data.X_query),
        f"{n // 10:,} queries",
        lambda: model.predict(data.X_query[: n // 10]),
        bar=11.0,
        repeats=1,
    )
    tracemalloc.start()
    model.predict(data.X_query)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    what = f"extra memory (MB), {n:,} queries"
    yield Comparison(what, f"{MOST_MEMORY:g} MB", peak, MOST_MEMORY, bar=1.0)
