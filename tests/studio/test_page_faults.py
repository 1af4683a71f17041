"""What goes wrong, and what the page says: bad files, a server that dies, strangers, tricks."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from tests.studio.browser import axe, overflow
from tests.studio.page_parts import (
    AWAY,
    LONG,
    QUICK,
    REFUSED,
    SLOW,
    TABS,
    Name,
    alert,
    ask_button,
    asks,
    at_step,
    button,
    cell,
    columns_used,
    hold_ends,
    home,
    keep_box,
    matrix,
    more_choices,
    panel,
    record,
    reply,
    saved,
    sentence,
    step,
    tab,
    table,
    tells,
    trained,
    uploaded,
)
from tests.studio.serving import client_of

from margrave.steer import SteeredClassifier

pytestmark = pytest.mark.usefixtures("unused_rows")

# Files that are no tables

BAD = {  # with what the refusal names
    "letter.doc": (b"Hello", [".csv", ".parquet"]),
    "nothing.csv": (b"", []),
    "ragged.csv": (b"a,b\n1,2\n3\n4,5,6\n", [3]),  # the line
    "wide.csv": (
        (",".join(f"c{n}" for n in range(2001)) + "\n" + "1," * 2000 + "1\n").encode(),
        ["2,000", "2,001"],
    ),
}


def test_files_that_are_no_tables_are_refused(show, tmp_path):
    """One after another: the page is ready for the next, and never shows a trace or a path."""
    allow = tuple(map(REFUSED.format, (400, 413)))
    page = show("#/new", allow=allow)
    tells(page.locator(".drop"), "64 MB")
    for name, (data, facts) in BAD.items():
        (tmp_path / name).write_bytes(data)
        page.locator("input[type=file]").set_input_files(tmp_path / name)
        expect(alert(page)).to_contain_text(name, timeout=LONG)
        tells(alert(page), *facts)
        expect(button(page, Name.CHOOSE_FILE)).to_be_visible()
        text = alert(page).inner_text()
        assert "Traceback" not in text
        assert "/" not in text


def test_a_file_in_another_encoding_is_read_after_a_question(
    open_page, studio_server, user, tmp_path
):
    """The page shows what the text would be, and sends the file again as its user says."""
    url, allow = f"{studio_server.url}#/new", (REFUSED.format(400),)
    page = open_page(url, viewport=(390, 800), allow=allow)
    text = table(senders=("Zoé", "bob", "carol")).decode().replace(",", ";").replace(".", ",")
    (tmp_path / "café.csv").write_bytes(text.encode("cp1252"))
    page.locator("input[type=file]").set_input_files(tmp_path / "café.csv")
    question = page.locator(".notice-warn")
    tells(question, "café.csv", "Windows-1252", "Zoé")
    assert axe(page) == []
    assert overflow(page) == []
    button(page, Name.READ_SO).click()
    expect(page.get_by_role("heading", name="café.csv")).to_be_visible(timeout=LONG)
    read = user.ok(f"/tables/{page.url.rpartition('/')[2]}")
    columns = {column["name"]: column for column in read["columns"]}
    assert columns["capitals"]["kind"] == "number"
    assert "Zoé" in columns["sender"]["examples"]


def test_decimal_commas_are_read_as_their_user_says(show, user, tmp_path):
    page = show("#/new", allow=(REFUSED.format(400),))
    text = table().decode().replace(",", ";").replace(".", ",")
    (tmp_path / "mails.csv").write_text(text)
    example = next(cell for cell in re.split("[;\n]", text) if "," in cell)
    for name, kind in ((Name.READ_SO, "number"), (Name.KEEP_TEXT, "identifier")):
        page = show("#/new", allow=(REFUSED.format(400),))
        page.locator("input[type=file]").set_input_files(tmp_path / "mails.csv")
        tells(page.locator(".notice-warn"), "mails.csv", example)
        button(page, name).click()
        expect(page.get_by_role("heading", name="mails.csv")).to_be_visible(timeout=LONG)
        read = user.ok(f"/tables/{page.url.rpartition('/')[2]}")
        kinds = {column["name"]: column["kind"] for column in read["columns"]}
        assert kinds["capitals"] == kind


def test_a_file_that_is_too_large_is_not_sent(show, tmp_path):
    page = show("#/new")
    tells(page.locator(".drop"), "64 MB")
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    with (tmp_path / "large.csv").open("wb") as file:
        file.truncate(65 << 20)
    page.locator("input[type=file]").set_input_files(tmp_path / "large.csv")
    tells(alert(page), "large.csv", "65 MB", "64 MB")
    assert sent == []


def test_an_upload_can_be_cancelled(show, tmp_path):
    page = show("#/new", allow=("net::ERR_",))
    page.route("**/api/tables", lambda route: None)  # it never arrives
    (tmp_path / "mails.csv").write_bytes(table())
    with page.expect_file_chooser() as chooser:
        button(page, Name.CHOOSE_FILE).click()
    chooser.value.set_files(tmp_path / "mails.csv")
    expect(page.get_by_role("progressbar", name="mails.csv")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(button(page, Name.CHOOSE_FILE)).to_be_visible()
    expect(page.locator(".notice")).to_have_count(0)


# Places that are not there


@pytest.mark.full
def test_addresses_that_lead_nowhere(show, studio_server, user, mails_table):
    for place in ("#/d/no-such-dialog", "#/d/no-such-dialog/certify", "#/d/%E0%A4%A"):
        page = show(place, allow=(REFUSED.format(404),), fresh=True)
        expect(page.locator(".notice-warn")).to_be_visible()
    page.locator(".notice-warn").get_by_role("link").click()
    expect(page.get_by_role("heading", name=Name.DIALOGS)).to_be_visible()
    page.goto(f"{studio_server.url}#/new/no-such-table")
    alert(page).get_by_role("link").click()
    expect(button(page, Name.CHOOSE_FILE)).to_be_visible()
    page.goto(f"{studio_server.url}#/nowhere")
    expect(page.get_by_role("heading", name=Name.DIALOGS)).to_be_visible()
    page.goto(f"{studio_server.url}#/d/{trained(user, mails_table)}/nothing")
    expect(page.get_by_role("tab", name="Frontier")).to_have_attribute("aria-selected", "true")
    expect(panel(page, "Frontier")).to_be_visible()


# A server that is away


PIMA = ("neg", "pos")  # the classes of a set that comes along, which no upload has to be read for


def away(page):
    """What the page says when it cannot reach the server."""
    return page.locator(".top-notice")


def problem(page):
    """What went wrong with the last request."""
    return page.locator(".dialog-problem").get_by_role("alert")


def asks_in_vain(page):
    """A request whose answer does not come."""
    page.route("**/events", lambda route: None)
    hold_ends(page)
    cell(page, *PIMA).click()
    page.keyboard.type("5")
    ask_button(page).click()
    expect(button(page, Name.STOP)).to_be_visible()


def open_three(studio, open_page):
    """Pages with a dialog that is accepted, one that is at work, and one that is being trained."""
    with client_of(studio.url) as user:
        table_id = user.table()
        accepted = trained(user, table_id, "fp <= 40", "fp <= 55%", target="target")
        user.finished(user.post(f"/dialogs/{accepted}/accept", {"confidence": 0.9}))
        at_work = trained(user, table_id, target="target")
        chosen = {"target": "target", "members": ["extra-trees", "gradient-boosting", "svm"]}
        training = user.post("/dialogs", {"table": user.table(SLOW), **chosen}).json()
    allow = (AWAY, REFUSED.format(404))
    page = open_page(f"{studio.url}#/d/{accepted}/certify", allow=(AWAY,))
    at_step(page, 2)
    third = open_page(f"{studio.url}#/d/{training['dialog']['id']}", allow=allow)
    expect(third.get_by_role("progressbar", name="extra-trees")).to_be_visible(timeout=LONG)
    other = open_page(f"{studio.url}#/d/{at_work}", allow=allow)
    at_step(other, 0)
    asks_in_vain(other)
    return page, other, third, training["job"]["id"]


def is_trained_on(page):
    """Training goes on without being asked to, until it is cancelled."""
    expect(page.get_by_role("progressbar", name="extra-trees")).to_be_visible(timeout=LONG)
    button(page, Name.CANCEL_TRAINING).click()
    expect(page.get_by_role("heading", name=Name.NOT_TRAINED)).to_be_visible(timeout=LONG)


@pytest.mark.full
def test_a_server_that_dies_and_comes_back(start_studio, open_page):
    """The pages say so, go on by themselves, and nothing is lost, not even what was being typed."""
    studio = start_studio()
    page, other, third, job = open_three(studio, open_page)
    before, paper = matrix(page), page.get_by_role("article").inner_text()
    studio.kill()
    other.unroute_all()
    button(page, Name.UNDO).click()
    for one in (page, other, third):
        expect(away(one)).to_be_visible()
    assert matrix(page) == before
    cell(page, *PIMA).click()
    page.keyboard.type("5")
    expect(sentence(page).locator(".bad")).to_be_visible()
    with third.expect_request(re.compile(rf"/jobs/{job}/events$"), timeout=2 * LONG):
        start_studio(port=urlsplit(studio.url).port)  # where the job goes on
    for one in (page, other, third):
        expect(away(one)).to_have_count(0, timeout=LONG)
    expect(third.locator(".dialog-problem .notice-warn")).to_be_visible(timeout=LONG)
    is_trained_on(third)
    expect(page.locator(".notice-bad")).to_have_count(0)
    asks(page, 5, sum(before[0]), *PIMA)
    assert page.get_by_role("article").inner_text() == paper
    ask_button(page).click()
    at_step(page, 3)
    button(page, Name.UNDO).click()
    at_step(page, 2)
    assert matrix(page) == before
    with page.expect_download() as download:
        page.get_by_role("link", name=Name.MODEL_FILE).click()
    assert SteeredClassifier.load(download.value.path()).certificate_ is not None
    at_step(other, 1)  # its answer was stored before
    expect(saved(other)).to_be_visible()
    expect(other.locator(".notice-bad")).to_have_count(0)


@pytest.mark.core
def test_an_idle_page_notices_that_the_studio_has_stopped(open_page, studio_server):
    """Nobody has to press a button first; nor to reload the page when the studio is back."""
    page = open_page(allow=(AWAY,))
    page.clock.install()
    page.goto(studio_server.url)
    expect(page.get_by_role("heading", name=Name.DIALOGS)).to_be_visible()
    page.route("**/*", lambda route: route.abort("connectionrefused"))
    page.clock.run_for(60_000)
    expect(away(page)).to_be_visible()
    page.unroute_all()
    page.clock.run_for(5_000)
    expect(away(page)).to_have_count(0)


# Two windows


@pytest.mark.full
def test_a_second_window_changes_the_dialog(show, open_page, studio_server, user, mails_table):
    address = f"#/d/{trained(user, mails_table, 'fp <= 12')}"
    first, second = show(address), open_page(studio_server.url + address)
    at_step(first, 1)
    at_step(second, 1)
    cell(second, "ham", "spam").click()
    second.keyboard.type("30")
    keep_box(second).click()
    ask_button(second).click()
    at_step(second, 2)
    expect(step(first, 2)).to_have_count(0)
    cell(first, "spam", "ham").click()
    first.keyboard.type("40")
    asks(first, 40, 97, "spam", "ham")
    ask_button(first).click()
    at_step(first, 3)  # from the step that this window showed
    expect(step(first, 3)).to_have_accessible_name(re.compile(r"^Step 3\b.*\b1\b"))
    expect(step(first, 2)).to_be_visible()
    second.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # looked at again
    at_step(second, 3)
    assert matrix(second) == matrix(first)


def test_a_dialog_that_was_deleted_elsewhere(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12")
    page = show(f"#/d/{dialog}", allow=(REFUSED.format(404),))
    at_step(page, 1)
    assert user.http.delete(f"/api/dialogs/{dialog}").status_code == 204
    button(page, Name.UNDO).click()
    expect(problem(page)).to_be_visible()
    button(problem(page), Name.CLOSE).click()
    expect(problem(page)).to_have_count(0)


def test_a_refusal_is_shown_and_can_be_closed(show, user, mails_table):
    page = show(f"#/d/{trained(user, mails_table)}", allow=(REFUSED.format(409),))
    at_step(page, 0)
    busy = {"error": "Not now."}
    page.route("**/prefer", lambda route: route.fulfill(json=busy, status=409))
    cell(page, "ham", "spam").click()
    page.keyboard.type("5")
    ask_button(page).click()
    expect(problem(page)).to_contain_text(busy["error"])
    asks(page, 5, "ham", "spam")  # the edit is still there
    page.unroute_all()
    ask_button(page).click()
    at_step(page, 1)
    expect(page.locator(".notice-bad")).to_have_count(0)


# A token

TOKEN = "a-token-for-tests"  # noqa: S105 - of a studio that lives for one test


@pytest.mark.full
def test_who_comes_in_needs_the_token(start_studio, open_page):
    studio = start_studio(environment={"MARGRAVE_TOKEN": TOKEN})
    place = studio.url.split("?")[0]
    page = open_page(f"{place}#/new", allow=(REFUSED.format(401),))
    expect(page.get_by_role("heading", name=Name.TOKEN_FORM)).to_be_visible()
    enter = page.get_by_role("button", name="Open the studio")
    expect(enter).to_be_disabled()
    page.get_by_label(Name.TOKEN).fill("a wrong token")
    enter.click()
    expect(alert(page)).to_be_visible()
    page.get_by_label(Name.TOKEN).fill(TOKEN)
    page.keyboard.press("Enter")
    expect(button(page, Name.CHOOSE_FILE)).to_be_visible()
    page.get_by_role("button", name=re.compile("^pima")).click()
    expect(page.get_by_role("heading", name="pima")).to_be_visible(timeout=LONG)
    own = page.url
    page.reload()
    expect(page.get_by_role("heading", name="pima")).to_be_visible()
    other = open_page(studio.url, allow=(REFUSED.format(404),))  # with the token in the address
    expect(other.locator(".empty")).to_be_visible()
    assert TOKEN not in other.url
    other.goto(own)
    expect(alert(other)).to_be_visible()


# Tricks

IMAGE = '<img src=x onerror="window.hacked=1">'
SCRIPT = "</script><script>window.hacked=1</script>"


def harmless(page):
    """Nothing of what was brought in became a part of the page."""
    assert page.evaluate("window.hacked === undefined")
    assert page.locator("img[src=x], main script, main svg[onload]").count() == 0


def test_markup_in_names_is_text(show, open_page, user, tmp_path):
    """In the file's name, columns, values, labels, the title: on every tab, and in the report."""
    labels = (IMAGE, f"it's {SCRIPT}")
    columns = (SCRIPT, "=1+1", "a\"b'c", IMAGE)
    data = table(classes=labels, columns=columns, senders=(IMAGE, SCRIPT, "&lt;b&gt;"))
    name = "<img src=x onerror=window.hacked=1>.csv"
    (tmp_path / name).write_bytes(data)
    page = show("#/new")
    page.locator("input[type=file]").set_input_files(tmp_path / name)
    expect(page.get_by_role("heading", name=name)).to_be_visible(timeout=LONG)
    columns_used(page).click()
    more_choices(page).click()
    page.get_by_label("Title of the dialog").fill(f"<svg onload=window.hacked=1> {IMAGE}")
    expect(page.get_by_role("radio", name=IMAGE)).to_be_visible()
    harmless(page)
    for member in {
        "logistic",
        "logistic-quantile",
        "extra-trees",
        "gradient-boosting",
        "svm",
    } - {*QUICK}:
        page.get_by_role("checkbox", name=re.compile(rf"^{member}\b")).click()
    button(page, Name.TRAIN).click()
    expect(cell(page, labels[0], labels[1])).to_be_visible(timeout=LONG)
    for true, answer in (labels, labels[::-1]):
        cell(page, true, answer).click()
        page.keyboard.type("9")
    asks(page, 9, *labels)
    ask_button(page).click()
    at_step(page, 1)
    expect(reply(page)).to_contain_text(IMAGE)
    for one in TABS:
        expect(tab(page, one).locator("h2, .empty").first).to_be_visible()
        harmless(page)
    dialog = record(user, page)
    with page.expect_download() as download:
        page.get_by_role("link", name=re.compile("^Report")).click()
    download.value.save_as(tmp_path / "report.html")
    home(page).click()
    expect(page.get_by_role("link", name=re.compile("^<svg onload"))).to_be_visible()
    harmless(page)
    read = open_page(
        (tmp_path / "report.html").as_uri(), allow=("request to another machine: file",)
    )
    expect(read.get_by_text(IMAGE).first).to_be_visible()
    harmless(read)
    assert dialog["classes"] == sorted(labels)


@pytest.mark.full
def test_labels_that_look_like_requests(show, user):
    """Commas, arrows, brackets and quotes in labels: every cell can be asked for."""
    labels = ("a -> b", "x, y <= 3%", "say (hi)")
    dialog = trained(user, uploaded(user, table(classes=labels)))
    page = show(f"#/d/{dialog}")
    for true, answer in (labels[:2], labels[1:], (labels[2], None)):
        cell(page, true, answer).click()
        page.keyboard.type("3")
        asks(page, 3, true, *([] if answer is None else [answer]))
    expect(sentence(page).get_by_role("listitem")).to_have_count(3)
    ask_button(page).click()
    at_step(page, 1)
    expect(reply(page).get_by_role("list").first).to_contain_text(labels[0])
    shown = tab(page, "Members")
    expect(shown.get_by_role("region", name=Name.MEMBERS, exact=True)).to_be_visible()
