"""Where the store is: what outlasts a kill, versions of the database, and what is refused."""

import json
import multiprocessing
import os
import shutil
import socket
import sqlite3
import stat
import sys
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, event, inspect, make_url, select, text
from tests.studio import postgres, store_children

from margrave.steer import GuaranteeError, RowSample
from margrave.studio import migrations
from margrave.studio._tables import Base
from margrave.studio.job_table import JobTable
from margrave.studio.ledger import StoreLedger
from margrave.studio.store import AcceptanceRow, Store, StoreError, default_url
from margrave.studio.uploads import parquet_of
from margrave.studio.workspace import Workspace

NEWEST = ScriptDirectory(Path(migrations.__file__).parent).get_current_head()

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


@pytest.fixture
def store(url):
    """An open store with the user "local"."""
    with Store(url) as store:
        store.add_user("local")
        yield store


def contents(store):
    """All rows of all tables, as the database has them."""
    with store.read() as session:
        connection = session.connection()
        tables = MetaData()
        tables.reflect(connection)
        return {
            table.name: sorted(map(dict, connection.execute(select(table)).mappings()), key=repr)
            for table in tables.sorted_tables
        }


def store_error(action, *args, **kwargs):
    with pytest.raises(StoreError) as caught:
        action(*args, **kwargs)
    return caught.value


def message(action, *args, **kwargs):
    return str(store_error(action, *args, **kwargs))


# What is durable

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["margrave.studio.store", "psycopg"])


def in_processes(n, target, *args):
    """Run a function of `store_children` in several processes; return what they report."""
    here, there = PROCESSES.Pipe(duplex=False)
    children = [PROCESSES.Process(target=target, args=(*args, there)) for _ in range(n)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0] * n
    with here, there:
        return [here.recv() for _ in children]


@contextmanager
def running(target, *args):
    """Run a function of `store_children` in a process; yield the process and its reports."""
    here, there = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=target, args=(*args, there))
    child.start()
    there.close()
    with here:
        try:
            yield child, here
        finally:
            child.kill()
            child.join(60)
    assert child.exitcode == -9


@BOTH
def test_a_killed_process_has_stored_all_that_it_reported(store, url):
    dialog = store_children.add_trained(store)
    for enough in (1, 25):
        known = store.dialog("local", dialog).n_steps
        with running(store_children.add_steps, url, dialog, known) as (child, pipe):
            reported = [pipe.recv() for _ in range(enough)]
            child.kill()
            with suppress(EOFError):
                while True:
                    reported.append(pipe.recv())
        assert reported == list(range(known, known + len(reported)))
        pieces = store.pieces(dialog)
        row, numbers = pieces.dialog, [one.number for one in pieces.steps]
        assert numbers == list(range(row.n_steps))
        # The last step may have been stored and not yet reported.
        assert row.n_steps - 1 in (reported[-1], reported[-1] + 1)
        assert (row.position, row.revision) == (row.n_steps - 1, row.n_steps)
        assert row.preference == f"fp <= {row.position}"
        assert [one.piece for one in pieces.steps] == [*map(store_children.piece, numbers)]


@BOTH
def test_several_processes_may_open_a_new_store_at_once(url):
    assert in_processes(3, store_children.open_at_once, url, PROCESSES.Barrier(3)) == [True] * 3


@BOTH
def test_of_several_processes_one_changes_a_revision(store, url):
    dialog = store_children.add_trained(store)
    changed = in_processes(3, store_children.change_at_once, url, dialog, 1, PROCESSES.Barrier(3))
    assert sorted(changed) == [False, False, True]
    assert store.dialog("local", dialog).revision == 2


@BOTH
def test_only_postgresql_has_several_studios(store, url):
    with running(store_children.claim, url) as (_, pipe):
        assert pipe.recv() is None
        if store.is_shared:
            store.claim("another")
        else:
            assert "http://127.0.0.1:9/" in message(store.claim, "another")
    store.claim("another")  # the end of the process has released it
    store.close()
    with Store(url) as store:
        store.claim("a third")


def test_a_store_stays_claimed_without_the_file_beside_it(tmp_path):
    if not hasattr(pytest.importorskip("fcntl"), "F_OFD_SETLK"):
        pytest.skip("needs locks of open files")
    url = f"sqlite:///{tmp_path / 'studio.db'}"
    with running(store_children.claim, url) as (_, pipe):
        assert pipe.recv() is None
        (tmp_path / "studio.db.lock").unlink()
        for _ in range(2):
            other = Store(url)
            with pytest.raises(StoreError):
                other.claim("another")
            other.close()
    other = Store(url)
    other.claim("another")
    other.close()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("exists", [True, False])
