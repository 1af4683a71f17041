import pickle

import numpy as np
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from margrave import Confusion, Preference

MAIL = Confusion([[90, 6, 4], [8, 40, 2]], classes=["ham", "spam"])


def test_counts_and_rates_worked_by_hand():
    assert (MAIL.tp, MAIL.fn, MAIL.fp, MAIL.tn) == (40, 8, 6, 90)
    assert (MAIL.n, MAIL.n_rejected) == (150, 6)
    assert MAIL.acc_plus == MAIL.recall("spam") == 40 / 50
    assert MAIL.acc_minus == MAIL.recall("ham") == 90 / 100
    assert MAIL.precision() == 40 / 46
    assert MAIL.precision("ham") == 90 / 98
    assert MAIL.accuracy == 130 / 150
    assert MAIL.balanced_accuracy == pytest.approx((0.8 + 0.9) / 2)
    assert MAIL.alarms == 46 / 150
    assert MAIL.rejected == 6 / 150
    assert MAIL["spam", "ham"] == 8
    assert MAIL["spam", None] == 2


def test_one_class_against_the_rest():
    matrix = Confusion([[5, 1, 2, 1], [0, 7, 1, 0], [2, 2, 6, 0]], "abc", positive="b")
    assert (matrix.tp, matrix.fn, matrix.fp) == (7, 1, 3)
    assert matrix.tn == 5 + 2 + 2 + 6
    assert matrix.acc_minus == 15 / 19


def test_rates_of_nothing_are_not_numbers():
    matrix = Confusion([[3, 0], [0, 0]])
    assert np.isnan([matrix.recall(1), matrix.precision(1)]).all()
    assert matrix.balanced_accuracy == 1.0


label_sets = st.sampled_from([["a", "b", "c"], [-1, 1], [1, 2], [True, False], [1.0, 2.0]])


@given(label_sets, st.data())
def test_of_agrees_with_scikit_learn(labels, data):
    labels_of = st.lists(st.sampled_from(labels), min_size=1, max_size=30)
    y_true = data.draw(labels_of)
    y_pred = data.draw(
        st.lists(st.sampled_from(labels), min_size=len(y_true), max_size=len(y_true))
    )
    ours = Confusion.of(y_true, y_pred, classes=labels)
    theirs = confusion_matrix(y_true, y_pred, labels=labels)
    assert ours.classes == tuple(labels)
    assert ours.counts[:, :-1].tolist() == theirs.tolist()
    assert ours.n_rejected == 0


@pytest.mark.parametrize(
    ("classes", "reject_label"),
    [(["a", "b"], "rejected"), ([1, 2], 0), ([False, True], "rejected"), ([0.5, 1.5], -0.5)],
)
def test_rejected_answers_have_their_column(classes, reject_label):
    no, yes = classes
    y_pred = np.array([no, yes, reject_label, reject_label, yes], dtype=object)
    matrix = Confusion.of([no, no, no, yes, yes], y_pred, reject_label=reject_label)
    assert matrix.counts.tolist() == [[1, 1, 1], [0, 1, 1]]
    assert matrix.classes == (no, yes)


def test_plain_lists_may_mix_answers_with_a_text_that_means_rejected():
    matrix = Confusion.of([True, False], [True, "rejected"], reject_label="rejected")
    assert matrix.counts.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert Confusion.of([0, 1], [0, 1], classes={0, 1}).n == 2


def test_classes_that_do_not_occur_keep_their_rows():
    matrix = Confusion.of(["a", "c"], ["a", "a"], classes=["a", "b", "c"])
    assert matrix.counts.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]


def test_matrices_are_values():
    same = Confusion([[90, 6, 4], [8, 40, 2]], classes=["ham", "spam"])
    assert same == MAIL
    assert hash(same) == hash(MAIL)
    assert Confusion(MAIL.counts, MAIL.classes, positive="ham") != MAIL
    assert (MAIL + MAIL).counts.tolist() == [[180, 12, 8], [16, 80, 4]]
    assert eval(repr(MAIL), {"Confusion": Confusion}) == MAIL  # noqa: S307


