"""What alembic runs to migrate the database of a connection that it is given."""

from __future__ import annotations

from alembic import context

from margrave.studio._tables import Base
from margrave.studio.migrations import VERSION_TABLE


def run() -> None:
    """Run the migrations in the connection's own transaction."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=Base.metadata,
        version_table=VERSION_TABLE,
        transactional_ddl=True,  # also on SQLite, since the connection says BEGIN itself
        render_as_batch=True,  # how SQLite alters a table
    )
    context.run_migrations()


if hasattr(context, "config"):  # not where this file is only read, as doctest does
    run()
