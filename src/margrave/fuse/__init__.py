"""Fusion: one answer from many.

- :class:`VoteClassifier`: unanimity, majority and plurality votes, weighted, with a reject option
  ("Multi-classifiers");
- :class:`BayesOptimalClassifier`: members weighed by how well they explain unseen data ("Survey of
  Ensemble Classifiers", section 6).
"""

from margrave.fuse._bayes import BayesOptimalClassifier
from margrave.fuse._rank_weights import RankMarginWeights, rank_margin_weights
from margrave.fuse._rules import VoteExplanation
from margrave.fuse._vote import VoteClassifier

__all__ = [
    "BayesOptimalClassifier",
    "RankMarginWeights",
    "VoteClassifier",
    "VoteExplanation",
    "rank_margin_weights",
]
