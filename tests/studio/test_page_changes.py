"""What a step has changed, row by row; limits that cannot be met; and what set-up tells."""

import csv
import io
import json
import re

import pytest
from playwright.sync_api import expect
from tests.studio.browser import NARROW, axe, overflow, until
from tests.studio.page_parts import (
    Name,
    alternatives,
    at_step,
    button,
    cell,
    compare_button,
    matrix,
    panel,
    record,
    reply,
    rows_button,
    step,
    summary,
    tells,
    trained,
)

HARDER = re.compile("^Search harder")
SHOW = re.compile("rows? that changed$")


@pytest.fixture(scope="module")
def steps(user, mails_table):
    """A dialog with a step that rejects, a branch, and a step that is not met: the last one."""
    made = trained(user, mails_table, "fp <= 5", "fp <= 2, rejected <= 20%")
    user.post(f"/dialogs/{made}/goto", {"step": 1})
    user.asked(f"/dialogs/{made}", "fn <= 20", keep=False)
    user.asked(f"/dialogs/{made}", "fp <= 1, fn <= 1", keep=False)
    return made


@pytest.fixture
def at(user, steps, show):
    """`at(number)`: the page of this dialog at a step."""

    def go(number):
        user.ok(f"/dialogs/{steps}/goto", {"step": number})
        page = show(f"#/d/{steps}", fresh=True)
        at_step(page, number)
        return page

    return go


def drawer(page):
    """The rows that changed."""
    return page.get_by_role("region", name=re.compile("^Rows that changed"))


def quick(request):
    """The body of a request, without the slow strategies."""
    return json.dumps({**request.post_data_json, "strategies": ["move"]})


def settled(page):
    until(page, "document.querySelector('.drawer[aria-busy=false]')")


def lines(page):
    """The rows of the drawer's page: their cells as texts."""
    rows = drawer(page).get_by_role("region", name="Changed rows").get_by_role("row").all()
    return [row.locator("th, td").all_inner_texts() for row in rows[1:]]


def changed(user, dialog, first, second, **more):
    params = {"first": first, "second": second, "limit": 200, **more}
    return user.ok(f"/dialogs/{dialog}/compare/rows", params=params)


def test_a_reply_shows_the_rows_that_it_changed(user, steps, at):
    """As many as it says, with both predictions; closed by Escape, the focus is where it was."""
    page = at(2)
    found = changed(user, steps, 1, 2)
    opener = button(reply(page), SHOW)
    tells(opener, found["total"])
    opener.click()
    expect(drawer(page).get_by_role("heading")).to_be_focused()
    settled(page)
    shown = {int(line[0]): line[1:5] for line in lines(page)}
    assert len(shown) == min(25, found["total"])
    sent = {row["row"]: row for row in found["rows"]}
    for number, texts in shown.items():
        row = sent[number]
        now = row["predicted"] or "rejected"
        fate = "rejected" if now == "rejected" else "right" if now == row["true"] else "wrong"
        assert texts == [row["true"], row["before"] or "rejected", now, fate]
    assert axe(page, ".drawer") == []
    page.keyboard.press("Escape")
    expect(drawer(page)).to_have_count(0)
    expect(opener).to_be_focused()


def test_changed_rows_are_filtered_sorted_and_downloaded(user, steps, at):
    """Between any two steps, also of two branches."""
    page = at(2)
    button(reply(page), SHOW).click()
    drawer(page).get_by_label("To step").select_option("3")
    drawer(page).get_by_label("From step").select_option("2")
    found = changed(user, steps, 2, 3)
    counts = found["n_newly"]
    assert counts["right"] > 0
    assert counts["wrong"] > 0
    for kind in ("right", "wrong", "rejected"):
        tells(button(drawer(page), re.compile(f"^Newly {kind}")), counts[kind])
    tells(button(drawer(page), re.compile("^All")), found["n_changed"])
    button(drawer(page), re.compile("^Newly wrong")).click()
    tells(drawer(page).locator(".pages span"), counts["wrong"])
    button(drawer(page), "Certainty before").click()
    settled(page)
    expect(drawer(page).locator("[aria-sort=descending]")).to_contain_text("Certainty before")
    certainty = [int(line[5].rstrip("%")) for line in lines(page)]
    assert certainty == sorted(certainty, reverse=True)
    with page.expect_download() as download:
        drawer(page).get_by_role("link", name=Name.ROWS_FILE).click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
    assert len(rows) == counts["wrong"]
    assert all(row["predicted"] not in ("", row["true"]) for row in rows)


