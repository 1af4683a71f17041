"""What edits would lead to, while they are made: in the matrix, its summary, and beside it."""

import re
from itertools import pairwise

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.studio.browser import axe
from tests.studio.page_parts import (
    Name,
    ask_button,
    asks,
    at_step,
    button,
    cell,
    grid,
    keep_box,
    matrix,
    matrix_card,
    number,
    record,
    sentence,
    step,
    table,
    tells,
    trained,
    uploaded,
)

from margrave._messages import name_class

PREVIEW = """async (cases) => {
  const { previewOf } = await import(new URL('preview.js', location.href));
  return cases.map(({ frontier, step, edits, then }) => {
    const found = previewOf(frontier, step, edits, true, then);
    return found && { counts: found.after.counts, reachable: found.reachable };
  });
}"""
START = {"classes": ["ham", "spam"], "positive": "spam", "counts": [[90, 10, 0], [10, 70, 0]]}
COSTS = {"fewest fp": (1, 0), "fewest fn": (0, 1), "fewest errors": (1, 1)} | {
    f"lowest cost of fp + {ratio} fn": (1, ratio) for ratio in (0.25, 20)
}


@pytest.fixture(scope="module")
def dialog(user, mails_table):
    return trained(user, mails_table)


def opened(show, dialog, view="members"):
    """The page of a dialog, with its matrix."""
    page = show(f"#/d/{dialog}/{view}")
    expect(grid(page)).to_be_visible()
    return page


def previewed(page):
    """The previewed numbers of the cells, as a screen reader reads them; None where none is."""
    texts = page.locator("[data-cell]").all_text_contents()
    found = [re.search(r"preview ([\d,]+)", text) for text in texts]
    return [number(match[1]) if match else None for match in found]


def errors_of(counts):
    return counts[0][1] + counts[1][0]


def totals(page):
    """Total errors and rejected rows in the summary."""
    texts = page.get_by_role("region", name="Summary").locator("strong").all_text_contents()
    return [int(re.sub(r"\D", "", text)) for text in (texts[0], texts[2])]


def random_frontier(random):
    """Two curves that a request tries at step 1, and one that dominates them but is not tried."""
    curves = [{"name": "retune", "fp": [0], "fn": [0], "steps": [0, 2]}]
    for name in ("start", "own"):
        fp = np.unique(random.integers(0, 60, random.integers(1, 30)))
        fn = np.sort(random.choice(60, len(fp), replace=False))[::-1]
        curves.append({"name": name, "fp": fp.tolist(), "fn": fn.tolist(), "steps": [0, 1]})
    sizes = {"positive": "spam", "negative": "ham", "n_positive": 80, "n_negative": 100}
    return {"curves": curves, "best": [], "hull": [], **sizes}


def value(point, limits, costs):
    """The missed rows, whether a class is never predicted, the cost, and the errors."""
    fp, fn = point
    missed = sum(max(0, (fp if error == "fp" else fn) - most) for error, most in limits)
    return [missed, fp + 80 - fn in (0, 180), costs[0] * fp + costs[1] * fn, fp + fn]


def test_the_preview_of_limits_is_the_best_point_of_the_committee(show):
    random, cases, expected = np.random.default_rng(0), [], []
    for _ in range(300):
        kept, edited = (
            {str(error): float(random.integers(0, 60)) for error in random.permutation(some)}
            for some in (
                ["fp", "fn"][: random.integers(0, 3)],
                ["fn", "fp"][: random.integers(1, 3)],
            )
        )
        chosen, goal = (str(random.choice([*COSTS])) for _ in range(2))
        then = chosen if random.random() < 0.5 else None
        frontier = random_frontier(random)
        limits = [
            {"subject": f"{error}(1)", "error": error, "most": most} for error, most in kept.items()
        ]
        edits = {
            "0,1" if error == "fp" else "1,0": {"value": most, "percent": False}
            for error, most in edited.items()
        }
        step = {"number": 1, "limits": limits, "goal": goal if kept else None, "after": START}
        cases.append({"frontier": frontier, "step": step, "edits": edits, "then": then})
        if then is None and kept and max(edited.values()) <= 10:
            then = goal  # no cell is raised, so the earlier goal stays
        costs = COSTS[then] if then else ("fn" in edited, "fp" in edited)
        both = {**kept, **edited}.items()  # an edit replaces an earlier limit of its kind
        points = [
            point
            for curve in frontier["curves"][1:]
            for point in zip(curve["fp"], curve["fn"], strict=True)
        ]
        expected.append((both, costs, min(value(point, both, costs) for point in points)))
    outcomes = show("").evaluate(PREVIEW, cases)
    for (limits, costs, best), found in zip(expected, outcomes, strict=True):
        (right, fp, _), (fn, caught, _) = found["counts"]
        assert (right + fp, fn + caught) == (100, 80)
        assert value((fp, fn), limits, costs) == best
        assert found["reachable"] == (best[0] == 0)
    assert {found["reachable"] for found in outcomes} == {True, False}
    # A frontier that was computed before the step does not have its curves.
    later = {**cases[0], "step": {**cases[0]["step"], "number": 3}}
    assert show("").evaluate(PREVIEW, [later]) == [None]


