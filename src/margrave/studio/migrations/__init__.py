"""The versions of the store's database, and how it comes from one to the next.

The next version, after a change in ``_tables.py``, on an opened and empty store::

    with engine.begin() as connection:
        command.revision(
            configuration(connection), "what changes", autogenerate=True, rev_id="0005"
        )
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, inspect, select

from margrave.studio._engine import StoreError

VERSION_TABLE = "margrave_version"  # not alembic's usual name: the server may be shared

_FOLDER = Path(__file__).parent
_LOCK_KEY = 0x6D617267  # "marg", among the advisory locks of a PostgreSQL database
_one_at_a_time = threading.Lock()  # alembic keeps what it works on in a global


def configuration(connection: Connection, folder: Path = _FOLDER) -> Config:
    """Give alembic's configuration for the database of a connection."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config


def upgrade(connection: Connection, place: str = "The store") -> None:
    """Bring a database to the newest version, all in the transaction of a connection.

    Of several processes that do this at once, one does it and the others wait.

    Parameters
    ----------
    connection : Connection
        On SQLite, in a transaction that may write already.
    place : str
        How a message begins.

    Raises
    ------
    StoreError
        If an earlier or a newer Margrave wrote it, or another program did; it is left unchanged.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_LOCK_KEY)))
    tables = inspect(connection).get_table_names()
    if tables and VERSION_TABLE not in tables:
        raise StoreError(f"{place} holds another program's tables; give the studio its own.")
    config = configuration(connection)
    scripts = ScriptDirectory.from_config(config)
    known = {script.revision for script in scripts.walk_revisions()}
    newest = scripts.get_current_head() or ""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    for version in set(context.get_current_heads()) - known:
        writer = "a newer" if version > newest else "an earlier"
        raise StoreError(
            f"{place} has database version {version}, of {writer} version of Margrave; this one "
            f"reads version {newest}. Use the Margrave that wrote it, or name another store."
        )
    with _one_at_a_time:
        command.upgrade(config, "head")
