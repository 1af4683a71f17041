"""Martingale boosting: a layered program of learners that can be tuned to a preference."""

from margrave.martingale._logistic import Hypergradient, TunableLogistic
from margrave.martingale._request import NotMetWarning, Step, Tuning

__all__ = ["Hypergradient", "NotMetWarning", "Step", "TunableLogistic", "Tuning"]
