"""Where the work is done: processes of this machine, or a cluster that is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from margrave._messages import missing_extra

_TIMEOUT = 5.0  # seconds: an answer, also a bad one, is due within ten


@contextmanager
def cluster(
    address: str | None = None,
    *,
    n_workers: int | None = None,
    memory_limit: Any = "auto",
    timeout: float = _TIMEOUT,
) -> Iterator[Any]:
    """Work with Dask's workers: of a scheduler that is there, or processes of this machine.

    Inside the ``with``, Dask collections are computed there, and so are members and nodes that
    are trained in parallel (``n_jobs``): joblib's backend is "dask".

    Parameters
    ----------
    address : str, optional
        Of a scheduler, as ``"tcp://10.0.0.7:8786"``. By default processes of this machine are
        started, and ended afterwards.
    n_workers : int, optional
        How many processes; one for each core if None. Not with an address.
    memory_limit : int or str, default="auto"
        Of one process, as ``"2GB"``; the machine's memory is shared out by default.
    timeout : float, default=5
        Seconds to wait for a scheduler.

    Yields
    ------
    client : distributed.Client
        The connection.

    Raises
    ------
    ConnectionError
        If no scheduler answers at the address, or it has no workers.
    RuntimeError
        If no processes can be started, as in a script that does not guard its own import.

    Notes
    -----
    Every process imports the script that starts it. So a script must make clusters under
    ``if __name__ == "__main__":``; in notebooks there is nothing to do.

    Examples
    --------
    >>> from margrave.scale import cluster
    >>> with cluster(n_workers=1) as client:  # doctest: +SKIP
    ...     print(len(client.scheduler_info()["workers"]))
    1
    """
    from joblib import parallel_config

    with _connected(address, n_workers, memory_limit, timeout) as client, parallel_config("dask"):
        yield client


@contextmanager
def _connected(
    address: str | None, n_workers: int | None, memory_limit: Any, timeout: float
) -> Iterator[Any]:
    """A client of the scheduler at an address, or of one that is started here."""
    try:
        from distributed import Client, LocalCluster
    except ModuleNotFoundError as error:
        message = missing_extra("margrave.scale", str(error.name), "dask")
        raise ModuleNotFoundError(message) from error
    if address is None:
        with _started(LocalCluster, n_workers, memory_limit) as here, Client(here) as client:
            yield client
        return
    if n_workers is not None:
        raise ValueError("cluster takes n_workers without an address only; got both.")
    with _answering(Client, address, timeout) as client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise ConnectionError(f"The Dask scheduler at {address} has no workers.") from error
        yield client


def _answering(kind: Any, address: str, timeout: float) -> Any:
    """A client of a scheduler that answers in time; who only listens does not."""
    found: list[Any] = []

    def ask() -> None:
        try:
            found.append(kind(address, timeout=timeout))
        except Exception as error:  # whatever comes back from what is no scheduler
            found.append(error)

    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(timeout + 1)
    if found and not isinstance(found[0], Exception):
        return found[0]
    raise ConnectionError(
        f"No Dask scheduler answered at {address} within {timeout:g} s: is it running, and can it "
        "be reached from here? An address looks like tcp://10.0.0.7:8786; the dashboard's is "
        "another."
    ) from (found[0] if found else None)


def _started(kind: Any, n_workers: int | None, memory_limit: Any) -> Any:
    """Worker processes of this machine."""
    try:
        return kind(
            n_workers=n_workers,
            threads_per_worker=1,
            memory_limit=memory_limit,
            dashboard_address=":0",
        )
    except RuntimeError as error:
        raise RuntimeError(
            "cluster could not start its worker processes. In a script the call must stand under "
            '`if __name__ == "__main__":`, since every process imports the script first.'
        ) from error
