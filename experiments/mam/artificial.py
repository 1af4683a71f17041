"""Synthetic data: section 5 of the paper, and two Gaussians of which everything is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from scipy.stats.qmc import Sobol

from experiments._parts import Floats, Ints

N_FEATURES = 5
N_TRAIN, N_VALID = 100, 250
NOISE = 0.25
"""The variance of e."""
FREEDOM = 5
"""Degrees of freedom of the intervals between responses."""

CENTRE = np.array([1.0, 0.0])
"""Of the positive class; the other's is opposite. The covariance is the identity."""
BAYES = float(norm.cdf(-np.linalg.norm(CENTRE)))
"""The smallest possible error."""
_POWER = 12
CELLS = 2**_POWER
"""Points of each class that stand for it."""


@dataclass(frozen=True, eq=False)
class Ordered:
    """Samples with responses, and what the responses follow.

    Attributes
    ----------
    X, y : ndarray
        Samples and responses.
    z : ndarray
        The hidden variable (wᵀx)³ + e, whose order y has.
    truth : ndarray
        wᵀx, which no order can do better than.
    """

    X: Floats
    y: Floats
    z: Floats
    truth: Floats


def ordered(n: int, direction: Floats, rng: np.random.Generator) -> Ordered:
    """Section 5: responses in the order of Z, with intervals that are χ²-distributed."""
    X = rng.normal(size=(n, len(direction)))
    truth = X @ direction
    z = truth**3 + rng.normal(scale=np.sqrt(NOISE), size=n)
    y = np.empty(n)
    y[np.argsort(z)] = np.cumsum(rng.chisquare(FREEDOM, n))
    return Ordered(X, y, z, truth)


def section_5(seed: int) -> tuple[Ordered, Ordered]:
    """Training and validation part of one Monte Carlo run."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=N_FEATURES)
    return ordered(N_TRAIN, direction, rng), ordered(N_VALID, direction, rng)


def in_quantiles(y: Floats, n_classes: int) -> Ints:
    """Classes 0, 1, … of as equal sizes as can be, in order."""
    inner = np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1])
    return np.searchsorted(inner, y, side="left").astype(np.int64)


def two_gaussians(n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Samples of two classes, −1 and 1, as probable as each other."""
    y = rng.choice([-1, 1], n)
    return rng.normal(size=(n, 2)) + y[:, None] * CENTRE, y


def whole_distribution() -> tuple[Floats, Ints]:
    """Points that stand for the two Gaussians, spread evenly: Sobol's, each class the same.

    Fractions of them are probabilities to about 0.001; as many random points are off by 0.004.
    """
    places = Sobol(2, scramble=False).random_base2(_POWER) + 0.5 / CELLS
    noise = norm.ppf(places)
    y = np.repeat([-1, 1], CELLS)
    return np.tile(noise, (2, 1)) + y[:, None] * CENTRE, y
