"""Fusion: one answer from many.

- :class:`VoteClassifier`: unanimity, majority and plurality votes, weighted, with a reject option
  ("Multi-classifiers");
- :class:`BayesOptimalClassifier`: members weighed by how well they explain unseen data ("Survey of
  Ensemble Classifiers", section 6);
- :class:`RankMarginClassifier` and :func:`rank_margin_weights`: members weighed so that positives
  are ranked above negatives with the largest margin ("A Linear Combination of Classifiers via Rank
  Margin Maximization").
"""

from margrave.fuse._bayes import BayesOptimalClassifier
from margrave.fuse._log_odds import LogOddsCombination as LogOddsCombination
from margrave.fuse._log_odds import OneVsRest as OneVsRest
from margrave.fuse._log_odds import fit_focused_log_odds as fit_focused_log_odds
from margrave.fuse._log_odds import fit_log_odds as fit_log_odds
from margrave.fuse._rank_margin import RankMarginClassifier
from margrave.fuse._rank_problem import RankMarginWeights
from margrave.fuse._rank_weights import rank_margin_weights
from margrave.fuse._rules import VoteExplanation
from margrave.fuse._scales import LineScale as LineScale
from margrave.fuse._vote import VoteClassifier

# Names imported with "as" are for the other packages of Margrave.
__all__ = [
    "BayesOptimalClassifier",
    "RankMarginClassifier",
    "RankMarginWeights",
    "VoteClassifier",
    "VoteExplanation",
    "rank_margin_weights",
]
