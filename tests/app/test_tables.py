"""A user's table from a file and to a file: what comes back, and what every error names."""

import csv
import gzip
import importlib
import io
import re
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.app import tables
from margrave.app.tables import TableError, csv_text, read_table, write_table


@pytest.fixture
def saved(tmp_path):
    """Put text or bytes into a file and give its path."""

    def save(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return save


def assert_refused(named, action, *args):
    """The error has the names and values of a pattern, in this order.

    The last argument is a path; its folder has the name of the test in it and does not count.
    """
    with pytest.raises(TableError) as caught:
        action(*args)
    assert re.search(named, str(caught.value).replace(str(args[-1].parent), ""))


# Reading what is a table


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "T.CSV"])
def test_separators_are_guessed(saved, separator, name):
    text = "a,b,c\n1,x,2.5\n2,y z,3.5\n".replace(",", separator)
    frame = read_table(saved(text, name))
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x", "y z"], "c": [2.5, 3.5]}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a;b\n1,5;2,5\nx;y\n", ["a", "b"]),
        ('a;"b,c"\n1;2\n', ["a", "b,c"]),
        ("when, where;what\n1;2\n3;4\n", ["when, where", "what"]),
        ("words\nhello\nworld\n", ["words"]),
        ("a,b", None),
    ],
)
def test_the_separator_fits_header_and_rows(saved, text, columns):
    if columns is None:
        assert_refused(r"table\.csv", read_table, saved(text))
    else:
        assert list(read_table(saved(text))) == columns


def test_a_long_first_line_and_a_truncated_sample(saved):
    row = ",".join(["1234567"] * 30_000)
    names = ",".join(f"c{i}" for i in range(30_000))
    assert read_table(saved(f"{names}\n{row}\n")).shape == (1, 30_000)
    many = "a;b\n" + "x,1;2\n" * 30_000
    assert read_table(saved(many)).shape == (30_000, 2)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("header", [b"gr\xc3\xb6\xc3\x9fe,b", b'"gr\xc3\xb6\xc3\x9fe","b"'])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_utf8_with_or_without_a_mark(saved, mark, header, end):
    frame = read_table(saved(mark + header + end + b"1,\xe2\x82\xac" + end))
    assert frame.to_dict("list") == {"größe": [1], "b": ["€"]}


def test_gzip(saved):
    frame = read_table(saved(gzip.compress(b"a,b\n1,2\n", mtime=0), "t.csv.gz"))
    assert frame.to_dict("list") == {"a": [1], "b": [2]}


def test_missing_values_and_empty_lines(saved):
    frame = read_table(saved('\na,b,c\n\n1,,NA\n  \n,x,""\n\n'))
    assert frame["a"].tolist()[0] == 1
    assert frame.isna().to_numpy().tolist() == [[False, True, True], [True, False, True]]


def test_an_empty_quoted_field_is_a_row_of_one_column(saved):
    assert read_table(saved('a\nx\n""\ny\n'))["a"].isna().tolist() == [False, True, False]


def test_dates_stay_text(saved):
    assert read_table(saved("a,b\n2024-01-01,1\n"))["a"].tolist() == ["2024-01-01"]


def test_one_column_has_one_type(saved):
    frame = read_table(saved("a,b\n" + "1,2\n" * 200_000 + "x,2\n"))
    assert set(map(type, frame["a"])) == {str}


def test_cells_longer_than_the_limit_of_csv(saved):
    text = "x" * 200_000  # csv's own limit is 131,072
    assert read_table(saved(f"a,b\n{text},1\n"))["a"][0] == text


def test_parquet(tmp_path):
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x", None], "c": pd.Categorical(["u", "v"])})
    for ending in ("parquet", "pq"):
        write_table(frame, tmp_path / f"t.{ending}")
        pd.testing.assert_frame_equal(read_table(tmp_path / f"t.{ending}"), frame)


def test_a_named_index_in_parquet_becomes_a_column(tmp_path):
    frame = pd.DataFrame({"key": ["p", "q"], 7: [1, 2]})
    frame.set_index("key").to_parquet(tmp_path / "t.pq")
    assert read_table(tmp_path / "t.pq").to_dict("list") == {"key": ["p", "q"], "7": [1, 2]}
    pd.DataFrame({"a": [1, 2]}, index=["u", "v"]).to_parquet(tmp_path / "t.pq")
    assert list(read_table(str(tmp_path / "t.pq")).index) == [0, 1]


