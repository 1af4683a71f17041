"""Every example of the README and the guide runs, and prints or raises what is shown below it."""

import contextlib
import copy
import functools
import io
import re
import traceback
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC

from margrave.steer import Dialog

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs/index.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
# The README and the story of steering begin with the same committee, which is trained once.
TOGETHER = [ROOT / "README.md", ROOT / "docs/guide/steering.md"]
EXAMPLE = re.compile(
    r"```python\n(?P<code>.*?)```\n(?:\s*```(?:text)?\n(?P<shown>.*?)```)?", re.DOTALL
)


def outcome(code, names):
    """What a block prints, or the last lines of its traceback."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "<example>", "exec"), names)  # noqa: S102 - our own text
    except Exception as error:
        return printed.getvalue() + "".join(traceback.format_exception_only(error))
    return printed.getvalue()


def remembering(train, times):
    """Train once for the same samples and settings; everyone gets a dialog of their own."""
    kept = {}

    def from_data(X, y, **settings):
        key = joblib.hash((X, y, settings))
        if key not in kept:
            times.append(key)
            kept[key] = train(X, y, **settings)
        return copy.deepcopy(kept[key])

    return from_data


_learned: dict[str, dict[str, object]] = {}


@pytest.fixture(autouse=True)
def learned_once(monkeypatch):
    """Forests and SVMs take most of the time: of the same samples and settings they learn once, and
    what an SVM says of the same samples it says again."""
    for kind in (RandomForestClassifier, SVC):
        monkeypatch.setattr(kind, "fit", learning_once(kind.fit))
    monkeypatch.setattr(SVC, "decision_function", saying_again(SVC.decision_function))


def learning_once(fit):
    @functools.wraps(fit)
    def learned(self, X, y, sample_weight=None):
        settings = self.get_params()
        if isinstance(self, RandomForestClassifier) and not isinstance(self.random_state, int):
            return fit(self, X, y, sample_weight)  # it is another each time
        key = joblib.hash((type(self).__name__, settings, X, y, sample_weight))
        if key not in _learned:
            fit(self, X, y, sample_weight)
            _learned[key] = vars(self).copy()
        else:
            vars(self).update(_learned[key])
        return self

    return learned


def saying_again(decide):
    said: dict[str, object] = {}

    @functools.wraps(decide)
    def decision_function(self, X):
        key = joblib.hash((vars(self), X))
        if key not in said:
            said[key] = decide(self, X)
        return np.copy(said[key])

    return decision_function


def check_examples(page):
    names: dict[str, object] = {}
    for example in EXAMPLE.finditer(page.read_text()):
        told = outcome(example["code"], names)
        if example["shown"] is None:
            assert "Error" not in told, told
        else:
            assert told.rstrip() == example["shown"].rstrip(), example["code"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in TOGETHER], ids=lambda page: page.name
)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some examples save a figure
    check_examples(page)


@pytest.mark.slow
def test_examples_that_begin_alike(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained: list[str] = []
    monkeypatch.setattr(Dialog, "from_data", remembering(Dialog.from_data, trained))
    for page in TOGETHER:
        check_examples(page)
    assert len(trained) == 2  # the committee of both, and a program


def test_pages_with_code_are_found():
    assert sum(bool(EXAMPLE.search(page.read_text())) for page in PAGES) > 6
