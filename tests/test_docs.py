"""Every example of the README and the guide runs, and prints or raises what is shown below it.

Arithmetic is compared exactly. Once a page has trained a model, numbers are compared with a
tolerance: another processor adds in another order, and a sample near a threshold changes sides.
Commands in shell blocks run in the order of their page, in an empty folder.
"""

import contextlib
import copy
import functools
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import traceback
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import SVC
from tests.needs import skip_missing
from tests.studio.running import Studio

from margrave.steer import Dialog

ROOT = Path(__file__).resolve().parents[1]
README, TUTORIAL = ROOT / "README.md", ROOT / "docs/tutorials/python.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[!_]*/*.md"))]
QUICK = [
    ROOT / f"docs/{name}.md"
    for name in ("reference/preferences", "howto/vote", "explanation/scores")
]
EXAMPLE = re.compile(
    r"```(?P<kind>python|sh)\n(?P<code>.*?)```\n(?:\s*```(?:text)?\n(?P<shown>.*?)```)?",
    re.DOTALL,
)
TRAINS = re.compile(r"\.fit\(|from_data\(|bias_variance\(|cross_val_score\(")
ELAPSED = re.compile(r"\b\d+\.\d+ s\b")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d*)?(?:e[-+]?\d+)?")


def name_page(page):
    """Return the path of a page within the documentation; several folders have an index.md."""
    return page.relative_to(ROOT / "docs").as_posix()


# Comparing


def agrees(shown, printed, code=None):
    """Tell whether an example printed what its page shows.

    Exactly, or with a tolerance for the numbers that are not in the code of a trained model.
    """
    shown, printed = (ELAPSED.sub("# s", text) for text in (shown, printed))
    if code is None:
        return shown.rstrip() == printed.rstrip()
    texts = [re.sub(r"\s", "", NUMBER.sub("#", text)) for text in (shown, printed)]
    numbers = [NUMBER.findall(text) for text in (shown, printed)]
    known = set(NUMBER.findall(code))
    return texts[0] == texts[1] and all(
        one == other if one in known else near(one, other)
        for one, other in zip(*numbers, strict=True)
    )


def near(one, other):
    """Tell whether integers agree within 3 or 3 %, others within their last digit or 2 %."""
    a, b = (float(text.replace(",", "")) for text in (one, other))
    if one.lstrip("+-").replace(",", "").isdigit():
        return abs(a - b) <= max(3, 0.03 * abs(a))
    unit = min(map(last_digit, (one, other)))
    return abs(a - b) <= max(1.000001 * unit, 0.02 * abs(a))


def last_digit(text):
    """Return the unit of the last digit of a number."""
    mantissa, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def test_numbers_of_trained_models_are_compared_with_a_tolerance():
    code = "margin(0.95)"
    for one, other in [("128", "129"), ("1,000", "1029"), ("0.27", "0.28"), ("2.00", "2.03")]:
        assert agrees(f"fn {one} of 7", f"fn  {other} of 7", code)
        assert not agrees(f"fn {one} of 7", f"fn  {other} of 7")
    for one, other in [
        ("128", "135"),
        ("0.27", "0.29"),
        ("0.5", "0.7"),
        ("1e-9", "3"),
        ("-2", "2"),
    ]:
        assert not agrees(f"fn {one} of 7", f"fn {other} of 7", code)
    assert not agrees("at 0.95", "at 0.96", code)
    assert not agrees("fn 3", "fp 3", code)
    assert not agrees("fn 3", "fn 3 4", code)


def test_elapsed_times_are_not_compared():
    assert agrees("met (0.00 s)", "met (12.50 s)")
    assert not agrees("met (0.00 s)", "not met (0.00 s)")


# Python


