"""Real worker processes: joblib, a worker that is killed, a scheduler that is not there."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

from joblib import Parallel, delayed  # noqa: E402

from margrave import scale  # noqa: E402
from margrave.mam import MAMClassifier  # noqa: E402
from margrave.scale import cluster, rank_margin_weights  # noqa: E402
from margrave.scale._blocks import Blocks  # noqa: E402


@pytest.fixture(scope="module")
def two_workers():
    with cluster(n_workers=2, memory_limit="1GB") as client:
        yield client


def process_id(_):
    return os.getpid()


@pytest.mark.full
def test_parallel_work_goes_to_the_workers(two_workers):
    ids = Parallel(n_jobs=2)(delayed(process_id)(place) for place in range(8))
    assert os.getpid() not in ids
    assert set(ids) <= set(two_workers.run(os.getpid).values())


def killing_once(block, marker):
    """A block that kills the process which holds it, the first time."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return block
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def samples():
    rng = np.random.default_rng(0)
    y = (rng.random(6_000) < 0.4).astype(int)
    return np.clip(rng.normal(np.where(y, 0.2, -0.2)[:, None], 0.3, (6_000, 4)), -1, 1), y


def with_a_kill(X, marker):
    """The rows in twelve blocks, of which the seventh kills its worker when it is first read."""
    whole = da.from_array(X, chunks=(500, 4))
    killer = whole.blocks[6].map_blocks(killing_once, marker=marker, dtype=X.dtype, meta=X[:0])
    return da.concatenate([whole.blocks[:6], killer, whole.blocks[7:]])


@pytest.mark.full
def test_a_worker_is_killed_and_the_weights_are_the_same(two_workers, tmp_path):
    X, y = samples()
    expected = rank_margin_weights(da.from_array(X, chunks=(500, 4)), y)
    before = set(two_workers.run(os.getpid).values())
    found = rank_margin_weights(with_a_kill(X, tmp_path / "killed"), y)
    assert (tmp_path / "killed").exists()
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9)
    assert found.margin == pytest.approx(expected.margin, rel=1e-9)
    two_workers.wait_for_workers(2, timeout=30)
    assert set(two_workers.run(os.getpid).values()) != before


@pytest.mark.full
def test_a_worker_is_killed_and_the_direction_is_the_same(two_workers, tmp_path):
    X, y = samples()
    expected = scale.fit(MAMClassifier("linear"), da.from_array(X, chunks=(500, 4)), y)
    found = scale.fit(MAMClassifier("linear"), with_a_kill(X, tmp_path / "killed"), y)
    assert (tmp_path / "killed").exists()
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(found.threshold_, expected.threshold_, rtol=1e-9)


def test_an_error_in_a_block_comes_back(two_workers):
    def fails(block):
        raise ValueError("this block is bad")

    with pytest.raises(ValueError, match=r"^this block is bad$"):
        Blocks.of("who", da.ones((4, 1), chunks=(2, 1))).reduce(fails, list)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://nowhere.invalid:8786"])
def test_a_scheduler_that_is_not_there(address):
    start = time.monotonic()
    with (
        pytest.raises(ConnectionError, match=rf"{re.escape(address)}.*\b1\.5\b"),
        cluster(address, timeout=1.5),
    ):
        pass
    assert time.monotonic() - start < 10


def test_who_only_listens_is_no_scheduler():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(ConnectionError, match=rf"{re.escape(address)}.*\b1\.5\b"):
            cluster(address, timeout=1.5).__enter__()
    assert time.monotonic() - start < 10


def test_a_scheduler_without_workers_is_refused():
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty:
        address = empty.scheduler_address
        with pytest.raises(ConnectionError, match=rf"{re.escape(address)}.*\bworkers\b"):
            cluster(address, timeout=1).__enter__()


def test_an_address_is_connected_to(two_workers):
    with cluster(two_workers.scheduler.address) as client:
        assert da.ones(10, chunks=5).sum().compute() == 10
        assert client.id != two_workers.id


def test_workers_are_of_a_machine_or_of_an_address():
    with (
        pytest.raises(ValueError, match="n_workers"),
        cluster("tcp://127.0.0.1:1", n_workers=2),
    ):
        pass


@pytest.mark.full
def test_a_script_without_a_guard_is_refused(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from margrave.scale import cluster\nwith cluster(n_workers=1): pass\n")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True)  # noqa: S603
    assert ran.returncode == 1
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: ")
    assert 'if __name__ == "__main__":' in last
