"""The store on both databases: what comes back, what is durable, and what is refused."""

import itertools
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import event, insert, text
from tests.examples import few
from tests.studio import postgres, store_children

from margrave.studio._tables import Step
from margrave.studio.store import Conflict, NotFound, Store, StoreError


@pytest.fixture(scope="module")
def server(need):
    with postgres.running(need("postgresql")) as url:
        yield url


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)]
)
def store(request, tmp_path_factory):
    """An open store that all tests share; each has users of its own."""
    if request.param == "sqlite":
        with Store(f"sqlite:///{tmp_path_factory.mktemp('store')}/studio.sqlite3") as store:
            yield store
        return
    with (
        postgres.database(request.getfixturevalue("server")) as url,
        Store(url) as store,
    ):
        yield store


counter = itertools.count()


def new_user(store):
    key = f"user {next(counter)}"
    store.add_user(key)
    return key


@pytest.fixture
def owner(store):
    return new_user(store)


def ready(store, owner, title="Spam"):
    """A dialog with its start."""
    dialog = store.add_dialog(owner, title, None, {"kind": "committee"})
    store.set_ready(dialog.id, b"base", {"n": 3}, {"preference": None}, b"start")
    return dialog.id


def step(store, dialog_id, number, parent=None, **stands):
    parent = number - 1 if parent is None else parent
    return store_children.add_step(store, dialog_id, number, parent, **stands)


def message(kind, action, *args, **kwargs):
    with pytest.raises(StoreError) as caught:
        action(*args, **kwargs)
    assert type(caught.value) is kind
    return str(caught.value)


# What comes back


def test_users_are_known_by_their_keys(store):
    key = new_user(store)
    store.add_user(key)
    assert store.has_user(key)
    assert not store.has_user("nobody")
    assert not store.has_user("no\0body\ud800")


def test_a_table_comes_back(store, owner):
    before = datetime.now(UTC)
    row = store.add_table(owner, "a\0b.csv", {"rows": 3, "x": [1.5, None, "é\0\ud800"]}, b"\0PAR1")
    assert row == store.table(owner, row.id)
    assert (row.owner, row.name, row.size) == (owner, "a\ufffdb.csv", 5)
    assert row.facts == {"rows": 3, "x": [1.5, None, "é\0\ud800"]}
    assert row.created.tzinfo is UTC
    assert before <= row.created <= datetime.now(UTC)
    assert store.table_data(owner, row.id) == b"\0PAR1"


def test_tables_that_no_dialog_uses_can_be_deleted(store, owner):
    used, unused = (store.add_table(owner, name, {}, b"") for name in "ab")
    dialog = store.add_dialog(owner, "Spam", used.id, {})
    assert store.delete_unused_tables(unused.created - timedelta(days=1)) == 0
    store.delete_unused_tables(datetime.now(UTC) + timedelta(days=1))
    assert store.table(owner, used.id) == used
    assert "table" in message(NotFound, store.table, owner, unused.id)
    assert store.dialog(owner, dialog.id).table_name == "a"


