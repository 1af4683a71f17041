"""The page's files, from memory: a page of many small modules is there at once."""

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
_WORTH = 1024  # bytes below which packing gains nothing


@dataclass(frozen=True)
class File:
    """A file of the page.

    Attributes
    ----------
    body, packed : bytes
        As it is, and by gzip.
    kind : str
        Its media type.
    mark : str
        What changes with its content.
    """

    body: bytes
    packed: bytes
    kind: str
    mark: str

    @classmethod
    def of(cls, path: Path) -> File:
        """A file as it is on the disk."""
        body = path.read_bytes()
        kind = _TYPES.get(path.suffix) or guess_type(path.name)[0] or "application/octet-stream"
        text = kind.startswith("text/") or kind.endswith(("json", "svg+xml"))
        packed = gzip.compress(body, 6, mtime=0) if text and len(body) > _WORTH else b""
        mark = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        return cls(body, packed, f"{kind}; charset=utf-8" if text else kind, mark)


class Pages:
    """An ASGI application that serves a folder, which is read once.

    Parameters
    ----------
    folder : Path
        The folder; what is not in it, is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): File.of(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a file, or say that it is the one that is there already."""
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
