"""The connections of a studio: their number, and the time that each has for a request.

A connection waits while it has no complete request. It may wait only for some seconds, and is
dropped when another one needs its place. So connections that never send a request keep nobody out.
Requests that are being handled, such as streams of events, keep their places.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from margrave.studio.settings import Limits

SLOWEST = 1024  # bytes per second that a client has to send or read
ACCEPTED = 64  # connections that the loop accepts at once, before any of them counts
QUEUE = 1024  # connections that wait until they are accepted
_OTHER_FILES = 512  # open files besides connections that count
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_CHECK = 30.0  # seconds between two looks at a client that reads slowly
_RECORDS, _PERIOD = 200, 60.0  # records of a log within so many seconds


class Connection(H11Protocol):
    """A connection with limits; :func:`connection_class` sets them."""

    total: int
    of_address: int
    seconds: float

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.since = self.loop.time()
        self._waiting: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether no request is being handled."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, that of another connection if there is none left."""
        super().connection_made(transport)
        self._watch()
        open_ones = [
            one
            for one in self.connections
            if isinstance(one, Connection) and not one.transport.is_closing()
        ]
        address = self.client and self.client[0]
        same = [one for one in open_ones if one.client and one.client[0] == address]
        for places, most in ((same, self.of_address), (open_ones, self.total)):
            if len(places) > most and not transport.is_closing():
                waiting = [one for one in places if one.is_waiting and one is not self]
                if waiting:
                    min(waiting, key=lambda one: one.since).transport.abort()
                else:
                    transport.write(_BUSY)
                    transport.close()

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
        if self.is_waiting and self in self.connections:
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
        if before is not None and before - left < SLOWEST * _CHECK:
            self.transport.abort()
        else:
            self._writing = self.loop.call_later(_CHECK, self._check_writing, left)


def connection_class(limits: Limits) -> type[Connection]:
    """Make the class of a server's connections; their number leaves room for other open files."""

    class LimitedConnection(Connection):
        total = min(limits.connections, _open_files(limits.connections + _OTHER_FILES))
        of_address = min(limits.connections_of_address, total)
        seconds = limits.request_seconds

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
        if handler is not None:
            handler.addFilter(_Few())


class _Few(logging.Filter):
    """Drops the records beyond the first ones of each period."""

    def __init__(self) -> None:
        super().__init__()
        self._start, self._n = time.monotonic(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record; the last one says that others are left out."""
        if time.monotonic() - self._start > _PERIOD:
            self._start, self._n = time.monotonic(), 0
        self._n += 1
        if self._n == _RECORDS:
            record.msg, record.args = f"{record.getMessage()} (More records are left out.)", ()
        return self._n <= _RECORDS
