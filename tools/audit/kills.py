"""Kills: a studio is ended by SIGKILL at random moments, and started again on the same store.

A user uploads tables, trains, edits, accepts and deletes without a pause, and notes what the studio
has answered as saved. After each start the store opens, everything in the notes is there, no step
is stored twice, and no certification set is used twice.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
from tests.studio import postgres
from tests.studio.serving import Client
from tools.audit._attacks import Attack
from tools.audit._studio import FAST, Server, served
from tools.system import postgresql

ROWS = 900
LONGEST = 10.0  # seconds until a kill


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
    """

    tables: set[str] = field(default_factory=set)
    dialogs: dict[str, list[Any]] = field(default_factory=dict)
    accepted: dict[str, list[str]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)

    def see(self, record: dict[str, Any]) -> None:
        """Note a dialog as the studio shows it."""
        self.dialogs[record["id"]] = [_lasting(step) for step in record["steps"]]
        self.accepted[record["id"]] = [one["text"] for one in record["accepted"]]


def _lasting(step: dict[str, Any]) -> Any:
    """What of a step may not change."""
    return step["preference"], step["after"], step.get("parent")


def new_table(rng: random.Random) -> bytes:
    """A table with rows that no other one has, so that no other dialog has certified them."""
    rows = [(rng.random(), rng.random()) for _ in range(ROWS)]
    lines = [f"{a},{b},{'yes' if a + b / 4 > 0.7 else 'no'}" for a, b in rows]
    return "\n".join(["a,b,target", *lines]).encode()


def work(user: Client, notes: Notes, rng: random.Random) -> None:
    """Use the studio without a pause, until the connection breaks."""
    while True:
        uploaded = user.http.post("/api/tables", files={"file": ("table.csv", new_table(rng))})
        table = uploaded.raise_for_status().json()["id"]
        notes.tables.add(table)
        body = {"table": table, "target": "target", "members": FAST, "seed": rng.randrange(1000)}
        begun = user.post("/dialogs", body).raise_for_status().json()
        dialog = begun["dialog"]["id"]
        notes.dialogs[dialog], notes.accepted[dialog] = [], []
        _follow(user, begun["job"])
        notes.see(user.ok(f"/dialogs/{dialog}"))
        for _ in range(rng.randrange(1, 4)):
            want = {"wants": [f"fp <= {rng.randrange(5, 60)}"], "keep": False}
            _follow(user, user.post(f"/dialogs/{dialog}/prefer", want).raise_for_status().json())
            notes.see(user.ok(f"/dialogs/{dialog}"))
        if rng.random() < 0.3:
            user.post(f"/dialogs/{dialog}/undo")
        _follow(user, user.post(f"/dialogs/{dialog}/accept", {"confidence": 0.7}).json())
        notes.see(user.ok(f"/dialogs/{dialog}"))
        if rng.random() < 0.3:
            notes.doubtful.add(dialog)
            user.http.delete(f"/api/dialogs/{dialog}").raise_for_status()
            notes.deleted.add(dialog)


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
        response = user.post(f"/dialogs/{dialog}/accept", {"confidence": 0.7})
        if response.status_code == 202:
            _follow(user, response.json())
        after = user.ok(f"/dialogs/{dialog}")
        if len(after["accepted"]) > len(texts):
            wrong.append(f"the certification set of dialog {dialog} was used again")
    notes.see(found)
    return wrong


def round_of(server: Server, notes: Notes, rng: random.Random) -> list[str]:
    """Work, kill at a random moment, start again, and compare."""
    failures: list[str] = []

    def use() -> None:
        try:
            with server.client() as user:
                work(user, notes, rng)
        except (httpx.TransportError, httpx.StreamError):
            return  # the studio was killed
        except Exception as error:
            failures.append(f"before the kill: {type(error).__name__}: {str(error)[:200]}")

    worker = threading.Thread(target=use)
    worker.start()
    threading.Event().wait(rng.uniform(0.1, LONGEST))
    server.kill()
    worker.join()
    server.start()
    with server.client() as user:
        return failures + check(user, notes)


def kill_often(server: Server, name: str, n: int, rng: random.Random) -> Attack:
    """Kill a studio `n` times."""
    attack, notes = Attack(name, "all that was answered as saved is there, once"), Notes()
    for _ in range(n):
        with attack.trial("start or check after a kill"):
            wrong = round_of(server, notes, rng)
            if wrong:
                attack.failures.append("; ".join(wrong))
    n_steps = sum(map(len, notes.dialogs.values()))
    n_accepted = sum(map(len, notes.accepted.values()))
    attack.measured = f"{len(notes.dialogs)} dialogs, {n_steps} steps, {n_accepted} certificates"
    return attack


def run(seed: int, count: int | None) -> Iterator[Attack]:
    """Kill studios on SQLite, and a fourth as often on PostgreSQL if it is installed."""
    rng, n = random.Random(seed), count or 32  # noqa: S311
    with served() as server:
        yield kill_often(server, "kill -9, SQLite", n, rng)
    programs = postgresql()
    if programs is None or n < 4:
        return
    with ExitStack() as opened:
        url = opened.enter_context(postgres.running(programs))
        server = opened.enter_context(served(opened.enter_context(postgres.database(url))))
        yield kill_often(server, "kill -9, PostgreSQL", n // 4, rng)
        server.kill()  # before its database is dropped
