"""The queue of long work: turns, limits, locks, ends, and what listeners hear."""

import asyncio
import gc
import json
import threading
import weakref
from collections import Counter
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from margrave.studio._events import BEAT, HEARTBEAT, PACE, REPLIES

from margrave.studio.jobs import (
    WENT_WRONG,
    Cancelled,
    Closed,
    Queue,
    TooMany,
    UnknownJob,
    stream,
)

LONG = 60.0  # seconds; only a bug waits as long


class ToldError(ValueError):
    pass


class Held:
    """Work that waits until it is let go."""

    def __init__(self, result=None, error=None):
        self.result, self.error = result or {}, error
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, handle):
        self.handle = handle
        self.begun.set()
        assert self.go.wait(LONG)
        if self.error is not None:
            raise self.error
        return self.result


@contextmanager
def opened(workers=1, per_user=1, per_user_waiting=50, keep=100):
    queue = Queue(workers, per_user, per_user_waiting, keep, told=(ToldError,))
    held = []

    def hold(owner="ann", dialog="d", *, lock_key=None, **how):
        work = Held(**how)
        held.append(work)
        job = queue.submit(owner, "prefer", dialog, work, lock_key=lock_key)
        return job, work

    queue.hold = hold
    try:
        yield queue
    finally:
        for work in held:
            work.go.set()
        assert queue.shutdown(LONG)


def let_go(job, work):
    work.go.set()
    assert job.wait(LONG)


def states(jobs):
    return [job.state for job in jobs]


class TestTurns:
    @given(owners=st.lists(st.sampled_from("abcde"), max_size=12))
    def test_one_start_of_each_user_in_a_round(self, owners):
        began = []
        with opened() as queue:
            first, gate = queue.hold("gate")
            jobs = [
                queue.submit(owner, "prefer", "d", lambda _, i=i: began.append(i) or {})
                for i, owner in enumerate(owners)
            ]
            order = sorted(range(len(owners)), key=lambda i: (owners[:i].count(owners[i]), i))
            assert [job.ahead for job in jobs] == [order.index(i) for i in range(len(owners))]
            let_go(first, gate)
            assert all(job.wait(LONG) for job in jobs)
        assert began == order

    def test_fifty_jobs_do_not_delay_the_first_of_another(self):
        with opened() as queue:
            first, gate = queue.hold("ann")
            for _ in range(49):
                queue.hold("ann")
            mine, _ = queue.hold("bob")
            assert (mine.state, mine.ahead) == ("waiting", 0)
            let_go(first, gate)
            assert mine.state == "running"

    def test_who_comes_back_at_once_takes_turns_with_who_waits(self):
        with opened() as queue:
            jobs = dict([queue.hold("bob"), *(queue.hold("ann") for _ in range(9))])
            starts = ["bob"]
            for _ in range(12):
                if not any(job.owner == "bob" and job.state == "waiting" for job in jobs):
                    jobs.update([queue.hold("bob")])
                let_go(*next(one for one in jobs.items() if one[0].state == "running"))
                starts += [job.owner for job in jobs if job.state == "running"]
                assert abs(starts.count("ann") - starts.count("bob")) <= 1

    def test_who_was_served_is_remembered_while_others_wait(self):
        with opened() as queue:
            first, gate = queue.hold("bob")
            patient = [queue.hold("ann")[0] for _ in range(3)]
            let_go(first, gate)
            back, _ = queue.hold("bob")
            assert [job.ahead for job in (*patient[1:], back)] == [0, 2, 1]

    def test_who_was_held_back_does_not_catch_up_all_at_once(self):
        with opened(workers=2, per_user=1) as queue:
            names = ["ann", *("bob", "eve") * 4, "ann", "ann"]
            jobs = [(name, *queue.hold(name)) for name in names]

            def end(*owners):
                let_go(*next(j[1:] for j in jobs if j[0] in owners and j[1].state == "running"))
                return {name for name, job, _ in jobs if job.state == "running"}

            for _ in range(3):  # ann has her share all this time
                assert end("bob", "eve") == {"ann", "eve"}
                assert end("bob", "eve") == {"ann", "bob"}
            assert [job.ahead for _, job, _ in jobs if job.state == "waiting"] == [1, 0, 2]
            assert end("ann") == {"ann", "bob"}  # now it is her turn, but only once
            assert end("ann") == {"eve", "bob"}


