"""A tuning request: invalid requests are refused, and the result describes the search."""

import re
import warnings

import numpy as np
import pytest

from margrave import Confusion, Preference
from margrave.confusion import PreferenceError
from margrave.martingale import NotMetWarning, Step, Tuning
from margrave.martingale._request import SearchResult, check_preference, make_objective, report

TWO = np.array(["ham", "spam"])


@pytest.mark.parametrize(
    ("y", "classes", "expected"),
    [
        (["ham", "spam", "ham"], TWO, [0, 1, 0]),
        (np.array(["spam", "spam", "ham"], dtype=object), TWO, [1, 1, 0]),
        ([3, 1, 2], np.array([1, 2, 3]), [2, 0, 1]),
        (np.array([1.0, 0.0, 1.0]), np.array([0, 1]), [1, 0, 1]),
        ([True, False, True], np.array([False, True]), [1, 0, 1]),
    ],
)
def test_labels_become_places(y, classes, expected):
    objective = make_objective("accuracy >= 50%", y, classes, None, 3, "Thing.tune")
    assert objective.codes.tolist() == expected
    assert objective.classes == tuple(classes.tolist())
    assert objective.preference == Preference("accuracy >= 50%")


def test_a_preference_object_is_accepted():
    wanted = Preference("fp <= 1")
    objective = make_objective(wanted, ["ham", "spam"], TWO, "ham", 2, "Thing.tune")
    assert (objective.preference, objective.positive) == (wanted, "ham")


@pytest.mark.parametrize(
    ("preference", "y", "error", "named"),
    [
        ("fp <= 1", ["ham", "spam", "eggs"], ValueError, r"Thing\.tune.*y_tune.*'eggs'"),
        ("fp <= 1", ["ham", "spam", None], ValueError, r"Thing\.tune.*y_tune.*\bNone\b"),
        ("fp <= 1", ["ham", "spam"], ValueError, r"Thing\.tune.*y_tune.*\b3\b.*\(2,\)"),
        (
            "fp <= 1",
            [["ham"], ["spam"], ["ham"]],
            ValueError,
            r"Thing\.tune.*y_tune.*\b3\b.*\(3, 1\)",
        ),
        ("fp <= 1", ["ham", "ham", "ham"], ValueError, r"Thing\.tune.*y_tune.*\bspam\b"),
        (
            "correct(spam) >= 3",
            ["ham", "ham", "spam"],
            PreferenceError,
            r"'correct\(spam\) >= 3'.*\b2\b.*\b1\b",
        ),
        (
            "alarms <= 0, recall(spam) >= 50%",
            ["ham", "ham", "spam"],
            PreferenceError,
            r"'alarms <= 0'.*'recall\(spam\) >= 50%'",
        ),
        (
            "recall(eggs) >= 50%",
            ["ham", "ham", "spam"],
            PreferenceError,
            r"'recall\(eggs\) >= 50%'.*'eggs'",
        ),
        (3, ["ham", "ham", "spam"], TypeError, r"Preference.*\b3\b"),
    ],
)
def test_invalid_requests_are_refused(preference, y, error, named):
    with pytest.raises(error, match=named):
        make_objective(preference, y, TWO, None, 3, "Thing.tune")


def test_the_first_missing_class_is_named():
    with pytest.raises(ValueError, match=r"y_tune.*'2'"):
        make_objective("accuracy >= 50%", [1, 1, 4], np.array([1, 2, 3, 4]), None, 3, "Thing.tune")


def test_fp_of_three_classes_needs_a_positive_one():
    y, classes = [0, 1, 2], np.arange(3)
    with pytest.raises(PreferenceError, match=r"'fp <= 1'.*\b3\b"):
        make_objective("fp <= 1", y, classes, None, 3, "Thing.tune")
    assert make_objective("fp <= 1", y, classes, 2, 3, "Thing.tune").positive == 2


def test_an_unknown_positive_class_is_refused():
    with pytest.raises(ValueError, match=r"\bpositive\b.*'eggs'"):
        make_objective("fp <= 1", ["ham", "spam"], TWO, "eggs", 2, "Thing.tune")


