"""The tables of the studio's store, as they are in the newest version.

``migrations/`` brings a database there; a test holds the two against each other. What is large
comes last in its table, and what a dialog starts from has a table of its own: SQLite writes the
whole row again when one of its columns changes, and each step changes its dialog's row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import (
    JSON,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    Text,
    TypeDecorator,
    func,
    select,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, column_property, mapped_column, validates

_NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}


class Moment(TypeDecorator[datetime]):
    """A point in time, in UTC; SQLite keeps no zone, so it is put back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Without its zone where the database would drop it."""
        if value is None or dialect.name != "sqlite":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """With its zone, whatever the server's is."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Words(TypeDecorator[str]):
    """Text; what PostgreSQL cannot hold (the null character, half a surrogate) becomes U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Text that both databases can hold."""
        if value is None:
            return None
        text = value.replace("\0", "\ufffd")
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class Base(DeclarativeBase):
    """Which Python type is which column."""

    metadata = MetaData(naming_convention=_NAMES)
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        str: Words,
        Literal: Words,
        datetime: Moment,
        float: Double,
        bytes: LargeBinary,
        dict[str, Any]: JSON(none_as_null=True),
        list[int]: JSON(none_as_null=True),
        list[dict[str, Any]]: JSON(none_as_null=True),
    }


def _of_a_dialog() -> ForeignKey:
    return ForeignKey("dialogs.id", ondelete="CASCADE")


class UserRow(Base):
    """Whom dialogs belong to."""

    __tablename__ = "users"

    key: Mapped[str] = mapped_column(primary_key=True)
    created: Mapped[datetime]