def test_classes_are_named_as_in_the_sentences_of_the_library(show):
    labels = ["spam", "not spam", "Yes", "no", "the", "rejected", "x-ray", "a_b", "1a", "0", "it's"]
    labels += ["x-", "Ä", "predicted", "none", "", "v1.2", 0, 3, 2.5, True, False]
    script = """async (labels) => {
      const { nameClass } = await import(new URL('kit_format.js', location.href));
      return labels.map(nameClass);
    }"""
    assert show("").evaluate(script, labels) == [name_class(label) for label in labels]


def random_edits(random, after):
    """Edits of one or two cells, as the API takes them and as the page holds them."""
    for_api, for_page = [], {}
    for place in random.choice(4, random.integers(1, 3), replace=False).tolist():
        row, column = divmod(place, 2)
        percent = bool(random.random() < 0.5)
        most = 100 if percent else sum(after["counts"][row])
        to = round(most * random.random(), 1 if percent else None)
        true, predicted = (after["classes"][at] for at in (row, column))
        for_api.append(
            {"true": true, "predicted": predicted, "to": f"{to}%" if percent else int(to)}
        )
        for_page[f"{row},{column}"] = {"value": to, "percent": percent}
    return for_api, for_page


@pytest.fixture
def made(user, mails_table, request):
    """A dialog at a step with limits or with several scores, as the parameter says."""
    if request.param == "grown":
        found = trained(user, mails_table, "fp <= 20", kind="program", levels=2, members=None)
        name = f"/dialogs/{found}"
        assert user.finished(user.post(f"{name}/program/grow", {"levels": 1}))["state"] == "done"
    elif request.param == "before other scores":
        name = f"/dialogs/{trained(user, mails_table)}"
        user.asked(name, "fp <= 3", strategies=["retune"])
        user.ok(f"{name}/goto", {"step": 0})
    elif isinstance(request.param, tuple):
        own = uploaded(user, table(classes=request.param))
        name = f"/dialogs/{trained(user, own, f'fp({request.param[1]}) <= 20')}"
    else:
        name = f"/dialogs/{trained(user, mails_table, request.param)}"
    return name


@pytest.mark.parametrize(
    "made",
    [
        "fp <= 20",
        "before other scores",
        *(
            pytest.param(one, marks=pytest.mark.full)
            for one in (
                "recall >= 70%, rejected <= 0",
                "grown",
                ("False", "True"),
                ("1.0", "2.0"),
            )
        ),
    ],
    indirect=True,
)
def test_the_page_previews_what_the_server_does(show, user, made):
    dialog, frontier = user.ok(made), user.ok(f"{made}/frontier")
    last = dialog["steps"][dialog["position"]]
    random, cases, reads = np.random.default_rng(1), [], []
    for _ in range(25):
        for_api, edits = random_edits(random, last["after"])
        then = str(random.choice([*COSTS])) if random.random() < 0.5 else None
        read = user.ok(f"{made}/read", {"edits": for_api, "then": then, "keep": True})
        if read["error"] is None:  # two edits may contradict each other
            reads.append(read)
            cases.append({"frontier": frontier, "step": last, "edits": edits, "then": then})
    assert len(cases) > 5
    for found, read in zip(show("").evaluate(PREVIEW, cases), reads, strict=True):
        # Equally good points may be different ones.
        of_page, of_server = (
            (COSTS[read["goal"]][0] * fp + COSTS[read["goal"]][1] * fn, fp + fn)
            for (_, fp, _), (fn, _, _) in (found["counts"], read["after"]["counts"])
        )
        assert of_page == of_server
        assert found["reachable"] == read["met"]


