"""The HTML page: what it tells, and that nothing of a user's is taken for HTML."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from margrave.app._job import Outcome
from margrave.app._report import page, write_page
from margrave.app._samples import Samples, Table
from margrave.steer import Dialog, PromiseError

EVIL = "<script>alert('x')</script>"


def outcome(wants, labels=("ham", EVIL), committee=None, time=None):
    """A request on two or three clouds of points."""
    rng = np.random.default_rng(0)
    codes = rng.integers(len(labels), size=400)
    X = pd.DataFrame(rng.normal(size=(400, 2)) + 1.5 * codes[:, None], columns=["a", EVIL])
    y = np.array(labels)[codes]
    positive = labels[1] if len(labels) == 2 else None
    members = committee or [("line & co", LogisticRegression()), ("bell", GaussianNB())]
    dialog = Dialog.from_data(
        X, y, committee=members, certify=0.3, positive=positive, time=time, random_state=0
    )
    for want in wants:
        dialog.prefer(want, keep=True, ways=["move", "reject", "reweigh"])
    samples = Samples(Table(X, f"{EVIL}.csv"), EVIL, X, y, positive, time=time)
    try:
        return Outcome(samples, dialog, 0.95, dialog.accept())
    except PromiseError as error:
        return Outcome(samples, dialog, 0.95, refusal=str(error))


class Tags(HTMLParser):
    """Which tags a page has, and that they are closed in order."""

    def __init__(self):
        super().__init__()
        self.seen, self.open = set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(text):
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert "script" not in tags.seen
    assert not re.search(r"(?:src|href)\s*=\s*.(?!data:)", text)
    assert "url(" not in text
    return tags


@pytest.fixture(scope="module")
def met():
    return outcome(["fp <= 20%", "fp <= 10%"])


def test_the_page_tells_the_promise_and_its_evidence(met):
    text = page(met, "margrave steer x.csv --prefer 'fp <= 10%'")
    tags = checked(text)
    assert "img" in tags.seen
    assert "<h1>At most 10 % of ham called &lt;script&gt;alert(" in text
    for head in ("Why it can be trusted", "The confusion matrix", "What it cost", "Who decides"):
        assert f"<h2>{head}</h2>" in text
    assert "<span>Train and tune 280</span>" in text
    assert "<span>Certify 120</span>" in text
    assert text.count('<table class="matrix">') == 3
    certificate = met.model.certificate_
    for cell in certificate.cells:
        if cell.answer is not None:
            told = f"<b>{cell.count}</b><small>{100 * cell.low:.1f} – {cell.high:.1%}</small>"
            assert told in text
    assert "<code>fp &lt;= 20%</code>" in text
    assert "line &amp; co" in text
    assert "margrave steer x.csv --prefer &#x27;fp &lt;= 10%&#x27;" in text
    assert "prefers-color-scheme: dark" in text
    assert "verdict short" not in text


def test_members_stand_as_their_own_curves_do(met):
    text = page(met, "")
    fp = met.dialog.confusion.fp
    for curve in met.dialog.frontier().curves:
        if curve.name == "member bell":
            fewest = min(fn for at, fn in zip(curve.fp, curve.fn, strict=True) if at <= fp)
            assert re.search(rf"<td>bell</td><td>.*</td><td>{fewest}</td>", text)


def test_a_page_without_a_promise():
    text = page(outcome(["fp <= 0.5%"]), "")
    checked(text)
    assert "<h1>No promise.</h1>" in text
    assert "that no step has seen; there are " in text
    assert text.count('<table class="matrix">') == 2


def test_what_is_not_met_is_said():
    text = page(outcome(["fp <= 10%, fn <= 0"]), "")
    checked(text)
    assert "Not reachable on the tuning samples: the nearest is" in text


def test_rejects_more_classes_and_no_positive_class():
    text = page(outcome(["errors <= 5%, rejected <= 40%"], ("a", "b", EVIL)), "")
    tags = checked(text)
    assert "img" not in tags.seen
    assert "<th>rejected</th>" in text
    assert "What was possible" not in text


def test_one_member_and_time():
    found = outcome(["fp <= 20%"], committee=LogisticRegression(), time=np.arange(400))
    text = page(found, "")
    checked(text)
    assert "trained on earlier rows only" in text
    assert found.parts.train - found.parts.tune > 0
    assert f"<span>Train only {found.parts.train - found.parts.tune}</span>" in text
    assert "Misses alone" not in text


def test_a_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    place = tmp_path / "page.html"
    write_page("old ü", place)
    assert place.read_text(encoding="utf-8") == "old ü"

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_page("new", place)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert place.read_text(encoding="utf-8") == "old ü"
