"""Members: ways to get a committee that scikit-learn does not have.

============================  ====================================================================
`SmoothedBaggingClassifier`   bagging whose resamples get Gaussian noise: the smoothed bootstrap
============================  ====================================================================

Every other method of the documents is a scikit-learn, XGBoost, LightGBM or CatBoost estimator;
:mod:`margrave.catalogue` makes each of them, and the one above, by name.
"""

from margrave.members._smoothed import SmoothedBaggingClassifier

__all__ = ["SmoothedBaggingClassifier"]
