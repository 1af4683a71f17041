"""Growing programs: what learners are trained on, seeds, weights, and data of every kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.examples import few

from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    TunableLogistic,
)
from margrave.martingale._layers import Samples
from margrave.martingale._learners import draw_by_weight

BOTH = [MartingaleBoostClassifier, AdaptiveMartingaleBoostClassifier]
RANDOM = DecisionTreeClassifier(splitter="random", max_features=1, max_depth=3)
SEEDS = st.integers(0, 2**32 - 1)


class Recorded(ClassifierMixin, BaseEstimator):
    """A tree that stores its training samples and weights."""

    def fit(self, X, y, sample_weight=None):
        self.y_, self.weights_ = y, sample_weight
        self.tree_ = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y, sample_weight)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        return self.tree_.predict(X)


class Unweighted(Recorded):
    """The same, without weights."""

    def fit(self, X, y):
        return super().fit(X, y)


def made(k=2, n=160, seed=0, **more):
    """Overlapping classes; half to train on, half not."""
    X, y = make_classification(
        2 * n, 6, n_informative=4, n_redundant=0, n_classes=k, n_clusters_per_class=1,
        flip_y=0.15, class_sep=0.6, random_state=seed, **more
    )  # fmt: skip
    return X[::2], y[::2], X[1::2], y[1::2]


def same(one, other, X):
    """Whether two models have the same program and the same predictions for some samples."""
    a, b = one.program_, other.program_
    return (
        (a.nodes, a.edges) == (b.nodes, b.edges)
        and np.array_equal(a.counts, b.counts)
        and np.array_equal(a.flow, b.flow)
        and np.allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9, atol=0)
    )


def counts_hold(model, X, y):
    """Whether the program's account of its training samples is what it predicts."""
    wrong = model.predict(X) != y
    rates = {c: wrong[y == c].mean() for c in model.classes_.tolist()}
    return model.error_rates() == pytest.approx(rates, abs=1e-12)


