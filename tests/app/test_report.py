"""The HTML page: the facts on it, and that nothing of a user's is taken for HTML.

Its sentences are in tests/wording.
"""

import re
from html import escape
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from margrave.app.report import page, write_page
from margrave.app.request import Outcome
from margrave.app.samples import Samples, Table
from margrave.steer import Dialog, GuaranteeError

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
        dialog.prefer(want, keep=True, strategies=["move", "reject", "retune"])
    samples = Samples(Table(X, f"{EVIL}.csv"), EVIL, X, y, positive, time=time)
    try:
        return Outcome.of(samples, dialog, 0.95, dialog.accept())
    except GuaranteeError as error:
        return Outcome.of(samples, dialog, 0.95, refusal=error)


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


def part_sizes(text):
    """How many rows each part of the bar has, by the class of the part."""
    found = re.findall(r'<div class="(\w+)" style="flex:(\d+)"><span>\D*([\d,]+)\D*</span>', text)
    assert all(width == shown.replace(",", "") for _, width, shown in found)
    return {part: int(width) for part, width, _ in found}


def heading(text):
    return re.search("<h1>(.*)</h1>", text)[1]


def test_the_page_shows_the_guarantee_and_its_evidence(met):
    text = page(met, "margrave steer x.csv --limit 'fp <= 10%'")
    tags = checked(text)
    assert "img" in tags.seen
    assert re.search(r"\b10%.*\bham\b.*&lt;script&gt;alert\(", heading(text))
    assert len(re.findall("<h2>", text)) == 8
    assert part_sizes(text) == {"tune": 280, "certify": 120}
    assert text.count('<table class="matrix">') == 3
    certificate = met.model.certificate_
    for cell in certificate.cells:
        if cell.predicted is not None:
            low, high = f"{100 * cell.low:.1f}", f"{100 * cell.high:.1f}"
            assert re.search(rf"<b>{cell.count}</b><small>{low}\D+{high}\D*</small>", text)
    assert "<code>fp &lt;= 20%</code>" in text
    assert "line &amp; co" in text
    assert "margrave steer x.csv --limit &#x27;fp &lt;= 10%&#x27;" in text
    assert "prefers-color-scheme: dark" in text
    (verdict,) = re.findall('class="verdict met">(.*?)</p>', text)
    assert escape(met.describe_errors()) in verdict


def test_the_plot_joins_each_step_to_its_parent_and_numbers_it_as_the_table(monkeypatch):
    figures, save = [], Figure.savefig

    def noted(figure, *given, **more):
        figures.append(figure)
        save(figure, *given, **more)

    monkeypatch.setattr(Figure, "savefig", noted)
    found = outcome(["fp <= 20%", "fp <= 10%"])
    found.dialog.goto(0)
    found.dialog.prefer("fn <= 3%", strategies=["move"])
    text = page(found, "")
    assert found.dialog.parents == (0, 0, 1, 0)
    table = text.split('<table class="steps">')[1]
    assert re.findall(r"<tr><td>(\d+)</td>", table) == ["0", "1", "2", "3"]
    drawn = figures[0].axes[0].texts
    places = {text.get_text(): text.xy for text in drawn if text.arrow_patch is None}
    arrows = [(text.get_position(), text.xy) for text in drawn if text.arrow_patch is not None]
    assert arrows == [(places[one], places[other]) for one, other in ("01", "12", "03")]


def test_the_current_matrix_shows_its_changes_since_the_start(met):
    start, current, _ = re.findall('<table class="matrix">.*?</table>', page(met, ""), re.DOTALL)
    before, after = met.start.after, met.reply.after
    changes = [after[cell] - before[cell] for cell in product(after.classes, repeat=2)]
    shown = re.findall(r"<small>[\d.]+%(?:, ([+−]\d+))?</small>", current)
    assert [int(text.replace("−", "-") or 0) for text in shown] == changes
    assert any(changes)
    assert not re.search(r"<small>[^<]*[+−]", start)


def test_members_stand_as_their_own_curves_do(met):
    text = page(met, "")
    fp = met.dialog.confusion.fp
    for curve in met.dialog.frontier().curves:
        if curve.name == "member bell":
            fewest = min(fn for at, fn in zip(curve.fp, curve.fn, strict=True) if at <= fp)
            assert re.search(rf"<td>bell</td><td>.*</td><td>{fewest}</td>", text)


def test_a_page_without_a_guarantee():
    found = outcome(["fp <= 0.5%"])
    text = page(found, "")
    checked(text)
    assert 'class="verdict refused"' in text
    assert escape(str(found.refusal)) in text
    assert "0.5" not in heading(text)
    assert text.count('<table class="matrix">') == 2


def test_a_page_shows_how_far_the_preference_is_missed():
    found = outcome(["fp <= 10%, fn <= 0"])
    text = page(found, "")
    checked(text)
    assert not found.met
    assert re.search(rf'class="verdict .*\b{found.reply.shortfall:g}\b', text)
    assert escape(f"'{found.reply.binding}'") in text


def test_rejects_more_classes_and_no_positive_class():
    text = page(outcome(["errors <= 5%, rejected <= 40%"], ("a", "b", EVIL)), "")
    tags = checked(text)
    assert "img" not in tags.seen  # the frontier needs a positive class
    widths = [row.count("<th>") for row in re.findall(r"<thead><tr><th></th>(.*?)</tr>", text)]
    assert max(widths) == 4  # three classes and the rejected
    assert len(re.findall("<h2>", text)) == 6


def test_one_member_and_time():
    found = outcome(["fp <= 20%"], committee=LogisticRegression(), time=np.arange(400))
    text = page(found, "")
    checked(text)
    parts = found.sizes
    assert parts.train > parts.tune  # the earliest rows are trained on only
    assert part_sizes(text) == {
        "train": parts.train - parts.tune, "tune": parts.tune, "certify": parts.certify
    }  # fmt: skip
    members = re.search('<table class="members"><thead><tr>(.*?)</tr>', text)[1]
    assert members.count("<th>") == 2  # name and weight; "alone" says nothing of a single member


def test_a_program_is_tuned_on_rows_that_it_was_not_trained_on():
    found = outcome([], committee="martingale")
    text = page(found, "")
    checked(text)
    parts = found.sizes
    assert parts.train + parts.tune + parts.certify == 400
    assert part_sizes(text) == {
        "train": parts.train, "tune": parts.tune, "certify": parts.certify
    }  # fmt: skip
    roles = text.split('<table class="roles">')[1]
    assert re.search(rf"<td>Train</td><td>{parts.train}</td><td>(?!.*members)", roles)
    assert re.search(rf"<td>Tune</td><td>{parts.tune}</td><td>(?!.*members)", roles)
    by_time = outcome([], time=np.arange(400)).split
    shown = re.sub(r"\d+", "", found.split.splitlines()[0])
    assert shown != re.sub(r"\d+", "", by_time.splitlines()[0])


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
