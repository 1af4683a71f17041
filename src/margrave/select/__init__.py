"""Selection: the right member for each place ("Multi-classifiers", slides on selection).

- :class:`LocalSelectionClassifier`: for each sample those members answer that are right at its
  nearest neighbours;
- :class:`RegionSelectionClassifier`: the space is parted into regions, with one member in charge of
  each;
- :class:`Oracle` and :class:`SingleBestClassifier`: what no selection can beat, and what each
  should.
"""

from margrave.select._explanations import LocalExplanation, RegionExplanation
from margrave.select._local import LocalSelectionClassifier
from margrave.select._references import Oracle, SingleBestClassifier
from margrave.select._regions import RegionSelectionClassifier

__all__ = [
    "LocalExplanation",
    "LocalSelectionClassifier",
    "Oracle",
    "RegionExplanation",
    "RegionSelectionClassifier",
    "SingleBestClassifier",
]
