"""A dialog put together from its pieces is the dialog, and goes on as it would."""

import copy
import json
import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from margrave import Confusion, ParameterError, Preference
from margrave.martingale import TunableLogistic
from margrave.steer import Dialog, FileError, GuaranteeError
from margrave.steer._certificate import describe_bound
from margrave.steer._reply import Reply

RANDOM = np.random.default_rng(5)
Y = np.array(["no", "yes"])[RANDOM.integers(0, 2, 400)]
X = RANDOM.normal(size=(400, 3)) + (Y == "yes")[:, None]
MEMBERS = [
    ("tunable", TunableLogistic()),
    ("bayes", GaussianNB()),
    ("logistic", LogisticRegression()),
]


@pytest.fixture(scope="module")
def talked():
    """A dialog with steps by several ways, a branch and an undo."""
    dialog = Dialog.from_data(X, Y, committee=MEMBERS, random_state=0)
    dialog.prefer("fp <= 30", strategies=["move"])
    dialog.prefer("fp <= 20", strategies=["retune"])
    dialog.prefer("fp <= 25", strategies=["move"])
    dialog.goto(1)
    dialog.prefer("fp <= 15", strategies=["retune"])
    dialog.prefer("fp <= 15, rejected <= 10%")
    dialog.undo()
    return dialog


def again(dialog):
    """The dialog, restored from what a store has written, with the state as JSON."""
    steps = [dialog.dump_step(number) for number in range(1, len(dialog.history))]
    models = [accepted.model.to_bytes() for accepted in dialog.accepted]
    state = json.loads(json.dumps(dialog.dump_state()))
    return Dialog.restore(dialog.dump_start(), steps, models, state)


def test_all_steps_come_back_with_their_scores(talked):
    found = again(talked)
    assert found.history == talked.history
    assert found.position == talked.position
    assert found.parents == talked.parents
    assert found.undone == talked.undone
    for old, new in zip(talked.history, found.history, strict=True):
        np.testing.assert_array_equal(old.candidate.scores, new.candidate.scores)
        np.testing.assert_array_equal(old.candidate.predictions, new.candidate.predictions)
        np.testing.assert_array_equal(old.model.predict(X), new.model.predict(X))
        np.testing.assert_array_equal(
            old.model.decision_function(X), new.model.decision_function(X)
        )


def test_what_steps_share_stays_shared(talked):
    """Else a search would try the same scores twice, and the frontier show them twice."""
    found = again(talked)
    for i, one in enumerate(talked.history):
        for j, other in enumerate(talked.history):
            same = one.candidate.scorer is other.candidate.scorer
            there = found.history[i].candidate.scorer is found.history[j].candidate.scorer
            assert same == there
    assert [curve.name for curve in found.frontier().curves] == [
        curve.name for curve in talked.frontier().curves
    ]


def test_it_goes_on_as_the_original_would(talked):
    ours, found = copy.deepcopy(talked), again(talked)
    for dialog in (ours, found):
        dialog.redo()
        dialog.prefer("fn <= 25")
    assert found.reply.after == ours.reply.after
    assert found.reply.strategy == ours.reply.strategy


def test_without_a_state_it_is_at_the_last_step(talked):
    steps = [talked.dump_step(number) for number in range(1, len(talked.history))]
    found = Dialog.restore(talked.dump_start(), steps)
    assert found.position == len(talked.history) - 1
    assert found.accepted == ()


def test_a_step_is_small(talked):
    """The members that the dialog began with are not in it."""
    base = len(talked.dump_start())
    assert all(len(talked.dump_step(step)) < base for step in range(1, len(talked.history)))


@pytest.mark.parametrize("step", [0, 99, "1"])
def test_a_step_that_is_none_is_refused(talked, step):
    with pytest.raises(ParameterError) as refused:
        talked.dump_step(step)
    assert refused.value.fields["parameter"] == "step"


def test_what_was_used_up_stays_used_up(talked):
    dialog = copy.deepcopy(talked)
    dialog.goto(1)
    model = dialog.accept(confidence=0.9)
    found = again(dialog)
    assert found.certification.used_up
    same = found.accept(confidence=0.9)
    assert same.certificate_ == model.certificate_
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    found.goto(2)
    with pytest.raises(GuaranteeError) as refused:
        found.accept(confidence=0.9)
    assert refused.value.code == "used_up"


def test_a_piece_of_another_kind_is_refused(talked):
    start = talked.dump_start()
    with pytest.raises(FileError) as refused:
        Dialog.restore(start, [talked.model.to_bytes()])
    assert refused.value.code == "kind"
    with pytest.raises(FileError) as refused:
        Dialog.restore(start[:-100])
    assert refused.value.code == "damaged"


def reply_to(text, counts, positive="yes"):
    matrix = Confusion(counts, ["no", "yes"], positive)
    wanted = Preference(text)
    return Reply(wanted, wanted.met(matrix), matrix, matrix, "move", 0.1, 1, True, candidate=None)


@pytest.mark.parametrize(
    ("asked", "instead"),
    [
        ("fp <= 5", "fp <= 12"),
        ("fp <= 5, fn <= 30", "fp <= 12, fn <= 30"),
        ("fp <= 1%, rejected <= 10%", "fp <= 10.72%, rejected <= 10%"),  # 12 of 112, up
        ("recall >= 90%", "recall >= 77.77%"),  # 70 of 90, down
        ("correct(no) >= 110", "correct(no) >= 100"),
    ],
)
def test_instead_is_met_by_what_was_reached(asked, instead):
    reply = reply_to(asked, [[100, 12], [20, 70]])
    assert str(reply.instead) == instead
    assert reply.instead.met(reply.after)


def test_nothing_instead_of_what_is_met_or_of_nothing():
    assert reply_to("fp <= 12", [[100, 12], [20, 70]]).instead is None
    assert reply_to("precision >= 80%", [[112, 0], [90, 0]]).instead is None


@pytest.mark.parametrize(
    ("text", "counts", "named"),
    [
        ("fp <= 5", [5, 112], ["ham", "spam"]),
        ("fn <= 0", [0, 90], ["spam", "ham"]),
        ("correct(spam) >= 80", [80, 90], ["spam"]),
        ("rejected <= 3", [3, 202], []),
        ("errors <= 9", [9, 202], []),
        ("correct >= 190", [190, 202], []),
        ("alarms <= 50", [50, 202], ["spam"]),
    ],
)
def test_counts_in_words_have_the_limit_the_base_and_the_true_class_first(text, counts, named):
    matrix = Confusion([[100, 12], [20, 70]], ["ham", "spam"])
    words = describe_bound(Preference(text).bounds[0], matrix)
    assert [int(one) for one in re.findall(r"\d+", words)] == counts
    assert list(dict.fromkeys(re.findall(r"\b(?:ham|spam)\b", words))) == named
