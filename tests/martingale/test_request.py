"""A request: what cannot be judged is refused, and the account says what was done."""

import warnings

import numpy as np
import pytest

from margrave import Confusion, Preference
from margrave.martingale import NotMetWarning, Step, Tuning
from margrave.martingale._request import Outcome, check_wanted, judge_of, report
from margrave.preference import PreferenceError

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
    judge = judge_of("accuracy >= 50%", y, classes, None, 3, "Thing.tune")
    assert judge.codes.tolist() == expected
    assert judge.classes == tuple(classes.tolist())
    assert judge.preference == Preference("accuracy >= 50%")


def test_a_preference_may_be_given_as_one():
    wanted = Preference("fp <= 1")
    judge = judge_of(wanted, ["ham", "spam"], TWO, "ham", 2, "Thing.tune")
    assert (judge.preference, judge.positive) == (wanted, "ham")


@pytest.mark.parametrize(
    ("preference", "y", "error", "message"),
    [
        (
            "fp <= 1",
            ["ham", "spam", "eggs"],
            ValueError,
            "Thing.tune: y_tune: 'eggs' is not one of the classes 'ham', 'spam'.",
        ),
        (
            "fp <= 1",
            ["ham", "spam", None],
            ValueError,
            "Thing.tune: y_tune: a label is missing (None or NaN).",
        ),
        (
            "fp <= 1",
            ["ham", "spam"],
            ValueError,
            "Thing.tune needs y_tune with a label for each of 3 samples; got shape (2,).",
        ),
        (
            "fp <= 1",
            [["ham"], ["spam"], ["ham"]],
            ValueError,
            "Thing.tune needs y_tune with a label for each of 3 samples; got shape (3, 1).",
        ),
        (
            "fp <= 1",
            ["ham", "ham", "ham"],
            ValueError,
            "Thing.tune needs y_tune with samples of every class; got none of 'spam'.",
        ),
        (
            "correct(spam) >= 3",
            ["ham", "ham", "spam"],
            PreferenceError,
            "No matrix with these class sizes can have 'correct(spam) >= 3'; "
            "there are 2 of ham, 1 of spam.",
        ),
        (
            "alarms <= 0, recall(spam) >= 50%",
            ["ham", "ham", "spam"],
            PreferenceError,
            "No matrix with these class sizes can have 'alarms <= 0' and 'recall(spam) >= 50%'; "
            "there are 2 of ham, 1 of spam.",
        ),
        (
            "recall(eggs) >= 50%",
            ["ham", "ham", "spam"],
            PreferenceError,
            "'recall(eggs) >= 50%' names the class 'eggs'; the classes are ham, spam.",
        ),
        (3, ["ham", "ham", "spam"], TypeError, "Preference needs its bounds as texts; got 3."),
    ],
)
def test_what_cannot_be_judged_or_done_is_refused(preference, y, error, message):
    with pytest.raises(error) as caught:
        judge_of(preference, y, TWO, None, 3, "Thing.tune")
    assert str(caught.value) == message


def test_the_first_missing_class_is_named_in_its_own_type():
    message = r"^Thing\.tune needs y_tune with samples of every class; got none of 2\.$"
    with pytest.raises(ValueError, match=message):
        judge_of("accuracy >= 50%", [1, 1, 4], np.array([1, 2, 3, 4]), None, 3, "Thing.tune")


def test_fp_of_three_classes_needs_a_positive_one():
    y, classes = [0, 1, 2], np.arange(3)
    with pytest.raises(PreferenceError, match=r"^'fp <= 1' needs a class, since there are 3 and"):
        judge_of("fp <= 1", y, classes, None, 3, "Thing.tune")
    assert judge_of("fp <= 1", y, classes, 2, 3, "Thing.tune").positive == 2


def test_a_positive_class_that_is_not_there_is_refused():
    message = r"^Thing\.tune needs positive to be one of 'ham', 'spam'; got 'eggs'\.$"
    with pytest.raises(ValueError, match=message):
        judge_of("fp <= 1", ["ham", "spam"], TWO, "eggs", 2, "Thing.tune")


def account(text, after, positive=None):
    """The report on six samples, three of each class: before, after and by the offset."""
    y = ["ham"] * 3 + ["spam"] * 3
    judge = judge_of(text, y, TWO, positive, 6, "Thing.tune")
    before, by_offset = np.array([0, 1, 1, 0, 1, 1]), np.array([0, 0, 0, 0, 0, 1])
    outcome = Outcome(before, np.array(after), by_offset, n_models=3, cancelled=True)
    return report(judge, outcome, "Thing.tune")