class Reference:
    """Who runs, told plainly: every rule is a filter or a key over all that wait."""

    def __init__(self, workers, per_user):
        self.workers, self.per_user = workers, per_user
        self.waiting, self.running = [], []  # of (number, owner, key)
        self.round, self.turn = 0, Counter()

    def submit(self, job):
        if all(other[1] != job[1] for other in self.waiting):
            self.turn[job[1]] = max(self.turn[job[1]], self.round)
        self.waiting.append(job)
        self.start()

    def leave(self, job):
        (self.running if job in self.running else self.waiting).remove(job)
        self.start()

    def free(self, job):
        return all(
            other[2] != job[2] or other[2] is None or (other in self.waiting and other >= job)
            for other in (*self.running, *self.waiting)
        )

    def start(self):
        while len(self.running) < self.workers:
            could = [job for job in self.waiting if self.free(job)]
            could = [job for job in could if job == min(o for o in could if o[1] == job[1])]
            if not could:
                break
            n = Counter(job[1] for job in self.running)
            below = [job for job in could if n[job[1]] < self.per_user]
            least = min(n[job[1]] for job in could)
            could = below or [job for job in could if n[job[1]] == least]
            chosen = min(could, key=lambda job: (self.turn[job[1]], job[0]))
            self.waiting.remove(chosen)
            self.running.append(chosen)
            self.round = max(self.round, self.turn[chosen[1]])
            self.turn[chosen[1]] = self.round + 1
        if not self.waiting:  # who is gone when nobody waits will be as new
            for owner in set(self.turn) - {job[1] for job in self.running}:
                del self.turn[owner]


SUBMIT = st.tuples(
    st.just("submit"), st.sampled_from("abc"), st.sampled_from([None] * 4 + ["p", "q"])
)
FINISH = st.tuples(st.just("finish"), st.integers(0, 2))
CANCEL = st.tuples(st.just("cancel"), st.integers(0, 5))


class TestAgainstTheReference:
    @given(
        workers=st.integers(1, 3),
        per_user=st.integers(1, 2),
        crowd=st.lists(SUBMIT, min_size=6, max_size=6),
        moves=st.lists(st.one_of(SUBMIT, FINISH, CANCEL), min_size=20, max_size=20),
    )
    def test_the_same_jobs_run_after_every_move(self, workers, per_user, crowd, moves):
        reference, jobs = Reference(workers, per_user), {}
        with opened(workers, per_user) as queue:
            for move, *what in (*crowd, *moves):
                if move == "submit":
                    number = (len(jobs), *what)
                    jobs[number] = queue.hold(what[0], lock_key=what[1])
                    reference.submit(number)
                elif move == "finish" and reference.running:
                    number = reference.running[what[0] % len(reference.running)]
                    let_go(*jobs[number])
                    reference.leave(number)
                elif move == "cancel" and reference.waiting:
                    number = reference.waiting[what[0] % len(reference.waiting)]
                    queue.cancel(jobs[number][0])
                    reference.leave(number)
                running = {number for number, (job, _) in jobs.items() if job.state == "running"}
                assert running == set(reference.running)
                self.check(running, reference, workers)
                ahead = [jobs[number][0].ahead for number in reference.waiting]
                assert sorted(ahead) == list(range(len(ahead)))

    def check(self, running, reference, workers):
        assert len(running) <= workers
        keys = [key for _, _, key in running if key is not None]
        assert len(keys) == len(set(keys))
        if len(running) < workers:  # then those that wait, wait for a lock
            assert all(key in keys for _, _, key in reference.waiting)


