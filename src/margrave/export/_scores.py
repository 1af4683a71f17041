"""The combination of the members' values into scores, as ONNX operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrave._typing import Flags
from margrave.export._graph import ExportError, Graph
from margrave.fuse import LinearScale, LogOddsCombination, OneVsRest
from margrave.scores import NOISE
from margrave.steer import SMALLEST_PROBABILITY, MeanScore, Scorer, SingleMember


def convert_scores(graph: Graph, scorer: Scorer, raw: list[str]) -> str:
    """Add a scorer and return its rounded scores, of shape (n, 1) for two classes, else (n, k).

    Parameters
    ----------
    graph : Graph
        The graph to extend.
    scorer : Scorer
        The scorer to convert.
    raw : list of str
        The values of each member, of the same shape as the scores.

    Returns
    -------
    str
    """
    scores = _combine(graph, scorer.combine, raw, len(scorer.committee.classes))
    return _round(graph, scores, scorer.decimals)


def _combine(graph: Graph, combine: Any, raw: list[str], k: int) -> str:
    """Return scores of shape (n, 1) for two classes, else (n, k)."""
    if isinstance(combine, MeanScore):
        parts = (combine.first, combine.second)
        total = graph.add("Add", *(_combine(graph, part, raw, k) for part in parts))
        return graph.add("Div", total, 2.0)
    if isinstance(combine, SingleMember):
        if not combine.probability:
            return raw[0]
        p = graph.add("Div", graph.add("Add", raw[0], 1.0), 2.0)
        p = graph.clip(p, SMALLEST_PROBABILITY, 1 - SMALLEST_PROBABILITY)
        return graph.log_odds(p) if k == 2 else graph.add("Log", p)
    if isinstance(combine, LogOddsCombination):
        if k == 2:
            return _one_vs_rest(graph, combine.sides[0], graph.together(raw))
        return graph.together(
            [
                _one_vs_rest(graph, side, _values_of_class(graph, raw, c))
                for c, side in enumerate(combine.sides)
            ]
        )
    raise ExportError(
        f"The scores cannot be written as ONNX: {type(combine).__name__} is not supported."
    )


def _values_of_class(graph: Graph, raw: list[str], c: int) -> str:
    """Return the members' values of one class, (n, K)."""
    return graph.together([graph.take(values, [c]) for values in raw])


def _one_vs_rest(graph: Graph, side: OneVsRest, raw: str) -> str:
    """Return the log-odds of one class, (n, 1), from the members' values of it, (n, K)."""
    scaled = _scale(graph, side.scale, raw)
    return graph.line(scaled, side.coef[:, None], np.array([side.intercept]))


def _scale(graph: Graph, scale: Any, raw: str) -> str:
    """Return the members' values on one scale, in [-1, 1]."""
    if not isinstance(scale, LinearScale):
        raise ExportError(
            f"The scores cannot be written as ONNX: {type(scale).__name__} is not supported."
        )
    centred = graph.add("Sub", _replace_by_log_odds(graph, scale.log_odds, raw), scale.centre)
    return graph.clip(graph.add("Mul", centred, scale.slope), -1.0, 1.0)


def _replace_by_log_odds(graph: Graph, log_odds: Flags, raw: str) -> str:
    """Return raw values with log-odds in place of probabilities."""
    p = graph.add("Div", graph.add("Add", raw, 1.0), 2.0)
    p = graph.add("Add", graph.add("Mul", p, 1 - 2 * NOISE), NOISE)
    return graph.add("Where", log_odds, graph.log_odds(p), raw)


def _round(graph: Graph, scores: str, decimals: int) -> str:
    """Round as `numpy.round` does."""
    power = 10.0 ** abs(decimals)
    scale, unscale = ("Mul", "Div") if decimals >= 0 else ("Div", "Mul")
    return graph.add(unscale, graph.add("Round", graph.add(scale, scores, power)), power)
