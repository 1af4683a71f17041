"""Combination of classifiers: one prediction from many.

- :class:`VoteClassifier`: unanimity, majority and plurality votes, weighted, with a reject option
  (Multi-classifiers);
- :class:`BayesOptimalClassifier`: members weighted by their posterior probability (Nair, 2015);
- :class:`RankMarginClassifier` and :func:`rank_margin_weights`: members weighted so that positives
  are ranked above negatives with the largest margin (Marrocco et al., 2010).
"""

from margrave.fuse._bayes import BayesOptimalClassifier
from margrave.fuse._log_odds import LogOddsCombination as LogOddsCombination
from margrave.fuse._log_odds import OneVsRest as OneVsRest
from margrave.fuse._log_odds import fit_log_odds as fit_log_odds
from margrave.fuse._rank_margin import Combination as Combination
from margrave.fuse._rank_margin import CombinationSettings as CombinationSettings
from margrave.fuse._rank_margin import RankMarginClassifier
from margrave.fuse._rank_margin import TuningSet as TuningSet
from margrave.fuse._rank_margin import check_class_weights as check_class_weights
from margrave.fuse._rank_margin import check_several_classes as check_several_classes
from margrave.fuse._rank_margin import choose_nu as choose_nu
from margrave.fuse._rank_margin import choose_tol as choose_tol
from margrave.fuse._rank_margin import find_positive_code as find_positive_code
from margrave.fuse._rank_margin import fit_sigmoid as fit_sigmoid
from margrave.fuse._rank_margin import fitted_members as fitted_members
from margrave.fuse._rank_margin import members_above_chance as members_above_chance
from margrave.fuse._rank_margin import store_combinations as store_combinations
from margrave.fuse._rank_margin import use_prefit_members as use_prefit_members
from margrave.fuse._rank_margin import values_by_class as values_by_class
from margrave.fuse._rank_weights import ROUNDING as ROUNDING
from margrave.fuse._rank_weights import SAME as SAME
from margrave.fuse._rank_weights import SHOWN_PAIRS as SHOWN_PAIRS
from margrave.fuse._rank_weights import ActivePairs as ActivePairs
from margrave.fuse._rank_weights import MarginSettings as MarginSettings
from margrave.fuse._rank_weights import RankMarginWeights, rank_margin_weights
from margrave.fuse._rank_weights import ScoreRange as ScoreRange
from margrave.fuse._rank_weights import check_both_classes as check_both_classes
from margrave.fuse._rank_weights import check_constant_members as check_constant_members
from margrave.fuse._rank_weights import check_in_range as check_in_range
from margrave.fuse._rank_weights import check_table as check_table
from margrave.fuse._rank_weights import find_positive as find_positive
from margrave.fuse._rank_weights import maximize_margin as maximize_margin
from margrave.fuse._rank_weights import smallest as smallest
from margrave.fuse._rank_weights import warn_not_converged as warn_not_converged
from margrave.fuse._rank_weights import worst_pairs as worst_pairs
from margrave.fuse._scales import LinearScale as LinearScale
from margrave.fuse._scales import RankScale as RankScale
from margrave.fuse._scales import logit_scale as logit_scale
from margrave.fuse._scales import range_scale as range_scale
from margrave.fuse._solvers import LEVEL as LEVEL
from margrave.fuse._solvers import Extremes as Extremes
from margrave.fuse._tail import keep_hardest as keep_hardest
from margrave.fuse._tail import tail_of_bins as tail_of_bins
from margrave.fuse._vote import VoteClassifier, VoteExplanation

# Names imported with "as" are for the other packages of Margrave.
__all__ = [
    "BayesOptimalClassifier",
    "RankMarginClassifier",
    "RankMarginWeights",
    "VoteClassifier",
    "VoteExplanation",
    "rank_margin_weights",
]
