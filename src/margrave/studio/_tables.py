"""The tables of the studio's store, as they are in the newest version.

``migrations/`` brings a database there; a test holds the two against each other. What is large
comes last in its table, and what a dialog starts from has a table of its own: SQLite writes the
whole row again when one of its columns changes, and each step changes its dialog's row.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    DateTime,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    Text,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

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
        datetime: Moment,
        bytes: LargeBinary,
        dict[str, Any]: JSON(none_as_null=True),
        list[int]: JSON(none_as_null=True),
        list[dict[str, Any]]: JSON(none_as_null=True),
    }


def _of_a_dialog() -> ForeignKey:
    return ForeignKey("dialogs.id", ondelete="CASCADE")


class User(Base):
    """Whom dialogs belong to."""

    __tablename__ = "users"

    key: Mapped[str] = mapped_column(primary_key=True)
    created: Mapped[datetime]


class Table(Base):
    """A table that was uploaded, as Parquet."""

    __tablename__ = "tables"

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str] = mapped_column(ForeignKey("users.key", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    created: Mapped[datetime]
    size: Mapped[int]
    facts: Mapped[dict[str, Any]]
    data: Mapped[bytes]


class Dialog(Base):
    """A dialog: what was chosen at its start, and where it stands."""

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
    state: Mapped[str]
    error: Mapped[str | None]
    position: Mapped[int]
    revision: Mapped[int]
    undone: Mapped[list[int]]
    choices: Mapped[dict[str, Any]]
    facts: Mapped[dict[str, Any] | None]
    accounts: Mapped[list[dict[str, Any]]]


class Basis(Base):
    """What a dialog's steps build on: members, samples and the members' scores."""

    __tablename__ = "bases"

    dialog_id: Mapped[str] = mapped_column(_of_a_dialog(), primary_key=True)
    piece: Mapped[bytes]


class Step(Base):
    """A reply; ``preference`` and ``met`` are its record's, for lists of dialogs."""

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
    piece: Mapped[bytes]


class Acceptance(Base):
    """A model that was accepted at a step, with its certificate."""

    __tablename__ = "acceptances"
    __table_args__ = (
        ForeignKeyConstraint(["dialog_id", "step"], ["steps.dialog_id", "steps.number"]),
    )

    dialog_id: Mapped[str] = mapped_column(_of_a_dialog(), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    step: Mapped[int]
    created: Mapped[datetime]
    record: Mapped[dict[str, Any]]
    piece: Mapped[bytes]
