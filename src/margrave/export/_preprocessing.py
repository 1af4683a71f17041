"""Preprocessing as ONNX operators, in double precision.

Converts the table encoder for numbers and categories, the standard scaler and the quantile
transformer. Each step does the arithmetic of the original in the same order, so that results agree
to the last bits.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from margrave._typing import Floats, Ints
from margrave.export._graph import ExportError, Graph, Tree
from margrave.table import (
    LARGEST_NUMBER,
    LARGEST_SCALED,
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
    TableEncoder,
)

# As in scikit-learn: values closer than this to the first or last quantile are equal to it.
_BOUND = 1e-7


# Tables


def encode_table(graph: Graph, encoder: TableEncoder, x: str | None) -> str:
    """Add a table encoder and return the encoded matrix.

    Parameters
    ----------
    graph : Graph
        The graph to extend.
    encoder : TableEncoder
        The fitted encoder.
    x : str or None
        The array; None for a table, whose columns are separate inputs.

    Returns
    -------
    str

    Raises
    ------
    ExportError
        If a column holds neither numbers nor categories.
    """
    parts = []
    for columns in encoder.encoders_:
        if isinstance(columns, CategoryEncoder):
            parts += _encode_categories(graph, columns)
        elif isinstance(columns, NumberEncoder):
            values = x if x is not None else join_numbers(graph, columns.names)
            parts += _encode_numbers(graph, columns, values)
        else:
            kind = "dates" if isinstance(columns, DateEncoder) else "texts"
            raise ExportError(
                f"The column {columns.names[0]!r} cannot be written as ONNX: it holds {kind}, and "
                "only numbers and categories are supported."
            )
    return graph.together(parts)


def join_numbers(graph: Graph, names: list[str]) -> str:
    """Join columns of numbers, each an input, to a matrix."""
    return graph.together([graph.input(name, "number") for name in names])


def _encode_numbers(graph: Graph, encoder: NumberEncoder, x: str) -> list[str]:
    """Return standardised numbers, and a 0/1 column for each that had missing values."""
    largest = float(np.finfo(np.float64).max)
    known = graph.add("LessOrEqual", graph.add("Abs", x), largest)  # false for NaN
    filled = graph.add("Where", known, x, encoder.scaled_.medians_)
    scaled = scaler(
        graph, encoder.scaled_.scaler_, graph.clip(filled, -LARGEST_NUMBER, LARGEST_NUMBER)
    )
    parts = [graph.clip(scaled, -LARGEST_SCALED, LARGEST_SCALED)]
    if len(encoder.gaps_):
        parts.append(graph.doubles(graph.add("Not", graph.take(known, encoder.gaps_))))
    return parts


def _encode_categories(graph: Graph, encoder: CategoryEncoder) -> list[str]:
    """Return a 0/1 column for each frequent value, and one for the others."""
    parts, one_hot = [], encoder.one_hot_
    columns = zip(encoder.names, one_hot.categories_, one_hot.infrequent_categories_, strict=True)
    for name, levels, rare in columns:
        others = set() if rare is None else set(rare)
        frequent = [level for level in levels if level not in others]
        codes = {level: code for code, level in enumerate(frequent)}
        unknown = len(frequent)  # the column of the others, or a row of zeros
        codes.update(dict.fromkeys(others, unknown))
        codes[""] = codes.get("missing", unknown)
        code = graph.add(
            "LabelEncoder",
            graph.flat(graph.input(name, "category")),
            domain="ai.onnx.ml",
            keys_strings=list(codes),
            values_int64s=list(codes.values()),
            default_int64=unknown,
        )
        rows = np.eye(unknown + 1)[:, : unknown + bool(others)]
        parts.append(graph.add("Gather", rows, code))
    return parts


# Transformers


def scaler(graph: Graph, model: StandardScaler, x: str) -> str:
    """Standardise columns."""
    if model.with_mean:
        x = graph.add("Sub", x, model.mean_)
    return graph.add("Div", x, model.scale_) if model.with_std else x


def quantiles(graph: Graph, model: QuantileTransformer, x: str) -> str:
    """Return the fraction of training samples below each value, or its normal quantile."""
    knots, fractions = model.quantiles_, model.references_
    up = _interpolate(graph, x, knots, fractions)
    down = _interpolate(graph, graph.add("Neg", x), -knots[::-1], -fractions[::-1])
    fraction = graph.add("Mul", graph.add("Sub", up, down), 0.5)
    if model.output_distribution == "normal":
        first = graph.add("Less", graph.add("Sub", x, _BOUND), knots[0])
        last = graph.add("Greater", graph.add("Add", x, _BOUND), knots[-1])
    else:
        first, last = graph.add("Equal", x, knots[0]), graph.add("Equal", x, knots[-1])
    fraction = graph.add("Where", first, 0.0, graph.add("Where", last, 1.0, fraction))
    return _normal_quantile(graph, fraction) if model.output_distribution == "normal" else fraction


def _interpolate(graph: Graph, x: str, knots: Floats, fractions: Floats) -> str:
    """Evaluate each column's piecewise linear function, as `numpy.interp` does.

    A tree over the knots finds the piece: the number of its leaf is the number of knots that are
    not above the value.
    """
    n, width = knots.shape
    order, left, right = _bisection(n)
    none, leaf = np.zeros(n + 1, dtype=np.int64), np.arange(2 * n + 1) >= n
    trees = [
        Tree(
            feature=np.full(2 * n + 1, j),
            threshold=np.append(knots[order, j], np.zeros(n + 1)),
            left=np.append(left, none),
            right=np.append(right, none),
            missing_left=np.zeros(2 * n + 1, dtype=np.int64),
            is_leaf=leaf,
        )
        for j in range(width)
    ]
    piece = graph.leaves(x, trees, strict=True)
    steps, rises = np.diff(knots, axis=0), np.diff(fractions)[:, None]
    slopes = np.divide(rises, steps, out=np.zeros_like(steps), where=steps > 0)
    flat = np.zeros((1, width))
    tables = (
        np.vstack([flat, slopes, flat]),
        np.vstack([knots[:1], knots]),
        np.tile(np.append(fractions[0], fractions)[:, None], (1, width)),
    )
    slope, begin, height = (graph.add("Gather", table.T.ravel(), piece) for table in tables)
    return graph.add("Add", graph.add("Mul", slope, graph.add("Sub", x, begin)), height)


def _bisection(n: int) -> tuple[Ints, Ints, Ints]:
    """Return the knot of each node of a bisection tree over n sorted knots, and its children.

    The leaves are numbered after the n nodes.
    """
    nodes: list[list[int]] = []

    def grow(low: int, high: int) -> int:
        if low == high:
            return n + low
        middle = (low + high) // 2
        node = [middle]
        nodes.append(node)
        at = len(nodes) - 1
        node += [grow(low, middle), grow(middle + 1, high)]
        return at

    grow(0, n)
    order, left, right = np.array(nodes, dtype=np.int64).T
    return order, left, right


# Rational functions for the quantiles of the normal distribution, from the Cephes library (ndtri),
# which SciPy uses too: for the middle, and for the tails down to e^-32.
_MIDDLE = (
    (
        -5.99633501014107895267e1,
        9.80010754185999661536e1,
        -5.66762857469070293439e1,
        1.39312609387279679503e1,
        -1.23916583867381258016e0,
    ),
    (
        1.0,
        1.95448858338141759834e0,
        4.67627912898881538453e0,
        8.63602421390890590575e1,
        -2.25462687854119370527e2,
        2.00260212380060660359e2,
        -8.20372256168333339912e1,
        1.59056225126211695515e1,
        -1.18331621121330003142e0,
    ),
)
_TAIL = (
    (
        4.05544892305962419923e0,
        3.15251094599893866154e1,
        5.71628192246421288162e1,
        4.40805073893200834700e1,
        1.46849561928858024014e1,
        2.18663306850790267539e0,
        -1.40256079171354495875e-1,
        -3.50424626827848203418e-2,
        -8.57456785154685413611e-4,
    ),
    (
        1.0,
        1.57799883256466749731e1,
        4.53907635128879210584e1,
        4.13172038254672030440e1,
        1.50425385692907503408e1,
        2.50464946208309415979e0,
        -1.42182922854787788574e-1,
        -3.80806407691578277194e-2,
        -9.33259480895457427372e-4,
    ),
)


def _normal_quantile(graph: Graph, fraction: str) -> str:
    """Return quantiles of the normal distribution, clipped to those of 1e-7 and 1 - 1e-7."""
    low = _BOUND - float(np.spacing(1))
    y = graph.clip(fraction, low, 1 - low)
    centred = graph.add("Sub", y, 0.5)
    square = graph.add("Mul", centred, centred)
    ratio = graph.add("Div", *(graph.polynomial(square, terms) for terms in _MIDDLE))
    correction = graph.add("Mul", centred, graph.add("Mul", square, ratio))
    middle = graph.add("Mul", graph.add("Add", centred, correction), float(np.sqrt(2 * np.pi)))
    upper = graph.add("Greater", y, 0.5)
    rest = graph.add("Where", upper, graph.add("Sub", 1.0, y), y)
    x = graph.add("Sqrt", graph.add("Mul", graph.add("Log", rest), -2.0))
    start = graph.add("Sub", x, graph.add("Div", graph.add("Log", x), x))
    z = graph.add("Div", 1.0, x)
    ratio = graph.add("Div", *(graph.polynomial(z, terms) for terms in _TAIL))
    tail = graph.add("Sub", start, graph.add("Mul", z, ratio))
    tail = graph.add("Where", upper, tail, graph.add("Neg", tail))
    in_tail = graph.add("LessOrEqual", rest, float(np.exp(-2)))
    quantile = graph.add("Where", in_tail, tail, middle)
    return graph.clip(quantile, norm.ppf(low), norm.ppf(1 - low))