def test_escape_closes_the_drawer_from_outside_and_the_last_opener_gets_the_focus(steps, at):
    """What has the focus is above the drawer."""
    page = at(4)
    button(reply(page), SHOW).click()
    settled(page)
    for number in (2, 3):
        compare_button(page, number).click()
    opener = button(page.get_by_role("region", name=Name.COMPARISON, exact=True), SHOW)
    opener.focus()
    low, top = (part.bounding_box() for part in (opener, drawer(page)))
    assert low["y"] + low["height"] <= top["y"]
    opener.click()
    tells(drawer(page).get_by_role("heading"), 2, 3)
    expect(drawer(page).get_by_role("heading")).to_be_focused()
    step(page, 4).focus()
    page.keyboard.press("Escape")
    expect(drawer(page)).to_have_count(0)
    expect(opener).to_be_focused()


@pytest.mark.full
def test_another_choice_of_rows_begins_at_its_first_page(user, steps, at):
    """No page beyond the end of the rows is ever asked for."""
    page = at(2)
    asked = []
    page.on("request", lambda request: "/rows?" in request.url and asked.append(request.url))
    page.get_by_role("tab", name=Name.MEMBERS).click()
    shown = panel(page, Name.MEMBERS)
    shown.get_by_label("True class").select_option("any")
    shown.get_by_label("Predicted class").select_option("any class")
    for _ in range(3):
        shown.get_by_role("button", name="More").click()
        expect(shown.locator("[aria-busy=true]")).to_have_count(0)
    tells(shown.locator(".pages span"), 76)
    asked.clear()
    with page.expect_response("**/rows?*"):
        shown.get_by_label("Predicted class").select_option("none (rejected)")
    expect(shown.locator("[aria-busy=true]")).to_have_count(0)
    tells(shown.locator(".pages span"), 1)
    assert all("offset=0" in url for url in asked)


@pytest.mark.full
def test_the_rows_of_a_cell_are_scrolled_to_once(user, steps, at):
    page = at(2)
    page.set_viewport_size({"width": 1280, "height": 400})
    n = matrix(page)[0][0]
    cell(page, "ham", "ham").click()
    rows_button(page, n).click()
    heading = page.get_by_role("heading", name="Rows in a cell")
    expect(heading).to_be_in_viewport()
    expect(panel(page, Name.MEMBERS).locator("[aria-busy=true]")).to_have_count(0)
    page.evaluate("scrollTo(0, 0)")
    expect(heading).not_to_be_in_viewport()
    with page.expect_response("**/members"):
        step(page, 3).click()
    at_step(page, 3)
    expect(panel(page, Name.MEMBERS).locator("[aria-busy=true]")).to_have_count(0)
    expect(heading).not_to_be_in_viewport()
    page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.core
def test_two_steps_of_the_trail_lead_to_their_rows(user, steps, at):
    page = at(3)
    compare_button(page, 2).click()
    compare_button(page, 4).click()
    compared = page.get_by_role("region", name=Name.COMPARISON, exact=True)
    button(compared, SHOW).click()
    tells(drawer(page).get_by_role("heading"), 2, 4)
    found = changed(user, steps, 2, 4)
    tells(drawer(page).locator(".pages span"), found["total"])
    button(drawer(page), "Close the changed rows").click()
    expect(drawer(page)).to_have_count(0)


@pytest.mark.full
def test_limits_that_cannot_be_met_are_searched_harder(user, steps, at):
    """The same request from the same step, with all strategies; then nothing harder is left."""
    page = at(4)
    sent = record(user, page)["steps"][4]
    expect(reply(page).locator(".notice-warn", has=page.locator(".alternatives"))).to_be_visible()
    for shown, one in zip(alternatives(page).all(), sent["alternatives"], strict=True):
        (_, fp, _), (fn, _, _) = one["confusion"]["counts"]
        expect(shown.locator("dd")).to_have_text([str(n) for n in (fp, fn, fp + fn)])
    with page.expect_request("**/prefer") as request:
        button(page, HARDER).click()
    body = request.value.post_data_json
    assert (body["wants"], body["at"]) == ([sent["preference"]], sent["parent"])
    assert {"move", "reject", "retune"} == set(body["strategies"])
    at_step(page, 5)
    if not record(user, page)["steps"][5]["met"]:
        expect(reply(page).locator(".notice-warn")).not_to_have_count(0)
    expect(button(page, HARDER)).to_have_count(0)


