"""Selection: the competent members for each sample ("Multi-classifiers", slides on selection).

- :class:`LocalSelectionClassifier` selects members by their accuracy on the nearest neighbours of
  each sample;
- :class:`RegionSelectionClassifier` splits the space into regions, and selects one member for each;
- :class:`MixtureOfExpertsClassifier` averages the members' probabilities, with weights that a gate
  computes for each sample;
- :class:`SingleBestClassifier` and :class:`Oracle` are references: a selection should beat the
  first, and cannot beat the second.
"""

from margrave.select._local import LocalExplanation, LocalSelectionClassifier
from margrave.select._mixture import MixtureOfExpertsClassifier
from margrave.select._references import Oracle, SingleBestClassifier
from margrave.select._regions import RegionExplanation, RegionSelectionClassifier

__all__ = [
    "LocalExplanation",
    "LocalSelectionClassifier",
    "MixtureOfExpertsClassifier",
    "Oracle",
    "RegionExplanation",
    "RegionSelectionClassifier",
    "SingleBestClassifier",
]
