"""The jobs in the store: in turns between users, leased to one process at a time.

A process that runs a job extends its lease again and again. If the process ends, however it ends,
the lease expires and another process, or the same studio after its restart, begins the job again.
A job and the changes that it makes end in one transaction, so no change is made twice.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, func, select, true, update
from sqlalchemy.orm import Session

from margrave.studio._tables import ACTIVE, DialogRow, JobRow
from margrave.studio.store import (
    ENOUGH,
    Conflict,
    Ended,
    Record,
    Store,
    check_idle,
    found,
    insert_dialog,
    new_id,
    now,
    rows_of,
)

LEASE = timedelta(seconds=15)
SILENCE = timedelta(seconds=5)  # after which a process that extends no lease has probably ended
KEPT = timedelta(days=1)  # how long finished jobs can be looked up
TRAIN = "train"
CANCELLED = "Training was cancelled."
ATTEMPTS = 3
_GAVE_UP = f"The studio ended {ATTEMPTS} times during this request, which may need too much memory."


class TooMany(Exception):  # noqa: N818
    """A user has too many waiting jobs."""

    code = "too_many"


def in_turns(
    waiting: Sequence[tuple[str, str]],
    running: Mapping[str, int],
    started: Mapping[str, datetime],
) -> list[str]:
    """Order waiting jobs so that users take turns.

    Next is a job of a user with the fewest running jobs, among those of the user whose last start
    was the longest ago, among those the oldest. Fifty jobs of one user therefore do not delay the
    first job of another.

    Parameters
    ----------
    waiting : sequence of (str, str)
        The ids and owners of the waiting jobs, oldest first.
    running : mapping of str to int
        The number of running jobs of each owner.
    started : mapping of str to datetime
        When a job of each owner was last started.

    Returns
    -------
    list of str
        The ids, in the order in which the jobs start if none of the running ones ends.

    Examples
    --------
    >>> from margrave.studio.job_table import in_turns
    >>> in_turns([("a1", "ann"), ("a2", "ann"), ("b1", "bob")], {}, {})
    ['a1', 'b1', 'a2']
    """
    left, n_running, order = list(waiting), Counter(running), []
    turns: dict[str, tuple[int, Any]] = {owner: (0, moment) for owner, moment in started.items()}
    while left:
        chosen = min(left, key=lambda job: (n_running[job[1]], turns.get(job[1], (-1, 0))))
        left.remove(chosen)
        order.append(chosen[0])
        n_running[chosen[1]] += 1
        turns[chosen[1]] = (1, len(order))
    return order


class JobTable:
    """The jobs of a store, as one process sees them.

    Parameters
    ----------
    store : Store
        The store.
    waiting : int
        How many jobs of one user may wait.

    Attributes
    ----------
    process : str
        The id of this process, as the holder of leases.
    """

    def __init__(self, store: Store, waiting: int) -> None:
        self.store = store
        self.process = secrets.token_hex(8)
        self._waiting = waiting

    def begin(
        self, owner: str, title: str, table_id: str | None, choices: Record
    ) -> tuple[DialogRow, JobRow]:
        """Add a dialog, and the job that trains it."""
        with self.store.write() as session:
            dialog = insert_dialog(session, owner, title, table_id, choices)
            return dialog, self._insert(session, owner, TRAIN, dialog.id, {})

    def add(self, owner: str, kind: str, dialog_id: str, arguments: Record) -> JobRow:
        """Add a job on a user's dialog.

        Parameters
        ----------
        owner, kind, dialog_id : str
            The user, what the job does, and the dialog.
        arguments : dict
            The arguments of the work, as plain data.

        Raises
        ------
        Conflict
            If the dialog has an unfinished job.
        TooMany
            If too many jobs of the user are waiting.
        """
        with self.store.write() as session:
            # On PostgreSQL, a change of the dialog in another transaction waits for this one.
            own = select(DialogRow).where(DialogRow.id == dialog_id, DialogRow.owner == owner)
            dialog = found(session.scalar(own.with_for_update(of=DialogRow)), "dialog")
            check_idle(session, dialog_id)
            if kind == TRAIN:
                if dialog.state == "ready":
                    raise Conflict("This dialog is already trained.")
                dialog.state, dialog.error = "training", None
            return self._insert(session, owner, kind, dialog_id, arguments)

    def _insert(
        self, session: Session, owner: str, kind: str, dialog_id: str, arguments: Record
    ) -> JobRow:
        same = select(func.count()).where(
            JobRow.owner == owner, JobRow.state == "waiting", _in_line(kind == TRAIN)
        )
        waiting = session.scalar(same) or 0
        if waiting >= self._waiting:
            raise TooMany(
                f"You have {waiting} waiting requests; the limit is {self._waiting}. "
                "Wait until one is done, or cancel one."
            )
        job = JobRow(id=new_id(), owner=owner, kind=kind, dialog_id=dialog_id, arguments=arguments)
        job.state, job.created = "waiting", now()
        session.add(job)
        session.flush()
        return job

    def find(self, owner: str, job_id: str) -> JobRow:
        """Return a user's job."""
        query = select(JobRow).where(JobRow.id == job_id, JobRow.owner == owner)
        with self.store.read() as session:
            return found(session.scalar(query), "job")

    def of_dialog(self, dialog_id: str) -> JobRow | None:
        """Return the unfinished job of a dialog."""
        with self.store.read() as session:
            return session.scalar(select(JobRow).where(JobRow.dialog_id == dialog_id, ACTIVE))

    def ahead(self, job: JobRow) -> int:
        """Return how many jobs start before a waiting one, approximately."""
        with self.store.read() as session:
            order = _order(session, job.kind == TRAIN)
        return order.index(job.id) if job.id in order else 0

    def claim(self, training: bool) -> JobRow | None:
        """Lease the next waiting job to this process; None if there is none.

        Parameters
        ----------
        training : bool
            Whether to take a job that trains a dialog, or another one.
        """
        with self.store.read() as session:
            order = _order(session, training)
        if not order:  # without waiting for the turn to write
            return None
        with self.store.write() as session:
            for job_id in order:
                moment = self._clock(session)
                waiting = update(JobRow).where(JobRow.id == job_id, JobRow.state == "waiting")
                values: Record = {"state": "running", "process": self.process, "started": moment}
                values |= {"expires": moment + LEASE, "attempts": JobRow.attempts + 1}
                if rows_of(session, waiting.values(**values)):
                    return session.get(JobRow, job_id)
        return None

    def end(self, job: JobRow, ended: Ended) -> None:
        """End a job that has changed nothing, and its dialog if it could not be trained."""
        if job.kind == TRAIN:
            error = ended.values.get("error") or CANCELLED
            self.store.change(job.dialog_id, ended=ended, state="failed", error=error)
            return
        with self.store.write() as session:
            ended.write(session)

    def cancel(self, job: JobRow) -> None:
        """Cancel a waiting job, or request a running one to stop."""
        same = update(JobRow).where(JobRow.id == job.id)
        dialog = select(DialogRow.id).where(DialogRow.id == job.dialog_id)
        with self.store.write() as session:
            session.execute(dialog.with_for_update())  # before the job, as all changes do
            waiting = same.where(JobRow.state == "waiting")
            if rows_of(session, waiting.values(state="cancelled", finished=now())):
                if job.kind == TRAIN:
                    _fail(session, job.dialog_id, CANCELLED)
            else:
                session.execute(same.where(JobRow.state == "running").values(stopping=True))

    def set_enough(self, job: JobRow, n_members: int) -> None:
        """Request a running training to end with the finished members, once there are so many."""
        same = update(JobRow).where(JobRow.id == job.id, JobRow.state == "running")
        with self.store.write() as session:
            session.execute(same.values(arguments={**job.arguments, ENOUGH: n_members}))

    def beat(self, news: Mapping[str, Record]) -> set[str]:
        """Extend the leases of this process, and publish the progress of its jobs.

        Parameters
        ----------
        news : mapping of str to dict
            The ``progress`` and ``reply`` of each job, by its id.

        Returns
        -------
        set of str
            The jobs that have to stop: they were cancelled, or the process has lost their leases.
        """
        with self.store.write() as session:
            expires = self._clock(session) + LEASE
            ours = select(JobRow).where(JobRow.process == self.process, JobRow.state == "running")
            ours = ours.where(JobRow.id.in_(news))
            jobs = {job.id: job for job in session.scalars(ours.with_for_update())}
            for job_id, job in jobs.items():
                job.expires = expires
                for name, value in news[job_id].items():
                    setattr(job, name, value)
            return {job.id for job in jobs.values() if job.stopping} | (set(news) - set(jobs))

    def is_silent(self, job: JobRow) -> bool:
        """Whether the process of a running job has not extended its lease for some seconds."""
        if job.state != "running" or job.expires is None:
            return False
        with self.store.read() as session:
            return job.expires - LEASE + SILENCE < self._clock(session)

    def release(self) -> None:
        """Let another process, or the next start of the studio, begin this one's jobs again."""
        ours = update(JobRow).where(JobRow.process == self.process, JobRow.state == "running")
        values: Record = {"state": "waiting", "process": None, "attempts": JobRow.attempts - 1}
        with self.store.write() as session:
            session.execute(ours.values(**values))

    def has_waiting(self) -> bool:
        """Whether any job waits."""
        with self.store.read() as session:
            waiting = select(func.count()).where(JobRow.state == "waiting")
            return bool(session.scalar(waiting))

    def reclaim(self, all_running: bool = False) -> None:
        """Make the jobs of ended processes wait again.

        A job that has ended its process several times fails.

        Parameters
        ----------
        all_running : bool, default=False
            Whether no process can be running a job, as when an SQLite store is opened.
        """
        with self.store.write() as session:
            orphan: ColumnElement[bool] = true()
            if not all_running:
                orphan = JobRow.expires < self._clock(session)
            running = select(JobRow).join(DialogRow, DialogRow.id == JobRow.dialog_id)
            running = running.where(JobRow.state == "running", orphan)
            for job in session.scalars(running.with_for_update(skip_locked=True)):
                job.process = None
                if job.attempts < ATTEMPTS and not job.stopping:
                    job.state = "waiting"
                    continue
                job.state, job.finished = ("cancelled" if job.stopping else "failed"), now()
                job.error = None if job.stopping else _GAVE_UP
                if job.kind == TRAIN:
                    _fail(session, job.dialog_id, job.error or CANCELLED)

    def prune(self) -> None:
        """Delete the jobs that finished long ago."""
        with self.store.write() as session:
            session.execute(delete(JobRow).where(JobRow.finished < now() - KEPT))

    def _clock(self, session: Session) -> datetime:
        """The time by which leases expire: that of the server, if processes share one."""
        moment = session.scalar(select(func.now())) if self.store.is_shared else None
        return now() if moment is None else moment


