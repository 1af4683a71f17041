"""Starts a studio: from the command line, optionally with a table, or from a notebook."""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from threadpoolctl import threadpool_limits

from margrave.app.samples import Table, find_table, samples_of
from margrave.steer import Dialog
from margrave.studio import routes_dialogs, routes_tables, schemas, uploads
from margrave.studio._connections import ACCEPTED, QUEUE, bound_logs, connection_class
from margrave.studio._private_folders import private_folder
from margrave.studio.choices import Source
from margrave.studio.context import Studio
from margrave.studio.facts import facts_of
from margrave.studio.guard import LOCAL
from margrave.studio.secret_files import open_browser
from margrave.studio.server import create_app, open_studio
from margrave.studio.settings import Settings
from margrave.studio.store import TableRow
from margrave.studio.views import Record
from margrave.studio.workspace import source_of

USUAL_PORT = 8420
_MORE_PORTS = 20
_SECONDS = 60


class _Server(uvicorn.Server):
    """A server that reports when it is ready, and ignores Ctrl-C as a background job."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], Any], ended: Callable[[], Any]
    ) -> None:
        super().__init__(config)
        self._ready, self._ended = ready, ended
        # A shell starts a background job with SIGINT ignored; uvicorn replaces that by a handler.
        self._ignores_interrupt = signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End at SIGTERM, and at SIGINT unless it was ignored when the process started."""
        if sig != signal.SIGINT or not self._ignores_interrupt:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(QUEUE)  # the loop has set it to the number that it accepts at once
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().shutdown(sockets)
        finally:  # after it the signal ends the process, without any other clean-up
            self._ended()


