"""Where the store is: what outlasts a kill, versions of the database, and what is refused."""

import multiprocessing
import os
import shutil
import sqlite3
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import event, inspect, text
from tests.studio import postgres, store_children

from margrave.studio import migrations
from margrave.studio._tables import Base
from margrave.studio.store import Store, StoreError, default_url

BOTH = pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.full)]
)


@pytest.fixture(scope="module")
def server(need):
    with postgres.running(need("postgresql")) as url:
        yield url


@pytest.fixture
def url(kind, request, tmp_path):
    """The URL of a database that is not there yet, or empty."""
    if kind == "sqlite":
        yield f"sqlite:///{tmp_path}/studio.sqlite3"
        return
    with postgres.database(request.getfixturevalue("server")) as url:
        yield url


def ready(store):
    """A dialog of the user "local" with its start."""
    store.add_user("local")
    dialog = store.add_dialog("local", "Spam", None, {"kind": "committee"})
    store.set_ready(dialog.id, b"base", {"n": 3}, {"preference": None}, b"start")
    return dialog.id


def store_error(action, *args, **kwargs):
    with pytest.raises(StoreError) as caught:
        action(*args, **kwargs)
    return caught.value


def message(action, *args, **kwargs):
    return str(store_error(action, *args, **kwargs))


# What is durable

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["margrave.studio.store", "psycopg"])


@BOTH
def test_a_killed_process_has_stored_all_that_it_told(url):
    with Store(url) as store:
        dialog = ready(store)
        for enough in (1, 25):
            known = store.dialog("local", dialog).n_steps
            here, there = PROCESSES.Pipe(duplex=False)
            child = PROCESSES.Process(
                target=store_children.add_steps, args=(url, dialog, known, there)
            )
            child.start()
            there.close()
            told = [here.recv() for _ in range(enough)]
            child.kill()
            child.join(60)
            while True:
                try:
                    told.append(here.recv())
                except EOFError:
                    break
            here.close()
            assert child.exitcode == -9
            assert told == list(range(known, known + len(told)))
            row, pieces = store.dialog("local", dialog), store.pieces(dialog)
            # The last may have been stored and not yet told.
            assert row.n_steps - 1 in (told[-1], told[-1] + 1)
            assert (row.position, row.revision) == (row.n_steps - 1, row.n_steps)
            assert row.preference == f"fp <= {row.position}"
            assert [one.piece for one in pieces.steps[1:]] == [
                store_children.piece(number) for number in range(1, row.n_steps)
            ]


@BOTH
def test_several_processes_may_open_a_new_store_at_once(url):
    n = 3
    barrier, (here, there) = PROCESSES.Barrier(n), PROCESSES.Pipe(duplex=False)
    children = [
        PROCESSES.Process(target=store_children.open_at_once, args=(url, barrier, there))
        for _ in range(n)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * n
    assert [here.recv() for _ in children] == [True] * n
    here.close()
    there.close()


def test_sqlite_flushes_at_each_commit(tmp_path):
    wanted = {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1, "foreign_keys": 1}
    with (
        Store(f"sqlite:///{tmp_path}/studio.sqlite3") as store,
        store._reader.connect() as first,
        store._writer.connect() as second,  # not the one that the first has
    ):
        for connection in (first, second):
            pragmas = {name: connection.exec_driver_sql(f"PRAGMA {name}") for name in wanted}
            assert {name: found.scalar_one() for name, found in pragmas.items()} == wanted


@pytest.mark.full
@pytest.mark.parametrize(("wanted", "got"), [("off", "on"), ("local", "local"), ("on", "on")])
def test_postgresql_is_asked_to_write_before_it_answers(server, wanted, got):
    with (
        postgres.database(server) as url,
        Store(f"{url}&options=-csynchronous_commit%3D{wanted}") as store,
        store._writer.connect() as connection,
    ):
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == got


@pytest.mark.full
def test_connections_that_the_server_closed_are_made_again(server):
    with postgres.database(server) as url, Store(url) as store:
        store.add_user("local")
        with store._reader.connect(), store._reader.connect():
            pass
        with postgres.psycopg.connect(server) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [store._url.database],
            )
        assert store.has_user("local")


# Versions


def statements_of(store):
    found = []
    event.listen(
        store._engine,
        "before_cursor_execute",
        lambda connection, cursor, statement, *rest: found.append(statement.split()[0]),
    )
    return found


@BOTH
def test_migrations_lead_to_the_tables(url):
    with Store(url) as store, store._writer.begin() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        options["version_table"] = migrations.VERSION_TABLE
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
        tables = inspect(connection).get_table_names()
        assert set(tables) == {*Base.metadata.tables, migrations.VERSION_TABLE}


