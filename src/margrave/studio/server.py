"""The studio's application: it connects the routes, the error messages and the page."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from margrave import __version__
from margrave.studio import routes_dialogs, routes_tables, routes_views, schemas, work
from margrave.studio._private_folders import remove_abandoned_folders
from margrave.studio.context import Studio
from margrave.studio.guard import LOCAL, Guard
from margrave.studio.job_table import JobTable, TooMany
from margrave.studio.jobs import Closed, Jobs
from margrave.studio.pages import Pages
from margrave.studio.problems import WENT_WRONG, problem_record, problem_response
from margrave.studio.secret_files import keep_token, token_file
from margrave.studio.settings import Settings
from margrave.studio.store import Conflict, NotFound, Store, StoreError, default_url
from margrave.studio.workspace import Workspace

STATIC = Path(__file__).parent / "static"
UNUSED = timedelta(days=1)  # after which a table without a dialog is deleted

_log = logging.getLogger(__name__)

_TYPES = ("bool", "int", "float", "str")
_STATUS: dict[type[Exception], int] = {
    NotFound: 404,
    Conflict: 409,
    TooMany: 429,
    Closed: 503,
    ImportError: 409,
}


def open_studio(settings: Settings, *, saves: bool = True) -> Studio:
    """Open the store of a studio; the application continues interrupted jobs.

    Parameters
    ----------
    settings : Settings
        The address and the limits. A studio with one user that saves its dialogs takes its token
        from the file beside the store.
    saves : bool, default=True
        Whether the dialogs outlive the process.

    Returns
    -------
    Studio
        The studio, which :func:`create_app` serves. ``close()`` ends it.

    Raises
    ------
    StoreError
        If the store cannot be opened, or another studio uses it.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from margrave.studio import Settings, open_studio
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.of(store=f"sqlite:///{folder}/studio.sqlite3")
    ...     studio = open_studio(settings, saves=False)
    ...     print(*studio.settings.addresses())
    ...     studio.close()
    http://127.0.0.1:8420/
    """
    remove_abandoned_folders()
    url = settings.store or default_url()
    store = Store(url)
    try:
        store.claim(f"http://{settings.host}:{settings.port}/")  # before it is migrated
        store.open()
        if saves and not settings.shared:  # open pages still have access after a restart
            settings = replace(settings, token=keep_token(token_file(url)))
        store.add_user(LOCAL)
        store.delete_unused_tables(datetime.now(UTC) - UNUSED)
        limits = settings.limits
        table = JobTable(store, limits.jobs_waiting)
        table.reclaim(all_running=not store.is_shared)  # the interrupted jobs
        table.prune()
    except BaseException:
        store.close()
        raise
    workspace = Workspace(store, limits.live_bytes)
    kinds = {kind: partial(function, workspace) for kind, function in work.KINDS.items()}
    jobs = Jobs(table, kinds, limits.workers)
    return Studio(settings, store, workspace, jobs, saves)


def create_app(studio: Studio) -> FastAPI:
    """Create the application of an open studio.

    Parameters
    ----------
    studio : Studio
        The studio; it is closed when the application ends.

    Returns
    -------
    FastAPI
        The application, for any ASGI server.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from margrave.studio import Settings, create_app, open_studio
    >>> with TemporaryDirectory() as folder:
    ...     settings = Settings.of(store=f"sqlite:///{folder}/studio.sqlite3")
    ...     studio = open_studio(settings, saves=False)
    ...     app = create_app(studio)
    ...     print(app.title, "/api/dialogs" in app.openapi()["paths"])
    ...     studio.close()
    Margrave studio True
    >>> import uvicorn
    >>> uvicorn.run(app, host="127.0.0.1", port=8420)  # doctest: +SKIP
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        reading = threading.Thread(target=routes_tables.bundled_sets, daemon=True)  # for the page
        reading.start()
        studio.jobs.start()  # when the application is there, which is built faster alone
        yield
        studio.close()
        reading.join(5)  # a thread in native code would abort the process

    app = FastAPI(
        title="Margrave studio",
        description="The dialog over the confusion matrix, as an API. All requests except GET need "
        "the header `X-Margrave: 1`, and all requests need the token: send `Authorization: Bearer "
        'TOKEN`, or `POST /api/session {"token": TOKEN}` once and keep the cookie. '
        "With the key of a dialog's read-only link in `X-Margrave-Share`, its views can be read "
        "without the token.",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # that page loads scripts from another server
        redoc_url=None,
        lifespan=lifespan,
        responses=schemas.PROBLEMS,
    )
    app.state.studio = studio
    for router in (routes_tables.router, routes_dialogs.router, routes_views.router):
        app.include_router(router)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ValueError, _refused)
    for kind in (*_STATUS, StoreError):
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(Exception, _broken)
    app.mount("/", Pages(STATIC))
    app.openapi()  # now, so that the first request does not wait for it
    app.add_middleware(Guard, settings=studio.settings, users=studio.store)
    return app


async def _http(_: Request, error: Exception) -> JSONResponse:
    status = getattr(error, "status_code", 500)
    words = {404: "There is no such page.", 405: "This method is not allowed here."}
    return problem_response(status, words.get(status, str(getattr(error, "detail", ""))))


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """Describe the first field that does not match the schema."""
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
    parts = [part for part in first.get("loc", ())[1:] if not _is_type(part)]
    where = " ".join(map(str, parts)) if any(isinstance(part, str) for part in parts) else ""
    return problem_response(
        422, f"{where or 'The request'}: {first.get('msg', 'does not match the schema')}."
    )


def _is_type(part: Any) -> bool:
    """Whether a part of a location names one of several types, not a field."""
    return isinstance(part, str) and ("-" in part or "[" in part or part in _TYPES)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    """Send the message of an error that is meant for users."""
    status = getattr(error, "status", None)
    if status is None:
        codes = [code for kind, code in _STATUS.items() if isinstance(error, kind)]
        status = codes[0] if codes else 503 if isinstance(error, StoreError) else 400
        if not codes:
            _log.info("A request was refused.", exc_info=error)
    return JSONResponse(problem_record(error), status_code=status)


async def _broken(_: Request, error: Exception) -> JSONResponse:
    """Log any other error, and hide it from the user."""
    _log.error("A request failed.", exc_info=error)
    return problem_response(500, WENT_WRONG)
