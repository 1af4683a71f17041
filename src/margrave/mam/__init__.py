"""Maximal average margin: the Parzen classifier and ranker, and how far to trust them.

==========================  ======================================================================
`MAMClassifier`             the direction of the largest average margin, width by leave-one-out
`kernel_sum`                sums of a kernel over many samples, which all of this is made of
`Certainty`                 what `MAMClassifier.certainty` returns
==========================  ======================================================================
"""

from margrave.mam._certainty import Certainty
from margrave.mam._classifier import MAMClassifier
from margrave.mam._sums import kernel_sum

__all__ = ["Certainty", "MAMClassifier", "kernel_sum"]
