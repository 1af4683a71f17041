"""Members: ways to get a committee that scikit-learn does not have.

============================  ====================================================================
`SmoothedBaggingClassifier`   bagging whose resamples get Gaussian noise: the smoothed bootstrap
`RankBoostClassifier`         thresholds boosted to order the pairs of a positive and a negative
`Ranker`                      one of its thresholds
`ModestAdaBoostClassifier`    boosted trees that hold back where they are right anyway
`make_logistic_quantile`      logistic regression on quantiles of the features
============================  ====================================================================

Every other method of the documents is a scikit-learn, XGBoost, LightGBM or CatBoost estimator;
:mod:`margrave.catalogue` makes each of them, and those above, by name.
"""

from margrave.members._logistic_quantile import make_logistic_quantile
from margrave.members._modest import ModestAdaBoostClassifier
from margrave.members._rankboost import RankBoostClassifier, Ranker
from margrave.members._smoothed import SmoothedBaggingClassifier

__all__ = [
    "ModestAdaBoostClassifier",
    "RankBoostClassifier",
    "Ranker",
    "SmoothedBaggingClassifier",
    "make_logistic_quantile",
]
