"""Models that are left to skl2onnx: its graph is taken if it answers as the model does.

It often computes in single precision, and not all options of a model reach its graphs. So each
graph is tried on made-up rows against the model itself; one in double precision is preferred.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave._typing import Floats
from margrave.export._graph import ML, ML_OPSET, OPSET, Graph, package, session

# Made-up rows are of these sizes; none is below 0, which some models refuse.
_SIZES = (0.1, 1.0, 10.0, 100.0)
_ROWS = 64
# In units of the largest value: what double and single precision leave.
_EXACT, _NEAR = 1e-9, 1e-4


@dataclass(frozen=True)
class _Tried:
    """A model of skl2onnx's, and how far its answers are from those wanted."""

    model: Any
    double: bool
    width: int  # of its answers
    wanted: int  # columns of them, the last ones
    error: float


def foreign(graph: Graph, model: Any, x: str) -> tuple[str, bool] | None:
    """A model as skl2onnx has it, and whether that is in double precision; None if it cannot be.

    Parameters
    ----------
    graph : Graph
        Where to write it.
    model : classifier or transformer
        Trained.
    x : str
        The samples, of shape (n, d).
    """
    found = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # skl2onnx's affairs, and made-up rows without names
        package("skl2onnx")
        for double in (True, False):
            tried = _tried(model, double)
            if tried is not None and tried.error <= _NEAR:
                found = tried
            if found is not None and found.error <= _EXACT:
                break
    if found is None:
        return None
    outputs = graph.include(found.model, {"X": x if found.double else graph.singles(x)})
    answers = graph.add("Reshape", outputs[_place(model)], np.array([-1, found.width]))
    answers = graph.take(answers, np.arange(found.width)[-found.wanted :])
    return graph.doubles(answers), found.error <= _EXACT


def _tried(model: Any, double: bool) -> _Tried | None:
    """A model in one precision, tried on made-up rows; None if it is not there or fails."""
    try:
        rows = _made_up(model.n_features_in_)
        made = _converted(model, double)
        said = session(made.SerializeToString()).run(
            None, {"X": rows if double else rows.astype(np.float32)}
        )[_place(model)]
        wanted = _answers(model, rows)
        said = np.asarray(said, dtype=np.float64).reshape(len(rows), -1)
    except Exception:  # both packages raise of all kinds, and models refuse rows in their own ways
        return None
    width = said.shape[1]
    said = said[:, -wanted.shape[1] :]
    if said.shape != wanted.shape or not np.array_equal(np.isnan(said), np.isnan(wanted)):
        return None
    away = np.nan_to_num(np.abs(said - wanted)).max(initial=0.0)
    size = max(np.nan_to_num(np.abs(wanted)).max(initial=0.0), 1.0)
    return _Tried(made, double, width, wanted.shape[1], float(away / size))


def _converted(model: Any, double: bool) -> Any:
    types = package("skl2onnx.common.data_types")
    of = types.DoubleTensorType if double else types.FloatTensorType
    made = package("skl2onnx").convert_sklearn(
        model,
        initial_types=[("X", of([None, model.n_features_in_]))],
        target_opset={"": OPSET, ML: ML_OPSET},
        options={"zipmap": False} if hasattr(model, "predict_proba") else None,
    )
    if made.functions or not {one.domain for one in made.opset_import} <= {"", ML}:
        raise ValueError("It needs more than the operators that any reader of ONNX has.")
    return made


def _made_up(width: int) -> Floats:
    """Rows to try a model on."""
    sizes = np.resize(_SIZES, (_ROWS, 1))
    return np.asarray(np.abs(np.random.default_rng(0).normal(size=(_ROWS, width))) * sizes)


def _place(model: Any) -> int:
    """Which output holds the answers: a classifier's first are labels."""
    return 1 if hasattr(model, "classes_") else 0


def _answers(model: Any, rows: Floats) -> Floats:
    """What a model says, a row for each sample."""
    for method in ("predict_proba", "decision_function", "transform"):
        if hasattr(model, method):
            said = getattr(model, method)(rows)
            dense = said.toarray() if hasattr(said, "toarray") else np.asarray(said)
            return dense.reshape(len(rows), -1)
    raise TypeError("It gives labels only.")
