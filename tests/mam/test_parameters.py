"""Widths of a kernel: the usual one, those to try, and what is a width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array, csr_matrix
from sklearn.svm import SVC

from margrave.mam import MAMClassifier
from margrave.mam._parameters import (
    N_WIDTHS,
    are_gammas,
    candidate_gammas,
    is_gamma,
    power_fraction,
    scale_gamma,
    width_fraction,
)

X = np.random.default_rng(0).normal(3, [0.5, 2, 7], (40, 3))


def widths_to_try(gamma, gammas, X, kernel):
    return candidate_gammas(MAMClassifier(kernel, gamma=gamma, gammas=gammas), X)


def test_the_usual_width_is_one_over_features_times_variance_as_in_svc():
    found = scale_gamma(X, "rbf")
    assert found == pytest.approx(1 / (3 * X.var()))
    scores = [SVC(gamma=g).fit(X, np.arange(40) % 2).decision_function(X) for g in (found, "scale")]
    np.testing.assert_allclose(*scores)


def test_the_laplacian_kernel_has_the_standard_deviation_as_its_distances_are_not_squared():
    assert scale_gamma(X, "laplacian") == pytest.approx(1 / (3 * X.std()))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_the_width_follows_the_unit_of_the_features(kernel):
    power = 1 if kernel == "laplacian" else 2
    assert scale_gamma(10 * X, kernel) == pytest.approx(scale_gamma(X, kernel) / 10**power)


@pytest.mark.parametrize("made", [csr_array, csc_array, csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_sparse_rows_have_the_width_of_dense_ones(made, kernel):
    holes = np.where(X > 4, X, 0.0)
    assert scale_gamma(made(holes), kernel) == pytest.approx(scale_gamma(holes, kernel))


def test_float32_has_the_width_of_float64():
    far = X + 1000
    assert scale_gamma(far.astype(np.float32), "rbf") == pytest.approx(
        scale_gamma(far, "rbf"), rel=1e-4
    )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("value", [0.0, 7.0, -2.5])
def test_constant_features_have_the_width_1(kernel, value):
    assert scale_gamma(np.full((6, 2), value), kernel) == 1.0
    assert scale_gamma(csr_array(np.full((6, 2), value)), kernel) == 1.0


def test_features_that_hardly_differ_have_a_finite_width():
    assert 1 < scale_gamma(np.array([[1e-162], [2e-162]]), "rbf") < np.inf
    assert 0 < scale_gamma(np.array([[1e200], [2e200]]), "rbf") < 1
    assert scale_gamma(np.array([[0.0], [2e200]]), "laplacian") == pytest.approx(1e-200)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("unit", [1e-100, 1e-3, 1.0, 1.5, 2.0, 3.0, 1e100])
def test_widths_to_try_are_powers_of_four_around_the_usual_one(kernel, unit):
    found = widths_to_try("loo", None, X * unit, kernel)
    assert len(found) == N_WIDTHS == 15
    usual = scale_gamma(X * unit, kernel)
    assert 0.5 <= found[7] / usual <= 2  # none is nearer
    power = round(np.log(usual) / np.log(4))
    assert found.tolist() == [4.0**j for j in range(power - 7, power + 8)]


def test_widths_to_try_do_not_follow_the_features_by_less_than_a_power():
    found = widths_to_try("loo", None, X, "rbf").tolist()
    assert widths_to_try("loo", None, X * 1.01, "rbf").tolist() == found
    assert widths_to_try("loo", None, X * 2, "rbf").tolist() == [gamma / 4 for gamma in found]
    # Whatever the rounding, one is chosen from powers of 4, and no others.
    assert widths_to_try("loo", None, np.ones((3, 2)), "rbf")[7] == 1


@given(st.floats(1e-140, 1e140))
def test_a_default_width_has_the_fraction_of_its_power(unit):
    found = widths_to_try("loo", None, X * unit, "rbf")
    powers = [np.log2(gamma) / 2 for gamma in found]
    assert all(power == int(power) for power in powers)
    fractions = [width_fraction("loo", None, gamma) for gamma in found]
    assert fractions == [power_fraction(int(power)) for power in powers]
    assert sum(fractions) < 1


def test_fractions_of_all_powers_sum_to_1():
    powers = range(-2000, 2001)
    total = sum(power_fraction(power) for power in powers)
    # Of 1 / (1 + j)² beyond j there is as much as 1 / (j + 3/2).
    tail = 2 / (2001.5) / (np.pi**2 / 3 - 1)
    assert total < 1
    assert total + tail == pytest.approx(1, abs=1e-9)
    fractions = [power_fraction(power) for power in range(50)]
    assert fractions == [power_fraction(-power) for power in range(50)]
    assert (np.diff(fractions) < 0).all()
    assert fractions[-1] > 0
    assert power_fraction(0) / power_fraction(3) == pytest.approx(16)


def test_a_width_that_was_not_selected_has_all_of_delta():
    for gamma in (0.3, 4.0, np.float32(2), "scale"):
        assert width_fraction(gamma, None, 0.3) == 1
        assert width_fraction(gamma, [1.0, 2.0], 0.3) == 1
    assert width_fraction("loo", None, None) == 1  # a kernel without a width
    assert width_fraction("loo", [1.0, 2.0], None) == 1


@pytest.mark.parametrize("gammas", [[3, 1.5, 3, 10], (1.5, 3, 10), np.array([10, 1.5, 3.0])])
def test_widths_of_your_own_have_equal_fractions(gammas):
    assert width_fraction("loo", gammas, 3.0) == pytest.approx(1 / 3)
    tried = widths_to_try("loo", gammas, X, "rbf")
    assert sum(width_fraction("loo", gammas, gamma) for gamma in tried) == pytest.approx(1)


def test_the_only_width_of_your_own_has_all_of_delta():
    assert width_fraction("loo", [7.0], 7.0) == 1


def test_widths_of_your_own_are_sorted_and_tried_once():
    assert widths_to_try("loo", [3, 1.5, 3, 10], X, "rbf").tolist() == [1.5, 3, 10]


def test_a_fixed_width_is_the_only_one():
    assert widths_to_try(0.3, None, X, "rbf").tolist() == [0.3]
    assert widths_to_try(np.float32(2), [5.0], X, "rbf").tolist() == [2]
    assert widths_to_try("scale", [5.0], X, "rbf").tolist() == [scale_gamma(X, "rbf")]


@pytest.mark.parametrize("gamma", ["loo", "scale", 1, 1e-300, 1e300, np.float32(1), np.int64(3)])
def test_what_may_be_gamma(gamma):
    assert is_gamma(gamma)


@pytest.mark.parametrize(
    "gamma",
    ["auto", "", 0, -1.0, np.nan, np.inf, -np.inf, None, True, 1j, [1.0], np.array([1.0]), {}],
)
def test_what_may_not_be_gamma(gamma):
    assert not is_gamma(gamma)


@pytest.mark.parametrize("gammas", [None, [1.0], (1, 2), np.array([1e-300, 1e300]), range(1, 4)])
def test_what_may_be_gammas(gammas):
    assert are_gammas(gammas)


@pytest.mark.parametrize(
    "gammas",
    [
        [],
        1.0,
        "loo",
        ["loo"],
        [0.0],
        [1, -1],
        [np.nan],
        [1, np.inf],
        [None],
        [[1.0]],
        [[1.0], [1.0, 2.0]],
        {1.0, 2.0},
        {"a": 1},
    ],
)
def test_what_may_not_be_gammas(gammas):
    assert not are_gammas(gammas)


@pytest.mark.parametrize("value", [0.1, 0.3, 1e5 + 0.1])
def test_constant_features_have_the_width_1_whatever_the_rounding_of_their_mean(value):
    assert scale_gamma(np.full((10, 3), value), "rbf") == 1.0
