"""The story of a dialog by mouse, from a table to a model, in a real browser on a real server."""

import csv
import io
import json
import re
import runpy

import numpy as np
import onnxruntime
import pandas
import pytest
from playwright.sync_api import expect
from tests.studio.browser import NARROW, SECONDS, WIDE, axe, overflow, until
from tests.studio.page_parts import (
    CERTIFY,
    JUDGED,
    LONG,
    REFUSED,
    SLOW,
    Name,
    alert,
    alternatives,
    ask_button,
    asks,
    asks_nothing,
    at_step,
    best_from,
    button,
    cell,
    columns_used,
    compare_button,
    drop,
    grid,
    hold_ends,
    home,
    in_words,
    judged,
    keep_box,
    matrix,
    more_choices,
    panel,
    part_size,
    record,
    reply,
    rows_button,
    saved,
    sentence,
    step,
    summary,
    tab,
    table,
    tells,
    trained,
    uploaded,
    whole,
)

from margrave.steer import SteeredClassifier

pytestmark = pytest.mark.usefixtures("unused_rows")


@pytest.fixture(scope="module")
def mails(tmp_path_factory):
    path = tmp_path_factory.mktemp("mails") / "mails.csv"
    path.write_bytes(table())
    return path


def begins(page, mails):
    """From the start to a committee of two."""
    page.get_by_role("link", name=Name.NEW_DIALOG).click()
    drop(page, mails)
    expect(page.get_by_role("heading", name="mails.csv")).to_be_visible(timeout=LONG)
    expect(page.get_by_label(Name.TARGET)).to_have_value("kind")
    expect(page.get_by_role("radio", name="spam")).to_be_checked()
    supported(summary(page))
    expect(columns_used(page)).to_contain_text(re.compile(r"\b4\D+4\b"))
    columns_used(page).click()
    sender = page.get_by_role("row").filter(has=page.get_by_role("checkbox", name="sender"))
    tells(sender.locator("span").first, 3)  # different values
    sender.get_by_role("checkbox").click()
    expect(columns_used(page)).to_contain_text(re.compile(r"\b3\D+4\b"))
    for name in ("logistic-quantile", "extra-trees", "gradient-boosting", "svm"):
        page.get_by_role("checkbox", name=re.compile(f"^{name}")).click()
    tells(summary(page).locator("p").last, 2, 300)  # members, rows
    button(page, Name.TRAIN).click()
    expect(grid(page)).to_be_visible(timeout=LONG)
    expect(saved(page)).to_be_visible()


def supported(beside):
    """The parts are all the rows, and what they support is what their size allows."""
    lines = beside.locator(".support li")
    expect(lines).to_have_count(2)
    tune, certify = (int(part_size(beside, name).inner_text()) for name in ("tune", "certify"))
    assert tune + certify == 300
    found = [re.findall(r"[\d.]+", line) for line in lines.all_inner_texts()]
    assert sum(int(n) for _, n in found) == certify
    for least, n in found:  # n samples without a mistake: 0.05 = (1 - least) ** n
        assert (1 - float(least) / 100) ** int(n) == pytest.approx(0.05, rel=0.02)


def edits(page):
    """A cell by typing: a sentence first, then a reply with its costs."""
    before = matrix(page)
    most = before[0][1] // 2
    cell(page, "ham", "spam").click()
    page.keyboard.type(str(most))
    asks(page, most, sum(before[0]), "ham", "spam")
    expect(step(page, 1)).to_have_count(0)  # nothing is asked yet
    ask_button(page).click()
    at_step(page, 1)
    after = matrix(page)
    assert after[0][1] <= most
    assert [sum(row) for row in after] == [sum(row) for row in before]
    expect(reply(page).locator(".tag-good")).to_be_visible()  # met
    expect(reply(page).locator(".changes")).to_have_count(2)  # what it brings, and what it costs
    expect(reply(page)).to_contain_text(f"{before[0][1]} → {after[0][1]}")


def cannot_be_had(page):
    """Two cells at once, out of reach: which is the limit, and what can be had instead."""
    for true, answer in (("ham", "spam"), ("spam", "ham")):
        cell(page, true, answer).click()
        page.keyboard.type("1")
    expect(sentence(page).get_by_role("listitem")).to_have_count(2)
    ask_button(page).click()
    at_step(page, 2)
    limit = reply(page).locator(".notice-warn code").first
    expect(limit).to_have_text(re.compile("^(fp|fn) <= 1$"))
    kept = alternatives(page).filter(has_text="Keep fp <= 1")
    most = int(kept.locator("dd").nth(1).inner_text())  # false positives, false negatives, all
    button(kept, Name.TAKE).click()
    at_step(page, 3)
    expect(reply(page).locator(".tag-good")).to_be_visible()
    assert matrix(page)[0][1] <= 1
    assert 1 < matrix(page)[1][0] <= most


