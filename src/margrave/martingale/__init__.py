"""Martingale boosting: layered programs of learners that can be tuned to a preference.

The methods of Kulkarni et al. (2016). `_boost` has the estimator, and lists its parts in the
order of the paper.
"""

from margrave.martingale._adaptive import AdaptiveMartingaleBoostClassifier
from margrave.martingale._boost import MartingaleBoostClassifier
from margrave.martingale._logistic import Hypergradient, TunableLogistic
from margrave.martingale._nodes import NodeRequest
from margrave.martingale._program import Edge, Node, Program
from margrave.martingale._rbf import TunableRBFLogistic
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
    "TunableRBFLogistic",
    "Tuning",
]
