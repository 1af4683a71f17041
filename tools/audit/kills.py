"""Kills: a studio is ended by SIGKILL at random moments, and started again on the same store.

A user uploads tables, trains, edits, accepts and deletes without a pause, and notes what the studio
has answered as saved. Every other kill comes while a model is being accepted. After each start the
store opens, everything in the notes is there, no step is stored twice, no certification set is used
twice, and what one dialog has used of the rows of a table, another dialog on them cannot use.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import gettempdir
from time import sleep
from typing import Any

import httpx
from tests.studio import postgres, running
from tests.studio.serving import Client
from tools.audit._attacks import Attack
from tools.audit._studio import FAST, Server, served
from tools.system import postgresql

LONGEST = 6.0  # seconds until a kill
ACCEPTING = 0.08  # seconds from the request to accept to a kill, at most


def make_table(rng: random.Random) -> bytes:
    """Write a table whose rows no other table has."""
    lines = ["a,b,target"]
    for _ in range(900):
        a, b = rng.uniform(0, 100), rng.randrange(13)
        lines.append(f"{a!r},{b},{'yes' if a + b > 55 else 'no'}")
    return "\n".join(lines).encode()


@dataclass
class Notes:
    """What the studio has answered as saved.

    Attributes
    ----------
    tables : set of str
        Ids of tables.
    dialogs : dict
        For each dialog, the records of its steps in order.
    accepted : dict
        For each dialog, the texts of its certificates.
    deleted : set of str
        Ids of dialogs that the studio has deleted.
    doubtful : set of str
        Ids of dialogs whose deletion was requested and not answered.
    others : dict
        For each dialog whose model the user requested to accept, another one on the same rows.
    accepting : Event
        Set while the studio accepts a model.
    n_accepting, n_refused : int
        How many kills came meanwhile, and how many other dialogs could not use the rows again.
    """

    tables: set[str] = field(default_factory=set)
    dialogs: dict[str, list[Any]] = field(default_factory=dict)
    accepted: dict[str, list[str]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    others: dict[str, str] = field(default_factory=dict)
    accepting: threading.Event = field(default_factory=threading.Event)
    n_accepting: int = 0
    n_refused: int = 0

    def see(self, record: dict[str, Any]) -> None:
        """Note a dialog as the studio shows it."""
        self.dialogs[record["id"]] = [_lasting(step) for step in record["steps"]]
        self.accepted[record["id"]] = [one["text"] for one in record["accepted"]]


def _lasting(step: dict[str, Any]) -> Any:
    """What of a step may not change."""
    return step["preference"], step["after"], step.get("parent")


def work(user: Client, notes: Notes, rng: random.Random) -> None:
    """Use the studio without a pause, until the connection breaks."""
    while True:
        uploaded = user.http.post("/api/tables", files={"file": ("table.csv", make_table(rng))})
        table = uploaded.raise_for_status().json()["id"]
        notes.tables.add(table)
        seed = rng.randrange(1000)
        other, dialog = (_train(user, notes, table, seed + i) for i in (1, 0))
        for one, n in ((other, 1), (dialog, rng.randrange(1, 4))):
            for _ in range(n):
                want = {"wants": [f"fp <= {rng.randrange(5, 60)}"], "keep": False}
                _follow(user, user.post(f"/dialogs/{one}/prefer", want).raise_for_status().json())
                notes.see(user.ok(f"/dialogs/{one}"))
        if rng.random() < 0.3:
            user.post(f"/dialogs/{dialog}/undo")
        notes.others[dialog] = other
        notes.accepting.set()
        _accept(user, dialog)
        notes.see(user.ok(f"/dialogs/{dialog}"))
        notes.accepting.clear()
        if rng.random() < 0.3:
            notes.doubtful.add(dialog)
            user.http.delete(f"/api/dialogs/{dialog}").raise_for_status()
            notes.deleted.add(dialog)


def _train(user: Client, notes: Notes, table: str, seed: int) -> str:
    """Train a dialog; return its id."""
    body = {"table": table, "target": "target", "members": FAST, "seed": seed}
    begun = user.post("/dialogs", body).raise_for_status().json()
    dialog: str = begun["dialog"]["id"]
    notes.dialogs[dialog], notes.accepted[dialog] = [], []
    _follow(user, begun["job"])
    notes.see(user.ok(f"/dialogs/{dialog}"))
    return dialog


def _accept(user: Client, dialog: str) -> str | None:
    """Accept the current model of a dialog; return the code of the refusal, if it is refused."""
    response = user.post(f"/dialogs/{dialog}/accept", {"confidence": 0.7})
    record = response.json()
    if response.status_code == 202:
        _follow(user, record)
        record = user.ok(f"/jobs/{record['id']}")
    code: str | None = record.get("code")
    return code


def _follow(user: Client, job: dict[str, Any]) -> None:
    """Wait for the end of a job."""
    if job.get("state") in ("waiting", "running"):
        for _ in user.events(job["id"]):
            pass


def check(user: Client, notes: Notes) -> list[str]:
    """Compare the studio with the notes; return what is wrong."""
    wrong = []
    shown = {line["id"] for line in user.ok("/dialogs")["dialogs"]}
    wrong += [f"dialog {one} is back after its deletion" for one in notes.deleted & shown]
    missing = set(notes.dialogs) - notes.doubtful - shown
    wrong += [f"dialog {one} is lost" for one in missing]
    for table in notes.tables:
        if user.get(f"/tables/{table}").status_code != 200:
            wrong.append(f"table {table} is lost")
    for dialog in sorted(shown & set(notes.dialogs)):
        wrong += check_dialog(user, dialog, notes)
    for dialog, other in notes.others.items():
        wrong += check_other(user, dialog, other, notes, deleted=dialog not in shown)
    notes.others.clear()
    return wrong


def check_dialog(user: Client, dialog: str, notes: Notes) -> list[str]:
    """Compare a dialog with the notes, once its job is over; then note what it shows now."""
    found = user.ok(f"/dialogs/{dialog}")
    if found["job"] is not None:
        _follow(user, found["job"])
        found = user.ok(f"/dialogs/{dialog}")
    wrong = []
    before, steps = notes.dialogs[dialog], [_lasting(step) for step in found["steps"]]
    if steps[: len(before)] != before:
        wrong.append(f"steps of dialog {dialog} are lost or changed")
    if len(steps) > len(before) + 1 + (not before):  # the step that the kill interrupted
        wrong.append(f"dialog {dialog} has {len(steps) - len(before)} steps more than requested")
    texts = [one["text"] for one in found["accepted"]]
    if texts[: len(notes.accepted[dialog])] != notes.accepted[dialog]:
        wrong.append(f"a certificate of dialog {dialog} is lost or changed")
    if len(texts) > 1:
        wrong.append(f"the certification set of dialog {dialog} was used {len(texts)} times")
    if texts:
        _accept(user, dialog)
        after = user.ok(f"/dialogs/{dialog}")
        if len(after["accepted"]) > len(texts):
            wrong.append(f"the certification set of dialog {dialog} was used again")
    notes.see(found)
    return wrong


def check_other(user: Client, dialog: str, other: str, notes: Notes, *, deleted: bool) -> list[str]:
    """Try to use the rows that a dialog has used in another dialog on them."""
    used = bool(notes.accepted[dialog]) or (
        not deleted and user.ok(f"/dialogs/{dialog}")["used_up"]
    )
    if not used:
        return []
    code = _accept(user, other)
    if code == "used_up" and not user.ok(f"/dialogs/{other}")["accepted"]:
        notes.n_refused += 1
        return []
    return [f"dialog {other} could use the rows that dialog {dialog} has used ({code})"]


def round_of(server: Server, notes: Notes, rng: random.Random, *, accepting: bool) -> list[str]:
    """Work, kill at a random moment or while a model is accepted, start again, and compare."""
    failures: list[str] = []

    def use() -> None:
        try:
            with server.client() as user:
                work(user, notes, rng)
        except (httpx.TransportError, httpx.StreamError):
            return  # the studio was killed
        except Exception as error:
            failures.append(f"before the kill: {type(error).__name__}: {str(error)[:200]}")

    notes.accepting.clear()
    worker = threading.Thread(target=use)
    worker.start()
    if accepting:
        notes.accepting.wait(300)
        sleep(rng.uniform(0, ACCEPTING))
    else:
        sleep(rng.uniform(0.1, LONGEST))
    server.kill()
    worker.join()
    notes.n_accepting += notes.accepting.is_set()  # it stays so if there was no answer
    server.start()
    with server.client() as user:
        return failures + check(user, notes)


def kill_often(server: Server, name: str, n: int, rng: random.Random) -> Attack:
    """Kill a studio `n` times."""
    attack, notes = Attack(name, "all that was answered as saved is there, once"), Notes()
    for number in range(n):
        with attack.trial("start or check after a kill"):
            wrong = round_of(server, notes, rng, accepting=number % 2 == 0)
            if wrong:
                attack.failures.append("; ".join(wrong))
    attack.check(notes.n_accepting > 0, "no kill came while a model was accepted")
    n_steps = sum(map(len, notes.dialogs.values()))
    n_accepted = sum(map(len, notes.accepted.values()))
    attack.measured = (
        f"{len(notes.dialogs)} dialogs, {n_steps} steps, {n_accepted} certificates, "
        f"{notes.n_accepting} kills while accepting, {notes.n_refused} other dialogs refused"
    )
    return attack


def start_second(server: Server) -> Attack:
    """Delete the lock file of a running studio, and start another one on its store."""
    attack = Attack("another studio without the lock file", "it starts only after a kill -9")
    for killed in (False, True):
        (server.folder / "studio.db.lock").unlink(missing_ok=True)
        if killed:
            server.kill()
        try:
            running.Studio(server.folder, environment={"MARGRAVE_TOKEN": server.token}).kill()
            started = True
        except AssertionError:
            started = False
        attack.check(started == killed, f"killed: {killed}, started: {started}")
    return attack


def leave_upload(server: Server) -> Attack:
    """Kill a studio as soon as it has begun to read an upload, and start it again."""
    attack = Attack("an upload at a kill -9", "the next studio removes the file")
    table = {"file": ("table.csv", b"a,b\n" + b"1,2\n" * 10**5)}

    def upload() -> None:
        with server.client() as user, suppress(httpx.TransportError):
            user.http.post("/api/tables", files=table)

    def files() -> set[Path]:
        return set(Path(gettempdir()).glob("margrave-*/upload.csv"))

    before, worker = files(), threading.Thread(target=upload)
    worker.start()
    while worker.is_alive() and not files() - before:
        sleep(0.001)
    server.kill()
    worker.join()
    left = files() - before
    server.start()
    attack.check(not left & files(), "the file is still there")
    attack.measured = f"{len(left)} files after the kill"
    return attack


def run(seed: int, count: int | None) -> Iterator[Attack]:
    """Kill studios on SQLite, and a fourth as often on PostgreSQL if it is installed."""
    rng, n = random.Random(seed), count or 32  # noqa: S311
    with served() as server:
        yield kill_often(server, "kill -9, SQLite", n, rng)
        yield start_second(server)
        server.start()
        yield leave_upload(server)
    programs = postgresql()
    if programs is None or n < 4:
        return
    with ExitStack() as opened:
        url = opened.enter_context(postgres.running(programs))
        server = opened.enter_context(served(opened.enter_context(postgres.database(url))))
        yield kill_often(server, "kill -9, PostgreSQL", n // 4, rng)
        server.kill()  # before its database is dropped