def test_a_dialog_from_its_beginning_to_an_acceptance(store, owner):
    table = store.add_table(owner, "mails.csv", {}, b"rows")
    new = store.add_dialog(owner, "Spam", table.id, {"kind": "committee"})
    assert (new.state, new.position, new.revision, new.accounts) == ("training", 0, 0, [])
    assert (new.table_id, new.table_name) == (table.id, "mails.csv")
    assert (new.facts, new.error) == (None, None)
    assert new in store.unfinished()

    assert store.set_state(new.id, "failed", "No member learned anything.") == 1
    assert store.dialog(owner, new.id).error == "No member learned anything."
    assert store.set_state(new.id, "training") == 2
    assert (
        store.set_ready(new.id, b"base", {"n": 279}, {"preference": None, "met": None}, b"start")
        == 3
    )
    assert step(store, new.id, 1) == 4
    assert step(store, new.id, 2) == 5
    assert store.set_position(new.id, 1, [2]) == 6
    assert step(store, new.id, 3, parent=1) == 7
    assert store.add_acceptance(new.id, 1, 3, {"route": "set"}, b"model", [{"used": [0.05]}]) == 8
    assert store.set_accounts(new.id, [{"used": [0.05, 0.1]}]) == 9
    assert store.rename(owner, new.id, "Ham") == 10

    row = store.dialog(owner, new.id)
    assert row == replace(
        new,
        title="Ham",
        state="ready",
        position=3,
        revision=10,
        facts={"n": 279},
        accounts=[{"used": [0.05, 0.1]}],
        n_steps=4,
        n_accepted=1,
        preference="fp <= 3",
        met=False,
        updated=row.updated,
    )
    assert row.updated > new.updated
    assert store.unfinished() == [one for one in store.unfinished() if one.id != new.id]
    steps = store.steps(new.id)
    assert [(one.number, one.parent) for one in steps] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert steps[3].record == {"preference": "fp <= 3", "met": False}
    assert steps[3].created.tzinfo is UTC
    [accepted] = store.acceptances(new.id)
    assert (accepted.number, accepted.step, accepted.record) == (1, 3, {"route": "set"})
    assert store.acceptance_piece(new.id, 1) == b"model"
    pieces = store.pieces(new.id)
    assert (pieces.base, pieces.position, pieces.undone) == (b"base", 3, ())
    assert pieces.steps[0].piece == b"start"
    assert [(one.parent, one.piece) for one in pieces.steps[1:]] == [
        (parent, store_children.piece(number)) for number, parent in [(1, 0), (2, 1), (3, 1)]
    ]
    [accepted] = pieces.acceptances
    assert (accepted.step, accepted.record, accepted.piece) == (3, {"route": "set"}, b"model")
    assert pieces.accounts == [{"used": [0.05, 0.1]}]


def test_dialogs_are_listed_newest_first_with_where_they_stand(store, owner):
    first, second = ready(store, owner, "first"), ready(store, owner, "second")
    third = store.add_dialog(owner, "third", None, {}).id
    step(store, first, 1)
    step(store, first, 2)
    store.set_position(first, 1, [2])
    rows = store.dialogs(owner)
    assert [row.id for row in rows] == [first, third, second]
    assert [(row.n_steps, row.preference, row.met) for row in rows] == [
        (3, "fp <= 1", False),
        (0, None, None),
        (1, None, None),
    ]
    assert rows == [store.dialog(owner, row.id) for row in rows]


def test_a_list_takes_one_question_and_reads_no_piece(store, owner):
    for _ in range(5):
        step(store, ready(store, owner), 1)
    asked = []

    def note(connection, cursor, statement, *rest):
        asked.append(statement)

    event.listen(store._engine, "before_cursor_execute", note)
    try:
        assert len(store.dialogs(owner)) == 5
    finally:
        event.remove(store._engine, "before_cursor_execute", note)
    [question] = [statement for statement in asked if statement != "BEGIN"]
    assert "piece" not in question
    assert "record" not in question


def test_a_dialog_goes_with_all_that_belongs_to_it(store, owner):
    gone, kept = ready(store, owner), ready(store, owner)
    for one in (gone, kept):
        step(store, one, 1)
        store.add_acceptance(one, 1, 1, {}, b"model", [])
    # More in a row than SQLite cascades one after another.
    row = {"dialog_id": gone, "record": {}, "piece": b"", "created": datetime.now(UTC)}
    with store._writer.begin() as connection:
        connection.execute(
            insert(Step), [row | {"number": i, "parent": i - 1} for i in range(2, 1500)]
        )
    store.delete_dialog(owner, gone)
    assert "dialog" in message(NotFound, store.steps, gone)
    with store._reader.connect() as connection:
        for table in ("bases", "steps", "acceptances"):
            left = connection.execute(
                text(f"SELECT count(*) FROM {table} WHERE dialog_id = :gone"),  # noqa: S608
                {"gone": gone},
            )
            assert left.scalar_one() == 0
    assert len(store.pieces(kept).steps) == 2


def test_to_stand_where_it_stands_is_no_change(store, owner):
    dialog = ready(store, owner)
    step(store, dialog, 1)
    before = store.dialog(owner, dialog)
    assert store.set_position(dialog, 1, []) == before.revision
    assert store.dialog(owner, dialog) == before
    assert store.set_position(dialog, 1, [1]) == before.revision + 1