def listening(settings: Settings, port: int | None) -> socket.socket:
    """Open a listening socket: on the given port, or on the first free one from 8420."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    ports = [port] if port is not None else range(USUAL_PORT, USUAL_PORT + _MORE_PORTS)
    for number in ports:
        # With an explicit protocol, or asyncio does not set TCP_NODELAY (40 ms per response).
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if sys.platform == "win32":  # there SO_REUSEADDR lets other programs take the port too
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, number))
            listener.listen()
        except OSError as error:
            listener.close()
            reason = error.strerror or str(error)
        else:
            return listener
    last = USUAL_PORT + _MORE_PORTS - 1
    which = f"port {port}" if port is not None else f"any port from {USUAL_PORT} to {last}"
    raise ValueError(f"The studio cannot listen on {settings.host}, {which}: {reason}.")


@dataclass(frozen=True)
class Beginning:
    """The table that a studio opens at its start.

    Attributes
    ----------
    data : str
        A file, or the name of a data set in `margrave data`.
    target, positive : str or None
        The column with the classes, and the positive class.
    encoding, decimal : str or None
        The encoding and the decimal mark of a text file.
    """

    data: str
    target: str | None = None
    positive: str | None = None
    encoding: str | None = None
    decimal: str | None = None


def serve(
    settings: Settings,
    port: int | None,
    begin: Beginning | None,
    ready: Callable[[list[str]], Any],
    *,
    browser: bool = False,
) -> None:
    """Serve the studio until it is interrupted.

    Parameters
    ----------
    settings : Settings
        The address and the limits.
    port : int or None
        The port; None for the first free one from 8420.
    begin : Beginning or None
        The table to open.
    ready : callable
        Called with the addresses of the page, as in `Settings.urls`, when it can be opened.
    browser : bool, default=False
        Whether to open a browser then.
    """
    if begin is not None and settings.shared:
        raise ValueError(
            "DATA cannot be opened in a studio with several users (MARGRAVE_TOKEN, --host, "
            "--public-host); upload it in the page."
        )
    table = None
    if begin is not None:
        table = find_table(begin.data, encoding=begin.encoding, decimal=begin.decimal)
    threadpool_limits(1, user_api="blas")  # in this process: jobs share the cores
    with listening(settings, port) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        studio = open_studio(settings)
        try:
            place = "" if table is None or begin is None else _open_table(studio, table, begin)
        except BaseException:
            studio.close()
            raise
        urls = [url + place for url in studio.settings.urls()]
        folders = ExitStack()

        def accepts_requests() -> None:
            ready(urls)
            if browser:
                open_browser(urls[0], folders.enter_context(private_folder()))

        server = server_of(studio, accepts_requests, folders.close)
        asyncio.run(server.serve(sockets=[listener]))


def server_of(
    studio: Studio, ready: Callable[[], Any], ended: Callable[[], Any] = lambda: None
) -> uvicorn.Server:
    """The server of a studio; it calls `ready` when it accepts requests, and `ended` at its end."""
    proxies = list(studio.settings.proxies)
    config = uvicorn.Config(
        create_app(studio),
        http=connection_class(studio.settings),
        backlog=ACCEPTED,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),  # X-Forwarded-*, believed from these peers only
        forwarded_allow_ips=proxies,
        timeout_graceful_shutdown=2,
    )
    bound_logs()  # of which uvicorn's are there now
    return _Server(config, ready, ended)


def _open_table(studio: Studio, table: Table, begin: Beginning) -> str:
    """Find the dialog on a table, or begin one; return its place in the page."""
    bundled = table.path is None
    source = Source(table.name, bundled, table.positive, begin.encoding, begin.decimal)
    facts = facts_of(table.frame)
    if bundled:
        facts["target"] = "target"
    target = begin.target or facts["target"]
    if target is not None:  # refuses it before anything is stored
        samples_of(table, target=target, positive=begin.positive)
    row = _store_table(studio, table, source, facts)
    if target is None:
        return f"#/new/{row.id}"
    for known in studio.store.dialogs(LOCAL):
        choices = known.choices
        same = known.table_id == row.id and choices.get("target") == target
        if same and known.state != "failed" and begin.positive in (None, choices.get("positive")):
            return f"#/d/{known.id}/frontier"
    request = schemas.NewDialog(table=row.id, target=target, positive=begin.positive)
    return f"#/d/{routes_dialogs.begin(studio, LOCAL, request)[0]}/frontier"


def _store_table(studio: Studio, table: Table, source: Source, facts: Record) -> TableRow:
    """Find a table with the same source and content in the store, or add it."""
    data = uploads.parquet_of(table.frame)
    digest = hashlib.sha256(data).hexdigest()
    for known in studio.store.dialogs(LOCAL):
        if known.table_id is not None:
            row = studio.store.table(LOCAL, known.table_id)
            if row.facts.get("digest") == digest and source_of(row.facts) == source:
                return row
    return routes_tables.add_table(studio, LOCAL, source, facts, data)


# From a notebook


def view(dialog: Dialog, *, browser: bool = True) -> str:
    """Open the studio on a dialog of this process; each step in the page is a step of the dialog.

    Parameters
    ----------
    dialog : Dialog
        The dialog.
    browser : bool, default=True
        Whether to open a browser.

    Returns
    -------
    str
        The address of the page, with the token of the studio of this process.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> from margrave.studio import view
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> view(dialog)  # doctest: +SKIP
    'http://127.0.0.1:8420/?token=...#/d/.../frontier'
    """
    studio = _own_studio()
    known = _adopted.get(id(dialog))
    if known not in [row.id for row in studio.store.dialogs(LOCAL)]:  # new, or deleted in the page
        known = studio.workspace.adopt(LOCAL, "From Python", dialog)
        _adopted[id(dialog)] = known
    url = f"{studio.settings.urls()[0]}#/d/{known}/frontier"
    if browser:
        open_browser(url, _folders[-1])
    return url


_adopted: dict[int, str] = {}
_folders: list[Path] = []


@cache
def _own_studio() -> Studio:
    """The studio of this process, in a thread, with a temporary store."""
    folders = ExitStack()
    atexit.register(folders.close)
    _folders.append(folders.enter_context(private_folder()))
    settings = Settings.of(store=f"sqlite:///{_folders[-1]}/studio.sqlite3")
    listener = listening(settings, None)
    settings = replace(settings, port=listener.getsockname()[1])
    try:
        studio = open_studio(settings, saves=False)
    except BaseException:
        listener.close()
        raise
    ready = threading.Event()
    server = server_of(studio, ready.set)
    serving = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    serving.start()
    atexit.register(_stop_server, server, serving)
    if not ready.wait(_SECONDS):
        raise TimeoutError(f"The studio did not start within {_SECONDS} seconds.")
    return studio


def _stop_server(server: uvicorn.Server, serving: threading.Thread) -> None:
    """Stop the server before the process exits, which a thread in native code would abort."""
    server.should_exit = True
    serving.join(_SECONDS)