def outcome(code, names):
    """Return what a block prints, or the last lines of its traceback."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "<example>", "exec"), names)  # noqa: S102 - our own text
    except Exception as error:
        return printed.getvalue() + "".join(traceback.format_exception_only(error))
    return printed.getvalue()


def check_examples(page, *, in_shell):
    """Run the examples of a page in order, in the current folder; shell blocks where wanted."""
    names: dict[str, object] = {}
    trained = False
    for example in EXAMPLE.finditer(page.read_text("utf-8")):
        if example["kind"] == "sh":
            for command in commands(example["code"]) if in_shell else ():
                run_command(command)
            continue
        trained = trained or TRAINS.search(example["code"]) is not None
        printed = outcome(example["code"], names)
        if example["shown"] is None:
            assert "Error" not in printed, printed
        elif not agrees(example["shown"], printed, example["code"] if trained else None):
            assert printed.rstrip() == example["shown"].rstrip(), example["code"]


def remember_training(train):
    """Train once for the same samples and settings; each caller gets a dialog of its own."""
    kept = {}

    def from_data(X, y, **settings):
        key = joblib.hash((X, y, settings))
        if key not in kept:
            kept[key] = train(X, y, **settings)
        return copy.deepcopy(kept[key])

    return from_data


_fitted: dict[str, dict[str, object]] = {}


@pytest.fixture(autouse=True)
def fitted_once(monkeypatch):
    """Fit forests and SVMs, which take most of the time, once for the same samples and settings."""
    for kind in (RandomForestClassifier, SVC):
        monkeypatch.setattr(kind, "fit", fitting_once(kind.fit))
    monkeypatch.setattr(SVC, "decision_function", deciding_once(SVC.decision_function))


def fitting_once(fit):
    @functools.wraps(fit)
    def fit_once(self, X, y, sample_weight=None):
        if isinstance(self, RandomForestClassifier) and not isinstance(self.random_state, int):
            return fit(self, X, y, sample_weight)  # a different forest each time
        key = joblib.hash((type(self).__name__, self.get_params(), X, y, sample_weight))
        if key not in _fitted:
            fit(self, X, y, sample_weight)
            _fitted[key] = vars(self).copy()
        else:
            vars(self).update(_fitted[key])
        return self

    return fit_once


def deciding_once(decide):
    kept: dict[str, object] = {}

    @functools.wraps(decide)
    def decision_function(self, X):
        key = joblib.hash((vars(self), X))
        if key not in kept:
            kept[key] = decide(self, X)
        return np.copy(kept[key])

    return decision_function


@pytest.fixture
def in_shell(full, request):
    """Tell whether shell blocks run: in the full run, unless only arithmetic is of interest."""
    return full and not request.config.getoption("--no-shell")


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=name_page(page),
            marks=pytest.mark.core if page in QUICK else pytest.mark.full,
        )
        for page in PAGES
        if page not in (README, TUTORIAL) and EXAMPLE.search(page.read_text("utf-8"))
    ],
)
def test_examples(page, tmp_path, monkeypatch, in_shell):
    monkeypatch.chdir(tmp_path)
    check_examples(page, in_shell=in_shell)


@pytest.mark.slow
@pytest.mark.core
def test_examples_of_readme_and_tutorial(tmp_path, monkeypatch, full, in_shell):
    """Both begin with the same committee, trained once; the tutorial is for the full run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Dialog, "from_data", remember_training(Dialog.from_data))
    for page in (README, TUTORIAL) if full else (README,):
        check_examples(page, in_shell=in_shell)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_page(page))
        for page in PAGES
        if page.parent.name in ("tutorials", "howto")
    ],
)
def test_a_tutorial_or_how_to_guide_is_short(page):
    assert len(page.read_text("utf-8").split()) <= 1500


def test_pages_with_code_are_found():
    kinds = [
        {found["kind"] for found in EXAMPLE.finditer(page.read_text("utf-8"))} for page in PAGES
    ]
    assert sum("python" in found for found in kinds) > 6
    assert sum("sh" in found for found in kinds) > 4


# Shell


ELSEWHERE = re.compile(r"10\.0\.0\.7|@db/")
"""Finds commands that need another machine; only their options are checked."""


def commands(block):
    """Return the commands of a shell block as lists of words, without comments."""
    lines = block.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_command(command):
    """Run a command of a page, or check it where running it would install or build."""
    program, *arguments = command
    if program == "pip":
        assert arguments[0] == "install"
        optional = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        extras = re.fullmatch(r"\.(?:\[(.*)\])?", arguments[1])
        assert extras, command
        named = filter(None, (extras[1] or "").split(","))
        assert set(named) <= set(optional["optional-dependencies"])
    elif program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    elif program == "export":  # the value is for readers to choose
        assert arguments[0].partition("=")[0] in margrave(["studio", "--help"]).stdout, command
    elif ELSEWHERE.search(" ".join(command)):
        options = {word.partition("=")[0] for word in arguments if word.startswith("--")}
        help_text = margrave([arguments[0], "--help"]).stdout
        assert all(re.search(rf"{option}\b", help_text) for option in options), command
    elif command[:2] == ["margrave", "studio"]:
        with serving(arguments[1:]):
            pass
    elif program == "curl":
        with serving([]) as url:
            base, _, token = url.partition("?token=")
            arguments = [re.sub(r"^http://127.0.0.1:\d+/", base, word) for word in arguments]
            arguments = [re.sub(r"Bearer .*", f"Bearer {token}", word) for word in arguments]
            curl = [shutil.which("curl") or skip_missing("curl"), "--fail", *arguments]
            done = subprocess.run(curl, capture_output=True, text=True, check=False)  # noqa: S603
            assert done.returncode == 0, done.stderr
    else:
        assert program == "margrave", command
        done = margrave(arguments)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def margrave(arguments):
    """Run the command in a wide terminal."""
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "margrave", *arguments],
        env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@contextlib.contextmanager
def serving(arguments):
    """Start the studio with a store in the current folder, and give its address."""
    studio = Studio(Path.cwd(), *arguments)
    try:
        yield studio.url
    finally:
        studio.stop()
