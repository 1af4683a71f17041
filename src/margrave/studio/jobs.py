"""The queue of long work: who is next, who may stop it, and what it tells meanwhile.

Users take turns. Every start of a job belongs to a round, and a user has one start in each: who has
had that of this round waits for the next, and who comes new still has it. So fifty jobs of one user
do not delay the first of another. A worker is idle only if no job can start.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from time import monotonic
from typing import Any

from margrave.studio._events import Handle, Job, State, Work, one_line, stream

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

WENT_WRONG = "Something went wrong in the studio; it was written to its log."

_log = logging.getLogger(__name__)


class Cancelled(Exception):  # noqa: N818
    """Raised by work that was asked to stop and has nothing to show."""


class TooMany(Exception):  # noqa: N818
    """A user has as many jobs waiting as one may have."""


class Closed(Exception):  # noqa: N818
    """The queue takes no more jobs."""


class UnknownJob(KeyError):  # noqa: N818
    """There is no such job, or it is another user's."""

    def __str__(self) -> str:
        return "There is no such job."


class Queue:
    """Runs jobs in threads, fairly.

    Parameters
    ----------
    workers : int
        How many jobs run at once.
    per_user : int
        How many of one user, while another's could start.
    per_user_waiting : int
        How many jobs of one user may wait.
    keep : int
        How many finished jobs are remembered.
    told : tuple of exception types
        Errors whose message is meant for users.

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
        self._waiting: dict[Job, None] = {}  # the oldest first
        self._running: dict[Job, None] = {}
        self._ready: deque[Job] = deque()  # those running that no thread has taken up yet
        self._finished: deque[Job] = deque()

    def submit(
        self, owner: str, kind: str, dialog: str, work: Work, *, lock_key: str | None = None
    ) -> Job:
        """Let work be done as soon as it is its turn.

        Parameters
        ----------
        owner, kind, dialog : str
            Whose, what, and of which dialog.
        work : callable
            Gets a `Handle`, gives a dict of plain data.
        lock_key : str or None
            Work with the same one is done one after another, in the order it came.

        Returns
        -------
        job : Job
            Running already if a worker was free for it.

        Raises
        ------
        TooMany
            If too many jobs of the owner wait.
        Closed
            After `shutdown`.
        """
        with self._lock:
            if self._closed:
                raise Closed("The studio is closing and takes no more work.")
            waiting = sum(job.owner == owner for job in self._waiting)
            if not waiting:
                self._turns[owner] = max(self._turns.get(owner, 0), self._round)
            self._number += 1
            job = Job(owner, kind, dialog, lock_key, self._number, work, self._lock)
            self._waiting[job] = None
            if waiting >= self._per_user_waiting and job is not self._next():
                del self._waiting[job]
                raise TooMany(
                    f"You have {waiting} requests waiting, and there may be "
                    f"{self._per_user_waiting}; let one finish or cancel one."
                )
            self._jobs[job.id] = job
            self._start_threads()
            self._move()
        return job

    def job(self, owner: str, job_id: str) -> Job:
        """A user's job.

        Raises
        ------
        UnknownJob
            If there is none, it is another user's, or it ended long ago.
        """
        with self._lock:
            job = self._jobs.get(job_id)
        if job is None or job.owner != owner:
            raise UnknownJob(job_id)
        return job

    def of_dialog(self, dialog: str) -> Job | None:
        """The newest job of a dialog that is not finished."""
        with self._lock:
            found = [job for job in (*self._running, *self._waiting) if job.dialog == dialog]
        return max(found, key=lambda job: job.number, default=None)

    def cancel(self, job: Job) -> None:
        """End a job that waits, and ask one that runs to stop."""
        with self._lock:
            job.stopping = job.stopping or not job.finished
            if job.state == "waiting":
                self._finish(job, "cancelled")

    def shutdown(self, timeout: float) -> bool:
        """Take no more jobs, cancel all, and wait some seconds for those that run.

        Returns
        -------
        stopped : bool
            Whether all have stopped. Those that have not are cancelled for who listens, and what
            they still do is not heard.
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

        Of each user the oldest that no lock holds back; of these, first those of users who have
        not their share of the workers, then in the order of rounds.
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
        """Start what can start, and tell those that wait how many are ahead."""
        while (job := self._next()) is not None:
            del self._waiting[job]
            self._running[job] = None
            self._ready.append(job)
            # Who was held back for some rounds gets one start at once, not one for each of them.
            self._round = max(self._round, self._turns[job.owner])
            self._turns[job.owner] = self._round + 1
            job.state, job.ahead = "running", 0
            job.events.change(pressing=True)
        here = {job.owner for job in (*self._waiting, *self._running)}
        self._turns = {
            owner: turn
            for owner, turn in self._turns.items()
            if owner in here or (self._waiting and turn > self._round)
        }
        self._count_ahead()
        self._lock.notify_all()

    def _count_ahead(self) -> None:
        """Number the jobs that wait by rounds, as if each could start when it is its turn."""
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
        error: str | None = None,
        result: dict[str, Any] | None = None,
    ) -> None:
        with self._lock:
            if job.finished:  # it was given up at shutdown
                return
            self._waiting.pop(job, None)
            self._running.pop(job, None)
            job.state, job.ahead, job.error, job.result = state, 0, error, result
            job.work = None  # it holds a dialog
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
        """What a worker thread does."""
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
            one_line(result)  # what cannot be sent is an error of the work, not of who listens
        except Cancelled:
            self._finish(job, "cancelled")
        except self._told as error:
            self._finish(job, "failed", " ".join(str(error).split()) or WENT_WRONG)
        except BaseException:  # even SystemExit ends the job only, not the worker
            _log.exception("A job of kind %r failed.", job.kind)
            self._finish(job, "failed", WENT_WRONG)
        else:
            self._finish(job, "done", result=result)