# What is refused


def test_what_is_another_users_is_not_there(store, owner):
    table, dialog = store.add_table(owner, "mails.csv", {}, b"rows"), ready(store, owner)
    other = new_user(store)
    assert store.dialogs(other) == []
    before = store.dialog(owner, dialog)
    for who, which, what in [(other, table.id, dialog), (owner, "x", "x"), (owner, "\0", "\ud800")]:
        said = [
            message(NotFound, store.table, who, which),
            message(NotFound, store.table_data, who, which),
            message(NotFound, store.add_dialog, who, "Ham", which, {}),
        ]
        assert all("table" in one for one in said)
        said = [
            message(NotFound, store.dialog, who, what),
            message(NotFound, store.rename, who, what, "Ham"),
            message(NotFound, store.delete_dialog, who, what),
        ]
        assert all("dialog" in one for one in said)
    assert store.dialog(owner, dialog) == before
    assert len(store.dialogs(owner)) == 1


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("set_state", ("failed", "why")),
        ("set_ready", (b"", {}, {}, b"")),
        ("steps", ()),
        ("add_step", (1, 0, {}, b"")),
        ("set_position", (0, [])),
        ("acceptances", ()),
        ("add_acceptance", (1, 0, {}, b"", [])),
        ("set_accounts", ([],)),
        ("pieces", ()),
    ],
)
def test_an_unknown_dialog_is_told(store, name, args):
    more = {"position": 1, "undone": []} if name == "add_step" else {}
    assert "dialog" in message(NotFound, getattr(store, name), "unknown", *args, **more)


def test_an_unknown_user_has_nothing(store):
    said = [
        message(NotFound, store.add_table, "nobody", "mails.csv", {}, b""),
        message(NotFound, store.add_dialog, "nobody", "Spam", None, {}),
    ]
    assert all("user" in one for one in said)
    assert store.dialogs("nobody") == []


def test_a_number_is_taken_once_and_what_it_rests_on_is_there(store, owner):
    dialog = ready(store, owner)
    step(store, dialog, 1)
    store.add_acceptance(dialog, 1, 1, {}, b"model", [])
    before = store.dialog(owner, dialog)
    said = [
        message(Conflict, step, store, dialog, 1),
        message(Conflict, step, store, dialog, 2, parent=7),
        message(Conflict, step, store, dialog, 2, parent=2),
        message(Conflict, step, store, dialog, 2, position=8),
        message(Conflict, store.set_position, dialog, 9, []),
        message(Conflict, store.add_acceptance, dialog, 2, 9, {}, b"", []),
        message(Conflict, store.add_acceptance, dialog, 1, 1, {}, b"", [{}]),
        message(Conflict, store.set_ready, dialog, b"", {}, {}, b""),
    ]
    assert [re.findall(r"\d+", one) for one in said] == [[n] for n in "17289910"]
    assert store.dialog(owner, dialog) == before
    assert len(store.steps(dialog)) == 2
    assert "acceptance" in message(NotFound, store.acceptance_piece, dialog, 2)


def test_a_dialog_in_training_has_no_pieces(store, owner):
    dialog = store.add_dialog(owner, "Spam", None, {}).id
    message(Conflict, store.pieces, dialog)
    assert "0" in message(Conflict, store.set_position, dialog, 0, [])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b""])
def test_records_are_json_on_both(store, owner, value):
    dialog = ready(store, owner)
    said = message(StoreError, store.set_accounts, dialog, [{"delta": value}])
    assert "JSON" in said
    assert type(value).__name__ in said
    assert store.dialog(owner, dialog).accounts == []


def test_a_number_that_no_column_holds_is_told(store, owner):
    dialog = ready(store, owner)
    with pytest.raises(StoreError):
        store.add_step(dialog, 2**70, 0, {}, b"", position=0, undone=[])
    assert store.dialog(owner, dialog).n_steps == 1


