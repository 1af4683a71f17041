import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave import _labels

# numpy drops the zero characters at the end of a string.
texts = st.text(st.characters(exclude_characters="\0"), max_size=3)
label_lists = st.one_of(
    st.lists(texts, min_size=1, max_size=8),
    st.lists(st.integers(-3, 3), min_size=1, max_size=8),
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.lists(st.sampled_from([0.5, 1.5, -2.0]), min_size=1, max_size=8),
)


@given(label_lists, st.booleans())
def test_codes_lead_back_to_labels(labels, as_objects):
    given_labels = np.array(labels, dtype=object) if as_objects else labels
    classes = _labels.union([("y", given_labels)])
    codes = _labels.encode(given_labels, classes, "y")
    assert classes[codes].tolist() == labels
    assert classes.tolist() == sorted(set(labels))


@given(label_lists)
def test_the_reject_label_is_never_a_class_and_decodes(labels):
    classes = _labels.union([("y", labels)])
    reject = _labels.default_reject_label(classes)
    assert reject not in classes.tolist()
    codes = np.array([_labels.REJECTED, *_labels.encode(labels, classes, "y")])
    answers = _labels.decode(codes, classes, reject)
    assert answers.tolist() == [reject, *labels]
    assert _labels.encode(answers, classes, "y", reject).tolist() == codes.tolist()


def test_default_reject_labels_as_documented():
    assert _labels.default_reject_label(np.array(["a", "rejected"])) == "rejected_"
    assert _labels.default_reject_label(np.array([1, 2])) == 0
    assert _labels.default_reject_label(np.array([-1, 1])) == -2
    assert _labels.default_reject_label(np.array([False, True])) == "rejected"


def test_very_large_labels():
    floats = np.array([1e16, 2e16])
    assert _labels.default_reject_label(floats) not in floats
    huge = np.array([1, 2**64 - 1], dtype=np.uint64)
    assert _labels.encode(huge, huge, "y").tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"\by\b.*\b18446744073709551615\b"):
        _labels.encode(huge, np.array([-1, 1]), "y")


def test_order_of_classes_is_kept():
    classes = np.array(["low", "mid", "high"])
    assert _labels.encode(["high", "low", "mid"], classes, "y").tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("sets", "got"),
    [
        ([("y_true", ["x"]), ("y_pred", [1])], r"\by_true\b.*\by_pred\b"),
        ([("y_true", [True]), ("y_pred", [1])], r"\by_true\b.*\by_pred\b"),
        ([("y_true", np.array(["x", b"y"], dtype=object))], r"\bbytes\b.*\by_true\b"),
        ([("y_true", [])], "(?i)labels"),
    ],
)
def test_labels_of_mixed_kinds_are_refused(sets, got):
    with pytest.raises(ValueError, match=got):
        _labels.union(sets)


@pytest.mark.parametrize(
    "labels", [["x", None], [1.0, np.nan], pd.Series(["x", None], dtype="string"), ["x", np.nan]]
)
def test_missing_labels_are_named_wherever_they_come(labels):
    for call in (
        lambda: _labels.union([("y", labels)]),
        lambda: _labels.encode(labels, np.array(["x"]), "y"),
    ):
        with pytest.raises(ValueError, match=r"\by\b.*NaN"):
            call()


def test_strings_of_numpys_own_type():
    labels = np.array(["a", "b"], dtype=np.dtypes.StringDType())
    assert _labels.encode(labels, _labels.union([("y", labels)]), "y").tolist() == [0, 1]


def test_an_unknown_label_among_many_classes_is_named():
    with pytest.raises(ValueError, match=r"\by\b.*\b99\b.* 9, .*\b20\b"):
        _labels.encode([3, 99], np.arange(20), "y")
