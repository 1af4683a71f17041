"""The story of a dialog by mouse, from a table to a model, in a real browser on a real server."""

import csv
import io
import json
import re
import runpy

import onnxruntime
import pandas
import pytest
from playwright.sync_api import expect
from tests.studio.browser import SECONDS, until
from tests.studio.page_parts import (
    LONG,
    REFUSED,
    SLOW,
    at_step,
    cell,
    drop,
    matrix,
    panel,
    record,
    reply,
    sentence,
    step,
    tab,
    table,
    trained,
)

from margrave.steer import SteeredClassifier


@pytest.fixture(scope="module")
def mails(tmp_path_factory):
    path = tmp_path_factory.mktemp("mails") / "mails.csv"
    path.write_bytes(table())
    return path


def begins(page, mails):
    """From the start to a committee of two."""
    page.get_by_role("link", name="New dialog").click()
    drop(page, mails)
    expect(page.get_by_role("heading", name="mails.csv")).to_be_visible(timeout=LONG)
    expect(page.get_by_label("Column with the classes")).to_have_value("kind")
    expect(page.get_by_role("radio", name="spam")).to_be_checked()
    supported(page.get_by_role("complementary", name="Summary"))
    page.get_by_text("Columns: 4 of 4 used").click()
    expect(page.get_by_role("row", name=re.compile("^Use sender"))).to_contain_text(
        "3 different values"
    )
    page.get_by_role("checkbox", name="Use sender").click()
    expect(page.get_by_text("Columns: 3 of 4 used")).to_be_visible()
    for name in ("quantile-line", "random-trees", "boosted-trees", "kernel"):
        page.get_by_role("checkbox", name=re.compile(f"^{name}")).click()
    expect(page.get_by_text("2 members, 300 rows")).to_be_visible()
    page.get_by_role("button", name="Train").click()
    expect(page.get_by_role("grid", name="Confusion matrix")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()


def supported(summary):
    """The parts are all the rows, and what they support is what their size allows."""
    expect(summary).to_contain_text("the certify part supports")
    text = " ".join(summary.inner_text().split())
    tune, certify = (int(re.search(rf"{name} (\d+) ", text)[1]) for name in ("tune", "Certify"))
    assert tune + certify == 300
    found = re.findall(r"limits of ([\d.]+)% and more on mistakes with \w+ \((\d+) samples\)", text)
    assert sum(int(n) for _, n in found) == certify
    for least, n in found:  # n samples without a mistake: 0.05 = (1 - least) ** n
        assert (1 - float(least) / 100) ** int(n) == pytest.approx(0.05, rel=0.02)


def edits(page):
    """A cell by typing: a sentence first, then a reply with its costs."""
    before = matrix(page)
    most = before[0][1] // 2
    cell(page, "ham", "spam").click()
    page.keyboard.type(str(most))
    expect(sentence(page)).to_have_text(f"at most {most} of {sum(before[0])} ham called spam")
    expect(step(page, 1)).to_have_count(0)  # nothing is asked yet
    page.get_by_role("button", name="Ask", exact=True).click()
    at_step(page, 1)
    after = matrix(page)
    assert after[0][1] <= most
    assert [sum(row) for row in after] == [sum(row) for row in before]
    expect(reply(page)).to_contain_text("met")
    expect(reply(page)).to_contain_text("What it brings")
    expect(reply(page)).to_contain_text("What it costs elsewhere")
    expect(reply(page)).to_contain_text(f"{before[0][1]} → {after[0][1]}")


def cannot_be_had(page):
    """Two cells at once, out of reach: what binds, and the nearest instead."""
    for true, answer in (("ham", "spam"), ("spam", "ham")):
        cell(page, true, answer).click()
        page.keyboard.type("1")
    expect(sentence(page).get_by_role("listitem")).to_have_count(2)
    page.get_by_role("button", name="Ask", exact=True).click()
    at_step(page, 2)
    expect(reply(page)).to_contain_text(
        "Not found by the ways that were tried. The matrix shows the nearest that was."
    )
    expect(reply(page)).to_contain_text("binds")
    nearest = matrix(page)
    page.get_by_role("button", name="Take this instead").click()
    at_step(page, 3)
    expect(reply(page).get_by_text("met", exact=True)).to_be_visible()
    assert matrix(page)[0][1] <= nearest[0][1]
    assert matrix(page)[1][0] <= nearest[1][0]


def on_the_frontier(page, user):
    """A point is clicked and asked for; a step is clicked and gone back to."""
    shown = tab(page, "Frontier")
    until(page, "document.querySelector('.chart-tall canvas, .chart-tall svg')")
    dialog = record(user, page)
    best = user.ok(f"/dialogs/{dialog['id']}/frontier")["best"]
    highest = max(one["fp"] for one in dialog["steps"])
    point = [one for one in best if one["fp"] < highest][-1]
    click_plot(page, point["fp"], point["fn"])
    expect(shown.get_by_label("At most")).to_have_value(str(point["fp"]))
    expect(shown).to_contain_text(f"costs at least {point['fn']} of")
    shown.get_by_role("button", name="Ask for it").click()
    at_step(page, 4)
    expect(reply(page)).to_contain_text(f"fp <= {point['fp']}")
    assert matrix(page)[0][1] <= point["fp"]
    first = dialog["steps"][1]
    until(page, "document.querySelector('.chart-tall canvas, .chart-tall svg')")
    expect(page.get_by_role("img", name=re.compile("Step 4 is at"))).to_be_visible()
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
    page.get_by_role("button", name="Compare step 1").click()
    expect(page.get_by_text("Mark one more step to compare it with step 1.")).to_be_visible()
    page.get_by_role("button", name="Compare step 4").click()
    compared = page.get_by_role("region", name="Comparison")
    expect(compared).to_contain_text("Step 1 → step 4")
    expect(compared).to_contain_text(re.compile("of 240 samples are answered (differently|alike)"))
    page.get_by_role("button", name="Close the comparison").click()
    expect(compared).to_have_count(0)
    step(page, 0).click()
    at_step(page, 0)
    start = matrix(page)
    cell(page, "spam", "ham").click()
    page.keyboard.type(f"{max(1, start[1][0] // 2)}")
    page.get_by_role("button", name="Ask", exact=True).click()
    at_step(page, 5)
    expect(step(page, 5)).to_have_accessible_name(re.compile("^Step 5, from step 0: fn <= "))
    branch = matrix(page)
    page.get_by_role("button", name="Undo").click()
    at_step(page, 0)
    assert matrix(page) == start
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    page.get_by_role("button", name="Redo").click()
    at_step(page, 5)
    assert matrix(page) == branch
    expect(page.get_by_role("button", name="Redo")).to_be_disabled()


def behind_a_cell(page):
    """The rows of a cell, sorted, with the votes of both members."""
    n = matrix(page)[0][1]
    cell(page, "ham", "spam").click()
    page.keyboard.press("Escape")
    page.get_by_role("button", name=f"Show these {n} rows").click()
    shown = panel(page, "Members")
    expect(shown).to_be_visible()
    expect(shown.get_by_label("Truly")).to_have_value("0")
    expect(shown.get_by_label("Called", exact=True)).to_have_value("1")
    expect(shown).to_contain_text(f"1 to {min(n, 25)} of {n}")
    rows = shown.get_by_role("region", name="Samples in the cell").get_by_role("row")
    expect(rows).to_have_count(1 + min(n, 25))
    expect(rows.first).to_have_text(re.compile("Row.*Truly.*Called.*Certainty.*line.*gaussians"))
    rows.first.get_by_role("button", name="links").click()
    expect(rows.first.locator("[aria-sort=ascending]")).to_have_text(re.compile("links"))
    column = [one.strip() for one in rows.first.get_by_role("columnheader").all_inner_texts()]
    place = next(at for at, name in enumerate(column) if name.startswith("links"))
    until(page, "!document.querySelector('.panel-stack[aria-busy=true]')")
    links = [
        int(row.locator("th, td").nth(place).inner_text()) for row in rows.all()[1 : min(n, 25) + 1]
    ]
    assert links == sorted(links)
    members = shown.get_by_role("region", name="Members", exact=True).get_by_role("row")
    assert [row.get_by_role("rowheader").inner_text() for row in members.all()[1:]] == [
        "line",
        "gaussians",
    ]
    with page.expect_download() as download:
        shown.get_by_role("link", name="These rows as CSV").click()
    found = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert len(found) == n


def by_costs(page):
    """Ranges of costs: which cuts win there, and asking for one."""
    shown = tab(page, "Costs")
    winners = shown.get_by_role("region", name="Winners").get_by_role("row")
    expect(winners.nth(1)).to_be_visible()
    many = winners.count()
    for end in ("at least", "at most"):
        field = shown.get_by_role("textbox", name=f"A miss costs, in false alarms, {end}")
        field.fill("1")
        field.press("Enter")
    expect(shown.get_by_role("textbox", name=re.compile("^A miss.* at most"))).to_have_value("1")
    for name, value in (("at least", "30"), ("at most", "30")):
        field = shown.get_by_role("textbox", name=re.compile(f"^Share of spam.* {name}$"))
        field.fill(value)
        field.press("Enter")
    expect(shown).to_contain_text("One cut wins everywhere in these ranges.")
    assert winners.count() == 2 < many
    ask = shown.get_by_role("button", name=re.compile(r"^Ask for at most \d+ ham called spam$"))
    most = int(re.search(r"\d+", ask.get_attribute("aria-label"))[0])
    ask.click()
    at_step(page, 6)
    assert matrix(page)[0][1] <= most


def accepts(page):
    """The promise is set once, after a question."""
    cell(page, "ham", "spam").click()
    page.keyboard.type("30%")
    page.get_by_label(re.compile("^keep what was asked before")).click()
    expect(sentence(page)).to_contain_text("at most 30 % of ham called spam")
    page.get_by_role("button", name="Ask", exact=True).click()
    at_step(page, 7)
    shown = tab(page, "Accept")
    expect(shown).to_contain_text("Step 7 would promise")
    expect(shown).to_contain_text("No step of this dialog has looked at the 60 certify samples")
    shown.get_by_role("button", name="Accept this model").click()
    box = page.get_by_role("dialog", name="Spend the certify samples?")
    box.get_by_role("button", name="Not yet").click()
    expect(box).to_have_count(0)
    shown.get_by_role("button", name="Accept this model").click()
    box.get_by_role("button", name="Spend them and accept").click()
    paper = shown.get_by_role("article")
    expect(paper).to_contain_text("With 95% confidence, on new samples like these", timeout=LONG)
    expect(paper).to_contain_text("60 samples no step had seen")
    expect(shown).to_contain_text("The 60 certify samples are spent")
    expect(page.get_by_text("1 accepted model")).to_be_visible()
    expect(step(page, 7)).to_contain_text("accepted")


def takes_away(page, folder):
    """Every file that is offered, by its name."""
    files = {}
    for link in panel(page, "Accept").locator("a[download]").all():
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
    assert certificate["confusion"] == accepted["confusion"]
    assert certificate["promises"][0]["sentence"] in accepted["promises"][0]
    assert set(model.predict(X)) == {"ham", "spam"}
    session = onnxruntime.InferenceSession(files["model.onnx"])
    fed = {name: X[[name]].to_numpy(dtype=float) for name in X}
    assert session.run(["label"], fed)[0].tolist() == model.predict(X).tolist()
    assert certificate["promises"][0]["sentence"] in files["card.md"].read_text()
    told = json.loads(files["dialog.json"].read_text())
    for name in ("steps", "accepted"):
        assert len(told[name]) == len(dialog[name])
        assert all(a.items() >= b.items() for a, b in zip(told[name], dialog[name], strict=True))
    assert "<html" in files["report.html"].read_text()
    assert "most 30 % of ham called spam" in files["report.html"].read_text()
    monkeypatch.chdir(mails.parent)
    repeated = runpy.run_path(str(files["script.py"]))
    assert [str(one.preference) for one in repeated["dialog"].history[1:]] == [
        one["asked"] for one in dialog["steps"][1:]
    ]
    assert repeated["model"].certificate_.confusion == model.certificate_.confusion
    assert repeated["model"].predict(X).tolist() == model.predict(X).tolist()


def test_the_whole_story_by_mouse(page, user, mails, tmp_path, monkeypatch):
    begins(page, mails)
    edits(page)
    cannot_be_had(page)
    on_the_frontier(page, user)
    along_the_trail(page)
    behind_a_cell(page)
    by_costs(page)
    accepts(page)
    files = takes_away(page, tmp_path)
    assert set(files) == {
        *("model.skops", "model.onnx", "card.md", "certificate.json"),
        *("dialog.json", "script.py", "report.html"),
    }
    check_files(files, mails, record(user, page), monkeypatch)


# The start


def test_a_set_that_comes_along(show):
    page = show("#/new")
    search = page.get_by_role("searchbox", name="Search the sets")
    search.fill("no such thing")
    expect(page.get_by_text("No set fits")).to_be_visible()
    search.fill("pima")
    page.get_by_role("button", name=re.compile("^pima")).click()
    expect(page.get_by_role("heading", name="pima")).to_be_visible(timeout=LONG)
    expect(page.get_by_label("Column with the classes")).to_have_value("target")
    page.reload()
    expect(page.get_by_role("heading", name="pima")).to_be_visible()
    page.get_by_role("link", name="Another table").click()
    expect(search).to_be_visible()


def test_choices_are_answered_before_anything_is_trained(show, mails_table):
    """Another target, another positive class, other parts: what follows of each is shown."""
    page = show(f"#/new/{mails_table}", allow=(REFUSED.format(400),))
    train = page.get_by_role("button", name="Train")
    expect(train).to_be_enabled()
    page.get_by_label("Column with the classes").select_option("sender")
    expect(page.get_by_role("radio")).to_have_count(6)  # three senders, none of them, two kinds
    expect(page.get_by_role("radio", name="None in particular")).to_be_checked()
    page.get_by_label("Column with the classes").select_option("capitals")
    expect(page.get_by_role("alert").first).to_contain_text("capitals")
    expect(train).to_be_disabled()
    page.get_by_label("Column with the classes").select_option("kind")
    page.get_by_role("radio", name=re.compile("^ham")).click()
    summary = page.get_by_role("complementary", name="Summary")
    page.get_by_text("More: title, groups, time, what is kept apart").click()
    page.get_by_label("Kept apart for the promise").select_option("none")
    expect(summary).to_contain_text("none is kept apart, so nothing can be promised")
    page.get_by_label("Kept apart for the promise").select_option("0.5")
    expect(summary).to_contain_text("the certify part supports")
    page.get_by_label("A promise you have in mind").fill("fp =")
    expect(summary.locator(".notice")).to_be_visible()
    expect(train).to_be_disabled()
    page.get_by_label("A promise you have in mind").fill("")
    expect(train).to_be_enabled()
    for box in page.get_by_role("checkbox").all():
        if box.is_visible():
            box.click()
    expect(page.get_by_text("A committee needs a member.").first).to_be_visible()
    expect(train).to_be_disabled()
    page.get_by_role("radio", name=re.compile("^A martingale program")).click()
    page.get_by_label("Levels").fill("99")
    expect(summary).to_contain_text("A program has 1 to 15 levels to begin with.")
    page.get_by_label("Levels").fill("3")
    expect(summary).to_contain_text("A program of 3 levels, 300 rows")
    expect(train).to_be_enabled()


def test_training_shows_how_far_it_is_and_can_be_cancelled(show, user):
    """It goes on without the page, which finds it again."""
    page = show(f"#/new/{user.table(SLOW)}")
    page.get_by_role("button", name="Train").click()
    expect(page.get_by_role("heading", name="Training the committee")).to_be_visible(timeout=LONG)
    bars = page.get_by_role("progressbar")
    expect(bars).to_have_count(7, timeout=LONG)  # all, and each member
    page.reload()
    first = page.get_by_role("progressbar", name="line", exact=True)
    expect(first).not_to_have_attribute("aria-valuenow", "0", timeout=LONG)
    page.get_by_role("link", name="Margrave").click()
    line = page.get_by_role("listitem").filter(has_text=SLOW)
    expect(line).to_contain_text("training")
    line.get_by_role("link").click()
    page.get_by_role("button", name="Cancel the training").click()
    expect(page.get_by_role("heading", name="Not trained")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("alert").first).to_contain_text("Training was cancelled.")
    page.reload()
    page.get_by_role("button", name="Train again").click()
    expect(page.get_by_role("heading", name="Training the committee")).to_be_visible(timeout=LONG)
    page.get_by_role("link", name="Margrave").click()
    page.get_by_role("button", name=f"Delete {SLOW}").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(line).to_have_count(0)


def test_dialogs_are_renamed_and_deleted(show, user, mails_table):
    dialog = trained(user, mails_table, title="A first name")
    page = show()
    page.get_by_role("button", name="Rename A first name").click()
    box = page.get_by_role("dialog", name="Rename")
    box.get_by_label("Title").fill("A second name")
    box.get_by_role("button", name="Rename").click()
    page.get_by_role("link", name="A second name").click()
    expect(page).to_have_title("A second name · Margrave")
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("Not this one")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="A second name")).to_be_visible()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("A third name")
    page.keyboard.press("Enter")
    expect(page).to_have_title("A third name · Margrave")
    assert user.ok(f"/dialogs/{dialog}")["title"] == "A third name"
    page.get_by_role("link", name="Margrave").click()
    page.get_by_role("button", name="Delete A third name").click()
    box = page.get_by_role("dialog", name="Delete this dialog?")
    box.get_by_role("button", name="Cancel").click()
    expect(box).to_have_count(0)
    page.get_by_role("button", name="Delete A third name").click()
    box.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="A third name")).to_have_count(0)
    assert user.get(f"/dialogs/{dialog}").status_code == 404


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
    expect(sentence(page)).to_contain_text(f"at most {n - 1} of {total} ham called spam")
    page.keyboard.press("Shift+ArrowDown")
    expect(sentence(page)).to_contain_text(f"at most {n - 11} of {total} ham called spam")
    page.keyboard.press("Escape")
    expect(sentence(page)).to_contain_text("Change a cell to say what you can afford")
    box = alarms.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 10, y)
    page.mouse.move(x + 20, y - 20)
    page.mouse.up()  # four pixels for one sample
    expect(sentence(page)).to_contain_text(f"at most {n + 10} of {total} ham called spam")
    expect(alarms).to_contain_text(f"changed to {n + 10}, not asked yet")
    page.get_by_role("button", name="Clear").click()
    expect(alarms).not_to_contain_text("not asked yet")
    page.get_by_role("button", name="Percent of the row").click()
    cell(page, "spam", "spam").click()
    page.keyboard.type("80")
    expect(sentence(page)).to_contain_text("at least 80 % of spam called spam")
    page.keyboard.type("0")
    expect(sentence(page)).to_contain_text("There is no more than 100%.")
    page.keyboard.press("Control+A")
    page.keyboard.type("80")
    page.get_by_role("button", name="Ask", exact=True).click()
    at_step(page, 1)
    assert matrix(page)[1][1] >= 0.8 * sum(matrix(page)[1])
    page.reload()
    at_step(page, 1)
    expect(page.get_by_role("button", name="Percent of the row")).to_have_attribute(
        "aria-pressed", "true"
    )


