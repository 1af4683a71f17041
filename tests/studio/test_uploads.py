"""Files that users upload, most of them made to do harm, and what is said of a good one."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave import datasets
from margrave.app.tables import csv_text
from margrave.studio import Settings, facts, open_studio, uploads
from margrave.studio._parse_worker import work
from margrave.studio.facts import facts_of
from margrave.studio.settings import Limits
from margrave.studio.uploads import (
    ENDINGS,
    UploadError,
    UploadStoppedError,
    display_name,
    frame_of,
    parquet_of,
    parse_upload,
)
from margrave.table._kinds import guess_kind

PATIENT = Limits(parse_seconds=300)
CSV = b"""size,from,sent,class
12,shop,2024-01-01,spam
,friend,2024-01-02,ham
7.5,=cmd|' /C calc'!A0,2024-02-03,ham
8,shop,2024-02-04,spam
"""


def parquet(columns, **options):
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def program(code):
    """A small program in the place of the worker; it starts at once."""
    return [sys.executable, "-I", "-S", "-c", code]


def refusal(data, name="t.csv", limits=PATIENT, **more):
    with pytest.raises(UploadError) as caught:
        parse_upload(data, name, limits, **more)
    return caught.value


def worked(folder, data, ending=".csv", **limits):
    """What the worker answers, without its process."""
    request = {"rows": 1000, "columns": 100, "unpacked": 2**20, "memory": 2**31}
    request |= {"table_bytes": 2**29}
    request |= {"encoding": None, "decimal": None}
    request |= {"file": f"upload{ending}", "ending": ending} | limits
    (folder / request["file"]).write_bytes(data)
    return work(folder, request)


# The whole way, in a process


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Uploads that are read at once by real workers."""
    many = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(100_000, dtype=np.int32)), pa.array(["x" * 20_000])
    )
    bomb = parquet({"a": many}, store_schema=False)
    assert len(bomb) < 10_000  # and 2 GB once it is read
    small = Limits(parse_seconds=300, parse_memory=256 * 2**20)
    asked = {
        "good": lambda: parse_upload(CSV, "../../mail\n\x1b[31m.CSV", PATIENT),
        "bomb": lambda: refusal(bomb, "bomb.parquet", small),
    }
    own = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(tempfile, "tempdir", str(own))
        waiting = {name: pool.submit(one) for name, one in asked.items()}
        found = {name: one.result() for name, one in waiting.items()}
    assert not list(own.iterdir())
    return found


def test_a_table_comes_back(runs):
    parsed = runs["good"]
    assert parsed.name == "mail[31m.CSV"
    frame = frame_of(parsed.parquet)
    assert frame["from"].tolist() == ["shop", "friend", "=cmd|' /C calc'!A0", "shop"]
    assert "'=cmd" in csv_text(frame)
    assert parsed.facts == facts_of(frame)
    assert parsed.facts == json.loads(json.dumps(parsed.facts))


def test_a_file_that_takes_all_memory_when_it_is_read(runs):
    assert "bomb.parquet" in str(runs["bomb"])
    assert "256 MiB" in str(runs["bomb"])
    assert runs["bomb"].status == 413


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_a_worker_ends_with_its_parent_and_leaves_nothing(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    os.mkfifo(folder / "upload.csv")
    request = {"file": "upload.csv", "ending": ".csv", "rows": 9, "columns": 9}
    request |= {"table_bytes": 99}
    request |= {"unpacked": 99, "memory": 2**31, "seconds": 300, "encoding": None, "decimal": None}
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", "-m", "margrave.studio._parse_worker", json.dumps(request)],
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        stdin=subprocess.PIPE,
    ) as worker:
        try:
            with (folder / "upload.csv").open("wb"):  # waits until the worker reads it
                worker.stdin.close()  # as when the parent is killed
                assert worker.wait(timeout=120) == 1
        finally:
            worker.kill()
    assert not folder.exists()


# A process that does not do what it should


