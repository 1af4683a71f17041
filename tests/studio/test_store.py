"""The store on both databases: what comes back, what is durable, and what is refused."""

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, assume, settings
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
from sqlalchemy.orm.exc import DetachedInstanceError
from tests.examples import few
from tests.studio import postgres
from tests.studio.store_children import add_step, add_trained, new_step, piece, record, values

from margrave.studio.job_table import JobTable
from margrave.studio.store import (
    AcceptanceRow,
    Conflict,
    Ended,
    Lost,
    NotFound,
    StepRow,
    Store,
    StoreError,
)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)]
)
def url(request, tmp_path_factory):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('store')}/studio.sqlite3"
        return
    programs = request.getfixturevalue("need")("postgresql")
    with postgres.running(programs) as server, postgres.database(server) as url:
        yield url


@pytest.fixture(scope="module")
def store(url):
    """An open store that all tests share; each has users of its own."""
    with Store(url) as store:
        yield store


counter = itertools.count()
MODEL = {"route": "set", "useless": ["it predicts spam for none of 9 samples of spam"]}


def new_user(store):
    key = f"user {next(counter)}"
    store.add_user(key)
    return key


@pytest.fixture
def owner(store):
    return new_user(store)


def new_model(number, step, piece=b"model"):
    return AcceptanceRow(number=number, step=step, record=MODEL, piece=piece)


def everything(store, owner):
    """All that a user's dialogs have, as plain data."""
    found = {}
    for dialog in store.dialogs(owner):
        parts = store.pieces(dialog.id)
        rows = [*parts.steps, *parts.acceptances, parts.dialog]
        found[dialog.id] = (values(dialog), parts.base, [values(row) for row in rows])
    return found


def message(kind, action, *args, **kwargs):
    with pytest.raises(StoreError) as caught:
        action(*args, **kwargs)
    assert type(caught.value) is kind
    return str(caught.value)


def race(n_threads, action):
    """Call `action(i)` in several threads at once; return what it returns, or None if refused."""
    start = threading.Barrier(n_threads, timeout=60)

    def run(i):
        start.wait()
        try:
            return action(i)
        except Conflict:
            return None

    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(run, range(n_threads)))


# What comes back


def test_users_are_known_by_their_keys(store):
    key = new_user(store)
    store.add_user(key)
    assert store.has_user(key)
    assert not store.has_user("nobody")
    assert not store.has_user("no\0body\ud800")


def test_a_table_comes_back(store, owner):
    before = datetime.now(UTC)
    facts = {"rows": 3, "x": [1.5, None, "é\0\ud800"]}
    row = store.add_table(owner, "a\0b.csv", facts, b"\0PAR1")
    assert values(row) == values(store.table(owner, row.id))
    assert (row.owner, row.name, row.size) == (owner, "a\ufffdb.csv", 5)
    assert row.facts == facts
    assert row.created.tzinfo is UTC
    assert before <= row.created <= datetime.now(UTC)
    assert store.table_data(owner, row.id) == b"\0PAR1"


def test_tables_that_no_dialog_uses_can_be_deleted(store, owner):
    used, unused = (store.add_table(owner, name, {}, b"") for name in "ab")
    dialog = store.add_dialog(owner, "Spam", used.id, {})
    assert store.delete_unused_tables(unused.created - timedelta(days=1)) == 0
    store.delete_unused_tables(datetime.now(UTC) + timedelta(days=1))
    assert values(store.table(owner, used.id)) == values(used)
    assert "table" in message(NotFound, store.table, owner, unused.id)
    assert store.dialog(owner, dialog.id).table_name == "a"


