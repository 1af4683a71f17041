"""Work in threads: numpy lets go of the interpreter during each pass over a tile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import cpu_count
from threadpoolctl import threadpool_limits

Task = TypeVar("Task")
Done = TypeVar("Done")


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


def in_threads(work: Callable[[Task], Done], tasks: Iterable[Task], threads: int) -> Iterator[Done]:
    """What `work` returns for each task, in the order of the tasks, whoever was first."""
    if threads == 1:
        yield from map(work, tasks)
        return
    # BLAS in each of our threads must not start its own.
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, tasks)
