"""Certainty of predictions, against the formulas written out and by simulation."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_classification
from sklearn.metrics.pairwise import rbf_kernel

from margrave.mam import MAMClassifier


@pytest.fixture(scope="module")
def samples():
    return make_classification(80, 3, n_informative=2, n_redundant=0, random_state=0)


def sign(y):
    return np.where(y == 1, 1.0, -1.0)


def written_out(X, y, gamma, delta, rho):
    """(14) with the right signs, for the paper's classifier and B = 1."""
    n = len(y)
    omega = rbf_kernel(X, gamma=gamma)
    mean = np.sqrt(sign(y) @ omega @ sign(y)) / n
    complexity = 2 / n * np.sqrt(np.trace(omega))
    last = 3 * np.sqrt(2 * np.log(2 / delta) / n)
    return mean - complexity - last, (1 - mean + complexity + last) / (1 + rho)


def test_the_bounds_are_equations_12_and_14(samples):
    X, y = samples
    model = MAMClassifier(gamma=0.3, threshold=None).fit(X, y)
    expected, mistakes = written_out(X, y, 0.3, 0.1, np.abs(model.decision_function(X)))
    assert model.margin_bound(0.1) == pytest.approx(expected)
    certainty = model.certainty(X, 0.1)
    np.testing.assert_allclose(certainty.bound, np.minimum(mistakes, 1))
    assert certainty.vacuous.tolist() == (mistakes >= 1).tolist()
    assert certainty.held_out is None


def test_the_complexity_is_lemma_1_and_at_least_the_mean_over_all_signs():
    X, y = make_classification(8, 3, n_informative=2, n_redundant=0, random_state=0)
    model = MAMClassifier(gamma=0.3).fit(X, y)
    omega = rbf_kernel(X, gamma=0.3)
    assert model.rademacher_bound() == pytest.approx(2 / 8 * np.sqrt(np.trace(omega)))
    signs = np.array(list(itertools.product([-1, 1], repeat=8)))
    exact = (2 / 8 * np.sqrt(np.einsum("si,ij,sj->s", signs, omega, signs))).mean()
    assert model.rademacher_bound() >= exact
    drawn = model.rademacher_bound("monte-carlo", n_draws=4000, random_state=0)
    assert drawn == pytest.approx(exact, rel=0.02)


def test_random_features_and_the_linear_kernel_have_a_complexity_too(samples):
    X, y = samples
    exact = MAMClassifier(gamma=0.3).fit(X, y)
    near = MAMClassifier(gamma=0.3, n_components=3000, random_state=0).fit(X, y)
    assert near.rademacher_bound() == pytest.approx(exact.rademacher_bound())
    drawn = [
        model.rademacher_bound("monte-carlo", n_draws=500, random_state=0)
        for model in (exact, near)
    ]
    assert drawn[1] == pytest.approx(drawn[0], rel=0.02)
    linear = MAMClassifier("linear").fit(X, y)
    assert linear.rademacher_bound() == pytest.approx(2 / 80 * np.sqrt((X**2).sum()))


@pytest.mark.parametrize("settings", [{"kernel": "linear"}, {"n_components": 30, "gamma": 0.3}])
def test_bounds_are_of_the_direction_in_use_when_few_samples_were_added(settings, samples):
    X, y = samples
    model = MAMClassifier(random_state=0, **settings).partial_fit(X[:75], y[:75], classes=[0, 1])
    model.partial_fit(X[75:], y[75:])  # less than a tenth: the threshold stays
    margins = sign(y) * model.decision_function(X)
    assert model._training_margins().margins.mean() == pytest.approx(margins.mean(), rel=1e-5)
    assert len(model._training_margins().margins) == 80
    drawn = model.rademacher_bound("monte-carlo", n_draws=300, random_state=0)
    assert drawn == pytest.approx(model.rademacher_bound(), rel=0.2)


def test_selected_widths_divide_delta(samples):
    X, y = samples
    chosen = MAMClassifier(threshold=None).fit(X, y)
    fixed = MAMClassifier(gamma=chosen.gamma_, threshold=None).fit(X, y)
    power = round(np.log(chosen.gamma_) / np.log(4))
    fraction = 1 / ((np.pi**2 / 3 - 1) * (1 + abs(power)) ** 2)
    assert chosen.margin_bound(0.1) == pytest.approx(fixed.margin_bound(0.1 * fraction))
    few = MAMClassifier(gammas=[0.1, chosen.gamma_, 10.0], threshold=None).fit(X, y)
    assert few.gamma_ == chosen.gamma_
    assert few.margin_bound(0.15) == pytest.approx(fixed.margin_bound(0.05))


