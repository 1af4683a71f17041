"""Two processes of a studio on one PostgreSQL store, alone and behind a proxy; one is killed."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest
from tests.studio import postgres
from tests.studio.running import Studio
from tests.studio.serving import SLOW_MEMBERS, SLOW_SEARCH, Client, client_of

from margrave.studio._tables import JobRow
from margrave.studio.guard import LOCAL
from margrave.studio.job_table import LEASE, JobTable
from margrave.studio.store import Store

PICK_UP = 30.0  # seconds
LONG = ["logistic", "extra-trees"]  # members that take seconds to train


class Cluster:
    """Studios on one store; a killed one is replaced by a new one."""

    def __init__(self, folder: Path, url: str):
        self.folder, self.url, self.studios = folder, url, []
        self.table = JobTable(Store(url).open(), waiting=1)

    def pair(self) -> list[Studio]:
        """Two running studios."""
        self.studios = [one for one in self.studios if one.process.poll() is None]
        while len(self.studios) < 2:
            self.studios.append(Studio(self.folder, store=self.url))
        return self.studios

    def close(self) -> None:
        for studio in self.studios:
            studio.kill()
        self.table.store.close()

    def picked_up(self, job: str, end: Callable[[], object]) -> float:
        """End the process that runs a job; the seconds until another one has begun it."""
        first = self.table.find(LOCAL, job).process
        assert first is not None
        end()
        since = monotonic()
        while (found := self.table.find(LOCAL, job)).process in (first, None):
            assert found.state != "done", "The first process has finished the job."
            assert monotonic() - since < PICK_UP, f"The job is {found.state} in {found.process}."
            sleep(0.05)
        seconds = monotonic() - since
        print(f"A job was picked up after {seconds:.1f} s.")
        return seconds

    def expire(self, job: str) -> None:
        """Let the lease of a job end now, as if nobody had extended it for all its time."""
        with self.table.store.write() as session:
            session.get(JobRow, job).expires -= LEASE


@pytest.fixture(scope="module")
def cluster(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with postgres.database(server) as url:
        made = Cluster(tmp_path_factory.mktemp("processes"), url)
        yield made
        made.close()


@pytest.fixture
def connect() -> Iterator[Callable[[Studio], Client]]:
    with ExitStack() as opened:
        yield lambda studio: opened.enter_context(client_of(studio.url))


@pytest.fixture
def both(cluster: Cluster, connect: Callable[[Studio], Client]) -> list[Client]:
    """The user's programs, one at each of two processes."""
    return [connect(studio) for studio in cluster.pair()]


def ended(user: Client, job: str) -> dict:
    """A job at its end."""
    *_, (name, last) = user.events(job)
    assert name == "end"
    return last


def begun(user: Client, members: list[str], table: str = "pima") -> tuple[str, str]:
    """A dialog whose training has begun: its path, and the job."""
    body = {"table": user.table(table), "target": "target", "members": members}
    record = user.ok("/dialogs", body)
    return f"/dialogs/{record['dialog']['id']}", record["job"]["id"]


@contextmanager
def proxy(urls: list[str]) -> Iterator[str]:
    """A reverse proxy that sends each request to the next process that runs; its address."""
    turn = cycle(url.partition("?")[0] for url in urls)

    class Forward(BaseHTTPRequestHandler):
        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            for url in (next(turn) for _ in urls):
                try:
                    with httpx.stream(
                        self.command,
                        url.rstrip("/") + self.path,
                        headers=dict(self.headers),  # with the host that the user knows
                        content=body,
                        timeout=120,
                        trust_env=False,
                    ) as answer:
                        return self.send(answer)
                except httpx.ConnectError:
                    continue
            return self.send_error(502)

        def send(self, answer: httpx.Response) -> None:
            self.send_response_only(answer.status_code)
            for name, value in answer.headers.multi_items():
                if name not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            for part in answer.iter_raw():
                self.wfile.write(part)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        do_GET = do_POST = do_PATCH = do_DELETE = forward  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Forward) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/?{urls[0].partition('?')[2]}"
        server.shutdown()


