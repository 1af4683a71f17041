"""Damaged stores: a studio refuses each, or says of what it cannot read that the store is damaged.

A store is damaged before the studio starts, and while it runs. No start and no response fails in
another way, and no response quotes what the store has.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.studio.serving import Client, serving
from tools.audit._attacks import Attack
from tools.audit._studio import FAST

from margrave.studio.store import StoreError

RAW = ("codec", "Could not decode", "Expecting", "isoformat", "Parquet", "no such table:")
"""In a response they are messages of a library, not of the studio, which may say that there is no
such dialog when its key is damaged."""

Damage = Callable[[random.Random, bytes], bytes]


def change_bytes(rng: random.Random, store: bytes) -> bytes:
    """Change a few bytes, or many."""
    damaged = bytearray(store)
    for _ in range(rng.choice((20, 200, 3000))):
        damaged[rng.randrange(100, len(store))] = rng.randrange(256)
    return bytes(damaged)


def change_texts(rng: random.Random, store: bytes) -> bytes:
    """Change bytes of JSON and of dates."""
    damaged = bytearray(store)
    marks = (b'":', b'{"', b"20", b" 0")
    places = [i for i in range(len(store) - 8) if store[i : i + 2] in marks]
    for _ in range(30):
        damaged[rng.choice(places) + rng.randrange(4)] = rng.choice(b'\xff\x80\x00"{')
    return bytes(damaged)


def change_page(rng: random.Random, store: bytes) -> bytes:
    """Replace a page by zeros or noise."""
    place = rng.randrange(0, len(store), 4096)
    page = rng.choice((bytes(4096), rng.randbytes(4096)))
    return store[:place] + page + store[place + 4096 :]


def drop_part(rng: random.Random, store: bytes) -> bytes:
    """Drop the end or the beginning."""
    place = rng.randrange(1, len(store))
    return rng.choice((store[:place], store[place:]))


def replace(rng: random.Random, store: bytes) -> bytes:
    """Put something else in its place."""
    return rng.choice((b"a,b\n" * rng.randrange(1, 5000), bytes(len(store)), rng.randbytes(9000)))


def requests(user: Client, dialog: str, table: str) -> list[str]:
    """Send requests that read most of the store; return what is wrong with the responses."""
    wrong = []
    search = {"wants": ["fp <= 50"], "strategies": ["move"], "at": 0}
    for path, body in (
        ("/dialogs", None),
        (f"/tables/{table}", None),
        (dialog, None),
        *((f"{dialog}/{view}", None) for view in ("frontier", "members", "rows", "report.html")),
        (f"{dialog}/prefer", search),
        (f"{dialog}/accept", {"confidence": 0.7}),
    ):
        user.http.headers["Connection"] = "close"
        response = user.get(path) if body is None else user.post(path, body)
        if any(raw in response.text for raw in RAW):
            wrong.append(f"{path}: {response.status_code} {response.text[:120]}")
    return wrong


def run(seed: int, count: int | None) -> Iterator[Attack]:
    """Damage a store in each way `count` times."""
    with TemporaryDirectory(prefix="margrave-audit-") as name:
        first = Path(name, "first")
        first.mkdir()
        with serving(first) as (_, user):
            dialog = user.dialog("pima", members=FAST)
            user.asked(dialog, "fp <= 60", strategies=["move"])
            table = user.ok(dialog)["table"]["id"]
        with closing(sqlite3.connect(first / "studio.db")) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store = (first / "studio.db").read_bytes()
        for damage in (change_bytes, change_texts, change_page, drop_part, replace):
            for running in (False, True):
                when = "while a studio runs" if running else "before a start"
                attack = Attack(
                    f"{damage.__name__.replace('_', ' ')} of the store {when}",
                    "refused as damaged, or shown without raw messages",
                )
                for number in range(count or 20):
                    rng = random.Random(f"{seed} {number}")  # noqa: S311
                    with TemporaryDirectory(dir=name) as folder:
                        wrong = _attack(Path(folder), store, damage, rng, running, dialog, table)
                    attack.check(not wrong, f"number {number}: {wrong[:2]}")
                yield attack


def _attack(
    folder: Path, store: bytes, damage: Damage, rng: random.Random, running: bool, *ids: str
) -> list[str]:
    """Damage a copy of the store, and use it."""
    file = folder / "studio.db"
    file.write_bytes(store if running else damage(rng, store))
    try:
        with serving(folder) as (_, user):
            if running:
                with file.open("r+b") as opened:
                    opened.write(damage(rng, store))
            return requests(user, *ids)
    except StoreError:
        return []
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:120]}"]
