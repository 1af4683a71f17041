"""Every place of the page, wide and narrow, light and dark: well made, and nothing sticks out."""

import re

import pytest
from playwright.sync_api import expect
from tests.studio.browser import AXE, NARROW, WIDE, overflow, until
from tests.studio.page_parts import (
    LONG,
    REFUSED,
    at_step,
    cell,
    only,
    panel,
    sentence,
    step,
    table,
    trained,
    uploaded,
)

LOOKS = ((WIDE, "light"), (NARROW, "dark"))
TABS = ("Program", "Members", "Costs", "Accept")  # after the frontier, which is there at once
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
    """A page that is looked at in place after place; what is wrong is told at the end."""

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


def test_the_start(looks, user, mails_table):
    look = looks("#/new")
    page = look.page
    only(page, user)
    page.get_by_role("link", name="Margrave").click()
    expect(page.get_by_text("No dialogs yet")).to_be_visible()
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
    expect(page.get_by_text("No set fits")).to_be_visible()
    wrong = tmp_path / f"{'long' * 30}.doc"
    wrong.write_bytes(b"x")
    page.locator("input[type=file]").set_input_files(wrong)
    expect(page.get_by_role("alert").first).to_contain_text("neither CSV nor Parquet")
    look.at("no set, no table")


def test_setting_up(looks, long_table):
    look = looks(f"#/new/{long_table}", allow=(REFUSED.format(400),))
    page = look.page
    expect(page.get_by_role("term").filter(has_text="Certify")).to_be_visible()
    rested(page)
    look.at("setup")
    page.get_by_text(re.compile("^Columns: ")).click()
    page.get_by_text("More: title").click()
    page.get_by_role("radio", name=re.compile("^A martingale program")).click()
    page.get_by_label("Rows that belong together").select_option("length")
    page.get_by_label("When a row was taken").select_option("links")
    rested(page)
    look.at("all of the setup", "main")
    page.get_by_label("Column with the classes").select_option("length")
    expect(page.get_by_role("alert").first).to_be_visible()
    look.at("no target", "main")


def test_what_is_not_there(looks, user, mails_table):
    look = looks("#/new/no-such-table", allow=tuple(map(REFUSED.format, (401, 404, 500))))
    page = look.page
    expect(page.get_by_text("This table is not here any more.")).to_be_visible()
    look.at("no table")
    page.goto(f"{page.url.split('#')[0]}#/d/no-such-dialog")
    expect(page.get_by_text("There is no such dialog.")).to_be_visible()
    look.at("no dialog", "main")
    instead_of(page, "**/api/dialogs", {"error": "Something went wrong."}, 500)
    page.goto(f"{page.url.split('#')[0]}#/")
    expect(page.get_by_text("Something went wrong.")).to_be_visible()
    look.at("an error", "main")
    dialog = trained(user, mails_table)
    for name in ("frontier", "members", "winners"):
        instead_of(page, f"**/api/dialogs/*/{name}*", {"error": "Something went wrong."}, 500)
    page.goto(f"{page.url.split('#')[0]}#/d/{dialog}")
    expect(page.get_by_text("The frontier could not be drawn")).to_be_visible()
    look.at("no frontier", "#tab-panel")
    instead_of(page, "**/api/studio", {"error": "This studio needs its token."}, 401)
    page.goto(f"{page.url.split('#')[0]}#/new")
    expect(page.get_by_role("heading", name="Enter the token")).to_be_visible()
    look.at("locked", "main")
    page.unroute_all()
    page.reload()  # until then, the token is asked for everywhere


