"""A studio of the audit's own: a process with a temporary store, a token, and clients of it."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self
from urllib.parse import urlsplit

import httpx
import psutil
from tests.studio import running
from tests.studio.serving import Client

FAST = ["logistic"]  # members that are trained in a moment


@dataclass
class Server:
    """A store that a studio opens again after each kill.

    Attributes
    ----------
    folder : Path
        Holds the log, and the store if it is SQLite.
    store : str or None
        The URL of the store; None for SQLite.
    token : str
        The token, which does not change.
    """

    folder: Path
    store: str | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    studio: running.Studio | None = None

    def start(self) -> None:
        """Start the studio, or start it again at the same address."""
        environment = {"MARGRAVE_TOKEN": self.token}
        port = 0 if self.studio is None else urlsplit(self.url).port or 0
        self.studio = running.Studio(
            self.folder, store=self.store, port=port, environment=environment, seconds=120
        )

    @property
    def process(self) -> running.Studio:
        """The running studio."""
        if self.studio is None:
            raise RuntimeError("The studio is not started.")
        return self.studio

    @property
    def url(self) -> str:
        """Its address, without the token."""
        return self.process.url.partition("?")[0].partition("#")[0]

    def kill(self) -> None:
        """End it and its workers as a power cut would."""
        if self.studio is not None:
            self.studio.kill()

    def alive(self) -> bool:
        """Whether the process runs and responds."""
        if self.process.process.poll() is not None:
            return False
        with self.client() as user:
            return user.get("/studio").status_code == 200

    def memory(self) -> int:
        """Bytes of memory of the process and its children."""
        first = psutil.Process(self.process.process.pid)
        total = 0
        for one in (first, *first.children(recursive=True)):
            try:
                total += one.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return total

    @contextmanager
    def client(self, timeout: float = 120) -> Iterator[Client]:
        """Make a client with the token; all these clients are the same user."""
        with self._http(timeout, {"Authorization": f"Bearer {self.token}"}) as http:
            yield Client(http)

    @contextmanager
    def new_user(self, timeout: float = 120) -> Iterator[Client]:
        """Make a client of a new user, as a browser that enters the token."""
        with self._http(timeout, {}) as http:
            user = Client(http)
            user.ok("/session", {"token": self.token})
            yield user

    def _http(self, timeout: float, headers: dict[str, str]) -> httpx.Client:
        return httpx.Client(
            base_url=self.url,
            headers={"X-Margrave": "1", **headers},
            timeout=timeout,
            trust_env=False,
            limits=httpx.Limits(max_connections=None),
        )


class PeakMemory:
    """Measures, while the context is open, the most memory of a studio and its children.

    Attributes
    ----------
    bytes : int
        The most that was seen.
    """

    def __init__(self, server: Server, every: float = 0.05) -> None:
        self.bytes = 0
        self._server, self._every = server, every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(psutil.NoSuchProcess):
                self.bytes = max(self.bytes, self._server.memory())
            self._over.wait(self._every)


@contextmanager
def served(store: str | None = None) -> Iterator[Server]:
    """Start a studio in a temporary folder; end it and delete the folder afterwards."""
    with TemporaryDirectory(prefix="margrave-audit-") as folder:
        server = Server(Path(folder), store)
        try:
            server.start()
            yield server
        finally:
            server.kill()
