"""Binomial bounds: against sums of probabilities in exact fractions, and scipy's own tests."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binomtest
from tests.examples import few

from margrave.steer._order_statistic import (
    clopper_pearson,
    fewest_sufficient,
    largest_allowed_count,
    p_value,
    samples_needed,
    smallest_provable_rate,
)

LIMITS = [0.001, 0.01, 0.05, 0.11, 0.3, 0.5, 0.93]
DELTAS = [1e-12, 1e-4, 0.01, 0.025, 0.05, 0.1, 0.3]

# Shares as users write them, exactly; floats of them are what the functions are given.
shares = st.integers(1, 99).map(lambda percent: Fraction(percent, 100))
deltas = st.sampled_from([Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20), Fraction(1, 10)])


def probability(k, n, p):
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


def at_most(c, n, p):
    """P(Bin(n, p) <= c), a sum of exact fractions."""
    return sum((probability(k, n, p) for k in range(c + 1)), Fraction(0))


class TestPValue:
    @pytest.mark.core
    @given(st.integers(1, 30), st.data(), shares)
    def test_it_is_the_sum_of_the_probabilities_of_counts_as_good(self, n, data, limit):
        count = data.draw(st.integers(0, n))
        few = p_value(count, n, float(limit), at_most=True)
        many = p_value(count, n, float(limit), at_most=False)
        assert few == pytest.approx(float(at_most(count, n, limit)), rel=1e-9)
        assert many == pytest.approx(float(1 - at_most(count - 1, n, limit)), rel=1e-9)

    @given(st.integers(1, 400), st.data(), st.floats(0.001, 0.999))
    def test_it_is_scipys_one_sided_test(self, n, data, limit):
        count = data.draw(st.integers(0, n))
        less = binomtest(count, n, limit, alternative="less").pvalue
        greater = binomtest(count, n, limit, alternative="greater").pvalue
        assert p_value(count, n, limit, at_most=True) == pytest.approx(less, rel=1e-9)
        assert p_value(count, n, limit, at_most=False) == pytest.approx(greater, rel=1e-9)

    def test_no_samples_prove_nothing(self):
        assert p_value(0, 0, 0.5, at_most=True) == 1
        assert p_value(0, 0, 0.5, at_most=False) == 1

    def test_arrays_are_answered_entry_by_entry(self):
        counts, n = np.array([0, 1, 5, 0]), np.array([10, 10, 10, 0])
        together = p_value(counts, n, 0.2, at_most=True)
        each = [float(p_value(c, m, 0.2, at_most=True)) for c, m in zip(counts, n, strict=True)]
        assert together == pytest.approx(each, rel=1e-9)
        assert together[-1] == 1
        for at_most in (True, False):
            lists = p_value(counts.tolist(), n.tolist(), 0.2, at_most)
            assert lists.tolist() == p_value(counts, n, 0.2, at_most).tolist()

    def test_a_limit_of_nothing_is_proven_by_no_sample(self):
        assert p_value(0, 10**6, 0.0, at_most=True) == 1
        assert p_value(10**6, 10**6, 1.0, at_most=False) == 1

    @pytest.mark.parametrize("n", [1, 7, 100])
    def test_a_count_of_the_wrong_kind_disproves(self, n):
        assert p_value(n, n, 0.3, at_most=True) == pytest.approx(1)
        assert p_value(0, n, 0.3, at_most=False) == pytest.approx(1)


class TestMostAllowed:
    @pytest.mark.core
    @few(8)
    @given(st.integers(0, 60), shares, deltas)
    def test_it_is_the_largest_count_that_is_improbable_enough(self, n, limit, delta):
        sums = [at_most(c, n, limit) for c in range(n + 1)]
        assume(delta not in sums)  # floats cannot tell
        passing = [c for c, below in enumerate(sums) if below <= delta]
        assert largest_allowed_count(n, float(limit), float(delta)) == max(passing, default=-1)

    @given(st.integers(1, 60), shares, deltas)
    def test_it_is_the_order_statistic_of_neyman_pearson(self, n, limit, delta):
        """METHODS: the k-th smallest score, k the smallest with P(Bin(n, 1 - α) >= k) <= δ."""
        allowed = largest_allowed_count(n, float(limit), float(delta))
        tails = {k: 1 - at_most(k - 1, n, 1 - limit) for k in range(1, n + 1)}
        assume(delta not in tails.values())  # floats cannot tell
        ranks = [k for k, tail in tails.items() if tail <= delta]
        if not ranks:
            assert allowed == -1
        else:
            assert n - min(ranks) == allowed  # so many scores are above the k-th smallest

    @pytest.mark.parametrize("limit", LIMITS)
    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("n", [50, 1000, 10**6])
    def test_large_samples(self, n, limit, delta):
        c = largest_allowed_count(n, limit, delta)
        assert -1 <= c < n * limit + 1
        if c >= 0:
            assert binomtest(c, n, limit, alternative="less").pvalue <= delta * (1 + 1e-9)
        assert binomtest(c + 1, n, limit, alternative="less").pvalue >= delta * (1 - 1e-9)

    def test_numbers_of_the_document(self):
        assert largest_allowed_count(58, 0.05, 0.05) == -1
        assert largest_allowed_count(59, 0.05, 0.05) == 0
        assert largest_allowed_count(298, 0.01, 0.05) == -1
        assert largest_allowed_count(299, 0.01, 0.05) == 0

    @given(st.integers(0, 300), shares, deltas)
    def test_more_samples_looser_limits_and_less_confidence_allow_no_fewer(self, n, limit, delta):
        assume(limit < Fraction(99, 100))
        here = largest_allowed_count(n, float(limit), float(delta))
        assert here <= largest_allowed_count(n + 1, float(limit), float(delta)) <= here + 1
        assert here <= largest_allowed_count(n, float(limit) + 0.01, float(delta))
        assert here <= largest_allowed_count(n, float(limit), 2 * float(delta))

    def test_without_samples_or_with_a_limit_of_nothing_none_does(self):
        assert largest_allowed_count(0, 0.5, 0.05) == -1
        assert largest_allowed_count(10**6, 0.0, 0.05) == -1

    def test_a_tiny_delta(self):
        assert largest_allowed_count(100, 0.05, 1e-300) == -1
        assert largest_allowed_count(140, 0.999, 1e-300) == 29  # found with fractions
        c = largest_allowed_count(10**6, 0.05, 1e-300)
        assert 0 < c < 0.05 * 10**6
        assert p_value(c, 10**6, 0.05, at_most=True) <= 1e-300
        assert p_value(c + 1, 10**6, 0.05, at_most=True) > 1e-300

    @pytest.mark.parametrize("n", [0, 1, 5, 100])
    def test_a_share_of_all_needs_no_proof(self, n):
        assert largest_allowed_count(n, 1.0, 0.05) == n


class TestNeeded:
    @pytest.mark.parametrize(("limit", "least"), [(0.05, 59), (0.01, 299)])
    def test_numbers_of_the_document(self, limit, least):
        assert samples_needed(limit, 0.05) == least
        assert samples_needed(limit, 1 - 0.95) == least

    @pytest.mark.core
    @given(shares, deltas)
    def test_one_fewer_is_too_few(self, limit, delta):
        least = samples_needed(float(limit), float(delta))
        assume(delta not in {(1 - limit) ** n for n in (least, least - 1)})  # floats cannot tell
        assert (1 - limit) ** least <= delta < (1 - limit) ** (least - 1)

    @pytest.mark.parametrize("limit", LIMITS)
    @pytest.mark.parametrize("delta", DELTAS)
    def test_so_many_samples_are_not_refused(self, limit, delta):
        least = samples_needed(limit, delta)
        assert largest_allowed_count(least, limit, delta) == 0
        assert largest_allowed_count(least - 1, limit, delta) == -1

    @given(st.integers(1, 99), st.integers(1, 12))
    def test_so_many_samples_are_not_refused_where_they_just_do(self, percent, n):
        """δ = (1 - α)^n: whether n do is a matter of rounding, but both must say the same."""
        limit, delta = percent / 100, (1 - percent / 100) ** n
        least = samples_needed(limit, delta)
        assert largest_allowed_count(least, limit, delta) == 0
        assert largest_allowed_count(least - 1, limit, delta) == -1

    def test_limits_at_the_ends(self):
        assert samples_needed(0.0, 0.05) is None
        assert samples_needed(1.0, 0.05) == 0

    @given(shares, deltas)
    def test_stricter_needs_no_fewer(self, limit, delta):
        assert samples_needed(float(limit) / 2, float(delta)) >= samples_needed(
            float(limit), float(delta)
        )
        assert samples_needed(float(limit), float(delta) / 2) >= samples_needed(
            float(limit), float(delta)
        )


class TestSmallestRate:
    @pytest.mark.core
    @given(st.integers(2, 2000), st.sampled_from(DELTAS))
    def test_what_is_proven_by_none_wrong(self, n, delta):
        rate = smallest_provable_rate(n, delta)
        assert 0 < rate < 1
        assert (1 - rate) ** n == pytest.approx(delta, rel=1e-9)
        above = rate + (1 - rate) * 1e-6
        assert samples_needed(above, delta) <= n < samples_needed(rate * (1 - 1e-6), delta)
        assert largest_allowed_count(n, above, delta) >= 0
        assert largest_allowed_count(n, rate * (1 - 1e-6), delta) == -1

    def test_without_samples(self):
        assert smallest_provable_rate(0, 0.05) == 1

    def test_more_samples_support_less(self):
        rates = [smallest_provable_rate(n, 0.05) for n in range(100)]
        assert all(a > b for a, b in pairwise(rates))


class TestInterval:
    @pytest.mark.core
    @given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
    def test_it_is_clopper_and_pearsons(self, n, data, level):
        count = data.draw(st.integers(0, n))
        low, high = clopper_pearson(count, n, level)
        exact = binomtest(count, n).proportion_ci(level, "exact")
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)
        assert 0 <= low <= count / n <= high <= 1
        assert low < high

    @given(st.integers(1, 40), st.sampled_from([0.8, 0.95]), st.floats(0.01, 0.99))
    def test_it_covers_any_share_at_least_so_often(self, n, level, share):
        covered = 0.0
        for count in range(n + 1):
            low, high = clopper_pearson(count, n, level)
            if low <= share <= high:
                covered += probability(count, n, share)
        assert covered >= level - 1e-9

    def test_without_samples_anything_may_be(self):
        assert clopper_pearson(0, 0, 0.95) == (0, 1)

    def test_ends(self):
        assert clopper_pearson(0, 10, 0.95)[0] == 0
        assert clopper_pearson(10, 10, 0.95)[1] == 1
        low, high = clopper_pearson(0, 10, 0.95)[1], clopper_pearson(10, 10, 0.95)[0]
        assert low == pytest.approx(1 - high)

    @given(st.integers(1, 100), st.data())
    def test_its_upper_end_is_where_the_test_turns(self, n, data):
        count = data.draw(st.integers(0, n - 1))
        high = clopper_pearson(count, n, 0.9)[1]
        assert p_value(count, n, high, at_most=True) == pytest.approx(0.05, rel=1e-6)
        if high * (1 + 1e-6) < 1:
            assert largest_allowed_count(n, high * (1 + 1e-6), 0.05) >= count
        assert largest_allowed_count(n, high * (1 - 1e-6), 0.05) < count


class TestFewestSufficient:
    @pytest.mark.parametrize(
        ("limit", "steps"),
        [
            (0.05, [59, 93, 124, 153, 181]),
            (0.02, [149, 236, 313, 386, 456]),
            (0.01, [299, 473, 628, 773, 913]),
        ],
    )
    def test_the_known_steps(self, limit, steps):
        for allowed, (first, after) in enumerate(pairwise(steps)):
            for n in (first, first + 1, after - 1):
                assert fewest_sufficient(n, limit, 0.05) == first
                assert largest_allowed_count(n, limit, 0.05) == allowed

    @given(st.integers(1, 400), shares, deltas)
    def test_it_allows_as_many_and_one_fewer_does_not(self, n, limit, delta):
        fewest = fewest_sufficient(n, float(limit), float(delta))
        allowed = largest_allowed_count(n, float(limit), float(delta))
        assert 1 <= fewest <= n
        assert largest_allowed_count(fewest, float(limit), float(delta)) == allowed
        if 0 <= allowed < n:
            assert largest_allowed_count(fewest - 1, float(limit), float(delta)) < allowed


@pytest.mark.parametrize(
    ("limit", "delta", "least"), [(0.5, 0.25, 2), (0.5, 0.125, 3), (0.75, 0.25, 1)]
)
def test_a_probability_of_exactly_delta_is_small_enough(limit, delta, least):
    assert samples_needed(limit, delta) == least
    assert largest_allowed_count(least, limit, delta) == 0
