"""Dialogs in memory and in the store are the same: dropped, put together again, after errors."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep

import numpy as np
import pandas as pd
import pytest
from tests.studio.serving import serving

from margrave import datasets
from margrave.app import InputError
from margrave.steer import Dialog, SteeredClassifier
from margrave.studio import exports, work
from margrave.studio.job_table import JobTable
from margrave.studio.jobs import Handle, Jobs
from margrave.studio.store import Conflict, NotFound, StoreError
from margrave.studio.uploads import parquet_of
from margrave.studio.workspace import Workspace

SECONDS = 30
FULL = "The disk is full."


@pytest.fixture(scope="module")
def base():
    """What a small dialog began with."""
    X, y = datasets.load("pima", return_X_y=True, as_frame=True)
    dialog = Dialog.from_data(X, y, committee=["logistic"], positive="pos", random_state=0)
    return dialog.dump_start()


@pytest.fixture
def store(file_store):
    file_store.add_user("local")
    return file_store


@pytest.fixture
def begin(base):
    """`begin(workspace)`: a dialog just trained; its id."""

    def begun(workspace, pinned=False):
        row = workspace.store.add_dialog("local", "one", None, {"kind": "committee"})
        dialog = Dialog.restore(base)
        dialog.ledger = workspace.ledger(row.choices)
        workspace.ready(row.id, dialog, pinned=pinned)
        return row.id

    return begun


def accepted(workspace, dialog_id, **terms):
    """Accept the current model by a job; its row at the end."""
    table = JobTable(workspace.store, waiting=1)
    jobs = Jobs(table, {"accept": partial(work.accept, workspace)}, workers=1)
    jobs.start()
    try:
        return jobs.wait(jobs.submit("local", "accept", dialog_id, terms), SECONDS)
    finally:
        assert jobs.close(SECONDS)


def asked(workspace, dialog_id, *wants):
    """Request some preferences, one after another."""
    with workspace.changing("local", dialog_id) as live:
        for want in wants:
            live.dialog.prefer(want, strategies=["move"])
            workspace.write(dialog_id, live)


def state_of(dialog):
    """Where a dialog stands and how it came there."""
    history = dialog.history
    return (
        [reply.after.counts.tolist() for reply in history],
        [None if reply.preference is None else str(reply.preference) for reply in history],
        list(dialog.parents),
        dialog.position,
        list(dialog.undone),
    )


def in_store(store, dialog_id):
    """The same, as the store has it."""
    row, steps = store.dialog("local", dialog_id), store.steps(dialog_id)
    return (
        [step.record["after"]["counts"] for step in steps],
        [step.record["preference"] for step in steps],
        [step.parent for step in steps],
        row.position,
        list(row.undone),
    )


@contextmanager
def elsewhere(lock):
    """Hold a lock in another thread."""
    taken, free = threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            free.wait(SECONDS)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(SECONDS)
    try:
        yield
    finally:
        free.set()
        thread.join()


# Dropped and put together again


def test_a_dialog_that_was_dropped_comes_back_as_it_was(store, begin):
    workspace = Workspace(store, 1 << 30)
    name = begin(workspace)
    asked(workspace, name, "fp <= 30", "fp <= 20")
    with workspace.changing("local", name) as live:
        live.dialog.goto(1)
        live.dialog.prefer("fn <= 60", strategies=["move"])
        live.dialog.undo()
        workspace.write(name, live)
    before = workspace.live("local", name).dialog
    assert state_of(before) == in_store(store, name)
    assert state_of(before)[2:] == ([0, 0, 1, 1], 1, [3])
    workspace.forget(name)
    assert workspace.n_live == 0
    after = workspace.live("local", name).dialog
    assert after is not before
    assert state_of(after) == state_of(before)
    X = datasets.load("pima", as_frame=True).frame.drop(columns="target")
    for one, other in zip(after.history, before.history, strict=True):
        assert (one.model.predict(X) == other.model.predict(X)).all()
    replies = [dialog.prefer("fp <= 12", strategies=["move"]).after for dialog in (before, after)]
    assert replies[0] == replies[1]


def test_models_and_what_is_left_come_back_too(store, begin):
    workspace = Workspace(store, 1 << 30)
    name = begin(workspace)
    asked(workspace, name, "fp <= 60")
    terms = {"confidence": 0.8, "reserve": True}
    assert accepted(workspace, name, **terms).result == {"accepted": 1}
    before = workspace.live("local", name).dialog
    workspace.forget(name)
    after = workspace.live("local", name).dialog
    assert len(after.certification.uses) == 1
    assert after.certification.uses == before.certification.uses
    (one,), (other,) = before.accepted, after.accepted
    assert (one.step, one.samples) == (other.step, other.samples)
    assert str(one.model.certificate_) == str(other.model.certificate_)
    assert accepted(workspace, name, **terms).result == {"accepted": 1}  # the same


def test_memory_is_bounded_and_the_longest_unused_goes_first(store, begin):
    workspace = Workspace(store, 1 << 30)
    names = [begin(workspace) for _ in range(3)]
    size = workspace.live("local", names[0]).size
    workspace.live_bytes = size * 5 // 2
    assert workspace.n_live == 3
    workspace.live("local", names[1])  # now the order is 2, 0, 1
    with workspace.changing("local", names[1]):
        pass
    assert set(workspace._live) == {names[0], names[1]}
    workspace.live("local", names[2])
    assert set(workspace._live) == {names[1], names[2]}
    workspace.live_bytes = 1
    for name in names * 2:
        workspace.live("local", name)
        assert list(workspace._live) == [name]  # the one in use stays, whatever it takes


def test_a_dialog_at_work_is_not_dropped(store, begin):
    workspace = Workspace(store, 1)
    first = begin(workspace)
    with elsewhere(workspace.live("local", first).lock):
        second = begin(workspace)
        assert set(workspace._live) == {first, second}
    third = begin(workspace)
    assert list(workspace._live) == [third]


def test_a_notebooks_dialog_is_never_dropped(store, begin):
    workspace = Workspace(store, 1)
    own = begin(workspace, pinned=True)
    for _ in range(2):
        begin(workspace)
    assert own in workspace._live
    workspace.forget(own)
    assert own in workspace._live


def test_many_who_ask_at_once_get_the_same_dialog(store, begin):
    workspace = Workspace(store, 1 << 30)
    name = begin(workspace)
    workspace.forget(name)
    found, start = [], threading.Barrier(6)

    def look():
        start.wait(SECONDS)
        found.append(workspace.live("local", name))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len({id(one) for one in found}) == 1


def test_what_is_missing_or_not_trained_is_an_error(store, begin):
    workspace = Workspace(store, 1 << 30)
    name = begin(workspace)
    store.add_user("another")
    with pytest.raises(NotFound, match="dialog"):
        workspace.live("another", name)
    with pytest.raises(NotFound):
        workspace.tuning_frame("another", name)
    row = store.add_dialog("local", "two", None, {"kind": "committee"})
    with pytest.raises(Conflict):
        workspace.live("local", row.id)


class Interrupted(Workspace):
    """A workspace in which others come between, once."""

    def __init__(self, *given):
        super().__init__(*given)
        self.between = None

    def live(self, owner, dialog_id):
        found = super().live(owner, dialog_id)
        between, self.between = self.between, None
        if between is not None:
            between()
        return found


def test_a_change_is_not_lost_if_the_dialog_is_dropped_in_between(store, begin):
    workspace = Interrupted(store, 1)
    name = begin(workspace)
    asked(workspace, name, "fp <= 30")
    other = begin(workspace)

    def dropped_and_loaded():
        workspace.live("local", other)
        workspace.live("local", name)

    workspace.between = dropped_and_loaded
    with workspace.changing("local", name) as live:
        live.dialog.goto(0)
        workspace.write(name, live)
    assert store.dialog("local", name).position == 0
    assert state_of(workspace.live("local", name).dialog) == in_store(store, name)


def test_a_step_is_not_lost_if_the_dialog_is_dropped_in_between(store, begin):
    workspace = Interrupted(store, 1)
    name = begin(workspace)
    other = begin(workspace)

    def dropped_and_loaded():
        workspace.live("local", other)
        workspace.live("local", name)

    workspace.between = dropped_and_loaded
    asked(workspace, name, "fp <= 30")
    asked(workspace, name, "fp <= 20")
    assert in_store(store, name)[1] == [None, "fp <= 30", "fp <= 20"]
    assert state_of(workspace.live("local", name).dialog) == in_store(store, name)


# Tables


def test_tables_are_kept_while_there_is_room_and_each_only_for_its_user(store):
    store.add_user("another")
    frame = pd.DataFrame({"a": np.arange(100), "y": ["x", "z"] * 50})
    size = int(frame.memory_usage(deep=True).sum())
    workspace = Workspace(store, 10 * size)  # a quarter of it is for tables
    names = [
        store.add_table("local", f"{n}.csv", {"rows": 100}, parquet_of(frame.assign(a=n))).id
        for n in range(4)
    ]
    for n, name in enumerate(names):
        assert set(workspace.frame("local", name)["a"]) == {n}
        assert len(workspace._frames) <= 2
    with pytest.raises(NotFound, match="table"):
        workspace.frame("another", names[-1])  # also if it is in memory
    assert set(workspace.frame("local", names[0])["a"]) == {0}
    workspace.live_bytes = 1
    assert len(workspace.frame("local", names[1])) == 100  # the one in use stays
    assert list(workspace._frames) == [names[1]]


def test_a_damaged_table_is_reported_as_damage_of_the_store(store):
    workspace, frame = Workspace(store, 10**6), pd.DataFrame({"a": [1, 2]})
    for data in (b"", b"junk" * 100, parquet_of(frame)[:-1], b"\xff" + parquet_of(frame)[5:]):
        table = store.add_table("local", "t.csv", {"rows": 2}, data)
        with pytest.raises(StoreError) as caught:
            workspace.frame("local", table.id)
        assert caught.value.code == "SQLITE_CORRUPT"


def test_many_who_need_a_table_at_once_load_it_once(store, monkeypatch):
    frame = pd.DataFrame({"a": np.arange(100), "y": ["x", "z"] * 50})
    workspace = Workspace(store, 2**20)
    table = store.add_table("local", "a.csv", {"rows": 100}, parquet_of(frame)).id
    loads, load = [], store.table_data

    def slow(*which):
        loads.append(which)
        sleep(0.2)
        return load(*which)

    monkeypatch.setattr(store, "table_data", slow)
    with ThreadPoolExecutor(8) as pool:
        frames = list(pool.map(lambda _: workspace.frame("local", table), range(16)))
    assert loads == [("local", table)]
    assert all(one is frames[0] for one in frames)


# Errors


def failing(*_, **__):
    raise StoreError(FULL)


def test_a_step_that_cannot_be_stored_was_not_taken(store, begin, monkeypatch):
    workspace = Workspace(store, 1 << 30)
    name = begin(workspace)
    asked(workspace, name, "fp <= 30")
    before = in_store(store, name)
    monkeypatch.setattr(store, "change", failing)
    with pytest.raises(StoreError, match=FULL):
        asked(workspace, name, "fp <= 20")
    monkeypatch.undo()
    assert in_store(store, name) == before
    assert state_of(workspace.live("local", name).dialog) == before
    asked(workspace, name, "fp <= 10")
    assert in_store(store, name)[1] == [None, "fp <= 30", "fp <= 10"]
    assert state_of(workspace.live("local", name).dialog) == in_store(store, name)


def test_a_place_that_cannot_be_stored_was_not_gone_to(store, begin, monkeypatch):
    workspace = Workspace(store, 1 << 30)
    name = begin(workspace)
    asked(workspace, name, "fp <= 30")
    monkeypatch.setattr(store, "change", failing)

    def undo():
        with workspace.changing("local", name) as live:
            live.dialog.undo()
            workspace.write(name, live)

    with pytest.raises(StoreError, match=FULL):
        undo()
    monkeypatch.undo()
    assert state_of(workspace.live("local", name).dialog) == in_store(store, name)
    assert workspace.live("local", name).dialog.position == 1


def test_what_was_not_stored_is_dropped_from_memory(store, begin):
    workspace = Workspace(store, 1 << 30)
    name = begin(workspace)
    asked(workspace, name, "fp <= 30")

    def too_far():
        with workspace.changing("local", name) as live:
            live.dialog.prefer("fp <= 20", strategies=["move"])
            live.dialog.redo()

    with pytest.raises(ValueError, match=r"\bredo\b"):
        too_far()
    assert in_store(store, name)[1] == [None, "fp <= 30"]
    assert state_of(workspace.live("local", name).dialog) == in_store(store, name)


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("workspace")) as made:
        made[1].ok("/openapi.json")  # all routes are there before anything is trained
        yield made


@pytest.fixture
def served(studio):
    """A studio behind HTTP, its user, and a dialog with one step."""
    name = studio[1].dialog("pima", members=["logistic"])
    studio[1].asked(name, "fp <= 60", strategies=["move"])
    return *studio, name


def memory(studio, name):
    return studio.workspace.live("local", name.removeprefix("/dialogs/")).dialog


def test_a_dialog_in_memory_does_not_hold_its_whole_table(served):
    studio, _, name = served
    assert not isinstance(memory(studio, name).tuning_samples(), pd.DataFrame)  # but encoded


def test_the_message_of_a_store_that_fails_is_passed_on(served, monkeypatch):
    studio, client, name = served
    monkeypatch.setattr(studio.store, "change", failing)
    answer = client.post(f"{name}/undo")
    assert (answer.status_code, answer.json()["error"]) == (503, FULL)
    monkeypatch.undo()
    assert client.ok(name)["position"] == memory(studio, name).position == 1
    monkeypatch.setattr(studio.store, "overview", failing)
    assert client.get(name).json()["error"] == FULL


def test_what_was_not_stored_is_not_accepted(served, monkeypatch):
    studio, client, name = served
    monkeypatch.setattr(studio.store, "change", failing)
    last = client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))
    assert last["state"] == "failed"
    monkeypatch.undo()
    assert client.ok(name)["accepted"] == []
    assert memory(studio, name).accepted == ()
    again = client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))
    assert again["result"] == {"accepted": 1}
    assert [one["number"] for one in client.ok(name)["accepted"]] == [1]


def test_a_model_that_cannot_be_written_is_not_accepted(served, monkeypatch):
    studio, client, name = served

    def broken(_):
        raise ValueError("not now")

    monkeypatch.setattr(SteeredClassifier, "to_bytes", broken)
    assert client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))["state"] == "failed"
    monkeypatch.undo()
    again = client.finished(client.post(f"{name}/accept", {"confidence": 0.8}))
    assert again["state"] == "done"
    record = client.ok(name)
    assert len(record["accepted"]) == len(memory(studio, name).accepted) == 1
    assert record["used_up"]


def test_a_job_tells_why_the_store_failed(served, monkeypatch):
    studio, client, name = served
    monkeypatch.setattr(studio.store, "change", failing)
    body = {"wants": ["fp <= 20"], "strategies": ["move"]}
    last = client.finished(client.post(f"{name}/prefer", body))
    assert (last["state"], last["error"]) == ("failed", FULL)


# Several processes


def test_what_another_process_stores_is_seen_at_once(store, begin):
    """Steps and positions are added to the dialog in memory; it is not loaded again."""
    one, other = Workspace(store, 1 << 30), Workspace(store, 1 << 30)
    name = begin(one)
    asked(other, name, "fp <= 30")
    dialogs = [workspace.live("local", name).dialog for workspace in (one, other)]
    for workspace, want in [(one, "fp <= 25"), (other, "fp <= 20"), (one, "fp <= 15")]:
        asked(workspace, name, want)
    with other.changing("local", name) as live:
        live.dialog.undo()
        live.dialog.undo()
        other.write(name, live)
    for workspace, dialog in zip((one, other), dialogs, strict=True):
        assert workspace.live("local", name).dialog is dialog
        assert state_of(dialog) == in_store(store, name)
    assert in_store(store, name)[3:] == (2, [4, 3])
    assert accepted(one, name, confidence=0.8, reserve=False).result == {"accepted": 1}
    assert len(other.live("local", name).dialog.accepted) == 1
    asked(other, name, "fp <= 10")
    refused = accepted(other, name, confidence=0.8, reserve=False)
    assert (refused.state, refused.code) == ("failed", "used_up")


def test_of_two_changes_based_on_the_same_revision_one_is_refused(store, begin):
    one, other = Workspace(store, 1 << 30), Workspace(store, 1 << 30)
    name = begin(one)

    def both():
        with one.changing("local", name) as live:
            live.dialog.prefer("fp <= 30", strategies=["move"])
            asked(other, name, "fp <= 20")
            one.write(name, live)

    with pytest.raises(Conflict):
        both()
    assert in_store(store, name)[1] == [None, "fp <= 20"]
    assert state_of(one.live("local", name).dialog) == in_store(store, name)


# Ended and begun again


@pytest.fixture
def until_stopped(monkeypatch):
    """Work waits until it is requested to stop; an event says that it does."""
    reached = threading.Event()

    def waiting(self, *_):
        reached.set()
        until = monotonic() + SECONDS
        while not self.stopped():
            assert monotonic() < until
            sleep(0.01)

    monkeypatch.setattr(Handle, "progress", waiting)
    return reached


@pytest.mark.parametrize("cancelled", [False, True])
def test_training_continues_after_a_polite_end_unless_it_was_cancelled(
    tmp_path, until_stopped, monkeypatch, cancelled
):
    with serving(tmp_path) as (studio, client):
        body = {"table": client.table("iris"), "target": "target", "members": ["logistic"]}
        begun = client.ok("/dialogs", body)
        assert until_stopped.wait(SECONDS)
        if cancelled:
            client.ok(f"/jobs/{begun['job']['id']}/cancel", {})
    monkeypatch.undo()
    with serving(tmp_path) as (studio, client):
        jobs = studio.jobs
        job = jobs.wait(jobs.table.find("local", begun["job"]["id"]), SECONDS)
        assert job.state == ("cancelled" if cancelled else "done")
        assert client.ok(f"/dialogs/{begun['dialog']['id']}")["state"] == (
            "failed" if cancelled else "ready"
        )


# A notebook's


def test_what_is_done_in_a_notebook_is_in_the_store_when_it_is_looked_at(store, begin):
    workspace = Workspace(store, 1 << 30)
    name = begin(workspace, pinned=True)
    dialog = workspace.live("local", name).dialog
    dialog.prefer("fp <= 30", strategies=["move"])
    dialog.prefer("fp <= 20", strategies=["move"])
    dialog.undo()
    workspace.catch_up("local", name)
    assert in_store(store, name) == state_of(dialog)
    assert in_store(store, name)[3:] == (1, [2])
    store.add_user("another")
    with pytest.raises(NotFound):
        workspace.catch_up("another", name)


def test_a_dialog_with_a_past_is_adopted_with_it(store, base):
    workspace = Workspace(store, 1)
    dialog = Dialog.restore(base)
    dialog.prefer("fp <= 30", strategies=["move"])
    dialog.goto(0)
    dialog.prefer("fn <= 60", strategies=["move"])
    name = workspace.adopt("local", "mine", dialog)
    assert in_store(store, name) == state_of(dialog)
    assert workspace.live("local", name).dialog is dialog
    frame = workspace.tuning_frame("local", name)
    assert len(frame) == dialog.confusion.n
    assert np.array_equal(frame.index, dialog.rows().at)


def test_what_was_accepted_in_a_notebook_is_adopted_too(store, base):
    workspace = Workspace(store, 1)
    dialog = Dialog.restore(base)
    dialog.prefer("fp <= 60", strategies=["move"])
    dialog.accept(confidence=0.8)
    name = workspace.adopt("local", "mine", dialog)
    workspace.catch_up("local", name)
    assert [one.number for one in store.acceptances(name)] == [1]
    assert workspace.account(store.dialog("local", name)).used_up


def test_a_dialog_without_a_table_has_no_report_and_no_script(store, begin):
    workspace = Workspace(store, 1 << 30)
    dialog_id = begin(workspace)
    row = store.dialog("local", dialog_id)
    for make in (
        lambda: exports.report(workspace, "local", row, {"id": dialog_id}),
        lambda: exports.script(store, "local", {"id": dialog_id}),
    ):
        with pytest.raises(InputError) as error:
            make()
        assert (error.value.code, error.value.fields["parameter"]) == ("missing", "data")
