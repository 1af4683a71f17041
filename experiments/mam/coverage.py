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
"""The fraction of predictions that are at least as certain, at each probe."""


@dataclass(frozen=True, order=True)
class Setting:
    """How a classifier is fitted.

    Attributes
    ----------
    n : int
        Samples.
    by_loo : bool
        Whether the width is chosen by leave-one-out; else γ is 0.5.
    threshold : bool
        Whether the threshold is selected by accuracy; else it is 0.
    """

    n: int
    by_loo: bool
    threshold: bool

    def make(self) -> MAMClassifier:
        """A classifier."""
        return MAMClassifier(
            gamma="loo" if self.by_loo else GAMMA,
            threshold="accuracy" if self.threshold else None,
            n_jobs=1,
        )


@dataclass(frozen=True, eq=False)
class Statement:
    """The statements of a fit at one δ, and the truth; arrays have an entry for each probe.

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
        The fraction of errors among predictions above the level that the second count is about.
    bound : ndarray
        (14) on the first.
    printed : ndarray or None
        (14) with the paper's signs; None with a threshold.
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


def make_statements(n: int, seed: int) -> list[Statement]:
    """Make the statements of four fits to one sample."""
    rng = np.random.default_rng([seed, n])
    X, y = two_gaussians(n, rng)
    held_out = two_gaussians(N_HELD_OUT, rng)
    found = []
    with threadpool_limits(1):
        for by_loo in (False, True):
            for threshold in (False, True):
                setting = Setting(n, by_loo, threshold)
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
        certainty = model.certainty(X[probes], delta, held_out=held_out)
        above = margins >= certainty.levels[:, None]
        low = model.margin_bound(delta)
        printed = None
        if not setting.threshold:
            # (14) adds to the margin what it should subtract.
            as_printed = 2 * model.average_margin_ - low
            printed = (1 - as_printed) / (1 + certainty.margins)
        found.append(
            Statement(
                setting,
                delta,
                float(np.mean(y * scores)) - low,
                mistakes,
                (wrong & above).mean(axis=1) / above.mean(axis=1),
                certainty.bound,
                printed,
                certainty.held_out,
                certainty.held_out_error,
            )
        )
    return found
