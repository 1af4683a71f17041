"""Growing a program by more levels: as if trained so, and what was tuned stays."""

import pickle
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from tests.examples import few

from margrave import datasets
from margrave.martingale import MartingaleBoostClassifier, TunableLogistic

LEARNERS = {
    "tunable": lambda: None,
    "bayes": GaussianNB,
    "tree": lambda: DecisionTreeClassifier(max_depth=2, max_features=1),
    "drawn": LinearDiscriminantAnalysis,  # takes no weights
}


@cache
def made(k=2, n=120, seed=0):
    """Samples to train on, and to tune on; not to be changed."""
    X, y = make_classification(
        2 * n, 5, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.15, class_sep=0.7, random_state=seed,
    )  # fmt: skip
    return X[::2], y[::2], X[1::2], y[1::2]


@cache
def grown(n_levels=3, k=2, freeze=None):
    X, y, *_ = made(k)
    return MartingaleBoostClassifier(n_levels=n_levels, freeze=freeze).fit(X, y)


def assert_same(one, other, X):
    a, b = one.program_, other.program_
    assert (a.nodes, a.edges) == (b.nodes, b.edges)
    np.testing.assert_array_equal(a.counts, b.counts)
    np.testing.assert_array_equal(a.flow, b.flow)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert str(one.get_params()) == str(other.get_params())
    assert one.sharpness_ == pytest.approx(other.sharpness_, rel=1e-9)
    assert one.tuning_ is None


def locals_of(model, X, y, below):
    """Local matrices of nodes with a learner in the first layers, by their votes."""
    program = model.measured(X, y)
    return {
        node.position: program.counts[place].tolist()
        for place, node in enumerate(program.nodes)
        if node.kind == "learner" and node.layer < below
    }


# As if trained with more levels


@few(12)
@given(
    k=st.integers(2, 3),
    seed=st.integers(0, 3),
    first=st.integers(1, 4),
    levels=st.integers(1, 3),
    freeze=st.sampled_from([None, 0.3, 2.0, 8.0]),
    balance=st.booleans(),
)
def test_growing_equals_training_with_more_levels(k, seed, first, levels, freeze, balance):
    X, y, X_new, _ = made(k, seed=seed)
    how = {"freeze": freeze, "balance": balance}
    small = MartingaleBoostClassifier(n_levels=first, **how).fit(X, y)
    whole = MartingaleBoostClassifier(n_levels=first + levels, **how).fit(X, y)
    assert_same(small.grow(levels), whole, X_new)


@pytest.mark.parametrize("freeze", [None, 6.0])
@pytest.mark.parametrize("learner", LEARNERS)
def test_growing_equals_training_with_any_learner_and_weights(learner, freeze):
    X, y, X_new, _ = made()
    weights = np.random.default_rng(0).integers(0, 3, len(y)) * 0.5
    how = {"estimator": LEARNERS[learner](), "freeze": freeze, "random_state": 3}
    small, whole = (MartingaleBoostClassifier(n_levels=n, **how).fit(X, y, weights) for n in (2, 4))
    assert_same(small.grow(2), whole, X_new)
    assert_same(small.grow().grow(), whole, X_new)


def test_a_node_that_was_frozen_may_grow_on():
    """The rule is ε / (L (L + 1)): it freezes less in a larger program."""
    _, _, X_new, _ = made()
    small, whole = (grown(n, freeze=6.0) for n in (3, 6))
    frozen = {node.position for node in small.program_.nodes if node.kind == "frozen"}
    later = {node.position: node.kind for node in whole.program_.nodes}
    assert any(later[position] == "learner" for position in frozen)
    assert_same(small.grow(3), whole, X_new)


