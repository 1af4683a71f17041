"""One job and its server-sent events, for any number of listeners.

Outdated events are not kept. For a change of the job only the fact that it changed is stored, since
the record is read when it is sent; of its replies the newest few are kept. A slow or late listener
therefore gets fewer events, never outdated ones, and a job that reports often costs little.

Jobs report from worker threads; listeners wait in an event loop, which wakes them.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["waiting", "running", "done", "failed", "cancelled"]
Work = Callable[["Handle"], dict[str, Any]]

BEAT = 15.0  # seconds without an event after which a listener gets a heartbeat
PACE = 0.1  # seconds between two records that differ only in their progress
REPLIES = 4  # replies kept for late listeners

HEARTBEAT = b": \n\n"
_RECORD = (
    "id",
    "kind",
    "dialog",
    "state",
    "ahead",
    "progress",
    "error",
    "code",
    "fields",
    "result",
)


def one_line(data: object) -> str:
    """Format data as JSON in one line.

    Raises
    ------
    TypeError
        If it is not plain data, or has a number that JSON cannot represent.
    """
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":"))
    except ValueError as error:  # not a ValueError: the messages of those are shown to users
        raise TypeError(f"A job can only send plain data: {error}") from error


def _event(number: int, name: str, data: str) -> bytes:
    return f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode()


def _event_number(last_id: str | int | None) -> int:
    """The number in a ``Last-Event-ID``; 0 for anything else that a browser may send."""
    text = str(last_id)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


@dataclass(eq=False)
class _Listener:
    """A listener to a job's events.

    Attributes
    ----------
    loop : asyncio.AbstractEventLoop
        The event loop in which it waits.
    news : asyncio.Event
        Set when there are new events.
    after : int
        The newest event that it has received.
    covered : int
        The newest change in the record that it has received.
    coming : bool
        Whether it will read soon, so that it need not be woken for a change of progress only.
    """

    loop: asyncio.AbstractEventLoop
    news: asyncio.Event = field(default_factory=asyncio.Event)
    after: int = 0
    covered: int = 0
    coming: bool = False


class Log:
    """The events of one job.

    Parameters
    ----------
    lock : threading.Condition
        The lock of the job.
    record : callable
        Returns the current job as plain data.
    """

    def __init__(self, lock: threading.Condition, record: Callable[[], dict[str, Any]]) -> None:
        self._lock, self._record = lock, record
        self._newest = self._changed = self._pressing = self._end = 0
        self._replies: deque[tuple[int, str, str]] = deque(maxlen=REPLIES)
        self._listeners: set[_Listener] = set()

    @property
    def listeners(self) -> int:
        """The number of listeners."""
        return len(self._listeners)

    def change(self, pressing: bool) -> None:
        """Report a change of the record; if not pressing, it may be sent with the next change."""
        with self._lock:
            self._changed = self._next()
            if pressing:
                self._pressing = self._changed
            self._wake(pressing)

    def add_reply(self, name: str, data: str) -> None:
        """Report a better reply, as JSON in one line."""
        with self._lock:
            self._replies.append((self._next(), name, data))
            self._wake(pressing=True)

    def end(self) -> None:
        """Report that the record is final; this is the last event."""
        with self._lock:
            self._end = self._next()
            self._wake(pressing=True)

    async def follow(self, last_id: str | int | None = None) -> AsyncGenerator[bytes]:
        """Yield the record at once, then the events as they come, until the end.

        Parameters
        ----------
        last_id : str, int or None
            The newest event that the listener has received before.

        Yields
        ------
        bytes
            One server-sent event, or a comment after a long silence.
        """
        loop = asyncio.get_running_loop()
        listener = _Listener(loop)
        try:
            sent = record_sent = loop.time()
            yield self._first(listener, last_id)
            while True:
                listener.news.clear()
                due = loop.time() >= record_sent + PACE
                for number, name, data in self._new_events(listener, due):
                    sent = loop.time()
                    record_sent = sent if name == "job" else record_sent
                    yield _event(number, name, data if isinstance(data, str) else one_line(data))
                    if name == "end":
                        return
                wake = record_sent + PACE if listener.coming else sent + BEAT
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(wake):
                        await listener.news.wait()
                if loop.time() >= sent + BEAT and not listener.coming:
                    sent = loop.time()
                    yield HEARTBEAT
        finally:
            with self._lock:
                self._listeners.discard(listener)

    def _next(self) -> int:
        self._newest += 1
        return self._newest

    def _wake(self, pressing: bool) -> None:
        for listener in tuple(self._listeners):
            if pressing or not listener.coming:
                listener.coming = True
                try:
                    listener.loop.call_soon_threadsafe(listener.news.set)
                except RuntimeError:  # its event loop was closed
                    self._listeners.discard(listener)

    def _first(self, listener: _Listener, last_id: str | int | None) -> bytes:
        """Register a listener, and return the current record as its first event.

        The event has the number of the newest event that the listener already has: replies that
        follow have smaller numbers than the newest change, and must not count as received if the
        connection breaks here.
        """
        with self._lock:
            received = _event_number(last_id)
            listener.after = received if received <= self._newest else 0
            listener.covered = self._changed
            self._listeners.add(listener)
            record = self._record()
        return _event(listener.after, "job", one_line(record))

    def _new_events(
        self, listener: _Listener, progress_due: bool
    ) -> list[tuple[int, str, str | dict[str, Any]]]:
        """The events that a listener has not received; progress alone only if it is due."""
        events: list[tuple[int, str, str | dict[str, Any]]]
        with self._lock:
            events = [event for event in self._replies if event[0] > listener.after]
            changed = self._changed > listener.covered and not self._end
            due = changed and (progress_due or self._pressing > listener.covered)
            if due:
                events.append((self._changed, "job", self._record()))
                listener.covered = self._changed
            if self._end:
                events.append((self._end, "end", self._record()))
            listener.coming = changed and not due
            events.sort(key=lambda event: event[0])
            listener.after = events[-1][0] if events else listener.after
        return events


@dataclass(eq=False)
class Job:
    """A long-running job; only its queue creates and changes it.

    Attributes
    ----------
    id : str
        A random identifier that cannot be guessed.
    owner : str
        The key of the user that it belongs to.
    kind, dialog : str
        What it does, and the id of the dialog that it works on.
    lock_key : str or None
        Jobs with the same key run one after another.
    number : int
        Counts the jobs of a queue, in the order of submission.
    state : str
        ``"waiting"``, ``"running"``, ``"done"``, ``"failed"`` or ``"cancelled"``.
    ahead : int
        Approximately how many jobs start before it.
    progress, result : dict or None
        Its progress, and its result once it is done.
    error, code : str or None
        Why it failed, as a message for its owner, and the code of the error if it has one.
    fields : dict or None
        The fields of an error that has a code.
    stopping : bool
        Whether its owner has cancelled it.
    events : Log
        Its events.
    """

    owner: str
    kind: str
    dialog: str
    lock_key: str | None
    number: int
    work: Work | None = field(repr=False)
    lock: threading.Condition = field(repr=False)
    id: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    state: State = "waiting"
    ahead: int = 0
    progress: dict[str, Any] | None = None
    error: str | None = None
    code: str | None = None
    fields: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    stopping: bool = False
    events: Log = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.events = Log(self.lock, self.record)

    @property
    def finished(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state not in ("waiting", "running")

    def record(self) -> dict[str, Any]:
        """The job as plain data."""
        with self.lock:
            return {name: getattr(self, name) for name in _RECORD}

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has finished, at most `timeout` seconds; return whether it has."""
        with self.lock:
            return self.lock.wait_for(lambda: self.finished, timeout)


