"""AdaptiveMartingaleBoostClassifier: positions, steps, cells, and the sign at the end."""

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, Perceptron
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from tests.examples import few

from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    TunableLogistic,
)
from margrave.martingale._adaptive import PositionRouting
from margrave.martingale._layers import Samples
from margrave.martingale._learners import NodePredictions

SEEDS = st.integers(0, 2**32 - 1)
NO_SHRINKING = (Phase.explicit, Phase.generate)  # a seed is as good as another
ks = pytest.mark.parametrize("k", [2, 3, 4])


@cache
def made(k=2, n=120, seed=0, **more):
    """Overlapping classes; half to train on, half not."""
    settings_ = {"flip_y": 0.15, "class_sep": 0.6, **more}
    X, y = make_classification(
        2 * n, 6, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        random_state=seed, **settings_
    )  # fmt: skip
    return X[::2], y[::2], X[1::2], y[1::2]


def walked(model, x):
    """The nodes that one sample comes to and its final position, step by step."""
    k, nodes = len(model.classes_), model.program_.nodes
    position, at, path, unseen = np.zeros(k), 0, [0], False
    for layer, step in enumerate(model.steps_):
        p = np.zeros(k)
        if nodes[at].kind == "constant":
            p[nodes[at].prediction] = 1
        else:
            p[model.learners_[at].classes_] = model.learners_[at].predict_proba(x[None])[0]
        position = position + step * (p - 1 / k)
        following = [i for i, node in enumerate(nodes) if node.layer == layer + 1]
        if layer + 1 == model.n_levels:
            (at,) = [i for i in following if nodes[i].prediction == position.argmax()]
        else:
            cell = np.rint(position / model.width)
            cells = np.array(
                [np.rint(np.array(nodes[i].position) / model.width) for i in following]
            )
            distance = np.abs(cells - cell).sum(axis=1)
            unseen |= bool(distance.min() > 0)
            at = following[int(distance.argmin())]
        path.append(at)
    return path, position, unseen


# Positions


@ks
@pytest.mark.parametrize(("width", "learner"), [(0.3, None), (1.0, GaussianNB())])
def test_a_sample_moves_by_the_confidence_times_the_step(k, width, learner):
    X, y, X_new, _ = made(k, 60)
    model = AdaptiveMartingaleBoostClassifier(learner, 4, width=width).fit(X, y)
    X_new = X_new[:15]
    paths, proba = model.decision_path(X_new), model.predict_proba(X_new)
    scores, predictions = model.decision_function(X_new), model.predict(X_new)
    for i, x in enumerate(X_new):
        path, position, _ = walked(model, x)
        assert np.sort(paths[[i]].indices).tolist() == path
        expected = model.sharpness_ * position
        own = expected[1] - expected[0] if k == 2 else expected
        np.testing.assert_allclose(scores[i], own, atol=1e-9)
        np.testing.assert_allclose(proba[i], np.exp(expected) / np.exp(expected).sum())
        assert predictions[i] == position.argmax()


@pytest.mark.parametrize("k", [2, 3])
def test_samples_in_cells_that_training_has_not_seen_go_to_the_nearest_node(k):
    X, y, X_new, y_new = made(k, 60)
    model = AdaptiveMartingaleBoostClassifier(GaussianNB(), 4, width=0.005).fit(X, y)
    paths = model.decision_path(X_new)
    unseen = []
    for i, x in enumerate(X_new):
        path, _, new = walked(model, x)
        unseen.append(new)
        assert np.sort(paths[[i]].indices).tolist() == path
    assert sum(unseen) > 10
    known = {(edge.start, edge.end) for edge in model.program_.edges}
    program = model.measured(X_new, y_new)
    taken = {(edge.start, edge.end) for edge in program.edges}
    assert taken >= known  # and paths of their own
    assert program.flow.sum() == paths.sum() - len(X_new)
    assert program.nodes == model.program_.nodes


def test_training_samples_are_in_known_cells():
    X, y, *_ = made(3, 60)
    model = AdaptiveMartingaleBoostClassifier(n_levels=3, width=0.05).fit(X, y)
    assert not any(walked(model, x)[2] for x in X[::3])


