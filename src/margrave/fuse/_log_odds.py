"""One score from a committee: the mean of a rank-margin combination and of logistic stacking.

The members' values are on one scale (`_scales`). The rank margin with a fraction ν (Marrocco et
al., 2010) weights them for the ranking, a logistic regression on the same scaled values for the
probabilities. Both give log-odds. On the fifteen problems that the default members were chosen on,
their mean was at least as good as either: at a certified rate it finds 67.8 % of the other class,
the rank margin alone 67.3 %, stacking alone 67.7 %, stacking on unscaled probabilities 67.0 %, the
best member 66.8 %.

A focused combination uses only the pairs with the worst-scoring fraction of one class, where a
strict limit is decided. Alone it overfits these few samples (67.0 %); its mean with the
committee's score does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from margrave._typing import Codes, Flags, Floats
from margrave.fuse._rank_margin import (
    Combination,
    CombinationSettings,
    TuningSet,
    fit_combination,
    values_by_class,
)

_NU = 0.1
_MIN_SPREAD = 1e-12


@dataclass(frozen=True)
class OneVsRest:
    """The log-odds of one class against the rest.

    Attributes
    ----------
    rank : Combination
        The scale, and the weights by the rank margin.
    coef : ndarray of shape (K,) or None
        Coefficients of the logistic regression on the scaled values; None if it is not used.
    intercept : float
        Intercept of the logistic regression.
    flipped : bool
        Whether the first of two classes is the positive one of the rank margin.
    """

    rank: Combination
    coef: Floats | None = None
    intercept: float = 0.0
    flipped: bool = False

    def __call__(self, raw: Floats) -> Floats:
        """Return the log-odds for raw values of shape (n, K)."""
        if self.flipped:
            return -self.rank.decision(-raw)
        ranked = self.rank.decision(raw)
        if self.coef is None:
            return ranked
        stacked = self.rank.scale(raw) @ self.coef + self.intercept
        return np.asarray((ranked + stacked) / 2)


@dataclass(frozen=True)
class LogOddsCombination:
    """Combines the members' values into one score per sample, or one per class if more than two.

    Attributes
    ----------
    sides : tuple of OneVsRest
        One for two classes, else one for each class.
    """

    sides: tuple[OneVsRest, ...]

    def __call__(self, raw: Floats) -> Floats:
        """Return the log-odds for raw values of shape (n, K) or (n, K, k)."""
        if raw.ndim == 2:
            return self.sides[0](raw)
        return np.column_stack([side(raw[:, :, c]) for c, side in enumerate(self.sides)])

    @property
    def weights(self) -> Floats:
        """The members' weights by the rank margin, shape (K,) or (k, K)."""
        weights = np.array([side.rank.result.weights for side in self.sides])
        return weights[0] if len(weights) == 1 else weights


def fit_log_odds(raw: Floats, probabilities: Flags, codes: Codes) -> LogOddsCombination:
    """Fit the combination on out-of-fold predictions, for the whole ranking.

    Parameters
    ----------
    raw : ndarray of shape (n, K), or (n, K, k) for more than two classes
        The members' values, in their own units.
    probabilities : ndarray of bool, shape (K,)
        Which members have probabilities.
    codes : ndarray of shape (n,)
        True classes.
    """
    ones = np.ones(len(codes))
    sides = []
    for c, values in values_by_class(raw, positive_code=1):
        rank = fit_combination(TuningSet(values, probabilities, codes == c, ones), _settings())
        scaled = rank.scale(values)
        spread = scaled.std(axis=0)
        spread[spread < _MIN_SPREAD] = 1.0
        stacking = LogisticRegression(max_iter=1000).fit(scaled / spread, codes == c)
        sides.append(OneVsRest(rank, stacking.coef_[0] / spread, float(stacking.intercept_[0])))
    return LogOddsCombination(tuple(sides))


def fit_focused_log_odds(
    raw: Floats, probabilities: Flags, codes: Codes, c: int, hardest: float
) -> LogOddsCombination:
    """Fit the rank margin of two classes on the `hardest` fraction of the samples not in `c`."""
    ((_, values),) = values_by_class(raw, positive_code=c)
    tuning = TuningSet(values, probabilities, codes == c, np.ones(len(codes)))
    rank = fit_combination(tuning, _settings(hardest))
    return LogOddsCombination((OneVsRest(rank, flipped=c == 0),))


def _settings(hardest: float = 1.0) -> CombinationSettings:
    return CombinationSettings(scale="logit", nu=_NU, hardest=hardest, tol="auto", calibrate=True)