class Handle:
    """The interface of a job for the function that does its work.

    Parameters
    ----------
    job : Job
        The job.
    """

    def __init__(self, job: Job) -> None:
        self._job = job

    def stopped(self) -> bool:
        """Whether the work should stop, with the result so far or by raising `Cancelled`."""
        return self._job.stopping

    def progress(
        self,
        done: int,
        total: int,
        text: str,
        members: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        """Report progress; may be called at any rate.

        Parameters
        ----------
        done, total : int
            The number of finished steps, and of all steps.
        text : str
            The current step, in words.
        members : iterable of mapping, or None
            ``name``, ``done`` and ``total`` of each member.
        """
        bars = None
        if members is not None:
            bars = [
                {"name": str(bar["name"]), "done": int(bar["done"]), "total": int(bar["total"])}
                for bar in members
            ]
        progress = {"done": int(done), "total": int(total), "text": str(text), "members": bars}
        with self._job.lock:
            if self._job.state == "running" and progress != self._job.progress:
                self._job.progress = progress
                self._job.events.change(pressing=False)

    def emit(self, name: Literal["reply"], data: Mapping[str, Any]) -> None:
        """Send a reply that is better than the ones before, as plain data."""
        line = one_line(data)
        with self._job.lock:
            if self._job.state == "running":
                self._job.events.add_reply(name, line)


def stream(job: Job, last_id: str | int | None = None) -> AsyncGenerator[bytes]:
    """Return the server-sent events of a job: its record at once, then every change, and its end.

    Parameters
    ----------
    job : Job
        The job.
    last_id : str, int or None
        The header ``Last-Event-ID`` of the request.

    Returns
    -------
    events : async generator of bytes
        Ends after the event ``end``.
    """
    return job.events.follow(last_id)