def test_what_is_too_large_is_told(store, owner, monkeypatch):
    monkeypatch.setattr(store, "_largest", 100)
    assert store.add_table(owner, "mails.csv", {}, bytes(100)).size == 100
    large = bytes(101)
    dialog = store.add_dialog(owner, "Spam", None, {}).id
    stands = {"position": 1, "undone": []}
    said = [
        message(StoreError, store.add_table, owner, "mails.csv", {}, large),
        message(StoreError, store.set_ready, dialog, large, {}, {}, b""),
        message(StoreError, store.set_ready, dialog, b"", {}, {}, large),
        message(StoreError, store.add_step, dialog, 1, 0, {}, large, **stands),
        message(StoreError, store.add_acceptance, dialog, 1, 0, {}, large, []),
    ]
    assert all("101" in one and "100" in one for one in said)


def test_a_piece_of_some_size_comes_back(store, owner):
    data = os.urandom(1 << 20) * 8
    assert store.table_data(owner, store.add_table(owner, "large", {}, data).id) == data


# Several at once


def test_of_several_threads_one_takes_a_number(store, owner):
    dialog, n_steps, n_threads = ready(store, owner), 10, 12
    start = threading.Barrier(n_threads, timeout=60)

    def race(_):
        start.wait()
        won = []
        for number in range(1, n_steps + 1):
            try:
                step(store, dialog, number)
                won.append(number)
            except Conflict as conflict:
                assert re.findall(r"\d+", str(conflict)) == [str(number)]  # noqa: PT017
        return won

    with ThreadPoolExecutor(n_threads) as pool:
        won = list(pool.map(race, range(n_threads)))
    assert sorted(itertools.chain(*won)) == list(range(1, n_steps + 1))
    row = store.dialog(owner, dialog)
    assert (row.n_steps, row.revision) == (n_steps + 1, n_steps + 1)


def test_many_threads_write_and_read_each_their_own(store):
    n_threads, n_steps = 20, 5

    def work(_):
        owner = new_user(store)
        dialog = ready(store, owner)
        for number in range(1, n_steps + 1):
            step(store, dialog, number)
            [row] = store.dialogs(owner)
            assert (row.n_steps, row.preference) == (number + 1, f"fp <= {number}")
        return len(store.pieces(dialog).steps)

    with ThreadPoolExecutor(n_threads) as pool:
        assert list(pool.map(work, range(n_threads))) == [n_steps + 1] * n_threads


def test_the_same_user_may_come_twice_at_once(store):
    key, start = f"user {next(counter)}", threading.Barrier(8, timeout=60)

    def come(_):
        start.wait()
        store.add_user(key)
        return store.has_user(key)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(come, range(8)))


# Against a model of it in plain dictionaries

WORDS = st.text('a\0"\\é\U0001f600', max_size=4)  # what one database or the other may find hard
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=4,
)
OBJECTS = st.dictionaries(WORDS, JSON | WORDS, max_size=2)
RECORDS = st.fixed_dictionaries(
    {"preference": st.none() | WORDS, "met": st.none() | st.booleans()},
    optional={"more": OBJECTS},
)
PIECES = st.binary(max_size=20)