class TestLimits:
    def test_a_user_alone_has_all_workers_and_shares_them_when_another_comes(self):
        with opened(workers=3, per_user=1) as queue:
            mine = [queue.hold("ann") for _ in range(5)]
            assert states(job for job, _ in mine) == ["running"] * 3 + ["waiting"] * 2
            others = [queue.hold(name)[0] for name in ("bob", "eve")]
            let_go(*mine[0])
            assert states(others) == ["running", "waiting"]
            let_go(*mine[1])
            assert states(others) == ["running", "running"]
            assert states(job for job, _ in mine[2:]) == ["running", "waiting", "waiting"]

    def test_too_many_waiting(self):
        with opened(per_user_waiting=2) as queue:
            queue.hold("ann")
            queue.hold("ann")
            last, _ = queue.hold("ann")
            with pytest.raises(TooMany, match=r"\b2\b"):
                queue.hold("ann")
            queue.hold("bob")  # another may
            queue.cancel(last)
            queue.hold("ann")
            with pytest.raises(TooMany):
                queue.hold("ann")

    def test_a_job_that_can_start_at_once_does_not_wait(self):
        with opened(per_user_waiting=0) as queue:
            job, work = queue.hold("ann")
            with pytest.raises(TooMany, match=r"\b0\b"):
                queue.hold("ann")
            let_go(job, work)
            assert queue.hold("ann")[0].state == "running"

    @pytest.mark.parametrize(
        ("name", "least"), [("workers", 1), ("per_user", 1), ("per_user_waiting", 0), ("keep", 0)]
    )
    def test_limits_make_sense(self, name, least):
        limits = {"workers": 1, "per_user": 1, "per_user_waiting": 1, "keep": 1, name: least - 1}
        with pytest.raises(ValueError, match=rf"\b{name}\b"):
            Queue(**limits)


class TestLocks:
    def test_one_after_another_in_their_order_while_others_pass(self):
        with opened(workers=3, per_user=3) as queue:
            one, two, three = (queue.hold(lock_key="d") for _ in range(3))
            other, _ = queue.hold(lock_key="e")
            assert states((one[0], two[0], three[0])) == ["running", "waiting", "waiting"]
            assert other.state == "running"
            let_go(*one)
            assert states((two[0], three[0])) == ["running", "waiting"]
            let_go(*two)
            assert three[0].state == "running"

    def test_order_over_users(self):
        with opened(workers=3, per_user=1) as queue:
            one = queue.hold("ann", lock_key="d")
            two, _ = queue.hold("ann", lock_key="d")
            three, _ = queue.hold("bob", lock_key="d")
            let_go(*one)
            assert states((two, three)) == ["running", "waiting"]


class TestCancel:
    def test_waiting_ends_at_once_and_others_move_up(self):
        with opened() as queue:
            first, gate = queue.hold()
            job, work = queue.hold()
            behind, _ = queue.hold()
            assert behind.ahead == 1
            queue.cancel(job)
            queue.cancel(job)
            assert (job.state, job.error, job.result) == ("cancelled", None, None)
            assert behind.ahead == 0
            let_go(first, gate)
            assert behind.state == "running"
            assert not work.begun.is_set()

    def test_before_a_worker_takes_it_up(self):
        with opened() as queue:
            let_go(*(first := queue.hold()))
            with first[0].lock:  # so that no worker can
                job, work = queue.hold()
                assert job.state == "running"
                queue.cancel(job)
            assert job.wait(LONG)
            assert job.state == "cancelled"
            assert not work.begun.is_set()

    def test_running_is_asked_to_stop(self):
        with opened() as queue:
            job, work = queue.hold(error=Cancelled())
            assert work.begun.wait(LONG)
            assert not work.handle.stopped()
            queue.cancel(job)
            assert work.handle.stopped()
            assert job.state == "running"
            let_go(job, work)
            assert (job.state, job.error) == ("cancelled", None)

    def test_what_was_kept_when_it_stopped_is_a_result(self):
        with opened() as queue:
            job, work = queue.hold(result={"step": 2})
            assert work.begun.wait(LONG)
            queue.cancel(job)
            let_go(job, work)
            queue.cancel(job)
            assert (job.state, job.result) == ("done", {"step": 2})


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (ToldError("Bring 40 more\n  samples."), "Bring 40 more samples."),
            (ToldError(), WENT_WRONG),
            (ValueError("/home/secret"), WENT_WRONG),
            (SystemExit("secret"), WENT_WRONG),
        ],
    )
    def test_only_what_is_meant_for_users_is_said(self, error, said, caplog):
        with opened() as queue:
            job, work = queue.hold(error=error)
            let_go(job, work)
            assert (job.state, job.error, job.result) == ("failed", said, None)
            again, work = queue.hold(result={"step": 1})  # the worker is still there
            let_go(again, work)
            assert again.state == "done"
        if isinstance(error, ToldError):
            assert caplog.records == []
        else:
            (record,) = caplog.records
            assert "'prefer'" in record.message
            assert record.exc_info[1] is error

    @pytest.mark.parametrize("value", [float("nan"), {1, 2}])
    def test_a_result_that_cannot_be_sent(self, value, caplog):
        with opened() as queue:
            job, work = queue.hold(result={"share": value})
            let_go(job, work)
            assert (job.state, job.error, job.result) == ("failed", WENT_WRONG, None)
            assert caplog.records[0].exc_info[0] is TypeError


