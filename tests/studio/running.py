"""The studio as its users run it: a process of its own, which tests start, stop and kill."""

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

PROGRAM = (sys.executable, "-m", "margrave", "studio")
READY = re.compile(r".*(https?://\S+)\s*")
Handler = Callable[[int, FrameType | None], object] | int


@contextlib.contextmanager
def interrupted_by(handler: Handler) -> Iterator[None]:
    """Start processes inside this context with a handler for Ctrl-C (SIGINT).

    They inherit SIGINT if it is ignored here, as in every background job of a shell; where there
    is a handler, they begin with the default.
    """
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Studio:
    """A running server; `url` is what it has printed, with its token.

    Parameters
    ----------
    folder : Path
        Where its log goes, and its store if none is named.
    *arguments : str
        More of the command line, such as a data set's name.
    store : str, optional
        The store's URL; by default an SQLite file in the folder, the same at every start.
    port : int, optional
        By default any that is free.
    seconds : float, optional
        How long it may take to be ready.
    environment : dict of str, optional
        Added to the environment.
    interrupt : signal handler, optional
        `signal.SIG_IGN` starts it as a job in the background, which ignores Ctrl-C.
    browser : str, optional
        A program that it opens as the browser, with the address as its argument.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        store: str | None = None,
        port: int = 0,
        seconds: float = 90,
        environment: dict[str, str] | None = None,
        interrupt: Handler = signal.default_int_handler,
        browser: str | None = None,
    ):
        self.store = store or f"sqlite:///{folder / 'studio.db'}"
        self.log = folder / "studio.log"
        command = [*PROGRAM, *arguments, "--port", str(port), "--store", self.store]
        command += ["--no-browser"] if browser is None else ["--browser"]
        with self.log.open("ab") as log, interrupted_by(interrupt):
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "XDG_DATA_HOME": str(folder),  # where a token is kept if the store is no file
                    "BROWSER": browser or "",
                    **(environment or {}),
                },
                start_new_session=True,  # its workers can be ended with it
            )
        self._printed: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._seconds = seconds
        try:
            self.url = self._ready()
        except BaseException:
            self.kill()
            raise

    def _read(self) -> None:
        with self.process.stdout as printed:
            for line in printed:
                self._printed.put(line)
        self._printed.put(None)

    def more_urls(self, n: int) -> list[str]:
        """The addresses on the next lines that it prints."""
        return [self._ready() for _ in range(n)]

    def _ready(self) -> str:
        try:
            line = self._printed.get(timeout=self._seconds)
        except queue.Empty:
            line = None
        ready = READY.fullmatch(line or "")
        if ready is None:
            raise AssertionError(
                f"The studio printed {line!r}, not its address, within {self._seconds} s:\n"
                f"{self.errors}"
            )
        return ready[1]

    @property
    def errors(self) -> str:
        """What it has written to standard error."""
        return self.log.read_text(errors="replace")

    def stop(self) -> int:
        """End it in the polite way, and return its status."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=30)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it and its workers as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
