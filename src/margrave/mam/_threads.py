"""Computation in threads: numpy releases the interpreter during each pass over a tile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import RLock, local
from typing import TypeVar

from joblib import cpu_count

from margrave._parallel import limit_threads

Task = TypeVar("Task")
Result = TypeVar("Result")

_lock = RLock()
_thread = local()  # marks a worker thread: a nested call then computes in this thread alone


def _mark_worker() -> None:
    _thread.is_worker = True


def count_threads(n_jobs: int | None, n_tasks: int) -> int:
    """Compute the number of threads: all cores of the process if None or -1, at most `n_tasks`.

    `OMP_NUM_THREADS` is an upper limit, as for the compiled parts of scikit-learn, so that
    processes of joblib do not compete for cores.
    """
    if n_jobs is None or n_jobs < 0:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        cores = int(cpu_count())
        wanted = min(cores, int(limit)) if limit.isdecimal() and int(limit) else cores
    else:
        wanted = n_jobs
    return max(1, min(wanted, n_tasks))


@contextmanager
def single_thread() -> Iterator[None]:
    """Compute in this thread alone, where a scheduler runs several tasks at the same time."""
    before = getattr(_thread, "is_worker", False)
    _thread.is_worker = True
    try:
        yield
    finally:
        _thread.is_worker = before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in each of our threads.

    The limit is one for the whole process, and only the thread that set it can remove it: calls
    from several threads run one after the other, each of them on all cores.
    """
    with _lock, limit_threads(1, ["blas"]):
        yield


def map_threads(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    n_jobs: int | None,
    *,
    small: bool = False,
) -> Iterator[Result]:
    """Apply a function to each task in threads; yield the results in the order of the tasks.

    Parameters
    ----------
    function : callable
        Takes one task.
    tasks : sequence
        The tasks.
    n_jobs : int or None
        See `count_threads`.
    small : bool
        Whether the work takes less time than the start of threads.
    """
    if small or getattr(_thread, "is_worker", False):
        yield from map(function, tasks)
        return
    threads = count_threads(n_jobs, len(tasks))
    with one_blas_thread():
        if threads == 1:
            yield from map(function, tasks)
            return
        with ThreadPoolExecutor(threads, initializer=_mark_worker) as pool:
            yield from pool.map(function, tasks)
