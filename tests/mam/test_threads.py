"""How many threads, and that they give what one would."""

import threading
from time import sleep

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from margrave.mam import _threads
from margrave.mam._threads import in_threads, n_threads


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
def test_all_cores_unless_told_and_never_more_than_tasks(n_jobs, n_tasks, threads):
    assert n_threads(n_jobs, n_tasks) == threads


@pytest.mark.parametrize(
    ("limit", "threads"),
    [("3", 3), ("1", 1), ("64", 8), ("0", 8), ("", 8), ("many", 8), ("-2", 8), ("4,2", 8)],
)
def test_the_limit_of_openmp_is_kept_where_no_number_is_given(limit, threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert n_threads(None, 100) == threads
    assert n_threads(-1, 100) == threads
    assert n_threads(5, 100) == 5


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_come_in_the_order_of_the_tasks(threads):
    def work(task):
        sleep(0.01 if task % 3 == 0 else 0)  # later ones would be first
        return task * task

    assert list(in_threads(work, iter(range(20)), threads)) == [i * i for i in range(20)]


def test_threads_work_at_the_same_time():
    both = threading.Barrier(2, timeout=10)  # nobody passes it alone
    assert len(list(in_threads(lambda task: both.wait(), range(2), 2))) == 2


def test_one_thread_is_the_caller_itself():
    here = threading.get_ident()
    assert list(in_threads(lambda task: threading.get_ident(), range(3), 1)) == [here] * 3
    assert here not in list(in_threads(lambda task: threading.get_ident(), range(3), 2))


@pytest.mark.parametrize("threads", [1, 2])
def test_what_goes_wrong_in_a_thread_is_raised(threads):
    with pytest.raises(ZeroDivisionError):
        list(in_threads(lambda task: 1 // task, [1, 0, 2], threads))


def blas_threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_blas_has_one_thread_in_each_of_ours_and_its_own_again_afterwards():
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        assert max(before) == 2
        inside = list(in_threads(lambda task: blas_threads(), range(2), 2))
        assert inside == [[1] * len(before)] * 2
        assert blas_threads() == before
