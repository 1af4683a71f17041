"""Work that joblib has sent to a Dask cluster is not spread further."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stay_local() -> Iterator[None]:
    """Within it a learner's own parallel work stays in this process; elsewhere nothing changes.

    A task on a Dask worker finds Dask as joblib's backend once more, with all workers to be used:
    a forest that is trained, or asked, there would send each of its trees around, with the data.
    """
    from joblib import parallel_config
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    if type(backend).__name__ != "DaskDistributedBackend":
        yield
        return
    with parallel_config("threading", n_jobs=1):
        yield
