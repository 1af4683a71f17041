"""The faults of `make faults` can be planted, and its report says which survive."""

import ast
import subprocess
import sys

import pytest
from tools.faults import __main__ as faults
from tools.faults._fault import PACKAGE, ROOT
from tools.faults._mutants import N_DRAWN, all_mutants, draw_mutants, find_mutants
from tools.faults.planted import planted_faults


@pytest.mark.core
def test_every_planted_fault_changes_a_file_that_can_still_be_parsed():
    planted = planted_faults()
    assert len(planted) == len({fault.name for fault in planted}) >= 45
    for fault in planted:
        assert fault.text != (PACKAGE / fault.file).read_text("utf-8")
        ast.parse(fault.text)
        assert fault.tests
        for test in fault.tests:
            assert (ROOT / test).is_file()


def test_a_text_that_occurs_twice_or_not_at_all_is_refused(monkeypatch):
    for old in ("import", "there is no such text"):
        planted = (("wrong", "__init__.py", old, "", "test_faults.py"),)
        monkeypatch.setattr("tools.faults.planted.FAULTS", planted)
        with pytest.raises(ValueError, match=r"__init__\.py"):
            planted_faults()


@pytest.mark.core
def test_mutants_are_different_can_be_parsed_and_depend_on_the_seed_only():
    mutants = all_mutants()
    drawn = draw_mutants(mutants)
    assert len(drawn) == len({mutant.name for mutant in drawn}) == N_DRAWN
    assert len({(mutant.file, mutant.text) for mutant in drawn}) == N_DRAWN
    assert draw_mutants(mutants[::-1]) == drawn
    assert draw_mutants(mutants, seed=1) != drawn
    for mutant in drawn[::8]:
        ast.parse(mutant.text)


SOURCE = '''
def f(a, b=1):
    """Text 1 < 2."""
    c = 0
    if a < b and not a:
        c += min(a, 2)  # a comment
    elif a:
        raise ValueError(f"{a + 1}")
    return c

def describe_it(a):
    return a + 1
'''


def test_all_kinds_of_changes_are_made_and_texts_stay():
    changed = {name.removeprefix("f: ") for name, _ in find_mutants(SOURCE)}
    assert changed == {
        "def f(a, [b=1) -> b=2)]",
        "c = [0 -> 1]",
        "removed: c = 0",
        "if a [< -> <=] b and (not a)",
        "if a [< -> >=] b and (not a)",
        "if a < b [and (not a) -> or not a]",
        "if a < b and [(not a) -> a]",
        "if [a < b and (not a) -> not (a < b and (not a))]",
        "c [+= -> -=] min(a, 2)",
        "c += [min(a, -> max(a,] 2)",
        "c += min(a, [2) -> 3)]",
        "removed: c += min(a, 2)",
        "if [a -> not a]",
    }
    for _, text in find_mutants(SOURCE):
        ast.parse(text)


def test_the_report_counts_and_complains():
    found = {
        "planted": {"p": ["an import: a file", 1.0, ""], "q": ["", 2.0, ""]},
        "mutants": {f"m{i}": ["" if i < 2 else "tests/a.py::test", 1.0, ""] for i in range(10)},
    }
    explanations = {"m0": "no difference", "m5": "out of date", "gone": "out of date"}
    text, complaints = faults.write_report(found, explanations, found)
    assert text.startswith("planted: 1 of 2 noticed, 1 by an import; mutants: 8 of 10 noticed")
    assert complaints == [
        "planted: too many survive",
        "survives: q",
        "mutants: too many survive",
        "survives: m1",
        "explained, but noticed: m5",
        "explained, but not drawn: gone",
    ]


def test_how_many_survive_is_judged_only_when_all_have_run():
    found = {"planted": {}, "mutants": {"m0": ["", 1.0, ""]}}
    explanations = {"m0": "no difference"}
    for n_drawn, expected in ((1, ["mutants: too many survive"]), (2, [])):
        drawn = {"planted": ["p"], "mutants": [f"m{i}" for i in range(n_drawn)]}
        assert faults.write_report(found, explanations, drawn)[1] == expected


def test_mutants_of_another_seed_are_only_listed():
    mutants = {"m0": ["", 1.0, ""], "m1": ["tests/a.py::test", 1.0, ""]}
    found = {"planted": {"p": ["", 1.0, ""]}, "mutants": mutants}
    explanations = {"gone": "of seed 0", "m1": "of seed 0"}
    text, complaints = faults.write_report(found, explanations, found, ["planted"])
    assert "`m0`" in text
    assert complaints == ["planted: too many survive", "survives: p"]


RUN = """
import os, select
from tools.faults._fault import PACKAGE, Fault
from tools.faults._run import run_tests
text = (PACKAGE / "_labels.py").read_text("utf-8")
test = ("tests/test_labels.py",)
read, held = os.pipe()
outlives = f"import subprocess; kept = subprocess.Popen(['sleep', '600'], pass_fds=[{held}])"
texts = [text, text + "1 / 0", text + outlives]
runs = [Fault(str(i), "_labels.py", changed, test) for i, changed in enumerate(texts)]
noticed = sorted((fault.name, bool(test)) for fault, test, _ in run_tests(runs, {}))
os.close(held)
print(noticed, bool(select.select([read], [], [], 60)[0]))
"""


@pytest.mark.full
def test_a_run_tells_which_test_fails_and_ends_all_processes():
    """In a process of its own: its children must not know the package yet."""
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    expected = "[('0', False), ('1', True), ('2', False)] True"
    assert done.stdout.splitlines()[-1:] == [expected], done.stderr
