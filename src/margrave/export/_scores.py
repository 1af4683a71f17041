"""One score from what the members say, as ONNX operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from margrave._typing import Flags
from margrave.export._graph import ExportError, Graph, Tree
from margrave.fuse._log_odds import LogOddsCombination, OneVsRest
from margrave.fuse._scales import LineScale
from margrave.scores import NOISE
from margrave.select._region_scores import DECIMALS, Regions, RegionScores
from margrave.steer._scorer import _SURE, MeanScore, Scorer, SingleMember

See = Callable[[list[Any]], str]


def scores_of(graph: Graph, scorer: Scorer, raw: list[str], see: See) -> str:
    """Rounded scores, of shape (n, 1) for two classes, else (n, k).

    Parameters
    ----------
    graph : Graph
        Where to write them.
    scorer : Scorer
        What makes them.
    raw : list of str
        What each member says, of the same shape.
    see : callable
        Given columns, those of the samples.
    """
    scores = _combined(graph, scorer.combine, raw, len(scorer.committee.classes), see)
    return _rounded(graph, scores, scorer.decimals)


def _combined(graph: Graph, combine: Any, raw: list[str], k: int, see: See) -> str:
    """Scores of shape (n, 1) for two classes, else (n, k)."""
    if isinstance(combine, MeanScore):
        both = (_combined(graph, one, raw, k, see) for one in (combine.first, combine.second))
        return graph.add("Div", graph.add("Add", *both), 2.0)
    if isinstance(combine, SingleMember):
        if not combine.probability:
            return raw[0]
        p = graph.add("Div", graph.add("Add", raw[0], 1.0), 2.0)
        p = graph.clip(p, _SURE, 1 - _SURE)
        return graph.log_odds(p) if k == 2 else graph.add("Log", p)
    if isinstance(combine, LogOddsCombination):
        if k == 2:
            return _side(graph, combine.sides[0], graph.together(raw))
        return graph.together(
            [_side(graph, side, _of_class(graph, raw, c)) for c, side in enumerate(combine.sides)]
        )
    if isinstance(combine, RegionScores):
        return _selected(graph, combine, raw, k, see)
    raise ExportError(
        f"The scores cannot be written as ONNX: {type(combine).__name__} is not known there."
    )


def _of_class(graph: Graph, raw: list[str], c: int) -> str:
    """What the members say of one class, (n, K)."""
    return graph.together([graph.take(one, [c]) for one in raw])


def _side(graph: Graph, side: OneVsRest, raw: str) -> str:
    """The log-odds of one class, (n, 1), from what the members say of it, (n, K)."""
    rank = side.rank
    scaled = _scaled(graph, rank.scale, graph.add("Neg", raw) if side.flipped else raw)
    total = graph.product(scaled, rank.found.weights[:, None])
    ranked = graph.add("Mul", graph.add("Sub", total, float(rank.threshold)), float(rank.slope))
    if side.flipped:
        return graph.add("Neg", ranked)
    if side.coef is None:
        return ranked
    stacked = graph.line(scaled, side.coef[:, None], np.array([side.intercept]))
    return graph.add("Div", graph.add("Add", ranked, stacked), 2.0)


def _scaled(graph: Graph, scale: Any, raw: str) -> str:
    """The members' values on one scale, in [-1, 1]."""
    if not isinstance(scale, LineScale):
        raise ExportError(
            f"The scores cannot be written as ONNX: {type(scale).__name__} is not known there."
        )
    moved = graph.add("Sub", _unbounded(graph, scale.log_odds, raw), scale.centre)
    return graph.clip(graph.add("Mul", moved, scale.slope), -1.0, 1.0)


def _unbounded(graph: Graph, log_odds: Flags, raw: str) -> str:
    """Log-odds in place of probabilities."""
    p = graph.add("Div", graph.add("Add", raw, 1.0), 2.0)
    p = graph.add("Add", graph.add("Mul", p, 1 - 2 * NOISE), NOISE)
    return graph.add("Where", log_odds, graph.log_odds(p), raw)


def _selected(graph: Graph, combine: RegionScores, raw: list[str], k: int, see: See) -> str:
    """The log-odds of the member in charge of a sample's region."""
    region = graph.leaves(see(combine.leaves.columns), [_tree(combine.leaves)])
    who = graph.add("Gather", combine.charge.astype(np.int64), region)
    trust = graph.add("Gather", combine.trust, region)
    if k == 2:
        said = graph.together(raw)
        toward = graph.add("Greater", _rounded(graph, said, DECIMALS), 0.0)
        answer = graph.add("GatherElements", graph.integers(toward), who, axis=1)
    else:
        rounded = [_rounded(graph, one, DECIMALS) for one in raw]
        own = graph.together([graph.add("ArgMax", one, axis=1, keepdims=1) for one in rounded])
        answer = graph.add("GatherElements", own, who, axis=1)
    parts = []
    scale = graph.add("Gather", combine.scale, region)
    for c in range(combine.shift.shape[1]):
        values = graph.together(raw) if k == 2 else _of_class(graph, raw, c)
        values = graph.add("Div", _unbounded(graph, combine.log_odds, values), combine.size)
        told = graph.add("Mul", graph.add("GatherElements", values, who, axis=1), scale)
        mine = graph.add("Equal", answer, np.array(1 if k == 2 else c))
        told = graph.add("Add", told, graph.add("Where", mine, trust, graph.add("Neg", trust)))
        parts.append(graph.add("Add", told, graph.add("Gather", combine.shift[:, c], region)))
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


def _rounded(graph: Graph, scores: str, decimals: int) -> str:
    """As `numpy.round` does it."""
    power = 10.0 ** abs(decimals)
    there, back = ("Mul", "Div") if decimals >= 0 else ("Div", "Mul")
    return graph.add(back, graph.add("Round", graph.add(there, scores, power)), power)
