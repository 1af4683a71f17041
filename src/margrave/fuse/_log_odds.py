"""One score from a committee: log-odds stacking.

The members' values are on one scale (`_scales`): log-odds of probabilities, or decision values. One
logistic regression on the standardised values gives the log-odds of a class. More elaborate scores
for strict limits were not clearly better: docs/explanation/scores.md, "Which score".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from margrave._typing import Codes, Flags, Floats
from margrave.fuse._rank_margin import values_by_class
from margrave.fuse._scales import LinearScale, learn_logit_scale

_MIN_SPREAD = 1e-12


@dataclass(frozen=True)
class OneVsRest:
    """The log-odds of one class against the rest.

    Attributes
    ----------
    scale : LinearScale
        The scale of the members' values in [-1, 1].
    coef : ndarray of shape (K,)
        Coefficients of the scaled values.
    intercept : float
        Intercept.
    """

    scale: LinearScale
    coef: Floats
    intercept: float

    def __call__(self, raw: Floats) -> Floats:
        """Return the log-odds for raw values of shape (n, K)."""
        return np.asarray(self.scale(raw) @ self.coef + self.intercept)

    @property
    def weights(self) -> Floats:
        """The coefficients, divided by the sum of their sizes."""
        total = np.abs(self.coef).sum()
        return self.coef / total if total > 0 else np.full(len(self.coef), 1 / len(self.coef))


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
        """The members' weights, shape (K,) or (k, K).

        On the scale "logit" all members that are clearly better than chance have the same mean
        margin. So a weight is the member's part in the mean difference of the score between both
        classes; it is negative for a member that corrects the others.
        """
        weights = np.array([side.weights for side in self.sides])
        return weights[0] if len(weights) == 1 else weights


def fit_log_odds(raw: Floats, probabilities: Flags, codes: Codes) -> LogOddsCombination:
    """Fit the combination on out-of-fold predictions.

    Parameters
    ----------
    raw : ndarray of shape (n, K), or (n, K, k) for more than two classes
        The members' values, in their own units.
    probabilities : ndarray of bool, shape (K,)
        Which members have probabilities.
    codes : ndarray of shape (n,)
        True classes.
    """
    return LogOddsCombination(
        tuple(
            _fit_one_vs_rest(values, probabilities, codes == c)
            for c, values in values_by_class(raw, positive_code=1)
        )
    )


def _fit_one_vs_rest(raw: Floats, probabilities: Flags, positive: Flags) -> OneVsRest:
    scale = learn_logit_scale(raw, probabilities, positive, np.ones(len(positive)))
    scaled = scale(raw)
    spread = scaled.std(axis=0)
    spread[spread < _MIN_SPREAD] = 1.0
    model = LogisticRegression(max_iter=1000).fit(scaled / spread, positive)
    return OneVsRest(scale, model.coef_[0] / spread, float(model.intercept_[0]))
