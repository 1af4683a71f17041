"""The store: users, their tables and dialogs, each step durable before a method returns.

SQLite in a file, or PostgreSQL. What a dialog is made of comes as bytes that the store does not
look into, and as records, which are JSON; lists of dialogs never read the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Self

from sqlalchemy import Connection, delete, exists, insert, select

from margrave.studio._claim import claim_file, claim_server
from margrave.studio._engine import (
    Conflict,
    NotFound,
    StoreError,
    default_url,
    make_engine,
    make_file,
    place_of,
    read_url,
    reading,
    translate_errors,
    writing,
)
from margrave.studio._queries import (
    AcceptancePiece,
    AcceptanceRow,
    DialogRow,
    Pieces,
    Record,
    State,
    StepPiece,
    StepRow,
    TableRow,
    as_dialog,
    change_dialog,
    check_dialog,
    check_step,
    check_user,
    dialog_query,
    dialog_row,
    found,
    has_user,
    insert_step,
    new_id,
    now,
    table_row,
)
from margrave.studio._tables import Acceptance, Basis, Dialog, Step, Table, User
from margrave.studio.migrations import upgrade

__all__ = [
    "AcceptancePiece",
    "AcceptanceRow",
    "Conflict",
    "DialogRow",
    "NotFound",
    "Pieces",
    "StepPiece",
    "StepRow",
    "Store",
    "StoreError",
    "TableRow",
    "default_url",
]

# What both can hold: SQLite 1e9 bytes a row; PostgreSQL 1 GiB a value as it is sent, two letters
# for each byte.
LARGEST = 500_000_000


class Store:
    """The durable store; all methods may be called from several threads at once.

    Parameters
    ----------
    url : str
        ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``; :func:`default_url` has the usual.
    largest : int
        The most bytes that a table's data or a piece may have.

    Raises
    ------
    StoreError
        With each method: if the database cannot do it. Its kinds are NotFound (no such user, table
        or dialog, or another user's) and Conflict (another change came first). Then nothing at all
        was changed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from margrave.studio.store import Store
    >>> with TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/studio.sqlite3") as store:
    ...     store.add_user("local")
    ...     dialog = store.add_dialog("local", "Spam", None, {"kind": "committee"})
    ...     _ = store.set_ready(dialog.id, b"members", {"n": 279}, {"preference": None}, b"start")
    ...     _ = store.add_step(
    ...         dialog.id, 1, 0, {"preference": "fp <= 5", "met": True}, b"reply",
    ...         position=1, undone=(),
    ...     )
    ...     [dialog] = store.dialogs("local")
    >>> dialog.title, dialog.state, dialog.n_steps, dialog.preference, dialog.met
    ('Spam', 'ready', 2, 'fp <= 5', True)
    """

    def __init__(self, url: str, *, largest: int = LARGEST) -> None:
        self._url = read_url(url)
        self._largest = largest
        self._engine = make_engine(self._url)
        self._reader = reading(self._engine)
        self._writer = writing(self._engine)
        # SQLite has one writer at a time, and those of other threads would wait by asking again.
        is_file = self._url.get_backend_name() == "sqlite"
        self._turn: AbstractContextManager[object] = Lock() if is_file else nullcontext()
        self._claim: IO[str] | Connection | None = None

    def open(self) -> Self:
        """Make the database if it is not there, and bring it to the newest version."""
        place = place_of(self._url)
        if self._url.get_backend_name() == "sqlite":
            make_file(Path(self._url.database or ""))
        try:
            with self._turn, translate_errors(place, self._url), self._writer.begin() as connection:
                upgrade(connection, place)
        except BaseException:
            self.close()
            raise
        return self

    def claim(self, who: str) -> None:
        """Keep other studios from this store until it is closed; they see `who`."""
        if self._url.get_backend_name() == "sqlite":
            self._claim = claim_file(Path(self._url.database or ""), who)
        else:
            self._claim = claim_server(self._engine)

    def close(self) -> None:
        """Close all connections."""
        if self._claim is not None:
            self._claim.close()
        self._engine.dispose()

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

    # Users

    def add_user(self, key: str) -> None:
        """Add a user, unless there is one with this key."""
        try:
            with self._write() as connection:
                if not has_user(connection, key):
                    connection.execute(insert(User).values(key=key, created=now()))
        except Conflict:  # a request beside this one was the first
            return

    def has_user(self, key: str) -> bool:
        """Tell whether there is a user with this key."""
        with self._read() as connection:
            return has_user(connection, key)

    # Tables

    def add_table(self, owner: str, name: str, facts: Record, data: bytes) -> TableRow:
        """Add a table: its name, what is known of its columns, and its data as Parquet."""
        self._check_size(data)
        row = TableRow(new_id(), owner, name, now(), len(data), facts)
        with self._write() as connection:
            check_user(connection, owner)
            connection.execute(insert(Table).values(**vars(row), data=data))
            return table_row(connection, owner, row.id)

    def table(self, owner: str, table_id: str) -> TableRow:
        """Give a user's table."""
        with self._read() as connection:
            return table_row(connection, owner, table_id)

    def table_data(self, owner: str, table_id: str) -> bytes:
        """Give the data of a user's table."""
        query = select(Table.data).where(Table.id == table_id, Table.owner == owner)
        with self._read() as connection:
            return found(connection.scalars(query).one_or_none(), "table")

    def delete_unused_tables(self, before: datetime) -> int:
        """Delete the tables that no dialog uses and that are older than this; say how many."""
        used = exists(select(Dialog.id).where(Dialog.table_id == Table.id))
        with self._write() as connection:
            return connection.execute(delete(Table).where(Table.created < before, ~used)).rowcount

    # Dialogs

    def add_dialog(
        self, owner: str, title: str, table_id: str | None, choices: Record
    ) -> DialogRow:
        """Add a dialog, in state "training"."""
        row_id, moment = new_id(), now()
        values: Record = {"title": title, "table_id": table_id, "choices": choices}
        values |= {"state": "training", "position": 0, "revision": 0, "undone": []}
        values |= {"accounts": [], "created": moment, "updated": moment}
        with self._write() as connection:
            check_user(connection, owner)
            if table_id is not None:
                table_row(connection, owner, table_id)
            connection.execute(insert(Dialog).values(id=row_id, owner=owner, **values))
            return dialog_row(connection, owner, row_id)

    def dialog(self, owner: str, dialog_id: str) -> DialogRow:
        """Give a user's dialog."""
        with self._read() as connection:
            return dialog_row(connection, owner, dialog_id)

    def dialogs(self, owner: str) -> list[DialogRow]:
        """Give a user's dialogs, the one that changed last first."""
        newest = dialog_query().where(Dialog.owner == owner)
        with self._read() as connection:
            rows = connection.execute(newest.order_by(Dialog.updated.desc(), Dialog.id))
            return [as_dialog(row) for row in rows]

    def unfinished(self) -> list[DialogRow]:
        """Give all users' dialogs in state "training", the oldest first."""
        training = dialog_query().where(Dialog.state == "training")
        with self._read() as connection:
            rows = connection.execute(training.order_by(Dialog.created, Dialog.id))
            return [as_dialog(row) for row in rows]

    def rename(self, owner: str, dialog_id: str, title: str) -> int:
        """Give a user's dialog another title; as all changes of a dialog, return its revision."""
        with self._write() as connection:
            dialog_row(connection, owner, dialog_id)
            return change_dialog(connection, dialog_id, title=title)

    def delete_dialog(self, owner: str, dialog_id: str) -> None:
        """Delete a user's dialog with its steps and acceptances."""
        query = delete(Dialog).where(Dialog.id == dialog_id, Dialog.owner == owner)
        with self._write() as connection:
            found(connection.execute(query).rowcount or None, "dialog")

    def set_state(self, dialog_id: str, state: State, error: str | None = None) -> int:
        """Set a dialog's state, and why it failed."""
        with self._write() as connection:
            return change_dialog(connection, dialog_id, state=state, error=error)

    def set_ready(
        self, dialog_id: str, base: bytes, facts: Record, start_record: Record, start_piece: bytes
    ) -> int:
        """Set a dialog to "ready", with what its steps build on and with its start, step 0."""
        self._check_size(base, start_piece)
        with self._write() as connection:
            stands: Record = {"state": "ready", "error": None, "position": 0, "undone": []}
            revision = change_dialog(connection, dialog_id, facts=facts, **stands)
            insert_step(connection, dialog_id, 0, 0, start_record, start_piece)
            connection.execute(insert(Basis).values(dialog_id=dialog_id, piece=base))
            return revision

    # Steps

    def steps(self, dialog_id: str) -> list[StepRow]:
        """Give a dialog's steps in order."""
        columns = select(Step.number, Step.parent, Step.created, Step.record)
        with self._read() as connection:
            check_dialog(connection, dialog_id)
            query = columns.where(Step.dialog_id == dialog_id).order_by(Step.number)
            return [StepRow(*row) for row in connection.execute(query)]

    def add_step(
        self,
        dialog_id: str,
        number: int,
        parent: int,
        record: Record,
        piece: bytes,
        *,
        position: int,
        undone: Iterable[int],
    ) -> int:
        """Add a step, and with it where the dialog stands; a number is taken only once."""
        self._check_size(piece)
        with self._write() as connection:
            revision = change_dialog(connection, dialog_id, position=position, undone=list(undone))
            insert_step(connection, dialog_id, number, parent, record, piece)
            check_step(connection, dialog_id, position)
            return revision

    def set_position(self, dialog_id: str, position: int, undone: Iterable[int]) -> int:
        """Set where a dialog stands, and what can be redone; no change if it is so already."""
        wanted = {"position": position, "undone": list(undone)}
        here = select(Dialog.position, Dialog.undone, Dialog.revision).where(Dialog.id == dialog_id)
        with self._write() as connection:
            at, undone_now, revision = found(connection.execute(here).one_or_none(), "dialog")
            check_step(connection, dialog_id, position)
            if wanted == {"position": at, "undone": undone_now}:
                return revision
            return change_dialog(connection, dialog_id, **wanted)

    # Acceptances

    def acceptances(self, dialog_id: str) -> list[AcceptanceRow]:
        """Give a dialog's acceptances in order."""
        columns = select(
            Acceptance.number, Acceptance.step, Acceptance.created, Acceptance.record
        ).order_by(Acceptance.number)
        with self._read() as connection:
            check_dialog(connection, dialog_id)
            query = columns.where(Acceptance.dialog_id == dialog_id)
            return [AcceptanceRow(*row) for row in connection.execute(query)]

    def add_acceptance(
        self,
        dialog_id: str,
        number: int,
        step: int,
        record: Record,
        piece: bytes,
        accounts: list[Record],
    ) -> int:
        """Add an accepted model, and the accounts of the certification set after it."""
        self._check_size(piece)
        with self._write() as connection:
            revision = change_dialog(connection, dialog_id, accounts=accounts)
            check_step(connection, dialog_id, step)
            key = {"dialog_id": dialog_id, "number": number}
            if connection.execute(select(Acceptance.number).filter_by(**key)).first():
                raise Conflict(f"Acceptance {number} is there already.")
            row = {"step": step, "created": now(), "record": record, "piece": piece}
            connection.execute(insert(Acceptance).values(**key, **row))
            return revision

    def acceptance_piece(self, dialog_id: str, number: int) -> bytes:
        """Give an acceptance's bytes."""
        query = select(Acceptance.piece).filter_by(dialog_id=dialog_id, number=number)
        with self._read() as connection:
            return found(connection.scalars(query).one_or_none(), "acceptance")

    def set_accounts(self, dialog_id: str, accounts: list[Record]) -> int:
        """Set the accounts of the certification set."""
        with self._write() as connection:
            return change_dialog(connection, dialog_id, accounts=accounts)

    # All of a dialog

    def pieces(self, dialog_id: str) -> Pieces:
        """Give all that a dialog is put together from; it must have been ready once."""
        head = select(Dialog.position, Dialog.undone, Dialog.accounts, Basis.piece)
        head = head.outerjoin_from(Dialog, Basis).where(Dialog.id == dialog_id)
        steps = select(Step.number, Step.parent, Step.piece).order_by(Step.number)
        models = select(Acceptance.number, Acceptance.step, Acceptance.record, Acceptance.piece)
        models = models.order_by(Acceptance.number)
        with self._read() as connection:
            row = found(connection.execute(head).one_or_none(), "dialog")
            if row.piece is None:
                raise Conflict("This dialog has not been trained yet.")
            parts = connection.execute(steps.where(Step.dialog_id == dialog_id))
            accepted = connection.execute(models.where(Acceptance.dialog_id == dialog_id))
            return Pieces(
                row.piece,
                tuple(StepPiece(*part) for part in parts),
                tuple(AcceptancePiece(*part) for part in accepted),
                row.position,
                tuple(row.undone),
                row.accounts,
            )

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with translate_errors(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[Connection]:
        """A transaction, committed at its end."""
        with self._turn, translate_errors(), self._writer.begin() as connection:
            yield connection

    def _check_size(self, *pieces: bytes) -> None:
        size = max(map(len, pieces))
        if size > self._largest:
            raise StoreError(
                f"What is to be stored has {size:,} bytes; the store takes {self._largest:,} at "
                "most."
            )
