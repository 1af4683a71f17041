"""Scores: what the members of a committee say about some samples, computed once."""

from margrave.scores._scores import Scores

__all__ = ["Scores"]
