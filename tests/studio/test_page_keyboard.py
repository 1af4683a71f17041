"""The story of a dialog by keyboard alone, and what a screen reader is given on the way."""

import re

import pytest
from playwright.sync_api import expect
from tests.studio.page_parts import (
    LONG,
    announced,
    at_step,
    cell,
    listen,
    matrix,
    only,
    panel,
    reply,
    sentence,
    step,
    table,
    to,
    trained,
)

from margrave.steer import SteeredClassifier

# What tells a stop of the Tab key from its surroundings: styles there with and without the focus.
STOP = """async () => {
  await new Promise(requestAnimationFrame);
  const stop = document.activeElement;
  if (!stop || stop === document.body) return {lost: true};
  const near = [stop, stop.parentElement, stop.parentElement?.parentElement, ...stop.children];
  const looks = () => near.filter(Boolean).map((one) => {
    const style = getComputedStyle(one);
    const ring = style.outlineStyle === 'none' ? '' : style.outline;
    const {boxShadow, borderColor, backgroundColor, stroke, top} = style;
    return [ring, boxShadow, borderColor, backgroundColor, stroke, top];
  }).join();
  const box = stop.getBoundingClientRect();
  const top = document.querySelector('.top').getBoundingClientRect().bottom;
  const covered = stop.closest('.top, .skip, dialog') ? 0 : top;
  const inside =
    box.bottom > covered && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  const name = stop.getAttribute('aria-label') ?? stop.textContent.trim().slice(0, 60);
  const about = `${stop.localName} ${stop.id || stop.className.baseVal || stop.className} ${name}`;
  const focused = looks();
  stop.blur();
  const plain = looks();
  stop.focus({preventScroll: true});
  return {about, inside, seen: focused !== plain};
}"""


@pytest.fixture
def unpointed(show):
    """`unpointed(place)`: a page on which no mouse is used, and whose focus is never lost."""
    opened = []

    def open_(place=""):
        page = show(place, fresh=True)
        page.evaluate("addEventListener('pointerdown', () => { window.pointed = true; }, true)")
        opened.append(page)
        return page

    yield open_
    for page in opened:
        assert not page.evaluate("window.pointed")
        assert not lost(page)


def lost(page):
    """Whether nothing has the focus."""
    return page.evaluate("!document.activeElement || document.activeElement === document.body")


def use(page, locator, key="Enter"):
    """Go to a part by Tab and use it."""
    to(page, locator)
    page.keyboard.press(key)


def button(page, name, exact=False):
    return page.get_by_role("button", name=name, exact=exact)


def begins(page, mails):
    """From opening the page to a committee of two."""
    page.on("filechooser", lambda chooser: chooser.set_files(mails))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    use(page, page.get_by_role("link", name="New dialog"))
    expect(page.get_by_role("main")).to_be_focused()
    use(page, button(page, "Choose a file"))
    expect(page.get_by_role("heading", name="mails.csv")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("main")).to_be_focused()
    to(page, page.get_by_label("Column with the classes"))
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Column with the classes")).to_have_value("sender")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Column with the classes")).to_have_value("kind")
    to(page, page.get_by_role("radio", name=re.compile("^spam")))
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("radio", name=re.compile("^ham"))).to_be_checked()
    page.keyboard.press("ArrowDown")
    for name in ("quantile-line", "random-trees", "boosted-trees", "kernel"):
        use(page, page.get_by_role("checkbox", name=re.compile(f"^{name}")), "Space")
    expect(page.get_by_text("2 members, 300 rows")).to_be_visible()
    expect(button(page, "Train")).to_be_enabled()
    use(page, button(page, "Train"))
    expect(page.get_by_role("grid", name="Confusion matrix")).to_be_visible(timeout=LONG)
    assert not lost(page)


