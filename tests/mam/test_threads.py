"""How many threads, and that they give what one would."""

import os
import subprocess
import sys
import threading
from time import sleep

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from margrave.mam import _threads
from margrave.mam._threads import count_threads, map_threads, one_blas_thread


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch):
    monkeypatch.setattr(_threads, "cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize(
    ("n_jobs", "n_tasks", "threads"),
    [
        (None, 100, 8),
        (-1, 100, 8),
        (None, 3, 3),
        (1, 100, 1),
        (2, 100, 2),
        (20, 100, 20),
        (20, 5, 5),
        (4, 0, 1),
        (None, 0, 1),
    ],
)
def test_all_cores_by_default_and_never_more_than_tasks(n_jobs, n_tasks, threads):
    assert count_threads(n_jobs, n_tasks) == threads


@pytest.mark.parametrize(
    ("limit", "threads"),
    [("3", 3), ("1", 1), ("64", 8), ("0", 8), ("", 8), ("many", 8), ("-2", 8), ("4,2", 8)],
)
def test_the_limit_of_openmp_is_kept_without_a_number_of_threads(limit, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert count_threads(None, 100) == threads
    assert count_threads(-1, 100) == threads
    assert count_threads(5, 100) == 5


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_the_order_of_the_tasks(threads):
    def work(task):
        sleep(0.01 if task % 3 == 0 else 0)  # later ones would be first
        return task * task

    assert list(map_threads(work, range(20), threads)) == [i * i for i in range(20)]


def test_threads_work_at_the_same_time():
    both = threading.Barrier(2, timeout=10)  # nobody passes it alone
    assert len(list(map_threads(lambda task: both.wait(), range(2), 2))) == 2


@pytest.mark.parametrize(("n_jobs", "n_tasks", "threads"), [(None, 8, 8), (-1, 3, 3), (5, 5, 5)])
def test_there_are_as_many_threads_as_jobs_and_tasks_allow(n_jobs, n_tasks, threads):
    all_of_them = threading.Barrier(threads, timeout=10)
    done = list(map_threads(lambda task: all_of_them.wait(), range(n_tasks), n_jobs))
    assert sorted(done) == list(range(threads))


def test_without_tasks_there_is_nothing_to_do():
    assert list(map_threads(lambda task: task, [], None)) == []
    assert list(map_threads(lambda task: task, [], 2, small=True)) == []


def test_one_thread_is_the_caller_itself():
    here = threading.get_ident()
    assert list(map_threads(lambda task: threading.get_ident(), range(3), 1)) == [here] * 3
    assert here not in list(map_threads(lambda task: threading.get_ident(), range(3), 2))
    for n_jobs in (None, 2):
        little = map_threads(lambda task: threading.get_ident(), range(3), n_jobs, small=True)
        assert list(little) == [here] * 3


def blas_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        assert max(before) == 2
        yield before
        assert blas_threads() == before


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_goes_wrong_in_a_thread_is_raised(threads, small, two_blas_threads):
    with pytest.raises(ZeroDivisionError):
        list(map_threads(lambda task: 1 // task, [1, 0, 2], threads, small=small))
    assert blas_threads() == two_blas_threads


@pytest.mark.parametrize("threads", [1, 2])
def test_blas_has_one_thread_in_each_of_ours_and_its_own_again_afterwards(
    threads, two_blas_threads
):
    inside = list(map_threads(lambda task: blas_threads(), range(2), threads))
    assert inside == [[1] * len(two_blas_threads)] * 2
    assert blas_threads() == two_blas_threads


def test_blas_is_left_alone_where_there_is_little_to_do(two_blas_threads):
    inside = list(map_threads(lambda task: blas_threads(), range(2), 2, small=True))
    assert inside == [two_blas_threads] * 2


def test_what_is_left_early_gives_blas_its_threads_back(two_blas_threads):
    results = map_threads(lambda task: task, range(5), 2)
    assert blas_threads() == two_blas_threads
    assert next(results) == 0
    assert blas_threads() == [1] * len(two_blas_threads)
    results.close()
    assert blas_threads() == two_blas_threads


def alone(script):
    """What a script prints in a process in which nobody has ever set a limit, and BLAS has two."""
    start = """
import threading
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits
from margrave.mam._threads import one_blas_thread

def blas_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

before = blas_threads()
print(max(before) == 2)
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", start + script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    two, *rest = done.stdout.split()
    if two == "False":
        pytest.skip("a machine with one core")
    return rest


def test_calls_from_two_threads_give_blas_its_threads_back():
    """threadpoolctl lets only the thread that has set a limit take it back while it lives."""
    script = """
import numpy as np
from margrave.mam import _sums, kernel_sum

_sums.SMALL = 0
X = np.random.default_rng(0).normal(size=(700, 3))
expected = kernel_sum(X, X, X, n_jobs=1).tolist()
end = threading.Event()
right = []

def call():
    for _ in range(5):
        right.append(kernel_sum(X, X, X, n_jobs=2).tolist() == expected)
    end.wait(10)

threads = [threading.Thread(target=call) for _ in range(3)]
for thread in threads:
    thread.start()
while len(right) < 15:
    threads[0].join(0.01)
print(all(right))
print(blas_threads() == before)  # all three are still alive
end.set()
for thread in threads:
    thread.join(10)
print(blas_threads() == before)
"""
    assert alone(script) == ["True"] * 3


def test_other_threads_may_limit_blas_after_a_call():
    script = """
with one_blas_thread():
    print(blas_threads() == [1] * len(before))

def limited():
    with threadpool_limits(1, "blas"):
        print(blas_threads() == [1] * len(before))

thread = threading.Thread(target=limited)
thread.start()
thread.join(10)
print(blas_threads() == before)
"""
    assert alone(script) == ["True"] * 3


def test_calls_within_calls_give_blas_its_threads_back(two_blas_threads):
    def work(task):
        inner = list(map_threads(lambda task: blas_threads(), range(3), 2))
        return inner, blas_threads()

    single = [1] * len(two_blas_threads)
    assert list(map_threads(work, range(4), 2)) == [([single] * 3, single)] * 4
    assert blas_threads() == two_blas_threads
    with pytest.raises(KeyError), one_blas_thread(), one_blas_thread():
        raise KeyError
    assert blas_threads() == two_blas_threads
