"""Fitted models as ONNX operators, in double precision where possible.

Each function below converts one type of model of scikit-learn or Margrave: a classifier to its
probabilities, or to its decision values if it has none. skl2onnx (`_converted`) converts the models
that have no function here, and those for which the function returns None.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from margrave._typing import Floats
from margrave.export._converted import convert_with_skl2onnx
from margrave.export._graph import Graph, Tree
from margrave.export._preprocessing import encode_table, quantiles, scaler
from margrave.martingale import MartingaleBoostClassifier, TunableLogistic
from margrave.table import TableEncoder

Converter = Callable[[Graph, Any, str], str | None]


class UnsupportedModelError(Exception):
    """The reason why a model cannot be converted; the caller adds the model's name."""


class Output(NamedTuple):
    """A tensor, and whether it is computed in double precision."""

    tensor: str
    exact: bool


def convert_model(graph: Graph, model: Any, x: str | None) -> Output:
    """Add a fitted model: its probabilities, decision values or transformed samples.

    Parameters
    ----------
    graph : Graph
        The graph to extend.
    model : classifier or transformer
        The fitted model.
    x : str or None
        The samples, of shape (n, d); None if the model reads a table.

    Returns
    -------
    Output

    Raises
    ------
    UnsupportedModelError
        If the model cannot be converted.
    """
    model = _unwrap(model)
    if isinstance(model, Pipeline):
        return _convert_pipeline(graph, model, x)
    if type(model) is TableEncoder and model._by_name == (x is None):
        return Output(encode_table(graph, model, x), True)
    convert = _CONVERTERS.get(type(model))
    tensor = None if convert is None or x is None else convert(graph, model, x)
    if tensor is not None:
        return Output(tensor, True)
    converted = None if x is None else convert_with_skl2onnx(graph, model, x)
    if converted is None:
        raise UnsupportedModelError(f"skl2onnx has no equivalent of its {type(model).__name__}")
    return Output(*converted)


def _convert_pipeline(graph: Graph, model: Pipeline, x: str | None) -> Output:
    exact = True
    for name, step in model.steps:
        if step is None or step == "passthrough":
            continue
        if name != model.steps[-1][0] and is_classifier(step):
            raise UnsupportedModelError(
                f"its step {type(step).__name__} transforms samples, and only the predictions of "
                "a classifier can be written"
            )
        x, step_exact = convert_model(graph, step, x)
        exact = exact and step_exact
    return Output(str(x), exact)


def reads_table(model: Any) -> bool:
    """Return whether a model reads the columns of a table by name."""
    model = _unwrap(model)
    if isinstance(model, Pipeline):
        return reads_table(model.steps[0][1])
    return type(model) is TableEncoder and model._by_name


def _unwrap(model: Any) -> Any:
    """Return the best model of a search, or the model in a FrozenEstimator."""
    while hasattr(model, "best_estimator_") or isinstance(model, FrozenEstimator):
        frozen = isinstance(model, FrozenEstimator)
        model = model.estimator if frozen else model.best_estimator_
    return model


# Linear models


def _tunable_logistic(graph: Graph, model: TunableLogistic, x: str) -> str:
    coef, intercept = _for_each_class(model)
    return graph.add("Softmax", graph.line(x, coef.T, intercept), axis=1)


def _for_each_class(model: TunableLogistic) -> tuple[Floats, Floats]:
    """Return coefficients and intercepts of every class, with the offset added."""
    coef, intercept = model.coef_, model.intercept_
    if len(coef) == 1:
        coef, intercept = np.vstack([np.zeros_like(coef), coef]), np.append(0.0, intercept)
    return coef, intercept + model.offset_


def _logistic(graph: Graph, model: Any, x: str) -> str:
    scores = graph.line(x, model.coef_.T, model.intercept_)
    return _probabilities(graph, scores, len(model.classes_))


def _linear(graph: Graph, model: Any, x: str) -> str | None:
    if hasattr(model, "predict_proba"):
        return None
    # With two classes some models have a vector.
    return graph.line(x, np.atleast_2d(model.coef_).T, model.intercept_)