def test_a_threshold_is_part_of_the_bound(samples):
    """|threshold| ≤ B adds 2B/√n to the complexity, and margins are clipped at B."""
    X, y = samples
    model = MAMClassifier(gamma=0.3).fit(X, y)
    margins = sign(y) * model.decision_function(X)
    n = len(y)
    expected = (
        np.clip(margins, -1, 1).mean()
        - (2 / np.sqrt(n) + 2 / np.sqrt(n))
        - 3 * np.sqrt(2 * np.log(2 / 0.1) / n)
    )
    assert model.margin_bound(0.1) == pytest.approx(expected)


def test_a_threshold_is_never_beyond_the_largest_score():
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = (np.random.default_rng(1).uniform(size=200) < 0.1).astype(int)
    model = MAMClassifier(gamma=10.0).fit(X, y)
    assert np.abs(model.threshold_) <= 1
    assert set(model.predict(X)) <= {0, 1}
    margins = np.where(model._training.codes == 1, 1.0, -1.0) * model.loo_decision_[:, 0]
    assert (margins > 0).mean() == pytest.approx(model.loo_scores_[0])


def test_a_transform_is_equation_15(samples):
    X, y = samples
    model = MAMClassifier("linear", threshold=None).fit(X, y)
    margins = sign(y) * model.decision_function(X)
    n = len(y)
    for transform, bound, slope, change in (
        ("clip", None, None, lambda z: np.clip(z, -1, 1)),
        ("clip", 2.0, None, lambda z: np.clip(z, -2, 2)),
        (np.tanh, 1.0, 1.0, np.tanh),
        (lambda z: 3 * np.tanh(z), 3.0, 3.0, lambda z: 3 * np.tanh(z)),
    ):
        size = 1.0 if bound is None else bound
        rho = -change(-np.abs(margins))
        expected = (
            size
            - change(margins).mean()
            + (slope or 1.0) * 2 / n * np.sqrt((X**2).sum())
            + 3 * size * np.sqrt(2 * np.log(2 / 0.5) / n)
        ) / (size + rho)
        found = model.certainty(X, 0.5, transform, bound=bound, lipschitz=slope).bound
        np.testing.assert_allclose(found, np.clip(expected, 0, 1))


def test_a_richer_class_has_the_larger_bound():
    """What the signs printed in (13) and (14) would turn round."""
    X, y = make_blobs(20_000, centers=[[-2, 0], [2, 0]], random_state=0)
    bounds = [MAMClassifier(gamma=g, threshold=None).fit(X[::10], y[::10]) for g in (0.05, 5.0)]
    wide, narrow = (model.certainty([[2.0, 0.0]]).bound[0] for model in bounds)
    assert wide < narrow


def test_held_out_samples_give_usable_numbers(samples):
    X, y = make_classification(3000, 3, n_informative=2, n_redundant=0, flip_y=0.02, random_state=0)
    model = MAMClassifier().fit(X[:300], y[:300])
    certainty = model.certainty(X[:300], held_out=(X[300:1300], y[300:1300]))
    assert certainty.vacuous.all()
    assert certainty.held_out.max() < 0.25
    scores = model.decision_function(X[1300:])
    wrong = (scores > 0) != (y[1300:] == 1)
    for rho, joint in zip(certainty.margins, certainty.held_out, strict=True):
        sure = np.abs(scores) >= rho
        assert (wrong & sure).mean() <= joint
    order = np.argsort(certainty.margins)
    assert (np.diff(certainty.held_out[order]) <= 1e-12).all()
    assert (certainty.held_out_error <= 1).all()
    assert f"{certainty.held_out_error[0]:.1%}" in certainty.in_words()[0]
    assert (certainty.levels <= certainty.margins).all()
    for level in np.unique(certainty.levels):
        sure = np.abs(scores) >= level
        found = certainty.held_out_error[certainty.levels == level]
        assert len(set(found)) == 1
        assert wrong[sure].mean() <= found[0]


def test_the_bound_is_true_with_many_samples_and_the_printed_one_impossible_with_few():
    """One in six is wrong. (13) as printed is "less than 0" for 60 samples."""
    X, y = make_blobs(3000, centers=[[-1, 0], [1, 0]], random_state=0)
    for n in (60, 2000):
        model = MAMClassifier(gamma=0.1, threshold=None).fit(X[:n], y[:n])
        rest = model.rademacher_bound() + 3 * np.sqrt(2 * np.log(2 / 0.05) / n)
        margins = sign(y[2000:]) * model.decision_function(X[2000:])
        assert model.margin_bound(0.05) == pytest.approx(model.average_margin_ - rest)
        assert model.margin_bound(0.05) < margins.mean()
        bound = model.certainty([[0.0, 0.0]], 0.05).bound[0]
        assert (margins <= 0).mean() > 0.1
        if n == 60:
            assert 1 - (model.average_margin_ + rest) < 0
            assert bound == 1
        else:
            assert (margins <= 0).mean() < bound < 0.95


