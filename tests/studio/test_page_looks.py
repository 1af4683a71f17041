"""Every place of the page, wide and narrow, light and dark: well made, and nothing sticks out."""

import re

import pytest
from playwright.sync_api import expect
from tests.studio.browser import AXE, NARROW, WIDE, overflow, until
from tests.studio.page_parts import (
    CERTIFY,
    JUDGED,
    LONG,
    REFUSED,
    TABS,
    Name,
    alert,
    ask_button,
    at_step,
    button,
    cell,
    columns_used,
    compare_button,
    grid,
    hold_ends,
    home,
    in_words,
    judged,
    more_choices,
    node_field,
    only,
    panel,
    part_size,
    sentence,
    step,
    table,
    tells,
    trained,
    uploaded,
)

pytestmark = pytest.mark.usefixtures("unused_rows")
LOOKS = ((WIDE, "light"), (NARROW, "dark"))
LONG_LABELS = (
    "an ordinary letter that somebody wrote to somebody else, with a greeting and a name",
    "Donaudampfschiffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "news",
)
LONG_COLUMNS = (
    "links",
    "how_many_letters_are_capitals_of_all_the_letters_of_a_mail",
    "length",
    "x",
)

# As `browser.axe`, without bringing over all that is well, which takes longer than to find it.
# What the markup says is the same in all sizes and themes; colours are not.
FINDINGS = """async ([within, all]) => {
  const rules = all ? {} : {runOnly: ['color-contrast']};
  const {violations} = await axe.run(within, {...rules, resultTypes: ['violations']});
  return violations
    .filter(({impact}) => impact === 'serious' || impact === 'critical')
    .flatMap(({id, nodes}) =>
      nodes.map(({target, failureSummary}) => `${id}: ${target.join(' ')}: ${failureSummary}`));
}"""


class Looks:
    """A page that is looked at in place after place; what is wrong is reported at the end."""

    def __init__(self, page):
        self.page = page
        self.wrong = []

    def at(self, place, within="body"):
        """Look at a place in its sizes and themes; what is around it is looked at elsewhere."""
        for (width, height), theme in LOOKS:
            self.page.set_viewport_size({"width": width, "height": height})
            self.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            until(self.page, f"document.documentElement.dataset.theme === '{theme}'")
            if not self.page.evaluate("Boolean(window.axe)"):
                self.page.evaluate(AXE)
            all_rules = (width, height) == WIDE
            found = [*self.page.evaluate(FINDINGS, [within, all_rules]), *overflow(self.page)]
            self.wrong += [f"{place}, {width}, {theme}: {one}" for one in found]
        self.page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})


@pytest.fixture
def looks(show):
    """`looks(place, allow=)`: a page to be looked at; at the end, nothing may have been wrong."""
    opened = []

    def open_(place, **options):
        opened.append(Looks(show(place, **options)))
        return opened[-1]

    yield open_
    assert [one for look in opened for one in look.wrong] == []


@pytest.fixture(scope="module")
def long_table(user):
    """Three classes, with labels, columns and a name that are too long."""
    data = table(classes=LONG_LABELS, columns=LONG_COLUMNS)
    return uploaded(user, data, f"{'a_very_long_name_' * 6}.csv")


def rested(page):
    """What was loading is there."""
    expect(page.locator(".spinner, [aria-busy=true]")).to_have_count(0, timeout=LONG)


def tabs(look, *names):
    """Look at panels of a dialog."""
    for name in names:
        look.page.get_by_role("tab", name=name).click()
        expect(panel(look.page, name)).to_be_visible()
        rested(look.page)
        look.at(name, "#tab-panel")


def instead_of(page, address, body, status=200):
    """Let the server seem to answer something else."""
    page.route(address, lambda route: route.fulfill(json=body, status=status))


@pytest.mark.full
def test_the_start(looks, user, mails_table):
    look = looks("#/new")
    page = look.page
    only(page, user)
    home(page).click()
    expect(page.locator(".empty")).to_be_visible()
    look.at("no dialogs")
    met = trained(user, mails_table, "fp <= 12", title="Mails")
    missed = trained(user, mails_table, "fp <= 1, fn <= 1", title="A long title " * 12)
    only(page, user, met, missed)
    page.reload()
    expect(page.get_by_role("link", name="Mails", exact=True)).to_be_visible()
    look.at("dialogs")
    page.get_by_role("button", name="Rename Mails").click()
    look.at("a box to rename", "dialog")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete A long").first.click()
    look.at("a box to delete", "dialog")
    page.keyboard.press("Escape")