def test_a_dialog_from_its_beginning_to_an_accepted_model(store, owner):
    table = store.add_table(owner, "mails.csv", {}, b"rows")
    new = store.add_dialog(owner, "Spam", table.id, {"kind": "committee"})
    assert (new.state, new.position, new.revision, new.refused) == ("training", 0, 0, [])
    assert (new.table_id, new.table_name) == (table.id, "mails.csv")
    assert (new.facts, new.error) == (None, None)

    assert store.change(new.id, state="failed", error="No member learned anything.") == 1
    assert store.dialog(owner, new.id).error == "No member learned anything."
    ready = {"state": "ready", "error": None, "facts": {"n": 279}}
    assert add_step(store, new.id, 0, base=b"base", **ready) == 2
    steps = [new_step(1), new_step(2)]
    assert store.change(new.id, steps=steps, position=1, undone=[2]) == 3
    assert add_step(store, new.id, 3, parent=1, acceptances=[new_model(1, 3)]) == 4
    assert store.change(new.id, refused=[{"used": [0.05, 0.1]}]) == 5

    row = store.dialog(owner, new.id)
    assert row.updated > new.updated
    assert values(row) == values(new) | ready | {
        "position": 3,
        "revision": 5,
        "refused": [{"used": [0.05, 0.1]}],
        "n_steps": 4,
        "n_accepted": 1,
        "n_useless": 1,
        "preference": "fp <= 3",
        "met": False,
        "updated": row.updated,
    }
    steps = store.steps(new.id)
    assert [(one.number, one.parent) for one in steps] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert [one.record for one in steps] == [record(number) for number in range(4)]
    assert steps[3].created.tzinfo is UTC
    [accepted] = store.acceptances(new.id)
    assert (accepted.number, accepted.step, accepted.record) == (1, 3, MODEL)
    assert store.acceptance_piece(new.id, 1) == b"model"

    pieces = store.pieces(new.id)
    assert pieces.base == b"base"
    assert values(pieces.dialog) == values(row)
    assert [one.piece for one in pieces.steps] == [piece(number) for number in range(4)]
    assert [values(one) | {"piece": None} for one in pieces.steps] == [
        values(one) | {"piece": None} for one in steps
    ]
    assert [one.piece for one in pieces.acceptances] == [b"model"]


def test_what_is_known_of_a_dialog_is_not_read_again(store, owner):
    dialog = add_trained(store, owner)
    store.change(
        dialog,
        steps=[new_step(1), new_step(2)],
        acceptances=[new_model(1, 1, b"first"), new_model(2, 2, b"second")],
    )
    pieces = store.pieces(dialog, 2, 1)
    assert pieces.base == b""
    assert [one.piece for one in pieces.steps] == [piece(2)]
    assert [one.piece for one in pieces.acceptances] == [b"second"]
    assert pieces.dialog.revision == 2
    pieces = store.pieces(dialog, 3, 2)
    assert (pieces.steps, pieces.acceptances) == ([], [])


def test_dialogs_are_listed_newest_first_with_their_current_step(store, owner):
    first, second = (add_trained(store, owner, title) for title in ("first", "second"))
    third = store.add_dialog(owner, "third", None, {}).id
    store.change(first, steps=[new_step(1), new_step(2)], position=1, undone=[2])
    rows = store.dialogs(owner)
    assert [row.id for row in rows] == [first, third, second]
    assert [(row.n_steps, row.preference, row.met) for row in rows] == [
        (3, "fp <= 1", False),
        (0, None, None),
        (1, "fp <= 0", True),
    ]
    assert [values(row) for row in rows] == [values(store.dialog(owner, row.id)) for row in rows]


def test_a_list_takes_one_query_and_reads_no_piece(store, owner):
    for _ in range(5):
        add_step(store, add_trained(store, owner), 1)
    sent = []

    def note(connection, cursor, statement, *rest):
        sent.append(statement)

    with store.read() as session:
        reader = session.get_bind()
    event.listen(reader, "before_cursor_execute", note)
    try:
        assert len(store.dialogs(owner)) == 5
    finally:
        event.remove(reader, "before_cursor_execute", note)
    [query] = [statement for statement in sent if statement.startswith("SELECT")]
    assert "piece" not in query
    assert "record" not in query


@pytest.mark.parametrize("name", ["steps", "acceptances"])
def test_a_list_has_no_bytes(store, owner, name):
    dialog = add_trained(store, owner)
    store.change(dialog, acceptances=[new_model(1, 0)])
    [row] = getattr(store, name)(dialog)
    with pytest.raises(DetachedInstanceError):
        _ = row.piece


