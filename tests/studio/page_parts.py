"""What the tests of the page share: small tables, dialogs made without it, and its parts by name.

Parts are found by the role and the name that a screen reader is given, so that a part without them
is not found at all.
"""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from playwright.sync_api import Locator, Page, expect
from tests.studio.browser import SECONDS
from tests.studio.serving import Client

from margrave._messages import name_class

CLASSES = ("ham", "spam")
COLUMNS = ("links", "capitals", "length", "sender")
QUICK = ("logistic", "qda")
SLOW = "spambase"  # a set on which all members together take half a minute, and each step a second
REFUSED = r"the server responded with a status of {}"  # what Chromium itself writes of an error
AWAY = r"net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)"
MILLISECONDS = 1000 * SECONDS
LONG = 3 * MILLISECONDS  # for what the server computes, on a machine that is busy


def table(
    rows: int = 300,
    classes: Sequence[str] = CLASSES,
    columns: Sequence[str] = COLUMNS,
    target: str = "kind",
    senders: Sequence[str] = ("alice", "bob", "carol"),
) -> bytes:
    """A CSV file of mails: two quick members learn it in a moment, and nobody without mistakes."""
    draw = np.random.default_rng(0)
    shares = np.linspace(2, 1, len(classes))
    kind = draw.choice(len(classes), size=rows, p=shares / shares.sum())
    numbers = [
        draw.poisson(2 + 2 * kind),
        draw.normal(1.2 * kind, 1).round(3),
        draw.normal(0.6 * kind, 1).round(3),
    ]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*columns, target])
    for row in range(rows):
        values = [number[row] for number in numbers]
        writer.writerow([*values, senders[draw.integers(len(senders))], classes[kind[row]]])
    return text.getvalue().encode()


def judged() -> bytes:
    """A CSV file of answers with one coarse score: 295 bad and 90 good ones, hardly told apart."""
    draw = np.random.default_rng(0)
    lines = ["score,verdict"]
    for size, mean, verdict in ((295, 4.4, "bad"), (90, 5.6, "good")):
        scores = draw.normal(mean, 2, size).round().clip(0, 10).astype(int)
        lines += [f"{score},{verdict}" for score in scores]
    return "\n".join(lines).encode()


JUDGED = {
    "target": "verdict",
    "positive": "good",
    "members": ["logistic"],
    "duplicates": "independent",
}
"""The choices for that table: at most 5% of bad predicted good leave nothing predicted good."""


def uploaded(user: Client, data: bytes | None = None, name: str = "mails.csv") -> str:
    """A table, as if the page had sent it."""
    answer = user.http.post("/api/tables", files={"file": (name, data or table())})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def trained(user: Client, table_id: str, *asked: str, **choices: object) -> str:
    """The id of a dialog on a table, after some requests."""
    given = {"target": "kind", "members": QUICK, **choices}
    begun = user.post("/dialogs", {"table": table_id, **given})
    last = user.finished(begun)
    assert last["state"] == "done", last
    found = begun.json()["dialog"]["id"]
    for want in asked:
        user.asked(f"/dialogs/{found}", want, keep=False)
    return found


# The parts of the page


class Name:
    """Accessible names by which several tests find a part: what is renamed is renamed here."""

    ACCEPT = "Certify this model"
    ALTERNATIVES = "Alternatives"
    ASK_NODE = "Tune this node"
    ASK_POINT = "Apply this point"
    ANYWAY = re.compile("^Certify anyway")
    CANCEL_TRAINING = "Cancel the training"
    ENOUGH = re.compile("^Use th")
    PROVISIONAL = re.compile("^Provisional")
    CERTIFY_SHARE = "Size of the certification set"
    CHOOSE_FILE = "Choose a file"
    CLEAR = "Clear"
    CLOSE = "Close"
    CLOSE_COMPARISON = "Close the comparison"
    COMPARISON = "Comparison"
    CONFIRM = "Use it and certify"
    CONFIRM_BOX = "Use the certification set?"
    CONFIRM_HALF = "Use half and certify"
    COSTS = "Costs and priors"
    DIALOGS = "Dialogs"
    DISAGREEMENT = "Where the members disagree"
    FRONTIER = "Reachable trade-offs"
    GROW = re.compile("^Grow ")
    GUARANTEE = "Planned guarantee"
    HOME = "Margrave"
    KEEP_TEXT = "Keep numbers with commas as text"
    KEEP = re.compile("^keep the earlier limits")
    LEVELS = "Levels"
    MATRIX = "Confusion matrix"
    MEMBERS = "Members"
    MISS_COST = "Cost of a false negative"
    MODEL_FILE = re.compile("^Model for")
    NEAREST = "Request these limits"
    NEW_DIALOG = "New dialog"
    NOT_TRAINED = "Not trained"
    OFFER = re.compile(r"^(Requested|Certified) in step \d+")
    PARTS = "How the rows are split"
    PERCENT = "Percent of the row"
    PREFERENCE = "Preference in words"
    PRIOR = "Expected proportion of spam"
    PROGRAM = re.compile("^A martingale program")
    READ_SO = re.compile("^Read it ")
    REDO = "Redo"
    RENAME = "Rename"
    RESERVE_HALF = "Reserve half for another model"
    ROOT = "The root"
    ROWS_FILE = "These rows as CSV"
    SCRIPT_FILE = "Python script"
    SKIP = "Skip"
    STOP = "Stop"
    SUMMARY = "Summary"
    TAKE = re.compile("^Use this")
    TARGET = "Column with the classes"
    TITLE = "Title"
    TOKEN = "Token"  # noqa: S105 - a label
    TOKEN_FORM = "Enter the token"  # noqa: S105
    TRAIN = "Train"
    TRAIN_AGAIN = "Train again"
    TRAINING = "Training the committee"
    TUNE_ALL = "Tune all nodes"
    TUNE_WEAK = "Tune the weak nodes"
    UNDO = "Undo"