def on_the_frontier(page, user):
    """A point is clicked and asked for; a step is clicked and gone back to."""
    shown = tab(page, "Frontier")
    until(page, "document.querySelector('.chart-tall canvas, .chart-tall svg')")
    dialog = record(user, page)
    best = best_from(user.ok(f"/dialogs/{dialog['id']}/frontier"), dialog["position"])
    steps = [one["fp"] for one in dialog["steps"]]
    inner = [point for point in best if point[0] < max(steps)]
    # As far as possible from the steps, whose marks can be clicked too.
    fp, fn = max(inner, key=lambda point: min(abs(point[0] - one) for one in steps))
    click_plot(page, fp, fn)
    expect(shown.get_by_label("At most")).to_have_value(str(fp))
    tells(shown.locator(".ask-result strong"), fn)
    button(shown, Name.ASK_POINT).click()
    at_step(page, 4)
    expect(reply(page)).to_contain_text(f"fp <= {fp}")
    assert (matrix(page)[0][1], matrix(page)[1][0]) == (fp, fn)
    first = dialog["steps"][1]
    until(page, "document.querySelector('.chart-tall canvas, .chart-tall svg')")
    expect(page.get_by_role("img", name=re.compile(r"Step 4\b"))).to_be_visible()
    click_plot(page, first["fp"], first["fn"])
    at_step(page, 1)


def click_plot(page, x, y):
    """Click where a point is drawn."""
    place = page.locator(".chart-tall .chart-place")
    at = place.evaluate(
        "(place, point) => echarts.getInstanceByDom(place).convertToPixel('grid', point)", [x, y]
    )
    place.click(position={"x": at[0], "y": at[1]})


def along_the_trail(page):
    """Steps are revisited, compared and branched off; undo and redo go back and forth."""
    compare_button(page, 1).click()
    expect(compare_button(page, 1)).to_have_attribute("aria-pressed", "true")
    compare_button(page, 4).click()
    compared = page.get_by_role("region", name=Name.COMPARISON)
    tells(compared.get_by_role("heading"), 1, 4)
    tells(compared, 240)  # samples
    button(page, Name.CLOSE_COMPARISON).click()
    expect(compared).to_have_count(0)
    step(page, 0).click()
    at_step(page, 0)
    start = matrix(page)
    cell(page, "spam", "ham").click()
    page.keyboard.type(f"{max(1, start[1][0] // 2)}")
    ask_button(page).click()
    at_step(page, 5)
    expect(step(page, 5)).to_have_accessible_name(re.compile(r"^Step 5\b.*\b0\b.*fn <= "))
    branch = matrix(page)
    button(page, Name.UNDO).click()
    at_step(page, 0)
    assert matrix(page) == start
    expect(button(page, Name.UNDO)).to_be_disabled()
    button(page, Name.REDO).click()
    at_step(page, 5)
    assert matrix(page) == branch
    expect(button(page, Name.REDO)).to_be_disabled()


def behind_a_cell(page):
    """The rows of a cell, sorted, with the votes of both members."""
    n = matrix(page)[0][1]
    cell(page, "ham", "spam").click()
    page.keyboard.press("Escape")
    rows_button(page, n).click()
    shown = panel(page, "Members")
    expect(shown).to_be_visible()
    expect(shown.get_by_label("True class")).to_have_value("0")
    expect(shown.get_by_label("Predicted class", exact=True)).to_have_value("1")
    tells(shown.locator(".pages span"), 1, min(n, 25), n)
    rows = shown.get_by_role("region", name="Rows in the cell").get_by_role("row")
    expect(rows).to_have_count(1 + min(n, 25))
    expect(rows.first).to_have_text(re.compile("logistic.*qda"))
    rows.first.get_by_role("button", name="links").click()
    expect(rows.first.locator("[aria-sort=ascending]")).to_have_text(re.compile("links"))
    column = [one.strip() for one in rows.first.get_by_role("columnheader").all_inner_texts()]
    place = next(at for at, name in enumerate(column) if name.startswith("links"))
    until(page, "!document.querySelector('.panel-stack[aria-busy=true]')")
    links = [
        int(row.locator("th, td").nth(place).inner_text()) for row in rows.all()[1 : min(n, 25) + 1]
    ]
    assert links == sorted(links)
    members = shown.get_by_role("region", name=Name.MEMBERS, exact=True).get_by_role("row")
    assert [row.get_by_role("rowheader").inner_text() for row in members.all()[1:]] == [
        "logistic",
        "qda",
    ]
    with page.expect_download() as download:
        shown.get_by_role("link", name=Name.ROWS_FILE).click()
    found = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert len(found) == n


def by_costs(page):
    """Ranges of costs: which thresholds win there, and asking for one."""
    shown = tab(page, "Costs")
    winners = shown.get_by_role("region", name="Winners").get_by_role("row")
    expect(winners.nth(1)).to_be_visible()
    many = winners.count()
    for end in ("at least", "at most"):
        field = shown.get_by_role("textbox", name=f"{Name.MISS_COST}, {end}")
        field.fill("1")
        field.press("Enter")
    expect(shown.get_by_role("textbox", name=f"{Name.MISS_COST}, at most")).to_have_value("1")
    for name, value in (("at least", "30"), ("at most", "30")):
        field = shown.get_by_role("textbox", name=re.compile(f"^{Name.PRIOR}.* {name}$"))
        field.fill(value)
        field.press("Enter")
    expect(winners).to_have_count(2)  # with the head: one wins everywhere
    assert many > 2
    ask = winners.nth(1).get_by_role("button")
    most = int(re.search(r"\d+", ask.get_attribute("aria-label"))[0])
    ask.click()
    at_step(page, 6)
    assert matrix(page)[0][1] <= most


