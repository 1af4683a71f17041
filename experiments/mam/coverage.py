"""Whether the bounds hold: fits on samples of a known distribution, beside the truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from experiments._parts import Floats
from experiments.mam.artificial import two_gaussians, whole_distribution
from margrave.mam import MAMClassifier

DELTAS = (0.05, 0.5)
GAMMA = 0.5
N_HELD_OUT = 500
N_PROBES = 20
SURER = 1 - np.linspace(0, 1, N_PROBES, endpoint=False)
"""The share of predictions that are at least as sure, at each probe."""


@dataclass(frozen=True, order=True)
class Setting:
    """How a classifier is fitted.

    Attributes
    ----------
    n : int
        Samples.
    by_loo : bool
        Whether the width is chosen by leave-one-out; else γ is 0.5.
    cut : bool
        Whether the cut is chosen for accuracy; else it is 0.
    """

    n: int
    by_loo: bool
    cut: bool

    def make(self) -> MAMClassifier:
        """A classifier."""
        return MAMClassifier(
            gamma="loo" if self.by_loo else GAMMA,
            threshold="accuracy" if self.cut else None,
            n_jobs=1,
        )


@dataclass(frozen=True, eq=False)
class Statement:
    """What a fit says at one δ, beside the truth; arrays have an entry for each probe.

    Attributes
    ----------
    setting : Setting
        Of the fit.
    delta : float
        δ.
    spare : float
        The expected margin less (12), which is a lower bound.
    mistakes : ndarray
        The probability of a mistake with at least the probe's margin.
    errors : ndarray
        The share of mistakes among predictions above the level that the second count is about.
    bound : ndarray
        (14) on the first.
    printed : ndarray or None
        (14) with the document's signs; None with a cut, which it does not know.
    held_out, held_out_error : ndarray
        Bounds on both by counting.
    """

    setting: Setting
    delta: float
    spare: float
    mistakes: Floats
    errors: Floats
    bound: Floats
    printed: Floats | None
    held_out: Floats
    held_out_error: Floats


@cache
def _everything() -> tuple[Floats, Any]:
    """The whole distribution, made once."""
    return whole_distribution()


def statements(n: int, seed: int) -> list[Statement]:
    """Everything that four fits to one sample say."""
    rng = np.random.default_rng([seed, n])
    X, y = two_gaussians(n, rng)
    held_out = two_gaussians(N_HELD_OUT, rng)
    found = []
    with threadpool_limits(1):
        for by_loo in (False, True):
            for cut in (False, True):
                setting = Setting(n, by_loo, cut)
                found += _of_fit(setting, setting.make().fit(X, y), held_out)
    return found


def _of_fit(setting: Setting, model: Any, held_out: tuple[Floats, Any]) -> list[Statement]:
    X, y = _everything()
    scores = model.decision_function(X)
    margins = np.abs(scores)
    probes = np.argsort(margins)[np.round((1 - SURER) * len(y)).astype(int)]
    wrong = (scores > 0) != (y > 0)
    mistakes = (wrong & (margins >= margins[probes, None])).mean(axis=1)
    found = []
    for delta in DELTAS:
        told = model.certainty(X[probes], delta, held_out=held_out)
        above = margins >= told.levels[:, None]
        low = model.margin_bound(delta)
        printed = None
        if not setting.cut:
            # (14) adds to the margin what it should take off.
            wrong_way = 2 * model.average_margin_ - low
            printed = (1 - wrong_way) / (1 + told.margins)
        found.append(
            Statement(
                setting,
                delta,
                float(np.mean(y * scores)) - low,
                mistakes,
                (wrong & above).mean(axis=1) / above.mean(axis=1),
                told.bound,
                printed,
                told.held_out,
                told.held_out_error,
            )
        )
    return found
