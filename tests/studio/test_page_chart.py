"""The chart of trade-offs, the cost map and the class in focus, held against the API."""

import csv
import io
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect
from tests.studio.browser import NARROW, overflow, until
from tests.studio.page_parts import (
    AWAY,
    LONG,
    REFUSED,
    Name,
    at_step,
    best_from,
    button,
    cell,
    grid,
    matrix,
    panel,
    reply,
    step,
    tab,
    table,
    tells,
    trained,
    uploaded,
)

DRAWN = "document.querySelector('.chart-tall canvas')"
OPTION = "echarts.getInstanceByDom(document.querySelector('.chart-tall .chart-place')).getOption()"


@pytest.fixture(scope="module")
def two_requests(user, mails_table):
    return trained(user, mails_table, "fp <= 2", "fn <= 12")


@pytest.fixture
def mails(user, two_requests):
    """A dialog over two classes, at the second of two requests."""
    user.ok(f"/dialogs/{two_requests}/goto", {"step": 2})
    return two_requests


@pytest.fixture(scope="module")
def numbers(user):
    """A dialog over four classes whose names are numbers."""
    data = table(rows=600, classes=("0", "1", "2", "10"))
    return trained(user, uploaded(user, data, name="numbers.csv"), certify=None)


def opened(show, dialog, place="frontier", **options):
    page = show(f"#/d/{dialog}/{place}", **options)
    expect(grid(page)).to_be_visible()
    if place == "frontier":
        until(page, DRAWN)
    return page


def view(page):
    """The ends of both axes, as the chart has them."""
    zooms = page.evaluate(f"{OPTION}.dataZoom.map((one) => [one.startValue, one.endValue])")
    return np.array(zooms)


def pixel(page, x, y):
    """Where a point of the plane is on the screen."""
    place = page.locator(".chart-tall .chart-place")
    place.scroll_into_view_if_needed()
    at = place.evaluate(
        "(place, point) => echarts.getInstanceByDom(place).convertToPixel('grid', point)",
        [int(x), int(y)],
    )
    box = place.bounding_box()
    return box["x"] + at[0], box["y"] + at[1]


def here(page):
    """The false positives and false negatives of the current step."""
    (_, fp, _), (fn, _, _) = matrix(page)
    return np.array([fp, fn])


def test_the_chart_opens_around_the_current_step_and_keeps_its_zoom(show, user, mails_table):
    dialog = trained(user, mails_table, "fp <= 12")
    page = opened(show, dialog)
    sizes = np.sum(matrix(page), axis=1)
    first, at = view(page), here(page)
    assert ((first[:, 0] <= at) & (at <= first[:, 1])).all()
    assert (first[:, 1] < sizes).any()  # not everything
    page.mouse.move(*pixel(page, *at))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    until(page, f"{OPTION}.dataZoom[0].endValue < {first[0, 1]}")
    chosen = view(page)
    assert ((first[:, 0] <= chosen[:, 0]) & (chosen[:, 1] <= first[:, 1])).all()
    tab(page, "Members")
    tab(page, "Frontier")
    until(page, DRAWN)
    assert view(page) == pytest.approx(chosen, abs=1)
    page.reload()
    until(page, DRAWN)
    assert view(page) == pytest.approx(chosen, abs=1)
    user.asked(f"/dialogs/{dialog}", f"fp <= {at[0] - 1}", keep=False)  # close to the current step
    page.reload()
    at_step(page, 2)
    until(page, DRAWN)
    assert view(page) == pytest.approx(chosen, abs=1)


def test_a_step_outside_of_the_view_is_brought_into_it(show, mails):
    page = opened(show, mails)
    far = np.array(matrix(page))[0, 1]
    for _ in range(4):
        button(page, "Zoom in").click()
    step(page, 1).click()
    at_step(page, 1)
    until(page, DRAWN)
    at = here(page)
    assert at[0] < far
    until(
        page,
        f"{OPTION}.dataZoom.every((one, axis) => one.startValue <= [{at[0]}, {at[1]}][axis] "
        f"&& [{at[0]}, {at[1]}][axis] <= one.endValue)",
    )
    button(page, "Everything").click()
    expect(button(page, "Everything")).to_have_attribute("aria-pressed", "true")
    sizes = np.sum(matrix(page), axis=1)
    assert view(page) == pytest.approx(np.stack([[0, 0], sizes], axis=1))
    step(page, 2).click()
    at_step(page, 2)