def edits(page):
    """Arrows move between the cells; a digit begins to edit; Enter asks."""
    to(page, cell(page, "ham", "spam"))
    before = matrix(page)
    for key, true, answer in (
        ("ArrowRight", "ham", None),
        ("ArrowDown", "spam", None),
        ("Home", "spam", "ham"),
        ("ArrowUp", "ham", "ham"),
        ("ArrowRight", "ham", "spam"),
    ):
        page.keyboard.press(key)
        expect(cell(page, true, answer)).to_be_focused()
    listen(page)
    most = before[0][1] // 2
    page.keyboard.type(f"{most}")
    expect(sentence(page)).to_have_text(f"at most {most} of {sum(before[0])} ham called spam")
    page.keyboard.press("Escape")
    expect(cell(page, "ham", "spam")).to_be_focused()
    expect(sentence(page)).to_contain_text("Change a cell")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    wanted = max(0, before[0][1] - 11)
    expect(sentence(page)).to_have_text(f"at most {wanted} of {sum(before[0])} ham called spam")
    page.keyboard.press("Enter")
    at_step(page, 1)
    expect(cell(page, "ham", "spam")).to_be_focused()
    after = matrix(page)
    assert after[0][1] <= wanted
    said = announced(page)
    assert said[0] == f"Asked: at most {wanted} of {sum(before[0])} ham called spam"
    assert said[-1].startswith("Step 1 is saved. Met. ham called spam: ")
    assert f"{before[0][1]} to {after[0][1]}" in said[-1]
    return before, after