def test_a_dialog_is_deleted_with_all_that_belongs_to_it(store, owner):
    deleted, kept = add_trained(store, owner), add_trained(store, owner)
    jobs = JobTable(store, 10)
    for dialog in (deleted, kept):
        store.change(dialog, steps=[new_step(1)], acceptances=[new_model(1, 1)])
        jobs.add(owner, "prefer", dialog, {})
    # More in a row than SQLite cascades one after another.
    row = {"dialog_id": deleted, "record": {}, "piece": b"", "created": datetime.now(UTC)}
    with store.write() as session:
        session.execute(
            insert(StepRow), [row | {"number": i, "parent": i - 1} for i in range(2, 1500)]
        )
    store.delete_dialog(owner, deleted)
    assert "dialog" in message(NotFound, store.pieces, deleted)
    assert (store.steps(deleted), store.acceptances(deleted)) == ([], [])
    assert jobs.of_dialog(deleted) is None
    assert jobs.of_dialog(kept) is not None
    assert len(store.pieces(kept).steps) == 2
    with store.read() as session:
        bases = session.execute(text("SELECT dialog_id FROM bases")).scalars().all()
    assert (deleted in bases, kept in bases) == (False, True)


def test_a_new_title_is_no_new_revision(store, owner):
    dialog = add_trained(store, owner)
    before = store.dialog(owner, dialog)
    store.rename(owner, dialog, "Ham")
    after = store.dialog(owner, dialog)
    assert values(after) == values(before) | {"title": "Ham", "updated": after.updated}
    assert after.updated > before.updated
    assert store.change(dialog, revision=before.revision) == before.revision + 1


# What is refused


def test_what_belongs_to_another_user_is_not_found(store, owner):
    table, dialog = store.add_table(owner, "mails.csv", {}, b"rows"), add_trained(store, owner)
    other = new_user(store)
    assert store.dialogs(other) == []
    before = everything(store, owner)
    for who, which, what in [(other, table.id, dialog), (owner, "x", "x"), (owner, "\0", "\ud800")]:
        messages = [
            message(NotFound, store.table, who, which),
            message(NotFound, store.table_data, who, which),
            message(NotFound, store.add_dialog, who, "Ham", which, {}),
        ]
        assert all("table" in one for one in messages)
        messages = [
            message(NotFound, store.dialog, who, what),
            message(NotFound, store.rename, who, what, "Ham"),
            message(NotFound, store.delete_dialog, who, what),
        ]
        assert all("dialog" in one for one in messages)
    assert everything(store, owner) == before


def test_an_overview_is_of_one_point_in_time(store, owner):
    dialog = add_trained(store, owner)
    changes = [lambda: store.change(dialog, steps=[new_step(1)], position=1)]

    def change_after(_connection, _cursor, statement, *_):
        if "FROM dialog" in statement and changes:
            changes.pop()()  # another request stores a step between two queries

    with store.read() as session:
        event.listen(session.get_bind(), "after_cursor_execute", change_after)
    seen = store.overview(owner, dialog)
    assert not changes
    assert (seen.dialog.position, len(seen.steps)) == (0, 1)
    later = store.overview(owner, dialog)
    assert (later.dialog.position, len(later.steps)) == (1, 2)


def test_an_unknown_dialog_is_not_found(store):
    messages = [
        message(NotFound, store.pieces, "unknown"),
        message(NotFound, store.change, "unknown", position=1),
        message(NotFound, store.change, "unknown", revision=0),
        message(NotFound, store.change, "unknown", steps=[new_step(0)]),
    ]
    assert all("dialog" in one for one in messages)
    assert "model" in message(NotFound, store.acceptance_piece, "unknown", 1)


def test_an_unknown_user_has_nothing(store):
    messages = [
        message(NotFound, store.add_table, "nobody", "mails.csv", {}, b""),
        message(NotFound, store.add_dialog, "nobody", "Spam", None, {}),
    ]
    assert all("user" in one for one in messages)
    assert store.dialogs("nobody") == []


GOOD = {"position": 2, "undone": [1], "refused": [{}], "state": "failed", "error": "why"}


