"""Parallel work of learners: the threads of libraries, and work inside a task of joblib."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from joblib import parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController


def limit_threads(threads: int | None, *kinds: str) -> Any:
    """Limit the threads of libraries of some kinds; the end of a `with` block restores only them.

    `threadpool_limits` would restore all libraries, also to limits of other trainings, and would
    look for the libraries each time, which takes longer than to fit a small model.
    """
    return _libraries(len(sys.modules)).select(user_api=list(kinds)).limit(limits=threads)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:  # noqa: ARG001
    """Find the libraries again if modules were imported, which may have loaded more of them."""
    return ThreadpoolController()


def is_cluster() -> bool:
    """Return whether joblib's backend is a cluster: it runs everything in parallel by default."""
    backend, _ = get_active_backend()
    return bool(backend.default_n_jobs != 1)


@contextmanager
def stay_local() -> Iterator[None]:
    """Keep the parallel work of a learner in this process, if joblib's backend is a cluster.

    Such a backend runs things in parallel inside its own tasks too: a forest that is fitted or
    predicts there would send each of its trees, with the data, to other workers. The backends of
    joblib itself run one job by default, and nothing changes for them.
    """
    if not is_cluster():
        yield
        return
    with parallel_config("threading", n_jobs=1):
        yield
