"""Users, tables, dialogs, their steps, the accepted models and the jobs.

Stores of versions 0001 to 0003 hold records of other forms and cannot be read any more; from this
version on, stores are migrated.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = None


def upgrade() -> None:
    """From an empty database."""
    op.create_table(
        "users",
        sa.Column("key", sa.Text(), nullable=False),
        _time("created"),
        sa.PrimaryKeyConstraint("key", name="pk_users"),
    )
    op.create_table(
        "tables",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        _time("created"),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tables"),
        _reference("tables", ["owner"], ["users.key"], "CASCADE"),
    )
    op.create_index("ix_tables_owner", "tables", ["owner"])
    op.create_table(
        "dialogs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=True),
        _time("created"),
        _time("updated"),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("undone", sa.JSON(), nullable=False),
        sa.Column("choices", sa.JSON(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=True),
        sa.Column("accounts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_dialogs"),
        _reference("dialogs", ["owner"], ["users.key"], "CASCADE"),
        _reference("dialogs", ["table_id"], ["tables.id"], "SET NULL"),
    )
    op.create_index("ix_dialogs_owner_updated", "dialogs", ["owner", "updated"])
    op.create_index("ix_dialogs_table_id", "dialogs", ["table_id"])
    _parts_of_dialogs()


def _parts_of_dialogs() -> None:
    op.create_table(
        "bases",
        sa.Column("dialog_id", sa.Text(), nullable=False),
        sa.Column("piece", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("dialog_id", name="pk_bases"),
        _reference("bases", ["dialog_id"], ["dialogs.id"], "CASCADE"),
    )
    op.create_table(
        "steps",
        sa.Column("dialog_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("parent", sa.Integer(), nullable=False),
        _time("created"),
        sa.Column("preference", sa.Text(), nullable=True),
        sa.Column("met", sa.Boolean(), nullable=True),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.Column("piece", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("dialog_id", "number", name="pk_steps"),
        _reference("steps", ["dialog_id"], ["dialogs.id"], "CASCADE"),
        _reference("steps", ["dialog_id", "parent"], ["steps.dialog_id", "steps.number"]),
    )
    op.create_table(
        "acceptances",
        sa.Column("dialog_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        _time("created"),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.Column("piece", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("dialog_id", "number", name="pk_acceptances"),
        _reference("acceptances", ["dialog_id"], ["dialogs.id"], "CASCADE"),
        _reference("acceptances", ["dialog_id", "step"], ["steps.dialog_id", "steps.number"]),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("dialog_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        _time("created"),
        _time("started", nullable=True),
        _time("finished", nullable=True),
        sa.Column("process", sa.Text(), nullable=True),
        _time("expires", nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("stopping", sa.Boolean(), nullable=False),
        sa.Column("progress", sa.JSON(), nullable=True),
        sa.Column("reply", sa.JSON(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("fields", sa.JSON(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        _reference("jobs", ["dialog_id"], ["dialogs.id"], "CASCADE"),
    )
    active = sa.text("state IN ('waiting', 'running')")
    op.create_index(
        "ix_jobs_active",
        "jobs",
        ["dialog_id"],
        unique=True,
        sqlite_where=active,
        postgresql_where=active,
    )


def downgrade() -> None:
    """Back to an empty database."""
    for table in ("jobs", "acceptances", "steps", "bases", "dialogs", "tables", "users"):
        op.drop_table(table)


def _time(name: str, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _reference(
    table: str, columns: list[str], to: list[str], ondelete: str | None = None
) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{'_'.join(columns)}"
    return sa.ForeignKeyConstraint(columns, to, name=name, ondelete=ondelete)
