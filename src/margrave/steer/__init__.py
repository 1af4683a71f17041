"""Steering: say which errors you can tolerate, and get a model that meets this on new samples.

In a :class:`Dialog` the user requests a confusion matrix and sees what it costs (Kulkarni et al.,
2016). A :class:`Frontier` shows which error rates are achievable. A :class:`SteeredClassifier` is
the result: a classifier with a :class:`Certificate` that states what is guaranteed on new samples.
"""

from margrave.committee import Progress
from margrave.steer._alternatives import Alternative
from margrave.steer._certificate import Cell, Certificate, Change, Check, Guarantee, GuaranteeCheck
from margrave.steer._certificate import describe_bound as describe_bound
from margrave.steer._certify import check_confidence as check_confidence
from margrave.steer._certify import describe_support as describe_support
from margrave.steer._default_committee import default_members
from margrave.steer._dialog import Dialog, StoppedError
from margrave.steer._files import FileError
from margrave.steer._frontier import Curve, Frontier, Winner
from margrave.steer._frontier_display import FrontierDisplay
from margrave.steer._ledger import Accepted, Account
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._reply import Comparison, Reply
from margrave.steer._rows import CellRows
from margrave.steer._split import SplitError, SplitSizes
from margrave.steer._steered import LIMITS as LIMITS
from margrave.steer._steered import SteeredClassifier
from margrave.steer._strategies import Request, Strategy
from margrave.steer._strategies import get_strategies as get_strategies
from margrave.steer._tuning_data import Candidate

# Names imported with "as" are for the other packages of Margrave.
__all__ = [
    "Accepted",
    "Account",
    "Alternative",
    "Candidate",
    "Cell",
    "CellRows",
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
    "SplitError",
    "SplitSizes",
    "SteeredClassifier",
    "StoppedError",
    "Strategy",
    "Winner",
    "default_members",
]