@pytest.mark.core
@pytest.mark.slow
def test_training_of_a_killed_process_is_finished_by_the_other(cluster, connect):
    one, other = cluster.pair()
    dialog, job = begun(connect(one), LONG)
    for _, record in connect(one).events(job):
        if record["progress"] and record["progress"]["done"] > 2:
            break

    def end() -> None:
        one.kill()
        cluster.expire(job)

    cluster.picked_up(job, end)
    user = connect(other)
    assert ended(user, job)["state"] == "done"
    found = user.ok(dialog)
    assert (found["state"], len(found["steps"]), found["job"]) == ("ready", 1, None)
    assert user.asked(dialog, "fp <= 30", strategies=["move"])["met"]


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("end", [Studio.kill, Studio.stop])
def test_a_search_of_an_ended_process_is_finished_by_the_other(cluster, connect, end):
    one, other = cluster.pair()
    user = connect(one)
    dialog = user.dialog("spambase", members=SLOW_MEMBERS)
    job = user.ok(f"{dialog}/prefer", SLOW_SEARCH)
    assert job["state"] == "running"
    cluster.picked_up(job["id"], lambda: end(one))
    user = connect(other)
    last = ended(user, job["id"])
    assert (last["state"], last["result"]) == ("done", {"step": 1})
    found = user.ok(dialog)
    assert (found["position"], len(found["steps"])) == (1, 2)
    assert found["steps"][1]["preference"] == "fp <= 8"


@pytest.mark.full
@pytest.mark.slow
def test_a_process_that_stands_still_for_long_stores_no_second_step(cluster, connect):
    one, other = cluster.pair()
    users = [connect(one), connect(other)]
    dialog = users[0].dialog("spambase", members=SLOW_MEMBERS)
    job = users[0].ok(f"{dialog}/prefer", SLOW_SEARCH)["id"]
    group = one.process.pid
    try:
        cluster.picked_up(job, lambda: os.killpg(group, signal.SIGSTOP))
        assert ended(users[1], job)["result"] == {"step": 1}
    finally:
        os.killpg(group, signal.SIGCONT)
    assert ended(users[0], job)["result"] == {"step": 1}
    # It is done with its own search when it can do the next one.
    assert users[0].asked(dialog, "fp <= 20", strategies=["move"], keep=False)["number"] == 2
    records = [user.ok(dialog) for user in users]
    assert records[0] == records[1]
    assert [step["preference"] for step in records[0]["steps"]] == [None, "fp <= 8", "fp <= 20"]


@pytest.mark.full
@pytest.mark.slow
def test_what_was_accepted_survives_a_kill_right_after_the_reply(cluster, connect):
    one, other = cluster.pair()
    user = connect(one)
    dialog = user.dialog("pima", own=True)
    user.asked(dialog, "fp <= 60", strategies=["move"])
    user.asked(dialog, "fp <= 50", strategies=["move"])
    assert user.finished(user.post(f"{dialog}/accept", {"confidence": 0.8}))["state"] == "done"
    one.kill()
    user = connect(other)
    found = user.ok(dialog)
    assert ([model["step"] for model in found["accepted"]], found["used_up"]) == ([2], True)
    assert user.get(f"{dialog}/accepted/1/model.skops").status_code == 200
    user.ok(f"{dialog}/goto", {"step": 1})
    refused = user.finished(user.post(f"{dialog}/accept", {"confidence": 0.8}))
    assert (refused["state"], refused["code"]) == ("failed", "used_up")


