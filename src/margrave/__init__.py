"""Margrave: committees of classifiers, steered by the mistakes their user can afford."""

from margrave.confusion import Confusion
from margrave.preference import Preference
from margrave.scores import Scores

__version__ = "0.1.0"

__all__ = ["Confusion", "Preference", "Scores"]
