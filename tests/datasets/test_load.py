"""What `load` and `names` give: types, frames, and arrays that belong to the caller."""

import csv
import gzip
import io
import re
import subprocess
import sys

import numpy as np
import pytest

from margrave.datasets import load, names
from margrave.datasets._facts import all_facts

BUNDLED = [name for name, facts in all_facts().items() if facts.bundled]
OTHERS = [name for name, facts in all_facts().items() if not facts.bundled]


def read_text(file):
    raw = file.read_bytes()
    return (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode()


def as_text(data):
    """Every cell in a form that can be compared: a number, a category, or nothing."""
    columns = []
    for name, column in zip(data.feature_names, data.data.T.tolist(), strict=True):
        values = data.categories.get(name)
        cells = column if values is None else [values[int(c)] if c == c else c for c in column]
        columns.append([cell if cell == cell else "" for cell in cells])  # only NaN differs
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("name", [*BUNDLED, *OTHERS])
def test_a_set_equals_its_shared_file(name, shared_file):
    header, *rows = csv.reader(io.StringIO(read_text(shared_file(name))))
    data = load(name)
    assert data.feature_names == header[:-1]
    assert len(data.target) == len(rows)
    numeric = [column not in data.categories for column in data.feature_names]
    expected = [
        [float(c) if c and number else c for c, number in zip(row, numeric, strict=False)]
        for row in rows
    ]
    assert as_text(data) == expected
    kind = type(data.target.tolist()[0])
    assert data.target.tolist() == [kind(row[-1]) for row in rows]


@pytest.mark.parametrize(
    ("name", "kind"), [("spambase", "U"), ("liver", "i"), ("housing", "f"), ("abalone", "i")]
)
def test_a_target_is_text_integers_or_floats(name, kind):
    assert load(name).target.dtype.kind == kind


def test_labels_and_the_positive_one():
    assert load("spambase").target_names == ["nonspam", "spam"]
    assert load("liver").target_names == [1, 2]
    assert load("housing").target_names == []
    assert load("iris").positive is None
    for name in BUNDLED:
        data = load(name)
        assert data.positive is None or data.positive in data.target_names


def test_a_category_is_its_position_in_the_sorted_values():
    data = load("titanic")
    assert data.categories == {
        "class": ("1st", "2nd", "3rd", "Crew"),
        "age": ("Adult", "Child"),
        "sex": ("Female", "Male"),
    }
    assert data.data[0].tolist() == [2, 1, 1]  # 3rd, Child, Male


def test_missing_is_nan_in_numbers_and_in_codes():
    data = load("cleveland_bin")
    missing = dict(zip(data.feature_names, np.isnan(data.data).sum(axis=0), strict=True))
    assert "thal" in data.categories
    assert "major_vessels" not in data.categories
    assert {name: n for name, n in missing.items() if n} == {"major_vessels": 4, "thal": 2}


@pytest.mark.parametrize("name", ["cleveland_bin", "breast_ljubljana", "spambase", "housing"])
def test_frame_and_arrays_agree(name):
    pytest.importorskip("pandas")
    data, frames = load(name), load(name, as_frame=True)
    assert list(frames.data.columns) == data.feature_names
    assert list(frames.frame.columns) == [*data.feature_names, "target"]
    assert frames.target.name == "target"
    assert data.frame is None
    np.testing.assert_array_equal(frames.target.to_numpy(), data.target)
    for j, column in enumerate(data.feature_names):
        cells = frames.data[column]
        if column in data.categories:
            assert tuple(cells.cat.categories) == data.categories[column]
            codes = cells.cat.codes.to_numpy(dtype=float)
            cells = np.where(codes < 0, np.nan, codes)
        np.testing.assert_array_equal(np.asarray(cells), data.data[:, j])


@pytest.mark.parametrize("as_frame", [False, True])
def test_return_x_y_gives_the_same_pair(as_frame):
    if as_frame:
        pytest.importorskip("pandas")
    data = load("iris", as_frame=as_frame)
    X, y = load("iris", as_frame=as_frame, return_X_y=True)
    assert type(X) is type(data.data)
    assert type(y) is type(data.target)
    np.testing.assert_array_equal(X, data.data)
    np.testing.assert_array_equal(y, data.target)


def test_changes_of_a_caller_do_not_reach_the_next():
    data = load("titanic")
    data.data[:] = -1
    data.target[:] = "?"
    data.categories.clear()
    data.feature_names.clear()
    again = load("titanic")
    assert again.data.min() == 0
    assert set(again.target) == {"No", "Yes"}
    assert list(again.categories) == again.feature_names == ["class", "age", "sex"]


def test_names_are_sorted_and_all_there(bare):
    assert list(names()) == sorted(all_facts())
    assert list(names(available=True)) == BUNDLED


def test_a_file_in_the_folder_is_available(folder):
    (folder / "stock.csv").write_text("")
    (folder / "wpbc.csv.gz").write_text("")
    (folder / "mine.csv").write_text("")
    assert set(names(available=True)) - set(BUNDLED) == {"stock", "wpbc"}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("spam_base", ["spambase"]),
        ("housing_two", ["housing", "housing_bin", "twonorm"]),
        ("heart", ["heart_statlog"]),
        ("breast", ["breast_ljubljana", "breast_wisconsin", "raetsch_breast_cancer"]),
        ("qqq", []),
    ],
)
def test_the_error_for_an_unknown_name_suggests_the_nearest(name, nearest):
    with pytest.raises(ValueError, match=r"\bname\b") as error:
        load(name)
    assert re.findall(r"'(\w+)'", str(error.value)) == [name, *nearest]


def test_without_pandas_only_frames_fail(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert load("iris").data.shape == (150, 4)
    with pytest.raises(ImportError, match=r"as_frame=True.*\bpandas\b.*\bapp\b"):
        load("iris", as_frame=True)


def test_the_core_needs_nothing_optional():
    """In a fresh interpreter where the extras cannot be imported."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'pyarrow', 'matplotlib']));"
        "from margrave.datasets import load; print(load('iris').data.shape)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "(150, 4)"
