"""Steering: say which errors you can tolerate, and get a model that meets this on new samples.

In a :class:`Dialog` the user requests a confusion matrix and sees what it costs (Kulkarni et al.,
2016). A :class:`Frontier` shows which error rates are achievable. A :class:`SteeredClassifier` is
the result: a classifier with a :class:`Certificate` that states what is guaranteed on new samples.
"""

from margrave.committee import Progress
from margrave.steer._acceptance import Accepted
from margrave.steer._alternatives import Alternative
from margrave.steer._certificate import (
    Cell,
    Certificate,
    Change,
    Check,
    Guarantee,
    GuaranteeCheck,
    Use,
    UselessWarning,
)
from margrave.steer._certificate import describe_bound as describe_bound
from margrave.steer._certify import PROPORTIONS_DIFFER as PROPORTIONS_DIFFER
from margrave.steer._certify import Prospect as Prospect
from margrave.steer._certify import check_confidence as check_confidence
from margrave.steer._certify import describe_support as describe_support
from margrave.steer._certify import issue_certificate as issue_certificate
from margrave.steer._certify import name_request as name_request
from margrave.steer._copies import has_few_values as has_few_values
from margrave.steer._default_committee import default_members
from margrave.steer._dialog import Dialog
from margrave.steer._expected import ExpectedBound, ExpectedCell, ExpectedCertificate
from margrave.steer._files import FileError, trusted_types
from margrave.steer._frontier import Curve, Frontier, Winner
from margrave.steer._frontier import best_thresholds as best_thresholds
from margrave.steer._frontier import check_finite as check_finite
from margrave.steer._frontier import raise_invalid as raise_invalid
from margrave.steer._frontier import split_labels as split_labels
from margrave.steer._frontier_display import FrontierDisplay
from margrave.steer._ledger import Account, FileLedger, Ledger
from margrave.steer._ledger import Grant as Grant
from margrave.steer._ledger import RowSample as RowSample
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._plan import make_plan as make_plan
from margrave.steer._planned_split import SplitOption, SplitPlan
from margrave.steer._reply import Reply
from margrave.steer._row_hashes import RowHashes as RowHashes
from margrave.steer._row_hashes import hash_rows as hash_rows
from margrave.steer._row_hashes import one_of_each as one_of_each
from margrave.steer._row_hashes import random_keys as random_keys
from margrave.steer._rows import CellRows, Comparison
from margrave.steer._scorer import SMALLEST_PROBABILITY as SMALLEST_PROBABILITY
from margrave.steer._scorer import Scorer as Scorer
from margrave.steer._scorer import SingleMember as SingleMember
from margrave.steer._split import SplitError, SplitSizes
from margrave.steer._split import certification_fraction as certification_fraction
from margrave.steer._split import rates_within_classes as rates_within_classes
from margrave.steer._start import start_from_table as start_from_table
from margrave.steer._steered import LIMITS as LIMITS
from margrave.steer._steered import SteeredClassifier
from margrave.steer._steered import adopt_fit as adopt_fit
from margrave.steer._steered import card_record as card_record
from margrave.steer._steered import check_certified as check_certified
from margrave.steer._steered import check_predictions as check_predictions
from margrave.steer._steered import hash_samples as hash_samples
from margrave.steer._steered import make_model as make_model
from margrave.steer._steered import positive_class as positive_class
from margrave.steer._steered import recertify_scores as recertify_scores
from margrave.steer._steered import score_samples as score_samples
from margrave.steer._strategies import Request, StoppedError, Strategy
from margrave.steer._strategies import get_strategies as get_strategies
from margrave.steer._table_split import GroupsWarning
from margrave.steer._table_split import check_duplicates as check_duplicates
from margrave.steer._table_split import check_positive as check_positive
from margrave.steer._thresholds import SMALLEST_DIFFERENCE as SMALLEST_DIFFERENCE
from margrave.steer._thresholds import Decision as Decision
from margrave.steer._thresholds import Offsets as Offsets
from margrave.steer._thresholds import Threshold as Threshold
from margrave.steer._thresholds import best_threshold as best_threshold
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
    "ExpectedBound",
    "ExpectedCell",
    "ExpectedCertificate",
    "FileError",
    "FileLedger",
    "Frontier",
    "FrontierDisplay",
    "GroupsWarning",
    "Guarantee",
    "GuaranteeCheck",
    "GuaranteeError",
    "Ledger",
    "Progress",
    "Reply",
    "Request",
    "SplitError",
    "SplitOption",
    "SplitPlan",
    "SplitSizes",
    "SteeredClassifier",
    "StoppedError",
    "Strategy",
    "Use",
    "UselessWarning",
    "Winner",
    "default_members",
    "trusted_types",
]
