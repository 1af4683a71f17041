"""A fair queue of long-running jobs, which report progress and can be cancelled.

Users take turns. Every start of a job belongs to a round, and each user has one start in a round: a
user who has started a job in this round waits for the next one, and a new user can start at once.
Fifty jobs of one user therefore do not delay the first job of another. A worker is idle only if no
job can start.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from time import monotonic
from typing import Any

from margrave.studio._events import Handle, Job, State, Work, one_line, stream
from margrave.studio.problems import WENT_WRONG, problem_record

__all__ = [
    "WENT_WRONG",
    "Cancelled",
    "Closed",
    "Handle",
    "Job",
    "Queue",
    "State",
    "TooMany",
    "UnknownJob",
    "Work",
    "stream",
]

_log = logging.getLogger(__name__)


class Cancelled(Exception):  # noqa: N818
    """Raised by a job that was cancelled and has no result."""


class TooMany(Exception):  # noqa: N818
    """A user has too many waiting jobs."""


class Closed(Exception):  # noqa: N818
    """The queue accepts no more jobs."""


class UnknownJob(KeyError):  # noqa: N818
    """There is no such job, or it belongs to another user."""

    def __str__(self) -> str:
        return "There is no such job."


class Queue:
    """Runs jobs in threads, in a fair order.

    Parameters
    ----------
    workers : int
        Number of jobs that run at the same time.
    per_user : int
        Number of running jobs of one user while a job of another user could start.
    per_user_waiting : int
        Number of jobs of one user that may wait.
    keep : int
        Number of finished jobs that are kept.
    told : tuple of exception types
        Errors whose messages are shown to users.

    Examples
    --------
    >>> queue = Queue(workers=2, per_user=1, per_user_waiting=8, keep=100)
    >>> job = queue.submit("ann", "prefer", "d1", lambda handle: {"step": 1}, lock_key="d1")
    >>> job.wait(timeout=60)
    True
    >>> job.state, job.result
    ('done', {'step': 1})
    >>> queue.shutdown(timeout=60)
    True
    """

    def __init__(
        self,
        workers: int,
        per_user: int,
        per_user_waiting: int,
        keep: int,
        told: tuple[type[Exception], ...] = (),
    ) -> None:
        for name, value, least in (
            ("workers", workers, 1),
            ("per_user", per_user, 1),
            ("per_user_waiting", per_user_waiting, 0),
            ("keep", keep, 0),
        ):
            if value < least:
                raise ValueError(f"{name} of Queue must be {least} or more, got {value!r}.")
        self._workers, self._per_user, self._keep = workers, per_user, keep
        self._per_user_waiting, self._told = per_user_waiting, told
        self._lock = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._number = self._round = 0
        self._turns: dict[str, int] = {}  # the round of a user's next start
        self._jobs: dict[str, Job] = {}
        self._waiting: dict[Job, None] = {}  # oldest first
        self._running: dict[Job, None] = {}
        self._ready: deque[Job] = deque()  # running jobs that no thread has picked up yet
        self._finished: deque[Job] = deque()

    def submit(
        self, owner: str, kind: str, dialog: str, work: Work, *, lock_key: str | None = None
    ) -> Job:
        """Add a job, which runs when it is its turn.

        Parameters
        ----------
        owner, kind, dialog : str
            The user, what the job does, and the dialog that it works on.
        work : callable
            Takes a `Handle` and returns a dict of plain data.
        lock_key : str or None
            Jobs with the same key run one after another, in the order of submission.

        Returns
        -------
        job : Job
            It is already running if a worker was free.

        Raises
        ------
        TooMany
            If too many jobs of the owner are waiting.
        Closed
            After `shutdown`.
        """
        with self._lock:
            if self._closed:
                raise Closed("The studio is shutting down and accepts no more requests.")
            waiting = sum(job.owner == owner for job in self._waiting)
            if not waiting:
                self._turns[owner] = max(self._turns.get(owner, 0), self._round)
            self._number += 1
            job = Job(owner, kind, dialog, lock_key, self._number, work, self._lock)
            self._waiting[job] = None
            if waiting >= self._per_user_waiting and job is not self._next():
                del self._waiting[job]
                raise TooMany(
                    f"You have {waiting} waiting requests; the limit is {self._per_user_waiting}. "
                    "Wait until one is done, or cancel one."
                )
            self._jobs[job.id] = job
            self._start_threads()
            self._move()
        return job

    def job(self, owner: str, job_id: str) -> Job:
        """Return a user's job.

        Raises
        ------
        UnknownJob
            If there is no such job, it belongs to another user, or it ended long ago.
        """
        with self._lock:
            job = self._jobs.get(job_id)
        if job is None or job.owner != owner:
            raise UnknownJob(job_id)
        return job

    def of_dialog(self, dialog: str) -> Job | None:
        """The newest unfinished job of a dialog."""
        with self._lock:
            jobs = [job for job in (*self._running, *self._waiting) if job.dialog == dialog]
        return max(jobs, key=lambda job: job.number, default=None)

    def cancel(self, job: Job) -> None:
        """Cancel a waiting job, or request a running one to stop."""
        with self._lock:
            job.stopping = job.stopping or not job.finished
            if job.state == "waiting":
                self._finish(job, "cancelled")

    def shutdown(self, timeout: float) -> bool:
        """Accept no more jobs, cancel all, and wait `timeout` seconds for the running ones.

        Returns
        -------
        stopped : bool
            Whether all have stopped. The others are reported as cancelled, and their results are
            ignored.
        """
        until = monotonic() + timeout
        with self._lock:
            self._closed = True
            for job in (*self._waiting, *self._running):
                self.cancel(job)
            self._lock.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, until - monotonic()))
        with self._lock:
            for job in tuple(self._running):
                self._finish(job, "cancelled")
        return not any(thread.is_alive() for thread in self._threads)

    def _next(self) -> Job | None:
        """The job to start now if a worker is free.

        Candidates are the oldest job of each user that no lock blocks. Users with fewer running
        jobs than `per_user` come first, then the order of the rounds decides.
        """
        locked = {job.lock_key for job in self._running} - {None}
        heads: dict[str, Job] = {}
        for job in self._waiting:
            if job.lock_key not in locked:
                heads.setdefault(job.owner, job)
            if job.lock_key is not None:
                locked.add(job.lock_key)  # later ones wait for this one
        if len(self._running) >= self._workers or not heads:
            return None
        running = Counter(job.owner for job in self._running)
        over = {owner: n for owner, n in running.items() if n >= self._per_user}
        return min(
            heads.values(),
            key=lambda job: (over.get(job.owner, 0), self._turns[job.owner], job.number),
        )

    def _move(self) -> None:
        """Start all jobs that can start, and update the places of the waiting ones."""
        while (job := self._next()) is not None:
            del self._waiting[job]
            self._running[job] = None
            self._ready.append(job)
            # A user who missed several rounds gets one start, not one for each round.
            self._round = max(self._round, self._turns[job.owner])
            self._turns[job.owner] = self._round + 1
            job.state, job.ahead = "running", 0
            job.events.change(pressing=True)
        present = {job.owner for job in (*self._waiting, *self._running)}
        self._turns = {
            owner: turn
            for owner, turn in self._turns.items()
            if owner in present or (self._waiting and turn > self._round)
        }
        self._count_ahead()
        self._lock.notify_all()

    def _count_ahead(self) -> None:
        """Number the waiting jobs by rounds, as if each could start when it is its turn."""
        turns = dict(self._turns)
        places: list[tuple[int, int, Job]] = []
        for job in self._waiting:
            turn = turns[job.owner]
            places.append((turn, job.number, job))
            turns[job.owner] = max(turn, self._round) + 1
        for ahead, (_, _, job) in enumerate(sorted(places, key=lambda place: place[:2])):
            if job.ahead != ahead:
                job.ahead = ahead
                job.events.change(pressing=True)

    def _finish(
        self,
        job: Job,
        state: State,
        problem: dict[str, Any] | None = None,
        result: dict[str, Any] | None = None,
    ) -> None:
        with self._lock:
            if job.finished:  # shutdown did not wait for it
                return
            self._waiting.pop(job, None)
            self._running.pop(job, None)
            job.state, job.ahead, job.result = state, 0, result
            if problem is not None:
                job.error, job.code, job.fields = map(problem.get, ("error", "code", "fields"))
            job.work = None  # it refers to a dialog
            job.events.end()
            self._finished.append(job)
            while len(self._finished) > self._keep:
                del self._jobs[self._finished.popleft().id]
            self._move()

    def _start_threads(self) -> None:
        while len(self._threads) < self._workers:
            name = f"studio-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self) -> None:
        """The loop of a worker thread."""
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._ready or self._closed)
                if not self._ready:
                    return
                job = self._ready.popleft()
            self._run(job)

    def _run(self, job: Job) -> None:
        work = job.work
        try:
            if job.stopping or work is None:
                raise Cancelled
            result = work(Handle(job))
            one_line(
                result
            )  # a result that cannot be sent is an error of the job, not of a listener
        except Cancelled:
            self._finish(job, "cancelled")
        except self._told as error:
            self._finish(job, "failed", problem_record(error))
        except BaseException:  # even SystemExit ends the job only, not the worker
            _log.exception("A job of kind %r failed.", job.kind)
            self._finish(job, "failed", {"error": WENT_WRONG})
        else:
            self._finish(job, "done", result=result)