def _in_line(training: bool) -> ColumnElement[bool]:
    """Whether a job waits in the line for training, or in that of all other jobs."""
    return JobRow.kind == TRAIN if training else JobRow.kind != TRAIN


def _order(session: Session, training: bool) -> list[str]:
    """The ids of the waiting jobs of a line, in the order in which they start."""
    line = _in_line(training)
    waiting = session.execute(
        select(JobRow.id, JobRow.owner)
        .where(JobRow.state == "waiting", line)
        .order_by(JobRow.created, JobRow.id)
    ).all()
    if len(waiting) < 2:
        return [job_id for job_id, _ in waiting]
    owners = session.execute(
        select(
            JobRow.owner,
            func.count().filter(JobRow.state == "running"),
            func.max(JobRow.started),
        )
        .where(line)
        .group_by(JobRow.owner)
    ).all()
    return in_turns(
        [(job_id, owner) for job_id, owner in waiting],
        {owner: n for owner, n, _ in owners},
        {owner: moment for owner, _, moment in owners if moment is not None},
    )


def _fail(session: Session, dialog_id: str, error: str) -> None:
    """Record why a dialog was not trained."""
    failed = update(DialogRow).where(DialogRow.id == dialog_id)
    session.execute(failed.values(state="failed", error=error, updated=now()))