CERTIFY = "Certify & export"
TABS = ("Frontier", "Members", "Costs", CERTIFY)


def button(page: Page | Locator, name: str | re.Pattern[str], exact: bool = False) -> Locator:
    """A button by its name."""
    return page.get_by_role("button", name=name, exact=exact)


def ask_button(page: Page) -> Locator:
    """The button below the large matrix; others begin with the same word."""
    return button(page, "Apply", exact=True)


def compare_button(page: Page, number: int) -> Locator:
    """The button that marks a step to be compared."""
    return button(page, f"Compare step {number}")


def rows_button(page: Page, n: int) -> Locator:
    """The button that shows the rows behind the chosen cell."""
    return button(page, re.compile(rf"\b{n} rows"))


def alert(page: Page) -> Locator:
    """What went wrong, as it is shown; the place for what is only read out is outside of it."""
    return page.get_by_role("main").get_by_role("alert").first


def home(page: Page) -> Locator:
    """The link to the list of dialogs."""
    return page.get_by_role("link", name=Name.HOME)


def keep_box(page: Page) -> Locator:
    """Whether what was asked before still holds."""
    return page.get_by_label(Name.KEEP)


def in_words(page: Page) -> Locator:
    """What opens the field for a preference in words, and the choice of strategies."""
    return page.locator(".ask-more summary")


def columns_used(page: Page) -> Locator:
    """The line that opens the list of columns, and tells how many of them are used."""
    return page.locator("details.columns summary")


def more_choices(page: Page) -> Locator:
    """What opens the choices that are rarely needed."""
    return page.locator("details.more summary")


def summary(page: Page) -> Locator:
    """What will be trained, beside the choices."""
    return page.get_by_role("complementary", name=Name.SUMMARY)


def part_size(page: Page | Locator, part: str) -> Locator:
    """How many rows a part has: "train", "tune", "certify" or "unused"."""
    return page.locator(f".parts-legend div:has(.part-{part}) dd.number")


def node_field(card: Page | Locator, true: str, answer: str) -> Locator:
    """A cell in the small matrix of a program's node."""
    return card.get_by_role("textbox", name=re.compile(rf"^{true} predicted {answer}(?!\w)"))


def trail(page: Page, n: int) -> Locator:
    """The list of steps, which says how many there are besides the start."""
    return page.get_by_role("region", name=re.compile(rf"^Trail {n}\b"))


def matrix_card(page: Page) -> Locator:
    """The large matrix with all that belongs to it."""
    return page.get_by_role("region", name=re.compile(f"^{Name.MATRIX}"))


def grid(page: Page) -> Locator:
    """The large matrix."""
    return page.get_by_role("grid", name=Name.MATRIX)


def hold_ends(page: Page) -> None:
    """Let the page see each job as running when it has begun, also if it ended at once."""
    page.route(
        "**/prefer",
        lambda route: route.fulfill(
            status=202, json={**route.fetch().json(), "state": "running", "result": None}
        ),
    )


def only(page: Page, user: Client, *dialogs: str) -> None:
    """Let the start list these dialogs alone, not those that other tests have left there."""
    listed = user.ok("/dialogs")["dialogs"]
    body = {"dialogs": [one for one in listed if one["id"] in dialogs]}
    page.route("**/api/dialogs", lambda route: route.fulfill(json=body))


