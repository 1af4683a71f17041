"""Checks of a loaded model: numbers that compiled code uses as positions, and accounts of data.

skops checks the types in a file, not their content. A tree whose node names a child or a column
that does not exist makes scikit-learn read outside of its arrays, which ends the process; a node
that names itself makes it run forever. Each check here raises an error for such content, of any
type: the caller reports the file as damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.neighbors import (
    BallTree,
    KDTree,
    KNeighborsClassifier,
    RadiusNeighborsClassifier,
)
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from margrave.steer._certificate import Use
from margrave.steer._ledger import Account, Ledger
from margrave.steer._scorer import Scorer

_Bools = NDArray[np.bool_]
_PLAIN = (str, bytes, int, float, type(None), np.generic)
_MT19937_SIZE = 624
_PHILOX_SIZE = 4
_MOST_DECIMALS = 1000  # more than a float has


def check_loaded(loaded: Any) -> None:
    """Raise an error if compiled code would leave its arrays, or never end, on a loaded object."""
    objects = list(_walk(loaded))
    # The second kind of checks runs parts of the model, which the first one has checked.
    for checks in (_CONTENT, _RUNS):
        for one in objects:
            for kinds, check in checks:
                if isinstance(one, kinds):
                    check(one)


def _walk(root: Any) -> Iterator[Any]:
    """Yield every object that can be reached from one, once each, without plain values."""
    seen, waiting = set(), [root]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _PLAIN) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += _parts(one)


def _parts(one: Any) -> list[Any]:
    """Return what an object holds."""
    if isinstance(one, np.ndarray):
        return one.ravel().tolist() if one.dtype == object else []
    parts: list[Any] = list(getattr(one, "__dict__", {}).values())
    for kind in type(one).__mro__:
        names = kind.__dict__.get("__slots__", ())
        parts += [getattr(one, n, None) for n in ((names,) if isinstance(names, str) else names)]
    if isinstance(one, dict):
        parts += one.values()
    elif isinstance(one, list | tuple | set | frozenset):
        parts += one
    elif isinstance(one, partial):
        parts += [one.func, one.args, one.keywords]
    elif isinstance(one, MethodType):
        parts.append(one.__self__)
    return parts


def _need(holds: Any) -> None:
    if not holds:
        raise ValueError("positions or shapes in the file do not agree with each other")


def _need_positions(positions: Any, size: int) -> None:
    """Check for integers from 0 up to a size."""
    _need(positions.dtype.kind in "iu" and ((positions >= 0) & (positions < size)).all())


def _need_descending(left: Any, right: Any, inner: _Bools) -> None:
    """Check that inner nodes have children after themselves, so that every path ends."""
    _need(len(inner) >= 1)
    at = np.flatnonzero(inner)
    for child in (left[inner], right[inner]):
        _need_positions(child, len(inner))
        _need((child > at).all())


# Trees


def _check_tree(model: Any) -> None:
    if not hasattr(model, "tree_"):
        return
    tree = model.tree_
    _need(tree.node_count == tree.capacity)  # the size of its arrays
    left, right = tree.children_left, tree.children_right
    inner = left != -1
    _need((right[~inner] == -1).all())
    _need_descending(left, right, inner)
    _need_positions(tree.feature[inner], tree.n_features)
    _need(tree.compute_node_depths().max() <= tree.max_depth + 1 <= tree.node_count)
    _need(tree.n_outputs >= 1 and tree.max_n_classes >= 1)
    _need(tree.n_features == model.n_features_in_)


def _check_forest(model: Any) -> None:
    for tree in np.ravel(getattr(model, "estimators_", [])):
        _check_tree(tree)
        _need(tree.tree_.n_features == model.n_features_in_)


def _check_isolation(model: Any) -> None:
    if hasattr(model, "estimators_"):
        for tree, columns in zip(model.estimators_, model.estimators_features_, strict=True):
            _check_tree(tree)
            _need_positions(columns, model.n_features_in_)
            _need(tree.tree_.n_features <= min(len(columns), model.n_features_in_))


def _check_boosting_columns(model: Any) -> None:
    """Check that the first predictions have the columns that the trees add to."""
    if hasattr(model, "estimators_"):
        first = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))
        _need(first.shape == (1, model.estimators_.shape[1]))


def _check_histogram_trees(model: Any) -> None:
    if not hasattr(model, "_predictors"):
        return
    known, rows = model._bin_mapper.make_known_categories_bitsets()
    _need(len(rows) == model.n_features_in_)
    for predictor in (one for stage in model._predictors for one in stage):
        nodes, bitsets = predictor.nodes, predictor.raw_left_cat_bitsets
        inner = nodes["is_leaf"] == 0
        _need_descending(nodes["left"], nodes["right"], inner)
        _need_positions(nodes["feature_idx"][inner], model.n_features_in_)
        categorical = nodes[inner & (nodes["is_categorical"] != 0)]
        _need_positions(rows[categorical["feature_idx"]], len(known))
        _need_positions(categorical["bitset_idx"], len(bitsets))
        _need(bitsets.ndim == 2 and bitsets.shape[1] == 8)  # 256 categories in words of 32 bits


# Neighbours


def _rebuild(tree: Any) -> None:
    """Build a tree of neighbours again from its samples, so that nothing else is trusted."""
    state = tree.__getstate__()
    samples, leaf_size, metric, weight = np.array(state[0]), state[4], state[-2], state[-1]
    weights = None if weight is None else np.array(weight)
    tree.__init__(samples, leaf_size=int(leaf_size), metric=metric, sample_weight=weights)


def _check_neighbors(model: Any) -> None:
    if hasattr(model, "_y") and np.ndim(model._y) == 1:
        _need(len(model._y) == model._fit_X.shape[0])
        _need_positions(model._y, len(model.classes_))


def _check_centers(model: Any) -> None:
    if hasattr(model, "cluster_centers_"):
        _need(model.cluster_centers_.shape == (model.n_clusters, model.n_features_in_))


# Support vectors


def _check_svm(model: Any) -> None:
    if not hasattr(model, "support_"):
        return
    vectors, counts, n = model.support_vectors_, model._n_support, len(model.support_)
    pairs = len(counts) * (len(counts) - 1) // 2
    _need(vectors.shape[0] == n and (counts >= 0).all() and model.n_support_.sum() == n)
    _need(len(counts) >= 2 and model._dual_coef_.shape == (len(counts) - 1, n))
    _need(not model._sparse or model._dual_coef_.nnz == model._dual_coef_.shape[0] * n)
    _need(len(model._intercept_) == pairs)
    _need(all(len(one) in (0, pairs) for one in (model._probA, model._probB)))
    _need(len(model._probA) == len(model._probB))
    _need_positions(model.support_, model.shape_fit_[0])
    if model.kernel != "precomputed" and not callable(model.kernel):
        _need(vectors.shape[1] == model.n_features_in_)


# Arrays, random numbers and rounding


def _check_sparse(matrix: Any) -> None:
    if matrix.format in ("csr", "csc"):
        matrix.check_format(full_check=True)
    else:
        _need(matrix.format == "coo")
        for positions, size in zip(matrix.coords, matrix.shape, strict=True):
            _need_positions(positions, size)


def _check_generator(generator: Any) -> None:
    legacy = isinstance(generator, np.random.RandomState)
    state = generator.get_state(legacy=False) if legacy else generator.bit_generator.state
    if state["bit_generator"] == "MT19937":
        _need(0 <= state["state"]["pos"] <= _MT19937_SIZE)
    elif state["bit_generator"] == "Philox":
        _need(0 <= state["buffer_pos"] <= _PHILOX_SIZE)


def _check_decimals(scorer: Any) -> None:
    _need(abs(scorer.decimals) < _MOST_DECIMALS)  # NumPy computes the power of ten in a loop


# Accounts of certification data: a damaged one must not grant what is used up


def _check_ledger(ledger: Any) -> None:
    accounts = ledger.in_memory
    _need(isinstance(accounts, list))
    _need(all(isinstance(account, Account) and account.uses for account in accounts))


_FORESTS = (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
_Checks = list[tuple[Any, Callable[[Any], None]]]
_CONTENT: _Checks = [
    ((DecisionTreeClassifier, DecisionTreeRegressor), _check_tree),
    (_FORESTS, _check_forest),
    (IsolationForest, _check_isolation),
    ((HistGradientBoostingClassifier, HistGradientBoostingRegressor), _check_histogram_trees),
    ((KDTree, BallTree), _rebuild),
    ((KNeighborsClassifier, RadiusNeighborsClassifier), _check_neighbors),
    ((KMeans, MiniBatchKMeans, BisectingKMeans), _check_centers),
    ((SVC, NuSVC, SVR, NuSVR, OneClassSVM), _check_svm),
    ((scipy.sparse.sparray, scipy.sparse.spmatrix), _check_sparse),
    ((np.random.RandomState, np.random.Generator), _check_generator),
    (Scorer, _check_decimals),
    (Use, Use.__post_init__),
    (Account, Account.__post_init__),
    (Ledger, _check_ledger),
]
_RUNS: _Checks = [
    ((GradientBoostingClassifier, GradientBoostingRegressor), _check_boosting_columns)
]