def test_requests_in_words_and_by_chosen_ways(show, user, mails_table):
    page = show(f"#/d/{trained(user, mails_table, 'fp <= 12')}")
    at_step(page, 1)
    page.get_by_text("In words, and by which ways").click()
    words = page.get_by_label("Preference in words")
    words.fill("fp <=")
    expect(sentence(page).locator(".bad")).to_be_visible()
    words.fill("rejected <= 20%")
    expect(sentence(page).get_by_role("listitem")).to_have_count(2)  # what was asked is kept
    for way in ("reweigh", "select", "retune"):
        page.get_by_role("checkbox", name=re.compile(f"^{way}")).click()
    words.press("Enter")
    at_step(page, 2)
    found = record(user, page)["steps"][2]
    assert found["asked"].split(", ") == ["fp <= 12", "rejected <= 20%"]
    assert found["way"] in ("move", "reject")
    assert found["met"]


def test_a_first_answer_is_shown_while_better_ones_are_looked_for(show, user, mails_table):
    """The stream of a job is held back, so that every moment of it can be looked at."""
    page = show(f"#/d/{trained(user, mails_table)}")
    expect(cell(page, "ham", "spam")).to_be_visible()
    streams, looks = [], []
    page.route("**/api/jobs/*/events", lambda route: streams.append(route))
    cell(page, "ham", "spam").click()
    page.keyboard.type("5")
    with page.expect_response("**/prefer") as begun:
        page.get_by_role("button", name="Ask", exact=True).click()
    job = begun.value.json()["id"]
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(page.get_by_text("Working", exact=True)).to_be_visible()
    expect(cell(page, "ham", "spam")).to_have_attribute("aria-readonly", "true")
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    told_so_far = list(user.events(job))
    assert told_so_far[-1][0] == "end"
    first = next(data for name, data in told_so_far if name == "reply")
    page.route(f"**/api/jobs/{job}", lambda route: looks.append(route))
    until_some(page, streams)
    streams.pop().fulfill(
        content_type="text/event-stream", body=f"event: reply\ndata: {json.dumps(first)}\n\n"
    )
    expect(reply(page)).to_contain_text("A first answer; a better one may come.")
    expect(page.get_by_text("reply under way")).to_be_visible()
    assert matrix(page) == first["matrix"]["counts"]
    page.get_by_role("button", name="Stop").click()
    until_some(page, looks)  # the stream broke off, so the page asks how the job is
    looks.pop().continue_()
    at_step(page, 1)


