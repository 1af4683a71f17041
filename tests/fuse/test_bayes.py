import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from margrave.fuse import BayesOptimalClassifier
from margrave.fuse._bayes import log_likelihoods, posterior


def test_the_textbook_example():
    """Mitchell's: three hypotheses at 0.4, 0.3, 0.3 that predict +, -, -: best is -."""
    proba = np.array([[[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]])
    weights = posterior(np.zeros(3), np.array([0.4, 0.3, 0.3]))
    np.testing.assert_allclose(weights, [0.4, 0.3, 0.3])
    np.testing.assert_allclose(np.einsum("nkc,k->nc", proba, weights), [[0.6, 0.4]])


def test_a_posterior_worked_by_hand():
    # Two members, three samples of class 1, 1, 0: likelihoods 0.8*0.5*0.9 and 0.6*0.6*0.6.
    proba = np.array([[[0.2, 0.8], [0.4, 0.6]], [[0.5, 0.5], [0.4, 0.6]], [[0.9, 0.1], [0.6, 0.4]]])
    logs = log_likelihoods(proba, np.array([1, 1, 0]), clip=1e-6)
    np.testing.assert_allclose(np.exp(logs), [0.36, 0.216])
    np.testing.assert_allclose(posterior(logs, np.array([0.5, 0.5])), [0.625, 0.375])
    np.testing.assert_allclose(posterior(logs, np.array([0.0, 1.0])), [0, 1])


@given(
    arrays(float, (6, 3), elements=st.floats(0, 1)),
    arrays(int, 6, elements=st.integers(0, 1)),
    arrays(int, 6, elements=st.integers(0, 4)),
)
def test_weights_count_samples_as_often(ones, codes, repeats):
    proba = np.stack([1 - ones, ones], axis=2)
    weighted = log_likelihoods(proba, codes, 1e-6, repeats)
    repeated = log_likelihoods(proba.repeat(repeats, axis=0), codes.repeat(repeats), 1e-6)
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


@given(arrays(float, 4, elements=st.floats(-1e6, 0)))
def test_a_posterior_is_a_distribution_at_any_size(logs):
    weights = posterior(logs, np.full(4, 0.25))
    assert weights.sum() == pytest.approx(1)
    assert weights.argmax() in np.flatnonzero(logs >= logs.max() - 1e-9)


def blobs(spread=4.0):
    X, y = make_blobs(200, centers=3, cluster_std=spread, random_state=0)
    return X, np.array(["a", "b", "c"])[y]


def test_probabilities_are_the_posterior_mixture():
    X, y = blobs()
    members = [GaussianNB().fit(X[:100], y[:100]), DummyClassifier().fit(X[:100], y[:100])]
    model = BayesOptimalClassifier(members, prefit=True, prior=[1e-30, 1]).fit(
        X[100:120], y[100:120]
    )
    mixture = sum(
        weight * member.predict_proba(X)
        for weight, member in zip(model.posterior_, members, strict=True)
    )
    np.testing.assert_allclose(model.predict_proba(X), mixture, atol=1e-12)
    assert (model.predict(X) == model.classes_[mixture.argmax(axis=1)]).all()


def test_one_impossible_thing_does_not_rule_a_forest_out():
    X, y = blobs(spread=2.0)
    members = [RandomForestClassifier(20, random_state=0), DummyClassifier(strategy="uniform")]
    unclipped = BayesOptimalClassifier(members, random_state=0, clip=1e-300).fit(X, y)
    assert unclipped.posterior_[0] < 1e-6  # it predicted probability 0 for a class that occurred
    assert BayesOptimalClassifier(members, random_state=0).fit(X, y).posterior_[0] > 0.99


def test_the_tuning_part_is_not_trained_on():
    X, y = blobs()
    model = BayesOptimalClassifier([GaussianNB()], tuning_fraction=0.4, random_state=3).fit(X, y)
    assert model.estimators_[0].class_count_.sum() == 120
    again = BayesOptimalClassifier([GaussianNB()], tuning_fraction=0.4, random_state=3).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))


def test_sample_weights_are_split_with_the_samples():
    X, y = blobs()
    weights = np.where(y == "a", 1.0, 0.0) + 1e-3
    members = [("a", DummyClassifier(strategy="constant", constant="a")), ("nb", DummyClassifier())]
    model = BayesOptimalClassifier(members, random_state=0).fit(X, y, sample_weight=weights)
    assert model.named_estimators_.nb.class_prior_[0] > 0.99
    flat = BayesOptimalClassifier(members, random_state=0).fit(X, y)
    assert model.log_likelihoods_[0] > flat.log_likelihoods_[0]


def test_fit_parameters_that_are_not_per_sample_are_passed_whole():
    class Takes(GaussianNB):
        def fit(self, X, y, pairs=None, ids=None):
            self.pairs, self.ids, self.rows = pairs, ids, X
            return super().fit(X, y)

    X, y = blobs()
    model = BayesOptimalClassifier([Takes()], random_state=0)
    model.fit(X, y, pairs=[(X, y)], ids=list(range(200)))
    member = model.estimators_[0]
    assert len(member.pairs) == 1
    assert len(member.ids) == 150
    np.testing.assert_array_equal(member.rows, X[member.ids])


def test_a_class_too_small_for_both_parts_is_still_known():
    X, y = blobs()
    y = y.astype("<U4")
    y[0] = "rare"
    model = BayesOptimalClassifier([GaussianNB()], random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["a", "b", "c", "rare"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_members_with_disjoint_classes():
    X, y = blobs(spread=1.0)
    members = [
        GaussianNB().fit(X[y == "a"], y[y == "a"]),
        GaussianNB().fit(X[y != "a"], y[y != "a"]),
    ]
    model = BayesOptimalClassifier(members, prefit=True).fit(X, y)
    assert model.posterior_[1] == pytest.approx(1)  # it explains two of the three classes


def _fit(estimators=None, sample_weight=None, **settings):
    X, y = blobs()
    model = BayesOptimalClassifier(estimators or [GaussianNB()], **settings)
    return model.fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: _fit(tuning_fraction=0.0), "tuning_fraction"),
        (lambda: _fit(clip=0.5), r"\bclip\b"),
        (lambda: _fit(prior=[1, 1]), r"\bprior\b"),
        (lambda: _fit([GaussianNB(), DecisionTreeClassifier()], prior=[0, 0]), r"\bprior\b"),
        (lambda: _fit([("logistic", LinearSVC())]), "'logistic'"),
        (lambda: _fit(sample_weight=-np.ones(200)), "sample_weight"),
        (
            lambda: BayesOptimalClassifier([_fit()], prefit=True).fit([[0.0, 0.0]], ["z"]),
            "'z'",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, match):
    with pytest.raises(ValueError, match=match):
        call()
