"""Going back and forth: the history against a simple model of it."""

import copy
import re

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sklearn.naive_bayes import GaussianNB

from margrave.confusion import PreferenceError
from margrave.steer import Dialog

RANDOM = np.random.default_rng(3)
Y = np.array(["no", "yes"])[RANDOM.integers(0, 2, 160)]
X = RANDOM.normal(size=(160, 2)) + (Y == "yes")[:, None]
START = Dialog(GaussianNB().fit(X[:60], Y[:60]), X[60:], Y[60:])


@pytest.fixture
def dialog():
    return copy.deepcopy(START)


class Visits(RuleBasedStateMachine):
    """Where a dialog stands, from a list of parents and a stack of what was undone."""

    def __init__(self):
        super().__init__()
        self.dialog = copy.deepcopy(START)
        self.asked, self.parents, self.at, self.undone = [None], [None], 0, []
        self.seen = [self.dialog.reply]

    @rule(limit=st.integers(0, 40), word=st.sampled_from(["fp", "fn"]))
    def ask(self, limit, word):
        before = self.dialog.confusion
        reply = self.dialog.prefer(f"{word} <= {limit}", strategies=["move"])
        assert reply.before == before
        if reply.note is not None:  # nothing changes, so there is no further step
            assert self.dialog.position == self.at
            return
        self.asked.append(f"{word} <= {limit}")
        self.parents.append(self.at)
        self.at, self.undone = len(self.asked) - 1, []
        self.seen.append(reply)

    @rule()
    def undo(self):
        if self.at == 0:
            with pytest.raises(ValueError, match=r"\bundo\b"):
                self.dialog.undo()
            return
        assert self.dialog.undo() is self.seen[self.parents[self.at]]
        self.undone.append(self.at)
        self.at = self.parents[self.at]

    @rule()
    def redo(self):
        if not self.undone:
            with pytest.raises(ValueError, match=r"\bredo\b"):
                self.dialog.redo()
            return
        self.at = self.undone.pop()
        assert self.dialog.redo() is self.seen[self.at]

    @rule(data=st.data())
    def goto(self, data):
        step = data.draw(st.integers(0, len(self.asked) - 1))
        assert self.dialog.goto(step) is self.seen[step]
        path = [self.at]
        while path[-1]:
            path.append(self.parents[path[-1]])
        if step in path:  # as by undo
            self.undone += path[: path.index(step)]
        elif step in self.undone:  # as by redo
            while self.undone.pop() != step:
                pass
        else:
            self.undone = []
        self.at = step

    @rule(beyond=st.integers(0, 3))
    def goto_nowhere(self, beyond):
        for step in (len(self.asked) + beyond, -1 - beyond):
            with pytest.raises(ValueError, match=rf"goto.*{step}\b"):
                self.dialog.goto(step)

    @precondition(lambda self: len(self.asked) > 1)
    @rule(data=st.data())
    def compare(self, data):
        steps = st.integers(0, len(self.asked) - 1)
        a, b = data.draw(steps), data.draw(steps)
        found = self.dialog.compare(a, b)
        one, two = (self.seen[step].model.predict(X[60:]) for step in (a, b))
        assert found.first is self.seen[a]
        assert found.second is self.seen[b]
        assert found.n_changed == (one != two).sum()
        for rows, predicted in ((found.rows_first, one), (found.rows_second, two)):
            assert rows.positions.tolist() == np.flatnonzero(one != two).tolist()
            assert rows.predicted.tolist() == predicted[one != two].tolist()
            assert rows.true.tolist() == Y[60:][one != two].tolist()
        assert found.n_only_first == ((one == Y[60:]) & (two != Y[60:])).sum()
        assert found.n_only_second == ((one != Y[60:]) & (two == Y[60:])).sum()

    @invariant()
    def agree(self):
        assert self.dialog.position == self.at
        assert len(self.dialog.history) == len(self.asked)
        assert all(kept is seen for kept, seen in zip(self.dialog.history, self.seen, strict=True))
        recorded = [reply.preference and str(reply.preference) for reply in self.dialog.history]
        assert recorded == self.asked
        assert self.dialog.reply is self.seen[self.at]
        assert self.dialog.confusion is self.seen[self.at].after


