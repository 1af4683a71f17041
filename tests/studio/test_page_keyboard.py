"""The story of a dialog by keyboard alone, and what a screen reader is given on the way."""

import re

import pytest
from playwright.sync_api import expect
from tests.studio.page_parts import (
    CERTIFY,
    LONG,
    Name,
    announced,
    ask_button,
    asks,
    asks_nothing,
    at_step,
    button,
    cell,
    compare_button,
    grid,
    home,
    in_words,
    keep_box,
    listen,
    live_region,
    matrix,
    matrix_card,
    only,
    panel,
    reply,
    rows_button,
    sentence,
    step,
    summary,
    table,
    tells,
    to,
    trail,
    trained,
    whole,
)

from margrave.steer import SteeredClassifier

pytestmark = pytest.mark.usefixtures("unused_rows")

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


def begins(page, mails):
    """From opening the page to a committee of two."""
    page.on("filechooser", lambda chooser: chooser.set_files(mails))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    use(page, page.get_by_role("link", name=Name.NEW_DIALOG))
    expect(page.get_by_role("main")).to_be_focused()
    use(page, button(page, Name.CHOOSE_FILE))
    expect(page.get_by_role("heading", name="mails.csv")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("main")).to_be_focused()
    to(page, page.get_by_label(Name.TARGET))
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label(Name.TARGET)).to_have_value("sender")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label(Name.TARGET)).to_have_value("kind")
    to(page, page.get_by_role("radio", name=re.compile("^spam")))
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("radio", name=re.compile("^ham"))).to_be_checked()
    page.keyboard.press("ArrowDown")
    for name in ("logistic-quantile", "extra-trees", "gradient-boosting", "svm"):
        use(page, page.get_by_role("checkbox", name=re.compile(f"^{name}")), "Space")
    tells(summary(page).locator("p").last, 2, 300)  # members, rows
    expect(button(page, Name.TRAIN)).to_be_enabled()
    use(page, button(page, Name.TRAIN))
    expect(grid(page)).to_be_visible(timeout=LONG)
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
    asks(page, most, sum(before[0]), "ham", "spam")
    page.keyboard.press("Escape")
    expect(cell(page, "ham", "spam")).to_be_focused()
    asks_nothing(page)
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    wanted = max(0, before[0][1] - 11)
    asks(page, wanted, sum(before[0]), "ham", "spam")
    page.keyboard.press("Enter")
    at_step(page, 1)
    expect(cell(page, "ham", "spam")).to_be_focused()
    after = matrix(page)
    assert after[0][1] <= wanted
    first, *_, last = announced(page)
    assert all(whole(fact).search(first) for fact in (wanted, sum(before[0]), "ham", "spam"))
    changed = ("ham", "spam", before[0][1], after[0][1])
    assert all(whole(fact).search(last) for fact in (1, *changed))  # the step, and its cell
    return before, after


def goes_back_and_forth(page, before, after):
    """Ctrl-Z and Ctrl-Shift-Z, and the trail by arrows."""
    page.keyboard.press("Control+z")
    at_step(page, 0)
    assert matrix(page) == before
    tells(live_region(page), 0)
    page.keyboard.press("Control+z")  # there is nothing before
    at_step(page, 0)
    page.keyboard.press("Control+Shift+z")
    at_step(page, 1)
    assert matrix(page) == after
    expect(live_region(page)).to_have_text(re.compile(r"\b1\b.*fp <= "))
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
    expect(live_region(page)).to_have_text(
        re.compile(r"\b2\b.*(fp|fn) <= 1\b")
    )  # which is the limit
    use(page, button(page, Name.TAKE).first)
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
    expect(slider).to_have_attribute("aria-valuetext", whole(limit))
    use(page, button(page, Name.ASK_POINT))
    at_step(page, 4)
    expect(button(page, Name.ASK_POINT)).to_be_focused()
    to(page, page.get_by_role("tab", name="Frontier"), "Shift+Tab")
    for name in ("Members", "Costs"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(panel(page, name)).to_be_visible()
    low = page.get_by_role("slider", name=f"{Name.MISS_COST}, at least")
    before = low.get_attribute("aria-valuetext")
    to(page, low)
    page.keyboard.press("ArrowRight")
    expect(low).not_to_have_attribute("aria-valuetext", before)
    n = matrix(page)[0][1]
    to(page, cell(page, "spam", "ham"), "Shift+Tab")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    use(page, rows_button(page, n))
    tells(panel(page, "Members").locator(".pages span"), 1, min(n, 25), n)
    sort = button(panel(page, "Members"), "Row")
    use(page, sort)
    expect(sort).to_be_focused()
    expect(panel(page, "Members").locator("[aria-sort=ascending]")).to_have_text(re.compile("Row"))


def accepts(page):
    """The box holds the focus, gives it back, and the certificate comes."""
    to(page, cell(page, "ham", "spam"), "Shift+Tab")
    page.keyboard.type("30%")
    page.keyboard.press("Tab")
    use(page, keep_box(page), "Space")
    asks(page, 30, "ham", "spam")
    to(page, ask_button(page), "Shift+Tab")
    page.keyboard.press("Enter")
    at_step(page, 5)
    expect(ask_button(page)).to_be_focused()
    to(page, page.get_by_role("tab", name=Name.MEMBERS))
    page.keyboard.press("End")
    expect(panel(page, CERTIFY)).to_be_visible()
    use(page, button(page, Name.ACCEPT))
    box = page.get_by_role("dialog", name=Name.CONFIRM_BOX)
    expect(box).to_be_visible()
    stops = set()
    for _ in range(6):
        page.keyboard.press("Tab")
        stops.add(page.evaluate("document.activeElement.closest('dialog, body').localName"))
    assert stops <= {"dialog", "body"}
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    expect(button(page, Name.ACCEPT)).to_be_focused()
    page.keyboard.press("Enter")
    use(page, button(box, Name.CONFIRM))
    expect(page.get_by_role("article")).to_be_visible(timeout=LONG)
    assert not lost(page)


@pytest.mark.full
def test_the_whole_story_by_keyboard(unpointed, tmp_path):
    mails = tmp_path / "mails.csv"
    mails.write_bytes(table())
    page = unpointed()
    begins(page, mails)
    goes_back_and_forth(page, *edits(page))
    takes_the_nearest(page)
    walks_the_tabs(page)
    accepts(page)
    to(page, page.get_by_role("link", name=Name.MODEL_FILE))
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
    ("", Name.DIALOGS, Name.NEW_DIALOG),
    ("#/new", Name.NEW_DIALOG, Name.CHOOSE_FILE),
    ("#/new/{table}", Name.PARTS, Name.TRAIN),
    ("#/d/{dialog}/frontier", Name.FRONTIER, Name.ASK_POINT),
    ("#/d/{dialog}/members", Name.DISAGREEMENT, Name.ROWS_FILE),
    ("#/d/{dialog}/costs", Name.COSTS, f"{Name.PRIOR}, at most"),
    ("#/d/{dialog}/certify", Name.OFFER, Name.SCRIPT_FILE),
)


