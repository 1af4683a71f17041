"""Logistic regression that does not depend on monotone transformations of the features."""

from __future__ import annotations

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import QuantileTransformer


def make_logistic_quantile(
    n_quantiles: int = 200, C: float = 0.3, max_iter: int = 1000
) -> Pipeline:
    """Make a pipeline that maps each feature to a normal distribution and fits a regression.

    Parameters
    ----------
    n_quantiles : int, default=200
        Quantiles of each feature to estimate; at most the number of samples.
    C : float, default=0.3
        Inverse of the strength of the regularisation.
    max_iter : int, default=1000
        Largest number of iterations of the solver.

    Returns
    -------
    Pipeline
        Not fitted.

    Examples
    --------
    >>> from margrave.members import make_logistic_quantile
    >>> make_logistic_quantile(n_quantiles=50).steps[-1][1].C
    0.3
    """
    quantiles = QuantileTransformer(
        n_quantiles=n_quantiles, output_distribution="normal", random_state=0
    )
    return make_pipeline(quantiles, LogisticRegression(C=C, max_iter=max_iter))