def test_far_samples_stay_within_the_program():
    X, y, X_new, _ = made()
    model = AdaptiveMartingaleBoostClassifier(n_levels=5, width=0.1).fit(X, y)
    proba = model.predict_proba(1e8 * X_new)
    assert np.isfinite(proba).all()
    assert set(model.predict(1e8 * X_new)) == {0, 1}


def test_the_position_of_a_node_is_the_middle_of_its_cell():
    X, y, *_ = made()
    model = AdaptiveMartingaleBoostClassifier(n_levels=3, width=0.25).fit(X, y)
    for node in model.program_.nodes:
        if node.layer < 3:
            cells = np.array(node.position) / 0.25
            np.testing.assert_allclose(cells, np.rint(cells))
    for x in X[:30]:
        position, at = np.zeros(2), 0
        p = model.learners_[at].predict_proba(x[None])[0]
        position = position + model.steps_[0] * (p - 0.5)
        first = np.sort(model.decision_path(x[None]).indices)[1]
        middle = np.array(model.program_.nodes[first].position)
        assert (np.abs(position - middle) <= 0.125 + 1e-9).all()


# The end


@ks
def test_the_last_layer_has_a_leaf_for_each_class(k):
    X, y, *_ = made(k)
    model = AdaptiveMartingaleBoostClassifier(n_levels=3).fit(X, y)
    last = [node for node in model.program_.nodes if node.layer == 3]
    assert sorted(node.prediction for node in last) == list(range(k))
    assert {node.kind for node in last} == {"leaf"}
    assert [node for node in model.program_.nodes if node.is_end] == last
    assert {edge.prediction for edge in model.program_.edges} == {None}


def test_a_class_that_is_never_predicted_has_a_leaf():
    X, y = np.zeros((20, 1)), np.repeat([0, 1], [15, 5])
    model = AdaptiveMartingaleBoostClassifier(balance=False, n_levels=2).fit(X, y)
    assert set(model.predict(X)) == {0}
    assert [node.prediction for node in model.program_.nodes if node.layer == 2].count(1) == 1
    assert model.error_rates() == {0: 0, 1: 1}


def test_the_label_is_the_sign_of_the_final_position():
    X, y, X_new, _ = made()
    model = AdaptiveMartingaleBoostClassifier(n_levels=5).fit(X, np.array(["-", "+"])[y])
    scores = model.decision_function(X_new)
    assert model.classes_.tolist() == ["+", "-"]
    np.testing.assert_array_equal(model.predict(X_new), np.where(scores > 0, "-", "+"))
    ends = np.array([model.decision_path(x[None]).indices.max() for x in X_new[:30]])
    predictions = [model.program_.nodes[end].prediction for end in ends]
    np.testing.assert_array_equal(np.array(["+", "-"])[predictions], model.predict(X_new[:30]))


# Steps


@pytest.mark.parametrize(
    ("codes", "own", "expected"),
    [
        ([0, 0, 0, 1], [0.9, 0.9, 0.9, 0.6], 0.5),  # 2p − 1 of the classes: 0.8 and 0.2
        ([0, 1], [1.0, 1.0], 1.0),
        ([0, 1], [0.5, 0.5], 0.0),
        ([0, 1], [0.2, 0.4], 0.0),  # worse than chance: nobody moves
        ([0, 0, 1], [0.0, 1.0, 0.75], 0.25),
        ([0, 0], [0.75, 0.75], 0.5),  # one class only
    ],
)
def test_the_step_is_the_advantage_of_a_layer_over_the_classes(codes, own, expected):
    codes, own = np.array(codes), np.array(own)
    proba = np.where(np.eye(2)[codes] == 1, own[:, None], 1 - own[:, None])
    samples = Samples(np.zeros((len(codes), 1)), codes, np.ones(len(codes)), 2)
    half = len(codes) // 2
    predictions = [
        NodePredictions(proba.argmax(axis=1)[rows], proba[rows])
        for rows in np.split(np.arange(len(codes)), [half])
    ]
    step = PositionRouting(3, 1.0).step(
        predictions, np.split(np.arange(len(codes)), [half]), samples
    )
    assert step == pytest.approx(expected)


