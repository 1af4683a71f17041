"""The audit reports what fails, and a small version of each part holds."""

import os
import signal
import time

import pytest
from tools.audit import __main__ as audit
from tools.audit._attacks import Attack
from tools.audit._children import Child
from tools.audit.inputs import CALLS, ESTIMATORS, OTHERS, blame

from margrave import fuse, mam, martingale, members, select, steer


def end_oddly(how):
    """A job for a child: it holds, fails, crashes, does not end, or takes too much memory."""
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "loop":
        time.sleep(600)
    if how == "memory":
        try:
            return f"got {len(bytearray(8 << 30))} bytes"
        except MemoryError:
            return "no memory"
    return None if how == "hold" else how


@pytest.mark.core
def test_a_child_survives_what_its_jobs_do():
    with Child(end_oddly, seconds=20, memory=1 << 30) as child:
        assert child.run("hold") is None
        assert child.run("wrong") == "wrong"
        assert "SIGSEGV" in child.run("crash")
        assert child.run("memory") == "no memory"
    with Child(end_oddly, seconds=0.2) as child:
        assert "0.2 s" in child.run("loop")
        assert child.run("hold") is None


@pytest.mark.parametrize(("failures", "code"), [([], 0), (["it broke"], 1)])
def test_the_exit_code_tells_whether_all_held(monkeypatch, capsys, failures, code):
    def part(name):
        return lambda seed, count: iter([Attack(f"{name} {seed} {count}", "ok", 3, list(failures))])

    monkeypatch.setattr(audit, "part", part)
    assert audit.main(["kills", "load", "--seed", "7", "--count", "5"]) == code
    printed = capsys.readouterr().out
    assert "kills 7 5" in printed
    assert "load 7 5" in printed
    assert ("it broke" in printed) == bool(failures)


def test_an_unknown_part_is_refused():
    with pytest.raises(SystemExit):
        audit.main(["nonsense"])


def test_every_public_estimator_and_function_is_attacked():
    calls = " ".join(call for call, _ in CALLS)
    kinds = {type(one).__name__ for one in (*ESTIMATORS, *OTHERS)}
    for module in (fuse, mam, martingale, members, select, steer):
        for name in module.__all__:
            if name.endswith("Classifier"):
                assert name in kinds
            elif name.islower() and name not in ("default_members", "make_logistic_quantile"):
                assert name in calls


@pytest.mark.parametrize(
    ("line", "blamed"),
    [
        ("mam.MAMClassifier().fit(X, y)", None),
        ("mam.MAMClassifier().fit(X, None)", None),
        ("[].pop()", "IndexError"),
        ("np.ones(3) + np.ones(4)", "broadcast"),
        ("np.linalg.inv(np.zeros((2, 2)))", "LinAlgError"),
        ("[np.float64(1) / 0 for _ in range(9)]", "9 warnings"),
    ],
)
def test_only_clear_errors_are_accepted(line, blamed):
    found = blame(line)
    assert found is None if blamed is None else blamed in found


@pytest.mark.core
@pytest.mark.slow
@pytest.mark.parametrize("name", audit.PARTS)
def test_a_small_version_of_each_part_holds(name):
    found = list(audit.part(name)(0, audit.SMALL[name]))
    assert all(attack.count for attack in found)
    assert [failure for attack in found for failure in attack.failures] == []