def test_a_store_has_one_lock_by_whatever_path_it_is_named(tmp_path, monkeypatch, exists):
    folder, file = tmp_path / "real", tmp_path / "real" / "studio.db"
    folder.mkdir()
    if exists:
        Store(f"sqlite:///{file}").open().close()
    (tmp_path / "link.db").symlink_to(file)
    (tmp_path / "folder").symlink_to(folder)
    (tmp_path / "chain").symlink_to("folder")
    monkeypatch.chdir(folder)
    first = Store(f"sqlite:///{tmp_path / 'link.db'}")
    first.claim("http://127.0.0.1:9/")
    paths = [file, tmp_path / "link.db", tmp_path / "folder" / "studio.db", "studio.db"]
    paths += [f"{folder}//studio.db", f"{folder}/../chain/./studio.db", "../link.db"]
    for path in paths:
        other = Store(f"sqlite:///{path}")
        with pytest.raises(StoreError, match=r"127\.0\.0\.1:9"):
            other.claim("another")
        other.close()
    first.close()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_store_with_two_names_is_refused(tmp_path):
    Store(f"sqlite:///{tmp_path / 'a.db'}").open().close()
    os.link(tmp_path / "a.db", tmp_path / "b.db")
    for name in ("a.db", "b.db"):
        store = Store(f"sqlite:///{tmp_path / name}")
        with pytest.raises(StoreError):
            store.claim("one")
        store.close()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_links_that_lead_to_each_other_are_refused(tmp_path):
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(StoreError):
        Store(f"sqlite:///{tmp_path / 'a.db'}").claim("one")


def test_sqlite_flushes_at_each_commit(tmp_path):
    wanted = {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1, "foreign_keys": 1}
    with (
        Store(f"sqlite:///{tmp_path}/studio.sqlite3") as store,
        store.read() as first,
        store.write() as second,  # not the connection that the first has
    ):
        for session in (first, second):
            pragmas = {name: session.execute(text(f"PRAGMA {name}")) for name in wanted}
            assert {name: found.scalar_one() for name, found in pragmas.items()} == wanted


@pytest.mark.full
@pytest.mark.parametrize(("wanted", "got"), [("off", "on"), ("local", "local"), ("on", "on")])
def test_postgresql_is_asked_to_write_before_it_answers(server, wanted, got):
    with (
        postgres.database(server) as url,
        Store(f"{url}&options=-csynchronous_commit%3D{wanted}") as store,
        store.write() as session,
    ):
        assert session.scalar(text("SHOW synchronous_commit")) == got


@pytest.mark.full
def test_connections_that_the_server_closed_are_made_again(server):
    with postgres.database(server) as url, Store(url) as store:
        store.add_user("local")
        with store.read() as first, store.read() as second:
            assert [session.scalar(text("SELECT 1")) for session in (first, second)] == [1, 1]
        with postgres.psycopg.connect(server) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                [make_url(url).database],
            )
        assert store.has_user("local")


@BOTH
def test_of_several_processes_one_uses_the_same_rows(url):
    with Store(url):
        pass
    used = in_processes(3, store_children.use_at_once, url, PROCESSES.Barrier(3))
    assert sorted(used) == [False, False, True]


@BOTH
def test_a_killed_process_leaves_its_use_of_rows(store, url):
    with running(store_children.use_and_wait, url) as (child, pipe):
        assert pipe.recv()
        child.kill()
    (account,) = StoreLedger(store, "spam").read()
    assert [use.outcome for use in account.uses] == ["unfinished"]
    assert account.used_up


@BOTH
def test_an_account_that_another_process_adds_is_not_taken_for_one_that_is_gone(store):
    ledger, other = (Workspace(store, 1).ledger({"target": "spam"}) for _ in range(2))
    first, second = np.arange(100.0)[:, None], np.arange(500.0, 600.0)[:, None]
    with (
        suppress(GuaranteeError),
        other.use(RowSample.of(first), name="x", preference="fp <= 1%", delta=0.05),
    ):
        assert ledger.account(RowSample.of(first)).used_up
        raise GuaranteeError("Too few.", code="too_few_samples")  # the use is removed
    with other.use(RowSample.of(second), name="y", preference="fp <= 2%", delta=0.05):
        assert not ledger.account(RowSample.of(first)).uses
        assert [use.preference for use in ledger.account(RowSample.of(second)).uses] == ["fp <= 2%"]
    (use,) = ledger.account(RowSample.of(second)).uses
    assert use.outcome == "certified"