class TestFinding:
    def test_only_the_owner_finds_a_job(self):
        with opened() as queue:
            job, _ = queue.hold("ann")
            assert queue.job("ann", job.id) is job
            for owner, name in (("bob", job.id), ("ann", "x"), ("ann", "")):
                with pytest.raises(UnknownJob) as caught:
                    queue.job(owner, name)
                assert isinstance(caught.value, KeyError)

    def test_ids_are_long_and_differ(self):
        with opened() as queue:
            ids = {queue.hold()[0].id for _ in range(20)}
        assert len(ids) == 20
        assert min(map(len, ids)) >= 22  # 128 bits

    def test_the_newest_unfinished_of_a_dialog(self):
        with opened() as queue:
            assert queue.of_dialog("one") is None
            first, gate = queue.hold(dialog="one")
            second, _ = queue.hold(dialog="one")
            queue.hold(dialog="two")
            assert queue.of_dialog("one") is second
            queue.cancel(second)
            assert queue.of_dialog("one") is first
            let_go(first, gate)
            assert queue.of_dialog("one") is None

    def test_the_oldest_finished_are_forgotten(self):
        with opened(keep=2) as queue:
            jobs = [queue.hold() for _ in range(4)]
            for job, work in jobs:
                let_go(job, work)
            for job, _ in jobs[:2]:
                with pytest.raises(UnknownJob):
                    queue.job("ann", job.id)
            assert [queue.job("ann", job.id) for job, _ in jobs[2:]] == [jobs[2][0], jobs[3][0]]

    def test_record(self):
        with opened() as queue:
            job, work = queue.hold(dialog="d1", result={"step": 1})
            assert work.begun.wait(LONG)
            work.handle.progress(1, 3, "trees", [{"name": "forest", "done": 1, "total": 2}])
            let_go(job, work)
            work.handle.progress(2, 3, "too late")
            work.handle.emit("reply", {"late": True})
            assert job.record() == {
                "id": job.id,
                "kind": "prefer",
                "dialog": "d1",
                "state": "done",
                "ahead": 0,
                "progress": {
                    "done": 1,
                    "total": 3,
                    "text": "trees",
                    "members": [{"name": "forest", "done": 1, "total": 2}],
                },
                "error": None,
                "code": None,
                "fields": None,
                "result": {"step": 1},
            }
            assert [name for _, name, _ in asyncio.run(heard(job))] == ["job", "end"]

    def test_a_finished_job_does_not_hold_its_work(self):
        with opened() as queue:
            held = Held()
            gone = weakref.ref(held)
            held.go.set()
            job = queue.submit("ann", "prefer", "d", held)
            assert job.wait(LONG)
        del held
        gc.collect()
        assert gone() is None
        assert job.state == "done"


def parsed(chunk):
    """A server-sent event as (id, name, data)."""
    lines = chunk.decode().split("\n")
    assert lines[3:] == ["", ""]
    number, name, data = (
        line.removeprefix(f"{field}: ")
        for field, line in zip(("id", "event", "data"), lines, strict=False)
    )
    return int(number), name, json.loads(data)


async def heard(job, last_id=None):
    async with asyncio.timeout(LONG):
        return [parsed(chunk) async for chunk in stream(job, last_id)]


async def next_of(events):
    async with asyncio.timeout(LONG):
        return parsed(await anext(events))


