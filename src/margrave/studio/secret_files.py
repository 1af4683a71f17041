"""Files that only their user can read: the token of a studio with one user, and its way in.

Other users of the machine see the command lines of all processes, so the token is on none of them.
"""

from __future__ import annotations

import os
import stat
import time
import webbrowser
from html import escape
from pathlib import Path
from tempfile import mkstemp

from margrave.studio._engine import StoreError, default_url, read_url
from margrave.studio.settings import is_token, new_token

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_WAIT = 1.0  # seconds for another process to write the token into the file that it has made


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
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_token(file)
    except OSError as error:
        raise StoreError(f"The file {file} cannot be made: {error.strerror}.") from error
    token = new_token()
    with os.fdopen(handle, "w", encoding="ascii") as opened:
        opened.write(token)
        opened.flush()
        os.fsync(handle)
    return token


def _read_token(file: Path) -> str:
    until = time.monotonic() + _WAIT
    while True:
        try:
            with os.fdopen(os.open(file, os.O_RDONLY | _NO_LINK), encoding="latin-1") as opened:
                is_private = _is_private(os.fstat(opened.fileno()))
                token = opened.read(1000) if is_private else ""
        except OSError as error:
            raise StoreError(f"The file {file} cannot be read: {error.strerror}.") from error
        if is_token(token):
            return token
        if not is_private or time.monotonic() > until:
            reason = "has no token" if is_private else "belongs to or can be read by other users"
            raise StoreError(f"The file {file} {reason}; delete it, and the studio makes another.")
        time.sleep(0.01)


def _is_private(status: os.stat_result) -> bool:
    """Whether a file is a plain one of this user that no other user can open."""
    if not stat.S_ISREG(status.st_mode):
        return False
    if not hasattr(os, "geteuid"):  # on Windows, the permissions are those of the folder
        return True
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077


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
