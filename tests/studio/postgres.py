"""A real PostgreSQL server of the tests' own, from the system's packages, in a temporary folder."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from tests.needs import skip_missing

# Nothing here has to outlast a power cut, and each worker of the tests has its own server.
_QUICK = ["fsync=off", "full_page_writes=off", "max_connections=100", "shared_buffers=16MB"]


def _as_who() -> list[str]:
    """What to put before a command: PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return []
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        skip_missing("an account postgres, since PostgreSQL does not run as root")
    return ["runuser", "-u", "postgres", "--"]


def _run(*command: str | Path) -> None:
    done = subprocess.run(  # noqa: S603 - the system's own programs
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # not a pipe: the server would keep it open
        stderr=subprocess.DEVNULL,
        cwd="/",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command} gave {done.returncode}")


@contextmanager
def running(programs: Path) -> Iterator[str]:
    """Start a server; give the URL of its database ``postgres``; stop it at the end.

    ``programs`` is the folder of initdb and pg_ctl: ``need("postgresql")``.
    """
    who = _as_who()
    # Not pytest's folder: the path of a socket has 107 letters at most.
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        if who:
            shutil.chown(folder, "postgres", "postgres")
        data, log = folder / "data", folder / "log"
        _run(
            *who,
            programs / "initdb",
            *("--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync"),
            *("--encoding", "UTF8", "--locale", "C", "--no-instructions"),
        )
        options = " ".join(f"-c {setting}" for setting in _QUICK)
        options += f" -c listen_addresses='' -c unix_socket_directories='{folder}'"
        control = [*who, programs / "pg_ctl", "--pgdata", data, "--wait"]
        try:
            _run(*control, "--log", log, "--options", options, "start")
        except RuntimeError as error:
            raise RuntimeError(log.read_text()) from error
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            _run(*control, "--mode", "immediate", "stop")


@contextmanager
def database(server: str) -> Iterator[str]:
    """Make an empty database on a server; give its URL; drop it at the end."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield server.replace("/postgres?", f"/{name}?")
        finally:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)
