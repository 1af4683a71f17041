"""Bad input is refused with an error that names the parameter, wherever it comes in."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from margrave import Confusion, ParameterError, Preference, Scores, compare, fuse, mam, select
from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    MartingaleBoostClassifier,
    TunableRBFLogistic,
)
from margrave.members import EncodedLabelsClassifier
from margrave.pairs import CrucialPairs, sample_margins
from margrave.steer import Dialog, SteeredClassifier

RANDOM = np.random.default_rng(0)
Y = np.array(["no", "yes"] * 20)
X = RANDOM.normal(size=(40, 3)) + (Y == "yes")[:, None]
PAIR = [("line", LogisticRegression()), ("tree", DecisionTreeClassifier(random_state=0))]
COMMITTEES = [
    fuse.VoteClassifier(PAIR),
    fuse.BayesOptimalClassifier(PAIR, random_state=0),
    fuse.RankMarginClassifier(PAIR, nu=0.1, tuning=2),
    select.LocalSelectionClassifier(PAIR, k=3, tuning=2),
    select.RegionSelectionClassifier(PAIR, tuning=2, random_state=0),
    select.MixtureOfExpertsClassifier(PAIR, tuning=2),
    SteeredClassifier(LogisticRegression()),
]
NO_SAMPLES = [None, {"a": 1}, "text", 7]


@pytest.mark.parametrize("committee", COMMITTEES, ids=lambda one: type(one).__name__)
def test_what_holds_no_samples_is_named(committee):
    for bad in NO_SAMPLES:
        with pytest.raises(ValueError, match="needs X to be"):
            committee.fit(bad, Y)
    committee.fit(X, Y)
    for bad in NO_SAMPLES:
        with pytest.raises(ValueError, match="needs X to be"):
            committee.predict(bad)


@pytest.mark.parametrize("bad", NO_SAMPLES)
def test_a_dialog_needs_samples(bad):
    with pytest.raises(ValueError, match="needs X to be"):
        Dialog.from_data(bad, Y, committee=["logistic"])


@pytest.mark.parametrize("bad", NO_SAMPLES)
def test_bias_variance_needs_rows(bad):
    member = DecisionTreeClassifier(random_state=0)
    with pytest.raises(ValueError, match=r"\bX\b"):
        compare.bias_variance(member, bad, Y, X, Y, n_rounds=2)
    with pytest.raises(ValueError, match=r"\bX_test\b"):
        compare.bias_variance(member, X, Y, bad, Y, n_rounds=2)


def test_labels_of_different_kinds_are_refused():
    mixed = np.array([1, "a"] * 20, dtype=object)
    scores = np.linspace(-1, 1, 40)
    for refused in (
        lambda: CrucialPairs.of(scores, mixed),
        lambda: sample_margins(scores, mixed),
        lambda: mam.MAMClassifier("linear").partial_fit(X, Y, classes=mixed),
        lambda: compare.bias_variance(PAIR[1][1], X, mixed, X, mixed, n_rounds=2),
    ):
        with pytest.raises(ValueError, match="numbers"):
            refused()


@pytest.mark.parametrize("bad", [[], ["no", "yes"], np.array(["yes", "no"])])
def test_the_positive_class_is_one_label(bad):
    with pytest.raises(ValueError, match="positive"):
        CrucialPairs.of(np.arange(40), Y, positive=bad)


@pytest.mark.parametrize("bad", [[], {}, [1]])
def test_parameters_that_are_no_estimators_are_named(bad):
    with pytest.raises(ParameterError, match="space"):
        select.MixtureOfExpertsClassifier(PAIR, tuning=2, space=bad).fit(X, Y)
    with pytest.raises(ParameterError, match="estimator"):
        EncodedLabelsClassifier(bad).fit(X, Y)


@pytest.mark.parametrize("bad", [("a", "b", "c"), [[0, 1, 2]], [7]])
def test_folds_are_pairs(bad):
    with pytest.raises(ValueError, match="tuning"):
        select.SingleBestClassifier(PAIR, tuning=bad).fit(X, Y)


def test_features_whose_distances_overflow_are_refused():
    with pytest.raises(ValueError, match="too large") as caught, np.errstate(all="ignore"):
        TunableRBFLogistic(random_state=0).fit(X * 1e200, Y)
    assert not isinstance(caught.value, np.linalg.LinAlgError)


def test_objects_of_other_classes_are_refused():
    matrix = Confusion([[3, 1], [1, 3]], classes=["no", "yes"])
    with pytest.raises(TypeError, match="Preference"):
        Preference("fp <= 1").keeping("fn <= 1", matrix)
    with pytest.raises(TypeError, match="Bound"):
        Preference.of(["fn <= 1"])
    for bad in ([], ["text"], [1, 2]):
        with pytest.raises(TypeError, match="Scores"):
            Scores.side_by_side(bad)


def test_classes_that_are_equal_change_only_the_examples():
    assert str(Preference("fp <= 5%", classes=["a", "a"])) == "fp <= 5%"


@pytest.mark.parametrize("bad", [[{}] * 3, [object()] * 3])
def test_ranks_need_numbers(bad):
    with pytest.raises(TypeError, match="float"):
        mam.rank_transform(bad)


@pytest.mark.parametrize("kind", [MartingaleBoostClassifier, AdaptiveMartingaleBoostClassifier])
@pytest.mark.parametrize("bad", [0, 1001, 10**30])
def test_levels_that_would_take_too_long_are_refused(kind, bad):
    with pytest.raises(ParameterError, match="n_levels"):
        kind(n_levels=bad).fit(X, Y)