@BOTH
@pytest.mark.parametrize(("n", "used"), [(30, True), (300, True), (12_000, True), (100, False)])
def test_the_rows_of_an_account_are_found_among_many(store, n, used):
    ledger = StoreLedger(store, "spam")
    X = np.arange(100_000.0)[:, None]
    for first in range(0, 90_000, 30_000):
        rows = RowSample.of(X[first : first + 30_000])
        with ledger.use(rows, name=str(first), preference="fp <= 1%", delta=0.05):
            pass
    rows = RowSample.of(X[40_000 : 40_000 + n] if used else X[-n:])
    assert [use.name for use in ledger.account(rows).uses] == ["30000"] * used


# Versions


def difference(connection):
    """How the tables of a database differ from those of this version."""
    options = {"compare_type": True, "compare_server_default": True}
    options["version_table"] = migrations.VERSION_TABLE
    context = MigrationContext.configure(connection, opts=options)
    return [one[0] for one in compare_metadata(context, Base.metadata)]


@BOTH
def test_migrations_lead_to_the_tables(store):
    with store.write() as session:
        connection = session.connection()
        assert difference(connection) == []
        tables = inspect(connection).get_table_names()
        assert set(tables) == {*Base.metadata.tables, migrations.VERSION_TABLE}


@BOTH
def test_a_difference_would_be_seen(store):
    with store.write() as session:
        session.execute(text("DROP INDEX ix_dialogs_table_id"))
        session.execute(text("ALTER TABLE users ADD COLUMN more INTEGER"))
        assert sorted(difference(session.connection())) == ["add_index", "remove_column"]


@BOTH
def test_opening_it_again_changes_nothing(store, url):
    store_children.add_trained(store)
    before = contents(store)
    store.close()
    sent = []

    def note(connection, cursor, statement, *rest):
        if connection.engine.url == engine.url:
            sent.append(statement.split()[0])

    with store.read() as session:
        engine = session.get_bind()
    event.listen(Engine, "before_cursor_execute", note)
    try:
        with store, store:
            assert contents(store) == before
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert "SELECT" in sent
    assert not {"CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE"} & set(sent)


@BOTH
def test_down_to_nothing_and_up_again(store):
    with store.write() as session:
        connection = session.connection()
        command.downgrade(migrations.configuration(connection), "base")
        assert inspect(connection).get_table_names() == [migrations.VERSION_TABLE]
    store.open()
    assert not store.has_user("local")
    with store.read() as session:
        assert difference(session.connection()) == []


@BOTH
def test_a_migration_happens_as_a_whole_or_not_at_all(url):
    store = Store(url)

    def fail(connection, cursor, statement, *rest):
        if "CREATE TABLE steps" in statement:
            raise KeyboardInterrupt

    event.listen(Engine, "before_cursor_execute", fail)
    try:
        with pytest.raises(KeyboardInterrupt):
            store.open()
    finally:
        event.remove(Engine, "before_cursor_execute", fail)
    assert contents(store) == {}
    with store:
        assert not store.has_user("local")


