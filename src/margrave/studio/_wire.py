"""Incoming requests and outgoing responses, as the guard handles them.

The source of a request is checked by headers that a page cannot forge: the host name it was sent to
(Host), the page that sent it (Origin, Sec-Fetch-Site), and X-Margrave. A browser sends such a
custom header to another server only after a preflight request, which the studio always refuses.
"""

from __future__ import annotations

import asyncio
import math
import re
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from margrave.studio._connections import SLOWEST
from margrave.studio.problems import problem_response
from margrave.studio.settings import Settings

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_READING = ("GET", "HEAD", "OPTIONS")
_OUR_SITES = ("same-origin", "none", "")  # none: the user typed the address
_JSON_BYTES = 1 << 20
_TOKEN_BYTES, _TOKEN_SECONDS = 1 << 12, 5.0  # for a body that anybody can send
_FORM_BYTES = 1 << 16  # of a form, besides the file


class Refusal(Exception):  # noqa: N818 - it is a response
    """A request that is refused.

    Attributes
    ----------
    response : Response
        The response to it.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.response = problem_response(status, message, headers)


class Incoming:
    """An incoming request, with limits on the size of its body and the time for it.

    Parameters
    ----------
    scope, receive
        As an ASGI application gets them.
    seconds : float
        How long a part of the body may take.

    Attributes
    ----------
    method, scheme, path : str
        As in the request.
    route : str
        The path below the studio's own address.
    peer : str
        The address of the client.
    query : list of (str, str)
        The pairs of the query.
    cookies : dict
        The cookies.
    is_api : bool
        Whether it is for the API, not for a file of the page.
    refusal : Refusal or None
        The refusal of a body that was too large or too slow.
    """

    def __init__(self, scope: Scope, receive: Receive, seconds: float) -> None:
        self.method: str = scope["method"]
        self.scheme: str = scope.get("scheme", "http")
        self.path: str = scope["path"]
        self.peer: str = (scope.get("client") or ("",))[0]
        self.query = parse_qsl(
            scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True
        )
        self._headers = Headers(scope=scope)
        self.cookies = cookie_parser("; ".join(self._headers.getlist("cookie")))
        self.route = self.path.removeprefix(scope.get("root_path", ""))
        self.is_api = "api" in self.path.split("/")  # in doubt it counts as the API
        self.refusal: Refusal | None = None
        self._most = 0
        self._read = 0
        self._complete = False
        self._seconds = seconds
        self._slowest: float = SLOWEST
        self._began: float | None = None
        self._receive = receive

    def header(self, name: str) -> str:
        """Return a header, "" if it is missing; refuse a header that is sent twice."""
        values = self._headers.getlist(name)
        if len(values) > 1:
            raise Refusal(400, f"The header {name} was sent more than once.")
        return values[0] if values else ""

    def matches(self, method: str, path: str) -> bool:
        """Whether the request has this method and path."""
        return self.method == method and self.route == path

    def check_source(self, settings: Settings) -> None:
        """Refuse a request to another host name, or from another page than the studio's."""
        host, origin = self.header("host"), self.header("origin")
        if not host:
            raise Refusal(400, "The header Host is missing.")
        if not settings.answers_to(host):
            raise Refusal(
                421, "The studio has another host name; open it by the address that it printed."
            )
        if self.method == "OPTIONS" and self.header("access-control-request-method"):
            raise Refusal(403, "Other pages may not use this studio.")
        foreign = self.header("sec-fetch-site").lower() not in _OUR_SITES
        if origin and not _same_origin(origin, self.scheme, host):
            if self.scheme == "http" and _same_origin(origin, "https", host):
                raise Refusal(
                    403,
                    "The page was opened with https, but this request came with http: name the "
                    "address of the proxy with --trusted-proxy, and let it send X-Forwarded-Proto.",
                )
            foreign = True
        if foreign and not self._opens_page():
            raise Refusal(403, "This request comes from another page; use the page of the studio.")
        if self.method not in _READING and self.header("x-margrave") != "1":
            raise Refusal(403, "This request needs the header X-Margrave: 1.")

    def _opens_page(self) -> bool:
        """Whether the request opens the studio from a link, in a tab and not in a frame."""
        opens = self.header("sec-fetch-mode") == "navigate"
        whole = self.header("sec-fetch-dest") in ("document", "")
        return opens and whole and self.method in _READING and not self.is_api

    def check_body(self, upload_bytes: int) -> None:
        """Refuse a body that is too large or of the wrong type, and limit how much is read."""
        uploads = self.matches("POST", "/api/tables")
        most = upload_bytes + _FORM_BYTES if uploads else _JSON_BYTES
        self._limit_body(most, "multipart/form-data" if uploads else "application/json")

    def check_token_body(self) -> None:
        """Do the same for a body with the token, which is short and has a fixed time."""
        self._limit_body(_TOKEN_BYTES, "application/json")
        self._seconds, self._slowest = min(self._seconds, _TOKEN_SECONDS), math.inf

    def _limit_body(self, most: int, expected: str) -> None:
        self._most = most
        length = self.header("content-length")
        if length and not re.fullmatch("[0-9]{1,18}", length):
            raise Refusal(400, "The header Content-Length is not a number.")
        if length and int(length) > self._most:
            raise self.too_large()
        kind = self.header("content-type").partition(";")[0].strip().lower()
        has_body = bool(length.strip("0") or self.header("transfer-encoding"))
        needed = kind or has_body or expected == "multipart/form-data"
        if self.method not in _READING and needed and kind != expected:
            raise Refusal(415, f"This request needs the Content-Type {expected}.")

    def too_large(self) -> Refusal:
        """The refusal of a body that is too large."""
        kib = self._most / (1 << 10)
        most = f"{kib:g} KiB" if kib < 1024 else f"{kib / 1024:.3g} MiB"
        return Refusal(
            413,
            f"This request is too large; the limit is {most}.",
            {"Connection": "close"},
        )

    async def receive(self) -> Message:
        """Return the next part of the body; raise if the body is too large or too slow."""
        message = await self._receive() if self._complete else await self._receive_part()
        self._read += len(message.get("body", b""))
        if self._read > self._most:
            self.refusal = self.too_large()
            raise HTTPException(413)  # an application does not log this as its own error
        return message

    async def _receive_part(self) -> Message:
        """Return the next part of a body that is not complete."""
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        try:
            async with asyncio.timeout_at(self._began + self._seconds + self._read / self._slowest):
                message = await self._receive()
        except TimeoutError:
            self.refusal = Refusal(
                408, "The request was sent too slowly; try again.", {"Connection": "close"}
            )
            raise HTTPException(408) from None
        self._complete = not message.get("more_body", False)
        return message

    async def body(self) -> bytes:
        """Read the whole body."""
        parts = []
        while True:
            message = await self.receive()
            parts.append(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return b"".join(parts)


class Outgoing:
    """The response, with the studio's headers; from the application, or from the guard."""

    def __init__(self, request: Incoming, send: Send) -> None:
        self._request = request
        self._send = send
        self._started = False

    async def pass_on(self, message: Message) -> None:
        """Pass on the response of the application, unless the body was refused."""
        if self._started or self._request.refusal is None:
            await self._out(message)

    async def answer(self, response: Response) -> None:
        """Send the guard's own response, unless the application has begun to respond."""
        if not self._started:
            scope = {"type": "http", "method": self._request.method}
            await response(scope, self._request.receive, self._out)

    async def _out(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            headers = MutableHeaders(raw=list(message.get("headers", ())))
            for name in {name for name in headers if name.startswith("access-control-")}:
                del headers[name]
            headers.update(_HEADERS)
            headers.setdefault("Content-Security-Policy", PAGE_POLICY)
            if self._request.is_api:
                headers["Cache-Control"] = "no-store"
            else:
                headers.setdefault(
                    "Cache-Control", "no-cache"
                )  # checked on each use, so never out of date
            message = {**message, "headers": headers.raw}
        await self._send(message)


def _same_origin(origin: str, scheme: str, host: str) -> bool:
    """Whether a page belongs to the studio: its scheme, host and port are those of the request."""
    try:
        parts = urlsplit(origin.lower())
        port = parts.port
    except ValueError:
        return False
    usual = {"http": 80, "https": 443}.get(scheme)
    if parts.scheme != scheme or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return False
    page = parts.netloc.removesuffix(f":{port}") if port == usual else parts.netloc
    return page == host.lower().removesuffix(f":{usual}")
