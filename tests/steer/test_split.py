"""Who sees which samples: nothing is shared that must not be, whatever is asked for."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.examples import few
from tests.steer.populations import holds

from margrave import Preference
from margrave.steer._certify import Plan, set_decision
from margrave.steer._order_statistic import samples_needed
from margrave.steer._split import (
    FOLDS,
    LatestDraw,
    certification_fraction,
    split_rows,
    time_folds,
    tuning_folds,
)
from margrave.steer._thresholds import Threshold

LABELS = np.array(["ash", "birch", "cedar"])
seeds = st.integers(0, 1000)


def labels(rng, n, k=3):
    """Labels of k classes, at least twelve of each."""
    codes = np.concatenate([np.repeat(np.arange(k), 12), rng.integers(0, k, n)])
    return LABELS[rng.permutation(codes)]


def check_folds(folds, n, y):
    """Folds that hold out each sample once, with all classes to train on."""
    held = np.concatenate([at for _, at in folds])
    assert np.sort(held).tolist() == list(range(n))
    for training, at in folds:
        assert not set(training) & set(at)
        assert len(training) + len(at) == n
        assert set(y[training]) == set(y)


class TestPlain:
    @pytest.mark.core
    @few(10)
    @given(seeds, st.integers(0, 150), st.floats(0.1, 0.6))
    def test_parts_are_disjoint_complete_and_stratified(self, seed, n, share):
        y = labels(np.random.default_rng(seed), n)
        parts = split_rows(y, share, None, None, seed)
        both = np.concatenate([parts.build, parts.certify])
        assert np.sort(both).tolist() == list(range(len(y)))
        assert abs(len(parts.certify) - share * len(y)) <= 1
        for label in LABELS:
            wanted = share * (y == label).sum()
            assert abs((y[parts.certify] == label).sum() - wanted) <= 2
        check_folds(parts.folds, len(parts.build), y[parts.build])
        assert parts.held.tolist() == list(range(len(parts.build)))

    @pytest.mark.core
    @few(10)
    @given(seeds)
    def test_folds_have_the_classes_shares(self, seed):
        y = labels(np.random.default_rng(seed), 100)
        folds = tuning_folds(y)
        assert len(folds) == FOLDS == 5
        for _, at in folds:
            for label in LABELS:
                assert abs((y[at] == label).sum() - (y == label).sum() / FOLDS) <= 1

    def test_nothing_may_be_set_aside(self):
        y = labels(np.random.default_rng(0), 10)
        parts = split_rows(y, 0.0, None, None, 0)
        assert parts.build.tolist() == list(range(len(y)))
        assert len(parts.certify) == 0

    def test_the_seed_decides(self):
        y = labels(np.random.default_rng(0), 200)
        one, same, other = (split_rows(y, 0.3, None, None, seed) for seed in (1, 1, 2))
        assert one.certify.tolist() == same.certify.tolist()
        assert one.certify.tolist() != other.certify.tolist()

    def test_a_small_class_gets_fewer_folds(self):
        y = np.repeat(["a", "b"], [30, 3])
        folds = tuning_folds(y)
        assert len(folds) == 3
        check_folds(folds, 33, y)

    def test_one_of_a_class_cannot_be_tuned_on(self):
        with pytest.raises(ValueError, match=r"\bb\b.*\b1\b"):
            tuning_folds(np.array(["a"] * 5 + ["b"]))


@st.composite
def grouped(draw):
    """Labels and groups of different sizes, each class in many groups."""
    rng = np.random.default_rng(draw(seeds))
    n_groups = draw(st.integers(20, 60))
    y = labels(rng, draw(st.integers(60, 200)))
    groups = rng.integers(0, n_groups, len(y))
    return y, groups if draw(st.booleans()) else np.array([f"g{g}" for g in groups])


class TestGroups:
    @pytest.mark.core
    @few(5)
    @given(grouped(), st.floats(0.1, 0.4), seeds)
    def test_a_group_is_in_one_part_and_in_one_fold(self, data, share, seed):
        y, groups = data
        parts = split_rows(y, share, groups, None, seed)
        assert not set(groups[parts.build]) & set(groups[parts.certify])
        inside = groups[parts.build]
        check_folds(parts.folds, len(inside), y[parts.build])
        for training, at in parts.folds:
            assert not set(inside[training]) & set(inside[at])

    @pytest.mark.core
    @few(5)
    @given(grouped(), seeds)
    def test_one_of_each_group_certifies_and_none_is_forgotten(self, data, seed):
        y, groups = data
        parts = split_rows(y, 0.25, groups, None, seed)
        certifying = groups[parts.certify].tolist()
        assert len(set(certifying)) == len(certifying)
        away = np.isin(groups, certifying)
        # What is neither built on nor certifies is of groups that certify.
        assert np.sort(np.append(parts.build, np.flatnonzero(away))).tolist() == list(range(len(y)))

    @pytest.mark.parametrize("share", [0.1, 0.2, 0.25, 0.3, 0.4])
    def test_as_many_groups_are_set_aside_as_were_asked_for(self, share):
        y = np.tile(["a", "b"], 300)
        parts = split_rows(y, share, np.arange(600), None, 0)
        assert len(parts.certify) / 600 == pytest.approx(share, abs=0.05)

    def test_which_sample_of_a_group_certifies_is_drawn(self):
        """The first of each group may be like no other, such as a first visit."""
        groups = np.repeat(np.arange(100), 5)
        y = np.repeat(np.tile(["a", "b"], 50), 5)
        first = split_rows(y, 0.2, groups, None, 0).certify % 5 == 0
        assert not first.all()

    def test_a_class_in_one_group_cannot_be_judged(self):
        y = np.repeat(["a", "b"], [40, 10])
        groups = np.concatenate([np.arange(40), np.full(10, 99)])
        with pytest.raises(ValueError, match=r"\bgroups\b"):
            tuning_folds(y, groups)

    def test_a_guarantee_over_both_classes_is_kept_with_groups(self):
        """Groups of one sample of each class that score alike: they are not two samples."""
        rng, n_draws, n_broken, delta = np.random.default_rng(0), 500, 0, 0.1
        groups, y = np.repeat(np.arange(200), 2), np.tile([0, 1], 200)
        parts = split_rows(y, 0.5, groups, None, 0)
        plan = Plan(Preference("alarms <= 20%"), (0, 1), 1, Threshold(0.0, 0.0))
        for _ in range(n_draws):
            scores = rng.normal(size=200)[groups]
            threshold = set_decision(plan, scores[parts.certify], y[parts.certify], delta).decision
            n_broken += ndtr(-threshold.high) > 0.2
        assert holds(n_broken, n_draws, delta)


class TestTime:
    @pytest.mark.core
    @given(seeds, st.integers(30, 150), st.floats(0.1, 0.5))
    def test_what_certifies_came_last(self, seed, n, share):
        rng = np.random.default_rng(seed)
        y = labels(rng, n)
        time = rng.permutation(len(y)) / 7
        parts = split_rows(y, share, None, time, seed)
        both = np.concatenate([parts.build, parts.certify])
        assert np.sort(both).tolist() == list(range(len(y)))
        assert len(parts.certify) == round(len(y) * share)
        assert time[parts.certify].min() > time[parts.build].max()

    @pytest.mark.core
    @few(10)
    @given(seeds, st.integers(30, 150))
    def test_folds_go_forward_only(self, seed, n):
        rng = np.random.default_rng(seed)
        y = labels(rng, n)
        time = rng.permutation(len(y)).astype("datetime64[D]")
        parts = split_rows(y, 0.2, None, time, seed)
        inside, seen = time[parts.build], y[parts.build]
        held = np.concatenate([at for _, at in parts.folds])
        assert len(set(held)) == len(held)
        for training, at in parts.folds:
            assert inside[training].max() < inside[at].min()
            assert set(seen[training]) == set(y)
        # All but what comes before the first fold is held out.
        first = min(inside[at].min() for _, at in parts.folds)
        assert parts.held.tolist() == np.flatnonzero(inside >= first).tolist()

    @pytest.mark.core
    @given(seeds)
    def test_of_the_same_moment_none_is_before_another(self, seed):
        rng = np.random.default_rng(seed)
        y = labels(rng, 100)
        time = rng.integers(0, 12, len(y))
        parts = split_rows(y, 0.25, None, time, seed)
        assert len(parts.certify) >= round(len(y) * 0.25)
        assert time[parts.certify].min() > time[parts.build].max()
        for training, at in parts.folds:
            assert time[parts.build][training].max() < time[parts.build][at].min()

    def test_one_sample_is_set_aside_at_least(self):
        y = np.tile(["a", "b"], 20)
        for share in (0.01, 0.02):
            assert split_rows(y, share, None, np.arange(40), 0).certify.tolist() == [39]

    def test_members_are_tuned_by_time_even_if_there_are_two_times(self):
        y = np.tile(["a", "b"], 20)
        time = np.random.default_rng(0).permutation(np.repeat([0, 1], 20))
        y = y[np.argsort(np.argsort(time, kind="stable"))]  # both classes at both times
        held = [set(time[at]) for _, at in time_folds(y, time)]
        assert held == [{0}, {1}]

    def test_a_class_that_comes_late_only(self):
        y = np.repeat(["a", "b"], [50, 10])
        with pytest.raises(ValueError, match=r"\btime\b"):
            split_rows(y, 0.0, None, np.arange(60), 0)
        with pytest.raises(ValueError, match=r"\btime\b"):
            split_rows(y[::-1], 0.0, None, np.arange(60), 0)


class TestShare:
    def share(self, certify="auto", guarantee=None, sizes=(600, 400), delta=0.05, classes="ab"):
        codes = np.repeat(np.arange(len(sizes)), sizes)
        wanted = None if guarantee is None else Preference(guarantee)
        counts = np.bincount(codes, minlength=len(classes))
        return certification_fraction(certify, wanted, counts, tuple(classes), None, delta)

    def test_what_is_given_is_taken(self):
        assert self.share(None) == 0
        assert self.share(0.35) == 0.35
        assert self.share(0.35, "fp <= 1%") == 0.35

    @pytest.mark.parametrize(("certify", "fits"), [(0.04, False), (0.1, True), (0.8, True)])
    def test_one_of_the_smallest_class_is_enough_to_set_aside(self, certify, fits):
        if fits:
            assert self.share(certify, sizes=(30, 10)) == certify
        else:
            with pytest.raises(ValueError, match=r"\bcertify\b"):
                self.share(certify, sizes=(30, 10))

    def test_a_fifth_if_nothing_is_going_to_be_guaranteed(self):
        assert self.share() == 0.2

    @pytest.mark.parametrize(
        "guarantee", ["fp <= 20%", "precision >= 99.9%", "rejected <= 1%", "accuracy >= 99.9%"]
    )
    def test_a_fifth_if_that_is_enough_or_more_would_not_be_known_to_be(self, guarantee):
        assert self.share(guarantee=guarantee) == 0.2

    @pytest.mark.parametrize(
        ("guarantee", "limit", "size"),
        [
            ("fp <= 2%", 0.02, 2000),
            ("fn <= 4%", 0.04, 1000),
            ("recall >= 96%", 0.04, 1000),
            ("alarms <= 1%", 0.01, 3000),
            ("fp <= 40", 0.02, 2000),
        ],
    )
    def test_room_for_what_is_going_to_be_guaranteed(self, guarantee, limit, size):
        share = self.share(guarantee=guarantee, sizes=(2000, 1000))
        assert share == pytest.approx(max(3 * samples_needed(limit, 0.05) / size, 0.2))
        assert share * size >= 2 * samples_needed(limit, 0.05)

    def test_the_neediest_of_several_decides_at_its_part_of_delta(self):
        share = self.share(guarantee="fp <= 2%, fn <= 10%", sizes=(2000, 1000))
        assert share == pytest.approx(3 * samples_needed(0.02, 0.025) / 2000)

    @pytest.mark.parametrize("guarantee", ["fp <= 0.01%", "fn <= 0.1%"])
    def test_two_fifths_at_most(self, guarantee):
        assert self.share(guarantee=guarantee) == 0.4

    def test_a_guarantee_of_none_needs_no_number_that_exists(self):
        assert self.share(guarantee="fp <= 0") == 0.2

    def test_more_classes_get_a_fifth(self):
        assert self.share(guarantee="fn(b) <= 1%", sizes=(300, 300, 300), classes="abc") == 0.2

    @pytest.mark.parametrize("certify", [0.0, 1.0, -0.1, 2, True, "half", 0])
    def test_what_is_no_share(self, certify):
        with pytest.raises(ValueError, match=rf"\bcertify\b.*{re.escape(repr(certify))}"):
            self.share(certify)


def test_groups_are_drawn_whatever_their_size():
    """Else shares over groups would be shares over large ones, or small ones."""
    sizes = np.array([2] * 95 + [20] * 5)
    groups = np.repeat(np.arange(100), sizes)
    y = np.tile(["a", "b"], len(groups) // 2)
    drawn = [split_rows(y, 0.2, groups, None, seed).certify for seed in range(100)]
    assert {len(one) for one in drawn} == {20}
    large = np.mean([(groups[one] >= 95).sum() for one in drawn])
    assert large == pytest.approx(1.0, abs=0.3)  # five of a hundred, a fifth of them


@pytest.mark.parametrize("time", [np.zeros(100), np.repeat([0, 1], [90, 10])])
def test_too_few_times_or_a_late_class_are_refused(time):
    y = np.where(np.arange(100) >= 90, "late", "early")
    with pytest.raises(ValueError, match=r"\btime\b"):
        split_rows(y, 0.2, None, time, 0)


def test_the_latest_samples_by_hand():
    codes, time = np.array([0, 1, 0, 1, 0, 1]), np.arange(6)
    draw = LatestDraw(codes, time, np.array([True, True, True, True, False, True]))
    assert draw.available == [2, 3]
    assert draw.complete({0: 1}) == [1, 2]  # from time 2 on; the sample at time 4 has a copy
    assert draw.complete({0: 1, 1: 3}) == [1, 3]
    assert draw.complete({0: 9}) == [2, 3]  # as many as there are
    assert draw.fraction(0.5) == [0, 2]
    build, certify = draw.rows([1, 2])
    assert (build.tolist(), certify.tolist()) == ([0, 1], [2, 3, 4, 5])


@pytest.mark.parametrize("by", ["groups", "time"])
def test_a_separate_tuning_set_has_whole_groups_or_the_latest_samples(by):
    rng = np.random.default_rng(0)
    y, groups = rng.permutation(np.repeat(["a", "b"], [240, 120])), rng.integers(0, 60, 360)
    time = rng.permutation(360)
    if by == "groups":
        parts = split_rows(y, 0.2, groups, None, 0, tune=0.3)
    else:
        parts = split_rows(y, 0.2, None, time, 0, tune=0.3)
    training, tuning = parts.build[parts.training], parts.build[parts.tuning]
    assert sorted([*training, *tuning]) == parts.build.tolist()
    assert parts.held.tolist() == parts.tuning.tolist()
    assert parts.folds == []
    assert len(tuning) == pytest.approx(0.3 * len(parts.build), abs=10)
    if by == "groups":
        assert not set(groups[training]) & set(groups[tuning])
        for label in "ab":
            n = (y[parts.build] == label).sum()
            assert (y[tuning] == label).sum() == pytest.approx(0.3 * n, abs=8)
    else:
        assert time[training].max() < time[tuning].min()