# What cannot be read


def test_no_file_a_folder_and_an_unknown_ending(tmp_path, saved):
    assert_refused(r"none\.csv", read_table, tmp_path / "none.csv")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert_refused(r"folder\.csv", read_table, folder)
    assert_refused(r"^t\.xlsx.*\.csv\b.*\.pq\b", read_table, saved("a", "t.xlsx"))


@pytest.mark.parametrize(
    "text", ["", "\n\n", "  \n", "\ufeff", "\ufeff\n", "a,b\n", "a,b", "a\n\n"]
)
def test_a_file_without_rows(saved, text):
    assert_refused(r"table\.csv", read_table, saved(text))


def test_a_parquet_file_without_rows(saved, tmp_path):
    assert_refused(r"t\.parquet", read_table, saved("", "t.parquet"))
    path = tmp_path / "t.pq"
    write_table(pd.DataFrame({"a": [1]}).iloc[:0], path)
    assert_refused(r"t\.pq", read_table, path)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_text_that_is_not_utf8(saved, end):
    path = saved(end.join([b"a,b", b"1,\xc3\xa4", b"2,gr\xfcn", b""]))
    assert_refused(r"table\.csv.*\b3\b.*UTF-8.*\b0xfc\b.*\b5\b", read_table, path)


def test_text_that_is_not_utf8_far_into_a_file(saved):
    path = saved(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000 + b"\xe9,2\n", mtime=0), "t.csv.gz")
    assert_refused(r"t\.csv\.gz.*\b100002\b.*UTF-8", read_table, path)


# Other encodings and decimal marks


def offered(path, **options):
    """The options that a refusal offers, and its example; then the table that they read."""
    with pytest.raises(TableError) as caught:
        read_table(path, **options)
    assert caught.value.code == "text_format"
    fields = dict(caught.value.fields)
    example = fields.pop("example")
    assert set(fields) == {"encoding", "decimal"}
    assert f"encoding to {fields['encoding']}" in str(caught.value)
    assert f"decimal to {fields['decimal']!r}" in str(caught.value)
    return fields, example, read_table(path, **fields)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be"])
def test_other_encodings_are_offered_and_not_guessed(saved, encoding, name):
    text = "\ufeff" * (encoding == "utf-16-be") + "nom,café\n1,été € œuf\n"
    data = text.encode(encoding)
    path = saved(gzip.compress(data, mtime=0) if name.endswith("gz") else data, name)
    fields, example, frame = offered(path)
    assert fields == {"encoding": encoding[:6], "decimal": "."}
    assert example == "nom,café"
    assert frame.to_dict("list") == {"nom": [1], "café": ["été € œuf"]}


def test_the_example_is_from_the_line_that_is_not_utf8(saved):
    path = saved(b"a,b\r\n" + b"1,2\r\n" * 50_000 + b"x" * 500 + b"\xe9" + b"y" * 500 + b",2\r\n")
    _, example, frame = offered(path)
    assert example.strip("xy") == "é"
    assert frame["a"].iloc[-1] == "x" * 500 + "é" + "y" * 500


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n1,\xe9\x00\n",
        b"a,b\n1,\xe9\x07\n",  # a control character
        b"a,b\n1,\xe9\x81\n",  # in no Windows-1252 text
        b"a,b\n1,\xc3\xa9 \xe9\n",  # in two encodings
        b"\xef\xbb\xbfa,b\n1,\xe9\n",
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        b"\xff\xfea\x00,",  # half a character
        "a,b\n1,2\n".encode("utf-16-le"),  # without its mark
        bytes(range(256)),
    ],
)
def test_bytes_that_are_no_text_are_refused_without_an_offer(saved, data):
    path = saved(data)
    assert_refused(r"table\.csv.*UTF-8", read_table, path)
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert (caught.value.code, caught.value.fields) == ("table", {})