class TableRow(Base):
    """A table that was uploaded, as Parquet."""

    __tablename__ = "tables"

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str] = mapped_column(ForeignKey("users.key", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    created: Mapped[datetime]
    size: Mapped[int]
    facts: Mapped[dict[str, Any]]
    data: Mapped[bytes] = mapped_column(deferred=True)


class BasisRow(Base):
    """What a dialog's steps build on: members, samples and the members' scores."""

    __tablename__ = "bases"

    dialog_id: Mapped[str] = mapped_column(_of_a_dialog(), primary_key=True)
    piece: Mapped[bytes]


class StepRow(Base):
    """A reply; the start is its own parent. ``preference`` and ``met`` are those of its record."""

    __tablename__ = "steps"
    # No cascade along the parents: SQLite allows 1000 levels of it, and a dialog may be longer.
    __table_args__ = (
        ForeignKeyConstraint(["dialog_id", "parent"], ["steps.dialog_id", "steps.number"]),
    )

    dialog_id: Mapped[str] = mapped_column(_of_a_dialog(), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    parent: Mapped[int]
    created: Mapped[datetime]
    preference: Mapped[str | None]
    met: Mapped[bool | None]
    record: Mapped[dict[str, Any]]
    piece: Mapped[bytes] = mapped_column(deferred=True)

    @validates("record")
    def _copy(self, _name: str, record: dict[str, Any]) -> dict[str, Any]:
        """Copy from the record what lists of dialogs show."""
        self.preference, self.met = record.get("preference"), record.get("met")
        return record


class AcceptanceRow(Base):
    """A model that was accepted at a step, with its certificate.

    ``useless`` tells whether it is useless by its record; it is null in stores before version 0007.
    """

    __tablename__ = "acceptances"
    __table_args__ = (
        ForeignKeyConstraint(["dialog_id", "step"], ["steps.dialog_id", "steps.number"]),
    )

    dialog_id: Mapped[str] = mapped_column(_of_a_dialog(), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    step: Mapped[int]
    created: Mapped[datetime]
    useless: Mapped[bool | None]
    record: Mapped[dict[str, Any]]
    piece: Mapped[bytes] = mapped_column(deferred=True)

    @validates("record")
    def _copy(self, _name: str, record: dict[str, Any]) -> dict[str, Any]:
        """Copy from the record what lists of dialogs show."""
        self.useless = bool(record.get("useless"))
        return record


class DialogRow(Base):
    """A dialog: its settings, its current step, and its numbers of steps and accepted models.

    ``preference`` and ``met`` belong to the current step. ``refused`` has the guarantees that were
    refused on its certification set. ``row_hashes`` identify the rows that this set was taken from.
    ``revision`` grows by one with each change of its steps, of its position or of its refusals.
    ``share_key`` is the secret of its read-only link; without a link it is null.
    """

    __tablename__ = "dialogs"
    __table_args__ = (Index(None, "owner", "updated"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str] = mapped_column(ForeignKey("users.key", ondelete="CASCADE"))
    title: Mapped[str]
    table_id: Mapped[str | None] = mapped_column(
        ForeignKey("tables.id", ondelete="SET NULL"), index=True
    )
    created: Mapped[datetime]
    updated: Mapped[datetime]
    state: Mapped[Literal["training", "ready", "failed"]]
    error: Mapped[str | None]
    position: Mapped[int] = mapped_column()
    revision: Mapped[int]
    undone: Mapped[list[int]]
    choices: Mapped[dict[str, Any]]
    facts: Mapped[dict[str, Any] | None]
    refused: Mapped[list[dict[str, Any]]]
    share_key: Mapped[str | None]
    row_hashes: Mapped[bytes | None] = mapped_column(deferred=True)

    @property
    def kind(self) -> str:
        """Whether it has a "committee" or a "program"."""
        kind: str = self.choices["kind"]
        return kind

    table_name: Mapped[str | None] = column_property(
        select(TableRow.name).where(TableRow.id == table_id).scalar_subquery()
    )
    n_steps: Mapped[int] = column_property(
        select(func.count()).where(StepRow.dialog_id == id).scalar_subquery()
    )
    n_accepted: Mapped[int] = column_property(
        select(func.count()).where(AcceptanceRow.dialog_id == id).scalar_subquery()
    )
    n_useless: Mapped[int] = column_property(
        select(func.count())
        .where(AcceptanceRow.dialog_id == id, AcceptanceRow.useless.is_(True))
        .scalar_subquery()
    )
    preference: Mapped[str | None] = column_property(
        select(StepRow.preference)
        .where(StepRow.dialog_id == id, StepRow.number == position)
        .scalar_subquery()
    )
    met: Mapped[bool | None] = column_property(
        select(StepRow.met)
        .where(StepRow.dialog_id == id, StepRow.number == position)
        .scalar_subquery()
    )


class AccountRow(Base):
    """Which guarantees have used the rows of a table; it refers to nothing that can be deleted.

    It is inserted and deleted, and never changed, and no id is used again: what was read of an id
    remains true.
    """

    __tablename__ = "accounts"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - SQLAlchemy reads it

    id: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[str | None] = mapped_column(index=True)
    delta: Mapped[float]
    uses: Mapped[list[dict[str, Any]]]
    hashes: Mapped[bytes]


ACTIVE = text("state IN ('waiting', 'running')")


class JobRow(Base):
    """Long work on a dialog; while it runs, it is the lease of the dialog to one process.

    The process extends ``expires`` as long as it lives. ``attempts`` counts the leases, except
    those that a process has returned.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        # A dialog has at most one unfinished job.
        Index(
            "ix_jobs_active",
            "dialog_id",
            unique=True,
            sqlite_where=ACTIVE,
            postgresql_where=ACTIVE,
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    dialog_id: Mapped[str] = mapped_column(_of_a_dialog())
    kind: Mapped[str]
    arguments: Mapped[dict[str, Any]]
    state: Mapped[Literal["waiting", "running", "done", "failed", "cancelled"]]
    created: Mapped[datetime]
    started: Mapped[datetime | None]
    finished: Mapped[datetime | None]
    process: Mapped[str | None]
    expires: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0)
    stopping: Mapped[bool] = mapped_column(default=False)
    progress: Mapped[dict[str, Any] | None]
    reply: Mapped[dict[str, Any] | None]
    error: Mapped[str | None]
    code: Mapped[str | None]
    fields: Mapped[dict[str, Any] | None]
    result: Mapped[dict[str, Any] | None]

    @property
    def is_finished(self) -> bool:
        """Whether it is done, failed or cancelled."""
        return self.state not in ("waiting", "running")
