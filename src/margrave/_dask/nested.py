"""Keep a task that joblib has sent to a Dask worker on that worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stay_local() -> Iterator[None]:
    """Keep the parallel work of a learner in this process, inside a task on a Dask worker.

    In such a task joblib's backend is Dask again: a forest that is fitted or predicts there would
    send each of its trees, with the data, to other workers. Elsewhere nothing changes.
    """
    from joblib import parallel_config
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if type(backend).__name__ != "DaskDistributedBackend":
        yield
        return
    with parallel_config("threading", n_jobs=1):
        yield
