"""A steered model as an ONNX file, which other programs run without Python.

The graph does what `SteeredClassifier.predict` does: columns are encoded, every member speaks, the
members' values become one score, which is rounded, and cuts or offsets make an answer of it.
Nothing is learned or approximated here; what has no equal in ONNX is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import margrave
from margrave import _labels
from margrave._validation import fitted_classes
from margrave.export._graph import ExportError, Graph, package, session
from margrave.export._models import UnableError, starts_with_a_table, written
from margrave.export._preprocessing import encoded, numbers
from margrave.export._scores import scores_of
from margrave.steer._scorer import Scorer
from margrave.steer._thresholds import _LEAST, Decision, Offsets, Threshold

Samples = Callable[[Any], str | None]


def to_onnx(model: Any) -> bytes:
    """Return a fitted :class:`~margrave.steer.SteeredClassifier` in the format of ONNX.

    Parameters
    ----------
    model : SteeredClassifier
        The model; its method ``to_onnx`` documents inputs, outputs and precision.

    Returns
    -------
    bytes

    Raises
    ------
    ExportError
        If a member or a column has no equivalent in ONNX.
    """
    check_is_fitted(model, "scorer_")
    package("onnxruntime")
    graph, scorer, decision = Graph(), model.scorer_, model.decision_
    samples = _samples(graph, model)
    raw, single = _said(graph, scorer, samples)
    scores = scores_of(graph, scorer, raw, lambda columns: _seen(graph, model, samples, columns))
    codes, lead = _decided(graph, decision, scores)
    labels, k, proto = _label_table(model), len(model.classes_), graph.onnx.TensorProto
    made = graph.model(
        {
            "label": (graph.add("Gather", labels, codes), graph.type_of(labels), ["n"]),
            "score": (lead, proto.DOUBLE, ["n"] if k == 2 else ["n", k]),
            "rejected": (graph.add("Less", codes, np.array(0)), proto.BOOL, ["n"]),
        }
    )
    made.producer_name, made.producer_version = "margrave", margrave.__version__
    for key, value in _about(model, graph, single).items():
        made.metadata_props.add(key=key, value=value)
    try:
        written_out = bytes(made.SerializeToString(deterministic=True))
        session(written_out)
    except Exception as error:  # protobuf's and onnxruntime's are of many kinds
        raise ExportError(
            "The model cannot be written as ONNX: it is too large, or onnxruntime refuses it."
        ) from error
    return written_out


def _about(model: Any, graph: Graph, single: list[str]) -> dict[str, str]:
    """What a reader of the file should know."""
    certificate = model.certificate_
    wanted = certificate.preference if certificate is not None else model.preference
    return {
        "margrave_version": margrave.__version__,
        "preference": "" if wanted is None else str(wanted),
        "certificate": "" if certificate is None else str(certificate),
        "classes": json.dumps(model.classes_.tolist()),
        "reject_label": json.dumps(model.reject_label_),
        "columns": json.dumps(
            [
                {"column": column, "input": name, "kind": kind}
                for column, name, kind in graph.columns
            ]
        ),
        "single_precision": json.dumps(single),
    }


# Samples and members


def _samples(graph: Graph, model: Any) -> Samples:
    """The samples as each member sees them; None for one that reads the table for itself."""
    encoder = model.scorer_.committee.encoder
    if encoder is not None:
        own = None if encoder._by_name else graph.matrix(encoder.n_features_in_)
        seen = encoded(graph, encoder, own)
        return lambda _: seen
    names = getattr(model, "feature_names_in_", None)

    def of(member: Any) -> str | None:
        if starts_with_a_table(member):
            return None
        if names is None and not hasattr(model, "n_features_in_"):
            raise UnableError("it does not say how many columns it takes")
        if names is None:
            return graph.matrix(model.n_features_in_)
        return numbers(graph, list(getattr(member, "feature_names_in_", names)))

    return of


def _seen(graph: Graph, model: Any, samples: Samples, columns: list[Any]) -> str:
    """Some columns of the samples as members see them, for what parts these into regions."""
    if model.scorer_.committee.encoder is not None:
        return graph.take(str(samples(None)), columns)
    by_name = isinstance(columns[0], str)
    if by_name and (graph.columns or not graph.inputs):
        return numbers(graph, columns)
    if by_name or graph.columns or not hasattr(model, "n_features_in_"):
        raise ExportError(
            "The regions cannot be written as ONNX: they know columns by name and members know "
            "them by place, or the other way round."
        )
    return graph.take(graph.matrix(model.n_features_in_), columns)


def _said(graph: Graph, scorer: Scorer, samples: Samples) -> tuple[list[str], list[str]]:
    """What each member says, and the members that are in single precision."""
    panel = scorer.committee
    raw, single = [], []
    for name, member in zip(panel.names, panel.members, strict=True):
        try:
            values, exact = _raw(graph, name, member, panel.classes, samples)
        except UnableError as error:
            raise ExportError(
                f"The member {name!r} ({type(member).__name__}) cannot be written as ONNX: {error}."
            ) from error
        raw.append(values)
        single += [] if exact else [name]
    return raw, single


def _raw(graph: Graph, name: str, member: Any, classes: Any, samples: Samples) -> tuple[str, bool]:
    """What a member says, as `margrave.Scores.raw` has it: (n, 1) for two classes, else (n, k)."""
    own = _labels.encode(fitted_classes(name, member), classes, f"The classes of member {name!r}")
    probabilities = hasattr(member, "predict_proba")
    if not probabilities and not hasattr(member, "decision_function"):
        raise UnableError("it gives labels only")
    if not probabilities and len(own) < len(classes):
        raise UnableError("it has not seen all classes")
    values, exact = written(graph, member, samples(member))
    if not probabilities and len(own) == 2:
        values = graph.together([graph.add("Neg", values), values])
    columns = np.full(len(classes), len(own))  # of a class it has not seen: zeros after its own
    columns[own] = np.arange(len(own))
    if len(own) < len(classes):
        values = graph.together([values, graph.add("Mul", graph.take(values, [0]), 0.0)])
    values = graph.take(values, columns[1:] if len(classes) == 2 else columns)
    if probabilities:
        values = graph.add("Sub", graph.add("Mul", values, 2.0), 1.0)
        values = graph.clip(values, -1.0, 1.0)
    return values, exact


# Answers


def _decided(graph: Graph, decision: Decision, scores: str) -> tuple[str, str]:
    """Positions of classes, -1 for a rejected sample, and the scores as they are compared."""
    if isinstance(decision, Threshold):
        return _cut(graph, decision, graph.flat(scores))
    if isinstance(decision, Offsets):
        moved = graph.add("Add", scores, decision.offset)
        doubtful = graph.add("Less", graph.leads(moved), float(decision.doubt))
        best = graph.add("ArgMax", moved, axis=1, keepdims=0)
        return graph.add("Where", doubtful, np.array(_labels.REJECTED), best), moved
    raise ExportError(
        f"The decision cannot be written as ONNX: {type(decision).__name__} is not known there."
    )


def _cut(graph: Graph, cut: Threshold, scores: str) -> tuple[str, str]:
    above = graph.add("Greater", scores, float(cut.high))
    below = graph.add("LessOrEqual", scores, float(cut.low))
    answer = graph.add("Where", below, np.array(0), np.array(_labels.REJECTED))
    codes = graph.add("Where", above, np.array(1), answer)
    most = -_LEAST if cut.rejects else 0.0
    beneath = graph.add("Min", graph.add("Sub", scores, float(cut.low)), most)
    inside = graph.add("Where", below, beneath, 0.0)
    over = graph.add("Sub", scores, float(cut.high))
    return codes, graph.add("Where", above, over, inside)


def _label_table(model: Any) -> Any:
    """The classes, and last the label of a rejected sample."""
    kind, labels = _labels.kind_of(model.classes_), model.classes_.tolist()
    if kind == "numbers":
        whole = model.classes_.dtype.kind in "iu"
        return np.array([*labels, model.reject_label_], dtype=np.int64 if whole else np.float64)
    if kind == "booleans" and not model.decision_.rejects:
        return np.array(labels)
    return np.array([*map(str, labels), model.reject_label_], dtype=object)
