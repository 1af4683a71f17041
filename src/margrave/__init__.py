"""Margrave: committees of classifiers, steered by the mistakes their user can afford."""

__version__ = "0.1.0"