def _probabilities(graph: Graph, scores: str, k: int) -> str:
    """Return probabilities from log-odds of the second of two classes, or from k scores."""
    if k > 2:
        return graph.add("Softmax", scores, axis=1)
    p = graph.add("Sigmoid", scores)
    return graph.together([graph.add("Sub", 1.0, p), p])


# Discriminant analysis and support vector machines


def _quadratic_discriminant(graph: Graph, model: QuadraticDiscriminantAnalysis, x: str) -> str:
    scores = []
    for mean, rotation, scaling, prior in zip(
        model.means_, model.rotations_, model.scalings_, model.priors_, strict=True
    ):
        whitened = graph.product(graph.add("Sub", x, mean), rotation * scaling**-0.5)
        distance = graph.add("ReduceSumSquare", whitened, np.array([1]), keepdims=1)
        distance = graph.add("Add", distance, float(np.log(scaling).sum()))
        scores.append(graph.add("Add", graph.add("Mul", distance, -0.5), float(np.log(prior))))
    return graph.add("Exp", graph.add("LogSoftmax", graph.together(scores), axis=1))


def _svm(graph: Graph, model: Any, x: str) -> str | None:
    if hasattr(model, "predict_proba"):
        return None
    kernel = _kernel(graph, model, x)
    k = len(model.classes_)
    if kernel is None or k == 2:
        return kernel and graph.line(kernel, model.dual_coef_.T, model.intercept_)
    pairs = list(combinations(range(k), 2))
    ends = np.cumsum(model.n_support_)
    weights = np.zeros((len(model.support_vectors_), len(pairs)))
    signs = np.zeros((len(pairs), k))
    for pair, (i, j) in enumerate(pairs):
        of_i, of_j = (slice(ends[c] - model.n_support_[c], ends[c]) for c in (i, j))
        weights[of_i, pair] = model.dual_coef_[j - 1, of_i]
        weights[of_j, pair] = model.dual_coef_[i, of_j]
        signs[pair, [i, j]] = 1.0, -1.0
    # As in scikit-learn: the votes of the pairs; the sums of their decision values break ties.
    decisions = graph.line(kernel, weights, model.intercept_)
    lost = graph.doubles(graph.add("Less", decisions, 0.0))
    votes = graph.line(lost, -signs, (signs > 0).sum(axis=0).astype(float))
    sums = graph.product(decisions, signs)
    size = graph.add("Mul", graph.add("Add", graph.add("Abs", sums), 1.0), 3.0)
    return graph.add("Add", votes, graph.add("Div", sums, size))


def _kernel(graph: Graph, model: Any, x: str) -> str | None:
    """Return the kernel of samples and support vectors; None for an unsupported kernel."""
    points, gamma = model.support_vectors_, float(model._gamma)  # the number behind "scale"
    if model.kernel == "rbf":
        return graph.add("Exp", graph.add("Mul", graph.squared_distances(x, points), -gamma))
    if model.kernel not in ("linear", "poly", "sigmoid"):
        return None
    inner = graph.product(x, points.T)
    if model.kernel == "linear":
        return inner
    inner = graph.add("Add", graph.add("Mul", inner, gamma), float(model.coef0))
    if model.kernel == "sigmoid":
        return graph.add("Tanh", inner)
    return graph.add("Pow", inner, float(model.degree))


# Trees


def _forest(graph: Graph, model: Any, x: str) -> str:
    trees = [member.tree_ for member in getattr(model, "estimators_", [model])]
    rounded = graph.doubles(graph.singles(x))  # scikit-learn's trees round samples to float32
    leaves = graph.leaves(rounded, [_tree(tree) for tree in trees])
    values = np.concatenate([tree.value[tree.children_left < 0, 0] for tree in trees])
    total = graph.add("ReduceSum", graph.add("Gather", values, leaves), np.array([1]), keepdims=0)
    return graph.add("Div", total, float(len(trees)))