def test_folds_add_up():
    assert sum([MAIL, MAIL, MAIL]) == MAIL + MAIL + MAIL
    with pytest.raises(TypeError):
        MAIL + 1


def test_a_cell_has_two_places():
    with pytest.raises(TypeError, match=r"Confusion.*'ham'"):
        _ = MAIL["ham"]


def named_in_head(matrix):
    """How often the first printed line names each class."""
    words = str(matrix).splitlines()[0].split()
    return {label: words.count(str(label)) for label in matrix.classes}


def test_the_positive_class_is_seen_in_print():
    other = Confusion(MAIL.counts, MAIL.classes, positive=np.str_("ham"))
    assert named_in_head(MAIL) == {"ham": 1, "spam": 2}
    assert named_in_head(other) == {"ham": 2, "spam": 1}
    assert repr(other).endswith("positive='ham')")
    assert named_in_head(Confusion(np.eye(3, dtype=int))) == {0: 1, 1: 1, 2: 1}


def test_matrices_survive_skops():
    packed = skops.io.dumps(MAIL)
    trusted = skops.io.get_untrusted_types(data=packed)
    assert skops.io.loads(packed, trusted=trusted) == MAIL


def test_counts_cannot_be_changed_and_the_callers_are_not():
    given_counts = np.array([[1, 2], [3, 4]])
    matrix = Confusion(given_counts)
    for one in (matrix, pickle.loads(pickle.dumps(matrix))):  # noqa: S301
        with pytest.raises(ValueError, match="read-only"):
            one.counts[0, 0] = 9
    given_counts[0, 0] = 9
    assert matrix[0, 0] == 1


@pytest.mark.parametrize(
    ("cell", "to", "text"),
    [
        (("ham", "spam"), 5, "fp <= 5"),
        (("ham", "spam"), 50, "fp <= 50, then fewest other errors"),  # raised: more are tolerable
        (("ham", "spam"), "50%", "fp <= 50%, then fewest other errors"),
        (("spam", "ham"), 50, "fn <= 50, then fewest other errors"),
        (("spam", "ham"), "2%", "fn <= 2%"),
        (("spam", "spam"), 45, "correct(spam) >= 45"),
        (("ham", None), 3, "rejected(ham) <= 3"),
    ],
)
def test_editing_a_cell_gives_a_preference(cell, to, text):
    assert MAIL.edit(*cell, to) == Preference(text)


def test_editing_a_larger_matrix_names_both_classes():
    matrix = Confusion(np.full((3, 3), 9), classes=["a", "b c", "d"])
    assert matrix.edit("a", "b c", 2) == Preference('errors(a -> "b c") <= 2')
    raised = matrix.edit("a", "b c", 20)
    assert raised == Preference('errors(a -> "b c") <= 20', "then fewest other errors")


def test_a_number_that_is_already_there_is_not_raised():
    for true, predicted in [("ham", "spam"), ("spam", "ham")]:
        count = MAIL[true, predicted]
        assert MAIL.edit(true, predicted, count).then is None
        assert MAIL.edit(true, predicted, count + 1).then is not None
    assert (MAIL.edit("ham", "spam", 50) & MAIL.edit("spam", "ham", 0)).then is not None


