"""What samples pass before a member sees them, as ONNX operators in double precision.

The table encoder with its numbers and categories, scaling, and quantiles. Every step does the
arithmetic of what it stands for in the same order, so that results are equal to the last bits.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from margrave._typing import Floats, Ints
from margrave.export._graph import ExportError, Graph, Tree
from margrave.table._columns import _FAR, _HUGE, CategoryEncoder, DateEncoder, NumberEncoder
from margrave.table._encoder import TableEncoder

# scikit-learn's: values so near to the ends of the quantiles are at them.
_BOUND = 1e-7


# Tables


def encoded(graph: Graph, encoder: TableEncoder, x: str | None) -> str:
    """A table, or an array, as the matrix that the encoder makes of it.

    Parameters
    ----------
    graph : Graph
        Where to write it.
    encoder : TableEncoder
        Trained.
    x : str or None
        The array; a table's columns are inputs of their own.

    Raises
    ------
    ExportError
        If a column is neither numbers nor categories.
    """
    parts = []
    for one in encoder.encoders_:
        if isinstance(one, CategoryEncoder):
            parts += _categories(graph, one)
        elif isinstance(one, NumberEncoder):
            values = x if x is not None else numbers(graph, one.names)
            parts += _numbers(graph, one, values)
        else:
            kind = "dates" if isinstance(one, DateEncoder) else "texts"
            raise ExportError(
                f"The column {one.names[0]!r} cannot be written as ONNX: it holds {kind}, and "
                "only numbers and categories can be read there."
            )
    return graph.together(parts)


def numbers(graph: Graph, names: list[str]) -> str:
    """Columns of numbers side by side, each an input."""
    return graph.together([graph.input(name, "number") for name in names])


def _numbers(graph: Graph, encoder: NumberEncoder, x: str) -> list[str]:
    """Scaled numbers, and a 0/1 column for each that had gaps."""
    largest = float(np.finfo(np.float64).max)
    known = graph.add("LessOrEqual", graph.add("Abs", x), largest)  # no NaN either
    filled = graph.add("Where", known, x, encoder.scaled_.medians_)
    scaled = scaler(graph, encoder.scaled_.scaler_, graph.clip(filled, -_HUGE, _HUGE))
    parts = [graph.clip(scaled, -_FAR, _FAR)]
    if len(encoder.gaps_):
        parts.append(graph.doubles(graph.add("Not", graph.take(known, encoder.gaps_))))
    return parts


def _categories(graph: Graph, encoder: CategoryEncoder) -> list[str]:
    """A 0/1 column for each frequent value, and one for the others: a row of a table by its key."""
    parts, one_hot = [], encoder.one_hot_
    told = zip(encoder.names, one_hot.categories_, one_hot.infrequent_categories_, strict=True)
    for name, levels, rare in told:
        others = set() if rare is None else set(rare)
        frequent = [level for level in levels if level not in others]
        places = {level: place for place, level in enumerate(frequent)}
        unknown = len(frequent)  # the column of the others, or a row of zeros
        places.update(dict.fromkeys(others, unknown))
        places[""] = places.get("missing", unknown)
        place = graph.add(
            "LabelEncoder",
            graph.flat(graph.input(name, "category")),
            domain="ai.onnx.ml",
            keys_strings=list(places),
            values_int64s=list(places.values()),
            default_int64=unknown,
        )
        rows = np.eye(unknown + 1)[:, : unknown + bool(others)]
        parts.append(graph.add("Gather", rows, place))
    return parts


# Transformers


def scaler(graph: Graph, model: StandardScaler, x: str) -> str:
    """Mean 0 and variance 1."""
    if model.with_mean:
        x = graph.add("Sub", x, model.mean_)
    return graph.add("Div", x, model.scale_) if model.with_std else x


def quantiles(graph: Graph, model: QuantileTransformer, x: str) -> str:
    """Shares of the training samples below, or the normal quantiles of them."""
    known, shares = model.quantiles_, model.references_
    up = _interpolated(graph, x, known, shares)
    down = _interpolated(graph, graph.add("Neg", x), -known[::-1], -shares[::-1])
    share = graph.add("Mul", graph.add("Sub", up, down), 0.5)
    if model.output_distribution == "normal":
        first = graph.add("Less", graph.add("Sub", x, _BOUND), known[0])
        last = graph.add("Greater", graph.add("Add", x, _BOUND), known[-1])
    else:
        first, last = graph.add("Equal", x, known[0]), graph.add("Equal", x, known[-1])
    share = graph.add("Where", first, 0.0, graph.add("Where", last, 1.0, share))
    return _normal(graph, share) if model.output_distribution == "normal" else share


def _interpolated(graph: Graph, x: str, known: Floats, shares: Floats) -> str:
    """Each column's piecewise linear function, as `numpy.interp` has it.

    A tree over the knots finds the piece: its leaf is how many of them a value has reached.
    """
    n, width = known.shape
    order, left, right = _bisection(n)
    none, leaf = np.zeros(n + 1, dtype=np.int64), np.arange(2 * n + 1) >= n
    trees = [
        Tree(
            feature=np.full(2 * n + 1, j),
            threshold=np.append(known[order, j], np.zeros(n + 1)),
            left=np.append(left, none),
            right=np.append(right, none),
            missing_left=np.zeros(2 * n + 1, dtype=np.int64),
            is_leaf=leaf,
        )
        for j in range(width)
    ]
    piece = graph.leaves(x, trees, strict=True)
    steps, rises = np.diff(known, axis=0), np.diff(shares)[:, None]
    slopes = np.divide(rises, steps, out=np.zeros_like(steps), where=steps > 0)
    flat = np.zeros((1, width))
    tables = (
        np.vstack([flat, slopes, flat]),
        np.vstack([known[:1], known]),
        np.tile(np.append(shares[0], shares)[:, None], (1, width)),
    )
    slope, begin, height = (graph.add("Gather", table.T.ravel(), piece) for table in tables)
    return graph.add("Add", graph.add("Mul", slope, graph.add("Sub", x, begin)), height)


def _bisection(n: int) -> tuple[Ints, Ints, Ints]:
    """Which of n sorted knots each node of a tree asks for, and its children; leaves follow."""
    nodes: list[list[int]] = []

    def grown(low: int, high: int) -> int:
        if low == high:
            return n + low
        middle = (low + high) // 2
        node = [middle]
        nodes.append(node)
        at = len(nodes) - 1
        node += [grown(low, middle), grown(middle + 1, high)]
        return at

    grown(0, n)
    order, left, right = np.array(nodes, dtype=np.int64).T
    return order, left, right


# Rational functions for the quantiles of a normal distribution, from the Cephes library (ndtri),
# which SciPy uses too: about the middle, and for the tails down to e^-32.
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


def _normal(graph: Graph, share: str) -> str:
    """Quantiles of the normal distribution, within those of 1e-7 and 1 - 1e-7."""
    least = _BOUND - float(np.spacing(1))
    y = graph.clip(share, least, 1 - least)
    away = graph.add("Sub", y, 0.5)
    square = graph.add("Mul", away, away)
    ratio = graph.add("Div", *(graph.polynomial(square, one) for one in _MIDDLE))
    bent = graph.add("Mul", away, graph.add("Mul", square, ratio))
    middle = graph.add("Mul", graph.add("Add", away, bent), float(np.sqrt(2 * np.pi)))
    upper = graph.add("Greater", y, 0.5)
    rest = graph.add("Where", upper, graph.add("Sub", 1.0, y), y)
    x = graph.add("Sqrt", graph.add("Mul", graph.add("Log", rest), -2.0))
    begin = graph.add("Sub", x, graph.add("Div", graph.add("Log", x), x))
    z = graph.add("Div", 1.0, x)
    bend = graph.add("Div", *(graph.polynomial(z, one) for one in _TAIL))
    tail = graph.add("Sub", begin, graph.add("Mul", z, bend))
    tail = graph.add("Where", upper, tail, graph.add("Neg", tail))
    far = graph.add("LessOrEqual", rest, float(np.exp(-2)))
    return graph.clip(graph.add("Where", far, tail, middle), norm.ppf(least), norm.ppf(1 - least))
