from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.needs import skip_missing
from tests.studio import postgres
from tests.studio.browser import SECONDS, Window, launch, new_page
from tests.studio.page_parts import uploaded
from tests.studio.running import Studio
from tests.studio.serving import Client, forget_uses, serving
from tools.system import PROGRAMS

from margrave.studio.store import Store

expect.set_options(timeout=SECONDS * 1000)


@pytest.fixture
def unused_rows() -> None:
    """For modules whose tests certify on the same few tables: each may use all of their rows."""
    forget_uses()


@pytest.fixture(scope="session")
def need() -> Callable[[str], Path]:
    """`need("chromium")` is its path; a test that needs it is skipped where it is missing."""

    def find(name: str) -> Path:
        return PROGRAMS[name]() or skip_missing(name)

    return find


@pytest.fixture(scope="session")
def server(need: Callable[[str], Path]) -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with postgres.running(need("postgresql")) as url:
        yield url


@pytest.fixture(scope="session")
def new_store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An SQLite file without anything, of the newest version: to make its tables takes longest."""
    file = tmp_path_factory.mktemp("new") / "studio.db"
    with Store(f"sqlite:///{file}"):
        pass
    return file.read_bytes()


@pytest.fixture
def file_store(tmp_path: Path, new_store: bytes) -> Iterator[Store]:
    """An open store in a file, without users."""
    file = tmp_path / "studio.db"
    file.write_bytes(new_store)
    with Store(f"sqlite:///{file}") as opened:
        yield opened


@pytest.fixture(scope="module")  # while it lives, this thread cannot run another event loop
def browser(need: Callable[[str], Path]) -> Iterator[Browser]:
    executable = need("chromium")
    with sync_playwright() as playwright, launch(playwright, executable) as opened:
        yield opened


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """`open_page(url, viewport=, theme=, reduced_motion=, allow=)`: a page that is watched.

    At the end of the test its console has to be empty, but for what `allow` has regular expressions
    of, such as the message that Chromium writes about an answer that is an error.
    """
    watches = []
    with ExitStack() as contexts:

        def open_(url: str | None = None, **options: object) -> Page:
            page, watch = new_page(browser, **options)
            contexts.callback(page.context.close)
            watches.append(watch)
            if url is not None:
                page.goto(url)
            return page

        yield open_
    problems = [problem for watch in watches for problem in watch.problems]
    assert problems == []


class Served(NamedTuple):
    """A server in this process, which has all imported already; its URL has the token."""

    url: str
    user: Client


@pytest.fixture(scope="session")
def studio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for all tests of a process; what one of them makes, the others see."""
    with serving(tmp_path_factory.mktemp("studio")) as (studio, client):
        yield Served(studio.settings.urls()[0], client)


@pytest.fixture(scope="session")
def user(studio_server: Served) -> Client:
    """A program of the server's one user."""
    return studio_server.user


@pytest.fixture(scope="session")
def mails_table(user: Client) -> str:
    """The id of the usual table, which is there once: to read an upload takes seconds."""
    return uploaded(user)


@pytest.fixture(scope="module")
def window(browser: Browser, studio_server: Served) -> Iterator[Window]:
    """A page for the tests of one file, one after another."""
    opened = Window(browser, studio_server.url)
    yield opened
    opened.page.context.close()


@pytest.fixture
def show(window: Window, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """`show(place, allow=, fresh=)`: the page at a place; as with `open_page` it is watched."""
    failed = request.session.testsfailed
    yield window.show
    window.leave(clean=request.session.testsfailed == failed)


@pytest.fixture
def start_studio(tmp_path: Path) -> Iterator[Callable[..., Studio]]:
    """`start_studio(*arguments, store=, port=, environment=, interrupt=)`: a server for one test.

    Started again, it finds the same store.
    """
    started = []

    def start(*arguments: str, **options: object) -> Studio:
        started.append(Studio(tmp_path, *arguments, **options))
        return started[-1]

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def page(open_page: Callable[..., Page], studio_server: Served) -> Page:
    """The studio's page, just opened."""
    return open_page(studio_server.url)
