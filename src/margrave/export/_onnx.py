"""Export of a steered model to ONNX, which other programs run without Python.

The graph computes what `SteeredClassifier.predict` does: it encodes the columns, computes every
member's values, combines them into a rounded score, and predicts by a threshold or offsets. The
export approximates nothing; it raises `ExportError` for a model without an equivalent in ONNX.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import margrave
from margrave import _labels
from margrave._validation import fitted_classes
from margrave.export._graph import ExportError, Graph, package, session
from margrave.export._models import UnsupportedModelError, convert_model, reads_table
from margrave.export._preprocessing import encode_table, join_numbers
from margrave.export._scores import convert_scores
from margrave.steer import SMALLEST_DIFFERENCE, Decision, Offsets, Scorer, Threshold
from margrave.table import read_numbers, read_texts

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

    Examples
    --------
    >>> import onnxruntime
    >>> from margrave.datasets import load
    >>> from margrave.export import to_onnx
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load("iris", return_X_y=True)
    >>> content = to_onnx(SteeredClassifier(GaussianNB(), random_state=0).fit(X, y))
    >>> session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    >>> [output.name for output in session.get_outputs()]
    ['label', 'score', 'rejected']
    """
    check_is_fitted(model, "scorer_")
    graph = Graph()
    codes, compared, single = _convert(graph, model)
    labels, k, proto = _label_table(model), len(model.classes_), graph.onnx.TensorProto
    onnx_model = graph.model(
        {
            "label": (graph.add("Gather", labels, codes), graph.type_of(labels), ["n"]),
            "score": (compared, proto.DOUBLE, ["n"] if k == 2 else ["n", k]),
            "rejected": (graph.add("Less", codes, np.array(0)), proto.BOOL, ["n"]),
        }
    )
    onnx_model.producer_name, onnx_model.producer_version = "margrave", margrave.__version__
    for key, value in _make_metadata(model, graph, single).items():
        onnx_model.metadata_props.add(key=key, value=value)
    try:
        content = bytes(onnx_model.SerializeToString(deterministic=True))
        session(content)
    except Exception as error:  # protobuf and onnxruntime raise exceptions of many types
        raise ExportError(
            "The model cannot be written as ONNX: it is too large, or onnxruntime cannot load it."
        ) from error
    return content


def can_export(model: Any) -> bool:
    """Return whether :func:`to_onnx` can convert a model, without writing it.

    The size of the file, and whether onnxruntime loads it, are not checked.

    Parameters
    ----------
    model : SteeredClassifier
        A fitted model.

    Returns
    -------
    bool
        False if a part of the model has no equivalent in ONNX, or if the extra ``onnx`` is not
        installed.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.export import can_export
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.neighbors import NearestCentroid
    >>> X, y = load("iris", return_X_y=True)
    >>> can_export(SteeredClassifier(GaussianNB(), random_state=0).fit(X, y))
    True
    >>> can_export(SteeredClassifier(NearestCentroid(), random_state=0).fit(X, y))
    False
    """
    check_is_fitted(model, "scorer_")
    try:
        _convert(Graph(outline=True), model)
    except (ExportError, ImportError):
        return False
    return True


def onnx_inputs(session: Any, X: Any) -> dict[str, NDArray[Any]]:
    """Return the inputs of an exported model for a table whose columns have any types.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        A session of a file that :func:`to_onnx` wrote.
    X : data frame or array-like of shape (n_samples, n_features)
        Samples, as for ``predict``; an array only if the model was trained on one.

    Returns
    -------
    dict of str to ndarray
        For each column of numbers, Booleans among them, an array of doubles; for each category, one
        of strings.

    Examples
    --------
    >>> import onnxruntime
    >>> import pandas as pd
    >>> from margrave.export import onnx_inputs, to_onnx
    >>> from margrave.steer import SteeredClassifier
    >>> X = pd.DataFrame({"age": [20, 30, 40, 50] * 20, "smokes": [False, True, True, True] * 20})
    >>> model = SteeredClassifier("logistic", random_state=0).fit(X, [0, 0, 1, 1] * 20)
    >>> session = onnxruntime.InferenceSession(to_onnx(model), providers=["CPUExecutionProvider"])
    >>> session.run(["label"], onnx_inputs(session, X[:4]))[0].tolist()
    [0, 0, 1, 1]
    """
    columns = json.loads(session.get_modelmeta().custom_metadata_map["columns"])
    if not columns:
        return {"X": np.asarray(X, dtype=np.float64)}
    table = X.set_axis([str(name) for name in X.columns], axis=1)
    read = {"number": read_numbers, "category": read_texts}
    return {one["input"]: read[one["kind"]](table[one["column"]])[:, None] for one in columns}


def _convert(graph: Graph, model: Any) -> tuple[str, str, list[str]]:
    """Return the predicted codes, the compared scores, and the members in single precision."""
    package("onnxruntime")
    samples = _convert_samples(graph, model)
    raw, single = _convert_members(graph, model.scorer_, samples)
    scores = convert_scores(graph, model.scorer_, raw)
    return *_decide(graph, model.decision_, scores), single