def test_certain_and_correct_learners_have_a_step_of_1():
    samples = Samples(np.zeros((3, 1)), np.arange(3), np.ones(3), 3)
    rows, positions = [np.arange(3)], PositionRouting(2, 1.0)
    for sure, expected in ((1.0, 1.0), (1 / 3, 0.0), (2 / 3, 0.5)):
        proba = np.full((3, 3), (1 - sure) / 2)
        np.fill_diagonal(proba, sure)
        step = positions.step([NodePredictions(np.arange(3), proba)], rows, samples)
        assert step == pytest.approx(expected, abs=1e-12)


def test_a_layer_without_learners_has_a_step_of_1():
    samples = Samples(np.zeros((3, 1)), np.arange(3), np.ones(3), 3)
    assert PositionRouting(2, 1.0).step([], [], samples) == 1


@pytest.mark.parametrize("k", [2, 3])
@settings(few(4), phases=NO_SHRINKING)
@given(seed=SEEDS)
@example(seed=148)  # sure and right, and then some by rounding
def test_steps_are_between_0_and_1(k, seed):
    X, y, *_ = made(k, 40, seed % 200)
    y = np.random.default_rng(seed).permutation(y) if seed % 2 else y
    for learner in (GaussianNB(), DecisionTreeClassifier(max_depth=1)):
        model = AdaptiveMartingaleBoostClassifier(learner, 4, random_state=0).fit(X, y)
        assert model.steps_.shape == (4,)
        assert (model.steps_ >= 0).all()
        assert (model.steps_ <= 1).all()


def test_the_first_step_is_the_advantage_of_the_root():
    X, y, *_ = made(3)
    model = AdaptiveMartingaleBoostClassifier(GaussianNB(), 3).fit(X, y)
    own = model.learners_[0].predict_proba(X)[np.arange(len(y)), y]
    by_class = [own[y == c].mean() for c in range(3)]
    assert model.steps_[0] == pytest.approx((3 * np.mean(by_class) - 1) / 2)


def test_better_layers_move_samples_further():
    near = AdaptiveMartingaleBoostClassifier(n_levels=1).fit(*made(class_sep=0.3)[:2])
    far = AdaptiveMartingaleBoostClassifier(n_levels=1).fit(*made(class_sep=3.0, flip_y=0)[:2])
    assert 0 < near.steps_[0] < far.steps_[0] < 1


# One level, and one cell


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "learner",
    [TunableLogistic(), DecisionTreeClassifier(max_depth=2), GaussianNB(), KNeighborsClassifier(4)],
    ids=lambda one: type(one).__name__,
)
def test_a_program_of_one_level_without_balance_is_its_learner(learner, k):
    X, y, X_new, _ = made(k)
    learner = clone(learner)
    if hasattr(learner, "random_state"):
        learner.set_params(random_state=0)
    model = AdaptiveMartingaleBoostClassifier(learner, 1, balance=False).fit(X, y)
    alone = clone(learner).fit(X, y)
    np.testing.assert_array_equal(model.predict(X_new), alone.predict(X_new))


def test_one_wide_cell_is_one_learner_again_and_again():
    X, y, X_new, _ = made()
    model = AdaptiveMartingaleBoostClassifier(n_levels=5, width=1e6).fit(X, y)
    assert [node.layer for node in model.program_.nodes] == [0, 1, 2, 3, 4, 5, 5]
    np.testing.assert_allclose(model.steps_, model.steps_[0], rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X_new), model.learners_[0].predict(X_new))
    assert len(model.learners_) == 5
    for learner in model.learners_.values():
        np.testing.assert_allclose(learner.coef_, model.learners_[0].coef_, rtol=1e-9)


def test_narrow_cells_are_more_nodes():
    X, y, *_ = made()
    sizes = [
        len(AdaptiveMartingaleBoostClassifier(n_levels=4, width=width).fit(X, y).program_)
        for width in (10.0, 1.0, 0.3, 0.05)
    ]
    assert sizes == sorted(sizes)
    assert len(set(sizes)) == 4


def test_very_narrow_cells_hold_a_sample_each():
    X, y, *_ = made()
    model = AdaptiveMartingaleBoostClassifier(n_levels=2, width=1e-9).fit(X, y)
    second = [at for at, node in enumerate(model.program_.nodes) if node.layer == 1]
    assert len(second) == len(X)
    assert {model.program_.nodes[at].kind for at in second} == {"constant"}