@pytest.mark.parametrize(
    ("kind", "steps", "models", "more"),
    [
        (Conflict, [(1, 0)], [], {}),  # the number is in use
        (Conflict, [(2, 1), (3, 7)], [], {}),  # there is no such parent
        (Conflict, [(3, 2), (2, 1)], [], {}),  # the parent comes later
        (Conflict, [(2, 1)], [(1, 2)], {}),
        (Conflict, [(2, 1)], [(2, 9)], {}),
        (Conflict, [(2, 1)], [], {"base": b"again"}),
        (Conflict, [(2, 1)], [], {"revision": 1}),
        (Conflict, [(2, 1)], [], {"revision": 3}),
        (Lost, [(2, 1)], [(2, 2)], {"ended": Ended("none", "none", 1, {"state": "done"})}),
        (StoreError, [(2, 1)], [(2**70, 1)], {}),
        (StoreError, [(2, 1)], [], {"facts": {"delta": float("nan")}}),
    ],
)
def test_a_change_is_made_as_a_whole_or_not_at_all(store, owner, kind, steps, models, more):
    dialog = add_trained(store, owner)
    store.change(dialog, steps=[new_step(1)], acceptances=[new_model(1, 1)])
    before = everything(store, owner)
    rows = {"steps": [new_step(*one) for one in steps]}
    rows["acceptances"] = [new_model(*one) for one in models]
    message(kind, store.change, dialog, **rows, **GOOD, **more)
    assert everything(store, owner) == before
    assert store.change(dialog, steps=[new_step(2)], revision=2, **GOOD) == 3


def test_rows_that_were_refused_can_be_stored_later(store, owner):
    dialog = add_trained(store, owner)
    steps, model = [new_step(1), new_step(2)], new_model(1, 2)
    message(Conflict, store.change, dialog, steps=steps, acceptances=[model], revision=0)
    ended = Ended("none", "none", 1, {"state": "done"})
    message(Lost, store.change, dialog, steps=steps, acceptances=[model], ended=ended)
    store.change(dialog, steps=steps, acceptances=[model])
    assert [one.piece for one in store.pieces(dialog).steps] == [piece(i) for i in range(3)]
    assert store.acceptance_piece(dialog, 1) == b"model"


def test_a_job_ends_with_its_changes_unless_another_process_has_it(store, owner):
    dialog, ours, other = add_trained(store, owner), JobTable(store, 10), JobTable(store, 10)
    job_id = ours.add(owner, "prefer", dialog, {}).id
    ended = Ended(job_id, ours.process, 1, {"state": "done", "result": {"step": 1}})

    def refused():
        before, job = everything(store, owner), values(ours.find(owner, job_id))
        message(Lost, store.change, dialog, refused=[{}], ended=ended)
        assert everything(store, owner) == before
        assert values(ours.find(owner, job_id)) == job

    refused()  # it has not begun
    claim(ours, job_id)
    ours.release()
    claim(other, job_id)
    refused()
    other.release()
    claim(ours, job_id)
    assert add_step(store, dialog, 1, ended=ended) == 2
    job = ours.find(owner, job_id)
    assert (job.state, job.result, job.process) == ("done", {"step": 1}, ours.process)
    assert job.finished.tzinfo is UTC
    refused()  # it has ended already


def claim(jobs, job_id):
    """Lease a job; the tests before may have left others."""
    while (job := jobs.claim(False)) is not None and job.id != job_id:
        pass
    assert job is not None


def test_changes_of_a_busy_dialog_can_be_refused(store, owner):
    jobs = JobTable(store, 10)
    dialog, idle = add_trained(store, owner), add_trained(store, owner)
    job = jobs.add(owner, "prefer", dialog, {})
    for begin in (lambda: None, lambda: claim(jobs, job.id)):
        begin()
        before = everything(store, owner)
        message(Conflict, store.change, dialog, idle=True, position=0)
        assert everything(store, owner) == before
        store.change(idle, idle=True)
        store.change(dialog)
    revision = store.dialog(owner, dialog).revision
    store.change(dialog, ended=Ended(job.id, jobs.process, 1, {"state": "cancelled"}))
    assert store.change(dialog, idle=True) == revision + 2


def test_a_dialog_in_training_has_no_pieces(store, owner):
    dialog = store.add_dialog(owner, "Spam", None, {}).id
    message(Conflict, store.pieces, dialog)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b""])