@pytest.fixture
def hanging(tmp_path):
    """A program that tells its number and folder, and then waits for ever."""
    started = tmp_path / "started"
    code = f"""
import os, sys
with open({str(started)!r} + "x", "w") as file:
    file.write(str(os.getpid()) + "\\n" + os.getcwd())
os.rename({str(started)!r} + "x", {str(started)!r})
sys.stdin.read()
"""
    return program(code), started


def assert_gone(started):
    number, folder = started.read_text().split("\n")
    with pytest.raises(ProcessLookupError):
        os.kill(int(number), 0)
    assert not Path(folder).exists()


def test_a_worker_that_hangs_is_killed(hanging):
    command, started = hanging
    turns = threading.Semaphore(1)
    limits = Limits(parse_seconds=2)
    error = refusal(CSV, "slow.csv", limits, command=command, turns=turns)
    assert re.findall(r"slow\.csv|\d+", str(error)) == ["slow.csv", "2"]
    assert error.status == 413
    assert turns.acquire(blocking=False)
    if started.exists():  # else it was killed before it had started
        assert_gone(started)


def test_a_worker_is_killed_when_its_user_has_gone(hanging):
    command, started = hanging
    error = refusal(CSV, "slow.csv", command=command, stopped=started.exists)
    assert isinstance(error, UploadStoppedError)
    assert "slow.csv" in str(error)
    assert_gone(started)


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.kill(os.getpid(), 11)",
        "import os; os.kill(os.getpid(), 9)",
        "raise SystemExit(3)",
        "pass",
        "open('answer.json', 'w').write('{')",
        "open('answer.json', 'w').write('[]')",
        "open('answer.json', 'w').write('{\"facts\": {}}')",
    ],
)
def test_a_worker_that_dies(code, caplog):
    error = refusal(CSV, "t.csv", Limits(), command=program(code))
    assert "t.csv" in str(error)
    assert "2 GiB" in str(error)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of time")
def test_a_worker_that_uses_up_its_time():
    command = program("import os, signal; os.kill(os.getpid(), signal.SIGXCPU)")
    assert "60" in str(refusal(CSV, "t.csv", Limits(), command=command))


def test_a_worker_sees_nothing_of_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("MARGRAVE_SECRET", "the-token")
    seen = tmp_path / "seen.json"
    code = f"""
import json, os, sys
seen = dict(env=dict(os.environ), args=sys.argv[1:], files=sorted(os.listdir(".")),
            mode=os.stat(".").st_mode & 0o777, stdin=os.fstat(0).st_size)
json.dump(seen, open({str(seen)!r}, "w"))
"""
    refusal(CSV, "my-private-name.csv", command=program(code))
    found = json.loads(seen.read_text())
    assert "the-token" not in seen.read_text()
    assert "my-private-name" not in seen.read_text()
    assert not {"PATH", "USER", "MARGRAVE_SECRET"} & set(found["env"])
    assert found["files"] == ["lock", "log.txt", "upload.csv"]
    assert found["mode"] == 0o700
    assert found["env"]["HOME"] != str(Path.home())


# What a killed studio leaves


PARSE = """
import sys
from margrave.studio.settings import Limits
from margrave.studio.uploads import parse_upload
parse_upload(b"a,b\\n1,2\\n", "t.csv", Limits(parse_seconds=300), command=sys.argv[1:])
"""


