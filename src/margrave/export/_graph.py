"""A graph of ONNX operators, built node by node in double precision.

Wherever an operator takes a tensor, a number or an array may be passed: it becomes a constant of
the graph. Trees return the number of a sample's leaf and not its value, because ONNX sums the
values in single precision, in which integers are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._messages import missing_extra
from margrave._typing import Floats, Ints

Operand = str | NDArray[Any] | float
Column = tuple[str, str, str]  # its name, the input's name, and its kind

OPSET, ML_OPSET, IR_VERSION = 18, 3, 8
"""Versions that every onnxruntime since 1.14 reads; skl2onnx writes the same."""

ML = "ai.onnx.ml"
OUTPUTS = ("label", "score", "rejected")


class ExportError(ValueError):
    """A model has no equivalent in ONNX.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.export import ExportError, to_onnx
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.neighbors import NearestCentroid
    >>> X, y = load("iris", return_X_y=True)
    >>> model = SteeredClassifier(NearestCentroid(), random_state=0).fit(X, y)
    >>> try:
    ...     to_onnx(model)
    ... except ExportError as error:
    ...     print(error)
    The member 'nearestcentroid' (NearestCentroid) cannot be written as ONNX: ...
    """

    __module__ = "margrave.export"


def package(name: str) -> ModuleType:
    """Import an optional package, or one of its modules."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = name.partition(".")[0]
        raise ImportError(missing_extra("An ONNX model", missing, "onnx")) from error