@given(st.binary(min_size=1))
def test_no_bytes_do_more_than_be_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "t.csv"
    path.write_bytes(data)
    for options in ({}, {"encoding": "cp1252"}, {"encoding": "utf-16", "decimal": ","}):
        try:
            frame = read_table(path, **options)
        except TableError:
            continue
        assert len(frame)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("encoding", {"encoding": "latin-17"}),
        ("encoding", {"encoding": "base64"}),
        ("encoding", {"encoding": "a\0b"}),
        ("decimal", {"decimal": "x"}),
        ("decimal", {"decimal": ""}),
    ],
)
def test_options_that_there_are_not(saved, name, options):
    (value,) = options.values()
    with pytest.raises(TableError, match=rf"{name}.*{re.escape(repr(value))}"):
        read_table(saved("a,b\n1,2\n"), **options)


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "ascii"])
def test_a_text_that_is_not_in_its_encoding(saved, encoding):
    with pytest.raises(TableError, match=r"table\.csv"):
        read_table(saved(b"a,b\n1,\x81x\n"), encoding=encoding)


@pytest.mark.parametrize("encoding", ["punycode", "idna"])
def test_a_codec_that_does_not_name_the_place_of_its_error(saved, encoding):
    with pytest.raises(TableError, match=rf"table\.csv.*\b{encoding}\b"):
        read_table(saved(b"xn--a,b\n1,2\n"), encoding=encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf_8"])
def test_the_mark_of_utf8_is_no_part_of_the_first_name(saved, encoding):
    path = saved(b"\xef\xbb\xbfa,b\n1,2\n")
    assert list(read_table(path, encoding=encoding)) == ["a", "b"]


@pytest.mark.parametrize("options", [{"encoding": "utf-8"}, {"decimal": "."}])
def test_parquet_has_no_encoding_and_no_decimal_mark(tmp_path, options):
    write_table(pd.DataFrame({"a": [1]}), tmp_path / "t.pq")
    with pytest.raises(TableError, match=r"\bParquet\b") as caught:
        read_table(tmp_path / "t.pq", **options)
    assert (caught.value.code, [caught.value.fields["parameter"]]) == ("parameter", list(options))
    assert "t.pq" not in caught.value.fields["allowed"]  # in the studio, not the user's name of it


CLEAR = [  # columns of decimal commas, their numbers, and the first that is not of thousands
    (["1,5", "2"], [1.5, 2], "1,5"),
    (["1,234", "5,67"], [1.234, 5.67], "5,67"),
    (["0,123", "", "-1,5e-3"], [0.123, None, -0.0015], "0,123"),
    (["+1,2345", ",5", "7,"], [1.2345, 0.5, 7], "+1,2345"),
    (["1.234,5", "999,75", "12"], [1234.5, 999.75, 12], "1.234,5"),
    (["1.234.567,8", "1.234"], [1234567.8, 1234], "1.234.567,8"),
    (["1 234,5", "-1\u00a0234,5", "1\u202f234,0"], [1234.5, -1234.5, 1234], "1 234,5"),
    (["1'234'567,8", " 2,5 "], [1234567.8, 2.5], "1'234'567,8"),
]


@pytest.mark.parametrize(("cells", "numbers", "clear"), CLEAR)
@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_decimal_commas_are_offered_and_not_guessed(saved, cells, numbers, clear, separator):
    quoted = separator == ","
    frame = pd.DataFrame({"a": cells, "b": "x"})
    text = frame.to_csv(index=False, sep=separator, quoting=csv.QUOTE_ALL if quoted else 0)
    path = saved(text)
    fields, example, read = offered(path)
    assert fields == {"encoding": "utf-8", "decimal": ","}
    assert example == clear
    assert read["a"].dtype == float
    np.testing.assert_allclose(read["a"], np.array(numbers, dtype=float), rtol=1e-15)
    assert read["b"].tolist() == ["x"] * len(cells)
    kept = read_table(path, decimal=".")["a"]
    assert kept.dropna().tolist() == [cell for cell in cells if cell]


MIXED = [  # one mark in each cell, and neither separates thousands in all of them
    ["1,5", "1.5"],
    ["0.234", "1,5"],
    ["0,234", "1.5"],
    ["012.345", "1,5"],
    ["1,234", "1.5"],
    ["1,234,567", "1.5"],
    ["1.234e3", "1,5"],  # the point is not of thousands
    ["1.234e-05", "1,5"],
]
AMBIGUOUS = [
    ["1,234", "5,678"],  # may be thousands
    ["1,234", "999"],
    ["1,5", "x"],
    *MIXED,
    ["1,2,3", "1,5"],
    ["1.23,4", "1,5"],
    ["1,5 €", "2,5 €"],
    ["01.02.2024", "02.02.2024"],
    ["1,5/2", "1,5"],
    ["True", ""],
]


@pytest.mark.parametrize("cells", AMBIGUOUS)
def test_what_may_be_no_decimal_comma_stays_text(saved, cells):
    text = pd.DataFrame({"a": cells, "b": "x"}).to_csv(index=False, sep=";")
    assert [str(cell) for cell in read_table(saved(text))["a"].dropna()] == [*filter(None, cells)]


@pytest.mark.parametrize("thousands", ["1.234.567", "1 234 567"])
def test_with_an_explicit_decimal_comma_three_decimals_are_clear(saved, thousands):
    path = saved(f"a;b\n1,234;x\n{thousands};y\n")
    assert read_table(path)["a"].tolist() == ["1,234", thousands]
    assert read_table(path, decimal=",")["a"].tolist() == [1.234, 1234567.0]


def test_an_explicit_decimal_comma(saved):
    frame = read_table(
        saved(
            "thousandths;points;either;dates;flags;whole\n"
            "1,234;1.5;1.234;01.02.2024;True;1\n5,678;2.25;5.678;02.02.2024;;2\n"
        ),
        decimal=",",
    )
    assert frame["thousandths"].tolist() == [1.234, 5.678]
    assert frame["points"].tolist() == [1.5, 2.25]
    assert frame["either"].tolist() == ["1.234", "5.678"]  # of thousands, or not
    assert frame["dates"].tolist() == ["01.02.2024", "02.02.2024"]
    assert frame["flags"].tolist()[0] is True
    assert frame["whole"].tolist() == [1, 2]


@pytest.mark.parametrize("decimal", [",", "."])
@pytest.mark.parametrize("cells", MIXED)
def test_columns_with_both_decimal_marks_stay_text(saved, cells, decimal):
    text = pd.DataFrame({"a": cells, "b": "x"}).to_csv(index=False, sep=";")
    assert read_table(saved(text), decimal=decimal)["a"].tolist() == cells


def test_both_are_offered_together(saved):
    path = saved("größe;b\n1,5;ä\n2,5;ö\n".encode("cp1252"))
    fields, example, frame = offered(path)
    assert (fields, example) == ({"encoding": "cp1252", "decimal": ","}, "größe;b")
    assert frame.to_dict("list") == {"größe": [1.5, 2.5], "b": ["ä", "ö"]}
    assert offered(path, encoding="cp1252")[0] == fields


def test_an_encoding_is_offered_for_a_table_with_other_faults(saved):
    path = saved(b"a,b\n1,\xe9\n1\n")
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert caught.value.fields["encoding"] == "cp1252"
    with pytest.raises(TableError, match=r"table\.csv.*\b3\b"):
        read_table(path, encoding="cp1252")


windows = st.text(
    st.characters(codec="cp1252", exclude_categories=["Cc"], exclude_characters='"'), max_size=12
)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(windows, finite, finite), min_size=1), windows)
def test_what_a_spreadsheet_in_europe_writes_is_read_back(tmp_path_factory, rows, name):
    frame = pd.DataFrame(rows, columns=["größe", "n", "x" + name])
    frame["größe"] = "x" + frame["größe"]
    path = tmp_path_factory.mktemp("europe") / "t.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",", encoding="cp1252")
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert caught.value.fields["encoding"] == "cp1252"
    again = read_table(path, encoding="cp1252", decimal=",")
    assert again["größe"].tolist() == frame["größe"].tolist()
    assert list(again) == list(frame)
    assert np.allclose(again.iloc[:, 1:], frame.iloc[:, 1:], rtol=1e-15, atol=0)