def _tree(tree: Any) -> Tree:
    return Tree(
        feature=tree.feature,
        threshold=tree.threshold,
        left=tree.children_left,
        right=tree.children_right,
        missing_left=tree.missing_go_to_left,
        is_leaf=tree.children_left < 0,
    )


def _gradient_boosting(graph: Graph, model: HistGradientBoostingClassifier, x: str) -> str | None:
    if np.any(model.is_categorical_):
        return None
    # scikit-learn has no public attributes for the trees and the baseline.
    nodes = [tree.nodes for layer in model._predictors for tree in layer]
    start = np.asarray(model._baseline_prediction, dtype=np.float64).ravel()
    leaves = graph.leaves(x, [_histogram_tree(tree) for tree in nodes])
    values = np.concatenate([tree["value"][tree["is_leaf"].astype(bool)] for tree in nodes])
    shape = np.array([0, -1, len(start)])
    by_layer = graph.add("Reshape", graph.add("Gather", values, leaves), shape)
    total = graph.add("ReduceSum", by_layer, np.array([1]), keepdims=0)
    return _probabilities(graph, graph.add("Add", total, start), len(model.classes_))


def _histogram_tree(nodes: Any) -> Tree:
    return Tree(
        feature=nodes["feature_idx"],
        threshold=nodes["num_threshold"],
        left=nodes["left"],
        right=nodes["right"],
        missing_left=nodes["missing_go_to_left"],
        is_leaf=nodes["is_leaf"].astype(bool),
    )


# Martingale programs


def _program(graph: Graph, model: MartingaleBoostClassifier, x: str) -> str:
    program, k = model._fitted_program, len(model.classes_)
    learners, n_nodes = program.learners, len(program.nodes)
    if any(type(learner) is not TunableLogistic for learner in learners.values()):
        raise UnsupportedModelError("only programs of TunableLogistic can be written")
    # Every learner predicts every sample; number 0 is for nodes without a learner.
    number = np.zeros(n_nodes, dtype=np.int64)
    number[list(learners)] = np.arange(1, len(learners) + 1)
    coef = np.zeros((len(learners) + 1, k, model.n_features_in_))
    intercept = np.full((len(learners) + 1, k), -np.inf)
    intercept[0] = 0.0
    for node, learner in learners.items():
        known = learner.classes_
        coef[number[node], known], own = _for_each_class(learner)
        intercept[number[node], known] = own + program.offset[known]
    scores = graph.line(x, coef.reshape(-1, coef.shape[2]).T, intercept.ravel())
    scores = graph.add("Reshape", scores, np.array([0, -1, k]))
    predictions = graph.add("ArgMax", scores, axis=2, keepdims=0)
    children = program.children().ravel()
    at = graph.add("Gather", children, graph.take(predictions, [number[0]]))
    for _ in program.steps[1:]:
        learner = graph.add("Gather", number, at)
        predicted = graph.add("GatherElements", predictions, learner, axis=1)
        edge = graph.add("Add", graph.add("Mul", at, np.array([k])), predicted)
        at = graph.add("Gather", children, edge)
    ends = graph.add("Gather", model._end_scores(), graph.flat(at))
    return graph.add("Softmax", ends, axis=1)


_CONVERTERS: dict[type, Converter] = {
    TunableLogistic: _tunable_logistic,
    LogisticRegression: _logistic,
    LogisticRegressionCV: _logistic,
    LinearDiscriminantAnalysis: _logistic,
    LinearSVC: _linear,
    Perceptron: _linear,
    RidgeClassifier: _linear,
    RidgeClassifierCV: _linear,
    SGDClassifier: _linear,
    QuadraticDiscriminantAnalysis: _quadratic_discriminant,
    SVC: _svm,
    NuSVC: _svm,
    DecisionTreeClassifier: _forest,
    ExtraTreeClassifier: _forest,
    ExtraTreesClassifier: _forest,
    RandomForestClassifier: _forest,
    HistGradientBoostingClassifier: _gradient_boosting,
    MartingaleBoostClassifier: _program,
    QuantileTransformer: quantiles,
    StandardScaler: scaler,
}