def test_the_account_of_a_preference_that_is_met():
    told = account("fp <= 1", [0, 0, 1, 0, 1, 1])  # without a warning
    assert told == Tuning(
        Preference("fp <= 1"),
        met=True,
        before=Confusion([[1, 2], [1, 2]], ["ham", "spam"]),
        after=Confusion([[2, 1], [1, 2]], ["ham", "spam"]),
        by_offset=Confusion([[3, 0], [2, 1]], ["ham", "spam"]),
        n_models=3,
        cancelled=True,
    )
    assert told.shortfall == 0
    assert str(told.binding) == "fp <= 1"
    assert str(told) == (
        "fp <= 1 (spam is positive): met on the tuning set, 3 models trained\n"
        "before:    fp 2, fn 1, 3 errors in 6\n"
        "after:     fp 1, fn 1, 2 errors in 6\n"
        "by offset: fp 0, fn 2, 2 errors in 6"
    )


def test_the_account_of_a_preference_that_is_not_met():
    with pytest.warns(NotMetWarning) as caught:
        told = account("fp <= 1, recall(spam) >= 80%", [1, 1, 1, 0, 1, 1])
    assert [str(one.message) for one in caught] == [
        "Thing.tune did not meet 'fp <= 1, recall(spam) >= 80%': the nearest of 4 models is "
        "2.4 samples short, and 'fp <= 1' binds."
    ]
    assert not told.met
    assert told.shortfall == pytest.approx(2.4)
    assert str(told.binding) == "fp <= 1"
    assert str(told).splitlines()[0] == (
        "fp <= 1, recall(spam) >= 80% (spam is positive): not met, 2.4 short ('fp <= 1' binds) on "
        "the tuning set, 3 models trained"
    )
    assert str(told).splitlines()[1] == "before:    recall(spam) 66.7%, fp 2, fn 1, 3 errors in 6"


def test_the_binding_bound_is_that_which_most_samples_miss():
    with pytest.warns(NotMetWarning, match=r"3 samples short, and 'fn <= 0' binds\.$"):
        told = account("fp <= 0, fn <= 0", [1, 0, 0, 0, 0, 1])
    assert str(told.binding) == "fn <= 0"


def test_the_account_speaks_of_the_positive_class():
    told = account("fp <= 1", [0, 0, 0, 0, 1, 1], positive="ham")
    assert (told.after.positive, told.after.fp, told.after.fn) == ("ham", 1, 0)
    assert "after:     fp 1, fn 0, 1 errors in 6" in str(told)


def test_the_account_of_three_classes_speaks_of_what_was_wanted_and_of_errors():
    judge = judge_of("accuracy >= 50%", [0, 1, 2], np.arange(3), None, 3, "Thing.tune")
    right, wrong = np.array([0, 1, 2]), np.array([0, 2, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = report(judge, Outcome(wrong, right, right, 1, cancelled=False), "Thing.tune")
    assert str(told).splitlines()[1:] == [
        "before:    accuracy 66.7%, 1 errors in 3",
        "after:     accuracy 100.0%, 0 errors in 3",
        "by offset: accuracy 100.0%, 0 errors in 3",
    ]
    assert str(told).startswith("accuracy >= 50%: already met, nothing changed on the tuning set")


def test_what_a_classifier_that_always_answers_cannot_do_is_refused():
    message = r"needs a preference that rejects nothing, since it always answers; got 'rejected"
    with pytest.raises(PreferenceError, match=message):
        judge_of("rejected >= 1", ["ham", "spam"], TWO, None, 2, "Thing.tune")


@pytest.mark.parametrize("preference", [5, None, {"fp": 1}])
def test_what_is_no_preference_is_refused_first(preference):
    message = r"^Thing\.tune needs a preference such as 'fp <= 5' first; got \w+\.$"
    with pytest.raises(TypeError, match=message):
        check_wanted(preference, "Thing.tune")


def test_steps_and_accounts_cannot_be_changed():
    matrix = Confusion([[1, 0], [0, 1]])
    step = Step(1, 20, True, matrix)
    with pytest.raises(AttributeError):
        step.met = False
    with pytest.raises(AttributeError):
        account("fp <= 1", [0, 0, 1, 0, 1, 1]).met = False
    assert issubclass(NotMetWarning, UserWarning)


def test_errors_are_told_once():
    judge = judge_of("errors <= 0", [0, 1, 2], np.arange(3), None, 3, "Thing.tune")
    right, wrong = np.array([0, 1, 2]), np.array([0, 2, 2])
    told = report(judge, Outcome(wrong, right, right, 1, cancelled=False), "Thing.tune")
    assert str(told).splitlines()[:2] == [
        "errors <= 0: met on the tuning set, 1 model trained",
        "before:    1 errors in 3",
    ]