def until_some(page, held):
    """Wait for a request that is held back, looking at every frame."""
    frames = 0
    while not held:
        page.evaluate("new Promise(requestAnimationFrame)")
        frames += 1
        assert frames < 60 * SECONDS


def test_half_can_be_reserved_for_another_model(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 40%")
    page = show(f"#/d/{dialog}/accept")
    shown = panel(page, "Accept")
    shown.get_by_label("Confidence").select_option("0.9")
    shown.get_by_role("checkbox", name="Reserve half for another model").click()
    shown.get_by_role("button", name="Accept this model").click()
    page.get_by_role("button", name="Spend half and accept").click()
    expect(shown.get_by_role("article")).to_have_count(1, timeout=LONG)
    expect(shown).to_contain_text("50% of what may be spent on the 60 certify samples is left")
    page.reload()
    expect(shown.get_by_role("article")).to_contain_text("With 90% confidence")
    expect(shown).to_contain_text("This step was accepted already")


def test_the_dear_ways_of_the_frontier(show, user, mails_table):
    page = show(f"#/d/{trained(user, mails_table)}/frontier")
    shown = panel(page, "Frontier")
    shown.get_by_role("button", name="Try the dear ways too").click()
    expect(shown.get_by_text("the dear ways are in it")).to_be_visible(timeout=LONG)
    shown.get_by_text("As tables").click()
    expect(shown.get_by_role("region", name="Best trade-offs")).to_contain_text(
        re.compile("retune|reweigh|select")
    )


# Coming back


def state(page):
    """All that should be there again after a reload."""
    trail = page.get_by_role("button", name=re.compile(r"^Step \d+"))
    return {
        "matrix": matrix(page),
        "trail": trail.all_text_contents(),
        "tab": page.get_by_role("tab", selected=True).inner_text(),
        "panel": page.get_by_role("tabpanel").locator("h2").all_inner_texts(),
        "undo": page.get_by_role("button", name="Undo").get_attribute("aria-disabled"),
        "redo": page.get_by_role("button", name="Redo").get_attribute("aria-disabled"),
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
    page.get_by_role("button", name="Undo").click()
    reloads(2)  # not met, and there is something to redo
    expect(page.get_by_role("button", name="Take this instead")).to_be_visible()
    step(page, 1).click()
    tab(page, "Members")
    reloads(1)
    tab(page, "Costs")
    reloads(1)
    step(page, 3).click()
    tab(page, "Accept").get_by_role("button", name="Accept this model").click()
    page.get_by_role("button", name="Spend them and accept").click()
    expect(page.get_by_role("article")).to_be_visible(timeout=LONG)
    paper = page.get_by_role("article").inner_text()
    reloads(3)
    assert page.get_by_role("article").inner_text() == paper
    page.get_by_role("link", name="Margrave").click()
    line = page.get_by_role("listitem").filter(has=page.locator(f"a[href='#/d/{dialog}']"))
    expect(line).to_contain_text("accepted")
    page.go_back()
    at_step(page, 3)


def test_the_same_table_is_taken_again(show, studio_server, user, mails_table):
    """From a tab that has nothing to show, to the page where it would be chosen otherwise."""
    page = show(f"#/d/{trained(user, mails_table)}/program")
    page.get_by_role("link", name="Start a program on the same table").click()
    expect(page.get_by_role("heading", name="mails.csv")).to_be_visible()
    expect(page.get_by_role("radio", name=re.compile("^A martingale program"))).to_be_checked()
    dialog = trained(user, mails_table, target="sender")
    page.goto(f"{studio_server.url}#/d/{dialog}/frontier")
    expect(panel(page, "Frontier")).to_contain_text("none of them was called positive")
    page.get_by_role("link", name="Start again with a positive class").click()
    expect(page.get_by_role("heading", name="mails.csv")).to_be_visible()
