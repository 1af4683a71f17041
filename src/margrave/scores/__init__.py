"""Predictions of fitted classifiers, computed once and brought onto one scale.

`Scores` is public; the other names are for the other packages of Margrave.
"""

from margrave.scores._log_odds import NOISE as NOISE
from margrave.scores._log_odds import replace_by_log_odds as replace_by_log_odds
from margrave.scores._predictions import Ask as Ask
from margrave.scores._scores import Scores
from margrave.scores._scores import each_proba as each_proba

__all__ = ["Scores"]
