"""A program in the page: its nodes, one of them edited, the weak ones walked, a level grown."""

import re

import pytest
from playwright.sync_api import expect
from tests.studio.page_parts import (
    announced,
    at_step,
    cell,
    listen,
    panel,
    record,
    reply,
    sentence,
    step,
    to,
    trained,
)


@pytest.fixture
def program(show, user, mails_table):
    """A page with a program of three levels, just trained."""
    dialog = trained(user, mails_table, kind="program", levels=3, members=None)
    page = show(f"#/d/{dialog}")
    expect(page.get_by_role("heading", name="The program")).to_be_visible()
    return page


def graph(page):
    return page.get_by_role("group", name=re.compile("^The program, layer by layer"))


def node(page, votes):
    """A node of the drawing by its votes."""
    layer = sum(int(n) for n in re.findall(r"\d+", votes))
    return graph(page).get_by_role("button", name=re.compile(f"^Layer {layer}, {votes};"))


def named(program, numbers):
    """ "2 ham, 1 spam"."""
    told = zip(numbers, program["classes"], strict=True)
    return ", ".join(f"{n} {label}" for n, label in told)


def votes_of(program, one):
    """The votes that lead to a node, as they are told."""
    told = zip(one["votes"], program["classes"], strict=True)
    return ", ".join(f"{n} {label}" for n, label in told if n) or "no votes yet"


def card(page):
    """What is told of the node that is chosen."""
    return page.get_by_role("region", name="The node that is chosen")


def known(user, page):
    """The program as the server has it."""
    return user.ok(f"/dialogs/{record(user, page)['id']}/program")


def at_rest(page):
    """The graph is the newest."""
    expect(panel(page, "Program").locator("[aria-busy=true]")).to_have_count(0)


def test_nodes_are_told_and_chosen_by_mouse(program, user):
    found = known(user, program)
    expect(graph(program).get_by_role("button")).to_have_count(len(found["nodes"]))
    expect(panel(program, "Program")).to_contain_text(f"3 levels, {len(found['nodes'])} nodes")
    expect(program.get_by_text("Choose a node to see its matrix")).to_be_visible()
    for one in found["nodes"]:
        drawn = node(program, votes_of(found, one))
        label = drawn.get_attribute("aria-label")
        assert f"{named(found, one['sizes'])} come here" in label
        assert ("; weak" in label) == one["weak"]
        drawn.click()
        expect(drawn).to_have_attribute("aria-pressed", "true")
        heading = f"Layer {one['layer']}: {votes_of(found, one)}" if one["layer"] else "The root"
        expect(card(program).get_by_role("heading", name=heading)).to_be_visible()
        fields = card(program).get_by_role("textbox")
        expect(fields).to_have_count(4 if one["kind"] == "learner" and all(one["sizes"]) else 0)


def test_a_node_is_edited_by_mouse(program, user):
    root = known(user, program)["nodes"][0]
    (_, alarms, _), total = root["matrix"]["counts"][0], sum(root["matrix"]["counts"][0])
    most = alarms // 2
    node(program, "no votes yet").click()
    field = card(program).get_by_role("textbox", name=re.compile("^ham called spam, at most"))
    field.click()
    program.keyboard.type("x")
    expect(card(program)).to_contain_text("Write a whole number such as 3, or a share such as 2%")
    expect(program.get_by_role("button", name="Ask this node")).to_be_disabled()
    program.get_by_role("button", name="Undo edits").click()
    field.click()
    program.keyboard.type(str(most))
    expect(card(program)).to_contain_text(f"Here: at most {most} of {total} ham called spam.")
    program.get_by_role("button", name="Ask this node").click()
    at_step(program, 1)
    at_rest(program)
    expect(node(program, "no votes yet")).to_have_attribute("aria-label", re.compile("tuned"))
    expect(card(program)).to_contain_text("tuned: ")
    found = known(user, program)["nodes"][0]
    assert found["matrix"]["counts"][0][1] <= most
    expect(reply(program)).to_contain_text("tuned a node of the program")
    assert record(user, program)["steps"][1]["way"] == "nodes"
    program.get_by_role("button", name="Undo").click()
    at_step(program, 0)
    at_rest(program)
    expect(node(program, "no votes yet")).not_to_have_attribute("aria-label", re.compile("tuned"))


def test_levels_are_grown_by_mouse(program, user):
    program.get_by_role("button", name="Grow a level").click()
    at_step(program, 1)
    at_rest(program)
    expect(panel(program, "Program")).to_contain_text("4 levels, ")
    expect(reply(program)).to_contain_text("grew the program")
    step(program, 0).click()
    at_step(program, 0)
    at_rest(program)
    expect(panel(program, "Program")).to_contain_text("3 levels, ")
    cell(program, "ham", "spam").click()
    program.keyboard.type("5")
    expect(sentence(program)).to_contain_text("at most 5 of")
    program.get_by_role("button", name="Ask", exact=True).click()
    at_step(program, 2)
    program.get_by_role("button", name="Grow a level").click()
    at_step(program, 3)
    at_rest(program)
    expect(panel(program, "Program")).to_contain_text("4 levels, ")
    program.reload()
    at_step(program, 3)
    expect(panel(program, "Program")).to_contain_text("4 levels, ")