def test_choosing_a_table(looks, tmp_path):
    look = looks("#/new")
    page = look.page
    expect(page.get_by_role("button", name=re.compile("^pima"))).to_be_visible()
    look.at("choose")
    page.get_by_role("searchbox").fill("nothing like this")
    expect(page.locator(".empty")).to_be_visible()
    wrong = tmp_path / f"{'long' * 30}.doc"
    wrong.write_bytes(b"x")
    page.locator("input[type=file]").set_input_files(wrong)
    expect(alert(page)).to_contain_text(wrong.name)
    look.at("no set, no table")


@pytest.mark.full
def test_setting_up(looks, long_table):
    look = looks(f"#/new/{long_table}", allow=(REFUSED.format(400),))
    page = look.page
    expect(part_size(page, "certify")).to_be_visible()
    rested(page)
    look.at("setup")
    columns_used(page).click()
    more_choices(page).click()
    page.get_by_role("radio", name=Name.PROGRAM).click()
    page.get_by_label("Rows that belong together").select_option("length")
    page.get_by_label("Time of a row").select_option("links")
    rested(page)
    look.at("all of the setup", "main")
    page.get_by_label(Name.TARGET).select_option("length")
    expect(alert(page)).to_be_visible()
    look.at("no target", "main")


@pytest.mark.full
def test_what_is_not_there(looks, user, mails_table):
    look = looks("#/new/no-such-table", allow=tuple(map(REFUSED.format, (401, 404, 500))))
    page = look.page
    expect(alert(page)).to_be_visible()
    look.at("no table")
    page.goto(f"{page.url.split('#')[0]}#/d/no-such-dialog")
    expect(page.locator(".notice-warn")).to_be_visible()
    look.at("no dialog", "main")
    instead_of(page, "**/api/dialogs", {"error": "Something went wrong."}, 500)
    page.goto(f"{page.url.split('#')[0]}#/")
    expect(alert(page)).to_be_visible()
    look.at("an error", "main")
    dialog = trained(user, mails_table)
    for name in ("frontier", "members", "winners"):
        instead_of(page, f"**/api/dialogs/*/{name}*", {"error": "Something went wrong."}, 500)
    page.goto(f"{page.url.split('#')[0]}#/d/{dialog}")
    expect(panel(page, "Frontier").get_by_role("alert")).to_be_visible()
    look.at("no frontier", "#tab-panel")
    instead_of(page, "**/api/studio", {"error": "This studio needs its token."}, 401)
    page.goto(f"{page.url.split('#')[0]}#/new")
    expect(page.get_by_role("heading", name=Name.TOKEN_FORM)).to_be_visible()
    look.at("locked", "main")
    page.unroute_all()
    page.reload()  # until then, the token is asked for everywhere


@pytest.mark.full
def test_training(looks, user, mails_table):
    """A dialog as it is while it is trained, from the server's own record."""
    dialog = trained(user, mails_table)
    record = user.ok(f"/dialogs/{dialog}")
    members = [{"name": name, "done": at, "total": 6} for at, name in enumerate(record["members"])]
    job = {
        "id": "one",
        "kind": "train",
        "dialog": dialog,
        "state": "running",
        "ahead": 0,
        "progress": {"done": 1, "total": 12, "text": "logistic", "members": members},
        "error": None,
        "result": None,
    }
    look = looks("#/new")
    page = look.page
    page.route("**/events", lambda route: None)
    instead_of(page, f"**/dialogs/{dialog}", record | {"state": "training", "job": job})
    page.goto(f"{page.url.split('#')[0]}#/d/{dialog}")
    expect(page.get_by_role("progressbar")).to_have_count(3)
    look.at("training")
    failed = record | {"state": "failed", "error": "Training was cancelled."}
    instead_of(page, f"**/dialogs/{dialog}", failed)
    page.reload()
    expect(button(page, Name.TRAIN_AGAIN)).to_be_visible()
    look.at("not trained")


