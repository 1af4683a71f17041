"""A program in the page: its nodes and routes, one edited, all or the weak ones walked, grown."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect
from tests.studio.browser import until
from tests.studio.page_parts import (
    CERTIFY,
    Name,
    announced,
    ask_button,
    asks,
    at_step,
    button,
    cell,
    listen,
    node_field,
    panel,
    record,
    reply,
    step,
    tab,
    table,
    tells,
    to,
    trained,
    uploaded,
    whole,
)

NO_VOTES = "no votes yet"  # the root, as its name has it
ROUTES = ("fp", "fn")


@pytest.fixture
def program(show, user, mails_table):
    """A page with a program of three levels, just trained."""
    dialog = trained(user, mails_table, kind="program", levels=3, members=None)
    page = show(f"#/d/{dialog}")
    expect(graph(page)).to_be_visible()
    return page


def graph(page):
    return page.locator(".graph").get_by_role("group")


def node(page, votes):
    """A node of the drawing by its votes."""
    layer = sum(int(n) for n in re.findall(r"\d+", votes))
    return graph(page).get_by_role("button", name=re.compile(f"^Layer {layer}, {votes};"))


def root(page):
    """The node where all samples begin."""
    return node(page, NO_VOTES)


def named(program, numbers):
    """ "2 ham, 1 spam"."""
    labelled = zip(numbers, program["classes"], strict=True)
    return ", ".join(f"{n} {label}" for n, label in labelled)


def votes_of(program, one):
    """The votes that lead to a node, as the page shows them."""
    labelled = zip(one["votes"], program["classes"], strict=True)
    return ", ".join(f"{n} {label}" for n, label in labelled if n) or NO_VOTES


def card(page):
    """What is shown of the chosen node."""
    return page.get_by_role("region", name="Selected node")


def levels(page, n, nodes=None):
    """The panel says how many levels the program has, and how many nodes."""
    counts = rf"^\D*{n}\b" if nodes is None else rf"^\D*{n}\D+{nodes}\b"
    expect(panel(page, "Program").locator(".panel-head p")).to_have_text(re.compile(counts))


def weak(page, n):
    """The panel says how many nodes are weak."""
    expect(page.locator(".threshold .muted")).to_have_text(re.compile(rf"^{n}\b"))


def known(user, page):
    """The program as the server has it."""
    return user.ok(f"/dialogs/{record(user, page)['id']}/program")


def read(page):
    """What is asked of the chosen node, before it is sent."""
    return card(page).locator("form > p")


def tuned(page):
    """The mark of a tuned node on the root."""
    return root(page).locator(".graph-tuned")


def at_rest(page):
    """The graph is the newest."""
    expect(panel(page, "Program").locator("[aria-busy=true]")).to_have_count(0)


@pytest.mark.full
def test_nodes_are_shown_and_chosen_by_mouse(program, user):
    found = known(user, program)
    expect(graph(program).get_by_role("button")).to_have_count(len(found["nodes"]))
    levels(program, 3, len(found["nodes"]))
    expect(card(program)).to_have_count(0)
    for one in found["nodes"]:
        drawn = node(program, votes_of(found, one))
        assert named(found, one["sizes"]) in drawn.get_attribute("aria-label")
        expect(drawn.locator(".graph-weak")).to_have_count(int(one["weak"]))
        drawn.click()
        expect(drawn).to_have_attribute("aria-pressed", "true")
        heading = card(program).locator("h3")
        if one["layer"]:
            expect(heading).to_contain_text(votes_of(found, one))
            tells(heading, one["layer"])
        else:
            expect(heading).to_have_text(Name.ROOT)
        fields = card(program).get_by_role("textbox")
        expect(fields).to_have_count(4 if one["kind"] == "learner" and all(one["sizes"]) else 0)


def test_a_node_is_edited_by_mouse(program, user):
    counts = known(user, program)["nodes"][0]["confusion"]["counts"][0]
    most, total = counts[1] // 2, sum(counts)
    root(program).click()
    field = node_field(card(program), "ham", "spam")
    field.click()
    program.keyboard.type("x")
    expect(card(program).locator(".bad")).to_be_visible()
    expect(button(program, Name.ASK_NODE)).to_be_disabled()
    program.get_by_role("button", name="Undo edits").click()
    field.click()
    program.keyboard.type(str(most))
    tells(read(program), most, total, "ham", "spam")
    button(program, Name.ASK_NODE).click()
    at_step(program, 1)
    at_rest(program)
    expect(tuned(program)).to_have_count(1)
    expect(card(program).locator(".tag-good")).to_contain_text(f"fp <= {most}")
    found = known(user, program)["nodes"][0]
    assert found["confusion"]["counts"][0][1] <= most
    expect(reply(program)).to_be_visible()
    assert record(user, program)["steps"][1]["strategy"] == "nodes"
    first, last = (one["after"]["counts"] for one in record(user, program)["steps"])
    compared = user.ok(f"/dialogs/{record(user, program)['id']}/compare?first=0&second=1")
    words = panel(program, "Program").locator(".notice", has_text=Name.ROOT)
    tells(words, counts[1], found["confusion"]["counts"][0][1])  # at the node
    tells(words, first[0][1], last[0][1], first[1][0], last[1][0], compared["n_changed"])
    button(program, Name.UNDO).click()
    at_step(program, 0)
    at_rest(program)
    expect(tuned(program)).to_have_count(0)
    expect(words).to_have_count(0)


@pytest.mark.core
def test_the_routes_of_errors_are_shown(program, user):
    """As wide as many errors take them; their numbers are in the names, for screen readers."""
    found, (fp, fn) = known(user, program), (record(user, program)["steps"][0][e] for e in ROUTES)

    def drawn(row):
        """The widths of the edges by the errors of a true class, and the texts of the nodes."""
        errors = [edge["outcomes"][row][1 - row] for edge in found["edges"]]
        edges = graph(program).locator("path.graph-edge")
        expect(edges).to_have_count(len(errors))
        widths = edges.evaluate_all(
            "(all) => all.map((one) => parseFloat(one.style.strokeWidth || 0))"
        )
        assert [width > 0 for width in widths] == [n > 0 for n in errors]
        order = sorted(range(len(errors)), key=lambda at: errors[at])
        assert all(widths[a] <= widths[b] for a, b in pairwise(order))
        for one in found["nodes"]:
            name = node(program, votes_of(found, one)).get_attribute("aria-label")
            assert f"{one['outcomes'][row][1 - row]} of {(fp, fn)[row]} false" in name

    shown = graph(program).get_by_role("button").all_text_contents()
    button(program, "False positives", exact=True).click()
    expect(button(program, "False positives", exact=True)).to_have_attribute("aria-pressed", "true")
    drawn(0)  # ham predicted spam
    button(program, "False negatives", exact=True).click()
    drawn(1)
    button(program, "All rows", exact=True).click()
    assert graph(program).get_by_role("button").all_text_contents() == shown
    reply = user.asked(f"/dialogs/{record(user, program)['id']}", "fp <= 0, rejected <= 50%")
    assert sum(row[-1] for row in reply["after"]["counts"]) > 0
    program.reload()
    at_step(program, 1)
    expect(graph(program)).to_be_visible()
    expect(button(program, "False positives", exact=True)).to_have_count(0)  # not those of the step


@pytest.mark.full
def test_all_nodes_are_walked_by_mouse(program, user):
    found = known(user, program)
    learners = [one for one in found["nodes"] if one["kind"] == "learner" and all(one["sizes"])]
    program.locator(".threshold").get_by_role("slider").fill("0")
    weak(program, n_weak(user.ok(f"/dialogs/{record(user, program)['id']}/program?threshold=0")))
    at_rest(program)
    button(program, Name.TUNE_ALL).click()
    for number in range(1, len(learners) + 1):
        at_weak_node(program, number, len(learners))
        expect(card(program).get_by_role("textbox")).to_have_count(4)
        button(program, Name.SKIP).click()
    expect(walk_on(program)).not_to_contain_text(re.compile(r"\d"))


@pytest.mark.full
def test_levels_are_grown_by_mouse(program, user):
    button(program, Name.GROW).click()
    at_step(program, 1)
    at_rest(program)
    levels(program, 5)
    expect(reply(program)).to_be_visible()
    assert record(user, program)["steps"][1]["strategy"] == "grow"
    step(program, 0).click()
    at_step(program, 0)
    at_rest(program)
    levels(program, 3)
    cell(program, "ham", "spam").click()
    program.keyboard.type("5")
    asks(program, 5, "ham", "spam")
    ask_button(program).click()
    at_step(program, 2)
    button(program, Name.GROW).click()
    at_step(program, 3)
    at_rest(program)
    levels(program, 5)
    program.reload()
    at_step(program, 3)
    levels(program, 5)


def walk_on(page):
    """Where the walk over the weak nodes stands."""
    return page.locator(".walk strong")


def at_weak_node(page, number, of=r"\d+"):
    """The walk is at a weak node."""
    expect(walk_on(page)).to_contain_text(re.compile(rf"\b{number}\D+{of}\b"))


def n_weak(program):
    return sum(node["weak"] for node in program["nodes"])


@pytest.mark.full
def test_the_weak_ones_are_walked_by_mouse(program, user):
    dialog = record(user, program)["id"]
    few = n_weak(user.ok(f"/dialogs/{dialog}/program?threshold=0"))
    many = n_weak(known(user, program))
    assert few < many > 2
    weak(program, many)
    threshold = program.locator(".threshold").get_by_role("slider")
    threshold.fill("0")
    weak(program, few)
    threshold.fill("0.3")
    weak(program, many)
    at_rest(program)
    button(program, Name.TUNE_WEAK).click()
    at_weak_node(program, 1, many)
    expect(card(program).get_by_role("heading", name=Name.ROOT)).to_be_visible()
    button(program, Name.SKIP).click()
    at_weak_node(program, 2, many)
    field = card(program).get_by_role("textbox").first
    now = int(field.input_value())
    field.fill(str(now + 1))
    button(program, Name.ASK_NODE).click()
    at_step(program, 1)
    at_rest(program)
    at_weak_node(program, 3)
    while button(program, Name.SKIP).is_visible():
        at = walk_on(program).inner_text()
        button(program, Name.SKIP).click()
        expect(walk_on(program)).not_to_have_text(at)
    expect(walk_on(program)).not_to_contain_text(re.compile(r"\d"))  # none is left
    program.get_by_role("button", name="Done").click()
    expect(walk_on(program)).to_have_count(0)


@pytest.mark.full
def test_a_program_by_keyboard(program, user):
    """Nodes by arrows, one edited, the weak ones walked, a level grown; no mouse is used."""
    found = known(user, program)
    program.evaluate("addEventListener('pointerdown', () => { window.pointed = true; }, true)")
    to(program, root(program))
    program.keyboard.press("ArrowDown")
    below = program.evaluate("document.activeElement.getAttribute('aria-label')")
    assert below.startswith("Layer 1, ")
    program.keyboard.press("Home")
    expect(root(program)).to_be_focused()
    program.keyboard.press("Enter")
    expect(root(program)).to_have_attribute("aria-pressed", "true")
    field = node_field(card(program), "ham", "spam")
    to(program, field)
    most = found["nodes"][0]["confusion"]["counts"][0][1] // 2
    program.keyboard.type(str(most))
    tells(read(program), most, "ham", "spam")
    listen(program)
    program.keyboard.press("Enter")
    at_step(program, 1)
    at_rest(program)
    until(program, "window.announced.length > 1")
    *_, saved, last = announced(program)
    assert whole(1).search(saved)  # the step
    assert Name.ROOT in last  # the node
    expect(tuned(program)).to_have_count(1)
    to(program, button(program, Name.UNDO), "Shift+Tab")
    program.keyboard.press("Enter")
    at_step(program, 0)
    at_rest(program)
    to(program, button(program, Name.TUNE_WEAK))
    program.keyboard.press("Enter")
    at_weak_node(program, 1)
    to(program, button(program, Name.SKIP))
    program.keyboard.press("Enter")
    at_weak_node(program, 2)
    until(program, "document.activeElement !== document.body")  # in the next frame
    to(program, button(program, Name.STOP), "Shift+Tab")
    program.keyboard.press("Enter")
    expect(walk_on(program)).to_have_count(0)
    to(program, button(program, Name.GROW), "Shift+Tab")
    program.keyboard.press("Enter")
    at_step(program, 2)
    at_rest(program)
    expect(button(program, Name.GROW)).to_be_focused()
    levels(program, 5)
    assert not program.evaluate("window.pointed")


@pytest.mark.full
def test_a_program_of_three_classes(show, user):
    """Its nodes are drawn and tuned too; there is no positive class."""
    three = user.table("balance")
    dialog = trained(user, three, target="target", kind="program", levels=2, members=None)
    page = show(f"#/d/{dialog}")
    found = known(user, page)
    expect(graph(page).get_by_role("button")).to_have_count(len(found["nodes"]))
    root(page).click()
    expect(card(page).get_by_role("textbox")).to_have_count(9)
    counts = found["nodes"][0]["confusion"]["counts"]
    field = node_field(card(page), "L", "R")
    place = [found["classes"].index(label) for label in ("L", "R")]
    most = counts[place[0]][place[1]] // 2
    field.fill(str(most))
    button(page, Name.ASK_NODE).click()
    at_step(page, 1)
    at_rest(page)
    assert known(user, page)["nodes"][0]["confusion"]["counts"][place[0]][place[1]] <= most


def test_a_program_of_booleans(show, user):
    """They are spelt as the server spells them, wherever a class is named, and can be tuned."""
    data = table(rows=200, classes=("False", "True"))
    options = {"kind": "program", "levels": 1, "members": None}
    page = show(f"#/d/{trained(user, uploaded(user, data), 'fp <= 40%', **options)}")
    heads = tab(page, CERTIFY).get_by_role("rowheader")
    # what the certification set supports, and the two matrices of the expected certificate
    expect(heads).to_have_text([re.compile(r"\bFalse$"), re.compile(r"\bTrue$")] * 3)
    tab(page, "Program")
    found = known(user, page)
    assert found["classes"] == [False, True]
    for text in (re.compile("mostly False"), re.compile("votes for True")):
        expect(panel(page, "Program").get_by_text(text)).to_be_visible()
    root(page).click()
    heads = card(page).get_by_role("columnheader"), card(page).get_by_role("rowheader")
    for head in heads:
        expect(head).to_have_text([re.compile(r"\bFalse$"), re.compile(r"\bTrue$")])
    expect(card(page).locator("dt")).to_have_text(["False", "True"])
    right = found["nodes"][0]["confusion"]["counts"][0][0]
    node_field(card(page), "False", "False").fill(str(right + 1))
    button(page, Name.ASK_NODE).click()
    at_step(page, 2)
    at_rest(page)
    assert known(user, page)["nodes"][0]["confusion"]["counts"][0][0] > right


def test_growing_avoids_ties(program, show, user, mails_table):
    """Of two classes an odd number of votes cannot tie, so the number of levels stays odd."""
    grow = button(program, Name.GROW)
    odd = grow.inner_text()
    grow.click()
    at_step(program, 1)
    at_rest(program)
    levels(program, 5)
    assert grow.inner_text() == odd
    note = panel(program, "Program").locator(".panel-head p")
    before = note.inner_text()
    even = trained(user, mails_table, kind="program", levels=2, members=None)
    page = show(f"#/d/{even}")
    levels(page, 2)
    assert note.inner_text().split(".")[-2] != before.split(".")[-2]
    assert grow.inner_text() != odd
    grow.click()
    at_step(page, 1)
    at_rest(page)
    levels(page, 3)


def test_a_program_shows_rows_and_no_members(program, user):
    """It is no committee: nothing is weighted, and no member disagrees with another."""
    expect(program.get_by_role("tab", name=Name.MEMBERS)).to_have_count(0)
    shown = tab(program, "Rows")
    rows = shown.get_by_role("region", name="Rows in the cell").get_by_role("row")
    n = record(user, program)["steps"][0]["fp"]
    expect(rows).to_have_count(1 + min(n, 25))
    expect(shown.get_by_role("img")).to_be_visible()  # the margins
    expect(shown.get_by_role("region", name=Name.MEMBERS, exact=True)).to_have_count(0)
    expect(shown.get_by_role("heading", name=Name.DISAGREEMENT)).to_have_count(0)
