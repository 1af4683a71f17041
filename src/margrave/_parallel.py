"""Parallel work of learners: the threads of libraries, and work inside a task of joblib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from joblib import parallel_config
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController


def limit_threads(threads: int | None, kinds: Sequence[str] = ("blas", "openmp")) -> Any:
    """Limit the threads of libraries of some kinds; the end of a `with` block restores only them.

    `threadpool_limits` would restore all libraries, also to limits of other trainings. To look for
    the libraries takes some milliseconds.
    """
    return ThreadpoolController().select(user_api=list(kinds)).limit(limits=threads)


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