@pytest.mark.parametrize(
    ("text", "line", "got"),
    [
        ("a,b,c\n1,2,3\n1,2\n", 3, 2),
        ("a,b,c\n1,2,3\n1,2,3,4\n", 3, 4),
        ("a,b,c\n1,2,3,4\n1,2,3,4\n", 2, 4),  # pandas would make an index of the first column
        ("a,b,c\n1,2,3,\n", 2, 4),
        ('a,b,c\n1,"2\n\n2",3\n\n1,2\n', 6, 2),
        ('"a\nx",b,c\n1,2,3\n1,"2\n"\n', 4, 2),
        ('a,b,c\n""\n', 2, 1),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_ragged_rows(saved, text, line, got, end):
    path = saved(text.replace("\n", end))
    assert_refused(rf"table\.csv.*\b{line}\b.*\b3\b.*\b{got}\b", read_table, path)


def test_a_row_that_splits_at_a_quote_never_closed(saved):
    path = saved('a,b\n1,2\n3,"x\n5,6\n')
    assert_refused(r'table\.csv.*\b3\b.*"', read_table, path)


def test_a_cell_beyond_all_limits(saved, monkeypatch):
    monkeypatch.setattr(tables, "_LONGEST_CELL", 100_000)
    before = csv.field_size_limit(100_000)
    try:
        path = saved('a,b\n1,2\n3,"' + "x" * 100_001)
        assert_refused(r'table\.csv.*\b3\b.*\b100000\b.*"', read_table, path)
    finally:
        csv.field_size_limit(before)


def test_column_names(saved, tmp_path):
    path = saved("\na,b,a,c,b\n1,2,3,4,5\n")
    assert_refused(r"table\.csv.*\b2\b.*'a', 'b'", read_table, path)
    path = saved("a, ,c\n1,2,3\n")
    assert_refused(r"table\.csv.*\b1\b.*\b2\b", read_table, path)
    path = tmp_path / "t.pq"
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), path)
    assert_refused(r"t\.pq.*'a'", read_table, path)