Visits.TestCase.settings = settings(stateful_step_count=15)
TestVisits = Visits.TestCase


def test_the_errors_at_the_ends(dialog):
    with pytest.raises(ValueError, match=r"Dialog\.undo"):
        dialog.undo()
    with pytest.raises(ValueError, match=r"Dialog\.redo"):
        dialog.redo()


@pytest.mark.parametrize("step", [1, -1, 0.0, "0", None, True, False, np.float64(0)])
def test_a_step_is_the_number_of_one_that_exists(dialog, step):
    with pytest.raises(ValueError, match=rf"goto.*{re.escape(repr(step))}"):
        dialog.goto(step)
    with pytest.raises(ValueError, match=rf"compare.*{re.escape(repr(step))}"):
        dialog.compare(0, step)
    assert dialog.goto(np.int64(0)) is dialog.reply


def test_a_request_from_an_earlier_step_branches_off(dialog):
    dialog.prefer("fp <= 3", strategies=["move"])
    dialog.prefer("fp <= 2", strategies=["move"])
    dialog.goto(1)
    branch = dialog.prefer("fp <= 1", strategies=["move"])
    assert branch.before == dialog.history[1].after
    assert dialog.position == 3
    assert dialog.undo() is dialog.history[1]
    dialog.goto(2)
    with pytest.raises(ValueError, match=r"\bredo\b"):
        dialog.redo()


def test_what_was_undone_is_gone_after_another_request(dialog):
    dialog.prefer("fp <= 3", strategies=["move"])
    dialog.undo()
    dialog.prefer("fp <= 2", strategies=["move"])
    with pytest.raises(ValueError, match=r"\bredo\b"):
        dialog.redo()
    assert dialog.position == 2


