"""Maximal average margin: the Parzen classifier and ranker, and how far to trust them.

======================  ==========================================================================
`MAMClassifier`         the direction of the largest average margin, its width by leave-one-out
`Certainty`             how far to trust its predictions, as its `certainty` returns it
`MAMRanker`             the same for an order: the largest average margin between pairs
`MAMOrdinalClassifier`  classes that have an order, by thresholds on the ranker's score
`RankRidgeRanker`       the document's rival of the ranker: kernel ridge regression on ranks
`rank_transform`        how many samples are below each one, less how many are above
`kernel_sum`            sums of a kernel over many samples, which all of this is made of
======================  ==========================================================================
"""

from margrave.mam._certainty import Certainty
from margrave.mam._classifier import MAMClassifier
from margrave.mam._ordinal import MAMOrdinalClassifier
from margrave.mam._rank_ridge import RankRidgeRanker
from margrave.mam._ranker import MAMRanker
from margrave.mam._ranks import rank_transform
from margrave.mam._sums import kernel_sum

__all__ = [
    "Certainty",
    "MAMClassifier",
    "MAMOrdinalClassifier",
    "MAMRanker",
    "RankRidgeRanker",
    "kernel_sum",
    "rank_transform",
]
