"""Any table as numbers: the guessed kinds, what each becomes, and what every error names."""

import datetime
import decimal
import pickle
import re
import sys
import uuid

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrave.table import _encoder
from margrave.table._encoder import TableEncoder

N = 60
WORDS = [
    "offer",
    "meeting",
    "invoice",
    "holiday",
    "project",
    "lottery",
    "friend",
    "budget",
    "garden",
    "train",
    "music",
]


def sentences(n, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 6)) + f" {i}" for i in range(n)]


def everything(n=N, seed=0):
    """A table with every kind of column, and gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(5, 3, n),
            "count": rng.integers(0, 9, n),
            "flag": rng.random(n) > 0.5,
            "colour": rng.choice(["red", "green", "blue"], n),
            "seen": pd.date_range("2023-11-03 05:00", periods=n, freq="31h"),
            "born": pd.date_range("1990-01-01", periods=n, freq="40D").strftime("%d.%m.%Y"),
            "note": sentences(n, seed),
            "key": [f"K{i:05d}" for i in range(n)],
            "same": "x",
            "none": None,
        }
    )
    frame.loc[3, ["size", "colour", "seen", "note"]] = None
    frame.loc[4, "size"] = np.inf
    return frame


def kind_of(values):
    """The kind of a column among others that keep the table from being all ignored."""
    column = values if isinstance(values, pd.Series) else pd.Series(values)
    table = pd.DataFrame({"it": column.reset_index(drop=True), "other": range(len(column))})
    return TableEncoder().fit(table).kinds_["it"]


# Kinds


def days(form, n=N, freq="D"):
    return pd.Series(pd.date_range("2024-01-01", periods=n, freq=freq).strftime(form))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, 3], "number"),
        ([True, False], "number"),
        ([True, None, False], "number"),
        ([0.5, None, np.inf], "number"),
        (["1", " 2.5 ", "1e3", None, ""], "number"),
        ([decimal.Decimal("1.5"), decimal.Decimal(2)], "number"),
        (pd.Series([1, None, 3], dtype="Int64"), "number"),
        (pd.Series([True, None, False], dtype="boolean"), "number"),
        (pd.Series([0.0, 1.0, 0.0], dtype="Sparse[float]"), "number"),
        (pd.to_timedelta([1, 2, None], unit="h"), "number"),
        (range(1000), "number"),  # integers stay numbers, however many
        ([5, None, 5], "number"),  # whether it is there tells something
        (["yes", None, "yes"], "category"),
        (["red", "green", "blue"], "category"),
        ([1, "a", None, 2.5], "category"),
        ([[1], [2], None], "category"),
        (pd.Categorical([1, 2, 1]), "category"),
        (pd.Categorical([f"c{i}" for i in range(50)]), "category"),
        ([f"town{i % 300}" for i in range(1000)], "category"),  # many, but not all distinct
        ([f"a long answer that was chosen from a list: {i % 3}" for i in range(N)], "category"),
        (days("%Y-%m-%d"), "date"),
        (days("%Y-%m-%dT%H:%M:%SZ", freq="h"), "date"),
        (days("%d/%m/%Y"), "date"),
        (days("%m/%d/%Y"), "date"),
        (days("%d.%m.%Y %H:%M", freq="h"), "date"),
        (pd.Series(pd.date_range("2024-01-01", periods=3, tz="Europe/Berlin")), "date"),
        (pd.Series(pd.period_range("2024-01", periods=3, freq="M")), "date"),
        ([datetime.date(2024, 1, 1), None, datetime.date(2024, 5, 1)], "date"),
        ([*days("%Y-%m-%d"), "unknown"], "date"),  # one in 61 is no date
        ([*days("%Y-%m-%d", 12), "unknown"], "category"),  # one in 13
        (sentences(N), "text"),
        (["x" * 25 + f"://long/{i}/and/longer" for i in range(N)], "text"),
        ([f"K{i}" for i in range(N)], "ignored"),
        ([str(uuid.UUID(int=i)) for i in range(N)], "ignored"),
        (["x"] * 3, "ignored"),
        ([2.5] * 3, "ignored"),
        (pd.Categorical(["x"] * 3), "ignored"),
        (pd.Series(pd.to_datetime(["2024-01-01"] * 3)), "ignored"),
        ([None] * 3, "ignored"),
        ([np.nan, np.inf, -np.inf], "ignored"),
        (["", " ", None], "ignored"),
        ([pd.NaT] * 3, "ignored"),
    ],
)
def test_kinds(values, kind):
    assert kind_of(values) == kind


def test_codes_are_no_years():
    assert kind_of([*(str(1000 + i) for i in range(99)), "A1"]) == "ignored"  # not a date


def test_the_line_between_few_and_many_values():
    assert kind_of([f"v{i}" for i in range(20)] * 2) == "category"
    assert kind_of([f"v{i}" for i in range(21)]) == "ignored"


def test_kinds_are_described():
    encoder = TableEncoder().fit(everything())
    assert encoder.kinds_ == {
        **dict.fromkeys(["size", "count", "flag"], "number"),
        "colour": "category",
        **dict.fromkeys(["seen", "born"], "date"),
        "note": "text",
        **dict.fromkeys(["key", "same", "none"], "ignored"),
    }
    columns = [
        ["size", "count", "flag"],
        ["colour"],
        ["seen", "born"],
        ["note"],
        ["key", "same", "none"],
    ]
    for line, names in zip(encoder.describe().splitlines(), columns, strict=True):
        assert re.search(rf"\b{len(names)}\b", line)
        assert [word for word in re.findall(r"\w+", line) if word in names] == names


def test_long_lists_of_names_are_shortened():
    wide = pd.DataFrame(np.arange(16).reshape(2, 8))
    described, bare = (TableEncoder().fit(one).describe() for one in (wide, wide.to_numpy()))
    # The number of columns, the names of the first, and how many more there are.
    assert re.findall(r"\d+", described) == ["8", "0", "1", "2", "3", "4", "3"]
    assert re.findall(r"\d+", bare) == ["8"]


# What columns become


def column(frame, name, fitted_on=None):
    encoder = TableEncoder().fit(frame if fitted_on is None else fitted_on)
    return encoder.transform(frame)[:, list(encoder.get_feature_names_out()).index(name)]


def test_numbers_are_filled_and_standardised():
    frame = pd.DataFrame({"a": ["1", "3", None, "8", "inf"], "b": [1, 2, 3, 4, 5.0]})
    filled = np.array([1, 3, 3, 8, 3.0])
    assert np.allclose(column(frame, "a"), (filled - filled.mean()) / filled.std())
    assert column(frame, "a missing").tolist() == [0, 0, 1, 0, 1]
    assert "b missing" not in TableEncoder().fit(frame).get_feature_names_out()


def test_lengths_of_time_and_booleans_are_numbers():
    hours = pd.DataFrame({"a": pd.to_timedelta([12, 24, 36], unit="h")})
    assert np.allclose(column(hours, "a"), column(pd.DataFrame({"a": [0.5, 1, 1.5]}), "a"))
    truths = pd.DataFrame({"a": [True, False, True]})
    gaps = pd.DataFrame({"a": [True, None, False]})  # as a file with gaps comes
    assert np.allclose(column(gaps, "a", truths)[[0, 2]], column(truths, "a")[:2])


def test_text_among_numbers_counts_as_missing():
    train = pd.DataFrame({"a": [1.0, None, 3.0]})
    new = pd.DataFrame({"a": ["2", "old", "3"]})
    assert column(new, "a missing", train).tolist() == [0, 1, 0]
    assert column(new, "a", train)[1] == 0


def test_numbers_beyond_all_scales():
    train = pd.DataFrame({"a": [1e308, -1e308, 0], "b": [1e-300, 2e-300, 3e-300]})
    encoder = TableEncoder().fit(train)
    assert np.isfinite(encoder.transform(train)).all()
    assert (np.abs(encoder.transform(pd.DataFrame({"a": [1e308], "b": [1e308]}))) <= 1e6).all()


def test_categories_have_a_column_for_each_value():
    frame = pd.DataFrame({"c": ["b", "a ", None, "a"]})
    encoder = TableEncoder().fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=b", "c=missing"]
    assert encoder.transform(frame).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert encoder.transform(pd.DataFrame({"c": ["new", None]})).tolist() == [[0, 0, 0], [0, 0, 1]]


def test_infrequent_and_unseen_values_are_pooled():
    frame = pd.DataFrame({"c": list("aaaabbbbcdef")})
    encoder = TableEncoder(max_categories=3).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["c=a", "c=b", "c other"]
    new = pd.DataFrame({"c": ["a", "f", "unseen", None]})
    assert encoder.transform(new).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]


def test_categories_of_numbers_are_the_same_with_and_without_gaps():
    train = pd.DataFrame({"c": pd.Categorical([1, 2, 1])})
    encoder = TableEncoder().fit(train)
    new = pd.DataFrame({"c": [1.0, 2.0, None]})
    assert encoder.transform(new).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_dates_have_days_month_weekday_and_hour():
    frame = pd.DataFrame({"d": pd.to_datetime(["2024-01-01 06:00", "2024-02-06 18:30", None])})
    encoder = TableEncoder().fit(frame)
    names = ["d days", "d month", "d weekday", "d hour", "d missing"]
    assert encoder.get_feature_names_out().tolist() == names
    out = encoder.transform(frame)
    wide = np.array([[19723.25, 1, 0, 6], [19723.25 + 36 + 12.5 / 24, 2, 1, 18]])
    wide = np.vstack([wide, wide.mean(axis=0)])  # the median of two
    assert np.allclose(out[:, :4], (wide - wide.mean(axis=0)) / wide.std(axis=0))
    assert out[:, 4].tolist() == [0, 0, 1]


def test_dates_without_times_have_no_hour():
    frame = pd.DataFrame({"d": ["2024-01-01", "2024-02-06"]})
    names = TableEncoder().fit(frame).get_feature_names_out().tolist()
    assert names == ["d days", "d month", "d weekday"]


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y"])
def test_a_date_is_the_same_in_every_format(form):
    plain = pd.DataFrame({"d": pd.date_range("2024-01-05", periods=N, freq="3D")})
    written = plain.assign(d=plain["d"].dt.strftime(form))
    encoder = TableEncoder().fit(written)
    assert np.allclose(encoder.transform(written), TableEncoder().fit_transform(plain))
    # one kind of date in training, another later
    assert np.allclose(encoder.transform(plain), encoder.transform(written))


def test_dates_in_another_zone_are_the_same_dates():
    plain = pd.DataFrame({"d": pd.date_range("2024-01-05", periods=9, freq="5h", tz="UTC")})
    there = plain.assign(d=plain["d"].dt.tz_convert("Asia/Tokyo"))
    assert np.allclose(
        TableEncoder().fit(plain).transform(there), TableEncoder().fit_transform(plain)
    )


def test_texts_have_components_of_unit_variance():
    frame = pd.DataFrame({"t": sentences(300)})
    encoder = TableEncoder(text_components=8).fit(frame)
    names = [*(f"t part {i}" for i in range(1, 9)), "t length"]
    assert encoder.get_feature_names_out().tolist() == names
    out = encoder.transform(frame)
    assert np.allclose(out.std(axis=0), 1)
    assert np.allclose(out.mean(axis=0), 0)


def test_texts_tell_topics_apart():
    rng = np.random.default_rng(0)
    topics = [WORDS[:5], WORDS[5:]]
    y = rng.integers(0, 2, 200)
    frame = pd.DataFrame(
        {"t": [" ".join(rng.choice(topics[k], 5)) + f" {i}" for i, k in enumerate(y)]}
    )
    model = make_pipeline(TableEncoder(text_components=4), LogisticRegression())
    assert model.fit(frame[:100], y[:100]).score(frame[100:], y[100:]) > 0.95


@pytest.mark.parametrize(
    ("cells", "parts"),
    [
        ([f"only{i} once{i}" for i in range(N)], 0),  # no word comes twice
        ([f"! ? {i} ." for i in range(N)], 0),  # no words at all
        ([f"same word{i} another{i}" for i in range(N)], 1),
        ([f"same pair word{i}" for i in range(N)], 3),  # same, pair, same pair
    ],
)
def test_texts_with_few_words(cells, parts):
    frame = pd.DataFrame({"t": cells})
    encoder = TableEncoder().fit(frame)
    assert encoder.kinds_ == {"t": "text"}
    assert encoder.transform(frame).shape == (N, parts + 1)
    assert np.isfinite(encoder.transform(pd.DataFrame({"t": ["", None, "new words"]}))).all()


def test_texts_that_are_all_alike_give_no_noise():
    frame = pd.DataFrame({"t": [f"one two three word{i}" for i in range(N)]})
    out = TableEncoder(text_components=2).fit_transform(frame)
    assert np.allclose(out[:, :-1], 0)


def test_fewer_rows_than_components():
    rng = np.random.default_rng(1)
    cells = [" ".join(f"w{k}" for k in rng.integers(10, 60, 40)) for _ in range(10)]
    out = TableEncoder().fit_transform(pd.DataFrame({"t": cells}))
    assert out.shape == (10, 11)
    assert np.allclose(out[:, :-1].std(axis=0), 1)  # all have the same length


# The whole


CENTURY = datetime.timedelta(days=36525)
CELLS = [
    st.floats(),
    st.text(max_size=40),
    st.none() | st.dates(),
    st.none() | st.timedeltas(-CENTURY, CENTURY).map(pd.Timedelta),
    st.sampled_from(["a", "b", None]),
]
CELLS.append(
    st.one_of(*CELLS, st.integers(), st.booleans(), st.datetimes(timezones=st.timezones()))
)


def frames(n_columns):
    column = st.sampled_from(CELLS).flatmap(lambda cell: st.lists(cell, min_size=9, max_size=30))
    columns = st.lists(column, min_size=n_columns, max_size=n_columns)
    return columns.map(
        lambda drawn: pd.DataFrame(
            {f"c{j}": pd.Series(cells[: min(map(len, drawn))]) for j, cells in enumerate(drawn)}
        )
    )


@given(st.integers(1, 4).flatmap(lambda k: st.tuples(frames(k), frames(k))))
def test_arbitrary_frames_become_finite_numbers(tables):
    frame, other = tables
    encoder = TableEncoder(max_categories=5, text_components=3)
    try:
        encoder.fit(frame)
    except ValueError as error:
        assert all(f"'{name}'" in str(error) for name in frame)  # noqa: PT017
        return
    out = encoder.transform(frame)
    assert out.dtype == np.float64
    assert out.shape == (len(frame), len(encoder.get_feature_names_out()))
    assert np.isfinite(out).all()
    assert np.array_equal(out, clone(encoder).fit_transform(frame))
    assert np.allclose(encoder.transform(frame.iloc[::-1])[::-1], out)
    try:
        new = encoder.transform(other)
    except ValueError as error:
        assert any(f"'{name}'" in str(error) for name in other)  # noqa: PT017
        return
    assert new.shape == (len(other), out.shape[1])
    assert np.isfinite(new).all()


@pytest.mark.parametrize("table", [everything(), everything().to_numpy()[:, :2].astype(float)])
def test_pickles_and_skops_encode_the_same(table):
    encoder = TableEncoder().fit(table)
    packed = skops.io.dumps(encoder)
    trusted = skops.io.get_untrusted_types(data=packed)
    assert all(name.startswith("margrave.") for name in trusted)
    for again in (
        pickle.loads(pickle.dumps(encoder)),  # noqa: S301
        skops.io.loads(packed, trusted=trusted),
    ):
        assert np.array_equal(again.transform(table), encoder.transform(table))
        assert again.describe() == encoder.describe()
        assert list(again.get_feature_names_out()) == list(encoder.get_feature_names_out())


def test_order_and_other_columns_do_not_matter():
    frame = everything()
    encoder = TableEncoder().fit(frame)
    mixed = frame[frame.columns[::-1]].drop(columns=["key", "same"]).assign(extra=1)
    assert np.array_equal(encoder.transform(mixed), encoder.transform(frame))


def test_the_table_given_stays_as_it_was():
    frame = everything()
    TableEncoder().fit_transform(frame)
    pd.testing.assert_frame_equal(frame, everything())


def test_names_that_are_no_text():
    frame = pd.DataFrame({0: [1, 2], ("a", 1): ["x", "y"]})
    encoder = TableEncoder().fit(frame)
    assert encoder.feature_names_in_.tolist() == ["0", "('a', 1)"]
    assert encoder.transform(frame).tolist() == [[-1, 1, 0], [1, 0, 1]]


def test_arrays_are_numbers():
    values = [[1, 5, np.nan], [2, 5, np.inf], [6, 5, np.nan]]
    encoder = TableEncoder().fit(values)
    assert encoder.kinds_ == dict.fromkeys(["x0", "x1", "x2"], "number")
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x2 missing"]
    assert encoder.get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b", "c", "c missing"]
    out = encoder.transform(np.array(values))
    assert np.allclose(out[:, 0], (np.array([1, 2, 6]) - 3) / np.sqrt(14 / 3))
    assert out[:, 1:].tolist() == [[0, 0, 1]] * 3


def test_an_array_after_a_frame_goes_by_position():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [5.0, 7.0]})
    encoder = TableEncoder().fit(frame)
    with pytest.warns(UserWarning, match="valid feature names"):
        out = encoder.transform(frame.to_numpy())
    assert np.array_equal(out, encoder.transform(frame))


def test_output_as_a_data_frame():
    frame = everything()
    out = TableEncoder().set_output(transform="pandas").fit_transform(frame)
    assert out.columns[:4].tolist() == ["size", "count", "flag", "size missing"]


@parametrize_with_checks([TableEncoder()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_no_pandas_is_needed_for_arrays(monkeypatch):
    monkeypatch.delitem(sys.modules, "pandas")
    assert not _encoder._is_frame([[1]])
    assert TableEncoder().fit_transform([[1], [3]]).tolist() == [[-1], [1]]


# Errors


def test_missing_columns():
    names = [f"Size {c}" for c in "abcdefgh"]
    frame = pd.DataFrame(np.arange(16).reshape(2, 8), columns=names)
    encoder = TableEncoder().fit(frame)
    with pytest.raises(ValueError, match=r"'Size a'.*'SIZE_A'"):
        encoder.transform(frame.rename(columns={"Size a": "SIZE_A"}))
    with pytest.raises(ValueError, match="TableEncoder") as caught:
        encoder.transform(pd.DataFrame({"q": [1]}))
    assert [name for name in names if f"'{name}'" in str(caught.value)] == names[:5]
    assert "3" in str(caught.value)


def test_repeated_columns():
    twice = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=["a", "a", "b"])
    with pytest.raises(ValueError, match=r"TableEncoder.*'a'"):
        TableEncoder().fit(twice)
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(ValueError, match=r"TableEncoder.*'a'"):
        encoder.transform(twice)
    with pytest.raises(ValueError, match=r"TableEncoder.*'1'"):
        TableEncoder().fit(twice.set_axis([1, "1", 2], axis=1))


def test_nothing_to_learn_from():
    frame = everything()[["key", "same", "none"]]
    with pytest.raises(ValueError, match=r"'key'.*'same'.*'none'"):
        TableEncoder().fit(frame)
    with pytest.raises(ValueError, match=r"\bX\b.*\b0\b.*\b3\b"):
        TableEncoder().fit(frame[:0])
    encoder = TableEncoder().fit(everything())
    with pytest.raises(ValueError, match=r"TableEncoder.*\bX\b"):
        encoder.transform(everything()[:0])


def test_columns_that_hold_something_else():
    encoder = TableEncoder().fit(everything())
    new = everything()
    with pytest.raises(ValueError, match=r"'count'.*'many'"):
        encoder.transform(new.assign(count=[None, *["many"] * (N - 1)]))
    with pytest.raises(ValueError, match=r"'seen'.*'once'"):
        encoder.transform(new.assign(seen="once"))
    empty = new.assign(count=None, seen=None, colour=None, note=None)
    assert np.isfinite(encoder.transform(empty)).all()


def test_complex_numbers():
    with pytest.raises(ValueError, match=r"'z'.*complex128"):
        TableEncoder().fit(pd.DataFrame({"z": [1j, 2]}))


def test_sparse_matrices():
    sparse = scipy.sparse.eye_array(3)
    with pytest.raises(TypeError, match=r"TableEncoder.*\bX\b"):
        TableEncoder().fit(sparse)
    encoder = TableEncoder().fit(np.eye(3))
    with pytest.raises(TypeError, match=r"TableEncoder.*\bX\b"):
        encoder.transform(sparse)


def test_arrays_of_another_width():
    encoder = TableEncoder().fit(np.eye(3))
    with pytest.raises(ValueError, match="2 features"):
        encoder.transform(np.eye(2))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_categories", 1),
        ("max_categories", True),
        ("text_components", 0),
        ("text_components", 2.5),
    ],
)
def test_settings(name, value):
    with pytest.raises(ValueError, match=rf"{name}.*{re.escape(repr(value))}"):
        TableEncoder(**{name: value}).fit([[1], [2]])


def test_names_given_for_the_output():
    encoder = TableEncoder().fit(np.eye(3))
    with pytest.raises(ValueError, match=r"input_features.*\b3\b.*\b1\b"):
        encoder.get_feature_names_out(["a"])
    encoder.fit(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(ValueError, match=r"input_features.*feature_names_in_"):
        encoder.get_feature_names_out(["b"])
    assert encoder.get_feature_names_out(["a"]).tolist() == ["a"]