def numbers(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def account(text, after, positive=None):
    """The report on six samples, three of each class: before, after and by the offset."""
    y = ["ham"] * 3 + ["spam"] * 3
    objective = make_objective(text, y, TWO, positive, 6, "Thing.tune")
    before, by_offset = np.array([0, 1, 1, 0, 1, 1]), np.array([0, 0, 0, 0, 0, 1])
    outcome = SearchResult(before, np.array(after), by_offset, n_models=3, cancelled=True)
    return report(objective, outcome, "Thing.tune")


def test_the_account_of_a_preference_that_is_met():
    result = account("fp <= 1", [0, 0, 1, 0, 1, 1])  # without a warning
    assert result == Tuning(
        Preference("fp <= 1"),
        met=True,
        before=Confusion([[1, 2], [1, 2]], ["ham", "spam"]),
        after=Confusion([[2, 1], [1, 2]], ["ham", "spam"]),
        by_offset=Confusion([[3, 0], [2, 1]], ["ham", "spam"]),
        n_models=3,
        cancelled=True,
    )
    assert result.shortfall == 0
    assert str(result.binding) == "fp <= 1"
    head, *matrices = str(result).splitlines()
    assert "fp <= 1" in head
    assert "spam" in head
    assert numbers(head) == [1, 3]  # fp <= 1, three models
    assert [numbers(line) for line in matrices] == [[2, 1, 3, 6], [1, 1, 2, 6], [0, 2, 2, 6]]


def test_the_account_of_a_preference_that_is_not_met():
    with pytest.warns(NotMetWarning, match=r"Thing\.tune") as caught:
        result = account("fp <= 1, recall(spam) >= 80%", [1, 1, 1, 0, 1, 1])
    (warning,) = caught
    for named in ("'fp <= 1, recall(spam) >= 80%'", "2.4", "'fp <= 1'"):
        assert named in str(warning.message)
    assert not result.met
    assert result.shortfall == pytest.approx(2.4)
    assert str(result.binding) == "fp <= 1"
    head, before, *_ = str(result).splitlines()
    assert "fp <= 1, recall(spam) >= 80%" in head
    assert numbers(head) == [1, 80, 2.4, 1, 3]
    assert numbers(before) == [66.7, 2, 1, 3, 6]


def test_the_binding_bound_is_that_which_most_samples_miss():
    with pytest.warns(NotMetWarning, match=r"\b3\b.*'fn <= 0'"):
        result = account("fp <= 0, fn <= 0", [1, 0, 0, 0, 0, 1])
    assert str(result.binding) == "fn <= 0"


def test_the_result_names_the_positive_class():
    result = account("fp <= 1", [0, 0, 0, 0, 1, 1], positive="ham")
    assert (result.after.positive, result.after.fp, result.after.fn) == ("ham", 1, 0)
    assert numbers(str(result).splitlines()[2]) == [1, 0, 1, 6]


def test_the_result_of_three_classes_has_the_bounds_and_the_errors():
    objective = make_objective("accuracy >= 50%", [0, 1, 2], np.arange(3), None, 3, "Thing.tune")
    right, wrong = np.array([0, 1, 2]), np.array([0, 2, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = report(
            objective, SearchResult(wrong, right, right, 1, cancelled=False), "Thing.tune"
        )
    head, *matrices = str(result).splitlines()
    assert "accuracy >= 50%" in head
    assert [numbers(line) for line in matrices] == [[66.7, 1, 3], [100, 0, 3], [100, 0, 3]]


def test_a_preference_that_rejects_is_refused():
    with pytest.raises(PreferenceError, match=r"Thing\.tune.*'rejected >= 1'"):
        make_objective("rejected >= 1", ["ham", "spam"], TWO, None, 2, "Thing.tune")


@pytest.mark.parametrize("preference", [5, None, {"fp": 1}])
def test_an_object_other_than_a_preference_is_refused_first(preference):
    with pytest.raises(TypeError, match=rf"Thing\.tune.*\b{type(preference).__name__}\b"):
        check_preference(preference, "Thing.tune")


def test_steps_and_accounts_cannot_be_changed():
    matrix = Confusion([[1, 0], [0, 1]])
    step = Step(1, 20, True, matrix)
    with pytest.raises(AttributeError):
        step.met = False
    with pytest.raises(AttributeError):
        account("fp <= 1", [0, 0, 1, 0, 1, 1]).met = False
    assert issubclass(NotMetWarning, UserWarning)


def test_errors_are_counted_once():
    objective = make_objective("errors <= 0", [0, 1, 2], np.arange(3), None, 3, "Thing.tune")
    right, wrong = np.array([0, 1, 2]), np.array([0, 2, 2])
    result = report(objective, SearchResult(wrong, right, right, 1, cancelled=False), "Thing.tune")
    head, before, *_ = str(result).splitlines()
    assert numbers(head) == [0, 1]  # errors <= 0, one model
    assert numbers(before) == [1, 3]
