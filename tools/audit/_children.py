"""Jobs in a child process with limits of time and memory.

A job that crashes or does not end ends only its child; the next job gets a new one.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

Job = Callable[[Any], str | None]
"""A function of a module: it returns None if the attack held, or else what happened."""


class Child:
    """A child process that runs jobs one after another.

    Parameters
    ----------
    job : callable
        The job; it must be importable.
    seconds : float
        How long one job may take.
    memory : int
        Bytes of memory that the child may get beyond what it has at its start.
    """

    def __init__(self, job: Job, seconds: float, memory: int = 4 << 30) -> None:
        self._job, self._seconds, self._memory = job, seconds, memory
        self._process: Any = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def run(self, argument: Any) -> str | None:
        """Run the job; return None if it held, or else what happened."""
        if self._process is None:
            self._start()
        pipe = self._pipe
        if pipe is None:
            raise RuntimeError("The child has no pipe.")
        pipe.send(argument)
        if not pipe.poll(self._seconds):
            self._end()
            return f"no end within {self._seconds:g} s"
        try:
            return pipe.recv()  # type: ignore[no-any-return]
        except EOFError:
            self._process.join(10)
            code = self._process.exitcode
            self._end()
            if code is not None and code < 0:
                return f"the process was ended by {signal.Signals(-code).name}"
            return f"the process exited with {code}"

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_work, args=(self._job, theirs, self._memory), daemon=True
        )
        self._process.start()
        theirs.close()
        if not self._pipe.poll(120):
            raise RuntimeError("A child process did not start within 120 s.")
        self._pipe.recv()

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


def _work(job: Job, pipe: Connection, memory: int) -> None:
    """Run the jobs that come through the pipe."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - the name of a device
        sys.stdout = nowhere
        pipe.send("ready")
        limited = False
        while True:
            try:
                argument = pipe.recv()
            except EOFError:
                return
            if not limited:
                _limit_memory(memory)
                limited = True
            pipe.send(job(argument))


def _limit_memory(more: int) -> None:
    """Limit the address space to what the process has now and some bytes more."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is not written to a disk
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:  # noqa: PTH123
            now = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))