def accepts(page, user):
    """The guarantee is set once, after a question."""
    cell(page, "ham", "spam").click()
    page.keyboard.type("30%")
    keep_box(page).click()
    asks(page, 30, "ham", "spam")
    ask_button(page).click()
    at_step(page, 7)
    shown = tab(page, CERTIFY)
    tells(shown.locator(".offer h3"), 7)  # the step
    tells(shown.locator(".offer > p"), 60)  # certification samples
    button(shown, Name.ACCEPT).click()
    box = page.get_by_role("dialog", name=Name.CONFIRM_BOX)
    box.get_by_role("button", name="Not yet").click()
    expect(box).to_have_count(0)
    button(shown, Name.ACCEPT).click()
    button(box, Name.CONFIRM).click()
    paper = shown.get_by_role("article")
    expect(paper).to_be_visible(timeout=LONG)
    tells(paper, "at most 5%", 57)  # three samples would allow no more errors
    tells(shown.locator(".offer > p"), 60)
    assert record(user, page)["used_up"]
    tells(page.locator(".dialog-head .tag-good"), 1)  # accepted model
    expect(step(page, 7).locator(".tag-good")).to_be_visible()


def takes_away(page, folder):
    """Every file that is offered, by its name."""
    files = {}
    for link in panel(page, CERTIFY).locator("a[download]").all():
        with page.expect_download() as download:
            link.click()
        files[download.value.suggested_filename] = folder / download.value.suggested_filename
        download.value.save_as(folder / download.value.suggested_filename)
    return files


def check_files(files, mails, dialog, monkeypatch):
    """What was taken away is what was shown, and works without the studio."""
    frame = pandas.read_csv(mails)
    X = frame.drop(columns=["kind", "sender"])
    model = SteeredClassifier.load(files["model.skops"])
    certificate = json.loads(files["certificate.json"].read_text())
    accepted = dialog["accepted"][0]
    assert certificate["preference"] == str(model.certificate_.preference) == "fp <= 30%"
    assert certificate["confusion"]["counts"] == accepted["confusion"]["counts"]
    assert certificate["guarantees"][0]["sentence"] in accepted["guarantees"][0]
    assert set(model.predict(X)) == {"ham", "spam"}
    session = onnxruntime.InferenceSession(files["model.onnx"])
    fed = {name: X[[name]].to_numpy(dtype=float) for name in X}
    assert session.run(["label"], fed)[0].tolist() == model.predict(X).tolist()
    assert certificate["guarantees"][0]["sentence"] in files["card.md"].read_text()
    exported = json.loads(files["dialog.json"].read_text())
    for name in ("steps", "accepted"):
        assert len(exported[name]) == len(dialog[name])
        assert all(
            a.items() >= b.items() for a, b in zip(exported[name], dialog[name], strict=True)
        )
    assert "<html" in files["report.html"].read_text()
    assert certificate["guarantees"][0]["sentence"][1:] in files["report.html"].read_text()
    monkeypatch.chdir(mails.parent)
    repeated = runpy.run_path(str(files["script.py"]))
    assert [str(one.preference) for one in repeated["dialog"].history[1:]] == [
        one["preference"] for one in dialog["steps"][1:]
    ]
    assert repeated["model"].certificate_.confusion == model.certificate_.confusion
    assert repeated["model"].predict(X).tolist() == model.predict(X).tolist()


def well_made(page):
    """Nothing sticks out of the window, and axe finds nothing serious."""
    assert overflow(page) == []
    assert axe(page) == []


@pytest.mark.parametrize(
    ("viewport", "theme"),
    [
        pytest.param(WIDE, "light", marks=pytest.mark.core),
        pytest.param(WIDE, "dark", marks=pytest.mark.full),
        pytest.param(NARROW, "light", marks=pytest.mark.full),
        pytest.param(NARROW, "dark", marks=pytest.mark.full),
    ],
)
def test_the_whole_story_by_mouse(
    open_page, studio_server, viewport, theme, mails, tmp_path, monkeypatch
):
    page, user = open_page(studio_server.url, viewport=viewport, theme=theme), studio_server.user
    begins(page, mails)
    for chapter in (
        edits,
        cannot_be_had,
        lambda page: on_the_frontier(page, user),
        along_the_trail,
        behind_a_cell,
        by_costs,
        lambda page: accepts(page, user),
    ):
        chapter(page)
        well_made(page)
    files = takes_away(page, tmp_path)
    assert set(files) == {
        *("model.skops", "model.onnx", "card.md", "certificate.json"),
        *("dialog.json", "script.py", "report.html"),
    }
    check_files(files, mails, record(user, page), monkeypatch)


# The start


@pytest.mark.full
def test_a_set_that_comes_along(show):
    page = show("#/new")
    search = page.get_by_role("searchbox", name="Search the data sets")
    search.fill("no such thing")
    expect(page.locator(".empty")).to_be_visible()
    search.fill("pima")
    page.get_by_role("button", name=re.compile("^pima")).click()
    expect(page.get_by_role("heading", name="pima")).to_be_visible(timeout=LONG)
    expect(page.get_by_label(Name.TARGET)).to_have_value("target")
    page.reload()
    expect(page.get_by_role("heading", name="pima")).to_be_visible()
    page.get_by_role("link", name="Another table").click()
    expect(search).to_be_visible()


