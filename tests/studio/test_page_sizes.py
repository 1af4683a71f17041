"""Whole stories on other tables: four classes, numbers as classes, many rows, many steps."""

import re
from time import monotonic

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.studio.browser import NARROW, WIDE, axe, overflow
from tests.studio.page_parts import (
    LONG,
    Name,
    ask_button,
    at_step,
    button,
    cell,
    grid,
    matrix,
    reply,
    sentence,
    step,
    tab,
    table,
    tells,
    trail,
    trained,
    uploaded,
)

pytestmark = [pytest.mark.usefixtures("unused_rows"), pytest.mark.full]
SIZES = pytest.mark.parametrize(("viewport", "theme"), [(WIDE, "light"), (NARROW, "dark")])


def well_made(page):
    """Nothing sticks out of the window, and axe finds nothing serious."""
    assert overflow(page) == []
    assert axe(page) == []


def applies(page, true, predicted, limit):
    """Limit a cell, and return the matrix that the request reaches."""
    before = matrix(page)
    cell(page, true, predicted).click()
    page.keyboard.type(str(limit))
    expect(sentence(page).get_by_role("listitem")).to_have_count(1)
    ask_button(page).click()
    at_step(page, 1)
    expect(reply(page).locator(".tag-good")).to_be_visible()
    after = matrix(page)
    assert [sum(row) for row in after] == [sum(row) for row in before]
    return after


def certifies(page):
    """Certify the current step."""
    shown = tab(page, "Certify & export")
    button(shown, Name.ACCEPT).click()
    button(page, Name.CONFIRM).click()
    expect(shown.get_by_role("article")).to_be_visible(timeout=LONG)


@SIZES
def test_four_classes(open_page, studio_server, viewport, theme):
    classes = ("alpha", "beta", "delta", "gamma")
    dialog = trained(studio_server.user, uploaded(studio_server.user, table(900, classes)))
    page = open_page(f"{studio_server.url}#/d/{dialog}", viewport=viewport, theme=theme)
    expect(grid(page)).to_be_visible()
    after = applies(page, "beta", "delta", "40%")
    assert after[1][2] <= 0.4 * sum(after[1])
    well_made(page)
    page.get_by_label("Class in focus").select_option(label="gamma")
    expect(page.get_by_role("img", name=re.compile("gamma"))).to_be_visible()
    well_made(page)
    certifies(page)
    well_made(page)


def clipped(page):
    """The numbers of the matrix that are wider than their place."""
    return page.locator(".cell-number").evaluate_all(
        """(all) => all.filter((one) => one.scrollWidth > one.clientWidth)
                       .map((one) => one.innerText)"""
    )


def lines(part):
    """Of how many lines a text is."""
    return part.evaluate("(one) => one.clientHeight / parseFloat(getComputedStyle(one).lineHeight)")


@SIZES
def test_long_names_and_percentages_are_not_clipped(open_page, studio_server, viewport, theme):
    user = studio_server.user
    classes = ("account_takeover", "friendly_fraud", "honest", "stolen_card")
    dialog = trained(user, uploaded(user, table(2400, classes)), "correct(honest) >= 60%")
    page = open_page(
        f"{studio_server.url}#/d/{dialog}", viewport=viewport, theme=theme, reduced_motion=True
    )
    at_step(page, 1)
    errors = sum(map(sum, matrix(page))) - sum(row[at] for at, row in enumerate(matrix(page)))
    tells(step(page, 1).locator(".trail-counts"), errors)
    button(page, Name.PERCENT).click()
    assert clipped(page) == []
    cell(page, "honest", "honest").click()
    page.keyboard.type("97.5")
    expect(page.locator(".cell-bound").nth(3)).to_be_visible()  # the preview of other cells
    assert clipped(page) == []
    page.keyboard.press("Escape")
    certifies(page)
    assert lines(page.locator(".dialog-head p").first) < 2
    title = page.get_by_role("heading", level=1).bounding_box()
    assert title["width"] > title["height"]
    for head in page.get_by_role("article").get_by_role("rowheader").all():
        assert lines(head) < 4  # "true", and the two words of a name
    well_made(page)


@SIZES
def test_numbers_as_classes(open_page, studio_server, viewport, theme):
    data = table(classes=("0", "1"))
    dialog = trained(studio_server.user, uploaded(studio_server.user, data))
    page = open_page(f"{studio_server.url}#/d/{dialog}", viewport=viewport, theme=theme)
    expect(grid(page)).to_be_visible()
    after = applies(page, 0, 1, "30%")
    assert after[0][1] <= 0.3 * sum(after[0])
    certifies(page)
    well_made(page)


@SIZES
def test_fifty_steps(open_page, studio_server, mails_table, viewport, theme):
    limits = [f"fp <= {1 + number % 25}" for number in range(50)]
    dialog = trained(studio_server.user, mails_table, *limits)
    page = open_page(f"{studio_server.url}#/d/{dialog}", viewport=viewport, theme=theme)
    expect(trail(page, 50)).to_be_visible()
    assert page.locator(".trail-list").evaluate("(list) => list.scrollTop") > 0
    well_made(page)
    button(page, Name.UNDO).click()
    at_step(page, 49)
    step(page, 3).click()
    at_step(page, 3)
    well_made(page)


def large_table(rows=200_000):
    """A CSV file with two classes, numeric columns and a text."""
    draw = np.random.default_rng(0)
    spam = draw.random(rows) < 0.3
    columns = [draw.normal(0.8 * spam, 1).round(3) for _ in range(4)]
    kinds = np.where(spam, "spam", "ham")
    lines = zip(*(column.tolist() for column in columns), kinds.tolist(), strict=True)
    return "\n".join(["a,b,c,d,kind", *(",".join(map(str, line)) for line in lines)]).encode()


def test_two_hundred_thousand_rows(open_page, studio_server, tmp_path):
    """From the file to a certificate; the first matrix is there long before the last member."""
    path = tmp_path / "large.csv"
    path.write_bytes(large_table())
    page = open_page(f"{studio_server.url}#/new")
    page.locator("input[type=file]").set_input_files(path)
    expect(button(page, Name.TRAIN, exact=True)).to_be_enabled(timeout=LONG)
    button(page, Name.TRAIN, exact=True).click()
    provisional = page.get_by_role("table", name=re.compile("finished members"))
    expect(provisional).to_be_visible(timeout=LONG)
    expect(grid(page)).to_be_visible(timeout=5 * LONG)
    start = matrix(page)
    began = monotonic()
    after = applies(page, "ham", "spam", "3%")
    assert monotonic() - began < LONG / 1000
    assert after[0][1] <= 0.03 * sum(start[0])
    certifies(page)
    well_made(page)