def test_records_are_json_on_both(store, owner, value):
    dialog = add_trained(store, owner)
    refusal = message(StoreError, store.change, dialog, refused=[{"delta": value}])
    assert "JSON" in refusal
    assert type(value).__name__ in refusal
    assert store.dialog(owner, dialog).refused == []


def test_what_is_too_large_is_refused(store, owner, url):
    small = Store(url, largest=2000)
    assert small.add_table(owner, "mails.csv", {}, bytes(2000)).size == 2000
    dialog, large = add_trained(store, owner), bytes(2001)
    before = everything(store, owner)
    step = StepRow(number=1, parent=0, record={}, piece=large)
    model = new_model(1, 0, large)
    messages = [
        message(StoreError, small.add_table, owner, "mails.csv", {}, large),
        message(StoreError, small.change, dialog, base=large),
        message(StoreError, small.change, dialog, steps=[new_step(1), step]),
        message(StoreError, small.change, dialog, steps=[new_step(1)], acceptances=[model]),
    ]
    assert all("2,001" in one and "2,000" in one for one in messages)
    assert everything(store, owner) == before
    small.close()


def test_a_piece_of_some_size_comes_back(store, owner):
    data = os.urandom(1 << 20) * 8
    assert store.table_data(owner, store.add_table(owner, "large", {}, data).id) == data


# Several at once


def test_of_several_threads_one_uses_a_number(store, owner):
    dialog, n_steps = add_trained(store, owner), 10

    def add_all(_):
        added = []
        for number in range(1, n_steps + 1):
            try:
                add_step(store, dialog, number)
                added.append(number)
            except Conflict:
                pass
            pieces = store.pieces(dialog)  # of one point in time
            numbers = [one.number for one in pieces.steps]
            assert numbers == list(range(pieces.dialog.revision))
            assert pieces.dialog.position == numbers[-1]
        return added

    added = race(6, add_all)
    assert sorted(itertools.chain(*added)) == list(range(1, n_steps + 1))


def test_of_several_threads_one_changes_a_revision(store, owner):
    dialog = add_trained(store, owner)
    for revision in range(1, 6):

        def change(i, at=revision):
            return store.change(dialog, revision=at, refused=[{"by": i}])

        won = race(8, change)
        [winner] = [i for i, new in enumerate(won) if new is not None]
        assert won[winner] == revision + 1
        row = store.dialog(owner, dialog)
        assert (row.revision, row.refused) == (revision + 1, [{"by": winner}])


def test_many_threads_write_and_read_each_their_own(store):
    n_steps = 5

    def work(_):
        owner = new_user(store)
        dialog = add_trained(store, owner)
        for number in range(1, n_steps + 1):
            add_step(store, dialog, number)
            [row] = store.dialogs(owner)
            assert (row.n_steps, row.preference) == (number + 1, f"fp <= {number}")
        return len(store.pieces(dialog).steps)

    assert race(20, work) == [n_steps + 1] * 20


