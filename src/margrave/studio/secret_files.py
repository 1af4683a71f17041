"""Files that only their user can read: the token of a studio with one user, and its way in.

Other users of the machine see the command lines of all processes, so the token is on none of them.
"""

from __future__ import annotations

import os
import webbrowser
from contextlib import suppress
from html import escape
from pathlib import Path
from tempfile import mkstemp

from margrave.studio._engine import StoreError, default_url, read_url
from margrave.studio._private_files import open_private
from margrave.studio.settings import is_token, new_token


def token_file(store: str) -> Path:
    """The file with the token of a studio with one user.

    Parameters
    ----------
    store : str
        The URL of the store. The file is beside an SQLite file; for another database it is in the
        user's data folder.
    """
    url = read_url(store)
    if url.get_backend_name() == "sqlite":
        database = Path(url.database or "")
        return database.with_name(f"{database.name}.token")
    return Path(read_url(default_url()).database or "").with_name("studio.token")


def keep_token(file: Path) -> str:
    """Read the token that an earlier studio has left in a file, or make the file with a new one.

    Raises
    ------
    StoreError
        If the file cannot be made or read, other users can read it, or it has no token.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.path.lexists(file):
            _write_token(file)
        with os.fdopen(open_private(file, os.O_RDONLY), encoding="latin-1") as opened:
            token = opened.read(1000)
    except OSError as error:
        raise StoreError(
            f"The file {file} cannot be made or read: {error.strerror}. If it is a link, delete it."
        ) from error
    if not is_token(token):
        raise StoreError(f"The file {file} has no token; delete it, and the studio makes another.")
    return token


def _write_token(file: Path) -> None:
    """Make a file with a new token, unless another process is faster; it is never half written."""
    handle, name = mkstemp(prefix=f"{file.name}-", dir=file.parent)  # with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as opened:
            opened.write(new_token())
            opened.flush()
            os.fsync(handle)
        with suppress(FileExistsError):
            os.link(name, file)
    finally:
        Path(name).unlink()


def open_browser(url: str, folder: str | Path) -> None:
    """Open an address with a token in the browser, through a file that leads to it.

    Parameters
    ----------
    url : str
        The address.
    folder : str or Path
        A folder that only this user can open; the caller removes it when the studio ends.
    """
    handle, name = mkstemp(prefix="open-", suffix=".html", dir=folder)  # with mode 0600
    address = escape(url)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>Margrave studio</title>'
            f'<meta http-equiv="refresh" content="0;url={address}">'
            f'<a href="{address}">Open the studio</a>'
        )
    webbrowser.open(Path(name).as_uri())
