"""A steered model as an ONNX file, which other programs run without Python.

The graph does what `SteeredClassifier.predict` does: columns are encoded, every member speaks, the
members' values become one score, which is rounded, and cuts or offsets make an answer of it.
Nothing is learned or approximated here; what has no equal in ONNX is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import margrave
from margrave import _labels
from margrave._asking import classes_of
from margrave._replacing import replacing
from margrave.steer._decision import _LEAST, Cut, Decision, Offsets
from margrave.steer._onnx_before import encoded, numbers
from margrave.steer._onnx_graph import ExportError, Graph, package, session
from margrave.steer._onnx_parts import UnableError, starts_with_a_table, written
from margrave.steer._onnx_scores import scores_of
from margrave.steer._panel import Scorer

Samples = Callable[[Any], str | None]


class Exported:
    """What can be written as ONNX."""

    def to_onnx(self) -> bytes:
        """Return the model in the format of ONNX, for other programs to run.

        Its inputs are in double precision: ``X`` of shape (n, n_features) for a model of arrays;
        for one of tables each column by its name, of shape (n, 1). Numbers are NaN where they are
        missing. Categories are texts without spaces around them, whole numbers without decimals,
        and "" where they are missing. A column that is called like an output has a "_" after its
        name.

        Its outputs are ``label``, as :meth:`predict` has it (Booleans are texts if samples may be
        rejected); ``score``, as :meth:`decision_function` has it; and ``rejected``.

        Returns
        -------
        bytes
            The model. Its ``metadata_props`` hold the version of Margrave, preference and
            certificate, the columns, and the members in single precision.

        Raises
        ------
        ExportError
            If a member or a column has no equal in ONNX.

        Notes
        -----
        All members of the default committee are computed in double precision, as are linear
        models, kernel machines, trees, forests, martingale programs, scaling and quantiles in
        members of your own. Scores are then equal to the digits they are rounded to, but for
        probabilities within 1e-6 of 0 or 1 of a model without a committee, of which few digits are
        left. Other members are as skl2onnx has them. Those it has in single precision only, which
        ``metadata_props`` name, may move a score by a millionth of its size: an answer can then
        differ for samples that are so near to a cut.

        No input is checked: where :meth:`predict` would refuse samples, the file answers.

        Examples
        --------
        >>> import onnxruntime
        >>> from margrave import datasets
        >>> from margrave.steer import SteeredClassifier
        >>> from sklearn.svm import SVC
        >>> X, y = datasets.load("iris", return_X_y=True)
        >>> model = SteeredClassifier(SVC()).fit(X, y)
        >>> runs = onnxruntime.InferenceSession(
        ...     model.to_onnx(), providers=["CPUExecutionProvider"]
        ... )
        >>> label, score, rejected = runs.run(None, {"X": X})
        >>> bool((label == model.predict(X)).all())
        True
        """
        check_is_fitted(self, "scorer_")
        return onnx_bytes(self)

    def export_onnx(self, path: str | Path) -> None:
        """Write the model to an ONNX file, all of it or nothing; see :meth:`to_onnx`.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced.

        Raises
        ------
        ExportError
            If a member or a column has no equal in ONNX.
        """
        made = self.to_onnx()
        with replacing(Path(path)) as beside:
            beside.write_bytes(made)


def onnx_bytes(model: Any) -> bytes:
    """A fitted SteeredClassifier in the format of ONNX."""
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
    encoder = model.scorer_.panel.encoder
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
    if model.scorer_.panel.encoder is not None:
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
    panel = scorer.panel
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
    own = _labels.encode(classes_of(name, member), classes, f"The classes of member {name!r}")
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
    if isinstance(decision, Cut):
        return _cut(graph, decision, graph.flat(scores))
    if isinstance(decision, Offsets):
        moved = graph.add("Add", scores, decision.offset)
        doubtful = graph.add("Less", graph.leads(moved), float(decision.doubt))
        best = graph.add("ArgMax", moved, axis=1, keepdims=0)
        return graph.add("Where", doubtful, np.array(_labels.REJECTED), best), moved
    raise ExportError(
        f"The decision cannot be written as ONNX: {type(decision).__name__} is not known there."
    )


def _cut(graph: Graph, cut: Cut, scores: str) -> tuple[str, str]:
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
