"""Where `load` looks, and what it says when a set is missing, damaged or not the known one."""

import gzip
import hashlib
from dataclasses import replace

import numpy as np
import pytest

from margrave.datasets import load
from margrave.datasets._facts import all_facts
from margrave.datasets._find import find, read_file

TEXT = "a,b,target\n1,x,1\n,y,-1\n2.5,,1\n"


@pytest.fixture
def facts():
    """Facts of a set that is not bundled, with the size and the classes of the text above."""
    banana = all_facts()["raetsch_banana"]
    return replace(banana, rows=3, features=2, missing=2, classes={-1: 1, 1: 2})


@pytest.mark.parametrize("end", [".csv", ".csv.gz"])
def test_a_file_in_the_folder_is_read(folder, facts, end):
    raw = TEXT.encode()
    file = folder / f"{facts.name}{end}"
    file.write_bytes(gzip.compress(raw) if end.endswith("gz") else raw)
    arrays = find(facts)
    nan = np.nan
    np.testing.assert_array_equal(arrays.data, [[1, 0], [nan, 1], [2.5, nan]])
    assert arrays.target.tolist() == [1, -1, 1]
    assert arrays.categories == {"b": ("x", "y")}
    assert arrays.feature_names == ("a", "b")


def test_the_package_comes_before_the_folder(folder):
    (folder / "iris.csv").write_text("not,the,target\n")
    assert load("iris").data.shape == (150, 4)


def test_missing_and_no_folder_named(bare):
    with pytest.raises(FileNotFoundError) as error:
        load("raetsch_banana")
    assert str(error.value) == (
        "margrave.datasets.load needs a file for 'raetsch_banana'; got none. Tried: the package, "
        "MARGRAVE_DATA (not set), OpenML (no id known). "
        "Set MARGRAVE_DATA to a folder with raetsch_banana.csv or raetsch_banana.csv.gz: "
        "a header row, the target last and named 'target'. The data are from: Benchmark collection "
        "of G. Rätsch, T. Onoda and K.-R. Müller (Machine Learning 42, 2001), an artificial set; "
        "read from GitHub Devn913/AGMR_entropy_sparse."
    )


def test_missing_in_the_folder_named(folder):
    with pytest.raises(FileNotFoundError) as error:
        load("raetsch_banana")
    assert f"Tried: the package, MARGRAVE_DATA ({folder}), OpenML (no id known)." in str(
        error.value
    )


def test_a_copy_in_other_words_is_the_same_set(folder, facts):
    """Other names of the features, other spellings of numbers, rows in another order."""
    (folder / f"{facts.name}.csv").write_text("u,v,target\r\n2.50,,1\r\n1.0,x,1\r\n,y,-1\r\n")
    arrays = find(facts)
    np.testing.assert_array_equal(arrays.data, [[2.5, np.nan], [1, 0], [np.nan, 1]])
    assert arrays.target.tolist() == [1, 1, -1]


def test_another_file_of_that_name_is_refused(folder):
    file = folder / "raetsch_banana.csv"
    file.write_text("x1,x2,x3,target\n0,0,0,1\n0,0,0,2\n")
    with pytest.raises(ValueError, match="Bring another copy") as error:
        load("raetsch_banana")
    assert str(error.value) == (
        f"margrave.datasets.load needs {file} to be 'raetsch_banana' with 5300 rows, 2 features, "
        "0 missing values, classes {-1: 2924, 1: 2376}; got 2 rows, 3 features, 0 missing values, "
        "classes {1: 1, 2: 1}. Bring another copy."
    )


def test_a_packaged_file_is_known_to_the_byte(tmp_path):
    iris = all_facts()["iris"]
    file = tmp_path / "iris.csv"
    file.write_text(TEXT)
    with pytest.raises(ValueError, match="SHA-256") as error:
        read_file(file, iris)
    assert str(error.value) == (
        f"margrave.datasets.load needs {file} with the SHA-256 {iris.sha256} of its text; "
        f"got {hashlib.sha256(TEXT.encode()).hexdigest()}. Install Margrave again."
    )


def test_a_byte_order_mark_is_no_part_of_a_name(folder, facts):
    (folder / f"{facts.name}.csv").write_text(TEXT, encoding="utf-8-sig")
    assert find(facts).feature_names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", ", line 1: needs a header; got an empty line."),
        (
            "a,b,class\n1,2,3\n",
            ", line 1: needs a header with the features' names and, last, 'target'; "
            "got ..., b, class.",
        ),
        (
            "target\n1\n",
            ", line 1: needs a header with the features' names and, last, 'target'; got target.",
        ),
        ("a,a,target\n1,2,3\n", ", line 1: needs names that differ; got 'a' twice."),
        ("a,target\n", ", line 2: needs rows under the header; got none."),
        ("a,target\n1,2\n1\n", ", line 3: needs 2 cells, as the header has; got 1."),
        ("a,target\n1,2\n\n", ", line 3: needs 2 cells, as the header has; got 0."),
        ("a,target\n1,2,3\n", ", line 2: needs 2 cells, as the header has; got 3."),
        ("a,target\n1,2\n3,\n", ", line 3: needs a target; got an empty cell."),
        (
            "a,target\n1,2\n" + '"' + "x" * 200_000,
            ", line 3: needs CSV; got field larger than field limit (131072).",
        ),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, facts, text, complaint):
    file = tmp_path / "set.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match="line") as error:
        read_file(file, facts)
    assert str(error.value) == f"{file}{complaint}"


@pytest.mark.parametrize("raw", [b"plain text", gzip.compress(TEXT.encode(), mtime=0)[:-12]])
def test_a_broken_gzip_file_is_named(tmp_path, facts, raw):
    file = tmp_path / "set.csv.gz"
    file.write_bytes(raw)
    with pytest.raises(ValueError, match=": needs a whole gzip file; got ") as error:
        read_file(file, facts)
    assert str(error.value).startswith(str(file))


def test_bytes_that_are_not_text_are_named(tmp_path, facts):
    file = tmp_path / "set.csv"
    file.write_bytes(b"a,target\n\xff,1\n")
    with pytest.raises(ValueError, match=": needs UTF-8 text; got ") as error:
        read_file(file, facts)
    assert str(error.value).startswith(str(file))


def test_the_tables_cannot_be_changed():
    with pytest.raises(TypeError):
        all_facts()["new"] = None
    with pytest.raises(AttributeError):
        all_facts()["iris"].rows = 3