def test_a_harder_search_has_the_same_limits_and_goal(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 5")
    before = user.asked(f"/dialogs/{dialog}", "fn <= 2", keep=True)
    assert (before["met"], before["goal"]) == (False, "fewest fn")  # that of the earlier limit
    page = show(f"#/d/{dialog}")
    at_step(page, 2)
    page.route("**/prefer", lambda route: route.continue_(post_data=quick(route.request)))
    button(page, HARDER).click()
    at_step(page, 3)
    last = record(user, page)["steps"][3]
    assert last["parent"] == 1
    assert [last[name] for name in ("preference", "goal", "after")] == [
        before[name] for name in ("preference", "goal", "after")
    ]
    page.unroute("**/prefer")


def test_a_single_limit_that_cannot_be_met(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 5", "recall(spam) >= 100%, fp <= 100%")
    user.asked(f"/dialogs/{dialog}", "errors <= 3", keep=False)
    page = show(f"#/d/{dialog}")
    at_step(page, 3)
    last = record(user, page)["steps"][3]
    assert (last["met"], last["alternatives"]) == (False, [])
    expect(alternatives(page)).to_have_count(0)
    button(reply(page), Name.TAKE).click()
    at_step(page, 4)
    assert record(user, page)["steps"][4]["met"]


def test_a_rise_of_the_errors_is_shown(user, at):
    page = at(1)
    raised = record(user, page)["steps"][1]
    before, after = (
        sum(row[other] for other, row in zip((1, 0), raised[key]["counts"], strict=True))
        for key in ("before", "after")
    )
    assert after > before
    tells(reply(page).locator(".reply-warning"), before, after)
    total = page.get_by_role("region", name=Name.SUMMARY, exact=True).locator("dd").first
    tells(total, after, f"+{after - before}")


def test_the_trail_tells_of_rejected_rows_and_redo_leads_forward(user, at):
    """From the start, too, to which a click in the trail has led."""
    page = at(2)
    counts = record(user, page)["steps"][2]["after"]["counts"]
    rejected = sum(row[2] for row in counts)
    assert rejected > 0
    numbers = [re.compile(rf"\b{n}$") for n in (counts[0][1], counts[1][0], rejected)]
    expect(step(page, 2).locator(".trail-counts > span")).to_have_text(numbers)
    expect(step(page, 2)).to_have_accessible_name(re.compile(rf"rejected {rejected}\b"))
    expect(step(page, 1)).not_to_have_accessible_name(re.compile("rejected"))
    step(page, 0).click()
    at_step(page, 0)
    expect(button(page, Name.UNDO)).to_be_disabled()
    for number in (1, 2):
        button(page, Name.REDO).click()
        at_step(page, number)
    expect(button(page, Name.REDO)).to_be_disabled()


def test_the_rows_of_a_cell_come_into_view(at):
    """With the focus on their heading; a tab that is opened by hand leaves the page where it is."""
    page = at(1)
    n = matrix(page)[1][0]
    cell(page, "spam", "ham").click()
    page.keyboard.press("Escape")
    rows_button(page, n).click()
    heading = panel(page, "Members").get_by_role("heading", name="Rows in a cell")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()
    tells(panel(page, "Members").locator(".pages span"), n)
    page.get_by_role("tab", name="Costs").click()
    page.get_by_role("tab", name="Members").click()
    expect(
        panel(page, "Members").get_by_role("heading", name="The members", exact=True)
    ).to_be_visible()
    expect(page.get_by_role("tab", name="Members")).to_be_focused()


@pytest.mark.full
def test_nothing_is_cut_off_in_a_narrow_window(open_page, studio_server, user, steps):
    """The trail with branches, the cards, the drawer, and the tables of the members and rows."""
    user.ok(f"/dialogs/{steps}/goto", {"step": 4})
    page = open_page(studio_server.url, viewport=NARROW, reduced_motion=True)
    page.goto(f"{page.url.partition('#')[0]}#/d/{steps}/members")
    at_step(page, 4)
    expect(alternatives(page)).to_have_count(3)
    for face in page.locator(".trail-face").all():
        parts = [part.bounding_box() for part in face.locator("> *:not(svg)").all()]
        parts = [part for part in parts if part]
        for i, one in enumerate(parts):
            for other in parts[i + 1 :]:
                apart = (
                    one["x"] + one["width"] <= other["x"] + 0.5
                    or other["x"] + other["width"] <= one["x"] + 0.5
                    or one["y"] + one["height"] <= other["y"] + 2
                    or other["y"] + other["height"] <= one["y"] + 2
                )
                assert apart, face.inner_text()
    members = page.get_by_role("region", name=Name.MEMBERS, exact=True)
    assert members.evaluate("(box) => box.scrollWidth - box.clientWidth") == 0
    cell(page, "spam", "ham").click()
    page.keyboard.press("Escape")
    rows_button(page, matrix(page)[1][0]).click()
    heading = panel(page, "Members").get_by_role("heading", name="Rows in a cell")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()
    button(reply(page), SHOW).click()
    settled(page)
    close = button(drawer(page), "Close the changed rows")
    expect(close).to_be_in_viewport(ratio=1)
    assert overflow(page) == []
    assert axe(page) == []


def test_set_up_says_why_a_class_is_positive(show, mails_table):
    """And follows the choice; the parts of the bar are labelled in full."""
    page = show(f"#/new/{mails_table}")
    why = page.get_by_role("group", name="Positive class").locator("p").last
    expect(why).to_contain_text("spam")
    rarer = why.inner_text()
    page.get_by_role("radio", name=re.compile("^ham")).click()
    expect(why).to_contain_text("ham")
    assert rarer.replace("spam", "ham") != why.inner_text()
    expect(summary(page).locator(".part").first).to_be_visible()
    for part in summary(page).locator(".part").all():
        assert part.evaluate("(box) => box.scrollWidth - box.clientWidth") == 0


def test_set_up_shows_the_plan_for_a_guarantee(show, user, mails_table):
    """What the API plans; a wait is shown, and the field can be typed in meanwhile."""
    page = show(f"#/new/{mails_table}", fresh=True)
    section = page.get_by_role("region", name="Guarantee")
    expect(section.locator(".planned")).to_have_count(0)
    page.route("**/plan", lambda route: None)  # not answered
    field = page.get_by_label(Name.GUARANTEE)
    with page.expect_request("**/plan"):
        field.fill("fp <= 1")
    expect(section.get_by_role("status")).to_be_visible()
    page.unroute("**/plan")
    field.press_sequentially("0%")
    expect(field).to_have_value("fp <= 10%")
    expect(section.locator(".planned")).to_be_visible()
    expect(section.get_by_role("status")).to_have_count(0)
    body = {"target": "kind", "positive": "spam", "guarantee": "fp <= 10%"}
    planned = user.ok(f"/tables/{mails_table}/plan", body)["planned"]
    chosen = planned["chosen"]
    expect(section.locator("dl")).to_contain_text(f"{chosen['certify_by_class']['ham']} rows")
    expect(section.locator("dl")).to_contain_text(f"{100 * chosen['recall']:.1f}%")
    for option in planned["further"]:
        expect(section.locator("dl")).to_contain_text(f"{option['more_rows']['ham']:,} more rows")
    section.locator("summary").click()
    rows = section.locator("tbody tr")
    expect(rows).to_have_count(len(planned["options"]))
    marked = rows.nth(planned["options"].index(chosen))
    expect(marked).to_have_attribute("aria-current", "true")
    assert overflow(page) == []
    assert axe(page) == []


def test_set_up_says_what_is_possible_with_too_few_rows(show, user, mails_table):
    page = show(f"#/new/{mails_table}", fresh=True)
    page.get_by_label(Name.GUARANTEE).fill("fp <= 0.1%")
    body = {"target": "kind", "positive": "spam", "guarantee": "fp <= 0.1%"}
    support = user.ok(f"/tables/{mails_table}/plan", body)["support"]
    (least,) = (one["least"] for one in support if one["label"] == "ham")
    notice = page.get_by_role("region", name="Guarantee").locator(".notice-warn")
    expect(notice).to_contain_text(f"{least:.2f}%")
    expect(notice).to_contain_text("more rows of ham")
    expect(button(page, Name.TRAIN)).to_be_enabled()


def test_set_up_warns_of_rows_that_are_used_up(show, mails_table):
    page, notice = show(f"#/new/{mails_table}", fresh=True), ".notice-warn"
    expect(summary(page).locator(".support")).to_be_visible()
    expect(summary(page).locator(notice)).to_have_count(0)
    page.route(
        "**/plan", lambda route: route.fulfill(json={**route.fetch().json(), "used_up": True})
    )
    page = show(f"#/new/{mails_table}", fresh=True)
    expect(summary(page).locator(notice)).to_have_count(1)
    expect(button(page, Name.TRAIN)).to_be_enabled()