@BOTH
def test_a_difference_would_be_seen(url):
    with Store(url) as store, store._writer.begin() as connection:
        connection.exec_driver_sql("DROP INDEX ix_dialogs_table_id")
        connection.exec_driver_sql("ALTER TABLE users ADD COLUMN more INTEGER")
        context = MigrationContext.configure(
            connection, opts={"version_table": migrations.VERSION_TABLE}
        )
        found = compare_metadata(context, Base.metadata)
        assert sorted(one[0] for one in found) == ["add_index", "remove_column"]


@BOTH
def test_to_open_it_again_changes_nothing(url):
    with Store(url) as store:
        dialog = ready(store)
        before = store.dialog("local", dialog)
    store = Store(url)
    found = statements_of(store)
    with store, store:
        assert store.dialog("local", dialog) == before
    assert not {"CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE"} & set(found)


@BOTH
def test_down_to_nothing_and_up_again(url):
    with Store(url) as store:
        with store._writer.begin() as connection:
            command.downgrade(migrations.configuration(connection), "base")
        with store._writer.begin() as connection:
            assert inspect(connection).get_table_names() == [migrations.VERSION_TABLE]
        store.open()
        store.add_user("local")
        assert store.has_user("local")


@BOTH
def test_a_migration_happens_as_a_whole_or_not_at_all(url):
    store = Store(url)

    def fail(connection, cursor, statement, *rest):
        if "CREATE TABLE steps" in statement:
            raise KeyboardInterrupt

    event.listen(store._engine, "before_cursor_execute", fail)
    with pytest.raises(KeyboardInterrupt):
        store.open()
    event.remove(store._engine, "before_cursor_execute", fail)
    with store._reader.connect() as connection:
        assert inspect(connection).get_table_names() == []
    with store:
        assert not store.has_user("local")


@BOTH
@pytest.mark.parametrize("version", ["0001", "9999"])
def test_a_database_of_another_version_is_left_alone(url, version):
    with Store(url) as store, store._writer.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE {migrations.VERSION_TABLE} SET version_num = '{version}'"  # noqa: S608
        )
    file = Path(store._url.database) if url.startswith("sqlite") else None
    before = file and file.read_bytes()
    refusal = message(Store(url).open)
    assert store._url.database in refusal
    assert version in refusal
    assert (file and file.read_bytes()) == before
    with store._reader.connect() as connection:
        query = text(f"SELECT version_num FROM {migrations.VERSION_TABLE}")  # noqa: S608
        assert connection.execute(query).scalar_one() == version
    store.close()


@BOTH
def test_another_programs_database_is_left_alone(url):
    store = Store(url)
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(store._url.database)) as other:
            other.execute("CREATE TABLE users (name TEXT)")
    else:
        with postgres.psycopg.connect(url) as other:
            other.execute("CREATE TABLE users (name TEXT)")
    assert store._url.database in message(store.open)
    with store._reader.connect() as connection:
        assert inspect(connection).get_table_names() == ["users"]
    store.close()


def test_the_next_version_is_written_from_the_template(tmp_path):
    folder = tmp_path / "100% mine"
    shutil.copytree(Path(migrations.__file__).parent, folder)
    with (
        Store(f"sqlite:///{tmp_path}/studio.sqlite3") as store,
        store._writer.begin() as connection,
    ):
        config = migrations.configuration(connection, folder)
        connection.exec_driver_sql("DROP INDEX ix_dialogs_table_id")
        script = command.revision(config, "An index", autogenerate=True, rev_id="0004")
        written = Path(script.path).read_text()
        assert written.startswith('"""An index."""\n\nfrom __future__ import annotations\n')
        assert "revision = '0004'\ndown_revision = '0003'\n" in written
        command.upgrade(config, "head")
        context = MigrationContext.configure(
            connection, opts={"version_table": migrations.VERSION_TABLE}
        )
        assert compare_metadata(context, Base.metadata) == []


# Where it is


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, "/home/me/.local/share"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data"),
        ("linux", {"XDG_DATA_HOME": "data"}, "/home/me/.local/share"),
        ("darwin", {"XDG_DATA_HOME": "/data"}, "/home/me/Library/Application Support"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local"),
        ("win32", {}, "/home/me/AppData/Local"),
    ],
)
def test_the_default_is_in_the_users_data_folder(monkeypatch, platform, environment, folder):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_url() == f"sqlite:///{folder}/margrave/studio.sqlite3"