class TestStream:
    def test_late_listener(self):
        with opened() as queue:
            job, work = queue.hold(result={"step": 1})
            let_go(job, work)
            (_, first, before), (_, last, after) = asyncio.run(heard(job))
        assert (first, last) == ("job", "end")
        assert before == after == job.record()

    def test_from_waiting_to_the_end(self):
        async def story(queue):
            (_, gate), (job, work) = queue.hold(), queue.hold(result={"step": 1})
            events = stream(job)
            seen = [await next_of(events)]
            other, _ = queue.hold("bob")  # goes first, so that one is ahead
            seen.append(await next_of(events))
            queue.cancel(other)
            seen.append(await next_of(events))
            gate.go.set()
            seen.append(await next_of(events))
            assert work.begun.wait(LONG)
            work.handle.emit("reply", {"number": None})
            seen.append(await next_of(events))
            work.go.set()
            seen.append(await next_of(events))
            with pytest.raises(StopAsyncIteration):
                await anext(events)
            assert job.events.listeners == 0
            return seen

        with opened() as queue:
            seen = asyncio.run(story(queue))
        assert [name for _, name, _ in seen] == ["job", "job", "job", "job", "reply", "end"]
        told = [(data["state"], data["ahead"]) for _, name, data in seen if name != "reply"]
        waiting = [("waiting", 0), ("waiting", 1), ("waiting", 0)]
        assert told == [*waiting, ("running", 0), ("done", 0)]
        numbers = [number for number, _, _ in seen]
        assert numbers == sorted(set(numbers))

    def test_last_event_id(self):
        with opened() as queue:
            job, work = queue.hold()
            assert work.begun.wait(LONG)
            for i in range(3):
                work.handle.emit("reply", {"i": i})
            let_go(job, work)
            everything = asyncio.run(heard(job))
            assert [data.get("i") for _, _, data in everything] == [None, 0, 1, 2, None]
            for i, (number, name, _) in enumerate(everything):
                later = asyncio.run(heard(job, str(number)))
                rest = everything[i + 1 :] if name != "end" else [everything[-1]]
                assert later == [(number, *everything[0][1:]), *rest]
            for strange in ("", "x", "-1", "1.5", "²", "9" * 5000, "99", 99):
                assert asyncio.run(heard(job, strange)) == everything

    def test_only_the_newest_replies_are_kept(self):
        with opened() as queue:
            job, work = queue.hold()
            assert work.begun.wait(LONG)
            for i in range(3 * REPLIES):
                work.handle.emit("reply", {"i": i})
            let_go(job, work)
            replies = [data["i"] for _, name, data in asyncio.run(heard(job)) if name == "reply"]
        assert replies == list(range(2 * REPLIES, 3 * REPLIES))

    def test_two_listeners_hear_the_same(self):
        async def story(job, work):
            both = [stream(job), stream(job)]
            first = [await next_of(events) for events in both]
            assert job.events.listeners == 2
            work.handle.emit("reply", {"text": "zwölf\nLinien"})
            replies = [await next_of(events) for events in both]
            work.go.set()
            ends = [await next_of(events) for events in both]
            return first, replies, ends

        with opened() as queue:
            job, work = queue.hold()
            assert work.begun.wait(LONG)
            for one, other in asyncio.run(story(job, work)):
                assert one == other
        assert job.events.listeners == 0

    def test_many_listeners_in_several_loops(self):
        with opened() as queue:
            job, work = queue.hold(result={"step": 1})
            heards = []

            async def all_of_them():
                events = [stream(job) for _ in range(5)]
                for one in events:
                    await next_of(one)
                ready.wait(LONG)
                heards.extend([[await next_of(one) for one in events]])

            ready = threading.Barrier(4)
            threads = [threading.Thread(target=asyncio.run, args=(all_of_them(),)) for _ in "abc"]
            for thread in threads:
                thread.start()
            ready.wait(LONG)
            work.go.set()
            for thread in threads:
                thread.join(LONG)
        assert {name for each in heards for _, name, _ in each} == {"end"}
        assert [len(each) for each in heards] == [5, 5, 5]

    def test_who_leaves_leaves_nothing_behind(self):
        async def story(job):
            task = asyncio.ensure_future(heard(job))
            events = stream(job)
            await next_of(events)
            while job.events.listeners < 2:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert job.events.listeners == 1
            await events.aclose()
            assert job.events.listeners == 0
            async for _ in stream(job):
                break
            never_begun = stream(job)
            await never_begun.aclose()

        with opened() as queue:
            job, _ = queue.hold()
            asyncio.run(story(job))
            assert job.events.listeners == 0

    def test_a_loop_that_was_closed_is_forgotten(self):
        with opened() as queue:
            job, work = queue.hold()
            assert work.begun.wait(LONG)
            loop = asyncio.new_event_loop()
            events = stream(job)
            loop.run_until_complete(next_of(events))
            loop.close()
            assert job.events.listeners == 1
            work.handle.emit("reply", {})
            assert job.events.listeners == 0
            let_go(job, work)
            assert job.state == "done"