@pytest.mark.full
def test_choices_are_answered_before_anything_is_trained(show, mails_table):
    """Another target, another positive class, other parts: what follows of each is shown."""
    page = show(f"#/new/{mails_table}", allow=(REFUSED.format(400),))
    train = button(page, Name.TRAIN)
    expect(train).to_be_enabled()
    page.get_by_label(Name.TARGET).select_option("sender")
    expect(page.get_by_role("radio")).to_have_count(6)  # three senders, none of them, two kinds
    expect(page.get_by_role("radio", name="None in particular")).to_be_checked()
    page.get_by_label(Name.TARGET).select_option("capitals")
    expect(alert(page)).to_contain_text("capitals")
    expect(train).to_be_disabled()
    page.get_by_label(Name.TARGET).select_option("kind")
    page.get_by_role("radio", name=re.compile("^ham")).click()
    beside = summary(page)
    more_choices(page).click()
    page.get_by_label(Name.CERTIFY_SHARE).select_option("none")
    expect(part_size(beside, "certify")).to_have_text("0")
    expect(beside.locator(".support")).to_have_count(0)
    page.get_by_label(Name.CERTIFY_SHARE).select_option("0.5")
    expect(part_size(beside, "certify")).to_have_text("150")
    expect(beside.locator(".support")).to_be_visible()
    page.get_by_label(Name.GUARANTEE).fill("fp =")
    expect(beside.locator(".notice")).to_be_visible()
    expect(train).to_be_disabled()
    page.get_by_label(Name.GUARANTEE).fill("")
    expect(train).to_be_enabled()
    for box in page.get_by_role("checkbox").all():
        if box.is_visible():
            box.click()
    expect(page.locator("fieldset .bad")).to_be_visible()
    expect(train).to_be_disabled()
    page.get_by_role("radio", name=Name.PROGRAM).click()
    page.get_by_label(Name.LEVELS).fill("99")
    tells(beside.locator("p").last, 1, 15)
    expect(train).to_be_disabled()
    page.get_by_label(Name.LEVELS).fill("3")
    tells(beside.locator("p").last, 3, 300)
    expect(train).to_be_enabled()


@pytest.mark.full
@pytest.mark.parametrize("reply", ["once", "each"])
def test_near_copies_are_a_question_before_anything_is_trained(show, user, reply):
    rng = np.random.default_rng(0)
    first = rng.normal(size=(100, 4))
    rows = np.tile(first, (4, 1)) + 0.001 * rng.normal(size=(400, 4))
    lines = [f"{','.join(map(str, row))},{'yes' if row[0] > 0 else 'no'}" for row in rows]
    file = "\n".join(["a,b,c,d,kind", *lines]).encode()
    page = show(f"#/new/{uploaded(user, file, 'noisy.csv')}", allow=(REFUSED.format(400),))
    page.get_by_label(Name.TARGET).select_option("kind")
    notice = summary(page).locator(".notice")
    tells(notice, 400)
    expect(button(page, Name.TRAIN)).to_be_disabled()
    notice.get_by_role("button", name=re.compile(reply)).click()
    expect(button(page, Name.TRAIN)).to_be_enabled()
    counted = int(part_size(summary(page), "certify").inner_text())
    assert counted == {"once": 20, "each": 80}[reply]


@pytest.mark.full
def test_a_column_of_patients_becomes_that_of_the_groups(show, user):
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(200), rng.integers(1, 6, 200))
    rows = pandas.DataFrame({"record_id": 1 + np.arange(len(of)), "patient_id": 900 + of})
    rows["seen"] = pandas.Timestamp("2024-01-01") + pandas.to_timedelta(of % 90, unit="D")
    rows["sugar"] = rng.normal(size=len(of)).round(3)
    rows["ill"] = np.where(of % 3 == 0, "yes", "no")
    page = show(f"#/new/{uploaded(user, rows.to_csv(index=False).encode(), 'visits.csv')}")
    found = page.locator(".notice").filter(has_text="patient_id")
    keep = found.get_by_role("button", name="Keep together")
    expect(keep).to_be_visible()
    keep.click()
    expect(found).to_have_count(0)
    more_choices(page).click()
    expect(page.get_by_label("Rows that belong together")).to_have_value("patient_id")
    page.get_by_role("button", name="Leave out").click()
    expect(columns_used(page)).to_contain_text("3 of 4")
    page.get_by_role("button", name="Use as time").click()
    expect(page.get_by_label("Time of a row")).to_have_value("seen")
    expect(page.locator(".notice")).to_have_count(0)