def test_the_wheel_alone_scrolls_the_page(show, mails):
    page = opened(show, mails)
    before = view(page)
    page.mouse.move(*pixel(page, *here(page)))
    page.mouse.wheel(0, 40)
    until(page, "scrollY > 0")
    assert view(page) == pytest.approx(before)


def swiped(page, *fingers):
    """Move fingers over the screen, each from a point to another, in ten steps."""
    hand = page.context.new_cdp_session(page)
    for part in range(11):
        points = [
            {"id": number, "x": x + part / 10 * (to_x - x), "y": y + part / 10 * (to_y - y)}
            for number, ((x, y), (to_x, to_y)) in enumerate(fingers)
        ]
        kind = "touchMove" if part else "touchStart"
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    hand.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_one_finger_scrolls_the_page_and_two_zoom_the_chart(open_page, studio_server, mails):
    page = open_page(f"{studio_server.url}#/d/{mails}/frontier", viewport=NARROW, has_touch=True)
    until(page, DRAWN)
    before, (x, y) = view(page), pixel(page, *here(page))
    start = page.evaluate("scrollY")
    swiped(page, ((x, y), (x, y + 150)))
    until(page, f"scrollY < {start} - 50")
    assert view(page) == pytest.approx(before)
    x, y = pixel(page, *here(page))
    swiped(page, ((x - 10, y), (x - 60, y)), ((x + 10, y), (x + 60, y)))
    until(page, f"{OPTION}.dataZoom[0].endValue < {before[0, 1]}")
    assert page.evaluate("visualViewport.scale") == 1  # the page is as it was


def passes(curve, x, y):
    """Whether the stairs of a curve pass through a point."""
    at = np.searchsorted(curve["fp"], x, "right") - 1
    above = curve["fn"][at - 1] if curve["fp"][at] == x and at else curve["fn"][at]
    return curve["fn"][at] <= y <= above


def test_curves_are_named_at_the_pointer_and_in_the_legend(show, user, mails):
    page = opened(show, mails)
    button(page, "Everything").click()
    curves = user.ok(f"/dialogs/{mails}/frontier")["curves"]
    legend = panel(page, "Frontier").locator(".legend")
    page.evaluate(
        """() => {
          const place = document.querySelector('.chart-tall .chart-place');
          echarts.getInstanceByDom(place).on('highlight', (one) => { window.hot = one.seriesId; });
        }"""
    )
    strategies = [at for at, one in enumerate(curves) if not one["name"].startswith("member ")]
    expect(legend.get_by_role("button")).to_have_text([curves[at]["name"] for at in strategies])
    for at in strategies:
        legend.get_by_role("button").nth(strategies.index(at)).focus()
        until(page, f"window.hot === 'curve-{at}'")
    page.get_by_text("As tables").click()
    listed = page.get_by_role("region", name="Curves").get_by_role("row")
    expect(listed).to_have_count(1 + len(curves))
    for row, one in zip(listed.all()[1:], curves, strict=True):
        fewest = min(map(sum, zip(one["fp"], one["fn"], strict=True)))
        name = one["name"].removeprefix("member ")
        expect(row.get_by_role("rowheader")).to_have_text(re.compile(rf"^{re.escape(name)}\b"))
        assert sum(int(n) for n in row.get_by_role("cell").all_inner_texts()) == fewest
    page.get_by_text("As tables").click()
    best = best_from(user.ok(f"/dialogs/{mails}/frontier"), 2)
    points = [point for one in curves for point in zip(one["fp"], one["fn"], strict=True)]
    point = max(points, key=lambda at: min(abs(fp - at[0]) + abs(fn - at[1]) for fp, fn in best))
    page.mouse.move(*pixel(page, *point))
    tip = page.locator(".chart-tip")
    expect(tip).to_be_visible()
    assert any(
        one["name"].removeprefix("member ") in tip.inner_text()
        for one in curves
        if passes(one, *point)
    )
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_the_crosshair_shows_the_chosen_point_without_drawing_the_chart(show, user, mails):
    page = opened(show, mails)
    best = best_from(user.ok(f"/dialogs/{mails}/frontier"), 2)
    slider = panel(page, "Frontier").get_by_role("slider")
    page.evaluate(
        """async () => {
          const place = document.querySelector('.chart-tall .chart-place');
          echarts.getInstanceByDom(place).on('rendered', () => { window.drawn += 1; });
          do {  // until what opened the page is drawn
            window.drawn = 0;
            await new Promise((done) => setTimeout(done, 300));
          } while (window.drawn);
        }"""
    )
    texts = page.locator(".chart-over b")
    assert texts.all_inner_texts() == [str(n) for n in here(page)]
    slider.focus()
    page.keyboard.press("ArrowRight")
    point = best[int(slider.input_value())]
    assert texts.all_inner_texts() == [str(n) for n in point]
    x, y = pixel(page, *point)
    upright, flat = (one.bounding_box() for one in page.locator(".cross-line").all())
    assert upright["x"] == pytest.approx(x, abs=2)
    assert flat["y"] == pytest.approx(y, abs=2)
    assert page.evaluate("window.drawn") == 0


