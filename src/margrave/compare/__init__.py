"""Compare: what an error is made of, and how methods differ.

=====================  ==========================================================================
`bias_variance`        splits an estimator's error into bias, variance and noise, by bootstrap
`BiasVariance`         what it returns
`PointTerms`           the same at each test point
`BiasVarianceDisplay`  the same against a parameter, as a plot
=====================  ==========================================================================
"""

from margrave.compare._decomposition import BiasVariance, bias_variance
from margrave.compare._displays import BiasVarianceDisplay
from margrave.compare._terms import PointTerms

__all__ = ["BiasVariance", "BiasVarianceDisplay", "PointTerms", "bias_variance"]