@pytest.mark.parametrize("content", [b"PAR1 this is not one PAR1", b"x", None])
def test_a_damaged_parquet_file(saved, tmp_path, content):
    if content is None:
        write_table(pd.DataFrame({"a": np.arange(1000)}), tmp_path / "whole.pq")
        content = (tmp_path / "whole.pq").read_bytes()[:-20]
    path = saved(content, "t.parquet")
    assert_refused(r"t\.parquet.*\bParquet\b", read_table, path)


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n",
        gzip.compress(b"a,b\n1,2\n" * 100, mtime=0)[:-12],
        b"\x1f\x8b\x08\0" + b"x" * 40,
    ],
)
def test_a_damaged_gzip_file(saved, content):
    path = saved(content, "t.csv.gz")
    assert_refused(r"t\.csv\.gz.*\bgzip\b", read_table, path)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("kept", [-1, -12, -200])
def test_a_damaged_gzip_file_in_another_encoding(saved, encoding, kept):
    # Noise does not compress, so that the text before the damage is more than one block.
    noise = np.random.default_rng(0).integers(1 << 60, size=20_000)
    data = gzip.compress("\n".join(["é", *map(str, noise)]).encode(encoding), mtime=0)
    path = saved(data[:kept], "t.csv.gz")
    assert_refused(r"t\.csv\.gz.*\bgzip\b", read_table, path)


@given(st.binary(min_size=1), st.binary(), st.integers(0, 40))
def test_no_gzip_file_does_more_than_be_refused(tmp_path_factory, data, behind, n_missing):
    path = tmp_path_factory.mktemp("bytes") / "t.csv.gz"
    path.write_bytes(gzip.compress(data, mtime=0)[: -n_missing or None] + behind)
    for options in ({}, {"encoding": "cp1252"}, {"encoding": "utf-16", "decimal": ","}):
        try:
            frame = read_table(path, **options)
        except TableError:
            continue
        assert len(frame)


