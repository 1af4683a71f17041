"""Selection against DESlib 0.3.7, and with many samples.

DESlib needs an environment of its own, which ``make bench`` makes. Without it a row reports that
the first comparisons are missing.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

from experiments.select.comparing import peer_python
from experiments.select.timed import Size, make_synthetic
from experiments.select.timing import in_turns, own_seconds, seconds

from benchmarks._timing import Comparison, compare
from margrave.select import LocalSelectionClassifier

N_TREES = 100
N_JOBS = 2
MAX_MEMORY = 1000.0


def beside_deslib(n: int = 10_000) -> Iterator[Comparison]:
    """Predict n queries with n tuning samples and 100 trees, by every method of both libraries."""
    python = peer_python()
    if python is None:
        print("| selection beside DESlib | | | not installed; `make bench` installs it | | | |")
        return
    ours, theirs = in_turns(Size(n, n, N_TREES, 0, 3, 0, N_JOBS), python)
    if theirs is None:
        raise RuntimeError("DESlib returned no times.")
    what = f"{n:,} queries, {n:,} tuning samples, {N_TREES} trees"
    for method in ours["methods"]:
        mine, other = (seconds(one, method, n) for one in (ours, theirs))
        yield Comparison(f"predict by {method}, {what}", "DESlib", mine, other, target=1.0)
    for method in ("knora-e", "meta-des"):
        mine, other = (own_seconds(one, method, n) for one in (ours, theirs))
        job = f"{method} without the search for neighbours"
        yield Comparison(job, "DESlib", mine, other, target=1 / 3)


def many(n: int = 500_000) -> Iterator[Comparison]:
    """Predict many queries: growth, and memory."""
    data = make_synthetic(Size(n // 50, n, N_TREES, 0, 1, 0, N_JOBS))
    model = LocalSelectionClassifier(data.trees, "knora-e", prefit=True, n_jobs=N_JOBS)
    model.fit(data.X_tune, data.y_tune)
    yield compare(
        f"predict by knora-e, {n:,} queries, {n // 50:,} tuning samples, {N_TREES} trees",
        lambda: model.predict(data.X_query),
        f"{n // 10:,} queries",
        lambda: model.predict(data.X_query[: n // 10]),
        target=11.0,
        repeats=1,
    )
    tracemalloc.start()
    model.predict(data.X_query)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    what = f"extra memory (MB), {n:,} queries"
    yield Comparison(what, f"{MAX_MEMORY:g} MB", peak, MAX_MEMORY, target=1.0)
