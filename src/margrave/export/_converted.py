"""Conversion of models by skl2onnx, for those that Margrave does not convert itself.

skl2onnx often computes in single precision, and its graphs ignore some options of a model. So each
graph is compared with the model on synthetic rows; one in double precision is preferred.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave._typing import Floats
from margrave.export._graph import ML, ML_OPSET, OPSET, Graph, package, session

# Scales of the synthetic rows, which are not negative: some models do not accept that.
_SIZES = (0.1, 1.0, 10.0, 100.0)
_ROWS = 64
# Largest errors in double and in single precision, relative to the largest value.
_EXACT, _NEAR = 1e-9, 1e-4


@dataclass(frozen=True)
class _Conversion:
    """A model converted by skl2onnx, and the error of its output on synthetic rows."""

    model: Any
    double: bool
    width: int  # number of output columns
    used: int  # number of them that the model's own output has, the last ones
    error: float


def convert_with_skl2onnx(graph: Graph, model: Any, x: str) -> tuple[str, bool] | None:
    """Add skl2onnx's graph of a model; None if there is none with the same output.

    Parameters
    ----------
    graph : Graph
        The graph to extend.
    model : classifier or transformer
        The fitted model.
    x : str
        The samples, of shape (n, d).

    Returns
    -------
    (str, bool) or None
        The output tensor, and whether it is computed in double precision.
    """
    best = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # skl2onnx's own, and rows without column names
        package("skl2onnx")
        for double in (True, False):
            conversion = _try_conversion(model, double)
            if conversion is not None and conversion.error <= _NEAR:
                best = conversion
            if best is not None and best.error <= _EXACT:
                break
    if best is None:
        return None
    outputs = graph.include(best.model, {"X": x if best.double else graph.singles(x)})
    values = graph.add("Reshape", outputs[_output_index(model)], np.array([-1, best.width]))
    values = graph.take(values, np.arange(best.width)[-best.used :])
    return graph.doubles(values), best.error <= _EXACT


def _try_conversion(model: Any, double: bool) -> _Conversion | None:
    """Convert a model in one precision and compare it on synthetic rows; None if that fails."""
    try:
        rows = _synthetic_rows(model.n_features_in_)
        converted = _convert(model, double)
        output = session(converted.SerializeToString()).run(
            None, {"X": rows if double else rows.astype(np.float32)}
        )[_output_index(model)]
        expected = _predict(model, rows)
        output = np.asarray(output, dtype=np.float64).reshape(len(rows), -1)
    except Exception:  # both packages, and models, raise exceptions of many types
        return None
    width = output.shape[1]
    output = output[:, -expected.shape[1] :]
    if output.shape != expected.shape or not np.array_equal(np.isnan(output), np.isnan(expected)):
        return None
    error = np.nan_to_num(np.abs(output - expected)).max(initial=0.0)
    size = max(np.nan_to_num(np.abs(expected)).max(initial=0.0), 1.0)
    return _Conversion(converted, double, width, expected.shape[1], float(error / size))


def _convert(model: Any, double: bool) -> Any:
    types = package("skl2onnx.common.data_types")
    tensor_type = types.DoubleTensorType if double else types.FloatTensorType
    converted = package("skl2onnx").convert_sklearn(
        model,
        initial_types=[("X", tensor_type([None, model.n_features_in_]))],
        target_opset={"": OPSET, ML: ML_OPSET},
        options={"zipmap": False} if hasattr(model, "predict_proba") else None,
    )
    if converted.functions or not {o.domain for o in converted.opset_import} <= {"", ML}:
        raise ValueError("The graph needs operators outside the standard ONNX domains.")
    return converted


def _synthetic_rows(width: int) -> Floats:
    sizes = np.resize(_SIZES, (_ROWS, 1))
    return np.asarray(np.abs(np.random.default_rng(0).normal(size=(_ROWS, width))) * sizes)


def _output_index(model: Any) -> int:
    """Return the index of the output with values; the first output of a classifier is labels."""
    return 1 if hasattr(model, "classes_") else 0


def _predict(model: Any, rows: Floats) -> Floats:
    """Return the values that a model predicts, or the transformed rows."""
    for method in ("predict_proba", "decision_function", "transform"):
        if hasattr(model, method):
            values = getattr(model, method)(rows)
            dense = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
            return dense.reshape(len(rows), -1)
    raise TypeError("The model predicts labels only.")