# One learner


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "learner",
    [
        TunableLogistic(),
        TunableLogistic(1.0, offset=[0.5, -0.5, 0.2]),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        GaussianNB(),
        make_pipeline(StandardScaler(), GaussianNB()),
        KNeighborsClassifier(4),
        LinearDiscriminantAnalysis(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_program_of_one_level_without_balance_is_its_learner(learner, k):
    X, y, X_new, _ = made(k)
    if k == 2 and getattr(learner, "offset", None) is not None:
        learner = clone(learner).set_params(offset=[0.5, -0.5])
    model = MartingaleBoostClassifier(learner, 1, balance=False).fit(X, y)
    alone = clone(learner).fit(X, y)
    assert len(set(alone.predict(X_new))) == k
    np.testing.assert_array_equal(model.predict(X_new), alone.predict(X_new))
    np.testing.assert_array_equal(model.learners_[0].predict(X_new), alone.predict(X_new))


def test_with_balance_it_is_the_learner_with_weighted_classes():
    X, y, X_new, _ = made(weights=[0.8])
    model = MartingaleBoostClassifier(LogisticRegression(), 1).fit(X, y)
    alone = LogisticRegression(class_weight="balanced").fit(X, y)
    np.testing.assert_array_equal(model.predict(X_new), alone.predict(X_new))
    plain = LogisticRegression().fit(X, y)
    assert (model.predict(X_new) != plain.predict(X_new)).any()


# What learners are trained on


@given(
    weights=st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=12, max_size=12),
    rows=st.sets(st.integers(0, 11), min_size=1),
)
def test_balanced_classes_have_equal_weights_and_the_sum_stays(weights, rows):
    codes, weights, rows = np.arange(12) % 3, np.array(weights), np.array(sorted(rows))
    samples = Samples(np.zeros((12, 1)), codes, weights, 3)
    own = samples.balanced(rows)
    assert own.sum() == pytest.approx(weights[rows].sum())
    of_class = np.bincount(codes[rows], own, 3)
    there = samples.mass(rows) > 0
    np.testing.assert_allclose(of_class[there], of_class.sum() / max(there.sum(), 1))
    np.testing.assert_array_equal(own == 0, weights[rows] == 0)
    for c in range(3):  # within a class weights keep their ratios
        of_c = (codes[rows] == c) & (own > 0)
        ratios = own[of_c] / weights[rows][of_c]
        np.testing.assert_allclose(ratios, ratios[:1].repeat(len(ratios)))


@pytest.mark.parametrize("k", [2, 3])
def test_the_classes_have_the_same_weight_at_every_node(k):
    X, y, *_ = made(k, weights=[0.6] + [0.4 / (k - 1)] * (k - 1))
    model = MartingaleBoostClassifier(Recorded(), 4).fit(X, y)
    assert len(model.learners_) > 4
    for at, learner in model.learners_.items():
        received = np.ones(len(learner.y_)) if learner.weights_ is None else learner.weights_
        of_class = np.bincount(learner.y_, received)
        np.testing.assert_allclose(of_class[of_class > 0], of_class.max())
        assert received.sum() == pytest.approx(len(learner.y_))
        came = np.bincount(learner.y_, minlength=k)
        np.testing.assert_array_equal(came, model.program_.sizes[at])


def test_without_balance_the_weights_are_those_of_the_user():
    X, y, *_ = made(weights=[0.7])
    plain = MartingaleBoostClassifier(Recorded(), 3, balance=False).fit(X, y)
    assert all(learner.weights_ is None for learner in plain.learners_.values())
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = MartingaleBoostClassifier(Recorded(), 3, balance=False).fit(X, y, weights)
    np.testing.assert_array_equal(model.learners_[0].weights_, weights)


def test_learners_without_weights_are_balanced_by_drawing():
    X, y, *_ = made(n=1000, weights=[0.9])
    drawn = MartingaleBoostClassifier(Unweighted(), 3, random_state=0).fit(X, y)
    fraction = y.mean()
    assert fraction < 0.25
    for at, learner in drawn.learners_.items():
        assert len(learner.y_) == drawn.program_.sizes[at].sum()
        if len(learner.y_) > 300:
            assert learner.y_.mean() == pytest.approx(0.5, abs=0.1)
    plain = MartingaleBoostClassifier(Unweighted(), 3, balance=False).fit(X, y)
    np.testing.assert_array_equal(plain.learners_[0].y_, y)


def test_samples_of_learners_without_weights_are_drawn_by_weight():
    X, y, *_ = made(n=600)
    weights = np.where(X[:, 0] > 0, 1.0, 1e-6)
    model = MartingaleBoostClassifier(KNeighborsClassifier(1), 1, random_state=0).fit(X, y, weights)
    kept = model.learners_[0]._fit_X
    assert (kept[:, 0] > 0).mean() > 0.99


@given(seed=SEEDS, n=st.integers(3, 30))
def test_a_draw_has_every_class_and_no_sample_of_weight_0(seed, n):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    weights = rng.choice([1e-9, 1.0, 5.0], n)
    X = np.arange(n)[:, None]
    own, of_own = draw_by_weight(X, codes, weights, np.random.SeedSequence(seed))
    assert len(own) == len(of_own) == n
    assert set(of_own) == set(codes)
    np.testing.assert_array_equal(codes[own[:, 0]], of_own)
    again, _ = draw_by_weight(X, codes, weights, np.random.SeedSequence(seed))
    np.testing.assert_array_equal(own, again)


@pytest.mark.parametrize(
    "learner",
    [
        KNeighborsClassifier(2),
        KNeighborsClassifier(5),
        LinearDiscriminantAnalysis(),
        make_pipeline(StandardScaler(), GaussianNB()),
    ],
    ids=["knn2", "knn5", "lda", "pipeline"],
)
@pytest.mark.parametrize("k", [3, pytest.param(2, marks=pytest.mark.slow)])
def test_learners_without_weights_work_or_the_error_names_the_program(learner, k):
    """Nodes far down get a few samples, fewer than the learner may need."""
    X, y, X_new, _ = made(k, 60)
    model = MartingaleBoostClassifier(learner, 9, random_state=0)
    try:
        model.fit(X, y)
    except Exception as error:  # learners fail as they like
        result = " ".join([str(error), *getattr(error, "__notes__", [])])
        assert "MartingaleBoostClassifier" in result
    else:
        assert set(model.predict(X_new)) <= set(y)
        assert counts_hold(model, X, y)


# Chance


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("learner", [None, make_pipeline(StandardScaler(), RANDOM)])
def test_the_same_seed_gives_the_same_program_for_any_number_of_jobs(kind, learner):
    X, y, X_new, _ = made()
    models = [
        kind(learner, 3, random_state=seed, n_jobs=n_jobs).fit(X, y)
        for seed, n_jobs in [(3, None), (3, 1), (3, 2), (4, None)]
    ]
    assert all(same(models[0], other, X_new) for other in models[1:3])
    assert same(models[0], models[3], X_new) == (learner is None)


def test_a_random_state_is_drawn_from_once():
    X, y, X_new, _ = made()
    by_number = MartingaleBoostClassifier(RANDOM, 3, random_state=np.random.RandomState(5))
    one, other = clone(by_number).fit(X, y), clone(by_number).fit(X, y)
    assert same(one, other, X_new)
    state = np.random.RandomState(5)
    first = MartingaleBoostClassifier(RANDOM, 3, random_state=state).fit(X, y)
    second = MartingaleBoostClassifier(RANDOM, 3, random_state=state).fit(X, y)
    assert same(one, first, X_new)
    assert not same(first, second, X_new)


def test_every_node_has_a_seed_of_its_own_unless_the_learner_has_one():
    X, y, *_ = made()
    model = MartingaleBoostClassifier(RANDOM, 4, random_state=0).fit(X, y)
    seeds = [learner.random_state for learner in model.learners_.values()]
    assert len(set(seeds)) == len(seeds) > 4
    fixed = clone(RANDOM).set_params(random_state=7)
    model = MartingaleBoostClassifier(fixed, 4, random_state=0).fit(X, y)
    assert {learner.random_state for learner in model.learners_.values()} == {7}
    assert RANDOM.random_state is None


def test_seeds_reach_into_pipelines():
    X, y, *_ = made()
    learner = make_pipeline(StandardScaler(), RANDOM)
    model = MartingaleBoostClassifier(learner, 2, random_state=0).fit(X, y)
    seeds = [one[-1].random_state for one in model.learners_.values()]
    assert len(set(seeds)) == len(seeds) == 3


def test_fitting_again_gives_the_same_and_changes_no_parameter():
    X, y, X_new, _ = made()
    model = MartingaleBoostClassifier(RANDOM, 4, random_state=1).fit(X, y)
    before = model.get_params()
    again = clone(model).fit(X, y)
    assert same(model, again, X_new)
    other = clone(model).fit(X[:, ::-1], y)
    assert same(model, other.fit(X, y), X_new)
    assert model.get_params() == before


# Weights


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("learner", [None, RANDOM])
def test_samples_of_weight_0_are_left_out(kind, learner):
    X, y, X_new, _ = made(3)
    kept = np.arange(len(y)) % 3 > 0
    weights = np.where(kept, 1.0, 0.0)
    model = kind(learner, 4, random_state=0).fit(X, y, weights)
    assert same(model, kind(learner, 4, random_state=0).fit(X[kept], y[kept]), X_new)
    assert model.program_.sizes[0].sum() == kept.sum()


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("k", "balance"), [(2, True), (3, True), (2, False)])
def test_whole_weights_are_repeated_samples(kind, k, balance):
    X, y, X_new, _ = made(k, 80)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    learner = TunableLogistic(tol=1e-12)
    weighted = kind(learner, 4, balance=balance).fit(X, y, times)
    repeated = kind(learner, 4, balance=balance).fit(X.repeat(times, axis=0), y.repeat(times))
    assert [node.position for node in weighted.program_.nodes] == [
        node.position for node in repeated.program_.nodes
    ]
    np.testing.assert_array_equal(weighted.predict(X_new), repeated.predict(X_new))
    np.testing.assert_allclose(
        weighted.predict_proba(X_new), repeated.predict_proba(X_new), atol=1e-6
    )
    plain = kind(learner, 4, balance=balance).fit(X, y)
    assert (plain.predict_proba(X_new) != weighted.predict_proba(X_new)).any()


