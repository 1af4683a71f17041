"""A real Chromium for the tests: pages that are watched, and what is asked of a page.

The Content-Security-Policy forbids eval, which `page.wait_for_function` uses: wait with `until`, or
with Playwright's `expect(locator)`.
"""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Playwright

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text()
WIDE, NARROW = (1440, 900), (390, 844)
SECONDS = 20


def launch(playwright: Playwright, executable: Path) -> Browser:
    """The system's Chromium without a window; as root it has no sandbox of its own."""
    root = getattr(os, "geteuid", lambda: 1)() == 0
    return playwright.chromium.launch(
        executable_path=executable, args=["--no-sandbox"] if root else []
    )


class Watch:
    """What should not happen on a page: console messages, errors, requests to other machines."""

    def __init__(self, context: BrowserContext, allow: tuple[str, ...] = ()):
        self.allow = [re.compile(pattern) for pattern in allow]
        self.problems: list[str] = []
        context.on("console", lambda event: self.note(f"console.{event.type}: {event.text}"))
        context.on("weberror", lambda event: self.note(f"uncaught: {event.error}"))
        context.on("request", lambda request: self.request(request.url))

    def note(self, problem: str) -> None:
        if not any(pattern.search(problem) for pattern in self.allow):
            self.problems.append(problem)

    def request(self, url: str) -> None:
        where = urlsplit(url)
        if where.scheme not in ("data", "blob") and where.hostname != "127.0.0.1":
            self.note(f"request to another machine: {url}")


def new_page(
    browser: Browser,
    *,
    viewport: tuple[int, int] = WIDE,
    theme: str = "light",
    reduced_motion: bool = False,
    allow: tuple[str, ...] = (),
    **options: object,
) -> tuple[Page, Watch]:
    """A page in a context of its own (no shared cookies or storage), and who watches it."""
    width, height = viewport
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,
        reduced_motion="reduce" if reduced_motion else "no-preference",
        locale="en-GB",
        timezone_id="UTC",
        **options,
    )
    context.set_default_timeout(SECONDS * 1000)
    watch = Watch(context, allow)
    return context.new_page(), watch


class Window:
    """A page that is shown in test after test: to open one costs more than most of them.

    Parameters
    ----------
    browser : Browser
        Where it is opened.
    url : str
        The studio's, with its token.
    """

    def __init__(self, browser: Browser, url: str):
        self.page, self.watch = new_page(browser, reduced_motion=True)
        self.page.goto(url)
        self.url = self.page.url.partition("#")[0]  # without the token; the cookie is enough

    def show(self, place: str = "", *, allow: tuple[str, ...] = (), fresh: bool = False) -> Page:
        """The page at a place; it is loaded again if `fresh`, or if no place is named."""
        self.watch.allow = [re.compile(pattern) for pattern in allow]
        if fresh:
            self.page.goto("about:blank")
        self.page.goto(f"{self.url}{place}")
        return self.page

    def leave(self, *, clean: bool) -> None:
        """End a test, of which nothing is left; its console has to be empty.

        After one that was not `clean` the page is loaded again: nobody knows what is on it.
        """
        self.page.unroute_all()
        self.page.evaluate("localStorage.clear()")
        self.page.goto(f"{self.url}#/" if clean else "about:blank")
        problems, self.watch.problems = self.watch.problems, []  # all until now
        assert problems == []


def until(page: Page, condition: str, seconds: float = SECONDS) -> None:
    """Wait until a JavaScript expression holds, looking at every frame."""
    held = page.evaluate(
        f"""(limit) => new Promise((resolve) => {{
          const end = performance.now() + limit;
          const look = () => {{
            if ({condition}) resolve(true);
            else if (performance.now() > end) resolve(false);
            else requestAnimationFrame(look);
          }};
          look();
        }})""",
        seconds * 1000,
    )
    assert held, f"not within {seconds} s: {condition}"


def axe(page: Page, within: str | None = None) -> list[str]:
    """The serious and critical findings of axe-core, one line for each kind.

    A colour that is still changing is measured as it is: open the page with reduced motion, or
    wait first. `within` is a selector; by default the whole page is checked.
    """
    page.evaluate(AXE)  # by the debugger's door, which the page's policy leaves open
    options = {"resultTypes": ["violations"]}  # to describe what is right takes most of its time
    found = page.evaluate(
        "async (given) => (await axe.run(given.within ?? document, given.options)).violations",
        {"within": within, "options": options},
    )
    return [
        f"{kind['impact']} {kind['id']}: {kind['help']} -- "
        + "; ".join(
            f"{' '.join(map(str, node['target']))}: {' '.join(node['failureSummary'].split())}"
            for node in kind["nodes"]
        )
        for kind in found
        if kind["impact"] in ("serious", "critical")
    ]


def overflow(page: Page) -> list[str]:
    """What sticks out of the window to the right, unless something scrolls around it."""
    return page.evaluate(
        """() => {
          const width = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= width) return [];
          const right = (element) => Math.round(element.getBoundingClientRect().right);
          return [...document.body.querySelectorAll('*')]
            .filter((element) => right(element) > width)
            .filter((element) => ![...element.children].some((child) => right(child) > width))
            .map((element) => `${element.localName}.${element.className}: ${right(element)}`);
        }"""
    )