class Clocked(asyncio.SelectorEventLoop):
    """An event loop whose time the test tells."""

    now = 0.0

    def time(self):
        return self.now

    async def settle(self, now=None):
        """Let everything happen that happens at a time."""
        self.now = self.now if now is None else now
        for _ in range(20):
            await asyncio.sleep(0)


@contextmanager
def clocked():
    with opened() as queue, asyncio.Runner(loop_factory=Clocked) as runner:
        job, work = queue.hold()
        assert work.begun.wait(LONG)
        yield runner, job, work


class TestPace:
    def test_progress_waits_for_its_time_and_the_last_is_not_lost(self):
        async def story(job, work):
            loop = asyncio.get_running_loop()
            events = stream(job)
            await anext(events)
            coming = asyncio.ensure_future(anext(events))
            for done in range(50):
                work.handle.progress(done, 100, "trees")
                await loop.settle()
                assert not coming.done()
            assert job.progress["done"] == 49  # for who asks, it is told at once
            await loop.settle(PACE)
            assert parsed(coming.result())[2]["progress"]["done"] == 49
            coming = asyncio.ensure_future(anext(events))
            work.handle.progress(50, 100, "trees")
            await loop.settle()
            assert not coming.done()
            work.handle.emit("reply", {})  # is not held back
            await loop.settle()
            assert parsed(coming.result())[1] == "reply"
            let_go(job, work)  # nor is the end, which tells the progress as well
            loop.now = 2 * PACE
            _, name, data = parsed(await anext(events))
            assert (name, data["progress"]["done"]) == ("end", 50)

        with clocked() as (runner, job, work):
            runner.run(story(job, work))

    def test_at_most_ten_in_a_second(self):
        async def listen(job, told):
            async for chunk in stream(job):
                told.append(parsed(chunk)[2]["progress"])

        async def story(job, work):
            loop, told = asyncio.get_running_loop(), []
            listener = asyncio.ensure_future(listen(job, told))
            await loop.settle()
            for i in range(1, 101):
                await loop.settle(i / 100)
                work.handle.progress(i, 100, "trees")
                await loop.settle()
            await loop.settle(1 + 2 * PACE)
            assert told[0] is None
            assert 5 <= len(told) - 1 <= 11
            assert told[-1]["done"] == 100
            let_go(job, work)
            await listener

        with clocked() as (runner, job, work):
            runner.run(story(job, work))

    def test_changes_of_state_and_place_are_told_at_once(self):
        async def story(queue):
            loop = asyncio.get_running_loop()
            (first, gate), (job, _) = queue.hold(), queue.hold()
            events = stream(job)
            await anext(events)
            coming = asyncio.ensure_future(anext(events))
            queue.hold()  # behind it: nothing to tell
            await loop.settle(2 * BEAT / 3)
            assert not coming.done()
            other, _ = queue.hold("bob")
            await loop.settle()
            assert parsed(coming.result())[2]["ahead"] == 1
            coming = asyncio.ensure_future(anext(events))
            queue.cancel(other)
            await loop.settle()
            assert parsed(coming.result())[2]["ahead"] == 0
            coming = asyncio.ensure_future(anext(events))
            let_go(first, gate)
            await loop.settle()
            assert parsed(coming.result())[2]["state"] == "running"
            await events.aclose()

        with opened() as queue, asyncio.Runner(loop_factory=Clocked) as runner:
            runner.run(story(queue))

    def test_the_same_progress_is_told_once(self):
        async def story(job, work):
            loop = asyncio.get_running_loop()
            events = stream(job)
            await anext(events)
            work.handle.progress(1, 2, "trees")
            loop.now = PACE
            await anext(events)
            coming = asyncio.ensure_future(anext(events))
            work.handle.progress(1, 2, "trees")
            await loop.settle(3 * PACE)
            assert not coming.done()
            coming.cancel()

        with clocked() as (runner, job, work):
            runner.run(story(job, work))

    def test_heartbeat_in_silence(self):
        async def story(job, work):
            loop = asyncio.get_running_loop()
            events = stream(job)
            await anext(events)
            for beat in (1, 2):
                coming = asyncio.ensure_future(anext(events))
                await loop.settle(beat * BEAT - 0.01)
                assert not coming.done()
                await loop.settle(beat * BEAT)
                assert coming.result() == HEARTBEAT == b": \n\n"
            coming = asyncio.ensure_future(anext(events))
            await loop.settle(2 * BEAT + 5)
            work.handle.emit("reply", {})
            await loop.settle()
            assert parsed(coming.result())[1] == "reply"
            coming = asyncio.ensure_future(anext(events))
            await loop.settle(3 * BEAT + 4)  # silence begins anew
            assert not coming.done()
            coming.cancel()

        with clocked() as (runner, job, work):
            runner.run(story(job, work))


