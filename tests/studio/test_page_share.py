"""A dialog is shared from the page, and whoever has the link or the file reads it."""

import re
from contextlib import ExitStack

import pytest
from playwright.sync_api import expect
from tests.studio.browser import NARROW, WIDE, axe, new_page, overflow
from tests.studio.page_parts import (
    CERTIFY,
    REFUSED,
    TABS,
    at_step,
    button,
    matrix,
    panel,
    record,
    tab,
    tells,
    trained,
)


@pytest.fixture(scope="module")
def dialog(user, mails_table):
    """A dialog with two steps, the second of which is current and rejects some rows."""
    return trained(user, mails_table, "fp <= 12", "fp <= 20%, rejected <= 20%")


@pytest.fixture
def reader(browser):
    """`reader(link)`: a page of somebody else, without the owner's cookie; it is watched."""
    with ExitStack() as pages:

        def open_(link, **options):
            page, watch = new_page(browser, reduced_motion=True, **options)
            pages.callback(lambda: watch.problems == [] or pytest.fail(str(watch.problems)))
            pages.callback(page.context.close)
            page.goto(link)
            return page

        yield open_


def share_box(page):
    button(page, "Share", exact=True).click()
    return page.get_by_role("dialog", name="Share this dialog")


@pytest.mark.core
def test_a_link_is_made_read_and_taken_back(show, user, dialog, reader):
    page = show(f"#/d/{dialog}")
    at_step(page, 2)
    counts = matrix(page)
    box = share_box(page)
    expect(box).to_contain_text("this machine only")  # before anybody makes a link and sends it
    button(box, "Create a link").focus()
    page.keyboard.press("Enter")
    expect(box.get_by_label("Read-only link")).to_be_focused()
    assert axe(page, "dialog") == []
    link = box.get_by_label("Read-only link").input_value()
    assert dialog in link
    assert record(user, page)["link"] == link
    other = reader(link, allow=(REFUSED.format(403),))
    expect(other.get_by_text("Read-only view")).to_be_visible()
    shown = other.get_by_role("region", name="Confusion matrix").get_by_role("table").first
    for row, numbers in zip(shown.get_by_role("row").all()[1:], counts, strict=True):
        cells = row.get_by_role("cell").locator("b").all_inner_texts()
        assert [int(text) for text in cells] == numbers
    steps = other.get_by_role("region", name="Steps").get_by_role("row")
    expect(steps).to_have_count(1 + 3)
    expect(steps.nth(2).get_by_role("cell").first).to_have_text("fp <= 12")
    button(box, "Stop sharing").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the first answer keeps the link
    expect(button(box, "Stop sharing")).to_be_focused()
    assert record(user, page)["link"] == link
    button(box, "Stop sharing").click()
    button(box, "Stop sharing").click()
    expect(button(box, "Create a link")).to_be_focused()
    expect(box.get_by_label("Read-only link")).to_have_count(0)
    other.reload()
    expect(other.get_by_role("alert").first).to_be_visible()
    expect(other.get_by_text("Read-only view")).to_have_count(0)
    expect(other.get_by_text("fp <= 12")).to_have_count(0)


@pytest.mark.full
@pytest.mark.parametrize(("viewport", "theme"), [(WIDE, "light"), (NARROW, "dark")])
def test_a_reader_finds_every_view_and_nothing_to_change(user, dialog, reader, viewport, theme):
    link = user.post(f"/dialogs/{dialog}/share").json()["link"]
    page = reader(link, viewport=viewport, theme=theme)
    for name in TABS:
        shown = tab(page, name)
        expect(shown.locator("h2").first).to_be_visible()
        expect(shown.locator("[aria-busy=true]")).to_have_count(0)
        assert axe(page) == []
        assert overflow(page) == []
        assert dialog in page.url  # the key stays in the address, so that it can be reloaded
        for one in page.get_by_role("button").all():
            assert one.is_enabled()  # what is not allowed is not there
    expect(page.get_by_role("link", name=re.compile("^Report"))).to_be_visible()
    expect(page.locator("a[download]")).to_have_count(1)
    for gone in ("Rename", "Undo", "Share", "Certify this model"):
        expect(button(page, gone, exact=True)).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("link", name=re.compile("^Report")).click()
    assert download.value.suggested_filename == "report.html"


@pytest.mark.full
@pytest.mark.usefixtures("unused_rows")
def test_a_reader_finds_the_certificate_first(user, mails_table, reader):
    made = trained(user, mails_table, "fp <= 35%")
    job = user.finished(user.post(f"/dialogs/{made}/accept", {"confidence": 0.95}))
    assert job["state"] == "done", job
    page = reader(user.post(f"/dialogs/{made}/share").json()["link"])
    shown = panel(page, CERTIFY).get_by_role("article")
    (ham, as_spam, _), (as_ham, spam, _) = user.ok(f"/dialogs/{made}")["accepted"][0]["confusion"][
        "counts"
    ]
    tells(shown.locator("dd").nth(0), f"{as_spam} of {ham + as_spam}")
    tells(shown.locator("dd").nth(1), f"{as_ham} of {as_ham + spam}")


@pytest.mark.full
def test_a_reader_of_a_program_sees_its_nodes(user, mails_table, reader):
    made = trained(user, mails_table, kind="program", levels=3, members=None)
    page = reader(user.post(f"/dialogs/{made}/share").json()["link"])
    page.locator(".graph-node").first.click()
    card = page.get_by_role("region", name="Selected node")
    expect(card.get_by_role("table")).to_be_visible()
    expect(card.get_by_role("textbox")).to_have_count(0)
    expect(button(page, re.compile("^(Tune|Grow)"))).to_have_count(0)


@pytest.mark.full
@pytest.mark.parametrize(("viewport", "theme"), [(WIDE, "light"), (NARROW, "dark")])
def test_a_report_opens_from_the_disk(user, dialog, reader, tmp_path, viewport, theme):
    """Without a message, without a request, and readable for everybody."""
    file = tmp_path / "report.html"
    file.write_bytes(user.get(f"/dialogs/{dialog}/report.html").content)
    own = f"request to another machine: {re.escape(file.as_uri())}$"
    page = reader(file.as_uri(), viewport=viewport, theme=theme, allow=(own,))
    expect(page.get_by_role("img")).to_be_visible()
    assert axe(page) == []
    assert overflow(page) == []


def test_tabs_that_do_not_apply_are_hidden_and_none_is_off_screen(show, user, dialog):
    page = show(f"#/d/{dialog}/program")  # an old address
    expect(page.get_by_role("tab")).to_have_text([*TABS])
    expect(panel(page, TABS[0])).to_be_visible()
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    try:
        for one in page.get_by_role("tab").all():
            box = one.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= NARROW[0]
    finally:
        page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})


def test_the_tab_says_what_certifying_uses(show, user, dialog):
    page = show(f"#/d/{dialog}/certify")
    tells(panel(page, CERTIFY).locator(".panel-head"), record(user, page)["parts"]["certify"])