def drop(page: Page, path: Path) -> None:
    """Drop a file where it is asked for, as from the system's own file manager."""
    page.locator(".drop").scroll_into_view_if_needed()
    box = page.locator(".drop").bounding_box()
    at = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **at, "data": data})
        if kind == "dragOver":
            expect(page.locator(".drop-over")).to_be_visible()


def cell(page: Page, true: str, answer: str | None) -> Locator:
    """A cell of the large matrix; None for the rejected."""
    predicted = "rejected" if answer is None else f"predicted {name_class(answer)}"
    return page.get_by_role("gridcell", name=f"true {name_class(true)} {predicted}:")


def matrix(page: Page) -> list[list[int]]:
    """The counts of the large matrix, as a screen reader reads them."""
    rows = grid(page).get_by_role("row").all()
    texts = [row.get_by_role("gridcell").all_text_contents() for row in rows[1:]]
    return [[number(re.search(r": ([\d,]+) of ", text)[1]) for text in row] for row in texts]


def number(text: str) -> int:
    """A count as the page writes it."""
    return int(text.replace(",", ""))


def step(page: Page, number: int) -> Locator:
    """A step in the trail."""
    return page.get_by_role("listitem").get_by_role("button", name=re.compile(rf"^Step {number}\b"))


def saved(page: Page) -> Locator:
    """The sign that all is saved."""
    return page.locator(".saved.good")


def best_from(frontier: dict, number: int) -> list[tuple[int, int]]:
    """The points that no other one dominates, of the curves that a request from a step tries."""
    points = [
        point
        for curve in frontier["curves"]
        if number in curve["steps"]
        for point in zip(curve["fp"], curve["fn"], strict=True)
    ]
    found = {point for point in points if not any(_dominates(other, point) for other in points)}
    return sorted(found)


def _dominates(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def at_step(page: Page, number: int) -> None:
    """The dialog is at a step, and says that all is saved."""
    expect(step(page, number)).to_have_attribute("aria-current", "step", timeout=LONG)
    expect(saved(page)).to_be_visible(timeout=LONG)


def tab(page: Page, name: str) -> Locator:
    """The panel of a tab, opened by a click."""
    page.get_by_role("tab", name=name).click()
    return panel(page, name)


def panel(page: Page, name: str) -> Locator:
    """The panel of a tab that is open."""
    return page.get_by_role("tabpanel", name=name)


def sentence(page: Page) -> Locator:
    """What the edits mean."""
    return page.locator("#matrix-sentence")


def whole(fact: object) -> re.Pattern[str]:
    """A number or a name in a text, not as a part of another."""
    return re.compile(rf"(?<![\w.,]){re.escape(str(fact))}(?!\w|[.,]\d)")


def tells(part: Locator, *facts: object) -> None:
    """A part shows these numbers and names, in whatever words."""
    for fact in facts:
        expect(part).to_contain_text(whole(fact))


def asks(page: Page, *facts: object) -> None:
    """The edits are read as a preference that has these numbers and classes."""
    tells(sentence(page).get_by_role("list"), *facts)


def asks_nothing(page: Page) -> None:
    """There are no edits."""
    expect(sentence(page)).to_be_visible()
    expect(sentence(page).get_by_role("listitem")).to_have_count(0)


def reply(page: Page) -> Locator:
    """What became of the request."""
    return page.get_by_role("region", name="Reply", exact=True)


def alternatives(page: Page) -> Locator:
    """Alternatives to limits that cannot be met together."""
    return reply(page).get_by_role("list", name=Name.ALTERNATIVES).get_by_role("listitem")


def live_region(page: Page) -> Locator:
    """What a screen reader announces in passing."""
    return page.locator("#live")


def record(user: Client, page: Page) -> dict:
    """The dialog that a page shows, as the server has it."""
    found = re.search(r"#/d/([^/]+)", page.url)
    return user.ok(f"/dialogs/{found[1]}")


def listen(page: Page) -> None:
    """Keep all that is announced from now on, also what is replaced at once."""
    page.evaluate(
        """() => {
          window.announced = [];
          for (const id of ['live', 'live-urgent']) {
            const place = document.getElementById(id);
            new MutationObserver(() => {
              if (place.textContent) window.announced.push(place.textContent);
            }).observe(place, { childList: true, characterData: true, subtree: true });
          }
        }"""
    )


def announced(page: Page) -> list[str]:
    """What was announced since `listen`."""
    return page.evaluate("window.announced")


# By keyboard


def has_focus(locator):
    return locator.evaluate("(one) => one === document.activeElement")


def to(page, locator, key="Tab", most=90):
    """Press Tab until a part has the focus."""
    expect(locator).to_be_visible(timeout=LONG)
    for _ in range(most):
        if has_focus(locator):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{most} times {key} did not lead to {locator}")