@pytest.mark.core
def test_a_dragged_cell_shows_its_cost_before_any_request(show, dialog):
    page = show()
    held = []
    page.route("**/read", lambda route: held.append(route))
    with page.expect_response("**/frontier"):
        opened(show, dialog)
    before = matrix(page)
    box = cell(page, "ham", "spam").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    seen = []
    for far in range(20, 100, 20):
        page.mouse.move(box["x"] + 20, box["y"] + 20 + far)
        expect(cell(page, "spam", "ham")).to_contain_text("≈")
        seen.append(previewed(page)[3])
    page.mouse.up()
    assert all(later >= earlier for earlier, later in pairwise(seen))
    assert seen[-1] > before[1][0]
    assert totals(page)[0] > errors_of(before)
    expect(page.locator(".summary-rise")).to_contain_text("errors more")
    assert matrix(page) == before
    button(page, Name.CLEAR).click()
    expect(grid(page)).not_to_contain_text("≈")
    assert totals(page)[0] == errors_of(before)
    for route in held:
        route.abort()


def test_apply_reaches_the_preview(show, user, mails_table):
    page = opened(show, trained(user, mails_table))
    limit = str(matrix(page)[0][1] // 2)
    cell(page, "ham", "spam").click()
    page.keyboard.type(limit)
    expect(cell(page, "spam", "ham")).to_contain_text("preview")
    page.keyboard.press("Escape")
    expect(grid(page)).not_to_contain_text("preview")
    page.keyboard.type(limit)
    expect(ask_button(page)).to_have_attribute("aria-disabled", "false")
    expect(grid(page)).not_to_contain_text("≈")  # the server has answered
    tells(sentence(page), totals(page)[0])
    expected = previewed(page)
    page.keyboard.press("Control+Enter")
    at_step(page, 1)
    expect(grid(page)).not_to_contain_text("preview")
    for n, preview in zip(np.ravel(matrix(page)), expected, strict=True):
        assert preview in (None, n)
    assert expected[3] is not None
    button(page, "since start").click()
    page.reload()
    expect(button(page, "since start")).to_have_attribute("aria-pressed", "true")
    button(page, "since previous step").click()


def goals(page):
    """The choice of what to minimise within the limits."""
    return matrix_card(page).get_by_role("radiogroup")


def chosen_goal(page, goal):
    """Choose a goal, and return what the page sends to preview it."""
    with page.expect_response("**/read") as read:
        goals(page).get_by_role("radio", name=goal).check()
    assert read.value.json()["error"] is None
    expect(ask_button(page)).to_have_attribute("aria-disabled", "false")
    return read.value.request.post_data_json["then"]


def test_the_goal_within_the_limits_is_a_choice(show, user, mails_table):
    made = trained(user, mails_table)
    page = opened(show, made)
    expect(goals(page)).to_have_count(0)  # without a limit there is nothing to choose
    cell(page, "ham", "spam").click()
    page.keyboard.type("20")
    page.keyboard.press("Tab")
    expect(goals(page).get_by_role("radio", name="missed spam")).to_be_checked()
    assert chosen_goal(page, "errors") == "fewest errors"
    fewest = totals(page)[0]
    ask_button(page).click()
    at_step(page, 1)
    first = record(user, page)["steps"][1]
    assert (first["goal"], errors_of(first["after"]["counts"])) == ("fewest errors", fewest)
    expect(goals(page).get_by_role("radio", name="errors")).to_be_checked()
    # Another goal alone is a request for the limits of the step.
    assert chosen_goal(page, "missed spam") == "fewest fn"
    button(page, Name.CLEAR).click()
    expect(goals(page).get_by_role("radio", name="errors")).to_be_checked()
    chosen_goal(page, "missed spam")
    ask_button(page).click()
    at_step(page, 2)
    second = record(user, page)["steps"][2]
    assert (second["goal"], second["met"]) == ("fewest fn", True)
    assert second["limits"] == first["limits"]
    assert second["fn"] < first["fn"]
    # The same request again changes nothing, and the page says so.
    cell(page, "ham", "spam").click()
    page.keyboard.type("20")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".notice-info")).to_be_visible()
    assert len(record(user, page)["steps"]) == 3
    button(page, Name.CLOSE).click()
    assert axe(page, ".matrix-card") == []