def test_the_same_user_may_be_added_twice_at_once(store):
    key = f"user {next(counter)}"

    def add(_):
        store.add_user(key)
        return store.has_user(key)

    assert all(race(8, add))


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
BASED_ON = st.sampled_from([None, 0, -1])  # the revision: any, the newest, the one before


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
        row = {"title": title.replace("\0", "\ufffd"), "choices": choices, "state": "training"}
        row |= {"error": None, "facts": None, "position": 0, "undone": [], "refused": []}
        row |= {"revision": 0}
        self.model[new.id] = {"row": row, "base": None, "steps": {}, "models": {}}
        return new.id

    @rule(key=ids, title=WORDS)
    def rename(self, key, title):
        self.store.rename(self.owner, key, title)
        self.model[key]["row"]["title"] = title.replace("\0", "\ufffd")

    @rule(
        key=ids,
        based_on=BASED_ON,
        base=st.none() | PIECES,
        steps=st.lists(st.tuples(st.integers(0, 4), RECORDS, PIECES), max_size=2),
        models=st.lists(
            st.tuples(st.integers(1, 3), st.integers(0, 4), RECORDS, PIECES), max_size=1
        ),
        again=st.booleans(),
        row=st.fixed_dictionaries(
            {},
            optional={
                "state": st.sampled_from(["training", "ready", "failed"]),
                "error": st.none() | WORDS,
                "facts": st.none() | OBJECTS,
                "position": st.integers(0, 4),
                "undone": st.lists(st.integers(0, 4), max_size=3),
                "refused": st.lists(OBJECTS, max_size=2),
            },
        ),
    )
    def change(self, key, based_on, base, steps, models, again, row):
        kept = self.model[key]
        first, revision = max(0, len(kept["steps"]) - again), kept["row"]["revision"]
        new_steps = {first + i: step for i, step in enumerate(steps)}
        assume(all(parent != number or not number for number, (parent, _, _) in new_steps.items()))
        new_models = {number: tuple(model) for number, *model in models}
        changed = {
            "row": kept["row"] | row | {"revision": revision + 1},
            "base": kept["base"] if base is None else base,
            "steps": kept["steps"] | new_steps,
            "models": kept["models"] | new_models,
        }
        is_possible = (
            based_on != -1
            and (base is None or kept["base"] is None)
            and not (new_steps.keys() & kept["steps"].keys())
            and not (new_models.keys() & kept["models"].keys())
            and all(
                parent in kept["steps"] or first <= parent <= number
                for number, (parent, _, _) in new_steps.items()
            )
            and all(step in changed["steps"] for step, _, _ in new_models.values())
        )
        options = {
            "revision": None if based_on is None else revision + based_on,
            "base": base,
            "steps": [
                StepRow(number=number, parent=parent, record=record, piece=piece)
                for number, (parent, record, piece) in new_steps.items()
            ],
            "acceptances": [
                AcceptanceRow(number=number, step=step, record=record, piece=piece)
                for number, (step, record, piece) in new_models.items()
            ],
        }
        if is_possible:
            assert self.store.change(key, **options, **row) == revision + 1
            self.model[key] = changed
        else:
            message(Conflict, self.store.change, key, **options, **row)

    @rule(key=consumes(ids))
    def delete(self, key):
        self.store.delete_dialog(self.owner, key)
        del self.model[key]
        assert "dialog" in message(NotFound, self.store.pieces, key)

    @rule(key=ids, n_steps=st.integers(0, 3), n_accepted=st.integers(0, 2))
    def read_all(self, key, n_steps, n_accepted):
        kept = self.model[key]
        if kept["base"] is None and not n_steps:
            message(Conflict, self.store.pieces, key)
            return
        pieces = self.store.pieces(key, n_steps, n_accepted)
        assert pieces.base == (b"" if n_steps else kept["base"])
        assert {one.number: (one.parent, one.record, one.piece) for one in pieces.steps} == {
            number: step for number, step in kept["steps"].items() if number >= n_steps
        }
        assert {one.number: (one.step, one.record, one.piece) for one in pieces.acceptances} == {
            number: model for number, model in kept["models"].items() if number > n_accepted
        }
        assert values(pieces.dialog) == values(self.store.dialog(self.owner, key))

    @invariant()
    def lists_are_the_same(self):
        rows = self.store.dialogs(self.owner)
        assert {row.id for row in rows} == set(self.model)
        assert [row.updated for row in rows] == sorted((row.updated for row in rows), reverse=True)
        for row in rows:
            kept = self.model[row.id]
            current = kept["steps"].get(kept["row"]["position"], (0, {}, b""))[1]
            expected = kept["row"] | {
                "n_steps": len(kept["steps"]),
                "n_accepted": len(kept["models"]),
                "preference": current.get("preference"),
                "met": current.get("met"),
            }
            for name in ("error", "preference"):
                expected[name] = expected[name] and expected[name].replace("\0", "\ufffd")
            assert {name: getattr(row, name) for name in expected} == expected


def test_it_is_what_plain_dictionaries_are(store):
    short = settings(
        few(8),
        stateful_step_count=20,
        suppress_health_check=[HealthCheck.too_slow],  # which a busy machine is
    )
    machine = type("Machine", (Comparison,), {"store": store})
    run_state_machine_as_test(machine, settings=short)
