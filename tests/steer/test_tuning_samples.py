"""The samples of the tuning set: as the user passed them, or encoded."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from margrave.steer import Dialog


@pytest.fixture(scope="module")
def table():
    """Two classes, with a column of categories."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 120)
    X = pd.DataFrame({"size": random.normal(size=120) + y, "kind": random.choice(["a", "b"], 120)})
    return X, y


@pytest.fixture
def dialog(table):
    return Dialog.from_data(*table, committee="logistic", random_state=0)


def test_samples_of_a_table_are_rows_of_the_table(dialog, table):
    rows = dialog.rows()
    pd.testing.assert_frame_equal(dialog.tuning_samples(), table[0].iloc[rows.at])
    np.testing.assert_array_equal(rows.true, table[1][rows.at])


@pytest.mark.parametrize("how", ["forgotten", "restored"])
def test_samples_without_the_table_are_encoded(dialog, how):
    if how == "forgotten":
        dialog.forget_table()
    else:
        dialog = Dialog.from_bytes(dialog.to_bytes())
    samples = np.asarray(dialog.tuning_samples())
    assert samples.dtype.kind == "f"
    assert len(samples) == dialog.confusion.n


def test_samples_of_a_fitted_model_are_those_that_were_passed(table):
    X, y = table[0][["size"]].to_numpy(), table[1]
    dialog = Dialog(GaussianNB().fit(X[:60], y[:60]), X[60:], y[60:])
    np.testing.assert_array_equal(dialog.tuning_samples(), X[60:])
    dialog.forget_table()  # there is none
    np.testing.assert_array_equal(dialog.tuning_samples(), X[60:])
