"""Maximal average margin: the Parzen classifier and ranker, with bounds on their errors.

======================  ==========================================================================
`MAMClassifier`         the direction with the largest average margin, its width by leave-one-out
`Certainty`             how far its predictions can be trusted, the result of its `certainty`
`SVMCertainty`          the same for a support vector machine
`MAMRanker`             the principle for an order: the largest average margin between pairs
`MAMOrdinalClassifier`  ordered classes, by thresholds on the ranker's score
`rank_transform`        the number of samples below each one, minus the number above
`kernel_sum`            sums of a kernel over many samples, from which all of this is computed
======================  ==========================================================================
"""

from margrave.mam._certainty import Certainty
from margrave.mam._classifier import ClassTotals as ClassTotals
from margrave.mam._classifier import MAMClassifier
from margrave.mam._classifier import Reservoir as Reservoir
from margrave.mam._classifier import check_classes as check_classes
from margrave.mam._classifier import check_classifier as check_classifier
from margrave.mam._classifier import check_weighted_classes as check_weighted_classes
from margrave.mam._classifier import class_factors as class_factors
from margrave.mam._classifier import classifier_for_prediction as classifier_for_prediction
from margrave.mam._classifier import fit_from_totals as fit_from_totals
from margrave.mam._classifier import select_class_features as select_class_features
from margrave.mam._features import FeatureSelection as FeatureSelection
from margrave.mam._features import RandomFeatures as RandomFeatures
from margrave.mam._features import feature_sums as feature_sums
from margrave.mam._kernels import Kernel as Kernel
from margrave.mam._ordinal import MAMOrdinalClassifier
from margrave.mam._parameters import candidates_around as candidates_around
from margrave.mam._parameters import gamma_from_variance as gamma_from_variance
from margrave.mam._ranker import MAMRanker, rank_transform
from margrave.mam._ranker import RankTotals as RankTotals
from margrave.mam._ranker import check_different as check_different
from margrave.mam._ranker import check_ranker as check_ranker
from margrave.mam._ranker import check_responses as check_responses
from margrave.mam._ranker import fit_from_rank_totals as fit_from_rank_totals
from margrave.mam._ranker import ranker_for_prediction as ranker_for_prediction
from margrave.mam._ranker import select_rank_features as select_rank_features
from margrave.mam._sums import kernel_sum
from margrave.mam._svm import SVMCertainty
from margrave.mam._threads import single_thread as single_thread

# Names imported with "as" are for the other packages of Margrave.
__all__ = [
    "Certainty",
    "MAMClassifier",
    "MAMOrdinalClassifier",
    "MAMRanker",
    "SVMCertainty",
    "kernel_sum",
    "rank_transform",
]