def goes_back_and_forth(page, before, after):
    """Ctrl-Z and Ctrl-Shift-Z, and the trail by arrows."""
    page.keyboard.press("Control+z")
    at_step(page, 0)
    assert matrix(page) == before
    expect(page.locator("#live")).to_have_text("Step 0: the start.")
    page.keyboard.press("Control+z")  # there is nothing before
    at_step(page, 0)
    page.keyboard.press("Control+Shift+z")
    at_step(page, 1)
    assert matrix(page) == after
    expect(page.locator("#live")).to_have_text(re.compile("^Step 1: fp <= "))
    to(page, step(page, 0))
    page.keyboard.press("ArrowDown")
    expect(step(page, 1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    at_step(page, 0)
    expect(step(page, 0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    at_step(page, 1)


def takes_the_nearest(page):
    """Out of reach: what was found instead."""
    to(page, cell(page, "ham", "spam"), "Shift+Tab")
    page.keyboard.type("1")
    page.keyboard.press("Tab")  # leaves the cell and keeps the edit
    to(page, cell(page, "ham", "spam"), "Shift+Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type("1")
    expect(sentence(page).get_by_role("listitem")).to_have_count(2)
    page.keyboard.press("Enter")
    at_step(page, 2)
    expect(page.locator("#live")).to_have_text(re.compile("^Step 2 is saved. Not reachable, "))
    use(page, button(page, "Take this instead"))
    at_step(page, 3)
    expect(reply(page)).to_be_focused()


def walks_the_tabs(page):
    """Tabs by arrows; a point of the frontier by the slider; rows behind a cell; costs."""
    to(page, page.get_by_role("tab", name="Frontier"))
    shown = panel(page, "Frontier")
    slider = shown.get_by_role("slider", name="Point of the frontier")
    to(page, slider)
    page.keyboard.press("ArrowRight")
    limit = int(shown.get_by_label("At most").input_value())
    expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^At most {limit} of "))
    use(page, button(page, "Ask for it"))
    at_step(page, 4)
    expect(button(page, "Ask for it")).to_be_focused()
    to(page, page.get_by_role("tab", name="Frontier"), "Shift+Tab")
    for name in ("Program", "Members", "Costs"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(panel(page, name)).to_be_visible()
    low = page.get_by_role("slider", name="A miss costs, in false alarms, at least")
    before = low.get_attribute("aria-valuetext")
    to(page, low)
    page.keyboard.press("ArrowRight")
    expect(low).not_to_have_attribute("aria-valuetext", before)
    n = matrix(page)[0][1]
    to(page, cell(page, "spam", "ham"), "Shift+Tab")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    use(page, button(page, f"Show these {n} rows"))
    expect(panel(page, "Members")).to_contain_text(f"1 to {min(n, 25)} of {n}")
    sort = button(panel(page, "Members"), "Row")
    use(page, sort)
    expect(sort).to_be_focused()
    expect(panel(page, "Members").locator("[aria-sort=ascending]")).to_have_text(re.compile("Row"))


def accepts(page):
    """The box holds the focus, gives it back, and the certificate comes."""
    to(page, cell(page, "ham", "spam"), "Shift+Tab")
    page.keyboard.type("30%")
    page.keyboard.press("Tab")
    use(page, page.get_by_label(re.compile("^keep what was asked before")), "Space")
    expect(sentence(page)).to_contain_text("at most 30 % of ham called spam")
    to(page, button(page, "Ask", exact=True), "Shift+Tab")
    page.keyboard.press("Enter")
    at_step(page, 5)
    expect(button(page, "Ask", exact=True)).to_be_focused()
    to(page, page.get_by_role("tab", name="Members"))
    page.keyboard.press("End")
    expect(panel(page, "Accept")).to_be_visible()
    use(page, button(page, "Accept this model"))
    box = page.get_by_role("dialog", name="Spend the certify samples?")
    expect(box).to_be_visible()
    stops = set()
    for _ in range(6):
        page.keyboard.press("Tab")
        stops.add(page.evaluate("document.activeElement.closest('dialog, body').localName"))
    assert stops <= {"dialog", "body"}
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    expect(button(page, "Accept this model")).to_be_focused()
    page.keyboard.press("Enter")
    use(page, button(box, "Spend them and accept"))
    expect(page.get_by_role("article")).to_be_visible(timeout=LONG)
    assert not lost(page)


def test_the_whole_story_by_keyboard(unpointed, tmp_path):
    mails = tmp_path / "mails.csv"
    mails.write_bytes(table())
    page = unpointed()
    begins(page, mails)
    goes_back_and_forth(page, *edits(page))
    takes_the_nearest(page)
    walks_the_tabs(page)
    accepts(page)
    to(page, page.get_by_role("link", name=re.compile("^Model for")))
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    download.value.save_as(tmp_path / "model.skops")
    model = SteeredClassifier.load(tmp_path / "model.skops")
    assert str(model.certificate_.preference) == "fp <= 30%"


def stops_of(page, most=150):
    """Every stop of the Tab key on a page, once around, and what is wrong with it."""
    found, wrong = [], []
    for _ in range(most):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop.get("lost"):  # the browser's own bar comes after the last
            return found, wrong
        found.append(stop["about"])
        stop["seen"] = stop["seen"] or pixels_differ(page)
        wrong += [f"{what}: {stop['about']}" for what in ("inside", "seen") if not stop[what]]
    raise AssertionError(f"more than {most} stops: {found}")


def pixels_differ(page):
    """Whether the part with the focus looks otherwise without it: a thumb's styles are hidden."""
    part = page.evaluate_handle("document.activeElement").as_element()
    with_focus = part.screenshot()
    part.evaluate("(one) => one.blur()")
    without = part.screenshot()
    part.evaluate("(one) => one.focus({preventScroll: true})")
    return with_focus != without


PLACES = (  # with a heading that tells when it is there, and one of its stops
    ("", "Dialogs", "New dialog"),
    ("#/new", "New dialog", "Choose a file"),
    ("#/new/{table}", "Which rows do what", "Train"),
    ("#/d/{dialog}/frontier", "What can be had", "Ask for it"),
    ("#/d/{dialog}/members", "Where they disagree", "These rows as CSV"),
    ("#/d/{dialog}/costs", "Costs and priors", "Share of spam to come, at most"),
    ("#/d/{dialog}/accept", "Step 1 would promise", "Python script"),
)


def test_every_stop_of_the_tab_key_is_seen(unpointed, user, mails_table):
    """With a ring or a frame, and neither outside of the window nor under the top bar."""
    dialog = trained(user, mails_table, "fp <= 1, fn <= 1")
    page = unpointed("#/new")
    only(page, user, dialog)
    start = page.url.split("#")[0]
    for address, heading, one in PLACES:
        page.goto(start + address.format(table=mails_table, dialog=dialog))
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
        expect(page.get_by_role("main").locator("[aria-busy=true], .spinner")).to_have_count(0)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found, wrong = stops_of(page)
        assert wrong == []
        assert any(one in stop for stop in found), found
        page.keyboard.press("Tab")  # around


def test_keys_that_undo_leave_fields_alone(unpointed, user, mails_table):
    page = unpointed(f"#/d/{trained(user, mails_table, 'fp <= 12')}")
    at_step(page, 1)
    use(page, page.get_by_text("In words, and by which ways"))
    to(page, page.get_by_label("Preference in words"))
    page.keyboard.type("fn <= 9")
    page.keyboard.press("Control+z")
    expect(page.get_by_label("Preference in words")).not_to_have_value("fn <= 9")
    at_step(page, 1)
    to(page, page.get_by_role("checkbox", name=re.compile("^move")))
    page.keyboard.press("Control+z")
    at_step(page, 0)
    page.keyboard.press("Control+y")
    at_step(page, 1)


def test_what_goes_away_leaves_the_focus_nearby(unpointed, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12", "fp <= 30")
    page = unpointed(f"#/d/{dialog}/accept")
    at_step(page, 2)
    use(page, button(page, "Rename", exact=True))
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("A name")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="A name", exact=True)).to_be_visible()
    expect(button(page, "Rename", exact=True)).to_be_focused()
    use(page, button(page, "Undo"))
    at_step(page, 1)
    page.keyboard.press("Enter")
    at_step(page, 0)
    expect(button(page, "Undo")).to_be_focused()
    use(page, button(page, "Compare step 1"))
    use(page, button(page, "Compare step 2"))
    use(page, button(page, "Close the comparison"))
    expect(page.get_by_role("region", name="Trail 2 steps")).to_be_focused()
    to(page, cell(page, "ham", "spam"), "Shift+Tab")
    page.keyboard.type("3")
    page.keyboard.press("Tab")
    use(page, button(page, "Clear"))
    expect(page.get_by_role("region", name="Confusion matrix at the start")).to_be_focused()
    only(page, user, dialog)
    to(page, page.get_by_role("link", name="Margrave"), "Shift+Tab")
    page.keyboard.press("Enter")
    to(page, button(page, "Delete A name"))
    page.unroute_all()
    page.keyboard.press("Enter")
    use(page, button(page.get_by_role("dialog"), "Delete"))
    expect(button(page, "Delete A name")).to_have_count(0)
    expect(page.get_by_role("main")).to_be_focused()


def test_what_a_screen_reader_is_given(unpointed, user, mails_table):
    """Landmarks, headings, the matrix cell by cell, and the steps."""
    page = unpointed(f"#/d/{trained(user, mails_table)}/frontier")
    expect(page.get_by_role("banner")).to_be_visible()
    expect(page.get_by_role("main")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("mails.csv")
    grid = page.get_by_role("grid", name="Confusion matrix")
    for name in ("called ham", "called spam", "rejected"):
        expect(grid.get_by_role("columnheader", name=name, exact=True)).to_be_visible()
    counts = matrix(page)
    for row, true in enumerate(("ham", "spam")):
        total = sum(counts[row])
        expect(
            grid.get_by_role("rowheader", name=f"true {true} {total}", exact=True)
        ).to_be_visible()
        for column, answer in enumerate(("called ham", "called spam", "rejected")):
            n = counts[row][column]
            share = re.escape(f"{100 * n / total:.1f}".removesuffix(".0"))
            kind = "rejected" if column == 2 else "correct" if row == column else "mistake"
            name = re.compile(f"^true {true} {answer}: {n} of {total}, {share}%, {kind}, editable$")
            expect(grid.get_by_role("gridcell", name=name)).to_have_count(1)
    expect(page.get_by_role("region", name="Confusion matrix at the start")).to_be_visible()
    expect(page.get_by_role("region", name="Trail 0 steps")).to_be_visible()
    expect(step(page, 0)).to_have_accessible_name("Step 0, the start, here")
    expect(page.get_by_role("tab", selected=True)).to_have_text("Frontier")
    to(page, cell(page, "ham", "spam"))
    page.keyboard.press("Enter")
    field = grid.get_by_role("textbox")
    expect(field).to_have_accessible_name(re.compile("At most: a number, or a percentage"))
    page.keyboard.type("x")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile("Type a number such as 5"))
    page.keyboard.press("Escape")
    page.keyboard.type("5")
    page.keyboard.press("Tab")
    expect(cell(page, "ham", "spam")).to_have_accessible_name(
        re.compile("changed to 5, not asked yet, editable$")
    )
    assert page.locator("#live").get_attribute("aria-live") == "polite"
    assert sentence(page).get_attribute("aria-live") == "polite"
