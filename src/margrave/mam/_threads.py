"""Work in threads: numpy lets go of the interpreter during each pass over a tile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import RLock, local
from typing import TypeVar

from joblib import cpu_count
from threadpoolctl import threadpool_limits

Task = TypeVar("Task")
Done = TypeVar("Done")

_lock = RLock()
_here = local()  # in a thread of ours, whose work may call this again: it then works alone


def _enter() -> None:
    _here.inside = True


def n_threads(n_jobs: int | None, n_tasks: int) -> int:
    """Threads to use: all cores this process may use if None or -1, never more than tasks.

    `OMP_NUM_THREADS` is a limit, as for the compiled parts of scikit-learn, so that processes of
    joblib do not crowd each other out.
    """
    if n_jobs is None or n_jobs < 0:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        cores = int(cpu_count())
        wanted = min(cores, int(limit)) if limit.isdecimal() and int(limit) else cores
    else:
        wanted = n_jobs
    return max(1, min(wanted, n_tasks))


@contextmanager
def alone() -> Iterator[None]:
    """Work in this thread alone, one of several tasks that a scheduler runs at a time."""
    before = getattr(_here, "inside", False)
    _here.inside = True
    try:
        yield
    finally:
        _here.inside = before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS in each of our threads must not start its own.

    Its limit is one for the whole process, and only the thread that set it may take it back: calls
    from several threads go one after the other, each of them on all cores.
    """
    with _lock, threadpool_limits(1, "blas"):
        yield


def in_threads(
    work: Callable[[Task], Done], tasks: Sequence[Task], n_jobs: int | None, *, small: bool = False
) -> Iterator[Done]:
    """What `work` returns for each task, in the order of the tasks, whoever was first.

    Parameters
    ----------
    work : callable
        The work.
    tasks : sequence
        What it is called with.
    n_jobs : int or None
        See `n_threads`.
    small : bool
        Whether it is so little that setting up threads would take longer.
    """
    if small or getattr(_here, "inside", False):
        yield from map(work, tasks)
        return
    threads = n_threads(n_jobs, len(tasks))
    with one_blas_thread():
        if threads == 1:
            yield from map(work, tasks)
            return
        with ThreadPoolExecutor(threads, initializer=_enter) as pool:
            yield from pool.map(work, tasks)
