"""Access control: ASGI middleware that handles every request first.

It refuses requests from other pages, see :mod:`margrave.studio._wire`, and requests without the
token. A browser that has shown the token gets a cookie with the key of its user, signed with the
token: after a change of the token all users have to enter it again, and then get back their own
dialogs. In a studio with one user, the key is always that user's. A request with the key of a
dialog's read-only link may read the views of this dialog, and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
import time
import unicodedata
from collections import OrderedDict, deque
from collections.abc import Callable
from html import escape
from typing import Protocol
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from margrave.studio._wire import Incoming, Outgoing, Refusal
from margrave.studio.problems import WENT_WRONG, problem_response
from margrave.studio.settings import Settings
from margrave.studio.uploads import display_name

LOCAL, BEARER = "local", "bearer"  # users without a key of their own
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

_YEAR = 365 * 24 * 3600
_PEERS = 10_000  # addresses for which wrong tokens are counted
_LOOKUPS = 4  # keys of links that are looked up at the same time
_SHARED = re.compile(r"/api/dialogs/([A-Za-z0-9_-]+)(?:/([a-z.]+))?\Z")
SHARED_VIEWS = ("compare", "frontier", "members", "program", "report.html", "winners")
"""The views of a dialog that its read-only link shows, besides its steps; none has its rows."""
_KEY = re.compile(r"[A-Za-z0-9_-]{16,128}\Z")
_NO_FILE_NAME = re.compile(r'[<>:"|?*%]')
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|\Z)", re.IGNORECASE)  # on Windows


class Users(Protocol):
    """The storage of user keys."""

    def add_user(self, key: str) -> None:
        """Add a user, unless there is one with this key."""

    def has_user(self, key: str) -> bool:
        """Whether there is a user with this key."""

    def share_of(self, dialog_id: str) -> tuple[str, str] | None:
        """The owner of a dialog with a read-only link, and the key of the link."""


class Throttle:
    """Limits the number of wrong tokens, and of wrong keys of links, in a period.

    Parameters
    ----------
    most : int, default=10
        Number of wrong tokens within `seconds`.
    seconds : float, default=60
        Length of the period.
    clock : callable, optional
        Returns the time in seconds.
    """

    def __init__(
        self, most: int = 10, seconds: float = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = seconds
        self.clock = clock
        self._failures: deque[float] = deque(maxlen=most)

    def left(self) -> float:
        """Seconds until the next wrong token is allowed; 0 if it is allowed now."""
        full = len(self._failures) == self._failures.maxlen
        return max(0.0, self._failures[0] + self.seconds - self.clock()) if full else 0.0

    def failed(self) -> None:
        """Count a wrong token."""
        self._failures.append(self.clock())


class Guard:
    """Refuses requests that come neither from the studio's page nor from a script with the token.

    It sets ``request.state.user`` to the key of the user; None for a request of a file of the page
    without a key. ``request.state.reads_only`` is whether it came with the key of a link.

    Parameters
    ----------
    app : ASGI application
        The application behind the guard.
    settings : Settings
        The address, the token and the limits.
    users : Users
        The storage of user keys; used from a thread.
    clock : callable, optional
        Returns the time in seconds, for the throttle of wrong tokens.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        users: Users,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app = app
        self.settings = settings
        self.users = users
        self._clock = clock
        self._throttles: OrderedDict[str, Throttle] = OrderedDict()  # by the client's address
        self._known: set[str] = set()  # users that are in the store
        # Wrong keys of links wait for each other, and leave the threads to all other requests.
        self._lookups = asyncio.Semaphore(_LOOKUPS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or respond to it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # the studio has no web sockets
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Incoming(scope, receive, self.settings.limits.request_seconds)
        outgoing = Outgoing(request, send)
        try:
            response = await self._own_response(request)
            if response is None:
                # In the scope of the server too: the connection of a user keeps its place.
                reads_only = bool(request.header("x-margrave-share")) and request.is_api
                user = await (self._owner(request) if reads_only else self._user(request))
                scope.setdefault("state", {}).update(user=user, reads_only=reads_only)
                request.check_body(self.settings.limits.upload_bytes)
                await self.app(scope, request.receive, outgoing.pass_on)
        except Refusal as refusal:
            response = refusal.response
        except Exception:
            if request.refusal is None:
                await outgoing.answer(problem_response(500, WENT_WRONG))
                raise
        if request.refusal is not None:
            response = request.refusal.response
        if response is not None:
            await outgoing.answer(response)

    async def _own_response(self, request: Incoming) -> Response | None:
        """The response to a request that sends the token; None for all other requests."""
        request.check_source(self.settings)
        if request.matches("POST", "/api/session"):
            request.check_token_body()
            self._check_token(_token_in(await request.body()), request.peer)
            response = JSONResponse({"shared": self.settings.shared})
            return await self._with_cookie(request, response)
        tokens = [value for name, value in request.query if name == "token"]
        page = request.method in ("GET", "HEAD") and not request.is_api
        return await self._redirect(request, tokens[0]) if tokens and page else None

    async def _redirect(self, request: Incoming, token: str) -> Response:
        """Redirect a browser from an address with the token to the page without it."""
        if self.settings.shared and request.header("sec-fetch-site") == "cross-site":
            # A browser sends no cookie with a link from another site, but with this reload it does:
            # it shows which user the browser is.
            again = escape("?" + urlencode(request.query))
            return HTMLResponse(
                f'<!doctype html><meta http-equiv="refresh" content="0;url={again}">',
                headers={"Cache-Control": "no-store"},
            )
        rest = urlencode([pair for pair in request.query if pair[0] != "token"])
        path = "/" + quote(request.path.lstrip("/"))  # "//name" would be another server
        place = {"Location": f"{path}?{rest}" if rest else path, "Cache-Control": "no-store"}
        response = Response(None, 303, place)
        if await self._cookie_user(request) is not None:
            return response
        # With a wrong token, perhaps an old one, the page shows the form for the token.
        valid = self._is_same(token, self.settings.token, request.peer)
        return await self._with_cookie(request, response) if valid else response

    async def _user(self, request: Incoming) -> str | None:
        """The key of the user who sends a request; None if it is unknown."""
        scheme, _, token = request.header("authorization").partition(" ")
        if scheme.lower() == "bearer":
            self._check_token(token.strip(), request.peer)
            key = request.header("x-margrave-user")
            if not key:
                return await self._ensure_user(BEARER if self.settings.shared else LOCAL)
            if not await self._has_user(key):
                raise Refusal(
                    401, "The header X-Margrave-User is not the key of a user of this studio."
                )
            return key
        user = await self._cookie_user(request)
        if user is None and request.is_api:
            raise Refusal(
                401,
                "This studio needs a token; the command that started the studio has printed it.",
                {"WWW-Authenticate": "Bearer"},
            )
        return user

    async def _owner(self, request: Incoming) -> str:
        """The owner of the dialog whose read-only link a request shows; refuse all but its views.

        The refusal is the same if there is no such dialog, if it has no link, or another one.
        """
        match = _SHARED.match(request.route)
        if request.method != "GET" or match is None or match[2] not in (None, *SHARED_VIEWS):
            raise Refusal(403, "This link shows one dialog, without changes and without its rows.")
        async with self._lookups:
            shared = await run_in_threadpool(self.users.share_of, match[1])
        key = secrets.token_urlsafe(32) if shared is None else shared[1]
        same = self._is_same(request.header("x-margrave-share"), key, request.peer)
        if shared is None or not same:
            raise Refusal(403, "This link is not valid, or the dialog is no longer shared.")
        return shared[0]

    def _check_token(self, token: str, peer: str) -> None:
        if not self._is_same(token, self.settings.token, peer):
            raise Refusal(401, "This is not the token of this studio.")

    def _throttle(self, peer: str) -> Throttle:
        """The throttle of an address; those of the longest ago are dropped."""
        throttle = self._throttles.setdefault(peer, Throttle(clock=self._clock))
        self._throttles.move_to_end(peer)
        if len(self._throttles) > _PEERS:
            self._throttles.popitem(last=False)
        return throttle

    def _is_same(self, given: str, secret: str, peer: str) -> bool:
        """Whether this is the secret; raise after too many wrong ones from the same address.

        The right one is always accepted: many users may share an address, and one of them must not
        lock out the others. Secrets are long enough to make guessing hopeless at any rate.
        """
        if hmac.compare_digest(_raw(given), _raw(secret)):
            return True
        throttle = self._throttle(peer)
        left = throttle.left()
        if left:
            seconds = int(left) + 1
            raise Refusal(
                429,
                f"Too many wrong tokens or links were sent; try again in {seconds} seconds.",
                {"Retry-After": str(seconds)},
            )
        throttle.failed()
        return False

    async def _cookie_user(self, request: Incoming) -> str | None:
        """The user whose key is in the cookie, signed with the current token."""
        key, _, signature = request.cookies.get(self._cookie_name(request), "").partition(".")
        if not hmac.compare_digest(_raw(signature), _raw(self._signature(key))):
            return None
        if not self.settings.shared:
            return await self._ensure_user(LOCAL) if key == LOCAL else None
        return key if await self._has_user(key) else None

    async def _with_cookie(self, request: Incoming, response: Response) -> Response:
        """Set a cookie with a new key, or with the earlier key signed again."""
        cookie = self._cookie_name(request)
        key = request.cookies.get(cookie, "").partition(".")[0]
        if not self.settings.shared:
            key = LOCAL
        elif not await self._has_user(key):
            key = await self._ensure_user(secrets.token_urlsafe(32))
        response.set_cookie(
            cookie,
            f"{key}.{self._signature(key)}",
            max_age=_YEAR,  # a user's dialogs outlive the browser window
            path="/",
            secure=request.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def _cookie_name(self, request: Incoming) -> str:
        """The name of the cookie: browsers share cookies between the ports of a host.

        The port is the one that the browser uses, which is the same for all processes behind a
        proxy. A studio with one user leaves the key of a shared one alone. Browsers accept a name
        with the prefix from this very host only, over TLS.
        """
        name = "margrave" if self.settings.shared else "margrave-local"
        name = f"__Host-{name}" if request.scheme == "https" else name
        port = re.search(r":(\d+)\Z", request.header("host"))
        return f"{name}-{port[1]}" if port and port[1] not in ("80", "443") else name

    def _signature(self, key: str) -> str:
        return hmac.new(_raw(self.settings.token), _raw(key), hashlib.sha256).hexdigest()

    async def _has_user(self, key: str) -> bool:
        """Whether a user has this key; "local" and "bearer" are not keys."""
        if not _KEY.match(key):
            return False
        if key not in self._known and await run_in_threadpool(self.users.has_user, key):
            self._known.add(key)
        return key in self._known

    async def _ensure_user(self, key: str) -> str:
        """Add a user to the store if there is none with this key; return the key."""
        if key not in self._known:
            await run_in_threadpool(self.users.add_user, key)
            self._known.add(key)
        return key


def attachment(name: str, media_type: str, body: bytes | str) -> Response:
    """A response with a file for download, which the browser never shows as a page.

    Parameters
    ----------
    name : str
        The name of the file; :func:`download_name` makes it safe.
    media_type : str
        The media type.
    body : bytes or str
        The content.
    """
    safe = download_name(name)
    plain = unicodedata.normalize("NFKD", safe).encode("ascii", "ignore").decode()
    fallback = download_name(f"download{plain}" if plain.startswith(".") else plain)
    headers = {
        "Content-Disposition": (
            f"attachment; filename=\"{fallback}\"; filename*=UTF-8''{quote(safe, safe='')}"
        ),
        "Content-Security-Policy": FILE_POLICY,
    }
    return Response(body, headers=headers, media_type=media_type)


def download_name(name: str) -> str:
    """Make a file name that is valid on every system: short, no folders, no devices."""
    safe = _NO_FILE_NAME.sub("_", display_name(name)).strip(" .") or "download"
    return f"_{safe}" if _DEVICE.match(safe) else safe


def _token_in(body: bytes) -> str:
    """The token in {"token": "..."}."""
    try:
        token = json.loads(body)["token"]
    except (ValueError, TypeError, KeyError, RecursionError):
        token = None
    if not isinstance(token, str):
        raise Refusal(422, "The request needs a JSON object with the token as text.")
    return token


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "replace")
