"""The connections of a studio: their number, and the time that each has for a request.

A connection waits while its client has to act: to send the rest of a request, or to read a
response. It may wait only for some time, and is dropped when another one needs its place. So
clients that send half a request, or do not read, keep nobody out. Requests of a user, such as
uploads and streams of events, keep their places, and so do complete requests of anybody.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import sys
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from margrave.studio.settings import Settings

SLOWEST = 1024  # bytes per second that a client has to send or read
ACCEPTED = 64  # connections that the loop accepts at once, before any of them counts
QUEUE = 1024  # connections that wait until they are accepted
_OTHER_FILES = 512  # open files besides connections that count
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_RECORDS, _PERIOD = 200, 60.0  # records of a log within so many seconds


class Connection(H11Protocol):
    """A connection with limits; :func:`connection_class` sets them."""

    total: int
    of_address: int
    seconds: float
    proxies: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.since = self.loop.time()
        self.is_dropped = False
        self._waiting: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is being handled."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_waiting(self) -> bool:
        """Whether the client has to act; not if the guard has found a user in the request."""
        if self.is_idle:
            return True
        has_user = self.cycle.scope["state"].get("user") is not None
        return not has_user and (self.cycle.more_body or self.flow.write_paused)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, that of another connection if there is none left."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # any byte that is not read starts the watch
        self._watch()
        # A connection that is being closed keeps its socket until the client has read the rest.
        places = [one for one in self.connections if isinstance(one, Connection)]
        address = self.client and self.client[0]
        if not self._is_proxy(address):
            same = [one for one in places if one.client and one.client[0] == address]
            self._make_place(same, self.of_address)
        self._make_place(places, self.total)

    def _is_proxy(self, address: str | None) -> bool:
        """Whether the connections from an address are those of many clients."""
        if address is None or not self.proxies:
            return False
        return any(ipaddress.ip_address(address) in network for network in self.proxies)

    def _make_place(self, places: list[Connection], most: int) -> None:
        """Drop one of the connections, or this one, if there are too many."""
        held = [one for one in places if not one.is_dropped]
        if len(held) <= most or self.is_dropped:
            return
        waiting = [one for one in held if one.is_waiting and one is not self]
        if waiting:
            oldest = min(waiting, key=lambda one: one.since)
            oldest.is_dropped = True
            oldest.transport.abort()
        else:
            self.is_dropped = True
            self.transport.write(_BUSY)
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Stop the clock when a request is complete, start it when the next one begins."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all clocks."""
        super().connection_lost(exc)
        for timer in (self._waiting, self._writing):
            if timer is not None:
                timer.cancel()

    def _watch(self) -> None:
        if self.is_idle and self in self.connections:
            if self._waiting is None:
                self.since = self.loop.time()
                self._waiting = self.loop.call_later(self.seconds, self.transport.abort)
        elif self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def pause_writing(self) -> None:
        """Watch a client that reads slowly; it is disconnected if it reads hardly anything."""
        super().pause_writing()
        self._check_writing(None)

    def resume_writing(self) -> None:
        """Stop watching."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()

    def _check_writing(self, before: int | None) -> None:
        left = self.transport.get_write_buffer_size()
        if before is not None and before - left < SLOWEST * self.seconds:
            self.transport.abort()
        else:
            self._writing = self.loop.call_later(self.seconds, self._check_writing, left)


def connection_class(settings: Settings) -> type[Connection]:
    """Make the class of a server's connections; their number leaves room for other open files."""
    limits = settings.limits

    class LimitedConnection(Connection):
        total = min(limits.connections, _open_files(limits.connections + _OTHER_FILES))
        of_address = min(limits.connections_of_address, total)
        seconds = limits.request_seconds
        proxies = tuple(ipaddress.ip_network(proxy) for proxy in settings.proxies)

    return LimitedConnection


def _open_files(wanted: int) -> int:
    """The number of connections that the limit on open files allows; raise it if that helps."""
    if sys.platform == "win32":
        return wanted - _OTHER_FILES
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    unlimited = soft == resource.RLIM_INFINITY
    return wanted - _OTHER_FILES if unlimited else max(soft - _OTHER_FILES, soft // 4)


def bound_logs() -> None:
    """Limit what this process writes to standard error about requests that fail."""
    for handler in (logging.lastResort, *logging.getLogger("uvicorn").handlers):
        if handler is not None and not any(isinstance(one, _Few) for one in handler.filters):
            handler.addFilter(_Few())


class _Few(logging.Filter):
    """Drops the records beyond the first ones of each period, and those of cancelled requests.

    The server cancels requests when it ends; it has one record of how many.
    """

    def __init__(self) -> None:
        super().__init__()
        self._start, self._n = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record; the last one says that others are left out."""
        if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
            return False
        if time.monotonic() - self._start > _PERIOD:
            self._start, self._n = time.monotonic(), 0
        self._n += 1
        if self._n == _RECORDS:
            record.msg, record.args = f"{record.getMessage()} (More records are left out.)", ()
        return self._n <= _RECORDS
