"""The table of facts agrees with itself, with the files in the package and with the guide."""

import gzip
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from margrave.datasets import load
from margrave.datasets._facts import LICENCES, PACKAGE, all_facts

FACTS = all_facts()
BUNDLED = [facts for facts in FACTS.values() if facts.bundled]
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "datasets.md"


def packaged(facts):
    return (PACKAGE / "data" / f"{facts.name}.csv.gz").read_bytes()


def test_every_file_of_the_package_is_described_and_the_other_way_round():
    files = {file.name for file in (PACKAGE / "data").iterdir()}
    assert files == {f"{facts.name}.csv.gz" for facts in BUNDLED}


@pytest.mark.parametrize("facts", BUNDLED, ids=lambda facts: facts.name)
def test_a_packaged_file_is_the_known_one_and_holds_no_time_stamp(facts):
    raw = packaged(facts)
    assert hashlib.sha256(gzip.decompress(raw)).hexdigest() == facts.sha256
    assert raw[4:8] == bytes(4)  # the MTIME field of RFC 1952: the file can be made again


@pytest.mark.parametrize("facts", BUNDLED, ids=lambda facts: facts.name)
def test_a_packaged_table_has_the_size_and_the_classes_of_its_facts(facts):
    X, y = load(facts.name, return_X_y=True)
    assert X.shape == (facts.rows, facts.features)
    assert np.isnan(X).sum() == facts.missing
    if facts.classes is None:
        assert (y.min(), y.max()) == facts.target_range
    else:
        labels, counts = np.unique(y, return_counts=True)
        assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == facts.classes


@pytest.mark.parametrize("facts", FACTS.values(), ids=lambda facts: facts.name)
def test_facts_agree_with_each_other(facts):
    assert (facts.classes is None) == (facts.target_range is not None)
    assert (facts.positive is not None) == (facts.task == "binary")
    if facts.classes is not None:
        assert sum(facts.classes.values()) == facts.rows
        assert facts.positive is None or facts.positive in facts.classes
    assert set(facts.papers) <= {"Marrocco", "Pelckmans", "Kulkarni"}
    assert facts.papers
    assert facts.licence in LICENCES.values()
    assert (facts.sha256 is not None) == facts.bundled
    assert facts.sha256 is None or re.fullmatch("[0-9a-f]{64}", facts.sha256)


def test_two_class_versions_are_named_by_their_base():
    pairs = {facts.name: facts.two_class for facts in FACTS.values() if facts.two_class}
    assert pairs == {name[:-4]: name for name in FACTS if name.endswith("_bin")}
    for version in pairs.values():
        assert FACTS[version].positive == 1


def test_a_two_class_version_keeps_the_size_of_its_base_unless_a_class_is_dropped():
    for base in (facts for facts in FACTS.values() if facts.two_class):
        version = FACTS[base.two_class]
        dropped = base.classes[3] if base.name == "hayes_roth" else 0
        assert (version.rows, version.features) == (base.rows - dropped, base.features)


@pytest.mark.parametrize("facts", FACTS.values(), ids=lambda facts: facts.name)
def test_the_description_is_complete(facts):
    text = facts.describe()
    assert text.startswith(facts.title)
    for part in (facts.source, facts.licence, facts.notes, str(facts.rows)):
        assert part in text


@pytest.mark.parametrize(
    ("source", "origin"),
    [("A. Author.", "A. Author"), ("UCI, A; B, C; D; read from E 1.2.", "UCI, A; read from E 1.2")],
)
def test_the_origin_is_the_source_without_the_people(source, origin):
    assert replace(FACTS["iris"], source=source).origin == origin


@pytest.mark.parametrize("facts", FACTS.values(), ids=lambda facts: facts.name)
def test_the_origin_of_a_set_that_is_not_bundled_names_our_copy(facts):
    assert facts.bundled or "read from" in facts.origin.rpartition("; ")[2]


@pytest.mark.skipif(not GUIDE.is_file(), reason="the guide is not part of this checkout")
def test_the_guide_lists_every_set_as_it_is():
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|.*\| (yes|no) \|", GUIDE.read_text(), re.M)
    listed = {name: (int(n), int(d), word == "yes") for name, n, d, word in rows}
    assert listed == {f.name: (f.rows, f.features, f.bundled) for f in FACTS.values()}
