"""Limits that cannot be met together: the closest, alternatives, and warnings about the cost."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from margrave import Confusion, Preference
from margrave.steer import Dialog

RANDOM = np.random.default_rng(3)
N = 400
CODES = RANDOM.integers(0, 2, N)
Y = np.array(["ham", "spam"])[CODES]
X = RANDOM.normal(size=(N, 2)) + 0.9 * CODES[:, None]


def two_classes():
    return Dialog(LogisticRegression().fit(X[:100], Y[:100]), X[100:], Y[100:])


def many_classes(k=4):
    X, y = make_blobs(600, centers=k, cluster_std=4.0, random_state=1)
    return Dialog(LogisticRegression().fit(X[:200], y[:200]), X[200:], y[200:])


def every_matrix(dialog):
    """The matrices of all thresholds on the score of a dialog about two classes."""
    start = dialog.history[0].candidate
    codes = (dialog.rows().true == dialog.classes[1]).astype(int)
    for threshold in [-np.inf, *np.unique(start.scores)]:
        predicted = (start.scores > threshold).astype(int)
        counts = np.bincount(codes * 2 + predicted, minlength=4).reshape(2, 2)
        yield Confusion(counts, dialog.classes)


class TestAlternatives:
    WANTED = Preference("fp <= 10, fn <= 10")

    def test_two_limits_have_three(self):
        reply = two_classes().prefer(self.WANTED)
        assert not reply.met
        assert [a.kept for a in reply.alternatives] == [*self.WANTED.bounds, None]

    def test_each_is_the_best_of_its_kind(self):
        dialog = two_classes()
        reply = dialog.prefer(self.WANTED)
        matrices = list(every_matrix(dialog))
        first, second, middle = (alternative.confusion for alternative in reply.alternatives)
        assert first.fp <= 10
        assert first.fn == min(matrix.fn for matrix in matrices if matrix.fp <= 10)
        assert second.fn <= 10
        assert second.fp == min(matrix.fp for matrix in matrices if matrix.fn <= 10)
        assert max(middle.fp, middle.fn) == min(max(one.fp, one.fn) for one in matrices)

    def test_they_say_what_they_miss(self):
        for alternative in two_classes().prefer(self.WANTED).alternatives:
            for bound, amount in alternative.misses:
                assert amount == -bound.slack(alternative.confusion) > 0
                assert str(bound) in str(alternative)
            met = {bound for bound, _ in alternative.misses}
            assert all(
                bound.slack(alternative.confusion) >= 0
                for bound in self.WANTED.bounds
                if bound not in met
            )

    @pytest.mark.parametrize("make", [two_classes, many_classes])
    def test_they_can_be_taken(self, make):
        dialog = make()
        limits = ("fp <= 10", "fn <= 10") if make is two_classes else ("fn(0) <= 2", "fn(1) <= 2")
        reply = dialog.prefer(*limits)
        assert len(reply.alternatives) >= 2
        for alternative in reply.alternatives:
            assert dialog.prefer(alternative.preference, at=0).met

    def test_of_many_missed_limits_few_are_kept(self):
        """Those that the reply misses by most; nobody reads one for each cell of a matrix."""
        dialog = many_classes()
        cells = [(a, b) for a in range(4) for b in range(4) if a != b]
        counts = dialog.confusion.counts
        reply = dialog.prefer(*(f"errors({a} -> {b}) <= {counts[a, b] // 2}" for a, b in cells))
        misses = {bound: -bound.slack(reply.after) for bound in reply.preference.bounds}
        assert sum(miss > 0 for miss in misses.values()) > 3
        assert any(miss <= 0 for miss in misses.values())
        *kept, middle = reply.alternatives
        (own,) = (one for one in kept if one.confusion == reply.after)
        others = [one for one in kept if one is not own]
        third = sorted(misses.values())[-3]
        assert 1 <= len(others) <= 3
        for one in others:
            assert misses[one.kept] >= third
            assert -one.kept.slack(one.confusion) <= misses[one.kept]
        assert misses[own.kept] <= 0
        assert middle.kept is None
        assert max(amount for _, amount in middle.misses) <= max(misses.values())

    @pytest.mark.parametrize(
        "limits", ["accuracy >= 90%, fn <= 100", "fp <= 10, accuracy >= 90%, fn <= 100"]
    )
    def test_the_reply_is_listed_by_a_limit_that_it_meets(self, limits):
        """Also if it is the nearest to a limit that it misses."""
        reply = two_classes().prefer(limits)
        (own,) = (one for one in reply.alternatives if one.confusion == reply.after)
        assert own.kept.slack(reply.after) >= 0

    def test_limits_that_follow_from_others_take_no_place(self):
        """A limit on the rejected samples of a class limits those of all other classes."""
        limits = [f"{word}({c}) <= {min(c, 1)}" for c in range(3) for word in ("fn", "fp")]
        reply = many_classes(3).prefer("rejected(0) <= 30", *limits)
        slacks = {bound: bound.slack(reply.after) for bound in reply.preference.all_bounds}
        assert any(bound.implied for bound in sorted(slacks, key=slacks.__getitem__)[:3])
        kept = [one.kept for one in reply.alternatives if one.kept]
        assert sum(slacks[bound] < 0 for bound in kept) == 3

    def test_a_single_limit_or_a_met_one_has_none(self):
        dialog = two_classes()
        assert dialog.prefer("fp <= 10").alternatives == ()
        assert dialog.prefer("fp <= 90%, fn <= 90%").alternatives == ()
        assert dialog.prefer("accuracy >= 99%").alternatives == ()

    def test_a_stored_step_has_them(self):
        dialog = two_classes()
        reply = dialog.prefer(self.WANTED)
        again = Dialog.restore(dialog.dump_start(), [dialog.dump_step(1)])
        assert again.reply.alternatives == reply.alternatives


class TestTheClosest:
    @pytest.mark.parametrize("steps", [["fp <= 10, fn <= 10"], ["fp <= 10", "fn <= 10"]])
    def test_no_threshold_and_no_alternative_is_closer(self, steps):
        dialog = two_classes()
        for step in steps:
            reply = dialog.prefer(step, keep=True)
        assert not reply.met
        least = min(reply.preference.shortfall(matrix) for matrix in every_matrix(dialog))
        assert reply.shortfall == least
        for alternative in reply.alternatives:
            assert sum(amount for _, amount in alternative.misses) >= least

    def test_an_alternative_can_still_keep_an_earlier_limit(self):
        dialog = two_classes()
        dialog.prefer("fp <= 10")
        reply = dialog.prefer("fn <= 10", keep=True)
        (kept,) = (one for one in reply.alternatives if str(one.kept) == "fp <= 10")
        assert kept.confusion.fp <= 10


class TestWarnings:
    def test_errors_that_rise_beyond_the_limits_are_reported(self):
        dialog = two_classes()
        before = dialog.confusion
        reply = dialog.prefer("fp <= 0")
        rise = reply.after.n_errors - before.n_errors
        assert rise > before.fp
        (warning,) = reply.warnings
        assert str(before.n_errors) in warning
        assert str(reply.after.n_errors) in warning
        assert warning in str(reply)

    def test_a_small_change_has_none(self):
        dialog = two_classes()
        assert dialog.prefer(f"fp <= {dialog.confusion.fp}").warnings == ()
        assert dialog.history[0].warnings == ()