class TestShutdown:
    def test_cancels_all_and_waits_for_what_runs(self):
        with opened() as queue:
            running, work = queue.hold(error=Cancelled())
            waiting, never = queue.hold()
            assert work.begun.wait(LONG)
            results = []
            closing = threading.Thread(target=lambda: results.append(queue.shutdown(LONG)))
            closing.start()
            with running.lock:
                assert running.lock.wait_for(lambda: running.stopping, LONG)
            assert waiting.state == "cancelled"
            assert work.handle.stopped()
            work.go.set()
            closing.join(LONG)
            assert results == [True]
            assert states((running, waiting)) == ["cancelled", "cancelled"]
            assert not never.begun.is_set()
            with pytest.raises(Closed):
                queue.hold()

    def test_what_does_not_stop_is_not_heard_any_more(self):
        with opened() as queue:
            job, work = queue.hold(result={"step": 1})
            assert work.begun.wait(LONG)
            assert not queue.shutdown(0.0)
            assert job.state == "cancelled"
            assert [name for _, name, _ in asyncio.run(heard(job))] == ["job", "end"]
            work.go.set()
            assert queue.shutdown(LONG)
            assert (job.state, job.result) == ("cancelled", None)

    def test_before_any_job(self):
        queue = Queue(2, 1, 1, 1)
        assert queue.shutdown(0.0)
        assert queue.shutdown(0.0)


def test_two_hundred_jobs_of_twenty_users():
    inside, most, guard = Counter(), Counter(), threading.Lock()

    def work(handle, dialog, i):
        with guard:
            inside[dialog] += 1
            most[dialog] = max(most[dialog], inside[dialog])
        for done in range(20):
            handle.progress(done, 20, "counting")
        handle.emit("reply", {"i": i})
        with guard:
            inside[dialog] -= 1
        return {"dialog": dialog, "i": i}

    with opened(workers=4, per_user=1, per_user_waiting=10, keep=200) as queue:
        jobs, begin = {}, threading.Barrier(20)

        def user(name):
            begin.wait(LONG)
            for i in range(10):
                dialog = f"{name} {i % 2}"
                jobs[name, i] = queue.submit(
                    name, "prefer", dialog, lambda h, d=dialog, i=i: work(h, d, i), lock_key=dialog
                )

        async def all_ends():
            return await asyncio.gather(*(heard(job) for job in jobs.values()))

        threads = [threading.Thread(target=user, args=(f"user{i}",)) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        assert len(jobs) == 200
        for *_, (_, name, data) in asyncio.run(all_ends()):
            assert (name, data["state"]) == ("end", "done")
    for (name, i), job in jobs.items():
        assert job.result == {"dialog": f"{name} {i % 2}", "i": i}
        assert job.events.listeners == 0
    assert set(most.values()) == {1}
