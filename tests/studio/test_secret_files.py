"""What other users of the machine see of a studio: no token, no store, no way in."""

import os
import re
import stat
import subprocess
import sys
import time
import webbrowser
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import httpx
import pytest
from tests.studio.running import Studio
from tests.studio.serving import client_of

from margrave.studio import Settings, open_studio
from margrave.studio.secret_files import keep_token, open_browser, token_file
from margrave.studio.store import StoreError

NOBODY = 65534  # the id of a user who owns nothing
posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


@contextmanager
def everything_open():
    """What is made without a mode of its own is open to everybody."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture
def folder():
    """A folder that everybody can enter, as pytest's own cannot be."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


# The token


@posix
def test_a_token_is_made_once_and_for_its_user_alone(folder):
    file = folder / "new" / "studio.token"
    with everything_open():
        token = keep_token(file)
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert keep_token(file) == token
    assert Settings(token=token).token == token
    assert keep_token(folder / "other.token") != token


def loosen(file):
    file.chmod(0o640)


def link(file):
    elsewhere = file.with_name("elsewhere")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


def empty(file):
    file.write_bytes(b"")


def spoil(file):
    file.write_bytes(b"\xff a token of somebody else")


@posix
@pytest.mark.parametrize("change", [loosen, link, empty, spoil])
def test_a_file_that_others_may_have_read_or_made_is_refused(folder, change):
    file = folder / "studio.token"
    token = keep_token(file)
    change(file)
    with pytest.raises(StoreError) as caught:
        keep_token(file)
    assert str(file) in str(caught.value)
    assert token not in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="needs another user")
def test_a_file_of_another_user_is_refused(folder):
    file = folder / "studio.token"
    keep_token(file)
    os.chown(file, NOBODY, NOBODY)
    with pytest.raises(StoreError):
        keep_token(file)


