"""The equations of bias and variance, on tables of predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from margrave.compare._bias_variance import squared_terms, zero_one_terms


def one_hot(labels, n_classes):
    return np.eye(n_classes)[labels]


@st.composite
def label_tables(draw):
    """Predictions, true labels and true probabilities, with 2 to 4 classes."""
    k, rounds, n = (draw(st.integers(2, 4)), draw(st.integers(1, 9)), draw(st.integers(1, 6)))
    predictions = draw(arrays(np.intp, (rounds, n), elements=st.integers(0, k - 1)))
    labels = draw(arrays(np.intp, n, elements=st.integers(0, k - 1)))
    mass = draw(arrays(np.float64, (n, k), elements=st.floats(0.01, 1)))
    return predictions, labels, mass / mass.sum(axis=1, keepdims=True)


@st.composite
def value_tables(draw):
    """Predicted values, their targets and the noise around these."""
    rounds, n, k = (draw(st.integers(1, 9)), draw(st.integers(1, 6)), draw(st.integers(1, 3)))
    values = st.floats(-100, 100)
    return (
        draw(arrays(np.float64, (rounds, n, k), elements=values)),
        draw(arrays(np.float64, (n, k), elements=values)),
        draw(arrays(np.float64, n, elements=st.floats(0, 100))),
    )


@given(label_tables())
def test_zero_one_parts_add_up_to_the_counted_error(table):
    predictions, labels, _ = table
    terms = zero_one_terms(predictions, one_hot(labels, 4))
    np.testing.assert_allclose(terms.error, (predictions != labels).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(terms.bias + terms.net_variance, terms.error, atol=1e-12)
    np.testing.assert_allclose([terms.noise, terms.net_noise], 0, atol=1e-12)


@given(label_tables())
def test_zero_one_parts_add_up_to_the_expected_error(table):
    predictions, _, proba = table
    terms = zero_one_terms(predictions, proba)
    points = np.arange(len(proba))
    expected = np.mean([1 - proba[points, row] for row in predictions], axis=0)
    np.testing.assert_allclose(terms.error, expected, atol=1e-12)
    total = terms.net_noise + terms.bias + terms.net_variance
    np.testing.assert_allclose(total, terms.error, atol=1e-12)
    np.testing.assert_allclose(terms.noise, 1 - proba.max(axis=1), atol=1e-12)


@given(label_tables())
def test_zero_one_parts_are_bounded(table):
    predictions, _, proba = table
    terms = zero_one_terms(predictions, proba)
    assert set(terms.bias) <= {0.0, 1.0}
    assert np.all((terms.variance >= 0) & (terms.variance < 1))
    assert np.all(np.abs(terms.net_variance) <= terms.variance + 1e-12)
    assert np.all(terms.net_noise <= terms.noise + 1e-12)


@given(label_tables())
def test_with_two_classes_the_factors_are_the_printed_ones(table):
    predictions, labels, proba = table
    predictions, labels = predictions % 2, labels % 2
    proba = proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True)
    terms = zero_one_terms(predictions, one_hot(labels, 2))
    sign = np.where(terms.bias == 1, -1, 1)
    np.testing.assert_allclose(terms.net_variance, sign * terms.variance, atol=1e-12)
    noisy = zero_one_terms(predictions, proba)
    factor = 2 * (predictions == proba.argmax(axis=1)).mean(axis=0) - 1
    np.testing.assert_allclose(noisy.net_noise, factor * noisy.noise, atol=1e-12)


@given(value_tables())
def test_squared_parts_add_up(table):
    predictions, truth, noise = table
    terms = squared_terms(predictions, truth, noise)
    np.testing.assert_allclose(
        terms.net_noise + terms.bias + terms.net_variance, terms.error, rtol=1e-9, atol=1e-9
    )


@given(label_tables())
def test_squared_error_under_true_probabilities_is_the_mean_over_labels(table):
    predictions, _, proba = table
    k = proba.shape[1]
    predicted = one_hot(predictions, k)
    terms = squared_terms(predicted, proba, (proba * (1 - proba)).sum(axis=1))
    brier = np.stack(
        [np.square(predicted - one_hot(label, k)).sum(axis=2).mean(axis=0) for label in range(k)],
        axis=1,
    )
    np.testing.assert_allclose(terms.error, (brier * proba).sum(axis=1), atol=1e-12)


def test_two_classes_by_hand():
    # Four rounds, three points, true class 1 everywhere. The main prediction is right at the first
    # (variance ¼ costs), wrong at the second (variance ¼ helps); the third is a tie, which the
    # first class wins: wrong, with variance ½.
    predictions = np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0], [0, 0, 1]])
    terms = zero_one_terms(predictions, one_hot(np.array([1, 1, 1]), 2))
    assert terms.error.tolist() == [0.25, 0.75, 0.5]
    assert terms.bias.tolist() == [0, 1, 1]
    assert terms.variance.tolist() == [0.25, 0.25, 0.5]
    assert terms.net_variance.tolist() == [0.25, -0.25, -0.5]


def test_three_classes_by_hand():
    # The main prediction is 0, the truth 2. Of the half that differs from 0, half predicts 2 and
    # helps; the other half predicts 1, is wrong too and changes nothing: factor −½.
    predictions = np.array([[0], [0], [1], [2]])
    terms = zero_one_terms(predictions, one_hot(np.array([2]), 3))
    assert terms.error.tolist() == [0.75]
    assert terms.bias.tolist() == [1]
    assert terms.variance.tolist() == [0.5]
    assert terms.net_variance.tolist() == [-0.25]


def test_noise_by_hand():
    # The best prediction is 1, right with probability 0.8; three rounds of four predict it.
    # Error = ¾·0.2 + ¼·0.8 = 0.35 = c₁·0.2 + ¼ with c₁ = 2·¾ − 1 = ½.
    terms = zero_one_terms(np.array([[1], [1], [1], [0]]), np.array([[0.2, 0.8]]))
    assert terms.error == pytest.approx([0.35])
    assert terms.bias.tolist() == [0]
    assert terms.variance.tolist() == [0.25]
    assert terms.noise == pytest.approx([0.2])
    assert terms.net_noise == pytest.approx([0.1])


def test_squares_by_hand():
    # Predictions 1 and 3 of a target 5: mean 2, bias² 9, variance 1, error (16 + 4)/2 = 10.
    terms = squared_terms(np.array([[[1.0]], [[3.0]]]), np.array([[5.0]]), np.zeros(1))
    assert terms.error.tolist() == [10]
    assert terms.bias.tolist() == [9]
    assert terms.variance.tolist() == [1]
    assert terms.net_variance.tolist() == [1]
