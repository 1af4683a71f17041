"""Requests about many classes: ``python -m benchmarks.offsets``.

The scores are normal: the score of the true class is 1.5 higher on average. Each request is made
to a dialog on a tuning set of so many samples. Its result is compared with a search that uses all
samples from every start, as for small tuning sets, by the errors that the request does not limit.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.paths import Scores
from margrave import Preference
from margrave.confusion import Objective
from margrave.steer import Dialog

LIMITS = (
    "fp(0) <= 2%",
    "recall(1) >= 80%, fp(2) <= 3%",
    "precision(1) >= 60%",
    "errors(1 -> 2) <= 1%, fn(0) <= 10%",
    "fp(0) <= 2%, rejected <= 10%",
    "fp(0) <= 2%, fn(0) <= 5%",  # cannot be met, so the reply has alternatives
)
SHAPES = ((20_000, 7), (100_000, 5))


def draw(n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores and classes of different sizes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=rng.dirichlet(3 * np.ones(k)))
    scores = rng.normal(size=(n, k))
    scores[np.arange(n), y] += 1.5
    return np.round(scores, 6), y


def measure(n: int, k: int, seed: int, limit: str, compare: bool) -> str:
    """Return the row of a request."""
    scores, y = draw(n, k, seed)
    dialog = Dialog(Scores(k), scores, y, duplicates="independent")
    began = perf_counter()
    reply = dialog.prefer(limit)
    seconds, difference = perf_counter() - began, "not compared"
    if compare and not Preference(limit).allows_rejecting:
        objective = Objective(Preference(limit), y, tuple(range(k)))
        with patch("margrave.confusion._objective._SAMPLE", n):
            began = perf_counter()
            _, full = objective.best_offsets(reply.candidate.scores)
        found = objective.evaluate(reply.candidate.predictions)
        if found[:3] == full[:3]:
            difference = f"{100 * (found.goal - full.goal) / max(full.goal, 1):+.2f} %"
        else:
            difference = "better" if found < full else "worse"
        difference += f" (in {perf_counter() - began:.1f} s)"
    return f"| {n:,} × {k} | {seed} | {limit} | {seconds:.2f} s | {difference} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.offsets", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each request")
    parser.add_argument("--no-compare", action="store_true", help="only the times")
    options = parser.parse_args(arguments)
    print(
        "| tuning set | seed | request | time | errors that are not limited, against all starts |"
    )
    print("|---|---|---|---|---|")
    with threadpool_limits(1):
        for n, k in SHAPES:
            for seed in range(options.seeds):
                for limit in LIMITS:
                    print(measure(n, k, seed, limit, not options.no_compare), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