def test_freezing_and_ties_go_by_weight():
    X, y, X_new, _ = made()
    times = np.random.default_rng(1).integers(1, 4, len(y))
    learner = TunableLogistic(tol=1e-12)
    weighted = MartingaleBoostClassifier(learner, 4, freeze=3).fit(X, y, times)
    repeated = MartingaleBoostClassifier(learner, 4, freeze=3)
    repeated.fit(X.repeat(times, axis=0), y.repeat(times))
    assert weighted.program_.nodes == repeated.program_.nodes
    assert "frozen" in {node.kind for node in weighted.program_.nodes}
    np.testing.assert_array_equal(weighted.predict(X_new), repeated.predict(X_new))


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("weights", "received"),
    [
        ([1, 2], r"\b160\b.*\(2,\)"),
        (np.r_[-1.0, np.ones(159)], r"-1\.0"),
        (np.zeros(160), r"0\.0"),
    ],
)
def test_bad_weights_are_refused(kind, weights, received):
    X, y, *_ = made()
    with pytest.raises(ValueError, match=rf"{kind.__name__}.*sample_weight.*{received}"):
        kind().fit(X, y, weights)


# Data of every kind


@pytest.mark.parametrize("kind", BOTH)
def test_more_levels_than_data(kind):
    X, y = np.array([[0.0], [1.0], [1.5], [2.0], [3.0]]), np.array([0, 1, 0, 0, 1])
    model = kind(n_levels=40).fit(X, y)
    assert model.program_.n_levels == 40
    assert counts_hold(model, X, y)
    proba = model.predict_proba(np.array([[-1e9], [1.2], [1e9]]))
    assert np.isfinite(proba).all()