def walk_on(page):
    """Where the walk over the weak nodes stands."""
    return page.get_by_role("status").filter(has_text=re.compile("Weak node|No weak node"))


def test_the_weak_ones_are_walked_by_mouse(program, user):
    dialog = record(user, program)["id"]
    few = len(user.ok(f"/dialogs/{dialog}/program?threshold=0")["weak"])
    many = len(known(user, program)["weak"])
    assert few < many > 2
    expect(program.get_by_text(f"{many} weak nodes")).to_be_visible()
    threshold = program.get_by_role("slider", name="Weak is an advantage below")
    threshold.fill("0")
    expect(program.get_by_text(re.compile(f"^{few} weak nodes?$"))).to_be_visible()
    threshold.fill("0.3")
    expect(program.get_by_text(f"{many} weak nodes")).to_be_visible()
    at_rest(program)
    program.get_by_role("button", name="Tune the weak ones").click()
    expect(walk_on(program)).to_contain_text(f"Weak node 1 of {many}")
    expect(card(program).get_by_role("heading", name="The root")).to_be_visible()
    program.get_by_role("button", name="Skip").click()
    expect(walk_on(program)).to_contain_text(f"Weak node 2 of {many}")
    field = card(program).get_by_role("textbox").first
    now = int(field.input_value())
    field.fill(str(now + 1))
    program.get_by_role("button", name="Ask this node").click()
    at_step(program, 1)
    at_rest(program)
    expect(walk_on(program)).to_contain_text(re.compile(r"Weak node 3 of \d+"))
    while program.get_by_role("button", name="Skip").is_visible():
        at = walk_on(program).inner_text()
        program.get_by_role("button", name="Skip").click()
        expect(walk_on(program)).not_to_have_text(at)
    expect(walk_on(program)).to_contain_text("No weak node is left to ask")
    program.get_by_role("button", name="Done").click()
    expect(walk_on(program)).to_have_count(0)


def test_a_program_by_keyboard(program, user):
    """Nodes by arrows, one edited, the weak ones walked, a level grown; no mouse is used."""
    found = known(user, program)
    program.evaluate("addEventListener('pointerdown', () => { window.pointed = true; }, true)")
    to(program, node(program, "no votes yet"))
    program.keyboard.press("ArrowDown")
    below = program.evaluate("document.activeElement.getAttribute('aria-label')")
    assert below.startswith("Layer 1, ")
    program.keyboard.press("Home")
    expect(node(program, "no votes yet")).to_be_focused()
    program.keyboard.press("Enter")
    expect(node(program, "no votes yet")).to_have_attribute("aria-pressed", "true")
    field = card(program).get_by_role("textbox", name=re.compile("^ham called spam, at most"))
    to(program, field)
    most = found["nodes"][0]["matrix"]["counts"][0][1] // 2
    program.keyboard.type(str(most))
    expect(card(program)).to_contain_text(f"Here: at most {most} of ")
    listen(program)
    program.keyboard.press("Enter")
    at_step(program, 1)
    at_rest(program)
    assert any(told.startswith("Step 1 is saved. ") for told in announced(program))
    assert announced(program)[-1] == "The node after no votes yet was tuned."
    expect(node(program, "no votes yet")).to_have_attribute("aria-label", re.compile("; tuned"))
    to(program, program.get_by_role("button", name="Undo"), "Shift+Tab")
    program.keyboard.press("Enter")
    at_step(program, 0)
    at_rest(program)
    to(program, program.get_by_role("button", name="Tune the weak ones"))
    program.keyboard.press("Enter")
    expect(walk_on(program)).to_contain_text("Weak node 1 of ")
    to(program, program.get_by_role("button", name="Skip"))
    program.keyboard.press("Enter")
    expect(walk_on(program)).to_contain_text("Weak node 2 of ")
    assert program.evaluate("document.activeElement !== document.body")
    to(program, program.get_by_role("button", name="Stop"), "Shift+Tab")
    program.keyboard.press("Enter")
    expect(walk_on(program)).to_have_count(0)
    to(program, program.get_by_role("button", name="Grow a level"), "Shift+Tab")
    program.keyboard.press("Enter")
    at_step(program, 2)
    at_rest(program)
    expect(program.get_by_role("button", name="Grow a level")).to_be_focused()
    expect(panel(program, "Program")).to_contain_text("4 levels, ")
    assert not program.evaluate("window.pointed")


def test_a_program_of_three_classes(show, user):
    """Its nodes are drawn and tuned too; there is no positive class."""
    three = user.table("balance")
    dialog = trained(user, three, target="target", kind="program", levels=2, members=None)
    page = show(f"#/d/{dialog}")
    found = known(user, page)
    expect(graph(page).get_by_role("button")).to_have_count(len(found["nodes"]))
    node(page, "no votes yet").click()
    expect(card(page).get_by_role("textbox")).to_have_count(9)
    root = found["nodes"][0]["matrix"]["counts"]
    field = card(page).get_by_role("textbox", name=re.compile("^L called R, at most"))
    place = [found["classes"].index(label) for label in ("L", "R")]
    most = root[place[0]][place[1]] // 2
    field.fill(str(most))
    page.get_by_role("button", name="Ask this node").click()
    at_step(page, 1)
    at_rest(page)
    assert known(user, page)["nodes"][0]["matrix"]["counts"][place[0]][place[1]] <= most
