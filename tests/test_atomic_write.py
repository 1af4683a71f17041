"""What the front ends write: links are followed, permissions kept, and only files replaced."""

import os
import stat
import subprocess
import sys

import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from margrave import datasets
from margrave._atomic_write import atomic_write
from margrave.app.report import write_page
from margrave.app.tables import write_table
from margrave.steer import Dialog

pytestmark = pytest.mark.skipif(os.name == "nt", reason="permissions and pipes of POSIX")
FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})


def small_dialog():
    X, y = datasets.load("pima", return_X_y=True)
    return Dialog(LogisticRegression(max_iter=500).fit(X[:300], y[:300]), X[300:], y[300:])


WRITERS = {
    "table.csv": lambda path: write_table(FRAME, path),
    "table.parquet": lambda path: write_table(FRAME, path),
    "report.html": lambda path: write_page("<p>report", path),
    "dialog.skops": lambda path: small_dialog().save(path),
    "model.onnx": lambda path: small_dialog().model.export_onnx(path),
}


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_keeps_its_permissions_and_a_new_one_follows_the_umask(tmp_path, umask, name):
    write, path = WRITERS[name], tmp_path / name
    write(path)
    assert mode_of(path) == 0o640
    for mode in (0o600, 0o666):
        path.write_bytes(b"old")
        path.chmod(mode)
        write(path)
        assert path.stat().st_size > 3
        assert mode_of(path) == mode
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed(tmp_path, name, exists):
    folder, link = tmp_path / "kept", tmp_path / name
    folder.mkdir()
    target = folder / name
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(target)
    WRITERS[name](link)
    assert link.readlink() == target
    assert target.stat().st_size > 3
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted(["kept", name])
    assert [one.name for one in folder.iterdir()] == [name]


def test_a_file_is_private_while_it_is_written_if_the_old_one_is(tmp_path):
    path = tmp_path / "secret.csv"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic_write(path) as temporary:
        assert mode_of(temporary) == 0o600


@pytest.mark.parametrize("name", WRITERS)
def test_only_a_regular_file_is_replaced(tmp_path, name):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=name):
        WRITERS[name](pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("links", [["one.csv"], ["one.csv", "two.csv"]])
def test_a_link_to_itself_is_left_alone(tmp_path, links):
    for link, target in zip(links, [*links[1:], links[0]], strict=True):
        (tmp_path / link).symlink_to(target)
    with pytest.raises(OSError, match=r"one\.csv"):
        write_table(FRAME, tmp_path / "one.csv")
    assert sorted(one.name for one in tmp_path.iterdir()) == links
    assert all(one.is_symlink() for one in tmp_path.iterdir())


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "pipe.csv", "loop.csv", "."])
def test_the_command_refuses_at_once_what_it_cannot_replace(tmp_path, place):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    command = [sys.executable, "-m", "margrave", "data", "iris", "--out", place]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert ran.returncode == 2
    assert ran.stdout == ""
    (line,) = ran.stderr.splitlines()
    assert "--out" in line
    assert place in line
    assert stat.S_ISFIFO((tmp_path / "pipe.csv").stat().st_mode)


def test_a_read_only_file_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write any file
    with pytest.raises(PermissionError, match="table"):
        write_table(FRAME, path)
    assert path.read_text() == "old"


@pytest.mark.parametrize("old", [None, "old"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, old):
    path = tmp_path / "table.csv"
    if old is not None:
        path.write_text(old)

    def write_half():
        with atomic_write(path) as temporary:
            temporary.write_text("half of the")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [one.read_text() for one in tmp_path.iterdir()] == ([] if old is None else [old])


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    path, synced = tmp_path / "table.csv", []

    def sync(file):
        assert not path.exists()
        synced.append(os.fstat(file).st_ino)

    monkeypatch.setattr(os, "fsync", sync)
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert synced == [path.stat().st_ino]
