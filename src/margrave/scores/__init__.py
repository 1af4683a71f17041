"""What trained classifiers predict for some samples, computed once and brought onto one scale."""

from margrave.scores._scores import Scores

# For the other packages of Margrave.
from margrave.scores._log_odds import NOISE as NOISE  # isort: skip
from margrave.scores._log_odds import replace_by_log_odds as replace_by_log_odds  # isort: skip
from margrave.scores._predictions import Ask as Ask  # isort: skip

__all__ = ["Scores"]