def session(model: bytes) -> Any:
    """Return an onnxruntime session for a model, with one CPU thread."""
    runtime = package("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # no log: onnxruntime raises its errors
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@dataclass(frozen=True)
class Tree:
    """A decision tree: a sample goes to the left if its feature is at most the threshold.

    Attributes
    ----------
    feature, threshold, left, right : ndarray of shape (n_nodes,)
        The tested feature, its threshold and the children of each node; the first is the root.
    missing_left : ndarray of bool
        Whether samples with a missing feature go to the left.
    is_leaf : ndarray of bool
        Which nodes are leaves.
    """

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    missing_left: NDArray[Any]
    is_leaf: NDArray[np.bool_]


class Graph:
    """The operators, constants and inputs of a model, in the order in which they are added.

    Parameters
    ----------
    outline : bool
        Whether to leave out operators and constants, which is fast. The functions that convert a
        model refuse the same models.
    """

    def __init__(self, *, outline: bool = False) -> None:
        self.outline = outline
        self.onnx = package("onnx")
        self.numpy_helper = package("onnx.numpy_helper")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.columns: list[Column] = []
        self._used_names = set(OUTPUTS)
        self._matrix: str | None = None

    def name(self, name: str) -> str:
        """Return an unused name: the one passed, with underscores added if it is in use."""
        while name in self._used_names or not name:
            name += "_"
        self._used_names.add(name)
        return name

    def matrix(self, width: int) -> str:
        """Return the input X, a matrix with all columns; add it on the first call."""
        if self._matrix is None:
            self._matrix = self.name("X")
            double, make = self.onnx.TensorProto.DOUBLE, self.onnx.helper.make_tensor_value_info
            self.inputs.append(make(self._matrix, double, ["n", width]))
        return self._matrix

    def input(self, column: str, kind: str) -> str:
        """Return the input for a column of a table; add it on the first call."""
        for known_column, name, known_kind in self.columns:
            if known_column == column and known_kind != kind:
                raise ExportError(
                    f"The column {column!r} cannot be written as ONNX: one member reads it as a "
                    f"{known_kind}, another as a {kind}."
                )
            if known_column == column:
                return name
        name, proto = self.name(column), self.onnx.TensorProto
        dtype = proto.STRING if kind == "category" else proto.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, dtype, ["n", 1]))
        self.columns.append((column, name, kind))
        return name

    def constant(self, value: NDArray[Any] | float) -> str:
        """Add a constant: a float as a double, an array as it is."""
        array = np.asarray(value, dtype=np.float64) if isinstance(value, float) else value
        name = self.name(f"/constant_{len(self._used_names)}")
        if not self.outline:
            self.constants.append(self.numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, operator: str, *operands: Operand, **attributes: Any) -> str:
        """Add an operator and return its output; an array of integers or bytes is a list."""
        names = [o if isinstance(o, str) else self.constant(o) for o in operands]
        output = self.name(f"/{operator}_{len(self._used_names)}")
        if self.outline:
            return output
        arrays = {name: a for name, a in attributes.items() if isinstance(a, np.ndarray)}
        others = {name: a for name, a in attributes.items() if name not in arrays}
        node = self.onnx.helper.make_node(operator, names, [output], **others)
        # make_node checks lists element by element, which is slow for the nodes of a forest.
        node.attribute.extend(self._list(name, array) for name, array in arrays.items())
        self.nodes.append(node)
        return output

    def _list(self, name: str, array: NDArray[Any]) -> Any:
        make, values = self.onnx.AttributeProto, array.tolist()
        if array.dtype.kind == "S":
            return make(name=name, type=make.STRINGS, strings=values)
        return make(name=name, type=make.INTS, ints=values)

    def doubles(self, tensor: str) -> str:
        """Cast a tensor to double precision."""
        return self.add("Cast", tensor, to=self.onnx.TensorProto.DOUBLE)

    def integers(self, tensor: str) -> str:
        """Cast a tensor to integers."""
        return self.add("Cast", tensor, to=self.onnx.TensorProto.INT64)

    def singles(self, tensor: str) -> str:
        """Cast a tensor to single precision."""
        return self.add("Cast", tensor, to=self.onnx.TensorProto.FLOAT)

    def clip(self, tensor: str, low: float, high: float) -> str:
        """Clip numbers to [low, high]."""
        return self.add("Clip", tensor, float(low), float(high))

    def take(self, tensor: str, at: Sequence[int] | NDArray[Any]) -> str:
        """Select columns of a matrix."""
        return self.add("Gather", tensor, np.asarray(at, dtype=np.int64), axis=1)

    def together(self, parts: Sequence[str]) -> str:
        """Concatenate matrices side by side."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def flat(self, column: str) -> str:
        """Reshape a matrix of one column to a vector."""
        return self.add("Reshape", column, np.array([-1]))

    def line(self, x: str, coef: Floats, intercept: Floats) -> str:
        """Return ``x @ coef + intercept``."""
        return self.product(x, coef, np.atleast_1d(intercept))

    def product(self, x: str, *matrix: Floats) -> str:
        """Multiply samples by a matrix, and add a vector if one is passed.

        Uses Gemm: onnxruntime fuses MatMul with a scalar factor in single precision.
        """
        return self.add("Gemm", x, *map(np.ascontiguousarray, matrix))

    def log_odds(self, p: str) -> str:
        """Return the log-odds of probabilities."""
        return self.add("Log", self.add("Div", p, self.add("Sub", 1.0, p)))

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Evaluate a polynomial by Horner's rule; the highest power comes first."""
        total = self.add("Add", self.add("Mul", x, coefficients[0]), coefficients[1])
        for coefficient in coefficients[2:]:
            total = self.add("Add", self.add("Mul", total, x), coefficient)
        return total

    def leaves(self, x: str, trees: Sequence[Tree], strict: bool = False) -> str:
        """Return each sample's leaf in each tree, numbered over the leaves of all trees.

        Parameters
        ----------
        x : str
            The samples, of shape (n, d).
        trees : sequence of Tree
            The trees.
        strict : bool
            Whether samples go to the left only if the feature is below the threshold.
        """
        sizes = [len(tree.feature) for tree in trees]
        joined = {
            name: np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("feature", "threshold", "left", "right", "missing_left", "is_leaf")
        }
        ids = np.repeat(np.arange(len(trees)), sizes)
        nodes = np.concatenate([np.arange(size) for size in sizes])
        leaf = joined["is_leaf"].astype(bool)
        counts = np.array([int(tree.is_leaf.sum()) for tree in trees])
        numbers = np.concatenate([np.arange(count) for count in counts]).astype(np.float64)
        mode = b"BRANCH_LT" if strict else b"BRANCH_LEQ"
        tensor = self.numpy_helper.from_array
        leaf_in_tree = self.add(
            "TreeEnsembleRegressor",
            x,
            domain=ML,
            n_targets=len(trees),
            nodes_treeids=ids,
            nodes_nodeids=nodes,
            nodes_modes=np.where(leaf, b"LEAF", mode),
            nodes_featureids=np.where(leaf, 0, joined["feature"]),
            nodes_values_as_tensor=tensor(np.where(leaf, 0.0, joined["threshold"]), "thresholds"),
            nodes_truenodeids=np.where(leaf, 0, joined["left"]),
            nodes_falsenodeids=np.where(leaf, 0, joined["right"]),
            nodes_missing_value_tracks_true=np.where(leaf, 0, joined["missing_left"]),
            target_treeids=ids[leaf],
            target_nodeids=nodes[leaf],
            target_ids=ids[leaf],
            target_weights_as_tensor=tensor(numbers, "leaves"),
        )
        return self.add("Add", self.integers(leaf_in_tree), np.cumsum(counts) - counts)

    def squared_distances(self, x: str, points: Floats) -> str:
        """Return the squared distance of each sample to each point.

        It is computed from differences, which is accurate for points far from the origin, and for
        one sample at a time, which bounds the memory.
        """
        make, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        body = make.make_graph(
            [
                make.make_node("Sub", ["points", "row"], ["difference"]),
                make.make_node("ReduceSumSquare", ["difference", "axis"], ["distance"], keepdims=0),
            ],
            "row_by_row",
            [make.make_tensor_value_info("row", double, [points.shape[1]])],
            [make.make_tensor_value_info("distance", double, [points.shape[0]])],
            [
                self.numpy_helper.from_array(np.ascontiguousarray(points), "points"),
                self.numpy_helper.from_array(np.array([1]), "axis"),
            ],
        )
        return self.add("Scan", x, num_scan_inputs=1, body=body)

    def leads(self, x: str) -> str:
        """Return the difference of the two largest numbers of each row."""
        top, indices = (self.name(f"/TopK_{len(self.nodes)}") for _ in range(2))
        two = self.constant(np.array([2]))
        self.nodes.append(self.onnx.helper.make_node("TopK", [x, two], [top, indices], axis=1))
        return self.flat(self.add("Sub", self.take(top, [0]), self.take(top, [1])))

    def type_of(self, array: NDArray[Any]) -> int:
        """Return the ONNX type of an array."""
        return int(self.numpy_helper.from_array(array).data_type)

    def include(self, model: Any, feed: dict[str, str]) -> list[str]:
        """Add another model, with tensors of this graph as inputs, and return its outputs."""
        prefix = f"/part_{len(self.nodes)}/"
        part = package("onnx.compose").add_prefix_graph(model.graph, prefix)
        joined = {prefix + name: tensor for name, tensor in feed.items()}
        for name, tensor in joined.items():
            self.nodes.append(self.onnx.helper.make_node("Identity", [tensor], [name]))
        self.nodes.extend(part.node)
        self.constants.extend(part.initializer)
        return [output.name for output in part.output]

    def model(self, outputs: dict[str, tuple[str, int, list[Any]]]) -> Any:
        """Return the ONNX model; `outputs` holds the tensor, type and shape of each output."""
        make = self.onnx.helper
        infos = []
        for name, (tensor, dtype, shape) in outputs.items():
            self.nodes.append(make.make_node("Identity", [tensor], [name]))
            infos.append(make.make_tensor_value_info(name, dtype, shape))
        graph = make.make_graph(self.nodes, "margrave", self.inputs, infos, self.constants)
        versions = [make.make_opsetid("", OPSET), make.make_opsetid(ML, ML_OPSET)]
        return make.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)