def test_training(looks, user, mails_table):
    """A dialog as it is while it is trained, told by the server's own record."""
    dialog = trained(user, mails_table)
    record = user.ok(f"/dialogs/{dialog}")
    members = [{"name": name, "done": at, "total": 6} for at, name in enumerate(record["members"])]
    job = {
        "id": "one",
        "kind": "train",
        "dialog": dialog,
        "state": "running",
        "ahead": 0,
        "progress": {"done": 1, "total": 12, "text": "line", "members": members},
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
    expect(page.get_by_role("button", name="Train again")).to_be_visible()
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
    tabs(look, *TABS)
    step(page, 2).click()
    at_step(page, 2)
    page.get_by_role("button", name="Compare step 1").click()
    page.get_by_role("button", name="Compare step 3").click()
    expect(page.get_by_role("region", name="Comparison")).to_contain_text("240 samples")
    look.at("not met, and compared", ".dialog-left")
    cell(page, *LONG_LABELS[:2]).click()
    page.keyboard.type("5")
    page.get_by_text("In words, and by which ways").click()
    expect(sentence(page).get_by_role("listitem").first).to_be_visible()
    look.at("an edit and words", ".matrix-card")
    cell(page, LONG_LABELS[1], LONG_LABELS[0]).click()
    page.keyboard.type("999")
    expect(sentence(page).locator(".bad")).to_be_visible()
    look.at("a wrong edit", ".matrix-card")


def test_a_dialog_at_work(looks, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12")
    look = looks(f"#/d/{dialog}")
    page = look.page
    at_step(page, 1)
    page.route("**/events", lambda route: None)
    cell(page, "ham", "spam").click()
    page.keyboard.type("5")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    look.at("at work", ".dialog")


def test_accepting(looks, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12", "fp <= 35%")
    look = looks(f"#/d/{dialog}/accept")
    page = look.page
    page.get_by_role("button", name="Accept this model").click()
    look.at("a question", "dialog")
    page.get_by_role("button", name="Spend them and accept").click()
    expect(page.get_by_role("article")).to_be_visible(timeout=LONG)
    page.get_by_text("As text").click()
    look.at("a certificate", "#tab-panel")
    step(page, 1).click()
    at_step(page, 1)
    expect(panel(page, "Accept")).to_contain_text("certify samples are spent")
    look.at("spent", "#tab-panel")


def test_a_promise_that_cannot_be_made_is_refused_in_words(looks, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 1%, fn <= 1%")
    look = looks(f"#/d/{dialog}/accept")
    look.page.get_by_role("button", name="Accept this model").click()
    look.page.get_by_role("button", name="Spend them and accept").click()
    expect(look.page.get_by_text("The promise was refused")).to_be_visible(timeout=LONG)
    expect(panel(look.page, "Accept")).to_contain_text("What would help")
    assert user.ok(f"/dialogs/{dialog}")["accepted"] == []
    look.at("refused", "#tab-panel")


def test_a_program(looks, user, mails_table):
    dialog = trained(user, mails_table, kind="program", levels=5, members=None)
    look = looks(f"#/d/{dialog}")
    page = look.page
    page.get_by_role("button", name="Tune the weak ones").click()
    field = page.get_by_role("textbox", name=re.compile("^ham called spam, at most"))
    field.fill("1")
    look.at("a node")
    page.get_by_role("button", name="Ask this node").click()
    at_step(page, 1)
    rested(page)
    look.at("a node that was tuned", "#tab-panel")


def test_three_classes(looks, user, long_table):
    look = looks(f"#/d/{trained(user, long_table)}")
    expect(look.page.get_by_role("grid", name="Confusion matrix")).to_be_visible()
    rested(look.page)
    look.at("three classes")
    tabs(look, "Accept")
    cell(look.page, "news", LONG_LABELS[0]).click()
    look.page.keyboard.type("0")
    expect(sentence(look.page).get_by_role("listitem")).to_be_visible()
    look.at("an edit", ".dialog-left")


def test_a_program_of_three_classes(looks, user, long_table):
    look = looks(f"#/d/{trained(user, long_table, kind='program', levels=3)}")
    tabs(look, "Program")
    look.page.get_by_role("button", name=re.compile("^Layer 0")).click()
    look.at("a node", "#tab-panel")