def test_a_dialog(looks, user):
    """With labels that are too long: what is well with them is well with short ones."""
    data = table(classes=LONG_LABELS[:2], columns=LONG_COLUMNS)
    dialog = trained(user, uploaded(user, data), "fp <= 12", "fp <= 1, fn <= 1", "fp <= 35%")
    look = looks(f"#/d/{dialog}")
    page = look.page
    at_step(page, 3)
    rested(page)
    look.at("a dialog")
    tabs(look, *TABS[1:])  # after the frontier, which is there at once
    step(page, 2).click()
    at_step(page, 2)
    compare_button(page, 1).click()
    compare_button(page, 3).click()
    tells(page.get_by_role("region", name=Name.COMPARISON), 240)
    look.at("not met, and compared", ".dialog-left")
    cell(page, *LONG_LABELS[:2]).click()
    page.keyboard.type("5")
    in_words(page).click()
    expect(sentence(page).get_by_role("listitem").first).to_be_visible()
    look.at("an edit and words", ".matrix-card")
    cell(page, LONG_LABELS[1], LONG_LABELS[0]).click()
    page.keyboard.type("999")
    expect(sentence(page).locator(".bad")).to_be_visible()
    look.at("a wrong edit", ".matrix-card")


@pytest.mark.full
def test_a_dialog_at_work(looks, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12")
    look = looks(f"#/d/{dialog}")
    page = look.page
    at_step(page, 1)
    page.route("**/events", lambda route: None)
    hold_ends(page)
    cell(page, "ham", "spam").click()
    page.keyboard.type("5")
    ask_button(page).click()
    expect(button(page, Name.STOP)).to_be_visible()
    look.at("at work", ".dialog")


@pytest.mark.full
def test_accepting(looks, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12", "fp <= 35%")
    look = looks(f"#/d/{dialog}/certify")
    page = look.page
    button(page, Name.ACCEPT).click()
    look.at("a question", "dialog")
    button(page, Name.CONFIRM).click()
    expect(page.get_by_role("article")).to_be_visible(timeout=LONG)
    page.get_by_text("As text").click()
    look.at("a certificate", "#tab-panel")
    step(page, 1).click()
    at_step(page, 1)
    expect(panel(page, CERTIFY).locator(".offer .notice-warn")).to_be_visible()
    assert user.ok(f"/dialogs/{dialog}")["used_up"]
    look.at("used-up", "#tab-panel")


@pytest.mark.full
def test_what_is_useless(looks, user):
    dialog = trained(user, uploaded(user, judged(), "judged.csv"), "fp <= 5%", **JUDGED)
    look = looks(f"#/d/{dialog}/certify")
    page = look.page
    button(page, Name.ANYWAY).click()
    look.at("a warning", "dialog")
    page.keyboard.press("Escape")
    look.at("a useless model is expected", "#tab-panel")
    user.finished(user.post(f"/dialogs/{dialog}/accept", {"anyway": True}))
    page.reload()
    expect(page.get_by_role("article")).to_be_visible()
    look.at("a useless model is certified")
    home(page).click()
    expect(page.locator(".tag-warn").first).to_be_visible()
    look.at("a useless model in the list", "main")


@pytest.mark.full
def test_a_guarantee_that_cannot_be_given_is_refused(looks, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 1%, fn <= 1%")
    look = looks(f"#/d/{dialog}/certify")
    refusal = panel(look.page, CERTIFY).locator(".offer #accept-reason p")  # why, and what helps
    expect(refusal.nth(1)).to_be_visible(timeout=LONG)
    expect(button(look.page, Name.ACCEPT)).to_be_disabled()
    look.at("refused", "#tab-panel")


@pytest.mark.full
def test_a_program(looks, user, mails_table):
    dialog = trained(user, mails_table, kind="program", levels=5, members=None)
    look = looks(f"#/d/{dialog}")
    page = look.page
    button(page, Name.TUNE_WEAK).click()
    node_field(page, "ham", "spam").fill("1")
    look.at("a node")
    button(page, Name.ASK_NODE).click()
    at_step(page, 1)
    rested(page)
    look.at("a node that was tuned", "#tab-panel")


@pytest.mark.full
def test_three_classes(looks, user, long_table):
    look = looks(f"#/d/{trained(user, long_table)}")
    expect(grid(look.page)).to_be_visible()
    rested(look.page)
    look.at("three classes")
    tabs(look, CERTIFY)
    cell(look.page, "news", LONG_LABELS[0]).click()
    look.page.keyboard.type("0")
    expect(sentence(look.page).get_by_role("listitem")).to_be_visible()
    look.at("an edit", ".dialog-left")


@pytest.mark.full
def test_a_program_of_three_classes(looks, user, long_table):
    look = looks(f"#/d/{trained(user, long_table, kind='program', levels=3)}")
    tabs(look, "Program")
    look.page.get_by_role("button", name=re.compile("^Layer 0")).click()
    look.at("a node", "#tab-panel")