class Comparison(RuleBasedStateMachine):
    """Dialogs of one user in the store, and in a dictionary."""

    store: Store
    ids = Bundle("ids")

    @initialize()
    def begin(self):
        self.owner = new_user(self.store)
        self.model = {}

    @rule(target=ids, title=WORDS, choices=OBJECTS)
    def add(self, title, choices):
        new = self.store.add_dialog(self.owner, title, None, choices)
        kept = {"title": title.replace("\0", "\ufffd"), "choices": choices, "state": "training"}
        kept |= {"error": None, "facts": None, "base": None, "steps": {}, "accepted": {}}
        kept |= {"position": 0, "undone": (), "accounts": [], "revision": 0}
        self.model[new.id] = kept
        return new.id

    def change(self, key, revision, **values):
        self.model[key] |= values
        self.model[key]["revision"] += 1
        assert revision == self.model[key]["revision"]

    @rule(key=ids, title=WORDS)
    def rename(self, key, title):
        revision = self.store.rename(self.owner, key, title)
        self.change(key, revision, title=title.replace("\0", "\ufffd"))

    @rule(key=ids, state=st.sampled_from(["training", "failed"]), error=st.none() | st.just("why"))
    def fail(self, key, state, error):
        self.change(key, self.store.set_state(key, state, error), state=state, error=error)

    @rule(key=ids, base=PIECES, facts=OBJECTS, record=RECORDS, piece=PIECES)
    def make_ready(self, key, base, facts, record, piece):
        try:
            revision = self.store.set_ready(key, base, facts, record, piece)
        except Conflict:
            assert self.model[key]["steps"]
            return
        start = {0: (0, record, piece)}
        stands = {"position": 0, "undone": (), "state": "ready", "error": None}
        self.change(key, revision, base=base, facts=facts, steps=start, **stands)

    @rule(key=ids, parent=st.integers(0, 4), record=RECORDS, piece=PIECES, again=st.booleans())
    def add_step(self, key, parent, record, piece, again):
        steps = self.model[key]["steps"]
        number = len(steps) - again
        try:
            stands = {"position": number, "undone": []}
            revision = self.store.add_step(key, number, parent, record, piece, **stands)
        except Conflict:
            assert number in steps or parent not in steps
            return
        steps[number] = (parent, record, piece)
        self.change(key, revision, position=number, undone=())

    @rule(key=ids, position=st.integers(0, 4), undone=st.lists(st.integers(0, 4), max_size=3))
    def move(self, key, position, undone):
        kept = self.model[key]
        try:
            revision = self.store.set_position(key, position, undone)
        except Conflict:
            assert position not in kept["steps"]
            return
        if (position, tuple(undone)) == (kept["position"], kept["undone"]):
            assert revision == kept["revision"]
            return
        self.change(key, revision, position=position, undone=tuple(undone))

    @rule(key=ids, at=st.integers(0, 4), number=st.integers(1, 3), record=RECORDS, piece=PIECES)
    def accept(self, key, at, number, record, piece):
        kept = self.model[key]
        try:
            accounts = [{"used": [number / 10]}]
            revision = self.store.add_acceptance(key, number, at, record, piece, accounts)
        except Conflict:
            assert number in kept["accepted"] or at not in kept["steps"]
            return
        kept["accepted"][number] = (at, record, piece)
        self.change(key, revision, accounts=accounts)

    @rule(key=consumes(ids))
    def delete(self, key):
        self.store.delete_dialog(self.owner, key)
        del self.model[key]
        assert "dialog" in message(NotFound, self.store.pieces, key)

    @rule(key=ids)
    def read_all(self, key):
        kept = self.model[key]
        if kept["base"] is None:
            message(Conflict, self.store.pieces, key)
            return
        pieces = self.store.pieces(key)
        records = {one.number: one.record for one in self.store.steps(key)}
        assert kept["steps"] == {
            one.number: (one.parent, records[one.number], one.piece) for one in pieces.steps
        }
        assert kept["accepted"] == {
            one.number: (one.step, one.record, one.piece) for one in pieces.acceptances
        }
        assert [one.record for one in self.store.acceptances(key)] == [
            one.record for one in pieces.acceptances
        ]
        assert (pieces.base, pieces.accounts) == (kept["base"], kept["accounts"])
        assert (pieces.position, pieces.undone) == (kept["position"], kept["undone"])

    @invariant()
    def lists_are_the_same(self):
        rows = self.store.dialogs(self.owner)
        assert {row.id for row in rows} == set(self.model)
        assert [row.updated for row in rows] == sorted((row.updated for row in rows), reverse=True)
        for row in rows:
            kept = self.model[row.id]
            names = ("title", "choices", "state", "error", "facts", "position", "undone")
            for name in (*names, "accounts", "revision"):
                assert getattr(row, name) == kept[name]
            assert (row.n_steps, row.n_accepted) == (len(kept["steps"]), len(kept["accepted"]))
            _, record, _ = kept["steps"].get(kept["position"], (0, {}, b""))
            asked = record.get("preference")
            assert row.preference == (None if asked is None else asked.replace("\0", "\ufffd"))
            assert row.met == record.get("met")


def test_it_is_what_plain_dictionaries_are(store):
    short = settings(
        few(8),
        stateful_step_count=20,
        suppress_health_check=[HealthCheck.too_slow],  # which a busy machine is
    )
    machine = type("Machine", (Comparison,), {"store": store})
    run_state_machine_as_test(machine, settings=short)
