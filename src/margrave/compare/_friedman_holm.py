"""Friedman's test, and Holm's procedure against a control.

Marrocco et al. (2010), section 4, compare methods this way, after Demšar (2006), section 3.2. With
k methods, N rows and mean ranks R_i:

- Friedman's statistic, corrected for ties, has a χ² distribution with k − 1 degrees of freedom if
  no two methods differ;
- Iman and Davenport's F = (N − 1)·χ² / (N·(k − 1) − χ²) has k − 1 and (k − 1)(N − 1) degrees;
- against a control c, z_i = (R_i − R_c) / SE is standard normal, with SE = √(k(k + 1) / 6N);
- Holm multiplies the j-th smallest of m p-values by m − j + 1, and keeps the products monotone;
- Nemenyi: two methods differ if their mean ranks differ by at least q_α/√2 · SE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from margrave._typing import Floats

_DECISIONS = {-1: "better", 0: "not different", 1: "worse"}


def friedman_holm(
    results: Any,
    *,
    control: str | None = None,
    methods: Sequence[str] | None = None,
    larger_is_better: bool = True,
    alpha: float = 0.05,
) -> FriedmanHolm:
    """Test whether methods differ and, if they do, which differ from a control.

    Friedman's test compares the ranks of the methods on each row. If it rejects that all methods
    are equal, Holm's step-down procedure compares each method with the control, as Marrocco et al.
    [1]_ do after Demšar [2]_.

    Parameters
    ----------
    results : array-like of shape (n_rows, n_methods), data frame, or mapping of name to sequence
        One row per data set or run, one column per method. No value may be missing.
    control : str, default=None
        The method to compare the others with; by default the one with the best mean rank. If you
        propose a method, name it before you see the results.
    methods : sequence of str, default=None
        Names of the columns of an array; by default "method 1", "method 2", … Data frames and
        mappings have their own.
    larger_is_better : bool, default=True
        False for errors, costs and times.
    alpha : float, default=0.05
        Level of the tests; Marrocco et al. use 0.01.

    Returns
    -------
    result : FriedmanHolm
        Statistics, mean ranks, p-values and decisions; `print` shows them as a table.

    Notes
    -----
    Only the order within a row matters. Results that differ only by rounding are not ties: round
    them first. The rows should be independent, such as data sets. Runs on samples of one data set
    are not, and their p-values are too small. Both distributions are approximations, good from
    about ten rows.

    References
    ----------
    .. [1] C. Marrocco, P. Simeone and F. Tortorella, "A Linear Combination of Classifiers via Rank
       Margin Maximization", Lecture Notes in Computer Science 6218, 2010, section 4.
    .. [2] J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
       Machine Learning Research 7, 2006, section 3.2.

    Examples
    --------
    >>> from margrave.compare import friedman_holm
    >>> errors = [[0.2, 0.1, 0.3], [0.3, 0.2, 0.4], [0.2, 0.3, 0.4], [0.1, 0.0, 0.5]]
    >>> result = friedman_holm(errors, methods=["new", "old", "none"], larger_is_better=False)
    >>> result.mean_ranks
    array([1.75, 1.25, 3.  ])
    >>> result.control, result.worse
    ('old', ('none',))
    """
    if not isinstance(alpha, int | float | np.floating) or not 0 < alpha < 1:
        raise _error("alpha between 0 and 1", repr(alpha))
    names, values = _check_results(results, methods)
    n, k = values.shape
    ranks = stats.rankdata(-values if larger_is_better else values, axis=1)
    mean_ranks = ranks.mean(axis=0)
    reference = int(mean_ranks.argmin()) if control is None else _position(control, names)
    statistic, p_value = _friedman(ranks)
    f_statistic, f_p_value = _iman_davenport(statistic, n, k)
    z = (mean_ranks - mean_ranks[reference]) / _standard_error(k, n)
    p_values = 2 * stats.norm.sf(np.abs(z))
    adjusted = np.ones(k)
    others = np.arange(k) != reference
    adjusted[others] = holm(p_values[others])
    return FriedmanHolm(
        methods=names,
        n_rows=n,
        alpha=float(alpha),
        statistic=statistic,
        p_value=p_value,
        f_statistic=f_statistic,
        f_p_value=f_p_value,
        mean_ranks=mean_ranks,
        control=names[reference],
        z=z,
        p_values=p_values,
        adjusted=adjusted,
    )


@dataclass(frozen=True, eq=False)
class FriedmanHolm:
    """Mean ranks of methods, and which of them differ from a control.

    Arrays have one entry per method, in the order of `methods`; the control's own is z = 0, p = 1.

    Parameters
    ----------
    methods : tuple of str
        Names of the methods.
    n_rows : int
        Number of data sets or runs.
    alpha : float
        Level of the tests.
    statistic, p_value : float
        Friedman's test, corrected for ties.
    f_statistic, f_p_value : float
        Iman and Davenport's variant, which is less conservative. No decision depends on it.
    mean_ranks : ndarray of shape (n_methods,)
        1 is best; ties have their mean rank.
    control : str
        The method that the others are compared with.
    z : ndarray of shape (n_methods,)
        Distance from the control in standard errors; above 0 for a method with a worse mean rank.
    p_values : ndarray of shape (n_methods,)
        Two-sided p-values of `z`, not adjusted.
    adjusted : ndarray of shape (n_methods,)
        p-values adjusted by Holm's procedure for all comparisons together.

    Examples
    --------
    >>> from margrave.compare import friedman_holm
    >>> result = friedman_holm(
    ...     {"a": [9, 8, 9, 7, 9, 8], "b": [8, 7, 8, 6, 8, 9], "c": [5, 6, 5, 5, 4, 5]},
    ... )
    >>> result.control, result.worse
    ('a', ('c',))
    >>> print(result)
    Friedman χ²(2) = 10.33, p = 0.0057: methods differ (alpha = 0.05, 6 rows)
    Iman-Davenport F(2, 10) = 31.00, p = 0.0001
    method  mean rank       z       p  Holm p  against a
    a            1.17                          control
    b            1.83    1.15  0.2482  0.2482  not different
    c            3.00    3.18  0.0015  0.0030  worse
    """

    methods: tuple[str, ...]
    n_rows: int
    alpha: float
    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    mean_ranks: Floats
    control: str
    z: Floats
    p_values: Floats
    adjusted: Floats

    @property
    def differ(self) -> bool:
        """Whether Friedman's test rejects that all methods are equal."""
        return self.p_value <= self.alpha

    @property
    def rejected(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Per method, whether it differs from the control.

        Holm's procedure is a post-hoc test: if Friedman's test finds no difference, nothing is
        rejected, whatever the values of `adjusted`.
        """
        return (self.adjusted <= self.alpha) & self.differ

    @property
    def worse(self) -> tuple[str, ...]:
        """Methods significantly worse than the control."""
        return self._differing(1)

    @property
    def better(self) -> tuple[str, ...]:
        """Methods significantly better than the control."""
        return self._differing(-1)

    @cached_property
    def critical_difference(self) -> float:
        """Nemenyi's critical difference: two methods differ if their mean ranks differ by it."""
        k = len(self.methods)
        q = stats.studentized_range.ppf(1 - self.alpha, k, np.inf)
        return float(q / np.sqrt(2) * _standard_error(k, self.n_rows))

    def _differing(self, sign: int) -> tuple[str, ...]:
        differs = self.rejected & (np.sign(self.z) == sign)
        return tuple(name for name, yes in zip(self.methods, differs, strict=True) if yes)

    def __str__(self) -> str:
        k, n = len(self.methods), self.n_rows
        conclusion = "methods differ" if self.differ else "no difference found"
        width = max(map(len, (*self.methods, "method")))
        lines = [
            f"Friedman χ²({k - 1}) = {self.statistic:.2f}, p {_equals(self.p_value)}: {conclusion} "
            f"(alpha = {self.alpha:g}, {n} rows)",
            f"Iman-Davenport F({k - 1}, {(k - 1) * (n - 1)}) = {self.f_statistic:.2f}, "
            f"p {_equals(self.f_p_value)}",
            f"{'method':<{width}}  mean rank       z       p  Holm p  against {self.control}",
        ]
        for i in np.argsort(self.mean_ranks, kind="stable"):
            line = f"{self.methods[i]:<{width}}  {self.mean_ranks[i]:9.2f}  "
            if self.methods[i] == self.control:
                lines.append(f"{line}{'':22}  control")
                continue
            decision = _DECISIONS[int(self.rejected[i] * np.sign(self.z[i]))]
            p, adjusted = _format_p(self.p_values[i]), _format_p(self.adjusted[i])
            lines.append(f"{line}{self.z[i]:6.2f}  {p:>6}  {adjusted:>6}  {decision}")
        return "\n".join(lines)


def holm(p_values: ArrayLike) -> Floats:
    """Adjust p-values by Holm's step-down procedure; the order of the values is kept."""
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def _friedman(ranks: Floats) -> tuple[float, float]:
    if np.all(ranks == ranks[:, :1]):  # scipy would divide 0 by 0
        return 0.0, 1.0
    result = stats.friedmanchisquare(*ranks.T)
    # For equal mean ranks, rounding may make the statistic negative.
    return max(float(result.statistic), 0.0), float(result.pvalue)


def _iman_davenport(statistic: float, n: int, k: int) -> tuple[float, float]:
    largest = n * (k - 1)  # all rows have the same order
    if np.isclose(statistic, largest, rtol=1e-12):
        return float("inf"), 0.0
    f = (n - 1) * statistic / (largest - statistic)
    return float(f), float(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def _standard_error(k: int, n: int) -> float:
    return float(np.sqrt(k * (k + 1) / (6 * n)))


def _check_results(results: Any, methods: Sequence[str] | None) -> tuple[tuple[str, ...], Floats]:
    """Check the results, and return the names of the methods and the values."""
    own: Sequence[Any] | None = None
    if isinstance(results, Mapping):
        own, lengths = tuple(results), [np.shape(column) for column in results.values()]
        if len(set(lengths)) > 1:
            raise _error("results with as many rows for each method", f"shapes {lengths}")
        results = np.array(list(results.values())).T
    elif hasattr(results, "columns"):
        own = tuple(results.columns)
    if own is not None and methods is not None:
        raise _error("methods=None for results that name them", repr(methods))
    try:
        values = np.asarray(results, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _error("results as a table of numbers", f"other values ({error})") from error
    if values.ndim != 2:
        raise _error("results of shape (n_rows, n_methods)", f"shape {values.shape}")
    n, k = values.shape
    if k < 3:
        rule = "at least three methods (for two there is scipy.stats.wilcoxon)"
        raise _error(rule, str(k))
    if n < 2:
        raise _error("results with at least two rows", str(n))
    if np.isnan(values).any():
        raise _error("results for every method in every row", f"{np.isnan(values).sum()} missing")
    if own is None:
        own = tuple(f"method {j + 1}" for j in range(k)) if methods is None else methods
    names = tuple(map(str, own))
    if len(names) != k:
        raise _error(f"methods with a name for each of the {k} columns", str(len(names)))
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise _error("a different name for each method", f"{repeated[0]!r} more than once")
    return names, values


def _position(control: str, names: tuple[str, ...]) -> int:
    if str(control) not in names:
        raise _error(f"control to be one of {', '.join(map(repr, names))}", repr(control))
    return names.index(str(control))


def _format_p(p: float) -> str:
    return f"{p:.4f}" if p >= 0.00005 else "<1e-4"


def _equals(p: float) -> str:
    return f"= {_format_p(p)}" if p >= 0.00005 else "< 0.0001"


def _error(rule: str, got: str) -> ValueError:
    return ValueError(f"friedman_holm needs {rule}; got {got}.")
