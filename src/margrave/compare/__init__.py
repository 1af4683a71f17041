"""Compare: what an error is made of, and how methods differ.

=====================  ==========================================================================
`bias_variance`        splits an estimator's error into bias, variance and noise, by bootstrap
`BiasVariance`         what it returns
`BiasVarianceDisplay`  the same against a parameter, as a plot
=====================  ==========================================================================
"""

from margrave.compare._decomposition import BiasVariance, bias_variance
from margrave.compare._displays import BiasVarianceDisplay

__all__ = ["BiasVariance", "BiasVarianceDisplay", "bias_variance"]
