"""Load: dialogs of several users at once, with many event streams open.

Reads stay fast, memory stays bounded, and a training can be cancelled at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any

import httpx
from tests.studio.serving import Client
from tools.audit._attacks import Attack, percentile
from tools.audit._studio import FAST, PeakMemory, Server, served

USERS, DIALOGS, STREAMS = 10, 40, 230
READ, MEMORY, CANCEL = 0.5, 1 << 30, 2.0
"""Limits: seconds of a read (95th percentile), bytes, seconds until a training is cancelled."""

EACH = 50  # reads of a user
PAUSE = 1.0  # seconds, at most, between two reads of a user
SLOW = ["svm", "extra-trees", "gradient-boosting"]
VIEWS = ("", "/frontier", "/members", "/guarantee", "/winners")


@dataclass
class Streams:
    """Event streams that are open at the same time, in one thread.

    Attributes
    ----------
    cookies : list of (dict, str)
        For each stream, the cookies of a user and the id of a job.
    n_open : int
        How many have begun.
    """

    url: str
    cookies: list[tuple[dict[str, str], str]]
    n_open: int = 0
    refused: list[int] = field(default_factory=list)

    def __enter__(self) -> Streams:
        self._streams: asyncio.Future[Any] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._streams is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._streams.cancel)
        self._thread.join(30)

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._all())

    async def _all(self) -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            base_url=self.url, timeout=600, trust_env=False, limits=limits
        ) as http:  # whose end must not be cancelled, or its sockets stay open
            self._streams = asyncio.gather(*(self._one(http, *each) for each in self.cookies))
            with contextlib.suppress(asyncio.CancelledError):
                await self._streams

    async def _one(self, http: httpx.AsyncClient, cookies: dict[str, str], job: str) -> None:
        header = "; ".join(f"{name}={value}" for name, value in cookies.items())
        path = f"/api/jobs/{job}/events"
        async with http.stream("GET", path, headers={"Cookie": header}) as response:
            if response.status_code != 200:
                self.refused.append(response.status_code)
                return
            self.n_open += 1
            async for _ in response.aiter_lines():
                pass


def train(user: Client, n: int, accepting: Attack) -> list[str]:
    """Train dialogs of a user, with one step each; return their paths.

    Every other dialog has rows of its own, and its model is accepted: the studio's ledger has then
    an account of them, which later requests compare with theirs.
    """
    dialogs = []
    for number in range(n):
        own = number % 2 == 0
        dialog = user.dialog("pima", own=own, members=FAST, seed=number)
        user.asked(dialog, f"fp <= {50 + number}", strategies=["move"])
        if own:
            last = user.finished(user.post(f"{dialog}/accept", {"confidence": 0.8}))
            accepting.check(last["state"] == "done", f"it ended as {last['state']}")
        dialogs.append(dialog)
    return dialogs


def read(user: Client, dialogs: list[str], n: int, rng: random.Random) -> list[float]:
    """Read views of a user's dialogs, with pauses as a person makes; return the seconds of each."""
    seconds = []
    for _ in range(n):
        sleep(rng.uniform(0, PAUSE))
        start = perf_counter()
        user.ok(rng.choice(dialogs) + rng.choice(VIEWS))
        seconds.append(perf_counter() - start)
    return seconds


def begin(user: Client) -> dict[str, Any]:
    """Begin a training that takes long."""
    body = {"table": user.table("spambase"), "target": "target", "members": SLOW}
    return user.ok("/dialogs", body)["job"]  # type: ignore[no-any-return]


def cancel(user: Client, job: str) -> float:
    """Cancel a training; return the seconds until it is over."""
    start = perf_counter()
    user.ok(f"/jobs/{job}/cancel", {})
    while user.ok(f"/jobs/{job}")["state"] in ("waiting", "running"):
        sleep(0.02)
        if perf_counter() - start > 60:
            break
    return perf_counter() - start


def stress(server: Server, users: list[Client], n_dialogs: int, n_streams: int) -> Iterator[Attack]:
    """Train, open streams, read, and cancel."""
    each = n_dialogs // len(users)
    with PeakMemory(server, every=0.2) as peak, ThreadPoolExecutor(len(users)) as pool:
        start = perf_counter()
        accepting = Attack("models accepted, each on rows of its own", "all have a certificate")
        dialogs = list(pool.map(lambda user: train(user, each, accepting), users))
        trained = perf_counter() - start
        yield accepting
        jobs = [begin(user)["id"] for user in users]
        followed = [
            (dict(users[i % len(users)].http.cookies), jobs[i % len(users)])
            for i in range(n_streams)
        ]
        with Streams(server.url, followed) as streams:
            since = perf_counter()
            while streams.n_open + len(streams.refused) < n_streams and perf_counter() - since < 60:
                sleep(0.05)
            opened = Attack("event streams open at once", "all accepted", n_streams)
            if streams.n_open < n_streams:
                opened.failures = ["not accepted"] * (n_streams - streams.n_open)
            opened.measured = f"{streams.n_open} open"
            yield opened

            reads = Attack("reads with all streams open", f"p95 below {READ * 1000:.0f} ms")
            found = pool.map(
                lambda pair: read(users[pair[0]], pair[1], EACH, random.Random(pair[0])),  # noqa: S311
                enumerate(dialogs),
            )
            seconds = [one for part in found for one in part]
            usual = percentile(seconds, 95)
            reads.count = len(seconds)
            if usual > READ:
                reads.failures.append(f"the 95th percentile is {usual * 1000:.0f} ms")
            reads.measured = (
                f"median {percentile(seconds, 50) * 1000:.0f} ms, p95 {usual * 1000:.0f} ms, "
                f"slowest {max(seconds):.1f} s"  # the first ones, behind 230 streams that begin
            )
            yield reads

            cancelled = Attack("trainings cancelled", f"over within {CANCEL:g} s")
            times = [cancel(user, job) for user, job in zip(users, jobs, strict=True)]
            for took in times:
                cancelled.check(took <= CANCEL, f"took {took:.1f} s")
            cancelled.measured = f"slowest {max(times):.2f} s"
            yield cancelled
    memory = Attack(f"{n_dialogs} dialogs of {len(users)} users", f"below {MEMORY >> 30} GB")
    memory.check(peak.bytes <= MEMORY, f"needed {peak.bytes / 1e9:.2f} GB")
    memory.count = n_dialogs
    memory.measured = f"{peak.bytes / 1e9:.2f} GB, trained in {trained:.0f} s"
    yield memory


def run(seed: int, count: int | None) -> Iterator[Attack]:
    """Put a studio under load; with `count`, that many users with one dialog each."""
    del seed  # the load has no random part that matters
    n_users = count or USERS
    n_dialogs, n_streams = (DIALOGS, STREAMS) if count is None else (count, 5 * count)
    with served() as server, ExitStack() as opened:
        users = [opened.enter_context(server.new_user()) for _ in range(n_users)]
        yield from stress(server, users, n_dialogs, n_streams)
