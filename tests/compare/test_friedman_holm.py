"""Friedman's test, and Holm's procedure against a control."""

import gc
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests

from margrave.compare import friedman_holm
from margrave.compare._friedman_holm import holm

# Ranks in table 6 of Demšar (2006): AUC of C4.5 and three variants on 14 data sets.
DEMSAR = np.array(
    [
        *([4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 2, 3], [4, 1, 3, 2], [4, 2, 3, 1]),
        *([1, 2.5, 4, 2.5], [3, 2, 4, 1], [2.5, 2.5, 4, 1], [4, 3, 2, 1], [2.5, 2.5, 2.5, 2.5]),
        *([4, 2.5, 1, 2.5], [3, 2, 4, 1], [4, 1, 2, 3], [3, 1, 4, 2]),
    ]
)
VARIANTS = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]

# Few values, so that ties are common; small integers, so that transformations keep the order.
tables = st.tuples(st.integers(2, 12), st.integers(3, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=st.integers(-4, 4))
)


def demsar(**keywords):
    return friedman_holm(DEMSAR, methods=VARIANTS, larger_is_better=False, **keywords)


def numbers(result):
    """Everything that does not go by method."""
    return (result.statistic, result.p_value, result.f_statistic, result.f_p_value)


def same(one, other):
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-9)
    for name in ("mean_ranks", "z", "p_values", "adjusted"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9)
    np.testing.assert_array_equal(one.rejected, other.rejected)
    assert one.control == other.control


class TestDemsarsExample:
    def test_mean_ranks(self):
        np.testing.assert_allclose(demsar().mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)

    def test_statistics_before_the_correction_for_ties(self):
        # Ties of 4, 2, 2 and 2 take Σ(t³ − t) = 60 + 3·6 of N·k(k² − 1) = 14·60.
        statistic = demsar().statistic * (1 - 78 / 840)
        assert statistic == pytest.approx(9.28, abs=0.005)
        assert 13 * statistic / (14 * 3 - statistic) == pytest.approx(3.69, abs=0.005)

    def test_holm_against_the_plain_tree(self):
        result = demsar(control="C4.5")
        np.testing.assert_allclose(-result.z, [0, 2.342, 0.512, 2.416], atol=2e-3)
        np.testing.assert_allclose(result.p_values, [1, 0.019, 0.607, 0.016], atol=2e-3)
        # 0.016 < α/3 and 0.019 < α/2, but 0.607 > α.
        assert result.better == ("C4.5+m", "C4.5+m+cf")
        assert result.worse == ()
        assert result.rejected.tolist() == [False, True, False, True]

    def test_critical_difference(self):
        # q/√2 is 2.569 at 0.05 and 2.291 at 0.10 for four methods (table 5 of the paper).
        error = np.sqrt(4 * 5 / (6 * 14))
        assert demsar().critical_difference == pytest.approx(2.569 * error, abs=1e-3)
        assert demsar(alpha=0.1).critical_difference == pytest.approx(2.291 * error, abs=1e-3)


def test_a_small_example_by_hand():
    # Ranks 1 2 3 / 1 2 3 / 1.5 1.5 3 / 2 1 3: sums 5.5, 6.5, 12.
    result = friedman_holm([[9, 8, 7], [5, 4, 1], [3, 3, 2], [6, 7, 5]])
    np.testing.assert_array_equal(result.mean_ranks, [1.375, 1.625, 3])
    # 12/(4·3·4)·(5.5² + 6.5² + 12²) − 3·4·4 = 6.125; one tie of two takes 6 of 4·24.
    assert result.statistic == pytest.approx(6.125 / (1 - 6 / 96))
    assert result.methods == ("method 1", "method 2", "method 3")
    assert result.control == "method 1"
    # SE = √(3·4/(6·4)) = √½.
    np.testing.assert_allclose(result.z, np.array([0, 0.25, 1.625]) * np.sqrt(2))
    assert result.p_values[2] == pytest.approx(2 * stats.norm.sf(1.625 * np.sqrt(2)))
    np.testing.assert_allclose(result.adjusted[1:], [result.p_values[1], 2 * result.p_values[2]])


