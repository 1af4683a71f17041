"""What the studio's page shows, with the names that a screen reader reads, word for word.

A changed sentence is no fault. Read the change, then refresh the stored texts with `make wording`
(`pytest tests/wording --full --snapshot-update`).
"""

import re
from contextlib import contextmanager
from itertools import groupby

import pytest
from playwright.sync_api import expect, sync_playwright
from tests.needs import skip_missing
from tests.studio.browser import SECONDS, launch, new_page
from tests.studio.page_parts import (
    CERTIFY,
    Name,
    alert,
    asks,
    at_step,
    button,
    cell,
    panel,
    summary,
    trained,
)
from tests.studio.serving import serving
from tests.wording.masking import masked
from tools.system import PROGRAMS

pytestmark = pytest.mark.full

DATA = re.compile(r"\s*- ('?(row|cell)\b|/url:)")
"""Lines with the content of a table or an address; headers and cells of the matrix are kept."""
DURATION = re.compile(r"# (ms|s|min)\b")

expect.set_options(timeout=1000 * SECONDS)


@contextmanager
def browser_page():
    """A page of a browser that this test alone uses."""
    executable = PROGRAMS["chromium"]() or skip_missing("chromium")
    with sync_playwright() as playwright, launch(playwright, executable) as browser:
        page, _ = new_page(browser, reduced_motion=True)
        yield page


def view(title, part):
    """A title, and below it the accessibility tree of a part of the page.

    Numbers are masked. Lines that are then the same as the line before are left out.
    """
    expect(part.locator("[aria-busy=true], .spinner")).to_have_count(0)
    lines = DURATION.sub("# ms", masked_tree(part)).splitlines()
    kept = [line for line, _ in groupby(line for line in lines if not DATA.match(line))]
    return "\n".join([f"== {title}", *kept, ""])


def masked_tree(part):
    """The accessibility tree; `masked` alone would take the indents away."""
    return "\n".join(
        re.match(" *", line)[0] + masked(line.strip()) for line in part.aria_snapshot().splitlines()
    )


def views_before_training(page, url, table):
    """The list of dialogs, the choice of a table, and what is to be trained."""
    main = page.get_by_role("main")
    page.goto(url)
    expect(page.get_by_role("link", name=Name.NEW_DIALOG)).to_be_visible()
    yield view("No dialogs", page.locator("body"))
    page.goto(f"{url}#/new")
    expect(button(page, re.compile("^iris"))).to_be_visible()
    expect(page.locator(".drop")).to_contain_text("MB")
    yield view("New dialog", main)
    page.locator("input[type=file]").set_input_files(
        {"name": "letter.doc", "mimeType": "text/plain", "buffer": b"Dear"}
    )
    yield view("Refused upload", alert(page))
    page.goto(f"{url}#/new/{table}")
    expect(summary(page).get_by_role("listitem")).to_have_count(2)
    yield view("What to train", main)


def views_of_dialog(page, url, dialog):
    """An edit that is not requested, and each tab."""
    place = f"{url}#/d/{dialog}"
    page.goto(f"{place}/frontier")
    at_step(page, 1)
    expect(page.get_by_role("slider", name="Point of the frontier")).to_be_visible()
    cell(page, "neg", "pos").click()
    page.keyboard.type("5")
    page.keyboard.press("Tab")
    asks(page, 5)
    yield view("Dialog with an edited cell", page.locator("body"))
    page.keyboard.press("Escape")
    for name, ready in (
        ("Members", "Rows in the cell"),
        ("Costs", "Winners"),
        (CERTIFY, None),
    ):
        page.goto(f"{place}/{name.split()[0].lower()}")
        if ready:
            expect(page.get_by_role("region", name=ready)).to_be_visible()
        yield view(name, panel(page, name))
    page.goto(f"{place}/certify")
    button(panel(page, CERTIFY), Name.ACCEPT).click()
    yield view("Confirmation", page.get_by_role("dialog"))
    button(page, Name.CONFIRM).click()
    expect(panel(page, CERTIFY).get_by_role("article")).to_have_count(1)
    yield view("Accepted", panel(page, CERTIFY))
    page.goto(url)
    expect(page.get_by_role("listitem")).to_have_count(1)
    yield view("One dialog", page.get_by_role("main"))


def view_without_server(page, url):
    """What the page shows while the studio does not answer."""
    page.route("**/api/**", lambda route: route.abort())
    page.goto(f"{url}#/new")
    expect(page.locator(".top-notice")).to_be_visible()
    yield view("No answer", page.locator(".top-notice"))


def test_the_page(tmp_path, snapshot):
    with serving(tmp_path) as (studio, user), browser_page() as page:
        page.goto(studio.settings.urls()[0])
        url = page.url.partition("#")[0]  # without the token
        table = user.table("pima")
        views = [*views_before_training(page, url, table)]
        dialog = trained(user, table, target="target")
        user.asked(f"/dialogs/{dialog}", "fp <= 40%", strategies=["move"])
        views += views_of_dialog(page, url, dialog)
        views += view_without_server(page, url)
    assert "\n".join(views) == snapshot
