"""From text to arrays: what was written is what is read, whatever it was."""

import csv
import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from margrave.datasets._table import read_table, to_arrays

numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
words = st.none() | st.text(alphabet='ab,"\n -', max_size=4).map(lambda text: "v" + text)
labels = st.integers(-3, 3) | st.floats(-9, 9) | st.sampled_from(["yes", "no"])


def written(rows):
    """The bytes of a CSV file with a number, a word and a label in each row."""
    file = io.StringIO(newline="")
    cells = (["" if c is None else c for c in row] for row in rows)
    csv.writer(file, lineterminator="\n").writerows([["number", "word", "target"], *cells])
    return file.getvalue().encode()


@given(st.lists(st.tuples(numbers, words, labels), min_size=1, max_size=8))
def test_text_is_read_back(rows):
    arrays = to_arrays(read_table(written(rows), "here"))
    want = [np.nan if number is None else number for number, _, _ in rows]
    np.testing.assert_array_equal(arrays.data[:, 0], want)

    values = arrays.categories.get("word", ())  # absent when every word is missing
    assert list(values) == sorted({word for _, word, _ in rows if word is not None})
    read = [None if np.isnan(code) else values[int(code)] for code in arrays.data[:, 1]]
    assert read == [word for _, word, _ in rows]

    texts = [str(label) for _, _, label in rows]
    assert [type(t)(text) for t, text in zip(arrays.target.tolist(), texts, strict=True)] == (
        arrays.target.tolist()
    )
    kinds = {type(label) for _, _, label in rows}
    kind = "U" if str in kinds else "f" if float in kinds else "i"
    assert arrays.target.dtype.kind == kind


def test_arrays_are_writable_and_plain():
    arrays = to_arrays(read_table(b"a,target\n1,x\n", "here"))
    assert arrays.data.dtype == np.float64
    assert arrays.data.flags.writeable
    assert arrays.target.flags.writeable
