import gc

import pytest
from benchmarks.__main__ import main
from benchmarks._timing import Comparison, compare

from benchmarks import command, foundation, mam, steer, studio


@pytest.fixture(autouse=True)
def little_garbage():
    """All that other tests have loaded is not looked through before every job."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def test_a_ratio_up_to_the_target_meets_it():
    assert Comparison("job", "peer", ours=1.5, theirs=1.0, target=1.5).met
    assert not Comparison("job", "peer", ours=1.6, theirs=1.0, target=1.5).met


def test_both_jobs_run_as_often_and_the_best_counts():
    calls = []
    one = compare("job", lambda: calls.append(0), "peer", lambda: calls.append(1), 1.0, repeats=3)
    assert calls == [0, 1] * 3
    assert min(one.ours, one.theirs) > 0


@pytest.mark.full
@pytest.mark.slow
def test_the_table_has_a_row_for_every_target(capsys, monkeypatch):
    """At this size times mean little: it runs, and the exit code reports a miss."""
    monkeypatch.setattr(foundation, "extra_import_seconds", lambda: 1.0)
    monkeypatch.setattr(mam, "N_COMPONENTS", 100)
    for one in (command, steer, studio):
        monkeypatch.setattr(one, "COMMITTEE", ["logistic", "qda"])
    assert main(["--quick"]) == 1
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    head, *jobs = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert {len(cells) for cells in jobs} == {len(head)}
    assert len({job for job, *_ in jobs}) == len(jobs)
    measured = [float(ours) for _, ours, *_ in jobs if ours]  # a peer may not be installed
    assert len(measured) > 30
    assert min(measured) >= 0
    assert rows[-1].endswith("NO |")


@pytest.mark.full
@pytest.mark.slow
def test_import_time_is_measured_in_fresh_interpreters():
    assert 0 < foundation.extra_import_seconds(repeats=1) < 5
