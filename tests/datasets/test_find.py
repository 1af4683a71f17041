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


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def facts():
    """Facts of a set that is not bundled, with the checksum of the text above."""
    return replace(all_facts()["raetsch_banana"], sha256=sha256(TEXT))


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
        "margrave.datasets.load: 'raetsch_banana' was not found. Tried: the package, "
        "MARGRAVE_DATA (not set), OpenML (no id known). "
        "Set MARGRAVE_DATA to a folder with raetsch_banana.csv or raetsch_banana.csv.gz."
    )


def test_missing_in_the_folder_named(folder):
    with pytest.raises(FileNotFoundError) as error:
        load("raetsch_banana")
    assert f"Tried: the package, MARGRAVE_DATA ({folder}), OpenML (no id known)." in str(
        error.value
    )


def test_another_file_of_that_name_is_refused(folder):
    other = "x1,x2,target\n0,0,1\n"
    file = folder / "raetsch_banana.csv"
    file.write_text(other)
    with pytest.raises(ValueError, match="SHA-256") as error:
        load("raetsch_banana")
    assert str(error.value) == (
        f"{file}: this is not the file that Margrave knows by that name: SHA-256 of its text "
        f"expected {all_facts()['raetsch_banana'].sha256}, found {sha256(other)}. "
        "Replace it or take it away."
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", ", line 1: there is no header; is the file empty?"),
        (
            "a,b,class\n1,2,3\n",
            ", line 1: the header must name the features and, last, 'target'; "
            "its last name is 'class'",
        ),
        (
            "target\n1\n",
            ", line 1: the header must name the features and, last, 'target'; "
            "its last name is 'target'",
        ),
        ("a,a,target\n1,2,3\n", ", line 1: the header names a column twice"),
        ("a,target\n", ", line 2: there are no rows under the header"),
        ("a,target\n1,2\n1\n", ", line 3: the header names 2 columns, this line has 1"),
        ("a,target\n1,2\n\n", ", line 3: the header names 2 columns, this line has 0"),
        ("a,target\n1,2,3\n", ", line 2: the header names 2 columns, this line has 3"),
        ("a,target\n1,2\n3,\n", ", line 3: the target is empty"),
        (
            "a,target\n1,2\n" + '"' + "x" * 200_000,
            ", line 3: field larger than field limit (131072)",
        ),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, text, complaint):
    file = tmp_path / "set.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match="line") as error:
        read_file(file, sha256(text))
    assert str(error.value) == f"{file}{complaint}"


@pytest.mark.parametrize("raw", [b"plain text", gzip.compress(TEXT.encode())[:-12]])
def test_a_broken_gzip_file_is_named(tmp_path, raw):
    file = tmp_path / "set.csv.gz"
    file.write_bytes(raw)
    with pytest.raises(ValueError, match="this is not a whole gzip file") as error:
        read_file(file, sha256(TEXT))
    assert str(error.value).startswith(str(file))


def test_bytes_that_are_not_text_are_named(tmp_path):
    file = tmp_path / "set.csv"
    file.write_bytes(b"a,target\n\xff,1\n")
    with pytest.raises(ValueError, match="this is not UTF-8 text") as error:
        read_file(file, "")
    assert str(error.value).startswith(str(file))


def test_the_tables_cannot_be_changed():
    with pytest.raises(TypeError):
        all_facts()["new"] = None
    with pytest.raises(AttributeError):
        all_facts()["iris"].rows = 3