@pytest.fixture
def restart(tmp_path, monkeypatch):
    """Start a studio that has its temporary folders in a folder of the test, and end it."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    settings = Settings.of(store=f"sqlite:///{tmp_path / 'studio.db'}")
    return lambda: open_studio(settings).close()


def test_the_next_studio_removes_the_uploads_of_a_killed_one(tmp_path, hanging, restart):
    command, started = hanging
    folder = tmp_path / "tmp"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), TMPDIR=str(folder))
    with subprocess.Popen([sys.executable, "-c", PARSE, *command], env=environment) as studio:  # noqa: S603
        while not started.exists():
            assert studio.poll() is None
        (upload,) = folder.glob("*/upload.csv")
        restart()  # of another studio: the first one still runs
        assert upload.exists()
        studio.kill()
    restart()
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_studio_removes_no_other_folders(tmp_path, restart):
    folder, other = tmp_path / "tmp", tmp_path / "other"
    left = [other, folder / "margrave-studio-without", folder / "another"]
    for one in left:
        one.mkdir()
        (one / "mine.csv").write_text("a")
    (other / "lock").write_text("")
    (folder / "another" / "lock").write_text("")
    (folder / "margrave-studio-link").symlink_to(other)
    (folder / "margrave-studio-without" / "lock").symlink_to(other / "lock")
    restart()
    assert all((one / "mine.csv").read_text() == "a" for one in left)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("upload.csv: needs rows.", "x.csv: needs rows."),
        ("upload.csv, line 2: needs upload.csv.", "x.csv, line 2: needs upload.csv."),
        ("could not be read.", "x.csv: could not be read."),
    ],
)
def test_messages_name_the_users_file(message, shown):
    code = f"open('answer.json', 'w').write({json.dumps({'error': message, 'status': 413})!r})"
    error = refusal(CSV, "../../x.csv", command=program(code))
    assert (str(error), error.status) == (shown, 413)


def test_a_message_is_short():
    answer = json.dumps({"error": "upload.csv: these repeat: " + "'a', " * 10_000})
    code = f"open('answer.json', 'w').write({answer!r})"
    assert len(str(refusal(CSV, command=program(code)))) == 500


def test_files_wait_for_their_turn():
    none = threading.Semaphore(0)
    error = refusal(CSV, limits=Limits(parse_seconds=1), turns=none)
    assert error.status == 429
    assert isinstance(refusal(CSV, turns=none, stopped=lambda: True), UploadStoppedError)


# What is refused before a process is started


@pytest.mark.parametrize("as_a", ["bytes", "file", "path"])
def test_a_file_that_is_too_large(tmp_path, as_a):
    path = tmp_path / "given"
    path.write_bytes(b"x" * 1001)
    limits = Limits(upload_bytes=1000)
    with path.open("rb") as file:
        data = {"bytes": path.read_bytes(), "file": file, "path": path}[as_a]
        error = refusal(data, "t.csv", limits, command=["never-started"])
    assert error.status == 413
    assert "t.csv" in str(error)


@pytest.mark.parametrize(
    "name", ["t.exe", "t", "", "t.csv/", "t.csv\n", "x.csv.exe", "t.xlsx", "."]
)
def test_endings(name):
    error = refusal(CSV, name, command=["never-started"])
    assert error.status == 415
    assert [ending for ending in ENDINGS if ending not in str(error)] == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../x.csv", "x.csv"),
        ("C:\\Users\\me\\x.csv", "x.csv"),
        ("con.csv", "con.csv"),
        ("a\r\nb\tc\0.csv", "abc.csv"),
        ("\u202evsc.exe", "vsc.exe"),
        ("  a   b .csv", "a b .csv"),
        ("größe 日本.csv", "größe 日本.csv"),
        ("/", "table"),
        ("x" * 300 + ".csv.gz", "x" * 92 + "….csv.gz"),
        ("x" * 300, "x" * 99 + "…"),
        ("\ud800.csv", ".csv"),
    ],
)
def test_names_that_are_shown(name, shown):
    assert display_name(name) == shown


@given(st.text())
def test_any_name_can_be_shown(name):
    shown = display_name(name)
    assert 0 < len(shown) <= 100
    assert shown.isprintable()
    assert not set(shown) & set("/\\")


# What the worker refuses


def test_all_endings_are_read(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    for ending in ENDINGS:
        text = frame.to_csv(index=False).encode()
        data = gzip.compress(text) if ending.endswith(".gz") else text
        answer = worked(tmp_path, parquet_of(frame) if "p" in ending else data, ending)
        assert answer["facts"]["rows"] == 2
        pd.testing.assert_frame_equal(frame_of((tmp_path / "table.parquet").read_bytes()), frame)


EUROPE = "größe;von;art\n1,5;café;spam\n1.234,5;Freund;ham\n".encode("cp1252")


def test_other_encodings_and_decimal_marks_are_offered(tmp_path):
    answer = worked(tmp_path, EUROPE)
    assert answer["code"] == "text_format"
    fields = answer["fields"]
    assert fields.pop("example") == "größe;von;art"
    assert fields == {"encoding": "cp1252", "decimal": ","}
    assert worked(tmp_path, EUROPE, **fields)["facts"]["columns"][0]["kind"] == "number"
    frame = frame_of((tmp_path / "table.parquet").read_bytes())
    assert frame["größe"].tolist() == [1.5, 1234.5]
    assert frame["von"].tolist() == ["café", "Freund"]
    as_text = worked(tmp_path, EUROPE, encoding="cp1252", decimal=".")["facts"]
    assert as_text["columns"][0]["examples"] == ["1,5", "1.234,5"]


def test_the_limits_hold_in_other_encodings(tmp_path):
    wide = (";".join(f"c{i}" for i in range(101)) + "\n").encode("utf-16")
    assert too_large(worked(tmp_path, wide, encoding="utf-16"), "100", "101")
    long = ("é\n" + "1\n" * 1001).encode("utf-16")
    assert too_large(worked(tmp_path, long, encoding="utf-16"), "1,000")
    assert too_large(worked(tmp_path, gzip.compress(long * 600), ".csv.gz", encoding="utf-16"), "1")


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
@pytest.mark.parametrize(
    "data", [bytes(range(256)), b"\x89PNG\r\n\x1a\n\0\0", b"a\0b\n", b"\xff\xfe"]
)
def test_binary_files_are_refused_in_every_encoding(tmp_path, data, encoding):
    assert worked(tmp_path, data, encoding=encoding, decimal=",")["code"] == "table"


def too_large(answer, *numbers):
    """Whether the worker refused a file for its size, with these numbers."""
    return answer["status"] == 413 and re.findall(r"\d[\d,]*", answer["error"]) == [*numbers]


def test_too_many_rows(tmp_path):
    assert "facts" in worked(tmp_path, b"a\n" + b"1\n" * 1000)
    assert too_large(worked(tmp_path, b"a\n" + b"1\n" * 1001), "1,000")
    quoted = b'a,b\n1,"' + b"\n" * 5000 + b'"\n'  # one row of many lines
    assert worked(tmp_path, quoted)["facts"]["rows"] == 1
    long = parquet({"a": pa.nulls(10**6, pa.int8())})
    assert too_large(worked(tmp_path, long, ".parquet"), "1,000")


def test_too_many_columns(tmp_path):
    for separator in ",;\t|":
        text = separator.join(f"c{i}" for i in range(101)) + "\n"
        assert too_large(worked(tmp_path, text.encode()), "100", "101")
        last = text.rpartition(separator)[0]
        assert "facts" in worked(tmp_path, f"{last}\n{last}\n".encode())
    wide = parquet({f"c{i}": pa.array([1]) for i in range(101)})
    assert too_large(worked(tmp_path, wide, ".pq"), "100", "101")


def test_very_many_columns_are_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("margrave.studio._parse_worker.read_table", None)
    header = ",".join(f"c{i}" for i in range(300_000)).encode()
    answer = worked(tmp_path, header + b"\n1\n", unpacked=2**24)
    assert too_large(answer, "100", "300,000")


def test_a_small_file_that_unpacks_to_a_large_one(tmp_path):
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 10**7)
    assert len(bomb) < 10**5
    assert too_large(worked(tmp_path, bomb, ".csv.gz"), "1")  # MiB


def test_lists_and_long_names(tmp_path):
    assert "'a'" in worked(tmp_path, parquet({"a": [[1, 2], [3]]}), ".parquet")["error"]
    error = worked(tmp_path, b"x" * 1001 + b"\n1\n")["error"]
    assert re.findall(r"\d+", error) == ["1000", "1001"]


WHOLE = parquet({"a": list(range(1000))})


DAMAGED = [  # with what the refusal names
    (WHOLE[:-20], ".parquet", ["Parquet"]),
    (WHOLE[:200], ".pq", ["Parquet"]),
    (b"PAR1" + b"\xff" * 100 + b"PAR1", ".parquet", ["Parquet"]),
    (gzip.compress(CSV, mtime=0)[:-9], ".csv.gz", ["gzip"]),
    (CSV, ".csv.gz", ["gzip"]),
    (b"a,b\n1,2\n3", ".csv", ["line 3", "2", "1"]),
    (b'a,b\n1,"2', ".csv", ["line 2", '"']),
    (b"a,b\n\xff,2\n", ".csv", ["line 2", "UTF-8", "0xff"]),
    (b"a\0b\n", ".txt", ["UTF-8"]),
    (b"", ".csv", []),
    (b"\n\n", ".tsv", []),
]


@pytest.mark.parametrize(("data", "ending", "named"), DAMAGED)
def test_damaged_files(tmp_path, data, ending, named):
    file, found, what = worked(tmp_path, data, ending)["error"].partition(f"upload{ending}")
    assert (file, found) == (f"{tmp_path}/", f"upload{ending}")
    assert [one for one in named if one not in what] == []


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8))
def test_bytes_that_were_changed(tmp_path_factory, place, noise):
    data = WHOLE[:place] + noise + WHOLE[place + len(noise) :]
    answer = worked(tmp_path_factory.mktemp("noise"), data, ".parquet")
    assert "facts" in answer or answer["error"].endswith(".")


def test_an_unexpected_error_is_logged_and_not_shown(tmp_path, monkeypatch, capsys):
    def fail(frame):
        raise RuntimeError("secret")

    monkeypatch.setattr("margrave.studio._parse_worker.facts_of", fail)
    answer = worked(tmp_path, CSV)
    assert (set(answer), answer["log"]) == ({"error", "log"}, True)
    assert "secret" not in answer["error"]
    assert "secret" in capsys.readouterr().err

    def all_memory(frame):
        raise MemoryError

    monkeypatch.setattr("margrave.studio._parse_worker.facts_of", all_memory)
    assert worked(tmp_path, CSV)["status"] == 413


# What is said of a table


def test_facts():
    found = facts_of(
        pd.DataFrame(
            {
                "size": [1.5, np.nan, 3, np.inf],
                "when": ["31/12/2023", "01/02/2024", "03/02/2024", "04/02/2024"],
                "same": "x",
                "none": None,
                "yes": [True, False, True, True],
                "what": pd.Categorical(["b", "a", "b", None], categories=["a", "b", "unused"]),
                7: ["a text of several words", "and one more of them", " ", "x" * 200],
            }
        )
    )
    assert found["rows"] == 4
    columns = {column.pop("name"): column for column in found["columns"]}
    why = {name: column.pop("why") for name, column in columns.items()}
    assert all(why.values())
    assert columns["size"] == {
        "kind": "number",
        "distinct": 2,
        "missing": 2,
        "examples": ["1.5", "3"],
    }
    assert re.findall(r"[\d.]+", why["size"]) == ["1.5", "3"]
    assert columns["when"]["kind"] == "date"
    assert "day" in why["when"]  # comes first
    assert columns["same"]["kind"] == "constant"
    assert (columns["none"]["kind"], columns["none"]["distinct"]) == ("empty", 0)
    assert (columns["none"]["missing"], columns["none"]["examples"]) == (4, [])
    assert columns["yes"]["examples"] == ["True", "False"]
    assert "2" in why["what"]
    assert columns["what"] == {
        "kind": "category",
        "distinct": 2,
        "missing": 1,
        "examples": ["b", "a"],
    }
    assert columns["7"]["missing"] == 1
    assert [len(text) for text in columns["7"]["examples"]] == [23, 20, 60]
    assert found["preview"]["columns"] == list(columns)
    assert found["preview"]["rows"][1][:4] == ["", "01/02/2024", "x", ""]


def test_an_identifier_and_many_values():
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(50)], "n": range(50)})
    first, second = facts_of(frame)["columns"]
    assert (first["kind"], first["distinct"]) == ("identifier", 50)
    assert (second["kind"], second["examples"]) == ("number", ["0", "1", "2"])
    assert len(facts_of(frame)["preview"]["rows"]) == 5
    assert facts_of(frame)["target"] is None


@pytest.mark.parametrize(
    ("columns", "target"),
    [
        ({"x": [1, 2, 3, 4], "Class": "abab", "z": "aabb"}, "Class"),
        ({"label": "abab", "target": "aabb"}, "target"),
        ({"y": [0.1, 0.2, 0.3, 0.4], "spam": "abab"}, "spam"),  # a coordinate
        ({"target": "aaaa", "b": "abab"}, "b"),  # constant
        ({"a": "abab", "b": [0, 1, 0, 1], "c": [0.5, 1.5, 0.5, 1.5]}, "b"),
        ({"a": "abab", "b": ["x", None, "y", "x"]}, "a"),  # not in every row
        ({"label": ["x", None, "y", "x"], "b": "abab"}, "label"),  # which its user can mend
        ({"a": "abcd"}, None),
        ({"a": ["2024-01-01", "2024-01-02"] * 2}, None),
    ],
)
def test_the_likely_target(columns, target):
    frame = pd.DataFrame({name: list(cells) for name, cells in columns.items()})
    assert facts_of(frame)["target"] == target


def test_bundled_sets_have_facts():
    frame = datasets.load("spambase", as_frame=True).frame
    assert facts_of(frame)["target"] == "target"


words = st.sampled_from(
    ["a", "b", "1", "2.5", " 3", "", " ", "2024-01-01", "1/2/2024", "inf", "x" * 31, "nan", "True"]
)


@given(st.lists(words | st.none(), min_size=1, max_size=40))
def test_a_guess_by_the_distinct_values_is_the_guess_of_all(cells):
    column = pd.Series(cells, dtype="str")
    distinct = column.value_counts(sort=False).index
    assert facts._guess(column, distinct) == guess_kind(column)
    facts_of(column.to_frame("a"))


def test_the_functions_of_the_module():
    assert set(uploads.__all__) <= set(dir(uploads))


def categories(n_rows, text):
    """A column that holds one text for all rows."""
    codes = pa.array(np.zeros(n_rows, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array([text]))


@pytest.mark.parametrize("keeps_categories", [True, False])
def test_texts_count_in_each_row(tmp_path, keeps_categories):
    bomb = parquet({"a": categories(1000, "x" * 5000)}, store_schema=keeps_categories)
    assert len(bomb) < 10_000
    refused = worked(tmp_path, bomb, ".parquet", table_bytes=2**22)
    assert too_large(refused, "4", "4")  # MiB; the texts are 5 MB
    assert "facts" in worked(tmp_path, bomb, ".parquet", table_bytes=2**23)


def test_cells_count_as_numbers(tmp_path):
    bomb = parquet({f"c{n}": pa.array(np.zeros(1000, dtype=bool)) for n in range(100)})
    assert worked(tmp_path, bomb, ".parquet", table_bytes=2**19)["status"] == 413
    assert "facts" in worked(tmp_path, bomb, ".parquet", table_bytes=2**20)


@pytest.mark.slow
def test_a_small_file_of_a_large_table_is_refused():
    bomb = parquet({"a": categories(200_000, "x" * 20_000)})
    assert len(bomb) < 10_000  # 4 GB as texts
    refused = refusal(bomb, "bomb.parquet")
    assert (refused.status, "512" in str(refused)) == (413, True)