def test_the_bounds_hold_by_simulation():
    """The held-out numbers in at least 1 − δ of the draws; (12) and (14) are far from tight."""
    rng = np.random.default_rng(0)

    def draw(n):
        y = rng.integers(0, 2, n)
        return rng.normal(size=(n, 2)) + 1.2 * y[:, None], y

    big, truth = draw(4000)
    broken = np.zeros(4)
    draws = 60
    for _ in range(draws):
        X, y = draw(60)
        model = MAMClassifier(gamma=0.5).fit(X, y)
        scores = model.decision_function(big)
        margins = sign(truth) * scores
        broken[0] += margins.mean() < model.margin_bound(0.2)
        certainty = model.certainty(big[:1000], 0.2, held_out=draw(100))
        ordered = np.sort(margins)
        mistakes = np.searchsorted(ordered, -certainty.margins, side="right") / len(ordered)
        broken[1] += (mistakes > certainty.bound + 0.01).any()
        broken[2] += (mistakes > certainty.held_out + 0.01).any()
        for level in np.unique(certainty.levels):
            limit = certainty.held_out_error[certainty.levels == level][0]
            if ((scores > 0) != (truth == 1))[np.abs(scores) >= level].mean() > limit + 0.01:
                broken[3] += 1
                break
    assert (broken <= 0.2 * draws).all()


def test_more_classes_have_no_guarantee_but_held_out_numbers():
    X, y = make_blobs(300, centers=3, random_state=0)
    model = MAMClassifier().fit(X[:100], y[:100])
    certainty = model.certainty(X[:5], held_out=(X[100:], y[100:]))
    assert certainty.vacuous.all()
    assert (certainty.held_out < 1).all()
    two = np.sort(model.decision_function(X[:5]), axis=1)[:, -2:]
    np.testing.assert_allclose(certainty.margins, two[:, 1] - two[:, 0])
    with pytest.raises(ValueError, match=r"\b3\b"):
        model.margin_bound()


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, float("nan"), "0.1", True])
def test_a_delta_that_is_no_probability_is_refused(delta, samples):
    model = MAMClassifier(gamma=0.3).fit(*samples)
    for method in (model.margin_bound, lambda delta: model.certainty(samples[0], delta)):
        with pytest.raises(ValueError, match=r"\bdelta\b"):
            method(delta)


def test_a_missing_bound_is_an_error(samples):
    X, y = samples
    linear = MAMClassifier("linear").fit(X, y)
    with pytest.raises(ValueError, match=r"\bbound\b"):
        linear.margin_bound(0.1)
    assert np.isfinite(linear.margin_bound(0.1, bound=10.0))
    cases = [
        (lambda z: np.clip(z + 0.1, -1, 1), 1.1, 1.0),  # not 0 at 0
        (lambda z: -np.tanh(z), 1.0, 1.0),  # it falls
        (lambda z: z, 1.0, 1.0),  # above its bound
        (np.tanh, 1.0, 0.1),  # steeper than its Lipschitz constant
    ]
    for transform, bound, slope in cases:
        with pytest.raises(ValueError, match=r"\btransform\b"):
            linear.certainty(X, 0.1, transform, bound=bound, lipschitz=slope)
    assert linear.certainty(X, 0.1).vacuous.all()
    assert (linear.certainty(X, 0.1, held_out=(X, y)).held_out < 1).all()
    with pytest.raises(ValueError, match=r"\bbound\b.*\binf\b"):
        linear.certainty(X, 0.1, bound=np.inf)
    with pytest.raises(ValueError, match="held_out"):
        linear.certainty(X, 0.1, held_out=(X, y, y))
    with pytest.raises(ValueError, match=r"held_out.*'1'"):
        linear.certainty(X, 0.1, held_out=(X[y == 1], y[y == 1].astype(str)))
    with pytest.raises(ValueError, match="n_draws"):
        linear.rademacher_bound("monte-carlo", n_draws=0)
    with pytest.raises(ValueError, match=r"\blipschitz\b"):
        linear.certainty(X, 0.1, np.tanh)
    with pytest.raises(ValueError, match=r"\btransform\b.*'threshold'"):
        linear.certainty(X, 0.1, "threshold")
    with pytest.raises(ValueError, match=r"\bmethod\b.*'exact'"):
        linear.rademacher_bound("exact")
    with pytest.raises(ValueError, match=r"held_out.*\b80\b.*\b3\b"):
        linear.certainty(X, 0.1, "clip", held_out=(X, y[:3]))
