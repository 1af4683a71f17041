"""The sources of `load`, and its errors for missing, damaged or other sets."""

import gzip
import hashlib
import re
from dataclasses import replace

import numpy as np
import pytest

from margrave.datasets import load
from margrave.datasets._facts import all_facts
from margrave.datasets._sources import read_file, read_set

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
    arrays = read_set(facts)
    nan = np.nan
    np.testing.assert_array_equal(arrays.data, [[1, 0], [nan, 1], [2.5, nan]])
    assert arrays.target.tolist() == [1, -1, 1]
    assert arrays.categories == {"b": ("x", "y")}
    assert arrays.feature_names == ("a", "b")


def test_the_package_comes_before_the_folder(folder):
    (folder / "iris.csv").write_text("not,the,target\n")
    assert load("iris").data.shape == (150, 4)


def test_missing_without_a_folder(bare):
    with pytest.raises(FileNotFoundError, match="'raetsch_banana'") as error:
        load("raetsch_banana")
    origin = all_facts()["raetsch_banana"].origin
    for named in ("MARGRAVE_DATA", "OpenML", "raetsch_banana.csv.gz", "'target'", origin):
        assert named in str(error.value)


def test_missing_in_the_folder(folder):
    with pytest.raises(FileNotFoundError, match=re.escape(str(folder))):
        load("raetsch_banana")


def test_a_copy_with_other_spellings_is_the_same_set(folder, facts):
    """Other names of the features, other spellings of numbers, rows in another order."""
    (folder / f"{facts.name}.csv").write_text("u,v,target\r\n2.50,,1\r\n1.0,x,1\r\n,y,-1\r\n")
    arrays = read_set(facts)
    np.testing.assert_array_equal(arrays.data, [[2.5, np.nan], [1, 0], [np.nan, 1]])
    assert arrays.target.tolist() == [1, 1, -1]


def test_another_file_of_that_name_is_refused(folder):
    file = folder / "raetsch_banana.csv"
    file.write_text("x1,x2,x3,target\n0,0,0,1\n0,0,0,2\n")
    with pytest.raises(ValueError, match=re.escape(str(file))) as error:
        load("raetsch_banana")
    for named in ("'raetsch_banana'", "5300", "{-1: 2924, 1: 2376}", "{1: 1, 2: 1}"):
        assert named in str(error.value)


def test_a_packaged_file_is_checked_by_its_sha256(tmp_path):
    iris = all_facts()["iris"]
    file = tmp_path / "iris.csv"
    file.write_text(TEXT)
    with pytest.raises(ValueError, match="SHA-256") as error:
        read_file(file, iris)
    for named in (str(file), iris.sha256, hashlib.sha256(TEXT.encode()).hexdigest()):
        assert named in str(error.value)


def test_a_byte_order_mark_is_no_part_of_a_name(folder, facts):
    (folder / f"{facts.name}.csv").write_text(TEXT, encoding="utf-8-sig")
    assert read_set(facts).feature_names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "line", "received"),
    [
        ("", 1, ""),
        ("a,b,class\n1,2,3\n", 1, r"'target'.*\bclass\b"),
        ("target\n1\n", 1, r"'target'.*\btarget\b"),
        ("a,a,target\n1,2,3\n", 1, "'a'"),
        ("a,target\n", 2, ""),
        ("a,target\n1,2\n1\n", 3, r"\b2\b.*\b1\b"),
        ("a,target\n1,2\n\n", 3, r"\b2\b.*\b0\b"),
        ("a,target\n1,2,3\n", 2, r"\b2\b.*\b3\b"),
        ("a,target\n1,2\n3,\n", 3, "target"),
        ("a,target\n1,2\n" + '"' + "x" * 200_000, 3, r"CSV.*131072"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, facts, text, line, received):
    file = tmp_path / "set.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"{re.escape(str(file))}.*\b{line}\b.*{received}"):
        read_file(file, facts)


@pytest.mark.parametrize("raw", [b"plain text", gzip.compress(TEXT.encode(), mtime=0)[:-12]])
def test_a_broken_gzip_file_is_named(tmp_path, facts, raw):
    file = tmp_path / "set.csv.gz"
    file.write_bytes(raw)
    with pytest.raises(ValueError, match=rf"{re.escape(str(file))}.*\bgzip\b"):
        read_file(file, facts)


def test_bytes_that_are_not_text_are_named(tmp_path, facts):
    file = tmp_path / "set.csv"
    file.write_bytes(b"a,target\n\xff,1\n")
    with pytest.raises(ValueError, match=rf"{re.escape(str(file))}.*UTF-8"):
        read_file(file, facts)


def test_the_tables_cannot_be_changed():
    with pytest.raises(TypeError):
        all_facts()["new"] = None
    with pytest.raises(AttributeError):
        all_facts()["iris"].rows = 3