@pytest.mark.full
def test_training_shows_how_far_it_is_and_can_be_cancelled(show, user):
    """It goes on without the page, which finds it again."""
    page = show(f"#/new/{user.table(SLOW)}")
    button(page, Name.TRAIN).click()
    expect(page.get_by_role("heading", name=Name.TRAINING)).to_be_visible(timeout=LONG)
    bars = page.get_by_role("progressbar")
    expect(bars).to_have_count(7, timeout=LONG)  # all, and each member
    page.reload()
    first = page.get_by_role("progressbar", name="logistic", exact=True)
    expect(first).not_to_have_attribute("aria-valuenow", "0", timeout=LONG)
    home(page).click()
    line = page.get_by_role("listitem").filter(has_text=SLOW)
    expect(line.locator(".tag-info")).to_be_visible()
    line.get_by_role("link").click()
    button(page, Name.CANCEL_TRAINING).click()
    expect(page.get_by_role("heading", name=Name.NOT_TRAINED)).to_be_visible(timeout=LONG)
    expect(alert(page)).to_be_visible()
    page.reload()
    button(page, Name.TRAIN_AGAIN).click()
    expect(page.get_by_role("heading", name=Name.PROVISIONAL)).to_be_visible(timeout=LONG)
    expect(page.get_by_role("table")).to_have_count(1)
    button(page, Name.ENOUGH).click()
    expect(page.get_by_role("heading", name=Name.TRAINING)).to_have_count(0, timeout=LONG)
    assert 1 <= len(record(user, page)["members"]) < 6
    home(page).click()
    page.get_by_role("button", name=f"Delete {SLOW}").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(line).to_have_count(0)


@pytest.mark.full
def test_dialogs_are_renamed_and_deleted(show, user, mails_table):
    dialog = trained(user, mails_table, title="A first name")
    page = show()
    page.get_by_role("button", name="Rename A first name").click()
    box = page.get_by_role("dialog", name=Name.RENAME)
    box.get_by_label(Name.TITLE).fill("A second name")
    button(box, Name.RENAME).click()
    page.get_by_role("link", name="A second name").click()
    expect(page).to_have_title(re.compile("^A second name"))
    button(page, Name.RENAME).click()
    page.get_by_label(Name.TITLE).fill("Not this one")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="A second name")).to_be_visible()
    button(page, Name.RENAME).click()
    page.get_by_label(Name.TITLE).fill("A third name")
    page.keyboard.press("Enter")
    expect(page).to_have_title(re.compile("^A third name"))
    assert user.ok(f"/dialogs/{dialog}")["title"] == "A third name"
    home(page).click()
    page.get_by_role("button", name="Delete A third name").click()
    box = page.get_by_role("dialog", name="Delete this dialog?")
    box.get_by_role("button", name="Cancel").click()
    expect(box).to_have_count(0)
    page.get_by_role("button", name="Delete A third name").click()
    page.evaluate("(id) => localStorage.setItem(`margrave-focus-${id}`, '1')", dialog)
    box.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="A third name")).to_have_count(0)
    assert dialog not in " ".join(page.evaluate("Object.keys(localStorage)"))
    assert user.get(f"/dialogs/{dialog}").status_code == 404


@pytest.mark.full
def test_the_theme_is_kept(page):
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="As the system").click()
    until(page, "document.documentElement.dataset.theme === 'light'")
    page.emulate_media(color_scheme="dark")
    until(page, "document.documentElement.dataset.theme === 'dark'")


# The matrix


def test_cells_are_edited_by_arrows_by_dragging_and_in_percent(show, user, mails_table):
    page = show(f"#/d/{trained(user, mails_table)}")
    alarms = cell(page, "ham", "spam")
    expect(alarms).to_be_visible()
    (_, n, _), total = matrix(page)[0], sum(matrix(page)[0])
    alarms.click()
    page.keyboard.press("ArrowDown")
    asks(page, n - 1, total, "ham", "spam")
    page.keyboard.press("Shift+ArrowDown")
    asks(page, n - 11, total, "ham", "spam")
    page.keyboard.press("Escape")
    asks_nothing(page)
    box = alarms.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 10, y)
    page.mouse.move(x + 20, y - 20)
    page.mouse.up()  # four pixels for one sample
    asks(page, n + 10, total, "ham", "spam")
    expect(alarms).to_have_accessible_name(whole(n + 10))
    expect(alarms.locator(".cell-draft")).to_contain_text(str(n + 10))
    button(page, Name.CLEAR).click()
    expect(alarms.locator(".cell-draft")).to_have_count(0)
    button(page, Name.PERCENT).click()
    cell(page, "spam", "spam").click()
    page.keyboard.type("80")
    asks(page, 80, "spam")
    page.keyboard.type("0")
    tells(sentence(page).locator(".bad"), "100%")
    page.keyboard.press("Control+A")
    page.keyboard.type("80")
    ask_button(page).click()
    at_step(page, 1)
    assert matrix(page)[1][1] >= 0.8 * sum(matrix(page)[1])
    page.reload()
    at_step(page, 1)
    expect(button(page, Name.PERCENT)).to_have_attribute("aria-pressed", "true")


