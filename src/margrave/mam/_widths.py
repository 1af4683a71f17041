"""Widths of a kernel: which are tried, and the usual one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from margrave._typing import Floats
from margrave._validation import is_number

N_WIDTHS = 15
_RANGE = (1e-290, 1e290)
_CONSTANT = 1e-28  # a variance below this, with the largest number as unit, is rounding
_RATIO = 4.0  # a width is squared twice for the next: see `_self_sums`


def usual_gamma(X: Any, kernel: Any, weights: Floats | None = None) -> float:
    """γ from the spread of the features: 1 / (n_features · variance), as scikit-learn's "scale".

    For the Laplacian kernel, whose distances are not squared, the standard deviation. Samples count
    by their weights.
    """
    unit = float(np.abs(X.data if issparse(X) else X).max(initial=0.0)) or 1.0
    spread = _variance(X, unit, weights)
    return gamma_of(spread, unit, X.shape[1], kernel, 1e-14 if issparse(X) else _CONSTANT)


def gamma_of(
    spread: float, unit: float, n_features: int, kernel: Any, smallest: float = _CONSTANT
) -> float:
    """γ from the variance of all numbers, which were divided by a unit."""
    # Constant features, up to rounding: any width is as good as another.
    if spread <= smallest:
        return 1.0
    spread = float(np.sqrt(spread)) * unit if kernel == "laplacian" else spread * unit * unit
    usual = 1 / (n_features * spread) if spread > 0 else np.inf
    return float(np.clip(usual, *_RANGE))


def _variance(X: Any, unit: float, weights: Floats | None) -> float:
    """The variance of all numbers in X, divided by a unit so that squares do not overflow."""
    if weights is None and not issparse(X):
        return float(np.var(X / unit, dtype=np.float64))
    of_rows = np.ones(X.shape[0]) if weights is None else weights
    shares = of_rows / of_rows.sum() / X.shape[1]
    centre = float((shares @ (X / unit)).sum())
    if issparse(X):
        scaled = X / unit
        return float((shares @ scaled.multiply(scaled)).sum()) - centre**2
    return float((shares @ np.square(X / unit - centre, dtype=np.float64)).sum())


def widths_to_try(
    gamma: Any, gammas: Any, X: Any, kernel: Any, weights: Floats | None = None
) -> Floats:
    """The values of γ to choose from, rising; one if it is given."""
    if not isinstance(gamma, str):
        return np.array([float(gamma)])
    return widths_around(usual_gamma(X, kernel, weights), gamma, gammas)


def widths_around(usual: float, gamma: Any, gammas: Any) -> Floats:
    """The values of γ to choose from, rising, where the usual one is known."""
    if not isinstance(gamma, str):
        return np.array([float(gamma)])
    if gamma == "scale":
        return np.array([usual])
    if gammas is not None:
        return np.unique(np.asarray(gammas, dtype=np.float64))
    # Powers of 4, whatever the data: bounds can then count how many there are to choose from.
    nearest = round(float(np.log2(usual)) / 2)
    return np.asarray(_RATIO ** (nearest + np.arange(N_WIDTHS) - N_WIDTHS // 2))


def share_of_width(gamma: Any, gammas: Any, chosen: float | None) -> float:
    """The share of δ that the bounds may spend on the width in use.

    All of it on one that was given, an equal part on each of those that were given to choose from.
    The default ones are powers of 4, of which the j-th gets a share that falls with j². "scale" is
    taken as given, although it comes from the features.
    """
    if gamma != "loo" or chosen is None:
        return 1.0
    if gammas is not None:
        return 1 / len(np.unique(np.asarray(gammas)))
    return share_of_power(round(float(np.log2(chosen)) / 2))


def share_of_power(power: int) -> float:
    """Shares for all integers that sum to 1, the larger the nearer to 0."""
    return 1 / ((np.pi**2 / 3 - 1) * (1 + abs(power)) ** 2)


def is_gamma(gamma: Any) -> bool:
    """Whether it is "loo", "scale" or a finite number above 0."""
    if isinstance(gamma, str):
        return gamma in ("loo", "scale")
    return is_number(gamma) and 0 < gamma < np.inf


def are_gammas(gammas: Any) -> bool:
    """Whether it is None or some finite numbers above 0."""
    if gammas is None:
        return True
    try:
        values = np.asarray(gammas)
    except ValueError:  # rows of different lengths
        return False
    numbers = values.ndim == 1 and len(values) > 0 and values.dtype.kind in "iuf"
    return numbers and bool(((values > 0) & (values < np.inf)).all())
