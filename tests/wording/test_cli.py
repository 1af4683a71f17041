"""What the command prints, word for word.

A changed sentence is no fault. Read the change, then refresh the stored texts with `make wording`
(`pytest tests/wording --full --snapshot-update`).
"""

import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.command import PAIR, call, mail, replaced, steer_mail
from tests.wording.masking import masked

from margrave import datasets
from margrave.steer import _start

pytestmark = pytest.mark.core

ASK = ("--target", "spam", "--limit", "fp <= 10%", "--out", "m.skops")
TABLE = "links,sender,when,spam\n" + "1,a,5,no\n2,b,6,yes\n" * 20
TABLES = {
    "table.csv": TABLE,
    "ragged.csv": TABLE + "1,a,9\n",
    "latin.csv": TABLE.replace("b", "\xfc").encode("latin-1"),
    "wide.csv": TABLE.encode("utf-16"),
    "quote.csv": TABLE + '1,a,5,"no\n',
    "twice.csv": "a,a,spam\n1,2,no\n",
    "nameless.csv": "a,,spam\n1,2,no\n",
    "empty.csv": "",
    "blank.csv": "\n\n",
    "header.csv": "a,spam\n",
    "gap.csv": TABLE + "1,a,,no\n1,,7,no\n1,a,6,\n",
    "constant.csv": TABLE.replace(",6,", ",5,"),
    "one-class.csv": TABLE.replace("yes", "no"),
    "few.csv": "links,spam\n" + "1,no\n2,yes\n" * 4,
    "numbers.csv": "x,spam\n" + "".join(f"{i},{i / 7}\n" for i in range(50)),
    "table.xlsx": "a",
    "table.parquet": "no table",
    "table.csv.gz": "no table",
}
WRONG_STEER = (
    ("nowhere.csv", *ASK),
    ("spambas", *ASK),
    ("table.csv", *ASK[2:]),
    *((name, *ASK) for name in TABLES if name not in ("table.csv", "constant.csv")),
    ("gap.csv", *ASK[2:], "--target", "links", "--time", "when"),
    ("gap.csv", *ASK[2:], "--target", "links", "--group", "sender"),
    ("constant.csv", *ASK, "--time", "when"),
    *(
        ("table.csv", *replaced(ASK, *more))
        for more in (
            ("--target", "Spam"),
            ("--group", "who"),
            ("--drop", "sendr"),
            ("--time", "sender"),
            ("--time", "spam"),
            ("--drop", "links", "--drop", "sender", "--drop", "when"),
            ("--positive", "maybe"),
            ("--certify", "2"),
            ("--confidence", "1"),
            ("--strategies", "mov"),
            ("--limit", "fpp <= 2"),
            ("--limit", "fp <= "),
            ("--limit", "fp <= 200%"),
            ("--limit", "recall(ham) >= 1%"),
            ("--report", "absent/p.html"),
            ("--dialog", "."),
            ("--out", "table.csv"),
        )
    ),
)
WRONG_LATER = (
    ("predict", "nowhere.skops", "mail.csv"),
    ("predict", "table.csv", "mail.csv"),
    ("predict", "dialog.skops", "mail.csv"),
    ("predict", "model.skops", "nowhere.csv"),
    ("predict", "model.skops", "table.csv"),
    ("predict", "model.skops", "mail.csv", "--out", "absent/a.csv"),
    ("check", "model.skops", "mail.csv", "--target", "spamm"),
    ("check", "model.skops", "maybe.csv", "--target", "spam"),
    ("check", "dialog.skops", "mail.csv", "--target", "spam"),
    ("card", "nowhere.skops"),
    ("data", "iriss"),
    ("data", "--out", "x.csv"),
)
INLINE = ("b", "code", "i", "small", "span")
WRONG_FOLDER = (
    ("steer", "empty", *ASK),
    ("steer", "mails", *ASK[2:]),
    ("steer", "mails", *ASK, "--report", "page.html"),
    ("steer", "mails", *ASK, "--strategies", "retune"),
    ("steer", "mails", *replaced(ASK, "--target", "spamm")),
    ("predict", "model.skops", "mails"),
    ("predict", "model.skops", "mails", "--out", "a.csv"),
    ("predict", "model.skops", "mails", "--out", "mails"),
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a model of two members, and what the command printed when it made it."""
    folder = tmp_path_factory.mktemp("trained")
    return folder, steer_mail(folder, wrong=0.25)  # many mistakes: no count is near a tie


@pytest.fixture
def folder(trained, monkeypatch):
    """The folder with the model, as the working directory; training takes two members."""
    monkeypatch.chdir(trained[0])
    monkeypatch.setattr(_start, "default_committee", lambda *_, **__: PAIR)
    return trained[0]


def transcript(calls, folder):
    """The calls as they are typed; under each its exit code and what it prints."""
    parts = []
    for arguments in calls:
        code, out, err = call(*arguments)
        printed = masked(out + err, folder)
        parts.append(f"$ margrave {shlex.join(arguments)}\n{printed}[exit code {code}]\n")
    return "\n".join(parts)


class PageText(HTMLParser):
    """The text of a page, a line for each block."""

    def __init__(self):
        super().__init__()
        self.text, self.inside = "", ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag
        self.text += "" if tag in INLINE else "\n"
        self.text += dict(attrs).get("alt", "")

    def handle_endtag(self, tag):
        self.text += "" if tag in INLINE else "\n"

    def handle_data(self, data):
        self.text += "" if self.inside == "style" else data


def test_steer(trained, snapshot):
    folder, printed = trained
    assert masked(printed, folder) == snapshot


def test_report(trained, snapshot):
    folder, _ = trained
    page = PageText()
    page.feed((folder / "page.html").read_text(encoding="utf-8"))
    lines = [line.strip() for line in masked(page.text, folder).splitlines()]
    # A cell of numbers is no wording.
    assert "\n".join(line for line in lines if re.search("[a-z]", line)) == snapshot


def test_steer_without_success(folder, snapshot):
    ask = ("steer", "mail.csv", "--target", "spam", "--strategies", "move")
    (folder / "unused").mkdir()
    wanted = (
        ("fp <= 1%", "--out", "unused/m.skops"),
        ("fp <= 0, fn <= 0", "--out", "unused/m.skops", "--quiet"),
        ("errors <= 1%, rejected <= 5%", "--out", "unused/m.skops", "--quiet"),
        ("fp <= 20%", "--out", "m.skops", "--quiet"),  # the rows are used up in this folder
    )
    assert transcript([(*ask, "--limit", *one) for one in wanted], folder) == snapshot


def test_predict_and_check(folder, snapshot):
    mail(4, seed=1).assign(extra=1).to_csv("new.csv", index=False)
    mail(200, seed=2).to_csv("kept.csv", index=False)
    # Spam with the wrong label: the model predicts 'yes' for many of these rows.
    mail(1000, seed=2).query("spam == 'yes'").assign(spam="no").to_csv("broken.csv", index=False)
    mail(200, seed=2).query("spam == 'no'")[:1].to_csv("one-row.csv", index=False)
    checks = [
        ("check", "model.skops", name, "--target", "spam")
        for name in ("kept.csv", "broken.csv", "one-row.csv")
    ]
    assert [call(*check)[0] for check in checks] == [0, 4, 0]
    assert transcript([("predict", "model.skops", "new.csv"), *checks], folder) == snapshot


def test_card(folder, snapshot):
    assert transcript([("card", "model.skops")], folder) == snapshot


def test_data(folder, snapshot, monkeypatch):
    monkeypatch.setattr(datasets, "names", lambda **_: ("iris", "spambase"))
    assert transcript([("data",), ("data", "iris", "--out", "iris.csv")], folder) == snapshot


def test_wrong_calls(folder, snapshot):
    mail(20).assign(spam="maybe").to_csv("maybe.csv", index=False)
    for name, content in TABLES.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    calls = [*(("steer", *arguments) for arguments in WRONG_STEER), *WRONG_LATER]
    assert transcript(calls, folder) == snapshot


def test_wrong_calls_with_a_folder(folder, snapshot):
    pytest.importorskip("dask", reason="the extra 'dask' is not installed")
    Path("empty").mkdir(exist_ok=True)
    Path("mails").mkdir(exist_ok=True)
    mail(100).to_parquet("mails/0.parquet", index=False)
    assert transcript(WRONG_FOLDER, folder) == snapshot