def test_it_differs_from_votes():
    X, y, X_new, _ = made(n=200)
    real = AdaptiveMartingaleBoostClassifier(n_levels=5).fit(X, y)
    votes = MartingaleBoostClassifier(n_levels=5).fit(X, y)
    assert len(set(real.decision_function(X_new))) > 100
    assert len(set(votes.decision_function(X_new))) <= 6


@pytest.mark.parametrize("k", [2, 3])
def test_pure_cells_are_constant(k):
    X, y, *_ = made(k)
    model = AdaptiveMartingaleBoostClassifier(n_levels=5, width=0.2).fit(X, y)
    program = model.program_
    kinds = set()
    for node, came in zip(program.nodes, program.sizes > 0, strict=True):
        if node.layer < 5:
            assert came.any()
            assert node.kind == ("constant" if came.sum() == 1 else "learner")
            assert node.prediction == (int(came.argmax()) if came.sum() == 1 else None)
            kinds.add(node.kind)
    assert kinds == {"constant", "learner"}


def test_the_same_model_predicts_the_same_every_time():
    X, y, X_new, _ = made(3)
    model = AdaptiveMartingaleBoostClassifier(n_levels=4, width=0.1).fit(X, y)
    first = model.predict_proba(X_new)
    np.testing.assert_array_equal(model.predict_proba(X_new), first)
    again = AdaptiveMartingaleBoostClassifier(n_levels=4, width=0.1).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X_new), first)
    np.testing.assert_array_equal(again.steps_, model.steps_)
    order = np.random.default_rng(0).permutation(len(X_new))
    np.testing.assert_allclose(model.predict_proba(X_new[order]), first[order], atol=1e-12)


def test_learners_at_chance_predict_the_first_class():
    X, y = np.zeros((20, 2)), np.arange(20) % 2
    model = AdaptiveMartingaleBoostClassifier(DummyClassifier(), 3).fit(X, y)
    assert model.steps_.tolist() == [0, 0, 0]
    assert set(model.predict(X)) == {0}
    np.testing.assert_allclose(model.predict_proba(X), 0.5)


# Bad input


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 0),
        ("width", -1.0),
        ("width", np.inf),
        ("width", np.nan),
        ("width", True),
        ("width", "1"),
        ("width", None),
        ("n_levels", 0),
        ("n_levels", 1.0),
        ("estimator", LinearSVC()),
        ("estimator", Perceptron()),
        ("estimator", LinearRegression()),
        ("estimator", GaussianMixture()),
        ("estimator", "bayes"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(name, value):
    X, y, *_ = made()
    with pytest.raises(ValueError, match=rf"\b{name}\b.*{re.escape(repr(value))}"):
        AdaptiveMartingaleBoostClassifier(**{name: value}).fit(X, y)


@pytest.mark.parametrize("number", [1, np.float64(0.5), np.float32(0.5), np.int64(1)], ids=repr)
def test_numbers_may_be_numpys(number):
    X, y, X_new, _ = made()
    model = AdaptiveMartingaleBoostClassifier(n_levels=np.int64(3), width=number).fit(X, y)
    plain = AdaptiveMartingaleBoostClassifier(n_levels=3, width=float(number)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X_new), plain.predict_proba(X_new), rtol=1e-9)


@pytest.mark.parametrize("width", [1e-18, 1e-30])
def test_a_width_so_small_that_cells_cannot_be_counted_works_or_is_refused(width):
    """Cells are whole numbers of 64 bits; they must not overflow into each other."""
    X, y, X_new, _ = made(n=30)
    model = AdaptiveMartingaleBoostClassifier(n_levels=2, width=width)
    try:
        model.fit(X, y)
    except ValueError as error:
        named = re.findall(r"\bwidth\b", str(error))
        assert named
    else:
        assert len([node for node in model.program_.nodes if node.layer == 1]) == len(X)
        assert np.isfinite(model.predict_proba(X_new)).all()


def test_steps_need_a_fitted_model():
    assert not hasattr(AdaptiveMartingaleBoostClassifier(), "steps_")
