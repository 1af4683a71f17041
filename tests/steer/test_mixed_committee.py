"""A committee of methods of the catalogue and of models of the user."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from margrave.steer import Dialog, SteeredClassifier
from margrave.table import TableEncoder

RNG = np.random.default_rng(0)
Y = np.repeat(["neg", "pos"], [500, 400])
X = pd.DataFrame(
    {
        "size": RNG.normal(size=900) + 2 * (Y == "pos"),
        "count": RNG.integers(0, 5, 900),
        "colour": RNG.choice(["red", "blue"], 900),
    }
)
MINE = make_pipeline(
    make_column_transformer(("passthrough", ["size", "count"])), LogisticRegression()
)
LIMIT = "fp <= 10%"


def dialog_of(committee, **settings):
    return Dialog.from_data(X, Y, committee=committee, random_state=0, **settings)


@pytest.mark.core
@pytest.mark.parametrize(
    ("committee", "names"),
    [
        (["logistic", ("mine", MINE)], ("logistic", "mine")),
        ([("mine", MINE), "qda", "logistic"], ("mine", "qda", "logistic")),
        (("logistic", MINE), ("logistic", "pipeline")),
    ],
)
def test_members_keep_their_order_and_get_names(committee, names):
    dialog = dialog_of(committee, guarantee=LIMIT)
    assert dialog.members == names
    assert dialog.prefer(LIMIT).met
    assert dialog.accept().certificate_.guarantees


class Seen(ClassifierMixin, BaseEstimator):
    """Records the types that it is fitted on and predicts for."""

    def fit(self, X, y):
        self.classes_, self.fitted_on_ = np.unique(y), type(X)
        return self

    def predict(self, X):
        assert type(X) is self.fitted_on_
        return np.where(X["size"] > 1, self.classes_[1], self.classes_[0])


def test_only_methods_of_the_catalogue_see_encoded_columns():
    committee = dialog_of(["qda", Seen()]).model.scorer_.committee
    first, own = committee.members
    assert isinstance(first, Pipeline)
    assert isinstance(first[0], TableEncoder)
    assert own.fitted_on_ is pd.DataFrame


def test_predictions_are_those_of_the_same_pipelines():
    mixed = dialog_of(["qda", ("mine", MINE)])
    qda = Pipeline(dialog_of(["qda", ("mine", MINE)]).model.scorer_.committee.members[0].steps)
    by_hand = dialog_of([("qda", clone(qda)), ("mine", MINE)])
    assert mixed.sizes == by_hand.sizes
    np.testing.assert_array_equal(mixed.history[0].after.counts, by_hand.history[0].after.counts)


@pytest.mark.core
def test_it_is_saved_cloned_and_fitted_again(tmp_path):
    dialog = dialog_of(["logistic", ("mine", MINE)], guarantee=LIMIT)
    dialog.prefer(LIMIT)
    dialog.save(tmp_path / "dialog.skops")
    again = Dialog.load(tmp_path / "dialog.skops")
    assert again.members == dialog.members
    model = dialog.accept()
    model.save(tmp_path / "model.skops")
    loaded = SteeredClassifier.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert [name for name, _ in loaded.estimator] == ["logistic", "mine"]
    assert clone(loaded).fit(X, Y).score(X, Y) > 0.7


@pytest.mark.core
@pytest.mark.parametrize("preference", [LIMIT, None])
@pytest.mark.parametrize("estimator", [["logistic", ("mine", MINE)], "logistic"])
def test_a_steered_classifier_takes_names_too(estimator, preference):
    model = clone(SteeredClassifier(estimator, preference=preference, random_state=0))
    assert model.fit(X, Y).score(X, Y) > 0.7


@pytest.mark.core
@pytest.mark.parametrize(
    ("committee", "received"),
    [
        (["logistik", MINE], "logistik"),
        (["logistic", "logistic", MINE], "logistic"),
        (["logistic", ("logistic", MINE)], "logistic"),
        (["logistic", 5], "int"),
        ({"mine": "logistic"}, "logistic"),
    ],
)
def test_what_is_no_member_is_refused(committee, received):
    with pytest.raises(ValueError, match=received):
        dialog_of(committee)
