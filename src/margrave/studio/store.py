"""The store: users, their tables and dialogs; each change is durable before a method returns.

It is an SQLite file, for one process, or a PostgreSQL database, which several processes can share.
The parts of a dialog are bytes that the store does not interpret, and records, which are JSON;
lists of dialogs never read the bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Select, delete, exists, func, select, update
from sqlalchemy.orm import Session, undefer

from margrave.studio._claim import claim_file
from margrave.studio._engine import (
    Conflict,
    NotFound,
    StoreError,
    default_url,
    make_engine,
    make_file,
    migrating,
    place_of,
    read_url,
    reading,
    translate_errors,
    writing,
)
from margrave.studio._tables import (
    ACTIVE,
    AcceptanceRow,
    BasisRow,
    DialogRow,
    JobRow,
    StepRow,
    TableRow,
    UserRow,
)
from margrave.studio.migrations import upgrade

__all__ = [
    "AcceptanceRow",
    "Conflict",
    "DialogRow",
    "Ended",
    "JobRow",
    "Lost",
    "NotFound",
    "Pieces",
    "StepRow",
    "Store",
    "StoreError",
    "TableRow",
    "default_url",
]

Record = dict[str, Any]
T = TypeVar("T")

# What both can hold: SQLite 1e9 bytes a row; PostgreSQL 1 GiB a value as it is sent, two letters
# for each byte.
LARGEST = 500_000_000
ENOUGH = "enough"  # the argument of a training that says how many members are enough
BUSY = "The dialog is busy with another request; wait for it, or stop it."


class Lost(Conflict):
    """The process no longer holds the lease of a dialog: its changes are not stored."""


@dataclass(frozen=True)
class Ended:
    """The end of a job, stored together with the changes that it made.

    Attributes
    ----------
    job, process : str
        The ids of the job, and of the process that holds its lease.
    attempts : int
        Which lease of the job it is: the process may have lost it and claimed the job again.
    values : dict
        The values of the job's row: its ``state`` and result, or its error.
    """

    job: str
    process: str
    attempts: int
    values: Record

    def write(self, session: Session) -> None:
        """Store the end in a transaction; raise `Lost` if another process has the lease."""
        ours = update(JobRow).where(
            JobRow.id == self.job,
            JobRow.process == self.process,
            JobRow.attempts == self.attempts,
            JobRow.state == "running",
        )
        values = {"finished": now(), "progress": None, "reply": None, **self.values}
        if not rows_of(session, ours.values(**values)):
            raise Lost("Another process of the studio has continued this request.")


@dataclass(frozen=True)
class Pieces:
    """Everything that a dialog is restored from, at one point in time."""

    base: bytes
    steps: Sequence[StepRow]
    acceptances: Sequence[AcceptanceRow]
    dialog: DialogRow


@dataclass(frozen=True)
class Overview:
    """A dialog with its steps, accepted models and table, all without their bytes."""

    dialog: DialogRow
    steps: Sequence[StepRow]
    acceptances: Sequence[AcceptanceRow]
    table: TableRow | None


def _steps(dialog_id: str) -> Select[Any]:
    return select(StepRow).where(StepRow.dialog_id == dialog_id).order_by(StepRow.number)


def _acceptances(dialog_id: str) -> Select[Any]:
    query = select(AcceptanceRow).where(AcceptanceRow.dialog_id == dialog_id)
    return query.order_by(AcceptanceRow.number)


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """Return a random identifier that cannot be guessed."""
    return secrets.token_urlsafe(16)


def found(what: T | None, name: str) -> T:
    """Return `what`, or raise NotFound if it is None."""
    if what is None:
        raise NotFound(f"There is no such {name}.")
    return what


def rows_of(session: Session, statement: Any) -> int:
    """Execute a change, and return the number of rows that it changed."""
    result: Any = session.execute(statement)
    return int(result.rowcount)


class Store:
    """The durable store; all methods may be called from several threads at once.

    Parameters
    ----------
    url : str
        ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``; :func:`default_url` has the usual.
    largest : int
        The most bytes that a table's data or a part of a dialog may have.

    Raises
    ------
    StoreError
        By each method, if the database fails; nothing is changed then. Its kinds are NotFound (no
        such user, table or dialog, or another user's) and Conflict (another change came first).

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from margrave.studio.store import StepRow, Store
    >>> with TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/studio.sqlite3") as store:
    ...     store.add_user("local")
    ...     dialog = store.add_dialog("local", "Spam", None, {"kind": "committee"})
    ...     start = StepRow(number=0, parent=0, record={"preference": None}, piece=b"")
    ...     _ = store.change(dialog.id, state="ready", base=b"members", steps=[start])
    ...     step = StepRow(number=1, parent=0, record={"preference": "fp <= 5"}, piece=b"reply")
    ...     _ = store.change(dialog.id, steps=[step], position=1)
    ...     [dialog] = store.dialogs("local")
    >>> dialog.title, dialog.state, dialog.n_steps, dialog.preference
    ('Spam', 'ready', 2, 'fp <= 5')
    """

    def __init__(self, url: str, *, largest: int = LARGEST) -> None:
        self._url = read_url(url)
        self._largest = largest
        self._engine = make_engine(self._url)
        self._reader = reading(self._engine)
        self._writer = writing(self._engine)
        self.is_shared = self._url.get_backend_name() != "sqlite"
        """Whether several processes can use it at the same time."""
        # SQLite has one writer at a time, and those of other threads would wait by asking again.
        self._turn: AbstractContextManager[object] = nullcontext() if self.is_shared else Lock()
        self._claim = ExitStack()

    def open(self) -> Self:
        """Create the database if it does not exist, and migrate it to the newest version."""
        place, engine = place_of(self._url), migrating(self._engine)
        if not self.is_shared:
            make_file(Path(self._url.database or ""))
        try:
            with self._turn, translate_errors(place, self._url), engine.begin() as connection:
                upgrade(connection, place)
        except BaseException:
            self.close()
            raise
        return self

    def claim(self, who: str) -> None:
        """Keep other studios, which see `who`, from an SQLite file that is not open yet."""
        if not self.is_shared:
            file = Path(self._url.database or "")
            make_file(file)
            self._claim = claim_file(file, who)

    def close(self) -> None:
        """Close all connections, and then let other studios use the store."""
        self._engine.dispose()
        self._claim.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store: {place_of(self._url)}>"

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A transaction that sees one point in time."""
        with translate_errors(), Session(self._reader) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that is committed at its end; its objects can be used afterwards."""
        with (
            self._turn,
            translate_errors(),
            Session(self._writer, expire_on_commit=False) as session,
            session.begin(),
        ):
            yield session

    # Users

    def add_user(self, key: str) -> None:
        """Add a user, unless there is one with this key."""
        try:
            with self.write() as session:
                if session.get(UserRow, key) is None:
                    session.add(UserRow(key=key, created=now()))
        except Conflict:  # a request beside this one was the first
            return

    def has_user(self, key: str) -> bool:
        """Whether there is a user with this key."""
        with self.read() as session:
            return session.get(UserRow, key) is not None

    # Tables

    def add_table(self, owner: str, name: str, facts: Record, data: bytes) -> TableRow:
        """Add a table: its name, the description of its columns, and its data as Parquet."""
        self._check_size(data)
        table = TableRow(id=new_id(), owner=owner, name=name, created=now(), size=len(data))
        table.facts, table.data = facts, data
        with self.write() as session:
            found(session.get(UserRow, owner), "user")
            session.add(table)
        return self.table(owner, table.id)

    def table(self, owner: str, table_id: str) -> TableRow:
        """Return a user's table, without its data."""
        with self.read() as session:
            return _own_table(session, owner, table_id)

    def table_data(self, owner: str, table_id: str) -> bytes:
        """Return the data of a user's table."""
        query = select(TableRow.data).where(TableRow.id == table_id, TableRow.owner == owner)
        with self.read() as session:
            return found(session.scalar(query), "table")

    def delete_unused_tables(self, before: datetime) -> int:
        """Delete the tables that no dialog uses and that are older than this; return how many."""
        used = exists(select(DialogRow.id).where(DialogRow.table_id == TableRow.id))
        with self.write() as session:
            return rows_of(session, delete(TableRow).where(TableRow.created < before, ~used))

    # Dialogs

    def add_dialog(
        self, owner: str, title: str, table_id: str | None, choices: Record
    ) -> DialogRow:
        """Add a dialog, in state "training"."""
        with self.write() as session:
            dialog = insert_dialog(session, owner, title, table_id, choices)
        return self.dialog(owner, dialog.id)

    def dialog(self, owner: str, dialog_id: str) -> DialogRow:
        """Return a user's dialog."""
        query = select(DialogRow).where(DialogRow.id == dialog_id, DialogRow.owner == owner)
        with self.read() as session:
            return found(session.scalar(query), "dialog")

    def enough_members(self, job_id: str) -> int | None:
        """Return how many members the user has called enough for a training, if any."""
        with self.read() as session:
            arguments = session.scalar(select(JobRow.arguments).where(JobRow.id == job_id))
        return None if arguments is None else arguments.get(ENOUGH)

    def row_hashes(self, dialog_id: str) -> bytes | None:
        """Return what identifies the rows of a dialog's certification data."""
        with self.read() as session:
            return session.scalar(select(DialogRow.row_hashes).where(DialogRow.id == dialog_id))

    def overview(self, owner: str, dialog_id: str) -> Overview:
        """Return all that is shown of a user's dialog, at one point in time."""
        query = select(DialogRow).where(DialogRow.id == dialog_id, DialogRow.owner == owner)
        with self.read() as session:
            dialog = found(session.scalar(query), "dialog")
            table_id = dialog.table_id
            return Overview(
                dialog,
                session.scalars(_steps(dialog_id)).all(),
                session.scalars(_acceptances(dialog_id)).all(),
                None if table_id is None else _own_table(session, owner, table_id),
            )

    def dialogs(self, owner: str) -> Sequence[DialogRow]:
        """Return a user's dialogs, the one that changed last first."""
        query = select(DialogRow).where(DialogRow.owner == owner)
        with self.read() as session:
            return session.scalars(query.order_by(DialogRow.updated.desc(), DialogRow.id)).all()

    def rename(self, owner: str, dialog_id: str, title: str) -> None:
        """Change the title of a user's dialog; its revision stays."""
        query = update(DialogRow).where(DialogRow.id == dialog_id, DialogRow.owner == owner)
        with self.write() as session:
            found(rows_of(session, query.values(title=title, updated=now())) or None, "dialog")

    def share(self, owner: str, dialog_id: str, key: str | None) -> None:
        """Give a user's dialog a read-only link with a key, or take it away; its revision stays."""
        query = update(DialogRow).where(DialogRow.id == dialog_id, DialogRow.owner == owner)
        with self.write() as session:
            found(rows_of(session, query.values(share_key=key)) or None, "dialog")

    def share_of(self, dialog_id: str) -> tuple[str, str] | None:
        """Return the owner of a dialog with a read-only link, and the key of the link."""
        query = select(DialogRow.owner, DialogRow.share_key).where(DialogRow.id == dialog_id)
        with self.read() as session:
            row = session.execute(query).one_or_none()
        return None if row is None or row.share_key is None else (row.owner, row.share_key)

    def delete_dialog(self, owner: str, dialog_id: str) -> None:
        """Delete a user's dialog with its steps, accepted models and jobs."""
        query = delete(DialogRow).where(DialogRow.id == dialog_id, DialogRow.owner == owner)
        with self.write() as session:
            found(rows_of(session, query) or None, "dialog")

    def change(
        self,
        dialog_id: str,
        *,
        steps: Sequence[StepRow] = (),
        acceptances: Sequence[AcceptanceRow] = (),
        base: bytes | None = None,
        ended: Ended | None = None,
        revision: int | None = None,
        idle: bool = False,
        **values: Any,
    ) -> int:
        """Store all changes of a dialog in one transaction, and return its new revision.

        Parameters
        ----------
        dialog_id : str
            The dialog.
        steps, acceptances : sequence of StepRow, of AcceptanceRow
            New steps and accepted models; a number is used only once.
        base : bytes, optional
            What the steps of a newly trained dialog build on.
        ended : Ended, optional
            The job that made the changes, and that ends with them.
        revision : int, optional
            The revision that the changes are based on.
        idle : bool, default=False
            Whether to refuse the changes while the dialog has an unfinished job.
        **values
            New values of the dialog's row, such as ``position`` and ``undone``.

        Raises
        ------
        Conflict
            If the dialog has another revision, or a job; `Lost` if the job has another process.
        """
        rows: list[StepRow | AcceptanceRow] = [*steps, *acceptances]
        self._check_size(base or b"", *(row.piece for row in rows))
        same = DialogRow.id == dialog_id
        query = update(DialogRow).where(same)
        if revision is not None:
            query = query.where(DialogRow.revision == revision)
        values |= {"revision": DialogRow.revision + 1, "updated": now()}
        with self.write() as session:
            if not rows_of(session, query.values(**values)):
                found(session.scalar(select(DialogRow.id).where(same)), "dialog")
                raise Conflict("Another change came first; look again.")
            if idle:
                check_idle(session, dialog_id)
            if base is not None:
                session.add(BasisRow(dialog_id=dialog_id, piece=base))
            for row in rows:
                row.dialog_id, row.created = dialog_id, now()
                session.add(row)
                session.flush()  # in this order: a step is based on one before
            if ended is not None:
                ended.write(session)
            return session.scalars(select(DialogRow.revision).where(same)).one()

    def steps(self, dialog_id: str) -> Sequence[StepRow]:
        """Return a dialog's steps in order, without their bytes."""
        with self.read() as session:
            return session.scalars(_steps(dialog_id)).all()

    def acceptances(self, dialog_id: str) -> Sequence[AcceptanceRow]:
        """Return a dialog's accepted models in order, without their bytes."""
        with self.read() as session:
            return session.scalars(_acceptances(dialog_id)).all()

    def acceptance_piece(self, dialog_id: str, number: int) -> bytes:
        """Return the bytes of an accepted model."""
        query = select(AcceptanceRow.piece).filter_by(dialog_id=dialog_id, number=number)
        with self.read() as session:
            return found(session.scalar(query), "accepted model")

    def pieces(self, dialog_id: str, n_steps: int = 0, n_accepted: int = 0) -> Pieces:
        """Return what a dialog is restored from.

        Parameters
        ----------
        dialog_id : str
            The dialog; it must be trained.
        n_steps, n_accepted : int, default=0
            Numbers of steps and accepted models that are known. If there are any, so is the base.
        """
        steps = select(StepRow).where(StepRow.dialog_id == dialog_id, StepRow.number >= n_steps)
        models = select(AcceptanceRow).where(
            AcceptanceRow.dialog_id == dialog_id, AcceptanceRow.number > n_accepted
        )
        with self.read() as session:
            dialog = found(session.get(DialogRow, dialog_id), "dialog")
            base = None if n_steps else session.get(BasisRow, dialog_id)
            if base is None and not n_steps:
                raise Conflict("This dialog has not been trained yet.")
            return Pieces(
                b"" if base is None else base.piece,
                session.scalars(
                    steps.order_by(StepRow.number).options(undefer(StepRow.piece))
                ).all(),
                session.scalars(
                    models.order_by(AcceptanceRow.number).options(undefer(AcceptanceRow.piece))
                ).all(),
                dialog,
            )

    def _check_size(self, *pieces: bytes) -> None:
        size = max(map(len, pieces))
        if size > self._largest:
            raise StoreError(
                f"What is to be stored has {size:,} bytes; the store takes {self._largest:,} at "
                "most."
            )


def _own_table(session: Session, owner: str, table_id: str) -> TableRow:
    query = select(TableRow).where(TableRow.id == table_id, TableRow.owner == owner)
    return found(session.scalar(query), "table")


def insert_dialog(
    session: Session, owner: str, title: str, table_id: str | None, choices: Record
) -> DialogRow:
    """Add a dialog, in state "training"."""
    found(session.get(UserRow, owner), "user")
    if table_id is not None:
        _own_table(session, owner, table_id)
    moment = now()
    dialog = DialogRow(
        id=new_id(),
        owner=owner,
        title=title,
        table_id=table_id,
        choices=choices,
        created=moment,
        updated=moment,
        state="training",
        position=0,
        revision=0,
        undone=[],
        refused=[],
    )
    session.add(dialog)
    session.flush()
    return dialog


def check_idle(session: Session, dialog_id: str) -> None:
    """Raise Conflict if a dialog has an unfinished job."""
    query = select(func.count()).where(JobRow.dialog_id == dialog_id, ACTIVE)
    if session.scalar(query):
        raise Conflict(BUSY)
