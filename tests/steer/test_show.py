"""A dialog shows itself: as HTML that holds what it counts, and through the studio."""

import re

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from margrave import _extensions
from margrave.steer import Dialog

RANDOM = np.random.default_rng(3)
CLASSES = np.array(["<b>no</b>", 'a "yes"'])
Y = CLASSES[RANDOM.integers(0, 2, 200)]
X = RANDOM.normal(size=(200, 2)) + (CLASSES[1] == Y)[:, None]


@pytest.fixture
def dialog():
    return Dialog(GaussianNB().fit(X[:80], Y[:80]), X[80:], Y[80:])


def test_the_matrix_is_in_it_cell_by_cell(dialog):
    dialog.prefer("fp <= 3", strategies=["move"])
    cells = re.findall(r"<td[^>]*>([\d,]+)", dialog._repr_html_())
    assert [int(cell) for cell in cells] == dialog.confusion.counts.ravel().tolist()


def test_differences_are_those_of_the_step(dialog):
    reply = dialog.prefer("fp <= 3", strategies=["move"])
    differences = re.findall(r"<small>\(([+-]\d+)\)</small>", dialog._repr_html_())
    moved = (reply.after.counts - reply.before.counts).ravel()
    assert [int(one) for one in differences] == moved[moved != 0].tolist()


def test_labels_are_text_not_markup(dialog):
    assert "<b>" not in dialog._repr_html_()
    assert "&lt;b&gt;no&lt;/b&gt;" in dialog._repr_html_()


def test_the_last_steps_with_the_current_one_marked(dialog):
    for limit in range(9):
        dialog.prefer(f"fp <= {limit}", strategies=["move"])
    dialog.goto(6)
    shown = dialog._repr_html_()
    assert shown.count("<li>") == 6
    assert '<ol start="4">' in shown
    assert re.findall(r"<li><strong>fp &lt;= (\d)", shown) == ["5"]


def test_a_start_has_no_steps(dialog):
    shown = dialog._repr_html_()
    assert "<ol" not in shown
    assert str(dialog.confusion.n) in shown
    assert all(name in shown for name in dialog.members)


def test_without_the_studio_the_error_names_the_extra_to_install(dialog, monkeypatch):
    monkeypatch.setattr(_extensions, "entry_points", lambda group, name: [])
    with pytest.raises(ImportError, match=r"\[studio\]"):
        dialog.open()


def test_the_viewer_gets_the_dialog(dialog, monkeypatch):
    class Viewer:
        def load(self):
            return lambda shown, browser: f"{shown is dialog} {browser}"

    monkeypatch.setattr(_extensions, "entry_points", lambda group, name: [Viewer()])
    assert dialog.open(browser=False) == "True False"
