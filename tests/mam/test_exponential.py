"""The exponentials of float32 tiles, against numpy's in float64."""

import platform

import numpy as np
import pytest

from margrave.mam import _kernels
from margrave.mam._kernels import (
    LOG2_E,
    PARTS_FACTOR,
    SQUARING_RANGE,
    SQUARING_SLOPE,
    SQUARING_START,
    exp2_by_parts,
    exp_by_squaring,
    is_vectorised,
)


def whole(t, low=-np.inf):
    """2^t by `exp2_by_parts`, in float64 as blocks are added up."""
    t = np.array(t, dtype=np.float32)
    found = exp2_by_parts(t, np.empty_like(t), np.empty_like(t), low)
    assert found.dtype == np.float32
    return found.astype(np.float64) * PARTS_FACTOR


def squared(u):
    """exp(u) by `exp_by_squaring`."""
    h = (SQUARING_SLOPE * u + SQUARING_START).astype(np.float32)
    found = exp_by_squaring(h)
    assert found is h
    return found.astype(np.float64)


def off(found, exact):
    return np.abs(found / exact - 1)


def test_by_whole_is_exact_to_five_millionths_over_its_whole_range():
    t = np.linspace(-160, 1, 500_001).astype(np.float32)
    errors = off(whole(t), np.exp2(t.astype(np.float64)))
    assert errors.max() <= 5.1e-6
    near = np.linspace(-2, 0.5, 500_001).astype(np.float32)
    assert off(whole(near), np.exp2(near.astype(np.float64))).max() <= 5.1e-6


def test_by_whole_is_exp_of_exponents_in_units():
    u = np.linspace(-44, 0, 10_001)
    # The exponent itself is rounded to float32, by up to 2^-19 here.
    assert off(whole(u * LOG2_E), np.exp(u)).max() <= 5.1e-6 + 2.0**-19 * np.log(2)


def test_by_whole_next_to_every_place_where_the_integer_changes():
    half = np.arange(-160, 1) + np.float32(0.5)
    t = np.concatenate([half, np.nextafter(half, -np.inf), np.nextafter(half, np.inf)])
    assert off(whole(t), np.exp2(t.astype(np.float64))).max() <= 5.1e-6


@pytest.mark.parametrize("t", [-160.5, -170, -1e3, -1e6, -1e30, -np.inf])
def test_exponents_far_below_the_range_count_as_nothing(t):
    exponents = np.array([t, 0.0, t, -1.0], np.float32)
    found = whole(exponents)
    assert np.isfinite(found).all()
    assert found[[0, 2]].tolist() == pytest.approx([0, 0], abs=1e-47)
    assert np.float32(found[0]) == 0
    assert found[[1, 3]] == pytest.approx([1, 0.5], rel=6e-6)
    # In a sum of float32 they are lost beside the smallest number that is not.
    tile = exp2_by_parts(exponents, np.empty_like(exponents), np.empty_like(exponents), -np.inf)
    rest = tile.copy()
    rest[[0, 2]] = 0
    assert tile.sum() == rest.sum()
    assert np.isfinite(tile).all()


def test_by_whole_uses_any_shape_and_only_its_workspace():
    t = np.linspace(-30, 0, 24, dtype=np.float32).reshape(4, 6)
    workspace = np.empty((3, 4, 6), np.float32)
    workspace[0] = t
    found = exp2_by_parts(*workspace, -30.0)
    assert np.shares_memory(found, workspace)
    assert found.shape == (4, 6)
    assert off(found * PARTS_FACTOR, np.exp2(t.astype(np.float64))).max() <= 5.2e-6


def test_by_squaring_over_its_whole_range():
    u = np.linspace(-SQUARING_RANGE, SQUARING_RANGE, 500_001)
    errors = off(squared(u), np.exp(u))
    assert errors.max() <= 3e-5
    assert np.sqrt(np.mean(errors**2)) <= 1e-5


def test_errors_of_squaring_are_of_either_sign():
    u = np.linspace(-SQUARING_RANGE, SQUARING_RANGE, 100_001)
    errors = squared(u) / np.exp(u) - 1
    assert abs(errors.mean()) < 0.3 * np.sqrt(np.mean(errors**2))


def test_float64_has_an_exponential_of_its_own_on_any_machine(monkeypatch):
    for machine in ("x86_64", "aarch64", "arm64", ""):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert is_vectorised(np.dtype(np.float64))


@pytest.mark.parametrize(
    ("machine", "vectorised"),
    [("x86_64", True), ("AMD64", True), ("aarch64", False), ("arm64", False), ("", False)],
)
def test_float32_is_vectorised_by_numpy_on_x86_only(monkeypatch, machine, vectorised):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert is_vectorised(np.dtype(np.float32)) is vectorised


# In float64, so that rounding does not hide what the constants do.


def cubic_error(constants):
    c1, c0, s = constants
    h = np.linspace(-0.5, 0.5, 4001) + 6
    return off((s * (h**3 + c1 * h + c0)) ** 4, np.exp2(h - 6)).max()


def chain_error(constants):
    slope, start, *chain = constants
    u = np.linspace(-SQUARING_RANGE, SQUARING_RANGE, 4001)
    h = slope * u + start
    for constant in chain:
        h = h**2 + constant
    return off(h**32, np.exp(u)).max()


CUBIC = [float(c) for c in _kernels._CUBIC] + [PARTS_FACTOR**0.25]
CHAIN = [SQUARING_SLOPE, SQUARING_START, *(float(c) for c in _kernels._CHAIN)]


@pytest.mark.parametrize(
    ("error", "constants", "smallest"), [(cubic_error, CUBIC, 4.5e-6), (chain_error, CHAIN, 4e-6)]
)
def test_constants_make_the_largest_error_as_small_as_it_gets(error, constants, smallest):
    best = error(constants)
    assert best <= smallest
    for place in range(len(constants)):
        for change in (1e-4, -1e-4, 1e-5, -1e-5):
            moved = list(constants)
            moved[place] *= 1 + change
            assert error(moved) > 1.2 * best