@pytest.mark.parametrize("kind", BOTH)
def test_two_samples_are_enough(kind):
    model = kind(n_levels=3).fit([[0.0], [1.0]], ["a", "b"])
    assert model.predict([[0.0], [1.0]]).tolist() == ["a", "b"]
    assert model.error_rates() == {"a": 0, "b": 0}


@pytest.mark.parametrize("kind", BOTH)
def test_constant_features_have_no_effect(kind):
    X, y, X_new, _ = made()
    wide = np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X))])
    wide_new = np.column_stack([X_new, np.full(len(X), 7.0), np.zeros(len(X))])
    plain, model = kind(n_levels=4).fit(X, y), kind(n_levels=4).fit(wide, y)
    np.testing.assert_array_equal(plain.predict(X_new), model.predict(wide_new))
    nothing = kind(n_levels=4).fit(np.ones((30, 2)), np.arange(30) % 3)
    proba = nothing.predict_proba(np.ones((2, 2)))
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba[0], proba[1], rtol=1e-9)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("k", [2, 3])
def test_separable_data_are_learned_without_overflow(kind, k):
    rng = np.random.default_rng(0)
    y = np.arange(90) % k
    X = 1e6 * np.eye(k)[y] + rng.normal(size=(90, k))
    model = kind(n_levels=15).fit(X, y)
    assert model.error_rates() == dict.fromkeys(range(k), 0.0)
    np.testing.assert_array_equal(model.predict(X), y)
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all()
    assert proba.max() < 1


@pytest.mark.parametrize("kind", BOTH)
def test_collinear_features_do_no_harm(kind):
    X, y, X_new, _ = made()
    both = np.column_stack([X, X, X[:, 0] + X[:, 1]])
    model = kind(n_levels=5).fit(both, y)
    assert counts_hold(model, both, y)
    plain = kind(n_levels=5).fit(X, y)
    new = np.column_stack([X_new, X_new, X_new[:, 0] + X_new[:, 1]])
    assert (plain.predict(X_new) == model.predict(new)).mean() > 0.85


@pytest.mark.parametrize("kind", BOTH)
def test_sparse_features_where_the_learner_supports_them(kind):
    X, y, X_new, _ = made()
    X, X_new = X * (np.abs(X) > 0.5), X_new * (np.abs(X_new) > 0.5)
    dense = kind(BernoulliNB(), 4).fit(X, y)
    thin = kind(BernoulliNB(), 4).fit(sparse.csc_matrix(X), y)
    np.testing.assert_allclose(
        dense.predict_proba(X_new), thin.predict_proba(sparse.csr_array(X_new))
    )
    with pytest.raises(TypeError, match="Sparse"):
        kind().fit(sparse.csr_matrix(X), y)


@pytest.mark.parametrize("kind", [BOTH[0], pytest.param(BOTH[1], marks=pytest.mark.slow)])
def test_missing_values_where_the_learner_supports_them(kind):
    X, y, *_ = made()
    X[::5, 0] = np.nan
    model = kind(HistGradientBoostingClassifier(max_iter=3, random_state=0), 2).fit(X, y)
    assert counts_hold(model, X, y)
    with pytest.raises(ValueError, match=r"\bX\b.*NaN"):
        kind().fit(X, y)


def test_whole_numbers_and_booleans_are_features():
    X, y, *_ = made()
    for table in ((X > 0), (X > 0).astype(np.uint8), np.rint(X).astype(int), X.astype(np.float32)):
        model = MartingaleBoostClassifier(n_levels=3).fit(table, y)
        reference = MartingaleBoostClassifier(n_levels=3).fit(table.astype(float), y)
        np.testing.assert_array_equal(model.predict(table), reference.predict(table))
        assert counts_hold(model, table, y)


def test_data_are_not_changed():
    X, y, *_ = made()
    weights = np.linspace(1, 2, len(y))
    received = X.copy(), y.copy(), weights.copy()
    MartingaleBoostClassifier(n_levels=3).fit(X, y, weights).predict_proba(X)
    for now, then in zip((X, y, weights), received, strict=True):
        np.testing.assert_array_equal(now, then)


@few(5)
@given(seed=SEEDS)
def test_the_order_of_the_samples_does_not_matter(seed):
    X, y, X_new, _ = made(n=40)
    order = np.random.default_rng(seed).permutation(len(y))
    learner = GaussianNB()
    one = MartingaleBoostClassifier(learner, 3).fit(X, y)
    other = MartingaleBoostClassifier(learner, 3).fit(X[order], y[order])
    np.testing.assert_array_equal(one.predict(X_new), other.predict(X_new))
