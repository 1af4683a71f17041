"""Steering: say which mistakes you can afford, get a model that keeps to it, with a certificate.

A :class:`Dialog` is the state of a conversation over the confusion matrix ("Interactive Martingale
Boosting"); a :class:`Frontier` says what is reachable before asking; a :class:`SteeredClassifier`
is what is taken away, with a promise for new samples.
"""

from margrave.steer._certificate import Cell, Certificate, Check, Promise, PromiseCheck
from margrave.steer._changes import Change
from margrave.steer._columns import TableEncoder
from margrave.steer._dialog import Dialog
from margrave.steer._files import FileError
from margrave.steer._frontier import Frontier, Winner
from margrave.steer._frontier_display import FrontierDisplay
from margrave.steer._material import Option
from margrave.steer._members import Progress
from margrave.steer._onnx_graph import ExportError
from margrave.steer._promise import PromiseError
from margrave.steer._reply import Comparison, Reply
from margrave.steer._staircase import Curve
from margrave.steer._steered import SteeredClassifier
from margrave.steer._ways import Request, Way

__all__ = [
    "Cell",
    "Certificate",
    "Change",
    "Check",
    "Comparison",
    "Curve",
    "Dialog",
    "ExportError",
    "FileError",
    "Frontier",
    "FrontierDisplay",
    "Option",
    "Progress",
    "Promise",
    "PromiseCheck",
    "PromiseError",
    "Reply",
    "Request",
    "SteeredClassifier",
    "TableEncoder",
    "Way",
    "Winner",
]