@pytest.mark.full
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


@pytest.mark.full
def test_keys_that_undo_leave_fields_alone(unpointed, user, mails_table):
    page = unpointed(f"#/d/{trained(user, mails_table, 'fp <= 12')}")
    at_step(page, 1)
    use(page, in_words(page))
    to(page, page.get_by_label(Name.PREFERENCE))
    page.keyboard.type("fn <= 9")
    page.keyboard.press("Control+z")
    expect(page.get_by_label(Name.PREFERENCE)).not_to_have_value("fn <= 9")
    at_step(page, 1)
    to(page, page.get_by_role("checkbox", name=re.compile("^move")))
    page.keyboard.press("Control+z")
    at_step(page, 0)
    page.keyboard.press("Control+y")
    at_step(page, 1)


@pytest.mark.full
def test_what_goes_away_leaves_the_focus_nearby(unpointed, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12", "fp <= 30")
    page = unpointed(f"#/d/{dialog}/certify")
    at_step(page, 2)
    use(page, button(page, Name.RENAME, exact=True))
    expect(page.get_by_label(Name.TITLE)).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("A name")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="A name", exact=True)).to_be_visible()
    expect(button(page, Name.RENAME, exact=True)).to_be_focused()
    use(page, button(page, Name.UNDO))
    at_step(page, 1)
    page.keyboard.press("Enter")
    at_step(page, 0)
    expect(button(page, Name.UNDO)).to_be_focused()
    use(page, compare_button(page, 1))
    use(page, compare_button(page, 2))
    use(page, button(page, Name.CLOSE_COMPARISON))
    expect(trail(page, 2)).to_be_focused()
    to(page, cell(page, "ham", "spam"), "Shift+Tab")
    page.keyboard.type("3")
    page.keyboard.press("Tab")
    use(page, button(page, Name.CLEAR))
    expect(matrix_card(page)).to_be_focused()
    only(page, user, dialog)
    to(page, home(page), "Shift+Tab")
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
    answers = ("ham", "spam", None)
    for name in ("ham", "spam", "rejected"):
        expect(grid(page).get_by_role("columnheader", name=whole(name))).to_have_count(1)
    counts = matrix(page)
    for row, true in enumerate(answers[:2]):
        total = sum(counts[row])
        name = re.compile(rf"\b{true} {total}$")
        expect(grid(page).get_by_role("rowheader", name=name)).to_have_count(1)
        for column, answer in enumerate(answers):
            n = counts[row][column]
            edge = min(n, total - n) / total  # 0% and 100% have no decimals, near them are two
            share = f"{100 * n / total:.{0 if edge == 0 else 2 if edge < 0.00995 else 1}f}"
            for fact in (n, total, f"{share}%"):
                expect(cell(page, true, answer)).to_have_accessible_name(whole(fact))
            kind = "none" if answer is None else "right" if row == column else "wrong"
            expect(cell(page, true, answer)).to_have_class(re.compile(rf"\bcell-{kind}\b"))
    expect(matrix_card(page)).to_be_visible()
    expect(trail(page, 0)).to_be_visible()
    expect(step(page, 0)).to_have_attribute("aria-current", "step")
    expect(page.get_by_role("tab", selected=True)).to_have_text("Frontier")
    to(page, cell(page, "ham", "spam"))
    page.keyboard.press("Enter")
    field = grid(page).get_by_role("textbox")
    expect(field).to_have_accessible_name(re.compile("ham.*spam"))
    page.keyboard.type("x")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile(r"\S"))  # what is wrong
    page.keyboard.press("Escape")
    page.keyboard.type("5")
    page.keyboard.press("Tab")
    expect(cell(page, "ham", "spam")).to_have_accessible_name(whole(5))
    assert live_region(page).get_attribute("aria-live") == "polite"
    assert sentence(page).get_attribute("aria-live") == "polite"