def _make_metadata(model: Any, graph: Graph, single: list[str]) -> dict[str, str]:
    """Return the metadata of the file."""
    certificate = model.certificate_
    preference = certificate.preference if certificate is not None else model.preference
    return {
        "margrave_version": margrave.__version__,
        "preference": "" if preference is None else str(preference),
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


def _convert_samples(graph: Graph, model: Any) -> Samples:
    """Return a function of a member: its input tensor, or None if it reads the table itself."""
    encoder = model.scorer_.committee.encoder
    if encoder is not None:
        matrix = None if encoder._by_name else graph.matrix(encoder.n_features_in_)
        encoded = encode_table(graph, encoder, matrix)
        return lambda _: encoded
    names = getattr(model, "feature_names_in_", None)

    def samples_for(member: Any) -> str | None:
        if reads_table(member):
            return None
        if names is None and not hasattr(model, "n_features_in_"):
            raise UnsupportedModelError("its number of columns is not known")
        if names is None:
            return graph.matrix(model.n_features_in_)
        return join_numbers(graph, list(getattr(member, "feature_names_in_", names)))

    return samples_for


def _convert_members(graph: Graph, scorer: Scorer, samples: Samples) -> tuple[list[str], list[str]]:
    """Return each member's values, and the names of the members in single precision."""
    fitted = scorer.committee
    raw, single = [], []
    for name, member in zip(fitted.names, fitted.members, strict=True):
        try:
            values, exact = _convert_member(graph, name, member, fitted.classes, samples)
        except UnsupportedModelError as error:
            raise ExportError(
                f"The member {name!r} ({type(member).__name__}) cannot be written as ONNX: {error}."
            ) from error
        raw.append(values)
        single += [] if exact else [name]
    return raw, single


def _convert_member(
    graph: Graph, name: str, member: Any, classes: Any, samples: Samples
) -> tuple[str, bool]:
    """Return a member's values as in `Scores.raw`: (n, 1) for two classes, else (n, k)."""
    own = _labels.encode(fitted_classes(name, member), classes, f"The classes of member {name!r}")
    probabilities = hasattr(member, "predict_proba")
    if not probabilities and not hasattr(member, "decision_function"):
        raise UnsupportedModelError("it predicts labels only")
    if not probabilities and len(own) < len(classes):
        raise UnsupportedModelError("it was not fitted on all classes")
    values, exact = convert_model(graph, member, samples(member))
    if not probabilities and len(own) == 2:
        values = graph.together([graph.add("Neg", values), values])
    columns = np.full(len(classes), len(own))  # of an unseen class: the zeros added at the end
    columns[own] = np.arange(len(own))
    if len(own) < len(classes):
        values = graph.together([values, graph.add("Mul", graph.take(values, [0]), 0.0)])
    values = graph.take(values, columns[1:] if len(classes) == 2 else columns)
    if probabilities:
        values = graph.add("Sub", graph.add("Mul", values, 2.0), 1.0)
        values = graph.clip(values, -1.0, 1.0)
    return values, exact


# Predictions


def _decide(graph: Graph, decision: Decision, scores: str) -> tuple[str, str]:
    """Return the predicted codes, -1 for a rejected sample, and the compared scores."""
    if isinstance(decision, Threshold):
        return _apply_threshold(graph, decision, graph.flat(scores))
    if isinstance(decision, Offsets):
        moved = graph.add("Add", scores, decision.offset)
        doubtful = graph.add("Less", graph.leads(moved), float(decision.doubt))
        best = graph.add("ArgMax", moved, axis=1, keepdims=0)
        return graph.add("Where", doubtful, np.array(_labels.REJECTED), best), moved
    raise ExportError(
        f"The decision cannot be written as ONNX: {type(decision).__name__} is not supported."
    )


def _apply_threshold(graph: Graph, threshold: Threshold, scores: str) -> tuple[str, str]:
    above = graph.add("Greater", scores, float(threshold.high))
    below = graph.add("LessOrEqual", scores, float(threshold.low))
    not_above = graph.add("Where", below, np.array(0), np.array(_labels.REJECTED))
    codes = graph.add("Where", above, np.array(1), not_above)
    largest = -SMALLEST_DIFFERENCE if threshold.rejects else 0.0
    beneath = graph.add("Min", graph.add("Sub", scores, float(threshold.low)), largest)
    inside = graph.add("Where", below, beneath, 0.0)
    over = graph.add("Sub", scores, float(threshold.high))
    return codes, graph.add("Where", above, over, inside)


def _label_table(model: Any) -> Any:
    """Return the classes, followed by the label of a rejected sample."""
    kind, labels = _labels.kind_of(model.classes_), model.classes_.tolist()
    if kind == "numbers":
        whole = model.classes_.dtype.kind in "iu"
        return np.array([*labels, model.reject_label_], dtype=np.int64 if whole else np.float64)
    if kind == "booleans" and not model.decision_.rejects:
        return np.array(labels)
    return np.array([*map(str, labels), model.reject_label_], dtype=object)
