"""Trained members as ONNX operators, in double precision wherever we know how.

Each function below writes what one scikit-learn model, or one of ours, computes; a classifier that
gives probabilities becomes those, any other its decision values. Models without a function here,
and those it answers None for, are left to skl2onnx (`_onnx_foreign`).
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
from margrave.export._converted import foreign
from margrave.export._graph import Graph, Tree
from margrave.export._preprocessing import encoded, quantiles, scaler
from margrave.martingale import MartingaleBoostClassifier, TunableLogistic
from margrave.table._encoder import TableEncoder

Write = Callable[[Graph, Any, str], str | None]


class UnableError(Exception):
    """Why a model cannot be written, to be told with its name."""


class Written(NamedTuple):
    """A tensor, and whether it is computed in double precision."""

    tensor: str
    exact: bool


def written(graph: Graph, model: Any, x: str | None) -> Written:
    """A trained model on samples: probabilities, decision values, or samples transformed.

    Parameters
    ----------
    graph : Graph
        Where to write it.
    model : classifier or transformer
        Trained.
    x : str or None
        The samples, of shape (n, d); None if the model starts with a table.

    Raises
    ------
    UnableError
        If it cannot be written.
    """
    model = _core(model)
    if isinstance(model, Pipeline):
        return _steps(graph, model, x)
    if type(model) is TableEncoder and model._by_name == (x is None):
        return Written(encoded(graph, model, x), True)
    write = _OWN.get(type(model))
    tensor = None if write is None or x is None else write(graph, model, x)
    if tensor is not None:
        return Written(tensor, True)
    other = None if x is None else foreign(graph, model, x)
    if other is None:
        raise UnableError(f"skl2onnx has no equal of its {type(model).__name__}")
    return Written(*other)


def _steps(graph: Graph, model: Pipeline, x: str | None) -> Written:
    """One step after another."""
    exact = True
    for name, step in model.steps:
        if step is None or step == "passthrough":
            continue
        if name != model.steps[-1][0] and is_classifier(step):
            raise UnableError(f"its step {type(step).__name__} transforms, and only answers can be")
        x, same = written(graph, step, x)
        exact = exact and same
    return Written(str(x), exact)


def starts_with_a_table(model: Any) -> bool:
    """Whether a model reads the columns of a table for itself."""
    model = _core(model)
    if isinstance(model, Pipeline):
        return starts_with_a_table(model.steps[0][1])
    return type(model) is TableEncoder and model._by_name


def _core(model: Any) -> Any:
    """What a search has found, or what is frozen."""
    while hasattr(model, "best_estimator_") or isinstance(model, FrozenEstimator):
        frozen = isinstance(model, FrozenEstimator)
        model = model.estimator if frozen else model.best_estimator_
    return model


# Lines


def _tunable_logistic(graph: Graph, model: TunableLogistic, x: str) -> str:
    coef, intercept = _for_each_class(model)
    return graph.add("Softmax", graph.line(x, coef.T, intercept), axis=1)


def _for_each_class(model: TunableLogistic) -> tuple[Floats, Floats]:
    """Weights and intercepts, offset included."""
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
    # With two classes some have a vector.
    return graph.line(x, np.atleast_2d(model.coef_).T, model.intercept_)


def _probabilities(graph: Graph, scores: str, k: int) -> str:
    """By log-odds of the second of two classes, or a score for each."""
    if k > 2:
        return graph.add("Softmax", scores, axis=1)
    p = graph.add("Sigmoid", scores)
    return graph.together([graph.add("Sub", 1.0, p), p])


# Gaussians and kernels


def _gaussians(graph: Graph, model: QuadraticDiscriminantAnalysis, x: str) -> str:
    scores = []
    for mean, rotation, scaling, prior in zip(
        model.means_, model.rotations_, model.scalings_, model.priors_, strict=True
    ):
        turned = graph.product(graph.add("Sub", x, mean), rotation * scaling**-0.5)
        size = graph.add("ReduceSumSquare", turned, np.array([1]), keepdims=1)
        size = graph.add("Add", size, float(np.log(scaling).sum()))
        scores.append(graph.add("Add", graph.add("Mul", size, -0.5), float(np.log(prior))))
    return graph.add("Exp", graph.add("LogSoftmax", graph.together(scores), axis=1))


def _kernel_machine(graph: Graph, model: Any, x: str) -> str | None:
    if hasattr(model, "predict_proba"):
        return None
    similar = _kernel(graph, model, x)
    k = len(model.classes_)
    if similar is None or k == 2:
        return similar and graph.line(similar, model.dual_coef_.T, model.intercept_)
    pairs = list(combinations(range(k), 2))
    ends = np.cumsum(model.n_support_)
    weights = np.zeros((len(model.support_vectors_), len(pairs)))
    signs = np.zeros((len(pairs), k))
    for place, (i, j) in enumerate(pairs):
        of_i, of_j = (slice(ends[c] - model.n_support_[c], ends[c]) for c in (i, j))
        weights[of_i, place] = model.dual_coef_[j - 1, of_i]
        weights[of_j, place] = model.dual_coef_[i, of_j]
        signs[place, [i, j]] = 1.0, -1.0
    # As scikit-learn has it: the votes of the pairs, and among equals what the pairs say.
    said = graph.line(similar, weights, model.intercept_)
    lost = graph.doubles(graph.add("Less", said, 0.0))
    votes = graph.line(lost, -signs, (signs > 0).sum(axis=0).astype(float))
    sums = graph.product(said, signs)
    size = graph.add("Mul", graph.add("Add", graph.add("Abs", sums), 1.0), 3.0)
    return graph.add("Add", votes, graph.add("Div", sums, size))


def _kernel(graph: Graph, model: Any, x: str) -> str | None:
    """How similar samples are to the support vectors; None for a kernel not known here."""
    points, gamma = model.support_vectors_, float(model._gamma)  # what "scale" has become
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
    trees = [one.tree_ for one in getattr(model, "estimators_", [model])]
    rounded = graph.doubles(graph.singles(x))  # as scikit-learn's trees see samples
    found = graph.leaves(rounded, [_tree(tree) for tree in trees])
    values = np.concatenate([tree.value[tree.children_left < 0, 0] for tree in trees])
    total = graph.add("ReduceSum", graph.add("Gather", values, found), np.array([1]), keepdims=0)
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


def _boosted(graph: Graph, model: HistGradientBoostingClassifier, x: str) -> str | None:
    if np.any(model.is_categorical_):
        return None
    # scikit-learn shows neither its trees nor where they start.
    nodes = [tree.nodes for layer in model._predictors for tree in layer]
    start = np.asarray(model._baseline_prediction, dtype=np.float64).ravel()
    found = graph.leaves(x, [_histogram_tree(one) for one in nodes])
    values = np.concatenate([one["value"][one["is_leaf"].astype(bool)] for one in nodes])
    shape = np.array([0, -1, len(start)])
    by_layer = graph.add("Reshape", graph.add("Gather", values, found), shape)
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


# Programs


def _program(graph: Graph, model: MartingaleBoostClassifier, x: str) -> str:
    layered, k = model._layered, len(model.classes_)
    learners, n_nodes = layered.learners, len(layered.nodes)
    if any(type(learner) is not TunableLogistic for learner in learners.values()):
        raise UnableError("only a program of TunableLogistic can be")
    # Every learner is asked about every sample; place 0 is for nodes that have none.
    asked = np.zeros(n_nodes, dtype=np.int64)
    asked[list(learners)] = np.arange(1, len(learners) + 1)
    coef = np.zeros((len(learners) + 1, k, model.n_features_in_))
    intercept = np.full((len(learners) + 1, k), -np.inf)
    intercept[0] = 0.0
    for node, learner in learners.items():
        known = learner.classes_
        coef[asked[node], known], own = _for_each_class(learner)
        intercept[asked[node], known] = own + layered.offset[known]
    said = graph.line(x, coef.reshape(-1, coef.shape[2]).T, intercept.ravel())
    said = graph.add("Reshape", said, np.array([0, -1, k]))
    answers = graph.add("ArgMax", said, axis=2, keepdims=0)
    ways = _ways(layered, k).ravel()
    at = graph.add("Gather", ways, graph.take(answers, [asked[0]]))
    for _ in layered.steps[1:]:
        answer = graph.add("GatherElements", answers, graph.add("Gather", asked, at), axis=1)
        way = graph.add("Add", graph.add("Mul", at, np.array([k])), answer)
        at = graph.add("Gather", ways, way)
    standings = model._standings(np.arange(n_nodes), np.zeros((n_nodes, k)))
    scores = model.sharpness_ * standings + model.offset_
    return graph.add("Softmax", graph.add("Gather", scores, graph.flat(at)), axis=1)


def _ways(layered: Any, k: int) -> Any:
    """The node after each node and answer; an end is its own."""
    child = np.repeat(np.arange(len(layered.nodes))[:, None], k, axis=1)
    for edge in layered.edges:
        child[edge.start, edge.answer] = edge.end
    for place, node in enumerate(layered.nodes):
        if node.kind == "constant":
            child[place] = child[place, node.answer]
    return child


_OWN: dict[type, Write] = {
    TunableLogistic: _tunable_logistic,
    LogisticRegression: _logistic,
    LogisticRegressionCV: _logistic,
    LinearDiscriminantAnalysis: _logistic,
    LinearSVC: _linear,
    Perceptron: _linear,
    RidgeClassifier: _linear,
    RidgeClassifierCV: _linear,
    SGDClassifier: _linear,
    QuadraticDiscriminantAnalysis: _gaussians,
    SVC: _kernel_machine,
    NuSVC: _kernel_machine,
    DecisionTreeClassifier: _forest,
    ExtraTreeClassifier: _forest,
    ExtraTreesClassifier: _forest,
    RandomForestClassifier: _forest,
    HistGradientBoostingClassifier: _boosted,
    MartingaleBoostClassifier: _program,
    QuantileTransformer: quantiles,
    StandardScaler: scaler,
}