def test_undone_steps_come_back_one_by_one(dialog):
    for limit in (3, 2, 1):
        dialog.prefer(f"fp <= {limit}", strategies=["move"])
    assert [dialog.undo() and dialog.position for _ in range(3)] == [2, 1, 0]
    assert [dialog.redo() and dialog.position for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("want", ["fp <= 3", "fn <= 1, rejected <= 20%", "fp <= 1, fn <= 1"])
def test_a_preview_is_the_reply_without_a_step(dialog, want, keep):
    dialog.prefer("fn <= 12")
    dialog.prefer("fp <= 9")
    dialog.undo()
    before = dialog.history, dialog.parents, dialog.position, dialog.undone
    previews = [dialog.preview(want, keep=keep), dialog.preview(want, keep=keep, at=0)]
    assert (dialog.history, dialog.parents, dialog.position, dialog.undone) == before
    for preview, at in zip(previews, [1, 0], strict=True):
        reply = dialog.prefer(want, keep=keep, at=at)
        same = [(one.after, one.before, one.met, one.preference) for one in (preview, reply)]
        assert same[0] == same[1]


@pytest.mark.parametrize("k", [3, 4, 5])
def test_a_preview_of_several_classes_is_the_reply(k):
    random = np.random.default_rng(0)
    codes = random.integers(0, k, 400)
    X = random.normal(size=(400, 3)) + np.eye(k)[codes][:, :3]
    dialog = Dialog(GaussianNB().fit(X[:200], codes[:200]), X[200:], codes[200:])
    for _ in range(6):
        pairs = [random.choice(k, 2, replace=False) for _ in range(2)]
        want = ", ".join(f"errors({a} -> {b}) <= {random.integers(0, 8)}" for a, b in pairs)
        if random.random() < 0.5:
            want += ", rejected <= 10%"
        preview = dialog.preview(want)
        reply = dialog.prefer(want)
        assert preview.after == reply.after, want
        assert preview.met == preview.preference.met(preview.after)


def test_a_preview_refuses_what_a_request_refuses(dialog):
    for wants in ([], ["fp <= 1000"], ["nonsense"]):
        with pytest.raises(PreferenceError):
            dialog.preview(*wants)


def test_redo_leads_forward_from_an_earlier_step_of_the_path(dialog):
    for limit in (3, 2, 1):
        dialog.prefer(f"fp <= {limit}", strategies=["move"])
    dialog.goto(0)
    assert dialog.undone == (3, 2, 1)
    dialog.goto(2)
    assert dialog.undone == (3,)
    dialog.redo()
    assert (dialog.position, dialog.undone) == (3, ())


def test_changed_samples_are_those_that_the_matrices_count(dialog):
    """Also with rejected samples, and with margins as the steps themselves have them."""
    dialog.prefer("fp <= 3, rejected <= 30%")
    dialog.goto(0)
    dialog.prefer("fn <= 2")
    compared = dialog.compare(1, 2)
    first, second = compared.rows_first, compared.rows_second
    assert None in first.predicted
    classes, answers = ["no", "yes"], ["no", "yes", None]
    moved = np.zeros((2, 3), dtype=int)
    for true, before, after in zip(first.true, first.predicted, second.predicted, strict=True):
        assert before != after
        moved[classes.index(true), answers.index(before)] -= 1
        moved[classes.index(true), answers.index(after)] += 1
    one, two = dialog.history[1].after, dialog.history[2].after
    assert (moved == two.counts - one.counts).all()
    for step, rows in ((1, first), (2, second)):
        dialog.goto(step)
        all_rows = dialog.rows()
        for name in ("margin", "certainty", "predicted"):
            assert (getattr(all_rows, name)[rows.positions] == getattr(rows, name)).all()
        for name, votes in rows.votes.items():
            assert (all_rows.votes[name][rows.positions] == votes).all()


def test_some_of_the_rows_are_selected(dialog):
    rows = dialog.rows()
    yes = rows.select(rows.true == "yes")
    assert yes.positions.tolist() == dialog.rows(true="yes").positions.tolist()
    assert rows.select(np.array([3, 1])).positions.tolist() == [3, 1]
    assert len(rows.select(np.array([], dtype=int))) == 0


def test_the_history_cannot_be_changed_from_outside(dialog):
    history = dialog.history
    dialog.prefer("fp <= 3", strategies=["move"])
    assert len(history) == 1
    assert isinstance(history, tuple)
    with pytest.raises(AttributeError):
        dialog.reply.met = False
    with pytest.raises(AttributeError):
        dialog.position = 0
    with pytest.raises(ValueError, match="read-only"):
        dialog.confusion.counts[0, 0] = 5


def test_a_comparison_reads_by_itself(dialog):
    first = dialog.prefer("fp <= 3", strategies=["move"])
    second = dialog.prefer("fn <= 3", strategies=["move"])
    compared = dialog.compare(1, 2)
    head, *changes, last = str(compared).splitlines()
    assert head.index("fp <= 3") < head.index("fn <= 3")
    assert len(changes) == len(compared.changes) == 2
    shown = [int(one) for one in re.findall(r"[+-]?\d+", changes[0])]
    assert shown == [first.after.fp, second.after.fp, second.after.fp - first.after.fp]
    for count in (compared.n_changed, compared.n_only_first, compared.n_only_second):
        assert re.search(rf"\b{count}\b", last)
    head, *_ = str(dialog.compare(0, 1)).splitlines()
    assert head.index("start") < head.index("fp <= 3")
    same = dialog.compare(1, 1)
    assert (same.n_changed, same.n_only_first, same.n_only_second) == (0, 0, 0)
    assert same.changes == ()


def test_comparing_the_other_way_round(dialog):
    dialog.prefer("fp <= 3, rejected <= 10%")
    there, back = dialog.compare(0, 1), dialog.compare(1, 0)
    assert there.n_changed == back.n_changed
    assert (there.n_only_first, there.n_only_second) == (back.n_only_second, back.n_only_first)


def test_copies_go_their_own_way(dialog):
    dialog.prefer("fp <= 3", strategies=["move"])
    other = copy.deepcopy(dialog)
    other.prefer("fp <= 2", strategies=["move"])
    assert (len(dialog.history), len(other.history)) == (2, 3)