@pytest.mark.full
def test_requests_in_words_and_by_chosen_strategies(show, user, mails_table):
    page = show(f"#/d/{trained(user, mails_table, 'fp <= 12')}")
    at_step(page, 1)
    in_words(page).click()
    words = page.get_by_label(Name.PREFERENCE)
    words.fill("fp <=")
    expect(sentence(page).locator(".bad")).to_be_visible()
    words.fill("rejected <= 20%")
    expect(sentence(page).get_by_role("listitem")).to_have_count(2)  # what was asked is kept
    for name, usual in (("move", True), ("reject", True), ("retune", False)):
        box = page.get_by_role("checkbox", name=re.compile(f"^{name}"))
        expect(box).to_be_checked(checked=usual)
    page.get_by_role("checkbox", name=re.compile("^reject")).click()
    words.press("Enter")
    at_step(page, 2)
    found = record(user, page)["steps"][2]
    assert found["preference"].split(", ") == ["fp <= 12", "rejected <= 20%"]
    assert (found["strategy"], found["met"]) == ("move", True)


@pytest.mark.full
def test_a_first_answer_is_shown_while_better_ones_are_looked_for(show, user, mails_table):
    """The end of a job is held back, so that every moment of it can be looked at."""
    page = show(f"#/d/{trained(user, mails_table)}")
    expect(cell(page, "ham", "spam")).to_be_visible()
    streams, looks = [], []
    page.route("**/api/jobs/*/events", lambda route: streams.append(route))
    hold_ends(page)
    cell(page, "ham", "spam").click()
    page.keyboard.type("5")
    with page.expect_response("**/prefer") as begun:
        ask_button(page).click()
    begun = begun.value.json()
    job = begun["id"]
    expect(button(page, Name.STOP)).to_be_visible()
    expect(saved(page)).to_have_count(0)
    expect(cell(page, "ham", "spam")).to_have_attribute("aria-readonly", "true")
    expect(button(page, Name.UNDO)).to_be_disabled()
    [(name, _)] = user.events(job)
    assert name == "end"
    first = {**record(user, page)["steps"][1], "number": None, "final": False}
    page.route(f"**/api/jobs/{job}", lambda route: looks.append(route))
    until_some(page, streams)
    streams.pop().fulfill(
        content_type="text/event-stream",
        body=f"event: job\ndata: {json.dumps({**begun, 'reply': first})}\n\n",
    )
    expect(reply(page).locator(".reply-live")).to_be_visible()
    assert matrix(page) == first["after"]["counts"]
    button(page, Name.STOP).click()
    until_some(page, looks)  # the stream broke off, so the page asks how the job is
    looks.pop().continue_()
    at_step(page, 1)


@pytest.mark.full
def test_every_alternative_can_be_taken(show, user, mails_table):
    """One keeps each limit, and one is between; what each costs is shown before it is taken."""
    page = show(f"#/d/{trained(user, mails_table, 'fp <= 1, fn <= 1')}")
    at_step(page, 1)
    sent = record(user, page)["steps"][1]["alternatives"]
    assert [one["kept"] for one in sent] == ["fp <= 1", "fn <= 1", None]
    expect(alternatives(page)).to_have_count(3)
    for place, one in enumerate(sent):
        (_, fp, _), (fn, _, _) = one["confusion"]["counts"]
        shown = alternatives(page).nth(place)
        tells(shown, *[int(miss["samples"]) for miss in one["misses"]])
        expect(shown.locator("dd")).to_have_text([str(n) for n in (fp, fn, fp + fn)])
        button(shown, Name.TAKE).click()
        at_step(page, place + 2)
        expect(reply(page).locator(".tag-good")).to_be_visible()
        expect(alternatives(page)).to_have_count(0)
        (_, alarms, _), (misses, _, _) = matrix(page)
        assert (alarms <= fp, misses <= fn) == (True, True)
        step(page, 1).click()
        at_step(page, 1)


@pytest.mark.full
def test_a_reply_that_is_met_tells_what_it_costs(show, user, mails_table):
    page = show(f"#/d/{trained(user, mails_table, 'fp <= 1')}")
    at_step(page, 1)
    (warning,) = record(user, page)["steps"][1]["warnings"]
    expect(reply(page).locator(".tag-good")).to_be_visible()
    expect(reply(page).locator(".reply-warning")).to_have_text(warning)


def until_some(page, held):
    """Wait for a request that is held back, looking at every frame."""
    frames = 0
    while not held:
        page.evaluate("new Promise(requestAnimationFrame)")
        frames += 1
        assert frames < 60 * SECONDS