@given(tables)
def test_friedman_is_scipys(table):
    result = friedman_holm(table)
    if (table == table[:, :1]).all():
        assert numbers(result) == (0, 1, 0, 1)
    else:
        expected = stats.friedmanchisquare(*table.T)
        np.testing.assert_allclose(
            [result.statistic, result.p_value], expected, rtol=1e-9, atol=1e-9
        )


@given(tables)
def test_f_is_that_of_an_analysis_of_variance_of_the_ranks(table):
    result = friedman_holm(table)
    ranks = stats.rankdata(-table, axis=1)
    n, k = ranks.shape
    between = n * np.square(ranks.mean(axis=0) - (k + 1) / 2).sum()
    residual = np.square(ranks - (k + 1) / 2).sum() - between
    if residual > 1e-9:
        expected = between / (residual / (n - 1))
        np.testing.assert_allclose(result.f_statistic, expected, rtol=1e-7, atol=1e-9)
    else:
        assert result.f_p_value == (0 if between else 1)


@pytest.fixture(scope="module")
def little_garbage():
    """What was made so far is left alone: statsmodels collects garbage at every call."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("little_garbage")
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.01, 0.05, 0.1]))
def test_holm_is_that_of_statsmodels(p_values, alpha):
    rejected, adjusted, _, _ = multipletests(p_values, alpha=alpha, method="holm")
    np.testing.assert_allclose(holm(p_values), adjusted, rtol=1e-12)
    near = np.isclose(adjusted, alpha, rtol=1e-9)  # where rounding decides
    np.testing.assert_array_equal((holm(p_values) <= alpha)[~near], rejected[~near])


@given(tables)
def test_the_adjusted_values_are_holms_of_the_others(table):
    result = friedman_holm(table, control="method 2")
    others = np.arange(table.shape[1]) != 1
    np.testing.assert_array_equal(result.adjusted[others], holm(result.p_values[others]))
    assert (result.z[1], result.p_values[1], result.adjusted[1]) == (0, 1, 1)


@given(tables)
def test_only_the_order_in_a_row_counts(table):
    rows = np.arange(len(table))[:, np.newaxis]
    same(friedman_holm(table), friedman_holm(table**3 + 100 * rows))
    same(friedman_holm(table), friedman_holm(np.exp(table)))


@given(tables)
def test_smaller_is_better_for_the_negative(table):
    same(friedman_holm(table), friedman_holm(-table, larger_is_better=False))


@given(tables, st.randoms(use_true_random=False))
def test_columns_may_come_in_any_order(table, random):
    order = list(range(table.shape[1]))
    random.shuffle(order)
    names = [f"m{j}" for j in range(table.shape[1])]
    one = friedman_holm(table, methods=names, control="m0")
    other = friedman_holm(table[:, order], methods=[names[j] for j in order], control="m0")
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-9, atol=1e-9)
    for name in ("mean_ranks", "z", "p_values", "adjusted"):
        np.testing.assert_allclose(
            getattr(one, name)[order], getattr(other, name), rtol=1e-12, atol=1e-12
        )


@given(tables)
def test_better_and_worse_are_the_rejected(table):
    result = friedman_holm(table, control="method 3", alpha=0.3)
    chosen = {name for name, yes in zip(result.methods, result.rejected, strict=True) if yes}
    assert {*result.better, *result.worse} == chosen
    assert not {*result.better} & {*result.worse}
    assert "method 3" not in chosen
    best = friedman_holm(table, alpha=0.3)
    assert best.better == ()


def test_holm_counts_only_when_friedman_rejects():
    # Rank sums 13, 18, 23 over 9 rows: χ² = z² = 100/18 for the extremes, and p = exp(−χ²/2).
    table = np.array([[3.0, 2, 1]] * 7 + [[1.0, 2, 3]] * 2)
    result = friedman_holm(table)
    assert result.p_value == pytest.approx(np.exp(-100 / 36))
    assert result.adjusted[2] == pytest.approx(4 * stats.norm.sf(10 / np.sqrt(18)))
    assert result.adjusted[2] < 0.05 < result.p_value
    assert not result.differ
    assert not result.rejected.any()
    assert result.worse == ()
    assert friedman_holm(table, alpha=0.1).worse == ("method 3",)


def test_ties_everywhere_are_no_difference_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = friedman_holm(np.ones((4, 3)))
    assert numbers(result) == (0, 1, 0, 1)
    assert not result.differ


def test_one_order_in_all_rows():
    result = friedman_holm(np.tile([1.0, 2, 3], (7, 1)))
    assert result.statistic == pytest.approx(14)
    assert (result.f_statistic, result.f_p_value) == (np.inf, 0)


def test_mappings_and_data_frames_bring_their_names():
    pandas = pytest.importorskip("pandas")
    columns = {name: DEMSAR[:, j] for j, name in enumerate(VARIANTS)}
    expected = demsar()
    for results in (columns, pandas.DataFrame(columns)):
        result = friedman_holm(results, larger_is_better=False)
        assert result.methods == tuple(VARIANTS)
        same(result, expected)


def test_the_table():
    lines = str(demsar(control="C4.5")).splitlines()
    assert "10.23" in lines[0]
    assert "0.0167" in lines[0]
    assert [line.split()[0] for line in lines[3:]] == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
    last = [re.split(r"\s{2,}", line)[-1] for line in lines[3:]]
    assert last[0] == last[1]  # both are better than the control
    assert len(set(last)) == 3
    starts = [line.rindex(word) for line, word in zip(lines[3:], last, strict=True)]
    assert len(set(starts)) == 1


def test_a_very_small_p_value_in_the_table():
    text = str(friedman_holm(np.tile([1.0, 2, 3], (40, 1))))
    assert "< 0.0001" in text
    assert "<1e-4" in text


GOOD = [[1, 2, 3], [2, 3, 1]]


@pytest.mark.parametrize(
    ("results", "keywords", "named"),
    [
        ([[1, 2], [3, 4]], {}, r"wilcoxon.*\b2\b"),
        ([[1], [3]], {}, r"wilcoxon.*\b1\b"),
        ([[1, 2, 3]], {}, r"\bresults\b.*\b1\b"),
        ([1, 2, 3], {}, r"\bresults\b.*\(3,\)"),
        ([[1, 2, np.nan], [2, 3, 1]], {}, r"\bresults\b.*\b1\b"),
        (GOOD, {"alpha": 0}, r"\balpha\b.* 0\b"),
        (GOOD, {"alpha": 1.0}, r"\balpha\b.*1\.0"),
        (GOOD, {"alpha": "5%"}, r"\balpha\b.*'5%'"),
        (GOOD, {"control": "svm"}, r"\bcontrol\b.*'svm'"),
        (GOOD, {"methods": ["a", "b", "a"]}, "'a'"),
        (GOOD, {"methods": ["a", "b"]}, r"\bmethods\b.*\b3\b.*\b2\b"),
        (
            {"a": [1, 2], "b": [1], "c": [1, 2]},
            {},
            r"\bresults\b.*\[\(2,\), \(1,\), \(2,\)\]",
        ),
        (
            {"a": [1, 2], "b": [1, 2], "c": [1, 2]},
            {"methods": ["c", "b", "a"]},
            r"\bmethods\b.*\['c', 'b', 'a'\]",
        ),
        ([["iris", 1, 2], ["wine", 2, 1]], {}, r"\bresults\b.*'iris'"),
    ],
)
def test_bad_input(results, keywords, named):
    with pytest.raises(ValueError, match="friedman_holm.*" + named):
        friedman_holm(results, **keywords)
