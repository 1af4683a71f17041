"""Martingale boosting: a layered program of learners that can be tuned to a preference."""

from margrave.martingale._adaptive import AdaptiveMartingaleBoostClassifier
from margrave.martingale._boost import MartingaleBoostClassifier
from margrave.martingale._logistic import Hypergradient, TunableLogistic
from margrave.martingale._nodes import NodeRequest
from margrave.martingale._program import Edge, Node, Program
from margrave.martingale._request import NotMetWarning, Step, Tuning

__all__ = [
    "AdaptiveMartingaleBoostClassifier",
    "Edge",
    "Hypergradient",
    "MartingaleBoostClassifier",
    "Node",
    "NodeRequest",
    "NotMetWarning",
    "Program",
    "Step",
    "TunableLogistic",
    "Tuning",
]
