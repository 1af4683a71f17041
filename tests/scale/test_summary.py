"""Sorted summaries: exact while they are small, and what they say of their error holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.scale import _summary
from margrave.scale._summary import SortedSummary

values = st.lists(st.floats(-3, 3, allow_nan=False, width=16), min_size=1, max_size=60)


def merged(parts, masses=None):
    weights = [np.ones((len(part), 1)) for part in parts] if masses is None else masses
    each = [
        SortedSummary.of(np.asarray(part, float), weight)
        for part, weight in zip(parts, weights, strict=True)
    ]
    return SortedSummary.merged([SortedSummary.merged(each[:3]), *each[3:]])


@given(st.lists(values, min_size=1, max_size=6))
def test_few_values_are_exact(parts):
    summary = merged(parts)
    all_values, counts = np.unique(np.concatenate(parts), return_counts=True)
    assert summary.is_exact
    assert np.array_equal(summary.values, all_values)
    assert np.array_equal(summary.masses[:, 0], counts)
    assert summary.n == sum(map(len, parts))


@given(st.lists(values, min_size=1, max_size=6))
def test_middle_is_the_mid_rank(parts):
    whole = np.concatenate(parts)
    below = (whole[:, None] > whole).sum(axis=1) + (whole[:, None] == whole).sum(axis=1) / 2
    assert np.allclose(merged(parts).middle(whole)[:, 0], below)


@pytest.mark.parametrize("weight", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("seed", [0, 1])
def test_stated_error_holds_and_ends_are_sharp(monkeypatch, seed, weight):
    monkeypatch.setattr(_summary, "EXACT", 500)
    monkeypatch.setattr(_summary, "FINENESS", 50)
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=2_000) * 10 ** rng.uniform(-2, 2) for _ in range(20)]
    kinds = [np.eye(2)[rng.integers(0, 2, 2_000)] * weight for _ in parts]
    summary = merged(parts, kinds)
    assert 100 < len(summary.values) < 4_000
    assert np.allclose(summary.total, np.concatenate(kinds).sum(axis=0))
    order = np.argsort(np.concatenate(parts))
    whole, masses = np.concatenate(parts)[order], np.concatenate(kinds)[order]
    truth = np.cumsum(masses, axis=0)[np.searchsorted(whole, summary.values, "right") - 1]
    summarized = np.cumsum(summary.masses, axis=0)
    short = truth - summarized
    assert (short >= -1e-6 * weight).all()
    assert (short.max(axis=0) <= summary.error * (1 + 1e-9)).all()
    assert (summary.error < 0.1 * summary.total).all()
    assert not summary.is_exact
    # The twenty smallest and the twenty largest values are there one by one.
    assert np.array_equal(summary.values[:20], whole[:20])
    assert np.array_equal(summary.values[-20:], whole[-20:])


def test_merging_does_not_depend_on_the_order_while_exact():
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 50, 100) for _ in range(5)]
    one, other = merged(parts), merged(parts[::-1])
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.masses, other.masses)
