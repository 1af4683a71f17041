"""One job, and what it tells: server-sent events to any number of listeners.

Nothing is kept that is overtaken: of a job's changes only that there are new ones, since the record
itself is read when it is sent; of its replies the newest few. So a listener that is slow or late
gets less, never something old, and a job that tells much costs little.

Jobs tell from worker threads; listeners wait in an event loop and are woken by it.
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

BEAT = 15.0  # seconds of silence after which a listener hears that the line is open
PACE = 0.1  # seconds between two records that differ in their progress only
REPLIES = 4  # kept for who comes late

HEARTBEAT = b": \n\n"


def one_line(data: object) -> str:
    """Data as JSON in one line.

    Raises
    ------
    TypeError
        If it is no plain data, or has a number that JSON has no word for.
    """
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":"))
    except ValueError as error:  # which may be told to users if work raises it
        raise TypeError(f"A job tells plain data only: {error}") from error


def _event(number: int, name: str, data: str) -> bytes:
    return f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode()


def _number(last_id: str | int | None) -> int:
    """The number in a ``Last-Event-ID``; 0 for anything else that a browser may send."""
    text = str(last_id)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


@dataclass(eq=False)
class _Listener:
    """Who follows a log.

    Attributes
    ----------
    loop : asyncio.AbstractEventLoop
        Where it waits.
    news : asyncio.Event
        What it waits for.
    after : int
        The newest event that it has.
    covered : int
        The newest change that the record it has tells.
    coming : bool
        Whether it will look before long, so that it need not be woken for mere progress.
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
        Guards the job as well.
    record : callable
        The job as plain data, now.
    """

    def __init__(self, lock: threading.Condition, record: Callable[[], dict[str, Any]]) -> None:
        self._lock, self._record = lock, record
        self._newest = self._changed = self._pressing = self._end = 0
        self._replies: deque[tuple[int, str, str]] = deque(maxlen=REPLIES)
        self._listeners: set[_Listener] = set()

    @property
    def listeners(self) -> int:
        """How many follow."""
        return len(self._listeners)

    def change(self, pressing: bool) -> None:
        """The record has changed; if that is not pressing, it may be told with the next change."""
        with self._lock:
            self._changed = self._next()
            if pressing:
                self._pressing = self._changed
            self._wake(pressing)

    def tell(self, name: str, data: str) -> None:
        """There is a better reply, as JSON in one line."""
        with self._lock:
            self._replies.append((self._next(), name, data))
            self._wake(pressing=True)

    def end(self) -> None:
        """The record is final, and this the last event."""
        with self._lock:
            self._end = self._next()
            self._wake(pressing=True)

    async def follow(self, last_id: str | int | None = None) -> AsyncGenerator[bytes]:
        """The record at once, then what comes, until the end.

        Parameters
        ----------
        last_id : str, int or None
            The newest event that the listener has from before.

        Yields
        ------
        bytes
            One server-sent event, or a comment after a long silence.
        """
        loop = asyncio.get_running_loop()
        listener = _Listener(loop)
        try:
            sent = told = loop.time()
            yield self._first(listener, last_id)
            while True:
                listener.news.clear()
                for number, name, data in self._adopt(listener, ripe=loop.time() >= told + PACE):
                    sent = loop.time()
                    told = sent if name == "job" else told
                    yield _event(number, name, data if isinstance(data, str) else one_line(data))
                    if name == "end":
                        return
                wake = told + PACE if listener.coming else sent + BEAT
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
        """Let a listener in, with the record as it is.

        It carries the number of what the listener has already: replies that follow have smaller
        numbers than the newest change, and must not be taken for known if the line breaks here.
        """
        with self._lock:
            known = _number(last_id)
            listener.after = known if known <= self._newest else 0
            listener.covered = self._changed
            self._listeners.add(listener)
            record = self._record()
        return _event(listener.after, "job", one_line(record))

    def _adopt(
        self, listener: _Listener, ripe: bool
    ) -> list[tuple[int, str, str | dict[str, Any]]]:
        """What a listener does not have yet; mere progress only if it is ripe."""
        found: list[tuple[int, str, str | dict[str, Any]]]
        with self._lock:
            found = [event for event in self._replies if event[0] > listener.after]
            changed = self._changed > listener.covered and not self._end
            due = changed and (ripe or self._pressing > listener.covered)
            if due:
                found.append((self._changed, "job", self._record()))
                listener.covered = self._changed
            if self._end:
                found.append((self._end, "end", self._record()))
            listener.coming = changed and not due
            found.sort(key=lambda event: event[0])
            listener.after = found[-1][0] if found else listener.after
        return found


@dataclass(eq=False)
class Job:
    """A piece of long work; only its queue makes and changes it.

    Attributes
    ----------
    id : str
        Cannot be guessed.
    owner : str
        Whose it is.
    kind, dialog : str
        What it does, to which dialog.
    lock_key : str or None
        Jobs with the same one run one after another.
    number : int
        Larger than that of all jobs before.
    state : str
        ``"waiting"``, ``"running"``, ``"done"``, ``"failed"`` or ``"cancelled"``.
    ahead : int
        About how many jobs will start before it.
    progress, result : dict or None
        How far it is, and what came of it.
    error : str or None
        Why it failed, in a sentence for its owner.
    stopping : bool
        Whether it was asked to stop.
    events : Log
        What it tells.
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
        told = ("id", "kind", "dialog", "state", "ahead", "progress", "error", "result")
        with self.lock:
            return {name: getattr(self, name) for name in told}

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end, for some seconds at most; whether it has come."""
        with self.lock:
            return self.lock.wait_for(lambda: self.finished, timeout)


class Handle:
    """A job as its work sees it.

    Parameters
    ----------
    job : Job
        The job.
    """

    def __init__(self, job: Job) -> None:
        self._job = job

    def stopped(self) -> bool:
        """Whether the work should stop: keep what is worth keeping, or raise `Cancelled`."""
        return self._job.stopping

    def progress(
        self,
        done: int,
        total: int,
        text: str,
        members: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        """Tell how far the work is; may be called as often as it is convenient.

        Parameters
        ----------
        done, total : int
            Steps of the work.
        text : str
            What is being done.
        members : iterable of mapping, or None
            ``name``, ``done`` and ``total`` of each member.
        """
        bars = None
        if members is not None:
            bars = [
                {"name": str(one["name"]), "done": int(one["done"]), "total": int(one["total"])}
                for one in members
            ]
        told = {"done": int(done), "total": int(total), "text": str(text), "members": bars}
        with self._job.lock:
            if self._job.state == "running" and told != self._job.progress:
                self._job.progress = told
                self._job.events.change(pressing=False)

    def emit(self, name: Literal["reply"], data: Mapping[str, Any]) -> None:
        """Tell a reply that is better than those before, as plain data."""
        line = one_line(data)
        with self._job.lock:
            if self._job.state == "running":
                self._job.events.tell(name, line)


def stream(job: Job, last_id: str | int | None = None) -> AsyncGenerator[bytes]:
    """A job's server-sent events: its record at once, then what changes, and its end.

    Parameters
    ----------
    job : Job
        The job.
    last_id : str, int or None
        The header ``Last-Event-ID``, as it came.

    Returns
    -------
    events : async generator of bytes
        Ends after the event ``end``.
    """
    return job.events.follow(last_id)