@pytest.mark.core
def test_apply_gives_the_point_that_the_form_names(show, user, mails_table):
    page = opened(show, trained(user, mails_table))
    shown = panel(page, "Frontier")
    slider, limit = shown.get_by_role("slider"), shown.get_by_label("At most")
    for number, key in enumerate(["PageDown", "End"], 1):
        slider.focus()
        page.keyboard.press(key)
        point = [int(text) for text in page.locator(".chart-over b").all_inner_texts()]
        expect(limit).to_have_value(str(point[0]))
        tells(shown.locator(".ask-result strong"), point[1])
        button(shown, Name.ASK_POINT).click()
        at_step(page, number)
        assert here(page).tolist() == point


def test_an_edited_cell_moves_the_crosshair(show, mails):
    page = opened(show, mails)
    step(page, 0).click()
    at_step(page, 0)
    over = page.locator(".chart-over")
    before = over.text_content().strip()
    (_, fp, _), _ = matrix(page)
    cell(page, "ham", "spam").click()
    page.keyboard.type(str(fp // 2))
    expect(over).to_have_attribute("data-kind", "preview")
    expect(over).not_to_have_text(before)
    reached = int(re.search(r"\d+", over.locator("b").first.inner_text())[0])
    assert reached <= fp // 2
    left = over.locator(".cross-line").first.bounding_box()["x"]
    assert left == pytest.approx(pixel(page, reached, 0)[0], abs=2)
    page.keyboard.press("Escape")
    expect(over).to_have_text(before)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_chart_is_saved_as_a_picture_and_as_numbers(show, user, mails, theme):
    page = opened(show, mails)
    page.emulate_media(color_scheme=theme)
    shown = panel(page, "Frontier")
    files = {}
    for kind in ("PNG", "SVG", "CSV"):
        with page.expect_download() as download:
            button(shown, f"Save the chart as {kind}").click()
        assert download.value.suggested_filename.endswith(f".{kind.lower()}")
        files[kind] = download.value.path().read_bytes()
    page.emulate_media(color_scheme="light")
    assert files["PNG"].startswith(b"\x89PNG")
    drawing = ElementTree.fromstring(files["SVG"])  # noqa: S314 - made by the page of this test
    words = " ".join(drawing.itertext())
    assert "ham predicted spam" in words
    assert "spam predicted ham" in words
    frontier, record = user.ok(f"/dialogs/{mails}/frontier"), user.ok(f"/dialogs/{mails}")
    rows = list(csv.DictReader(io.StringIO(files["CSV"].decode())))
    found = {"strategy": [], "best": [], "step": []}
    for row in rows:
        point = int(row["false positives"]), int(row["false negatives"])
        found[row["kind"].split()[0]].append(point)
    assert found["strategy"] == [
        point
        for curve in frontier["curves"]
        for point in zip(curve["fp"], curve["fn"], strict=True)
    ]
    assert found["best"] == best_from(frontier, 2)
    assert found["step"] == [(one["fp"], one["fn"]) for one in record["steps"]]
    assert {row["name"] for row in rows} >= {"fp <= 2", "fn <= 12", "logistic alone"}


def test_a_chart_that_could_not_be_loaded_comes_when_the_server_is_back(show, mails):
    page = show(f"#/d/{mails}/members", allow=(AWAY, "net::ERR_FAILED"), fresh=True)
    expect(panel(page, "Members")).to_be_visible()
    at_step(page, 2)
    page.route("**/vendor/echarts.js", lambda route: route.abort())
    page.reload()
    shown = tab(page, "Frontier")
    expect(shown.locator(".notice-warn")).to_be_visible()
    page.route("**/undo", lambda route: route.abort())
    button(page, Name.UNDO).click()  # notices that the server is away
    page.unroute_all()
    expect(shown.locator(".chart-tall canvas")).to_be_visible(timeout=LONG)
    expect(shown.locator(".notice-warn")).to_have_count(0)


def test_any_class_can_be_in_focus(show, user, numbers):
    page = opened(show, numbers)
    counts = np.array(matrix(page))[:, :-1]
    shown = panel(page, "Frontier")
    focus = shown.get_by_label("Class in focus")
    for place, label in enumerate(["0", "1", "2", "10"]):
        focus.select_option(str(place))
        fp = counts[:, place].sum() - counts[place, place]
        fn = counts[place].sum() - counts[place, place]
        image = page.get_by_role("img", name=re.compile(rf"{re.escape(repr(label))}.*Step 0\b"))
        expect(image).to_have_accessible_name(re.compile(rf"\b{fp} and {fn}\."))
        expect(page.locator(".chart-over b")).to_have_text([str(fp), str(fn)])
        frontier = user.ok(f"/dialogs/{numbers}/frontier", params={"positive": label})
        best = best_from(frontier, 0)
        expect(shown.get_by_role("slider")).to_have_attribute("max", str(len(best) - 1))
    limit = shown.get_by_label("At most")
    limit.fill(str(fp // 2))
    button(shown, Name.ASK_POINT).click()
    at_step(page, 1)
    expect(reply(page)).to_contain_text(re.compile(r"fp\(\D*10\D*\) <= " + str(fp // 2)))
    after = np.array(matrix(page))
    assert after[:3, 3].sum() <= fp // 2
    costs = tab(page, "Costs")
    expect(costs.get_by_label("Class in focus")).to_have_value("3")  # as in the frontier
    sizes = after.sum(axis=1)
    tells(costs.locator(".range-pair").nth(1), f"{sizes[3] / sizes.sum():.1%}")
    costs.get_by_label("Class in focus").select_option("0")
    tells(costs.locator(".range-pair").nth(1), f"{sizes[0] / sizes.sum():.1%}")
    won = costs.get_by_role("region", name="Winners").get_by_role("row")
    most = int(won.nth(1).get_by_role("cell").nth(1).inner_text())
    won.nth(1).get_by_role("button").click()
    at_step(page, 2)
    assert np.array(matrix(page))[1:, 0].sum() <= most


def test_a_class_whose_curves_do_not_arrive_shows_no_other_chart(show, numbers):
    page = opened(show, numbers, allow=(REFUSED.format(500),))
    shown = panel(page, "Frontier")
    focus = shown.get_by_label("Class in focus")
    answer = {"status": 500, "json": {"error": "broken"}}
    page.route("**/frontier?positive=2", lambda route: route.fulfill(**answer))
    focus.select_option("2")
    expect(shown.get_by_role("alert")).to_be_visible()
    expect(shown.locator(".chart-tall")).to_have_count(0)
    expect(focus).to_have_value("2")
    page.unroute_all()
    button(shown, "Try again").click()
    expect(page.get_by_role("img", name=re.compile("'2'"))).to_be_visible()


def test_two_classes_have_no_class_to_choose(show, mails):
    page = opened(show, mails)
    expect(page.get_by_label("Class in focus")).to_have_count(0)


def test_the_expected_cost_is_that_of_counting_rows(show, user, mails):
    page = opened(show, mails, "costs")
    shown = panel(page, "Costs").get_by_role("region", name="Expected cost")
    counts = np.array(matrix(page))[:, :2]
    # The ranges of the map end at a cost of 10; 150 is more than a field takes.
    for cost, percent in ((1, 40), (5, 30), (0.3, 50), (50, 90), (70, 2), (150, 2)):
        for label, value in (("Cost of a false negative", cost), ("Proportion of spam", percent)):
            field = shown.get_by_role("textbox", name=label)
            field.fill(str(value))
            field.press("Enter")
        cost = min(cost, 100)
        expect(shown.locator("#point-cost")).to_have_value(str(cost))
        # Rows of which `percent` are spam: each true class has its rates of the tuning set.
        rows = np.array([100 - percent, percent])[:, None] * counts / counts.sum(1, keepdims=True)
        expected = 1000 * (rows[0, 1] + cost * rows[1, 0]) / rows.sum()
        points = [
            (1 - percent / 100) * fp / counts[0].sum() + percent / 100 * cost * fn / counts[1].sum()
            for curve in user.ok(f"/dialogs/{mails}/frontier")["curves"]
            if not curve["name"].startswith("member ")  # which a request does not give
            for fp, fn in zip(curve["fp"], curve["fn"], strict=True)
        ]
        expect(shown.locator("dd").first).to_have_text(re.compile(rf"^\s*{expected:,.1f}"))
        expect(shown.locator("dd").last).to_have_text(re.compile(rf"^\s*{1000 * min(points):,.1f}"))


def test_few_winners_cost_little_more_than_all(show, user, mails):
    page = opened(show, mails, "costs")
    frontier = user.ok(f"/dialogs/{mails}/frontier")
    sizes = {key: frontier[key] for key in ("n_positive", "n_negative")}
    wide = {"cost_low": 0.01, "cost_high": 100}
    winners = user.ok(f"/dialogs/{mails}/winners", params=wide)["winners"]
    ends = winners[0]["low"], winners[-1]["high"]
    slopes = np.geomspace(*ends, 500)[:, None]

    def least(chosen):
        fp, fn = (np.array([one[key] for one in chosen]) for key in ("fp", "fn"))
        return (fp / sizes["n_negative"] + slopes * fn / sizes["n_positive"]).min(axis=1)

    for most in (1, 2, 4, len(winners)):
        few = page.evaluate(
            """async ([winners, sizes, most]) => {
              const { fewWinners } = await import('./costs_map.js');
              return fewWinners(winners, sizes, most);
            }""",
            [winners, sizes, most],
        )
        assert len(few["winners"]) == min(most, len(winners))
        assert (few["winners"][0]["low"], few["winners"][-1]["high"]) == ends
        assert all(a["high"] == b["low"] for a, b in pairwise(few["winners"]))
        ratio = least(few["winners"]) / least(winners) - 1
        assert ratio.max() <= few["excess"] + 1e-9
        assert ratio.max() == pytest.approx(few["excess"], abs=0.02)


def test_a_step_is_marked_inside_its_part_of_the_map(show, mails):
    """Also where the part is a small corner, far from the wanted height."""
    page = opened(show, mails, "costs")
    places = page.evaluate(
        """async ([corners, heights]) => {
          const { placeNear } = await import('./costs_map.js');
          return heights.map((wanted) => placeNear(corners, wanted));
        }""",
        [[[0, 10], [40, 10], [0, 30]], [-500, 12, 20, 150]],
    )
    assert len(places) == 4
    for place in places:
        assert place["x"] > 0
        assert place["y"] > 10
        assert place["x"] / 40 + (place["y"] - 10) / 20 < 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_neighbours_in_the_map_differ_in_lightness(show, mails, theme):
    page = opened(show, mails, "costs")
    before = page.evaluate("document.documentElement.dataset.theme")
    page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
    colours = page.evaluate(
        """() => [...Array(8).keys()].map((place) =>
          getComputedStyle(document.documentElement).getPropertyValue(`--map-${place}`).trim())"""
    )
    page.evaluate(f"document.documentElement.dataset.theme = {before!r}")
    rgb = np.array([[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in colours]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lightness = 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16  # CIE L*
    assert np.abs(lightness - np.roll(lightness, 1)).min() > 20


def test_the_nearest_threshold_and_a_click_that_chooses_cost_and_prior(show, mails):
    page = opened(show, mails, "costs")
    shown = panel(page, "Costs")
    area = shown.locator(".map-area")
    expect(area.locator(".map-here")).to_be_visible()
    expect(area.locator(".map-step-number")).to_have_text("2")
    shown.locator("#point-cost").wait_for()
    box = area.bounding_box()
    area.click(position={"x": box["width"] - 20, "y": 20})
    cost, prior = (
        float(shown.locator(f"#point-{name}").input_value()) for name in ("cost", "prior")
    )
    assert 5 < cost <= 10
    assert prior > 40
    before = shown.locator("dd").first.inner_text()
    area.click(position={"x": 80, "y": box["height"] - 60})
    expect(shown.locator("dd").first).not_to_have_text(before)


@pytest.mark.parametrize("place", ["frontier", "costs"])
def test_nothing_is_cut_off_on_a_phone(open_page, studio_server, numbers, place):
    page = open_page(f"{studio_server.url}#/d/{numbers}/{place}", viewport=NARROW)
    expect(page.get_by_label("Class in focus")).to_be_visible()
    expect(page.locator(".chart-tall canvas, .map-area").first).to_be_visible()
    assert overflow(page) == []
