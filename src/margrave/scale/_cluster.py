"""Connect to a Dask cluster, or start worker processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from margrave.scale._dask import import_dask

_TIMEOUT = 5.0  # seconds; with starting Dask, an error comes within ten


@contextmanager
def cluster(
    address: str | None = None,
    *,
    n_workers: int | None = None,
    memory_limit: Any = "auto",
    timeout: float = _TIMEOUT,
) -> Iterator[Any]:
    """Use the workers of a Dask scheduler, or of processes on this machine.

    Inside the ``with`` block, these workers compute Dask collections. They also train members and
    nodes in parallel (``n_jobs``), since joblib's backend is "dask".

    Parameters
    ----------
    address : str, optional
        The address of a scheduler, such as ``"tcp://10.0.0.7:8786"``. By default, processes are
        started on this machine, and stopped at the end of the block.
    n_workers : int, optional
        The number of processes; one for each core if None. Not with an address.
    memory_limit : int or str, default="auto"
        The memory of one process, such as ``"2GB"``. By default the processes divide the machine's
        memory equally.
    timeout : float, default=5
        Seconds to wait for a scheduler.

    Yields
    ------
    client : distributed.Client
        The connection.

    Raises
    ------
    ConnectionError
        If no scheduler responds at the address, or it has no workers.
    RuntimeError
        If no processes can be started, as in a script without ``if __name__ == "__main__":``.

    Notes
    -----
    Every process imports the script that starts it. So a script must start clusters under
    ``if __name__ == "__main__":``; a notebook need not.

    Examples
    --------
    >>> from margrave.scale import cluster
    >>> with cluster(n_workers=1) as client:  # doctest: +SKIP
    ...     print(len(client.scheduler_info()["workers"]))
    1
    """
    from joblib import parallel_config

    with _connect(address, n_workers, memory_limit, timeout) as client, parallel_config("dask"):
        yield client


@contextmanager
def _connect(
    address: str | None, n_workers: int | None, memory_limit: Any, timeout: float
) -> Iterator[Any]:
    """Connect to the scheduler at an address, or to one that is started here."""
    distributed = import_dask("scale.cluster", "distributed")
    if address is None:
        with (
            _start(distributed.LocalCluster, n_workers, memory_limit) as local,
            distributed.Client(local) as client,
        ):
            yield client
        return
    if n_workers is not None:
        raise ValueError(
            f"scale.cluster needs n_workers to be None with an address; got {n_workers!r}. The "
            "scheduler has its own workers."
        )
    with _connect_in_time(distributed.Client, address, timeout) as client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise ConnectionError(
                f"The Dask scheduler at {address} has no workers. Start some with dask worker."
            ) from error
        yield client


def _connect_in_time(client_class: Any, address: str, timeout: float) -> Any:
    """Connect to a scheduler; the thread ends the wait for one that accepts but never responds."""
    outcome: list[Any] = []

    def connect() -> None:
        try:
            outcome.append(client_class(address, timeout=timeout))
        except Exception as error:  # any, since the address may be that of another service
            outcome.append(error)

    thread = Thread(target=connect, daemon=True)
    thread.start()
    thread.join(timeout + 1)
    if outcome and not isinstance(outcome[0], Exception):
        return outcome[0]
    raise ConnectionError(
        f"No Dask scheduler responded at {address} within {timeout:g} s. Check that it is running "
        "and can be reached from here. An address looks like tcp://10.0.0.7:8786; that of the "
        "dashboard is a different one."
    ) from (outcome[0] if outcome else None)


def _start(cluster_class: Any, n_workers: int | None, memory_limit: Any) -> Any:
    """Start worker processes on this machine."""
    try:
        return cluster_class(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=memory_limit,
            dashboard_address=":0",
        )
    except RuntimeError as error:
        raise RuntimeError(
            "scale.cluster could not start its worker processes. In a script, call it under "
            '`if __name__ == "__main__":`, since every process imports the script first.'
        ) from error