def test_files_are_the_users_own(monkeypatch, tmp_path):
    data = tmp_path / "odd #1 100% ?x"
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    monkeypatch.setattr(sys, "platform", "linux")
    with Store(default_url()) as store:
        store.add_user("local")
        files = list((data / "margrave").iterdir())
        assert {file.name.removeprefix("studio.sqlite3") for file in files} == {"", "-wal", "-shm"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert stat.S_IMODE((data / "margrave").stat().st_mode) == 0o700


def test_a_relative_file_stays_where_it_was(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    store, at_home = Store("sqlite:///studio.sqlite3"), Store("sqlite:///~/studio.sqlite3")
    monkeypatch.chdir("/")
    with store, at_home:
        assert (tmp_path / "studio.sqlite3").is_file()
        assert (tmp_path / "home" / "studio.sqlite3").is_file()


SHAPES = ("sqlite:///", "postgresql://", "%40")  # of what a URL may be


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("studio.sqlite3", SHAPES),
        ("", SHAPES),
        ("postgresql://me:secret@host:port/name", SHAPES),
        ("postgresql://me:se@cret@host/name", SHAPES),
        ("mysql://me:secret@host/name", ["'mysql'"]),
        ("postgresql+asyncpg://me:secret@host/name", ["'postgresql+asyncpg'"]),
        ("sqlite://", ["sqlite:///"]),
        ("sqlite:///:memory:", ["sqlite:///"]),
        ("sqlite:///file:x?uri=true", ["sqlite:///"]),
        ("sqlite://studio.sqlite3", ["sqlite:///"]),
    ],
)
def test_a_url_that_is_none(url, named):
    said = message(Store, url)
    assert [one for one in named if one not in said] == []
    assert "cret" not in said  # the password


@pytest.mark.parametrize("name", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_has_several_names(name):
    store = Store(f"{name}://me:secret@host:5433/name")
    assert store._engine.dialect.driver == "psycopg"
    shown = repr(store)
    assert [one for one in ("Store", "'name'", "host:5433") if one not in shown] == []
    assert "secret" not in shown


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    said = message(Store, "postgresql://me:secret@host/name")
    assert [one for one in ("psycopg", "[postgres]") if one not in said] == []


def test_a_server_that_does_not_answer():
    store = Store("postgresql://me:secret@127.0.0.1:1/name")
    said = message(store.open)
    assert [one for one in ("'name'", "127.0.0.1:1", "refused") if one not in said] == []
    assert "secret" not in said


@pytest.mark.full
def test_a_database_that_the_server_does_not_have(server):
    folder = server.partition("host=")[2]
    said = message(Store(server.replace("/postgres?", "/nothing?")).open)
    assert [one for one in ("'nothing'", folder, '"nothing"') if one not in said] == []


@pytest.mark.full
def test_a_password_is_in_no_message(server):
    url = server.replace("postgres@/postgres?", "postgres:nothing@/nothing?")
    with pytest.raises(StoreError) as caught:
        Store(url).open()
    assert "OperationalError" in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.full
def test_a_server_that_goes_away(server):
    with postgres.database(server) as url:
        store = Store(url).open()
    assert store_error(store.has_user, "local").code == "UNREACHABLE"
    store.close()


def test_a_folder_that_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "studio.sqlite3"
    assert f"{tmp_path}/file " in message(Store(f"sqlite:///{path}").open)
    path = tmp_path / "file" / "more" / "studio.sqlite3"
    assert f"{path} " in message(Store(f"sqlite:///{path}").open)
    assert f"{tmp_path} " in message(Store(f"sqlite:///{tmp_path}").open)


def test_a_folder_that_may_not_be_written(monkeypatch, tmp_path):
    path = tmp_path / "studio.sqlite3"
    Store(f"sqlite:///{path}").open().close()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    error = store_error(Store(f"sqlite:///{path}").open)
    assert error.code == "SQLITE_READONLY"
    assert str(path) in str(error)


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "mails.csv"
    path.write_text("a,b\n" * 1000)
    error = store_error(Store(f"sqlite:///{path}").open)
    assert error.code == "SQLITE_NOTADB"
    assert str(path) in str(error)
    assert path.read_text() == "a,b\n" * 1000


def test_a_damaged_database(tmp_path):
    path = tmp_path / "studio.sqlite3"
    Store(f"sqlite:///{path}").open().close()
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3000)
    error = store_error(Store(f"sqlite:///{path}").open)
    assert error.code == "SQLITE_CORRUPT"
    assert str(path) in str(error)


def test_a_database_that_another_program_holds(tmp_path):
    path = tmp_path / "studio.sqlite3"
    with Store(f"sqlite:///{path}?timeout=0.01") as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert store_error(store.add_user, "local").code == "SQLITE_BUSY"
            assert not store.has_user("local")  # who reads does not wait
        store.add_user("local")
        assert store.has_user("local")


def test_a_full_disk(tmp_path):
    with Store(f"sqlite:///{tmp_path}/studio.sqlite3") as store:
        store.add_user("local")
        with store._writer.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count=1")
        error = store_error(store.add_table, "local", "mails.csv", {}, bytes(1 << 20))
        assert error.code == "SQLITE_FULL"
        assert store.has_user("local")
