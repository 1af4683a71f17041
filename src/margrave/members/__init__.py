"""Classifiers for a committee that scikit-learn does not have.

============================  ====================================================================
`SmoothedBaggingClassifier`   bagging with Gaussian noise added to the bootstrap samples
`VariedTreesClassifier`       trees on bootstrap samples, with parameters drawn at random
`RankBoostClassifier`         thresholds boosted to rank positives above negatives
`Ranker`                      a threshold of `RankBoostClassifier`
`RealAdaBoostClassifier`      boosted trees whose leaves vote with their confidence
`ModestAdaBoostClassifier`    boosted trees, weaker where earlier trees are right
`make_logistic_quantile`      logistic regression on quantiles of the features
============================  ====================================================================

Every other classifier of the source papers is an estimator of scikit-learn, XGBoost, LightGBM or
CatBoost; :mod:`margrave.catalogue` makes all of them by name.
"""

# Names imported with 'as' are for the other packages of Margrave.
from margrave.members._encoded_labels import EncodedLabelsClassifier as EncodedLabelsClassifier
from margrave.members._logistic_quantile import make_logistic_quantile
from margrave.members._modest_adaboost import ModestAdaBoostClassifier
from margrave.members._rankboost import RankBoostClassifier, Ranker
from margrave.members._real_adaboost import RealAdaBoostClassifier
from margrave.members._smoothed_bagging import SmoothedBaggingClassifier
from margrave.members._varied_trees import VariedTreesClassifier

__all__ = [
    "ModestAdaBoostClassifier",
    "RankBoostClassifier",
    "Ranker",
    "RealAdaBoostClassifier",
    "SmoothedBaggingClassifier",
    "VariedTreesClassifier",
    "make_logistic_quantile",
]
