"""Comparisons of the times of two jobs, ours and a peer's."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Comparison:
    """The times of both jobs, and the target for their ratio.

    Attributes
    ----------
    what : str
        The job.
    peer : str
        The peer's job.
    ours, theirs : float
        Best times in seconds.
    target : float
        The largest ``ours / theirs`` that meets the target.
    """

    what: str
    peer: str
    ours: float
    theirs: float
    target: float

    @property
    def ratio(self) -> float:
        """Our time divided by the peer's."""
        return self.ours / self.theirs

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.ratio <= self.target


_max_repeats = [5]


@contextmanager
def at_most(repeats: int) -> Iterator[None]:
    """Limit how often a comparison repeats its jobs."""
    before = _max_repeats[0]
    _max_repeats[0] = repeats
    try:
        yield
    finally:
        _max_repeats[0] = before


def compare(
    what: str,
    ours: Callable[[], Any],
    peer: str,
    theirs: Callable[[], Any],
    target: float,
    repeats: int = 5,
) -> Comparison:
    """Run both jobs in turns, so that a busy moment affects both, and keep the best times."""
    best = [float("inf"), float("inf")]
    for _ in range(min(repeats, _max_repeats[0])):
        for i, job in enumerate((ours, theirs)):
            gc.collect()
            start = perf_counter()
            job()
            best[i] = min(best[i], perf_counter() - start)
    return Comparison(what, peer, best[0], best[1], target)
