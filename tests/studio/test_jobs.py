"""Jobs: turns between users, leases of processes, limits, ends, and what listeners get."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update
from tests.studio import postgres

from margrave.steer import StoppedError
from margrave.studio import jobs as jobs_module
from margrave.studio.job_table import ATTEMPTS, CANCELLED, KEPT, TRAIN, JobTable, TooMany, in_turns
from margrave.studio.jobs import Closed, Jobs
from margrave.studio.problems import WENT_WRONG
from margrave.studio.store import (
    Conflict,
    Ended,
    JobRow,
    Lost,
    NotFound,
    StepRow,
    Store,
    StoreError,
)

LONG = 60.0  # seconds; only a bug waits as long
STOPPED = StoppedError("The training was stopped.", code="stopped", done=1, total=2)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def store(request):
    """An open store with the users ann and bob."""
    if request.param == "sqlite":
        yield request.getfixturevalue("file")
        return
    with postgres.database(request.getfixturevalue("server")) as url, Store(url) as opened:
        yield with_users(opened)


@pytest.fixture
def file(file_store):
    """The same, only as an SQLite file: what is tested is not the database."""
    return with_users(file_store)


def with_users(store):
    for user in ("ann", "bob"):
        store.add_user(user)
    return store


def new_dialog(store, owner="ann"):
    """The id of a dialog that was trained."""
    dialog = store.add_dialog(owner, "one", None, {"kind": "committee"})
    store.change(dialog.id, state="ready", steps=[step(0)])
    return dialog.id


def step(number):
    record = {"preference": None, "met": None}
    return StepRow(number=number, parent=max(0, number - 1), record=record, piece=b"")


def add(table, owner="ann", kind="prefer", dialog=None, **arguments):
    return table.add(owner, kind, dialog or new_dialog(table.store, owner), arguments)


def found(table, job):
    return table.find(job.owner, job.id)


def done(job, table):
    """The end of a job that this process has leased."""
    attempts = found(table, job).attempts
    return Ended(job.id, table.process, attempts, {"state": "done", "result": {"step": 1}})


# Turns


OWNERS = st.lists(st.sampled_from("abcd"), max_size=20)
MOMENTS = st.dictionaries(
    st.sampled_from("abcd"),
    st.integers(0, 100).map(lambda s: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s)),
)


def as_jobs(owners):
    return [(f"{number}", owner) for number, owner in enumerate(owners)]


class TestTurns:
    @given(OWNERS, st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3)), MOMENTS)
    def test_every_job_starts_and_a_users_jobs_keep_their_order(self, owners, running, started):
        order = in_turns(as_jobs(owners), running, started)
        assert sorted(order) == sorted(job for job, _ in as_jobs(owners))
        for owner in set(owners):
            mine = [int(job) for job in order if owners[int(job)] == owner]
            assert mine == sorted(mine)

    @given(OWNERS, MOMENTS)
    def test_between_two_starts_of_a_user_all_others_who_wait_start(self, owners, started):
        starts = [owners[int(job)] for job in in_turns(as_jobs(owners), {}, started)]
        left = Counter(starts)
        for at, owner in enumerate(starts):
            left[owner] -= 1
            if left[owner]:
                again = starts.index(owner, at + 1)
                waiting = {other for other, n in left.items() if n and other != owner}
                assert waiting <= set(starts[at + 1 : again])

    @given(OWNERS, MOMENTS)
    def test_the_first_is_of_the_user_who_has_waited_longest(self, owners, started):
        for owner in set(owners):
            first = in_turns(as_jobs(owners), {o: 1 for o in owners if o != owner}, started)[0]
            assert owners[int(first)] == owner  # who has no running job
        if owners:
            first = owners[int(in_turns(as_jobs(owners), {}, started)[0])]
            never = [owner for owner in owners if owner not in started]
            longest = never[0] if never else min(set(owners), key=started.__getitem__)
            assert first == longest or started.get(first) == started.get(longest)

    def test_fifty_jobs_do_not_delay_the_first_of_another(self):
        owners = ["ann"] * 50 + ["bob"]
        assert in_turns(as_jobs(owners), {"ann": 1}, {})[0] == "50"

    def test_users_take_turns_in_the_store(self, store):
        table = JobTable(store, waiting=50)
        dialogs = {user: [new_dialog(store, user) for _ in range(4)] for user in ("ann", "bob")}
        jobs = [table.add("ann", "prefer", dialog, {}) for dialog in dialogs["ann"]]
        jobs += [table.add("bob", "prefer", dialog, {}) for dialog in dialogs["bob"][:2]]
        assert [table.ahead(job) for job in jobs] == [0, 2, 4, 5, 1, 3]
        starts = []
        for _ in jobs:
            job = table.claim(training=False)
            starts.append(job.owner)
            store.change(job.dialog_id, ended=done(job, table))
        assert starts == ["ann", "bob", "ann", "bob", "ann", "ann"]
        assert table.claim(training=False) is None

    def test_training_has_a_line_of_its_own(self, store):
        table = JobTable(store, waiting=1)
        search = add(table)
        _, training = table.begin("ann", "two", None, {"kind": "committee"})
        assert table.ahead(training) == table.ahead(search) == 0
        assert table.claim(training=True).id == training.id
        assert table.claim(training=True) is None
        assert table.claim(training=False).id == search.id


# The jobs in the store


class TestTable:
    def test_a_dialog_has_one_unfinished_job(self, store):
        table = JobTable(store, waiting=5)
        dialog = new_dialog(store)
        job = add(table, dialog=dialog)
        for _ in range(2):  # while it waits, and while it runs
            assert table.of_dialog(dialog).id == job.id
            with pytest.raises(Conflict):
                add(table, dialog=dialog)
            with pytest.raises(Conflict):
                store.change(dialog, idle=True, position=0)
            table.claim(training=False)
        store.change(dialog, ended=done(job, table))
        assert table.of_dialog(dialog) is None
        assert add(table, dialog=dialog).id != job.id

    def test_only_the_owner_finds_a_job(self, store):
        table = JobTable(store, waiting=5)
        job = add(table, wants=["fp <= 5"])
        assert found(table, job).arguments == {"wants": ["fp <= 5"]}
        assert len(job.id) >= 22  # 128 bits: nobody guesses it
        for owner, name in (("bob", job.id), ("ann", "x"), ("ann", "")):
            with pytest.raises(NotFound):
                table.find(owner, name)
        with pytest.raises(NotFound):
            table.add("bob", "prefer", job.dialog_id, {})

    def test_too_many_waiting(self, store):
        table = JobTable(store, waiting=2)
        first, _ = add(table), add(table)
        with pytest.raises(TooMany, match=r"\b2\b"):
            add(table)
        new = "ann", "new", None, {"kind": "committee"}
        for _ in range(2):
            table.begin(*new)
        with pytest.raises(TooMany):
            table.begin(*new)
        # Nor is there a dialog that nobody trains.
        assert [row.state for row in store.dialogs("ann")].count("training") == 2
        add(table, "bob")
        table.claim(training=False)
        add(table)
        table.cancel(first)

    def test_a_trained_dialog_is_not_trained_again(self, store):
        table = JobTable(store, waiting=2)
        with pytest.raises(Conflict):
            add(table, kind=TRAIN)

    def test_cancelled_while_it_waits(self, store):
        table = JobTable(store, waiting=2)
        dialog, job = table.begin("ann", "new", None, {"kind": "committee"})
        table.cancel(job)
        table.cancel(job)
        assert found(table, job).state == "cancelled"
        assert found(table, job).is_finished
        row = store.dialog("ann", dialog.id)
        assert (row.state, row.error) == ("failed", CANCELLED)
        assert table.claim(training=True) is None
        again = add(table, kind=TRAIN, dialog=dialog.id)
        row = store.dialog("ann", dialog.id)
        assert (row.state, row.error, again.state) == ("training", None, "waiting")

    def test_cancelled_while_it_runs(self, store):
        table = JobTable(store, waiting=2)
        job = add(table)
        table.claim(training=False)
        assert table.beat({job.id: {}}) == set()
        table.cancel(job)
        assert found(table, job).state == "running"
        assert table.beat({job.id: {}}) == {job.id}
        store.change(job.dialog_id, ended=done(job, table))
        table.cancel(job)  # too late
        assert found(table, job).state == "done"

    def test_a_deleted_dialog_has_no_jobs(self, store):
        table = JobTable(store, waiting=2)
        job = add(table)
        table.claim(training=False)
        store.delete_dialog("ann", job.dialog_id)
        with pytest.raises(NotFound):
            found(table, job)
        assert table.beat({job.id: {}}) == {job.id}
        with pytest.raises(NotFound):
            store.change(job.dialog_id, ended=done(job, table))

    def test_jobs_that_finished_long_ago_are_deleted(self, store):
        table = JobTable(store, waiting=3)
        old, new, waiting = add(table), add(table), add(table)
        for _ in range(2):
            job = table.claim(training=False)
            store.change(job.dialog_id, ended=done(job, table))
        with store.write() as session:
            finished = update(JobRow).where(JobRow.id == old.id)
            session.execute(finished.values(finished=datetime.now(UTC) - KEPT))
        table.prune()
        with pytest.raises(NotFound):
            found(table, old)
        assert [found(table, job).state for job in (new, waiting)] == ["done", "waiting"]


def expire(store, job):
    """Let the lease of a job expire, as if its process had ended long ago."""
    with store.write() as session:
        past = datetime.now(UTC) - timedelta(hours=1)
        session.execute(update(JobRow).where(JobRow.id == job.id).values(expires=past))


class TestLeases:
    @pytest.mark.parametrize("n", [2, 8])
    def test_each_job_is_leased_once(self, store, n):
        tables = [JobTable(store, waiting=50) for _ in range(n)]
        jobs = [add(tables[0]).id for _ in range(12)]
        begin = threading.Barrier(n)

        def claim(table):
            begin.wait(LONG)
            leased = []
            while (job := table.claim(training=False)) is not None:
                assert (job.state, job.process, job.attempts) == ("running", table.process, 1)
                leased.append(job.id)
            return leased

        with ThreadPoolExecutor(n) as pool:
            leased = [job for each in pool.map(claim, tables) for job in each]
        assert sorted(leased) == sorted(jobs)

    def test_an_expired_lease_is_taken_over_and_the_first_process_stores_nothing(self, store):
        first, second = (JobTable(store, waiting=5) for _ in range(2))
        job = add(first)
        first.claim(training=False)
        second.reclaim()
        assert not second.has_waiting()
        assert second.claim(training=False) is None
        expire(store, job)
        second.reclaim()
        assert second.has_waiting()
        assert found(second, job).state == "waiting"
        assert second.claim(training=False).attempts == 2
        before = store.dialog("ann", job.dialog_id)
        with pytest.raises(Lost):
            store.change(job.dialog_id, steps=[step(1)], position=1, ended=done(job, first))
        after = store.dialog("ann", job.dialog_id)
        assert (after.n_steps, after.position, after.revision) == (1, 0, before.revision)
        assert first.beat({job.id: {}}) == {job.id}  # so that it stops its work
        store.change(job.dialog_id, steps=[step(1)], position=1, ended=done(job, second))
        assert store.dialog("ann", job.dialog_id).n_steps == 2
        with pytest.raises(Lost):  # also after the end
            store.change(job.dialog_id, steps=[step(2)], position=2, ended=done(job, first))
        assert found(first, job).result == {"step": 1}

    def test_it_is_known_that_the_process_of_a_job_is_silent_and_that_it_begins_again(self, store):
        first, second = (JobTable(store, waiting=5) for _ in range(2))
        jobs, job = Jobs(second, {}, 1), add(first)
        assert not jobs.record(job)["restarted"]  # it waits
        first.claim(training=False)
        assert not jobs.record(found(second, job))["restarted"]
        expire(store, job)
        assert jobs.record(found(second, job))["restarted"]  # before another process takes it
        second.reclaim()
        second.claim(training=False)
        assert jobs.record(found(second, job))["restarted"]

    def test_how_many_members_are_enough_outlives_the_process(self, store):
        first, second = (JobTable(store, waiting=5) for _ in range(2))
        _, job = first.begin("ann", "a dialog", None, {})
        first.set_enough(job, 2)
        assert store.enough_members(job.id) is None, "it does not run yet"
        first.set_enough(first.claim(training=True), 2)
        first.release()
        assert second.claim(training=True).id == job.id
        assert store.enough_members(job.id) == 2

    def test_a_lost_lease_ends_nothing_after_the_same_process_has_claimed_the_job_again(
        self, store
    ):
        first, second = (JobTable(store, waiting=5) for _ in range(2))
        job = add(first)
        first.claim(training=False)
        early = done(job, first)
        expire(store, job)
        second.reclaim()
        assert first.claim(training=False).attempts == 2
        with pytest.raises(Lost):
            store.change(job.dialog_id, steps=[step(1)], position=1, ended=early)
        store.change(job.dialog_id, steps=[step(1)], position=1, ended=done(job, first))
        assert store.dialog("ann", job.dialog_id).n_steps == 2

    def test_a_process_keeps_the_leases_of_the_jobs_it_runs_and_publishes_progress(self, store):
        first, second = (JobTable(store, waiting=5) for _ in range(2))
        job, other = add(first), add(first)
        first.claim(training=False)
        first.claim(training=False)
        expire(store, job)
        expire(store, other)
        news = {"progress": {"done": 1, "total": 2, "text": "x"}, "reply": {"number": None}}
        assert first.beat({job.id: news}) == set()
        second.reclaim()
        shown = found(second, job)
        assert (shown.progress, shown.reply) == (news["progress"], news["reply"])
        assert shown.state == "running"
        assert found(second, other).state == "waiting"  # its process does not run it
        store.change(job.dialog_id, ended=done(job, first))
        assert (found(second, job).progress, found(second, job).reply) == (None, None)

    def test_two_processes_that_reclaim_at_once_begin_a_job_once(self, store):
        tables = [JobTable(store, waiting=5) for _ in range(4)]
        job = add(tables[0])
        tables[0].claim(training=False)
        expire(store, job)
        begin = threading.Barrier(4)

        def take(table):
            begin.wait(LONG)
            table.reclaim()
            return table.claim(training=False)

        with ThreadPoolExecutor(4) as pool:
            leased = [row for row in pool.map(take, tables) if row is not None]
        assert [(row.id, row.attempts) for row in leased] == [(job.id, 2)]

    @pytest.mark.parametrize("kind", ["prefer", TRAIN])
    def test_a_job_that_has_ended_its_process_three_times_fails(self, store, kind):
        table = JobTable(store, waiting=5)
        if kind == TRAIN:
            dialog, job = table.begin("ann", "new", None, {"kind": "committee"})
        else:
            job = add(table)
        for attempt in range(1, ATTEMPTS + 1):
            assert table.claim(kind == TRAIN).attempts == attempt
            expire(store, job)
            table.reclaim()
            assert table.has_waiting() == (attempt < ATTEMPTS)
        failed = found(table, job)
        assert (failed.state, failed.is_finished) == ("failed", True)
        assert f"{ATTEMPTS}" in failed.error
        assert table.claim(kind == TRAIN) is None
        if kind == TRAIN:
            row = store.dialog("ann", dialog.id)
            assert (row.state, row.error) == ("failed", failed.error)
        assert add(table, kind=kind, dialog=job.dialog_id).attempts == 0  # it may be tried again

    def test_a_job_that_was_cancelled_when_its_process_ended_stays_so(self, store):
        table = JobTable(store, waiting=5)
        dialog, job = table.begin("ann", "new", None, {"kind": "committee"})
        table.claim(training=True)
        table.cancel(job)
        expire(store, job)
        table.reclaim()
        assert not table.has_waiting()
        assert (found(table, job).state, found(table, job).error) == ("cancelled", None)
        assert store.dialog("ann", dialog.id).error == CANCELLED

    def test_a_polite_end_is_no_attempt(self, store):
        job = add(JobTable(store, waiting=5))
        for _ in range(ATTEMPTS + 1):
            table = JobTable(store, waiting=5)
            assert table.claim(training=False).attempts == 1
            table.release()
            assert found(table, job).state == "waiting"

    def test_only_its_own_leases_are_released(self, store):
        one, other = (JobTable(store, waiting=5) for _ in range(2))
        job = add(one)
        one.claim(training=False)
        other.release()
        assert (found(one, job).state, found(one, job).process) == ("running", one.process)

    def test_all_that_ran_waits_when_no_other_process_can_run(self, store):
        job = add(JobTable(store, waiting=5))
        JobTable(store, waiting=5).claim(training=False)
        again = JobTable(store, waiting=5)
        again.reclaim(all_running=True)
        assert again.has_waiting()
        assert again.claim(training=False).id == job.id


# Work


class Held:
    """The work of a job, which waits until it is let go."""

    def __init__(self, error=None):
        self.error = error
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, store, job, handle):
        self.handle = handle
        self.begun.set()
        assert self.go.wait(LONG)
        if self.error is not None:
            raise self.error
        store.change(job.dialog_id, ended=handle.done({"step": 1}), state="ready")


class Bench:
    """Jobs whose work is held by the test, and by whom."""

    def __init__(self, store, table, workers, works):
        self.store, self.works = store, works
        self.jobs = Jobs(table, dict.fromkeys(("prefer", TRAIN), self._work), workers)

    def _work(self, job, handle):
        self.works[job.dialog_id](self.store, job, handle)

    def hold(self, owner="ann", kind="prefer", **how):
        """Submit a job; its row, and its work."""
        dialog = new_dialog(self.store, owner)
        if kind == TRAIN:
            self.store.change(dialog, state="failed")
        work = self.works[dialog] = Held(**how)
        return self.jobs.submit(owner, kind, dialog, {}), work

    def ended(self, job, work=None):
        """The row of a job at its end, after its work was let go."""
        if work is not None:
            work.go.set()
        row = self.jobs.wait(job, LONG)
        assert row.is_finished
        return row

    def record(self, job):
        return self.jobs.record(found(self.jobs.table, job))


@contextmanager
def bench_of(store, *, workers=1, waiting=50, table=None, works=()):
    bench = Bench(store, table or JobTable(store, waiting), workers, dict(works))
    bench.jobs.start()
    try:
        yield bench
    finally:
        for work in bench.works.values():
            work.go.set()
        assert bench.jobs.close(LONG)


@pytest.fixture
def bench(file):
    """One worker for training, one for all else."""
    with bench_of(file) as opened:
        yield opened


class TestWork:
    def test_in_turns_as_many_as_there_are_workers(self, file):
        with bench_of(file, workers=2) as bench:
            held = [bench.hold() for _ in range(3)]
            other = bench.hold("bob")
            assert all(work.begun.wait(LONG) for _, work in held[:2])
            assert not held[2][1].begun.is_set()
            assert not other[1].begun.is_set()
            assert [bench.record(job)["ahead"] for job, _ in (held[2], other)] == [1, 0]
            bench.ended(*held[0])
            assert other[1].begun.wait(LONG)
            assert bench.record(held[2][0])["state"] == "waiting"
            bench.ended(*held[1])
            assert held[2][1].begun.wait(LONG)

    def test_training_delays_no_other_job(self, bench):
        training, waiting = bench.hold(kind=TRAIN), bench.hold(kind=TRAIN)
        assert training[1].begun.wait(LONG)
        assert bench.ended(*bench.hold()).state == "done"
        assert not waiting[1].begun.is_set()
        bench.ended(*training)
        assert waiting[1].begun.wait(LONG)

    def test_trainings_share_the_cores(self, file, monkeypatch):
        monkeypatch.setattr(jobs_module, "cores", lambda: 4)
        with bench_of(file, workers=7) as bench:
            shares = []
            for _ in range(5):
                _, work = bench.hold(kind=TRAIN)
                assert work.begun.wait(LONG)
                shares.append(work.handle.n_jobs)
            assert shares == [4, 2, 1, 1, 1]

    def test_two_jobs_that_come_while_workers_look_are_both_begun(self, file):
        """Both workers see an empty store, and only then both jobs are added."""

        class Slow(JobTable):
            """A table from which workers return late, in an order that the test sets."""

            def __init__(self, store):
                super().__init__(store, waiting=50)
                self.here, self.gates = threading.Semaphore(0), []

            def claim(self, training):
                job = super().claim(training)
                if job is None and not training and len(self.gates) < 2:
                    gate = threading.Event()
                    self.gates.append(gate)
                    self.here.release()
                    assert gate.wait(LONG)
                return job

        table = Slow(file)
        with bench_of(file, workers=2, table=table) as bench:
            assert table.here.acquire(timeout=LONG)
            assert table.here.acquire(timeout=LONG)
            works = [bench.hold()[1] for _ in range(2)]
            table.gates[0].set()
            assert works[0].begun.wait(LONG)
            table.gates[1].set()
            assert works[1].begun.wait(LONG)

    def test_an_interrupted_job_is_begun_at_the_next_start(self, file):
        table = JobTable(file, waiting=5)
        search, waiting = add(table), add(table)
        assert table.claim(training=False).id == search.id
        table.reclaim(all_running=True)  # as open_studio does
        works = {job.dialog_id: Held() for job in (search, waiting)}
        with bench_of(file, works=works) as bench:
            for job in (search, waiting):
                assert bench.ended(job, works[job.dialog_id]).state == "done"

    def test_a_result_is_waited_for_at_most_as_long_as_allowed(self, bench):
        job, work = bench.hold()
        assert bench.jobs.wait(job, 0).state in ("waiting", "running")
        assert bench.jobs.wait(job, 0.05).state in ("waiting", "running")
        row = bench.ended(job, work)
        assert (row.state, row.result) == ("done", {"step": 1})
        assert bench.jobs.wait(row, 0).state == "done"

    def test_record(self, bench):
        job, work = bench.hold()
        assert work.begun.wait(LONG)
        bars = [{"name": "forest", "done": 1, "total": 2, "state": "running"}]
        work.handle.progress(1, 3, "trees", bars)
        work.handle.reply({"number": None})
        expected = {
            "id": job.id,
            "kind": "prefer",
            "dialog": job.dialog_id,
            "state": "running",
            "ahead": 0,
            "restarted": False,
            "progress": {
                "done": 1,
                "total": 3,
                "text": "trees",
                "members": bars,
                "provisional": None,
            },
            "reply": {"number": None},
            "error": None,
            "code": None,
            "fields": None,
            "result": None,
        }
        assert bench.record(job) == expected
        bench.ended(job, work)
        expected |= {"state": "done", "progress": None, "reply": None, "result": {"step": 1}}
        assert bench.record(job) == expected


class TestCancel:
    def test_waiting_ends_at_once_and_others_move_up(self, bench):
        first, job, behind = (bench.hold() for _ in range(3))
        assert first[1].begun.wait(LONG)
        assert bench.record(behind[0])["ahead"] == 1
        bench.jobs.cancel(job[0])
        assert bench.ended(job[0]).state == "cancelled"
        assert bench.record(behind[0])["ahead"] == 0
        bench.ended(*first)
        assert behind[1].begun.wait(LONG)
        assert not job[1].begun.is_set()

    def test_running_is_requested_to_stop(self, bench):
        job, work = bench.hold(error=STOPPED)
        assert work.begun.wait(LONG)
        assert not work.handle.stopped()
        bench.jobs.cancel(job)
        assert work.handle.stopped()
        assert bench.record(job)["state"] == "running"
        row = bench.ended(job, work)
        assert (row.state, row.error, row.result) == ("cancelled", None, None)

    def test_cancelled_before_its_worker_knows_it_is_requested_to_stop(self, file, monkeypatch):
        monkeypatch.setattr(jobs_module, "ALONE", 0.05)
        claimed, go = threading.Event(), threading.Event()

        class Slow(JobTable):
            def claim(self, training):
                job = super().claim(training)
                if job is not None:
                    claimed.set()
                    assert go.wait(LONG)
                return job

        with bench_of(file, table=Slow(file, waiting=5)) as bench:
            job, work = bench.hold()
            assert claimed.wait(LONG)
            bench.jobs.cancel(job)
            go.set()
            assert work.begun.wait(LONG)
            until = monotonic() + LONG
            while not work.handle.stopped():
                assert monotonic() < until
                sleep(0.01)

    def test_a_lost_job_that_is_claimed_again_ends_once_and_no_worker_is_lost(self, file):
        with bench_of(file, workers=2) as bench:
            job, work = bench.hold()
            assert work.begun.wait(LONG)
            expire(file, job)
            JobTable(file, waiting=5).reclaim()  # as the keeper of another process does
            other, gate = bench.hold()  # wakes the second worker, which takes the oldest job
            work.go.set()
            row = bench.ended(job)
            assert (row.state, row.result, row.attempts) == ("done", {"step": 1}, 2)
            assert bench.ended(other, gate).state == "done"
            both = [bench.hold() for _ in "12"]
            assert all(held.begun.wait(LONG) for _, held in both)

    def test_what_was_kept_when_it_stopped_is_a_result(self, bench):
        job, work = bench.hold()
        assert work.begun.wait(LONG)
        bench.jobs.cancel(job)
        row = bench.ended(job, work)
        bench.jobs.cancel(row)
        assert (bench.ended(job).state, row.result) == ("done", {"step": 1})

    def test_training_that_was_cancelled_has_failed(self, bench):
        job, work = bench.hold(kind=TRAIN, error=STOPPED)
        assert work.begun.wait(LONG)
        bench.jobs.cancel(job)
        assert bench.ended(job, work).state == "cancelled"
        row = bench.store.dialog("ann", job.dialog_id)
        assert (row.state, row.error) == ("failed", CANCELLED)


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "shown"),
        [
            (ValueError("Bring 40 more\n  samples."), "Bring 40 more samples."),
            (StoreError("The disk is full."), "The disk is full."),
            (ValueError(), WENT_WRONG),
            (RuntimeError("secret"), WENT_WRONG),
            (SystemExit("secret"), WENT_WRONG),
        ],
    )
    @pytest.mark.parametrize("kind", ["prefer", TRAIN])
    def test_only_what_is_meant_for_users_is_shown(self, bench, caplog, error, shown, kind):
        row = bench.ended(*bench.hold(kind=kind, error=error))
        assert (row.state, row.error, row.result) == ("failed", shown, None)
        dialog = bench.store.dialog("ann", row.dialog_id)
        assert (dialog.state, dialog.error) == (
            ("failed", shown) if kind == TRAIN else ("ready", None)
        )
        assert bench.ended(*bench.hold(kind=kind)).state == "done"  # the worker is still there
        if isinstance(error, RuntimeError | SystemExit):
            assert [record.exc_info[1] for record in caplog.records] == [error]
        else:
            assert caplog.records == []

    def test_a_dialog_deleted_under_a_job_ends_it_quietly(self, bench, caplog):
        for error in (None, STOPPED):
            for kind in ("prefer", TRAIN):
                job, work = bench.hold(kind=kind, error=error)
                assert work.begun.wait(LONG)
                bench.store.delete_dialog("ann", job.dialog_id)
                work.go.set()
                assert bench.ended(*bench.hold(kind=kind)).state == "done"
        assert caplog.records == []

    def test_a_store_that_fails_once_is_asked_again(self, bench, monkeypatch, caplog):
        first, second = bench.hold(), bench.hold()
        assert first[1].begun.wait(LONG)

        def failing(training):
            monkeypatch.undo()
            raise StoreError("The disk is full.")

        monkeypatch.setattr(bench.jobs.table, "claim", failing)
        bench.ended(*first)
        assert bench.ended(*second).state == "done"
        assert caplog.records

    def test_an_end_that_cannot_be_stored_is_stored_later(self, file, monkeypatch, caplog):
        """Otherwise its dialog would stay busy until the studio is restarted."""
        monkeypatch.setattr(jobs_module, "ALONE", 0.05)  # the keeper looks often
        with bench_of(file) as bench:
            job, work = bench.hold(error=ValueError("No."))
            assert work.begun.wait(LONG)
            failures = iter([StoreError("The disk is full.")] * 2)
            end = bench.jobs.table.end

            def failing(*args):
                for failure in failures:
                    raise failure
                end(*args)

            monkeypatch.setattr(bench.jobs.table, "end", failing)
            assert (bench.ended(job, work).state, next(failures, None)) == ("failed", None)
        assert caplog.records

    def test_an_end_that_is_never_stored_does_not_hold_up_the_others(self, file, monkeypatch):
        with bench_of(file) as bench:
            end = bench.jobs.table.end

            def failing(job, ended):
                if job.id == first.id:
                    raise StoreError("The disk is full.")
                end(job, ended)

            monkeypatch.setattr(bench.jobs.table, "end", failing)
            first, work = bench.hold(error=ValueError("No."))
            work.go.set()
            assert bench.ended(*bench.hold(error=ValueError("No."))).state == "failed"
            assert found(bench.jobs.table, first).state == "running"

    def test_no_job_is_leased_after_the_studio_has_closed(self, file):
        with bench_of(file) as bench:
            (job, work), (other, _) = bench.hold(), bench.hold()
            assert work.begun.wait(LONG)
            assert not bench.jobs.close(0.05)  # it still works
            work.go.set()
            assert bench.jobs.close(LONG)
            states = {found(bench.jobs.table, one).state for one in (job, other)}
            assert states == {"waiting"}


# Listeners


async def events(jobs, job):
    async with asyncio.timeout(LONG):
        return [record async for record in jobs.follow(job)]


async def next_of(records, wanted=lambda _: True):
    """The next record that is as wanted."""
    async with asyncio.timeout(LONG):
        while not wanted(record := await anext(records)):
            pass
        return record


class TestListeners:
    def test_who_comes_late_gets_the_end(self, bench):
        job, work = bench.hold()
        row = bench.ended(job, work)
        for late in (job, row):
            assert asyncio.run(events(bench.jobs, late)) == [bench.record(job)]

    def test_from_waiting_to_the_end(self, bench):
        async def story():
            first, (job, work) = bench.hold(), bench.hold()
            assert first[1].begun.wait(LONG)
            records = bench.jobs.follow(job)
            seen = [await next_of(records)]
            other = bench.hold("bob")[0]  # goes first
            seen.append(await next_of(records))
            bench.jobs.cancel(other)
            seen.append(await next_of(records))
            first[1].go.set()
            seen.append(await next_of(records, lambda record: record["state"] != "waiting"))
            assert work.begun.wait(LONG)
            work.handle.reply({"number": None})
            seen.append(await next_of(records, lambda record: record["reply"] is not None))
            work.go.set()
            seen.append(await next_of(records))
            with pytest.raises(StopAsyncIteration):
                await anext(records)
            return seen

        seen = asyncio.run(story())
        assert [(record["state"], record["ahead"]) for record in seen] == [
            ("waiting", 0),
            ("waiting", 1),
            ("waiting", 0),
            ("running", 0),
            ("running", 0),
            ("done", 0),
        ]
        assert [record["reply"] for record in seen[-2:]] == [{"number": None}, None]

    def test_progress_arrives_and_the_last_is_not_lost(self, bench):
        async def story(job, work):
            records = bench.jobs.follow(job)
            assert (await next_of(records))["progress"] is None
            for n in range(100):
                work.handle.progress(n, 100, "trees")
            found = await next_of(
                records, lambda record: record["progress"] and record["progress"]["done"] == 99
            )
            await records.aclose()
            return found

        job, work = bench.hold()
        assert work.begun.wait(LONG)
        assert asyncio.run(story(job, work))["state"] == "running"

    def test_nothing_is_sent_twice(self, bench):
        async def story(job, work):
            records = bench.jobs.follow(job)
            seen = [await next_of(records)]
            work.handle.reply({"number": None})
            seen.append(await next_of(records))
            for _ in range(3):
                work.handle.reply({"number": None})
            work.go.set()
            return seen + [record async for record in records]

        job, work = bench.hold()
        assert work.begun.wait(LONG)
        seen = asyncio.run(story(job, work))
        assert len(seen) == 3
        assert seen[0] != seen[1] != seen[2]

    def test_many_listeners_leave_the_store_to_others(self, bench, monkeypatch):
        bench.hold()
        job, _ = bench.hold()  # it waits, so that its listeners have to look into the store
        looks = []
        find = bench.jobs.table.find

        def counted(owner, job_id):
            looks.append(job_id)
            return find(owner, job_id)

        monkeypatch.setattr(bench.jobs.table, "find", counted)

        async def hear(records):
            async for _ in records:
                pass

        async def many():
            hearing = [asyncio.ensure_future(hear(bench.jobs.follow(job))) for _ in range(100)]
            await asyncio.sleep(4)
            for one in hearing:
                one.cancel()
            await asyncio.gather(*hearing, return_exceptions=True)

        asyncio.run(many())
        # Each looks once at once. If all looked every half second, there would be 800 looks.
        assert 100 <= len(looks) < 300

    def test_many_listeners_in_several_loops_get_the_same_end(self, bench):
        job, work = bench.hold()
        ready, ends = threading.Barrier(4), []

        async def five():
            records = [bench.jobs.follow(job) for _ in range(5)]
            for each in records:
                await next_of(each)
            ready.wait(LONG)
            for each in records:
                ends.append(await next_of(each, lambda record: record["state"] == "done"))

        threads = [threading.Thread(target=asyncio.run, args=(five(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        ready.wait(LONG)
        work.go.set()
        for thread in threads:
            thread.join(LONG)
        assert ends == [bench.record(job)] * 15

    def test_who_leaves_disturbs_nobody(self, bench):
        async def story(job, work):
            stays, leaves = bench.jobs.follow(job), bench.jobs.follow(job)
            await next_of(stays)
            await next_of(leaves)
            await leaves.aclose()
            task = asyncio.ensure_future(events(bench.jobs, job))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await bench.jobs.follow(job).aclose()  # never begun
            work.go.set()
            return await next_of(stays, lambda record: record["state"] == "done")

        job, work = bench.hold()
        assert work.begun.wait(LONG)
        assert asyncio.run(story(job, work))["result"] == {"step": 1}

    def test_a_loop_that_was_closed_disturbs_nobody(self, bench):
        job, work = bench.hold()
        assert work.begun.wait(LONG)
        loop = asyncio.new_event_loop()
        records = bench.jobs.follow(job)
        loop.run_until_complete(next_of(records))
        loop.close()
        work.handle.reply({"number": None})
        assert bench.ended(job, work).state == "done"

    @pytest.mark.parametrize("running", [False, True])
    def test_a_deleted_dialog_ends_its_stream(self, bench, running):
        async def story(job, work):
            records = bench.jobs.follow(job)
            await next_of(records)
            bench.store.delete_dialog("ann", job.dialog_id)
            work.go.set()
            return await next_of(records, lambda record: record["state"] != "running")

        first, waiting = bench.hold(), bench.hold()
        assert first[1].begun.wait(LONG)
        job, work = first if running else waiting
        last = asyncio.run(story(job, work))
        assert (last["id"], last["state"]) == (job.id, "cancelled")

    def test_a_job_of_another_process_is_followed(self, store):
        """Its progress is read from the store, also when the process has lost it."""

        async def story(jobs, other, job):
            records = jobs.follow(job)
            seen = [await next_of(records)]
            news = {"progress": {"done": 1, "total": 2}, "reply": {"number": None}}
            other.beat({job.id: news})
            seen.append(await next_of(records))
            expire(store, job)
            jobs.table.reclaim()
            seen.append(await next_of(records))
            other.claim(training=False)
            seen.append(await next_of(records))
            store.change(job.dialog_id, ended=done(job, other))
            return [*seen, await next_of(records)]

        jobs, other = Jobs(JobTable(store, waiting=5), {}, 1), JobTable(store, waiting=5)
        job = add(other)
        job = other.claim(training=False)
        seen = asyncio.run(story(jobs, other, job))
        states = ["running", "running", "waiting", "running", "done"]
        assert [record["state"] for record in seen] == states
        assert (seen[1]["progress"], seen[1]["reply"]) == (
            {"done": 1, "total": 2},
            {"number": None},
        )
        assert seen[-1]["result"] == {"step": 1}


# The end of the studio


class TestClose:
    def test_interrupts_what_runs_and_leaves_it_to_the_next_start(self, file):
        with bench_of(file) as bench:
            job, work = bench.hold(error=STOPPED)
            waiting, never = bench.hold()
            assert work.begun.wait(LONG)
            with ThreadPoolExecutor(1) as pool:
                closing = pool.submit(bench.jobs.close, LONG)
                while not work.handle.stopped():
                    sleep(0.01)
                work.go.set()
                assert closing.result(LONG)
            assert [found(bench.jobs.table, one).state for one in (job, waiting)] == [
                "waiting",
                "waiting",
            ]
            assert not never.begun.is_set()
            with pytest.raises(Closed):
                bench.hold()
        works = {one.dialog_id: Held() for one in (job, waiting)}
        with bench_of(file, works=works) as bench:
            for one in (job, waiting):
                assert bench.ended(one, works[one.dialog_id]).attempts == 1

    def test_a_result_that_comes_while_it_closes_is_not_stored(self, file):
        """A search that was stopped early would else keep a reply that nobody stopped."""
        with bench_of(file) as bench:
            job, work = bench.hold()
            assert work.begun.wait(LONG)
            assert not bench.jobs.close(0.0)
            work.go.set()
            assert bench.jobs.close(LONG)
            assert found(bench.jobs.table, job).state == "waiting"

    def test_a_job_that_is_leased_while_it_closes_is_interrupted(self, file):
        class Late(JobTable):
            """A worker returns with a job when the studio is already closing."""

            leased, go = threading.Event(), threading.Event()

            def claim(self, training):
                job = super().claim(training)
                if job is not None:
                    self.leased.set()
                    assert self.go.wait(LONG)
                return job

        job = add(JobTable(file, waiting=5))
        with bench_of(file, table=Late(file, waiting=5)) as bench:
            work = bench.works[job.dialog_id] = Held()
            assert Late.leased.wait(LONG)
            assert not bench.jobs.close(0.0)
            Late.go.set()
            assert bench.jobs.close(LONG)
            assert not work.begun.is_set() or work.handle.stopped()
            assert found(bench.jobs.table, job).state == "waiting"

    def test_an_error_that_comes_while_it_closes_is_stored(self, file):
        with bench_of(file) as bench:
            job, work = bench.hold(error=ValueError("Bring 40 more samples."))
            assert work.begun.wait(LONG)
            with ThreadPoolExecutor(1) as pool:
                closing = pool.submit(bench.jobs.close, LONG)
                while not work.handle.stopped():
                    sleep(0.01)
                work.go.set()
                assert closing.result(LONG)
            assert found(bench.jobs.table, job).state == "failed"

    def test_before_any_job_and_twice(self, file):
        with bench_of(file) as bench:
            assert bench.jobs.close(LONG)
            assert bench.jobs.close(LONG)


@pytest.mark.full
@pytest.mark.slow
def test_two_hundred_jobs_of_twenty_users_in_two_processes(store):
    """Each runs once, at most one at a time on a dialog, and all end."""
    users = [f"user {i}" for i in range(20)]
    dialogs, inside, most, guard = {}, Counter(), Counter(), threading.Lock()
    for user in users:
        store.add_user(user)
        dialogs[user] = [new_dialog(store, user) for _ in range(2)]

    def work(job, handle):
        with guard:
            inside[job.dialog_id] += 1
            most[job.dialog_id] = max(most[job.dialog_id], inside[job.dialog_id])
        for n in range(20):
            handle.progress(n, 20, "counting")
        handle.reply({"number": None})
        number = job.arguments["number"]
        with guard:
            inside[job.dialog_id] -= 1
        ended = handle.done({"step": number})
        store.change(job.dialog_id, steps=[step(number)], position=number, ended=ended)

    processes = [Jobs(JobTable(store, waiting=10), {"prefer": work}, 3) for _ in range(2)]
    for jobs in processes:
        jobs.start()

    def story(user):
        for number in range(1, 6):
            for dialog in dialogs[user]:
                jobs = processes[number % 2]
                job = jobs.submit(user, "prefer", dialog, {"number": number})
                last = asyncio.run(events(processes[(number + 1) % 2], job))[-1]
                assert (last["state"], last["result"]) == ("done", {"step": number})

    try:
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(story, users))
    finally:
        assert all(jobs.close(LONG) for jobs in processes)
    rows = [store.dialog(user, dialog) for user in users for dialog in dialogs[user]]
    assert {(row.n_steps, row.position) for row in rows} == {(6, 5)}
    assert set(most.values()) == {1}
