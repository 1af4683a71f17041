"""The audit reports what fails, and a small version of each part holds."""

import signal
import time

import pytest
from tools.audit import __main__ as audit
from tools.audit._attacks import Attack
from tools.audit._children import Child
from tools.audit.inputs import CALLS, ESTIMATORS, OTHERS, blame

from margrave import fuse, mam, martingale, members, select, steer


@pytest.mark.core
def test_a_child_survives_what_its_jobs_do():
    with Child(signal.raise_signal, seconds=60) as child:
        assert "SIGSEGV" in child.run(signal.SIGSEGV)
        assert "SIGABRT" in child.run(signal.SIGABRT)
    with Child(time.sleep, seconds=0.5, memory=1 << 30) as child:
        assert "0.5 s" in child.run(600)
        assert child.run(0) is None
    with Child(bytes, seconds=60, memory=1 << 30) as child:
        assert "exited with 1" in child.run(8 << 30)


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
        ("[np.float64(1) / 0 for _ in range(30)]", "30 warnings"),
    ],
)
def test_only_clear_errors_are_accepted(line, blamed):
    found = blame(line)
    assert found is None if blamed is None else blamed in found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.core if name in ("inputs", "model_files") else ())
        for name in audit.PARTS
    ],
)
def test_a_small_version_of_each_part_holds(name):
    found = list(audit.part(name)(0, audit.SMALL[name]))
    assert all(attack.count for attack in found)
    if name == "load":  # how long reads and cancellations take depends on what else runs here
        found = [attack for attack in found if "streams open at once" in attack.name]
        assert found
    assert [failure for attack in found for failure in attack.failures] == []