@pytest.mark.full
def test_half_can_be_reserved_for_another_model(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 40%")
    page = show(f"#/d/{dialog}/certify")
    shown = panel(page, CERTIFY)
    shown.get_by_label("Confidence").select_option("0.9")
    shown.get_by_role("checkbox", name=Name.RESERVE_HALF).click()
    button(shown, Name.ACCEPT).click()
    page.get_by_role("button", name=Name.CONFIRM_HALF).click()
    expect(shown.get_by_role("article")).to_have_count(1, timeout=LONG)
    tells(shown.locator(".offer > p"), "50%", 60)
    assert not record(user, page)["used_up"]
    page.reload()
    tells(shown.get_by_role("article"), "10%")
    expect(shown.locator(".offer .notice-good")).to_be_visible()  # accepted already


def test_a_limit_that_cannot_be_proved_is_not_offered(show, user, mails_table):
    """The reason is beside the button, which follows the confidence and the reserve."""
    dialog = trained(user, mails_table, "fp <= 7.5%")
    page = show(f"#/d/{dialog}/certify")
    shown, accept = panel(page, CERTIFY), button(page, Name.ACCEPT)
    expect(accept).to_be_disabled()
    expect(accept).to_have_accessible_description(whole("7.5%"))
    tells(shown.locator("#accept-reason"), "7.99%", 36)  # the smallest limit, and the rows
    shown.get_by_label("Confidence").select_option("0.9")
    expect(accept).to_be_enabled()
    expect(shown.locator("#accept-reason")).to_have_count(0)
    shown.get_by_role("checkbox", name=Name.RESERVE_HALF).click()
    expect(accept).to_be_disabled()
    user.asked(f"/dialogs/{dialog}", "fp <= 20%", keep=False)
    page.reload()
    expect(accept).to_be_enabled()


def test_the_expected_certificate_is_shown_before_and_after(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 20%")
    page = show(f"#/d/{dialog}/certify")
    shown = panel(page, CERTIFY)
    cells = user.ok(f"/dialogs/{dialog}/guarantee")["expected"]["cells"]
    (error,) = (cell for cell in cells if (cell["true"], cell["predicted"]) == ("ham", "spam"))
    expected = shown.get_by_role("group", name="Expected when certified")
    tuning = shown.get_by_role("group", name="On the tuning set")
    for place, name in ((expected, "rate"), (tuning, "tuning")):
        expect(place.get_by_role("row", name="true ham")).to_contain_text(percent(error[name]))
    assert overflow(page) == []
    assert axe(page) == []
    button(page, Name.ACCEPT).click()
    button(page, Name.CONFIRM).click()
    paper = shown.get_by_role("article")
    expect(paper).to_be_visible(timeout=LONG)
    before = paper.get_by_role("group", name="Expected before certifying")
    expect(before.get_by_role("row", name="true ham")).to_contain_text(percent(error["rate"]))
    assert record(user, page)["accepted"][0]["expected"]["cells"] == cells


def percent(rate):
    """A rate as the page shows it."""
    edge = min(rate, 1 - rate)
    return f"{rate:.{0 if edge == 0 else 2 if edge < 0.00995 else 1}%}"


def test_the_nearest_limits_can_be_requested(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 2%")
    page = show(f"#/d/{dialog}/certify")
    nearest = user.ok(f"/dialogs/{dialog}/guarantee")["expected"]["nearest"]
    expect(button(page, Name.ACCEPT)).to_be_disabled()
    button(panel(page, CERTIFY), "Request these limits").click()
    at_step(page, 2)
    assert record(user, page)["steps"][2]["preference"] == nearest
    expect(button(page, Name.ACCEPT)).to_be_enabled()


def test_a_useless_model_is_certified_only_after_a_warning(show, user):
    dialog = trained(user, uploaded(user, judged(), "judged.csv"), "fp <= 5%", **JUDGED)
    page = show(f"#/d/{dialog}/certify")
    shown = panel(page, CERTIFY)
    warning = shown.get_by_role("region", name="Expected certificate").locator(".notice-warn")
    nearest = user.ok(f"/dialogs/{dialog}/guarantee")["expected"]["nearest"]
    expect(warning).to_contain_text(nearest, timeout=LONG)
    expect(button(warning, Name.NEAREST)).to_have_class("button-primary")
    expect(button(page, Name.ACCEPT)).to_have_count(0)
    expect(button(page, Name.ANYWAY)).to_have_class("button")
    button(page, Name.ANYWAY).click()
    expect(page.get_by_role("dialog").locator(".notice-warn")).to_be_visible()
    button(page, Name.CONFIRM).click()
    paper = shown.get_by_role("article")
    expect(paper).to_be_visible(timeout=LONG)
    accepted = record(user, page)["accepted"][0]
    expect(paper.locator("h3")).to_contain_text(accepted["useless"][0])
    expect(paper).to_contain_text(accepted["errors"])
    expect(paper.locator(".notice-warn")).to_contain_text(nearest)
    for place in (page.locator(".dialog-head"), page.locator(".trail"), shown):
        expect(place.locator(".tag-good, .notice-good")).to_have_count(0)
    expect(step(page, 1).locator(".tag-warn")).to_be_visible()
    home(page).click()
    line = page.get_by_role("listitem").filter(has=page.locator(f"a[href$='{dialog}']"))
    expect(line.locator(".tag-warn")).to_be_visible()


def test_a_certificate_begins_with_what_is_guaranteed_and_its_cost(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 25%")
    job = user.finished(user.post(f"/dialogs/{dialog}/accept"))
    assert job["state"] == "done", job
    page = show(f"#/d/{dialog}/certify")
    paper = panel(page, CERTIFY).get_by_role("article")
    accepted = record(user, page)["accepted"][0]
    text = paper.inner_text()
    first = (accepted["guarantees"][0].partition(" (")[0], accepted["errors"], "Model")
    places = [
        text.index(part) for part in (*first, accepted["meaning"], "On the certification set")
    ]
    assert places == sorted(places)
    expect(paper.get_by_role("columnheader", name="rejected")).to_have_count(0)


def test_a_refusal_is_shown_once(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 20%, fn <= 30%")
    page = show(f"#/d/{dialog}/certify")
    button(page, Name.ACCEPT).click()
    button(page, Name.CONFIRM).click()
    reason = alert(page).locator(".notice-text")
    expect(reason).to_contain_text(whole("30%"), timeout=LONG)
    at_step(page, 1)
    expect(page.get_by_role("main").get_by_text(reason.inner_text().strip())).to_have_count(1)
    offer = panel(page, CERTIFY).locator(".offer .notice")
    expect(offer).to_have_count(1)  # that the certification set is used up
    assert user.ok(f"/dialogs/{dialog}")["used_up"]


# Coming back


def state(page):
    """All that should be there again after a reload."""
    trail = page.get_by_role("button", name=re.compile(r"^Step \d+"))
    return {
        "matrix": matrix(page),
        "trail": trail.all_text_contents(),
        "tab": page.get_by_role("tab", selected=True).inner_text(),
        "panel": page.get_by_role("tabpanel").locator("h2").all_inner_texts(),
        "undo": button(page, Name.UNDO).get_attribute("aria-disabled"),
        "redo": button(page, Name.REDO).get_attribute("aria-disabled"),
        "reply": reply(page).all_inner_texts(),
        "title": page.title(),
    }


def test_a_reload_comes_back_to_the_same_state(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12", "fp <= 5, fn <= 5", "fp <= 35%")
    page = show(f"#/d/{dialog}")

    def reloads(number):
        at_step(page, number)
        expect(page.get_by_role("tabpanel").locator("h2").first).to_be_visible()
        before = state(page)
        page.reload()
        at_step(page, number)
        expect(page.get_by_role("tabpanel").locator("h2").first).to_be_visible()
        assert state(page) == before

    reloads(3)
    button(page, Name.UNDO).click()
    reloads(2)  # not met, and there is something to redo
    expect(button(page, Name.TAKE).first).to_be_visible()
    step(page, 1).click()
    tab(page, "Members")
    reloads(1)
    tab(page, "Costs")
    reloads(1)
    step(page, 3).click()
    tab(page, CERTIFY).get_by_role("button", name=Name.ACCEPT).click()
    button(page, Name.CONFIRM).click()
    expect(page.get_by_role("article")).to_be_visible(timeout=LONG)
    paper = page.get_by_role("article").inner_text()
    reloads(3)
    assert page.get_by_role("article").inner_text() == paper
    home(page).click()
    line = page.get_by_role("listitem").filter(has=page.locator(f"a[href='#/d/{dialog}']"))
    expect(line.locator(".tag-good")).to_be_visible()
    page.go_back()
    at_step(page, 3)


def test_a_file_is_prepared_and_may_be_refused(show, user, mails_table):
    """While the server makes it, the link says so and starts no other; then the file has a name."""
    page = show(f"#/d/{trained(user, mails_table)}/certify", allow=(REFUSED.format(400),))
    link = page.get_by_role("link", name=Name.SCRIPT_FILE)
    held = []
    page.route("**/script.py", lambda route: held.append(route))
    link.focus()
    page.keyboard.press("Enter")
    expect(link).to_have_attribute("aria-busy", "true")
    expect(link).to_be_disabled()
    expect(link.locator(".spinner-ring")).to_be_visible()
    page.keyboard.press("Enter")
    with page.expect_download() as download:
        held[0].fulfill(body="print()", content_type="text/x-python")
    assert download.value.suggested_filename == "script.py"
    assert download.value.path().read_text() == "print()"
    expect(link).to_be_enabled()
    expect(link).to_be_focused()
    assert len(held) == 1
    page.keyboard.press("Enter")
    expect(link).to_be_disabled()
    held[1].fulfill(status=400, json={"error": "There is no table."})
    expect(alert(page)).to_have_text("There is no table.")
    expect(link).to_be_enabled()


def test_the_part_of_the_plot_is_kept(show, user, mails_table):
    """While another tab is open, and for this dialog only."""
    page = show(f"#/d/{trained(user, mails_table)}/frontier")
    whole_plot = button(page, "Everything")
    expect(whole_plot).to_have_attribute("aria-pressed", "false")
    whole_plot.click()
    tab(page, "Costs")
    expect(whole_plot).to_have_count(0)
    tab(page, "Frontier")
    expect(whole_plot).to_have_attribute("aria-pressed", "true")
    page = show(f"#/d/{trained(user, mails_table)}/frontier")
    expect(whole_plot).to_have_attribute("aria-pressed", "false")


def test_a_dialog_at_its_start_had_requests(show, user, mails_table):
    """The list does not say of it what it says of a dialog without any request."""
    fresh, back = trained(user, mails_table), trained(user, mails_table, "fp <= 30%")
    user.post(f"/dialogs/{back}/undo")
    page = show(fresh=True)

    def line(dialog):
        return page.get_by_role("listitem").filter(has=page.locator(f"a[href='#/d/{dialog}']"))

    nothing = line(fresh).locator(".dialog-line-preference > :last-child").inner_text()
    assert nothing
    assert nothing not in line(back).inner_text()
    expect(line(back).locator(".dialog-line-steps")).to_have_text(re.compile(r"\b1 step\b"))
    expect(line(fresh).locator(".dialog-line-steps")).to_have_text(re.compile(r"\b0 steps\b"))
