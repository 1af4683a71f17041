"""A studio in this process, behind real HTTP: what it holds can be looked at from the tests."""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from unittest.mock import patch

import httpx
import pandas
from fastapi import FastAPI
from sqlalchemy import delete

from margrave import datasets
from margrave.studio import Limits, Settings, open_studio
from margrave.studio._tables import AccountRow
from margrave.studio.context import Studio
from margrave.studio.launch import listening, server_of

_NUMBERS = count(1)  # of tables with rows of their own
_DESCRIPTION: dict[str, object] = {}
# A search that is still running when the request for it returns, also on a fast machine.
SLOW_MEMBERS = ["logistic", "martingale", "rbf-logistic"]
SLOW_SEARCH = {"wants": ["fp <= 8"], "strategies": ["retune"], "at": 0, "keep": False}
CERTIFICATES = ssl.create_default_context()  # read once, not by each client
SERVED: list[Studio] = []
"""The studios of this process."""


def forget_uses() -> None:
    """Let no guarantee have used any rows, so that a test may certify on the table of another."""
    for studio in SERVED:
        with studio.store.write() as session:
            session.execute(delete(AccountRow))


def described(app: FastAPI, describe: Callable[[FastAPI], dict] = FastAPI.openapi) -> dict:
    """The description of the API, made once: it is the same for each studio, and takes long."""
    app.openapi_schema = _DESCRIPTION or describe(app)
    _DESCRIPTION.update(app.openapi_schema)
    return app.openapi_schema


@dataclass
class Client:
    """A user's program: requests with the header that the studio wants, and jobs followed."""

    http: httpx.Client

    def get(self, path: str, **options: object) -> httpx.Response:
        return self.http.get(f"/api{path}", **options)

    def post(self, path: str, body: object = None, **options: object) -> httpx.Response:
        return self.http.post(f"/api{path}", json={} if body is None else body, **options)

    def ok(self, path: str, body: object = None, **options: object) -> dict:
        """What a request gives, that has to go well; a GET without a body."""
        found = self.get(path, **options) if body is None else self.post(path, body, **options)
        assert found.is_success, (path, found.status_code, found.text)
        return found.json()

    def events(self, job: str, **options: object) -> Iterator[tuple[str, dict]]:
        """The events of a job, until it ends."""
        with self.http.stream("GET", f"/api/jobs/{job}/events", **options) as stream:
            assert stream.status_code == 200
            name = ""
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))

    def finished(self, answer: httpx.Response) -> dict:
        """The job that a request has begun, at its end."""
        assert answer.status_code == 202, answer.text
        record = answer.json()
        job = record.get("job", record)
        name, last = list(self.events(job["id"]))[-1]
        assert name == "end"
        return last

    def table(self, name: str = "pima") -> str:
        """A set of the package as a table."""
        return self.ok("/tables/bundled", {"name": name})["id"]

    def own_table(self, name: str = "pima") -> str:
        """A set of the package with a column moved: no other table has its rows."""
        bunch = datasets.load(name)
        table = pandas.DataFrame(bunch.data, columns=bunch.feature_names)
        table.iloc[:, 0] += 1000 * next(_NUMBERS)
        table["target"] = bunch.target
        file = (f"{name}.csv", table.to_csv(index=False).encode())
        answer = self.http.post("/api/tables", files={"file": file})
        assert answer.status_code == 201, answer.text
        return answer.json()["id"]

    def dialog(self, name: str = "pima", *, own: bool = False, **choices: object) -> str:
        """A trained dialog on a set of the package, or on rows of its own; two quick members."""
        table = self.own_table(name) if own else self.table(name)
        given = {"target": "target", "members": ["logistic", "qda"], **choices}
        begun = self.post("/dialogs", {"table": table, **given})
        assert self.finished(begun)["state"] == "done"
        return f"/dialogs/{begun.json()['dialog']['id']}"

    def asked(self, dialog: str, *wants: str, **choices: object) -> dict:
        """The step that a request led to."""
        begun = self.post(f"{dialog}/prefer", {"wants": wants, **choices})
        last = self.finished(begun)
        assert last["state"] == "done", last
        return self.ok(dialog)["steps"][last["result"]["step"]]


@contextmanager
def serving(
    folder: Path,
    *,
    token: str | None = None,
    proxies: Sequence[str] = (),
    send_buffer: int | None = None,
    **limits: int,
) -> Iterator[tuple[Studio, "Client"]]:
    """A studio with its store in a folder, and a client of it.

    `send_buffer` is the number of bytes that the system takes from the studio in advance.
    """
    settings = Settings.of(
        store=f"sqlite:///{folder / 'studio.db'}",
        token=token,
        limits=Limits(**limits),
        port=0,
        proxies=proxies,
    )
    with listening(settings, 0) as where:
        if send_buffer is not None:
            where.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        settings = replace(settings, port=where.getsockname()[1])
        studio = open_studio(settings)
        up = threading.Event()
        with patch.object(FastAPI, "openapi", described):
            server = server_of(studio, up.set)
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[where])), daemon=True
        )
        thread.start()
        assert up.wait(60)
        SERVED.append(studio)
        try:
            with connected(studio.settings) as client:
                yield studio, client
        finally:
            SERVED.remove(studio)
            server.should_exit = True
            thread.join(60)


@contextmanager
def connected(settings: Settings, **options: object) -> Iterator[Client]:
    """A client of a studio; if that has several users, it is one of its own."""
    with client_of(f"http://127.0.0.1:{settings.port}", **options) as client:
        client.ok("/session", {"token": settings.token})
        yield client


@contextmanager
def client_of(url: str, **options: object) -> Iterator[Client]:
    """A client of the studio at an address, with the token in it if there is one."""
    where = httpx.URL(url)
    token = where.params.get("token")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with httpx.Client(
        base_url=where.copy_with(query=None, fragment=None),
        headers={"X-Margrave": "1", **headers},
        timeout=120,
        trust_env=False,
        **{"verify": CERTIFICATES, **options},
    ) as http:
        yield Client(http)
