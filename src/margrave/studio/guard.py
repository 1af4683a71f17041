"""Who may ask the studio for what: ASGI middleware before everything else.

Requests of other pages are refused, see :mod:`margrave.studio._wire`. Where a token is needed,
whoever gives it gets a cookie with a key of their own. The key is signed with the token: a new
token shuts everybody out until they give it, and gives them back what was theirs.
"""

from __future__ import annotations

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
from margrave.studio.settings import Settings
from margrave.studio.uploads import display_name

LOCAL, BEARER = "local", "bearer"  # users without a key of their own
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

_YEAR = 365 * 24 * 3600
_PEERS = 10_000  # addresses whose wrong tokens are counted
_KEY = re.compile(r"[A-Za-z0-9_-]{16,128}\Z")
_NO_FILE_NAME = re.compile(r'[<>:"|?*%]')
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|\Z)", re.IGNORECASE)  # on Windows


class Users(Protocol):
    """Where the keys of users are kept."""

    def add_user(self, key: str) -> None:
        """Add a user, unless there is one with this key."""

    def has_user(self, key: str) -> bool:
        """Whether there is a user with this key."""


class Lockout:
    """After too many wrong tokens no token is looked at for a while.

    Parameters
    ----------
    most : int, default=10
        Wrong tokens in a span.
    seconds : float, default=60
        The span.
    clock : callable, optional
        The time in seconds.
    """

    def __init__(
        self, most: int = 10, seconds: float = 60, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = seconds
        self.clock = clock
        self._failures: deque[float] = deque(maxlen=most)

    def left(self) -> float:
        """Seconds until a token is looked at again; 0 if now."""
        full = len(self._failures) == self._failures.maxlen
        return max(0.0, self._failures[0] + self.seconds - self.clock()) if full else 0.0

    def failed(self) -> None:
        """Count a wrong token."""
        self._failures.append(self.clock())


class Guard:
    """Refuses what does not come from the studio's own page, or from a script with the token.

    Behind it ``request.state.user`` is the key of the user; None where a file of the page is
    asked for without one.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    settings : Settings
        Where it listens, the token, the limits.
    users : Users
        Where the keys of users are kept; asked in a thread.
    clock : callable, optional
        The time in seconds, for the lock-out after wrong tokens.
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
        self._lockouts: OrderedDict[str, Lockout] = OrderedDict()  # by the address of who tries
        self.cookie = f"margrave-{settings.port}"  # cookies do not tell ports apart
        self._known: set[str] = set()  # users that are in the store for sure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # the studio has no web sockets
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Incoming(scope, receive)
        answers = Outgoing(request, send)
        try:
            response = await self._own_answer(request)
            if response is None:
                user = await self._user(request)
                request.check_body(self.settings.limits.upload_bytes)
                state = {**scope.get("state", {}), "user": user}
                await self.app({**scope, "state": state}, request.receive, answers.pass_on)
        except Refusal as refusal:
            response = refusal.response
        except Exception:
            if not request.exceeded:
                await answers.answer(JSONResponse({"error": "Something went wrong."}, 500))
                raise
        if request.exceeded:
            response = request.too_large().response
        if response is not None:
            await answers.answer(response)

    async def _own_answer(self, request: Incoming) -> Response | None:
        """Answer whoever gives the token for a cookie; None for all other requests."""
        request.check_source(self.settings)
        if request.asks("POST", "/api/session"):
            request.check_body(self.settings.limits.upload_bytes)
            token = _token_in(await request.body())
            if self.settings.shared:
                self._check_token(token, request.peer)
                return await self._with_cookie(request, JSONResponse({"shared": True}))
            return JSONResponse({"shared": False})
        tokens = [value for name, value in request.query if name == "token"]
        page = request.method in ("GET", "HEAD") and not request.is_api
        return await self._opened(request, tokens[0]) if tokens and page else None

    async def _opened(self, request: Incoming, token: str) -> Response:
        """Send a browser that came with the token on to the page without it."""
        if request.header("sec-fetch-site") == "cross-site":
            # From a link elsewhere it sends no cookie, even if it has one; from here it does.
            again = escape("?" + urlencode(request.query))
            return HTMLResponse(
                f'<!doctype html><meta http-equiv="refresh" content="0;url={again}">',
                headers={"Cache-Control": "no-store"},
            )
        rest = urlencode([pair for pair in request.query if pair[0] != "token"])
        path = "/" + quote(request.path.lstrip("/"))  # "//name" would be another server
        place = {"Location": f"{path}?{rest}" if rest else path, "Cache-Control": "no-store"}
        response = Response(None, 303, place)
        if not self.settings.shared or await self._cookie_user(request) is not None:
            return response
        # With a wrong token, perhaps one of yesterday, the page asks for it.
        right = self._is_token(token, request.peer)
        return await self._with_cookie(request, response) if right else response

    async def _user(self, request: Incoming) -> str | None:
        """Who asks."""
        if not self.settings.shared:
            return await self._certain(LOCAL)
        scheme, _, token = request.header("authorization").partition(" ")
        if scheme.lower() == "bearer":
            self._check_token(token.strip(), request.peer)
            key = request.header("x-margrave-user")
            if not key:
                return await self._certain(BEARER)
            if not await self._has_user(key):
                raise Refusal(401, "X-Margrave-User needs the key of a user of this studio.")
            return key
        user = await self._cookie_user(request)
        if user is None and request.is_api:
            raise Refusal(
                401,
                "This studio needs its token; the command that started it has printed it.",
                {"WWW-Authenticate": "Bearer"},
            )
        return user

    def _check_token(self, token: str, peer: str) -> None:
        if not self._is_token(token, peer):
            raise Refusal(401, "This is not the token of this studio.")

    def _lockout(self, peer: str) -> Lockout:
        """The wrong tokens of an address; those of addresses that came long ago are forgotten."""
        found = self._lockouts.setdefault(peer, Lockout(clock=self._clock))
        self._lockouts.move_to_end(peer)
        if len(self._lockouts) > _PEERS:
            self._lockouts.popitem(last=False)
        return found

    def _is_token(self, token: str, peer: str) -> bool:
        """Whether this is the token; refused after many from the same address that were not."""
        lockout = self._lockout(peer)
        left = lockout.left()
        if left:
            seconds = int(left) + 1
            raise Refusal(
                429,
                f"There were too many wrong tokens; try again in {seconds} seconds.",
                {"Retry-After": str(seconds)},
            )
        right = hmac.compare_digest(_raw(token), _raw(self.settings.token or ""))
        if not right:
            lockout.failed()
        return right

    async def _cookie_user(self, request: Incoming) -> str | None:
        """The user whose key is in the cookie, signed with the token of today."""
        key, _, signature = request.cookies.get(self.cookie, "").partition(".")
        if not hmac.compare_digest(_raw(signature), _raw(self._signature(key))):
            return None
        return key if await self._has_user(key) else None

    async def _with_cookie(self, request: Incoming, response: Response) -> Response:
        """Give a user a key, or sign the one of before again."""
        key = request.cookies.get(self.cookie, "").partition(".")[0]
        if not await self._has_user(key):
            key = await self._certain(secrets.token_urlsafe(32))
        response.set_cookie(
            self.cookie,
            f"{key}.{self._signature(key)}",
            max_age=_YEAR,  # what belongs to a user outlasts the browser's window
            path="/",
            secure=request.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def _signature(self, key: str) -> str:
        return hmac.new(_raw(self.settings.token or ""), _raw(key), hashlib.sha256).hexdigest()

    async def _has_user(self, key: str) -> bool:
        """Whether a user has this key; "local" and "bearer" are no keys."""
        if not _KEY.match(key):
            return False
        if key not in self._known and await run_in_threadpool(self.users.has_user, key):
            self._known.add(key)
        return key in self._known

    async def _certain(self, key: str) -> str:
        """A user who is in the store from now on."""
        if key not in self._known:
            await run_in_threadpool(self.users.add_user, key)
            self._known.add(key)
        return key


def attachment(name: str, media_type: str, body: bytes | str) -> Response:
    """A file to be saved, never shown as a page of the studio.

    Parameters
    ----------
    name : str
        What to call it; made safe by :func:`download_name`.
    media_type : str
        What it is.
    body : bytes or str
        What is in it.
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
    """A name that every system takes for a file: short, no folders, no devices."""
    safe = _NO_FILE_NAME.sub("_", display_name(name)).strip(" .") or "download"
    return f"_{safe}" if _DEVICE.match(safe) else safe


def _token_in(body: bytes) -> str:
    """The token in {"token": "..."}."""
    try:
        given = json.loads(body)
        token = given["token"]
    except (ValueError, TypeError, KeyError, RecursionError):
        token = None
    if not isinstance(token, str):
        raise Refusal(422, "This needs a JSON object with the token as text.")
    return token


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "replace")