@contextmanager
def full_disk():
    """Nothing can be written to files."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_token_that_could_not_be_written_leaves_no_file(folder):
    file = folder / "studio.token"
    with full_disk(), pytest.raises(StoreError) as caught:
        keep_token(file)
    assert str(file) in str(caught.value)
    assert list(folder.iterdir()) == []
    assert keep_token(file) == keep_token(file)
    assert list(folder.iterdir()) == [file]


@posix
def test_a_pipe_is_refused(folder):
    file = folder / "studio.token"
    os.mkfifo(file, 0o600)
    with pytest.raises(StoreError):
        keep_token(file)


# The store


@posix
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_lock_that_is_a_link_is_refused_and_the_other_file_unchanged(folder, link):
    other = folder / "other"
    other.write_text("of somebody else")
    link(folder / "studio.db.lock", other)
    with pytest.raises(StoreError) as caught:
        open_studio(Settings.of(store=f"sqlite:///{folder / 'studio.db'}"))
    assert "studio.db.lock" in str(caught.value)
    assert other.read_text() == "of somebody else"


@posix
def test_existing_files_are_closed_to_other_users(folder):
    settings = Settings.of(store=f"sqlite:///{folder / 'studio.db'}")
    studio = open_studio(settings)
    names = ["studio.db", "studio.db.lock", "studio.db-wal", "studio.db-shm"]
    copies = {name: (folder / name).read_bytes() for name in names}  # as after a power cut
    studio.close()
    for name, content in copies.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o644)
    studio = open_studio(settings)
    try:
        assert {name: oct(mode(folder / name)) for name in names} == dict.fromkeys(names, "0o600")
    finally:
        studio.close()


# Where the token is


def test_where_it_is(folder, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    monkeypatch.setenv("HOME", str(folder))
    beside = token_file(f"sqlite:///{folder / 'studio.db'}")
    assert beside.parent == folder
    other = token_file("postgresql://user:password@db/studio")
    assert folder in other.parents
    assert "password" not in str(other)


def test_a_studio_with_one_user_has_the_same_token_again_and_others_do_not(folder):
    def token(**given):
        studio = open_studio(Settings.of(store=f"sqlite:///{folder / 'studio.db'}", **given))
        studio.close()
        return studio.settings.token

    assert token() == token() == keep_token(token_file(f"sqlite:///{folder / 'studio.db'}"))
    assert token(host="0.0.0.0") != token()  # noqa: S104
    assert token(token="of-the-environment") == "of-the-environment"  # noqa: S106


# The browser


def refresh_target(page):
    """The address to which a browser goes from a page at once."""
    found = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attributes):
            given = dict(attributes)
            if tag == "meta" and given.get("http-equiv", "").lower() == "refresh":
                found.append(
                    re.fullmatch(r"\s*0\s*[;,]\s*url\s*=\s*(.*)", given["content"], re.I)[1]
                )

    Parser().feed(page)
    (target,) = found
    return target


@posix
def test_a_browser_is_opened_through_a_file_of_its_user(folder, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    url = "http://127.0.0.1:8420/?token=very-secret-token&x=%22\"'><b>#/d/1/frontier"
    with everything_open():
        open_browser(url, folder)
    (address,) = opened
    file = Path(urlsplit(address).path)
    assert file.parent == folder
    assert mode(file) == 0o600
    assert refresh_target(file.read_text("utf-8")) == url
    assert "very-secret" not in address


@pytest.mark.full
def test_the_file_leads_a_browser_to_the_place_in_the_page(start_studio, open_page, tmp_path):
    """Without a cookie at first; the token is not in the address that is shown."""
    notes = tmp_path / "opened"
    studio = start_studio("iris", browser=recorder(tmp_path, notes))
    page = open_page(opened(notes), allow=(r"file:///",))
    page.wait_for_url("**/#/d/*/frontier")
    page.get_by_text("iris").first.wait_for()
    token = httpx.URL(studio.url).params["token"]
    assert token not in page.url
    assert [cookie["httpOnly"] for cookie in page.context.cookies()] == [True]
    page.reload()
    page.get_by_text("iris").first.wait_for()


def recorder(folder, notes):
    """A browser that only writes down what it is asked to open."""
    program = folder / "browser"
    program.write_text(f'#!{sys.executable}\nimport sys\nopen("{notes}", "w").write(sys.argv[1])\n')
    program.chmod(0o755)
    return str(program)


def opened(notes):
    until = time.monotonic() + 20
    while not (notes.exists() and notes.read_text()):
        assert time.monotonic() < until, "No browser was opened."
        time.sleep(0.05)
    return notes.read_text()


def can_read(path):
    """Whether another user can read a file."""
    command = ["cat", str(path)]
    done = subprocess.run(  # noqa: S603 - cat
        command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False
    )
    return done.returncode == 0


@posix
@pytest.mark.slow
def test_another_user_of_the_machine_gets_nothing(folder, tmp_path):
    """Not from the server, not from its files, not from the list of processes."""
    notes = tmp_path / "opened"
    with everything_open():
        studio = Studio(
            folder, store=f"sqlite:///{folder}/studio.db", browser=recorder(tmp_path, notes)
        )
    try:
        token = httpx.URL(studio.url).params["token"]
        address = opened(notes)
        page = Path(urlsplit(address).path)
        assert mode(page.parent) == 0o700
        assert token not in address
        with client_of(studio.url) as user:
            user.table("iris")
        with client_of(studio.url.partition("?")[0]) as other:
            assert other.get("/").status_code == 401
            assert other.get("/dialogs").status_code == 401
            assert other.post("/tables/bundled", {"name": "iris"}).status_code == 401
        kept = [path for path in folder.iterdir() if path.name.startswith("studio.db")]
        assert {path.name.removeprefix("studio.db") for path in kept} >= {"", ".token", ".lock"}
        (folder / "open").write_text("for everybody")
        (folder / "open").chmod(0o644)
        for path in (*kept, page):
            assert mode(path) & 0o077 == 0, path
        if os.geteuid() == 0:
            assert can_read(folder / "open")  # so that the others are refused for their modes
            assert not [path for path in (*kept, page) if can_read(path)]
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                assert token.encode() not in process.read_bytes()
            except OSError:
                continue  # it has ended
    finally:
        studio.stop()
    assert not page.exists()
    assert not page.parent.exists()
