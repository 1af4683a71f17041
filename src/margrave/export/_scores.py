"""The combination of the members' values into scores, as ONNX operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from margrave._typing import Flags
from margrave.export._graph import ExportError, Graph, Tree
from margrave.fuse import LineScale, LogOddsCombination, OneVsRest
from margrave.scores import NOISE
from margrave.select import DECIMALS, Regions, RegionScores
from margrave.steer._scorer import _SURE, MeanScore, Scorer, SingleMember

SelectColumns = Callable[[list[Any]], str]


def convert_scores(graph: Graph, scorer: Scorer, raw: list[str], select: SelectColumns) -> str:
    """Add a scorer and return its rounded scores, of shape (n, 1) for two classes, else (n, k).

    Parameters
    ----------
    graph : Graph
        The graph to extend.
    scorer : Scorer
        The scorer to convert.
    raw : list of str
        The values of each member, of the same shape as the scores.
    select : callable
        Returns the samples, reduced to a list of columns.

    Returns
    -------
    str
    """
    scores = _combine(graph, scorer.combine, raw, len(scorer.committee.classes), select)
    return _round(graph, scores, scorer.decimals)


def _combine(graph: Graph, combine: Any, raw: list[str], k: int, select: SelectColumns) -> str:
    """Return scores of shape (n, 1) for two classes, else (n, k)."""
    if isinstance(combine, MeanScore):
        parts = (combine.first, combine.second)
        total = graph.add("Add", *(_combine(graph, part, raw, k, select) for part in parts))
        return graph.add("Div", total, 2.0)
    if isinstance(combine, SingleMember):
        if not combine.probability:
            return raw[0]
        p = graph.add("Div", graph.add("Add", raw[0], 1.0), 2.0)
        p = graph.clip(p, _SURE, 1 - _SURE)
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
    if isinstance(combine, RegionScores):
        return _score_by_region(graph, combine, raw, k, select)
    raise ExportError(
        f"The scores cannot be written as ONNX: {type(combine).__name__} is not supported."
    )


def _values_of_class(graph: Graph, raw: list[str], c: int) -> str:
    """Return the members' values of one class, (n, K)."""
    return graph.together([graph.take(values, [c]) for values in raw])


def _one_vs_rest(graph: Graph, side: OneVsRest, raw: str) -> str:
    """Return the log-odds of one class, (n, 1), from the members' values of it, (n, K)."""
    rank = side.rank
    scaled = _scale(graph, rank.scale, graph.add("Neg", raw) if side.flipped else raw)
    total = graph.product(scaled, rank.found.weights[:, None])
    ranked = graph.add("Mul", graph.add("Sub", total, float(rank.threshold)), float(rank.slope))
    if side.flipped:
        return graph.add("Neg", ranked)
    if side.coef is None:
        return ranked
    stacked = graph.line(scaled, side.coef[:, None], np.array([side.intercept]))
    return graph.add("Div", graph.add("Add", ranked, stacked), 2.0)


def _scale(graph: Graph, scale: Any, raw: str) -> str:
    """Return the members' values on one scale, in [-1, 1]."""
    if not isinstance(scale, LineScale):
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


def _score_by_region(
    graph: Graph, combine: RegionScores, raw: list[str], k: int, select: SelectColumns
) -> str:
    """Return the log-odds of the member selected in each sample's region."""
    region = graph.leaves(select(combine.leaves.columns), [_tree(combine.leaves)])
    member = graph.add("Gather", combine.charge.astype(np.int64), region)
    trust = graph.add("Gather", combine.trust, region)
    if k == 2:
        second = graph.add("Greater", _round(graph, graph.together(raw), DECIMALS), 0.0)
        codes = graph.integers(second)
    else:
        rounded = [_round(graph, values, DECIMALS) for values in raw]
        codes = graph.together([graph.add("ArgMax", r, axis=1, keepdims=1) for r in rounded])
    predicted = graph.add("GatherElements", codes, member, axis=1)
    parts = []
    scale = graph.add("Gather", combine.scale, region)
    for c in range(combine.shift.shape[1]):
        values = graph.together(raw) if k == 2 else _values_of_class(graph, raw, c)
        values = _replace_by_log_odds(graph, combine.log_odds, values)
        values = graph.add("Div", values, combine.size)
        odds = graph.add("Mul", graph.add("GatherElements", values, member, axis=1), scale)
        toward = graph.add("Equal", predicted, np.array(1 if k == 2 else c))
        odds = graph.add("Add", odds, graph.add("Where", toward, trust, graph.add("Neg", trust)))
        parts.append(graph.add("Add", odds, graph.add("Gather", combine.shift[:, c], region)))
    return graph.together(parts)


def _tree(leaves: Regions) -> Tree:
    return Tree(
        feature=leaves.feature,
        threshold=leaves.threshold,
        left=leaves.left,
        right=leaves.right,
        missing_left=np.zeros(len(leaves.feature), dtype=bool),
        is_leaf=leaves.is_leaf,
    )


def _round(graph: Graph, scores: str, decimals: int) -> str:
    """Round as `numpy.round` does."""
    power = 10.0 ** abs(decimals)
    scale, unscale = ("Mul", "Div") if decimals >= 0 else ("Div", "Mul")
    return graph.add(unscale, graph.add("Round", graph.add(scale, scores, power)), power)