@BOTH
@pytest.mark.parametrize("version", ["0001", "0003", "9999"])
def test_a_database_of_another_version_is_left_unchanged(store, url, version):
    store_children.add_trained(store)
    with store.write() as session:
        session.execute(text("DROP TABLE jobs"))
        session.execute(text(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '{version}'"))  # noqa: S608
    before = contents(store)
    store.close()
    place = make_url(url).database
    file = None if store.is_shared else Path(place)
    data = file and file.read_bytes()
    refusal = message(Store(url).open)
    assert [one for one in (place, version, NEWEST) if one not in refusal] == []
    assert (file and file.read_bytes()) == data
    assert contents(store) == before


@BOTH
def test_another_programs_database_is_left_unchanged(url):
    store = Store(url)
    if store.is_shared:
        with postgres.psycopg.connect(url) as other:
            other.execute("CREATE TABLE users (name TEXT)")
    else:
        with closing(sqlite3.connect(make_url(url).database)) as other:
            other.execute("CREATE TABLE users (name TEXT)")
    assert make_url(url).database in message(store.open)
    assert contents(store) == {"users": []}
    store.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the folder of migrations that stores are opened with."""
    folder = tmp_path / "100% mine"
    shutil.copytree(Path(migrations.__file__).parent, folder)
    configuration = partial(migrations.configuration, folder=folder)
    monkeypatch.setattr(migrations, "configuration", configuration)
    return folder


def test_the_next_version_is_written_from_the_template(tmp_path, folder):
    with Store(f"sqlite:///{tmp_path}/studio.sqlite3") as store, store.write() as session:
        connection = session.connection()
        config = migrations.configuration(connection)
        session.execute(text("DROP INDEX ix_dialogs_table_id"))
        script = command.revision(config, "An index", autogenerate=True, rev_id="0999")
        written = Path(script.path).read_text()
        assert written.startswith('"""An index."""\n\nfrom __future__ import annotations\n')
        assert f"revision = '0999'\ndown_revision = '{NEWEST}'\n" in written
        command.upgrade(config, "head")
        assert difference(connection) == []


CHANGED = ("users", "tables", "dialogs", "steps")
# On SQLite, a table is created again to change one of its columns.
NEXT = f'''
import sqlalchemy as sa
from alembic import op

revision, down_revision = "0999", "{NEWEST}"


def upgrade():
    for name in {CHANGED}:
        with op.batch_alter_table(name) as table:
            table.add_column(sa.Column("note", sa.Text()))
            table.alter_column("created", nullable=True)
'''


@BOTH
def test_the_next_version_keeps_the_content(store, url, folder):
    table = store.add_table("local", "mails.csv", {"rows": 3}, b"rows")
    dialog, _ = JobTable(store, 1).begin("local", "Spam", table.id, {"kind": "committee"})
    model = AcceptanceRow(number=1, step=1, record={"route": "set"}, piece=b"model")
    steps = [store_children.new_step(0), store_children.new_step(1)]
    store.change(dialog.id, base=b"base", steps=steps, acceptances=[model], position=1)
    before = contents(store)
    store.close()

    (folder / "versions" / "0999_next.py").write_text(NEXT)
    with Store(url) as store:
        after = contents(store)
        assert after.pop(migrations.VERSION_TABLE) == [{"version_num": "0999"}]
        notes = [row.pop("note") for name in CHANGED for row in after[name]]
        assert notes == [None] * 5
        assert after == {name: before[name] for name in after}
        assert store.pieces(dialog.id).steps[1].piece == store_children.piece(1)
        # The references are those of before.
        message(store_children.add_step, store, dialog.id, 2, parent=7)
        assert store_children.add_step(store, dialog.id, 2) == 2
        store.delete_dialog("local", dialog.id)
        assert [name for name, found in contents(store).items() if found] == [
            migrations.VERSION_TABLE,
            "users",
            "tables",
        ]


def add_old_dialog(connection, name, table_id, accounts, accepted=()):
    """Add a dialog as version 0004 has it."""
    values = {
        "id": name,
        "table_id": table_id,
        "now": "2026-01-02 03:04:05.000000+00:00",
        "choices": json.dumps({"kind": "committee", "target": "y", "drop": ["b"]}),
        "facts": json.dumps({"n": 3, "certify": {"name": "samples", "n": 20}}),
        "accounts": json.dumps(accounts),
    }
    connection.execute(
        text(
            "INSERT INTO dialogs (id, owner, title, table_id, created, updated, state, position,"
            " revision, undone, choices, facts, accounts) VALUES (:id, 'local', 'Old', :table_id,"
            " :now, :now, 'ready', 0, 1, '[]', :choices, :facts, :accounts)"
        ),
        values,
    )
    for number in range(2):
        values = {"id": name, "number": number, "now": values["now"], "record": "{}"}
        values["preference"] = f"fp <= {number}%"
        connection.execute(
            text(
                "INSERT INTO steps (dialog_id, number, parent, created, preference, record, piece)"
                " VALUES (:id, :number, 0, :now, :preference, :record, '')"
            ),
            values,
        )
    for use_number, preference in accepted:
        record = {"use_number": use_number, "preference": preference, "issued": "2026-01-01"}
        values |= {"number": use_number, "record": json.dumps(record)}
        connection.execute(
            text(
                "INSERT INTO acceptances (dialog_id, number, step, created, record, piece)"
                " VALUES (:id, :number, 1, :now, :record, '')"
            ),
            values,
        )


@BOTH
def test_the_accounts_of_dialogs_become_those_of_their_rows(store):
    frames = [pandas.DataFrame({"a": np.arange(50.0) + i, "b": 0.5, "y": "no"}) for i in (0, 99)]
    used, unused = (store.add_table("local", "t", {}, parquet_of(frame)).id for frame in frames)
    refused = [{"use_number": 2, "step": 1, "samples": "samples", "confidence": 0.95}]
    twice = [{"samples": "samples", "delta": 0.05, "used": [0.025, 0.0125], "refused": refused}]
    once = [{"samples": "samples", "delta": 0.05, "used": [0.0125], "refused": []}]
    with store.write() as session:
        connection = session.connection()
        command.downgrade(migrations.configuration(connection), "0004")
        add_old_dialog(connection, "twice", used, twice, [(1, "fn <= 1%")])
        add_old_dialog(connection, "again", used, once)
        add_old_dialog(connection, "unused", unused, [])
        add_old_dialog(connection, "without table", None, once)
    store.open()
    with store.write() as session:
        assert difference(session.connection()) == []
    (account,) = StoreLedger(store, "y").read()
    assert sorted((use.part, use.preference, use.outcome) for use in account.uses) == [
        (0.0125, "", "unfinished"),
        (0.0125, "fp <= 1%", "refused"),
        (0.025, "fn <= 1%", "certified"),
    ]
    assert account.used_up
    workspace = Workspace(store, 1)
    left = {row.id: workspace.account(row) for row in store.dialogs("local")}
    assert (left["twice"].used_up, left["again"].used_up) == (True, True)
    assert left["unused"].uses == ()
    assert left["without table"] is None  # nobody knows its rows, so nothing can be certified
    assert store.dialog("local", "twice").refused == refused
    rows = frames[0].drop(columns="y").sample(frac=0.5, random_state=0)
    assert StoreLedger(store, "y").account(RowSample.of(rows)).used_up


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
    refusal = message(Store, url)
    assert [one for one in named if one not in refusal] == []
    assert "cret" not in refusal  # the password


@pytest.mark.parametrize("name", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_has_several_names(name):
    store = Store(f"{name}://me:secret@host:5433/name")
    assert store.is_shared
    shown = repr(store)
    assert [one for one in ("Store", "'name'", "host:5433") if one not in shown] == []
    assert "secret" not in shown


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refusal = message(Store, "postgresql://me:secret@host/name")
    assert [one for one in ("psycopg", "[postgres]") if one not in refusal] == []


def test_a_server_that_does_not_answer():
    with socket.socket() as free:  # bound, but not listening
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
        refusal = message(Store(f"postgresql://me:secret@{place}/name").open)
    assert [one for one in ("'name'", place, "refused") if one not in refusal] == []
    assert "secret" not in refusal


@pytest.mark.full
def test_a_database_that_the_server_does_not_have(server):
    folder = server.partition("host=")[2]
    refusal = message(Store(server.replace("/postgres?", "/nothing?")).open)
    assert [one for one in ("'nothing'", folder, '"nothing"') if one not in refusal] == []


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


@pytest.mark.parametrize(
    ("column", "content"),
    [
        ("facts", b'{"rows": "\xff"}'),
        ("facts", b'{"rows": '),
        ("created", b"yesterday"),
        ("created", b"\xff\xfe"),
        ("name", b"\xc6mails"),
    ],
)
def test_a_damaged_row(tmp_path, column, content):
    """SQLite finds damage of its structure, and not of texts in it."""
    path = tmp_path / "studio.sqlite3"
    with Store(f"sqlite:///{path}") as store:
        store.add_user("local")
        row = store.add_table("local", "mails.csv", {"rows": 1}, b"")
        with closing(sqlite3.connect(path)) as other, other:
            other.execute(f"UPDATE tables SET {column} = CAST(? AS TEXT)", (content,))  # noqa: S608
        error = store_error(store.table, "local", row.id)
        assert error.code == "SQLITE_CORRUPT"
        assert "codec" not in str(error)
        assert "rows" not in str(error)


def test_a_damaged_schema(tmp_path):
    """The message of SQLite quotes it, and is then no text."""
    path = tmp_path / "studio.sqlite3"
    Store(f"sqlite:///{path}").open().close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE users", b"CREATE \xc6ABLE users"))
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
        with store.write() as session:
            session.execute(text("PRAGMA max_page_count=1"))
        error = store_error(store.add_table, "local", "mails.csv", {}, bytes(1 << 20))
        assert error.code == "SQLITE_FULL"
        assert store.has_user("local")
