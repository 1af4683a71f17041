"""A request on its way to the studio and the answer on its way back, as the guard sees them.

Where a request comes from is told by headers that a page cannot forge: the name it was sent to
(Host), the page that sent it (Origin, Sec-Fetch-Site), and a header of our own, which a page may
send to another server only after asking it; we never say yes.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

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
_OUR_SITES = ("same-origin", "none", "")  # none: typed by the user
_JSON_BYTES = 1 << 20
_FORM_BYTES = 1 << 16  # what a form has around a file


class Refusal(Exception):  # noqa: N818 - it is an answer
    """A request that is not let through.

    Attributes
    ----------
    response : Response
        What is answered.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.response = JSONResponse({"error": message}, status, headers)


class Incoming:
    """What is asked, with as much of the body as is allowed.

    Attributes
    ----------
    method, scheme, path : str
        As in the request.
    peer : str
        The address it comes from.
    query : list of (str, str)
        The pairs of the query.
    cookies : dict
        The cookies.
    is_api : bool
        Whether it is for the API, not for a file of the page.
    exceeded : bool
        Whether more of the body came than is allowed.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.scheme: str = scope.get("scheme", "http")
        self.path: str = scope["path"]
        self.peer: str = (scope.get("client") or ("",))[0]
        self.query = parse_qsl(
            scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True
        )
        self._headers = Headers(scope=scope)
        self.cookies = cookie_parser("; ".join(self._headers.getlist("cookie")))
        self._route = self.path.removeprefix(scope.get("root_path", ""))
        self.is_api = "api" in self.path.split("/")  # rather too often than too rarely
        self.exceeded = False
        self._most = 0
        self._read = 0
        self._receive = receive

    def header(self, name: str) -> str:
        """A header, "" if it is not there; one that comes twice is refused."""
        found = self._headers.getlist(name)
        if len(found) > 1:
            raise Refusal(400, f"The header {name} came more than once.")
        return found[0] if found else ""

    def asks(self, method: str, path: str) -> bool:
        """Whether this is asked."""
        return self.method == method and self._route == path

    def check_source(self, settings: Settings) -> None:
        """Refuse what was sent to another name, or by another page than ours."""
        host, origin = self.header("host"), self.header("origin")
        if not host:
            raise Refusal(400, "The header Host is missing.")
        if not settings.answers_to(host):
            raise Refusal(
                421, "The studio does not go by this name; open it by the address that it printed."
            )
        if self.method == "OPTIONS" and self.header("access-control-request-method"):
            raise Refusal(403, "Other pages may not ask this studio.")
        foreign = self.header("sec-fetch-site").lower() not in _OUR_SITES
        if origin and not _same_origin(origin, host):
            foreign = True
        if foreign and not self._opens_page():
            raise Refusal(403, "This request comes from another page; the studio takes its own.")
        if self.method not in _READING and self.header("x-margrave") != "1":
            raise Refusal(403, "This request needs the header X-Margrave: 1.")

    def _opens_page(self) -> bool:
        """Whether a link opens the studio in a tab, not in a frame."""
        opens = self.header("sec-fetch-mode") == "navigate"
        whole = self.header("sec-fetch-dest") in ("document", "")
        return opens and whole and self.method in _READING and not self.is_api

    def check_body(self, upload_bytes: int) -> None:
        """Refuse a body that is too large or of the wrong kind, and limit what is read of it."""
        uploads = self.asks("POST", "/api/tables")
        wanted = "multipart/form-data" if uploads else "application/json"
        self._most = upload_bytes + _FORM_BYTES if uploads else _JSON_BYTES
        length = self.header("content-length")
        if length and not re.fullmatch("[0-9]{1,18}", length):
            raise Refusal(400, "The header Content-Length is no number.")
        if length and int(length) > self._most:
            raise self.too_large()
        kind = self.header("content-type").partition(";")[0].strip().lower()
        has_body = bool(length.strip("0") or self.header("transfer-encoding"))
        if self.method not in _READING and (kind or has_body or uploads) and kind != wanted:
            raise Refusal(415, f"This needs the Content-Type {wanted}.")

    def too_large(self) -> Refusal:
        """The answer to a body that is too large."""
        return Refusal(
            413,
            f"This is too large: at most {self._most / (1 << 20):.3g} MiB are taken.",
            {"Connection": "close"},
        )

    async def receive(self) -> Message:
        """The next part of the body; raises once it is too much."""
        message = await self._receive()
        self._read += len(message.get("body", b""))
        if self._read > self._most:
            self.exceeded = True
            raise HTTPException(413)  # what an application does not take for its own mistake
        return message

    async def body(self) -> bytes:
        """The whole body."""
        parts = []
        while True:
            message = await self.receive()
            parts.append(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return b"".join(parts)


class Outgoing:
    """What is answered, with our headers: by the application, or in its place."""

    def __init__(self, request: Incoming, send: Send) -> None:
        self._request = request
        self._send = send
        self._started = False

    async def pass_on(self, message: Message) -> None:
        """Pass on what the application answers, unless it is about a body that was too large."""
        if self._started or not self._request.exceeded:
            await self._out(message)

    async def answer(self, response: Response) -> None:
        """Answer in the place of the application, unless it has begun to."""
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
                headers.setdefault("Cache-Control", "no-cache")  # asked again, never out of date
            message = {**message, "headers": headers.raw}
        await self._send(message)


def _same_origin(origin: str, host: str) -> bool:
    """Whether a page is ours: its server has the name and port that it sent the request to.

    http or https does not matter: a proxy may have made one of the other.
    """
    try:
        parts = urlsplit(origin.lower())
        port = parts.port
    except ValueError:
        return False
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    if usual is None or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return False
    page = parts.netloc.removesuffix(f":{port}") if port == usual else parts.netloc
    return page == host.lower().removesuffix(f":{usual}")