def test_an_edit_is_met_exactly_by_the_edited_matrix():
    wish = MAIL.edit("ham", "spam", 5) & Preference("rejected <= 100%")
    assert not wish.met(MAIL)
    assert wish.met(Confusion([[91, 5, 4], [8, 40, 2]], classes=["ham", "spam"]))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: Confusion([1, 2]), r"\bcounts\b.*\(2,\)"),
        (lambda: Confusion(np.zeros((0, 1), dtype=int)), r"\bcounts\b.*\(0, 1\)"),
        (lambda: Confusion([[1.5, 0], [0, 1]]), r"\bcounts\b"),
        (lambda: Confusion([[-1, 0], [0, 1]]), r"\bcounts\b"),
        (
            lambda: Confusion([[1, 0], [0, 1]], classes=["a", "a"]),
            r"\b2\b.*\bclasses\b.*\('a', 'a'\)",
        ),
        (lambda: Confusion([[1, 0], [0, 1]], classes=["a", "b"], positive="c"), "'c'"),
        (lambda: Confusion.of([], []), r"Confusion\.of.*\(0,\).*\(0,\)"),
        (
            lambda: Confusion.of(["a", "b"], ["a", "z"], classes=["a", "b"]),
            r"\by_pred\b.*'z'.*\breject_label\b.*\bclasses=",
        ),
        (
            lambda: Confusion.of(["a", "b"], [0, 1]),
            r"\by_pred\b.*\b0\b.*\breject_label\b.*\bclasses=",
        ),
        (
            lambda: Confusion.of([0, 1], [0.2, 0.9]),
            r"\by_pred\b.*\b0\.2\b.*\breject_label\b.*\bclasses=",
        ),
        (
            lambda: Confusion.of(["a", "b", "a"], ["a", "b", "b"], reject_label="b"),
            r"Confusion\.of.*\breject_label\b.*'b'",
        ),
        (
            lambda: MAIL.edit("ham", "spam", "5, fn <= 0"),
            r"Confusion\.edit.*\b100\b.*'ham'.*'5, fn <= 0'",
        ),
        (lambda: Confusion.of([0.0, np.nan], [0.0, 1.0]), r"\by_true\b.*NaN"),
        (
            lambda: Confusion.of(["a", "b"], ["a", None]),
            r"\by_pred\b.*None.*\breject_label\b.*\bclasses=",
        ),
        (
            lambda: Confusion.of(["a", "b"], ["a", "b"], reject_label=np.nan),
            r"\breject_label\b.*NaN",
        ),
        (lambda: Confusion.of(["a", "b"], ["a", "b"], classes=[]), "(?i)labels"),
        (lambda: MAIL.edit("ham", "spam", 101), r"Confusion\.edit.*\b100\b.*'ham'.*\b101\b"),
        (lambda: Confusion(np.eye(3, dtype=int)).fp, r"\b3\b.*\bpositive="),
        (
            lambda: MAIL + Confusion([[1, 0], [0, 1]]),
            r"\('ham', 'spam'\).*'spam'.*\(0, 1\).*\b1\b",
        ),
    ],
)
def test_bad_input_names_what_is_wrong(call, named):
    with pytest.raises(ValueError, match=named):
        call()


@pytest.mark.parametrize(
    "counts",
    [
        [[2**62] * 2] * 2,  # the sum is 0 modulo 2^64
        [[2**53, 0], [0, 0]],
        np.full((2, 2), 2**63, dtype=np.uint64),
        np.full((2, 3), 2**31 - 1, dtype=np.int32) * np.int64(2**22),
    ],
    ids=["wraps to 0", "at the limit", "unsigned", "sum above the limit"],
)
def test_counts_whose_sums_would_not_be_exact_are_refused(counts):
    with pytest.raises(ValueError, match=r"\b2\^53\b"):
        Confusion(counts)


def test_matrices_whose_sum_would_not_be_exact_are_not_added():
    large = Confusion([[2**52, 0], [0, 2**52 - 1]])
    assert large.n == 2**53 - 1
    with pytest.raises(ValueError, match=r"\b2\^53\b"):
        large + Confusion([[0, 1], [0, 0]])


def test_repeats_whose_sum_would_not_be_exact_are_refused():
    with pytest.raises(ValueError, match=r"\b2\^53\b"):
        Confusion.of([0, 1, 0], [0, 1, 0], repeats=[2**53, 1, 1])