@pytest.mark.parametrize(("package", "name"), [("pandas", "t.csv"), ("pyarrow", "t.pq")])
def test_what_is_not_installed(saved, monkeypatch, package, name):
    def without(wanted, *args):
        if wanted == package:
            raise ModuleNotFoundError(wanted)
        return importlib.import_module(wanted, *args)

    monkeypatch.setattr(tables, "import_module", without)
    path, frame = saved("x", name), pd.DataFrame({"a": [1]})
    with pytest.raises(ImportError, match=rf"\b{package}\b.*'app'"):
        read_table(path)
    with pytest.raises(ImportError, match=rf"\b{package}\b.*'app'"):
        write_table(frame, path)


# Types of Parquet


def saved_column(folder, values, kind=None):
    """A Parquet file with a column of a type."""
    path = folder / "t.parquet"
    pq.write_table(pa.table({"n": [1, 2], "odd": pa.array(values, kind)}), path)
    return path


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
def test_times_of_day_are_read_as_seconds(tmp_path, unit, per_second):
    kind = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    frame = read_table(saved_column(tmp_path, [int(3601 * per_second) + 1, None], kind))
    assert frame["odd"].tolist() == pytest.approx([3601 + 1 / per_second, np.nan], nan_ok=True)
    assert frame["n"].tolist() == [1, 2]


def test_decimals_and_durations_are_read(tmp_path):
    path = saved_column(tmp_path, [10**60, 1], pa.decimal256(76, 0))
    assert read_table(path)["odd"].astype(float).tolist() == [1e60, 1]
    path = saved_column(tmp_path, [86400, 1], pa.duration("s"))
    assert read_table(path)["odd"].tolist() == [pd.Timedelta("1D"), pd.Timedelta("1s")]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([b"\xff", b"b"], pa.binary()),
        ([b"\xff", b"b"], pa.large_binary()),
        ([b"\xff", b"b"], pa.binary(1)),
        ([b"\xff", b"b"], pa.dictionary(pa.int32(), pa.binary())),
        ([[1], [2]], pa.list_(pa.int64())),
        ([{"b": 1}, {"b": 2}], pa.struct([("b", pa.int64())])),
        ([[("b", 1)], []], pa.map_(pa.string(), pa.int64())),
        ([1, 3_000_000], pa.date32()),  # the year 10183
        ([1, 2], pa.timestamp("us", tz="Nowhere/Else")),
    ],
)
def test_other_types_are_refused_with_the_column(tmp_path, values, kind):
    path = saved_column(tmp_path, [None, None] if "dictionary" in str(kind) else values, kind)
    assert_refused(rf"'odd'.*{re.match('[a-z_0-9]+', str(kind))[0]}", read_table, path)


@pytest.mark.parametrize("digits", [20, 400, 4000])
def test_whole_numbers_of_more_than_64_bits_stay_text(saved, digits):
    cell = "9" * digits
    frame = read_table(saved(f"id,n\n{cell},1\n7,2\n,3\n"))
    assert frame["id"][:2].tolist() == [cell, "7"]
    assert pd.isna(frame["id"][2])
    frame.to_parquet(io.BytesIO())  # as the studio stores it


# Writing


def test_formulas_are_written_as_text(tmp_path):
    cells = ["=1+1", "+cmd", "-x", "@sum", "\tx", "\rx", "-1.5", "+3", "-1e5", "a=b", "", None]
    frame = pd.DataFrame(
        {"=name": cells, "kind": pd.Categorical(["=a", "b"] * 6), "n": range(-6, 6)}
    )
    write_table(frame, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=name", "kind", "n"]
    assert [row[0] for row in rows] == [
        *("'=1+1", "'+cmd", "'-x", "'@sum", "'\tx", "'\rx"),
        *("-1.5", "+3", "-1e5", "a=b", "", ""),
    ]
    assert [row[1] for row in rows[:2]] == ["'=a", "b"]
    assert [row[2] for row in rows] == [str(n) for n in range(-6, 6)]
    assert frame.columns[0] == "=name"
    assert frame["=name"][0] == "=1+1"  # the frame given stays as it was


def test_csv_text_is_what_a_file_has(tmp_path):
    frame = pd.DataFrame({"a": ["x\r=1+1", "=1+1", "y\n-z", "\r\n"], "b": range(4)})
    write_table(frame, tmp_path / "t.csv")
    text = csv_text(frame)
    assert text.encode() == (tmp_path / "t.csv").read_bytes()
    cells = [cell for row in csv.reader(text.splitlines(keepends=True)) for cell in row]
    assert [cell for cell in cells if cell.startswith("=")] == []
    assert "x\r=1+1" in cells  # one cell, which a spreadsheet does not split


def test_parquet_keeps_what_looks_like_a_formula(tmp_path):
    frame = pd.DataFrame({"=a": ["=1+1", "-x"]})
    write_table(frame, tmp_path / "t.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.parquet"), frame)


