"""Scores that a user could threshold instead of Margrave's, all from the same trained members.

A rival is fitted to the out-of-fold predictions of the members, and scores new samples with members
that were trained on all training samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments._parts import Floats, Ints
from margrave.steer import Dialog
from margrave.steer._order_statistic import largest_allowed_count
from margrave.steer._scorer import SingleMember

CONFIDENCE = 0.95
MARGRAVE = "Margrave"
"""The score of the start committee, and the model that `accept` returns for it."""
MEMBER, STACKING, STACKING_LOG_ODDS = "best member", "stacking", "stacking on log-odds"
SELECTION = "ensemble selection"
N_ROUNDS = 25
"""Rounds of ensemble selection."""

_DECIMALS = 9  # a sample must get the same score in any batch, or tied scores would be separated

RawScorer = Callable[[Floats], Floats]
"""Computes scores from the raw predictions of the members."""


def find_best_member(dialog: Dialog) -> int:
    """Find the member with the highest AUC of its out-of-fold predictions."""
    data = dialog._data
    return int(np.argmax([roc_auc_score(data.codes, column) for column in data.raw.T]))


def fit_rivals(dialog: Dialog) -> dict[str, RawScorer]:
    """Fit the rivals to the out-of-fold predictions of a dialog's members."""
    data = dialog._data
    raw, y, has_proba = data.raw, data.codes, data.committee.gives_probabilities
    best = find_best_member(dialog)
    plain = LogisticRegression().fit(_stacking_features(raw, has_proba), y)
    scaled = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    scaled.fit(_log_odds(raw, has_proba), y)
    to_unit = _fit_unit_scale(raw, has_proba, y)
    weights = select_ensemble(to_unit(raw), y)
    rivals: dict[str, RawScorer] = {
        MEMBER: lambda raw: _log_odds(raw, has_proba)[:, best],
        STACKING: lambda raw: plain.decision_function(_stacking_features(raw, has_proba)),
        STACKING_LOG_ODDS: lambda raw: scaled.decision_function(_log_odds(raw, has_proba)),
        SELECTION: lambda raw: to_unit(raw) @ weights,
    }
    return {name: _rounded(score) for name, score in rivals.items()}


def _rounded(score: RawScorer) -> RawScorer:
    return lambda raw: np.round(score(raw), _DECIMALS)


def _stacking_features(raw: Floats, has_proba: Any) -> Floats:
    """Return the features of StackingClassifier: probabilities, or decision values."""
    return np.where(has_proba, (raw + 1) / 2, raw)


def _log_odds(raw: Floats, has_proba: Any) -> Floats:
    """Return log-odds, or decision values."""
    columns = [SingleMember(bool(yes))(raw[:, [j]]) for j, yes in enumerate(has_proba)]
    return np.column_stack(columns)


def _fit_unit_scale(raw: Floats, has_proba: Any, y: Ints) -> RawScorer:
    """Fit the scale for averages: probabilities as they are, decision values by Platt scaling."""
    platt = {
        j: LogisticRegression().fit(raw[:, [j]], y) for j in np.flatnonzero(~np.asarray(has_proba))
    }

    def to_unit(raw: Floats) -> Floats:
        unit = (raw + 1) / 2
        for j, model in platt.items():
            unit[:, j] = model.predict_proba(raw[:, [j]])[:, 1]
        return unit

    return to_unit


def select_ensemble(predictions: Floats, y: Ints, n_rounds: int = N_ROUNDS) -> Floats:
    """Select members greedily, with replacement; return their weights.

    Each round adds the member that maximises the AUC of the average, the first one of equals. The
    result is the best of the nested ensembles (Caruana et al., 2004, section 2).

    Parameters
    ----------
    predictions : ndarray of shape (n, n_members)
        Out-of-fold predictions on a common scale.
    y : ndarray of shape (n,)
        Labels.
    n_rounds : int
        Number of rounds.
    """
    n_members = predictions.shape[1]
    counts, best_counts, best_auc = np.zeros(n_members), np.zeros(n_members), -np.inf
    total = np.zeros(len(y))
    for _ in range(n_rounds):
        aucs = [roc_auc_score(y, total + column) for column in predictions.T]
        added = int(np.argmax(aucs))
        counts[added] += 1
        total += predictions[:, added]
        if aucs[added] > best_auc:
            best_auc, best_counts = aucs[added], counts.copy()
    return np.asarray(best_counts / best_counts.sum())


def threshold_leaving(scores: Floats, y: Ints, limited: int, allowed: int) -> float:
    """Find the threshold, positive above it, that leaves so many errors of a class at most."""
    ordered = np.sort(scores[y == limited])
    if limited == 0:
        return float(ordered[len(ordered) - allowed - 1])
    return float(np.nextafter(ordered[allowed], -np.inf))


def order_statistic_threshold(scores: Floats, y: Ints, limited: int, rate: float) -> float:
    """Find the threshold at which certification samples guarantee an error rate of a class."""
    n = int((y == limited).sum())
    allowed = largest_allowed_count(n, rate, 1 - CONFIDENCE)
    if allowed < 0:
        raise ValueError(f"{n} samples cannot support a rate of {rate:g}.")
    return threshold_leaving(scores, y, limited, allowed)
