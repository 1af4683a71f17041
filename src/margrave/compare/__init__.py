"""Comparison of methods: statistical tests, decompositions of the error, and displays.

===========================  ====================================================================
`bias_variance`              decomposes an estimator's error into bias, variance and noise
`BiasVariance`               the result: the mean of each term
`PointTerms`                 the terms at each test point
`BiasVarianceDisplay`        plots the terms against a parameter
`BoostingDisplay`            plots the errors of a boosted classifier against its rounds
`friedman_holm`              tests whether methods differ, and which differ from a control
`FriedmanHolm`               the result: statistics, mean ranks and p-values
`CriticalDifferenceDisplay`  plots the mean ranks
`RankMarginDisplay`          plots the distributions of the rank margins of methods
`CertaintyDisplay`           plots a classifier over two features, with lines of certainty
`RegionDisplay`              plots the members that a selection chooses over two features
`MartingaleDisplay`          plots a martingale program
===========================  ====================================================================
"""

from margrave.compare._bias_variance import BiasVariance, PointTerms, bias_variance
from margrave.compare._bias_variance_display import BiasVarianceDisplay
from margrave.compare._boosting_display import BoostingDisplay
from margrave.compare._certainty_display import CertaintyDisplay
from margrave.compare._critical_difference_display import CriticalDifferenceDisplay
from margrave.compare._friedman_holm import FriedmanHolm, friedman_holm
from margrave.compare._martingale_display import MartingaleDisplay
from margrave.compare._rank_margin_display import RankMarginDisplay
from margrave.compare._region_display import RegionDisplay

__all__ = [
    "BiasVariance",
    "BiasVarianceDisplay",
    "BoostingDisplay",
    "CertaintyDisplay",
    "CriticalDifferenceDisplay",
    "FriedmanHolm",
    "MartingaleDisplay",
    "PointTerms",
    "RankMarginDisplay",
    "RegionDisplay",
    "bias_variance",
    "friedman_holm",
]
