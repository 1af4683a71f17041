"""Serves the files of the page from memory, so that its many small modules load fast."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from mimetypes import guess_type
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

INDEX = "index.html"
_TYPES = {".js": "text/javascript", ".md": "text/markdown"}
_LEAST = 1024  # bytes from which compression is worth it


@dataclass(frozen=True)
class File:
    """A file of the page.

    Attributes
    ----------
    body, packed : bytes
        The content, as it is and compressed by gzip.
    kind : str
        The media type.
    mark : str
        A hash of the content, for the header ETag.
    """

    body: bytes
    packed: bytes
    kind: str
    mark: str

    @classmethod
    def of(cls, path: Path) -> File:
        """Read a file from the disk."""
        body = path.read_bytes()
        kind = _TYPES.get(path.suffix) or guess_type(path.name)[0] or "application/octet-stream"
        text = kind.startswith("text/") or kind.endswith(("json", "svg+xml"))
        packed = gzip.compress(body, 6, mtime=0) if text and len(body) > _LEAST else b""
        mark = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        return cls(body, packed, f"{kind}; charset=utf-8" if text else kind, mark)


class Pages:
    """An ASGI application that reads a folder once, and serves its files.

    Parameters
    ----------
    folder : Path
        The folder.
    """

    def __init__(self, folder: Path) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): File.of(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with a file, or with status 304 if the browser has it."""
        request = Request(scope, receive)
        if request.method not in ("GET", "HEAD"):
            raise HTTPException(405)
        file = self._files.get(scope["path"].removeprefix("/") or INDEX)
        if file is None:
            raise HTTPException(404)
        headers = {"ETag": file.mark, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == file.mark:
            await Response(status_code=304, headers=headers)(scope, receive, send)
            return
        body = file.body
        if file.packed and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = file.packed, "gzip"
        await Response(body, headers=headers, media_type=file.kind)(scope, receive, send)
