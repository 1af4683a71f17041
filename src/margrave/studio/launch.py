"""Starting a studio: from the command line, with a table to begin with, or from a notebook."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from types import FrameType
from typing import Any

import uvicorn
from threadpoolctl import threadpool_limits

from margrave.app._samples import Table, find_table
from margrave.steer._dialog import Dialog
from margrave.studio import routes_dialogs, routes_tables, schemas, uploads
from margrave.studio.choices import Source, bundled_frame, samples
from margrave.studio.context import Studio
from margrave.studio.facts import facts_of
from margrave.studio.guard import LOCAL
from margrave.studio.server import create_app, open_studio
from margrave.studio.settings import Settings
from margrave.studio.store import TableRow
from margrave.studio.views import Record

USUAL_PORT = 8420
_MORE_PORTS = 20
_SECONDS = 60


class _Server(uvicorn.Server):
    """A server that reports when it is ready, and ignores Ctrl-C as a background job."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], Any]) -> None:
        super().__init__(config)
        self._ready = ready
        # A shell starts a background job with SIGINT ignored; uvicorn replaces that by a handler.
        self._ignores_interrupt = signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End at SIGTERM, and at SIGINT unless it was ignored when the process started."""
        if sig != signal.SIGINT or not self._ignores_interrupt:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def listening(settings: Settings, port: int | None) -> socket.socket:
    """A socket that listens: on a port that was asked for, or on a free one from 8420 on."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    tried = [port] if port is not None else range(USUAL_PORT, USUAL_PORT + _MORE_PORTS)
    for one in tried:
        # By its number, or asyncio leaves small packets waiting for each other (40 ms an answer).
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((settings.host, one))
            found.listen()
        except OSError as error:
            found.close()
            reason = error.strerror or str(error)
        else:
            return found
    which = f"port {port}" if port is not None else "any of its usual ports"
    raise ValueError(f"The studio cannot listen on {settings.host}, {which}: {reason}.")


@dataclass(frozen=True)
class Beginning:
    """The table that a studio opens with.

    Attributes
    ----------
    data : str
        A file, or a name in `margrave data`.
    target, positive : str or None
        Its column with the classes, and the positive class.
    """

    data: str
    target: str | None = None
    positive: str | None = None


def serve(
    settings: Settings,
    port: int | None,
    begin: Beginning | None,
    ready: Callable[[str], Any],
) -> None:
    """Serve until it is interrupted.

    Parameters
    ----------
    settings : Settings
        Where and how much.
    port : int or None
        Where to listen; None for a free port from 8420 on.
    begin : Beginning or None
        What to open.
    ready : callable
        Called with the URL once it can be opened.
    """
    table = None if begin is None else find_table(begin.data)
    if table is not None and settings.shared:
        raise ValueError(
            "DATA opens for the one user of this machine; with a token, upload it in the page."
        )
    threadpool_limits(1, user_api="blas")  # of this process: jobs share the cores
    with listening(settings, port) as where:
        settings = replace(settings, port=where.getsockname()[1])
        studio = open_studio(settings)
        try:
            place = "" if table is None or begin is None else _opened(studio, table, begin)
        except BaseException:
            studio.queue.shutdown(timeout=5)
            studio.store.close()
            raise
        server = server_of(studio, lambda: ready(settings.url() + place))
        asyncio.run(server.serve(sockets=[where]))


def server_of(studio: Studio, ready: Callable[[], Any]) -> uvicorn.Server:
    """The server of a studio; `ready` is called once it answers."""
    config = uvicorn.Config(
        create_app(studio),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    return _Server(config, ready)


def _opened(studio: Studio, table: Table, begin: Beginning) -> str:
    """The place of a table's dialog in the page: one that is there already, or a new one."""
    source, facts = Source(table.name, bundled=False), facts_of(table.frame)
    if table.path is None:
        source, facts["target"] = bundled_frame(table.name)[1], "target"
    target = begin.target or facts["target"]
    if target is not None:  # refuse it before anything is stored
        samples(table.frame, source, {"target": target, "positive": begin.positive})
    row = _stored(studio, table, source, facts)
    if target is None:
        return f"#/new/{row.id}"
    for known in studio.store.dialogs(LOCAL):
        chosen = known.choices
        same = known.table_id == row.id and chosen.get("target") == target
        if same and known.state != "failed" and begin.positive in (None, chosen.get("positive")):
            return f"#/d/{known.id}/frontier"
    given = schemas.NewDialog(table=row.id, target=target, positive=begin.positive)
    return f"#/d/{routes_dialogs.begin(studio, LOCAL, given)[0]}/frontier"


def _stored(studio: Studio, table: Table, source: Source, facts: Record) -> TableRow:
    """A table in the store: one with the same content that is there already, or a new one."""
    data = uploads.parquet_of(table.frame)
    digest = hashlib.sha256(data).hexdigest()
    for known in studio.store.dialogs(LOCAL):
        if known.table_id is not None:
            row = studio.store.table(LOCAL, known.table_id)
            if row.facts.get("digest") == digest and row.name == table.name:
                return row
    return routes_tables.add_table(studio, LOCAL, source, facts, data)


# From a notebook


def view(dialog: Dialog, *, browser: bool = True) -> str:
    """Open the studio on a dialog of this process; what is done there is done to it.

    Parameters
    ----------
    dialog : Dialog
        The dialog.
    browser : bool, default=True
        Whether to open a browser.

    Returns
    -------
    str
        The address of the page.
    """
    studio = _own_studio()
    known = _adopted.get(id(dialog))
    if known not in [row.id for row in studio.store.dialogs(LOCAL)]:  # new, or deleted in the page
        known = studio.workspace.adopt(LOCAL, "From Python", dialog)
        _adopted[id(dialog)] = known
    url = f"{studio.settings.url()}#/d/{known}/frontier"
    if browser:
        webbrowser.open(url)
    return url


_adopted: dict[int, str] = {}
_folders: list[tempfile.TemporaryDirectory[str]] = []


@cache
def _own_studio() -> Studio:
    """The studio of this process, in a thread, with a store that ends with it."""
    # It goes when the process ends.
    folder = tempfile.TemporaryDirectory(prefix="margrave-studio-", ignore_cleanup_errors=True)
    _folders.append(folder)
    settings = Settings.of(store=f"sqlite:///{folder.name}/studio.sqlite3")
    where = listening(settings, None)
    settings = replace(settings, port=where.getsockname()[1])
    try:
        studio = open_studio(settings, saves=False)
    except BaseException:
        where.close()
        raise
    up = threading.Event()
    server = server_of(studio, up.set)
    serving = threading.Thread(target=lambda: asyncio.run(server.serve([where])), daemon=True)
    serving.start()
    atexit.register(_ended, server, serving)
    if not up.wait(_SECONDS):
        raise TimeoutError(f"The studio did not start within {_SECONDS} seconds.")
    return studio


def _ended(server: uvicorn.Server, serving: threading.Thread) -> None:
    """End it before the process ends: a thread that is cut off in native code would abort it."""
    server.should_exit = True
    serving.join(_SECONDS)
