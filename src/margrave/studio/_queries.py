"""The rows that the store returns, and the queries that read and change them in a transaction.

A change of a dialog first updates the dialog's row: a second transaction on the same dialog waits
there, and then sees the changes of the first.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, TypeVar

from sqlalchemy import Connection, Row, Select, and_, exists, func, insert, select, update
from sqlalchemy.orm import aliased

from margrave.studio._engine import Conflict, NotFound
from margrave.studio._tables import Acceptance, Dialog, Step, Table, User

State = Literal["training", "ready", "failed"]
Record = dict[str, Any]


@dataclass(frozen=True)
class TableRow:
    """A table; :meth:`Store.table_data` returns its data."""

    id: str
    owner: str
    name: str
    created: datetime
    size: int
    facts: Record


@dataclass(frozen=True)
class DialogRow:
    """A dialog: its settings, its current step, and its numbers of steps and accepted models.

    ``preference`` and ``met`` belong to the step at ``position``; each change adds one to
    ``revision``.
    """

    id: str
    owner: str
    title: str
    table_id: str | None
    table_name: str | None
    created: datetime
    updated: datetime
    state: State
    error: str | None
    position: int
    revision: int
    undone: tuple[int, ...]
    choices: Record
    facts: Record | None
    accounts: list[Record]
    n_steps: int
    n_accepted: int
    preference: str | None
    met: bool | None


@dataclass(frozen=True)
class StepRow:
    """A step; the start is its own parent. :meth:`Store.pieces` returns its bytes."""

    number: int
    parent: int
    created: datetime
    record: Record


@dataclass(frozen=True)
class AcceptanceRow:
    """An accepted model; :meth:`Store.acceptance_piece` returns its bytes."""

    number: int
    step: int
    created: datetime
    record: Record


@dataclass(frozen=True)
class StepPiece:
    """A step with its bytes."""

    number: int
    parent: int
    piece: bytes


@dataclass(frozen=True)
class AcceptancePiece:
    """An accepted model with its record and bytes."""

    number: int
    step: int
    record: Record
    piece: bytes


@dataclass(frozen=True)
class Pieces:
    """Everything that a dialog is restored from, at one point in time."""

    base: bytes
    steps: tuple[StepPiece, ...]
    acceptances: tuple[AcceptancePiece, ...]
    position: int
    undone: tuple[int, ...]
    accounts: list[Record]


T = TypeVar("T")


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def new_id() -> str:
    """Return a random identifier that cannot be guessed."""
    return secrets.token_urlsafe(12)


def found(what: T | None, name: str) -> T:
    """Return `what`, or raise NotFound if it is None."""
    if what is None:
        raise NotFound(f"There is no such {name}.")
    return what


def has_user(connection: Connection, key: str) -> bool:
    """Return whether there is a user with this key."""
    return bool(connection.scalar(select(exists(select(User.key).where(User.key == key)))))


def check_user(connection: Connection, key: str) -> None:
    """Raise NotFound if there is no such user."""
    found(has_user(connection, key) or None, "user")


def table_row(connection: Connection, owner: str, table_id: str) -> TableRow:
    """Return a user's table."""
    query = select(Table.id, Table.owner, Table.name, Table.created, Table.size, Table.facts).where(
        Table.id == table_id, Table.owner == owner
    )
    return TableRow(*found(connection.execute(query).one_or_none(), "table"))


@cache
def dialog_query() -> Select[Any]:
    """Select dialogs with all fields of a :class:`DialogRow`."""
    current = aliased(Step)
    steps = select(func.count()).where(Step.dialog_id == Dialog.id)
    acceptances = select(func.count()).where(Acceptance.dialog_id == Dialog.id)
    return (
        select(
            *Dialog.__table__.columns,
            Table.name.label("table_name"),
            steps.scalar_subquery().label("n_steps"),
            acceptances.scalar_subquery().label("n_accepted"),
            current.preference,
            current.met,
        )
        .outerjoin_from(Dialog, Table, Dialog.table_id == Table.id)
        .outerjoin(current, and_(current.dialog_id == Dialog.id, current.number == Dialog.position))
    )


def as_dialog(row: Row[Any]) -> DialogRow:
    """Convert a row of :func:`dialog_query`."""
    values = row._asdict()
    return DialogRow(**{**values, "undone": tuple(values["undone"])})


def dialog_row(connection: Connection, owner: str, dialog_id: str) -> DialogRow:
    """Return a user's dialog."""
    query = dialog_query().where(Dialog.id == dialog_id, Dialog.owner == owner)
    return as_dialog(found(connection.execute(query).one_or_none(), "dialog"))


def check_dialog(connection: Connection, dialog_id: str) -> None:
    """Raise NotFound if there is no such dialog."""
    found(connection.scalar(select(Dialog.id).where(Dialog.id == dialog_id)), "dialog")


def change_dialog(connection: Connection, dialog_id: str, **values: Any) -> int:
    """Change a dialog, and return its new revision."""
    same_id = Dialog.id == dialog_id
    values |= {"revision": Dialog.revision + 1, "updated": now()}
    connection.execute(update(Dialog).where(same_id).values(**values))
    return found(connection.scalar(select(Dialog.revision).where(same_id)), "dialog")


def has_step(connection: Connection, dialog_id: str, number: int) -> bool:
    """Return whether a dialog has this step."""
    query = select(Step.number).where(Step.dialog_id == dialog_id, Step.number == number)
    return connection.execute(query).first() is not None


def check_step(connection: Connection, dialog_id: str, number: int) -> None:
    """Raise Conflict if a dialog does not have this step."""
    if not has_step(connection, dialog_id, number):
        raise Conflict(f"There is no step {number} in this dialog.")


def insert_step(
    connection: Connection,
    dialog_id: str,
    number: int,
    parent: int,
    record: Record,
    piece: bytes,
) -> None:
    """Add a step; the transaction must have changed the dialog's row before."""
    if has_step(connection, dialog_id, number):
        raise Conflict(f"Step {number} already exists in this dialog.")
    if number:  # the start is its own parent
        check_step(connection, dialog_id, parent)
    row = {"dialog_id": dialog_id, "number": number, "parent": parent, "created": now()}
    short = {"preference": record.get("preference"), "met": record.get("met")}
    connection.execute(insert(Step).values(**row, **short, record=record, piece=piece))
