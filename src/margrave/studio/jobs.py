"""Runs the jobs of the store in threads, and tells listeners about them.

Training takes long, so it has threads of its own. Any process of a studio can be asked about any
job: one that runs here is read from memory, all others from the store.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from random import uniform
from time import monotonic
from typing import Any

from starlette.concurrency import run_in_threadpool
from threadpoolctl import threadpool_limits

from margrave.steer import StoppedError
from margrave.studio.job_table import TRAIN, JobTable
from margrave.studio.problems import WENT_WRONG, problem_record
from margrave.studio.settings import cores
from margrave.studio.store import (
    Conflict,
    DialogRow,
    Ended,
    JobRow,
    Lost,
    NotFound,
    Record,
    StoreError,
)

Work = Callable[[JobRow, "Handle"], None]

BEAT, ALONE = 1.0, 5.0  # seconds between two looks at the store, if it is shared and if not
PRUNE = 3600.0  # seconds between two deletions of old jobs
LOOK = 0.5  # seconds after which a listener looks at a job that has reported nothing
LOOKERS = 10  # listeners that look so often; if there are more, each waits longer
PACE = 0.1  # seconds between two reports of progress

_log = logging.getLogger(__name__)
_RECORD = ("id", "kind", "state", "progress", "reply", "error", "code", "fields", "result")


class Interrupted(Exception):  # noqa: N818
    """The studio is ending: the job begins again in another process."""


class Closed(Exception):  # noqa: N818
    """The studio is ending and accepts no more jobs."""

    code = "closed"


class Handle:
    """A running job, for the function that does its work.

    Parameters
    ----------
    job : JobRow
        The job.
    process : str
        The process that holds its lease.
    report : callable
        Called with the job's id when it has something new.
    closing : Event
        Set when the studio is ending.
    n_jobs : int
        The number of cores that the job may use.
    """

    def __init__(
        self,
        job: JobRow,
        process: str,
        report: Callable[[str], None],
        closing: threading.Event,
        n_jobs: int = 1,
    ) -> None:
        self.job, self.n_jobs = job, n_jobs
        self.news: Record = {"progress": None, "reply": None}
        self._process, self._report, self._closing = process, report, closing
        self._stopping = job.stopping
        self._reported = 0.0

    def stop(self) -> None:
        """Request the job to stop."""
        self._stopping = True

    def stopped(self) -> bool:
        """Whether the work should stop, with the result so far or by raising `StoppedError`."""
        return self._stopping or self._closing.is_set()

    def progress(
        self,
        done: int,
        total: int,
        text: str,
        members: Iterable[Mapping[str, Any]] | None = None,
        provisional: Record | None = None,
    ) -> None:
        """Report progress; may be called at any rate.

        Parameters
        ----------
        done, total : int
            The number of finished steps, and of all steps.
        text : str
            The current step, in words.
        members : iterable of mapping, or None
            ``name``, ``done``, ``total`` and ``state`` of each member.
        provisional : dict or None
            The confusion matrix of the members so far.
        """
        self.news["progress"] = {
            "done": done,
            "total": total,
            "text": text,
            "members": None if members is None else [dict(member) for member in members],
            "provisional": provisional,
        }
        if monotonic() > self._reported + PACE:
            self._reported = monotonic()
            self._report(self.job.id)

    def reply(self, record: Record) -> None:
        """Report a reply that is better than the ones before."""
        self.news["reply"] = record
        self._report(self.job.id)

    def done(self, result: Record) -> Ended:
        """The successful end of the job, to be stored with the changes that it made."""
        if self._closing.is_set():
            raise Interrupted
        return self.ended("done", result=result)

    def ended(self, state: str, **values: Any) -> Ended:
        """The end of the job."""
        return Ended(self.job.id, self._process, self.job.attempts, {"state": state, **values})


class Jobs:
    """The jobs of a studio.

    Parameters
    ----------
    table : JobTable
        The jobs in the store.
    work : mapping of str to callable
        The function for each kind of job. It stores its changes together with the end of the job,
        see :meth:`Handle.done`.
    workers : int
        Number of jobs that run at the same time in this process; one fewer for training.
    """

    def __init__(self, table: JobTable, work: Mapping[str, Work], workers: int) -> None:
        self.table = table
        self._work = dict(work)
        self._closing = threading.Event()
        # Wake a worker for training, or for all other jobs, to look in the store.
        self._wakes: dict[bool, SimpleQueue[None]] = {True: SimpleQueue(), False: SimpleQueue()}
        self._lock, self._ending = threading.Lock(), threading.Lock()
        self._running: dict[str, Handle] = {}
        self._listeners: dict[str, set[Callable[[], object]]] = {}
        self._unstored: deque[tuple[Handle, Ended]] = deque()
        self._threads = [
            threading.Thread(target=self._serve, args=(training,), daemon=True)
            for training in (*[True] * max(1, workers - 1), *[False] * workers)
        ]
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        """Run the waiting jobs, and accept new ones."""
        for thread in (*self._threads, self._keeper):
            thread.start()

    def begin(
        self, owner: str, title: str, table_id: str | None, choices: Record
    ) -> tuple[DialogRow, JobRow]:
        """Add a dialog, and the job that trains it."""
        self._check_open()
        dialog, job = self.table.begin(owner, title, table_id, choices)
        self._wakes[True].put(None)
        return dialog, job

    def submit(self, owner: str, kind: str, dialog_id: str, arguments: Record) -> JobRow:
        """Add a job, which runs when it is its turn; see :meth:`JobTable.add`."""
        self._check_open()
        job = self.table.add(owner, kind, dialog_id, arguments)
        self._wakes[kind == TRAIN].put(None)
        return job

    def _check_open(self) -> None:
        if self._closing.is_set():
            raise Closed("The studio is shutting down and accepts no more requests.")

    def cancel(self, job: JobRow) -> None:
        """Cancel a waiting job, or request a running one to stop; the best reply is kept."""
        self.table.cancel(job)
        if handle := self._running.get(job.id):
            handle.stop()
        self._report(job.id)

    def enough(self, job: JobRow) -> None:
        """End a training with the members that are finished now, or a few more."""
        record = self.record(job)
        if record["kind"] != TRAIN or record["state"] != "running":
            raise Conflict("Only a training that is running can end with fewer members.")
        progress = record["progress"] or {}
        states = [member["state"] for member in progress.get("members") or ()]
        n_finished = states.count("done")
        if not n_finished:
            raise Conflict("No member is finished yet.")
        self.table.set_enough(job, n_finished)

    def record(self, job: JobRow) -> Record:
        """A job as plain data."""
        handle = self._running.get(job.id)
        source = job if handle is None else handle.job
        record = {name: getattr(source, name) for name in _RECORD}
        record |= {} if handle is None else handle.news
        ahead = self.table.ahead(job) if source.state == "waiting" else 0
        restarted = source.attempts > 1 or (handle is None and self.table.is_silent(job))
        return {**record, "dialog": job.dialog_id, "ahead": ahead, "restarted": restarted}

    def wait(self, job: JobRow, seconds: float) -> JobRow:
        """Wait until a job has ended, at most some seconds; return its row."""
        news, until = threading.Event(), monotonic() + seconds
        with self._listening(job.id, news.set):
            while True:
                news.clear()
                if job.id not in self._running:
                    job = self.table.find(job.owner, job.id)
                left = until - monotonic()
                if job.is_finished or left <= 0:
                    return job
                news.wait(min(left, LOOK))

    @contextmanager
    def _listening(self, job_id: str, wake: Callable[[], object]) -> Iterator[None]:
        """Call `wake` at each change of a job."""
        with self._lock:
            self._listeners.setdefault(job_id, set()).add(wake)
        try:
            yield
        finally:
            with self._lock:
                listeners = self._listeners[job_id]
                listeners.discard(wake)
                if not listeners:
                    del self._listeners[job_id]

    async def follow(self, job: JobRow) -> AsyncIterator[Record]:
        """Yield a job's record at once and after each change, until it has ended."""
        news, loop = asyncio.Event(), asyncio.get_running_loop()
        sent: Record = {}
        with self._listening(job.id, lambda: loop.call_soon_threadsafe(news.set)):
            while True:
                news.clear()
                record = await run_in_threadpool(self._look, job, sent)
                if record != sent:
                    yield record
                    sent = record
                if record["state"] not in ("waiting", "running"):
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await news.wait()

    def _pause(self) -> float:
        """Seconds until a listener looks again, so that all of them leave the store to others."""
        with self._lock:
            n_listeners = sum(map(len, self._listeners.values()))
        # At random, so that listeners that began together do not look together.
        return LOOK * max(1.0, n_listeners / LOOKERS * uniform(0.5, 1.5))  # noqa: S311

    def _look(self, job: JobRow, sent: Record) -> Record:
        """The current record of a job; a job whose dialog was deleted is cancelled."""
        handle = self._running.get(job.id)
        try:
            return self.record(self.table.find(job.owner, job.id) if handle is None else job)
        except NotFound:
            return {**(sent or self.record(job)), "state": "cancelled"}

    def close(self, timeout: float) -> bool:
        """Accept no more jobs, and interrupt the running ones, which begin again elsewhere.

        Parameters
        ----------
        timeout : float
            Seconds to wait for the running ones.

        Returns
        -------
        bool
            Whether all have stopped. The results of the others are ignored.
        """
        until = monotonic() + timeout
        self._closing.set()
        for wakes in self._wakes.values():
            for _ in self._threads:
                wakes.put(None)
        threads = [thread for thread in (*self._threads, self._keeper) if thread.is_alive()]
        for thread in threads:
            thread.join(max(0.0, until - monotonic()))
        self.table.release()
        return not any(thread.is_alive() for thread in threads)

    def _report(self, job_id: str) -> None:
        """Wake the listeners of a job."""
        with self._lock:
            listeners = tuple(self._listeners.get(job_id, ()))
        for wake in listeners:
            with suppress(RuntimeError):  # its event loop was closed
                wake()

    def _serve(self, training: bool) -> None:
        """The loop of a worker thread."""
        threadpool_limits(1, user_api="openmp")  # of this thread: a job has no threads but n_jobs
        handle = self._claim(training)  # a job may have been interrupted
        while not self._closing.is_set():
            if handle is None:
                self._wakes[training].get()
            else:
                self._run(handle)
            handle = self._claim(training)

    def _claim(self, training: bool) -> Handle | None:
        """Lease the next job, if there is one."""
        if self._closing.is_set():  # what this process has leased is released by now
            return None
        try:
            job = self.table.claim(training)
        except Exception:  # the worker tries again later
            _log.exception("The store gave no job.")
            return None
        if job is None:
            return None
        with self._lock:
            n_trainings = 1 + sum(other.job.kind == TRAIN for other in self._running.values())
            n_jobs = max(1, cores() // n_trainings)  # the trainings share the cores
            handle = Handle(job, self.table.process, self._report, self._closing, n_jobs)
            self._running[job.id] = handle
        return handle

    def _run(self, handle: Handle) -> None:
        job = handle.job
        try:
            self._work[job.kind](job, handle)
        except (Interrupted, Lost):  # it begins again, or began elsewhere
            _log.info("A job of kind %r was interrupted.", job.kind)
        except StoppedError:
            if not self._closing.is_set():
                self._end(handle, "cancelled")
        except (ValueError, StoreError) as error:
            self._end(handle, "failed", **problem_record(error))
        except BaseException:  # even SystemExit ends the job only, not the worker
            _log.exception("A job of kind %r failed.", job.kind)
            self._end(handle, "failed", error=WENT_WRONG, code="internal")
        finally:
            with self._ending:
                pending = any(handle is other for other, _ in self._unstored)
            if not pending:
                self._drop(handle)

    def _drop(self, handle: Handle) -> None:
        """Forget a job that does not run here any more, unless it was claimed again."""
        with self._lock:
            if self._running.get(handle.job.id) is handle:
                del self._running[handle.job.id]
        self._report(handle.job.id)

    def _end(self, handle: Handle, state: str, **values: Any) -> None:
        """End a job without a result."""
        self._unstored.append((handle, handle.ended(state, **values)))
        try:
            self._store_ends()
        except Exception:
            _log.exception("The end of a job of kind %r is not stored yet.", handle.job.kind)

    def _store_ends(self) -> None:
        """Store the ends of jobs; what fails is tried again later."""
        failure = None
        with self._ending:
            for _ in range(len(self._unstored)):
                handle, ended = self._unstored.popleft()
                try:
                    self.table.end(handle.job, ended)
                except (Lost, NotFound):
                    _log.info("A job has another process, or no dialog.")
                except Exception as error:
                    self._unstored.append((handle, ended))
                    failure = error
                    continue
                self._drop(handle)
        if failure is not None:
            raise failure

    def _keep(self) -> None:
        """Keep the leases of this process, and look for jobs that no worker was woken for."""
        shared, pruned, reached = self.table.store.is_shared, monotonic(), True
        while not self._closing.wait(BEAT if shared else ALONE):
            try:
                self._beat()
                if self.table.has_waiting():
                    for wakes in self._wakes.values():
                        if wakes.empty():
                            wakes.put(None)
                if monotonic() > pruned + PRUNE:
                    self.table.prune()
                    pruned = monotonic()
                self._store_ends()
                reached = True
            except Exception:  # it tries again
                if reached:  # once, not every second
                    _log.warning("The store cannot be reached.", exc_info=True)
                reached = False

    def _beat(self) -> None:
        """Extend the leases of this process, and end those of processes that have ended."""
        running = dict(self._running)
        if running:
            news = {job_id: handle.news for job_id, handle in running.items()}
            for job_id in self.table.beat(news):
                running[job_id].stop()
        if self.table.store.is_shared:
            self.table.reclaim()