def test_one_node_at_a_time_or_several():
    X, y, X_new, _ = made(3)
    model = MartingaleBoostClassifier(n_levels=2, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(
        model.grow(2).predict_proba(X_new), grown(4, 3).predict_proba(X_new), rtol=1e-9
    )


def test_the_copy_is_a_classifier_of_so_many_levels():
    X, y, X_new, _ = made()
    model = grown(2)
    before = pickle.dumps(model)
    taller = model.grow(np.int64(3))
    assert (taller.n_levels, taller.program_.n_levels) == (5, 5)
    assert pickle.dumps(model) == before, "the model itself is as it was"
    assert_same(clone(taller).fit(X, y), taller, X_new)
    assert_same(pickle.loads(pickle.dumps(taller)).grow(), grown(6), X_new)  # noqa: S301


def test_sparse_samples():
    X, y, X_new, _ = made()
    trees = MartingaleBoostClassifier(DecisionTreeClassifier(max_depth=2), 2, random_state=0)
    model = trees.fit(sparse.csr_matrix(X), y)
    whole = clone(trees).set_params(n_levels=3).fit(sparse.csr_matrix(X), y)
    assert_same(model.grow(), whole, sparse.csr_matrix(X_new))


# What was tuned


def test_tuned_nodes_stay_as_they_are():
    _, _, X_tune, y_tune = made()
    tuned = grown().tune({(0, 0): "fp <= 12", (1, 1): "fn <= 5"}, X_tune, y_tune, granularity="all")
    assert tuned.tuning_.met
    taller = tuned.grow(2)
    assert locals_of(taller, X_tune, y_tune, 3) == locals_of(tuned, X_tune, y_tune, 3)
    kept = [taller.learners_[place] for place in tuned.learners_]
    assert all(one is other for one, other in zip(tuned.learners_.values(), kept, strict=True))
    assert taller.tuning_ is None
    assert taller.program_.n_levels == 5


@pytest.mark.parametrize("learner", ["tunable", "bayes"])
@pytest.mark.parametrize("wanted", ["fp <= 4", "fn <= 4"])
def test_growing_keeps_the_tuning_of_the_whole_program(learner, wanted):
    X, y, X_tune, y_tune = made()
    model = MartingaleBoostClassifier(LEARNERS[learner](), 3).fit(X, y)
    tuned = model.tune(wanted, X_tune, y_tune)
    taller = tuned.grow()
    np.testing.assert_array_equal(taller.offset_, tuned.offset_)
    assert locals_of(taller, X_tune, y_tune, 3) == locals_of(tuned, X_tune, y_tune, 3)
    plain = model.grow()
    assert locals_of(plain, X_tune, y_tune, 3) == locals_of(model, X_tune, y_tune, 3)


def test_a_node_with_other_samples_keeps_its_hyperparameters():
    """A frozen node may send samples on in a larger program, and nodes below get them."""
    _, _, X_tune, y_tune = made()
    model = grown(3, freeze=1.0)
    tuned = model.tune({(1, 1): "fp <= 1"}, X_tune, y_tune, granularity="all")
    assert tuned.tuning_.nodes[1, 1].n_models > 0
    taller = tuned.grow(2)
    place, placed = (one.program_.at((1, 1)) for one in (tuned, taller))
    assert tuned.program_.sizes[place].tolist() != taller.program_.sizes[placed].tolist()
    found, kept = tuned.learners_[place].get_params(), taller.learners_[placed].get_params()
    assert found == kept != TunableLogistic().get_params()


def test_a_grown_program_can_be_tuned_and_grown_again():
    _, _, X_tune, y_tune = made()
    model = grown(2).grow()
    one = model.tune({(1, 1): "fp <= 3"}, X_tune, y_tune, granularity="all")
    other = grown(3).tune({(1, 1): "fp <= 3"}, X_tune, y_tune, granularity="all")
    np.testing.assert_allclose(one.predict_proba(X_tune), other.predict_proba(X_tune), rtol=1e-9)
    assert one.grow().tune("fp <= 5", X_tune, y_tune).tuning_.after.fp <= 5


# Node by node, from what is there


def not_below(votes, node):
    return not all(mine >= its for mine, its in zip(votes, node, strict=True))


@pytest.mark.filterwarnings("ignore::margrave.martingale.NotMetWarning")
@pytest.mark.parametrize("node", [(0, 1), (1, 1)])
@pytest.mark.parametrize("wanted", ["fp <= 6", "fn <= 6"])
def test_nodes_not_below_a_tuned_one_stay_to_the_last_digit(node, wanted):
    """Also where a request for the whole had tuned them, roughly and with an offset of all."""
    _, _, X_tune, y_tune = made()
    before = grown(4).tune(wanted, X_tune, y_tune)
    program = before.measured(X_tune, y_tune)
    local = program.confusion(program.at(node))
    after = before.tune(
        {node: f"fp <= {local.fp // 2}, fn <= {local.fn}"},
        X_tune,
        y_tune,
        granularity="all",
        max_models=2,
    )
    was, now = (locals_of(model, X_tune, y_tune, 4) for model in (before, after))
    others = [votes for votes in was if not_below(votes, node)]
    assert (0, 0) in others
    for votes in others:
        assert now[votes] == was[votes]
        a, b = (model.learners_[model.program_.at(votes)].coef_ for model in (before, after))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("k", [2, 3])
def test_met_preferences_change_nothing(k):
    _, _, X_tune, y_tune = made(k)
    once = grown(3, k).tune({(0,) * k: "fp(0) <= 9"}, X_tune, y_tune, granularity="all")
    program = once.measured(X_tune, y_tune)
    wants = {}
    for place, learner in once.learners_.items():
        if len(learner.classes_) == k and program.sizes[place].all():
            right = program.confusion(place).counts.diagonal().tolist()
            votes = tuple(map(int, program.nodes[place].position))
            wants[votes] = ", ".join(f"correct({c}) >= {n}" for c, n in enumerate(right))
    assert len(wants) > 1
    again = once.tune(wants, X_tune, y_tune, granularity="all")
    assert set(again.tuning_.nodes) == set(wants)
    assert again.tuning_.met
    assert again.tuning_.n_models == 0
    np.testing.assert_array_equal(once.predict_proba(X_tune), again.predict_proba(X_tune))
    for place, learner in once.learners_.items():
        assert again.learners_[place] is learner


# Places, and what is refused


def test_a_node_is_found_by_its_votes():
    program = grown().program_
    for place, node in enumerate(program.nodes):
        assert program.at(node.position) == place
        assert program.at(list(map(int, node.position))) == place
    with pytest.raises(ValueError, match=r"\(9, 9\)"):
        program.at((9, 9))


@pytest.mark.parametrize("levels", [0, -1, 1.5, True, "2", None, 1000, 10**30])
def test_levels_that_are_no_count_are_refused(levels):
    with pytest.raises(ValueError, match=rf"\.grow\b.*\blevels\b.*{levels!r}"):
        grown().grow(levels)


def test_an_unfitted_model_does_not_grow():
    with pytest.raises(NotFittedError):
        MartingaleBoostClassifier().grow()


def test_a_model_without_its_training_data_only_predicts():
    _, _, X_tune, y_tune = made()
    model = grown().grow()
    bare = pickle.loads(pickle.dumps(model.without_training_data()))  # noqa: S301
    np.testing.assert_array_equal(bare.predict_proba(X_tune), model.predict_proba(X_tune))
    assert len(pickle.dumps(bare)) < len(pickle.dumps(model))
    for what, call in {
        "grow": bare.grow,
        "tune": lambda: bare.tune("fp <= 3", X_tune, y_tune),
    }.items():
        with pytest.raises(ValueError, match=rf"MartingaleBoostClassifier\.{what}\b"):
            call()


def test_iris():
    iris = datasets.load("iris")
    small, whole = (
        MartingaleBoostClassifier(n_levels=n).fit(iris.data, iris.target) for n in (1, 5)
    )
    assert_same(small.grow(4), whole, iris.data)