def test_the_lowest_cost_has_the_ratio_of_the_costs_panel(show, user, mails_table):
    page = opened(show, trained(user, mails_table, "fn <= 40"), "costs")
    panel = page.get_by_role("region", name="Expected cost")
    goals(page).get_by_role("radio", name="cost").check()
    expect(ask_button(page)).to_have_attribute("aria-disabled", "true")  # the ratio is missing
    ratio = goals(page).get_by_role("spinbutton")
    with page.expect_response("**/read") as read:
        ratio.fill("3")
    assert read.value.request.post_data_json["then"] == "lowest cost of fp + 3 fn"
    field = panel.get_by_label(Name.MISS_COST)
    expect(field).to_have_value("3")
    field.fill("7.5")
    field.press("Enter")
    expect(ratio).to_have_value("7.5")
    expect(ask_button(page)).to_have_attribute("aria-disabled", "false")
    ask_button(page).click()
    at_step(page, 2)
    last = record(user, page)["steps"][2]
    assert (last["goal"], last["met"]) == ("lowest cost of fp + 7.5 fn", True)
    expect(goals(page).get_by_role("radio", name="cost")).to_be_checked()
    expect(ratio).to_have_value("7.5")


def test_raising_a_cell_is_previewed(show, user, mails_table):
    page = opened(show, trained(user, mails_table, "fp <= 3"))
    before = matrix(page)
    cell(page, "ham", "spam").click()
    page.keyboard.type(str(before[0][1] + 20))
    page.keyboard.press("Tab")
    expect(cell(page, "spam", "ham")).to_contain_text("→")
    assert previewed(page)[3] < before[1][0]


def test_a_limit_has_the_unit_of_the_view(show, dialog):
    page = opened(show, dialog)
    (correct, fp, _), _ = matrix(page)
    size = correct + fp
    for true, predicted, limit in [("ham", "spam", fp - 1), ("spam", "spam", 1)]:
        cell(page, true, predicted).click()
        page.keyboard.type(str(limit))
        page.keyboard.press("Tab")
    asks(page, fp - 1)
    requested = sentence(page).inner_text()
    shown = cell(page, "ham", "spam").locator(".cell-draft")
    button(page, Name.PERCENT).click()
    share = float(re.search(r"[\d.]+(?=%)", shown.inner_text())[0])
    assert fp - 1 <= share / 100 * size < fp
    button(page, "Counts").click()
    expect(shown).not_to_contain_text("%")
    expect(sentence(page)).to_have_text(requested, use_inner_text=True)
    button(page, Name.PERCENT).click()
    with page.expect_response("**/read") as read:
        cell(page, "ham", "spam").press("-")
    expect(shown).to_contain_text("%")
    sent = {edit["true"]: edit["to"] for edit in read.value.request.post_data_json["edits"]}
    assert sent["ham"].endswith("%")
    assert sent["spam"] == 1  # as it was typed, also where it is shown as a percentage
    requested = sentence(page).inner_text()
    button(page, "Counts").click()
    expect(shown).not_to_contain_text("%")
    button(page, Name.PERCENT).click()
    expect(sentence(page)).to_have_text(requested, use_inner_text=True)
    button(page, "Counts").click()
    button(page, Name.CLEAR).click()


def test_the_switch_governs_cells_and_totals(show, user, mails_table):
    made = trained(user, mails_table, "fp <= 5", "fp <= 2")
    page = opened(show, made)
    start, middle, last = (one["after"]["counts"] for one in user.ok(f"/dialogs/{made}")["steps"])
    for name, base in [("since start", start), ("since previous step", middle)]:
        button(page, name).click()
        rise = errors_of(last) - errors_of(base)
        tells(page.locator(".summary-difference").first, f"{rise:+}".replace("-", "−"))
        change = last[0][1] - base[0][1]
        expected = f"{change:+}".replace("-", "−") if change else ""
        found = cell(page, "ham", "spam").locator(".cell-difference").all_inner_texts()
        assert "".join(found).strip() == expected
    step(page, 0).click()
    at_step(page, 0)
    expect(button(page, "since start")).to_have_count(0)


@pytest.mark.full
def test_limits_that_no_model_meets_are_marked(show, dialog):
    page = opened(show, dialog)
    for true, predicted in (("ham", "spam"), ("spam", "ham")):
        cell(page, true, predicted).click()
        page.keyboard.type("0")
        cell(page, "ham", "ham").focus()
    expect(page.locator(".ask-unreachable")).to_be_visible()
    expect(cell(page, "spam", "ham")).to_contain_text("nearest")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert axe(page, ".matrix-card") == []
    page.emulate_media(color_scheme=None)