odd = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


@given(st.lists(st.tuples(odd, odd, st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_odd_text_survives_csv(tmp_path_factory, rows):
    # The letter keeps a text from being a number, a formula, or missing.
    frame = pd.DataFrame(rows, columns=["a", 'b, "c"\n', "n"])
    frame[["a", 'b, "c"\n']] = "x" + frame[["a", 'b, "c"\n']]
    for name in ("t.csv", "t.tsv", "t.csv.gz"):
        path = tmp_path_factory.mktemp("odd") / name
        write_table(frame, path)
        again = read_table(path)
        assert again.columns.tolist() == frame.columns.tolist()
        assert again.iloc[:, :2].to_numpy().tolist() == frame.iloc[:, :2].to_numpy().tolist()
        assert np.allclose(again["n"], frame["n"], rtol=1e-15, atol=0)


@given(st.lists(odd, min_size=1))
def test_one_column_of_odd_text_survives_csv(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("odd") / "t.csv"
    write_table(pd.DataFrame({"name": ["x" + cell for cell in cells]}), path)
    assert read_table(path)["name"].tolist() == ["x" + cell for cell in cells]


@given(
    st.sampled_from(["", " ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\ufeff", "\0"]),
    st.sampled_from(["", *"=+-@＝＋－＠"]),
    odd,
)
def test_no_written_text_begins_a_formula(space, sign, more):
    text = space + sign + more
    (written,) = list(csv.reader(io.StringIO(csv_text(pd.DataFrame({"a": [text]})), newline="")))[1]
    assert written in (text, "'" + text)
    if re.match(r"[\s\0\ufeff]*[=+@＝＋－＠-]", written) or written[:1] in ("\t", "\r", "\n"):
        float(written)  # a number


@pytest.mark.parametrize("cell", ["\nx", " =1", "\u00a0+1+1", "＝1+1", " \n＋x", "－x", "＠x"])
def test_formulas_after_spaces_and_with_full_width_signs_are_written_as_text(cell):
    written = csv.reader(io.StringIO(csv_text(pd.DataFrame({cell: [cell]})), newline=""))
    assert list(written) == [["'" + cell]] * 2


@pytest.mark.parametrize("cell", ["-1.5", "+3", " -1e5", "-.5 ", " x", "a=b"])
def test_numbers_and_other_texts_are_written_as_they_are(cell):
    written = csv.reader(io.StringIO(csv_text(pd.DataFrame({"a": [cell]})), newline=""))
    assert list(written) == [["a"], [cell]]


def test_writing_replaces_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "t.csv"
    for n in (3, 1):
        write_table(pd.DataFrame({3: range(n), "b": "x"}, index=range(5, 5 + n)), path)
    assert path.read_bytes() == b"3,b\r\n0,x\r\n"
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")

    class Unwritable:
        def __str__(self):
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_table(pd.DataFrame({"a": ["x", Unwritable()]}), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]


def test_what_cannot_be_written(tmp_path):
    frame = pd.DataFrame({"a": [1, "x"]})
    assert_refused(r"^t\.xls .*\.csv\b.*\.pq\b", write_table, frame, tmp_path / "t.xls")
    with pytest.raises(TableError, match=rf"write_table.*{re.escape(str(tmp_path / 'absent'))}"):
        write_table(frame, tmp_path / "absent" / "t.csv")
    folder = tmp_path / "t.csv"
    folder.mkdir()
    assert_refused(r"write_table.*\bpath\b.*t\.csv", write_table, frame, folder)
    twice = pd.DataFrame([[1, 2]], columns=[1, "1"])
    assert_refused("write_table.*'1'", write_table, twice, tmp_path / "u.csv")
    assert_refused(r"write_table.*\bParquet\b.*t\.pq", write_table, frame, tmp_path / "t.pq")
