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
import signal
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

from margrave.steer import Dialog

ROOT = Path(__file__).resolve().parents[1]
README, STEERING = ROOT / "README.md", ROOT / "docs/guide/steering.md"
PAGES = [README, ROOT / "docs/index.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
QUICK = [ROOT / f"docs/guide/{name}.md" for name in ("start", "mam", "pairs", "votes", "scores")]
EXAMPLE = re.compile(
    r"```(?P<kind>python|sh)\n(?P<code>.*?)```\n(?:\s*```(?:text)?\n(?P<shown>.*?)```)?",
    re.DOTALL,
)
TRAINS = re.compile(r"\.fit\(|from_data\(|bias_variance\(|cross_val_score\(")
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d*)?(?:e[-+]?\d+)?")


# Comparing


def agrees(shown, printed, *, exact):
    """Tell whether an example printed what its page shows."""
    if exact:
        return shown.rstrip() == printed.rstrip()
    texts = [re.sub(r"\s", "", NUMBER.sub("#", text)) for text in (shown, printed)]
    if texts[0] != texts[1]:
        return False
    return all(map(near, NUMBER.findall(shown), NUMBER.findall(printed)))


def near(one, other):
    """Tell whether numbers agree within 3 units of the last digit or 3 % (2 % with decimals)."""
    a, b = (float(text.replace(",", "")) for text in (one, other))
    decimals = max(len(text.partition("e")[0].partition(".")[2]) for text in (one, other))
    relative = 0.02 if decimals else 0.03
    return abs(a - b) <= max(3.000001 * 10.0**-decimals, relative * abs(a))


def test_numbers_of_trained_models_are_compared_with_a_tolerance():
    for one, other in [("128", "129"), ("1,000", "1029"), ("0.27", "0.3"), ("-2.00", "-2.03")]:
        assert agrees(f"fn {one} of 7", f"fn  {other} of 7", exact=False)
        assert not agrees(f"fn {one} of 7", f"fn  {other} of 7", exact=True)
    for one, other in [("128", "135"), ("1,000", "1031"), ("0.27", "0.31"), ("-2.00", "2.00")]:
        assert not agrees(f"fn {one} of 7", f"fn {other} of 7", exact=False)
    assert not agrees("fn 3", "fp 3", exact=False)
    assert not agrees("fn 3", "fn 3 4", exact=False)


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
    for example in EXAMPLE.finditer(page.read_text()):
        if example["kind"] == "sh":
            for command in commands(example["code"]) if in_shell else ():
                run_command(command, Path.cwd())
            continue
        trained = trained or TRAINS.search(example["code"]) is not None
        printed = outcome(example["code"], names)
        if example["shown"] is None:
            assert "Error" not in printed, printed
        elif not agrees(example["shown"], printed, exact=not trained):
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=pytest.mark.core if page in QUICK else ())
        for page in PAGES
        if page not in (README, STEERING)
    ],
)
def test_examples(page, tmp_path, monkeypatch, full):
    monkeypatch.chdir(tmp_path)
    check_examples(page, in_shell=full)


@pytest.mark.slow
@pytest.mark.core
def test_examples_of_readme_and_steering(tmp_path, monkeypatch, full):
    """Both begin with the same committee, which is trained once; steering is for the full run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Dialog, "from_data", remember_training(Dialog.from_data))
    for page in (README, STEERING) if full else (README,):
        check_examples(page, in_shell=full)


def test_pages_with_code_are_found():
    kinds = [{found["kind"] for found in EXAMPLE.finditer(page.read_text())} for page in PAGES]
    assert sum("python" in found for found in kinds) > 6
    assert sum("sh" in found for found in kinds) > 4


# Shell


ELSEWHERE = re.compile(r"10\.0\.0\.7|@db/")
"""Commands that name a machine of the reader's: their options are checked."""


def commands(block):
    """Return the commands of a shell block as lists of words, without comments."""
    lines = block.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_command(command, folder):
    """Run a command of a page, or check it where running it would install or build."""
    program, *arguments = command
    if program == "pip":
        assert arguments[0] == "install"
        optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = re.fullmatch(r"\.(?:\[(.*)\])?", arguments[1])
        assert extras, command
        named = filter(None, (extras[1] or "").split(","))
        assert set(named) <= set(optional["optional-dependencies"])
    elif program == "make":
        assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    elif ELSEWHERE.search(" ".join(command)):
        options = {word.partition("=")[0] for word in arguments if word.startswith("--")}
        help_text = margrave([arguments[0], "--help"], folder).stdout
        assert all(re.search(rf"{option}\b", help_text) for option in options), command
    elif command[:2] == ["margrave", "studio"]:
        with serving(arguments, folder):
            pass
    elif program == "curl":
        with serving(["studio"], folder) as url:
            arguments = [re.sub(r"^http://127.0.0.1:\d+/", url, word) for word in arguments]
            curl = [shutil.which("curl") or skip_missing("curl"), "--fail", *arguments]
            done = subprocess.run(curl, capture_output=True, text=True, check=False)  # noqa: S603
            assert done.returncode == 0, done.stderr
    else:
        assert program == "margrave", command
        done = margrave(arguments, folder)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def environment(folder):
    """Return variables for a user with an empty home, a wide terminal and no browser."""
    return {**os.environ, "HOME": str(folder), "COLUMNS": "200", "BROWSER": "true"}


def margrave(arguments, folder):
    return subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "margrave", *arguments],
        cwd=folder, env=environment(folder), capture_output=True, text=True, check=False,
    )  # fmt: skip


@contextlib.contextmanager
def serving(arguments, folder):
    """Start the studio and give its address; it ends as by Ctrl-C."""
    store = folder / "studio"
    store.mkdir(exist_ok=True)
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "margrave", *arguments, "--store", f"sqlite:///{store}/store.db"],
        cwd=folder, env=environment(folder), stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        address = re.search(r"http://\S+/", line)
        assert address, line
        yield address[0]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