def test_rejecting_up_to_a_percentage_lowers_the_errors(show, user, mails_table):
    page = opened(show, trained(user, mails_table))
    before = matrix(page)
    field = matrix_card(page).get_by_role("spinbutton")
    matrix_card(page).get_by_role("slider").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect(field).to_have_value("5")
    expect(ask_button(page)).to_have_attribute("aria-disabled", "false")
    fewer, rejected = totals(page)
    assert fewer < errors_of(before)
    assert 0 < rejected <= 0.05 * np.sum(before)
    ask_button(page).click()
    at_step(page, 1)
    assert totals(page) == [fewer, rejected]
    last = record(user, page)["steps"][-1]
    assert (last["preference"], last["met"]) == ("rejected <= 5%", True)
    expect(field).to_have_value("5")
    field.fill("0")
    expect(cell(page, "ham", None)).to_contain_text("preview")
    assert totals(page)[1] == 0
    button(page, Name.CLEAR).click()
    expect(field).to_have_value("5")
    keep_box(page).click()
    expect(field).to_have_value("0")  # no limit allows to reject
    keep_box(page).click()
    expect(field).to_have_value("5")


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("fp <= 20", lambda _: 0),
        ("fp <= 20, rejected <= 5", lambda sizes: 5 / sum(sizes)),
        ("rejected <= 3.5%, fp <= 20", lambda _: 0.035),
        ("fp <= 20, rejected(spam) <= 4", lambda sizes: 4 / sum(sizes)),
        ("rejected(spam) <= 10%, rejected <= 8%", lambda sizes: sizes[1] // 10 / sum(sizes)),
    ],
)
def test_a_step_tells_how_many_rows_it_may_reject(user, dialog, words, most):
    made = user.asked(f"/dialogs/{dialog}", words, keep=False, at=0)
    sizes = [sum(row) for row in made["after"]["counts"]]
    assert most(sizes) - 1e-5 < made["reject_percent"] / 100 <= most(sizes)
    user.ok(f"/dialogs/{dialog}/goto", {"step": 0})


def test_an_earlier_preview_is_not_shown_for_later_edits(show, user):
    """With several classes only the server previews; it is slow here."""
    table_id = uploaded(user, table(200, classes=("ash", "birch", "cedar")))
    page = opened(show, trained(user, table_id, positive="birch"))
    before = matrix(page)
    cell(page, "ash", "birch").click()
    page.keyboard.type("0")
    expect(grid(page)).to_contain_text("→")
    held = []
    page.route("**/read", lambda route: held.append(route))
    cell(page, "cedar", "birch").click()
    page.keyboard.type(str(before[2][1] // 2))
    expect(grid(page)).not_to_contain_text("→")
    for route in held:
        route.abort()
    page.unroute("**/read")


@pytest.mark.full
def test_several_classes_are_previewed_by_the_server_and_mark_the_class_in_focus(show, user):
    table_id = uploaded(user, table(400, classes=("ash", "birch", "cedar", "2")))
    page = opened(show, trained(user, table_id, positive="birch"))
    before = matrix(page)
    order = record(user, page)["classes"]
    errors = before[order.index("cedar")][order.index("birch")]
    cell(page, "cedar", "birch").click()
    page.keyboard.type(str(errors // 2))
    expect(grid(page)).to_contain_text("→")
    assert any(number is not None for number in previewed(page))
    cell(page, "ash", "ash").focus()
    assert matrix(page) == before
    for role in ("columnheader", "rowheader"):
        expect(grid(page).get_by_role(role, name="birch")).to_have_class("matrix-focus")
    expect(grid(page).locator("th.matrix-focus")).to_have_count(2)


@pytest.mark.full
def test_the_matrix_stays_in_view_while_the_other_column_scrolls(show, dialog):
    page = opened(show, dialog)
    heading = page.get_by_role("heading", name=Name.MEMBERS).first
    page.set_viewport_size({"width": 1280, "height": 560})
    expect(heading).to_be_in_viewport()
    page.mouse.move(1000, 400)
    page.mouse.wheel(0, 3000)
    expect(heading).not_to_be_in_viewport()
    expect(cell(page, "ham", "ham")).to_be_in_viewport()
    page.set_viewport_size({"width": 1280, "height": 720})
