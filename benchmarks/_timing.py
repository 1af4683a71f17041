"""One comparison: ours and a peer's, in turns, by the best of several runs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Comparison:
    """Seconds of both, and what their ratio should be.

    Attributes
    ----------
    what : str
        The job.
    peer : str
        What it is compared with.
    ours, theirs : float
        Best seconds.
    bar : float
        The largest ``ours / theirs`` that is good enough.
    """

    what: str
    peer: str
    ours: float
    theirs: float
    bar: float

    @property
    def ratio(self) -> float:
        """Our time as a share of the peer's."""
        return self.ours / self.theirs

    @property
    def kept(self) -> bool:
        """Whether the bar is kept."""
        return self.ratio <= self.bar


_most = [5]


@contextmanager
def at_most(repeats: int) -> Iterator[None]:
    """No comparison runs its jobs more often than this, whatever it asks for."""
    before = _most[0]
    _most[0] = repeats
    try:
        yield
    finally:
        _most[0] = before


def compare(
    what: str,
    ours: Callable[[], Any],
    peer: str,
    theirs: Callable[[], Any],
    bar: float,
    repeats: int = 5,
) -> Comparison:
    """Run both in turns, so that a busy moment hits both, and keep the best of each."""
    best = [float("inf"), float("inf")]
    for _ in range(min(repeats, _most[0])):
        for i, job in enumerate((ours, theirs)):
            gc.collect()
            start = perf_counter()
            job()
            best[i] = min(best[i], perf_counter() - start)
    return Comparison(what, peer, best[0], best[1], bar)
