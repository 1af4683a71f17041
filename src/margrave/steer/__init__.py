"""Steering: say which mistakes you can afford, get a model that keeps to it, with a certificate.

A :class:`Dialog` is the state of a conversation over the confusion matrix ("Interactive Martingale
Boosting"); a :class:`Frontier` says what is reachable before asking; a :class:`SteeredClassifier`
is what is taken away, with a promise for new samples.
"""

from margrave.committee import Progress
from margrave.steer._certificate import Cell, Certificate, Change, Check, Guarantee, GuaranteeCheck
from margrave.steer._dialog import Dialog
from margrave.steer._files import FileError
from margrave.steer._frontier import Curve, Frontier, Winner
from margrave.steer._frontier_display import FrontierDisplay
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._reply import Comparison, Reply
from margrave.steer._steered import SteeredClassifier
from margrave.steer._strategies import Request, Strategy
from margrave.steer._tuning_data import Candidate

__all__ = [
    "Candidate",
    "Cell",
    "Certificate",
    "Change",
    "Check",
    "Comparison",
    "Curve",
    "Dialog",
    "FileError",
    "Frontier",
    "FrontierDisplay",
    "Guarantee",
    "GuaranteeCheck",
    "GuaranteeError",
    "Progress",
    "Reply",
    "Request",
    "SteeredClassifier",
    "Strategy",
    "Winner",
]
