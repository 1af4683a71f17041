"""Compare: what an error is made of, and how methods differ.

===========================  ====================================================================
`bias_variance`              splits an estimator's error into bias, variance and noise
`BiasVariance`               what it returns
`PointTerms`                 the same at each test point
`BiasVarianceDisplay`        the same against a parameter, as a plot
`CertaintyDisplay`           a classifier over two features, with lines of certainty
`friedman_holm`              tests whether methods differ, and which from a control
`FriedmanHolm`               what it returns
`CriticalDifferenceDisplay`  the same as a plot of mean ranks
`MartingaleDisplay`          a martingale program, as a picture
`RankMarginDisplay`          distributions of the rank margins of methods, as a plot
`RegionDisplay`              who is in charge where, in a selection, as a plot
===========================  ====================================================================
"""

from margrave.compare._certainty_display import CertaintyDisplay
from margrave.compare._decomposition import BiasVariance, bias_variance
from margrave.compare._difference_display import CriticalDifferenceDisplay
from margrave.compare._displays import BiasVarianceDisplay
from margrave.compare._margin_display import RankMarginDisplay
from margrave.compare._program_display import MartingaleDisplay
from margrave.compare._region_display import RegionDisplay
from margrave.compare._terms import PointTerms
from margrave.compare._tests import FriedmanHolm, friedman_holm

__all__ = [
    "BiasVariance",
    "BiasVarianceDisplay",
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
