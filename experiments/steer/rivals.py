"""What else could be cut where Margrave's committee is: scores of the same trained members.

All from one training: a dialog's members have said about each sample of the build part what they
say when it is held out, and are trained on all of it for new samples.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments._parts import Floats, Ints
from margrave.committee import FittedMembers
from margrave.steer import Dialog
from margrave.steer._order_statistic import largest_allowed_count
from margrave.steer._scorer import Scorer, SingleMember, decimals_for
from margrave.steer._tuning_data import TuningData

CONFIDENCE = 0.95
OURS, TUNED, START = "Margrave", "tuning quantile", "start committee"
MEMBER, STACKING, LOG_ODDS = "best member", "stacking", "stacking on log-odds"
MAPIE, SEQUENCE = "MAPIE", "MAPIE, fixed sequence"
HAS_MAPIE = find_spec("mapie") is not None
_METHODS = {MAPIE: "bonferroni_holm", SEQUENCE: "fixed_sequence"}


@dataclass(frozen=True, eq=False)
class Voices:
    """What a committee says about some samples, asked once."""

    committee: FittedMembers
    X: Floats
    raw: Floats

    @classmethod
    def of(cls, dialog: Dialog, X: Floats) -> Voices:
        """Ask a dialog's members."""
        committee = dialog._data.committee
        return cls(committee, X, committee.raw(committee.encode(X)))

    def scores(self, scorer: Scorer) -> Floats:
        """Scores by what the members said, or by those who replace them."""
        if scorer.committee is not self.committee:
            return scorer(self.X)
        return scorer.score_raw(self.raw)


def best_member(data: TuningData) -> int:
    """The member with the best AUC on samples it was not trained on."""
    return int(np.argmax([roc_auc_score(data.codes, said) for said in data.raw.T]))


def scorers(dialog: Dialog) -> dict[str, Scorer]:
    """The rivals, for what the members say in their own units."""
    data = dialog._data
    has_proba = data.committee.gives_probabilities
    best = best_member(data)
    alone = SingleMember(bool(has_proba[best]))
    plain = LogisticRegression().fit(_probabilities(data.raw, has_proba), data.codes)
    scaled = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    scaled.fit(_log_odds(data.raw, has_proba), data.codes)
    combiners: dict[str, Any] = {  # they have no weights to show
        MEMBER: lambda raw: alone(raw[:, [best]]),
        STACKING: lambda raw: np.asarray(plain.decision_function(_probabilities(raw, has_proba))),
        LOG_ODDS: lambda raw: np.asarray(scaled.decision_function(_log_odds(raw, has_proba))),
    }
    found = {
        name: Scorer(data.committee, combine, decimals_for(combine(data.raw)))
        for name, combine in combiners.items()
    }
    return {**found, START: dialog.history[0].candidate.scorer}


def _probabilities(raw: Floats, has_proba: Any) -> Floats:
    """What StackingClassifier hands on: probabilities, or what a member decides by."""
    return np.where(has_proba, (raw + 1) / 2, raw)


def _log_odds(raw: Floats, has_proba: Any) -> Floats:
    each = [SingleMember(bool(yes))(raw[:, [j]]) for j, yes in enumerate(has_proba)]
    return np.column_stack(each)


def certified_cut(scores: Floats, y: Ints, limited: int, rate: float) -> float:
    """The cut, positive above it, that keeps a class's errors to a rate: its order statistic."""
    known = np.sort(scores[y == limited])
    allowed = largest_allowed_count(len(known), rate, 1 - CONFIDENCE)
    if allowed < 0:
        raise ValueError(f"{len(known)} samples cannot support a rate of {rate:g}.")
    if limited == 0:
        return float(known[len(known) - allowed - 1])
    return float(np.nextafter(known[allowed], -np.inf))


def mapie_answers(
    certify: Floats, y: Ints, test: Floats, limited: int, rate: float
) -> dict[str, Any]:
    """Which test samples MAPIE calls positive by some log-odds; None where it finds no threshold.

    Learn then Test over a hundred thresholds of the probability, corrected as it does by default
    and, since the risk is monotone, by a fixed sequence.
    """
    if not HAS_MAPIE:
        return {}
    from mapie.risk_control import BinaryClassificationController

    risk, level = ("fpr", rate) if limited == 0 else ("recall", 1 - rate)
    found: dict[str, Any] = {}
    for name, method in _METHODS.items():
        controller = BinaryClassificationController(
            _two_columns, risk, level, confidence_level=CONFIDENCE, fwer_method=method
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it finds none is counted
            controller.calibrate(certify, y)
        none = controller.best_predict_param is None
        found[name] = None if none else controller.predict(test) == 1
    return found


def _two_columns(scores: Floats) -> Floats:
    p = expit(scores)
    return np.column_stack([1 - p, p])
