"""A graph of ONNX operators, built a node at a time in double precision.

Numbers and arrays may stand wherever an operator takes a tensor: they become constants of the
graph. Trees are asked for the number of the leaf a sample comes to, not for its value: ONNX adds
values up in single precision, and whole numbers are exact there.
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
"""Versions that every onnxruntime since 1.14 reads; skl2onnx is asked for the same."""

ML = "ai.onnx.ml"
OUTPUTS = ("label", "score", "rejected")


class ExportError(ValueError):
    """A model that has no equal in ONNX."""

    __module__ = "margrave.steer"


def package(name: str) -> ModuleType:
    """An optional package, or one of its modules."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        needed = name.partition(".")[0]
        raise ImportError(missing_extra("An ONNX model", needed, "onnx")) from error


def session(model: bytes) -> Any:
    """What runs a model, on one thread of the processor."""
    runtime = package("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # what is wrong is raised
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@dataclass(frozen=True)
class Tree:
    """A decision tree: to the left where a feature is not above the threshold.

    Attributes
    ----------
    feature, threshold, left, right : ndarray of shape (n_nodes,)
        The first node is the root; a leaf is where `is_leaf`.
    missing_left : ndarray of bool
        Whether samples without the feature go to the left.
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
    """Operators, constants and inputs, in the order in which they are added."""

    def __init__(self) -> None:
        self.onnx = package("onnx")
        self.numpy_helper = package("onnx.numpy_helper")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.columns: list[Column] = []
        self._taken = set(OUTPUTS)
        self._matrix: str | None = None

    def name(self, wanted: str) -> str:
        """A name that is not yet taken, as near to the one wanted as can be."""
        while wanted in self._taken or not wanted:
            wanted += "_"
        self._taken.add(wanted)
        return wanted

    def matrix(self, width: int) -> str:
        """The input X: all numbers of a sample."""
        if self._matrix is None:
            self._matrix = self.name("X")
            double, make = self.onnx.TensorProto.DOUBLE, self.onnx.helper.make_tensor_value_info
            self.inputs.append(make(self._matrix, double, ["n", width]))
        return self._matrix

    def input(self, column: str, kind: str) -> str:
        """An input for a column of a table; one that is asked for again is the same."""
        for known, name, own in self.columns:
            if known == column and own != kind:
                raise ExportError(
                    f"The column {column!r} cannot be written as ONNX: one member takes it for a "
                    f"{own}, another for a {kind}."
                )
            if known == column:
                return name
        made, proto = self.name(column), self.onnx.TensorProto
        of = proto.STRING if kind == "category" else proto.DOUBLE
        self.inputs.append(self.onnx.helper.make_tensor_value_info(made, of, ["n", 1]))
        self.columns.append((column, made, kind))
        return made

    def constant(self, value: NDArray[Any] | float) -> str:
        """A constant: a double, or an array as it is."""
        array = np.asarray(value, dtype=np.float64) if isinstance(value, float) else value
        made = self.name(f"/constant_{len(self.constants)}")
        self.constants.append(self.numpy_helper.from_array(np.asarray(array), made))
        return made

    def add(self, operator: str, *operands: Operand, **attributes: Any) -> str:
        """The output of an operator."""
        names = [one if isinstance(one, str) else self.constant(one) for one in operands]
        output = self.name(f"/{operator}_{len(self.nodes)}")
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def doubles(self, tensor: str) -> str:
        """A tensor as doubles."""
        return self.add("Cast", tensor, to=self.onnx.TensorProto.DOUBLE)

    def integers(self, tensor: str) -> str:
        """A tensor as integers."""
        return self.add("Cast", tensor, to=self.onnx.TensorProto.INT64)

    def singles(self, tensor: str) -> str:
        """A tensor in single precision."""
        return self.add("Cast", tensor, to=self.onnx.TensorProto.FLOAT)

    def clip(self, tensor: str, low: float, high: float) -> str:
        """Numbers within bounds."""
        return self.add("Clip", tensor, float(low), float(high))

    def take(self, tensor: str, at: Sequence[int] | NDArray[Any]) -> str:
        """Some columns of a matrix."""
        return self.add("Gather", tensor, np.asarray(at, dtype=np.int64), axis=1)

    def together(self, parts: Sequence[str]) -> str:
        """Matrices side by side."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def flat(self, column: str) -> str:
        """A matrix of one column as a vector."""
        return self.add("Reshape", column, np.array([-1]))

    def line(self, x: str, coef: Floats, intercept: Floats) -> str:
        """``x @ coef + intercept``."""
        return self.product(x, coef, np.atleast_1d(intercept))

    def product(self, x: str, *matrix: Floats) -> str:
        """Samples times a matrix, and a vector that is added.

        By Gemm: onnxruntime joins MatMul with a number before or after it, in single precision.
        """
        return self.add("Gemm", x, *map(np.ascontiguousarray, matrix))

    def log_odds(self, p: str) -> str:
        """Logarithms of the odds of probabilities."""
        return self.add("Log", self.add("Div", p, self.add("Sub", 1.0, p)))

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """By Horner's rule, the highest power first."""
        total = self.add("Add", self.add("Mul", x, coefficients[0]), coefficients[1])
        for one in coefficients[2:]:
            total = self.add("Add", self.add("Mul", total, x), one)
        return total

    def leaves(self, x: str, trees: Sequence[Tree], strict: bool = False) -> str:
        """The leaf that each sample comes to in each tree, over all trees' leaves in their order.

        Parameters
        ----------
        x : str
            The samples, of shape (n, d).
        trees : sequence of Tree
            The trees.
        strict : bool
            Whether samples go to the left only where the feature is below the threshold.
        """
        sizes = [len(tree.feature) for tree in trees]
        joined = {
            name: np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("feature", "threshold", "left", "right", "missing_left", "is_leaf")
        }
        ids = np.repeat(np.arange(len(trees)), sizes)
        places = np.concatenate([np.arange(size) for size in sizes])
        leaf = joined["is_leaf"].astype(bool)
        counts = np.array([int(tree.is_leaf.sum()) for tree in trees])
        numbers = np.concatenate([np.arange(count) for count in counts]).astype(np.float64)
        inner = "BRANCH_LT" if strict else "BRANCH_LEQ"
        tensor = self.numpy_helper.from_array
        found = self.add(
            "TreeEnsembleRegressor",
            x,
            domain=ML,
            n_targets=len(trees),
            nodes_treeids=ids.tolist(),
            nodes_nodeids=places.tolist(),
            nodes_modes=np.where(leaf, "LEAF", inner).tolist(),
            nodes_featureids=np.where(leaf, 0, joined["feature"]).tolist(),
            nodes_values_as_tensor=tensor(np.where(leaf, 0.0, joined["threshold"]), "thresholds"),
            nodes_truenodeids=np.where(leaf, 0, joined["left"]).tolist(),
            nodes_falsenodeids=np.where(leaf, 0, joined["right"]).tolist(),
            nodes_missing_value_tracks_true=np.where(leaf, 0, joined["missing_left"]).tolist(),
            target_treeids=ids[leaf].tolist(),
            target_nodeids=places[leaf].tolist(),
            target_ids=ids[leaf].tolist(),
            target_weights_as_tensor=tensor(numbers, "leaves"),
        )
        return self.add("Add", self.integers(found), np.cumsum(counts) - counts)

    def squared_distances(self, x: str, points: Floats) -> str:
        """From each sample to each point, by their differences: exact where both are far out.

        One sample after another, so that memory is that of one.
        """
        make, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        body = make.make_graph(
            [
                make.make_node("Sub", ["points", "row"], ["away"]),
                make.make_node("ReduceSumSquare", ["away", "axis"], ["distance"], keepdims=0),
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
        """By how much the largest number of each row leads."""
        top, places = (self.name(f"/TopK_{len(self.nodes)}") for _ in range(2))
        two = self.constant(np.array([2]))
        self.nodes.append(self.onnx.helper.make_node("TopK", [x, two], [top, places], axis=1))
        return self.flat(self.add("Sub", self.take(top, [0]), self.take(top, [1])))

    def type_of(self, array: NDArray[Any]) -> int:
        """ONNX's type for an array."""
        return int(self.numpy_helper.from_array(array).data_type)

    def include(self, model: Any, feed: dict[str, str]) -> list[str]:
        """The outputs of another model whose inputs are tensors of this graph."""
        prefix = f"/part_{len(self.nodes)}/"
        part = package("onnx.compose").add_prefix_graph(model.graph, prefix)
        joined = {prefix + name: tensor for name, tensor in feed.items()}
        for name, tensor in joined.items():
            self.nodes.append(self.onnx.helper.make_node("Identity", [tensor], [name]))
        self.nodes.extend(part.node)
        self.constants.extend(part.initializer)
        return [output.name for output in part.output]

    def model(self, outputs: dict[str, tuple[str, int, list[Any]]]) -> Any:
        """The model: for each output its tensor, type and shape."""
        make = self.onnx.helper
        infos = []
        for name, (tensor, of, shape) in outputs.items():
            self.nodes.append(make.make_node("Identity", [tensor], [name]))
            infos.append(make.make_tensor_value_info(name, of, shape))
        graph = make.make_graph(self.nodes, "margrave", self.inputs, infos, self.constants)
        versions = [make.make_opsetid("", OPSET), make.make_opsetid(ML, ML_OPSET)]
        return make.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)
