"""What the tests of the page share: small tables, dialogs made without it, and its parts by name.

Parts are found by the role and the name that a screen reader is given, so that a part without them
is not found at all.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
from playwright.sync_api import Locator, Page, expect
from tests.studio.browser import SECONDS
from tests.studio.serving import Client

CLASSES = ("ham", "spam")
COLUMNS = ("links", "capitals", "length", "sender")
QUICK = ("line", "gaussians")
SLOW = "spambase"  # a set on which all members together take half a minute, and each step a second
REFUSED = r"the server responded with a status of {}"  # what Chromium itself writes of an error
AWAY = r"net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)"
MILLISECONDS = 1000 * SECONDS
LONG = 3 * MILLISECONDS  # for what the server computes, on a machine that is busy


def table(
    rows: int = 300,
    classes: Sequence[str] = CLASSES,
    columns: Sequence[str] = COLUMNS,
    target: str = "kind",
    senders: Sequence[str] = ("alice", "bob", "carol"),
) -> bytes:
    """A CSV file of mails: two quick members learn it in a moment, and nobody without mistakes."""
    draw = np.random.default_rng(0)
    shares = np.linspace(2, 1, len(classes))
    kind = draw.choice(len(classes), size=rows, p=shares / shares.sum())
    numbers = [
        draw.poisson(2 + 2 * kind),
        draw.normal(1.2 * kind, 1).round(3),
        draw.normal(0.6 * kind, 1).round(3),
    ]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*columns, target])
    for row in range(rows):
        values = [number[row] for number in numbers]
        writer.writerow([*values, senders[draw.integers(len(senders))], classes[kind[row]]])
    return text.getvalue().encode()


@contextmanager
def user_of(url: str) -> Iterator[Client]:
    """A program of the studio's user, which can do what the page does, without it."""
    headers = {"X-Margrave": "1"}
    with httpx.Client(base_url=url, headers=headers, timeout=120, trust_env=False) as http:
        yield Client(http)


def uploaded(user: Client, data: bytes | None = None, name: str = "mails.csv") -> str:
    """A table, as if the page had sent it."""
    answer = user.http.post("/api/tables", files={"file": (name, data or table())})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def trained(user: Client, table_id: str, *asked: str, **choices: object) -> str:
    """The id of a dialog on a table, after some requests."""
    given = {"target": "kind", "members": QUICK, **choices}
    begun = user.post("/dialogs", {"table": table_id, **given})
    last = user.finished(begun)
    assert last["state"] == "done", last
    found = begun.json()["dialog"]["id"]
    for want in asked:
        user.asked(f"/dialogs/{found}", want, keep=False)
    return found


# The parts of the page


def only(page: Page, user: Client, *dialogs: str) -> None:
    """Let the start list these dialogs alone, not those that other tests have left there."""
    listed = user.ok("/dialogs")["dialogs"]
    body = {"dialogs": [one for one in listed if one["id"] in dialogs]}
    page.route("**/api/dialogs", lambda route: route.fulfill(json=body))


def drop(page: Page, path: Path) -> None:
    """Drop a file where it is asked for, as from the system's own file manager."""
    box = page.get_by_text("Drop a table here").bounding_box()
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **at, "data": data})
        if kind == "dragOver":
            expect(page.locator(".drop-over")).to_be_visible()


def cell(page: Page, true: str, answer: str | None) -> Locator:
    """A cell of the large matrix; None for the rejected."""
    called = "rejected" if answer is None else f"called {answer}"
    return page.get_by_role("gridcell", name=f"true {true} {called}:")


def matrix(page: Page) -> list[list[int]]:
    """The counts of the large matrix, as a screen reader is told them."""
    rows = page.get_by_role("grid", name="Confusion matrix").get_by_role("row").all()
    texts = [row.get_by_role("gridcell").all_text_contents() for row in rows[1:]]
    return [[int(re.search(r": (\d+) of ", text)[1]) for text in row] for row in texts]


def step(page: Page, number: int) -> Locator:
    """A step in the trail."""
    return page.get_by_role("listitem").get_by_role("button", name=re.compile(rf"^Step {number}\b"))


def at_step(page: Page, number: int) -> None:
    """The dialog stands at a step, and says that all is saved."""
    expect(step(page, number)).to_have_attribute("aria-current", "step", timeout=LONG)
    expect(page.get_by_text("Saved", exact=True)).to_be_visible(timeout=LONG)


def tab(page: Page, name: str) -> Locator:
    """The panel of a tab, opened by a click."""
    page.get_by_role("tab", name=name).click()
    return panel(page, name)


def panel(page: Page, name: str) -> Locator:
    """The panel of a tab that is open."""
    return page.get_by_role("tabpanel", name=name)


def sentence(page: Page) -> Locator:
    """What the edits mean."""
    return page.locator("#matrix-sentence")


def reply(page: Page) -> Locator:
    """What became of the request."""
    return page.get_by_role("region", name="Reply", exact=True)


def told(page: Page) -> Locator:
    """What a screen reader is told in passing."""
    return page.locator("#live")


def record(user: Client, page: Page) -> dict:
    """The dialog that a page shows, as the server has it."""
    found = re.search(r"#/d/([^/]+)", page.url)
    return user.ok(f"/dialogs/{found[1]}")


def listen(page: Page) -> None:
    """Keep all that is announced from now on, also what is replaced at once."""
    page.evaluate(
        """() => {
          window.announced = [];
          for (const id of ['live', 'live-urgent']) {
            const place = document.getElementById(id);
            new MutationObserver(() => {
              if (place.textContent) window.announced.push(place.textContent);
            }).observe(place, { childList: true, characterData: true, subtree: true });
          }
        }"""
    )


def announced(page: Page) -> list[str]:
    """What was announced since `listen`."""
    return page.evaluate("window.announced")


# By keyboard


def has_focus(locator):
    return locator.evaluate("(one) => one === document.activeElement")


def to(page, locator, key="Tab", most=90):
    """Press Tab until a part has the focus."""
    expect(locator).to_be_visible(timeout=LONG)
    for _ in range(most):
        if has_focus(locator):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{most} times {key} did not lead to {locator}")