@pytest.mark.full
@pytest.mark.slow
def test_every_process_shows_the_same_dialog_at_once(cluster, both):
    """Requests go to the processes in turns; after each, both show the same."""
    with proxy([studio.url for studio in cluster.pair()]) as url, client_of(url) as user:
        dialog = user.dialog("pima", own=True)

        def same(path: str = "", **options: object) -> dict:
            one, other = (each.ok(f"{dialog}{path}", **options) for each in both)
            assert one == other
            return one

        requests = [
            ("prefer", {"wants": ["fp <= 60"], "strategies": ["move"]}),
            ("prefer", {"wants": ["fp <= 50"], "strategies": ["move"]}),
            ("undo", {}),
            ("prefer", {"wants": ["fn <= 70"], "keep": False, "strategies": ["move", "retune"]}),
            ("goto", {"step": 2}),
            ("undo", {}),
            ("undo", {}),
            ("redo", {}),
            ("prefer", {"wants": ["fp <= 40"], "at": 3, "keep": False}),
            ("accept", {"confidence": 0.8, "reserve": True}),
            ("undo", {}),
            ("redo", {}),
        ]
        for action, body in requests:
            answer = user.post(f"{dialog}/{action}", body)
            if answer.status_code == 202:
                assert user.finished(answer)["state"] == "done"
            else:
                assert answer.status_code == 200, answer.text
            found = same()
            assert same("/frontier")["best"]
            counts = found["steps"][found["position"]]["after"]["counts"]
            cell = {"true": "neg", "predicted": "pos"}
            assert same("/rows", params=cell)["total"] == counts[0][1]
            for path in ("/members", "/winners", "/dialog.json"):
                same(path)
    assert [step["parent"] for step in found["steps"]] == [None, 0, 1, 1, 3]
    assert (found["position"], found["undone"]) == (4, [])
    assert [model["step"] for model in found["accepted"]] == [4]


@pytest.mark.full
@pytest.mark.slow
def test_a_job_is_followed_and_stopped_through_the_other_process(cluster, both):
    one, other = both
    _, job = begun(one, LONG)
    reports = [record["progress"] for _, record in other.events(job) if record["progress"]]
    seen = [report["done"] / report["total"] for report in reports]
    assert seen == sorted(seen)
    assert any(0 < fraction < 1 for fraction in seen)  # it was seen while it ran
    dialog, job = begun(one, LONG, "spambase")
    other.ok(f"/jobs/{job}/cancel", {})
    assert ended(other, job)["state"] == "cancelled"
    assert one.ok(dialog)["state"] == other.ok(dialog)["state"] == "failed"


@pytest.mark.full
@pytest.mark.slow
def test_at_the_same_time_different_dialogs_change_and_one_dialog_changes_once(both):
    one, other = both
    dialogs = [user.dialog("spambase", members=SLOW_MEMBERS) for user in both]

    def ask(user: Client, dialog: str) -> httpx.Response:
        return user.post(f"{dialog}/prefer", SLOW_SEARCH)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, both, dialogs))
        for user, answer in zip((other, one), answers, strict=True):
            assert user.finished(answer)["result"] == {"step": 1}
        answers = list(pool.map(ask, both, dialogs[:1] * 2))
        assert sorted(answer.status_code for answer in answers) == [202, 409]
        for user, answer in zip(both, answers, strict=True):
            if answer.status_code == 202:
                assert user.finished(answer)["result"] == {"step": 2}

        def go(number: int) -> httpx.Response:
            path, body = [("undo", {}), ("redo", {}), ("goto", {"step": number % 3})][number % 3]
            return both[number % 2].post(f"{dialogs[0]}/{path}", body)

        answers = list(pool.map(go, range(24)))
    assert {answer.status_code for answer in answers} <= {200, 400, 409}
    assert 200 in {answer.status_code for answer in answers}
    found = one.ok(dialogs[0])
    assert found == other.ok(dialogs[0])
    assert len(found["steps"]) == 3
    for user in both:
        rows = user.ok(f"{dialogs[0]}/rows", params={"true": "nonspam", "predicted": "spam"})
        assert rows["total"] == found["steps"][found["position"]]["fp"]
