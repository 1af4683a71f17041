"""MAPIE's risk control (Learn then Test) on the start committee's probability."""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from experiments._parts import Floats, Ints
from experiments.steer.rivals import CONFIDENCE

HAS_MAPIE = find_spec("mapie") is not None
HOLM, SEQUENCE = "MAPIE, Bonferroni–Holm", "MAPIE, fixed sequence"
METHODS = {HOLM: "bonferroni_holm", SEQUENCE: "fixed_sequence"}
N_QUANTILES, N_ABOVE = 100, 10
"""Number of thresholds at quantiles of the limited class, and above its largest score."""
MAX_RATIO = 1.5
"""The largest error rate of a threshold on the tuning set, as a multiple of the limit."""

Scored = tuple[Floats, Ints]
"""Scores and labels."""


def candidate_thresholds(scores: Floats, y: Ints, rate: float) -> Floats:
    """List thresholds of the probability of class 1, the safest first, from the tuning set alone.

    They are quantiles of class 0, which make from none to 1.5 times the allowed errors on the
    tuning set, and a few above its largest score, as new samples may have larger ones. The first
    threshold makes no error on any sample.
    """
    levels = np.linspace(0, MAX_RATIO * rate, N_QUANTILES)
    quantiles = np.quantile(scores[y == 0], 1 - levels)
    above = np.linspace(quantiles[0], scores.max(), N_ABOVE + 1)
    thresholds = np.unique(np.concatenate([quantiles, above]))
    return np.append(np.nextafter(1, 2), expit(thresholds[::-1]))


def predict_with_mapie(
    tune: Scored, certify: Scored, test: Floats, limited: int, rate: float
) -> dict[str, NDArray[np.bool_] | None]:
    """Predict which test samples are positive; None where no threshold passes.

    Parameters
    ----------
    tune, certify : (scores, labels)
        Log-odds and labels of the tuning and of the certification set.
    test : ndarray
        Log-odds of the test samples.
    limited : int
        The class whose errors are limited.
    rate : float
        The limit.
    """
    from mapie.risk_control import BinaryClassificationController

    # A limit on false negatives is one on false positives with the classes exchanged. MAPIE's
    # "recall" would often allow one error fewer, where 1 - (1 - k / n) is rounded above k / n.
    if limited == 1:
        flipped = predict_with_mapie(_exchange(tune), _exchange(certify), -test, 0, rate)
        return {name: None if one is None else ~one for name, one in flipped.items()}
    predicted: dict[str, NDArray[np.bool_] | None] = {}
    for name, method in METHODS.items():
        controller = BinaryClassificationController(
            _two_columns,
            "fpr",
            rate,
            confidence_level=CONFIDENCE,
            list_predict_params=candidate_thresholds(*tune, rate),
            fwer_method=method,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the study counts where no threshold passes
            controller.calibrate(*certify)
        found = controller.best_predict_param is not None
        predicted[name] = controller.predict(test) == 1 if found else None
    return predicted


def _exchange(scored: Scored) -> Scored:
    """Exchange the classes."""
    scores, y = scored
    return -scores, 1 - y


def _two_columns(scores: Floats) -> Floats:
    p = expit(scores)
    return np.column_stack([1 - p, p])
